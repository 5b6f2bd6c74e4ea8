//! `specgap length`: the files, exit codes, and what is refused, which leaves everything as
//! it was.

use crate::made_log::{rows, write};
use crate::run::{ROOT, Run, specgap};
use serde_json::Value;
use specgap::log::KeptTokens;
use specgap::text::LengthReport;
use std::path::Path;

/// `specgap length` in a folder, by a line of words.
fn length(folder: &Path, line: &str) -> Run {
    specgap(
        folder,
        ["length"].into_iter().chain(line.split_whitespace()),
    )
}

/// A folder with a log of four texts of five tokens.
fn folder_with_log() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("log"), &rows(20), KeptTokens::All);
    folder
}

fn refused(folder: &Path, line: &str, words: &[&str]) {
    let names = || {
        let mut all: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        all.sort();
        all
    };
    let before = names();
    length(folder, line).refused(words);
    assert_eq!(names(), before, "{line}");
}

#[test]
fn a_log_becomes_a_folder_of_files() {
    let folder = folder_with_log();
    let run = length(
        folder.path(),
        "log --lengths 1,2,4 --verifiers token,block --cost-ratio 0.1 --out made",
    );
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(run.out.starts_with("Draft lengths: log\n"), "{}", run.out);
    let last = run.out.lines().last().unwrap();
    assert_eq!(last, "report: made/report.html");
    let made = folder.path().join("made");
    let text = std::fs::read_to_string(made.join("report.json")).unwrap();
    let report: LengthReport = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (report.of.positions, report.of.texts, report.of.clusters),
        (20, 4, 4)
    );
    assert_eq!(
        report.of.command,
        "specgap length log --lengths 1,2,4 --verifiers token,block --cost-ratio 0.1"
    );
    let html = std::fs::read_to_string(made.join("report.html")).unwrap();
    assert!(made.join("report.md").is_file());
    for (name, definition) in &report.definitions {
        assert!(html.contains(name) && !definition.is_empty(), "{name}");
    }
    assert!(html.contains("id=\"what-to-set\"") && !html.contains("<script"));
    for picture in ["speed-by-cost", "tokens-per-call", "calls-and-discards"] {
        assert!(made.join(format!("{picture}.svg")).is_file(), "{picture}");
        assert!(made.join(format!("{picture}.png")).is_file(), "{picture}");
    }
    // The same to the byte, on any number of threads.
    let again = length(
        folder.path(),
        "log --lengths 1,2,4 --verifiers token,block --cost-ratio 0.1 --threads 1 --out again",
    );
    assert_eq!(again.code, Some(0));
    let other = std::fs::read_to_string(folder.path().join("again/report.json")).unwrap();
    assert_eq!(other, text);
}

#[test]
fn json_has_the_fields_of_the_contract() {
    let folder = folder_with_log();
    let run = length(
        folder.path(),
        "log --lengths 1,4 --policies schedule,confidence=0.4 --verifiers token --cost-ratio 0.1 \
         --format json",
    );
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    assert_eq!(run.out.lines().count(), 1);
    let report: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(report["schema"], 1);
    assert_eq!(report["positions"], 20);
    assert_eq!(report["temperature"], 1.0);
    let results = report["results"].as_array().unwrap();
    let names: Vec<(&str, f64)> = results
        .iter()
        .map(|row| {
            let parameter = row["parameter"].as_f64().unwrap();
            (row["policy"].as_str().unwrap(), parameter)
        })
        .collect();
    let expected = [
        ("fixed", 1.0),
        ("fixed", 4.0),
        ("schedule", 5.0),
        ("confidence", 0.4),
    ];
    assert_eq!(names, expected);
    assert!(results[0]["parameter"].is_u64());
    for field in [
        "expected_accepted_length",
        "tokens_per_call",
        "verification_rate",
        "discard_rate",
        "speedup",
    ] {
        let estimate = &results[1][field];
        assert!(estimate["mean"].is_f64(), "{field}");
        assert_eq!(estimate["ci95"].as_array().unwrap().len(), 2, "{field}");
    }
    // What the text alone does not tell.
    assert!(results[3]["discard_rate"].is_null() && results[3]["speedup"].is_null());
    assert!(results[3]["verification_rate"]["mean"].is_f64());
    assert!(results[3]["discard_rate_at_least"]["mean"].is_f64());
    assert!(report["bounds"]["oracle"]["verification_rate"]["mean"].is_f64());
    assert!(report["bounds"]["coin_blind"]["speedup"]["mean"].is_f64());
}

