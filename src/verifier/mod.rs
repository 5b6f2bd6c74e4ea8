//! Verifiers: rules that map (p, the draft law, X) to a law of the output token.
//!
//! A verifier is *lossless* when its output, averaged over X ~ D, has exactly the
//! law p. Every verifier here is lossless under the draft schemes that its
//! constructor takes, and refuses all others.
//!
//! | name | draft schemes | rule | acceptance |
//! | --- | --- | --- | --- |
//! | [`single`](Single) | any, n = 1 | keep x with min(1, p/q), else draw from (p-q)+ | sum of min(p, q) |
//! | [`rrs`](Rrs) | `with-replacement`, `product` | the same draft by draft, p becoming the residual each time | 1 - M_(n+1), O(nV) |
//! | [`rrs-wo`](RrsWo) | `without-replacement` | the same, q losing each rejected token | recursion in two scalars |
//! | [`k-seq`](KSeq) | `with-replacement` | keep x with min(1, p/(rho q)) | 1 - (1-b)^n |
//! | [`spechub`](SpecHub) | `hub` | fill the others first, the hub from what is left | p(a) + sum of min(p, q/(1-q(a))) |
//! | [`greedy`](GreedyVerifier) | `greedy` | maximal coupling of p with the last draft | p(top) + sum of min(p, q_last) |
//! | [`optimal`](Optimal) | any; large V: `with-replacement` | the plan of a maximum flow, or slot weights | alpha* |
//! | [`naive`](Naive) | any | draw from p without looking | sum of p_i P(i in A(X)) |
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

mod curve;
mod evaluate;
mod greedy;
mod k_seq;
mod law;
mod naive;
mod optimal;
mod residual;
mod row_rates;
mod rrs;
mod rrs_wo;
mod single;
mod spechub;

pub use evaluate::{
    Assessment, Evaluation, ExpectedCheck, FLOAT_TOLERANCE, Measured, Outcome, evaluate,
    evaluate_with, optimal_rate,
};
pub use greedy::GreedyVerifier;
pub use k_seq::KSeq;
pub use law::{
    OutputLaw, TotalVariation, output_law, output_law_exact, total_variation, total_variation_exact,
};
pub use naive::Naive;
pub use optimal::{LARGEST_PLAN, Optimal};
pub use row_rates::RowRates;
pub use rrs::Rrs;
pub use rrs_wo::{RrsWo, RrsWoSettings};
pub use single::Single;
pub use spechub::SpecHub;

pub use crate::plan::Verdict;

use crate::distribution::{Rational, round_down, round_nearest, round_up};
use crate::enclosure::Enclosure;
use crate::number::Number;
use crate::problem::Problem;
use crate::scheme::SchemeName;
use rand::{Rng, RngCore};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The verifiers by their names in problem files and reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum VerifierName {
    /// [`Single`]
    Single,
    /// [`Rrs`]
    Rrs,
    /// [`RrsWo`]
    RrsWo,
    /// [`KSeq`]
    KSeq,
    /// [`SpecHub`]
    SpecHub,
    /// [`GreedyVerifier`]
    Greedy,
    /// [`Optimal`]
    Optimal,
    /// [`Naive`]
    Naive,
}

impl VerifierName {
    /// All verifiers, in the order of reports.
    pub const ALL: [Self; 8] = [
        Self::Single,
        Self::Rrs,
        Self::RrsWo,
        Self::KSeq,
        Self::SpecHub,
        Self::Greedy,
        Self::Optimal,
        Self::Naive,
    ];

    /// The name as written in problem files, e.g. `rrs-wo`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Rrs => "rrs",
            Self::RrsWo => "rrs-wo",
            Self::KSeq => "k-seq",
            Self::SpecHub => "spechub",
            Self::Greedy => "greedy",
            Self::Optimal => "optimal",
            Self::Naive => "naive",
        }
    }

    /// The rule in one line, for reports.
    pub fn rule(self) -> &'static str {
        match self {
            Self::Single => "keep the draft with min(1, p/q), else draw from (p-q)+",
            Self::Rrs => "single's rule draft by draft, p becoming its residual each time",
            Self::RrsWo => "rrs, and q loses each rejected token",
            Self::KSeq => "keep each draft with min(1, p/(rho q)), rho the same for all",
            Self::SpecHub => "fill every other token from its pairs first, then the hub",
            Self::Greedy => "maximal coupling of p with the law of the last draft",
            Self::Optimal => "a plan that attains alpha*, from a flow or by slot weights",
            Self::Naive => "draw from p without looking at the drafts",
        }
    }

    /// The draft schemes under which the rule is lossless, for reports.
    pub fn draft_schemes(self) -> &'static str {
        match self {
            Self::Single => "one draft (n = 1) of any scheme",
            Self::Rrs => "with-replacement and product drafts",
            Self::RrsWo => "without-replacement drafts",
            Self::KSeq => "with-replacement drafts",
            Self::SpecHub => "hub drafts",
            Self::Greedy => "greedy drafts",
            Self::Optimal | Self::Naive => "all drafts",
        }
    }
}

impl fmt::Display for VerifierName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A verifier name that is not one of [`VerifierName::ALL`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{0}\" is not a verifier; choose one of single, rrs, rrs-wo, k-seq, spechub, greedy, \
     optimal, naive"
)]
pub struct UnknownVerifier(pub String);

