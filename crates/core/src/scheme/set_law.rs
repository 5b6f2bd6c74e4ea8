//! The law of the set A(X) of distinct draft tokens.

use num_bigint::BigUint;
use specgap_number::distribution::Rational;

/// The set of some tokens: each once, ascending.
pub(super) fn set_of<T: Ord>(tokens: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut set: Vec<T> = tokens.into_iter().collect();
    set.sort_unstable();
    set.dedup();
    set
}

/// A list of token sets, each strictly ascending, stored end to end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetFamily {
    ends: Vec<usize>,
    tokens: Vec<u32>,
}

impl SetFamily {
    /// An empty family.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a set; the caller gives it strictly ascending.
    pub fn push(&mut self, set: impl IntoIterator<Item = u32>) {
        self.tokens.extend(set);
        self.ends.push(self.tokens.len());
    }

    /// Number of sets.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if there are no sets.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The range that a set's tokens take in [`Self::tokens`].
    pub fn span(&self, index: usize) -> std::ops::Range<usize> {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        start..self.ends[index]
    }

    /// The tokens of one set.
    pub fn set(&self, index: usize) -> &[u32] {
        &self.tokens[self.span(index)]
    }

    /// All tokens of all sets, end to end.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// The sets in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u32]> {
        (0..self.len()).map(|index| self.set(index))
    }
}

/// Sets as [`SetFamily::push`] takes them, so that pairs of a set and its mass can be unzipped.
impl<S: IntoIterator<Item = u32>> Extend<S> for SetFamily {
    fn extend<I: IntoIterator<Item = S>>(&mut self, sets: I) {
        sets.into_iter().for_each(|set| self.push(set));
    }
}

/// Absolute error that a product of tiny probabilities may have on top of its
/// relative error, where it leaves the range of `f64`.
pub const UNDERFLOW: f64 = 1e-290;

/// Law of A(X) in `f64`.
#[derive(Clone, Debug)]
pub struct SetLaw {
    /// The sets of positive probability, all different.
    pub sets: SetFamily,
    /// Their probabilities, in the same order.
    pub probabilities: Vec<f64>,
    /// Bound on the relative error of each probability, up to [`UNDERFLOW`].
    pub relative_error: f64,
}

/// Law of A(X) as integers: set k has probability `weights[k] / total`, exactly.
#[derive(Clone, Debug)]
pub struct ExactSetLaw {
    /// The sets of positive probability, all different.
    pub sets: SetFamily,
    /// Their numerators, in the same order.
    pub weights: Vec<BigUint>,
    /// Common denominator, equal to the sum of the numerators.
    pub total: BigUint,
}

impl SetLaw {
    /// Makes one from sets and their probabilities.
    pub(super) fn of((sets, probabilities): (SetFamily, Vec<f64>), relative_error: f64) -> Self {
        Self {
            sets,
            probabilities,
            relative_error,
        }
    }
}

impl ExactSetLaw {
    /// Makes one from sets and their weights.
    pub(super) fn of((sets, weights): (SetFamily, Vec<BigUint>), total: BigUint) -> Self {
        Self {
            sets,
            weights,
            total,
        }
    }

    /// Makes one from exact probabilities that sum to one.
    pub(super) fn from_probabilities((sets, masses): (SetFamily, Vec<Rational>)) -> Self {
        let (weights, total) = specgap_number::distribution::integer_weights(&masses);
        Self::of((sets, weights), total)
    }
}
