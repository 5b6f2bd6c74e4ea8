//! Records that tools write into JSON, each told by its own fields, wherever it stands in a document.

use super::json::{Document, documents, histogram, number, numbers};
use super::read::{self, Record, Text};
use super::requests;
use crate::counters::counted::{Counted, CountersError, MOST_DRAFTS, Rounds, Source, Step};
use serde_json::{Map, Value};

type Fields = Map<String, Value>;

/// A record of a tool.
struct Form {
    source: Source,
    /// The fields that tell it: one of each.
    marks: &'static [&'static [&'static str]],
    /// Whether it is of one request.
    by_request: bool,
    read: fn(&Fields) -> Result<Record, String>,
}

/// Records of one request or of a whole run; their source, the fields that tell them, and the reader.
macro_rules! forms {
    (@request) => { true };
    (@whole) => { false };
    ($(#[$about:meta])+ $($kind:ident $source:ident by $marks:expr, $read:expr;)+) => {
        $(#[$about])+
        const FORMS: &[Form] = &[$(Form {
            source: Source::$source,
            marks: $marks,
            by_request: forms!(@$kind),
            read: $read,
        }),+];
    };
}

forms! {
    /// All forms; the first whose fields are there is taken.
    ///
    /// Looked up: vLLM 0.30's page on acceptance metrics by request; SGLang 0.5.23's `meta_info` and `sglext`,
    /// `benchmark/bench_serving`, and the open pull request 34814, whose `speculative_decoding_stats` list what each
    /// round verified and accepted; TensorRT-LLM's `executor/types.h` (`SpecDecodingStats`) and its choice
    /// blocks as aiperf reads them; llama.cpp's server as of b10902 and mlx-vlm, which has rounds beside the
    /// same names; ATOM's `/debug/mtp_stats`; MLC's `spec_decode` metrics.
    request SglangRequests by &[&["verify_lengths"], &["accept_lengths"]], requests::verified;
    request TensorrtLlm by &[&["acceptance_histogram"], &["total_draft_tokens"]], requests::request;
    request VllmRequests by &[&["acceptance_histogram", "per_step_accepted"]], requests::request;
    request SglangRequests by &[&["spec_verify_ct"]], sglang;
    request MlxVlm by &[&["draft_rounds"], &["draft_n_accepted"]], |fields| {
        sums(fields, ["draft_rounds", "draft_n", "draft_n_accepted"])
    };
    request LlamaCpp by &[&["draft_n"], &["draft_n_accepted"]], llama_cpp;
    whole TensorrtLlm by &[&["numDraftTokens"], &["numRequestsWithDraftTokens"]], |fields| {
        let names = ["numRequestsWithDraftTokens", "numDraftTokens", "numAcceptedTokens"];
        with_mean(sums(fields, names)?, fields, "acceptanceLength")
    };
    request TensorrtLlm by &[&["total_accepted_draft_tokens"], &["total_draft_tokens"]], |_| {
        Err(
            "lacks the number of rounds: these metrics count tokens alone; \
             specDecodingStats.numRequestsWithDraftTokens of GET /metrics has it, and \
             trtllm_spec_decode_drafted_tokens_total of Prometheus"
                .to_owned(),
        )
    };
    whole Atom by &[&["distribution"], &["total_draft_tokens"]], |fields| {
        let counts = histogram(fields, "distribution")?.unwrap_or_default();
        let drafted = number(fields, "total_draft_tokens")?;
        let record = Record::of(Rounds::of_histogram(&counts, drafted));
        with_mean(record, fields, "average_tokens_per_forward")
    };
    whole Mlc by &[&["draft_count"], &["accept_count"]], mlc;
    whole SglangBench by &[&["accept_length"]], sglang_bench;
}

impl Form {
    fn of(fields: &Fields) -> Option<&'static Self> {
        let has = |mark: &&[&str]| mark.iter().any(|name| fields.contains_key(*name));
        FORMS.iter().find(|form| form.marks.iter().all(has))
    }
}

/// Records are not looked for deeper than this.
const DEEPEST: usize = 6;

/// Finds the records of a document, with their places.
fn find<'a>(
    value: &'a Value,
    place: String,
    depth: usize,
    found: &mut Vec<(String, &'a Fields, &'static Form)>,
) {
    match value {
        Value::Object(fields) => {
            let form = Form::of(fields);
            // A benchmark's mean stands above the requests that it is of, where these are listed.
            let is_whole = form.is_none_or(|form| form.source == Source::SglangBench);
            let before = found.len();
            if is_whole && depth < DEEPEST {
                for (name, value) in fields.iter().filter(|(_, value)| !value.is_string()) {
                    let dot = if place.is_empty() { "" } else { "." };
                    find(value, format!("{place}{dot}{name}"), depth + 1, found);
                }
            }
            if let Some(form) = form.filter(|_| found.len() == before) {
                found.push((place, fields, form));
            }
        }
        Value::Array(entries) if depth < DEEPEST => {
            // Log-probabilities of tokens are lists of numbers, and long.
            let entries = entries.iter().enumerate();
            for (at, entry) in entries.filter(|(_, entry)| entry.is_object()) {
                find(entry, format!("{place}[{at}]"), depth + 1, found);
            }
        }
        _ => {}
    }
}

/// Tells which tool the documents are of.
pub(super) fn told(file: &Text<'_>) -> Result<Source, CountersError> {
    for document in documents(file) {
        let Document { value, .. } = document?;
        let Value::Object(fields) = &value else {
            continue;
        };
        let of_aiperf = [
            "pooled_spec_decode_acceptance_histogram",
            "spec_decode_acceptance",
            "total_spec_decode_steps",
        ];
        if of_aiperf.iter().any(|name| fields.contains_key(*name)) {
            return Ok(Source::Aiperf);
        }
        if fields.keys().any(|name| name.starts_with("spec_decode_")) {
            return Ok(Source::VllmBench);
        }
        let mut found = Vec::new();
        find(&value, String::new(), 0, &mut found);
        if let Some((_, _, form)) = found.first() {
            return Ok(form.source);
        }
    }
    let tools = Source::ALL.map(Source::words);
    Err(file.refused(format!(
        "has no counts of speculative decoding: no metrics.speculative_decoding (vLLM has it with \
         --per-request-spec-decode-metrics detailed), no spec_verify_ct (SGLang), no \
         spec_decode_num_drafts (vllm bench serve); these are read: {}",
        tools.join("; ")
    )))
}

/// What was read so far.
struct Reading {
    counted: Counted,
    without: usize,
    /// Sums, where records are no requests.
    whole: Vec<Rounds>,
    /// The last record of a stream that is not over, with the rounds seen on the way.
    open: Option<Open>,
}

#[derive(Default)]
struct Open {
    stream: usize,
    record: Record,
    group: Option<String>,
    steps: Vec<Step>,
    seen: [f64; 2],
}

pub(super) fn read(files: &[Text<'_>], source: Source) -> Result<Counted, CountersError> {
    let mut reading = Reading {
        counted: Counted::of(source, Vec::new()),
        without: 0,
        whole: Vec::new(),
        open: None,
    };
    for file in files {
        for document in documents(file) {
            let added = reading.add(document?);
            added.map_err(|message| file.refused(message))?;
        }
        reading.close().map_err(|message| file.refused(message))?;
    }
    let Reading {
        mut counted,
        without,
        whole,
        ..
    } = reading;
    if !whole.is_empty() {
        counted.clusters.push(Rounds::sum(&whole));
        counted.groups.clear();
    }
    if counted.clusters.is_empty() {
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
        counted.note("not-counted", words);
    }
    Ok(counted)
}

impl Reading {
    fn add(&mut self, document: Document) -> Result<(), String> {
        let Document {
            place,
            value,
            stream,
        } = document;
        let mut found = Vec::new();
        find(&value, String::new(), 0, &mut found);
        found.retain(|(_, _, form)| {
            form.source == self.counted.source || self.counted.source == Source::Aiperf
        });
        if found.is_empty() {
            // Chunks of a stream say it once.
            self.without += usize::from(stream.is_none());
            return Ok(());
        }
        let group = group(&value).map_err(|message| format!("{place}: {message}"))?;
        for (field, fields, form) in found {
            let at = |message: String| {
                let dot = if field.is_empty() { "" } else { "." };
                format!("{place}: {field}{dot}{message}")
            };
            let record = (form.read)(fields).map_err(at)?;
            match stream {
                Some(stream) => self.of_stream(stream, record, group.clone())?,
                None => (self.take(record, group.clone(), form.by_request)).map_err(at)?,
            }
        }
        Ok(())
    }

    /// A chunk of a stream, whose counts are of everything before it: the last one stands, and what
    /// each adds is a round.
    fn of_stream(
        &mut self,
        stream: usize,
        record: Record,
        group: Option<String>,
    ) -> Result<(), String> {
        let now = [record.rounds.drafted.unwrap_or(0.0), record.rounds.accepted];
        let fell = self.open.as_ref().is_some_and(|open| {
            open.stream != stream || open.seen[0] > now[0] || open.seen[1] > now[1]
        });
        if fell {
            self.close()?;
        }
        let open = self.open.get_or_insert_with(|| Open {
            stream,
            ..Open::default()
        });
        let [drafted, accepted] = [now[0] - open.seen[0], now[1] - open.seen[1]];
        if drafted > 0.0 && drafted <= MOST_DRAFTS as f64 && accepted <= drafted {
            open.steps.push(Step {
                drafted: drafted as usize,
                accepted: accepted as usize,
            });
        }
        open.seen = now;
        open.group = group;
        open.record = record;
        Ok(())
    }

    /// Takes what a stream came to.
    fn close(&mut self) -> Result<(), String> {
        let Some(mut open) = self.open.take() else {
            return Ok(());
        };
        if self.counted.source == Source::LlamaCpp {
            let listed = Rounds::of_steps(open.steps);
            let tokens = open.record.rounds.rounds + open.record.rounds.accepted;
            let said = (open.record.rounds.drafted, open.record.rounds.accepted);
            if (listed.drafted, listed.accepted) == said {
                // Tokens of steps without drafts stand between rounds, where is not known.
                let steps = listed
                    .steps
                    .clone()
                    .filter(|_| tokens <= listed.rounds + listed.accepted + 1.0);
                open.record = Record::of(Rounds { steps, ..listed });
            }
        }
        self.take(open.record, open.group, true)
    }

    fn take(&mut self, record: Record, group: Option<String>, request: bool) -> Result<(), String> {
        let counted = &mut self.counted;
        match (counted.length, record.length) {
            (Some(one), Some(other)) if one != other => {
                return Err(format!(
                    "num_spec_tokens: is {other}, and {one} in others; give one length at a time"
                ));
            }
            (_, Some(length)) => counted.length = Some(length),
            _ => {}
        }
        if let Some((name, words)) = record.note
            && !counted.notes.iter().any(|(own, _)| *own == name)
        {
            counted.note(name, words);
        }
        counted.by_request = request;
        counted.rates_alone |= record.rates_alone;
        if record.rates_alone && !self.whole.is_empty() {
            return Err("has the rate of a second run; give one run at a time".to_owned());
        }
        record.rounds.check()?;
        if request {
            counted.clusters.push(record.rounds);
            counted.groups.push(group);
        } else {
            self.whole.push(record.rounds);
        }
        Ok(())
    }
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

fn need(fields: &Fields, name: &str) -> Result<f64, String> {
    number(fields, name)?.ok_or_else(|| format!("{name}: is missing or null"))
}

/// The first of some names that is there: tools rename their fields.
fn either(fields: &Fields, names: [&str; 2]) -> Result<Option<f64>, String> {
    Ok(number(fields, names[0])?.or(number(fields, names[1])?))
}

/// Rounds, drafted and accepted tokens by their names.
fn sums(fields: &Fields, [rounds, drafted, accepted]: [&str; 3]) -> Result<Record, String> {
    let (rounds, drafted) = (need(fields, rounds)?, number(fields, drafted)?);
    let accepted = need(fields, accepted)?;
    Ok(Record::of(Rounds::new(rounds, drafted, accepted, None)))
}

/// The same record, if its counts come to the mean that it says.
fn with_mean(record: Record, fields: &Fields, name: &str) -> Result<Record, String> {
    read::agree_on_mean(name, number(fields, name)?, &record.rounds)?;
    Ok(record)
}

/// Its mean is the completion's tokens by rounds, or of later versions one more than accepted by rounds. Of
/// tokens, an end is cut off and the prompt's own is among them.
fn sglang(fields: &Fields) -> Result<Record, String> {
    let (record, name) = (sglang_counts(fields)?, "spec_accept_length");
    let counts = &record.rounds;
    let tokens = number(fields, "completion_tokens")?;
    let said = number(fields, name)?.filter(|said| match tokens {
        Some(tokens) => (said - tokens / counts.rounds).abs() > 0.006,
        None => (said - 1.006) * counts.rounds > counts.accepted + 1.0 || *said < 0.994,
    });
    read::agree_on_mean(name, said, counts)?;
    Ok(record)
}

fn sglang_counts(fields: &Fields) -> Result<Record, String> {
    let rounds = need(fields, "spec_verify_ct")?;
    let drafted = either(fields, ["spec_num_proposed_drafts", "spec_draft_token_num"])?;
    let accepted = either(fields, ["spec_num_correct_drafts", "spec_accept_token_num"])?;
    let names = ["spec_correct_drafts_histogram", "spec_accept_histogram"];
    let named = names.into_iter().find(|name| fields.contains_key(*name));
    let name = named.unwrap_or_default();
    let counts = histogram(fields, name)?.filter(|counts| !counts.is_empty());
    if let Some(counts) = counts {
        let one = Rounds::of_histogram(&counts, drafted);
        for (other, said, found) in [
            ("spec_verify_ct", Some(rounds), one.rounds),
            ("spec_num_correct_drafts", accepted, one.accepted),
        ] {
            read::agree(other, said, (&format!("{name} comes"), found), 1e-9)?;
        }
        return Ok(Record::of(one));
    }
    let (accepted, note) = match accepted {
        Some(accepted) => (accepted, None),
        None => {
            let lacks = "spec_num_correct_drafts: is missing, and so is what stands for it";
            let tokens = need(fields, "completion_tokens");
            let tokens = tokens.map_err(|message| format!("{lacks}: {message}"))?;
            let words = "The accepted drafts are the completion's tokens less its rounds: what a text \
                cuts off at its end is not in them, and the prompt's own token is.";
            ((tokens - rounds).max(0.0), Some(("by-tokens", words)))
        }
    };
    let rounds = Rounds::new(rounds, drafted, accepted, None);
    Ok(Record {
        note,
        ..Record::of(rounds)
    })
}

/// Every pass of the target puts out what it accepts and one more token, so that tokens less accepted
/// ones are passes, of which the first is the prompt's.
fn llama_cpp(fields: &Fields) -> Result<Record, String> {
    let accepted = need(fields, "draft_n_accepted")?;
    let tokens = number(fields, "predicted_n")?.ok_or(
        "predicted_n: is missing; without it the number of rounds is not known: ask the server for its \
         timings, stream them (stream = true, timings_per_token = true), or read GET /metrics (--metrics)",
    )?;
    if accepted > tokens {
        return Err(format!(
            "draft_n_accepted: is {accepted}, and predicted_n only {tokens}"
        ));
    }
    let words = "Rounds are passes of the target, tokens less accepted ones: those without drafts are \
        among them, so that rounds with drafts put out at least this. Streamed timings (stream = true, \
        timings_per_token = true) tell rounds apart.";
    let (rounds, drafted) = (
        (tokens - accepted - 1.0).max(0.0),
        number(fields, "draft_n")?,
    );
    Ok(Record {
        note: Some(("passes", words)),
        ..Record::of(Rounds::new(rounds, drafted, accepted, None))
    })
}

fn mlc(fields: &Fields) -> Result<Record, String> {
    let drafted = numbers(fields, "draft_count")?.unwrap_or_default();
    let reached = numbers(fields, "accept_count")?.unwrap_or_default();
    if drafted.len().max(reached.len()) > MOST_DRAFTS {
        return Err(format!("draft_count: has more than {MOST_DRAFTS} places"));
    }
    let rounds = drafted.first().copied().unwrap_or(0.0);
    let (drafted, accepted) = (drafted.iter().sum(), reached.iter().sum());
    let all = Rounds::new(rounds, Some(drafted), accepted, Some(reached));
    Ok(Record::of(all))
}

fn sglang_bench(fields: &Fields) -> Result<Record, String> {
    let length = number(fields, "accept_length")?
        .filter(|&length| length >= 1.0)
        .ok_or("accept_length: is no mean of tokens a round, which is 1 at least; the server had no drafts")?;
    let words = "The result has the mean alone, and no count: nothing follows of other lengths. meta_info of \
        /generate counts each request's rounds by what they accepted.";
    Ok(Record {
        note: Some(("mean-alone", words)),
        rates_alone: true,
        ..Record::of(Rounds::new(1.0, None, length - 1.0, None))
    })
}
