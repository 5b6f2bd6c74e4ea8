//! Files written whole, JSON and TOML read into types, panics kept quiet.
//!
//! It knows nothing of drafts or logs: all others rest on it, so that what it knew all would.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
// No input may panic; clippy.toml lets tests do so.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![deny(clippy::unreachable, clippy::todo, clippy::unimplemented)]

#[doc(hidden)]
pub mod csv;
#[doc(hidden)]
pub mod files;
#[doc(hidden)]
pub mod panics;
#[doc(hidden)]
pub mod side_by_side;
#[doc(hidden)]
pub mod sorted;
#[doc(hidden)]
pub mod typed;
#[doc(hidden)]
pub mod visible;
