//! Every verifier on one problem.

use super::{
    Optimal, OutputLaw, Rate, RrsWo, RrsWoSettings, TotalVariation, Verifier, VerifierError,
    VerifierName, output_law, output_law_exact, total_variation, total_variation_exact, verifier,
};
use crate::distribution::{Rational, exact_value, round_nearest};
use crate::enclosure::Enclosure;
use crate::number::Number;
use crate::optimum::{closed_form, flow, ratio_scan, submodular};
use crate::plan::Draws;
use crate::problem::{ExpectedValue, Problem};
use crate::scheme::SchemeName;
use num_traits::Signed;

/// Largest total variation at which a rule summed in `f64` counts as lossless:
/// above the rounding of the largest sums that are done
/// (3e6 terms), below any known error of a rule.
pub const FLOAT_TOLERANCE: f64 = 1e-11;

/// Smallest difference from an expected value that counts, for a value that is
/// not an exact rational or belongs to a rule with an irrational parameter.
const EXPECTED_FLOOR: f64 = 1e-12;

/// Tolerance for expected values of a problem that states none.
const EXPECTED_DEFAULT: f64 = 1e-9;

/// Most tuples (or sets) that are summed.
const LARGEST_ENUMERATION: f64 = 3.0e6;

/// Most token operations of a sum over tuples in `f64`.
const LARGEST_FLOAT_WORK: f64 = 3.0e8;

/// Most work of a sum over tuples in rationals: token operations times the bits
/// of a term.
const LARGEST_EXACT_WORK: f64 = 3.0e7;

/// What all verifiers do on one problem.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// The problem's name.
    pub problem: String,
    /// Its draft scheme.
    pub scheme: SchemeName,
    /// V.
    pub vocab: usize,
    /// n.
    pub drafts: usize,
    /// alpha*, or why it is not known.
    pub optimum: Result<Enclosure, String>,
    /// One entry a verifier, in the order of [`VerifierName::ALL`].
    pub verifiers: Vec<Assessment>,
    /// Verifiers that the problem file has an expected rate for, but that do not
    /// apply to it.
    pub unmet: Vec<VerifierName>,
}

/// One verifier on one problem.
#[derive(Clone, Debug)]
pub struct Assessment {
    /// The verifier.
    pub name: VerifierName,
    /// What it does, or why it was not run.
    pub outcome: Outcome,
}

/// Whether a verifier was run.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// It does not apply.
    Skipped {
        /// Why, and what to use instead.
        reason: VerifierError,
    },
    /// It was run.
    Measured(Box<Measured>),
}

/// What a verifier does on a problem.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Probability that the rule accepts a draft.
    pub algorithmic: Rate,
    /// P(output in A(X)).
    pub membership: Rate,
    /// alpha* minus membership acceptance, where alpha* is known.
    pub gap: Option<Enclosure>,
    /// Distance of the output law from p, or why it was not summed.
    pub total_variation: Result<TotalVariation, String>,
    /// Whether the output law is p: with tolerance 0 where it is exact, else
    /// within [`FLOAT_TOLERANCE`]. `None` if it was not summed.
    pub lossless: Option<bool>,
    /// The rates by formula, without enumeration; algorithmic, then membership.
    pub formula: (Rate, Rate),
    /// Whether formula and enumeration agree; `None` if nothing was enumerated.
    pub formula_agrees: Option<bool>,
    /// Whether membership acceptance is above alpha*, beyond all error bounds:
    /// impossible for a correct program.
    pub exceeds_optimum: bool,
    /// Comparison with the problem file.
    pub expected: Option<ExpectedCheck>,
    /// What a reader must know about the numbers.
    pub note: Option<String>,
}

/// An expected membership acceptance against the one found.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedCheck {
    /// The value in the file.
    pub value: f64,
    /// The difference that is allowed; 0 means equality of rationals.
    pub tolerance: f64,
    /// |found - expected|.
    pub difference: f64,
    /// Whether they agree.
    pub ok: bool,
}

