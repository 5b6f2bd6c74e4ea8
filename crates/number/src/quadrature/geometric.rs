//! The trapezoidal rule in the logarithm of the variable, on a geometric grid.
//!
//! The grid is infinite to the left. There the integrand is a smooth function of the
//! variable, and the sum over the missing nodes is replaced by what is exact for polynomials
//! of degree below [`ORDER`], as extra weight on the first nodes.

/// Degree below which the left end is exact, for all nodes.
const ORDER: usize = 8;

/// The same for one node an octave, which only steers Newton steps.
const COARSE_ORDER: usize = 4;

/// Which nodes of a grid are summed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// One an octave: good to 1e-5 or so, for steps.
    Coarse,
    /// All.
    Fine,
}

/// Nodes in a geometric sequence, four octaves and eight nodes at least, with their weights.
#[derive(Clone, Debug)]
pub struct GeometricGrid {
    /// Ascending.
    pub nodes: Vec<f64>,
    /// Weights of the rule, the variable's differential included.
    pub weights: Vec<f64>,
    coarse_weights: Vec<f64>,
    per_octave: usize,
}

impl GeometricGrid {
    /// `nodes` has whole octaves, each with `per_octave` nodes.
    #[inline]
    pub fn new(nodes: Vec<f64>, per_octave: usize) -> Self {
        let coarse: Vec<f64> = nodes.iter().copied().step_by(per_octave).collect();
        Self {
            weights: weights(&nodes, per_octave as f64, ORDER),
            coarse_weights: weights(&coarse, 1.0, COARSE_ORDER),
            nodes,
            per_octave,
        }
    }

    /// How many nodes it has; never none.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Every so many nodes are used.
    pub fn stride(&self, resolution: Resolution) -> usize {
        match resolution {
            Resolution::Coarse => self.per_octave,
            Resolution::Fine => 1,
        }
    }

    /// The weights of the nodes that are used.
    pub fn weights_at(&self, resolution: Resolution) -> &[f64] {
        match resolution {
            Resolution::Coarse => &self.coarse_weights,
            Resolution::Fine => &self.weights,
        }
    }
}

fn weights(nodes: &[f64], per_octave: f64, order: usize) -> Vec<f64> {
    let step = std::f64::consts::LN_2 / per_octave;
    let mut weights: Vec<f64> = nodes.iter().map(|node| step * node).collect();
    let first = nodes.first().copied().unwrap_or(0.0);
    let ends = left_end(first, (1.0 / per_octave).exp2(), order);
    for (weight, extra) in weights.iter_mut().zip(ends) {
        *weight += extra;
    }
    weights
}

