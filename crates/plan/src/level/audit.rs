//! How often the clocks of a plan emit each token, by Gauss-Legendre quadrature between starts.

use crate::{LevelPlan, PlanLaw};
use specgap_number::distribution::{Draft, Target, TwoFloat, compensated_sum};
use specgap_number::quadrature::gauss_legendre;

impl LevelPlan {
    /// The output law, by an integral that shares nothing with the sweep. O(n V + V log V).
    pub fn law(&self, target: &Target, draft: &Draft) -> PlanLaw {
        let emitted = emission(self, draft.probabilities());
        self.thinning.law(emitted, target.probabilities())
    }
}

/// Integrates the plan's tiers and delays alone. In tier order, s at time t is the mass of later
/// tiers and of clocks that have not rung, and token x is emitted the integral of
/// `n s^(n-1) q e^-(t - start) dt`. With u = e^-(t - start of a piece) that is a polynomial of
/// degree n - 1 in u.
fn emission(plan: &LevelPlan, draft: &[f64]) -> Vec<f64> {
    let drafts = plan.drafts() as f64;
    let rule = gauss_legendre(plan.drafts().div_ceil(2).max(1));
    let mut emitted = vec![0.0; draft.len()];
    let mut starts: Vec<(u32, f64, usize)> = (0u32..)
        .zip(draft)
        .filter_map(|(token, _)| {
            let (tier, delay) = plan.start_of(token)?;
            Some((tier, delay, token as usize))
        })
        .collect();
    starts.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut waiting = TwoFloat::from(compensated_sum(draft.iter().copied()));
    for tier in starts.chunk_by(|a, b| a.0 == b.0) {
        let horizon = plan.horizon_of(tier[0].0);
        // Each piece: from where a clock starts to where the next does.
        let mut running = TwoFloat::ZERO;
        let mut pieces = Vec::with_capacity(tier.len());
        for (index, &(_, start, token)) in tier.iter().enumerate() {
            running += draft[token];
            waiting += -draft[token];
            let (idle, run) = (waiting.value().max(0.0), running.value());
            let end = tier.get(index + 1).map_or(horizon, |next| next.1);
            // What rings: of short pieces, the rest of 1 would have no digits of it.
            let fall = (start - end).exp_m1();
            let half = -0.5 * fall;
            let middle = 1.0 - half;
            let price = |(x, weight): &(f64, f64)| {
                let s = idle + run * (middle + half * x);
                weight * s.powf(drafts - 1.0)
            };
            let integral = drafts * half * rule.iter().map(price).sum::<f64>();
            pieces.push((integral, fall));
            running += run * fall;
        }
        let mut rest = TwoFloat::ZERO;
        for (&(_, _, token), (integral, fall)) in tier.iter().zip(pieces).rev() {
            rest += rest.value() * fall;
            rest += integral;
            emitted[token] = draft[token] * rest.value();
        }
    }
    emitted
}
