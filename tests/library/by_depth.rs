//! Drafts with a row for each start and depth: what is replayed along their texts is what a decoder
//! does, found by going through every draft and every coin.

use crate::replay::near;
use crate::says::Says;
use specgap::gap::{self, Settings};
use specgap::log::{Dtype, HeldTensor, Log, Metadata, Row, Sampling};
use specgap::replay::{LengthReport, LengthSettings, Policy, ReplayError, measure_lengths};
use specgap::rounds::{ByStart, ChainRule, FixedLength, accepted_lengths, fewest_calls, replay};
use std::sync::Arc;

/// Tokens of a text, of the vocabulary, and depths.
const LENGTH: usize = 5;
const TOKENS: usize = 3;
const DEPTHS: usize = 3;

/// A law that depends on some numbers and on nothing else.
fn law(seed: &[usize]) -> [f64; TOKENS] {
    let mut state = 1_469_598_103_934_665_603u64;
    let mut weight = |salt: usize| {
        for &number in seed.iter().chain([&salt]) {
            state = (state ^ (number as u64 + 1)).wrapping_mul(1_099_511_628_211);
            state ^= state >> 29;
        }
        0.05 + (state % 1000) as f64 / 1000.0
    };
    let weights: [f64; TOKENS] = std::array::from_fn(&mut weight);
    weights.map(|weight| weight / weights.iter().sum::<f64>())
}

/// p of the next token.
fn target(prefix: &[usize]) -> [f64; TOKENS] {
    law(&[&[7], prefix].concat())
}

/// q of the next token in a round that began behind `start` of the prefix's tokens.
fn draft(start: usize, prefix: &[usize]) -> [f64; TOKENS] {
    law(&[&[11, start], prefix].concat())
}

fn texts() -> impl Iterator<Item = Vec<usize>> {
    let digits = |text: usize| move |place: u32| text / TOKENS.pow(place) % TOKENS;
    (0..TOKENS.pow(LENGTH as u32)).map(move |text| (0..LENGTH as u32).map(digits(text)).collect())
}

fn probability(text: &[usize]) -> f64 {
    (0..text.len())
        .map(|at| target(&text[..at])[text[at]])
        .product()
}

/// q/p along a text, by start and depth.
fn ratios(text: &[usize]) -> ByStart<f64> {
    let row = |start: usize| {
        let end = text.len().min(start + DEPTHS);
        let ratio = |at: usize| {
            let (prefix, token) = (&text[..at], text[at]);
            draft(start, prefix)[token] / target(prefix)[token]
        };
        (start..end).map(ratio).collect()
    };
    ByStart((0..text.len()).map(row).collect())
}

/// E[calls] of a decoder with token verification from a prefix on, by every draft and every coin;
/// the text's law is added up in `reached`.
fn decode(prefix: &[usize], most: usize, weight: f64, reached: &mut Vec<(Vec<usize>, f64)>) -> f64 {
    if prefix.len() == LENGTH {
        reached.push((prefix.to_vec(), weight));
        return 0.0;
    }
    let drafts = most.min(LENGTH - prefix.len() - 1);
    weight + go_on(prefix.len(), prefix, drafts, most, weight, reached)
}

/// The rest of a round that has drafted and kept all behind `start`.
fn go_on(
    start: usize,
    prefix: &[usize],
    left: usize,
    most: usize,
    weight: f64,
    reached: &mut Vec<(Vec<usize>, f64)>,
) -> f64 {
    let p = target(prefix);
    let mut calls = 0.0;
    let with = |token: usize| [prefix, &[token]].concat();
    if left == 0 {
        for (token, mass) in p.into_iter().enumerate() {
            calls += decode(&with(token), most, weight * mass, reached);
        }
        return calls;
    }
    let q = draft(start, prefix);
    let rejected: f64 = (0..TOKENS)
        .map(|token| (q[token] - p[token]).max(0.0))
        .sum();
    for token in 0..TOKENS {
        let kept = q[token].min(p[token]);
        calls += go_on(start, &with(token), left - 1, most, weight * kept, reached);
        // Of what is rejected the residual's token stands there, in a new round.
        let residual = (p[token] - q[token]).max(0.0);
        if rejected > 0.0 && residual > 0.0 {
            calls += decode(&with(token), most, weight * residual, reached);
        }
    }
    calls
}

#[test]
fn a_decoder_makes_the_calls_that_are_replayed() {
    for most in 1..=DEPTHS {
        let mut reached = Vec::new();
        let calls = decode(&[], most, 1.0, &mut reached);
        let mut sum = 0.0;
        for text in texts() {
            let of_text = reached.iter().filter(|(other, _)| *other == text);
            let mass: f64 = of_text.map(|(_, weight)| weight).sum();
            assert!((mass - probability(&text)).abs() < 1e-12, "the text's law");
            let found = replay(ChainRule::TOKEN, &ratios(&text), &FixedLength(most)).unwrap();
            sum += probability(&text) * found.calls;
        }
        near(sum, calls, &format!("K = {most}"));
    }
}

