//! Sums over light items, a block of them at a time.

use super::race::Class;
use specgap_number::quadrature::{BLOCK, LaplaceGrid, PER_OCTAVE, Resolution, decay};

/// A value an item of a block.
pub(super) type Values = [f64; BLOCK];

/// A block's weights and moments, filled up with zeros.
pub(super) fn gather(class: &Class, block: usize, chunk: &[f64]) -> (Values, Vec<Values>) {
    let mut weights = [0.0; BLOCK];
    weights[..chunk.len()].copy_from_slice(chunk);
    let start = block * BLOCK;
    let moments = class
        .moments
        .iter()
        .map(|row| {
            let mut values = [0.0; BLOCK];
            values[..chunk.len()].copy_from_slice(&row[start..start + chunk.len()]);
            values
        })
        .collect();
    (weights, moments)
}

/// Values that are summed side by side.
const ABREAST: usize = 4;

/// Adds `sum of moment_k u^m` over a block to the places of the pairs.
#[inline(always)]
pub(super) fn forward(
    drafts: usize,
    moments: &[Values],
    u: &Values,
    place: &[usize],
    row: &mut [f64],
) {
    match (moments.len(), drafts) {
        (1, _) => forward_by::<1, 1>(moments, u, place, row),
        (2, _) => forward_by::<2, 2>(moments, u, place, row),
        (3, 2) => forward_by::<3, 2>(moments, u, place, row),
        (3, _) => forward_by::<3, 3>(moments, u, place, row),
        (4, 2) => forward_by::<4, 2>(moments, u, place, row),
        (4, 3) => forward_by::<4, 3>(moments, u, place, row),
        (4, _) => forward_by::<4, 4>(moments, u, place, row),
        (terms, _) => {
            let mut power = *u;
            let mut slots = place.iter();
            for m in 1..=drafts.min(terms) {
                for (moment, &slot) in moments[m - 1..].iter().zip(slots.by_ref()) {
                    row[slot] += moment.iter().zip(&power).map(|(a, b)| a * b).sum::<f64>();
                }
                for (power, u) in power.iter_mut().zip(u) {
                    *power *= u;
                }
            }
        }
    }
}

/// The same for K powers of q and M powers of u.
#[inline(always)]
fn forward_by<const K: usize, const M: usize>(
    moments: &[Values],
    u: &Values,
    place: &[usize],
    row: &mut [f64],
) {
    let Some(moments) = moments.first_chunk::<K>() else {
        return;
    };
    let mut sums = [[[0.0; ABREAST]; K]; M];
    for start in (0..BLOCK).step_by(ABREAST) {
        let mut own = [0.0; ABREAST];
        own.copy_from_slice(&u[start..start + ABREAST]);
        let mut power = own;
        for (m, sums) in sums.iter_mut().enumerate() {
            for (sum, moment) in sums[m..].iter_mut().zip(&moments[m..]) {
                for lane in 0..ABREAST {
                    sum[lane] += moment[start + lane] * power[lane];
                }
            }
            for lane in 0..ABREAST {
                power[lane] *= own[lane];
            }
        }
    }
    let mut slots = place.iter();
    for (m, sums) in sums.iter().enumerate() {
        for (sum, &slot) in sums[m..].iter().zip(slots.by_ref()) {
            row[slot] += (sum[0] + sum[1]) + (sum[2] + sum[3]);
        }
    }
}

/// `sum over pairs of coefficient moment_k u^m` for every item of a block.
#[inline(always)]
pub(super) fn backward(
    drafts: usize,
    moments: &[Values],
    u: &Values,
    place: &[usize],
    row: &[f64],
    out: &mut Values,
) {
    match (moments.len(), drafts) {
        (1, _) => backward_by::<1, 1>(moments, u, place, row, out),
        (2, _) => backward_by::<2, 2>(moments, u, place, row, out),
        (3, 2) => backward_by::<3, 2>(moments, u, place, row, out),
        (3, _) => backward_by::<3, 3>(moments, u, place, row, out),
        (4, 2) => backward_by::<4, 2>(moments, u, place, row, out),
        (4, 3) => backward_by::<4, 3>(moments, u, place, row, out),
        (4, _) => backward_by::<4, 4>(moments, u, place, row, out),
        (terms, _) => {
            // Horner in u.
            out.fill(0.0);
            let mut slots = place.iter().rev();
            for m in (1..=drafts.min(terms)).rev() {
                for (moment, &slot) in moments[m - 1..].iter().rev().zip(slots.by_ref()) {
                    let coefficient = row[slot];
                    for (sum, moment) in out.iter_mut().zip(moment) {
                        *sum += coefficient * moment;
                    }
                }
                for (sum, u) in out.iter_mut().zip(u) {
                    *sum *= u;
                }
            }
        }
    }
}

/// The same for K powers of q and M powers of u.
#[inline(always)]
fn backward_by<const K: usize, const M: usize>(
    moments: &[Values],
    u: &Values,
    place: &[usize],
    row: &[f64],
    out: &mut Values,
) {
    let Some(moments) = moments.first_chunk::<K>() else {
        return;
    };
    let mut coefficients = [[0.0; K]; M];
    let mut slots = place.iter();
    for (m, own) in coefficients.iter_mut().enumerate() {
        for (coefficient, &slot) in own[m..].iter_mut().zip(slots.by_ref()) {
            *coefficient = row[slot];
        }
    }
    for start in (0..BLOCK).step_by(ABREAST) {
        let mut sum = [0.0; ABREAST];
        for m in (0..M).rev() {
            for k in m..K {
                for lane in 0..ABREAST {
                    sum[lane] += coefficients[m][k] * moments[k][start + lane];
                }
            }
            for lane in 0..ABREAST {
                sum[lane] *= u[start + lane];
            }
        }
        out[start..start + ABREAST].copy_from_slice(&sum);
    }
}

/// e^{-sw} for a block of weights, node by node.
pub(super) struct Decays<'a> {
    s: &'a [f64],
    weights: Values,
    resolution: Resolution,
    states: [Values; PER_OCTAVE],
}

impl<'a> Decays<'a> {
    pub(super) fn new(
        grid: &LaplaceGrid,
        s: &'a [f64],
        weights: &Values,
        resolution: Resolution,
    ) -> Self {
        Self {
            s,
            weights: *weights,
            resolution,
            states: match resolution {
                Resolution::Fine => grid.seeds(weights),
                Resolution::Coarse => [[0.0; BLOCK]; PER_OCTAVE],
            },
        }
    }

    /// Nodes must be asked for in order.
    #[inline(always)]
    pub(super) fn next(&mut self, node: usize, u: &mut Values) {
        match self.resolution {
            Resolution::Fine => {
                for (u, state) in u.iter_mut().zip(&mut self.states[node % PER_OCTAVE]) {
                    *u = decay(*state);
                    *state *= 2.0 - *state;
                }
            }
            Resolution::Coarse => {
                let s = self.s[node];
                for (u, w) in u.iter_mut().zip(&self.weights) {
                    *u = (-s * w).exp();
                }
            }
        }
    }
}
