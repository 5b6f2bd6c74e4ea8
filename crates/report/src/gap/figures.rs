//! The pictures of a gap report.

use super::finding;
use super::first::{is_rule, points, usual};
use super::select::{
    attains, cell, cells_at, headline, laws, opened_by, place, places, quantile, temperatures,
    verifier, verifiers,
};
use super::summary::over_clusters;
use crate::certainty::{self, in_percent};
use crate::pictures::{chart, figure};
use specgap_core::scheme::SchemeName;
use specgap_measure::{Cell, GapReport, HISTOGRAM_EDGES, VerifierRow};
use specgap_page::Figure;
use specgap_page::plot::{
    Axis, BoxPlot, BoxRow, Line, LinePlot, LossPlot, LossRow, PanelPlot, Point,
};
use specgap_page::words::{counted, percent, temperature};
use specgap_statistics::statistics::Estimate;

/// A place on the x axis: where it stands, its temperature, its number of drafts.
type Stop = (f64, f64, usize);

/// The colour of a draft law, the same in every picture of every report: that of its
/// entry in the table of laws. A report of another version may have laws that this one
/// does not know; they follow in the order that they come in.
pub(super) fn hue(report: &GapReport, law: &str) -> usize {
    let known = |name: &str| name.parse::<SchemeName>().ok();
    if let Some(law) = known(law) {
        return law.entry().hue;
    }
    let index = (laws(report).into_iter())
        .filter(|name| known(name).is_none())
        .position(|name| name == law);
    index.unwrap_or(0) + SchemeName::ALL.len()
}

/// The picture of the first lines: a row a draft law, the optimum as a bar, rules as rings,
/// and the loss of the usual one with its paired interval.
pub(super) fn losses(report: &GapReport, at: f64, n: usize) -> Option<Figure> {
    let (mut rows, mut said) = (Vec::new(), Vec::new());
    if let Some(one) = report.overlap.iter().find(|row| row.temperature == at) {
        let rate = words(&one.estimate, percent);
        said.push(format!("one sampled draft {rate}"));
        let (best, best_to) = bar(&one.estimate);
        rows.push(LossRow {
            label: "one sampled draft".to_owned(),
            best,
            best_to,
            best_label: words(&one.estimate, in_percent),
            ..LossRow::default()
        });
    }
    for cell in cells_at(report, at, n) {
        let optimum = &cell.optimal_acceptance_rate.estimate;
        let (best, best_to) = bar(optimum);
        let (attaining, others): (Vec<&VerifierRow>, Vec<&VerifierRow>) =
            cell.verifiers.iter().partition(|row| attains(row));
        let (mut marks, mut ranges) = (Vec::new(), Vec::new());
        for row in others.into_iter().filter(|row| is_rule(row)) {
            let name = format!("{} {}", row.name, words(&row.acceptance, in_percent));
            match row.acceptance.open() {
                Some(ends) => ranges.push((ends, name)),
                None => marks.push((row.acceptance.mean, name)),
            }
        }
        let loss = usual(cell).filter(|row| !attains(row)).map(|row| {
            let gap = &row.gap.estimate;
            let said = format!("{} loses {} points", row.name, points(gap));
            let ends = gap.open().unwrap_or(gap.ci95).map(|end| end.max(0.0));
            (gap.open().is_none().then_some(gap.mean), ends, said)
        });
        let attaining: Vec<&str> = attaining.iter().map(|row| row.name.as_str()).collect();
        let attained = match attaining.is_empty() {
            true => String::new(),
            false => format!(" = {}", attaining.join(", ")),
        };
        let lost = match &loss {
            Some((.., lost)) => format!(", {lost}"),
            None => attained.clone(),
        };
        let rate = words(optimum, percent);
        said.push(format!("{}: α* {rate}{lost}", cell.scheme));
        rows.push(LossRow {
            label: cell.scheme.clone(),
            best,
            best_to,
            best_label: format!("α* {}{attained}", words(optimum, in_percent)),
            marks,
            ranges,
            loss,
        });
    }
    if rows.is_empty() {
        return None;
    }
    let title = format!("What is possible and what rules get, {}", place(at, n));
    let paired = over_clusters(report, |unit| {
        format!(", with its 95% interval over {unit}s, paired by position")
    });
    let is_open = rows.iter().any(|row| {
        row.best_to.is_some() || !row.ranges.is_empty() || matches!(row.loss, Some((None, ..)))
    });
    let open = is_open.then(|| {
        format!(
            " A range with ends: {} leave open where the number lies in it; of a loss, thick is the \
             least that it is.",
            opened_by(report)
        )
    });
    let caption = format!(
        "{title}. Bar: the optimum α* of a draft law; “= name” attains it. Rings: verifiers. \
         Orange: what the usual rule loses{paired}.{}",
        open.unwrap_or_default()
    );
    let plot = LossPlot {
        title: title.clone(),
        label: "accepted, %".to_owned(),
        rows,
    };
    // That of the headline is the page's title.
    let found = finding::of_place(report, at, n).filter(|_| headline(report) != Some((at, n)));
    let name = format!("possible-t{}-n{n}", temperature(at));
    Some(figure(
        name,
        title,
        (&said.join("; "), caption),
        plot.draw(),
        found,
    ))
}

