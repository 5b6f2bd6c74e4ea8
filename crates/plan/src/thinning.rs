//! What makes plans by weights lossless, whatever the weights: a token that is emitted
//! too often is thinned, and the residual is what is left of p.

use multiversion::multiversion;
use rand::{Rng, RngCore};
use specgap_number::distribution::{LANES, SplitSum, UnitSum, token_id};
use std::sync::Arc;

/// What a verifier returns for one tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The output token.
    pub token: u32,
    /// Which draft was accepted, from 0; `None` if the token was drawn from a
    /// residual.
    pub accepted: Option<usize>,
}

/// Output law of a plan.
#[derive(Clone, Debug)]
pub struct PlanLaw {
    /// Law of the output, V entries.
    pub output: Vec<f64>,
    /// Probability that a draft is accepted.
    pub acceptance_rate: f64,
    /// Sum over tokens of |output - p|.
    pub l1_error: f64,
}

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
        let mut residual = vec![0.0; target.len()];
        let accepted = cut(target, emitted, &mut keep, &mut residual);
        let cumulative = running_sums(&residual);
        let total = cumulative.last().copied().unwrap_or(0.0);
        let cumulative = if total > 0.0 {
            for share in &mut residual {
                *share /= total;
            }
            cumulative
        } else {
            // Nothing is ever rejected; any law will do.
            residual.copy_from_slice(target);
            running_sums(target)
        };
        let thinning = Self {
            keep,
            residual: residual.into(),
            cumulative,
        };
        (thinning, accepted)
    }

    /// Probability that an emitted token is kept, by token.
    pub(super) fn keep(&self) -> &[f64] {
        &self.keep
    }

    /// Takes from what is emitted of each draft what is thinned.
    pub(super) fn thin(&self, emitted: &mut [f64], tuple: &[u32]) {
        for (share, &token) in emitted.iter_mut().zip(tuple) {
            *share *= self.keep.get(token as usize).unwrap_or(&0.0);
        }
    }

    /// Keeps the token of a slot as often as it should, else draws from the residual.
    pub(super) fn keep_or_reject(
        &self,
        emitted: Option<(usize, u32)>,
        rng: &mut dyn RngCore,
    ) -> Verdict {
        match emitted {
            Some((slot, token)) if rng.random::<f64>() < self.keep[token as usize] => Verdict {
                token,
                accepted: Some(slot),
            },
            _ => self.reject(rng),
        }
    }

    /// Returns the probability that this token was accepted, given that it is the output, where in
    /// all `accepted` are.
    pub(super) fn given(&self, token: u32, p: f64, accepted: f64) -> f64 {
        match self.residual.get(token as usize) {
            Some(share) if p > 0.0 => (1.0 - (1.0 - accepted) * share / p).clamp(0.0, 1.0),
            _ => 0.0,
        }
    }

    /// A draw from the residual. O(log V).
    pub(super) fn reject(&self, rng: &mut dyn RngCore) -> Verdict {
        let rest = self.cumulative.last().copied().unwrap_or(0.0);
        let point = rng.random::<f64>() * rest;
        let index = self.cumulative.partition_point(|&sum| sum <= point);
        Verdict {
            token: token_id(index.min(self.cumulative.len().saturating_sub(1))),
            accepted: None,
        }
    }

    /// The output law, from how often tokens are emitted before they are thinned.
    pub(super) fn law(&self, mut emitted: Vec<f64>, target: &[f64]) -> PlanLaw {
        for (emitted, keep) in emitted.iter_mut().zip(&self.keep) {
            *emitted *= keep;
        }
        let mut output = vec![0.0; target.len()];
        let [accepted, error] = output_law(&emitted, &self.residual, target, &mut output);
        PlanLaw {
            output,
            acceptance_rate: accepted,
            l1_error: error,
        }
    }
}

/// Sums of all entries up to each.
fn running_sums(entries: &[f64]) -> Vec<f64> {
    let mut sum = UnitSum::default();
    let sums = entries.iter().map(|&entry| {
        sum.add(entry);
        sum.value()
    });
    sums.collect()
}

