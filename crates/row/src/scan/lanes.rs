//! How many clocks have rung, at eight times side by side.
//!
//! Light clocks stand in power sums of their rates, heavy ones are taken one by one
//! (`row/clocks.rs` has the series). All of it runs in vector registers, in an order that
//! does not depend on how wide they are.

use crate::clocks::{EXPANSION, POWERS, terms};
use multiversion::multiversion;
use specgap_number::distribution::{exp_nonpositive, wait_and_ring};

/// Times side by side, and rates that are summed side by side.
pub(super) const LANES: usize = 8;

pub(super) type Lanes = [f64; LANES];

/// Rates summed before their sums join the others in two words.
const CHUNK: usize = 256;

/// Tokens between two looks at whether enough has rung.
const TOKENS: usize = 16;

/// What P(N_t < n) may be when the rest of a prefix is left out.
const NEGLIGIBLE: f64 = 1e-18;

/// Roundings of a sum in [`PowerSums`], relative: in a lane, over the lanes, in two words, and in
/// the power.
pub(super) const SUMMING: f64 = (CHUNK / LANES + LANES + 4 + POWERS) as f64;

/// A sum of non-negative numbers in two words: k terms come out within 2 + k^2 2^-53 units of
/// 2^-53. Only one addition waits for the one before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Running {
    sum: f64,
    rest: f64,
}

impl Running {
    #[inline(always)]
    pub(super) fn add(&mut self, term: f64) {
        let sum = self.sum + term;
        let seen = sum - self.sum;
        self.rest += (self.sum - (sum - seen)) + (term - seen);
        self.sum = sum;
    }

    #[inline(always)]
    pub(super) fn value(self) -> f64 {
        self.sum + self.rest
    }
}

/// Sums of (q / scale)^m, m from 1 to [`POWERS`], over rates q below a power of two.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PowerSums {
    /// In two words, as in [`Running`].
    sums: [f64; POWERS],
    rests: [f64; POWERS],
}

impl PowerSums {
    /// Adds the rates that are below `scale`. Returns what those sum to, over `scale`, each
    /// rate in one lane or another.
    pub(super) fn add(&mut self, rates: &[f64], scale: f64) -> f64 {
        let mut mass = Running::default();
        for chunk in rates.chunks(CHUNK) {
            let mut own = [0.0; POWERS];
            powers(chunk, scale, &mut own);
            mass.add(own[0]);
            for m in 0..POWERS {
                let (before, own) = (self.sums[m], own[m]);
                let sum = before + own;
                let seen = sum - before;
                self.rests[m] += (before - (sum - seen)) + (own - seen);
                self.sums[m] = sum;
            }
        }
        mass.value()
    }

    pub(super) fn value(&self) -> [f64; POWERS] {
        let mut values = self.sums;
        for (value, rest) in values.iter_mut().zip(self.rests) {
            *value += rest;
        }
        values
    }
}

#[multiversion(targets = "simd")]
fn powers(rates: &[f64], scale: f64, sums: &mut [f64; POWERS]) {
    let inverse = 1.0 / scale;
    let mut own = [[0.0; LANES]; POWERS];
    let mut groups = rates.chunks_exact(LANES);
    for group in &mut groups {
        if let Ok(group) = <&Lanes>::try_from(group) {
            add_powers(group, scale, inverse, &mut own);
        }
    }
    let rest = groups.remainder();
    if !rest.is_empty() {
        let mut group = [0.0; LANES];
        group[..rest.len()].copy_from_slice(rest);
        add_powers(&group, scale, inverse, &mut own);
    }
    for (sum, [a, b, c, d, e, f, g, h]) in sums.iter_mut().zip(own) {
        *sum = ((a + b) + (c + d)) + ((e + f) + (g + h));
    }
}

#[inline(always)]
fn add_powers(rates: &Lanes, scale: f64, inverse: f64, sums: &mut [Lanes; POWERS]) {
    let mut base = [0.0; LANES];
    for lane in 0..LANES {
        let q = rates[lane];
        base[lane] = if q < scale { q * inverse } else { 0.0 };
    }
    let mut power = base;
    for sum in sums {
        for lane in 0..LANES {
            sum[lane] += power[lane];
            power[lane] *= base[lane];
        }
    }
}

/// P(N_t = k) for k from 0, one an entry of `counts`, at rising times, for clocks whose power
/// sums are given and the tokens' own. Returns how many tokens were taken before P(N_t < n) was
/// [`NEGLIGIBLE`] at all times, and whether it is.
pub(super) fn count(
    sums: &[f64; POWERS],
    scale: f64,
    tokens: &[f64],
    times: &Lanes,
    counts: &mut [Lanes],
) -> (usize, bool) {
    match counts.len() {
        3 => count_few::<3>(sums, scale, tokens, times, counts),
        4 => count_few::<4>(sums, scale, tokens, times, counts),
        5 => count_few::<5>(sums, scale, tokens, times, counts),
        6 => count_few::<6>(sums, scale, tokens, times, counts),
        _ => count_many(sums, scale, tokens, times, counts),
    }
}

