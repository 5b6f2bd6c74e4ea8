//! Plans for sequential draws without replacement: against the flow,
//! against enumeration, against second integrals, and against rows that are meant to
//! break them.

use crate::rows::{model_rows, row, rows};
use crate::sampler::follows_the_law;
use proptest::prelude::*;
use specgap::distribution::{Draft, RatioCut, Softmax, Target};
use specgap::known::{Kind, Known};
use specgap::log::{Log, Row};
use specgap::optimum::flow;
use specgap::plan::{
    Draws, MOST_SEQUENTIAL_DRAFTS, PlanError, PlanSettings, PlanStatus, TokenPlan, measure,
};
use specgap::problem::Problem;
use specgap::row::{Rows, Workspace, sequential_subset};
use specgap::scheme::WithoutReplacement;
use specgap::verifier::{Optimal, Verifier, output_law, total_variation};
use std::path::Path;

fn solve(p: &Target, q: &Draft, drafts: usize) -> TokenPlan {
    solve_with(p, q, drafts, &PlanSettings::default())
}

fn solve_with(p: &Target, q: &Draft, drafts: usize, settings: &PlanSettings) -> TokenPlan {
    let subset = sequential_subset(p, q, drafts).unwrap();
    TokenPlan::sequential(p, q, drafts, subset, settings).unwrap()
}

/// Whatever the rows: lossless by enumeration and by the second integrals, acceptance
/// within 1e-10 of the flow's alpha*, which lies in the proven enclosure.
fn check(p: &Target, q: &Draft, drafts: usize, what: &str) {
    let plan = solve(p, q, drafts);
    assert_eq!(
        plan.status(),
        PlanStatus::Optimal,
        "{what}: short by {:e}",
        plan.shortfall()
    );
    let law = plan.law(p, q);
    assert!(law.l1_error < 1e-10, "{what}: L1 error {:e}", law.l1_error);
    let rate = plan.acceptance_rate().value();
    assert!(
        (law.acceptance_rate - rate).abs() < 1e-11,
        "{what}: {} {rate}",
        law.acceptance_rate
    );
    if drafts > p.vocab() {
        return;
    }
    let scheme = WithoutReplacement::new(q.clone(), drafts);
    let problem = Problem::new(what, p.clone(), scheme).unwrap();
    if problem.scheme().tuple_count() > 2e5 {
        return;
    }
    let rule = Optimal::by_weights(&problem, &PlanSettings::default()).unwrap();
    let law = output_law(&rule, problem.scheme());
    let distance = total_variation(&law, p);
    assert!(distance.value < 1e-10, "{what}: {distance:?}");
    let exact = flow::solve(&problem).optimum().rate;
    assert!(
        (law.algorithmic - exact.value()).abs() < 1e-10,
        "{what}: {law:?} {exact:?}"
    );
    let proven = plan.optimal_acceptance_rate();
    assert!(
        proven.lower() <= exact.upper() && exact.lower() <= proven.upper(),
        "{what}: {proven:?} {exact:?}"
    );
    if drafts == 1 {
        let pairs = p.probabilities().iter().zip(q.probabilities());
        let overlap: f64 = pairs.map(|(p, q)| p.min(*q)).sum();
        assert!((rate - overlap).abs() < 1e-14, "{what}: {rate} {overlap}");
    }
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
            vec![1.0, 1.0, 0.0, 0.0, 0.0],
            vec![0.0, 0.0, 1.0, 1.0, 0.5],
        ),
        (
            "one-hot target",
            vec![0.0, 1.0, 0.0, 0.0],
            vec![0.5, 0.25, 0.25, 0.1],
        ),
        ("one-hot draft", vec![0.5, 0.25, 0.25], vec![0.0, 1.0, 0.0]),
        ("both one-hot, same", vec![0.0, 1.0], vec![0.0, 1.0]),
        ("both one-hot, different", vec![0.0, 1.0], vec![1.0, 0.0]),
        ("ratios 1, 3, 5, 7", vec![1.0, 3.0, 5.0, 7.0], vec![1.0; 4]),
        // P = Q on every prefix at n = 2: the last token drafted always wins.
        ("ladder", vec![0.0, 1.0, 2.0, 3.0], vec![1.0; 4]),
        (
            "nearly a ladder",
            vec![0.0, 1.0 + 1e-6, 2.0 - 2e-6, 3.0],
            vec![1.0; 4],
        ),
        (
            "tiny masses",
            vec![1.0, tiny, tiny, 0.5],
            vec![tiny, 1.0, tiny, 0.5],
        ),
        (
            "equal but tiny",
            vec![1.0, tiny, tiny],
            vec![1.0, tiny, tiny],
        ),
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
            "no overlap but dust",
            vec![1.0, tiny, 0.0, 0.0],
            vec![0.0, tiny, 1.0, 0.3],
        ),
        (
            "peaked",
            vec![0.3, 0.3, 0.2, 0.2, 1e-4],
            vec![0.999, 1e-3, 1e-6, 1e-9, 1e-8],
        ),
        (
            "peaked and equal",
            vec![0.999, 1e-3, 1e-6, 1e-9, 1e-8],
            vec![0.999, 1e-3, 1e-6, 1e-9, 1e-8],
        ),
    ];
    for (what, p, q) in &cases {
        let (p, q) = rows(p, q);
        // Up to and beyond the support's size.
        for drafts in [1, 2, 3, 4, 8] {
            check(&p, &q, drafts, &format!("{what}, n = {drafts}"));
        }
    }
}

