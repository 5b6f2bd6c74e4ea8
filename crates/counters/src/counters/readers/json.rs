//! JSON and JSON Lines, in which several tools say what was counted.

use super::read::Text;
use crate::counters::counted::{CountersError, MOST_DRAFTS, Source};
use serde_json::{Deserializer, Map, Value};

/// A document and the name of its place.
type Document = (String, Value);

/// The documents of a file: one, a list's entries, or one a line. Each is read when it is asked for.
pub(super) fn documents<'a>(
    file: &'a Text<'_>,
) -> impl Iterator<Item = Result<Document, CountersError>> + 'a {
    let text = file.text.trim_start_matches('\u{feff}');
    let values = Deserializer::from_str(text).into_iter::<Value>();
    values.enumerate().flat_map(|(index, value)| match value {
        Err(error) => vec![Err(file.refused(format!("is no JSON: {error}")))],
        Ok(Value::Array(entries)) => {
            let named = |(at, value)| Ok((format!("entry {}", at + 1), value));
            entries.into_iter().enumerate().map(named).collect()
        }
        Ok(value) => vec![Ok((format!("record {}", index + 1), value))],
    })
}

/// Finds things in the objects of some files; what is refused in one is told with its place.
pub(super) fn objects<T>(
    files: &[Text<'_>],
    of: impl Fn(&Map<String, Value>) -> Result<Option<T>, String>,
) -> Result<Vec<T>, CountersError> {
    let mut found = Vec::new();
    for file in files {
        for document in documents(file) {
            let (place, value) = document?;
            if let Value::Object(fields) = &value {
                let one = of(fields);
                found.extend(one.map_err(|message| file.refused(format!("{place}: {message}")))?);
            }
        }
    }
    Ok(found)
}

/// Tells which tool the documents are of.
pub(super) fn told(file: &Text<'_>) -> Result<Source, CountersError> {
    for document in documents(file) {
        let (_, value) = document?;
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

/// A number from 0 on, which a count is.
fn count(value: &Value) -> Option<f64> {
    value
        .as_f64()
        .filter(|count| count.is_finite() && *count >= 0.0)
}

/// A count under a name; none where the field is missing or null.
pub(super) fn number(fields: &Map<String, Value>, name: &str) -> Result<Option<f64>, String> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => count(value)
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
        count(value)
            .ok_or_else(|| format!("{name}[{at}]: is {value}; a number from 0 on is expected"))
    };
    values
        .iter()
        .enumerate()
        .map(entry)
        .collect::<Result<_, _>>()
        .map(Some)
}

/// Reads how many rounds accepted exactly j drafts: a list, or an object whose names are j.
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
        let count =
            count(value).ok_or_else(|| refused("a number of rounds from 0 on is expected"))?;
        if dense.len() <= accepted {
            dense.resize(accepted + 1, 0.0);
        }
        if let Some(place) = dense.get_mut(accepted) {
            *place = count;
        }
    }
    Ok(Some(dense))
}
