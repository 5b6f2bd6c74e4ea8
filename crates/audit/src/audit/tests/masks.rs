//! Masks of tokens, as grammars make them, in engines that honour them and in engines that forget.

use super::{PLAIN, Tensor, hard_check, held, labels, refused, rounds_of};
use crate::audit::evidence::play::draw;
use crate::audit::{
    AuditReport, Claimed, Conclusion, PartReport, Rule, Seeds, Settings, audit, negative_control,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use safetensors::tensor::Dtype;
use specgap_core::rule::normalise;
use specgap_log::log::Log;

const P: [f64; 4] = [0.4, 0.3, 0.2, 0.1];
const Q: [f64; 4] = [0.25, 0.25, 0.1, 0.4];

/// What an engine does with masks.
#[derive(Clone, Copy)]
struct Does {
    /// It masks q too.
    both: bool,
    /// The share of tokens behind whole chains that are drawn from p without its mask.
    forgets: f64,
}

/// The mask of a position: one token or two are forbidden.
fn allowed(at: usize) -> [bool; 4] {
    let mut mask = [true; 4];
    mask[at % 4] = at.is_multiple_of(3);
    mask[(at / 4) % 4] &= !at.is_multiple_of(5);
    mask
}

fn masked(row: [f64; 4], at: usize) -> [f64; 4] {
    let mask = allowed(at).map(|one| f64::from(u8::from(one)));
    let mut row = std::array::from_fn(|token| row[token] * mask[token]);
    assert!(normalise(&mut row));
    row
}

/// How a log has masks.
#[derive(Clone, Copy, PartialEq)]
enum Masks {
    /// Beside rows without them.
    Said,
    /// In the target's rows, as a grammar left them.
    InRows,
    /// Not at all.
    Left,
}

/// A log of chains of two drafts, each accepted with min(1, p/q), in texts of 50 positions. Also the
/// positions at which a masked token came out.
fn engine(count: usize, does: Does, masks: Masks, seed: u64) -> (Log, Vec<usize>) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let (mut drafts, mut accepted) = (vec![-1i64; 2 * count], vec![-1i64; count]);
    let mut output = vec![0i64; count];
    let (mut begun, mut depth, mut broken) = (0, 0, Vec::new());
    for at in 0..count {
        if at % 50 == 0 {
            depth = 0;
        }
        if depth == 0 {
            begun = at;
            accepted[at] = 0;
        }
        let p = masked(P, at);
        let q = if does.both { masked(Q, at) } else { Q };
        let drawn = if depth < 2 {
            let x = draw(&q, random.random());
            drafts[2 * begun + depth] = x as i64;
            if random.random::<f64>() < p[x] / q[x] {
                accepted[begun] += 1;
                depth += 1;
                x
            } else {
                depth = 0;
                let left: Vec<f64> = p.iter().zip(q).map(|(p, q)| (p - q).max(0.0)).collect();
                draw(&left, random.random())
            }
        } else {
            depth = 0;
            let forgets = random.random::<f64>() < does.forgets;
            draw(if forgets { &P } else { &p }, random.random())
        };
        output[at] = drawn as i64;
        if !allowed(at)[drawn] {
            broken.push(at);
        }
    }
    let rows = |row: &dyn Fn(usize) -> [f64; 4]| {
        let entries = (0..count).flat_map(row);
        entries.flat_map(f64::to_le_bytes).collect()
    };
    let target = match masks {
        Masks::InRows => rows(&|at| masked(P, at)),
        _ => rows(&|_| P),
    };
    let mut tensors = vec![
        ("target_probs", Dtype::F64, 4, target),
        ("draft_probs", Dtype::F64, 4, rows(&|_| Q)),
    ];
    tensors.extend(rounds_of(2, drafts, accepted, output));
    tensors.extend(labels(count / 50, 50));
    if masks == Masks::Said {
        let masks = (0..count).flat_map(allowed).map(u8::from).collect();
        tensors.push(("allowed", Dtype::BOOL, 4, masks));
    }
    (held(count, &tensors, PLAIN), broken)
}

fn settings(draft_mask: bool) -> Settings {
    Settings {
        seeds: Some(Seeds::Fresh),
        claimed: Some(Claimed {
            draft_mask,
            ..Claimed::at(1.0)
        }),
        ..Settings::new(Rule::TOKEN)
    }
}

fn audited(log: &Log, draft_mask: bool) -> AuditReport {
    audit(log, &settings(draft_mask), "", &|_| {}).unwrap()
}

/// Violations of the check of masks, and where first; `None` if it was not made.
fn check(report: &AuditReport) -> Option<(u64, Option<usize>)> {
    hard_check(report, "not-allowed").map(|one| (one.violations, one.first_position))
}

const HONEST: Does = Does {
    both: false,
    forgets: 0.0,
};

