//! Reports on lengths, of made logs and of shipped ones.

use super::measure::{measure_lengths, measured_with};
use super::{Drafts, FAMILIES, LengthReport, LengthSettings, Policy};
use crate::replay::Timings;
use specgap_core::rounds::ChainRule;
use specgap_core::rule::RuleName;
use specgap_log::import::open_tokens;
use specgap_log::log::{Dtype, HeldTensor, Log};

/// A log of arrays: integers, and numbers of which as many stand behind one another as `shape` says.
fn held(
    metadata: &str,
    integers: &[(&str, &[usize], &[i64])],
    numbers: &[(&str, &[usize], &[f64])],
) -> Log {
    let bytes = |all: &[i64]| {
        all.iter()
            .flat_map(|x| x.to_le_bytes())
            .collect::<Vec<u8>>()
    };
    let integers = integers
        .iter()
        .map(|(name, shape, all)| HeldTensor::new(name, Dtype::I64, shape, bytes(all)));
    let numbers = numbers.iter().map(|(name, shape, all)| {
        let all: Vec<i64> = all.iter().map(|x| x.to_bits().cast_signed()).collect();
        HeldTensor::new(name, Dtype::F64, shape, bytes(&all))
    });
    let metadata = serde_json::from_str(metadata).unwrap();
    let tensors = integers.chain(numbers).collect();
    Log::held("made".as_ref(), metadata, tensors, None).unwrap()
}

fn of_one_length(log: Log, length: usize, drafts: Drafts) -> LengthReport {
    let settings = LengthSettings {
        policies: vec![Policy::fixed(length)],
        verifiers: vec![ChainRule::TOKEN],
        drafts: vec![drafts],
        temperature: Some(1.0),
        timings: Timings::cost_ratio(0.1).ok(),
        ..LengthSettings::default()
    };
    measure_lengths(&[log], &settings, "", &|_| ()).unwrap()
}

