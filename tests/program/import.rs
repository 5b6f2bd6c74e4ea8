//! `specgap import`: what it prints, and what is refused, which leaves nothing behind.

use crate::run::{ROOT, Run, cases, names, specgap};
use serde_json::{Value, json};
use std::path::Path;

fn import(folder: &Path, line: &str) -> Run {
    specgap(
        folder,
        ["import"].into_iter().chain(line.split_whitespace()),
    )
}

/// A fixture's name, from anywhere.
fn fixture(name: &str) -> String {
    format!("{ROOT}/tests/fixtures/engines/{name}")
}

fn records(name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(fixture(name)).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn write(folder: &Path, name: &str, records: &[Value]) {
    let text: String = records.iter().map(|record| format!("{record}\n")).collect();
    std::fs::write(folder.join(name), text).unwrap();
}

/// Refused with these words, and nothing is left in the folder that was not there.
fn refused(folder: &Path, line: &str, words: &[&str]) {
    let before = names(folder);
    let run = import(folder, line);
    assert_eq!(run.code, Some(2), "{line} {words:?}: {}", run.out);
    run.refused(words);
    assert_eq!(names(folder), before, "{line}");
}

#[test]
fn a_log_is_made_and_the_next_command_named() {
    let folder = tempfile::tempdir().unwrap();
    let (target, draft) = (
        fixture("llama-cpp-after-target.jsonl"),
        fixture("llama-cpp-after-draft.jsonl"),
    );
    let args = format!(
        "--from llama-cpp --target {target} --draft {draft} --vocab 12 --temperature 0.5 --out log"
    );
    let run = import(folder.path(), &args).ok();
    assert!(
        run.out
            .starts_with("15 positions of 3 texts from llama-cpp\n"),
        "{}",
        run.out
    );
    let last = run.out.lines().last().unwrap();
    assert_eq!(last, "next: specgap gap log --temperature 0.5 --out report");
    // Its sampler's order is the engine's unless it was another.
    for (asked, order) in [("", "k,p,m,T"), ("--cut-order vllm", "m,k,p")] {
        let args = format!("{args} --top-k 5 {asked}").replace("--out log", "--out cut");
        import(folder.path(), &args).ok();
        let log = std::fs::read(folder.path().join("cut/log.json")).unwrap();
        let log: Value = serde_json::from_slice(&log).unwrap();
        assert_eq!(log["metadata"]["sampling"]["cut_order"], order);
        std::fs::remove_dir_all(folder.path().join("cut")).unwrap();
    }
    let line = "gap log --temperature 0.5 --drafts 2 --format json";
    let gap = specgap(folder.path(), line.split(' ')).ok();
    assert_eq!(gap.json()["positions"], 15);
    // Not twice, and not over anything else.
    import(folder.path(), &args).refused(&["log: is there already"]);
    // No folder of this machine is in the log.
    let index = std::fs::read_to_string(folder.path().join("log/log.json")).unwrap();
    assert!(!index.contains(ROOT), "{index}");
}

/// An engine's export to bounds, end to end: every number of the full rows lies within those
/// that the imported lists leave open.
#[test]
fn lists_of_their_own_become_bounds_that_hold_the_full_rows() {
    let folder = tempfile::tempdir().unwrap();
    let (target, draft) = (
        fixture("vllm-completion-target.jsonl"),
        fixture("vllm-completion-draft.jsonl"),
    );
    import(
        folder.path(),
        &format!("--from vllm --target {target} --draft {draft} --vocab 12 --out log"),
    )
    .ok();
    let truth = fixture("truth.npz");
    let report = |log: &str, out: &str| -> Value {
        let line = format!("gap {log} --temperature 1 --drafts 1,2 --out {out}");
        specgap(folder.path(), line.split(' ')).ok();
        let file = std::fs::read(folder.path().join(out).join("report.json")).unwrap();
        serde_json::from_slice(&file).unwrap()
    };
    let (cut, full) = (report("log", "cut"), report(&truth, "full"));
    assert_eq!(cut["logs"][0]["own_lists"], true);
    assert_eq!(
        (&cut["positions"], &full["positions"]),
        (&json!(15), &json!(15))
    );
    // Every rate of a report, by its place in it.
    let rates = |report: &Value| {
        let mut all = vec![("overlap".to_owned(), report["overlap"][0].clone())];
        for name in ["one_hot", "token", "exact_match"] {
            all.push((name.to_owned(), report["one_draft"][0][name].clone()));
        }
        for cell in report["cells"].as_array().unwrap() {
            let name = format!("{} {}", cell["drafts"], cell["scheme"]);
            all.push((name.clone(), cell["optimal_acceptance_rate"].clone()));
            for row in cell["verifiers"].as_array().unwrap() {
                let verifier = row["name"].as_str().unwrap();
                all.push((format!("{name} {verifier}"), row["acceptance"].clone()));
                all.push((format!("{name} {verifier} gap"), row["gap"].clone()));
            }
        }
        all
    };
    let (cut, full) = (rates(&cut), rates(&full));
    assert_eq!(cut.len(), full.len());
    let mut open = 0;
    for ((name, part), (_, whole)) in cut.iter().zip(&full) {
        assert!(
            whole.get("truncation").is_none_or(Value::is_null),
            "{whole}"
        );
        let ends = part["truncation"].as_array().unwrap();
        let [low, high] = [0, 1].map(|end: usize| ends[end].as_f64().unwrap());
        let mean = whole["mean"].as_f64().unwrap();
        // Exports are rounded to f32.
        let room = 1e-5;
        assert!(
            low - room <= mean && mean <= high + room,
            "{name}: {mean} is outside [{low}, {high}]"
        );
        open += usize::from(high - low > 0.01 && high - low < 0.9);
    }
    assert!(open > 20, "{open} of {}", cut.len());
    let page = std::fs::read_to_string(folder.path().join("cut/report.md")).unwrap();
    assert!(page.contains("lists are too short"), "{page}");
}

/// What transformers' assisted generation did, from a recording to an audit. The draft has no row of
/// the token behind a whole chain.
#[test]
fn a_recording_of_transformers_is_audited_end_to_end() {
    let folder = tempfile::tempdir().unwrap();
    let rounds = fixture("hf-rounds.npz");
    let line = format!("--from hf {rounds} --temperature 1.5 --out log");
    import(folder.path(), &line).ok();
    let line = "audit log --rule single --format json";
    let run = specgap(folder.path(), line.split(' '));
    assert_eq!(run.code, Some(4), "{}", run.err);
    let report = run.json();
    for check in report["hard_checks"].as_array().unwrap() {
        assert_eq!(check["violations"], 0, "{check}");
    }
    // The tokens behind whole chains are there, without a row of the draft.
    let log = specgap::log::Log::open(&folder.path().join("log")).unwrap();
    let records = log.engine_records().unwrap();
    let whole = |record: &&specgap::log::EngineRecord| {
        let drafted = record.drafts.iter().filter(|&&draft| draft >= 0).count();
        record.accepted == Some(drafted as i64)
    };
    let whole = records.iter().filter(whole).count();
    let lacking = log
        .draft_rows()
        .unwrap()
        .iter()
        .filter(|has| !**has)
        .count();
    assert!(whole > 0 && lacking == whole, "{lacking} {whole}");
    let length = specgap(folder.path(), "length log --temperature 1.5".split(' '));
    length.ok();
}

/// Seeds of a recording are the log's.
#[test]
fn seeds_of_a_recording_are_in_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("rounds.npz");
    let from = std::fs::File::open(fixture("hf-rounds.npz")).unwrap();
    let mut from = zip::ZipArchive::new(from).unwrap();
    let to = std::fs::File::create(&made).unwrap();
    let mut to = zip::ZipWriter::new(to);
    for index in 0..from.len() {
        let mut member = from.by_index(index).unwrap();
        let name = member.name().unwrap().into_owned();
        let mut data = Vec::new();
        std::io::copy(&mut member, &mut data).unwrap();
        // A seed for each prompt: its number.
        let again = (name == "prompt_id.npy").then(|| "seed.npy".to_owned());
        for name in [name].into_iter().chain(again) {
            let options = zip::write::SimpleFileOptions::default();
            to.start_file(name, options).unwrap();
            std::io::Write::write_all(&mut to, &data).unwrap();
        }
    }
    to.finish().unwrap();
    import(
        folder.path(),
        "--from hf rounds.npz --temperature 1.5 --out log",
    )
    .ok();
    let log = specgap::log::Log::open(&folder.path().join("log")).unwrap();
    let records = log.engine_records().unwrap();
    assert!(
        records
            .iter()
            .all(|one| one.seed.is_some() && one.seed == one.prompt)
    );
}

