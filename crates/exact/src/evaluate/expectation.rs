//! What a problem file expects, against what was found.

use super::agreement::{LONGEST_FRACTION, describe};
use super::tolerances::Standard;
use num_traits::{Signed, Zero};
use specgap_core::problem::{Expected, ExpectedValue};
use specgap_number::distribution::{Rational, exact_value, format_rational, round_nearest};
use specgap_number::known::{Kind, Known};

/// An expected number against the one found.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// What the file expects, as a fraction or a decimal.
    pub expected: String,
    /// What the file expects, rounded to the nearest `f64`.
    pub value: f64,
    /// Largest difference allowed; 0 asks for equal fractions.
    pub tolerance: f64,
    /// |found - expected| of an exact number; of others how far the expected value lies
    /// outside the bounds found, a plain float being its own bounds. Infinite if nothing
    /// was found.
    pub difference: f64,
    /// Where the file has it from.
    pub source: Option<String>,
    /// What is wrong, if anything.
    pub complaint: Option<String>,
}

/// A number that a problem file expects.
pub(super) struct Wanted<'a> {
    /// Its field, below `expected`.
    pub(super) field: &'a str,
    /// The number.
    pub(super) value: &'a ExpectedValue,
    /// Tolerance, if the file states one.
    pub(super) tolerance: Option<&'a ExpectedValue>,
    /// Where it comes from.
    pub(super) source: Option<&'a str>,
    /// How it is compared.
    pub(super) standard: Standard,
}

impl<'a> Wanted<'a> {
    /// A number of a problem's expectations.
    pub(super) fn of(
        expected: &'a Expected,
        field: &'a str,
        value: &'a ExpectedValue,
        standard: Standard,
    ) -> Self {
        let (tolerance, source) = (expected.tolerance.as_ref(), expected.source.as_deref());
        Self {
            field,
            value,
            tolerance,
            source,
            standard,
        }
    }

    /// Compares it with what was found, if anything was. `exactly` is false for a number
    /// whose fraction is not that of the ideal one.
    pub(super) fn against(&self, found: Option<&Known>, exactly: bool) -> Expectation {
        let Self {
            field,
            value: wanted,
            tolerance,
            source,
            standard,
        } = *self;
        let exact_tolerance = tolerance.map_or_else(
            || exact_value(standard.default).unwrap_or_else(Rational::zero),
            |tolerance| tolerance.exact.clone(),
        );
        let mut allowed = round_nearest(&exact_tolerance);
        let expected = written(wanted);
        let fraction = found.and_then(Known::rational).filter(|_| exactly);
        let (difference, wrong) = match (found, fraction) {
            (None, _) => (f64::INFINITY, Some("but it was not computed".to_owned())),
            (Some(found), Some(exact)) => {
                let difference = (exact - &wanted.exact).abs();
                let wrong = (difference > exact_tolerance).then(|| fault(found, allowed));
                (round_nearest(&difference), wrong)
            }
            (Some(found), None) => {
                let outside = outside(found, wanted.value);
                let wrong = match standard.floor {
                    None if exact_tolerance.is_zero() => Some(format!(
                        "with tolerance 0; the problem is too large for exact arithmetic, found {}",
                        describe(found)
                    )),
                    floor => {
                        allowed = allowed.max(floor.unwrap_or(0.0));
                        // False for NaN.
                        let is_within = outside <= allowed;
                        (!is_within).then(|| fault(found, allowed))
                    }
                };
                (outside, wrong)
            }
        };
        Expectation {
            source: source.map(str::to_owned),
            complaint: wrong.map(|wrong| {
                let off = if difference > 0.0 && difference.is_finite() {
                    format!(", off by {difference:.3e}")
                } else {
                    String::new()
                };
                format!("expected.{field} is {expected}, {wrong}{off}")
            }),
            expected,
            value: wanted.value,
            tolerance: allowed,
            difference,
        }
    }
}

