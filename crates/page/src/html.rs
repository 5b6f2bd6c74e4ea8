//! A page as one self-contained HTML file.

use super::canvas::DrawError;
use super::content::Lead;
use super::markdown::MORE;
use super::table::{Entry, Row, Table};
use super::words::markup_escaped as escape;
use super::{Block, Choice, Fact, Figure, MarkedText, Page, Panel, visible};
use std::fmt::Write as _;

const STYLE: &str = include_str!("style.css");

impl Page {
    /// The page as one HTML file that needs nothing else: style and pictures are in
    /// it, and no script. It follows the reader's light or dark colour scheme.
    ///
    /// # Errors
    /// A picture that cannot be drawn.
    pub fn html(&self) -> Result<String, DrawError> {
        let title = escape(&self.title);
        let mut out = String::new();
        let _ = write!(
            out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
             <style>\n{STYLE}{}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n",
            self.chosen_style()
        );
        if !self.subtitle.is_empty() {
            line(&mut out, "p class=\"sub\"", &escape(&self.subtitle));
        }
        out.push_str("</header>\n<main>\n");
        first(&mut out, &self.lead, self.last_line())?;
        for section in &self.sections {
            let (id, title) = (escape(section.id), escape(section.title));
            let purpose = match section.purpose {
                "" => String::new(),
                purpose => format!(" <span class=\"purpose\">{}</span>", escape(purpose)),
            };
            // A link to what is within opens it.
            let _ = writeln!(
                out,
                "<details class=\"part\"><summary><h2>{title}</h2>{purpose}</summary>\n\
                 <div id=\"{id}\">"
            );
            blocks(&mut out, &section.blocks)?;
            out.push_str("</div>\n</details>\n");
        }
        out.push_str("</main>\n</body>\n</html>\n");
        Ok(visible(out))
    }

    /// Returns what hides panels of options that are not chosen, on paper too. Where a browser does not know
    /// `:has`, all are shown.
    fn chosen_style(&self) -> String {
        let choices = self.lead.iter().find_map(|block| match block {
            Block::Choice(choices) => Some(choices),
            _ => None,
        });
        let Some(choices) = choices else {
            return String::new();
        };
        let options = (choices.iter().enumerate())
            .flat_map(|(axis, choice)| (0..choice.options.len()).map(move |at| (axis, at)));
        options
            .map(|(axis, at)| {
                let name = option(axis, at);
                format!("main:has(#{name}:not(:checked)) .{name}{{display:none}}\n")
            })
            .collect()
    }
}

/// An option's id, and the class of its panels.
fn option(axis: usize, at: usize) -> String {
    format!("choice-{axis}-{at}")
}

/// The first screen: the verdict, a few lines, and what there is to see beside them.
fn first(out: &mut String, lead: &[Block], last: Option<String>) -> Result<(), DrawError> {
    let lead = Lead::of(lead);
    // A wide picture has no room beside the words.
    let is_wide =
        |block: &Block| matches!(block, Block::Figure(figure) if figure.canvas.width() > NARROW);
    out.push_str(
        match lead.seen.is_empty() || lead.seen.iter().any(is_wide) {
            true => "<div class=\"first alone\">\n",
            false => "<div class=\"first\">\n",
        },
    );
    blocks(out, &lead.before)?;
    if let Some(text) = &lead.verdict {
        line(out, "p class=\"verdict\"", &prose(text));
    }
    if !lead.seen.is_empty() {
        out.push_str("<div class=\"seen\">\n");
        blocks(out, &lead.seen)?;
        out.push_str("</div>\n");
    }
    out.push_str("<div class=\"lines\">\n");
    blocks(out, &lead.open)?;
    if !lead.folded.is_empty() {
        details(out, MORE, &lead.folded)?;
    }
    if let Some(last) = last {
        line(out, "p class=\"next\"", &prose(&last));
    }
    out.push_str("</div>\n</div>\n");
    Ok(())
}

