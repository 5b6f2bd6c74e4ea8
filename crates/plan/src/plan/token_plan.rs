//! One plan for all laws of drafts: tiers of tokens that compete by their weights.
//!
//! What a plan is, how it is run, and how it is put together from solved tiers. Which
//! weights it has is the business of `iid/` and `sequential/`, which stand on this file;
//! `families.rs` stands on them and makes a plan of either kind.

use super::thinning::{PlanLaw, Thinning, Verdict};
use rand::RngCore;
use specgap_number::distribution::Target;
use specgap_number::known::{Kind, Known};
use specgap_number::scratch::Scratch;
use std::sync::Arc;

/// The most sequential draws that a [`TokenPlan`] handles.
pub const MOST_SEQUENTIAL_DRAFTS: usize = 8;

/// How the drafts of a plan are drawn from q.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draws {
    /// Independently: a token may be drafted more than once.
    Iid,
    /// One by one without replacement, q renormalised over what is left.
    Sequential,
}

impl Draws {
    /// The most drafts that a plan handles: powers of n - 1 are taken with 32 bits.
    pub(super) fn most(self) -> usize {
        match self {
            Self::Iid => i32::MAX as usize,
            Self::Sequential => MOST_SEQUENTIAL_DRAFTS,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Iid => "i.i.d. drafts",
            Self::Sequential => "sequential draws",
        }
    }
}

/// What a solve aims for, and what it may spend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlanSettings {
    /// Largest shortfall of acceptance from alpha* that counts as optimal.
    pub tolerance: f64,
    /// Sum of |wanted - emitted| at which a tier is solved.
    pub residual: f64,
    /// Most Newton or fixed-point steps a tier and grouping of i.i.d. drafts. Steps of
    /// sequential draws cost more: two thirds of it are the most on groups, and four thirds
    /// in all.
    pub iterations: usize,
    /// For i.i.d. drafts: prefixes by p/q whose P - Q is this close to the least are
    /// minimisers too, and separate tiers.
    pub tie: f64,
    /// For i.i.d. drafts: groups of tokens have mass times (width of log odds of the
    /// ratio)^4 at most this.
    pub grouping: f64,
}

impl Default for PlanSettings {
    fn default() -> Self {
        Self {
            tolerance: 1e-10,
            residual: 1e-12,
            iterations: 60,
            tie: 1e-14,
            grouping: 1e-11,
        }
    }
}

/// What is known about a plan's acceptance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanStatus {
    /// Within [`PlanSettings::tolerance`] of alpha*, rounding and quadrature accounted
    /// for.
    Optimal,
    /// Lossless, but [`TokenPlan::shortfall`] is above the tolerance.
    Short,
}

impl PlanStatus {
    /// `optimal` or `short`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Optimal => "optimal",
            Self::Short => "short",
        }
    }
}

/// Why there is no plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// Rows of p and q of different lengths.
    #[error(
        "the target has {target} tokens and the draft {draft}; both rows must have one vocabulary"
    )]
    Vocabulary {
        /// V of the target.
        target: usize,
        /// V of the draft.
        draft: usize,
    },
    /// No drafts of stratified ones.
    #[error("drafts is 0; give at least 1")]
    NoDrafts,
    /// No drafts, or too many.
    #[error("drafts is {drafts}; plans for {} need it in 1..={}", draws.as_str(), draws.most())]
    Drafts {
        /// How they would be drawn.
        draws: Draws,
        /// What was asked for.
        drafts: usize,
    },
}

/// No tier: the token is never emitted as a draft.
const NO_TIER: u32 = u32::MAX;

