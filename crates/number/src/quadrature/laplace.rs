//! Integrals over s of Laplace transforms, on a geometric grid.
//!
//! Every integral in s is a positive mixture of `integral over s in
//! (0, inf) of e^{-sW} ds = 1/W`. In y = log s that is the integral of
//! `e^{y - W e^y}`, for which the trapezoidal rule with step h has the relative
//! error
//!
//! ```text
//! |sum over k != 0 of Gamma(1 + 2 pi i k / h) W^{-2 pi i k / h}|
//!     <= 2 sum over k >= 1 of sqrt(2 pi z e^{-pi z} / (1 - e^{-2 pi z})),  z = 2 pi k / h,
//! ```
//!
//! the same for every W (Poisson summation, and |Gamma(1+iz)|^2 = pi z / sinh(pi z)).
//! At three nodes an octave, h = ln(2)/3, it is below 2e-17. The left end is that
//! of a [`GeometricGrid`]. To the right the grid is cut where `e^{-sW}` is below
//! e^{-[`CUT`]}.
//!
//! Three nodes an octave have one more use: `e^{-2sw}` is the square of `e^{-sw}`,
//! so that a token costs three polynomials and then two multiplications a node,
//! and no exponential at all. Doubled is `E = 1 - e^{-sw}`, by E (2 - E), which
//! keeps its relative accuracy: every doubling adds at most two roundings.

use super::{GeometricGrid, Resolution};
use crate::distribution::exp_nonpositive;
use multiversion::multiversion;

/// Nodes an octave of s.
pub const PER_OCTAVE: usize = 3;

/// First node times the largest total weight.
const START: f64 = 0.02;

/// The last node is where `e^{-sW}` falls below e^-CUT for the smallest W.
const CUT: f64 = 42.0;

/// Bound on the relative error of the rule on `e^{-sW}` with W in the range of the grid: grid
/// 2e-17, right end e^-42 = 6e-19, left end 2e-18 for what a polynomial leaves and 4.1e-15 for
/// the rounding of the extra weights (a test of [`GeometricGrid`] computes both). The
/// rounding of the sum is apart.
pub const QUADRATURE_ERROR: f64 = 5e-15;

/// 1 - 2^-53, at which doubling stops: e^{-x} is taken as this less E, or 0. That
/// is off by 2^-53 while it lasts (x < 37) and exactly 0 after, where a sum over
/// many octaves would multiply a stuck last bit by x^2.
const FULL: f64 = 1.0 - 0.5 * f64::EPSILON;

#[inline(always)]
pub fn decay(state: f64) -> f64 {
    let rest = FULL - state;
    if rest > 0.0 { rest } else { 0.0 }
}

/// Tokens that are handled together, and running sums of theirs.
pub const BLOCK: usize = 32;
const LANES: usize = 8;

/// A grid in s.
#[derive(Clone, Debug)]
pub struct LaplaceGrid {
    /// Thirds of an octave from 1 to the first node.
    pub start: i64,
    pub s: GeometricGrid,
}

impl LaplaceGrid {
    /// A grid for total weights from `smallest` to `largest`, both above 0.
    pub fn new(smallest: f64, largest: f64) -> Self {
        let per = PER_OCTAVE as f64;
        let start = ((START / largest).log2() * per).floor();
        let octaves = ((CUT / smallest).log2() - start / per)
            .ceil()
            .clamp(6.0, 1000.0);
        let count = PER_OCTAVE * octaves as usize;
        // Every third node is exactly the double: a third of a large number would be off by
        // its last bit.
        let thirds: [f64; PER_OCTAVE] = std::array::from_fn(|third| (third as f64 / per).exp2());
        let nodes = (0..count as i64)
            .map(|k| {
                let place = start as i64 + k;
                let (octave, third) = (
                    place.div_euclid(PER_OCTAVE as i64),
                    place.rem_euclid(PER_OCTAVE as i64),
                );
                (octave as f64).exp2() * thirds[third as usize]
            })
            .collect();
        Self {
            start: start as i64,
            s: GeometricGrid::new(nodes, PER_OCTAVE),
        }
    }

