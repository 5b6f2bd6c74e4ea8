//! Random problems of blocks, for tests.

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use specgap_core::problem::BlockProblem;
use specgap_number::distribution::{Draft, Rational, Target, ratio};
use std::collections::BTreeMap;

/// Conditionals in fractions of small integers, some of them 0.
pub(crate) fn random_problem(rng: &mut ChaCha8Rng, vocab: usize, length: usize) -> BlockProblem {
    let mut prefixes: Vec<Vec<usize>> = vec![Vec::new()];
    let (mut target, mut draft) = (BTreeMap::new(), BTreeMap::new());
    for _ in 0..length {
        let mut longer = Vec::new();
        for prefix in &prefixes {
            let name: Vec<String> = prefix.iter().map(usize::to_string).collect();
            let mut row = || {
                let mut weights: Vec<u32> = (0..vocab).map(|_| rng.random_range(0..6)).collect();
                weights[rng.random_range(0..vocab)] += 1;
                let sum: u32 = weights.iter().sum();
                let fraction = |w: &u32| ratio(&(*w).into(), &sum.into());
                weights.iter().map(fraction).collect::<Vec<Rational>>()
            };
            target.insert(name.join(" "), Target::from_rationals(row()).unwrap());
            draft.insert(name.join(" "), Draft::from_rationals(row()).unwrap());
            for token in 0..vocab {
                longer.push([prefix.as_slice(), &[token]].concat());
            }
        }
        prefixes = longer;
    }
    BlockProblem::new("random".to_owned(), vocab, length, 1, target, draft, None).unwrap()
}
