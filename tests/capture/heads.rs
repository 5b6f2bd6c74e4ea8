//! Does a capture log what heads on the draft predict, at the tokens that they are about?

use crate::rollouts::chain;
use crate::{Bench, onnx};
use specgap::log::{Log, Row};
use std::collections::BTreeMap;
use std::path::Path;

/// Of the ids below 3 alone: the models know no others.
const PROMPTS: &[u8] = b"{\"id\": \"p0\", \"prompt\": \"<|im_start|>\"}\n\
    {\"id\": \"p1\", \"prompt\": \"<|im_end|><|im_start|>\"}\n\
    {\"id\": \"p2\", \"prompt\": \"<|endoftext|>\"}\n";

/// What the graph below says of a token, once it is read: the acceptance of that token, and
/// the overlap of the one behind it.
fn accepted(token: i64) -> f64 {
    f64::from(1.0 / (token as f32 + 2.0))
}
fn shared(token: i64) -> f64 {
    f64::from(1.0 / (token as f32 + 3.0))
}

/// A draft over V = 3 whose heads say 1/(token + 2) and 1/(token + 3).
fn with_heads() -> onnx::Graph {
    let (mut graph, _) = chain([0.0, 0.5, 0.1]);
    graph.nodes.extend([
        onnx::node("Add", &["ids_1", "one"], "ids_2", &[]),
        onnx::node("Add", &["ids_2", "one"], "ids_3", &[]),
        onnx::node("Reciprocal", &["ids_2"], "acceptance", &[]),
        onnx::node("Reciprocal", &["ids_3"], "overlap", &[]),
    ]);
    for name in ["acceptance", "overlap"] {
        let output = onnx::value(name, onnx::FLOAT, &["batch", "sequence"]);
        graph.outputs.push(output);
    }
    graph
}

/// Files of a target without heads and of this draft.
fn files(bench: &Bench, draft: &onnx::Graph) -> [String; 2] {
    let (target, _) = chain([0.4, 0.0, 0.2]);
    bench.write("prompts.jsonl", PROMPTS);
    let files = [("t.onnx", &target), ("d.onnx", draft)];
    files.map(|(name, graph)| bench.write(name, &graph.model()).display().to_string())
}

/// Each prompt's rows, and its rollouts.
struct Found {
    texts: BTreeMap<i64, Vec<Row>>,
    log: Log,
}

fn read(path: &Path) -> Found {
    let log = Log::open(path).unwrap();
    let mut texts = BTreeMap::<i64, Vec<Row>>::new();
    for number in 0..log.positions() {
        let mut row = Row::default();
        log.read(number, &mut row).unwrap();
        texts.entry(row.prompt_id.unwrap()).or_default().push(row);
    }
    for text in texts.values_mut() {
        text.sort_by_key(|row| row.position);
    }
    Found { texts, log }
}

const ROLLED: [&str; 4] = ["--rollouts", "3", "--every", "2"];

/// A draft that writes three tokens at once is logged with a row for each depth, which
/// `specgap length` replays.
#[test]
fn drafts_of_several_rows_a_step_are_logged_by_depth() {
    const ROWS: [[f32; 3]; 3] = [[0.0, 0.5, 0.1], [0.3, 0.1, 0.0], [0.0, 0.2, 0.9]];
    let bench = Bench::new(0);
    let graph = onnx::model_by_depth(&ROWS.each_ref().map(|row| &row[..]));
    let [target, draft] = files(&bench, &graph);
    let models = [
        "--target",
        &target,
        "--draft",
        &draft,
        "--no-stop",
        "--dtype",
        "f32",
    ];
    let last_of_prompt = [1, 1, 0];
    bench.capture("log", &models);
    let log = Log::open(&bench.path("log")).unwrap();
    assert_eq!((log.depths(), log.vocabulary()), (3, 3));
    assert!(log.metadata().is_parallel());
    let found = read(&bench.path("log"));
    for depth in 1..=3 {
        let view = log.at_depth(depth).unwrap();
        let mut row = Row::default();
        for number in 0..log.positions() {
            view.read(number, &mut row).unwrap();
            let (prompt, position) = (row.prompt_id.unwrap(), row.position.unwrap());
            let Some(start) = (position + 1).checked_sub(depth as i64).filter(|&s| s >= 0) else {
                assert!(row.lacks_draft);
                continue;
            };
            let text = &found.texts[&prompt];
            let last = match usize::try_from(start - 1) {
                Ok(before) => text[before].token.unwrap(),
                Err(_) => last_of_prompt[prompt as usize],
            };
            let logits = ROWS[depth - 1].map(|x| f64::from(x * (last + 1) as f32));
            let off = row.draft[0] - logits[0];
            for (found, expected) in row.draft.iter().zip(logits) {
                assert!((found - expected - off).abs() < 1e-6, "{row:?}: {logits:?}");
            }
        }
    }
    let settings = specgap::replay::LengthSettings::default();
    let report = specgap::replay::measure_lengths(&[log], &settings, "test", &|_| {}).unwrap();
    assert_eq!(report.by_depth.len(), 3);
    // What needs one row behind each token is refused.
    for (more, cause) in [
        (
            &["--rollouts", "2"][..],
            "rollouts: the draft's graph gives 3 rows",
        ),
        (&["--top", "2"], "3 depths of lists cannot be written"),
    ] {
        bench.refuse(&[&models[..], more].concat(), &[cause]);
    }
    let wrong = ["--target", &draft, "--draft", &draft, "--no-stop"];
    bench.refuse(&wrong, &["target: its graph gives 3 rows"]);
}

