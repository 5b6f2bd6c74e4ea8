//! Bytes of a file, read a window at a time.
//!
//! Windows are read into buffers and not mapped, because a mapped file that another process
//! shortens ends this one with a bus error and without a message. A read says so. The copy
//! costs 5 us a row of 98 kB where the row's softmax takes 60 us or more.

use super::error::LogError;
use std::cell::RefCell;
use std::fmt;
use std::fs::{File, Metadata};
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Entries of a tensor that a program holds in memory, seen as they would lie in a file:
/// row-major and little-endian.
///
/// Rows that lie otherwise, in columns or with gaps, or that are fetched from elsewhere when
/// they are needed, are gathered a few at a time, so that nothing is copied as a whole.
pub trait HeldBytes: fmt::Debug + Send + Sync {
    /// Counts the bytes.
    fn length(&self) -> u64;

    /// All of them, if they lie in that order.
    fn contiguous(&self) -> Option<&[u8]>;

    /// Copies `into.len()` bytes from `start` on. Asked for whole entries within
    /// [`Self::length`] only, and only where they do not lie in order.
    ///
    /// # Errors
    /// What keeps entries that are fetched when they are asked for from coming.
    fn gather(&self, start: u64, into: &mut [u8]) -> io::Result<()>;

    /// Tells whether they are fetched from a file, or from elsewhere, when they are asked for; the
    /// log's path then names it.
    fn is_fetched(&self) -> bool {
        false
    }
}

impl<T: AsRef<[u8]> + fmt::Debug + Send + Sync> HeldBytes for T {
    fn length(&self) -> u64 {
        self.as_ref().len() as u64
    }

    fn contiguous(&self) -> Option<&[u8]> {
        Some(self.as_ref())
    }

    fn gather(&self, _: u64, _: &mut [u8]) -> io::Result<()> {
        // They lie in order, so that nobody asks.
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Where bytes come from.
#[derive(Debug)]
pub(crate) enum Source {
    /// A file with a name.
    File(Named),
    /// What compressed members of archives were unpacked to: a file without a name.
    Unpacked {
        file: Arc<File>,
        length: u64,
        path: PathBuf,
    },
    /// The bytes of a file, in memory.
    Memory {
        entries: Arc<dyn HeldBytes>,
        path: PathBuf,
    },
    /// Entries that a caller holds.
    Held {
        entries: Arc<dyn HeldBytes>,
        path: PathBuf,
    },
}

/// A window of a [`Source`].
#[derive(Debug)]
pub(crate) enum Window {
    Read(Buffer),
    Held(Arc<dyn HeldBytes>, std::ops::Range<usize>),
    Gathered(Vec<u8>),
}

impl Deref for Window {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Read(buffer) => &buffer.0,
            Self::Held(entries, range) => (entries.contiguous())
                .and_then(|bytes| bytes.get(range.clone()))
                .unwrap_or(&[]),
            Self::Gathered(bytes) => bytes,
        }
    }
}

/// A file that is closed when others need its place, and then opened again.
///
/// A log may have more shards than a process may have open files.
#[derive(Debug)]
pub(crate) struct Named {
    path: PathBuf,
    length: u64,
    identity: Identity,
    number: u64,
}

/// What tells a file from one that took its name, and from what it was before it was written to.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Identity {
    #[cfg(unix)]
    place: (u64, u64),
    length: u64,
    modified: Option<std::time::SystemTime>,
}

impl Identity {
    fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        use std::os::unix::fs::MetadataExt;
        Self {
            #[cfg(unix)]
            place: (metadata.dev(), metadata.ino()),
            length: metadata.len(),
            modified: metadata.modified().ok(),
        }
    }
}

/// How many files with names stay open, of all logs together.
const MOST_OPEN: usize = 32;

/// The files that are open, by number; the one used last is at the end.
static OPEN: Mutex<Vec<(u64, Arc<File>)>> = Mutex::new(Vec::new());
static NUMBERS: AtomicU64 = AtomicU64::new(0);

fn open_files() -> MutexGuard<'static, Vec<(u64, Arc<File>)>> {
    // The list is whole between any two of its calls.
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens a file; where the process has no place left, closes those that can be opened again.
fn open(path: &Path) -> Result<File, LogError> {
    File::open(path)
        .or_else(|error| {
            // Whatever the system calls it, fewer open files are the only cure at hand.
            if error.kind() == io::ErrorKind::NotFound {
                return Err(error);
            }
            open_files().clear();
            File::open(path)
        })
        .map_err(|source| LogError::File(path.to_owned(), "cannot be opened", source))
}

