//! Pictures and tables of a page for a paper.
//!
//! Pictures have no title, as a paper has captions, and the numbers that are drawn stand in a
//! file beside each. Tables are LaTeX for booktabs, each as narrow as a page, or comma-separated values.

use super::canvas::DrawError;
use super::table::{Entry, Table};
use super::{Block, Page, csv, latex};

/// Named files.
pub type Files = Vec<(String, Vec<u8>)>;

/// Formats of pictures for papers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureFormat {
    /// Lines and letters, to be edited or turned into other formats.
    Svg,
    /// A page with its font inside, as LaTeX takes it.
    Pdf,
    /// An axis of pgfplots.
    Tex,
}

/// Which tables a paper has, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PaperTables {
    /// By their id; all if none is named.
    pub tables: Vec<String>,
    /// Columns behind the first, by the names of [`Table::choose`]. Tables without such a column have
    /// all of theirs.
    pub columns: Vec<String>,
    /// Digits behind the point, of LaTeX alone; those of the page if not given.
    pub digits: Option<usize>,
}

impl Page {
    /// Its pictures without titles in these formats, each with the numbers that it draws:
    /// `figure-NAME.svg`, `.pdf`, `.tex` and `.csv`.
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
            if formats.contains(&FigureFormat::Tex) && !canvas.tex().is_empty() {
                files.push((format!("{name}.tex"), canvas.tex().as_bytes().to_vec()));
            }
            if !canvas.data().is_empty() {
                files.push((format!("{name}.csv"), canvas.data().as_bytes().to_vec()));
            }
        }
        Ok(files)
    }

    /// Its tables as LaTeX, each as narrow as a page: `table-ID.tex`, and where it had to be cut,
    /// `table-ID-2.tex` and so on.
    pub fn paper_latex(&self, asked: &PaperTables) -> Files {
        let mut files = Vec::new();
        for table in self.asked(asked) {
            for (part, text) in (1..).zip(latex::latex(&table, asked.digits)) {
                let part = match part == 1 {
                    true => String::new(),
                    false => format!("-{part}"),
                };
                files.push((format!("table-{}{part}.tex", table.id), text.into_bytes()));
            }
        }
        files
    }

    /// Its tables as comma-separated values, with all digits: `table-ID.csv`. A number with an
    /// interval of 95% has columns `NAME`, `NAME/low` and `NAME/high`, and one with bounds of what
    /// it would be of full rows `NAME/lower` and `NAME/upper`.
    pub fn paper_csv(&self, asked: &PaperTables) -> Files {
        (self.asked(asked).iter())
            .map(|table| (format!("table-{}.csv", table.id), table.csv().into_bytes()))
            .collect()
    }

    /// The tables that are asked for, with the columns that are asked for where they have some.
    fn asked(&self, asked: &PaperTables) -> Vec<Table> {
        (self.tables().into_iter())
            .filter(|table| asked.tables.is_empty() || asked.tables.contains(&table.id))
            .map(|table| {
                table
                    .choose(&asked.columns)
                    .unwrap_or_else(|| table.clone())
            })
            .collect()
    }

    /// Every table, in order, and then those of papers alone.
    pub fn tables(&self) -> Vec<&Table> {
        fn table(block: &Block) -> Option<&Table> {
            match block {
                Block::Table(table) => Some(table),
                _ => None,
            }
        }
        let tables = self.blocks().into_iter().filter_map(table);
        tables.chain(&self.papers).collect()
    }
}

impl Table {
    /// Returns it as LaTeX, in parts that each fit a page; `digits` are those behind the point.
    pub fn latex(&self, digits: Option<usize>) -> Vec<String> {
        latex::latex(self, digits)
    }

    /// Returns it as comma-separated values with all digits; [`Page::paper_csv`] has the columns.
    pub fn csv(&self) -> String {
        let fields: Vec<Fields> = (0..self.columns.len()).map(|at| self.fields(at)).collect();
        let mut names = vec!["group".to_owned()];
        for (name, fields) in self.flat_names().into_iter().zip(&fields) {
            names.extend(fields.names(&name));
        }
        let mut out = joined(&names);
        for group in &self.groups {
            for row in &group.rows {
                let mut cells = vec![group.title.clone().unwrap_or_default()];
                for (at, fields) in fields.iter().enumerate() {
                    cells.extend(fields.cells(row.entries.get(at)));
                }
                out.push_str(&joined(&cells));
            }
        }
        out
    }

