//! Two models run by ONNX Runtime: rows logged, texts decoded live.
//!
//! Only this member knows ONNX Runtime and tokenizers; everything else builds without.
//!
//! The target writes a text, token by token, each drawn from
//!
//! ```text
//! p_t(i) = softmax(l_t / T)_i,   l_t = target logits after (prompt, x_0..x_{t-1})
//! ```
//!
//! and the draft model, or each of several, is run over the same prefixes. What is recorded at each
//! position t are both rows of logits as the graphs gave them (temperature 1) and
//! the token x_t. Models are ONNX graphs with a key-value cache ([`Model`]), run
//! by Microsoft's ONNX Runtime, a shared library that is loaded when the command
//! runs ([`Runtime`]); nothing is downloaded.
//!
//! [`Capture::run`] hands rows to a [`RowSink`]: a log on disk, or an analysis
//! that keeps nothing. Batches are fixed by the order of the prompts, and random
//! numbers by seed and prompt, so that an interrupted capture continues with the
//! rows that it would have had.

mod carried;
mod context;
mod decode;
#[cfg(test)]
mod every;
mod generate;
mod graph_file;
mod growth;
mod log_sink;
mod model;
mod prompts;
mod rollouts;
mod rounds;
mod runtime;
mod sampling;
mod timing;
mod tokens;
mod tree;

pub use context::check_lengths;
pub use decode::{DecodeSettings, Decoded, Decoder, DrawnTree, Round, Shape, StepTimes};
pub use generate::{
    Capture, Event, Generation, OtherDraft, Row, RowSink, Seconds, Settings, SinkError, Tally,
};
pub use log_sink::{LogSink, Provenance, draft_names};
pub use model::{Cache, Heads, Logits, Model, Stretch};
pub use prompts::{ChatTemplate, Prompt, parse_prompts, read_prompts};
pub use rollouts::{DrawnRollout, RolloutPlan};
pub use runtime::{Device, LIBRARY_VARIABLES, Placed, Placement, Runtime};
pub use sampling::{Features, Law, Sampler, Sampling, SamplingError};
pub use timing::Timing;
pub use tokens::{END_OF_TEXT, EncodedPrompt, Stop, TextCodec};
pub use tree::children_of_rule;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// The most logits that prompts have at a time: 256 MiB in f32.
const PREFILL_LOGITS: usize = 1 << 26;

/// What is said of a row that is no law.
const BROKEN: &str = "holds NaN or plus infinity, or nothing but minus infinity";