/// Returns where a bar ends, and where it may end where only bounds are known.
fn bar(estimate: &Estimate) -> (f64, Option<f64>) {
    match estimate.open() {
        Some([low, high]) => (low, Some(high)),
        None => (estimate.mean, None),
    }
}

/// A number in these words; its bounds where only these are known.
fn words(estimate: &Estimate, number: fn(f64) -> String) -> String {
    point(0.0, estimate).said(number)
}

/// Draws what rules lose by drafts, a picture for each temperature.
pub(super) fn losses_by_drafts(report: &GapReport) -> Vec<Figure> {
    let each = temperatures(report).into_iter();
    each.filter_map(|at| loss_by_drafts(report, at)).collect()
}

fn loss_by_drafts(report: &GapReport, at: f64) -> Option<Figure> {
    let here: Vec<usize> = (places(report).into_iter())
        .filter(|place| place.0 == at)
        .map(|place| place.1)
        .collect();
    let (mut lines, mut said) = (Vec::new(), Vec::new());
    for law in laws(report) {
        for (index, name) in verifiers(report, law).into_iter().enumerate() {
            let rows: Vec<(usize, &VerifierRow)> = (here.iter())
                .filter_map(|&n| Some((n, verifier(cell(report, at, n, law)?, name)?)))
                .collect();
            let [first, .., last] = rows.as_slice() else {
                continue;
            };
            if !is_rule(first.1) || rows.iter().all(|(_, row)| attains(row)) {
                continue;
            }
            let [from, to] = [first, last].map(|(_, row)| words(&row.gap.estimate, percent));
            said.push(format!("{name}, {law}: from {from} to {to}"));
            let points = (rows.iter()).map(|(n, row)| point(*n as f64, &row.gap.estimate));
            let label = format!("{name}, {law}");
            lines.push(Line::solid(label, hue(report, law), points).dashed(index));
        }
    }
    if lines.is_empty() {
        return None;
    }
    let t = temperature(at);
    let title = format!("Loss against the optimum by drafts, T = {t}");
    let x = Axis::new("drafts n", here.iter().map(|&n| (n as f64, n.to_string())));
    let plot = LinePlot {
        percent: true,
        y_covers: Some([0.0, 0.0]),
        ..LinePlot::new(title, x, "α* − acceptance, points", lines)
    };
    let bars = over_clusters(report, |unit| {
        format!(" Bars: 95% intervals over {unit}s, paired by position.")
    });
    let caption = format!(
        "{}: α* of the same drafts minus what the rule accepts.{bars}{}",
        plot.title,
        bands(report, &plot)
    );
    let found = finding::losing(&plot.lines, &plot.x);
    Some(chart(
        format!("loss-by-drafts-t{t}"),
        &plot,
        &said.join("; "),
        caption,
        found,
    ))
}

/// Acceptance by drafts, a picture for each temperature; then by temperature.
pub(super) fn acceptance(report: &GapReport) -> Vec<Figure> {
    let each = temperatures(report).into_iter();
    let by_temperature = headline(report).and_then(|(_, n)| by_temperature(report, n));
    each.filter_map(|at| by_drafts(report, at))
        .chain(by_temperature)
        .collect()
}

fn by_drafts(report: &GapReport, at: f64) -> Option<Figure> {
    let here = places(report).into_iter().filter(|place| place.0 == at);
    let stops: Vec<Stop> = here.map(|(at, n)| (n as f64, at, n)).collect();
    let t = temperature(at);
    let names = stops.iter().map(|&(x, _, n)| (x, n.to_string()));
    let title = format!("Acceptance rate by drafts, T = {t}");
    let axis = Axis::new("drafts n", names);
    curves(
        report,
        &stops,
        axis,
        format!("acceptance-by-drafts-t{t}"),
        title,
    )
}

fn by_temperature(report: &GapReport, n: usize) -> Option<Figure> {
    let here = places(report).into_iter().filter(|place| place.1 == n);
    let stops: Vec<Stop> = here.map(|(at, n)| (at, at, n)).collect();
    if stops.len() < 2 {
        return None;
    }
    let names = stops.iter().map(|&(x, at, _)| (x, temperature(at)));
    let title = format!("Acceptance rate by temperature, n = {n}");
    let axis = Axis::new("temperature T", names);
    curves(
        report,
        &stops,
        axis,
        format!("acceptance-by-temperature-n{n}"),
        title,
    )
}

