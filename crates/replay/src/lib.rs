//! Rounds of a decoder replayed along logged text: lengths, trees, paths; and gap reports with what
//! these know.
//!
//! It runs no model; it reads rows.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
// No input may panic; clippy.toml lets tests do so.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![deny(clippy::unreachable, clippy::todo, clippy::unimplemented)]

#[cfg(test)]
mod random_problem;
pub mod replay;
pub mod whole;
