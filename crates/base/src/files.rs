//! Files that are written whole or not at all, and files that are read up to a limit.

use std::fs::{File, FileType};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use tempfile::{NamedTempFile, TempDir, TempPath};

/// Where it goes what is written to a path.
#[derive(Debug, PartialEq, Eq)]
pub enum Place {
    /// To a file of its own: the path behind all symbolic links, where there may be none yet.
    File(PathBuf),
    /// Into a pipe, a device or a file that is open already, which stays what it is: the path
    /// behind the links that lead to it.
    Stream(PathBuf),
}

impl Place {
    /// Follows symbolic links, which stay.
    pub fn of(path: &Path) -> io::Result<Self> {
        let mut at = path.to_owned();
        for _ in 0..MOST_LINKS {
            match at.symlink_metadata() {
                Ok(found) if found.is_symlink() && is_open_file(&at) => {
                    return Ok(Self::Stream(at));
                }
                Ok(found) if found.is_symlink() => at = folder(&at).join(std::fs::read_link(&at)?),
                Ok(found) if found.is_file() || found.is_dir() => return Ok(Self::File(at)),
                Ok(_) => return Ok(Self::Stream(at)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::File(at)),
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other(
            "is a symbolic link that leads in a circle",
        ))
    }
}

/// How many symbolic links are followed, which is as many as Linux follows.
const MOST_LINKS: usize = 40;

/// Tells whether a link stands for a file that this process has open, such as `/dev/stdout`.
fn is_open_file(link: &Path) -> bool {
    link.starts_with("/proc") || link.starts_with("/dev/fd")
}

/// Opens what is no regular file for writing. This process's own output shares its place in the
/// file with what is printed there.
fn open_stream(path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    if is_open_file(path) {
        use std::os::fd::AsFd;
        let name = path.file_name().and_then(|name| name.to_str());
        let shared = match name {
            Some("1") => Some(io::stdout().as_fd().try_clone_to_owned()?),
            Some("2") => Some(io::stderr().as_fd().try_clone_to_owned()?),
            _ => None,
        };
        if let Some(shared) = shared {
            return Ok(shared.into());
        }
    }
    std::fs::OpenOptions::new().append(true).open(path)
}

/// Where bytes go until a file is complete.
enum Under {
    /// A temporary name, which goes with it if it is dropped.
    Name(BufWriter<NamedTempFile>),
    /// Straight into what is no regular file.
    Stream(BufWriter<File>),
}

/// A file that is being written under a temporary name, which goes with it if it is
/// dropped. Where the path leads to what is no regular file, it is written at once.
pub struct Unfinished {
    file: Under,
    path: PathBuf,
}

impl Unfinished {
    /// Begins a file under a name that begins with `prefix`, beside where it will be.
    pub fn create(path: &Path, prefix: &str) -> io::Result<Self> {
        let path = match Place::of(path)? {
            Place::File(path) => path,
            Place::Stream(path) => {
                return Ok(Self {
                    file: Under::Stream(BufWriter::new(open_stream(&path)?)),
                    path,
                });
            }
        };
        let mut builder = tempfile::Builder::new();
        builder.prefix(prefix);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // Like any file that a program creates; the umask still applies.
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        let file = loop {
            let file = builder.tempfile_in(folder(&path))?;
            // Held until the file is complete, so that nobody takes it for one that was left
            // behind. Some file systems have no locks, and then nothing is removed either.
            let _ = file.as_file().lock();
            // Unless somebody did so between the two.
            if file.path().exists() {
                break file;
            }
        };
        Ok(Self {
            file: Under::Name(BufWriter::with_capacity(1 << 20, file)),
            path,
        })
    }

