//! Commands that run models, in a build that cannot.

use crate::cli::output::{CliError, Verdict};
use clap::Args;
use std::ffi::OsString;

/// This build cannot run models.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        hide = true,
        value_name = "ARGUMENT"
    )]
    _ignored: Vec<OsString>,
}

/// Says what to build instead.
pub(super) fn refuse(command: &str) -> Result<Verdict, CliError> {
    Err(CliError::missing(format!(
        "{command} runs ONNX models, which this build cannot; in a copy of the repository, \
             install one that can: cargo install --path . --features onnx"
    )))
}
