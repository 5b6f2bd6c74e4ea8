//! vLLM: responses of its HTTP server, and dumps of `RequestOutput`.
//!
//! Shapes of `vllm/entrypoints/openai/{chat_completion,completion}/protocol.py`,
//! `vllm/outputs.py` and `vllm/logprobs.py`.

use super::error::Fault;
use super::json::{Entries, LogProb};
use super::lists::{
    Counts, List, Listed, Origin, Text, Vocabulary, check_ids, listed, refuse_collision, row,
};
use super::options::{LogprobsMode, Request};
use super::texts::{InText, Record, said};
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// A response, a dump of one, or two of them under `target` and `draft`.
#[derive(Debug, Deserialize)]
pub(super) struct Response {
    target: Option<Box<Self>>,
    draft: Option<Box<Self>>,
    prompt_id: Option<i64>,
    position: Option<i64>,
    prompt_length: Option<usize>,
    model: Option<String>,
    object: Option<String>,
    choices: Option<Vec<Choice>>,
    outputs: Option<Vec<Output>>,
    output: Option<Vec<Item>>,
    prompt_token_ids: Option<Vec<i64>>,
    prompt_logprobs: Option<Rows>,
    metrics: Option<Metrics>,
}

#[derive(Debug, Default, Deserialize)]
struct Choice {
    logprobs: Option<ChoiceLogprobs>,
    token_ids: Option<Vec<i64>>,
    prompt_logprobs: Option<Rows>,
    prompt_token_ids: Option<Vec<i64>>,
}

#[derive(Debug, Deserialize)]
struct ChoiceLogprobs {
    content: Option<Vec<Content>>,
    tokens: Option<Vec<String>>,
    token_logprobs: Option<Vec<Option<LogProb>>>,
    top_logprobs: Option<Vec<Option<Entries<LogProb>>>>,
}

#[derive(Debug, Deserialize)]
struct Content {
    token: String,
    logprob: LogProb,
    top_logprobs: Vec<Top>,
}

#[derive(Debug, Deserialize)]
struct Top {
    token: String,
    logprob: LogProb,
}

/// An item of `output` in a response of `/v1/responses`.
#[derive(Debug, Deserialize)]
struct Item {
    content: Option<Vec<Part>>,
}

#[derive(Debug, Deserialize)]
struct Part {
    logprobs: Option<Vec<Content>>,
}

/// One sequence of a `RequestOutput`.
#[derive(Debug, Deserialize)]
struct Output {
    token_ids: Vec<i64>,
    logprobs: Option<Rows>,
}

/// `metrics` of a response.
#[derive(Debug, Deserialize)]
struct Metrics {
    speculative_decoding: Option<Speculation>,
}

#[derive(Debug, Deserialize)]
struct Speculation {
    #[serde(default)]
    num_spec_steps: u64,
    #[serde(default)]
    num_draft_tokens: u64,
    #[serde(default)]
    num_accepted_draft_tokens: u64,
}

/// `list[dict[int, Logprob] | None]`, or `FlatLogprobs`.
#[derive(Debug)]
enum Rows {
    Nested(Vec<Option<Entries<Value>>>),
    Flat(Flat),
}

/// `FlatLogprobs`.
#[derive(Debug, Deserialize)]
struct Flat {
    start_indices: Vec<usize>,
    end_indices: Vec<usize>,
    token_ids: Vec<i64>,
    logprobs: Vec<LogProb>,
}

impl<'de> Deserialize<'de> for Rows {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Rows;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list with one object a token, or FlatLogprobs")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Rows, A::Error> {
                Deserialize::deserialize(SeqAccessDeserializer::new(seq)).map(Rows::Nested)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Rows, A::Error> {
                Deserialize::deserialize(MapAccessDeserializer::new(map)).map(Rows::Flat)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// A `Logprob`, or its number alone.
#[derive(Debug)]
struct Value(LogProb);

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Object {
            logprob: LogProb,
        }
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Value;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with a logprob, or a number")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Value, A::Error> {
                let object = Object::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Value(object.logprob))
            }

            fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
                LogProb::new(value).map(Value).map_err(E::custom)
            }

            fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
                self.visit_f64(value as f64)
            }

            fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
                self.visit_f64(value as f64)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl Rows {
    /// The entries of each position, by number; nothing where there are none.
    fn each(self, field: &str, vocabulary: &mut Vocabulary) -> Result<Vec<Option<Listed>>, Fault> {
        match self {
            Self::Nested(rows) => (rows.into_iter().enumerate())
                .map(|(index, row)| {
                    let Some(Entries(entries)) = row else {
                        return Ok(None);
                    };
                    let entries = entries.into_iter().map(|(key, value)| {
                        let refused =
                            |message| Fault::new(format!("{field}[{index}].{key}"), message);
                        let id = (key.parse::<i64>())
                            .map_err(|_| refused("is no token id".to_owned()))?;
                        let id = vocabulary.number(id).map_err(refused)?;
                        Ok((id, value.0.0))
                    });
                    entries.collect::<Result<Vec<_>, Fault>>().map(Some)
                })
                .collect(),
            Self::Flat(flat) => flat.each(field, vocabulary),
        }
    }
}

