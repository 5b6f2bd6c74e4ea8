//! A number and how well it is known.

use crate::distribution::{Rational, round_down, round_nearest, round_up};
use serde::{Deserialize, Serialize};
use std::fmt;

/// How well a number is known, in one word: what reports print beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A rational, computed in exact arithmetic.
    Exact,
    /// Between two bounds that account for rounding and for all that a
    /// computation left out.
    Enclosed,
    /// Computed on rows that list only some of the tokens. Bounds over all
    /// completions of the rows stand beside it.
    Truncated,
    /// A mean over simulated runs, with a confidence interval.
    MonteCarlo,
    /// A number whose error is estimated and not proven: an average over logged text, or
    /// what a rule says that another one was compared with.
    Estimate,
    /// Plain floating point: nothing is proven about its rounding.
    Float,
}

impl Kind {
    /// The word, as in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Enclosed => "enclosed",
            Self::Truncated => "truncated",
            Self::MonteCarlo => "monte-carlo",
            Self::Estimate => "estimate",
            Self::Float => "float",
        }
    }

    /// The kind of something made of a number of this kind and one of another:
    /// the one that promises less.
    ///
    /// ```
    /// use specgap_number::known::Kind;
    /// assert_eq!(Kind::Exact.joined(Kind::Enclosed), Kind::Enclosed);
    /// assert_eq!(Kind::MonteCarlo.joined(Kind::Enclosed), Kind::MonteCarlo);
    /// ```
    #[must_use]
    pub fn joined(self, other: Self) -> Self {
        self.max(other)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How a Monte Carlo mean came about.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "MonteCarlo")
)]
pub struct Sampling {
    /// Probability that the interval holds the true number, at least.
    pub confidence: f64,
    /// Number of independent runs.
    pub samples: u64,
    /// Seed of the generator (ChaCha8).
    pub seed: u64,
}

/// What a number rests on.
#[derive(Clone, Debug, PartialEq)]
enum Basis {
    Exact(Rational),
    Enclosed,
    Truncated(Completion),
    MonteCarlo(Sampling),
    Estimate,
    Float,
}

/// How well a truncated number's value is known as that of one completion.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Completion {
    lower: f64,
    upper: f64,
    sampling: Option<Sampling>,
}

/// A number and how well it is known: the only such type.
///
/// An exact number is a rational with the `f64` around it. An enclosed one lies
/// between two rigorous bounds. A truncated one is that of a row of which only some
/// entries are known: its bounds hold it whatever the others are, and its value is
/// that of one completion. A Monte Carlo mean has a confidence interval. A plain float
/// has no bounds: they are infinite.
///
/// ```
/// use specgap_number::distribution::ratio;
/// use specgap_number::known::{Kind, Known};
/// let half = Known::exact(ratio(&1u32.into(), &2u32.into()));
/// let third = Known::rate_within(1.0 / 3.0, 1e-16);
/// assert_eq!(half.kind(), Kind::Exact);
/// assert_eq!(half.width(), 0.0);
/// let difference = half.minus(&third);
/// assert_eq!(difference.kind(), Kind::Enclosed);
/// assert!(difference.lower() <= 1.0 / 6.0 && 1.0 / 6.0 <= difference.upper());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    value: f64,
    lower: f64,
    upper: f64,
    basis: Basis,
}

impl Known {
    /// An exact rational, with the `f64` around it.
    pub fn exact(value: Rational) -> Self {
        Self {
            value: round_nearest(&value),
            lower: round_down(&value),
            upper: round_up(&value),
            basis: Basis::Exact(value),
        }
    }

    /// A number between bounds. Bounds that are no numbers, or in the wrong
    /// order, bound nothing: they become infinite. The value is moved between them.
    pub fn enclosed(value: f64, lower: f64, upper: f64) -> Self {
        Self::between(value, lower, upper, f64::NEG_INFINITY, f64::INFINITY)
    }

    /// A number between bounds, cut to [0, 1], where probabilities live. Bounds
    /// that are no numbers bound nothing: they become 0 and 1.
    pub fn rate(value: f64, lower: f64, upper: f64) -> Self {
        Self::between(
            value,
            lower.clamp(0.0, 1.0),
            upper.clamp(0.0, 1.0),
            0.0,
            1.0,
        )
    }

