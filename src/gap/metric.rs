//! The numbers that are computed at every position, in one fixed order.

use super::Settings;
use crate::scheme::SchemeName;
use crate::verifier::{RowRule, VerifierName};

/// A scheme and a verifier that is lossless under it.
pub(super) type Rule = (SchemeName, VerifierName);

/// Schemes with an optimum on a row, in the order of reports.
pub(super) fn schemes() -> impl Iterator<Item = SchemeName> {
    SchemeName::ALL
        .into_iter()
        .filter(|scheme| scheme.entry().on_row.is_some())
}

/// Every verifier with a rate on a row, scheme by scheme, in the order of reports.
pub(super) fn rules() -> impl Iterator<Item = (Rule, RowRule)> {
    schemes().flat_map(|scheme| {
        VerifierName::ALL
            .into_iter()
            .filter_map(move |name| Some(((scheme, name), name.on_row(scheme)?)))
    })
}

/// Pairs whose acceptance is compared at the same positions: each rule with those that
/// its entry names, under the same scheme where that is possible, else under the first.
fn pairs() -> impl Iterator<Item = (Rule, Rule)> {
    rules().flat_map(|(first, _)| {
        first
            .1
            .entry()
            .compared_with
            .iter()
            .filter_map(move |&name| {
                let same = rules().find(|&(rule, _)| rule == (first.0, name));
                let other = same.or_else(|| rules().find(|&(rule, _)| rule.1 == name));
                other.map(|(second, _)| (first, second))
            })
    })
}

/// Optimal plans.
pub(super) fn plans() -> impl Iterator<Item = Rule> {
    rules()
        .map(|(rule, _)| rule)
        .filter(|rule| rule.1 == VerifierName::OPTIMAL)
}

/// A place in the list of settings' temperatures, and n.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub temperature: usize,
    pub drafts: usize,
}

/// One number a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Metric {
    /// Sum of min(p, q).
    Overlap { temperature: usize },
    /// alpha*.
    Optimum { place: Place, scheme: SchemeName },
    /// Membership acceptance.
    Acceptance { place: Place, rule: Rule },
    /// alpha* minus it.
    Gap { place: Place, rule: Rule },
    /// The first rule's acceptance minus the second's.
    Difference {
        place: Place,
        first: Rule,
        second: Rule,
    },
    /// The published optimum without replacement minus the sequential law's.
    FormulaError { place: Place },
    /// Sum of |output law - p| of the optimal plan.
    PlanError { place: Place, rule: Rule },
    /// Steps of its solve.
    PlanSteps { place: Place, rule: Rule },
    /// Seconds of its solve.
    PlanSeconds { place: Place, rule: Rule },
    /// Target mass of tokens that the row does not list.
    TargetRest { column: usize },
    /// Draft mass of them.
    DraftRest { column: usize },
}

/// Every number of a position, in the order in which they are computed.
pub(super) fn metrics(settings: &Settings, rest_columns: usize) -> Vec<Metric> {
    let mut all = Vec::new();
    for column in 0..rest_columns {
        all.push(Metric::TargetRest { column });
        all.push(Metric::DraftRest { column });
    }
    for temperature in 0..settings.temperatures.len() {
        all.push(Metric::Overlap { temperature });
        for &drafts in &settings.drafts {
            let place = Place {
                temperature,
                drafts,
            };
            for scheme in settings.optima(drafts) {
                all.push(Metric::Optimum { place, scheme });
            }
            for (rule, _) in settings.rules(drafts) {
                all.push(Metric::Acceptance { place, rule });
                all.push(Metric::Gap { place, rule });
            }
            for (first, second) in pairs() {
                if settings.has(drafts, first) && settings.has(drafts, second) {
                    all.push(Metric::Difference {
                        place,
                        first,
                        second,
                    });
                }
            }
            let known = |scheme| settings.schemes.contains(&scheme);
            if known(SchemeName::DISTINCT_CONDITIONED) && known(SchemeName::WITHOUT_REPLACEMENT) {
                all.push(Metric::FormulaError { place });
            }
            for rule in plans().filter(|&rule| settings.has(drafts, rule)) {
                all.push(Metric::PlanError { place, rule });
                all.push(Metric::PlanSteps { place, rule });
                if settings.timing {
                    all.push(Metric::PlanSeconds { place, rule });
                }
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_comparisons_come_in_their_order() {
        let name = |(scheme, rule): Rule| format!("{scheme}/{rule}");
        let all: Vec<[String; 2]> = pairs().map(|(a, b)| [name(a), name(b)]).collect();
        let expected = [
            ["with-replacement/k-seq", "with-replacement/rrs"],
            ["without-replacement/rrs-wo", "with-replacement/rrs"],
            ["without-replacement/rrs-wo", "with-replacement/k-seq"],
            ["greedy/greedy", "with-replacement/k-seq"],
            ["greedy/greedy", "without-replacement/rrs-wo"],
            ["hub/spechub", "without-replacement/rrs-wo"],
        ];
        let places: Vec<usize> = expected
            .iter()
            .map(|pair| all.iter().position(|one| one == pair).unwrap())
            .collect();
        assert!(places.is_sorted(), "{all:?}");
    }

    #[test]
    fn schemes_of_a_report_have_colours_of_their_own() {
        let hues: Vec<usize> = schemes().map(|scheme| scheme.entry().hue).collect();
        let mut distinct = hues.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), hues.len(), "{hues:?}");
    }
}
