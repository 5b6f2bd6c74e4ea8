//! Bounds and verifiers of one K, and the numbers that text and draft paths both tell.

use super::along::{AlongTexts, VerifierAlong};
use super::contexts::ToldByPaths;
use super::data::{AtDrafts, PathVerifier, ToldTwice, UpperBound};
use super::means::{ByPrompt, Mean};
use super::possible::{FittedBounds, by_paths, lower_at};
use specgap_statistics::Estimate;

/// Upper and lower bound and verifiers of K paths.
///
/// Draft paths and text are two samples. What the paths tell of is how far the upper bound lies
/// above the lower one, which varies little; the lower bound itself follows from the text, from
/// which the verifiers follow too. The sum has the same mean as the paths' own upper bound.
pub(super) fn at_drafts(of: &AlongTexts, fitted: &FittedBounds) -> AtDrafts {
    let drafts = of.drafts;
    let below = |sum: &ByPrompt| -> Option<Estimate> {
        let (first, sum) = (fitted.of(drafts).next()?, sum.mean());
        Some(fitted.least(first, |bound| bound.minus(&sum)))
    };
    let verifier = |one: &VerifierAlong| {
        let entry = one.rule.entry();
        PathVerifier {
            verifier: one.rule.to_string(),
            uses: if one.rule.is_chain() { 1 } else { drafts },
            expected_accepted_length: one.accepted.mean().estimate(),
            below_upper_bound: below(&one.accepted),
            tokens_per_call: (!entry.changes_target).then(|| one.rounds.mean().estimate()),
        }
    };
    AtDrafts {
        drafts,
        upper_bounds: (fitted.of(drafts))
            .map(|one| UpperBound {
                form: one.form.name().to_owned(),
                expected_accepted_length: fitted.least(one, Mean::clone),
                limits: one.limits.clone(),
            })
            .collect(),
        lower_bound: of.lower.mean().estimate(),
        verifiers: of.verifiers.iter().map(verifier).collect(),
    }
}

/// Single-draft verifiers, and the lower bound of every K, by text and by paths.
pub(super) fn told_twice(
    told: &[ToldByPaths],
    all: &[AlongTexts],
    clusters: usize,
) -> Vec<ToldTwice> {
    if told.is_empty() {
        return Vec::new();
    }
    let twice = |what: &str, drafts: usize, text: &ByPrompt, of: &dyn Fn(&ToldByPaths) -> f64| {
        let from_paths = by_paths(told, clusters, of);
        let from_text = text.mean();
        ToldTwice {
            what: what.to_owned(),
            drafts,
            from_text: from_text.estimate(),
            from_paths: from_paths.estimate(),
            difference: from_paths.minus(&from_text).estimate(),
        }
    };
    let chains = all.iter().take(1).flat_map(|one| &one.verifiers);
    let single = chains.filter(|one| one.rule.is_chain()).enumerate();
    let single = single.map(|(place, one)| {
        twice(one.rule.as_str(), 1, &one.accepted, &|told| {
            told.single.get(place).copied().unwrap_or(0.0)
        })
    });
    let lower = (all.iter())
        .enumerate()
        .map(|(at, one)| twice("lower bound", one.drafts, &one.lower, &lower_at(at)));
    single.chain(lower).collect()
}
