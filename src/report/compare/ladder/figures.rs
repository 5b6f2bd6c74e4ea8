//! The pictures of a ladder.

use super::super::select::temperatures;
use super::rungs::{Ladder, NO_GAP, ONE_DRAFT, attains, estimate, mean, overlap, way};
use crate::gap::{ComparedEstimate, ComparedRate};
use crate::page::Figure;
use crate::page::plot::{Axis, Line, LinePlot, Point, Stroke};
use crate::page::words::{percent, temperature};
use crate::report::certainty::in_percent;
use crate::scheme::SchemeName;

/// The figures that are seen at once, and those that are folded away.
pub(super) fn all(ladder: &Ladder<'_>) -> (Vec<Figure>, Vec<Figure>) {
    let &Ladder { at, n, .. } = ladder;
    let places_of = [
        ("worst", ladder.order.first()),
        ("middle", ladder.order.get(ladder.order.len() / 2)),
        ("best", ladder.order.last()),
    ];
    let by_temperature = |which: &str| {
        let found = places_of.iter().find(|place| place.0 == which);
        let log = found.and_then(|place| place.1.copied());
        let one = log.into_iter();
        one.flat_map(|log| {
            [
                by_temperature(ladder, log, n, which),
                worth_by_temperature(ladder, log, n, which),
            ]
        })
        .flatten()
        .collect::<Vec<_>>()
    };
    let mut first: Vec<Figure> = [by_overlap(ladder, at, n), worth_by_overlap(ladder, at, n)]
        .into_iter()
        .flatten()
        .collect();
    first.extend(laws_of_fewer(ladder).and_then(|fewer| by_overlap(ladder, at, fewer)));
    first.extend(one_draft(ladder, at));
    first.extend(by_temperature("middle"));
    let mut others = Vec::new();
    for other in temperatures(ladder.comparison) {
        if other != at {
            others.extend(by_overlap(ladder, other, n));
            others.extend(worth_by_overlap(ladder, other, n));
            others.extend(one_draft(ladder, other));
        }
    }
    for which in ["worst", "best"] {
        others.extend(by_temperature(which));
    }
    (first, others)
}

/// The largest number of drafts, below that of the figures, of a law that has no such drafts:
/// SpecHub's pairs, where the figures are of three.
fn laws_of_fewer(ladder: &Ladder<'_>) -> Option<usize> {
    let laws = |n: usize| {
        let rates = ladder.rates(ladder.at, n).into_iter();
        rates.filter_map(|rate| rate.scheme.as_deref())
    };
    let here: Vec<&str> = laws(ladder.n).collect();
    (2..ladder.n)
        .rev()
        .find(|&fewer| laws(fewer).any(|law| !here.contains(&law)))
}

/// How far what is possible is above what is had, or one law's optimum above another's: a
/// difference of two means of the same positions, without an interval.
fn between(x: f64, above: &ComparedRate, below: &ComparedRate, log: usize) -> Option<Point> {
    Some(Point::new(x, mean(above, log)? - mean(below, log)?))
}

/// A line and what a title calls it: the drafts of an optimum, the rule whose loss it is, or one of
/// [`ONE_DRAFT`]; titles speak of no other line.
struct Drawn<'a> {
    spoken: Option<&'a str>,
    line: Line,
}

fn plotted(drawn: Vec<Drawn<'_>>) -> Vec<Line> {
    drawn.into_iter().map(|one| one.line).collect()
}

