//! `specgap paths`: what several draft paths could give, and what verifiers get of it.

use super::options::{Common, Counts};
use super::output::{CliError, Verdict};
use super::printed;
use super::texts::Texts;
use crate::replay::PathSettings;
use crate::report;
use clap::Args;

/// Arguments of `specgap paths`.
#[derive(Args, Debug)]
#[command(after_long_help = printed::definitions(crate::replay::paths_definitions()))]
pub struct PathsArgs {
    /// Draft paths that start at one place.
    ///
    /// Several numbers are measured each by itself; 2-4 is 2,3,4.
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1-8", value_parser = |text: &str| Counts::up_to(text, PathSettings::MOST_DRAFTS))]
    paths: Vec<Counts>,
    /// Tokens of a draft path.
    ///
    /// Those of the logged paths, or 5, if not given.
    #[arg(long, alias = "path-length", value_name = "K", value_parser = clap::value_parser!(u16).range(1..=64))]
    length: Option<u16>,
    #[command(flatten)]
    texts: Texts,
}

impl PathsArgs {
    fn settings(&self) -> PathSettings {
        let mut drafts = Counts::all(&self.paths);
        drafts.sort_unstable();
        drafts.dedup();
        PathSettings {
            drafts,
            length: self.length.map(usize::from),
            temperature: self.texts.temperature,
        }
    }

    /// The command that makes the report.
    fn command(&self, settings: &PathSettings) -> String {
        let mut command = self.texts.recorded("paths");
        if settings.drafts != PathSettings::default().drafts {
            command.list("paths", &settings.drafts);
        }
        command.option("length", self.length);
        self.texts.record(&mut command);
        command.into_line()
    }
}

pub(super) fn run(args: &PathsArgs, common: &Common) -> Result<Verdict, CliError> {
    let settings = args.settings();
    let command = args.command(&settings);
    args.texts.report_alone(
        common,
        |logs, progress| crate::replay::measure_paths(logs, &settings, &command, progress),
        report::paths::page,
    )
}