impl Flat {
    fn each(self, field: &str, vocabulary: &mut Vocabulary) -> Result<Vec<Option<Listed>>, Fault> {
        let (starts, ends) = (&self.start_indices, &self.end_indices);
        let (ids, values) = (self.token_ids.len(), self.logprobs.len());
        for (name, count, other, expected) in [
            ("end_indices", ends.len(), "start_indices", starts.len()),
            ("logprobs", values, "token_ids", ids),
        ] {
            if count != expected {
                return Err(Fault::new(
                    format!("{field}.{name}"),
                    format!("has {count} entries and {other} {expected}"),
                ));
            }
        }
        let rows = starts.iter().zip(ends).enumerate();
        rows.map(|(index, (&start, &end))| {
            let ids = self.token_ids.get(start..end);
            let (Some(ids), Some(values)) = (ids, self.logprobs.get(start..end)) else {
                return Err(Fault::new(
                    format!("{field}.end_indices[{index}]"),
                    format!(
                        "{start}..{end} is no part of the {} entries of token_ids",
                        self.token_ids.len()
                    ),
                ));
            };
            if ids.is_empty() {
                return Ok(None);
            }
            let entries = ids.iter().copied().zip(values.iter().copied());
            let place = |at: usize| format!("{field}.token_ids[{}]", start + at);
            listed(entries, |id| vocabulary.number(id), place).map(Some)
        })
        .collect()
    }
}

impl Record for Response {
    fn both(&mut self) -> (Option<Box<Self>>, Option<Box<Self>>) {
        (self.target.take(), self.draft.take())
    }

    fn place(&self) -> InText {
        [
            self.prompt_id,
            self.position,
            None,
            said(self.prompt_length),
        ]
    }

    fn text(
        self,
        _: Option<i64>,
        request: &Request,
        vocabulary: &mut Vocabulary,
    ) -> Result<Text, Fault> {
        if self
            .object
            .as_deref()
            .is_some_and(|object| object.ends_with(".chunk"))
        {
            return Err(Fault::new(
                "object",
                "is a chunk of a stream; ask without \"stream\": true",
            ));
        }
        let counts = (self.metrics.as_ref())
            .and_then(|metrics| metrics.speculative_decoding.as_ref())
            .map_or(Counts::default(), |counts| Counts {
                drafted: counts.num_draft_tokens,
                accepted: counts.num_accepted_draft_tokens,
                steps: counts.num_spec_steps,
            });
        counts.check([
            "metrics.speculative_decoding.num_draft_tokens",
            "metrics.speculative_decoding.num_accepted_draft_tokens",
            "metrics.speculative_decoding.num_spec_steps",
        ])?;
        let choice = match self.choices {
            None => Choice::default(),
            Some(choices) => the_one("choices", choices)?,
        };
        let output = match self.outputs {
            None => None,
            Some(outputs) => Some(the_one("outputs", outputs)?),
        };
        let items = self.output.unwrap_or_default().into_iter();
        let parts = items.filter_map(|item| item.content).flatten();
        let responses: Vec<_> = parts.filter_map(|part| part.logprobs).collect();
        // Who asks for the prompt's logprobs scores a text that is written already.
        let scored = match (self.prompt_logprobs, choice.prompt_logprobs) {
            (Some(rows), _) => Some(("prompt_logprobs", rows)),
            (None, Some(rows)) => Some(("choices[0].prompt_logprobs", rows)),
            (None, None) => None,
        };
        let (origin, rows, token_field, sampled) = if let Some((field, rows)) = scored {
            let (ids_field, ids) = match (self.prompt_token_ids, choice.prompt_token_ids) {
                (Some(ids), _) => ("prompt_token_ids", ids),
                (None, Some(ids)) => ("choices[0].prompt_token_ids", ids),
                (None, None) => {
                    return Err(Fault::new(
                        "prompt_token_ids",
                        "is missing, so that nothing says which of the listed tokens is the \
                         text's; send \"return_token_ids\": true",
                    ));
                }
            };
            let rows = scored_rows(field, rows, ids_field, &ids, vocabulary)?;
            (Origin::Prompt { length: ids.len() }, rows, ids_field, false)
        } else if let Some(logprobs) = choice.logprobs {
            let rows = logprobs.rows(choice.token_ids, vocabulary)?;
            (Origin::Generated, rows, "choices[0].logprobs", true)
        } else if !responses.is_empty() {
            let content = the_one(RESPONSES, responses)?;
            let rows = chat_rows(RESPONSES, content, vocabulary)?;
            (Origin::Generated, rows, RESPONSES, true)
        } else if let Some(output) = output {
            let rows = output.rows(vocabulary)?;
            (Origin::Generated, rows, "outputs[0].token_ids", true)
        } else {
            return Err(Fault::new(
                "choices[0].logprobs",
                "is missing: there are no rows here; ask with \"logprobs\" (and \
                 \"top_logprobs\"), or score a text with \"prompt_logprobs\"",
            ));
        };
        // Tokens of a prompt go through no sampler, whatever the mode.
        let processed = sampled && request.logprobs_mode == LogprobsMode::Processed;
        Ok(Text {
            origin,
            rows,
            token_field,
            temperature_applied: if processed { request.divisor() } else { 1.0 },
            sampler: processed && request.sampler_truncates(),
            model: self.model,
            counts,
        })
    }
}

