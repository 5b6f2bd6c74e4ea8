//! Rounds of a tree of drafts along a text. Proofs are in `docs/theory/tree-replay.md`.

mod replay;
mod shares;

pub use replay::{TreeReplay, replay_tree};
pub use replay::{survival_of_tree, walk};
pub use shares::ChildShares;
