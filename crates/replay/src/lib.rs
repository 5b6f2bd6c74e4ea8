//! Rounds of a decoder replayed along logged text: lengths, trees, paths.
//!
//! It runs no model; it reads rows.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

#[cfg(test)]
mod random_problem;
pub mod replay;
