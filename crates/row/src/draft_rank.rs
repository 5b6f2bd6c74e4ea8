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
//! clock. Clocks of rates below a power of two s with s t <= 1/32 are *light* and enter as a
//! whole: with r_i = e^{q_i t} - 1,
//!
//! ```text
//! sum over marked i in it = prod (1 + r_j z) * sum over i of p_i q_i t / (1 + r_i z)
//! ```
//!
//! (times the w), both from twelve power sums. Those of the smallest s come from one pass over
//! the rows, which lists the other clocks; the octave above an s joins its sums in those of 2s.
//! All other clocks are taken one by one. Eight times stand side by side in vector registers,
//! and the last of them says which clocks are light. As soon as t P(N < n) < 1e-18, neither
//! the clocks nor the times that are left add anything.
//!
//! # Error
//! *Quadrature.* The integrand is e^{-t} times q_i t and a product of at most n - 1 odds
//! r_j, as in `crates/number/src/quadrature/log_time.rs`, and so are the proof and the bound, 1e-12 for all k
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
//! and of the marks, and the q t of clocks that matter add up to less than 60: less than
//! 60 * 50 * 32^-12 for each of n factors. Clocks of rates up to s 2^-b, whose q t is at most
//! 2^-(5+b), are cut after the power M where (5+b) M is at least 60: their first term that is
//! missing is at most 25 q t 2^-60 as well.
//!
//! *Rounding* is counted: eight operations a clock and n + 7 for the light ones on the way to a
//! coefficient, the sums' own, and 40 + n + (those of the sums) for each ring. Sums of
//! alternating terms exceed those they stand for: with every sign positive the light clocks'
//! product is prod 1/(1 - r_i z), whose first n coefficients, times the w, sum up to less than
//! exp(Q/30), Q the sum of their q t, and to the more the smaller Q is beside n: 1.04^(n+4) is
//! above that for every Q. Products with other clocks' factors, which are probabilities, make
//! no sum of errors larger.

use super::clocks::{self, CHUNK, LANES, Lanes, NEGLIGIBLE, POWERS};
use multiversion::multiversion;
use specgap_number::distribution::{heaviest, split_sums};
use specgap_number::quadrature::log_time_step;
use std::borrow::Cow;

/// Clocks are light while q t is at most this.
const LIGHT: f64 = 1.0 / 32.0;

/// Rates up to this share of s take so many powers.
const LIGHTER: [(f64, usize); 2] = [(1.0 / 32768.0, 3), (1.0 / 128.0, 5)];

/// Roundings of a power sum: in a lane, over the lanes, in two words, in a power, and of a rate;
/// one more where an octave joins.
const SUMMING: f64 = (CHUNK / LANES + LANES + 4 + POWERS + 4) as f64;

const QUADRATURE_ERROR: f64 = 1e-12;

/// t_L.
const FIRST_TIME: f64 = 2e-5;

const LATEST: f64 = 1e306;

/// A_0, A_1.. and a bound on the error of any sum of them.
#[derive(Clone, Debug)]
pub struct Ranks {
    pub(crate) rates: Vec<f64>,
    /// The bound on the error of any sum of the rates.
    pub error: f64,
}

impl Ranks {
    /// A_0..A_{draws-1}; `draws` is less than the number of tokens with q > 0. The p_i sum
    /// to `target_whole` and the q_i to `draft_whole`, both about 1, and are divided by it.
    ///
    /// O(V), then some hundred nodes of O(n^2), and of O(n) for each of the clocks, a few
    /// thousand at most, that may ring while it matters.
    pub fn new(
        target: &[f64],
        draft: &[f64],
        [target_whole, draft_whole]: [f64; 2],
        draws: usize,
    ) -> Self {
        let top = heaviest(draft, draws.max(2) - 1);
        let mut rates = first_two(target, draft, draft_whole, top.first().copied());
        rates.resize(draws.max(2), 0.0);
        let mut error = 128.0 * f64::EPSILON;
        if draws > 2 {
            let held: f64 = top.iter().map(|&token| draft[token] / draft_whole).sum();
            let rates_of: Cow<'_, [f64]> = match draft_whole {
                1.0 => draft.into(),
                whole => draft.iter().map(|q| q / whole).collect(),
            };
            let list = |scale| Clocks::of(target, &rates_of, scale);
            error += integrate(&list, 1.0 - held, &mut rates);
        }
        rates.truncate(draws);
        for rate in &mut rates {
            *rate /= target_whole;
        }
        Self { rates, error }
    }

    /// The probability that a token drawn from p is among the first `draws` drafts.
    pub fn among(&self, draws: usize) -> f64 {
        self.rates.iter().take(draws).sum()
    }
}