#[test]
fn json_says_what_was_made() {
    let folder = tempfile::tempdir().unwrap();
    let (target, draft) = (
        fixture("vllm-chat-target.jsonl"),
        fixture("vllm-scored-draft.jsonl"),
    );
    let run = import(
        folder.path(),
        &format!(
            "--from vllm --target {target} --draft {draft} --vocab 12 --out log --format json"
        ),
    );
    let made = run.json();
    assert_eq!(made["schema"], 1);
    assert_eq!(
        (made["positions"].as_u64(), made["texts"].as_u64()),
        (Some(15), Some(3))
    );
    assert_eq!(made["rows"], "not listed");
    assert!(made["unlisted"]["target_mean"].as_f64().unwrap() > 0.1);
}

#[test]
fn one_record_of_both_models_is_as_good() {
    let folder = tempfile::tempdir().unwrap();
    let pairs = records("llama-cpp-target.jsonl")
        .into_iter()
        .zip(records("llama-cpp-draft.jsonl"));
    let joint: Vec<Value> = pairs
        .enumerate()
        .map(|(n, (target, draft))| json!({"target": target, "draft": draft, "prompt_id": 7 + n}))
        .collect();
    write(folder.path(), "joint.jsonl", &joint);
    import(
        folder.path(),
        "--from llama-cpp joint.jsonl --vocab 12 --out log",
    )
    .ok();
    let mut broken = joint.clone();
    broken[1]["draft"]["completion_probabilities"][2]["top_logprobs"][1]["logprob"] = json!(0.5);
    write(folder.path(), "broken.jsonl", &broken);
    refused(
        folder.path(),
        "--from llama-cpp broken.jsonl --vocab 12 --out new",
        &[
            "broken.jsonl: record 1 (line 2): draft.completion_probabilities[2].top_logprobs[1].logprob: is 0.5",
        ],
    );
}

