//! Finding one's way in a gap report.

use specgap_base::once::each_once;
use specgap_measure::{Cell, Comparison, GapReport, OverlapRow, VerifierRow};
use specgap_page::table::{Row, Table};
use specgap_page::words::temperature;
use specgap_statistics::statistics::Estimate;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The level that a difference must reach after Holm's correction.
pub(super) const LEVEL: f64 = 0.05;

/// A gap below this counts as none: the upper edge of the first bin of
/// [`specgap_measure::HISTOGRAM_EDGES`].
pub(super) const NO_GAP: f64 = 1e-6;

/// The acceptance of one sampled draft by the text's own tokens, where these tell it and the
/// lists do not.
pub(super) fn along_text(row: &OverlapRow) -> Option<&Estimate> {
    let along = row.along_text.as_ref()?;
    (row.estimate.truncation.is_some() && along.truncation.is_none()).then_some(along)
}

/// The value at a share of the positions, if the report has it.
pub(super) fn quantile(quantiles: &BTreeMap<String, f64>, share: f64) -> Option<f64> {
    (quantiles.iter())
        .find(|(key, _)| {
            key.parse::<f64>()
                .is_ok_and(|key| (key - share).abs() < 1e-9)
        })
        .map(|(_, value)| *value)
}

/// A distance from p above which a rule is called lossy: more than single precision leaves.
pub(super) const LOSSY: f64 = 1e-6;

/// Tells whether a rule is lossless where it was measured, as far as it says: of a rule of the
/// table, always.
pub(super) fn is_lossless(row: &VerifierRow) -> bool {
    match &row.own {
        Some(own) => own.total_variation_max.is_some_and(|away| away <= LOSSY) && !is_lossy(row),
        None => true,
    }
}

/// Tells whether it is not: it says so itself, or it accepts more than any lossless rule, by more than
/// the interval.
pub(super) fn is_lossy(row: &VerifierRow) -> bool {
    let gap = &row.gap.estimate;
    let is_above = gap.side() == Some(Ordering::Less) && gap.mean < -NO_GAP;
    let away = row.own.as_ref().map(|own| own.total_variation_max);
    away.is_some_and(|away| is_above || away.is_some_and(|away| away > LOSSY))
}

/// The gap is below [`NO_GAP`] wherever it was measured.
pub(super) fn attains(verifier: &VerifierRow) -> bool {
    let gap = &verifier.gap;
    gap.estimate.open().is_none() && gap.max.abs() < NO_GAP && gap.estimate.mean.abs() < NO_GAP
}

/// Names what leaves numbers open that are only known between bounds.
pub(super) fn opened_by(report: &GapReport) -> &'static str {
    let is_between = |cell: &Cell| cell.optimal_acceptance_rate.estimate.between.is_some();
    match report.cells.iter().any(is_between) {
        true => "bounds of α*",
        false => "the lists",
    }
}

/// Tells whether what a verifier accepts and what it loses are measured, not only known between
/// bounds that are further apart than their ±.
pub(super) fn is_measured(cell: &Cell, row: &VerifierRow) -> bool {
    let optimum = &cell.optimal_acceptance_rate.estimate;
    [optimum, &row.acceptance, &row.gap.estimate]
        .iter()
        .all(|estimate| estimate.open().is_none())
}

/// Tells which of the two accepts more, if the report tells them apart: after Holm's correction,
/// and whatever the tokens are that rows do not list.
pub(super) fn ahead(one: &Comparison) -> Option<Ordering> {
    one.difference.side().filter(|_| one.p_holm < LEVEL)
}

/// The temperatures of the cells, ascending.
pub(super) fn temperatures(report: &GapReport) -> Vec<f64> {
    let mut all: Vec<f64> = report.cells.iter().map(|cell| cell.temperature).collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    all
}

/// The numbers of drafts of the cells, ascending.
pub(super) fn drafts(report: &GapReport) -> Vec<usize> {
    let mut all: Vec<usize> = report.cells.iter().map(|cell| cell.drafts).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Every (temperature, number of drafts) that has a cell, ascending.
pub(super) fn places(report: &GapReport) -> Vec<(f64, usize)> {
    let mut all = Vec::new();
    for at in temperatures(report) {
        for n in drafts(report) {
            let here = |cell: &Cell| cell.temperature == at && cell.drafts == n;
            if report.cells.iter().any(here) {
                all.push((at, n));
            }
        }
    }
    all
}

/// `T = 1.0, n = 3`.
pub(super) fn place(at: f64, n: usize) -> String {
    format!("T = {}, n = {n}", temperature(at))
}

/// The draft laws of the cells, in the order that they come in.
pub(super) fn laws(report: &GapReport) -> Vec<&str> {
    each_once(report.cells.iter().map(|cell| cell.scheme.as_str()))
}

/// The verifiers of a draft law, in the order that they come in.
pub(super) fn verifiers<'a>(report: &'a GapReport, law: &str) -> Vec<&'a str> {
    let cells = report.cells.iter().filter(|cell| cell.scheme == law);
    let rows = cells.flat_map(|cell| &cell.verifiers);
    each_once(rows.map(|row| row.name.as_str()))
}

