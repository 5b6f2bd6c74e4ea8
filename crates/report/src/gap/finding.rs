//! What pictures show, as their titles: sentences of numbers that are drawn, which rank nothing
//! that the report does not tell apart.

use super::first::usual;
use super::select::{ahead, attains, cells_at, compared};
use crate::advice::drafts_of;
use crate::certainty::in_percent;
use specgap_core::scheme::SchemeName;
use specgap_measure::{Cell, GapReport, VerifierRow};
use specgap_page::plot::{Axis, BoxRow, Line};
use specgap_page::words::{counted, lower_first, percent, temperature};
use specgap_statistics::advice::{Change, Verdict};
use std::cmp::Ordering;

/// Finds what drafts of each law get by their usual rule, or by any where all are alike.
fn got(cell: &Cell) -> Option<&VerifierRow> {
    usual(cell).or_else(|| cell.verifiers.iter().find(|row| attains(row)))
}

/// Says what changing the likeliest tokens for other drafts gives, where a paired comparison tells
/// the two apart; else the most that is possible, and what a usual rule gets.
pub(super) fn of_place(report: &GapReport, at: f64, n: usize) -> Option<String> {
    let cells: Vec<&Cell> = cells_at(report, at, n).collect();
    let place = format!("{}, T = {}", counted(n, "draft"), temperature(at));
    let top = (cells.iter())
        .find(|cell| cell.scheme == SchemeName::TOP.as_str())
        .and_then(|cell| Some((*cell, got(cell)?)));
    if let Some((cell, now)) = top {
        let more = cells.iter().filter_map(|other| {
            let row = got(other)?;
            let one = compared(report, [other, cell], [row, now])?;
            let known = one.difference.open().is_none() && row.acceptance.open().is_none();
            let is_more = known && ahead(one) == Some(Ordering::Greater);
            is_more.then_some((other, row, one.difference.mean))
        });
        // The law that the advice names, if it is for who drafts these.
        let here = |change: &&Change| change.temperature == Some(at) && change.drafts == Some(n);
        let mut changes = report.advice.iter().filter(here);
        let change =
            changes.find(|one| one.verdict == Verdict::Worth && one.from.starts_with("top/"));
        let law = change.and_then(|one| one.to.split('/').next());
        let is_advised = |cell: &Cell| law == Some(&*cell.scheme);
        let most = more.max_by(|a, b| {
            let advised = is_advised(a.0).cmp(&is_advised(b.0));
            advised.then(a.2.total_cmp(&b.2))
        });
        if let Some((other, row, _)) = most {
            let drafts = match other.scheme.as_str() {
                "greedy" => drafts_of("greedy", n),
                law => format!("{law} drafts"),
            };
            return Some(format!(
                "{drafts} are accepted {} of the time, the likeliest tokens {} ({place})",
                percent(row.acceptance.mean),
                percent(now.acceptance.mean)
            ));
        }
    }
    let most = (cells.iter())
        .filter(|cell| cell.optimal_acceptance_rate.estimate.open().is_none())
        .map(|cell| cell.optimal_acceptance_rate.estimate.mean)
        .filter(|mean| mean.is_finite())
        .reduce(f64::max)?;
    let row = (cells.iter())
        .filter_map(|cell| usual(cell))
        .find(|row| row.acceptance.open().is_none());
    let gets = row.map_or_else(String::new, |row| {
        format!("; {} gets {}", row.name, percent(row.acceptance.mean))
    });
    Some(format!(
        "At most {} can be accepted{gets} ({place})",
        percent(most)
    ))
}

/// Follows the optimum of the first law from the first place to the last.
pub(super) fn rising(panels: &[(String, Vec<Line>)], axis: &Axis) -> Option<String> {
    let (law, lines) = panels.first()?;
    let [first, .., last] = lines.first()?.points.as_slice() else {
        return None;
    };
    let stop = |x: f64| axis.stops.iter().find(|(at, _)| *at == x);
    let [(_, from), (_, to)] = [stop(first.x)?, stop(last.x)?];
    if first.open || last.open {
        return None;
    }
    Some(format!(
        "The most that can be accepted of {law} drafts goes from {} at {} = {from} to {} at {to}",
        percent(first.y),
        axis.label,
        percent(last.y)
    ))
}

/// The first rule whose loss is known at both ends.
pub(super) fn losing(lines: &[Line], axis: &Axis) -> Option<String> {
    lines.iter().find_map(|line| {
        let [first, .., last] = line.points.as_slice() else {
            return None;
        };
        let stop = |x: f64| axis.stops.iter().find(|(at, _)| *at == x);
        let [(_, from), (_, to)] = [stop(first.x)?, stop(last.x)?];
        (!first.open && !last.open).then(|| {
            format!(
                "{} loses {} points with {from} drafts, {} with {to}",
                line.label,
                in_percent(first.y),
                in_percent(last.y)
            )
        })
    })
}

/// Says how often the first verifier misses a tenth and more.
pub(super) fn spread(lines: &[Line]) -> Option<String> {
    let line = lines.first()?;
    let at = line.points.iter().find(|point| point.x == 0.1)?;
    Some(format!(
        "{} misses 10 points or more at {} of the positions",
        line.label,
        percent(at.y)
    ))
}

/// Says how far positions lie apart.
pub(super) fn overlapping(rows: &[BoxRow]) -> Option<String> {
    let row = rows.last()?;
    let [_, lower, _, upper, _] = row.quantiles;
    Some(format!(
        "One sampled draft is accepted {} of the time at {}: half of the positions lie between {} and {}",
        percent(row.mean),
        row.label,
        percent(lower),
        percent(upper)
    ))
}

/// The models of a report by names that say what they are.
fn models(report: &GapReport) -> Option<String> {
    let mut logs = report.logs.iter();
    let name = |file: &str| {
        let stem = file.strip_suffix(".onnx").unwrap_or(file);
        let plain = ["target", "draft", "model", "decoder"].contains(&stem);
        (!plain).then(|| stem.to_owned())
    };
    let metadata = &logs.next()?.metadata;
    if logs.next().is_some() {
        return None;
    }
    let target = name(&metadata.target.as_ref()?.name)?;
    Some(match name(&metadata.draft.as_ref()?.name) {
        Some(draft) => format!("{target} and {draft}"),
        None => target,
    })
}

/// Says what the report is about and what it finds.
pub(super) fn title(report: &GapReport) -> Option<String> {
    let (at, n) = super::select::headline(report)?;
    let finding = of_place(report, at, n)?;
    let logs: Vec<&str> = report.logs.iter().map(|log| log.name.as_str()).collect();
    let name = models(report).unwrap_or_else(|| logs.join(", "));
    Some(match name.is_empty() {
        true => finding,
        false => format!("{name}: {}", lower_first(&finding)),
    })
}
