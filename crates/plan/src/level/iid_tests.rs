//! The level plan of i.i.d. drafts against all sets, all tuples and simulated rounds.

use super::*;
use crate::Verdict;
use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use specgap_number::distribution::{Draft, Target, compensated_sum};

/// Rows of kinds that are hard in their own ways.
pub(super) fn row(kind: usize, vocab: usize, rng: &mut ChaCha8Rng) -> Vec<f64> {
    let hot = rng.random_range(0..vocab);
    let mut row: Vec<f64> = (0..vocab)
        .map(|token| match kind {
            0 => rng.random::<f64>(),
            1 => 10f64.powf(-300.0 * rng.random::<f64>()),
            2 => f64::from(rng.random_range(0..4u8)),
            3 => f64::from(u8::from(token == hot)),
            4 => 1.0 + f64::EPSILON * f64::from(rng.random_range(0..5u8)),
            5 => (-6.0 * rng.random::<f64>()).exp(),
            _ => 10f64.powf(-18.0 * rng.random::<f64>()) * f64::from(rng.random_range(0..2u8)),
        })
        .collect();
    row[hot] += 1e-3;
    let sum = compensated_sum(row.iter().copied());
    row.iter_mut().for_each(|x| *x /= sum);
    row
}

pub(super) const KINDS: usize = 7;

pub(super) fn rows(p: &[f64], q: &[f64]) -> (Target, Draft) {
    (Target::new(p).unwrap(), Draft::new(q).unwrap())
}

pub(super) fn mass_of(row: &[f64], set: usize) -> f64 {
    let inside = (0..row.len()).filter(|i| set >> i & 1 == 1);
    compensated_sum(inside.map(|i| row[i]))
}

/// alpha*: the least of 1 + P(H) - Q(H) over all sets.
pub(super) fn least_over_all_sets(p: &[f64], inside: impl Fn(usize) -> f64) -> f64 {
    let sets = 0..1usize << p.len();
    let bounds = sets.map(|set| 1.0 + mass_of(p, set) - inside(set));
    bounds.fold(1.0, f64::min)
}

#[test]
fn accepts_the_least_over_all_sets() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for round in 0..1500 {
        let vocab = 1 + round % 9;
        let p = row(rng.random_range(0..KINDS), vocab, &mut rng);
        let q = row(rng.random_range(0..KINDS), vocab, &mut rng);
        let (p, q) = rows(&p, &q);
        let drafts = [1, 2, 3, 4, 8, 64][round / 9 % 6];
        let plan = LevelPlan::iid(&p, &q, drafts).unwrap();
        let (p_row, q_row) = (p.probabilities(), q.probabilities());
        let power = |row: &[f64], set| mass_of(row, set).powi(drafts as i32);
        let optimum = least_over_all_sets(p_row, |set| power(q_row, set));
        let context = || format!("{p_row:?} {q_row:?} {drafts}");
        let close = 2e-15 * drafts as f64 + 2e-15;
        assert!(
            (plan.acceptance_rate().value() - optimum).abs() <= close,
            "{}",
            context()
        );
        let known = plan.optimal_acceptance_rate();
        assert!(
            known.lower() <= optimum + close && optimum <= known.upper(),
            "{}: {optimum} {known:?}",
            context()
        );
        // The wider the ratios, the later the clocks and the wider the bound on rounding.
        assert!(known.width() < 3e-11, "{}: {}", context(), known.width());
        let held = (0..vocab).filter(|&i| plan.holds(i as u32));
        let held = held.map(|i| 1 << i).sum();
        let bound = 1.0 + mass_of(p_row, held) - power(q_row, held);
        assert!((bound - optimum).abs() <= close, "{}", context());
        let law = plan.law(&p, &q);
        assert!(law.l1_error <= 1e-13, "{}: {}", context(), law.l1_error);
        assert!(
            (law.acceptance_rate - optimum).abs() <= 1e-13,
            "{}",
            context()
        );
    }
}