#[test]
fn the_shipped_log_gives_advice() {
    let log = Path::new(ROOT).join("models/logs/smollm2-demo");
    let folder = tempfile::tempdir().unwrap();
    let line = format!("{} --cost-ratio 0.05", log.display());
    let run = length(folder.path(), &line);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(
        run.out
            .contains("Draft 2 tokens a round with token verification: 1.40"),
        "{}",
        run.out
    );
    assert!(
        run.out.contains("3 of the text's 400 tokens"),
        "{}",
        run.out
    );
    let without = length(folder.path(), &log.display().to_string());
    assert_eq!(without.code, Some(0));
    assert!(
        without.out.contains("depends on what a draft step costs"),
        "{}",
        without.out
    );
}

/// One prompt chooses nothing; a verifier without rounds has nothing to choose.
#[test]
fn what_cannot_be_chosen_is_said() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("log"), &rows(5), KeptTokens::All);
    let one = length(folder.path(), "log --max 3");
    assert_eq!(one.code, Some(0), "{}", one.err);
    assert!(
        one.out.contains("There is one prompt only. A length has"),
        "{}",
        one.out
    );
    assert!(one.out.contains("no interval"), "{}", one.out);
    write(&folder.path().join("more"), &rows(20), KeptTokens::All);
    let greedy = length(folder.path(), "more --verifiers greedy-block");
    assert_eq!(greedy.code, Some(0), "{}", greedy.err);
    assert!(
        greedy.out.contains("whose rounds can be replayed"),
        "{}",
        greedy.out
    );
}

#[test]
fn bad_input_is_refused_with_its_cure() {
    let folder = folder_with_log();
    let here = folder.path();
    std::fs::write(
        here.join("bad.toml"),
        "schema = 1\ntarget_step = { seconds = -1.0 }\ndraft_step = { seconds = 1.0 }\n\
         verify = [{ tokens = 1, seconds = 1.0 }]\n",
    )
    .unwrap();
    std::fs::write(
        here.join("word.json"),
        "{\"schema\": 1, \"target_step\": \"fast\"}",
    )
    .unwrap();
    for (line, words) in [
        ("", &["LOG"][..]),
        ("missing", &["missing"]),
        ("log log", &["log", "named twice"]),
        (
            "log --temperature 0.7",
            &["log", "drawn at temperature 1", "0.7", "capture"],
        ),
        ("log --temperature 0", &["--temperature 0", "above 0"]),
        ("log --cost-ratio -0.1", &["--cost-ratio", "above 0"]),
        ("log --cost-ratio fast", &["--cost-ratio", "0.1"]),
        ("log --lengths 0", &["--lengths", "1..=1024"]),
        ("log --lengths 1,x", &["--lengths", "x"]),
        (
            "log --verifiers tree",
            &["tree", "token, block, greedy-block"],
        ),
        ("log --policies nothing", &["nothing", "confidence"]),
        ("log --policies svip=x", &["svip=x", "NAME=NUMBER"]),
        (
            "log --timings bad.toml",
            &["bad.toml", "target_step.seconds", "> 0"],
        ),
        ("log --timings word.json", &["word.json", "target_step"]),
        ("log --timings none.toml", &["none.toml", "cannot be read"]),
        ("log --timings bad.toml --cost-ratio 0.1", &["--cost-ratio"]),
    ] {
        refused(here, line, words);
    }
    // Logs that do not belong together.
    write(&here.join("copy"), &rows(20), KeptTokens::All);
    refused(
        here,
        "log copy",
        &["copy", "same rows as log", "name it once"],
    );
    std::fs::remove_dir_all(here.join("copy")).unwrap();
    // A log that says nothing of its text.
    let rows = Path::new(ROOT).join("tests/fixtures/logs/numpy-stored.npz");
    refused(
        here,
        &rows.display().to_string(),
        &["numpy-stored.npz", "say so with --temperature T"],
    );
    // One without text.
    let rows = Path::new(ROOT).join("tests/fixtures/logs/probabilities.npz");
    refused(
        here,
        &rows.display().to_string(),
        &["probabilities.npz", "has no tensor token", "capture"],
    );
}
