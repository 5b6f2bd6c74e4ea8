//! The top tokens.

use super::law::{along, of_draft, tuples_in_both};
use super::without_replacement::by_falling_mass;
use super::{
    DraftScheme, ExactSetLaw, Law, MadeOf, OnRow, PrefixScan, SchemeName, SetFamily, SetLaw,
    only_likeliest, set_of, token_id, without,
};
use specgap_number::distribution::{Draft, Rational};
use specgap_number::number::Number;
use specgap_row::Question;
use std::sync::Arc;

/// The n most probable tokens of q, deterministically and in that order (ties: lowest
/// token id first); the whole support if that has fewer than n tokens. One draft is the
/// argmax of q, which engines call one-hot drafting.
///
/// `Q(H) = 1` if H contains the top tokens, else 0. Hence `alpha* = p(top)`: H = top gives
/// it as an upper bound, and a draw from p is in the top tokens that often.
///
/// # Example
/// ```
/// use specgap_number::distribution::Draft;
/// use specgap_core::scheme::{DraftScheme, Top};
/// let scheme = Top::new(Draft::new(&[0.25, 0.5, 0.25])?, 2);
/// assert_eq!(scheme.top(), [1, 0]);
/// assert_eq!(scheme.inside(&[0, 1]), 1.0);
/// assert_eq!(scheme.inside(&[1, 2]), 0.0);
/// # Ok::<(), specgap_number::distribution::DistributionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Top {
    draft: Draft,
    drafts: usize,
    top: Vec<usize>,
}

impl Top {
    /// The `drafts` (at least 1) most probable tokens of `draft`.
    pub fn new(draft: Draft, drafts: usize) -> Self {
        let drafts = drafts.max(1);
        let mut top = by_falling_mass(&draft);
        top.truncate(drafts);
        Self { draft, drafts, top }
    }

    /// The drafts in their order.
    pub fn top(&self) -> &[usize] {
        &self.top
    }

    fn tuple(&self) -> Vec<u32> {
        self.top.iter().copied().map(token_id).collect()
    }

    fn tuples<M: Number>(&self, visit: &mut dyn FnMut(&[u32], &M)) {
        visit(&self.tuple(), &M::one());
    }

    fn sets(&self) -> SetFamily {
        let mut sets = SetFamily::new();
        sets.push(set_of(self.tuple()));
        sets
    }

    /// For each prefix of `order`, whether it holds all drafts, as 1 or 0.
    fn held<M: Number>(&self, order: &[usize]) -> Vec<M> {
        let mut missing = self.top.len();
        along(order, |token| {
            missing -= usize::from(self.top.contains(&token));
            certain(missing == 0)
        })
    }

    fn of_set<M: Number>(&self, set: &[u32]) -> M {
        let drafted = |&token: &u32| self.top.contains(&(token as usize));
        certain(set.len() == self.top.len() && set.iter().all(drafted))
    }
}

impl DraftScheme for Top {
    of_draft!(self, SchemeName::TOP, self.drafts);

    fn tuple_count(&self) -> f64 {
        1.0
    }
    tuples_in_both!(self, tuples());

    fn set_law(&self) -> SetLaw {
        SetLaw::of((self.sets(), vec![1.0]), 0.0)
    }

    fn largest_checked_set(&self) -> usize {
        usize::MAX
    }

    fn exact_bits(&self) -> f64 {
        1.0
    }

    fn exact_set_law(&self) -> ExactSetLaw {
        ExactSetLaw::of((self.sets(), vec![1u32.into()]), 1u32.into())
    }

    fn prefix_scan(&self, order: &[usize]) -> PrefixScan {
        PrefixScan {
            inside: self.held(order),
            absolute_error: 0.0,
        }
    }

    fn prefix_scan_exact(&self, order: &[usize]) -> Vec<Rational> {
        self.held(order)
    }

    fn fixed_drafts(&self) -> Option<usize> {
        Some(self.top.len())
    }

    fn set_probability(&self, set: &[u32]) -> f64 {
        self.of_set(set)
    }

    fn set_probability_exact(&self, set: &[u32]) -> Rational {
        self.of_set(set)
    }
}

/// 1 or 0.
fn certain<M: Number>(happens: bool) -> M {
    if happens { M::one() } else { M::zero() }
}

/// alpha*, and what a draw from p attains.
const P_OF_TOP: Question = Question {
    full: |row, drafts| Ok(row.top_mass(drafts)),
    cut: |row, ask| row.top_mass(ask),
};

/// [`Top`] in the table of laws.
pub const LAW: Law = Law {
    name: "top",
    words: "the n most probable tokens of q",
    inside: "1 if H contains the top tokens, else 0",
    distinct: true,
    made_of: MadeOf::OneDraft(|draft, drafts| Arc::new(Top::new(draft, drafts))),
    next_draft: Some(|_, before, weights| {
        without(before, weights);
        only_likeliest(weights);
    }),
    on_row: Some(OnRow {
        optimum: P_OF_TOP,
        status: "optimal: p of the drafts, which a draw from p attains",
        hits: Some(P_OF_TOP),
    }),
    by_default: true,
    prefixed: true,
    by_rank: true,
    hue: 5,
    ..Law::NONE
};