    fn fields(&self, at: usize) -> Fields {
        let rows = self.groups.iter().flat_map(|group| &group.rows);
        let numbers = rows.filter_map(|row| row.entries.get(at)?.number);
        numbers.fold(Fields::default(), |fields, number| Fields {
            interval: fields.interval || number.interval.is_some(),
            bounds: fields.bounds || number.bounds.is_some(),
            percent: fields.percent || number.percent,
        })
    }
}

/// What the numbers of a column have.
#[derive(Default)]
struct Fields {
    interval: bool,
    bounds: bool,
    percent: bool,
}

impl Fields {
    fn names(&self, name: &str) -> Vec<String> {
        // All digits are those of a share.
        let name = match self.percent {
            true => name.trim_end_matches('%').trim_end(),
            false => name,
        };
        let further = [
            (self.interval, ["low", "high"]),
            (self.bounds, ["lower", "upper"]),
        ];
        let further = further.into_iter().filter(|(there, _)| *there);
        std::iter::once(name.to_owned())
            .chain(further.flat_map(|(_, ends)| ends.map(|end| format!("{name}/{end}"))))
            .collect()
    }

    fn cells(&self, entry: Option<&Entry>) -> Vec<String> {
        let number = entry.and_then(|entry| entry.number);
        let first = match (entry, number) {
            (None, _) => String::new(),
            (Some(_), Some(number)) => number.value.map_or_else(String::new, |x| x.to_string()),
            // All digits, where they stand behind the text; a dash is no number.
            (Some(entry), None) => {
                let title = entry.title.as_ref();
                let digits = title.filter(|title| title.parse::<f64>().is_ok());
                match digits {
                    Some(digits) => digits.clone(),
                    None if entry.is_none() => String::new(),
                    None => entry.text.clone(),
                }
            }
        };
        let mut cells = vec![first];
        let further = [
            (self.interval, number.and_then(|number| number.interval)),
            (self.bounds, number.and_then(|number| number.bounds)),
        ];
        for (_, ends) in further.into_iter().filter(|(there, _)| *there) {
            let text = |at: usize| ends.map_or_else(String::new, |ends| ends[at].to_string());
            cells.extend([0, 1].map(text));
        }
        cells
    }
}

