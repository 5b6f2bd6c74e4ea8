//! How the report's numbers are written.

use crate::gap::Estimate;
use crate::report::table::Entry;

/// A number with so many decimals and a minus sign.
pub(in crate::report) fn decimals(value: f64, places: usize) -> String {
    let text = format!("{value:.places$}");
    match text.strip_prefix('-') {
        Some(digits) if digits.chars().any(|c| c.is_ascii_digit() && c != '0') => {
            format!("−{digits}")
        }
        Some(digits) => digits.to_owned(),
        None => text,
    }
}

/// `mean ± half the width of its interval`; the mean alone where there is no interval.
pub(in crate::report) fn plus_minus(estimate: &Estimate, places: usize) -> String {
    let mean = decimals(estimate.mean, places);
    let [low, high] = estimate.ci95;
    if high > low {
        format!("{mean} ± {}", decimals((high - low) / 2.0, places))
    } else {
        mean
    }
}

/// A mean with its interval, over its bounds where tokens are not listed.
pub(in crate::report) fn entry(estimate: &Estimate, places: usize) -> Entry {
    let [low, high] = estimate.ci95;
    let mut digits = format!("{}, 95% interval [{low}, {high}]", estimate.mean);
    let under = estimate.truncation.map(|[low, high]| {
        digits.push_str(&format!(", full rows within [{low}, {high}]"));
        format!("in [{}, {}]", decimals(low, places), decimals(high, places))
    });
    Entry {
        under,
        ..Entry::titled(plus_minus(estimate, places), digits)
    }
}

/// The same, or a dash.
pub(in crate::report) fn maybe(estimate: Option<&Estimate>, places: usize) -> Entry {
    estimate.map_or_else(Entry::none, |estimate| entry(estimate, places))
}

/// A bound: `≥ 0.12`.
pub(in crate::report) fn bounded(sign: &str, estimate: Option<&Estimate>, places: usize) -> Entry {
    estimate.map_or_else(Entry::none, |estimate| {
        let entry = entry(estimate, places);
        Entry {
            text: format!("{sign} {}", entry.text),
            ..entry
        }
    })
}

/// A cost ratio, as short as it is.
pub(in crate::report) fn cost(ratio: f64) -> String {
    let short = format!("{ratio:.3}");
    let short = short.trim_end_matches('0').trim_end_matches('.');
    if short.is_empty() || short == "0" {
        format!("{ratio:.1e}")
    } else {
        short.to_owned()
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
            truncation: Some([1.45, 1.7]),
        };
        assert_eq!(plus_minus(&estimate, 2), "1.50 ± 0.10");
        let entry = bounded("≥", Some(&estimate), 2);
        assert_eq!(entry.text, "≥ 1.50 ± 0.10");
        assert_eq!(entry.under.as_deref(), Some("in [1.45, 1.70]"));
        assert!(maybe(None, 2).is_none());
    }
}