impl Measured {
    /// Nothing refuted: lossless (or not summed), not above alpha*, formula and
    /// enumeration agree, and so does the problem file.
    pub fn is_fine(&self) -> bool {
        self.lossless != Some(false)
            && self.formula_agrees != Some(false)
            && !self.exceeds_optimum
            && self.expected.as_ref().is_none_or(|check| check.ok)
    }
}

impl Evaluation {
    /// The result of one verifier, if it was run.
    pub fn measured(&self, name: VerifierName) -> Option<&Measured> {
        self.verifiers
            .iter()
            .find(|one| one.name == name)
            .and_then(|one| match &one.outcome {
                Outcome::Measured(measured) => Some(measured.as_ref()),
                Outcome::Skipped { .. } => None,
            })
    }

    /// Nothing refuted by any verifier that was run, and every expectation of
    /// the problem file was tried.
    pub fn is_fine(&self) -> bool {
        self.unmet.is_empty()
            && self.verifiers.iter().all(|one| match &one.outcome {
                Outcome::Measured(measured) => measured.is_fine(),
                Outcome::Skipped { .. } => true,
            })
    }
}

/// alpha* of a problem: by maximum flow while its plan is small, else by closed
/// form, else by the ratio scan, else by the submodular minimiser.
///
/// # Errors
/// No method applies at this size; the text says so.
pub fn optimal_rate(problem: &Problem) -> Result<Enclosure, String> {
    let entries = super::optimal::plan_size(problem);
    if entries <= super::LARGEST_PLAN {
        return Ok(flow::solve(problem).optimum().rate);
    }
    closed_form::solve(problem)
        .or_else(|| ratio_scan::solve(problem))
        .or_else(|| {
            (problem.vocab() <= submodular::LARGEST_VOCAB).then(|| submodular::solve(problem))
        })
        .map(|optimum| optimum.rate)
        .ok_or_else(|| {
            format!(
                "{entries:.3e} (set, token) pairs are too many for a flow (at most {:.0e}), and \
                 {} drafts have no closed form and no ratio scan",
                super::LARGEST_PLAN,
                problem.scheme().name()
            )
        })
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
/// use specgap::distribution::{Draft, Target};
/// use specgap::problem::Problem;
/// use specgap::scheme::WithReplacement;
/// use specgap::verifier::{VerifierName, evaluate};
/// let scheme = WithReplacement::new(Draft::new(&[0.75, 0.25])?, 2);
/// let problem = Problem::new("bernoulli", Target::new(&[0.5, 0.5])?, scheme)?;
/// let evaluation = evaluate(&problem);
/// assert_eq!(evaluation.verifiers.len(), VerifierName::ALL.len());
/// let rrs = evaluation.measured(VerifierName::Rrs).unwrap();
/// assert_eq!(rrs.lossless, Some(true));
/// assert_eq!(rrs.gap.as_ref().unwrap().value, 0.125);
/// assert!(evaluation.measured(VerifierName::SpecHub).is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn evaluate(problem: &Problem) -> Evaluation {
    evaluate_with(problem, &RrsWoSettings::default())
}

