//! Reports on logged text, from the logs that are named to the files that are written.

use super::gap::refuse_repetition;
use super::host::Bar;
use super::options::{Common, Folder, Kept};
use super::output::{CliError, Verdict};
use super::overwrites::Touched;
use super::parts::Parted;
use super::printed::deliver;
use super::recorded::Recorded;
use crate::log::Log;
use crate::page::paper::Files;
use crate::page::{Page, is_of_a_page};
use crate::profile::is_of_a_profile;
use crate::replay::ReplayError;
use clap::Args;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The text that a report is of, and where it goes.
#[derive(Args, Debug)]
pub(super) struct Texts {
    /// Logs with sampled text: .safetensors or .npz files, or directories with a log.json.
    /// Texts of several are counted together.
    #[arg(required = true, value_name = "LOG")]
    logs: Vec<PathBuf>,
    /// Temperature of both models, at which the text is drawn.
    ///
    /// Where the log does not say.
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    pub(super) temperature: Option<f64>,
    #[command(flatten)]
    kept: Kept,
    #[command(flatten)]
    pub(super) folder: Folder,
}

/// How the names of the trees begin that a report has beside it.
pub(super) const BEST_TREE: &str = "best-tree.";

impl Texts {
    /// Opens a log.
    pub(super) fn open(&self, path: &Path, common: &Common) -> Result<Log, CliError> {
        let log = common.open(path, self.kept.vocab);
        Ok(log.map_err(ReplayError::from)?)
    }

    /// The beginning of the command that makes the report.
    pub(super) fn recorded(&self, command: &str) -> Recorded {
        Recorded::new(command, &self.logs)
    }

    /// The options that are here, behind those of the command.
    pub(super) fn record(&self, command: &mut Recorded) {
        command
            .number("temperature", self.temperature)
            .option("vocab", self.kept.vocab);
    }

    /// The same of a command that has no parts and no files beside its page.
    pub(super) fn report_alone<R: Serialize>(
        &self,
        common: &Common,
        measure: impl FnOnce(&[Log], &(dyn Fn(usize) + Sync)) -> Result<R, ReplayError>,
        page: impl Fn(&R) -> Page,
    ) -> Result<Verdict, CliError> {
        self.report(
            (&[], &Parted::default()),
            common,
            |path| self.open(path, common),
            |logs, bar| Ok(Some(measure(logs, &|done| bar.inc(done))?)),
            page,
            |_| Ok(Vec::new()),
        )
    }

    /// Measures the texts and delivers the report, with further files of it `beside`. `read` are
    /// files that options name, `parted` whose rows are read; no report is delivered where a part was kept.
    pub(super) fn report<R: Serialize>(
        &self,
        (read, parted): (&[&Path], &Parted),
        common: &Common,
        open: impl Fn(&Path) -> Result<Log, CliError>,
        measure: impl FnOnce(&[Log], &Bar) -> Result<Option<R>, CliError>,
        page: impl Fn(&R) -> Page,
        beside: impl Fn(&R) -> Result<Files, CliError>,
    ) -> Result<Verdict, CliError> {
        // Everything that can be refused is, before the long part.
        refuse_repetition(&self.logs)?;
        let own =
            |name: &str| is_of_a_page(name) || name.starts_with(BEST_TREE) || is_of_a_profile(name);
        (parted.touched(Touched::reading(&self.logs).and_reading(read)))
            .folder(self.folder.out.as_deref(), own)
            .check()?;
        let logs = self
            .logs
            .iter()
            .map(|path| open(path))
            .collect::<Result<Vec<_>, _>>()?;
        let bar = common.progress(logs.iter().map(Log::positions).sum());
        let report = measure(&logs, &bar)?;
        bar.finish_and_clear();
        let Some(report) = report else {
            return Ok(Verdict::Agrees);
        };
        deliver(
            &report,
            &page(&report),
            beside(&report)?,
            &self.folder,
            common,
        )?;
        Ok(Verdict::Agrees)
    }
}