#[test]
fn steps_of_one_token_make_a_text() {
    let folder = tempfile::tempdir().unwrap();
    // What the server drew is not the text's token, which the record names.
    let step = |n: usize, token: i64, shift: f64| {
        json!({
            "prompt_id": 4, "position": n, "token": token, "stop": true,
            "completion_probabilities": [{"id": 0, "logprob": -0.3 - shift, "top_logprobs": [
                {"id": 0, "logprob": -0.3 - shift}, {"id": 2, "logprob": -2.0},
            ]}],
        })
    };
    let steps = |shift: f64| [step(0, 2, shift), step(1, 5, shift)];
    write(folder.path(), "target.jsonl", &steps(0.0));
    write(folder.path(), "draft.jsonl", &steps(0.1));
    let line = "--from llama-cpp --target target.jsonl --draft draft.jsonl --vocab 6";
    let run = import(folder.path(), &format!("{line} --out log")).ok();
    assert!(
        run.out.starts_with("2 positions of 1 text from llama-cpp"),
        "{}",
        run.out
    );
    write(
        folder.path(),
        "draft.jsonl",
        &[step(0, 2, 0.0), step(0, 5, 0.0)],
    );
    write(
        folder.path(),
        "target.jsonl",
        &[step(0, 2, 0.0), step(0, 5, 0.0)],
    );
    refused(
        folder.path(),
        &format!("{line} --out new"),
        &["target.jsonl: record 1 (line 2): position: two records are of position 0 of prompt 4"],
    );
}

/// A prompt may have several texts, which length replays each by itself.
#[test]
fn texts_of_one_prompt_are_one_unit() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["target", "draft"] {
        let mut all = records(&format!("llama-cpp-{name}.jsonl"));
        all.iter_mut().for_each(|one| one["prompt_id"] = 7.into());
        write(folder.path(), &format!("{name}.jsonl"), &all);
        all[2]["position"] = 4.into();
        write(folder.path(), &format!("{name}-parts.jsonl"), &all);
    }
    let line = "--from llama-cpp --target target.jsonl --draft draft.jsonl --vocab 12 --out log";
    let run = import(folder.path(), line).ok();
    assert!(
        run.out.starts_with("15 positions of 3 texts"),
        "{}",
        run.out
    );
    let line = "length log --temperature 1 --format json";
    let length = specgap(folder.path(), line.split(' ')).ok().json();
    assert_eq!(
        (&length["texts"], &length["clusters"]),
        (&json!(3), &json!(1))
    );
    let parts =
        "--from llama-cpp --target target-parts.jsonl --draft draft-parts.jsonl --vocab 12 --out b";
    refused(
        folder.path(),
        parts,
        &["record 2 (line 3): position: two records are of position 4"],
    );
}

