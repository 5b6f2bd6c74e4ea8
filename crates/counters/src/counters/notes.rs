//! What has to be known of counts, and what they cannot say.

use super::counted::{Counted, Rounds, Source};
use super::data::Note;

/// Fewer requests than this make intervals that hardly hold.
const FEW_REQUESTS: usize = 20;

fn note(name: &str, says: impl Into<String>) -> Note {
    Note {
        name: name.to_owned(),
        says: says.into(),
    }
}

/// Traps that these counts are seen to be in.
pub(super) fn notes(counted: &Counted, total: &Rounds, short: f64) -> Vec<Note> {
    let mut all: Vec<Note> = counted
        .notes
        .iter()
        .map(|(name, says)| note(name, says.as_str()))
        .collect();
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
        let says = "Shorter rounds are replayed along the same text. That is exact for draft models; \
            heads such as EAGLE's and MTP's draft by where a round started, and other rounds start \
            elsewhere.";
        all.push(note("replayed", says));
    }
    match counted.clusters.len() {
        1 => all.push(note(
            "no-interval",
            "Requests are not told apart, so there is no interval: vLLM tells them apart with \
             --per-request-spec-decode-metrics detailed.",
        )),
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
