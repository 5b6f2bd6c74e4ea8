//! Prompt files and chat templates.

use super::CaptureError;
use serde::Deserialize;
use specgap_base::files::{DOCUMENT, read_line_bytes};
use specgap_base::typed;
use std::collections::HashMap;
use std::path::Path;

/// One prompt of a prompt file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// Its name; the line number, from 1, if the file gives none.
    pub id: String,
    /// Its text, before any chat template.
    pub text: String,
}

/// One line of a prompt file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    id: Option<Id>,
    prompt: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Id {
    Text(String),
    Number(i64),
}

/// Reads prompts in JSON lines: `{"id": "a", "prompt": "Tell a story."}`, one a
/// line, `id` (text or an integer) optional. Empty lines are passed over.
///
/// # Errors
///
/// [`CaptureError::File`] if the file cannot be read, and
/// [`CaptureError::Prompts`], which names file and line, for anything that is not
/// such an object, an unknown field, an empty prompt, an id given twice, and a
/// file without prompts.
pub fn read_prompts(path: &Path) -> Result<Vec<Prompt>, CaptureError> {
    let contents =
        read_line_bytes(path, DOCUMENT).map_err(|source| CaptureError::reading(path, source))?;
    parse_prompts(path, &contents)
}

/// Reads prompts from a file's contents; `path` is for messages.
///
/// # Errors
///
/// As [`read_prompts`].
///
/// # Example
///
/// ```
/// use specgap_capture::parse_prompts;
/// use std::path::Path;
///
/// let text = "{\"id\": \"a\", \"prompt\": \"One\"}\n{\"prompt\": \"Two\"}\n";
/// let prompts = parse_prompts(Path::new("p.jsonl"), text.as_bytes())?;
/// assert_eq!(prompts[0].id, "a");
/// assert_eq!(prompts[1].id, "2", "the line number");
///
/// let error = parse_prompts(Path::new("p.jsonl"), b"{\"prompt\": 1}").unwrap_err();
/// assert!(error.to_string().starts_with("p.jsonl: line 1: "));
/// # Ok::<(), specgap_capture::CaptureError>(())
/// ```
pub fn parse_prompts(path: &Path, contents: &[u8]) -> Result<Vec<Prompt>, CaptureError> {
    let refuse =
        |line: usize, message: String| CaptureError::Prompts(path.to_owned(), line, message);
    let mut prompts = Vec::new();
    let mut lines_of = HashMap::new();
    for (number, line) in (1..).zip(contents.split(|&byte| byte == b'\n')) {
        let line = std::str::from_utf8(line)
            .map_err(|error| refuse(number, format!("not UTF-8: {error}")))?;
        if line.trim().is_empty() {
            continue;
        }
        let Line { id, prompt } = typed::whole_json(line).map_err(|error| {
            // serde_json counts lines within this one line; only its column says anything.
            let place = format!(" at line {} column {}", error.line(), error.column());
            let what = error.to_string().replace(&place, "");
            let column = error.column();
            refuse(
                number,
                format!("{what} at column {column}; a line is {{\"id\": \"a\", \"prompt\": \"text\"}}, id optional"),
            )
        })?;
        if prompt.is_empty() {
            return Err(refuse(
                number,
                "the prompt is empty; give it text or leave out the line".to_owned(),
            ));
        }
        let id = match id {
            Some(Id::Text(id)) => id,
            Some(Id::Number(id)) => id.to_string(),
            None => number.to_string(),
        };
        if let Some(first) = lines_of.insert(id.clone(), number) {
            return Err(refuse(
                number,
                format!("id {id:?} is also that of line {first}; ids must differ"),
            ));
        }
        prompts.push(Prompt { id, text: prompt });
    }
    if prompts.is_empty() {
        return Err(refuse(1, "no prompts; give one a line".to_owned()));
    }
    Ok(prompts)
}

/// What is put around a prompt before it is tokenized.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ChatTemplate {
    /// Nothing: the target continues the prompt.
    #[default]
    None,
    /// One user turn in ChatML, and the start of the assistant's.
    Chatml,
}

impl ChatTemplate {
    /// The name on the command line and in logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Chatml => "chatml",
        }
    }

    /// Puts the template around a prompt.
    ///
    /// # Example
    ///
    /// ```
    /// use specgap_capture::ChatTemplate;
    ///
    /// assert_eq!(ChatTemplate::None.apply("Hi"), "Hi");
    /// assert_eq!(
    ///     ChatTemplate::Chatml.apply("Hi"),
    ///     "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    /// );
    /// ```
    pub fn apply(self, prompt: &str) -> String {
        match self {
            Self::None => prompt.to_owned(),
            Self::Chatml => {
                format!("<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n")
            }
        }
    }

    /// The tokens that the template needs as single tokens.
    pub(super) fn special_tokens(self) -> &'static [&'static str] {
        match self {
            Self::None => &[],
            Self::Chatml => &["<|im_start|>", "<|im_end|>"],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Vec<Prompt>, String> {
        parse_prompts(Path::new("p.jsonl"), text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn reads_ids_of_every_kind_and_passes_over_empty_lines() {
        let prompts = parse(
            "{\"id\": \"a\", \"prompt\": \"x\"}\r\n\n{\"id\": 7, \"prompt\": \"y\"}\n  \n{\"prompt\": \"z\"}",
        )
        .unwrap();
        let ids: Vec<_> = prompts.iter().map(|prompt| prompt.id.as_str()).collect();
        assert_eq!(ids, ["a", "7", "5"]);
    }

    #[test]
    fn names_the_line_of_what_it_refuses() {
        for (text, line, what) in [
            ("{\"prompt\": \"x\"}\nnonsense", 2, "expected ident"),
            (
                "{\"prompt\": \"x\"}\n{\"id\": \"a\"}",
                2,
                "missing field `prompt`",
            ),
            ("{\"prompt\": \"x\", \"n\": 1}", 1, "unknown field `n`"),
            ("\n{\"prompt\": \"\"}", 2, "the prompt is empty"),
            ("{\"prompt\": [1]}", 1, "expected a string"),
            (
                "{\"id\": 2, \"prompt\": \"x\"}\n{\"prompt\": \"y\"}",
                2,
                "id \"2\" is also that of line 1",
            ),
            ("", 1, "no prompts"),
        ] {
            let message = parse(text).unwrap_err();
            assert!(
                message.starts_with(&format!("p.jsonl: line {line}: ")),
                "{message}"
            );
            assert!(message.contains(what), "{message} should say {what}");
        }
        let error = parse_prompts(Path::new("p"), b"{\"prompt\": \"\xff\"}").unwrap_err();
        assert!(error.to_string().contains("line 1: not UTF-8"), "{error}");
    }
}
