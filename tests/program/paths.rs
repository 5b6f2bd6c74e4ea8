//! `specgap paths`: the files, exit codes, and what is refused.

use crate::made_paths::{Made, write};
use crate::run::{Run, cases, specgap};
use specgap::replay::PathsReport;
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
    let run = paths(folder.path(), "log --paths 1,2,3 --length 2 --out made").ok();
    assert!(
        run.out.starts_with("Several draft paths: log, "),
        "{}",
        run.out
    );
    assert_eq!(run.out.lines().last(), Some("report: made/report.html"));
    let made = folder.path().join("made");
    let text = std::fs::read_to_string(made.join("report.json")).unwrap();
    let report: PathsReport = serde_json::from_str(&text).unwrap();
    assert_eq!(
        report.of.command,
        "specgap paths log --paths 1,2,3 --length 2"
    );
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
    for file in ["report.md", "accepted-by-paths.svg"] {
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
    assert_eq!(names.len(), 8);
    assert!(at["verifiers"][7]["below_upper_bound"]["ci95"][1].is_f64());
    assert!(report["checks"][0]["difference"]["mean"].is_f64());
}

#[test]
fn bad_input_is_refused_with_its_cure() {
    let folder = folder_with_log();
    for (line, words) in cases(
        r#"
            -> LOG
            missing -> missing
            log log -> log | named twice
            log --paths 0 -> --paths | 0
            log --paths 17 -> --paths | 17
            log --length 0 -> --length | 0
            log --length 9 -> log | have 3 tokens | --path-length 9
            log --temperature 2 -> log | temperature 1
            log --out log/log.json -> log.json
        "#,
    ) {
        paths(folder.path(), &line).refused(&words);
    }
}

/// The few lines that other reports have of draft paths are those of `specgap paths`.
#[test]
fn gap_and_length_say_what_draft_paths_could_give() {
    let folder = folder_with_log();
    let at = folder.path();
    let json = |line: &str| -> serde_json::Value {
        let run = specgap(at, line.split_whitespace().chain(["--format", "json"]));
        assert_eq!(run.code, Some(0), "{line}: {}", run.err);
        serde_json::from_str(&run.out).unwrap()
    };
    let known = json("paths log");
    let gap = json("gap log --temperature 1 --drafts 2 --laws with-replacement --verifiers rrs");
    let length = json("length log --lengths 1,2 --policies fixed");
    assert_eq!(gap["draft_paths"], length["draft_paths"]);
    let found = &gap["draft_paths"];
    for name in ["temperature", "length", "starts", "anchors", "logged_paths"] {
        assert_eq!(found[name], known[name], "{name}");
    }
    let known = known["by_drafts"].as_array().unwrap();
    let rows = found["by_drafts"].as_array().unwrap();
    assert_eq!((rows.len(), known.len()), (8, 8));
    for (row, known) in rows.iter().zip(known) {
        assert_eq!(row["lower_bound"], known["lower_bound"]);
        let first = &known["upper_bounds"][0];
        assert_eq!(row["upper_bound"], first["expected_accepted_length"]);
        assert_eq!(row["form"], first["form"]);
    }
    // Contexts have four paths.
    assert_eq!(rows[3]["form"], "several paths");
    assert_eq!(rows[4]["form"], "pooled paths");

    for line in [
        "gap log -v --temperature 1 --drafts 2 --laws with-replacement --verifiers rrs",
        "length log -v --lengths 1,2 --policies fixed",
    ] {
        let run = specgap(at, line.split_whitespace());
        let words: Vec<&str> = run.out.split_whitespace().collect();
        let words = words.join(" ");
        for said in [
            "Several draft paths: in a round that starts with the target's own law, with 4 paths of 3 tokens no verifier accepts more than",
            "specgap paths log",
        ] {
            assert!(words.contains(said), "{line}: {said}\n{}", run.out);
        }
    }

    // The first part has what they give, with all that a report says besides.
    std::fs::write(at.join("times.toml"), TIMES).unwrap();
    let line = "gap log --drafts 2 --laws with-replacement --verifiers rrs";
    for part in 1..=3 {
        let line = format!("{line} --shard {part}/3 --partial {part}.json");
        specgap(at, line.split_whitespace()).ok();
    }
    for given in ["", "--cost-ratio 0.1 --engine vllm", "--timings times.toml"] {
        let whole = json(&format!("{line} {given}"));
        assert_eq!(json(&format!("merge 3.json 1.json 2.json {given}")), whole);
        assert_eq!(whole["draft_paths"], gap["draft_paths"]);
    }
    let merged = json("merge 2.json 3.json --incomplete");
    assert!(merged.get("draft_paths").is_none());
    let left_out = merged["left_out"].to_string();
    assert!(left_out.contains("specgap paths log"), "{left_out}");
}

/// Times of a pass of up to three tokens.
const TIMES: &str = "schema = 1\ntarget_step = { seconds = 0.02 }\n\
    draft_step = { seconds = 0.004 }\n\
    verify = [{ tokens = 1, seconds = 0.02 }, { tokens = 3, seconds = 0.03 }]\n";

/// One path a context, or paths of another temperature, are not several of the text's own.
#[test]
fn gap_leaves_out_paths_that_bound_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for (name, made, said) in [
        (
            "token",
            Made {
                paths: 1,
                ..Made::default()
            },
            None,
        ),
        (
            "colder",
            Made {
                temperature: 0.5,
                ..Made::default()
            },
            Some("its draft paths were drawn at temperature 0.5"),
        ),
    ] {
        write(&folder.path().join(name), &made);
        let line = format!("gap {name} --drafts 2 --laws with-replacement --verifiers rrs");
        let line = line.split_whitespace().chain(["--format", "json"]);
        let run = specgap(folder.path(), line).ok();
        let report: serde_json::Value = serde_json::from_str(&run.out).unwrap();
        assert!(report.get("draft_paths").is_none(), "{name}");
        let left_out = report["left_out"].to_string();
        match said {
            Some(said) => assert!(left_out.contains(said), "{left_out}"),
            None => assert!(!left_out.contains("draft paths could"), "{left_out}"),
        }
    }
}
