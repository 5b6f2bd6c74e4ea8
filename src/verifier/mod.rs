//! Verifiers: rules that map (p, the draft law, X) to a law of the output token.
//!
//! A verifier is *lossless* when its output, averaged over X ~ D, has exactly the
//! law p. Every verifier here is lossless under the draft schemes that its
//! constructor takes, and refuses all others.
//!
//! [`VERIFIERS`] is the list of all; each file ends in its entry.
//!
//! # Two acceptances
//! *Algorithmic* acceptance is the probability that the rule accepts a draft.
//! *Membership* acceptance is P(output in A(X)); it also counts a residual draw
//! that happens to equal a draft, it is what alpha* bounds, and it is never below
//! the algorithmic one. For every rule of this module with its own parameters
//! the two are equal; each file says why. They differ for [`KSeq`] with a factor
//! above its best one.
//!
//! # Exactness
//! Each rule is written once over an arithmetic and runs both in `f64` and in
//! exact rationals. [`output_law_exact`] sums a rule over all tuples and so
//! proves, or refutes, losslessness with tolerance 0.

mod greedy;
mod k_seq;
mod law;
mod naive;
mod naive_tree;
mod optimal;
mod residual;
mod row_rule;
mod rrs;
mod rrs_wo;
mod single;
mod spechub;
mod table;
mod token_rule;

pub use greedy::GreedyVerifier;
pub use k_seq::KSeq;
pub use law::{
    Arithmetic, OutputLaw, TotalVariation, output_law, output_law_exact, total_variation,
    total_variation_exact,
};
pub use naive::Naive;
pub use naive_tree::NaiveTree;
pub use optimal::Optimal;
pub use row_rule::{RowAnswer, RowRate, RowRule, RowRuleError};
pub use rrs::Rrs;
pub use rrs_wo::RrsWo;
pub use single::Single;
pub use spechub::SpecHub;
pub(crate) use table::any_of;
pub use table::{Build, Entry, Lossless, UnknownVerifier, VerifierName};
pub use token_rule::TokenRule;

pub use crate::plan::Verdict;
pub use crate::row::RejectionBudget as RrsWoSettings;

use crate::distribution::Rational;
use crate::known::Known;
use crate::number::Number;
use crate::problem::Problem;
use crate::scheme::SchemeName;
use rand::{Rng, RngCore};
use std::fmt;
use std::sync::Arc;

/// Every verifier, in the order of reports.
pub const VERIFIERS: &[&Entry] = &[
    &single::ENTRY,
    &rrs::ENTRY,
    &rrs_wo::ENTRY,
    &k_seq::ENTRY,
    &naive_tree::ENTRY,
    &spechub::ENTRY,
    &greedy::ENTRY,
    &optimal::ENTRY,
    &naive::ENTRY,
];

/// Why a verifier cannot be built for a problem.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum VerifierError {
    /// The drafts are not drawn as the verifier assumes.
    #[error(
        "{verifier} is lossless for {} only, and this problem has {drafts} {scheme} draft(s); {cure}",
        verifier.draft_schemes()
    )]
    Scheme {
        /// The verifier.
        verifier: VerifierName,
        /// How the problem draws.
        scheme: SchemeName,
        /// How many drafts it has.
        drafts: usize,
        /// What to use instead.
        cure: String,
    },
    /// A plan would be too large.
    #[error(
        "{verifier} needs a plan over {entries:.3e} (set, token) pairs; at most {limit:.0e} are \
         solved, so lower the vocabulary or the number of drafts"
    )]
    Size {
        /// The verifier.
        verifier: VerifierName,
        /// About how many pairs there are.
        entries: f64,
        /// How many there may be.
        limit: f64,
    },
    /// A factor of k-seq that leaves a negative residual.
    #[error("k-seq: the factor is {factor}; it must be >= {least}, or the output law is not p")]
    Factor {
        /// The factor.
        factor: f64,
        /// About the smallest lossless factor.
        least: f64,
    },
}

impl VerifierError {
    fn scheme(verifier: VerifierName, problem: &Problem) -> Self {
        let scheme = problem.scheme().name();
        let names: Vec<&str> = VerifierName::made_for(scheme)
            .into_iter()
            .map(VerifierName::as_str)
            .collect();
        let cure = format!("use {} for these drafts", any_of(&names));
        Self::Scheme {
            verifier,
            scheme,
            drafts: problem.drafts(),
            cure,
        }
    }
}

/// Law of the output token given the draft tuple X.
///
/// The total is `sum(accepted) + rejected = 1`.
#[derive(Clone, Debug, PartialEq)]
pub struct ConditionalLaw<M> {
    /// Entry k: probability that draft k is accepted and is the output. As long
    /// as X.
    pub accepted: Vec<M>,
    /// Probability that no draft is accepted.
    pub rejected: M,
    /// Law of the output in that case, V entries that sum to 1; shared between
    /// tuples wherever the rule allows.
    pub residual: Arc<[M]>,
}

/// The two acceptance rates of a verifier.
#[derive(Clone, Debug, PartialEq)]
pub struct Acceptance {
    /// Probability that the rule accepts a draft.
    pub algorithmic: Known,
    /// P(output in A(X)).
    pub membership: Known,
    /// What a reader must know about how they were computed.
    pub note: Option<String>,
}

