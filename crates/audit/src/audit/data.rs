//! What an audit is asked and what it finds.

use super::beside::{Cause, CountsReport, Surprise};
use super::evidence::book::Part;
use super::model::rule::Rule;
use super::outcome::Outcome;
use serde::{Deserialize, Serialize};
use specgap_base::{names, read_by_name};
use specgap_log::log::{FileDigest, MissingRounds, RowsFrom};
use specgap_sampling::{CutOrder, Cuts};
use std::f64::consts::LN_10;

/// How an engine claims to sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Claimed {
    /// The temperature of the target.
    pub temperature: f64,
    /// The temperature of the draft.
    pub draft_temperature: f64,
    /// Only the k likeliest tokens.
    pub top_k: Option<usize>,
    /// Of these, the fewest likeliest that hold this much.
    pub top_p: Option<f64>,
    /// Of these, those of at least this share of the largest probability.
    pub min_p: Option<f64>,
    /// In which order these and the temperature are applied; the default where it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_order: Option<CutOrder>,
    /// The draft's row is cut in the same way.
    pub draft_cut: bool,
    /// The draft's row is cut to its k likeliest tokens, whatever the target's is cut to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft_top_k: Option<usize>,
    /// Of these, to the fewest likeliest that hold this much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft_top_p: Option<f64>,
    /// Of these, to those of at least this share of the largest probability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft_min_p: Option<f64>,
    /// The draft's row is masked by the log's `allowed`, as the target's is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub draft_mask: bool,
}

impl Claimed {
    /// Whole rows at a temperature.
    pub fn at(temperature: f64) -> Self {
        Self {
            temperature,
            draft_temperature: temperature,
            ..Self::default()
        }
    }

    /// Returns what is kept of the target's row.
    pub(crate) fn kept(&self) -> Cuts {
        Cuts {
            top_k: self.top_k,
            top_p: self.top_p,
            min_p: self.min_p,
            cut_order: self.cut_order,
        }
    }

    /// Tells whether the order of the cuts can matter.
    pub fn order_matters(&self) -> bool {
        self.kept().depend_on_order(self.temperature)
    }

    pub(crate) fn cuts(&self) -> bool {
        self.top_k.is_some() || self.top_p.is_some() || self.min_p.is_some()
    }

    /// Returns what is claimed of the draft's row by itself; nothing where it is whole.
    pub(crate) fn of_draft(&self) -> Option<Self> {
        let own = Self {
            top_k: self.draft_top_k,
            top_p: self.draft_top_p,
            min_p: self.draft_min_p,
            cut_order: self.cut_order,
            ..Self::at(self.draft_temperature)
        };
        if own.cuts() {
            return Some(own);
        }
        (self.draft_cut && self.cuts()).then(|| Self {
            temperature: self.draft_temperature,
            ..self.clone()
        })
    }
}

/// What is said of the random numbers of requests, beside what a log says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Seeds {
    /// Each request has numbers of its own.
    Fresh,
    /// Any two may have the same.
    Shared,
}

names!(Seeds: Fresh "fresh", Shared "shared");

read_by_name!(Seeds, |text, _all| format!(
    "{text:?} is neither fresh nor shared"
));

/// How the capital of a log's requests was put together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RequestsReport {
    /// Texts of the log: a text begins with another prompt, another seed, or an earlier place.
    pub texts: usize,
    /// Texts whose random numbers are taken for their own.
    pub fresh: usize,
    /// Texts that may share their numbers with others, over which e-values are averaged.
    pub averaged: usize,
    /// What this rests on: `fresh` or `shared`, as the command says; `log`, the log's seeds; or
    /// `unknown`.
    pub seeds: String,
    /// Texts that repeat another one's tokens (of records: ranks), where independent draws would do
    /// so with a probability below 1e-6 in all.
    pub repeated: usize,
}

/// What to audit.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// What the engine says that it does.
    pub rule: Rule,
    /// How it says that it samples; what the log's metadata says, if absent.
    pub claimed: Option<Claimed>,
    /// How much the mean of a score may differ before it counts: eps.
    pub tolerance: f64,
    /// An honest engine fails a part with at most this probability.
    pub alpha: f64,
    /// Tokens that end a text, beside those that the log's metadata names.
    pub stop: Vec<u32>,
    /// What is known of the random numbers of requests; what the log says, if absent.
    pub seeds: Option<Seeds>,
    /// Seed of the simulations that minimum N comes from.
    pub seed: u64,
    /// The standard deviation of another pass's noise on each logit; if absent, 0 where the log
    /// says that its rows are the engine's, and [`Settings::NOISE`] where it does not.
    pub noise: Option<f64>,
    /// A departure of this total variation has to be excluded before anything is as claimed.
    pub exclude: f64,
    /// Another lossless rule than the claimed one fails, too.
    pub strict: bool,
}

impl Settings {
    /// eps if nothing else is said.
    pub const TOLERANCE: f64 = 0.002;
    /// The noise of rows that another pass of the models made.
    pub const NOISE: f64 = 0.1;
    /// What has to be excluded if nothing else is said.
    pub const EXCLUDE: f64 = 0.05;
    /// alpha if nothing else is said.
    pub const ALPHA: f64 = 1e-6;

