//! The command that makes a report, as the report says it: without folders of the machine.

use std::fmt::Display;
use std::path::{Path, PathBuf};

/// Returns what a file is called, without its folder.
pub(super) fn file_name(path: &Path) -> String {
    crate::files::name(path)
}

/// A command line that grows by what was given.
pub(super) struct Recorded(String);

impl Recorded {
    pub(super) fn new(command: &str, logs: &[PathBuf]) -> Self {
        let logs: Vec<String> = logs.iter().map(|path| file_name(path)).collect();
        Self(format!("specgap {command} {}", logs.join(" ")))
    }

    /// One that begins so.
    pub(super) fn from_start(text: String) -> Self {
        Self(text)
    }

    /// An option that was given with a value.
    pub(super) fn option(&mut self, name: &str, value: Option<impl Display>) -> &mut Self {
        if let Some(value) = value {
            self.0.push_str(&format!(" --{name} {value}"));
        }
        self
    }

    /// A number with all of its digits.
    pub(super) fn number(&mut self, name: &str, value: Option<f64>) -> &mut Self {
        self.option(name, value.map(|value| format!("{value:?}")))
    }

    /// An option that takes several values, where any are given.
    pub(super) fn list<T: Display>(
        &mut self,
        name: &str,
        values: impl IntoIterator<Item = T>,
    ) -> &mut Self {
        let words: Vec<String> = values.into_iter().map(|value| value.to_string()).collect();
        self.option(name, (!words.is_empty()).then(|| words.join(",")))
    }

    pub(super) fn flag(&mut self, name: &str, given: bool) -> &mut Self {
        if given {
            self.0.push_str(&format!(" --{name}"));
        }
        self
    }

    pub(super) fn into_line(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_given_is_not_there() {
        let logs = [PathBuf::from("some/log"), PathBuf::from("other.npz")];
        let mut command = Recorded::new("length", &logs);
        command
            .list("lengths", [2, 4])
            .list("policies", Vec::<String>::new())
            .option("max-length", None::<u16>)
            .number("temperature", Some(1.0))
            .flag("slot-values", true)
            .flag("draft-cut", false);
        assert_eq!(
            command.into_line(),
            "specgap length log other.npz --lengths 2,4 --temperature 1.0 --slot-values"
        );
    }
}