/// The largest power of two that is not above a normal number.
fn power_of_two(x: f64) -> f64 {
    f64::from_bits(x.to_bits() >> 52 << 52)
}

/// A_0 and A_1, not normalised by p.
///
/// The heaviest token h is set apart: 1 - q_h is summed over the others, whose q_j/(1-q_j)
/// add up to less than 2. The sum of p_i q_i (all - q_i/(1-q_i)) over them is a difference of two
/// sums, of which the second is at most half of the first: no odds is above those of h.
fn first_two(p: &[f64], q: &[f64], whole: f64, heavy: Option<usize>) -> Vec<f64> {
    let Some(heavy) = heavy else {
        return vec![0.0; 2];
    };
    let [mut rest, mut odds, mut first, mut behind] = [0.0; 4];
    for part in [0..heavy, heavy + 1..q.len()] {
        let sums = odds_and_overlaps(&p[part.clone()], &q[part], whole);
        rest += sums[0];
        odds += sums[1];
        first += sums[2];
        behind += sums[3];
    }
    let own = p[heavy] * q[heavy];
    let mut second = own * odds / whole;
    if rest > 0.0 {
        second += (first * (odds + q[heavy] / rest) - behind) / whole;
    }
    vec![(first + own) / whole, second]
}

/// Sums of q, of q/(1-q), of p q, and of p q q/(1-q).
#[multiversion(targets = "simd")]
fn odds_and_overlaps(p: &[f64], q: &[f64], whole: f64) -> [f64; 4] {
    split_sums(p, q, |p, q| {
        let (odds, both) = (q / (whole - q), p * q);
        [q, odds, both, both * odds]
    })
}

/// Sums of (q/s)^m and of p (q/s)^m, m from 1 to [`POWERS`].
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    plain: [f64; POWERS],
    marked: [f64; POWERS],
}

/// The clocks below a power of two, as power sums.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    /// s; 0 where there are none.
    scale: f64,
    sums: Sums,
    /// The first listed clock above.
    start: usize,
}

/// Clocks of q > 0.
struct Clocks {
    /// By rising s, each twice the one before but for the first.
    levels: Vec<Level>,
    /// Octaves that have listed clocks.
    octaves: usize,
    /// Rates of at least the first s, by octaves, and p entry for entry.
    rates: Vec<f64>,
    targets: Vec<f64>,
}

impl Clocks {
    /// Lists clocks from `scale` on, a power of two, or all if that is 0. O(V).
    fn of(target: &[f64], draft: &[f64], scale: f64) -> Self {
        let (mut sums, mut listed) = (Sums::default(), Vec::new());
        gather(target, draft, scale, &mut sums, &mut listed);
        let exponent = |rate: f64| (rate.to_bits() >> 52) as usize;
        let first = exponent(scale);
        let octave = |rate: f64| exponent(rate).saturating_sub(first);
        let octaves = listed.iter().map(|one| octave(one[0]) + 1).max();
        let mut ends = vec![0usize; octaves.unwrap_or(0)];
        for &[rate, _] in &listed {
            ends[octave(rate)] += 1;
        }
        let mut end = 0;
        for slot in &mut ends {
            let start = end;
            end += *slot;
            *slot = start;
        }
        let (mut rates, mut targets) = (vec![0.0; listed.len()], vec![0.0; listed.len()]);
        for [rate, p] in listed {
            let place = &mut ends[octave(rate)];
            (rates[*place], targets[*place]) = (rate, p);
            *place += 1;
        }
        // Each start has moved to the end of its octave.
        let level = |scale, sums, start| Level { scale, sums, start };
        let (mut levels, mut start, mut octaves) = (vec![level(scale, sums, 0)], 0, 0);
        for (above, end) in (1u64..).zip(ends) {
            let scale = f64::from_bits((first as u64 + above) << 52);
            octaves += usize::from(end > start);
            let mut half = 0.5;
            for (plain, marked) in sums.plain.iter_mut().zip(&mut sums.marked) {
                *plain *= half;
                *marked *= half;
                half *= 0.5;
            }
            let own = start..end;
            powers(&rates[own.clone()], &targets[own], scale, &mut sums);
            levels.push(level(scale, sums, end));
            start = end;
        }
        Self {
            levels,
            octaves,
            rates,
            targets,
        }
    }
}

