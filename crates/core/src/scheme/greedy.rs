//! The top tokens, then one draw.

use super::law::{along, of_draft};
use super::without_replacement::by_falling_mass;
use super::{
    DraftScheme, ExactSetLaw, Law, MadeOf, OnRow, PrefixScan, SchemeName, SetFamily, SetLaw,
    only_likeliest, set_of, token_id, without,
};
use num_bigint::BigUint;
use specgap_number::distribution::{Draft, Proportions, Rational, TwoFloat, ratio};
use specgap_number::number::Number;
use specgap_row::Question;
use std::sync::Arc;

/// The n-1 most probable tokens of q, deterministically and in that order (ties:
/// lowest token id first), then one draw from q renormalised over the rest
/// (Hu et al., eq. 18).
///
/// `Q(H) = q(H - top) / (1 - q(top))` if H contains the top tokens, else 0.
///
/// # Example
/// ```
/// use specgap_number::distribution::Draft;
/// use specgap_core::scheme::{DraftScheme, Greedy};
/// let scheme = Greedy::new(Draft::new(&[0.5, 0.25, 0.25])?, 2);
/// assert_eq!(scheme.top(), [0]);
/// assert_eq!(scheme.last(), [0.0, 0.5, 0.5]);
/// assert_eq!(scheme.inside(&[0, 2]), 0.5);
/// assert_eq!(scheme.inside(&[1, 2]), 0.0);
/// # Ok::<(), specgap_number::distribution::DistributionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Greedy {
    draft: Draft,
    drafts: usize,
    top: Vec<usize>,
    last: Vec<f64>,
}

impl Greedy {
    /// `drafts` (at least 1) tokens from `draft`.
    pub fn new(draft: Draft, drafts: usize) -> Self {
        let drafts = drafts.max(1);
        let order = by_falling_mass(&draft);
        let (top, rest) = order.split_at((drafts - 1).min(order.len()));
        // Where the top tokens leave a denormal rest, a row that has its digits.
        let proportions = Proportions::of(&draft);
        let row = proportions.row(&draft);
        let mut left = TwoFloat::ZERO;
        for &token in rest {
            left += row[token];
        }
        let left = left.value();
        let mut last = vec![0.0; draft.vocab()];
        for &token in rest {
            last[token] = row[token] / left;
        }
        let top = top.to_vec();
        Self {
            draft,
            drafts,
            top,
            last,
        }
    }

    /// The deterministic tokens in draft order; the whole support if that has
    /// fewer than n tokens.
    pub fn top(&self) -> &[usize] {
        &self.top
    }

    /// Law of the last draft, `V` entries; all zero if the support is used up.
    pub fn last(&self) -> &[f64] {
        &self.last
    }

    fn candidates(&self) -> Vec<usize> {
        let mut support = self.draft.support();
        let mut is_top = vec![false; self.draft.vocab()];
        self.top.iter().for_each(|&token| is_top[token] = true);
        support.retain(|&token| !is_top[token]);
        support
    }

    /// Weights of the last draft and their total; there is none for sure if the support is used up.
    fn last_exact(&self) -> (Vec<(Option<usize>, BigUint)>, BigUint) {
        let exact = self.draft.exact();
        let candidates = self.candidates().into_iter();
        let mut weights: Vec<(Option<usize>, BigUint)> = candidates
            .map(|token| (Some(token), exact.weights[token].clone()))
            .collect();
        if weights.is_empty() {
            weights.push((None, 1u32.into()));
        }
        let total = weights.iter().map(|(_, weight)| weight).sum();
        (weights, total)
    }

    fn tuple(&self, last: Option<usize>) -> Vec<u32> {
        self.top.iter().copied().chain(last).map(token_id).collect()
    }

    fn set(&self, last: Option<usize>) -> Vec<u32> {
        set_of(self.tuple(last))
    }

    /// The token that completes the top tokens to `set`.
    fn completing(&self, set: &[u32]) -> Option<usize> {
        let tokens = set.iter().map(|&token| token as usize);
        let mut others = tokens.filter(|token| !self.top.contains(token));
        match (others.next(), others.next()) {
            (Some(last), None) if set.len() == self.top.len() + 1 => Some(last),
            _ => None,
        }
    }

    fn is_whole_support(&self, set: &[u32]) -> bool {
        self.candidates().is_empty() && set == self.set(None)
    }
}

impl DraftScheme for Greedy {
    of_draft!(self, SchemeName::GREEDY, self.drafts);

