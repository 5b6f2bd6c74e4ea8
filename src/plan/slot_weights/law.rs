//! The plan's output law, by a second path.
//!
//! Nothing here is shared with the solve: weights, levels and thinning are read
//! off the plan, draft masses of the levels are summed again, and the integral over
//! s is done with other nodes, each exponential by itself.

use super::{NO_LEVEL, SlotWeightPlan};
use crate::distribution::{Draft, Target, TwoFloat, exp_nonpositive};
use multiversion::multiversion;

/// Step in log s: 3.3 nodes an octave, against the solve's 3.
const STEP: f64 = 0.21;

/// Where e^{-x} is nothing.
const CUT: f64 = 46.0;

/// What s times the largest sum of weights is at the first node: all that lies left of
/// it is below that, relatively.
const FIRST: f64 = 1e-18;

/// Up to this exponent e^{-x} is taken as its Taylor polynomial of degree 4, which is
/// then off by at most x^5/120 < 1e-17.
const LIGHT: f64 = 1e-3;
const TERMS: usize = 5;

/// From this exponent on e^{-x} is 0.
const HEAVY: f64 = 690.0;

/// Output law of a plan under i.i.d. drafts from q.
#[derive(Clone, Debug)]
pub struct PlanLaw {
    /// Law of the output, V entries.
    pub output: Vec<f64>,
    /// Probability that a draft is accepted.
    pub acceptance_rate: f64,
    /// Sum over tokens of |output - p|.
    pub l1_error: f64,
}

/// Running sums side by side.
const LANES: usize = 16;

