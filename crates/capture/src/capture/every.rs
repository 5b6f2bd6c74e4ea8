//! For tests: every way that chances may fall, and pairs of models small enough to go through all.

use super::rounds::Chance;
use super::sampling::Law;
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;

/// Every way that chances may fall, one after the other, each with its probability.
#[derive(Default)]
pub(super) struct Every {
    /// Which of the ways each choice takes, and the probabilities of them.
    choices: Vec<(usize, Vec<f64>)>,
    at: usize,
}

impl Every {
    fn choose(&mut self, ways: Vec<f64>) -> usize {
        if self.at == self.choices.len() {
            let first = ways.iter().position(|&way| way > 0.0).unwrap();
            self.choices.push((first, ways));
        }
        self.at += 1;
        self.choices[self.at - 1].0
    }

    pub(super) fn weight(&self) -> f64 {
        let chosen = self.choices.iter().map(|(way, ways)| ways[*way]);
        chosen.product()
    }

    /// Goes on to the next way; false behind the last.
    pub(super) fn next(&mut self) -> bool {
        self.at = 0;
        while let Some((way, ways)) = self.choices.last_mut() {
            if let Some(more) = ways[*way + 1..].iter().position(|&way| way > 0.0) {
                *way += more + 1;
                return true;
            }
            self.choices.pop();
        }
        false
    }
}

impl Chance for Every {
    fn below(&mut self, chance: f64) -> bool {
        let chance = chance.clamp(0.0, 1.0);
        self.choose(vec![chance, 1.0 - chance]) == 0
    }

    fn token(&mut self, law: &Law) -> usize {
        self.choose(law.probabilities().collect())
    }

    fn of(&mut self, weights: &[f64]) -> Option<usize> {
        let total: f64 = weights.iter().sum();
        (total > 0.0).then(|| self.choose(weights.iter().map(|w| w / total).collect()))
    }
}

/// Laws of both models by prefix.
pub(super) struct Pair {
    pub vocab: usize,
    pub laws: BTreeMap<Vec<usize>, [Vec<f64>; 2]>,
}

impl Pair {
    pub(super) fn random(rng: &mut ChaCha8Rng, vocab: usize, length: usize) -> Self {
        let mut laws = BTreeMap::new();
        let mut prefixes = vec![Vec::new()];
        for _ in 0..length {
            let mut longer = Vec::new();
            for prefix in prefixes {
                let mut row = || {
                    let weights: Vec<f64> = (0..vocab)
                        .map(|_| f64::from(rng.random_range(0..6u8)) + 0.25)
                        .collect();
                    let sum: f64 = weights.iter().sum();
                    weights.into_iter().map(|w| w / sum).collect::<Vec<f64>>()
                };
                let rows = [row(), row()];
                longer.extend((0..vocab).map(|token| [&prefix[..], &[token]].concat()));
                laws.insert(prefix, rows);
            }
            prefixes = longer;
        }
        Self { vocab, laws }
    }

    pub(super) fn law(&self, which: usize, prefix: &[usize]) -> Law {
        Law::of_weights(self.laws[prefix][which].clone()).unwrap()
    }

    /// p of all texts of a length that begin with a prefix.
    pub(super) fn texts(
        &self,
        prefix: &[usize],
        length: usize,
        mass: f64,
    ) -> Vec<(Vec<usize>, f64)> {
        if prefix.len() == length {
            return vec![(prefix.to_vec(), mass)];
        }
        let p = &self.laws[prefix][0];
        (0..self.vocab)
            .flat_map(|token| self.texts(&[prefix, &[token]].concat(), length, mass * p[token]))
            .collect()
    }
}
