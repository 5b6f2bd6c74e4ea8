//! `specgap schema`: does what every command prints, and what the repository's files say, keep
//! to the schemas? Fields that a schema does not name fail here too.

use crate::engine_log::{small, write as write_engine};
use crate::made_log::{rows, write, write_drawn};
use crate::made_paths::{Made, write as write_paths};
use crate::run::{ROOT, Run, specgap};
use jsonschema::Validator;
use serde_json::{Value, json};
use specgap::audit::{Rule, Settings, Simulator};
use specgap::log::{KeptTokens, Log};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn schema(name: &str) -> Value {
    let run = specgap(Path::new(ROOT), ["schema", name]);
    assert_eq!(run.code, Some(0), "{name}: {}", run.err);
    serde_json::from_str(&run.out).unwrap()
}

/// Closes every object that names its fields, so that fields without a name fail.
fn close(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if fields.get("type") == Some(&json!("object"))
                && fields.contains_key("properties")
                && !fields.contains_key("additionalProperties")
            {
                fields.insert("additionalProperties".to_owned(), json!(false));
            }
            fields.values_mut().for_each(close);
        }
        Value::Array(values) => values.iter_mut().for_each(close),
        _ => {}
    }
}

fn closed(name: &str) -> Validator {
    let mut schema = schema(name);
    close(&mut schema);
    jsonschema::validator_for(&schema).unwrap()
}

fn keeps(validator: &Validator, what: &str, value: &Value) {
    let faults: Vec<String> = (validator.iter_errors(value).take(3))
        .map(|error| format!("{what}: {}: {error:.300}", error.instance_path()))
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Runs a command in a folder, and holds each line that it prints against a schema.
fn printed(folder: &Path, line: &str, name: &str) -> Run {
    let words = line.split_whitespace().chain(["--format", "json"]);
    let run = specgap(folder, words);
    assert!(matches!(run.code, Some(0 | 1 | 4)), "{line}: {}", run.err);
    let validator = closed(name);
    let lines = run.json_lines();
    assert!(!lines.is_empty(), "{line}");
    for value in &lines {
        keeps(&validator, line, value);
    }
    run
}

fn problems() -> Vec<PathBuf> {
    fn below(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let ending = path.extension().and_then(|ending| ending.to_str());
            match ending {
                _ if path.is_dir() => below(&path, found),
                Some("toml" | "json") => found.push(path),
                _ => {}
            }
        }
    }
    let mut found = Vec::new();
    below(&Path::new(ROOT).join("problems"), &mut found);
    found
}

#[test]
fn schemas_are_listed_and_an_unknown_name_is_refused() {
    let list = specgap(Path::new(ROOT), ["schema", "--format", "json"]);
    let names: BTreeSet<String> = (list.json_lines().iter())
        .map(|line| line["name"].as_str().unwrap().to_owned())
        .collect();
    for name in &names {
        let schema = schema(name);
        jsonschema::meta::validate(&schema).unwrap_or_else(|error| panic!("{name}: {error}"));
        let title = schema["title"].as_str().unwrap();
        assert!(title.starts_with("specgap "), "{title}");
    }
    assert!(names.len() >= 20, "{names:?}");
    specgap(Path::new(ROOT), ["schema", "gaps"]).refused(&["gaps", "gap"]);
}

