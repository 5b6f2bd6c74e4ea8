//! What a draft law is, and what the rest of the crate asks of it by its name.

use super::composed::{Composition, CompositionError};
use super::explicit_error::ExplicitError;
use super::score::Scores;
use super::set_law::{ExactSetLaw, SetLaw};
#[cfg(doc)]
use super::{LAWS, UNDERFLOW};
use crate::entry_name::{Named, entry_name};
use specgap_number::distribution::{Draft, Rational, TupleProbabilities};
use specgap_number::number::Number;
use specgap_plan::{Children, Strata};
use specgap_row::Question;
use std::cell::OnceCell;
use std::fmt;
use std::sync::Arc;

/// One draft law in the table [`LAWS`].
///
/// Reading of problem files, random problems of the claims, reports, colours, help
/// texts and error messages take what they need from here: a law is added by its file
/// and its line in the table.
#[derive(Debug)]
pub struct Law {
    /// The name in problem files, options and reports.
    pub name: &'static str,
    /// Other names of it, which are read.
    pub aliases: &'static [&'static str],
    /// The law in one line.
    pub words: &'static str,
    /// Q(H) = P(all drafts in H), as a formula in words.
    pub inside: &'static str,
    /// Whether all drafts of a tuple are different by construction, so that n may not
    /// exceed V.
    pub distinct: bool,
    /// The only number of drafts that there is; `None` if any will do.
    pub only: Option<usize>,
    /// What the law is made of.
    pub made_of: MadeOf,
    /// Where it is proved that sorting by q/p finds the optimal subset; `None` where it
    /// does not.
    pub sort_theorem: Option<&'static str>,
    /// The law of the next draft, for laws that draw from q one draft after another.
    pub next_draft: Option<NextDraft>,
    /// How rows of a log are answered; `None` if a log cannot hold such drafts.
    pub on_row: Option<OnRow>,
    /// Whether reports of logs measure it where no laws are named, if a log can hold such drafts.
    pub by_default: bool,
    /// Whether children of a live tree can be drawn so: one after another, from q and those
    /// before.
    pub child_by_child: bool,
    /// How a tree that is verified from its leaves draws a node's children so, where what they are
    /// offered follows from rows alone.
    pub children: Option<Children>,
    /// Whether the first j of n drafts have the law of j drafts, so that what the first slots
    /// accept together is at most the optimum of so many.
    pub prefixed: bool,
    /// Whether drafts are chosen by their rank in q.
    pub by_rank: bool,
    /// Its colour in plots, the same in all: a number of the palette.
    pub hue: usize,
}

impl Law {
    /// An entry whose columns are empty.
    pub(super) const NONE: Self = Self {
        name: "",
        aliases: &[],
        words: "",
        inside: "",
        distinct: false,
        only: None,
        made_of: MadeOf::EachDraft(|_| None),
        sort_theorem: None,
        next_draft: None,
        on_row: None,
        by_default: false,
        child_by_child: false,
        children: None,
        prefixed: false,
        by_rank: false,
        hue: 0,
    };
}

/// Of a row and the drafts so far, makes weights that are q those of the next draft: V entries
/// whose sum need not be 1, all 0 where q has no mass on others.
pub type NextDraft = fn(&Drafting<'_>, &[u32], &mut [f64]);

/// How n drafts are drawn from a row, one after another.
#[derive(Debug)]
pub struct Drafting<'a> {
    law: SchemeName,
    pub(super) q: &'a [f64],
    pub(super) drafts: usize,
    strata: OnceCell<Strata>,
}

impl Drafting<'_> {
    /// Puts the weights of the next draft into `weights`, given the drafts so far. All 0 where
    /// there is none, and for laws that do not draw one draft after another.
    pub fn next(&self, before: &[u32], weights: &mut Vec<f64>) {
        weights.clear();
        match self.law.0.next_draft {
            Some(next) => {
                weights.extend(self.q);
                next(self, before, weights);
            }
            None => weights.resize(self.q.len(), 0.0),
        }
    }

    /// The strata of the row, found once: those of the plans, at any vocabulary, in `f64`.
    pub(super) fn strata(&self) -> &Strata {
        self.strata
            .get_or_init(|| Strata::of_row(self.q, self.drafts))
    }
}

