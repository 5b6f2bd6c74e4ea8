//! `specgap verify`: exit codes, JSON fields, text, and what it refuses.

use assert_cmd::Command;
use serde_json::Value;
use std::io::Write;

fn verify(args: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::cargo_bin("specgap")
        .unwrap()
        .arg("verify")
        .args(args)
        .output()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

fn file(contents: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    file.write_all(contents.as_bytes()).unwrap();
    file
}

const COIN: &str = r#"
schema = 1
name = "coin"
target = ["1/10", "9/10"]
drafts = 2
[draft]
scheme = "with-replacement"
q = ["1/2", "1/2"]
"#;

#[test]
fn the_json_is_the_documented_one() {
    let (code, out, _) = verify(&["--format", "json", "problems/hand/coin-two-drafts.toml"]);
    assert_eq!(code, Some(0));
    assert_eq!(out.lines().count(), 1);
    let object: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(object["schema"], 1);
    assert_eq!(object["problem"], "coin-two-drafts");
    assert_eq!(object["optimal_acceptance_rate"]["exact"], "17/20");
    assert_eq!(object["ok"], true);
    let verifiers = object["verifiers"].as_array().unwrap();
    let names: Vec<&str> = verifiers
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "single", "rrs", "rrs-wo", "k-seq", "spechub", "greedy", "optimal", "naive"
        ]
    );
    for one in verifiers {
        let name = one["name"].as_str().unwrap();
        if ["single", "rrs-wo", "spechub", "greedy"].contains(&name) {
            assert_eq!(one["status"], "skipped", "{name}");
            assert!(one["reason"].as_str().unwrap().contains("lossless"));
            continue;
        }
        assert_eq!(one["status"], "measured", "{name}");
        assert_eq!(one["lossless"], true, "{name}");
        assert_eq!(one["total_variation"], 0.0, "{name}");
        assert_eq!(one["total_variation_exact"], true, "{name}");
        let membership = one["membership_acceptance"].as_f64().unwrap();
        assert!(one["algorithmic_acceptance"].as_f64().unwrap() <= membership);
        assert!((0.85 - membership - one["gap"].as_f64().unwrap()).abs() < 1e-15);
    }
    assert_eq!(verifiers[1]["exact"], "4/5");
    assert_eq!(verifiers[1]["expected"]["ok"], true);
}

#[test]
fn every_shipped_problem_passes() {
    let (code, out, err) = verify(&["-q", "problems/"]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains(" 0 do not"), "{out}");
    assert!(
        out.contains(" block problems skipped (see specgap block)"),
        "{out}"
    );
}

#[test]
fn the_text_defines_its_numbers() {
    let (code, out, _) = verify(&["problems/hand/sequential-triple.toml"]);
    assert_eq!(code, Some(0));
    for part in [
        "alpha* = 17/20",
        "rrs-wo",
        "yes, exact",
        "algorithmic   probability that the rule accepts a draft",
        "skipped, lossless only for other drafts: single",
        "1 problem, 3 verifier runs: 1 problem agrees, 0 do not",
    ] {
        assert!(out.contains(part), "{part}:\n{out}");
    }
}

#[test]
fn a_wrong_expectation_is_a_disagreement() {
    let wrong = format!("{COIN}[expected]\ntolerance = 0\nacceptance_rate.rrs = \"3/4\"\n");
    let (code, out, _) = verify(&[file(&wrong).path().to_str().unwrap()]);
    assert_eq!(code, Some(1));
    assert!(
        out.contains("EXPECTATION FAILS: the file says 0.75"),
        "{out}"
    );
    assert!(out.contains("0 problems agree, 1 does not"), "{out}");
    // A rate of a verifier that these drafts do not allow cannot be checked.
    let unmet = format!("{COIN}[expected]\ntolerance = 0\nacceptance_rate.rrs-wo = \"4/5\"\n");
    let unmet = file(&unmet);
    let path = unmet.path().to_str().unwrap();
    let (code, out, _) = verify(&[path]);
    assert_eq!(code, Some(1));
    assert!(
        out.contains("the file expects a rate, but rrs-wo is"),
        "{out}"
    );
    let (code, out, _) = verify(&["--format", "json", path]);
    assert_eq!(code, Some(1));
    let object: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(object["verifiers"][2]["expectation_unmet"], true);
    assert_eq!(object["ok"], false);
}

#[test]
fn too_many_tuples_leave_the_variation_out_with_a_reason() {
    let path = "problems/spectr/bernoulli-one-sixtyfourth-n64.toml";
    let (code, out, _) = verify(&["--format", "json", path]);
    assert_eq!(code, Some(0));
    let object: Value = serde_json::from_str(&out).unwrap();
    let rrs = &object["verifiers"][1];
    assert_eq!(rrs["kind"], "exact");
    assert_eq!(rrs["total_variation"], Value::Null);
    assert_eq!(rrs["lossless"], Value::Null);
    let reason = rrs["total_variation_reason"].as_str().unwrap();
    assert!(reason.contains("tuples are too many"), "{reason}");
    // Rules that look at the set alone are summed all the same.
    assert_eq!(object["verifiers"][6]["lossless"], true);
}

#[test]
fn bad_input_is_refused() {
    let (code, _, err) = verify(&["no-such-file.toml"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("no-such-file.toml"), "{err}");
    let bad = file(&COIN.replace("9/10", "8/10"));
    let (code, _, err) = verify(&[bad.path().to_str().unwrap()]);
    assert_eq!(code, Some(2));
    assert!(err.contains("target"), "{err}");
    let (code, _, err) = verify(&["problems/golden-blocks/block-v2-l1-k2-1.toml"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("run specgap block on it"), "{err}");
    let (code, ..) = verify(&[]);
    assert_eq!(code, Some(2));
}
