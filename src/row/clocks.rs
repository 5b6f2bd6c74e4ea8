//! Exponential clocks of similar rates, all at once.
//!
//! A clock of rate q has rung by t with odds r = e^{qt} - 1 to 1. For a set of clocks
//!
//! ```text
//! prod over i of (1 + r_i z) = exp(R_1 z - R_2 z^2/2 + R_3 z^3/3 - ...),   R_k = sum r_i^k,
//! ```
//!
//! and R_k is a series in the power sums of q t. While q t is small, twelve power sums
//! stand for any number of clocks.

use crate::distribution::exp_nonpositive;
use multiversion::multiversion;

/// Power sums kept.
pub(crate) const POWERS: usize = 12;

/// Clocks summed before their sums join those of the others, and sums that are kept
/// side by side on the way.
const BLOCK: usize = 256;
const LANES: usize = 16;

/// The power sums of some rates, each with a weight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PowerSums {
    /// Sums of weight times (q / largest)^m, m = 1..
    sums: [f64; POWERS],
}

/// Some clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    pub(crate) count: usize,
    /// The largest rate.
    pub(crate) largest: f64,
    sums: PowerSums,
}

/// Roundings in a sum over `count` rates.
pub(crate) fn summing(count: usize) -> f64 {
    (2 * LANES + 16 + count / (BLOCK * LANES)) as f64
}

impl PowerSums {
    /// O(count). `weights` has one entry a rate.
    pub(crate) fn of(rates: &[f64], weights: &[f64], largest: f64) -> Self {
        let mut sums = [0.0; POWERS];
        sum_up(rates, weights, largest, &mut sums);
        Self { sums }
    }

    /// `sum of weight q t (e^{qt} - 1)^k` for k from 0, one an entry of `marks`; `z` is
    /// the largest q t. Terms from (q t)^13 on are left out.
    pub(crate) fn marked(&self, z: f64, marks: &mut [f64]) {
        let terms = terms(z);
        let mut powers = [0.0; POWERS];
        self.scale(z, terms, &mut powers);
        for (k, mark) in marks.iter_mut().enumerate() {
            *mark = match k {
                0 => powers[0],
                _ if k < terms => {
                    let coefficients = &EXPANSION[k - 1];
                    (k..terms).map(|m| coefficients[m - 1] * powers[m]).sum()
                }
                _ => 0.0,
            };
        }
    }

    fn scale(&self, z: f64, terms: usize, powers: &mut [f64; POWERS]) {
        let mut power = 1.0;
        for (slot, &sum) in powers.iter_mut().zip(&self.sums).take(terms) {
            power *= z;
            *slot = power * sum;
        }
    }
}

impl Clocks {
    /// O(count).
    pub(crate) fn of(rates: &[f64]) -> Self {
        let largest = rates.iter().copied().fold(0.0, f64::max);
        Self {
            count: rates.len(),
            largest,
            sums: PowerSums::of(rates, &[], largest),
        }
    }

    /// The first entries of e_0, e_1.. of the odds at a time, as many as there are in
    /// `symmetric`; and the probability that none has rung. Odds up to 1/15: terms
    /// from (q t)^13 on are left out.
    #[inline]
    pub(crate) fn ring(&self, time: f64, symmetric: &mut [f64]) -> f64 {
        let z = self.largest * time;
        let terms = terms(z);
        let mut powers = [0.0; POWERS];
        self.sums.scale(z, terms, &mut powers);
        let most = (symmetric.len() - 1).min(self.count);
        let degree = most.min(POWERS);
        // R_k, then e_k by k e_k = sum (-1)^{j-1} R_j e_{k-j}.
        let mut sums = [0.0; POWERS + 1];
        for k in 1..=degree.min(terms) {
            let coefficients = &EXPANSION[k - 1];
            let mut sum = 0.0;
            for m in k - 1..terms {
                sum += coefficients[m] * powers[m];
            }
            sums[k] = sum;
        }
        symmetric.fill(0.0);
        symmetric[0] = 1.0;
        for k in 1..=most {
            let mut sum = 0.0;
            let mut sign = 1.0;
            for j in 1..=k.min(degree) {
                sum += sign * sums[j] * symmetric[k - j];
                sign = -sign;
            }
            symmetric[k] = (sum / k as f64).max(0.0);
        }
        (-powers[0]).exp()
    }
}

/// That a clock has not rung, and that it has, for rate times time `exponent`; up to
/// `small` neither loses digits.
#[inline(always)]
pub(crate) fn chances(exponent: f64, small: f64) -> (f64, f64) {
    if exponent > small {
        let waits = exp_nonpositive(-exponent);
        (waits, 1.0 - waits)
    } else {
        let rings = -(-exponent).exp_m1();
        (1.0 - rings, rings)
    }
}

/// Terms beyond this are below 1e-18 of the first, for q t up to `z`.
pub(crate) fn terms(z: f64) -> usize {
    // z < 2^-octaves, and 2^-60 < 1e-18.
    let octaves = 1022usize.saturating_sub((z.to_bits() >> 52) as usize);
    (60 / octaves.max(1) + 2).min(POWERS)
}

#[multiversion(targets = "simd")]
fn sum_up(rates: &[f64], weights: &[f64], largest: f64, sums: &mut [f64; POWERS]) {
    let mut totals = [[0.0; LANES]; POWERS];
    for (block, start) in (0..).zip((0..rates.len()).step_by(BLOCK)) {
        let end = rates.len().min(start + BLOCK);
        let mut own = [[0.0; LANES]; POWERS];
        for at in (start..end).step_by(LANES) {
            let (mut base, mut power) = ([0.0; LANES], [0.0; LANES]);
            for (slot, &q) in base.iter_mut().zip(&rates[at..end]) {
                *slot = q / largest;
            }
            if weights.is_empty() {
                power = base;
            } else {
                for (slot, (&weight, base)) in
                    power.iter_mut().zip(weights[at..end].iter().zip(base))
                {
                    *slot = weight * base;
                }
            }
            for sum in &mut own {
                for lane in 0..LANES {
                    sum[lane] += power[lane];
                    power[lane] *= base[lane];
                }
            }
        }
        for (total, own) in totals.iter_mut().zip(&own) {
            total[block % LANES] += own.iter().sum::<f64>();
        }
    }
    for (sum, total) in sums.iter_mut().zip(&totals) {
        *sum = total.iter().sum();
    }
}

/// `EXPANSION[k-1][m-1]` is the coefficient of y^m in (e^y - 1)^k.
pub(crate) const EXPANSION: [[f64; POWERS]; POWERS] = expansion();

const fn expansion() -> [[f64; POWERS]; POWERS] {
    let mut table = [[0.0; POWERS]; POWERS];
    let mut factorial = 1.0;
    let mut m = 0;
    while m < POWERS {
        factorial *= (m + 1) as f64;
        table[0][m] = 1.0 / factorial;
        m += 1;
    }
    let mut k = 1;
    while k < POWERS {
        // (e^y - 1)^{k+1} = (e^y - 1)^k (e^y - 1)
        let mut m = k;
        while m < POWERS {
            let mut i = k - 1;
            while i < m {
                table[k][m] += table[k - 1][i] * table[0][m - i - 1];
                i += 1;
            }
            m += 1;
        }
        k += 1;
    }
    table
}
