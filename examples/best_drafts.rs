//! The page and the picture of what drafts and which rule accept most, from reports of `gap` on
//! several logs.
//!
//!     cargo run --release --example best_drafts -- reports/optimum NAME=report.json ...
//!
//! `NAME@apart=report.json` is a report whose drafts were also drawn at another temperature.
//!
//! `scripts/optimum-report` captures the logs and measures them.

use specgap::gap::{Cell, Comparison, GapReport, RedraftedCell};
use specgap::page::plot::{Axis, Line, LinePlot, Point, Stroke};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Lines of the picture and columns of the tables: how they are called, the law, and the rule or
/// the optimum.
const COLUMNS: [(&str, &str, Option<&str>, Stroke); 8] = [
    (
        "likeliest tokens",
        "top",
        Some("exact-match"),
        Stroke::Dashed(0),
    ),
    (
        "recursive rejection",
        "with-replacement",
        Some("rrs"),
        Stroke::Dashed(0),
    ),
    (
        "level, i.i.d.",
        "with-replacement",
        Some("level"),
        Stroke::Solid,
    ),
    ("greedy", "greedy", Some("greedy"), Stroke::Solid),
    (
        "rrs-wo",
        "without-replacement",
        Some("rrs-wo"),
        Stroke::Dashed(0),
    ),
    (
        "α* sequential",
        "without-replacement",
        None,
        Stroke::Dashed(1),
    ),
    (
        "strata, level-4",
        "stratified",
        Some("level-4"),
        Stroke::Solid,
    ),
    ("α* strata", "stratified", None, Stroke::Dashed(1)),
];

/// What strata with level-4 are compared with, first what engines do.
const AGAINST: [(&str, &str); 3] = [
    ("likeliest", "top/exact-match"),
    ("rejection", "with-replacement/rrs"),
    ("greedy", "greedy/greedy"),
];

const OURS: &str = "stratified/level-4";
const OURS_COLUMN: usize = 6;

/// Drafts of the first table and of the second picture.
const USUAL: usize = 4;

/// What the logs of `scripts/optimum-report` are of.
const PAIRS: [(&str, &str); 4] = [
    ("qwen", "Qwen2.5-Coder 1.5B, drafted by 0.5B"),
    ("q4-64", "SmolLM2-135M, drafted by its weights in 4 bits"),
    ("skip-25", "SmolLM2-135M, drafted by 25 of its 30 layers"),
    ("gemma", "Gemma 3 270M, drafted by 14 of its 18 layers"),
];

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(
        arguments
            .next()
            .ok_or("give a folder and NAME=report.json")?,
    );
    std::fs::create_dir_all(&folder)?;
    let (mut logs, mut apart) = (Vec::new(), Vec::new());
    for argument in arguments {
        let (name, path) = argument.split_once('=').ok_or("give NAME=report.json")?;
        let report: GapReport = serde_json::from_slice(&std::fs::read(path)?)?;
        match name.split_once('@') {
            None => logs.push((name.to_owned(), report)),
            Some((name, _)) => apart.push((name.to_owned(), report)),
        }
    }
    let (name, first) = logs.first().ok_or("give a report")?;
    by_drafts(&folder.join("accepted.svg"), name, first)?;
    by_temperature(&folder.join("gain.svg"), &logs)?;
    std::fs::write(folder.join("report.md"), page(&logs, &apart)?)?;
    println!("{}", folder.join("report.md").display());
    Ok(())
}

/// The rate of a column in the cells of one temperature and number of drafts.
fn rate(report: &GapReport, at: (f64, usize), column: usize) -> Option<f64> {
    let (_, law, rule, _) = COLUMNS[column];
    // One draft is one draft: the laws do not differ, and rules of one draft are not repeated.
    let cell = |cell: &&Cell| (cell.temperature, cell.drafts) == at && cell.scheme == law;
    let cell = report.cells.iter().find(cell)?;
    Some(match rule {
        None => cell.optimal_acceptance_rate.estimate.mean,
        Some(rule) => {
            let own = cell.verifiers.iter().find(|row| row.name == rule);
            own?.acceptance.mean
        }
    })
}

/// A law's label, and how OURS compares with it.
type Told<'a> = (&'a str, &'a Comparison);