impl Named {
    fn new(path: &Path) -> Result<Self, LogError> {
        let file = open(path)?;
        let metadata = file
            .metadata()
            .map_err(|source| LogError::reading(path, source))?;
        if !metadata.is_file() {
            return Err(LogError::format(
                path,
                "is not a regular file; rows are read in any order, so a pipe or device has to be \
                 copied to a file first",
            ));
        }
        let named = Self {
            path: path.to_owned(),
            length: metadata.len(),
            identity: Identity::of(&metadata),
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
        };
        named.keep(Arc::new(file));
        Ok(named)
    }

    /// Puts the file among those that are open, in place of the one that was used first.
    fn keep(&self, file: Arc<File>) {
        let mut open = open_files();
        if open.len() >= MOST_OPEN {
            open.remove(0);
        }
        open.push((self.number, file));
    }

    fn file(&self) -> Result<Arc<File>, LogError> {
        {
            let mut open = open_files();
            if let Some(at) = open.iter().position(|(number, _)| *number == self.number) {
                let held = open.remove(at);
                let file = held.1.clone();
                open.push(held);
                return Ok(file);
            }
        }
        let file = open(&self.path)?;
        self.check(&file)?;
        let file = Arc::new(file);
        self.keep(file.clone());
        Ok(file)
    }

    /// Refuses a file that is not the one, or not what it was, when it was opened first: some
    /// rows would be of the one and some of the other.
    fn check(&self, file: &File) -> Result<(), LogError> {
        let metadata = file
            .metadata()
            .map_err(|source| LogError::reading(&self.path, source))?;
        if Identity::of(&metadata) != self.identity {
            return Err(LogError::format(
                &self.path,
                "was changed, or replaced by another file, while it was read; run the command \
                 again",
            ));
        }
        Ok(())
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        open_files().retain(|(number, _)| *number != self.number);
    }
}

/// One file without a name for all that is unpacked of one log.
#[derive(Debug, Default)]
pub(crate) struct Spool {
    file: Option<Arc<File>>,
    length: u64,
}

impl Spool {
    /// Appends all of a reader. Returns where it begins, and how many bytes it had.
    pub(crate) fn append(&mut self, reader: &mut impl io::Read) -> io::Result<(u64, u64)> {
        let file = match &self.file {
            Some(file) => file.clone(),
            None => self.file.insert(Arc::new(tempfile::tempfile()?)).clone(),
        };
        let start = self.length;
        let mut writer = &*file;
        io::Seek::seek(&mut writer, io::SeekFrom::Start(start))?;
        let copied = io::copy(reader, &mut writer)?;
        self.length += copied;
        Ok((start, copied))
    }

    /// Returns what was appended so far.
    pub(crate) fn source(&self, path: &Path) -> Source {
        match &self.file {
            Some(file) => Source::Unpacked {
                file: file.clone(),
                length: self.length,
                path: path.to_owned(),
            },
            None => Source::Memory {
                entries: Arc::new(Vec::<u8>::new()),
                path: path.to_owned(),
            },
        }
    }
}

impl Source {
    pub(crate) fn open(path: &Path) -> Result<Self, LogError> {
        Ok(Self::File(Named::new(path)?))
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::File(Named { path, .. })
            | Self::Unpacked { path, .. }
            | Self::Memory { path, .. }
            | Self::Held { path, .. } => path,
        }
    }

    pub(crate) fn length(&self) -> u64 {
        match self {
            Self::File(Named { length, .. }) | Self::Unpacked { length, .. } => *length,
            Self::Memory { entries, .. } | Self::Held { entries, .. } => entries.length(),
        }
    }

    /// Bytes `start .. start + length`.
    ///
    /// # Errors
    ///
    /// If the file does not have them, or no longer.
    pub(crate) fn window(&self, start: u64, length: usize) -> Result<Window, LogError> {
        let file = match self {
            Self::Memory { entries, .. } | Self::Held { entries, .. } => {
                let end = start.checked_add(length as u64);
                let range = usize::try_from(start)
                    .ok()
                    .zip(end.and_then(|end| usize::try_from(end).ok()))
                    .filter(|&(_, end)| end as u64 <= entries.length())
                    .ok_or_else(|| self.shortened(start, length, entries.length()))?;
                if entries.contiguous().is_some() {
                    return Ok(Window::Held(Arc::clone(entries), range.0..range.1));
                }
                let mut gathered = vec![0; length];
                (entries.gather(start, &mut gathered))
                    .map_err(|error| LogError::reading(self.path(), error))?;
                return Ok(Window::Gathered(gathered));
            }
            Self::File(named) => named.file()?,
            Self::Unpacked { file, .. } => file.clone(),
        };
        let mut buffer = Buffer::of(length);
        read_at(&file, &mut buffer.0, start).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                let now = file.metadata().map_or(0, |metadata| metadata.len());
                self.shortened(start, length, now)
            }
            _ => LogError::reading(self.path(), error),
        })?;
        if let Self::File(named) = self {
            named.check(&file)?;
        }
        Ok(Window::Read(buffer))
    }

    fn shortened(&self, start: u64, length: usize, now: u64) -> LogError {
        LogError::format(
            self.path(),
            format!(
                "has {now} bytes but bytes {start} to {} are needed; the file is truncated or \
                 was shortened while it was read",
                start.saturating_add(length as u64)
            ),
        )
    }
}

