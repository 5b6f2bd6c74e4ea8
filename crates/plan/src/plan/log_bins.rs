//! Bins of u = log w, in which what a token is at every node of s is a polynomial.
//!
//! A token's e^{-sw} at every node is hundreds of operations. But as a function of
//! u = log w it is smooth, e^{-s e^u}, so that in bins as wide as the distance of two
//! nodes a polynomial of degree 12 does. In a bin of centre c and half width
//! d = log(2)/6, with t = (u - c)/d in [-1, 1] and z = s e^c,
//!
//! ```text
//! f(t) = exp(-z e^{dt}),   |f| <= 1 wherever |Im dt| <= pi/2.
//! ```
//!
//! That region holds the ellipse with foci -1 and 1 whose half axis along the imaginary
//! one is pi/(2d) = 13.6; the sum of its half axes is 27.2. So the Chebyshev series of f,
//! cut after degree 12, is off by at most 2 * 27.2^-12 / 26.2 = 4.6e-19, **whatever z
//! is**. Bins and nodes both lie thirds of an octave apart, so z takes few values
//! and the polynomials are one table.

use multiversion::multiversion;
use specgap_number::distribution::{LN_2_HIGH, LN_2_LOW, exp_bounded};
use specgap_number::quadrature::{LaplaceGrid, PER_OCTAVE};
use std::ops::Range;

/// Coefficients of a polynomial.
pub(super) const TERMS: usize = 13;

/// Room for the coefficients in whole vectors.
pub(super) const ROOM: usize = 16;

/// Width of a bin of log w, and half of it.
pub(super) const WIDTH: f64 = std::f64::consts::LN_2 / PER_OCTAVE as f64;
pub(super) const HALF: f64 = 0.5 * WIDTH;

/// log(2)/6 in two words, the first with 21 trailing zeros, so that its multiples are
/// exact: far from w = 1 a centre rounded to one word would be off by some 1e-14.
const HALF_HIGH: f64 = f64::from_bits(HALF.to_bits() & !0x1f_ffff);
const HALF_LOW: f64 = ((LN_2_HIGH - 6.0 * HALF_HIGH) + LN_2_LOW) / 6.0;

/// Sums side by side, and how many tokens they run over before they are added up: sums
/// of sums round less often than one long sum.
pub(super) const LANES: usize = 4;
pub(super) const CHUNK: usize = 128;

/// f in powers of t, for z = 2^((i + 1/2)/3) times a factor.
pub(super) struct Table {
    /// The first i: before, f is 1.
    pub(super) lowest: i64,
    /// By degree, then by z.
    pub(super) by_degree: Vec<Vec<f64>>,
    /// By z, then by degree.
    pub(super) by_size: Vec<[f64; ROOM]>,
}

impl Table {
    /// For `count` values of z from i = `lowest` up: before, z is nothing, and after, f is.
    pub(super) fn new(factor: f64, lowest: i64, count: usize) -> Self {
        let by_size: Vec<[f64; ROOM]> = (lowest..)
            .take(count)
            .map(|index| series(((index as f64 + 0.5) / PER_OCTAVE as f64).exp2() * factor))
            .collect();
        let by_degree = (0..TERMS)
            .map(|degree| by_size.iter().map(|row| row[degree]).collect())
            .collect();
        Self {
            lowest,
            by_degree,
            by_size,
        }
    }

    /// Where a bin of log w starts in the table, for given nodes.
    pub(super) fn place(&self, grid: &LaplaceGrid, bin: i64) -> Place {
        let (offset, size) = (grid.start + bin - self.lowest, self.by_size.len() as i64);
        let count = grid.s.len() as i64;
        let flat = (-offset).clamp(0, count);
        let end = (size - offset).clamp(flat, count);
        Place {
            flat: flat as usize,
            end: end as usize,
            first: (offset + flat).clamp(0, size) as usize,
        }
    }
}

/// Where a bin of log w starts in a table, for given nodes: the nodes before `flat` have
/// f = 1, those from `end` on have f = 0.
pub(super) struct Place {
    pub(super) flat: usize,
    pub(super) end: usize,
    /// Place of the node `flat` in the table.
    pub(super) first: usize,
}

