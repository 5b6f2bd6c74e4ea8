//! What a report on trees says, as data: `report.json` is this, serialised.

use super::super::measured::MeasuredTexts;
use super::super::timings::Timings;
use serde::{Deserialize, Serialize};
use specgap_core::tree::{Price, SequoiaGrowMap};
use specgap_measure::Surprise;
use specgap_statistics::Estimate;
use specgap_statistics::advice::{Assumed, Change};
use std::collections::BTreeMap;

/// The version of the report's `report.json`.
pub const TREE_SCHEMA: u32 = 1;

/// Trees of drafts, replayed along logged text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TreeReport {
    /// [`TREE_SCHEMA`].
    pub schema: u32,
    /// What was measured.
    #[serde(flatten)]
    pub of: MeasuredTexts,
    /// Mean mass that the target's and the draft's rows do not list.
    pub unlisted_mass: [f64; 2],
    /// Seed of what is random.
    pub seed: u64,
    /// The times that speeds follow from, if any were given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timings: Option<Timings>,
    /// Whether the text looks like drawn from the target's rows.
    pub surprise: Surprise,
    /// The paths of every tree that is replayed, by name.
    pub trees: BTreeMap<String, Vec<Vec<usize>>>,
    /// Every tree with every draft law and verifier that it fits.
    pub results: Vec<TreeResult>,
    /// The best tree within the limits, for each draft law and verifier; the best first.
    pub best: Vec<GrownTree>,
    /// A tree that needs nothing new, beside the first of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<ReferenceTree>,
    /// The best tree of stratified drafts, by slot and depth, beside trees of Sequoia and EAGLE
    /// with as many nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub equal_nodes: Vec<EqualNodes>,
    /// Trees at one price for all nodes, if they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priced: Option<PricedTrees>,
    /// Trees that follow the text: every node whose product of q is large enough.
    #[serde(default)]
    pub dynamic: Vec<ThresholdTree>,
    /// What the children of each tree's root are worth, and what rules make of that; if it was
    /// asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slot_values: Vec<SlotValues>,
    /// Whether one position tells of the next.
    pub independence: Vec<Independence>,
    /// The engine whose defaults advice starts from, where one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<Assumed>,
    /// What a decoder could change, from what it does now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<Change>,
    /// What every metric means, by its name.
    pub definitions: BTreeMap<String, String>,
    /// What is not here, and why.
    pub left_out: Vec<String>,
}

/// A tree with a draft law and a verifier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TreeResult {
    /// The tree's name.
    pub tree: String,
    /// Its draft tokens.
    pub nodes: usize,
    /// Its levels.
    pub depth: usize,
    /// The law of each node's children.
    pub scheme: String,
    /// What verifies them.
    #[serde(deserialize_with = "specgap_core::rule::read_name")]
    pub verifier: String,
    /// `estimate`: exact given the text, which is a sample; `estimate, sampled`: with unbiased
    /// means over random draws for some ranks.
    pub kind: String,
    /// E\[tau\] of a round, averaged over every position at which the tree's depth is left.
    pub expected_accepted_length: Option<Estimate>,
    /// No lossless verifier of these drafts has a larger E\[tau\]: over the same positions, the mean
    /// of the sum over d of min(1, P(the text's d tokens are drafted) / p of them). Of whole rows,
    /// where a rule from the leaves takes the drafts and was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_accepted_length: Option<Estimate>,
    /// N / E\[target calls\].
    pub tokens_per_call: Estimate,
    /// Against the target alone, at the given times.
    pub speedup: Option<Estimate>,
    /// E\[tau\] as it would be if every level were accepted independently at the mean rates; of a
    /// rule from the leaves, at those of the rule by which its trees are grown.
    pub sequoia_prediction: f64,
}

/// Of the trees that were named the one of EAGLE, or else the best: by the prompts that choose
/// trees, which also choose its draft law and verifier. All numbers are of the other prompts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReferenceTree {
    /// The tree's name.
    pub tree: String,
    /// Its draft tokens.
    pub nodes: usize,
    /// The law of each node's children.
    pub scheme: String,
    /// What verifies them.
    #[serde(deserialize_with = "specgap_core::rule::read_name")]
    pub verifier: String,
    /// N / E\[target calls\].
    pub tokens_per_call: Estimate,
    /// Speed, at the given times.
    pub speedup: Option<Estimate>,
    /// The first tree of [`TreeReport::best`] minus this one.
    pub best_minus_this: TreeDifference,
}

/// A tree minus another one, paired by prompt.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TreeDifference {
    /// Of tokens per call.
    pub tokens_per_call: Estimate,
    /// Of speeds, at the given times.
    pub speedup: Option<Estimate>,
}

