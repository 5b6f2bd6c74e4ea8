//! Recomputes every claim from the original data, and believes nobody.
//!
//! This module imports no solver. It takes a problem and a claim about it (a
//! subset, a plan, a coupling, a linear program's answer) and derives what the
//! claim proves, from the definition of the draft law and in exact arithmetic
//! where the claim is exact. [`Certified`] values can be made nowhere else.
//!
//! The two halves of an optimality proof:
//! - any subset H proves `alpha* <= 1 + P(H) - Q(H)`: whenever all drafts lie in
//!   H, only tokens of H can be accepted, and p gives them P(H) in all;
//! - any plan that keeps within p and D proves `alpha* >=` what it accepts.

mod certificate;
mod residuals;
#[cfg(test)]
mod tests;

pub use certificate::{Certificate, CertificateError, PlanEntry};
pub use residuals::{Residuals, residuals};

use crate::coupling::{Coupling, PlanMasses, Rounding, TransportPlan, distinct};
use crate::problem::Problem;
use crate::scheme::{DraftScheme, Probability, SchemeName, UNDERFLOW};
use num_bigint::BigUint;
use num_traits::{One, Signed, Zero};
use specgap_number::distribution::{
    PROBABILITY_RELATIVE_ERROR, Rational, compensated_sum, exact_value, format_rational, ratio,
    round_down, round_up,
};
use specgap_number::known::Known;
use specgap_number::number;
use std::collections::{HashMap, HashSet};

/// A value that was recomputed from the original data.
///
/// There is no public constructor: only the functions of this module make one.
///
/// ```compile_fail
/// let forged = specgap_core::certify::Certified { value: 1.0 };
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Certified<T> {
    value: T,
}

impl<T> Certified<T> {
    /// The value.
    pub fn get(&self) -> &T {
        &self.value
    }

    /// The value, giving up the proof.
    pub fn into_inner(self) -> T {
        self.value
    }
}

/// Up to this many tuples the law of sets is recomputed tuple by tuple in an exact
/// check; above, set by set.
const EXACT_TUPLES: f64 = 20_000.0;

/// As [`EXACT_TUPLES`], in `f64`.
const FLOAT_TUPLES: f64 = 200_000.0;

/// A rounded plan may exceed a capacity by this share before it is refused
/// instead of scaled down.
const SCALE_LIMIT: f64 = 1e-9;

/// `alpha* <= 1 + P(H) - Q(H)` for a subset H, exactly.
///
/// # Errors
/// A subset that is not strictly ascending or not within the vocabulary.
pub fn upper_bound(
    problem: &Problem,
    subset: &[usize],
) -> Result<Certified<Rational>, CertificateError> {
    check_subset(problem, subset)?;
    let mass = problem.target().exact().mass(subset);
    let inside = problem.scheme().inside_exact(subset);
    Ok(Certified {
        value: Rational::one() + mass - inside,
    })
}

/// `alpha* <= 1 + P(H) - Q(H)` for a subset H in `f64`: the estimate, and an
/// upper bound on it with rounding accounted for.
///
/// # Errors
/// As for [`upper_bound`].
pub fn upper_bound_float(
    problem: &Problem,
    subset: &[usize],
) -> Result<Certified<(f64, f64)>, CertificateError> {
    check_subset(problem, subset)?;
    let row = problem.target().probabilities();
    let mass = compensated_sum(subset.iter().map(|&token| row[token]));
    let scan = problem.scheme().prefix_scan(subset);
    let inside = (scan.inside.last().copied()).unwrap_or_else(|| problem.scheme().nothing());
    let error = scan.absolute_error + PROBABILITY_RELATIVE_ERROR + 2.0 * f64::EPSILON;
    let value = 1.0 + (mass - inside);
    Ok(Certified {
        value: (value, value + error),
    })
}

fn check_subset(problem: &Problem, subset: &[usize]) -> Result<(), CertificateError> {
    check_tokens(problem, subset, "subset", || "subset".to_owned())
}