#[test]
fn heads_are_logged_at_the_tokens_that_they_are_about() {
    let bench = Bench::new(0);
    let [target, draft] = files(&bench, &with_heads());
    let models = ["--target", &target, "--draft", &draft, "--no-stop"];
    let last_of_prompt = [1, 1, 0];
    for batch in ["1", "3"] {
        let out = format!("log-{batch}");
        let more = [&models[..], &ROLLED, &["--batch", batch]].concat();
        bench.capture(&out, &more);
        let found = read(&bench.path(&out));
        assert!(found.log.has_head_acceptance() && found.log.has_head_overlap());
        let heads = &found.log.metadata().extra["draft_heads"];
        assert_eq!(*heads, serde_json::json!(["acceptance", "overlap"]));
        let tokens = |prompt: i64| -> Vec<i64> {
            let rows = found.texts[&prompt].iter();
            rows.map(|row| row.token.unwrap()).collect()
        };
        for (&prompt, rows) in &found.texts {
            assert_eq!(rows.len(), 12);
            let mut before = last_of_prompt[prompt as usize];
            for (place, row) in rows.iter().enumerate() {
                let token = row.token.unwrap();
                // The draft does not read a text's last token.
                let read = (place + 1 < rows.len()).then(|| accepted(token));
                assert_eq!(row.head_acceptance, read, "{prompt}: {place}");
                assert_eq!(row.head_overlap, Some(shared(before)));
                before = token;
            }
        }
        let rollouts = found.log.rollouts().unwrap().unwrap();
        assert_eq!(rollouts.len(), 18);
        for rollout in rollouts.iter() {
            let mut row = Row::default();
            found.log.read(rollout.position, &mut row).unwrap();
            let (prompt, place) = (row.prompt_id.unwrap(), row.position.unwrap() as usize);
            let text = tokens(prompt);
            let start = place.checked_sub(1).map(|before| text[before]);
            let mut before = start.unwrap_or(last_of_prompt[prompt as usize]);
            for (step, &token) in rollout.tokens.iter().enumerate() {
                assert_eq!(rollout.acceptance[step], accepted(token.into()));
                assert_eq!(rollout.head_overlap[step], shared(before));
                before = token.into();
            }
            assert_eq!(rollout.acceptance.len(), 3);
        }
    }
}

#[test]
fn heads_change_no_row_and_no_rollout() {
    let bench = Bench::new(0);
    let [target, draft] = files(&bench, &with_heads());
    let plain = bench.write("plain.onnx", &chain([0.0, 0.5, 0.1]).0.model());
    let plain = plain.display().to_string();
    let run = |out: &str, draft: &str| {
        let models = ["--target", &target, "--draft", draft, "--batch", "3"];
        let rows = bench.capture(out, &[&models[..], &ROLLED].concat());
        (crate::sorted(rows), read(&bench.path(out)))
    };
    let (rows, with) = run("with", &draft);
    let (expected, without) = run("without", &plain);
    assert_eq!(rows, expected);
    assert!(!without.log.has_head_acceptance() && !without.log.has_head_overlap());
    assert!(!without.log.metadata().extra.contains_key("draft_heads"));
    let rolled = |found: &Found| -> BTreeMap<(i64, i64), (Vec<u32>, Vec<f64>)> {
        let rollouts = found.log.rollouts().unwrap().unwrap();
        let each = rollouts.iter().map(|rollout| {
            let mut row = Row::default();
            found.log.read(rollout.position, &mut row).unwrap();
            let drawn = (rollout.tokens.to_vec(), rollout.q.to_vec());
            ((row.prompt_id.unwrap(), row.position.unwrap()), drawn)
        });
        each.collect()
    };
    assert_eq!(rolled(&with), rolled(&without));
}

