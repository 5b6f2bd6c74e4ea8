//! Passes with one clock a token against all tuples and all sets.

use super::iid_tests::{KINDS, follow, least_over_all_sets, mass_of, row, tuples};
use super::*;
use crate::PlanError;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use specgap_number::distribution::{Draft, Target};

fn checked(p: &Target, rows: &[Draft]) -> [f64; 2] {
    let passes = ClockPasses::solve(p, rows).unwrap();
    let mut output = vec![0.0; p.vocab()];
    let mut accepted = 0.0;
    let drafts: Vec<&[f64]> = rows.iter().map(|q| q.probabilities()).collect();
    for (tuple, mass) in tuples(&drafts) {
        let shares = passes.accepted(&tuple);
        let mut rest = mass;
        for (&token, share) in tuple.iter().zip(shares) {
            output[token as usize] += mass * share;
            accepted += mass * share;
            rest -= mass * share;
        }
        for (output, share) in output.iter_mut().zip(passes.residual().iter()) {
            *output += rest * share;
        }
    }
    for (output, p) in output.iter().zip(p.probabilities()) {
        assert!((output - p).abs() < 1e-12, "{p} {output} {rows:?}");
    }
    let known = passes.acceptance_rate();
    assert!(
        (known.lower() - 1e-13..=known.upper() + 1e-13).contains(&accepted),
        "{accepted}"
    );
    let inside = |set| drafts.iter().map(|q| mass_of(q, set)).product::<f64>();
    let best = least_over_all_sets(p.probabilities(), inside);
    let optimum = passes.optimal_acceptance_rate();
    assert!(
        optimum.lower() <= best + 1e-12 && best <= optimum.upper() + 1e-12,
        "{best} {optimum:?}"
    );
    let held = (0..p.vocab()).filter(|&x| passes.holds(x as u32));
    let held = held.map(|x| 1 << x).sum();
    let bound = 1.0 + mass_of(p.probabilities(), held) - inside(held);
    assert!((bound - optimum.upper()).abs() < 1e-12);
    [best, known.value()]
}

#[test]
fn passes_are_lossless_and_close_to_the_minimum_over_sets() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut worst = 0.0f64;
    for _ in 0..60 {
        let (vocab, n) = (rng.random_range(3..7), rng.random_range(1..4));
        let mut draw = || row(rng.random_range(0..KINDS), vocab, &mut rng);
        let p = Target::new(&draw()).unwrap();
        let drafts: Vec<Draft> = (0..n).map(|_| Draft::new(&draw()).unwrap()).collect();
        let [best, rate] = checked(&p, &drafts);
        worst = worst.max(best - rate);
    }
    assert!(worst < 1e-5, "{worst}");
}

#[test]
fn equal_rows_and_rows_apart_reach_the_optimum() {
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    for trial in 0..30 {
        let n = 2 + trial % 3;
        let p = Target::new(&row(trial % KINDS, 6, &mut rng)).unwrap();
        let q = row(trial % KINDS, 6, &mut rng);
        let drafts: Vec<Draft> = if trial % 2 == 0 {
            vec![Draft::new(&q).unwrap(); n]
        } else {
            // Draft j has every n-th token.
            let own = |j: usize| -> Vec<f64> {
                let part = |x: usize| if x % n == j { q[x] + 0.01 } else { 0.0 };
                let all: Vec<f64> = (0..6).map(part).collect();
                let sum: f64 = all.iter().sum();
                all.iter().map(|x| x / sum).collect()
            };
            (0..n).map(|j| Draft::new(&own(j)).unwrap()).collect()
        };
        let [best, rate] = checked(&p, &drafts);
        assert!(best - rate < 1e-6, "{trial} {best} {rate}");
    }
}

/// `problems/refuted/straddled-strata-not-reached.toml`: clocks for each draft and token stay at
/// 199/245.
#[test]
fn one_clock_a_token_reaches_the_optimum_of_strata_that_share_a_token() {
    let p = Target::new(&[0.4, 0.4, 0.2, 0.0]).unwrap();
    let drafts = [[0.0, 4.0, 3.0, 0.0], [2.0, 0.0, 1.0, 4.0]];
    let drafts = drafts.map(|row| Draft::new(&row.map(|x| x / 7.0)).unwrap());
    let [best, rate] = checked(&p, &drafts);
    assert!(
        (best - 31.0 / 35.0).abs() < 1e-12 && best - rate < 1e-9,
        "{best} {rate}"
    );
}

#[test]
fn simulated_rounds_follow_the_shares() {
    let mut rng = ChaCha8Rng::seed_from_u64(17);
    let p = Target::new(&[0.1, 0.3, 0.05, 0.35, 0.2]).unwrap();
    let drafts = [[0.2, 0.2, 0.2, 0.2, 0.2], [0.0, 0.1, 0.5, 0.2, 0.2]];
    let drafts = drafts.map(|row| Draft::new(&row).unwrap());
    let passes = ClockPasses::solve(&p, &drafts).unwrap();
    for tuple in [[1, 2], [3, 3], [0, 4]] {
        let shares = passes.accepted(&tuple);
        follow(&tuple, shares, 40_000, || passes.emit(&tuple, &mut rng));
    }
    assert_eq!(
        ClockPasses::solve(&p, &[]).unwrap_err(),
        PlanError::Drafts(0)
    );
    let short = Draft::new(&[1.0]).unwrap();
    assert!(ClockPasses::solve(&p, &[drafts[0].clone(), short]).is_err());
}
