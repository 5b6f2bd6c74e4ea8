//! From positions to text: rounds of a speculative decoder, replayed along logged text.
//!
//! A log holds text y that was drawn from the target, and both rows p and q at each of its
//! positions. Given the text, a drafted token is accepted with a probability that depends
//! on `r = q(y)/p(y)` at its own position alone ([`Survival`]). So the rounds of a decoder
//! are a renewal process along the text, whose expected calls and drafts are computed
//! without a run of any model and without random numbers ([`replay()`]); what is left to
//! chance is which text was drawn.
//!
//! | question | answer | needs of the log |
//! | --- | --- | --- |
//! | E\[tau\] of a round of K drafts | [`accepted_lengths`] | text and both rows |
//! | target calls of any policy without memory of rejected drafts | [`replay()`] | text and both rows |
//! | draft tokens, where the length is set when a round begins | [`Replay::drafts_set_at_start`] | text and both rows |
//! | draft tokens of other policies | not from text alone | rollouts of the draft |
//! | what several draft paths could give, and what verifiers get of it | [`measure_paths`] | text and both rows; for bounds without bias, draft paths |
//! | what no policy can pass | [`oracle_calls`], [`coin_blind`] | text and both rows |
//!
//! Proofs are in `docs/theory/text-replay.md`; the ledger checks each against enumeration of the
//! whole random process in exact fractions. [`measure`] makes the report of `specgap length`.

mod bounds;
mod cost;
mod data;
mod drafts;
mod glossary;
mod measure;
mod paths;
mod place;
mod policy;
mod rollouts;
mod spread;
mod texts;
mod trees;

pub use crate::gap::Surprise;
pub use crate::rounds::{
    ChainVerifier, DraftLength, FixedLength, Replay, RoundEnd, Survival, accepted_everywhere,
    accepted_lengths, accepted_lengths_by_means, replay,
};
pub use bounds::{CoinBlind, coin_blind, oracle_calls, oracle_calls_to_the_end};
pub use cost::{Measured, TIMINGS_SCHEMA, Timings, VerifyingPass};
pub use data::{
    AtCost, Bound, Bounds, Chosen, ChosenPolicy, EntropyBound, Faster, LengthReport, MeasuredTexts,
    Parameter, PolicyResult, RolloutsRead, SCHEMA, TextLog,
};
pub use drafts::Drafts;
pub(crate) use glossary::definitions;
pub use measure::{Settings, measure};
pub(crate) use paths::paths_definitions;
pub use paths::{
    AtDrafts, DraftedTree, PATHS_SCHEMA, PathSettings, PathVerifier, PathsReport, SelectedAlong,
    ToldTwice, TreeBound, UpperBound, accepted_of_draft, lower_bound_of_draft, lower_bound_of_text,
    measure_paths, possible_with_paths, read_possible_with_paths, sets_bound, sets_of_text,
    tree_bound,
};
pub use place::{Place, Rest};
pub use policy::{AlongText, DecidedOn, FAMILIES, Family, Policy};
pub use rollouts::{Drafted, DraftedRounds, RolledOut, RolloutKind, RolloutList, drafted_rounds};
pub use spread::{Moments, Spread, spread_of_chain, spread_of_tree};
pub use texts::{Text, Texts};
pub(crate) use trees::tree_definitions;
pub use trees::{
    ByBudget, ChildShares, Drawn, GrownTree, Growth, Independence, Limits, NamedTree, NodeRate,
    ReferenceTree, SequoiaTree, SlotRule, SlotValues, TREE_SCHEMA, ThresholdTree, TreeDifference,
    TreeReplay, TreeReport, TreeResult, TreeSettings, measure_trees, replay_tree,
    threshold_accepted, threshold_nodes,
};

use crate::gap::GapError;
use crate::log::LogError;
use std::path::PathBuf;

impl TextError {
    /// What is wrong, without the file that it is about.
    pub fn message(&self) -> String {
        match self {
            Self::Log { message, .. } => message.clone(),
            Self::Position {
                position, message, ..
            } => format!("position {position}: {message}"),
            other => other.to_string(),
        }
    }
}

/// Why text cannot be replayed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TextError {
    /// A log's files or rows are refused.
    #[error(transparent)]
    Rows(#[from] LogError),
    /// Rows of probabilities that are called logits.
    #[error(transparent)]
    Kind(#[from] GapError),
    /// A log's text is not what the identities need.
    #[error("{log}: {message}")]
    Log {
        /// The log.
        log: PathBuf,
        /// What is wrong, and the cure.
        message: String,
    },
    /// A position cannot be replayed.
    #[error("{log}: position {position}: {message}")]
    Position {
        /// The log.
        log: PathBuf,
        /// The position's number in it, from 0.
        position: usize,
        /// What is wrong, and the cure.
        message: String,
    },
    /// Settings that leave nothing to do.
    #[error("{0}")]
    Settings(String),
}