/// A line for what each verifier leaves of its optimum, and one for what each other law of the
/// drafts makes possible beyond the first law; none where that is nothing everywhere.
fn worth_lines<'a>(
    rates: &[&'a ComparedRate],
    points: impl Fn(&'a ComparedRate, &'a ComparedRate) -> Vec<Point>,
) -> Vec<Drawn<'a>> {
    let optima: Vec<&ComparedRate> = (rates.iter().copied())
        .filter(|rate| rate.verifier.is_none())
        .collect();
    let mut lines = Vec::new();
    for &rate in rates {
        let Some(verifier) = rate.verifier.as_deref() else {
            continue;
        };
        let best = optima.iter().find(|best| best.scheme == rate.scheme);
        let law = rate.scheme.as_deref().unwrap_or_default();
        lines.extend(best.map(|best| Drawn {
            spoken: Some(verifier),
            line: Line {
                label: format!("left by {verifier}, {law}"),
                hue: hue(rate.scheme.as_deref()),
                stroke: Stroke::Dashed(lines.len()),
                points: points(best, rate),
            },
        }));
    }
    if let Some((first, others)) = optima.split_first() {
        let usual = first.scheme.as_deref().unwrap_or_default();
        lines.extend(others.iter().map(|other| Drawn {
            spoken: None,
            line: Line {
                label: format!(
                    "{} instead of {usual}",
                    other.scheme.as_deref().unwrap_or_default()
                ),
                hue: hue(other.scheme.as_deref()),
                stroke: Stroke::Solid,
                points: points(other, first),
            },
        }));
    }
    let is_something =
        |one: &Drawn<'_>| (one.line.points.iter()).any(|point| point.y.abs() > NO_GAP);
    lines.retain(is_something);
    lines
}

const WORTH: &str = "Dashed: what a verifier leaves of its α*. Solid: how far the α* of another law of the \
                     drafts is above that of the first one. Means of the same positions, without intervals.";

fn worth_by_overlap(ladder: &Ladder<'_>, at: f64, n: usize) -> Option<Figure> {
    let places = places(ladder, at);
    let rates = ladder.rates(at, n);
    let lines = worth_lines(&rates, |above, below| {
        (places.iter())
            .filter_map(|&(x, log)| between(x, above, below, log))
            .collect()
    });
    let t = temperature(at);
    over_overlap(
        ladder,
        Drawing {
            title: format!("Verifier or draft law, T = {t}, n = {n}"),
            finding: left(
                &lines,
                ["on the worst draft", "on the best"],
                &format!("n = {n}, T = {t}"),
            ),
            name: format!("worth-by-overlap-t{t}-n{n}"),
            y_label: DIFFERENCE,
            says: WORTH.to_owned(),
            remarks: too_open(rates.into_iter()),
            lines: plotted(lines),
        },
        &places,
        at,
    )
}

/// What stands over an axis of gains and losses.
const DIFFERENCE: &str = "difference, points";

/// The colour of a law, that of its entry in the table of laws.
fn hue(scheme: Option<&str>) -> usize {
    let known = scheme.and_then(|name| name.parse::<SchemeName>().ok());
    known.map_or(SchemeName::ALL.len(), |name| name.entry().hue)
}

