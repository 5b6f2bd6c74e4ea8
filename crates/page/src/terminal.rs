//! A page, or a table alone, as text for a terminal.

use super::content::{Lead, OPEN_LINES};
use super::table::{Group, Table};
use super::{Block, Page, Section, visible, words};
use comfy_table::{CellAlignment, ContentArrangement, TableComponent, presets};
use std::fmt;

/// What a piece of text is, by which a terminal shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Anything else.
    Plain,
    /// A heading, a paragraph's label, or the head of a column.
    Heading,
    /// What a reader has to know to read the numbers right.
    Caution,
    /// An entry that is best of its kind.
    Best,
    /// What says that something is wrong.
    Bad,
}

/// Text in pieces, each with its [`Role`]; without these, it is the pieces joined.
#[derive(Clone, Debug, Default)]
pub struct Text(Vec<(Role, String)>);

impl Text {
    /// The pieces in order.
    pub fn spans(&self) -> impl Iterator<Item = (Role, &str)> {
        self.0.iter().map(|(role, text)| (*role, text.as_str()))
    }

    /// Appends a piece, [`visible`].
    pub fn add(&mut self, role: Role, text: &str) {
        let text = visible(text.to_owned());
        match self.0.last_mut().filter(|last| last.0 == role) {
            Some((_, last)) => last.push_str(&text),
            None if text.is_empty() => {}
            None => self.0.push((role, text)),
        }
    }

    /// Appends lines that are all of one role.
    pub fn lines(&mut self, role: Role, text: &str) {
        for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
            self.add(role, line);
            self.add(Role::Plain, "\n");
        }
    }

    /// Appends a paragraph, wrapped; a few words with a capital before its first colon are a
    /// heading.
    pub fn wrap(&mut self, text: &str, width: u16) {
        let label = text.split_once(": ").map_or("", |(label, _)| label);
        let label = if is_label(label) { label } else { "" };
        self.wrap_after(Role::Heading, label, &text[label.len()..], width);
    }

    /// Appends a paragraph, wrapped, whose first words have a role of their own.
    pub(super) fn wrap_after(&mut self, role: Role, first: &str, text: &str, width: u16) {
        let lines = words::wrapped(&format!("{first}{text}"), width);
        // Words that are themselves wrapped are as plain as the others.
        let rest = lines
            .strip_prefix("  ")
            .and_then(|rest| rest.strip_prefix(first));
        self.add(Role::Plain, if rest.is_some() { "  " } else { &lines });
        self.add(role, rest.map_or("", |_| first));
        self.add(Role::Plain, rest.unwrap_or(""));
    }

    /// Appends a paragraph, wrapped, that is all of one role.
    pub fn wrap_as(&mut self, role: Role, text: &str, width: u16) {
        self.lines(role, &words::wrapped(text, width));
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(_, text)| f.write_str(text))
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.add(Role::Plain, text);
        Ok(())
    }
}

/// One word or a few that begin with a capital, such as `How sure`.
fn is_label(text: &str) -> bool {
    text.starts_with(char::is_uppercase)
        && text.chars().count() <= 24
        && (text.chars()).all(|c| c.is_alphabetic() || " *()-".contains(c))
}

impl Page {
    /// The page as text, without pictures and without what a page folds away. In short
    /// unless `verbose`: the main sections, and of each table the main groups. `width`
    /// wraps tables and prose.
    pub fn text(&self, width: u16, verbose: bool) -> String {
        self.spans(width, verbose).to_string()
    }

    /// The same with the role of each piece.
    pub fn spans(&self, width: u16, verbose: bool) -> Text {
        let mut out = Text::default();
        out.lines(Role::Heading, &self.title);
        // What ends with a next step is a first screen.
        let lead = match verbose || self.next.is_empty() {
            true => self.lead.clone(),
            false => Lead::within(&self.lead, OPEN_LINES + 1).shown(),
        };
        for block in &lead {
            one(&mut out, block, width, verbose);
        }
        for section in &self.sections {
            if verbose || section.main {
                self::section(&mut out, section, width, verbose);
            }
        }
        out
    }
}

fn section(out: &mut Text, section: &Section, width: u16, verbose: bool) {
    out.lines(Role::Heading, &format!("\n{}", section.title));
    if verbose && !section.purpose.is_empty() {
        out.wrap(section.purpose, width);
    }
    for block in &section.blocks {
        one(out, block, width, verbose);
    }
}

