//! Does the live decoder write what the target would, in the rounds that it says?

use crate::rollouts::{chains, prompt};
use crate::says::Says;
use crate::{Bench, DRAFT, ROOT, TARGET, cases, codec, command, sorted, specgap};
use serde_json::Value;
use specgap::capture::{
    DecodeSettings, Decoded, Decoder, Round, Sampling, Shape, children_of_rule,
};
use specgap::replay::moments_of_chain;
use specgap::rounds::{ChainRule, carried_block_starts, carried_starts};
use specgap::rule::RuleName;
use specgap::scheme::SchemeName;
use specgap::tree::{DraftTree, Price, PricedRow};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// A tree of some name.
fn named(name: &str) -> specgap::tree::Shape {
    DraftTree::named(name).unwrap().shape()
}

/// Arguments of a decode where a capture has the same models and prompts.
fn arguments(bench: &Bench, out: &str, more: &[&str]) -> Vec<String> {
    let mut arguments = bench.arguments(out, more);
    arguments[0] = "decode".to_owned();
    arguments
}

/// Decodes and returns decode.json.
fn decoded(bench: &Bench, out: &str, more: &[&str]) -> Value {
    specgap(Path::new(ROOT), arguments(bench, out, more)).ok();
    let text = std::fs::read(bench.path(out).join("decode.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

fn count(value: &Value) -> usize {
    value.as_u64().unwrap() as usize
}

/// The tokens of all prompts.
fn texts(decoded: &Value) -> Vec<Vec<i64>> {
    let prompts = decoded["prompts"].as_array().unwrap();
    let ids = |prompt: &Value| {
        let ids = prompt["token_ids"].as_array().unwrap();
        ids.iter().map(|id| id.as_i64().unwrap()).collect()
    };
    prompts.iter().map(ids).collect()
}

/// The tokens of all prompts of a capture.
fn captured(bench: &Bench, out: &str, more: &[&str]) -> Vec<Vec<i64>> {
    let mut texts = Vec::new();
    for row in sorted(bench.capture(out, more)) {
        texts.resize(row.prompt as usize + 1, Vec::new());
        texts[row.prompt as usize].push(row.token);
    }
    texts
}

/// Rounds begin where rounds ended, draft what they may, and add up.
fn check_rounds(decoded: &Value, length: usize) {
    let most = count(&decoded["max_tokens"]);
    let mut totals = [0; 5];
    for prompt in decoded["prompts"].as_array().unwrap() {
        let tokens = count(&prompt["tokens"]);
        let (mut at, mut drafted, mut accepted, mut within) = (0, 0, 0, 0);
        let rounds = prompt["rounds"].as_array().unwrap();
        for round in rounds {
            assert_eq!(count(&round["start"]), at);
            let (k, kept) = (count(&round["drafted"]), count(&round["accepted"]));
            assert_eq!(k, length.min(most - at - 1));
            assert!(kept <= k);
            within += k.min(tokens - at - 1);
            at += count(&round["tokens"]);
            // A draft that ends the text leaves no room for the round's own token.
            let ended = at == tokens && prompt["stopped"] == true;
            let own = count(&round["tokens"]) - kept;
            assert!(own == 1 || ended && own == 0, "{round}");
            drafted += k;
            accepted += kept;
        }
        assert_eq!(at, tokens);
        let found = ["calls", "draft_tokens", "accepted", "draft_tokens_in_text"];
        let expected = [rounds.len(), drafted, accepted, within];
        for (name, expected) in found.into_iter().zip(expected) {
            assert_eq!(count(&prompt[name]), expected, "{name}");
        }
        for (total, part) in totals.iter_mut().zip([tokens].into_iter().chain(expected)) {
            *total += part;
        }
    }
    let names = [
        "tokens",
        "calls",
        "draft_tokens",
        "accepted",
        "draft_tokens_in_text",
    ];
    for (name, total) in names.into_iter().zip(totals) {
        assert_eq!(count(&decoded["totals"][name]), total, "{name}");
    }
}

const CHAIN_RULES: [&str; 4] = ["token", "block", "carried", "carried-block"];

#[test]
fn greedy_text_is_the_targets_whatever_is_drafted() {
    let bench = Bench::new(4);
    let greedy = ["--temperature", "0", "--max-tokens", "24"];
    let expected = captured(&bench, "log", &greedy);
    let mut calls = Vec::new();
    for rule in CHAIN_RULES {
        for length in ["0", "1", "3", "6"] {
            let more = ["--verifier", rule, "--length", length];
            let name = format!("{rule}{length}");
            let decoded = decoded(&bench, &name, &[&greedy[..], &more].concat());
            assert_eq!(texts(&decoded), expected, "{name}");
            check_rounds(&decoded, length.parse().unwrap());
            calls.push(count(&decoded["totals"]["calls"]));
        }
    }
    // Some drafts are kept, so that caches were rolled back to every place; all rules
    // keep the drafts that agree.
    assert!(calls.chunks(4).all(|of| *of == calls[..4]), "{calls:?}");
    assert!(
        calls.windows(2).take(3).all(|pair| pair[1] < pair[0]),
        "{calls:?}"
    );
    assert_eq!(calls[0], expected.iter().map(Vec::len).sum::<usize>());
}

#[test]
fn greedy_text_of_trees_is_the_targets_too() {
    let bench = Bench::new(4);
    let greedy = ["--temperature", "0", "--max-tokens", "24"];
    let expected = captured(&bench, "log", &greedy);
    let chain = decoded(&bench, "chain", &[&greedy[..], &["--length", "3"]].concat());
    let paths = decoded(
        &bench,
        "paths",
        &[&greedy[..], &["--paths", "2", "--length", "3"]].concat(),
    );
    assert_eq!(texts(&paths), expected);
    assert_eq!((&paths["paths"], &paths["length"]), (&2.into(), &3.into()));
    assert_eq!(paths["tree"], Value::Null);
    assert_eq!(paths["totals"]["calls"], chain["totals"]["calls"]);
    for rule in ["rrs", "rrs-wo", "traversal", "traversal-4"] {
        let more = ["--verifier", rule, "--tree", "2x3"];
        let decoded = decoded(&bench, rule, &[&greedy[..], &more].concat());
        assert_eq!(texts(&decoded), expected, "{rule}");
        assert_eq!(
            (&decoded["tree"], &decoded["length"]),
            (&"2x3".into(), &Value::Null)
        );
        // The likeliest token is the only one of both models: children are all the same, or
        // there is one, so that the rounds are those of a chain.
        let calls = |decoded: &Value| decoded["totals"]["calls"].clone();
        assert_eq!(calls(&decoded), calls(&chain));
    }
}

#[test]
fn a_tree_of_the_targets_own_drafts_is_followed_to_its_end() {
    let bench = Bench::new(3);
    for (rule, shape, nodes) in [
        ("rrs", &["--tree", "2x2"][..], 6),
        ("rrs-wo", &["--tree", "2x2"], 6),
        ("spechub", &["--tree", "2x2"], 6),
        ("traversal", &["--tree", "2x2"], 6),
        ("traversal-4", &["--tree", "2x2"], 6),
        ("select-block", &["--paths", "3", "--length", "2"], 6),
        ("select-greedy-block", &["--paths", "3", "--length", "2"], 6),
    ] {
        let more = ["--draft", TARGET, "--verifier", rule, "--no-stop"];
        let decoded = decoded(&bench, rule, &[&more[..], shape].concat());
        // 12 tokens: 3, 3, 3 and 3; the last round has two tokens to go after its first.
        assert_eq!(count(&decoded["totals"]["calls"]), 12, "{rule}");
        assert_eq!(count(&decoded["totals"]["accepted"]), 24);
        assert_eq!(count(&decoded["totals"]["draft_tokens"]), 12 * nodes);
    }
}

/// A tree of one level: a child is kept with the chance that the law of both children gives,
/// by enumeration; so target calls are known.
#[test]
fn a_tree_keeps_as_many_children_as_its_rule_says() {
    const PROMPTS: usize = 4000;
    for rule in [RuleName::RRS, RuleName::RRS_WO] {
        let tree = Shape::Tree(named("2x1"), children_of_rule(rule));
        let (decoded, [p, q]) = sampled(rule, tree, 2, PROMPTS);
        // Two tokens: one round where a child is kept, else two. Behind token 1.
        let (p, q) = (p[1], q[1]);
        let first: f64 = (0..3).map(|x| p[x].min(q[x])).sum();
        let left: Vec<f64> = (0..3)
            .map(|x| (p[x] - q[x]).max(0.0) / (1.0 - first))
            .collect();
        let mut second = 0.0;
        for x in 0..3 {
            let rejected = (q[x] - p[x]).max(0.0);
            for y in 0..3 {
                let law = match rule == RuleName::RRS_WO {
                    true if y == x => 0.0,
                    true => q[y] / (1.0 - q[x]),
                    _ => q[y],
                };
                second += rejected * law.min(left[y]);
            }
        }
        let kept = first + second;
        let found = decoded.iter().filter(|text| text.rounds.len() == 1).count();
        let deviation = (kept * (1.0 - kept) / PROMPTS as f64).sqrt();
        let z = (found as f64 / PROMPTS as f64 - kept) / deviation;
        // A false alarm in about 10^6 seeds; the seed is fixed.
        assert!(z.abs() < 5.0, "{rule:?}: {z}, {kept}");
        for text in &decoded {
            assert_eq!(text.rounds[0].by_depth, [2]);
            assert!(
                text.rounds
                    .get(1)
                    .is_none_or(|round| round.by_depth.is_empty())
            );
        }
    }
}

#[test]
fn a_target_that_drafts_for_itself_has_every_draft_kept() {
    let bench = Bench::new(3);
    for rule in CHAIN_RULES {
        let more = ["--draft", TARGET, "--verifier", rule, "--no-stop"];
        let decoded = decoded(&bench, rule, &[&more[..], &["--length", "4"]].concat());
        check_rounds(&decoded, 4);
        // 12 tokens: 5, 5 and 2.
        assert_eq!(count(&decoded["totals"]["calls"]), 9, "{rule}");
        assert_eq!(count(&decoded["totals"]["accepted"]), 27);
        assert_eq!(decoded["totals"]["discard_rate"], 0.0);
    }
}

#[test]
fn a_stop_token_ends_a_text_within_a_round() {
    let bench = Bench::new(4);
    for rule in CHAIN_RULES {
        let more = ["--verifier", rule, "--max-tokens", "30"];
        let name = |what: &str| format!("{rule}-{what}");
        let free = decoded(&bench, &name("free"), &[&more[..], &["--no-stop"]].concat());
        let token = texts(&free)[0][8].to_string();
        let more = [&more[..], &["--stop", &token]].concat();
        let stopped = decoded(&bench, &name("stopped"), &more);
        check_rounds(&stopped, 4);
        for (text, free) in texts(&stopped).iter().zip(texts(&free)) {
            let end = free.iter().position(|t| t.to_string() == token);
            assert_eq!(*text, free[..end.map_or(30, |end| end + 1)]);
        }
        let text = &stopped["prompts"][0];
        assert_eq!(text["stopped"], true);
        let totals = &stopped["totals"];
        assert!(count(&totals["draft_tokens_in_text"]) <= count(&totals["draft_tokens"]));
    }
}

#[test]
fn a_text_depends_on_its_seed_and_prompt_alone() {
    let bench = Bench::new(4);
    let all = texts(&decoded(&bench, "all", &["--seed", "3"]));
    let lines = std::fs::read_to_string(bench.path("prompts.jsonl")).unwrap();
    let last = lines.lines().next_back().unwrap();
    let one = bench
        .write("one.jsonl", last.as_bytes())
        .display()
        .to_string();
    let alone = texts(&decoded(&bench, "one", &["--seed", "3", "--prompts", &one]));
    assert_eq!(alone, all[3..]);
    assert_ne!(texts(&decoded(&bench, "other", &["--seed", "4"])), all);
}

#[test]
fn times_are_written_for_every_part_of_a_round() {
    let bench = Bench::new(3);
    let more = [
        "--timing",
        "--length",
        "3",
        "--max-tokens",
        "16",
        "--no-stop",
    ];
    let decoded = decoded(&bench, "out", &more);
    let text = std::fs::read(bench.path("out").join("timings.json")).unwrap();
    let timings: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(timings, decoded["timings"]);
    assert_eq!(timings["schema"], 1);
    let time = |timing: &Value| {
        let (seconds, error) = (&timing["seconds"], &timing["standard_error"]);
        assert!(seconds.as_f64().unwrap() > 0.0 && error.as_f64().unwrap() >= 0.0);
        assert!(seconds.as_f64().unwrap() < 1.0);
    };
    for name in ["target_step", "draft_step", "overhead"] {
        time(&timings[name]);
    }
    let passes = timings["verify"].as_array().unwrap();
    let lengths: Vec<usize> = passes.iter().map(|pass| count(&pass["tokens"])).collect();
    assert_eq!(lengths, [1, 2, 3, 4]);
    passes.iter().for_each(time);

    // The target alone writes what a capture of the same seed logs.
    let alone = captured(&bench, "log", &["--max-tokens", "16", "--no-stop"]);
    let predicted = [
        "length",
        "log",
        "--lengths",
        "1,3",
        "--timings",
        "out/timings.json",
    ];
    let run = specgap(
        bench.folder.path(),
        [&predicted[..], &["--format", "json"]].concat(),
    )
    .ok();
    for result in run.json()["results"].as_array().unwrap() {
        // Greedy-block has no replay, and no speed.
        if result["policy"] == "fixed" && result["verifier"] != "greedy-block" {
            assert!(
                result["speedup"]["mean"].as_f64().unwrap() > 0.0,
                "{result}"
            );
        }
    }
    let total: usize = alone.iter().map(Vec::len).sum();
    assert_eq!(count(&decoded["alone"]["tokens"]), total);
    let parts = ["draft", "verify", "other"];
    for prompt in decoded["prompts"].as_array().unwrap() {
        let seconds = |name: &str| prompt["seconds"][name].as_f64().unwrap();
        let sum: f64 = parts.into_iter().map(seconds).sum();
        assert!((sum - seconds("all")).abs() < 1e-9);
        assert!(parts.into_iter().all(|part| seconds(part) > 0.0));
    }
    let speed = |of: &Value| of["tokens_per_second"].as_f64().unwrap();
    let speedup = speed(&decoded["totals"]) / speed(&decoded["alone"]);
    assert!((decoded["speedup"].as_f64().unwrap() / speedup - 1.0).abs() < 1e-12);
}

#[test]
fn output_is_the_text_or_one_object() {
    let bench = Bench::new(2);
    let run = specgap(Path::new(ROOT), arguments(&bench, "out", &[])).ok();
    let object: Value =
        serde_json::from_slice(&std::fs::read(bench.path("out").join("decode.json")).unwrap())
            .unwrap();
    for prompt in object["prompts"].as_array().unwrap() {
        let (id, text) = (
            prompt["id"].as_str().unwrap(),
            prompt["text"].as_str().unwrap(),
        );
        run.out.says(&format!("[{id}]\n{text}\n"));
    }
    assert!(run.out.contains("2 prompts, "), "{}", run.out);
    assert!(!bench.path("out").join("timings.json").exists());
    let json = specgap(
        Path::new(ROOT),
        arguments(&bench, "out", &["--format", "json"]),
    );
    assert_eq!(texts(&json.json()), texts(&object));
}

#[test]
fn what_cannot_be_decoded_is_refused() {
    let bench = Bench::new(1);
    let file = bench.write("file", b"").display().to_string();
    // `$` is a file.
    let table = r#"
        --timing --length 0 -> --timing
        --timing --max-tokens 1 -> --timing
        --length 2000 -> --length
        --temperature=-1 -> --temperature -1
        --verifier rumour -> --verifier
        --verifier rrs -> give --tree
        --tree 2x2 --verifier block -> give --length
        --tree 2 -> AxB
        --tree 0x2 -> 0x2
        --tree 4x5 -> at most 256 run side by side
        --tree nowhere.json -> nowhere.json
        --paths 0 -> --paths
        --paths 2 --length 0 -> paths of 0 tokens
        --paths 2 --timing -> --paths
        --paths 2 --tree 2x2 -> --paths
        --paths 2 --verifier block -> settles chains
        --tree 2x2 --verifier carried -> settles chains
        --verifier rrs -> carried-block
        --tree 2x2 --verifier select-block -> give --paths K
        --tree eagle-25 --verifier spechub -> hub children are pairs
        --tree 2x2 --law without-replacement -> leave out --law
        --law hub -> leave it out
        --paths 2 --verifier coded-rrs -> --verifier | select-block
        --length 2 --bound -> --bound is about trees
        --paths 2 --verifier select-greedy-block --bound -> --verifier select-block
        --paths 2 --verifier select-greedy-block --predict -> changes the target of later rounds
        --tree 2x2 --law rumour -> --law
        --tree 2x2 --law hub --verifier traversal --predict -> does not follow from the text alone
        --tree 2x2 --law hub --verifier traversal-4 -> --law
        --tree 2x2 --timing -> --tree
        --tree 2x2 --length 2 -> --tree
        --out $ -> is not a folder
        --stop <nothing> -> has no token "<nothing>"
        --target nowhere.onnx -> nowhere.onnx: cannot be read
    "#;
    for (more, words) in cases(table) {
        let more = more.split(' ');
        let more: Vec<&str> = (more.map(|word| if word == "$" { &file } else { word })).collect();
        let run = specgap(Path::new(ROOT), arguments(&bench, "refused", &more));
        run.refused(&[&["error: "], &words[..]].concat());
        assert!(!bench.path("refused").exists());
    }
}

#[cfg(unix)]
#[test]
fn an_interrupt_writes_nothing() {
    let bench = Bench::new(1024);
    let more = ["--max-tokens", "200", "--no-stop", "--length", "0"];
    let mut child = command(Path::new(ROOT), arguments(&bench, "out", &more))
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // Signals are handled once the models are open, which is said.
    let mut said = String::new();
    let mut lines = std::io::BufReader::new(child.stderr.take().unwrap());
    while !said.contains("device: ") {
        assert_ne!(
            std::io::BufRead::read_line(&mut lines, &mut said).unwrap(),
            0
        );
    }
    std::thread::sleep(std::time::Duration::from_millis(300));
    let pid = child.id().to_string();
    let sent = std::process::Command::new("kill")
        .args(["-INT", &pid])
        .status();
    assert!(sent.unwrap().success());
    std::io::Read::read_to_string(&mut lines, &mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{said}");
    assert!(said.contains("interrupted; nothing was written"), "{said}");
    assert!(!bench.path("out").exists());
}

/// Trees at a price that is fitted on the rows of [`known_pair`]: nodes have one child, two or none.
fn priced() -> Shape {
    let (_, [p, q]) = chains(&Bench::new(1));
    let rows = p.iter().zip(&q).map(|(p, q)| PricedRow::of(p, q, 0, 3));
    let rows: Vec<PricedRow> = rows.collect();
    let fit = Price::fit("stratified", &rows.iter().collect::<Vec<_>>(), 2, 2);
    let price = fit.at(0.15);
    let counts = rows.iter().map(|row| price.children(&row.heaviest, 1, 0.4));
    let counts: Vec<usize> = counts.collect();
    assert!(
        counts.windows(2).any(|pair| pair[0] != pair[1]),
        "{counts:?}"
    );
    Shape::Priced(Box::new(price), SchemeName::STRATIFIED)
}

/// A pair over V = 3 whose laws are known; its laws p and q.
fn known_pair(
    bench: &Bench,
    rule: RuleName,
    drafts: Shape,
    length: usize,
) -> (Decoder, [[[f64; 3]; 3]; 2]) {
    let ([target, draft], laws) = chains(bench);
    let settings = DecodeSettings {
        sampling: Sampling::new(1.0, None, None).unwrap(),
        seed: 5,
        max_tokens: length,
        drafts,
        rule,
        note_trees: false,
        vocabulary: None,
    };
    let decoder = Decoder::new(target, draft, codec(), settings).unwrap();
    (decoder, laws)
}

/// Every prompt decoded by the pair.
fn sampled(
    rule: RuleName,
    drafts: Shape,
    length: usize,
    prompts: usize,
) -> (Vec<Decoded>, [[[f64; 3]; 3]; 2]) {
    let bench = Bench::new(1);
    let (mut decoder, laws) = known_pair(&bench, rule, drafts, length);
    let quiet = AtomicBool::new(false);
    let decode = |index| decoder.decode(&prompt(index), &quiet, &mut |_| ()).unwrap();
    ((0..prompts).map(decode).collect(), laws)
}

/// All texts of a length over 3 tokens.
fn all_texts(length: u32) -> impl Iterator<Item = Vec<usize>> {
    (0..3usize.pow(length)).map(move |code| {
        (0..length)
            .map(|place| code / 3usize.pow(place) % 3)
            .collect()
    })
}

/// The law of a token after each place of a text, which begins behind token 1.
fn laws<'a>(law: &'a [[f64; 3]; 3], text: &'a [usize]) -> impl Iterator<Item = [f64; 3]> + 'a {
    std::iter::once(&1).chain(text).map(|&last| law[last])
}

/// Expected target calls and drafts of a text's rounds, given the text: the chance that
/// a round starts at each place, from those before it.
fn replay(rule: RuleName, drafts: usize, ratios: &[f64]) -> (f64, f64) {
    let length = ratios.len();
    let mut starts = vec![0.0; length + 1];
    starts[0] = 1.0;
    let (mut calls, mut drafted) = (0.0, 0.0);
    for start in 0..length {
        let here = starts[start];
        let most = drafts.min(length - start - 1);
        calls += here;
        drafted += here * most as f64;
        // P(the first j drafts that the text agrees with are kept).
        let (mut kept, mut product) = (1.0f64, 1.0f64);
        for accepted in 0..most {
            product *= ratios[start + accepted];
            let next = match rule == RuleName::TOKEN {
                true => kept * ratios[start + accepted].min(1.0),
                _ => kept.min(product),
            };
            starts[start + accepted + 1] += here * (kept - next);
            kept = next;
        }
        starts[start + most + 1] += here * kept;
    }
    (calls, drafted)
}

/// The same where the chance of a start in front of each token is known.
fn replay_of(drafts: usize, starts: &[f64]) -> (f64, f64) {
    let places = starts.iter().rev().enumerate();
    let drafted = places.map(|(left, start)| start * drafts.min(left) as f64);
    (starts.iter().sum(), drafted.sum())
}

#[test]
fn sampled_text_has_the_targets_law() {
    const PROMPTS: usize = 2500;
    let tree = |children, law| Shape::Tree(named(&format!("{children}x2")), law);
    let paths = Shape::Tree(named("prefix-3-1"), SchemeName::WITH_REPLACEMENT);
    // One child of the root has none.
    let uneven = DraftTree::from_json("[[0],[1],[0,0]]").unwrap().shape();
    for (rule, drafts) in [
        (RuleName::TOKEN, Shape::Chain(2)),
        (RuleName::BLOCK, Shape::Chain(2)),
        (RuleName::CARRIED, Shape::Chain(1)),
        (RuleName::CARRIED_BLOCK, Shape::Chain(1)),
        (RuleName::RRS, tree(2, SchemeName::WITH_REPLACEMENT)),
        (RuleName::RRS_WO, tree(2, SchemeName::WITHOUT_REPLACEMENT)),
        (
            RuleName::RRS_WO,
            Shape::Tree(uneven.clone(), SchemeName::WITHOUT_REPLACEMENT),
        ),
        (RuleName::LEVEL_4, tree(2, SchemeName::STRATIFIED)),
        (
            RuleName::LEVEL_4,
            tree(2, SchemeName::STRATIFIED_INDEPENDENT),
        ),
        (RuleName::SPECHUB, tree(2, SchemeName::HUB)),
        (RuleName::TRAVERSAL, tree(2, SchemeName::WITH_REPLACEMENT)),
        (
            RuleName::TRAVERSAL,
            tree(2, SchemeName::WITHOUT_REPLACEMENT),
        ),
        (
            RuleName::TRAVERSAL,
            Shape::Tree(uneven, SchemeName::WITH_REPLACEMENT),
        ),
        (RuleName::TRAVERSAL, paths.clone()),
        (RuleName::TRAVERSAL_4, tree(2, SchemeName::STRATIFIED)),
        (RuleName::TRAVERSAL_4, priced()),
        (RuleName::SELECT_BLOCK, paths.clone()),
        (RuleName::SELECT_GREEDY_BLOCK, paths),
    ] {
        let (decoded, [p, _]) = sampled(rule, drafts, 3, PROMPTS);
        let square: f64 = all_texts(3)
            .map(|text| {
                let mean: f64 = laws(&p, &text).zip(&text).map(|(p, &x)| p[x]).product();
                let mean = mean * PROMPTS as f64;
                let same = |decoded: &&Decoded| {
                    decoded
                        .tokens
                        .iter()
                        .map(|&x| x as usize)
                        .eq(text.iter().copied())
                };
                let found = decoded.iter().filter(same).count() as f64;
                assert!(mean > 20.0, "the sample is too small for {text:?}");
                (found - mean).powi(2) / mean
            })
            .sum();
        // Chi-square of 26 degrees of freedom: its upper quantile at 10^-6 is 76. The
        // draft's own law is far beyond.
        assert!(square < 76.0, "{rule:?}: {square}");
    }
}

/// Target calls and drafts of texts are as many on average as these.
fn as_many(decoded: &[Decoded], [calls, drafts]: [f64; 2], rule: RuleName) {
    let count = decoded.len() as f64;
    let z = |expected: f64, part: &dyn Fn(&Decoded) -> usize| {
        let values: Vec<f64> = decoded.iter().map(|text| part(text) as f64).collect();
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
        (mean - expected) / (squares / (count * (count - 1.0))).sqrt()
    };
    // A false alarm in about 10^6 seeds each; the seed is fixed.
    let of_calls = z(calls, &|text| text.rounds.len());
    let of_drafts = z(drafts, &|text| text.rounds.iter().map(Round::drafted).sum());
    assert!(
        of_calls.abs() < 5.0 && of_drafts.abs() < 5.0,
        "{rule:?}: {of_calls} {of_drafts}"
    );
}

/// Target calls and drafts against the replay of all texts: the means of what the log of
/// these models would predict, with no other randomness left in them.
#[test]
fn rounds_are_as_many_as_the_replay_of_the_text_predicts() {
    const PROMPTS: usize = 4000;
    let mut means = Vec::new();
    for rule in [
        RuleName::TOKEN,
        RuleName::BLOCK,
        RuleName::CARRIED,
        RuleName::CARRIED_BLOCK,
    ] {
        let (decoded, [p, q]) = sampled(rule, Shape::Chain(3), 6, PROMPTS);
        let (mut calls, mut drafts) = (0.0, 0.0);
        for text in all_texts(6) {
            let chance: f64 = laws(&p, &text).zip(&text).map(|(p, &x)| p[x]).product();
            let both = laws(&p, &text).zip(laws(&q, &text)).zip(&text);
            let ratios: Vec<f64> = both.map(|((p, q), &x)| q[x] / p[x]).collect();
            let (of_text, drafted) = if rule == RuleName::CARRIED {
                replay_of(3, &carried_starts(&ratios, 3))
            } else if rule == RuleName::CARRIED_BLOCK {
                let rows: Vec<_> = laws(&p, &text).zip(laws(&q, &text)).collect();
                let rows = rows.iter().zip(&text);
                let rows: Vec<_> = rows.map(|((p, q), &x)| (&p[..], &q[..], x)).collect();
                replay_of(3, &carried_block_starts(&rows, 3))
            } else {
                replay(rule, 3, &ratios)
            };
            calls += chance * of_text;
            drafts += chance * drafted;
        }
        means.push(calls);
        as_many(&decoded, [calls, drafts], rule);
    }
    // Rules whose predictions did not differ would tell nothing apart.
    assert!(means[1] < means[0] - 0.01, "{means:?}");
    assert!(means[3] < means[1] - 0.01, "{means:?}");
}

/// The laws that a prediction is made of are those that the text was drawn from.
#[test]
fn the_laws_along_a_text_are_those_of_its_rounds() {
    let bench = Bench::new(1);
    let (mut decoder, [p, q]) = known_pair(&bench, RuleName::TOKEN, Shape::Chain(3), 9);
    let quiet = AtomicBool::new(false);
    for index in 0..4 {
        let text = decoder.decode(&prompt(index), &quiet, &mut |_| ()).unwrap();
        let (mut last, mut seen) = (1, 0);
        decoder
            .laws_along(
                &prompt(index),
                &text.tokens,
                &quiet,
                &mut |position, own_p, own_q| {
                    assert_eq!(position, seen);
                    for token in 0..3 {
                        assert!((own_p.probability(token) - p[last][token]).abs() < 1e-6);
                        assert!((own_q.probability(token) - q[last][token]).abs() < 1e-6);
                    }
                    last = text.tokens[position] as usize;
                    seen += 1;
                    Ok(())
                },
            )
            .unwrap();
        assert_eq!(seen, 9);
    }
}

/// Rounds of block verification are told from those that token verification would make of
/// the same texts.
#[test]
fn a_prediction_tells_rules_apart() {
    let (decoded, [p, q]) = sampled(RuleName::BLOCK, Shape::Chain(4), 12, 1500);
    let z = |verifier: ChainRule| {
        let (mut apart, mut variance) = (0.0, 0.0);
        for text in &decoded {
            let tokens: Vec<usize> = text.tokens.iter().map(|&token| token as usize).collect();
            let both = laws(&p, &tokens).zip(laws(&q, &tokens)).zip(&tokens);
            let ratios: Vec<f64> = both.map(|((p, q), &x)| q[x] / p[x]).collect();
            let calls = moments_of_chain(verifier, &ratios, 4).unwrap().calls;
            apart += text.rounds.len() as f64 - calls.mean;
            variance += calls.variance;
        }
        apart / variance.sqrt()
    };
    let (block, token) = (z(ChainRule::BLOCK), z(ChainRule::TOKEN));
    assert!(block.abs() < 5.0 && token < -5.0, "{block} {token}");
}

/// Counts lie around what is predicted given the texts.
#[test]
fn a_decoder_is_held_against_the_replay_of_its_own_texts() {
    let bench = Bench::new(60);
    let z = |out: &str, more: &[&str]| -> [f64; 2] {
        let more = [more, &["--predict", "--max-tokens", "24", "--no-stop"]].concat();
        let decoded = decoded(&bench, out, &more);
        let totals = &decoded["predicted"];
        assert_eq!(totals["texts"], 60);
        let prompts = decoded["prompts"].as_array().unwrap();
        for what in ["calls", "draft_tokens_in_text"] {
            let sum = |of: &dyn Fn(&Value) -> f64| -> f64 { prompts.iter().map(of).sum() };
            let mean = sum(&|prompt| prompt["predicted"][what]["mean"].as_f64().unwrap());
            let variance = sum(&|prompt| prompt["predicted"][what]["sd"].as_f64().unwrap().powi(2));
            let counted = sum(&|prompt| prompt[what].as_f64().unwrap());
            let z = totals[what]["z"].as_f64().unwrap();
            assert!(
                (z - (counted - mean) / variance.sqrt()).abs() < 1e-6,
                "{what}"
            );
        }
        ["calls", "draft_tokens_in_text"].map(|what| totals[what]["z"].as_f64().unwrap())
    };
    let apart = ["--law", "stratified-independent"];
    for (out, more, law) in [
        ("token", ["--length", "4", "--verifier", "token"], &[][..]),
        ("block", ["--length", "4", "--verifier", "block"], &[]),
        ("carried", ["--length", "2", "--verifier", "carried"], &[]),
        (
            "carried-block",
            ["--length", "2", "--verifier", "carried-block"],
            &[],
        ),
        ("rrs", ["--tree", "2x2", "--verifier", "rrs"], &[]),
        ("rrs-wo", ["--tree", "2x2", "--verifier", "rrs-wo"], &[]),
        (
            "uneven",
            ["--tree", "prefix-3-1-2", "--verifier", "rrs-wo"],
            &[],
        ),
        ("level-4", ["--tree", "2x2", "--verifier", "level-4"], &[]),
        ("apart", ["--tree", "2x2", "--verifier", "level-4"], &apart),
        ("leaves", ["--tree", "2x2", "--verifier", "traversal"], &[]),
        (
            "leaves-4",
            ["--tree", "2x2", "--verifier", "traversal-4"],
            &apart,
        ),
        (
            "leaves-paths",
            ["--paths", "3", "--verifier", "traversal"],
            &[],
        ),
        (
            "spechub",
            ["--tree", "spechub-binary-2", "--verifier", "spechub"],
            &[],
        ),
        (
            "select",
            ["--paths", "3", "--verifier", "select-block"],
            &[],
        ),
    ] {
        // A false alarm in about 10^6 seeds each; the seed is fixed.
        let found = z(out, &[&more[..], law].concat());
        assert!(found.iter().all(|z| z.abs() < 5.0), "{out}: {found:?}");
    }
}

/// From a log to a price, and from that to a decoder whose tokens a call are what the replay says.
#[test]
fn a_price_from_a_log_shapes_the_trees_of_a_decoder() {
    let bench = Bench::new(60);
    let text = ["--max-tokens", "24", "--no-stop"];
    bench.capture("log", &text);
    let log = bench.path("log").display().to_string();
    let out = bench.path("report").display().to_string();
    let line = [
        "tree",
        &log,
        "--price",
        "--budget",
        "6",
        "--max-depth",
        "3",
        "--out",
        &out,
    ];
    specgap(Path::new(ROOT), line.map(str::to_owned).to_vec()).ok();
    let file = bench.path("report").join("best-tree.price.json");
    let price = file.display().to_string();
    for more in [&[][..], &["--verifier", "level-4"], &["--bound"]] {
        let more = [&text[..], &["--tree", &price, "--predict"], more].concat();
        let decoded = decoded(&bench, "out", &more);
        assert_eq!(decoded["tree"], "best-tree.price.json");
        assert_eq!(decoded["scheme"], "stratified");
        let told = decoded["verifier"].as_str().unwrap();
        assert_eq!(
            told,
            if more.contains(&"level-4") {
                "level-4"
            } else {
                "traversal-4"
            }
        );
        let totals = &decoded["predicted"];
        assert_eq!(totals["draft_tokens_in_text"], Value::Null);
        let z = totals["calls"]["z"].as_f64().unwrap();
        // A false alarm in about 10^6 seeds; the seed is fixed.
        assert!(z.abs() < 5.0, "{told}: {z}");
        // Rounds draft what rows say: not all as many.
        let rounds = decoded["prompts"].as_array().unwrap().iter();
        let rounds = rounds.flat_map(|prompt| prompt["rounds"].as_array().unwrap());
        let drafted: BTreeSet<usize> = rounds.map(|round| count(&round["drafted"])).collect();
        assert!(drafted.len() > 3, "{drafted:?}");
    }
    let read = std::fs::read_to_string(&file).unwrap();
    let mut object: Value = serde_json::from_str(&read).unwrap();
    for (field, wrong, says) in [
        ("law", Value::from("hub"), "prices are of stratified"),
        (
            "worth",
            Value::from(vec![1.0]),
            "worth: is not what a price has",
        ),
        ("price", Value::from(0.0), "price: is not what a price has"),
    ] {
        let right = std::mem::replace(&mut object[field], wrong);
        bench.write("wrong.json", object.to_string().as_bytes());
        object[field] = right;
        let wrong = bench.path("wrong.json").display().to_string();
        let run = specgap(
            Path::new(ROOT),
            arguments(&bench, "none", &["--tree", &wrong]),
        );
        run.refused(&["error: ", "wrong.json", says]);
    }
    for (more, says) in [
        (["--law", "hub"], "leave --law out"),
        (["--verifier", "rrs"], "leave out --law"),
        (["--verifier", "token"], "settles chains"),
    ] {
        let more = [&["--tree", &price], &more[..]].concat();
        specgap(Path::new(ROOT), arguments(&bench, "none", &more)).refused(&["error: ", says]);
    }
}

#[test]
fn settings_are_in_the_file() {
    let bench = Bench::new(1);
    let more = [
        "--verifier",
        "block",
        "--length",
        "2",
        "--temperature",
        "0.7",
    ];
    let decoded = decoded(
        &bench,
        "out",
        &[&more[..], &["--top-k", "20", "--seed", "9"]].concat(),
    );
    assert_eq!(decoded["schema"], 1);
    assert_eq!(decoded["verifier"], "block");
    assert_eq!(decoded["length"], 2);
    assert_eq!(decoded["temperature"], 0.7);
    assert_eq!(
        (&decoded["top_k"], &decoded["seed"]),
        (&20.into(), &9.into())
    );
    assert_eq!(
        (&decoded["target"], &decoded["draft"]),
        (&"target.onnx".into(), &"draft.onnx".into())
    );
    assert!(
        decoded["command"]
            .as_str()
            .unwrap()
            .starts_with("specgap decode ")
    );
    assert_eq!(decoded["alone"], Value::Null);
    assert_eq!(DRAFT.rsplit('/').next(), decoded["draft"].as_str());
}

/// Each verifier's number is about the same trees; the rule's own is what it kept, but for its
/// coins.
#[test]
fn a_bound_is_above_what_verifiers_keep_of_the_same_trees() {
    let bench = Bench::new(60);
    for (out, more, names) in [
        (
            "sequential",
            &["--tree", "2x2", "--verifier", "rrs-wo"][..],
            &["rrs-wo", "traversal"][..],
        ),
        (
            "hub",
            &["--tree", "spechub-binary-2", "--verifier", "spechub"],
            &["spechub", "traversal"],
        ),
        (
            "paths",
            &["--paths", "2", "--length", "2"],
            &[
                "rrs",
                "traversal",
                "traversal-4",
                "select-block",
                "select-greedy-block",
            ],
        ),
    ] {
        let more = [more, &["--bound", "--max-tokens", "16"]].concat();
        let decoded = decoded(&bench, out, &more);
        let bound = &decoded["bound"];
        assert_eq!(bound["prompts"], 60);
        let mean = |value: &Value| value["mean"].as_f64().unwrap();
        let upper = &bound["upper_bound"];
        let verifiers = bound["verifiers"].as_array().unwrap();
        let found: Vec<&str> = verifiers
            .iter()
            .map(|one| one["verifier"].as_str().unwrap())
            .collect();
        assert_eq!(found, names, "{out}");
        for one in verifiers {
            let kept = &one["expected_accepted_length"];
            let below = &one["below_upper_bound"];
            assert!((mean(upper) - mean(kept) - mean(below)).abs() < 1e-9);
            // The bound is above every verifier, but for the sample.
            assert!(below["ci95"][1].as_f64().unwrap() > 0.0, "{out}: {one}");
        }
        // Rounds that drafted, and what they kept: some standard errors from its expectation.
        let rounds = decoded["prompts"].as_array().unwrap().iter();
        let rounds = rounds.flat_map(|prompt| prompt["rounds"].as_array().unwrap());
        let drafted = rounds.filter(|round| count(&round["drafted"]) > 0);
        let kept: Vec<f64> = drafted
            .map(|round| count(&round["accepted"]) as f64)
            .collect();
        assert_eq!(count(&bound["contexts"]), kept.len());
        let average = kept.iter().sum::<f64>() / kept.len() as f64;
        let squares: f64 = kept.iter().map(|kept| (kept - average).powi(2)).sum();
        let error = squares.sqrt() / kept.len() as f64;
        let own = decoded["verifier"].as_str().unwrap();
        let own = verifiers.iter().find(|one| one["verifier"] == own).unwrap();
        let expected = mean(&own["expected_accepted_length"]);
        assert!(
            (average - expected).abs() < 5.0 * error,
            "{out}: {average} {expected}"
        );
    }
    let alone = Bench::new(1);
    let more = ["--tree", "2x2", "--bound", "--format", "json"];
    let run = specgap(Path::new(ROOT), arguments(&alone, "one", &more)).ok();
    let object: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(object["bound"]["upper_bound"], Value::Null);
}
