//! `specgap solve` and `specgap certify`: exit codes, JSON fields, files, quiet pipes.

use crate::run::{ROOT, Run, command, specgap};
use serde_json::Value;
use std::path::Path;

/// A command line on files of the repository.
fn run(args: &[&str]) -> Run {
    specgap(Path::new(ROOT), args)
}

#[test]
fn solve_prints_the_documented_json() {
    let run = run(&[
        "solve",
        "--format",
        "json",
        "problems/spectr/bernoulli-quarter-half-n2.toml",
    ])
    .ok();
    let object = run.json();
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
fn quiet_prints_only_the_last_line() {
    let run = run(&["solve", "-q", "problems/hand"]).ok();
    assert!(run.out.contains(" 0 do not"), "{}", run.out);
    assert_eq!(run.out.lines().count(), 1, "{}", run.out);
}

#[test]
fn json_of_a_folder_is_one_object_a_line_in_order() {
    let with = |threads: &str| {
        let options = ["solve", "--format", "json", "--threads", threads];
        let run = run(&[&options[..], &["problems/hand"]].concat()).ok();
        let pick = |object: &Value| {
            ["problem", "optimal_acceptance_rate"].map(|field| object[field].clone())
        };
        run.json_lines().iter().map(pick).collect::<Vec<_>>()
    };
    let one = with("1");
    assert_eq!(one, with("4"));
    assert!(one.len() >= 12);
}

#[test]
fn a_failed_expectation_exits_with_1_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string("problems/spectr/bernoulli-quarter-half-n2.toml").unwrap();
    let path = folder.path().join("wrong.toml");
    std::fs::write(&path, text.replace("\"15/16\"", "\"14/16\"")).unwrap();
    let run = run(&["solve", "-q", path.to_str().unwrap()]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    for word in ["EXPECTATION FAILS", "7/8"] {
        assert!(run.out.contains(word), "{}", run.out);
    }
}

#[test]
fn certificates_are_written_and_checked() {
    let folder = tempfile::tempdir().unwrap();
    let problem = "problems/without-replacement/two-laws-sequential.toml";
    let certificates = folder.path().join("certificates");
    let path = certificates.to_str().unwrap();
    run(&["solve", "-q", problem, "--certificates", path]).ok();
    let written = certificates.join("two-laws-sequential.json");
    let certify = |certificate: &str| run(&["certify", problem, certificate]);
    let path = written.to_str().unwrap();
    assert_eq!(certify(path).code, Some(0));
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
    // The report stands beside it, with the proof in words, and nothing temporary stays behind.
    assert_eq!(std::fs::read_dir(&certificates).unwrap().count(), 4);
    for name in ["report.html", "report.md", "report.json"] {
        let text = std::fs::read_to_string(certificates.join(name)).unwrap();
        assert!(text.contains("All 2 drafts lie in H = "), "{name}: {text}");
    }

    let corrupted = certify("tests/fixtures/certificates/mass-moved-by-a-hair.json");
    assert_eq!(corrupted.code, Some(1), "{}", corrupted.err);
    assert!(corrupted.out.contains("REJECTED"), "{}", corrupted.out);

    std::fs::write(&written, "{\"schema\": 1").unwrap();
    certify(path).refused(&["two-laws-sequential.json"]);
}

/// Without a certificate one run of the level rule makes one.
#[test]
fn one_run_of_the_level_rule_encloses_the_optimum() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("made.toml");
    let problem = |scheme: &str, p: &str, q: &str| {
        let text = format!(
            "schema = 1\nname = \"made\"\ntarget = [{p}]\ndrafts = 2\n[draft]\nscheme = \
             \"{scheme}\"\nq = [{q}]\n"
        );
        std::fs::write(&path, text).unwrap();
        run(&["certify", path.to_str().unwrap(), "--format", "json"])
    };
    let halves = ("\"1/2\", \"1/2\"", "\"3/4\", \"1/4\"");
    let found = problem("with-replacement", halves.0, halves.1).ok();
    let json: serde_json::Value = serde_json::from_str(&found.out).unwrap();
    assert_eq!(json["optimal_acceptance_rate"], "15/16");
    assert_eq!(json["enclosure"]["upper_bound"], "15/16");
    assert_eq!(json["enclosure"]["subset"], serde_json::json!([0]));
    // Token 0 is drafted with 2/3, and nothing else is accepted: H = {1, 2}.
    let thirds = ("\"1\", \"0\", \"0\"", "\"1/3\", \"1/3\", \"1/3\"");
    for scheme in ["stratified", "stratified-independent"] {
        let found = problem(scheme, thirds.0, thirds.1).ok();
        let json: serde_json::Value = serde_json::from_str(&found.out).unwrap();
        assert_eq!(json["enclosure"]["upper_bound"], "2/3", "{scheme}: {json}");
        let lower = json["enclosure"]["lower"].as_f64().unwrap();
        assert!((lower - 2.0 / 3.0).abs() < 1e-9, "{scheme}: {json}");
    }
    problem("without-replacement", halves.0, halves.1).refused(&["draft.scheme", "made.toml"]);
}

