//! What a report on draft lengths says, as data: `report.json` is this, serialised.

use super::super::measured::{MeasuredTexts, is_zero};
use super::super::timings::Timings;
use super::drafts::Drafts;
use super::policy::Policy;
use serde::{Deserialize, Serialize};
use specgap_measure::{DraftPaths, Surprise};
use specgap_sampling::Cuts;
use specgap_statistics::Estimate;
use specgap_statistics::advice::{Assumed, Change};
use specgap_statistics::curve::Curve;
use std::collections::BTreeMap;

/// The version of the report's `report.json`.
pub const LENGTH_SCHEMA: u32 = 1;

/// Draft lengths and stopping policies, replayed along logged text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LengthReport {
    /// [`LENGTH_SCHEMA`].
    pub schema: u32,
    /// What was measured.
    #[serde(flatten)]
    pub of: MeasuredTexts,
    /// The most tokens that a policy which stops by itself may draft.
    pub max_length: usize,
    /// What was kept of the draft's row, and renormalised, before a token was drafted from it:
    /// q of all numbers. Absent where the whole row is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft_cuts: Option<Cuts>,
    /// The rollouts that drafts behind rejected tokens are known from, if all logs have any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollouts: Option<RolloutsRead>,
    /// The command that logs what some policies' drafts need, where the logs lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<String>,
    /// The times that speeds follow from, if any were given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timings: Option<Timings>,
    /// Whether the text looks like drawn from the target's rows.
    pub surprise: Surprise,
    /// Mean of min(1, q(y)/p(y)) over the text's tokens y.
    pub acceptance: Estimate,
    /// Every policy with every verifier.
    pub results: Vec<PolicyResult>,
    /// What becomes of the first, second, ... token of a round, where the draft has a row for each
    /// depth or cannot draw all tokens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_depth: Vec<AtDepth>,
    /// How far rounds get from where they start, by way and fixed length; where profiles are
    /// asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub round_starts: Vec<RoundStarts>,
    /// What no policy can pass, at the given cost.
    pub bounds: Bounds,
    /// The same numbers by group of prompts, where logs name groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_group: Option<ByGroup>,
    /// The best fixed length by cost ratio, with the bounds there.
    pub by_cost: Vec<AtCost>,
    /// The same at the given times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_cost: Option<AtCost>,
    /// What several draft paths could give, where the logs have such paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft_paths: Option<DraftPaths>,
    /// How often rows violate the bound that entropy rules rest on.
    pub entropy_bounds: Vec<EntropyBound>,
    /// The engine whose defaults advice starts from, where one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<Assumed>,
    /// What a decoder could change, from what it does now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<Change>,
    /// What every metric means, by its name.
    pub definitions: BTreeMap<String, String>,
    /// What the log cannot tell, and why.
    pub left_out: Vec<String>,
}

/// How far rounds get from where they start, for one kind of drafts and one verifier.
///
/// The rounds are those of a decoder along the text that have K tokens of it ahead, each with the
/// probability that it starts there: exact given the text, which is a sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RoundStarts {
    /// What is drafted.
    pub drafts: Drafts,
    /// What keeps it.
    pub verifier: String,
    /// A curve for each fixed length; `rounds` is their expected number, rounded.
    pub curves: Vec<Curve>,
    /// Each length against the one before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub longer: Vec<Longer>,
}

/// What a longer round puts out more, on the same text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Longer {
    /// K.
    pub length: usize,
    /// The shorter length.
    pub over: usize,
    /// The acceptance length of K less that of the shorter, paired by prompt.
    pub acceptance_length: Estimate,
    /// The standard error that this difference would have from two independent runs of as many
    /// prompts, over its own: two runs need the square of it times as many prompts for an
    /// interval as narrow. Absent where the difference does not vary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_of_two_runs: Option<f64>,
}

