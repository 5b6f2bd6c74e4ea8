//! `specgap relaxed`: what relaxed rules accept, and what that does to the law.

use super::options::Common;
use super::output::{CliError, Verdict};
use super::printed;
use super::texts::Texts;
use crate::report;
use clap::Args;

/// Arguments of `specgap relaxed`.
#[derive(Args, Debug)]
#[command(after_long_help = printed::definitions(crate::replay::relaxed_definitions()))]
pub struct RelaxedArgs {
    #[command(flatten)]
    texts: Texts,
}

pub(super) fn run(args: &RelaxedArgs, common: &Common) -> Result<Verdict, CliError> {
    let mut command = args.texts.recorded("relaxed");
    args.texts.record(&mut command);
    let command = command.into_line();
    args.texts.report_alone(
        common,
        |logs, progress| {
            crate::replay::measure_relaxed(logs, args.texts.temperature, &command, progress)
        },
        report::relaxed::page,
    )
}
