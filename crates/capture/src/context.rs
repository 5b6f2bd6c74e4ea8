//! How long a text a model takes, as far as anything beside its graph says.
//!
//! A graph does not say it. The `config.json` that exporters leave beside one does.

use super::CaptureError;
use super::tokens::EncodedPrompt;
use serde_json::Value;
use specgap_base::files::{DOCUMENT, read};
use std::path::{Path, PathBuf};

/// What a `config.json` says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Context {
    tokens: usize,
    file: PathBuf,
    field: &'static str,
}

/// Names of the length, of which configurations have one.
const FIELDS: [&str; 4] = [
    "max_position_embeddings",
    "n_positions",
    "n_ctx",
    "max_sequence_length",
];

impl Context {
    /// Of the `config.json` in the graph's folder, or beside a folder that is named `onnx`.
    fn of(graph: &Path) -> Option<Self> {
        let folder = specgap_base::files::folder(graph);
        let around = folder.parent().filter(|_| folder.ends_with("onnx"));
        [Some(folder), around]
            .into_iter()
            .flatten()
            .find_map(|folder| Self::read(&folder.join("config.json")))
    }

    fn read(file: &Path) -> Option<Self> {
        let config: Value = serde_json::from_slice(&read(file, DOCUMENT).ok()?).ok()?;
        [Some(&config), config.get("text_config")]
            .into_iter()
            .flatten()
            .find_map(|part| {
                FIELDS.iter().find_map(|&field| {
                    let tokens = part.get(field)?.as_u64().filter(|&tokens| tokens > 0)?;
                    Some(Self {
                        tokens: usize::try_from(tokens).ok()?,
                        file: file.to_owned(),
                        field,
                    })
                })
            })
    }
}

/// Prompts of more tokens are said to take long.
const LONG: usize = 4096;

/// Refuses prompts with more tokens than a model takes, as far as a `config.json` in the folder
/// of its graph (or around a folder `onnx`) says how many that are. Returns what to tell people:
/// texts that may go beyond that, prompts that take long to read.
///
/// `max_tokens` is how many tokens a text may have behind its prompt.
///
/// # Errors
///
/// [`CaptureError::Prompt`] names the first prompt that is too long, and what says so.
pub fn check_lengths<'a>(
    prompts: &[EncodedPrompt],
    graphs: impl IntoIterator<Item = &'a PathBuf>,
    max_tokens: usize,
) -> Result<Vec<String>, CaptureError> {
    let mut notes = Vec::new();
    let Some(longest) = prompts.iter().max_by_key(|prompt| prompt.tokens.len()) else {
        return Ok(notes);
    };
    let most = longest.tokens.len();
    for graph in graphs {
        let Some(context) = Context::of(graph) else {
            continue;
        };
        let said = format!(
            "{} takes {} ({} of {})",
            graph.display(),
            context.tokens,
            context.field,
            context.file.display()
        );
        let too_long = |prompt: &&EncodedPrompt| prompt.tokens.len() > context.tokens;
        if let Some(prompt) = prompts.iter().find(too_long) {
            return Err(CaptureError::Prompt(
                prompt.id.clone(),
                format!(
                    "has {} tokens, and {said}; shorten or leave out the prompt, or correct that \
                     file",
                    prompt.tokens.len()
                ),
            ));
        }
        // The last token that is drawn is not run.
        if most.saturating_add(max_tokens) > context.tokens.saturating_add(1) {
            notes.push(format!(
                "warning: prompt {:?} has {most} tokens and its text may have {max_tokens}, and \
                 {said}; what a model says beyond that means little",
                longest.id
            ));
        }
    }
    if most > LONG {
        notes.push(format!(
            "note: prompt {:?} has {most} tokens, which all models read before its first one",
            longest.id
        ));
    }
    Ok(notes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(id: &str, tokens: usize) -> EncodedPrompt {
        EncodedPrompt {
            index: 0,
            id: id.to_owned(),
            tokens: vec![1; tokens],
        }
    }

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("onnx")).unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    #[test]
    fn a_prompt_beyond_the_context_is_refused_and_a_text_is_warned_of() {
        for (config, at) in [
            (r#"{"max_position_embeddings": 8}"#, "model.onnx"),
            (r#"{"n_positions": 8}"#, "onnx/model.onnx"),
            (
                r#"{"text_config": {"n_ctx": 8, "n_positions": -1}}"#,
                "model.onnx",
            ),
        ] {
            let folder = folder(&[("config.json", config)]);
            let graph = [folder.path().join(at)];
            let check =
                |tokens, more| check_lengths(&[prompt("a", 2), prompt("b", tokens)], &graph, more);
            assert_eq!(check(8, 1).unwrap(), [""; 0]);
            let notes = check(8, 2).unwrap();
            let warning = "warning: prompt \"b\" has 8 tokens";
            assert!(notes[0].starts_with(warning), "{notes:?}");
            let error = check(9, 1).unwrap_err().to_string();
            for words in [
                "prompt \"b\": has 9 tokens, and ",
                "takes 8 (",
                "config.json",
            ] {
                assert!(error.contains(words), "{error}");
            }
        }
    }

    #[test]
    fn without_a_length_only_long_prompts_are_spoken_of() {
        let other = r#"{"max_position_embeddings": "8"}"#;
        for config in ["{", "[]", other, r#"{"n_ctx": 0}"#] {
            let folder = folder(&[("config.json", config)]);
            let graph = [folder.path().join("model.onnx")];
            let notes = |tokens| check_lengths(&[prompt("a", tokens)], &graph, 9).unwrap();
            assert_eq!(notes(LONG), [""; 0]);
            let note = &notes(LONG + 1)[0];
            assert!(
                note.starts_with("note: prompt \"a\" has 4097 tokens"),
                "{note}"
            );
        }
        let nowhere = PathBuf::from("x.onnx");
        assert_eq!(check_lengths(&[], &[nowhere], 9).unwrap(), [""; 0]);
    }
}
