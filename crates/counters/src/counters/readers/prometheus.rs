//! Counters of servers, as Prometheus reads them.
//!
//! Looked up in vLLM (`vllm/v1/spec_decode/metrics.py` at ee4ceaae) and in llama.cpp's server as of
//! b10902, which has the same four names behind `llamacpp:`. TensorRT-LLM counts what it drafted and
//! accepted at each `token_position`; SGLang 0.5.23 its verifying calls, beside all generated tokens;
//! MAX observes each batch's rate by position, in percent. A client of Prometheus writes `_total`
//! behind a counter's name, and may write `_created` beside it, which is a time.

use super::read::{Text, place};
use crate::counters::counted::{Counted, CountersError, Rounds, Source};
use std::collections::{BTreeMap, BTreeSet};

/// What all names have.
const COMMON: &str = "spec_decode_num_";

/// SGLang's count of rounds, and TensorRT-LLM's counts by place.
const CALLS: &str = "spec_verify_calls";
const TRIED: &str = "spec_decode_drafted_tokens";
const ACCEPTED: &str = "spec_decode_accepted_tokens";

/// MAX's histogram of batches' rates, in percent.
const RATES: &str = "spec_decode_acceptance_rate_per_position";

/// Names of series that are read; SGLang's own for tokens and requests are only beside its calls.
const READ: [&str; 7] = [
    COMMON,
    CALLS,
    TRIED,
    ACCEPTED,
    RATES,
    "sglang:generation_tokens",
    "sglang:num_requests",
];

/// Tells whether a series is read.
fn is_read(name: &str) -> bool {
    let is_bucket = name.ends_with("_bucket");
    READ.iter().any(|own| name.contains(own)) && !name.ends_with("_created") && !is_bucket
}

/// Gauges of SGLang, which are means of the last second and no counts.
const MEANS: &str = "spec_accept_length";

/// One line: a counter's name, its labels and its value.
type Series = BTreeMap<(String, BTreeMap<String, String>), f64>;

pub(super) fn is_it(text: &str) -> bool {
    let counter = |line: &str| {
        let name = line.split(['{', ' ']).next().unwrap_or_default();
        is_read(name) || name.ends_with(MEANS)
    };
    text.lines().any(|line| counter(line.trim_start())) || text.trim_start().starts_with("# HELP ")
}

