//! The probability that n sequential drafts are all rejected, by Monte Carlo over
//! rejected paths.
//!
//! Notation of [`super`]. Of a path of rejections, step k has probability
//! g_i/M(L_k), and the sum of g_i over the tokens that were not rejected before is
//! M(L_(k+1)). Draw each token of the path in proportion to g_i instead: what a path
//! then has to be weighted with is the product of M(L_(k+1))/M(L_k), which telescopes.
//! With M(L_0) = 1,
//!
//! ```text
//! P(all n are rejected) = E[ M(L_n) ].
//! ```
//!
//! L_n depends on the path through the mass that it removed, and little, so that M(L_n)
//! varies far less than the indicator of a rejection. It lies in [0, M(L_n of the path that
//! removes nothing)], since L_(k+1) = L_k + M(L_k)/(1-s_k) rises with s_k and with L_k: its
//! slope in the latter is 1 - Q(p/q > L_k)/(1-s_k) >= 0, tokens above L_k being among those
//! that are left.

use super::curve::Curve;
use rand::{Rng, RngCore};
use specgap_number::distribution::TwoFloat;

/// A mean of numbers in [0, most], with a confidence interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sampled {
    pub mean: f64,
    pub lower: f64,
    pub upper: f64,
}

/// Draws paths one at a time.
#[derive(Debug)]
pub(super) struct PathSampler<'a> {
    curve: &'a Curve,
    /// Running sums of q in two words: little of q may be left, on either side of what is
    /// gone.
    ends: Vec<[f64; 2]>,
    /// Places of the tokens rejected so far, in the order of falling p/q.
    pub(super) holes: Vec<usize>,
}

impl<'a> PathSampler<'a> {
    pub(super) fn new(curve: &'a Curve) -> Self {
        let mut sum = TwoFloat::ZERO;
        let mut ends = vec![[0.0; 2]];
        ends.extend(curve.masses.iter().map(|&q| {
            sum += q;
            let (high, low) = sum.words();
            [high, low]
        }));
        Self {
            curve,
            ends,
            holes: Vec::new(),
        }
    }

    /// M(L_n) if nothing were removed: the most it can be.
    pub(super) fn most(&self, draws: usize) -> f64 {
        let mut factor = 0.0;
        let mut mass = self.curve.at(factor);
        for _ in 0..draws {
            factor += mass / self.curve.total.value();
            mass = self.curve.at(factor);
        }
        mass
    }

    /// M(L_n) of one path. O(n (n + log V)).
    fn path(&mut self, draws: usize, rng: &mut dyn RngCore) -> f64 {
        self.holes.clear();
        let curve = self.curve;
        let mut rest = curve.total;
        let mut factor = 0.0;
        let mut mass = curve.at(factor);
        for draw in 1..=draws {
            let offer = mass / rest.value();
            let next = factor + offer;
            let left = curve.at(next);
            if left <= 0.0 || draw == draws {
                return left;
            }
            let Some(place) = self.rejected(factor, offer, rest, rng.random()) else {
                // What is left of the weights is below rounding.
                return 0.0;
            };
            self.reject(place);
            rest = rest - TwoFloat::from(curve.masses[place]);
            (factor, mass) = (next, left);
        }
        mass
    }

    /// Draws a path, and adds what draft k accepts of a token of masses p and q to entry k,
    /// for each k >= 2.
    pub(super) fn accepts_of_token(
        &mut self,
        [p, q]: [f64; 2],
        sums: &mut [f64],
        rng: &mut dyn RngCore,
    ) {
        self.holes.clear();
        let curve = self.curve;
        let mut rest = curve.total;
        let mut factor = 0.0;
        let mut mass = curve.at(factor);
        for (draft, sum) in sums.iter_mut().enumerate() {
            let left = rest.value();
            if mass <= 0.0 || left <= 0.0 {
                return;
            }
            let offer = mass / left;
            if draft >= 2 {
                *sum += (p - factor * q).max(0.0).min(offer * q);
            }
            let Some(place) = self.rejected(factor, offer, rest, rng.random()) else {
                return;
            };
            self.reject(place);
            rest = rest - TwoFloat::from(curve.masses[place]);
            factor += offer;
            mass = curve.at(factor);
        }
    }

    /// Takes a token away.
    pub(super) fn reject(&mut self, place: usize) {
        let at = self.holes.partition_point(|&hole| hole < place);
        self.holes.insert(at, place);
    }

