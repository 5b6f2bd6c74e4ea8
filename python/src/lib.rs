//! The native half of the Python package: arrays in, results out, errors mapped, the
//! interpreter's lock released while anything is computed. What is typed and documented for
//! people is in `specgap/`.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod arrays;
mod decoder;
mod errors;
mod laws;
mod logs;
mod measure;
mod plan;
mod problems;
mod rates;
mod watch;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::ffi::OsString;

/// The program: the whole command line of specgap. Returns the exit code.
#[pyfunction]
fn main(py: Python<'_>, args: Vec<OsString>) -> u8 {
    py.detach(|| specgap::cli::main(args))
}

/// The font of pictures, for whoever draws them as pixels.
#[pyfunction]
fn font(py: Python<'_>) -> Bound<'_, PyBytes> {
    PyBytes::new(py, specgap::page::canvas::FONT)
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(main, module)?)?;
    module.add_function(wrap_pyfunction!(font, module)?)?;
    decoder::register(module)?;
    rates::register(module)?;
    laws::register(module)?;
    plan::register(module)?;
    problems::register(module)?;
    logs::register(module)?;
    measure::register(module)
}
