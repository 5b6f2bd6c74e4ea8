//! Random problems of blocks, for the tests of this member and of `replay`.

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use specgap_core::problem::BlockProblem;
use specgap_number::distribution::{Draft, Rational, Target, ratio};

/// Conditionals in fractions of small integers, some of them 0.
pub(crate) fn random_problem(rng: &mut ChaCha8Rng, vocab: usize, length: usize) -> BlockProblem {
    let mut row = || {
        let mut weights: Vec<u32> = (0..vocab).map(|_| rng.random_range(0..6)).collect();
        weights[rng.random_range(0..vocab)] += 1;
        let sum: u32 = weights.iter().sum();
        let fraction = |w: &u32| ratio(&(*w).into(), &sum.into());
        weights.iter().map(fraction).collect::<Vec<Rational>>()
    };
    let made = BlockProblem::by_prefix("random", vocab, length, |prefix| {
        let mut row = (prefix.len() < length).then_some(&mut row);
        let target = row
            .as_mut()
            .map(|row| Target::from_rationals(row()).unwrap());
        let draft = row.map(|row| Draft::from_rationals(row()).unwrap());
        (target, draft)
    });
    made.unwrap()
}
