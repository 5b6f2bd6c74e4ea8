//! The level rule of i.i.d. drafts: one number a token.

use super::super::error::PlanError;
use super::super::thinning::{Thinning, Verdict};
use super::rates::LevelRates;
use super::rates::plan_answers;
use super::sweep::{NO_TIER, sweep};
use rand::{Rng, RngCore};
use specgap_number::distribution::{
    Draft, PROBABILITY_RELATIVE_ERROR, Rows, Target, by_rising_ratio, split_sum,
};
use specgap_number::scratch::Scratch;

/// The tokens that can be drafted by rising p/q: all that plans of different n share.
#[derive(Clone, Debug)]
pub struct RatioOrder(Scratch<(f64, u32)>);

impl RatioOrder {
    /// Sorts the tokens. O(V), but for what tokens of nearly one ratio take to be sorted.
    pub fn of(target: &Target, draft: &Draft) -> Self {
        Self::of_rows(target.probabilities(), draft.probabilities())
    }

    /// [`Self::of`] for rows whose entries are taken as they are.
    pub fn of_rows(target: &[f64], draft: &[f64]) -> Self {
        Self(by_rising_ratio(Rows { target, draft }))
    }

    /// p/q and the token, rising.
    pub(super) fn rising(&self) -> &[(f64, u32)] {
        &self.0
    }
}

/// The level rule for n i.i.d. drafts from q, at any V: it accepts alpha\*.
///
/// Each token has a tier and a delay. Of the drafts X those in the first tier that X touches
/// compete. Draft k rings at `delay(x_k)` plus a standard exponential time of its own, and the
/// first to ring is the output; in the last tier only if it rings before the horizon. It is
/// then kept with a probability of 1 or, where rounding made the token too frequent, a hair
/// less. Everything else draws from the residual `(p - a)/sum`, a being what is emitted.
///
/// # Exactness
/// Lossless by construction, as what is emitted is cut to p. It is computed by sums of
/// positive terms from the steps that the sweep took; [`Self::law`] measures it by other
/// integrals. The acceptance is enclosed: from below by what is emitted, and from above by
/// `1 + P(H) - q(H)^n` for the set H of tokens that are not used up, [`Self::holds`].
///
/// # Complexity
/// O(V log V) to solve, by one sort and one root a token; [`Self::emit`] is O(n).
/// Source: specgap's: `docs/theory/`, theorem L1.
#[derive(Clone, Debug)]
pub struct LevelPlan {
    drafts: usize,
    tier: Vec<u32>,
    delay: Vec<f64>,
    tiers: u32,
    horizon: f64,
    /// H, by token.
    held: Vec<bool>,
    pub(super) thinning: Thinning,
    rates: LevelRates,
}

plan_answers! {
    LevelPlan:
    "alpha\\*, between what this plan accepts and `1 + P(H) - q(H)^n`.";
    "Law of the output after a rejection, V entries.";
    "Tells whether the token is in H, the certificate of the upper bound: those that can be \
     drafted and are not used up at the end."
}

