//! `specgap paths`: what several draft paths could give, and what verifiers get of it.

use super::gap::refuse_repetition;
use super::options::{Common, Counts, Folder, Kept};
use super::output::{CliError, Verdict, check_folder, write_together};
use super::printed::print_report;
use crate::log::Log;
use crate::report;
use crate::text::{self, PathSettings, TextError};
use clap::Args;
use std::path::{Path, PathBuf};

/// Arguments of `specgap paths`.
#[derive(Args, Debug)]
#[command(after_long_help = definitions())]
pub struct PathsArgs {
    /// Logs with sampled text, and draft paths where `capture --paths` drew them: .safetensors
    /// or .npz files, or directories with a log.json. Several are counted together.
    #[arg(required = true, value_name = "LOG")]
    logs: Vec<PathBuf>,
    /// Numbers of draft paths; 2-4 is 2,3,4.
    #[arg(long, value_name = "K,...", value_delimiter = ',', default_value = "1-8", value_parser = |text: &str| Counts::up_to(text, PathSettings::MOST_DRAFTS))]
    paths: Vec<Counts>,
    /// Tokens of a path; those of the logged paths, or 5, if not given.
    #[arg(long, alias = "path-length", value_name = "L", value_parser = clap::value_parser!(u16).range(1..=64))]
    length: Option<u16>,
    /// The temperature at which the text was drawn, where the log does not say.
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    temperature: Option<f64>,
    #[command(flatten)]
    kept: Kept,
    #[command(flatten)]
    folder: Folder,
}

impl PathsArgs {
    fn settings(&self) -> PathSettings {
        let mut drafts = Counts::all(&self.paths);
        drafts.sort_unstable();
        drafts.dedup();
        PathSettings {
            drafts,
            length: self.length.map(usize::from),
            temperature: self.temperature,
        }
    }

    /// The command that makes the report, without paths of the machine.
    fn command(&self, settings: &PathSettings) -> String {
        let name = |path: &Path| {
            path.file_name().map_or_else(
                || path.display().to_string(),
                |name| name.to_string_lossy().into_owned(),
            )
        };
        let logs: Vec<String> = self.logs.iter().map(|path| name(path)).collect();
        let mut command = format!("specgap paths {}", logs.join(" "));
        let mut option = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                command.push_str(&format!(" --{name} {value}"));
            }
        };
        let drafts = &settings.drafts;
        option(
            "paths",
            (*drafts != PathSettings::default().drafts).then(|| {
                let words: Vec<String> = drafts.iter().map(ToString::to_string).collect();
                words.join(",")
            }),
        );
        option("length", self.length.map(|length| length.to_string()));
        option("temperature", self.temperature.map(|t| format!("{t:?}")));
        option("vocab", self.kept.vocab.map(|n| n.to_string()));
        command
    }
}

pub(super) fn run(args: &PathsArgs, common: &Common) -> Result<Verdict, CliError> {
    // Everything that can be refused is, before the long part.
    refuse_repetition(&args.logs)?;
    let settings = args.settings();
    if let Some(folder) = &args.folder.out {
        check_folder(folder)?;
    }
    let logs = args
        .logs
        .iter()
        .map(|path| common.open(path, args.kept.vocab))
        .collect::<Result<Vec<_>, _>>()
        .map_err(TextError::from)?;
    let total = logs.iter().map(Log::positions).sum();
    let bar = common.progress(total);
    let report = text::measure_paths(&logs, &settings, &args.command(&settings), &|done| {
        bar.inc(done);
    })?;
    bar.finish_and_clear();
    let page = report::paths::page(&report);
    if let Some(folder) = &args.folder.out {
        write_together(folder, &args.folder.files(&page, &report)?)?;
    }
    print_report(&report, &page, args.folder.out.as_deref(), common)?;
    Ok(Verdict::Agrees)
}

/// What the report's words mean, for `--help`.
fn definitions() -> String {
    let mut text = "Definitions:\n".to_owned();
    for (name, meaning) in text::paths_definitions() {
        text.push_str(&format!("  {name}: {meaning}\n"));
    }
    text
}
