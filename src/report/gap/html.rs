//! A gap report as one self-contained page.

use super::Picture;
use super::provenance::facts;
use super::strip::{CLASSES, class, gap, visible};
use super::tables::{self, Row, Table};
use super::words::{counted, extent, headline, rate, summary, temperature, title};
use crate::gap::{GapReport, LogSummary, Strip};
use crate::report::scene::escape;
use std::fmt::Write as _;

const STYLE: &str = include_str!("style.css");

/// The report as one HTML page that needs nothing else: style and pictures are
/// in it, and no script. It follows the reader's light or dark colour scheme.
pub fn html(report: &GapReport, pictures: &[Picture]) -> String {
    let mut page = Page {
        body: String::new(),
        sections: Vec::new(),
    };
    acceptance(&mut page, report, pictures);
    page.part("comparisons", "Comparisons", tables::comparisons(report));
    let formula = tables::formula(report);
    page.part(
        "formula",
        "The published formula without replacement",
        formula,
    );
    page.part("plans", "Optimal plans", tables::plans(report));
    page.part("blocks", "Blocks", tables::blocks(report));
    let overlap = tables::overlap(report);
    if overlap.is_some() {
        page.part("overlap", "Overlap", overlap);
        page.pictures(pictures, |name| !is_placed(name));
    }
    if let Some(strip) = &report.strip {
        text_strip(&mut page, strip);
    }
    definitions(&mut page, report);
    provenance(&mut page, report);
    distributions(&mut page, report);
    left_out(&mut page, report);
    page.section("made-by", "Made by");
    let _ = writeln!(
        page.body,
        "<pre><code>{}</code></pre>",
        escape(&report.command)
    );
    let _ = writeln!(
        page.body,
        "<p class=\"note\">{}, seed {}, report schema {}.</p>",
        escape(&report.tool),
        report.seed,
        report.schema
    );

    let title = escape(&title(report));
    let mut out = String::new();
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n\
         <p class=\"sub\">{}</p>\n</header>\n<main>\n<p>{}</p>\n",
        escape(&subtitle(report)),
        unbroken(&escape(&summary(report).join(" "))),
    );
    out.push_str("<nav aria-label=\"Sections\">\n<ul>\n");
    for (id, name) in &page.sections {
        let _ = writeln!(out, "<li><a href=\"#{id}\">{}</a></li>", escape(name));
    }
    out.push_str("</ul>\n</nav>\n");
    out.push_str(&page.body);
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

/// Keeps a number and its interval on one line.
fn unbroken(text: &str) -> String {
    text.replace(" ± ", "\u{a0}±\u{a0}")
}

fn subtitle(report: &GapReport) -> String {
    let mut parts = vec![extent(report)];
    let mut models: Vec<String> = Vec::new();
    for log in &report.logs {
        if let (Some(target), Some(draft)) = (&log.metadata.target, &log.metadata.draft) {
            let pair = format!("target {}, draft {}", target.name, draft.name);
            if !models.contains(&pair) {
                models.push(pair);
            }
        }
    }
    parts.extend(models);
    parts.join(" · ")
}

fn is_placed(name: &str) -> bool {
    name.starts_with("acceptance-") || name.starts_with("gap-")
}

struct Page {
    body: String,
    sections: Vec<(&'static str, &'static str)>,
}

impl Page {
    fn section(&mut self, id: &'static str, name: &'static str) {
        self.sections.push((id, name));
        let _ = writeln!(self.body, "<h2 id=\"{id}\">{}</h2>", escape(name));
    }

    fn part(&mut self, id: &'static str, name: &'static str, table: Option<Table>) {
        if let Some(table) = table {
            self.section(id, name);
            self.table(&table);
        }
    }

    fn pictures(&mut self, pictures: &[Picture], wanted: impl Fn(&str) -> bool) {
        for picture in pictures.iter().filter(|picture| wanted(&picture.name)) {
            let _ = writeln!(
                self.body,
                "<figure>\n<div class=\"figure\" tabindex=\"0\" role=\"group\" \
                 aria-label=\"{}\">\n{}</div>\n<figcaption>{}</figcaption>\n</figure>",
                escape(&picture.name),
                picture.svg,
                escape(&picture.caption)
            );
        }
    }

    fn table(&mut self, table: &Table) {
        let out = &mut self.body;
        let grouped = table.groups.iter().any(|group| group.title.is_some());
        let class = if grouped { " class=\"grouped\"" } else { "" };
        let _ = writeln!(
            out,
            "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-labelledby=\"table-{0}\">\n\
             <table{class}>\n<caption id=\"table-{0}\"><span>{1}</span></caption>\n<thead>",
            escape(&table.id),
            escape(&table.caption)
        );
        head(out, table);
        out.push_str("</thead>\n");
        for group in &table.groups {
            out.push_str("<tbody>\n");
            if let Some(title) = &group.title {
                let rest = table.columns.len().saturating_sub(1).max(1);
                let _ = writeln!(
                    out,
                    "<tr class=\"group\"><th scope=\"rowgroup\">{}</th><td colspan=\"{rest}\"></td></tr>",
                    escape(title)
                );
            }
            for one in &group.rows {
                row(out, table, one);
            }
            out.push_str("</tbody>\n");
        }
        out.push_str("</table>\n</div>\n");
        for note in &table.notes {
            let _ = writeln!(out, "<p class=\"note\">{}</p>", escape(note));
        }
    }
}

