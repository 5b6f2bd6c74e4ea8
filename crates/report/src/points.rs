//! Rates and differences of rates in percentage points.

use super::certainty::{decimals, with_decimals};
use specgap_page::words::range;
use specgap_statistics::statistics::Estimate;

/// A share in percent, with half the width of its interval; its bounds where only these are
/// known.
pub(super) fn share(estimate: &Estimate) -> String {
    format!("{}%", points(estimate))
}

/// What is less, with its interval, is not said in digits.
const LEAST: f64 = 1e-5;

/// A rate or a difference of rates in percentage points, with half the width of its interval;
/// its bounds where only these are known.
pub(super) fn points(estimate: &Estimate) -> String {
    if let Some(ends) = estimate.open() {
        return range(ends, in_points);
    }
    let [low, high] = estimate.ci95;
    let half = (high - low) / 2.0;
    if half > 0.0 && estimate.mean.abs() + half < LEAST {
        return format!("under {}", 100.0 * LEAST);
    }
    // As many digits as tell it from 0.
    let decimals = decimals(if half > 0.0 {
        half
    } else {
        estimate.mean.abs()
    });
    let number = |value: f64| format!("{:.decimals$}", 100.0 * value).replace('-', "−");
    match half > 0.0 {
        true => format!("{} ± {}", number(estimate.mean), number(half)),
        false => number(estimate.mean),
    }
}

/// A rate in percentage points, a number of nothing without a sign.
pub(super) fn in_points(value: f64) -> String {
    with_decimals(value, 1)
}

/// A share in percent.
pub(super) fn plain(value: f64) -> String {
    format!("{}%", in_points(value))
}

/// A share in percent, without its interval.
pub(super) fn bare(estimate: &Estimate) -> String {
    match estimate.open() {
        Some(ends) => format!("{}%", range(ends, in_points)),
        None => plain(estimate.mean),
    }
}

/// A number in percentage points, with its sign.
pub(super) fn signed(value: f64) -> String {
    let sign = if value > 0.0 { "+" } else { "" };
    format!("{sign}{}", in_points(value))
}

/// A difference in percentage points, with its sign.
pub(super) fn more(difference: &Estimate) -> String {
    match difference.open() {
        Some(ends) => range(ends, signed),
        None if difference.mean > LEAST => format!("+{}", points(difference)),
        None => points(difference),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_too_small_for_digits_is_said_to_be_under_them() {
        let of = |mean: f64, half: f64| Estimate {
            mean,
            ci95: [mean - half, mean + half],
            ..Estimate::default()
        };
        assert_eq!(points(&of(1.4e-8, 2.5e-8)), "under 0.001");
        assert_eq!(more(&of(1.4e-8, 2.5e-8)), "under 0.001");
        assert_eq!(points(&of(1.2e-5, 2e-6)), "0.001 ± 0.000");
        assert_eq!(points(&of(0.0, 0.0)), "0.0");
        assert_eq!(more(&of(0.031, 0.002)), "+3.1 ± 0.2");
    }
}
