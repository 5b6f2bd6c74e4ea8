//! What a rule does with the drafts of one position, on rows in `f64`.

use std::fmt;

/// What a rule does with drafts that are offered to it one after another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InTurn {
    /// Entry k: what is wanted of draft k over what is offered of it. The draft is kept with
    /// probability min(1, this), once all before it were refused.
    pub ratios: Vec<f64>,
    /// Weights of the output once all drafts were refused; V entries, not all 0 if p is not.
    pub residual: Vec<f64>,
}

impl InTurn {
    /// Probabilities that draft k is kept, once those before it were refused.
    pub fn keeps(&self) -> impl Iterator<Item = f64> {
        self.ratios.iter().map(|ratio| ratio.min(1.0))
    }
}

/// A rule that verifies several drafts of one position, on rows in `f64`.
///
/// This is the one law on a row: audits, live decoding and kernel tests take it from here. The
/// exact laws in fractions are derived apart from it, in [`crate::verifier`], and a test holds
/// the two against each other.
pub trait Step: fmt::Debug + Sync {
    /// Returns what it does with drafts, in the order in which they were drawn.
    ///
    /// # Arguments
    /// `p` and `q` have V entries that sum to 1; `drafts` are n tokens below V.
    ///
    /// # Complexity
    /// O(nV), k-seq 60 times that.
    fn in_turn(&self, p: &[f64], q: &[f64], drafts: &[u32]) -> InTurn;
}

/// Returns what is wanted over what is offered; 0 where nothing is wanted, so that a token of
/// probability 0 is never kept, however small the draw.
pub(super) fn ratio(wanted: f64, offered: f64) -> f64 {
    if wanted <= 0.0 {
        0.0
    } else if offered <= 0.0 {
        f64::INFINITY
    } else {
        wanted / offered
    }
}

/// The entry of a token; 0 beyond the row.
pub(super) fn entry(row: &[f64], token: u32) -> f64 {
    row.get(token as usize).copied().unwrap_or(0.0)
}

/// Divides by the sum; false, with nothing changed, if that is 0 or no number.
pub fn normalise(row: &mut [f64]) -> bool {
    let total: f64 = row.iter().sum();
    if !(total > 0.0 && total.is_finite()) {
        return false;
    }
    row.iter_mut().for_each(|x| *x /= total);
    true
}