/// Where `/v1/responses` has its rows.
const RESPONSES: &str = "output[].content[].logprobs";

/// The only entry of a list.
pub(super) fn the_one<T>(field: &str, entries: Vec<T>) -> Result<T, Fault> {
    let count = entries.len();
    let mut entries = entries.into_iter();
    match (entries.next(), count) {
        (Some(one), 1) => Ok(one),
        _ => Err(Fault::new(
            field,
            format!("has {count} entries; ask for one a request, \"n\": 1"),
        )),
    }
}

/// Rows of a prompt: none at its first token, one at each other.
fn scored_rows(
    field: &str,
    rows: Rows,
    ids_field: &str,
    ids: &[i64],
    vocabulary: &mut Vocabulary,
) -> Result<Vec<(u32, List)>, Fault> {
    let rows = rows.each(field, vocabulary)?;
    if rows.len() != ids.len() {
        return Err(Fault::new(
            field,
            format!(
                "has {} rows and {ids_field} {} tokens",
                rows.len(),
                ids.len()
            ),
        ));
    }
    let rows = rows.into_iter().zip(ids).enumerate().skip(1);
    rows.map(|(index, (entries, &id))| {
        let field = || format!("{field}[{index}]");
        let entries = entries.ok_or_else(|| {
            Fault::new(
                field(),
                "is null; only the first token of a prompt has no row",
            )
        })?;
        let token = (vocabulary.number(id))
            .map_err(|message| Fault::new(format!("{ids_field}[{index}]"), message))?;
        if !entries.iter().any(|(listed, _)| *listed == token) {
            return Err(Fault::new(
                field(),
                format!("does not list token {token}, which {ids_field} has there"),
            ));
        }
        row(token, entries, None, field)
    })
    .collect()
}

impl Output {
    fn rows(self, vocabulary: &mut Vocabulary) -> Result<Vec<(u32, List)>, Fault> {
        let Some(rows) = self.logprobs else {
            return Err(Fault::new(
                "outputs[0].logprobs",
                "is missing: there are no rows here; set SamplingParams(logprobs=K), or \
                 prompt_logprobs=K to score a text",
            ));
        };
        let rows = rows.each("outputs[0].logprobs", vocabulary)?;
        if rows.len() != self.token_ids.len() {
            return Err(Fault::new(
                "outputs[0].logprobs",
                format!(
                    "has {} rows and token_ids {}",
                    rows.len(),
                    self.token_ids.len()
                ),
            ));
        }
        let rows = rows.into_iter().zip(self.token_ids).enumerate();
        rows.map(|(index, (entries, id))| {
            let field = || format!("outputs[0].logprobs[{index}]");
            let entries = entries.ok_or_else(|| Fault::new(field(), "is null"))?;
            let token = vocabulary
                .number(id)
                .map_err(|message| Fault::new(format!("outputs[0].token_ids[{index}]"), message))?;
            row(token, entries, None, field)
        })
        .collect()
    }
}