#[test]
fn a_certificate_folder_that_cannot_be_made_is_bad_usage() {
    let problem = "problems/hand/coin-one-draft.toml";
    let run = run(&["solve", "-q", problem, "--certificates", "Cargo.toml"]);
    run.refused(&["Cargo.toml"]);
}

#[cfg(unix)]
#[test]
fn a_reader_that_goes_away_is_no_error() {
    use std::io::Read;
    use std::process::Stdio;
    let mut child = command(Path::new(ROOT), ["solve", "problems/golden"])
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

/// Each took eight seconds or more on an idle core, optimised, when fractions of 64 drafts grew
/// unchecked.
#[test]
fn few_tokens_and_many_drafts_end_soon() {
    let folder = tempfile::tempdir().unwrap();
    let tenths = "0.1, 0.05, 0.15, 0.1, 0.05, 0.05, 0.1, 0.1, 0.1, 0.1, 0.05, 0.05";
    let turned = "0.05, 0.1, 0.1, 0.1, 0.1, 0.05, 0.15, 0.05, 0.05, 0.1, 0.1, 0.05";
    let uniform = [r#""1/12""#; 12].join(", ");
    for (name, target, drafts, q) in [
        ("many", tenths, 64, turned),
        ("uniform", tenths, 32, uniform.as_str()),
        (
            "one",
            "1.0, 1e-310, 0.0, 0.0, 0.0",
            64,
            r#""1", "0", "0", "0", "0""#,
        ),
    ] {
        let problem = format!(
            "schema = 1\nname = \"{name}\"\ntarget = [{target}]\ndrafts = {drafts}\n[draft]\n\
             scheme = \"with-replacement\"\nq = [{q}]\n"
        );
        let file = format!("{name}.toml");
        std::fs::write(folder.path().join(&file), problem).unwrap();
        for command in ["solve", "verify"] {
            let start = std::time::Instant::now();
            let run = specgap(folder.path(), [command, &file]);
            assert!(run.out.contains("alpha* = "), "{}", run.err);
            let seconds = start.elapsed().as_secs();
            assert!(seconds < 60, "{command} {name}: {seconds} s");
        }
    }
}

#[cfg(not(feature = "onnx"))]
#[test]
fn capture_without_its_feature_says_how_to_build_it() {
    for arguments in [
        &["capture"][..],
        &["capture", "--target", "t.onnx", "--out", "log", "-v"],
    ] {
        run(arguments).refused(&["cargo install --path . --features onnx"]);
    }
}

/// What each of the four commands writes: a page in two formats, its data, and tables for papers.
#[test]
fn exact_results_are_pages_with_their_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let two =
        "problems/without-replacement/two-laws-sequential.toml problems/hand/coin-one-draft.toml";
    let blocks = "problems/golden-blocks/block-v2-l1-k2-1.toml";
    let one = "problems/hand/coin-two-drafts.toml";
    for (line, table, numbers) in [
        (
            format!("solve {one}"),
            "methods",
            ["17/20", "0.850000000000"],
        ),
        (format!("solve {two}"), "problems", ["11/14", "5/6"]),
        (
            format!("verify {one}"),
            "verifiers",
            ["17/20", "0.815036763"],
        ),
        (
            format!("verify {two}"),
            "verifiers-2",
            ["0.785714", "0.833333"],
        ),
        (
            format!("block {blocks} --drafts 1,2"),
            "bounds-2",
            ["0.465850966325", "0.464631097052"],
        ),
        (
            format!("check --claims wo-formula --problems {one}"),
            "claims",
            ["1 refuted", "18/35"],
        ),
    ] {
        let out = folder.path().join(table).to_str().unwrap().to_owned();
        let words = line
            .split(' ')
            .chain(["--out", &out, "--table", "latex,csv"]);
        let run = run(&words.collect::<Vec<_>>()).ok();
        assert!(run.out.contains("report.html"), "{}", run.out);
        let read = |name: &str| std::fs::read_to_string(Path::new(&out).join(name)).unwrap();
        let (page, text) = (read("report.html"), read("report.md"));
        for number in numbers {
            assert!(
                page.contains(number) && text.contains(number),
                "{line}: {number}: {text}"
            );
        }
        let data: Value = serde_json::from_str(&read("report.json")).unwrap();
        let results = data.as_array().map_or(1, Vec::len);
        assert_eq!(
            results,
            if line.contains(two) || line.contains("1,2") {
                2
            } else {
                1
            }
        );
        let rows = read(&format!("table-{table}.tex")).matches(r"\\").count();
        assert!(
            rows > 1 && read(&format!("table-{table}.csv")).lines().count() == rows,
            "{line}"
        );
    }
    // A certificate that would be a file of the report.
    let text = std::fs::read_to_string(Path::new(ROOT).join(one)).unwrap();
    let named = folder.path().join("a.toml");
    std::fs::write(&named, text.replace("coin-two-drafts", "Report")).unwrap();
    let out = folder.path().join("c");
    let args = [
        "solve",
        named.to_str().unwrap(),
        "--out",
        out.to_str().unwrap(),
    ];
    run(&args).refused(&["a.toml", "report", "--out"]);
}
