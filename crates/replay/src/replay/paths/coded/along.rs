//! Coded paths along the texts of logs.

use super::{
    CodedPieces, CodedRow, Patterns, Transition, coded_levels, coded_names, coded_rules, levels,
};
use crate::replay::ReplayError;
use crate::replay::asked::Answers;
use crate::replay::moments::{CountMoments, spread};
use crate::replay::read::{Text, Texts};
use crate::replay::rows::Whose;
use specgap_core::rule::RuleName;
use specgap_log::log::Log;
use specgap_number::distribution::Rows;
use std::collections::VecDeque;
use std::sync::OnceLock;

/// What a position says of a round: K, how many tokens before it the round started, and T of
/// each of [`coded_rules`]. Rounds of which one path at most can be here need no more than q/p.
struct Here {
    paths: usize,
    depth: usize,
    transitions: Vec<Transition<f64>>,
}

/// Where a position stands in its text.
#[derive(Clone, Copy)]
struct Place {
    text: usize,
    place: usize,
}

/// What verifiers of coded paths need of every position.
pub(in crate::replay::paths) struct Coded {
    /// By the position's number, and by depth.
    here: Vec<OnceLock<Vec<Here>>>,
    /// How many depths have rows of their own.
    depths: usize,
}

impl Coded {
    /// Reads the rows of some logs again, of which the texts are known with the interval of each
    /// token, by the start of a round and depth. `None` where rows list some tokens only: intervals need all.
    ///
    /// # Errors
    /// As [`Texts::read`].
    ///
    /// # Complexity
    /// O(V) a pass, pattern and start of a round from which more than one path may be at a
    /// position.
    pub(in crate::replay::paths) fn read(
        logs: &[Log],
        texts: &Texts,
        intervals: &(dyn Fn(&Text, usize, usize) -> [f64; 2] + Sync),
        (paths, length): (&[usize], usize),
    ) -> Result<Option<Self>, ReplayError> {
        if !texts.are_whole() {
            return Ok(None);
        }
        let mut by_number: Vec<Option<Place>> = vec![None; texts.positions()];
        for (at, text) in texts.texts.iter().enumerate() {
            for (place, &number) in text.numbers.iter().enumerate() {
                if let Some(entry) = by_number.get_mut(number) {
                    *entry = Some(Place { text: at, place });
                }
            }
        }
        let levels: Vec<Vec<f64>> = coded_rules().map(|(_, tenths)| levels(tenths)).collect();
        let depths = texts.depths();
        let found = Self {
            here: (0..by_number.len() * depths)
                .map(|_| OnceLock::new())
                .collect(),
            depths,
        };
        let question =
            |_: &mut specgap_row::Workspace, rows: Rows<'_>, token: usize, whose: Whose| {
                let number = whose.number as usize;
                let place = by_number.get(number).copied().flatten();
                let entry = found.here.get(number * depths + whose.ahead);
                let Some((Place { text, place }, entry)) = place.zip(entry) else {
                    return Ok(Answers::default());
                };
                // Rounds that have this row: all, or those that came here from one start.
                let rounds = match texts.is_by_depth() {
                    true => whose.ahead..whose.ahead + 1,
                    false => 0..length,
                };
                let rounds = rounds.start..rounds.end.min(length.min(place + 1));
                let text = &texts.texts[text];
                let mut row = None;
                let mut here = Vec::new();
                for &paths in paths.iter().filter(|&&paths| paths > 1) {
                    for depth in rounds.clone() {
                        let mut pieces = CodedPieces::of_paths(paths);
                        for before in 0..depth {
                            pieces = pieces.below(&intervals(text, place - depth, before));
                        }
                        if pieces.is_one() {
                            continue;
                        }
                        let row = row.get_or_insert_with(|| CodedRow::new(rows.target, rows.draft));
                        let of = |levels: &Vec<f64>| row.transition(&pieces, token, levels);
                        here.push(Here {
                            paths,
                            depth,
                            transitions: levels.iter().map(of).collect(),
                        });
                    }
                }
                // Each row is asked once.
                let _ = entry.set(here);
                Ok(Answers::default())
            };
        if paths.iter().any(|&paths| paths > 1) {
            Texts::read_asking(
                logs,
                Some(texts.temperature),
                &|_| (),
                Some(&question),
                false,
            )?;
        }
        Ok(Some(found))
    }

    /// P(tau >= i) of each of [`coded_rules`] given a stretch of text, i = 1, 2, ..
    pub(in crate::replay::paths) fn survivals(
        &self,
        text: &Text,
        (begin, tokens): (usize, usize),
        paths: usize,
    ) -> impl Iterator<Item = Vec<f64>> {
        let numbers = text.numbers.iter().skip(begin);
        let places: Vec<_> = text.ahead(begin).iter().zip(numbers).take(tokens).collect();
        coded_rules().enumerate().map(move |(rule, _)| {
            let mut patterns = Patterns::start();
            let reached = places.iter().enumerate().map(|(depth, (place, number))| {
                // Where rows are the same for all starts, each has one entry.
                let entry = **number * self.depths + depth.min(self.depths - 1);
                let here = self.here.get(entry).and_then(OnceLock::get);
                let mut here = here.into_iter().flatten();
                let own = here.find(|one| (one.paths, one.depth) == (paths, depth));
                match own {
                    Some(here) => patterns.take(&here.transitions[rule]),
                    None => patterns.take_one(&place.ratio),
                }
                patterns.total()
            });
            reached.collect()
        })
    }
}

