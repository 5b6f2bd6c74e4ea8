//! Sums of masses, and of powers of rates, which stand for light clocks.

use crate::clocks::{CHUNK, LANES, Lanes, POWERS};
use multiversion::multiversion;
use specgap_number::distribution::exp_nonpositive;

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
