//! `specgap verify`.

use super::batch::{self, ProblemCommand};
use super::output::CliError;
use super::{Common, Verdict};
use crate::problem::{AnyProblem, Problem};
use crate::report::{counted, disagree, verify as report};
use crate::verifier::{Evaluation, RrsWoSettings, evaluate_with};
use clap::Args;
use std::path::PathBuf;

/// Arguments of `specgap verify`.
#[derive(Args, Debug)]
pub(super) struct VerifyArgs {
    /// Problem files (.toml, .json) or folders of them.
    #[arg(required = true, value_name = "PROBLEM")]
    problems: Vec<PathBuf>,
}

struct Verify {
    settings: RrsWoSettings,
    /// Verifiers that were run, over all problems.
    runs: usize,
}

impl ProblemCommand for Verify {
    type Problem = Problem;
    type Result = Evaluation;

    const DOING: &'static str = "verifying";
    const REFUSAL: &'static str = "this is a block problem; run specgap block on it";
    const REASON: &'static str = "a block problem; see specgap block";
    const PASSED_OVER: [&'static str; 2] = ["block problem", "see specgap block"];
    const DEFINITIONS: &'static str = report::DEFINITIONS;

    fn select(problem: &AnyProblem) -> Option<&Problem> {
        problem.single()
    }
    fn work(&self, problem: &Problem) -> Vec<Evaluation> {
        vec![evaluate_with(problem, &self.settings)]
    }
    fn agrees(evaluation: &Evaluation) -> bool {
        evaluation.is_fine()
    }
    fn json(evaluation: &Evaluation) -> serde_json::Result<String> {
        report::json(evaluation)
    }
    fn text(evaluation: &Evaluation, width: u16) -> String {
        report::text(evaluation, width)
    }
    fn keep(&mut self, _: &Problem, evaluation: &Evaluation) -> Result<(), CliError> {
        self.runs += report::measured(evaluation);
        Ok(())
    }
    fn summary(&self, results: usize, agreeing: usize) -> String {
        format!(
            "{}, {}: {} {}, {}",
            counted(results, "problem"),
            counted(self.runs, "verifier run"),
            counted(agreeing, "problem"),
            if agreeing == 1 { "agrees" } else { "agree" },
            disagree(results - agreeing)
        )
    }
}

pub(super) fn run(args: &VerifyArgs, common: &Common) -> Result<Verdict, CliError> {
    let settings = RrsWoSettings {
        seed: common.seed,
        ..RrsWoSettings::default()
    };
    batch::run(Verify { settings, runs: 0 }, &args.problems, common)
}
