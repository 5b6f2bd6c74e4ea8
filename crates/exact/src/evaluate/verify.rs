//! `verify`: every verifier on one problem.

use super::agreement::{can_be_at_most, can_both_hold};
use super::direct::level_instead;
use super::enclosure::enclose;
use super::expectation::{Expectation, Wanted};
use super::method::Limits;
use super::outcome::Reported;
use super::rule::RuleVerification;
use super::summed::Summed;
use super::tolerances::Standard;
use super::{Evaluated, Outcome};
use specgap_core::optimum::best;
use specgap_core::problem::Problem;
use specgap_core::scheme::SchemeName;
use specgap_core::verifier::{
    Optimal, RrsWoSettings, TotalVariation, Verifier, VerifierName, output_law, output_law_exact,
};
use specgap_number::distribution::Rational;
use specgap_number::known::{Kind, Known};
use specgap_number::number::Number;

/// Most tuples (or sets) that are summed.
const LARGEST_ENUMERATION: f64 = 3.0e6;

/// Most token operations of a sum over tuples in `f64`.
const LARGEST_FLOAT_WORK: f64 = 3.0e8;

/// Most work of a sum over tuples in rationals: token operations times the bits
/// of a term.
const LARGEST_EXACT_WORK: f64 = 3.0e7;

/// What all verifiers do on one problem.
#[derive(Clone, Debug)]
pub struct Verification {
    /// The problem's name.
    pub problem: String,
    /// Its draft scheme.
    pub scheme: SchemeName,
    /// V.
    pub vocab: usize,
    /// n.
    pub drafts: usize,
    /// alpha*, or why it is not known.
    pub optimum: Result<Known, String>,
    /// Comparison of it with the problem file.
    pub expected: Option<Expectation>,
    /// One entry a verifier, in the order of [`VerifierName::ALL`].
    pub verifiers: Vec<Assessment>,
    /// Verifiers that the problem file has an expected rate for, but that were not run:
    /// they do not apply, or do not exist.
    pub unmet: Vec<String>,
    /// The rule that the problem file tabulates.
    pub rule: Option<RuleVerification>,
}

/// One verifier on one problem.
#[derive(Clone, Debug)]
pub struct Assessment {
    /// The verifier.
    pub name: VerifierName,
    /// What it does, or why it does not apply and what to use instead.
    pub outcome: Outcome<Box<Measured>>,
}

/// What a verifier does on a problem.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Probability that the rule accepts a draft.
    pub algorithmic: Known,
    /// P(output in A(X)).
    pub membership: Known,
    /// alpha* minus membership acceptance, where alpha* is known.
    pub gap: Option<Known>,
    /// Distance of the output law from p, or why it was not summed.
    pub total_variation: Result<TotalVariation, String>,
    /// Whether the output law is p: with tolerance 0 where it is exact, else
    /// within [`LOSSLESS_TOLERANCE`](super::LOSSLESS_TOLERANCE). `None` if it was not summed.
    pub lossless: Option<bool>,
    /// The rates by formula, without enumeration; algorithmic, then membership.
    pub formula: (Known, Known),
    /// Whether formula and enumeration agree; `None` if nothing was enumerated.
    pub formula_agrees: Option<bool>,
    /// Whether membership acceptance is above alpha*, beyond all error bounds:
    /// impossible for a correct program.
    pub exceeds_optimum: bool,
    /// Comparison with the problem file.
    pub expected: Option<Expectation>,
    /// What a reader must know about the numbers.
    pub note: Option<String>,
}

impl Reported for Box<Measured> {
    const DONE: &'static str = "measured";
}

impl Measured {
    /// Lists what is wrong: not lossless, above alpha*, another rate by enumeration than by formula
    /// or than the problem file expects.
    pub fn complaints(&self) -> Vec<String> {
        let mut all = Vec::new();
        if let (Ok(variation), Some(false)) = (&self.total_variation, self.lossless) {
            let token = variation.worst_token;
            all.push(format!(
                "NOT LOSSLESS: TV {:e}, worst token {} by {:+e}",
                variation.value,
                token.map_or_else(|| "none".to_owned(), |token| token.to_string()),
                variation.worst_difference
            ));
        }
        if self.exceeds_optimum {
            all.push("EXCEEDS alpha*, which no lossless verifier can".to_owned());
        }
        if self.formula_agrees == Some(false) {
            let (algorithmic, membership) = &self.formula;
            all.push(format!(
                "DISAGREES with its formula: {} and {}",
                algorithmic.value(),
                membership.value()
            ));
        }
        let unexpected = self.expected.as_ref().and_then(|e| e.complaint.as_ref());
        all.extend(unexpected.map(|complaint| format!("EXPECTATION FAILS: {complaint}")));
        all
    }

    /// Tells whether nothing is wrong.
    pub fn is_ok(&self) -> bool {
        self.complaints().is_empty()
    }
}

impl Verification {
    /// The result of one verifier, if it was run.
    pub fn measured(&self, name: VerifierName) -> Option<&Measured> {
        let one = self.verifiers.iter().find(|one| one.name == name)?;
        one.outcome.done().map(Box::as_ref)
    }