/// What a rule of paths by codes keeps of K paths along a text, position by position.
///
/// # Formula
/// P(tau >= d given the text) of a round from every start, by the four patterns of the paths at
/// the ends of a prefix (`docs/theory/paths.md`, "Paths by codes").
///
/// # Example
/// ```
/// use specgap_core::rule::RuleName;
/// use specgap_number::distribution::Rows;
/// use specgap_replay::replay::CodedAlong;
///
/// let (p, q) = ([0.5, 0.5], [0.75, 0.25]);
/// let mut along = CodedAlong::new(RuleName::CODED_RRS, 2, 1)?;
/// for token in [1, 0] {
///     along.take(Rows { target: &p, draft: &q }, token);
/// }
/// // The second path has token 1 with 1/2, and keeps it once the first was refused with 1/2: with
/// // 1/4, and p of the token is 1/2. So often the first round writes both.
/// assert_eq!(along.spread().calls.mean, 1.5);
/// # Ok::<(), String>(())
/// ```
pub struct CodedAlong {
    paths: usize,
    length: usize,
    levels: Vec<f64>,
    /// Rounds that go on, by the start of each.
    going: VecDeque<(usize, CodedPieces<f64>, Patterns<f64>)>,
    /// By start: P(tau >= d), d = 1, 2, ..
    reached: Vec<Vec<f64>>,
}

impl CodedAlong {
    /// Of so many paths of so many tokens.
    ///
    /// # Errors
    /// A rule that is not one of paths by codes; in words.
    pub fn new(rule: RuleName, paths: usize, length: usize) -> Result<Self, String> {
        let levels = coded_levels(rule).ok_or_else(|| {
            let all = coded_names();
            format!("{rule} is no rule of paths by codes: {all} are")
        })?;
        Ok(Self {
            paths,
            length,
            levels,
            going: VecDeque::new(),
            reached: Vec::new(),
        })
    }

    /// The text's next position: its rows and its token.
    ///
    /// # Complexity
    /// O(V) a pass and pattern, for each of the last L starts from which more than one path may
    /// be here.
    pub fn take(&mut self, rows: Rows<'_>, token: usize) {
        let start = self.reached.len();
        self.reached.push(Vec::new());
        if self.length > 0 {
            let pieces = CodedPieces::of_paths(self.paths);
            self.going.push_back((start, pieces, Patterns::start()));
        }
        let row = CodedRow::new(rows.target, rows.draft);
        for (start, pieces, patterns) in &mut self.going {
            if pieces.is_one() {
                patterns.take_one(&row.ratio(token));
            } else {
                patterns.take(&row.transition(pieces, token, &self.levels));
                *pieces = pieces.below(&row.interval(token));
            }
            if let Some(reached) = self.reached.get_mut(*start) {
                reached.push(patterns.total());
            }
        }
        self.going
            .retain(|&(from, ..)| start + 1 < from + self.length);
    }

    /// Mean and variance of calls and drafts, given the text, as
    /// [`moments_of_chain`](crate::replay::moments_of_chain) has them for one path.
    pub fn spread(&self) -> CountMoments<f64> {
        spread(self.reached.len(), |start, left| {
            let levels = self.length.min(left);
            let reached = self.reached.get(start).into_iter().flatten();
            (reached.copied().take(levels).collect(), levels * self.paths)
        })
    }
}
