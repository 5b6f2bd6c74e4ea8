//! Options that several commands have, each stated once.

use super::host::{Bar, Host};
use super::output::progress;
use crate::log::{Log, LogError};
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};

/// Options of every command.
#[derive(Args, Debug, Clone)]
pub struct Common {
    /// Text for people, or JSON, one object a line.
    #[arg(long, value_enum, default_value_t = Format::Text, global = true)]
    pub(super) format: Format,
    /// Worker threads; 0 takes one a core.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=1024), global = true)]
    pub(super) threads: u16,
    /// Seed of everything that is random.
    #[arg(long, default_value_t = 0, global = true)]
    pub(super) seed: u64,
    /// More detail of gap, check and capture; problem files that are passed over.
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub(super) verbose: u8,
    /// Only what is wrong, and the last line where a command has one.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(super) quiet: bool,
    /// The program that runs the command inside itself; none on a command line.
    #[arg(skip)]
    pub(super) host: Option<Host>,
}

impl Common {
    /// Opens a log, or takes the one that the host has of this name.
    pub(super) fn open(&self, path: &Path, vocabulary: Option<usize>) -> Result<Log, LogError> {
        let lent = self.host.as_ref().and_then(|host| host.lent(path));
        lent.map_or_else(|| Log::open_with(path, vocabulary), Ok)
    }

    /// The progress of work over `total` positions.
    pub(super) fn progress(&self, total: usize) -> Bar {
        match &self.host {
            Some(host) => {
                host.begin(total);
                Bar::Host(host.clone())
            }
            None => {
                let people = self.format == Format::Text && !self.quiet;
                Bar::Terminal(progress(total, people, "positions"))
            }
        }
    }
}

/// Output formats.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// The problems of `solve`, `verify` and `block`.
#[derive(Args, Debug)]
pub(super) struct Problems {
    /// Problem files (.toml, .json) or folders of them.
    #[arg(required = true, value_name = "PROBLEM")]
    pub(super) problems: Vec<PathBuf>,
}

/// Where a report goes.
#[derive(Args, Debug)]
pub(super) struct Folder {
    /// Write report.html, report.md, report.json and the plots here.
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
}

/// What `gap` and `merge` make of a summary.
#[derive(Args, Debug)]
pub(super) struct Results {
    #[command(flatten)]
    pub(super) folder: Folder,
    /// Exit with 1 if a number of this report.json is missing or left its interval.
    #[arg(long, value_name = "FILE")]
    pub(super) baseline: Option<PathBuf>,
    /// Write the summary of these positions, which `specgap merge` takes; without --out,
    /// no report is made.
    #[arg(long, value_name = "FILE")]
    pub(super) partial: Option<PathBuf>,
    /// Count several logs of one pair of models together, as one.
    #[arg(long)]
    pub(super) pool: bool,
}

/// Which tokens of a row are read from logs, and which `capture` writes.
#[derive(Args, Debug)]
pub(super) struct Kept {
    /// Keep the first N tokens of every row, where models differ by padding.
    #[arg(long, value_name = "N")]
    pub(super) vocab: Option<usize>,
}
