//! JSON and JSON Lines, in which several tools say what was counted.

use super::read::Text;
use crate::counters::counted::{CountersError, MOST_DRAFTS, Source};
use serde_json::{Deserializer, Map, Value};

/// The documents of a file with the names of their places: one, a list's entries, or one a line.
pub(super) fn documents(file: &Text<'_>) -> Result<Vec<(String, Value)>, CountersError> {
    let text = file.text.trim_start_matches('\u{feff}');
    let mut all = Vec::new();
    for (index, value) in Deserializer::from_str(text)
        .into_iter::<Value>()
        .enumerate()
    {
        let value = value.map_err(|error| file.refused(format!("is no JSON: {error}")))?;
        match value {
            Value::Array(entries) => {
                let named = |(at, value)| (format!("entry {}", at + 1), value);
                all.extend(entries.into_iter().enumerate().map(named));
            }
            value => all.push((format!("record {}", index + 1), value)),
        }
    }
    Ok(all)
}

/// Which tool the documents are of.
pub(super) fn told(file: &Text<'_>) -> Result<Source, CountersError> {
    for (_, value) in documents(file)? {
        let Value::Object(fields) = &value else {
            continue;
        };
        let has = |name: &str| fields.contains_key(name);
        if has("pooled_spec_decode_acceptance_histogram")
            || has("spec_decode_acceptance")
            || has("total_spec_decode_steps")
        {
            return Ok(Source::Aiperf);
        }
        if fields.keys().any(|name| name.starts_with("spec_decode_")) {
            return Ok(Source::VllmBench);
        }
        if record(&value).is_some() {
            return Ok(Source::VllmRequests);
        }
    }
    Err(file.refused(
        "has no counts of speculative decoding: no metrics.speculative_decoding (vLLM has it with \
         --per-request-spec-decode-metrics detailed), no spec_decode_num_drafts (vllm bench serve), \
         no pooled_spec_decode_acceptance_histogram (aiperf)",
    ))
}

/// The record of a request in a response, with the name of its field.
pub(super) fn record(value: &Value) -> Option<(&'static str, &Map<String, Value>)> {
    let places = [
        (
            "metrics.speculative_decoding",
            "/metrics/speculative_decoding",
        ),
        (
            "response.body.metrics.speculative_decoding",
            "/response/body/metrics/speculative_decoding",
        ),
        ("spec_decode_acceptance", "/spec_decode_acceptance"),
        ("speculative_decoding", "/speculative_decoding"),
        ("", ""),
    ];
    places.into_iter().find_map(|(name, pointer)| {
        let fields = value.pointer(pointer)?.as_object()?;
        let known =
            fields.contains_key("acceptance_histogram") || fields.contains_key("per_step_accepted");
        known.then_some((name, fields))
    })
}

/// A count under a name; none where the field is missing or null.
pub(super) fn number(fields: &Map<String, Value>, name: &str) -> Result<Option<f64>, String> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value
            .as_f64()
            .filter(|count| count.is_finite() && *count >= 0.0)
            .map(Some)
            .ok_or_else(|| format!("{name}: is {value}; a number from 0 on is expected")),
    }
}

/// A list of numbers under a name; none where the field is missing or null.
pub(super) fn numbers(fields: &Map<String, Value>, name: &str) -> Result<Option<Vec<f64>>, String> {
    let values = match fields.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Array(values)) => values,
        Some(value) => return Err(format!("{name}: is {value}; a list of numbers is expected")),
    };
    let entry = |(at, value): (usize, &Value)| {
        value
            .as_f64()
            .filter(|count| count.is_finite() && *count >= 0.0)
            .ok_or_else(|| format!("{name}[{at}]: is {value}; a number from 0 on is expected"))
    };
    values
        .iter()
        .enumerate()
        .map(entry)
        .collect::<Result<_, _>>()
        .map(Some)
}

/// How many rounds accepted exactly j drafts: a list, or an object whose names are j.
pub(super) fn histogram(
    fields: &Map<String, Value>,
    name: &str,
) -> Result<Option<Vec<f64>>, String> {
    let Some(Value::Object(entries)) = fields.get(name) else {
        let dense = numbers(fields, name)?;
        return match dense {
            Some(dense) if dense.len() > MOST_DRAFTS + 1 => Err(format!(
                "{name}: has {} entries; a round has at most {MOST_DRAFTS} drafts",
                dense.len()
            )),
            dense => Ok(dense),
        };
    };
    let mut dense = Vec::new();
    for (key, value) in entries {
        let refused = |what: &str| format!("{name}.{key}: {what}");
        let accepted: usize = key
            .parse()
            .ok()
            .filter(|&accepted| accepted <= MOST_DRAFTS)
            .ok_or_else(|| refused("is no number of accepted drafts"))?;
        let count = value
            .as_f64()
            .filter(|count| count.is_finite() && *count >= 0.0)
            .ok_or_else(|| refused("a number of rounds from 0 on is expected"))?;
        if dense.len() <= accepted {
            dense.resize(accepted + 1, 0.0);
        }
        if let Some(place) = dense.get_mut(accepted) {
            *place = count;
        }
    }
    Ok(Some(dense))
}