impl LevelPlan {
    /// The plan of `drafts` i.i.d. drafts.
    ///
    /// # Errors
    /// Rows of different length; no drafts.
    /// O(V log V).
    ///
    /// # Example
    /// ```
    /// use specgap_number::distribution::{Draft, Target};
    /// use specgap_plan::LevelPlan;
    /// let (p, q) = (Target::new(&[0.0, 0.2, 0.8])?, Draft::new(&[0.2, 0.2, 0.6])?);
    /// let plan = LevelPlan::iid(&p, &q, 2)?;
    /// assert!((plan.acceptance_rate().value() - 24.0 / 25.0).abs() < 1e-15);
    /// assert!(plan.holds(0) && !plan.holds(1));
    /// assert!(plan.law(&p, &q).l1_error < 1e-14);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn iid(target: &Target, draft: &Draft, drafts: usize) -> Result<Self, PlanError> {
        Self::iid_in_order(target, draft, &RatioOrder::of(target, draft), drafts)
    }

    /// [`Self::iid`] with the order of the same rows, which does not depend on n.
    pub fn iid_in_order(
        target: &Target,
        draft: &Draft,
        order: &RatioOrder,
        drafts: usize,
    ) -> Result<Self, PlanError> {
        PlanError::check(target.vocab(), draft.vocab(), drafts)?;
        let (p, q) = (target.probabilities(), draft.probabilities());
        let found = sweep(q, order.rising(), drafts);
        let (thinning, accepted) = Thinning::new(p, &found.emitted);
        let accepted = accepted.min(1.0);
        let last = found.tiers.wrapping_sub(1);
        let stops = found.horizon < f64::INFINITY;
        let held: Vec<bool> = (found.tier.iter().zip(q))
            .map(|(&tier, &q)| q > 0.0 && (tier == NO_TIER || stops && tier == last))
            .collect();
        // Masses outside H, so that nothing is lost where H is nearly everything.
        let mass = |row: &[f64]| {
            let inside = |held: &bool, mass: f64| if *held { mass } else { 0.0 };
            let terms: Scratch<f64> = held.iter().zip(row).map(|(h, &m)| inside(h, m)).collect();
            split_sum(&terms, &terms, |mass, _| mass)
        };
        let (p_inside, q_inside) = (mass(p), mass(q).min(1.0));
        let most = 1.0 + p_inside - q_inside.powi(drafts as i32);
        let n = drafts as f64;
        // Both sums, the power and the difference are rounded: at most 2n + 2 times.
        let most_error = (3.0 * n + 6.0) * f64::EPSILON + 2.0 * PROBABILITY_RELATIVE_ERROR;
        // A mean price is rounded 4n times, and the mass left enters it to the power n - 1; q
        // enters everything n times. Delays are off by two ulps of the latest one, which moves
        // every mass by as much.
        let error = accepted
            * ((10.0 * n + 80.0) * f64::EPSILON + 4.0 * (n + 1.0) * f64::EPSILON * found.latest);
        Ok(Self {
            drafts,
            tier: found.tier,
            delay: found.delay,
            tiers: found.tiers,
            horizon: found.horizon,
            held,
            thinning,
            rates: LevelRates::enclosed([accepted, error], [most, most_error]),
        })
    }

    /// n.
    pub fn drafts(&self) -> usize {
        self.drafts
    }

    /// V.
    pub fn vocab(&self) -> usize {
        self.tier.len()
    }

    /// Groups of tokens that run one after the other.
    pub fn tiers(&self) -> usize {
        self.tiers as usize
    }

    /// Tier of the token, and when its clock starts there; `None` if it is never accepted.
    pub fn start_of(&self, token: u32) -> Option<(u32, f64)> {
        let tier = self.tier.get(token as usize).copied()?;
        (tier != NO_TIER).then(|| (tier, self.delay[token as usize]))
    }

    /// Returns when a tier ends: never, but for the last one.
    pub fn horizon_of(&self, tier: u32) -> f64 {
        if tier + 1 == self.tiers {
            self.horizon
        } else {
            f64::INFINITY
        }
    }

    /// The first tier that the drafts touch, and those in it: slot, token, delay.
    fn competing(&self, tuple: &[u32]) -> Option<(u32, impl Iterator<Item = (usize, u32, f64)>)> {
        let starts = || {
            let slots = tuple.iter().enumerate();
            slots.filter_map(|(slot, &token)| {
                let (tier, delay) = self.start_of(token)?;
                Some((tier, (slot, token, delay)))
            })
        };
        let first = starts().map(|(tier, _)| tier).min()?;
        let here = starts().filter_map(move |(tier, one)| (tier == first).then_some(one));
        Some((first, here))
    }

    /// Probability that each draft of the tuple is accepted; the rest of 1 goes to the
    /// residual.
    ///
    /// While m clocks run, what is left falls as e^-(m t), and each of the m rings first
    /// equally often: no integral is needed. O(n log n).
    pub fn accepted(&self, tuple: &[u32]) -> Vec<f64> {
        let mut accepted = vec![0.0; tuple.len()];
        let Some((tier, competing)) = self.competing(tuple) else {
            return accepted;
        };
        let mut clocks: Vec<(usize, u32, f64)> = competing.collect();
        clocks.sort_by(|a, b| a.2.total_cmp(&b.2));
        // Backwards: how often the clock that starts here wins, given that none rang before.
        let mut wins = vec![0.0; clocks.len()];
        let (mut later, mut end) = (0.0, self.horizon_of(tier));
        for (index, (&(_, _, start), wins)) in clocks.iter().zip(&mut wins).enumerate().rev() {
            let running = (index + 1) as f64;
            let exponent = running * (start - end);
            later = later * exponent.exp() - exponent.exp_m1() / running;
            (*wins, end) = (later, start);
        }
        let (mut none_rang, mut before) = (1.0, 0.0);
        for (index, (&(slot, token, start), wins)) in clocks.iter().zip(wins).enumerate() {
            if index > 0 {
                none_rang *= (index as f64 * (before - start)).exp();
            }
            accepted[slot] = none_rang * wins * self.thinning.keep()[token as usize];
            before = start;
        }
        accepted
    }

    /// Runs the plan once: O(n), plus O(log V) after a rejection.
    pub fn emit(&self, tuple: &[u32], rng: &mut dyn RngCore) -> Verdict {
        let Some((tier, competing)) = self.competing(tuple) else {
            return self.thinning.reject(rng);
        };
        let mut first = (self.horizon_of(tier), None);
        for (slot, token, start) in competing {
            let rings = start - (-rng.random::<f64>()).ln_1p();
            if rings < first.0 {
                first = (rings, Some((slot, token)));
            }
        }
        self.thinning.keep_or_reject(first.1, rng)
    }
}