    /// Counts the verifiers that were run.
    pub fn runs(&self) -> usize {
        let outcomes = self.verifiers.iter().map(|one| one.outcome.done());
        outcomes.flatten().count()
    }

    pub(super) fn is_unmet(&self, name: VerifierName) -> bool {
        self.unmet.iter().any(|unmet| unmet == name.as_str())
    }

    /// Lists what is wrong with one verifier.
    pub fn complaints_about(&self, one: &Assessment) -> Vec<String> {
        match (one.outcome.done(), one.outcome.reason()) {
            (Some(measured), _) => measured.complaints(),
            (None, Some(reason)) if self.is_unmet(one.name) => {
                let expects = "EXPECTATION FAILS: the file expects a rate";
                vec![format!("{expects}, but {reason}")]
            }
            _ => Vec::new(),
        }
    }
}

impl Evaluated for Verification {
    fn complaints(&self) -> Vec<String> {
        let unknown = self
            .unmet
            .iter()
            .filter(|name| name.parse::<VerifierName>().is_err())
            .map(|name| format!("{name}: the file expects a rate, but there is no such verifier"));
        let of_each = self.verifiers.iter().flat_map(|one| {
            let complaints = self.complaints_about(one).into_iter();
            complaints.map(|complaint| format!("{}: {complaint}", one.name))
        });
        let tabulated = self.rule.as_ref().and_then(|rule| {
            let complaint = rule.complaint()?;
            Some(format!("{}: {complaint}", rule.name))
        });
        let of_optimum = self
            .expected
            .as_ref()
            .and_then(|one| one.complaint.as_ref());
        let of_optimum =
            of_optimum.map(|complaint| format!("alpha*: EXPECTATION FAILS: {complaint}"));
        of_each
            .chain(unknown)
            .chain(tabulated)
            .chain(of_optimum)
            .collect()
    }
}

/// Runs every verifier on a problem: acceptance by formula and by enumeration,
/// gap to alpha*, losslessness, and the expectations of the problem file.
///
/// # Exactness
/// Enumeration is exact while that is affordable, else in `f64`, else left out
/// with the reason; then the rates are those of the formulas.
///
/// # Example
/// ```
/// use specgap_number::distribution::{Draft, Target};
/// use specgap_exact::evaluate::verify;
/// use specgap_core::problem::Problem;
/// use specgap_core::scheme::WithReplacement;
/// use specgap_core::verifier::VerifierName;
/// let scheme = WithReplacement::new(Draft::new(&[0.75, 0.25])?, 2);
/// let problem = Problem::new("bernoulli", Target::new(&[0.5, 0.5])?, scheme)?;
/// let evaluation = verify(&problem);
/// assert_eq!(evaluation.verifiers.len(), VerifierName::ALL.len());
/// let rrs = evaluation.measured(VerifierName::RRS).unwrap();
/// assert_eq!(rrs.lossless, Some(true));
/// assert_eq!(rrs.gap.as_ref().unwrap().value(), 0.125);
/// assert!(evaluation.measured(VerifierName::SPECHUB).is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn verify(problem: &Problem) -> Verification {
    verify_with(problem, &RrsWoSettings::default())
}

/// [`verify`] with a budget and a seed for the one rate that may need Monte
/// Carlo, that of [`RrsWo`](specgap_core::verifier::RrsWo).
pub fn verify_with(problem: &Problem, settings: &RrsWoSettings) -> Verification {
    let optimum = match level_instead(problem, &Limits::default()) {
        Some(rate) => Ok(rate),
        None => best(problem).map(|optimum| optimum.rate).or_else(|error| {
            let found = enclose(problem).map(|found| found.rate());
            found.map_err(|_| error.to_string())
        }),
    };
    let planned = Optimal::new(problem);
    let run = |name: VerifierName| {
        if name != VerifierName::OPTIMAL {
            let rule = (name.entry().build)(problem, settings)?;
            return Ok(measure(rule.as_ref(), problem, &optimum));
        }
        // Its rate is alpha*, whether or not there is room for the plan.
        match (&planned, &optimum) {
            (Ok(rule), _) => Ok(measure(rule, problem, &optimum)),
            (Err(error), Ok(best)) => Ok(unplanned(problem, best, error.to_string())),
            (Err(error), Err(_)) => Err(error.clone()),
        }
    };
    let verifiers: Vec<Assessment> = VerifierName::ALL
        .into_iter()
        .map(|name| Assessment {
            name,
            outcome: match run(name) {
                Ok(measured) => Outcome::Done(Box::new(measured)),
                Err(reason) => Outcome::Skipped(reason.to_string()),
            },
        })
        .collect();
    let ran = |name: &&String| {
        let with_name = verifiers.iter().find(|one| one.name.as_str() == *name);
        with_name.is_some_and(|one| one.outcome.done().is_some())
    };
    let expected = problem.expected().map(|e| e.acceptance_rate.keys());
    let unmet = expected.into_iter().flatten().filter(|name| !ran(name));
    let unmet = unmet.cloned().collect();
    let best = optimum.as_ref().ok();
    let rule =
        (problem.rule()).map(|rule| RuleVerification::new(rule, problem, best, LARGEST_EXACT_WORK));
    Verification {
        problem: problem.name().to_owned(),
        scheme: problem.scheme().name(),
        vocab: problem.vocab(),
        drafts: problem.drafts(),
        expected: best.and_then(|rate| super::solve::expectation(problem, rate)),
        optimum,
        verifiers,
        unmet,
        rule,
    }
}

