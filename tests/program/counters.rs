//! `specgap counters`: what it prints and writes, its exit codes, and what is refused.

use crate::run::{Run, cases, specgap};
use crate::says::Says;
use serde_json::Value;
use std::path::Path;

fn counters(folder: &Path, line: &str) -> Run {
    specgap(
        folder,
        ["counters"].into_iter().chain(line.split_whitespace()),
    )
}

/// Counters of a server that drafts three tokens.
fn dump(rounds: u32, places: [u32; 3]) -> String {
    let accepted: u32 = places.iter().sum();
    let name =
        |what: &str| format!("vllm:spec_decode_num_{what}_total{{engine=\"0\",model_name=\"m\"");
    let mut text = format!(
        "# HELP {0} Number of spec decoding drafts.\n# TYPE {0} counter\n{1}}} {rounds}.0\n\
         {2}}} {3}.0\n{4}}} {accepted}.0\n",
        "vllm:spec_decode_num_drafts_total",
        name("drafts"),
        name("draft_tokens"),
        3 * rounds,
        name("accepted_tokens"),
    );
    for (position, count) in places.iter().enumerate() {
        let place = name("accepted_tokens_per_pos");
        text.push_str(&format!("{place},position=\"{position}\"}} {count}.0\n"));
    }
    text
}

const TIMES: &str = "schema = 1\ntarget_step = { seconds = 0.02 }\ndraft_step = { seconds = 0.001 }\n\
    verify = [{ tokens = 1, seconds = 0.02 }, { tokens = 5, seconds = 0.021 }]\n";
const SLOW: &str = "schema = 1\ntarget_step = { seconds = 0.02 }\ndraft_step = { seconds = 0.008 }\n\
    verify = [{ tokens = 1, seconds = 0.02 }, { tokens = 5, seconds = 0.04 }]\n";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("first.txt", &dump(1000, [800, 600, 480]));
    write("later.txt", &dump(3000, [2300, 1700, 1330]));
    write("times.toml", TIMES);
    write("slow.toml", SLOW);
    folder
}

/// What llama.cpp's server says of itself after 40 requests of sampled drafts
/// (`scripts/engines/cpu_engines.py`).
#[test]
fn a_real_dump_is_read() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/engines");
    let run = counters(&fixtures, "llama-cpp-metrics.txt --format json").ok();
    let text = std::fs::read_to_string(fixtures.join("llama-cpp-metrics.txt")).unwrap();
    let counted = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace()
            .last()
            .unwrap()
            .parse::<f64>()
            .unwrap()
    };
    let rounds = counted("llamacpp:spec_decode_num_drafts_total ");
    let kept = counted("llamacpp:spec_decode_num_accepted_tokens_total ");
    let json = run.json();
    let longest = json["lengths"].as_array().unwrap().last().unwrap();
    // Rounds at the end of a text are shorter: the counts are the lower end.
    let lower = longest["acceptance_length"]["range"][0].as_f64();
    let mean = longest["acceptance_length"]["mean"].as_f64().unwrap();
    let found = lower.unwrap_or(mean);
    assert!(found <= 1.0 + kept / rounds + 1e-9, "{longest}");
}

