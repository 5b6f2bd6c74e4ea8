//! What a gap report says, as data: `report.json` is this, serialised.

use super::fit::DraftFit;
use serde::{Deserialize, Serialize};
use specgap_log::log::{FileDigest, Metadata, MissingMass};
use specgap_number::known::Kind;
use specgap_sampling::{CutOrder, Cuts};
use specgap_statistics::Estimate;
use specgap_statistics::advice::{Assumed, Change, NOT_DRAWN};
use std::collections::BTreeMap;

/// The version of `report.json`.
pub const SCHEMA: u32 = 1;

/// The acceptance and gap report of one or more logs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GapReport {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `specgap`, with its version.
    pub tool: String,
    /// The command that made it, without paths of the machine.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// The seed of whatever is random.
    pub seed: u64,
    /// Where the rows come from.
    pub logs: Vec<LogSummary>,
    /// N, over all logs.
    pub positions: usize,
    /// Independent units of the intervals: prompts, or positions where a log
    /// does not name prompts.
    pub clusters: usize,
    /// `prompt` or `position`.
    pub cluster_unit: String,
    /// What every metric means, by its name.
    pub definitions: BTreeMap<String, String>,
    /// Sum over tokens of min(p, q), a temperature each.
    pub overlap: Vec<OverlapRow>,
    /// One entry for each (temperature, drafts, scheme).
    pub cells: Vec<Cell>,
    /// The engine that advice starts from, where one is known; else that of every engine is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<Assumed>,
    /// What an engine could change, from what it does now: one draft, and several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<Change>,
    /// Differences between verifiers on the same positions.
    pub comparisons: Vec<Comparison>,
    /// What engines do with one draft, a temperature each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub one_draft: Vec<OneDraft>,
    /// What was cut of both models' rows at every temperature, if anything was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served: Option<Cuts>,
    /// The rates with other rows of the draft, if such were asked for: one entry for each
    /// (temperature, draft's temperature).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redrafted: Vec<Redrafted>,
    /// How far the published formula for drafts without replacement is off.
    pub published_formula: Vec<FormulaError>,
    /// How well the optimal plans do that were solved, at some positions or at all.
    #[serde(default)]
    pub plans: Vec<PlanRow>,
    /// What the slow way says of rates that were computed the fast way, at some positions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub audits: Vec<RateAudit>,
    /// Bounds on blocks, from the tokens that were sampled.
    pub blocks: Vec<BlockEstimate>,
    /// Rounds of drafted chains along the text that was sampled, by its temperature.
    #[serde(default)]
    pub rounds: Vec<ChainRounds>,
    /// What several draft paths could give, where the log has such paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft_paths: Option<DraftPaths>,
    /// A draft step's time over a target step's, if it was given; what acceptance is worth in
    /// speed is told at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_ratio: Option<f64>,
    /// Measured times, if they were given; then speed is told at them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub costs: Option<CallCosts>,
    /// Where in the text the gap lies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strip: Option<Strip>,
    /// Rules of the caller's own that were measured, which are in no table of specgap.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_rules: Vec<OwnRuleRow>,
    /// Draft laws of the caller's own that were measured, which are in no table of specgap.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_laws: Vec<OwnLawRow>,
    /// What was left out, and why.
    pub left_out: Vec<String>,
}

/// A draft law of the caller's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OwnLawRow {
    /// What it is called in this report.
    pub name: String,
    /// What it is made as: a law of the table of laws, by which rules are lossless for it or not.
    /// Of a law that can only be drawn from, nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<String>,
    /// The numbers of drafts that it has; none if it has any.
    pub drafts: Vec<usize>,
    /// What it drafts, in its author's words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub words: String,
    /// What tells it from other laws of its name, if its author says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// A rule of the caller's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OwnRuleRow {
    /// What it is called in this report.
    pub name: String,
    /// How its drafts are drawn.
    pub scheme: String,
    /// What it does, in its author's words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub words: String,
    /// What tells it from other rules of its name, if its author says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// What is said of a rule of the caller's own, which need not be lossless.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OwnNumbers {
    /// How often it accepts a draft by its own account, if it says so everywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub algorithmic: Option<Estimate>,
    /// Half the sum over tokens of |law of the output - p|, the largest of any position, if the
    /// rule says it everywhere: of a lossless rule what rounding leaves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_variation_max: Option<f64>,
    /// Its mean over positions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_variation_mean: Option<f64>,
    /// Of a rule that was drawn at some positions, half the 95% interval that its draws alone leave
    /// of its acceptance, a Monte Carlo error: the interval over prompts holds it too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<f64>,
}