fn check_tokens(
    problem: &Problem,
    tokens: &[usize],
    list: &'static str,
    place: impl Fn() -> String,
) -> Result<(), CertificateError> {
    if let Some(&token) = tokens.iter().find(|&&token| token >= problem.vocab()) {
        return Err(CertificateError::Token(list, token, problem.vocab()));
    }
    if let Some(pair) = tokens.windows(2).find(|pair| pair[0] >= pair[1]) {
        return Err(CertificateError::Order(place(), pair[0], pair[1]));
    }
    Ok(())
}

/// Checks a plan against p and D and a subset against both, and returns what
/// they prove together: alpha* exactly if they meet, else an enclosure.
///
/// An exact plan is checked with tolerance 0. A plan whose capacities were
/// rounded is scaled down until it provably keeps within p and D; the factor it
/// takes is part of the enclosure.
///
/// # Errors
/// [`CertificateError`] names the first thing that is wrong.
///
/// # Complexity
/// One evaluation of each set's probability from the definition.
///
/// # Example
/// ```
/// use specgap_core::certify;
/// use specgap_number::distribution::{Draft, Target};
/// use specgap_core::optimum::flow;
/// use specgap_core::problem::Problem;
/// use specgap_core::scheme::WithReplacement;
/// let scheme = WithReplacement::new(Draft::new(&[0.75, 0.25])?, 2);
/// let problem = Problem::new("bernoulli", Target::new(&[0.5, 0.5])?, scheme)?;
/// let plan = flow::solve(&problem).into_plan();
/// let proved = certify::optimum(&problem, &plan, &[0])?;
/// assert_eq!((proved.get().lower(), proved.get().upper()), (0.9375, 0.9375));
/// // The same plan with another subset proves less.
/// let weaker = certify::optimum(&problem, &plan, &[1])?;
/// assert!(weaker.get().rational().is_none() && weaker.get().upper() == 1.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn optimum(
    problem: &Problem,
    plan: &TransportPlan,
    subset: &[usize],
) -> Result<Certified<Known>, CertificateError> {
    check_subset(problem, subset)?;
    check_sets(problem, plan)?;
    match plan.rounding {
        Rounding::None => {
            let upper = upper_bound(problem, subset)?.value.min(Rational::one());
            let lower = exact_plan(problem, plan)?;
            if lower > upper {
                let [lower, upper] = [&lower, &upper].map(format_rational);
                return Err(CertificateError::Contradiction(lower, upper));
            }
            let least = round_down(&lower);
            let value = match lower == upper {
                true => Known::exact(lower),
                false => Known::rate(least, least, round_up(&upper)),
            };
            Ok(Certified { value })
        }
        Rounding::Grid { .. } => {
            let (value, upper) = upper_bound_float(problem, subset)?.value;
            let lower = rounded_plan(problem, plan)?;
            if lower > upper {
                let [lower, upper] = [lower, upper].map(|bound| bound.to_string());
                return Err(CertificateError::Contradiction(lower, upper));
            }
            let value = Known::rate(value, lower, upper);
            Ok(Certified { value })
        }
    }
}

fn check_sets(problem: &Problem, plan: &TransportPlan) -> Result<(), CertificateError> {
    let (masses, entries) = (plan.accepted.len(), plan.sets.tokens().len());
    if masses != entries {
        return Err(CertificateError::Entries(masses, entries));
    }
    if plan.total.is_zero() {
        return Err(CertificateError::ZeroUnit);
    }
    let mut seen = HashSet::with_capacity(plan.sets.len());
    for (index, set) in plan.sets.iter().enumerate() {
        let tokens: Vec<usize> = set.iter().map(|&token| token as usize).collect();
        check_tokens(problem, &tokens, "plan", || format!("plan: set {index}"))?;
        let limit = problem.scheme().largest_checked_set();
        if set.len() > limit && problem.scheme().tuple_count() > EXACT_TUPLES {
            return Err(CertificateError::SetTooLarge(index, set.len(), limit));
        }
        if !seen.insert(set) {
            return Err(CertificateError::DuplicateSet(set.to_vec()));
        }
    }
    Ok(())
}

