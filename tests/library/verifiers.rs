//! Are verifiers lossless, and laws' optima attained, as a whole problem's evaluation
//! measures it?

use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use specgap::distribution::{
    Draft, Rational, Target, TupleProbabilities, exact_value, parse_rational,
};
use specgap::evaluate::{Basis, Evaluated, Limits, solve, verify};
use specgap::known::Known;
use specgap::number::Number;
use specgap::problem::Problem;
use specgap::row::{Rows, Workspace};
use specgap::scheme::{
    Composition, Draws, MadeOf, SchemeName, Top, WithReplacement, WithoutReplacement,
};
use specgap::verifier::{KSeq, VerifierName, verifier};

fn target(raw: &[f64]) -> Target {
    Target::new(&normalised_row(raw)).unwrap()
}

fn draft(raw: &[f64]) -> Draft {
    Draft::new(&normalised_row(raw)).unwrap()
}

fn normalised_row(raw: &[f64]) -> Vec<f64> {
    let total: f64 = raw.iter().sum();
    raw.iter().map(|x| x / total).collect()
}

/// Every law of the table where it applies, on one q.
fn all_problems(p: &Target, q: &Draft, other: &Draft, drafts: usize) -> Vec<Problem> {
    let vocab = q.vocab();
    let rows: Vec<Draft> = (0..drafts)
        .map(|k| if k % 2 == 0 { q.clone() } else { other.clone() })
        .collect();
    let size = u32::try_from(vocab).unwrap();
    let tuples: Vec<Vec<u32>> = (0..size)
        .map(|start| {
            (0..u32::try_from(drafts).unwrap())
                .map(|k| (start * 3 + k * k) % size)
                .collect()
        })
        .collect();
    let list = TupleProbabilities::from_rationals(
        (0..vocab).map(|i| other.exact().probability(i)).collect(),
    )
    .unwrap();
    SchemeName::ALL
        .into_iter()
        .filter(|name| name.fits(drafts) && (drafts <= vocab || !name.draws_distinct_tokens()))
        .map(|name| {
            let law = match name.entry().made_of {
                MadeOf::OneDraft(make) => make(q.clone(), drafts),
                MadeOf::EachDraft(make) => make(rows.clone()).unwrap(),
                MadeOf::Tuples(make) => make(vocab, drafts, tuples.clone(), list.clone()).unwrap(),
                MadeOf::Parts(make) => make(vocab, a_composition(q, other, drafts)).unwrap(),
            };
            Problem::from_law(name.as_str(), p.clone(), law).unwrap()
        })
        .collect()
}

/// A law of n drafts with some of everything.
fn a_composition(q: &Draft, other: &Draft, drafts: usize) -> Composition {
    let third = || Rational::new(1.into(), 3.into());
    let draws = |draft: &Draft, count: usize, how| Composition::Draws {
        draft: draft.clone(),
        count,
        how,
    };
    let vocab = q.vocab();
    let last = Composition::Mixture(vec![
        (third(), draws(q, 1, Draws::Stopped(third()))),
        (third() + third(), draws(other, 1, Draws::Independent)),
    ]);
    let pair = draws(q, 2.min(vocab), Draws::Sequential);
    let mut parts = match drafts {
        1 => return last,
        2 => vec![draws(other, 1, Draws::Distinct)],
        3 if vocab > 1 => vec![pair],
        _ => vec![
            Composition::Fixed(vec![vocab - 1; drafts - 2]),
            draws(other, 1, Draws::Stopped(third())),
        ],
    };
    parts.push(last);
    Composition::Union(parts)
}

/// Weights over their sum; at least one is positive.
fn weights(vocab: usize) -> impl Strategy<Value = Vec<u32>> {
    // Zeros and equal weights are common on purpose.
    prop::collection::vec(prop_oneof![Just(0u32), 1u32..4, 1u32..1000], vocab)
        .prop_filter("some mass", |row| row.iter().any(|&weight| weight > 0))
}

