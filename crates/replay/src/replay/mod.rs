//! From positions to text: rounds of a speculative decoder, replayed along logged text.
//!
//! A log holds text y that was drawn from the target, and both rows p and q at each of its
//! positions. Given the text, a drafted token is accepted with a probability that depends
//! on `r = q(y)/p(y)` at its own position alone ([`Survival`](specgap_core::rounds::Survival)). So the rounds of a decoder
//! are a renewal process along the text, whose expected calls and drafts are computed
//! without a run of any model and without random numbers ([`replay()`](specgap_core::rounds::replay())); what is left to
//! chance is which text was drawn.
//!
//! | question | answer | needs of the log |
//! | --- | --- | --- |
//! | E\[tau\] of a round of K drafts | [`accepted_lengths`](specgap_core::rounds::accepted_lengths) | text and both rows |
//! | target calls of any policy without memory of rejected drafts | [`replay()`](specgap_core::rounds::replay()) | text and both rows |
//! | draft tokens, where the length is set when a round begins | [`Replay::drafts_set_at_start`](specgap_core::rounds::Replay::drafts_set_at_start) | text and both rows |
//! | draft tokens of other policies | not from text alone | rollouts of the draft |
//! | what several draft paths could give, and what verifiers get of it | [`measure_paths`] | text and both rows; for bounds without bias, draft paths |
//! | what no lossless rule of one path can pass over several rounds | [`fewest_calls`](specgap_core::rounds::fewest_calls) | text and both rows |
//! | what no policy can pass | [`oracle_calls`](specgap_core::rounds::oracle_calls), [`coin_blind`](specgap_core::rounds::coin_blind) | text and both rows |
//!
//! Proofs are in `docs/theory/text-replay.md` and `docs/theory/several-rounds.md`; the ledger checks each against enumeration of the whole
//! random process in exact fractions. [`measure_lengths`] makes the report of
//! `specgap length`, [`measure_trees`] that of `specgap tree` and [`measure_paths`] that of
//! `specgap paths`: a folder each, of settings, a measurement and data.

mod advice;
mod asked;
mod between;
mod carried;
mod glossary;
mod lengths;
mod measured;
mod moments;
mod parts;
mod paths;
mod position;
mod read;
mod relaxed;
mod rollouts;
mod rows;
mod spill;
mod timings;
mod trees;

pub use advice::{costs_shown, length_changes, tree_changes};
pub use carried::CarriedAlong;
pub use glossary::{length_definitions, paths_definitions, tree_definitions};
pub use lengths::{
    AboveFewest, AlongText, AtCost, AtDepth, AtGroupLength, Bound, Bounds, ByGroup, Chosen,
    ChosenPolicy, DecidedOn, Drafts, EntropyBound, EqualWeights, FAMILIES, Family, Faster,
    FewestCalls, GroupApart, LENGTH_SCHEMA, LengthReport, LengthSettings, Longer, OfGroup,
    Parameter, Policy, PolicyResult, RolloutsRead, RoundStarts, SeveralRounds, measure_lengths,
};
pub use measured::{MeasuredTexts, TextLog};
pub use moments::{CountMoments, Moments, moments_of_chain, moments_of_tree};
pub use parts::{Kept, Parts};
pub use paths::{
    AtDrafts, DraftedTree, PATHS_SCHEMA, PathSettings, PathVerifier, PathsReport, SelectedAlong,
    ToldTwice, TreeBound, UpperBound, accepted_of_draft, lower_bound_of_draft, lower_bound_of_text,
    measure_paths, possible_with_paths, read_possible_with_paths, sets_bound, sets_of_text,
    tree_bound,
};
pub use position::{Rest, TextPosition};
pub use read::{Text, Texts};
pub use relaxed::{
    RELAXED_SCHEMA, RelaxedRate, RelaxedReport, Standing, measure_relaxed, relaxed_definitions,
};
pub use rollouts::{RolledOut, RolloutKind, RolloutList};
pub use specgap_measure::Surprise;
pub use timings::{Measured, RuleTime, TIMINGS_SCHEMA, Timings, VerifyingPass};
pub use trees::{
    AtPrice, BesidePrice, BesideTree, ByBudget, Drawn, EqualNodes, GrownTree, Growth, Independence,
    Limits, NamedTree, NodeRate, PricedBy, PricedTrees, ReferenceTree, SequoiaTree, SlotRates,
    SlotRule, SlotValues, TREE_SCHEMA, ThresholdTree, TreeAlong, TreeDifference, TreeReport,
    TreeResult, TreeSettings, measure_trees, threshold_accepted, threshold_nodes,
};

use specgap_log::log::{Log, LogError};
use std::path::PathBuf;

impl ReplayError {
    fn of_log(log: &Log, message: String) -> Self {
        Self::Log(log.path().to_owned(), message)
    }

    fn of_position(log: &Log, position: usize, message: String) -> Self {
        Self::Position(log.path().to_owned(), position, message)
    }

    /// Returns what is wrong, without the file that it is about.
    pub fn message(&self) -> String {
        match self {
            Self::Log(_, message) => message.clone(),
            Self::Position(_, position, message) => format!("position {position}: {message}"),
            other => other.to_string(),
        }
    }
}

/// Why text cannot be replayed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// A log's files or rows are refused.
    #[error(transparent)]
    Rows(#[from] LogError),
    /// A log's text is not what the identities need: the log; what is wrong, and the cure.
    #[error("{0}: {1}")]
    Log(PathBuf, String),
    /// A position cannot be replayed: the log; the position's number in it, from 0; what is wrong,
    /// and the cure.
    #[error("{0}: position {1}: {2}")]
    Position(PathBuf, usize, String),
    /// The file that holds texts too many for memory.
    #[error(
        "texts that memory does not hold go to a temporary file, and that failed: {0}; set TMPDIR to a folder with more room"
    )]
    Spill(#[from] std::io::Error),
    /// Settings that leave nothing to do.
    #[error("{0}")]
    Settings(String),
    /// The part that was asked for is kept, and no report follows.
    #[error("a part of the positions is kept, and no report follows of it alone")]
    Kept,
}
