//! `specgap block`.

use super::output::{CliError, progress, read_problems, width};
use super::{Common, Format, Verdict};
use crate::block::evaluate::{BlockEvaluation, evaluate};
use crate::problem::{AnyProblem, BlockProblem};
use crate::report::block as report;
use crate::report::solve::json_skipped;
use clap::Args;
use rayon::prelude::*;
use std::io::Write;
use std::path::PathBuf;

/// Arguments of `specgap block`.
#[derive(Args, Debug)]
pub(super) struct BlockArgs {
    /// Block problem files (.toml, .json) or folders of them.
    #[arg(required = true, value_name = "PROBLEM")]
    problems: Vec<PathBuf>,
    /// Numbers of draft blocks, instead of the one in the file.
    #[arg(long, value_name = "K", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(1..=64))]
    drafts: Vec<u8>,
}

pub(super) fn run(args: &BlockArgs, common: &Common) -> Result<Verdict, CliError> {
    let problems = read_problems(&args.problems)?;
    for (path, walked, problem) in &problems {
        if let (AnyProblem::Single(_), false) = (problem, walked) {
            return Err(CliError::Input {
                path: path.clone(),
                message: "this is a single-step problem; run specgap solve on it".to_owned(),
            });
        }
    }
    let drafts_of = |problem: &BlockProblem| match args.drafts.as_slice() {
        [] => vec![problem.drafts()],
        given => given.iter().map(|&drafts| usize::from(drafts)).collect(),
    };
    let bar = progress(problems.len(), common.format == Format::Text, "enumerating");
    let mut out = std::io::stdout().lock();
    let (mut solved, mut agreed, mut skipped) = (0, 0, 0);
    // In batches, so that results appear in order, soon, and are not all kept.
    for batch in problems.chunks(16) {
        let results: Vec<Option<Vec<BlockEvaluation>>> = batch
            .par_iter()
            .map(|(_, _, problem)| {
                let results = match problem {
                    AnyProblem::Block(problem) => Some(
                        drafts_of(problem)
                            .into_iter()
                            .map(|drafts| evaluate(problem, drafts))
                            .collect(),
                    ),
                    AnyProblem::Single(_) => None,
                };
                bar.inc(1);
                results
            })
            .collect();
        for ((_, _, problem), results) in batch.iter().zip(&results) {
            let Some(results) = results else {
                skipped += 1;
                let reason = "a single-step problem; see specgap solve";
                match common.format {
                    Format::Json => writeln!(out, "{}", json_skipped(problem.name(), reason)?)?,
                    Format::Text if common.verbose > 0 => {
                        writeln!(out, "{}: skipped, {reason}\n", problem.name())?;
                    }
                    Format::Text => {}
                }
                continue;
            };
            for evaluation in results {
                solved += 1;
                agreed += usize::from(evaluation.is_ok());
                match common.format {
                    Format::Json => writeln!(out, "{}", report::json(evaluation)?)?,
                    Format::Text if !common.quiet || !evaluation.is_ok() => {
                        bar.suspend(|| writeln!(out, "{}", report::text(evaluation, width())))?;
                    }
                    Format::Text => {}
                }
            }
        }
    }
    bar.finish_and_clear();
    if common.format == Format::Text {
        if !common.quiet {
            writeln!(out, "{}\n", report::DEFINITIONS)?;
        }
        let single = match skipped {
            0 => String::new(),
            n => format!("; {n} single-step problems skipped (see specgap solve)"),
        };
        writeln!(
            out,
            "{solved} block evaluations: {agreed} agree, {} do not{single}",
            solved - agreed
        )?;
    }
    out.flush()?;
    Ok(if agreed == solved {
        Verdict::Agrees
    } else {
        Verdict::Disagrees
    })
}