/// A tree's root, whose children are worth what is below them, with one draft law.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SlotValues {
    /// The tree's name.
    pub tree: String,
    /// The law of the children.
    pub scheme: String,
    /// v_k = 1 + E\[tau\] below child k, mean over all positions.
    pub values: Vec<f64>,
    /// The verifier that has this below: the law's best on this tree.
    pub values_by: String,
    /// What each verifier of the law makes of it at the root.
    pub rules: Vec<SlotRule>,
    /// alpha*: with the target's own law at the root no verifier accepts more; for laws of
    /// which it is known.
    pub most_accepted: Option<Estimate>,
    /// No verifier has more value there.
    pub most_value: Option<Estimate>,
}

/// A verifier at a root whose children are worth different amounts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SlotRule {
    /// The verifier.
    #[serde(deserialize_with = "specgap_core::rule::read_name")]
    pub verifier: String,
    /// Mean of the sum over k of A(k | y; n).
    pub accepted: Estimate,
    /// Mean of the sum over k of v_k A(k | y; n).
    pub value: Estimate,
}

/// The tree of every node whose product of q from the round's start on is at least a threshold,
/// another one at each start; the target follows its own token through it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThresholdTree {
    /// The least product of q.
    pub threshold: f64,
    /// Its most levels.
    pub levels: usize,
    /// E\[tau\] of a round, averaged over every position at which so many levels are left.
    pub expected_accepted_length: Option<Estimate>,
    /// N / E\[target calls\].
    pub tokens_per_call: Estimate,
    /// Mean draft tokens of a round, from rollouts; absent where the logs have none.
    pub nodes_per_round: Option<Estimate>,
    /// Against the target alone if every round took a draft step a level; where a verifying
    /// pass costs the same however large the tree is.
    pub speedup_at_least: Option<Estimate>,
}

/// The best tree of stratified drafts with so many nodes, by what its slots get at each depth.
/// Fitted on one half of the prompts, and its law and verifier chosen on it; all numbers but
/// `promised` are of the other prompts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EqualNodes {
    /// The most draft tokens.
    pub budget: usize,
    /// Its draft tokens.
    pub nodes: usize,
    /// Its levels.
    pub depth: usize,
    /// The law of each node's children.
    pub scheme: String,
    /// What verifies them.
    #[serde(deserialize_with = "specgap_core::rule::read_name")]
    pub verifier: String,
    /// E\[tau\] that the program promises, from the prompts that choose.
    pub promised: f64,
    /// E\[tau\]; none where no text has room for the tree.
    pub expected_accepted_length: Option<Estimate>,
    /// N / E\[target calls\].
    pub tokens_per_call: Estimate,
    /// EAGLE's list.
    pub paths: Vec<Vec<usize>>,
    /// Others with at most as many nodes, each with the draft law and verifier that are best on
    /// the prompts that choose.
    pub beside: Vec<BesideTree>,
}

/// A tree beside that of stratified drafts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BesideTree {
    /// `sequoia`, or the name of a tree.
    pub tree: String,
    /// Its draft tokens.
    pub nodes: usize,
    /// The law of each node's children.
    pub scheme: String,
    /// What verifies them.
    #[serde(deserialize_with = "specgap_core::rule::read_name")]
    pub verifier: String,
    /// N / E\[target calls\].
    pub tokens_per_call: Estimate,
    /// The tree of stratified drafts minus this one, paired by prompt.
    pub more: TreeDifference,
}

/// The best tree within some limits, grown on one half of the prompts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GrownTree {
    /// The law of each node's children.
    pub scheme: String,
    /// What verifies them.
    #[serde(deserialize_with = "specgap_core::rule::read_name")]
    pub verifier: String,
    /// Most draft tokens, levels and children.
    pub limits: [usize; 3],
    /// Prompts that it was chosen on.
    pub chosen_on: usize,
    /// Prompts that its numbers are from: the others.
    pub reported_on: usize,
    /// EAGLE's list.
    pub paths: Vec<Vec<usize>>,
    /// The same as Sequoia's engine reads it.
    pub growmap: SequoiaGrowMap,
    /// E\[tau\] on the prompts that it was chosen on, which flatters it.
    pub expected_accepted_length_where_chosen: f64,
    /// N / E\[target calls\] on the prompts that choose, by which it was chosen where no times are given.
    #[serde(default)]
    pub tokens_per_call_where_chosen: f64,
    /// E\[tau\] on the others.
    pub expected_accepted_length: Estimate,
    /// No lossless verifier of its drafts has a larger one there; as in [`TreeResult`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_accepted_length: Option<Estimate>,
    /// N / E\[target calls\] on the others.
    pub tokens_per_call: Estimate,
    /// Speed on the prompts that it was chosen on.
    pub speedup_where_chosen: Option<f64>,
    /// Speed on the others.
    pub speedup: Option<Estimate>,
    /// The trees that it grew through, each within the next; with times, the quickest of them
    /// is the one that is chosen.
    pub by_budget: Vec<ByBudget>,
    /// What each node of the chosen tree is worth, on the prompts that report.
    pub drawn: Drawn,
    /// The tree of Sequoia's dynamic program within the same limits.
    pub sequoia: Option<SequoiaTree>,
    /// This tree minus the first of [`TreeReport::best`]; absent of that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minus_best: Option<TreeDifference>,
}

