//! A round of a decoder on rows of single or double precision: drafts of a node, and the
//! verification of a tree of them. What an engine runs between two passes of its models: nothing is
//! sorted, a stratum is swept once a pass, and sums are in `f64`.
//!
//! The laws and rules are those of [`crate::scheme`] and [`crate::rule`], where they are defined and
//! measured; here they are run. `python/specgap/rules.py` has them for readers.

mod chance;
mod drafts;
mod mass;
mod rows;
mod verify;

#[cfg(test)]
mod tests;

pub use drafts::draft;
pub use rows::{DecoderError, Entry, Law};
pub use verify::{Kept, Rule, Tree, verify};
