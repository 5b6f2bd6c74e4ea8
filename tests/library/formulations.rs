//! Do the formulations agree on random problems, and do the facts hold that follow
//! from the theory?

use crate::rows::{fractions, normalised};
use num_traits::{One, Signed};
use proptest::prelude::*;
use specgap::coupling::Rounding;
use specgap::distribution::{Draft, Rational, Target, TupleProbabilities, parse_rational, ratio};
use specgap::evaluate::{Evaluated, Limits, Method, Outcome, solve, verify};
use specgap::optimum::{ScaledInstance, closed_form, flow, ratio_scan, submodular};
use specgap::problem::{AnyProblem, Problem};
use specgap::scheme::{
    Composition, DistinctConditioned, DraftScheme, Draws, Greedy, MadeOf, SchemeName,
    WithReplacement, WithoutReplacement,
};

fn target(row: &[u32]) -> Target {
    Target::from_rationals(fractions(row)).unwrap()
}

fn draft(row: &[u32]) -> Draft {
    Draft::from_rationals(fractions(row)).unwrap()
}

fn build(name: SchemeName, p: &[u32], q: &[u32], drafts: usize) -> Option<Problem> {
    if !name.fits(drafts) {
        return None;
    }
    let vocab = p.len();
    let law = match name.entry().made_of {
        MadeOf::OneDraft(make) => make(draft(q), drafts),
        MadeOf::EachDraft(make) => {
            let mut rows = vec![draft(q); drafts];
            let mut rolled = q.to_vec();
            for row in rows.iter_mut().skip(1) {
                rolled.rotate_left(1);
                *row = draft(&rolled);
            }
            make(rows)?
        }
        MadeOf::Tuples(make) => {
            let tuples = (0..vocab as u32)
                .map(|start| {
                    (0..drafts as u32)
                        .map(|j| (start + j * j * 2) % vocab as u32)
                        .collect()
                })
                .collect();
            let law = TupleProbabilities::from_rationals(fractions(q)).unwrap();
            make(vocab, drafts, tuples, law).unwrap()
        }
        MadeOf::Parts(make) => {
            // The heaviest token of the law for sure, one i.i.d. draw, the rest sequential and
            // sometimes stopped.
            let mut rolled = q.to_vec();
            rolled.rotate_left(1);
            let draws = |draft: Draft, count: usize, how| Composition::Draws { draft, count, how };
            let third = || ratio(&1u32.into(), &3u32.into());
            let one = Composition::Mixture(vec![
                (third(), draws(draft(&rolled), 1, Draws::Independent)),
                (third(), draws(draft(q), 1, Draws::Stopped(third()))),
            ]);
            let parts = match drafts {
                1 => vec![one],
                2 => vec![one, Composition::Fixed(vec![0])],
                n if n - 1 <= vocab => vec![one, draws(draft(q), n - 1, Draws::Sequential)],
                n => vec![one, draws(draft(q), n - 1, Draws::Independent)],
            };
            make(vocab, Composition::Union(parts)).unwrap()
        }
    };
    Problem::from_law("r", target(p), law).ok()
}

fn optimum(problem: &Problem) -> Rational {
    flow::solve(problem)
        .optimum()
        .rate
        .rational()
        .cloned()
        .unwrap()
}

#[test]
fn a_wrong_expectation_is_noticed() {
    let text = std::fs::read_to_string("problems/spectr/bernoulli-quarter-half-n2.toml").unwrap();
    let wrong = text.replace("\"15/16\"", "\"15000000000000001/16000000000000000\"");
    assert_ne!(text, wrong);
    let AnyProblem::Single(problem) = specgap::problem::parse_toml(&wrong).unwrap() else {
        panic!("not a single-step problem")
    };
    let solution = solve(&problem, &Limits::default());
    assert!(solution.agreement.complaints.is_empty());
    assert!(!solution.is_ok());
}

