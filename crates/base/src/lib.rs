//! Files written whole, JSON and TOML read into types, words of reports, panics kept quiet.
//!
//! It knows nothing of drafts or logs: all others rest on it, so that what it knew all would.

#[doc(hidden)]
pub mod csv;
#[doc(hidden)]
pub mod files;
#[doc(hidden)]
pub mod glossary;
#[doc(hidden)]
pub mod names;
#[doc(hidden)]
pub mod once;
#[doc(hidden)]
pub mod panics;
#[doc(hidden)]
pub mod setting;
#[doc(hidden)]
pub mod side_by_side;
#[doc(hidden)]
pub mod sorted;
#[doc(hidden)]
pub mod typed;
#[doc(hidden)]
pub mod visible;