fn tensor(name: &str, dtype: Dtype, shape: Vec<usize>, entries: Vec<u8>) -> HeldTensor {
    HeldTensor {
        name: name.to_owned(),
        dtype,
        shape,
        entries: Arc::new(entries),
    }
}

fn floats(name: &str, shape: &[usize], entries: impl Iterator<Item = f64>) -> HeldTensor {
    let entries = entries.flat_map(f64::to_le_bytes).collect();
    tensor(name, Dtype::F64, shape.to_vec(), entries)
}

fn numbers(name: &str, entries: impl Iterator<Item = i64>) -> HeldTensor {
    let entries: Vec<u8> = entries.flat_map(i64::to_le_bytes).collect();
    tensor(name, Dtype::I64, vec![entries.len() / 8], entries)
}

/// Some texts as a log, with the draft's rows by start and depth; beyond a text's end there are
/// numbers that are no rows. `of` says which row stands there.
fn tensors(texts: &[Vec<usize>], of: &dyn Fn(usize, &[usize]) -> [f64; TOKENS]) -> Vec<HeldTensor> {
    let count = texts.len() * LENGTH;
    let places = || {
        texts
            .iter()
            .flat_map(|text| (0..LENGTH).map(move |at| (text, at)))
    };
    let rows = places().flat_map(|(text, at)| target(&text[..at]));
    let drafted = places().flat_map(|(text, start)| {
        (0..DEPTHS).flat_map(move |ahead| match text.get(..start + ahead) {
            Some(prefix) if prefix.len() < LENGTH => of(start, prefix),
            _ => [f64::NAN; TOKENS],
        })
    });
    let prompts = (0..texts.len()).flat_map(|text| [text as i64; LENGTH]);
    vec![
        floats("target_probs", &[count, TOKENS], rows),
        floats("draft_probs", &[count, DEPTHS, TOKENS], drafted),
        numbers("prompt_id", prompts),
        numbers("position", (0..texts.len()).flat_map(|_| 0..LENGTH as i64)),
        numbers("token", texts.iter().flatten().map(|&token| token as i64)),
    ]
}

fn metadata() -> Metadata {
    Metadata {
        temperature_applied: Some(1.0),
        sampling: Some(Sampling {
            temperature: 1.0,
            ..Sampling::default()
        }),
        ..Metadata::default()
    }
}

fn log(tensors: Vec<HeldTensor>) -> Log {
    Log::held("mine".as_ref(), metadata(), tensors, None).unwrap()
}

fn some_texts() -> Vec<Vec<usize>> {
    texts().step_by(17).collect()
}

fn measure(log: Log) -> Result<LengthReport, ReplayError> {
    let settings = LengthSettings {
        verifiers: ChainRule::all().collect(),
        policies: (1..=4).map(Policy::fixed).collect(),
        ..LengthSettings::default()
    };
    measure_lengths(&[log], &settings, "test", &|_| {})
}

#[test]
fn a_log_by_depth_is_replayed_from_each_start() {
    let texts = some_texts();
    let report = measure(log(tensors(&texts, &draft))).unwrap();
    for verifier in ChainRule::all() {
        for most in 1..=DEPTHS {
            let rows = report.results.iter();
            let row = rows.filter(|row| {
                row.verifier == verifier.as_str() && row.drafts.to_string() == "sampled"
            });
            let row = row.into_iter().nth(most - 1).unwrap();
            let (mut calls, mut accepted, mut starts) = (0.0, 0.0, 0);
            for text in &texts {
                let ratios = ratios(text);
                if let Some(found) = replay(verifier, &ratios, &FixedLength(most)) {
                    calls += found.calls;
                }
                let (sum, count) = accepted_lengths(verifier, &ratios, most)[most - 1];
                accepted += sum;
                starts += count;
            }
            let what = format!("{verifier}, K = {most}");
            let found = row.expected_accepted_length.unwrap().mean;
            near(found, accepted / starts as f64, &what);
            if verifier.has_rounds() {
                let found = row.verification_rate.unwrap().mean;
                near(found, calls / (texts.len() * LENGTH) as f64, &what);
            }
        }
    }
    // Longer than the log's depths is not told.
    assert!(
        report
            .results
            .iter()
            .all(|row| row.parameter.to_string() != "4")
    );
    assert!(
        report
            .left_out
            .iter()
            .any(|line| line.starts_with("lengths 4: "))
    );
    // The bound over several rounds holds with one draft a round, on rows of first places.
    let [fewest] = &report.bounds.fewest_calls[..] else {
        panic!("{:?}", report.bounds.fewest_calls);
    };
    let first =
        |text: &Vec<usize>| -> Vec<f64> { ratios(text).0.iter().map(|row| row[0]).collect() };
    let least: f64 = texts.iter().map(|text| fewest_calls(&first(text), 1)).sum();
    let least = least / (texts.len() * LENGTH) as f64;
    assert_eq!(fewest.most, Some(1));
    assert!((fewest.verification_rate.mean - least).abs() < 1e-12);
    // What a call can put out bounds the oracle, too.
    assert!(report.bounds.oracle.verification_rate.mean >= 1.0 / (DEPTHS + 1) as f64);
}

