//! Are rollouts what the draft writes on its own, from a fair sample of positions?

use crate::{
    Bench, DRAFT, MANY, Memory, TARGET, assert_close, codec, full_pass, onnx, opened, sorted,
    start, tokens, wait_for_shard,
};
use serde_json::Value;
use specgap::capture::{
    Capture, DrawnRollout, EncodedPrompt, Model, RolloutPlan, Sampling, Settings,
};
use specgap::log::{Log, Row};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

const ROLLED: [&str; 5] = ["--rollouts", "3", "--every", "3", "--rollout-target"];

/// What a log says of one rollout, by prompt and position.
#[derive(Clone, Debug, PartialEq)]
struct Found {
    number: usize,
    tokens: Vec<u32>,
    argmax: Vec<u32>,
    /// q, top-1, entropy, margin, p, overlap.
    numbers: [Vec<f64>; 6],
}

fn found(path: &Path) -> BTreeMap<(i64, i64), Found> {
    let log = Log::open(path).unwrap();
    let mut row = Row::default();
    let rollouts = log.rollouts().unwrap().unwrap();
    let mut all = BTreeMap::new();
    for (index, rollout) in rollouts.iter().enumerate() {
        log.read(rollout.position, &mut row).unwrap();
        rollouts.check_row(index, &row, &log).unwrap();
        let numbers = [
            rollout.q,
            rollout.top1,
            rollout.entropy,
            rollout.margin,
            rollout.target_p,
            rollout.overlap,
        ];
        let found = Found {
            number: rollout.position,
            tokens: rollout.tokens.to_vec(),
            argmax: rollout.argmax.to_vec(),
            numbers: numbers.map(<[f64]>::to_vec),
        };
        let place = (row.prompt_id.unwrap(), row.position.unwrap());
        assert!(all.insert(place, found).is_none(), "two at {place:?}");
    }
    all
}

fn softmax(row: &[f64]) -> Vec<f64> {
    let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = row.iter().map(|x| (x - top).exp()).collect();
    let total: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / total).collect()
}

#[test]
fn rollouts_are_what_full_forward_passes_of_both_models_say() {
    let bench = Bench::new(3);
    let log = sorted(bench.capture(
        "log",
        &[&ROLLED[..], &["--dtype", "f32", "--no-stop"]].concat(),
    ));
    let found = found(&bench.path("log"));
    let [mut target, mut draft] = opened([TARGET, DRAFT]);
    let law = |model: &mut Model, prefix: &[i64]| {
        let row = full_pass(model, prefix);
        softmax(&row.iter().map(|&x| f64::from(x)).collect::<Vec<_>>())
    };
    let plan = RolloutPlan {
        tokens: 3,
        every: 3,
        paths: 1,
        target: true,
    };
    let mut expected = 0;
    for prompt in &bench.encoded() {
        for start in plan.starts(0, &prompt.id, 12) {
            expected += 1;
            let found = &found[&(prompt.index as i64, start as i64)];
            let text = log.iter().filter(|row| row.prompt == prompt.index as i64);
            let mut prefix: Vec<i64> = prompt.tokens.iter().map(|&token| token.into()).collect();
            prefix.extend(text.take(start).map(|row| row.token));
            for (step, &token) in found.tokens.iter().enumerate() {
                let (p, q) = (law(&mut target, &prefix), law(&mut draft, &prefix));
                let mut order: Vec<usize> = (0..q.len()).collect();
                order.sort_by(|&a, &b| q[b].total_cmp(&q[a]));
                let heat: f64 = q.iter().map(|q| -q * q.ln()).sum();
                let overlap: f64 = p.iter().zip(&q).map(|(p, q)| p.min(*q)).sum();
                let token = token as usize;
                assert_eq!(found.argmax[step] as usize, order[0]);
                assert_close(
                    &found.numbers.each_ref().map(|list| list[step]),
                    &[
                        q[token],
                        q[order[0]],
                        heat,
                        q[order[0]] - q[order[1]],
                        p[token],
                        overlap,
                    ],
                    1e-5,
                );
                prefix.push(token as i64);
            }
        }
    }
    assert_eq!(found.len(), expected);
    assert_eq!(expected, 12, "every third position of 12, of three prompts");

    // Without the target, the draft's part is the same.
    let more = [
        "--rollouts",
        "3",
        "--every",
        "3",
        "--dtype",
        "f32",
        "--no-stop",
    ];
    assert_eq!(sorted(bench.capture("alone", &more)), log);
    for (place, alone) in self::found(&bench.path("alone")) {
        assert_eq!(alone.tokens, found[&place].tokens);
        assert_eq!(alone.numbers[..4], found[&place].numbers[..4]);
        assert!(alone.numbers[4].is_empty() && alone.numbers[5].is_empty());
    }
}