#[multiversion(targets = "simd")]
fn count_few<const N: usize>(
    sums: &[f64; POWERS],
    scale: f64,
    tokens: &[f64],
    times: &Lanes,
    counts: &mut [Lanes],
) -> (usize, bool) {
    let mut own = [[0.0; LANES]; N];
    expand(sums, scale, times, &mut own);
    let taken = take(tokens, times, &mut own);
    counts.copy_from_slice(&own);
    taken
}

#[multiversion(targets = "simd")]
fn count_many(
    sums: &[f64; POWERS],
    scale: f64,
    tokens: &[f64],
    times: &Lanes,
    counts: &mut [Lanes],
) -> (usize, bool) {
    expand(sums, scale, times, counts);
    take(tokens, times, counts)
}

/// Tokens one by one.
#[inline(always)]
fn take(tokens: &[f64], times: &Lanes, counts: &mut [Lanes]) -> (usize, bool) {
    let mut taken = 0;
    if is_over(counts) {
        return (taken, true);
    }
    for chunk in tokens.chunks(TOKENS) {
        for &q in chunk {
            let (mut waits, mut rings) = ([0.0; LANES], [0.0; LANES]);
            for lane in 0..LANES {
                (waits[lane], rings[lane]) = wait_and_ring(q * times[lane]);
            }
            for k in (1..counts.len()).rev() {
                for lane in 0..LANES {
                    counts[k][lane] =
                        counts[k][lane] * waits[lane] + counts[k - 1][lane] * rings[lane];
                }
            }
            for lane in 0..LANES {
                counts[0][lane] *= waits[lane];
            }
        }
        taken += chunk.len();
        if is_over(counts) {
            return (taken, true);
        }
    }
    (taken, false)
}

/// Nothing that rings besides changes much at any of the times.
#[inline(always)]
fn is_over(counts: &[Lanes]) -> bool {
    let mut sums = [0.0; LANES];
    for count in counts {
        for lane in 0..LANES {
            sums[lane] += count[lane];
        }
    }
    sums.iter().all(|&sum| sum < NEGLIGIBLE)
}

/// The counts of clocks in power sums. Newton's identities with odds in place of rates:
/// k e_k = sum over j of (-1)^{j-1} R_j e_{k-j}.
#[inline(always)]
fn expand(sums: &[f64; POWERS], scale: f64, times: &Lanes, counts: &mut [Lanes]) {
    let terms = terms(scale * times[LANES - 1]);
    let mut powers = [[0.0; LANES]; POWERS];
    let mut z = [1.0; LANES];
    for (power, &sum) in powers.iter_mut().zip(sums).take(terms) {
        for lane in 0..LANES {
            z[lane] *= scale * times[lane];
            power[lane] = z[lane] * sum;
        }
    }
    let most = counts.len() - 1;
    let degree = most.min(terms);
    let mut odds = [[0.0; LANES]; POWERS + 1];
    for k in 1..=degree {
        for m in k - 1..terms {
            let coefficient = EXPANSION[k - 1][m];
            for lane in 0..LANES {
                odds[k][lane] += coefficient * powers[m][lane];
            }
        }
    }
    counts[0] = [1.0; LANES];
    for k in 1..=most {
        let mut sum = [0.0; LANES];
        let mut sign = 1.0;
        for j in 1..=k.min(degree) {
            for lane in 0..LANES {
                sum[lane] += sign * odds[j][lane] * counts[k - j][lane];
            }
            sign = -sign;
        }
        for lane in 0..LANES {
            let value = sum[lane] / k as f64;
            counts[k][lane] = if value > 0.0 { value } else { 0.0 };
        }
    }
    let mut waits = [0.0; LANES];
    for lane in 0..LANES {
        waits[lane] = exp_nonpositive(-powers[0][lane]);
    }
    for count in counts {
        for lane in 0..LANES {
            count[lane] *= waits[lane];
        }
    }
}

/// s t e^{-st}, t times the density of the first ring outside, times the chance that between
/// 2 and n-1 have rung.
pub(super) fn integrand(s: f64, times: &Lanes, counts: &[Lanes]) -> Lanes {
    let mut sums = [0.0; LANES];
    for count in counts.iter().skip(2) {
        for lane in 0..LANES {
            sums[lane] += count[lane];
        }
    }
    let mut values = [0.0; LANES];
    for lane in 0..LANES {
        let exponent = s * times[lane];
        values[lane] = exponent * exp_nonpositive(-exponent) * sums[lane];
    }
    values
}
