//! Independent draws from one distribution.

use super::combinations::{for_each_combination, over_subsets, surjection_cost};
use super::law::{along, of_draft, tuples_in_both};
use super::surjection::{Weight, surjections};
use super::{
    DraftScheme, ExactSetLaw, Law, MadeOf, OnRow, PrefixScan, SchemeName, SetFamily, SetLaw,
    token_id,
};
use num_bigint::BigUint;
use num_traits::{Pow, Zero};
use specgap_number::distribution::{Draft, Rational, TwoFloat, ratio};
use specgap_number::number::Number;
use specgap_plan::Children;
use specgap_row::Question;
use std::sync::Arc;

/// n independent draws from q; `Q(H) = q(H)^n`.
///
/// # Example
/// ```
/// use specgap_number::distribution::Draft;
/// use specgap_core::scheme::{DraftScheme, WithReplacement};
/// let scheme = WithReplacement::new(Draft::new(&[0.5, 0.5])?, 2);
/// let law = scheme.set_law();
/// assert_eq!(law.sets.set(2), [0, 1]);
/// assert_eq!(law.probabilities, [0.25, 0.25, 0.5]);
/// # Ok::<(), specgap_number::distribution::DistributionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct WithReplacement {
    draft: Draft,
    drafts: usize,
    support: Vec<usize>,
}

impl WithReplacement {
    /// `drafts` (at least 1) independent draws from `draft`.
    pub fn new(draft: Draft, drafts: usize) -> Self {
        let support = draft.support();
        Self {
            draft,
            drafts: drafts.max(1),
            support,
        }
    }

    fn tuples<M: Number>(&self, visit: &mut dyn FnMut(&[u32], &M)) {
        independent_tuples(&vec![M::row(&self.draft); self.drafts], visit);
    }
}

/// All tuples of independent draws, one row of masses a draw.
pub(super) fn independent_tuples<M: Number>(rows: &[Vec<M>], visit: &mut dyn FnMut(&[u32], &M)) {
    fn descend<M: Number>(
        rows: &[Vec<M>],
        supports: &[Vec<usize>],
        tuple: &mut Vec<u32>,
        mass: &M,
        visit: &mut dyn FnMut(&[u32], &M),
    ) {
        let depth = tuple.len();
        if depth == rows.len() {
            visit(tuple, mass);
            return;
        }
        for &token in &supports[depth] {
            tuple.push(token_id(token));
            let next = mass.times(&rows[depth][token]);
            descend(rows, supports, tuple, &next, visit);
            tuple.pop();
        }
    }
    let support = |row: &Vec<M>| (0..row.len()).filter(|&x| !row[x].is_nil()).collect();
    let supports: Vec<Vec<usize>> = rows.iter().map(support).collect();
    let mut tuple = Vec::with_capacity(rows.len());
    descend(rows, &supports, &mut tuple, &M::one(), visit);
}

/// All sets that n i.i.d. draws can hit and their weights, up to the common factor
/// total^-n, by size and in colexicographic order within a size.
///
/// `W[m]` sums m!/prod(e_x!) prod(w_x^e_x) over all exponents e_x >= 1 with
/// total m; adding a token convolves it with the powers of its weight.
fn iid_sets<W: Weight>(
    support: &[usize],
    weight: impl Fn(usize) -> W,
    drafts: usize,
) -> (SetFamily, Vec<W>) {
    let (mut sets, mut weights) = (SetFamily::new(), Vec::new());
    let binomials = binomial_rows::<W>(drafts);
    let powers = |&token: &usize| {
        let base = weight(token);
        let next = move |power: &W| Some(power.times(&base));
        std::iter::successors(Some(W::unit()), next).take(drafts + 1)
    };
    let powers: Vec<Vec<W>> = support.iter().map(|x| powers(x).collect()).collect();
    let largest = drafts.min(support.len());
    let mut stack: Vec<Vec<W>> = Vec::with_capacity(largest + 1);
    let mut start = vec![W::nil(); drafts + 1];
    start[0] = W::unit();
    stack.push(start);
    for size in 1..=largest {
        // The prefix of the last visited combination whose convolution is kept,
        // counted from the top element, which moves slowest in this order.
        let mut previous: Vec<usize> = Vec::new();
        for_each_combination(support.len(), size, |chosen| {
            let kept = previous
                .iter()
                .rev()
                .zip(chosen.iter().rev())
                .take_while(|(before, now)| before == now)
                .count();
            stack.truncate(kept + 1);
            for &member in chosen[..size - kept].iter().rev() {
                let grown = convolve(&stack[stack.len() - 1], &powers[member], &binomials);
                stack.push(grown);
            }
            previous.clear();
            previous.extend_from_slice(chosen);
            sets.push(chosen.iter().map(|&member| token_id(support[member])));
            weights.push(stack[size][drafts].clone());
        });
        stack.truncate(1);
    }
    (sets, weights)
}

