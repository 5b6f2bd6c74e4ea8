//! The probability that n sequential drafts are all rejected, as a mean over rejected paths
//! with martingale controls.
//!
//! Paths and their weight M(L_n) are those of [`super::sampled`]. At each step the first two
//! moments of the next token's q are known given the past, as sums over stretches in the
//! order of p/q, and so is the probability of each of a few heavy tokens. So, with q taken
//! as 0 at these heavy tokens,
//!
//! ```text
//! d1_k = q - E[q | past],   d2_k = q^2 - E[q^2 | past],   (sum of d1_j, j < k) d1_k,
//! 1[a heavy token is next] - its probability
//! ```
//!
//! have mean 0, whatever the rows are, and M(L_n) depends on a path through the q that it
//! removed: their regression is subtracted from it. The coefficients come from the other
//! half of the paths, so that each half's mean has the right expectation whatever they are,
//! and so has the mean of both.
//!
//! # Exactness
//! Unbiased. What is told beside it is four standard errors, and what a token that is drawn
//! so rarely that no path has it may have moved the mean by: 3 in N of the range of M(L_n).
//! It is no confidence interval, since errors have heavy tails where q is peaked.

use super::curve::Curve;
use super::sampled::PathSampler;
use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use specgap_number::distribution::{TwoFloat, heaviest};
use specgap_number::quadrature::dense;

/// Paths; half of them for the coefficients of the other half.
const PATHS: usize = 2048;

/// Steps of many drafts are taken together: so many groups at most, each with its controls.
const GROUPS: usize = 8;

/// Controls of a group.
const KINDS: usize = 3;

/// Tokens of this q and more, so many at most, have controls of their own.
const HEAVY: f64 = 0.05;
const MOST_HEAVY: usize = 8;

/// Weight of the ridge, a path's variance being 1.
const RIDGE: f64 = 1e-6;

/// Standard errors that are told.
const STANDARD_ERRORS: f64 = 4.0;

/// Paths that might have had a token that none had.
const UNSEEN: f64 = 3.0;

/// P(all of `draws` drafts are rejected), and how far off it may be. O(n (n + log V)) a path
/// after sums over all tokens.
pub(super) fn rejected(curve: &Curve, draws: usize, seed: u64) -> [f64; 2] {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut paths = Paths::new(curve);
    let range = (paths.sampler.most(draws) - paths.least(draws)).max(0.0);
    let found = paths.mean(draws, PATHS, &mut rng);
    let unseen = UNSEEN * range / PATHS as f64;
    [
        found.mean.max(0.0),
        STANDARD_ERRORS * found.standard_error + unseen,
    ]
}

/// A mean of independent paths.
#[derive(Clone, Copy, Debug)]
struct Mean {
    mean: f64,
    standard_error: f64,
}

#[derive(Debug)]
struct Paths<'a> {
    curve: &'a Curve,
    sampler: PathSampler<'a>,
    /// Before each place in the order of falling p/q: sums of q^2, q^3, p q, p q^2.
    sums: Vec<[f64; 4]>,
    /// Places of heavy tokens, by falling q.
    heavy: Vec<usize>,
}

impl<'a> Paths<'a> {
    fn new(curve: &'a Curve) -> Self {
        let mut sums = Vec::with_capacity(curve.masses.len() + 1);
        let mut sum = [0.0; 4];
        sums.push(sum);
        for (&q, &ratio) in curve.masses.iter().zip(&curve.ratios) {
            let (square, mixed) = (q * q, ratio * q * q);
            for (sum, term) in sum.iter_mut().zip([square, square * q, mixed, mixed * q]) {
                *sum += term;
            }
            sums.push(sum);
        }
        let heavy = heaviest(&curve.masses, MOST_HEAVY).into_iter();
        Self {
            heavy: heavy
                .filter(|&place| curve.masses[place] >= HEAVY)
                .collect(),
            sampler: PathSampler::new(curve),
            curve,
            sums,
        }
    }

    /// M(L_n) of the path that takes the heaviest tokens away: no path has less.
    fn least(&self, draws: usize) -> f64 {
        let curve = self.curve;
        let mut gone = heaviest(&curve.masses, draws).into_iter();
        let mut rest = curve.total;
        let (mut factor, mut mass) = (0.0, curve.at(0.0));
        for _ in 0..draws {
            factor += mass / rest.value();
            mass = curve.at(factor);
            if let Some(place) = gone.next() {
                rest = rest - TwoFloat::from(curve.masses[place]);
            }
        }
        mass
    }

