//! How often recursive rejection sampling without replacement accepts, for one (p, q)
//! and any number of drafts.

use super::RrsWoSettings;
use super::paths::RejectedPaths;
use super::sampled::PathSampler;
use crate::distribution::{TwoFloat, compensated_sum, heaviest};
use crate::known::{Known, Sampling};
use crate::verifier::Acceptance;
use crate::verifier::curve::Curve;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::sync::OnceLock;

/// Least mass of q that the recursion divides by. Masses are kept in two words, a few
/// 2^-104 each: what is left is good to 1e-13 relative.
const RELIABLE_REST: f64 = 1e-18;

/// Allowance for rounding of the sum for two drafts, in either direction: M is within a
/// few epsilon, and its slope times 1/(1-q) is at most 1.
const PAIR_ROUNDING: f64 = 1e-12;

/// What all numbers of drafts have in common.
#[derive(Debug)]
pub(in crate::verifier) struct Rejections {
    target: Vec<f64>,
    draft: Vec<f64>,
    curve: Curve,
    paths: OnceLock<RejectedPaths>,
    /// Tokens that can be drafted.
    support: usize,
    /// Target mass of them: no other draft exists.
    reachable: f64,
}

impl Rejections {
    pub(in crate::verifier) fn new(target: &[f64], draft: &[f64]) -> Self {
        let curve = Curve::new(target, draft);
        Self::with_curve(target.to_vec(), draft.to_vec(), curve)
    }

    /// With the tokens of q > 0 by rising p/q, up to rounding.
    pub(in crate::verifier) fn in_order(target: Vec<f64>, draft: Vec<f64>, rising: &[u32]) -> Self {
        let curve = Curve::in_order(&target, &draft, rising);
        Self::with_curve(target, draft, curve)
    }

    fn with_curve(target: Vec<f64>, draft: Vec<f64>, curve: Curve) -> Self {
        let drafted = curve.tokens.iter().map(|&token| target[token as usize]);
        Self {
            reachable: compensated_sum(drafted),
            support: curve.tokens.len(),
            curve,
            target,
            draft,
            paths: OnceLock::new(),
        }
    }

    /// Tokens that can be drafted, where some of them are below `f64`.
    pub(super) fn with_support(mut self, support: &[usize]) -> Self {
        if support.len() != self.support {
            self.support = support.len();
            self.reachable = compensated_sum(support.iter().map(|&token| self.target[token]));
        }
        self
    }

    fn paths(&self) -> &RejectedPaths {
        self.paths.get_or_init(|| {
            let rising = self.curve.tokens.iter().rev().copied();
            RejectedPaths::new(&self.target, &self.draft, rising)
        })
    }

    /// Draws that really happen.
    fn draws(&self, drafts: usize) -> usize {
        drafts.min(self.support)
    }

    /// Draws before which at least [`RELIABLE_REST`] of q is left however the
    /// heaviest tokens fall: the recursion divides by what is left, and is not
    /// asked beyond that.
    fn reliable_draws(&self, drafts: usize) -> usize {
        let draws = self.draws(drafts);
        let top = heaviest(&self.draft, draws);
        let held: f64 = top.iter().map(|&token| self.draft[token]).sum();
        if held < 0.999 {
            return draws;
        }
        let mut others = self.draft.clone();
        for &token in &top {
            others[token] = 0.0;
        }
        let mut left = TwoFloat::from(compensated_sum(others));
        // Fewer where tokens are below `f64`: nothing that it holds is left then.
        let mut reliable = top.len();
        for (draw, &token) in top.iter().enumerate().rev() {
            // What is left of q before this draw, all heavier tokens gone.
            left += self.draft[token];
            if left.value() < RELIABLE_REST {
                reliable = draw;
            }
        }
        reliable
    }

    pub(in crate::verifier) fn is_reliable(&self, drafts: usize) -> bool {
        self.reliable_draws(drafts) == self.draws(drafts)
    }

    /// The rate within a budget: enclosed if the enclosure gets narrow enough, else by
    /// Monte Carlo; where almost nothing of q is left after a few draws, enclosed by what
    /// fewer drafts accept.
    pub(in crate::verifier) fn acceptance(
        &self,
        drafts: usize,
        settings: &RrsWoSettings,
    ) -> Acceptance {
        let reliable = self.is_reliable(drafts);
        let sums_paths = self.draws(drafts) > 2 && self.draws(drafts) < self.support;
        if settings.work_limit == 0 && sums_paths && reliable {
            return Acceptance::same(self.monte_carlo(drafts, settings));
        }
        let (lower, upper) = self.enclosure(drafts, settings);
        let rate = Known::rate(0.5 * (lower + upper), lower, upper);
        if upper - lower <= settings.width {
            return Acceptance::same(rate);
        }
        if !reliable {
            let note = "after a few draws too little of q is left to divide by: the lower bound is \
                what fewer drafts accept, the upper the target's mass on the draft's support";
            return Acceptance {
                note: Some(note.to_owned()),
                ..Acceptance::same(rate)
            };
        }
        if upper - lower <= settings.widest {
            return Acceptance::same(rate);
        }
        Acceptance::same(self.monte_carlo(drafts, settings))
    }

    /// Lower and upper bound on the rate, as narrow as `settings.width` if the work limit
    /// permits.
    pub(in crate::verifier) fn enclosure(
        &self,
        drafts: usize,
        settings: &RrsWoSettings,
    ) -> (f64, f64) {
        let error = 4.0 * f64::EPSILON;
        let draws = self.draws(drafts);
        if draws == self.support {
            // Every token is offered in the end, and a rejected one has no
            // residual: all of p on the support is accepted.
            return (
                (self.reachable - error).max(0.0),
                (self.reachable + error).min(1.0),
            );
        }
        let reliable = self.reliable_draws(drafts);
        let (lower, upper) = if reliable == 2 {
            let rejected = self
                .curve
                .two_sequential_rejected(&self.target, &self.draft);
            (rejected - PAIR_ROUNDING, rejected + PAIR_ROUNDING)
        } else {
            let (width, limit) = (settings.width, settings.work_limit);
            self.paths()
                .all_rejected(&self.curve, reliable, width, limit)
        };
        // A further draft can only accept more.
        let most = if reliable == draws { 1.0 - lower } else { 1.0 };
        (
            (1.0 - upper).max(0.0),
            most.min(self.reachable + error).min(1.0),
        )
    }

    /// The rate by simulation of rejected paths.
    pub(in crate::verifier) fn monte_carlo(
        &self,
        drafts: usize,
        settings: &RrsWoSettings,
    ) -> Known {
        let mut rng = ChaCha8Rng::seed_from_u64(settings.seed);
        let samples = settings.samples.max(1);
        let rejected = PathSampler::new(&self.curve).mean(
            self.draws(drafts),
            samples,
            settings.confidence,
            &mut rng,
        );
        Known::monte_carlo(
            1.0 - rejected.mean,
            1.0 - rejected.upper,
            1.0 - rejected.lower,
            Sampling {
                confidence: settings.confidence,
                samples,
                seed: settings.seed,
            },
        )
    }
}