    /// Syncs the file, which is complete.
    pub fn finish(self) -> io::Result<Staged> {
        let file = match self.file {
            Under::Name(file) => file,
            Under::Stream(mut file) => {
                file.flush()?;
                return Ok(Staged {
                    file: None,
                    path: self.path,
                    lock: None,
                });
            }
        };
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.as_file().sync_all()?;
        let (lock, file) = file.into_parts();
        Ok(Staged {
            file: Some(file),
            path: self.path,
            lock: Some(lock),
        })
    }
}

impl Write for Unfinished {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.file {
            Under::Name(file) => file.write(bytes),
            Under::Stream(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.file {
            Under::Name(file) => file.flush(),
            Under::Stream(file) => file.flush(),
        }
    }
}

/// A file that is complete under a temporary name, which goes with it if it is
/// dropped.
pub struct Staged {
    /// None if it went where it is to be already.
    file: Option<TempPath>,
    path: PathBuf,
    lock: Option<File>,
}

impl Staged {
    /// Writes and syncs a file under a name that begins with `prefix`, beside
    /// where it will be.
    pub fn write(
        path: &Path,
        prefix: &str,
        write: impl FnOnce(&mut Unfinished) -> io::Result<()>,
    ) -> io::Result<Self> {
        let mut file = Unfinished::create(path, prefix)?;
        write(&mut file)?;
        file.finish()
    }

    /// Returns where the file will be, behind all links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Closes the file, where there are too many to keep them open. Then only the folder's lock
    /// keeps another run from taking it for one that was left behind.
    pub fn close(mut self) -> Self {
        self.lock = None;
        self
    }

    /// Gives the file its name, in place of whatever file has it.
    pub fn rename(self) -> io::Result<()> {
        if let Some(file) = self.file {
            file.persist(&self.path).map_err(|error| error.error)?;
        }
        Ok(())
    }
}

/// Writes a file under a temporary name that begins with `prefix`, beside where
/// it will be, syncs it, and renames it.
pub fn replace(
    path: &Path,
    prefix: &str,
    write: impl FnOnce(&mut Unfinished) -> io::Result<()>,
) -> io::Result<()> {
    Staged::write(path, prefix, write)?.rename()
}

/// Gives all files their names, or none.
///
/// What is there under these names is first set aside, the last file first; then the new files
/// get their names, the first one first. So a kill in between leaves fewer files and never old
/// ones beside new ones. A page is last and has what it refers to beside it whenever it is
/// there.
///
/// # Errors
///
/// The path that could not be renamed; what was there is there again.
pub fn exchange(staged: Vec<Staged>, prefix: &str) -> Result<(), (PathBuf, io::Error)> {
    let mut aside = Vec::new();
    let mut named = Vec::new();
    let outcome = set_aside(&staged, prefix, &mut aside).and_then(|()| {
        for file in staged {
            let path = file.path().to_owned();
            file.rename().map_err(|error| (path.clone(), error))?;
            named.push(path);
        }
        Ok(())
    });
    if outcome.is_err() {
        for path in named.iter().rev() {
            let _ = std::fs::remove_file(path);
        }
        for old in aside.into_iter().rev() {
            old.put_back();
        }
    }
    outcome
}

/// A file under another name, which goes when this is dropped.
struct Aside {
    file: NamedTempFile<()>,
    path: PathBuf,
    /// Keeps it from being taken for one that was left behind.
    _lock: Option<File>,
}

impl Aside {
    fn put_back(self) {
        let _ = self.file.persist(&self.path);
    }
}

fn set_aside(
    staged: &[Staged],
    prefix: &str,
    aside: &mut Vec<Aside>,
) -> Result<(), (PathBuf, io::Error)> {
    for new in staged.iter().rev() {
        let path = new.path();
        if path.symlink_metadata().is_err() {
            continue;
        }
        let lock = File::open(path).ok().filter(|file| file.try_lock().is_ok());
        let mut builder = tempfile::Builder::new();
        let file = builder
            .prefix(prefix)
            .make_in(folder(path), |hidden| std::fs::rename(path, hidden))
            .map_err(|error| (path.to_owned(), error))?;
        aside.push(Aside {
            file,
            path: path.to_owned(),
            _lock: lock,
        });
    }
    Ok(())
}

/// Removes files whose names begin with `prefix` and that no process holds: what a run that was
/// killed left. What cannot be looked at stays. So does everything while another process writes
/// several files at once here, as it may not hold all of them.
pub fn remove_strays(folder: &Path, prefix: &str) {
    match File::open(folder).map(|file| file.try_lock().map(|()| file)) {
        Ok(Err(std::fs::TryLockError::WouldBlock)) => {}
        // Held until the strays are gone. Folders that cannot be locked are nobody's.
        _lock => remove_unheld(folder, prefix),
    }
}

/// Removes them for who holds the folder's lock.
pub fn remove_unheld(folder: &Path, prefix: &str) {
    for (path, _held) in unheld(folder, prefix, FileType::is_file) {
        let _ = std::fs::remove_file(path);
    }
}

/// Files or folders whose names begin with `prefix` and that no process holds; each is held while
/// it is looked at.
fn unheld(
    around: &Path,
    prefix: &str,
    is_of_kind: fn(&FileType) -> bool,
) -> impl Iterator<Item = (PathBuf, File)> {
    let entries = std::fs::read_dir(around).into_iter().flatten().flatten();
    entries.filter_map(move |entry| {
        let ours = entry.file_name().to_str()?.starts_with(prefix);
        let file = (ours && is_of_kind(&entry.file_type().ok()?)).then(|| File::open(entry.path()));
        let file = file?.ok().filter(|file| file.try_lock().is_ok())?;
        Some((entry.path(), file))
    })
}

/// A folder that is being filled under a temporary name, which goes with it if it is dropped.
#[derive(Debug)]
pub struct UnfinishedFolder {
    folder: TempDir,
    /// Held until the folder has its name, so that nobody takes it for one that was left behind.
    _lock: Option<File>,
}

impl UnfinishedFolder {
    /// Begins a folder in another one, under a name that begins with `prefix`. Such folders that
    /// a run left there when it was killed are removed.
    pub fn create(around: &Path, prefix: &str) -> io::Result<Self> {
        remove_stray_folders(around, prefix);
        let mut builder = tempfile::Builder::new();
        builder.prefix(prefix);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // Like any folder that a program makes; the umask still applies.
            builder.permissions(std::fs::Permissions::from_mode(0o777));
        }
        loop {
            let folder = builder.tempdir_in(around)?;
            let lock = lock_folder(folder.path());
            // Unless somebody took it for a stray between the two.
            if folder.path().exists() {
                let _lock = lock;
                return Ok(Self { folder, _lock });
            }
        }
    }