/// A choice as radio buttons.
fn choices(out: &mut String, choices: &[Choice]) {
    out.push_str("<form class=\"choices\">\n");
    // What is the same everywhere is no choice.
    let all = choices.iter().enumerate();
    for (axis, choice) in all.filter(|(_, choice)| choice.options.len() > 1) {
        let name = escape(&choice.name);
        let _ = writeln!(out, "<fieldset><legend>{name}</legend>");
        for (at, label) in choice.options.iter().enumerate() {
            let (id, label) = (option(axis, at), escape(label));
            let checked = if at == choice.first { " checked" } else { "" };
            let _ = writeln!(
                out,
                "<input type=\"radio\" name=\"choice-{axis}\" id=\"{id}\"{checked}/><label \
                 for=\"{id}\">{label}</label>"
            );
        }
        out.push_str("</fieldset>\n");
    }
    out.push_str("</form>\n");
}

fn panel(out: &mut String, panel: &Panel) -> Result<(), DrawError> {
    let classes: Vec<String> = (panel.at.iter().enumerate())
        .map(|(axis, &at)| option(axis, at))
        .collect();
    let (classes, label) = (classes.join(" "), escape(&panel.label));
    let _ = writeln!(
        out,
        "<div class=\"panel {classes}\" role=\"group\" aria-label=\"{label}\">"
    );
    blocks(out, &panel.blocks)?;
    out.push_str("</div>\n");
    Ok(())
}

/// Text that keeps a number and its interval on one line.
fn prose(text: &str) -> String {
    escape(&text.replace(" ± ", "\u{a0}±\u{a0}"))
}

fn titled(title: Option<&String>) -> String {
    title.map_or_else(String::new, |title| format!(" title=\"{}\"", escape(title)))
}

/// Text in an element on a line of its own; `element` is its name with its attributes.
fn line(out: &mut String, element: &str, text: &str) {
    let name = element.split(' ').next().unwrap_or_default();
    let _ = writeln!(out, "<{element}>{text}</{name}>");
}

fn list(out: &mut String, items: impl Iterator<Item = String>) {
    out.push_str("<ul>\n");
    items.for_each(|item| line(out, "li", &item));
    out.push_str("</ul>\n");
}

fn details(out: &mut String, summary: &str, blocks: &[Block]) -> Result<(), DrawError> {
    let _ = writeln!(out, "<details><summary>{summary}</summary>");
    self::blocks(out, blocks)?;
    out.push_str("</details>\n");
    Ok(())
}

fn blocks(out: &mut String, blocks: &[Block]) -> Result<(), DrawError> {
    let mut rest = blocks;
    while let Some((block, after)) = rest.split_first() {
        let figures: Vec<&Figure> = (rest.iter())
            .map_while(|block| match block {
                Block::Figure(figure) => Some(figure),
                _ => None,
            })
            .collect();
        if figures.is_empty() {
            one(out, block)?;
            rest = after;
        } else {
            rest = &rest[figures.len()..];
            // Neighbours stand side by side where the screen has room.
            out.push_str("<div class=\"figures\">\n");
            for figure in figures {
                picture(out, figure)?;
            }
            out.push_str("</div>\n");
        }
    }
    Ok(())
}

