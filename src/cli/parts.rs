//! Parts of `length`, `tree`, `audit` and `counters`: read anywhere, and put together by `merge`.
//!
//! A part is the command as it was typed, and behind that line what its share of the input says. `merge` runs
//! the command once more, with what the parts have in place of what it would read.

use super::colour::plain;
use super::options::{Common, Format};
use super::output::{CliError, write_whole};
use super::overwrites::Touched;
use crate::audit::Evidence;
use crate::counters::Counted;
use crate::files;
use crate::gap::Part;
use crate::log::FileDigest;
use crate::replay::{Kept, Parts, ReplayError};
use clap::Args;
use serde::{Deserialize, Serialize};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// What the line of a part begins with.
const BEGIN: &str = "{\"format\":\"specgap part\"";

/// The most bytes of a part, which has some for every token of a text.
const LARGEST: u64 = 1 << 36;

/// Options of commands that read in parts.
#[derive(Args, Debug, Default)]
pub(super) struct Parted {
    /// Write what is read, before any report, for `specgap merge`.
    ///
    /// No report is made.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["out"])]
    partial: Option<PathBuf>,
    /// Read the I-th of K parts alone, for `specgap merge`.
    ///
    /// Parts are stretches of equal length of every log's positions, or requests by turns.
    #[arg(long, value_name = "I/K", value_parser = part, requires = "partial", conflicts_with_all = ["out"])]
    shard: Option<Part>,
    /// What was read elsewhere.
    #[arg(skip)]
    merged: Option<Merged>,
}

/// One of some parts.
pub(super) fn part(text: &str) -> Result<Part, String> {
    let wrong = || "is I/K with I from 1 to K, such as 2/8".to_owned();
    let (index, count) = text.split_once('/').ok_or_else(wrong)?;
    let number = |text: &str| text.parse::<u32>().map_err(|_| wrong());
    let (index, count) = (number(index)? as usize, number(count)? as usize);
    if index == 0 || index > count {
        return Err(wrong());
    }
    Ok(Part { index, count })
}

/// What all parts have.
#[derive(Clone, Debug)]
enum Merged {
    Rows(Arc<Kept>),
    Evidence(Arc<Evidence>),
    Counts(Box<Counted>),
}

/// What stands in the first line of a part.
#[derive(Serialize, Deserialize)]
struct Head {
    format: String,
    version: String,
    /// The command as a report says it: the same of all parts.
    command: String,
    /// As it was typed.
    typed: Vec<String>,
    shard: [usize; 2],
    /// Of the line without this, and of what stands behind it.
    sha256: String,
}

impl Head {
    /// The line, without its end.
    fn line(&self) -> Result<Vec<u8>, CliError> {
        Ok(serde_json::to_vec(self)?)
    }

    /// Puts in the hash of the whole part; returns the one that was there.
    fn hash(&mut self, path: &Path, behind: &[u8]) -> Result<String, CliError> {
        let said = std::mem::take(&mut self.sha256);
        let all = [&self.line()?, behind].concat();
        self.sha256 = FileDigest::of_bytes(path, &all).sha256;
        Ok(said)
    }
}

impl Parted {
    fn part(&self) -> Part {
        self.shard.unwrap_or(Part::WHOLE)
    }

    /// Whose rows a report of logs reads.
    pub(super) fn rows(&self) -> Parts {
        match (&self.merged, &self.partial) {
            (Some(Merged::Rows(kept)), _) => Parts::Have(Arc::clone(kept)),
            (_, Some(_)) => Parts::Keep(self.part(), Arc::new(Mutex::new(Kept::default()))),
            _ => Parts::Whole,
        }
    }

    /// Writes what was kept, where that is what a run came to.
    pub(super) fn ended<T>(
        &self,
        found: Result<T, ReplayError>,
        parts: &Parts,
        command: &str,
        common: &Common,
    ) -> Result<Option<T>, CliError> {
        match (found, parts) {
            (Err(ReplayError::Kept), Parts::Keep(_, kept)) => {
                let kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                self.write(&*kept, command, common)?;
                Ok(None)
            }
            (found, _) => Ok(Some(found?)),
        }
    }

    /// Tells whether a part is to be written, and no report made.
    pub(super) fn is_a_part(&self) -> bool {
        self.partial.is_some()
    }

    /// What was read of all parts of a log that is audited.
    pub(super) fn evidence(&self) -> Option<&Evidence> {
        match &self.merged {
            Some(Merged::Evidence(evidence)) => Some(evidence),
            _ => None,
        }
    }

    /// Writes what an audit's part of so many positions says, where one is asked for.
    pub(super) fn keep(
        &self,
        read: impl FnOnce(Part) -> Result<Evidence, CliError>,
        command: &str,
        common: &Common,
    ) -> Result<bool, CliError> {
        if self.partial.is_none() {
            return Ok(false);
        }
        self.write(&read(self.part())?, command, common)?;
        Ok(true)
    }

    /// All counts of the parts, or these if there are none; `None` where they are a part that was written.
    pub(super) fn counts(
        &self,
        read: impl FnOnce() -> Result<Counted, CliError>,
        command: &str,
        common: &Common,
    ) -> Result<Option<Counted>, CliError> {
        if let Some(Merged::Counts(counted)) = &self.merged {
            return Ok(Some((**counted).clone()));
        }
        let counted = read()?;
        if self.partial.is_none() {
            return Ok(Some(counted));
        }
        let Part { index, count } = self.part();
        self.write(&counted.part(index, count), command, common)?;
        Ok(None)
    }

