//! SGLang: responses of `/generate`, or of `Engine.generate`.
//!
//! Shapes of `meta_info` as `sglang/srt/managers/tokenizer_manager.py` writes it.

use super::error::Fault;
use super::json::LogProb;
use super::lists::{Counts, Origin, Text, Vocabulary, check_ids, listed, row};
use super::options::Request;
use super::texts::{InText, Record, said};
use serde::Deserialize;

/// A response, or two of them under `target` and `draft`.
#[derive(Debug, Deserialize)]
pub(super) struct Response {
    target: Option<Box<Self>>,
    draft: Option<Box<Self>>,
    prompt_id: Option<i64>,
    position: Option<i64>,
    prompt_length: Option<usize>,
    model: Option<String>,
    output_ids: Option<Vec<i64>>,
    meta_info: Option<MetaInfo>,
    // Of the OpenAI routes, which name tokens by text.
    choices: Option<serde::de::IgnoredAny>,
}

/// A log-probability, the token's id, and its text.
type Entry = (Option<LogProb>, i64, Option<String>);
type Nested = Vec<Option<Vec<Entry>>>;

#[derive(Debug, Deserialize)]
struct MetaInfo {
    prompt_tokens: Option<usize>,
    completion_tokens: Option<usize>,
    input_token_logprobs: Option<Vec<Entry>>,
    output_token_logprobs: Option<Vec<Entry>>,
    input_top_logprobs: Option<Nested>,
    output_top_logprobs: Option<Nested>,
    input_token_ids_logprobs: Option<Nested>,
    output_token_ids_logprobs: Option<Nested>,
    input_top_logprobs_val_flat: Option<Vec<LogProb>>,
    input_top_logprobs_idx_flat: Option<Vec<i64>>,
    input_top_logprobs_val_flat_b64: Option<String>,
    input_top_logprobs_idx_flat_b64: Option<String>,
    input_top_logprobs_shape: Option<[usize; 2]>,
    #[serde(default)]
    input_top_logprobs_null_prefix: usize,
    output_top_logprobs_val_flat: Option<Vec<LogProb>>,
    output_top_logprobs_idx_flat: Option<Vec<i64>>,
    output_top_logprobs_val_flat_b64: Option<String>,
    output_top_logprobs_idx_flat_b64: Option<String>,
    output_top_logprobs_shape: Option<[usize; 2]>,
    #[serde(default)]
    output_top_logprobs_null_prefix: usize,
    #[serde(default)]
    spec_verify_ct: u64,
    #[serde(default)]
    spec_num_proposed_drafts: u64,
    #[serde(default)]
    spec_num_correct_drafts: u64,
}

const WHOLE: &str = "; export the response whole";

/// The forms of one side's lists.
struct Forms {
    side: &'static str,
    nested: Option<Nested>,
    values: Option<Vec<LogProb>>,
    ids: Option<Vec<i64>>,
    values_b64: Option<String>,
    ids_b64: Option<String>,
    shape: Option<[usize; 2]>,
    null_prefix: usize,
}

/// The entries of each position, by id; nothing where there is no row.
type Lists = Vec<Option<Vec<(i64, LogProb)>>>;

impl Forms {
    fn field(&self, name: &str) -> String {
        format!("meta_info.{}_top_logprobs{name}", self.side)
    }

    fn is_there(&self) -> bool {
        self.nested.as_ref().is_some_and(|rows| !rows.is_empty())
            || self.values.is_some()
            || self.values_b64.is_some()
    }

    fn lists(self) -> Result<Lists, Fault> {
        let has_rows = self.nested.as_ref().is_some_and(|rows| !rows.is_empty());
        let forms = [
            ("", has_rows),
            ("_val_flat", self.values.is_some()),
            ("_val_flat_b64", self.values_b64.is_some()),
        ];
        let mut forms = forms.iter().filter(|(_, is_there)| *is_there);
        if let (Some((one, _)), Some((other, _))) = (forms.next(), forms.next()) {
            let message = format!(
                "is there beside {}: two forms of the same rows; leave one out",
                self.field(one)
            );
            return Err(Fault::new(self.field(other), message));
        }
        if let Some(text) = &self.values_b64 {
            let bytes =
                decode(text).map_err(|message| Fault::new(self.field("_val_flat_b64"), message))?;
            let values = bytes.as_chunks::<4>().0.iter().enumerate();
            let values = values.map(|(index, &four)| {
                LogProb::new(f64::from(f32::from_le_bytes(four))).map_err(|message| {
                    Fault::new(format!("{}[{index}]", self.field("_val_flat_b64")), message)
                })
            });
            let values = values.collect::<Result<Vec<_>, _>>()?;
            let text = self.ids_b64.as_deref().unwrap_or_default();
            let bytes =
                decode(text).map_err(|message| Fault::new(self.field("_idx_flat_b64"), message))?;
            let ids = bytes.as_chunks::<4>().0.iter();
            let ids: Vec<i64> = ids
                .map(|&four| i64::from(i32::from_le_bytes(four)))
                .collect();
            return self.flat(&values, &ids);
        }
        if let Some(values) = &self.values {
            let ids = self.ids.as_deref().unwrap_or_default();
            return self.flat(values, ids);
        }
        let field = self.field("");
        nested(&field, self.nested.unwrap_or_default())
    }