#[test]
fn skipped_methods_are_listed_with_a_reason() {
    let row: Vec<f64> = (1..=200).map(|i| f64::from(i) / 20100.0).collect();
    let scheme = WithReplacement::new(Draft::new(&row).unwrap(), 2);
    let reversed: Vec<f64> = row.iter().rev().copied().collect();
    let problem = Problem::new("wide", Target::new(&reversed).unwrap(), scheme).unwrap();
    let solution = solve(&problem, &Limits::default());
    assert!(solution.is_ok(), "{:?}", solution.agreement);
    // Three programs on two solvers each, and six algorithms: none left out.
    assert_eq!(solution.methods.len(), 12);
    for run in &solution.methods {
        if let Outcome::Skipped(reason) = &run.outcome {
            assert!(!reason.is_empty(), "{:?}", run.method);
        }
    }
    let full = solution
        .methods
        .iter()
        .find(|run| run.method == Method::FullLp)
        .unwrap();
    assert!(matches!(full.outcome, Outcome::Skipped(_)));
}

#[test]
fn both_laws_without_replacement_are_reported_apart() {
    let problem = build(SchemeName::WITHOUT_REPLACEMENT, &[1, 2, 7], &[5, 3, 2], 2).unwrap();
    let solution = solve(&problem, &Limits::default());
    let sibling = solution.sibling.unwrap();
    assert_eq!(sibling.scheme, SchemeName::DISTINCT_CONDITIONED);
    assert_ne!(
        sibling.rate.rational(),
        solution.optimal_acceptance_rate.rational()
    );
}

#[test]
fn large_flows_meet_the_scan_exactly() {
    let row = |vocab: u64, seed: u64| -> Vec<f64> {
        let raw: Vec<f64> = (0..vocab)
            .map(|i| (-(((i * 2654435761 + seed * 40503) % 1000) as f64) / 120.0).exp())
            .collect();
        normalised(&raw)
    };
    for (vocab, drafts) in [(300, 2), (60, 3)] {
        let p = Target::new(&row(vocab, 1)).unwrap();
        let q = Draft::new(&row(vocab, 2)).unwrap();
        let problem = Problem::new("large", p, WithReplacement::new(q, drafts)).unwrap();
        let by_flow = flow::solve(&problem).optimum().rate;
        let by_scan = ratio_scan::solve(&problem).unwrap().rate;
        assert!(by_flow.rational().is_some());
        assert_eq!(
            by_flow.rational(),
            by_scan.rational(),
            "V = {vocab}, n = {drafts}"
        );
        assert!(by_flow.value() < 0.999, "the problem is not trivial");
    }
}

fn row(length: usize) -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(prop_oneof![1 => Just(0u32), 6 => 1u32..40], length)
        .prop_filter("some mass", |row| row.iter().sum::<u32>() > 0)
}

