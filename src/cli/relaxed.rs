//! `specgap relaxed`: what relaxed rules accept, and what that does to the law.

use super::options::Common;
use super::output::{CliError, Verdict};
use super::parts::Parted;
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
    args.texts.report(
        (&[], &Parted::default()),
        common,
        |path| args.texts.open(path, common),
        |logs, bar| {
            let progress = |done| bar.inc(done);
            let temperature = args.texts.temperature;
            let found = crate::replay::measure_relaxed(logs, temperature, &command, &progress)?;
            Ok(Some(found))
        },
        report::relaxed::page,
        |_| Ok(Vec::new()),
    )
}
