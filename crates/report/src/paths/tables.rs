//! The tables of a report on several paths.

use super::lead::{best, named, share};
use crate::columns::{head, table};
use crate::length::numbers::{decimals, entry, half, maybe};
use specgap_base::once::each_once;
use specgap_page::table::{Column, Entry, Row, Table};
use specgap_page::words::percent;
use specgap_replay::replay::{AtDrafts, PathVerifier, PathsReport};
use specgap_statistics::statistics::Estimate;

/// Upper and lower bound, and the best verifier, by K.
pub(super) fn possible(report: &PathsReport) -> Table {
    let of_possible =
        |at: &AtDrafts, accepted: Option<&Estimate>| share(at, accepted?).map(percent);
    let accepted = |one: &'_ PathVerifier| one.expected_accepted_length;
    let each = report.by_drafts.iter().map(|at| {
        let upper = at.upper_bounds.first();
        let upper = upper.map(|one| &one.expected_accepted_length);
        (at, upper, best(at), named(at, "spectr-k-seq"))
    });
    let table = table! {
        "possible", "Accepted tokens a round, E[τ], by the number of draft paths",
        (at, upper, best, k_seq) in each;
        "paths K" => at.drafts,
        "#no verifier passes" => maybe(upper, 3),
        "#the best one has at least" => entry(&at.lower_bound, 3),
        "most here" => best.map(|one| &one.verifier),
        "#accepts" => maybe(best.map(accepted).as_ref(), 3),
        "#of what is possible" => of_possible(at, best.map(accepted).as_ref()),
        "#k-seq accepts" => maybe(k_seq, 3),
        "#of it" => of_possible(at, k_seq),
    };
    table.note(
        "No verifier passes: an upper bound for every lossless verifier of K i.i.d. paths, in rounds \
         that start with the target's own law. The best \
         one has at least: the value of Lemma 5.1. Of what is possible: over the upper bound, so \
         that the share of the optimum is at least that. Intervals are 95%, over prompts.",
    )
}

/// A column for every number of paths, behind one of words.
fn by_paths(report: &PathsReport, words: &str) -> Vec<Column> {
    let numbers = report.by_drafts.iter();
    let numbers = numbers.map(|at| Column::number(format!("K = {}", at.drafts)));
    head(words).into_iter().chain(numbers).collect()
}

/// A number of every verifier, by the number of paths.
fn by_verifier(
    report: &PathsReport,
    id: &str,
    caption: &str,
    of: impl Fn(&PathVerifier) -> Option<&Estimate>,
) -> Table {
    let names = report.by_drafts.first().map(|at| &at.verifiers);
    let rows = names.into_iter().flatten().enumerate().map(|(index, one)| {
        let own = report.by_drafts.iter().map(|at| at.verifiers.get(index));
        let entries = own.map(|one| mean(one.and_then(&of)));
        Row::new(std::iter::once(Entry::plain(&one.verifier)).chain(entries))
    });
    let all = report.by_drafts.iter().flat_map(|at| &at.verifiers);
    Table::new(id, caption, by_paths(report, "verifier"))
        .rows(rows)
        .note(widest(all.filter_map(&of)))
}

/// Tabulates what every verifier accepts.
pub(super) fn verifiers(report: &PathsReport) -> Table {
    let caption = "E[τ] by verifier and number of paths";
    by_verifier(report, "accepted", caption, |one| {
        Some(&one.expected_accepted_length)
    })
}

/// Tabulates what a decoder gets for a call: only of verifiers whose rounds can be replayed.
pub(super) fn calls(report: &PathsReport) -> Table {
    let caption = "Tokens per target call by verifier and number of paths";
    let mut table = by_verifier(report, "calls", caption, |one| one.tokens_per_call.as_ref());
    let is_told = |row: &Row| row.entries.iter().skip(1).any(|entry| !entry.is_none());
    let groups = table.groups.iter_mut();
    groups.for_each(|group| group.rows.retain(is_told));
    table
}

/// Says how wide intervals are that are not written out.
fn widest<'a>(estimates: impl Iterator<Item = &'a Estimate>) -> String {
    let widest = estimates.map(half).fold(0.0, f64::max);
    format!(
        "95% intervals over prompts are ± {} or less; report.json has each.",
        decimals(widest, 3)
    )
}

/// The mean, with its interval behind it.
fn mean(estimate: Option<&Estimate>) -> Entry {
    Entry::from(estimate.map(|estimate| Entry {
        text: decimals(estimate.mean, 3),
        ..entry(estimate, 3)
    }))
}

/// Tabulates how far below the upper bound it is; no rows where there is none.
pub(super) fn distances(report: &PathsReport) -> Table {
    let caption = "Upper bound less E[τ], paired by prompt";
    if report.by_drafts.iter().all(|at| at.upper_bounds.is_empty()) {
        return Table::default();
    }
    by_verifier(report, "below", caption, |one| {
        one.below_upper_bound.as_ref()
    })
}

/// Every form of the upper bound.
pub(super) fn upper_bounds(report: &PathsReport) -> Table {
    let bounds = || report.by_drafts.iter().flat_map(|at| &at.upper_bounds);
    let forms = each_once(bounds().map(|bound| bound.form.as_str()));
    let rows = forms.iter().map(|form| {
        let entries = report.by_drafts.iter().map(|at| {
            let bound = at.upper_bounds.iter().find(|bound| bound.form == *form);
            mean(bound.map(|bound| &bound.expected_accepted_length))
        });
        Row::new(std::iter::once(Entry::plain(*form)).chain(entries))
    });
    let widest = widest(bounds().map(|bound| &bound.expected_accepted_length));
    let columns = by_paths(report, "made of");
    let table = Table::new("upper-bounds", "Upper bounds of E[τ]", columns);
    table.rows(rows).note(widest)
}

/// Numbers that the log tells twice.
pub(super) fn checks(report: &PathsReport) -> Table {
    table! {
        "checks", "", check in report.checks.iter();
        "number" => &check.what,
        "#K" => check.drafts,
        "#by the text" => entry(&check.from_text, 3),
        "#by draft paths" => entry(&check.from_paths, 3),
        "#difference" => entry(&check.difference, 3),
    }
}
