//! What a verifier's rule needs of numbers: written once, run in `f64` and in
//! exact rationals.

use crate::distribution::{Rational, TwoFloat};
use crate::scheme::Mass;
use num_traits::{One, Zero};

/// A [`Mass`] that can be compared, subtracted down to zero, and summed with
/// compensation.
pub(crate) trait Arithmetic: Mass + PartialOrd {
    /// A running sum: double-double for `f64`.
    type Running: Clone;
    /// The empty sum.
    fn running() -> Self::Running;
    /// Adds one term.
    fn include(sum: &mut Self::Running, term: &Self);
    /// Adds another running sum.
    fn merge(sum: &mut Self::Running, other: &Self::Running);
    /// Rounds the sum to a number.
    fn settle(sum: &Self::Running) -> Self;
    /// max(self - other, 0).
    fn beyond(&self, other: &Self) -> Self;

    /// Whether this is 0.
    fn is_none(&self) -> bool {
        !self.differs(&Self::zero_mass())
    }

    /// The smaller of two.
    fn least(&self, other: &Self) -> Self {
        if self <= other { self } else { other }.clone()
    }

    /// 1 - self, for a probability.
    fn complement(&self) -> Self {
        Self::one_mass().beyond(self)
    }

    /// Sum of all.
    fn total<'a>(terms: impl IntoIterator<Item = &'a Self>) -> Self
    where
        Self: 'a,
    {
        let mut sum = Self::running();
        for term in terms {
            Self::include(&mut sum, term);
        }
        Self::settle(&sum)
    }
}

impl Arithmetic for f64 {
    type Running = TwoFloat;

    fn running() -> TwoFloat {
        TwoFloat::ZERO
    }
    fn include(sum: &mut TwoFloat, term: &Self) {
        *sum += *term;
    }
    fn merge(sum: &mut TwoFloat, other: &TwoFloat) {
        *sum += *other;
    }
    fn settle(sum: &TwoFloat) -> Self {
        sum.value()
    }
    fn beyond(&self, other: &Self) -> Self {
        (self - other).max(0.0)
    }
}

impl Arithmetic for Rational {
    type Running = Self;

    fn running() -> Self {
        Self::zero()
    }
    fn include(sum: &mut Self, term: &Self) {
        if !term.is_zero() {
            *sum += term;
        }
    }
    fn merge(sum: &mut Self, other: &Self) {
        if !other.is_zero() {
            *sum += other;
        }
    }
    fn settle(sum: &Self) -> Self {
        sum.clone()
    }
    fn beyond(&self, other: &Self) -> Self {
        if self > other {
            self - other
        } else {
            Self::zero()
        }
    }
    fn complement(&self) -> Self {
        Self::one() - self
    }
}

/// The row divided by its sum; `None` if that is zero.
pub(crate) fn normalised<M: Arithmetic>(row: &[M]) -> Option<Vec<M>> {
    let total = M::total(row);
    (!total.is_none()).then(|| row.iter().map(|mass| mass.over(&total)).collect())
}

/// Probability with which a token of mass `wanted` is kept when it is offered
/// with mass `offered`: min(1, wanted/offered), and 0 where nothing is wanted,
/// so that a token of probability zero is never kept, however small the draw.
pub(crate) fn keep<M: Arithmetic>(wanted: &M, offered: &M) -> M {
    if wanted.is_none() {
        M::zero_mass()
    } else if wanted >= offered {
        M::one_mass()
    } else {
        wanted.over(offered)
    }
}

/// (wanted - offered)+ token by token.
pub(crate) fn shortfall<M: Arithmetic>(wanted: &[M], offered: &[M]) -> Vec<M> {
    wanted
        .iter()
        .zip(offered)
        .map(|(wanted, offered)| wanted.beyond(offered))
        .collect()
}
