//! What a report may advise: a change from what an engine does now to something that it could
//! do, with what that is worth, and the rules by which such a change is called one.
//!
//! - **Now and then** are both lossless and both achieved: an optimum is a ceiling and no advice.
//! - **Worth** is a paired difference with its interval, at the same positions or prompts.
//! - **The choice** of the best of several is made on one half of the prompts and measured on the
//!   other, both ways ([`cross_fitted`]), or on one half alone; what is not told apart
//!   from the best and takes less to build comes before it.
//! - **A floor**: what brings less is not worth it ([`Unit::floor`]).
//! - **Nothing is advised** where the text was not drawn from its rows, where a capture did not
//!   finish, and at another temperature than the text's.
//! - **Where only bounds are known** a change is worth its worst case, and is none where they leave
//!   its sign open.

mod choice;
mod engine;

pub use choice::{Candidate, Choice, cross_fitted};
pub use engine::{Assumed, KnownBy, settings_of};

use crate::statistics::Estimate;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// A z of the text's surprise that text drawn from its rows does not have: beyond it, on either
/// side, nothing is advised.
pub const NOT_DRAWN: f64 = 6.0;

/// A change from what an engine does now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    /// What it is at: the temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The drafts of a position, or paths of a round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drafts: Option<usize>,
    /// A draft step's time over a target step's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_ratio: Option<f64>,
    /// What is done now, as `law/rule` or in the report's words for a setting.
    pub from: String,
    /// What could be done, in the same words. Of a choice, what all prompts choose.
    pub to: String,
    /// The engines that do `from` unless told otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub engines: Vec<String>,
    /// What tells such an engine to do `to`, where a setting does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<String>,
    /// What it takes.
    pub needs: Needs,
    /// What `now` and `difference` are of.
    pub unit: Unit,
    /// What `from` gets.
    pub now: Estimate,
    /// What `to` gets more.
    pub difference: Estimate,
    /// What `to` was chosen on, and the difference measured.
    pub basis: Basis,
    /// What may be said of it.
    pub verdict: Verdict,
}

impl Change {
    /// The difference as far as it is sure whatever the rows do not list: its lower bound where
    /// only bounds are known, else its mean.
    #[must_use]
    pub fn least(&self) -> f64 {
        least(&self.difference)
    }
}

/// What has to be built for a change, from the least to the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Needs {
    /// Nothing: a setting of engines.
    Setting,
    /// Another rule for the same drafts.
    Rule,
    /// Drafts of another law, and their rule.
    Law,
    /// A tree of another shape, or several paths.
    Tree,
    /// A trained head.
    Head,
}

/// What a change is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// The share of positions at which the output is one of the drafts.
    Acceptance,
    /// Tokens that come out per call of the target.
    TokensPerCall,
    /// Times the speed of the target alone.
    Speed,
}

impl Unit {
    /// The least that is worth a change: half a point of acceptance, and 1% of anything else.
    ///
    /// # Example
    /// ```
    /// use specgap_statistics::advice::Unit;
    ///
    /// assert_eq!(Unit::Acceptance.floor(0.9), 0.005);
    /// assert_eq!(Unit::Speed.floor(2.0), 0.02);
    /// ```
    #[must_use]
    pub fn floor(self, now: f64) -> f64 {
        match self {
            Self::Acceptance => 0.005,
            Self::TokensPerCall | Self::Speed => 0.01 * now,
        }
    }
}

/// How a change was chosen and measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// Nothing was chosen: a paired difference.
    Paired,
    /// Chosen on half of the prompts, and measured on the others.
    OtherPrompts,
    /// Chosen on each half of the prompts, and measured on the other half.
    CrossFitted,
    /// Of counts alone, without an interval.
    Counts,
}

/// What may be said of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It gets more, by at least the floor.
    Worth,
    /// It gets more, by less than the floor.
    BelowFloor,
    /// The interval holds 0.
    NotToldApart,
    /// The bounds of what is only known between bounds hold 0.
    Open,
    /// It gets less.
    Worse,
}

impl Verdict {
    /// Judges a difference by the least that is worth a change.
    ///
    /// # Example
    /// ```
    /// use specgap_statistics::advice::Verdict;
    /// use specgap_statistics::Estimate;
    ///
    /// let more = |mean: f64, truncation| Estimate {
    ///     mean,
    ///     ci95: [mean - 0.01, mean + 0.01],
    ///     truncation,
    ///     between: None,
    /// };
    /// assert_eq!(Verdict::of(&more(0.02, None), 0.005), Verdict::Worth);
    /// assert_eq!(Verdict::of(&more(0.02, None), 0.03), Verdict::BelowFloor);
    /// assert_eq!(Verdict::of(&more(0.005, None), 0.001), Verdict::NotToldApart);
    /// assert_eq!(Verdict::of(&more(0.02, Some([-0.04, 0.06])), 0.005), Verdict::Open);
    /// // A worst case of 0.4 points.
    /// assert_eq!(Verdict::of(&more(0.03, Some([0.014, 0.05])), 0.015), Verdict::BelowFloor);
    /// assert_eq!(Verdict::of(&more(-0.02, None), 0.005), Verdict::Worse);
    /// ```
    #[must_use]
    pub fn of(difference: &Estimate, floor: f64) -> Self {
        // Rounding tells nothing apart.
        if difference.ci95.iter().all(|end| end.abs() < 1e-9) {
            return Self::NotToldApart;
        }
        match difference.side() {
            Some(Ordering::Greater) if least(difference) >= floor => Self::Worth,
            Some(Ordering::Less) => Self::Worse,
            Some(_) => Self::BelowFloor,
            // The middle of wide bounds tells nothing.
            None if difference.open().is_some() => Self::Open,
            None => {
                let sampled = Estimate {
                    truncation: None,
                    between: None,
                    ..*difference
                };
                match sampled.side() {
                    Some(_) => Self::Open,
                    None => Self::NotToldApart,
                }
            }
        }
    }
}

fn least(difference: &Estimate) -> f64 {
    difference.open().map_or(difference.mean, |[low, _]| low)
}
