//! Numbers, exact and rounded: rationals, sums with proven errors, distributions, quadrature.
//!
//! It knows no draft law and no rule: a distribution is a row of numbers here.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
// No input may panic; clippy.toml lets tests do so.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![deny(clippy::unreachable, clippy::todo, clippy::unimplemented)]

pub mod distribution;
pub mod known;
pub mod number;
#[doc(hidden)]
pub mod quadrature;
#[doc(hidden)]
pub mod scratch;
