//! Several logs side by side, for a terminal, as Markdown and as a page.

use super::text::markup_escaped as escape;
use super::text::wrap;
use crate::gap::{ComparedEstimate, ComparedRate, Estimate, LogComparison};
use comfy_table::{CellAlignment, ContentArrangement, presets};
use std::fmt::Write as _;

const NOTE: &str = "Each log is measured by itself. Intervals are 95%, over the log's own \
                    prompts (or positions, where it names no prompts), and not paired: two that \
                    overlap say nothing about positions that both logs have.";
const TRUNCATED: &str = "In brackets: bounds that hold the mean over full rows, where rows list \
                         some tokens only.";
const TITLE: &str = "Acceptance of several logs";

const STYLE: &str = "body{font:16px/1.5 sans-serif;max-width:70rem;margin:2rem auto;padding:0 \
                     1rem;color-scheme:light dark}div{overflow-x:auto}table{border-collapse:\
                     collapse}th,td{padding:.2rem .7rem;border-bottom:1px solid #8884;\
                     text-align:right;white-space:nowrap}th:first-child,td:first-child\
                     {text-align:left}caption{text-align:left;font-weight:bold;margin-top:1rem}";

/// One table: a caption, names of columns, and rows.
struct Table {
    caption: String,
    names: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// The comparison in tables for a terminal of some width.
pub fn text(comparison: &LogComparison, width: u16) -> String {
    let mut out = format!("{TITLE}\n");
    for note in notes(comparison) {
        let _ = wrap(&mut out, note, width);
    }
    for table in tables(comparison) {
        let _ = writeln!(out, "\n{}", table.caption);
        let mut drawn = comfy_table::Table::new();
        drawn
            .load_preset(presets::UTF8_BORDERS_ONLY)
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(width)
            .set_header(&table.names);
        for row in &table.rows {
            drawn.add_row(row);
        }
        for column in drawn.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let _ = writeln!(out, "{drawn}");
    }
    out
}

/// The comparison as Markdown.
pub fn markdown(comparison: &LogComparison) -> String {
    let plain = |text: &str| text.replace('|', "\\|").replace('\n', " ");
    let mut out = format!("# {TITLE}\n\n");
    for note in notes(comparison) {
        let _ = writeln!(out, "{note}\n");
    }
    for table in tables(comparison) {
        let _ = writeln!(out, "## {}\n", plain(&table.caption));
        let names: Vec<String> = table.names.iter().map(|name| plain(name)).collect();
        let _ = writeln!(out, "| {} |", names.join(" | "));
        let rule = vec!["--:"; names.len().saturating_sub(1)];
        let _ = writeln!(out, "| --- | {} |", rule.join(" | "));
        for row in &table.rows {
            let row: Vec<String> = row.iter().map(|entry| plain(entry)).collect();
            let _ = writeln!(out, "| {} |", row.join(" | "));
        }
        out.push('\n');
    }
    let _ = writeln!(out, "Each log's own report:\n");
    for log in &comparison.logs {
        let _ = writeln!(out, "- [{}](<{}/report.md>)", plain(&log.name), log.folder);
    }
    let _ = writeln!(
        out,
        "\nMade by `{}`, {}.",
        comparison.command, comparison.tool
    );
    out
}

/// The comparison as one HTML page that needs nothing else.
pub fn html(comparison: &LogComparison) -> String {
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta \
         name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{TITLE}\
         </title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{TITLE}</h1>\n"
    );
    for note in notes(comparison) {
        let _ = writeln!(out, "<p>{}</p>", escape(note));
    }
    let cells = |out: &mut String, tag: &str, row: &[String]| {
        out.push_str("<tr>");
        for entry in row {
            let _ = write!(out, "<{tag}>{}</{tag}>", escape(entry));
        }
        out.push_str("</tr>\n");
    };
    for table in tables(comparison) {
        let _ = writeln!(
            out,
            "<div><table>\n<caption>{}</caption>\n<thead>",
            escape(&table.caption)
        );
        cells(&mut out, "th", &table.names);
        out.push_str("</thead>\n<tbody>\n");
        for row in &table.rows {
            cells(&mut out, "td", row);
        }
        out.push_str("</tbody>\n</table></div>\n");
    }
    out.push_str("<p>Each log's own report:</p>\n<ul>\n");
    for log in &comparison.logs {
        let _ = writeln!(
            out,
            "<li><a href=\"{}/report.html\">{}</a></li>",
            address(&log.folder),
            escape(&log.name)
        );
    }
    let _ = writeln!(
        out,
        "</ul>\n<pre><code>{}</code></pre>\n<p>{}</p>\n</body>\n</html>",
        escape(&comparison.command),
        escape(&comparison.tool)
    );
    out
}