impl Acceptance {
    /// For a rule whose residual never equals a draft.
    fn same(rate: Known) -> Self {
        Self {
            algorithmic: rate.clone(),
            membership: rate,
            note: None,
        }
    }
}

/// A rule that maps (p, X) to a law of the output token.
///
/// Implementations are validated when they are built and then total: a tuple
/// that their scheme never draws still gets some law, which is what the tests
/// of deliberately mismatched schemes rely on.
pub trait Verifier: fmt::Debug + Send + Sync {
    /// Which verifier this is.
    fn name(&self) -> VerifierName;

    /// Law of the output given the tuple, in `f64`. At most O(nV).
    fn conditional(&self, tuple: &[u32]) -> ConditionalLaw<f64>;

    /// Law of the output given the tuple, exactly; `None` where the rule rests
    /// on rounded numbers.
    fn conditional_exact(&self, tuple: &[u32]) -> Option<ConditionalLaw<Rational>>;

    /// Runs the rule once.
    ///
    /// The uniform draws have 53 bits, so events below 1e-16 are not resolved;
    /// an event of probability 0 never happens.
    fn sample(&self, tuple: &[u32], rng: &mut dyn RngCore) -> Verdict;

    /// Acceptance rates averaged over X ~ D, without enumerating tuples.
    fn acceptance(&self) -> Acceptance;

    /// True if the output law depends on X through A(X) alone, so that
    /// enumerating sets is enough.
    fn depends_on_set_only(&self) -> bool {
        false
    }

    /// True if a sum over tuples handles all V tokens at each: a rule whose residual
    /// depends on the tuple, or a law whose tuples hardly share prefixes. Others
    /// handle the drafts alone.
    fn handles_all_tokens(&self) -> bool {
        false
    }

    /// True if the rule has a parameter that is rounded, so that not even its exact
    /// rate is that of the ideal rule.
    fn has_rounded_parameter(&self) -> bool {
        false
    }

    /// The output law by an integral of the rule's own, where there is one that
    /// shares nothing with how the rule was made. Used where tuples are too many to
    /// sum; algorithmic and membership acceptance may be taken as equal.
    fn integrated(&self) -> Option<OutputLaw<f64>> {
        None
    }
}

/// The verifier of that name for a problem.
///
/// # Errors
/// The problem's draft scheme is not one for which the verifier is lossless, or
/// the verifier's plan would be too large.
///
/// # Example
/// ```
/// use specgap::distribution::{Draft, Target};
/// use specgap::problem::Problem;
/// use specgap::scheme::WithReplacement;
/// use specgap::verifier::{VerifierName, verifier};
/// let scheme = WithReplacement::new(Draft::new(&[0.5, 0.5])?, 2);
/// let problem = Problem::new("coin", Target::new(&[0.25, 0.75])?, scheme)?;
/// let rrs = verifier(VerifierName::RRS, &problem)?;
/// assert_eq!(rrs.acceptance().membership.value(), 0.875);
/// assert!(verifier(VerifierName::RRS_WO, &problem).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn verifier(name: VerifierName, problem: &Problem) -> Result<Box<dyn Verifier>, VerifierError> {
    (name.entry().build)(problem, &RrsWoSettings::default())
}

/// True with the given probability; never for 0, always for 1.
fn happens(probability: f64, rng: &mut dyn RngCore) -> bool {
    // The draw is in [0, 1), and the comparison is strict.
    rng.random::<f64>() < probability
}

/// A token drawn in proportion to its weight; weights of 0 are never drawn.
fn draw(weights: &[f64], rng: &mut dyn RngCore) -> u32 {
    let total = f64::total(weights);
    let mut left = rng.random::<f64>() * total;
    let mut last = 0;
    for (token, &weight) in weights.iter().enumerate() {
        if weight > 0.0 {
            last = token;
            if left < weight {
                break;
            }
            left -= weight;
        }
    }
    crate::scheme::token_id(last)
}

/// Runs a conditional law once.
fn draw_from(law: &ConditionalLaw<f64>, tuple: &[u32], rng: &mut dyn RngCore) -> Verdict {
    let mut left = rng.random::<f64>();
    let mut last = None;
    for (index, &mass) in law.accepted.iter().enumerate() {
        if mass > 0.0 {
            last = Some(index);
            if left < mass {
                return Verdict {
                    token: tuple[index],
                    accepted: last,
                };
            }
            left -= mass;
        }
    }
    match last {
        // Rounding left a sliver beyond the last event that can happen.
        Some(index) if law.rejected <= 0.0 => Verdict {
            token: tuple[index],
            accepted: last,
        },
        _ => Verdict {
            token: draw(&law.residual, rng),
            accepted: None,
        },
    }
}

/// The law of drafts offered one after another: `keep[k]` is the probability
/// that draft k is accepted once it is its turn.
fn sequential<M: Number>(keep: Vec<M>, residual: Arc<[M]>) -> ConditionalLaw<M> {
    let mut reached = M::one();
    let mut accepted = Vec::with_capacity(keep.len());
    for kept in keep {
        accepted.push(reached.times(&kept));
        reached = reached.times(&kept.complement());
    }
    ConditionalLaw {
        accepted,
        rejected: reached,
        residual,
    }
}

#[cfg(test)]
mod tests;
