//! `specgap merge`: summaries of parts to one report.

use super::gap::{finish, read_baseline};
use super::options::{Common, Folder, Results};
use super::output::{CliError, Verdict, write_whole};
use super::overwrites::Touched;
use super::parts::{self, Together};
use crate::files::read_text;
use crate::gap::Summary;
use clap::Args;
use std::path::{Path, PathBuf};

/// Arguments of `specgap merge`.
#[derive(Args, Debug)]
pub struct MergeArgs {
    /// What `--partial` of gap, length, tree, audit or counters wrote, in any order. Of all but gap the log has to be
    /// there too, and all options are those of the parts.
    #[arg(required = true, value_name = "FILE")]
    parts: Vec<PathBuf>,
    #[command(flatten)]
    results: Results,
    /// Make the report although positions of a log are in no part; it lists them.
    #[arg(long)]
    incomplete: bool,
}

impl MergeArgs {
    /// Where the report goes.
    pub(super) fn folder(&self) -> &Folder {
        &self.results.folder
    }

    /// What parts of another command than `gap` have; `None` where these are summaries.
    pub(super) fn together(&self) -> Result<Option<Together>, CliError> {
        (self.results.touched(Touched::reading(&self.parts))).check()?;
        if !self.parts.iter().any(|path| parts::is_part(path)) {
            return Ok(None);
        }
        self.results.refuse_of_gap(self.incomplete)?;
        self.are_of_one_command()?;
        parts::together(&self.parts).map(Some)
    }

    /// Refuses summaries of `gap` among parts of another command.
    fn are_of_one_command(&self) -> Result<(), CliError> {
        let [part, other] =
            [true, false].map(|is| self.parts.iter().find(|path| parts::is_part(path) == is));
        let (Some(part), Some(other)) = (part, other) else {
            return Ok(());
        };
        read(other)?;
        Err(CliError::input(
            other,
            format!(
                "is a summary of specgap gap, and {} a part of {}: merge those of one command",
                part.display(),
                parts::command(part)?
            ),
        ))
    }
}

/// Makes the report of `gap` of summaries.
pub(super) fn run(args: &MergeArgs, common: &Common) -> Result<Verdict, CliError> {
    let baseline = read_baseline(&args.results)?;
    let given = args.results.given(common)?;
    let summary = merge(&args.parts)?;
    if summary.logs().len() > 1 && !args.results.pool {
        let names = summary.logs();
        let one = (names.first()).filter(|first| names.iter().all(|name| name == *first));
        let what = match one {
            Some(name) => format!(
                "the parts are of {} logs that are all named {name} and hold other rows: measure all \
                 parts of one log, or, if you mean them all,",
                names.len()
            ),
            None => format!("the parts are of several logs: {};", names.join(", ")),
        };
        return Err(CliError::missing(format!(
            "{what} ⟨pool⟩ counts them together, as one pair of models"
        )));
    }
    if let Some(path) = &args.results.partial {
        write_whole(path, summary.to_file()?.as_bytes())?;
        if (args.results).summary_is_all(path, summary.positions(), common)? {
            return Ok(Verdict::Agrees);
        }
    }
    let missing = summary.missing();
    if !missing.is_empty() && !args.incomplete {
        return Err(CliError::missing(format!(
            "{}; name the missing parts too, or say ⟨incomplete⟩",
            missing.join("; ")
        )));
    }
    finish(&summary, &given, baseline.as_ref(), &args.results, common)
}

/// Reads and merges parts; names the two that do not belong together.
fn merge(paths: &[PathBuf]) -> Result<Summary, CliError> {
    let mut merged: Option<Summary> = None;
    for (number, path) in paths.iter().enumerate() {
        let part = read(path)?;
        let Some(all) = &mut merged else {
            merged = Some(part);
            continue;
        };
        if let Err(message) = all.fits(&part) {
            // With which of those before it?
            let mut other = paths.first();
            for before in &paths[..number] {
                if read(before)?.fits(&part).is_err() {
                    other = Some(before);
                    break;
                }
            }
            let other = other.map_or_else(String::new, |path| path.display().to_string());
            return Err(CliError::input(
                path,
                format!("does not go with {other}: {message}"),
            ));
        }
        all.merge(&part)?;
    }
    merged.ok_or_else(|| CliError::missing("name at least one part"))
}

/// The most bytes of a summary, which has some for every token of a text.
const LARGEST: u64 = 1 << 36;

fn read(path: &Path) -> Result<Summary, CliError> {
    let text = read_text(path, LARGEST).map_err(|source| CliError::unread(path, source))?;
    Summary::from_file(&text).map_err(|error| {
        CliError::input(path, other_file(&text).unwrap_or_else(|| error.to_string()))
    })
}

/// Says what a file is that is no summary, as far as it says so.
fn other_file(text: &str) -> Option<String> {
    if text.trim().is_empty() {
        return Some(
            "is empty: it is no part, or was not written whole; write it again".to_owned(),
        );
    }
    let document: serde_json::Value = serde_json::from_str(text).ok()?;
    let has = |field: &str| document.get(field).is_some();
    if has("format") {
        return None;
    }
    let cure = "merge takes summaries, which specgap gap --partial FILE writes";
    let command = document.get("command").and_then(serde_json::Value::as_str);
    let made_by: Option<Vec<&str>> =
        command.map(|command| command.split_whitespace().take(2).collect());
    Some(match made_by {
        Some(words) => format!("is a report, of {}; {cure}", words.join(" ")),
        None if has("shards") => format!("is the index of a log; {cure} of it"),
        None => format!("is no summary; {cure}"),
    })
}