/// A table of tokens with columns by depth says what the rows do, as CSV and as JSON.
#[test]
fn tables_of_tokens_by_depth_are_logs_by_depth() {
    let texts = some_texts();
    let (mut csv, mut jsonl) = (vec!["prompt,position,logp".to_owned()], Vec::new());
    for depth in ["", "_2", "_3"] {
        csv[0] += &format!(",logq{depth},overlap{depth}");
    }
    for (number, text) in texts.iter().enumerate() {
        for start in 0..LENGTH {
            let logp = target(&text[..start])[text[start]].ln();
            let said = (start..LENGTH.min(start + DEPTHS)).map(|at| {
                let (p, q) = (target(&text[..at]), draft(start, &text[..at]));
                let overlap: f64 = p.iter().zip(q).map(|(p, q)| p.min(q)).sum();
                [q[text[at]].ln(), overlap]
            });
            let said: Vec<[f64; 2]> = said.collect();
            let missing = vec![",".to_owned(); DEPTHS - said.len()];
            let cells = said
                .iter()
                .map(|[logq, overlap]| format!("{logq},{overlap}"));
            let cells: Vec<String> = cells.chain(missing).collect();
            csv.push(format!("{number},{start},{logp},{}", cells.join(",")));
            let [logq, overlap] =
                [0, 1].map(|at| said.iter().map(|one| one[at]).collect::<Vec<_>>());
            jsonl.push(
                serde_json::json!({"prompt": number, "position": start, "logp": logp,
                    "logq": logq, "overlap": overlap})
                .to_string(),
            );
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let known = measure(log(tensors(&texts, &draft))).unwrap();
    let sampled = |report: &LengthReport| {
        let rows = report
            .results
            .iter()
            .filter(|row| row.drafts.to_string() == "sampled");
        let rows = rows.map(|row| (row.expected_accepted_length, row.tokens_per_call));
        rows.collect::<Vec<_>>()
    };
    for (name, lines) in [("text.csv", csv), ("text.jsonl", jsonl)] {
        let path = folder.path().join(name);
        std::fs::write(&path, lines.join("\n")).unwrap();
        let log = specgap::import::open_tokens(&path, None).unwrap();
        assert_eq!(
            (log.depths(), log.positions()),
            (DEPTHS, texts.len() * LENGTH)
        );
        let found = measure(log).unwrap();
        let [one, other] = [&known, &found].map(sampled);
        assert_eq!(one.len(), other.len());
        for ((one, calls), (other, also)) in one.into_iter().zip(other) {
            let near = |one: f64, other: f64| assert!((one - other).abs() < 1e-9, "{one}, {other}");
            near(one.unwrap().mean, other.unwrap().mean);
            if let (Some(one), Some(other)) = (calls, also) {
                near(one.mean, other.mean);
            }
        }
        for (one, other) in known.by_depth.iter().zip(&found.by_depth) {
            assert!((one.joint.mean - other.joint.mean).abs() < 1e-9);
            assert!((one.overlap.unwrap().mean - other.overlap.unwrap().mean).abs() < 1e-9);
        }
        // What is missing inside a text is told with its line.
        let cut = std::fs::read_to_string(&path).unwrap();
        let broken: Vec<String> = cut
            .lines()
            .enumerate()
            .map(|(at, line)| match (at, name) {
                (1, "text.csv") => format!("{},,", line.rsplitn(3, ',').last().unwrap()),
                (1, _) => line.replace("\"logq\":[", "\"logq\":[0.5,"),
                _ => line.to_owned(),
            })
            .collect();
        std::fs::write(&path, broken.join("\n")).unwrap();
        let told = specgap::import::open_tokens(&path, None)
            .unwrap_err()
            .to_string();
        let words = if name == "text.csv" {
            "(line 2): logq_3: is missing"
        } else {
            "(line 2): logq: 0.5"
        };
        assert!(told.contains(words), "{told}");
    }
    let path = folder.path().join("gaps.csv");
    std::fs::write(&path, "prompt,position,logp,logq,logq_3\na,0,-1,-1,-1\n").unwrap();
    let told = specgap::import::open_tokens(&path, None)
        .unwrap_err()
        .to_string();
    told.says("has a column logq_3 and none logq_2");
}

#[test]
fn depths_are_told_apart() {
    let texts = some_texts();
    let report = measure(log(tensors(&texts, &draft))).unwrap();
    assert_eq!(report.by_depth.len(), DEPTHS);
    for row in &report.by_depth {
        let (mut alone, mut joint, mut before, mut overlap) = (0.0, 0.0, 0.0, 0.0);
        let mut starts = 0;
        for text in &texts {
            for start in 0..=LENGTH - row.depth {
                let coin = |at: usize| {
                    let (prefix, token) = (&text[..at], text[at]);
                    (draft(start, prefix)[token] / target(prefix)[token]).min(1.0)
                };
                let last = start + row.depth - 1;
                starts += 1;
                alone += coin(last);
                before += (start..last).map(coin).product::<f64>();
                joint += (start..=last).map(coin).product::<f64>();
                let (p, q) = (target(&text[..last]), draft(start, &text[..last]));
                overlap += p.iter().zip(q).map(|(p, q)| p.min(q)).sum::<f64>();
            }
        }
        let mean = |sum: f64| sum / f64::from(starts);
        let near = |found: f64, expected: f64| near(found, expected, &format!("{row:?}"));
        assert_eq!(row.starts, starts as usize);
        near(row.marginal.mean, mean(alone));
        near(row.joint.mean, mean(joint));
        near(row.overlap.unwrap().mean, mean(overlap));
        match row.conditional {
            Some(conditional) => near(conditional.mean, joint / before),
            None => assert_eq!(row.depth, 1),
        }
        assert!(row.covered.is_none());
    }
}

/// Rows that do not look at where a round began give what a log without depths gives.
#[test]
fn rows_that_are_the_same_from_every_start_change_nothing() {
    let texts = some_texts();
    let of = |_: usize, prefix: &[usize]| draft(0, prefix);
    let by_depth = tensors(&texts, &of);
    let flat = without_depths(&texts);
    let [by_depth, flat] = [by_depth, flat].map(|tensors| measure(log(tensors)).unwrap());
    let known = |report: &LengthReport| {
        let rows = report
            .results
            .iter()
            .filter(|row| row.parameter.to_string() != "4");
        let known = rows.map(|row| {
            let mut row = row.clone();
            // Which of them stand on the front depends on the longest.
            row.on_front = None;
            row
        });
        known.collect::<Vec<_>>()
    };
    assert_eq!(known(&by_depth), known(&flat));
    assert_eq!(by_depth.acceptance, flat.acceptance);
    assert!(!flat.bounds.fewest_calls.is_empty() && flat.by_depth.is_empty());
}

/// A draft that knows tokens 2 and 0 alone, by `d2t`, and p as it is.
#[test]
fn a_draft_vocabulary_leaves_p_as_it_is() {
    let texts = some_texts();
    let mut all = tensors(&texts, &draft);
    let narrow = |row: &[f64; TOKENS]| [row[2] / (row[0] + row[2]), row[0] / (row[0] + row[2])];
    let entries = |shape: &mut Vec<usize>| {
        let places = texts
            .iter()
            .flat_map(|text| (0..LENGTH).map(move |at| (text, at)));
        shape.extend([texts.len() * LENGTH, DEPTHS, 2]);
        places.flat_map(|(text, start)| {
            (0..DEPTHS).flat_map(move |ahead| match text.get(..start + ahead) {
                Some(prefix) if prefix.len() < LENGTH => narrow(&draft(start, prefix)),
                _ => [f64::NAN; 2],
            })
        })
    };
    let mut shape = Vec::new();
    let rows = entries(&mut shape).collect::<Vec<_>>();
    all[1] = floats("draft_probs", &shape, rows.into_iter());
    // Offsets: token 0 of the draft is token 2, token 1 is token 0.
    all.push(numbers("d2t", [2, -1].into_iter()));
    let log = log(all);
    let mut row = Row::default();
    log.at_depth(2).unwrap().read(1, &mut row).unwrap();
    let [two, zero] = narrow(&draft(0, &texts[0][..1]));
    assert_eq!(row.draft, [zero, 0.0, two]);
    let report = measure(log).unwrap();
    for row in &report.by_depth {
        let (mut overlap, mut covered, mut starts) = (0.0, 0.0, 0.0);
        for text in &texts {
            for start in 0..=LENGTH - row.depth {
                let prefix = &text[..start + row.depth - 1];
                let (p, [two, zero]) = (target(prefix), narrow(&draft(start, prefix)));
                overlap += p[0].min(zero) + p[2].min(two);
                covered += p[0] + p[2];
                starts += 1.0;
            }
        }
        assert!((row.overlap.unwrap().mean - overlap / starts).abs() < 1e-12);
        assert!((row.covered.unwrap().mean - covered / starts).abs() < 1e-12);
    }
}

#[test]
fn what_does_not_fit_is_refused_with_its_place() {
    let texts = some_texts();
    let opened = |change: &dyn Fn(&mut Vec<HeldTensor>)| {
        let mut all = tensors(&texts, &draft);
        change(&mut all);
        Log::held("mine".as_ref(), metadata(), all, None)
    };
    let told = |change: &dyn Fn(&mut Vec<HeldTensor>)| match opened(change) {
        Err(error) => error.to_string(),
        Ok(log) => measure(log).unwrap_err().to_string(),
    };
    let without = |name: &'static str| {
        move |all: &mut Vec<HeldTensor>| all.retain(|tensor| tensor.name != name)
    };
    assert!(told(&without("position")).contains("position: is missing"));
    // Where a text lacks a position nobody knows which row is whose.
    let gaps = told(&|all| {
        all.retain(|tensor| tensor.name != "position");
        let places = (0..texts.len()).flat_map(|_| 1..=LENGTH as i64);
        all.push(numbers("position", places));
    });
    assert!(gaps.contains("where 0 is expected"), "{gaps}");
    let bad = told(&|all| {
        let places = texts.len() * LENGTH * DEPTHS;
        all[1] = floats(
            "draft_probs",
            &[texts.len() * LENGTH, DEPTHS, TOKENS],
            (0..places).flat_map(|at| {
                if at == 4 {
                    [0.5, 0.5, 0.5]
                } else {
                    [0.25, 0.25, 0.5]
                }
            }),
        );
    });
    bad.says("draft_probs at depth 2: row 1: sums to 1.5");
    let twice = told(&|all| all.push(numbers("d2t", [0, 0, -1].into_iter())));
    assert!(
        twice.contains("d2t: row 2, column 0: leads to token 1 of the target, as entry 1 does")
    );
    let outside = told(&|all| all.push(numbers("d2t", [0, 0, 1].into_iter())));
    assert!(outside.contains("leads to token 3"), "{outside}");
    let short = told(&|all| all.push(numbers("d2t", [0, 0].into_iter())));
    assert!(short.contains("has 2 entries"), "{short}");
}

/// Two siblings at each node, drawn one after the other and verified by recursive rejection: the
/// probabilities that a round of a tree gets to its nodes, by every pair of siblings.
#[test]
fn trees_take_the_rows_of_their_own_start() {
    use specgap::replay::{TreeSettings, measure_trees};
    let texts = some_texts();
    let settings = TreeSettings {
        schemes: vec!["iid".parse().unwrap()],
        verifiers: vec!["rrs".parse().unwrap()],
        ..crate::trees::settings(&["2x2"])
    };
    let log = log(tensors(&texts, &draft));
    let report = measure_trees(&[log], &settings, "test", &|_| {}).unwrap();
    let row = report.results.first().unwrap();
    // What the children of a node get of the text's token together, by i.i.d. pairs in sequence.
    let share = |start: usize, text: &[usize], at: usize| {
        let (p, q, y) = (target(&text[..at]), draft(start, &text[..at]), text[at]);
        let first = q[y].min(p[y]);
        let rejected: f64 = (0..TOKENS).map(|i| (q[i] - p[i]).max(0.0)).sum();
        let residual = (p[y] - q[y]).max(0.0) / rejected;
        (first + rejected * residual.min(q[y])) / p[y]
    };
    let (mut sum, mut starts, mut calls) = (0.0, 0.0, 0.0);
    for text in &texts {
        // In a full tree it does not matter which child a round gets to.
        let mut begins = [0.0; LENGTH + 1];
        begins[0] = 1.0;
        for start in 0..LENGTH {
            let room = 2.min(LENGTH - start - 1);
            let one = share(start, text, start);
            if start + 2 <= LENGTH {
                sum += one + one * share(start, text, start + 1);
                starts += 1.0;
            }
            calls += begins[start];
            let reached = [
                1.0,
                one,
                if room > 1 {
                    one * share(start, text, start + 1)
                } else {
                    0.0
                },
            ];
            for accepted in 0..=room {
                let next = if accepted < room {
                    reached[accepted + 1]
                } else {
                    0.0
                };
                begins[start + accepted + 1] += begins[start] * (reached[accepted] - next);
            }
        }
    }
    let found = row.expected_accepted_length.unwrap().mean;
    near(found, sum / starts, "accepted");
    let expected = (texts.len() * LENGTH) as f64 / calls;
    near(row.tokens_per_call.mean, expected, "tokens");
}

/// A law whose last token is its lightest, so that the others are a list of the likeliest.
fn tilted([one, other, _]: [f64; TOKENS]) -> [f64; TOKENS] {
    let light = 0.5 * one.min(other);
    [one, other, light].map(|mass| mass / (one + other + light))
}

/// A full log whose rows are [`tilted`].
fn tilt(mut tensors: Vec<HeldTensor>) -> Vec<HeldTensor> {
    for tensor in &mut tensors[..2] {
        let rows = entries(tensor);
        let rows = rows
            .chunks(TOKENS)
            .map(|row| <[f64; TOKENS]>::try_from(row).unwrap());
        *tensor = floats(&tensor.name, &tensor.shape, rows.flat_map(tilted));
    }
    tensors
}

fn entries(tensor: &HeldTensor) -> Vec<f64> {
    let bytes = tensor.entries.contiguous().unwrap();
    let entries = bytes.chunks_exact(8);
    entries
        .map(|entry| f64::from_le_bytes(entry.try_into().unwrap()))
        .collect()
}

/// The same log with the rows' first two tokens alone.
fn listed(tensors: Vec<HeldTensor>) -> Log {
    let mut cut = tensors;
    for at in 0..2 {
        let rows = entries(&cut[at]);
        let mut shape = cut[at].shape.clone();
        *shape.last_mut().unwrap() = 2;
        let kept = rows.chunks(TOKENS).flat_map(|row| row[..2].to_vec());
        cut[at] = floats(&cut[at].name, &shape, kept);
        let name = ["target_token_ids", "draft_token_ids"][at];
        let ids = (0..shape.iter().product::<usize>()).map(|entry| entry as i64 % 2);
        cut.push(HeldTensor {
            shape,
            ..numbers(name, ids)
        });
    }
    let metadata = Metadata {
        vocabulary: Some(TOKENS),
        ..metadata()
    };
    Log::held("mine".as_ref(), metadata, cut, None).unwrap()
}

/// A log without depths, where rows do not look at where a round began.
fn without_depths(texts: &[Vec<usize>]) -> Vec<HeldTensor> {
    let mut flat = tensors(texts, &|_, prefix| draft(0, prefix));
    let places = texts
        .iter()
        .flat_map(|text| (0..LENGTH).map(move |at| &text[..at]));
    let rows = places.flat_map(|prefix| draft(0, prefix));
    flat[1] = floats("draft_probs", &[texts.len() * LENGTH, TOKENS], rows);
    flat
}

/// What the first and the second of two i.i.d. siblings get of a token of some rows.
fn of_siblings(p: &[f64], q: &[f64], token: usize) -> [f64; 2] {
    let first = q[token].min(p[token]);
    let rejected: f64 = p.iter().zip(q).map(|(p, q)| (q - p).max(0.0)).sum();
    let residual = (p[token] - q[token]).max(0.0) / rejected.max(f64::MIN_POSITIVE);
    [first, rejected * residual.min(q[token])].map(|mass| mass / p[token])
}

/// Trees on lists of the two likeliest tokens, by start and depth: bounds are those of the shares
/// between both ways to place what is not listed, and hold what full rows give.
#[test]
fn trees_on_lists_have_the_bounds_of_their_own_start() {
    use specgap::replay::{TreeSettings, measure_trees};
    let texts = some_texts();
    let settings = TreeSettings {
        schemes: vec!["iid".parse().unwrap(), "top".parse().unwrap()],
        verifiers: vec!["rrs".parse().unwrap(), "naive-tree".parse().unwrap()],
        ..crate::trees::settings(&["2x2"])
    };
    let measured = |log: Log| measure_trees(&[log], &settings, "test", &|_| {}).unwrap();
    let whole = tilt(tensors(&texts, &draft));
    let cut = measured(listed(whole.clone()));
    let full = measured(log(whole));
    let mut apart = 0;
    for (cut, full) in cut.results.iter().zip(&full.results) {
        let numbers = |row: &specgap::replay::TreeResult| {
            [row.expected_accepted_length.unwrap(), row.tokens_per_call]
        };
        for (cut, full) in numbers(cut).into_iter().zip(numbers(full)) {
            let [low, high] = cut.truncation.unwrap();
            let ends = low - 1e-12..=high + 1e-12;
            assert!(
                ends.contains(&full.mean) && ends.contains(&cut.mean),
                "{cut:?}, {full:?}"
            );
            apart += usize::from(low < high - 0.01);
        }
    }
    assert!(cut.results.len() > 1 && apart == 2 * cut.results.len());
    let is = |row: &&specgap::replay::TreeResult| row.scheme == "with-replacement";
    let row = cut.results.iter().find(is).unwrap();
    // Both children of a node together, at least and at most.
    let share = |start: usize, text: &[usize], at: usize| {
        let (p, q) = (
            tilted(target(&text[..at])),
            tilted(draft(start, &text[..at])),
        );
        if text[at] == 2 {
            return [0.0, 2.0];
        }
        let [first, second] = of_siblings(&p, &q, text[at]);
        let away = of_siblings(&[p[0], p[1], p[2], 0.0], &[q[0], q[1], 0.0, q[2]], text[at]);
        assert_eq!(first, away[0]);
        [first + second.min(away[1]), first + second.max(away[1])]
    };
    let (mut sums, mut starts) = ([0.0; 2], 0.0);
    for text in &texts {
        for start in 0..=LENGTH - 2 {
            let [one, two] = [0, 1].map(|ahead| share(start, text, start + ahead));
            for (sum, end) in sums.iter_mut().zip(0..) {
                // A round that goes on has gone as far.
                let first = one[end].min(1.0);
                *sum += first + (one[end] * two[end]).min(first);
            }
            starts += 1.0;
        }
    }
    let [low, high] = row.expected_accepted_length.unwrap().truncation.unwrap();
    let [least, most] = sums.map(|sum| sum / starts);
    assert!(
        (low - least).abs() < 1e-12 && (high - most).abs() < 1e-12,
        "{row:?}, {least}, {most}"
    );
}

/// Trees and paths of rows that do not look at where a round began are those of a log without
/// depths: full rows and lists.
#[test]
fn trees_and_paths_of_rows_that_are_the_same_from_every_start_are_those_without_depths() {
    use specgap::replay::{PathSettings, TreeSettings, measure_paths, measure_trees};
    let texts = some_texts();
    let trees = TreeSettings {
        schemes: ["iid", "top", "stratified"]
            .map(|name| name.parse().unwrap())
            .to_vec(),
        ..crate::trees::settings(&["2x2", "chain-3"])
    };
    let paths = PathSettings {
        drafts: vec![1, 2, 3],
        length: Some(DEPTHS),
        ..PathSettings::default()
    };
    let logs = || {
        let by_depth = tensors(&texts, &|_, prefix| draft(0, prefix));
        [by_depth, without_depths(&texts)].map(tilt)
    };
    for make in [log, listed] {
        let [one, other] = logs().map(|tensors| {
            let report = measure_trees(&[make(tensors)], &trees, "test", &|_| {}).unwrap();
            let numbers = report.results.into_iter();
            // From the leaves a round needs rows of the whole path from its start.
            let numbers = numbers.filter(|row| !row.verifier.starts_with("traversal"));
            let numbers = numbers.map(|row| (row.expected_accepted_length, row.tokens_per_call));
            numbers.collect::<Vec<_>>()
        });
        assert!(!one.is_empty());
        assert_eq!(one, other);
        let [one, other] = logs().map(|tensors| {
            let report = measure_paths(&[make(tensors)], &paths, "test", &|_| {}).unwrap();
            (report.by_drafts, report.left_out)
        });
        assert_eq!(one, other);
    }
}

/// One path is a chain: `paths` and `length` agree on it, by depth too.
#[test]
fn one_path_is_a_chain() {
    use specgap::replay::{PathSettings, measure_paths};
    let texts = some_texts();
    let settings = PathSettings {
        drafts: vec![1, 2],
        length: Some(DEPTHS),
        ..PathSettings::default()
    };
    let log = || log(tensors(&texts, &draft));
    let report = measure_paths(&[log()], &settings, "test", &|_| {}).unwrap();
    let (mut block, mut starts) = (0.0, 0);
    for text in &texts {
        let (sum, count) = accepted_lengths(ChainRule::BLOCK, &ratios(text), DEPTHS)[DEPTHS - 1];
        block += sum;
        starts += count;
    }
    let one = report.by_drafts.first().unwrap();
    let row = one
        .verifiers
        .iter()
        .find(|row| row.verifier == "block")
        .unwrap();
    let found = row.expected_accepted_length.mean;
    assert!((found - block / f64::from(u32::try_from(starts).unwrap())).abs() < 1e-12);
    let longer = PathSettings {
        length: Some(DEPTHS + 1),
        ..settings
    };
    let told = measure_paths(&[log()], &longer, "test", &|_| {}).unwrap_err();
    told.to_string().says("rows of the draft at 3 depths");
}

/// Each depth by itself is a log like any other: the optimum and the overlap of its rows.
#[test]
fn gaps_are_measured_depth_by_depth() {
    let texts = some_texts();
    let log = log(tensors(&texts, &draft));
    let settings = Settings::new(&[1.0], &[2], 1).unwrap();
    for depth in 1..=DEPTHS {
        let view = log.at_depth(depth).unwrap();
        let report = gap::measure(&[view], &settings, "test", &|_| {}).unwrap();
        let (mut overlap, mut optimum, mut count) = (0.0, 0.0, 0.0);
        for text in &texts {
            for start in 0..=LENGTH - depth {
                let prefix = &text[..start + depth - 1];
                let (p, q) = (target(prefix), draft(start, prefix));
                overlap += p.iter().zip(q).map(|(p, q)| p.min(q)).sum::<f64>();
                // 1 + the least of P(S) - q(S)^2 over all sets S.
                let sets = (0..1u32 << TOKENS).map(|set| {
                    let of = |row: [f64; TOKENS]| -> f64 {
                        (0..TOKENS)
                            .filter(|i| set >> i & 1 == 1)
                            .map(|i| row[i])
                            .sum()
                    };
                    1.0 + of(p) - of(q).powi(2)
                });
                optimum += sets.fold(f64::INFINITY, f64::min);
                count += 1.0;
            }
        }
        let near = |found: f64, expected: f64| {
            assert!(
                (found - expected).abs() < 1e-9,
                "depth {depth}: {found}, {expected}"
            );
        };
        near(report.overlap[0].estimate.mean, overlap / count);
        let cell = report
            .cells
            .iter()
            .find(|cell| {
                cell.scheme
                    == "iid"
                        .parse::<specgap::scheme::SchemeName>()
                        .unwrap()
                        .as_str()
            })
            .unwrap();
        near(cell.optimal_acceptance_rate.estimate.mean, optimum / count);
        let summary = &report.logs[0];
        assert_eq!(
            summary.depth.map(|one| (one.depth, one.of)),
            Some((depth, DEPTHS))
        );
        assert_eq!(summary.without_draft, texts.len() * (depth - 1));
        assert!(report.rounds.is_empty() && report.blocks.is_empty());
    }
}

/// The shipped records of trained heads: what `length` replays is what PyTorch found while the rows
/// were there, and NumPy from the records.
#[test]
fn shipped_heads_are_replayed_as_torch_and_numpy_found_them() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/models/logs/smollm2-by-depth");
    let folder = std::path::Path::new(folder);
    let numbers = std::fs::read_to_string(folder.join("numbers.json")).unwrap();
    let numbers: serde_json::Value = serde_json::from_str(&numbers).unwrap();
    let heads = numbers["heads"].as_object().unwrap();
    assert!(heads.len() >= 4);
    for (name, found) in heads {
        let open = |name: &str| Log::open(&folder.join(format!("{name}.safetensors"))).unwrap();
        let near = |one: f64, other: &serde_json::Value, what: &str| {
            let other = other.as_f64().unwrap();
            // The file has six digits.
            assert!((one - other).abs() < 1e-6, "{name}, {what}: {one}, {other}");
        };
        let settings = LengthSettings {
            verifiers: vec![ChainRule::TOKEN],
            policies: vec![Policy::fixed(4)],
            ..LengthSettings::default()
        };
        let report = measure_lengths(&[open(name)], &settings, "test", &|_| {}).unwrap();
        let row = report.results.first().unwrap();
        let accepted = row.expected_accepted_length.unwrap();
        near(1.0 + accepted.mean, &found["expected_tokens"][0], "tokens");
        near(
            1.0 + accepted.mean,
            &found["expected_tokens_by_torch"],
            "torch",
        );
        assert_eq!(report.by_depth.len(), 4);
        let first = &report.by_depth[3];
        assert_eq!(first.starts, found["starts"].as_u64().unwrap() as usize);
        near(first.joint.mean, &found["joint"][3], "joint");
        near(first.marginal.mean, &found["marginal"][3], "marginal");
        near(first.overlap.unwrap().mean, &found["overlap"][3], "overlap");
    }
}

