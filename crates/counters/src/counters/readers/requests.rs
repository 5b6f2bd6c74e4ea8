//! What each request accepted, as vLLM says it in its responses.
//!
//! Looked up in vLLM 0.30's page on acceptance metrics by request, which calls the form experimental:
//! `--per-request-spec-decode-metrics summary` has the histogram, `detailed` also each step. aiperf's
//! records have the same fields, and the histogram as an object.

use super::json::{documents, histogram, number, numbers, record};
use super::read::{self, Text};
use crate::counters::counted::{Counted, CountersError, MOST_DRAFTS, Rounds, Source, Step};
use serde_json::{Map, Value};

pub(super) fn read(files: &[Text<'_>], source: Source) -> Result<Counted, CountersError> {
    let mut read = Counted {
        by_request: true,
        ..Counted::of(source)
    };
    let mut without = 0;
    for file in files {
        for document in documents(file) {
            let (place, value) = document?;
            let Some((field, fields)) = record(&value) else {
                without += 1;
                continue;
            };
            let refused = |message: String| {
                let dot = if field.is_empty() { "" } else { "." };
                file.refused(format!("{place}: {field}{dot}{message}"))
            };
            let group =
                group(&value).map_err(|message| file.refused(format!("{place}: {message}")))?;
            let (rounds, most) = request(fields).map_err(refused)?;
            match (read.length, most) {
                (Some(one), Some(other)) if one != other => {
                    return Err(refused(format!(
                        "num_spec_tokens: is {other}, and {one} in others; give one length at a time"
                    )));
                }
                (_, Some(most)) => read.length = Some(most),
                _ => {}
            }
            read.clusters.push(rounds);
            read.groups.push(group);
        }
    }
    if read.clusters.is_empty() {
        return Err(read::refused(
            files,
            "no response says what it accepted; start vLLM with \
             --per-request-spec-decode-metrics detailed, and ask for n = 1",
        ));
    }
    if without > 0 {
        let words = format!(
            "{without} of the records do not say what they accepted (n above 1, an error, or a \
             response without usage), and do not count."
        );
        read.notes.push(("not-counted", words));
    }
    Ok(read)
}

/// The field `group` of a record: the workload that the request is of.
fn group(value: &Value) -> Result<Option<String>, String> {
    match value.get("group") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(name)) if !name.trim().is_empty() => Ok(Some(name.trim().to_owned())),
        Some(Value::Number(number)) => Ok(Some(number.to_string())),
        Some(other) => Err(format!(
            "group: is {other}; give the workload's name as a text, or leave it out"
        )),
    }
}

/// The rounds of one request, and K if it says so.
fn request(fields: &Map<String, Value>) -> Result<(Rounds, Option<usize>), String> {
    let most = number(fields, "num_spec_tokens")?.filter(|&most| most > 0.0);
    if let Some(most) = most.filter(|&most| most > MOST_DRAFTS as f64) {
        return Err(format!(
            "num_spec_tokens: is {most}; at most {MOST_DRAFTS} are read"
        ));
    }
    let counts = histogram(fields, "acceptance_histogram")?;
    let drafted = number(fields, "num_draft_tokens")?;
    let by_step = steps(fields)?;
    let rounds = match (&counts, by_step) {
        (_, Some(steps)) => Rounds::of_steps(steps),
        (Some(counts), None) => Rounds::of_histogram(counts, drafted),
        (None, None) => return Err("acceptance_histogram: is null; nothing is counted".to_owned()),
    };
    let differs = |name: &str, said: Option<f64>, found: Option<f64>| match (said, found) {
        (Some(said), Some(found)) if (said - found).abs() > 1e-9 => Err(format!(
            "{name}: is {said}, and the steps or the histogram come to {found}"
        )),
        _ => Ok(()),
    };
    let of_histogram = counts
        .as_ref()
        .map(|counts| Rounds::of_histogram(counts, None));
    let histogram = of_histogram.as_ref();
    differs(
        "acceptance_histogram",
        histogram.map(|one| one.rounds),
        Some(rounds.rounds),
    )?;
    differs(
        "acceptance_histogram",
        histogram.map(|one| one.accepted),
        Some(rounds.accepted),
    )?;
    let accepted = number(fields, "num_accepted_draft_tokens")?;
    differs("num_accepted_draft_tokens", accepted, Some(rounds.accepted))?;
    differs(
        "num_spec_steps",
        number(fields, "num_spec_steps")?,
        Some(rounds.rounds),
    )?;
    differs("num_draft_tokens", drafted, rounds.drafted)?;
    Ok((rounds, most.map(|most| most as usize)))
}

/// Every round in order, where they are listed.
fn steps(fields: &Map<String, Value>) -> Result<Option<Vec<Step>>, String> {
    let accepted = numbers(fields, "per_step_accepted")?;
    let drafted = numbers(fields, "per_step_drafted")?;
    let (accepted, drafted) = match (accepted, drafted) {
        (Some(accepted), Some(drafted)) => (accepted, drafted),
        (None, None) => return Ok(None),
        _ => {
            return Err(
                "per_step_drafted: there is one of per_step_accepted and it alone".to_owned(),
            );
        }
    };
    if accepted.len() != drafted.len() {
        return Err(format!(
            "per_step_drafted: has {} steps, and per_step_accepted {}",
            drafted.len(),
            accepted.len()
        ));
    }
    let whole = |count: f64| count.fract() == 0.0 && count <= MOST_DRAFTS as f64;
    let mut steps = Vec::with_capacity(accepted.len());
    for (at, (&accepted, &drafted)) in accepted.iter().zip(&drafted).enumerate() {
        if !(whole(accepted) && whole(drafted)) {
            return Err(format!(
                "per_step_accepted[{at}]: {accepted} of {drafted} are no counts up to {MOST_DRAFTS}"
            ));
        }
        if accepted > drafted {
            return Err(format!(
                "per_step_accepted[{at}]: is {accepted}, and {drafted} were drafted"
            ));
        }
        // A step without drafts is a step of the target alone.
        steps.push(Step {
            drafted: drafted as usize,
            accepted: accepted as usize,
        });
    }
    Ok(Some(steps))
}
