//! What servers count of their rounds: acceptance lengths of every draft length, and profiles.
//!
//! It must not know rows, laws or rules: a count is of one engine's rule on its own text, and
//! nothing here may make it say more than that.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
// No input may panic; clippy.toml lets tests do so.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![deny(clippy::unreachable, clippy::todo, clippy::unimplemented)]

pub mod counters;
pub mod curve;
pub mod profile;
