//! Charts as TeX for pgfplots: in the font of the paper, and easily changed.
//!
//! Numbers stand in the file, as names in the CSV beside it may hold commas, which pgfplots does not
//! read.

use super::canvas::Ink;
use super::latex::escaped;

/// Points of TeX to a pixel.
const SCALE: f64 = 0.75;

/// Ticks of shares, in percent.
const PERCENT: &str = "\\pgfmathparse{100*\\tick}\\pgfmathprintnumber{\\pgfmathresult}";

fn axis(title: &str, options: &[String], body: &str) -> String {
    let title = super::latex::one_line(title);
    let options: String = options.iter().map(|one| format!("  {one},\n")).collect();
    format!(
        "% {title}\n% \\usepackage{{pgfplots}}\\pgfplotsset{{compat=1.16}}\n\
         \\begin{{tikzpicture}}\n\\begin{{axis}}[\n{options}]\n{body}\\end{{axis}}\n\
         \\end{{tikzpicture}}\n"
    )
}

fn list<T>(items: &[T], text: impl Fn(&T) -> String) -> String {
    let all: Vec<String> = items.iter().map(text).collect();
    all.join(",")
}

fn colour(ink: Ink) -> String {
    let [red, green, blue] = ink.on_paper();
    format!("{{rgb,255:red,{red};green,{green};blue,{blue}}}")
}

/// A chart of lines.
pub(super) struct Lines<'a> {
    pub(super) title: &'a str,
    pub(super) x_label: &'a str,
    pub(super) y_label: &'a str,
    pub(super) stops: &'a [(f64, String)],
    pub(super) log: bool,
    /// The y axis shows shares in percent; the numbers of the file are shares.
    pub(super) percent: bool,
    pub(super) lines: Vec<Line<'a>>,
    pub(super) remarks: &'a [String],
}

/// A line; without dashes it is what others are measured against.
pub(super) struct Line<'a> {
    pub(super) label: &'a str,
    pub(super) ink: Ink,
    pub(super) dashes: &'a [f64],
    /// x; y where more than its ends is known; and the ends.
    pub(super) points: Vec<(f64, Option<f64>, [f64; 2])>,
}

/// What one row of a chart of losses shows, as there.
pub(super) struct Loss<'a> {
    pub(super) label: &'a str,
    pub(super) best: f64,
    pub(super) best_to: Option<f64>,
    pub(super) best_label: &'a str,
    pub(super) marks: &'a [(f64, String)],
    pub(super) ranges: &'a [([f64; 2], String)],
    /// The most that is lost, and what is said of it.
    pub(super) loss: Option<(f64, &'a str)>,
}

pub(super) fn lines(plot: &Lines<'_>) -> String {
    let stops = plot.stops;
    let mut options = vec![
        "width=.95\\linewidth, height=.6\\linewidth".to_owned(),
        format!("xlabel={{{}}}", escaped(plot.x_label)),
        format!("ylabel={{{}}}", escaped(plot.y_label)),
        format!("xtick={{{}}}", list(stops, |(x, _)| x.to_string())),
        format!(
            "xticklabels={{{}}}",
            list(stops, |(_, name)| format!("{{{}}}", escaped(name)))
        ),
        "ymajorgrids".to_owned(),
        "unbounded coords=jump".to_owned(),
        "legend style={font=\\scriptsize, draw=none, at={(0.5,-0.22)}, anchor=north}".to_owned(),
        "legend cell align=left".to_owned(),
    ];
    if plot.percent {
        options.push(format!("yticklabel={{{PERCENT}}}, scaled y ticks=false"));
    }
    if plot.log {
        options.push("xmode=log".to_owned());
    }
    let body: String = plot.lines.iter().map(line).collect();
    let mut out = axis(plot.title, &options, &body);
    for remark in plot.remarks {
        out.insert_str(0, &format!("% {}\n", super::latex::one_line(remark)));
    }
    out
}

fn line(line: &Line<'_>) -> String {
    let colour = colour(line.ink);
    let dashes: Vec<String> = (line.dashes.chunks(2))
        .filter_map(|pair| match pair {
            [on, off] => Some(format!("on {}pt off {}pt", on * SCALE, off * SCALE)),
            _ => None,
        })
        .collect();
    let (mark, dashes) = match dashes.is_empty() {
        true => ("*", "solid, thick".to_owned()),
        false => ("o", format!("dash pattern={}", dashes.join(" "))),
    };
    let point = |&(x, y, [low, high]): &(f64, Option<f64>, [f64; 2])| match y {
        None => format!("({x},nan)"),
        Some(y) => format!("({x},{y}) += (0,{}) -= (0,{})", high - y, y - low),
    };
    let points: Vec<String> = line.points.iter().map(point).collect();
    let style =
        format!("color={colour}, {dashes}, mark={mark}, mark size=1.5pt, mark options=solid");
    // Nothing goes through bounds.
    let mut out = match line.points.iter().all(|(_, y, _)| y.is_none()) {
        true => format!("\\addlegendimage{{{style}}}\n"),
        false => format!(
            "\\addplot[{style},\n  error bars/.cd, y dir=both, y explicit, error bar style=solid, error \
             mark=none]\n  coordinates {{{}}};\n",
            points.join(" ")
        ),
    };
    out.push_str(&format!("\\addlegendentry{{{}}}\n", escaped(line.label)));
    let open = line.points.iter().filter(|(_, y, _)| y.is_none());
    for (x, _, [low, high]) in open {
        out.push_str(&format!(
            "\\addplot[forget plot, color={colour}, opacity=.35, line width=4pt] coordinates \
             {{({x},{low}) ({x},{high})}};\n"
        ));
    }
    out
}

