//! Numbers, exact and rounded: rationals, sums with proven errors, distributions, quadrature.
//!
//! It knows no draft law and no rule: a distribution is a row of numbers here.

pub mod distribution;
pub mod known;
pub mod number;
#[doc(hidden)]
pub mod quadrature;
#[doc(hidden)]
pub mod scratch;
