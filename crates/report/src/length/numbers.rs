//! How the report's numbers are written.

use crate::certainty::{self, all_digits, number};
use specgap_page::table::Entry;
use specgap_page::words::range;
use specgap_statistics::statistics::Estimate;

/// A number with so many decimals and a minus sign.
pub(crate) fn decimals(value: f64, places: usize) -> String {
    let text = format!("{value:.places$}");
    match text.strip_prefix('-') {
        Some(digits) if digits.chars().any(|c| c.is_ascii_digit() && c != '0') => {
            format!("−{digits}")
        }
        Some(digits) => digits.to_owned(),
        None => text,
    }
}

/// `mean ± the wider half of its interval`; the mean alone where there is no interval, and
/// `a to b` where only bounds are known.
pub(crate) fn plus_minus(estimate: &Estimate, places: usize) -> String {
    if let Some(ends) = estimate.open() {
        return range(ends, |value| decimals(value, places));
    }
    let mean = decimals(estimate.mean, places);
    match half(estimate) > 0.0 {
        true => format!("{mean} ± {}", decimals(half(estimate), places)),
        false => mean,
    }
}

/// How far its interval goes to the wider side.
pub(crate) fn half(estimate: &Estimate) -> f64 {
    let [low, high] = estimate.ci95;
    (high - estimate.mean).max(estimate.mean - low)
}

/// A mean with its interval, over its bounds where tokens are not listed.
pub(crate) fn entry(estimate: &Estimate, places: usize) -> Entry {
    let beside = estimate.truncation.filter(|_| estimate.open().is_none());
    let bounds = |[low, high]: [f64; 2]| {
        format!("in [{}, {}]", decimals(low, places), decimals(high, places))
    };
    Entry {
        under: beside.map(bounds),
        number: Some(number(estimate)),
        ..Entry::titled(plus_minus(estimate, places), all_digits(estimate))
    }
}

/// A rate in percent with its interval, over its bounds where tokens are not listed.
pub(crate) fn rate_entry(estimate: &Estimate) -> Entry {
    certainty::entry(estimate, "estimate")
}

/// Makes that entry, or a dash.
pub(crate) fn maybe(estimate: Option<&Estimate>, places: usize) -> Entry {
    estimate.map_or_else(Entry::none, |estimate| entry(estimate, places))
}

/// A bound: `≥ 0.12`; of a number that only bounds are known of, the one that says as much. It is
/// not the number itself.
pub(crate) fn bounded(sign: &str, estimate: Option<&Estimate>, places: usize) -> Entry {
    estimate.map_or_else(Entry::none, |estimate| {
        let entry = entry(estimate, places);
        let end = |[low, high]: [f64; 2]| decimals(if sign == "≥" { low } else { high }, places);
        Entry {
            text: format!("{sign} {}", estimate.open().map_or(entry.text, end)),
            number: None,
            ..entry
        }
    })
}

/// A cost ratio, as short as it is.
pub(crate) fn cost(ratio: f64) -> String {
    let short = format!("{ratio:.3}");
    let short = short.trim_end_matches('0').trim_end_matches('.');
    match short.is_empty() || short == "0" {
        true => format!("{ratio:.1e}"),
        false => short.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_and_signed() {
        assert_eq!(decimals(-0.0004, 2), "0.00");
        assert_eq!(decimals(-0.314, 2), "−0.31");
        assert_eq!(
            (cost(0.1), cost(0.0234), cost(1.0)),
            ("0.1".into(), "0.023".into(), "1".into())
        );
        assert_eq!(cost(0.00012), "1.2e-4");
        let estimate = Estimate {
            mean: 1.5,
            ci95: [1.4, 1.6],
            truncation: Some([1.45, 1.52]),
            between: None,
        };
        assert_eq!(plus_minus(&estimate, 2), "1.50 ± 0.10");
        let entry = bounded("≥", Some(&estimate), 2);
        assert_eq!(entry.text, "≥ 1.50 ± 0.10");
        assert_eq!(entry.under.as_deref(), Some("in [1.45, 1.52]"));
        let open = Estimate {
            truncation: Some([1.2, 1.7]),
            ..estimate
        };
        assert_eq!(plus_minus(&open, 2), "1.20 to 1.70");
        assert_eq!(super::entry(&open, 2).under, None);
        let bounds = ["≥", "≤"].map(|sign| bounded(sign, Some(&open), 2).text);
        assert_eq!(bounds, ["≥ 1.20", "≤ 1.70"]);
        assert!(maybe(None, 2).is_none());
    }
}
