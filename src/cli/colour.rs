//! Weight and colour of what is printed for people, in the styles that clap has for help and
//! errors. Where the output is no terminal, `TERM` is `dumb` or `NO_COLOR` is set, there is none.

use clap::builder::Styles;
use clap::builder::styling::{AnsiColor, Style};
use std::io::StdoutLock;

/// What begins and what ends a style.
pub(super) fn ends(style: Style) -> [String; 2] {
    [style.render().to_string(), style.render_reset().to_string()]
}

/// Standard output, which drops styles that it cannot show.
pub(super) fn stdout() -> anstream::AutoStream<StdoutLock<'static>> {
    anstream::stdout().lock()
}

/// Says why a command stopped.
pub(super) fn error(message: &str) {
    said("error", *Styles::styled().get_error(), message);
}

/// Says what is probably not meant.
pub(super) fn warning(message: &str) {
    said("warning", WARNING, message);
}

/// Says what is worth knowing.
pub(super) fn note(message: &str) {
    said("note", Style::new().bold(), message);
}

/// Says what got worse.
pub(super) fn regression(message: &str) {
    said("regression", BAD, message);
}

/// Says what may be meant instead, below an error.
pub(super) fn tip(message: &str) {
    let [on, off] = ends(*Styles::styled().get_valid());
    anstream::eprintln!("\n  {on}tip:{off} {message}");
}

fn said(word: &str, style: Style, message: &str) {
    let [on, off] = ends(style);
    anstream::eprintln!("{on}{word}:{off} {message}");
}

const HEADING: Style = Style::new().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();

/// What says that something is wrong.
const WRONG: [&str; 5] = [
    "DISAGREES",
    "DISAGREE",
    "EXPECTATION FAILS",
    "REFUTED",
    "REJECTED",
];

/// Where a line stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Behind an empty line, or first.
    Start,
    /// In what a table has above its columns.
    Head,
    /// In the paragraph of a warning.
    Warning,
    /// Anywhere else.
    Inside,
}

/// A report's text with its headings, the labels of its paragraphs, the heads of its tables and
/// the best of their rows in bold, its warnings in yellow, and what is wrong in red.
pub(super) fn styled(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    let mut place = Place::Start;
    for line in text.split_inclusive('\n') {
        let (line, end) = match line.strip_suffix('\n') {
            Some(line) => (line, "\n"),
            None => (line, ""),
        };
        let frame = line.trim_start();
        let goes_on = place == Place::Warning && line.starts_with("    ");
        let in_head = frame.starts_with('│') && place == Place::Head;
        place = if frame.starts_with('┌') || in_head {
            Place::Head
        } else if line.starts_with("  ! ") || goes_on {
            Place::Warning
        } else if line.is_empty() {
            Place::Start
        } else if place == Place::Start {
            out.push_str(&first(line));
            out.push_str(end);
            place = Place::Inside;
            continue;
        } else {
            Place::Inside
        };
        out.push_str(&match place {
            Place::Head if frame.starts_with('│') => cells(line, |_| true),
            Place::Warning => painted(WARNING, line),
            Place::Inside if frame.starts_with('│') => {
                cells(line, |cell| cell.trim_start().starts_with('*'))
            }
            Place::Inside => labelled(line),
            _ => line.to_owned(),
        });
        out.push_str(end);
    }
    out
}

/// A definition with its word in bold.
pub(super) fn first_in_bold(text: &str, word: &str) -> String {
    text.replacen(word, &painted(HEADING, word), 1)
}

/// A line behind an empty one: a heading, unless it is indented.
fn first(line: &str) -> String {
    match line.starts_with([' ', '-', '{']) {
        true => labelled(line),
        false => painted(HEADING, line),
    }
}

/// A paragraph's line with its label in bold and what is wrong in red.
fn labelled(line: &str) -> String {
    if let Some(wrong) = WRONG.iter().find(|wrong| line.contains(**wrong)) {
        return line.replacen(wrong, &painted(BAD, wrong), 1);
    }
    if line.starts_with("  alpha* = ") {
        return painted(HEADING, line);
    }
    let label = (line.strip_prefix("  ")).and_then(|rest| rest.split_once(": "));
    match label {
        Some((label, rest)) if is_label(label) => {
            format!("  {}: {rest}", painted(HEADING, label))
        }
        _ => line.to_owned(),
    }
}

/// One word or a few that begin with a capital, such as `How sure`.
fn is_label(text: &str) -> bool {
    text.starts_with(char::is_uppercase)
        && text.chars().count() <= 24
        && text
            .chars()
            .all(|c| c.is_alphabetic() || " *()-".contains(c))
}

/// A line of a table with some cells in bold; cells stand two blanks or more apart.
fn cells(line: &str, strong: impl Fn(&str) -> bool) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(start) = rest.find(|c: char| c != ' ' && c != '│') {
        let (before, from) = rest.split_at(start);
        let end = from.find("  ").or_else(|| from.find(" │"));
        let (cell, after) = from.split_at(end.unwrap_or(from.len()));
        out.push_str(before);
        out.push_str(&match strong(cell) {
            true => painted(HEADING, cell),
            false => cell.to_owned(),
        });
        rest = after;
    }
    out.push_str(rest);
    out
}

fn painted(style: Style, text: &str) -> String {
    let [on, off] = ends(style);
    format!("{on}{text}{off}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "A report\n  Worth: much: a lot.\n  ! careful, this goes\n    on here\n  plain \
        text\n\nRates\n┌──────┐\n│ rule   accepts │\n╞══════╡\n│ rrs    *56.0 ± 4.6 │\n│ x       1 │\n\
        └──────┘\n  DISAGREES: a and b\n";

    #[test]
    fn styles_change_no_letter() {
        let painted = styled(TEXT);
        assert_eq!(anstream::adapter::strip_str(&painted).to_string(), TEXT);
    }

    #[test]
    fn headings_labels_warnings_and_best_rows_are_told_apart() {
        let painted = styled(TEXT);
        let [bold, off] = ends(HEADING);
        for strong in "A report|Worth|Rates|rule|accepts|*56.0 ± 4.6".split('|') {
            assert!(
                painted.contains(&format!("{bold}{strong}{off}")),
                "{strong}: {painted:?}"
            );
        }
        let [yellow, off] = ends(WARNING);
        for line in ["  ! careful, this goes", "    on here"] {
            assert!(painted.contains(&format!("{yellow}{line}{off}")), "{line}");
        }
        let [red, off] = ends(BAD);
        assert!(painted.contains(&format!("{red}DISAGREES{off}: a and b")));
        // Nothing else is.
        for plain in ["  plain text\n", "│ x       1 │", ": much: a lot.\n"] {
            assert!(painted.contains(plain), "{plain}");
        }
    }
}
