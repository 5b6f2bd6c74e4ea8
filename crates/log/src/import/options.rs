//! What a user says about an export that the export does not say itself.

use super::error::ImportError;
use crate::log::CutOrder;
use specgap_base::{names, read_by_name};
use std::path::PathBuf;
use std::str::FromStr;

/// Where an export comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// vLLM: JSON of its HTTP server, or dumps of `RequestOutput`.
    Vllm,
    /// SGLang: JSON of `/generate`.
    Sglang,
    /// llama.cpp's server: JSON of `/completion`.
    LlamaCpp,
    /// Hugging Face transformers: arrays, as `.npz` or `.safetensors`.
    HuggingFace,
    /// No engine: a line for each token, with what both models give it.
    Tokens,
}

names! {
    Engine,
    /// Says which rows its exports have, and what is known of their temperature.
    rule:
    Vllm "vllm"
        "JSON responses; logprobs of prompts, and raw_logprobs of text (the default mode), \
        are before temperature and truncation; processed_logprobs are after both";
    Sglang "sglang"
        "JSON responses of /generate; output logprobs are divided by the request's \
        temperature, those of inputs are not; neither is truncated";
    LlamaCpp "llama-cpp"
        "JSON responses of /completion with n_probs; before all samplers, or after them \
        with post_sampling_probs";
    HuggingFace "hf"
        ".npz or .safetensors; logits are raw, scores are divided by the temperature and \
        have -inf where a sampler truncates";
    Tokens "tokens"
        ".csv, .jsonl or .parquet with a line for each token of the text: prompt, position, \
        logp, logq, and if known hit, p_hit, max_q, overlap; enough for specgap length";
}

read_by_name!(Engine, |text, all| {
    format!("{text:?} is no engine; there are {all}")
});

impl Engine {
    /// Returns the order in which its sampler cuts rows, unless it is told otherwise.
    pub fn cut_order(self) -> Option<CutOrder> {
        match self {
            Self::Vllm => Some(CutOrder::VLLM),
            Self::Sglang => Some(CutOrder::SGLANG),
            Self::LlamaCpp => Some(CutOrder::LLAMA_CPP),
            Self::HuggingFace => Some(CutOrder::default()),
            Self::Tokens => None,
        }
    }
}

/// What vLLM's `--logprobs-mode` was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogprobsMode {
    /// `raw_logprobs`, vLLM's default: before temperature and truncation.
    #[default]
    Raw,
    /// `processed_logprobs`: after both.
    Processed,
}

impl FromStr for LogprobsMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "raw_logprobs" => Ok(Self::Raw),
            "processed_logprobs" => Ok(Self::Processed),
            "raw_logits" | "processed_logits" => Err(
                "a list of logits does not tell the mass of the tokens that are not listed; start vLLM with \
                 --logprobs-mode raw_logprobs, its default"
                    .to_owned(),
            ),
            _ => Err(format!(
                "{text:?} is no mode; there are raw_logprobs and processed_logprobs"
            )),
        }
    }
}

/// An import: the files, and what they do not say themselves.
#[derive(Clone, Debug)]
pub struct Request {
    /// Where the export comes from.
    pub engine: Engine,
    /// Files with both models' rows.
    pub joint: Vec<PathBuf>,
    /// Files with the target's rows.
    pub target: Vec<PathBuf>,
    /// Files with the draft's rows of the same texts, in the same order.
    pub draft: Vec<PathBuf>,
    /// V: tokens of the model, padding included.
    pub vocabulary: Option<usize>,
    /// The temperature of the requests; 0 takes the most probable token.
    pub temperature: f64,
    /// The requests' top-k, if they had one.
    pub top_k: Option<usize>,
    /// The requests' top-p, if they had one.
    pub top_p: Option<f64>,
    /// In which order the requests' cuts were done; otherwise the engine's usual one.
    pub cut_order: Option<CutOrder>,
    /// vLLM's mode.
    pub logprobs_mode: LogprobsMode,
    /// Whether SGLang ran with `SGLANG_RETURN_ORIGINAL_LOGPROB`.
    pub original_logprobs: bool,
    /// Tokens of each prompt, where both models scored prompt and text as one.
    pub prompt_tokens: Option<usize>,
    /// The target's name; otherwise what the export says.
    pub target_name: Option<String>,
    /// The draft's name; otherwise what the export says.
    pub draft_name: Option<String>,
}

impl Request {
    /// Rows of an engine, at temperature 1, without files.
    pub fn new(engine: Engine) -> Self {
        Self {
            engine,
            joint: Vec::new(),
            target: Vec::new(),
            draft: Vec::new(),
            vocabulary: None,
            temperature: 1.0,
            top_k: None,
            top_p: None,
            cut_order: None,
            logprobs_mode: LogprobsMode::Raw,
            original_logprobs: false,
            prompt_tokens: None,
            target_name: None,
            draft_name: None,
        }
    }

    /// Refuses what cannot be, before a file is read.
    pub(super) fn check(&self) -> Result<(), ImportError> {
        let refuse = |message: &str| Err(ImportError::Options(message.to_owned()));
        match (
            self.joint.is_empty(),
            self.target.is_empty(),
            self.draft.is_empty(),
        ) {
            (false, true, true) | (true, false, false) => {}
            (true, true, true) => {
                return refuse(
                    "no files: name files that hold both models' rows, or ⟨target FILE⟩... and \
                     ⟨draft FILE⟩...",
                );
            }
            (false, ..) => {
                return refuse(
                    "files of both models' rows and ⟨target⟩ or ⟨draft⟩ do not go together; give \
                     one or the other",
                );
            }
            (true, false, true) => {
                return refuse(
                    "⟨draft⟩ is missing: let the draft model score the same ids, and name its \
                     files",
                );
            }
            (true, true, false) => {
                return refuse(
                    "⟨target⟩ is missing: let the target model score the same ids, and name its \
                     files",
                );
            }
        }
        if !(self.temperature >= 0.0 && self.temperature.is_finite()) {
            return Err(ImportError::Options(format!(
                "⟨temperature⟩ is {}; it must be finite and >= 0",
                self.temperature
            )));
        }
        if self.top_p.is_some_and(|p| !(p > 0.0 && p <= 1.0)) {
            return refuse("⟨top-p⟩ must be above 0 and at most 1");
        }
        if self.top_k == Some(0) {
            return refuse("⟨top-k⟩ must be at least 1; leave it out where all tokens are kept");
        }
        if self.vocabulary == Some(0) {
            return refuse("⟨vocab⟩ must be at least 1");
        }
        if self.engine == Engine::Tokens && self.joint.is_empty() {
            return refuse(
                "⟨target⟩ and ⟨draft⟩ are of engines' exports; a line of tokens has what both \
                 models give, so name its files alone",
            );
        }
        if self.engine != Engine::Vllm && self.logprobs_mode != LogprobsMode::Raw {
            return refuse("⟨logprobs-mode⟩ is an option of vLLM's exports");
        }
        if self.engine != Engine::Sglang && self.original_logprobs {
            return refuse("⟨original-logprobs⟩ is an option of SGLang's exports");
        }
        Ok(())
    }

    /// Returns what an engine divides logits by: 1 where it takes the most probable token.
    pub(super) fn divisor(&self) -> f64 {
        if self.temperature > 0.0 {
            self.temperature
        } else {
            1.0
        }
    }

    /// Tells whether the requests had a top-k or a top-p.
    pub(super) fn sampler_truncates(&self) -> bool {
        self.top_k.is_some() || self.top_p.is_some_and(|p| p < 1.0)
    }
}
