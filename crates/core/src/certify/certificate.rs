//! Certificates as files: a subset and a plan, in exact fractions.

use crate::coupling::{PlanMasses, Rounding, TransportPlan};
use crate::problem::Problem;
use crate::scheme::SetFamily;
use num_traits::{Signed, Zero};
use serde::{Deserialize, Serialize};
use specgap_number::distribution::{
    ParseRationalError, Rational, format_rational, integer_weights, parse_rational, ratio,
};
use specgap_number::known::Known;
use std::collections::BTreeMap;

/// Why a certificate proves nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// Another format version.
    #[error("schema is {0}; this build reads schema 1")]
    Schema(u32),
    /// The certificate is about another problem.
    #[error("problem is \"{certificate}\"; the problem file is \"{problem}\"")]
    OtherProblem {
        /// Name in the certificate.
        certificate: String,
        /// Name in the problem file.
        problem: String,
    },
    /// A token outside the vocabulary.
    #[error("{place}: token {token} is not in 0..{vocab}")]
    Token {
        /// `subset` or `plan`.
        place: &'static str,
        /// The token.
        token: usize,
        /// V.
        vocab: usize,
    },
    /// Tokens out of order, or twice.
    #[error("{place}: token {second} follows {first}; tokens must be strictly ascending")]
    Order {
        /// Where.
        place: String,
        /// A token.
        first: usize,
        /// Its successor.
        second: usize,
    },
    /// A set that stands twice.
    #[error("plan: set {set:?} stands twice; merge its entries")]
    DuplicateSet {
        /// The set.
        set: Vec<u32>,
    },
    /// A set whose probability would take 2^size steps.
    #[error(
        "plan: set {index} has {size} tokens; sets of up to {limit} are checked under this scheme"
    )]
    SetTooLarge {
        /// Position of the set in the plan, sets sorted.
        index: usize,
        /// Its size.
        size: usize,
        /// The largest that is checked.
        limit: usize,
    },
    /// A token accepted out of a set that does not hold it.
    #[error(
        "plan: entry {entry}: token {token} is not in its set {set:?}; only drafted tokens are accepted"
    )]
    NotAMember {
        /// Position, from 0.
        entry: usize,
        /// The token.
        token: u32,
        /// The set.
        set: Vec<u32>,
    },
    /// A mass that is not a number.
    #[error("plan: entry {entry}: {source}")]
    Mass {
        /// Position, from 0.
        entry: usize,
        /// What is wrong with it.
        source: ParseRationalError,
    },
    /// A negative mass.
    #[error("token {token}: mass {mass} is negative")]
    Negative {
        /// The token.
        token: usize,
        /// The mass.
        mass: String,
    },
    /// Masses and entries do not match up.
    #[error("{masses} masses for {tokens} entries")]
    Entries {
        /// Number of masses.
        masses: usize,
        /// Number of entries.
        tokens: usize,
    },
    /// Masses in units of nothing.
    #[error("plan: the unit of mass is 1/0")]
    ZeroUnit,
    /// More is accepted out of a set than its probability.
    #[error("plan: set {set:?} is used for {used}; its probability is {probability}")]
    SetOverdrawn {
        /// The set.
        set: Vec<u32>,
        /// Mass accepted out of it.
        used: String,
        /// Its probability.
        probability: String,
    },
    /// More is accepted as a token than its target probability.
    #[error(
        "plan: token {token} is accepted with probability {used}; the target gives it {probability}"
    )]
    TokenOverdrawn {
        /// The token.
        token: usize,
        /// Mass accepted as it.
        used: String,
        /// p of it.
        probability: String,
    },
    /// A coupling whose outputs do not follow p.
    #[error(
        "coupling: token {token} is output with probability {sum}; the target gives it {probability}"
    )]
    TargetMarginal {
        /// The token.
        token: usize,
        /// Its total mass.
        sum: String,
        /// p of it.
        probability: String,
    },
    /// A coupling whose tuples do not follow D.
    #[error("coupling: tuple {tuple:?} has mass {sum}; the draft law gives it {probability}")]
    DraftMarginal {
        /// The tuple.
        tuple: Vec<u32>,
        /// Its total mass.
        sum: String,
        /// D of it.
        probability: String,
    },
    /// The subset proves less than what is claimed.
    #[error("subset: 1 + P(H) - Q(H) is {bound}; it must be {claimed}, the rate that is claimed")]
    Subset {
        /// Its bound.
        bound: String,
        /// What the certificate says.
        claimed: String,
    },
    /// The claimed rate is not what was proved.
    #[error("optimal_acceptance_rate is claimed to be {claimed}; the certificate proves {proved}")]
    Claim {
        /// What the certificate says.
        claimed: String,
        /// What it proves.
        proved: String,
    },
    /// Lower above upper: the checker itself would be wrong.
    #[error("the plan accepts {lower} and the subset allows {upper}")]
    Contradiction {
        /// Lower bound.
        lower: String,
        /// Upper bound.
        upper: String,
    },
    /// Only exact plans are written to files.
    #[error("the plan was made on rounded capacities; only exact plans are written to files")]
    NotExact,
}

/// Mass accepted as one token out of one set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PlanEntry {
    /// The set of distinct draft tokens, strictly ascending.
    pub set: Vec<u32>,
    /// The token that is output, one of the set.
    pub token: u32,
    /// P(the drafts are this set and this token is accepted), an exact fraction.
    pub mass: String,
}

