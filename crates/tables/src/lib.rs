//! What problem files say, field by field, as TOML and JSON are read into it.
//!
//! It knows no problem, no law and no limit: `core` makes those of it. Reading two formats into
//! these types is much code that runs once a file, so this member is compiled without optimisation.

#[doc(hidden)]
pub mod tables;
