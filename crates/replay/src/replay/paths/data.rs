//! What a report on several paths says, as data: `report.json` is this, serialised.

use super::super::measured::MeasuredTexts;
use serde::{Deserialize, Serialize};
use specgap_measure::Surprise;
use specgap_statistics::Estimate;
use specgap_statistics::advice::Change;
use std::collections::BTreeMap;

/// The version of the report's `report.json`.
pub const PATHS_SCHEMA: u32 = 1;

/// What several draft paths could give, and what verifiers get of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathsReport {
    /// [`PATHS_SCHEMA`].
    pub schema: u32,
    /// What was measured.
    #[serde(flatten)]
    pub of: MeasuredTexts,
    /// L: tokens of a path.
    pub length: usize,
    /// Starts of blocks along the text.
    pub starts: usize,
    /// Starts from which draft paths were logged.
    pub anchors: usize,
    /// The fewest draft paths of such a start; 0 if there are none.
    pub logged_paths: usize,
    /// Whether a block ends with the token that ends its text.
    pub ends_with_text: bool,
    /// Whether the text looks like drawn from the target's rows.
    pub surprise: Surprise,
    /// What K paths could give and what is got of it, for every K.
    pub by_drafts: Vec<AtDrafts>,
    /// Numbers that the text and the draft paths both tell.
    pub checks: Vec<ToldTwice>,
    /// What a decoder could change, from what it does now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<Change>,
    /// What every metric means, by its name.
    pub definitions: BTreeMap<String, String>,
    /// What the log cannot tell, and why.
    pub left_out: Vec<String>,
}

/// K paths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AtDrafts {
    /// K.
    pub drafts: usize,
    /// In a round that starts with the target's own law no verifier of K paths has `E[tau]`
    /// above the mean of any of these; the first is the one that the others are measured
    /// against. None from one prompt.
    pub upper_bounds: Vec<UpperBound>,
    /// The value of Lemma 5.1, which the best verifier of K paths has at least.
    pub lower_bound: Estimate,
    /// What verifiers accept.
    pub verifiers: Vec<PathVerifier>,
}

/// An upper bound on `E[tau]` of every verifier of K paths, in a round that starts with the
/// target's own law.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UpperBound {
    /// `several paths`, `pooled paths` or `pooled text`: what it is made of.
    pub form: String,
    /// It, with a sampling interval. Limits were fitted on other prompts than they are
    /// reported on. The least of the bounds of as many or more paths and of L: the interval ends
    /// where that of K paths does, or at L, and begins with the lowest.
    pub expected_accepted_length: Estimate,
    /// For each half of the prompts and each group of contexts, the limit on p/q at every
    /// length up to which a prefix is in its set.
    pub limits: Vec<Vec<f64>>,
}

/// A verifier with K paths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathVerifier {
    /// Its name.
    #[serde(deserialize_with = "specgap_core::rule::read_name")]
    pub verifier: String,
    /// Paths that it looks at: 1 or K.
    pub uses: usize,
    /// `E[tau]`.
    pub expected_accepted_length: Estimate,
    /// The first upper bound less that, paired by prompt.
    pub below_upper_bound: Option<Estimate>,
    /// N / E\[target calls\] of rounds of K paths replayed along each text; none of verifiers
    /// that change the next round's target.
    pub tokens_per_call: Option<Estimate>,
}

/// A number that follows from the text and, apart from it, from draft paths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToldTwice {
    /// Which.
    pub what: String,
    /// K.
    pub drafts: usize,
    /// By the text.
    pub from_text: Estimate,
    /// By the draft paths.
    pub from_paths: Estimate,
    /// The second less the first, paired by prompt.
    pub difference: Estimate,
}
