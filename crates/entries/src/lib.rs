//! Loops over all entries of a logged row: their types, what they may be, what is summed over them.
//!
//! It knows no file, no model and no rule. A row has as many entries as the vocabulary has tokens,
//! so this member is compiled for speed in every profile, and those around it need not be: a loop
//! over a row belongs here or into `number`.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
// No input may panic; clippy.toml lets tests do so.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![deny(clippy::unreachable, clippy::todo, clippy::unimplemented)]

pub mod entries;
