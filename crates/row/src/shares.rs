//! Rows divided by their sums.

use super::scan::Row;
use multiversion::multiversion;

/// p and q, each divided by what it sums to: what several questions ask of a row, made once.
#[derive(Debug, Default)]
pub struct Shares {
    pub target: Vec<f64>,
    pub draft: Vec<f64>,
}

impl Row<'_> {
    /// The shares, to be handed back to the memo with [`Memo::keep`](super::Memo::keep) so that
    /// the next question has them. O(V) the first time.
    pub fn shares(&mut self) -> Box<Shares> {
        if let Some(shares) = self.memo().take() {
            return shares;
        }
        let (p_sum, q_sum) = self.totals();
        let rows = self.rows();
        let mut shares: Box<Shares> = self.memo().take_spare().unwrap_or_default();
        divide(rows.target, p_sum, &mut shares.target);
        divide(rows.draft, q_sum, &mut shares.draft);
        shares
    }
}

#[multiversion(targets = "simd")]
fn divide(row: &[f64], sum: f64, shares: &mut Vec<f64>) {
    shares.resize(row.len(), 0.0);
    for (share, x) in shares.iter_mut().zip(row) {
        *share = x / sum;
    }
}