/// An optimal plan at any V: for any number of i.i.d. drafts from q ([`Self::iid`]), and for
/// up to eight sequential draws without replacement ([`Self::sequential`]).
///
/// Tokens stand in tiers. Given drafts X, the highest tier that X touches decides. Draft k
/// of that tier is picked with probability w(x_k) over the sum of the weights there (plus
/// w_0 = 1 in the lowest tier, if tuples may be rejected), and then kept with a probability
/// of 1 or, where rounding made the token too frequent, a hair less. Everything else draws
/// from the residual `(p - a)/sum`, a_i being how often token i is emitted.
///
/// # Exactness
/// Lossless by construction: a_i is cut to p_i and the residual is what is left, so
/// that the output law is off only by how far the computed a is from the true one,
/// about 1e-14 in total; [`TokenPlan::law`] measures it by other integrals.
/// Whether the solve converged decides acceptance alone, and
/// [`TokenPlan::status`] says so.
///
/// # Complexity
/// [`TokenPlan::emit`] is O(n).
///
/// # Source
/// The tiers are complementary slackness of Hu et al., eq. 8. The weights and all of the
/// method are specgap's: `docs/theory/plans.md`.
#[derive(Clone, Debug)]
pub struct TokenPlan {
    draws: Draws,
    drafts: usize,
    /// Leading drafts that are looked at: all, or one where a plan for all is out of reach.
    considered: usize,
    weight: Vec<f64>,
    tier: Vec<u32>,
    /// Whether tier 0 has a slot that rejects.
    rejecting: bool,
    thinning: Thinning,
    attained: Attained,
    groups: usize,
    tiers: usize,
}

/// One tier, solved: entries in the order of its tokens.
#[derive(Clone, Debug, Default)]
pub(super) struct SolvedTier {
    pub(super) weights: Scratch<f64>,
    /// How often each token is emitted.
    pub(super) emitted: Scratch<f64>,
    pub(super) iterations: usize,
    pub(super) groups: usize,
}

/// What is known of alpha* beside the plan.
#[derive(Clone, Debug)]
pub(super) enum Bound {
    /// alpha*.
    Optimum(Known),
    /// 1 + P(H) - Q(H) for some H, an upper bound, and its error. The plan's own acceptance
    /// is the lower bound.
    Above { value: f64, error: f64 },
}

/// A plan in the making: weights and emissions before they are cut to p.
#[derive(Clone, Debug)]
pub(super) struct Unthinned {
    plan: TokenPlan,
    emitted: Scratch<f64>,
}

impl Unthinned {
    /// No tiers yet; `considered` of `drafts` drafts are looked at, and tier 0 has a slot
    /// that rejects if `rejecting`.
    pub(super) fn new(
        vocab: usize,
        draws: Draws,
        drafts: usize,
        considered: usize,
        rejecting: bool,
    ) -> Self {
        let plan = TokenPlan {
            draws,
            drafts,
            considered,
            weight: vec![0.0; vocab],
            tier: vec![NO_TIER; vocab],
            rejecting,
            thinning: Thinning::new(&[], &[]).0,
            attained: Attained::new(
                Known::rate(0.0, 0.0, 0.0),
                Bound::Optimum(Known::rate(1.0, 0.0, 1.0)),
                0,
                0.0,
            ),
            groups: 0,
            tiers: 0,
        };
        Self {
            plan,
            emitted: Scratch::filled(vocab, 0.0),
        }
    }

    /// Adds a tier. Tokens of weight 0 stay without one.
    pub(super) fn add(&mut self, tier: u32, tokens: &[u32], solved: &SolvedTier) {
        let Self { plan, emitted } = self;
        let own = solved.weights.iter().zip(&solved.emitted);
        for (&token, (&weight, &mass)) in tokens.iter().zip(own) {
            let token = token as usize;
            plan.weight[token] = weight;
            if weight > 0.0 {
                plan.tier[token] = tier;
            }
            emitted[token] = mass;
        }
        plan.attained.iterations += solved.iterations;
        plan.groups += solved.groups;
        plan.tiers += 1;
    }

    pub(super) fn is_finite(&self) -> bool {
        self.emitted.iter().all(|a| a.is_finite())
    }

    /// Thins what is emitted too often, and leaves the rest to the residual. `known` says what
    /// is known of the accepted mass that it is given.
    pub(super) fn finish(
        self,
        target: &[f64],
        bound: Bound,
        known: impl Fn(f64) -> Known,
        tolerance: f64,
    ) -> TokenPlan {
        let Self { mut plan, emitted } = self;
        let (thinning, value) = Thinning::new(target, &emitted);
        plan.attained = Attained::new(known(value), bound, plan.attained.iterations, tolerance);
        plan.thinning = thinning;
        plan
    }
}

