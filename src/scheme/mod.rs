//! Draft sampling schemes: the law D(X) of the draft tuple X = (x_1..x_n).
//!
//! A scheme knows four things about its law: its tuples one by one, the law of
//! the *set* A(X) of distinct tokens (which is all that the optimum depends on),
//! `Q(H) = P(every draft lies in H)`, and Q along a chain of growing H. Each in
//! `f64` with a stated error, and exactly.
//!
//! [`LAWS`] is the list of all laws; each file ends in its entry.
//!
//! `without-replacement` and `distinct-conditioned` are **different laws**. The
//! first is n draws one after another (Hu et al., eq. 6; the Plackett-Luce law), the
//! second is the law whose Q is the ratio of elementary symmetric polynomials
//! that the same paper uses to compute the optimum (sec. 4.2.2). For
//! q = (.5, .3, .2) and n = 2 the pair {0,1} has probability 0.514286 under the
//! first and 0.483871 under the second. Neither stands in for the other here.
//!
//! **Small supports.** A scheme whose drafts are distinct returns the whole
//! support of q when that holds fewer than n tokens; tuples are then shorter
//! than n.

mod combinations;
mod distinct_conditioned;
mod explicit;
mod greedy;
mod hub;
mod product;
mod race;
mod set_law;
mod surjection;
mod table;
mod top;
mod with_replacement;
mod without_replacement;

pub use distinct_conditioned::DistinctConditioned;
pub use explicit::{Explicit, ExplicitError};
pub use greedy::Greedy;
pub use hub::Hub;
pub use product::Product;
pub use set_law::{ExactSetLaw, SetFamily, SetLaw, UNDERFLOW};
pub use table::{Law, MadeOf, OnRow, SchemeName, TuplesToLaw, UnknownScheme};
pub use top::Top;
pub use with_replacement::WithReplacement;
pub use without_replacement::WithoutReplacement;

pub(crate) use combinations::choose;

use crate::distribution::{Draft, Rational};
use crate::number::Number;
use std::fmt;

/// Every draft law, in the order of reports.
pub const LAWS: &[&Law] = &[
    &with_replacement::LAW,
    &without_replacement::LAW,
    &distinct_conditioned::LAW,
    &greedy::LAW,
    &hub::LAW,
    &product::LAW,
    &explicit::LAW,
    &top::LAW,
];

/// Q along a chain of prefixes, with the error that it may carry.
#[derive(Clone, Debug)]
pub struct PrefixScan {
    /// Entry k is Q of the first k+1 tokens of the order.
    pub inside: Vec<f64>,
    /// Bound on the absolute error of every entry.
    pub absolute_error: f64,
}

/// Sets of more tokens than this are not evaluated one by one: that takes
/// 2^size steps.
pub const LARGEST_CHECKED_SET: usize = 20;

/// A law of draft tuples over a vocabulary.
///
/// Implementations are validated when they are built; every method is total.
pub trait DraftScheme: fmt::Debug + Send + Sync {
    /// Which of [`LAWS`] this is.
    fn name(&self) -> SchemeName;

    /// Vocabulary size V.
    fn vocab(&self) -> usize;

    /// Number of drafts n.
    fn drafts(&self) -> usize;

    /// The draft model's distribution, where there is a single one.
    fn draft(&self) -> Option<&Draft>;

    /// The law of the draft at `position` (from 0) where every draft is drawn
    /// independently of the others: q for `with-replacement`, q_k for
    /// `product`. `None` under every other scheme, and for a position that
    /// does not exist.
    fn independent_draft(&self, position: usize) -> Option<&Draft> {
        let _ = position;
        None
    }

    /// Number of tuples of positive probability (an upper bound for `product`;
    /// may exceed what can be enumerated).
    fn tuple_count(&self) -> f64;

    /// Visits every tuple of positive probability with its probability.
    ///
    /// # Complexity
    /// O(n) a tuple; see [`Self::tuple_count`] before calling.
    fn for_each_tuple(&self, visit: &mut dyn FnMut(&[u32], f64));

