//! Logs of rows: reading, writing, and import from engines.
//!
//! It knows none of our mathematics: what a row means is for those who read it.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
// No input may panic; clippy.toml lets tests do so.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![deny(clippy::unreachable, clippy::todo, clippy::unimplemented)]

pub mod import;
pub mod log;
