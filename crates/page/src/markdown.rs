//! A page as Markdown.

use super::content::Lead;
use super::table::{Column, Entry, Row, Table};
use super::words::markup_escaped;
use super::{Block, Page, visible};
use std::fmt::Write as _;

impl Page {
    /// The page as Markdown, which refers to the pictures by
    /// [`Figure::svg_file`](super::Figure::svg_file). Marks in a text are left out.
    pub fn markdown(&self) -> String {
        let mut out = String::new();
        heading(&mut out, 1, &self.title);
        lead(&mut out, &self.lead);
        if let Some(last) = self.last_line() {
            let _ = writeln!(out, "{}\n", escape(&last));
        }
        for section in &self.sections {
            heading(&mut out, 2, section.title);
            let summary = match section.purpose {
                "" => "Show",
                purpose => purpose,
            };
            folded(&mut out, summary, &section.blocks);
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
        visible(out)
    }
}

fn heading(out: &mut String, level: usize, text: &str) {
    let _ = writeln!(out, "{} {}\n", "#".repeat(level), escape(text));
}

/// The verdict in bold, and after it what stands open.
fn lead(out: &mut String, blocks: &[Block]) {
    let lead = Lead::of(blocks);
    self::blocks(out, &lead.before);
    if let Some(verdict) = &lead.verdict {
        let _ = writeln!(out, "**{}**\n", escape(verdict));
    }
    self::blocks(out, &lead.open);
    self::blocks(out, &lead.seen);
    if !lead.folded.is_empty() {
        folded(out, MORE, &lead.folded);
    }
}

/// What is seen of lines that are folded away.
pub(super) const MORE: &str = "More in words";

fn folded(out: &mut String, summary: &str, blocks: &[Block]) {
    // No Markdown is read in that line.
    let summary = markup_escaped(summary);
    let _ = writeln!(out, "<details><summary>{summary}</summary>\n");
    self::blocks(out, blocks);
    out.push_str("</details>\n\n");
}

fn blocks(out: &mut String, blocks: &[Block]) {
    for block in blocks {
        one(out, block);
    }
}

fn one(out: &mut String, block: &Block) {
    match block {
        Block::Paragraph(text) => {
            let _ = writeln!(out, "{}\n", escape(text));
        }
        Block::Caution(text) | Block::Wrong(text) => {
            let _ = writeln!(out, "> {}\n", escape(text));
        }
        Block::Heading(text) => heading(out, 3, text),
        Block::List(items) => list(out, items, |item| escape(item)),
        Block::Definitions(words) => list(out, words, |(word, meaning)| {
            format!("**{}**: {}", escape(word), escape(meaning))
        }),
        Block::Facts(facts) => list(out, facts, |fact| {
            let value = fact.full.as_ref().unwrap_or(&fact.value);
            format!("{}: {}", escape(&fact.name), escape(value))
        }),
        Block::Table(all) => table(out, all),
        Block::Figure(figure) => {
            if let Some(finding) = figure.finding() {
                let _ = writeln!(out, "**{}**\n", escape(finding));
            }
            let _ = writeln!(
                out,
                "![{}]({})\n\n{}\n",
                escape(&figure.alt),
                figure.svg_file(),
                escape(&figure.caption)
            );
        }
        Block::Tokens(_) => {}
        Block::Details { summary, blocks } => folded(out, summary, blocks),
        Block::Choice(_) => {}
        // The others are on the page.
        Block::Panel(panel) if panel.first => self::blocks(out, &panel.blocks),
        Block::Panel(_) => {}
        Block::Command(text) => {
            for line in text.lines() {
                let _ = writeln!(out, "    {line}");
            }
            out.push('\n');
        }
        Block::Links(links) => list(out, links, |link| {
            format!("[{}]({})", escape(&link.text), link.address(".md"))
        }),
    }
}

fn list<T>(out: &mut String, items: &[T], text: impl Fn(&T) -> String) {
    for item in items {
        let _ = writeln!(out, "- {}", text(item));
    }
    out.push('\n');
}

/// A table, with what stands over and under it.
fn table(out: &mut String, table: &Table) {
    if !table.caption.is_empty() {
        let _ = writeln!(out, "{}:\n", escape(&table.caption));
    }
    let names: Vec<String> = table.flat_names().iter().map(|name| escape(name)).collect();
    let _ = writeln!(out, "| {} |", names.join(" | "));
    let rule = |column: &Column| if column.numeric { "---:" } else { "---" };
    let rules: Vec<&str> = table.columns.iter().map(rule).collect();
    let _ = writeln!(out, "| {} |", rules.join(" | "));
    for group in &table.groups {
        if let Some(title) = &group.title {
            let rest = " |".repeat(table.columns.len().saturating_sub(1));
            let _ = writeln!(out, "| **{}** |{rest}", escape(title));
        }
        for row in &group.rows {
            let entries = row.entries.iter().enumerate();
            let entries = entries.map(|(index, entry)| shown(row, index, entry));
            let entries: Vec<String> = entries.collect();
            let _ = writeln!(out, "| {} |", entries.join(" | "));
        }
    }
    out.push('\n');
    for note in &table.notes {
        let _ = writeln!(out, "{}\n", escape(note));
    }
}

fn shown(row: &Row, index: usize, entry: &Entry) -> String {
    let mut text = escape(&entry.text);
    if let Some(anchor) = &entry.anchor {
        text = format!("[{text}](#{anchor})");
    }
    if entry.strong {
        text = format!("**{text}**");
    } else if row.reference && index == 0 {
        text = format!("*{text}*");
    }
    if let Some(under) = &entry.under {
        text.push_str(&format!("<br>{}", escape(under)));
    }
    text
}

/// Text that Markdown shows as it is, also inside a table.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '$' => {
                out.push('\\');
                out.push(c);
            }
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\n' | '\r' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
