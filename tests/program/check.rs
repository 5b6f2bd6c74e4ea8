//! `specgap check`: the ledger stands, JSON, files, baselines, exit codes. The ledger
//! takes seconds, so it is run twice: once as it should be, once with something wrong.

use crate::run::{ROOT, Run, specgap};
use specgap::claims::Baseline;
use std::collections::BTreeSet;
use std::fs::read_dir;
use std::path::Path;

fn check(args: &[&str]) -> Run {
    specgap(Path::new(ROOT), [&["check"], args].concat())
}

/// The problems that refute something.
const REFUTED: &str = "problems/refuted";

/// The committed baseline, of these problems alone.
fn baseline() -> Baseline {
    let text = std::fs::read_to_string("reports/baseline.json").unwrap();
    let mut baseline: Baseline = serde_json::from_str(&text).unwrap();
    let files = read_dir(REFUTED).unwrap().map(|file| file.unwrap().path());
    let names: BTreeSet<_> = files.map(|path| path.with_extension("")).collect();
    (baseline.problems).retain(|name, _| names.contains(&Path::new(REFUTED).join(name)));
    assert_eq!(baseline.problems.len(), names.len());
    baseline
}

fn baseline_text() -> String {
    serde_json::to_string(&baseline()).unwrap()
}

#[test]
fn the_ledger_stands_and_is_written_as_documented() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (committed, written) = (path("committed.json"), path("written.json"));
    let (junit, page) = (path("junit.xml"), path("claims.md"));
    std::fs::write(&committed, baseline_text()).unwrap();
    let problems = baseline().problems.len();
    let run = check(&[
        "--format",
        "json",
        "--problems",
        REFUTED,
        "--baseline",
        &committed,
        "--write-baseline",
        &written,
        "--junit",
        &junit,
        "--report",
        &page,
    ])
    .ok();
    let object = run.json();
    assert_eq!(object["schema"], 1);
    assert_eq!(object["ok"], true);
    assert_eq!(object["problems"]["failed"], 0);
    assert_eq!(object["problems"]["passed"], problems);
    let claims = object["claims"].as_array().unwrap();
    for claim in claims {
        let id = &claim["id"];
        assert_eq!(claim["ok"], true, "{claim}");
        assert_eq!(claim["verdict"], claim["expected"], "{id}");
        assert!(claim["statement"].is_string() && claim["source"].is_string());
        let evidence = claim["evidence"].as_object().unwrap();
        assert!(!evidence.is_empty(), "{id} has no evidence");
        let refuted = claim["verdict"] == "refuted";
        assert_eq!(claim["violation"].is_string(), refuted, "{id}");
        let explanation = claim["explanation"].as_str().unwrap();
        assert!(!refuted || explanation.len() > 100, "{id}");
    }
    let claim = claims
        .iter()
        .find(|claim| claim["id"] == "wo-formula")
        .unwrap();
    assert_eq!(claim["verdict"], "refuted");
    assert_eq!(claim["evidence"]["Q({0,1}) of sequential draws"], "18/35");

    let xml = std::fs::read_to_string(&junit).unwrap();
    assert!(
        xml.starts_with("<?xml") && xml.contains("failures=\"0\""),
        "{xml}"
    );
    // Claims, problems, the baseline.
    let cases = claims.len() + problems + 1;
    assert_eq!(xml.matches("<testcase").count(), cases);

    // The committed page is what this version generates.
    let body = |path: &str| {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().skip(4).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(body(&page), body("reports/claims.md"));

    // The committed baseline holds, and is what this version writes.
    assert_eq!(object["baseline"]["ok"], true);
    for field in ["regressions", "added"] {
        assert_eq!(object["baseline"][field], serde_json::json!([]), "{field}");
    }
    let text = std::fs::read_to_string(&written).unwrap();
    let written: Baseline = serde_json::from_str(&text).unwrap();
    assert_eq!(written.schema, 1);
    assert_eq!(written.claims.len(), claims.len());
    assert_eq!(written.problems.len(), problems);
}

