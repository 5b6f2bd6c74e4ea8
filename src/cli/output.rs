//! Printing, writing files whole, and errors with their exit codes.

use crate::evaluate::{UnknownName, check_names};
use crate::files::{
    DOCUMENT, Place, Staged, Unfinished, check_writable, exchange, folder as folder_of,
    lock_folder, read_text, remove_strays, remove_unheld,
};
use crate::page::Page;
use crate::problem::{AnyProblem, ProblemFileError};
use crate::profile::is_of_a_profile;
use crate::typed;
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Whether everything that was checked agrees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Exit code 0.
    Agrees,
    /// Exit code 1.
    Disagrees,
    /// Nothing is wrong, and too little is known: exit code 4.
    Undecided,
}

impl Verdict {
    /// The status of a run in which all is well, or is not.
    pub(super) fn of(ok: bool) -> Self {
        if ok { Self::Agrees } else { Self::Disagrees }
    }
}

/// Why a command stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CliError {
    /// A problem file is refused.
    #[error(transparent)]
    Problem(#[from] ProblemFileError),
    /// A problem file names something that does not exist: the file; the name, and those that there
    /// are.
    #[error("{0}: {1}")]
    Name(PathBuf, #[source] UnknownName),
    /// A file cannot be read or written: the file; `cannot be read` or `cannot be written`; what
    /// the system said.
    #[error("{0}: {1}: {2}")]
    File(PathBuf, &'static str, #[source] io::Error),
    /// A file's contents are refused: the file; what is wrong.
    #[error("{0}: {1}")]
    Input(PathBuf, String),
    /// Logged rows cannot be measured.
    #[error(transparent)]
    Gap(#[from] crate::gap::GapError),
    /// Logged text cannot be replayed.
    #[error(transparent)]
    Text(#[from] crate::replay::ReplayError),
    /// An engine's export is refused.
    #[error(transparent)]
    Import(#[from] crate::import::ImportError),
    /// Test vectors cannot be made.
    #[error(transparent)]
    Conformance(#[from] crate::conformance::ConformanceError),
    /// What an engine did cannot be audited.
    #[error(transparent)]
    Audit(#[from] crate::audit::AuditError),
    /// Something that cannot fail did: what failed.
    #[error("internal error: {0}; please report this as a bug")]
    Internal(String),
    /// Something that the command needs is not there: what, and how to get it.
    #[error("{0}")]
    Missing(String),
    /// A capture cannot start or go on.
    #[cfg(feature = "onnx")]
    #[error(transparent)]
    Capture(#[from] crate::capture::CaptureError),
    /// The user or the system asked it to stop: what was done, and how to go on; the signal's
    /// number.
    #[error("{0}")]
    Interrupted(String, u8),
    /// The output cannot be written.
    #[error("output: {0}")]
    Output(#[from] io::Error),
    /// A result cannot be written as JSON.
    #[error("internal error: {0}; please report this as a bug")]
    Json(#[from] serde_json::Error),
}

impl CliError {
    /// A file whose contents are refused.
    pub(super) fn input(path: impl Into<PathBuf>, message: impl Into<String>) -> Self {
        Self::Input(path.into(), message.into())
    }

    /// Something that is not there.
    pub(super) fn missing(message: impl Into<String>) -> Self {
        Self::Missing(message.into())
    }

    /// Something that cannot fail and did.
    pub(super) fn internal(message: impl Into<String>) -> Self {
        Self::Internal(message.into())
    }

    /// A file that cannot be read.
    pub(super) fn unread(path: &Path, source: io::Error) -> Self {
        Self::File(path.to_owned(), "cannot be read", source)
    }

    /// 2 for bad input, 3 for a bug, and what a shell says of a program that a signal ended: 128
    /// and the signal's number.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Json(_) | Self::Internal(..) => 3,
            Self::Conformance(crate::conformance::ConformanceError::Internal(_)) => 3,
            Self::Interrupted(_, signal) => signal.saturating_add(128),
            _ => 2,
        }
    }
}

/// Problem files, one after the other, and whether a walk through a folder found them.
pub(super) fn read_problems(
    paths: &[PathBuf],
) -> Result<Vec<(PathBuf, bool, AnyProblem)>, CliError> {
    let mut problems = Vec::new();
    for path in paths {
        let walked = path.is_dir();
        for (file, problem) in crate::problem::read(path)? {
            if let Err(source) = check_names(&problem) {
                return Err(CliError::Name(file, source));
            }
            problems.push((file, walked, problem));
        }
    }
    Ok(problems)
}

/// A file that is read at once: a summary, a list, a certificate.
pub(super) fn read_document(path: &Path) -> Result<String, CliError> {
    read_text(path, DOCUMENT).map_err(|source| CliError::unread(path, source))
}

/// Writes a file whole or not at all: to a temporary name beside it, then
/// renamed. Into a pipe or a device it is written as it is.
pub(super) fn write_whole(path: &Path, contents: &[u8]) -> Result<(), CliError> {
    let mut file = stage(path)?;
    (file.write_all(contents))
        .and_then(|()| file.finish())
        .and_then(Staged::rename)
        .map_err(|source| unwritten(path, source))
}

/// Begins a file that gets its name when it is complete; a link to it stays.
pub(super) fn stage(path: &Path) -> Result<Unfinished, CliError> {
    if path.is_dir() {
        return Err(CliError::input(path, "is a folder; name a file"));
    }
    if let Ok(Place::File(place)) = Place::of(path) {
        remove_strays(folder_of(&place), TEMPORARY_PREFIX);
    }
    Unfinished::create(path, TEMPORARY_PREFIX).map_err(|source| unwritten(path, source))
}

/// Writes several files into a folder that is made for them: all of them, or if one cannot be
/// written, none, and what was there stays. After a kill, no old file is beside a new one. Two
/// runs that write here at once do so one after the other, so that the files are of one of them.
/// A name may begin with a folder's.
pub(super) fn write_together(folder: &Path, files: &[(String, Vec<u8>)]) -> Result<(), CliError> {
    let folders: BTreeSet<PathBuf> = (files.iter())
        .map(|(name, _)| folder_of(&folder.join(name)).to_owned())
        .chain([folder.to_owned()])
        .collect();
    let made: Vec<&PathBuf> = folders.iter().filter(|folder| !folder.exists()).collect();
    write_into(folder, &folders, files).inspect_err(|_| {
        // What is inside before what is around it.
        for folder in made.into_iter().rev() {
            // Only if it is empty.
            let _ = std::fs::remove_dir(folder);
        }
    })
}

fn write_into(
    folder: &Path,
    folders: &BTreeSet<PathBuf>,
    files: &[(String, Vec<u8>)],
) -> Result<(), CliError> {
    let make = |folder: &Path| {
        std::fs::create_dir_all(folder)
            .map_err(|source| CliError::File(folder.to_owned(), "cannot be made", source))
    };
    make(folder)?;
    let _lock = lock_folder(folder);
    for inside in folders {
        make(inside)?;
        remove_unheld(inside, TEMPORARY_PREFIX);
    }
    let orphans = orphans(folder, files);
    let mut staged = Vec::with_capacity(files.len());
    for (name, contents) in files {
        let path = folder.join(name);
        let other = match Place::of(&path) {
            _ if path.is_dir() => Some("a folder"),
            Ok(Place::Stream(_)) => Some("no regular file"),
            _ => None,
        };
        if let Some(other) = other {
            return Err(CliError::input(
                path,
                format!(
                    "is {other}, and a file is to be written there; remove it or name another \
                     folder"
                ),
            ));
        }
        let file = Staged::write(&path, TEMPORARY_PREFIX, |file| file.write_all(contents))
            .map_err(|source| unwritten(&path, source))?;
        // A comparison of many logs has more files than may be open.
        let many = staged.len() >= MOST_OPEN;
        staged.push(if many { file.close() } else { file });
    }
    exchange(staged, TEMPORARY_PREFIX).map_err(|(path, source)| unwritten(&path, source))?;
    for path in orphans {
        // One that stays does no more harm than before.
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

/// The page of a report, which links its pictures.
const REPORT: &str = "report.md";

/// Returns the pictures that nobody links once these files replace the report in a folder.
fn orphans(folder: &Path, files: &[(String, Vec<u8>)]) -> Vec<PathBuf> {
    let is_written = |name: &str| files.iter().any(|(own, _)| own == name);
    let text = |name| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    // What another program wrote stays.
    let is_ours = || {
        let json = text("report.json");
        json.contains("\"tool\"") && json.contains("\"specgap ")
    };
    if !is_written(REPORT) || !is_ours() {
        return Vec::new();
    }
    (text(REPORT).split("](").skip(1))
        .filter_map(|rest| Some(rest.split_once(')')?.0))
        .filter(|name| name.ends_with(".svg") && !name.contains(['/', '\\']))
        .filter(|name| !is_written(name))
        .map(|name| folder.join(name))
        .collect()
}

/// Removes the profiles of other lengths that an earlier run has left beside these, so that none is
/// taken for this run's.
pub(super) fn remove_earlier(out: &Path, files: &[(String, Vec<u8>)]) {
    let (mut folders, mut names) = (BTreeSet::new(), BTreeSet::new());
    for path in files.iter().map(|(name, _)| out.join(name)) {
        let name = path.file_name().and_then(|name| name.to_str());
        if name.is_some_and(is_of_a_profile) {
            folders.extend(path.parent().map(Path::to_owned));
            names.insert(path);
        }
    }
    for entry in folders
        .iter()
        .flat_map(std::fs::read_dir)
        .flatten()
        .flatten()
    {
        let path = entry.path();
        let is_earlier = entry.file_name().to_str().is_some_and(is_of_a_profile);
        if is_earlier && !names.contains(&path) {
            // One that stays does no more harm than before.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A value as a file has it: as JSON, with an end of line.
pub(super) fn json_file(value: &impl serde::Serialize) -> Result<Vec<u8>, CliError> {
    Ok((typed::pretty(value)? + "\n").into_bytes())
}

/// The files of a report: its pictures, its data, and its page last, so that it has
/// everything beside it.
pub(super) fn page_files(
    page: &Page,
    data: &impl serde::Serialize,
) -> Result<Vec<(String, Vec<u8>)>, CliError> {
    let files = page.files(typed::pretty(data)?.into_bytes());
    files.map_err(|error| CliError::internal(error.to_string()))
}

/// Refuses a folder that [`write_together`] could not write to, before the work
/// whose results go there.
pub(super) fn check_folder(folder: &Path) -> Result<(), CliError> {
    // A link that leads nowhere is something too.
    if folder.symlink_metadata().is_ok() && !folder.is_dir() {
        return Err(CliError::input(
            folder,
            "is not a folder; ⟨out⟩ names a folder",
        ));
    }
    check_writable(folder).map_err(|source| unwritten(folder, source))
}

/// How many files are kept open until all have their names.
const MOST_OPEN: usize = 24;

/// Of files that are not complete, or about to be replaced.
const TEMPORARY_PREFIX: &str = ".specgap-";

pub(super) fn unwritten(path: &Path, source: io::Error) -> CliError {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    match source.kind() {
        StorageFull | QuotaExceeded | FileTooLarge => CliError::input(
            path,
            format!("cannot be written: {source}; free some space, or name another place"),
        ),
        _ => CliError::File(path.to_owned(), "cannot be written", source),
    }
}

/// A progress bar on standard error, if that is a terminal and people read.
pub(super) fn progress(length: usize, shown: bool, what: &'static str) -> ProgressBar {
    if !shown || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(length as u64);
    if let Ok(style) =
        ProgressStyle::with_template("{msg} [{bar:32}] {pos}/{len} {elapsed} (left {eta})")
    {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_message(what);
    // Where no thread can be started, it moves with what is done alone.
    if std::thread::Builder::new().spawn(|| ()).is_ok() {
        bar.enable_steady_tick(std::time::Duration::from_millis(200));
    }
    bar
}

/// Columns that text is wrapped to: what the variable `COLUMNS` says, or else as many as the
/// terminal has, or 110 where the output is none.
pub(super) fn width() -> u16 {
    let said = std::env::var("COLUMNS").ok();
    let said = said.and_then(|columns| columns.parse().ok());
    let terminal = || {
        let stdout = io::stdout();
        stdout.is_terminal().then_some(())?;
        terminal_size::terminal_size_of(stdout).map(|(columns, _)| columns.0)
    };
    columns(said, terminal)
}

/// The first that is possible, within what tables can be set in.
fn columns(said: Option<u16>, terminal: impl FnOnce() -> Option<u16>) -> u16 {
    said.filter(|columns| (40..=400).contains(columns))
        .or_else(|| terminal().map(|columns| columns.clamp(40, 400)))
        .unwrap_or(110)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_as_wide_as_the_terminal_unless_told_otherwise() {
        assert_eq!(columns(Some(72), || Some(200)), 72);
        assert_eq!(columns(Some(3), || Some(200)), 200);
        assert_eq!(columns(None, || Some(80)), 80);
        assert_eq!(columns(None, || Some(10)), 40);
        assert_eq!(columns(None, || None), 110);
    }
}
