//! Mass of the residual as a function of how much of q was taken: what rejection
//! sampling without replacement needs of a (p, q), in O(log V) a question.

use specgap_number::distribution::{LANES, Rows, TwoFloat, by_rising_ratio, compensated_sum};
use specgap_number::scratch::Scratch;

/// Tokens of which a few may hold nearly all of q.
const HEAVY: f64 = 1.0 / 1024.0;

/// M(L) = sum of (p - L q)+ for any L: tokens by falling p/q with prefix sums.
///
/// Prefix sums are rounded once, so M(L) is within 2 epsilon (1 + L).
#[derive(Debug)]
pub(super) struct Curve {
    pub(super) ratios: Scratch<f64>,
    /// Entry k: sums over the k tokens of the largest ratio.
    pub(super) target: Scratch<f64>,
    pub(super) draft: Scratch<f64>,
    /// Mass of p where q = 0.
    pub(super) unreachable: f64,
    /// The tokens in that order, and their q.
    pub(super) tokens: Scratch<u32>,
    pub(super) masses: Scratch<f64>,
    /// Sum of q, in two words; what is left without the heaviest tokens is good to
    /// (heavy tokens + 3) 2^-104 and V 2^-104 relative.
    pub(super) total: TwoFloat,
    /// A token that holds nearly all of q, if one does, and the sum of all others, to a few epsilon.
    heaviest: Option<(u32, f64)>,
}

/// q of a token from which on what it leaves is summed by itself.
const HEAVIEST: f64 = 0.999;

impl Curve {
    pub(super) fn new(target: &[f64], draft: &[f64]) -> Self {
        let mut order = by_rising_ratio(Rows { target, draft });
        order.reverse();
        let mut unreachable = TwoFloat::ZERO;
        for (p, q) in target.iter().zip(draft) {
            if *q <= 0.0 {
                unreachable += *p;
            }
        }
        let (mut p_sum, mut q_sum) = (unreachable, TwoFloat::ZERO);
        let room = order.len();
        let mut curve = Self {
            ratios: Scratch::with_capacity(room),
            target: Scratch::with_capacity(room + 1),
            draft: Scratch::with_capacity(room + 1),
            unreachable: unreachable.value(),
            tokens: Scratch::with_capacity(room),
            masses: Scratch::with_capacity(room),
            total: TwoFloat::ZERO,
            heaviest: None,
        };
        curve.target.push(p_sum.value());
        curve.draft.push(0.0);
        for &(ratio, token) in order.iter() {
            let (p, q) = (target[token as usize], draft[token as usize]);
            p_sum += p;
            q_sum += q;
            curve.ratios.push(ratio);
            curve.tokens.push(token);
            curve.target.push(p_sum.value());
            curve.draft.push(q_sum.value());
            curve.masses.push(q);
        }
        curve.total = q_sum;
        let heavy = |q: f64| q >= HEAVY;
        // Without a branch first: most chunks hold none.
        let any = |chunk: &&[f64]| chunk.iter().fold(false, |any, &q| any | heavy(q));
        let chunks = curve.masses.chunks(LANES).filter(any);
        let held: f64 = chunks.flatten().filter(|&&q| heavy(q)).sum();
        if held >= 0.999 {
            // What the heavy ones leave has to keep its digits: the light ones first.
            let sum = |keep: &dyn Fn(f64) -> bool| {
                let kept = curve.masses.iter().filter(|&&q| keep(q));
                kept.fold(TwoFloat::ZERO, |sum, &q| sum + TwoFloat::from(q))
            };
            curve.total = sum(&|q| !heavy(q)) + sum(&heavy);
            let place = curve.masses.iter().position(|&q| q >= HEAVIEST);
            curve.heaviest = place.map(|place| {
                let others = [&curve.masses[..place], &curve.masses[place + 1..]];
                let others = others.into_iter().flatten().copied();
                (curve.tokens[place], compensated_sum(others))
            });
        }
        curve
    }

    /// What is left of q without a token of mass `q`.
    pub(super) fn rest(&self, token: u32, q: f64) -> f64 {
        match self.heaviest {
            Some((heaviest, others)) if heaviest == token => others,
            _ => (self.total - TwoFloat::from(q)).value(),
        }
    }

    pub(super) fn at(&self, factor: f64) -> f64 {
        if !factor.is_finite() {
            return self.unreachable;
        }
        let count = self.ratios.partition_point(|&ratio| ratio > factor);
        (self.target[count] - factor * self.draft[count]).max(self.unreachable)
    }

    /// [`Self::at`] for a factor with no more than `most` larger ratios.
    fn at_or_before(&self, most: usize, factor: f64) -> f64 {
        let mut step = 1;
        while step <= most && self.ratios[most - step] <= factor {
            step *= 2;
        }
        let start = most.saturating_sub(step);
        let count = start + self.ratios[start..most].partition_point(|&ratio| ratio > factor);
        (self.target[count] - factor * self.draft[count]).max(self.unreachable)
    }

    /// The line that touches M at `touch`, at `factor`: M is convex, so this is
    /// a lower bound.
    pub(super) fn tangent(&self, touch: f64, factor: f64) -> f64 {
        if !touch.is_finite() || !factor.is_finite() {
            return self.unreachable;
        }
        let count = self.ratios.partition_point(|&ratio| ratio > touch);
        (self.target[count] - factor * self.draft[count]).max(self.unreachable)
    }

    /// The probability that two sequential draws without replacement are both rejected by
    /// recursive rejection sampling without replacement: with s = 1 in total and L = 1 after the
    /// first, the sum over tokens of (q - p)+ M(1 + M(1)/(1-q))/M(1). O(V log V).
    pub(super) fn two_sequential_rejected(&self, target: &[f64], draft: &[f64]) -> f64 {
        let total = self.total.value();
        let first = self.at(0.0) / total;
        let mass = self.at(first);
        if mass <= 0.0 {
            return 0.0;
        }
        let below = self.ratios.partition_point(|&ratio| ratio > first);
        // No 1/(1-q) is below 1: all questions are here or before, most of them here.
        let nearest = self
            .ratios
            .partition_point(|&ratio| ratio > first + mass / total);
        let mut sum = TwoFloat::ZERO;
        for &token in &self.tokens[below..] {
            let (p, q) = (target[token as usize], draft[token as usize]);
            let rest = self.rest(token, q);
            let left = if rest > 0.0 {
                self.at_or_before(nearest, first + mass / rest)
            } else {
                self.unreachable
            };
            sum += (first * q - p).max(0.0) * left;
        }
        (sum.value() / mass).clamp(0.0, mass)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A heavy token comes first, and each light one would be added to 1.
    #[test]
    fn what_a_heavy_token_leaves_keeps_its_digits() {
        let light = |i: u32| 1e-22 * (1.0 + f64::from(i * 7919 % 1009) / 1009.0);
        let draft: Vec<f64> = std::iter::once(1.0)
            .chain((0..100_000).map(light))
            .collect();
        let mut target = draft.clone();
        target[0] = 2.0;
        let curve = Curve::new(&target, &draft);
        assert_eq!(curve.tokens[0], 0);
        let rest = (curve.total - TwoFloat::from(1.0)).value();
        let truth = specgap_number::distribution::compensated_sum(draft[1..].iter().copied());
        assert!((rest - truth).abs() <= 4e-16 * truth, "{rest} {truth}");
    }
}
