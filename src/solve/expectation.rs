//! What a problem file expects, against what was found.

use crate::certify;
use crate::distribution::{Rational, format_rational};
use crate::known::Known;
use crate::problem::{Expected, Problem};
use num_traits::{Signed, Zero};

/// Tolerance where a file gives none.
const DEFAULT_TOLERANCE: f64 = 1e-9;

/// An expected alpha* against the certified one.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectationCheck {
    /// What the file expects, as a fraction or a decimal.
    pub expected: String,
    /// Where the expectation comes from.
    pub source: Option<String>,
    /// Largest difference allowed; 0 asks for equal fractions.
    pub tolerance: f64,
    /// What is wrong, if anything.
    pub complaint: Option<String>,
}

pub(super) fn check(
    expected: &Expected,
    rate: &Known,
    problem: &Problem,
) -> Option<ExpectationCheck> {
    let wanted = expected.optimal_acceptance_rate.as_ref()?;
    let tolerance = expected
        .tolerance
        .as_ref()
        .map_or_else(default_tolerance, |tolerance| tolerance.exact.clone());
    let allowed = crate::distribution::round_nearest(&tolerance);
    let text = format_rational(&wanted.exact);
    let shown = if text.len() <= 40 {
        text
    } else {
        wanted.value.to_string()
    };
    let complaint = match rate.rational() {
        Some(exact) => {
            let difference = (exact - &wanted.exact).abs();
            (difference > tolerance).then(|| {
                format!(
                    "expected {shown} within {allowed:e}; found {}, off by {:.3e}",
                    super::describe(rate),
                    certify::distance(wanted.value, exact)
                )
            })
        }
        None if tolerance.is_zero() => Some(format!(
            "expected exactly {shown}; {} tokens and {} drafts are too many for exact arithmetic, \
             and the answer is only enclosed in [{}, {}]",
            problem.vocab(),
            problem.drafts(),
            rate.lower(),
            rate.upper()
        )),
        None => {
            let (low, high) = (wanted.value - allowed, wanted.value + allowed);
            (rate.upper() < low || rate.lower() > high).then(|| {
                format!(
                    "expected {shown} within {allowed:e}; found {}",
                    super::describe(rate)
                )
            })
        }
    };
    let source = expected.source.clone();
    Some(ExpectationCheck {
        expected: shown,
        source,
        tolerance: allowed,
        complaint,
    })
}

fn default_tolerance() -> Rational {
    crate::distribution::exact_value(DEFAULT_TOLERANCE).unwrap_or_default()
}