impl ChoiceLogprobs {
    fn rows(
        self,
        ids: Option<Vec<i64>>,
        vocabulary: &mut Vocabulary,
    ) -> Result<Vec<(u32, List)>, Fault> {
        let rows = match self.content {
            Some(content) => chat_rows("choices[0].logprobs.content", content, vocabulary)?,
            None => self.completion_rows(vocabulary)?,
        };
        if let Some(ids) = ids
            && vocabulary.texts().is_empty()
        {
            if ids.len() != rows.len() {
                return Err(Fault::new(
                    "choices[0].token_ids",
                    format!("has {} tokens and logprobs {} rows", ids.len(), rows.len()),
                ));
            }
            check_ids("choices[0].token_ids", &ids, &rows, "logprobs")?;
        }
        Ok(rows)
    }

    fn completion_rows(self, vocabulary: &mut Vocabulary) -> Result<Vec<(u32, List)>, Fault> {
        let field = "choices[0].logprobs";
        let missing = |name: &str| {
            Fault::new(
                format!("{field}.{name}"),
                "is missing; a response of /v1/completions with \"logprobs\": K has it",
            )
        };
        let tokens = self.tokens.ok_or_else(|| missing("tokens"))?;
        let own = self
            .token_logprobs
            .ok_or_else(|| missing("token_logprobs"))?;
        let rows = self.top_logprobs.ok_or_else(|| missing("top_logprobs"))?;
        for (name, count) in [("token_logprobs", own.len()), ("top_logprobs", rows.len())] {
            if count != tokens.len() {
                return Err(Fault::new(
                    format!("{field}.{name}"),
                    format!("has {count} entries and tokens {}", tokens.len()),
                ));
            }
        }
        // Python puts tokens of the same text into one entry of a dict before they are
        // sent: then a list is shorter than K, or than K + 1 with the text's own token.
        let counts = rows.iter().flatten().map(|Entries(entries)| entries.len());
        let most = counts.max().unwrap_or(0);
        let mut all = Vec::with_capacity(tokens.len());
        for (index, ((token, own), list)) in tokens.into_iter().zip(own).zip(rows).enumerate() {
            let here = || format!("{field}.top_logprobs[{index}]");
            let (Some(own), Some(Entries(entries))) = (own, list) else {
                return Err(Fault::new(
                    here(),
                    "is null: the row is missing; \"echo\" adds such entries, score a text with \
                     \"prompt_logprobs\" instead",
                ));
            };
            refuse_collision(entries.iter().map(|(token, _)| token.as_str()))
                .map_err(|(_, message)| Fault::new(here(), message))?;
            if !token.starts_with("token_id:") && entries.len() + 1 < most {
                return Err(Fault::new(
                    here(),
                    format!(
                        "has {} tokens where other lists have {most}: tokens of the same text \
                         collide; {}",
                        entries.len(),
                        super::lists::CURE
                    ),
                ));
            }
            let id = vocabulary
                .written(&token)
                .map_err(|message| Fault::new(format!("{field}.tokens[{index}]"), message))?;
            let entries = listed(entries, |token| vocabulary.written(&token), |_| here())?;
            all.push(row(id, entries, Some(own), here)?);
        }
        Ok(all)
    }
}

fn chat_rows(
    field: &str,
    content: Vec<Content>,
    vocabulary: &mut Vocabulary,
) -> Result<Vec<(u32, List)>, Fault> {
    let rows = content.into_iter().enumerate();
    rows.map(|(index, entry)| {
        let here = || format!("{field}[{index}]");
        if entry.top_logprobs.is_empty() {
            return Err(Fault::new(
                format!("{}.top_logprobs", here()),
                "is empty: the row is missing; ask with \"top_logprobs\": K",
            ));
        }
        refuse_collision(entry.top_logprobs.iter().map(|top| top.token.as_str())).map_err(
            |(at, message)| Fault::new(format!("{}.top_logprobs[{at}].token", here()), message),
        )?;
        let id = vocabulary
            .written(&entry.token)
            .map_err(|message| Fault::new(format!("{}.token", here()), message))?;
        let tops = entry.top_logprobs.iter();
        let tops = tops.map(|top| (top.token.as_str(), top.logprob));
        let place = |at: usize| format!("{}.top_logprobs[{at}].token", here());
        let entries = listed(tops, |token| vocabulary.written(token), place)?;
        row(id, entries, Some(entry.logprob), here)
    })
    .collect()
}
