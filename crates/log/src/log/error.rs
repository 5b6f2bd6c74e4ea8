//! What can be wrong with a log, and where.

use super::beside::{DRAFT_ROW, SCORED};
use std::io;
use std::path::{Path, PathBuf};

/// Why a log is refused or cannot be written.
///
/// Every message names the file and, where there is one, the tensor, the row
/// and the column (rows count from 0 within the file, columns are token ids of
/// a full row or places in the list of a top-heavy one).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The file system refused: the file or directory; `cannot be opened`, `cannot be read` or
    /// `cannot be written`; what the system said.
    #[error("{0}: {1}: {2}")]
    File(PathBuf, &'static str, #[source] io::Error),
    /// The file as a whole is not what it should be: truncated, another format, a header that lies:
    /// the file or directory; what is wrong, and the cure.
    #[error("{0}: {1}")]
    Format(PathBuf, String),
    /// A tensor is missing or has the wrong type or shape: the file; the tensor's name; what is
    /// wrong, and the cure.
    #[error("{0}: {1}: {2}")]
    Tensor(PathBuf, String, String),
    /// A row cannot be used.
    #[error("{path}: {tensor}: row {row}: {message}")]
    Row {
        /// The file.
        path: PathBuf,
        /// The tensor's name.
        tensor: String,
        /// The row, from 0, within this file.
        row: usize,
        /// What is wrong, and the cure.
        message: String,
    },
    /// One entry of a tensor cannot be used.
    #[error("{path}: {tensor}: row {row}, column {column}: {message}")]
    Entry {
        /// The file.
        path: PathBuf,
        /// The tensor's name.
        tensor: String,
        /// The row, from 0, within this file.
        row: usize,
        /// The column, from 0.
        column: usize,
        /// What is wrong, and the cure.
        message: String,
    },
    /// The disk is full: the file; how many bytes the write that failed had.
    #[error(
        "{0}: the disk is full ({1} bytes were to be written); free some space, or write \
         fewer or smaller rows (f16, the top tokens of a row alone), and run the same command again: \
         what was logged before this is kept"
    )]
    DiskFull(PathBuf, u64),
}

/// Says that there is no such token.
pub(super) fn outside(token: i64, vocabulary: impl std::fmt::Display) -> String {
    format!("token {token} is outside the vocabulary of {vocabulary}; -1 stands for none")
}

impl LogError {
    pub(crate) fn format(path: &Path, message: impl Into<String>) -> Self {
        Self::Format(path.to_owned(), message.into())
    }

    pub(crate) fn tensor(path: &Path, tensor: &str, message: impl Into<String>) -> Self {
        Self::Tensor(path.to_owned(), tensor.to_owned(), message.into())
    }

    pub(crate) fn row(path: &Path, tensor: &str, row: usize, message: impl Into<String>) -> Self {
        Self::Row {
            path: path.to_owned(),
            tensor: tensor.to_owned(),
            row,
            message: message.into(),
        }
    }

    pub(crate) fn entry(
        path: &Path,
        tensor: &str,
        row: usize,
        column: usize,
        message: impl Into<String>,
    ) -> Self {
        Self::Entry {
            path: path.to_owned(),
            tensor: tensor.to_owned(),
            row,
            column,
            message: message.into(),
        }
    }

    /// Says what is wrong with a row of the draft by its position and its depth, where a position
    /// has several.
    #[must_use]
    pub(super) fn at_depth_of(mut self, depths: usize) -> Self {
        if let Self::Row { tensor, row, .. } | Self::Entry { tensor, row, .. } = &mut self
            && depths > 1
            && (tensor.starts_with("draft_") && tensor != DRAFT_ROW
                || SCORED.contains(&tensor.as_str()))
        {
            tensor.push_str(&format!(" at depth {}", *row % depths + 1));
            *row /= depths;
        }
        self
    }

    pub(crate) fn reading(path: &Path, source: io::Error) -> Self {
        Self::File(path.to_owned(), "cannot be read", source)
    }

    pub(crate) fn writing(path: &Path, bytes: u64, source: io::Error) -> Self {
        // A quota is a full disk to the one who meets it.
        if matches!(
            source.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
        ) {
            return Self::DiskFull(path.to_owned(), bytes);
        }
        Self::File(path.to_owned(), "cannot be written", source)
    }
}
