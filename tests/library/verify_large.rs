//! Acceptance rates at a real vocabulary: rows shaped like those of a language
//! model, V = 49,152.

use crate::rows::{ranked_logits, softmax};
use specgap::distribution::{Draft, Target};
use specgap::evaluate::{Evaluated, verify};
use specgap::known::Kind;
use specgap::optimum;
use specgap::problem::Problem;
use specgap::scheme::{DraftScheme, Greedy, SchemeName, WithReplacement, WithoutReplacement};
use specgap::verifier::{
    ExactMatch, GreedyVerifier, KSeq, Rrs, RrsWo, RrsWoSettings, SharedGumbel, Token, Verifier,
    VerifierName,
};

const VOCAB: usize = 49_152;

/// Rows of a language model: peaked at temperature 0.3, flat at 1.5.
fn rows(temperature: f64, seed: u64) -> (Target, Draft) {
    softmax(&ranked_logits(VOCAB, 1.1, [0.5, 0.7], seed), temperature)
}

fn problem(p: &Target, scheme: impl DraftScheme + 'static) -> Problem {
    Problem::new("large", p.clone(), scheme).unwrap()
}

/// Enclosures of rrs-wo no wider than 1e-6, holding what simulation finds. The
/// twelve intervals have a confidence of 1 - 1e-6 each.
#[test]
fn rrs_wo_is_enclosed_within_a_millionth() {
    for (temperature, seed) in [(0.3, 1), (0.6, 2), (1.0, 3), (1.5, 4)] {
        let (p, q) = rows(temperature, seed);
        for drafts in 2..=4 {
            let problem = problem(&p, WithoutReplacement::new(q.clone(), drafts));
            let rule = RrsWo::new(&problem).unwrap();
            let rate = rule.acceptance().membership;
            assert_eq!(rate.kind(), Kind::Enclosed);
            let limit = if drafts == 2 { 3e-12 } else { 1e-6 };
            assert!(rate.width() <= limit, "{temperature} {drafts} {rate:?}");
            let simulated = rule.monte_carlo(&RrsWoSettings {
                samples: 100_000,
                confidence: 1.0 - 1e-6,
                seed,
                ..RrsWoSettings::default()
            });
            assert!(
                simulated.lower() <= rate.upper() && rate.lower() <= simulated.upper(),
                "T = {temperature}, n = {drafts}: {rate:?} {simulated:?}"
            );
            if drafts == 2 {
                let best = optimum::best(&problem).unwrap().rate;
                assert!(rate.lower() <= best.upper());
            }
        }
    }
}

/// Where the paths are too many, the rate is a frequency and says so.
#[test]
fn beyond_the_work_limit_comes_monte_carlo() {
    let (p, q) = rows(1.5, 5);
    let problem = problem(&p, WithoutReplacement::new(q, 6));
    let rule = RrsWo::new(&problem).unwrap();
    let rate = rule
        .acceptance_within(&RrsWoSettings {
            work_limit: 10_000,
            widest: 1e-9,
            samples: 20_000,
            ..RrsWoSettings::default()
        })
        .membership;
    assert_eq!(rate.kind(), Kind::MonteCarlo);
    let (lower, upper) = rule.enclosure(&RrsWoSettings {
        work_limit: 1_000_000,
        ..RrsWoSettings::default()
    });
    assert!(lower < upper && lower <= rate.upper() && rate.lower() <= upper);
}

