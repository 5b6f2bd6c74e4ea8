//! What each request accepted, as vLLM says it in its responses.
//!
//! Looked up in vLLM 0.30's page on acceptance metrics by request, which calls the form experimental:
//! `--per-request-spec-decode-metrics summary` has the histogram, `detailed` also each step. aiperf's
//! records have the same fields, and the histogram as an object. TensorRT-LLM's choices say `total_` for
//! `num_`.

use super::json::{histogram, number, numbers};
use super::read::{Record, agree, agree_on_mean};
use crate::counters::counted::{MOST_DRAFTS, Rounds, Step};
use serde_json::{Map, Value};

/// The rounds of one request, and K if it says so.
pub(super) fn request(fields: &Map<String, Value>) -> Result<Record, String> {
    let most = number(fields, "num_spec_tokens")?.filter(|&most| most > 0.0);
    if let Some(most) = most.filter(|&most| most > MOST_DRAFTS as f64) {
        let words = format!("num_spec_tokens: is {most}; at most {MOST_DRAFTS} are read");
        return Err(words);
    }
    let counts = histogram(fields, "acceptance_histogram")?;
    let either = |one, other| Ok::<_, String>(number(fields, one)?.or(number(fields, other)?));
    let drafted = either("num_draft_tokens", "total_draft_tokens")?;
    let by_step = steps(fields, ["per_step_accepted", "per_step_drafted"], 0.0)?;
    let rounds = match (&counts, by_step) {
        (_, Some(steps)) => Rounds::of_steps(steps),
        (Some(counts), None) => Rounds::of_histogram(counts, drafted),
        (None, None) => return Err("acceptance_histogram: is null; nothing is counted".to_owned()),
    };
    let differs = |name: &str, said: Option<f64>, found: Option<f64>| {
        let from = "the steps or the histogram come";
        found.map_or(Ok(()), |found| agree(name, said, (from, found), 1e-9))
    };
    let counts = counts.map(|counts| Rounds::of_histogram(&counts, None));
    let of_rounds = counts.as_ref().map(|one| one.rounds);
    let of_accepted = counts.as_ref().map(|one| one.accepted);
    let (passes, accepted) = (Some(rounds.rounds), Some(rounds.accepted));
    differs("acceptance_histogram", of_rounds, passes)?;
    differs("acceptance_histogram", of_accepted, accepted)?;
    let said = either("num_accepted_draft_tokens", "total_accepted_draft_tokens")?;
    differs("num_accepted_draft_tokens", said, accepted)?;
    let said = number(fields, "num_spec_steps")?;
    differs("num_spec_steps", said, passes)?;
    differs("num_draft_tokens", drafted, rounds.drafted)?;
    let name = "mean_acceptance_length";
    agree_on_mean(name, number(fields, name)?, &rounds)?;
    Ok(Record {
        rounds,
        length: most.map(|most| most as usize),
        ..Record::default()
    })
}

/// The rounds of one request of SGLang, whose lengths count the token that every round has.
pub(super) fn verified(fields: &Map<String, Value>) -> Result<Record, String> {
    let steps = steps(fields, ["accept_lengths", "verify_lengths"], 1.0)?;
    let rounds = Rounds::of_steps(steps.unwrap_or_default());
    for (name, found) in [
        ("num_accepted_draft_tokens", rounds.accepted),
        ("num_verified_draft_tokens", rounds.drafted.unwrap_or(0.0)),
    ] {
        agree(name, number(fields, name)?, ("the rounds come", found), 0.0)?;
    }
    Ok(Record {
        rounds,
        ..Record::default()
    })
}

/// Every round in order, where they are listed under two names, with so many tokens of its own in each.
fn steps(
    fields: &Map<String, Value>,
    [of_accepted, of_drafted]: [&str; 2],
    own: f64,
) -> Result<Option<Vec<Step>>, String> {
    let (accepted, drafted) = match (numbers(fields, of_accepted)?, numbers(fields, of_drafted)?) {
        (Some(accepted), Some(drafted)) => (accepted, drafted),
        (None, None) => return Ok(None),
        _ => {
            let words = format!("{of_drafted}: there is one of {of_accepted} and it alone");
            return Err(words);
        }
    };
    let (has, wanted) = (drafted.len(), accepted.len());
    if has != wanted {
        return Err(format!(
            "{of_drafted}: has {has} steps, and {of_accepted} {wanted}"
        ));
    }
    let whole = |count: f64| count.fract() == 0.0 && (0.0..=MOST_DRAFTS as f64).contains(&count);
    let mut steps = Vec::with_capacity(accepted.len());
    for (at, (&accepted, &drafted)) in accepted.iter().zip(&drafted).enumerate() {
        let (accepted, drafted) = (accepted - own, drafted - own);
        if !(whole(accepted) && whole(drafted)) {
            return Err(format!(
                "{of_accepted}[{at}]: {accepted} of {drafted} are no counts up to {MOST_DRAFTS}"
            ));
        }
        if accepted > drafted {
            return Err(format!(
                "{of_accepted}[{at}]: is {accepted}, and {drafted} were drafted"
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
