//! A list of tuples.

use super::explicit_error::ExplicitError;
use super::law::{along, of_draft};
use super::{
    DraftScheme, ExactSetLaw, Law, MadeOf, PrefixScan, SchemeName, SetFamily, SetLaw, set_of,
};
use num_bigint::BigUint;
use specgap_number::distribution::{Draft, Rational, TupleProbabilities, TwoFloat, ratio};
use specgap_number::number::Number;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A finite list of tuples with their probabilities; tuples that stand more than
/// once add up.
///
/// # Example
/// ```
/// use specgap_number::distribution::TupleProbabilities;
/// use specgap_core::scheme::{DraftScheme, Explicit};
/// let law = TupleProbabilities::new(&[0.5, 0.5])?;
/// let scheme = Explicit::new(3, 2, vec![vec![0, 1], vec![1, 0]], law).unwrap();
/// assert_eq!(scheme.set_law().sets.len(), 1);
/// assert_eq!(scheme.inside(&[0, 1]), 1.0);
/// # Ok::<(), specgap_number::distribution::DistributionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Explicit {
    vocab: usize,
    drafts: usize,
    tuples: Vec<Vec<u32>>,
    law: TupleProbabilities,
}

impl Explicit {
    /// `tuples` of `drafts` tokens below `vocab`, with one probability each.
    ///
    /// # Errors
    /// Another number of probabilities, ragged tuples, tokens out of range.
    pub fn new(
        vocab: usize,
        drafts: usize,
        tuples: Vec<Vec<u32>>,
        law: TupleProbabilities,
    ) -> Result<Self, ExplicitError> {
        if tuples.len() != law.vocab() {
            return Err(ExplicitError::Count(tuples.len(), law.vocab()));
        }
        for (index, tuple) in tuples.iter().enumerate() {
            if tuple.len() != drafts || drafts == 0 {
                return Err(ExplicitError::Ragged(index, tuple.len(), drafts));
            }
            if let Some(&token) = tuple.iter().find(|&&token| token as usize >= vocab) {
                return Err(ExplicitError::OutOfRange(index, i64::from(token), vocab));
            }
        }
        Ok(Self {
            vocab,
            drafts,
            tuples,
            law,
        })
    }

    /// The sets of the listed tuples of positive probability, and a sum over the tuples of each.
    fn merged<M: Default>(&self, add: impl Fn(&mut M, usize)) -> (SetFamily, Vec<M>) {
        let mut merged: BTreeMap<Vec<u32>, M> = BTreeMap::new();
        for index in self.law.support() {
            let set = set_of(self.tuples[index].iter().copied());
            add(merged.entry(set).or_default(), index);
        }
        merged.into_iter().unzip()
    }

    /// The sum over the tuples within each prefix of `order`, which `add` adds them to.
    fn scan<T: Clone + Default>(&self, order: &[usize], add: impl Fn(&mut T, usize)) -> Vec<T> {
        let mut place = vec![usize::MAX; self.vocab];
        for (position, &token) in order.iter().enumerate() {
            place[token] = position;
        }
        let mut completed: Vec<Vec<usize>> = vec![Vec::new(); self.vocab];
        for (index, tuple) in self.tuples.iter().enumerate() {
            let last = tuple.iter().map(|&token| place[token as usize]).max();
            if let Some(last) = last.filter(|&last| last != usize::MAX) {
                completed[order[last]].push(index);
            }
        }
        let mut held = T::default();
        along(order, |token| {
            completed[token]
                .iter()
                .for_each(|&index| add(&mut held, index));
            held.clone()
        })
    }
}

impl DraftScheme for Explicit {
    of_draft!(self, SchemeName::EXPLICIT, self.vocab, self.drafts, None);

    fn tuple_count(&self) -> f64 {
        self.tuples.len() as f64
    }
    fn for_each_tuple(&self, visit: &mut dyn FnMut(&[u32], f64)) {
        for index in self.law.support() {
            visit(&self.tuples[index], self.law.probabilities()[index]);
        }
    }
    fn for_each_tuple_exact(&self, visit: &mut dyn FnMut(&[u32], &Rational)) {
        for index in self.law.support() {
            visit(&self.tuples[index], &self.law.exact().probability(index));
        }
    }

    fn set_law(&self) -> SetLaw {
        let row = self.law.probabilities();
        let (sets, sums) = self.merged(|sum: &mut TwoFloat, index| *sum += row[index]);
        let masses = sums.into_iter().map(TwoFloat::value).collect();
        SetLaw::of((sets, masses), 2.0 * f64::EPSILON)
    }

    fn largest_checked_set(&self) -> usize {
        usize::MAX
    }

    fn exact_bits(&self) -> f64 {
        self.law.exact_bits() as f64
    }

    fn exact_set_law(&self) -> ExactSetLaw {
        let exact = self.law.exact();
        let weight = |index: usize| &exact.weights[index];
        let sets = self.merged(|sum: &mut BigUint, index| *sum += weight(index));
        ExactSetLaw::of(sets, exact.total.clone())
    }

    fn prefix_scan(&self, order: &[usize]) -> PrefixScan {
        let row = self.law.probabilities();
        let held = self.scan(order, |held: &mut TwoFloat, index| *held += row[index]);
        PrefixScan {
            inside: held.into_iter().map(|held| held.value().min(1.0)).collect(),
            absolute_error: 3.0 * f64::EPSILON,
        }
    }

    fn prefix_scan_exact(&self, order: &[usize]) -> Vec<Rational> {
        let exact = self.law.exact();
        let weight = |index: usize| &exact.weights[index];
        let held = self.scan(order, |held: &mut BigUint, index| *held += weight(index));
        held.iter().map(|held| ratio(held, &exact.total)).collect()
    }

    fn set_probability(&self, set: &[u32]) -> f64 {
        let mut sum = TwoFloat::ZERO;
        for (tuple, &probability) in self.tuples.iter().zip(self.law.probabilities()) {
            if set_of(tuple.iter().copied()) == set {
                sum += probability;
            }
        }
        sum.value()
    }

    fn set_probability_exact(&self, set: &[u32]) -> Rational {
        let mut sum = Rational::zero();
        for (index, tuple) in self.tuples.iter().enumerate() {
            if set_of(tuple.iter().copied()) == set {
                sum += self.law.exact().probability(index);
            }
        }
        sum
    }
}

/// [`Explicit`] in the table of laws.
pub const LAW: Law = Law {
    name: "explicit",
    words: "a list of tuples with probabilities",
    inside: "by summation",
    made_of: MadeOf::Tuples(|vocab, drafts, tuples, law| {
        Ok(Arc::new(Explicit::new(vocab, drafts, tuples, law)?))
    }),
    hue: 6,
    ..Law::NONE
};
