//! Runs the program and keeps what it said.

use serde_json::Value;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

/// Where problems and fixtures are named from.
pub const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The program, not started yet.
pub fn command<S: AsRef<OsStr>>(folder: &Path, args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_specgap"));
    command.current_dir(folder).args(args);
    // Tables are as wide as the terminal; a backtrace is no part of a message.
    command.env("COLUMNS", "110").env("RUST_BACKTRACE", "0");
    command
}

/// Runs the program in a folder.
pub fn specgap<S: AsRef<OsStr>>(folder: &Path, args: impl IntoIterator<Item = S>) -> Run {
    let output = command(folder, args).output().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    // A setting that nobody has spelled.
    assert!(!out.contains('⟨') && !err.contains('⟨'), "{out}{err}");
    let code = output.status.code();
    Run { code, out, err }
}

/// Cases a line: what is asked for, in which `\n` is the end of a line, and all words of the
/// refusal.
pub fn cases(table: &str) -> impl Iterator<Item = (String, Vec<&str>)> {
    let lines = table.lines().map(str::trim);
    let cases = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    cases.map(|case| {
        let (text, words) = case.split_once("-> ").unwrap();
        let text = text.trim_end().replace("\\n", "\n");
        (text, words.split(" | ").collect())
    })
}

/// The names of what is in a folder, in order.
#[allow(dead_code)] // by one of the programs
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
    let mut names: Vec<String> = entries
        .map(|entry| name(entry).into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// The exit code, standard output and standard error of a run.
#[derive(Debug)]
pub struct Run {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Run {
    /// The run, which ended well.
    pub fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{}{}", self.out, self.err);
        self
    }

    /// Exit code 2, nothing on standard output, no panic, and a message that says all
    /// of these.
    pub fn refused(&self, words: &[&str]) {
        assert_eq!(self.code, Some(2), "{}", self.err);
        assert_eq!(self.out, "", "{}", self.err);
        assert!(!self.err.contains("internal"), "{}", self.err);
        assert!(!self.err.contains("panicked"), "{}", self.err);
        for word in words {
            assert!(self.err.contains(word), "{word:?} in {}", self.err);
        }
    }

    /// Standard output as JSON, one value a line.
    pub fn json_lines(&self) -> Vec<Value> {
        let values = self.out.lines().map(serde_json::from_str);
        values.collect::<Result<_, _>>().unwrap()
    }

    /// Standard output as JSON that is one value on one line.
    pub fn json(&self) -> Value {
        let mut values = self.json_lines();
        assert_eq!(values.len(), 1, "{}", self.out);
        values.remove(0)
    }
}
