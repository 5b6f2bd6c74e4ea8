//! What an engine could change, from the same positions.

use super::compare::LogComparison;
use super::data::{GapReport, OneDraft};
use super::metric::{LIKELIEST, Metric, Place, Rule, SAMPLED, rule_name};
use super::report::Pages;
use super::tally::{ExactSum, Tally};
use specgap_core::scheme::{EngineName, Here, SchemeName, engines_with};
use specgap_core::verifier::VerifierName;
use specgap_statistics::advice::{
    Assumed, Basis, Candidate, Change, Needs, Unit, Verdict, cross_fitted, settings_of,
};

/// What is done now with several drafts.
const NOW: [Rule; 2] = [LIKELIEST, SAMPLED];

/// What one draft is called: `law/rule` of one draft.
const ONE_HOT: &str = "one-hot";
const TOKEN: &str = "token";
const STRICT: &str = "exact-match";

/// Returns what a change from one law and rule to another takes.
fn needs(from: Rule, to: Rule) -> Needs {
    match from.0 == to.0 {
        true => Needs::Rule,
        false => Needs::Law,
    }
}

/// Ranks a change: a rule of as many passes as it takes comes behind one of a fixed number.
fn effort(from: Rule, to: Rule) -> u8 {
    2 * needs(from, to) as u8 + u8::from(to.1 == VerifierName::LEVEL)
}

/// The engines that do so unless told otherwise.
fn default_of(is_so: impl Fn(Here) -> bool) -> Vec<String> {
    let [by_default, _] = engines_with(is_so);
    by_default.into_iter().map(str::to_owned).collect()
}

/// The engines that do what is done now with several drafts.
fn engines_of(now: &str) -> Vec<String> {
    default_of(|here| !here.one && format!("{}/{}", here.law, here.verifier) == now)
}

impl Pages<'_> {
    /// Lists changes from what is done now with several drafts to the best, at each place.
    pub(super) fn changes(&self, one_draft: &[OneDraft]) -> Vec<Change> {
        let mut all = of_one_draft(one_draft);
        for place in self.places().filter(|place| place.drafts > 1) {
            all.extend(NOW.into_iter().filter_map(|now| self.change(place, now)));
        }
        all
    }

    fn change(&self, place: Place, now: Rule) -> Option<Change> {
        let rate = |rule: Rule| self.find(Metric::Acceptance { place, rule });
        let before = rate(now)?;
        let rules: Vec<(Rule, &Tally)> = (self.summary.settings.rules(place.drafts))
            .map(|(rule, _)| rule)
            // A plan is an optimum, which is a ceiling.
            .filter(|rule| *rule != now && rule.1 != VerifierName::OPTIMAL)
            .filter_map(|rule| Some((rule, rate(rule)?)))
            .collect();
        let candidates: Vec<Candidate> = (rules.iter())
            .map(|&(rule, after)| Candidate {
                more: (self.sizes.iter())
                    .map(|&(at, _)| after.sum(at).minus(before.sum(at)).value())
                    .collect(),
                open: self.open(place, [(rule, after), (now, before)]),
                effort: effort(now, rule),
            })
            .collect();
        let sizes: Vec<f64> = self.sizes.iter().map(|&(_, size)| size as f64).collect();
        let floor = Unit::Acceptance.floor(0.0);
        let choice = cross_fitted(&sizes, &candidates, floor)?;
        let (chosen, _) = rules.get(choice.all)?;
        let [from, to] = [now, *chosen].map(rule_name);
        Some(Change {
            temperature: Some(place.temperature.0),
            drafts: Some(place.drafts),
            cost_ratio: None,
            engines: engines_of(&from),
            settings: Vec::new(),
            needs: needs(now, *chosen),
            unit: Unit::Acceptance,
            now: before.estimate(&self.sizes),
            verdict: Verdict::of(&choice.difference, floor),
            difference: choice.difference,
            basis: Basis::CrossFitted,
            from,
            to,
        })
    }

    /// Returns how far full rows may be below and above the sum of differences; nothing of full
    /// rows.
    fn open(
        &self,
        place: Place,
        [(rule, after), (now, before)]: [(Rule, &Tally); 2],
    ) -> Option<[f64; 2]> {
        if after.truncated == 0 && before.truncated == 0 {
            return None;
        }
        let paired = self.find(Metric::Difference {
            place,
            first: rule,
            second: now,
        });
        let (low, high) = match paired {
            Some(both) => (both.lower, both.upper),
            None => (
                after.lower.minus(before.upper),
                after.upper.minus(before.lower),
            ),
        };
        let mut sum = ExactSum::default();
        for &(at, _) in &self.sizes {
            sum.merge(after.sum(at).minus(before.sum(at)));
        }
        Some([sum.minus(low).value(), high.minus(sum).value()])
    }
}

/// One draft: it is sampled, and kept with min(1, p/q), instead of what engines do unless told
/// otherwise. Nothing is chosen.
fn of_one_draft(rows: &[OneDraft]) -> Vec<Change> {
    let law = |from: &str| match from {
        ONE_HOT => SchemeName::TOP,
        _ => SchemeName::WITH_REPLACEMENT,
    };
    let mut all = Vec::new();
    for row in rows.iter().filter(|row| row.temperature > 0.0) {
        for (from, now) in [(ONE_HOT, row.one_hot), (STRICT, row.exact_match)] {
            let paired = row.differences.iter().find_map(|one| {
                match (one.first.as_str(), one.second.as_str()) {
                    (TOKEN, second) if second == from => Some(one.difference),
                    (first, TOKEN) if first == from => Some(one.difference.negated()),
                    _ => None,
                }
            });
            let Some(difference) = paired else { continue };
            let engines = default_of(|here| {
                here.one && here.verifier == STRICT && here.law == law(from).as_str()
            });
            all.push(Change {
                temperature: Some(row.temperature),
                drafts: Some(1),
                cost_ratio: None,
                from: from.to_owned(),
                to: TOKEN.to_owned(),
                settings: settings_of(&engines),
                engines,
                needs: Needs::Setting,
                unit: Unit::Acceptance,
                now,
                difference,
                basis: Basis::Paired,
                verdict: Verdict::of(&difference, Unit::Acceptance.floor(0.0)),
            });
        }
    }
    all
}

impl GapReport {
    /// Lets advice start from an engine, if one is asked for, and says so in the command.
    pub fn assume(&mut self, asked: Option<EngineName>) {
        assume(asked, &mut self.engine, &mut self.command);
    }
}

impl LogComparison {
    /// Lets advice start from an engine, if one is asked for, and says so in the command.
    pub fn assume(&mut self, asked: Option<EngineName>) {
        assume(asked, &mut self.engine, &mut self.command);
    }
}

fn assume(asked: Option<EngineName>, engine: &mut Option<Assumed>, command: &mut String) {
    let Some(name) = asked else { return };
    *engine = Assumed::of(asked, std::iter::empty());
    // Rows in memory have no command.
    if !command.is_empty() {
        command.push_str(&format!(" --engine {}", name.word()));
    }
}