/// A response that has rows of its prompt beside those of several outputs is of what was put out.
#[test]
fn outputs_are_the_text_where_rows_of_the_prompt_stand_beside() {
    let folder = tempfile::tempdir().unwrap();
    let mut all = records("sglang-target.jsonl");
    for one in &mut all {
        let info = &mut one["meta_info"];
        for of in ["token_logprobs", "top_logprobs"] {
            info[format!("input_{of}")] = info[format!("output_{of}")].clone();
        }
    }
    write(folder.path(), "both.jsonl", &all);
    let line = "--from sglang --target both.jsonl --draft both.jsonl --vocab 12 --prompt-tokens 3 --out log";
    let run = import(folder.path(), line).ok();
    assert!(
        run.out.starts_with("15 positions of 3 texts"),
        "{}",
        run.out
    );
}

#[test]
fn texts_that_collide_are_refused_with_the_cure() {
    let folder = tempfile::tempdir().unwrap();
    for name in [
        "vllm-chat-text-target.jsonl",
        "vllm-completion-text-target.jsonl",
    ] {
        let file = fixture(name);
        refused(
            folder.path(),
            &format!("--from vllm --target {file} --draft {file} --vocab 12 --out log"),
            &[
                name,
                "record 0 (line 1)",
                "top_logprobs",
                "collide",
                "return_tokens_as_token_ids",
            ],
        );
    }
    // Texts of their own each are tokens as good as numbers.
    let chat = json!({"choices": [{"logprobs": {"content": [{
        "token": " a", "logprob": -0.5,
        "top_logprobs": [{"token": " a", "logprob": -0.5}, {"token": "b", "logprob": -1.5}],
    }]}}]});
    write(folder.path(), "chat.jsonl", &[chat]);
    import(
        folder.path(),
        "--from vllm --target chat.jsonl --draft chat.jsonl --vocab 9 --out log",
    )
    .ok();
    let index = std::fs::read_to_string(folder.path().join("log/log.json")).unwrap();
    let index: Value = serde_json::from_str(&index).unwrap();
    assert_eq!(index["metadata"]["token_text"]["1"], "b");
}

/// A pair says once where its text begins, beside both responses or in one of them; two that differ are
/// refused, and one that cannot be.
#[test]
fn a_prompt_length_beside_a_pair_counts() {
    let folder = tempfile::tempdir().unwrap();
    let scored = records("vllm-scored-draft.jsonl");
    let pair = |own: Option<u64>, beside: Option<u64>| {
        let of = |one: &Value| {
            let mut pair = json!({"target": one, "draft": one});
            if let Some(own) = own {
                pair["draft"]["prompt_length"] = own.into();
            }
            if let Some(beside) = beside {
                pair["prompt_length"] = beside.into();
            }
            pair
        };
        write(
            folder.path(),
            "pair.jsonl",
            &scored.iter().map(of).collect::<Vec<_>>(),
        );
    };
    let line = "--from vllm pair.jsonl --vocab 12 --out";
    let mut printed = Vec::new();
    for (own, beside, more) in [
        (None, None, " --prompt-tokens 3"),
        (Some(3), None, ""),
        (None, Some(3), ""),
        (Some(3), Some(3), " --prompt-tokens 5"),
    ] {
        pair(own, beside);
        let out = printed.len();
        let run = import(folder.path(), &format!("{line} log{out}{more}")).ok();
        printed.push(run.out.lines().next().unwrap().to_owned());
    }
    assert!(printed.iter().all(|one| *one == printed[0]), "{printed:?}");
    pair(Some(4), Some(3));
    let words = [
        "pair.jsonl: record 0 (line 1): prompt_length: is 4, and 3",
        "alike",
    ];
    refused(folder.path(), &format!("{line} other"), &words);
    // The target wrote five tokens of the eight that the draft scored.
    let mut target = records("vllm-chat-target.jsonl");
    target[0]["prompt_length"] = 2.into();
    write(folder.path(), "target.jsonl", &target);
    let draft = fixture("vllm-scored-draft.jsonl");
    let line = format!("--from vllm --target target.jsonl --draft {draft} --vocab 12 --out other");
    let words = [
        "target.jsonl: record 0 (line 1): prompt_length: is 2",
        "the last 5",
        "say 3",
    ];
    refused(folder.path(), &line, &words);
}