    /// E\[q\] and E\[q^2\] of the next rejected token, q taken as 0 at heavy ones, whose
    /// probabilities are written down; `left` is M(L').
    fn expected(&self, factor: f64, offer: f64, left: f64, chances: &mut [f64]) -> [f64; 2] {
        let next = factor + offer;
        let place = |factor: f64| self.curve.ratios.partition_point(|&ratio| ratio > factor);
        let (first, below) = (self.sums[place(next)], self.sums[place(factor)]);
        let all = self.sums.last().copied().unwrap_or_default();
        let mut found = [0.0; 2];
        for (k, moment) in found.iter_mut().enumerate() {
            let middle = next * (below[k] - first[k]) - (below[2 + k] - first[2 + k]);
            let holes: f64 = (self.sampler.holes.iter())
                .map(|&hole| self.curve.masses[hole].powi(k as i32 + 2))
                .sum();
            *moment = (middle + offer * (all[k] - below[k] - holes)) / left;
        }
        for (chance, &place) in chances.iter_mut().zip(&self.heavy) {
            *chance = 0.0;
            if !self.sampler.holes.contains(&place) {
                let (ratio, q) = (self.curve.ratios[place], self.curve.masses[place]);
                let weight = offer * q - ((ratio - factor) * q).max(0.0);
                *chance = weight.max(0.0) / left;
                found[0] -= *chance * q;
                found[1] -= *chance * q * q;
            }
        }
        found
    }

    /// Controls of a path of so many drafts.
    fn width(&self, draws: usize) -> usize {
        KINDS * (draws - 1).clamp(1, GROUPS) + self.heavy.len()
    }

    /// M(L_n) of one path, and its controls: those of heavy tokens, then [`KINDS`] for each
    /// group of steps.
    fn path(&mut self, draws: usize, controls: &mut [f64], rng: &mut dyn RngCore) -> f64 {
        controls.fill(0.0);
        self.sampler.holes.clear();
        let curve = self.curve;
        let (of_heavy, of_groups) = controls.split_at_mut(self.heavy.len());
        let groups = of_groups.len() / KINDS;
        let mut chances = [0.0; MOST_HEAVY];
        let mut rest = curve.total;
        let (mut factor, mut before) = (0.0, 0.0);
        let mut mass = curve.at(factor);
        for draw in 1..=draws {
            let offer = mass / rest.value();
            let next = factor + offer;
            let left = curve.at(next);
            if left <= 0.0 || draw == draws {
                return left;
            }
            let expected = self.expected(factor, offer, left, &mut chances);
            let Some(place) = self.sampler.rejected(factor, offer, rest, rng.random()) else {
                return 0.0;
            };
            let q = curve.masses[place];
            let group = ((draw - 1) * groups / (draws - 1)).min(groups - 1);
            let own = &mut of_groups[KINDS * group..];
            before += self.add(place, expected, &chances, before, of_heavy, own);
            self.sampler.reject(place);
            rest = rest - TwoFloat::from(q);
            (factor, mass) = (next, left);
        }
        mass
    }

    /// Adds a step to the controls of heavy tokens and of its group; its d1.
    fn add(
        &self,
        place: usize,
        expected: [f64; 2],
        chances: &[f64],
        before: f64,
        of_heavy: &mut [f64],
        own: &mut [f64],
    ) -> f64 {
        let mut light = self.curve.masses[place];
        for ((control, chance), &heavy) in of_heavy.iter_mut().zip(chances).zip(&self.heavy) {
            let drawn = if heavy == place { 1.0 } else { 0.0 };
            *control += drawn - chance;
            light *= 1.0 - drawn;
        }
        let off = light - expected[0];
        let terms = [off, light * light - expected[1], before * off];
        for (control, term) in own.iter_mut().zip(terms) {
            *control += term;
        }
        off
    }

    fn mean(&mut self, draws: usize, paths: usize, rng: &mut dyn RngCore) -> Mean {
        let width = self.width(draws);
        let mut values = vec![0.0; paths];
        let mut controls = vec![0.0; paths * width];
        for (value, own) in values.iter_mut().zip(controls.chunks_mut(width)) {
            *value = self.path(draws, own, rng);
        }
        cross_fitted(&values, &controls, width)
    }
}

