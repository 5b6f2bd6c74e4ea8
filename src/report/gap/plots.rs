//! The pictures of a gap report.

use super::Picture;
use super::words::{
    attains, cell, count, drafts, headline, percent, quantile, rate, schemes, temperature,
    temperatures, verifiers,
};
use crate::gap::{Estimate, GapReport, HISTOGRAM_EDGES};
use crate::report::plot::PlotError;
use crate::report::scene::{Align, Ink, Scene};
use crate::scheme::SchemeName;

const WIDTH: f64 = 760.0;
const TITLE: f64 = 15.0;
const LABEL: f64 = 12.0;
/// Least distance of two labels.
const APART: f64 = 17.0;

/// Every picture that the report has data for.
///
/// # Errors
/// A drawing back end that fails.
pub fn pictures(report: &GapReport) -> Result<Vec<Picture>, PlotError> {
    let mut pictures = Vec::new();
    for at in temperatures(report) {
        pictures.extend(by_drafts(report, at)?);
    }
    if let Some((at, n)) = headline(report) {
        if temperatures(report).len() > 1 {
            pictures.extend(by_temperature(report, n)?);
        }
        pictures.extend(gap_distribution(report, at, n)?);
    }
    pictures.extend(overlap(report)?);
    Ok(pictures)
}

struct Line {
    label: String,
    hue: Ink,
    /// Dashes of a verifier; none of an optimum.
    dashes: &'static [f64],
    optimum: bool,
    points: Vec<(f64, Estimate)>,
}

const DASHES: [&[f64]; 4] = [
    &[6.0, 4.0],
    &[2.0, 3.0],
    &[9.0, 3.0, 2.0, 3.0],
    &[12.0, 5.0],
];

/// The same hue for the same drafts in every picture of every report.
fn hue(report: &GapReport, scheme: &str) -> Ink {
    let known = |name: &str| name.parse::<SchemeName>().ok();
    if let Some(scheme) = known(scheme) {
        return Ink::Hue(scheme.entry().hue);
    }
    // A report of another version may have schemes that this one does not know.
    let index = schemes(report)
        .into_iter()
        .filter(|name| known(name).is_none())
        .position(|name| name == scheme);
    Ink::Hue(index.unwrap_or(0) + SchemeName::ALL.len())
}

/// One line for every optimum and verifier, over the cells that `x` places.
fn lines(report: &GapReport, places: &[(f64, f64, usize)]) -> Vec<Line> {
    let mut lines = Vec::new();
    let names: Vec<&str> = schemes(report)
        .into_iter()
        .flat_map(|scheme| verifiers(report, scheme))
        .collect();
    for scheme in schemes(report) {
        let found: Vec<_> = places
            .iter()
            .filter_map(|&(x, at, n)| cell(report, at, n, scheme).map(|cell| (x, cell)))
            .collect();
        if found.is_empty() {
            continue;
        }
        let partly = if found.len() < places.len() && places.len() > 1 {
            let at: Vec<String> = found.iter().map(|(x, _)| x.to_string()).collect();
            format!(" (at {})", at.join(", "))
        } else {
            String::new()
        };
        let mut optimum = Line {
            label: format!("α* {scheme}"),
            hue: hue(report, scheme),
            dashes: &[],
            optimum: true,
            points: found
                .iter()
                .map(|(x, cell)| (*x, cell.optimal_acceptance_rate.estimate))
                .collect(),
        };
        let mut below = Vec::new();
        for (index, name) in verifiers(report, scheme).into_iter().enumerate() {
            let rows: Vec<_> = found
                .iter()
                .filter_map(|(x, cell)| {
                    cell.verifiers
                        .iter()
                        .find(|row| row.name == name)
                        .map(|row| (*x, row))
                })
                .collect();
            if rows.len() == found.len() && rows.iter().all(|(_, row)| attains(row)) {
                optimum.label.push_str(&format!(" = {name}"));
                continue;
            }
            let shared = names.iter().filter(|other| **other == name).count() > 1;
            let place = if shared {
                format!(", {scheme}")
            } else {
                String::new()
            };
            below.push(Line {
                label: format!("{name}{place}{partly}"),
                hue: optimum.hue,
                dashes: DASHES[index % DASHES.len()],
                optimum: false,
                points: rows
                    .into_iter()
                    .map(|(x, row)| (x, row.acceptance))
                    .collect(),
            });
        }
        optimum.label.push_str(&partly);
        lines.push(optimum);
        lines.extend(below.into_iter().filter(|line| !line.points.is_empty()));
    }
    lines
}