/// Fills the bytes from a place in a file, without its cursor, which threads share.
#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], start: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, start)
}

#[cfg(windows)]
fn read_at(file: &File, mut bytes: &mut [u8], mut start: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, bytes, start) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                bytes = &mut bytes[read..];
                start += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A file read from its beginning, without its cursor.
pub(crate) struct FromStart {
    source: Arc<Source>,
    at: u64,
}

impl FromStart {
    pub(crate) fn new(source: Arc<Source>) -> Self {
        Self { source, at: 0 }
    }
}

impl io::Read for FromStart {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = self.source.length().saturating_sub(self.at);
        let length = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let window = (self.source.window(self.at, length)).map_err(io::Error::other)?;
        let Some(place) = bytes.get_mut(..window.len()) else {
            return Ok(0);
        };
        place.copy_from_slice(&window);
        self.at += window.len() as u64;
        Ok(window.len())
    }
}

impl io::Seek for FromStart {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        let at = match to {
            io::SeekFrom::Start(at) => Some(at),
            io::SeekFrom::End(by) => self.source.length().checked_add_signed(by),
            io::SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

/// Bytes that were read. Large buffers are used again by the thread that drops them: memory
/// fresh from the system costs as much as the copy.
#[derive(Debug)]
pub(crate) struct Buffer(Vec<u8>);

const LARGE: usize = 64 << 10;
/// Rows of target and draft, and one more.
const SPARE: usize = 3;

thread_local! {
    static SPARES: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

impl Buffer {
    fn of(length: usize) -> Self {
        let spare = (length >= LARGE)
            .then(|| SPARES.with_borrow_mut(Vec::pop))
            .flatten();
        let mut bytes = spare.unwrap_or_default();
        bytes.resize(length, 0);
        Self(bytes)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.0.len() >= LARGE {
            let bytes = std::mem::take(&mut self.0);
            // At the end of a thread there is nothing left to keep them.
            let _ = SPARES.try_with(|spares| {
                let mut spares = spares.borrow_mut();
                if spares.len() < SPARE {
                    spares.push(bytes);
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn files_beyond_the_limit_are_closed_and_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let sources: Vec<Source> = (0..3 * MOST_OPEN)
            .map(|number| {
                let path = folder.path().join(number.to_string());
                std::fs::write(&path, [number as u8; 9]).unwrap();
                Source::open(&path).unwrap()
            })
            .collect();
        for (number, source) in sources.iter().enumerate() {
            assert_eq!(*source.window(4, 5).unwrap(), [number as u8; 5]);
            assert!(open_files().len() <= MOST_OPEN);
        }
        let [first, last] = [&sources[0], &sources[3 * MOST_OPEN - 1]];
        // The one that is open keeps its bytes; the other was closed.
        std::fs::write(folder.path().join("new"), [7; 9]).unwrap();
        std::fs::rename(folder.path().join("new"), first.path()).unwrap();
        let replaced = first.window(0, 9).unwrap_err().to_string();
        assert!(replaced.contains("or replaced by another"), "{replaced}");
        let Source::File(named) = last else {
            panic!("the source of a file is one");
        };
        let number = named.number;
        drop(sources);
        assert!(!open_files().iter().any(|(open, _)| *open == number));
    }

    #[test]
    fn a_file_that_is_written_to_while_it_is_open_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows");
        std::fs::write(&path, [1; 9]).unwrap();
        let source = Source::open(&path).unwrap();
        assert_eq!(*source.window(0, 4).unwrap(), [1; 4]);
        // In place, and of the same length, at a later time.
        let file = File::options().write(true).open(&path).unwrap();
        (&file).write_all(&[2; 9]).unwrap();
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(2);
        file.set_modified(later).unwrap();
        let error = source.window(4, 5).unwrap_err().to_string();
        assert!(error.contains("rows: was changed"), "{error}");
    }
}
