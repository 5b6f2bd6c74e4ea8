//! `specgap solve`.

use super::batch::{self, ProblemCommand};
use super::options::{Common, Problems};
use super::output::{CliError, Verdict, write_whole};
use crate::certify::Certificate;
use crate::evaluate::{Limits, Solution, solve};
use crate::problem::{AnyProblem, Problem};
use crate::report::{agree, counted, disagree, solve as report};
use clap::Args;
use std::path::{Path, PathBuf};

/// Arguments of `specgap solve`.
#[derive(Args, Debug)]
pub(super) struct SolveArgs {
    #[command(flatten)]
    problems: Problems,
    /// Write the exact certificate of each problem here, as NAME.json; specgap certify checks it.
    #[arg(long, alias = "certificates", value_name = "DIR")]
    out: Option<PathBuf>,
}

struct Solve<'a> {
    limits: Limits,
    /// Where certificates go.
    certificates: Option<&'a Path>,
}

impl ProblemCommand for Solve<'_> {
    type Problem = Problem;
    type Result = Solution;

    const DOING: &'static str = "solving";
    const REFUSAL: &'static str = "this is a block problem; run specgap block on it";
    const REASON: &'static str = "a block problem; see specgap block";
    const PASSED_OVER: [&'static str; 2] = ["block problem", "see specgap block"];
    const DEFINITIONS: &'static str = report::DEFINITIONS;

    fn select(problem: &AnyProblem) -> Option<&Problem> {
        problem.single()
    }
    fn prepare(&mut self) -> Result<(), CliError> {
        let Some(folder) = self.certificates else {
            return Ok(());
        };
        std::fs::create_dir_all(folder).map_err(|source| CliError::File {
            path: folder.to_owned(),
            action: "cannot be created",
            source,
        })
    }
    fn work(&self, problem: &Problem) -> Vec<Solution> {
        vec![solve(problem, &self.limits)]
    }
    fn text(solution: &Solution, width: u16) -> String {
        report::text(solution, width)
    }
    fn keep(&mut self, problem: &Problem, solution: &Solution) -> Result<(), CliError> {
        match self.certificates {
            Some(folder) => write_certificate(folder, problem, solution),
            None => Ok(()),
        }
    }
    fn summary(&self, results: usize, agreeing: usize) -> String {
        format!(
            "{}: {}, {}",
            counted(results, "problem"),
            agree(agreeing),
            disagree(results - agreeing)
        )
    }
}

pub(super) fn run(args: &SolveArgs, common: &Common) -> Result<Verdict, CliError> {
    let certificates = args.out.as_deref();
    batch::run(
        Solve {
            limits: Limits::default(),
            certificates,
        },
        &args.problems.problems,
        common,
    )
}

fn write_certificate(
    folder: &Path,
    problem: &Problem,
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