/// Fills in e^{-s w}, and returns the sum of mass times it.
#[multiversion(targets = "simd")]
fn transform(s: f64, weights: &[f64], masses: &[f64], decays: &mut [f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    let rows = weights.chunks(LANES).zip(masses.chunks(LANES));
    for ((weights, masses), decays) in rows.zip(decays.chunks_mut(LANES)) {
        for (((sum, w), mass), decay) in lanes.iter_mut().zip(weights).zip(masses).zip(decays) {
            *decay = exp_nonpositive(-s * w);
            *sum += mass * *decay;
        }
    }
    lanes.iter().sum()
}

#[multiversion(targets = "simd")]
fn add_scaled(share: f64, decays: &[f64], sums: &mut [f64]) {
    for (sum, decay) in sums.iter_mut().zip(decays) {
        *sum += share * decay;
    }
}

/// The tokens of one level by rising octave of the weight.
struct Members {
    tokens: Vec<u32>,
    weights: Vec<f64>,
    masses: Vec<f64>,
    /// What rejects, 1 or 0.
    reject: f64,
    /// Mass of everything below the level.
    base: f64,
    /// n - 1.
    others: i32,
}

impl Members {
    /// Integral over s > 0 of e^{-s w} field(s) ds for the weight w of every member,
    ///
    /// field(s) = e^{-s w_0} (b + phi)^{n-1}, phi(s) = sum of q_j e^{-s w_j};
    ///
    /// without a rejecting slot less b^{n-1}, the part where all others are below: that
    /// part is b^{n-1}/w whatever w is.
    ///
    /// The trapezoidal rule in log s. For every weight the integrand is a positive
    /// mixture of e^{-sW}, whose relative error is at most
    /// 2 sum over k >= 1 of |Gamma(1 + 2 pi i k/h)| < 1e-18 at this step. From the right
    /// to the left more and more members have s w <= [`LIGHT`]; these enter through
    /// the first moments of s w, so that a member costs exponentials at some 64 nodes.
    fn integrals(&self) -> Vec<f64> {
        let count = self.weights.len();
        let mut integrals = vec![0.0; count];
        if count == 0 {
            return integrals;
        }
        let (mut smallest, mut largest) = (f64::INFINITY, 0.0f64);
        for &weight in &self.weights {
            smallest = smallest.min(weight);
            largest = largest.max(weight);
        }
        let last = CUT / (smallest + self.reject);
        let first = FIRST / (f64::from(self.others + 1) * largest + self.reject);
        let nodes = ((last / first).ln() / STEP).ceil() as usize + 1;
        let shrink: [f64; TERMS] = std::array::from_fn(|j| (-STEP * j as f64).exp());
        let mut moments = [0.0f64; TERMS];
        let mut decays = vec![0.0; count];
        // Members below `light` are light, those from `end` on have decayed.
        let (mut light, mut end) = (0, 0);
        // s ds field(s) by node, and the first node at which each member is light.
        let mut shares = Vec::with_capacity(nodes);
        let mut light_from = vec![nodes; count];
        for node in 0..nodes {
            let s = last * (-STEP * node as f64).exp();
            for (moment, shrink) in moments.iter_mut().zip(&shrink) {
                *moment *= shrink;
            }
            while light < count && s * octave_above(self.weights[light]) <= LIGHT {
                let mut term = self.masses[light];
                for moment in &mut moments {
                    *moment += term;
                    term *= s * self.weights[light];
                }
                light_from[light] = node;
                light += 1;
            }
            while end < count && 0.5 * s * octave_above(self.weights[end]) < HEAVY {
                end += 1;
            }
            let heavy = light..end;
            let far = transform(
                s,
                &self.weights[heavy.clone()],
                &self.masses[heavy.clone()],
                &mut decays[heavy.clone()],
            );
            let phi = far + taylor(&moments, 1.0);
            let share = STEP * s * self.field(s, phi);
            add_scaled(share, &decays[heavy.clone()], &mut integrals[heavy]);
            shares.push(share);
        }
        // Nodes at which a member is light: sums of share times (s/s_k)^j, from the left
        // up to the node k that is its last.
        let mut sums = [0.0f64; TERMS];
        let mut members = (0..count).rev().peekable();
        for node in (0..nodes).rev() {
            for (sum, shrink) in sums.iter_mut().zip(&shrink) {
                *sum = *sum * shrink + shares[node];
            }
            let s = last * (-STEP * node as f64).exp();
            while let Some(member) = members.next_if(|&member| light_from[member] >= node) {
                if light_from[member] == node {
                    integrals[member] += taylor(&sums, s * self.weights[member]);
                }
            }
        }
        integrals
    }

    fn field(&self, s: f64, phi: f64) -> f64 {
        if self.reject > 0.0 {
            return (-s * self.reject).exp() * (self.base + phi).powi(self.others);
        }
        // (b + phi)^{n-1} - b^{n-1} without subtracting.
        let (mut difference, mut power) = (0.0, 1.0);
        for _ in 0..self.others {
            // x^{k+1} - b^{k+1} = (x^k - b^k) x + b^k (x - b)
            difference = difference * (self.base + phi) + power * phi;
            power *= self.base;
        }
        difference
    }
}

/// The power of two above a weight: the same for all of its octave.
fn octave_above(weight: f64) -> f64 {
    f64::from_bits((octave(weight) as u64 + 1) << 52)
}

/// Binary exponent, biased.
fn octave(weight: f64) -> usize {
    (weight.to_bits() >> 52) as usize & 0x7ff
}

/// Sorts tokens by the octave of their weight.
fn by_octave(tokens: &[u32], weight: &[f64]) -> Vec<u32> {
    let mut starts = vec![0usize; 0x800];
    for &token in tokens {
        starts[octave(weight[token as usize])] += 1;
    }
    let mut start = 0;
    for slot in &mut starts {
        let count = *slot;
        *slot = start;
        start += count;
    }
    let mut sorted = vec![0; tokens.len()];
    for &token in tokens {
        let slot = &mut starts[octave(weight[token as usize])];
        sorted[*slot] = token;
        *slot += 1;
    }
    sorted
}

/// Sum over j of (-x)^j/j! times the entries.
fn taylor(entries: &[f64; TERMS], x: f64) -> f64 {
    let mut sum = 0.0;
    for j in (0..TERMS).rev() {
        sum = entries[j] - sum * x / (j + 1) as f64;
    }
    sum
}

impl SlotWeightPlan {
    /// The output law, summed anew by a trapezoidal rule of its own in log s.
    ///
    /// # Complexity
    /// O(V): some 64 exponentials a token.
    pub fn law(&self, target: &Target, draft: &Draft) -> PlanLaw {
        let q = draft.probabilities();
        let n = self.drafts as f64;
        let power = self.drafts as i32 - 1;
        let levels = self
            .level
            .iter()
            .filter(|&&level| level != NO_LEVEL)
            .max()
            .map_or(0, |&level| level + 1);
        let mut members: Vec<Vec<u32>> = vec![Vec::new(); levels as usize];
        let mut base = TwoFloat::ZERO;
        for (token, &level) in (0u32..).zip(&self.level) {
            if level != NO_LEVEL && self.weight[token as usize] > 0.0 {
                members[level as usize].push(token);
            } else {
                base += q[token as usize];
            }
        }
        let mut emitted = vec![0.0; self.vocab()];
        for (index, tokens) in members.into_iter().enumerate() {
            let tokens = by_octave(&tokens, &self.weight);
            let rejects = index == 0 && self.rejecting;
            let pick = |row: &[f64]| tokens.iter().map(|&token| row[token as usize]).collect();
            let members = Members {
                weights: pick(&self.weight),
                masses: pick(q),
                tokens,
                reject: if rejects { 1.0 } else { 0.0 },
                base: base.value(),
                others: power,
            };
            let alone = if rejects {
                0.0
            } else {
                members.base.powi(power)
            };
            for (slot, integral) in members.integrals().into_iter().enumerate() {
                let token = members.tokens[slot] as usize;
                let share = alone + members.weights[slot] * integral;
                emitted[token] = n * q[token] * share * self.thinning.keep(token);
                base += q[token];
            }
        }
        self.thinning.law(&emitted, target.probabilities())
    }
}

/// Points and weights of the Gauss-Legendre rule on [-1, 1], by Newton's method on
/// the Legendre polynomial.
pub(in crate::plan) fn gauss_legendre(points: usize) -> Vec<(f64, f64)> {
    (0..points)
        .map(|k| {
            let mut x = (std::f64::consts::PI * (k as f64 + 0.75) / (points as f64 + 0.5)).cos();
            let mut derivative = 1.0;
            for _ in 0..8 {
                let (mut before, mut value) = (1.0, x);
                for degree in 2..=points {
                    let d = degree as f64;
                    (before, value) = (
                        value,
                        ((2.0 * d - 1.0) * x * value - (d - 1.0) * before) / d,
                    );
                }
                derivative = points as f64 * (x * value - before) / (x * x - 1.0);
                x -= value / derivative;
            }
            (x, 2.0 / ((1.0 - x * x) * derivative * derivative))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::SlotWeightSettings;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// Points a panel, and how much longer each panel's right end is than its left.
    const POINTS: usize = 20;
    const GROWTH: f64 = 2.5;

    /// The integrals by Gauss-Legendre panels.
    fn by_panels(members: &Members) -> Vec<f64> {
        let rule = gauss_legendre(POINTS);
        let (smallest, largest) = (
            members.weights[0],
            members.weights[members.weights.len() - 1],
        );
        let n = f64::from(members.others + 1);
        let last = 42.0 / (members.reject + smallest);
        let (mut left, mut right) = (0.0, 1.0 / (n * largest + members.reject));
        let mut sums = vec![0.0; members.weights.len()];
        while left < last {
            for &(x, weight) in &rule {
                let s = 0.5 * (left + right) + 0.5 * (right - left) * x;
                let ds = 0.5 * (right - left) * weight;
                let decays: Vec<f64> = members.weights.iter().map(|w| (-s * w).exp()).collect();
                let phi: f64 = decays.iter().zip(&members.masses).map(|(d, q)| d * q).sum();
                let all = (members.base + phi).powi(members.others);
                let field = if members.reject > 0.0 {
                    (-s * members.reject).exp() * all
                } else {
                    all - members.base.powi(members.others)
                };
                for (sum, decay) in sums.iter_mut().zip(&decays) {
                    *sum += ds * field * decay;
                }
            }
            (left, right) = (right, right * GROWTH);
        }
        sums
    }

    /// Two integrals of one function, and n = 2 without any: 40 levels with weights over
    /// up to 16 decades.
    #[test]
    fn the_integrals_agree_with_panels_and_with_the_closed_form() {
        let mut rng = ChaCha8Rng::seed_from_u64(9);
        for trial in 0..40usize {
            let count = 1 + trial % 7 * 5;
            let spread = rng.random_range(0.1..37.0);
            let mut weights: Vec<f64> = (0..count)
                .map(|_| (spread * (rng.random::<f64>() - 0.5)).exp())
                .collect();
            weights.sort_by(f64::total_cmp);
            let masses: Vec<f64> = (0..count)
                .map(|_| 0.9 * rng.random::<f64>() / count as f64)
                .collect();
            let members = Members {
                tokens: (0..count as u32).collect(),
                base: 0.1,
                reject: f64::from(trial as u8 % 2),
                others: trial as i32 % 5,
                weights,
                masses,
            };
            let found = members.integrals();
            for (slot, (a, b)) in found.iter().zip(by_panels(&members)).enumerate() {
                assert!((a - b).abs() <= 3e-14 * b, "{trial} {slot}: {a} {b}");
            }
            if members.others == 1 {
                for (slot, found) in found.iter().enumerate() {
                    let own = members.weights[slot] + members.reject;
                    let mut sum = members.base * members.reject / own;
                    for (w, q) in members.weights.iter().zip(&members.masses) {
                        sum += q / (own + w);
                    }
                    assert!(
                        (found - sum).abs() <= 3e-15 * sum,
                        "{trial} {slot}: {found} {sum}"
                    );
                }
            }
        }
    }

    #[test]
    fn one_draft_is_emitted_as_it_comes() {
        let (p, q) = (
            Target::new(&[0.5, 0.3, 0.2]).unwrap(),
            Draft::new(&[0.2, 0.3, 0.5]).unwrap(),
        );
        let plan = SlotWeightPlan::solve(&p, &q, 1, &SlotWeightSettings::default()).unwrap();
        let law = plan.law(&p, &q);
        assert!((law.acceptance_rate - 0.7).abs() < 1e-12);
        assert!(law.l1_error < 1e-12);
    }
}