#[test]
fn the_batch_changes_no_rollout_and_rollouts_change_no_row() {
    let bench = Bench::new(5);
    let run = |name: &str, batch: &str| {
        let more = ["--batch", batch, "--dtype", "f32"];
        let rows = sorted(bench.capture(name, &[&ROLLED[..], &more].concat()));
        (rows, found(&bench.path(name)))
    };
    let (rows, alone) = run("one", "1");
    let plain = sorted(bench.capture("plain", &["--batch", "1", "--dtype", "f32"]));
    assert_eq!(rows, plain);
    for batch in ["2", "5"] {
        let (rows, together) = run(batch, batch);
        assert_eq!(tokens(&rows), tokens(&plain));
        assert!(together.keys().eq(alone.keys()));
        for (a, b) in together.values().zip(alone.values()) {
            assert_eq!((&a.tokens, &a.argmax), (&b.tokens, &b.argmax));
            for (a, b) in a.numbers.iter().zip(&b.numbers) {
                assert_close(a, b, 1e-5);
            }
        }
    }
    // Nor does it matter which tokens of the rows are kept.
    for (name, rest) in [("top", "0.5,1"), ("unknown", "0.5")] {
        let more = ["--top", "9", "--rest-temperatures", rest, "--batch", "1"];
        bench.capture(name, &[&ROLLED[..], &more].concat());
        let cut = found(&bench.path(name));
        assert!(cut.values().eq(alone.values()));
    }
    // Other random numbers than those of another seed, or of the prompt beside it.
    let (_, other) = {
        let more = ["--batch", "1", "--seed", "1", "--dtype", "f32"];
        let rows = bench.capture("seed", &[&ROLLED[..], &more].concat());
        (rows, found(&bench.path("seed")))
    };
    assert_ne!(
        alone
            .values()
            .map(|found| &found.tokens)
            .collect::<Vec<_>>(),
        other
            .values()
            .map(|found| &found.tokens)
            .collect::<Vec<_>>()
    );
}

#[test]
fn rollouts_in_pieces_are_the_same() {
    let bench = Bench::new(4);
    let run = |logits: usize| {
        let sampling = Sampling::new(0.9, Some(5), None).unwrap();
        let plan = RolloutPlan {
            tokens: 4,
            every: 2,
            paths: 1,
            target: true,
        };
        let (tally, mut memory) = bench.in_pieces(logits, sampling, Some(plan), &mut |_| ());
        assert_eq!(tally.rollouts, memory.rollouts.len());
        memory
            .rollouts
            .sort_by_key(|rollout| (rollout.prompt, rollout.position));
        memory.rollouts
    };
    let whole = run(usize::MAX);
    assert!(whole.len() >= 8);
    for rollout in &whole {
        // p is cut by top-k as the text is, q is not.
        assert!(rollout.q.iter().all(|&q| q > 0.0));
        assert_eq!(rollout.target_p.len(), 4);
    }
    assert!(whole.iter().any(|rollout| rollout.target_p.contains(&0.0)));
    for (a, b) in run(0).iter().zip(&whole) {
        assert_eq!(
            (a.prompt, a.position, &a.tokens),
            (b.prompt, b.position, &b.tokens)
        );
        assert_close(&a.q, &b.q, 1e-5);
        assert_close(&a.overlap, &b.overlap, 1e-5);
    }
}

