//! Values with rigorous bounds.

use crate::distribution::{Rational, round_down, round_nearest, round_up};

/// A value with a rigorous enclosure, and exact where it is known exactly.
#[derive(Clone, Debug, PartialEq)]
pub struct Enclosure {
    /// Best estimate, in [lower, upper].
    pub value: f64,
    /// Rigorous lower bound.
    pub lower: f64,
    /// Rigorous upper bound.
    pub upper: f64,
    /// The exact value, where it is known.
    pub exact: Option<Rational>,
}

impl Enclosure {
    /// An exact rational, with the `f64` around it.
    pub fn exact(value: Rational) -> Self {
        Self {
            value: round_nearest(&value),
            lower: round_down(&value),
            upper: round_up(&value),
            exact: Some(value),
        }
    }

    /// An enclosure in `f64`, cut to [0, 1], where acceptance rates live.
    pub fn rate(value: f64, lower: f64, upper: f64) -> Self {
        let (lower, upper) = (lower.clamp(0.0, 1.0), upper.clamp(0.0, 1.0));
        // False for NaN: bounds that are no numbers bound nothing.
        let (lower, upper) = if lower <= upper {
            (lower, upper)
        } else {
            (0.0, 1.0)
        };
        let value = if value.is_nan() {
            0.5 * (lower + upper)
        } else {
            value
        };
        Self {
            value: value.clamp(lower, upper),
            lower,
            upper,
            exact: None,
        }
    }

    /// upper - lower; 0 if exact.
    pub fn width(&self) -> f64 {
        if self.exact.is_some() {
            0.0
        } else {
            self.upper - self.lower
        }
    }
}
