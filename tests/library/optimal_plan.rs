//! Level plans of i.i.d. drafts against the flow, against enumeration, against a second
//! integral, and against rows that are meant to break them.

use crate::rows::{model_logits, model_rows, row, rows};
use crate::sampler::follows_the_law;
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use specgap::distribution::{Draft, Rational, Softmax, Target, exact_value};
use specgap::optimum::{flow, ratio_scan};
use specgap::plan::LevelPlan;
use specgap::problem::Problem;
use specgap::scheme::WithReplacement;
use specgap::verifier::{Level, output_law, total_variation};

/// Most that acceptance can be below alpha*.
fn shortfall(plan: &LevelPlan) -> f64 {
    plan.optimal_acceptance_rate().upper() - plan.acceptance_rate().lower()
}

/// Whatever the rows: acceptance within 1e-10 of alpha*, output law within 1e-10 of
/// p, by enumeration where tuples are few and by the second integral always.
fn check(p: &Target, q: &Draft, drafts: usize, what: &str) {
    let plan = LevelPlan::iid(p, q, drafts).unwrap();
    let best = plan.optimal_acceptance_rate();
    let got = plan.acceptance_rate();
    let shortfall = shortfall(&plan);
    assert!(shortfall < 1e-10, "{what}: short by {shortfall:e}");
    assert!(got.lower() <= best.upper(), "{what}: {got:?} {best:?}");
    let law = plan.law(p, q);
    assert!(law.l1_error < 1e-10, "{what}: L1 error {:e}", law.l1_error);
    assert!(
        (law.acceptance_rate - got.value()).abs() < 1e-11,
        "{what}: {law:?} {got:?}"
    );

    let problem = Problem::new(what, p.clone(), WithReplacement::new(q.clone(), drafts)).unwrap();
    let scan = ratio_scan::solve(&problem).unwrap().rate;
    assert!(
        best.lower() <= scan.upper() && scan.lower() <= best.upper(),
        "{what}: {best:?} {scan:?}"
    );
    if problem.scheme().tuple_count() > 2e5 {
        return;
    }
    let rule = Level::new(&problem).unwrap();
    let law = output_law(&rule, problem.scheme());
    let distance = total_variation(&law, p);
    assert!(distance.value < 1e-12, "{what}: {distance:?}");
    assert!(
        (law.algorithmic - best.value()).abs() < 1e-10,
        "{what}: {law:?} {best:?}"
    );
    assert!(law.membership <= best.upper() + 1e-12, "{what}");
    let exact = flow::solve(&problem).optimum().rate;
    assert!(
        (law.algorithmic - exact.value()).abs() < 1e-10,
        "{what}: {law:?} {exact:?}"
    );
}

#[test]
fn hand_made_rows() {
    let tiny = 1e-15;
    let cases: Vec<(&str, Vec<f64>, Vec<f64>)> = vec![
        ("one token", vec![1.0], vec![1.0]),
        ("equal", vec![0.5, 0.3, 0.2], vec![0.5, 0.3, 0.2]),
        ("uniform", vec![1.0; 6], vec![1.0; 6]),
        (
            "disjoint",
            vec![1.0, 1.0, 0.0, 0.0],
            vec![0.0, 0.0, 1.0, 1.0],
        ),
        ("one-hot target", vec![0.0, 1.0, 0.0], vec![0.5, 0.25, 0.25]),
        ("one-hot draft", vec![0.5, 0.25, 0.25], vec![0.0, 1.0, 0.0]),
        ("both one-hot, same", vec![0.0, 1.0], vec![0.0, 1.0]),
        ("both one-hot, different", vec![0.0, 1.0], vec![1.0, 0.0]),
        ("bernoulli", vec![0.5, 0.5], vec![0.75, 0.25]),
        // P = Q on {0}: two minimisers at n = 2, 0.25 = 0.5^2.
        ("tie at n = 2", vec![0.25, 0.25, 0.5], vec![0.5, 0.25, 0.25]),
        (
            "tie at n = 3",
            vec![0.125, 0.375, 0.5],
            vec![0.5, 0.25, 0.25],
        ),
        // Every prefix of the chain is a minimiser: p_k = Q_k - Q_(k-1), n = 2.
        ("ladder", vec![1.0, 3.0, 5.0, 7.0], vec![1.0; 4]),
        ("ladder at n = 3", vec![1.0, 7.0, 19.0, 37.0], vec![1.0; 4]),
        // Minimisers below alpha* = 1: the ladder with mass taken from the bottom.
        ("shifted ladder", vec![0.5, 3.0, 5.0, 7.5], vec![1.0; 4]),
        (
            "nearly a ladder",
            vec![1.0 + 1e-9, 3.0 - 2e-9, 5.0 + 1e-9, 7.0],
            vec![1.0; 4],
        ),
        (
            "a ladder to 1e-12",
            vec![1.0 + 1e-12, 3.0 - 2e-12, 5.0 + 1e-12, 7.0],
            vec![1.0; 4],
        ),
        (
            "a ladder to 1e-6",
            vec![1.0 - 1e-6, 3.0 + 2e-6, 5.0 - 3e-6, 7.0 + 2e-6],
            vec![1.0; 4],
        ),
        (
            "tiny masses",
            vec![1.0, tiny, tiny, 0.5],
            vec![tiny, 1.0, tiny, 0.5],
        ),
        ("equal but tiny", vec![1.0, tiny], vec![1.0, tiny]),
        (
            "tiny against zero",
            vec![1.0, tiny, 0.0],
            vec![1.0, 0.0, tiny],
        ),
        (
            "300 decades",
            vec![1.0, 1e-100, 1e-200, 1e-300],
            vec![1e-300, 1e-200, 1e-100, 1.0],
        ),
        ("subnormal", vec![1.0, 5e-324, 0.5], vec![5e-324, 0.5, 1.0]),
        (
            "p = q = one-hot and dust",
            vec![1.0, tiny, tiny],
            vec![1.0, 2.0 * tiny, tiny],
        ),
        (
            "no overlap but dust",
            vec![1.0, tiny, 0.0],
            vec![0.0, tiny, 1.0],
        ),
    ];
    for (what, p, q) in &cases {
        let (p, q) = rows(p, q);
        for drafts in [1, 2, 3, 4, 8, 33] {
            check(&p, &q, drafts, &format!("{what}, n = {drafts}"));
        }
    }
}

