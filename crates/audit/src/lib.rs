//! Whether an engine samples what it claims, and vectors for its kernels.
//!
//! It must not use the measurements of gaps: an audit tests a claim, and estimates nothing else.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
// No input may panic; clippy.toml lets tests do so.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![deny(clippy::unreachable, clippy::todo, clippy::unimplemented)]

pub mod audit;
pub mod conformance;
