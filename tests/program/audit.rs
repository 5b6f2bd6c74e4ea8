//! `specgap audit`: what it prints and writes, and its exit codes.

use crate::engine_log::{made, small, write};
use crate::run::{ROOT, cases, command, specgap};
use crate::says::Says;
use serde_json::Value;
use specgap::audit::{BugName, Rule, Settings, Simulator};
use specgap::log::Log;
use std::path::Path;
use std::process::Command;

/// A folder with the log of an engine.
fn folder(bug: Option<&str>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    play(folder.path(), &small(), Rule::TOKEN, bug);
    folder
}

/// Writes what an engine does on some rows.
fn play(folder: &Path, rows: &[u8], rule: Rule, bug: Option<&str>) {
    let log = Log::from_bytes(Path::new("made.safetensors"), rows.to_vec().into()).unwrap();
    let simulator = Simulator {
        bug: bug.map(|bug| bug.parse::<BugName>().unwrap()),
        ..Simulator::new(Settings::new(rule))
    };
    let made = simulator.log(&log).unwrap();
    write(rows, &made, &folder.join("engine.safetensors"), &[]);
}

#[test]
fn an_honest_engine_is_undecided_if_its_log_is_short_and_its_verdict_comes_first() {
    let folder = folder(None);
    let line = "audit engine.safetensors --rule token --junit a.xml --markdown a.md --out made";
    let run = specgap(folder.path(), line.split(' '));
    assert_eq!(run.code, Some(4), "{}", run.err);
    let places = [
        "are too few to find every departure of 0.05 or more",
        "120 tokens, 6 texts, all looked at",
        "Surprise: ",
        "The verdicts",
        "next: log what the first line asks for, and audit again.",
    ];
    let places = places.map(|words| run.out.find(words).unwrap_or_else(|| panic!("{}", run.out)));
    assert!(places.is_sorted(), "{places:?} {}", run.out);
    // It fits a screen; what would have been found is for those who ask.
    assert!(run.out.lines().count() <= 25, "{}", run.out);
    // A terminal of 80 columns.
    let line = "audit engine.safetensors --rule token -v";
    let mut narrow = command(folder.path(), line.split(' '));
    let output = narrow.env("COLUMNS", "80").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("What would have been found"), "{text}");
    assert_eq!(text.lines().find(|line| line.chars().count() > 80), None);
    let xml = std::fs::read_to_string(folder.path().join("a.xml")).unwrap();
    assert!(
        xml.contains("failures=\"0\"") && xml.contains("name=\"draft-law\""),
        "{xml}"
    );
    let block = std::fs::read_to_string(folder.path().join("a.md")).unwrap();
    assert!(block.starts_with("### Sampling audit: `token`"), "{block}");
    assert!(folder.path().join("made/report.html").is_file());
    // What has to be excluded is said: then so much text is enough.
    let line = "audit engine.safetensors --rule token --exclude 0.9 --noise 0";
    let run = specgap(folder.path(), line.split(' ')).ok();
    run.out.says("As claimed: nothing was found");
}