#[test]
fn closed_forms_are_ordered_at_full_vocabulary() {
    for (temperature, seed) in [(0.3, 6), (1.0, 7)] {
        let (p, q) = rows(temperature, seed);
        let one = problem(&p, WithReplacement::new(q.clone(), 1));
        let single = Token::new(&one).unwrap().acceptance().membership;
        for drafts in 2..=4 {
            let iid = problem(&p, WithReplacement::new(q.clone(), drafts));
            let best = optimum::best(&iid).unwrap().rate;
            let rrs = Rrs::new(&iid).unwrap().acceptance().membership;
            let k_seq = KSeq::new(&iid).unwrap().acceptance();
            let naive = ExactMatch::new(&iid).acceptance().membership;
            for rate in [&rrs, &k_seq.membership, &naive] {
                assert!(rate.width() < 1e-12);
                assert!(rate.lower() <= best.upper());
            }
            let n = f64::from(u8::try_from(drafts).unwrap());
            let share = 1.0 - (1.0 - 1.0 / n).powf(n);
            assert!(k_seq.algorithmic.upper() >= share * best.lower());
            assert!(rrs.value() > single.value());
            assert!(naive.value() < rrs.value());
            let greedy = problem(&p, Greedy::new(q.clone(), drafts));
            let rate = GreedyVerifier::new(&greedy)
                .unwrap()
                .acceptance()
                .membership;
            let best = optimum::best(&greedy).unwrap().rate;
            assert!((rate.value() - best.value()).abs() < 1e-12);
            assert_eq!(rate.kind(), Kind::Enclosed);
            assert!(rate.width() > 0.0 && rate.width() < 1e-13, "{rate:?}");
            assert!(single.width() > 0.0 && single.width() < 1e-13, "{single:?}");
        }
    }
}

/// The whole evaluation works at full vocabulary: no tuple is summed, nothing is
/// left out silently.
#[test]
fn evaluation_falls_back_to_formulas() {
    let (p, q) = rows(0.6, 8);
    for problem in [
        problem(&p, WithReplacement::new(q.clone(), 3)),
        problem(&p, WithoutReplacement::new(q, 3)),
    ] {
        let evaluation = verify(&problem);
        assert!(evaluation.is_ok());
        let naive = evaluation.measured(VerifierName::EXACT_MATCH).unwrap();
        assert!(naive.total_variation.is_err());
        assert!(naive.membership.width() < 1e-9);
        if problem.scheme().name() == SchemeName::WITH_REPLACEMENT {
            let optimal = evaluation.measured(VerifierName::OPTIMAL).unwrap();
            // The level plan, and its law by an integral of its own.
            assert_eq!(optimal.lossless, Some(true));
            assert!(optimal.total_variation.as_ref().unwrap().value < 1e-12);
            assert!(optimal.gap.as_ref().unwrap().value().abs() < 1e-10);
            assert_eq!(optimal.formula_agrees, Some(true));
        } else {
            // No plan of such drafts is made at this size.
            let optimal = evaluation.measured(VerifierName::OPTIMAL);
            assert!(optimal.is_none_or(|one| one.total_variation.is_err()));
        }
        assert!(evaluation.optimum.as_ref().unwrap().width() < 1e-10);
        for name in [VerifierName::RRS, VerifierName::K_SEQ, VerifierName::RRS_WO] {
            if let Some(rule) = evaluation.measured(name) {
                assert!(rule.gap.as_ref().unwrap().value() > 0.0, "{name}");
                assert!(rule.membership.value() > naive.membership.value());
            }
        }
    }
}

/// One noise: enclosed at every number of drafts, within what can be, and as wide as said.
#[test]
fn shared_gumbel_is_enclosed() {
    for (temperature, seed) in [(0.3, 1), (1.0, 3), (1.5, 4)] {
        let (p, q) = rows(temperature, seed);
        let token = Token::new(&problem(&p, WithReplacement::new(q.clone(), 1))).unwrap();
        let overlap = token.acceptance().membership;
        let mut before = 0.0;
        for drafts in [1, 2, 4, 8] {
            let problem = problem(&p, WithoutReplacement::new(q.clone(), drafts));
            let rule = SharedGumbel::new(&problem).unwrap();
            let started = std::time::Instant::now();
            let rate = rule.acceptance().membership;
            eprintln!("{temperature} {drafts} {rate:?} {:?}", started.elapsed());
            assert_eq!(rate.kind(), Kind::Enclosed);
            let limit = if drafts == 1 { 1e-13 } else { 2e-3 };
            assert!(rate.width() <= limit, "{temperature} {drafts} {rate:?}");
            assert!(rate.upper() >= before, "{temperature} {drafts} {rate:?}");
            before = rate.lower();
            let least = overlap.lower() / (2.0 - overlap.lower());
            assert!(rate.lower() >= least - 1e-12);
            let best = optimum::best(&problem).unwrap().rate;
            assert!(rate.lower() <= best.upper());
        }
    }
}