/// A rate with its interval; nothing where only its bounds are known.
fn point(x: f64, one: &ComparedEstimate) -> Option<Point> {
    one.estimate.open().is_none().then(|| Point {
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
            .filter_map(|one| one.estimate.open())
            .fold(0.0, |widest: f64, [low, high]| widest.max(high - low));
        if widest > 0.0 {
            let name = one.verifier.as_deref().unwrap_or("α*");
            let law = one.scheme.as_deref().unwrap_or_default();
            all.push(format!("{name}, {law}: left open by {}", percent(widest)));
        }
    }
    all
}

/// A line for each optimum and verifier over some places: (x, the estimate there).
fn lines<'a>(
    rates: &[&'a ComparedRate],
    order: &[usize],
    points: impl Fn(&'a ComparedRate) -> Vec<Point>,
) -> Vec<Drawn<'a>> {
    let mut lines: Vec<Drawn<'a>> = Vec::new();
    let mut of_law = 0;
    for rate in rates {
        let scheme = rate.scheme.as_deref();
        let law = scheme.unwrap_or_default();
        let Some(verifier) = &rate.verifier else {
            of_law = lines.len();
            lines.push(Drawn {
                spoken: Some(law),
                line: Line {
                    label: format!("α* {law}"),
                    hue: hue(scheme),
                    stroke: Stroke::Solid,
                    points: points(rate),
                },
            });
            continue;
        };
        if attains(rates, rate, order) {
            if let Some(optimum) = lines.get_mut(of_law) {
                optimum.line.label.push_str(&format!(" = {verifier}"));
            }
            continue;
        }
        lines.push(Drawn {
            spoken: None,
            line: Line {
                label: format!("{verifier}, {law}"),
                hue: hue(scheme),
                stroke: Stroke::Dashed(lines.len() - of_law - 1),
                points: points(rate),
            },
        });
    }
    lines.retain(|one| !one.line.points.is_empty());
    lines
}

/// The overlaps of logs at a temperature, in their order there.
fn places(ladder: &Ladder<'_>, at: f64) -> Vec<(f64, usize)> {
    let Some(rate) = overlap(ladder.comparison, at) else {
        return Vec::new();
    };
    let mut places: Vec<(f64, usize)> = (ladder.order.iter())
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
    Axis::new(
        format!("overlap of draft and target at T = {}, %", temperature(at)),
        tenths.map(|tenth| (tenth as f64 / 10.0, (10 * tenth).to_string())),
    )
}

fn names(ladder: &Ladder<'_>, places: &[(f64, usize)]) -> String {
    let words: Vec<String> = places
        .iter()
        .map(|&(x, log)| format!("{} {}", ladder.name(log), percent(x)))
        .collect();
    words.join(", ")
}

fn by_overlap(ladder: &Ladder<'_>, at: f64, n: usize) -> Option<Figure> {
    let places = places(ladder, at);
    let rates = ladder.rates(at, n);
    let points = |rate: &ComparedRate| -> Vec<Point> {
        (places.iter())
            .filter_map(|&(x, log)| point(x, estimate(rate, log)?))
            .collect()
    };
    let t = temperature(at);
    let drawn = lines(&rates, &ladder.order, points);
    let drawing = Drawing {
        title: format!("Acceptance by overlap, T = {t}, n = {n}"),
        finding: possible(
            &drawn,
            ["on the worst draft", "on the best"],
            &format!("n = {n}, T = {t}"),
        ),
        name: format!("acceptance-by-overlap-t{t}-n{n}"),
        y_label: "accepted, %",
        says: "Solid: optima α*. Dashed: verifiers, in the hue of their drafts; “= name” marks a \
               verifier that attains the optimum. Bars: 95% intervals."
            .to_owned(),
        lines: plotted(drawn),
        remarks: too_open(rates.iter().copied()),
    };
    over_overlap(ladder, drawing, &places, at)
}

fn one_draft(ladder: &Ladder<'_>, at: f64) -> Option<Figure> {
    let places = places(ladder, at);
    let lines: Vec<Drawn<'_>> = (ONE_DRAFT.into_iter().enumerate())
        .filter_map(|(number, one)| {
            let rate = way(ladder.comparison, at, one)?;
            let line = Line {
                label: match one[2] {
                    "one-hot" => "one-hot: p(argmax q)".to_owned(),
                    "token" => "token: sum of min(p, q), the overlap".to_owned(),
                    _ => "exact-match: sum of p q".to_owned(),
                },
                hue: hue(Some(one[0])),
                stroke: match one[2] {
                    "exact-match" => Stroke::Dashed(number),
                    _ => Stroke::Solid,
                },
                points: (places.iter())
                    .filter_map(|&(x, log)| point(x, estimate(rate, log)?))
                    .collect(),
            };
            Some(Drawn {
                spoken: Some(one[2]),
                line,
            })
        })
        .collect();
    if lines.len() < 2 {
        return None;
    }
    let t = temperature(at);
    let drawing = Drawing {
        title: format!("One draft: one-hot, token or exact-match, T = {t}"),
        finding: sampled(&lines, &t),
        name: format!("one-draft-by-overlap-t{t}"),
        y_label: "accepted, %",
        says: "One-hot drafts the draft's likeliest token, the others sample. Bars: 95% intervals."
            .to_owned(),
        lines: plotted(lines),
        remarks: Vec::new(),
    };
    over_overlap(ladder, drawing, &places, at)
}

/// A figure but for its axis.
struct Drawing {
    title: String,
    /// What is found in it, if its ends are known.
    finding: Option<String>,
    name: String,
    y_label: &'static str,
    /// How it is read.
    says: String,
    lines: Vec<Line>,
    remarks: Vec<String>,
}

fn over_overlap(
    ladder: &Ladder<'_>,
    drawing: Drawing,
    places: &[(f64, usize)],
    at: f64,
) -> Option<Figure> {
    if drawing.lines.is_empty() || places.is_empty() {
        return None;
    }
    let said: Vec<String> = (drawing.lines.iter())
        .filter_map(|line| {
            let (first, last) = (line.points.first()?, line.points.last()?);
            let (from, to) = (percent(first.y), percent(last.y));
            Some(format!("{} goes from {from} to {to}", line.label))
        })
        .collect();
    let caption = format!(
        "{}. {} One place a draft: {}.",
        drawing.title,
        drawing.says,
        names(ladder, places)
    );
    Some(drawing.figure(axis(places, at), caption, &said))
}

impl Drawing {
    fn figure(self, x: Axis, caption: String, said: &[String]) -> Figure {
        let plot = LinePlot {
            title: self.title.clone(),
            x,
            y_label: self.y_label.to_owned(),
            percent: true,
            // Gains and losses are told from nothing.
            y_covers: (self.y_label == DIFFERENCE).then_some([0.0; 2]),
            lines: self.lines,
            remarks: self.remarks,
        };
        Figure {
            alt: format!("{}. {}.", self.title, said.join("; ")),
            caption,
            canvas: plot.draw(),
            name: self.name,
            title: self.finding.unwrap_or(self.title),
        }
    }
}

/// Rates of one log by temperature. `which` of the ladder it is: worst, middle or best.
fn by_temperature(ladder: &Ladder<'_>, log: usize, n: usize, which: &str) -> Option<Figure> {
    let all = temperatures(ladder.comparison);
    let first = ladder.rates(*all.first()?, n);
    let points = |rate: &ComparedRate| -> Vec<Point> {
        let at = |&t: &f64| point(t, estimate(like(ladder, t, n, rate)?, log)?);
        all.iter().filter_map(at).collect()
    };
    let drawn = lines(&first, &[log], points);
    let place = format!("{}, n = {n}", ladder.name(log));
    let drawing = Drawing {
        title: format!("Acceptance by temperature, {place}"),
        finding: possible(&drawn, ends(&all).each_ref().map(String::as_str), &place),
        name: format!("acceptance-by-temperature-{which}-n{n}"),
        y_label: "accepted, %",
        says:
            "Solid: optima α*. Dashed: verifiers, in the hue of their drafts. Bars: 95% intervals."
                .to_owned(),
        lines: plotted(drawn),
        remarks: Vec::new(),
    };
    over_temperature(drawing, &all, which)
}

fn worth_by_temperature(ladder: &Ladder<'_>, log: usize, n: usize, which: &str) -> Option<Figure> {
    let all = temperatures(ladder.comparison);
    let first = ladder.rates(*all.first()?, n);
    let lines = worth_lines(&first, |above, below| {
        let at = |&t: &f64| {
            let (above, below) = (like(ladder, t, n, above)?, like(ladder, t, n, below)?);
            between(t, above, below, log)
        };
        all.iter().filter_map(at).collect()
    });
    let place = format!("{}, n = {n}", ladder.name(log));
    let drawing = Drawing {
        title: format!("Verifier or draft law, {place}"),
        finding: left(&lines, ends(&all).each_ref().map(String::as_str), &place),
        name: format!("worth-by-temperature-{which}-n{n}"),
        y_label: DIFFERENCE,
        says: WORTH.to_owned(),
        lines: plotted(lines),
        remarks: Vec::new(),
    };
    over_temperature(drawing, &all, which)
}

/// The first temperature and the last, in words.
fn ends(all: &[f64]) -> [String; 2] {
    [all.first(), all.last()].map(|t| format!("at T = {}", temperature(t.copied().unwrap_or(1.0))))
}

/// The ends of a line.
fn both(line: &Line) -> Option<[&Point; 2]> {
    match line.points.as_slice() {
        [first, .., last] => Some([first, last]),
        _ => None,
    }
}

/// The first line that titles speak of, and what they call it.
fn first<'a>(drawn: &'a [Drawn<'_>]) -> Option<(&'a str, &'a Line)> {
    let mut all = drawn.iter();
    all.find_map(|one| Some((one.spoken?, &one.line)))
}

/// From one end to the other, of the first law's optimum; where the intervals of both are apart.
fn possible(drawn: &[Drawn<'_>], ends: [&str; 2], place: &str) -> Option<String> {
    let (law, line) = first(drawn)?;
    let [one, other] = both(line)?;
    let apart = one.interval[1] < other.interval[0] || other.interval[1] < one.interval[0];
    apart.then(|| {
        format!(
            "The most that can be accepted of {law} drafts is {} {} and {} {} ({place})",
            percent(one.y),
            ends[0],
            percent(other.y),
            ends[1]
        )
    })
}

/// What the first rule leaves at one end and at the other.
fn left(drawn: &[Drawn<'_>], ends: [&str; 2], place: &str) -> Option<String> {
    let (rule, line) = first(drawn)?;
    let [one, other] = both(line)?;
    Some(format!(
        "{rule} leaves {} points of what is possible {} and {} {} ({place})",
        in_percent(one.y),
        ends[0],
        in_percent(other.y),
        ends[1]
    ))
}

/// One sampled draft beside the likeliest token, on the worst draft and on the best.
fn sampled(drawn: &[Drawn<'_>], t: &str) -> Option<String> {
    let named = |name: &str| {
        let found = drawn.iter().find(|one| one.spoken == Some(name));
        both(&found?.line)
    };
    let ([low, high], [one_low, one_high]) = (named("token")?, named("one-hot")?);
    Some(format!(
        "One sampled draft is accepted {} of the time on the worst draft and {} on the best, its \
         likeliest token {} and {} (T = {t})",
        percent(low.y),
        percent(high.y),
        percent(one_low.y),
        percent(one_high.y)
    ))
}

/// The rate of the same drafts and verifier at a temperature.
fn like<'a>(
    ladder: &Ladder<'a>,
    at: f64,
    n: usize,
    like: &ComparedRate,
) -> Option<&'a ComparedRate> {
    let same =
        |rate: &&ComparedRate| (&rate.scheme, &rate.verifier) == (&like.scheme, &like.verifier);
    ladder.rates(at, n).into_iter().find(same)
}

fn over_temperature(drawing: Drawing, all: &[f64], which: &str) -> Option<Figure> {
    if all.len() < 2 || drawing.lines.is_empty() {
        return None;
    }
    let said: Vec<String> = (drawing.lines.iter())
        .filter_map(|line| Some(format!("{} {}", line.label, percent(line.points.last()?.y))))
        .collect();
    let hottest = all.last().copied().unwrap_or(1.0);
    let said = [format!(
        "At T = {}: {}",
        temperature(hottest),
        said.join("; ")
    )];
    let place = match which {
        "middle" => "the draft in the middle of the ladder".to_owned(),
        which => format!("the {which} draft"),
    };
    let caption = format!("{}: {place}. {}", drawing.title, drawing.says);
    let x = Axis::new(
        "temperature T of target and draft",
        all.iter().map(|&t| (t, temperature(t))),
    );
    Some(drawing.figure(x, caption, &said))
}