/// Extra weights of the first `order` nodes: sum over k of `extra_k f(s_k)` is
/// `sum over m >= 1 of h s_{-m} f(s_{-m})` for polynomials f of degree < order.
fn left_end(first: f64, ratio: f64, order: usize) -> Vec<f64> {
    // In units of the first node: nodes x_k = ratio^k, moments
    // mu_j = ln(ratio) sum over m >= 1 of ratio^{-m (j+1)}.
    let points: Vec<f64> = (0..order).map(|k| ratio.powi(k as i32)).collect();
    let moment = |degree: usize| {
        let back = ratio.powi(-(degree as i32) - 1);
        ratio.ln() * back / (1.0 - back)
    };
    // Lagrange polynomials, expanded.
    (0..order)
        .map(|k| {
            let mut coefficients = vec![0.0; order];
            coefficients[0] = 1.0;
            let mut scale = 1.0;
            for (l, &point) in points.iter().enumerate() {
                if l == k {
                    continue;
                }
                for degree in (0..order).rev() {
                    let lower = if degree > 0 {
                        coefficients[degree - 1]
                    } else {
                        0.0
                    };
                    coefficients[degree] = lower - point * coefficients[degree];
                }
                scale *= points[k] - point;
            }
            let sum: f64 = coefficients
                .iter()
                .enumerate()
                .map(|(degree, c)| c * moment(degree))
                .sum();
            first * sum / scale
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::{Rational, exact_value, round_nearest};

    /// 2^(1/3) and its logarithm to 29 digits.
    fn third_of_an_octave() -> (Rational, Rational) {
        let digits = |digits: &str| -> Rational {
            let scale = format!("1{}", "0".repeat(digits.len() - 1));
            Rational::new(digits.parse().unwrap(), scale.parse().unwrap())
        };
        (
            digits("125992104989487316476721060728"),
            digits("023104906018664843647241070715"),
        )
    }

    fn power(base: &Rational, exponent: usize) -> Rational {
        (0..exponent).fold(exact_value(1.0).unwrap(), |product, _| product * base)
    }

    fn magnitude(value: &Rational) -> f64 {
        round_nearest(value).abs()
    }

    /// The whole error of the left end on e^{-sW}, relative to the integral 1/W, where the first
    /// node times W is at most 0.02: what a polynomial leaves of the exponential series, and the
    /// rounding of the extra weights. Weights of many more digits stand beside them.
    #[test]
    fn the_left_end_of_an_exponential_is_off_by_less_than_it_is_said_to_be() {
        let (ratio, step) = third_of_an_octave();
        let one = exact_value(1.0).unwrap();
        let moment = |degree: usize| {
            let back = &one / power(&ratio, degree + 1);
            &step * &back / (&one - &back)
        };
        let points: Vec<Rational> = (0..ORDER).map(|k| power(&ratio, k)).collect();
        // Lagrange: the moments of each polynomial that is 1 at one point and 0 at the others.
        let extra: Vec<Rational> = (0..ORDER)
            .map(|k| {
                let mut coefficients = vec![one.clone()];
                let mut scale = one.clone();
                for (l, point) in points.iter().enumerate().filter(|&(l, _)| l != k) {
                    let mut next = vec![exact_value(0.0).unwrap(); coefficients.len() + 1];
                    for (degree, c) in coefficients.iter().enumerate() {
                        next[degree + 1] += c;
                        next[degree] -= c * point;
                    }
                    coefficients = next;
                    scale *= &points[k] - &points[l];
                }
                let terms = coefficients.iter().enumerate();
                terms
                    .map(|(degree, c)| c * moment(degree))
                    .sum::<Rational>()
                    / scale
            })
            .collect();
        const LARGEST: f64 = 0.02;
        // e^-x = sum of (-x)^j / j!; degrees below ORDER are exact. From degree 14 on the rest of
        // the sum is below 2 * 0.02 * 310 (0.02 * 5.04)^14 / 14!, which is 2e-24.
        let mut remainder = 0.0;
        let mut factor = LARGEST;
        for degree in 0..14 {
            if degree > 0 {
                factor *= LARGEST / degree as f64;
            }
            let own = (extra.iter().zip(&points)).map(|(a, x)| a * power(x, degree));
            let error = magnitude(&(own.sum::<Rational>() - moment(degree)));
            if degree < ORDER {
                assert!(error < 1e-20, "{degree}: {error}");
            } else {
                remainder += error * factor;
            }
        }
        assert!(remainder < 2e-18, "{remainder}");
        // At f64: the weights are the exact ones, but for what rounding makes of them.
        let rounded = left_end(1.0, (1.0f64 / 3.0).exp2(), ORDER);
        let rounding: f64 = (extra.iter().zip(&rounded))
            .map(|(exact, &rounded)| magnitude(&(exact - exact_value(rounded).unwrap())))
            .sum();
        assert!(LARGEST * rounding < 4.1e-15, "{rounding}");
        // How much the rounding of what is summed there can be multiplied by.
        let size: f64 = LARGEST * extra.iter().map(magnitude).sum::<f64>();
        assert!(size < 6.2, "{size}");
    }

    /// The extra weights against the sum over the nodes that they stand for.
    #[test]
    fn the_left_end_is_exact_for_polynomials() {
        let ratio = 2f64.powf(1.0 / 3.0);
        for order in [COARSE_ORDER, ORDER] {
            let extra = left_end(0.02, ratio, order);
            for degree in 0..order as i32 {
                let terms: Vec<f64> = (extra.iter().zip(0..))
                    .map(|(extra, k)| extra * (0.02 * ratio.powi(k)).powi(degree))
                    .collect();
                let own: f64 = terms.iter().sum();
                let missing: f64 = (1..400)
                    .map(|m| ratio.ln() * (0.02 * ratio.powi(-m)).powi(degree + 1))
                    .sum();
                let size: f64 = terms.iter().map(|term| term.abs()).sum();
                assert!(
                    (own - missing).abs() < 1e-13 * size,
                    "{order} {degree}: {own}"
                );
            }
        }
    }
}