/// The law of sets, tuple by tuple, where these are few.
fn by_tuples<M: Probability>(law: &dyn DraftScheme, most: f64) -> Option<HashMap<Vec<u32>, M>> {
    let is_short = law.tuple_count() <= most || law.name() == SchemeName::EXPLICIT;
    is_short.then(|| {
        let mut masses = HashMap::new();
        M::tuples(law, &mut |tuple, mass| {
            let sum = masses.entry(distinct(tuple)).or_insert_with(M::zero);
            sum.gain(mass);
        });
        masses
    })
}

/// Returns what an exact plan accepts, once it is found to keep within p and D.
fn exact_plan(problem: &Problem, plan: &TransportPlan) -> Result<Rational, CertificateError> {
    let scheme = problem.scheme();
    let by_tuples = by_tuples::<Rational>(scheme, EXACT_TUPLES);
    let target = problem.target().exact();
    let mut kept = vec![BigUint::zero(); problem.vocab()];
    let mut accepted = BigUint::zero();
    for (index, set) in plan.sets.iter().enumerate() {
        let mut used = BigUint::zero();
        for entry in plan.sets.span(index) {
            let mass = plan.accepted.get(entry);
            kept[plan.sets.tokens()[entry] as usize] += &mass;
            used += mass;
        }
        if used.is_zero() {
            continue;
        }
        let probability = match &by_tuples {
            Some(masses) => masses.get(set).cloned().unwrap_or_default(),
            None => scheme.set_probability_exact(set),
        };
        // used / total <= probability, without reducing fractions
        let numerator = probability.numer().magnitude();
        if &used * probability.denom().magnitude() > numerator * &plan.total {
            return Err(CertificateError::SetOverdrawn(
                set.to_vec(),
                format_rational(&ratio(&used, &plan.total)),
                format_rational(&probability),
            ));
        }
        accepted += used;
    }
    for (token, mass) in kept.iter().enumerate() {
        if mass * &target.total > &target.weights[token] * &plan.total {
            return Err(CertificateError::TokenOverdrawn(
                token,
                format_rational(&ratio(mass, &plan.total)),
                format_rational(&target.probability(token)),
            ));
        }
    }
    Ok(ratio(&accepted, &plan.total))
}

/// A lower bound on alpha* from a plan on rounded capacities.
fn rounded_plan(problem: &Problem, plan: &TransportPlan) -> Result<f64, CertificateError> {
    let scheme = problem.scheme();
    let unit = round_up(&ratio(&BigUint::one(), &plan.total));
    let by_tuples = by_tuples::<f64>(scheme, FLOAT_TUPLES);
    let mass_of = |entry: usize| match &plan.accepted {
        PlanMasses::Native(masses) => masses[entry] as f64 * unit,
        PlanMasses::Big(masses) => round_up(&ratio(&masses[entry], &plan.total)),
    };
    let error = scheme.set_probability_error();
    // The largest factor that brings every set and every token within its mass.
    let mut factor: f64 = 1.0;
    let mut shrink = |used: f64, capacity: f64, describe: &dyn Fn() -> CertificateError| {
        if !capacity.is_finite() {
            return Err(describe());
        }
        if used - capacity <= UNDERFLOW {
            return Ok(());
        }
        let share = capacity.max(0.0) / used;
        if share < 1.0 - SCALE_LIMIT {
            return Err(describe());
        }
        factor = factor.min(share);
        Ok(())
    };
    let mut kept = vec![specgap_number::distribution::TwoFloat::ZERO; problem.vocab()];
    let mut accepted = specgap_number::distribution::TwoFloat::ZERO;
    for (index, set) in plan.sets.iter().enumerate() {
        let used = compensated_sum(plan.sets.span(index).map(|entry| {
            let mass = mass_of(entry);
            kept[plan.sets.tokens()[entry] as usize] += mass;
            mass
        }));
        if used == 0.0 {
            continue;
        }
        let probability = match &by_tuples {
            Some(masses) => masses.get(set).copied().unwrap_or(0.0),
            None => scheme.set_probability(set),
        };
        let summed = problem.drafts() as f64 * f64::EPSILON * 8.0;
        let summed = if by_tuples.is_some() { summed } else { 0.0 };
        let rounding = error + 4.0 * f64::EPSILON + summed;
        shrink(used, probability * (1.0 - rounding), &|| {
            CertificateError::SetOverdrawn(set.to_vec(), used.to_string(), probability.to_string())
        })?;
        accepted += used;
    }
    let row = problem.target().probabilities();
    for (token, (kept, &p)) in kept.iter().zip(row).enumerate() {
        let used = kept.value();
        let bound = p * (1.0 - PROBABILITY_RELATIVE_ERROR - 4.0 * f64::EPSILON);
        shrink(used, bound, &|| {
            CertificateError::TokenOverdrawn(token, used.to_string(), p.to_string())
        })?;
    }
    let sets = plan.sets.len() as f64 + problem.vocab() as f64;
    Ok(accepted.value() * factor * (1.0 - 8.0 * f64::EPSILON) - sets * UNDERFLOW)
}

