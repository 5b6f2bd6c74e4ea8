//! `specgap verify`.

use super::batch::{self, ProblemCommand};
use super::options::{Common, Problems};
use super::output::{CliError, Verdict};
use super::recorded::Recorded;
use crate::evaluate::{Verification, verify_with};
use crate::page::table::Column;
use crate::page::{Page, counted, disagree};
use crate::problem::{AnyProblem, Problem};
use crate::report::verify as report;
use crate::verifier::RrsWoSettings;
use clap::Args;

/// Arguments of `specgap verify`.
#[derive(Args, Debug)]
pub(super) struct VerifyArgs {
    #[command(flatten)]
    problems: Problems,
}

struct Verify {
    settings: RrsWoSettings,
    /// Verifiers that were run, over all problems.
    runs: usize,
}

impl ProblemCommand for Verify {
    type Problem = Problem;
    type Result = Verification;

    const NAME: &'static str = "verify";
    const DOING: &'static str = "verifying";
    const OTHERS: [&'static str; 2] = ["block problem", "specgap block"];
    const SELECT: fn(&AnyProblem) -> Option<&Problem> = AnyProblem::single;
    const PAGE: fn(&Verification) -> Page = report::page;
    const LINE: fn(&Verification) -> Vec<(Column, String)> = report::line;

    fn recorded(&self, line: &mut Recorded) {
        line.option("seed", Some(self.settings.seed).filter(|&seed| seed > 0));
    }
    fn work(&self, problem: &Problem) -> Vec<Verification> {
        vec![verify_with(problem, &self.settings)]
    }
    fn keep(&mut self, _: &Problem, found: &mut Verification) -> Result<(), CliError> {
        self.runs += found.runs();
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
