//! Whether an engine samples what it claims, and vectors for its kernels.
//!
//! It must not use the measurements of gaps: an audit tests a claim, and estimates nothing else.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod audit;
pub mod conformance;