#[test]
fn problem_files_keep_to_their_schema() {
    let validator = closed("problem");
    let files = problems();
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        let value: Value = match file.extension().and_then(|ending| ending.to_str()) {
            Some("json") => serde_json::from_str(&text).unwrap(),
            _ => toml::from_str(&text).unwrap(),
        };
        keeps(&validator, &file.display().to_string(), &value);
    }
    assert!(files.len() > 150, "{}", files.len());
    // What the program refuses for its fields, the schema refuses too.
    let good = json!({"schema": 1, "name": "a", "target": [0.5, "1/2"], "drafts": 1,
        "draft": {"scheme": "with-replacement", "q": [1, 0]}});
    keeps(&validator, "good", &good);
    let broken: [fn(&mut Value); 7] = [
        |file| file["rule"] = json!({"outputs": {"0": [1, 0]}}),
        |file| file["draft"] = json!({"scheme": "composed", "law": {"drafts": 1}}),
        |file| file["targets"] = json!([1]),
        |file| file["draft"]["scheme"] = json!("with-replacements"),
        |file| file["target"][0] = json!(true),
        |file| file["block"] = json!({"vocab": 2, "length": 1, "target": {}, "draft": {}}),
        |file| drop(file.as_object_mut().unwrap().remove("drafts")),
    ];
    for (number, breaks) in broken.into_iter().enumerate() {
        let mut file = good.clone();
        breaks(&mut file);
        assert!(!validator.is_valid(&file), "{number}");
    }
}

#[test]
fn solve_verify_block_and_certify_print_what_the_schemas_say() {
    let root = Path::new(ROOT);
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().display().to_string();
    for folder in ["hand", "without-replacement", "refuted"] {
        for command in ["solve", "verify"] {
            printed(root, &format!("{command} problems/{folder}"), command);
        }
    }
    printed(root, "block problems/golden-blocks --drafts 1,2", "block");
    let problem = "problems/without-replacement/two-laws-sequential.toml";
    printed(root, &format!("solve {problem} --out {out}"), "solve");
    let certificate = folder.path().join("two-laws-sequential.json");
    keeps(&closed("certificate"), "certificate", &read(&certificate));
    for certificate in [
        certificate.display().to_string(),
        "tests/fixtures/certificates/mass-moved-by-a-hair.json".to_owned(),
    ] {
        let line = format!("certify {problem} {certificate}");
        printed(root, &line, "certify");
    }
    printed(
        root,
        "certify problems/hand/coin-two-drafts.toml",
        "certify",
    );
    printed(root, "explain alpha*", "explain");
}

#[test]
fn check_and_its_baseline_keep_to_their_schemas() {
    let folder = tempfile::tempdir().unwrap();
    let hand = Path::new(ROOT).join("problems/hand");
    let line = format!(
        "check --claims wo-formula --problems {} --write-baseline b.json --out made",
        hand.display()
    );
    printed(folder.path(), &line, "check");
    let baseline = folder.path().join("b.json");
    keeps(&closed("baseline"), "baseline", &read(&baseline));
    let committed = Path::new(ROOT).join("reports/baseline.json");
    keeps(
        &closed("baseline"),
        "reports/baseline.json",
        &read(&committed),
    );
    let written = read(&folder.path().join("made/report.json"));
    keeps(&closed("check"), "made/report.json", &written);
    let again = line.replace("b.json", "c.json") + " --baseline b.json";
    printed(folder.path(), &again, "check");
}

