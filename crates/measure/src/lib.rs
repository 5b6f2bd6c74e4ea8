//! Measurements of a log: gaps of rules to the optimum, summaries that merge.
//!
//! It knows no text: rounds along a text are `specgap-replay`.
//!
//! The gap of every verifier to its optimum, over logged rows.
//!
//! At every position of a [`Log`](specgap_log::log::Log), for every temperature and
//! number of drafts, [`measure`] computes
//!
//! - `alpha*` of each draft scheme, the most that can be accepted at a position whose
//!   output has the target's own law, given the text before it:
//!   for `with-replacement`, `without-replacement` and `distinct-conditioned` by
//!   the ratio scan, for the others in closed form by their cut;
//! - the acceptance of each verifier that is lossless under the scheme, and its
//!   gap `alpha* - acceptance`;
//! - the overlap `sum of min(p, q)`.
//!
//! Each answer goes to the tally of what it is about, by name; tallies make a
//! [`Summary`], and a summary makes the report. Sums are exact, so that summaries of
//! parts merge into that of all to the bit, whatever the order and the number of threads.
//! Memory grows with the vocabulary and the number of prompts, not with that of positions.
//!
//! Rows that list some tokens only stand for full rows: their numbers carry bounds that
//! hold the full rows' (`docs/theory/truncated-rows.md`).
//!
//! # Statistics
//! Positions of one prompt resemble one another. Means are therefore ratios of
//! sums over prompts, with the linearised variance of a ratio and Student's t
//! with one degree of freedom less than there are prompts. P-values of gaps and
//! of differences are of the paired test: both sides at the same positions.

mod answers;
mod baseline;
mod chains;
mod changes;
mod compare;
mod coverage;
mod data;
mod fit;
mod glossary;
#[cfg(test)]
mod lists_tests;
mod looping;
mod measure;
mod metric;
mod own;
mod own_answers;
mod own_law;
#[cfg(test)]
mod own_law_tests;
#[cfg(test)]
mod own_tests;
mod pairing;
mod paths;
mod position;
mod positions;
mod report;
mod sequence;
#[cfg(test)]
mod served_tests;
mod settings;
mod strip;
mod summary;
mod summary_file;
mod surprise;
mod tally;
mod truncation;
mod unit;

pub use baseline::{Against, against};
pub use compare::{
    AgainstFirst, ComparedEstimate, ComparedLog, ComparedRate, LogComparison, folders,
};
pub use data::{
    BlockEstimate, CallCost, CallCosts, Cell, ChainRounds, Comparison, DraftPaths, FormulaError,
    Gap, GapReport, HISTOGRAM_EDGES, KnownEstimate, LogSummary, OfDepth, OneDraft, Optimum,
    OverlapRow, OwnLawRow, OwnNumbers, OwnRuleRow, PlanRow, PossibleWithPaths, RateAudit,
    Redrafted, RedraftedCell, RedraftedVerifier, Repetition, RestMass, RoundsOfLength, RuleCost,
    SCHEMA, Strip, StripText, StripToken, Surprise, VerifierRow,
};
pub use fit::DraftFit;
pub use glossary::definitions;
pub use measure::{measure, summarise, summarise_each};
pub use own::{DraftsOf, OwnRate, OwnRow, OwnRule};
pub use own_law::OwnLaw;
pub use pairing::LogDifference;
pub use pairing::Pairing;
pub use position::shown;
#[cfg(feature = "parquet")]
pub use positions::ParquetTable;
pub use positions::{ColumnKind, Columns, Entry, PositionSink};
pub use settings::{Part, Settings, SlowRates, SolvedPlans};
pub use summary::Summary;
pub use surprise::{Singles, Surprised, Surprises};

use specgap_log::log::LogError;
use specgap_number::distribution::DistributionError;
use std::path::PathBuf;

/// Why a gap report cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GapError {
    /// A log is refused.
    #[error(transparent)]
    Log(#[from] LogError),
    /// Settings are out of range.
    #[error("{0}")]
    Settings(String),
    /// A position cannot be measured: the log; the position's number in it, from 0; what is wrong.
    #[error("{0}: position {1}: {2}")]
    Position(PathBuf, usize, String),
    /// Logs or parts do not belong into one report.
    #[error("{0}")]
    Parts(String),
    /// A summary's file is refused.
    #[error("{0}")]
    Summary(String),
    /// The table of positions cannot be written.
    #[error("the table of positions: {0}")]
    Table(std::io::Error),
    /// A distribution is refused.
    #[error(transparent)]
    Distribution(#[from] DistributionError),
}
