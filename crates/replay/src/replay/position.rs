//! A position of a text.

use serde::{Deserialize, Serialize};

/// What is known of the tokens that a position's rows do not list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Rest {
    /// There are none.
    #[default]
    None,
    /// Their masses, and that none is heavier than a listed one. Both rows list the same.
    Known {
        /// How many tokens that are listed have more of q than any that is not.
        heaviest: usize,
    },
    /// Less than that.
    Open,
}

/// The positions that a round meets which begins behind `start` tokens: those of the text, or of
/// that start where the draft's rows depend on it.
pub(super) fn ahead<'a>(
    places: &'a [TextPosition],
    by_start: &'a [Vec<TextPosition>],
    start: usize,
) -> &'a [TextPosition] {
    let all = match by_start.is_empty() {
        true => places.get(start..),
        false => by_start.get(start).map(Vec::as_slice),
    };
    all.unwrap_or_default()
}

/// What is known of a position of a text: of the token y that was put out there, and of the
/// two rows that predict it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TextPosition {
    /// q(y)/p(y).
    pub ratio: f64,
    /// q(y).
    pub draft: f64,
    /// Bounds on q(y), whatever the tokens are that the draft's row does not list.
    pub draft_bounds: [f64; 2],
    /// Whether y is q's likeliest token, of equal ones that with the lowest id; `None` where
    /// the log does not tell.
    pub hit: Option<bool>,
    /// How often y is drafted by the noise that gave it, and bounds on that.
    #[serde(default)]
    pub one_noise: [f64; 3],
    /// p of q's likeliest token, where the log tells it.
    pub p_hit: Option<f64>,
    /// sum of min(p, q), where it is known and no bound or mean.
    pub exact_overlap: Option<f64>,
    /// The target's mass on tokens that the draft can draw, where these are not all and the log
    /// tells it.
    pub covered: Option<f64>,
    /// The largest probability of q.
    pub top: f64,
    /// The entropy of q in nats.
    pub entropy: f64,
    /// sum of min(p, q).
    pub overlap: f64,
    /// The probability that a head predicts for y to be accepted, if the log has it.
    pub head_acceptance: Option<f64>,
    /// The overlap that a head predicts, if the log has it.
    pub head_overlap: Option<f64>,
    /// Both rows list y.
    pub listed: bool,
    /// Bounds on q(y)/p(y), whatever the tokens are that the rows do not list.
    pub ratio_bounds: [f64; 2],
    /// What the two rows do not list of p and q.
    pub unlisted: [f64; 2],
    /// What is known of the tokens that the rows do not list.
    pub rest: Rest,
}