/// Changes of fixtures, one a line: what stands at a place, and all words of the refusal.
const MALFORMED: &str = r#"
    vllm-chat-target /1/choices/0/logprobs/content/2/top_logprobs/0/logprob = "x" -> record 1 (line 2) | choices[0].logprobs.content[2].top_logprobs[0].logprob | invalid type
    vllm-chat-target /0/choices/0/logprobs/content/0/top_logprobs = [] -> record 0 | content[0].top_logprobs: is empty
    vllm-chat-target /0/choices/0/logprobs = null -> record 0 | choices[0].logprobs: is missing | "logprobs"
    vllm-chat-target /2/choices/0/logprobs/content/1/token = "token_id:12" -> record 2 (line 3) | content[1].token | outside the vocabulary of 12
    vllm-chat-target /0/object = "chat.completion.chunk" -> record 0 | object | stream
    vllm-completion-target /0/choices/0/logprobs/top_logprobs/3 = null -> record 0 | top_logprobs[3]: is null
    vllm-completion-target /0/choices/0/logprobs/token_logprobs = [-1.0] -> record 0 | token_logprobs: has 1 entries and tokens 5
    vllm-completion-target /0/choices/0/token_ids/4 = 11 -> record 0 | choices[0].token_ids[4]: is 11
    vllm-flat-draft /0/outputs/0/logprobs/end_indices/1 = 9999 -> record 0 | outputs[0].logprobs.end_indices[1] | 9999
    vllm-flat-draft /0/outputs/0/logprobs/logprobs = [-1.0] -> record 0 | outputs[0].logprobs.logprobs | token_ids
    vllm-scored-draft /0/choices/0/prompt_token_ids = null -> record 0 | prompt_token_ids: is missing | return_token_ids
    vllm-scored-draft /0/choices/0/prompt_logprobs/4 = null -> record 0 | prompt_logprobs[4]: is null
    vllm-scored-draft /0/choices/0/prompt_logprobs/4/x = {"logprob": -1.0} -> record 0 | prompt_logprobs[4].x: is no token id
    sglang-target /0/meta_info/output_top_logprobs/1/0/0 = 2.5 -> record 0 | meta_info.output_top_logprobs[1][0][0] | is 2.5
    sglang-target /0/meta_info/output_top_logprobs/1/0/0 = null -> record 0 | meta_info.output_top_logprobs[1][0][0]: is null
    sglang-target /1 = {"choices": []} -> record 1 | meta_info: is missing | /generate
    sglang-target /0/output_ids/2 = 0 -> record 0 | output_ids[2]: is 0
    sglang-target /0/output_ids = [1, 2] -> record 0 | output_ids: has 2 tokens, and meta_info.output_token_logprobs 5
    sglang-target /0/meta_info/completion_tokens = 9 -> record 0 | meta_info.completion_tokens: is 9 | has 5 tokens
    sglang-target /0/meta_info/spec_num_correct_drafts = 12 -> record 0 | meta_info.spec_num_correct_drafts: is 12 | spec_num_proposed_drafts only 9
    sglang-target /0/meta_info/spec_verify_ct = 0 -> record 0 | meta_info.spec_verify_ct: is 0 | spec_num_proposed_drafts 9
    sglang-target /0/meta_info/output_token_logprobs/0/0 = -29.5 -> record 0 | meta_info.output_top_logprobs[0]: has | the text's own entry -29.5
    sglang-flat-target /0/meta_info/output_top_logprobs = [[[-1.0, 0, null]]] -> record 0 | output_top_logprobs_val_flat: is there beside meta_info.output_top_logprobs
    sglang-flat-target /0/meta_info/output_top_logprobs_shape = [5, 3] -> record 0 | output_top_logprobs_val_flat: has 20 entries
    sglang-b64-draft /0/meta_info/input_top_logprobs_val_flat_b64 = "!!!!" -> record 0 | input_top_logprobs_val_flat_b64: is no base64
    sglang-b64-draft /0/meta_info/input_top_logprobs_null_prefix = 18446744073709551615 -> record 0
    llama-cpp-target /0/timings/draft_n = 12 -> record 0 | timings.draft_n | speculat
    llama-cpp-target /0/completion_probabilities/2/top_logprobs = [] -> record 0 | completion_probabilities[2].top_logprobs: is empty
    llama-cpp-target /0/stop = false -> record 0 | stop | stream
    llama-cpp-target /2/model = "other.gguf" -> record 2 (line 3) | model | other.gguf
    llama-cpp-after-target /0/completion_probabilities/0/top_probs/0/prob = -0.5 -> record 0 | top_probs[0].prob: is -0.5
