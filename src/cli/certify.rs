//! `specgap certify`.

use super::options::{Common, Format};
use super::output::{CliError, Verdict, read_document, read_problems};
use crate::certify::Certificate;
use crate::distribution::format_rational;
use crate::page::visible;
use crate::problem::AnyProblem;
use crate::typed;
use clap::Args;
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;

/// Arguments of `specgap certify`.
#[derive(Args, Debug)]
pub(super) struct CertifyArgs {
    /// The problem file.
    problem: PathBuf,
    /// The certificate, as `specgap solve --out` writes it.
    certificate: PathBuf,
}

/// What became of a certificate.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Certified {
    /// 1.
    schema: u32,
    /// The problem's name.
    problem: String,
    /// The fraction that is proved, or null.
    optimal_acceptance_rate: Option<String>,
    /// Whether the certificate proves it.
    valid: bool,
    /// Why it does not.
    reason: Option<String>,
}

pub(super) fn run(args: &CertifyArgs, common: &Common) -> Result<Verdict, CliError> {
    let input = |message: String| CliError::Input {
        path: args.certificate.clone(),
        message,
    };
    let problems = read_problems(std::slice::from_ref(&args.problem))?;
    let [(_, _, AnyProblem::Single(problem))] = problems.as_slice() else {
        return Err(CliError::Input {
            path: args.problem.clone(),
            message: "give one single-step problem file".to_owned(),
        });
    };
    let text = read_document(&args.certificate)?;
    let (certificate, rest): (Certificate, _) =
        typed::json(&text).map_err(|refused| input(refused.to_string()))?;
    rest.map_err(|error| input(error.to_string()))?;

    let mut out = std::io::stdout().lock();
    let checked = certificate.check(problem);
    let proved = checked
        .as_ref()
        .ok()
        .and_then(|rate| rate.get().rational())
        .map(format_rational);
    let reason = checked.as_ref().err().map(ToString::to_string);
    let name = visible(problem.name().to_owned());
    match common.format {
        Format::Json => {
            let object = Certified {
                schema: crate::report::JSON_SCHEMA,
                problem: problem.name().to_owned(),
                optimal_acceptance_rate: proved,
                valid: checked.is_ok(),
                reason,
            };
            writeln!(out, "{}", typed::line(&object)?)?;
        }
        Format::Text => match (&proved, &reason) {
            (Some(value), _) => writeln!(
                out,
                "{name}: the certificate proves alpha* = {value}, with tolerance 0"
            )?,
            (None, reason) => writeln!(
                out,
                "{name}: REJECTED: {}",
                visible(
                    reason
                        .clone()
                        .unwrap_or("it proves no exact value".to_owned())
                )
            )?,
        },
    }
    Ok(Verdict::of(checked.is_ok()))
}
