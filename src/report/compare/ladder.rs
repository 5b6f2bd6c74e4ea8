//! Several drafts of one target as a ladder: rates by how good the draft is.

use super::select::{headline_drafts, headline_temperature, temperatures};
use crate::gap::{ComparedEstimate, ComparedRate, LogComparison};
use crate::report::certainty::{Tally, entry, exactness};
use crate::report::page::{Block, Figure, Section};
use crate::report::plot::{Axis, Line, LinePlot, Point, Stroke};
use crate::report::table::{Column, Entry, Group, Row, Table};
use crate::report::text::{counted, rate, temperature};
use crate::scheme::SchemeName;

/// Logs below which there is no ladder.
const FEWEST: usize = 3;
/// A gap below this counts as none.
const NO_GAP: f64 = 1e-6;

/// Width of the bounds of truncated rows from which on a rate is not drawn.
const TOO_WIDE: f64 = 0.05;

/// What engines do with one draft: scheme, verifier, words.
const ONE_DRAFT: [[&str; 3]; 3] = [
    ["top", "naive", "one-hot"],
    ["with-replacement", "rrs", "sampled"],
    ["with-replacement", "naive", "strict"],
];

/// The section, if all logs are of the same text and there are enough of them.
pub(super) fn section(comparison: &LogComparison) -> Option<Section> {
    if !comparison.paired || comparison.logs.len() < FEWEST {
        return None;
    }
    let at = headline_temperature(comparison)?;
    let n = headline_drafts(comparison)?;
    let mut order: Vec<usize> = (0..comparison.logs.len()).collect();
    let overlap = |log: usize, at: f64| mean(overlap(comparison, at)?, log);
    order.sort_by(|&a, &b| {
        let of = |log| overlap(log, at).unwrap_or(0.0);
        of(a).total_cmp(&of(b))
    });
    let mut blocks = vec![Block::Table(table(comparison, &order, at, n))];
    blocks.extend(by_overlap(comparison, &order, at, n).map(Block::Figure));
    blocks.extend(one_draft(comparison, &order, at).map(Block::Figure));
    if let Some(&middle) = order.get(order.len() / 2) {
        blocks.extend(by_temperature(comparison, middle, n).map(Block::Figure));
    }
    let others: Vec<Block> = temperatures(comparison)
        .into_iter()
        .filter(|&other| other != at)
        .flat_map(|other| {
            [
                by_overlap(comparison, &order, other, n),
                one_draft(comparison, &order, other),
            ]
        })
        .flatten()
        .map(Block::Figure)
        .collect();
    if !others.is_empty() {
        blocks.push(Block::Details {
            summary: "The same at the other temperatures".to_owned(),
            blocks: others,
        });
    }
    Some(Section {
        main: true,
        ..Section::new(
            "ladder",
            "By the quality of the draft",
            "How rates and losses depend on how near the draft is to the target.",
            blocks,
        )
    })
}

fn overlap(comparison: &LogComparison, at: f64) -> Option<&ComparedRate> {
    let mut rates = comparison.rates.iter();
    rates.find(|rate| rate.what == "overlap" && rate.temperature == at)
}

fn mean(rate: &ComparedRate, log: usize) -> Option<f64> {
    Some(estimate(rate, log)?.estimate.mean)
}

fn estimate(rate: &ComparedRate, log: usize) -> Option<&ComparedEstimate> {
    rate.estimates.get(log)?.as_ref()
}

/// Optima and acceptances of n drafts at a temperature, in their order.
fn rates_of(comparison: &LogComparison, at: f64, n: usize) -> impl Iterator<Item = &ComparedRate> {
    let here = move |rate: &&ComparedRate| rate.temperature == at && rate.drafts == Some(n);
    comparison.rates.iter().filter(here)
}

/// One of the three ways of engines with one draft.
fn way<'a>(
    comparison: &'a LogComparison,
    at: f64,
    [scheme, verifier, _]: [&str; 3],
) -> Option<&'a ComparedRate> {
    rates_of(comparison, at, 1).find(|rate| {
        rate.scheme.as_deref() == Some(scheme) && rate.verifier.as_deref() == Some(verifier)
    })
}