/// One cell of a report.
pub(super) fn cell<'a>(
    report: &'a GapReport,
    temperature: f64,
    drafts: usize,
    law: &str,
) -> Option<&'a Cell> {
    let mut cells = report.cells.iter();
    cells
        .find(|cell| cell.temperature == temperature && cell.drafts == drafts && cell.scheme == law)
}

/// The cells at one place, a draft law each.
pub(super) fn cells_at(report: &GapReport, at: f64, n: usize) -> impl Iterator<Item = &Cell> {
    (laws(report).into_iter()).filter_map(move |law| cell(report, at, n, law))
}

/// One verifier of a cell.
pub(super) fn verifier<'a>(cell: &'a Cell, name: &str) -> Option<&'a VerifierRow> {
    cell.verifiers.iter().find(|row| row.name == name)
}

/// The temperature that the text of every log was sampled at, if it is one and known.
pub(super) fn sampled_at(report: &GapReport) -> Option<f64> {
    let logs = report.logs.iter().map(|log| log.metadata.sampling.as_ref());
    let mut known = logs.map(|how| how.map(|how| how.temperature));
    let first = known.next()??;
    known.all(|other| other == Some(first)).then_some(first)
}

/// The (temperature, n) that summaries speak of: the temperature nearest to that of
/// the text, or to 1 where that is not known; and the most drafts up to 4, or else
/// the fewest.
pub(super) fn headline(report: &GapReport) -> Option<(f64, usize)> {
    let wanted = sampled_at(report).unwrap_or(1.0);
    let temperature = (temperatures(report).into_iter())
        .min_by(|a, b| (a - wanted).abs().total_cmp(&(b - wanted).abs()))?;
    let here = |cell: &&Cell| cell.temperature == temperature;
    let all = || report.cells.iter().filter(here).map(|cell| cell.drafts);
    let drafts = all().filter(|&n| n <= 4).max().or(all().min())?;
    Some((temperature, drafts))
}

/// The paired difference of two verifiers, each of its own drafts.
pub(super) fn compared<'a>(
    report: &'a GapReport,
    cells: [&Cell; 2],
    rows: [&VerifierRow; 2],
) -> Option<&'a Comparison> {
    let name = |index: usize| format!("{}/{}", cells[index].scheme, rows[index].name);
    let [first, second] = [name(0), name(1)];
    let theirs = |one: &&Comparison| {
        one.temperature == cells[0].temperature
            && one.drafts == cells[0].drafts
            && one.first == first
            && one.second == second
    };
    report.comparisons.iter().find(theirs)
}

/// The verifier of a cell that accepts most, if it is told apart from the next one.
///
/// That needs a paired comparison of the two in the report, and that no verifier is only known
/// between bounds.
pub(super) fn told_apart<'a>(report: &GapReport, cell: &'a Cell) -> Option<&'a VerifierRow> {
    let mut rows = cell.verifiers.iter();
    if rows.any(|row| row.acceptance.open().is_some()) {
        return None;
    }
    let rows = cell.verifiers.iter();
    let mut order: Vec<&VerifierRow> = rows.filter(|row| is_lossless(row)).collect();
    order.sort_by(|a, b| b.acceptance.mean.total_cmp(&a.acceptance.mean));
    let [best, next, ..] = order.as_slice() else {
        return None;
    };
    let cells = [cell; 2];
    let found = compared(report, cells, [best, next]);
    let found = found.or_else(|| compared(report, cells, [next, best]));
    ahead(found?).map(|_| *best)
}

/// A group of rows for each place that has some, of its cells; those of the `main` one are in short
/// texts too.
pub(super) fn each_cell(
    report: &GapReport,
    table: &mut Table,
    main: Option<(f64, usize)>,
    mut rows: impl FnMut(&Cell) -> Vec<Row>,
) {
    for (at, n) in places(report) {
        let rows: Vec<Row> = cells_at(report, at, n).flat_map(&mut rows).collect();
        if !rows.is_empty() {
            table.group(place(at, n), rows, main == Some((at, n)));
        }
    }
}
