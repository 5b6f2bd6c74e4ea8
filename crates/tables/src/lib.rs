//! What problem files say, field by field, as TOML and JSON are read into it.
//!
//! It knows no problem, no law and no limit: `core` makes those of it. Reading two formats into
//! these types is much code that runs once a file, so this member is compiled without optimisation.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
// No input may panic; clippy.toml lets tests do so.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![deny(clippy::unreachable, clippy::todo, clippy::unimplemented)]

#[doc(hidden)]
pub mod tables;
