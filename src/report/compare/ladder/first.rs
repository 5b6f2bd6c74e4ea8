//! The lines that a reader of a ladder sees first: where the verifier matters, and where the
//! law of the drafts does.

use super::super::select::temperatures;
use super::rungs::{Ladder, ONE_DRAFT, estimate, mean, rates_of, way};
use crate::gap::ComparedRate;
use crate::page::Fact;
use crate::page::words::{counted, listed, percent, temperature};
use crate::report::certainty::larger;
use crate::scheme::SchemeName;
use crate::verifier::VerifierName;
use std::cmp::Ordering;

/// The lines, of the ladder's number of drafts.
pub(super) fn lines(ladder: &Ladder<'_>) -> Vec<Fact> {
    [
        ("One draft", one_draft(ladder)),
        ("Verifier", verifier(ladder)),
        ("Draft law", draft_law(ladder)),
        ("What to change", what_to_change(ladder)),
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
    let mut out = format!(
        "sampled, it is accepted {} of the time on the worst draft ({}) and {} on the best ({}) at T = {}; \
         its likeliest token instead {} and {}.",
        percent(low),
        ladder.name(worst),
        percent(high),
        ladder.name(best),
        temperature(ladder.at),
        percent(one_low),
        percent(one_high)
    );
    // On how many drafts the one or the other is ahead by more than their intervals.
    let ahead = |wanted: Ordering| {
        let of = |at: f64, log: usize| {
            let of =
                |number: usize| estimate(way(ladder.comparison, at, *ONE_DRAFT.get(number)?)?, log);
            larger(&of(1)?.estimate, &of(0)?.estimate)
        };
        let said = temperatures(ladder.comparison)
            .into_iter()
            .filter_map(|at| {
                let drafts = ladder.order.iter();
                let drafts = drafts.filter(|&&log| of(at, log) == Some(wanted)).count();
                (drafts > 0).then(|| format!("{drafts} at T = {}", temperature(at)))
            });
        listed(&said.collect::<Vec<_>>())
    };
    for (who, wanted) in [
        ("Sampling", Ordering::Greater),
        ("The likeliest token", Ordering::Less),
    ] {
        let drafts = ahead(wanted);
        if !drafts.is_empty() {
            out.push_str(&format!(
                " {who} is ahead by more than the intervals of both on {drafts} of {}.",
                counted(ladder.order.len(), "draft")
            ));
        }
    }
    Some(out)
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

fn verifier(ladder: &Ladder<'_>) -> Option<String> {
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

/// The optima of other laws than the usual one, and that one's first.
fn laws<'a>(ladder: &Ladder<'a>, at: f64) -> Option<(&'a ComparedRate, Vec<&'a ComparedRate>)> {
    let rates = ladder.rates(at, ladder.n).into_iter();
    let mut optima = rates.filter(|rate| rate.verifier.is_none());
    Some((optima.next()?, optima.collect()))
}

fn draft_law(ladder: &Ladder<'_>) -> Option<String> {
    let ends = ends(ladder)?;
    let mut said = Vec::new();
    for at in told(ladder) {
        let (usual, others) = laws(ladder, at)?;
        let of_laws: Vec<String> = (others.iter())
            .filter_map(|other| {
                let [worst, best] = ends.map(|log| left(other, usual, log));
                let law = other.scheme.as_deref()?;
                Some(format!("{law} {} and {}", points(worst?), points(best?)))
            })
            .collect();
        if !of_laws.is_empty() {
            said.push(format!("at T = {} {}", temperature(at), listed(&of_laws)));
        }
    }
    let law = laws(ladder, ladder.at)?.0.scheme.as_deref()?;
    (!said.is_empty()).then(|| {
        format!(
            "points by which more is possible than {law}, on the worst draft and the best: {}.",
            said.join("; ")
        )
    })
}

/// What every other rule accepts beyond the usual one, from the draft where it is least to the
/// one where it is most.
fn what_to_change(ladder: &Ladder<'_>) -> Option<String> {
    let mut said = Vec::new();
    let mut now = None;
    for at in told(ladder) {
        let rates = usual(ladder, at);
        let rule = *rates.iter().find(|rate| is_rule(rate))?;
        now = Some(name(rule));
        let all = rates_of(ladder.comparison, at, ladder.n);
        let others: Vec<String> = all
            .filter(|rate| name(rate) != name(rule) && is_offered(rate))
            .filter_map(|rate| {
                let gains = ladder.order.iter().map(|&log| left(rate, rule, log));
                let gains: Vec<f64> = gains.collect::<Option<_>>()?;
                let least = gains.iter().copied().fold(f64::INFINITY, f64::min);
                let most = gains.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let ends = [least, most].map(|gain| {
                    let sign = if gain > 0.0 { "+" } else { "" };
                    format!("{sign}{}", points(gain))
                });
                Some(format!("{} {} to {}", name(rate), ends[0], ends[1]))
            })
            .collect();
        if !others.is_empty() {
            said.push(format!("at T = {} {}", temperature(at), listed(&others)));
        }
    }
    (!said.is_empty()).then(|| {
        format!(
            "points more than {} at the same positions, from the draft with least to that with most, \
             without intervals: {}.",
            now.unwrap_or_default(),
            said.join("; ")
        )
    })
}

/// The change that gives most on the draft where it gives least, if it is more on all.
pub(super) fn verdict(ladder: &Ladder<'_>) -> Option<String> {
    let rates = usual(ladder, ladder.at);
    let rule = *rates.iter().find(|rate| is_rule(rate))?;
    let others = rates_of(ladder.comparison, ladder.at, ladder.n);
    let gains = others.filter(|rate| name(rate) != name(rule) && is_offered(rate));
    let gains = gains.filter_map(|rate| {
        let gains = ladder.order.iter().map(|&log| left(rate, rule, log));
        let gains: Vec<f64> = gains.collect::<Option<_>>()?;
        let least = gains.iter().copied().reduce(f64::min)?;
        let most = gains.iter().copied().reduce(f64::max)?;
        (least > 0.0).then_some((rate, least, most))
    });
    let (rate, least, most) = gains.max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(format!(
        "{} accepts {} to {} points more than {} on each of {}, with {} at T = {}: means of the same \
         positions, without intervals.",
        name(rate),
        points(least),
        points(most),
        name(rule),
        counted(ladder.order.len(), "draft"),
        counted(ladder.n, "token"),
        temperature(ladder.at)
    ))
}

/// `rrs-wo (without-replacement)`, or one word where both are the same.
fn name(rate: &ComparedRate) -> String {
    let rule = rate.verifier.as_deref().unwrap_or_default();
    match rate.scheme.as_deref() {
        Some(law) if law != rule => format!("{rule} ({law})"),
        _ => rule.to_owned(),
    }
}

/// Whether engines can be told to do it: a rule that looks at its drafts, or the target's own
/// draw beside the likeliest tokens, for which no rule does more.
fn is_offered(rate: &ComparedRate) -> bool {
    let is_naive = rate.verifier.as_deref() == Some(VerifierName::EXACT_MATCH.as_str());
    let is_top = rate.scheme.as_deref() == Some(SchemeName::TOP.as_str());
    is_rule(rate) && (!is_naive || is_top)
}
