//! How often a token drawn from p is the k-th of sequential drafts without replacement.
//!
//! Give token i a clock of rate q_i; drafts are the tokens in the order of ringing. So
//!
//! ```text
//! P(i is the draft after k others) = integral over t > 0 of
//!     q_i e^{-q_i t} P(exactly k clocks of the others have rung by t) dt
//! ```
//!
//! and A_k, its mean over i ~ p, is q_i for k = 0 and q_i sum over j != i of q_j/(1-q_j)
//! for k = 1, in closed form. For k >= 2 the integral over x = log t is a trapezoidal sum.
//!
//! # Evaluation
//! At a time t, P(N = k) for the number N of clocks that have rung is a coefficient of
//! prod (w_i + (1-w_i) z), w_i = e^{-q_i t}; the integrand is that of the same product
//! with one clock *marked*, p_i q_i t w_i in place of its factor, summed over the marked
//! clock. Clocks are held by octaves of q. While q t <= 1/32 in an octave, it enters as a
//! whole: with r_i = e^{q_i t} - 1,
//!
//! ```text
//! sum over marked i in it = prod (1 + r_j z) * sum over i of p_i q_i t / (1 + r_i z)
//! ```
//!
//! (times the w), both from twelve power sums. Else it is taken clock by clock. As soon as
//! t P(N < n) < 1e-18, neither the clocks nor the times that are left add anything.
//!
//! # Error
//! *Quadrature.* The integrand is e^{-t} times q_i t and a product of at most n - 1 odds
//! r_j, as in `src/quadrature/log_time.rs`, and so are the proof and the bound, 1e-12 for all k
//! together. (|q_i t| is its real part over cos a, as an odds' modulus is at most.)
//!
//! *Tails.* Left of t_L = 2e-5, P(N >= 2) <= t^2/2 leaves t_L^3. Right of the last time
//! T, integrand and sum are below t P(N_t < n). Extend every clock to a Poisson process:
//! then disjoint spans of length T are independent and each has fewer than n clocks
//! ringing, so P(N_{mT} < n) <= P(N_T < n)^m and what is left out adds up to less than
//! 20 T P(N_T < n). Where T would be above 1e306, P(N_T < n) itself is added: it bounds
//! what A_2 and on can still gain.
//!
//! *Truncation.* Terms from (q t)^13 on have coefficients below 25 in the series of R_k
//! and of the marks, and the q t of octaves that matter add up to less than 60: less than
//! 60 * 50 * 32^-12 for each of n factors.
//!
//! *Rounding* is counted: five operations a clock and n + 7 an octave on the way to a
//! coefficient, the sums' own, and 40 + n + (those of the sums) for each ring, times
//! 1.04^n, the most by which sums of alternating terms exceed those they stand for.

use super::clocks::{Clocks, PowerSums, chances, summing};
use super::fixed::total;
use crate::distribution::{heaviest, split_sum};
use crate::quadrature::log_time_step;
use multiversion::multiversion;

/// An octave is expanded while its largest q t is at most this.
const EXPANSION_LIMIT: f64 = 1.0 / 32.0;

/// So few clocks are taken one by one at all times.
const FEW: usize = 6;

const QUADRATURE_ERROR: f64 = 1e-12;

/// t_L.
const FIRST_TIME: f64 = 2e-5;

const LATEST: f64 = 1e306;

/// What t P(N_t < n) may be when the rest is left out.
const NEGLIGIBLE: f64 = 1e-18;

/// Exponents of positive `f64`, denormal ones as one.
const OCTAVES: usize = 1024;

/// A_0, A_1.. and a bound on the error of any sum of them.
#[derive(Clone, Debug)]
pub(crate) struct Ranks {
    pub(crate) rates: Vec<f64>,
    pub(crate) error: f64,
}

/// Clocks of one octave of q.
struct Octave {
    rates: Vec<f64>,
    /// p, entry for entry.
    targets: Vec<f64>,
    clocks: Clocks,
    marks: PowerSums,
}

