//! Compensated and double-double summation.
//!
//! Probabilities of a peaked distribution span hundreds of orders of
//! magnitude, and every optimum here is a difference of sums that are close to
//! one. Plain summation would lose the digits that the answer consists of.

use std::ops::{Add, Mul, Sub};

/// A sum carried in two `f64` words: `high + low`, with `|low| <= ulp(high)/2`.
///
/// # Exactness
/// Adding an `f64` has a relative error of at most 2^-104 of the running
/// magnitude (Knuth's two-sum, renormalised), so a sum of a million
/// non-negative terms is good to about 1e-25 relative before it is rounded.
///
/// # Example
/// ```
/// use specgap::distribution::TwoFloat;
/// let mut sum = TwoFloat::ZERO;
/// for term in [1.0, 1e-20, -1.0] {
///     sum += term;
/// }
/// assert_eq!(sum.value(), 1e-20);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TwoFloat {
    high: f64,
    low: f64,
}

fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_seen = sum - a;
    (sum, (a - (sum - b_seen)) + (b - b_seen))
}

fn quick_two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    (sum, b - (sum - a))
}

impl TwoFloat {
    /// The number 0.
    pub const ZERO: Self = Self {
        high: 0.0,
        low: 0.0,
    };

    /// The number 1.
    pub const ONE: Self = Self {
        high: 1.0,
        low: 0.0,
    };

    /// The nearest `f64`.
    pub fn value(self) -> f64 {
        self.high + self.low
    }

    /// The leading and the trailing word.
    pub fn words(self) -> (f64, f64) {
        (self.high, self.low)
    }

    /// The exact product of two `f64`, up to underflow.
    pub fn product(a: f64, b: f64) -> Self {
        let high = a * b;
        Self {
            high,
            low: a.mul_add(b, -high),
        }
    }

    /// This number divided by an `f64`, relative error about 2^-100.
    pub fn divided_by(self, divisor: f64) -> Self {
        let first = self.high / divisor;
        let rest = self - Self::product(first, divisor);
        let second = rest.value() / divisor;
        let (high, low) = quick_two_sum(first, second);
        Self { high, low }
    }
}

impl From<f64> for TwoFloat {
    fn from(value: f64) -> Self {
        Self {
            high: value,
            low: 0.0,
        }
    }
}

impl Add for TwoFloat {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let (high, error) = two_sum(self.high, other.high);
        let (low, low_error) = two_sum(self.low, other.low);
        let (high, error) = quick_two_sum(high, error + low);
        let (high, low) = quick_two_sum(high, error + low_error);
        Self { high, low }
    }
}

impl Sub for TwoFloat {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + Self {
            high: -other.high,
            low: -other.low,
        }
    }
}

impl Mul<f64> for TwoFloat {
    type Output = Self;
    fn mul(self, factor: f64) -> Self {
        let main = Self::product(self.high, factor);
        let (high, low) = quick_two_sum(main.high, self.low.mul_add(factor, main.low));
        Self { high, low }
    }
}

impl Mul for TwoFloat {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let main = Self::product(self.high, other.high);
        let cross = self.high.mul_add(other.low, self.low * other.high);
        let (high, low) = quick_two_sum(main.high, main.low + cross);
        Self { high, low }
    }
}

impl std::ops::AddAssign<f64> for TwoFloat {
    fn add_assign(&mut self, term: f64) {
        *self = *self + Self::from(term);
    }
}

impl std::ops::AddAssign for TwoFloat {
    fn add_assign(&mut self, term: Self) {
        *self = *self + term;
    }
}

/// The sum of the terms, rounded once at the end.
///
/// # Complexity
/// O(length).
///
/// # Example
/// ```
/// use specgap::distribution::compensated_sum;
/// assert_eq!(compensated_sum([0.1; 10]), 1.0);
/// ```
pub fn compensated_sum(terms: impl IntoIterator<Item = f64>) -> f64 {
    let mut sum = TwoFloat::ZERO;
    for term in terms {
        sum += term;
    }
    sum.value()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_plain_summation_loses() {
        let terms: Vec<f64> = std::iter::once(1.0)
            .chain(std::iter::repeat_n(1e-17, 1000))
            .collect();
        assert_eq!(terms.iter().sum::<f64>(), 1.0);
        assert_eq!(compensated_sum(terms), 1.0 + 1e-14);
    }

    #[test]
    fn products_and_quotients_invert() {
        let third = TwoFloat::ONE.divided_by(3.0);
        let back = third * 3.0 - TwoFloat::ONE;
        assert!(back.value().abs() < 1e-31, "{back:?}");
        let square = third * third;
        assert!((square * 9.0 - TwoFloat::ONE).value().abs() < 1e-30);
    }
}
