//! Rows of a log as probabilities: temperature, lists, truncation.
//!
//! It knows no rule and no report.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod sampling;