#[test]
fn a_wrong_expectation_and_a_changed_baseline_fail_the_check() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (wrong, baseline, junit) = (path("wrong.toml"), path("baseline.json"), path("junit.xml"));
    let text = std::fs::read_to_string("problems/spectr/bernoulli-quarter-half-n2.toml").unwrap();
    std::fs::write(&wrong, text.replace("\"15/16\"", "\"7/8\"")).unwrap();
    let claims: serde_json::Value = serde_json::from_str(&baseline_text()).unwrap();
    let mut claims = claims["claims"].as_object().unwrap().iter();
    let (refuted, _) = claims
        .find(|(_, claim)| claim["verdict"] == "refuted")
        .unwrap();
    let tampered = baseline_text().replace("0.875", "0.876");
    let tampered = tampered.replacen("\"refuted\"", "\"holds\"", 1);
    std::fs::write(&baseline, tampered).unwrap();
    let run = check(&[
        "-q",
        "--claims",
        refuted,
        "--problems",
        REFUTED,
        "--problems",
        &wrong,
        "--baseline",
        &baseline,
        "--junit",
        &junit,
    ]);
    assert_eq!(run.code, Some(1), "{}{}", run.out, run.err);
    for words in ["FAILS", "15/16", "REGRESSION", "lemma_5_1", "was holds"] {
        assert!(run.out.contains(words), "{words:?} in {}", run.out);
    }
    let xml = std::fs::read_to_string(&junit).unwrap();
    assert!(xml.contains("<failure"), "{xml}");
}

#[test]
fn bad_arguments_are_refused_before_anything_runs() {
    for arguments in [
        ["--baseline", "no-such-file.json"],
        ["--baseline", "Cargo.toml"],
        ["--problems", "no-such-folder"],
        ["--problems", "src"],
    ] {
        check(&arguments).refused(&[arguments[1]]);
    }
    // A baseline holds one problem a name.
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::create_dir(path("two")).unwrap();
    for name in ["two/a.toml", "two/b.toml"] {
        std::fs::copy("problems/spectr/bernoulli-quarter-half-n2.toml", path(name)).unwrap();
    }
    let (before, now, two) = (path("before.json"), path("now.json"), path("two"));
    std::fs::write(&before, baseline_text()).unwrap();
    let all = ["--claims", "none", "--problems", &two];
    for option in [["--write-baseline", &now], ["--baseline", &before]] {
        let words = ["b.toml: name: is ", "a.toml", "one problem a name"];
        check(&[&all[..], &option].concat()).refused(&words);
    }
    assert!(!Path::new(&now).exists());
    check(&all).ok();
}

/// Some claims, or none; a baseline is not asked for what is left out.
#[test]
fn claims_can_be_chosen_listed_and_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (baseline, junit) = (path("baseline.json"), path("junit.xml"));
    std::fs::write(&baseline, baseline_text()).unwrap();
    let common = [
        "--problems",
        REFUTED,
        "--baseline",
        &baseline,
        "--junit",
        &junit,
    ];
    check(&[&["--claims", "wo-formula"], &common[..]].concat()).ok();
    let xml = std::fs::read_to_string(&junit).unwrap();
    assert_eq!(xml.matches("classname=\"specgap.claims\"").count(), 1);
    // What was found, although it is as expected: verdict, statement, evidence.
    for words in [
        "<system-out>refuted: ",
        "Q({0,1}) of sequential draws: 18/35",
    ] {
        assert!(xml.contains(words), "{words}: {xml}");
    }
    // Each regression is a case of its own.
    let tampered = baseline_text().replace("0.875", "0.876");
    std::fs::write(&baseline, tampered).unwrap();
    let run = check(&[&["--claims", "none", "-q"], &common[..]].concat());
    assert_eq!(run.code, Some(1), "{}{}", run.out, run.err);
    let regressions = run.out.matches("REGRESSION").count();
    let xml = std::fs::read_to_string(&junit).unwrap();
    let cases = xml.matches("classname=\"specgap.baseline\"").count();
    assert_eq!(
        (cases, xml.matches("<failure").count()),
        (regressions, regressions)
    );
    assert!(regressions > 0 && !xml.contains("specgap.claims"));

    let listed = check(&["--list", "--format", "json"]).json_lines();
    assert!(
        listed
            .iter()
            .any(|claim| claim["id"] == "wo-formula" && claim["expected"] == "refuted")
    );
    let some = check(&["--list", "--claims", "wo-formula"]);
    assert!(
        some.code == Some(0) && some.out.ends_with("1 claim\n"),
        "{}",
        some.out
    );
    check(&["--claims", "no-such-claim"]).refused(&["no-such-claim", "--list"]);
    check(&["--claims", "none,wo-formula"]).refused(&["--claims none"]);
    let empty = specgap(folder.path(), ["check", "--claims", "none"]);
    empty.refused(&["nothing to check"]);
}