/// A log a row, from the worst draft to the best.
fn table(comparison: &LogComparison, order: &[usize], at: f64, n: usize) -> Table {
    let mut columns = vec![
        Column::words("draft"),
        Column::number("overlap").over("one draft"),
    ];
    let ways: Vec<(&ComparedRate, &str)> = (ONE_DRAFT.into_iter())
        .filter_map(|one| Some((way(comparison, at, one)?, one[2])))
        .filter(|(_, words)| *words != "sampled")
        .collect();
    columns.extend(
        ways.iter()
            .map(|(_, words)| Column::number(*words).over("one draft")),
    );
    let rates: Vec<&ComparedRate> = rates_of(comparison, at, n).collect();
    // A verifier that attains its optimum everywhere is no column of its own.
    let shown: Vec<&ComparedRate> = (rates.iter().copied())
        .filter(|rate| rate.verifier.is_none() || !attains(&rates, rate, order))
        .collect();
    columns.extend(shown.iter().map(|rate| {
        let scheme = rate.scheme.clone().unwrap_or_default();
        Column::number(rate.verifier.as_deref().unwrap_or("α*")).over(scheme)
    }));
    let t = temperature(at);
    let caption = format!(
        "Acceptance by draft at T = {t}; behind the first columns of {}",
        counted(n, "draft")
    );
    let mut table = Table::new(format!("ladder-t{t}"), caption, columns);
    let mut tally = Tally::default();
    let mut known = |one: Option<&ComparedEstimate>, name: &str| {
        one.map_or_else(Entry::none, |one| {
            tally.add(one.kind, one.width_max, name);
            entry(&one.estimate, &exactness(one.kind, one.width_max))
        })
    };
    let mut rows = Vec::new();
    for &log in order {
        let folder = comparison
            .logs
            .get(log)
            .map_or("", |log| log.folder.as_str());
        let own = overlap(comparison, at).and_then(|rate| estimate(rate, log));
        let mut entries = vec![Entry::plain(folder), known(own, "the overlap")];
        entries.extend(
            ways.iter()
                .map(|(rate, words)| known(estimate(rate, log), words)),
        );
        entries.extend(shown.iter().map(|rate| {
            let name = rate.verifier.as_deref().or(rate.scheme.as_deref());
            known(estimate(rate, log), name.unwrap_or_default())
        }));
        rows.push(Row::new(entries));
    }
    table.groups.push(Group {
        title: None,
        rows,
        main: true,
    });
    table.notes = vec![
        "From the least overlap to the largest. The overlap is what one sampled draft is accepted \
         with; one-hot: the draft's likeliest token, kept with its p; strict: a sampled draft that \
         has to be the target's own draw. A verifier that attains its α* has no column."
            .to_owned(),
        tally.line(),
    ];
    table
}

/// Whether a verifier's rate is its optimum in all logs.
fn attains(rates: &[&ComparedRate], rate: &ComparedRate, order: &[usize]) -> bool {
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

/// The colour of a law, that of its entry in the table of laws.
fn hue(scheme: Option<&str>) -> usize {
    let known = scheme.and_then(|name| name.parse::<SchemeName>().ok());
    known.map_or(SchemeName::ALL.len(), |name| name.entry().hue)
}

/// A rate with its interval; nothing where truncated rows leave it open by more than
/// [`TOO_WIDE`], so that a middle of bounds would look like a number.
fn point(x: f64, one: &ComparedEstimate) -> Option<Point> {
    let open = one
        .estimate
        .truncation
        .map_or(0.0, |[low, high]| high - low);
    (open <= TOO_WIDE).then(|| Point {
        interval: one.estimate.ci95.map(|end| end.clamp(0.0, 1.0)),
        ..Point::new(x, one.estimate.mean.clamp(0.0, 1.0))
    })
}

/// The rates that [`point`] leaves out, in words.
fn too_open<'a>(rates: impl Iterator<Item = &'a ComparedRate>) -> Vec<String> {
    let mut all = Vec::new();
    for one in rates {
        let bounds = one.estimates.iter().flatten();
        let widest = bounds
            .filter_map(|one| one.estimate.truncation)
            .fold(0.0, |widest: f64, [low, high]| widest.max(high - low));
        if widest > TOO_WIDE {
            let name = one.verifier.as_deref().unwrap_or("α*");
            let law = one.scheme.as_deref().unwrap_or_default();
            all.push(format!("{name}, {law}: left open by {}", rate(widest)));
        }
    }
    all
}

