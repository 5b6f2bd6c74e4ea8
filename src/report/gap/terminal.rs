//! A gap report in short, for a terminal.

use super::tables::{self, Table};
use super::words::{headline, summary, temperatures, title};
use crate::gap::GapReport;
use crate::report::solve::wrap;
use comfy_table::{CellAlignment, ContentArrangement, presets};
use std::fmt::Write as _;

/// The report in short: acceptance at every temperature and the gaps of the cell
/// that the summary speaks of. `verbose` adds the gaps of every cell,
/// comparisons, the published formula's error, blocks and definitions. `width`
/// wraps tables and prose.
pub fn text(report: &GapReport, width: u16, verbose: bool) -> String {
    let mut out = format!("{}\n", title(report));
    for sentence in summary(report) {
        let _ = wrap(&mut out, &sentence, width);
    }
    for at in temperatures(report) {
        table(&mut out, &tables::acceptance_at(report, &[at]), width);
    }
    if verbose {
        if !report.cells.is_empty() {
            table(&mut out, &tables::gaps_short(report, None), width);
        }
        let parts = [
            tables::comparisons(report),
            tables::formula(report),
            tables::plans(report),
            tables::blocks(report),
            tables::overlap(report),
        ];
        for part in parts.iter().flatten() {
            table(&mut out, part, width);
        }
        for (name, meaning) in &report.definitions {
            let _ = wrap(&mut out, &format!("{name}: {meaning}"), width);
        }
    } else if let Some(place) = headline(report) {
        table(&mut out, &tables::gaps_short(report, Some(place)), width);
    }
    for line in &report.left_out {
        let _ = wrap(&mut out, &format!("left out: {line}"), width);
    }
    out
}

fn table(out: &mut String, table: &Table, width: u16) {
    let _ = writeln!(out, "\n{}", table.caption);
    let mut drawn = comfy_table::Table::new();
    drawn
        .load_preset(presets::UTF8_BORDERS_ONLY)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width)
        .set_header(table.flat_names());
    for group in &table.groups {
        if let Some(title) = &group.title {
            drawn.add_row([title.clone()]);
        }
        let indent = if group.title.is_some() { "  " } else { "" };
        for row in &group.rows {
            let entries = row.entries.iter().enumerate().map(|(index, entry)| {
                let mark = if entry.strong { "*" } else { "" };
                let indent = if index == 0 { indent } else { "" };
                format!("{indent}{mark}{}", entry.text)
            });
            drawn.add_row(entries);
        }
    }
    for (index, column) in table.columns.iter().enumerate() {
        if let Some(drawn) = drawn.column_mut(index).filter(|_| column.numeric) {
            drawn.set_cell_alignment(CellAlignment::Right);
        }
    }
    for line in drawn.to_string().lines() {
        let _ = writeln!(out, "{}", line.trim_end());
    }
    for note in &table.notes {
        let _ = wrap(out, &note.replace("Bold:", "*:"), width);
    }
}
