//! Errors of the library as exceptions, with the library's own message.

use pyo3::exceptions::{
    PyFileExistsError, PyFileNotFoundError, PyOSError, PyPermissionError, PyRuntimeError,
    PyValueError,
};
use pyo3::{PyErr, Python};
use specgap::cli::HostError;
use std::error::Error;
use std::io;

/// `FileNotFoundError` and its like where a file is the cause, else `ValueError`.
pub(crate) fn raised(error: &(dyn Error + 'static)) -> PyErr {
    let message = error.to_string();
    let mut cause = Some(error);
    while let Some(one) = cause {
        if let Some(system) = one.downcast_ref::<io::Error>() {
            return of_system(system.kind(), message);
        }
        cause = one.source();
    }
    PyValueError::new_err(message)
}

fn of_system(kind: io::ErrorKind, message: String) -> PyErr {
    match kind {
        io::ErrorKind::NotFound => PyFileNotFoundError::new_err(message),
        io::ErrorKind::PermissionDenied => PyPermissionError::new_err(message),
        io::ErrorKind::AlreadyExists => PyFileExistsError::new_err(message),
        // What was read, and not how.
        io::ErrorKind::InvalidData => PyValueError::new_err(message),
        _ => PyOSError::new_err(message),
    }
}

/// What a Python function raised, for the library that called it.
pub(crate) fn as_io(py: Python<'_>, error: &PyErr) -> io::Error {
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

/// What a command's host reports.
pub(crate) fn of_host(error: &HostError) -> PyErr {
    match error {
        HostError::Usage(usage) => {
            let text = usage.to_string();
            let text = text.strip_prefix("error: ").unwrap_or(&text);
            // What follows is about a command line.
            let end = ["\n\nUsage:", "\n\nFor more information"];
            let end = end.iter().filter_map(|mark| text.find(mark)).min();
            let text = text.get(..end.unwrap_or(text.len())).unwrap_or(text);
            PyValueError::new_err(text.trim_end().to_owned())
        }
        HostError::Command(command) if command.exit_code() == 3 => bug(&command.to_string()),
        HostError::Command(command) => raised(command),
        _ => PyRuntimeError::new_err(error.to_string()),
    }
}

/// Something that cannot happen did.
pub(crate) fn bug(message: &str) -> PyErr {
    PyRuntimeError::new_err(message.to_owned())
}