/// [`evaluate`] with a budget and a seed for the one rate that may need Monte
/// Carlo, that of [`RrsWo`].
pub fn evaluate_with(problem: &Problem, settings: &RrsWoSettings) -> Evaluation {
    let mut optimum = optimal_rate(problem);
    let planned = Optimal::new(problem);
    if let (Ok(best), Ok(rule)) = (&mut optimum, &planned)
        && let Some(plan) = rule.weights()
        && plan.draws() == Draws::Sequential
    {
        // A lossless rule proves a lower bound, where the scan has only a loose one.
        let proven = plan.optimal_acceptance_rate();
        *best = Enclosure::rate(
            best.value,
            best.lower.max(proven.lower).min(best.value),
            best.upper,
        );
    }
    let run = |name| match name {
        VerifierName::RrsWo => {
            RrsWo::with_settings(problem, *settings).map(|rule| measure(&rule, problem, &optimum))
        }
        // Its rate is alpha*, whether or not there is room for the plan.
        VerifierName::Optimal => match (&planned, &optimum) {
            (Ok(rule), _) => Ok(measure(rule, problem, &optimum)),
            (Err(error), Ok(best)) => Ok(unplanned(problem, best, error.to_string())),
            (Err(error), Err(_)) => Err(error.clone()),
        },
        _ => verifier(name, problem).map(|rule| measure(rule.as_ref(), problem, &optimum)),
    };
    let verifiers: Vec<Assessment> = VerifierName::ALL
        .into_iter()
        .map(|name| Assessment {
            name,
            outcome: match run(name) {
                Ok(measured) => Outcome::Measured(Box::new(measured)),
                Err(reason) => Outcome::Skipped { reason },
            },
        })
        .collect();
    let unmet = verifiers
        .iter()
        .filter(|one| {
            matches!(one.outcome, Outcome::Skipped { .. })
                && problem
                    .expected()
                    .is_some_and(|e| e.acceptance_rate.contains_key(one.name.as_str()))
        })
        .map(|one| one.name)
        .collect();
    Evaluation {
        problem: problem.name().to_owned(),
        scheme: problem.scheme().name(),
        vocab: problem.vocab(),
        drafts: problem.drafts(),
        optimum,
        verifiers,
        unmet,
    }
}

/// The sum over tuples, as exactly as is affordable.
enum Summed {
    Exact(OutputLaw<Rational>),
    Float(OutputLaw<f64>),
    Not(String),
}

fn sum(verifier: &dyn Verifier, problem: &Problem) -> Summed {
    let scheme = problem.scheme();
    let (count, what) = if verifier.depends_on_set_only() {
        (scheme.set_count(), "sets")
    } else {
        (scheme.tuple_count(), "tuples")
    };
    if count > LARGEST_ENUMERATION {
        if let Some(law) = verifier.integrated() {
            return Summed::Float(law);
        }
        return Summed::Not(format!(
            "{count:.3e} {what} are too many to sum; at most {LARGEST_ENUMERATION:.0e} are"
        ));
    }
    // Rules whose residual depends on the tuple handle all V tokens each time, and
    // so does the sum over a law whose tuples hardly share prefixes, as hub's.
    let own_residual = matches!(
        verifier.name(),
        VerifierName::RrsWo | VerifierName::Naive | VerifierName::SpecHub
    );
    let width = if own_residual {
        (problem.vocab() * problem.drafts().min(problem.vocab())) as f64
    } else {
        problem.drafts() as f64
    };
    let bits = scheme.exact_bits() + problem.drafts() as f64 * problem.target().exact_bits() as f64;
    if count * width * bits <= LARGEST_EXACT_WORK
        && let Some(law) = output_law_exact(verifier, scheme)
    {
        return Summed::Exact(law);
    }
    if count * width > LARGEST_FLOAT_WORK {
        if let Some(law) = verifier.integrated() {
            return Summed::Float(law);
        }
        return Summed::Not(format!(
            "{count:.3e} {what} over {} tokens are too many to sum",
            problem.vocab()
        ));
    }
    Summed::Float(output_law(verifier, scheme))
}

