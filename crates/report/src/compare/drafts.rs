//! The table that papers have: drafts and rules by temperature, one of each draft law.

use super::select::{names, temperatures};
use crate::certainty::Tally;
use crate::columns::head;
use specgap_base::once::each_once;
use specgap_measure::{ComparedEstimate, ComparedRate, LogComparison};
use specgap_page::table::{Column, Entry, Row, Table};
use specgap_page::words::temperature;
use std::collections::BTreeSet;

/// Means nearer than this are one.
const SAME: f64 = 1e-6;

/// One table of each law: the optimum and the rules of each draft, a column of each temperature and
/// number of drafts.
pub(super) fn tables(comparison: &LogComparison) -> Vec<Table> {
    let rates = comparison.rates.iter();
    let optima = rates.filter(|rate| rate.what == "optimum");
    let laws = each_once(optima.map(|rate| rate.scheme.as_deref().unwrap_or_default()));
    laws.iter().map(|law| of_law(comparison, law)).collect()
}

fn of_law(comparison: &LogComparison, law: &str) -> Table {
    let rates: Vec<&ComparedRate> = (comparison.rates.iter())
        .filter(|rate| rate.scheme.as_deref() == Some(law))
        .collect();
    // What engines do with one draft is there whatever was asked for.
    let counts: BTreeSet<usize> = (rates.iter())
        .filter(|rate| rate.what == "optimum")
        .filter_map(|rate| rate.drafts)
        .collect();
    let asked = (rates.iter()).filter(|rate| rate.drafts.is_some_and(|n| counts.contains(&n)));
    let rules = each_once(asked.map(|rate| rate.verifier.as_deref()));
    let places: Vec<(f64, usize)> = (temperatures(comparison).into_iter())
        .flat_map(|at| counts.iter().map(move |&n| (at, n)))
        .collect();
    let estimate = |rule: Option<&str>, (at, n): (f64, usize), log: usize| {
        let is_it = |rate: &&&ComparedRate| {
            rate.temperature == at && rate.drafts == Some(n) && rate.verifier.as_deref() == rule
        };
        rates.iter().find(is_it)?.estimates.get(log)?.as_ref()
    };
    let mut columns = head("rule");
    columns.extend(places.iter().map(|&(at, n)| {
        Column::number(format!("n = {n}")).over(format!("T = {}", temperature(at)))
    }));
    let caption = format!("Acceptance of {law} drafts, by draft model and rule");
    let mut table = Table::new(format!("drafts-{law}"), caption, columns);
    let mut tally = Tally::default();
    let mut strong = false;
    for (log, name) in names(comparison).into_iter().enumerate() {
        let known =
            |one: &ComparedEstimate| one.estimate.open().is_none().then_some(one.estimate.mean);
        let most = |place: (f64, usize)| {
            let means = rules.iter().filter(|rule| rule.is_some());
            let means = means.filter_map(|&rule| known(estimate(rule, place, log)?));
            means.fold(f64::NEG_INFINITY, f64::max)
        };
        let best: Vec<f64> = places.iter().map(|&place| most(place)).collect();
        let rows = rules.iter().map(|&rule| {
            let name = rule.unwrap_or("α*");
            let mut entries = vec![Entry::plain(name)];
            for (&place, best) in places.iter().zip(&best) {
                let entry = estimate(rule, place, log).map(|one| {
                    let is_best = known(one).is_some_and(|mean| mean > best - SAME);
                    let is_strong = is_best && rule.is_some();
                    strong |= is_strong;
                    let entry = tally.entry(&one.estimate, one.kind, one.width_max, name);
                    entry.bold(is_strong)
                });
                entries.push(entry.into());
            }
            match rule {
                None => Row::reference(entries),
                Some(_) => Row::new(entries),
            }
        });
        table.group(name, rows.collect(), false);
    }
    let bold = "Bold: the largest mean of these rules for a draft, whether or not it is told apart from \
                the next.";
    table.notes([strong.then(|| bold.to_owned()), Some(tally.line())])
}
