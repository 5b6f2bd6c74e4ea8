//! `specgap block`.

use super::batch::{self, ProblemCommand};
use super::options::{Common, Problems};
use super::output::{CliError, Verdict};
use crate::evaluate::{BlockEvaluation, block};
use crate::problem::{AnyProblem, BlockProblem};
use crate::report::{agree, block as report, counted, disagree};
use clap::Args;

/// Arguments of `specgap block`.
#[derive(Args, Debug)]
pub(super) struct BlockArgs {
    #[command(flatten)]
    problems: Problems,
    /// Numbers of draft blocks, instead of the one in the file.
    #[arg(long, value_name = "K", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(1..=64))]
    drafts: Vec<u8>,
}

struct Block<'a> {
    /// Numbers of drafts, instead of the problem's own.
    drafts: &'a [u8],
}

impl ProblemCommand for Block<'_> {
    type Problem = BlockProblem;
    type Result = BlockEvaluation;

    const DOING: &'static str = "enumerating";
    const REFUSAL: &'static str = "this is a single-step problem; run specgap solve on it";
    const REASON: &'static str = "a single-step problem; see specgap solve";
    const PASSED_OVER: [&'static str; 2] = ["single-step problem", "see specgap solve"];
    const DEFINITIONS: &'static str = report::DEFINITIONS;

    fn select(problem: &AnyProblem) -> Option<&BlockProblem> {
        problem.block()
    }
    fn work(&self, problem: &BlockProblem) -> Vec<BlockEvaluation> {
        if self.drafts.is_empty() {
            return vec![block(problem, problem.drafts())];
        }
        self.drafts
            .iter()
            .map(|&drafts| block(problem, usize::from(drafts)))
            .collect()
    }
    fn text(evaluation: &BlockEvaluation, width: u16) -> String {
        report::text(evaluation, width)
    }
    fn summary(&self, results: usize, agreeing: usize) -> String {
        format!(
            "{}: {}, {}",
            counted(results, "block evaluation"),
            agree(agreeing),
            disagree(results - agreeing)
        )
    }
}

pub(super) fn run(args: &BlockArgs, common: &Common) -> Result<Verdict, CliError> {
    batch::run(
        Block {
            drafts: &args.drafts,
        },
        &args.problems.problems,
        common,
    )
}