"#;

/// Refuses a fixture that was changed.
fn changed(name: &str, change: impl FnOnce(&mut Value), words: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let name = format!("{name}.jsonl");
    let mut all = json!(records(&name));
    change(&mut all);
    write(folder.path(), "changed.jsonl", all.as_array().unwrap());
    let engines = ["vllm", "sglang", "llama-cpp"];
    let engine = engines.iter().find(|one| name.starts_with(**one)).unwrap();
    // The unchanged file is of the same texts, whoever scored them.
    let same = fixture(&name);
    let line = format!(
        "--from {engine} --target changed.jsonl --draft {same} --vocab 12 --prompt-tokens 3 --out log"
    );
    let words = [&["changed.jsonl: "][..], words].concat();
    refused(folder.path(), &line, &words);
}

#[test]
fn everything_malformed_names_file_record_and_field() {
    for case in MALFORMED.trim().lines() {
        let (change, words) = case.split_once(" -> ").unwrap();
        let (place, value) = change.split_once(" = ").unwrap();
        let (name, place) = place.trim().split_once(' ').unwrap();
        let (parent, last) = place.rsplit_once('/').unwrap();
        let put = |all: &mut Value| {
            let parent = all.pointer_mut(parent).unwrap();
            let value = serde_json::from_str(value).unwrap();
            match last.parse::<usize>() {
                Ok(index) => parent[index] = value,
                Err(_) => parent[last] = value,
            }
        };
        changed(name, put, &words.split(" | ").collect::<Vec<_>>());
    }
    changed(
        "vllm-chat-target",
        |all| {
            let one = all[0]["choices"][0].clone();
            all[0]["choices"] = json!([one, one]);
        },
        &["record 0", "choices: has 2 entries", "\"n\": 1"],
    );
    changed(
        "sglang-target",
        |all| {
            let rows = &mut all[0]["meta_info"]["output_top_logprobs"];
            rows.as_array_mut().unwrap().pop();
        },
        &["record 0", "output_top_logprobs: has 4 rows", "5"],
    );
    changed(
        "llama-cpp-target",
        |all| {
            let tokens = &mut all[0]["completion_probabilities"][1]["top_logprobs"];
            tokens[1]["id"] = tokens[0]["id"].clone();
        },
        &[
            "record 0",
            "completion_probabilities[1].top_logprobs",
            "listed twice",
        ],
    );
}

#[test]
fn files_and_options_that_do_not_fit_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (target, draft) = (
        fixture("sglang-target.jsonl"),
        fixture("sglang-cold-draft.jsonl"),
    );
    let all = records("sglang-target.jsonl");
    write(folder.path(), "two.jsonl", &all[..2]);
    let mut other = all.clone();
    other[0] = all[1].clone();
    write(folder.path(), "other.jsonl", &other);
    std::fs::write(folder.path().join("cut.jsonl"), "{\"meta_info\": {").unwrap();
    std::fs::write(folder.path().join("empty.jsonl"), "\n").unwrap();
    std::fs::write(folder.path().join("text.jsonl"), "hello").unwrap();
    std::fs::write(
        folder.path().join("nan.jsonl"),
        "{\"meta_info\": {\"output_token_logprobs\": [[NaN, 1, null]]}}",
    )
    .unwrap();
    let table = format!(
        r#"
        --target {target} -> --draft is missing
        --draft {target} -> --target is missing
        -> no files
        x.json --target {target} --draft {draft} -> do not go together
        missing.json -> missing.json: cannot be read
        --target {target} --draft two.jsonl -> --target has 3 records and --draft 2
        --target {target} --draft cut.jsonl -> cut.jsonl: record 0 (line 1): the file ends inside it
        --target {target} --draft empty.jsonl -> empty.jsonl: has no records
        --target {target} --draft text.jsonl -> text.jsonl: line 1: 'h' stands where
        --target {target} --draft nan.jsonl -> nan.jsonl: record 0 (line 1): meta_info.output_token_logprobs[0][0]: is NaN
        --target {target} --draft other.jsonl -> other.jsonl: record 0 | output_token_logprobs[ | score the same ids
        --target {target} --draft {draft} --temperature -1 -> --temperature is -1
        --target {target} --draft {draft} --top-p 0 -> --top-p
        --target {target} --draft {draft} --top-k 0 -> --top-k
        --target {target} --draft {draft} --logprobs-mode processed_logprobs -> --logprobs-mode | vLLM
        --target {target} --draft {draft} --logprobs-mode raw_logits -> raw_logits | mass
        "#
    );
    for (args, words) in cases(&table) {
        let line = format!("--from sglang --vocab 12 --out log {args}");
        refused(folder.path(), &line, &words);
    }
    let line = format!("--from sglang --target {target} --draft {target} --out log");
    refused(
        folder.path(),
        &line,
        &["--vocab N is missing", "config.json"],
    );
    let line = format!(
        "--from vllm --target {target} --draft {target} --vocab 12 --original-logprobs --out log"
    );
    refused(folder.path(), &line, &["--original-logprobs", "SGLang"]);
    refused(
        folder.path(),
        "--from trt x --out log",
        &["trt", "vllm", "llama-cpp"],
    );
    let nowhere =
        format!("--from sglang --target {target} --draft {target} --vocab 12 --out no/log");
    refused(folder.path(), &nowhere, &["no/log", "cannot be written"]);
}

