//! The numbers that are computed at every position, in one fixed order.

use super::Settings;
use crate::scheme::SchemeName;
use crate::verifier::VerifierName;

/// A scheme and a verifier that is lossless under it.
pub(super) const VERIFIERS: [(SchemeName, VerifierName); 9] = [
    (SchemeName::WithReplacement, VerifierName::Rrs),
    (SchemeName::WithReplacement, VerifierName::KSeq),
    (SchemeName::WithReplacement, VerifierName::Optimal),
    (SchemeName::WithReplacement, VerifierName::Naive),
    (SchemeName::WithoutReplacement, VerifierName::RrsWo),
    (SchemeName::WithoutReplacement, VerifierName::Optimal),
    (SchemeName::WithoutReplacement, VerifierName::Naive),
    (SchemeName::Greedy, VerifierName::Greedy),
    (SchemeName::Hub, VerifierName::SpecHub),
];

/// Schemes with an optimum, in the order of reports.
pub(super) const SCHEMES: [SchemeName; 5] = [
    SchemeName::WithReplacement,
    SchemeName::WithoutReplacement,
    SchemeName::DistinctConditioned,
    SchemeName::Greedy,
    SchemeName::Hub,
];

/// Pairs whose acceptance is compared at the same positions.
const PAIRS: [(Rule, Rule); 6] = [
    (K_SEQ, RRS),
    (RRS_WO, RRS),
    (RRS_WO, K_SEQ),
    (GREEDY, K_SEQ),
    (GREEDY, RRS_WO),
    (SPECHUB, RRS_WO),
];

type Rule = (SchemeName, VerifierName);
const RRS: Rule = (SchemeName::WithReplacement, VerifierName::Rrs);
const K_SEQ: Rule = (SchemeName::WithReplacement, VerifierName::KSeq);
const RRS_WO: Rule = (SchemeName::WithoutReplacement, VerifierName::RrsWo);
const GREEDY: Rule = (SchemeName::Greedy, VerifierName::Greedy);
const SPECHUB: Rule = (SchemeName::Hub, VerifierName::SpecHub);

/// Optimal plans.
pub(super) const PLANS: [Rule; 2] = [
    (SchemeName::WithReplacement, VerifierName::Optimal),
    SEQUENTIAL_PLAN,
];
pub(super) const SEQUENTIAL_PLAN: Rule = (SchemeName::WithoutReplacement, VerifierName::Optimal);

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

/// Whether a scheme has n drafts.
pub(super) fn fits(scheme: SchemeName, drafts: usize) -> bool {
    scheme != SchemeName::Hub || drafts == 2
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
            for rule in settings.rules(drafts) {
                all.push(Metric::Acceptance { place, rule });
                all.push(Metric::Gap { place, rule });
            }
            for (first, second) in PAIRS {
                if settings.has(drafts, first) && settings.has(drafts, second) {
                    all.push(Metric::Difference {
                        place,
                        first,
                        second,
                    });
                }
            }
            let known = |scheme| settings.schemes.contains(&scheme);
            if known(SchemeName::DistinctConditioned) && known(SchemeName::WithoutReplacement) {
                all.push(Metric::FormulaError { place });
            }
            for rule in PLANS.into_iter().filter(|&rule| settings.has(drafts, rule)) {
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
