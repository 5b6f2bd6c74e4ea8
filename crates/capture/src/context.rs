//! How long a text a model takes, as far as its graph, or anything beside it, says.
//!
//! Most graphs do not say it. The `config.json` that exporters leave beside one does.

use super::CaptureError;
use super::tokens::EncodedPrompt;
use serde_json::Value;
use specgap_base::files::{DOCUMENT, read};
use std::path::{Path, PathBuf};

/// What a graph or a `config.json` says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Context {
    tokens: usize,
    file: PathBuf,
    field: &'static str,
}

/// The field of a graph's metadata that says it: the graph then fails on what is longer.
pub(super) const OF_GRAPH: &str = "specgap.context";

/// Names of the length, of which configurations have one.
const FIELDS: [&str; 4] = [
    "max_position_embeddings",
    "n_positions",
    "n_ctx",
    "max_sequence_length",
];

impl Context {
    /// Of the graph, which says it itself.
    fn own(graph: &Path, tokens: usize) -> Self {
        let (file, field) = (graph.to_owned(), OF_GRAPH);
        Self {
            tokens,
            file,
            field,
        }
    }

    /// Of the `config.json` in the graph's folder, or beside a folder that is named `onnx`.
    fn beside(graph: &Path) -> Option<Self> {
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

/// Refuses prompts with more tokens than a model takes, as far as its graph, with which it is
/// given, or a `config.json` in the folder of its graph (or around a folder `onnx`) says how many
/// that are. Returns what to tell people: texts that may go beyond that, prompts that take long to
/// read.
///
/// `more` is how many tokens a text may have behind its prompt, and how many of a rollout behind it
/// are run.
///
/// # Errors
///
/// [`CaptureError::Prompt`] names the first prompt that is too long, and what says so;
/// [`CaptureError::Setting`] a length for which a graph says itself that it has no room.
pub fn check_lengths<'a>(
    prompts: &[EncodedPrompt],
    graphs: impl IntoIterator<Item = (&'a Path, Option<usize>)>,
    [max_tokens, rolled]: [usize; 2],
) -> Result<Vec<String>, CaptureError> {
    let mut notes = Vec::new();
    let Some(longest) = prompts.iter().max_by_key(|prompt| prompt.tokens.len()) else {
        return Ok(notes);
    };
    let most = longest.tokens.len();
    let contexts = graphs.into_iter().flat_map(|(graph, own)| {
        let own = own.map(|tokens| Context::own(graph, tokens));
        let both = [own, Context::beside(graph)].into_iter().flatten();
        both.map(move |context| (graph, context))
    });
    for (graph, context) in contexts {
        let is_own = context.field == OF_GRAPH;
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
                    "has {} tokens, and {said}; shorten or leave out the prompt{}",
                    prompt.tokens.len(),
                    if is_own { "" } else { ", or correct that file" }
                ),
            ));
        }
        // The last token that is drawn is not run.
        let fit = context.tokens.saturating_add(1) - most;
        if is_own && max_tokens.saturating_add(rolled) > fit {
            let rollouts = match rolled {
                0 => "",
                _ => ", with rollouts behind it",
            };
            return Err(CaptureError::Setting(format!(
                "⟨max-tokens {max_tokens}⟩: prompt {:?} has {most} tokens, and {said}: the text behind \
                 it may have {} tokens{rollouts}; ask for no more, or shorten or leave out the prompt",
                longest.id,
                fit.saturating_sub(rolled)
            )));
        }
        if max_tokens > fit {
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
            let graph = folder.path().join(at);
            let check = |tokens, more| {
                let prompts = [prompt("a", 2), prompt("b", tokens)];
                check_lengths(&prompts, [(&*graph, None)], [more, 5])
            };
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
            let graph = folder.path().join("model.onnx");
            let notes =
                |tokens| check_lengths(&[prompt("a", tokens)], [(&*graph, None)], [9, 0]).unwrap();
            assert_eq!(notes(LONG), [""; 0]);
            let note = &notes(LONG + 1)[0];
            assert!(
                note.starts_with("note: prompt \"a\" has 4097 tokens"),
                "{note}"
            );
        }
        let nowhere = Path::new("x.onnx");
        assert_eq!(
            check_lengths(&[], [(nowhere, None)], [9, 0]).unwrap(),
            [""; 0]
        );
    }

    #[test]
    fn what_a_graph_says_itself_has_to_fit() {
        // A file beside it says more.
        let folder = folder(&[("config.json", r#"{"n_ctx": 80}"#)]);
        let graph = folder.path().join("model.onnx");
        let check =
            |tokens, more| check_lengths(&[prompt("a", tokens)], [(&*graph, Some(8))], more);
        for fits in [(8, [1, 0]), (3, [6, 0]), (3, [2, 4])] {
            assert_eq!(check(fits.0, fits.1).unwrap(), [""; 0]);
        }
        for (tokens, more, words) in [
            (3, [7, 0], "⟨max-tokens 7⟩: prompt \"a\" has 3 tokens, and "),
            (3, [7, 0], "takes 8 (specgap.context of "),
            (3, [7, 0], "may have 6 tokens; ask for no more"),
            (3, [3, 4], "may have 2 tokens, with rollouts behind it;"),
            (9, [1, 0], "prompt \"a\": has 9 tokens, and "),
        ] {
            let error = check(tokens, more).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
            assert!(!error.contains("that file"), "{error}");
        }
    }
}