/// Times of a decoder's parts, in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallCosts {
    /// The file that they are from, without the folders around it.
    pub file: String,
    /// A step of the target that decodes alone.
    pub target_step: f64,
    /// By number of drafts of one position.
    pub calls: Vec<CallCost>,
    /// Of verifiers, where the file has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleCost>,
}

/// What a call with n drafts of one position takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallCost {
    /// n.
    pub drafts: usize,
    /// A draft step, a pass of the target over n + 1 tokens, and the rest of a round.
    pub seconds: f64,
}

/// What a verifier takes besides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RuleCost {
    /// The verifier's name.
    pub name: String,
    /// A call.
    pub seconds: f64,
}

/// One log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogSummary {
    /// Its file or folder, without the folders around it.
    pub name: String,
    /// N.
    pub positions: usize,
    /// V.
    pub vocabulary: usize,
    /// `full` or `top-heavy`.
    pub rows: String,
    /// The most tokens that a row lists.
    pub listed: usize,
    /// Whether target and draft list tokens of their own, not the same ones.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_lists: bool,
    /// The entries' type in the target's and the draft's rows.
    pub dtypes: [String; 2],
    /// Mass that top-heavy rows do not list, a temperature each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rest: Vec<RestMass>,
    /// Tensors in its files that specgap does not know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored_tensors: Vec<String>,
    /// Tensors of what an engine did, `drafts` and `output`, that are checked but that no
    /// number of a report is made of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub engine_tensors: Vec<String>,
    /// Texts that repeat themselves, if any does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repetition: Option<Repetition>,
    /// Whether its text looks drawn from the target's rows, at the temperature and with the
    /// cuts that it was drawn with, if it says which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surprise: Option<Surprise>,
    /// Whether its text is there, and nothing says how it was drawn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsaid_temperature: bool,
    /// Whether the draft's rows are about their own positions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fit: Option<DraftFit>,
    /// Whether it has masks, which are applied to the target's rows and not to the draft's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub masked: bool,
    /// Positions whose index stands before them in the same text already.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub repeated_positions: usize,
    /// Positions that are not measured, because the draft has no row there.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub without_draft: usize,
    /// Which of the draft's rows are measured, where it has one for each depth of a round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<OfDepth>,
    /// Mass that lists of probabilities leave out, where the log does not give it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_mass: Option<MissingMass>,
    /// What was measured, by its contents: its files, or arrays in memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileDigest>,
    /// What it says of itself, without the texts of tokens.
    pub metadata: Metadata,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
pub(super) fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// How much of a log's text repeats itself: positions in stretches of at least 16 tokens that
/// have a piece of at most 32 at least three times over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Repetition {
    /// Texts of the log.
    pub texts: usize,
    /// Texts with such a stretch.
    pub looping_texts: usize,
    /// Positions in such stretches.
    pub looping_positions: usize,
}

/// How surprising a text's tokens are under the rows they are said to be drawn from. Tokens
/// that a row lists whichever came out count by themselves, all others as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Surprise {
    /// Mean of -ln p(y) over the text.
    pub observed: f64,
    /// What the rows expect: their mean entropy.
    pub expected: f64,
    /// The difference in standard errors; a standard normal for text drawn from the rows.
    /// `null` where the rows list nothing but the text's own tokens, so that nothing can be
    /// told.
    pub z: Option<f64>,
}

impl Surprise {
    /// The z of text that was not drawn from its rows: then nothing is advised.
    #[must_use]
    pub fn not_drawn(&self) -> Option<f64> {
        self.z.filter(|z| z.abs() > NOT_DRAWN)
    }
}

/// Mass outside the listed tokens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RestMass {
    /// At this temperature.
    pub temperature: f64,
    /// Of the target, mean over positions.
    pub target_mean: f64,
    /// Of the target, at most.
    pub target_max: f64,
    /// Of the draft, mean over positions.
    pub draft_mean: f64,
    /// Of the draft, at most.
    pub draft_max: f64,
}

/// Three ways of engines with one draft, on the same positions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OneDraft {
    /// At this temperature.
    pub temperature: f64,
    /// p of the draft's likeliest token: it is drafted, taken for a one-hot draft, and kept
    /// with p.
    pub one_hot: Estimate,
    /// Sum of min(p, q): the draft is sampled, and kept with min(1, p/q).
    #[serde(alias = "sampled")]
    pub token: Estimate,
    /// Sum of p q: the draft is sampled, and has to be the target's own draw.
    #[serde(alias = "strict")]
    pub exact_match: Estimate,
    /// How well they are known.
    pub kind: Kind,
    /// The widest enclosure of any position.
    pub width_max: f64,
    /// Paired differences: one-hot minus token, one-hot minus exact-match, token minus
    /// exact-match.
    pub differences: Vec<Comparison>,
}