    /// A probability with a bound on its absolute error, cut to [0, 1].
    pub fn rate_within(value: f64, error: f64) -> Self {
        Self::rate(value, value - error, value + error)
    }

    /// A number that depends on more than is known, such as one of a row of which only
    /// some entries are listed. `completion` is what it is for one choice of the rest, and
    /// it is within the bounds for every choice. Bounds are widened to hold the value;
    /// those that are no numbers bound nothing and become infinite.
    ///
    /// ```
    /// use specgap_number::known::{Kind, Known};
    /// let even = Known::rate_within(0.5, 1e-12);
    /// let number = Known::truncated(&even, [0.48, 0.53]);
    /// assert_eq!(number.kind(), Kind::Truncated);
    /// assert_eq!((number.lower(), number.value(), number.upper()), (0.48, 0.5, 0.53));
    /// assert_eq!(number.completion(), even);
    /// ```
    pub fn truncated(completion: &Self, [lower, upper]: [f64; 2]) -> Self {
        let value = completion.value;
        let (lower, upper) = if lower <= upper {
            (lower.min(value), upper.max(value))
        } else {
            (f64::NEG_INFINITY, f64::INFINITY)
        };
        let basis = match &completion.basis {
            // What is not proven of the one is not proven of all.
            Basis::Estimate => Basis::Estimate,
            _ => {
                let known = completion.completion();
                Basis::Truncated(Completion {
                    lower: known.lower,
                    upper: known.upper,
                    sampling: known.sampling().copied(),
                })
            }
        };
        Self {
            value,
            lower,
            upper,
            basis,
        }
    }

    /// A mean over simulated runs with the ends of its confidence interval.
    pub fn monte_carlo(value: f64, lower: f64, upper: f64, sampling: Sampling) -> Self {
        Self {
            value,
            lower,
            upper,
            basis: Basis::MonteCarlo(sampling),
        }
    }

    /// A rate in [0, 1] with an error that is estimated: its bounds are where it is thought
    /// to be, and prove nothing.
    ///
    /// ```
    /// use specgap_number::known::{Kind, Known};
    /// let rate = Known::estimate(0.5, 1e-7);
    /// assert_eq!(rate.kind(), Kind::Estimate);
    /// assert!(rate.may_equal(&Known::rate_within(0.51, 1e-9)));
    /// ```
    pub fn estimate(value: f64, error: f64) -> Self {
        Self::rate_within(value, error).estimated()
    }

    /// The same value and bounds, as an estimate: they are where it is thought to be.
    pub fn estimated(self) -> Self {
        Self {
            basis: Basis::Estimate,
            ..self
        }
    }

    /// A plain float, of which nothing is proven.
    pub fn float(value: f64) -> Self {
        Self {
            value,
            lower: f64::NEG_INFINITY,
            upper: f64::INFINITY,
            basis: Basis::Float,
        }
    }

    fn between(value: f64, lower: f64, upper: f64, least: f64, most: f64) -> Self {
        // False for NaN.
        let (lower, upper) = if lower <= upper {
            (lower, upper)
        } else {
            (least, most)
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
            basis: Basis::Enclosed,
        }
    }

    /// The best estimate; the nearest `f64` of an exact number.
    pub fn value(&self) -> f64 {
        self.value
    }

    /// Rigorous lower bound; of a Monte Carlo mean, the interval's lower end; of an
    /// estimate, the value less its estimated error; of a truncated number, a bound on it
    /// whatever is not listed.
    pub fn lower(&self) -> f64 {
        self.lower
    }

    /// Rigorous upper bound; of a Monte Carlo mean, the interval's upper end; of an
    /// estimate, the value and its estimated error; of a truncated number, a bound on it
    /// whatever is not listed.
    pub fn upper(&self) -> f64 {
        self.upper
    }

    /// upper - lower; 0 if exact.
    pub fn width(&self) -> f64 {
        match self.basis {
            Basis::Exact(_) => 0.0,
            _ => self.upper - self.lower,
        }
    }

    /// The exact value, where it is known.
    pub fn rational(&self) -> Option<&Rational> {
        match &self.basis {
            Basis::Exact(value) => Some(value),
            _ => None,
        }
    }

