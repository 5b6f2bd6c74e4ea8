//! Tiers whose prefixes are nearly minimisers: weights that lie far apart.
//!
//! A *cut* of a tier is how often a draft above the first k groups loses to one of them or
//! to the slot that rejects. It is small where the first k groups are nearly a minimiser, and
//! then it, and not an emission, says how far apart the weights are.

use super::emission::State;
use super::tier::Tier;

/// Contests won this seldom by the tokens of a prefix call for weights that are
/// set apart from the start.
const APART: f64 = 1e-3;

/// Cuts are not asked to be smaller, since rounding is not.
const SMALLEST_CUT: f64 = 2e-15;

/// Longest step of a weight against the next lower one, where the cuts are solved; how
/// often such a step is tried shorter, and how often in a row none may help.
const LONGEST_CLIMB: f64 = 10.0;
const SHORTER_CLIMBS: usize = 3;
const LOST_CLIMBS: usize = 8;

impl Tier {
    /// Weights for tiers whose prefixes are nearly minimisers; `None` if none is.
    ///
    /// The tokens of a prefix must be emitted `delta = t(prefix) - P(all drafts in
    /// it)` of the time against tokens above it, out of M, the probability that
    /// both are drafted; so their weights stand to those above about as delta to
    /// M - delta.
    pub(super) fn apart(&self) -> Option<Vec<f64>> {
        let power = |mass: f64| mass.powi(self.drafts as i32);
        let total = power(self.inside);
        let refused = self.rejected.unwrap_or(0.0);
        let (mut held, mut wanted) = (self.base, refused);
        let below = if self.rejected.is_some() {
            0.0
        } else {
            power(self.base)
        };
        let mut weights = Vec::with_capacity(self.mass.len());
        let mut logarithm = 0.0f64;
        let mut previous = None;
        let mut found = false;
        for (&mass, &ratio) in self.mass.iter().zip(&self.ratio) {
            let delta = (wanted - (power(held) - below)).max(1e-16);
            let both = if self.rejected.is_some() {
                total - power(held)
            } else {
                total - power(held) - (power(self.inside - held + self.base) - power(self.base))
            };
            let odds = delta / (both - delta).max(1e-16);
            let coordinate = self.coordinate(ratio);
            let rise = previous.map_or(0.0, |before: f64| (coordinate - before).max(0.0));
            let first = previous.is_none() && self.rejected.is_none();
            if odds < APART && !first {
                found = true;
                logarithm += rise.max(-odds.ln());
            } else {
                logarithm += rise.min(2.0);
            }
            weights.push(logarithm.min(300.0).exp());
            previous = Some(coordinate);
            held += mass;
            wanted += mass * ratio;
        }
        found.then_some(weights)
    }

    /// What each cut must be: for k = 0, 1, .., how often a draft above the first k
    /// groups loses to one of them or to the rejecting slot,
    ///
    /// `R + t(first k) - P(all drafts are among them or below)`, R what is rejected;
    ///
    /// small where the first k groups are nearly a minimiser.
    fn wanted_cuts(&self) -> Vec<f64> {
        let power = |mass: f64| mass.powi(self.drafts as i32);
        let (mut wanted, below) = match self.rejected {
            Some(rejected) => (rejected, 0.0),
            None => (0.0, power(self.base)),
        };
        let mut held = self.base;
        let mut cuts = Vec::with_capacity(self.mass.len());
        for (&mass, &ratio) in self.mass.iter().zip(&self.ratio) {
            cuts.push((wanted - (power(held) - below)).max(SMALLEST_CUT));
            held += mass;
            wanted += mass * ratio;
        }
        cuts
    }

