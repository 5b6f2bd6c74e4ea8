//! The draft laws that level rules are for.

use crate::problem::Problem;
use crate::scheme::{SchemeName, Straddle, Stratified};

/// The draft laws that levels are for.
pub(super) const LAWS: &[SchemeName] = &[
    SchemeName::WITH_REPLACEMENT,
    SchemeName::PRODUCT,
    SchemeName::STRATIFIED,
    SchemeName::STRATIFIED_INDEPENDENT,
];

/// Those of strata.
pub(super) const OF_STRATA: &[SchemeName] =
    &[SchemeName::STRATIFIED, SchemeName::STRATIFIED_INDEPENDENT];

/// Returns what becomes of tokens across cuts under a stratified law.
pub(in crate::verifier) fn straddle_of(scheme: SchemeName) -> Option<Straddle> {
    if scheme == SchemeName::STRATIFIED {
        Some(Straddle::Once)
    } else {
        (scheme == SchemeName::STRATIFIED_INDEPENDENT).then_some(Straddle::Independent)
    }
}

/// The law of a problem's drafts, if they are stratified.
pub(in crate::verifier) fn stratified(problem: &Problem) -> Option<Stratified> {
    let scheme = problem.scheme();
    let straddle = straddle_of(scheme.name())?;
    let draft = scheme.draft()?.clone();
    Some(Stratified::new(draft, problem.drafts(), straddle))
}
