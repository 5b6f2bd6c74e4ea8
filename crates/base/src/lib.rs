//! Files written whole, JSON and TOML read into types, words of reports, panics kept quiet.
//!
//! It knows nothing of drafts or logs: all others rest on it, so that what it knew all would.
#![doc(hidden)]

pub mod csv;
pub mod files;
pub mod glossary;
pub mod names;
pub mod once;
pub mod panics;
pub mod setting;
pub mod side_by_side;
pub mod sorted;
pub mod typed;
pub mod visible;