fn by_drafts(report: &GapReport, at: f64) -> Result<Option<Picture>, PlotError> {
    let places: Vec<(f64, f64, usize)> = drafts(report)
        .into_iter()
        .map(|n| (n as f64, at, n))
        .collect();
    let present: Vec<(f64, f64, usize)> = places
        .into_iter()
        .filter(|&(_, at, n)| {
            report
                .cells
                .iter()
                .any(|cell| cell.temperature == at && cell.drafts == n)
        })
        .collect();
    let t = temperature(at);
    curves(
        report,
        &lines(report, &present),
        format!("acceptance-by-drafts-t{t}"),
        format!("Acceptance rate by drafts, T = {t}"),
        "drafts n",
        |n| n.to_string(),
    )
}

fn by_temperature(report: &GapReport, n: usize) -> Result<Option<Picture>, PlotError> {
    let places: Vec<(f64, f64, usize)> = temperatures(report)
        .into_iter()
        .filter(|&at| {
            report
                .cells
                .iter()
                .any(|cell| cell.temperature == at && cell.drafts == n)
        })
        .map(|at| (at, at, n))
        .collect();
    if places.len() < 2 {
        return Ok(None);
    }
    curves(
        report,
        &lines(report, &places),
        format!("acceptance-by-temperature-n{n}"),
        format!("Acceptance rate by temperature, n = {n}"),
        "temperature T",
        temperature,
    )
}

