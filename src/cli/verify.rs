//! `specgap verify`.

use super::output::{CliError, progress, read_problems, width};
use super::{Common, Format, Verdict};
use crate::problem::AnyProblem;
use crate::report::solve::json_skipped;
use crate::report::verify as report;
use crate::verifier::{Evaluation, RrsWoSettings, evaluate_with};
use clap::Args;
use rayon::prelude::*;
use std::io::Write;
use std::path::PathBuf;

/// Arguments of `specgap verify`.
#[derive(Args, Debug)]
pub(super) struct VerifyArgs {
    /// Problem files (.toml, .json) or folders of them.
    #[arg(required = true, value_name = "PROBLEM")]
    problems: Vec<PathBuf>,
}

pub(super) fn run(args: &VerifyArgs, common: &Common) -> Result<Verdict, CliError> {
    let problems = read_problems(&args.problems)?;
    for (path, walked, problem) in &problems {
        if let (AnyProblem::Block(_), false) = (problem, walked) {
            return Err(CliError::Input {
                path: path.clone(),
                message: "this is a block problem; run specgap block on it".to_owned(),
            });
        }
    }
    let settings = RrsWoSettings {
        seed: common.seed,
        ..RrsWoSettings::default()
    };
    let bar = progress(problems.len(), common.format == Format::Text, "verifying");
    let mut out = std::io::stdout().lock();
    let (mut done, mut fine, mut skipped, mut runs) = (0, 0, 0, 0);
    // In batches, so that results appear in order, soon, and are not all kept.
    for batch in problems.chunks(64) {
        let results: Vec<Option<Evaluation>> = batch
            .par_iter()
            .map(|(_, _, problem)| {
                let result = match problem {
                    AnyProblem::Single(problem) => Some(evaluate_with(problem, &settings)),
                    AnyProblem::Block(_) => None,
                };
                bar.inc(1);
                result
            })
            .collect();
        for ((_, _, problem), result) in batch.iter().zip(&results) {
            let Some(evaluation) = result else {
                skipped += 1;
                let reason = "a block problem; see specgap block";
                match common.format {
                    Format::Json => writeln!(out, "{}", json_skipped(problem.name(), reason)?)?,
                    Format::Text if common.verbose > 0 => {
                        writeln!(out, "{}: skipped, {reason}\n", problem.name())?;
                    }
                    Format::Text => {}
                }
                continue;
            };
            done += 1;
            fine += usize::from(evaluation.is_fine());
            runs += report::measured(evaluation);
            match common.format {
                Format::Json => writeln!(out, "{}", report::json(evaluation)?)?,
                Format::Text if !common.quiet || !evaluation.is_fine() => {
                    bar.suspend(|| writeln!(out, "{}", report::text(evaluation, width())))?;
                }
                Format::Text => {}
            }
        }
    }
    bar.finish_and_clear();
    if common.format == Format::Text {
        if !common.quiet {
            writeln!(out, "{}\n", report::DEFINITIONS)?;
        }
        let blocks = match skipped {
            0 => String::new(),
            n => format!("; {n} block problems skipped (see specgap block)"),
        };
        writeln!(
            out,
            "{done} problems, {runs} verifier runs: {fine} problems agree, {} do not{blocks}",
            done - fine
        )?;
    }
    out.flush()?;
    Ok(if fine == done {
        Verdict::Agrees
    } else {
        Verdict::Disagrees
    })
}
