//! Which files a report is of.

use crate::log::FileDigest;
use crate::page::Fact;

/// What was measured, by its contents.
pub(in crate::report) fn files(files: &[FileDigest]) -> Option<Fact> {
    let first = files.first()?;
    let all = files.iter();
    let all: Vec<String> = all
        .map(|file| format!("{} {}", file.sha256, file.name))
        .collect();
    let name = match files.len() {
        1 => first.name.clone(),
        more => format!("{more}, in report.json; {}", first.name),
    };
    Some(Fact {
        full: Some(all.join("; ")),
        ..Fact::new("measured", format!("{name}, sha256 {:.12}…", first.sha256))
    })
}
