//! Are wrong certificates refused? Every fixture but `valid.json` was broken on
//! purpose, each in one way.

use crate::rows::{fractions, normalised};
use proptest::prelude::*;
use specgap::certify::{self, Certificate};
use specgap::distribution::{Draft, Target, format_rational, parse_rational};
use specgap::optimum::flow;
use specgap::plan::{Coupling, PlanMasses, TransportPlan};
use specgap::problem::{AnyProblem, Problem, read};
use specgap::scheme::{DistinctConditioned, WithReplacement, WithoutReplacement};
use std::path::Path;

fn problem(path: &str) -> Problem {
    match read(Path::new(path)).unwrap().remove(0).1 {
        AnyProblem::Single(problem) => problem,
        AnyProblem::Block(_) => panic!("{path} is a block problem"),
    }
}

#[test]
fn every_corrupted_fixture_is_rejected_and_the_valid_one_is_not() {
    let problem = problem("problems/without-replacement/two-laws-sequential.toml");
    let mut rejected = 0;
    for entry in std::fs::read_dir("tests/fixtures/certificates").unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let certificate: Certificate = serde_json::from_str(&text).unwrap();
        let checked = certificate.check(&problem);
        if path.file_stem().unwrap() == "valid" {
            assert_eq!(checked.unwrap().get().value(), 11.0 / 14.0);
        } else {
            assert!(checked.is_err(), "{} proves {:?}", path.display(), checked);
            rejected += 1;
        }
    }
    assert!(rejected >= 22, "{rejected} corrupted fixtures");
}

#[test]
fn a_certificate_of_one_law_does_not_prove_the_other() {
    let sequential = problem("problems/without-replacement/two-laws-sequential.toml");
    let solved = flow::solve(&sequential);
    let subset = solved.optimum().subset.unwrap();
    let plan = solved.into_plan();
    let conditioned = Problem::new(
        "two-laws-sequential",
        sequential.target().clone(),
        DistinctConditioned::new(sequential.scheme().draft().unwrap().clone(), 2),
    )
    .unwrap();
    let certificate = Certificate::new(&sequential, &plan, &subset).unwrap();
    assert!(certificate.check(&sequential).is_ok());
    assert!(certificate.check(&conditioned).is_err());
}

#[test]
fn a_coupling_with_a_wrong_marginal_is_rejected() {
    let problem = problem("problems/spectr/bernoulli-quarter-half-n2.toml");
    let plan = flow::solve(&problem).into_plan();
    let good = Coupling::extend(&problem, &plan);
    assert_eq!(
        format_rational(certify::coupling(&problem, &good).unwrap().get()),
        "15/16"
    );
    let hair = parse_rational("1/1000000000000000000000000").unwrap();
    // p's marginal off, D's marginal off, and a negative entry.
    let mut moved = good.clone();
    moved.mass[[0, 0]] += &hair;
    moved.mass[[1, 0]] -= &hair;
    assert!(certify::coupling(&problem, &moved).is_err());
    let mut moved = good.clone();
    moved.mass[[0, 0]] += &hair;
    moved.mass[[0, 1]] -= &hair;
    assert!(certify::coupling(&problem, &moved).is_err());
    let mut moved = good.clone();
    let all = moved.mass[[0, 0]].clone() + &hair;
    moved.mass[[0, 0]] -= &all;
    moved.mass[[1, 0]] += &all;
    assert!(certify::coupling(&problem, &moved).is_err());
}

#[test]
fn a_rounded_plan_is_scaled_by_a_hair_and_not_by_more() {
    let row = |seed: u64| -> Vec<f64> {
        let raw: Vec<f64> = (0..60u64)
            .map(|i| 1.0 + ((i * i * 7 + seed * i) % 23) as f64)
            .collect();
        normalised(&raw)
    };
    let draft = Draft::new(&row(3)).unwrap();
    let problem = Problem::new(
        "rounded",
        Target::new(&row(11)).unwrap(),
        WithoutReplacement::new(draft, 3),
    )
    .unwrap();
    let solved = flow::solve(&problem);
    let subset = solved.optimum().subset.unwrap();
    let plan = solved.into_plan();
    assert!(
        matches!(plan.accepted, PlanMasses::Native(_)),
        "too large for exact arithmetic"
    );
    let proved = certify::optimum(&problem, &plan, &subset).unwrap();
    assert!(proved.get().width() < 1e-12, "{:?}", proved.get());

    let PlanMasses::Native(mut masses) = plan.accepted.clone() else {
        return;
    };
    let largest = (0..masses.len())
        .max_by_key(|&entry| masses[entry])
        .unwrap();
    masses[largest] += masses[largest] / 1000;
    let corrupted = TransportPlan {
        accepted: PlanMasses::Native(masses),
        ..plan
    };
    assert!(certify::optimum(&problem, &corrupted, &subset).is_err());
}

#[test]
fn the_checker_imports_no_solver() {
    for file in ["mod", "certificate", "residuals"] {
        let source = std::fs::read_to_string(format!("src/certify/{file}.rs")).unwrap();
        for solver in [
            "optimum::",
            "crate::solve",
            "lp::{",
            "lp::MiniLp",
            "lp::Highs",
            "Backend",
        ] {
            for line in source.lines().filter(|line| line.starts_with("use ")) {
                let data_only = line.contains("lp::{Direction, LinearProgram, Relation}");
                assert!(data_only || !line.contains(solver), "{file}.rs: {line}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Any single change of a plan's mass, or of the subset, is noticed: the
    /// certificate then proves something else, or nothing.
    #[test]
    fn mutated_certificates_prove_nothing(
        p in prop::collection::vec(1u32..50, 4),
        q in prop::collection::vec(1u32..50, 4),
        entry in any::<prop::sample::Index>(),
        up in any::<bool>(),
        token in 0usize..4,
    ) {
        let problem = Problem::new(
            "random",
            Target::from_rationals(fractions(&p)).unwrap(),
            WithReplacement::new(Draft::from_rationals(fractions(&q)).unwrap(), 2),
        ).unwrap();
        let solved = flow::solve(&problem);
        let subset = solved.optimum().subset.unwrap();
        let good = Certificate::new(&problem, &solved.into_plan(), &subset).unwrap();
        let proved = good.check(&problem).unwrap();
        let truth = proved.get().rational().cloned().unwrap();

        let mut bad = good.clone();
        let part = &mut bad.plan[entry.index(good.plan.len())];
        let mass = parse_rational(&part.mass).unwrap();
        let hair = parse_rational("1/1000000000").unwrap();
        part.mass = format_rational(&if up { mass + hair } else { mass - hair });
        prop_assert!(bad.check(&problem).is_err());

        // Toggling a token of H either gives another minimiser or is refused.
        let mut bad = good.clone();
        match bad.subset.binary_search(&token) {
            Ok(place) => { bad.subset.remove(place); }
            Err(place) => bad.subset.insert(place, token),
        }
        match bad.check(&problem) {
            Ok(other) => prop_assert_eq!(other.get().rational(), Some(&truth)),
            Err(_) => {
                let bound = certify::upper_bound(&problem, &bad.subset).unwrap();
                prop_assert!(*bound.get() > truth);
            }
        }
    }
}