    /// Returns where it is meanwhile.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Gives the folder its name, which nothing but an empty folder may have.
    pub fn rename(self, path: &Path) -> io::Result<()> {
        std::fs::rename(self.folder.path(), path)?;
        // It has another name now, under which nothing is to be removed.
        let _ = self.folder.keep();
        Ok(())
    }
}

/// Waits until no other process holds the lock of a folder, and takes it. Nothing where folders
/// cannot be locked.
pub fn lock_folder(folder: &Path) -> Option<File> {
    let file = File::open(folder).ok()?;
    file.lock().ok()?;
    Some(file)
}

/// Removes folders whose names begin with `prefix` and that no process holds, with the files in
/// them. One that has folders in it is not ours, and stays.
fn remove_stray_folders(around: &Path, prefix: &str) {
    for (path, _held) in unheld(around, prefix, FileType::is_dir) {
        let Ok(inside) = std::fs::read_dir(&path) else {
            continue;
        };
        let inside: Vec<_> = inside.flatten().collect();
        let is_file = |one: &std::fs::DirEntry| one.file_type().is_ok_and(|kind| kind.is_file());
        if inside.iter().all(is_file) {
            for one in inside {
                let _ = std::fs::remove_file(one.path());
            }
            let _ = std::fs::remove_dir(path);
        }
    }
}

/// Checks that files can be made in a folder, or in the nearest that is there of those it would be
/// made in. Leaves nothing behind.
pub fn check_writable(path: &Path) -> io::Result<()> {
    let mut here = path;
    while !here.exists() {
        here = folder(here);
    }
    if !here.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    tempfile::tempfile_in(here).map(drop)
}

/// The most bytes of a document that is read at once: a certificate, a summary, a list.
pub const DOCUMENT: u64 = 1 << 30;

/// Reads a file of at most so many bytes, and of any other no more than one byte beyond them.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let (most, known) = match file.metadata() {
        Ok(metadata) if metadata.is_file() => (most, metadata.len()),
        // What a device or a pipe holds is known when it was read.
        _ => (most.min(DOCUMENT), 0),
    };
    let mut bytes = Vec::with_capacity(known.min(most).try_into().unwrap_or(0));
    if known <= most {
        file.take(most + 1).read_to_end(&mut bytes)?;
    }
    if known.max(bytes.len() as u64) > most {
        return Err(too_large(most));
    }
    Ok(bytes)
}

