//! Measurements of a log: gaps of rules to the optimum, summaries that merge, statistics.
//!
//! It knows no text: rounds along a text are `specgap-replay`.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
// No input may panic; clippy.toml lets tests do so.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![deny(clippy::unreachable, clippy::todo, clippy::unimplemented)]

pub mod advice;
pub mod gap;
pub mod statistics;
