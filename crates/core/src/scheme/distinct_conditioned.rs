//! Independent draws conditioned on being different.

use super::combinations::{choose, falling_factorial, for_each_combination};
use super::law::{of_draft, tuples_in_both};
use super::surjection::Weight;
use super::without_replacement::by_falling_mass;
use super::{
    DraftScheme, ExactSetLaw, Law, MadeOf, OnRow, PrefixScan, SchemeName, SetFamily, SetLaw,
    set_of, token_id,
};
use num_bigint::BigUint;
use specgap_number::distribution::{Draft, Proportions, Rational, Wide, ratio};
use specgap_number::number::Number;
use specgap_row::Question;
use std::sync::{Arc, OnceLock};

/// n independent draws from q, conditioned on all of them being different:
/// P(A(X) = A) is proportional to the product of q over A, and
/// `Q(H) = e_n(q on H) / e_n(q)` with e_n the elementary symmetric polynomial.
///
/// It is **not** the law of [`super::WithoutReplacement`].
///
/// # Example
/// ```
/// use specgap_number::distribution::Draft;
/// use specgap_core::scheme::{DistinctConditioned, DraftScheme};
/// let scheme = DistinctConditioned::new(Draft::new(&[0.5, 0.3, 0.2])?, 2);
/// assert!((scheme.inside(&[0, 1]) - 15.0 / 31.0).abs() < 1e-15);
/// # Ok::<(), specgap_number::distribution::DistributionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct DistinctConditioned {
    draft: Draft,
    drafts: usize,
    by_mass: Vec<usize>,
    draws: usize,
    /// q up to a factor, which e_n and a set's product take alike.
    proportions: Proportions,
    /// e_n of that row.
    normaliser: Wide,
    /// e_n of the exact weights, once it is asked for.
    exact_normaliser: OnceLock<BigUint>,
}

impl DistinctConditioned {
    /// `drafts` (at least 1) draws from `draft`.
    pub fn new(draft: Draft, drafts: usize) -> Self {
        let by_mass = by_falling_mass(&draft);
        let draws = drafts.max(1).min(by_mass.len());
        let mut scheme = Self {
            proportions: Proportions::of(&draft),
            draft,
            drafts: drafts.max(1),
            by_mass,
            draws,
            normaliser: Wide::from(1.0),
            exact_normaliser: OnceLock::new(),
        };
        let mut whole = scheme.normaliser;
        scheme.symmetric(&scheme.by_mass, |value| whole = value);
        scheme.normaliser = whole;
        scheme
    }

    /// W_n along a chain: the recurrence W_k += q W_{k-1}, in numbers of unbounded
    /// range, so nothing under- or overflows however peaked q is.
    fn symmetric(&self, order: &[usize], mut visit: impl FnMut(Wide)) {
        let row = self.proportions.row(&self.draft);
        let mut sums = vec![Wide::ZERO; self.draws + 1];
        sums[0] = Wide::from(1.0);
        for &token in order {
            if row[token] > 0.0 {
                let q = Wide::from(row[token]);
                for k in (1..=self.draws).rev() {
                    sums[k] = sums[k].plus(sums[k - 1].times(q));
                }
            }
            visit(sums[self.draws]);
        }
    }

    /// e_n of exact weights along a chain.
    fn symmetric_exact(&self, order: &[usize], mut visit: impl FnMut(&BigUint)) {
        let exact = self.draft.exact();
        let mut sums = vec![BigUint::nil(); self.draws + 1];
        sums[0] = BigUint::unit();
        for &token in order {
            for k in (1..=self.draws).rev() {
                let grown = &sums[k - 1] * &exact.weights[token];
                sums[k] += grown;
            }
            visit(&sums[self.draws]);
        }
    }

    fn normaliser_exact(&self) -> &BigUint {
        self.exact_normaliser.get_or_init(|| {
            let mut last = BigUint::nil();
            self.symmetric_exact(&self.by_mass, |value| last = value.clone());
            last
        })
    }

    /// Product of a set's probabilities over e_n(q).
    fn share(&self, members: impl Iterator<Item = f64>) -> f64 {
        let product = members.fold(Wide::from(1.0), |product, q| product.times(Wide::from(q)));
        product.over(self.normaliser)
    }

    fn tuples<M: Number>(&self, masses: Vec<M>, visit: &mut dyn FnMut(&[u32], &M)) {
        let whole = |k: usize| M::fraction(&k.into(), &1u32.into());
        let orders = (1..=self.draws).fold(M::one(), |product, k| product.times(&whole(k)));
        let mut masses = masses.iter();
        for_each_combination(self.by_mass.len(), self.draws, |subset| {
            let share = masses
                .next()
                .map_or_else(M::zero, |mass| mass.over(&orders));
            permutations(subset, &mut |order| {
                let tuple: Vec<u32> = order.iter().map(|&r| token_id(self.by_mass[r])).collect();
                visit(&tuple, &share);
            });
        });
    }