/// Reads a file that is text, of at most so many bytes.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    text(read(path, most)?)
}

/// Reads a file of any number of lines, each of at most so many bytes.
pub fn read_lines(path: &Path, most: u64) -> io::Result<String> {
    text(read_line_bytes(path, most)?)
}

/// Reads such a file that need not be text.
pub fn read_line_bytes(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut file = BufReader::new(File::open(path)?);
    let mut bytes = Vec::new();
    loop {
        let before = bytes.len();
        let mut line = (&mut file).take(most + 1);
        if line.read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        if (bytes.len() - before) as u64 > most {
            return Err(too_large(most));
        }
    }
    Ok(bytes)
}

/// The lines of a file of any length, one at a time.
pub struct Lines {
    file: BufReader<File>,
    most: u64,
    bytes: Vec<u8>,
    number: usize,
}

impl Lines {
    /// Opens a file whose lines have at most so many bytes.
    pub fn open(path: &Path, most: u64) -> io::Result<Self> {
        Ok(Self {
            file: BufReader::with_capacity(1 << 16, File::open(path)?),
            most,
            bytes: Vec::new(),
            number: 0,
        })
    }

    /// The next line with its number, from 1, without what ends it.
    pub fn next_line(&mut self) -> io::Result<Option<(usize, &str)>> {
        self.bytes.clear();
        let mut line = (&mut self.file).take(self.most + 1);
        if line.read_until(b'\n', &mut self.bytes)? == 0 {
            return Ok(None);
        }
        if self.bytes.len() as u64 > self.most {
            return Err(too_large(self.most));
        }
        self.number += 1;
        let line = match self.number {
            1 => self.bytes.strip_prefix(MARK).unwrap_or(&self.bytes),
            _ => &self.bytes[..],
        };
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let line = std::str::from_utf8(line).map_err(|_| no_text())?;
        Ok(Some((self.number, line)))
    }
}

/// The byte order mark that some editors begin a text with.
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// A text, without such a mark.
fn text(mut bytes: Vec<u8>) -> io::Result<String> {
    if bytes.starts_with(MARK) {
        bytes.drain(..3);
    }
    String::from_utf8(bytes).map_err(|_| no_text())
}

fn no_text() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "is no text in UTF-8")
}

fn too_large(most: u64) -> io::Error {
    let message = format!("a document or a line of more than {most} bytes is not read");
    io::Error::new(io::ErrorKind::FileTooLarge, message)
}

/// Returns what a file or folder is called, without the folders around it. `.`, `..` and the like
/// have the name of the folder that they lead to.
pub fn name(path: &Path) -> String {
    let own = |path: &Path| Some(path.file_name()?.to_string_lossy().into_owned());
    own(path)
        .or_else(|| own(&path.canonicalize().ok()?))
        .unwrap_or_else(|| path.display().to_string())
}

