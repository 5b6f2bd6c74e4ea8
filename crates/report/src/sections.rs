//! Sections that pages of several reports have.

use specgap_page::table::Table;
use specgap_page::{Block, Section};
use std::collections::BTreeMap;

/// A section by its id, its title and what a reader finds in it, between bars.
pub(super) fn section(
    words: &'static str,
    blocks: impl IntoIterator<Item = impl Into<Block>>,
) -> Section {
    let mut words = words.splitn(3, " | ");
    let mut next = || words.next().unwrap_or_default();
    Section::new(next(), next(), next(), blocks)
}

/// A section that short texts have too.
pub(super) fn shown(
    words: &'static str,
    blocks: impl IntoIterator<Item = impl Into<Block>>,
) -> Section {
    section(words, blocks).main()
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
pub(super) fn of_table(words: &'static str, table: Option<Table>) -> Option<Section> {
    table.map(|table| section(words, [table]))
}

/// A section of tables or pictures, if there are any.
pub(super) fn of_all<B: Into<Block>>(words: &'static str, blocks: Vec<B>) -> Option<Section> {
    (!blocks.is_empty()).then(|| section(words, blocks))
}

/// Says what words mean.
pub(super) fn definitions(purpose: &'static str, words: Vec<(String, String)>) -> Section {
    let words = Block::Definitions(words);
    Section::new("definitions", "Definitions", purpose, [words])
}

/// Says what numbers are, by their names.
pub(super) fn of_numbers(purpose: &'static str, words: &BTreeMap<String, String>) -> Section {
    let words = words.iter();
    let words = words.map(|(word, meaning)| (word.clone(), format!("{meaning}.")));
    definitions(purpose, words.collect())
}

/// Lists what a report leaves out, if it does.
pub(super) fn left_out(purpose: &'static str, lines: &[String]) -> Option<Section> {
    let list = Block::List(lines.to_vec());
    (!lines.is_empty()).then(|| Section::new("left-out", "Left out", purpose, [list]))
}
