//! Tables as LaTeX for the packages booktabs and longtable, each narrow enough for a page.
//!
//! Widths are those of Computer Modern at 8 points, which is `\footnotesize` in a paper at 10. What
//! is wider than [`WIDEST`] is first set on several lines, words before numbers, and then cut into
//! parts that repeat the columns that name the rows.

use super::table::{Entry, Number, Table};
use super::visible;

/// Width of the text of `article` at 10 points, in TeX's points.
const WIDEST: f64 = 345.0;
/// Between two columns.
const APART: f64 = 8.0;
/// Lines from which on a table may go on on the next page.
const LONGEST: usize = 45;
/// Lines that a heading is set on, where it is wider than what stands under it.
const MOST_HEAD_LINES: f64 = 3.0;
/// Widths that columns of words are set on several lines at, the first that lets all columns fit.
const NARROWER: [f64; 9] = [280.0, 220.0, 180.0, 150.0, 130.0, 110.0, 95.0, 80.0, 65.0];
/// The same where the table has to be cut anyway.
const CUT_TO: f64 = 130.0;

/// Text on one line, whatever ends a line: no paragraph ends with it, and no comment.
pub(super) fn one_line(text: &str) -> String {
    visible(text.to_owned()).replace(['\n', '\t'], " ")
}

/// Text that LaTeX shows as it is, with powers of ten and ± as a paper has them.
pub(super) fn escaped(text: &str) -> String {
    let text = one_line(text);
    if let Some((mean, half)) = text.split_once(" ± ") {
        return format!("{} {{\\scriptsize$\\pm$\\,{}}}", words(mean), words(half));
    }
    words(&text)
}

fn words(text: &str) -> String {
    let word = |(at, word): (usize, &str)| power(word).unwrap_or_else(|| letters(word, at == 0));
    let all: Vec<String> = text.split(' ').enumerate().map(word).collect();
    all.join(" ")
}

/// `1.5e-7` as a product.
fn power(word: &str) -> Option<String> {
    let number = word.trim_end_matches([',', ';']);
    let (mantissa, exponent) = number.split_once('e')?;
    let plain = mantissa.replace('−', "-");
    plain.parse::<f64>().ok()?;
    exponent.parse::<i32>().ok()?;
    let behind = word.get(number.len()..).unwrap_or_default();
    Some(format!("${plain}\\cdot10^{{{exponent}}}${behind}"))
}

fn letters(word: &str, first: bool) -> String {
    let mut out = String::with_capacity(word.len());
    let mut rest = word.chars().peekable();
    let mut begins = first;
    while let Some(c) = rest.next() {
        match c {
            'α' if rest.next_if_eq(&'*').is_some() => out.push_str("$\\alpha^*$"),
            // Behind the end of a row, the beginning of an argument and a star.
            '[' | '*' if begins => {
                out.push_str("{}");
                out.push(c);
            }
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => {
                out.push('\\');
                out.push(c);
            }
            c => match SYMBOLS.iter().find(|(symbol, _)| *symbol == c) {
                Some((_, command)) => out.push_str(command),
                None if c.is_ascii() || is_accented(c) => out.push(c),
                // The fonts of LaTeX lack it, and pdfTeX would stop.
                None => out.push_str(&format!("U+{:04X}", u32::from(c))),
            },
        }
        begins = false;
    }
    out
}

/// Letters that every encoding of LaTeX's fonts has.
fn is_accented(c: char) -> bool {
    ('À'..='ÿ').contains(&c) && !"ÐÞðþ÷×".contains(c)
}

const SYMBOLS: [(char, &str); 29] = [
    ('\\', "\\textbackslash{}"),
    ('~', "\\textasciitilde{}"),
    ('^', "\\textasciicircum{}"),
    ('<', "\\textless{}"),
    ('>', "\\textgreater{}"),
    ('|', "\\textbar{}"),
    ('±', "$\\pm$"),
    ('−', "$-$"),
    ('α', "$\\alpha$"),
    ('β', "$\\beta$"),
    ('γ', "$\\gamma$"),
    ('δ', "$\\delta$"),
    ('ε', "$\\varepsilon$"),
    ('ρ', "$\\rho$"),
    ('τ', "$\\tau$"),
    ('Σ', "$\\Sigma$"),
    ('λ', "$\\lambda$"),
    ('≤', "$\\le$"),
    ('≥', "$\\ge$"),
    ('→', "$\\to$"),
    ('×', "$\\times$"),
    ('·', "$\\cdot$"),
    ('µ', "$\\mu$"),
    ('∞', "$\\infty$"),
    ('…', "\\ldots{}"),
    ('–', "--"),
    ('“', "``"),
    ('”', "''"),
    ('\u{a0}', "~"),
];

