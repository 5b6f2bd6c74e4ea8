//! The plan's output law, by a second path.
//!
//! Nothing here is shared with the solve: weights, levels and thinning are read
//! off the plan, draft masses of the levels are summed again, and the integral over
//! s is done by Gauss-Legendre panels with the library's exponential.

use super::{NO_LEVEL, SlotWeightPlan};
use crate::distribution::{Draft, Target, TwoFloat};

/// Points a panel, and how much longer each panel's right end is than its left.
const POINTS: usize = 20;
const GROWTH: f64 = 2.5;

/// Where e^{-x} is nothing.
const CUT: f64 = 42.0;

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

impl SlotWeightPlan {
    /// The output law, summed anew by Gauss-Legendre panels in s.
    ///
    /// # Complexity
    /// O(V) exponentials a node, some 400 nodes: a few tenths of a second at
    /// V = 49,152.
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
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); levels as usize];
        let mut base = TwoFloat::ZERO;
        for (token, &level) in self.level.iter().enumerate() {
            if level != NO_LEVEL && self.weight[token] > 0.0 {
                members[level as usize].push(token);
            } else {
                base += q[token];
            }
        }
        let rule = gauss_legendre(POINTS);
        let mut emitted = vec![0.0; self.vocab()];
        for (index, members) in members.iter().enumerate() {
            let reject = if index == 0 && self.rejecting {
                1.0
            } else {
                0.0
            };
            let b = base.value();
            let weights: Vec<f64> = members.iter().map(|&token| self.weight[token]).collect();
            let largest = weights.iter().copied().fold(0.0, f64::max);
            let smallest = weights.iter().copied().fold(f64::INFINITY, f64::min);
            let last = CUT / if reject > 0.0 { reject } else { smallest };
            let mut sums = vec![0.0; members.len()];
            let (mut left, mut right) = (0.0, 1.0 / (n * largest + reject));
            let mut decays = vec![0.0; members.len()];
            while left < last && !members.is_empty() {
                for &(x, weight) in &rule {
                    let s = 0.5 * (left + right) + 0.5 * (right - left) * x;
                    let ds = 0.5 * (right - left) * weight;
                    let mut phi = 0.0;
                    for ((decay, w), &token) in decays.iter_mut().zip(&weights).zip(members) {
                        *decay = (-s * w).exp();
                        phi += q[token] * *decay;
                    }
                    // With no rejection, the part where all others are below is
                    // b^(n-1) exactly, whatever the weight.
                    let all = (b + phi).powi(power);
                    let field = if reject > 0.0 {
                        (-s * reject).exp() * all
                    } else {
                        all - b.powi(power)
                    };
                    for (sum, decay) in sums.iter_mut().zip(&decays) {
                        *sum += ds * field * decay;
                    }
                }
                (left, right) = (right, right * GROWTH);
            }
            for ((sum, weight), &token) in sums.iter().zip(&weights).zip(members) {
                let alone = if reject > 0.0 { 0.0 } else { b.powi(power) };
                emitted[token] = n * q[token] * (alone + weight * sum) * self.keep[token];
                base += q[token];
            }
        }
        let mut accepted = TwoFloat::ZERO;
        for &mass in &emitted {
            accepted += mass;
        }
        let acceptance_rate = accepted.value();
        let rejected = (TwoFloat::ONE - accepted).value();
        let mut error = TwoFloat::ZERO;
        let output: Vec<f64> = emitted
            .iter()
            .zip(self.residual.iter())
            .zip(target.probabilities())
            .map(|((mass, share), p)| {
                let out = mass + rejected * share;
                error += (out - p).abs();
                out
            })
            .collect();
        PlanLaw {
            output,
            acceptance_rate,
            l1_error: error.value(),
        }
    }
}
