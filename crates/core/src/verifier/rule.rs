//! What a verifier is, and what the rest of the crate asks of it by its name.

#[cfg(doc)]
use super::VERIFIERS;
use super::row_rule::RowRule;
use super::token_rule::TokenRule;
use crate::entry_name::entry_name;
use crate::problem::Problem;
use crate::rule::RuleName;
use crate::scheme::SchemeName;
use rand::{Rng, RngCore};
use specgap_number::distribution::{Draft, Rational};
use specgap_number::known::Known;
use specgap_number::number::Number;
use specgap_plan::Verdict;
use specgap_row::RejectionBudget as RrsWoSettings;
use std::fmt;
use std::sync::Arc;

/// One verifier in the table [`VERIFIERS`].
///
/// `verify`, `gap`, the claims that go through all rules, reports, help texts and
/// error messages take what they need from here: a verifier is added by its file and its
/// line in the table.
#[derive(Debug)]
pub struct Entry {
    /// The rule, with its names and what it does in one line.
    pub rule: RuleName,
    /// Its acceptance, as a formula or in words.
    pub acceptance: &'static str,
    /// The drafts under which it is lossless.
    pub lossless: Lossless,
    /// Builds it for a problem; the settings are the budget of rates that may take
    /// simulation.
    pub build: Build,
    /// Its rate on a row of a log whose drafts have this law; `None` if none is
    /// computed. Asked only for laws under which it is lossless.
    pub on_row: fn(SchemeName) -> Option<RowRule>,
    /// Which draft a known output comes through, for drafts of this law; or why that is not
    /// computed. Asked only for laws under which it is lossless.
    pub at_token: fn(SchemeName) -> Result<TokenRule, &'static str>,
    /// Whether it accepts as much as any lossless rule could, alpha*, whatever the rows, from
    /// drafts of this law.
    pub attains: fn(SchemeName) -> bool,
    /// Verifiers that a gap report compares it with at the same positions.
    pub compared_with: &'static [VerifierName],
    /// Whether a gap report measures it where no verifiers are named.
    pub by_default: bool,
}

/// A problem to a rule that is lossless for it.
pub type Build = fn(&Problem, &RrsWoSettings) -> Result<Box<dyn Verifier>, VerifierError>;

/// The drafts under which a rule is lossless.
#[derive(Clone, Copy, Debug)]
pub enum Lossless {
    /// Those of some laws.
    Under(&'static [SchemeName]),
    /// One draft, n = 1, of any law.
    OneDraft,
    /// All.
    Always,
}

impl Lossless {
    /// Returns whether n drafts of a law are among them.
    pub fn holds(self, scheme: SchemeName, drafts: usize) -> bool {
        match self {
            Self::Under(schemes) => schemes.contains(&scheme),
            Self::OneDraft => drafts == 1,
            Self::Always => true,
        }
    }
}

impl fmt::Display for Lossless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Under(schemes) => {
                let names: Vec<&str> = schemes.iter().map(|scheme| scheme.as_str()).collect();
                write!(f, "{} drafts", listed(&names, "and"))
            }
            Self::OneDraft => f.write_str("one draft (n = 1) of any scheme"),
            Self::Always => f.write_str("all drafts"),
        }
    }
}

