//! What a sampler keeps of a row.

use serde::{Deserialize, Serialize};

/// What an engine keeps of a row behind the temperature, before it draws: all of these, one
/// after the other, and what is left is renormalised.
///
/// Of equal tokens, those with lower ids come first. A share of 1 for `top_p`, and one of 0
/// for `min_p`, keep everything.
///
/// # Example
/// ```
/// use specgap_sampling::sampling::Cuts;
/// let cuts = |top_p| Cuts { top_p: Some(top_p), ..Cuts::default() };
/// assert!(!cuts(0.95).keep_all());
/// assert!(cuts(1.0).keep_all());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Cuts {
    /// The k most probable tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_k: Option<usize>,
    /// The fewest most probable tokens that have this share of what is left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// The tokens that have at least this share of the largest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_p: Option<f64>,
}

impl Cuts {
    /// Without those that keep everything.
    pub fn effective(self) -> Self {
        Self {
            top_k: self.top_k,
            top_p: self.top_p.filter(|&p| p < 1.0),
            min_p: self.min_p.filter(|&p| p > 0.0),
        }
    }

    /// Whether nothing is cut.
    pub fn keep_all(self) -> bool {
        self.effective() == Self::default()
    }

    /// Each that is given: its name and its number.
    pub fn words(self) -> impl Iterator<Item = (&'static str, String)> {
        let share = |x: f64| format!("{x:?}");
        let all = [
            ("top-k", self.top_k.map(|k| k.to_string())),
            ("top-p", self.top_p.map(share)),
            ("min-p", self.min_p.map(share)),
        ];
        let given = all.into_iter();
        given.filter_map(|(name, number)| Some((name, number?)))
    }

    /// The options that ask for it, each after a space.
    pub fn options(self) -> String {
        let words = self.words();
        words
            .map(|(name, number)| format!(" --{name} {number}"))
            .collect()
    }

    /// Refuses what is out of range; `of` comes before an option's name.
    pub fn check(self, of: &str) -> Result<(), String> {
        if self.top_k == Some(0) {
            return Err(format!(
                "--{of}top-k 0 leaves nothing to draw; give at least 1"
            ));
        }
        if let Some(p) = self.top_p.filter(|p| !(*p > 0.0 && *p <= 1.0)) {
            return Err(format!(
                "--{of}top-p {p} is out of range; it is above 0 and at most 1"
            ));
        }
        if let Some(p) = self.min_p.filter(|p| !(0.0..=1.0).contains(p)) {
            return Err(format!(
                "--{of}min-p {p} is out of range; it is from 0 to 1"
            ));
        }
        Ok(())
    }
}
