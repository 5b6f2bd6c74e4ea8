//! The methods that need no linear program, each with the reason why it does not apply.

use super::Outcome;
use super::enclosure::enclose;
use super::method::{LONGEST_FLOW_OF_STRATA, Limits, Method, MethodRun, NARROW, count};
use specgap_core::optimum::{
    Optimum, ScaledInstance, closed_form, enumeration, ratio_scan, submodular, thresholds,
};
use specgap_core::problem::Problem;
use specgap_core::scheme::{SchemeName, Scores};
use specgap_number::known::Known;
use std::time::Instant;

/// The level rule's answer for strata whose flow would be long.
pub(super) fn level_first(problem: &Problem, limits: &Limits) -> Option<MethodRun> {
    (is_stratified(problem) && set_entries(problem) > limits.flow_entries_beside_level)
        .then(|| level(problem))
}

/// Alpha\* of strata by the level rule, where a flow would be long and the rule tells it as narrowly, or no
/// flow would end.
pub(super) fn level_instead(problem: &Problem, limits: &Limits) -> Option<Known> {
    let rate = level_first(problem, limits)?.rate()?.clone();
    let no_flow_ends = set_entries(problem) > LONGEST_FLOW_OF_STRATA;
    (rate.width() <= NARROW || no_flow_ends).then_some(rate)
}

pub(super) fn is_stratified(problem: &Problem) -> bool {
    [SchemeName::STRATIFIED, SchemeName::STRATIFIED_INDEPENDENT].contains(&problem.scheme().name())
}

/// Entries of the merged sets.
fn set_entries(problem: &Problem) -> f64 {
    problem.scheme().set_count() * problem.drafts() as f64
}

/// Says why a problem is too large for the flow, if it is, or for one beside another method that tells
/// alpha\* as narrowly.
pub(super) fn flow_obstacle<'a>(
    problem: &Problem,
    limits: &Limits,
    mut others: impl Iterator<Item = &'a MethodRun>,
) -> Option<String> {
    let scheme = problem.scheme();
    let entries = set_entries(problem);
    let operations = scheme.set_law_cost().max(match scheme.tuple_count() {
        few if few <= limits.coupling_entries => few,
        _ => scheme.set_check_cost(),
    });
    if entries > limits.flow_entries {
        return Some(format!(
            "{} set entries exceed the limit of {}",
            count(entries),
            limits.flow_entries
        ));
    }
    if operations > limits.law_operations {
        return Some(format!(
            "deriving and checking the law of the sets takes {operations:.1e} operations; the \
             limit is {:.1e}",
            limits.law_operations
        ));
    }
    let limit = match is_stratified(problem) {
        true => limits.flow_entries_beside_level,
        false => limits.flow_entries_beside_theorem,
    };
    if entries <= limit {
        return None;
    }
    others.find_map(|run| {
        let width = run.rate()?.width();
        (width <= NARROW).then(|| {
            format!(
                "{} set entries exceed the limit of {limit} where {} encloses alpha* as narrowly \
                 as {NARROW:e}; here its width is {width:.1e}",
                count(entries),
                run.name()
            )
        })
    })
}

/// A method's run, or why it does not apply.
fn timed(method: Method, run: impl FnOnce() -> Result<Optimum, String>) -> MethodRun {
    let started = Instant::now();
    match run() {
        Ok(optimum) => MethodRun::of(method, optimum, started.elapsed().as_secs_f64()),
        Err(reason) => MethodRun::skipped(method, None, reason),
    }
}

pub(super) fn enumerate(problem: &Problem, instance: Option<&ScaledInstance>) -> MethodRun {
    let (limit, numbers) = match instance {
        Some(ScaledInstance::Big(_)) => (
            enumeration::LARGEST_BIG_VOCAB,
            "tokens when exact masses exceed 126 bits",
        ),
        _ => (enumeration::LARGEST_NATIVE_VOCAB, "tokens"),
    };
    let small = instance.filter(|_| problem.vocab() <= limit);
    timed(Method::SubsetEnumeration, || match small {
        Some(ScaledInstance::Native(instance)) => Ok(enumeration::solve(instance)),
        Some(ScaledInstance::Big(instance)) => Ok(enumeration::solve(instance)),
        None => Err(format!(
            "{} tokens; 2^V subsets are tried up to {limit} {numbers}",
            problem.vocab()
        )),
    })
}

/// Says why no one order of the tokens is known to find the optimum of a composed law.
fn several_scores(scores: &Scores<'_>) -> String {
    let count = scores.distinct.len();
    format!(
        "the parts are sorted by {count} different scores (models, truncations, chances or lists of \
         tokens that are in some draws); closure holds for parts of one score alone \
         (docs/theory/laws.md), and {}",
        if count == 2 {
            "linear-thresholds or submodular covers two"
        } else {
            "submodular covers these"
        }
    )
}

pub(super) fn scan(problem: &Problem) -> MethodRun {
    let skip = |reason: &str| MethodRun::skipped(Method::RatioScan, None, reason);
    if !problem.scheme().has_sort_theorem() {
        if let Some(scores) = problem.scheme().scores() {
            return skip(&several_scores(&scores));
        }
        return skip(if problem.scheme().fixed_drafts().is_some() {
            "the deterministic tokens break the order by q/p; closed-form covers this scheme"
        } else if problem.scheme().draft().is_some() {
            "no theorem says that sorting by q/p finds the optimum of this scheme; submodular \
             covers it"
        } else {
            "there is no single q to sort by; submodular covers this scheme"
        });
    }
    timed(Method::RatioScan, || {
        let none = || "there is no single q to sort by".to_owned();
        ratio_scan::solve(problem).ok_or_else(none)
    })
}

pub(super) fn two_scores(problem: &Problem) -> MethodRun {
    timed(Method::LinearThresholds, || {
        thresholds::solve(problem).map_err(|reason| reason.to_string())
    })
}

pub(super) fn formula(problem: &Problem) -> MethodRun {
    timed(Method::ClosedForm, || {
        let none = "no formula is known for this scheme, n and pair of distributions";
        closed_form::solve(problem).ok_or_else(|| none.to_owned())
    })
}

/// Alpha\* of strata between what the level rule accepts and what its set proves.
pub(super) fn level(problem: &Problem) -> MethodRun {
    timed(Method::LevelRule, || {
        let found = enclose(problem).map_err(|error| error.to_string())?;
        Ok(Optimum {
            rate: found.rate(),
            subset: Some(found.subset),
            note: None,
        })
    })
}

pub(super) fn minimise(problem: &Problem, limits: &Limits) -> MethodRun {
    let scheme = problem.scheme();
    let needed = !scheme.has_sort_theorem() && scheme.fixed_drafts().is_none();
    let limit = match needed {
        true => submodular::LARGEST_VOCAB,
        false => limits.submodular_vocab,
    };
    let vocab = problem.vocab();
    if vocab > limit {
        let reason = format!("{vocab} tokens; tried up to {limit} for this scheme");
        return MethodRun::skipped(Method::Submodular, None, reason);
    }
    let started = Instant::now();
    let failed = || Outcome::Failed("the law's numbers leave the range of f64".to_owned());
    let found = submodular::solve(problem).map(|optimum| Outcome::Done(optimum.into()));
    MethodRun {
        method: Method::Submodular,
        backend: None,
        outcome: found.unwrap_or_else(failed),
        seconds: started.elapsed().as_secs_f64(),
    }
}
