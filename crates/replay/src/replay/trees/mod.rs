//! Trees of drafts, replayed along logged text.
//!
//! A node of a tree has n children, drawn by a draft law from q at its prefix, and a lossless
//! verifier of n drafts goes down to one of them or ends the round. Given the text y, it goes
//! down to child k at position t with probability A_t(k | y_t; n)
//! ([`TokenRule`](specgap_core::verifier::TokenRule)), and what it does at one position does not
//! depend on another. So position and node are a Markov chain along the text, and E\[tau\] and
//! the target calls of any tree follow from one log, for every draft law and verifier
//! ([`replay_tree`](specgap_core::rounds::replay_tree)). Proofs are in `docs/theory/tree-replay.md`.
//!
//! [`measure_trees`] makes the report of `specgap tree`.

mod along;
mod data;
mod dynamic;
mod equal;
mod from_leaves;
mod grow;
mod grown;
mod independence;
mod measure;
mod outcome;
mod pairs;
mod priced;
mod settings;
mod shares;
mod siblings;
mod values;

pub use along::TreeAlong;
pub use data::{
    AtPrice, BesidePrice, BesideTree, ByBudget, Drawn, EqualNodes, GrownTree, Independence,
    NodeRate, PricedBy, PricedTrees, ReferenceTree, SequoiaTree, SlotRule, SlotValues, TREE_SCHEMA,
    ThresholdTree, TreeDifference, TreeReport, TreeResult,
};
pub use dynamic::{threshold_accepted, threshold_nodes};
pub use grow::{Growth, Limits};
pub use measure::measure_trees;
pub use settings::{NamedTree, TreeSettings};
pub use siblings::SlotRates;
