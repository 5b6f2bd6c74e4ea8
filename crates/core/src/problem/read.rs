//! Reading problem files: folders, TOML and JSON, and where a complaint lies.
//!
//! Everything is checked once, here and in [`build`], and every complaint names the
//! file, the field, the entry and the limit.

use super::build::build;
use super::{AnyProblem, FieldError, ProblemFileError};
use specgap_base::files::{DOCUMENT, read_text};
use specgap_base::typed::InJson;
use specgap_tables as tables;
use std::fmt;
use std::path::{Path, PathBuf};

/// Reads one problem file, or every `.toml` and `.json` file below a folder in
/// the order of their paths.
///
/// # Errors
/// [`ProblemFileError`]; the first file that is refused stops the reading.
pub fn read(path: &Path) -> Result<Vec<(PathBuf, AnyProblem)>, ProblemFileError> {
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| ProblemFileError::Io(path, source)
    };
    let metadata = std::fs::metadata(path).map_err(io(path))?;
    if metadata.is_dir() {
        let mut files = Vec::new();
        collect(path, &mut files).map_err(io(path))?;
        files.sort();
        if files.is_empty() {
            return Err(ProblemFileError::NoProblems(path.to_owned()));
        }
        return files
            .into_iter()
            .map(|file| Ok((file.clone(), read_file(&file)?)))
            .collect();
    }
    Ok(vec![(path.to_owned(), read_file(path)?)])
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        // Links to folders are not followed: they may run in circles.
        if entry.file_type()?.is_dir() {
            collect(&path, files)?;
        } else if extension(&path).is_some() && path.is_file() {
            files.push(path);
        }
    }
    Ok(())
}

enum Syntax {
    Toml,
    Json,
}

fn extension(path: &Path) -> Option<Syntax> {
    match path.extension()?.to_str()? {
        "toml" => Some(Syntax::Toml),
        "json" => Some(Syntax::Json),
        _ => None,
    }
}

fn read_file(path: &Path) -> Result<AnyProblem, ProblemFileError> {
    let path_owned = || path.to_owned();
    let syntax = extension(path).ok_or_else(|| ProblemFileError::Extension(path_owned()))?;
    let io = |source| ProblemFileError::Io(path_owned(), source);
    let text = read_text(path, DOCUMENT).map_err(io)?;
    let parsed = match syntax {
        Syntax::Toml => parse_toml(&text),
        Syntax::Json => parse_json(&text),
    };
    parsed.map_err(|source| ProblemFileError::Invalid(path_owned(), source))
}

/// Reads a problem from TOML text.
///
/// # Errors
/// [`FieldError`] names field, entry and limit.
///
/// # Example
/// ```
/// use specgap_core::problem::{AnyProblem, parse_toml};
/// let text = r#"
///     schema = 1
///     name = "bernoulli"
///     target = ["1/2", "1/2"]
///     drafts = 2
///     [draft]
///     scheme = "with-replacement"
///     q = ["3/4", "1/4"]
/// "#;
/// let AnyProblem::Single(problem) = parse_toml(text)? else { unreachable!() };
/// assert_eq!(problem.vocab(), 2);
/// let error = parse_toml(&text.replace("drafts = 2", "drafts = 65")).unwrap_err();
/// assert_eq!(error.to_string(), "drafts is 65; it must be in 1..=64");
/// # Ok::<(), specgap_core::problem::FieldError>(())
/// ```
pub fn parse_toml(text: &str) -> Result<AnyProblem, FieldError> {
    let message = |error: &toml::de::Error| {
        let at = error.span().map_or(0, |span| span.start.min(text.len()));
        let before = &text.as_bytes()[..at];
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        let column = at
            - before
                .iter()
                .rposition(|&byte| byte == b'\n')
                .map_or(0, |p| p + 1)
            + 1;
        format!(
            "line {line}, column {column}: {}",
            flatten(&error.message())
        )
    };
    build(
        tables::file_in_toml(text)
            .map_err(|refused| syntax(&refused.path, message(&refused.error)))?,
    )
}

/// Reads a problem from JSON text.
///
/// # Errors
/// [`FieldError`] names field, entry and limit.
pub fn parse_json(text: &str) -> Result<AnyProblem, FieldError> {
    build(whole(text, tables::file_in_json)?)
}

/// Returns what a whole text in JSON says.
pub(super) fn whole<T>(text: &str, read: fn(&str) -> InJson<T>) -> Result<T, FieldError> {
    let (table, rest) = read(text).map_err(|refused| {
        let error = &refused.error;
        let message = not_finite(text, error.line(), error.column());
        syntax(&refused.path, message.unwrap_or_else(|| flatten(error)))
    })?;
    rest.map_err(|error| FieldError::Syntax(flatten(&error)))?;
    Ok(table)
}

/// Says what programs write for numbers that JSON has not, where one stands at this place, with or
/// without its sign before it.
fn not_finite(text: &str, line: usize, column: usize) -> Option<String> {
    let row = text.lines().nth(line.checked_sub(1)?)?;
    let from = row.get(column.checked_sub(1)?..)?;
    let word = ["NaN", "Infinity"]
        .into_iter()
        .find(|word| from.trim_start_matches('-').starts_with(word))?;
    Some(format!(
        "{word} at line {line} column {column}: JSON has no such number, and numbers have to be finite"
    ))
}

fn syntax(path: &str, message: String) -> FieldError {
    FieldError::Syntax(if path == "." {
        message
    } else {
        format!("{path}: {message}")
    })
}

/// A parser's message on one line.
fn flatten(error: &impl fmt::Display) -> String {
    error
        .to_string()
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}
