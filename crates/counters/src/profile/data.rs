//! What a profile is, and the numbers that several formats have.

use serde::{Deserialize, Serialize};
use specgap_statistics::Estimate;
use specgap_statistics::curve::Curve;

/// What acceptance was measured on: what no number of a profile means anything without.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// The target model.
    pub target: Option<String>,
    /// The draft model.
    pub draft: Option<String>,
    /// What is drafted: `sampled`, `one-hot` or `exact-match`, where it is known.
    pub drafts: Option<String>,
    /// The rule that keeps drafts, where it is known.
    pub verifier: Option<String>,
    /// The temperature at which the text was drawn.
    pub temperature: Option<f64>,
    /// Prompts, or requests: the independent units of intervals.
    pub prompts: Option<u64>,
    /// Tokens of the text.
    pub positions: Option<u64>,
    /// What the numbers are: how they came about, what their intervals say, and of which text.
    pub kind: String,
    /// The command that makes them.
    pub command: String,
    /// The program, with its version.
    pub tool: String,
}

impl Source {
    /// All of it in lines, for comments; each as one line of printable text.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("{}: {}", self.tool, self.command)];
        let models = [("target", &self.target), ("draft", &self.draft)];
        let names = models.map(|(word, name)| Some(format!("{word} {}", name.as_ref()?)));
        lines.extend(joined(names));
        let (drafts, rule) = (self.drafts.as_ref(), self.verifier.as_ref());
        let drafts = drafts.map(|drafts| format!("{drafts} drafts"));
        let verifier = rule.map(|rule| format!("{rule} verification"));
        let temperature = self.temperature.map(|t| format!("temperature {t:?}"));
        lines.extend(joined([drafts, verifier, temperature]));
        let prompts = self.prompts.map(|prompts| format!("{prompts} prompts"));
        let positions = self.positions.map(|tokens| format!("{tokens} tokens"));
        lines.extend(joined([prompts, positions]));
        lines.push(self.kind.clone());
        lines.iter().map(|line| one_line(line)).collect()
    }
}

fn joined<const N: usize>(parts: [Option<String>; N]) -> Option<String> {
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Text that ends no comment: names come from files of others.
pub(super) use specgap_base::visible::one_line;

/// Acceptance at every draft length that was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// A curve for each length.
    pub curves: Vec<Curve>,
    /// The same of groups of prompts, by name.
    pub groups: Vec<(String, Vec<Curve>)>,
    /// Where they come from.
    pub source: Source,
}

/// Why a profile is not written.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// There is no curve.
    #[error("there is no draft length to write a profile of")]
    Empty,
    /// A curve that no rounds can have: K; what is wrong with it.
    #[error(
        "K = {0}: {1}; a profile needs S_1 to S_K, each in [0, 1] and none above the one \
         before it"
    )]
    Curve(usize, String),
    /// A file that cannot be made.
    #[error("{0}")]
    Json(String),
}

impl Profile {
    /// Checks curves, and puts them in the order of their lengths.
    ///
    /// # Errors
    /// No curve; two of one length; shares that are no numbers in \[0, 1\], that rise, or are not K;
    /// an acceptance length that is not in \[1, K + 1\].
    pub fn new(curves: Vec<Curve>, source: Source) -> Result<Self, ProfileError> {
        Ok(Self {
            curves: checked(curves)?,
            groups: Vec::new(),
            source,
        })
    }

    /// Adds the curves of groups, for the formats that have a place for them: Model-Optimizer's
    /// `per_category`, and the card.
    ///
    /// # Errors
    /// As [`Profile::new`]. Groups without a curve are left out.
    pub fn with_groups(
        mut self,
        groups: impl IntoIterator<Item = (String, Vec<Curve>)>,
    ) -> Result<Self, ProfileError> {
        for (name, curves) in groups.into_iter().filter(|(_, curves)| !curves.is_empty()) {
            self.groups.push((name, checked(curves)?));
        }
        Ok(self)
    }

    /// The curve of the longest length.
    pub(super) fn longest(&self) -> Option<&Curve> {
        self.curves.last()
    }
}

fn checked(mut curves: Vec<Curve>) -> Result<Vec<Curve>, ProfileError> {
    if curves.is_empty() {
        return Err(ProfileError::Empty);
    }
    curves.sort_by_key(|curve| curve.length);
    let mut before = None;
    for curve in &curves {
        let refused = |what: String| ProfileError::Curve(curve.length, what);
        if before == Some(curve.length) {
            return Err(refused("is there twice".to_owned()));
        }
        before = Some(curve.length);
        if curve.length == 0 || curve.marginal.len() != curve.length {
            return Err(refused(format!("has {} shares", curve.marginal.len())));
        }
        let mut most = 1.0;
        for (i, share) in (1..).zip(&curve.marginal) {
            // Sums of the same numbers in another order.
            if !(-ROUNDING..=most + ROUNDING).contains(&share.mean) {
                return Err(refused(format!("S_{i} is {}", share.mean)));
            }
            most = share.mean;
        }
        let length = curve.acceptance_length.mean;
        let longest = curve.length as f64 + 1.0;
        if !(1.0 - ROUNDING..=longest + ROUNDING).contains(&length) {
            return Err(refused(format!("the acceptance length is {length}")));
        }
    }
    Ok(curves)
}

/// Sums of shares that are equal differ by less.
const ROUNDING: f64 = 1e-9;

/// S_1 to S_K to six decimals, in \[0, 1\] and never rising.
///
/// Rounding keeps an order; what sums of floats may add to it is taken off.
pub(super) fn marginal(curve: &Curve) -> Vec<f64> {
    let mut most = 1.0f64;
    let each = curve.marginal.iter().map(|share| {
        most = rounded(share.mean, 6).clamp(0.0, most);
        most
    });
    each.collect()
}

/// P(draft i is accepted, given that all before it are); 0 behind a draft that none is.
pub(super) fn conditional(marginal: &[f64]) -> Vec<f64> {
    let before = std::iter::once(&1.0).chain(marginal);
    let given = |share: f64, before: f64| if before > 0.0 { share / before } else { 0.0 };
    let each = marginal.iter().zip(before);
    each.map(|(share, before)| given(*share, *before)).collect()
}

/// Half of a 95% interval.
pub(super) fn half(one: &Estimate) -> f64 {
    (one.ci95[1] - one.ci95[0]) / 2.0
}

pub(super) fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (value * scale).round() / scale
}
