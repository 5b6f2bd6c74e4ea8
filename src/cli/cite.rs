//! `specgap cite`: what a paper cites.

use super::options::Common;
use super::output::{CliError, Verdict, read_document};
use crate::report::cite::bibtex;
use clap::Args;
use std::io::Write;
use std::path::PathBuf;

/// Arguments of `specgap cite`.
#[derive(Args, Debug)]
pub struct CiteArgs {
    /// A report.json: its version, and the papers of its rules and laws alone.
    #[arg(value_name = "REPORT.json")]
    report: Option<PathBuf>,
}

pub(super) fn run(args: &CiteArgs, _: &Common) -> Result<Verdict, CliError> {
    let report = (args.report.as_deref())
        .map(|path| {
            let text = read_document(path)?;
            serde_json::from_str(&text)
                .map_err(|error| CliError::input(path, format!("is no report.json: {error}")))
        })
        .transpose()?;
    write!(super::colour::plain(), "{}", bibtex(report.as_ref()))?;
    Ok(Verdict::Agrees)
}