/// Checks that a coupling has non-negative entries and exactly the marginals p
/// and D, and returns its acceptance rate P(i in A(X)).
///
/// # Errors
/// The first entry or marginal that is wrong.
pub fn coupling(
    problem: &Problem,
    coupling: &Coupling<Rational>,
) -> Result<Certified<Rational>, CertificateError> {
    let (vocab, columns) = coupling.mass.dim();
    for (masses, tokens) in [(vocab, problem.vocab()), (columns, coupling.tuples.len())] {
        if masses != tokens {
            return Err(CertificateError::Entries(masses, tokens));
        }
    }
    let mut law: HashMap<&[u32], Rational> = HashMap::new();
    for ((token, column), mass) in coupling.mass.indexed_iter() {
        if mass.is_negative() {
            return Err(CertificateError::Negative(token, format_rational(mass)));
        }
        let own = law.entry(&coupling.tuples[column]).or_default();
        number::Number::gain(own, mass);
    }
    let target = problem.target().exact();
    for (token, row) in coupling.mass.rows().into_iter().enumerate() {
        let (sum, p): (Rational, _) = (number::Number::total(row), target.probability(token));
        if sum != p {
            return Err(CertificateError::TargetMarginal(
                token,
                format_rational(&sum),
                format_rational(&p),
            ));
        }
    }
    let mut truth: HashMap<Vec<u32>, Rational> = HashMap::new();
    Rational::tuples(problem.scheme(), &mut |tuple, probability| {
        *truth.entry(tuple.to_vec()).or_insert_with(Rational::zero) += probability;
    });
    for (tuple, probability) in &truth {
        let sum = law.get(tuple.as_slice()).cloned().unwrap_or_default();
        if sum != *probability {
            return Err(CertificateError::DraftMarginal(
                tuple.clone(),
                format_rational(&sum),
                format_rational(probability),
            ));
        }
    }
    let all = coupling.mass.indexed_iter();
    let drafted = all.filter(|((x, column), _)| coupling.tuples[*column].contains(&(*x as u32)));
    let value = drafted.map(|(_, mass)| mass).sum();
    Ok(Certified { value })
}

/// Largest absolute error of a floating-point coupling's marginals, and its
/// acceptance rate, against the exact p and D rounded to `f64`.
pub fn coupling_float(problem: &Problem, coupling: &Coupling<f64>) -> (f64, f64) {
    let mut worst: f64 = 0.0;
    // `max` passes NaN over, which is no small error.
    let mut note = |error: f64| {
        worst = worst.max(if error.is_nan() { f64::INFINITY } else { error });
    };
    let mut accepted = Vec::new();
    let rows = coupling.mass.rows().into_iter();
    for (token, (row, p)) in rows.zip(problem.target().probabilities()).enumerate() {
        note((compensated_sum(row.iter().copied()) - p).abs());
        for (tuple, &mass) in coupling.tuples.iter().zip(row) {
            note(-mass);
            if tuple.contains(&(token as u32)) {
                accepted.push(mass);
            }
        }
    }
    let (_, law) = f64::listed(problem.scheme());
    for (column, probability) in law.iter().enumerate() {
        let sum = compensated_sum(coupling.mass.column(column).iter().copied());
        note((sum - probability).abs());
    }
    (worst, compensated_sum(accepted))
}

/// Difference between a claimed `f64` and an exact value, rounded up.
pub fn distance(claimed: f64, exact: &Rational) -> f64 {
    exact_value(claimed).map_or(f64::INFINITY, |value| round_up(&(value - exact).abs()))
}