/// The Chebyshev series of f, cut after degree [`TERMS`] - 1, in powers of t.
pub(super) fn series(z: f64) -> [f64; ROOM] {
    // Taylor's series, whose coefficients are at most 13.6^-k, from f' = -z d e^{dt} f.
    // Sampling f instead would leave rounding in the high Chebyshev coefficients,
    // which powers of t multiply by up to 2^11.
    const LONG: usize = 31;
    let mut taylor = [0.0; LONG];
    taylor[0] = (-z).exp();
    for k in 1..LONG {
        let (mut sum, mut scale) = (0.0, 1.0);
        for j in 0..k {
            sum += scale * taylor[k - 1 - j];
            scale *= HALF / (j + 1) as f64;
        }
        taylor[k] = -z * HALF * sum / k as f64;
    }
    let chebyshev = chebyshev::<LONG>();
    for degree in (TERMS..LONG).rev() {
        let share = taylor[degree] / chebyshev[degree][degree];
        for (own, other) in taylor.iter_mut().zip(&chebyshev[degree]) {
            *own -= share * other;
        }
    }
    std::array::from_fn(|k| if k < TERMS { taylor[k] } else { 0.0 })
}

/// Chebyshev polynomials in powers, by degree. Their recurrence is exact in these numbers.
pub(super) fn chebyshev<const COUNT: usize>() -> [[f64; COUNT]; COUNT] {
    let mut all = [[0.0; COUNT]; COUNT];
    all[0][0] = 1.0;
    all[1][1] = 1.0;
    for degree in 2..COUNT {
        for k in 0..COUNT {
            let above = if k > 0 {
                2.0 * all[degree - 1][k - 1]
            } else {
                0.0
            };
            all[degree][k] = above - all[degree - 2][k];
        }
    }
    all
}

/// Neighbouring tokens of one bin.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) members: Range<usize>,
    /// Thirds of an octave from 1 to the lower end.
    pub(super) bin: i64,
}

impl Run {
    /// In two words.
    pub(super) fn centre(&self) -> [f64; 2] {
        let halves = (2 * self.bin + 1) as f64;
        [halves * HALF_HIGH, halves * HALF_LOW]
    }
}

/// The members of `range` by bins of log w: hardly more runs than bins where logarithms rise.
pub(super) fn runs(logs: &[f64], range: Range<usize>) -> Vec<Run> {
    let mut runs = Vec::new();
    let (mut start, end) = (range.start, range.end);
    while start < end {
        let bin = (logs[start] / WIDTH).floor() as i64;
        let mut run = Run {
            members: start..start + 1,
            bin,
        };
        let centre = run.centre();
        let within = |log: &f64| (log - centre[0]).abs() <= HALF;
        let others = logs[start + 1..end].iter().take_while(|log| within(log));
        run.members.end += others.count();
        start = run.members.end;
        runs.push(run);
    }
    runs
}

/// t, from -1 to 1.
#[inline(always)]
pub(super) fn place_in_bin(log: f64, [high, low]: [f64; 2]) -> f64 {
    ((log - high) - low) * (1.0 / HALF)
}

/// Sums of mass t^k.
#[multiversion(targets = "simd")]
pub(super) fn power_sums(logs: &[f64], masses: &[f64], centre: [f64; 2]) -> [f64; TERMS] {
    let mut sums = [[0.0; LANES]; TERMS];
    let mut add = |logs: &[f64; LANES], masses: &[f64; LANES]| {
        let mut t = [0.0; LANES];
        for (t, log) in t.iter_mut().zip(logs) {
            *t = place_in_bin(*log, centre);
        }
        let mut power = *masses;
        for sums in &mut sums {
            for lane in 0..LANES {
                sums[lane] += power[lane];
                power[lane] *= t[lane];
            }
        }
    };
    let (logs, logs_end) = logs.as_chunks::<LANES>();
    let (masses, masses_end) = masses.as_chunks::<LANES>();
    for (logs, masses) in logs.iter().zip(masses) {
        add(logs, masses);
    }
    if !logs_end.is_empty() {
        let (mut logs, mut masses) = ([centre[0]; LANES], [0.0; LANES]);
        logs[..logs_end.len()].copy_from_slice(logs_end);
        masses[..masses_end.len()].copy_from_slice(masses_end);
        add(&logs, &masses);
    }
    sums.map(|[a, b, c, d]| (a + b) + (c + d))
}

#[multiversion(targets = "simd")]
pub(super) fn add_scaled(share: f64, row: &[f64], sums: &mut [f64]) {
    for (sum, value) in sums.iter_mut().zip(row) {
        *sum += share * value;
    }
}

#[multiversion(targets = "simd")]
pub(super) fn gather(shares: &[f64], rows: &[[f64; ROOM]], sums: &mut [f64; ROOM]) {
    let mut own = *sums;
    for (share, row) in shares.iter().zip(rows) {
        for (sum, value) in own.iter_mut().zip(row) {
            *sum += share * value;
        }
    }
    *sums = own;
}

/// e^u of every entry.
#[multiversion(targets = "simd")]
pub(super) fn exponentials(logs: &[f64], weights: &mut [f64]) {
    for (weight, log) in weights.iter_mut().zip(logs) {
        *weight = exp_bounded(*log);
    }
}