#[test]
fn a_killed_capture_continues_to_the_same_bytes() {
    let bench = Bench::new(48);
    let many = [&MANY[..], &ROLLED].concat();
    bench.capture("whole", &many);
    let killed = bench.path("killed");
    let mut child = start(&bench, "killed", &many);
    wait_for_shard(&killed, 0, &mut child);
    child.kill().unwrap();
    child.wait().unwrap();
    // What there is by now is a log whose rollouts are whole.
    let before = found(&killed);
    let all = found(&bench.path("whole"));
    assert!(
        !before.is_empty() && before.len() < all.len(),
        "killed too late"
    );
    assert!(before.iter().all(|(place, found)| all[place] == *found));
    bench.run("killed", &many).ok();
    let mut shards = 0;
    for entry in std::fs::read_dir(&killed).unwrap() {
        let name = entry.unwrap().file_name();
        if name.to_str().unwrap().starts_with("shard-") {
            let of = |log: &str| std::fs::read(bench.path(log).join(&name)).unwrap();
            assert_eq!(of("killed"), of("whole"), "{name:?}");
            shards += 1;
        }
    }
    // Of 24 batches the first sixteen have become one shard.
    assert_eq!(shards, 9);

    // Only with the same rollouts.
    for (more, says) in [
        (
            &["--rollouts", "4", "--every", "3"][..],
            "--rollouts was 3 and is now 4",
        ),
        (&["--rollouts", "3"], "--every was 3 and is now 4"),
        (
            &["--rollouts", "3", "--every", "3"],
            "--rollout-target was true and is now false",
        ),
        (&[], "--rollouts was 3 and is now null"),
    ] {
        let run = bench.run("killed", &[&MANY[..], more].concat());
        run.refused(&[says]);
    }
}

#[test]
fn at_temperature_0_a_rollout_is_the_drafts_greedy_text() {
    let bench = Bench::new(3);
    let greedy = ["--temperature", "0", "--max-tokens", "6", "--no-stop"];
    let more = ["--rollouts", "6", "--every", "3"];
    bench.capture("log", &[&greedy[..], &more].concat());
    // The draft as its own target writes what it would draft.
    let own = ["--target", DRAFT];
    let text = sorted(bench.capture("own", &[&greedy[..], &own].concat()));
    let mut compared = 0;
    for (place, found) in found(&bench.path("log")) {
        assert_eq!(found.tokens, found.argmax);
        assert_eq!(found.numbers[..2], [vec![1.0; 6], vec![1.0; 6]]);
        assert_eq!(found.numbers[2..4], [vec![0.0; 6], vec![1.0; 6]]);
        if place.1 == 0 {
            let text = text.iter().filter(|row| row.prompt == place.0);
            let text: Vec<u32> = text.map(|row| row.token as u32).collect();
            assert_eq!(found.tokens, text);
            compared += 1;
        }
    }
    assert!(
        compared > 0,
        "no prompt has a rollout at its first position"
    );
}

#[test]
fn paths_of_a_position_begin_with_its_rollout_and_are_independent_draws() {
    let bench = Bench::new(6);
    let same = ["--dtype", "f32", "--batch", "1"];
    let more = ["--path-length", "3", "--every", "3", "--paths", "4"];
    let rows = sorted(bench.capture("paths", &[&same[..], &more].concat()));
    let alone = sorted(bench.capture("alone", &[&same[..], &ROLLED].concat()));
    assert_eq!(rows, alone);
    let alone = Log::open(&bench.path("alone")).unwrap();
    let alone = alone.rollouts().unwrap().unwrap();
    let log = Log::open(&bench.path("paths")).unwrap();
    let rollouts = log.rollouts().unwrap().unwrap();
    let record = rollouts.record().unwrap();
    assert_eq!((record.version, record.paths, record.target), (2, 4, true));
    assert_eq!(rollouts.len(), 4 * alone.len());
    let (mut row, mut equal, mut pairs) = (Row::default(), 0, 0);
    for (position, paths) in rollouts.anchors() {
        assert_eq!(paths.len(), 4);
        let first = rollouts.get(paths[0]).unwrap();
        assert_eq!(Some(first), alone.get(alone.at(position).unwrap()));
        log.read(position, &mut row).unwrap();
        for &path in paths {
            rollouts.check_row(path, &row, &log).unwrap();
        }
        for (index, &path) in paths.iter().enumerate() {
            for &other in &paths[..index] {
                let tokens = |path| rollouts.get(path).unwrap().tokens;
                pairs += 1;
                equal += usize::from(tokens(path) == tokens(other));
            }
        }
    }
    assert!(10 * equal < pairs, "{equal} of {pairs} pairs are one path");
    // Continued only with as many, and the alone log is of one.
    let two = ["--rollouts", "3", "--every", "3", "--paths", "2"];
    bench
        .run("paths", &[&same[..], &two].concat())
        .refused(&["--paths was 4 and is now 2"]);
    bench
        .run("alone", &[&same[..], &two].concat())
        .refused(&["--paths was 1 and is now 2"]);
}

