//! What can be wrong with an engine's export, and where.

use crate::log::LogError;
use std::io;
use std::path::{Path, PathBuf};

/// Why an export is refused, or the log cannot be written.
///
/// Messages about what is in a file name the file, the record (from 0, and the line
/// that it begins at, from 1) and the field.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The file system refused: the file; `cannot be read` or `cannot be written`; what the system
    /// said.
    #[error("{0}: {1}: {2}")]
    File(PathBuf, &'static str, #[source] io::Error),
    /// A file as a whole is not what it should be: the file; what is wrong, and the cure.
    #[error("{0}: {1}")]
    Input(PathBuf, String),
    /// A field of a record cannot be used.
    #[error("{path}: record {record} (line {line}): {field}: {message}")]
    Field {
        /// The file.
        path: PathBuf,
        /// The record, from 0, within this file.
        record: usize,
        /// The line that it begins at, from 1.
        line: usize,
        /// The field, as a path from the record's root.
        field: String,
        /// What is wrong, and the cure.
        message: String,
    },
    /// The options do not go together, or not with the files.
    #[error("{0}")]
    Options(String),
    /// The log cannot be written, or a file of arrays is refused.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl ImportError {
    pub(super) fn input(path: &Path, message: impl Into<String>) -> Self {
        Self::Input(path.to_owned(), message.into())
    }
}

/// What is wrong with a record, before it is known where the record is.
#[derive(Debug)]
pub(super) struct Fault {
    pub field: String,
    pub message: String,
}

impl Fault {
    pub(super) fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            message: message.into(),
        }
    }
}
