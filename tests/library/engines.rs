//! Do exports of engines become logs of the rows that were exported? The fixtures were
//! made with the packages' own types by `scripts/engines/make_fixtures.py`; `truth.npz`
//! has the full rows.

use safetensors::SafeTensors;
use serde_json::{Value, json};
use specgap::gap::Settings;
use specgap::import::{Engine, Imported, LogprobsMode, Request, import};
use specgap::log::{Log, Metadata, Row};
use specgap::sampling::Cuts;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/engines")
        .join(name)
}

/// What a log's files say, position by position: the lists of target and draft by id.
#[derive(Debug)]
struct Written {
    metadata: Metadata,
    lists: Vec<[BTreeMap<i64, f32>; 2]>,
    prompt_id: Vec<i64>,
    position: Vec<i64>,
    token: Vec<i64>,
}

/// Reads a log of one shard as any program would, without the library's reader.
fn written(log: &Path) -> Written {
    let index: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(log.join("log.json")).unwrap()).unwrap();
    assert_eq!(index["schema"], 1);
    assert_eq!(index["shards"].as_array().unwrap().len(), 1);
    let file = index["shards"][0]["file"].as_str().unwrap();
    let bytes = std::fs::read(log.join(file)).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let integers = |name: &str| -> Vec<i64> {
        let (chunks, _) = tensors.tensor(name).unwrap().data().as_chunks::<8>();
        chunks
            .iter()
            .map(|&eight| i64::from_le_bytes(eight))
            .collect()
    };
    let list = |model: &str| {
        let rows = tensors.tensor(&format!("{model}_logprobs")).unwrap();
        let [n, k] = rows.shape() else {
            panic!("shape")
        };
        let (values, _) = rows.data().as_chunks::<4>();
        let own = tensors.tensor(&format!("{model}_token_ids"));
        let ids = own.or_else(|_| tensors.tensor("token_ids")).unwrap();
        assert_eq!(ids.shape(), rows.shape());
        let (ids, _) = ids.data().as_chunks::<4>();
        (0..*n)
            .map(|row| {
                let places = row * k..(row + 1) * k;
                let entry = |at: usize| {
                    let id = i64::from(i32::from_le_bytes(ids[at]));
                    (id, f32::from_le_bytes(values[at]))
                };
                places.map(entry).filter(|(id, _)| *id >= 0).collect()
            })
            .collect::<Vec<BTreeMap<i64, f32>>>()
    };
    let (target, draft) = (list("target"), list("draft"));
    Written {
        metadata: serde_json::from_value(index["metadata"].clone()).unwrap(),
        lists: target.into_iter().zip(draft).map(|(p, q)| [p, q]).collect(),
        prompt_id: integers("prompt_id"),
        position: integers("position"),
        token: integers("token"),
    }
}

/// Imports fixtures of two exports.
fn two(
    engine: Engine,
    [target, draft]: [&str; 2],
    change: impl FnOnce(&mut Request),
) -> (tempfile::TempDir, PathBuf, Imported) {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("log");
    let mut request = Request {
        target: vec![fixture(target)],
        draft: vec![fixture(draft)],
        vocabulary: Some(12),
        ..Request::new(engine)
    };
    change(&mut request);
    let made = import(&request, &out, "specgap import").unwrap();
    (folder, out, made)
}

