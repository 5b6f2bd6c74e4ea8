//! Measurements of a log: gaps of rules to the optimum, summaries that merge, statistics.
//!
//! It knows no text: rounds along a text are `specgap-replay`.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod gap;
pub mod statistics;
