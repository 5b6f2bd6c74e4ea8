//! How numbers are written.

use crate::distribution::{Rational, format_rational};

/// Longest fraction that is written out in text.
const LONGEST_FRACTION: usize = 40;

/// A fraction with its decimal, or the decimal alone where the fraction is long.
///
/// # Example
/// ```
/// use specgap::distribution::parse_rational;
/// use specgap::report::exact_or_decimal;
/// assert_eq!(exact_or_decimal(&parse_rational("15/16").unwrap(), 0.9375), "15/16 = 0.9375");
/// assert_eq!(exact_or_decimal(&parse_rational("1").unwrap(), 1.0), "1");
/// ```
pub fn exact_or_decimal(exact: &Rational, value: f64) -> String {
    let text = format_rational(exact);
    if exact.is_integer() {
        text
    } else if text.len() <= LONGEST_FRACTION {
        let relation = if crate::distribution::exact_value(value).as_ref() == Some(exact) {
            "="
        } else {
            "≈"
        };
        format!("{text} {relation} {value}")
    } else {
        let digits = exact.denom().to_string().len();
        format!("{value} (exact, a fraction over a {digits}-digit number)")
    }
}

/// Seconds with three significant digits and a fitting unit.
///
/// # Example
/// ```
/// use specgap::report::seconds;
/// assert_eq!(seconds(0.00001234), "12.3 µs");
/// assert_eq!(seconds(2.5), "2.50 s");
/// ```
pub fn seconds(value: f64) -> String {
    let (scaled, unit) = if value >= 1.0 {
        (value, "s")
    } else if value >= 1e-3 {
        (value * 1e3, "ms")
    } else {
        (value * 1e6, "µs")
    };
    let decimals = if scaled >= 100.0 {
        0
    } else if scaled >= 10.0 {
        1
    } else {
        2
    };
    format!("{scaled:.decimals$} {unit}")
}
