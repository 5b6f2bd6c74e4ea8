//! Numbers by group of prompts: are they those of each group's prompts, told apart where they differ,
//! and the same to the bit in any order and from any parts?

use crate::replay::near;
use specgap::import::open_tokens;
use specgap::log::{Dtype, HeldTensor, Log, Metadata};
use specgap::replay::{
    Drafts, LengthReport, LengthSettings, Policy, Texts, Timings, measure_lengths,
};
use specgap::rounds::ChainRule;
use std::path::Path;
use std::sync::Arc;

/// A prompt's tokens: ln p, ln q, and whether each is the draft's likeliest.
type Prompt = (String, &'static str, Vec<(f64, f64, bool)>);

/// Prompts whose tokens follow from their number alone; of `chat` more is accepted.
fn prompts(count: usize) -> Vec<Prompt> {
    let one = |at: usize| {
        let group = ["code", "chat", "code", "story"][at % 4];
        let mut state = at as u64 * 7919 + 17;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / f64::from(1u32 << 31)
        };
        let tokens = (0..9 + at % 5)
            .map(|_| {
                let p = 0.2 + 0.7 * next();
                let ratio = if group == "chat" {
                    0.7 + 0.5 * next()
                } else {
                    0.2 + 0.9 * next()
                };
                let q = (p * ratio).min(1.0);
                (p.ln(), q.ln(), next() < 0.6 || q > 0.5)
            })
            .collect();
        (format!("prompt-{at}"), group, tokens)
    };
    (0..count).map(one).collect()
}

/// A table of them, in the order that they are given.
fn table(folder: &Path, name: &str, prompts: &[&Prompt]) -> Log {
    let mut text = "prompt,position,group,logp,logq,hit\n".to_owned();
    for (prompt, group, tokens) in prompts {
        for (at, (p, q, hit)) in tokens.iter().enumerate() {
            text.push_str(&format!(
                "{prompt},{at},{group},{p:?},{q:?},{}\n",
                u8::from(*hit)
            ));
        }
    }
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    open_tokens(&path, None).unwrap()
}

fn settings() -> LengthSettings {
    LengthSettings {
        policies: [1, 2, 4].map(Policy::fixed).to_vec(),
        verifiers: vec![ChainRule::TOKEN, ChainRule::BLOCK],
        timings: Some(Timings::cost_ratio(0.1).unwrap()),
        round_starts: true,
        ..LengthSettings::default()
    }
}

fn report(logs: &[Log]) -> LengthReport {
    measure_lengths(logs, &settings(), "specgap length", &|_| {}).unwrap()
}

/// Rounds of K drafts along coins, each kept by itself, from their definition.
fn calls(coins: &[f64], most: usize) -> f64 {
    let n = coins.len();
    let mut starts = vec![0.0; n + 1];
    starts[0] = 1.0;
    for start in 0..n {
        let drafts = most.min(n - start - 1);
        let mut all = 1.0;
        for taken in 0..drafts {
            let coin = coins[start + taken].min(1.0);
            starts[start + taken + 1] += starts[start] * all * (1.0 - coin);
            all *= coin;
        }
        starts[start + drafts + 1] += starts[start] * all;
    }
    starts[..n].iter().sum()
}

#[test]
fn a_groups_numbers_are_those_of_its_prompts() {
    let folder = tempfile::tempdir().unwrap();
    let all = prompts(48);
    let found = report(&[table(
        folder.path(),
        "all.csv",
        &all.iter().collect::<Vec<_>>(),
    )]);
    let by_group = found.by_group.as_ref().unwrap();
    let names: Vec<_> = by_group
        .groups
        .iter()
        .map(|one| one.group.as_deref().unwrap())
        .collect();
    assert_eq!(names, ["chat", "code", "story"]);
    assert_eq!(by_group.cost_ratio, 0.1);
    for of in by_group.groups.iter().chain([&by_group.total]) {
        let is_of = |one: &&Prompt| of.group.as_deref().is_none_or(|name| name == one.1);
        let own: Vec<&Prompt> = all.iter().filter(is_of).collect();
        let tokens: usize = own.iter().map(|one| one.2.len()).sum();
        assert_eq!((of.prompts, of.positions), (own.len(), tokens));
        for row in of.results.iter().filter(|row| row.verifier == "token") {
            let coin = |(p, q, hit): &(f64, f64, bool)| match row.drafts {
                Drafts::Sampled => (q - p).exp(),
                Drafts::OneHot => f64::from(u8::from(*hit)),
                Drafts::ExactMatch => q.exp(),
                Drafts::SharedGumbel => panic!("of whole rows, where it is asked for"),
            };
            let sum: f64 = (own.iter())
                .map(|one| calls(&one.2.iter().map(coin).collect::<Vec<_>>(), row.length))
                .sum();
            let what = format!("{:?} {} {}", of.group, row.drafts, row.length);
            near(row.tokens_per_call.mean, tokens as f64 / sum, &what);
        }
    }
    // Ways and lengths of every group, and the mean of their numbers.
    for (at, one) in by_group.equal_weights.iter().enumerate() {
        let means = by_group.groups.iter().map(|of| &of.results[at]);
        let sum: f64 = means.map(|row| row.tokens_per_call.mean).sum();
        near(one.tokens_per_call.mean, sum / 3.0, "equal weights");
    }
    assert_eq!(by_group.equal_weights.len(), by_group.total.results.len());
    // The total is the report's own.
    for row in &by_group.total.results {
        let same = found.results.iter().find(|one| {
            one.drafts == row.drafts
                && one.verifier == row.verifier
                && one.parameter.to_string() == row.length.to_string()
        });
        let same = same.unwrap().tokens_per_call.unwrap();
        near(row.tokens_per_call.mean, same.mean, "total");
        near(row.tokens_per_call.ci95[1], same.ci95[1], "its interval");
    }
    let told = |name: &str| {
        let mut all = by_group.apart.iter();
        let one = all.find(|one| one.group == name && one.verifier == "token");
        (one.unwrap().is_told, one.unwrap().tokens_per_call.mean)
    };
    assert!(told("chat").0 && told("chat").1 > 0.0);
    assert!(told("code").0 && told("code").1 < 0.0);
}

