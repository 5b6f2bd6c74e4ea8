//! Tokens of a tier gathered into a few hundred groups, and weights of groups carried back
//! to tokens.
//!
//! At the solution the weight depends on a token through p/q alone, so a tier
//! sees its tokens as a measure on the ratio axis. In the coordinate
//! `x = log((rho - r_low)/(r_up - rho))`, in which log w is nearly x plus a
//! constant, that measure is cut into narrow bins, and each bin is replaced by the
//! two-point Gauss rule with its mass, mean, variance and third moment: exact for
//! cubics, off by at most `mass width^4 / 4320` times a fourth derivative.

use super::emission::State;
use super::tier::Tier;
use multiversion::multiversion;

/// Widest bin.
const WIDEST: f64 = 0.25;

/// The measure of a tier on the coordinate axis, in few points.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    /// Ascending.
    pub(super) coordinate: Vec<f64>,
    pub(super) ratio: Vec<f64>,
    pub(super) mass: Vec<f64>,
}

impl Groups {
    /// Bins with `mass width^4 <= tolerance`; `ratio` ascends, and `coordinate` is the
    /// tier's for it.
    pub(super) fn new(
        tier: &Tier,
        mass: &[f64],
        ratio: &[f64],
        coordinate: &[f64],
        tolerance: f64,
    ) -> Self {
        let mut groups = Self {
            coordinate: Vec::new(),
            ratio: Vec::new(),
            mass: Vec::new(),
        };
        let mut start = 0;
        while start < mass.len() {
            let mut end = start + 1;
            let mut held = mass[start];
            while end < mass.len() {
                let width = coordinate[end] - coordinate[start];
                let square = width * width;
                if width > WIDEST || (held + mass[end]) * (square * square) > tolerance {
                    break;
                }
                held += mass[end];
                end += 1;
            }
            groups.gather(
                tier,
                &mass[start..end],
                &ratio[start..end],
                &coordinate[start..end],
            );
            start = end;
        }
        groups
    }

    fn push(&mut self, coordinate: f64, ratio: f64, mass: f64) {
        self.coordinate.push(coordinate);
        self.ratio.push(ratio);
        self.mass.push(mass);
    }

    fn gather(&mut self, tier: &Tier, mass: &[f64], ratio: &[f64], coordinate: &[f64]) {
        let first = coordinate[0];
        let [total, firsts] = first_moments(mass, coordinate, first);
        let width = coordinate[coordinate.len() - 1] - first;
        if mass.len() <= 2 && width > 0.0 {
            for ((&c, &r), &m) in coordinate.iter().zip(ratio).zip(mass) {
                self.push(c, r, m);
            }
            return;
        }
        let (mut mean, mut variance, mut third) = (0.0, 0.0, 0.0);
        if width > 0.0 {
            mean = firsts / total;
            let moments = central_moments(mass, coordinate, first, mean);
            (variance, third) = (moments[0] / total, moments[1] / total);
        }
        let deviation = variance.sqrt();
        // Mass 0 never comes here; a spread that is lost in rounding does.
        if deviation.is_nan() || deviation <= 1e-9 {
            let centre = first + mean;
            let share: f64 = mass.iter().zip(ratio).map(|(m, r)| m * r).sum::<f64>() / total;
            self.push(
                centre,
                if share.is_finite() { share } else { ratio[0] },
                total,
            );
            return;
        }
        let skew = third / (variance * deviation);
        let root = (skew * skew + 4.0).sqrt();
        // The two roots of x^2 - skew x - 1, without cancellation.
        let (lower, upper) = if skew >= 0.0 {
            (-2.0 / (skew + root), 0.5 * (skew + root))
        } else {
            (0.5 * (skew - root), 2.0 / (root - skew))
        };
        for x in [lower, upper] {
            let at = first + mean + deviation * x;
            self.push(at, tier.ratio_at(at), total / (1.0 + x * x));
        }
    }
}

/// Sums side by side.
const LANES: usize = 8;

/// Sum over the tokens of a bin of two terms of (mass, coordinate - first).
#[inline(always)]
fn sums(
    mass: &[f64],
    coordinate: &[f64],
    first: f64,
    terms: impl Fn(f64, f64) -> [f64; 2],
) -> [f64; 2] {
    let mut sums = [[0.0; LANES]; 2];
    let ((masses, masses_end), (places, places_end)) =
        (mass.as_chunks::<LANES>(), coordinate.as_chunks::<LANES>());
    for (masses, places) in masses.iter().zip(places) {
        for lane in 0..LANES {
            let [a, b] = terms(masses[lane], places[lane] - first);
            sums[0][lane] += a;
            sums[1][lane] += b;
        }
    }
    let mut sums = sums.map(|[a, b, c, d, e, f, g, h]| ((a + b) + (c + d)) + ((e + f) + (g + h)));
    for (mass, place) in masses_end.iter().zip(places_end) {
        let [a, b] = terms(*mass, place - first);
        sums[0] += a;
        sums[1] += b;
    }
    sums
}

