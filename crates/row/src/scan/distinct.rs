//! Independent draws that all differ, along the chain.

use super::buckets::{Buckets, Link, ROUNDING};
use super::minimum::{Chain, ScannedRate, by_tokens};
use super::symmetric::{Symmetric, Walk, WideProduct};
use specgap_number::distribution::Rows;

/// Q(H) = e_n(q on H) / e_n(q).
pub(super) struct Distinct<'a> {
    symmetric: &'a Symmetric,
    draws: usize,
    /// e_n(q).
    whole: f64,
    walk: Walk,
    /// The most tokens that were walked.
    walked: usize,
}

impl<'a> Distinct<'a> {
    pub(super) fn new(symmetric: &'a Symmetric, draws: usize) -> Self {
        Self {
            symmetric,
            draws,
            whole: symmetric.whole(draws),
            walk: symmetric.walk(0, 0),
            walked: 0,
        }
    }
}

impl Chain for Distinct<'_> {
    fn at_end(&self, index: usize, _x: f64) -> f64 {
        self.symmetric.prefix(index + 1)[self.draws] / self.whole
    }

    /// Q may rise as fast as one over the mass of a link, and masses far below 2^-53 are
    /// summed in one word.
    fn slack(&self, link: &Link) -> f64 {
        let tokens = f64::from(link.tokens);
        let terms = tokens * ROUNDING;
        terms * f64::min(1.0, terms / link.own.draft())
    }

    fn most(&self, index: usize, link: &Link, more: f64) -> f64 {
        let more = more * (1.0 + self.slack(link));
        self.symmetric.most(index, more, self.draws) / self.whole
    }

    fn enter(&mut self, index: usize, tokens: usize) {
        self.walked = self.walked.max(tokens);
        self.walk = self.symmetric.walk(index, tokens);
    }

    fn step(&mut self, q: f64, _x: f64) -> f64 {
        self.walk.absorb(q, self.draws) / self.whole
    }

    fn error(&self) -> f64 {
        let roundings = self.symmetric.roundings(self.draws, self.walked);
        (2.0 * roundings + 120.0) * ROUNDING
    }
}

/// The same where e_n leaves the range of `f64`, in numbers of unbounded range: a sort, and
/// O(V n) of their operations.
pub(super) fn by_wide_numbers(buckets: &mut Buckets, rows: Rows<'_>, draws: usize) -> ScannedRate {
    let mut product = WideProduct::new(draws);
    for &q in rows.draft {
        product.absorb(q);
    }
    let whole = product.last();
    let mut product = WideProduct::new(draws);
    let step = |q| {
        product.absorb(q);
        product.last().over(whole).min(1.0)
    };
    // The recurrence's own rounding is below 2^-70; what is left is the ratio.
    let error = (3.0 * draws as f64 + 40.0) * f64::EPSILON;
    by_tokens(buckets, rows, step, error)
}
