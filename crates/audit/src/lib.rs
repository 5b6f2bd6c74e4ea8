//! Whether an engine samples what it claims, and vectors for its kernels.
//!
//! It must not use the measurements of gaps: an audit tests a claim, and estimates nothing else.

pub mod audit;
pub mod conformance;