    /// Rows from arrays of one row after the other, behind the positions without rows.
    fn flat(&self, values: &[LogProb], ids: &[i64]) -> Result<Lists, Fault> {
        let [rows, width] = self
            .shape
            .ok_or_else(|| Fault::new(self.field("_shape"), "is missing"))?;
        let whole = rows.checked_mul(width);
        for (name, count) in [("_val_flat", values.len()), ("_idx_flat", ids.len())] {
            if Some(count) != whole {
                return Err(Fault::new(
                    self.field(name),
                    format!("has {count} entries, not the {rows} times {width} of its shape"),
                ));
            }
        }
        // A position cannot have been left out more often than there are rows in memory.
        if self.null_prefix > rows.saturating_add(1) && self.null_prefix > (1 << 24) {
            return Err(Fault::new(
                self.field("_null_prefix"),
                format!("{} is no number of positions", self.null_prefix),
            ));
        }
        let mut lists: Lists = vec![None; self.null_prefix];
        lists.extend(
            (values.chunks(width.max(1)).zip(ids.chunks(width.max(1)))).map(|(values, ids)| {
                Some(ids.iter().copied().zip(values.iter().copied()).collect())
            }),
        );
        Ok(lists)
    }
}

fn nested(field: &str, rows: Nested) -> Result<Lists, Fault> {
    let rows = rows.into_iter().enumerate();
    rows.map(|(index, row)| {
        let Some(row) = row else { return Ok(None) };
        let entries = row.into_iter().enumerate().map(|(at, (value, id, _))| {
            let value =
                value.ok_or_else(|| Fault::new(format!("{field}[{index}][{at}][0]"), "is null"))?;
            Ok((id, value))
        });
        entries.collect::<Result<Vec<_>, Fault>>().map(Some)
    })
    .collect()
}