/// Of one noise: what one list has and the other does not is open, though the text's ratio is known.
#[test]
fn drafts_of_one_noise_lie_between_bounds_on_lists() {
    let (text, p) = ([0, 1, 2, 3], [0.5, 0.3, 0.2, 0.0]);
    let one = |width: usize, row: &[f64]| row[..width].repeat(4);
    let of = |metadata: &str, more: &[(&str, &[usize], &[i64])], rows: [(usize, &[f64]); 2]| {
        let integers: [(&str, &[usize], &[i64]); 3] = [
            ("token", &[4], &[0; 4]),
            ("prompt_id", &[4], &text),
            ("position", &[4], &[0; 4]),
        ];
        let [(n, p), (m, q)] = rows;
        let numbers: [(&str, &[usize], &[f64]); 2] = [
            ("target_probs", &[4, n], &one(n, p)),
            ("draft_probs", &[4, m], &one(m, q)),
        ];
        let log = held(metadata, &[&integers, more].concat(), &numbers);
        let report = of_one_length(log, 1, Drafts::SharedGumbel);
        report.results[0].accepted_from_everywhere.unwrap()
    };
    // p is whole, and half of q open: where q goes along with p 1, else 1/(1/2 + 7/10) or less.
    let own: [(&str, &[usize], &[i64]); 2] = [
        ("target_token_ids", &[4, 3], &[0, 1, 2].repeat(4)),
        ("draft_token_ids", &[4, 1], &[0; 4]),
    ];
    let found = of(r#"{"vocabulary": 3}"#, &own, [(3, &p), (1, &[0.5])]);
    let [low, high] = found.truncation.unwrap();
    assert!(low <= 1.0 / 1.2 && high == 1.0, "{found:?}");
    // Both list the same of four tokens: the rest is one token, or two of which each has its own.
    let shared: [(&str, &[usize], &[i64]); 1] = [("token_ids", &[4, 2], &[0, 1].repeat(4))];
    let found = of(
        r#"{"vocabulary": 4, "top": 2}"#,
        &shared,
        [(2, &p), (2, &p)],
    );
    assert_eq!(found.truncation.map(|ends| ends[1]), Some(1.0));
    let whole = of("{}", &[], [(4, &p), (4, &[0.5, 0.3, 0.0, 0.2])]);
    assert!(
        found
            .truncation
            .is_some_and(|ends| (ends[0] - whole.mean).abs() < 1e-12)
    );
    assert!((whole.mean - 1.0 / 1.2).abs() < 1e-12 && whole.truncation.is_none());
}

/// Where rows depend on where a round began, a token that is accepted more often may lead to worse drafts:
/// every completion of the lists lies between the bounds, which two of them attain.
#[test]
fn calls_by_depth_lie_between_bounds_on_lists() {
    let integers: [(&str, &[usize], &[i64]); 3] = [
        ("token", &[6], &[0; 6]),
        ("prompt_id", &[6], &[0, 0, 0, 0, 1, 1]),
        ("position", &[6], &[0, 1, 2, 3, 0, 1]),
    ];
    let (good, bad) = ([0.7, 0.1, 0.1, 0.1], [0.0, 1.0, 0.0, 0.0]);
    // At the first token of either text q of token 0 is open: .34 or nothing.
    let whole = |first: [bool; 2]| {
        let open = |is: bool| match is {
            true => [0.34, 0.34, 0.32, 0.0],
            false => [0.0, 0.34, 0.33, 0.33],
        };
        let [one, other] = first.map(open);
        let draft = [
            one, bad, good, good, bad, bad, good, good, other, good, good, good,
        ];
        let numbers: [(&str, &[usize], &[f64]); 2] = [
            ("target_probs", &[6, 4], &[0.25; 24]),
            ("draft_probs", &[6, 2, 4], &draft.concat()),
        ];
        let metadata = r#"{"sampling": {"temperature": 1.0}}"#;
        of_one_length(held(metadata, &integers, &numbers), 2, Drafts::Sampled)
    };
    let ids = [1, 1, 0, 0, 1, 1, 0, 0, 1, 0, 0, 0];
    let listed = [0.34, 1.0, 0.7, 0.7, 1.0, 1.0, 0.7, 0.7, 0.34, 0.7, 0.7, 0.7];
    let lists: [(&str, &[usize], &[i64]); 2] = [
        ("target_token_ids", &[6, 4], &[0, 1, 2, 3].repeat(6)),
        ("draft_token_ids", &[6, 2, 1], &ids),
    ];
    let numbers: [(&str, &[usize], &[f64]); 4] = [
        ("target_probs", &[6, 4], &[0.25; 24]),
        ("target_rest", &[6, 1], &[0.0; 6]),
        ("draft_probs", &[6, 2, 1], &listed),
        ("draft_rest", &[6, 2, 1], &listed.map(|x| 1.0 - x)),
    ];
    let metadata =
        r#"{"vocabulary": 4, "rest_temperatures": [1.0], "sampling": {"temperature": 1.0}}"#;
    let log = held(metadata, &[integers.as_slice(), &lists].concat(), &numbers);
    let report = of_one_length(log, 2, Drafts::Sampled);
    let found = &report.results[0];
    let mut least = [f64::INFINITY, f64::INFINITY, f64::INFINITY];
    let mut most = [0.0f64; 3];
    for first in [[true, true], [true, false], [false, true], [false, false]] {
        let full = whole(first);
        let full = &full.results[0];
        let of = [full.tokens_per_call, full.discard_rate, full.speedup];
        for (at, estimate) in of.into_iter().enumerate() {
            let mean = estimate.unwrap().mean;
            least[at] = least[at].min(mean);
            most[at] = most[at].max(mean);
        }
    }
    let bounds = [found.tokens_per_call, found.discard_rate, found.speedup];
    for (at, estimate) in bounds.into_iter().enumerate() {
        let [low, high] = estimate.unwrap().truncation.unwrap();
        let attains = [low - least[at], high - most[at]];
        assert!(
            attains.iter().all(|x| x.abs() < 1e-12),
            "{at} {found:?} {least:?} {most:?}"
        );
    }
    assert!((least[0] - 1.2).abs() < 1e-12 && (most[0] - 2.0).abs() < 1e-12);
}

/// A list of the text's own token that the draft cannot draw is a row: its rest has all of q.
#[test]
fn a_token_without_q_is_rejected_in_lists_of_own_tokens() {
    for (name, none, p) in [("logprobs", f64::NEG_INFINITY, -1.5), ("probs", 0.0, 0.25)] {
        let numbers: [(&str, &[usize], &[f64]); 2] = [
            (&format!("target_{name}"), &[2, 1], &[p; 2]),
            (&format!("draft_{name}"), &[2, 1], &[none, p]),
        ];
        let integers: [(&str, &[usize], &[i64]); 5] = [
            ("target_token_ids", &[2, 1], &[0; 2]),
            ("draft_token_ids", &[2, 1], &[0; 2]),
            ("token", &[2], &[0; 2]),
            ("prompt_id", &[2], &[0; 2]),
            ("position", &[2], &[0, 1]),
        ];
        let log = held(r#"{"vocabulary": 50, "top": 0}"#, &integers, &numbers);
        let report = of_one_length(log, 1, Drafts::Sampled);
        assert_eq!(report.acceptance.mean, 0.5, "{name}");
        // Of lists of likely tokens it is none.
        let log = held(r#"{"vocabulary": 50, "top": 1}"#, &integers, &numbers);
        let settings = LengthSettings {
            temperature: Some(1.0),
            ..LengthSettings::default()
        };
        assert!(measure_lengths(&[log], &settings, "", &|_| ()).is_err());
    }
}

/// However much is held in memory, the report is the same to the bit: of lists that leave ratios open,
/// of rows, and of prompts in groups whose texts lie side by side.
#[test]
fn reports_do_not_depend_on_what_memory_holds() {
    let shipped = |name: &str| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/logs");
        Log::open(&std::path::Path::new(folder).join(name)).unwrap()
    };
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("a.csv");
    let line = |at: usize| {
        let (pair, place) = (at / 20, at % 20);
        let (prompt, position) = (2 * pair + place % 2, place / 2);
        let [p, q] = [at * 7 % 23, at * 5 % 19].map(|x| (1 + x) as f64 / -9.0);
        let group = ["code", "chat"][prompt % 2];
        format!(
            "{prompt},{position},{p},{q},{},{group}\n",
            usize::from(q > -0.7)
        )
    };
    let lines: String = (0..400).map(line).collect();
    std::fs::write(
        &table,
        format!("prompt,position,logp,logq,hit,group\n{lines}"),
    )
    .unwrap();
    for (log, drafts) in [
        (
            shipped("smollm2-demo"),
            vec![Drafts::Sampled, Drafts::OneHot],
        ),
        (shipped("smollm2-by-depth/eagle-kl.safetensors"), Vec::new()),
        (open_tokens(&table, None).unwrap(), Vec::new()),
    ] {
        let settings = LengthSettings {
            policies: FAMILIES[..2].iter().flat_map(|one| one.usual()).collect(),
            drafts,
            linked: vec![RuleName::CARRIED],
            round_starts: true,
            ..LengthSettings::default()
        };
        let logs = [log];
        let report = |held: usize| {
            let found = measured_with(&logs, &settings, "", &|_| (), held).unwrap();
            serde_json::to_string(&found).unwrap()
        };
        let whole = report(usize::MAX);
        for held in [0, 37, 150] {
            assert_eq!(report(held), whole, "{} {held}", logs[0].name());
        }
    }
}
