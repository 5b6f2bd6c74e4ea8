//! Errors of the library as exceptions, with the library's own message.

use pyo3::exceptions::{
    PyFileExistsError, PyFileNotFoundError, PyOSError, PyPermissionError, PyRuntimeError,
};
use pyo3::prelude::*;
use specgap::cli::{CliError, HostError};
use specgap::gap::GapError;
use specgap::log::LogError;
use specgap::replay::ReplayError;
use std::error::Error;
use std::{fmt, io};

pyo3::import_exception!(specgap._errors, Refused);

/// Where something is refused: the tensor, its row, and the entry of that, as far as is known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    pub(crate) tensor: Option<String>,
    pub(crate) row: Option<usize>,
    pub(crate) column: Option<usize>,
}

impl Place {
    /// Returns where an error of the library is.
    fn of(error: &(dyn Error + 'static)) -> Self {
        let log = match error.downcast_ref() {
            Some(CliError::Gap(error)) => return Self::of(error),
            Some(CliError::Text(error)) => return Self::of(error),
            _ => error.downcast_ref(),
        };
        let log = match error.downcast_ref() {
            Some(GapError::Log(log)) => Some(log),
            Some(&GapError::Position(_, position, _)) => return Self::row(position),
            _ => log,
        };
        let log = match error.downcast_ref() {
            Some(ReplayError::Rows(log)) => Some(log),
            Some(&ReplayError::Position(_, position, _)) => return Self::row(position),
            _ => log,
        };
        let (tensor, row, column) = match log {
            Some(LogError::Tensor(_, tensor, _)) => (tensor, None, None),
            Some(LogError::Row { tensor, row, .. }) => (tensor, Some(*row), None),
            Some(LogError::Entry {
                tensor,
                row,
                column,
                ..
            }) => (tensor, Some(*row), Some(*column)),
            _ => return Self::default(),
        };
        Self {
            tensor: Some(tensor.clone()),
            row,
            column,
        }
    }

    fn row(row: usize) -> Self {
        Self {
            row: Some(row),
            ..Self::default()
        }
    }
}

/// Returns what is refused, nowhere in particular.
pub(crate) fn refused(message: impl Into<String>) -> PyErr {
    refused_at(message, Place::default())
}

/// Returns what is refused, and where.
pub(crate) fn refused_at(message: impl Into<String>, place: Place) -> PyErr {
    Refused::new_err((message.into(), place.tensor, place.row, place.column))
}

/// `FileNotFoundError` and its like where a file is the cause, else `Refused`.
pub(crate) fn raised(error: impl Error + 'static) -> PyErr {
    of_library(&error)
}

fn of_library(error: &(dyn Error + 'static)) -> PyErr {
    let message = error.to_string();
    let mut cause = Some(error);
    while let Some(one) = cause {
        if let Some(system) = one.downcast_ref::<io::Error>() {
            let fetched = system.get_ref();
            let fetched = fetched.and_then(|inner| inner.downcast_ref::<Fetched>());
            return match fetched {
                Some(fetched) => refused_at(message, fetched.place.clone()),
                None => of_system(system.kind(), message),
            };
        }
        cause = one.source();
    }
    refused_at(message, Place::of(error))
}

fn of_system(kind: io::ErrorKind, message: String) -> PyErr {
    match kind {
        io::ErrorKind::NotFound => PyFileNotFoundError::new_err(message),
        io::ErrorKind::PermissionDenied => PyPermissionError::new_err(message),
        io::ErrorKind::AlreadyExists => PyFileExistsError::new_err(message),
        // What was read, and not how.
        io::ErrorKind::InvalidData => refused(message),
        _ => PyOSError::new_err(message),
    }
}

/// A refusal of a Python function that hands over rows.
#[derive(Debug)]
struct Fetched {
    message: String,
    place: Place,
}

impl fmt::Display for Fetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Fetched {}

/// Returns what a Python function raised, for the library that called it.
pub(crate) fn as_io(py: Python<'_>, error: &PyErr) -> io::Error {
    if error.is_instance_of::<Refused>(py) {
        let value = error.value(py);
        let row = |name: &str| value.getattr(name).ok().and_then(|one| one.extract().ok());
        let tensor = value.getattr("tensor").ok();
        let place = Place {
            tensor: tensor.and_then(|one| one.extract().ok()),
            row: row("row"),
            column: row("column"),
        };
        let message = value.to_string();
        return io::Error::new(io::ErrorKind::InvalidData, Fetched { message, place });
    }
    let kind = if error.is_instance_of::<PyFileNotFoundError>(py) {
        io::ErrorKind::NotFound
    } else if error.is_instance_of::<PyPermissionError>(py) {
        io::ErrorKind::PermissionDenied
    } else if error.is_instance_of::<PyOSError>(py) {
        io::ErrorKind::Other
    } else {
        io::ErrorKind::InvalidData
    };
    io::Error::new(kind, error.value(py).to_string())
}

/// Returns what a command's host reports.
pub(crate) fn of_host(error: &HostError) -> PyErr {
    match error {
        HostError::Usage(usage) => {
            let text = usage.to_string();
            let text = text.strip_prefix("error: ").unwrap_or(&text);
            // What follows is about a command line.
            let end = ["\n\nUsage:", "\n\nFor more information"];
            let end = end.iter().filter_map(|mark| text.find(mark)).min();
            let text = text.get(..end.unwrap_or(text.len())).unwrap_or(text);
            let mut text = text.trim_end().to_owned();
            for (_, named) in usage.context() {
                for option in named.to_string().split(", ") {
                    let name = option
                        .strip_prefix("--")
                        .map(|option| option.split(' ').next());
                    if let Some(Some(name)) = name {
                        let setting = format!("⟨{name}⟩");
                        text = text
                            .replace(&format!("'{option}'"), &setting)
                            .replace(option, &setting);
                    }
                }
            }
            refused(text)
        }
        HostError::Command(command) if command.exit_code() == 3 => bug(&command.to_string()),
        HostError::Command(command) => of_library(command),
        _ => PyRuntimeError::new_err(error.to_string()),
    }
}

/// Something that cannot happen did.
pub(crate) fn bug(message: &str) -> PyErr {
    PyRuntimeError::new_err(message.to_owned())
}