/// Rates of the target's row as it is, and of the draft's at another temperature or cut.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Redrafted {
    /// Of the target.
    pub temperature: f64,
    /// Of the draft.
    pub draft_temperature: f64,
    /// The draft's most probable tokens that are left, if it is cut to some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft_top_k: Option<usize>,
    /// The mass of the fewest tokens that are left behind that, if it is cut so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft_top_p: Option<f64>,
    /// The share of the largest that tokens have that are left behind that, if it is cut so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft_min_p: Option<f64>,
    /// In which order these are done, if it is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft_cut_order: Option<CutOrder>,
    /// Sum of min(p, q).
    pub overlap: KnownEstimate,
    /// One for each (drafts, scheme).
    pub cells: Vec<RedraftedCell>,
}

/// One (drafts, scheme) of a [`Redrafted`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RedraftedCell {
    /// n.
    pub drafts: usize,
    /// How the drafts are drawn.
    pub scheme: String,
    /// alpha*.
    pub optimal_acceptance_rate: KnownEstimate,
    /// Verifiers that are lossless under the scheme, and behind them rules of the caller's own.
    pub verifiers: Vec<RedraftedVerifier>,
}

/// One verifier of a [`RedraftedCell`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RedraftedVerifier {
    /// The verifier's name.
    #[serde(deserialize_with = "specgap_core::rule::read_name")]
    pub name: String,
    /// How often its output is one of the drafts.
    pub acceptance: KnownEstimate,
}

/// A mean, and how well it is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KnownEstimate {
    /// The mean.
    #[serde(flatten)]
    pub estimate: Estimate,
    /// How well it is known: `exact`, `enclosed`, `monte-carlo`, `truncated` or `estimate`.
    pub kind: Kind,
    /// The widest enclosure of any position.
    pub width_max: f64,
}

/// Sum of min(p, q).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OverlapRow {
    /// At this temperature.
    pub temperature: f64,
    /// The mean.
    #[serde(flatten)]
    pub estimate: Estimate,
    /// `enclosed`.
    pub kind: Kind,
    /// The widest enclosure of any position.
    pub width_max: f64,
    /// Values at fixed shares of the positions.
    pub quantiles: BTreeMap<String, f64>,
    /// Sum of min(p, q) from the text's tokens y, if they were drawn at this temperature: the mean of
    /// min(1, q(y)/p(y)), which has no bias and needs no other token of a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub along_text: Option<Estimate>,
}

/// One (temperature, drafts, scheme).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cell {
    /// Applied to target and draft alike.
    pub temperature: f64,
    /// n.
    pub drafts: usize,
    /// How the drafts are drawn.
    pub scheme: String,
    /// alpha*.
    pub optimal_acceptance_rate: Optimum,
    /// Verifiers that are lossless under the scheme, and behind them rules of the caller's own.
    pub verifiers: Vec<VerifierRow>,
}

/// alpha* over the positions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Optimum {
    /// The mean.
    #[serde(flatten)]
    pub estimate: Estimate,
    /// `exact`, `enclosed`, `monte-carlo`, or `truncated` where rows list only their
    /// most probable tokens.
    pub kind: Kind,
    /// The widest enclosure of any position.
    pub width_max: f64,
    /// Why it is the optimum.
    pub status: String,
    /// Values at fixed shares of the positions.
    pub quantiles: BTreeMap<String, f64>,
}

impl Optimum {
    /// Returns whether anything is known of it: of a law that can only be drawn from nothing is.
    pub fn is_known(&self) -> bool {
        self.width_max < 1.0
    }
}

/// One verifier in a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VerifierRow {
    /// The verifier's name.
    #[serde(deserialize_with = "specgap_core::rule::read_name")]
    pub name: String,
    /// How often its output is one of the drafts.
    pub acceptance: Estimate,
    /// `exact`, `enclosed`, `monte-carlo`, `truncated` or `estimate`.
    pub kind: Kind,
    /// The widest enclosure of any position.
    pub width_max: f64,
    /// alpha* minus its acceptance; below 0 only of a rule of the caller's own that is not lossless.
    pub gap: Gap,
    /// Two-sided p-value of Student's t over clusters for a mean gap of 0; 1 if the
    /// gap is 0 everywhere. A gap cannot be negative, so that this tests nothing that
    /// could be otherwise, and no page shows it; the field stays for those who read it.
    pub p_value: f64,
    /// Of a rule of the caller's own, whether it is lossless.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<OwnNumbers>,
}

