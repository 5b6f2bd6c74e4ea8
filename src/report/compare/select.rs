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

/// The temperature that summaries speak of: the nearest to that at which the text of all logs
/// was sampled, or to 1 where that is not known.
pub(super) fn headline_temperature(comparison: &LogComparison) -> Option<f64> {
    let first = comparison.logs.first()?.sampled_at;
    let wanted = first.filter(|_| comparison.logs.iter().all(|log| log.sampled_at == first));
    let wanted = wanted.unwrap_or(1.0);
    let all = temperatures(comparison).into_iter();
    all.min_by(|a, b| (a - wanted).abs().total_cmp(&(b - wanted).abs()))
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