/// What stretches of a log say, put together by `merge`, is an audit of all of it, to the byte: engines that keep
/// to the rule and that do not, text alone, and a rule whose acceptance depends on the rows before.
#[test]
fn parts_are_the_whole() {
    let rows = made(400);
    for (rule, bug, options) in [
        (Rule::TOKEN, None, "--noise 0 --exclude 0.9"),
        (Rule::TOKEN, Some("correction-from-p"), "--noise 0"),
        (Rule::BLOCK, None, "--junit a.xml"),
        (Rule::TEXT, None, "--top-p 0.9 --negative-control"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        let played = if rule == Rule::TEXT {
            Rule::TOKEN
        } else {
            rule
        };
        play(here, &rows, played, bug);
        let line = format!("audit engine.safetensors --rule {rule} {options}");
        let run = |line: &str| specgap(here, line.split_whitespace());
        let whole = run(&format!("{line} --format json"));
        assert!(matches!(whole.code, Some(0 | 1 | 4)), "{}", whole.err);
        for count in [1, 3, 7] {
            let parts: Vec<String> = (1..=count).rev().map(|at| format!("{at}.part")).collect();
            for (name, at) in parts.iter().zip((1..=count).rev()) {
                run(&format!("{line} --shard {at}/{count} --partial {name}")).ok();
            }
            let merged = run(&format!("merge {} --format json", parts.join(" ")));
            assert_eq!(merged.code, whole.code, "{}", merged.err);
            assert!(merged.out == whole.out, "{line}, {count} parts");
        }
        assert_eq!(here.join("a.xml").exists(), options.contains("junit"));
    }
    // Of another log, and of records, which have no rows.
    let folder = self::folder(None);
    let here = folder.path();
    let run = |line: &str| specgap(here, line.split_whitespace());
    run("audit engine.safetensors --rule token --partial a").ok();
    play(here, &made(60), Rule::TOKEN, None);
    run("merge a").refused(&["engine.safetensors", "another log"]);
    std::fs::write(here.join("r.csv"), "p,q,draft,accepted,output\n").unwrap();
    run("audit r.csv --rule token --partial b").refused(&["r.csv", "in parts", "--partial"]);
    assert!(!here.join("b").exists());
}

/// The text that the target wrote alone: the same one is no evidence of p, another one exits with 1
/// at its first token, and what has no such tokens is refused.
#[test]
fn a_text_is_held_to_the_plain_one() {
    let (folder, other) = (folder(None), folder(Some("argmax-drafts")));
    let [own, plain] =
        ["engine", "plain"].map(|name| folder.path().join(format!("{name}.safetensors")));
    let line = "audit engine.safetensors --rule text --plain plain.safetensors -v";
    std::fs::copy(&own, &plain).unwrap();
    let run = specgap(folder.path(), line.split(' '));
    assert_eq!(run.code, Some(4), "{}", run.err);
    run.out.says("120 of 120 tokens");
    run.out
        .says("the audit of the text shows and not the equality");
    std::fs::copy(other.path().join("engine.safetensors"), &plain).unwrap();
    let run = specgap(folder.path(), format!("{line} --format json").split(' '));
    assert_eq!(run.code, Some(1), "{}", run.err);
    let report: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(report["conclusion"], "not-the-rule");
    let checks = report["hard_checks"].as_array().unwrap();
    let check = checks
        .iter()
        .find(|check| check["name"] == "plain-text")
        .unwrap();
    let outputs = |path: &Path| -> Vec<i64> {
        let records = Log::open(path).unwrap().engine_records().unwrap();
        records.iter().map(|one| one.output.unwrap()).collect()
    };
    let (ours, theirs) = (outputs(&own), outputs(&plain));
    let first = (0..120).find(|&at| ours[at] != theirs[at]).unwrap();
    assert_eq!(check["first_position"], first);
    assert!((1..=6).contains(&check["violations"].as_u64().unwrap()));
    let words = format!(": {} for {}", ours[first], theirs[first]);
    check["words"].as_str().unwrap().says(&words);
    let run = specgap(folder.path(), line.split(' '));
    run.out.says("Not the text that the target writes alone");
    std::fs::write(
        folder.path().join("r.csv"),
        "p,q,accepted,u_q,u_p\n,,,,0.5\n",
    )
    .unwrap();
    let line = "audit r.csv --rule text --plain plain.safetensors";
    specgap(folder.path(), line.split(' ')).refused(&["r.csv", "--plain is for logs of rows"]);
}

#[test]
fn a_bug_exits_1_and_is_named() {
    let folder = folder(Some("argmax-drafts"));
    let line = "audit engine.safetensors --rule token --format json --junit a.xml";
    let run = specgap(folder.path(), line.split(' '));
    assert_eq!(run.code, Some(1), "{}", run.err);
    let report: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(report["conclusion"], "lossy");
    assert_eq!(report["cause"]["name"], "draft-likeliest");
    // For a person: the cause and what to do, within a screen.
    let shown = specgap(
        folder.path(),
        "audit engine.safetensors --rule token".split(' '),
    );
    let screen: Vec<&str> = shown.out.lines().collect();
    assert!(
        screen[1].starts_with("  Lossy: ") && screen.len() <= 28,
        "{}",
        shown.out
    );
    assert!(
        screen[2].starts_with("  ! draft-likeliest: "),
        "{}",
        shown.out
    );
    assert_eq!(
        report["command"],
        "specgap audit engine.safetensors --rule token"
    );
    let xml = std::fs::read_to_string(folder.path().join("a.xml")).unwrap();
    assert!(xml.contains("<failure message="), "{xml}");
}

/// Counts of vLLM's server beside a text without drafts: those of the engine pass, those of one
/// that keeps more do not.
#[test]
fn counters_are_held_against_rows_without_drafts() {
    let folder = folder(None);
    let log = Log::open(&folder.path().join("engine.safetensors")).unwrap();
    let records = log.engine_records().unwrap();
    let started = records.iter().filter_map(|record| record.accepted);
    let kept: Vec<i64> = started.filter(|accepted| *accepted >= 0).collect();
    let made = specgap::audit::SimulatedLog { records };
    write(
        &small(),
        &made,
        &folder.path().join("text.safetensors"),
        &["drafts", "accepted", "round", "seed"],
    );
    let metrics = |name: &str, accepted: &[i64]| {
        let mut text = format!(
            "vllm:spec_decode_num_drafts_total{{engine=\"0\"}} {}\n\
             vllm:spec_decode_num_draft_tokens_total{{engine=\"0\"}} {}\n\
             vllm:spec_decode_num_accepted_tokens_total{{engine=\"0\"}} {}\n",
            accepted.len(),
            3 * accepted.len(),
            accepted.iter().sum::<i64>()
        );
        for place in 0..3 {
            let reached = accepted.iter().filter(|count| **count > place).count();
            text.push_str(&format!(
                "vllm:spec_decode_num_accepted_tokens_per_pos_total{{engine=\"0\",position=\"{place}\"}} {reached}\n"
            ));
        }
        std::fs::write(folder.path().join(name), text).unwrap();
    };
    metrics("own.txt", &kept);
    metrics("all.txt", &vec![3; kept.len()]);
    let line = "audit text.safetensors --rule token --seeds fresh --counters own.txt";
    let run = specgap(folder.path(), line.split(' '));
    assert_eq!(run.code, Some(4), "{}", run.err);
    for words in [
        "Counters against rows",
        "What these counts cannot tell",
        "z = ",
    ] {
        assert!(run.out.contains(words), "{words}: {}", run.out);
    }
    let line = "audit text.safetensors --rule token --counters all.txt --format json";
    let run = specgap(folder.path(), line.split(' '));
    assert_eq!(run.code, Some(1), "{}", run.err);
    let report: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(report["rule"], "text");
    assert_eq!(report["counts"]["rule"], "token");
    assert_eq!(report["counts"]["verdict"], "refuted");
    assert_eq!(report["counts"]["places"].as_array().unwrap().len(), 3);
    // Without a rule there is nothing that counts could be held against.
    let line = "audit text.safetensors --counters all.txt";
    let run = specgap(folder.path(), line.split(' '));
    assert_eq!(run.code, Some(2));
    assert!(run.err.contains("say by --rule"), "{}", run.err);
}

/// A log without drafts is a text, and needs no rule; a log with drafts does.
#[test]
fn a_text_is_audited_without_a_rule() {
    let folder = folder(None);
    let log = Log::open(&folder.path().join("engine.safetensors")).unwrap();
    let records = log.engine_records().unwrap();
    let path = folder.path().join("text.safetensors");
    let made = specgap::audit::SimulatedLog { records };
    write(
        &small(),
        &made,
        &path,
        &["drafts", "accepted", "round", "seed"],
    );
    let run = specgap(
        folder.path(),
        ["audit", "text.safetensors", "--exclude", "0.99"],
    );
    run.out.says("against p as the law of this text");
    run.out.says("Whose p it is, the log does not say");
    let json = ["audit", "text.safetensors", "--format", "json"];
    let run = specgap(folder.path(), json);
    let report: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(report["parts"].as_array().unwrap().len(), 1);
    assert_eq!(report["rule"], "text");
    assert_eq!(report["requests"]["seeds"], "unknown");
    assert_eq!(report["requests"]["averaged"], 6);
    let run = specgap(folder.path(), ["audit", "engine.safetensors"]);
    assert_eq!(run.code, Some(2));
    assert!(run.err.contains("--rule text"), "{}", run.err);
    // The target's rows are enough.
    let bare = [
        "draft_logits",
        "drafts",
        "accepted",
        "round",
        "seed",
        "batch_size",
    ];
    write(
        &small(),
        &made,
        &folder.path().join("bare.safetensors"),
        &bare,
    );
    let run = specgap(
        folder.path(),
        ["audit", "bare.safetensors", "--format", "json"],
    );
    let alone: Value = serde_json::from_str(&run.out).unwrap();
    // Bets on bugs that need the draft's rows are not made, so that e-values differ.
    for field in ["part", "steps", "verdict", "reason"] {
        assert_eq!(alone["parts"][0][field], report["parts"][0][field]);
    }
    assert_eq!(alone["parts"].as_array().unwrap().len(), 1);
    assert_eq!(alone["requests"], report["requests"]);
    // The same text under the name that `length` reads.
    let (name, token) = (&b"\"output\":"[..], &b"\"token\" :"[..]);
    let mut file = std::fs::read(folder.path().join("bare.safetensors")).unwrap();
    let at = file.windows(name.len()).position(|bytes| bytes == name);
    file[at.unwrap()..][..name.len()].copy_from_slice(token);
    std::fs::write(folder.path().join("token.safetensors"), file).unwrap();
    for command in ["gap", "length", "tree", "paths"] {
        let run = specgap(folder.path(), [command, "token.safetensors"]);
        let words = "draft_logits: is missing, and so are draft_probs and draft_logprobs; a text";
        assert_eq!(run.code, Some(2), "{command}");
        assert!(run.err.contains(words), "{command}: {}", run.err);
    }
}

/// An engine that draws from strata independently is told from one that draws no token twice.
#[test]
fn the_scheme_says_which_form_strata_have() {
    let folder = tempfile::tempdir().unwrap();
    let rows = Log::from_bytes(Path::new("small.safetensors"), made(40).into()).unwrap();
    let simulator = Simulator {
        settings: Settings::new(Rule::LEVEL_4_INDEPENDENT),
        follows: None,
        bug: None,
        drafts: 4,
        siblings: true,
        noise: 0.0,
    };
    let played = simulator.log(&rows).unwrap();
    let path = folder.path().join("engine.safetensors");
    write(&made(40), &played, &path, &[]);
    let line = "audit engine.safetensors --rule level-4 --format json";
    let apart = format!("{line} --law stratified-independent");
    let run = specgap(folder.path(), apart.split(' '));
    assert_eq!(run.code, Some(4));
    let report: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(report["rule"], "stratified-independent/level-4");
    let command = report["command"].as_str().unwrap();
    assert!(
        command.ends_with("--law stratified-independent"),
        "{command}"
    );
    // The rule's own name says the same.
    let named = line.replace("level-4", "stratified-independent/level-4");
    assert_eq!(specgap(folder.path(), named.split(' ')).code, Some(4));
}

#[test]
fn bad_input_exits_2_and_writes_nothing() {
    let folder = folder(None);
    std::fs::write(
        folder.path().join("r.csv"),
        "p,q,accepted,u_q,u_p\n2,0,1,0,0\n",
    )
    .unwrap();
    std::fs::write(
        folder.path().join("ok.csv"),
        "p,q,accepted,u_q,u_p\n0.5,0.5,1,0,0\n",
    )
    .unwrap();
    for (line, words) in cases(
        r#"
            audit engine.safetensors --rule nonsense -> is no rule
            audit engine.safetensors --rule threshold:2 -> at most 1
            audit engine.safetensors --rule rrs --law stratified -> it is for with-replacement
            audit engine.safetensors --law stratified-independent -> --rule level-4
            audit engine.safetensors --rule token --tolerance -1 -> --tolerance
            audit engine.safetensors --rule token --noise -1 -> --noise
            audit engine.safetensors --rule token --exclude 0 -> --exclude
            audit engine.safetensors --rule token --temperature 0 -> greedy
            audit nothing.safetensors --rule token -> nothing.safetensors
            audit engine.safetensors --rule token --seeds maybe -> neither fresh nor shared
            audit r.csv --rule token -> line 2
            audit ok.csv --rule token --top-k 5 -> file of records
        "#,
    ) {
        let run = specgap(folder.path(), line.split(' ').chain(["--junit", "no.xml"]));
        run.refused(&words);
        assert!(!folder.path().join("no.xml").exists());
    }
}

/// The steps of `action.yml`, by PyYAML; `None` where there is no Python that has it.
fn steps_of_the_action() -> Option<Vec<Value>> {
    let code = "import json, sys, yaml\nprint(json.dumps(yaml.safe_load(open(sys.argv[1]))))";
    let path = Path::new(ROOT).join("action.yml");
    let read = Command::new("python3")
        .arg("-c")
        .arg(code)
        .arg(path)
        .output();
    let read = read.ok().filter(|read| read.status.success())?;
    let action: Value = serde_json::from_slice(&read.stdout).unwrap();
    assert_eq!(action["runs"]["using"], "composite");
    // What the steps read of the inputs is declared.
    let inputs = action["inputs"].as_object().unwrap();
    let steps = action["runs"]["steps"].as_array().unwrap().clone();
    for input in steps
        .iter()
        .flat_map(|step| step["env"].as_object())
        .flatten()
    {
        let name = input.1.as_str().unwrap();
        let name = name.strip_prefix("${{ inputs.").unwrap();
        assert!(
            inputs.contains_key(name.strip_suffix(" }}").unwrap()),
            "{name}"
        );
    }
    assert!(steps.iter().all(|step| step["shell"] == "bash"));
    Some(steps)
}

/// Commands, options and files that the action names are there, whether YAML can be read or not.
#[test]
fn the_action_names_what_there_is() {
    let text = std::fs::read_to_string(Path::new(ROOT).join("action.yml")).unwrap();
    let mut named = 0;
    for line in text
        .lines()
        .filter(|line| line.trim().starts_with("specgap "))
    {
        let mut words = line.split_whitespace().skip(1);
        let command = words.next().unwrap();
        let help = specgap(Path::new(ROOT), [command, "--help"]);
        assert_eq!(help.code, Some(0), "{line}");
        for option in words.filter(|word| word.starts_with("--")) {
            assert!(
                help.out.contains(&format!("{option} <")),
                "{command} {option}"
            );
            named += 1;
        }
    }
    assert_eq!(named, 4);
    for part in text.split("$GITHUB_ACTION_PATH/").skip(1) {
        let file = part.split('"').next().unwrap();
        assert!(Path::new(ROOT).join(file).is_file(), "{file}");
    }
}

/// The action's own scripts, run as the service runs them: verdicts are in the summary, and decide
/// the exit code. Skipped where no Python has PyYAML or no bash is there.
#[test]
fn the_action_puts_its_verdicts_into_the_summary() {
    let Some(steps) = steps_of_the_action() else {
        eprintln!("skipped: python3 has no PyYAML");
        return;
    };
    let named = |name: &str| {
        let step = steps.iter().find(|step| step["name"] == name).unwrap();
        step["run"].as_str().unwrap().to_owned()
    };
    let program = Path::new(env!("CARGO_BIN_EXE_specgap")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    for (bug, code, says) in [
        (None, 4, "### Sampling audit: `token`"),
        (Some("argmax-drafts"), 1, "draft-likeliest"),
    ] {
        let folder = folder(bug);
        let run = |script: &str, more: &[(&str, &str)]| {
            let mut bash = Command::new("bash");
            bash.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script])
                .current_dir(folder.path())
                .env("PATH", format!("{}:{path}", program.display()))
                .env("GITHUB_ACTION_PATH", ROOT)
                .env("GITHUB_STEP_SUMMARY", folder.path().join("summary.md"))
                .envs(more.iter().copied());
            bash.output().unwrap()
        };
        let summary = || std::fs::read_to_string(folder.path().join("summary.md")).unwrap();
        let log = [
            ("LOG", "engine.safetensors"),
            // On several lines, of which the first is empty.
            ("OPTIONS", "\n--rule token\n--seeds fresh\n"),
        ];
        let ended = run(&named("Audit the engine"), &log);
        let err = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(code), "{err}");
        assert!(summary().contains(says), "{}", summary());
        assert!(folder.path().join("specgap-audit.xml").is_file());
        // A log that is not there is an error, and no verdict.
        let ended = run(
            &named("Audit the engine"),
            &[("LOG", "none"), ("OPTIONS", "")],
        );
        assert_eq!(ended.status.code(), Some(2));
        // What an earlier use has left is not said again.
        assert_eq!(summary().matches("### Sampling audit").count(), 1);
        // It is on the path, and is not installed again.
        assert!(run(&named("Install specgap"), &[]).status.success());
        let Some(python) = std::env::var_os("SPECGAP_PYTHON") else {
            continue;
        };
        let python = python.to_str().unwrap();
        let right = "from reference import token\n";
        let wrong = "import numpy\n\nprint('```')\n\n\ndef token(vector, samples, seed):\n    \
                     return numpy.zeros(samples, int), numpy.zeros(samples, int)\n";
        for (kernel, code) in [(right, 0), (wrong, 1)] {
            std::fs::write(folder.path().join("kernel.py"), kernel).unwrap();
            let all = [
                ("KERNEL", "kernel.py"),
                ("VOCABULARIES", "2,5"),
                ("PYTHON", python),
            ];
            let ended = run(&named("Test the kernel"), &all);
            let err = String::from_utf8_lossy(&ended.stderr);
            assert_eq!(ended.status.code(), Some(code), "{err}");
            assert!(summary().contains("### Verification kernel"));
            assert_eq!(summary().contains("FAIL"), code == 1, "{}", summary());
            // No fence can be closed by what a kernel prints.
            assert!(!summary().contains("\n```"), "{}", summary());
        }
    }
}
