//! `specgap verify`: exit codes, JSON fields, text, and what it refuses.

use crate::run::{ROOT, Run, cases, specgap};
use crate::says::Says;
use serde_json::Value;
use specgap::scheme::SchemeName;
use specgap::verifier::VerifierName;
use std::io::Write;
use std::path::Path;

fn verify(args: &[&str]) -> Run {
    specgap(Path::new(ROOT), [&["verify"], args].concat())
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
    let run = verify(&["--format", "json", "problems/hand/coin-two-drafts.toml"]).ok();
    let object = run.json();
    assert_eq!(object["schema"], 1);
    assert_eq!(object["problem"], "coin-two-drafts");
    assert_eq!(object["optimal_acceptance_rate"]["exact"], "17/20");
    assert_eq!(object["ok"], true);
    let verifiers = object["verifiers"].as_array().unwrap();
    let names: Vec<&str> = verifiers
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, VerifierName::ALL.map(VerifierName::as_str));
    for one in verifiers {
        let name = one["name"].as_str().unwrap();
        let rule: VerifierName = name.parse().unwrap();
        if !rule.is_lossless(SchemeName::WITH_REPLACEMENT, 2) {
            assert_eq!(one["status"], "skipped", "{name}");
            assert!(one["reason"].as_str().unwrap().contains("lossless"));
            continue;
        }
        assert_eq!(one["status"], "measured", "{name}");
        assert_eq!(one["lossless"], true, "{name}");
        // The level rule has no law in fractions.
        let has_exact_law = rule != VerifierName::LEVEL;
        assert_eq!(one["total_variation_exact"], has_exact_law, "{name}");
        let variation = one["total_variation"].as_f64().unwrap();
        assert!(
            variation <= if has_exact_law { 0.0 } else { 1e-15 },
            "{name}"
        );
        let membership = one["membership_acceptance"].as_f64().unwrap();
        assert!(one["algorithmic_acceptance"].as_f64().unwrap() <= membership);
        assert!((0.85 - membership - one["gap"].as_f64().unwrap()).abs() < 1e-15);
    }
    let rrs = of(&object, "rrs");
    assert_eq!(rrs["exact"], "4/5");
    assert_eq!(rrs["expected"]["ok"], true);
}

/// One verifier's result.
fn of<'a>(object: &'a Value, name: &str) -> &'a Value {
    let all = object["verifiers"].as_array().unwrap();
    all.iter().find(|one| one["name"] == name).unwrap()
}

#[test]
fn a_folder_is_verified_and_block_problems_are_skipped() {
    let Run { code, out, err } = verify(&["-q", "problems/hand", "problems/refuted"]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains(" 0 do not"), "{out}");
    out.says(" block problems skipped (see specgap block)");
}

#[test]
fn the_text_defines_its_numbers() {
    // A legend is for those who ask for more.
    let Run { code, out, .. } = verify(&["problems/hand/sequential-triple.toml"]);
    assert_eq!(code, Some(0));
    assert!(!out.contains("algorithmic: probability"), "{out}");
    let Run { code, out, .. } = verify(&["-v", "problems/hand/sequential-triple.toml"]);
    assert_eq!(code, Some(0));
    for part in [
        "alpha* = 17/20",
        "rrs-wo",
        "yes, exact",
        "algorithmic: probability that the rule accepts a draft",
        "skipped, lossless only for other drafts: token",
        "1 problem, 4 verifier runs: 1 problem agrees, 0 do not",
    ] {
        assert!(out.contains(part), "{part}:\n{out}");
    }
}

#[test]
fn a_wrong_expectation_is_a_disagreement() {
    let wrong = format!("{COIN}[expected]\ntolerance = 0\nacceptance_rate.rrs = \"3/4\"\n");
    let Run { code, out, .. } = verify(&[file(&wrong).path().to_str().unwrap()]);
    assert_eq!(code, Some(1));
    out.says("rrs: EXPECTATION FAILS: expected.acceptance_rate.rrs is 3/4, found 4/5");
    assert!(out.contains("0 problems agree, 1 does not"), "{out}");
    // So is one of alpha* itself.
    let wrong = format!("{COIN}[expected]\ntolerance = 0\noptimal_acceptance_rate = \"3/4\"\n");
    let Run { code, out, .. } = verify(&[file(&wrong).path().to_str().unwrap()]);
    assert_eq!(code, Some(1));
    out.says("EXPECTATION FAILS: expected.optimal_acceptance_rate is 3/4");
    // Rules by their older names are compared too, and each is given once.
    let rate = |name: &str| format!("acceptance_rate.{name} = \"1/100\"\n");
    let old = format!("{COIN}[expected]\ntolerance = 0\n{}", rate("naive"));
    let Run { code, out, .. } = verify(&[file(&old).path().to_str().unwrap()]);
    assert_eq!(code, Some(1));
    out.says("exact-match: EXPECTATION FAILS: expected.acceptance_rate.exact-match is 1/100");
    for other in ["strict", "target-only", "exact-match"] {
        let twice = file(&(old.clone() + &rate(other)));
        let words = [
            "expected.acceptance_rate.",
            "is given twice, as exact-match",
        ];
        verify(&[twice.path().to_str().unwrap()]).refused(&words);
    }
    // A rate of a verifier that these drafts do not allow cannot be checked.
    let unmet = format!("{COIN}[expected]\ntolerance = 0\nacceptance_rate.rrs-wo = \"4/5\"\n");
    let unmet = file(&unmet);
    let path = unmet.path().to_str().unwrap();
    let Run { code, out, .. } = verify(&[path]);
    assert_eq!(code, Some(1));
    out.says("the file expects a rate, but rrs-wo is");
    let run = verify(&["--format", "json", path]);
    assert_eq!(run.code, Some(1));
    let object = run.json();
    assert_eq!(of(&object, "rrs-wo")["expectation_unmet"], true);
    assert_eq!(object["ok"], false);
}

