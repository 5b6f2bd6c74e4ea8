//! `specgap solve`.

use super::batch::{self, ProblemCommand};
use super::colour;
use super::options::{Common, Problems};
use super::output::{CliError, Verdict, json_file, write_whole};
use super::overwrites::Touched;
use crate::certify::Certificate;
use crate::coupling::TransportPlan;
use crate::evaluate::{Limits, Solution, solve};
use crate::page::table::Column;
use crate::page::{Page, is_of_a_page, visible};
use crate::problem::{AnyProblem, Problem};
use crate::report::solve as report;
use crate::sorted::Map;
use clap::Args;
use std::path::Path;

/// Arguments of `specgap solve`.
#[derive(Args, Debug)]
#[command(mut_arg("out", |out| out.alias("certificates").help(OUT)))]
pub(super) struct SolveArgs {
    #[command(flatten)]
    problems: Problems,
}

const OUT: &str = "Write report.html, report.md, report.json and the exact certificate of each problem \
    here, as NAME.json; specgap certify checks it";

struct Solve<'a> {
    limits: Limits,
    /// Where certificates go.
    certificates: Option<&'a Path>,
}

impl ProblemCommand for Solve<'_> {
    type Problem = Problem;
    type Result = Solution;

    const NAME: &'static str = "solve";
    const DOING: &'static str = "solving";
    const OTHERS: [&'static str; 2] = ["block problem", "specgap block"];
    const SELECT: fn(&AnyProblem) -> Option<&Problem> = AnyProblem::single;
    const PAGE: fn(&Solution) -> Page = report::page;
    const LINE: fn(&Solution) -> Vec<(Column, String)> = report::line;

    fn prepare(&mut self, problems: &[(&Path, &Problem)]) -> Result<(), CliError> {
        let Some(folder) = self.certificates else {
            return Ok(());
        };
        let mut files: Map<String, &Path> = Map::new();
        let mut touched = Touched::reading(problems.iter().map(|(path, _)| path));
        for (path, problem) in problems {
            let file = certificate_file(problem.name());
            if is_of_a_page(&file.to_lowercase()) {
                let message = "name: is \"report\", whose certificate would be the report's own file; \
                    name it otherwise, or solve it without --out";
                return Err(CliError::input(path, message));
            }
            // Names on file systems that know no capitals, too.
            if let Some(other) = files.insert(file.to_lowercase(), path) {
                return Err(CliError::input(
                    path,
                    format!(
                        "name: is {:?}, whose certificate would be {file}, as would that of {}; \
                         name one of the two otherwise, or solve them without --out",
                        problem.name(),
                        other.display()
                    ),
                ));
            }
            touched = touched.writing("a certificate", Some(&folder.join(file)));
        }
        touched.check()?;
        std::fs::create_dir_all(folder)
            .map_err(|source| CliError::File(folder.to_owned(), "cannot be created", source))
    }
    fn work(&self, problem: &Problem) -> Vec<Solution> {
        vec![solve(problem, &self.limits)]
    }
    fn keep(&mut self, problem: &Problem, solution: &mut Solution) -> Result<(), CliError> {
        match (self.certificates, solution.proof.plan.take()) {
            (Some(folder), Some(plan)) => write_certificate(folder, problem, solution, &plan),
            (Some(_), None) => {
                no_certificate(
                    solution,
                    "the flow that would be its plan is skipped; the report says why",
                );
                Ok(())
            }
            (None, _) => Ok(()),
        }
    }
}

pub(super) fn run(args: &SolveArgs, common: &Common) -> Result<Verdict, CliError> {
    let certificates = args.problems.folder.out.as_deref();
    batch::run(
        Solve {
            limits: Limits::default(),
            certificates,
        },
        &args.problems,
        common,
    )
}

/// The file of a problem's certificate.
fn certificate_file(problem: &str) -> String {
    let plain = |c: char| {
        if c.is_alphanumeric() || "-_.".contains(c) {
            c
        } else {
            '_'
        }
    };
    problem.chars().map(plain).collect::<String>() + ".json"
}

fn write_certificate(
    folder: &Path,
    problem: &Problem,
    solution: &Solution,
    plan: &TransportPlan,
) -> Result<(), CliError> {
    let path = folder.join(certificate_file(&solution.problem));
    match Certificate::new(problem, plan, &solution.proof.subset) {
        Ok(certificate) => write_whole(&path, &json_file(&certificate)?),
        // Rounded plans prove an enclosure and are not written.
        Err(reason) => {
            no_certificate(solution, &reason.to_string());
            Ok(())
        }
    }
}

fn no_certificate(solution: &Solution, reason: &str) {
    let name = visible(solution.problem.clone());
    colour::note(&format!("{name}: no certificate written: {reason}"));
}
