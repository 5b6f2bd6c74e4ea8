//! Counters of vLLM and of llama.cpp's server, as Prometheus reads them.
//!
//! Looked up in vLLM (`vllm/v1/spec_decode/metrics.py` at ee4ceaae) and in llama.cpp's server as of
//! b10902, which has the same four names behind `llamacpp:`. A client of Prometheus writes `_total`
//! behind a counter's name, and may write `_created` beside it, which is a time.

use super::read::{Text, place};
use crate::counters::counted::{Counted, CountersError, Rounds, Source};
use std::collections::{BTreeMap, BTreeSet};

/// What all names have.
const COMMON: &str = "spec_decode_num_";

/// Gauges of SGLang, which are means of the last second and no counts.
const MEANS: &str = "spec_accept_length";

/// One line: a counter's name, its labels and its value.
type Series = BTreeMap<(String, BTreeMap<String, String>), f64>;

pub(super) fn is_it(text: &str) -> bool {
    let counter = |line: &str| {
        let name = line.split(['{', ' ']).next().unwrap_or_default();
        name.contains(COMMON) || name.ends_with(MEANS)
    };
    text.lines().any(|line| counter(line.trim_start())) || text.trim_start().starts_with("# HELP ")
}

pub(super) fn read(
    files: &[Text<'_>],
    chosen: &[(String, String)],
) -> Result<Counted, CountersError> {
    let mut notes = Vec::new();
    let (last, first) = match files {
        [one] => {
            let words = "One dump counts everything since the server started, warm-up and other \
                people's requests too; two dumps, the earlier first, count what was between them.";
            notes.push(("since-start", words.to_owned()));
            (one, None)
        }
        [earlier, later] => (later, Some(earlier)),
        _ => {
            return Err(CountersError::Together(format!(
                "{} dumps of Prometheus are given; give one, or an earlier and a later one",
                files.len()
            )));
        }
    };
    let mut series = parsed(last)?;
    if let Some(earlier) = first {
        subtract(&mut series, &parsed(earlier)?, earlier, last)?;
    }
    series.retain(|(_, labels), _| {
        let fits = |(key, value): &(String, String)| labels.get(key) == Some(value);
        chosen.iter().all(fits)
    });
    let rounds = summed(&series, chosen).map_err(|message| last.refused(message))?;
    for label in ["engine", "instance"] {
        let values: BTreeSet<_> = values(&series, label).collect();
        if values.len() > 1 {
            notes.push((
                "summed",
                format!(
                    "{} {label}s are counted together; --where {label}={} takes one.",
                    values.len(),
                    values.first().copied().unwrap_or_default()
                ),
            ));
        }
    }
    Ok(Counted {
        clusters: vec![rounds],
        notes,
        ..Counted::of(Source::Prometheus)
    })
}

/// All values of a label.
fn values<'a>(series: &'a Series, label: &'a str) -> impl Iterator<Item = &'a str> {
    series
        .keys()
        .filter_map(move |(_, labels)| labels.get(label).map(String::as_str))
}

fn parsed(file: &Text<'_>) -> Result<Series, CountersError> {
    let mut series = Series::new();
    let mut means = false;
    for (index, line) in file.text.lines().enumerate() {
        let line = line.trim();
        let name = line.split(['{', ' ', '\t']).next().unwrap_or_default();
        means |= name.ends_with(MEANS);
        if line.starts_with('#') || !name.contains(COMMON) || name.ends_with("_created") {
            continue;
        }
        let read =
            one(line).map_err(|message| file.refused(format!("line {}: {message}", index + 1)))?;
        let (labels, value) = read;
        let name = name.to_owned();
        if series.insert((name, labels), value).is_some() {
            let message = "is there twice with the same labels; give one dump a file";
            return Err(file.refused(format!("line {}: {message}", index + 1)));
        }
    }
    if series.is_empty() && means {
        return Err(file.refused(
            "has SGLang's gauges alone, which are means of the last moments: the number of drafts \
             is not counted, so no acceptance length of a run follows; log the text and its two \
             log-probabilities for `specgap length`",
        ));
    }
    if series.is_empty() {
        return Err(file.refused(format!(
            "has no counter {COMMON}drafts: the server has not drafted, or speculative decoding is \
             off"
        )));
    }
    // Some exporters write a counter under both names.
    let both: Vec<_> = series
        .keys()
        .filter(|(name, labels)| series.contains_key(&(format!("{name}_total"), labels.clone())))
        .cloned()
        .collect();
    for key in both {
        series.remove(&key);
    }
    Ok(series)
}

/// The labels and the value of a line, `name{a="b"} 3.0 1700000000`.
fn one(line: &str) -> Result<(BTreeMap<String, String>, f64), String> {
    let mut labels = BTreeMap::new();
    let rest = match line.split_once('{') {
        None => line.split_once([' ', '\t']).map_or("", |(_, rest)| rest),
        Some((_, mut rest)) => loop {
            rest = rest.trim_start_matches([',', ' ']);
            if let Some(behind) = rest.strip_prefix('}') {
                break behind;
            }
            let broken = || "labels are broken; they are {name=\"value\",..}".to_owned();
            let (key, behind) = rest.split_once("=\"").ok_or_else(broken)?;
            let mut value = String::new();
            let mut letters = behind.char_indices();
            let end = loop {
                match letters.next().ok_or_else(broken)? {
                    (at, '"') => break at,
                    (_, '\\') => value.push(letters.next().ok_or_else(broken)?.1),
                    (_, letter) => value.push(letter),
                }
            };
            labels.insert(key.trim().to_owned(), value);
            rest = behind.get(end + 1..).unwrap_or_default();
        },
    };
    let value = rest.split_whitespace().next().unwrap_or_default();
    let count: f64 = value
        .parse()
        .map_err(|_| format!("{value:?} is no value of a counter"))?;
    if !(count.is_finite() && count >= 0.0) {
        return Err(format!("is {count}; a counter is finite and from 0 on"));
    }
    if count.fract() != 0.0 {
        return Err(format!(
            "is {count}; rounds and tokens are whole: give the counters themselves"
        ));
    }
    Ok((labels, count))
}

/// Subtracts, so that `later` has what was counted between two dumps.
fn subtract(
    later: &mut Series,
    earlier: &Series,
    first: &Text<'_>,
    last: &Text<'_>,
) -> Result<(), CountersError> {
    for ((name, labels), before) in earlier {
        let now = later.get_mut(&(name.clone(), labels.clone()));
        let fell = |now: &str| {
            let at = labels.iter().map(|(key, value)| format!("{key}={value}"));
            let at = at.collect::<Vec<_>>().join(",");
            last.refused(format!(
                "{name}{{{at}}} is {now}, and was {before} in {}: the server started again between \
                 the two, or they are in the wrong order; take both from one life of the server, \
                 the earlier first",
                first.name
            ))
        };
        match now {
            None if *before > 0.0 => return Err(fell("missing")),
            None => {}
            Some(now) if *now < *before => return Err(fell(&now.to_string())),
            Some(now) => *now -= before,
        }
    }
    Ok(())
}

/// The sums over all labels but the place.
fn summed(series: &Series, chosen: &[(String, String)]) -> Result<Rounds, String> {
    if series.is_empty() {
        let wanted = chosen.iter().map(|(key, value)| format!("{key}={value}"));
        return Err(format!(
            "no counter has {}; see the labels in the file",
            wanted.collect::<Vec<_>>().join(" and ")
        ));
    }
    for label in ["model_name", "model"] {
        let names: BTreeSet<_> = values(series, label).collect();
        if names.len() > 1 {
            let names: Vec<_> = names.into_iter().collect();
            return Err(format!(
                "counts several models ({}); choose one: ⟨where {label}={}⟩",
                names.join(", "),
                names.first().copied().unwrap_or_default()
            ));
        }
    }
    let prefixes: BTreeSet<&str> = series
        .keys()
        .filter_map(|(name, _)| Some(name.split_once(COMMON)?.0))
        .collect();
    if prefixes.len() > 1 {
        let names: Vec<_> = prefixes.into_iter().collect();
        return Err(format!(
            "has counters of several servers ({}); give one server a file",
            names.join(", ")
        ));
    }
    let (mut rounds, mut drafted, mut accepted) = (None, None, None);
    let mut places = Vec::new();
    for ((name, labels), count) in series {
        let name = name.split_once(COMMON).map_or("", |(_, what)| what);
        let sum = match name.strip_suffix("_total").unwrap_or(name) {
            "drafts" => &mut rounds,
            "draft_tokens" => &mut drafted,
            "accepted_tokens" => &mut accepted,
            "accepted_tokens_per_pos" => {
                let position = labels.get("position").or_else(|| labels.get("pos"));
                let position = position.ok_or("accepted_tokens_per_pos has no label position")?;
                *place(&mut places, position)? += count;
                continue;
            }
            _ => continue,
        };
        *sum = Some(sum.unwrap_or(0.0) + count);
    }
    let rounds = rounds.ok_or_else(|| {
        format!(
            "lacks the number of drafts, {COMMON}drafts: acceptance lengths are accepted tokens by \
             drafts"
        )
    })?;
    let reached = (!places.is_empty()).then_some(places);
    let sum = |places: &Vec<f64>| places.iter().sum();
    let accepted = accepted.or_else(|| reached.as_ref().map(sum));
    let accepted = accepted.ok_or_else(|| format!("lacks {COMMON}accepted_tokens"))?;
    Ok(Rounds {
        rounds,
        drafted,
        accepted,
        reached,
        steps: None,
    })
}