pub(super) fn read(
    files: &[Text<'_>],
    chosen: &[(String, String)],
) -> Result<Counted, CountersError> {
    let mut read = Counted::of(Source::Prometheus, Vec::new());
    let (last, first) = match files {
        [one] => {
            let words = "One dump counts everything since the server started, warm-up and other \
                people's requests too; two dumps, the earlier first, count what was between them.";
            read.note("since-start", words);
            (one, None)
        }
        [earlier, later] => (later, Some(earlier)),
        _ => {
            let count = files.len();
            return Err(CountersError::Together(format!(
                "{count} dumps of Prometheus are given; give one, or an earlier and a later one"
            )));
        }
    };
    let mut series = parsed(last)?;
    if let Some(earlier) = first {
        refuse_restart(earlier, last)?;
        subtract(&mut series, &parsed(earlier)?, earlier, last)?;
    }
    series.retain(|(_, labels), _| {
        let fits = |(key, value): &(String, String)| labels.get(key) == Some(value);
        chosen.iter().all(fits)
    });
    let rounds = summed(&series, chosen).map_err(|message| last.refused(message))?;
    let has = |name: &str| series.keys().any(|(own, _)| own.contains(name));
    read.rates_alone = has(RATES) && !has(COMMON);
    if read.rates_alone {
        let words = "MAX observes each batch's rate, so that these are means over batches, large and small \
            alike, and no counts: nothing is told of lengths that did not run.";
        read.note("rates-alone", words);
    }
    if has(CALLS) {
        let words = "SGLang counts calls, and tokens of all requests: accepted drafts are tokens less calls \
            less the prompt's own token of each request, and what a text cuts off at its end is not in \
            them. K and places are not counted; meta_info of /generate has them by request.";
        read.note("by-tokens", words);
    }
    for label in ["engine", "instance"] {
        let values: BTreeSet<_> = values(&series, label).collect();
        if values.len() > 1 {
            let (count, first) = (values.len(), values.first().copied().unwrap_or_default());
            let words = format!(
                "{count} {label}s are counted together; --where {label}={first} takes one."
            );
            read.note("summed", words);
        }
    }
    read.clusters.push(rounds);
    Ok(read)
}

/// All values of a label.
fn values<'a>(series: &'a Series, label: &'a str) -> impl Iterator<Item = &'a str> {
    let labels = series
        .keys()
        .filter_map(move |(_, labels)| labels.get(label));
    labels.map(String::as_str)
}

fn parsed(file: &Text<'_>) -> Result<Series, CountersError> {
    let mut series = Series::new();
    let mut means = false;
    for (index, line) in file.text.lines().enumerate() {
        let line = line.trim();
        let name = line.split(['{', ' ', '\t']).next().unwrap_or_default();
        means |= name.ends_with(MEANS);
        if line.starts_with('#') || !is_read(name) {
            continue;
        }
        let read = one(line).map_err(|message| file.refused_at(index, message));
        let (labels, value) = read?;
        if series.insert((name.to_owned(), labels), value).is_some() {
            let message = "is there twice with the same labels; give one dump a file";
            return Err(file.refused_at(index, message));
        }
    }
    if means && !series.keys().any(|(name, _)| name.contains("spec_")) {
        return Err(file.refused(
            "has SGLang's gauges alone, which are means of the last moments: the number of drafts \
             is not counted, so no acceptance length of a run follows; newer servers count \
             sglang:spec_verify_calls_total, and meta_info of /generate has the rounds of each request",
        ));
    }
    if series.is_empty() {
        return Err(file.refused(format!(
            "has no counter {COMMON}drafts: the server has not drafted, or speculative decoding is off"
        )));
    }
    // Some exporters write a counter under both names.
    let totals: BTreeSet<_> = series.keys().cloned().collect();
    series.retain(|(name, labels), _| !totals.contains(&(format!("{name}_total"), labels.clone())));
    Ok(series)
}

/// The labels and the value of a line, `name{a="b"} 3.0 1700000000`.
fn one(line: &str) -> Result<(BTreeMap<String, String>, f64), String> {
    let mut labels = BTreeMap::new();
    let rest = match line.split_once('{') {
        None => line.split_once([' ', '\t']).map_or("", |(_, rest)| rest),
        Some((_, mut rest)) => loop {
            rest = rest.trim_start_matches([',', ' ', '\t']);
            if let Some(behind) = rest.strip_prefix('}') {
                break behind;
            }
            let broken = || "labels are broken; they are {name=\"value\",..}".to_owned();
            let (key, behind) = rest.split_once('=').ok_or_else(broken)?;
            let behind = behind.trim_start().strip_prefix('"').ok_or_else(broken)?;
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
    let count = value.parse::<f64>();
    let count = count.map_err(|_| format!("{value:?} is no value of a counter"))?;
    if !(count.is_finite() && count >= 0.0) || value.is_empty() {
        return Err(format!("is {count}; a counter is finite and from 0 on"));
    }
    if count.fract() != 0.0 && !line.contains(RATES) {
        return Err(format!(
            "is {count}; rounds and tokens are whole: give the counters themselves"
        ));
    }
    Ok((labels, count))
}

/// Labels with their values.
fn joined<'a>(labels: impl IntoIterator<Item = (&'a String, &'a String)>, by: &str) -> String {
    let labels = labels
        .into_iter()
        .map(|(key, value)| format!("{key}={value}"));
    labels.collect::<Vec<_>>().join(by)
}

/// Refuses dumps that say that the server, or a counter, began at different times.
fn refuse_restart(earlier: &Text<'_>, later: &Text<'_>) -> Result<(), CountersError> {
    let starts = |file: &Text<'_>| -> BTreeMap<String, f64> {
        let begins = |line: &&str| {
            let name = line.split(['{', ' ', '\t']).next().unwrap_or_default();
            name == "process_start_time_seconds"
                || name.contains("spec_") && name.ends_with("_created")
        };
        let lines = file.text.lines().map(str::trim).filter(begins);
        let series = lines.filter_map(|line| {
            let end = line
                .rfind('}')
                .map_or_else(|| line.find([' ', '\t']), |at| Some(at + 1))?;
            let (name, rest) = line.split_at(end);
            Some((
                name.to_owned(),
                rest.split_whitespace().next()?.parse().ok()?,
            ))
        });
        series.collect()
    };
    let before = starts(earlier);
    for (name, now) in starts(later) {
        let differs = |was: &&f64| **was != now;
        if let Some(was) = before.get(&name).filter(differs) {
            return Err(later.refused(format!(
                "{name} is {now}, and was {was} in {}: the server started again between the two; take both \
                 from one life of the server",
                earlier.name
            )));
        }
    }
    Ok(())
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
            let at = joined(labels, ",");
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
        let wanted = joined(chosen.iter().map(|(key, value)| (key, value)), " and ");
        return Err(format!(
            "no counter has {wanted}; see the labels in the file"
        ));
    }
    for label in ["model_name", "model"] {
        let names: BTreeSet<_> = values(series, label).collect();
        if names.len() > 1 {
            let names: Vec<_> = names.into_iter().collect();
            let (all, first) = (names.join(", "), names.first().copied().unwrap_or_default());
            return Err(format!(
                "counts several models ({all}); choose one: ⟨where {label}={first}⟩"
            ));
        }
    }
    let prefixes = series.keys();
    let prefixes = prefixes.filter_map(|(name, _)| Some(name.split_once("spec_")?.0));
    let prefixes: BTreeSet<&str> = prefixes.collect();
    if prefixes.len() > 1 {
        let names = prefixes.into_iter().collect::<Vec<_>>().join(", ");
        let words = "give one server a file";
        return Err(format!(
            "has counters of several servers ({names}); {words}"
        ));
    }
    let other = calls(series).or_else(|| rates(series).transpose());
    if let Some(other) = other.or_else(|| by_place_tried(series).transpose()) {
        return other;
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
    Ok(Rounds::new(rounds, drafted, accepted, reached))
}

/// The sum of a counter over all labels; none where it is not there.
fn sum(series: &Series, what: &str) -> Option<f64> {
    let of = series.iter().filter(|((name, _), _)| name.contains(what));
    of.map(|(_, count)| *count).reduce(|sum, count| sum + count)
}

/// The sums of a counter by the place in a round.
fn by_place(series: &Series, what: &str) -> Result<Vec<f64>, String> {
    let mut places = Vec::new();
    for ((_, labels), count) in series.iter().filter(|((name, _), _)| name.contains(what)) {
        let names = ["token_position", "position", "pos"];
        let position = names.iter().find_map(|name| labels.get(*name));
        let position = position.ok_or_else(|| format!("{what} has no label position"))?;
        *place(&mut places, position)? += count;
    }
    Ok(places)
}

/// SGLang's calls, which are rounds of unknown length.
fn calls(series: &Series) -> Option<Result<Rounds, String>> {
    let rounds = sum(series, CALLS)?;
    let tokens = sum(series, "sglang:generation_tokens");
    let of = |tokens: f64| {
        let accepted = tokens - sum(series, "sglang:num_requests").unwrap_or(0.0) - rounds;
        if accepted < 0.0 {
            return Err(format!(
                "counts {rounds} calls and only {tokens} tokens; give two dumps, between which all \
                 requests had drafts"
            ));
        }
        Ok(Rounds::new(rounds, None, accepted, None))
    };
    let lacks =
        || "lacks sglang:generation_tokens_total, which the tokens of its calls follow from";
    Some(tokens.ok_or_else(|| lacks().to_owned()).and_then(of))
}

/// TensorRT-LLM's counts of what was tried at each place.
fn by_place_tried(series: &Series) -> Result<Option<Rounds>, String> {
    let tried = by_place(series, TRIED)?;
    let Some(&rounds) = tried.first() else {
        return Ok(None);
    };
    let reached = by_place(series, ACCEPTED)?;
    for (at, count) in tried.iter().enumerate().skip(1) {
        let before = tried[at - 1];
        if *count > before {
            return Err(format!(
                "{TRIED} is {count} at position {at}, and {before} before it; no later place is drafted more \
                 often: give the counters of one server"
            ));
        }
    }
    for (at, count) in reached.iter().enumerate() {
        let drafted = tried.get(at).copied().unwrap_or(0.0);
        if *count > drafted {
            return Err(format!(
                "{ACCEPTED} is {count} at position {at}, and only {drafted} were drafted there; give both \
                 of one time"
            ));
        }
    }
    let (drafted, accepted) = (tried.iter().sum(), reached.iter().sum());
    let all = Rounds::new(rounds, Some(drafted), accepted, Some(reached));
    Ok(Some(all))
}

/// MAX's means over batches of the rates at each place: one round stands for all.
fn rates(series: &Series) -> Result<Option<Rounds>, String> {
    let sums = by_place(series, &format!("{RATES}_sum"))?;
    let counts = by_place(series, &format!("{RATES}_count"))?;
    if sums.is_empty() {
        return Ok(None);
    }
    let of = |(place, &sum): (usize, &f64)| {
        let count = counts.get(place).copied().filter(|&count| count > 0.0);
        let count =
            count.ok_or_else(|| format!("{RATES}_count has nothing at position {place}"))?;
        let rate = sum / count / 100.0;
        (rate <= 1.0).then_some(rate).ok_or_else(|| {
            format!("{RATES}: is {rate} at position {place}; a rate is at most 100 percent")
        })
    };
    let reached: Vec<f64> = sums.iter().enumerate().map(of).collect::<Result<_, _>>()?;
    let accepted = reached.iter().sum();
    Ok(Some(Rounds::new(1.0, None, accepted, Some(reached))))
}