/// Fixed lengths by group of prompts, and of all of them.
///
/// Prompts are taken in an order that depends on their texts alone, so that every number is the
/// same to the bit whatever the order of prompts, shards and logs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ByGroup {
    /// The cost of a draft step over a target step at which lengths are chosen: that of the times
    /// that were given, else 0.05.
    pub cost_ratio: f64,
    /// Prompts of no group, which count in the total alone.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ungrouped: usize,
    /// All prompts: ratios of sums over their tokens.
    pub total: OfGroup,
    /// Each group, by name.
    pub groups: Vec<OfGroup>,
    /// The total with equal weights: the mean over groups, whatever their sizes.
    pub equal_weights: Vec<EqualWeights>,
    /// Whether groups are told apart.
    pub apart: Vec<GroupApart>,
}

/// What fixed lengths give some prompts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OfGroup {
    /// The group's name; none of all prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Prompts: the independent units of its intervals.
    pub prompts: usize,
    /// Tokens of their texts.
    pub positions: usize,
    /// Mean of min(1, q(y)/p(y)) over the texts' tokens y.
    pub acceptance: Estimate,
    /// Every fixed length with every kind of drafts and verifier.
    pub results: Vec<AtGroupLength>,
    /// The best fixed length of each, chosen on half of the prompts and reported on the others;
    /// which is which follows from the texts.
    pub chosen: Vec<Chosen>,
    /// How far rounds get from where they start; where profiles are asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub round_starts: Vec<RoundStarts>,
}

/// One length for some prompts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AtGroupLength {
    /// What is drafted.
    pub drafts: Drafts,
    /// What keeps it.
    pub verifier: String,
    /// K.
    pub length: usize,
    /// N / E\[target calls\].
    pub tokens_per_call: Estimate,
    /// Times as fast as the target alone, where the times that were given tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speedup: Option<Estimate>,
}

/// A length's mean over groups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EqualWeights {
    /// What is drafted.
    pub drafts: Drafts,
    /// What keeps it.
    pub verifier: String,
    /// K.
    pub length: usize,
    /// The mean of the groups' tokens per call.
    pub tokens_per_call: Estimate,
}

/// A group against all other prompts that have a group, at the best length of all prompts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupApart {
    /// The group.
    pub group: String,
    /// What is drafted.
    pub drafts: Drafts,
    /// What keeps it.
    pub verifier: String,
    /// The best length of all prompts.
    pub length: usize,
    /// The group's tokens per call less those of all other groups' prompts. Its interval is one of
    /// as many as there are groups, all of which hold together with 95% (Bonferroni).
    pub tokens_per_call: Estimate,
    /// Whether that interval lies on one side of 0: else the group is not told apart.
    pub is_told: bool,
    /// The group's own best length, where it has prompts to choose and to report on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_length: Option<usize>,
    /// The speed-up of its own best length less that of all prompts', on the group's prompts that
    /// had no say in its choice, with an interval as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_gain: Option<Estimate>,
}

/// What becomes of a round's token at a depth, if it is drawn from the draft's row and verified by
/// itself; over all starts with as many tokens left.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AtDepth {
    /// d, from 1.
    pub depth: usize,
    /// Starts with d tokens left.
    pub starts: usize,
    /// The mean of its own coin, min(1, q(y)/p(y)) at the text's token y.
    pub marginal: Estimate,
    /// P(it is accepted, given that all before it are); from depth 2 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditional: Option<Estimate>,
    /// P(it and all before it are accepted).
    pub joint: Estimate,
    /// The mean of the sum of min(p, q), where the log tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<Estimate>,
    /// The target's mass on tokens that the draft can draw, where these are not all: what it
    /// lacks to 1 is lost whatever the draft's row is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub covered: Option<Estimate>,
}

/// Rollouts of all logs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RolloutsRead {
    /// How many there are.
    pub rollouts: usize,
    /// K: the most tokens of one.
    pub tokens: usize,
    /// The probability that one starts at a position, log by log.
    pub inclusion_probability: Vec<f64>,
    /// Whether the target's probabilities are known on them.
    pub target: bool,
}

/// A policy's parameter: a number of tokens, or a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Parameter {
    /// Tokens.
    Count(u64),
    /// A threshold.
    Threshold(f64),
}

