//! `specgap paths`: the files, exit codes, and what is refused.

use crate::made_paths::{Made, write};
use crate::run::{Run, specgap};
use specgap::text::PathsReport;
use std::path::Path;

/// `specgap paths` in a folder, by a line of words.
fn paths(folder: &Path, line: &str) -> Run {
    specgap(folder, ["paths"].into_iter().chain(line.split_whitespace()))
}

fn folder_with_log() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("log"), &Made::default());
    folder
}

#[test]
fn a_log_becomes_a_folder_of_files() {
    let folder = folder_with_log();
    let run = paths(folder.path(), "log --paths 1,2,3 --length 2 --out made");
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(
        run.out.starts_with("Several draft paths: log\n"),
        "{}",
        run.out
    );
    assert_eq!(run.out.lines().last(), Some("report: made/report.html"));
    let made = folder.path().join("made");
    let text = std::fs::read_to_string(made.join("report.json")).unwrap();
    let report: PathsReport = serde_json::from_str(&text).unwrap();
    assert_eq!(report.command, "specgap paths log --paths 1,2,3 --length 2");
    assert_eq!((report.length, report.by_drafts.len()), (2, 3));
    let html = std::fs::read_to_string(made.join("report.html")).unwrap();
    for id in [
        "possible",
        "verifiers",
        "distances",
        "upper-bounds",
        "checks",
        "left-out",
    ] {
        assert!(html.contains(&format!("id=\"{id}\"")), "{id}");
    }
    for file in [
        "report.md",
        "accepted-by-paths.svg",
        "accepted-by-paths.png",
    ] {
        assert!(made.join(file).is_file(), "{file}");
    }
}

#[test]
fn json_has_the_fields_of_the_contract() {
    let folder = folder_with_log();
    let report = paths(folder.path(), "log --paths 2 --format json").json();
    assert_eq!(report["schema"], 1);
    assert_eq!(report["logged_paths"], 4);
    let at = &report["by_drafts"][0];
    assert_eq!(at["drafts"], 2);
    assert_eq!(at["upper_bounds"][0]["form"], "several paths");
    assert!(at["upper_bounds"][0]["expected_accepted_length"]["mean"].is_f64());
    assert_eq!(
        at["upper_bounds"][0]["limits"][0].as_array().unwrap().len(),
        3
    );
    let names: Vec<&str> = at["verifiers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["verifier"].as_str().unwrap())
        .collect();
    assert_eq!(names.first().copied(), Some("token"));
    assert_eq!(names.last().copied(), Some("select-greedy-block"));
    assert!(at["verifiers"][7]["below_upper_bound"]["ci95"][1].is_f64());
    assert!(report["checks"][0]["difference"]["mean"].is_f64());
}

#[test]
fn bad_input_is_refused_with_its_cure() {
    let folder = folder_with_log();
    for (line, words) in [
        ("", &["LOG"][..]),
        ("missing", &["missing"]),
        ("log log", &["log", "named twice"]),
        ("log --paths 0", &["--paths", "0"]),
        ("log --paths 17", &["--paths", "17"]),
        ("log --length 0", &["--length", "0"]),
        (
            "log --length 9",
            &["log", "have 3 tokens", "--path-length 9"],
        ),
        ("log --temperature 2", &["log", "temperature 1"]),
        ("log --out log/log.json", &["log.json"]),
    ] {
        paths(folder.path(), line).refused(words);
    }
}