/// All tuples of independent drafts, with their probabilities.
pub(super) fn tuples(rows: &[&[f64]]) -> Vec<(Vec<u32>, f64)> {
    let mut law = vec![(Vec::new(), 1.0)];
    for q in rows {
        let longer = law.iter().flat_map(|(tuple, mass): &(Vec<u32>, f64)| {
            (0u32..)
                .zip(*q)
                .map(move |(x, own)| ([&tuple[..], &[x]].concat(), mass * own))
        });
        law = longer.collect();
    }
    law
}

#[test]
fn simulated_rounds_follow_the_shares() {
    let p = [0.1, 0.3, 0.05, 0.35, 0.2, 0.0];
    let q = [0.3, 0.2, 0.05, 0.15, 0.1, 0.2];
    let (p, q) = rows(&p, &q);
    let plan = LevelPlan::iid(&p, &q, 3).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    for tuple in [[0u32, 1, 2], [0, 0, 5], [3, 4, 1], [1, 1, 0], [5, 5, 5]] {
        let shares = plan.accepted(&tuple);
        follow(&tuple, shares, 200_000, || plan.emit(&tuple, &mut rng));
    }
}

/// Each draft of a tuple is accepted as often as its share says, and so is none of them: to five
/// standard deviations.
pub(super) fn follow(
    tuple: &[u32],
    mut shares: Vec<f64>,
    rounds: usize,
    mut emit: impl FnMut() -> Verdict,
) {
    let mut counts = vec![0.0; tuple.len() + 1];
    for _ in 0..rounds {
        let verdict = emit();
        let slot = verdict.accepted.unwrap_or(tuple.len());
        if let Some(&draft) = tuple.get(slot) {
            assert_eq!(verdict.token, draft);
        }
        counts[slot] += 1.0;
    }
    shares.push((1.0 - shares.iter().sum::<f64>()).max(0.0));
    for (count, share) in counts.iter().zip(shares) {
        let error = (share * (1.0 - share) / rounds as f64).sqrt();
        assert!((count / rounds as f64 - share).abs() < 5.0 * error + 1e-12);
    }
}

#[test]
fn large_rows_are_closed_to_rounding() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    for (kind, other, vocab) in [(5, 5, 20_000), (0, 5, 30_000), (1, 1, 5000), (4, 4, 20_000)] {
        let (p, q) = (row(kind, vocab, &mut rng), row(other, vocab, &mut rng));
        let (p, q) = rows(&p, &q);
        let order = RatioOrder::of(&p, &q);
        for drafts in [1, 2, 4, 64] {
            let plan = LevelPlan::iid_in_order(&p, &q, &order, drafts).unwrap();
            let width = plan.optimal_acceptance_rate().width();
            let lost = plan.optimal_acceptance_rate().value() - plan.acceptance_rate().value();
            assert!(lost < 1e-13, "{kind} {drafts}: {lost}");
            assert!(width < 1e-11, "{kind} {drafts}: {width}");
            let law = plan.law(&p, &q);
            assert!(law.l1_error < 1e-12, "{kind} {drafts}: {}", law.l1_error);
            // The audit has roundings of its own.
            let known = plan.acceptance_rate();
            let audited = law.acceptance_rate;
            assert!(
                audited <= known.upper() + 1e-13,
                "{kind} {drafts}: {audited} {known:?}"
            );
            assert!(
                audited >= known.lower() - 1e-13,
                "{kind} {drafts}: {audited} {known:?}"
            );
        }
    }
}

#[test]
fn tokens_beyond_the_vocabulary_compete_for_nothing() {
    let (p, q) = rows(&[0.5, 0.5], &[0.5, 0.5]);
    let plan = LevelPlan::iid(&p, &q, 2).unwrap();
    let accepted = plan.accepted(&[7, 1]);
    assert!(accepted[0] == 0.0 && (accepted[1] - 1.0).abs() < 1e-7);
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let rng: &mut dyn RngCore = &mut rng;
    assert_eq!(plan.emit(&[7, 1], rng).token, 1);
}