fn measure(
    verifier: &dyn Verifier,
    problem: &Problem,
    optimum: &Result<Enclosure, String>,
) -> Measured {
    let formula = verifier.acceptance();
    let target = problem.target();
    let (algorithmic, membership, variation, lossless) = match sum(verifier, problem) {
        Summed::Exact(law) => {
            let variation = total_variation_exact(&law, target);
            let lossless = variation.exact.as_ref().is_some_and(Number::is_nil);
            (
                Rate::Exact(law.algorithmic),
                Rate::Exact(law.membership),
                Ok(variation),
                Some(lossless),
            )
        }
        Summed::Float(law) => {
            let variation = total_variation(&law, target);
            let lossless = variation.value <= FLOAT_TOLERANCE;
            (
                Rate::within(law.algorithmic, FLOAT_TOLERANCE),
                Rate::within(law.membership, FLOAT_TOLERANCE),
                Ok(variation),
                Some(lossless),
            )
        }
        Summed::Not(reason) => (
            formula.algorithmic.clone(),
            formula.membership.clone(),
            Err(reason),
            None,
        ),
    };
    let formula_agrees = lossless.map(|_| {
        agree(&formula.algorithmic, &algorithmic) && agree(&formula.membership, &membership)
    });
    // The exact sum is the better number; the formula is, if the sum is not exact.
    let (algorithmic, membership) = match (&membership, &formula.membership) {
        (Rate::Exact(_), _) => (algorithmic, membership),
        (_, better) if better.width() < membership.width() && formula_agrees != Some(false) => {
            (formula.algorithmic.clone(), formula.membership.clone())
        }
        _ => (algorithmic, membership),
    };
    let gap = optimum.as_ref().ok().map(|best| gap(best, &membership));
    let exceeds_optimum = gap.as_ref().is_some_and(|gap| gap.upper < 0.0)
        && !matches!(membership, Rate::MonteCarlo { .. });
    let expected = expectation(problem, verifier.name(), &membership);
    Measured {
        algorithmic,
        membership,
        gap,
        total_variation: variation,
        lossless,
        formula: (formula.algorithmic, formula.membership),
        formula_agrees,
        exceeds_optimum,
        expected,
        note: formula.note,
    }
}

/// The optimal verifier without its plan: the rate is known, the law is not.
fn unplanned(problem: &Problem, best: &Enclosure, reason: String) -> Measured {
    let rate = match &best.exact {
        Some(exact) => Rate::Exact(exact.clone()),
        None => Rate::between(best.value, best.lower, best.upper),
    };
    Measured {
        algorithmic: rate.clone(),
        membership: rate.clone(),
        gap: Some(Enclosure::exact(Rational::zero())),
        total_variation: Err(reason),
        lossless: None,
        formula: (rate.clone(), rate.clone()),
        formula_agrees: None,
        exceeds_optimum: false,
        expected: expectation(problem, VerifierName::Optimal, &rate),
        note: None,
    }
}

fn expectation(problem: &Problem, name: VerifierName, found: &Rate) -> Option<ExpectedCheck> {
    let expected = problem.expected()?;
    let value = expected.acceptance_rate.get(name.as_str())?;
    Some(compare(name, value, expected.tolerance.as_ref(), found))
}

/// Whether two results for one number can both be right. A confidence interval
/// proves nothing either way.
fn agree(a: &Rate, b: &Rate) -> bool {
    match (a, b) {
        (Rate::MonteCarlo { .. }, _) | (_, Rate::MonteCarlo { .. }) => true,
        (Rate::Exact(a), Rate::Exact(b)) => a == b,
        _ => a.lower() <= b.upper() && b.lower() <= a.upper(),
    }
}

fn gap(optimum: &Enclosure, rate: &Rate) -> Enclosure {
    if let (Some(best), Some(rate)) = (&optimum.exact, rate.exact()) {
        return Enclosure::exact(best - rate);
    }
    Enclosure {
        value: optimum.value - rate.value(),
        lower: optimum.lower - rate.upper(),
        upper: optimum.upper - rate.lower(),
        exact: None,
    }
}

fn compare(
    name: VerifierName,
    expected: &ExpectedValue,
    tolerance: Option<&ExpectedValue>,
    found: &Rate,
) -> ExpectedCheck {
    let allowed = tolerance.map_or(EXPECTED_DEFAULT, |tolerance| tolerance.value);
    // The k-seq factor is rounded, so not even its exact sum is the ideal rate.
    if let (Some(found), true) = (found.exact(), name != VerifierName::KSeq) {
        let limit = match tolerance {
            Some(tolerance) => tolerance.exact.clone(),
            None => exact_value(allowed).unwrap_or_else(Rational::zero),
        };
        let difference = (found - &expected.exact).abs();
        return ExpectedCheck {
            value: expected.value,
            tolerance: allowed,
            ok: difference <= limit,
            difference: round_nearest(&difference),
        };
    }
    let allowed = allowed.max(EXPECTED_FLOOR) + found.width();
    let difference = (found.value() - expected.value).abs();
    ExpectedCheck {
        value: expected.value,
        tolerance: allowed,
        difference,
        ok: difference <= allowed,
    }
}
