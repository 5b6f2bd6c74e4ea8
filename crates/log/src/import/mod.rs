//! Exports of inference engines, made a log.
//!
//! An engine exports what one model says of each token of a text: a list of the most
//! probable tokens, or a whole row. A [`Request`] names the files of both models and what
//! they do not say themselves, and [`import`] makes a log of them, whole or not at all.
//!
//! Lists of the most probable tokens are written as they are. They are lists of a full
//! softmax, and the tokens that they leave out have the mass that is missing to 1, unless
//! the engine's sampler had truncated the row before: then the log says so
//! (`"unlisted": "never-drawn"` in its metadata), and each list has to sum to 1.
//!
//! A file of two numbers a token, what both models give the text's own tokens, is a log too
//! ([`open_tokens`]).
//!
//! `docs/guide/engines.md` says what to ask each engine for.
//!
//! # Example
//! ```
//! use specgap_log::import::{Engine, Request, import};
//! use specgap_log::log::{Log, Row};
//! # let folder = tempfile::tempdir()?;
//! # let path = |name: &str| folder.path().join(name);
//! let response = |logprobs: [f64; 2]| {
//!     let list = format!(r#"[[{}, 7, null], [{}, 3, null]]"#, logprobs[0], logprobs[1]);
//!     format!(
//!         r#"{{"output_ids": [7], "meta_info": {{"output_token_logprobs": [[{}, 7, null]],
//!            "output_top_logprobs": [{list}]}}}}"#,
//!         logprobs[0]
//!     )
//! };
//! std::fs::write(path("target.json"), response([-0.1, -3.0]))?;
//! std::fs::write(path("draft.json"), response([-0.5, -1.0]))?;
//! let request = Request {
//!     target: vec![path("target.json")],
//!     draft: vec![path("draft.json")],
//!     vocabulary: Some(50),
//!     ..Request::new(Engine::Sglang)
//! };
//! let made = import(&request, &path("log"), "specgap import ...")?;
//! assert_eq!((made.positions, made.texts, made.listed), (1, 1, 2));
//! assert_eq!(Log::open(&path("log"))?.positions(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod hf;
mod json;
mod lists;
mod llama_cpp;
mod options;
mod sglang;
mod texts;
mod tokens;
mod vllm;
mod write;

pub use error::ImportError;
pub use options::{Engine, LogprobsMode, Request};
pub use tokens::{is_tokens, open_tokens};
pub use write::{Imported, Unlisted};

use crate::log::{Metadata, Sampling, WholeLog};
use lists::Vocabulary;
use std::path::Path;
use texts::{Record, read};

/// Makes a log of an engine's export. `command` goes into its metadata.
///
/// Memory grows with what the files hold; files of Hugging Face arrays are read one after
/// the other.
///
/// # Errors
/// Options that do not go together; files that cannot be read; records, fields and rows
/// that are not what the engine writes, or that do not fit together, each named; a log
/// that is there already or cannot be written. Then nothing is written.
pub fn import(request: &Request, out: &Path, command: &str) -> Result<Imported, ImportError> {
    request.check()?;
    let metadata = Metadata {
        tool: Some(crate::log::tool()),
        command: Some(command.to_owned()),
        target: write::named(request.target_name.as_ref()),
        draft: write::named(request.draft_name.as_ref()),
        runtime: Some(request.engine.as_str().to_owned()),
        sampling: Some(Sampling {
            temperature: request.temperature,
            top_k: request.top_k,
            top_p: request.top_p,
            cut_order: request.cut_order.or(request.engine.cut_order()),
            ..Sampling::default()
        }),
        ..Metadata::default()
    };
    let mut log = WholeLog::create(out, metadata)?;
    let made = match request.engine {
        Engine::HuggingFace => write::arrays(request, &mut log)?,
        Engine::Tokens => tokens::write(request, &mut log)?,
        Engine::Vllm => lists::<vllm::Response>(request, &mut log)?,
        Engine::Sglang => lists::<sglang::Response>(request, &mut log)?,
        Engine::LlamaCpp => lists::<llama_cpp::Response>(request, &mut log)?,
    };
    log.finish()?;
    Ok(made)
}

fn lists<R: Record>(request: &Request, log: &mut WholeLog) -> Result<Imported, ImportError> {
    let mut vocabulary = Vocabulary::new(request.vocabulary);
    let texts = read::<R>(request, &mut vocabulary)?;
    vocabulary.check_mixed().map_err(ImportError::Options)?;
    write::lists(request, texts, &vocabulary, log)
}