#[test]
fn options_of_rollouts_are_refused_alone_and_out_of_range() {
    let bench = Bench::new(1);
    for more in [
        &["--every", "2"][..],
        &["--rollout-target"],
        &["--paths", "2"],
        &["--paths", "0", "--rollouts", "3"],
        &["--rollouts", "0"],
        &["--every", "0", "--rollouts", "3"],
    ] {
        bench.run("refused", more).refused(&["error: ", more[0]]);
    }
}

#[test]
fn gap_reads_past_rollouts() {
    let bench = Bench::new(3);
    bench.capture("log", &ROLLED);
    bench.capture("plain", &[]);
    let report = |log: &str| -> Value {
        let (from, to) = (bench.path(log), bench.path(&format!("{log}-report")));
        let arguments = [
            "gap",
            from.to_str().unwrap(),
            "--drafts",
            "2",
            "--out",
            to.to_str().unwrap(),
        ];
        crate::specgap(Path::new(crate::ROOT), arguments).ok();
        serde_json::from_slice(&std::fs::read(to.join("report.json")).unwrap()).unwrap()
    };
    let (with, without) = (report("log"), report("plain"));
    assert!(with["logs"][0]["ignored_tensors"].is_null());
    for part in [
        "positions",
        "overlap",
        "cells",
        "comparisons",
        "blocks",
        "strip",
    ] {
        assert!(!with[part].is_null());
        assert_eq!(with[part], without[part], "{part}");
    }
}

/// A model by hand over V = 3, whose next token depends on the last one alone: logits are
/// (last + 1) times the row.
pub fn chain(row: [f32; 3]) -> (onnx::Graph, [[f64; 3]; 3]) {
    let law = |last: usize| {
        let logits = row.map(|x| f64::from(x) * (last + 1) as f64);
        let law = softmax(&logits);
        [law[0], law[1], law[2]]
    };
    (onnx::model(&row, onnx::FLOAT), [law(0), law(1), law(2)])
}

/// A target and a draft of that kind, and their laws p and q.
pub fn chains(bench: &Bench) -> ([Model; 2], [[[f64; 3]; 3]; 2]) {
    let (target, p) = chain([0.4, 0.0, 0.2]);
    let (draft, q) = chain([0.0, 0.5, 0.1]);
    let target = bench.write("t.onnx", &target.model());
    let draft = bench.write("d.onnx", &draft.model());
    (opened([target, draft]), [p, q])
}

/// A prompt for these, of a few tokens.
pub fn prompt(index: usize) -> EncodedPrompt {
    EncodedPrompt {
        index,
        id: index.to_string(),
        tokens: vec![1; 1 + index % 3],
    }
}