#[test]
fn model_rows_from_peaked_to_flat() {
    let mut seed = 0;
    for vocab in [7, 40, 300] {
        for temperature in [0.1, 0.3, 0.6, 1.0, 1.5] {
            for drafts in [2, 3, 4] {
                seed += 1;
                check(
                    &model_rows(vocab, temperature, seed).0,
                    &model_rows(vocab, temperature, seed).1,
                    drafts,
                    &format!("V = {vocab}, T = {temperature}, n = {drafts}"),
                );
            }
        }
    }
}

/// The scan has a closed form at n = 2, and pairs need no integral at all: a_i is the
/// sum over j of q_i q_j (1/(1 - q_i) + 1/(1 - q_j)) times what `accepted` says.
#[test]
fn pairs_of_two_thousand_tokens() {
    let vocab = 2000;
    let (p, q) = model_rows(vocab, 1.0, 77);
    let plan = solve(&p, &q, 2);
    assert_eq!(plan.status(), PlanStatus::Optimal);
    let best = scanned(&p, &q, 2);
    let rate = plan.acceptance_rate();
    assert!(
        (rate.value() - best.value()).abs() < 1e-11,
        "{rate:?} {best:?}"
    );
    let row = q.probabilities();
    let mut emitted = vec![0.0; vocab];
    for i in 0..vocab {
        for j in 0..i {
            let mass = row[i] * row[j] * (1.0 / (1.0 - row[i]) + 1.0 / (1.0 - row[j]));
            let shares = plan.accepted(&[i as u32, j as u32]);
            emitted[i] += mass * shares[0];
            emitted[j] += mass * shares[1];
        }
    }
    let rejected = 1.0 - emitted.iter().sum::<f64>();
    let error: f64 = emitted
        .iter()
        .zip(plan.residual().iter())
        .zip(p.probabilities())
        .map(|((a, share), p)| (a + rejected * share - p).abs())
        .sum();
    assert!(error < 1e-12, "{error:e}");
}

/// alpha* by the scan, a closed form at n = 2.
fn scanned(p: &Target, q: &Draft, drafts: usize) -> Known {
    let rows = Rows {
        target: p.probabilities(),
        draft: q.probabilities(),
    };
    let mut scan = Workspace::new();
    let mut position = scan.load(rows, drafts).unwrap();
    position.without_replacement(drafts).unwrap().rate
}

fn full_vocabulary(temperature: f64, drafts: usize, seed: u64) {
    let (p, q) = model_rows(49_152, temperature, seed);
    let solve = || Ok::<_, PlanError>(solve(&p, &q, drafts));
    let measured = measure(&p, &q, solve).unwrap();
    assert_eq!(measured.status, PlanStatus::Optimal);
    assert!(measured.law_l1_error < 1e-11, "{measured:?}");
    assert!(measured.optimum.width() < 1e-10, "{measured:?}");
    assert!((measured.acceptance_rate - measured.optimum.value()).abs() < 1e-10);
    let scanned = scanned(&p, &q, drafts);
    assert!((scanned.value() - measured.optimum.value()).abs() < 1e-10);
    assert!(scanned.width() < if drafts == 2 { 1e-12 } else { 1e-10 });
}

#[test]
fn two_drafts_at_full_vocabulary() {
    full_vocabulary(1.0, 2, 1);
}

#[test]
fn three_drafts_at_full_vocabulary() {
    full_vocabulary(1.0, 3, 1);
}

/// The sampler against the law, 200,000 runs.
#[test]
fn the_sampler_follows_the_law() {
    let (p, q) = model_rows(5000, 1.0, 5);
    let drafts = 3;
    let plan = solve(&p, &q, drafts);
    follows_the_law(&plan, &p, &q, 200_000, |draw| {
        // Renormalising q is drawing again whatever was drawn before.
        let mut tuple: Vec<u32> = Vec::new();
        while tuple.len() < drafts {
            let token = draw();
            if !tuple.contains(&token) {
                tuple.push(token);
            }
        }
        tuple
    });
}

