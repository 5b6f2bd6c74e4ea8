//! Text to tokens and back.

use super::growth::Growth;
use super::prompts::{ChatTemplate, Prompt};
use super::{CaptureError, runtime};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tokenizers::Tokenizer;

/// Tokens that end a text in one model family or another. Those that a tokenizer
/// has as special tokens stop a generation unless others are named.
pub const END_OF_TEXT: [&str; 10] = [
    "<|endoftext|>",
    "<|im_end|>",
    "<|end_of_text|>",
    "<|eot_id|>",
    "<|end|>",
    "<|eos|>",
    "</s>",
    "<eos>",
    "<end_of_turn>",
    "[EOS]",
];

/// The most bytes that a text may become on its way to tokens.
const LONGEST_TEXT: f64 = 1e9;

/// Which tokens end a generation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Stop {
    /// Those of [`END_OF_TEXT`] that the tokenizer has.
    #[default]
    EndOfText,
    /// These, by their text or by their id in digits.
    Tokens(Vec<String>),
    /// None: every generation has the full length.
    Never,
}

/// A tokenizer file, and what its tokens mean.
pub struct TextCodec {
    tokenizer: Tokenizer,
    path: PathBuf,
    chat: ChatTemplate,
    stop: BTreeSet<u32>,
    /// How many times as long a text may become on its way to tokens.
    growth: f64,
}

/// A prompt as tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedPrompt {
    /// Its number in the file, from 0: `prompt_id` of the log.
    pub index: usize,
    /// The prompt's name in its file.
    pub id: String,
    /// Its tokens, template included.
    pub tokens: Vec<u32>,
}

impl TextCodec {
    /// Reads a `tokenizer.json`. Truncation and padding that the file asks for
    /// are not applied.
    ///
    /// # Errors
    ///
    /// [`CaptureError::File`] if it cannot be read, [`CaptureError::Tokenizer`] if
    /// it is not a tokenizer, or lacks a token that the template or the stop list
    /// names.
    pub fn read(path: &Path, chat: ChatTemplate, stop: &Stop) -> Result<Self, CaptureError> {
        let bytes = specgap_base::files::read(path, specgap_base::files::DOCUMENT)
            .map_err(|source| CaptureError::reading(path, source))?;
        let refuse = |message: String| CaptureError::Tokenizer(path.to_owned(), message);
        let text = String::from_utf8(bytes)
            .map_err(|error| refuse(format!("not a tokenizer.json: {error}")))?;
        // The library has this way of reading compiled; a generic one would be compiled here again.
        let parsed = runtime::contained(|| text.parse::<Tokenizer>());
        let mut tokenizer = parsed
            .and_then(|parsed| parsed.map_err(|error| runtime::one_line(&error.to_string())))
            .map_err(|reason| refuse(format!("not a tokenizer.json: {reason}")))?;
        let grows = Growth::of(&tokenizer);
        if let Some((part, times)) = grows.too_much() {
            return Err(refuse(format!(
                "the steps of its {part} may make a text {times:.0e} times as long, and nobody has \
                 memory for that; leave out those that repeat themselves"
            )));
        }
        tokenizer.with_padding(None);
        tokenizer
            .with_truncation(None)
            .map_err(|error| refuse(error.to_string()))?;
        for token in chat.special_tokens() {
            if tokenizer.token_to_id(token).is_none() {
                return Err(refuse(format!(
                    "has no token {token}, which ⟨chat {}⟩ needs; use ⟨chat none⟩",
                    chat.name()
                )));
            }
        }
        let stop = match stop {
            Stop::Never => BTreeSet::new(),
            Stop::EndOfText => END_OF_TEXT
                .iter()
                .filter_map(|token| tokenizer.token_to_id(token))
                .collect(),
            Stop::Tokens(tokens) => tokens
                .iter()
                .map(|token| {
                    tokenizer
                        .token_to_id(token)
                        .or_else(|| token.parse().ok())
                        .ok_or_else(|| {
                            refuse(format!(
                                "has no token {token:?} to stop at; give its text or its id"
                            ))
                        })
                })
                .collect::<Result<_, _>>()?,
        };
        Ok(Self {
            tokenizer,
            path: path.to_owned(),
            chat,
            stop,
            growth: grows.encoding(),
        })
    }

    /// The template around prompts.
    pub fn chat(&self) -> ChatTemplate {
        self.chat
    }

    /// Tells whether a token ends a generation.
    pub fn is_stop(&self, token: u32) -> bool {
        self.stop.contains(&token)
    }

    /// The tokens that end a generation, ascending.
    pub fn stop_tokens(&self) -> impl Iterator<Item = u32> {
        self.stop.iter().copied()
    }

    /// Tokenizes prompts, template included. Special tokens of the template and of
    /// the prompts become single tokens.
    ///
    /// # Errors
    ///
    /// [`CaptureError::Prompt`] for a prompt without tokens, or with tokens that
    /// are not below `vocabulary`.
    pub fn encode(
        &self,
        prompts: &[Prompt],
        vocabulary: usize,
    ) -> Result<Vec<EncodedPrompt>, CaptureError> {
        // A template brings its own special tokens.
        let add_special = self.chat == ChatTemplate::None;
        let encode = |(index, prompt): (usize, &Prompt)| {
            let refuse = |message: String| CaptureError::Prompt(prompt.id.clone(), message);
            let text = self.chat.apply(&prompt.text);
            let most = self.growth * text.len() as f64;
            if most > LONGEST_TEXT {
                return Err(refuse(format!(
                    "has {} bytes, of which the tokenizer's steps may make {most:.0e} on the way; \
                     {LONGEST_TEXT:.0e} are the most: shorten it",
                    text.len()
                )));
            }
            let encoded = runtime::contained(|| self.tokenizer.encode(text, add_special))
                .and_then(|encoded| encoded.map_err(|error| error.to_string()))
                .map_err(|reason| refuse(format!("cannot be tokenized: {reason}")))?;
            let tokens = encoded.get_ids().to_vec();
            if tokens.is_empty() {
                return Err(refuse("has no tokens".to_owned()));
            }
            match tokens.iter().find(|&&token| token as usize >= vocabulary) {
                Some(token) => Err(refuse(format!(
                    "has token {token}, but the vocabulary is 0..{vocabulary}; {} does not belong to these models{}",
                    self.path.display(),
                    ", or ⟨vocab⟩ is too small"
                ))),
                None => Ok(EncodedPrompt {
                    index,
                    id: prompt.id.clone(),
                    tokens,
                }),
            }
        };
        prompts.iter().enumerate().map(encode).collect()
    }

    /// The text of tokens, special ones included; replacement characters where
    /// they are not text.
    pub fn decode(&self, tokens: &[u32]) -> String {
        runtime::contained(|| self.tokenizer.decode(tokens, false))
            .ok()
            .and_then(Result::ok)
            .unwrap_or_default()
    }
}
