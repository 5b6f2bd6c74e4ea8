//! Slot weights beyond i.i.d. drafts: for any law of the draft set there are
//! weights that attain alpha*. Here for sequential draws without replacement, by
//! enumeration of the sets, in code that shares nothing with the library's solver.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use specgap::distribution::{Draft, Target};
use specgap::optimum::flow;
use specgap::problem::Problem;
use specgap::scheme::WithoutReplacement;

/// Sets by their members in one side of the split, with probabilities.
type Sets = Vec<(Vec<usize>, f64)>;

/// Emission of every token under weights exp(theta), reject weight `reject`.
fn emission(sets: &Sets, theta: &[f64], reject: f64) -> Vec<f64> {
    let mut emitted = vec![0.0; theta.len()];
    for (set, mass) in sets {
        let total: f64 = reject + set.iter().map(|&i| theta[i].exp()).sum::<f64>();
        for &i in set {
            emitted[i] += mass * theta[i].exp() / total;
        }
    }
    emitted
}

/// Coordinate-wise solution of emitted = wanted by bisection, swept until nothing
/// moves; where `capped`, theta <= 0 and emission may stay below wanted there.
fn solve(sets: &Sets, wanted: &[f64], reject: f64, capped: bool) -> Vec<f64> {
    let mut theta: Vec<f64> = vec![0.0; wanted.len()];
    for _ in 0..4000 {
        let mut moved = 0.0f64;
        for i in 0..wanted.len() {
            let before = theta[i];
            let (mut low, mut high) = (-60.0, if capped { 0.0 } else { 60.0 });
            for _ in 0..60 {
                theta[i] = 0.5 * (low + high);
                let own: f64 = sets
                    .iter()
                    .filter(|(set, _)| set.contains(&i))
                    .map(|(set, mass)| {
                        let total = reject + set.iter().map(|&j| theta[j].exp()).sum::<f64>();
                        mass * theta[i].exp() / total
                    })
                    .sum();
                if own < wanted[i] {
                    low = theta[i];
                } else {
                    high = theta[i];
                }
            }
            moved = moved.max((theta[i] - before).abs());
        }
        if moved < 1e-13 {
            break;
        }
    }
    theta
}

/// 60 random problems, V from 3 to 6, n from 2 to 4: the two halves together give
/// the law p and accept alpha* of the flow.
#[test]
fn slot_weights_attain_the_optimum_of_sequential_draws() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let mut split = 0;
    for trial in 0..60 {
        let vocab = 3 + trial % 4;
        let drafts = (2 + trial % 3).min(vocab - 1);
        let mut row = || -> Vec<f64> {
            let raw: Vec<f64> = (0..vocab)
                .map(|_| rng.random::<f64>().powi(2) + 0.01)
                .collect();
            let total: f64 = raw.iter().sum();
            raw.iter().map(|x| x / total).collect()
        };
        let (p, q) = (Target::new(&row()).unwrap(), Draft::new(&row()).unwrap());
        let problem =
            Problem::new("sequential", p.clone(), WithoutReplacement::new(q, drafts)).unwrap();
        let optimum = flow::solve(&problem).optimum();
        let subset = optimum.subset.unwrap();
        let within = |token: &u32| subset.contains(&(*token as usize));
        split += usize::from(!subset.is_empty());

        let law = problem.scheme().set_law();
        let (mut inner, mut outer): (Sets, Sets) = (Vec::new(), Vec::new());
        for (set, &mass) in law.sets.iter().zip(&law.probabilities) {
            let tokens = |inside: bool| -> Vec<usize> {
                let chosen = set.iter().filter(|token| within(token) == inside);
                chosen.map(|&token| token as usize).collect()
            };
            if set.iter().all(&within) {
                inner.push((tokens(true), mass));
            } else {
                outer.push((tokens(false), mass));
            }
        }
        let target = p.probabilities();
        let side = |inside: bool| -> Vec<f64> {
            (0..vocab)
                .map(|token| {
                    if subset.contains(&token) == inside {
                        target[token]
                    } else {
                        0.0
                    }
                })
                .collect()
        };
        let low = emission(&inner, &solve(&inner, &side(true), 1.0, false), 1.0);
        let high = emission(&outer, &solve(&outer, &side(false), 0.0, true), 0.0);
        let mut accepted = 0.0;
        for token in 0..vocab {
            let emitted = low[token] + high[token];
            assert!(
                emitted <= target[token] + 1e-10,
                "trial {trial}: {emitted} {}",
                target[token]
            );
            if subset.contains(&token) {
                assert!((emitted - target[token]).abs() < 1e-10, "trial {trial}");
            }
            accepted += emitted;
        }
        assert!(
            (accepted - optimum.rate.value()).abs() < 1e-9,
            "trial {trial}: {accepted} against {:?}",
            optimum.rate
        );
    }
    assert!(split > 30, "only {split} problems reject anything");
}