fn compared<'a>(report: &'a GapReport, at: (f64, usize), with: &str) -> Option<&'a Comparison> {
    report
        .comparisons
        .iter()
        .find(|one| (one.temperature, one.drafts) == at && one.first == OURS && one.second == with)
}

/// The one that comes nearest, of what engines do or of all.
fn nearest<'a>(report: &'a GapReport, at: (f64, usize), among: usize) -> Option<Told<'a>> {
    let all = AGAINST[..among].iter();
    let known = all.filter_map(|&(label, with)| Some((label, compared(report, at, with)?)));
    known.min_by(|a, b| a.1.difference.mean.total_cmp(&b.1.difference.mean))
}

fn pair(name: &str) -> &str {
    let known = PAIRS.iter().find(|(known, _)| *known == name);
    known.map_or(name, |(_, words)| words)
}

fn temperatures(report: &GapReport) -> Vec<f64> {
    let mut all: Vec<f64> = report.cells.iter().map(|cell| cell.temperature).collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    all
}

fn drafts(report: &GapReport) -> Vec<usize> {
    let mut all: Vec<usize> = report.cells.iter().map(|cell| cell.drafts).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn by_drafts(path: &Path, name: &str, report: &GapReport) -> Result<(), Failure> {
    let temperature = *temperatures(report).last().ok_or("no temperature")?;
    let line = |column: usize| {
        let points = drafts(report).into_iter().filter_map(|n| {
            Some(Point::new(
                n as f64,
                rate(report, (temperature, n), column)?,
            ))
        });
        Line {
            label: COLUMNS[column].0.to_owned(),
            hue: [5, 0, 0, 3, 1, 1, 7, 7][column],
            stroke: COLUMNS[column].3,
            points: points.collect(),
        }
    };
    let plot = LinePlot {
        title: format!("{}, T = {temperature:.1}", pair(name)),
        x: Axis {
            label: "drafts n".to_owned(),
            stops: drafts(report)
                .iter()
                .map(|&n| (n as f64, n.to_string()))
                .collect(),
            log: false,
        },
        y_label: "accepted per position".to_owned(),
        lines: (0..COLUMNS.len()).map(line).collect(),
        ..LinePlot::default()
    };
    let said: Vec<String> = (plot.lines.iter())
        .filter_map(|line| {
            let last = line.points.last()?;
            Some(format!("{} {:.3}", line.label, last.y))
        })
        .collect();
    let alt = format!(
        "Accepted by number of drafts. With the most drafts: {}.",
        said.join(", ")
    );
    std::fs::write(path, plot.draw().svg("Accepted by number of drafts", &alt)?)?;
    Ok(())
}

/// More than the better of what engines do, at [`USUAL`] drafts.
fn by_temperature(path: &Path, logs: &[(String, GapReport)]) -> Result<(), Failure> {
    let lines = logs.iter().zip([7, 0, 3, 5]).map(|((name, report), hue)| {
        let points = temperatures(report).into_iter().filter_map(|temperature| {
            let (_, one) = nearest(report, (temperature, USUAL), 2)?;
            let of = &one.difference;
            Some(Point {
                interval: of.ci95,
                ..Point::new(temperature, of.mean)
            })
        });
        Line {
            label: pair(name).to_owned(),
            hue,
            points: points.collect(),
            ..Line::default()
        }
    });
    let stops = logs
        .first()
        .map_or(Vec::new(), |(_, report)| temperatures(report));
    let plot = LinePlot {
        title: format!("{USUAL} drafts: more than engines get"),
        x: Axis {
            label: "temperature".to_owned(),
            stops: stops.iter().map(|&t| (t, format!("{t:.1}"))).collect(),
            log: false,
        },
        y_label: "accepted, less the better of likeliest and rejection".to_owned(),
        y_covers: Some([0.0, 0.0]),
        lines: lines.collect(),
        ..LinePlot::default()
    };
    let said: Vec<String> = (plot.lines.iter())
        .filter_map(|line| {
            let (first, last) = (line.points.first()?, line.points.last()?);
            Some(format!("{}: {:+.3} to {:+.3}", line.label, first.y, last.y))
        })
        .collect();
    let alt = format!(
        "By temperature, from the lowest to the highest: {}.",
        said.join("; ")
    );
    std::fs::write(path, plot.draw().svg("More than engines get", &alt)?)?;
    Ok(())
}

/// Each pair, temperature and number of drafts above one.
fn cells(logs: &[(String, GapReport)]) -> impl Iterator<Item = (&str, &GapReport, (f64, usize))> {
    logs.iter().flat_map(|(name, report)| {
        temperatures(report).into_iter().flat_map(move |t| {
            let several = drafts(report).into_iter().filter(|&n| n > 1);
            several.map(move |n| (name.as_str(), report, (t, n)))
        })
    })
}

/// Where OURS is told apart from the nearest of these, and where it loses to it.
fn against(logs: &[(String, GapReport)], among: usize) -> String {
    let (mut all, mut more, mut less) = (0, 0, Vec::new());
    for (name, report, at) in cells(logs) {
        let Some((label, one)) = nearest(report, at, among) else {
            continue;
        };
        all += 1;
        let [lower, upper] = one.difference.ci95;
        more += usize::from(lower > 0.0);
        if upper < 0.0 {
            let points = 100.0 * one.difference.mean;
            less.push(format!(
                "{name}, T = {:.1}, n = {}: {points:+.2} points against {label}",
                at.0, at.1
            ));
        }
    }
    let lost = match less.as_slice() {
        [] => "It is told apart to its loss in none.".to_owned(),
        all => format!("**It loses** in {}: {}.", all.len(), all.join("; ")),
    };
    format!("told apart to its gain in {more} of {all} cells. {lost}")
}

/// The least and the most of something over all cells of a temperature.
fn span(values: impl Iterator<Item = f64>) -> Option<[f64; 2]> {
    values.fold(None, |span, value| {
        let [low, high] = span.unwrap_or([value; 2]);
        Some([value.min(low), value.max(high)])
    })
}

fn lead(logs: &[(String, GapReport)]) -> String {
    let mut text = format!(
        "A cell is a pair, a temperature and 2 to 8 drafts.\n\n\
         - **Against the better of what engines do** (likeliest tokens kept if the target draws one; \
         i.i.d. drafts by recursive rejection) it is {}\n\
         - **Against the best of these and `greedy` drafts** it is {}\n",
        against(logs, 2),
        against(logs, AGAINST.len())
    );
    let to_ceiling = span(cells(logs).filter_map(|(_, report, at)| {
        Some(100.0 * (rate(report, at, OURS_COLUMN + 1)? - rate(report, at, OURS_COLUMN)?))
    }));
    let sequential = span(cells(logs).filter_map(|(_, report, at)| {
        Some(100.0 * (rate(report, at, OURS_COLUMN - 1)? - rate(report, at, OURS_COLUMN)?))
    }));
    if let (Some([_, left]), Some([least, most])) = (to_ceiling, sequential) {
        writeln!(
            text,
            "- **What is left:** the four levels leave at most {left:.2} points of what these drafts \
             allow (α* strata). Sequential draws without replacement would allow {least:+.2} to \
             {most:+.2} points against it (α* sequential), but no quick rule here reaches that."
        )
        .unwrap_or_default();
    }
    let coldest = (logs.iter()).flat_map(|(_, report)| temperatures(report).first().copied());
    if let Some(coldest) = coldest.reduce(f64::min) {
        let gain = |among| {
            span(cells(logs).filter_map(|(_, report, at)| {
                let (_, one) = nearest(report, at, among)?;
                (at.0 == coldest).then_some(100.0 * one.difference.mean)
            }))
        };
        if let (Some([a, b]), Some([c, d])) = (gain(2), gain(AGAINST.len())) {
            writeln!(
                text,
                "- **At T = {coldest:.1}** there is little to gain: {a:+.2} to {b:+.2} points against \
                 engines, {c:+.2} to {d:+.2} against the best of these and `greedy` drafts."
            )
            .unwrap_or_default();
        }
    }
    text.push_str(
        "- One position at a time: no trees, no speed. The texts are short and drawn at T = 1; rows \
         are taken at each T.\n",
    );
    text
}

fn page(logs: &[(String, GapReport)], apart: &[(String, GapReport)]) -> Result<String, Failure> {
    let mut text = String::from(
        "# Drafts and a rule that reach the optimum\n\n\
         Draft the sure tokens of q and one token of each stratum of the rest; reject by falling level \
         ([how](../../docs/guide/better-drafts.md)). Accepted per position on full rows:\n\n\
         ![Accepted by number of drafts](accepted.svg)\n\n",
    );
    text.push_str(&lead(logs));
    writeln!(
        text,
        "\n![More than engines get, by temperature](gain.svg)\n\n## {USUAL} drafts\n\n± is 95% over \
         prompts, of differences paired by prompt.\n"
    )?;
    header(&mut text, "pair, T");
    for (name, report) in logs {
        for temperature in temperatures(report) {
            write!(text, "|{name}, {temperature:.1}|")?;
            row(&mut text, report, (temperature, USUAL))?;
        }
    }
    if !apart.is_empty() {
        drawn_apart(&mut text, apart)?;
    }
    for (name, report) in logs {
        let log = report.logs.first().ok_or("a report of no log")?;
        writeln!(
            text,
            "\n## {}\n\n`{name}`: {} positions of {} prompts, V = {}.\n",
            pair(name),
            log.positions,
            report.clusters,
            log.vocabulary
        )?;
        header(&mut text, "T, n");
        for temperature in temperatures(report) {
            for n in drafts(report) {
                write!(text, "|{temperature:.1}, {n}|")?;
                row(&mut text, report, (temperature, n))?;
            }
        }
    }
    text.push_str("\nMade by `scripts/optimum-report`; every rate is enclosed by `specgap gap`.\n");
    Ok(text)
}

/// What drawing the drafts at another temperature than the target's does to strata with level-4.
fn drawn_apart(text: &mut String, apart: &[(String, GapReport)]) -> Result<(), Failure> {
    let numbers = apart.first().map(|(_, report)| drafts(report));
    let numbers = numbers.unwrap_or_default();
    let columns = numbers.iter().map(|n| format!("|{n} drafts|more"));
    writeln!(
        text,
        "\n## Drafts drawn at 0.9 of the temperature\n\nStrata with level-4, drawn from q at 0.9 T and verified \
         with that row, which is lossless too; and how much more that accepts than q at T, as means over \
         the same positions (no interval was computed for the difference).\n\n|pair, T{}|\n|---{}|",
        columns.collect::<String>(),
        "|---:".repeat(2 * numbers.len())
    )?;
    for (name, report) in apart {
        for drawn in &report.redrafted {
            write!(text, "|{name}, {:.1}", drawn.temperature)?;
            for &n in &numbers {
                let of = |cell: &&RedraftedCell| {
                    (cell.drafts, cell.scheme.as_str()) == (n, "stratified")
                };
                let cell = drawn.cells.iter().find(of).ok_or("no strata")?;
                let rule = cell.verifiers.iter().find(|row| row.name == "level-4");
                let there = rule.ok_or("no level-4")?.acceptance.estimate.mean;
                let here =
                    rate(report, (drawn.temperature, n), OURS_COLUMN).ok_or("no rate at T")?;
                let more = (1000.0 * (there - here)).round() / 1000.0 + 0.0;
                write!(text, "|{there:.3}|{more:+.3}")?;
            }
            text.push_str("|\n");
        }
    }
    Ok(())
}

fn header(text: &mut String, first: &str) {
    let columns = COLUMNS.iter().map(|(label, ..)| (*label).to_owned());
    let differences = AGAINST.iter().map(|(label, _)| format!("less {label}"));
    let labels: Vec<String> = columns.chain(differences).collect();
    text.push_str(&format!("|{first}|{}|\n|---", labels.join("|")));
    text.push_str(&"|---:".repeat(labels.len()));
    text.push_str("|\n");
}

fn row(text: &mut String, report: &GapReport, at: (f64, usize)) -> Result<(), Failure> {
    for column in 0..COLUMNS.len() {
        match rate(report, at, column) {
            Some(rate) if column == OURS_COLUMN => write!(text, "**{rate:.3}**|")?,
            Some(rate) => write!(text, "{rate:.3}|")?,
            None => text.push_str("–|"),
        }
    }
    for (_, with) in AGAINST {
        match compared(report, at, with) {
            Some(one) => {
                let [lower, upper] = one.difference.ci95;
                let (mean, half) = (one.difference.mean, 0.5 * (upper - lower));
                // A zero has no sign.
                let mean = (1000.0 * mean).round() / 1000.0 + 0.0;
                write!(text, "{mean:+.3} ± {half:.3}|")?;
            }
            None => text.push_str("–|"),
        }
    }
    text.push('\n');
    Ok(())
}
