//! Pictures and tables of a page for a paper.
//!
//! Pictures have no title, as a paper has captions, and the numbers that are drawn stand in a
//! file beside each. Tables are LaTeX for the package booktabs, or comma-separated values.

use super::canvas::DrawError;
use super::table::{Row, Table};
use super::{Block, Page, csv, visible};

/// Named files.
pub type Files = Vec<(String, Vec<u8>)>;

/// Formats of pictures for papers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureFormat {
    /// Lines and letters, to be edited or turned into other formats.
    Svg,
    /// A page with its font inside, as LaTeX takes it.
    Pdf,
}

impl Page {
    /// Its pictures without titles in these formats, each with the numbers that it draws:
    /// `figure-NAME.svg`, `figure-NAME.pdf` and `figure-NAME.csv`.
    ///
    /// # Errors
    /// A drawing back end that fails.
    pub fn paper_figures(&self, formats: &[FigureFormat]) -> Result<Files, DrawError> {
        let mut files = Vec::new();
        for figure in self.figures() {
            let canvas = figure.canvas.untitled();
            let name = format!("figure-{}", figure.name);
            let (title, alt) = (&figure.title, &figure.alt);
            // In the order of the type, each once, however they were asked for.
            if formats.contains(&FigureFormat::Svg) {
                let svg = canvas.svg(title, alt)?;
                files.push((format!("{name}.svg"), svg.into_bytes()));
            }
            if formats.contains(&FigureFormat::Pdf) {
                files.push((format!("{name}.pdf"), canvas.pdf(title, alt)?));
            }
            if !canvas.data().is_empty() {
                files.push((format!("{name}.csv"), canvas.data().as_bytes().to_vec()));
            }
        }
        Ok(files)
    }

    /// Its tables as LaTeX: `table-ID.tex`.
    pub fn paper_latex(&self) -> Files {
        let tables = self.tables().into_iter();
        tables
            .map(|table| (format!("table-{}.tex", table.id), latex(table).into_bytes()))
            .collect()
    }

    /// Its tables as comma-separated values: `table-ID.csv`.
    pub fn paper_csv(&self) -> Files {
        let tables = self.tables().into_iter();
        tables
            .map(|table| {
                (
                    format!("table-{}.csv", table.id),
                    values(table).into_bytes(),
                )
            })
            .collect()
    }

    /// Every table, in order.
    pub fn tables(&self) -> Vec<&Table> {
        fn collect<'a>(blocks: &'a [Block], into: &mut Vec<&'a Table>) {
            for block in blocks {
                match block {
                    Block::Table(table) => into.push(table),
                    Block::Details { blocks, .. } => collect(blocks, into),
                    _ => {}
                }
            }
        }
        let mut tables = Vec::new();
        collect(&self.lead, &mut tables);
        for section in &self.sections {
            collect(&section.blocks, &mut tables);
        }
        tables
    }
}

/// Text on one line, whatever ends a line: no paragraph ends with it, and no comment.
fn one_line(text: &str) -> String {
    visible(text.to_owned()).replace(['\n', '\t'], " ")
}

/// Text that LaTeX shows as it is.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, c) in one_line(text).chars().enumerate() {
        match c {
            // Behind the end of a row, the beginning of an argument and a star.
            '[' | '*' if at == 0 => {
                out.push_str("{}");
                out.push(c);
            }
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => {
                out.push('\\');
                out.push(c);
            }
            '\\' => out.push_str("\\textbackslash{}"),
            '~' => out.push_str("\\textasciitilde{}"),
            '^' => out.push_str("\\textasciicircum{}"),
            '<' => out.push_str("\\textless{}"),
            '>' => out.push_str("\\textgreater{}"),
            '±' => out.push_str("$\\pm$"),
            '−' => out.push_str("$-$"),
            'α' => out.push_str("$\\alpha$"),
            'τ' => out.push_str("$\\tau$"),
            '≤' => out.push_str("$\\le$"),
            '≥' => out.push_str("$\\ge$"),
            '→' => out.push_str("$\\to$"),
            '–' => out.push_str("--"),
            '\u{a0}' => out.push('~'),
            c => out.push(c),
        }
    }
    out
}

fn latex(table: &Table) -> String {
    let columns: String = (table.columns.iter())
        .map(|column| if column.numeric { 'r' } else { 'l' })
        .collect();
    let line = |cells: Vec<String>| format!("{} \\\\\n", cells.join(" & "));
    let names = table.flat_names();
    let mut out = format!(
        "% {}\n\\begin{{tabular}}{{{columns}}}\n\\toprule\n{}\\midrule\n",
        one_line(&table.caption),
        line(names.iter().map(|name| escaped(name)).collect())
    );
    for (index, group) in table.groups.iter().enumerate() {
        if let Some(title) = &group.title {
            if index > 0 {
                out.push_str("\\addlinespace\n");
            }
            out.push_str(&format!(
                "\\multicolumn{{{}}}{{l}}{{\\textit{{{}}}}} \\\\\n",
                table.columns.len().max(1),
                escaped(title)
            ));
        }
        for row in &group.rows {
            out.push_str(&line(filled(table, row, |entry| {
                let text = escaped(&entry.text);
                match entry.strong {
                    true => format!("\\textbf{{{text}}}"),
                    false => text,
                }
            })));
        }
    }
    out.push_str("\\bottomrule\n\\end{tabular}\n");
    out
}

