//! Coded paths along the texts of logs.

use super::{CodedRow, Patterns, Pieces, Transition, levels};
use crate::replay::ReplayError;
use crate::replay::read::{Text, Texts};
use crate::replay::rows::Whose;
use specgap_log::log::Log;
use specgap_number::distribution::Rows;
use std::sync::OnceLock;

/// The rules of coded paths.
pub(in crate::replay::paths) const CODED: [&str; 2] = ["coded-rrs", "coded-level-4"];

/// What a position says of a round: K, how many tokens before it the round started, and T of
/// each rule. Rounds of which one path at most can be here need no more than q/p.
struct Here {
    paths: usize,
    depth: usize,
    transitions: [Transition<f64>; CODED.len()],
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
        let levels = levels::<f64>();
        let depths = texts.depths();
        let found = Self {
            here: (0..by_number.len() * depths)
                .map(|_| OnceLock::new())
                .collect(),
            depths,
        };
        let question =
            |_: &mut specgap_row::row::Workspace, rows: Rows<'_>, token: usize, whose: Whose| {
                let number = whose.number as usize;
                let place = by_number.get(number).copied().flatten();
                let entry = found.here.get(number * depths + whose.ahead);
                let Some((Place { text, place }, entry)) = place.zip(entry) else {
                    return Ok(Vec::new());
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
                        let mut pieces = Pieces::of_paths(paths);
                        for before in 0..depth {
                            pieces = pieces.below(&intervals(text, place - depth, before));
                        }
                        if pieces.is_one() {
                            continue;
                        }
                        let row = row.get_or_insert_with(|| CodedRow::new(rows.target, rows.draft));
                        let transitions = [0, 1].map(|rule: usize| {
                            let levels: &[f64] = &levels[rule];
                            row.transition(&pieces, token, levels)
                        });
                        here.push(Here {
                            paths,
                            depth,
                            transitions,
                        });
                    }
                }
                // Each row is asked once.
                let _ = entry.set(here);
                Ok(Vec::new())
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

    /// P(tau >= i) of each rule given a stretch of text, i = 1, 2, ..
    pub(in crate::replay::paths) fn survivals(
        &self,
        text: &Text,
        (begin, tokens): (usize, usize),
        paths: usize,
    ) -> [Vec<f64>; CODED.len()] {
        let numbers = text.numbers.iter().skip(begin);
        let places: Vec<_> = text.ahead(begin).iter().zip(numbers).take(tokens).collect();
        [0, 1].map(|rule: usize| {
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
