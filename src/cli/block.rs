//! `specgap block`.

use super::batch::{self, ProblemCommand};
use super::options::{Common, Counts, Problems};
use super::output::{CliError, Verdict};
use super::recorded::Recorded;
use crate::evaluate::{BlockEvaluation, block};
use crate::page::Page;
use crate::page::table::Column;
use crate::problem::{AnyProblem, BlockProblem};
use crate::report::block as report;
use clap::Args;

/// Arguments of `specgap block`.
#[derive(Args, Debug)]
pub(super) struct BlockArgs {
    #[command(flatten)]
    problems: Problems,
    /// Numbers of drafts, 1 to 64; 2-4 is 2,3,4.
    ///
    /// Of draft blocks, instead of the number in the file.
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = |text: &str| Counts::up_to(text, 64))]
    drafts: Vec<Counts>,
}

struct Block {
    /// Numbers of drafts, instead of the problem's own.
    drafts: Vec<usize>,
}

impl ProblemCommand for Block {
    type Problem = BlockProblem;
    type Result = BlockEvaluation;

    const NAME: &'static str = "block";
    const RESULT: &'static str = "block evaluation";
    const DOING: &'static str = "enumerating";
    const OTHERS: [&'static str; 2] = ["single-step problem", "specgap solve"];
    const SELECT: fn(&AnyProblem) -> Option<&BlockProblem> = AnyProblem::block;
    const PAGE: fn(&BlockEvaluation) -> Page = report::page;
    const LINE: fn(&BlockEvaluation) -> Vec<(Column, String)> = report::line;

    fn recorded(&self, line: &mut Recorded) {
        line.list("drafts", &self.drafts);
    }
    fn work(&self, problem: &BlockProblem) -> Vec<BlockEvaluation> {
        if self.drafts.is_empty() {
            return vec![block(problem, problem.drafts())];
        }
        self.drafts
            .iter()
            .map(|&drafts| block(problem, drafts))
            .collect()
    }
}

pub(super) fn run(args: &BlockArgs, common: &Common) -> Result<Verdict, CliError> {
    batch::run(
        Block {
            drafts: Counts::all(&args.drafts),
        },
        &args.problems,
        common,
    )
}
