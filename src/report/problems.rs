//! Several problems in short, one a line, of `specgap solve`, `verify` and `block`.

use crate::known::Known;
use crate::page::table::{Column, Row, Table};
use crate::page::terminal::{self, Text};
use crate::page::visible;

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

/// The column of the verifier that accepts most.
pub(super) const BEST: &str = "best here";

/// A number with six decimals.
pub(super) fn decimal(number: &Known) -> String {
    format!("{:.6}", number.value())
}

/// Problems in short, one a line.
pub fn table(lines: Vec<Vec<(Column, String)>>, width: u16) -> Text {
    let mut columns = Vec::new();
    let rows = lines.into_iter().map(|line| {
        let (names, cells): (_, Vec<String>) = line.into_iter().unzip();
        columns = names;
        Row::texts(cells)
    });
    let rows: Vec<Row> = rows.collect();
    let mut out = Text::default();
    let table = Table::new("problems", "", columns).rows(rows);
    terminal::table(&mut out, &table, width, "");
    out.wrap("-v says all of each problem, and why.", width);
    out
}
