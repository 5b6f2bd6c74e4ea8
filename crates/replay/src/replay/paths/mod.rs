//! What several draft paths could give, and what verifiers get of it, from one log.
//!
//! K paths of L tokens are drawn from the draft, independently, and some verifier accepts a
//! prefix of one of them. How long that can be in expectation, in a round that starts with the
//! target's own law, has an exact dual
//! (`docs/theory/block-optimum.md`), whose bounds are means over paths that were drawn: an upper
//! bound for any sets of prefixes, and a lower bound. What verifiers accept follows from the
//! text that the target wrote and both rows along it.
//!
//! | number | from | what it is |
//! | --- | --- | --- |
//! | upper bound of every verifier | m >= K draft paths a context ([`sets_bound`]) | unbiased for given limits, which other prompts choose |
//! | the same, wider | one path a context, or the text ([`sets_of_text`]) | a bound, by concavity |
//! | lower bound of the best verifier | text, or draft paths ([`lower_bound_of_text`]) | unbiased |
//! | token, block, greedy-block | text, or draft paths ([`accepted_of_draft`]) | unbiased |
//! | SpecTr, select | text and its rows | unbiased |
//!
//! [`measure_paths`] makes the report of `specgap paths`. Proofs are in `docs/theory/paths.md`.

mod along;
mod bounds;
mod by_agreement;
mod by_drafts;
mod contexts;
mod data;
mod drafted_tree;
mod left_out;
mod limits;
mod means;
mod measure;
mod possible;
mod report;
mod settings;

pub use bounds::{
    accepted_of_draft, lower_bound_of_draft, lower_bound_of_text, sets_bound, sets_of_text,
};
pub use by_agreement::SelectedAlong;
pub use data::{AtDrafts, PATHS_SCHEMA, PathVerifier, PathsReport, ToldTwice, UpperBound};
pub use drafted_tree::{DraftedTree, TreeBound, tree_bound};
pub use measure::measure_paths;
pub use possible::{possible_with_paths, read_possible_with_paths};
pub use settings::PathSettings;
