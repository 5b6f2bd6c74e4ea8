//! How far rounds get at one draft length.

use crate::statistics::Estimate;
use serde::{Deserialize, Serialize};

/// How far rounds of one draft length get, over the places where such rounds start.
///
/// # Formula
/// With tau the number of accepted drafts of a round: `S_i = P(tau >= i)`, and a round puts out
/// `1 + S_1 + .. + S_K` tokens on average: its accepted drafts and the bonus token, which is the
/// target's own.
///
/// Rounds of another length start at other places, so that this is of length K alone.
///
/// # Exactness
/// Counts divided by counts, so exact of what was counted but for the rounding of `f64`; intervals
/// are of what was counted as a sample. Where nothing tells how rounds vary, an interval is the
/// mean twice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Curve {
    /// K: tokens drafted each round, at least 1.
    pub length: usize,
    /// S_i for i = 1 to K: the share of rounds that accept at least i drafts. Dimensionless, in [0, 1], falling.
    pub marginal: Vec<Estimate>,
    /// Tokens a round puts out, with the bonus token: in [1, K + 1].
    pub acceptance_length: Estimate,
    /// The share of rounds that accept exactly i drafts, i = 0 to K, where it was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<Vec<f64>>,
    /// Rounds that were counted, where their number is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u64>,
}

/// The shares of rounds that accept exactly i drafts, i = 0 to K: `S_i - S_(i+1)`, with 1 and 0 at the
/// ends, of S_1 to S_K.
#[must_use]
pub fn exactly(marginal: &[Estimate]) -> Vec<f64> {
    let shares = || marginal.iter().map(|share| share.mean);
    let next = shares().chain([0.0]);
    let here = std::iter::once(1.0).chain(shares());
    here.zip(next)
        .map(|(here, next)| (here - next).max(0.0))
        .collect()
}