fn head(out: &mut String, table: &Table) {
    let levels = table.columns.iter().any(|column| column.over.is_some());
    let class = |numeric: bool| if numeric { " class=\"n\"" } else { "" };
    if levels {
        out.push_str("<tr>");
        let mut index = 0;
        while let Some(column) = table.columns.get(index) {
            let Some(over) = &column.over else {
                let name = escape(&column.name);
                let class = class(column.numeric);
                let _ = write!(out, "<th scope=\"col\" rowspan=\"2\"{class}>{name}</th>");
                index += 1;
                continue;
            };
            let alike = table.columns[index..]
                .iter()
                .take_while(|one| one.over == column.over);
            let span = alike.count();
            let _ = write!(
                out,
                "<th scope=\"colgroup\" colspan=\"{span}\" class=\"over\">{}</th>",
                escape(over)
            );
            index += span;
        }
        out.push_str("</tr>\n");
    }
    out.push_str("<tr>");
    for column in table
        .columns
        .iter()
        .filter(|column| !levels || column.over.is_some())
    {
        let class = class(column.numeric);
        let _ = write!(
            out,
            "<th scope=\"col\"{class}>{}</th>",
            escape(&column.name)
        );
    }
    out.push_str("</tr>\n");
}

fn row(out: &mut String, table: &Table, row: &Row) {
    out.push_str(if row.optimum {
        "<tr class=\"optimum\">"
    } else {
        "<tr>"
    });
    for (index, entry) in row.entries.iter().enumerate() {
        let text = escape(&entry.text);
        let title = entry
            .title
            .as_ref()
            .map_or_else(String::new, |title| format!(" title=\"{}\"", escape(title)));
        if index == 0 {
            let _ = write!(out, "<th scope=\"row\"{title}>{text}</th>");
            continue;
        }
        let numeric = table
            .columns
            .get(index)
            .is_some_and(|column| column.numeric);
        let class = match (numeric, entry.strong) {
            (true, true) => " class=\"n best\"",
            (true, false) => " class=\"n\"",
            (false, true) => " class=\"best\"",
            (false, false) => "",
        };
        let _ = write!(out, "<td{class}{title}>{text}</td>");
    }
    out.push_str("</tr>\n");
}

fn acceptance(page: &mut Page, report: &GapReport, pictures: &[Picture]) {
    if report.cells.is_empty() {
        return;
    }
    page.section("acceptance", "Acceptance");
    for table in tables::acceptance(report) {
        page.table(&table);
    }
    page.pictures(pictures, |name| name.starts_with("acceptance-"));
    page.section("gap", "Gap to the optimum");
    page.table(&tables::gaps(report));
    page.pictures(pictures, |name| name.starts_with("gap-"));
}

fn text_strip(page: &mut Page, strip: &Strip) {
    if strip.texts.iter().all(|text| text.tokens.is_empty()) {
        return;
    }
    page.section("strip", "Where the gap lies");
    let out = &mut page.body;
    let _ = writeln!(
        out,
        "<p>Each token is marked by the gap of {} at its position ({} drafts, T = {}, n = {}): \
         the stronger the colour and the thicker the line, the larger. Its numbers are shown on hover, and \
         listed below each text. Sampled tokens; ␣, ⏎ and ⇥ are blanks, line ends and tabs.</p>",
        escape(&strip.verifier),
        escape(&strip.scheme),
        temperature(strip.temperature),
        strip.drafts
    );
    out.push_str("<ul class=\"legend\">\n");
    for index in 0..=CLASSES.len() {
        let text = match (
            index.checked_sub(1).map(|below| CLASSES[below]),
            CLASSES.get(index),
        ) {
            (None, _) => format!("gap below {}", CLASSES[0]),
            (Some(low), Some(high)) => format!("{low} to {high}"),
            (Some(low), None) => format!("{low} and more"),
        };
        let _ = writeln!(
            out,
            "<li><span class=\"t g{index}\">{}</span></li>",
            escape(&text)
        );
    }
    out.push_str("</ul>\n");
    for (index, text) in strip.texts.iter().enumerate() {
        let _ = writeln!(page.body, "<h3>{}</h3>", escape(&text.prompt));
        page.body.push_str("<p class=\"text\">");
        for token in &text.tokens {
            let gap = gap(token);
            let title = format!(
                "α* {}, {} {}, gap {}",
                rate(token.optimum),
                strip.verifier,
                rate(token.acceptance),
                rate(gap)
            );
            let shown = visible(&token.text);
            // Blanks before a word stand outside its mark, which keeps marks apart.
            let word = shown.trim_start_matches(' ');
            let _ = write!(
                page.body,
                "{}<span class=\"t g{}\" title=\"{}\">{}</span>",
                &shown[..shown.len() - word.len()],
                class(gap),
                escape(&title),
                escape(word)
            );
            if token.text.ends_with('\n') {
                page.body.push('\n');
            }
        }
        page.body.push_str("</p>\n");
        let mean = text.tokens.iter().map(gap_of).sum::<f64>() / text.tokens.len().max(1) as f64;
        let tokens = counted(text.tokens.len(), "token");
        let _ = writeln!(
            page.body,
            "<details><summary>{tokens}, mean gap {}</summary>",
            escape(&rate(mean))
        );
        let rows = text
            .tokens
            .iter()
            .map(|token| (text.prompt.as_str(), token));
        let caption = format!("Tokens of {}", text.prompt);
        let id = format!("tokens-{index}");
        page.table(&tables::tokens(id, caption, &strip.verifier, rows));
        page.body.push_str("</details>\n");
    }
}

