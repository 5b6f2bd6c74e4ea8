//! Answers that are kept of a row, and rows divided by their sums.

use super::scan::{Row, Rows};
use multiversion::multiversion;
use std::any::Any;

/// p and q, each divided by what it sums to: what several questions ask of a row, made once.
#[derive(Debug, Default)]
struct Shares {
    target: Vec<f64>,
    draft: Vec<f64>,
}

impl Row<'_> {
    /// Asks what was kept of this row, if that is enough, or else what is made now, which is kept.
    pub fn kept<T: Any + Send, A>(
        &mut self,
        is_enough: impl FnOnce(&T) -> bool,
        make: impl FnOnce(&mut Self) -> T,
        ask: impl FnOnce(&T) -> A,
    ) -> A {
        let kept = self.memo().take::<T>().filter(|kept| is_enough(kept));
        let kept = kept.unwrap_or_else(|| Box::new(make(self)));
        let answer = ask(&kept);
        self.memo().keep(kept);
        answer
    }

    /// Asks p and q, each divided by what it sums to, which are kept for the next question. O(V) the
    /// first time.
    pub fn of_shares<A>(&mut self, ask: impl FnOnce(&mut Self, Rows<'_>) -> A) -> A {
        let shares = self.memo().take().unwrap_or_else(|| {
            let (p_sum, q_sum) = self.totals();
            let rows = self.rows();
            let mut shares: Box<Shares> = self.memo().take_spare().unwrap_or_default();
            divide(rows.target, p_sum, &mut shares.target);
            divide(rows.draft, q_sum, &mut shares.draft);
            shares
        });
        let answer = ask(self, Rows::new(&shares.target, &shares.draft));
        self.memo().keep(shares);
        answer
    }
}

#[multiversion(targets = "simd")]
fn divide(row: &[f64], sum: f64, shares: &mut Vec<f64>) {
    shares.resize(row.len(), 0.0);
    for (share, x) in shares.iter_mut().zip(row) {
        // As a distribution has them, whose zeros have no sign.
        *share = (x + 0.0) / sum;
    }
}