/// Rows from above, with their names.
fn rows(rows: &[&str]) -> [String; 4] {
    let numbers: Vec<usize> = (0..rows.len()).collect();
    [
        format!("ytick={{{}}}", list(&numbers, usize::to_string)),
        format!(
            "yticklabels={{{}}}",
            list(rows, |row| format!("{{{}}}", escaped(row)))
        ),
        format!("ymin=-.7, ymax={}", rows.len() as f64 - 0.3),
        "y dir=reverse, yticklabel style={font=\\scriptsize}".to_owned(),
    ]
}

/// Rows of quantiles at 5%, 25%, 50%, 75% and 95% and a mean, between 0 and 1.
pub(super) fn boxes(title: &str, label: &str, all: &[(&str, [f64; 5], f64)]) -> String {
    let mut options = vec![
        format!("width=.8\\linewidth, height={}pt", 70 + 30 * all.len()),
        format!("xlabel={{{}}}", escaped(label)),
        "xmin=0, xmax=1, xmajorgrids".to_owned(),
        format!("xticklabel={{{PERCENT}}}, scaled x ticks=false"),
    ];
    options.extend(rows(&all.iter().map(|row| row.0).collect::<Vec<_>>()));
    let colour = colour(Ink::Hue(0));
    let row = |(at, &(_, quantiles, mean)): (usize, &(&str, [f64; 5], f64))| {
        let ([a, b, c, d, e], at) = (quantiles, at as f64);
        let (above, below) = (at - 0.2, at + 0.2);
        format!(
            "\\draw[color={colour}] (axis cs:{a},{at}) -- (axis cs:{e},{at});\n\
             \\fill[color={colour}, opacity=.35] (axis cs:{b},{above}) rectangle (axis cs:{d},{below});\n\
             \\draw[color={colour}, thick] (axis cs:{c},{above}) -- (axis cs:{c},{below});\n\
             \\addplot[only marks, mark=o] coordinates {{({mean},{at})}};\n"
        )
    };
    let body: String = all.iter().enumerate().map(row).collect();
    axis(title, &options, &body)
}

/// Bars from the one end of the axis, what was had, and what is lost.
pub(super) fn losses(
    title: &str,
    label: &str,
    shown: &[Loss<'_>],
    [low, high]: [f64; 2],
) -> String {
    let mut options = vec![
        format!("width=.8\\linewidth, height={}pt", 70 + 48 * shown.len()),
        format!("xlabel={{{}}}", escaped(label)),
        format!("xmin={low}, xmax={high}, xmajorgrids, clip=false"),
        format!("xticklabel={{{PERCENT}}}, scaled x ticks=false"),
    ];
    options.extend(rows(&shown.iter().map(|row| row.label).collect::<Vec<_>>()));
    let colour = colour(Ink::Hue(0));
    let said = |x: f64, y: f64, anchor: &str, words: &str| {
        let words = escaped(words);
        format!("\\node[font=\\tiny, anchor={anchor}] at (axis cs:{x},{y}) {{{words}}};\n")
    };
    let mut body = String::new();
    for (at, row) in shown.iter().enumerate() {
        let (y, best) = (at as f64, row.best);
        let (above, below) = (y - 0.13, y + 0.13);
        let bar = |from: f64, to: f64, opacity: f64| {
            format!(
                "\\fill[color={colour}, opacity={opacity}] (axis cs:{from},{above}) rectangle \
                 (axis cs:{to},{below});\n"
            )
        };
        body.push_str(&bar(low, best, 0.35));
        if let Some(to) = row.best_to {
            body.push_str(&bar(best, to, 0.15));
        }
        body.push_str(&said(
            row.best_to.unwrap_or(best),
            y,
            "west",
            row.best_label,
        ));
        // Names of marks that are near each other stand at other heights.
        for (index, (x, name)) in row.marks.iter().enumerate() {
            body.push_str(&format!(
                "\\addplot[only marks, mark=o] coordinates {{({x},{y})}};\n{}",
                said(*x, above - 0.16 * (index % 2) as f64, "south east", name)
            ));
        }
        for ([from, to], name) in row.ranges {
            body.push_str(&format!(
                "\\draw[|-|] (axis cs:{from},{y}) -- (axis cs:{to},{y});\n{}",
                said((from + to) / 2.0, above, "south", name)
            ));
        }
        if let Some((most, words)) = row.loss {
            let y = below + 0.08;
            body.push_str(&format!(
                "\\draw[<->] (axis cs:{},{y}) -- (axis cs:{best},{y});\n{}",
                best - most,
                said(best, y, "north east", words)
            ));
        }
    }
    axis(title, &options, &body)
}