fn notes(comparison: &LogComparison) -> Vec<&'static str> {
    let truncated = (comparison.rates.iter())
        .flat_map(|rate| rate.estimates.iter().flatten())
        .any(|one| one.estimate.truncation.is_some());
    let mut notes = vec![NOTE];
    if truncated {
        notes.push(TRUNCATED);
    }
    notes
}

fn tables(comparison: &LogComparison) -> Vec<Table> {
    let logs = comparison.logs.iter();
    let mut names = vec![String::new()];
    names.extend(logs.clone().map(|log| log.folder.clone()));
    let mut about = Table {
        caption: "Logs".to_owned(),
        names: names.clone(),
        rows: Vec::new(),
    };
    let dash = || "–".to_owned();
    for (name, entries) in [
        (
            "target",
            logs.clone()
                .map(|log| log.target.clone().unwrap_or_else(dash))
                .collect::<Vec<_>>(),
        ),
        (
            "draft",
            logs.clone()
                .map(|log| log.draft.clone().unwrap_or_else(dash))
                .collect(),
        ),
        (
            "V",
            logs.clone().map(|log| log.vocabulary.to_string()).collect(),
        ),
        (
            "positions",
            logs.clone().map(|log| log.positions.to_string()).collect(),
        ),
        (
            "units of the intervals",
            logs.clone()
                .map(|log| format!("{} {}s", log.clusters, log.cluster_unit))
                .collect(),
        ),
    ] {
        let mut row = vec![name.to_owned()];
        row.extend(entries);
        about.rows.push(row);
    }
    let mut tables = vec![about];
    let mut temperatures: Vec<f64> = Vec::new();
    for rate in &comparison.rates {
        if !temperatures.contains(&rate.temperature) {
            temperatures.push(rate.temperature);
        }
    }
    for temperature in temperatures {
        let rates = comparison.rates.iter();
        tables.push(Table {
            caption: format!("T = {temperature}"),
            names: names.clone(),
            rows: rates
                .filter(|rate| rate.temperature == temperature)
                .map(|rate| {
                    let entries = rate.estimates.iter().map(|one| match one {
                        None => dash(),
                        Some(one) => entry(one),
                    });
                    std::iter::once(name(rate)).chain(entries).collect()
                })
                .collect(),
        });
    }
    tables
}

fn name(rate: &ComparedRate) -> String {
    let scheme = rate.scheme.as_deref().unwrap_or_default();
    let drafts = rate.drafts.unwrap_or_default();
    match (rate.what.as_str(), &rate.verifier) {
        ("overlap", _) => "overlap".to_owned(),
        (_, None) => format!("n = {drafts}, {scheme}: alpha*"),
        (_, Some(verifier)) => format!("n = {drafts}, {scheme}: {verifier}"),
    }
}

fn entry(one: &ComparedEstimate) -> String {
    let Estimate { mean, ci95, .. } = &one.estimate;
    let half = 0.5 * (ci95[1] - ci95[0]);
    let mut text = if half > 0.0 {
        format!("{mean:.4} ± {half:.4}")
    } else {
        format!("{mean:.4}")
    };
    if let Some([lower, upper]) = one.estimate.truncation {
        let (down, up) = ((lower * 1e4).floor() / 1e4, (upper * 1e4).ceil() / 1e4);
        let _ = write!(text, " [{down:.4}, {up:.4}]");
    }
    text
}

/// A folder's name as a relative address.
fn address(folder: &str) -> String {
    let mut out = String::from("./");
    for byte in folder.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}