/// The sum over tuples, as exactly as is affordable; why there is none.
fn sum(verifier: &dyn Verifier, problem: &Problem) -> Result<Summed, String> {
    let (scheme, target) = (problem.scheme(), problem.target());
    let (count, what) = if verifier.depends_on_set_only() {
        (scheme.set_count(), "sets")
    } else {
        (scheme.tuple_count(), "tuples")
    };
    let integrated = |reason| {
        let law = verifier.integrated().ok_or(reason)?;
        Ok(Summed::float(law, target))
    };
    if count > LARGEST_ENUMERATION {
        return integrated(format!(
            "{count:.3e} {what} are too many to sum; at most {LARGEST_ENUMERATION:.0e} are"
        ));
    }
    let width = if verifier.handles_all_tokens() {
        (problem.vocab() * problem.drafts().min(problem.vocab())) as f64
    } else {
        problem.drafts() as f64
    };
    let [in_fractions, in_floats] = verifier.steps_of_a_law();
    let bits = scheme.exact_bits() + problem.drafts() as f64 * target.exact_bits() as f64;
    if count * width * bits * in_fractions <= LARGEST_EXACT_WORK
        && let Some(law) = output_law_exact(verifier, scheme)
    {
        return Ok(Summed::exact(law, target));
    }
    if count * width * in_floats > LARGEST_FLOAT_WORK {
        return integrated(format!(
            "{count:.3e} {what} over {} tokens are too many to sum; lower the vocabulary (top_k) or \
             the number of drafts",
            problem.vocab()
        ));
    }
    Ok(Summed::float(output_law(verifier, scheme), target))
}

fn measure(
    verifier: &dyn Verifier,
    problem: &Problem,
    optimum: &Result<Known, String>,
) -> Measured {
    let formula = verifier.acceptance();
    let both = |algorithmic: &Known, membership: &Known| [algorithmic.clone(), membership.clone()];
    let by_formula = both(&formula.algorithmic, &formula.membership);
    let summed = sum(verifier, problem);
    let lossless = summed.as_ref().ok().map(|law| law.is_lossless(true));
    let by_sum = summed
        .as_ref()
        .map(|law| both(&law.algorithmic, &law.membership));
    let by_sum = by_sum.unwrap_or_else(|_| by_formula.clone());
    let formula_agrees = lossless.map(|_| {
        let mut rates = by_formula.iter().zip(&by_sum);
        rates.all(|(formula, sum)| can_both_hold(formula, sum))
    });
    // The exact sum is the better number; the formula is, if the sum is not exact.
    let better = by_formula[1].width() < by_sum[1].width() && formula_agrees != Some(false);
    let [algorithmic, membership] = match by_sum[1].kind() != Kind::Exact && better {
        true => by_formula,
        false => by_sum,
    };
    let best = optimum.as_ref().ok();
    let exactly = !verifier.has_rounded_parameter();
    Measured {
        gap: best.map(|best| best.minus(&membership)),
        exceeds_optimum: best.is_some_and(|best| !can_be_at_most(&membership, best)),
        expected: expectation(problem, verifier.name(), &membership, exactly),
        algorithmic,
        membership,
        total_variation: summed.map(|law| law.variation),
        lossless,
        formula: (formula.algorithmic, formula.membership),
        formula_agrees,
        note: formula.note,
    }
}

/// The optimal verifier without its plan: the rate is known, the law is not.
fn unplanned(problem: &Problem, best: &Known, reason: String) -> Measured {
    let rate = best.clone();
    Measured {
        algorithmic: rate.clone(),
        membership: rate.clone(),
        gap: Some(Known::exact(Rational::zero())),
        total_variation: Err(reason),
        lossless: None,
        formula: (rate.clone(), rate.clone()),
        formula_agrees: None,
        exceeds_optimum: false,
        expected: expectation(problem, VerifierName::OPTIMAL, &rate, true),
        note: None,
    }
}

fn expectation(
    problem: &Problem,
    name: VerifierName,
    found: &Known,
    exactly: bool,
) -> Option<Expectation> {
    let expected = problem.expected()?;
    let value = expected.acceptance_rate.get(name.as_str())?;
    let field = format!("acceptance_rate.{name}");
    let wanted = Wanted::of(expected, &field, value, Standard::ACCEPTANCE);
    // With a rounded parameter, not even the exact sum is the ideal rate.
    Some(wanted.against(Some(found), exactly))
}