/// The folder that a path lies in.
pub fn folder(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const PREFIX: &str = ".ours-";

    fn stage(folder: &Path, names: &[&str]) -> Vec<Staged> {
        let write = |name: &&str| {
            Staged::write(&folder.join(name), PREFIX, |file| file.write_all(b"new")).unwrap()
        };
        names.iter().map(write).collect()
    }

    fn contents(folder: &Path) -> BTreeMap<String, String> {
        std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                (name, std::fs::read_to_string(path).unwrap_or_default())
            })
            .collect()
    }

    #[test]
    fn between_the_renames_no_old_file_stands_beside_a_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let names = ["picture.svg", "report.json", "report.html"];
        for name in names {
            std::fs::write(folder.path().join(name), "old").unwrap();
        }
        let staged = stage(folder.path(), &names);
        let mut aside = Vec::new();
        set_aside(&staged, PREFIX, &mut aside).unwrap();
        // The page went first.
        assert!(aside[0].path.ends_with("report.html"));
        let seen = contents(folder.path());
        assert!(seen.keys().all(|name| name.starts_with(PREFIX)), "{seen:?}");
        for old in aside.into_iter().rev() {
            old.put_back();
        }
        exchange(staged, PREFIX).unwrap();
        let seen = contents(folder.path());
        assert_eq!(seen.len(), 3, "{seen:?}");
        assert!(seen.values().all(|text| text == "new"));
    }

    #[test]
    fn a_rename_that_fails_brings_back_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "c"] {
            std::fs::write(folder.path().join(name), "old").unwrap();
        }
        let staged = stage(
            folder.path(),
            &["a", "gone/b", "c"].map(|name| {
                if name == "gone/b" {
                    std::fs::create_dir(folder.path().join("gone")).unwrap();
                }
                name
            }),
        );
        // The second file loses its folder, with the file that was to be renamed.
        std::fs::remove_dir_all(folder.path().join("gone")).unwrap();
        let (path, _) = exchange(staged, PREFIX).unwrap_err();
        assert!(path.ends_with("gone/b"));
        let seen = contents(folder.path());
        assert_eq!(seen.len(), 2, "{seen:?}");
        assert!(seen.values().all(|text| text == "old"), "{seen:?}");
    }

    #[test]
    fn what_a_killed_run_left_is_removed_and_what_is_being_written_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str| std::fs::write(folder.path().join(name), "left").unwrap();
        write(".ours-a1B2c3");
        write(".others");
        write("ours-");
        let running = Unfinished::create(&folder.path().join("later"), PREFIX).unwrap();
        remove_strays(folder.path(), PREFIX);
        let seen = contents(folder.path());
        assert_eq!(seen.len(), 3, "{seen:?}");
        assert!(!seen.contains_key(".ours-a1B2c3"));
        running.finish().unwrap().rename().unwrap();
        assert!(folder.path().join("later").exists());
    }

    #[test]
    fn a_folder_that_a_killed_run_left_is_removed_and_one_that_is_filled_is_not() {
        let around = tempfile::tempdir().unwrap();
        let folder = |name: &str| {
            let path = around.path().join(name);
            std::fs::create_dir(&path).unwrap();
            std::fs::write(path.join("log.json"), "{").unwrap();
            path
        };
        let left = folder(".ours-a1B2c3");
        let others = folder("ours-");
        let deep = folder(".ours-deep");
        std::fs::create_dir(deep.join("inside")).unwrap();
        let first = UnfinishedFolder::create(around.path(), PREFIX).unwrap();
        std::fs::write(first.path().join("log.json"), "{}").unwrap();
        assert!(!left.exists());
        assert!(deep.join("log.json").exists() && others.exists());
        let second = UnfinishedFolder::create(around.path(), PREFIX).unwrap();
        assert!(cfg!(not(unix)) || first.path().join("log.json").exists());
        let place = second.path().to_owned();
        drop(second);
        assert!(!place.exists());
        first.rename(&around.path().join("log")).unwrap();
        assert!(around.path().join("log/log.json").exists());
        // Its lock went with the name.
        drop(UnfinishedFolder::create(around.path(), PREFIX).unwrap());
        assert!(around.path().join("log/log.json").exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_and_its_target_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        std::fs::create_dir(place("inside")).unwrap();
        std::fs::write(place("inside/old"), "old").unwrap();
        std::os::unix::fs::symlink("inside/old", place("first")).unwrap();
        std::os::unix::fs::symlink("first", place("second")).unwrap();
        std::os::unix::fs::symlink("inside/none", place("dangling")).unwrap();
        std::os::unix::fs::symlink("circle", place("circle")).unwrap();
        for (link, target) in [("second", "inside/old"), ("dangling", "inside/none")] {
            replace(&place(link), PREFIX, |file| file.write_all(b"new")).unwrap();
            assert!(place(link).symlink_metadata().unwrap().is_symlink());
            assert_eq!(std::fs::read_to_string(place(target)).unwrap(), "new");
        }
        assert!(place("first").symlink_metadata().unwrap().is_symlink());
        let error = replace(&place("circle"), PREFIX, |_| Ok(())).unwrap_err();
        assert!(error.to_string().contains("circle"), "{error}");
        // Together with others, too.
        let staged = stage(folder.path(), &["second", "third"]);
        exchange(staged, PREFIX).unwrap();
        assert!(place("second").symlink_metadata().unwrap().is_symlink());
        // Nothing is left beside them.
        let inside = std::fs::read_dir(place("inside")).unwrap().count();
        assert_eq!((inside, contents(folder.path()).len()), (2, 6));
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_regular_file_is_written_into() {
        use std::os::unix::fs::FileTypeExt;
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        let made = std::process::Command::new("mkfifo")
            .arg(place("fifo"))
            .status();
        assert!(made.unwrap().success());
        std::os::unix::fs::symlink("fifo", place("link")).unwrap();
        for name in ["fifo", "link"] {
            let from = place("fifo");
            let reader = std::thread::spawn(move || std::fs::read_to_string(from).unwrap());
            replace(&place(name), PREFIX, |file| file.write_all(b"through")).unwrap();
            assert_eq!(reader.join().unwrap(), "through");
        }
        let kind = place("fifo").symlink_metadata().unwrap().file_type();
        assert!(kind.is_fifo());
        replace(Path::new("/dev/null"), PREFIX, |file| {
            file.write_all(b"gone")
        })
        .unwrap();
        let kind = Path::new("/dev/null").metadata().unwrap().file_type();
        assert!(kind.is_char_device());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn no_more_is_read_than_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ten");
        std::fs::write(&path, [b'a'; 10]).unwrap();
        assert_eq!(read_text(&path, 10).unwrap(), "a".repeat(10));
        let error = read(&path, 9).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert!(error.to_string().contains("more than 9 bytes"), "{error}");
        std::fs::write(&path, "12345\n1234\n123").unwrap();
        assert_eq!(read_lines(&path, 6).unwrap().lines().count(), 3);
        assert!(read_lines(&path, 5).is_err());
        #[cfg(unix)]
        for read in [read_text, read_lines] {
            assert!(read(Path::new("/dev/zero"), 1 << 20).is_err());
        }
    }

    #[test]
    fn a_path_without_a_name_has_that_of_where_it_leads() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        std::fs::create_dir_all(log.join("sub")).unwrap();
        for path in ["sub/..", "sub/../.", "sub/../../log"] {
            assert_eq!(name(&log.join(path)), "log", "{path}");
        }
        assert_eq!(name(Path::new("not/there")), "there");
        assert_eq!(name(Path::new("not/..")), "not/..");
    }

    #[cfg(unix)]
    #[test]
    fn while_a_folder_is_locked_its_strays_stay() {
        let folder = tempfile::tempdir().unwrap();
        let stray = folder.path().join(".ours-a1B2c3");
        std::fs::write(&stray, "left").unwrap();
        let lock = lock_folder(folder.path()).unwrap();
        remove_strays(folder.path(), PREFIX);
        assert!(stray.exists());
        drop(lock);
        remove_strays(folder.path(), PREFIX);
        assert!(!stray.exists());
    }
}
