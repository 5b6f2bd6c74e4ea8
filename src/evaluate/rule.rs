//! `verify`, of a rule that the problem file tabulates.

use super::json::Object;
use super::tolerances::LOSSLESS_TOLERANCE;
use crate::distribution::{Rational, TwoFloat, compensated_sum};
use crate::known::Known;
use crate::number::Number;
use crate::problem::{Problem, Rule};
use crate::verifier::{OutputLaw, TotalVariation, total_variation, total_variation_exact};
use serde::{Serialize, Serializer};

/// What a tabulated rule does on its problem.
#[derive(Clone, Debug)]
pub struct RuleVerification {
    /// What the file calls it.
    pub name: String,
    /// P(output in A(X)).
    pub membership: Known,
    /// alpha* minus that, where alpha* is known. Below 0, the rule accepts more than any
    /// lossless one can.
    pub gap: Option<Known>,
    /// Distance of its output law from p.
    pub total_variation: TotalVariation,
    /// Whether the output law is p: with tolerance 0 if all the file's numbers are fractions,
    /// else within [`LOSSLESS_TOLERANCE`].
    pub lossless: bool,
}

impl RuleVerification {
    /// `most_work` of a sum in rationals: token operations times the bits of a term.
    pub(super) fn new(
        rule: &Rule,
        problem: &Problem,
        optimum: Option<&Known>,
        most_work: f64,
    ) -> Self {
        let scheme = problem.scheme();
        let fractions =
            problem.target().is_rational() && rule.outputs.values().all(|row| row.is_rational());
        let bits = scheme.exact_bits() + problem.target().exact_bits() as f64;
        let work = rule.outputs.len() as f64 * problem.vocab() as f64 * bits;
        let (membership, total_variation) = if work <= most_work {
            let law = exact(rule, problem);
            let variation = total_variation_exact(&law, problem.target());
            (Known::exact(law.membership), variation)
        } else {
            let law = float(rule, problem);
            let variation = total_variation(&law, problem.target());
            (
                Known::rate_within(law.membership, LOSSLESS_TOLERANCE),
                variation,
            )
        };
        let lossless = match &total_variation.exact {
            Some(exact) if fractions => exact.is_nil(),
            _ => total_variation.value <= LOSSLESS_TOLERANCE,
        };
        Self {
            name: rule.name.clone(),
            gap: optimum.map(|best| best.minus(&membership)),
            membership,
            total_variation,
            lossless,
        }
    }

    /// What is wrong: that the output law is not p.
    pub fn complaint(&self) -> Option<String> {
        let variation = &self.total_variation;
        let token = variation.worst_token.filter(|_| !self.lossless)?;
        Some(format!(
            "NOT LOSSLESS: TV {:e}, worst token {token} by {:+e}",
            variation.value, variation.worst_difference
        ))
    }
}

/// Distinct tokens of a tuple.
fn distinct(tuple: &[u32]) -> impl Iterator<Item = usize> + '_ {
    let first = |&(place, token): &(usize, &u32)| !tuple[..place].contains(token);
    let places = tuple.iter().enumerate().filter(first);
    places.map(|(_, &token)| token as usize)
}

fn exact(rule: &Rule, problem: &Problem) -> OutputLaw<Rational> {
    let zero = <Rational as Number>::zero();
    let mut output = vec![zero.clone(); problem.vocab()];
    let mut membership = zero;
    problem.scheme().for_each_tuple_exact(&mut |tuple, mass| {
        let Some(row) = rule.outputs.get(tuple) else {
            return;
        };
        for (token, sum) in output.iter_mut().enumerate() {
            *sum += mass * row.exact().probability(token);
        }
        for token in distinct(tuple) {
            membership += mass * row.exact().probability(token);
        }
    });
    OutputLaw {
        output,
        algorithmic: membership.clone(),
        membership,
    }
}

fn float(rule: &Rule, problem: &Problem) -> OutputLaw<f64> {
    let mut output = vec![TwoFloat::ZERO; problem.vocab()];
    let mut membership = TwoFloat::ZERO;
    problem.scheme().for_each_tuple(&mut |tuple, mass| {
        let Some(row) = rule.outputs.get(tuple).map(|row| row.probabilities()) else {
            return;
        };
        for (sum, share) in output.iter_mut().zip(row) {
            *sum += mass * share;
        }
        membership +=
            mass * compensated_sum(distinct(tuple).filter_map(|token| row.get(token).copied()));
    });
    let membership = membership.value();
    OutputLaw {
        output: output.into_iter().map(TwoFloat::value).collect(),
        algorithmic: membership,
        membership,
    }
}

impl Serialize for RuleVerification {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (rate, variation) = (&self.membership, &self.total_variation);
        let mut object = Object::begin(serializer)?;
        object.put("name", &self.name)?;
        object.put("membership_acceptance", &rate.value())?;
        object.put("lower", &rate.lower())?;
        object.put("upper", &rate.upper())?;
        object.put("exact", &super::json::fraction(rate))?;
        object.put("gap", &self.gap.as_ref().map(Known::value))?;
        object.put("total_variation", &variation.value)?;
        object.put("worst_token", &variation.worst_token)?;
        object.put("lossless", &self.lossless)?;
        object.put("ok", &self.complaint().is_none())?;
        object.end()
    }
}
