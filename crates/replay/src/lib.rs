//! Rounds of a decoder replayed along logged text: lengths, trees, paths; and gap reports with what
//! these know.
//!
//! It runs no model; it reads rows.

#[cfg(test)]
mod random_problem;
pub mod replay;
pub mod whole;
