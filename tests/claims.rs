//! Does the ledger stand, do its checks fail when they should, and does
//! `specgap check` keep its contract?

use assert_cmd::Command;
use serde_json::Value;
use specgap::claims::{Verdict, check_all, ledger};

/// Claims that the specification of the ledger names.
const REQUIRED: [(&str, &str); 26] = [
    ("otm-membership-equal", "holds"),
    ("otm-subset-equal", "holds"),
    ("dual-integral", "holds"),
    ("qconvex-wr", "holds"),
    ("qconvex-distinct", "holds"),
    ("wo-formula", "refuted"),
    ("qconvex-wo-sequential", "holds"),
    ("supermodular", "holds"),
    ("greedy-optimal", "holds"),
    ("hub-equals-greedy", "holds"),
    ("spectr-upper-tight", "holds"),
    ("kseq-ratio", "holds"),
    ("monotone-n", "holds"),
    ("uniform", "holds"),
    ("bernoulli", "holds"),
    ("wo-beats-wr", "holds"),
    ("spechub-beats-otm", "holds"),
    ("spechub-beats-rrs", "holds"),
    ("spechub-top", "holds"),
    ("spechub-table4", "supported"),
    ("gbv-k1", "holds"),
    ("gbv-upper", "refuted"),
    ("gbv-cic-trivial", "holds"),
    ("gbv-attains", "refuted"),
    ("gbv-lossless", "refuted"),
    ("khisti-n2", "holds"),
];

#[test]
fn every_verdict_is_the_expected_one() {
    for checked in check_all(|| {}) {
        assert!(checked.ok(), "{}: {:?}", checked.claim.id, checked.finding);
        assert!(
            !checked.finding.evidence.is_empty(),
            "{} has no evidence",
            checked.claim.id
        );
        if checked.verdict == Verdict::Refuted {
            assert!(checked.finding.violation.is_some(), "{}", checked.claim.id);
            assert!(
                checked.claim.explanation.len() > 100,
                "{}",
                checked.claim.id
            );
        }
    }
    for (id, verdict) in REQUIRED {
        let claim = ledger().into_iter().find(|claim| claim.id == id);
        assert_eq!(
            claim.map(|claim| claim.expected.as_str()),
            Some(verdict),
            "{id}"
        );
    }
}

fn check(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::cargo_bin("specgap")
        .unwrap()
        .arg("check")
        .args(arguments)
        .output()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[test]
fn check_prints_the_documented_json_and_writes_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (baseline, junit, page) = (path("baseline.json"), path("junit.xml"), path("claims.md"));
    let (code, out, _) = check(&[
        "--format",
        "json",
        "--problems",
        "problems/refuted",
        "--write-baseline",
        &baseline,
        "--junit",
        &junit,
        "--report",
        &page,
    ]);
    assert_eq!(code, Some(0), "{out}");
    assert_eq!(out.lines().count(), 1);
    let object: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(object["schema"], 1);
    assert_eq!(object["ok"], true);
    assert_eq!(object["problems"]["failed"], 0);
    assert!(object["problems"]["passed"].as_u64().unwrap() >= 3);
    let claims = object["claims"].as_array().unwrap();
    let claim = claims
        .iter()
        .find(|claim| claim["id"] == "wo-formula")
        .unwrap();
    assert_eq!(claim["verdict"], "refuted");
    assert_eq!(claim["expected"], "refuted");
    assert_eq!(claim["ok"], true);
    assert!(claim["statement"].is_string() && claim["source"].is_string());
    assert_eq!(claim["evidence"]["Q({0,1}) of sequential draws"], "18/35");

    let xml = std::fs::read_to_string(&junit).unwrap();
    assert!(
        xml.starts_with("<?xml") && xml.contains("failures=\"0\""),
        "{xml}"
    );
    assert_eq!(xml.matches("<testcase").count(), claims.len() + 3);

    // The committed page is what this version generates.
    let committed = std::fs::read_to_string("reports/claims.md").unwrap();
    let body = |text: &str| text.lines().skip(4).collect::<Vec<_>>().join("\n");
    assert_eq!(
        body(&std::fs::read_to_string(&page).unwrap()),
        body(&committed)
    );

    // Against itself nothing changed; against a tampered baseline it did.
    let quick = ["-q", "--problems", "problems/refuted", "--baseline"];
    let (code, out, _) = check(&[&quick[..], &[&baseline]].concat());
    assert_eq!(code, Some(0), "{out}");
    let tampered = std::fs::read_to_string(&baseline)
        .unwrap()
        .replace("0.875", "0.876");
    let tampered = tampered.replacen("\"refuted\"", "\"holds\"", 1);
    std::fs::write(&baseline, tampered).unwrap();
    let (code, out, _) = check(&[&quick[..], &[&baseline, "--junit", &junit]].concat());
    assert_eq!(code, Some(1), "{out}");
    assert!(
        out.contains("REGRESSION") && out.contains("lemma_5_1"),
        "{out}"
    );
    let xml = std::fs::read_to_string(&junit).unwrap();
    assert!(xml.contains("<failure"), "{xml}");
}

#[test]
fn the_committed_baseline_holds() {
    let (code, out, err) = check(&["-q", "--baseline", "reports/baseline.json"]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("0 regressions"), "{out}");
}

#[test]
fn a_failing_problem_fails_the_check() {
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string("problems/spectr/bernoulli-quarter-half-n2.toml").unwrap();
    std::fs::write(
        folder.path().join("wrong.toml"),
        text.replace("\"15/16\"", "\"7/8\""),
    )
    .unwrap();
    let (code, out, _) = check(&["-q", "--problems", folder.path().to_str().unwrap()]);
    assert_eq!(code, Some(1));
    assert!(out.contains("FAILS") && out.contains("15/16"), "{out}");
}

#[test]
fn bad_arguments_are_refused_before_anything_runs() {
    for arguments in [
        vec!["--baseline", "no-such-file.json"],
        vec!["--baseline", "Cargo.toml"],
        vec!["--problems", "no-such-folder"],
        vec!["--problems", "src"],
    ] {
        let (code, out, err) = check(&arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {out}{err}");
        assert!(out.is_empty() && err.contains(arguments[1]), "{err}");
    }
}