/// Sums in lanes, and their sum in two words.
#[derive(Clone, Copy)]
struct LaneSums {
    plain: [Lanes; POWERS],
    marked: [Lanes; POWERS],
}

impl LaneSums {
    const ZERO: Self = Self {
        plain: [[0.0; LANES]; POWERS],
        marked: [[0.0; LANES]; POWERS],
    };

    /// Adds as many powers as the largest rate takes.
    #[inline(always)]
    fn add_needed(&mut self, base: &Lanes, targets: &Lanes) {
        let [(least, few), (less, some)] = LIGHTER;
        let (mut more, mut most) = (false, false);
        for rate in base {
            more |= *rate > least;
            most |= *rate > less;
        }
        if most {
            self.add(POWERS, base, targets);
        } else if more {
            self.add(some, base, targets);
        } else {
            self.add(few, base, targets);
        }
    }

    #[inline(always)]
    fn add(&mut self, powers: usize, base: &Lanes, targets: &Lanes) {
        let (mut plain, mut marked) = (*base, [0.0; LANES]);
        for lane in 0..LANES {
            marked[lane] = targets[lane] * base[lane];
        }
        for sum in &mut self.plain[..powers] {
            for lane in 0..LANES {
                sum[lane] += plain[lane];
                plain[lane] *= base[lane];
            }
        }
        for sum in &mut self.marked[..powers] {
            for lane in 0..LANES {
                sum[lane] += marked[lane];
                marked[lane] *= base[lane];
            }
        }
    }

    #[inline(always)]
    fn join(&self, sums: &mut Sums, rests: &mut Sums) {
        for m in 0..POWERS {
            join(&self.plain[m], &mut sums.plain[m], &mut rests.plain[m]);
            join(&self.marked[m], &mut sums.marked[m], &mut rests.marked[m]);
        }
    }
}

#[inline(always)]
fn join([a, b, c, d, e, f, g, h]: &Lanes, sum: &mut f64, rest: &mut f64) {
    let own = ((a + b) + (c + d)) + ((e + f) + (g + h));
    let all = *sum + own;
    let seen = all - *sum;
    *rest += (*sum - (all - seen)) + (own - seen);
    *sum = all;
}

#[inline(always)]
fn add_rests(sums: &mut Sums, rests: &Sums) {
    for m in 0..POWERS {
        sums.plain[m] += rests.plain[m];
        sums.marked[m] += rests.marked[m];
    }
}

/// The light clocks' sums, and a list of the others.
#[multiversion(targets = "simd")]
fn gather(target: &[f64], draft: &[f64], scale: f64, sums: &mut Sums, listed: &mut Vec<[f64; 2]>) {
    let mut rests = Sums::default();
    let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
    for (target, draft) in target.chunks(CHUNK).zip(draft.chunks(CHUNK)) {
        let mut own = LaneSums::ZERO;
        for (p, q) in target.chunks(LANES).zip(draft.chunks(LANES)) {
            let (mut last_targets, mut last_rates) = ([0.0; LANES], [0.0; LANES]);
            let (targets, rates) = match (<&Lanes>::try_from(p), <&Lanes>::try_from(q)) {
                (Ok(p), Ok(q)) => (p, q),
                _ => {
                    last_targets[..p.len()].copy_from_slice(p);
                    last_rates[..q.len()].copy_from_slice(q);
                    (&last_targets, &last_rates)
                }
            };
            let mut base = [0.0; LANES];
            let mut any = false;
            for lane in 0..LANES {
                let rate = rates[lane];
                base[lane] = if rate < scale { rate * inverse } else { 0.0 };
                any |= rate >= scale;
            }
            own.add_needed(&base, targets);
            if any {
                for lane in 0..LANES {
                    if rates[lane] >= scale && rates[lane] > 0.0 {
                        listed.push([rates[lane], targets[lane]]);
                    }
                }
            }
        }
        own.join(sums, &mut rests);
    }
    add_rests(sums, &rests);
}

