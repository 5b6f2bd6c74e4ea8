//! K paths that one code each writes, and their verification along a text.
//!
//! Path j has a code, uniform on [j/K, (j+1)/K). The draft's tokens cut the interval of their
//! prefix in proportion to q, in the order of their ids, as arithmetic coding does; a path writes
//! the tokens in whose intervals its code lies. So a path is at a prefix if its code lies in the
//! prefix's interval, and is then uniform on what the interval and [j/K, (j+1)/K) share: its
//! *piece* of the prefix. Pieces inside the interval are whole, and their paths are there for
//! certain; the paths of the first and of the last piece may be elsewhere.
//!
//! A rule takes the paths that are at a prefix for independent drafts, each from its own piece.
//! Given the text, who is at its next prefix is one of four patterns, and
//!
//! ```text
//! P(tau >= d | text) = (0, 0, 0, 1) T_1 T_2 .. T_d (1, 1, 1, 1)'
//! T[s][s'] = P(y is accepted, and s' is there behind it | s is there) / p(y)
//! ```
//!
//! Proofs are in `docs/theory/paths.md`, "Paths by codes".

mod along;
#[cfg(test)]
mod tests;

pub(super) use along::Coded;
pub use along::CodedAlong;

use specgap_core::rule::{InTurn, RuleName, Shared};
use specgap_number::number::Number;

/// Which of the paths at a prefix's two ends are there: 1 for that of the first piece, and 2 for
/// that of the last.
pub(super) const PATTERNS: usize = 4;
/// Both; a path that is alone at its prefix is both.
pub(super) const BOTH: usize = PATTERNS - 1;
const FIRST: usize = 1;
const LAST: usize = 2;

/// T, by the pattern before and the one behind.
pub(super) type Transition<T> = [[T; PATTERNS]; PATTERNS];

/// How the interval of a prefix is cut into the pieces of its paths, in the order of the paths.
#[derive(Clone, Debug, PartialEq)]
pub struct CodedPieces<T> {
    /// The path of the first piece.
    first: usize,
    /// Where the cuts are, as shares of the interval, strictly inside and rising.
    cuts: Vec<T>,
}

impl<T: Number> CodedPieces<T> {
    /// Of K paths where they start: cut at 1/K, .., (K-1)/K.
    pub fn of_paths(paths: usize) -> Self {
        let cut = |j: usize| T::fraction(&j.into(), &paths.into());
        Self {
            first: 0,
            cuts: (1..paths).map(cut).collect(),
        }
    }

    /// Behind a token that has \[from, to) of the interval.
    ///
    /// # Complexity
    /// O(K).
    #[must_use]
    pub fn below(&self, [from, to]: &[T; 2]) -> Self {
        let length = to.minus(from);
        let inside = self.cuts.iter().filter(|&cut| from < cut && cut < to);
        Self {
            first: self.first + self.cuts.iter().filter(|&cut| cut <= from).count(),
            cuts: inside.map(|cut| cut.minus(from).over(&length)).collect(),
        }
    }

    /// Returns which of the pieces, from 0, a path has that is at the prefix.
    pub fn of_path(&self, path: usize) -> usize {
        // A path that only rounding brings here has the nearest.
        path.saturating_sub(self.first).min(self.cuts.len())
    }

    /// Returns whether one path at most can be here.
    pub(super) fn is_one(&self) -> bool {
        self.cuts.is_empty()
    }

    /// The pieces that the first and the last part of [from, to) lie in.
    fn ends(&self, [from, to]: &[T; 2]) -> [usize; 2] {
        [
            self.cuts.iter().filter(|&cut| cut <= from).count(),
            self.cuts.iter().filter(|&cut| cut < to).count(),
        ]
    }
}

/// A position's rows, with the intervals of its tokens.
///
/// # Example
/// ```
/// use specgap_replay::replay::{CodedPieces, CodedRow};
///
/// // Two paths: the first always has token 0, and keeps it with p = 1/2. Else the second is
/// // asked, of which nothing but token 1 is left.
/// let row = CodedRow::new(&[0.5, 0.5], &[0.75, 0.25]);
/// let pieces = CodedPieces::of_paths(2);
/// let step = row.in_turn(&pieces, &[(0, 0), (1, 1)], &[0.0]);
/// assert_eq!((step.ratios, step.residual), (vec![0.5, 1.0], vec![0.0, 0.25]));
/// ```
pub struct CodedRow<T> {
    p: Vec<T>,
    q: Vec<T>,
    /// Where each token's interval begins, and 1.
    begins: Vec<T>,
}