fn fractions(row: &[u32]) -> Vec<Rational> {
    let total: u32 = row.iter().sum();
    row.iter()
        .map(|&weight| Rational::new(weight.into(), total.into()))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// Losslessness with tolerance 0, every verifier under every scheme that it
    /// takes, and everything that must hold between the rates.
    #[test]
    fn every_rule_is_lossless_and_bounded(
        (p, q, other, drafts) in (1usize..5).prop_flat_map(|vocab| {
            (weights(vocab), weights(vocab), weights(vocab), 1usize..4)
        })
    ) {
        let p = Target::from_rationals(fractions(&p)).unwrap();
        let q = Draft::from_rationals(fractions(&q)).unwrap();
        let other = Draft::from_rationals(fractions(&other)).unwrap();
        for problem in all_problems(&p, &q, &other, drafts) {
            let evaluation = verify(&problem);
            let best = evaluation.optimum.clone().unwrap().rational().cloned().unwrap();
            for one in &evaluation.verifiers {
                let Some(measured) = one.outcome.done() else { continue };
                let variation = measured.total_variation.as_ref().unwrap();
                if one.name == VerifierName::LEVEL {
                    // It has no law in fractions.
                    prop_assert!(variation.value < 1e-13);
                    prop_assert!(measured.is_ok(), "{:?}", measured);
                    continue;
                }
                prop_assert!(
                    variation.exact.as_ref().is_some_and(Number::is_nil),
                    "{} on {}: {:?}", one.name, problem.name(), variation
                );
                prop_assert_eq!(measured.formula_agrees, Some(true), "{} {:?}", one.name, measured);
                let (algorithmic, membership) =
                    (measured.algorithmic.rational().unwrap(), measured.membership.rational().unwrap());
                prop_assert!(membership <= &best);
                if one.name == VerifierName::K_SEQ {
                    // The factor is the root rounded up, so a residual of about
                    // 1e-16 is left on tokens that can be rejected.
                    let bonus = membership - algorithmic;
                    prop_assert!(bonus >= Rational::zero());
                    prop_assert!(bonus < parse_rational("1e-14").unwrap());
                    let n = i32::try_from(drafts).unwrap();
                    let miss = Rational::one() - Rational::new(1.into(), drafts.into());
                    let share = Rational::one() - num_traits::Pow::pow(&miss, n);
                    prop_assert!(membership + parse_rational("1e-14").unwrap() >= &share * &best);
                } else if one.name == VerifierName::LEVEL_4 && measured.note.is_some() {
                    // Of i.i.d. drafts, whose last passes leave a little of both.
                    prop_assert!(algorithmic <= membership);
                    continue;
                } else {
                    prop_assert_eq!(algorithmic, membership);
                }
                if [VerifierName::SPECHUB, VerifierName::GREEDY, VerifierName::OPTIMAL]
                    .contains(&one.name)
                {
                    prop_assert_eq!(membership, &best);
                }
                let blind = [
                    VerifierName::EXACT_MATCH,
                    VerifierName::SHARED_GUMBEL,
                    VerifierName::GLS,
                ];
                if drafts == 1 && !blind.contains(&one.name) && one.name != VerifierName::K_SEQ {
                    prop_assert_eq!(membership, &best);
                }
            }
        }
    }
}

/// The factor is the smallest f64 that is lossless, however many bits that takes, and `verify`
/// has nothing to say: drafts that are all one token, light tokens, equal rows, few and many
/// drafts.
#[test]
fn the_factor_of_k_seq_is_the_smallest_that_is_lossless() {
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    let mut cases = vec![
        (vec![1.0, 1e-310, 1e-310, 1e-310, 1e-310], 0, 28),
        (vec![1.0, 1e-310, 1e-310, 1e-310, 1e-310], 0, 64),
        (vec![1.0, 1e-310, 0.0, 0.0, 0.0], 0, 64),
        (vec![1.0, 1e-17], 0, 64),
        (vec![1e-17, 1.0], 0, 64),
        (vec![1e-310, 1.0], 0, 3),
        (vec![5e-324, 1.0], 0, 64),
    ];
    for _ in 0..40 {
        let vocab = rng.random_range(2..6);
        let scale: f64 = [0.5, 30.0, 700.0][rng.random_range(0..3)];
        let row: Vec<f64> = (0..vocab)
            .map(|_| (-scale * rng.random::<f64>()).exp())
            .collect();
        let sum: f64 = row.iter().sum();
        let row = row.iter().map(|mass| mass / sum).collect();
        cases.push((row, rng.random_range(0..vocab), rng.random_range(1..=64)));
    }
    for (p, hot, drafts) in cases {
        for spread in [0.0, 1e-300, 1e-9, 0.25] {
            let mut q = vec![0.0; p.len()];
            q[hot] = 1.0;
            q[(hot + 1) % p.len()] += spread;
            let sum: f64 = q.iter().sum();
            q.iter_mut().for_each(|mass| *mass /= sum);
            // Sums over tuples stay few.
            let drafts = if spread > 0.0 { drafts.min(5) } else { drafts };
            let scheme = WithReplacement::new(draft(&q), drafts);
            let problem = Problem::new("", target(&p), scheme).unwrap();
            let what = format!("p {p:?}, q {q:?}, n = {drafts}");
            let rule = KSeq::new(&problem).unwrap();
            if rule.factor() > 1.0 {
                let below = exact_value(rule.factor().next_down()).unwrap();
                assert!(KSeq::with_factor(&problem, below).is_err(), "{what}");
            }
            let own = exact_value(rule.factor()).unwrap();
            assert!(KSeq::with_factor(&problem, own).is_ok());
            let report = verify(&problem);
            let measured = report.measured(VerifierName::K_SEQ).unwrap();
            assert!(measured.complaints().is_empty(), "{what}: {measured:?}");
            let variation = measured.total_variation.as_ref().unwrap();
            assert!(
                variation.exact.as_ref().is_none_or(Number::is_nil),
                "{what}: {variation:?}"
            );
        }
    }
    let scheme = WithReplacement::new(draft(&[1.0, 0.0]), 64);
    let problem = Problem::new("", target(&[1.0, 1e-17]), scheme).unwrap();
    let factor = KSeq::new(&problem).unwrap().factor();
    // 1/(1 - d^(1/64)), d = 1e-17/(1 + 1e-17).
    assert!((factor - 2.185_6).abs() < 1e-4, "{factor}");
}