/// A rate with its interval; intervals may reach out of [0, 1], rates do not.
pub(super) fn point(x: f64, estimate: &Estimate) -> Point {
    let point = certainty::point(x, estimate);
    Point {
        y: point.y.clamp(0.0, 1.0),
        interval: point.interval.map(|end| end.clamp(0.0, 1.0)),
        ..point
    }
}

/// Says what bands mean, where a picture has some.
pub(super) fn bands(report: &GapReport, plot: &LinePlot) -> String {
    let mut points = plot.lines.iter().flat_map(|line| &line.points);
    match points.any(|point| point.open) {
        true => open_bands(report),
        false => String::new(),
    }
}

fn open_bands(report: &GapReport) -> String {
    format!(
        " Bands without a mark: {} leave open where the number lies in them.",
        opened_by(report)
    )
}

/// A panel for every law over some places: its optimum, and the verifiers below it.
fn panels(report: &GapReport, stops: &[Stop]) -> Vec<(String, Vec<Line>)> {
    let mut panels = Vec::new();
    for law in laws(report) {
        let found = stops.iter();
        let found: Vec<(f64, &Cell)> = found
            .filter_map(|&(x, at, n)| Some((x, cell(report, at, n, law)?)))
            .collect();
        if found.is_empty() {
            continue;
        }
        let partly = if found.len() < stops.len() {
            let at: Vec<String> = found.iter().map(|(x, _)| x.to_string()).collect();
            format!(" (at {})", at.join(", "))
        } else {
            String::new()
        };
        let hue = hue(report, law);
        let best = found.iter();
        let best = best.map(|(x, cell)| point(*x, &cell.optimal_acceptance_rate.estimate));
        let mut optimum = Line::solid("α*", hue, best);
        let mut below = Vec::new();
        for (index, name) in verifiers(report, law).into_iter().enumerate() {
            let rows: Vec<(f64, &VerifierRow)> = (found.iter())
                .filter_map(|(x, cell)| Some((*x, verifier(cell, name)?)))
                .collect();
            if rows.len() == found.len() && rows.iter().all(|(_, row)| attains(row)) {
                optimum.label.push_str(&format!(" = {name}"));
                continue;
            }
            let points = rows.iter().map(|(x, row)| point(*x, &row.acceptance));
            below.push(Line::solid(name, hue, points).dashed(index));
        }
        below.retain(|line| !line.points.is_empty());
        let lines = std::iter::once(optimum).chain(below).collect();
        panels.push((format!("{law}{partly}"), lines));
    }
    panels
}

fn curves(
    report: &GapReport,
    stops: &[Stop],
    axis: Axis,
    name: String,
    title: String,
) -> Option<Figure> {
    let panels = panels(report, stops);
    if panels.is_empty() {
        return None;
    }
    let each = || {
        let each = panels.iter();
        each.flat_map(|(law, lines)| lines.iter().map(move |line| (law, line)))
    };
    let said = each().filter_map(|(law, line)| {
        let last = line.points.last()?;
        let (_, stop) = axis.stops.iter().find(|(x, _)| *x == last.x)?;
        let rate = last.said(percent);
        Some(format!("{law}, {} {rate} at {stop}", line.label))
    });
    let said = said.collect::<Vec<_>>().join("; ");
    let bars = over_clusters(report, |unit| {
        format!(" Bars: 95% intervals over {unit}s. Points at the same place are set side by side.")
    });
    let bands = match each().any(|(_, line)| line.points.iter().any(|point| point.open)) {
        true => open_bands(report),
        false => String::new(),
    };
    let caption = format!(
        "{title}: a panel for each draft law, all with the same axes. Solid: the optimum α*. Dashed: \
         verifiers; “= name” marks one that attains it.{bars}{bands}"
    );
    let found = finding::rising(&panels, &axis);
    let chart = LinePlot {
        percent: true,
        y_covers: Some([0.0, 0.0]),
        ..LinePlot::new(&title, axis, "accepted, %", Vec::new())
    };
    let canvas = PanelPlot { chart, panels }.draw();
    Some(figure(name, title, (&said, caption), canvas, found))
}