    /// Visits every tuple of positive probability with its exact probability.
    fn for_each_tuple_exact(&self, visit: &mut dyn FnMut(&[u32], &Rational));

    /// Number of sets A(X) of positive probability (an upper bound for
    /// `product` and `explicit`).
    fn set_count(&self) -> f64;

    /// Law of the set A(X) in `f64`, every tuple with the same tokens merged.
    fn set_law(&self) -> SetLaw;

    /// Arithmetic operations that [`Self::set_law`] takes, about; it may be
    /// astronomical, and is to be asked before the law is.
    fn set_law_cost(&self) -> f64 {
        self.set_count() * (self.drafts() * self.drafts()) as f64
    }

    /// Arithmetic operations that [`Self::set_probability`] takes for all sets
    /// together, about.
    fn set_check_cost(&self) -> f64 {
        self.set_law_cost()
    }

    /// Most tokens that a set may have for [`Self::set_probability`] to be
    /// evaluated.
    fn largest_checked_set(&self) -> usize {
        LARGEST_CHECKED_SET
    }

    /// Bits that an exact set probability's numerator may take, about.
    fn exact_bits(&self) -> f64;

    /// Law of the set A(X) as integer weights over a common total.
    fn exact_set_law(&self) -> ExactSetLaw;

    /// Q along the chain of prefixes of `order` (distinct tokens).
    fn prefix_scan(&self, order: &[usize]) -> PrefixScan;

    /// Q along the chain of prefixes of `order`, exactly.
    fn prefix_scan_exact(&self, order: &[usize]) -> Vec<Rational>;

    /// Whether sorting by q/p finds the optimal subset: Q is *q-convex*, that is, its
    /// growth per unit of q never falls along a chain of subsets, and then some prefix
    /// of the tokens sorted by q/p minimises P - Q.
    fn has_sort_theorem(&self) -> bool {
        self.name().entry().sort_theorem.is_some()
    }

    /// How many drafts are the same tokens in every draw, where at most one other is
    /// drawn; `None` for every other kind of law. The optimum then has a closed form.
    fn fixed_drafts(&self) -> Option<usize> {
        None
    }

    /// P(A(X) = `set`), from the definition and not from the merged law.
    ///
    /// `set` is strictly ascending. The relative error is at most
    /// [`Self::set_probability_error`], up to [`UNDERFLOW`].
    fn set_probability(&self, set: &[u32]) -> f64;

    /// Bound on the relative error of [`Self::set_probability`].
    fn set_probability_error(&self) -> f64 {
        let n = self.drafts() as f64;
        2.0 * n * (n + 8.0) * f64::EPSILON
    }

    /// P(A(X) = `set`) exactly, from the definition and not from the merged law.
    fn set_probability_exact(&self, set: &[u32]) -> Rational;

    /// Q(H) for a list of distinct tokens, in `f64`.
    ///
    /// # Example
    /// ```
    /// use specgap::distribution::Draft;
    /// use specgap::scheme::{DraftScheme, WithReplacement};
    /// let scheme = WithReplacement::new(Draft::new(&[0.75, 0.25])?, 2);
    /// assert_eq!(scheme.inside(&[0]), 0.5625);
    /// assert_eq!(scheme.inside(&[]), 0.0);
    /// # Ok::<(), specgap::distribution::DistributionError>(())
    /// ```
    fn inside(&self, subset: &[usize]) -> f64 {
        self.prefix_scan(subset)
            .inside
            .last()
            .copied()
            .unwrap_or(0.0)
    }

    /// Q(H) for a list of distinct tokens, exactly.
    fn inside_exact(&self, subset: &[usize]) -> Rational {
        self.prefix_scan_exact(subset)
            .pop()
            .unwrap_or_else(Rational::zero)
    }
}

/// The token as the `u32` that tuples and sets hold.
///
/// Vocabularies are checked to fit when a problem is built.
pub(crate) fn token_id(token: usize) -> u32 {
    u32::try_from(token).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