/// How often a plan accepts, beside alpha*.
#[derive(Clone, Debug, PartialEq)]
pub struct Attained {
    optimum: Known,
    /// How often the plan accepts.
    pub acceptance: Known,
    shortfall: f64,
    status: PlanStatus,
    /// Iterations that it took.
    pub iterations: usize,
}

impl Attained {
    /// Of a plan of which this acceptance is known.
    pub(super) fn new(acceptance: Known, bound: Bound, iterations: usize, tolerance: f64) -> Self {
        let least = acceptance.lower();
        let optimum = match bound {
            Bound::Optimum(optimum) => optimum,
            Bound::Above { value, error } => {
                let between = Known::rate(value.max(least), least, (value + error).max(least));
                if acceptance.kind() == Kind::Estimate {
                    between.estimated()
                } else {
                    between
                }
            }
        };
        let shortfall = (optimum.upper() - least).max(0.0);
        let status = if shortfall <= tolerance {
            PlanStatus::Optimal
        } else {
            PlanStatus::Short
        };
        Self {
            optimum,
            acceptance,
            shortfall,
            status,
            iterations,
        }
    }
}

impl TokenPlan {
    /// How often it accepts, beside alpha*.
    pub fn attained(&self) -> &Attained {
        &self.attained
    }

    /// How the drafts are drawn.
    pub fn draws(&self) -> Draws {
        self.draws
    }

    /// n.
    pub fn drafts(&self) -> usize {
        self.drafts
    }

    /// V.
    pub fn vocab(&self) -> usize {
        self.weight.len()
    }

    /// alpha*: enclosed for i.i.d. drafts, by the best prefix. For sequential draws an estimate,
    /// from below by this plan's acceptance, as the plan is lossless, and from above by
    /// 1 + P(H) - Q(H), which is `value`.
    pub fn optimal_acceptance_rate(&self) -> &Known {
        &self.attained.optimum
    }

    /// Acceptance of the plan: enclosed for i.i.d. drafts, quadrature and rounding included. For
    /// sequential draws an estimate, as parts of its error are tested and not proven
    /// (`docs/theory/plans.md`).
    pub fn acceptance_rate(&self) -> &Known {
        &self.attained.acceptance
    }

    /// Most that acceptance can be below alpha*, all error bounds included.
    pub fn shortfall(&self) -> f64 {
        self.attained.shortfall
    }

    /// Newton and fixed-point steps, on groups and on all tokens, summed over the tiers.
    pub fn iterations(&self) -> usize {
        self.attained.iterations
    }

    /// Groups of tokens that the first steps ran on, summed over the tiers.
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// Tiers: 2 in general, 1 if alpha* = 1, more where P - Q of i.i.d. drafts has ties.
    pub fn tiers(&self) -> usize {
        self.tiers
    }

    /// How the solve ended.
    pub fn status(&self) -> PlanStatus {
        self.attained.status
    }

    /// Law of the output after a rejection, V entries.
    pub fn residual(&self) -> &Arc<[f64]> {
        &self.thinning.residual
    }

    /// Whether the order of the drafts and how often each occurs do not matter: a token
    /// that was drafted twice holds two slots.
    pub fn depends_on_set_only(&self) -> bool {
        self.draws == Draws::Sequential && self.looks_at_all()
    }

    pub(super) fn looks_at_all(&self) -> bool {
        self.considered == self.drafts
    }

    /// Tier by token; `None` if it is never emitted as a draft.
    pub(super) fn tier_of(&self, token: u32) -> Option<u32> {
        let tier = self.tier.get(token as usize).copied()?;
        (tier != NO_TIER).then_some(tier)
    }

    /// The weights, V entries; 0 for tokens without a tier.
    pub(super) fn weights(&self) -> &[f64] {
        &self.weight
    }

    /// Weight of the slot that rejects the tuples of a tier.
    pub(super) fn rejecting_weight(&self, tier: u32) -> f64 {
        if tier == 0 && self.rejecting {
            1.0
        } else {
            0.0
        }
    }

