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
    /// The certificate is about another problem: name in the certificate; name in the problem file.
    #[error("problem is \"{0}\"; the problem file is \"{1}\"")]
    OtherProblem(String, String),
    /// A token outside the vocabulary: `subset` or `plan`; the token; V.
    #[error("{0}: token {1} is not in 0..{2}")]
    Token(&'static str, usize, usize),
    /// Tokens out of order, or twice: where; a token; its successor.
    #[error("{0}: token {2} follows {1}; tokens must be strictly ascending")]
    Order(String, usize, usize),
    /// A set that stands twice: the set.
    #[error("plan: set {0:?} stands twice; merge its entries")]
    DuplicateSet(Vec<u32>),
    /// A set whose probability would take 2^size steps: position of the set in the plan, sets
    /// sorted; its size; the largest that is checked.
    #[error("plan: set {0} has {1} tokens; sets of up to {2} are checked under this scheme")]
    SetTooLarge(usize, usize, usize),
    /// A token accepted out of a set that does not hold it: position, from 0; the token; the set.
    #[error("plan: entry {0}: token {1} is not in its set {2:?}; only drafted tokens are accepted")]
    NotAMember(usize, u32, Vec<u32>),
    /// A mass that is not a number: position, from 0; what is wrong with it.
    #[error("plan: entry {0}: {1}")]
    Mass(usize, #[source] ParseRationalError),
    /// A negative mass: the token; the mass.
    #[error("token {0}: mass {1} is negative")]
    Negative(usize, String),
    /// Masses and entries do not match up: number of masses; number of entries.
    #[error("{0} masses for {1} entries")]
    Entries(usize, usize),
    /// Masses in units of nothing.
    #[error("plan: the unit of mass is 1/0")]
    ZeroUnit,
    /// More is accepted out of a set than its probability: the set; mass accepted out of it; its
    /// probability.
    #[error("plan: set {0:?} is used for {1}; its probability is {2}")]
    SetOverdrawn(Vec<u32>, String, String),
    /// More is accepted as a token than its target probability: the token; mass accepted as it; p
    /// of it.
    #[error("plan: token {0} is accepted with probability {1}; the target gives it {2}")]
    TokenOverdrawn(usize, String, String),
    /// A coupling whose outputs do not follow p: the token; its total mass; p of it.
    #[error("coupling: token {0} is output with probability {1}; the target gives it {2}")]
    TargetMarginal(usize, String, String),
    /// A coupling whose tuples do not follow D: the tuple; its total mass; D of it.
    #[error("coupling: tuple {0:?} has mass {1}; the draft law gives it {2}")]
    DraftMarginal(Vec<u32>, String, String),
    /// The subset proves less than what is claimed: its bound; what the certificate says.
    #[error("subset: 1 + P(H) - Q(H) is {0}; it must be {1}, the rate that is claimed")]
    Subset(String, String),
    /// The claimed rate is not what was proved: what the certificate says; what it proves.
    #[error("optimal_acceptance_rate is claimed to be {0}; the certificate proves {1}")]
    Claim(String, String),
    /// Lower above upper: the checker itself would be wrong: lower bound; upper bound.
    #[error("the plan accepts {0} and the subset allows {1}")]
    Contradiction(String, String),
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
            let [own, other] = [&self.problem, problem.name()].map(str::to_owned);
            return Err(CertificateError::OtherProblem(own, other));
        }
        let proved = super::optimum(problem, &self.transport_plan()?, &self.subset)?;
        let refused =
            |proved: String| CertificateError::Claim(self.optimal_acceptance_rate.clone(), proved);
        let claimed = parse_rational(&self.optimal_acceptance_rate)
            .map_err(|_| refused("no such number".to_owned()))?;
        if proved.get().rational() == Some(&claimed) {
            // That no rate is above 1 is known without a subset.
            let bound = super::upper_bound(problem, &self.subset)?.into_inner();
            if bound != claimed {
                let [bound, claimed] = [&bound, &claimed].map(format_rational);
                return Err(CertificateError::Subset(bound, claimed));
            }
            return Ok(proved);
        }
        Err(refused(match &proved.get().rational() {
            Some(value) => format_rational(value),
            None => format!("[{}, {}]", proved.get().lower(), proved.get().upper()),
        }))
    }

    fn transport_plan(&self) -> Result<TransportPlan, CertificateError> {
        let mut by_set: BTreeMap<&[u32], BTreeMap<u32, Rational>> = BTreeMap::new();
        for (entry, part) in self.plan.iter().enumerate() {
            let token = part.token;
            if !part.set.contains(&token) {
                return Err(CertificateError::NotAMember(entry, token, part.set.clone()));
            }
            let mass = parse_rational(&part.mass)
                .map_err(|source| CertificateError::Mass(entry, source))?;
            if mass.is_negative() {
                let written = part.mass.clone();
                return Err(CertificateError::Negative(token as usize, written));
            }
            let parts = by_set.entry(&part.set).or_default();
            *parts.entry(token).or_default() += mass;
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