    /// The usual settings for a rule.
    pub fn new(rule: Rule) -> Self {
        Self {
            rule,
            claimed: None,
            tolerance: Self::TOLERANCE,
            alpha: Self::ALPHA,
            stop: Vec::new(),
            seeds: None,
            seed: 0,
            noise: None,
            exclude: Self::EXCLUDE,
            strict: false,
        }
    }
}

/// Something that may never happen, and how often it did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HardCheck {
    /// What it is, in words: its name in reports.
    pub name: String,
    /// How often it happened.
    pub violations: u64,
    /// The first position of the log (or line of a record file, from 0) where it did.
    pub first_position: Option<usize>,
    /// What it is.
    pub words: String,
}

/// A bug or a score with its evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Suspect {
    /// The name of a bug, or of a score.
    pub name: String,
    /// What it says of the engine.
    pub words: String,
    /// What to look at.
    pub cure: String,
    /// log10 of its own e-value.
    pub log10_e_value: f64,
    /// It is a bug of the table; else a score that any of several could move.
    pub is_bug: bool,
}

/// Some steps that e-BH singles out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlaggedGroup {
    /// `depth` (position in the draft), `prompt` or `batch-size`.
    pub family: String,
    /// Which of them.
    pub group: i64,
    /// Steps in it.
    pub steps: u64,
    /// log10 of its e-value.
    pub log10_e_value: f64,
}

/// The verdict on a part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PartReport {
    /// `draft-law`, `acceptance`, `correction` or `target-law`.
    pub part: String,
    /// The verdict.
    pub verdict: Outcome,
    /// Steps that it was tested on.
    pub steps: u64,
    /// The e-value: at least 1/alpha refutes. Cut at 1e300.
    pub e_value: f64,
    /// Its logarithm to base 10, not cut.
    pub log10_e_value: f64,
    /// A departure of this total variation would have been found with probability 99% at
    /// least; `None` if none would.
    pub smallest_tv_excluded: Option<f64>,
    /// The name of what fits a refutation best.
    pub suspect: Option<String>,
    /// What has evidence, strongest first.
    pub evidence: Vec<Suspect>,
    /// Groups in which it fails, by e-BH.
    pub groups: Vec<FlaggedGroup>,
    /// Why it is not testable.
    pub reason: Option<String>,
}

impl PartReport {
    /// A part with ln of its e-value, which refutes it or not; or why it is not testable.
    pub(crate) fn new(
        part: Part,
        steps: u64,
        log: f64,
        refutes: bool,
        reason: Option<String>,
    ) -> Self {
        let verdict = match (&reason, refutes) {
            (Some(_), _) => Outcome::NotTestable,
            (None, true) => Outcome::Refuted,
            (None, false) => Outcome::Consistent,
        };
        Self {
            part: part.name().to_owned(),
            verdict,
            steps,
            e_value: log.min(300.0 * LN_10).exp(),
            log10_e_value: log / LN_10,
            smallest_tv_excluded: None,
            suspect: None,
            evidence: Vec::new(),
            groups: Vec::new(),
            reason,
        }
    }

    pub(crate) fn is_refuted(&self) -> bool {
        self.verdict == Outcome::Refuted
    }
}

/// What all evidence says together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Conclusion {
    /// Nothing was found, and what is excluded would have been.
    AsClaimed,
    /// Outputs follow p, by another lossless rule than the claimed one.
    LosslessOther,
    /// Outputs do not follow p.
    Lossy,
    /// Not the rule, and whether outputs follow p is not decided.
    NotTheRule,
    /// Nothing was found, and too little would have been.
    #[default]
    Undecided,
}

impl Conclusion {
    /// Tells whether nothing was found against the claim.
    pub(crate) fn stands(self) -> bool {
        matches!(self, Self::AsClaimed | Self::Undecided)
    }
}

/// A departure that a log would have shown, or would not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Excluded {
    /// The name of the cause.
    pub name: String,
    /// Its size.
    pub fit: serde_json::Map<String, serde_json::Value>,
    /// What it says of the engine.
    pub words: String,
    /// How far it moves a step's output from p, in total variation: a mean over the log's rows,
    /// estimated from its tokens.
    pub tv: f64,
    /// Tokens until it would be refuted with probability 99%: an estimate from the same.
    pub tokens: Option<u64>,
    /// So many tokens are there.
    pub found: bool,
}

/// What was won against the claim.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Capital {
    /// log10 of the e-value against the rule: drafts, acceptance, corrections.
    pub log10_rule: f64,
    /// The same against p as the law of what comes out.
    pub log10_outputs: f64,
    /// What either has to reach.
    pub log10_needed: f64,
    /// log10 of the evidence that numbers come again: in rounds of a text, and in texts.
    pub log10_rounds_share: f64,
    /// In texts.
    pub log10_texts_share: f64,
}

