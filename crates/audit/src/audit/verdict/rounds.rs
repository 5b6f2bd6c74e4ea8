//! The verdict on random numbers that come again in every round of a text.

use crate::audit::data::{PartReport, Settings, Suspect};
use crate::audit::evidence::again::{Drawn, KINDS, LOGS, Rounds, capitals};
use crate::audit::evidence::book::Tally;
use crate::audit::evidence::requests::Requests;
use crate::audit::outcome::Outcome;
use crate::audit::verdict::capital::Capital;
use specgap_base::sorted::Map;
use std::f64::consts::LN_10;

/// Its name in reports.
pub(crate) const FRESH_NUMBERS: &str = "fresh-numbers";

/// The verdict where other parts are refuted: bets on numbers take the claimed laws for granted, so
/// that a law which is refuted by more explains what they won.
pub(crate) fn given_the_laws(fresh: PartReport, parts: &[PartReport]) -> PartReport {
    let most = (parts.iter().filter(|one| one.is_refuted()))
        .map(|one| one.log10_e_value)
        .fold(f64::NEG_INFINITY, f64::max);
    if !fresh.is_refuted() || fresh.log10_e_value > most {
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
    let evidence = KINDS.iter().zip(kinds).map(|(kind, log)| Suspect {
        name: "seed-reset-each-round".to_owned(),
        words: format!("rounds of one text draw with the same random numbers, by {kind}"),
        cure: "seed the generator once a request, and not once a round (claim \
               seed-reset-each-round of `specgap check`)"
            .to_owned(),
        log10_e_value: log / LN_10,
        is_bug: true,
    });
    Capital {
        part: FRESH_NUMBERS,
        steps,
        log,
        limit: None,
        evidence: evidence.collect(),
        groups: Vec::new(),
        untestable: (steps == 0)
            .then(|| "no text of the log has two rounds that could be compared".to_owned()),
    }
    .verdict(settings.alpha)
}
