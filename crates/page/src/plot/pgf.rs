//! Charts as TeX for pgfplots: in the font of the paper, and easily changed.
//!
//! Numbers stand in the file, as names in the CSV beside it may hold commas, which pgfplots does not
//! read.

use super::super::canvas::Ink;
use super::super::latex::escaped;
use super::{BoxPlot, BoxRow, Line, LinePlot, LossPlot, LossRow, Point};

/// Points of TeX to a pixel.
const SCALE: f64 = 0.75;

/// Ticks of shares, in percent.
const PERCENT: &str = "\\pgfmathparse{100*\\tick}\\pgfmathprintnumber{\\pgfmathresult}";

fn axis(title: &str, options: &[String], body: &str) -> String {
    let title = super::super::latex::one_line(title);
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

impl LinePlot {
    /// A chart of lines.
    pub(super) fn tex(&self) -> String {
        self.tex_of(&["width=.95\\linewidth, height=.6\\linewidth".to_owned()])
    }

    /// A chart of half a line, under its title: two stand side by side.
    pub(super) fn half(&self) -> String {
        let title = format!("title={{{}}}", escaped(&self.title));
        let size = "width=.49\\linewidth, height=.36\\linewidth";
        self.tex_of(&[size.to_owned(), title, "font=\\footnotesize".to_owned()])
    }

    fn tex_of(&self, first: &[String]) -> String {
        let stops = &self.x.stops;
        let mut options = first.to_vec();
        options.extend([
            format!("xlabel={{{}}}", escaped(&self.x.label)),
            format!("ylabel={{{}}}", escaped(&self.y_label)),
            format!("xtick={{{}}}", list(stops, |(x, _)| x.to_string())),
            format!(
                "xticklabels={{{}}}",
                list(stops, |(_, name)| format!("{{{}}}", escaped(name)))
            ),
            "ymajorgrids".to_owned(),
            "unbounded coords=jump".to_owned(),
            "legend style={font=\\scriptsize, draw=none, at={(0.5,-0.22)}, anchor=north}"
                .to_owned(),
            "legend cell align=left".to_owned(),
        ]);
        if self.percent {
            options.push(format!("yticklabel={{{PERCENT}}}, scaled y ticks=false"));
        }
        if self.x.log {
            options.push("xmode=log".to_owned());
        }
        let body: String = self.lines.iter().map(line).collect();
        let mut out = axis(&self.title, &options, &body);
        for remark in &self.remarks {
            out.insert_str(0, &format!("% {}\n", super::super::latex::one_line(remark)));
        }
        out
    }
}

fn line(line: &Line) -> String {
    let colour = colour(line.ink());
    let dashes: Vec<String> = (line.dashes().chunks(2))
        .filter_map(|pair| match pair {
            [on, off] => Some(format!("on {}pt off {}pt", on * SCALE, off * SCALE)),
            _ => None,
        })
        .collect();
    let (mark, dashes) = match dashes.is_empty() {
        true => ("*", "solid, thick".to_owned()),
        false => ("o", format!("dash pattern={}", dashes.join(" "))),
    };
    let point = |point: &Point| {
        let (x, y, [low, high]) = (point.x, point.y, point.interval);
        match point.open {
            true => format!("({x},nan)"),
            false => format!("({x},{y}) += (0,{}) -= (0,{})", high - y, y - low),
        }
    };
    let points: Vec<String> = line.points.iter().map(point).collect();
    let style =
        format!("color={colour}, {dashes}, mark={mark}, mark size=1.5pt, mark options=solid");
    // Nothing goes through bounds.
    let mut out = match line.points.iter().all(|point| point.open) {
        true => format!("\\addlegendimage{{{style}}}\n"),
        false => format!(
            "\\addplot[{style},\n  error bars/.cd, y dir=both, y explicit, error bar style=solid, error \
             mark=none]\n  coordinates {{{}}};\n",
            points.join(" ")
        ),
    };
    out.push_str(&format!("\\addlegendentry{{{}}}\n", escaped(&line.label)));
    for point in line.points.iter().filter(|point| point.open) {
        let (x, [low, high]) = (point.x, point.interval);
        out.push_str(&format!(
            "\\addplot[forget plot, color={colour}, opacity=.35, line width=4pt] coordinates \
             {{({x},{low}) ({x},{high})}};\n"
        ));
    }
    out
}

/// Rows from above, with their names.
fn rows<'a>(names: impl Iterator<Item = &'a str>) -> [String; 4] {
    let names: Vec<&str> = names.collect();
    let numbers: Vec<usize> = (0..names.len()).collect();
    [
        format!("ytick={{{}}}", list(&numbers, usize::to_string)),
        format!(
            "yticklabels={{{}}}",
            list(&names, |name| format!("{{{}}}", escaped(name)))
        ),
        format!("ymin=-.7, ymax={}", names.len() as f64 - 0.3),
        "y dir=reverse, yticklabel style={font=\\scriptsize}".to_owned(),
    ]
}

