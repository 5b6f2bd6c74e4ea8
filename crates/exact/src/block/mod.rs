//! Blocks: K independent drafts of L tokens each, verified together.
//!
//! tau is the length of the longest prefix of the target's sequence that some
//! draft shares; `E[tau]` counts accepted draft tokens, without the corrected or
//! bonus token (*block efficiency* is `E[tau]` + 1). For one problem:
//!
//! ```text
//! E[tau] of every lossless verifier  <=  block optimum  <=  per-depth bound
//! ```
//!
//! | quantity | where | status |
//! | --- | --- | --- |
//! | block optimum | [`level_sets`], a minimum over L numbers; [`transport`] exactly, [`program`] as a linear program, where they are small | ground truth |
//! | optimum of trees of any law | [`DrawnTrees`], exactly, where they are small | ground truth |
//! | per-depth bound | [`per_depth_bound`] | upper bound on the block optimum |
//! | Lemma 5.1 value | [`lemma_5_1`] | the optimum at K = 1; a lower bound of it, **no** upper bound, for K >= 2 |
//! | single-draft optimum | [`single_draft_optimum`] | attained by [`GreedyBlock`] |
//!
//! | verifier | drafts used | lossless |
//! | --- | --- | --- |
//! | [`Token`], [`Block`], [`GreedyBlock`] | the first | yes |
//! | [`SpecTr`] with a rule of [`specgap_core::verifier`] at every position, as k-seq or an optimal plan | all | yes |
//! | [`Traversal`] | all | yes |
//! | [`Select`], one path selected by plans, then verified by greedy blocks or blocks | all | yes |
//! | [`Ordered`], the last path in an order by p/q, verified by blocks | all | yes |
//! | [`BlockOptimal`], which attains the block optimum on small trees | all | yes |
//! | [`SpecTrGbv`] | all | only at K = 1; for audit |
//!
//! Every verifier is given as its exact law given the drafts, and [`output_law`]
//! sums over all of them: nothing here is sampled.

mod bounds;
mod drawn_trees;
mod law;
pub mod level_sets;
mod optimal;
mod ordered;
pub mod program;
#[cfg(test)]
mod random_problem;
mod rounds;
mod select;
mod single_draft;
mod spectr;
mod spectr_gbv;
mod table;
pub mod transport;
mod traversal;

pub use bounds::{
    depth_optimum, lemma_5_1, lemma_5_1_status, per_depth_bound, single_draft_optimum,
};
pub use drawn_trees::DrawnTrees;
pub use law::{
    Attains, BlockEntry, BlockVerifier, Build, Outcomes, OutputLaw, output_law, tuple_count,
};
pub use optimal::BlockOptimal;
pub use ordered::Ordered;
pub use rounds::{Change, SeveralRounds, several_rounds};
pub use select::{Select, SelectedRule};
pub use single_draft::{Block, GreedyBlock, Token};
pub use spectr::SpecTr;
pub use spectr_gbv::SpecTrGbv;
pub use table::{BLOCK_RULES, BlockRule, UnknownBlockRule};
pub use traversal::Traversal;