/// At least the width of a text in points.
fn width(text: &str) -> f64 {
    let letter = |c: char| {
        let thousandths = match c {
            'i' | 'l' | '.' | ',' | ':' | ';' | '!' | '\'' | '[' | ']' | '|' => 278,
            'r' | 's' | 't' | 'f' | 'j' | 'I' | '-' | '(' | ')' | ' ' | '\u{a0}' => 394,
            'a' | 'c' | 'e' | 'g' | 'o' | 'v' | 'z' | '0'..='9' | '/' | '*' | '–' | '·' => 530,
            'm' | 'M' | 'W' | '%' => 1000,
            'w' | '+' | '−' | '=' | '<' | '>' | '±' | '≤' | '≥' | '&' => 833,
            'b' | 'd' | 'h' | 'k' | 'n' | 'p' | 'q' | 'u' | 'x' | 'y' | '"' | '?' | '$' | '#'
            | '_' => 560,
            'α'..='ω' | 'µ' => 660,
            c if c.is_ascii() || is_accented(c) => 790,
            // Its number.
            _ => 4000,
        };
        f64::from(thousandths) * 8.0 * 1.0625 / 1000.0
    };
    let powers = text.split(' ').filter(|word| power(word).is_some()).count();
    // A dot and a 10 more, and digits that are smaller.
    text.chars().map(letter).sum::<f64>() + 10.0 * powers as f64
}

fn longest_word(text: &str) -> f64 {
    text.split(' ').map(width).fold(0.0, f64::max)
}

/// Returns how many lines a text takes.
fn lines(text: &str, within: f64) -> usize {
    let (mut count, mut line) = (1, 0.0);
    for word in text.split(' ').map(width) {
        if line > 0.0 && line + width(" ") + word > within {
            (count, line) = (count + 1, word);
        } else {
            line += word + if line > 0.0 { width(" ") } else { 0.0 };
        }
    }
    count
}

/// Returns what is seen of an entry; with so many digits behind the point where they are given.
pub(super) fn shown(entry: &Entry, digits: Option<usize>) -> String {
    let Some(digits) = digits else {
        return entry.text.clone();
    };
    let Some(number) = &entry.number else {
        let rounded = entry.title.as_ref().and_then(|title| title.parse().ok());
        let is_plain = |c: char| c.is_ascii_digit() || ".+−-".contains(c);
        return match rounded.filter(|_| entry.text.contains('.')) {
            Some(value) if entry.text.chars().all(is_plain) => {
                rounded_to(value, digits, entry.text.starts_with('+'))
            }
            _ => entry.text.clone(),
        };
    };
    let text = entry.text.as_str();
    let begin = text.find(|c: char| c.is_ascii_digit() || "+−-".contains(c));
    let end = text.rfind(|c: char| c.is_ascii_digit());
    let before = begin.and_then(|begin| text.get(..begin));
    let behind = end.and_then(|end| text.get(end + 1..));
    format!(
        "{}{}{}",
        before.unwrap_or_default(),
        number.written(digits),
        behind.unwrap_or_default()
    )
}

fn rounded_to(value: f64, digits: usize, signed: bool) -> String {
    let text = format!("{value:.digits$}");
    let is_zero = !text.contains(|c: char| ('1'..='9').contains(&c));
    match text.strip_prefix('-') {
        Some(text) if is_zero => text.to_owned(),
        Some(text) => format!("−{text}"),
        None if signed && !is_zero => format!("+{text}"),
        None => text,
    }
}

impl Number {
    /// `0.716 ± 0.006`, or `a to b` where only bounds are known.
    fn written(&self, digits: usize) -> String {
        let (scale, digits) = match self.percent {
            true => (100.0, digits.saturating_sub(2)),
            false => (1.0, digits),
        };
        let one = |value: f64| rounded_to(scale * value, digits, self.signed);
        match (self.value, self.interval, self.bounds) {
            (Some(value), Some([low, high]), _) => {
                let half = rounded_to(scale * (high - low) / 2.0, digits, false);
                format!("{} ± {half}", one(value))
            }
            (Some(value), None, _) => one(value),
            (None, _, Some([low, high])) => format!("{} to {}", one(low), one(high)),
            (None, _, None) => String::new(),
        }
    }
}

/// A table whose texts are known, and what room each column takes.
struct Set<'a> {
    table: &'a Table,
    /// Group, row, column: the text, and whether it is bold.
    texts: Vec<Vec<Vec<(String, bool)>>>,
    widths: Vec<f64>,
}

