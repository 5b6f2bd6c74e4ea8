//! The drafts of a ladder in their order, and how to find their rates.

use super::super::select::{headline_drafts, headline_temperature, names};
use crate::gap::{ComparedEstimate, ComparedRate, LogComparison};
use crate::verifier::VerifierName;

/// Logs below which there is no ladder.
const FEWEST: usize = 3;
/// A gap below this counts as none.
pub(super) const NO_GAP: f64 = 1e-6;

/// What engines do with one draft: scheme, verifier, words.
pub(super) const ONE_DRAFT: [[&str; 3]; 3] = [
    ["top", "exact-match", "one-hot"],
    ["with-replacement", "rrs", "token"],
    ["with-replacement", "exact-match", "exact-match"],
];

/// A comparison whose logs are drafts of one text.
pub(super) struct Ladder<'a> {
    pub(super) comparison: &'a LogComparison,
    /// The logs from the worst draft to the best, by the overlap at `at`.
    pub(super) order: Vec<usize>,
    /// The temperature of the first figures.
    pub(super) at: f64,
    /// The number of drafts of the first figures.
    pub(super) n: usize,
}

impl<'a> Ladder<'a> {
    pub(super) fn of(comparison: &'a LogComparison) -> Option<Self> {
        if !comparison.paired || comparison.logs.len() < FEWEST {
            return None;
        }
        let at = headline_temperature(comparison)?;
        let n = headline_drafts(comparison)?;
        let overlap = overlap(comparison, at)?;
        let mut order: Vec<usize> = (0..comparison.logs.len()).collect();
        // An order of rows and points: by the middle where only bounds are known.
        let of = |log: usize| estimate(overlap, log).map_or(0.0, |one| one.estimate.mean);
        order.sort_by(|&a, &b| of(a).total_cmp(&of(b)));
        Some(Self {
            comparison,
            order,
            at,
            n,
        })
    }

    /// The name that a log goes by.
    pub(super) fn name(&self, log: usize) -> &'a str {
        let log = self.comparison.logs.get(log);
        log.map_or("", |log| log.folder.as_str())
    }

    /// The name that tables call it by.
    pub(super) fn draft(&self, log: usize) -> &'a str {
        names(self.comparison).get(log).copied().unwrap_or_default()
    }

    /// Optima and acceptances of n drafts at a temperature, in their order. What the rule
    /// that does not look at the drafts gets is left to the tables of all rates.
    pub(super) fn rates(&self, at: f64, n: usize) -> Vec<&'a ComparedRate> {
        rates_of(self.comparison, at, n)
            .filter(|rate| rate.verifier.as_deref() != Some(VerifierName::EXACT_MATCH.as_str()))
            .collect()
    }
}

pub(super) fn overlap(comparison: &LogComparison, at: f64) -> Option<&ComparedRate> {
    let mut rates = comparison.rates.iter();
    rates.find(|rate| rate.what == "overlap" && rate.temperature == at)
}

/// A rate of a log, where it is measured.
pub(super) fn mean(rate: &ComparedRate, log: usize) -> Option<f64> {
    let one = &estimate(rate, log)?.estimate;
    one.open().is_none().then_some(one.mean)
}

pub(super) fn estimate(rate: &ComparedRate, log: usize) -> Option<&ComparedEstimate> {
    rate.estimates.get(log)?.as_ref()
}

/// Optima and acceptances of n drafts at a temperature, in their order.
pub(super) fn rates_of(
    comparison: &LogComparison,
    at: f64,
    n: usize,
) -> impl Iterator<Item = &ComparedRate> {
    let here = move |rate: &&ComparedRate| rate.temperature == at && rate.drafts == Some(n);
    comparison.rates.iter().filter(here)
}

/// One of the three ways of engines with one draft.
pub(super) fn way<'a>(
    comparison: &'a LogComparison,
    at: f64,
    [scheme, verifier, _]: [&str; 3],
) -> Option<&'a ComparedRate> {
    rates_of(comparison, at, 1).find(|rate| {
        rate.scheme.as_deref() == Some(scheme) && rate.verifier.as_deref() == Some(verifier)
    })
}

/// Whether a verifier's rate is its optimum in all logs.
pub(super) fn attains(rates: &[&ComparedRate], rate: &ComparedRate, order: &[usize]) -> bool {
    let best = rates
        .iter()
        .find(|best| best.verifier.is_none() && best.scheme == rate.scheme);
    best.is_some_and(|best| {
        order
            .iter()
            .all(|&log| match (mean(best, log), mean(rate, log)) {
                (Some(best), Some(own)) => (best - own).abs() < NO_GAP,
                _ => false,
            })
    })
}
