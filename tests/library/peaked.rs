//! Do solvers survive peaked distributions? HiGHS at its default tolerances
//! calls many of these infeasible and is off by 1e-7 on others.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use specgap::distribution::{Draft, Softmax, Target};
use specgap::lp::formulation::{TupleLaw, membership};
use specgap::lp::{Backend, LinearProgram, LpStatus};
use specgap::optimum::{closed_form, flow, ratio_scan};
use specgap::problem::Problem;
use specgap::scheme::WithReplacement;

const VOCAB: usize = 60;
const LOGIT_RANGE: f64 = 30.0;

fn peaked(seed: u64, drafts: usize) -> Problem {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut logits = || -> Vec<f64> {
        (0..VOCAB)
            .map(|_| random.random_range(0.0..LOGIT_RANGE))
            .collect()
    };
    let rule = Softmax::default();
    let p = Target::from_logits(&logits(), &rule).unwrap();
    let q = Draft::from_logits(&logits(), &rule).unwrap();
    Problem::new(format!("peaked-{seed}"), p, WithReplacement::new(q, drafts)).unwrap()
}

fn value(solver: &dyn Backend, program: &LinearProgram, name: &str) -> f64 {
    let answer = solver.solve(program);
    assert_eq!(answer.status, LpStatus::Optimal, "{name}");
    program.objective_at(&answer.primal.unwrap())
}

#[cfg(feature = "highs")]
#[test]
fn highs_solves_a_thousand_peaked_full_programs() {
    let mut worst: f64 = 0.0;
    for seed in 0..1000 {
        let problem = peaked(seed, 1);
        let truth = closed_form::solve(&problem).unwrap().rate.value();
        let law = TupleLaw::of(problem.scheme());
        let program = specgap::lp::formulation::full(problem.target().probabilities(), &law);
        let found = value(&specgap::lp::Highs, &program, problem.name());
        worst = worst.max((found - truth).abs());
    }
    assert!(worst <= 1e-9, "worst error {worst:e}");
}

#[cfg(feature = "highs")]
#[test]
fn highs_solves_peaked_membership_and_dual_programs() {
    for seed in 0..200 {
        let problem = peaked(seed, 1);
        let truth = closed_form::solve(&problem).unwrap().rate.value();
        let law = TupleLaw::of(problem.scheme());
        let target = problem.target().probabilities();
        for program in [
            membership(target, &law).0,
            specgap::lp::formulation::dual(target, &law),
        ] {
            let found = value(&specgap::lp::Highs, &program, problem.name());
            assert!(
                (found - truth).abs() <= 1e-9,
                "{}: {found} {truth}",
                problem.name()
            );
        }
    }
}

#[test]
fn minilp_solves_peaked_membership_programs() {
    for seed in 0..200 {
        let problem = peaked(seed, 1);
        let truth = closed_form::solve(&problem).unwrap().rate.value();
        let law = TupleLaw::of(problem.scheme());
        let (program, _) = membership(problem.target().probabilities(), &law);
        let found = value(&specgap::lp::MiniLp, &program, problem.name());
        assert!(
            (found - truth).abs() <= 1e-9,
            "{}: {found} {truth}",
            problem.name()
        );
    }
}

#[test]
fn flow_and_scan_agree_exactly_on_peaked_rows() {
    for seed in 0..20 {
        for drafts in [1, 2] {
            let problem = peaked(seed, drafts);
            assert!(problem.scheme().set_count() <= 1830.0);
            let by_flow = flow::solve(&problem)
                .optimum()
                .rate
                .rational()
                .cloned()
                .unwrap();
            let by_scan = ratio_scan::solve(&problem)
                .unwrap()
                .rate
                .rational()
                .cloned()
                .unwrap();
            assert_eq!(by_flow, by_scan);
        }
    }
}