impl FromStr for VerifierName {
    type Err = UnknownVerifier;
    fn from_str(text: &str) -> Result<Self, UnknownVerifier> {
        Self::ALL
            .into_iter()
            .find(|name| name.as_str() == text)
            .ok_or_else(|| UnknownVerifier(text.to_owned()))
    }
}

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
        cure: &'static str,
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
        let cure = match scheme {
            SchemeName::WithReplacement => "use rrs or k-seq for these drafts",
            SchemeName::WithoutReplacement => "use rrs-wo for these drafts",
            SchemeName::Greedy => "use greedy for these drafts",
            SchemeName::Hub => "use spechub for these drafts",
            SchemeName::Product => "use rrs for these drafts",
            SchemeName::DistinctConditioned | SchemeName::Explicit => {
                "use optimal or naive for these drafts"
            }
        };
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

/// How often a verifier accepts, dimensionless, in [0, 1], and how far the
/// number can be trusted.
#[derive(Clone, Debug, PartialEq)]
pub enum Rate {
    /// An exact rational.
    Exact(Rational),
    /// Between two bounds that account for rounding and for whatever was left
    /// out.
    Enclosed {
        /// Best estimate.
        value: f64,
        /// Lower bound.
        lower: f64,
        /// Upper bound.
        upper: f64,
    },
    /// A mean over simulated runs with a confidence interval.
    MonteCarlo {
        /// The mean.
        value: f64,
        /// Lower end of the interval.
        lower: f64,
        /// Upper end of the interval.
        upper: f64,
        /// Probability that the interval holds the true rate, at least.
        confidence: f64,
        /// Number of independent runs.
        samples: u64,
        /// Seed of the generator (ChaCha8).
        seed: u64,
    },
}

impl Rate {
    /// A value with an absolute error, cut to [0, 1].
    pub fn within(value: f64, error: f64) -> Self {
        Self::between(value, value - error, value + error)
    }

    /// A value between bounds, cut to [0, 1]. Bounds that are no numbers bound
    /// nothing: they become 0 and 1.
    pub fn between(value: f64, lower: f64, upper: f64) -> Self {
        let Enclosure {
            value,
            lower,
            upper,
            ..
        } = Enclosure::rate(value, lower, upper);
        Self::Enclosed {
            value,
            lower,
            upper,
        }
    }

    /// The best estimate.
    pub fn value(&self) -> f64 {
        match self {
            Self::Exact(value) => round_nearest(value),
            Self::Enclosed { value, .. } | Self::MonteCarlo { value, .. } => *value,
        }
    }

    /// Lower bound, or lower end of the confidence interval.
    pub fn lower(&self) -> f64 {
        match self {
            Self::Exact(value) => round_down(value),
            Self::Enclosed { lower, .. } | Self::MonteCarlo { lower, .. } => *lower,
        }
    }

    /// Upper bound, or upper end of the confidence interval.
    pub fn upper(&self) -> f64 {
        match self {
            Self::Exact(value) => round_up(value),
            Self::Enclosed { upper, .. } | Self::MonteCarlo { upper, .. } => *upper,
        }
    }

    /// upper - lower; 0 if exact.
    pub fn width(&self) -> f64 {
        match self {
            Self::Exact(_) => 0.0,
            _ => self.upper() - self.lower(),
        }
    }

    /// The exact value, where it is known.
    pub fn exact(&self) -> Option<&Rational> {
        match self {
            Self::Exact(value) => Some(value),
            _ => None,
        }
    }

    /// `exact`, `enclosed` or `monte-carlo`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Exact(_) => "exact",
            Self::Enclosed { .. } => "enclosed",
            Self::MonteCarlo { .. } => "monte-carlo",
        }
    }
}

/// The two acceptance rates of a verifier.
#[derive(Clone, Debug, PartialEq)]
pub struct Acceptance {
    /// Probability that the rule accepts a draft.
    pub algorithmic: Rate,
    /// P(output in A(X)).
    pub membership: Rate,
    /// What a reader must know about how they were computed.
    pub note: Option<String>,
}

impl Acceptance {
    /// For a rule whose residual never equals a draft.
    fn same(rate: Rate) -> Self {
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
/// let rrs = verifier(VerifierName::Rrs, &problem)?;
/// assert_eq!(rrs.acceptance().membership.value(), 0.875);
/// assert!(verifier(VerifierName::RrsWo, &problem).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn verifier(name: VerifierName, problem: &Problem) -> Result<Box<dyn Verifier>, VerifierError> {
    Ok(match name {
        VerifierName::Single => Box::new(Single::new(problem)?),
        VerifierName::Rrs => Box::new(Rrs::new(problem)?),
        VerifierName::RrsWo => Box::new(RrsWo::new(problem)?),
        VerifierName::KSeq => Box::new(KSeq::new(problem)?),
        VerifierName::SpecHub => Box::new(SpecHub::new(problem)?),
        VerifierName::Greedy => Box::new(GreedyVerifier::new(problem)?),
        VerifierName::Optimal => Box::new(Optimal::new(problem)?),
        VerifierName::Naive => Box::new(Naive::new(problem)),
    })
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
