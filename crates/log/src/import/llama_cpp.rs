//! llama.cpp's server: responses of `/completion` with `n_probs`, and of `/v1/chat/completions` with
//! `top_logprobs`.
//!
//! Shapes of `completion_token_output` in `tools/server/server-task.cpp`.

use super::error::Fault;
use super::json::LogProb;
use super::lists::{Counts, Origin, Text, Vocabulary, listed, row};
use super::options::Request;
use super::texts::{InText, Record};
use super::vllm::the_one;
use serde::Deserialize;

/// A response, or two of them under `target` and `draft`.
#[derive(Debug, Deserialize)]
pub(super) struct Response {
    target: Option<Box<Self>>,
    draft: Option<Box<Self>>,
    prompt_id: Option<i64>,
    position: Option<i64>,
    token: Option<i64>,
    model: Option<String>,
    stop: Option<bool>,
    generation_settings: Option<Settings>,
    completion_probabilities: Option<Vec<Entry>>,
    object: Option<String>,
    choices: Option<Vec<Choice>>,
    timings: Option<Timings>,
}

#[derive(Debug, Deserialize)]
struct Settings {
    temperature: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct Choice {
    logprobs: Option<ChoiceLogprobs>,
}

#[derive(Debug, Deserialize)]
struct ChoiceLogprobs {
    content: Option<Vec<Entry>>,
}

#[derive(Debug, Deserialize)]
struct Timings {
    #[serde(default)]
    draft_n: u64,
}

#[derive(Debug, Deserialize)]
struct Entry {
    id: i64,
    logprob: Option<LogProb>,
    top_logprobs: Option<Vec<TopLogprob>>,
    prob: Option<f64>,
    top_probs: Option<Vec<TopProb>>,
}

#[derive(Debug, Deserialize)]
struct TopLogprob {
    id: i64,
    logprob: LogProb,
}

#[derive(Debug, Deserialize)]
struct TopProb {
    id: i64,
    prob: f64,
}

/// Where a completion has its rows, and where a chat.
const FIELD: &str = "completion_probabilities";
const CHAT: &str = "choices[0].logprobs.content";

impl Record for Response {
    fn both(&mut self) -> (Option<Box<Self>>, Option<Box<Self>>) {
        (self.target.take(), self.draft.take())
    }

    fn place(&self) -> InText {
        [self.prompt_id, self.position, self.token, None]
    }

    /// `token` is the text's token where the response is of one step, made to score a
    /// prefix; what the server drew itself counts for nothing then.
    fn text(
        self,
        token: Option<i64>,
        request: &Request,
        vocabulary: &mut Vocabulary,
    ) -> Result<Text, Fault> {
        let of_chat = (self.object).is_some_and(|object| object.ends_with(".chunk"));
        if self.stop == Some(false) || of_chat {
            let (field, what) = match of_chat {
                true => ("object", "says so"),
                false => ("stop", "is false"),
            };
            let message =
                format!("{what}: this is a chunk of a stream; ask with \"stream\": false");
            return Err(Fault::new(field, message));
        }
        if self.timings.is_some_and(|timings| timings.draft_n > 0) {
            return Err(Fault::new(
                "timings.draft_n",
                "is not 0: the server was speculating, and it has no probabilities of tokens that \
                 come from drafts; score the text with speculation off",
            ));
        }
        let none = |field, ask: &str| {
            Fault::new(
                field,
                format!("is missing: there are no rows here; ask with {ask}"),
            )
        };
        let (field, entries) = match (self.completion_probabilities, self.choices) {
            (Some(entries), _) => (FIELD, entries),
            (None, Some(choices)) => {
                let logprobs = the_one("choices", choices)?.logprobs;
                let content = logprobs.and_then(|logprobs| logprobs.content);
                let ask = "\"logprobs\": true, \"top_logprobs\": K";
                (CHAT, content.ok_or_else(|| none(CHAT, ask))?)
            }
            (None, None) => return Err(none(FIELD, "\"n_probs\": K")),
        };
        let after = entries.iter().any(|entry| entry.top_probs.is_some());
        if token.is_some() && entries.len() != 1 {
            return Err(Fault::new(
                field,
                format!(
                    "has {} entries where the record names one token; ask with \"n_predict\": 1",
                    entries.len()
                ),
            ));
        }
        let mut rows = Vec::with_capacity(entries.len());
        for (index, entry) in entries.into_iter().enumerate() {
            let here = |name: &str| format!("{field}[{index}]{name}");
            let token = match token {
                Some(token) => {
                    (vocabulary.number(token)).map_err(|message| Fault::new("token", message))?
                }
                None => (vocabulary.number(entry.id))
                    .map_err(|message| Fault::new(here(".id"), message))?,
            };
            let (name, top, own) = match (entry.top_logprobs, entry.top_probs) {
                (Some(top), None) if !after => {
                    let top = top.into_iter().map(|top| (top.id, top.logprob));
                    (".top_logprobs", top.collect::<Vec<_>>(), entry.logprob)
                }
                (None, Some(top)) => {
                    let top = top.into_iter().enumerate().map(|(at, top)| {
                        let value = logarithm(top.prob).map_err(|message| {
                            Fault::new(here(&format!(".top_probs[{at}].prob")), message)
                        })?;
                        Ok((top.id, value))
                    });
                    let top = top.collect::<Result<_, Fault>>()?;
                    let own = (entry.prob.map(logarithm).transpose())
                        .map_err(|message| Fault::new(here(".prob"), message))?;
                    (".top_probs", top, own)
                }
                _ => {
                    return Err(Fault::new(
                        here(".top_logprobs"),
                        "is missing; all entries are to have top_logprobs, or all top_probs",
                    ));
                }
            };
            if top.is_empty() {
                return Err(Fault::new(
                    here(name),
                    "is empty: the row is missing, as after a draft token was accepted; score the \
                     text with \"n_probs\": K and speculation off",
                ));
            }
            let place = |at: usize| here(&format!("{name}[{at}].id"));
            let entries = listed(top, |id| vocabulary.number(id), place)?;
            let own = own.filter(|_| i64::from(token) == entry.id);
            rows.push(row(token, entries, own, || here(name))?);
        }
        // Before the samplers, rows are softmax of the raw logits, whatever the
        // temperature.
        let settings = self.generation_settings;
        let temperature = settings.and_then(|settings| settings.temperature);
        Ok(Text {
            origin: Origin::Generated,
            rows,
            token_field: field,
            temperature_applied: match after {
                true => temperature
                    .filter(|&t| t > 0.0)
                    .unwrap_or(request.divisor()),
                false => 1.0,
            },
            sampler: after,
            model: self.model,
            counts: Counts::default(),
        })
    }
}

/// The logarithm of a probability that is written as it is.
fn logarithm(probability: f64) -> Result<LogProb, String> {
    if (0.0..=1.0 + 1e-6).contains(&probability) {
        Ok(LogProb(probability.ln().min(0.0)))
    } else {
        Err(format!(
            "is {probability}; probabilities are between 0 and 1"
        ))
    }
}