#[test]
fn counters_become_lengths() {
    let folder = folder();
    let run = counters(folder.path(), "first.txt --cost-ratio 0.2 --format json").ok();
    let json = run.json();
    assert_eq!((&json["schema"], &json["length"]), (&1.into(), &3.into()));
    let lengths = json["lengths"].as_array().unwrap();
    // K + 1 = 4 is twice k + 1 for k = 1, which is exact: 2.88/(1 + 0.6); of k = 2 the ends are what 288
    // tokens take of calls: 148 and 100.
    let tokens = |at: usize, of: &str| lengths[at]["acceptance_length"][of].clone();
    let mean = |at: usize| tokens(at, "mean").as_f64().unwrap();
    let ends = |at: usize| {
        let ends = tokens(at, "range");
        [0, 1].map(|end| ends[end].as_f64().unwrap())
    };
    assert_eq!(lengths.len(), 8);
    assert!((mean(0) - 1.8).abs() < 1e-9 && (mean(2) - 2.88).abs() < 1e-9);
    let near = |found: f64, expected: f64| (found - expected).abs() < 1e-9;
    assert!(near(ends(0)[1], 1.8 * 1.01) && near(ends(0)[0], 1.8 * 0.99));
    assert!(near(ends(1)[1], 2.88 * 1.01) && near(ends(1)[0], 288.0 / 148.0 * 0.99));
    for (at, one) in lengths.iter().enumerate() {
        assert_eq!(one["length"], at + 1);
        assert!(at == 0 || mean(at) > mean(at - 1), "{at}");
    }
    assert_eq!(tokens(2, "range"), Value::Null);
    let kinds: Vec<&str> = lengths
        .iter()
        .map(|at| at["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds[..4], ["runs", "runs", "counted", "extrapolated"]);
    assert!(kinds[4..].iter().all(|kind| *kind == "extrapolated"));
    // Accepted by drafted: 0.8 at one draft, 0.627 at three, by arithmetic.
    let rate = lengths[2]["acceptance_rate"].as_f64().unwrap();
    assert!((rate - 1.88 / 3.0).abs() < 1e-12);
    let curve = &json["curve"];
    for (at, share) in [0.2, 0.2, 0.12, 0.48].into_iter().enumerate() {
        let found = curve["histogram"][at].as_f64().unwrap();
        assert!((found - share).abs() < 1e-12, "{curve}");
    }
    assert_eq!(curve["rounds"], 1000);
    // The third length, which ran, is within 1% of the fourth.
    assert_eq!(json["best"]["length"], 3);
    assert_eq!(
        json["best"]["alike"],
        serde_json::json!([2, 3, 4, 5, 6, 7, 8])
    );
    assert!((json["best"]["speedup"].as_f64().unwrap() - 2.88 / 1.6).abs() < 1e-9);
    assert_eq!(json["advice"], Value::Null);
    assert_eq!(
        json["command"],
        "specgap counters first.txt --cost-ratio 0.2"
    );
    // 50 tokens a second without drafts and 90 of 2.88 a round: c = (50 * 2.88/90 - 1)/3 = 0.2. Drafts may
    // be for nothing, too.
    let json = counters(
        folder.path(),
        "first.txt --throughput 3=90,0=50 --format json",
    )
    .json();
    assert!((json["best"]["speedup"].as_f64().unwrap() - 1.8).abs() < 1e-9);
    assert!(
        json["notes"].to_string().contains("c = 0.2000"),
        "{}",
        json["notes"]
    );
    let json = counters(folder.path(), "first.txt --cost-ratio 0 --format json").json();
    assert!(json["best"]["length"].as_u64().unwrap() > 3);
    // What was between two dumps.
    let run = counters(folder.path(), "first.txt later.txt --format json");
    let json = run.json();
    assert_eq!(json["served"]["rounds"], 2000.0);
    assert!(
        (json["lengths"][2]["acceptance_length"]["mean"]
            .as_f64()
            .unwrap()
            - 2.725)
            .abs()
            < 1e-9
    );
    assert_eq!(json["best"], Value::Null);
    assert_eq!(json["by_cost"].as_array().unwrap().len(), 6);
}

#[test]
fn the_first_screen_says_what_to_set() {
    let folder = folder();
    let run = counters(
        folder.path(),
        "first.txt -v --timings times.toml --out made",
    )
    .ok();
    let first: Vec<&str> = run.out.lines().take(8).collect();
    let first = first.join(" ");
    assert!(
        first.contains("put out 2.880 ± 0.075 tokens") && first.contains("Try K = 4"),
        "{first}"
    );
    assert!(
        run.out.contains("since-start") && run.out.contains("other temperatures"),
        "{}",
        run.out
    );
    assert!(run.out.ends_with("report: made/report.html\n"));
    let made = folder.path().join("made");
    for file in [
        "report.html",
        "report.md",
        "report.json",
        "tokens-by-length.svg",
    ] {
        assert!(made.join(file).is_file(), "{file}");
    }
    let run = counters(folder.path(), "first.txt --cost-ratio 0.9");
    assert!(run.out.contains("Do not draft"), "{}", run.out);
    let mut narrow = crate::run::command(folder.path(), ["counters", "first.txt"]);
    let narrow = narrow.env("COLUMNS", "80").output().unwrap();
    let text = String::from_utf8(narrow.stdout).unwrap();
    // The line of every report about --out is not wrapped.
    let mut own = text.lines().filter(|line| !line.starts_with("--out"));
    assert!(own.all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn a_list_by_batch_size_for_vllm() {
    let folder = folder();
    let line = "first.txt --timings-by-batch 8=slow.toml,1=times.toml --format json";
    let json = counters(folder.path(), line).json();
    assert_eq!(
        json["num_speculative_tokens_per_batch_size"],
        serde_json::json!([[1, 7, 4], [8, 8, 1]])
    );
    let text = counters(folder.path(), &line.replace(" --format json", "")).out;
    text.says("\"num_speculative_tokens_per_batch_size\": [[1, 7, 4], [8, 8, 1]]");
    text.says("Try vLLM's num_speculative_tokens_per_batch_size to the list below. At batch size 1 and 8 the counts");
    // Where a draft costs more than it can bring, no range leaves anything open.
    std::fs::write(
        folder.path().join("dear.toml"),
        SLOW.replace("0.008", "0.03"),
    )
    .unwrap();
    let text = counters(folder.path(), "first.txt --timings-by-batch 8=dear.toml").out;
    text.says("Set vLLM's num_speculative_tokens_per_batch_size to the list below.");
}

#[test]
fn requests_have_intervals() {
    let folder = folder();
    let mut lines = String::new();
    for at in 0..30u32 {
        let steps: Vec<u32> = (0..20)
            .map(|step| (step * 7 + at * at) % (4 + at % 3) % 4)
            .collect();
        let drafted = vec![3; steps.len()];
        lines.push_str(&format!(
            "{{\"metrics\": {{\"speculative_decoding\": {{\"num_spec_tokens\": 3, \
             \"per_step_accepted\": {steps:?}, \"per_step_drafted\": {drafted:?}}}}}}}\n"
        ));
    }
    std::fs::write(folder.path().join("responses.jsonl"), lines).unwrap();
    let json = counters(folder.path(), "responses.jsonl --format json").json();
    assert_eq!(json["source"], "vllm-requests");
    assert_eq!(json["served"]["requests"], 30);
    let kinds: Vec<&str> = json["lengths"]
        .as_array()
        .unwrap()
        .iter()
        .map(|at| at["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds[..3], ["replayed", "replayed", "counted"]);
    let counted = &json["lengths"][2]["acceptance_length"];
    let ends: Vec<f64> = counted["ci95"]
        .as_array()
        .unwrap()
        .iter()
        .map(|end| end.as_f64().unwrap())
        .collect();
    assert!(ends[0] < ends[1], "{counted}");
}

#[test]
fn what_tools_print_is_told_without_files() {
    let folder = folder();
    let run = counters(folder.path(), "--definitions").ok();
    for word in [
        "token-weighted",
        "spec_accept_length",
        "1 + K x",
        "llama.cpp",
    ] {
        assert!(run.out.contains(word), "{word} in {}", run.out);
    }
}

#[test]
fn what_is_refused() {
    let folder = folder();
    let good = dump(1000, [800, 600, 480]);
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("above.txt", &good.replace(" 3000.0", " 1800.0"));
    write("rising.txt", &dump(1000, [500, 600, 480]));
    let lacks: Vec<&str> = good
        .lines()
        .filter(|line| !line.contains("num_drafts"))
        .collect();
    write("lacks.txt", &lacks.join("\n"));
    write(
        "old.log",
        "draft acceptance rate = 0.57576 (  171 accepted /   297 generated)\n",
    );
    write(
        "sglang.txt",
        "sglang:spec_accept_length{model_name=\"m\"} 2.9\n",
    );
    write("bench.json", "{\"spec_decode_acceptance_rate\": 50.0}");
    write("other.txt", "hello\n");
    std::fs::create_dir(folder.path().join("out")).unwrap();
    std::fs::write(folder.path().join("out/report.json"), &good).unwrap();
    for (line, words) in cases(
        r#"
            above.txt -> above.txt | only 1800 drafted
            rising.txt -> rising.txt | place 2 is accepted 600 times
            lacks.txt -> lacks.txt | number of drafts
            old.log -> old.log | line 1 lacks the number of drafts | 171 of 297
            sglang.txt -> sglang.txt | gauges
            bench.json -> bench.json | number of drafts
            other.txt -> other.txt | no counts
            missing.txt -> missing.txt
            later.txt first.txt -> first.txt | started again
            first.txt bench.json -> one tool
            first.txt --where engine=3 -> engine=3
            first.txt --where engine -> engine=0
            first.txt --from sglang -> prometheus
            first.txt --cost-ratio -1 -> 0 or more
            first.txt --throughput 0=50,3=500 -> --throughput | fit no cost
            first.txt --throughput 0=50 -> 0=52,3=118
            first.txt --timings-by-batch 0=times.toml -> batch size
            first.txt --timings-by-batch 8=times.toml,8=slow.toml -> 8 is there twice
            first.txt --timings-by-batch 8=other.txt -> other.txt
            -> FILE
            out/report.json --out out -> report.json
        "#,
    ) {
        counters(folder.path(), &line).refused(&words);
    }
}

/// Records that name a group, in any order and in files of their own.
#[test]
fn groups_of_requests_are_told_and_written() {
    let folder = tempfile::tempdir().unwrap();
    let record = |at: u32| {
        let (group, less) = [("code", 0), ("chat", 9)][(at % 2) as usize];
        let counts = [4 + less + at % 3, 6, 20 - less + at % 4];
        format!(
            "{{\"group\": \"{group}\", \"metrics\": {{\"speculative_decoding\": {{\"acceptance_histogram\": \
             {counts:?}, \"num_spec_tokens\": 2}}}}}}\n"
        )
    };
    let write = |name: &str, order: &[u32]| {
        let text: String = order.iter().map(|&at| record(at)).collect();
        std::fs::write(folder.path().join(name), text).unwrap();
    };
    let order: Vec<u32> = (0..30).collect();
    // 7 and 30 have no common divisor.
    let shuffled: Vec<u32> = order.iter().map(|at| at * 7 % 30).collect();
    write("all.jsonl", &order);
    write("first.jsonl", &shuffled[..11]);
    write("second.jsonl", &shuffled[11..]);
    let line = "all.jsonl --cost-ratio 0.1 --profile model-optimizer,card --out made";
    let run = counters(folder.path(), line).ok();
    assert!(run.out.contains("By group of requests"), "{}", run.out);
    let json = |line: &str| -> Value {
        let run = counters(
            folder.path(),
            &format!("{line} --cost-ratio 0.1 --format json"),
        )
        .ok();
        let mut report: Value = serde_json::from_str(&run.out).unwrap();
        report["command"] = Value::Null;
        report
    };
    let whole = json("all.jsonl");
    assert_eq!(whole, json("first.jsonl second.jsonl"));
    assert_eq!(whole, json("second.jsonl first.jsonl"));
    // By hand: of the code's 15 requests.
    let own = (0..15u32)
        .map(|at| 2 * at)
        .map(|at| [4 + at % 3, 6, 20 + at % 4]);
    let (mut rounds, mut accepted) = (0, 0);
    for counts in own {
        rounds += counts.iter().sum::<u32>();
        accepted += counts[1] + 2 * counts[2];
    }
    let code = &whole["groups"][1];
    assert_eq!(
        (code["group"].as_str(), code["is_told"].as_bool()),
        (Some("code"), Some(true))
    );
    let mean = code["served"]["acceptance_length"]["mean"]
        .as_f64()
        .unwrap();
    assert!((mean - 1.0 - f64::from(accepted) / f64::from(rounds)).abs() < 1e-12);
    let read = |name: &str| std::fs::read_to_string(folder.path().join("made").join(name)).unwrap();
    let profile: Value = serde_json::from_str(&read("speculation_profile.json")).unwrap();
    let written = profile["per_category"]["code"]["mean_accept_length"]
        .as_f64()
        .unwrap();
    assert!((written - mean).abs() < 1e-6);
    assert!(read("card.md").contains("|chat|"));
}