/// Lines with intervals, each labelled at its end.
fn curves(
    report: &GapReport,
    lines: &[Line],
    name: String,
    title: String,
    x_label: &str,
    name_stop: impl Fn(f64) -> String,
) -> Result<Option<Picture>, PlotError> {
    let mut stops: Vec<f64> = lines
        .iter()
        .flat_map(|line| line.points.iter().map(|(x, _)| *x))
        .collect();
    stops.sort_by(f64::total_cmp);
    stops.dedup();
    let (Some(&x_low), Some(&x_high)) = (stops.first(), stops.last()) else {
        return Ok(None);
    };
    let values = || {
        lines
            .iter()
            .flat_map(|line| line.points.iter().map(|(_, value)| value))
    };
    let low = values().fold(f64::INFINITY, |low, v| low.min(v.ci95[0]).min(v.mean));
    let high = values().fold(f64::NEG_INFINITY, |high, v| high.max(v.ci95[1]).max(v.mean));
    // Intervals reach out of [0, 1]; rates do not.
    let (low, high) = (low.max(0.0), high.min(1.0));
    let ticks = ticks(low, high, 6);
    let bottom = low.min(ticks.values.first().copied().unwrap_or(low));
    let top = high.max(ticks.values.last().copied().unwrap_or(high));

    let labels = lines.iter().map(|line| Scene::width_of(&line.label, LABEL));
    let room = labels.fold(0.0, f64::max) + SWATCH + 40.0;
    let (left, upper) = (54.0, 62.0);
    let right = (WIDTH - room).max(left + 200.0);
    let width = right + room;
    let plot_height = (lines.len() as f64 * APART + 20.0).max(330.0);
    let lower = upper + plot_height;
    let height = lower + 58.0;
    let mut scene = Scene::new(width.ceil() as u32, height.ceil() as u32);
    let gap = stops
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .fold(f64::INFINITY, f64::min);
    let inset = 26.0;
    let x_of = |x: f64| {
        if x_high > x_low {
            left + inset + (x - x_low) / (x_high - x_low) * (right - left - 2.0 * inset)
        } else {
            (left + right) / 2.0
        }
    };
    let y_of = |y: f64| {
        let y = y.clamp(bottom, top.max(bottom));
        lower - (y - bottom) / (top - bottom).max(1e-12) * plot_height
    };

    scene.words(&title, (left - 40.0, 20.0), TITLE, Align::Left, Ink::Text);
    scene.words(
        "acceptance rate",
        (left - 40.0, 42.0),
        LABEL,
        Align::Left,
        Ink::Quiet,
    );
    for &tick in &ticks.values {
        let y = y_of(tick);
        scene.line(&[(left, y), (right, y)], Ink::Grid, 1.0);
        scene.words(
            &ticks.text(tick),
            (left - 8.0, y),
            LABEL,
            Align::Right,
            Ink::Quiet,
        );
    }
    scene.line(&[(left, lower), (right, lower)], Ink::Quiet, 1.0);
    for &stop in &stops {
        let x = x_of(stop);
        scene.line(&[(x, lower), (x, lower + 5.0)], Ink::Quiet, 1.0);
        scene.words(
            &name_stop(stop),
            (x, lower + 17.0),
            LABEL,
            Align::Centre,
            Ink::Quiet,
        );
    }
    scene.words(
        x_label,
        ((left + right) / 2.0, lower + 40.0),
        LABEL,
        Align::Centre,
        Ink::Quiet,
    );

    // Points of different lines at the same place stand side by side.
    let spread = if gap.is_finite() {
        (x_of(x_low + gap) - x_of(x_low)) * 0.22
    } else {
        90.0
    }
    .min(90.0);
    let aside = |index: usize| {
        if lines.len() > 1 {
            (index as f64 / (lines.len() - 1) as f64 - 0.5) * spread.min(2.0 * inset - 14.0)
        } else {
            0.0
        }
    };
    let ends: Vec<f64> = lines
        .iter()
        .map(|line| {
            line.points
                .last()
                .map_or(upper, |(_, value)| y_of(value.mean))
        })
        .collect();
    let heights = spread_out(&ends, APART, upper - 6.0, lower);
    // Verifiers first, so that optima lie on top.
    let mut order: Vec<usize> = (0..lines.len()).collect();
    order.sort_by_key(|&index| lines[index].optimum);
    for index in order {
        let line = &lines[index];
        let at = |x: f64, y: f64| (x_of(x) + aside(index), y_of(y));
        let points: Vec<(f64, f64)> = line
            .points
            .iter()
            .map(|(x, value)| at(*x, value.mean))
            .collect();
        let stroke = if line.optimum { 2.2 } else { 1.5 };
        if let Some(&(x, y)) = points
            .last()
            .filter(|_| line.points.last().is_some_and(|(x, _)| *x == x_high))
        {
            let (from, to) = ((x + 6.0, y), (right + 10.0, heights[index]));
            scene.line(&[from, to, (to.0 + 6.0, to.1)], Ink::Grid, 1.0);
        }
        for (x, value) in &line.points {
            let [low, high] = value.ci95;
            if high > low {
                scene.line(&[at(*x, low), at(*x, high)], line.hue, 1.0);
            }
        }
        if points.len() > 1 {
            scene.dashed(&points, line.hue, stroke, line.dashes);
        }
        for &point in &points {
            marker(&mut scene, point, line);
        }
        let label_at = (right + 20.0, heights[index]);
        let swatch = [label_at, (label_at.0 + SWATCH, label_at.1)];
        scene.dashed(&swatch, line.hue, stroke, line.dashes);
        marker(&mut scene, (label_at.0 + SWATCH / 2.0, label_at.1), line);
        let text_at = (label_at.0 + SWATCH + 7.0, label_at.1);
        scene.words(&line.label, text_at, LABEL, Align::Left, Ink::Text);
    }

    let said: Vec<String> = lines
        .iter()
        .filter_map(|line| {
            let (x, value) = line.points.last()?;
            Some(format!(
                "{} {} at {}",
                line.label,
                rate(value.mean),
                name_stop(*x)
            ))
        })
        .collect();
    let alt = format!("{title}. {}.", said.join("; "));
    let mut caption = format!(
        "{title}. Solid: optima α*. Dashed: verifiers, in the hue of their drafts; “= name” marks \
         a verifier that attains the optimum."
    );
    if report.clusters > 1 {
        caption.push_str(" Bars: 95% intervals. Points at the same place are set side by side.");
    }
    finish(&scene, name, &title, alt, caption).map(Some)
}

const SWATCH: f64 = 26.0;

fn marker(scene: &mut Scene, at: (f64, f64), line: &Line) {
    if line.optimum {
        scene.disc(at, 3.6, line.hue);
    } else {
        scene.ring(at, 3.6, line.hue);
    }
}

fn finish(
    scene: &Scene,
    name: String,
    title: &str,
    alt: String,
    caption: String,
) -> Result<Picture, PlotError> {
    Ok(Picture {
        svg: scene.svg(title, &alt)?,
        png: scene.png()?,
        name,
        alt,
        caption,
    })
}

/// Round values between two bounds.
struct Ticks {
    values: Vec<f64>,
    decimals: usize,
}

impl Ticks {
    fn text(&self, value: f64) -> String {
        format!("{value:.*}", self.decimals)
    }
}