/// The table in parts that each fit a page's width; a long one goes on on the next page. `digits`
/// are those behind the point of numbers whose digits are all known; percents have two fewer.
pub(super) fn latex(table: &Table, digits: Option<usize>) -> Vec<String> {
    let set = Set::new(table, digits);
    set.parts().iter().map(|part| set.write(part)).collect()
}

impl<'a> Set<'a> {
    fn new(table: &'a Table, digits: Option<usize>) -> Self {
        let text = |entry: &Entry| {
            // That differences are told apart from 0 makes none of them the best.
            let signed = entry.number.is_some_and(|number| number.signed);
            (one_line(&shown(entry, digits)), entry.strong && !signed)
        };
        let row = |row: &super::table::Row| {
            let mut texts: Vec<(String, bool)> = row.entries.iter().map(text).collect();
            texts.resize(table.columns.len(), (String::new(), false));
            texts
        };
        let groups = table.groups.iter();
        let texts = groups
            .map(|group| group.rows.iter().map(row).collect())
            .collect();
        let mut set = Self {
            table,
            texts,
            widths: Vec::new(),
        };
        let of = |measure: fn(&str) -> f64| -> Vec<f64> {
            let columns = 0..table.columns.len();
            columns.map(|column| set.column(column, measure)).collect()
        };
        let (natural, least) = (of(width), of(longest_word));
        let at = |most: f64| -> Vec<f64> {
            let columns = table.columns.iter().zip(natural.iter().zip(&least));
            let room = columns.map(|(column, (&natural, &least))| {
                let head = width(&column.name) / MOST_HEAD_LINES;
                let cells = match column.numeric {
                    true => natural,
                    false => natural.min(least.max(most)),
                };
                // A word at the edge of its box.
                cells.max(head).max(longest_word(&column.name)) + 1.0
            });
            room.collect()
        };
        let fits = |widths: &Vec<f64>| spread(widths.iter()) <= WIDEST;
        let mut tries = std::iter::once(f64::INFINITY).chain(NARROWER).map(at);
        set.widths = tries.find(fits).unwrap_or_else(|| at(CUT_TO));
        set
    }

    fn column(&self, column: usize, measure: fn(&str) -> f64) -> f64 {
        let rows = self.texts.iter().flatten();
        rows.filter_map(|row| row.get(column))
            .map(|(text, bold)| bolder(measure(text), *bold))
            .fold(0.0, f64::max)
    }

    /// The columns of each part.
    fn parts(&self) -> Vec<Vec<usize>> {
        let columns = &self.table.columns;
        let room = |some: &[usize]| spread(some.iter().filter_map(|&index| self.widths.get(index)));
        let names = columns.iter().take_while(|column| !column.numeric).count();
        let mut heads: Vec<usize> = (0..names.max(1).min(columns.len())).collect();
        if room(&heads) > WIDEST / 2.0 {
            heads.truncate(1);
        }
        let mut blocks: Vec<Vec<usize>> = Vec::new();
        for (index, column) in columns.iter().enumerate().skip(heads.len()) {
            let before = columns
                .get(index - 1)
                .and_then(|column| column.over.as_ref());
            match blocks.last_mut() {
                Some(block) if column.over.is_some() && before == column.over.as_ref() => {
                    block.push(index);
                }
                _ => blocks.push(vec![index]),
            }
        }
        let mut parts = vec![heads.clone()];
        let together = |part: &[usize], more: &[usize]| [part, more].concat();
        for block in blocks {
            let whole = room(&together(&heads, &block)) <= WIDEST;
            let pieces: Vec<Vec<usize>> = match whole {
                true => vec![block],
                false => block.into_iter().map(|index| vec![index]).collect(),
            };
            for piece in pieces {
                match parts.last_mut() {
                    Some(part)
                        if part.len() == heads.len() || room(&together(part, &piece)) <= WIDEST =>
                    {
                        part.extend(piece);
                    }
                    _ => parts.push(together(&heads, &piece)),
                }
            }
        }
        parts
    }