    /// The token at `share` of the weights g of those that are left.
    ///
    /// In the order of falling p/q these are L' q - p between L' and L, and B q from L
    /// on, where all tokens rejected before stand; `rest` is what they leave of q.
    pub(super) fn rejected(
        &self,
        factor: f64,
        offer: f64,
        rest: TwoFloat,
        share: f64,
    ) -> Option<usize> {
        let curve = self.curve;
        let next = factor + offer;
        let count = curve.ratios.len();
        let first = curve.ratios.partition_point(|&ratio| ratio > next);
        let below = first + curve.ratios[first..].partition_point(|&ratio| ratio > factor);
        let between = |end: usize| {
            let held = next * (curve.draft[end] - curve.draft[first]);
            held - (curve.target[end] - curve.target[first])
        };
        let middle = between(below).max(0.0);
        let low = (rest - TwoFloat::from(curve.draft[below])).value().max(0.0);
        let wanted = share * (middle + offer * low);
        if wanted < middle {
            let mut ends = (first + 1, below);
            while ends.0 < ends.1 {
                let half = ends.0.midpoint(ends.1);
                if between(half) > wanted {
                    ends.1 = half;
                } else {
                    ends.0 = half + 1;
                }
            }
            return (ends.0 > first && ends.0 <= count).then(|| ends.0 - 1);
        }
        if below >= count || offer <= 0.0 {
            return None;
        }
        let mut at = TwoFloat::from(curve.draft[below]) + TwoFloat::from((wanted - middle) / offer);
        for &hole in &self.holes {
            if !is_before(at, self.ends[hole]) {
                at += curve.masses[hole];
            }
        }
        let place = below + self.ends[below + 1..].partition_point(|&end| !is_before(at, end));
        // Only rounding leads into a hole or past the end; the nearest is as good.
        let free = |place: &usize| self.holes.binary_search(place).is_err();
        let place = place.min(count - 1);
        (place..count)
            .find(free)
            .or_else(|| (below..place).rev().find(free))
    }

    /// The mean over paths, and an interval that holds the true one with at least
    /// `confidence`: an empirical Bernstein bound on either side (Maurer and Pontil,
    /// COLT 2009, Theorem 4).
    pub(super) fn mean(
        &mut self,
        draws: usize,
        samples: u64,
        confidence: f64,
        rng: &mut dyn RngCore,
    ) -> Sampled {
        let most = self.most(draws);
        let (mut mean, mut squares) = (0.0, 0.0);
        for sample in 1..=samples {
            let value = self.path(draws, rng);
            let off = value - mean;
            mean += off / sample as f64;
            squares += off * (value - mean);
        }
        if samples < 2 {
            return Sampled {
                mean,
                lower: 0.0,
                upper: most,
            };
        }
        let others = (samples - 1) as f64;
        let log = (4.0 / (1.0 - confidence)).ln();
        let deviation = (2.0 * (squares / others) * log / samples as f64).sqrt();
        let error = deviation + 7.0 * most * log / (3.0 * others);
        Sampled {
            mean,
            lower: (mean - error).max(0.0),
            upper: (mean + error).min(most),
        }
    }
}