/// A token's interval in a row that sums to anything.
///
/// # Complexity
/// O(V).
pub(super) fn interval_of(draft: &[f64], token: usize) -> [f64; 2] {
    CodedRow::new(draft, draft).interval(token)
}

/// The law of a path's next token on its piece, or what is left of it.
#[derive(Clone, Debug)]
pub struct PieceLaw<T> {
    /// The first of its tokens.
    pub first: usize,
    /// What each from that one on has of the piece, as shares of the prefix's interval.
    pub masses: Vec<T>,
}

impl<T: Number> PieceLaw<T> {
    fn of(&self, token: usize) -> T {
        let place = token.checked_sub(self.first);
        let mass = place.and_then(|place| self.masses.get(place));
        mass.cloned().unwrap_or_else(T::zero)
    }

    fn total(&self) -> T {
        T::total(&self.masses)
    }
}

impl<T: Number> CodedRow<T> {
    /// Of rows that sum to anything.
    ///
    /// # Complexity
    /// O(V).
    pub fn new(target: &[T], draft: &[T]) -> Self {
        let over = |row: &[T]| -> Vec<T> {
            let total = T::total(row);
            row.iter().map(|mass| mass.over(&total)).collect()
        };
        let (p, q) = (over(target), over(draft));
        let mut begins = Vec::with_capacity(q.len() + 1);
        let mut sum = T::zero();
        for mass in &q {
            begins.push(sum.clone());
            sum.gain(mass);
        }
        // What rounding leaves of the end belongs to the last tokens.
        let begins = begins.into_iter().map(|begin| begin.smaller(&T::one()));
        let begins = begins.chain(std::iter::once(T::one())).collect();
        Self { p, q, begins }
    }

    /// A token's interval, as shares of its prefix's.
    pub fn interval(&self, token: usize) -> [T; 2] {
        [token, token + 1].map(|at| self.begins.get(at).cloned().unwrap_or_else(T::one))
    }

    /// q/p of a token; 0 where p is.
    fn ratio(&self, token: usize) -> T {
        match (self.p.get(token), self.q.get(token)) {
            (Some(p), Some(q)) if !p.is_nil() => q.over(p),
            _ => T::zero(),
        }
    }

    /// The laws of the next tokens, piece by piece.
    ///
    /// # Complexity
    /// O(V + K log V).
    pub fn laws(&self, pieces: &CodedPieces<T>) -> Vec<PieceLaw<T>> {
        let mut ends: Vec<T> = vec![T::zero()];
        ends.extend(pieces.cuts.iter().cloned());
        ends.push(T::one());
        let piece = |ends: &[T]| {
            let [from, to] = ends else {
                return PieceLaw {
                    first: 0,
                    masses: Vec::new(),
                };
            };
            let first = self.begins.partition_point(|begin| begin <= from);
            let first = first.saturating_sub(1);
            let behind = self.begins.partition_point(|begin| begin < to);
            let of = |token: usize| {
                let [begin, end] = self.interval(token);
                if *from <= begin && end <= *to {
                    return self.q.get(token).cloned().unwrap_or_else(T::zero);
                }
                let begin = if begin < *from { from } else { &begin };
                end.smaller(to).excess_over(begin)
            };
            PieceLaw {
                first,
                masses: (first..behind.min(self.q.len())).map(of).collect(),
            }
        };
        ends.windows(2).map(piece).collect()
    }