impl Parameter {
    /// That of a policy.
    pub(super) fn of(policy: Policy) -> Self {
        match policy.family.counts {
            true => Self::Count(policy.parameter as u64),
            false => Self::Threshold(policy.parameter),
        }
    }
}

impl std::fmt::Display for Parameter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Count(count) => f.pad(&count.to_string()),
            Self::Threshold(threshold) => f.pad(&threshold.to_string()),
        }
    }
}

impl Default for Parameter {
    fn default() -> Self {
        Self::Count(0)
    }
}

/// What a policy does with a verifier.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PolicyResult {
    /// Its family.
    pub policy: String,
    /// Its parameter.
    pub parameter: Parameter,
    /// What is drafted, and what keeps it.
    #[serde(default)]
    pub drafts: Drafts,
    /// `token`, `block` or `greedy-block`; of one-hot and exact-match drafts `token`.
    pub verifier: String,
    /// `estimate`: exact given the text, which is a sample; `estimate, rollouts`: calls are,
    /// and drafts are unbiased from rollouts, which are a sample too.
    pub kind: String,
    /// E\[tau\] of a round with `parameter` drafts, averaged over every position at which as
    /// many tokens are left. For fixed lengths.
    pub expected_accepted_length: Option<Estimate>,
    /// The same with the last coin of each place by its mean over the token, where the log
    /// tells that mean: as unbiased, with less scatter. For token verification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_accepted_length_by_means: Option<Estimate>,
    /// E\[tau\] averaged over every position, of `parameter` drafts or as many as tokens are
    /// left: the starts are the same for every length, so that it never falls with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_from_everywhere: Option<Estimate>,
    /// N / E\[target calls\].
    pub tokens_per_call: Option<Estimate>,
    /// E\[target calls\] / N.
    pub verification_rate: Option<Estimate>,
    /// (E\[draft tokens\] + E\[target calls\] - N) / N; `null` where the log does not tell
    /// what is drafted after a rejected token.
    pub discard_rate: Option<Estimate>,
    /// The part of the discard rate that the text shows, where it does not show all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discard_rate_at_least: Option<Estimate>,
    /// The most that it can be, where rollouts end before the policy does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discard_rate_at_most: Option<Estimate>,
    /// Against the target alone; `null` without a cost or a discard rate.
    pub speedup: Option<Estimate>,
    /// What the speed would be if nothing were drafted after a rejected token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speedup_at_most: Option<Estimate>,
    /// The cost of a draft step over that of a target step at which there is no gain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub break_even_cost_ratio: Option<Estimate>,
    /// Whether no policy of the report with the same verifier makes as few calls with as few
    /// discards, and fewer of either; where both rates are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_front: Option<bool>,
}

/// A point on the plane of both rates, with its speed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bound {
    /// The verifier that it is about.
    pub verifier: String,
    /// E\[target calls\] / N.
    pub verification_rate: Estimate,
    /// Discarded drafts / N.
    pub discard_rate: Estimate,
    /// Against the target alone, if there is a cost.
    pub speedup: Option<Estimate>,
}

/// The least target calls of any lossless rule of one path, over all rounds of a text.
///
/// The mean over texts that the target wrote of sum over t < N of s_t, s_0 = 1,
/// s_t = (1 - sum over k = 1..min(K, t) of s_(t-k) r_(t-k+1) ... r_t)+: exact given the texts,
/// which are a sample. It is attained (`docs/theory/several-rounds.md`). It bounds means over
/// the target's texts. On one text, and so in a small sample, a rule may make fewer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FewestCalls {
    /// K: the most drafts of a round; absent where there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<u64>,
    /// N / least calls: the most that a rule can have.
    pub tokens_per_call: Estimate,
    /// Least calls / N.
    pub verification_rate: Estimate,
    /// Rules that draft K tokens every round; none without a limit, and none where rows of the
    /// draft are missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub above: Vec<AboveFewest>,
}

/// The most tokens a call of any lossless rule of one path, over all rounds of a text, with so
/// many drafts a round: that of [`FewestCalls`] by its length.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SeveralRounds {
    /// K: the most drafts of a round.
    pub length: u64,
    /// N / least calls.
    pub tokens_per_call: Estimate,
}