/// Adds the clocks of an octave to sums, all of them below `scale`.
#[multiversion(targets = "simd")]
fn powers(rates: &[f64], targets: &[f64], scale: f64, sums: &mut Sums) {
    let mut rests = Sums::default();
    for (rates, targets) in rates.chunks(CHUNK).zip(targets.chunks(CHUNK)) {
        let mut own = LaneSums::ZERO;
        for (q, p) in rates.chunks(LANES).zip(targets.chunks(LANES)) {
            let (mut base, mut targets) = ([0.0; LANES], [0.0; LANES]);
            for lane in 0..q.len().min(LANES) {
                base[lane] = q[lane] / scale;
                targets[lane] = p[lane];
            }
            own.add(POWERS, &base, &targets);
        }
        own.join(sums, &mut rests);
    }
    add_rests(sums, &rests);
}

/// Fills in A_2 and on; the bound on the error. `rest` is what the n - 1 heaviest tokens leave
/// of q: until the others have rung so often at that rate, clocks that are lighter than it says
/// need not be listed.
fn integrate(list: &impl Fn(f64) -> Clocks, rest: f64, rates: &mut [f64]) -> f64 {
    let draws = rates.len();
    let (step, quadrature) = log_time_step(draws, QUADRATURE_ERROR);
    let enough = (48.0 + 3.0 * draws as f64) / rest.max(1e-12);
    let mut smallest = power_of_two(LIGHT / enough);
    let mut clocks = list(smallest);
    let (mut plain, mut marked) = (vec![[0.0; LANES]; draws], vec![[0.0; LANES]; draws]);
    let (mut most, mut node, mut before) = (0, 0, 1.0);
    let unfinished = 'nodes: loop {
        // All that is not listed is light until then.
        let last = if smallest > 0.0 {
            LIGHT / smallest
        } else {
            LATEST
        };
        let mut times = [0.0; LANES];
        for (lane, time) in times.iter_mut().enumerate() {
            let log = FIRST_TIME.ln() + (node + lane) as f64 * step;
            *time = log.exp().min(last);
        }
        let is_light = |level: &&Level| level.scale * times[LANES - 1] <= LIGHT;
        let level = clocks.levels.iter().rev().find(is_light);
        let level = level.copied().unwrap_or_default();
        let others = [&clocks.rates, &clocks.targets].map(|all| &all[level.start..]);
        let taken = ring(&level, others, &times, &mut plain, &mut marked);
        most = most.max(taken);
        for (lane, &time) in times.iter().enumerate() {
            let few: f64 = plain.iter().map(|count| count[lane]).sum();
            if time * few < NEGLIGIBLE {
                break 'nodes 0.0;
            }
            if time >= last {
                if smallest == 0.0 {
                    break 'nodes before;
                }
                smallest = 0.0;
                clocks = list(smallest);
                node += lane;
                continue 'nodes;
            }
            before = few;
            for (rate, marked) in rates.iter_mut().zip(&marked).skip(2) {
                *rate += step * marked[lane];
            }
        }
        node += LANES;
    };
    let draws = draws as f64;
    let truncation = draws * 60.0 * 50.0 * LIGHT.powi(12);
    let operations = 8.0 * most as f64 + draws + 7.0;
    let summing = SUMMING + clocks.octaves as f64;
    let rings = (draws + 1.0) * (40.0 + draws + summing);
    let rounding = 1.04f64.powf(draws + 4.0) * (operations + rings)
        + (60.0 + draws) * summing
        + (node + LANES) as f64;
    let tails = FIRST_TIME.powi(3) + 20.0 * NEGLIGIBLE;
    quadrature + tails + truncation + rounding * f64::EPSILON + unfinished
}