    /// The nodes of the first octave.
    fn first(&self) -> [f64; PER_OCTAVE] {
        std::array::from_fn(|phase| self.s.nodes[phase])
    }

    /// 1 - e^{-sw} at the first nodes, where sw is at most about 0.03.
    #[inline(always)]
    pub fn seeds(&self, weights: &[f64; BLOCK]) -> [[f64; BLOCK]; PER_OCTAVE] {
        seeds(self.first(), weights)
    }

    /// `sum over j of mass_j e^{-s w_j}` at every node.
    pub fn transform(&self, mass: &[f64], weights: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; self.s.len()];
        transform(self.first(), mass, weights, &mut sums);
        sums
    }

    /// For every token `w sum over m of c_m e^{-s_m w}` and its derivative in
    /// log w.
    pub fn back(&self, weights: &[f64], coefficients: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let slopes: Vec<f64> = coefficients
            .iter()
            .zip(&self.s.nodes)
            .map(|(c, s)| c * s)
            .collect();
        let mut values = vec![0.0; weights.len()];
        let mut derivatives = vec![0.0; weights.len()];
        back(
            self.first(),
            weights,
            [coefficients, &slopes],
            [&mut values, &mut derivatives],
        );
        (values, derivatives)
    }

    /// e^{-s w_j} at the nodes of a resolution, one row a token.
    pub fn decays(&self, weights: &[f64], resolution: Resolution) -> Vec<f64> {
        let stride = self.s.stride(resolution);
        let nodes: Vec<f64> = self.s.nodes.iter().copied().step_by(stride).collect();
        let mut decays = vec![0.0; nodes.len() * weights.len()];
        for (row, &weight) in decays.chunks_exact_mut(nodes.len()).zip(weights) {
            decay_at(&nodes, weight, row);
        }
        decays
    }
}

#[multiversion(targets = "simd")]
fn decay_at(nodes: &[f64], weight: f64, row: &mut [f64]) {
    for (decay, s) in row.iter_mut().zip(nodes) {
        *decay = exp_nonpositive(-s * weight);
    }
}

#[inline(always)]
fn seeds(first: [f64; PER_OCTAVE], weights: &[f64; BLOCK]) -> [[f64; BLOCK]; PER_OCTAVE] {
    let mut seeds = [[0.0; BLOCK]; PER_OCTAVE];
    for (row, s) in seeds.iter_mut().zip(first) {
        for (seed, &weight) in row.iter_mut().zip(weights) {
            let x = s * weight;
            let high = 1.0 / 120.0 - x * (1.0 / 720.0 - x * (1.0 / 5040.0 - x / 40320.0));
            *seed = x * (1.0 - x * (0.5 - x * (1.0 / 6.0 - x * (1.0 / 24.0 - x * high))));
        }
    }
    seeds
}

#[inline(always)]
fn block(chunk: &[f64]) -> [f64; BLOCK] {
    let mut block = [0.0; BLOCK];
    block[..chunk.len()].copy_from_slice(chunk);
    block
}

#[multiversion(targets = "simd")]
fn transform(first: [f64; PER_OCTAVE], mass: &[f64], weights: &[f64], sums: &mut [f64]) {
    for (mass, weights) in mass.chunks(BLOCK).zip(weights.chunks(BLOCK)) {
        let mass = block(mass);
        let mut states = seeds(first, &block(weights));
        for octave in sums.chunks_exact_mut(PER_OCTAVE) {
            for (sum, state) in octave.iter_mut().zip(&mut states) {
                let mut lanes = [0.0; LANES];
                for (state, mass) in state.chunks_exact_mut(LANES).zip(mass.chunks_exact(LANES)) {
                    for lane in 0..LANES {
                        lanes[lane] += mass[lane] * decay(state[lane]);
                        state[lane] *= 2.0 - state[lane];
                    }
                }
                *sum += ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3]))
                    + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
            }
        }
    }
}

