//! What a report says beside its four verdicts, as data: surprise against entropy, a cause of
//! several refutations, and what a server counted.

use super::outcome::Outcome;
use serde::{Deserialize, Serialize};

/// How surprised p is by what came out, against how surprised it should be.
///
/// The surprise of a token y is -ln p(y), in nats; its mean under p is the entropy of p. Along a
/// text the differences of the two sum to a martingale if tokens follow p, whose variance follows
/// from the rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Surprise {
    /// Tokens that came out and have a probability above 0.
    pub steps: u64,
    /// Tokens that came out and have probability 0: their surprise is infinite, and in no mean.
    pub impossible: u64,
    /// Mean of -ln p(y) over these steps, in nats.
    pub surprise: f64,
    /// Mean entropy of p at these steps, in nats.
    pub entropy: f64,
    /// Surprise less entropy.
    pub difference: f64,
    /// The 95% interval of the difference, from its squares over steps: an estimate.
    pub ci95: [f64; 2],
    /// The sum of differences over its standard deviation under p, which follows from the rows;
    /// near a normal number if tokens follow p. `None` where nothing is left to chance.
    pub z: Option<f64>,
}

/// The law that explains what was refuted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cause {
    /// Its name (docs/guide/audit.md has them all).
    pub name: String,
    /// Its size, by name; with `_range`, all sizes that fit nearly as well.
    pub fit: serde_json::Map<String, serde_json::Value>,
    /// ln of its likelihood over that of the next best of another name.
    pub log_ratio_to_next: f64,
    /// What it says of the engine.
    pub words: String,
    /// What to do.
    pub cure: String,
    /// How far it moves a step's output from p, in total variation: an estimate from the log's
    /// tokens; none where outputs are not known by themselves.
    pub tv: Option<f64>,
}

/// Rounds as a server counted them.
#[derive(Clone, Debug, PartialEq)]
pub struct Counts {
    /// The files, as a report names them.
    pub files: String,
    /// How many rounds had drafts.
    pub rounds: f64,
    /// Tokens drafted in them, where that is counted.
    pub drafted: Option<f64>,
    /// Drafts accepted.
    pub accepted: f64,
    /// K: the drafts of a round.
    pub length: usize,
    /// Rounds that accepted at least i drafts, i = 1, 2, ..; empty where places are not counted.
    pub reached: Vec<f64>,
}

/// One place of a drafted chain, as counted and as the rows have it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlaceCount {
    /// Which draft of its round, from 1.
    pub place: usize,
    /// The share of the server's rounds that accepted this many drafts or more.
    pub counted: f64,
    /// The same as the rule has it along the log's texts, in expectation.
    pub expected: f64,
}

/// Accepted drafts that a server counted, held against the rows of a log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CountsReport {
    /// The files that were read.
    pub files: String,
    /// The rule whose acceptance is expected.
    pub rule: String,
    /// K: the drafts of a round.
    pub length: usize,
    /// Rounds that were counted.
    pub rounds: f64,
    /// Drafts that were accepted in them.
    pub accepted: f64,
    /// Tokens of the log that have a place in a text.
    pub tokens: usize,
    /// Texts of the log.
    pub texts: usize,
    /// Accepted drafts and rounds add up to the log's tokens: the counts are taken for those of
    /// these very texts, whose tokens are then no source of chance.
    pub same_texts: bool,
    /// Accepted drafts in so many rounds, in expectation given the texts: between these, which are
    /// apart where rows are missing and where a round may go beyond the end of its text.
    pub expected: [f64; 2],
    /// Where the count of an engine that follows the rule is, with probability 95%: an estimate by
    /// the normal law, the tolerance included.
    pub ci95: [f64; 2],
    /// How far the count is from the nearer end of `expected`, in standard deviations.
    pub z: f64,
    /// Refuted at the report's level, consistent, or not testable.
    pub verdict: Outcome,
    /// By place of the chain, where places are counted.
    pub places: Vec<PlaceCount>,
    /// What these counts cannot tell.
    pub cannot_tell: Vec<String>,
}
