//! JSON and JSON Lines, in which several tools say what was counted.

use super::read::Text;
use crate::counters::counted::{CountersError, MOST_DRAFTS};
use serde_json::{Deserializer, Map, Value};

/// A document, and where it stands.
pub(super) struct Document {
    pub(super) place: String,
    pub(super) value: Value,
    /// Which response it is a chunk of, where a server streamed it.
    pub(super) stream: Option<usize>,
}

/// Tells whether a text is JSON, or a stream of server-sent events: logs may begin with a bracket too.
pub(super) fn is_it(text: &str) -> bool {
    let behind = |text: &str| text.trim_start().starts_with(['{', '[', ']', '"']);
    text.starts_with('{') || text.strip_prefix('[').is_some_and(behind) || is_stream(text)
}

/// The fields that a line of a stream begins with.
const EVENTS: [&str; 5] = ["data:", "event:", "id:", "retry:", ":"];

fn is_stream(text: &str) -> bool {
    let first = text.trim_start().lines().next().unwrap_or_default();
    EVENTS.iter().any(|name| first.starts_with(name)) && text.contains("data:")
}

/// The documents of a file: one, a list's entries, one a line, or the chunks of streams. Each is read
/// when it is asked for.
pub(super) fn documents<'a>(
    file: &'a Text<'_>,
) -> Box<dyn Iterator<Item = Result<Document, CountersError>> + 'a> {
    let text = file.text.trim_start_matches('\u{feff}');
    if is_stream(text) {
        return Box::new(chunks(file, text));
    }
    let document = |place, value| Document {
        place,
        value: captured(value),
        stream: None,
    };
    let values = Deserializer::from_str(text).into_iter::<Value>();
    Box::new(
        values
            .zip(1..)
            .flat_map(move |(value, number)| match value {
                Err(error) => vec![Err(file.refused(format!("is no JSON: {error}")))],
                Ok(Value::Array(entries)) => {
                    let named = |(value, at)| Ok(document(format!("entry {at}"), value));
                    entries.into_iter().zip(1..).map(named).collect()
                }
                Ok(value) => vec![Ok(document(format!("record {number}"), value))],
            }),
    )
}

/// A proxy's capture has the response under `data`.
fn captured(value: Value) -> Value {
    match value {
        Value::Object(mut fields) if fields.len() == 1 => match fields.remove("data") {
            Some(data @ Value::Object(_)) => data,
            Some(data) => Value::Object(Map::from_iter([("data".to_owned(), data)])),
            None => Value::Object(fields),
        },
        value => value,
    }
}

/// Chunks of streams, one behind the other: each ends with `[DONE]`, or where the id changes.
fn chunks<'a>(
    file: &'a Text<'_>,
    text: &'a str,
) -> impl Iterator<Item = Result<Document, CountersError>> + 'a {
    let (mut stream, mut id) = (0, None::<Value>);
    text.lines().enumerate().filter_map(move |(index, line)| {
        let data = line.trim().strip_prefix("data:")?.trim();
        if data == "[DONE]" {
            (stream, id) = (stream + 1, None);
            return None;
        }
        let value: Value = match serde_json::from_str(data) {
            Ok(value) => value,
            Err(error) => {
                let words = format!("is no JSON: {error}");
                return Some(Err(file.refused_at(index, words)));
            }
        };
        let own = value.get("id").or_else(|| value.pointer("/meta_info/id"));
        let own = own.cloned();
        if own.is_some() && id.is_some() && own != id {
            stream += 1;
        }
        id = own.or(id.take());
        Some(Ok(Document {
            place: format!("line {}", index + 1),
            value,
            stream: Some(stream),
        }))
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
            let Document { place, value, .. } = document?;
            if let Value::Object(fields) = &value {
                let one = of(fields);
                found.extend(one.map_err(|message| file.refused(format!("{place}: {message}")))?);
            }
        }
    }
    Ok(found)
}

/// Reads the tokens a second that a benchmark's result says: `output_throughput` of `vllm bench serve` and SGLang's
/// `bench_serving`, `output_token_throughput` of aiperf; the mean of several results.
///
/// # Errors
/// A file that is no JSON or says no speed, by its name.
pub fn throughput(file: &Text<'_>) -> Result<f64, CountersError> {
    const NAMES: [&str; 2] = ["output_throughput", "output_token_throughput"];
    let speeds = objects(std::slice::from_ref(file), |fields| {
        let said = NAMES.into_iter().find(|name| fields.contains_key(*name));
        let Some(name) = said else { return Ok(None) };
        match fields.get(name) {
            Some(Value::Object(metric)) => number(metric, "avg"),
            _ => number(fields, name),
        }
    })?;
    let mean = speeds.iter().sum::<f64>() / speeds.len() as f64;
    if mean.is_finite() && mean > 0.0 {
        return Ok(mean);
    }
    Err(file.refused(
        "says no tokens a second: no output_throughput (vllm bench serve, SGLang's bench_serving) and no \
         output_token_throughput (aiperf)",
    ))
}

/// A number from 0 on, which a count is.
fn count(value: &Value) -> Option<f64> {
    let count = value.as_f64()?;
    (count.is_finite() && count >= 0.0).then_some(count)
}

/// A count under a name; none where the field is missing or null.
pub(super) fn number(fields: &Map<String, Value>, name: &str) -> Result<Option<f64>, String> {
    let said = fields.get(name).filter(|value| !value.is_null());
    let read = |value| {
        count(value).ok_or_else(|| format!("{name}: is {value}; a number from 0 on is expected"))
    };
    said.map(read).transpose()
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
    let all: Result<_, _> = values.iter().enumerate().map(entry).collect();
    all.map(Some)
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
        let accepted = key.parse().ok().filter(|&accepted| accepted <= MOST_DRAFTS);
        let accepted: usize = accepted.ok_or_else(|| refused("is no number of accepted drafts"))?;
        let count = count(value);
        let count = count.ok_or_else(|| refused("a number of rounds from 0 on is expected"))?;
        if dense.len() <= accepted {
            dense.resize(accepted + 1, 0.0);
        }
        if let Some(place) = dense.get_mut(accepted) {
            *place = count;
        }
    }
    Ok(Some(dense))
}