/// The mean of values less the regression on controls of mean 0, coefficients of each half
/// from the other.
fn cross_fitted(values: &[f64], controls: &[f64], width: usize) -> Mean {
    let half = values.len() / 2;
    let (first, second) = values.split_at(half);
    let (own, other) = controls.split_at(half * width);
    let mut left = Vec::with_capacity(values.len());
    for (values, controls, by) in [
        (first, own, coefficients(second, other, width)),
        (second, other, coefficients(first, own, width)),
    ] {
        let rows = values.iter().zip(controls.chunks(width));
        left.extend(rows.map(|(value, controls)| {
            let explained: f64 = controls.iter().zip(&by).map(|(c, b)| c * b).sum();
            value - explained
        }));
    }
    let count = left.len() as f64;
    let mean = left.iter().sum::<f64>() / count;
    let squares: f64 = left.iter().map(|value| (value - mean).powi(2)).sum();
    Mean {
        mean,
        standard_error: (squares / (count * (count - 1.0).max(1.0))).sqrt(),
    }
}

/// Ridge regression on controls in units of their own size; nothing where they have none.
fn coefficients(values: &[f64], controls: &[f64], width: usize) -> Vec<f64> {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let mut squares = vec![0.0; width];
    for row in controls.chunks(width) {
        for (square, control) in squares.iter_mut().zip(row) {
            *square += control * control;
        }
    }
    let scales: Vec<f64> = (squares.iter())
        .map(|square| {
            let size = (square / count).sqrt();
            if size > 0.0 { 1.0 / size } else { 0.0 }
        })
        .collect();
    let mut matrix = vec![0.0; width * width];
    let mut right = vec![0.0; width];
    let mut scaled = vec![0.0; width];
    for (value, row) in values.iter().zip(controls.chunks(width)) {
        for ((slot, control), scale) in scaled.iter_mut().zip(row).zip(&scales) {
            *slot = control * scale;
        }
        for (at, &one) in scaled.iter().enumerate() {
            right[at] += (value - mean) * one;
            for (entry, other) in matrix[at * width..].iter_mut().zip(&scaled) {
                *entry += one * other;
            }
        }
    }
    for at in 0..width {
        matrix[at * width + at] += RIDGE * count;
    }
    match dense(&mut matrix, &mut right) {
        Some(()) => right.iter().zip(&scales).map(|(b, s)| b * s).collect(),
        None => vec![0.0; width],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_rows::normalised;

    /// A path that is not drawn but enumerated.
    #[derive(Clone)]
    struct Walk {
        holes: Vec<usize>,
        factor: f64,
        rest: f64,
        share: f64,
        controls: Vec<f64>,
        before: f64,
    }

    /// Every pair of rejected tokens with its probability: the controls have mean 0, and
    /// M(L_3) less any multiple of them has the mean that the definition gives.
    #[test]
    fn controls_have_mean_0_by_enumeration() {
        let target = [0.05, 0.1, 0.15, 0.3, 0.02, 0.38];
        let draft = [0.3, 0.25, 0.2, 0.15, 0.04, 0.06];
        let curve = Curve::new(&target, &draft);
        for heavy in [0, 2, 5] {
            let mut paths = Paths::new(&curve);
            paths.heavy.truncate(heavy);
            let draws = 3;
            let width = KINDS + heavy;
            let mut walks = vec![Walk {
                holes: Vec::new(),
                factor: 0.0,
                rest: 1.0,
                share: 1.0,
                controls: vec![0.0; width],
                before: 0.0,
            }];
            let mut chances = [0.0; MOST_HEAVY];
            for _ in 1..draws {
                let mut next = Vec::new();
                for walk in walks {
                    let offer = curve.at(walk.factor) / walk.rest;
                    let left = curve.at(walk.factor + offer);
                    paths.sampler.holes.clone_from(&walk.holes);
                    let expected = paths.expected(walk.factor, offer, left, &mut chances);
                    for place in 0..draft.len() {
                        let (p, q) = (target[curve.tokens[place] as usize], curve.masses[place]);
                        let weight = offer * q - f64::max(p - walk.factor * q, 0.0);
                        if walk.holes.contains(&place) || weight <= 0.0 {
                            continue;
                        }
                        let mut walk = walk.clone();
                        let (of_heavy, own) = walk.controls.split_at_mut(heavy);
                        let before = walk.before;
                        walk.before += paths.add(place, expected, &chances, before, of_heavy, own);
                        walk.holes.push(place);
                        walk.holes.sort_unstable();
                        walk.share *= weight / left;
                        walk.factor += offer;
                        walk.rest -= q;
                        next.push(walk);
                    }
                }
                walks = next;
            }
            let (mut value, mut sums, mut sizes) = (0.0, vec![0.0; width], 0.0);
            let all: f64 = walks.iter().map(|walk| walk.share).sum();
            for walk in &walks {
                let last = curve.at(walk.factor + curve.at(walk.factor) / walk.rest);
                let explained: f64 = walk
                    .controls
                    .iter()
                    .zip([0.7, -2.0, 1.3])
                    .map(|(c, w)| c * w)
                    .sum();
                value += walk.share * (last - explained);
                for (sum, control) in sums.iter_mut().zip(&walk.controls) {
                    *sum += walk.share * control;
                    sizes += walk.share * control.abs();
                }
            }
            assert!((all - 1.0).abs() < 1e-14 && sizes > 0.01, "{all} {sizes}");
            assert!(sums.iter().all(|sum| sum.abs() < 1e-15), "{sums:?}");
            let truth = super::super::summed::all_rejected(&target, &draft, draws);
            assert!((value - truth).abs() < 1e-15, "{value} {truth}");
        }
    }

    /// Four standard errors, and three paths in 2048 that might have seen the whole range.
    #[test]
    fn what_is_told_beside_a_mean() {
        let (target, draft) = rows(3);
        let curve = Curve::new(&target, &draft);
        for draws in [2, 12] {
            let [mean, error] = rejected(&curve, draws, 11);
            let mut paths = Paths::new(&curve);
            let range = paths.sampler.most(draws) - paths.least(draws);
            assert!(range > 0.0);
            let own = paths.mean(draws, 2048, &mut ChaCha8Rng::seed_from_u64(11));
            assert_eq!(mean, own.mean);
            let expected = 4.0 * own.standard_error + 3.0 * range / 2048.0;
            assert!((error / expected - 1.0).abs() < 1e-14, "{error} {expected}");
        }
    }

    fn rows(seed: u64) -> (Vec<f64>, Vec<f64>) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut row = || normalised((0..60).map(|_| rng.random::<f64>().powi(6)).collect());
        (row(), row())
    }

    /// The mean over many small runs, each with coefficients of its own, is that of paths
    /// without controls: z below 4.5, false-positive rate 1e-5 a row. And the variance falls.
    #[test]
    fn the_mean_is_unbiased_and_varies_less() {
        for seed in 0..3 {
            let (target, draft) = rows(seed);
            let curve = Curve::new(&target, &draft);
            let mut rng = ChaCha8Rng::seed_from_u64(100 + seed);
            let mut paths = Paths::new(&curve);
            let draws = 7;
            let runs: Vec<f64> = (0..300)
                .map(|_| paths.mean(draws, 64, &mut rng).mean)
                .collect();
            let over = |values: &[f64]| {
                let count = values.len() as f64;
                let mean = values.iter().sum::<f64>() / count;
                let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
                (mean, squares / (count - 1.0) / count)
            };
            let (mean, variance) = over(&runs);
            let plain = PathSampler::new(&curve).mean(draws, 200_000, 0.68, &mut rng);
            let own = plain.upper - plain.mean;
            // Bernstein's bound at 68% is above one standard error.
            let z = (mean - plain.mean) / (variance + own * own).sqrt();
            assert!(z.abs() < 4.5, "{seed}: {z}");
            let full = rejected(&curve, draws, seed);
            assert!(
                (full[0] - plain.mean).abs() < full[1] + 5.0 * own,
                "{full:?} {plain:?}"
            );
            let mut none = vec![0.0; paths.width(draws)];
            let values: Vec<f64> = (0..PATHS)
                .map(|_| paths.path(draws, &mut none, &mut rng))
                .collect();
            let (_, without) = over(&values);
            let with = paths.mean(draws, PATHS, &mut rng).standard_error.powi(2);
            assert!(with < 0.1 * without, "{seed}: {with} {without}");
        }
    }
}
