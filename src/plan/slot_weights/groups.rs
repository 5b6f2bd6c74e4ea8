//! Tokens of a level gathered into a few hundred groups.
//!
//! At the solution the weight depends on a token through p/q alone, so a level
//! sees its tokens as a measure on the ratio axis. In the coordinate
//! `x = log((rho - r_low)/(r_up - rho))`, in which log w is nearly x plus a
//! constant, that measure is cut into narrow bins, and each bin is replaced by the
//! two-point Gauss rule with its mass, mean, variance and third moment: exact for
//! cubics, off by at most `mass width^4 / 4320` times a fourth derivative.

use super::level::Level;

/// Widest bin.
const WIDEST: f64 = 0.25;

/// The measure of a level on the coordinate axis, in few points.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    /// Ascending.
    pub(super) coordinate: Vec<f64>,
    pub(super) ratio: Vec<f64>,
    pub(super) mass: Vec<f64>,
}

impl Groups {
    /// Bins with `mass width^4 <= tolerance`; `ratio` ascends, and `coordinate` is the
    /// level's for it.
    pub(super) fn new(
        level: &Level,
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
                level,
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

    fn gather(&mut self, level: &Level, mass: &[f64], ratio: &[f64], coordinate: &[f64]) {
        let total: f64 = mass.iter().sum();
        let first = coordinate[0];
        let width = coordinate[coordinate.len() - 1] - first;
        if mass.len() <= 2 && width > 0.0 {
            for ((&c, &r), &m) in coordinate.iter().zip(ratio).zip(mass) {
                self.push(c, r, m);
            }
            return;
        }
        let terms = || coordinate.iter().map(|c| c - first).zip(mass);
        let (mut mean, mut variance, mut third) = (0.0, 0.0, 0.0);
        if width > 0.0 {
            mean = terms().map(|(c, m)| m * c).sum::<f64>() / total;
            for (c, m) in terms() {
                let from_mean = c - mean;
                let square = m * (from_mean * from_mean);
                variance += square;
                third += square * from_mean;
            }
            variance /= total;
            third /= total;
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
            self.push(at, level.ratio_at(at), total / (1.0 + x * x));
        }
    }
}