#[test]
fn too_many_tuples_leave_the_variation_out_with_a_reason() {
    let path = "problems/spectr/bernoulli-one-sixtyfourth-n64.toml";
    let run = verify(&["--format", "json", path]).ok();
    let object = run.json();
    let rrs = of(&object, "rrs");
    assert_eq!(rrs["kind"], "exact");
    assert_eq!(rrs["total_variation"], Value::Null);
    assert_eq!(rrs["lossless"], Value::Null);
    let reason = rrs["total_variation_reason"].as_str().unwrap();
    assert!(reason.contains("tuples are too many"), "{reason}");
    // Rules that look at the set alone are summed all the same.
    assert_eq!(of(&object, "optimal")["lossless"], true);
}

#[test]
fn bad_input_is_refused() {
    verify(&["no-such-file.toml"]).refused(&["no-such-file.toml"]);
    let bad = file(&COIN.replace("9/10", "8/10"));
    verify(&[bad.path().to_str().unwrap()]).refused(&["target"]);
    verify(&["problems/golden-blocks/block-v2-l1-k2-1.toml"]).refused(&["run specgap block on it"]);
    verify(&[]).refused(&[]);
}

/// One draft that is always kept, and one that is verified as it should be.
fn tabulated(outputs: &str) -> String {
    format!(
        r#"{{"schema": 1, "name": "somebody's rule", "target": ["1/2", "1/2"], "drafts": 1,
            "draft": {{"scheme": "with-replacement", "q": ["3/4", "1/4"]}},
            "rule": {{"name": "mine", "outputs": {outputs}}}}}"#
    )
}

fn json_file(contents: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
    file.write_all(contents.as_bytes()).unwrap();
    file
}

#[test]
fn a_tabulated_rule_is_summed_and_refuted_where_it_is_lossy() {
    let lossy = json_file(&tabulated(r#"{"0": [1, 0], "1": [0, 1]}"#));
    let path = lossy.path().to_str().unwrap();
    let run = verify(&["--format", "json", path]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    let rule = &run.json()["rule"];
    assert_eq!(rule["name"], "mine");
    assert_eq!(rule["total_variation"], 0.25);
    assert_eq!(rule["exact"], "1");
    // It accepts more than any lossless rule can.
    assert_eq!(rule["gap"], -0.25);
    assert_eq!(rule["lossless"], false);
    let run = verify(&[path]);
    assert_eq!(run.code, Some(1));
    run.out.says("mine: NOT LOSSLESS: TV 2.5e-1");

    let sound = json_file(&tabulated(r#"{"0": ["2/3", "1/3"], "1": ["0", "1"]}"#));
    let run = verify(&["--format", "json", sound.path().to_str().unwrap()]).ok();
    let rule = &run.json()["rule"];
    assert_eq!(rule["total_variation"], 0.0);
    assert_eq!(rule["exact"], "3/4");
    assert_eq!(rule["lossless"], true);
}

#[test]
fn a_tabulated_rule_that_does_not_fit_is_refused() {
    for (outputs, words) in cases(
        r#"
            {"0": [1, 0]} -> rule.outputs has no row "1", and these drafts can be drawn
            {"0": [1, 0], "1": [0, 1], "2": [0, 1]} -> rule.outputs."2" is no list of tokens below 2
            {"0": [1, 0], "1 0": [0, 1]} -> rule.outputs."1 0" lists 2 drafts; 1 are drawn at a time
            {"0": [1], "1": [0, 1]} -> rule.outputs."0" has 1 entries; the target has 2
            {"0": [1, 0.5], "1": [0, 1]} -> rule.outputs."0": the 2 entries sum to 1.5
            {"0": [1, 0], "1": [0, 1], "01": [0, 1]} -> is there twice
        "#,
    ) {
        let file = json_file(&tabulated(&outputs));
        verify(&[file.path().to_str().unwrap()]).refused(&words);
    }
}

/// A folder without anything for the command is no success.
#[test]
fn nothing_to_verify_is_refused() {
    let run = verify(&["problems/refuted/gbv-lossless-uniform-2.toml"]);
    assert_eq!(run.code, Some(2), "{}", run.out);
    let folder = tempfile::tempdir().unwrap();
    let name = "gbv-lossless-uniform-2.toml";
    std::fs::copy(
        Path::new("problems/refuted").join(name),
        folder.path().join(name),
    )
    .unwrap();
    let run = verify(&[folder.path().to_str().unwrap()]);
    run.refused(&["nothing was done: 1 problem read"]);
}