    /// T at a text's token: of recursive rejection for the one level 0, else of level passes.
    ///
    /// # Formula
    /// R is what the target has not given out, Q_l what is left of the law of path l on its
    /// piece, s_l its sum, S the probability that nothing is accepted yet. A pass at level t
    /// goes through the paths that are there: with k = S/s_l,
    ///
    /// ```text
    /// e(x) = clip((R(x)/k - t Q_l(x))/(1 - t), 0, Q_l(x)),   R -= k e,  Q_l -= e,  S = k s_l
    /// ```
    ///
    /// k e(y) is the probability that y is accepted there. Another path has y then with
    /// probability Q(y)/s, independently, if it is there: that settles the pattern behind y.
    ///
    /// # Exactness
    /// Exact in rationals; in `f64` sums of terms that are not negative.
    ///
    /// # Complexity
    /// O(V) a pass and pattern.
    pub(super) fn transition(
        &self,
        pieces: &CodedPieces<T>,
        token: usize,
        levels: &[T],
    ) -> Transition<T> {
        let nothing = || std::array::from_fn(|_| T::zero());
        let mut all: Transition<T> = std::array::from_fn(|_| nothing());
        let interval = self.interval(token);
        let p = self.p.get(token).cloned().unwrap_or_else(T::zero);
        if p.is_nil() || interval[0] >= interval[1] {
            return all;
        }
        let ends = pieces.ends(&interval);
        let laws = self.laws(pieces);
        let last = laws.len().saturating_sub(1);
        for (pattern, row) in all.iter_mut().enumerate() {
            let is_there = |path: usize| {
                (path > 0 || pattern & FIRST > 0) && (path < last || pattern & LAST > 0)
            };
            let there: Vec<usize> = (0..laws.len()).filter(|&path| is_there(path)).collect();
            if !there.is_empty() {
                *row = self.accepted_by(&laws, &there, (token, &ends), levels);
                for mass in row {
                    *mass = mass.over(&p);
                }
            }
        }
        all
    }

    /// P(the token is accepted, and each pattern is there behind it), these paths being there.
    fn accepted_by(
        &self,
        laws: &[PieceLaw<T>],
        there: &[usize],
        (token, ends): (usize, &[usize; 2]),
        levels: &[T],
    ) -> [T; PATTERNS] {
        let mut passes = Passes::new(&self.p, laws, there);
        let mut found: [T; PATTERNS] = std::array::from_fn(|_| T::zero());
        for level in levels {
            for at in 0..there.len() {
                let Some(price) = passes.price(at) else {
                    return found;
                };
                let before: Vec<T> = ends
                    .iter()
                    .map(|end| match there.iter().position(|path| path == end) {
                        Some(other) if other == at => T::one(),
                        Some(other) => passes.chance(other, token),
                        None => T::zero(),
                    })
                    .collect();
                let given = passes.pass((at, &price), level, token).times(&price);
                if ends[0] == ends[1] {
                    // One path alone has parts of the token.
                    found[BOTH].gain(&given);
                    continue;
                }
                for (pattern, found) in found.iter_mut().enumerate() {
                    let [first, last] = [FIRST, LAST].map(|bit| pattern & bit > 0);
                    let share = |is_there: bool, chance: &T| match is_there {
                        true => chance.clone(),
                        false => chance.complement(),
                    };
                    let chance = share(first, &before[0]).times(&share(last, &before[1]));
                    found.gain(&given.times(&chance));
                }
            }
        }
        found
    }
}

/// What is left of the target and of the paths that are at a prefix, while passes go over them.
struct Passes<T> {
    /// R.
    target: Vec<T>,
    /// Q_l and s_l.
    left: Vec<PieceLaw<T>>,
    sums: Vec<T>,
    /// S.
    nothing: T,
}

impl<T: Number> Passes<T> {
    /// Before all: the laws of some pieces, one a path that is there.
    fn new(target: &[T], laws: &[PieceLaw<T>], there: &[usize]) -> Self {
        let left: Vec<PieceLaw<T>> = there.iter().map(|&piece| laws[piece].clone()).collect();
        Self {
            target: target.to_vec(),
            sums: left.iter().map(PieceLaw::total).collect(),
            left,
            nothing: T::one(),
        }
    }

    /// k of a path; none where nothing can be accepted any more.
    fn price(&self, at: usize) -> Option<T> {
        let sum = &self.sums[at];
        (!self.nothing.is_nil() && !sum.is_nil()).then(|| self.nothing.over(sum))
    }

    /// P(the path has the token), nothing being accepted yet.
    fn chance(&self, at: usize, token: usize) -> T {
        let mass = self.left[at].of(token);
        mass.over(&self.sums[at]).smaller(&T::one())
    }

    /// A pass over a path, at its price: e of a token.
    fn pass(&mut self, (at, price): (usize, &T), level: &T, token: usize) -> T {
        let over = T::one().over(&level.complement());
        let own = &mut self.left[at];
        let mut given = T::zero();
        let first = own.first;
        let rest = self.target.get_mut(first..).unwrap_or(&mut []);
        for (place, (mass, rest)) in own.masses.iter_mut().zip(rest).enumerate() {
            let more = rest.over(price).excess_over(&level.times(mass));
            let take = more.times(&over).smaller(mass);
            *rest = rest.excess_over(&take.times(price));
            *mass = mass.minus(&take);
            if first + place == token {
                given = take;
            }
        }
        self.sums[at] = own.total();
        self.nothing = price.times(&self.sums[at]);
        given
    }
}

