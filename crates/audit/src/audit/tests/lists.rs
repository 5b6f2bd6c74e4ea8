//! Rows that list some tokens only: what a list tells, and what it does not.

use super::{
    Dtype, Tensors, audited, floats, held, is_said, labels, logits, near_rows, rejection,
    rounds_of, settings, softmax, whole,
};
use crate::audit::evidence::play::draw;
use crate::audit::{Conclusion, Rule, Seeds, Settings};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use specgap_log::log::Log;

const TOKENS: usize = 40;

/// Lists of the likeliest tokens of some laws and of those that are named, with the mass of the others.
fn lists(
    all: &[Vec<Vec<f64>>],
    named: &[Vec<usize>],
    listed: usize,
    top: &str,
) -> (Tensors, String) {
    let width = all.len() * listed + named[0].len();
    let (mut ids, mut logs, mut rests) = (
        Vec::new(),
        [const { Vec::new() }; 2],
        [const { Vec::new() }; 2],
    );
    for (at, named) in named.iter().enumerate() {
        let mut own = named.clone();
        for laws in all {
            let mut order: Vec<usize> = (0..TOKENS).collect();
            order.sort_by(|&a, &b| laws[at][b].total_cmp(&laws[at][a]));
            own.extend(&order[..listed]);
        }
        own.sort_unstable();
        own.dedup();
        let none = width - own.len();
        for (model, (logs, rests)) in logs.iter_mut().zip(&mut rests).enumerate() {
            let law = &all[model.min(all.len() - 1)][at];
            let own = || own.iter().map(|&id| law[id]);
            logs.push(
                own()
                    .map(f64::ln)
                    .chain(vec![f64::NAN; none])
                    .collect::<Vec<f64>>(),
            );
            rests.push(vec![(1.0 - own().sum::<f64>()).max(0.0)]);
        }
        ids.extend(own.into_iter().map(|id| id as i64));
        ids.extend(vec![-1; none]);
    }
    let tensors = vec![
        ("token_ids", Dtype::I64, width, whole(ids)),
        ("target_logprobs", Dtype::F64, width, floats(&logs[0])),
        ("draft_logprobs", Dtype::F64, width, floats(&logs[1])),
        ("target_rest", Dtype::F64, 1, floats(&rests[0])),
        ("draft_rest", Dtype::F64, 1, floats(&rests[1])),
    ];
    let said = format!(
        r#"{{"temperature_applied": 1.0, "sampling": {{"temperature": 1.0}}, "vocabulary": {TOKENS},
            "rest_temperatures": [1.0], "rows_from": "engine-raw"{top}}}"#
    );
    (tensors, said)
}

/// Texts that are drawn at a power of p, but for one token, from lists of so many tokens, and of the text's own.
fn text(listed: usize, top: &str, power: f64, banned: Option<usize>) -> Log {
    let (texts, length) = (60, 60);
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let contexts = logits(TOKENS, TOKENS, 1.5, &mut random);
    let (mut rows, mut named) = (Vec::new(), Vec::new());
    for _ in 0..texts {
        let mut token = random.random_range(0..TOKENS);
        for _ in 0..length {
            rows.push(softmax(&contexts[token], 1.0));
            let mut law = softmax(&contexts[token], 1.0 / power);
            banned.into_iter().for_each(|banned| law[banned] = 0.0);
            token = draw(&law, random.random());
            named.push(vec![token]);
        }
    }
    let (mut all, said) = lists(&[rows], &named, listed, top);
    all.extend(labels(texts, length));
    all.push((
        "output",
        Dtype::I64,
        0,
        whole(named.iter().map(|y| y[0] as i64)),
    ));
    held(texts * length, &all, &said)
}

/// A list that promises nothing clears nobody, and others no more than what they tell; and none accuses an honest
/// text of numbers that it shares with others.
#[test]
fn a_text_is_audited_for_what_its_lists_tell() {
    let fresh = settings(Rule::TEXT, Some(Seeds::Fresh));
    for (listed, top, power, expected) in [
        (0, r#", "top": 0"#, 1.0, Conclusion::Undecided),
        (0, r#", "top": 0"#, 1e-9, Conclusion::Undecided),
        (0, "", 1.0, Conclusion::Undecided),
        (6, r#", "top": 0"#, 1e-9, Conclusion::Undecided),
        (6, r#", "top": 6"#, 1.0, Conclusion::Undecided),
        (6, r#", "top": 6"#, 1e-9, Conclusion::Lossy),
        (6, r#", "top": 6"#, 1.25, Conclusion::Lossy),
        // Half of the shortest list.
        (6, "", 1.0, Conclusion::Undecided),
        (6, "", 1.25, Conclusion::Lossy),
    ] {
        let log = text(listed, top, power, None);
        let report = audited(&log, &fresh);
        let case = (listed, top, power, &report.cause);
        assert_eq!(report.conclusion, expected, "{case:?}");
        let is_open = is_said(&report.open, "nothing shows how they are drawn");
        assert_eq!(is_open, expected == Conclusion::Undecided, "{case:?}");
        if (listed, power) == (6, 1.0) {
            // What is asked is more than what they hide.
            let report = audited(
                &log,
                &Settings {
                    exclude: 0.7,
                    ..fresh.clone()
                },
            );
            assert_eq!(
                report.conclusion,
                Conclusion::AsClaimed,
                "{:?}",
                report.open
            );
        }
    }
}

#[test]
fn a_token_that_never_comes_is_missed_in_lists() {
    let log = text(12, r#", "top": 12"#, 1.0, Some(7));
    let report = audited(&log, &settings(Rule::TEXT, Some(Seeds::Fresh)));
    let cause = report
        .cause
        .as_ref()
        .map(|cause| (cause.name.as_str(), cause.fit["token"].as_u64()));
    assert_eq!(
        cause,
        Some(("token-banned", Some(7))),
        "{:?}",
        report.suspects
    );
}

/// Lists of the likeliest tokens of both models, and of what was drafted and came out.
#[test]
fn rounds_are_audited_for_what_their_lists_promise() {
    let rounds = 6000;
    for (share, top) in [(0.0, r#", "top": 3"#), (0.0, ""), (0.4, r#", "top": 3"#)] {
        let mut random = ChaCha8Rng::seed_from_u64(8);
        let rows = near_rows(rounds, TOKENS, 0.8, &mut random);
        let laws = rows.map(|rows| rows.iter().map(|row| softmax(row, 1.0)).collect::<Vec<_>>());
        let steps = (0..rounds).map(|at| {
            let own = [laws[0][at].clone(), laws[1][at].clone()];
            rejection(&own, share, &mut random)
        });
        let steps: Vec<_> = steps.collect();
        let named = steps.iter().map(|step| vec![step.drafts[0], step.output]);
        let (mut all, said) = lists(&laws, &named.collect::<Vec<_>>(), 3, top);
        all.extend(labels(10, rounds / 10));
        all.extend(rounds_of(
            1,
            steps.iter().map(|step| step.drafts[0] as i64),
            steps.iter().map(|step| i64::from(step.accepted)),
            steps.iter().map(|step| step.output as i64),
        ));
        let log = held(rounds, &all, &said);
        let report = audited(&log, &settings(Rule::TOKEN, Some(Seeds::Fresh)));
        let case = (share, top, &report.cause);
        assert_eq!(report.ok, share == 0.0, "{case:?}");
    }
}
