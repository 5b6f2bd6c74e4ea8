//! A page, or a table alone, as text for a terminal.

use super::table::{Group, Table};
use super::words::wrap;
use super::{Block, Page, Section, visible};
use comfy_table::{CellAlignment, ContentArrangement, presets};
use std::fmt::Write as _;

impl Page {
    /// The page as text, without pictures and without what a page folds away. In short
    /// unless `verbose`: the main sections, and of each table the main groups. `width`
    /// wraps tables and prose.
    pub fn text(&self, width: u16, verbose: bool) -> String {
        let mut out = format!("{}\n", self.title);
        for block in &self.lead {
            one(&mut out, block, width, verbose);
        }
        for section in &self.sections {
            if verbose || section.main {
                self::section(&mut out, section, width, verbose);
            }
        }
        visible(out)
    }
}

fn section(out: &mut String, section: &Section, width: u16, verbose: bool) {
    let _ = writeln!(out, "\n{}", section.title);
    if verbose && !section.purpose.is_empty() {
        let _ = wrap(out, section.purpose, width);
    }
    for block in &section.blocks {
        one(out, block, width, verbose);
    }
}

fn one(out: &mut String, block: &Block, width: u16, verbose: bool) {
    match block {
        Block::Paragraph(text) | Block::Heading(text) => {
            let _ = wrap(out, text, width);
        }
        Block::Caution(text) => {
            let _ = wrap(out, &format!("! {text}"), width);
        }
        Block::List(items) => {
            for item in items {
                let _ = wrap(out, &format!("- {item}"), width);
            }
        }
        Block::Definitions(words) => {
            for (word, meaning) in words {
                let _ = wrap(out, &format!("{word}: {meaning}"), width);
            }
        }
        Block::Facts(facts) => {
            for fact in facts {
                let value = fact.full.as_ref().unwrap_or(&fact.value);
                let _ = wrap(out, &format!("{}: {value}", fact.name), width);
            }
        }
        Block::Table(table) => fitting(out, table, width, verbose),
        Block::Command(text) => {
            let _ = writeln!(out, "  {text}");
        }
        Block::Links(links) => {
            for link in links {
                let _ = wrap(out, &format!("{}: {}.html", link.text, link.file), width);
            }
        }
        Block::Panel(panel) => {
            for block in panel.blocks.iter().filter(|_| panel.first) {
                one(out, block, width, verbose);
            }
        }
        Block::Choice(_) | Block::Figure(_) | Block::Tokens(_) | Block::Details { .. } => {}
    }
}

/// A table with its caption and notes, in parts where it is too wide.
fn fitting(out: &mut String, all: &Table, width: u16, verbose: bool) {
    let mut all = all.clone();
    if !verbose && all.groups.iter().any(|group| group.main) {
        all.groups.retain(|group| group.main);
    }
    let parts = if natural_width(&all) > usize::from(width) {
        all.split()
    } else {
        vec![all]
    };
    for part in parts {
        if !part.caption.is_empty() {
            let _ = writeln!(out, "\n{}", part.caption);
        }
        table(out, &part, width, "");
        for note in &part.notes {
            let _ = wrap(out, &note.replace("Bold:", "*:"), width);
        }
    }
}

/// The rows of a table, indented.
pub fn table(out: &mut String, table: &Table, width: u16, indent: &str) {
    let mut drawn = comfy_table::Table::new();
    drawn
        .load_preset(presets::UTF8_BORDERS_ONLY)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width.saturating_sub(indent.len() as u16))
        .set_header(table.flat_names());
    for group in &table.groups {
        if let Some(title) = &group.title {
            drawn.add_row([title.clone()]);
        }
        for row in rows(group) {
            drawn.add_row(row);
        }
    }
    for (index, column) in table.columns.iter().enumerate() {
        if let Some(drawn) = drawn.column_mut(index).filter(|_| column.numeric) {
            drawn.set_cell_alignment(CellAlignment::Right);
        }
    }
    for line in drawn.to_string().lines() {
        let _ = writeln!(out, "{indent}{}", line.trim_end());
    }
}

fn rows(group: &Group) -> impl Iterator<Item = Vec<String>> {
    let indent = if group.title.is_some() { "  " } else { "" };
    group.rows.iter().map(move |row| {
        let entries = row.entries.iter().enumerate().map(|(index, entry)| {
            let mark = if entry.strong { "*" } else { "" };
            let indent = if index == 0 { indent } else { "" };
            let under = entry.under.as_ref().map(|under| format!("\n{under}"));
            format!("{indent}{mark}{}{}", entry.text, under.unwrap_or_default())
        });
        entries.collect()
    })
}

/// Characters that a table takes where nothing is wrapped.
fn natural_width(table: &Table) -> usize {
    let mut widths: Vec<usize> = table
        .flat_names()
        .iter()
        .map(|name| name.chars().count())
        .collect();
    for group in &table.groups {
        let title = group.title.iter().map(|title| vec![title.clone()]);
        for row in rows(group).chain(title) {
            for (width, text) in widths.iter_mut().zip(row) {
                let longest = text.lines().map(|line| line.chars().count()).max();
                *width = (*width).max(longest.unwrap_or(0));
            }
        }
    }
    // A blank on each side of a column, one between two, and the frame.
    widths.iter().map(|width| width + 3).sum::<usize>() + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::table::{Column, Row};

    /// A table is taken apart exactly where the terminal would wrap it.
    #[test]
    fn a_table_that_fits_is_not_taken_apart() {
        let columns = vec![
            Column::words("name"),
            Column::number("n = 2").over("T = 1"),
            Column::number("n = 2").over("T = 2"),
        ];
        let mut table = Table::new("t", "Rates", columns).rows([Row::texts(["a", "1", "2"])]);
        table.groups[0].title = Some("a longer title".to_owned());
        let width = natural_width(&table);
        let drawn = |width: usize| {
            let mut out = String::new();
            fitting(&mut out, &table, width as u16, true);
            out
        };
        let whole = drawn(width);
        assert!(whole.contains("T = 1, n = 2") && whole.contains("T = 2, n = 2"));
        let frame = whole.lines().find(|line| line.starts_with('┌')).unwrap();
        assert_eq!(frame.chars().count(), width);
        let parts = drawn(width - 1);
        assert_eq!(parts.matches('┌').count(), 2);
        assert!(parts.contains("T = 1: rates") && parts.contains("T = 2: rates"));
    }

    #[test]
    fn short_texts_keep_main_groups_where_there_are_any() {
        let mut table = Table::new("t", "Rates", vec![Column::words("name")])
            .rows([Row::texts(["first"])])
            .rows([Row::texts(["second"])]);
        let drawn = |table: &Table, verbose| {
            let mut out = String::new();
            fitting(&mut out, table, 80, verbose);
            out
        };
        assert!(drawn(&table, false).contains("first"));
        table.groups[1].main = true;
        let short = drawn(&table, false);
        assert!(short.contains("second") && !short.contains("first"));
        assert!(drawn(&table, true).contains("first"));
    }
}
