//! `specgap block` as a program: output, exit codes, messages.

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;
use std::path::{Path, PathBuf};

fn specgap() -> Command {
    let mut command = Command::cargo_bin("specgap").unwrap();
    command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("COLUMNS", "110")
        .arg("block");
    command
}

fn json_lines(command: &mut Command) -> Vec<Value> {
    let output = command.args(["--format", "json"]).output().unwrap();
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn file(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

const UNIFORM: &str = "problems/refuted/gbv-lossless-uniform-2.toml";

#[test]
fn json_has_the_documented_fields() {
    let mut command = specgap();
    let lines = json_lines(command.args([UNIFORM, "--drafts", "1,2,3"]));
    assert_eq!(lines.len(), 3);
    for (line, drafts) in lines.iter().zip(1..) {
        assert_eq!(line["schema"], 1);
        assert_eq!(line["problem"], "gbv-lossless-uniform-2");
        assert_eq!(line["drafts"], drafts);
        for field in ["block_lp", "per_depth_bound", "lemma_5_1"] {
            assert!(
                (line[field].as_f64().unwrap() - 1.0).abs() <= 1e-12,
                "{field}"
            );
        }
        let names: Vec<&str> = line["verifiers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|v| v["name"].as_str().unwrap())
            .collect();
        assert_eq!(
            names,
            [
                "token",
                "block",
                "greedy-block",
                "spectr-k-seq",
                "spectr-optimal",
                "traversal",
                "block-optimal",
                "spectr-gbv"
            ]
        );
        for verifier in line["verifiers"].as_array().unwrap() {
            for field in [
                "expected_accepted_length",
                "total_variation",
                "undefined_mass",
            ] {
                assert!(verifier[field].is_number(), "{field} of {verifier}");
            }
        }
        assert_eq!(line["ok"], true);
    }
    // The file's values are for K = 2 and are compared with nothing else.
    assert!(lines[0].get("expected").is_none());
    assert_eq!(lines[1]["expected"]["ok"], true);
    let gbv = &lines[1]["verifiers"][7];
    assert_eq!(gbv["exact"]["expected_accepted_length"], "7/9");
    assert_eq!(gbv["exact"]["undefined_mass"], "2/9");
    assert_eq!(gbv["lossless"], false);
    assert_eq!(gbv["proved_lossless"], false);
    // One draft: the same rule is greedy block verification.
    assert_eq!(lines[0]["verifiers"][7]["lossless"], true);
    assert_eq!(
        lines[0]["lemma_5_1_status"],
        "equals the optimum for one draft"
    );
    assert!(
        lines[1]["lemma_5_1_status"]
            .as_str()
            .unwrap()
            .contains("not an upper bound")
    );
}

#[test]
fn a_known_refutation_is_labelled_and_no_failure() {
    specgap()
        .args(["problems/refuted", "problems/golden-blocks"])
        .assert()
        .code(0)
        .stdout(contains("NO, as known"))
        .stdout(contains("not an upper bound for two or more drafts"))
        .stdout(contains("expected values of the file: ok"))
        .stdout(contains(" 0 do not"));
}

#[test]
fn a_wrong_expectation_is_exit_1() {
    let folder = tempfile::tempdir().unwrap();
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(UNIFORM)).unwrap();
    let wrong = file(
        folder.path(),
        "wrong.toml",
        &text.replace("block_lp = 1.0", "block_lp = 0.9"),
    );
    specgap()
        .arg(&wrong)
        .assert()
        .code(1)
        .stdout(contains("DISAGREES: expected.block_lp is 0.9, found 1"))
        .stdout(contains("1 block evaluation: 0 agree, 1 does not"));
    specgap()
        .arg(&wrong)
        .args(["--format", "json"])
        .assert()
        .code(1);
    // Another K has no expectations.
    specgap()
        .arg(&wrong)
        .args(["--drafts", "1"])
        .assert()
        .code(0);
}

#[test]
fn single_step_problems_are_refused_by_name_and_skipped_in_folders() {
    let single = "problems/hand";
    let first = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(single))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|e| e == "toml"))
        .unwrap();
    specgap().arg(&first).assert().code(2).stderr(contains(
        "this is a single-step problem; run specgap solve on it",
    ));
    specgap()
        .args([single, UNIFORM])
        .assert()
        .code(0)
        .stdout(contains("single-step problems skipped (see specgap solve)"));
    let mut command = specgap();
    let lines = json_lines(command.arg(single));
    assert!(!lines.is_empty());
    for line in lines {
        assert_eq!(line["status"], "skipped");
        assert_eq!(line["reason"], "a single-step problem; see specgap solve");
    }
}

#[test]
fn what_is_too_large_is_listed_as_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let row = vec!["0.025"; 40].join(", ");
    let text = format!(
        "schema = 1\nname = \"wide\"\ndrafts = 4\n[block]\nvocab = 40\nlength = 1\n\
         target = {{ \"\" = [{row}] }}\ndraft = {{ \"\" = [{row}] }}\n"
    );
    let path = file(folder.path(), "wide.toml", &text);
    let mut command = specgap();
    let lines = json_lines(command.arg(&path));
    let line = &lines[0];
    assert_eq!(line["block_lp"], Value::Null);
    assert_eq!(line["ok"], true);
    assert!((line["per_depth_bound"].as_f64().unwrap() - 1.0).abs() <= 1e-12);
    for method in line["methods"].as_array().unwrap() {
        assert_eq!(method["status"], "skipped");
        assert!(method["reason"].is_string());
    }
    for verifier in line["verifiers"].as_array().unwrap() {
        let single =
            ["token", "block", "greedy-block"].contains(&verifier["name"].as_str().unwrap());
        assert_eq!(verifier["status"], if single { "ok" } else { "skipped" });
        assert_eq!(verifier["expected_accepted_length"].is_null(), !single);
        assert_eq!(verifier["reason"].is_string(), !single);
    }
    specgap()
        .arg(&path)
        .assert()
        .code(0)
        .stdout(contains("skipped: 2.6e6 tuples of draft blocks"));
}

#[test]
fn bad_usage_and_bad_input_are_exit_2() {
    for drafts in ["0", "65", "two", "1,,2", ""] {
        specgap()
            .args([UNIFORM, "--drafts", drafts])
            .assert()
            .code(2)
            .stderr(contains("--drafts"));
    }
    specgap().assert().code(2);
    specgap()
        .arg("no-such-file.toml")
        .assert()
        .code(2)
        .stderr(contains("no-such-file.toml"));
    let folder = tempfile::tempdir().unwrap();
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(UNIFORM)).unwrap();
    let missing = text.replace("length = 1", "length = 2");
    let path = file(folder.path(), "missing.toml", &missing);
    specgap()
        .arg(&path)
        .assert()
        .code(2)
        .stderr(contains("missing.toml").and(contains("no entry for prefix")))
        .stdout("");
}

#[test]
fn quiet_prints_only_the_last_line() {
    let output = specgap().args([UNIFORM, "-q"]).output().unwrap();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "1 block evaluation: 1 agrees, 0 do not\n"
    );
}
