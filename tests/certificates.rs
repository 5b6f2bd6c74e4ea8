//! Are wrong certificates refused? Every fixture but `valid.json` was broken on
//! purpose, each in one way.

use proptest::prelude::*;
use specgap::certify::{self, Certificate, CertificateError};
use specgap::distribution::{
    Draft, Rational, Target, exact_value, format_rational, parse_rational,
};
use specgap::optimum::flow;
use specgap::plan::{Coupling, PlanMasses, Rounding, TransportPlan};
use specgap::problem::{AnyProblem, Problem, parse_toml, read};
use specgap::scheme::{
    DistinctConditioned, DraftScheme, ExactSetLaw, PrefixScan, ScanStatus, SchemeName, SetFamily,
    SetLaw, WithReplacement, WithoutReplacement,
};
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
            assert_eq!(checked.unwrap().get().value, 11.0 / 14.0);
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
fn negative_entries_that_cancel_in_both_marginals_are_rejected() {
    let problem = problem("problems/spectr/bernoulli-quarter-half-n2.toml");
    let mut coupling = Coupling::extend(&problem, &flow::solve(&problem).into_plan());
    let one = parse_rational("1").unwrap();
    for (cell, up) in [
        ([0, 0], true),
        ([0, 1], false),
        ([1, 0], false),
        ([1, 1], true),
    ] {
        if up {
            coupling.mass[cell] += &one;
        } else {
            coupling.mass[cell] -= &one;
        }
    }
    assert!(matches!(
        certify::coupling(&problem, &coupling),
        Err(CertificateError::Negative { .. })
    ));
}

#[test]
fn a_set_that_a_plan_lists_twice_is_rejected() {
    let text = "schema = 1\nname = \"twice\"\ntarget = [1.0, 0.0]\ndrafts = 1\n\
                [draft]\nscheme = \"with-replacement\"\nq = [0.5, 0.5]\n";
    let AnyProblem::Single(problem) = parse_toml(text).unwrap() else {
        panic!("a single-step problem")
    };
    let plan = |times: usize| {
        let mut sets = SetFamily::new();
        for _ in 0..times {
            sets.push([0]);
        }
        TransportPlan {
            accepted: PlanMasses::Native(vec![1; times]),
            sets,
            total: 2u32.into(),
            rounding: Rounding::None,
        }
    };
    let once = certify::optimum(&problem, &plan(1), &[1]).unwrap();
    assert_eq!(once.get().lower, 0.5);
    // Each of the two keeps within P(A(X) = {0}) = 1/2; both together do not.
    assert!(matches!(
        certify::optimum(&problem, &plan(2), &[]),
        Err(CertificateError::DuplicateSet { set }) if set == [0]
    ));
}

/// i.i.d. drafts that are said to lie inside any subset.
#[derive(Debug)]
struct EverythingInside(WithReplacement);

impl DraftScheme for EverythingInside {
    fn name(&self) -> SchemeName {
        self.0.name()
    }
    fn vocab(&self) -> usize {
        self.0.vocab()
    }
    fn drafts(&self) -> usize {
        self.0.drafts()
    }
    fn draft(&self) -> Option<&Draft> {
        self.0.draft()
    }
    fn tuple_count(&self) -> f64 {
        self.0.tuple_count()
    }
    fn for_each_tuple(&self, visit: &mut dyn FnMut(&[u32], f64)) {
        self.0.for_each_tuple(visit);
    }
    fn for_each_tuple_exact(&self, visit: &mut dyn FnMut(&[u32], &Rational)) {
        self.0.for_each_tuple_exact(visit);
    }
    fn set_count(&self) -> f64 {
        self.0.set_count()
    }
    fn set_law(&self) -> SetLaw {
        self.0.set_law()
    }
    fn exact_bits(&self) -> f64 {
        self.0.exact_bits()
    }
    fn exact_set_law(&self) -> ExactSetLaw {
        self.0.exact_set_law()
    }
    fn prefix_scan(&self, order: &[usize]) -> PrefixScan {
        PrefixScan {
            inside: vec![1.0; order.len()],
            ..self.0.prefix_scan(order)
        }
    }
    fn prefix_scan_exact(&self, order: &[usize]) -> Vec<Rational> {
        vec![parse_rational("1").unwrap(); order.len()]
    }
    fn scan_status(&self) -> ScanStatus {
        self.0.scan_status()
    }
    fn set_probability(&self, set: &[u32]) -> f64 {
        self.0.set_probability(set)
    }
    fn set_probability_exact(&self, set: &[u32]) -> Rational {
        self.0.set_probability_exact(set)
    }
}

