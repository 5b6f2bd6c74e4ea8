//! `acceptance.csv` of speculators' evaluation: a row a subset.
//!
//! Looked up in speculators (`scripts/evaluate/perf_utils.py` at c05b95b3): `subset`, `num_drafts`,
//! `num_draft_tokens`, `num_accepted_tokens`, `acceptance_length` with the bonus token, and
//! `acceptance_at_pos_i`, accepted by drafts, all from vLLM's counters around a run.

use super::read::{Text, agree_by_place, agree_on_mean, by_rates};
use crate::counters::counted::{Counted, CountersError, Rounds, Source};
use specgap_base::csv::fields;
use std::borrow::Cow;

const DRAFTS: &str = "num_drafts";
const PLACE: &str = "acceptance_at_pos_";

pub(super) fn is_it(text: &str) -> bool {
    let head = || fields(text.lines().next().unwrap_or_default());
    let has = |name: &str| head().any(|column| column == name);
    has("num_accepted_tokens") || has(DRAFTS) && has("num_draft_tokens")
}

pub(super) fn read(
    files: &[Text<'_>],
    chosen: &[(String, String)],
) -> Result<Counted, CountersError> {
    let mut rows = Vec::new();
    for file in files {
        let mut lines = file.text.trim_start_matches('\u{feff}').lines().enumerate();
        let head = fields(lines.next().map_or("", |(_, head)| head));
        let head: Vec<String> = head.map(Cow::into_owned).collect();
        let lacks = |name: &str| file.refused(format!("lacks the column {name}"));
        if !head.iter().any(|name| name == DRAFTS) {
            return Err(file.refused(format!(
                "lacks the number of drafts, the column {DRAFTS}; acceptance lengths are accepted \
                 tokens by drafts"
            )));
        }
        for (key, _) in chosen {
            if !head.contains(key) {
                return Err(lacks(key));
            }
        }
        for (index, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            let cells: Vec<Cow<'_, str>> = fields(line).collect();
            let of = |name: &str| {
                let at = head.iter().position(|column| column == name)?;
                cells.get(at).map(AsRef::as_ref)
            };
            let fits = |(key, value): &(String, String)| of(key) == Some(value);
            if !chosen.iter().all(fits) {
                continue;
            }
            let row = row(&of).map_err(|message| file.refused_at(index, message));
            rows.push(row?);
        }
    }
    let mut read = Counted::of(Source::Speculators, vec![Rounds::sum(&rows)]);
    if rows.len() > 1 {
        let words = format!(
            "{} subsets are counted together, each by its rounds; --where subset=NAME takes one.",
            rows.len()
        );
        read.note("summed", words);
    }
    Ok(read)
}

fn row<'a>(of: &impl Fn(&str) -> Option<&'a str>) -> Result<Rounds, String> {
    let number = |name: &str| {
        let text = of(name).map(str::trim).filter(|text| !text.is_empty());
        let read = |text: &str| {
            let number: Option<f64> = text.parse().ok();
            let number = number.filter(|count| count.is_finite() && *count >= 0.0);
            number.ok_or_else(|| format!("{name}: is {text:?}; a number from 0 on is expected"))
        };
        text.map(read).transpose()
    };
    let need = |name: &str| number(name)?.ok_or_else(|| format!("{name}: is missing"));
    let rounds = need(DRAFTS)?;
    let mut rates = Vec::new();
    while let Some(rate) = number(&format!("{PLACE}{}", rates.len()))? {
        rates.push(rate);
    }
    let (drafted, accepted) = (number("num_draft_tokens")?, need("num_accepted_tokens")?);
    let reached = (!rates.is_empty()).then(|| by_rates(&rates, rounds, 0.0));
    agree_by_place(["num_accepted_tokens", PLACE], accepted, reached.as_deref())?;
    let row = Rounds::new(rounds, drafted, accepted, reached);
    row.check()?;
    agree_on_mean("acceptance_length", number("acceptance_length")?, &row)?;
    Ok(row)
}