impl CodedRow<f64> {
    /// Returns what is kept of the tokens of paths that are at a prefix: each is a path's number
    /// and its token. They are asked in turn, level by level, so that entry l n + i of the ratios
    /// is what the pass at level l keeps of path i of n once all before it were refused.
    ///
    /// # Formula
    /// With R what the target has not given out, Q what is left of the path's law on its piece, s
    /// its sum and k = P(nothing is accepted yet)/s, a pass at level t takes
    ///
    /// ```text
    /// e(x) = clip((R(x)/k - t Q(x))/(1 - t), 0, Q(x)),   R -= k e,  Q -= e
    /// ```
    ///
    /// and keeps the token x with e(x)/Q(x), Q being that before the pass. The residual is R at
    /// last, which does not sum to 1.
    ///
    /// # Exactness
    /// As rounding leaves it; a token of p = 0 is never kept and has no residual.
    ///
    /// # Complexity
    /// O(V) a pass.
    pub fn in_turn(
        &self,
        pieces: &CodedPieces<f64>,
        drafts: &[(usize, usize)],
        levels: &[f64],
    ) -> InTurn {
        let there: Vec<usize> = drafts
            .iter()
            .map(|&(path, _)| pieces.of_path(path))
            .collect();
        let mut passes = Passes::new(&self.p, &self.laws(pieces), &there);
        let mut ratios = Vec::with_capacity(levels.len() * drafts.len());
        let asked = levels
            .iter()
            .flat_map(|level| (0..drafts.len()).map(move |at| (level, at)));
        for ((level, at), &(_, token)) in asked.zip(drafts.iter().cycle()) {
            let Some(price) = passes.price(at) else { break };
            let offered = passes.left[at].of(token);
            let kept = passes.pass((at, &price), level, token);
            ratios.push(if offered > 0.0 { kept / offered } else { 0.0 });
        }
        ratios.resize(levels.len() * drafts.len(), 0.0);
        InTurn {
            ratios,
            residual: passes.target,
        }
    }
}

/// The levels at which a rule of paths by codes goes over them, falling to 0; none of other
/// rules.
pub fn coded_levels(rule: RuleName) -> Option<Vec<f64>> {
    let (_, tenths) = coded_rules().find(|(coded, _)| *coded == rule)?;
    Some(levels(tenths))
}

/// The rules of paths by codes, each with its levels in tenths.
pub(super) fn coded_rules() -> impl Iterator<Item = (RuleName, &'static [u32])> {
    let all = RuleName::ALL.into_iter();
    all.filter_map(|rule| match rule.entry().shared {
        Some(Shared::Coded { tenths, .. }) => Some((rule, tenths)),
        _ => None,
    })
}

/// Their names.
pub(super) fn coded_names() -> String {
    let names: Vec<&str> = coded_rules().map(|(rule, _)| rule.as_str()).collect();
    names.join(" and ")
}

pub(super) fn levels<T: Number>(tenths: &[u32]) -> Vec<T> {
    let tenths = tenths.iter();
    tenths
        .map(|&tenths| T::fraction(&tenths.into(), &10u32.into()))
        .collect()
}

/// P(the paths of a round are at the text's prefixes), prefix by prefix.
#[derive(Clone, Debug)]
pub(super) struct Patterns<T>([T; PATTERNS]);

impl<T: Number> Patterns<T> {
    /// Where a round starts.
    pub(super) fn start() -> Self {
        let mut all = std::array::from_fn(|_| T::zero());
        all[BOTH] = T::one();
        Self(all)
    }

    /// Goes on by a token.
    pub(super) fn take(&mut self, transition: &Transition<T>) {
        let mut next: [T; PATTERNS] = std::array::from_fn(|_| T::zero());
        for (mass, row) in self.0.iter().zip(transition) {
            for (sum, share) in next.iter_mut().zip(row) {
                sum.gain(&mass.times(share));
            }
        }
        self.0 = next;
    }

    /// The same where one path at most is there: it keeps the token with min(1, q/p).
    pub(super) fn take_one(&mut self, ratio: &T) {
        let mut next: [T; PATTERNS] = std::array::from_fn(|_| T::zero());
        next[BOTH] = self.total().times(&ratio.smaller(&T::one()));
        self.0 = next;
    }

    /// P(tau is at least as large as the prefix is long).
    pub(super) fn total(&self) -> T {
        T::total(&self.0)
    }
}