fn convolve<W: Weight>(before: &[W], powers: &[W], binomials: &[Vec<W>]) -> Vec<W> {
    (0..before.len())
        .map(|total| {
            let mut sum = W::nil();
            for exponent in 1..=total {
                if !before[total - exponent].is_nil() {
                    let ways = binomials[total][exponent].times(&powers[exponent]);
                    sum.add(&ways.times(&before[total - exponent]));
                }
            }
            sum
        })
        .collect()
}

fn binomial_rows<W: Weight>(size: usize) -> Vec<Vec<W>> {
    let mut rows: Vec<Vec<W>> = vec![vec![W::unit()]];
    for n in 1..=size {
        let mut row = vec![W::unit(); n + 1];
        for k in 1..n {
            let mut value = rows[n - 1][k - 1].clone();
            value.add(&rows[n - 1][k]);
            row[k] = value;
        }
        rows.push(row);
    }
    rows
}

impl DraftScheme for WithReplacement {
    of_draft!(self, SchemeName::WITH_REPLACEMENT, self.drafts);

    fn independent_draft(&self, position: usize) -> Option<&Draft> {
        (position < self.drafts).then_some(&self.draft)
    }
    fn tuple_count(&self) -> f64 {
        (self.support.len() as f64).powi(self.drafts as i32)
    }
    tuples_in_both!(self, tuples());
    fn set_count(&self) -> f64 {
        over_subsets(self.support.len(), self.drafts, |_| 1.0)
    }

    fn set_law(&self) -> SetLaw {
        let row = self.draft.probabilities();
        let sets = iid_sets(&self.support, |token| row[token], self.drafts);
        let n = self.drafts as f64;
        SetLaw::of(sets, n * (n + 8.0) * f64::EPSILON)
    }

    fn set_check_cost(&self) -> f64 {
        over_subsets(self.support.len(), self.drafts, |size| {
            surjection_cost(size, self.drafts)
        })
    }

    fn exact_bits(&self) -> f64 {
        self.draft.exact_bits() as f64 * self.drafts as f64
    }

    fn exact_set_law(&self) -> ExactSetLaw {
        let exact = self.draft.exact();
        let weight = |token: usize| exact.weights[token].clone();
        let sets = iid_sets(&self.support, weight, self.drafts);
        ExactSetLaw::of(sets, Pow::pow(&exact.total, self.drafts))
    }

    fn prefix_scan(&self, order: &[usize]) -> PrefixScan {
        let row = self.draft.probabilities();
        let mut held = TwoFloat::ZERO;
        let error = (3.0 * self.drafts as f64 + 2.0) * f64::EPSILON;
        PrefixScan::along(order, error, |token| {
            held += row[token];
            held.value().min(1.0).powi(self.drafts as i32)
        })
    }

    fn prefix_scan_exact(&self, order: &[usize]) -> Vec<Rational> {
        let exact = self.draft.exact();
        let total = Pow::pow(&exact.total, self.drafts);
        let mut held = BigUint::nil();
        along(order, |token| {
            held += &exact.weights[token];
            ratio(&Pow::pow(&held, self.drafts), &total)
        })
    }

    fn set_probability(&self, set: &[u32]) -> f64 {
        let row = self.draft.probabilities();
        let restricted: Vec<f64> = set.iter().map(|&token| row[token as usize]).collect();
        surjections(&vec![restricted; self.drafts])
    }

    fn set_probability_exact(&self, set: &[u32]) -> Rational {
        // By inclusion and exclusion: 2^k powers for k tokens, where counting surjections takes
        // n k 2^k products.
        let exact = self.draft.exact();
        let [mut even, mut odd] = [BigUint::zero(), BigUint::zero()];
        for mask in 0..1u128 << set.len() {
            let covered: BigUint = (set.iter().enumerate())
                .filter(|(place, _)| mask >> place & 1 == 1)
                .map(|(_, &token)| &exact.weights[token as usize])
                .sum();
            let left_out = set.len() - mask.count_ones() as usize;
            *(if left_out.is_multiple_of(2) {
                &mut even
            } else {
                &mut odd
            }) += Pow::pow(covered, self.drafts);
        }
        ratio(&(even - odd), &Pow::pow(&exact.total, self.drafts))
    }
}

/// [`WithReplacement`] in the table of laws.
pub const LAW: Law = Law {
    name: "with-replacement",
    aliases: &["iid"],
    words: "n independent draws from q",
    inside: "q(H)^n",
    made_of: MadeOf::OneDraft(|draft, drafts| Arc::new(WithReplacement::new(draft, drafts))),
    sort_theorem: Some("Hu et al., Theorems 3 and 6"),
    next_draft: Some(|_, _, _| {}),
    on_row: Some(OnRow {
        optimum: Question {
            full: |row, drafts| Ok(row.with_replacement(drafts)?.rate),
            cut: |row, ask| row.optimum_iid(ask),
        },
        status: "optimal: the ratio scan, proved for this scheme (q-convexity)",
        hits: Some(Question {
            full: |row, drafts| Ok(row.hits_iid(drafts)),
            cut: |row, ask| row.hits_iid(ask),
        }),
    }),
    by_default: true,
    child_by_child: true,
    children: Some(Children::Iid),
    prefixed: true,
    hue: 0,
    ..Law::NONE
};