fn one(out: &mut String, block: &Block) -> Result<(), DrawError> {
    match block {
        Block::Paragraph(text) => line(out, "p", &prose(text)),
        Block::Caution(text) => line(out, "p class=\"caution\" role=\"note\"", &prose(text)),
        Block::Wrong(text) => line(out, "p class=\"caution wrong\"", &prose(text)),
        Block::Heading(text) => line(out, "h3", &escape(text)),
        Block::List(items) => list(out, items.iter().map(|item| prose(item))),
        Block::Definitions(words) => {
            out.push_str("<dl class=\"defs\">\n");
            for (word, meaning) in words {
                let (word, meaning) = (escape(word), escape(meaning));
                let _ = writeln!(out, "<dt>{word}</dt><dd>{meaning}</dd>");
            }
            out.push_str("</dl>\n");
        }
        Block::Facts(all) => facts(out, all),
        Block::Table(all) => table(out, all),
        Block::Figure(figure) => picture(out, figure)?,
        Block::Tokens(text) => tokens(out, text),
        Block::Details { summary, blocks } => {
            details(out, &escape(summary), blocks)?;
        }
        Block::Command(text) => line(out, "pre", &format!("<code>{}</code>", escape(text))),
        Block::Choice(all) => choices(out, all),
        Block::Panel(one) => panel(out, one)?,
        Block::Links(links) => list(
            out,
            links.iter().map(|link| {
                let (place, text) = (link.address(".html"), escape(&link.text));
                format!("<a href=\"{place}\">{text}</a>")
            }),
        ),
    }
    Ok(())
}

fn facts(out: &mut String, facts: &[Fact]) {
    out.push_str("<dl class=\"facts\">\n");
    for fact in facts {
        let _ = writeln!(
            out,
            "<dt>{}</dt><dd{}>{}</dd>",
            escape(&fact.name),
            titled(fact.full.as_ref()),
            prose(&fact.value)
        );
    }
    out.push_str("</dl>\n");
}

/// Pictures up to so many pixels wide are read on a phone as well; wider ones scroll there.
const NARROW: u32 = 600;

fn picture(out: &mut String, figure: &Figure) -> Result<(), DrawError> {
    let (svg, caption) = (figure.svg()?, escape(&figure.caption));
    let width = figure.canvas.width();
    let finding = figure.finding().map_or_else(String::new, |finding| {
        format!("<p class=\"finding\">{}</p>\n", prose(finding))
    });
    let _ = if width <= NARROW {
        writeln!(
            out,
            "<figure>\n{finding}{svg}<figcaption>{caption}</figcaption>\n</figure>"
        )
    } else {
        writeln!(
            out,
            "<figure class=\"wide\">\n{finding}<div class=\"scroll\" tabindex=\"0\"><div \
             style=\"min-width:{width}px\">\n{svg}</div></div>\n<figcaption>{caption}</figcaption>\n</figure>"
        )
    };
    Ok(())
}

fn tokens(out: &mut String, text: &MarkedText) {
    if !text.legend.is_empty() {
        out.push_str("<ul class=\"legend\">\n");
        for (class, meaning) in text.legend.iter().enumerate() {
            let meaning = escape(meaning);
            let _ = writeln!(out, "<li><span class=\"t g{class}\">{meaning}</span></li>");
        }
        out.push_str("</ul>\n");
    }
    if text.tokens.is_empty() {
        return;
    }
    out.push_str("<p class=\"text\">");
    for token in &text.tokens {
        // Blanks before a word stand outside its mark, which keeps marks apart.
        let word = token.text.trim_start_matches(' ');
        let _ = write!(
            out,
            "{}<span class=\"t g{}\" title=\"{}\">{}</span>",
            &token.text[..token.text.len() - word.len()],
            token.class,
            escape(&token.title),
            escape(word)
        );
        if token.ends_line {
            out.push('\n');
        }
    }
    out.push_str("</p>\n");
}

fn table(out: &mut String, table: &Table) {
    let grouped = table.groups.iter().any(|group| group.title.is_some());
    let class = if grouped { " class=\"grouped\"" } else { "" };
    let (id, words) = (escape(&table.id), escape(&table.caption));
    // Where what stands above says what it shows, its id alone names it.
    let (label, caption) = match words.is_empty() {
        true => (format!("aria-label=\"{id}\""), String::new()),
        false => (
            format!("aria-labelledby=\"table-{id}\""),
            format!("<caption id=\"table-{id}\"><span>{words}</span></caption>\n"),
        ),
    };
    let _ = writeln!(
        out,
        "<div class=\"scroll\" role=\"region\" tabindex=\"0\" {label}>\n<table{class}>\n{caption}<thead>"
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
        line(out, "p class=\"note\"", &prose(note));
    }
}