fn gap_of(token: &crate::gap::StripToken) -> f64 {
    gap(token)
}

fn definitions(page: &mut Page, report: &GapReport) {
    page.section("definitions", "Definitions");
    let out = &mut page.body;
    out.push_str("<dl class=\"defs\">\n");
    for (name, meaning) in &report.definitions {
        let _ = writeln!(out, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(meaning));
    }
    out.push_str(
        "<dt>exact</dt><dd>A rational number, computed without rounding.</dd>\n\
         <dt>enclosed, w</dt><dd>Rounding, and all that the computation left out, moves the \
         value by no more than an interval of width w, the widest of any position.</dd>\n\
         <dt>Monte Carlo</dt><dd>A mean over simulated runs, with the width of an interval \
         that holds the value with probability 0.999 at each position; in a mean over positions \
         most of it cancels, and what is left is in the mean's interval.</dd>\n",
    );
    let interval = if report.clusters > 1 {
        format!(
            "Half the width of the 95% confidence interval of the mean, over {}.",
            counted(report.clusters, &report.cluster_unit)
        )
    } else {
        format!("Not given: there is one {} only.", report.cluster_unit)
    };
    let _ = writeln!(out, "<dt>±</dt><dd>{}</dd>\n</dl>", escape(&interval));
}

fn provenance(page: &mut Page, report: &GapReport) {
    if report.logs.is_empty() {
        return;
    }
    page.section("provenance", "Where the rows come from");
    let n = headline(report).map(|(_, n)| n);
    for (index, log) in report.logs.iter().enumerate() {
        let _ = writeln!(
            page.body,
            "<h3>{}</h3>\n<dl class=\"facts\">",
            escape(&log.name)
        );
        for fact in facts(log) {
            let title = fact
                .full
                .as_ref()
                .map_or_else(String::new, |full| format!(" title=\"{}\"", escape(full)));
            let _ = writeln!(
                page.body,
                "<dt>{}</dt><dd{title}>{}</dd>",
                escape(&fact.name),
                escape(&fact.value)
            );
        }
        page.body.push_str("</dl>\n");
        if let Some(rest) = tables::rest(log, index, n) {
            page.table(&rest);
        }
        prompts(page, log);
    }
}

fn prompts(page: &mut Page, log: &LogSummary) {
    let prompts = &log.metadata.prompts;
    if prompts.is_empty() {
        return;
    }
    let _ = writeln!(
        page.body,
        "<details><summary>{}</summary>\n<ul>",
        counted(prompts.len(), "prompt")
    );
    for prompt in prompts {
        let positions = counted(prompt.positions, "position");
        let _ = writeln!(
            page.body,
            "<li>{} (id {}): {positions}</li>",
            escape(&prompt.name),
            prompt.id
        );
    }
    page.body.push_str("</ul></details>\n");
}

fn distributions(page: &mut Page, report: &GapReport) {
    if report.cells.is_empty() {
        return;
    }
    page.section("distributions", "Distributions over positions");
    page.body
        .push_str("<details><summary>Quantiles in every cell</summary>\n");
    page.table(&tables::quantiles(report));
    page.body
        .push_str("</details>\n<details><summary>Histograms in every cell</summary>\n");
    page.table(&tables::histograms(report));
    page.body.push_str("</details>\n");
}

fn left_out(page: &mut Page, report: &GapReport) {
    if report.left_out.is_empty() {
        return;
    }
    page.section("left-out", "Left out");
    page.body.push_str("<ul>\n");
    for line in &report.left_out {
        let _ = writeln!(page.body, "<li>{}</li>", escape(line));
    }
    page.body.push_str("</ul>\n");
}