impl BoxPlot {
    /// Rows of quantiles and a mean, between 0 and 1.
    pub(super) fn tex(&self) -> String {
        let mut options = vec![
            format!(
                "width=.8\\linewidth, height={}pt",
                70 + 30 * self.rows.len()
            ),
            format!("xlabel={{{}}}", escaped(&self.label)),
            "xmin=0, xmax=1, xmajorgrids".to_owned(),
            format!("xticklabel={{{PERCENT}}}, scaled x ticks=false"),
        ];
        options.extend(rows(self.rows.iter().map(|row| row.label.as_str())));
        let colour = colour(Ink::Hue(0));
        let row = |(at, row): (usize, &BoxRow)| {
            let ([a, b, c, d, e], mean, at) = (row.quantiles, row.mean, at as f64);
            let (above, below) = (at - 0.2, at + 0.2);
            format!(
                "\\draw[color={colour}] (axis cs:{a},{at}) -- (axis cs:{e},{at});\n\
                 \\fill[color={colour}, opacity=.35] (axis cs:{b},{above}) rectangle (axis cs:{d},{below});\n\
                 \\draw[color={colour}, thick] (axis cs:{c},{above}) -- (axis cs:{c},{below});\n\
                 \\addplot[only marks, mark=o] coordinates {{({mean},{at})}};\n"
            )
        };
        let body: String = self.rows.iter().enumerate().map(row).collect();
        axis(&self.title, &options, &body)
    }
}

impl LossPlot {
    /// Bars from the one end of the axis, what was had, and what is lost.
    pub(super) fn tex(&self, shown: &[&LossRow], [low, high]: [f64; 2]) -> String {
        let mut options = vec![
            format!("width=.76\\linewidth, height={}pt", 70 + 48 * shown.len()),
            format!("xlabel={{{}}}", escaped(&self.label)),
            format!("xmin={low}, xmax={high}, xmajorgrids, clip=false"),
            format!("xticklabel={{{PERCENT}}}, scaled x ticks=false"),
        ];
        options.extend(rows(shown.iter().map(|row| row.label.as_str())));
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
                &row.best_label,
            ));
            // Names of marks that are near each other stand at other heights.
            for (index, (x, name)) in row.marks.iter().enumerate() {
                body.push_str(&format!(
                    "\\addplot[only marks, mark=o] coordinates {{({x},{y})}};\n{}",
                    said(*x, above - 0.16 * (index % 2) as f64, "south east", name)
                ));
            }
            for ([from, to], name) in &row.ranges {
                body.push_str(&format!(
                    "\\draw[|-|] (axis cs:{from},{y}) -- (axis cs:{to},{y});\n{}",
                    said((from + to) / 2.0, above, "south", name)
                ));
            }
            if let Some((_, [_, most], words)) = &row.loss {
                let y = below + 0.08;
                body.push_str(&format!(
                    "\\draw[<->] (axis cs:{},{y}) -- (axis cs:{best},{y});\n{}",
                    best - most,
                    said(best, y, "north east", words)
                ));
            }
        }
        axis(&self.title, &options, &body)
    }
}
