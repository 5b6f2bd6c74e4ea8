//! Finding one's way in a comparison.

use specgap_base::once::each_once;
use specgap_measure::{ComparedLog, ComparedRate, LogComparison};
use std::collections::BTreeSet;

/// The temperatures of the rates, in their order.
pub(super) fn temperatures(comparison: &LogComparison) -> Vec<f64> {
    each_once(comparison.rates.iter().map(|rate| rate.temperature))
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
    let asked = |rate: &&ComparedRate| rate.what == "optimum";
    let all = || {
        (comparison.rates.iter())
            .filter(asked)
            .filter_map(|rate| rate.drafts)
    };
    all().filter(|&n| n <= 3).max().or(all().min())
}

/// Returns what tables call the logs: the names of their drafts, where each has another one.
pub(super) fn names(comparison: &LogComparison) -> Vec<&str> {
    let drafts: BTreeSet<&str> = (comparison.logs.iter())
        .filter_map(|log| log.draft.as_deref())
        .collect();
    let told = drafts.len() == comparison.logs.len();
    fn name(log: &ComparedLog, told: bool) -> &str {
        match &log.draft {
            Some(draft) if told && !is_file_of(draft, &log.folder) => draft,
            _ => &log.folder,
        }
    }
    let logs = comparison.logs.iter();
    logs.map(|log| name(log, told)).collect()
}

/// Tells whether a draft is named as its log, but for an ending.
pub(super) fn is_file_of(draft: &str, folder: &str) -> bool {
    let stem = draft.rsplit_once('.').map_or(draft, |(stem, _)| stem);
    stem == folder
}