impl Ranks {
    /// A_0..A_{draws-1}; `draws` is less than the number of tokens with q > 0. The p_i sum
    /// to `target_whole` and the q_i to `draft_whole`, both about 1, and are divided by it.
    ///
    /// O(V), then some hundred nodes of O(n^2) for each octave of q and O(n) for each of
    /// the clocks, a few thousand at most, that may ring while it matters.
    pub(crate) fn new(
        target: &[f64],
        draft: &[f64],
        [target_whole, draft_whole]: [f64; 2],
        draws: usize,
    ) -> Self {
        let mut rates = first_two(target, draft, draft_whole);
        rates.resize(draws.max(2), 0.0);
        let mut error = 128.0 * f64::EPSILON;
        if draws > 2 {
            let octaves = octaves(target, draft, draft_whole);
            error += integrate(&octaves, &mut rates);
        }
        rates.truncate(draws);
        for rate in &mut rates {
            *rate /= target_whole;
        }
        Self { rates, error }
    }

    /// The probability that a token drawn from p is among the first `draws` drafts.
    pub(crate) fn among(&self, draws: usize) -> f64 {
        self.rates.iter().take(draws).sum()
    }
}

/// A_0 and A_1, not normalised by p.
///
/// The heaviest token h is set apart: 1 - q_h is summed over the others, whose q_j/(1-q_j)
/// add up to less than 2.
fn first_two(p: &[f64], q: &[f64], whole: f64) -> Vec<f64> {
    let Some(&heavy) = heaviest(q, 1).first() else {
        return vec![0.0; 2];
    };
    let parts = [0..heavy, heavy + 1..q.len()];
    let (mut rest, mut odds) = (0.0, 0.0);
    for part in &parts {
        rest += total(&q[part.clone()]);
        odds += total_odds(&q[part.clone()], whole);
    }
    let (mut first, mut second) = (0.0, 0.0);
    if rest > 0.0 {
        let all = odds + q[heavy] / rest;
        for part in parts {
            first += overlap(&p[part.clone()], &q[part.clone()]);
            second += behind_others(&p[part.clone()], &q[part], whole, all);
        }
    }
    let own = p[heavy] * q[heavy];
    vec![(first + own) / whole, second + own * odds / whole]
}

#[multiversion(targets = "simd")]
fn total_odds(q: &[f64], whole: f64) -> f64 {
    split_sum(q, q, |q, _| q / (whole - q))
}

/// Sum of p q.
#[multiversion(targets = "simd")]
fn overlap(p: &[f64], q: &[f64]) -> f64 {
    split_sum(p, q, |p, q| p * q)
}

/// Sum of p q (all - q/(1-q)).
#[multiversion(targets = "simd")]
fn behind_others(p: &[f64], q: &[f64], whole: f64, all: f64) -> f64 {
    split_sum(p, q, |p, q| p * (q / whole * (all - q / (whole - q))))
}

/// Tokens of q > 0 by octaves of q, the heaviest first.
fn octaves(target: &[f64], draft: &[f64], whole: f64) -> Vec<Octave> {
    let mut sets: Vec<(Vec<f64>, Vec<f64>)> = vec![Default::default(); OCTAVES];
    for (&p, &q) in target.iter().zip(draft) {
        let rate = q / whole;
        if rate > 0.0 {
            // Rates are at most about 1.
            let octave = (OCTAVES - 1).saturating_sub((rate.to_bits() >> 52) as usize);
            sets[octave].0.push(rate);
            sets[octave].1.push(p);
        }
    }
    sets.into_iter()
        .filter(|(rates, _)| !rates.is_empty())
        .map(|(rates, targets)| {
            let clocks = Clocks::of(&rates);
            let marks = PowerSums::of(&rates, &targets, clocks.largest);
            Octave {
                rates,
                targets,
                clocks,
                marks,
            }
        })
        .collect()
}

