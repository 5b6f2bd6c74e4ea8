//! What has to be known of counts, and what they cannot say.

use super::counted::{Counted, Rounds, Source};
use super::data::Note;

/// Fewer rounds than this tell no length but the one that ran, and fewer that accept all K drafts
/// tell nothing beyond K: of 30 a third is known to half of itself.
pub(super) const ENOUGH: f64 = 30.0;

/// Fewer requests than this make intervals that hardly hold.
const FEW_REQUESTS: usize = 20;

pub(super) fn note(name: &str, says: impl Into<String>) -> Note {
    Note {
        name: name.to_owned(),
        says: says.into(),
    }
}

/// Traps that these counts are seen to be in.
pub(super) fn notes(counted: &Counted, total: &Rounds, short: f64) -> Vec<Note> {
    let known = counted.notes.iter();
    let mut all: Vec<Note> = known.map(|(name, says)| note(name, says)).collect();
    let drafted = total.drafted.map(|drafted| drafted / total.rounds);
    match (counted.length, drafted) {
        (Some(length), Some(drafted)) if short > 0.0 => {
            let says = format!(
                "Rounds drafted {drafted:.3} tokens on average, and up to {length}: adaptive \
                 verification, p_min of llama.cpp, a grammar or the end of a text cut them. A place \
                 that was not tried counts as one that was refused, so deep places look worse than \
                 they are; rates among the places that were tried look better, as sure rounds go \
                 deeper."
            );
            all.push(note("short-rounds", says));
        }
        (None, Some(drafted)) => {
            let says = format!(
                "Rounds drafted {drafted:.3} tokens on average, of different lengths, and places are \
                 not counted: nothing follows for any one length."
            );
            all.push(note("no-places", says));
        }
        (Some(length), _) if total.reached.is_none() => {
            let says = format!(
                "Places are not counted: only K = {length}, which ran, is known, and nothing of \
                 shorter or longer rounds."
            );
            all.push(note("no-places", says));
        }
        _ => {}
    }
    if counted.clusters.iter().all(|one| one.steps.is_some()) {
        let says = "Shorter rounds are replayed along the same text. Nobody threw the coin behind a \
            wholly accepted round: it is taken to come up as often as those of last places, and the \
            range has all it may be. Heads such as EAGLE's and MTP's draft by where a round started, \
            and other rounds start elsewhere.";
        all.push(note("replayed", says));
    }
    match counted.clusters.len() {
        1 if !counted.rates_alone => all.push(note(
            "by-rounds",
            "Requests are not told apart, or there is one: intervals are over rounds, as if these had nothing to do \
             with each other, and are too narrow where one text is easier than another.",
        )),
        1 => {}
        few if few < FEW_REQUESTS => all.push(note(
            "few-requests",
            format!("{few} requests are few: intervals may be too narrow."),
        )),
        _ => {}
    }
    if counted.source == Source::Aiperf {
        let says = "aiperf prints two means of the acceptance length: over requests, and over \
            rounds. Numbers here are over rounds.";
        all.push(note("over-rounds", says));
    }
    all
}

/// Says which lengths are left out, and from how many events on they are not: whether these many rounds
/// are enough for other lengths than the one that ran, and K, with the rounds that accepted all of K
/// drafts, where these are too few to go beyond.
pub(super) fn left_out(
    (rounds, is_enough): (f64, bool),
    beyond: Option<(usize, f64)>,
) -> Option<Note> {
    if !is_enough {
        let says = format!(
            "{rounds:.0} rounds with drafts are too few: below {ENOUGH} no length but the one that ran is told, and \
             none is advised."
        );
        return Some(note("few-rounds", says));
    }
    beyond.map(|(length, count)| {
        let says = format!(
            "{count:.0} rounds accepted all of {length} drafts: nothing is told beyond K = {length} \
             from fewer than {ENOUGH}."
        );
        note("few-whole-rounds", says)
    })
}

/// Lists what no counter can say.
pub(super) fn unknown() -> Vec<String> {
    [
        "other verifiers and other draft laws: `specgap length` and `specgap gap` have them, of a log \
         with log-probabilities",
        "other temperatures, models or prompts than those that were served",
        "whether the output is the target's: `specgap audit` tests that",
        "why drafts are refused",
        "tokens behind a stop or max_tokens that a last round still counts as accepted",
    ]
    .map(str::to_owned)
    .to_vec()
}
