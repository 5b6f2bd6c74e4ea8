//! The page and the picture of what drafts and which rule accept most, from reports of `gap` on
//! several logs.
//!
//!     cargo run --release --example best_drafts -- reports/optimum NAME=report.json ...
//!
//! `scripts/optimum-report` captures the logs and measures them.

use specgap::gap::{Cell, Comparison, GapReport};
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

/// What strata with level-4 are compared with.
const AGAINST: [(&str, &str); 3] = [
    ("likeliest", "top/exact-match"),
    ("rejection", "with-replacement/rrs"),
    ("greedy", "greedy/greedy"),
];

const OURS: &str = "stratified/level-4";

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(
        arguments
            .next()
            .ok_or("give a folder and NAME=report.json")?,
    );
    std::fs::create_dir_all(&folder)?;
    let mut logs = Vec::new();
    for argument in arguments {
        let (name, path) = argument.split_once('=').ok_or("give NAME=report.json")?;
        let report: GapReport = serde_json::from_slice(&std::fs::read(path)?)?;
        logs.push((name.to_owned(), report));
    }
    let (name, first) = logs.first().ok_or("give a report")?;
    picture(&folder.join("accepted.svg"), name, first)?;
    std::fs::write(folder.join("report.md"), page(&logs)?)?;
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

fn compared<'a>(report: &'a GapReport, at: (f64, usize), with: &str) -> Option<&'a Comparison> {
    report
        .comparisons
        .iter()
        .find(|one| (one.temperature, one.drafts) == at && one.first == OURS && one.second == with)
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

fn picture(path: &Path, name: &str, report: &GapReport) -> Result<(), Failure> {
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
    let title = format!("Accepted by number of drafts, {name}, T = {temperature:.1}");
    let plot = LinePlot {
        title: title.clone(),
        x: Axis {
            label: "drafts n".to_owned(),
            stops: drafts(report)
                .iter()
                .map(|&n| (n as f64, n.to_string()))
                .collect(),
            log: false,
        },
        y_label: "acceptance rate".to_owned(),
        lines: (0..COLUMNS.len()).map(line).collect(),
        ..LinePlot::default()
    };
    let alt = "Stratified drafts with level-4 accept most at every number of drafts; recursive \
               rejection and likeliest tokens stay far below.";
    std::fs::write(path, plot.draw().svg(&title, alt)?)?;
    Ok(())
}

fn page(logs: &[(String, GapReport)]) -> Result<String, Failure> {
    let mut text = String::from(
        "# Drafts and a rule that reach the optimum\n\n\
         Draft the sure tokens of q and one token of each stratum of the rest; reject by falling level \
         ([how](../../docs/guide/better-drafts.md)). Accepted per position on full rows:\n\n\
         ![Accepted by number of drafts](accepted.svg)\n\n",
    );
    let (mut won, mut told, mut lost, mut cells) = (0, 0, Vec::new(), 0);
    for (name, report) in logs {
        for temperature in temperatures(report) {
            for n in drafts(report).into_iter().filter(|&n| n > 1) {
                let Some(greedy) = compared(report, (temperature, n), "greedy/greedy") else {
                    continue;
                };
                cells += 1;
                let [lower, upper] = greedy.difference.ci95;
                won += usize::from(greedy.difference.mean > 0.0);
                told += usize::from(lower > 0.0);
                if upper < 0.0 {
                    let less = 100.0 * greedy.difference.mean;
                    lost.push(format!(
                        "{name}, T = {temperature:.1}, n = {n} ({less:+.2} points)"
                    ));
                }
            }
        }
    }
    writeln!(
        text,
        "Against `greedy` drafts, the next best, it accepts more in {won} of {cells} cells below, and the \
         paired interval tells the two apart in {told} of these."
    )?;
    match lost.as_slice() {
        [] => text.push_str("In no cell is it told apart from them to its loss.\n"),
        all => writeln!(text, "**It loses to them** at {}.", all.join("; "))?,
    }
    for (name, report) in logs {
        let log = report.logs.first().ok_or("a report of no log")?;
        let (positions, clusters) = (log.positions, report.clusters);
        writeln!(
            text,
            "\n## {name}\n\n{positions} positions of {clusters} prompts, V = {}. ± is 95% over prompts, \
             of paired differences.\n",
            log.vocabulary
        )?;
        text.push_str("|T, n|");
        for (label, ..) in COLUMNS {
            write!(text, "{label}|")?;
        }
        for (label, _) in AGAINST {
            write!(text, "less {label}|")?;
        }
        text.push_str("\n|---");
        text.push_str(&"|---:".repeat(COLUMNS.len() + AGAINST.len()));
        text.push_str("|\n");
        for temperature in temperatures(report) {
            for n in drafts(report) {
                let at = (temperature, n);
                write!(text, "|{temperature:.1}, {n}|")?;
                for column in 0..COLUMNS.len() {
                    match rate(report, at, column) {
                        Some(rate) if column == 6 => write!(text, "**{rate:.3}**|")?,
                        Some(rate) => write!(text, "{rate:.3}|")?,
                        None => text.push_str("–|"),
                    }
                }
                for (_, with) in AGAINST {
                    match compared(report, at, with) {
                        Some(one) => {
                            let [lower, upper] = one.difference.ci95;
                            let (mean, half) = (one.difference.mean, 0.5 * (upper - lower));
                            write!(text, "{mean:+.3} ± {half:.3}|")?;
                        }
                        None => text.push_str("–|"),
                    }
                }
                text.push('\n');
            }
        }
    }
    text.push_str("\nMade by `scripts/optimum-report`; every rate is enclosed by `specgap gap`.\n");
    Ok(text)
}
