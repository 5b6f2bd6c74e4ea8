//! How fractions are written.

use specgap_number::distribution::{Rational, exact_value, format_rational};
use specgap_number::known::Known;

/// Longest fraction that is written out in text.
const LONGEST_FRACTION: usize = 40;

/// A number as a fraction, or with the bounds that enclose it.
pub(super) fn in_full(number: &Known) -> String {
    match &number.rational() {
        Some(exact) => exact_or_decimal(exact, number.value()),
        None => format!(
            "{} enclosed in [{}, {}], width {:.1e}",
            number.value(),
            number.lower(),
            number.upper(),
            number.width()
        ),
    }
}

/// A fraction with its decimal, or the decimal alone where the fraction is long.
///
/// # Example
/// ```
/// use specgap_number::distribution::parse_rational;
/// use specgap_report::exact_or_decimal;
/// assert_eq!(exact_or_decimal(&parse_rational("15/16").unwrap(), 0.9375), "15/16 = 0.9375");
/// assert_eq!(exact_or_decimal(&parse_rational("1").unwrap(), 1.0), "1");
/// ```
pub fn exact_or_decimal(exact: &Rational, value: f64) -> String {
    let text = format_rational(exact);
    if exact.is_integer() {
        text
    } else if text.len() <= LONGEST_FRACTION {
        let relation = match exact_value(value).as_ref() == Some(exact) {
            true => "=",
            false => "≈",
        };
        format!("{text} {relation} {value}")
    } else {
        let digits = exact.denom().to_string().len();
        format!("{value} (exact, a fraction over a {digits}-digit number)")
    }
}