/// A tree on the way to the largest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ByBudget {
    /// Its draft tokens.
    pub nodes: usize,
    /// Its levels.
    pub depth: usize,
    /// What each token more than in the tree before adds to E\[tau\], as the prompts that choose promise.
    pub last_gain: f64,
    /// E\[tau\] on the prompts that choose.
    pub expected_accepted_length_where_chosen: f64,
    /// E\[tau\] on the others.
    pub expected_accepted_length: Estimate,
    /// N / E\[target calls\] on the others.
    pub tokens_per_call: Estimate,
    /// Speed on the others.
    pub speedup: Option<Estimate>,
}

/// The nodes of a tree with their rates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Drawn {
    /// In the order of the paths.
    pub nodes: Vec<NodeRate>,
}

/// How often a round gets to a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodeRate {
    /// The node.
    pub path: Vec<usize>,
    /// Mean probability that a round gets there.
    pub reached: f64,
    /// The same of rounds that got to its parent.
    pub accepted: f64,
}

/// What Sequoia's dynamic program chooses, and what becomes of its prediction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SequoiaTree {
    /// EAGLE's list.
    pub paths: Vec<Vec<usize>>,
    /// The positional vector that it was chosen by.
    pub vector: Vec<f64>,
    /// E\[tau\] that the program promises, from the prompts that choose.
    pub promised: f64,
    /// E\[tau\] of its tree if levels were independent, at the mean rates of the prompts that
    /// report.
    pub predicted: f64,
    /// E\[tau\] of its tree on these prompts.
    pub expected_accepted_length: Estimate,
    /// That over `predicted`: 1 if levels were independent.
    pub ratio: f64,
}

/// Whether what is accepted at one position tells of the next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Independence {
    /// The law of a node's children.
    pub scheme: String,
    /// What verifies them.
    #[serde(deserialize_with = "specgap_core::rule::read_name")]
    pub verifier: String,
    /// Children of every node.
    pub drafts: usize,
    /// The positional vector: mean share of each child over all positions.
    pub vector: Vec<f64>,
    /// By level: the share of rounds that accept a child there, of those that got to it, in a
    /// tree with as many children everywhere; the same number at all levels if levels were
    /// independent.
    pub by_level: Vec<f64>,
    /// Correlation of the accepted shares of neighbouring positions.
    pub correlation: Option<f64>,
    /// The same within prompts: after each prompt's own mean is taken out.
    pub correlation_within_prompts: Option<f64>,
}

/// Trees of stratified drafts at one price for all nodes. Fitted on one half of the prompts; all else
/// is of the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PricedTrees {
    /// What a drafter reads: at the price of the budget, or of the times.
    pub price: Price,
    /// Whether times set it.
    pub is_timed: bool,
    /// Prompts that it was fitted on.
    pub chosen_on: usize,
    /// Prompts that the rest is from: the others.
    pub reported_on: usize,
    /// At that price, of rounds from every position: by level, how many nodes along the text get 0, 1,
    /// 2, .. children.
    pub children: Vec<Vec<usize>>,
    /// By price, falling.
    pub at: Vec<AtPrice>,
}

/// Trees at a price.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AtPrice {
    /// Accepted tokens that a draft token has to bring.
    pub price: f64,
    /// Draft tokens of a round with room for all levels. Nodes along the text stand for those of like
    /// chances that were refused.
    pub nodes: Estimate,
    /// No lossless verifier of these drafts has a larger E\[tau\]; as in [`TreeResult`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_accepted_length: Option<Estimate>,
    /// Speed with the first rule at the given times, a pass having so many draft tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speedup: Option<Estimate>,
    /// By verifier.
    pub by: Vec<PricedBy>,
}

/// Trees at a price with a verifier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PricedBy {
    /// The verifier.
    #[serde(deserialize_with = "specgap_core::rule::read_name")]
    pub verifier: String,
    /// E\[tau\] of a round, averaged over every position at which so many levels are left.
    #[serde(default)]
    pub expected_accepted_length: Option<Estimate>,
    /// N / E\[target calls\].
    pub tokens_per_call: Estimate,
    /// Others with as many nodes in the mean.
    pub beside: Vec<BesidePrice>,
}

/// Other trees beside those at a price.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BesidePrice {
    /// `one shape`: the best by slot and depth, with the same drafts and verifier, two sizes in turn so
    /// that their mean is the same; `sequoia`: Sequoia's, with its own drafts and verifier, as well;
    /// `likeliest`: every token whose product of q reaches a threshold, with `exact-match`.
    pub trees: String,
    /// Draft tokens of a round.
    pub nodes: Estimate,
    /// N / E\[target calls\].
    pub tokens_per_call: Estimate,
    /// The trees at one price minus these, of tokens per call, paired by prompt.
    pub more: Estimate,
}
