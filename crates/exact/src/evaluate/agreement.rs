//! Whether results for one number can all be right.

use super::tolerances::{FLOAT_TOLERANCE, WIDEST_CERTIFIED};
use serde::Serialize;
use specgap_core::certify;
use specgap_number::distribution::format_rational;
use specgap_number::known::{Kind, Known};

/// Longest fraction that complaints write out.
pub(super) const LONGEST_FRACTION: usize = 40;

/// Whether several methods agree.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Agreement {
    /// Largest |method - certified value| over the methods that count.
    pub max_abs_difference: f64,
    /// How many methods count.
    pub methods: usize,
    /// Whether they agree.
    pub ok: bool,
    /// What disagrees, in words; empty if nothing does.
    pub complaints: Vec<String>,
}

/// The ends between which a result claims the number to be: a plain float claims to be
/// within [`FLOAT_TOLERANCE`], a confidence interval claims nothing.
fn ends(result: &Known) -> (f64, f64) {
    let value = result.value();
    match result.kind() {
        Kind::Float => (value - FLOAT_TOLERANCE, value + FLOAT_TOLERANCE),
        Kind::MonteCarlo | Kind::Estimate => (f64::NEG_INFINITY, f64::INFINITY),
        Kind::Exact | Kind::Enclosed | Kind::Truncated => (result.lower(), result.upper()),
    }
}

/// Tells whether one number may be at most another. False for NaN.
pub(super) fn can_be_at_most(one: &Known, other: &Known) -> bool {
    match (one.rational(), other.rational()) {
        (Some(one), Some(other)) => one <= other,
        _ => ends(one).0 <= ends(other).1,
    }
}

/// Tells whether two results for one number can both be right: they meet, or are equal where
/// both are exact. False for NaN.
pub(super) fn can_both_hold(one: &Known, other: &Known) -> bool {
    can_be_at_most(one, other) && can_be_at_most(other, one)
}

impl Agreement {
    /// Compares results for one number, each with the name of its method, with the
    /// answer (`what` names it) and with one another, and adds what disagrees.
    pub(super) fn of<'a>(
        results: impl IntoIterator<Item = (String, &'a Known)>,
        what: &str,
        answer: &Known,
        mut complaints: Vec<String>,
    ) -> Self {
        let mut worst: f64 = 0.0;
        let mut counted = 0;
        // Results that agree with the answer, to be compared with one another.
        let mut agreeing: Vec<(String, &Known)> = Vec::new();
        for (name, result) in results {
            counted += 1;
            let difference = match answer.rational() {
                Some(exact) if result.rational().is_none() => {
                    certify::distance(result.value(), exact)
                }
                _ => (result.value() - answer.value()).abs(),
            };
            worst = worst.max(difference);
            if can_both_hold(result, answer) {
                agreeing.push((name, result));
            } else {
                let [found, is] = [result, answer].map(describe);
                complaints.push(format!("{name} finds {found}, {what} is {is}"));
            }
        }
        // A wide answer holds what excludes one another.
        for (index, (name, result)) in agreeing.iter().enumerate() {
            for (other, found) in &agreeing[..index] {
                if !can_both_hold(result, found) {
                    let [one, two] = [result, found].map(|known| describe(known));
                    complaints.push(format!("{name} finds {one}, {other} finds {two}"));
                }
            }
        }
        Self {
            max_abs_difference: worst,
            methods: counted,
            ok: complaints.is_empty(),
            complaints,
        }
    }
}

/// Complains of an enclosure that is wider than one that says anything.
pub(super) fn too_wide(answer: &Known) -> Option<String> {
    let is_wide = answer.width() > WIDEST_CERTIFIED && answer.kind() == Kind::Enclosed;
    let says = || {
        format!(
            "{}, which is wider than {WIDEST_CERTIFIED:e}",
            describe(answer)
        )
    };
    is_wide.then(says)
}

/// A value as people read it: the fraction where it is short.
pub(super) fn describe(result: &Known) -> String {
    let value = result.value();
    match result.rational().map(format_rational) {
        Some(text) if text.len() <= LONGEST_FRACTION => text,
        Some(_) => format!("{value} (exact)"),
        None if result.kind() == Kind::Float => value.to_string(),
        None => format!("{value} in [{}, {}]", result.lower(), result.upper()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use specgap_number::distribution::parse_rational;
    use specgap_number::known::Sampling;

    fn complaints(results: &[(&str, Known)], certified: &Known) -> Vec<String> {
        let results = results.iter().map(|(name, one)| ((*name).to_owned(), one));
        Agreement::of(results, "the certified value", certified, Vec::new()).complaints
    }

    #[test]
    fn methods_that_exclude_one_another_do_not_agree() {
        let certified = Known::rate(0.5, 0.0, 1.0);
        let all = ("max-flow", Known::rate(1.0, 1.0, 1.0));
        let none = ("submodular", Known::rate(0.0, 0.0, 0.0));
        let found = complaints(&[all, none], &certified);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("submodular finds 0 in [0, 0], max-flow finds 1 in [1, 1]"));
        // A certified value that says nothing.
        let wide = too_wide(&certified).unwrap();
        assert_eq!(wide, "0.5 in [0, 1], which is wider than 1e-6");
        assert_eq!(too_wide(&Known::rate(0.5, 0.5, 0.5 + 9e-7)), None);
    }

    #[test]
    fn a_linear_program_is_held_to_its_own_tolerance() {
        let certified = Known::rate(0.5, 0.5 - 4e-7, 0.5 + 4e-7);
        let flow = || ("max-flow", Known::rate(0.5, 0.5 - 1e-12, 0.5 + 1e-12));
        for (value, count) in [
            (0.5 + 0.9e-9, 0),
            // Within the certified enclosure, and not what the flow says.
            (0.5 + 1e-8, 1),
            // Out of both: said once.
            (0.5 + 4.1e-7, 1),
            (f64::NAN, 1),
        ] {
            let found = complaints(&[flow(), ("dual-lp", Known::float(value))], &certified);
            assert_eq!(found.len(), count, "{value}: {found:?}");
        }
    }

    #[test]
    fn exact_values_agree_when_they_are_equal() {
        let exact = |text: &str| Known::exact(parse_rational(text).unwrap());
        let near = "333333333333333333333333333333/1000000000000000000000000000000";
        for (text, count) in [("1/3", 0), (near, 1)] {
            let runs = [("max-flow", exact("1/3")), ("ratio-scan", exact(text))];
            let found = complaints(&runs, &exact("1/3"));
            assert_eq!(found.len(), count, "{found:?}");
        }
        assert!(can_be_at_most(&exact(near), &exact("1/3")));
        assert!(!can_be_at_most(&exact("1/3"), &exact(near)));
    }

    #[test]
    fn a_confidence_interval_refutes_nothing() {
        let sampling = Sampling {
            confidence: 0.99,
            samples: 10,
            seed: 1,
        };
        let mean = Known::monte_carlo(0.5, 0.4, 0.6, sampling);
        let third = Known::exact(parse_rational("1/3").unwrap());
        assert!(can_both_hold(&mean, &third) && can_be_at_most(&mean, &third));
    }
}