/// Rings the light clocks of a level and the others, as long as t P(N_t < n) is not negligible: how
/// many others were taken.
fn ring(
    level: &Level,
    [rates, targets]: [&[f64]; 2],
    times: &Lanes,
    plain: &mut [Lanes],
    marked: &mut [Lanes],
) -> usize {
    let clocks = clocks::Clocks {
        scale: level.scale,
        plain: &level.sums.plain,
        marked: &level.sums.marked,
        rates,
        targets,
    };
    clocks::ring::<true>(&clocks, times, plain, marked).0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_rows::normalised;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

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
            // Sums of 60 roundings and one for each of three octaves; eight operations for each of
            // five clocks, and n + 7 for the light ones.
            let summing = 60.0 + 3.0;
            let rings = (n + 1.0) * (40.0 + n + summing);
            let paths = 1.04f64.powf(n + 4.0) * (8.0 * 5.0 + n + 7.0 + rings);
            let least = (128.0 + paths + (60.0 + n) * summing) * f64::EPSILON;
            let nodes = (error - quadrature - tails - truncation - least) / f64::EPSILON;
            // And one for each of some dozens of nodes.
            assert!((20.0..300.0).contains(&nodes), "{draws}: {error} {nodes}");
            assert!((nodes - nodes.round()).abs() < 0.1, "{draws}: {nodes}");
        }
    }

    /// Chances of 0, 1 and 2 that add up to 1: it is over when every time is below 1e-18.
    #[test]
    fn enough_has_rung_when_it_has_at_every_time() {
        let plain = [0.25, 0.5, 0.25].map(|chance| [chance; LANES]);
        assert!(clocks::is_over::<true>(&[9e-19; LANES], &plain));
        assert!(!clocks::is_over::<true>(&[1.1e-18; LANES], &plain));
        let mut one_left = [9e-19; LANES];
        one_left[5] = 1.1e-18;
        assert!(!clocks::is_over::<true>(&one_left, &plain));
    }

    /// P(N = k) and the marked sums for k < n, clock by clock.
    fn by_products(rates: &[f64], targets: &[f64], time: f64, draws: usize) -> [Vec<f64>; 2] {
        let (mut plain, mut marked) = (vec![0.0; draws], vec![0.0; draws]);
        plain[0] = 1.0;
        for (q, p) in rates.iter().zip(targets) {
            let (waits, rings) = ((-q * time).exp(), -(-q * time).exp_m1());
            for k in (0..draws).rev() {
                let below = |row: &[f64]| k.checked_sub(1).map_or(0.0, |k| row[k]);
                marked[k] =
                    marked[k] * waits + below(&marked) * rings + p * q * time * waits * plain[k];
                plain[k] = plain[k] * waits + below(&plain) * rings;
            }
        }
        [plain, marked]
    }

    /// More than a chunk of light clocks, all at once and with some of them listed, against each
    /// by itself.
    #[test]
    fn light_clocks_ring_as_each_does_by_itself() {
        let times = [1e-6, 1e-3, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5];
        for count in [1usize, 5, 40, 300, 600] {
            let rates: Vec<f64> = (1..=count)
                .map(|i| 0.06 * i as f64 / count as f64)
                .collect();
            let targets: Vec<f64> = (0..count).map(|i| 1.0 / (i + 3) as f64).collect();
            for (smallest, octaves) in [(0.0625, 0), (1.0 / 64.0, 2)] {
                let clocks = Clocks::of(&targets, &rates, smallest);
                let listed = rates.iter().filter(|rate| **rate >= smallest).count();
                assert_eq!(clocks.rates.len(), listed);
                assert!(clocks.octaves <= octaves);
                // One at which all are light, and the one of the fewest.
                for level in [clocks.levels.last().unwrap(), &clocks.levels[0]] {
                    assert!(level.scale <= 0.0625);
                    let (mut plain, mut marked) = ([[0.5; LANES]; 5], [[0.5; LANES]; 5]);
                    let others = level.start..listed;
                    let own = [&clocks.rates, &clocks.targets].map(|all| &all[others.clone()]);
                    let taken = ring(level, own, &times, &mut plain, &mut marked);
                    assert_eq!(taken, others.len());
                    for (lane, &time) in times.iter().enumerate() {
                        let [chances, sums] = by_products(&rates, &targets, time, 5);
                        for k in 0..5 {
                            for (found, expected) in
                                [(plain[k][lane], chances[k]), (marked[k][lane], sums[k])]
                            {
                                assert!(
                                    (found - expected).abs() <= 1e-12 * expected + 1e-15,
                                    "{count} {smallest} {time} {k}: {found} {expected}"
                                );
                            }
                        }
                    }
                }
            }
        }
    }

    /// Power sums of rates far below s and near it, side by side and apart, against those of all
    /// powers of each: what is left out is at most q t 2^-60 where q t = 1/32 at q = s.
    #[test]
    fn light_rates_take_fewer_powers() {
        for (below, powers) in LIGHTER {
            let octaves = 5.0 - below.log2();
            assert!(octaves * powers as f64 >= 60.0 && octaves * (powers - 1) as f64 <= 60.0);
        }
        let scale = 2f64.powi(-11);
        // Groups of 8 of each tier, at its very edge, and just above it; and a mixed one.
        let tops = [-40, -16, -15, -14, -8, -7, -6, -1].map(|exponent| 2f64.powi(exponent));
        let mut rates: Vec<f64> = Vec::new();
        for top in tops {
            rates.extend((1..=8).map(|i| scale * top * f64::from(i) / 8.0));
        }
        rates.extend(tops.map(|top| scale * top));
        let targets: Vec<f64> = (0..rates.len()).map(|i| 1.0 / (i + 3) as f64).collect();
        let (mut sums, mut listed) = (Sums::default(), Vec::new());
        gather(&targets, &rates, scale, &mut sums, &mut listed);
        assert!(listed.is_empty());
        for m in 1..=POWERS {
            let power = |rate: &f64| (rate / scale).powi(m as i32);
            let whole = |weights: &dyn Fn(usize) -> f64| -> f64 {
                let terms = rates.iter().enumerate();
                terms.map(|(i, rate)| weights(i) * power(rate)).sum()
            };
            let unit = 32f64.powi(m as i32);
            for (found, expected) in [
                (sums.plain[m - 1], whole(&|_| 1.0)),
                (sums.marked[m - 1], whole(&|i| targets[i])),
            ] {
                let missing = expected - found;
                let rounding = 64.0 * f64::EPSILON * expected;
                assert!(missing >= -rounding, "{m}: {found} {expected}");
                let most = 2f64.powi(-60) * rates.iter().sum::<f64>() / scale / 32.0;
                assert!(missing / unit <= most + rounding / unit, "{m}: {missing}");
            }
        }
        // Rates at a tier's edge are cut after its powers, and those above are not.
        let of = |top: f64| {
            let (mut sums, mut listed) = (Sums::default(), Vec::new());
            gather(&[1.0], &[scale * top], scale, &mut sums, &mut listed);
            sums.plain.iter().filter(|sum| **sum > 0.0).count()
        };
        for (below, powers) in LIGHTER {
            assert_eq!(of(below), powers);
            assert!(of(below * 1.5) > powers);
        }
        assert_eq!((of(1.0 / 64.0), of(0.0)), (POWERS, 0));
    }

    fn spread(vocab: usize, nats: f64, random: &mut ChaCha8Rng) -> Vec<f64> {
        let entries = (0..vocab).map(|_| (-nats * random.random::<f64>()).exp());
        normalised(entries.collect())
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
            let [plain, marked] = by_products(q, p, t, draws);
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
        let ranks = Ranks::new(&p, &q, [1.0; 2], 3);
        agree(&ranks, &by_sets(&p, &q, 3), 1e-13, 1e-11);
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
            let rates = ranks.rates[1..].to_vec();
            agree(&Ranks { rates, ..ranks }, &other[1..], 1e-12, 2e-11);
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