/// Fills in A_2 and on; the bound on the error.
fn integrate(octaves: &[Octave], rates: &mut [f64]) -> f64 {
    let draws = rates.len();
    let (step, quadrature) = log_time_step(draws, QUADRATURE_ERROR);
    let mut counts = Counts::new(draws);
    let mut operations = 0.0f64;
    let mut node = 0;
    let unfinished = loop {
        let time = (FIRST_TIME.ln() + node as f64 * step).exp();
        if time > LATEST {
            break counts.few();
        }
        counts.ring(octaves, time);
        operations = operations.max(counts.operations);
        if counts.is_over(time) {
            break 0.0;
        }
        for (rate, marked) in rates.iter_mut().zip(&counts.marked).skip(2) {
            *rate += step * marked;
        }
        node += 1;
    };
    let draws = draws as f64;
    let truncation = draws * 60.0 * 50.0 * EXPANSION_LIMIT.powi(12);
    let most = octaves.iter().map(|octave| octave.rates.len()).max();
    let sum = summing(most.unwrap_or(0));
    let rings = (draws + 1.0) * (40.0 + draws + sum);
    let rounding = 1.04f64.powf(draws) * (operations + rings) + 60.0 * sum + node as f64;
    let tails = FIRST_TIME.powi(3) + 20.0 * NEGLIGIBLE;
    quadrature + tails + truncation + rounding * f64::EPSILON + unfinished
}

/// The number of clocks that rang, below n.
struct Counts {
    /// P(N_t = k).
    plain: Vec<f64>,
    /// t times the density of "the token drawn from p rings at t, after k others".
    marked: Vec<f64>,
    operations: f64,
    odds: Vec<f64>,
    marks: Vec<f64>,
    marked_odds: Vec<f64>,
}

impl Counts {
    fn new(draws: usize) -> Self {
        let zeros = || vec![0.0; draws];
        Self {
            plain: zeros(),
            marked: zeros(),
            operations: 0.0,
            odds: zeros(),
            marks: zeros(),
            marked_odds: zeros(),
        }
    }

    /// P(N_t < n).
    fn few(&self) -> f64 {
        self.plain.iter().sum()
    }

    fn is_over(&self, time: f64) -> bool {
        time * self.few() < NEGLIGIBLE
    }

    /// All clocks at one time, or as many as it takes to be over.
    fn ring(&mut self, octaves: &[Octave], time: f64) {
        self.plain.fill(0.0);
        self.marked.fill(0.0);
        self.plain[0] = 1.0;
        self.operations = 0.0;
        for octave in octaves {
            let many = octave.rates.len() > FEW;
            if many && octave.clocks.largest * time <= EXPANSION_LIMIT {
                self.octave(octave, time);
            } else {
                for (rate, p) in octave.rates.iter().zip(&octave.targets) {
                    self.clock(rate * time, *p);
                }
            }
            if self.is_over(time) {
                return;
            }
        }
    }

    /// One clock, of rate times time `exponent`.
    #[inline(always)]
    fn clock(&mut self, exponent: f64, p: f64) {
        let (waits, rings) = chances(exponent, EXPANSION_LIMIT);
        let now = p * exponent * waits;
        let (plain, marked) = (&mut self.plain[..], &mut self.marked[..]);
        for k in (1..plain.len().min(marked.len())).rev() {
            marked[k] = marked[k] * waits + marked[k - 1] * rings + now * plain[k];
            plain[k] = plain[k] * waits + plain[k - 1] * rings;
        }
        marked[0] = marked[0] * waits + now * plain[0];
        plain[0] *= waits;
        // A product, two sums, and the two of `waits`.
        self.operations += 5.0;
    }

    /// All clocks of an octave.
    fn octave(&mut self, octave: &Octave, time: f64) {
        let waits = octave.clocks.ring(time, &mut self.odds);
        let z = octave.clocks.largest * time;
        octave.marks.marked(z, &mut self.marks);
        for mark in self.marks.iter_mut().skip(1).step_by(2) {
            *mark = -*mark;
        }
        let draws = self.plain.len();
        for k in 0..draws {
            self.marked_odds[k] = product(&self.odds, &self.marks, k).max(0.0);
        }
        for k in (0..draws).rev() {
            let own = product(&self.marked, &self.odds, k);
            self.marked[k] = waits * (own + product(&self.plain, &self.marked_odds, k));
            self.plain[k] = waits * product(&self.plain, &self.odds, k);
        }
        // The factor `waits`, its exponent, and the sums.
        self.operations += draws as f64 + 7.0;
    }
}

