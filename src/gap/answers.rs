//! What a position answers, and what stands for the tokens that its rows do not list.

use super::metric::Metric;
use crate::known::{Kind, Known};
use std::collections::BTreeMap;

/// A number, between bounds on its rounding.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Value {
    pub value: f64,
    pub lower: f64,
    pub upper: f64,
    /// A mean over random draws, whose bounds are those of an interval.
    pub monte_carlo: bool,
    /// Where the row lists some tokens only: bounds that hold the full row's number.
    pub truncation: Option<[f64; 2]>,
}

impl Value {
    pub fn between(value: f64, lower: f64, upper: f64) -> Self {
        Self {
            value,
            lower,
            upper,
            monte_carlo: false,
            truncation: None,
        }
    }

    pub fn plain(value: f64) -> Self {
        Self::between(value, value, value)
    }

    pub fn minus(self, other: Self) -> Self {
        let truncation = (self.truncation.is_some() || other.truncation.is_some()).then(|| {
            let ([low, high], [other_low, other_high]) = (self.bounds(), other.bounds());
            [low - other_high, high - other_low]
        });
        Self {
            value: self.value - other.value,
            lower: self.lower - other.upper,
            upper: self.upper - other.lower,
            monte_carlo: self.monte_carlo || other.monte_carlo,
            truncation,
        }
    }

    pub fn width(&self) -> f64 {
        self.upper - self.lower
    }

    /// Where the number of the full row is.
    pub fn bounds(&self) -> [f64; 2] {
        self.truncation.unwrap_or([self.lower, self.upper])
    }

    pub fn is_finite(&self) -> bool {
        let [lower, upper] = self.bounds();
        [self.value, self.lower, self.upper, lower, upper]
            .into_iter()
            .all(f64::is_finite)
    }
}

impl From<Known> for Value {
    fn from(rate: Known) -> Self {
        Self {
            monte_carlo: rate.kind() == Kind::MonteCarlo,
            ..Self::between(rate.value(), rate.lower(), rate.upper())
        }
    }
}

/// What a position answers, by what it is about.
pub(super) type Answers = BTreeMap<Metric, Value>;

/// Entries that stand for all tokens that a top-heavy row does not list.
///
/// They share the rest's mass evenly, in both rows: one way to complete the row. What
/// any other way can change is `truncation.rs`'s to say. Several entries keep two drafts
/// from the rest from being one token.
pub(super) const REST_ENTRIES: usize = 64;