/// Shares of the positions with at least a gap.
pub(super) fn gaps(report: &GapReport) -> Option<Figure> {
    let (at, n) = headline(report)?;
    let bins = HISTOGRAM_EDGES.len() - 1;
    let (mut lines, mut remarks, mut said) = (Vec::new(), Vec::new(), Vec::new());
    for cell in cells_at(report, at, n) {
        for (index, row) in cell.verifiers.iter().enumerate() {
            let histogram = &row.gap.histogram;
            let total: u64 = histogram.iter().sum();
            if total == 0 || histogram.len() != bins {
                continue;
            }
            let name = format!("{}, {}", row.name, cell.scheme);
            if attains(row) {
                remarks.push(format!("{name}: no gap at any position"));
                continue;
            }
            if row.gap.estimate.open().is_some() {
                let bounds = words(&row.gap.estimate, percent);
                remarks.push(format!("{name}: only known to be {bounds} in the mean"));
                continue;
            }
            said.push(format!(
                "{name}: mean {}, none at {} of positions, at most {}",
                percent(row.gap.estimate.mean),
                percent(histogram[0] as f64 / total as f64),
                percent(row.gap.max)
            ));
            let line = Line::solid(name, hue(report, &cell.scheme), at_least(histogram));
            lines.push(line.dashed(index));
        }
    }
    // Where nothing is lost at any position there is nothing to draw.
    if lines.is_empty() {
        return None;
    }
    said.extend(remarks.iter().cloned());
    let title = format!("How often the gap is large, {}", place(at, n));
    let stops = [1e-4, 1e-3, 0.01, 0.1, 1.0].map(|x: f64| (x, (100.0 * x).to_string()));
    let x = Axis {
        log: true,
        ..Axis::new("gap, α* − acceptance, points", stops)
    };
    let plot = LinePlot {
        percent: true,
        y_covers: Some([0.0, 1.0]),
        remarks,
        ..LinePlot::new(title, x, "positions with at least this gap, %", lines)
    };
    let caption = format!(
        "{}: share of {} with at least the gap under it. Points: counted; between them \
         straight lines.",
        plot.title,
        counted(report.positions, "position")
    );
    let name = format!("gap-distribution-t{}-n{n}", temperature(at));
    let found = finding::spread(&plot.lines);
    Some(chart(name, &plot, &said.join("; "), caption, found))
}

/// The share of positions with at least the gap of each edge that is drawn.
fn at_least(histogram: &[u64]) -> Vec<Point> {
    let total: u64 = histogram.iter().sum();
    (0..HISTOGRAM_EDGES.len())
        .filter(|&edge| HISTOGRAM_EDGES[edge] >= 1e-4)
        .map(|edge| {
            let above: u64 = histogram.iter().skip(edge).sum();
            Point::new(HISTOGRAM_EDGES[edge], above as f64 / total.max(1) as f64)
        })
        .collect()
}

/// Draws where the overlap lies, a row for each temperature.
pub(super) fn overlap(report: &GapReport) -> Option<Figure> {
    let (mut rows, mut said) = (Vec::new(), Vec::new());
    for row in (report.overlap.iter()).filter(|row| row.estimate.open().is_none()) {
        let shares = [0.05, 0.25, 0.5, 0.75, 0.95];
        let found = (shares.iter()).filter_map(|&share| quantile(&row.quantiles, share));
        let Ok(quantiles) = <[f64; 5]>::try_from(found.collect::<Vec<_>>()) else {
            continue;
        };
        let label = format!("T = {}", temperature(row.temperature));
        let [low, _, median, _, high] = quantiles.map(percent);
        let mean = percent(row.estimate.mean);
        said.push(format!(
            "{label}: mean {mean}, median {median}, 5% to 95% quantile {low} to {high}"
        ));
        rows.push(BoxRow {
            label,
            quantiles,
            mean: row.estimate.mean,
        });
    }
    if rows.is_empty() {
        return None;
    }
    let title = "Overlap of target and draft, sum of min(p, q)".to_owned();
    let plot = BoxPlot {
        title: title.clone(),
        label: "overlap, %".to_owned(),
        rows,
    };
    let caption = format!(
        "{title}. Line: 5% to 95% quantile over positions. Box: the middle half. Bar: median. \
         Circle: mean."
    );
    let (said, found) = (said.join("; "), finding::overlapping(&plot.rows));
    Some(figure(
        "overlap",
        title,
        (&said, caption),
        plot.draw(),
        found,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laws_of_a_report_are_drawn_in_colours_of_their_own() {
        use specgap_page::canvas::Ink;
        let laws = specgap_measure::Settings::all_schemes();
        // Beyond the last hue they begin anew.
        let hues = laws.iter().map(|law| law.entry().hue % Ink::HUES);
        let distinct: std::collections::BTreeSet<usize> = hues.collect();
        assert_eq!(distinct.len(), laws.len());
    }

    #[test]
    fn shares_fall_from_edge_to_edge() {
        let mut histogram = vec![0; HISTOGRAM_EDGES.len() - 1];
        (histogram[0], histogram[3], histogram[9]) = (5, 3, 2);
        let points = at_least(&histogram);
        assert_eq!((points[0].x, points[0].y), (1e-4, 0.5));
        assert_eq!((points[1].x, points[1].y), (1e-3, 0.2));
        let last = points[points.len() - 1];
        assert_eq!((last.x, last.y), (1.0, 0.0));
        assert!(points.windows(2).all(|pair| pair[0].y >= pair[1].y));
    }
}