/// Sum of the masses, and of mass times (coordinate - first).
#[multiversion(targets = "simd")]
fn first_moments(mass: &[f64], coordinate: &[f64], first: f64) -> [f64; 2] {
    sums(mass, coordinate, first, |mass, place| [mass, mass * place])
}

/// Sums of mass times the second and the third power of (coordinate - first - mean).
#[multiversion(targets = "simd")]
fn central_moments(mass: &[f64], coordinate: &[f64], first: f64, mean: f64) -> [f64; 2] {
    sums(mass, coordinate, first, |mass, place| {
        let from_mean = place - mean;
        let square = mass * (from_mean * from_mean);
        [square, square * from_mean]
    })
}

/// Bound on |log w| of a token; the exponential is made for a little more.
const LARGEST_LOG: f64 = 680.0;

/// log w as a function of the coordinate: cubic between groups, a straight line of
/// slope 1 beyond them.
pub(super) struct Curve {
    at: Vec<f64>,
    value: Vec<f64>,
    slope: Vec<f64>,
}

impl Curve {
    pub(super) fn new(tier: &Tier, groups: &Groups, state: &State, slope: &[f64]) -> Self {
        let (low, up) = tier.range();
        Self {
            at: groups.coordinate.clone(),
            value: state.weights.iter().map(|weight| weight.ln()).collect(),
            slope: groups
                .ratio
                .iter()
                .zip(slope)
                .map(|(ratio, slope)| {
                    let rate = slope * (1.0 / (ratio - low) + 1.0 / (up - ratio));
                    if rate.is_finite() && rate > 0.0 {
                        (1.0 / rate).min(10.0)
                    } else {
                        1.0
                    }
                })
                .collect(),
        }
    }

    /// The curve at ascending coordinates; out of order they take longer. Logarithms stay
    /// within what exponentials are made for.
    pub(super) fn fill(&self, coordinates: &[f64], logs: &mut [f64]) {
        let mut start = 0;
        let mut next = 0;
        while start < coordinates.len() {
            let x = coordinates[start];
            while next < self.at.len() && self.at[next] <= x {
                next += 1;
            }
            while next > 0 && self.at[next - 1] > x {
                next -= 1;
            }
            let lower = if next > 0 {
                self.at[next - 1]
            } else {
                f64::NEG_INFINITY
            };
            let upper = self.at.get(next).copied().unwrap_or(f64::INFINITY);
            let inside = |x: &f64| (lower..upper).contains(x);
            let others = coordinates[start + 1..].iter().take_while(|x| inside(x));
            let end = start + 1 + others.count();
            let (from, powers) = self.piece(next);
            cubic(
                from,
                powers,
                &coordinates[start..end],
                &mut logs[start..end],
            );
            start = end;
        }
    }

    /// The curve before the group `next` and after the one before it, in powers of the
    /// distance from a coordinate.
    fn piece(&self, next: usize) -> (f64, [f64; 4]) {
        if next == 0 || next == self.at.len() {
            let end = next.saturating_sub(1);
            return (self.at[end], [self.value[end], 1.0, 0.0, 0.0]);
        }
        let k = next - 1;
        let width = self.at[next] - self.at[k];
        let rise = (self.value[next] - self.value[k]) / width;
        let (a, b) = (self.slope[k], self.slope[next]);
        let square = (3.0 * rise - 2.0 * a - b) / width;
        let cube = ((a + b) - 2.0 * rise) / (width * width);
        (self.at[k], [self.value[k], a, square, cube])
    }
}

#[multiversion(targets = "simd")]
fn cubic(from: f64, [a, b, c, d]: [f64; 4], coordinates: &[f64], logs: &mut [f64]) {
    for (log, x) in logs.iter_mut().zip(coordinates) {
        let t = x - from;
        let value = a + t * (b + t * (c + t * d));
        let value = if value > -LARGEST_LOG {
            value
        } else {
            -LARGEST_LOG
        };
        *log = if value < LARGEST_LOG {
            value
        } else {
            LARGEST_LOG
        };
    }
}