/// About `wanted` round values that enclose both bounds, within [0, 1] if those
/// are.
fn ticks(low: f64, high: f64, wanted: usize) -> Ticks {
    if !(low.is_finite() && high.is_finite()) || high < low {
        return Ticks {
            values: vec![0.0, 1.0],
            decimals: 1,
        };
    }
    let span = (high - low).max(1e-4);
    let rough = span / wanted as f64;
    let power = 10f64.powi(rough.log10().floor() as i32);
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|round| round * power)
        .find(|step| *step >= rough * 0.999)
        .unwrap_or(power * 10.0);
    let first = (low / step + 1e-9).floor();
    let last = (high / step - 1e-9).ceil().max(first + 1.0);
    let last = last.min(first + 4.0 * wanted as f64);
    let mut values = Vec::new();
    let mut at = first;
    while at <= last {
        values.push(at * step);
        at += 1.0;
    }
    let decimals = (-step.log10().floor()).clamp(0.0, 12.0) as usize;
    Ticks { values, decimals }
}

/// Heights as near as possible to the wanted ones, `apart` from each other and
/// within the bounds where they have room: neighbours that would overlap form
/// a pile around the mean of what they want.
fn spread_out(wanted: &[f64], apart: f64, upper: f64, lower: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]));
    // Each pile: how many, and the mean place of its first.
    let mut piles: Vec<(usize, f64)> = Vec::new();
    for &index in &order {
        let mut size = 1;
        let mut first = wanted[index];
        while let Some(&(below, start)) = piles.last() {
            if start + below as f64 * apart <= first {
                break;
            }
            let (a, b) = (below as f64, size as f64);
            first = (a * start + b * (first - a * apart)) / (a + b);
            size += below;
            piles.pop();
        }
        // Bounds hold a pile back, which may make it meet the one before.
        let most = lower - (size as f64 - 1.0) * apart;
        first = first.min(most).max(upper);
        piles.push((size, first));
    }
    // A pile held at the lower bound may still reach into those above it.
    let mut floor = f64::INFINITY;
    for (size, first) in piles.iter_mut().rev() {
        *first = first.min(floor - *size as f64 * apart);
        floor = *first;
    }
    let mut heights = vec![0.0; wanted.len()];
    let mut places = order.into_iter();
    for (size, first) in piles {
        for step in 0..size {
            if let Some(index) = places.next() {
                heights[index] = first + step as f64 * apart;
            }
        }
    }
    heights
}

