//! How well the numbers of a gap report are known.

use super::select::{cell, laws, places};
use crate::certainty::{Tally, exactness, meanings};
use specgap_measure::{GapReport, Optimum, VerifierRow};
use specgap_number::known::Kind;
use specgap_page::words::at_most;

/// True if some rows list only their most probable tokens, so that the full rows' numbers
/// are known between bounds.
///
/// Rows of a sampler that draws from the listed tokens alone leave nothing open.
pub(super) fn is_truncated(report: &GapReport) -> bool {
    let overlaps = report.overlap.iter().map(|row| row.kind);
    let optima = (report.cells.iter()).map(|cell| cell.optimal_acceptance_rate.kind);
    let mut kinds = overlaps.chain(optima);
    // What is cut of a row may be all that it does not list.
    let is_whole =
        report.served.is_some() || report.cells.iter().all(|cell| cell.temperature == 0.0);
    kinds.any(|kind| kind == Kind::Truncated)
        || !is_whole && report.logs.iter().any(|log| !log.rest.is_empty())
}

/// Returns how a gap came about, with the widest enclosure: that of its two terms.
pub(super) fn of_gap(optimum: &Optimum, row: &VerifierRow) -> (Kind, f64) {
    let kind = optimum.kind.joined(row.kind);
    (kind, optimum.width_max + row.width_max)
}

/// Says how what a verifier accepts came about.
pub(super) fn of_row(row: &VerifierRow) -> String {
    let how = exactness(row.kind, row.width_max);
    match row.noise() {
        Some(noise) => format!("{how}; drawn, and its draws leave {}", at_most(noise)),
        None => how,
    }
}

/// The optima and verifiers of every cell, for the line under a table.
pub(super) fn of_rates(report: &GapReport) -> Tally {
    let mut tally = Tally::default();
    for (at, n) in places(report) {
        for cell in (laws(report).into_iter()).filter_map(|law| cell(report, at, n, law)) {
            let optimum = &cell.optimal_acceptance_rate;
            if optimum.is_known() {
                let name = format!("α* of {}", cell.scheme);
                tally.add(optimum.kind, optimum.width_max, name);
            }
            for row in &cell.verifiers {
                tally.add(row.kind, row.width_max, &row.name);
            }
        }
    }
    tally
}

/// Says what each kind means, of those that the report has.
pub(super) fn definitions(report: &GapReport) -> Vec<(String, String)> {
    let cells = report.cells.iter().flat_map(|cell| {
        let verifiers = cell.verifiers.iter().map(|row| row.kind);
        std::iter::once(cell.optimal_acceptance_rate.kind).chain(verifiers)
    });
    let overlap = report.overlap.iter().map(|row| row.kind);
    let kinds: Vec<Kind> = cells.chain(overlap).collect();
    meanings(&kinds)
}
