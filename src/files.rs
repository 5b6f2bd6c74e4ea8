//! Files that are written whole or not at all.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A file that is being written under a temporary name, which goes with it if it is
/// dropped.
pub(crate) struct Unfinished {
    file: BufWriter<NamedTempFile>,
    path: PathBuf,
}

impl Unfinished {
    /// Begins a file under a name that begins with `prefix`, beside where it will be.
    pub(crate) fn create(path: &Path, prefix: &str) -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(prefix);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // Like any file that a program creates; the umask still applies.
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        Ok(Self {
            file: BufWriter::with_capacity(1 << 20, builder.tempfile_in(folder(path))?),
            path: path.to_owned(),
        })
    }

    /// Syncs the file, which is complete.
    pub(crate) fn finish(self) -> io::Result<Staged> {
        let file = (self.file.into_inner()).map_err(io::IntoInnerError::into_error)?;
        file.as_file().sync_all()?;
        Ok(Staged {
            file,
            path: self.path,
        })
    }
}

impl Write for Unfinished {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A file that is complete under a temporary name, which goes with it if it is
/// dropped.
pub(crate) struct Staged {
    file: NamedTempFile,
    path: PathBuf,
}

impl Staged {
    /// Writes and syncs a file under a name that begins with `prefix`, beside
    /// where it will be.
    pub(crate) fn write(
        path: &Path,
        prefix: &str,
        write: impl FnOnce(&mut Unfinished) -> io::Result<()>,
    ) -> io::Result<Self> {
        let mut file = Unfinished::create(path, prefix)?;
        write(&mut file)?;
        file.finish()
    }

    /// Where the file will be.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the file its name, in place of whatever file has it.
    pub(crate) fn rename(self) -> io::Result<()> {
        self.file.persist(&self.path).map_err(|error| error.error)?;
        Ok(())
    }
}

/// Writes a file under a temporary name that begins with `prefix`, beside where
/// it will be, syncs it, and renames it.
pub(crate) fn replace(
    path: &Path,
    prefix: &str,
    write: impl FnOnce(&mut Unfinished) -> io::Result<()>,
) -> io::Result<()> {
    Staged::write(path, prefix, write)?.rename()
}

/// Whether files can be made in a folder, or in the nearest that is there of
/// those it would be made in. Leaves nothing behind.
pub(crate) fn check_writable(path: &Path) -> io::Result<()> {
    let mut here = path;
    while !here.exists() {
        here = folder(here);
    }
    if !here.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    tempfile::tempfile_in(here).map(drop)
}

/// The folder that a path lies in.
fn folder(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}