fn rows() -> impl Strategy<Value = (Vec<u32>, Vec<u32>)> {
    (2usize..6).prop_flat_map(|length| (row(length), row(length)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    /// Every method on every scheme, with zeros in p and q.
    #[test]
    fn all_methods_agree((p, q) in rows(), drafts in 1usize..4) {
        for name in SchemeName::ALL {
            let Some(problem) = build(name, &p, &q, drafts) else { continue };
            let solution = solve(&problem, &Limits::default());
            prop_assert!(solution.is_ok(), "{name}: {:?}", solution.agreement.complaints);
            prop_assert!(solution.optimal_acceptance_rate.rational().is_some());
            for run in &solution.methods {
                let fine = matches!(run.outcome, Outcome::Done(_) | Outcome::Skipped(_));
                prop_assert!(fine, "{name}: {} {:?}", run.method.as_str(), run.outcome);
            }
        }
    }

    /// Relabelling tokens changes nothing.
    #[test]
    fn permuting_tokens_permutes_everything((p, q) in rows(), drafts in 1usize..4, turn in 1usize..5) {
        for name in [SchemeName::WITH_REPLACEMENT, SchemeName::WITHOUT_REPLACEMENT,
                     SchemeName::DISTINCT_CONDITIONED] {
            let Some(problem) = build(name, &p, &q, drafts) else { continue };
            let (mut p2, mut q2) = (p.clone(), q.clone());
            p2.rotate_left(turn % p.len());
            q2.rotate_left(turn % p.len());
            let rolled = build(name, &p2, &q2, drafts).unwrap();
            prop_assert_eq!(optimum(&problem), optimum(&rolled));
        }
    }

    /// n = 1: sum of min(p, q), whatever the scheme.
    #[test]
    fn one_draft_is_the_overlap((p, q) in rows()) {
        let overlap: Rational =
            fractions(&p).into_iter().zip(fractions(&q)).map(|(a, b)| a.min(b)).sum();
        for name in [SchemeName::WITH_REPLACEMENT, SchemeName::WITHOUT_REPLACEMENT,
                     SchemeName::DISTINCT_CONDITIONED, SchemeName::GREEDY, SchemeName::PRODUCT] {
            let problem = build(name, &p, &q, 1).unwrap();
            prop_assert_eq!(&optimum(&problem), &overlap);
            let formula = closed_form::solve(&problem).unwrap();
            prop_assert_eq!(formula.rate.rational(), Some(&overlap));
        }
    }

    /// One more i.i.d. draft never hurts, and the limit is p of q's support.
    #[test]
    fn more_drafts_never_hurt((p, q) in rows()) {
        let reachable: Rational = fractions(&p)
            .into_iter()
            .zip(&q)
            .filter(|(_, q)| **q > 0)
            .map(|(p, _)| p)
            .sum();
        let mut before = Rational::from_integer(0.into());
        for drafts in 1..=4 {
            let now = optimum(&build(SchemeName::WITH_REPLACEMENT, &p, &q, drafts).unwrap());
            prop_assert!(now >= before && now <= reachable);
            before = now;
        }
    }

    /// p = q: everything is accepted, with and without replacement.
    #[test]
    fn equal_rows_accept_everything(p in row(4), drafts in 1usize..4) {
        for name in [SchemeName::WITH_REPLACEMENT, SchemeName::WITHOUT_REPLACEMENT] {
            if let Some(problem) = build(name, &p, &p, drafts) {
                prop_assert!(optimum(&problem).is_one());
            }
        }
    }

    /// SpecTr's Theorem 1 is an upper bound for every subset of the vocabulary,
    /// and equals alpha* at the best one.
    #[test]
    fn spectr_bound_is_tight((p, q) in rows(), drafts in 1usize..4) {
        let problem = build(SchemeName::WITH_REPLACEMENT, &p, &q, drafts).unwrap();
        let alpha = optimum(&problem);
        let exact = problem.target().exact();
        let mut best = Rational::one();
        for mask in 0u32..1 << p.len() {
            let inside: Vec<usize> = (0..p.len()).filter(|i| mask >> i & 1 == 1).collect();
            let outside: Vec<usize> = (0..p.len()).filter(|i| mask >> i & 1 == 0).collect();
            // Omega_0 can be reached only by a draft that touches it.
            let touched = Rational::one() - problem.scheme().inside_exact(&outside);
            let bound = touched.min(exact.mass(&inside)) + exact.mass(&outside)
                .min(Rational::one());
            prop_assert!(bound >= alpha);
            best = best.min(bound);
        }
        prop_assert_eq!(best, alpha);
    }

    /// Hub and greedy at n = 2 have one law of the set, hence one optimum.
    #[test]
    fn hub_equals_greedy((p, q) in rows()) {
        let hub = build(SchemeName::HUB, &p, &q, 2).unwrap();
        let greedy = build(SchemeName::GREEDY, &p, &q, 2).unwrap();
        prop_assert_eq!(optimum(&hub), optimum(&greedy));
    }

    /// The submodular minimiser's bounds hold the truth.
    #[test]
    fn submodular_bounds_hold((p, q) in rows(), drafts in 1usize..4) {
        for name in [SchemeName::PRODUCT, SchemeName::EXPLICIT, SchemeName::WITHOUT_REPLACEMENT] {
            let Some(problem) = build(name, &p, &q, drafts) else { continue };
            let truth = optimum(&problem);
            let found = submodular::solve(&problem).unwrap().rate;
            let below = specgap::distribution::exact_value(found.lower()).unwrap();
            let above = specgap::distribution::exact_value(found.upper()).unwrap();
            prop_assert!(below <= truth && truth <= above, "{found:?} {truth}");
            prop_assert!(found.width() < 1e-12, "{found:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Hunts for a counterexample to the theorem that the ratio scan is
    /// optimal under sequential sampling without replacement.
    #[test]
    fn the_scan_is_optimal_for_sequential_draws(
        (p, q) in (3usize..8).prop_flat_map(|v| (row(v), row(v))),
        drafts in 2usize..5,
    ) {
        if let Some(problem) = build(SchemeName::WITHOUT_REPLACEMENT, &p, &q, drafts) {
            let scanned = ratio_scan::solve(&problem).unwrap().rate.rational().cloned().unwrap();
            prop_assert_eq!(scanned, optimum(&problem));
        }
    }
}

#[test]
fn ratios_are_reduced() {
    let half = ratio(&2u32.into(), &4u32.into());
    assert!(half.is_positive());
    assert_eq!(half.denom(), &2.into());
}

fn sequential(target: &[f64], draft: &[f64], drafts: usize) -> Problem {
    let scheme = WithoutReplacement::new(Draft::new(draft).unwrap(), drafts);
    Problem::new("little left", Target::new(target).unwrap(), scheme).unwrap()
}

/// 1 over what is left of q is infinite here, and infinity times 0 is in every sum.
#[test]
fn what_is_left_of_q_may_be_denormal() {
    let light = [1e-310; 8];
    let with = |head: &[f64], count: usize| [head, &light[..count]].concat();
    let one_hot = |vocab: usize| {
        let mut row = vec![0.0; vocab];
        row[0] = 1.0;
        row
    };
    let four = |vocab: usize| {
        let mut row = vec![0.25; 4];
        row.resize(vocab, 0.0);
        row
    };
    for (target, draft, drafts, truth) in [
        (vec![0.25; 4], vec![1e-160, 1.0, 1e-310, 5e-324], 3, None),
        (one_hot(6), with(&[0.0, 1.0, 1e-8], 3), 3, Some("0")),
        (
            one_hot(12),
            with(&[0.0, 1.0, 1e-200, 1e-8], 8),
            4,
            Some("0"),
        ),
        (four(10), with(&[0.0, 1.0, 1e-226, 1e-8], 6), 4, Some("3/4")),
        (four(10), with(&[0.0, 1.0, 1e-226, 1e-8], 6), 2, None),
    ] {
        let problem = sequential(&target, &draft, drafts);
        let solution = solve(&problem, &Limits::default());
        let found = &solution.optimal_acceptance_rate;
        let shown = format!("{draft:?} {drafts}: {found:?} {:?}", solution.agreement);
        assert!(solution.is_ok(), "{shown}");
        assert!(found.width() < 1e-9, "{shown}");
        for run in &solution.methods {
            let fine = matches!(run.outcome, Outcome::Done(_) | Outcome::Skipped(_));
            assert!(fine, "{} {:?}\n{shown}", run.method.as_str(), run.outcome);
        }
        if let Some(truth) = truth {
            let truth = parse_rational(truth).unwrap();
            let [below, above] = [found.lower(), found.upper()]
                .map(|x| specgap::distribution::exact_value(x).unwrap());
            assert!(below <= truth && truth <= above, "{truth}: {shown}");
        }
        assert!(verify(&problem).is_ok(), "{shown}");
    }
}

/// Laws of distinct drafts on a row whose digits a division by its sum would take.
#[test]
fn laws_of_denormal_rows_keep_their_digits() {
    let row = [1.0 + 9e-7, 1e-322, 3e-322, 7e-322, 2e-300];
    let draft = || Draft::new(&row).unwrap();
    for drafts in 1..=4 {
        let schemes: [Box<dyn DraftScheme>; 3] = [
            Box::new(WithoutReplacement::new(draft(), drafts)),
            Box::new(DistinctConditioned::new(draft(), drafts)),
            Box::new(Greedy::new(draft(), drafts)),
        ];
        for scheme in schemes {
            let name = scheme.name();
            let (law, exact) = (scheme.set_law(), scheme.exact_set_law());
            assert_eq!(law.sets, exact.sets);
            for (index, set) in law.sets.iter().enumerate() {
                let truth = ratio(&exact.weights[index], &exact.total);
                for mass in [law.probabilities[index], scheme.set_probability(set)] {
                    let bound = law.relative_error * mass + specgap::scheme::UNDERFLOW;
                    let off = specgap::certify::distance(mass, &truth);
                    assert!(off <= bound, "{name} {drafts} {set:?}: {mass} {truth}");
                }
            }
            for order in [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 1, 4, 3]] {
                let scan = scheme.prefix_scan(&order);
                for (inside, truth) in scan.inside.iter().zip(scheme.prefix_scan_exact(&order)) {
                    let off = specgap::certify::distance(*inside, &truth);
                    assert!(
                        off <= scan.absolute_error,
                        "{name} {drafts} {order:?}: {inside} {truth}"
                    );
                }
            }
            let mut total = 0.0;
            scheme.for_each_tuple(&mut |_, mass| total += mass);
            assert!((total - 1.0).abs() < 1e-14, "{name} {drafts}: {total}");
        }
    }
}

/// Fractions may be far below `f64`: what it cannot hold is not vouched for, and exact
/// arithmetic takes over.
#[test]
fn a_law_out_of_range_bounds_nothing() {
    let tiny = parse_rational(&format!("1/1{}", "0".repeat(900))).unwrap();
    let mut row = vec![tiny.clone(); 4];
    row[0] = Rational::one() - tiny * Rational::from_integer(3.into());
    let draft = Draft::from_rationals(row).unwrap();
    let conditioned = DistinctConditioned::new(draft.clone(), 3);
    assert_eq!(conditioned.set_law().relative_error, f64::INFINITY);
    assert_eq!(conditioned.set_probability_error(), f64::INFINITY);
    let scheme = WithoutReplacement::new(draft, 3);
    assert_eq!(scheme.set_law().relative_error, f64::INFINITY);
    assert_eq!(scheme.set_probability_error(), f64::INFINITY);
    assert_eq!(scheme.prefix_scan(&[0, 1]).absolute_error, f64::INFINITY);
    let problem = Problem::new("far", target(&[1, 2, 3, 4]), scheme).unwrap();
    let rounded = ScaledInstance::rounded(&problem);
    assert_eq!(
        rounded.rounding,
        Rounding::Grid {
            feasible_share: 0.0,
            absolute_error: 1.0
        }
    );
    let solution = solve(&problem, &Limits::default());
    assert!(solution.is_ok(), "{:?}", solution.agreement);
    // Token 0 is always drafted, and two of the others, each with 2/3.
    let exact = solution.optimal_acceptance_rate.rational();
    assert_eq!(exact, Some(&optimum(&problem)));
    assert!(verify(&problem).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Rows over 300 decades: nothing panics, nothing disagrees, and every
    /// verifier that is summed is lossless.
    #[test]
    fn rows_of_300_decades_are_no_special_case(
        p in prop::collection::vec(0i32..300, 2..7),
        q in prop::collection::vec(0i32..300, 7),
        drafts in 1usize..5,
    ) {
        let row = |exponents: &[i32]| {
            let mut raw: Vec<f64> = exponents.iter().map(|&e| 10f64.powi(-e)).collect();
            raw[0] = 1.0;
            normalised(&raw)
        };
        let mut turned = row(&q[..p.len()]);
        turned.rotate_left(1);
        let target = Target::new(&row(&p)).unwrap();
        let draft = Draft::new(&turned).unwrap();
        let problems = [
            Problem::new("wr", target.clone(), WithReplacement::new(draft.clone(), drafts)),
            Problem::new("wo", target.clone(), WithoutReplacement::new(draft.clone(), drafts)),
            Problem::new("dc", target.clone(), DistinctConditioned::new(draft.clone(), drafts)),
            Problem::new("greedy", target, Greedy::new(draft, drafts)),
        ];
        for problem in problems.into_iter().flatten() {
            let solution = solve(&problem, &Limits::default());
            prop_assert!(solution.is_ok(), "{:?}", solution.agreement.complaints);
            prop_assert!(verify(&problem).is_ok());
        }
    }
}
