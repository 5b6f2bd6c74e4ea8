//! Independent draws along the chain.

use super::buckets::{Link, ROUNDING};
use super::minimum::Chain;

/// Q(H) = x^n, x = q(H).
pub(super) struct Iid {
    pub(super) drafts: usize,
    /// What q sums to.
    pub(super) total: f64,
}

impl Chain for Iid {
    #[inline(always)]
    fn at_end(&self, _index: usize, x: f64) -> f64 {
        power(x, self.drafts)
    }

    #[inline(always)]
    fn most(&self, _index: usize, link: &Link, more: f64) -> f64 {
        power((link.before.draft() + more) / self.total, self.drafts)
    }

    #[inline(always)]
    fn step(&mut self, _q: f64, x: f64) -> f64 {
        power(x, self.drafts)
    }

    fn error(&self) -> f64 {
        (20.0 * self.drafts as f64 + 80.0) * ROUNDING
    }
}

/// x^n by n - 1 products.
#[inline(always)]
fn power(x: f64, n: usize) -> f64 {
    let mut product = 1.0;
    for _ in 0..n {
        product *= x;
    }
    product
}
