//! What stands beside the verdicts of an audit, in words.

use crate::columns::table;
use crate::sections::{if_any, shown};
use specgap_audit::audit::{AuditReport, Cause, CountsReport, Outcome, Surprise};
use specgap_page::words::{count, counted, rate};
use specgap_page::{Block, Section};

/// A verdict in words.
pub(super) fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Consistent => "consistent",
        Outcome::Refuted => "refuted",
        Outcome::NotTestable => "not testable",
    }
}

/// Surprise against entropy, in a sentence.
pub(super) fn surprise_words(found: &Surprise) -> String {
    let [low, high] = found.ci95;
    let z = found.z.map_or_else(
        || "nothing is left to chance".to_owned(),
        |z| format!("z = {z:+.1}"),
    );
    let impossible = match found.impossible {
        0 => String::new(),
        number => format!(
            "; {} of probability 0 left out",
            counted(usize::try_from(number).unwrap_or(usize::MAX), "token")
        ),
    };
    format!(
        "Surprise: {:.2} nats a token, where draws from p have {:.2}. They differ by {:+.3} (95%: \
         {low:+.3} to {high:+.3}; {z}{impossible}).",
        // Neither is below 0, but -ln 1 is -0.
        found.surprise.abs(),
        found.entropy.abs(),
        found.difference + 0.0,
    )
}

pub(super) fn surprise(found: &Surprise) -> Block {
    Block::Paragraph(surprise_words(found))
}

/// A cause with its cure.
pub(super) fn cause(cause: &Cause) -> String {
    let moved = match cause.tv {
        Some(tv) if tv > 5e-5 => format!(" It moves a step by TV {}.", rate(tv)),
        _ => String::new(),
    };
    format!(
        "{}: {}.{moved} What to do: {}.",
        cause.name, cause.words, cause.cure
    )
}

/// The conclusion where counts alone are refuted.
pub(super) fn refuted_counts(report: &AuditReport) -> Option<String> {
    let counts = report.counts.as_ref()?;
    let alone = (report.parts.iter()).all(|one| one.verdict != Outcome::Refuted)
        && report.hard_checks.iter().all(|check| check.violations == 0);
    (alone && counts.verdict == Outcome::Refuted).then(|| {
        format!(
            "Not {}: the server accepts {} drafts than the rule does on these rows.",
            counts.rule,
            match counts.accepted > counts.expected[1] {
                true => "more",
                false => "fewer",
            }
        )
    })
}

/// Says in a sentence what was counted against what rows say.
pub(super) fn counted_words(counts: &CountsReport) -> String {
    let [low, high] = counts.expected;
    let expected = match high - low < 0.5 {
        true => format!("{:.0}", 0.5 * (low + high)),
        false => format!("{low:.0} to {high:.0}"),
    };
    format!(
        "counters: {:.0} rounds of {} drafts each accepted {:.0} drafts, where {} on these rows accepts \
         {expected} (95%: {:.0} to {:.0}; z = {:.1}): {}",
        counts.rounds,
        counts.length,
        counts.accepted,
        counts.rule,
        counts.ci95[0],
        counts.ci95[1],
        counts.z,
        outcome(counts.verdict)
    )
}

/// Counters against rows.
pub(super) fn counts(counts: &CountsReport) -> Section {
    let places = table! {
        "counters", "", one in counts.places.iter();
        "#draft" => one.place.to_string(),
        "#counted" => rate(one.counted),
        "#expected by the rows" => rate(one.expected),
    };
    let tokens = match counts.tokens {
        1 => "1 token".to_owned(),
        tokens => format!("{} tokens", count(tokens)),
    };
    let note = format!(
        "Share of rounds that accept so many drafts or more. Expected: an exact sum along {} of \
         {tokens}, and no test by itself.",
        counted(counts.texts, "text")
    );
    shown(
        "counters | Counters against rows | Accepted drafts as the server counted them, and as the \
         rule has them on these rows.",
        [Block::Paragraph(format!("{}.", counted_words(counts)))],
    )
    .with(if_any(places.note(note)))
    .with([
        Block::Heading("What these counts cannot tell".to_owned()),
        Block::List(counts.cannot_tell.clone()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sure_token_is_no_negative_surprise() {
        let found = Surprise {
            steps: 1,
            impossible: 0,
            surprise: -0.0,
            entropy: -0.0,
            difference: -0.0,
            ci95: [0.0; 2],
            z: None,
        };
        let words = surprise_words(&found);
        assert!(
            words.starts_with("Surprise: 0.00 nats") && !words.contains("-0"),
            "{words}"
        );
    }
}