/// Whether lists are the most probable tokens of the true rows, with the text's token, and
/// with the true log-probabilities.
fn check_lists(log: &Path, counts: [[usize; 2]; 2], temperature: f64) {
    let written = written(log);
    let truth = Log::open(&fixture("truth.npz")).unwrap();
    assert_eq!(written.lists.len(), truth.positions());
    let mut row = Row::default();
    let mut extra = 0;
    for (n, lists) in written.lists.iter().enumerate() {
        truth.read(n, &mut row).unwrap();
        assert_eq!(Some(written.prompt_id[n]), row.prompt_id);
        assert_eq!(Some(written.position[n]), row.position);
        assert_eq!(Some(written.token[n]), row.token);
        for ((list, full), [least, most]) in lists.iter().zip([&row.target, &row.draft]).zip(counts)
        {
            assert!((least..=most).contains(&list.len()), "{list:?}");
            let total: f64 = full.iter().map(|x| (x / temperature).exp()).sum();
            let at = |id: i64| full[usize::try_from(id).unwrap()] / temperature - total.ln();
            for (&id, &value) in list {
                assert!((f64::from(value) - at(id)).abs() < 1e-5, "{n}: {id}");
            }
            // Without the text's token, nothing that is left out is larger.
            let smallest = list
                .keys()
                .filter(|&&id| id != written.token[n])
                .map(|&id| at(id));
            let smallest = smallest.fold(f64::INFINITY, f64::min);
            let left_out = (0..12).filter(|id| !list.contains_key(id)).map(at);
            assert!(left_out.into_iter().all(|x| x <= smallest + 1e-5));
            assert!(list.contains_key(&written.token[n]));
            extra += usize::from(at(written.token[n]) < smallest);
        }
    }
    // The fixtures have texts with tokens that are not among the most probable.
    assert!(extra > 3);
}

#[test]
fn every_shape_of_vllm_has_the_same_rows() {
    // Chat lists the text's token and the 3 likeliest, others it and the 4 likeliest.
    for (target, draft, counts) in [
        (
            "vllm-chat-target.jsonl",
            "vllm-completion-draft.jsonl",
            [[4, 4], [4, 5]],
        ),
        (
            "vllm-completion-target.jsonl",
            "vllm-scored-draft.jsonl",
            [[4, 5], [4, 5]],
        ),
        (
            "vllm-offline-target.json",
            "vllm-flat-draft.jsonl",
            [[4, 5], [4, 5]],
        ),
    ] {
        let (_folder, log, made) = two(Engine::Vllm, [target, draft], |_| ());
        assert_eq!((made.positions, made.texts, made.vocabulary), (15, 3, 12));
        assert_eq!(
            (made.temperature_applied, &made.rows[..]),
            (1.0, "not listed")
        );
        check_lists(&log, counts, 1.0);
    }
    let scored = ["vllm-scored-target.jsonl", "vllm-scored-draft.jsonl"];
    let (_folder, log, _) = two(Engine::Vllm, scored, |request| {
        request.prompt_tokens = Some(3)
    });
    check_lists(&log, [[4, 5], [4, 5]], 1.0);
}

#[test]
fn every_shape_of_sglang_has_the_same_rows() {
    for (target, draft) in [
        ("sglang-target.jsonl", "sglang-scored-draft.json"),
        ("sglang-flat-target.jsonl", "sglang-b64-draft.jsonl"),
    ] {
        let (_folder, log, made) = two(Engine::Sglang, [target, draft], |_| ());
        assert_eq!(made.engine_acceptance, Some(2.0 / 9.0));
        check_lists(&log, [[4, 5], [4, 5]], 1.0);
    }
}

#[test]
fn sglang_divides_what_it_generates_by_the_temperature() {
    let cold = ["sglang-cold-target.jsonl", "sglang-cold-draft.jsonl"];
    let (_folder, log, made) = two(Engine::Sglang, cold, |request| request.temperature = 0.5);
    assert_eq!(made.temperature_applied, 0.5);
    let metadata = written(&log).metadata;
    assert_eq!(metadata.applied(), 0.5);
    assert_eq!(metadata.sampling.unwrap().temperature, 0.5);
    check_lists(&log, [[4, 5], [4, 5]], 0.5);
    // With SGLANG_RETURN_ORIGINAL_LOGPROB it does not, and greedily neither.
    let (_folder, _, made) = two(Engine::Sglang, cold, |request| {
        request.temperature = 0.5;
        request.original_logprobs = true;
    });
    assert_eq!(made.temperature_applied, 1.0);
    let (_folder, _, made) = two(Engine::Sglang, cold, |request| request.temperature = 0.0);
    assert_eq!(made.temperature_applied, 1.0);
}

