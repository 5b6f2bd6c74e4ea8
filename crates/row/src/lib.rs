//! Questions to one row of p and q at any vocabulary: scans, overlaps, rates, with bounds.
//!
//! It knows no law or rule by its name, and no file: laws and rules ask it, by numbers.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
// No input may panic; clippy.toml lets tests do so.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![deny(clippy::unreachable, clippy::todo, clippy::unimplemented)]

pub mod row;