/// Builds a law from its numbers; by this a problem file's `[draft]` becomes one.
#[derive(Clone, Copy, Debug)]
pub enum MadeOf {
    /// From one draft distribution, `draft.q`, and n.
    OneDraft(fn(Draft, usize) -> Arc<dyn DraftScheme>),
    /// From a distribution a draft, `draft.qs`; `None` if there are none or they are of
    /// different lengths.
    EachDraft(fn(Vec<Draft>) -> Option<Arc<dyn DraftScheme>>),
    /// From V, n, and `draft.tuples` with their `draft.probabilities`.
    Tuples(TuplesToLaw),
    /// From V and the parts of `draft.law`, with `draft.q` where they name no q.
    Parts(PartsToLaw),
}

/// V, n, tuples and their probabilities to a law.
pub type TuplesToLaw = fn(
    usize,
    usize,
    Vec<Vec<u32>>,
    TupleProbabilities,
) -> Result<Arc<dyn DraftScheme>, ExplicitError>;

/// V and parts to a law.
pub type PartsToLaw = fn(usize, Composition) -> Result<Arc<dyn DraftScheme>, CompositionError>;

impl MadeOf {
    /// The fields of `[draft]` that it reads, `scheme` apart.
    pub fn fields(self) -> &'static [&'static str] {
        match self {
            Self::OneDraft(_) => &["draft.q"],
            Self::EachDraft(_) => &["draft.qs"],
            Self::Tuples(_) => &["draft.tuples", "draft.probabilities"],
            Self::Parts(_) => &["draft.law", "draft.q"],
        }
    }
}

/// What a law answers about one row of a log.
#[derive(Debug)]
pub struct OnRow {
    /// alpha* of n drafts.
    pub optimum: Question,
    /// Why that is the optimum, for reports.
    pub status: &'static str,
    /// How often a draw from p is among the drafts, the sum of p_i P(i in A(X)): what
    /// `exact-match` accepts. `None` if it is not computed.
    pub hits: Option<Question>,
}

/// A draft law by its name: a handle to its entry in [`LAWS`].
///
/// Handles compare, sort and hash by name.
///
/// # Example
/// ```
/// use specgap_core::scheme::SchemeName;
/// let law: SchemeName = "hub".parse()?;
/// assert_eq!(law, SchemeName::HUB);
/// assert!(law.fits(2) && !law.fits(3));
/// # Ok::<(), specgap_core::scheme::UnknownScheme>(())
/// ```
#[derive(Clone, Copy)]
pub struct SchemeName(pub(super) &'static Law);

impl SchemeName {
    /// The law in one line, for reports.
    pub fn law(self) -> &'static str {
        self.0.words
    }

    /// True if all drafts of a tuple are different by construction, so that
    /// n may not exceed V.
    pub fn draws_distinct_tokens(self) -> bool {
        self.0.distinct
    }

    /// Returns whether the law has n drafts.
    pub fn fits(self, drafts: usize) -> bool {
        self.0.only.is_none_or(|only| only == drafts)
    }
}

impl Named for Law {
    fn name(&self) -> &'static str {
        self.name
    }

    fn aliases(&self) -> &'static [&'static str] {
        self.aliases
    }
}

entry_name!(SchemeName of Law);

impl SchemeName {
    /// Prepares the laws of n drafts of q.
    pub fn drafting(self, q: &[f64], drafts: usize) -> Drafting<'_> {
        Drafting {
            law: self,
            q,
            drafts,
            strata: OnceCell::new(),
        }
    }
}

/// The token with the most mass, of several the lowest; 0 of none.
pub(crate) fn likeliest(row: &[f64]) -> u32 {
    let mut best = 0;
    for (token, mass) in row.iter().enumerate() {
        if *mass > row[best] {
            best = token;
        }
    }
    specgap_number::distribution::token_id(best)
}