/// Puts another node in the place of the one that makes an output.
fn replace(graph: &mut onnx::Graph, output: &str, node: Vec<u8>) {
    let name = format!("Reciprocal-{output}");
    let (before, name) = (graph.nodes.len(), name.as_bytes());
    graph
        .nodes
        .retain(|node| !node.windows(name.len()).any(|part| part == name));
    assert_eq!(graph.nodes.len(), before - 1);
    graph.nodes.push(node);
}

#[test]
fn heads_that_are_no_probabilities_are_refused() {
    for (name, from, says) in [
        // 1/(token + 2) without the reciprocal.
        ("overlap", "ids_3", "output overlap is"),
        ("acceptance", "ids_2", "output acceptance is"),
    ] {
        let bench = Bench::new(0);
        let mut graph = with_heads();
        replace(
            &mut graph,
            name,
            onnx::node("Add", &[from, "one"], name, &[]),
        );
        let [target, draft] = files(&bench, &graph);
        let models = ["--target", &target, "--draft", &draft, "--no-stop"];
        let error = bench.refuse(&models, &["d.onnx", says, "it must be in [0, 1]"]);
        assert!(error.contains("\"p0\""), "{error}");
    }
    let bench = Bench::new(0);
    let mut graph = with_heads();
    replace(
        &mut graph,
        "overlap",
        onnx::node("Reciprocal", &["column"], "overlap", &[]),
    );
    graph.outputs.pop();
    let wide = onnx::value("overlap", onnx::FLOAT, &["batch", "sequence", "1"]);
    graph.outputs.push(wide);
    let [target, draft] = files(&bench, &graph);
    bench.refuse(
        &["--target", &target, "--draft", &draft],
        &["d.onnx", "output overlap", "of 2 axes"],
    );
}

#[test]
fn length_replays_rules_on_logged_heads() {
    let bench = Bench::new(0);
    let [target, draft] = files(&bench, &with_heads());
    let models = ["--target", &target, "--draft", &draft, "--no-stop"];
    let rolled = ["--rollouts", "11", "--every", "1", "--rollout-target"];
    bench.capture("log", &[&models[..], &rolled].concat());
    let (log, out) = (bench.path("log"), bench.path("report"));
    let policies = "fixed=2,specdec=0.6,specdec-late=0.6,overlap-head=0.2";
    crate::specgap(
        Path::new(crate::ROOT),
        [
            "length",
            log.to_str().unwrap(),
            "--policies",
            policies,
            "--verifiers",
            "token",
            "--cost-ratio",
            "0.1",
            "--out",
            out.to_str().unwrap(),
        ],
    )
    .ok();
    let report = std::fs::read(out.join("report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
    let results = report["results"].as_array().unwrap();
    // Draft tokens a round.
    let drafted = |policy: &str| {
        let of = |one: &&serde_json::Value| one["policy"] == policy;
        let one = results.iter().find(of).unwrap();
        assert_eq!(one["kind"], "estimate, rollouts");
        let mean = |name: &str| one[name]["mean"].as_f64().unwrap();
        let calls = mean("verification_rate");
        (mean("discard_rate") + 1.0 - calls) / calls
    };
    // Predicted overlaps are 1/5 to 1/3: one token, but where the text has no room for any.
    let one = drafted("overlap-head");
    assert!(one > 0.5 && one < 1.0, "{one}");
    // Predicted acceptances are 1/2 for token 0 and 1/3 or less for the others: two tokens
    // behind the former; one token later, one more.
    let (paper, late) = (drafted("specdec"), drafted("specdec-late"));
    assert!(paper > one + 0.1 && paper < 2.0, "{paper} and {one}");
    assert!(late > paper + 0.4 && late < 3.0, "{late} and {paper}");
}
