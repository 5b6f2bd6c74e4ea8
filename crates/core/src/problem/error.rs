//! Why a problem file is refused.

use super::{BlockProblemError, ProblemError, SCHEMA};
use crate::scheme::{CompositionError, ExplicitError, UnknownScheme};
use specgap_number::distribution::{DistributionError, ParseRationalError};
use std::borrow::Cow;
use std::path::PathBuf;

/// Why a problem file is refused. The message names the file; its source names
/// the field, the entry and the limit.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProblemFileError {
    /// The file cannot be read: the file; what the system said.
    #[error("{0}: cannot be read: {1}")]
    Io(PathBuf, #[source] std::io::Error),
    /// The file is not TOML or JSON by its name: the file.
    #[error("{0}: problem files end in .toml or .json")]
    Extension(PathBuf),
    /// A directory without problem files: the folder.
    #[error("{0}: no .toml or .json problem file in this folder")]
    NoProblems(PathBuf),
    /// The contents are refused: the file; field, entry and limit.
    #[error("{0}: {1}")]
    Invalid(PathBuf, #[source] FieldError),
}

/// What is wrong inside a problem file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FieldError {
    /// Not TOML or JSON, an unknown field, or a value of the wrong kind.
    #[error("{0}")]
    Syntax(String),
    /// Another format version.
    #[error("schema is {0}; this build reads schema {SCHEMA}")]
    Schema(i64),
    /// A field that is needed and not there: the field; what to do.
    #[error("{0} is missing; {1}")]
    Missing(Cow<'static, str>, Cow<'static, str>),
    /// A field that does not belong: the field; what to do.
    #[error("{0} does not belong here; {1}")]
    Unexpected(Cow<'static, str>, String),
    /// A number that may not be: the field; what it is; what it must be.
    #[error("{0} is {1}; it must be {2}")]
    Range(String, String, String),
    /// A list with nothing in it: the field.
    #[error("{0}: the list is empty; give at least one entry")]
    Empty(String),
    /// A value that is not a number: the field, with the entry where it is a list; what is wrong
    /// with it.
    #[error("{0}: {1}")]
    Value(String, #[source] ParseRationalError),
    /// Entries that are not a distribution: the field; what is wrong with them.
    #[error("{0}: {1}")]
    Distribution(String, #[source] DistributionError),
    /// A scheme that does not exist.
    #[error("draft.scheme: {0}")]
    Scheme(#[from] UnknownScheme),
    /// A part of a composed law of no known kind: the field; what it says; what it may say.
    #[error("{0}: \"{1}\" is no law that can be a part; choose one of {2}")]
    Part(String, String, String),
    /// Parts that do not make a law.
    #[error("draft.law: {0}")]
    Composition(#[from] CompositionError),
    /// Tuples that do not make a law.
    #[error("draft.tuples: {0}")]
    Explicit(#[from] ExplicitError),
    /// A rule that does not fit its problem: the field; what is wrong with it.
    #[error("{0} {1}")]
    Rule(String, String),
    /// Parts that do not fit together.
    #[error("{0}")]
    Problem(#[from] ProblemError),
    /// A token tree that is not one.
    #[error("block: {0}")]
    Block(#[from] BlockProblemError),
}