#[test]
fn ties_separate_tiers() {
    let (p, q) = rows(&[1.0, 3.0, 5.0, 7.0], &[1.0; 4]);
    let plan = LevelPlan::iid(&p, &q, 2).unwrap();
    assert_eq!(plan.tiers(), 4);
    assert!(plan.acceptance_rate().upper() >= 1.0 - 1e-14);
    // The highest token drafted is always the output.
    assert_eq!(plan.accepted(&[0, 2]), [0.0, 1.0]);
    assert_eq!(plan.accepted(&[3, 3]), [0.5, 0.5]);
}

/// Ladders: P - Q of every prefix is 1e-13 to 1e-3 above its least value or, where
/// signed, about it.
#[test]
fn near_ties_in_a_row() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    for case in 0..120 {
        let (rungs, drafts) = (3 + case % 10, 2 + case / 10 % 3);
        let (even, one_scale, signed) = (case % 2 == 0, case / 2 % 2 == 0, case / 4 % 2 == 0);
        let q: Vec<f64> = (0..rungs)
            .map(|_| {
                if even {
                    1.0
                } else {
                    0.05 + rng.random::<f64>()
                }
            })
            .collect();
        let total: f64 = q.iter().sum();
        let mut scale = 0.0;
        let (mut held, mut before, mut p) = (0.0, 0.0, Vec::new());
        for (k, mass) in q.iter().enumerate() {
            if k == 0 || !one_scale {
                scale = 10f64.powf(-3.0 - 10.0 * rng.random::<f64>());
            }
            held += mass / total;
            let mut now = held.powi(drafts as i32);
            if k + 1 < rungs {
                let part = rng.random::<f64>();
                now += scale * if signed { 2.0 * part - 1.0 } else { part };
            }
            p.push((now - before).max(0.0));
            before = now;
        }
        let (p, q) = rows(&p, &q);
        check(&p, &q, drafts, &format!("ladder {case}"));
    }
}

/// The rule as it is sampled, enumerated in exact arithmetic: its acceptance lies in the
/// plan's enclosure, and is short of the flow's alpha* by no more than the plan says.
#[test]
fn acceptance_and_shortfall_bound_the_exact_ones() {
    let mut short = 0;
    for (seed, (vocab, drafts)) in (0..).zip([(2, 2), (3, 3), (5, 2), (6, 3), (8, 2), (4, 4)]) {
        let (p, q) = model_rows(vocab, 1.0, seed);
        let plan = LevelPlan::iid(&p, &q, drafts).unwrap();
        let problem = Problem::new("exact", p, WithReplacement::new(q, drafts)).unwrap();
        let mut accepted = Rational::default();
        let count = |tuple: &[u32], probability: &Rational| {
            for share in plan.accepted(tuple) {
                accepted += exact_value(share).unwrap() * probability;
            }
        };
        problem.scheme().for_each_tuple_exact(&mut { count });
        // Shares are rounded one by one.
        let accepted = accepted.min(Rational::from_integer(1.into()));
        let rate = plan.acceptance_rate();
        let what = format!("V = {vocab}, n = {drafts}: {rate:?}");
        assert!(exact_value(rate.lower()).unwrap() <= accepted, "{what}");
        assert!(exact_value(rate.upper()).unwrap() >= accepted, "{what}");
        let best = flow::solve(&problem)
            .optimum()
            .rate
            .rational()
            .unwrap()
            .clone();
        let missing = best - accepted;
        assert!(missing <= exact_value(shortfall(&plan)).unwrap(), "{what}");
        short += usize::from(missing > Rational::default());
    }
    // Clocks in f64 are a little short.
    assert!(short > 0);
}