#[multiversion(targets = "simd")]
fn back(
    first: [f64; PER_OCTAVE],
    weights: &[f64],
    [coefficients, slopes]: [&[f64]; 2],
    [values, derivatives]: [&mut [f64]; 2],
) {
    let rows = values.chunks_mut(BLOCK).zip(derivatives.chunks_mut(BLOCK));
    for (weights, (values, derivatives)) in weights.chunks(BLOCK).zip(rows) {
        let mut states = seeds(first, &block(weights));
        let (mut value, mut slope) = ([0.0; BLOCK], [0.0; BLOCK]);
        for (c, d) in coefficients
            .chunks_exact(PER_OCTAVE)
            .zip(slopes.chunks_exact(PER_OCTAVE))
        {
            for phase in 0..PER_OCTAVE {
                let (c, d, state) = (c[phase], d[phase], &mut states[phase]);
                for lane in 0..BLOCK {
                    let rest = decay(state[lane]);
                    value[lane] += c * rest;
                    slope[lane] += d * rest;
                    state[lane] *= 2.0 - state[lane];
                }
            }
        }
        for (lane, &w) in weights.iter().enumerate() {
            values[lane] = w * value[lane];
            derivatives[lane] = w * (value[lane] - w * slope[lane]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule against 1/W over the whole range that a grid is made for.
    #[test]
    fn integrates_exponentials_to_the_stated_error() {
        let grid = LaplaceGrid::new(1e-6, 1e4);
        for step in 0..=200 {
            let total = 1e-6 * 1e10f64.powf(f64::from(step) / 200.0);
            let sum: f64 = grid
                .s
                .nodes
                .iter()
                .zip(&grid.s.weights)
                .map(|(s, weight)| weight * (-s * total).exp())
                .sum();
            let error = (sum * total - 1.0).abs();
            // The first eight terms are up to six times the sum.
            assert!(error < QUADRATURE_ERROR, "W = {total}: {error}");
        }
    }

    /// The doubled exponentials against the library's.
    #[test]
    fn doubling_keeps_its_accuracy() {
        let weights = [1.0, 0.3, 1e-3, 1e-9, 0.0, 1e-300, 0.777];
        let mass = [0.25, 0.125, 0.125, 0.25, 0.125, 0.0625, 0.0625];
        let grid = LaplaceGrid::new(1e-9, 1.0);
        let sums = grid.transform(&mass, &weights);
        for (s, sum) in grid.s.nodes.iter().zip(sums) {
            let direct: f64 = mass
                .iter()
                .zip(&weights)
                .map(|(m, w)| m * (-s * w).exp())
                .sum();
            assert!(
                (sum - direct).abs() < 1e-14 * direct,
                "s = {s}: {sum} {direct}"
            );
        }
        let coefficients: Vec<f64> = grid.s.weights.iter().map(|w| w * 0.5).collect();
        let (values, slopes) = grid.back(&weights, &coefficients);
        for (weight, value) in weights.iter().zip(&values).take(4) {
            // w times the integral of e^{-sw} / 2.
            assert!((value - 0.5).abs() < 1e-13, "{weight} {value}");
        }
        assert!(slopes.iter().take(4).all(|slope| slope.abs() < 1e-12));
        // A weight far above the others: no last bit may stay at large s.
        let grid = LaplaceGrid::new(1.0, 1e12);
        let coefficients: Vec<f64> = (grid.s.nodes.iter().zip(&grid.s.weights))
            .map(|(s, w)| w * (-s).exp())
            .collect();
        for weight in [1e12, 1e9, 1e6] {
            let (values, slopes) = grid.back(&[weight], &coefficients);
            assert!((values[0] - weight / (1.0 + weight)).abs() < 1e-14);
            assert!((slopes[0] - weight / (1.0 + weight).powi(2)).abs() < 1e-13);
        }
    }
}
