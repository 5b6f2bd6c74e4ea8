//! What reports advise: nothing that intervals do not tell apart, nothing that is not in the JSON,
//! nothing that is not lossless and achieved.

use crate::made_log;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use specgap::advice::{Basis, Change, Unit, Verdict};
use specgap::gap::{GapReport, Settings, changes, measure};
use specgap::log::Log;
use specgap::page::Page;
use specgap::replay::{LengthReport, LengthSettings, PathsReport, Timings, TreeReport};
use specgap::replay::{length_changes, tree_changes};
use specgap::report;
use specgap::scheme::SchemeName;
use specgap::statistics::Estimate;
use specgap::verifier::VerifierName;
use std::collections::BTreeSet;

fn shipped<T: DeserializeOwned>(name: &str) -> T {
    let file = format!("{}/reports/{name}/report.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

/// The report of a made log with enough prompts for a choice.
fn made() -> GapReport {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    made_log::write_drawn(&path, &made_log::rows(60));
    let settings = Settings::new(&[0.5, 1.0], &[2, 3], 3).unwrap();
    measure(&[Log::open(&path).unwrap()], &settings, "test", &|_| ()).unwrap()
}

fn gap_reports() -> Vec<GapReport> {
    let mut all: Vec<GapReport> = ["demo", "qwen", "smollm2"].map(shipped).to_vec();
    all.push(made());
    all
}

/// A number as a page may write it.
fn shown(value: f64) -> impl Iterator<Item = String> {
    let rounded = |value: f64, places: usize| format!("{:.places$}", value.abs());
    [0, 1, 2, 3].into_iter().flat_map(move |places| {
        let percent = rounded(100.0 * value, places);
        [rounded(value, places), percent]
    })
}

/// Every number of a JSON value and half the width of every interval, as pages write them.
fn numbers(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Number(number) => into.extend(number.as_f64().into_iter().flat_map(shown)),
        Value::Array(all) => {
            if let [Value::Number(low), Value::Number(high)] = all.as_slice() {
                let width = high.as_f64().unwrap() - low.as_f64().unwrap();
                into.extend(shown(width / 2.0));
            }
            all.iter().for_each(|one| numbers(one, into));
        }
        Value::Object(all) => all.values().for_each(|one| numbers(one, into)),
        _ => {}
    }
}

/// The numbers with a decimal point that stand in a text.
fn decimals(text: &str) -> Vec<String> {
    let is_part = |letter: char| letter.is_ascii_digit() || letter == '.';
    let words = text.split(|letter| !is_part(letter));
    let words = words.map(|word| word.trim_matches('.').to_owned());
    words
        .filter(|word| word.matches('.').count() == 1)
        .collect()
}

/// The lines of a page that advise.
fn advising(page: &Page) -> Vec<String> {
    const STARTS: [&str; 8] = [
        "If you draft",
        "Block against",
        "One-hot drafts",
        "Exact-match drafts",
        "What a rule",
        "What a trained",
        "verify by",
        "The tree below",
    ];
    let text = page.markdown();
    let lead = text.lines().take_while(|line| !line.starts_with("## "));
    lead.filter(|line| STARTS.iter().any(|start| line.contains(start)))
        .map(str::to_owned)
        .collect()
}

/// Every number of the lines that advise stands in the report's JSON.
fn every_number_is_there(
    what: &str,
    report: &impl Serialize,
    page: &Page,
    advice: &[Change],
) -> usize {
    let mut known = BTreeSet::new();
    numbers(&serde_json::to_value(report).unwrap(), &mut known);
    // Of a report that was made before reports had it, what it says is paired differences of others.
    assert!(
        advice
            .iter()
            .all(|change| { shown(change.difference.mean).all(|digits| known.contains(&digits)) })
    );
    let mut read = 0;
    for line in advising(page) {
        for number in decimals(&line) {
            assert!(known.contains(&number), "{what}: {number} in {line}");
            read += 1;
        }
    }
    read
}

/// What a change says is what its numbers say, whoever made them.
fn is_as_its_numbers_say(change: &Change) {
    let floor = change.unit.floor(change.now.mean);
    let said = Verdict::of(&change.difference, floor);
    match change.basis {
        // Of several comparisons, corrected for how many there are.
        Basis::Paired if change.unit == Unit::Acceptance => {
            assert!(change.verdict == said || change.verdict == Verdict::NotToldApart);
        }
        Basis::Counts => {}
        _ => assert_eq!(change.verdict, said, "{change:?}"),
    }
    if change.verdict == Verdict::Worth {
        let [low, high] = change.difference.ci95;
        assert!(
            low > 0.0 && high > low && change.least() >= floor,
            "{change:?}"
        );
        let bounds = change.difference.bounds();
        assert!(bounds.is_none_or(|[low, _]| low > 0.0), "{change:?}");
    }
}

#[test]
fn numbers_of_advice_are_those_of_the_json() {
    let mut read = 0;
    for report in gap_reports() {
        let advice = changes(&report);
        advice.iter().for_each(is_as_its_numbers_say);
        read += every_number_is_there("gap", &report, &report::gap::page(&report), &advice);
    }
    let mut settings = LengthSettings {
        timings: Some(Timings::cost_ratio(0.125).unwrap()),
        ..LengthSettings::default()
    };
    let given = crate::replay::report(&settings);
    settings.timings = None;
    for report in [shipped("length"), given, crate::replay::report(&settings)] {
        let report: LengthReport = report;
        let advice = length_changes(&report);
        advice.iter().for_each(is_as_its_numbers_say);
        assert!(report.advice.is_empty() || report.advice == advice);
        read += every_number_is_there("length", &report, &report::length::page(&report), &advice);
    }
    let tree: TreeReport = shipped("tree");
    let advice = tree_changes(&tree);
    advice.iter().for_each(is_as_its_numbers_say);
    read += every_number_is_there("tree", &tree, &report::tree::page(&tree), &advice);
    let paths: PathsReport = shipped("paths");
    paths.advice.iter().for_each(is_as_its_numbers_say);
    read += every_number_is_there("paths", &paths, &report::paths::page(&paths), &paths.advice);
    assert!(read > 30, "{read} numbers");
}

/// What is advised is a lossless rule of drafts that it is made for, and has a rate here.
#[test]
fn what_is_advised_is_lossless_and_achieved() {
    let mut several = 0;
    for report in gap_reports() {
        for change in changes(&report) {
            let at = change.temperature.unwrap();
            let n = change.drafts.unwrap();
            for name in [&change.from, &change.to] {
                let Some((law, rule)) = name.split_once('/') else {
                    assert_eq!(n, 1, "{name}");
                    continue;
                };
                let cell = report.cells.iter().find(|cell| {
                    (cell.temperature, cell.drafts, cell.scheme.as_str()) == (at, n, law)
                });
                let mut rows = cell.unwrap().verifiers.iter();
                let row = rows.find(|row| row.name == rule).unwrap();
                assert!(row.own.is_none() && rule != VerifierName::OPTIMAL.as_str());
                let verifier: VerifierName = rule.parse().unwrap();
                let law: SchemeName = law.parse().unwrap();
                assert!(verifier.is_lossless(law, n), "{name}");
                several += 1;
            }
        }
    }
    assert!(several > 20, "{several}");
}

/// A report chooses on one half and measures on the other, from what engines do.
#[test]
fn a_made_report_has_a_choice_of_every_place() {
    let report = made();
    // At another temperature than the text's nothing is advised.
    let all = report.advice.iter();
    assert!(all.clone().all(|change| change.temperature == Some(1.0)));
    let at = 1.0;
    for n in [2, 3] {
        let here: Vec<&Change> = (report.advice.iter())
            .filter(|one| one.drafts == Some(n) && one.temperature == Some(at))
            .collect();
        let from: Vec<&str> = here.iter().map(|one| one.from.as_str()).collect();
        assert_eq!(from, ["top/exact-match", "with-replacement/rrs"]);
        assert!(here.iter().all(|one| one.basis == Basis::CrossFitted));
        // The plain paired difference of what all prompts choose is near.
        for one in here {
            let rate = |name: &str| {
                let (law, rule) = name.split_once('/').unwrap();
                let mut cells = report.cells.iter();
                let cell = cells
                    .find(|cell| {
                        (cell.temperature, cell.drafts, cell.scheme.as_str()) == (at, n, law)
                    })
                    .unwrap();
                let mut rows = cell.verifiers.iter();
                rows.find(|row| row.name == rule).unwrap().acceptance.mean
            };
            let plain = rate(&one.to) - rate(&one.from);
            assert!(
                (one.difference.mean - plain).abs() < 0.1,
                "{one:?}: {plain}"
            );
            assert!((one.now.mean - rate(&one.from)).abs() < 1e-12);
        }
    }
}

/// Whatever is widened until it holds 0 is no longer advised.
#[test]
fn nothing_is_advised_that_its_interval_does_not_tell_apart() {
    let mut advised = 0;
    for mut report in gap_reports() {
        advised += usize::from(
            report::gap::page(&report)
                .markdown()
                .contains("If you draft"),
        );
        report.advice = changes(&report);
        for change in &mut report.advice {
            let size = change.difference.mean.abs() + 1.0;
            change.difference = Estimate {
                ci95: [-size, size],
                ..change.difference
            };
            change.verdict = Verdict::of(&change.difference, change.unit.floor(change.now.mean));
        }
        let text = report::gap::page(&report).markdown();
        let lead = text.split("\n## ").next().unwrap();
        for line in lead.lines().filter(|line| line.contains("If you draft")) {
            assert!(line.contains("Not worth it"), "{line}");
            assert_eq!(
                line.matches("not told apart").count() + line.matches("leave open").count(),
                line.matches(" points, ").count(),
                "{line}"
            );
        }
        if !report.advice.is_empty() {
            assert!(lead.contains("Nothing to change"), "{lead}");
        }
    }
    assert!(advised >= 4, "{advised}");
}
