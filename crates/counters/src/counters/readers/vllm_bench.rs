//! The result of `vllm bench serve`: differences of the server's counters around the run.
//!
//! Looked up in vLLM 0.30's benchmark: `spec_decode_num_drafts`, `_draft_tokens`, `_accepted_tokens`,
//! `_acceptance_rate` in percent, `_acceptance_length` with the bonus token, and
//! `_per_position_acceptance_rates`, accepted by drafts.

use super::json::{number, numbers, objects};
use super::read::{Text, agree_by_place, agree_on_mean, by_rates};
use crate::counters::counted::{Counted, CountersError, Rounds, Source};
use serde_json::{Map, Value};

const RATES: &str = "spec_decode_per_position_acceptance_rates";

pub(super) fn read(files: &[Text<'_>]) -> Result<Counted, CountersError> {
    let runs = objects(files, |fields| run(fields).map(Some))?;
    let mut read = Counted::of(Source::VllmBench, vec![Rounds::sum(&runs)]);
    let runs = runs.len();
    if runs > 1 {
        let words = "runs are counted together; they have to be of one K and one load.";
        read.note("summed", format!("{runs} {words}"));
    }
    Ok(read)
}

fn run(fields: &Map<String, Value>) -> Result<Rounds, String> {
    let of = |name: &str| number(fields, &format!("spec_decode_{name}"));
    let rounds = of("num_drafts")?.ok_or(
        "lacks the number of drafts, spec_decode_num_drafts; vllm bench serve writes it where the \
         server's /metrics can be read",
    )?;
    let drafted = of("draft_tokens")?.or(of("num_draft_tokens")?);
    let rates = numbers(fields, RATES)?;
    let reached = rates.filter(|rates| !rates.is_empty());
    let reached = reached.map(|rates| by_rates(&rates, rounds, 0.0));
    let names = [
        "spec_decode_accepted_tokens",
        "spec_decode_num_accepted_tokens",
    ];
    let name = names.into_iter().find(|name| fields.contains_key(*name));
    let name = name.unwrap_or(names[0]);
    let accepted = number(fields, name)?.ok_or("lacks spec_decode_accepted_tokens")?;
    agree_by_place([name, RATES], accepted, reached.as_deref())?;
    let run = Rounds::new(rounds, drafted, accepted, reached);
    run.check()?;
    let said = of("acceptance_length")?;
    agree_on_mean("spec_decode_acceptance_length", said, &run)?;
    if let (Some(percent), Some(drafted)) = (of("acceptance_rate")?, drafted.filter(|&n| n > 0.0)) {
        let counted = 100.0 * accepted / drafted;
        if (percent - counted).abs() > 0.01 {
            return Err(format!(
                "spec_decode_acceptance_rate: is {percent}, and the counts come to {counted:.4} percent; give \
                 the result as vllm bench serve wrote it"
            ));
        }
    }
    Ok(run)
}