/// A plan that stops early is still lossless, and says that it is short.
#[test]
fn an_unfinished_plan_is_lossless_and_says_so() {
    let (p, q) = model_rows(40, 1.0, 9);
    let settings = PlanSettings {
        iterations: 0,
        ..PlanSettings::default()
    };
    for drafts in 2..=4 {
        let plan = solve_with(&p, &q, drafts, &settings);
        let law = plan.law(&p, &q);
        assert!(law.l1_error < 1e-12, "{:e}", law.l1_error);
        assert_eq!(plan.status(), PlanStatus::Short);
        assert!(plan.shortfall() > 1e-10);
        assert!(plan.acceptance_rate().lower() <= plan.optimal_acceptance_rate().upper());
    }
}

/// Where the last draft may come after any time that `f64` holds, the plan is that of
/// the first draft.
#[test]
fn out_of_range_the_first_draft_decides() {
    let p = Target::new(&[0.25, 0.25, 0.25, 0.25]).unwrap();
    let q = Draft::new(&[1.0, 1e-320, 5e-324, 1e-310]).unwrap();
    let plan = solve(&p, &q, 3);
    assert_eq!(plan.status(), PlanStatus::Short);
    assert_eq!(plan.accepted(&[0, 3, 1]), [0.25, 0.0, 0.0]);
    assert!(plan.law(&p, &q).l1_error < 1e-14);
}

/// Whatever H is, the plan is lossless and its enclosure holds alpha*; a set that is no
/// minimiser proves less, and the plan says that it is short.
#[test]
fn any_subset_gives_a_lossless_plan() {
    let everything = RatioCut {
        ratio: 0.0,
        tied_below: 0,
    };
    let falling: Vec<f64> = (0..6).map(|token| 0.6f64.powi(token)).collect();
    let rising: Vec<f64> = falling.iter().rev().copied().collect();
    let (p, q) = rows(&rising, &falling);
    for drafts in [2, 3] {
        let best = solve(&p, &q, drafts);
        assert_eq!(best.status(), PlanStatus::Optimal);
        assert!(best.acceptance_rate().value() < 0.9);
        for subset in [RatioCut::EMPTY, everything] {
            let plan =
                TokenPlan::sequential(&p, &q, drafts, subset, &PlanSettings::default()).unwrap();
            let law = plan.law(&p, &q);
            assert!(law.l1_error < 1e-12, "n = {drafts}: {:e}", law.l1_error);
            assert_eq!(plan.status(), PlanStatus::Short, "n = {drafts}");
            // Weights may still separate the tokens; what such a plan proves is little.
            let (truth, bound) = (best.acceptance_rate(), plan.optimal_acceptance_rate());
            assert!(
                plan.acceptance_rate().lower() <= truth.upper(),
                "n = {drafts}"
            );
            assert!(bound.lower() <= truth.upper() && truth.upper() < bound.upper());
            assert!(bound.width() > 0.05, "n = {drafts}: {bound:?}");
        }
    }
}

/// Plans of one draft and of the whole support are sums, which are enclosed with room for their
/// rounding; a race's is an estimate.
#[test]
fn how_well_acceptance_is_known() {
    let (p, q) = rows(&[0.2, 0.3, 0.5], &[0.6, 0.3, 0.1]);
    let (short_p, short_q) = rows(&[0.25, 0.25, 0.5], &[0.75, 0.25, 0.0]);
    for (p, q, drafts, rate, kind) in [
        (&p, &q, 1, 0.2 + 0.3 + 0.1, Kind::Enclosed),
        (&p, &q, 2, 1.05 - 0.3 * 6.0 / 7.0, Kind::Estimate),
        (&p, &q, 3, 1.0, Kind::Enclosed),
        (&short_p, &short_q, 2, 0.5, Kind::Enclosed),
    ] {
        let plan = solve(p, q, drafts);
        for known in [plan.acceptance_rate(), plan.optimal_acceptance_rate()] {
            assert_eq!(known.kind(), kind, "n = {drafts}");
            let off = (known.value() - rate).abs();
            assert!(off < 1e-12, "n = {drafts}: {known:?}");
        }
        let room = rate - plan.acceptance_rate().lower();
        assert!(room >= 4.0 * f64::EPSILON, "n = {drafts}: {room}");
        assert!(room < 1e-11, "n = {drafts}: {room}");
    }
}