/// Lists of the likeliest tokens by depth: each record lies within what its head's lists leave open.
#[test]
fn lists_by_depth_hold_what_the_record_says() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/models/logs/smollm2-by-depth");
    let open = |name: &str| {
        let path = std::path::Path::new(folder).join(format!("{name}.safetensors"));
        Log::open(&path).unwrap()
    };
    let (lists, record) = (open("eagle-kl-lists"), open("eagle-kl"));
    let mut exact = std::collections::BTreeMap::new();
    let mut row = Row::default();
    for depth in 1..=record.depths() {
        let view = record.at_depth(depth).unwrap();
        for number in 0..view.positions() {
            view.read(number, &mut row).unwrap();
            exact.insert((depth, row.prompt_id, row.position), row.overlap);
        }
    }
    let mut compared = 0;
    for depth in 1..=lists.depths() {
        let view = lists.at_depth(depth).unwrap();
        for number in 0..view.positions() {
            view.read(number, &mut row).unwrap();
            let Some(&Some(overlap)) = exact.get(&(depth, row.prompt_id, row.position)) else {
                continue;
            };
            if row.lacks_draft {
                continue;
            }
            // Tokens that both list, at least; and with all that either leaves out, at most.
            let both = row.target.iter().zip(&row.draft);
            let common: f64 = both
                .filter(|(p, q)| !p.is_nan() && !q.is_nan())
                .map(|(p, q)| p.min(*q).exp())
                .sum();
            let most = common + row.target_rest[0] + row.draft_rest[0];
            let near = 2e-3;
            assert!(
                common - near <= overlap && overlap <= most + near,
                "{depth}, {number}"
            );
            compared += 1;
        }
    }
    assert!(compared > 500, "{compared}");
}