fn joined(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| csv(cell)).collect();
    cells.join(",") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Column, Number, Row};

    fn rates() -> Table {
        let columns = vec![Column::words("rule"), Column::number("accepts %")];
        let mut table = Table::new("rates", "Rates", columns);
        let rows = vec![
            Row::new([Entry::plain("α*"), Entry::titled("56.0 ± 4.6", "0.5599")]),
            Row::new([Entry::plain("a, b & c").bold(true)]),
        ];
        table.group("with_replacement", rows, false);
        table
    }

    #[test]
    fn latex_has_as_many_cells_as_columns_and_nothing_that_it_would_read() {
        let text = rates().latex(None).concat();
        assert!(text.contains("rule & accepts \\% \\\\"), "{text}");
        assert!(text.contains("\\textit{with\\_replacement}"), "{text}");
        let alpha = "$\\alpha^*$ & 56.0 {\\scriptsize$\\pm$\\,4.6} \\\\";
        assert!(text.contains(alpha), "{text}");
        assert!(text.contains("\\textbf{a, b \\& c} &  \\\\"), "{text}");
    }

    #[test]
    fn no_name_ends_a_comment_or_a_paragraph_or_is_a_formula() {
        let name = "p\r\\immediate\\write18{id}%\n\n\u{2028}x";
        let columns = vec![Column::words(name)];
        let mut table = Table::new("tokens", format!("Tokens of {name}"), columns);
        let texts = ["[1]", "* =1", "=cmd|'/C calc'!A0", "-0.5"];
        table.group(name, texts.map(|text| Row::texts([text])).to_vec(), false);
        let tex = table.latex(None).concat();
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
        let csv = table.csv();
        assert!(
            csv.contains(",'=cmd|'/C calc'!A0\n") && csv.contains(",-0.5\n"),
            "{csv}"
        );
    }

    #[test]
    fn values_have_all_digits_and_the_group_of_each_row() {
        assert_eq!(
            rates().csv(),
            "group,rule,accepts %\nwith_replacement,α*,0.5599\nwith_replacement,\"a, b & c\",\n"
        );
    }

    fn estimates() -> Table {
        let columns = vec![
            Column::words("rule"),
            Column::number("n = 2").over("T = 1.0"),
            Column::number("n = 3").over("T = 1.0"),
            Column::number("loses %"),
        ];
        let number = |value: f64| Number {
            value: Some(value),
            interval: Some([value - 0.00125, value + 0.00125]),
            ..Number::default()
        };
        let open = Number {
            bounds: Some([-0.5, 0.25]),
            signed: true,
            ..Number::default()
        };
        let percent = Number {
            percent: true,
            ..number(0.0625)
        };
        Table::new("t", "Rates", columns).rows([Row::new([
            Entry::plain("rrs"),
            Entry::plain("0.7157 ± 0.0013 est.").of(number(0.71565)),
            Entry::plain("−0.5000 to +0.2500").of(open),
            Entry::plain("6.3 ± 0.1").of(percent),
        ])])
    }

    #[test]
    fn numbers_stand_apart_with_all_digits() {
        assert_eq!(
            estimates().csv(),
            "group,rule,\"T = 1.0, n = 2\",\"T = 1.0, n = 2/low\",\"T = 1.0, n = 2/high\",\
             \"T = 1.0, n = 3\",\"T = 1.0, n = 3/lower\",\"T = 1.0, n = 3/upper\",\
             loses,loses/low,loses/high\n\
             ,rrs,0.71565,0.7144,0.7169,,-0.5,0.25,0.0625,0.06125,0.06375\n"
        );
    }

    #[test]
    fn digits_and_columns_are_chosen() {
        let text = estimates().latex(Some(2)).concat();
        for cell in [
            "& 0.72 {\\scriptsize$\\pm$\\,0.00 est.} &",
            "& $-$0.50 to +0.25 &",
            "& 6 {\\scriptsize$\\pm$\\,0} \\\\",
            " & \\multicolumn{2}{c}{T = 1.0} &  \\\\\n\\cmidrule(lr){2-3}\n",
        ] {
            assert!(text.contains(cell), "{cell}: {text}");
        }
        let names = |wanted: &str| {
            let chosen = estimates().choose(&[wanted.to_owned()])?;
            Some(chosen.flat_names().join("; "))
        };
        assert_eq!(
            names("T = 1.0").unwrap(),
            "rule; T = 1.0, n = 2; T = 1.0, n = 3"
        );
        assert_eq!(names("N = 3").unwrap(), "rule; T = 1.0, n = 3");
        assert_eq!(names("T = 1.0, n = 2").unwrap(), "rule; T = 1.0, n = 2");
        assert_eq!(names("T = 2.0"), None);
    }

    #[test]
    fn a_wide_table_is_cut_and_a_long_one_goes_on() {
        let over = |at: usize| format!("T = 0.{}", at / 4);
        let columns = (0..24).map(|at| Column::number(format!("n = {at}")).over(over(at)));
        let columns = std::iter::once(Column::words("rule")).chain(columns);
        let entry = Entry::plain("0.7157 ± 0.0013");
        let row = || Row::new(std::iter::once(Entry::plain("rrs")).chain(vec![entry.clone(); 24]));
        let wide = Table::new("t", "Rates", columns.collect());
        let parts = wide.clone().rows([row()]).latex(None);
        assert!(parts.len() > 2, "{}", parts.len());
        for part in &parts {
            assert!(
                part.contains("\nrule & n = ") && part.contains("\nrrs & 0.7157"),
                "{part}"
            );
            // No span is cut where it fits.
            assert!(part.contains("\\multicolumn{4}{c}{T = 0."), "{part}");
        }
        let all: usize = (parts.iter())
            .map(|part| part.matches("0.7157").count())
            .sum();
        assert_eq!(all, 24);
        let long = wide.rows((0..60).map(|_| row())).latex(None);
        assert!(long[0].contains("\\begin{longtable}") && long[0].contains("\\endhead"));
    }

    #[test]
    fn powers_of_ten_are_products_and_names_are_not() {
        let set = |text: &str| super::super::latex::escaped(text);
        assert_eq!(set("1.5e-7"), "$1.5\\cdot10^{-7}$");
        assert_eq!(set("at most −2e3, 1e"), "at most $-2\\cdot10^{3}$, 1e");
        assert_eq!(set("level-4"), "level-4");
    }
}