/// at < end: words are in the order of the numbers, a low one being below half an ulp.
fn is_before(at: TwoFloat, end: [f64; 2]) -> bool {
    let (high, low) = at.words();
    high < end[0] || high == end[0] && low < end[1]
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    /// Of a q that sums to 1/2: M(0) = 1, then M(2) = 1/4, then M(5/2) = 3/16.
    #[test]
    fn most_is_what_is_left_if_nothing_is_removed() {
        let curve = Curve::new(&[0.5, 0.25, 0.25], &[0.125, 0.125, 0.25]);
        let sampler = PathSampler::new(&curve);
        let most = [0, 1, 2].map(|draws| sampler.most(draws));
        assert_eq!(most, [1.0, 0.25, 0.1875]);
    }

    /// Maurer and Pontil's bound on the values of the same paths, summed up afterwards.
    #[test]
    fn means_have_empirical_bernstein_bounds() {
        let curve = Curve::new(&[0.02, 0.5, 0.28, 0.1, 0.1], &[0.3, 0.3, 0.25, 0.1, 0.05]);
        let (samples, confidence) = (400, 0.99);
        let mut sampler = PathSampler::new(&curve);
        let mut random = ChaCha8Rng::seed_from_u64(4);
        let values: Vec<f64> = (0..samples).map(|_| sampler.path(3, &mut random)).collect();
        let n = f64::from(samples);
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
        assert!(variance > 1e-6);
        // L is 1, then 1 + M(1) and on: M(L) if nothing is taken from q.
        let most = (0..3).fold([0.0, 1.0], |[factor, mass], _| {
            let next = factor + mass;
            [next, curve.at(next)]
        })[1];
        assert!((sampler.most(3) - most).abs() < 1e-15);
        let log = (4.0f64 / 0.01).ln();
        let error = (2.0 * variance * log / n).sqrt() + 7.0 * most * log / (3.0 * (n - 1.0));
        let mut random = ChaCha8Rng::seed_from_u64(4);
        let found = sampler.mean(3, samples as u64, confidence, &mut random);
        assert!((found.mean - mean).abs() < 1e-14, "{found:?} {mean}");
        assert!(
            (found.lower - (mean - error).max(0.0)).abs() < 1e-13,
            "{found:?} {error}"
        );
        assert!(
            (found.upper - (mean + error).min(most)).abs() < 1e-13,
            "{found:?} {error}"
        );
        // One path bounds nothing but by what all are bounded.
        let one = sampler.mean(3, 1, confidence, &mut random);
        assert_eq!((one.lower, one.upper), (0.0, sampler.most(3)));
    }

    /// Frequencies of the second rejected token against the weights, token by token.
    /// 5 cells, false-positive rate 1e-5 a case.
    #[test]
    fn paths_follow_the_rejected_weights() {
        let target = [0.02, 0.5, 0.28, 0.1, 0.1];
        let draft = [0.3, 0.3, 0.25, 0.1, 0.05];
        let curve = Curve::new(&target, &draft);
        let mut order: Vec<usize> = (0..5).collect();
        order.sort_by(|&a, &b| (target[b] / draft[b]).total_cmp(&(target[a] / draft[a])));
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        for (holes, factor) in [
            (vec![], 0.0),
            (vec![4], 1.0),
            (vec![], 1.05),
            (vec![3, 4], 1.3),
        ] {
            let rest: f64 = 1.0 - holes.iter().map(|&k: &usize| draft[order[k]]).sum::<f64>();
            let offer = curve.at(factor) / rest;
            let weights: Vec<f64> = (0..5)
                .map(|k| {
                    let (p, q) = (target[order[k]], draft[order[k]]);
                    let g = (offer * q - (p - factor * q).max(0.0)).max(0.0);
                    if holes.contains(&k) { 0.0 } else { g }
                })
                .collect();
            let total: f64 = weights.iter().sum();
            // They sum to what the residual is left with.
            assert!(
                (total - curve.at(factor + offer)).abs() < 1e-15,
                "{holes:?}"
            );
            let mut sampler = PathSampler::new(&curve);
            sampler.holes.clone_from(&holes);
            let runs = 40_000;
            let mut counts = [0.0; 5];
            for _ in 0..runs {
                let place = sampler.rejected(factor, offer, rest.into(), rng.random());
                counts[place.unwrap()] += 1.0;
            }
            let mut statistic = 0.0;
            for (count, weight) in counts.into_iter().zip(weights) {
                if weight == 0.0 {
                    assert_eq!(count, 0.0, "{holes:?} {factor}");
                    continue;
                }
                let mean = f64::from(runs) * weight / total;
                statistic += (count - mean) * (count - mean) / mean;
            }
            assert!(statistic < 28.5, "{holes:?} {factor}: {statistic}");
        }
    }

    /// The heaviest token is gone, and what is left of q stands on both sides of it: a
    /// sum in one word sees none of it. 4 cells, false-positive rate 1e-5.
    #[test]
    fn what_is_left_beside_a_heavy_token_is_drawn_in_proportion() {
        let little = [4e-17, 3e-17, 2e-17, 1e-17];
        let target = [0.5, 2e-17, 1e-20, 1e-22, 0.5];
        let draft = [little[0], little[1], 1.0, little[2], little[3]];
        let target = [target[0], target[1], target[4], target[2], target[3]];
        let curve = Curve::new(&target, &draft);
        // By falling p/q: 0, 1, the heavy one, and the last two.
        assert_eq!(curve.tokens[..], [0, 1, 2, 3, 4]);
        let rest = curve.total - TwoFloat::from(1.0);
        assert!((rest.value() - 1e-16).abs() < 1e-30);
        let mut sampler = PathSampler::new(&curve);
        sampler.holes.push(2);
        let (factor, mass) = (2e16, 0.4);
        let offer = mass / rest.value();
        // Every token is below L: the weights are B q.
        let mut rng = ChaCha8Rng::seed_from_u64(6);
        let runs = 40_000;
        let mut counts = [0.0; 5];
        for _ in 0..runs {
            counts[sampler.rejected(factor, offer, rest, rng.random()).unwrap()] += 1.0;
        }
        assert_eq!(counts[2], 0.0);
        let statistic: f64 = [(0, 0.4), (1, 0.3), (3, 0.2), (4, 0.1)]
            .into_iter()
            .map(|(place, share): (usize, f64)| {
                let mean = f64::from(runs) * share;
                (counts[place] - mean) * (counts[place] - mean) / mean
            })
            .sum();
        assert!(statistic < 26.0, "{counts:?}: {statistic}");
    }
}