impl VerifierRow {
    /// Returns what draws leave of a rule of the caller's own that was drawn.
    pub fn noise(&self) -> Option<f64> {
        self.own.as_ref()?.noise
    }

    /// Returns whether it was simulated, at some positions at least.
    pub fn is_simulated(&self) -> bool {
        self.kind == Kind::MonteCarlo || self.noise().is_some()
    }
}

/// alpha* minus acceptance over the positions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gap {
    /// The mean.
    #[serde(flatten)]
    pub estimate: Estimate,
    /// Values at fixed shares of the positions.
    pub quantiles: BTreeMap<String, f64>,
    /// The largest gap of any position.
    pub max: f64,
    /// Positions with a gap in each bin of [`HISTOGRAM_EDGES`].
    pub histogram: Vec<u64>,
}

/// Edges of the bins of a gap histogram: bin k holds gaps from edge k (at
/// least) to edge k + 1 (below); the last bin holds its upper edge too.
pub const HISTOGRAM_EDGES: [f64; 15] = [
    -1.0, 1e-6, 1e-5, 1e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0,
];

/// A paired difference of two verifiers' acceptance on the same positions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// Applied to target and draft alike.
    pub temperature: f64,
    /// n.
    pub drafts: usize,
    /// `scheme/verifier` whose acceptance is subtracted from.
    #[serde(deserialize_with = "specgap_core::rule::read_name")]
    pub first: String,
    /// `scheme/verifier` that is subtracted.
    #[serde(deserialize_with = "specgap_core::rule::read_name")]
    pub second: String,
    /// Mean difference.
    pub difference: Estimate,
    /// `enclosed`, `monte-carlo`, `truncated` or `estimate`.
    pub kind: Kind,
    /// The widest enclosure of any position.
    pub width_max: f64,
    /// Two-sided p-value (Student's t over clusters).
    pub p_value: f64,
    /// The p-value after Holm's correction for all comparisons of the report.
    pub p_holm: f64,
}

/// The published optimum without replacement against the sequential law's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FormulaError {
    /// Applied to target and draft alike.
    pub temperature: f64,
    /// n.
    pub drafts: usize,
    /// Published value minus the value for the sequential law, mean.
    pub difference: Estimate,
    /// How well it is known, in the words of [`Optimum::kind`].
    pub kind: Kind,
    /// The widest enclosure of any position.
    pub width_max: f64,
    /// The largest at any position.
    pub max: f64,
    /// The smallest at any position.
    pub min: f64,
}

/// The optimal plans of a cell, where they were solved, and at some of these positions measured
/// by a second integral.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanRow {
    /// Applied to target and draft alike.
    pub temperature: f64,
    /// n.
    pub drafts: usize,
    /// How the drafts are drawn.
    pub scheme: String,
    /// How many positions they were solved at, those where fast rates are audited: a check, as
    /// their rate is alpha* by a theorem. Absent where all were solved for their rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub positions: Option<u64>,
    /// The most that a plan's acceptance is below alpha*.
    pub shortfall_max: f64,
    /// The largest sum over tokens of |output law - p|, at the positions where fast rates are
    /// audited too, and at all with `--rrs-wo enclosed`; none of a part of a log without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub law_l1_max: Option<f64>,
    /// How many positions these are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub laws_measured: Option<u64>,
    /// Wall-clock seconds of one solve, mean over positions; only where times
    /// were asked for, since they differ from run to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_mean: Option<f64>,
}

/// A verifier's fast rate against its slow one, at positions that are the same however often
/// and wherever the log is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RateAudit {
    /// Applied to target and draft alike.
    pub temperature: f64,
    /// n.
    pub drafts: usize,
    /// How the drafts are drawn.
    pub scheme: String,
    /// Whose rate it is.
    #[serde(deserialize_with = "specgap_core::rule::read_name")]
    pub verifier: String,
    /// Positions where both were computed.
    pub positions: u64,
    /// The largest difference of the fast rate to the middle of the slow one's bounds.
    pub difference_max: f64,
    /// The mean of these differences.
    pub difference_mean: f64,
    /// The widest bounds of the slow rate: a smaller difference says nothing.
    pub width_max: f64,
    /// Positions where the fast rate is outside of these bounds.
    pub outside: u64,
    /// What the slow rate's bounds are: `enclosed` or `monte-carlo`.
    pub kind: Kind,
}

