//! Pages of problems, of `specgap solve`, `verify` and `block`: one alone, or several, each in a line
//! of a table and in full below.

use super::columns::head;
use super::sections::{definitions, section};
use specgap_base::glossary;
use specgap_number::known::Known;
use specgap_page::table::{Column, Entry, Number, Row, Table};
use specgap_page::terminal::{self, Text};
use specgap_page::{Block, Page, Section, made_by, visible};

/// A line: a problem, numbers by their columns, and how many checks agree.
pub(super) fn line(
    problem: &str,
    columns: impl IntoIterator<Item = (&'static str, String)>,
    (checks, is_ok): (usize, bool),
) -> Vec<(Column, String)> {
    let checks = match is_ok {
        true => format!("{checks} ok"),
        false => "FAIL".to_owned(),
    };
    let columns = columns.into_iter().map(|(name, cell)| match name {
        BEST => (Column::words(name), cell),
        _ => (Column::number(name), cell),
    });
    let first = (Column::words("problem"), visible(problem.to_owned()));
    let mut line: Vec<_> = std::iter::once(first).chain(columns).collect();
    line.push((Column::words("checks"), checks));
    line
}

/// The one of the largest value; of equals the first.
pub(super) fn best<T>(all: impl Iterator<Item = T>, value: impl Fn(&T) -> f64) -> Option<T> {
    all.reduce(|best, one| match value(&one) > value(&best) {
        true => one,
        false => best,
    })
}

/// The column of the verifier that accepts most.
pub(super) const BEST: &str = "best here";

/// A number with six decimals.
pub(super) fn decimal(number: &Known) -> String {
    format!("{:.6}", number.value())
}

/// A number with so many decimals, and with all of them behind it.
pub(super) fn digits(number: &Known, decimals: usize) -> Entry {
    entry(format!("{:.decimals$}", number.value()), number.value())
}

/// A text of a number that is rounded there.
pub(super) fn entry(text: String, value: f64) -> Entry {
    let value = Some(value);
    let number = Number {
        value,
        ..Number::default()
    };
    Entry {
        title: value.map(|value| value.to_string()),
        number: Some(number),
        ..Entry::plain(text)
    }
}

/// Columns by their names, and rows that end where the rest is empty.
pub(super) fn rows(id: &str, names: &str, rows: impl IntoIterator<Item = Row>) -> Block {
    Block::Table(Table::new(id, "", head(names)).rows(rows))
}

/// A problem with its answer, what is wrong, what else a first screen says, and the rest.
pub(super) fn page<const N: usize>(
    problem: &str,
    answer: String,
    wrong: Vec<String>,
    lines: Vec<String>,
    sections: [Section; N],
) -> Page {
    let answer = std::iter::once(Block::Paragraph(answer));
    let wrong = wrong.into_iter().map(Block::Wrong);
    Page {
        title: problem.to_owned(),
        lead: (answer.chain(wrong))
            .chain(lines.into_iter().map(Block::Paragraph))
            .collect(),
        sections: sections.into_iter().map(Section::main).collect(),
        ..Page::default()
    }
}

/// A table of problems in short, one a line.
fn short(lines: Vec<Vec<(Column, String)>>) -> Table {
    let mut columns = Vec::new();
    let rows = lines.into_iter().map(|line| {
        let (names, cells): (_, Vec<String>) = line.into_iter().unzip();
        columns = names;
        Row::texts(cells)
    });
    let rows: Vec<Row> = rows.collect();
    Table::new("problems", "", columns).rows(rows)
}

/// Problems in short, one a line.
pub fn table(lines: Vec<Vec<(Column, String)>>, width: u16) -> Text {
    let mut out = Text::default();
    terminal::table(&mut out, &short(lines), width);
    out.wrap("-v says all of each problem, and why.", width);
    out
}

/// The page of a command's results: that of the one problem, or all in short with each folded below;
/// `summary` says how they came out.
pub fn whole(
    report: &str,
    command: &str,
    summary: String,
    lines: Vec<Vec<(Column, String)>>,
    mut pages: Vec<Page>,
) -> Page {
    let mut page = match pages.len() {
        1 => pages.remove(0),
        _ => several(report, summary, short(lines), pages),
    };
    page.sections
        .push(definitions("What every word is.", glossary::of(report)));
    let words = format!(
        "specgap {}, report schema {}.",
        specgap_log::log::version(),
        super::JSON_SCHEMA
    );
    page.sections.push(made_by(command, words));
    page
}

fn several(report: &str, summary: String, short: Table, pages: Vec<Page>) -> Page {
    let mut lead = vec![Block::Paragraph(summary)];
    let mut each = Vec::new();
    for (number, page) in (1..).zip(pages) {
        for block in &page.lead {
            if let Block::Wrong(text) = block {
                lead.push(Block::Wrong(format!("{}: {text}", page.title)));
            }
        }
        let inside = page.sections.into_iter().flat_map(|section| section.blocks);
        let mut blocks: Vec<Block> = page.lead.into_iter().chain(inside).collect();
        for block in &mut blocks {
            if let Block::Table(table) = block {
                table.id = format!("{}-{number}", table.id);
            }
        }
        each.push(Block::Details {
            summary: page.title,
            blocks,
        });
    }
    lead.push(Block::Table(short));
    Page {
        title: format!("specgap {report}: {} problems", each.len()),
        lead,
        sections: vec![section("each | Problems | All of each, and why.", each)],
        ..Page::default()
    }
}