/// Leaves weight on tokens that were not drafted.
pub(super) fn without(before: &[u32], weights: &mut [f64]) {
    for &gone in before {
        if let Some(weight) = weights.get_mut(gone as usize) {
            *weight = 0.0;
        }
    }
}

/// Leaves weight on the likeliest token alone.
pub(super) fn only_likeliest(weights: &mut [f64]) {
    let best = likeliest(weights) as usize;
    for (token, weight) in weights.iter_mut().enumerate() {
        if token != best {
            *weight = 0.0;
        }
    }
}

/// Q along a chain of prefixes, with the error that it may carry.
#[derive(Clone, Debug)]
pub struct PrefixScan {
    /// Entry k is Q of the first k+1 tokens of the order.
    pub inside: Vec<f64>,
    /// Bound on the absolute error of every entry.
    pub absolute_error: f64,
}

impl PrefixScan {
    /// Q behind each token of the order, as `step` says one after the other.
    pub(super) fn along(order: &[usize], error: f64, step: impl FnMut(usize) -> f64) -> Self {
        Self {
            inside: along(order, step),
            absolute_error: error,
        }
    }
}

/// What `step` says of each token of an order, one after the other.
pub(super) fn along<M>(order: &[usize], step: impl FnMut(usize) -> M) -> Vec<M> {
    order.iter().copied().map(step).collect()
}

/// Sets of more tokens than this are not evaluated one by one: that takes
/// 2^size steps.
pub const LARGEST_CHECKED_SET: usize = 20;

/// A law of draft tuples over a vocabulary.
///
/// Implementations are validated when they are built; every method is total.
pub trait DraftScheme: fmt::Debug + Send + Sync {
    /// Returns which of [`LAWS`] this is.
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
    /// `product` and `explicit`): that of tuples, where no two are known to have one set.
    fn set_count(&self) -> f64 {
        self.tuple_count()
    }

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

    /// P(nothing is drafted), which is Q of the empty set: 0 but for laws that stop early.
    fn nothing(&self) -> f64 {
        0.0
    }

    /// P(nothing is drafted), exactly.
    fn nothing_exact(&self) -> Rational {
        Rational::zero()
    }

    /// The scores that Q is convex in: Q is a sum of products of functions, each of which
    /// grows the faster per unit of one score the larger its set is (`docs/theory/laws.md`).
    /// `None` where no theorem says so.
    fn scores(&self) -> Option<Scores<'_>> {
        self.name().entry().sort_theorem?;
        self.draft().map(Scores::of)
    }

    /// Returns whether sorting by one score over p finds the optimal subset: Q is *w-convex*, that
    /// is, its growth per unit of w never falls along a chain of subsets, and then some prefix of
    /// the tokens sorted by w/p minimises P - Q. w is q for most laws.
    fn has_sort_theorem(&self) -> bool {
        self.scores().is_some_and(|scores| scores.is_one())
    }

    /// Operations that [`Self::prefix_scan_exact`] takes beyond one a token, about.
    fn exact_scan_cost(&self) -> f64 {
        0.0
    }

    /// Returns whether exact laws are sums of fractions, which are slow to reduce.
    fn adds_fractions(&self) -> bool {
        false
    }

    /// Returns how many drafts are the same tokens in every draw, where at most one other is drawn;
    /// `None` for every other kind of law. The optimum then has a closed form.
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
    /// use specgap_number::distribution::Draft;
    /// use specgap_core::scheme::{DraftScheme, WithReplacement};
    /// let scheme = WithReplacement::new(Draft::new(&[0.75, 0.25])?, 2);
    /// assert_eq!(scheme.inside(&[0]), 0.5625);
    /// assert_eq!(scheme.inside(&[]), 0.0);
    /// # Ok::<(), specgap_number::distribution::DistributionError>(())
    /// ```
    fn inside(&self, subset: &[usize]) -> f64 {
        self.prefix_scan(subset)
            .inside
            .last()
            .copied()
            .unwrap_or_else(|| self.nothing())
    }

    /// Q(H) for a list of distinct tokens, exactly.
    fn inside_exact(&self, subset: &[usize]) -> Rational {
        self.prefix_scan_exact(subset)
            .pop()
            .unwrap_or_else(|| self.nothing_exact())
    }
}

