//! A gap report as Markdown.

use super::Picture;
use super::tables::{self, Table};
use super::words::{counted, headline, summary, temperature, title};
use crate::gap::{GapReport, LogSummary};
use std::fmt::Write as _;

/// How many of the strip's tokens are listed.
const TOKENS: usize = 12;

/// The report as Markdown, which refers to the pictures by
/// [`Picture::svg_file`].
pub fn markdown(report: &GapReport, pictures: &[Picture]) -> String {
    let mut out = String::new();
    heading(&mut out, 1, &title(report));
    let _ = writeln!(out, "{}\n", escape(&summary(report).join(" ")));
    let mut shown = pictures.iter().peekable();
    if !report.cells.is_empty() {
        heading(&mut out, 2, "Acceptance");
        for one in tables::acceptance(report) {
            table(&mut out, &one);
        }
        while let Some(one) = shown.next_if(|one| one.name.starts_with("acceptance-")) {
            picture(&mut out, one);
        }
        heading(&mut out, 2, "Gap to the optimum");
        table(&mut out, &tables::gaps(report));
        while let Some(one) = shown.next_if(|one| one.name.starts_with("gap-")) {
            picture(&mut out, one);
        }
    }
    for (name, part) in [
        ("Comparisons", tables::comparisons(report)),
        (
            "The published formula without replacement",
            tables::formula(report),
        ),
        ("Optimal plans", tables::plans(report)),
        ("Blocks", tables::blocks(report)),
        ("Overlap", tables::overlap(report)),
    ] {
        if let Some(part) = part {
            heading(&mut out, 2, name);
            table(&mut out, &part);
        }
    }
    for one in shown {
        picture(&mut out, one);
    }
    strip(&mut out, report);
    if !report.definitions.is_empty() {
        heading(&mut out, 2, "Definitions");
        for (name, meaning) in &report.definitions {
            let _ = writeln!(out, "- **{}**: {}", escape(name), escape(meaning));
        }
        out.push('\n');
    }
    if !report.logs.is_empty() {
        heading(&mut out, 2, "Where the rows come from");
        for (index, one) in report.logs.iter().enumerate() {
            log(&mut out, report, index, one);
        }
    }
    if !report.left_out.is_empty() {
        heading(&mut out, 2, "Left out");
        for line in &report.left_out {
            let _ = writeln!(out, "- {}", escape(line));
        }
        out.push('\n');
    }
    heading(&mut out, 2, "Made by");
    let command = report.command.replace('\n', " ");
    let _ = writeln!(out, "    {command}\n");
    let _ = writeln!(out, "{}, seed {}.", escape(&report.tool), report.seed);
    out
}

fn heading(out: &mut String, level: usize, text: &str) {
    let _ = writeln!(out, "{} {}\n", "#".repeat(level), escape(text));
}

fn picture(out: &mut String, picture: &Picture) {
    let alt = escape(&picture.alt);
    let _ = writeln!(
        out,
        "![{alt}]({})\n\n{}\n",
        picture.svg_file(),
        escape(&picture.caption)
    );
}

fn table(out: &mut String, table: &Table) {
    let _ = writeln!(out, "{}:\n", escape(&table.caption));
    let names: Vec<String> = table.flat_names().iter().map(|name| escape(name)).collect();
    let _ = writeln!(out, "| {} |", names.join(" | "));
    let rules: Vec<&str> = table
        .columns
        .iter()
        .map(|column| if column.numeric { "---:" } else { "---" })
        .collect();
    let _ = writeln!(out, "| {} |", rules.join(" | "));
    for group in &table.groups {
        if let Some(title) = &group.title {
            let rest = " |".repeat(table.columns.len().saturating_sub(1));
            let _ = writeln!(out, "| **{}** |{rest}", escape(title));
        }
        for row in &group.rows {
            let entries = row.entries.iter().enumerate().map(|(index, entry)| {
                let text = escape(&entry.text);
                if entry.strong {
                    format!("**{text}**")
                } else if row.optimum && index == 0 {
                    format!("*{text}*")
                } else {
                    text
                }
            });
            let _ = writeln!(out, "| {} |", entries.collect::<Vec<_>>().join(" | "));
        }
    }
    out.push('\n');
    for note in &table.notes {
        let _ = writeln!(out, "{}\n", escape(note));
    }
}

fn strip(out: &mut String, report: &GapReport) {
    let Some(strip) = &report.strip else {
        return;
    };
    let mut tokens: Vec<(&str, _)> = strip
        .texts
        .iter()
        .flat_map(|text| {
            text.tokens
                .iter()
                .map(|token| (text.prompt.as_str(), token))
        })
        .collect();
    if tokens.is_empty() {
        return;
    }
    tokens.sort_by(|(_, a), (_, b)| super::strip::gap(b).total_cmp(&super::strip::gap(a)));
    heading(out, 2, "Where the gap lies");
    let caption = format!(
        "The tokens with the largest gap of {} ({} drafts, T = {}, n = {}), of {}",
        strip.verifier,
        strip.scheme,
        temperature(strip.temperature),
        strip.drafts,
        counted(tokens.len(), "token")
    );
    let chosen = tokens.into_iter().take(TOKENS);
    table(
        out,
        &tables::tokens("tokens".to_owned(), caption, &strip.verifier, chosen),
    );
}

fn log(out: &mut String, report: &GapReport, index: usize, log: &LogSummary) {
    heading(out, 3, &log.name);
    for fact in super::provenance::facts(log) {
        let value = fact.full.as_ref().unwrap_or(&fact.value);
        let _ = writeln!(out, "- {}: {}", escape(&fact.name), escape(value));
    }
    out.push('\n');
    if let Some(rest) = tables::rest(log, index, headline(report).map(|(_, n)| n)) {
        table(out, &rest);
    }
}

/// Text that Markdown shows as it is, also inside a table.
fn escape(text: &str) -> String {
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