/// Coefficient k of a product.
fn product(a: &[f64], b: &[f64], k: usize) -> f64 {
    let pairs = a[..=k].iter().zip(b[..=k].iter().rev());
    pairs.map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    fn normalised(mut row: Vec<f64>) -> Vec<f64> {
        let whole: f64 = row.iter().sum();
        row.iter_mut().for_each(|x| *x /= whole);
        row
    }

    /// Quadrature, tails, truncation, and roundings of a few clocks one by one.
    #[test]
    fn every_part_of_the_error_counts() {
        let draft = [0.3, 0.25, 0.2, 0.15, 0.1];
        let target = [0.2; 5];
        for draws in [1, 2] {
            let ranks = Ranks::new(&target, &draft, [1.0, 1.0], draws);
            assert_eq!(
                (ranks.error, ranks.rates.len()),
                (128.0 * f64::EPSILON, draws)
            );
        }
        for draws in [3usize, 4] {
            let error = Ranks::new(&target, &draft, [1.0, 1.0], draws).error;
            let n = draws as f64;
            let (_, quadrature) = log_time_step(draws, 1e-12);
            let tails = 8e-15 + 2e-17;
            let truncation = n * 3000.0 * 2f64.powi(-60);
            // Sums of 48 roundings; five operations for each of five clocks.
            let paths = 1.04f64.powf(n) * (25.0 + (n + 1.0) * (40.0 + n + 48.0));
            let least = (128.0 + paths + 60.0 * 48.0) * f64::EPSILON;
            let nodes = (error - quadrature - tails - truncation - least) / f64::EPSILON;
            // And one for each of some dozens of nodes.
            assert!((20.0..300.0).contains(&nodes), "{draws}: {error} {nodes}");
            assert!((nodes - nodes.round()).abs() < 0.1, "{draws}: {nodes}");
        }
    }

    /// One clock and two of them, at a time at which each rings with probability 1/2.
    #[test]
    fn counts_of_clocks_by_hand() {
        let mut counts = Counts::new(3);
        counts.plain[0] = 1.0;
        let half = 2f64.ln();
        counts.clock(half, 1.0);
        counts.clock(half, 0.0);
        assert_eq!(counts.operations, 10.0);
        let marked = half / 4.0;
        for (found, expected) in [
            (counts.plain[0], 0.25),
            (counts.plain[1], 0.5),
            (counts.plain[2], 0.25),
            (counts.marked[0], marked),
            (counts.marked[1], marked),
            (counts.marked[2], 0.0),
            (counts.few(), 1.0),
        ] {
            assert!((found - expected).abs() < 1e-15, "{found} {expected}");
        }
        assert!(counts.is_over(9e-19) && !counts.is_over(1.1e-18));
        assert_eq!(
            product(&[1.0, 2.0, 3.0], &[5.0, 7.0, 11.0], 2),
            11.0 + 14.0 + 15.0
        );
    }

    fn spread(vocab: usize, nats: f64, random: &mut ChaCha8Rng) -> Vec<f64> {
        normalised(
            (0..vocab)
                .map(|_| (-nats * random.random::<f64>()).exp())
                .collect(),
        )
    }

    /// A_0.. from the probabilities of all sets that the first drafts can be.
    fn by_sets(p: &[f64], q: &[f64], draws: usize) -> Vec<f64> {
        let mut rates = vec![0.0; draws];
        let mut reached = vec![0.0; 1 << q.len()];
        reached[0] = 1.0;
        for set in 0..reached.len() {
            let drawn = set.count_ones() as usize;
            let outside = |token: &usize| set >> token & 1 == 0;
            if drawn >= draws {
                continue;
            }
            let left: f64 = (0..q.len()).filter(outside).map(|i| q[i]).sum();
            for token in (0..q.len()).filter(outside).filter(|&i| q[i] > 0.0) {
                let next = reached[set] * q[token] / left;
                rates[drawn] += p[token] * next;
                reached[set | 1 << token] += next;
            }
        }
        rates
    }

    /// The integral, clock by clock, on a finer grid.
    fn by_clocks(p: &[f64], q: &[f64], draws: usize) -> Vec<f64> {
        let (step, mut node, mut rates) = (0.04, 0, vec![0.0; draws]);
        loop {
            let t = (1e-8f64.ln() + step * f64::from(node)).exp();
            let (mut plain, mut marked) = (vec![0.0; draws], vec![0.0; draws]);
            plain[0] = 1.0;
            for (p, q) in p.iter().zip(q) {
                let (waits, rings) = ((-q * t).exp(), -(-q * t).exp_m1());
                for k in (0..draws).rev() {
                    let below = |row: &[f64]| k.checked_sub(1).map_or(0.0, |k| row[k]);
                    marked[k] =
                        marked[k] * waits + below(&marked) * rings + p * q * t * waits * plain[k];
                    plain[k] = plain[k] * waits + below(&plain) * rings;
                }
            }
            if t * plain.iter().sum::<f64>() < 1e-20 {
                return rates;
            }
            for (rate, marked) in rates.iter_mut().zip(&marked) {
                *rate += step * marked;
            }
            node += 1;
        }
    }

    fn agree(ranks: &Ranks, other: &[f64], own_error: f64, widest: f64) {
        assert!(ranks.error < widest, "{}", ranks.error);
        for (rate, other) in ranks.rates.iter().zip(other) {
            let off = (rate - other).abs();
            assert!(off <= ranks.error + own_error, "{ranks:?} {other:?} {off}");
        }
    }

    #[test]
    fn agrees_with_all_sets_on_small_vocabularies() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        for round in 0..120 {
            let vocab = 3 + round % 9;
            let nats = [1.0, 5.0, 40.0, 300.0][round % 4];
            let q = spread(vocab, nats, &mut random);
            let p = spread(vocab, 3.0, &mut random);
            let draws = 2 + round % (vocab - 2);
            let ranks = Ranks::new(&p, &q, [1.0; 2], draws);
            agree(&ranks, &by_sets(&p, &q, draws), 1e-13, 1e-11);
            assert_eq!(ranks.rates.len(), draws);
        }
        // One token almost sure, and one that all but never comes.
        let q = [1.0 - 1e-12, 0.9e-12, 0.1e-12, 1e-290];
        let p = [0.1, 0.2, 0.3, 0.4];
        agree(
            &Ranks::new(&p, &q, [1.0; 2], 3),
            &by_sets(&p, &q, 3),
            1e-13,
            1e-11,
        );
    }

    #[test]
    fn octaves_agree_with_single_clocks() {
        let mut random = ChaCha8Rng::seed_from_u64(2);
        for (vocab, nats, draws) in [
            (400, 0.0, 4),
            (900, 2.0, 3),
            (2000, 9.0, 8),
            (3000, 25.0, 16),
        ] {
            let q = spread(vocab, nats, &mut random);
            let p = spread(vocab, 12.0, &mut random);
            let ranks = Ranks::new(&p, &q, [1.0; 2], draws);
            let other = by_clocks(&p, &q, draws);
            // The left end of the slow form's grid is off in A_0 alone.
            agree(
                &Ranks {
                    rates: ranks.rates[1..].to_vec(),
                    ..ranks
                },
                &other[1..],
                1e-12,
                2e-11,
            );
        }
    }

    #[test]
    fn totals_that_are_not_one_are_divided_out() {
        let mut random = ChaCha8Rng::seed_from_u64(3);
        let (p, q) = (spread(50, 3.0, &mut random), spread(50, 3.0, &mut random));
        let ranks = Ranks::new(&p, &q, [1.0; 2], 5);
        let scaled = |row: &[f64], by: f64| row.iter().map(|x| x * by).collect::<Vec<_>>();
        let other = Ranks::new(&scaled(&p, 0.99), &scaled(&q, 1.01), [0.99, 1.01], 5);
        agree(&ranks, &other.rates, other.error, 1e-11);
    }

    #[test]
    fn a_token_beyond_the_last_time_widens_the_bound() {
        // The third draft is one of two tokens that ring after 1e306.
        let q = [0.5, 0.5, 2e-308, 1e-308];
        let ranks = Ranks::new(&[0.1, 0.2, 0.3, 0.4], &q, [1.0; 2], 3);
        assert!((ranks.among(2) - 0.3).abs() < 1e-12);
        let truth = 0.3 + (0.3 * 2.0 + 0.4) / 3.0;
        assert!((ranks.among(3) - truth).abs() <= ranks.error);
    }
}