/// Numbers of rows that are cut take the engine's order, unless another is asked for or logs differ.
#[test]
fn logs_of_engines_say_their_order_of_cuts() {
    let names = ["sglang-target.jsonl", "sglang-scored-draft.json"];
    let (_sglang, first, _) = two(Engine::Sglang, names, |_| ());
    let names = ["llama-cpp-target.jsonl", "llama-cpp-draft.jsonl"];
    let (_llama, second, _) = two(Engine::LlamaCpp, names, |_| ());
    let order = |log: &Path| written(log).metadata.sampling.unwrap().cut_order.unwrap();
    assert_eq!(order(&first).to_string(), "sglang");
    assert_eq!(order(&second).to_string(), "k,p,m,T");
    let logs = [&first, &second].map(|log| Log::open(log).unwrap());
    let options = |logs: &[Log], top_k: Option<usize>, temperature: f64, asked: Option<&str>| {
        let cuts = Cuts {
            top_k,
            top_p: Some(0.9),
            cut_order: asked.map(|order| order.parse().unwrap()),
            ..Cuts::default()
        };
        let settings = Settings::new(&[temperature], &[2], 0).unwrap();
        let mut settings = settings.served(cuts).unwrap();
        let ordered = settings.ordered(logs).map_err(|error| error.to_string());
        ordered.map(|()| settings.options())
    };
    let ends = |found: Result<String, String>, end: &str| assert!(found.unwrap().ends_with(end));
    ends(
        options(&logs[..1], Some(5), 0.7, None),
        " --top-p 0.9 --cut-order sglang",
    );
    ends(
        options(&logs, Some(5), 0.7, Some("mlx-lm")),
        " --cut-order joint,T",
    );
    // All keep the same there.
    ends(options(&logs, None, 1.0, None), " --cut-order sglang");
    for (top_k, temperature) in [(Some(5), 1.0), (None, 0.7)] {
        let message = options(&logs, top_k, temperature, None).unwrap_err();
        assert!(
            message.contains("give one for both with ⟨cut-order"),
            "{message}"
        );
    }
    let log = first.join("log.json");
    let text = std::fs::read_to_string(&log).unwrap();
    std::fs::write(&log, text.replace("\"sglang\"", "\"sglong\"")).unwrap();
    let message = Log::open(&first).unwrap_err().to_string();
    let named = "log.json: metadata.sampling.cut_order: cut_order: \"sglong\" is no order of cuts; give k, p and m";
    assert!(message.contains(named), "{message}");
}

#[test]
fn llama_cpp_lists_before_and_after_its_samplers() {
    let before = ["llama-cpp-target.jsonl", "llama-cpp-draft.jsonl"];
    let (_folder, log, made) = two(Engine::LlamaCpp, before, |_| ());
    assert_eq!(made.rows, "not listed");
    check_lists(&log, [[5, 6], [5, 6]], 1.0);
    let after = [
        "llama-cpp-after-target.jsonl",
        "llama-cpp-after-draft.jsonl",
    ];
    let (_folder, log, made) = two(Engine::LlamaCpp, after, |request| {
        request.temperature = 0.5;
        request.top_k = Some(5);
    });
    assert_eq!(
        (made.temperature_applied, &made.rows[..]),
        (0.5, "never-drawn")
    );
    assert_eq!(made.unlisted, None);
    let written = written(&log);
    let said = serde_json::to_value(&written.metadata).unwrap();
    assert_eq!(said["unlisted"], "never-drawn");
    assert_eq!(written.metadata.target.unwrap().name, "made-up.gguf");
    let mut row = Row::default();
    let truth = Log::open(&fixture("truth.npz")).unwrap();
    for (n, lists) in written.lists.iter().enumerate() {
        truth.read(n, &mut row).unwrap();
        for (list, full) in lists.iter().zip([&row.target, &row.draft]) {
            let drawn = list.iter().filter(|(_, x)| x.is_finite());
            let sum: f64 = drawn.clone().map(|(_, &x)| f64::from(x).exp()).sum();
            assert!((sum - 1.0).abs() < 1e-6, "{sum}");
            // The five likeliest, at temperature 0.5, renormalised.
            let mut sorted: Vec<f64> = full.iter().map(|x| (x / 0.5).exp()).collect();
            sorted.sort_by(|a, b| b.total_cmp(a));
            let kept: f64 = sorted.iter().take(5).sum();
            let largest = drawn.map(|(_, &x)| f64::from(x)).fold(f64::MIN, f64::max);
            assert!((largest - (sorted[0] / kept).ln()).abs() < 1e-5);
        }
    }
}