    /// What the cuts are: integrals of sums of positive terms, which keep their digits
    /// however small they are.
    fn cuts(&self, state: &State) -> Vec<f64> {
        let grid = &state.field.grid.s;
        let count = self.mass.len();
        let reject = self.reject_weight();
        let mut cuts = vec![0.0; count];
        let mut decays = vec![0.0; count];
        let mut above = vec![0.0; count];
        for (m, &s) in grid.nodes.iter().enumerate() {
            let phi = state.field.phi[m];
            let mut sum = 0.0;
            for k in (0..count).rev() {
                decays[k] = self.mass[k] * (-s * state.weights[k]).exp();
                sum += decays[k];
                above[k] = sum;
            }
            let scale = grid.weights[m] * (-s * reject).exp();
            let (mut below, mut pull) = (self.base, 0.0);
            for k in 0..count {
                // phi^n - below^n and phi^(n-1) - below^(n-1), over phi - below.
                let (mut shorter, mut power) = (0.0, 1.0);
                for _ in 1..self.drafts {
                    shorter = shorter * phi + power;
                    power *= below;
                }
                let whole = shorter * phi + power;
                let wins = self.drafts as f64 * pull * shorter + reject * whole;
                cuts[k] += scale * above[k] * wins;
                below += decays[k];
                pull += state.weights[k] * decays[k];
            }
        }
        cuts
    }