    fn write(&self, part: &[usize]) -> String {
        let table = self.table;
        let columns: Vec<_> = (part.iter())
            .filter_map(|&index| Some((table.columns.get(index)?, *self.widths.get(index)?)))
            .collect();
        let all = spread(columns.iter().map(|(_, width)| width));
        let mut head = self.spans(part);
        let names = columns.iter().map(|(column, room)| {
            let side = if column.numeric { "left" } else { "right" };
            boxed(
                &escaped(&column.name),
                width(&column.name),
                *room,
                'b',
                side,
            )
        });
        head.push_str(&line(names));
        let (mut body, mut height) = (String::new(), 0);
        for (index, (group, rows)) in table.groups.iter().zip(&self.texts).enumerate() {
            if let Some(title) = &group.title {
                if index > 0 {
                    body.push_str("\\addlinespace\n");
                }
                height += 1;
                body.push_str(&format!(
                    "\\multicolumn{{{}}}{{@{{}}l@{{}}}}{{{}}} \\\\\n",
                    columns.len().max(1),
                    boxed(
                        &format!("\\textit{{{}}}", escaped(title)),
                        width(title),
                        all,
                        't',
                        "right"
                    )
                ));
            }
            for row in rows {
                let mut highest = 1;
                let cells = part.iter().zip(&columns).map(|(&index, (column, room))| {
                    let (text, bold) = row.get(index).cloned().unwrap_or_default();
                    let set = match bold {
                        true => format!("\\textbf{{{}}}", escaped(&text)),
                        false => escaped(&text),
                    };
                    if column.numeric {
                        return set;
                    }
                    highest = highest.max(lines(&text, *room));
                    boxed(&set, bolder(width(&text), bold), *room, 't', "right")
                });
                body.push_str(&line(cells));
                height += highest;
            }
        }
        let sides: String = (columns.iter())
            .map(|(column, _)| if column.numeric { 'r' } else { 'l' })
            .collect();
        let long = height > LONGEST;
        let (name, ends, rule) = match long {
            true => ("longtable", "\\endhead\n\\bottomrule\n\\endfoot\n", ""),
            false => ("tabular", "", "\\bottomrule\n"),
        };
        let packages = match long {
            true => "booktabs,longtable",
            false => "booktabs",
        };
        let mut out = format!("% {}\n", one_line(&table.caption));
        for note in &table.notes {
            out.push_str(&format!("% {}\n", one_line(note)));
        }
        out.push_str(&format!(
            "% \\usepackage{{{packages}}}\n\\begingroup\\footnotesize\\setlength{{\\tabcolsep}}{{{}pt}}%\n\
             \\begin{{{name}}}{{@{{}}{sides}@{{}}}}\n\\toprule\n{head}\\midrule\n{ends}{body}{rule}\
             \\end{{{name}}}\\endgroup\n",
            APART / 2.0
        ));
        out
    }

    /// The line of names that span columns, with the rules under them.
    fn spans(&self, part: &[usize]) -> String {
        let mut spans: Vec<(Option<&String>, usize, f64)> = Vec::new();
        for &index in part {
            let column = self.table.columns.get(index);
            let over = column.and_then(|column| column.over.as_ref());
            let room = self.widths.get(index).copied().unwrap_or(0.0);
            match spans.last_mut() {
                Some((last, count, all)) if over.is_some() && *last == over => {
                    *count += 1;
                    *all += APART + room;
                }
                _ => spans.push((over, 1, room)),
            }
        }
        if spans.iter().all(|(over, _, _)| over.is_none()) {
            return String::new();
        }
        let names = spans.iter().map(|(over, count, room)| {
            over.map_or_else(String::new, |over| {
                let room = room.max(longest_word(over));
                let name = boxed(&escaped(over), width(over), room, 'b', "center");
                format!("\\multicolumn{{{count}}}{{c}}{{{name}}}")
            })
        });
        let mut out = line(names);
        let mut first = 1;
        for (over, count, _) in &spans {
            if over.is_some() {
                let last = first + count - 1;
                out.push_str(&format!("\\cmidrule(lr){{{first}-{last}}}"));
            }
            first += count;
        }
        out + "\n"
    }
}

/// The width of a part with columns so wide.
fn spread<'a>(widths: impl Iterator<Item = &'a f64>) -> f64 {
    widths.map(|width| width + APART).sum::<f64>() - APART
}

fn bolder(width: f64, bold: bool) -> f64 {
    if bold { 1.17 * width } else { width }
}

fn line(cells: impl Iterator<Item = String>) -> String {
    format!("{} \\\\\n", cells.collect::<Vec<_>>().join(" & "))
}

/// On several lines, where one has no room.
fn boxed(text: &str, natural: f64, room: f64, place: char, side: &str) -> String {
    if natural <= room {
        return text.to_owned();
    }
    let side = match side {
        "center" => "\\centering",
        "left" => "\\raggedleft",
        _ => "\\raggedright",
    };
    format!("\\parbox[{place}]{{{room:.1}pt}}{{{side}\\strut {text}\\strut}}")
}