impl Expectation {
    /// Tells whether what was found is what was expected.
    pub fn is_ok(&self) -> bool {
        self.complaint.is_none()
    }
}

/// An expected value as a fraction; as a decimal where that is shorter and says the
/// same, or where the fraction is long.
fn written(wanted: &ExpectedValue) -> String {
    let (fraction, decimal) = (format_rational(&wanted.exact), wanted.value.to_string());
    let same = exact_value(wanted.value).as_ref() == Some(&wanted.exact);
    if fraction.len() > LONGEST_FRACTION || (same && decimal.len() < fraction.len()) {
        decimal
    } else {
        fraction
    }
}

fn fault(found: &Known, allowed: f64) -> String {
    let found = describe(found);
    if allowed == 0.0 {
        format!("found {found}; they must be equal")
    } else {
        format!("found {found}; tolerance {allowed:e}")
    }
}

/// Returns how far a value lies outside the bounds of a result.
fn outside(found: &Known, value: f64) -> f64 {
    if found.kind() == Kind::Float {
        return (found.value() - value).abs();
    }
    (found.lower() - value).max(value - found.upper()).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use specgap_number::distribution::parse_rational;

    fn value(text: &str) -> ExpectedValue {
        let exact = parse_rational(text).unwrap();
        ExpectedValue {
            value: round_nearest(&exact),
            exact,
        }
    }

    fn complaint(
        wanted: &str,
        tolerance: Option<&str>,
        standard: Standard,
        found: Known,
    ) -> Option<String> {
        let (wanted, tolerance) = (value(wanted), tolerance.map(value));
        let wanted = Wanted {
            field: "x",
            value: &wanted,
            tolerance: tolerance.as_ref(),
            source: None,
            standard,
        };
        wanted.against(Some(&found), true).complaint
    }

    #[test]
    fn defaults_are_those_of_the_table() {
        let near = || Known::float(0.5 + 5e-9);
        for (standard, fits) in [
            (Standard::OPTIMUM, false),
            (Standard::ACCEPTANCE, false),
            (Standard::BLOCK, true),
        ] {
            let found = complaint("1/2", None, standard, near());
            assert_eq!(found.is_none(), fits, "{standard:?}: {found:?}");
        }
    }

    #[test]
    fn fractions_are_compared_as_fractions() {
        let third = || Known::exact(parse_rational("1/3").unwrap());
        let standard = Standard::ACCEPTANCE;
        assert_eq!(complaint("1/3", Some("0"), standard, third()), None);
        let near = "333333333333333333333333333333/1000000000000000000000000000000";
        let found = complaint(near, Some("0"), standard, third()).unwrap();
        assert!(found.contains("found 1/3; they must be equal, off by 3.333e-31"));
        assert_eq!(complaint(near, None, standard, third()), None);
    }

    #[test]
    fn a_tolerance_of_0_of_a_number_that_is_not_exact() {
        let enclosed = || Known::rate_within(0.5, 1e-15);
        let refused = complaint("1/2", Some("0"), Standard::OPTIMUM, enclosed()).unwrap();
        assert!(
            refused.contains("too large for exact arithmetic"),
            "{refused}"
        );
        let standard = Standard::ACCEPTANCE;
        assert_eq!(complaint("1/2", Some("0"), standard, enclosed()), None);
        assert!(complaint("0.500000000002", Some("0"), standard, enclosed()).is_some());
        assert_eq!(
            complaint("0.5000000000009", Some("0"), standard, enclosed()),
            None
        );
    }

    #[test]
    fn what_was_not_computed_or_is_no_number_fails() {
        let wanted = Wanted {
            field: "x",
            value: &value("1/2"),
            tolerance: None,
            source: None,
            standard: Standard::BLOCK,
        };
        let missing = wanted.against(None, true).complaint;
        assert_eq!(
            missing.as_deref(),
            Some("expected.x is 1/2, but it was not computed")
        );
        assert!(complaint("1/2", None, Standard::BLOCK, Known::float(f64::NAN)).is_some());
    }
}