/// Why a capture cannot start or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// A file cannot be read or written: the file; what cannot be done with it; what the system
    /// said.
    #[error("{0}: {1}: {2}")]
    File(PathBuf, &'static str, #[source] io::Error),
    /// The ONNX Runtime library is not there or cannot be loaded.
    #[error(
        "ONNX Runtime cannot be loaded{}; get it with `pip install onnxruntime` (onnxruntime-gpu for CUDA) \
         and give ⟨onnxruntime⟩ the path of capi/libonnxruntime.so* in the installed package, or its folder, \
         or set {}",
        tried.iter().map(|(what, why)| format!(": {what}: {why}")).collect::<String>(),
        LIBRARY_VARIABLES[0]
    )]
    RuntimeMissing {
        /// What was tried, and why it failed.
        tried: Vec<(String, String)>,
    },
    /// The library fails: what it says.
    #[error("ONNX Runtime: {0}")]
    Runtime(String),
    /// CUDA was demanded and cannot be had: what the runtime says.
    #[error(
        "⟨device cuda⟩: {0}; CUDA needs the library of the package onnxruntime-gpu (see ⟨onnxruntime⟩), \
         an NVIDIA driver, and the CUDA and cuDNN libraries where the loader finds them; or use ⟨device cpu⟩ or auto"
    )]
    Device(String),
    /// A graph is refused: the graph's file; what is wrong.
    #[error("{0}: {1}")]
    Model(PathBuf, String),
    /// The models' vocabularies do not fit.
    #[error("the target has {target} logits a row and the draft {draft}{}", match asked {
        Some(asked) => format!("; ⟨vocab {asked}⟩ must be in 1..={}", target.min(draft)),
        None => format!("; if the difference is padding, keep the first {0} with ⟨vocab {0}⟩", target.min(draft)),
    })]
    Vocabulary {
        /// V of the target.
        target: usize,
        /// V of the draft.
        draft: usize,
        /// The logits to keep, if limited.
        asked: Option<usize>,
    },
    /// A tokenizer is refused: the tokenizer's file; what is wrong.
    #[error("{0}: {1}")]
    Tokenizer(PathBuf, String),
    /// A prompt file is refused: the file; the line, from 1; what is wrong.
    #[error("{0}: line {1}: {2}")]
    Prompts(PathBuf, usize, String),
    /// A prompt is refused: the prompt's name; what is wrong.
    #[error("prompt {0:?}: {1}")]
    Prompt(String, String),
    /// A setting is out of its range: which, and its range.
    #[error("{0}")]
    Setting(String),
    /// A graph fails on some input.
    #[error("{path}: {}, position {position}: {message}", prompts(first, last))]
    Run {
        /// The graph's file.
        path: PathBuf,
        /// The first prompt of the batch.
        first: String,
        /// The last prompt of the batch.
        last: String,
        /// Tokens generated before.
        position: usize,
        /// What the runtime says.
        message: String,
    },
    /// A row of logits is no distribution.
    #[error(
        "{path}: prompt {id:?}, position {position}: the row of logits {message}; \
         if it runs well alone (⟨batch 1⟩), the graph does not mask padding"
    )]
    Logits {
        /// The graph's file.
        path: PathBuf,
        /// The prompt's name.
        id: String,
        /// Tokens generated before.
        position: usize,
        /// What is wrong.
        message: String,
    },
    /// The next batch may not fit the disk.
    #[error(
        "{path}: its disk has {free} bytes free, and the next {prompts} prompts may need {needed}; \
         free some space and run the same command again: what was logged is kept and continued. \
         A new log with ⟨top K⟩ or a smaller ⟨max-tokens⟩ needs less"
    )]
    DiskFull {
        /// The log.
        path: PathBuf,
        /// Prompts of the batch.
        prompts: usize,
        /// Bytes that the batch may need.
        needed: u64,
        /// Bytes free.
        free: u64,
    },
    /// The log that is there has other settings.
    #[error(
        "{path}: holds a log that was begun otherwise: {setting} was {logged} and is now {now}; \
         run with the same setting to continue it, or give another ⟨out⟩"
    )]
    Resume {
        /// The log.
        path: PathBuf,
        /// The first setting that differs.
        setting: &'static str,
        /// Its value in the log, as JSON.
        logged: String,
        /// Its value now, as JSON.
        now: String,
    },
    /// The folder for the log holds other files: the folder.
    #[error("{0}: holds files and no log; give ⟨out⟩ a folder of its own")]
    Occupied(PathBuf),
    /// The log cannot be read or written.
    #[error(transparent)]
    Log(#[from] specgap_log::log::LogError),
    /// The sink stopped the capture.
    #[error("{0}")]
    Sink(SinkError),
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// The prompts of a batch, of which these are the first and the last.
fn prompts(first: &str, last: &str) -> String {
    match first == last {
        true => format!("prompt {first:?}"),
        false => format!("prompts {first:?} to {last:?}"),
    }
}

/// Refuses to go on once the user asked to stop.
fn go_on(interrupt: &AtomicBool) -> Result<(), CaptureError> {
    match interrupt.load(Ordering::Relaxed) {
        true => Err(CaptureError::Interrupted),
        false => Ok(()),
    }
}

impl CaptureError {
    fn reading(path: &Path, source: io::Error) -> Self {
        Self::File(path.to_owned(), "cannot be read", source)
    }
}
