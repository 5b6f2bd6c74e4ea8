//! Sections that pages of several reports have.

use specgap_page::table::Table;
use specgap_page::{Block, Section};

/// A section that short texts have too.
pub(super) fn shown(
    id: &'static str,
    title: &'static str,
    purpose: &'static str,
    blocks: impl IntoIterator<Item = Block>,
) -> Section {
    Section::new(id, title, purpose, blocks).main()
}

/// With the first section in short texts, where these would have none.
pub(super) fn first_shown(mut sections: Vec<Section>) -> Vec<Section> {
    let has_any = sections.iter().any(|one| one.main);
    if let Some(first) = sections.first_mut().filter(|_| !has_any) {
        first.main = true;
    }
    sections
}

/// A table, unless it has no rows.
pub(super) fn if_any(table: Table) -> Option<Table> {
    (!table.is_empty()).then_some(table)
}

/// A section of a table alone, if there is one.
pub(super) fn of_table(
    id: &'static str,
    title: &'static str,
    purpose: &'static str,
    table: Option<Table>,
) -> Option<Section> {
    table.map(|table| Section::new(id, title, purpose, [Block::Table(table)]))
}

/// Says what words mean.
pub(super) fn definitions(purpose: &'static str, words: Vec<(String, String)>) -> Section {
    let words = Block::Definitions(words);
    Section::new("definitions", "Definitions", purpose, [words])
}

/// Lists what a report leaves out, if it does.
pub(super) fn left_out(purpose: &'static str, lines: &[String]) -> Option<Section> {
    let list = Block::List(lines.to_vec());
    (!lines.is_empty()).then(|| Section::new("left-out", "Left out", purpose, [list]))
}
