//! Independent draws from different distributions.

use super::combinations::{for_each_combination, over_subsets, surjection_cost};
use super::law::{along, of_draft, tuples_in_both};
use super::score::{Score, Scores, Term, proportional};
use super::surjection::{Weight, surjections};
use super::with_replacement::independent_tuples;
use super::{
    DraftScheme, ExactSetLaw, Law, MadeOf, PrefixScan, SchemeName, SetFamily, SetLaw, token_id,
};
use num_bigint::BigUint;
use specgap_number::distribution::{Draft, Rational, TwoFloat, ratio};
use specgap_number::number::Number;
use std::sync::Arc;

/// One draw from each of n draft distributions, independent of one another;
/// `Q(H) = q_1(H) ... q_n(H)`.
///
/// # Example
/// ```
/// use specgap_number::distribution::Draft;
/// use specgap_core::scheme::{DraftScheme, Product};
/// let scheme = Product::new(vec![Draft::new(&[1.0, 0.0])?, Draft::new(&[0.5, 0.5])?]).unwrap();
/// assert_eq!(scheme.inside(&[0]), 0.5);
/// # Ok::<(), specgap_number::distribution::DistributionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Product {
    rows: Vec<Draft>,
    /// Tokens that any of the drafts can be.
    support: Vec<usize>,
    /// A row for each distribution that differs from those before it, and how many drafts
    /// are drawn from it.
    models: Vec<usize>,
    drawn: Vec<usize>,
}

impl Product {
    /// Makes one from n distributions over one vocabulary; `None` if there are none or
    /// their lengths differ.
    pub fn new(rows: Vec<Draft>) -> Option<Self> {
        let vocab = rows.first()?.vocab();
        if rows.iter().any(|row| row.vocab() != vocab) {
            return None;
        }
        let support = (0..vocab)
            .filter(|&token| rows.iter().any(|row| row.is_positive(token)))
            .collect();
        let (mut models, mut drawn): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
        for (index, row) in rows.iter().enumerate() {
            let same = |&model: &usize| proportional(&rows[model], row, |_| true);
            match models.iter().position(same) {
                Some(model) => drawn[model] += 1,
                None => {
                    models.push(index);
                    drawn.push(1);
                }
            }
        }
        Some(Self {
            rows,
            support,
            models,
            drawn,
        })
    }

    fn tuples<M: Number>(&self, visit: &mut dyn FnMut(&[u32], &M)) {
        let rows: Vec<Vec<M>> = self.rows.iter().map(|row| M::row(row)).collect();
        independent_tuples(&rows, visit);
    }

    /// Sets and their weights, of rows in one arithmetic.
    fn sets<W: Weight>(&self, row: fn(&Draft) -> &[W]) -> (SetFamily, Vec<W>) {
        let (mut sets, mut weights) = (SetFamily::new(), Vec::new());
        for size in 1..=self.rows.len().min(self.support.len()) {
            for_each_combination(self.support.len(), size, |chosen| {
                let chosen = chosen.iter().map(|&place| token_id(self.support[place]));
                let set: Vec<u32> = chosen.collect();
                let weight = surjections(&self.restricted(&set, row));
                if !weight.is_nil() {
                    sets.push(set);
                    weights.push(weight);
                }
            });
        }
        (sets, weights)
    }

    fn exact_total(&self) -> BigUint {
        self.rows.iter().map(|row| &row.exact().total).product()
    }

    /// The rows on the tokens of a set.
    fn restricted<W: Clone>(&self, set: &[u32], row: fn(&Draft) -> &[W]) -> Vec<Vec<W>> {
        let on_set = |draft: &Draft| {
            let (row, tokens) = (row(draft), set.iter());
            tokens.map(|&token| row[token as usize].clone()).collect()
        };
        self.rows.iter().map(on_set).collect()
    }
}

fn floats(row: &Draft) -> &[f64] {
    row.probabilities()
}

fn integers(row: &Draft) -> &[BigUint] {
    &row.exact().weights
}