/// An exact certificate of alpha*, as a file holds it.
///
/// # Example
/// ```
/// use specgap_core::certify::{Certificate, PlanEntry};
/// use specgap_number::distribution::{Draft, Target};
/// use specgap_core::problem::Problem;
/// use specgap_core::scheme::WithReplacement;
/// let scheme = WithReplacement::new(Draft::new(&[0.75, 0.25])?, 1);
/// let problem = Problem::new("one draft", Target::new(&[0.5, 0.5])?, scheme)?;
/// let entry = |token, mass: &str| PlanEntry { set: vec![token], token, mass: mass.into() };
/// let mut certificate = Certificate {
///     schema: 1,
///     problem: "one draft".into(),
///     optimal_acceptance_rate: "3/4".into(),
///     subset: vec![0],
///     plan: vec![entry(0, "1/2"), entry(1, "1/4")],
/// };
/// assert_eq!(certificate.check(&problem)?.get().value(), 0.75);
/// certificate.plan[1].mass = "1/3".into();
/// assert!(certificate.check(&problem).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// Format version, 1.
    pub schema: u32,
    /// Name of the problem.
    pub problem: String,
    /// alpha*, an exact fraction.
    pub optimal_acceptance_rate: String,
    /// A subset H with alpha* = 1 + P(H) - Q(H), strictly ascending.
    pub subset: Vec<usize>,
    /// A plan that accepts alpha*; entries of mass 0 may be left out.
    pub plan: Vec<PlanEntry>,
}

impl Certificate {
    /// Writes down an exact plan and a subset.
    ///
    /// # Errors
    /// [`CertificateError::NotExact`] for a plan on rounded capacities.
    pub fn new(
        problem: &Problem,
        plan: &TransportPlan,
        subset: &[usize],
    ) -> Result<Self, CertificateError> {
        if plan.rounding != Rounding::None {
            return Err(CertificateError::NotExact);
        }
        let mut entries = Vec::new();
        for (index, set) in plan.sets.iter().enumerate() {
            for entry in plan.sets.span(index) {
                let mass = plan.accepted.get(entry);
                if !mass.is_zero() {
                    entries.push(PlanEntry {
                        set: set.to_vec(),
                        token: plan.sets.tokens()[entry],
                        mass: format_rational(&ratio(&mass, &plan.total)),
                    });
                }
            }
        }
        Ok(Self {
            schema: 1,
            problem: problem.name().to_owned(),
            optimal_acceptance_rate: format_rational(&plan.acceptance_rate()),
            subset: subset.to_vec(),
            plan: entries,
        })
    }

    /// Checks the certificate against the problem, with tolerance 0, and returns
    /// the alpha* that it proves.
    ///
    /// # Errors
    /// The first thing that is wrong; a certificate whose plan and subset do not
    /// meet is wrong too.
    pub fn check(&self, problem: &Problem) -> Result<super::Certified<Known>, CertificateError> {
        if self.schema != 1 {
            return Err(CertificateError::Schema(self.schema));
        }
        if self.problem != problem.name() {
            return Err(CertificateError::OtherProblem {
                certificate: self.problem.clone(),
                problem: problem.name().to_owned(),
            });
        }
        let proved = super::optimum(problem, &self.transport_plan()?, &self.subset)?;
        let claimed =
            parse_rational(&self.optimal_acceptance_rate).map_err(|_| CertificateError::Claim {
                claimed: self.optimal_acceptance_rate.clone(),
                proved: "no such number".to_owned(),
            })?;
        if proved.get().rational() == Some(&claimed) {
            // That no rate is above 1 is known without a subset.
            let bound = super::upper_bound(problem, &self.subset)?.into_inner();
            if bound != claimed {
                return Err(CertificateError::Subset {
                    bound: format_rational(&bound),
                    claimed: format_rational(&claimed),
                });
            }
            return Ok(proved);
        }
        Err(CertificateError::Claim {
            claimed: self.optimal_acceptance_rate.clone(),
            proved: match &proved.get().rational() {
                Some(value) => format_rational(value),
                None => format!("[{}, {}]", proved.get().lower(), proved.get().upper()),
            },
        })
    }

    fn transport_plan(&self) -> Result<TransportPlan, CertificateError> {
        let mut by_set: BTreeMap<&[u32], BTreeMap<u32, Rational>> = BTreeMap::new();
        for (entry, part) in self.plan.iter().enumerate() {
            if !part.set.contains(&part.token) {
                return Err(CertificateError::NotAMember {
                    entry,
                    token: part.token,
                    set: part.set.clone(),
                });
            }
            let mass = parse_rational(&part.mass)
                .map_err(|source| CertificateError::Mass { entry, source })?;
            if mass.is_negative() {
                return Err(CertificateError::Negative {
                    token: part.token as usize,
                    mass: part.mass.clone(),
                });
            }
            *by_set
                .entry(&part.set)
                .or_default()
                .entry(part.token)
                .or_insert_with(Rational::zero) += mass;
        }
        let mut sets = SetFamily::new();
        let mut masses = Vec::new();
        for (set, parts) in by_set {
            sets.push(set.iter().copied());
            for token in set {
                masses.push(parts.get(token).cloned().unwrap_or_default());
            }
        }
        // Integer masses over the common denominator of all of them.
        masses.push(Rational::from_integer(1.into()));
        let (mut weights, _) = integer_weights(&masses);
        let total = weights.pop().unwrap_or_default();
        Ok(TransportPlan {
            sets,
            accepted: PlanMasses::Big(weights),
            total,
            rounding: Rounding::None,
        })
    }
}