/// How gaps are distributed over positions, a row for each verifier.
fn gap_distribution(report: &GapReport, at: f64, n: usize) -> Result<Option<Picture>, PlotError> {
    let bins = HISTOGRAM_EDGES.len() - 1;
    let mut rows = Vec::new();
    for scheme in schemes(report) {
        let Some(cell) = cell(report, at, n, scheme) else {
            continue;
        };
        for verifier in &cell.verifiers {
            let total: u64 = verifier.gap.histogram.iter().sum();
            if total > 0 && verifier.gap.histogram.len() == bins {
                let share = |bin: &u64| *bin as f64 / total as f64;
                let shares: Vec<f64> = verifier.gap.histogram.iter().map(share).collect();
                rows.push((scheme, verifier, shares));
            }
        }
    }
    if rows.is_empty() {
        return Ok(None);
    }
    let (spread, none): (Vec<_>, Vec<_>) = rows
        .into_iter()
        .partition(|(_, verifier, _)| !attains(verifier));
    let most = spread
        .iter()
        .flat_map(|(_, _, shares)| shares)
        .fold(0.0_f64, |a, b| a.max(*b));
    let most = if most > 0.0 { most } else { 1.0 };
    let title = format!("Gap to the optimum, T = {}, n = {n}", temperature(at));
    let names = || {
        spread
            .iter()
            .flat_map(|(scheme, verifier, _)| [*scheme, &verifier.name])
    };
    let left = names()
        .map(|name| Scene::width_of(name, LABEL))
        .fold(110.0, f64::max)
        + 34.0;
    let right = WIDTH - 22.0;
    let (upper, row_height, tall) = (54.0, 88.0, 58.0);
    let spread_end = upper + spread.len() as f64 * row_height;
    let axis_room = if spread.is_empty() { 0.0 } else { 56.0 };
    let height = spread_end + axis_room + none.len() as f64 * 20.0 + 14.0;
    let mut scene = Scene::new(WIDTH as u32, height.ceil() as u32);
    scene.words(&title, (14.0, 20.0), TITLE, Align::Left, Ink::Text);
    let said = "share of positions in each bin of the gap";
    scene.words(said, (14.0, 42.0), LABEL, Align::Left, Ink::Quiet);
    let bin_width = (right - left) / bins as f64;
    for (index, (scheme, verifier, shares)) in spread.iter().enumerate() {
        let base = upper + (index as f64 + 1.0) * row_height;
        let hue = hue(report, scheme);
        scene.words(
            &verifier.name,
            (14.0, base - 40.0),
            LABEL + 1.0,
            Align::Left,
            Ink::Text,
        );
        scene.words(
            scheme,
            (14.0, base - 23.0),
            LABEL - 1.0,
            Align::Left,
            Ink::Quiet,
        );
        let mean = format!("mean {}", rate(verifier.gap.estimate.mean));
        scene.words(
            &mean,
            (14.0, base - 8.0),
            LABEL - 1.0,
            Align::Left,
            Ink::Quiet,
        );
        for (bin, share) in shares.iter().enumerate() {
            let x = left + bin as f64 * bin_width;
            let tall = share / most * tall;
            let bar = [(x + 1.5, base - tall), (x + bin_width - 1.5, base)];
            if *share > 0.0 {
                scene.block(bar, hue, 1.0);
                let text = share_text(*share);
                let place = (x + bin_width / 2.0, base - tall - 8.0);
                scene.words(&text, place, LABEL - 2.5, Align::Centre, Ink::Quiet);
            }
        }
        scene.line(&[(left, base), (right, base)], Ink::Quiet, 1.0);
    }
    if !spread.is_empty() {
        for (index, edge) in HISTOGRAM_EDGES.iter().enumerate().skip(1) {
            let x = left + index as f64 * bin_width;
            scene.line(&[(x, spread_end), (x, spread_end + 4.0)], Ink::Quiet, 1.0);
            if index == 1 {
                // The first bin has a name instead.
                continue;
            }
            let text = if *edge < 1e-3 {
                format!("{edge:e}")
            } else {
                edge.to_string()
            };
            let place = (x, spread_end + 15.0);
            let align = if index + 1 == HISTOGRAM_EDGES.len() {
                Align::Right
            } else {
                Align::Centre
            };
            let place = if align == Align::Right {
                (place.0 + 3.0, place.1)
            } else {
                place
            };
            scene.words(&text, place, LABEL - 1.5, align, Ink::Quiet);
        }
        let place = (left + bin_width / 2.0, spread_end + 15.0);
        scene.words("none", place, LABEL - 1.5, Align::Centre, Ink::Quiet);
        let place = ((left + right) / 2.0, spread_end + 36.0);
        scene.words(
            "gap, α* − acceptance",
            place,
            LABEL,
            Align::Centre,
            Ink::Quiet,
        );
    }
    for (index, (scheme, verifier, _)) in none.iter().enumerate() {
        let text = format!(
            "{} ({scheme} drafts): no gap at any position",
            verifier.name
        );
        let place = (14.0, spread_end + axis_room + 6.0 + index as f64 * 20.0);
        scene.words(&text, place, LABEL, Align::Left, Ink::Quiet);
    }
    let said: Vec<String> = spread
        .iter()
        .map(|(scheme, verifier, shares)| {
            format!(
                "{}, {scheme}: mean {}, none at {} of positions, at most {}",
                verifier.name,
                rate(verifier.gap.estimate.mean),
                percent(shares[0]),
                rate(verifier.gap.max)
            )
        })
        .chain(none.iter().map(|(scheme, verifier, _)| {
            format!(
                "{} ({scheme} drafts): no gap at any position",
                verifier.name
            )
        }))
        .collect();
    let alt = format!("{title}. {}.", said.join("; "));
    let caption = format!(
        "{title}: share of the {} positions in each bin. Bins widen to the right; “none” is a gap \
         below 1e-6.",
        count(report.positions)
    );
    let name = format!("gap-distribution-t{}-n{n}", temperature(at));
    finish(&scene, name, &title, alt, caption).map(Some)
}

fn share_text(share: f64) -> String {
    let percent = 100.0 * share;
    if percent < 0.95 {
        "<1%".to_owned()
    } else {
        format!("{percent:.0}%")
    }
}