/// Bounds on a block of draft tokens, estimated along sampled text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlockEstimate {
    /// The temperature the tokens were sampled at; none other can be estimated.
    pub temperature: f64,
    /// L.
    pub length: usize,
    /// K.
    pub drafts: usize,
    /// What it is: `block-optimum` (K = 1) or `lemma-5.1`, of the length that was asked for; of every
    /// length `token`, `block` and `greedy-block` (K = 1), `lower-bound` and `upper-bound`.
    pub metric: String,
    /// Expected accepted tokens, bonus excluded.
    pub expected_accepted_length: Estimate,
    /// `estimate`: an average over sampled blocks, whose error is the interval's.
    pub kind: Kind,
    /// Blocks that the mean is over.
    pub blocks: usize,
}

/// What several draft paths could give in a round that starts with the target's own law, at the
/// temperature of the text; `specgap paths` tells what verifiers get of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DraftPaths {
    /// The temperature at which text and paths were drawn; none other can be told.
    pub temperature: f64,
    /// L: tokens of a path.
    pub length: usize,
    /// Starts of blocks along the text, over which accepted lengths are means.
    pub starts: usize,
    /// Of these, the ones from which draft paths were logged.
    pub anchors: usize,
    /// The fewest draft paths of such a start.
    pub logged_paths: usize,
    /// One for each K.
    pub by_drafts: Vec<PossibleWithPaths>,
}

/// Bounds of the best verifier of K draft paths, in a round that starts with the target's own law.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PossibleWithPaths {
    /// K.
    pub drafts: usize,
    /// No lossless verifier accepts more on average in such a round; none from one prompt.
    pub upper_bound: Option<Estimate>,
    /// What it is made of: `several paths` or `pooled paths`.
    pub form: Option<String>,
    /// The value of Lemma 5.1: the best verifier accepts at least as much.
    pub lower_bound: Estimate,
}

/// A depth of rounds, of drafts whose rows depend on where their round began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OfDepth {
    /// From 1: the row of a position is the one for a round's depth-th token.
    pub depth: usize,
    /// K: how many depths the log has.
    pub of: usize,
}

/// Token, block and greedy-block verification of drafted chains, along text that was
/// sampled from the target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChainRounds {
    /// The temperature the tokens were sampled at; none other can be told.
    pub temperature: f64,
    /// Texts, one a prompt.
    pub texts: usize,
    /// Their tokens.
    pub tokens: usize,
    /// Tokens that their rows do not list: their q/p is that of all that are not listed.
    pub unlisted: usize,
    /// By length of the chain.
    pub lengths: Vec<RoundsOfLength>,
}

/// Rounds with so many drafts. Every number is exact given the text, which is a sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RoundsOfLength {
    /// Drafts of a round.
    pub length: usize,
    /// Positions over which accepted lengths are means: all, the same for every length. Where
    /// fewer tokens are left than a round drafts, it drafts these.
    pub starts: usize,
    /// E\[tau\] of a round with token verification.
    pub token: Estimate,
    /// E\[tau\] of a round with block verification.
    pub block: Estimate,
    /// E\[tau\] of a round with greedy block verification.
    pub greedy_block: Estimate,
    /// Block less token, paired by prompt; never negative at any text.
    pub block_over_token: Estimate,
    /// Greedy block less block, paired by prompt; never negative at any text.
    pub greedy_block_over_block: Estimate,
    /// Tokens for each target call, rounds replayed from each text's first token.
    pub token_per_call: Estimate,
    /// Tokens for each target call with block verification.
    pub block_per_call: Estimate,
    /// The difference of the two, paired by prompt.
    pub block_over_token_per_call: Estimate,
}

/// Tokens with the gap at each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Strip {
    /// Applied to target and draft alike.
    pub temperature: f64,
    /// n.
    pub drafts: usize,
    /// How the drafts are drawn.
    pub scheme: String,
    /// Whose gap it is.
    #[serde(deserialize_with = "specgap_core::rule::read_name")]
    pub verifier: String,
    /// The texts.
    pub texts: Vec<StripText>,
}

/// One generated text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StripText {
    /// The prompt's name.
    pub prompt: String,
    /// Its tokens.
    pub tokens: Vec<StripToken>,
}

/// One token, and how the draft would have done there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StripToken {
    /// What the token looks like.
    pub text: String,
    /// alpha* at its position.
    pub optimum: f64,
    /// The verifier's acceptance.
    pub acceptance: f64,
}