/// A verifier by its name: a handle to its entry in [`VERIFIERS`].
///
/// Handles compare, sort and hash by name.
///
/// # Example
/// ```
/// use specgap_core::scheme::SchemeName;
/// use specgap_core::verifier::VerifierName;
/// let rule: VerifierName = "rrs".parse()?;
/// assert_eq!(rule, VerifierName::RRS);
/// assert!(rule.is_lossless(SchemeName::WITH_REPLACEMENT, 3));
/// assert!(!rule.is_lossless(SchemeName::GREEDY, 3));
/// # Ok::<(), specgap_core::verifier::UnknownVerifier>(())
/// ```
#[derive(Clone, Copy)]
pub struct VerifierName(pub(super) &'static Entry);

impl VerifierName {
    /// The rule in one line, for reports.
    pub fn words(self) -> &'static str {
        self.0.rule.words()
    }

    /// The draft schemes under which the rule is lossless, for reports.
    pub fn draft_schemes(self) -> String {
        self.0.lossless.to_string()
    }

    /// Returns whether the rule is lossless for n drafts of a law.
    pub fn is_lossless(self, scheme: SchemeName, drafts: usize) -> bool {
        self.0.lossless.holds(scheme, drafts)
    }

    /// Returns how its rate is computed at a row of a log with drafts of a law, if it is.
    pub fn on_row(self, scheme: SchemeName) -> Option<RowRule> {
        scheme.entry().on_row.as_ref()?;
        // One draft is some number of drafts of any law.
        self.is_lossless(scheme, 1).then_some(())?;
        (self.0.on_row)(scheme)
    }

    /// Returns which of the drafts of a law a known output comes through, if that is computed.
    pub fn at_token(self, scheme: SchemeName) -> Option<TokenRule> {
        self.token_rule(scheme).ok()
    }

    /// The same, or why it is not computed.
    ///
    /// # Errors
    /// The rule is not lossless for these drafts, a log cannot hold them, or nobody knows
    /// which draft an output came through.
    pub fn token_rule(self, scheme: SchemeName) -> Result<TokenRule, &'static str> {
        if scheme.entry().on_row.is_none() {
            return Err("a log cannot hold such drafts");
        }
        if !self.is_lossless(scheme, 1) {
            return Err("the rule is not lossless for these drafts");
        }
        (self.0.at_token)(scheme)
    }
}

entry_name!(VerifierName of Entry by rule);

/// `a`, `a or b`, `a, b or c`.
pub fn any_of(names: &[&str]) -> String {
    listed(names, "or")
}

fn listed(names: &[&str], last_by: &str) -> String {
    match names {
        [rest @ .., last] if !rest.is_empty() => format!("{} {last_by} {last}", rest.join(", ")),
        _ => names.concat(),
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
        cure: String,
    },
    /// A plan would be too large: the verifier; about how many pairs there are; how many there may
    /// be.
    #[error(
        "{0} needs a plan over {1:.3e} (set, token) pairs; at most {2:.0e} are \
         solved, so lower the vocabulary or the number of drafts"
    )]
    Size(VerifierName, f64, f64),
    /// A rate that only a sum over too many tuples would give: the verifier; about how many tuples
    /// there are.
    #[error(
        "{0}: {1:.3e} tuples of drafts are too many to sum, and for these drafts there \
         is no formula; lower the vocabulary (top_k) or the number of drafts"
    )]
    TooMany(VerifierName, f64),
    /// A factor of k-seq that leaves a negative residual: the factor; about the smallest lossless
    /// factor.
    #[error("k-seq: the factor is {0}; it must be >= {1}, or the output law is not p")]
    Factor(f64, f64),
}

impl VerifierError {
    pub(super) fn scheme(verifier: VerifierName, problem: &Problem) -> Self {
        let scheme = problem.scheme().name();
        let names = VerifierName::made_for(scheme).into_iter();
        let names: Vec<&str> = names.map(VerifierName::as_str).collect();
        Self::Scheme {
            verifier,
            scheme,
            drafts: problem.drafts(),
            cure: format!("use {} for these drafts", any_of(&names)),
        }
    }
}

/// The q of a problem whose drafts have the only law that a rule is made for.
pub(super) fn draft_of(
    problem: &Problem,
    law: SchemeName,
    verifier: VerifierName,
) -> Result<Draft, VerifierError> {
    match problem.scheme().draft() {
        Some(draft) if problem.scheme().name() == law => Ok(draft.clone()),
        _ => Err(VerifierError::scheme(verifier, problem)),
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

/// Work, in bits of all numbers involved, up to which a closed form is
/// evaluated exactly.
pub(super) const EXACT_FORMULA_BITS: f64 = 1.0e6;

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
    /// Makes one for a rule whose residual never equals a draft.
    pub(super) fn same(rate: Known) -> Self {
        Self {
            algorithmic: rate.clone(),
            membership: rate,
            note: None,
        }
    }

    /// The same of a rule that rejects with a probability known as a fraction, where that is not
    /// too much work, in bits of all numbers involved; else in `f64`.
    pub(super) fn but<'a>(
        work: f64,
        rejected: impl FnOnce() -> &'a Rational,
        enclosed: impl FnOnce() -> Known,
    ) -> Self {
        Self::same(match work <= EXACT_FORMULA_BITS {
            true => Known::exact(rejected().complement()),
            false => enclosed(),
        })
    }
}

