//! Which files and models a report is of.

use specgap_base::once::each_once;
use specgap_log::log::{FileDigest, Metadata};
use specgap_page::Fact;

/// A line that begins so, and goes on with the models of each log: each pair once.
pub(crate) fn with_models<'a>(first: String, logs: impl Iterator<Item = &'a Metadata>) -> String {
    let pairs = logs.filter_map(|log| {
        let (target, draft) = (log.target.as_ref()?, log.draft.as_ref()?);
        Some(format!("target {}, draft {}", target.name, draft.name))
    });
    each_once(std::iter::once(first).chain(pairs)).join(" · ")
}

/// Names what was measured, by its contents.
pub(crate) fn files(files: &[FileDigest]) -> Option<Fact> {
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
