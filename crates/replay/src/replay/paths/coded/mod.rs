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

pub(super) use along::{CODED, Coded};

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

/// How the interval of a prefix is cut into the pieces of its paths.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pieces<T> {
    /// Where the cuts are, as shares of the interval, strictly inside and rising.
    cuts: Vec<T>,
}

impl<T: Number> Pieces<T> {
    /// Of K paths where they start.
    pub(super) fn of_paths(paths: usize) -> Self {
        let cut = |j: usize| T::fraction(&j.into(), &paths.into());
        Self {
            cuts: (1..paths).map(cut).collect(),
        }
    }

    /// Behind a token that has [from, to) of the interval.
    pub(super) fn below(&self, [from, to]: &[T; 2]) -> Self {
        let length = to.minus(from);
        let inside = self.cuts.iter().filter(|&cut| from < cut && cut < to);
        Self {
            cuts: inside.map(|cut| cut.minus(from).over(&length)).collect(),
        }
    }

    /// Whether one path at most can be here.
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
pub(super) struct CodedRow<T> {
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

/// What is left of a path's law: the first of its tokens, and what each has of the piece.
#[derive(Clone)]
struct Left<T> {
    first: usize,
    masses: Vec<T>,
}

impl<T: Number> Left<T> {
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
    pub(super) fn new(target: &[T], draft: &[T]) -> Self {
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

    /// A token's interval.
    pub(super) fn interval(&self, token: usize) -> [T; 2] {
        [token, token + 1].map(|at| self.begins.get(at).cloned().unwrap_or_else(T::one))
    }

    /// What every piece has of every token.
    fn laws(&self, pieces: &Pieces<T>) -> Vec<Left<T>> {
        let mut ends: Vec<T> = vec![T::zero()];
        ends.extend(pieces.cuts.iter().cloned());
        ends.push(T::one());
        let piece = |ends: &[T]| {
            let [from, to] = ends else {
                return Left {
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
            Left {
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
        pieces: &Pieces<T>,
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
        laws: &[Left<T>],
        there: &[usize],
        (token, ends): (usize, &[usize; 2]),
        levels: &[T],
    ) -> [T; PATTERNS] {
        let mut target = self.p.clone();
        let mut left: Vec<Left<T>> = there.iter().map(|&path| laws[path].clone()).collect();
        let mut sums: Vec<T> = left.iter().map(Left::total).collect();
        let mut nothing = T::one();
        let mut found: [T; PATTERNS] = std::array::from_fn(|_| T::zero());
        for level in levels {
            let over = T::one().over(&level.complement());
            for at in 0..there.len() {
                if nothing.is_nil() || sums[at].is_nil() {
                    return found;
                }
                let price = nothing.over(&sums[at]);
                let before: Vec<T> = ends
                    .iter()
                    .map(|end| match there.iter().position(|path| path == end) {
                        Some(other) if other == at => T::one(),
                        Some(other) => left[other].of(token).over(&sums[other]).smaller(&T::one()),
                        None => T::zero(),
                    })
                    .collect();
                let own = &mut left[at];
                let mut given = T::zero();
                let first = own.first;
                let rest = target.get_mut(first..).unwrap_or(&mut []);
                for (place, (mass, rest)) in own.masses.iter_mut().zip(rest).enumerate() {
                    let more = rest.over(&price).excess_over(&level.times(mass));
                    let take = more.times(&over).smaller(mass);
                    *rest = rest.excess_over(&take.times(&price));
                    *mass = mass.minus(&take);
                    if first + place == token {
                        given = take.times(&price);
                    }
                }
                sums[at] = own.total();
                nothing = price.times(&sums[at]);
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

/// Levels of the rules of [`CODED`]: recursive rejection, and `level-4`.
pub(super) fn levels<T: Number>() -> [Vec<T>; 2] {
    let of = |tenths: u32| T::fraction(&tenths.into(), &10u32.into());
    [vec![of(0)], [8, 5, 2, 0].map(of).to_vec()]
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