    /// Newton's method on the logarithms of the cuts, for tiers whose prefixes are
    /// nearly minimisers; the number of steps.
    ///
    /// Far from the solution a cut is about e^{-(how far log w is apart there)}, so
    /// that its logarithm is nearly linear where emissions are flat. In the steps
    /// between neighbours the Hessian is the symmetric matrix of derivatives of the
    /// cuts; the step for logarithms is Newton's with `cut log(wanted/cut)` in the place
    /// of `wanted - cut`. What the cuts hardly see, a group that holds nearly nothing of
    /// its cut, is left to the fixed point map.
    pub(super) fn climb(&self, best: &mut State, tolerance: f64, limit: usize) -> usize {
        let wanted = self.wanted_cuts();
        let count = wanted.len();
        // Below the first group there may be nothing to lose to.
        let first = usize::from(self.rejected.is_none());
        let measure = |state: &State| {
            let cuts = self.cuts(state);
            let logarithms: Vec<f64> = (0..count)
                .map(|k| {
                    if k < first {
                        0.0
                    } else {
                        (wanted[k] / cuts[k].max(f64::MIN_POSITIVE)).ln()
                    }
                })
                .collect();
            let merit: f64 = logarithms.iter().map(|x| x * x).sum();
            (cuts, logarithms, merit)
        };
        let mut state = best.clone();
        let (mut cuts, mut logarithms, mut merit) = measure(&state);
        let (mut iterations, mut lost) = (0, 0);
        while best.residual > tolerance && iterations < limit && lost < LOST_CLIMBS {
            iterations += 1;
            let flow = |k: usize| {
                if (first..count).contains(&k) {
                    cuts[k] * logarithms[k]
                } else {
                    0.0
                }
            };
            let right = (0..count).map(|k| flow(k + 1) - flow(k)).collect();
            let Some(step) = self.eliminate(&state, right) else {
                break;
            };
            let mut share = 1.0;
            let mut better = None;
            for _ in 0..SHORTER_CLIMBS {
                let (mut before, mut total) = (0.0, 0.0);
                let mut weights = Vec::with_capacity(count);
                for (k, (weight, &step)) in state.weights.iter().zip(&step).enumerate() {
                    if k >= first {
                        total += (step - before).clamp(-LONGEST_CLIMB, LONGEST_CLIMB);
                    }
                    before = step;
                    weights.push(weight * (share * total).exp());
                }
                if weights.iter().all(|w| w.is_finite()) {
                    let next = self.state(weights);
                    let measured = measure(&next);
                    if measured.2 < merit || next.residual < 0.5 * state.residual {
                        better = Some((next, measured));
                        break;
                    }
                }
                share *= 0.4;
            }
            lost = if better.is_some() { 0 } else { lost + 1 };
            (state, (cuts, logarithms, merit)) = better.unwrap_or_else(|| {
                let next = self.state(self.fixed_point(&state));
                let measured = measure(&next);
                (next, measured)
            });
            if state.residual < best.residual {
                *best = state.clone();
            }
        }
        iterations
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two groups of 1/4 and 3/8, the first of which is to be emitted a little beyond what
    /// it alone is drafted.
    #[test]
    fn weights_of_near_ties_by_hand() {
        let tier = |ratio: [f64; 2], base: f64, rejected| Tier {
            mass: vec![0.25, 0.375],
            ratio: ratio.to_vec(),
            base,
            inside: base + 0.625,
            drafts: 2,
            rejected,
        };
        // 1/16 and 0.0001: out of 3/16, in which both groups are drafted.
        let near = tier([0.2504, 0.9], 0.0, None);
        let rise = near.coordinate(0.9) - near.coordinate(0.2504);
        let odds: f64 = 0.0001 / (0.1875 - 0.0001);
        assert!(-odds.ln() > rise);
        let weights = near.apart().unwrap();
        assert_eq!(weights[0], 1.0);
        assert!((weights[1] * odds - 1.0).abs() < 1e-9, "{weights:?}");
        let cuts = near.wanted_cuts();
        assert!((cuts[1] - 0.0001).abs() < 1e-15, "{cuts:?}");
        // With 1/8 that emits nothing: 9/64 and 1/64 are drafted of it, 15/64 of both.
        let near = tier([(0.0001 + 0.125) / 0.25, 0.9], 0.125, None);
        let both = 0.5625 - 0.140625 - (0.25 - 0.015625);
        let odds: f64 = 0.0001 / (both - 0.0001);
        let weights = near.apart().unwrap();
        assert!((weights[1] * odds - 1.0).abs() < 1e-9, "{weights:?} {odds}");
        assert!((near.wanted_cuts()[1] - 0.0001).abs() < 1e-15);
        // A slot that refuses loses to all: the first group may be near a tie itself.
        let near = tier([0.5, 0.9], 0.0, Some(0.0001));
        let odds: f64 = 0.0001 / (0.390625 - 0.0001);
        let weights = near.apart().unwrap();
        assert!((weights[0] * odds - 1.0).abs() < 1e-9, "{weights:?} {odds}");
        let rise = (near.coordinate(0.9) - near.coordinate(0.5)).min(2.0);
        assert!((weights[1] / weights[0] / rise.exp() - 1.0).abs() < 1e-12);
        let cuts = near.wanted_cuts();
        assert!((cuts[0] - 0.0001).abs() < 1e-15, "{cuts:?}");
        assert!(
            (cuts[1] - (0.0001 + 0.125 - 0.0625)).abs() < 1e-15,
            "{cuts:?}"
        );
        // Where nothing is near a tie there is nothing to say.
        assert!(tier([0.5, 0.9], 0.0, None).apart().is_none());
    }

    /// The cuts as integrals against what emissions say by subtraction.
    #[test]
    fn cuts_are_what_is_emitted_beyond_a_prefix() {
        for (base, rejected) in [(0.0, None), (0.2, None), (0.1, Some(0.05))] {
            for drafts in 1..5 {
                let tier = Tier {
                    mass: vec![0.1, 0.25, 0.15, 0.3],
                    ratio: vec![0.2, 0.5, 0.9, 1.3],
                    base,
                    inside: base + 0.8,
                    drafts,
                    rejected,
                };
                let state = tier.state(vec![0.1, 0.7, 2.0, 30.0]);
                let power = |mass: f64| mass.powi(drafts as i32);
                let emitted: Vec<f64> = (tier.mass.iter().zip(&state.value))
                    .map(|(mass, value)| mass * value)
                    .collect();
                let mut sum = match rejected {
                    Some(_) => power(tier.inside) - emitted.iter().sum::<f64>(),
                    None => power(base),
                };
                let mut held = base;
                for (k, cut) in tier.cuts(&state).into_iter().enumerate() {
                    let beyond = sum - power(held);
                    assert!((cut - beyond).abs() < 1e-14, "{k}: {cut} {beyond}");
                    sum += emitted[k];
                    held += tier.mass[k];
                }
            }
        }
    }
}
