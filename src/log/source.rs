//! Bytes of a file, mapped a window at a time.
//!
//! The only `unsafe` of the crate: mapping a file is unsafe because another
//! process may shorten it meanwhile, which ends this one with a bus error. The
//! length is checked at every mapping, so that this needs a change between two
//! instructions, not between two runs.

#![allow(unsafe_code)]

use super::error::LogError;
use memmap2::{Mmap, MmapOptions};
use std::fmt;
use std::fs::File;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Entries of a tensor that a program holds in memory, seen as they would lie in a file:
/// row-major and little-endian.
///
/// Rows that lie otherwise, in columns or with gaps, are gathered a few at a time, so that
/// nothing is copied as a whole.
pub trait HeldBytes: fmt::Debug + Send + Sync {
    /// How many bytes there are.
    fn length(&self) -> u64;

    /// All of them, if they lie in that order.
    fn contiguous(&self) -> Option<&[u8]>;

    /// Copies `into.len()` bytes from `start` on. Asked for whole entries within
    /// [`Self::length`] only, and only where they do not lie in order.
    fn gather(&self, start: u64, into: &mut [u8]);
}

/// Where bytes come from.
#[derive(Debug)]
pub(crate) enum Source {
    /// A file, or a temporary file that a compressed member was unpacked to.
    File {
        file: File,
        length: u64,
        path: PathBuf,
    },
    /// Bytes in memory.
    Memory { bytes: Arc<[u8]>, path: PathBuf },
    /// Entries that a caller holds.
    Held {
        entries: Arc<dyn HeldBytes>,
        path: PathBuf,
    },
}

/// A window of a [`Source`].
#[derive(Debug)]
pub(crate) enum Window {
    Mapped(Mmap),
    Shared(Arc<[u8]>, std::ops::Range<usize>),
    Held(Arc<dyn HeldBytes>, std::ops::Range<usize>),
    Gathered(Vec<u8>),
}

impl Deref for Window {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Shared(bytes, range) => bytes.get(range.clone()).unwrap_or(&[]),
            Self::Held(entries, range) => (entries.contiguous())
                .and_then(|bytes| bytes.get(range.clone()))
                .unwrap_or(&[]),
            Self::Gathered(bytes) => bytes,
        }
    }
}

impl Source {
    pub(crate) fn open(path: &Path) -> Result<Self, LogError> {
        let file = File::open(path).map_err(|source| LogError::File {
            path: path.to_owned(),
            action: "cannot be opened",
            source,
        })?;
        Self::from_file(file, path)
    }

    pub(crate) fn from_file(file: File, path: &Path) -> Result<Self, LogError> {
        let metadata = file
            .metadata()
            .map_err(|source| LogError::reading(path, source))?;
        if !metadata.is_file() {
            return Err(LogError::format(
                path,
                "is not a regular file; rows are read through a memory map, so a pipe or device \
                 has to be copied to a file first",
            ));
        }
        Ok(Self::File {
            length: metadata.len(),
            file,
            path: path.to_owned(),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::File { path, .. } | Self::Memory { path, .. } | Self::Held { path, .. } => path,
        }
    }

    pub(crate) fn length(&self) -> u64 {
        match self {
            Self::File { length, .. } => *length,
            Self::Memory { bytes, .. } => bytes.len() as u64,
            Self::Held { entries, .. } => entries.length(),
        }
    }

    /// Bytes `start .. start + length`.
    pub(crate) fn window(&self, start: u64, length: usize) -> Result<Window, LogError> {
        let shortened = |now: u64| {
            LogError::format(
                self.path(),
                format!(
                    "has {now} bytes but bytes {start} to {} are needed; the file is truncated or \
                     was shortened while it was read",
                    start.saturating_add(length as u64)
                ),
            )
        };
        let end = start.checked_add(length as u64);
        match self {
            Self::Memory { bytes, .. } => {
                let range = usize::try_from(start)
                    .ok()
                    .zip(end.and_then(|end| usize::try_from(end).ok()))
                    .filter(|&(_, end)| end <= bytes.len())
                    .ok_or_else(|| shortened(bytes.len() as u64))?;
                Ok(Window::Shared(bytes.clone(), range.0..range.1))
            }
            Self::Held { entries, .. } => {
                let range = usize::try_from(start)
                    .ok()
                    .zip(end.and_then(|end| usize::try_from(end).ok()))
                    .filter(|&(_, end)| end as u64 <= entries.length())
                    .ok_or_else(|| shortened(entries.length()))?;
                if entries.contiguous().is_some() {
                    return Ok(Window::Held(Arc::clone(entries), range.0..range.1));
                }
                let mut gathered = vec![0; length];
                entries.gather(start, &mut gathered);
                Ok(Window::Gathered(gathered))
            }
            Self::File { file, path, .. } => {
                let now = file
                    .metadata()
                    .map_err(|source| LogError::reading(path, source))?
                    .len();
                if end.is_none_or(|end| end > now) {
                    return Err(shortened(now));
                }
                if length == 0 {
                    return Ok(Window::Shared(Arc::from([]), 0..0));
                }
                // SAFETY: the map is read-only and lies within the file, whose
                // length was read just now; see the head of this file.
                let map = unsafe { MmapOptions::new().offset(start).len(length).map(file) }
                    .map_err(|source| LogError::reading(path, source))?;
                Ok(Window::Mapped(map))
            }
        }
    }
}
