//! A report against an earlier one.

use super::GapReport;
use specgap_sampling::Cuts;
use specgap_statistics::Estimate;
use std::collections::HashMap;

/// A number of a baseline, beside what it is now.
#[derive(Clone, Debug, PartialEq)]
pub struct Against {
    /// Which number.
    pub what: String,
    /// Its value now; `None` if it is not in the report any more.
    pub now: Option<f64>,
    /// Where it is allowed to be.
    pub interval: [f64; 2],
    /// How far beside that, for rounding.
    pub slack: f64,
}

impl Against {
    /// Returns whether it is there, and within its interval.
    pub fn holds(&self) -> bool {
        let ([low, high], slack) = (self.interval, self.slack);
        self.now
            .is_some_and(|x| x >= low - slack && x <= high + slack)
    }
}

/// Every mean of a baseline beside that of a report. Without a tolerance it may be in the 95%
/// interval of the baseline, widened by 1e-9 for rounding. With one it may differ by so much:
/// reports of one log are the same to the bit, so that 1e-9 is enough for these.
///
/// # Example
/// ```
/// use specgap_measure::{GapReport, against};
/// # fn check(now: &GapReport, before: &GapReport) {
/// assert!(against(now, before, Some(1e-9)).iter().all(|number| number.holds()));
/// # }
/// ```
pub fn against(now: &GapReport, baseline: &GapReport, tolerance: Option<f64>) -> Vec<Against> {
    let current: HashMap<String, f64> = numbers(now)
        .into_iter()
        .map(|(what, estimate)| (what, estimate.mean))
        .collect();
    let (slack, allowed): (f64, fn(Estimate) -> [f64; 2]) = match tolerance {
        Some(tolerance) => (tolerance, |estimate| [estimate.mean; 2]),
        None => (1e-9, |estimate| estimate.ci95),
    };
    numbers(baseline)
        .into_iter()
        .map(|(what, estimate)| Against {
            now: current.get(&what).copied(),
            what,
            interval: allowed(estimate),
            slack,
        })
        .collect()
}

fn numbers(report: &GapReport) -> Vec<(String, Estimate)> {
    let mut all = Vec::new();
    for row in &report.overlap {
        all.push((format!("overlap at T = {}", row.temperature), row.estimate));
    }
    for cell in &report.cells {
        let place = format!(
            "{} at T = {}, n = {}",
            cell.scheme, cell.temperature, cell.drafts
        );
        let optimum = cell.optimal_acceptance_rate.estimate;
        all.push((format!("alpha* of {place}"), optimum));
        for row in &cell.verifiers {
            let of = |what: &str| format!("{what} of {}, {place}", row.name);
            all.push((of("acceptance"), row.acceptance));
            all.push((of("gap"), row.gap.estimate));
        }
    }
    for row in &report.one_draft {
        let mut of = |what, estimate| {
            let what = format!("acceptance of {what}, one draft at T = {}", row.temperature);
            all.push((what, estimate));
        };
        of("one-hot", row.one_hot);
        of("token", row.token);
        of("exact-match", row.exact_match);
    }
    for row in &report.redrafted {
        let cuts = Cuts {
            top_k: row.draft_top_k,
            top_p: row.draft_top_p,
            min_p: row.draft_min_p,
            cut_order: row.draft_cut_order,
        };
        let cuts = cuts.told().options();
        let (own, at) = (row.temperature, row.draft_temperature);
        let draft = format!("the draft at T = {at}{cuts}");
        let overlap = row.overlap.estimate;
        all.push((format!("overlap at T = {own}, {draft}"), overlap));
        for cell in &row.cells {
            let (scheme, n) = (&cell.scheme, cell.drafts);
            let place = format!("{scheme} at T = {own}, n = {n}, {draft}");
            let optimum = cell.optimal_acceptance_rate.estimate;
            all.push((format!("alpha* of {place}"), optimum));
            let rates = cell.verifiers.iter().map(|rule| {
                let what = format!("acceptance of {}, {place}", rule.name);
                (what, rule.acceptance.estimate)
            });
            all.extend(rates);
        }
    }
    all
}
