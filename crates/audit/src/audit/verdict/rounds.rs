//! The verdict on random numbers that come again in every round of a text.

use crate::audit::data::{PartReport, Settings, Suspect};
use crate::audit::evidence::again::{Drawn, KINDS, LOGS, Rounds, capitals};
use crate::audit::evidence::book::Tally;
use crate::audit::evidence::requests::Requests;
use crate::audit::outcome::Outcome;
use specgap_base::sorted::Map;
use std::f64::consts::LN_10;

/// Its name in reports.
pub(crate) const FRESH_NUMBERS: &str = "fresh-numbers";

/// Evidence below this is not listed.
const LISTED: f64 = 2.0;

/// The verdict where other parts are refuted: bets on numbers take the claimed laws for granted, so
/// that a law which is refuted by more explains what they won.
pub(crate) fn given_the_laws(fresh: PartReport, parts: &[PartReport]) -> PartReport {
    let refuted = |one: &&PartReport| one.verdict == Outcome::Refuted;
    let most = (parts.iter().filter(refuted))
        .map(|one| one.log10_e_value)
        .fold(f64::NEG_INFINITY, f64::max);
    if fresh.verdict != Outcome::Refuted || fresh.log10_e_value > most {
        return fresh;
    }
    PartReport {
        verdict: Outcome::NotTestable,
        suspect: None,
        evidence: Vec::new(),
        reason: Some(
            "it takes the claimed laws for granted, and they are refuted by more than this shows"
                .to_owned(),
        ),
        ..fresh
    }
}

/// The verdict on rounds of one text that draw with the same numbers. `drawn` is in the order of
/// positions.
pub(crate) fn fresh_numbers(
    requests: &Requests,
    drawn: &[(usize, Drawn)],
    settings: &Settings,
) -> PartReport {
    let mut texts = Map::<usize, (usize, Rounds)>::new();
    for (position, told) in drawn {
        let text = requests.text.get(*position).copied().unwrap_or(0);
        let unit = requests.unit_at(*position);
        let (_, rounds) = texts.at_or(text, || (unit, Rounds::new(settings.tolerance)));
        rounds.go_on(told);
    }
    let mut units = Map::<usize, Tally>::new();
    for (unit, rounds) in texts.into_values() {
        units.at_or(unit, || Tally::of(LOGS)).add(&rounds.tally);
    }
    let settled = requests.settle(LOGS, None, &units);
    let (log, kinds) = capitals(&settled.total);
    let steps = settled.total.steps[0];
    let refuted = log >= -settings.alpha.ln();
    let verdict = match (refuted, steps) {
        (true, _) => Outcome::Refuted,
        (false, 0) => Outcome::NotTestable,
        (false, _) => Outcome::Consistent,
    };
    let mut evidence: Vec<Suspect> = (KINDS.iter().zip(kinds))
        .filter(|(_, log)| log / LN_10 >= LISTED)
        .map(|(kind, log)| Suspect {
            name: "seed-reset-each-round".to_owned(),
            words: format!("rounds of one text draw with the same random numbers, by {kind}"),
            cure: "seed the generator once a request, and not once a round (claim \
                   seed-reset-each-round of `specgap check`)"
                .to_owned(),
            log10_e_value: log / LN_10,
            is_bug: true,
        })
        .collect();
    evidence.sort_by(|a, b| b.log10_e_value.total_cmp(&a.log10_e_value));
    PartReport {
        part: FRESH_NUMBERS.to_owned(),
        verdict,
        steps,
        e_value: log.min(300.0 * LN_10).exp(),
        log10_e_value: log / LN_10,
        smallest_tv_excluded: None,
        suspect: evidence
            .first()
            .filter(|_| refuted)
            .map(|one| one.name.clone()),
        evidence,
        groups: Vec::new(),
        reason: (verdict == Outcome::NotTestable)
            .then(|| "no text of the log has two rounds that could be compared".to_owned()),
    }
}
