//! What counts say, as data.

use super::counted::Source;
use serde::{Deserialize, Serialize};
use specgap_base::names;
use specgap_statistics::Estimate;
use specgap_statistics::advice::Change;
use specgap_statistics::curve::Curve;
use std::collections::BTreeMap;

/// The version of [`CountersReport`].
pub const COUNTERS_SCHEMA: u32 = 1;

/// How an acceptance length is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Counted: rounds of this very length ran.
    Counted,
    /// Shorter rounds, replayed along requests whose every round is listed.
    Replayed,
    /// Shorter rounds, by runs of accepted tokens: the range holds where the coin at a token does not
    /// depend on where its round started, and where it depends on the place in the round alone.
    Runs,
    /// The same beyond K.
    Extrapolated,
}

names!(Kind: Counted "counted", Replayed "replayed", Runs "runs", Extrapolated "extrapolated");

/// Tokens that a round puts out, with the bonus token.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TokensARound {
    /// The mean, an estimate where there is a range.
    pub mean: f64,
    /// 95% interval of the mean over requests, or over rounds where requests are not told apart.
    pub ci95: [f64; 2],
    /// What the mean lies between by the model that `kind` names, whatever else holds: no interval.
    /// Absent where it was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
}

impl TokensARound {
    /// Returns the mean with its interval.
    #[must_use]
    pub fn estimate(&self) -> Estimate {
        Estimate {
            mean: self.mean,
            ci95: self.ci95,
            ..Estimate::default()
        }
    }

    /// Returns the range, or the mean twice.
    #[must_use]
    pub fn ends(&self) -> [f64; 2] {
        self.range.unwrap_or([self.mean; 2])
    }
}

/// What rounds of one draft length put out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AtLength {
    /// k: tokens drafted each round.
    pub length: usize,
    /// Tokens a round puts out, with the bonus token: in [1, k + 1].
    pub acceptance_length: TokensARound,
    /// How it is known.
    pub kind: Kind,
    /// (acceptance length - 1) / k: accepted by drafted tokens. It falls with k by arithmetic.
    pub acceptance_rate: f64,
    /// Times as fast as the target alone, at the costs that were given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speedup: Option<f64>,
}

/// What the rounds that ran put out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Served {
    /// Rounds with drafts; absent where a file has rates alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<f64>,
    /// Requests, where they are told apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<usize>,
    /// Tokens a round put out, with the bonus token: 1 + accepted / rounds.
    pub acceptance_length: Estimate,
    /// The same without the bonus token: accepted / rounds.
    pub accepted_per_round: f64,
    /// Accepted by drafted tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acceptance_rate: Option<f64>,
    /// Tokens drafted a round, which is below K where rounds were short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drafted_per_round: Option<f64>,
}

/// The length to set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Best {
    /// Tokens to draft each round; 0 is not to draft.
    pub length: usize,
    /// Times as fast as the target alone.
    pub speedup: f64,
    /// What that lies between, where the acceptance length has a range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speedup_between: Option<[f64; 2]>,
    /// How its acceptance length is known.
    pub kind: Kind,
    /// All lengths that may be as quick, by their ranges.
    pub alike: Vec<usize>,
}

/// The best length at a cost ratio.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AtCost {
    /// c: time of a draft step over that of a target step.
    pub cost_ratio: f64,
    /// The length to set there.
    pub best: Best,
}

/// The best length at a batch size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AtBatch {
    /// Requests that decode at once.
    pub batch: usize,
    /// The length to set there.
    pub best: Best,
}

/// Something about the counts that a reader of the numbers has to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Note {
    /// A word for it.
    pub name: String,
    /// What it says.
    pub says: String,
}

/// What the requests of one group count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupCounts {
    /// Its name.
    pub group: String,
    /// What ran.
    pub served: Served,
    /// Its rounds, place by place, where places are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curve: Option<Curve>,
    /// Every draft length that something is known of.
    pub lengths: Vec<AtLength>,
    /// Its own length to set, if costs were given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<Best>,
    /// Its acceptance length less that of all other groups' requests, of rounds as they ran. The
    /// interval is one of as many as there are groups, all of which hold together with 95%
    /// (Bonferroni). Absent where there is no other group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more: Option<Estimate>,
    /// Whether that interval lies on one side of 0: else the group is not told apart.
    pub is_told: bool,
}

/// What counters say of every draft length.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CountersReport {
    /// 1.
    pub schema: u32,
    /// The command that made it.
    pub command: String,
    /// Which tool counted.
    pub source: Source,
    /// K: tokens drafted each round at most; none where the file does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<usize>,
    /// What ran.
    pub served: Served,
    /// The rounds that ran, place by place, where places are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curve: Option<Curve>,
    /// Every draft length that something is known of, from 1 on.
    pub lengths: Vec<AtLength>,
    /// The same by group of requests, by name, where records have a `group`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupCounts>,
    /// The change from the length that ran, if costs were given and another one is quicker.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<Change>,
    /// The length to set, if costs were given and lengths are known.
    #[serde(default)]
    pub best: Option<Best>,
    /// The length to set by the cost of a draft.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_cost: Vec<AtCost>,
    /// The length to set by batch size.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_batch: Vec<AtBatch>,
    /// The same as vLLM's `num_speculative_tokens_per_batch_size`: first and last batch size, and
    /// tokens to draft.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub num_speculative_tokens_per_batch_size: Vec<[usize; 3]>,
    /// What has to be known of these counts.
    pub notes: Vec<Note>,
    /// What no counter can say.
    pub unknown: Vec<String>,
    /// What the words mean.
    pub definitions: BTreeMap<String, String>,
}