#[test]
fn reports_of_logs_keep_to_their_schemas() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write(&at.join("log"), &rows(20), KeptTokens::All);
    write(&at.join("other"), &rows(12), KeptTokens::All);
    write(
        &at.join("top"),
        &rows(20),
        KeptTokens::Top {
            count: 3,
            rest_temperatures: vec![0.7, 1.0],
        },
    );
    write_paths(&at.join("paths"), &Made::default());
    keeps(&closed("log"), "log.json", &read(&at.join("log/log.json")));
    let shipped = Path::new(ROOT).join("models/logs/smollm2-demo/log.json");
    keeps(&closed("log"), "the demo's log.json", &read(&shipped));
    std::fs::write(
        at.join("times.json"),
        "{\"schema\": 1, \"target_step\": {\"seconds\": 1}, \"draft_step\": {\"seconds\": 0.1}, \
         \"verify\": [{\"tokens\": 1, \"seconds\": 1}], \
         \"rules\": [{\"name\": \"rrs\", \"seconds\": 0.1}]}",
    )
    .unwrap();
    let times = read(&at.join("times.json"));
    keeps(&closed("timings"), "times.json", &times);
    for line in [
        "gap log --drafts 1-3 --temperature 1.0 --cost-ratio 0.1 --draft-temperature 0.5",
        "gap log --drafts 2 --temperature 0,1.0 --top-p 0.9 --costs times.json",
        "gap top --drafts 2 --temperature 0.7,1.0",
        "gap paths --drafts 2 --temperature 1.0",
    ] {
        printed(at, line, "gap");
    }
    printed(
        at,
        "gap log other --drafts 2 --temperature 1.0",
        "comparison",
    );
    printed(
        at,
        "length log --lengths 1,2 --timings times.json",
        "length",
    );
    printed(at, "length paths --lengths 1,2 --cost-ratio 0.1", "length");
    // A tree is written where the text tells one.
    write_drawn(&at.join("drawn"), &rows(20));
    let tree = "tree drawn --trees 2x2 --laws with-replacement --verifiers rrs --budget 4 \
                --max-depth 2 --max-branch 3 --slot-values --out made";
    printed(at, tree, "tree");
    let grown = read(&at.join("made/best-tree.eagle.json"));
    keeps(&closed("tree-topology"), "best-tree.eagle.json", &grown);
    printed(at, "paths paths --paths 2 --length 2", "paths");
    printed(at, "relaxed log", "relaxed");
    std::fs::write(
        at.join("metrics.txt"),
        "llamacpp:spec_decode_num_drafts_total 106\nllamacpp:spec_decode_num_draft_tokens_total 317\n\
         llamacpp:spec_decode_num_accepted_tokens_total 148\n\
         llamacpp:spec_decode_num_accepted_tokens_per_pos_total{position=\"0\"} 75\n\
         llamacpp:spec_decode_num_accepted_tokens_per_pos_total{position=\"1\"} 46\n\
         llamacpp:spec_decode_num_accepted_tokens_per_pos_total{position=\"2\"} 27\n",
    )
    .unwrap();
    printed(at, "counters metrics.txt", "counters");
    let line = "counters metrics.txt --timings times.json --timings-by-batch 1=times.json";
    printed(at, line, "counters");
}

#[test]
fn an_audit_an_import_and_vectors_keep_to_their_schemas() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let log = Log::from_bytes(Path::new("small.safetensors"), small().into()).unwrap();
    let simulator = Simulator::new(Settings::new(Rule::TOKEN));
    let made = simulator.log(&log).unwrap();
    write_engine(&small(), &made, &at.join("engine.safetensors"), &[]);
    let line = "audit engine.safetensors --rule single --negative-control";
    printed(at, line, "audit");
    let fixtures = Path::new(ROOT).join("tests/fixtures/engines");
    let line = format!(
        "import --from llama-cpp --target-rows {0}/llama-cpp-after-target.jsonl --draft-rows \
         {0}/llama-cpp-after-draft.jsonl --vocab 12 --temperature 0.5 --out imported",
        fixtures.display()
    );
    printed(at, &line, "import");
    specgap(at, "conformance --out vectors --vocab 5".split(' ')).ok();
    let manifest = read(&at.join("vectors/manifest.json"));
    keeps(&closed("conformance"), "manifest.json", &manifest);
    let trees = read(&at.join("vectors/trees.json"));
    keeps(&closed("conformance-trees"), "trees.json", &trees);
}

#[test]
fn committed_reports_keep_to_the_schemas() {
    for (report, name) in [
        ("demo", "gap"),
        ("qwen", "gap"),
        ("ladder", "comparison"),
        ("length", "length"),
        ("tree", "tree"),
        ("paths", "paths"),
    ] {
        let path = Path::new(ROOT)
            .join("reports")
            .join(report)
            .join("report.json");
        keeps(&closed(name), report, &read(&path));
    }
}
