//! Bounds of listed rows against completions drawn at random, and one that attains them.

use super::iid_tests::{row, rows};
use super::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

#[test]
fn bounds_hold_under_every_completion() {
    let mut rng = ChaCha8Rng::seed_from_u64(31);
    let (mut answered, mut attained) = (0, 0);
    for round in 0..400 {
        let drafts = 1 + round % 4;
        let listed = 2 + round % 5;
        let kind = [0, 2, 5][round % 3];
        // A full row, of which the heaviest q are listed.
        let vocab = listed + 6;
        let (p, q) = (row(kind, vocab, &mut rng), row(5, vocab, &mut rng));
        let mut order: Vec<usize> = (0..vocab).collect();
        order.sort_by(|&a, &b| q[b].total_cmp(&q[a]));
        let list = |row: &[f64]| -> Vec<f64> { order[..listed].iter().map(|&x| row[x]).collect() };
        let (p_list, q_list) = (list(&p), list(&q));
        let unlisted: f64 = order[listed..].iter().map(|&x| q[x]).sum();
        let missing: f64 = order[listed..].iter().map(|&x| p[x]).sum();
        let largest = q[order[listed]];
        let known = ListedRows {
            target: &p_list,
            draft: &q_list,
            unlisted,
            apart: 0.0,
            largest,
        };
        for straddle in [Straddle::Once, Straddle::Independent] {
            let Some(rates) = listed_rates(known, drafts, straddle, |c| c * unlisted) else {
                continue;
            };
            answered += 1;
            let [least, most] = rates.optimum;
            assert!(least <= most && most <= 1.0);
            let mut lowest = 1.0f64;
            for completion in 0..6 {
                // Unlisted q in tokens of at most `largest`; unlisted p anywhere.
                let extra = 8 + vocab;
                let mut q_more: Vec<f64> = vec![0.0; extra];
                let mut left = unlisted;
                for mass in &mut q_more {
                    *mass = (largest * (0.3 + 0.7 * rng.random::<f64>())).min(left);
                    left -= *mass;
                }
                if left > 0.0 {
                    continue;
                }
                let mut p_more: Vec<f64> = match completion {
                    0 => q_more
                        .iter()
                        .map(|&q| f64::from(u8::from(q == 0.0)))
                        .collect(),
                    1 => q_more.clone(),
                    _ => row([0, 2, 3, 5][completion - 2], extra, &mut rng),
                };
                let sum: f64 = p_more.iter().sum();
                if sum <= 0.0 {
                    continue;
                }
                p_more.iter_mut().for_each(|p| *p *= missing / sum);
                let whole = |a: &[f64], b: &[f64]| -> Vec<f64> { [a, b].concat() };
                let (target, draft) = rows(&whole(&p_list, &p_more), &whole(&q_list, &q_more));
                let of =
                    |levels| LevelPasses::solve(&target, &draft, drafts, straddle, levels).unwrap();
                let all = of(Levels::ADAPTIVE);
                let optimum = all.optimal_acceptance_rate();
                assert!(optimum.upper() >= least - 1e-12, "{rates:?} {optimum:?}");
                assert!(optimum.lower() <= most + 1e-12, "{rates:?} {optimum:?}");
                let four = of(Levels::FOUR).acceptance_rate().value();
                assert!(rates.passes[0] <= four + 1e-12 && four <= rates.passes[1] + 1e-12);
                lowest = lowest.min(optimum.lower());
            }
            attained += usize::from(lowest < least + 1e-7);
        }
    }
    assert!(answered > 300 && attained > 100, "{answered} {attained}");
}

#[test]
fn light_listed_tokens_are_as_unlisted_ones() {
    let rows = |largest| ListedRows {
        target: &[0.5, 0.2, 0.2],
        draft: &[0.4, 0.3, 0.1],
        unlisted: 0.2,
        apart: 0.0,
        largest,
    };
    let narrow = listed_rates(rows(0.09), 2, Straddle::Once, |c| c * 0.2)
        .unwrap()
        .optimum;
    let wide = listed_rates(rows(0.1), 2, Straddle::Once, |c| c * 0.2)
        .unwrap()
        .optimum;
    assert!(
        wide[0] < narrow[0] && narrow[1] <= wide[1],
        "{narrow:?} {wide:?}"
    );
    // Nothing that is listed is sure to be heavy: what is certain is open.
    assert_eq!(listed_rates(rows(0.4), 3, Straddle::Once, |_| 1.0), None);
    assert_eq!(listed_rates(rows(0.1), 0, Straddle::Once, |_| 1.0), None);
}

/// The draft's only token, which the target's list lacks: it has up to 0.3 of p, and is always drafted.
#[test]
fn certain_tokens_that_the_target_does_not_list_count() {
    let rows = ListedRows {
        target: &[0.0],
        draft: &[1.0],
        unlisted: 0.0,
        apart: 1.0,
        largest: 0.0,
    };
    for straddle in [Straddle::Once, Straddle::Independent] {
        let found = listed_rates(rows, 2, straddle, |c| c.min(0.3)).unwrap();
        assert!((found.optimum[1] - 0.3).abs() < 1e-12, "{found:?}");
        assert!(found.optimum[0] < 1e-12 && found.passes[1] >= 0.3 - 1e-12);
    }
}
