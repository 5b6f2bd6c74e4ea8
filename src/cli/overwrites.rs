//! The files that a command reads, and those that it writes: none of them twice.

use super::output::{CliError, check_folder, unwritten};
use crate::files::{Place, check_writable, folder as folder_of};
use crate::sorted::Map;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A folder that is written to, and which names the files have that are written in it.
type Folder<'a> = (&'a Path, fn(&str) -> bool);

/// What a command reads and writes, as far as it is known before the work.
#[derive(Default)]
pub(super) struct Touched<'a> {
    read: Vec<PathBuf>,
    written: Vec<(&'a str, PathBuf)>,
    folder: Option<Folder<'a>>,
}

impl<'a> Touched<'a> {
    /// Files that are read; of a folder, those in it.
    pub(super) fn reading<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Self {
        Self::default().and_reading(paths)
    }

    /// Further ones.
    pub(super) fn and_reading<P: AsRef<Path>>(
        mut self,
        paths: impl IntoIterator<Item = P>,
    ) -> Self {
        for path in paths {
            let path = path.as_ref();
            match std::fs::read_dir(path) {
                Ok(entries) => {
                    let inside = entries.flatten().map(|entry| entry.path());
                    self.read.extend(inside.filter(|path| !path.is_dir()));
                }
                Err(_) => self.read.push(path.to_owned()),
            }
        }
        self
    }

    /// A file that an option names, if it does.
    pub(super) fn writing(mut self, option: &'a str, path: Option<&Path>) -> Self {
        self.written
            .extend(path.map(|path| (option, path.to_owned())));
        self
    }

    /// The folder of `--out`, if it is given, and which names the files have that are written
    /// in it and in the folders in it.
    pub(super) fn folder(mut self, path: Option<&'a Path>, names: fn(&str) -> bool) -> Self {
        self.folder = path.map(|path| (path, names));
        self
    }

    /// Refuses a file that would be replaced by another one, and places that cannot be written.
    pub(super) fn check(&self) -> Result<(), CliError> {
        if let Some((folder, _)) = self.folder {
            check_folder(folder)?;
        }
        let read: Map<PathBuf, &PathBuf> = (self.read.iter())
            .filter_map(|path| Some((path.canonicalize().ok()?, path)))
            .collect();
        let mut before: Map<PathBuf, &str> = Map::new();
        let mut folders = BTreeSet::new();
        for (option, path) in &self.written {
            if path.is_dir() {
                return Err(CliError::input(path, "is a folder; name a file"));
            }
            // What goes into a pipe or a device replaces nothing.
            let Place::File(place) = Place::of(path).map_err(|source| unwritten(path, source))?
            else {
                continue;
            };
            let folder = folder_of(&place);
            if folders.insert(folder.to_owned()) {
                check_writable(folder).map_err(|source| unwritten(path, source))?;
            }
            let real = real(&place);
            if let Some(&file) = read.get(&real) {
                let file = match file == path {
                    true => "is read".to_owned(),
                    false => format!("is {}, which is read", file.display()),
                };
                return Err(CliError::input(
                    path,
                    format!("{file}, and {option} would replace it; name another file"),
                ));
            }
            if let Some(other) = before.insert(real, option) {
                return Err(CliError::input(
                    path,
                    format!("is the file of {other} and of {option}; name two"),
                ));
            }
        }
        let Some((folder, names)) = self.folder else {
            return Ok(());
        };
        let around = real(folder);
        let replaced = |file: &Path| {
            let inside = file.strip_prefix(&around).ok();
            let inside = inside.filter(|inside| inside.components().count() <= 2);
            let name = inside.and_then(|inside| inside.file_name()?.to_str());
            name.is_some_and(names)
        };
        let message = |how: &str| {
            format!(
                "{how}, and ⟨out {}⟩ writes files of such names there; name another folder",
                folder.display()
            )
        };
        if let Some((_, file)) = read.iter().find(|(real, _)| replaced(real)) {
            return Err(CliError::input(file, message("is read")));
        }
        if let Some((real, option)) = before.iter().find(|(real, _)| replaced(real)) {
            return Err(CliError::input(
                real,
                message(&format!("is the file of {option}")),
            ));
        }
        Ok(())
    }
}

/// A path without links and without `..`, also of a file that is not there yet.
fn real(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    let around = folder_of(path);
    match path.file_name() {
        Some(name) if around != path => real(around).join(name),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_read_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(place("log/sub")).unwrap();
        for name in ["log/log.json", "log/sub/other", "report.json"] {
            std::fs::write(place(name), "{}").unwrap();
        }
        let may_write = |name: &str| {
            let log = Touched::reading([place("log")]);
            log.writing("⟨junit⟩", Some(&place(name))).check().is_ok()
        };
        // A folder that is read is its files, and none that is deeper.
        assert!(may_write("new") && may_write("none/file") && may_write("log/sub/other"));
        for name in ["log/sub/../log.json", "log", "report.json/file"] {
            assert!(!may_write(name), "{name}");
        }
    }

    #[test]
    fn a_report_replaces_nothing_that_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(place("a/b")).unwrap();
        let [own, inside, deep] = ["report.json", "a/report.json", "a/b/report.json"];
        for name in [own, inside, deep, "list.json"] {
            std::fs::write(place(name), "{}").unwrap();
        }
        let names = |name: &str| name == "report.json";
        let out = folder.path().join("a/..");
        let into = |file: &str| {
            Touched::reading([place(file)])
                .folder(Some(&out), names)
                .check()
        };
        for file in [own, inside] {
            let message = into(file).unwrap_err().to_string();
            assert!(message.contains("name another folder"), "{message}");
        }
        assert!(into("list.json").is_ok() && into(deep).is_ok());
    }

    #[cfg(unix)]
    #[test]
    fn links_are_what_they_lead_to_and_devices_replace_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        std::fs::write(place("log.npz"), "").unwrap();
        std::os::unix::fs::symlink("log.npz", place("link")).unwrap();
        let reading = || Touched::reading([place("log.npz")]);
        let link = place("link");
        let message = reading().writing("⟨junit⟩", Some(&link)).check();
        let message = message.unwrap_err().to_string();
        assert!(message.contains("log.npz, which is read"), "{message}");
        let null = Path::new("/dev/null");
        let twice = reading()
            .writing("⟨partial⟩", Some(null))
            .writing("⟨positions⟩", Some(null));
        twice.check().unwrap();
    }
}
