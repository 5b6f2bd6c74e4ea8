//! Rows of a log as probabilities: temperature, lists, truncation.
//!
//! It knows no rule and no report.

pub mod sampling;