/// A line for each optimum and verifier over some places: (x, the estimate there).
fn lines<'a>(
    rates: &[&'a ComparedRate],
    order: &[usize],
    points: impl Fn(&'a ComparedRate) -> Vec<Point>,
) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut of_law = 0;
    for rate in rates {
        let scheme = rate.scheme.as_deref();
        let law = scheme.unwrap_or_default();
        let Some(verifier) = &rate.verifier else {
            of_law = lines.len();
            lines.push(Line {
                label: format!("α* {law}"),
                hue: hue(scheme),
                stroke: Stroke::Solid,
                points: points(rate),
            });
            continue;
        };
        if attains(rates, rate, order) {
            if let Some(line) = lines.get_mut(of_law) {
                line.label.push_str(&format!(" = {verifier}"));
            }
            continue;
        }
        lines.push(Line {
            label: format!("{verifier}, {law}"),
            hue: hue(scheme),
            stroke: Stroke::Dashed(lines.len() - of_law - 1),
            points: points(rate),
        });
    }
    lines.retain(|line| !line.points.is_empty());
    lines
}

/// The overlaps of logs at a temperature, in their order.
fn places(comparison: &LogComparison, order: &[usize], at: f64) -> Vec<(f64, usize)> {
    let Some(rate) = overlap(comparison, at) else {
        return Vec::new();
    };
    let mut places: Vec<(f64, usize)> = (order.iter())
        .filter_map(|&log| Some((mean(rate, log)?, log)))
        .collect();
    places.sort_by(|a, b| a.0.total_cmp(&b.0));
    places
}

/// Tenths around the overlaps.
fn axis(places: &[(f64, usize)], at: f64) -> Axis {
    let low = places.first().map_or(0.0, |place| (place.0 * 10.0).floor());
    let high = places.last().map_or(10.0, |place| (place.0 * 10.0).ceil());
    let tenths = (low as usize)..=(high as usize).max(low as usize + 1);
    Axis {
        label: format!("overlap of draft and target at T = {}", temperature(at)),
        stops: tenths
            .map(|tenth| (tenth as f64 / 10.0, format!("{:.1}", tenth as f64 / 10.0)))
            .collect(),
        log: false,
    }
}

fn names(comparison: &LogComparison, places: &[(f64, usize)]) -> String {
    let name = |log: usize| {
        comparison
            .logs
            .get(log)
            .map_or("", |log| log.folder.as_str())
    };
    let words: Vec<String> = places
        .iter()
        .map(|&(x, log)| format!("{} {}", name(log), rate(x)))
        .collect();
    words.join(", ")
}

fn by_overlap(comparison: &LogComparison, order: &[usize], at: f64, n: usize) -> Option<Figure> {
    let places = places(comparison, order, at);
    let rates: Vec<&ComparedRate> = rates_of(comparison, at, n).collect();
    let points = |rate: &ComparedRate| -> Vec<Point> {
        (places.iter())
            .filter_map(|&(x, log)| point(x, estimate(rate, log)?))
            .collect()
    };
    let lines = lines(&rates, order, points);
    if lines.is_empty() || places.is_empty() {
        return None;
    }
    let t = temperature(at);
    let title = format!("Acceptance by overlap, T = {t}, n = {n}");
    figure(
        comparison,
        title,
        format!("acceptance-by-overlap-t{t}-n{n}"),
        &places,
        at,
        lines,
        too_open(rates.iter().copied()),
        "Solid: optima α*. Dashed: verifiers, in the hue of their drafts; “= name” marks a verifier \
         that attains the optimum.",
    )
}