/// Shuffled prompts, and parts of them in files of their own.
#[test]
fn no_number_depends_on_the_order_of_prompts_or_parts() {
    let folder = tempfile::tempdir().unwrap();
    let all = prompts(36);
    let made = |name: &str, order: &[usize]| {
        let some: Vec<&Prompt> = order.iter().map(|&at| &all[at]).collect();
        table(folder.path(), name, &some)
    };
    let order: Vec<usize> = (0..36).collect();
    let whole = report(&[made("whole.csv", &order)]);
    // 5 and 36 have no common divisor.
    let shuffled: Vec<usize> = order.iter().map(|at| at * 5 % 36).collect();
    let other = report(&[made("shuffled.csv", &shuffled)]);
    let parts = shuffled.chunks(13).enumerate();
    let parts: Vec<Log> = parts
        .map(|(at, part)| made(&format!("part-{at}.csv"), part))
        .collect();
    let merged = report(&parts);
    let text = |report: &LengthReport| serde_json::to_string(&report.by_group).unwrap();
    assert_eq!(text(&whole), text(&other));
    assert_eq!(text(&whole), text(&merged));
    // What the order of the log decides does differ.
    assert_ne!(whole.at_cost, other.at_cost);
}

/// Groups that differ by chance alone are not told apart, whatever they are called.
#[test]
fn equal_groups_are_not_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let mut all: Vec<Prompt> = prompts(96)
        .into_iter()
        .filter(|one| one.1 == "code")
        .collect();
    for (at, one) in all.iter_mut().enumerate() {
        one.1 = ["a", "b", "c"][at % 3];
    }
    let found = report(&[table(
        folder.path(),
        "a.csv",
        &all.iter().collect::<Vec<_>>(),
    )]);
    let by_group = found.by_group.unwrap();
    assert!(
        by_group.apart.iter().all(|one| !one.is_told),
        "{:?}",
        by_group.apart
    );
    let page = specgap::report::length::page(&LengthReport {
        by_group: Some(by_group),
        ..found
    });
    let text = page.text(100, true);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("The groups are not told apart."), "{text}");
}

fn log(groups: &[i64]) -> Log {
    let held = |name: &str, dtype, shape: Vec<usize>, bytes: Vec<u8>| HeldTensor {
        name: name.to_owned(),
        dtype,
        shape,
        entries: Arc::new(bytes),
    };
    let n = groups.len();
    let whole = |name: &str, values: Vec<i64>| {
        let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        held(name, Dtype::I64, vec![n], bytes)
    };
    let rows = |name: &str| {
        let bytes = (0..2 * n).flat_map(|_| 0.5f64.to_le_bytes()).collect();
        held(name, Dtype::F64, vec![n, 2], bytes)
    };
    let tensors = vec![
        rows("target_probs"),
        rows("draft_probs"),
        whole("prompt_id", (0..n as i64).map(|at| at / 2).collect()),
        whole("position", (0..n as i64).map(|at| at % 2).collect()),
        whole("token", vec![0; n]),
        whole("group", groups.to_vec()),
    ];
    let metadata: Metadata =
        serde_json::from_str(r#"{"groups": ["chat", "code"], "sampling": {"temperature": 1.0}}"#)
            .unwrap();
    Log::held(Path::new("mine"), metadata, tensors, None).unwrap()
}

#[test]
fn a_prompt_of_two_groups_is_refused() {
    let read = |groups: &[i64]| Texts::read(&[log(groups)], None, &|_| {});
    assert!(read(&[0, 0, 1, 1, -1, -1]).is_ok());
    for (groups, words) in [
        (
            [0, 1, 1, 1],
            [
                "position 1: its group is \"code\"",
                "\"chat\" at an earlier position of prompt 0",
            ],
        ),
        (
            [0, 0, 1, -1],
            [
                "position 3: its group is none",
                "one number for all of its positions",
            ],
        ),
        (
            [0, 0, 2, 2],
            ["group: row 2: is 2", "the metadata's groups has 2 names"],
        ),
    ] {
        let error = read(&groups).unwrap_err().to_string();
        for word in words {
            assert!(error.contains(word), "{error}");
        }
    }
}
