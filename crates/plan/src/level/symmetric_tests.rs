//! Symmetric passes against the level plan; against all tuples they are held where rules are.

use super::iid_tests::{KINDS, row, rows};
use super::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use specgap_number::distribution::{Draft, Target};

#[test]
fn what_is_accepted_stays_just_below_the_level_plan() {
    let mut rng = ChaCha8Rng::seed_from_u64(21);
    let mut lost = 0.0f64;
    for round in 0..400 {
        let (vocab, drafts) = (1 + round % 6, 1 + round / 6 % 4);
        let p = row(rng.random_range(0..KINDS), vocab, &mut rng);
        let q = row(rng.random_range(0..KINDS), vocab, &mut rng);
        let (p, q) = rows(&p, &q);
        let passes = SymmetricPasses::solve(&p, &q, drafts, &SYMMETRIC_LEVELS).unwrap();
        let plan = LevelPlan::iid(&p, &q, drafts).unwrap();
        let context = || format!("{:?} {:?} {drafts}", p.probabilities(), q.probabilities());
        let accepted = passes.acceptance_rate();
        let given = (0u32..).zip(p.probabilities());
        let kept: f64 = given.map(|(token, &p)| passes.given(token, p) * p).sum();
        assert!((kept - accepted.value()).abs() < 1e-13, "{}", context());
        let best = plan.acceptance_rate().value();
        assert!(accepted.value() <= best + 1e-13, "{}", context());
        let known = passes.optimal_acceptance_rate();
        assert!(
            known.lower() <= best + 1e-13 && best <= known.upper() + 1e-13,
            "{}",
            context()
        );
        lost = lost.max(best - accepted.value());
    }
    // Some rows lose something: the bound can fail.
    assert!(lost > 1e-6 && lost < 0.02, "{lost}");
}

/// With level 0 alone and one draft it is rejection; by hand at n = 2.
#[test]
fn one_pass_by_hand() {
    let (p, q) = rows(&[0.25, 0.75], &[0.5, 0.5]);
    let passes = SymmetricPasses::solve(&p, &q, 1, &[0.0]).unwrap();
    assert_eq!(passes.acceptance_rate().value(), 0.75);
    // n = 2: price 2 at the start. Parts 1/4 and 3/4, so d = 1/2 and the mean price 3/2;
    // then 1/3 and 1, d = 2/3, 4/3; then 3/8 and 1, d = 11/16, 21/16 instead of 4/3.
    let passes = SymmetricPasses::solve(&p, &q, 2, &[0.0]).unwrap();
    let accepted = 21.0 / 16.0 * 11.0 / 16.0;
    assert!((passes.acceptance_rate().value() - accepted).abs() < 1e-15);
}

/// Sums over tokens may round to above 1.
#[test]
fn no_more_than_everything_is_accepted() {
    let p = [
        0.3115264797507788,
        0.3115264797507788,
        0.003115264797507788,
        0.031152647975077885,
        0.3115264797507788,
        0.031152647975077885,
    ];
    let q = [
        0.16978377223527932,
        0.21974663095422062,
        0.2665116358908254,
        0.015540436164809686,
        0.230904242238556,
        0.097513282516309,
    ];
    let (target, draft) = (Target::new(&p).unwrap(), Draft::new(&q).unwrap());
    for drafts in 1..=64 {
        let plan = LevelPlan::iid(&target, &draft, drafts).unwrap();
        let passes = SymmetricPasses::solve(&target, &draft, drafts, &SYMMETRIC_LEVELS).unwrap();
        for rate in [plan.acceptance_rate(), passes.acceptance_rate()] {
            assert!(rate.value() <= 1.0 && rate.upper() <= 1.0, "{drafts}");
        }
    }
}
