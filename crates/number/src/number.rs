//! One arithmetic for two worlds: `f64` and exact rationals.

use crate::distribution::{
    Distribution, Rational, TwoFloat, difference, product, quotient, ratio, round_nearest, sum,
};
use num_bigint::BigUint;
use num_traits::{One, Zero};
use std::fmt::Debug;

mod sealed {
    pub trait Sealed {}
    impl Sealed for f64 {}
    impl Sealed for super::Rational {}
}

/// A running sum whose rounding does not grow with the number of terms, precise
/// enough to subtract from.
pub trait RunningSum<T>: Clone + Debug + Default + Send + Sync {
    /// Adds a term.
    fn add(&mut self, term: &T);
    /// Takes a term away.
    fn subtract(&mut self, term: &T);
    /// Adds another running sum.
    fn merge(&mut self, other: &Self);
    /// The sum.
    fn value(&self) -> T;
}

impl RunningSum<f64> for TwoFloat {
    fn add(&mut self, term: &f64) {
        *self += *term;
    }
    fn subtract(&mut self, term: &f64) {
        *self += -*term;
    }
    fn merge(&mut self, other: &Self) {
        *self += *other;
    }
    fn value(&self) -> f64 {
        Self::value(*self)
    }
}

impl RunningSum<Self> for Rational {
    fn add(&mut self, term: &Self) {
        self.gain(term);
    }
    fn subtract(&mut self, term: &Self) {
        *self = difference(self, term);
    }
    fn merge(&mut self, other: &Self) {
        self.gain(other);
    }
    fn value(&self) -> Self {
        self.clone()
    }
}

/// What laws are computed in: `f64`, or an exact [`Rational`].
///
/// Everything that is a rational function of the inputs is written once over
/// this trait and computed in either. In `f64` a law is good to a few units of
/// the last place per operation; in rationals it is exact and "lossless" means
/// a total variation of 0.
///
/// ```
/// use specgap_number::distribution::{Rational, ratio};
/// use specgap_number::number::Number;
///
/// fn two_coins<T: Number>(heads: &T) -> T {
///     heads.times(&heads.complement()).plus(&heads.complement().times(heads))
/// }
/// assert_eq!(two_coins(&0.25), 0.375);
/// let quarter: Rational = ratio(&1u32.into(), &4u32.into());
/// assert_eq!(two_coins(&quarter), ratio(&3u32.into(), &8u32.into()));
/// ```
pub trait Number: sealed::Sealed + Clone + Debug + PartialOrd + Send + Sync + 'static {
    /// True for [`Rational`].
    const EXACT: bool;
    /// What long sums are collected in: two words for `f64`.
    type Sum: RunningSum<Self>;
    /// 0.
    fn zero() -> Self;
    /// 1.
    fn one() -> Self;
    /// numerator / denominator; the denominator is not 0.
    fn fraction(numerator: &BigUint, denominator: &BigUint) -> Self;
    /// A row of a distribution.
    fn row(distribution: &Distribution) -> Vec<Self>;
    /// Sum.
    fn plus(&self, other: &Self) -> Self;
    /// Difference.
    fn minus(&self, other: &Self) -> Self;
    /// Product.
    fn times(&self, other: &Self) -> Self;
    /// Quotient; the divisor is not 0.
    fn over(&self, divisor: &Self) -> Self;
    /// Adds in place.
    fn gain(&mut self, other: &Self);
    /// The nearest `f64`.
    fn to_f64(&self) -> f64;

    /// Tells whether this is 0.
    fn is_nil(&self) -> bool {
        *self == Self::zero()
    }

    /// The larger of 0 and self - other.
    fn excess_over(&self, other: &Self) -> Self {
        if self > other {
            self.minus(other)
        } else {
            Self::zero()
        }
    }

    /// 1 - self, for a probability.
    fn complement(&self) -> Self {
        Self::one().excess_over(self)
    }

    /// The smaller of two.
    fn smaller(&self, other: &Self) -> Self {
        if other < self { other } else { self }.clone()
    }

    /// self^exponent, by repeated multiplication.
    fn power(&self, exponent: usize) -> Self {
        let (mut result, mut base, mut left) = (Self::one(), self.clone(), exponent);
        while left > 0 {
            if left & 1 == 1 {
                result = result.times(&base);
            }
            left >>= 1;
            if left > 0 {
                base = base.times(&base);
            }
        }
        result
    }

    /// 1 + x + ... + x^(count-1), which is (1 - x^count)/(1 - x) without the
    /// cancellation.
    fn geometric_sum(&self, count: usize) -> Self {
        let (mut sum, mut power) = (Self::Sum::default(), Self::one());
        for _ in 0..count {
            sum.add(&power);
            power = power.times(self);
        }
        sum.value()
    }

    /// Sum of all.
    fn total<'a>(terms: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut sum = Self::Sum::default();
        for term in terms {
            sum.add(term);
        }
        sum.value()
    }
}

impl Number for f64 {
    const EXACT: bool = false;
    type Sum = TwoFloat;
    fn zero() -> Self {
        0.0
    }
    fn one() -> Self {
        1.0
    }
    fn fraction(numerator: &BigUint, denominator: &BigUint) -> Self {
        round_nearest(&ratio(numerator, denominator))
    }
    fn row(distribution: &Distribution) -> Vec<Self> {
        distribution.probabilities().to_vec()
    }
    fn plus(&self, other: &Self) -> Self {
        self + other
    }
    fn minus(&self, other: &Self) -> Self {
        self - other
    }
    fn times(&self, other: &Self) -> Self {
        self * other
    }
    fn over(&self, divisor: &Self) -> Self {
        self / divisor
    }
    fn gain(&mut self, other: &Self) {
        *self += other;
    }
    fn to_f64(&self) -> f64 {
        *self
    }
    fn excess_over(&self, other: &Self) -> Self {
        // No branch, so that rows are done several entries at a time.
        (self - other).max(0.0)
    }
}

impl Number for Rational {
    const EXACT: bool = true;
    type Sum = Self;
    fn zero() -> Self {
        Zero::zero()
    }
    fn one() -> Self {
        One::one()
    }
    fn fraction(numerator: &BigUint, denominator: &BigUint) -> Self {
        ratio(numerator, denominator)
    }
    fn row(distribution: &Distribution) -> Vec<Self> {
        let exact = distribution.exact();
        (0..distribution.vocab())
            .map(|token| exact.probability(token))
            .collect()
    }
    fn plus(&self, other: &Self) -> Self {
        sum(self, other)
    }
    fn minus(&self, other: &Self) -> Self {
        difference(self, other)
    }
    fn times(&self, other: &Self) -> Self {
        product(self, other)
    }
    fn over(&self, divisor: &Self) -> Self {
        quotient(self, divisor)
    }
    fn gain(&mut self, other: &Self) {
        if !other.is_zero() {
            *self = sum(self, other);
        }
    }
    fn to_f64(&self) -> f64 {
        round_nearest(self)
    }
}

/// The row divided by its sum; `None` if that is zero.
pub fn normalised<T: Number>(row: &[T]) -> Option<Vec<T>> {
    let total = T::total(row);
    (!total.is_nil()).then(|| row.iter().map(|mass| mass.over(&total)).collect())
}