    fn tuple_count(&self) -> f64 {
        self.candidates().len().max(1) as f64
    }
    fn for_each_tuple(&self, visit: &mut dyn FnMut(&[u32], f64)) {
        let candidates = self.candidates();
        if candidates.is_empty() {
            visit(&self.tuple(None), 1.0);
        }
        for token in candidates {
            visit(&self.tuple(Some(token)), self.last[token]);
        }
    }
    fn for_each_tuple_exact(&self, visit: &mut dyn FnMut(&[u32], &Rational)) {
        let (weights, total) = self.last_exact();
        for (last, weight) in &weights {
            visit(&self.tuple(*last), &ratio(weight, &total));
        }
    }

    fn set_law(&self) -> SetLaw {
        let (mut sets, mut probabilities) = (SetFamily::new(), Vec::new());
        self.for_each_tuple(&mut |tuple, probability| {
            sets.push(set_of(tuple.iter().copied()));
            probabilities.push(probability);
        });
        SetLaw::of((sets, probabilities), 4.0 * f64::EPSILON)
    }

    fn largest_checked_set(&self) -> usize {
        usize::MAX
    }

    fn exact_bits(&self) -> f64 {
        self.draft.exact_bits() as f64
    }

    fn exact_set_law(&self) -> ExactSetLaw {
        let (weights, total) = self.last_exact();
        let sets = weights
            .into_iter()
            .map(|(last, weight)| (self.set(last), weight));
        ExactSetLaw::of(sets.unzip(), total)
    }

    fn prefix_scan(&self, order: &[usize]) -> PrefixScan {
        let used_up = self.candidates().is_empty();
        let (mut missing, mut held) = (self.top.len(), TwoFloat::ZERO);
        PrefixScan::along(order, 4.0 * f64::EPSILON, |token| {
            missing -= usize::from(self.top.contains(&token));
            held += self.last[token];
            match (missing, used_up) {
                (0, true) => 1.0,
                (0, false) => held.value().min(1.0),
                _ => 0.0,
            }
        })
    }

    fn prefix_scan_exact(&self, order: &[usize]) -> Vec<Rational> {
        let (weights, total) = self.last_exact();
        let mut weight_of = vec![BigUint::default(); self.draft.vocab()];
        let used_up = self.candidates().is_empty();
        for (last, weight) in weights {
            if let Some(token) = last {
                weight_of[token] = weight;
            }
        }
        let (mut missing, mut held) = (self.top.len(), BigUint::default());
        along(order, |token| {
            missing -= usize::from(self.top.contains(&token));
            held += &weight_of[token];
            match (missing, used_up) {
                (0, true) => Rational::one(),
                (0, false) => ratio(&held, &total),
                _ => Rational::zero(),
            }
        })
    }

    fn fixed_drafts(&self) -> Option<usize> {
        Some(self.drafts - 1)
    }

    fn set_probability(&self, set: &[u32]) -> f64 {
        match self.completing(set) {
            Some(last) => self.last[last],
            None => f64::from(u8::from(self.is_whole_support(set))),
        }
    }

    fn set_probability_exact(&self, set: &[u32]) -> Rational {
        let exact = self.draft.exact();
        match self.completing(set) {
            Some(last) => {
                let top: BigUint = self.top.iter().map(|&token| &exact.weights[token]).sum();
                match &exact.total - top {
                    rest if rest == BigUint::default() => Rational::zero(),
                    rest => ratio(&exact.weights[last], &rest),
                }
            }
            None if self.is_whole_support(set) => Rational::one(),
            None => Rational::zero(),
        }
    }
}

/// [`Greedy`] in the table of laws.
pub const LAW: Law = Law {
    name: "greedy",
    words: "the n-1 most probable tokens of q, then one draw from the rest",
    inside: "q(H - top)/(1 - q(top)) if H contains the top tokens, else 0",
    distinct: true,
    made_of: MadeOf::OneDraft(|draft, drafts| Arc::new(Greedy::new(draft, drafts))),
    next_draft: Some(|row, before, weights| {
        without(before, weights);
        if before.len() + 1 < row.drafts {
            only_likeliest(weights);
        }
    }),
    on_row: Some(OnRow {
        optimum: Question {
            full: |row, drafts| Ok(row.optimum_with_fixed(drafts.saturating_sub(1))),
            cut: |row, ask| row.optimum_with_fixed(ask),
        },
        status: "optimal: the value of the best cut, in closed form",
        hits: Some(Question {
            full: |row, drafts| Ok(row.hits_with_fixed(drafts.saturating_sub(1))),
            cut: |row, ask| row.hits_with_fixed(ask),
        }),
    }),
    by_default: true,
    by_rank: true,
    hue: 3,
    ..Law::NONE
};