#[test]
fn rollouts_sample_positions_and_tokens_without_bias() {
    let bench = Bench::new(1);
    let ([target, draft], [p, q]) = chains(&bench);
    const PROMPTS: usize = 3000;
    const LENGTH: usize = 5;
    const EVERY: usize = 3;
    let settings = Settings {
        sampling: Sampling::new(1.0, None, None).unwrap(),
        seed: 11,
        max_tokens: LENGTH,
        batch: 500,
        vocabulary: None,
        rollouts: Some(RolloutPlan {
            tokens: 2,
            every: EVERY,
            paths: 1,
            target: true,
        }),
    };
    let mut capture = Capture::new(target, draft, codec(), settings).unwrap();
    let prompts: Vec<_> = (0..PROMPTS).map(prompt).collect();
    let mut memory = Memory::default();
    let quiet = AtomicBool::new(false);
    capture
        .run(&prompts, &|_| false, &mut memory, &quiet, &mut |_| ())
        .unwrap();

    // The value of a rollout: 1 if its two tokens are the same. Its mean over rollouts,
    // given the text, by enumeration; summed over all positions of all texts.
    let last_of = |prompt: usize, position: usize| -> usize {
        let before = position.checked_sub(1);
        before.map_or(1, |before| {
            let token = memory.finished[prompt].tokens[before];
            token as usize
        })
    };
    let same = |last: usize| -> f64 { (0..3).map(|x| q[last][x] * q[x][x]).sum() };
    let (mut exact, mut estimate, mut variance) = (0.0, 0.0, 0.0);
    for prompt in 0..PROMPTS {
        let values: Vec<f64> = (0..LENGTH).map(|at| same(last_of(prompt, at))).collect();
        exact += values.iter().sum::<f64>();
        // Of the draw of the first start, and of the rollouts given that.
        let by_start: Vec<f64> = (0..EVERY)
            .map(|first| values.iter().skip(first).step_by(EVERY).sum::<f64>() * EVERY as f64)
            .collect();
        let mean = by_start.iter().sum::<f64>() / EVERY as f64;
        let of_start: f64 = by_start.iter().map(|x| (x - mean).powi(2)).sum();
        let of_rollouts: f64 = values.iter().map(|x| x * (1.0 - x)).sum();
        variance += of_start / EVERY as f64 + of_rollouts * EVERY as f64;
    }
    let mut pairs = BTreeMap::<(usize, usize, usize), usize>::new();
    let mut starts = [0usize; LENGTH];
    for rollout in &memory.rollouts {
        let DrawnRollout {
            prompt, position, ..
        } = *rollout;
        let [x, y] = [rollout.tokens[0] as usize, rollout.tokens[1] as usize];
        let last = last_of(prompt, position);
        estimate += f64::from(u8::from(x == y)) * EVERY as f64;
        starts[position] += 1;
        *pairs.entry((last, x, y)).or_default() += 1;
        // Exact but for the graph's f32.
        assert_close(&rollout.q, &[q[last][x], q[x][y]], 1e-6);
        assert_close(&rollout.target_p, &[p[last][x], p[x][y]], 1e-6);
        let overlap = |last: usize| (0..3).map(|x| p[last][x].min(q[last][x])).sum::<f64>();
        assert_close(&rollout.overlap, &[overlap(last), overlap(x)], 1e-6);
    }
    // Fixed seed; each line alone would fail by chance once in about 10^6 seeds.
    let z = (estimate - exact) / variance.sqrt();
    assert!(z.abs() < 5.0, "z = {z}: {estimate} and {exact}");
    let third = PROMPTS as f64 / EVERY as f64;
    let deviation = (third * (1.0 - 1.0 / EVERY as f64)).sqrt();
    for count in starts {
        assert!((count as f64 - third).abs() < 5.0 * deviation, "{starts:?}");
    }
    // Given the last token, pairs follow q(x | last) q(y | x): chi-square, 8 degrees of
    // freedom each, whose upper quantile at 10^-6 is 42.7.
    for last in 0..3 {
        let count = |x, y| pairs.get(&(last, x, y)).copied().unwrap_or(0) as f64;
        let all: f64 = (0..9).map(|pair| count(pair / 3, pair % 3)).sum();
        let square: f64 = (0..9)
            .map(|pair| {
                let (x, y) = (pair / 3, pair % 3);
                let mean = all * q[last][x] * q[x][y];
                (count(x, y) - mean).powi(2) / mean
            })
            .sum();
        assert!(all > 500.0 && square < 42.7, "{last}: {square} of {all}");
    }
}