fn one(out: &mut Text, block: &Block, width: u16, verbose: bool) {
    match block {
        Block::Paragraph(text) => out.wrap(text, width),
        Block::Heading(text) => out.wrap_as(Role::Heading, text, width),
        Block::Caution(text) => out.wrap_as(Role::Caution, &format!("! {text}"), width),
        Block::Wrong(text) => out.wrap_as(Role::Bad, text, width),
        Block::List(items) => {
            for item in items {
                out.wrap(&format!("- {item}"), width);
            }
        }
        Block::Definitions(words) => {
            for (word, meaning) in words {
                out.wrap(&format!("{word}: {meaning}"), width);
            }
        }
        Block::Facts(facts) => {
            for fact in facts {
                let value = fact.full.as_ref().unwrap_or(&fact.value);
                out.wrap(&format!("{}: {value}", fact.name), width);
            }
        }
        Block::Table(table) => fitting(out, table, width, verbose),
        Block::Command(text) => {
            out.lines(Role::Plain, &format!("  {}", text.replace('\n', "\n  ")));
        }
        Block::Links(links) => {
            for link in links {
                out.wrap(&format!("{}: {}.html", link.text, link.file), width);
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
fn fitting(out: &mut Text, all: &Table, width: u16, verbose: bool) {
    let (mut all, brief) = (all.clone(), all.brief);
    if !verbose && all.groups.iter().any(Group::has_main) {
        for group in &mut all.groups {
            group.rows.retain(|row| group.main || row.main);
        }
        all.groups.retain(|group| !group.rows.is_empty());
    }
    let mut parts = match natural_width(&all) > usize::from(width) {
        true => all.split(),
        false => vec![all],
    };
    if !verbose && brief {
        parts.truncate(1);
    }
    for part in parts {
        if !part.caption.is_empty() {
            out.lines(Role::Heading, &format!("\n{}", part.caption));
        }
        table(out, &part, width);
        for note in &part.notes {
            out.wrap(&note.replace("Bold:", "*:"), width);
        }
    }
}

/// Stand between the cells of a line and before what is best until a table is drawn. No text has
/// them.
const BETWEEN: char = '\u{fdd0}';
const BEST: &str = "\u{fdd1}";

/// The rows of a table.
pub fn table(out: &mut Text, table: &Table, width: u16) {
    let mut drawn = comfy_table::Table::new();
    drawn
        .load_preset(presets::UTF8_BORDERS_ONLY)
        .set_style(TableComponent::VerticalLines, BETWEEN)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width)
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
    let mut role = Role::Heading;
    for line in drawn.lines() {
        match line.strip_prefix('│') {
            Some(line) => cells(out, line, role),
            None => out.add(Role::Plain, line.trim_end()),
        }
        // Below the line under the names is what they name.
        if line.starts_with('╞') {
            role = Role::Plain;
        }
        out.add(Role::Plain, "\n");
    }
}

/// A line of a table behind its frame.
fn cells(out: &mut Text, line: &str, role: Role) {
    out.add(Role::Plain, "│");
    for (at, cell) in line.trim_end_matches('│').split(BETWEEN).enumerate() {
        let text = cell.trim();
        let (before, after) = cell.split_once(text).unwrap_or((cell, ""));
        out.add(Role::Plain, if at > 0 { " " } else { "" });
        out.add(Role::Plain, before);
        match text.strip_prefix(BEST) {
            Some(text) => out.add(Role::Best, &format!("*{text}")),
            None => out.add(role, text),
        }
        out.add(Role::Plain, after);
    }
    out.add(Role::Plain, "│");
}

fn rows(group: &Group) -> impl Iterator<Item = Vec<String>> {
    let indent = if group.title.is_some() { "  " } else { "" };
    group.rows.iter().map(move |row| {
        let entries = row.entries.iter().enumerate().map(|(index, entry)| {
            let mark = if entry.strong { BEST } else { "" };
            let indent = if index == 0 { indent } else { "" };
            let under = entry.under.as_ref().map(|under| format!("\n{under}"));
            format!("{indent}{mark}{}{}", entry.text, under.unwrap_or_default())
        });
        entries.collect()
    })
}

/// Characters that a table takes where nothing is wrapped.
fn natural_width(table: &Table) -> usize {
    let mut widths: Vec<usize> = (table.flat_names().iter())
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
    use crate::table::{Column, Entry, Row};

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
            let mut out = Text::default();
            fitting(&mut out, &table, width as u16, true);
            out.to_string()
        };
        let whole = drawn(width);
        assert!(whole.contains("T = 1, n = 2") && whole.contains("T = 2, n = 2"));
        let frame = whole.lines().find(|line| line.starts_with('┌')).unwrap();
        assert_eq!(frame.chars().count(), width);
        let parts = drawn(width - 1);
        assert_eq!(parts.matches('┌').count(), 2);
        assert!(parts.contains("T = 1: rates") && parts.contains("T = 2: rates"));
    }

    /// Headings, cautions, heads of tables and what is best are told apart, and nothing else.
    #[test]
    fn pieces_have_their_roles() {
        let columns = vec![Column::words("rule"), Column::number("accepts")];
        let best = Row::new([Entry::plain("rrs"), Entry::plain("56.0").bold(true)]);
        let table = Table::new("t", "Rates", columns).rows([best, Row::texts(["*x", "1  2"])]);
        let page = Page {
            title: "A report".to_owned(),
            lead: vec![
                Block::Paragraph("Worth: much: a lot.".to_owned()),
                Block::Caution("careful, this goes on at some more length".to_owned()),
                Block::Table(table),
            ],
            ..Page::default()
        };
        let spans = page.spans(40, false);
        let of = |role| {
            let found = spans.spans().filter(move |(other, _)| *other == role);
            found.map(|(_, text)| text).collect::<Vec<_>>().join("|")
        };
        assert_eq!(of(Role::Heading), "A report|Worth|Rates|rule|accepts");
        let caution = "  ! careful, this goes on at some more|    length";
        assert_eq!(of(Role::Caution), caution);
        assert_eq!(of(Role::Best), "*56.0");
        assert!(of(Role::Plain).contains("*x"), "{spans}");
        let mut bad = Text::default();
        bad.wrap_after(Role::Bad, "DISAGREES", ": a", 80);
        assert_eq!(bad.spans().nth(1), Some((Role::Bad, "DISAGREES")));
    }

    #[test]
    fn short_texts_keep_main_groups_where_there_are_any() {
        let mut table = Table::new("t", "Rates", vec![Column::words("name")])
            .rows([Row::texts(["first"])])
            .rows([Row::texts(["second"])]);
        let drawn = |table: &Table, verbose| {
            let mut out = Text::default();
            fitting(&mut out, table, 80, verbose);
            out.to_string()
        };
        assert!(drawn(&table, false).contains("first"));
        for row in [false, true] {
            table.groups[1].main = !row;
            table.groups[1].rows[0].main = row;
            let short = drawn(&table, false);
            assert!(short.contains("second") && !short.contains("first"));
        }
        assert!(drawn(&table, true).contains("first"));
    }
}