/// A rule that drafts a fixed number of tokens, against the least calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AboveFewest {
    /// `token`, `block`, `carried`, the rule that carries to each token the probability that a
    /// draft stands there, or `carried-block`, where it was asked for and rows are whole.
    pub rule: String,
    /// N / its calls.
    pub tokens_per_call: Estimate,
    /// (Its calls - least calls) / least calls, paired by prompt.
    pub more_calls: Estimate,
}

/// What no policy can pass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bounds {
    /// The least calls of any lossless rule of one path, for each fixed length that is asked
    /// for as the most drafts of a round, and last without a limit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fewest_calls: Vec<FewestCalls>,
    /// The tokens a call of these, by length.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub several_rounds: Vec<SeveralRounds>,
    /// Of every policy with token verification, also of one who knows the text and the coins.
    pub oracle: Bound,
    /// The oracle's own rounds, where a text's last token is always the target's.
    pub oracle_to_the_end: Bound,
    /// Of policies that set a round's length when it begins, with token verification, at the
    /// given cost.
    pub coin_blind: Option<Bound>,
    /// The same with block verification.
    pub coin_blind_block: Option<Bound>,
}

/// What is best at a cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AtCost {
    /// Time of a draft step over that of a target step.
    pub cost_ratio: f64,
    /// For each kind of drafts and verifier, the fixed length that is best on one half of the
    /// prompts.
    pub chosen: Vec<Chosen>,
    /// Each of these against those before it.
    #[serde(default)]
    pub paired: Vec<Faster>,
    /// For each verifier and family whose drafts are known, the parameter that is best on one
    /// half of the prompts.
    #[serde(default)]
    pub policies: Vec<ChosenPolicy>,
    /// The oracle's speed: of token verification.
    pub oracle: Estimate,
    /// The best lengths for one who knows the text but not the coins, one a verifier.
    pub coin_blind: Vec<Bound>,
}

/// A fixed length that was chosen on some prompts, with its numbers on the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Chosen {
    /// What is drafted.
    #[serde(default)]
    pub drafts: Drafts,
    /// The verifier.
    pub verifier: String,
    /// K.
    pub parameter: u64,
    /// Prompts that it was chosen on.
    pub chosen_on: usize,
    /// Its speed on these, which flatters it.
    pub speedup_where_chosen: f64,
    /// Prompts that its speed is reported on: the others.
    pub reported_on: usize,
    /// Its speed on the others.
    pub speedup: Estimate,
}

/// How much quicker one way to draft and verify is than another, each with the length that was
/// chosen for it, on the prompts that had no say in the choice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Faster {
    /// What is drafted.
    pub drafts: Drafts,
    /// The verifier.
    pub verifier: String,
    /// K.
    pub parameter: u64,
    /// What the other drafts.
    pub over_drafts: Drafts,
    /// The other's verifier.
    pub over_verifier: String,
    /// The other's K.
    pub over_parameter: u64,
    /// The first's speed less the other's, paired by prompt; errors of measured times are not
    /// in its interval.
    pub speedup: Estimate,
}

/// A policy's parameter that was chosen on some prompts, with its numbers on the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChosenPolicy {
    /// The family.
    pub policy: String,
    /// Its parameter.
    pub parameter: Parameter,
    /// The verifier.
    pub verifier: String,
    /// Prompts that it was chosen on.
    pub chosen_on: usize,
    /// Its speed on these, which flatters it.
    pub speedup_where_chosen: f64,
    /// Prompts that its speed is reported on: the others.
    pub reported_on: usize,
    /// Its speed on the others.
    pub speedup: Estimate,
    /// That less the speed of the fixed length that was chosen on the same prompts, both on
    /// the same others; errors of measured times are not in its interval.
    pub over_fixed: Estimate,
}

/// How often `sum of min(p, q) >= 1 - sqrt(gamma H(q))` fails.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EntropyBound {
    /// The factor.
    pub gamma: f64,
    /// Who uses it.
    pub policy: String,
    /// Share of positions at which the bound is violated.
    pub violated: Estimate,
}