#[test]
fn a_mask_on_the_target_alone_is_audited_from_raw_rows_and_the_mask() {
    let (log, broken) = engine(1500, HONEST, Masks::Said, 7);
    let report = audited(&log, false);
    assert!(broken.is_empty() && report.ok, "{:?}", report.parts);
    assert_eq!(check(&report), Some((0, None)));
    // Rows that were masked before they were logged are audited as they are.
    let (log, _) = engine(1500, HONEST, Masks::InRows, 7);
    let report = audited(&log, false);
    assert!(report.ok && check(&report).is_none(), "{:?}", report.parts);
    // The same text without its masks is no draw from these rows.
    let (log, _) = engine(1500, HONEST, Masks::Left, 7);
    let report = audited(&log, false);
    assert_eq!(check(&report), None);
    assert_ne!(report.conclusion, Conclusion::AsClaimed);
    assert!(report.parts.iter().any(PartReport::is_refuted));
}

/// Shows that which rows are masked is part of the claim: the law of drafts tells.
#[test]
fn a_mask_on_both_rows_is_another_claim_than_one_on_p_alone() {
    for both in [false, true] {
        let (log, _) = engine(1500, Does { both, ..HONEST }, Masks::Said, 8);
        let right = audited(&log, both);
        assert!(right.ok, "{both} {:?}", right.parts);
        let wrong = audited(&log, !both);
        assert_ne!(wrong.conclusion, Conclusion::AsClaimed);
        assert_eq!(wrong.ok, both, "{:?}", wrong.cause);
        // A draft whose own row is masked loses nothing, and is known.
        let own = wrong
            .cause
            .as_ref()
            .filter(|cause| cause.name == "draft-of-its-own-row");
        assert_eq!(own.is_some(), both, "{:?}", wrong.cause);
        assert_eq!(wrong.conclusion == Conclusion::LosslessOther, both);
        assert_eq!(check(&wrong), Some((0, None)));
        // A token was drafted that a masked q does not have.
        let undrafted = hard_check(&wrong, "draft-zero").unwrap().violations;
        assert_eq!(undrafted > 0, !both);
    }
}

/// The mask of the token behind a whole chain is the one of the position before, or none: always, or at
/// one such token in a hundred. One forbidden token is enough.
#[test]
fn a_mask_that_is_forgotten_behind_whole_chains_fails_where_it_first_shows() {
    let mut rare = 0;
    for (forgets, seed) in [(1.0, 9), (0.01, 10), (0.01, 11), (0.01, 12)] {
        let does = Does { forgets, ..HONEST };
        let (log, broken) = engine(3000, does, Masks::Said, seed);
        let report = audited(&log, false);
        let first = broken.first().copied();
        let expected = Some((broken.len() as u64, first));
        assert_eq!(check(&report), expected, "{forgets}");
        assert_eq!(report.ok, broken.is_empty());
        if forgets < 1.0 {
            rare += broken.len();
        } else {
            assert!(broken.len() > 30);
        }
        if first.is_some() {
            assert_eq!(report.conclusion, Conclusion::Lossy);
        }
    }
    assert!((1..30).contains(&rare), "{rare}");
}

#[test]
fn the_negative_control_breaks_a_mask() {
    let (log, _) = engine(100, HONEST, Masks::Said, 13);
    let settings = settings(false);
    let all = negative_control(&log, &settings).unwrap();
    let one = all.iter().find(|one| one.name == "not-allowed").unwrap();
    assert_eq!(one.refuted, Some(true));
    assert_eq!(one.by, ["not-allowed"]);
    let (log, _) = engine(100, HONEST, Masks::Left, 13);
    let all = negative_control(&log, &settings).unwrap();
    assert!(all.iter().all(|one| one.name != "not-allowed"));
}

/// A log of one round at rows of its own.
fn one(p: [f64; 4], mask: [u8; 4], more: &[Tensor]) -> Log {
    let bytes = |row: [f64; 4]| row.map(f64::to_le_bytes).concat();
    let mut tensors = vec![
        ("target_probs", Dtype::F64, 4, bytes(p)),
        ("draft_probs", Dtype::F64, 4, bytes(Q)),
        ("allowed", Dtype::U8, 4, mask.to_vec()),
    ];
    tensors.extend(rounds_of(1, [0], [0], [1]));
    tensors.extend(more.iter().cloned());
    let vocabulary = if more.is_empty() { 4 } else { 9 };
    let metadata = format!(
        r#"{{"temperature_applied": 1.0, "vocabulary": {vocabulary}, "rest_temperatures": [1.0]}}"#
    );
    held(1, &tensors, &metadata)
}

#[test]
fn masks_that_leave_nothing_are_refused() {
    let settings = settings(false);
    let none = [
        "made.safetensors: allowed: row 0",
        "allows none of 4 tokens",
    ];
    refused(&one(P, [0; 4], &[]), &settings, &none);
    // A mask of tokens that the target does not have.
    let others = one([0.5, 0.5, 0.0, 0.0], [0, 0, 1, 1], &[]);
    let words = ["position 0", "the target's row gives mass", "off by one"];
    refused(&others, &settings, &words);
    // Lists leave open what of the others is masked.
    let ids = [0i32, 1, 2, 5].map(i32::to_le_bytes).concat();
    let rest = 0.0f64.to_le_bytes().to_vec();
    let lists = [
        ("token_ids", Dtype::I32, 4, ids),
        ("target_rest", Dtype::F64, 1, rest.clone()),
        ("draft_rest", Dtype::F64, 1, rest),
    ];
    refused(&one(P, [1; 4], &lists), &settings, &["log full rows"]);
}