/// Fills in how often a token is kept and what is left of p; returns what is accepted.
#[multiversion(targets = "simd")]
fn cut(target: &[f64], emitted: &[f64], keep: &mut [f64], residual: &mut [f64]) -> f64 {
    let mut accepted = SplitSum::default();
    let rows = target.chunks(LANES).zip(emitted.chunks(LANES));
    let out = keep.chunks_mut(LANES).zip(residual.chunks_mut(LANES));
    for ((target, emitted), (keep, residual)) in rows.zip(out) {
        let mut kept = [0.0; LANES];
        let tokens = target.iter().zip(emitted).zip(&mut kept);
        for (((&p, &a), kept), (keep, residual)) in tokens.zip(keep.iter_mut().zip(residual)) {
            // Whether a is a hair above p or below it is a toss: no branch guesses that.
            *keep = if a > p { p / a } else { 1.0 };
            let positive = if a > 0.0 { a } else { 0.0 };
            *kept = if a > p { p } else { positive };
            let left = p - *kept;
            *residual = if left > 0.0 { left } else { 0.0 };
        }
        accepted.add(&kept);
    }
    accepted.value()
}

/// Writes the output law; returns what is accepted, and the sum of |output - p|.
#[multiversion(targets = "simd")]
fn output_law(kept: &[f64], residual: &[f64], target: &[f64], output: &mut [f64]) -> [f64; 2] {
    let mut accepted = SplitSum::default();
    for kept in kept.chunks(LANES) {
        let mut masses = [0.0; LANES];
        masses[..kept.len()].copy_from_slice(kept);
        accepted.add(&masses);
    }
    let rejected = accepted.short_of_one();
    let mut error = SplitSum::default();
    let rows = kept.chunks(LANES).zip(residual.chunks(LANES));
    let rows = rows.zip(target.chunks(LANES));
    for (output, ((kept, residual), target)) in output.chunks_mut(LANES).zip(rows) {
        let mut errors = [0.0; LANES];
        let tokens = kept.iter().zip(residual).zip(target);
        for ((output, error), ((kept, share), p)) in output.iter_mut().zip(&mut errors).zip(tokens)
        {
            *output = kept + rejected * share;
            *error = (*output - p).abs();
        }
        error.add(&errors);
    }
    [accepted.value(), error.value()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use specgap_number::distribution::compensated_sum;

    /// One token at a time, by compensated sums.
    #[test]
    fn thins_what_is_emitted_too_often_and_leaves_the_rest() {
        for count in [0usize, 1, 15, 16, 40, 1000] {
            let weight = |i: usize| ((i * 37 % 101) as f64 + 0.5) / 1e4 / (i + 1) as f64;
            let target: Vec<f64> = (0..count).map(weight).collect();
            let emitted: Vec<f64> = (0..count)
                .map(|i| match i % 5 {
                    0 => 1.25 * target[i],
                    1 => target[i],
                    2 => 0.0,
                    3 => f64::NAN,
                    _ => 0.5 * target[i],
                })
                .collect();
            let (thinning, accepted) = Thinning::new(&target, &emitted);
            let kept: Vec<f64> = (target.iter().zip(&emitted))
                .map(|(&p, &a)| if a > p { p } else { a.max(0.0) })
                .collect();
            let sum = compensated_sum(kept.iter().copied());
            assert!((accepted - sum).abs() <= f64::EPSILON * sum, "{count}");
            let left = compensated_sum(target.iter().zip(&kept).map(|(p, kept)| p - kept));
            let mut before = 0.0;
            for token in 0..count {
                let kept_share = emitted[token] * thinning.keep[token];
                if token % 5 != 3 {
                    assert!((kept_share - kept[token]).abs() <= f64::EPSILON * kept[token]);
                }
                if left > 0.0 {
                    let share = (target[token] - kept[token]) / left;
                    assert!((thinning.residual[token] - share).abs() <= 1e-15 * share);
                }
                assert!(thinning.cumulative[token] >= before);
                before = thinning.cumulative[token];
            }
            assert!((before - left).abs() <= 1e-15 * left || left == 0.0);
            let numbers = emitted.iter().map(|a| if a.is_nan() { 0.0 } else { *a });
            let law = thinning.law(numbers.collect(), &target);
            assert!((law.acceptance_rate - sum).abs() <= f64::EPSILON * sum);
            let rows = law.output.iter().zip(&target);
            let error = compensated_sum(rows.map(|(out, p)| (out - p).abs()));
            assert!((law.l1_error - error).abs() <= f64::EPSILON * error);
        }
    }
}