fn head(out: &mut String, table: &Table) {
    let levels = table.columns.iter().any(|column| column.over.is_some());
    let class = |numeric: bool| if numeric { " class=\"n\"" } else { "" };
    if levels {
        out.push_str("<tr>");
        let mut rest = table.columns.as_slice();
        while let Some((column, after)) = rest.split_first() {
            let Some(over) = &column.over else {
                let name = escape(&column.name);
                let class = class(column.numeric);
                let _ = write!(out, "<th scope=\"col\" rowspan=\"2\"{class}>{name}</th>");
                rest = after;
                continue;
            };
            let alike = rest.iter().take_while(|one| one.over == column.over);
            let span = alike.count();
            let _ = write!(
                out,
                "<th scope=\"colgroup\" colspan=\"{span}\" class=\"over\">{}</th>",
                escape(over)
            );
            rest = &rest[span..];
        }
        out.push_str("</tr>\n");
    }
    out.push_str("<tr>");
    for column in (table.columns.iter()).filter(|column| !levels || column.over.is_some()) {
        let class = class(column.numeric);
        let _ = write!(
            out,
            "<th scope=\"col\"{class}>{}</th>",
            escape(&column.name)
        );
    }
    out.push_str("</tr>\n");
}

/// Words of a cell from which on they may take several lines, so that columns behind it are
/// not cut off.
const LONG: usize = 30;

fn row(out: &mut String, table: &Table, row: &Row) {
    out.push_str(match row.reference {
        true => "<tr class=\"reference\">",
        false => "<tr>",
    });
    for (index, entry) in row.entries.iter().enumerate() {
        let text = shown(entry);
        let title = titled(entry.title.as_ref());
        if index == 0 {
            let _ = write!(out, "<th scope=\"row\"{title}>{text}</th>");
            continue;
        }
        let column = table.columns.get(index);
        let class = match (column.is_some_and(|one| one.numeric), entry.strong) {
            (true, true) => " class=\"n best\"",
            (true, false) => " class=\"n\"",
            (false, true) => " class=\"best\"",
            (false, false) if entry.text.chars().count() > LONG => " class=\"long\"",
            (false, false) => "",
        };
        let _ = write!(out, "<td{class}{title}>{text}</td>");
    }
    out.push_str("</tr>\n");
}

fn shown(entry: &Entry) -> String {
    let mut text = escape(&entry.text);
    if let Some(anchor) = &entry.anchor {
        text = format!("<a href=\"#{}\">{text}</a>", escape(anchor));
    }
    if let Some(under) = &entry.under {
        text.push_str(&format!("<small>{}</small>", escape(under)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Canvas;

    fn page_of(width: u32) -> String {
        let figure = Figure {
            name: "name".to_owned(),
            title: "title".to_owned(),
            alt: "alt".to_owned(),
            caption: "caption".to_owned(),
            canvas: Canvas::new(width, 40),
        };
        let mut out = String::new();
        picture(&mut out, &figure).unwrap();
        out
    }

    /// Nothing stands over a table that the words above it explain.
    #[test]
    fn a_table_without_a_caption_has_no_empty_one() {
        let drawn = |caption: &str| {
            let mut out = String::new();
            table(&mut out, &Table::new("rates", caption, Vec::new()));
            out
        };
        assert!(drawn("Rates").contains("aria-labelledby=\"table-rates\">\n<table>\n<caption"));
        let bare = drawn("");
        assert!(
            bare.contains("aria-label=\"rates\"") && !bare.contains("caption"),
            "{bare}"
        );
    }

    #[test]
    fn a_wide_picture_scrolls_where_it_does_not_fit() {
        assert!(!page_of(NARROW).contains("min-width"));
        let wide = page_of(NARROW + 42);
        assert!(wide.contains("class=\"scroll\"") && wide.contains("min-width:642px"));
    }
}
