//! What a number of a position is about: its key from the position to the report.

use crate::scheme::SchemeName;
use crate::verifier::VerifierName;
use std::cmp::Ordering;

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
pub(super) const PAIRS: [(Rule, Rule); 6] = [
    (K_SEQ, RRS),
    (RRS_WO, RRS),
    (RRS_WO, K_SEQ),
    (GREEDY, K_SEQ),
    (GREEDY, RRS_WO),
    (SPECHUB, RRS_WO),
];

pub(super) type Rule = (SchemeName, VerifierName);
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

/// A temperature as a part of keys: finite and above 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Temperature(pub f64);

impl Ord for Temperature {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Temperature {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Temperature {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Temperature {}

/// A temperature and n.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub temperature: Temperature,
    pub drafts: usize,
}

/// One number a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Metric {
    /// Sum of min(p, q).
    Overlap { temperature: Temperature },
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
}

/// Whether a scheme has n drafts.
pub(super) fn fits(scheme: SchemeName, drafts: usize) -> bool {
    scheme != SchemeName::Hub || drafts == 2
}