    /// Returns how a Monte Carlo mean came about, of a truncated number too.
    pub fn sampling(&self) -> Option<&Sampling> {
        match &self.basis {
            Basis::MonteCarlo(sampling) => Some(sampling),
            Basis::Truncated(completion) => completion.sampling.as_ref(),
            _ => None,
        }
    }

    /// Of a truncated number, the one completion's, with bounds on that alone; the number
    /// itself if it is not truncated.
    #[must_use]
    pub fn completion(&self) -> Self {
        match &self.basis {
            Basis::Truncated(completion) => Self {
                value: self.value,
                lower: completion.lower,
                upper: completion.upper,
                basis: completion
                    .sampling
                    .map_or(Basis::Enclosed, Basis::MonteCarlo),
            },
            _ => self.clone(),
        }
    }

    /// Returns how well it is known, in one word.
    pub fn kind(&self) -> Kind {
        match self.basis {
            Basis::Exact(_) => Kind::Exact,
            Basis::Enclosed => Kind::Enclosed,
            Basis::Truncated(_) => Kind::Truncated,
            Basis::MonteCarlo(_) => Kind::MonteCarlo,
            Basis::Estimate => Kind::Estimate,
            Basis::Float => Kind::Float,
        }
    }

    /// These bounds without the claim to be exact.
    #[must_use]
    pub fn as_enclosure(&self) -> Self {
        Self {
            basis: match &self.basis {
                Basis::Exact(_) => Basis::Enclosed,
                other => other.clone(),
            },
            ..self.clone()
        }
    }

    /// The number said to be `value`, which its bounds are widened to hold.
    #[must_use]
    pub fn taken_as(&self, value: f64) -> Self {
        let basis = match self.as_enclosure().basis {
            Basis::Truncated(completion) => Basis::Truncated(Completion {
                lower: completion.lower.min(value),
                upper: completion.upper.max(value),
                ..completion
            }),
            other => other,
        };
        Self {
            value,
            lower: self.lower.min(value),
            upper: self.upper.max(value),
            basis,
        }
    }