/// A rule that maps (p, X) to a law of the output token.
///
/// Implementations are validated when they are built and then total: a tuple
/// that their scheme never draws still gets some law, which is what the tests
/// of deliberately mismatched schemes rely on.
pub trait Verifier: fmt::Debug + Send + Sync {
    /// Returns which verifier this is.
    fn name(&self) -> VerifierName;

    /// Law of the output given the tuple, in `f64`. At most O(nV).
    fn conditional(&self, tuple: &[u32]) -> ConditionalLaw<f64>;

    /// Law of the output given the tuple, exactly; `None` where the rule rests
    /// on rounded numbers.
    fn conditional_exact(&self, tuple: &[u32]) -> Option<ConditionalLaw<Rational>>;

    /// Runs the rule once: by a draw from its law, unless it says otherwise.
    ///
    /// The uniform draws have 53 bits, so events below 1e-16 are not resolved;
    /// an event of probability 0 never happens.
    fn sample(&self, tuple: &[u32], rng: &mut dyn RngCore) -> Verdict {
        draw_from(&self.conditional(tuple), tuple, rng)
    }

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

    /// How many times as much work the law of one tuple is as a look at each token that it
    /// handles: in fractions, and in `f64`. Sums over tuples that are too much work are not made.
    fn steps_of_a_law(&self) -> [f64; 2] {
        [1.0; 2]
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

/// What a verifier does on average over X ~ D.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputLaw<M> {
    /// Law of the output token, V entries.
    pub output: Vec<M>,
    /// Probability that the rule accepts a draft.
    pub algorithmic: M,
    /// P(output in A(X)).
    pub membership: M,
}

/// True with the given probability; never for 0, always for 1.
pub(super) fn happens(probability: f64, rng: &mut dyn RngCore) -> bool {
    // The draw is in [0, 1), and the comparison is strict.
    rng.random::<f64>() < probability
}

/// A token drawn in proportion to its weight; weights of 0 are never drawn.
pub(super) fn draw(weights: &[f64], rng: &mut dyn RngCore) -> u32 {
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
    specgap_number::distribution::token_id(last)
}

/// Runs a conditional law once.
pub(super) fn draw_from(
    law: &ConditionalLaw<f64>,
    tuple: &[u32],
    rng: &mut dyn RngCore,
) -> Verdict {
    let mut left = rng.random::<f64>();
    let mut last = None;
    for (index, &mass) in law
        .accepted
        .iter()
        .enumerate()
        .filter(|(_, mass)| **mass > 0.0)
    {
        last = Some(index);
        if left < mass {
            return taken(tuple, index);
        }
        left -= mass;
    }
    match last {
        // Rounding left a sliver beyond the last event that can happen.
        Some(index) if law.rejected <= 0.0 => taken(tuple, index),
        _ => refused(&law.residual, rng),
    }
}

/// A draft that is kept.
pub(super) fn taken(tuple: &[u32], index: usize) -> Verdict {
    Verdict {
        token: tuple[index],
        accepted: Some(index),
    }
}

/// What is drawn where no draft is kept.
pub(super) fn refused(residual: &[f64], rng: &mut dyn RngCore) -> Verdict {
    Verdict {
        token: draw(residual, rng),
        accepted: None,
    }
}

/// A token that is the first draft that equals it, if one does.
pub(super) fn looked_up(token: u32, tuple: &[u32]) -> Verdict {
    Verdict {
        token,
        accepted: tuple.iter().position(|&draft| draft == token),
    }
}

/// The law of drafts offered one after another: `keep[k]` is the probability
/// that draft k is accepted once it is its turn.
pub(super) fn sequential<M: Number>(keep: Vec<M>, residual: Arc<[M]>) -> ConditionalLaw<M> {
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

/// The name of a rule, and its laws given the drafts, from it in either arithmetic.
macro_rules! in_both {
    ($rule:ident, $name:expr, $float:expr, $exact:expr) => {
        fn name(&$rule) -> VerifierName {
            $name
        }

        fn conditional(&$rule, tuple: &[u32]) -> ConditionalLaw<f64> {
            $float.conditional(tuple)
        }

        fn conditional_exact(&$rule, tuple: &[u32]) -> Option<ConditionalLaw<Rational>> {
            Some($exact.conditional(tuple))
        }
    };
}
pub(super) use in_both;
