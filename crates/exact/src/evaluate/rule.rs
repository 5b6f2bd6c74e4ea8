//! `verify`, of a rule that the problem file tabulates.

use super::summed::Summed;
use specgap_core::problem::{Problem, Rule};
use specgap_core::verifier::{OutputLaw, TotalVariation};
use specgap_number::distribution::{Rational, TwoFloat, compensated_sum};
use specgap_number::known::Known;
use specgap_number::number::Number;

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
    /// else within [`LOSSLESS_TOLERANCE`](super::LOSSLESS_TOLERANCE).
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
        let summed = match work <= most_work {
            true => Summed::exact(exact(rule, problem), problem.target()),
            false => Summed::float(float(rule, problem), problem.target()),
        };
        Self {
            name: rule.name.clone(),
            gap: optimum.map(|best| best.minus(&summed.membership)),
            lossless: summed.is_lossless(fractions),
            membership: summed.membership,
            total_variation: summed.variation,
        }
    }

    /// Says what is wrong: that the output law is not p.
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

#[cfg(test)]
mod tests {
    use crate::evaluate::{Evaluated, verify};
    use specgap_core::problem::parse_json;

    fn tabulated(drafts: usize, draft: &str, outputs: &str) -> String {
        format!(
            r#"{{"schema": 1, "name": "x", "target": ["1/2", "1/2"], "drafts": {drafts},
                "draft": {{{draft}}}, "rule": {{"name": "mine", "outputs": {outputs}}}}}"#
        )
    }

    /// Fewer tokens than drafts, and no drafts at all: rows are what is drawn.
    #[test]
    fn rules_of_few_drafts_are_tabulated() {
        let poisson = |chances: &str| {
            format!(r#""scheme": "composed", "law": {{"law": "poisson", "chances": {chances}}}"#)
        };
        let one_hot = |scheme: &str| format!(r#""scheme": "{scheme}", "q": ["1", "0"]"#);
        let [without, with] = ["without-replacement", "with-replacement"].map(one_hot);
        let [first, both] = [r#"["1/2", "0"]"#, r#"["1/2", "1/2"]"#].map(poisson);
        // What was drawn is kept where p has room for it.
        let one = r#"{"0": ["1/2", "1/2"]}"#;
        let twice = r#"{"0 0": ["1/2", "1/2"]}"#;
        let at_most_one = r#"{"": ["0", "1"], "0": ["1", "0"]}"#;
        let at_most_two =
            r#"{"": ["1/2", "1/2"], "0": ["1", "0"], "1": ["0", "1"], "0 1": ["1/2", "1/2"]}"#;
        for (drafts, draft, outputs, accepted) in [
            (2, without, one, 0.5),
            (2, with, twice, 0.5),
            (1, first, at_most_one, 0.5),
            (2, both, at_most_two, 0.75),
        ] {
            let text = tabulated(drafts, &draft, outputs);
            let problem = parse_json(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
            let verified = verify(problem.single().unwrap());
            let rule = verified.rule.as_ref().unwrap();
            assert!(verified.is_ok() && rule.lossless, "{text}: {rule:?}");
            assert_eq!(rule.membership.value(), accepted, "{text}");
        }
    }

    /// What cannot be drawn is told with what can.
    #[test]
    fn rows_of_another_length_are_refused_with_the_lengths_that_are_drawn() {
        let wo = r#""scheme": "without-replacement", "q": ["1", "0"]"#;
        let iid = r#""scheme": "with-replacement", "q": ["1", "0"]"#;
        let poisson = r#""scheme": "composed", "law": {"law": "poisson", "chances": ["1/2", "0"]}"#;
        let [two, one] = [r#"{"0 1": [1, 0]}"#, r#"{"0": [1, 0]}"#];
        for (drafts, draft, outputs, message) in [
            (2, wo, two, "\"0 1\" lists 2 drafts; 1 are drawn"),
            (2, wo, "{}", "has no row \"0\", and these drafts can"),
            (2, iid, one, "\"0\" lists 1 drafts; 2 are drawn"),
            (1, poisson, two, "lists 2 drafts; 0 or 1 are drawn"),
            (1, poisson, one, "has no row \"\", and these drafts can"),
        ] {
            let error = parse_json(&tabulated(drafts, draft, outputs)).unwrap_err();
            assert!(error.to_string().contains(message), "{outputs}: {error}");
        }
    }
}
