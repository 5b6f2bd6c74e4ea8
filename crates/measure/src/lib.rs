//! Measurements of a log: gaps of rules to the optimum, summaries that merge.
//!
//! It knows no text: rounds along a text are `specgap-replay`.

pub mod gap;
