//! The picture of a report on several paths.

use super::lead::{BLOCK, CARRIED, named, shown};
use crate::certainty::{self, larger};
use crate::length::numbers::decimals;
use specgap_page::Figure;
use specgap_page::plot::{Axis, Line, LinePlot, Point, Stroke};
use specgap_page::words::counted;
use specgap_replay::replay::{AtDrafts, PathsReport};
use specgap_statistics::statistics::Estimate;
use std::cmp::Ordering;

fn point(at: &AtDrafts, estimate: &Estimate) -> Point {
    certainty::point(at.drafts as f64, estimate)
}

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
    let line = |label: &str, hue, stroke, of: &dyn Fn(&AtDrafts) -> Option<Estimate>| Line {
        label: label.to_owned(),
        hue,
        stroke,
        points: report
            .by_drafts
            .iter()
            .filter_map(|at| Some(point(at, &of(at)?)))
            .collect(),
    };
    let mut lines = vec![
        line("no verifier passes", 4, Stroke::Dashed(0), &|at| {
            Some(at.upper_bounds.first()?.expected_accepted_length)
        }),
        line(
            "lower bound of the best (Lemma 5.1)",
            4,
            Stroke::Dashed(1),
            &|at| Some(at.lower_bound),
        ),
    ];
    for (hue, name) in [
        (3, "select-greedy-block"),
        (2, "select-block"),
        (1, "spectr-k-seq"),
        (0, "greedy-block"),
    ] {
        lines.push(line(name, hue, Stroke::Solid, &|at| {
            named(at, name).copied()
        }));
    }
    lines.retain(|line| !line.points.is_empty());
    let title = "Accepted tokens a round, by the number of draft paths".to_owned();
    let ends: Vec<String> = lines
        .iter()
        .filter_map(|line| {
            let (first, last) = (line.points.first()?, line.points.last()?);
            let [from, to] = [first, last].map(|point| point.said(|value| decimals(value, 3)));
            Some(format!("{}: from {from} to {to}", line.label))
        })
        .collect();
    let stops = report.by_drafts.iter();
    let stops = stops.map(|at| (at.drafts as f64, at.drafts.to_string()));
    let plot = LinePlot {
        title: title.clone(),
        x: Axis::new("draft paths K", stops),
        y_label: "E[τ]".to_owned(),
        lines,
        ..LinePlot::default()
    };
    Some(Figure {
        name: "accepted-by-paths".to_owned(),
        alt: format!("{title}. {}.", ends.join("; ")),
        caption: format!(
            "{title}. Dashed: between these two lies what the best verifier accepts. Bars are 95% \
             intervals over prompts."
        ),
        canvas: plot.draw(),
        title: more_paths(report).unwrap_or(title),
    })
}