    /// Drafts that compete, as slot and token, and the sum of their weights and that of the
    /// slot that rejects. `None` if no draft has a tier.
    fn competing<'a>(
        &'a self,
        tuple: &'a [u32],
    ) -> Option<(impl Iterator<Item = (usize, u32)> + Clone + 'a, f64)> {
        let looked_at = (0..).zip(tuple.iter().copied()).take(self.considered);
        let tier = looked_at
            .clone()
            .filter_map(|(_, token)| self.tier_of(token))
            .max()?;
        let competing = looked_at.filter(move |&(_, token)| self.tier_of(token) == Some(tier));
        let total: f64 = competing
            .clone()
            .map(|(_, token)| self.weight[token as usize])
            .sum();
        Some((competing, self.rejecting_weight(tier) + total))
    }

    /// Probability that each draft of the tuple is emitted before it is thinned.
    pub(super) fn picked(&self, tuple: &[u32]) -> Vec<f64> {
        let mut picked = vec![0.0; tuple.len()];
        if let Some((competing, total)) = self.competing(tuple) {
            for (slot, token) in competing {
                picked[slot] = self.weight[token as usize] / total;
            }
        }
        picked
    }

    /// Probability that each draft of the tuple is emitted; the rest of 1 goes to
    /// the residual. O(n).
    pub fn accepted(&self, tuple: &[u32]) -> Vec<f64> {
        let mut accepted = self.picked(tuple);
        for (share, &token) in accepted.iter_mut().zip(tuple) {
            // Tokens beyond V compete for nothing.
            *share *= self.thinning.keep().get(token as usize).unwrap_or(&0.0);
        }
        accepted
    }

    /// Runs the plan once: O(n), plus O(log V) after a rejection.
    pub fn emit(&self, tuple: &[u32], rng: &mut dyn RngCore) -> Verdict {
        match self.competing(tuple) {
            Some((competing, total)) => self.thinning.emit(competing, &self.weight, total, rng),
            None => self.thinning.reject(rng),
        }
    }

    /// The output law, from how often tokens are emitted before they are thinned.
    pub(super) fn law_of(&self, emitted: Vec<f64>, target: &Target) -> PlanLaw {
        self.thinning.law(emitted, target.probabilities())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the least that a plan accepts to the most that alpha* can be.
    #[test]
    fn what_a_plan_falls_short_by() {
        let acceptance = Known::rate(0.5, 0.375, 0.625);
        let of = |acceptance: &Known, bound, tolerance| {
            Attained::new(acceptance.clone(), bound, 7, tolerance)
        };
        let optimum = || Bound::Optimum(Known::rate(0.75, 0.6875, 0.8125));
        for (tolerance, status) in [(0.4375, PlanStatus::Optimal), (0.437, PlanStatus::Short)] {
            let found = of(&acceptance, optimum(), tolerance);
            assert_eq!((found.shortfall, found.iterations), (0.4375, 7));
            assert_eq!(found.status, status);
            assert_eq!(found.optimum, Known::rate(0.75, 0.6875, 0.8125));
            assert_eq!(found.acceptance, acceptance);
        }
        // A plan that accepts more than rounding leaves of alpha* falls short by nothing.
        let below = Bound::Optimum(Known::rate(0.25, 0.25, 0.25));
        assert_eq!(of(&acceptance, below, 0.0).shortfall, 0.0);
        // alpha* lies between what the plan accepts and a cut.
        let above = |value| Bound::Above {
            value,
            error: 0.125,
        };
        let found = of(&acceptance, above(0.75), 0.0);
        assert_eq!(
            (found.optimum.value(), found.optimum.lower()),
            (0.75, 0.375)
        );
        assert_eq!((found.optimum.upper(), found.shortfall), (0.875, 0.5));
        assert_ne!(found.optimum.kind(), Kind::Estimate);
        let found = of(&acceptance, above(0.125), 0.0);
        assert_eq!(
            (found.optimum.value(), found.optimum.upper()),
            (0.375, 0.375)
        );
        assert_eq!(found.shortfall, 0.0);
        // What is estimated of the one is estimated of the other.
        let estimate = Known::estimate(0.5, 0.125);
        let found = of(&estimate, above(0.75), 0.0);
        assert_eq!(found.optimum.kind(), Kind::Estimate);
    }
}