/// A row with an entry in every column.
fn filled(table: &Table, row: &Row, text: impl Fn(&super::table::Entry) -> String) -> Vec<String> {
    let mut cells: Vec<String> = row.entries.iter().map(text).collect();
    cells.resize(table.columns.len(), String::new());
    cells
}

fn values(table: &Table) -> String {
    let mut names = vec!["group".to_owned()];
    names.extend(table.flat_names());
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| csv(cell)).collect();
        cells.join(",") + "\n"
    };
    let mut out = line(&names);
    for group in &table.groups {
        for row in &group.rows {
            let mut cells = vec![group.title.clone().unwrap_or_default()];
            // All digits, where they stand behind the text.
            cells.extend(filled(table, row, |entry| {
                let number = entry
                    .title
                    .as_ref()
                    .filter(|title| title.parse::<f64>().is_ok());
                number.unwrap_or(&entry.text).clone()
            }));
            out.push_str(&line(&cells));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Section;
    use crate::page::table::{Column, Entry, Group};

    fn page() -> Page {
        let columns = vec![Column::words("rule"), Column::number("accepts %")];
        let mut table = Table::new("rates", "Rates", columns);
        table.groups.push(Group {
            title: Some("with_replacement".to_owned()),
            rows: vec![
                Row::new([Entry::plain("α*"), Entry::titled("56.0 ± 4.6", "0.5599")]),
                Row::new([Entry {
                    strong: true,
                    ..Entry::plain("a, b & c")
                }]),
            ],
            main: false,
        });
        Page {
            sections: vec![Section::new("s", "S", "", [Block::Table(table)])],
            ..Page::default()
        }
    }

    #[test]
    fn latex_has_as_many_cells_as_columns_and_nothing_that_it_would_read() {
        let files = page().paper_latex();
        let (name, text) = &files[0];
        let text = std::str::from_utf8(text).unwrap();
        assert_eq!(name, "table-rates.tex");
        assert!(text.contains("rule & accepts \\% \\\\"), "{text}");
        assert!(text.contains("\\textit{with\\_replacement}"), "{text}");
        assert!(text.contains("$\\alpha$* & 56.0 $\\pm$ 4.6 \\\\"), "{text}");
        assert!(text.contains("\\textbf{a, b \\& c} &  \\\\"), "{text}");
    }

    #[test]
    fn no_name_ends_a_comment_or_a_paragraph_or_is_a_formula() {
        let name = "p\r\\immediate\\write18{id}%\n\n\u{2028}x";
        let columns = vec![Column::words(name)];
        let mut table = Table::new("tokens", format!("Tokens of {name}"), columns);
        table.groups.push(Group {
            title: Some(name.to_owned()),
            rows: vec![
                Row::texts(["[1]"]),
                Row::texts(["* =1"]),
                Row::texts(["=cmd|'/C calc'!A0"]),
                Row::texts(["-0.5"]),
            ],
            main: false,
        });
        let page = Page {
            sections: vec![Section::new("s", "S", "", [Block::Table(table)])],
            ..Page::default()
        };
        let tex = String::from_utf8(page.paper_latex().remove(0).1).unwrap();
        let comment = tex.lines().next().unwrap();
        assert!(
            comment.starts_with("% Tokens of p\\u{d}\\immediate"),
            "{tex}"
        );
        assert!(comment.ends_with("%  \\u{2028}x"), "{tex}");
        // Blank lines end paragraphs; commands are none.
        assert!(
            !tex.contains("\n\n") && !tex.contains(['\r', '\u{2028}']),
            "{tex}"
        );
        assert_eq!(tex.matches("\\immediate").count(), 1, "{tex}");
        assert!(tex.contains("\n{}[1] \\\\\n{}* =1 \\\\\n"), "{tex}");
        let csv = String::from_utf8(page.paper_csv().remove(0).1).unwrap();
        assert!(
            csv.contains(",'=cmd|'/C calc'!A0\n") && csv.contains(",-0.5\n"),
            "{csv}"
        );
    }

    #[test]
    fn values_have_all_digits_and_the_group_of_each_row() {
        let files = page().paper_csv();
        let text = std::str::from_utf8(&files[0].1).unwrap();
        assert_eq!(
            text,
            "group,rule,accepts %\nwith_replacement,α*,0.5599\nwith_replacement,\"a, b & c\",\n"
        );
    }
}
