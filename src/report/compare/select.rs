//! Finding one's way in a comparison.

use crate::gap::LogComparison;

/// The temperatures of the rates, in their order.
pub(super) fn temperatures(comparison: &LogComparison) -> Vec<f64> {
    let mut all: Vec<f64> = Vec::new();
    for rate in &comparison.rates {
        if !all.contains(&rate.temperature) {
            all.push(rate.temperature);
        }
    }
    all
}

/// The most drafts up to 3, or else the fewest.
pub(super) fn headline_drafts(comparison: &LogComparison) -> Option<usize> {
    // What engines do with one draft is there whatever was asked for, without an optimum.
    let asked = || {
        comparison
            .rates
            .iter()
            .filter(|rate| rate.what == "optimum")
    };
    let all = || asked().filter_map(|rate| rate.drafts);
    all().filter(|&n| n <= 3).max().or(all().min())
}
