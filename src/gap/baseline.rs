//! A report against an earlier one.

use super::{Estimate, GapReport};
use std::collections::HashMap;

/// A number of a report that left the interval which another report gives it.
#[derive(Clone, Debug, PartialEq)]
pub struct Regression {
    /// Which number.
    pub what: String,
    /// Its value now; `None` if it is not in the report any more.
    pub now: Option<f64>,
    /// Its interval in the baseline.
    pub interval: [f64; 2],
}

/// Compares the means of a report with the 95% intervals of a baseline: every
/// number of the baseline has to be there and within its interval, widened by
/// 1e-9 for rounding.
///
/// # Example
/// ```
/// use specgap::gap::{GapReport, regressions};
/// # fn check(now: &GapReport, before: &GapReport) {
/// for regression in regressions(now, before) {
///     println!("{}: {:?}", regression.what, regression.now);
/// }
/// # }
/// ```
pub fn regressions(now: &GapReport, baseline: &GapReport) -> Vec<Regression> {
    let current: HashMap<String, f64> = numbers(now)
        .into_iter()
        .map(|(what, estimate)| (what, estimate.mean))
        .collect();
    numbers(baseline)
        .into_iter()
        .filter_map(|(what, estimate)| {
            let [low, high] = estimate.ci95;
            let value = current.get(&what).copied();
            let within = value.is_some_and(|x| x >= low - 1e-9 && x <= high + 1e-9);
            (!within).then_some(Regression {
                what,
                now: value,
                interval: estimate.ci95,
            })
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
        all.push((
            format!("alpha* of {place}"),
            cell.optimal_acceptance_rate.estimate,
        ));
        for row in &cell.verifiers {
            all.push((
                format!("acceptance of {}, {place}", row.name),
                row.acceptance,
            ));
            all.push((format!("gap of {}, {place}", row.name), row.gap.estimate));
        }
    }
    all
}
