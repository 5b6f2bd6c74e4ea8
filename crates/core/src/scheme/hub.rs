//! SpecHub's pairs.

use super::law::{of_draft, tuples_in_both};
use super::without_replacement::by_falling_mass;
use super::{
    DraftScheme, ExactSetLaw, Greedy, Law, MadeOf, OnRow, PrefixScan, SchemeName, SetLaw,
    likeliest, only_likeliest, token_id, without,
};
use specgap_number::distribution::{Draft, Rational, ratio};
use specgap_number::number::Number;
use specgap_row::Question;
use std::sync::Arc;

/// SpecHub's sampling (n = 2): with the hub a = argmax q (ties: lowest token
/// id), the pair (x, a) has probability q(x) for x != a, and the pair (a, x)
/// has probability `q(a) q(x) / (1 - q(a))`. If a is the whole support, the
/// draw is just (a).
///
/// The set A(X) has the law of [`Greedy`] at n = 2, so both have one optimum.
///
/// # Example
/// ```
/// use specgap_number::distribution::Draft;
/// use specgap_core::scheme::{DraftScheme, Hub};
/// let scheme = Hub::new(Draft::new(&[0.5, 0.25, 0.25])?);
/// assert_eq!(scheme.hub(), 0);
/// let mut tuples = Vec::new();
/// scheme.for_each_tuple(&mut |x, probability| tuples.push((x.to_vec(), probability)));
/// assert_eq!(tuples[0], (vec![1, 0], 0.25));
/// assert_eq!(tuples[1], (vec![0, 1], 0.25));
/// # Ok::<(), specgap_number::distribution::DistributionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Hub {
    draft: Draft,
    hub: usize,
    /// The hub is the whole support.
    alone: bool,
    /// The law of the set.
    star: Greedy,
}

impl Hub {
    /// Pairs around the most probable token of `draft`.
    pub fn new(draft: Draft) -> Self {
        let by_mass = by_falling_mass(&draft);
        let hub = by_mass.first().copied().unwrap_or(0);
        let alone = by_mass.len() == 1;
        let star = Greedy::new(draft.clone(), 2);
        Self {
            draft,
            hub,
            alone,
            star,
        }
    }

    /// The hub token a.
    pub fn hub(&self) -> usize {
        self.hub
    }
}

impl DraftScheme for Hub {
    of_draft!(self, SchemeName::HUB, 2);

    fn tuple_count(&self) -> f64 {
        (2.0 * (self.draft.support().len() as f64 - 1.0)).max(1.0)
    }

    tuples_in_both!(self, tuples(self.floats(), self.fractions()));

    fn set_count(&self) -> f64 {
        self.star.set_count()
    }
    fn set_law(&self) -> SetLaw {
        self.star.set_law()
    }
    fn largest_checked_set(&self) -> usize {
        usize::MAX
    }

    fn exact_bits(&self) -> f64 {
        self.star.exact_bits()
    }
    fn exact_set_law(&self) -> ExactSetLaw {
        self.star.exact_set_law()
    }
    fn prefix_scan(&self, order: &[usize]) -> PrefixScan {
        self.star.prefix_scan(order)
    }
    fn prefix_scan_exact(&self, order: &[usize]) -> Vec<Rational> {
        self.star.prefix_scan_exact(order)
    }
    fn fixed_drafts(&self) -> Option<usize> {
        Some(1)
    }

    fn set_probability(&self, set: &[u32]) -> f64 {
        self.pair_sum(set, self.floats())
    }

    fn set_probability_exact(&self, set: &[u32]) -> Rational {
        self.pair_sum(set, self.fractions())
    }
}

impl Hub {
    /// The support without the hub.
    fn others(&self) -> Vec<usize> {
        let mut others = self.draft.support();
        others.retain(|&token| token != self.hub);
        others
    }

    /// q(x), and q(x)/(1 - q(a)), which is the star's last draw, summed without cancellation.
    fn floats(&self) -> impl Fn(usize) -> (f64, f64) {
        let (row, last) = (self.draft.probabilities(), self.star.last());
        move |token| (row[token], last[token])
    }

    /// The same exactly.
    fn fractions(&self) -> impl Fn(usize) -> (Rational, Rational) {
        let exact = self.draft.exact();
        let rest = &exact.total - &exact.weights[self.hub];
        move |token| {
            (
                exact.probability(token),
                ratio(&exact.weights[token], &rest),
            )
        }
    }

    /// All pairs, of what `masses` gives: q(x) and q(x)/(1 - q(a)).
    fn tuples<M: Number>(
        &self,
        masses: impl Fn(usize) -> (M, M),
        visit: &mut dyn FnMut(&[u32], &M),
    ) {
        let hub = token_id(self.hub);
        let others = self.others();
        if others.is_empty() {
            return visit(&[hub], &M::one());
        }
        let (top, _) = masses(self.hub);
        for token in others {
            let (first, last) = masses(token);
            visit(&[token_id(token), hub], &first);
            visit(&[hub, token_id(token)], &top.times(&last));
        }
    }

    /// Sums the two pairs of one set straight from their definition: q(x) and
    /// `q(a) q(x)/(1 - q(a))`.
    fn pair_sum<M: Number>(&self, set: &[u32], masses: impl Fn(usize) -> (M, M)) -> M {
        let mut others = set
            .iter()
            .map(|&token| token as usize)
            .filter(|&token| token != self.hub);
        match (others.next(), others.next(), set.len()) {
            (None, None, 1) if self.alone => M::one(),
            (Some(token), None, 2) if !self.alone => {
                let (hub, _) = masses(self.hub);
                let (mut sum, last) = masses(token);
                sum.gain(&hub.times(&last));
                sum
            }
            _ => M::zero(),
        }
    }
}

/// [`Hub`] in the table of laws.
pub const LAW: Law = Law {
    name: "hub",
    words: "SpecHub's pairs around the most probable token of q",
    inside: "q(H - a)/(1 - q(a)) if H contains the hub a, else 0",
    distinct: true,
    only: Some(2),
    made_of: MadeOf::OneDraft(|draft, _| Arc::new(Hub::new(draft))),
    next_draft: Some(|row, before, weights| {
        let hub = likeliest(row.q);
        match before {
            [] => {}
            // The hub is the other one.
            [first, ..] if *first != hub => only_likeliest(weights),
            _ => without(before, weights),
        }
    }),
    on_row: Some(OnRow {
        optimum: Question {
            full: |row, _| Ok(row.optimum_with_fixed(1)),
            cut: |row, ask| row.optimum_with_fixed(ask),
        },
        status: "optimal: the value of the best cut, in closed form",
        hits: Some(Question {
            full: |row, _| Ok(row.hits_with_fixed(1)),
            cut: |row, ask| row.hits_with_fixed(ask),
        }),
    }),
    by_default: true,
    child_by_child: true,
    by_rank: true,
    hue: 4,
    ..Law::NONE
};