#[test]
fn model_rows_from_peaked_to_flat() {
    let mut seed = 0;
    for vocab in [7, 60, 1000, 12_000] {
        for temperature in [0.1, 0.3, 0.6, 1.0, 1.5] {
            for drafts in [1, 2, 3, 4, 8] {
                seed += 1;
                let (p, q) = model_rows(vocab, temperature, seed);
                check(
                    &p,
                    &q,
                    drafts,
                    &format!("V = {vocab}, T = {temperature}, n = {drafts}"),
                );
            }
        }
    }
}

/// One token with nearly all of p and q, among hundreds: what it competes for with
/// others is a small difference.
#[test]
fn a_token_with_nearly_all_mass() {
    for (vocab, target, draft, drafts, seed) in [
        (300, 5.0, 3.7, 2, 1),
        (1000, 4.5, 3.2, 2, 0),
        (2000, 4.5, 3.2, 2, 5),
        (2000, 3.25, 1.95, 3, 5),
    ] {
        let (mut p, mut q) = model_logits(vocab, seed);
        p.push(target);
        q.push(draft);
        let rule = Softmax::default();
        let p = Target::from_logits(&p, &rule).unwrap();
        let q = Draft::from_logits(&q, &rule).unwrap();
        let what = format!("V = {vocab} and one, n = {drafts}");
        check(&p, &q, drafts, &what);
    }
}

/// Two drafts need no integral: a_i is the sum over j of q_i q_j times what `accepted` gives
/// of i in the pairs of i and j. Spot checks at V = 49,152.
#[test]
fn pairs_at_full_vocabulary() {
    let (p, q) = model_rows(49_152, 1.0, 77);
    let plan = LevelPlan::iid(&p, &q, 2).unwrap();
    let (p_row, q_row) = (p.probabilities(), q.probabilities());
    let mut heavy: Vec<u32> = (0..49_152).collect();
    heavy.sort_by(|&a, &b| q_row[b as usize].total_cmp(&q_row[a as usize]));
    for &token in heavy.iter().take(6).chain(heavy.iter().step_by(7000)) {
        let mut sum = specgap::distribution::TwoFloat::ZERO;
        for other in 0..49_152u32 {
            let share: f64 = plan.accepted(&[token, other])[0];
            let twice = if other == token {
                plan.accepted(&[token, other])[1]
            } else {
                share
            };
            sum += q_row[other as usize] * (share + twice);
        }
        let emitted = q_row[token as usize] * sum.value();
        let wanted = p_row[token as usize];
        // Tokens below the cut are emitted exactly p often, the others less.
        assert!(
            emitted <= wanted * (1.0 + 1e-12) + 1e-18,
            "{token}: {emitted:e} {wanted:e}"
        );
        let residual = plan.residual()[token as usize];
        if residual == 0.0 {
            assert!(
                (emitted - wanted).abs() <= 1e-10 * wanted,
                "{token}: {emitted:e} {wanted:e}"
            );
        }
    }
}

/// The sampler against the law, 400,000 runs.
#[test]
fn the_sampler_follows_the_law() {
    let (p, q) = model_rows(49_152, 1.0, 5);
    let drafts = 3;
    let plan = LevelPlan::iid(&p, &q, drafts).unwrap();
    follows_the_law(&plan, &p, &q, 400_000, |draw| {
        (0..drafts).map(|_| draw()).collect()
    });
}

#[test]
fn rows_of_two_vocabularies_are_refused() {
    let p = Target::new(&[0.5, 0.5]).unwrap();
    let q = Draft::new(&[1.0]).unwrap();
    let error = LevelPlan::iid(&p, &q, 2).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the target has 2 tokens and the draft 1; both rows must have one vocabulary"
    );
}

#[test]
fn no_drafts_and_more_than_powers_take_are_refused() {
    let (p, q) = rows(&[0.5, 0.5], &[0.75, 0.25]);
    for drafts in [0, 1 << 31] {
        let error = LevelPlan::iid(&p, &q, drafts).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("drafts is {drafts}; plans need it in 1..=2147483647")
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_rows(
        (p, q) in (1usize..9).prop_flat_map(|vocab| (row(vocab), row(vocab))),
        drafts in 1usize..6,
    ) {
        let (p, q) = rows(&p, &q);
        check(&p, &q, drafts, "generated");
    }
}
