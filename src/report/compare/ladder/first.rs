//! The lines that a reader of a ladder sees first: where the verifier matters, and where the
//! law of the drafts does.

use super::super::select::temperatures;
use super::rungs::{Ladder, ONE_DRAFT, mean, way};
use crate::gap::ComparedRate;
use crate::report::page::Fact;
use crate::report::text::{counted, listed, percent, temperature};
use crate::verifier::VerifierName;

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
    // Where one-hot drafts are ahead.
    let ahead: Vec<String> = temperatures(ladder.comparison)
        .into_iter()
        .filter_map(|at| {
            let is_ahead = |&&log: &&usize| of(at, 0, log) > of(at, 1, log);
            let drafts = ladder.order.iter().filter(is_ahead).count();
            (drafts > 0).then(|| format!("{} at T = {}", counted(drafts, "draft"), temperature(at)))
        })
        .collect();
    out.push_str(&if ahead.is_empty() {
        " Sampling is ahead on every draft, at every temperature.".to_owned()
    } else {
        format!(" The likeliest token is ahead on {}.", listed(&ahead))
    });
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

/// On how many drafts another law makes more possible than the usual rule leaves.
fn what_to_change(ladder: &Ladder<'_>) -> Option<String> {
    let mut said = Vec::new();
    let mut rule_name = None;
    for at in temperatures(ladder.comparison) {
        let rates = usual(ladder, at);
        let (optimum, rules) = rates.split_first()?;
        let rule = rules.iter().find(|rule| is_rule(rule))?;
        rule_name = rule.verifier.as_deref();
        let (_, others) = laws(ladder, at).filter(|(_, others)| !others.is_empty())?;
        let law_wins = |&&log: &&usize| {
            let gains = others.iter().filter_map(|other| left(other, optimum, log));
            let gain = gains.fold(f64::NEG_INFINITY, f64::max);
            left(optimum, rule, log).is_some_and(|left| gain > left)
        };
        let drafts = ladder.order.iter().filter(law_wins).count();
        said.push(format!("{drafts} at T = {}", temperature(at)));
    }
    Some(format!(
        "of {}, another draft law makes more possible than {} leaves on {}. On the others a better \
         verifier is worth more.",
        counted(ladder.order.len(), "draft"),
        rule_name?,
        listed(&said)
    ))
}