    /// self - other. Exact if both are; bounds are subtracted with the rounding of the
    /// subtraction left to them, which is half an ulp at most.
    ///
    /// Where one is a Monte Carlo mean, so is the difference; where both are, its
    /// confidence is that of both intervals holding at once. Where one is truncated, so is
    /// the difference, of which it is not used that both depend on the same unknowns.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        let basis = match (&self.basis, &other.basis) {
            (Basis::Exact(a), Basis::Exact(b)) => return Self::exact(a - b),
            (Basis::Float, _) | (_, Basis::Float) => Basis::Float,
            (Basis::Truncated(_), _) | (_, Basis::Truncated(_)) => {
                let difference = self.completion().minus(&other.completion());
                let bounds = [self.lower - other.upper, self.upper - other.lower];
                return Self::truncated(&difference, bounds);
            }
            (Basis::Estimate, _) | (_, Basis::Estimate) => Basis::Estimate,
            (Basis::MonteCarlo(a), Basis::MonteCarlo(b)) => Basis::MonteCarlo(Sampling {
                confidence: (a.confidence + b.confidence - 1.0).max(0.0),
                samples: a.samples.min(b.samples),
                seed: a.seed,
            }),
            (Basis::MonteCarlo(one), _) | (_, Basis::MonteCarlo(one)) => Basis::MonteCarlo(*one),
            _ => Basis::Enclosed,
        };
        Self {
            value: self.value - other.value,
            lower: self.lower - other.upper,
            upper: self.upper - other.lower,
            basis,
        }
    }

    /// Tells whether both can be the same number. A confidence interval, an estimate and a plain
    /// float prove nothing either way.
    pub fn may_equal(&self, other: &Self) -> bool {
        match (&self.basis, &other.basis) {
            (Basis::Exact(a), Basis::Exact(b)) => a == b,
            (Basis::MonteCarlo(_) | Basis::Estimate | Basis::Float, _)
            | (_, Basis::MonteCarlo(_) | Basis::Estimate | Basis::Float) => true,
            _ => self.lower <= other.upper && other.lower <= self.upper,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::ratio;

    const SAMPLING: Sampling = Sampling {
        confidence: 0.99,
        samples: 10,
        seed: 1,
    };

    fn third() -> Known {
        Known::exact(ratio(&1u32.into(), &3u32.into()))
    }

    #[test]
    fn bounds_that_are_no_numbers_bound_nothing() {
        for (lower, upper) in [(f64::NAN, 0.5), (0.2, f64::NAN), (0.6, 0.4)] {
            let rate = Known::rate(0.3, lower, upper);
            assert_eq!((rate.lower(), rate.upper()), (0.0, 1.0));
            let number = Known::enclosed(0.3, lower, upper);
            assert_eq!(number.lower(), f64::NEG_INFINITY);
            assert_eq!(number.upper(), f64::INFINITY);
        }
        assert_eq!(Known::rate(f64::NAN, 0.2, 0.4).value(), 0.30000000000000004);
    }

    #[test]
    fn an_exact_number_lies_between_neighbours() {
        let third = third();
        assert!(third.lower() < third.upper());
        assert_eq!(third.width(), 0.0);
        assert!(third.may_equal(&third.as_enclosure()));
        assert!(!third.may_equal(&Known::exact(ratio(&2u32.into(), &3u32.into()))));
        assert!(!third.may_equal(&Known::rate_within(0.34, 1e-3)));
    }

    #[test]
    fn a_difference_is_known_as_the_worse_of_two() {
        let mean = Known::monte_carlo(0.5, 0.4, 0.6, SAMPLING);
        let difference = mean.minus(&third());
        assert_eq!(difference.kind(), Kind::MonteCarlo);
        assert_eq!(difference.sampling(), Some(&SAMPLING));
        let twice = mean.minus(&mean);
        assert_eq!(twice.sampling().unwrap().confidence, 0.98);
        assert!((twice.width() - 0.4).abs() < 1e-15);
        assert_eq!(
            third().minus(&third()).rational(),
            Some(&(ratio(&0u32.into(), &1u32.into())))
        );
        assert_eq!(third().minus(&Known::float(0.1)).kind(), Kind::Float);
    }

    #[test]
    fn a_truncated_number_keeps_its_two_uncertainties_apart() {
        let even = Known::monte_carlo(0.5, 0.49, 0.52, SAMPLING);
        let wide = Known::truncated(&even, [0.4, 0.7]);
        assert_eq!(wide.kind(), Kind::Truncated);
        assert_eq!((wide.lower(), wide.upper()), (0.4, 0.7));
        assert_eq!(wide.completion(), even);
        assert_eq!(wide.sampling(), Some(&SAMPLING));
        // Never exact: the bounds are about more than the completion.
        let cut = Known::truncated(&third(), [0.3, 0.4]);
        assert_eq!(cut.rational(), None);
        assert_eq!(cut.completion().kind(), Kind::Enclosed);
        // Bounds of bounds: the completion is still the first one.
        let again = Known::truncated(&wide, [0.45, 0.6]);
        assert_eq!(again.completion(), even);
        let nothing = Known::truncated(&even, [f64::NAN, 0.6]);
        assert_eq!(nothing.lower(), f64::NEG_INFINITY);
        let difference = wide.minus(&third());
        assert_eq!(difference.kind(), Kind::Truncated);
        assert!((difference.width() - 0.3).abs() < 1e-15);
        assert!((difference.completion().width() - 0.03).abs() < 1e-15);
        assert!(wide.may_equal(&Known::rate_within(0.65, 1e-3)));
        assert!(!wide.may_equal(&Known::rate_within(0.75, 1e-3)));
    }

    #[test]
    fn a_number_taken_as_another_holds_both() {
        let small = Known::enclosed(2e-13, 1e-13, 3e-13);
        let none = small.taken_as(0.0);
        assert_eq!(
            (none.value(), none.lower(), none.upper()),
            (0.0, 0.0, 3e-13)
        );
        assert_eq!(third().taken_as(0.3).kind(), Kind::Enclosed);
        let cut = Known::truncated(&small, [0.0, 0.1]).taken_as(0.0);
        assert_eq!(cut.completion(), none);
    }

    #[test]
    fn kinds_are_written_as_in_json() {
        for kind in [
            Kind::Exact,
            Kind::Enclosed,
            Kind::Truncated,
            Kind::MonteCarlo,
            Kind::Estimate,
            Kind::Float,
        ] {
            let json = serde_json::to_value(kind).unwrap();
            assert_eq!(json, kind.as_str());
        }
    }
}