    fn sets(&self) -> SetFamily {
        let mut sets = SetFamily::new();
        for_each_combination(self.by_mass.len(), self.draws, |subset| {
            let tokens = subset.iter().map(|&rank| token_id(self.by_mass[rank]));
            sets.push(set_of(tokens));
        });
        sets
    }

    fn masses_exact(&self) -> Vec<Rational> {
        let law = self.exact_set_law();
        let each = law.weights.iter();
        each.map(|weight| ratio(weight, &law.total)).collect()
    }

    fn masses(&self) -> Vec<f64> {
        let row = self.proportions.row(&self.draft);
        let mut masses = Vec::new();
        for_each_combination(self.by_mass.len(), self.draws, |subset| {
            masses.push(self.share(subset.iter().map(|&rank| row[self.by_mass[rank]])));
        });
        masses
    }
}

fn permutations(items: &[usize], visit: &mut dyn FnMut(&[usize])) {
    fn descend(chosen: &mut Vec<usize>, rest: &mut Vec<usize>, visit: &mut dyn FnMut(&[usize])) {
        if rest.is_empty() {
            visit(chosen);
            return;
        }
        for index in 0..rest.len() {
            let item = rest.remove(index);
            chosen.push(item);
            descend(chosen, rest, visit);
            chosen.pop();
            rest.insert(index, item);
        }
    }
    descend(&mut Vec::new(), &mut items.to_vec(), visit);
}

impl DraftScheme for DistinctConditioned {
    of_draft!(self, SchemeName::DISTINCT_CONDITIONED, self.drafts);

    fn tuple_count(&self) -> f64 {
        falling_factorial(self.by_mass.len(), self.draws)
    }
    tuples_in_both!(self, tuples(self.masses(), self.masses_exact()));
    fn set_count(&self) -> f64 {
        choose(self.by_mass.len(), self.draws)
    }

    fn set_law(&self) -> SetLaw {
        let n = self.drafts as f64;
        let error = self.proportions.vouched(n * (n + 8.0) * f64::EPSILON);
        SetLaw::of((self.sets(), self.masses()), error)
    }

    fn largest_checked_set(&self) -> usize {
        usize::MAX
    }

    fn exact_bits(&self) -> f64 {
        self.draft.exact_bits() as f64 * self.draws as f64
    }

    fn exact_set_law(&self) -> ExactSetLaw {
        let exact = self.draft.exact();
        let mut weights = Vec::new();
        for_each_combination(self.by_mass.len(), self.draws, |subset| {
            let each = subset.iter().map(|&r| &exact.weights[self.by_mass[r]]);
            weights.push(each.product::<BigUint>());
        });
        let total = weights.iter().sum();
        ExactSetLaw::of((self.sets(), weights), total)
    }

    fn prefix_scan(&self, order: &[usize]) -> PrefixScan {
        let mut inside = Vec::with_capacity(order.len());
        self.symmetric(order, |value| {
            inside.push(value.over(self.normaliser).min(1.0))
        });
        let absolute_error = (3.0 * self.drafts as f64 + 4.0) * f64::EPSILON;
        PrefixScan {
            inside,
            absolute_error: self.proportions.vouched(absolute_error),
        }
    }

    fn prefix_scan_exact(&self, order: &[usize]) -> Vec<Rational> {
        let normaliser = self.normaliser_exact();
        let mut inside = Vec::with_capacity(order.len());
        self.symmetric_exact(order, |value| inside.push(ratio(value, normaliser)));
        inside
    }

    fn set_probability(&self, set: &[u32]) -> f64 {
        if set.len() != self.draws {
            return 0.0;
        }
        let row = self.proportions.row(&self.draft);
        self.share(set.iter().map(|&token| row[token as usize]))
    }

    fn set_probability_error(&self) -> f64 {
        let n = self.drafts as f64;
        (self.proportions).vouched(2.0 * n * (n + 8.0) * f64::EPSILON)
    }

    fn set_probability_exact(&self, set: &[u32]) -> Rational {
        if set.len() != self.draws {
            return Rational::zero();
        }
        let exact = self.draft.exact();
        let weights = set.iter().map(|&token| &exact.weights[token as usize]);
        ratio(&weights.product(), self.normaliser_exact())
    }
}

/// [`DistinctConditioned`] in the table of laws.
pub const LAW: Law = Law {
    name: "distinct-conditioned",
    words: "n independent draws from q, conditioned on all being different \
        (not the same law as without-replacement)",
    inside: "e_n(q on H)/e_n(q), e_n the elementary symmetric polynomial",
    distinct: true,
    made_of: MadeOf::OneDraft(|draft, drafts| Arc::new(DistinctConditioned::new(draft, drafts))),
    sort_theorem: Some("Hu et al., Theorem 4"),
    on_row: Some(OnRow {
        optimum: Question {
            full: |row, drafts| Ok(row.distinct_conditioned(drafts)?.rate),
            cut: |row, ask| row.optimum_distinct(ask),
        },
        status: "optimal: the ratio scan, proved for this scheme (q-convexity)",
        hits: None,
    }),
    by_default: true,
    hue: 2,
    ..Law::NONE
};
