//! One tier: which tokens compete, and what range their emission has.
//!
//! A tier has groups of tokens with masses q_j and target ratios rho_j, a mass b
//! of draft tokens that never emit in this tier, and perhaps a slot of weight w_0
//! that is always there and rejects. With `phi(s) = b + sum of q_j e^{-s w_j}` and
//! `g(s) = n e^{-s w_0} phi(s)^{n-1}`, a token of weight w is emitted q F(w) of the
//! time,
//!
//! ```text
//! F(w) = w integral over s of e^{-sw} g(s) ds
//!      = g(inf) + w integral over s of e^{-sw} (g(s) - g(inf)) ds,
//! ```
//!
//! and F(w_j) = rho_j is solved for all groups at once. F grows from
//! r_low = g(inf) to r_up = g(0).

/// A ratio is kept this far (relative to r_up) from the ends of its range.
pub(super) const MARGIN: f64 = 1e-15;

/// Ratios below this times r_up are taken for it: their tokens hold nothing.
const SMALLEST_RATIO: f64 = 1e-290;

/// One tier.
#[derive(Clone, Debug)]
pub(super) struct Tier {
    /// Group masses under q.
    pub(super) mass: Vec<f64>,
    /// Wanted emission over mass, within the tier's range.
    pub(super) ratio: Vec<f64>,
    /// Draft mass that never emits here.
    pub(super) base: f64,
    /// `base` plus all masses.
    pub(super) inside: f64,
    /// n.
    pub(super) drafts: usize,
    /// Probability that must be rejected; `None` if nothing may be.
    pub(super) rejected: Option<f64>,
}

/// (top^n - base^n) / (top - base), without cancellation.
pub(super) fn power_quotient(base: f64, top: f64, n: usize) -> f64 {
    let (mut sum, mut low) = (0.0, 1.0);
    for k in 0..n {
        sum += top.powi((n - 1 - k) as i32) * low;
        low *= base;
    }
    sum
}

impl Tier {
    pub(super) fn reject_weight(&self) -> f64 {
        if self.rejected.is_some() { 1.0 } else { 0.0 }
    }

    /// (r_low, r_up).
    pub(super) fn range(&self) -> (f64, f64) {
        let n = self.drafts as f64;
        let power = |mass: f64| n * mass.powi(self.drafts as i32 - 1);
        let low = if self.rejected.is_some() {
            0.0
        } else {
            power(self.base)
        };
        (low, power(self.inside))
    }

    /// log((rho - r_low) / (r_up - rho)), nearly log w plus a constant.
    pub(super) fn coordinate(&self, ratio: f64) -> f64 {
        let (low, up) = self.range();
        let below = (ratio - low).max(self.least_above_low());
        (below / (up - ratio).max(MARGIN * up)).ln()
    }

    /// What a ratio is taken to be above r_low at least.
    pub(super) fn least_above_low(&self) -> f64 {
        let (_, up) = self.range();
        if self.rejected.is_some() {
            SMALLEST_RATIO * up
        } else {
            MARGIN * up
        }
    }

    /// The ratio at a coordinate.
    pub(super) fn ratio_at(&self, coordinate: f64) -> f64 {
        let (low, up) = self.range();
        if coordinate > 0.0 {
            let rest = (-coordinate).exp();
            up - (up - low) * rest / (1.0 + rest)
        } else {
            let odds = coordinate.exp();
            low + (up - low) * odds / (1.0 + odds)
        }
    }
}
