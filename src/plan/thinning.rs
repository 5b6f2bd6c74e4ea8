//! What makes plans by weights lossless, whatever the weights: a token that is emitted
//! too often is thinned, and the residual is what is left of p.

use super::{Emission, PlanLaw};
use crate::distribution::TwoFloat;
use crate::scheme::token_id;
use rand::{Rng, RngCore};
use std::sync::Arc;

/// How often an emitted token is kept, and the law of the output otherwise.
#[derive(Clone, Debug)]
pub(super) struct Thinning {
    keep: Vec<f64>,
    pub(super) residual: Arc<[f64]>,
    /// Sums of the residual before it was normalised.
    cumulative: Vec<f64>,
}

impl Thinning {
    /// Cuts what is emitted to p, and what is then accepted in all. O(V).
    pub(super) fn new(target: &[f64], emitted: &[f64]) -> (Self, f64) {
        let mut keep = vec![1.0; target.len()];
        let mut accepted = TwoFloat::ZERO;
        let mut residual = vec![0.0; target.len()];
        let mut cumulative = Vec::with_capacity(target.len());
        let mut rest = TwoFloat::ZERO;
        for (token, (&p, &a)) in target.iter().zip(emitted).enumerate() {
            let kept = if a > p {
                keep[token] = p / a;
                p
            } else {
                a.max(0.0)
            };
            accepted += kept;
            residual[token] = (p - kept).max(0.0);
            rest += residual[token];
            cumulative.push(rest.value());
        }
        let total = rest.value();
        if total > 0.0 {
            for share in &mut residual {
                *share /= total;
            }
        } else {
            // Nothing is ever rejected; any law will do.
            residual.copy_from_slice(target);
            let mut sum = TwoFloat::ZERO;
            for (sum_to, &p) in cumulative.iter_mut().zip(target) {
                sum += p;
                *sum_to = sum.value();
            }
        }
        let thinning = Self {
            keep,
            residual: residual.into(),
            cumulative,
        };
        (thinning, accepted.value())
    }

    /// Probability that an emitted token is kept.
    pub(super) fn keep(&self, token: usize) -> f64 {
        self.keep[token]
    }

    /// Picks one of the competing drafts, each a slot and a token, in proportion to its
    /// weight in `total`, or none; thins it; else draws from the residual.
    pub(super) fn emit(
        &self,
        competing: impl Iterator<Item = (usize, u32)>,
        weight: &[f64],
        total: f64,
        rng: &mut dyn RngCore,
    ) -> Emission {
        let mut left = rng.random::<f64>() * total;
        for (slot, token) in competing {
            let weight = weight[token as usize];
            if left < weight {
                if rng.random::<f64>() < self.keep[token as usize] {
                    return Emission {
                        token,
                        accepted: Some(slot),
                    };
                }
                break;
            }
            left -= weight;
        }
        self.reject(rng)
    }

    /// A draw from the residual. O(log V).
    pub(super) fn reject(&self, rng: &mut dyn RngCore) -> Emission {
        let rest = self.cumulative.last().copied().unwrap_or(0.0);
        let point = rng.random::<f64>() * rest;
        let index = self.cumulative.partition_point(|&sum| sum <= point);
        Emission {
            token: token_id(index.min(self.cumulative.len().saturating_sub(1))),
            accepted: None,
        }
    }

    /// The output law, from what is emitted and kept.
    pub(super) fn law(&self, kept: &[f64], target: &[f64]) -> PlanLaw {
        let mut accepted = TwoFloat::ZERO;
        for &mass in kept {
            accepted += mass;
        }
        let rejected = (TwoFloat::ONE - accepted).value();
        let mut error = TwoFloat::ZERO;
        let output: Vec<f64> = kept
            .iter()
            .zip(self.residual.iter())
            .zip(target)
            .map(|((mass, share), p)| {
                let out = mass + rejected * share;
                error += (out - p).abs();
                out
            })
            .collect();
        PlanLaw {
            output,
            acceptance_rate: accepted.value(),
            l1_error: error.value(),
        }
    }
}