/// Where the overlap lies, a row for each temperature.
fn overlap(report: &GapReport) -> Result<Option<Picture>, PlotError> {
    let rows: Vec<_> = report
        .overlap
        .iter()
        .filter_map(|row| {
            let value = |share| quantile(&row.quantiles, share);
            Some((
                row,
                [
                    value(0.05)?,
                    value(0.25)?,
                    value(0.5)?,
                    value(0.75)?,
                    value(0.95)?,
                ],
            ))
        })
        .collect();
    if rows.is_empty() {
        return Ok(None);
    }
    let title = "Overlap of target and draft, sum of min(p, q)".to_owned();
    let (left, right, upper, row_height) = (90.0, WIDTH - 112.0, 48.0, 34.0);
    let base = upper + rows.len() as f64 * row_height;
    let mut scene = Scene::new(WIDTH as u32, (base + 56.0).ceil() as u32);
    scene.words(&title, (14.0, 20.0), TITLE, Align::Left, Ink::Text);
    let x_of = |value: f64| left + value.clamp(0.0, 1.0) * (right - left);
    for step in 0..=5 {
        let value = f64::from(step) / 5.0;
        let x = x_of(value);
        scene.line(&[(x, upper - 6.0), (x, base)], Ink::Grid, 1.0);
        let place = (x, base + 14.0);
        scene.words(
            &format!("{value:.1}"),
            place,
            LABEL,
            Align::Centre,
            Ink::Quiet,
        );
    }
    scene.words(
        "overlap",
        ((left + right) / 2.0, base + 36.0),
        LABEL,
        Align::Centre,
        Ink::Quiet,
    );
    for (index, (row, [low, lower, middle, higher, high])) in rows.iter().enumerate() {
        let y = upper + (index as f64 + 0.5) * row_height;
        let name = format!("T = {}", temperature(row.temperature));
        scene.words(&name, (left - 14.0, y), LABEL, Align::Right, Ink::Text);
        scene.line(&[(x_of(*low), y), (x_of(*high), y)], Ink::Hue(0), 1.2);
        scene.block(
            [(x_of(*lower), y - 6.0), (x_of(*higher), y + 6.0)],
            Ink::Hue(0),
            0.35,
        );
        scene.line(
            &[(x_of(*middle), y - 8.0), (x_of(*middle), y + 8.0)],
            Ink::Hue(0),
            2.2,
        );
        let mean = row.estimate.mean;
        scene.ring((x_of(mean), y), 4.0, Ink::Text);
        let text = format!("mean {mean:.3}");
        scene.words(&text, (right + 12.0, y), LABEL, Align::Left, Ink::Text);
    }
    let said: Vec<String> = rows
        .iter()
        .map(|(row, [low, _, middle, _, high])| {
            format!(
                "T = {}: mean {}, median {}, 5% to 95% quantile {} to {}",
                temperature(row.temperature),
                rate(row.estimate.mean),
                rate(*middle),
                rate(*low),
                rate(*high)
            )
        })
        .collect();
    let alt = format!("{title}. {}.", said.join("; "));
    let caption = format!(
        "{title}. Line: 5% to 95% quantile over positions. Box: the middle half. Bar: median. \
         Circle: mean."
    );
    finish(&scene, "overlap".to_owned(), &title, alt, caption).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_keep_apart_and_within() {
        for wanted in [
            vec![10.0, 10.0, 10.0],
            vec![0.0, 100.0, 99.0, 98.0, 5.0],
            vec![200.0, 199.0, -50.0],
            vec![50.0],
            vec![],
        ] {
            let heights = spread_out(&wanted, 17.0, 0.0, 120.0);
            assert_eq!(heights.len(), wanted.len());
            let mut sorted = heights.clone();
            sorted.sort_by(f64::total_cmp);
            assert!(
                sorted.windows(2).all(|pair| pair[1] - pair[0] > 16.99),
                "{sorted:?}"
            );
            assert!(
                sorted.iter().all(|height| (-1e-9..=120.0).contains(height)),
                "{sorted:?}"
            );
        }
    }

    #[test]
    fn ticks_enclose_what_they_measure() {
        for (low, high) in [
            (0.5, 0.97),
            (0.9, 0.9),
            (0.0, 1.0),
            (0.99991, 0.99999),
            (0.62, 0.7),
        ] {
            let ticks = ticks(low, high, 6);
            assert!(
                ticks.values[0] <= low + 1e-9,
                "{low} {high} {:?}",
                ticks.values
            );
            assert!(*ticks.values.last().unwrap() >= high - 1e-9);
            assert!((2..=12).contains(&ticks.values.len()), "{:?}", ticks.values);
        }
    }
}
