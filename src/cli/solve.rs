//! `specgap solve`.

use super::output::{CliError, progress, read_problems, width, write_whole};
use super::{Common, Format, Verdict};
use crate::certify::Certificate;
use crate::problem::AnyProblem;
use crate::report::solve as report;
use crate::solve::{Limits, Solution, solve};
use clap::Args;
use rayon::prelude::*;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Arguments of `specgap solve`.
#[derive(Args, Debug)]
pub(super) struct SolveArgs {
    /// Problem files (.toml, .json) or folders of them.
    #[arg(required = true, value_name = "PROBLEM")]
    problems: Vec<PathBuf>,
    /// Write the exact certificate of each problem to FOLDER/NAME.json.
    #[arg(long, value_name = "FOLDER")]
    certificates: Option<PathBuf>,
}

pub(super) fn run(args: &SolveArgs, common: &Common) -> Result<Verdict, CliError> {
    let problems = read_problems(&args.problems)?;
    for (path, walked, problem) in &problems {
        if let (AnyProblem::Block(_), false) = (problem, walked) {
            return Err(CliError::Input {
                path: path.clone(),
                message: "this is a block problem; run specgap block on it".to_owned(),
            });
        }
    }
    if let Some(folder) = &args.certificates {
        std::fs::create_dir_all(folder).map_err(|source| CliError::File {
            path: folder.clone(),
            action: "cannot be created",
            source,
        })?;
    }
    let bar = progress(problems.len(), common.format == Format::Text, "solving");
    let limits = Limits::default();
    let mut out = std::io::stdout().lock();
    let (mut solved, mut agreed, mut skipped) = (0, 0, 0);
    // In batches, so that results appear in order, soon, and are not all kept.
    for batch in problems.chunks(64) {
        let results: Vec<Option<Solution>> = batch
            .par_iter()
            .map(|(_, _, problem)| match problem {
                AnyProblem::Single(problem) => {
                    let solution = solve(problem, &limits);
                    bar.inc(1);
                    Some(solution)
                }
                AnyProblem::Block(_) => {
                    bar.inc(1);
                    None
                }
            })
            .collect();
        for ((_, _, problem), result) in batch.iter().zip(&results) {
            let (AnyProblem::Single(single), Some(solution)) = (problem, result) else {
                skipped += 1;
                let reason = "a block problem; see specgap block";
                match common.format {
                    Format::Json => {
                        writeln!(out, "{}", report::json_skipped(problem.name(), reason)?)?
                    }
                    Format::Text if common.verbose > 0 => {
                        writeln!(out, "{}: skipped, {reason}\n", problem.name())?;
                    }
                    Format::Text => {}
                }
                continue;
            };
            solved += 1;
            agreed += usize::from(solution.ok());
            match common.format {
                Format::Json => writeln!(out, "{}", report::json(solution)?)?,
                Format::Text if !common.quiet || !solution.ok() => {
                    bar.suspend(|| writeln!(out, "{}", report::text(solution, width())))?;
                }
                Format::Text => {}
            }
            if let Some(folder) = &args.certificates {
                write_certificate(folder, single, solution)?;
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
            "{solved} problems: {agreed} agree, {} do not{blocks}",
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

fn write_certificate(
    folder: &Path,
    problem: &crate::problem::Problem,
    solution: &Solution,
) -> Result<(), CliError> {
    let name: String = solution
        .problem
        .chars()
        .map(|c| {
            if c.is_alphanumeric() || "-_.".contains(c) {
                c
            } else {
                '_'
            }
        })
        .collect();
    let path = folder.join(format!("{name}.json"));
    let Some(plan) = &solution.proof.plan else {
        return Ok(());
    };
    match Certificate::new(problem, plan, &solution.proof.subset) {
        Ok(certificate) => {
            let mut text = serde_json::to_string_pretty(&certificate)?;
            text.push('\n');
            write_whole(&path, text.as_bytes())
        }
        // Rounded plans prove an enclosure and are not written.
        Err(reason) => {
            eprintln!("{}: no certificate written: {reason}", solution.problem);
            Ok(())
        }
    }
}
