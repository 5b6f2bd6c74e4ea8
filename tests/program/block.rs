//! `specgap block` as a program: output, exit codes, messages.

use crate::run::{ROOT, Run, specgap};
use serde_json::Value;
use std::path::Path;

/// `specgap block` on files of the repository.
fn block(args: &[&str]) -> Run {
    specgap(Path::new(ROOT), [&["block"], args].concat())
}

fn json_lines(args: &[&str]) -> Vec<Value> {
    block(&[args, &["--format", "json"]].concat()).json_lines()
}

/// Exit code 0 and an output that says all of these.
fn says(args: &[&str], words: &[&str]) {
    let run = block(args).ok();
    for word in words {
        assert!(run.out.contains(word), "{word:?} in {}", run.out);
    }
}

/// Writes a file; its path.
fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

const UNIFORM: &str = "problems/refuted/gbv-lossless-uniform-2.toml";

#[test]
fn json_has_the_documented_fields() {
    let lines = json_lines(&[UNIFORM, "--drafts", "1,2,3"]);
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
                "select-greedy-block",
                "select-block",
                "gbv",
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
        let optimum = &line["block_optimum"];
        assert_eq!(
            (&optimum["exact"], &optimum["method"]),
            (&"1".into(), &"transport".into())
        );
    }
    // The file's values are for K = 2 and are compared with nothing else.
    assert!(lines[0].get("expected").is_none());
    assert_eq!(lines[1]["expected"]["ok"], true);
    let gbv = &lines[1]["verifiers"][10];
    assert_eq!(gbv["exact"]["expected_accepted_length"], "7/9");
    assert_eq!(gbv["exact"]["undefined_mass"], "2/9");
    assert_eq!(gbv["lossless"], false);
    assert_eq!(gbv["proved_lossless"], false);
    // One draft: the same rule is greedy block verification.
    assert_eq!(lines[0]["verifiers"][10]["lossless"], true);
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
    says(
        &[UNIFORM],
        &[
            "NO, as known",
            "not an upper bound for two or more drafts",
            "expected values of the file: ok",
            " 0 do not",
        ],
    );
}

#[test]
fn a_wrong_expectation_is_exit_1() {
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(UNIFORM).unwrap();
    let wrong = file(
        folder.path(),
        "wrong.toml",
        &text.replace("block_lp = 1.0", "block_lp = 0.9"),
    );
    let run = block(&[&wrong]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    for line in [
        "DISAGREES: expected.block_lp is 0.9, found 1",
        "1 block evaluation: 0 agree, 1 does not",
    ] {
        assert!(run.out.contains(line), "{}", run.out);
    }
    assert_eq!(block(&[&wrong, "--format", "json"]).code, Some(1));
    // Another K has no expectations.
    assert_eq!(block(&[&wrong, "--drafts", "1"]).code, Some(0));
}

#[test]
fn single_step_problems_are_refused_by_name_and_skipped_in_folders() {
    let single = "problems/hand";
    block(&["problems/hand/coin-one-draft.toml"])
        .refused(&["this is a single-step problem; run specgap solve on it"]);
    says(
        &[single, UNIFORM],
        &["single-step problems skipped (see specgap solve)"],
    );
    let lines = json_lines(&[single]);
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
    let lines = json_lines(&[&path]);
    let line = &lines[0];
    assert_eq!(line["block_lp"], Value::Null);
    assert_eq!(line["ok"], true);
    // The tree program has no such limit.
    let optimum = &line["block_optimum"];
    assert_eq!(optimum["method"], "tree-program");
    assert_eq!(optimum["kind"], "enclosed");
    let bound = |field: &str| optimum[field].as_f64().unwrap();
    assert!(bound("lower") <= 1.0 && 1.0 <= bound("upper"), "{optimum}");
    assert!(bound("upper") - bound("lower") < 1e-12, "{optimum}");
    assert!((line["per_depth_bound"].as_f64().unwrap() - 1.0).abs() <= 1e-12);
    let methods = line["methods"].as_array().unwrap().iter();
    for method in methods.filter(|method| method["name"] != "tree-program") {
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
    says(&[&path], &["skipped: 2.6e6 tuples of draft blocks"]);
}

#[test]
fn bad_usage_and_bad_input_are_exit_2() {
    for drafts in ["0", "65", "two", "1,,2", ""] {
        block(&[UNIFORM, "--drafts", drafts]).refused(&["--drafts"]);
    }
    block(&[]).refused(&[]);
    block(&["no-such-file.toml"]).refused(&["no-such-file.toml"]);
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(UNIFORM).unwrap();
    let missing = text.replace("length = 1", "length = 2");
    let path = file(folder.path(), "missing.toml", &missing);
    block(&[&path]).refused(&["missing.toml", "no entry for prefix"]);
}

#[test]
fn quiet_prints_only_the_last_line() {
    assert_eq!(
        block(&[UNIFORM, "-q"]).out,
        "1 block evaluation: 1 agrees, 0 do not\n"
    );
}