/// The bytes of standard base64 with padding.
fn decode(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (groups, rest) = text.as_bytes().as_chunks::<4>();
    if !rest.is_empty() {
        return Err("is no base64: its length is no multiple of 4".to_owned());
    }
    let last = groups.len().saturating_sub(1);
    for (index, group) in groups.iter().enumerate() {
        let padding = match group {
            [_, _, b'=', b'='] => 2,
            [_, _, _, b'='] => 1,
            _ => 0,
        };
        if padding > 0 && index != last {
            return Err(format!("is no base64: padding at byte {}", 4 * index + 2));
        }
        let mut bits = 0u32;
        for (place, &byte) in group.iter().enumerate() {
            let six = match byte {
                b'A'..=b'Z' => byte - b'A',
                b'a'..=b'z' => byte - b'a' + 26,
                b'0'..=b'9' => byte - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                b'=' if place >= 4 - padding => 0,
                _ => return Err(format!("is no base64: byte {}", 4 * index + place)),
            };
            bits = (bits << 6) | u32::from(six);
        }
        let [_, a, b, c] = bits.to_be_bytes();
        bytes.extend([a, b, c].into_iter().take(3 - padding));
    }
    Ok(bytes)
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
        let Some(info) = self.meta_info else {
            let message = match self.choices {
                Some(_) => {
                    "is missing: this is a response of an OpenAI route, which names tokens by \
                     their text, where they can collide; use /generate with \"return_logprob\": \
                     true"
                }
                None => "is missing; a response of /generate has it",
            };
            return Err(Fault::new("meta_info", message));
        };
        let counts = Counts {
            drafted: info.spec_num_proposed_drafts,
            accepted: info.spec_num_correct_drafts,
            steps: info.spec_verify_ct,
        };
        counts.check([
            "meta_info.spec_num_proposed_drafts",
            "meta_info.spec_num_correct_drafts",
            "meta_info.spec_verify_ct",
        ])?;
        let input = Forms {
            side: "input",
            nested: info.input_top_logprobs,
            values: info.input_top_logprobs_val_flat,
            ids: info.input_top_logprobs_idx_flat,
            values_b64: info.input_top_logprobs_val_flat_b64,
            ids_b64: info.input_top_logprobs_idx_flat_b64,
            shape: info.input_top_logprobs_shape,
            null_prefix: info.input_top_logprobs_null_prefix,
        };
        let output = Forms {
            side: "output",
            nested: info.output_top_logprobs,
            values: info.output_top_logprobs_val_flat,
            ids: info.output_top_logprobs_idx_flat,
            values_b64: info.output_top_logprobs_val_flat_b64,
            ids_b64: info.output_top_logprobs_idx_flat_b64,
            shape: info.output_top_logprobs_shape,
            null_prefix: info.output_top_logprobs_null_prefix,
        };
        // Rows of the prompt are asked for by "logprob_start_len" alone: a text is scored, and one token
        // at most put out behind it. Else what was put out is the text.
        let several =
            |tokens: &Option<Vec<Entry>>| tokens.as_ref().is_some_and(|all| all.len() > 1);
        let writes = output.is_there() && several(&info.output_token_logprobs);
        let prompt = input.is_there() && several(&info.input_token_logprobs) && !writes;
        let (forms, tokens, more, tokens_field) = if prompt {
            (
                input,
                info.input_token_logprobs,
                info.input_token_ids_logprobs,
                "meta_info.input_token_logprobs",
            )
        } else {
            (
                output,
                info.output_token_logprobs,
                info.output_token_ids_logprobs,
                "meta_info.output_token_logprobs",
            )
        };
        if !forms.is_there() {
            return Err(Fault::new(
                forms.field(""),
                "is missing: there are no rows here; ask with \"return_logprob\": true and \
                 \"top_logprobs_num\": K, and \"logprob_start_len\": 0 to score a text",
            ));
        }
        let tokens = tokens.ok_or_else(|| Fault::new(tokens_field, "is missing"))?;
        let lists_field = forms.field("");
        let lists = forms.lists()?;
        if lists.len() != tokens.len() {
            return Err(Fault::new(
                lists_field,
                format!(
                    "has {} rows and {tokens_field} {}",
                    lists.len(),
                    tokens.len()
                ),
            ));
        }
        let more_field = lists_field.replace("top_logprobs", "token_ids_logprobs");
        let mut more = match more {
            Some(rows) if !rows.is_empty() => {
                let count = rows.len();
                if count != lists.len() {
                    return Err(Fault::new(
                        more_field,
                        format!("has {count} rows and {tokens_field} {}", tokens.len()),
                    ));
                }
                nested(&more_field, rows)?
            }
            _ => vec![None; lists.len()],
        }
        .into_iter();
        let count = tokens.len();
        let mut rows = Vec::with_capacity(count);
        for (index, ((own, id, _), list)) in tokens.into_iter().zip(lists).enumerate() {
            let extra = more.next().flatten();
            let here = || format!("{lists_field}[{index}]");
            let token = (vocabulary.number(id))
                .map_err(|message| Fault::new(format!("{tokens_field}[{index}][1]"), message))?;
            let (Some(own), Some(list)) = (own, list) else {
                if prompt && rows.is_empty() {
                    continue;
                }
                return Err(Fault::new(
                    here(),
                    "is null; only the first tokens of a prompt have no row",
                ));
            };
            let place = |at: usize| format!("{}[{at}][1]", here());
            let entries = listed(list, |id| vocabulary.number(id), place)?;
            let (_, mut list) = row(token, entries, Some(own), here)?;
            if let Some(extra) = extra {
                let place = |at: usize| format!("{more_field}[{index}][{at}][1]");
                let extra = listed(extra, |id| vocabulary.number(id), place)?;
                list.add(extra)
                    .map_err(|message| Fault::new(format!("{more_field}[{index}]"), message))?;
            }
            rows.push((token, list));
        }
        if let (false, Some(ids)) = (prompt, &self.output_ids) {
            check_ids("output_ids", ids, &rows, tokens_field)?;
        }
        if let (false, Some(said)) = (prompt, info.completion_tokens)
            && said != count
        {
            let message = format!("is {said}, and {tokens_field} has {count} tokens{WHOLE}");
            return Err(Fault::new("meta_info.completion_tokens", message));
        }
        let length = info.prompt_tokens.unwrap_or(count);
        if prompt && length < rows.len() {
            return Err(Fault::new(
                "meta_info.prompt_tokens",
                format!("is {length} where {tokens_field} has {count} tokens"),
            ));
        }
        Ok(Text {
            origin: match prompt {
                true => Origin::Prompt { length },
                false => Origin::Generated,
            },
            rows,
            token_field: tokens_field,
            // Rows of a prompt are not divided by the request's temperature.
            temperature_applied: match prompt || request.original_logprobs {
                true => 1.0,
                false => request.divisor(),
            },
            sampler: false,
            model: self.model,
            counts,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn base64_is_decoded() {
        for (text, bytes) in [
            ("", &b""[..]),
            ("TQ==", b"M"),
            ("TWE=", b"Ma"),
            ("TWFu", b"Man"),
            ("+/+/", &[0xfb, 0xff, 0xbf]),
        ] {
            assert_eq!(decode(text).unwrap(), bytes, "{text}");
        }
        for text in ["T", "TQ=", "TQ==TQ==", "T===", "====", "TW!u", "=AAA"] {
            assert!(decode(text).is_err(), "{text}");
        }
    }
}
