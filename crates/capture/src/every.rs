//! For tests: every way that chances may fall, and pairs of models small enough to go through all.

use super::rounds::Chance;
use super::sampling::Law;
use rand::{Rng, SeedableRng};
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

/// Texts, each with the mass of every number of rounds and of drafts within it.
pub(super) type Counted = BTreeMap<Vec<usize>, BTreeMap<[usize; 2], f64>>;

/// Texts in rounds of at most `most` drafts: the first `end` tokens of `total`. `round` is told
/// what stands before a round, what is carried there and how many drafts it has, and says what may
/// stand behind it, what is carried on, and the mass. What is `same` goes on as one.
pub(super) fn texts_in_rounds<C: Clone>(
    [end, total, most]: [usize; 3],
    begun: C,
    same: impl Fn(&C, &C) -> bool,
    mut round: impl FnMut(&[usize], &C, usize) -> Vec<(Vec<usize>, C, f64)>,
) -> Counted {
    let start = vec![(begun, BTreeMap::from([([0, 0], 1.0)]))];
    let mut states = BTreeMap::from([(Vec::new(), start)]);
    let mut texts = Counted::new();
    // A text comes behind what it begins with.
    while let Some((prefix, before)) = states.pop_first() {
        for (carried, counts) in before {
            if prefix.len() == end {
                let ways = texts.entry(prefix.clone()).or_default();
                for (count, mass) in counts {
                    *ways.entry(count).or_insert(0.0) += mass;
                }
                continue;
            }
            let drafted = most.min(total - prefix.len() - 1);
            let within = drafted.min(end - prefix.len() - 1);
            for (mut text, carried, share) in round(&prefix, &carried, drafted) {
                text.truncate(end);
                let behind = states.entry(text).or_default();
                let known = behind.iter().position(|(known, _)| same(known, &carried));
                let known = known.unwrap_or_else(|| {
                    behind.push((carried, BTreeMap::new()));
                    behind.len() - 1
                });
                for ([rounds, drafts], mass) in &counts {
                    let way = behind[known].1.entry([rounds + 1, drafts + within]);
                    *way.or_insert(0.0) += mass * share;
                }
            }
        }
    }
    texts
}

/// Each text with its mass, whatever its rounds were.
pub(super) fn masses(texts: &Counted) -> impl Iterator<Item = (Vec<usize>, f64)> {
    let each = texts.iter();
    each.map(|(text, ways)| (text.clone(), ways.values().sum()))
}

/// The mean number of rounds.
pub(super) fn mean_rounds(texts: &Counted) -> f64 {
    let ways = texts.values().flatten();
    ways.map(|([rounds, _], mass)| *rounds as f64 * mass).sum()
}

/// Mean and variance of the rounds of one text, or with `which` 1 of its drafts.
pub(super) fn moments(ways: &BTreeMap<[usize; 2], f64>, which: usize) -> [f64; 2] {
    let mass: f64 = ways.values().sum();
    let mean_of = |of: &dyn Fn(f64) -> f64| -> f64 {
        let each = ways.iter().map(|(counts, m)| m * of(counts[which] as f64));
        each.sum::<f64>() / mass
    };
    let mean = mean_of(&|count| count);
    [mean, mean_of(&|count| (count - mean).powi(2))]
}

impl Pair {
    /// The same laws p and q behind every prefix.
    pub(super) fn everywhere(length: usize, [p, q]: [&[f64]; 2]) -> Self {
        let mut pair = Self::random(&mut ChaCha8Rng::seed_from_u64(0), p.len(), length);
        let laws = [p.to_vec(), q.to_vec()];
        pair.laws.values_mut().for_each(|own| own.clone_from(&laws));
        pair
    }

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

    /// A chain that is drawn behind a prefix: p and q in front of each draft, and the drafts.
    pub(super) fn chain(
        &self,
        prefix: &[usize],
        drafted: usize,
        chance: &mut Every,
    ) -> ([Vec<Law>; 2], Vec<u32>) {
        let (mut text, mut laws) = (prefix.to_vec(), [Vec::new(), Vec::new()]);
        for _ in 0..drafted {
            for (which, laws) in laws.iter_mut().enumerate() {
                laws.push(self.law(which, &text));
            }
            text.push(chance.token(&laws[1][laws[1].len() - 1]));
        }
        let drafts = text.split_off(prefix.len()).into_iter();
        (laws, drafts.map(|token| token as u32).collect())
    }

    /// Returns how far the law of texts of a length is from the target's at most. What was written goes on
    /// as the target does.
    pub(super) fn apart(
        &self,
        written: impl IntoIterator<Item = (Vec<usize>, f64)>,
        length: usize,
    ) -> f64 {
        let mut found = BTreeMap::new();
        for (text, mass) in written {
            for (text, mass) in self.texts(&text, length, mass) {
                *found.entry(text).or_insert(0.0) += mass;
            }
        }
        let expected = self.texts(&[], length, 1.0).into_iter();
        let each = expected.map(|(text, mass)| found.get(&text).copied().unwrap_or(0.0) - mass);
        each.map(f64::abs).fold(0.0, f64::max)
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