#[test]
fn arrays_that_do_not_fit_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let hf = |name: &str| fixture(&format!("hf-{name}.npz"));
    let (target, draft, other, rounds, truth) = (
        hf("target-0"),
        hf("draft-0"),
        hf("draft-1"),
        hf("rounds"),
        fixture("truth.npz"),
    );
    std::fs::write(folder.path().join("no.npz"), "no").unwrap();
    // Two rows of probabilities under the name of logits; and rounds without what came out of them.
    let rows: Vec<u8> = [0.5f64, 0.25, 0.25, 0.125, 0.625, 0.25]
        .iter()
        .flat_map(|x| x.to_le_bytes())
        .collect();
    let header = r#"{"logits":{"dtype":"F64","shape":[2,3],"data_offsets":[0,48]}}"#;
    let file = [
        &(header.len() as u64).to_le_bytes()[..],
        header.as_bytes(),
        &rows,
    ]
    .concat();
    std::fs::write(folder.path().join("probs.safetensors"), &file).unwrap();
    let calls = String::from_utf8_lossy(header.as_bytes()).replace("logits", "new_logits");
    let calls = [
        &(calls.len() as u64).to_le_bytes()[..],
        calls.as_bytes(),
        &rows,
    ]
    .concat();
    std::fs::write(folder.path().join("calls.safetensors"), calls).unwrap();
    let table = format!(
        r#"
        --target {target} --draft {other} -> hf-draft-1.npz: sequences | other tokens
        --target {target} {target} --draft {draft} -> --target has 2 files and --draft 1
        --target {truth} --draft {draft} -> truth.npz: logits: is missing, and so is scores
        --target no.npz --draft {draft} -> no.npz
        --target probs.safetensors --draft probs.safetensors -> probs.safetensors: logits: row 0: entries are in [0, 1] | save logits, or take natural logarithms
        calls.safetensors -> candidate_logits: is missing; the file has new_logits
        {target} -> hf-target-0.npz: new_logits: is missing | logits
        {rounds} --vocab 65 -> hf-rounds.npz | --vocab 65
        {rounds} --vocab 2 -> hf-rounds.npz: candidate_input_ids | outside the vocabulary of 2
        "#
    );
    for (args, words) in cases(&table) {
        refused(
            folder.path(),
            &format!("--from hf --out log {args}"),
            &words,
        );
    }
}

#[cfg(unix)]
#[test]
fn what_a_killed_import_left_goes_with_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let left = folder.path().join(".specgap-log-a1B2c3");
    std::fs::create_dir(&left).unwrap();
    std::fs::write(left.join("shard-00000.safetensors"), "half").unwrap();
    let (target, draft) = (
        fixture("vllm-chat-target.jsonl"),
        fixture("vllm-scored-draft.jsonl"),
    );
    import(
        folder.path(),
        &format!("--from vllm --target {target} --draft {draft} --vocab 12 --out log"),
    )
    .ok();
    assert_eq!(names(folder.path()), ["log"]);
}
