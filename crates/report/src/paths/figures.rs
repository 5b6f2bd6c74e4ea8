//! The picture of a report on several paths.

use super::lead::{BLOCK, CARRIED, named, shown};
use crate::certainty::{larger, point};
use crate::length::numbers::decimals;
use crate::pictures::{chart, ends};
use specgap_page::Figure;
use specgap_page::plot::{Axis, Line, LinePlot};
use specgap_page::words::counted;
use specgap_replay::replay::{AtDrafts, PathsReport};
use specgap_statistics::statistics::Estimate;
use std::cmp::Ordering;

/// Says what several paths accept and one does, where their intervals are apart.
fn more_paths(report: &PathsReport) -> Option<String> {
    let at = shown(report).filter(|at| at.drafts > 1)?;
    let [several, one] = [named(at, CARRIED)?, named(at, BLOCK)?];
    let bound = at.upper_bounds.first().map_or_else(String::new, |bound| {
        let most = decimals(bound.expected_accepted_length.mean, 2);
        format!("; no verifier passes {most}")
    });
    (larger(several, one) == Some(Ordering::Greater)).then(|| {
        format!(
            "{} by {CARRIED} accept {} tokens a round, one path as a block {}{bound}",
            counted(at.drafts, "path"),
            decimals(several.mean, 2),
            decimals(one.mean, 2)
        )
    })
}

/// Upper bound, lower bound and some verifiers, by the number of paths; none where only one
/// number was asked for.
pub(super) fn by_drafts(report: &PathsReport) -> Option<Figure> {
    if report.by_drafts.len() < 2 {
        return None;
    }
    let line = |label: &str, hue, of: &dyn Fn(&AtDrafts) -> Option<Estimate>| {
        let all = report.by_drafts.iter();
        let points = all.filter_map(|at| Some(point(at.drafts as f64, &of(at)?)));
        Line::solid(label, hue, points)
    };
    let upper = |at: &AtDrafts| Some(at.upper_bounds.first()?.expected_accepted_length);
    let lower = |at: &AtDrafts| Some(at.lower_bound);
    let bounds = [
        line("no verifier passes", 4, &upper).dashed(0),
        line("lower bound of the best (Lemma 5.1)", 4, &lower).dashed(1),
    ];
    let rules = [
        (3, "select-greedy-block"),
        (2, "select-block"),
        (1, "spectr-k-seq"),
        (0, "greedy-block"),
    ];
    let rules = rules.map(|(hue, name)| line(name, hue, &|at| named(at, name).copied()));
    let mut lines = Vec::from_iter(bounds.into_iter().chain(rules));
    lines.retain(|line| !line.points.is_empty());
    let title = "Accepted tokens a round, by the number of draft paths";
    let stops = report.by_drafts.iter();
    let stops = stops.map(|at| (at.drafts as f64, at.drafts.to_string()));
    let plot = LinePlot::new(title, Axis::new("draft paths K", stops), "E[τ]", lines);
    let said = ends(&plot.lines, |point| point.said(|value| decimals(value, 3)));
    let caption = format!(
        "{title}. Dashed: between these two lies what the best verifier accepts. Bars are 95% \
         intervals over prompts."
    );
    Some(chart(
        "accepted-by-paths",
        &plot,
        &said,
        caption,
        more_paths(report),
    ))
}