/// An arithmetic in which laws have their probabilities: `f64`, or an exact [`Rational`].
pub(crate) trait Probability: Number {
    /// Visits every tuple of positive probability.
    fn tuples(law: &dyn DraftScheme, visit: &mut dyn FnMut(&[u32], &Self));
    /// Visits every set of positive probability.
    fn sets(law: &dyn DraftScheme, visit: &mut dyn FnMut(&[u32], Self));
    /// P(A(X) = `set`), from the definition.
    fn set_mass(law: &dyn DraftScheme, set: &[u32]) -> Self;

    /// All tuples of positive probability, with these.
    fn listed(law: &dyn DraftScheme) -> (Vec<Vec<u32>>, Vec<Self>) {
        let (mut tuples, mut masses) = (Vec::new(), Vec::new());
        Self::tuples(law, &mut |tuple, mass| {
            tuples.push(tuple.to_vec());
            masses.push(mass.clone());
        });
        (tuples, masses)
    }
}

impl Probability for f64 {
    fn tuples(law: &dyn DraftScheme, visit: &mut dyn FnMut(&[u32], &Self)) {
        law.for_each_tuple(&mut |tuple, mass| visit(tuple, &mass));
    }
    fn sets(law: &dyn DraftScheme, visit: &mut dyn FnMut(&[u32], Self)) {
        let law = law.set_law();
        for (set, &mass) in law.sets.iter().zip(&law.probabilities) {
            visit(set, mass);
        }
    }
    fn set_mass(law: &dyn DraftScheme, set: &[u32]) -> Self {
        law.set_probability(set)
    }
}

impl Probability for Rational {
    fn tuples(law: &dyn DraftScheme, visit: &mut dyn FnMut(&[u32], &Self)) {
        law.for_each_tuple_exact(visit);
    }
    fn sets(law: &dyn DraftScheme, visit: &mut dyn FnMut(&[u32], Self)) {
        let law = law.exact_set_law();
        for (set, weight) in law.sets.iter().zip(&law.weights) {
            visit(set, Self::fraction(weight, &law.total));
        }
    }
    fn set_mass(law: &dyn DraftScheme, set: &[u32]) -> Self {
        law.set_probability_exact(set)
    }
}

/// Name, V, n and q of a law, which is `None` where it does not draw from one alone.
macro_rules! of_draft {
    ($law:ident, $name:expr, $drafts:expr) => {
        of_draft!($law, $name, $law.draft.vocab(), $drafts, Some(&$law.draft));
    };
    ($law:ident, $name:expr, $vocab:expr, $drafts:expr, $draft:expr) => {
        fn name(&$law) -> SchemeName {
            $name
        }
        fn vocab(&$law) -> usize {
            $vocab
        }
        fn drafts(&$law) -> usize {
            $drafts
        }
        fn draft(&$law) -> Option<&Draft> {
            $draft
        }
    };
}
pub(super) use of_draft;

/// Tuples in `f64` and exactly, by a method that visits them in either, given what it needs for that.
macro_rules! tuples_in_both {
    ($law:ident, $tuples:ident($($float:expr, $exact:expr)?)) => {
        fn for_each_tuple(&$law, visit: &mut dyn FnMut(&[u32], f64)) {
            $law.$tuples($($float,)? &mut |tuple, mass: &f64| visit(tuple, *mass));
        }
        fn for_each_tuple_exact(&$law, visit: &mut dyn FnMut(&[u32], &Rational)) {
            $law.$tuples($($exact,)? visit);
        }
    };
}
pub(super) use tuples_in_both;
