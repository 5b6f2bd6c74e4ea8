//! Rounds of a tree of drafts along a text. Proofs are in `docs/theory/tree-replay.md`.

mod from_leaves;
mod given;
mod listed;
mod replay;
mod shares;

pub use from_leaves::{TextToken, kept_from_leaves, most_kept};
pub use given::{DrawnNode, TreeEnd, ends_from_leaves};
pub use listed::{ListedToken, kept_between};
pub use replay::{TreeReplay, replay_tree, replay_tree_with};
pub use replay::{survival_of_tree, walk};
pub use shares::ChildShares;