/// P(A(X) = set) by inclusion and exclusion over the tokens left out, the
/// alternative to counting surjections.
fn by_inclusion_exclusion(rows: &[Vec<BigUint>]) -> BigUint {
    let size = rows.first().map_or(0, Vec::len);
    let (mut plus, mut minus) = (BigUint::nil(), BigUint::nil());
    for mask in 0usize..1 << size {
        let inside = |row: &Vec<BigUint>| -> BigUint {
            let tokens = (0..size).filter(|i| mask >> i & 1 == 1);
            tokens.map(|i| &row[i]).sum()
        };
        let term: BigUint = rows.iter().map(inside).product();
        let left_out = size - mask.count_ones() as usize;
        if left_out.is_multiple_of(2) {
            plus += term
        } else {
            minus += term
        }
    }
    plus - minus
}

impl DraftScheme for Product {
    of_draft!(
        self,
        SchemeName::PRODUCT,
        self.rows[0].vocab(),
        self.rows.len(),
        None
    );

    fn independent_draft(&self, position: usize) -> Option<&Draft> {
        self.rows.get(position)
    }
    fn scores(&self) -> Option<Scores<'_>> {
        let models = self.models.iter();
        Some(Scores {
            forced: Vec::new(),
            distinct: models.map(|&row| Score::Mass(&self.rows[row])).collect(),
            polynomial: Some(vec![Term {
                coefficient: Rational::one(),
                powers: self.drawn.clone(),
            }]),
        })
    }

    fn tuple_count(&self) -> f64 {
        let sizes = self.rows.iter().map(|row| row.support().len() as f64);
        sizes.product()
    }
    tuples_in_both!(self, tuples());
    fn set_count(&self) -> f64 {
        over_subsets(self.support.len(), self.rows.len(), |_| 1.0)
    }

    fn set_law(&self) -> SetLaw {
        let n = self.rows.len() as f64;
        SetLaw::of(self.sets(floats), n * (n + 8.0) * f64::EPSILON)
    }

    fn set_law_cost(&self) -> f64 {
        let drafts = self.rows.len();
        over_subsets(self.support.len(), drafts, |size| {
            surjection_cost(size, drafts)
        })
    }

    fn exact_bits(&self) -> f64 {
        self.rows.iter().map(|row| row.exact_bits() as f64).sum()
    }

    fn exact_set_law(&self) -> ExactSetLaw {
        ExactSetLaw::of(self.sets(integers), self.exact_total())
    }

    fn prefix_scan(&self, order: &[usize]) -> PrefixScan {
        let mut held = vec![TwoFloat::ZERO; self.rows.len()];
        let error = (3.0 * self.rows.len() as f64 + 2.0) * f64::EPSILON;
        PrefixScan::along(order, error, |token| {
            let each = held.iter_mut().zip(&self.rows).map(|(sum, row)| {
                *sum += row.probabilities()[token];
                sum.value().min(1.0)
            });
            each.product()
        })
    }

    fn prefix_scan_exact(&self, order: &[usize]) -> Vec<Rational> {
        let total = self.exact_total();
        let mut held = vec![BigUint::nil(); self.rows.len()];
        along(order, |token| {
            for (sum, row) in held.iter_mut().zip(&self.rows) {
                *sum += &row.exact().weights[token];
            }
            ratio(&held.iter().product(), &total)
        })
    }

    fn set_probability(&self, set: &[u32]) -> f64 {
        surjections(&self.restricted(set, floats))
    }

    fn set_probability_exact(&self, set: &[u32]) -> Rational {
        let weight = by_inclusion_exclusion(&self.restricted(set, integers));
        ratio(&weight, &self.exact_total())
    }
}

/// [`Product`] in the table of laws.
pub const LAW: Law = Law {
    name: "product",
    words: "independent draws from n draft distributions",
    inside: "product of q_j(H)",
    made_of: MadeOf::EachDraft(|rows| Some(Arc::new(Product::new(rows)?))),
    hue: 5,
    ..Law::NONE
};