#[test]
fn wrong_input_is_refused() {
    let p = Target::new(&[0.5, 0.5]).unwrap();
    let settings = PlanSettings::default();
    let short = Draft::new(&[1.0]).unwrap();
    let error = TokenPlan::sequential(&p, &short, 2, RatioCut::EMPTY, &settings).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the target has 2 tokens and the draft 1; both rows must have one vocabulary"
    );
    let q = Draft::new(&[0.5, 0.5]).unwrap();
    for drafts in [0, MOST_SEQUENTIAL_DRAFTS + 1] {
        let plan = TokenPlan::sequential(&p, &q, drafts, RatioCut::EMPTY, &settings);
        let error = plan.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("drafts is {drafts}; plans for sequential draws need it in 1..=8")
        );
    }
}

/// Beyond the flow's size the verifier is that of the plan.
#[test]
fn the_optimal_verifier_uses_the_plan() {
    let (p, q) = model_rows(3000, 1.0, 3);
    let problem = |drafts| {
        let scheme = WithoutReplacement::new(q.clone(), drafts);
        Problem::new("large", p.clone(), scheme).unwrap()
    };
    let rule = Optimal::new(&problem(3)).unwrap();
    assert!(rule.flow().is_none());
    let plan = rule.weights().unwrap();
    assert_eq!(plan.draws(), Draws::Sequential);
    let law = rule.integrated().unwrap();
    assert!(total_variation(&law, &p).value < 1e-11);
    assert!((law.algorithmic - plan.acceptance_rate().value()).abs() < 1e-11);
    assert!(rule.depends_on_set_only());
    assert!(Optimal::new(&problem(9)).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Lossless always; and optimal but for chains of ties, which fall a little short.
    #[test]
    fn any_rows(
        (p, q) in (1usize..9).prop_flat_map(|vocab| (row(vocab), row(vocab))),
        drafts in 1usize..6,
    ) {
        let (p, q) = rows(&p, &q);
        let plan = solve(&p, &q, drafts);
        let law = plan.law(&p, &q);
        prop_assert!(law.l1_error < 1e-10, "L1 error {:e}", law.l1_error);
        prop_assume!(drafts <= p.vocab());
        let scheme = WithoutReplacement::new(q.clone(), drafts);
        let problem = Problem::new("generated", p.clone(), scheme).unwrap();
        let rule = Optimal::by_weights(&problem, &PlanSettings::default()).unwrap();
        let law = output_law(&rule, problem.scheme());
        prop_assert!(total_variation(&law, &p).value < 1e-10);
        let exact = flow::solve(&problem).optimum().rate;
        prop_assert!(plan.acceptance_rate().lower() <= exact.upper());
        prop_assert!(plan.optimal_acceptance_rate().upper() >= exact.lower());
        prop_assert!((law.algorithmic - exact.value()).abs() < 1e-8, "{law:?} {exact:?}");
    }
}

/// A position of the shipped log at T = 1, what it does not list spread over `others`
/// entries.
fn logged(position: usize, others: usize) -> (Target, Draft) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/models/logs/smollm2-demo");
    let log = Log::open(Path::new(path)).unwrap();
    let mut row = Row::default();
    log.read(position, &mut row).unwrap();
    let spread = |logits: &[f64], rest: f64| {
        let mut law = Vec::new();
        Softmax::default().fill(logits, &mut law).unwrap();
        for mass in &mut law {
            *mass *= 1.0 - rest;
        }
        law.extend(std::iter::repeat_n(rest / others as f64, others));
        law
    };
    // The second temperature of the log is 1.
    (
        Target::new(&spread(&row.target, row.target_rest[1])).unwrap(),
        Draft::new(&spread(&row.draft, row.draft_rest[1])).unwrap(),
    )
}

fn does_not_stall(p: &Target, q: &Draft, drafts: usize) {
    let plan = solve(p, q, drafts);
    assert_eq!(plan.status(), PlanStatus::Optimal, "n = {drafts}");
    let (short, steps) = (plan.shortfall(), plan.iterations());
    assert!(short < 1e-11, "n = {drafts}: {short:e}");
    assert!(steps <= 25, "n = {drafts}: {steps}");
    assert!(plan.law(p, q).l1_error < 1e-11, "n = {drafts}");
}

/// Two tokens carry weights e^6 times those of the others, and are almost a minimiser
/// by themselves: their common factor is not that of all tokens. This row once stalled
/// 2.5e-4 below alpha*.
#[test]
fn a_few_tokens_far_above_the_others_do_not_stall_the_solve() {
    let (p, q) = logged(101, 64);
    for drafts in 2..=4 {
        does_not_stall(&p, &q, drafts);
    }
}

/// A few light tokens compete with each other alone, at weights e^-35 times those of all
/// others, until they have come up. These rows once ended 1e-9 and 4e-8 below alpha*.
#[test]
fn a_few_tokens_far_below_the_others_do_not_stall_the_solve() {
    for position in [126, 133] {
        let (p, q) = logged(position, 48_128);
        does_not_stall(&p, &q, 2);
    }
}
