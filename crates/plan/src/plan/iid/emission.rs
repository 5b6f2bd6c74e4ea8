//! What a tier emits for given weights.

use super::tier::{Tier, power_quotient};
use multiversion::multiversion;
use specgap_number::quadrature::LaplaceGrid;

/// Range of weights: products of two of them and of two nodes stay normal.
const SMALLEST_WEIGHT: f64 = 1e-140;
const LARGEST_WEIGHT: f64 = 1e140;

/// phi at the nodes, and what gives F for any weight.
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) grid: LaplaceGrid,
    pub(super) phi: Vec<f64>,
    pub(super) coefficients: Vec<f64>,
}

/// A tier's state: weights, and all that follows from them.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) weights: Vec<f64>,
    pub(super) field: Field,
    pub(super) value: Vec<f64>,
    pub(super) slope: Vec<f64>,
    /// Sum of |wanted - emitted|.
    pub(super) residual: f64,
}

/// The least and the largest of some weights; infinity and 0 of none.
#[multiversion(targets = "simd")]
fn extremes(weights: &[f64]) -> [f64; 2] {
    const LANES: usize = 16;
    let (mut least, mut most) = ([f64::INFINITY; LANES], [0.0f64; LANES]);
    let mut see = |lane: usize, weight: f64| {
        least[lane] = if weight < least[lane] {
            weight
        } else {
            least[lane]
        };
        most[lane] = if weight > most[lane] {
            weight
        } else {
            most[lane]
        };
    };
    let (chunks, end) = weights.as_chunks::<LANES>();
    for chunk in chunks {
        for (lane, &weight) in chunk.iter().enumerate() {
            see(lane, weight);
        }
    }
    for (lane, &weight) in end.iter().enumerate() {
        see(lane, weight);
    }
    [
        least.into_iter().fold(f64::INFINITY, f64::min),
        most.into_iter().fold(0.0, f64::max),
    ]
}

impl Tier {
    fn smallest_total(&self, smallest: f64) -> f64 {
        if self.rejected.is_some() {
            1.0
        } else {
            smallest
        }
    }

    /// The field of given groups and weights.
    fn field(&self, mass: &[f64], weights: &[f64]) -> Field {
        let grid = self.grid(weights);
        let phi = grid.transform(mass, weights);
        self.field_at(grid, phi)
    }

    /// A grid for given weights.
    pub(super) fn grid(&self, weights: &[f64]) -> LaplaceGrid {
        let [smallest, largest] = extremes(weights);
        LaplaceGrid::new(
            self.smallest_total(smallest).max(f64::MIN_POSITIVE),
            (self.drafts as f64 * largest + self.reject_weight()).max(f64::MIN_POSITIVE),
        )
    }

    /// The field of given sums of mass e^{-s w} at the nodes.
    pub(super) fn field_at(&self, grid: LaplaceGrid, mut phi: Vec<f64>) -> Field {
        let reject = self.reject_weight();
        let (low, _) = self.range();
        let (n, power) = (self.drafts as f64, self.drafts as i32 - 1);
        let coefficients = phi
            .iter_mut()
            .zip(grid.s.nodes.iter().zip(&grid.s.weights))
            .map(|(phi, (s, weight))| {
                let emitting = *phi;
                *phi += self.base;
                let beyond = if self.rejected.is_some() {
                    (-s * reject).exp() * n * phi.powi(power)
                } else if low == 0.0 {
                    n * phi.powi(power)
                } else {
                    n * emitting * power_quotient(self.base, *phi, self.drafts - 1)
                };
                weight * beyond
            })
            .collect();
        Field {
            grid,
            phi,
            coefficients,
        }
    }

    /// F and dF/dlog w for weights within the range of the field.
    pub(super) fn emission(&self, field: &Field, weights: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let (low, _) = self.range();
        let (mut value, slope) = field.grid.back(weights, &field.coefficients);
        if low > 0.0 {
            for value in &mut value {
                *value += low;
            }
        }
        (value, slope)
    }

    /// The scale is free where nothing is rejected; else weights are kept in range.
    pub(super) fn state(&self, mut weights: Vec<f64>) -> State {
        if self.rejected.is_none() {
            // The largest weight is 1.
            let largest = weights.iter().copied().fold(0.0, f64::max);
            for weight in &mut weights {
                *weight = (*weight / largest).max(SMALLEST_WEIGHT);
            }
        } else {
            for weight in &mut weights {
                *weight = weight.min(LARGEST_WEIGHT);
            }
        }
        let field = self.field(&self.mass, &weights);
        let (value, slope) = self.emission(&field, &weights);
        let residual = value
            .iter()
            .zip(&self.ratio)
            .zip(&self.mass)
            .map(|((value, ratio), mass)| mass * (ratio - value).abs())
            .sum();
        State {
            weights,
            field,
            value,
            slope,
            residual,
        }
    }
}
