//! One arithmetic for two worlds: `f64` and exact rationals.

use crate::distribution::{Distribution, Rational, TwoFloat, ratio};
use num_bigint::BigUint;
use num_traits::{One, Zero};

/// A probability, as `f64` or as an exact rational: what an enumeration of
/// tuples multiplies and divides.
pub(crate) trait Mass: Clone + std::fmt::Debug + Send + Sync {
    fn zero_mass() -> Self;
    fn differs(&self, other: &Self) -> bool;
    fn one_mass() -> Self;
    fn add(&mut self, other: &Self);
    fn times(&self, other: &Self) -> Self;
    fn over(&self, other: &Self) -> Self;
    /// This less `other`, and not below zero.
    fn left_after(&self, other: &Self) -> Self;
    fn row(distribution: &Distribution) -> Vec<Self>;
    fn from_count(count: u64) -> Self;
    /// suffix[k] = sum of the values from k on, less the listed values; the
    /// caller sees to it that this does not cancel.
    fn rest(suffix: &Self::Sum, drawn: &[Self]) -> Self;
    /// A sum precise enough to subtract from.
    type Sum: Clone + std::fmt::Debug + Send + Sync;
    fn suffix_sums(values: &[Self]) -> Vec<Self::Sum>;
}

impl Mass for f64 {
    type Sum = TwoFloat;

    fn zero_mass() -> Self {
        0.0
    }
    fn differs(&self, other: &Self) -> bool {
        self != other
    }
    fn one_mass() -> Self {
        1.0
    }
    fn add(&mut self, other: &Self) {
        *self += other;
    }
    fn times(&self, other: &Self) -> Self {
        self * other
    }
    fn over(&self, other: &Self) -> Self {
        self / other
    }
    fn left_after(&self, other: &Self) -> Self {
        (self - other).max(0.0)
    }
    fn row(distribution: &Distribution) -> Vec<Self> {
        distribution.probabilities().to_vec()
    }
    fn from_count(count: u64) -> Self {
        count as f64
    }
    fn rest(suffix: &TwoFloat, drawn: &[f64]) -> f64 {
        drawn
            .iter()
            .fold(*suffix, |rest, &q| rest - TwoFloat::from(q))
            .value()
    }
    fn suffix_sums(values: &[f64]) -> Vec<TwoFloat> {
        suffixes(values, TwoFloat::ZERO, |sum, &value| {
            sum + TwoFloat::from(value)
        })
    }
}

impl Mass for Rational {
    type Sum = Rational;

    fn zero_mass() -> Self {
        Self::zero()
    }
    fn differs(&self, other: &Self) -> bool {
        self != other
    }
    fn one_mass() -> Self {
        Self::one()
    }
    fn add(&mut self, other: &Self) {
        *self += other;
    }
    fn times(&self, other: &Self) -> Self {
        self * other
    }
    fn over(&self, other: &Self) -> Self {
        self / other
    }
    fn left_after(&self, other: &Self) -> Self {
        if self > other {
            self - other
        } else {
            Self::zero()
        }
    }
    fn row(distribution: &Distribution) -> Vec<Self> {
        let exact = distribution.exact();
        exact
            .weights
            .iter()
            .map(|weight| ratio(weight, &exact.total))
            .collect()
    }
    fn from_count(count: u64) -> Self {
        Self::from_integer(count.into())
    }
    fn rest(suffix: &Self, drawn: &[Self]) -> Self {
        drawn.iter().fold(suffix.clone(), |rest, q| rest - q)
    }
    fn suffix_sums(values: &[Self]) -> Vec<Self> {
        suffixes(values, Self::zero(), |sum, value| sum + value)
    }
}

fn suffixes<T, S: Clone>(values: &[T], zero: S, add: impl Fn(S, &T) -> S) -> Vec<S> {
    let mut sums = vec![zero; values.len() + 1];
    for index in (0..values.len()).rev() {
        sums[index] = add(sums[index + 1].clone(), &values[index]);
    }
    sums
}

/// Unnormalised weights under addition and multiplication alone: `f64`, or
/// unbounded integers.
pub(crate) trait Weight: Clone {
    fn nil() -> Self;
    fn unit() -> Self;
    fn is_nil(&self) -> bool;
    fn add(&mut self, other: &Self);
    fn times(&self, other: &Self) -> Self;
}

impl Weight for f64 {
    fn nil() -> Self {
        0.0
    }
    fn unit() -> Self {
        1.0
    }
    fn is_nil(&self) -> bool {
        *self == 0.0
    }
    fn add(&mut self, other: &Self) {
        *self += other;
    }
    fn times(&self, other: &Self) -> Self {
        self * other
    }
}

impl Weight for BigUint {
    fn nil() -> Self {
        Zero::zero()
    }
    fn unit() -> Self {
        One::one()
    }
    fn is_nil(&self) -> bool {
        Zero::is_zero(self)
    }
    fn add(&mut self, other: &Self) {
        *self += other;
    }
    fn times(&self, other: &Self) -> Self {
        self * other
    }
}

/// P(the draws hit exactly the tokens of a set) up to a common factor, for
/// independent draws with the given rows of weights restricted to the set:
/// `rows[t][x]` is the weight of the set's x-th token at draw t.
///
/// Sums over the subsets that are covered after t draws: all terms are
/// non-negative, so nothing cancels. O(n 2^k k) for a set of k tokens.
pub(crate) fn surjections<W: Weight>(rows: &[Vec<W>]) -> W {
    let Some(first) = rows.first() else {
        return W::unit();
    };
    let size = first.len();
    let mut covered = vec![W::nil(); 1 << size];
    covered[0] = W::unit();
    for row in rows {
        let mut next = vec![W::nil(); 1 << size];
        for (mask, weight) in covered.iter().enumerate() {
            if weight.is_nil() {
                continue;
            }
            for (token, factor) in row.iter().enumerate() {
                next[mask | 1 << token].add(&weight.times(factor));
            }
        }
        covered = next;
    }
    covered.pop().unwrap_or_else(W::nil)
}
