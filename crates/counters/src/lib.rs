//! What servers count of their rounds: acceptance lengths of every draft length, and profiles.
//!
//! It must not know rows, laws or rules: a count is of one engine's rule on its own text, and
//! nothing here may make it say more than that.

pub mod counters;
pub mod profile;