/// The rows of a fixture as another route of the same server answers.
fn routed(folder: &Path, name: &str, route: impl Fn(Value) -> Value) -> PathBuf {
    let text = std::fs::read_to_string(fixture(name)).unwrap();
    let lines = text.lines().map(|line| {
        let response = serde_json::from_str(line).unwrap();
        route(response).to_string() + "\n"
    });
    let path = folder.join(name);
    std::fs::write(&path, lines.collect::<String>()).unwrap();
    path
}

#[test]
fn chats_of_llama_cpp_and_responses_of_vllm_have_the_same_rows() {
    let folder = tempfile::tempdir().unwrap();
    let chat = |mut completion: Value| {
        let rows = completion["completion_probabilities"].take();
        json!({
            "object": "chat.completion", "model": "made-up.gguf",
            "choices": [{"index": 0, "message": {"content": ".."}, "logprobs": {"content": rows}}],
        })
    };
    let names = ["llama-cpp-target.jsonl", "llama-cpp-draft.jsonl"];
    let (_folder, log, made) = two(Engine::LlamaCpp, names, |request| {
        request.target = vec![routed(folder.path(), names[0], chat)];
        request.draft = vec![routed(folder.path(), names[1], chat)];
    });
    assert_eq!(made.temperature_applied, 1.0);
    check_lists(&log, [[5, 6], [5, 6]], 1.0);
    let response = |mut chat: Value| {
        let rows = chat["choices"][0]["logprobs"]["content"].take();
        json!({
            "object": "response", "model": "made-up",
            "output": [
                {"type": "reasoning", "content": null},
                {"type": "message", "content": [{"type": "output_text", "logprobs": rows}]},
            ],
        })
    };
    let names = ["vllm-chat-target.jsonl", "vllm-completion-draft.jsonl"];
    let (_folder, log, _) = two(Engine::Vllm, names, |request| {
        request.target = vec![routed(folder.path(), names[0], response)];
    });
    check_lists(&log, [[4, 4], [4, 5]], 1.0);
    // Neither a piece of a stream nor an answer without rows is taken for a text.
    let chunk = |completion: Value| {
        let mut chat = chat(completion);
        chat["object"] = "chat.completion.chunk".into();
        chat
    };
    let bare = |_: Value| json!({"object": "chat.completion", "choices": [{"index": 0}]});
    for (path, words) in [
        (
            routed(folder.path(), "llama-cpp-target.jsonl", chunk),
            "chunk of a stream",
        ),
        (
            routed(folder.path(), "llama-cpp-draft.jsonl", bare),
            "\"top_logprobs\": K",
        ),
    ] {
        let request = Request {
            target: vec![path.clone()],
            draft: vec![path],
            vocabulary: Some(12),
            ..Request::new(Engine::LlamaCpp)
        };
        let refused = import(&request, &folder.path().join("none"), "").unwrap_err();
        assert!(refused.to_string().contains(words), "{refused}");
    }
}

#[test]
fn lists_say_how_many_of_their_tokens_are_the_likeliest() {
    let files = ["vllm-chat-target.jsonl", "vllm-completion-draft.jsonl"];
    let (_folder, log, _) = two(Engine::Vllm, files, |_| ());
    let top = &serde_json::to_value(written(&log).metadata).unwrap()["top"];
    // A chat list of 4 has the text's token and, where that is no other, 3.
    assert_eq!(top["target"], 3);
    assert!(top["draft"] == 3 || top["draft"] == 4, "{top}");
}

