//! What no engine of a rule may do, counted at each step.

use crate::audit::data::HardCheck;
use crate::audit::evidence::rows::Pair;
use crate::audit::evidence::steps::{Check, Checks, Step};
use crate::audit::model::engine::get;
use crate::audit::model::rule::Rule;
use specgap_core::rule::Drafts;
use specgap_log::log::Log;

impl Checks {
    /// Looks at one step.
    pub(crate) fn look(
        &mut self,
        rule: Rule,
        pair: &Pair,
        step: &Step,
        tolerance: f64,
        index: usize,
    ) {
        self.has_masks |= !pair.allowed.is_empty();
        if pair.is_masked(step.output) {
            self.found(Check::Masked, index);
        }
        if get(&pair.whole, step.output) <= 0.0 {
            self.found(Check::TargetZero, index);
        } else if pair.is_outside(step.output, tolerance) {
            self.found(Check::Outside, index);
        }
        let claims = rule.drafts() != Drafts::Any;
        if claims && step.drafts.iter().any(|&x| get(&pair.q, x) <= 0.0) {
            self.found(Check::DraftZero, index);
        }
        if rule.drafts().are_distinct() {
            let mut drafts = step.drafts.clone();
            drafts.sort_unstable();
            // Tokens that are not listed stand in one place and may differ.
            let twice = |&[a, b]: &[usize; 2]| a == b && !pair.is_rest(a);
            if drafts.array_windows().any(twice) {
                self.found(Check::Repeated, index);
            }
        }
    }
}

/// Rounds that a recorder says that it lost.
pub(crate) fn lost(log: &Log) -> Option<HardCheck> {
    let lost = log.metadata().lost_rounds.as_ref()?;
    let reasons = (lost.reasons.iter()).map(|(reason, count)| format!("{count}: {reason}"));
    let reasons: Vec<String> = reasons.collect();
    let why = match reasons.is_empty() {
        true => String::new(),
        false => format!(" ({})", reasons.join("; ")),
    };
    Some(HardCheck {
        name: "lost-rounds".to_owned(),
        violations: lost.count,
        first_position: None,
        words: format!("a round could not be recorded, and is not in the log{why}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use Check::{DraftZero, Outside, Repeated, TargetZero};

    #[test]
    fn what_no_engine_may_do_is_counted_at_its_place() {
        // Token 1 is cut by the sampler, token 2 has no probability, token 3 is no draft's.
        let made = |least: f64, rest: bool| {
            let (p, q) = ([0.75, 0.0, 0.0, 0.25], [0.5, 0.5, 0.0, 0.0]);
            Pair::made(p, q, [0.6, 0.2, 0.0, 0.2], least, rest)
        };
        // As near as rounding to what is kept; and tokens that are not listed stand in one place.
        let (pair, near, rest) = (made(0.3, false), made(0.21, false), made(0.3, true));
        let (token, distinct) = (Rule::TOKEN, Rule::RRS_WO);
        for (pair, tolerance, rule, drafts, output, expected) in [
            (&pair, 0.0, token, &[0][..], 0, [0; 4]),
            (&pair, 0.0, token, &[0], 3, [0; 4]),
            (&pair, 0.0, token, &[0], 2, [1, 0, 0, 0]),
            (&pair, 0.0, token, &[0], 9, [1, 0, 0, 0]),
            (&pair, 0.0, token, &[0], 1, [0, 1, 0, 0]),
            (&pair, 0.0, token, &[3], 0, [0, 0, 1, 0]),
            // One count for a step, however many of its drafts are impossible.
            (&pair, 0.0, Rule::RRS, &[3, 2, 0], 0, [0, 0, 1, 0]),
            (&pair, 0.0, Rule::RRS, &[0, 1, 0], 0, [0; 4]),
            (&pair, 0.0, distinct, &[0, 1], 0, [0; 4]),
            (&pair, 0.0, distinct, &[0, 1, 0], 0, [0, 0, 0, 1]),
            (&pair, 0.0, Rule::EXACT_MATCH, &[3, 3], 0, [0; 4]),
            (&near, 0.0, token, &[0], 1, [0, 1, 0, 0]),
            (&near, 0.1, token, &[0], 1, [0; 4]),
            (&rest, 0.0, distinct, &[3, 3], 0, [0, 0, 1, 0]),
            (&rest, 0.0, distinct, &[1, 1], 0, [0, 0, 0, 1]),
        ] {
            let step = Step {
                drafts: drafts.to_vec(),
                accepted: false,
                output,
            };
            let mut found = Checks::default();
            found.look(rule, pair, &step, tolerance, 7);
            let counts = [TargetZero, Outside, DraftZero, Repeated].map(|check| found.of(check));
            let counts = counts.map(|count| (count.violations, count.first));
            let expected = expected.map(|many| (many, (many > 0).then_some(7)));
            assert_eq!(counts, expected, "{rule} {drafts:?} {output} {tolerance}");
        }
    }

    #[test]
    fn what_row_checks_find_adds_up() {
        let mut one = Checks::default();
        one.found(TargetZero, 5);
        one.found(Repeated, 9);
        let mut other = Checks::default();
        for (check, position) in [(TargetZero, 3), (Outside, 1), (DraftZero, 2)] {
            other.found(check, position);
        }
        one.add(other);
        let listed = |cut: bool| -> Vec<(String, u64, Option<usize>)> {
            let each = one.list(cut).into_iter();
            each.map(|one| (one.name, one.violations, one.first_position))
                .collect()
        };
        let named = |name: &str, violations, first| (name.to_owned(), violations, first);
        let mut expected = vec![
            named("target-zero", 2, Some(3)),
            named("draft-zero", 1, Some(2)),
            named("draft-repeated", 1, Some(9)),
            named("accepted-not-emitted", 0, None),
            named("accepted-after-rejection", 0, None),
            named("tokens-missing", 0, None),
            named("text-after-its-end", 0, None),
        ];
        assert_eq!(listed(false), expected);
        expected.insert(1, named("outside-claimed-cut", 1, Some(1)));
        assert_eq!(listed(true), expected);
    }
}
