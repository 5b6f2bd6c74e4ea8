//! Do the problem files hold: what they expect, and the values of the committed
//! baseline? Each file goes through every solver and verifier once, here.

use specgap::block::BlockRule;
use specgap::claims::{Baseline, Changes, compare};
use specgap::evaluate::{Evaluated, Limits, Measured, block as evaluate_block, solve, verify};
use specgap::problem::{AnyProblem, BlockProblem, Problem, read};
use specgap::scheme::SchemeName;
use specgap::verifier::VerifierName;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Named values of one problem, as a baseline holds them.
type Values = BTreeMap<String, f64>;

/// How much was compared.
#[derive(Default)]
struct Compared {
    single: usize,
    block: usize,
    schemes: BTreeSet<SchemeName>,
    exact_laws: usize,
    expected_rates: usize,
}

#[test]
fn every_file_agrees_with_every_method_and_with_the_baseline() {
    let text = std::fs::read_to_string("reports/baseline.json").unwrap();
    let committed: Baseline = serde_json::from_str(&text).unwrap();
    let mut compared = Compared::default();
    let mut problems = BTreeMap::new();
    for (path, problem) in read(Path::new("problems")).unwrap() {
        let name = problem.name();
        assert_eq!(path.file_stem().unwrap(), name, "a file is its problem");
        let values = match &problem {
            AnyProblem::Single(problem) => single(problem, &mut compared),
            AnyProblem::Block(problem) => block(problem, &mut compared),
        };
        assert!(problems.insert(name.to_owned(), values).is_none(), "{name}");
    }
    assert!(compared.single >= 150, "{} of one step", compared.single);
    assert_eq!(compared.block, 8 + 9);
    assert_eq!(compared.schemes.len(), SchemeName::ALL.len());
    assert!(compared.exact_laws > 250, "{}", compared.exact_laws);
    assert!(compared.expected_rates > 180, "{}", compared.expected_rates);

    // Nothing is gone, different or missing in the baseline; its claims are checked by
    // `specgap check`.
    let now = Baseline {
        problems,
        ..committed.clone()
    };
    assert_eq!(compare(&committed, &now), Changes::default());
}

fn single(problem: &Problem, compared: &mut Compared) -> Values {
    let name = problem.name();
    let expected = problem.expected().unwrap();
    assert!(expected.source.is_some(), "{name}: no source");
    let solution = solve(problem, &Limits::default());
    assert!(solution.is_ok(), "{name}: {:?}", solution.complaints());
    assert!(solution.expected.is_some(), "{name}: expects nothing");
    let rate = solution.optimal_acceptance_rate.value();
    let mut values = Values::from([("optimal_acceptance_rate".to_owned(), rate)]);

    let evaluation = verify(problem);
    assert_eq!(evaluation.verifiers.len(), VerifierName::ALL.len());
    assert_eq!(evaluation.complaints(), [""; 0], "{name}");
    for verifier in VerifierName::ALL {
        if let Some(measured) = evaluation.measured(verifier) {
            check_verifier(&format!("{name}, {verifier}"), measured, compared);
            let rate = measured.membership.value();
            values.insert(format!("{verifier}.acceptance_rate"), rate);
        }
    }
    compared.single += 1;
    compared.schemes.insert(problem.scheme().name());
    values
}

fn check_verifier(what: &str, measured: &Measured, compared: &mut Compared) {
    assert!(measured.is_ok(), "{what}: {measured:#?}");
    if let Ok(variation) = &measured.total_variation {
        compared.exact_laws += usize::from(variation.exact.is_some());
    }
    compared.expected_rates += usize::from(measured.expected.is_some());
    let (algorithmic, membership) = (
        measured.algorithmic.rational(),
        measured.membership.rational(),
    );
    if let (Some(algorithmic), Some(membership)) = (algorithmic, membership) {
        assert!(algorithmic <= membership, "{what}");
    }
    let (_, formula) = &measured.formula;
    // Passes over i.i.d. drafts bound what their last ones leave.
    let most = if measured.note.is_some() && what.ends_with("level-4") {
        1e-2
    } else {
        1e-6
    };
    assert!(formula.width() <= most, "{what}: {formula:?}");
}

fn block(problem: &BlockProblem, compared: &mut Compared) -> Values {
    let name = problem.name();
    let evaluation = evaluate_block(problem, problem.drafts());
    assert!(evaluation.is_ok(), "{name}: {:?}", evaluation.complaints());
    assert_eq!(evaluation.meets_file(), Some(true), "{name}");
    for method in &evaluation.methods {
        assert_ne!(method.outcome.status(), "failed", "{name}: {method:?}");
    }
    let optimum = evaluation.block_optimum().unwrap().value();
    let mut values = Values::from([
        ("lemma_5_1".to_owned(), evaluation.lemma_5_1.value()),
        (
            "per_depth_bound".to_owned(),
            evaluation.per_depth_bound.value(),
        ),
        ("block_lp".to_owned(), optimum),
    ]);
    for verifier in &evaluation.verifiers {
        let law = verifier.outcome.done().unwrap();
        if verifier.name != BlockRule::SPECTR_GBV || problem.drafts() == 1 {
            assert!(law.lossless, "{name}: {verifier:?}");
            assert!(law.undefined_mass.value() <= 1e-15, "{name}: {verifier:?}");
        }
        values.insert(
            format!("{}.expected_accepted_length", verifier.name),
            law.expected_accepted_length.value(),
        );
    }
    compared.block += 1;
    values
}
