//! What a problem file expects of a single-step problem.

use specgap_number::distribution::Rational;
use std::collections::BTreeMap;

/// A value that a problem file expects: exact, as a rational, and rounded.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedValue {
    /// The value, exactly as written.
    pub exact: Rational,
    /// The value, rounded.
    pub value: f64,
}

/// What a problem file expects of a single-step problem.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expected {
    /// alpha*.
    pub optimal_acceptance_rate: Option<ExpectedValue>,
    /// Membership acceptance by the verifier's name, as it stands in the file: which
    /// verifiers there are, a problem does not know.
    pub acceptance_rate: BTreeMap<String, ExpectedValue>,
    /// Largest absolute difference; 0 asks for equality of exact rationals.
    pub tolerance: Option<ExpectedValue>,
    /// Where the values come from.
    pub source: Option<String>,
}