#[test]
fn extremes_are_handled() {
    // p = q: the first draft is always accepted, and nothing is left.
    for (p, q) in [
        (vec![0.25, 0.75], vec![0.25, 0.75]),
        (vec![1.0, 0.0], vec![1.0, 0.0]),
        (vec![1.0, 0.0], vec![0.0, 1.0]),
        (vec![1.0 - 1e-15, 1e-15], vec![1.0, 0.0]),
        (vec![1.0, 0.0], vec![1.0 - 1e-15, 1e-15]),
        (vec![0.5, 0.5], vec![1e-300, 1.0]),
        (vec![1.0], vec![1.0]),
    ] {
        let (p, q) = (target(&p), draft(&q));
        for drafts in 1..=3 {
            for problem in all_problems(&p, &q, &q, drafts) {
                let evaluation = verify(&problem);
                assert!(evaluation.is_ok(), "{evaluation:#?}");
                for name in VerifierName::ALL {
                    let Ok(rule) = verifier(name, &problem) else {
                        continue;
                    };
                    let mut rng = ChaCha8Rng::seed_from_u64(3);
                    problem.scheme().for_each_tuple(&mut |tuple, mass| {
                        let law = rule.conditional(tuple);
                        for (&token, &accepted) in tuple.iter().zip(&law.accepted) {
                            let possible = problem.target().is_positive(token as usize);
                            assert!(possible || accepted == 0.0, "{name}");
                        }
                        if mass == 0.0 {
                            return;
                        }
                        for _ in 0..20 {
                            let verdict = rule.sample(tuple, &mut rng);
                            let token = verdict.token as usize;
                            assert!(problem.target().is_positive(token), "{name} {problem:?}");
                        }
                    });
                }
            }
        }
    }
}

/// Exact in `solve` with a certificate, attained by `naive`, and the same on a row.
#[test]
fn the_optimum_is_p_of_the_top_tokens() {
    let row = |texts: [&str; 5]| texts.map(|text| parse_rational(text).unwrap()).to_vec();
    // Token 1 ties with token 3, and token 4 is never drafted.
    let p = Target::from_rationals(row(["1/10", "1/5", "1/4", "3/10", "3/20"])).unwrap();
    let q = Draft::from_rationals(row(["1/8", "1/4", "3/8", "1/4", "0"])).unwrap();
    let tops: [&[usize]; 5] = [&[2], &[2, 1], &[2, 1, 3], &[2, 1, 3, 0], &[2, 1, 3, 0]];
    let mut workspace = Workspace::new();
    let rows = Rows {
        target: p.probabilities(),
        draft: q.probabilities(),
    };
    let mut loaded = workspace.load(rows, 5).unwrap();
    for (drafts, top) in (1..).zip(tops) {
        let scheme = Top::new(q.clone(), drafts);
        assert_eq!(scheme.top(), top);
        let problem = Problem::new("top", p.clone(), scheme).unwrap();
        let expected = p.exact().mass(top);
        let solution = solve(&problem, &Limits::default());
        assert!(solution.is_ok(), "{:?}", solution.agreement);
        assert_eq!(solution.proof.basis, Basis::FlowEqualsCut);
        assert_eq!(solution.optimal_acceptance_rate.rational(), Some(&expected));
        let evaluation = verify(&problem);
        assert!(evaluation.is_ok());
        let naive = evaluation.measured(VerifierName::EXACT_MATCH).unwrap();
        assert_eq!(naive.membership.rational(), Some(&expected));
        let on_row = loaded.top_mass(drafts);
        assert!(on_row.may_equal(&Known::exact(expected)) && on_row.width() < 1e-14);
    }
}

/// Rows with sums of subnormal numbers are verified without a complaint.
#[test]
fn denormal_rests_are_verified() {
    let p = Target::new(&[1.0 / 7.0; 7]).unwrap();
    let q = Draft::new(&[5e-324, 1.0, 2.2e-308, 1e-310, 2.2e-308, 1e-310, 0.0]).unwrap();
    let problem = Problem::new("row", p, WithoutReplacement::new(q, 4)).unwrap();
    assert!(verify(&problem).is_ok());
}