/// One tampered log of the negative control.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tampering {
    /// The bug or hard check.
    pub name: String,
    /// What was done to the log.
    pub words: String,
    /// Whether the audit refuted it; `None` where it cannot be done to this log.
    pub refuted: Option<bool>,
    /// Which parts or checks did.
    pub by: Vec<String>,
    /// Positions that were played: those of the log, as often as the bug needs.
    pub positions: u64,
    /// Whether the log's own positions are enough.
    pub own_positions_enough: bool,
    /// Why it was not done.
    pub reason: Option<String>,
}

/// The result of an audit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditReport {
    /// 1.
    pub schema: u32,
    /// `specgap` and its version.
    pub tool: String,
    /// The command, without folders; none where rows are in memory.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// What was measured, by its contents: the log's files, or arrays in memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileDigest>,
    /// Of a log that is not finished: how many prompts it has, and how many it will.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<[usize; 2]>,
    /// The log's name.
    pub log: String,
    /// The target's name, if known.
    pub target: Option<String>,
    /// The draft's name, if known.
    pub draft: Option<String>,
    /// The rule that was claimed.
    #[serde(deserialize_with = "specgap_core::rule::read_name")]
    pub rule: String,
    /// What it says.
    pub rule_words: String,
    /// How the engine claims to sample; `None` for record files, which have that in them.
    pub claimed: Option<Claimed>,
    /// Positions of the log.
    pub positions: usize,
    /// Rounds.
    pub rounds: usize,
    /// Positions that belong to no round, or to one that contradicts itself.
    pub not_audited: usize,
    /// Positions whose token was held against its row.
    #[serde(default)]
    pub looked_at: usize,
    /// eps, of records; 0 of logs.
    pub tolerance: f64,
    /// The standard deviation of noise on logits that is allowed for.
    #[serde(default)]
    pub noise: f64,
    /// What has to be excluded before anything is as claimed, in total variation of a step.
    #[serde(default)]
    pub exclude: f64,
    /// alpha.
    pub alpha: f64,
    /// An honest engine fails this audit with at most this probability.
    pub false_alarm: f64,
    /// Whose the target's rows are; `None` where nothing says so.
    pub rows_from: Option<RowsFrom>,
    /// Rounds that were left out because p does not follow from their rows.
    pub not_comparable: Option<MissingRounds>,
    /// How the e-values of requests were put together.
    pub requests: RequestsReport,
    /// What may never happen.
    pub hard_checks: Vec<HardCheck>,
    /// The four verdicts.
    pub parts: Vec<PartReport>,
    /// The one law that explains what was refuted, if one does by a factor of e^7.
    #[serde(default)]
    pub cause: Option<Cause>,
    /// What has most evidence, strongest first, one of a name: logarithms of likelihood ratios to
    /// the claim, and no e-values.
    #[serde(default)]
    pub suspects: Vec<Suspect>,
    /// What was won against the claim; none of records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capital: Option<Capital>,
    /// By cause: the least size that would have been found, and the largest that would not.
    #[serde(default)]
    pub excluded: Vec<Excluded>,
    /// Why nothing is decided, and what would decide.
    #[serde(default)]
    pub open: Vec<String>,
    /// About how many more tokens would decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_wanted: Option<u64>,
    /// Surprise of the tokens against the entropy of their rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surprise: Option<Surprise>,
    /// Accepted drafts that a server counted, against the rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<CountsReport>,
    /// What they say together.
    pub conclusion: Conclusion,
    /// The lossless rule that the log fits, if it is another.
    pub fits: Option<String>,
    /// Mean total variation between p and what the claimed rule puts out, for lossy rules.
    pub lossy_by_design: Option<f64>,
    /// The negative control, if it was asked for.
    pub negative_control: Option<Vec<Tampering>>,
    /// Nothing said how the text was sampled: temperature 1 and no cuts were taken.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_sampling_assumed: bool,
    /// What the numbers rest on and what was left out.
    pub notes: Vec<String>,
    /// Nothing was refuted, and the negative control did its work.
    pub ok: bool,
}

impl AuditReport {
    /// A report on a log or on records of this name, before anything was found.
    pub(crate) fn begun(
        log: String,
        command: &str,
        settings: &Settings,
        requests: RequestsReport,
    ) -> Self {
        Self {
            schema: 1,
            tool: specgap_log::log::tool(),
            command: command.to_owned(),
            log,
            rule: settings.rule.to_string(),
            rule_words: settings.rule.words().to_owned(),
            exclude: settings.exclude,
            alpha: settings.alpha,
            requests,
            ..Self::default()
        }
    }

    /// Adds what a server counted; counts that are refuted refute the rule.
    pub fn with_counts(mut self, counts: CountsReport) -> Self {
        if counts.verdict == Outcome::Refuted {
            self.ok = false;
            if self.conclusion.stands() {
                self.conclusion = Conclusion::NotTheRule;
            }
        }
        self.counts = Some(counts);
        self
    }

    /// Adds the negative control, whose failure is the report's.
    pub fn with_control(mut self, control: Vec<Tampering>) -> Self {
        self.ok &= control.iter().all(|one| one.refuted != Some(false));
        self.negative_control = Some(control);
        self
    }
}
