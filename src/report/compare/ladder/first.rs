//! The lines that a reader of a ladder sees first: where the verifier matters, and where the
//! law of the drafts does.

use super::super::select::temperatures;
use super::rungs::{Ladder, ONE_DRAFT, mean, way};
use crate::gap::ComparedRate;
use crate::page::Fact;
use crate::page::words::{counted, listed, percent, temperature};
use crate::report::advice::Said;
use crate::verifier::VerifierName;

/// The lines, of the ladder's number of drafts, behind what else may be changed and what may not.
pub(super) fn lines(ladder: &Ladder<'_>, said: Option<Said>) -> Vec<Fact> {
    let (others, not_worth) = said.map_or((None, None), |said| (said.others, said.not_worth));
    [
        ("What to change", others),
        ("Possible", possible(ladder)),
        ("Not worth it", not_worth),
        ("One draft", one_draft(ladder)),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some(Fact::new(name, value?)))
    .collect()
}

/// Temperatures at which something is said: the ladder's own, and the lowest if that is another.
fn told(ladder: &Ladder<'_>) -> Vec<f64> {
    let lowest = temperatures(ladder.comparison)
        .into_iter()
        .min_by(f64::total_cmp)
        .filter(|&lowest| lowest != ladder.at);
    std::iter::once(ladder.at).chain(lowest).collect()
}

/// The worst draft and the best.
fn ends(ladder: &Ladder<'_>) -> Option<[usize; 2]> {
    Some([*ladder.order.first()?, *ladder.order.last()?])
}

fn points(value: f64) -> String {
    format!("{:.1}", 100.0 * value).replace('-', "−")
}

fn one_draft(ladder: &Ladder<'_>) -> Option<String> {
    let [worst, best] = ends(ladder)?;
    let of = |at: f64, number: usize, log: usize| {
        mean(way(ladder.comparison, at, *ONE_DRAFT.get(number)?)?, log)
    };
    let both = |number: usize| Some([of(ladder.at, number, worst)?, of(ladder.at, number, best)?]);
    let ([low, high], [one_low, one_high]) = (both(1)?, both(0)?);
    Some(format!(
        "sampled, it is accepted {} of the time on the worst draft ({}) and {} on the best ({}) at T = {}; \
         its likeliest token instead {} and {}.",
        percent(low),
        ladder.name(worst),
        percent(high),
        ladder.name(best),
        temperature(ladder.at),
        percent(one_low),
        percent(one_high)
    ))
}

/// Whether it is a rule of engines and papers, not a plan that is solved.
fn is_rule(rate: &ComparedRate) -> bool {
    let name = rate.verifier.as_deref();
    name.is_some() && name != Some(VerifierName::OPTIMAL.as_str())
}

/// The law that usual drafts have, its optimum first, and then its verifiers.
fn usual<'a>(ladder: &Ladder<'a>, at: f64) -> Vec<&'a ComparedRate> {
    let rates = ladder.rates(at, ladder.n);
    let law = rates.first().map(|rate| rate.scheme.clone());
    let is_of = |rate: &&ComparedRate| Some(&rate.scheme) == law.as_ref();
    rates.into_iter().filter(is_of).collect()
}

/// What a verifier of usual drafts leaves, on a draft.
fn left(optimum: &ComparedRate, rule: &ComparedRate, log: usize) -> Option<f64> {
    Some(mean(optimum, log)? - mean(rule, log)?)
}

/// What rules leave of what is possible, on the worst draft and on the best.
fn possible(ladder: &Ladder<'_>) -> Option<String> {
    let ends = ends(ladder)?;
    let mut said = Vec::new();
    for at in told(ladder) {
        let rates = usual(ladder, at);
        let (optimum, rules) = rates.split_first()?;
        let of_rules: Vec<String> = (rules.iter().filter(|rule| is_rule(rule)))
            .filter_map(|rule| {
                let [worst, best] = ends.map(|log| left(optimum, rule, log));
                let name = rule.verifier.as_deref()?;
                Some(format!("{name} {} and {}", points(worst?), points(best?)))
            })
            .collect();
        let [worst, best] = ends.map(|log| mean(optimum, log));
        if !of_rules.is_empty() {
            said.push(format!(
                "at T = {} of the {} that are possible on the worst draft and the {} on the best, {}",
                temperature(at),
                percent(worst?),
                percent(best?),
                listed(&of_rules)
            ));
        }
    }
    (!said.is_empty()).then(|| {
        format!(
            "points that rules leave with {}: {}.",
            counted(ladder.n, "draft"),
            said.join("; ")
        )
    })
}