#[test]
fn a_processed_mode_is_after_temperature_and_truncation() {
    let files = [
        "vllm-completion-target.jsonl",
        "vllm-completion-draft.jsonl",
    ];
    let processed = |request: &mut Request| {
        request.logprobs_mode = LogprobsMode::Processed;
        request.temperature = 0.7;
    };
    let (_folder, _, made) = two(Engine::Vllm, files, processed);
    assert_eq!(
        (made.temperature_applied, &made.rows[..]),
        (0.7, "not listed")
    );
    // Lists that leave mass out are not all that a top-k sampler keeps.
    let folder = tempfile::tempdir().unwrap();
    let mut request = Request {
        target: vec![fixture(files[0])],
        draft: vec![fixture(files[1])],
        vocabulary: Some(12),
        top_k: Some(20),
        ..Request::new(Engine::Vllm)
    };
    processed(&mut request);
    let out = folder.path().join("log");
    let error = import(&request, &out, "").unwrap_err().to_string();
    assert!(error.contains("not all that the sampler keeps"), "{error}");
    assert!(!out.exists());
}

#[test]
fn arrays_of_hugging_face_are_full_rows() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("log");
    let named = |model: &str| {
        (0..2)
            .map(|n| fixture(&format!("hf-{model}-{n}.npz")))
            .collect()
    };
    let request = Request {
        target: named("target"),
        draft: named("draft"),
        temperature: 1.5,
        ..Request::new(Engine::HuggingFace)
    };
    let made = import(&request, &out, "").unwrap();
    assert_eq!((made.positions, made.texts, made.vocabulary), (48, 2, 64));
    // Logits are raw, whatever the text was drawn at.
    assert_eq!(made.temperature_applied, 1.0);
    let alone = Log::open(&out).unwrap();
    // The recorded calls have the same rows on the same text, after the temperature.
    let recorded = folder.path().join("recorded");
    let request = Request {
        joint: vec![fixture("hf-rounds.npz")],
        temperature: 1.5,
        ..Request::new(Engine::HuggingFace)
    };
    let made = import(&request, &recorded, "").unwrap();
    assert_eq!((made.texts, made.temperature_applied), (2, 1.5));
    assert!(
        made.engine_acceptance
            .is_some_and(|share| share > 0.05 && share < 0.5)
    );
    let recorded = Log::open(&recorded).unwrap();
    let mut rows = BTreeMap::new();
    let mut row = Row::default();
    for n in 0..alone.positions() {
        alone.read(n, &mut row).unwrap();
        rows.insert((row.prompt_id, row.position), row.clone());
    }
    let (mut drafted, mut kept) = (0, 0);
    for n in 0..recorded.positions() {
        recorded.read(n, &mut row).unwrap();
        let other = &rows[&(row.prompt_id, row.position)];
        assert_eq!((row.token, row.output), (other.token, row.token));
        // transformers 5.23.0 divides the draft's logits twice: by its generation config, and
        // by the target's logits processors, which it is given as well.
        let rows = [
            (&row.target, &other.target, 1.5),
            (&row.draft, &other.draft, 1.5 * 1.5),
        ];
        for (mine, raw, over) in rows.into_iter().take(if row.lacks_draft { 1 } else { 2 }) {
            let shift = mine[0] - raw[0] / over;
            for (x, y) in mine.iter().zip(raw) {
                assert!((x - y / over - shift).abs() < 2e-4, "{x} {y}");
            }
        }
        // A chain of up to three stands where its round begins, and nowhere else.
        assert_eq!(row.drafts.len(), 3);
        if row.drafts[0] >= 0 {
            drafted += 1;
            kept += usize::from(row.drafts[0] == row.token.unwrap());
        } else {
            assert!(row.drafts.iter().all(|&token| token == -1) && drafted > 0);
        }
    }
    assert_eq!(drafted, 33);
    assert!(kept > 0 && kept < drafted);
}