/// A valid plan cannot accept more than a subset allows, so one that does means that
/// the two were derived from different laws: no number comes of it.
#[test]
fn a_plan_above_its_cut_is_a_contradiction() {
    let problem = problem("problems/spectr/bernoulli-quarter-half-n2.toml");
    let plan = flow::solve(&problem).into_plan();
    let draft = problem.scheme().draft().unwrap().clone();
    let lying = Problem::new(
        "lying",
        problem.target().clone(),
        EverythingInside(WithReplacement::new(draft, 2)),
    )
    .unwrap();
    assert!(certify::optimum(&problem, &plan, &[0]).is_ok());
    assert!(matches!(
        certify::optimum(&lying, &plan, &[0]),
        Err(CertificateError::Contradiction { .. })
    ));
}

#[test]
fn an_upper_bound_in_floating_point_is_above_the_exact_one() {
    let row = |seed: u64| -> Vec<f64> {
        let raw: Vec<f64> = (0..60u64)
            .map(|i| 1.0 / (1.0 + ((i * 40_503 + seed * 977 * (i + 1)) % 1009) as f64))
            .collect();
        let total: f64 = raw.iter().sum();
        raw.iter().map(|x| x / total).collect()
    };
    let mut below = 0;
    for seed in 0..40 {
        let problem = Problem::new(
            "wide",
            Target::new(&row(seed)).unwrap(),
            WithReplacement::new(Draft::new(&row(seed + 100)).unwrap(), 3),
        )
        .unwrap();
        let subset: Vec<usize> = (0..60)
            .filter(|token| !(token + seed as usize).is_multiple_of(3))
            .collect();
        let exact = certify::upper_bound(&problem, &subset)
            .unwrap()
            .into_inner();
        let (estimate, upper) = certify::upper_bound_float(&problem, &subset)
            .unwrap()
            .into_inner();
        assert!(exact_value(upper).unwrap() >= exact, "{seed}: {upper}");
        assert!(upper - estimate < 1e-13, "{seed}");
        below += usize::from(exact_value(estimate).unwrap() < exact);
    }
    // The estimate alone is no bound.
    assert!(below >= 5, "{below}");
}

#[test]
fn a_coupling_with_a_nan_has_no_small_error() {
    let problem = problem("problems/spectr/bernoulli-quarter-half-n2.toml");
    let mut coupling = Coupling::extend_float(&problem, []);
    assert!(certify::coupling_float(&problem, &coupling).0 < 1e-15);
    coupling.mass[[0, 0]] = f64::NAN;
    assert_eq!(
        certify::coupling_float(&problem, &coupling).0,
        f64::INFINITY
    );
}

#[test]
fn a_rounded_plan_is_scaled_by_a_hair_and_not_by_more() {
    let row = |seed: u64| -> Vec<f64> {
        let raw: Vec<f64> = (0..60u64)
            .map(|i| 1.0 + ((i * i * 7 + seed * i) % 23) as f64)
            .collect();
        let total: f64 = raw.iter().sum();
        raw.iter().map(|x| x / total).collect()
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
        let fractions = |row: &[u32]| {
            let total: u32 = row.iter().sum();
            row.iter().map(|x| parse_rational(&format!("{x}/{total}")).unwrap()).collect()
        };
        let problem = Problem::new(
            "random",
            Target::from_rationals(fractions(&p)).unwrap(),
            WithReplacement::new(Draft::from_rationals(fractions(&q)).unwrap(), 2),
        ).unwrap();
        let solved = flow::solve(&problem);
        let subset = solved.optimum().subset.unwrap();
        let good = Certificate::new(&problem, &solved.into_plan(), &subset).unwrap();
        let proved = good.check(&problem).unwrap();
        let truth = proved.get().exact.clone().unwrap();

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
            Ok(other) => prop_assert_eq!(other.get().exact.as_ref(), Some(&truth)),
            Err(_) => {
                let bound = certify::upper_bound(&problem, &bad.subset).unwrap();
                prop_assert!(*bound.get() > truth);
            }
        }
    }
}
