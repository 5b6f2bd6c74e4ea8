//! Does the program keep its contract: exit codes, JSON fields, quiet pipes?

use assert_cmd::Command;
use serde_json::Value;

fn specgap() -> Command {
    Command::cargo_bin("specgap").unwrap()
}

#[test]
fn solve_prints_the_documented_json() {
    let output = specgap()
        .args([
            "solve",
            "--format",
            "json",
            "problems/spectr/bernoulli-quarter-half-n2.toml",
        ])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 1);
    let object: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(object["schema"], 1);
    assert_eq!(object["problem"], "bernoulli-quarter-half-n2");
    assert_eq!(object["scheme"], "with-replacement");
    assert_eq!(object["vocab"], 2);
    assert_eq!(object["drafts"], 2);
    let rate = &object["optimal_acceptance_rate"];
    assert_eq!(rate["exact"], "15/16");
    assert_eq!(rate["value"], 0.9375);
    assert_eq!(rate["lower"], 0.9375);
    assert_eq!(rate["upper"], 0.9375);
    assert_eq!(object["certificate"]["subset"], serde_json::json!([0]));
    assert_eq!(object["certificate"]["flow_equals_cut"], true);
    assert_eq!(object["agreement"]["ok"], true);
    assert_eq!(object["expected"]["ok"], true);
    let mut names = Vec::new();
    for method in object["methods"].as_array().unwrap() {
        let name = method["name"].as_str().unwrap();
        names.push(name);
        assert!(method["seconds"].is_number(), "{name}");
        match method["status"].as_str().unwrap() {
            "skipped" => assert!(!method["reason"].as_str().unwrap().is_empty()),
            "optimal" => {
                assert_eq!(method["value"], 0.9375, "{name}");
                if let Some(backend) = method["backend"].as_str() {
                    assert!(["highs", "minilp"].contains(&backend));
                    for field in ["primal_infeasibility", "dual_infeasibility", "duality_gap"] {
                        assert!(method[field].as_f64().unwrap() <= 1e-9, "{name} {field}");
                    }
                }
            }
            other => panic!("{name} is {other}"),
        }
    }
    for name in [
        "full-lp",
        "membership-lp",
        "dual-lp",
        "max-flow",
        "subset-enumeration",
        "ratio-scan",
        "closed-form",
        "submodular",
    ] {
        assert!(names.contains(&name), "{name} is listed");
    }
}

#[test]
fn solving_the_shipped_folder_succeeds() {
    let output = specgap()
        .args(["solve", "-q", "problems/"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains(" 0 do not"), "{text}");
    assert_eq!(
        text.lines().count(),
        1,
        "quiet prints the last line only: {text}"
    );
}

#[test]
fn json_of_a_folder_is_one_object_a_line_in_order() {
    let run = |threads: &str| {
        let output = specgap()
            .args([
                "solve",
                "--format",
                "json",
                "--threads",
                threads,
                "problems/hand",
            ])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .map(|line| {
                let object: Value = serde_json::from_str(line).unwrap();
                (
                    object["problem"].clone(),
                    object["optimal_acceptance_rate"].clone(),
                )
            })
            .collect::<Vec<_>>()
    };
    let one = run("1");
    assert_eq!(one, run("4"));
    assert!(one.len() >= 12);
}

#[test]
fn a_failed_expectation_exits_with_1_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string("problems/spectr/bernoulli-quarter-half-n2.toml").unwrap();
    let path = folder.path().join("wrong.toml");
    std::fs::write(&path, text.replace("\"15/16\"", "\"14/16\"")).unwrap();
    let output = specgap().args(["solve", "-q"]).arg(&path).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("EXPECTATION FAILS") && text.contains("7/8"),
        "{text}"
    );
}

#[test]
fn certificates_are_written_and_checked() {
    let folder = tempfile::tempdir().unwrap();
    let problem = "problems/without-replacement/two-laws-sequential.toml";
    let certificates = folder.path().join("certificates");
    specgap()
        .args(["solve", "-q", problem, "--certificates"])
        .arg(&certificates)
        .assert()
        .code(0);
    let written = certificates.join("two-laws-sequential.json");
    specgap()
        .args(["certify", problem])
        .arg(&written)
        .assert()
        .code(0);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&written).unwrap().permissions().mode();
        assert_ne!(
            mode & 0o044,
            0,
            "others may read it, umask permitting: {mode:o}"
        );
    }
    // Nothing temporary stays behind.
    assert_eq!(std::fs::read_dir(&certificates).unwrap().count(), 1);

    let corrupted = "tests/fixtures/certificates/mass-moved-by-a-hair.json";
    let output = specgap()
        .args(["certify", problem, corrupted])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .contains("REJECTED")
    );

    std::fs::write(&written, "{\"schema\": 1").unwrap();
    let output = specgap()
        .args(["certify", problem])
        .arg(&written)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_certificate_folder_that_cannot_be_made_is_bad_usage() {
    let output = specgap()
        .args([
            "solve",
            "-q",
            "problems/hand/coin-one-draft.toml",
            "--certificates",
            "Cargo.toml",
        ])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("Cargo.toml")
    );
}

#[cfg(unix)]
#[test]
fn a_reader_that_goes_away_is_no_error() {
    use std::io::Read;
    use std::process::{Command, Stdio};
    let mut child = Command::new(env!("CARGO_BIN_EXE_specgap"))
        .args(["solve", "problems/golden"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut first = [0; 10];
    out.read_exact(&mut first).unwrap();
    drop(out);
    let result = child.wait_with_output().unwrap();
    assert_eq!(result.status.code(), Some(0));
    assert!(
        result.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&result.stderr)
    );
}

/// The reports as people and programs see them, with times taken out.
#[test]
fn golden_reports() {
    let solution = |path: &str| {
        let problem = specgap::problem::read(std::path::Path::new(path))
            .unwrap()
            .remove(0)
            .1;
        let specgap::problem::AnyProblem::Single(problem) = problem else {
            panic!("{path} is a block problem")
        };
        let limits = specgap::solve::Limits {
            highs_variables: 0.0,
            ..Default::default()
        };
        let mut solution = specgap::solve::solve(&problem, &limits);
        solution
            .methods
            .retain(|run| run.backend != Some(specgap::lp::BackendName::Highs));
        for run in &mut solution.methods {
            run.seconds = 0.0;
        }
        solution
    };
    for name in [
        "without-replacement/two-laws-sequential",
        "spectr/bernoulli-quarter-half-n2",
    ] {
        let solution = solution(&format!("problems/{name}.toml"));
        let stem = name.split('/').next_back().unwrap();
        insta::assert_snapshot!(
            format!("{stem}-text"),
            specgap::report::solve::text(&solution, 100)
        );
        insta::assert_snapshot!(
            format!("{stem}-json"),
            specgap::report::solve::json(&solution).unwrap()
        );
    }
}

#[cfg(not(feature = "onnx"))]
#[test]
fn capture_without_its_feature_says_how_to_build_it() {
    for arguments in [
        &["capture"][..],
        &["capture", "--target", "t.onnx", "--out", "log", "-v"],
    ] {
        let output = specgap().args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(
            error.contains("cargo build --release --features onnx"),
            "{error}"
        );
    }
}