    fn write(&self, kept: &impl Serialize, command: &str, common: &Common) -> Result<(), CliError> {
        let Some(path) = &self.partial else {
            return Ok(());
        };
        let Part { index, count } = self.part();
        let kept = postcard::to_stdvec(kept);
        let kept = kept.map_err(|error| CliError::internal(error.to_string()))?;
        let mut head = Head {
            format: "specgap part".to_owned(),
            version: crate::log::tool(),
            command: command.to_owned(),
            typed: common.typed.clone(),
            shard: [index, count],
            sha256: String::new(),
        };
        head.hash(path, &kept)?;
        let mut bytes = head.line()?;
        bytes.push(b'\n');
        bytes.extend(kept);
        write_whole(path, &bytes)?;
        if common.format == Format::Text {
            writeln!(plain(), "part {index} of {count}: {}", path.display())?;
        }
        Ok(())
    }

    /// What is read and written.
    pub(super) fn touched<'a>(&'a self, touched: Touched<'a>) -> Touched<'a> {
        touched.writing("⟨partial⟩", self.partial.as_deref())
    }
}

/// Tells whether a file is a part, and not a summary of `gap`.
pub(super) fn is_part(path: &Path) -> bool {
    use std::io::Read;
    let mut begin = Vec::new();
    let read = std::fs::File::open(path)
        .and_then(|file| file.take(BEGIN.len() as u64).read_to_end(&mut begin));
    read.is_ok() && begin == BEGIN.as_bytes()
}

/// Returns the command that wrote a part, by its name.
pub(super) fn command(part: &Path) -> Result<String, CliError> {
    let (head, _) = open(part)?;
    let words: Vec<&str> = head.command.split_whitespace().take(2).collect();
    Ok(words.join(" "))
}

/// Refuses a file that was not written whole.
fn broken(path: &Path, what: impl std::fmt::Display) -> CliError {
    let message = format!("is no part, or not whole: {what}; write it again");
    CliError::input(path, message)
}

/// A part, with what stands behind its line.
fn open(path: &Path) -> Result<(Head, Vec<u8>), CliError> {
    let mut bytes = files::read(path, LARGEST).map_err(|source| CliError::unread(path, source))?;
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let end = end.ok_or_else(|| broken(path, "its first line has no end"))?;
    let behind = bytes.split_off(end + 1);
    let mut head: Head = serde_json::from_slice(&bytes).map_err(|error| broken(path, error))?;
    if head.version != crate::log::tool() {
        return Err(CliError::input(
            path,
            format!(
                "was written by {}, and this is {}; one version reads and merges",
                head.version,
                crate::log::tool()
            ),
        ));
    }
    if head.hash(path, &behind)? != head.sha256 {
        return Err(broken(path, "it is not what was written"));
    }
    Ok((head, behind))
}

/// What stands behind a part's line.
fn held<T: serde::de::DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T, CliError> {
    postcard::from_bytes(bytes).map_err(|error| broken(path, error))
}

/// What all parts of one command have, and how it was typed.
pub(super) struct Together {
    pub(super) typed: Vec<std::ffi::OsString>,
    pub(super) parted: Parted,
}

/// Reads all parts of a command, which has to be run once more with what they have.
pub(super) fn together(paths: &[PathBuf]) -> Result<Together, CliError> {
    let mut heads: Vec<(&PathBuf, Head)> = Vec::new();
    let mut rows = Kept::default();
    let mut counts: Option<Counted> = None;
    let mut evidence: Option<Evidence> = None;
    for path in paths {
        let (head, bytes) = open(path)?;
        let refused = |message: String| CliError::input(path, message);
        if let Some((first, other)) = heads.first() {
            let first = first.display();
            if head.command != other.command {
                return Err(refused(format!(
                    "does not go with {first}: it is of {}, and that of {}; merge the parts of one command",
                    head.command, other.command
                )));
            }
            if head.shard[1] != other.shard[1] {
                return Err(refused(format!(
                    "is one of {0} parts, and {first} one of {1}; merge the parts of one split, or write all \
                     with --shard I/{1}",
                    head.shard[1], other.shard[1]
                )));
            }
        }
        if let Some((twice, _)) = heads.iter().find(|(_, other)| other.shard == head.shard) {
            let [index, count] = head.shard;
            return Err(refused(format!(
                "is part {index} of {count}, and so is {}; name each part once",
                twice.display()
            )));
        }
        if head.command.starts_with("specgap counters") {
            let part: Counted = held(path, &bytes)?;
            match &mut counts {
                Some(all) => all.append(part),
                None => counts = Some(part),
            }
        } else if head.command.starts_with("specgap audit") {
            let part: Evidence = held(path, &bytes)?;
            match &mut evidence {
                Some(all) => all.append(part),
                None => evidence = Some(part),
            }
        } else {
            rows.append(held(path, &bytes)?);
        }
        heads.push((path, head));
    }
    let Some((_, head)) = heads.first() else {
        return Err(CliError::missing("name at least one part"));
    };
    let missing: Vec<String> = (1..=head.shard[1])
        .filter(|index| heads.iter().all(|(_, head)| head.shard[0] != *index))
        .map(|index| index.to_string())
        .collect();
    if !missing.is_empty() {
        return Err(CliError::missing(format!(
            "of {} parts these are missing: {}; name all of them",
            head.shard[1],
            missing.join(", ")
        )));
    }
    let merged = match (counts, evidence) {
        (Some(counts), _) => Merged::Counts(Box::new(counts)),
        (_, Some(evidence)) => Merged::Evidence(Arc::new(evidence)),
        _ => Merged::Rows(Arc::new(rows)),
    };
    Ok(Together {
        typed: head.typed.iter().map(Into::into).collect(),
        parted: Parted {
            merged: Some(merged),
            ..Parted::default()
        },
    })
}
