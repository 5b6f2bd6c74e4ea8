//! Where in the text the gap lies.

use super::select::{cell, place, verifier};
use crate::columns::{head, row};
use crate::sections::section as section_of;
use specgap_measure::{GapReport, Strip, StripText, StripToken};
use specgap_page::table::{Column, Entry, Row, Table};
use specgap_page::words::{counted, percent};
use specgap_page::{Block, MarkedText, MarkedToken, Section};

/// How many of all tokens stand in the table of the largest gaps.
const LARGEST: usize = 12;

/// Least gaps of the classes that tokens are coloured by; below the first there
/// is no colour.
const CLASSES: [f64; 5] = [0.01, 0.05, 0.1, 0.2, 0.3];

/// The tokens with the largest gaps, and every text with its tokens marked.
pub(super) fn section(report: &GapReport) -> Option<Section> {
    let strip = report.strip.as_ref()?;
    let total: usize = strip.texts.iter().map(|text| text.tokens.len()).sum();
    if total == 0 {
        return None;
    }
    let open = open(report, strip);
    let doubt = open.map_or_else(String::new, |[low, high]| {
        format!(
            " Rows list some tokens only, so that these are middles of bounds and no measurements: \
             the mean gap may be {} to {}.",
            percent(low),
            percent(high)
        )
    });
    let how = Block::Paragraph(format!(
        "The gap of {} with {} drafts at {}, at each token of the first texts. Sampled tokens; \
         ␣, ⏎ and ⇥ are blanks, line ends and tabs.{doubt}",
        strip.verifier,
        strip.scheme,
        place(strip.temperature, strip.drafts)
    ));
    let legend = Block::Tokens(MarkedText {
        legend: (0..=CLASSES.len()).map(class_name).collect(),
        tokens: Vec::new(),
    });
    let texts = strip.texts.iter().enumerate();
    let texts = texts.flat_map(|(index, text)| marked(strip, text, index, open.is_some()));
    let first = section_of(
        "where | Where the gap lies | What one verifier misses, token by token.",
        [how, largest(strip, total).into(), legend],
    );
    Some(first.with(texts))
}

/// The bounds of the mean gap, where nothing more is known of it.
fn open(report: &GapReport, strip: &Strip) -> Option<[f64; 2]> {
    let cell = cell(report, strip.temperature, strip.drafts, &strip.scheme)?;
    verifier(cell, &strip.verifier)?.gap.estimate.open()
}

fn class_name(class: usize) -> String {
    let low = class.checked_sub(1).and_then(|below| CLASSES.get(below));
    match (low, CLASSES.get(class)) {
        (None, Some(high)) => format!("gap below {high}"),
        (Some(low), Some(high)) => format!("{low} to {high}"),
        (low, None) => format!("{} and more", low.copied().unwrap_or(0.0)),
    }
}

/// One text: its tokens marked, and folded under it a table of them.
fn marked(strip: &Strip, text: &StripText, index: usize, is_open: bool) -> [Block; 3] {
    let tokens = text.tokens.iter().map(|token| {
        let gap = gap(token);
        MarkedToken {
            text: visible(&token.text),
            class: class(gap),
            title: format!(
                "α* {}, {} {}, gap {}",
                percent(token.optimum),
                strip.verifier,
                percent(token.acceptance),
                percent(gap)
            ),
            ends_line: token.text.ends_with('\n'),
        }
    });
    let mean = text.tokens.iter().map(gap).sum::<f64>() / text.tokens.len().max(1) as f64;
    let caption = format!("Tokens of {}", text.prompt);
    let rows = text.tokens.iter().map(|token| row(&text.prompt, token));
    let count = counted(text.tokens.len(), "token");
    [
        Block::Heading(text.prompt.clone()),
        Block::Tokens(MarkedText {
            legend: Vec::new(),
            tokens: tokens.collect(),
        }),
        Block::Details {
            summary: match is_open {
                true => count,
                false => format!("{count}, mean gap {}", percent(mean)),
            },
            blocks: vec![
                table(format!("tokens-{index}"), caption, strip)
                    .rows(rows)
                    .into(),
            ],
        },
    ]
}

fn largest(strip: &Strip, total: usize) -> Table {
    let tokens = strip.texts.iter().flat_map(|text| {
        let tokens = text.tokens.iter();
        tokens.map(|token| (text.prompt.as_str(), token))
    });
    let mut tokens: Vec<(&str, &StripToken)> = tokens.collect();
    tokens.sort_by(|(_, a), (_, b)| gap(b).total_cmp(&gap(a)));
    let caption = format!("The largest gaps among {}", counted(total, "token"));
    let rows = tokens.into_iter().take(LARGEST);
    table("tokens".to_owned(), caption, strip)
        .rows(rows.map(|(prompt, token)| row(prompt, token)))
        .note("Computed as the table of gaps says.")
}

fn table(id: String, caption: String, strip: &Strip) -> Table {
    let own = vec![Column::number(&strip.verifier)];
    let columns = [head("token | #α*"), own, head("#gap | text")].concat();
    Table::new(id, caption, columns)
}

fn row(prompt: &str, token: &StripToken) -> Row {
    let number = |value: f64| Entry::titled(percent(value), value.to_string());
    row![
        visible(&token.text),
        number(token.optimum),
        number(token.acceptance),
        number(gap(token)),
        prompt,
    ]
}

/// alpha* minus acceptance.
fn gap(token: &StripToken) -> f64 {
    token.optimum - token.acceptance
}

/// The class of a gap: 0 for none.
fn class(gap: f64) -> usize {
    CLASSES.iter().filter(|&&least| gap >= least).count()
}

/// A token's text with symbols for what cannot be seen or would change the text
/// around it.
fn visible(text: &str) -> String {
    if text.is_empty() {
        return "∅".to_owned();
    }
    let blank = text.chars().all(|c| c == ' ');
    let mut out = String::new();
    for c in text.chars() {
        match c {
            ' ' if blank => out.push('␣'),
            '\n' => out.push('⏎'),
            '\t' => out.push('⇥'),
            '\r' => out.push('␍'),
            c if is_hidden(c) => out.push_str(&format!("⟨U+{:04X}⟩", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

/// Controls, marks of direction, and characters without a width.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{ad}' | '\u{61c}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unseen_characters_become_symbols() {
        assert_eq!(visible(" the"), " the");
        assert_eq!(visible("  "), "␣␣");
        assert_eq!(visible("\n\n"), "⏎⏎");
        assert_eq!(visible("a\u{202e}b"), "a⟨U+202E⟩b");
        assert_eq!(visible(""), "∅");
    }

    #[test]
    fn classes_begin_at_their_least_gap() {
        assert_eq!(class(0.0), 0);
        assert_eq!(class(-0.1), 0);
        assert_eq!(class(0.01), 1);
        assert_eq!(class(1.0), CLASSES.len());
    }
}
