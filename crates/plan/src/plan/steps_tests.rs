//! How many steps a solve takes, and how near to alpha* it comes: a step that is worse than it
//! ought to be is made up for by more of them, so that the plan alone would not tell.

use super::{PlanSettings, Rising, TokenPlan};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use specgap_number::distribution::{Draft, Target};
use specgap_row::row::sequential_subset;

/// A pair of rows of `vocab` tokens: noise over a fall like rank^-`slope`, of which target and
/// draft have a part in common, and some tokens that one of them does not have.
fn rows(vocab: usize, slope: f64, noise: f64, absent: f64, seed: u64) -> [Vec<f64>; 2] {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (mut target, mut draft) = (Vec::new(), Vec::new());
    for token in 0..vocab {
        let shared = -slope * (token as f64 + 1.0).ln() + noise * rng.random::<f64>();
        for row in [&mut target, &mut draft] {
            let own = noise * rng.random::<f64>();
            let kept = token == 0 || rng.random::<f64>() >= absent;
            row.push(if kept { (shared + own).exp() } else { 0.0 });
        }
    }
    [target, draft].map(|mut row| {
        let sum: f64 = row.iter().sum();
        row.iter_mut().for_each(|x| *x /= sum);
        row
    })
}

/// How a pair of rows is made, and the most steps for 2, 3 and 6 drafts, i.i.d. and sequential.
type Row = ((usize, f64, f64, f64), [[usize; 2]; 3]);

const ROWS: [Row; 8] = [
    ((4, 0.5, 1.0, 0.0), [[3, 4], [3, 4], [3, 0]]),
    ((12, 1.0, 2.0, 0.2), [[4, 4], [4, 4], [3, 3]]),
    ((40, 0.0, 0.5, 0.0), [[3, 10], [3, 46], [2, 11]]),
    ((40, 2.0, 3.0, 0.3), [[3, 7], [5, 6], [4, 6]]),
    ((300, 1.0, 2.0, 0.0), [[8, 12], [11, 8], [7, 7]]),
    ((300, 1.5, 6.0, 0.2), [[5, 8], [5, 8], [5, 7]]),
    ((2000, 1.2, 2.0, 0.0), [[9, 12], [8, 12], [9, 9]]),
    ((2000, 0.7, 12.0, 0.1), [[3, 10], [4, 11], [4, 12]]),
];

#[test]
fn solves_take_few_steps() {
    for (seed, ((vocab, slope, noise, absent), steps)) in (0u64..).zip(ROWS) {
        let [p, q] = rows(vocab, slope, noise, absent, seed);
        let (p, q) = (Target::new(&p).unwrap(), Draft::new(&q).unwrap());
        for (drafts, most) in [2, 3, 6].into_iter().zip(steps) {
            let settings = PlanSettings::default();
            let subset = sequential_subset(&p, &q, drafts).unwrap();
            let plans = [
                TokenPlan::iid(&p, &q, drafts, &settings).unwrap(),
                TokenPlan::sequential(&p, &q, drafts, subset, &settings).unwrap(),
            ];
            for (plan, most) in plans.iter().zip(most) {
                let (steps, shortfall) = (plan.iterations(), plan.shortfall());
                let of = format!("{seed}, n = {drafts}, {:?}", plan.draws());
                // A last step may be needed or not by the last digits.
                assert!(steps <= most + 1 + most / 8, "{of}: {steps}");
                assert!(shortfall < 2e-12, "{of}: {shortfall}");
            }
            // The same without the plan.
            let rising = Rising::sorted(&p, &q);
            let alone = TokenPlan::attained_by_iid((&p, &q), &rising, drafts, &settings).unwrap();
            assert_eq!(alone.iterations, plans[0].iterations());
        }
    }
}