fn one_draft(comparison: &LogComparison, order: &[usize], at: f64) -> Option<Figure> {
    let places = places(comparison, order, at);
    let lines: Vec<Line> = (ONE_DRAFT.into_iter().enumerate())
        .filter_map(|(number, one)| {
            let rate = way(comparison, at, one)?;
            Some(Line {
                label: match one[2] {
                    "one-hot" => "one-hot: p(argmax q)".to_owned(),
                    "sampled" => "sampled: sum of min(p, q), the overlap".to_owned(),
                    _ => "strict: sum of p q".to_owned(),
                },
                hue: hue(Some(one[0])),
                stroke: match one[2] {
                    "strict" => Stroke::Dashed(number),
                    _ => Stroke::Solid,
                },
                points: (places.iter())
                    .filter_map(|&(x, log)| point(x, estimate(rate, log)?))
                    .collect(),
            })
        })
        .collect();
    if lines.len() < 2 || places.is_empty() {
        return None;
    }
    let t = temperature(at);
    figure(
        comparison,
        format!("One draft: one-hot, sampled or strict, T = {t}"),
        format!("one-draft-by-overlap-t{t}"),
        &places,
        at,
        lines,
        Vec::new(),
        "One-hot drafts the draft's likeliest token, the others sample.",
    )
}

#[allow(clippy::too_many_arguments)] // a figure's parts
fn figure(
    comparison: &LogComparison,
    title: String,
    name: String,
    places: &[(f64, usize)],
    at: f64,
    lines: Vec<Line>,
    remarks: Vec<String>,
    says: &str,
) -> Option<Figure> {
    let said: Vec<String> = lines
        .iter()
        .filter_map(|line| {
            let (first, last) = (line.points.first()?, line.points.last()?);
            Some(format!(
                "{} goes from {} to {}",
                line.label,
                rate(first.y),
                rate(last.y)
            ))
        })
        .collect();
    let plot = LinePlot {
        title: title.clone(),
        x: axis(places, at),
        y_label: "acceptance rate".to_owned(),
        lines,
        remarks,
        ..LinePlot::default()
    };
    Some(Figure {
        alt: format!("{title}. {}.", said.join("; ")),
        caption: format!(
            "{title}. {says} Bars: 95% intervals. One place a draft: {}.",
            names(comparison, places)
        ),
        canvas: plot.draw(),
        name,
        title,
    })
}

/// Rates of one log by temperature.
fn by_temperature(comparison: &LogComparison, log: usize, n: usize) -> Option<Figure> {
    let all = temperatures(comparison);
    if all.len() < 2 {
        return None;
    }
    let first: Vec<&ComparedRate> = rates_of(comparison, *all.first()?, n).collect();
    let at = |temperature: f64, like: &ComparedRate| {
        let same =
            |rate: &&ComparedRate| (&rate.scheme, &rate.verifier) == (&like.scheme, &like.verifier);
        let found = rates_of(comparison, temperature, n).find(same)?;
        point(temperature, estimate(found, log)?)
    };
    let points =
        |rate: &ComparedRate| -> Vec<Point> { all.iter().filter_map(|&t| at(t, rate)).collect() };
    let lines = lines(&first, &[log], points);
    if lines.is_empty() {
        return None;
    }
    let folder = &comparison.logs.get(log)?.folder;
    let title = format!("Acceptance by temperature, {folder}, n = {n}");
    let said: Vec<String> = lines
        .iter()
        .filter_map(|line| Some(format!("{} {}", line.label, rate(line.points.last()?.y))))
        .collect();
    let hottest = all.last().copied().unwrap_or(1.0);
    let plot = LinePlot {
        title: title.clone(),
        x: Axis {
            label: "temperature T of target and draft".to_owned(),
            stops: all.iter().map(|&t| (t, temperature(t))).collect(),
            log: false,
        },
        y_label: "acceptance rate".to_owned(),
        lines,
        ..LinePlot::default()
    };
    Some(Figure {
        name: format!("acceptance-by-temperature-n{n}"),
        alt: format!(
            "{title}. At T = {}: {}.",
            temperature(hottest),
            said.join("; ")
        ),
        caption: format!(
            "{title}: the draft in the middle of the ladder. Solid: optima α*. Dashed: verifiers, in \
             the hue of their drafts. Bars: 95% intervals."
        ),
        canvas: plot.draw(),
        title,
    })
}
