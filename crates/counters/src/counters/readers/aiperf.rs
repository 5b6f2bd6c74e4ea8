//! A summary of aiperf, `profile_export_aiperf.json`, or its records, a line each.
//!
//! Looked up in aiperf (`src/aiperf/common/models/spec_decode_models.py` at 0786f0ca and its page of
//! metrics): `pooled_spec_decode_acceptance_histogram` has the steps that accepted j drafts, under
//! the name j; `total_spec_decode_steps`, `total_draft_tokens` and `total_accepted_draft_tokens` are
//! metrics whose `avg` is the sum; a record has `spec_decode_acceptance`.

use super::forms;
use super::json::{histogram, number, objects};
use super::read::{Text, agree};
use crate::counters::counted::{Counted, CountersError, Rounds, Source};
use serde_json::{Map, Value};

const POOLED: &str = "pooled_spec_decode_acceptance_histogram";

pub(super) fn read(files: &[Text<'_>]) -> Result<Counted, CountersError> {
    let summaries = objects(files, |fields| {
        let is_one = fields.contains_key(POOLED) || fields.contains_key("total_spec_decode_steps");
        is_one.then(|| summary(fields)).transpose()
    })?;
    if summaries.is_empty() {
        return forms::read(files, Source::Aiperf);
    }
    let total = Rounds::sum(&summaries);
    let lacks_drafted = total.drafted.is_none();
    let mut read = Counted::of(Source::Aiperf, vec![total]);
    if lacks_drafted {
        let words = "The summary lacks total_draft_tokens: K is the most drafts that a round \
            accepted, and rounds that drafted fewer are not seen.";
        read.note("no-drafted", words);
    }
    Ok(read)
}

fn summary(fields: &Map<String, Value>) -> Result<Rounds, String> {
    let sum = |name: &str| match fields.get(name) {
        Some(Value::Object(metric)) => {
            number(metric, "avg").map_err(|message| format!("{name}.{message}"))
        }
        _ => number(fields, name),
    };
    let drafted = sum("total_draft_tokens")?;
    let steps = sum("total_spec_decode_steps")?;
    let accepted = sum("total_accepted_draft_tokens")?;
    let counts = histogram(fields, POOLED)?;
    let Some(counts) = counts else {
        let steps = steps.ok_or("lacks the number of drafts, total_spec_decode_steps")?;
        let accepted = accepted.ok_or("lacks total_accepted_draft_tokens")?;
        return Ok(Rounds::new(steps, drafted, accepted, None));
    };
    let rounds = Rounds::of_histogram(&counts, drafted);
    for (name, said, found) in [
        ("total_spec_decode_steps", steps, rounds.rounds),
        ("total_accepted_draft_tokens", accepted, rounds.accepted),
    ] {
        agree(name, said, (&format!("{POOLED} comes"), found), 0.5)?;
    }
    Ok(rounds)
}
