//! What each request accepted, as vLLM says it in its responses.
//!
//! Looked up in vLLM 0.30's page on acceptance metrics by request, which calls the form experimental:
//! `--per-request-spec-decode-metrics summary` has the histogram, `detailed` also each step. aiperf's
//! records have the same fields, and the histogram as an object.

use super::forms::Record;
use super::json::{histogram, number, numbers};
use crate::counters::counted::{MOST_DRAFTS, Rounds, Step};
use serde_json::{Map, Value};

/// The rounds of one request, and K if it says so.
pub(super) fn request(fields: &Map<String, Value>) -> Result<Record, String> {
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
    Ok(Record {
        rounds,
        length: most.map(|most| most as usize),
        ..Record::default()
    })
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
