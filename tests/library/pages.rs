//! What a page shows before anything is opened: little enough to be read at once.

use serde::de::DeserializeOwned;
use specgap::gap::GapReport;
use specgap::page::Page;
use specgap::report::{compare, gap, length, paths, tree};
use std::path::Path;

/// The most words that stand open, names of sections and captions included.
const WORDS: usize = 640;
/// The most pixels of a picture's height beside the words, of 480 in width.
const HEIGHT: f64 = 720.0;

/// A report that the repository ships, as its file has it.
fn text_of(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("reports/{name}/report.json"));
    std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

/// The same as data.
pub(crate) fn shipped<T: DeserializeOwned>(name: &str) -> T {
    serde_json::from_str(&text_of(name)).unwrap()
}

/// The page of a report that is shipped.
pub(crate) fn page_of(name: &str) -> Page {
    match name {
        "ladder" => compare::page(&shipped(name)),
        "length" => length::page(&shipped(name)),
        "tree" => tree::page(&shipped(name)),
        "paths" => paths::page(&shipped(name)),
        _ => gap::page(&shipped(name)),
    }
}

pub(crate) const SHIPPED: [&str; 7] = [
    "demo", "smollm2", "qwen", "ladder", "length", "tree", "paths",
];

/// The text without elements of a name, their content included.
fn without(text: &str, open: &str, close: &str) -> String {
    let (mut out, mut depth, mut rest) = (String::new(), 0_usize, text);
    loop {
        let next = [rest.find(open), rest.find(close)];
        let (at, opens) = match next {
            [Some(a), Some(b)] if a < b => (a, true),
            [_, Some(b)] => (b, false),
            [Some(a), None] => (a, true),
            [None, None] => break,
        };
        if depth == 0 {
            out.push_str(&rest[..at]);
        }
        let length = if opens { open.len() } else { close.len() };
        depth = if opens { depth + 1 } else { depth - 1 };
        rest = &rest[at + length..];
    }
    assert_eq!(depth, 0, "{open} is closed");
    out + rest
}

/// What is between tags.
fn words(html: &str) -> String {
    let mut out = String::new();
    let mut inside = false;
    for letter in html.chars() {
        match letter {
            '<' => {
                inside = true;
                out.push(' ');
            }
            '>' => inside = false,
            letter if !inside => out.push(letter),
            _ => {}
        }
    }
    out
}

/// A part of the page, from a start to an end.
fn between<'a>(html: &'a str, from: &str, to: &str) -> &'a str {
    let start = html.find(from).unwrap_or_else(|| panic!("{from}"));
    let end = html[start..].find(to).map_or(html.len(), |at| start + at);
    &html[start..end]
}

/// The body with all sections closed and what is not chosen first left out.
fn closed(html: &str) -> String {
    let body = between(html, "<body>", "</body>");
    let summaries: Vec<String> = body
        .split("<summary>")
        .skip(1)
        .map(|part| words(part.split("</summary>").next().unwrap_or_default()))
        .collect();
    without(body, "<details", "</details>") + &summaries.join(" ")
}

#[test]
fn pages_open_with_no_more_than_can_be_read_at_once() {
    for name in SHIPPED {
        let html = page_of(name).html().unwrap();
        for part in html.split("<details").skip(1) {
            let tag = part.split('>').next().unwrap_or_default();
            assert!(!tag.contains("open"), "{name}: <details{tag}>");
        }
        let open = closed(&html);
        // That of what to change, of five rows.
        let rows = open.matches("<tr").count();
        assert!(
            open.matches("<table").count() <= 1 && rows <= 6,
            "{name}: {rows} rows stand open"
        );
        // Of panels one is shown; they have the same words.
        let panels = open.matches("class=\"panel").count().max(1);
        let text = without(&open, "<svg", "</svg>");
        let (seen, rest) = match text.find("class=\"seen\"") {
            Some(_) => (
                between(&text, "class=\"seen\"", "class=\"lines\"").to_owned(),
                text.replace(between(&text, "class=\"seen\"", "class=\"lines\""), ""),
            ),
            None => (String::new(), text),
        };
        let count = |text: &str| words(text).split_whitespace().count();
        let all = count(&rest) + count(&seen).div_ceil(panels);
        assert!(all <= WORDS, "{name}: {all} words stand open");
        assert!(html.matches("class=\"part\"").count() <= 24, "{name}");
    }
}

#[test]
fn first_screens_have_a_verdict_and_a_picture() {
    for name in SHIPPED {
        let html = page_of(name).html().unwrap();
        let open = closed(&html);
        let verdict = words(between(&open, "class=\"verdict\"", "</p>"));
        assert!(!verdict.is_empty(), "{name}");
        // Several logs have no picture but those of `scripts/ladder.py`.
        if name == "ladder" {
            continue;
        }
        let picture = between(&html, "class=\"seen\"", "</svg>");
        let size = between(picture, "viewBox=\"0 0 ", "\">");
        let mut size = size["viewBox=\"0 0 ".len()..].split([' ', '"']);
        let mut next = || size.next().unwrap().parse::<f64>().unwrap();
        let (width, height) = (next(), next());
        assert!(
            480.0 * height / width <= HEIGHT,
            "{name}: {width} by {height}"
        );
    }
}

/// What is shipped, pictures too, is what the page says today; SPECGAP_WRITE_DOCUMENTS=1 writes it.
#[test]
fn shipped_markdown_is_that_of_the_page() {
    // That of the ladder has pictures of its own (`scripts/ladder-report`).
    for name in SHIPPED.into_iter().filter(|name| *name != "ladder") {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("reports/{name}"));
        let page = page_of(name);
        let mut made = vec![("report.md".to_owned(), page.markdown())];
        let figures = page.figures().into_iter();
        made.extend(figures.map(|one| (one.svg_file(), one.svg().unwrap())));
        for (file, text) in made {
            let path = folder.join(file);
            if std::env::var_os("SPECGAP_WRITE_DOCUMENTS").is_some() {
                std::fs::write(&path, &text).unwrap();
            }
            let shipped = std::fs::read_to_string(&path).unwrap_or_default();
            let path = path.display();
            assert!(
                shipped == text,
                "{path}: SPECGAP_WRITE_DOCUMENTS=1 writes it"
            );
        }
    }
}

/// Commands stand without the folders of the machine that ran them.
#[test]
fn shipped_reports_name_no_folder_of_a_machine() {
    for name in SHIPPED {
        let text = text_of(name);
        let mut words = text.split_whitespace().map(|word| word.trim_matches('"'));
        let found = words.find(|word| word.len() > 1 && word.starts_with('/'));
        assert_eq!(found, None, "{name}");
    }
}

/// Every place has its picture and its table, and without a choice none is hidden.
#[test]
fn what_is_not_chosen_is_hidden_on_screens_and_on_paper() {
    let html = page_of("smollm2").html().unwrap();
    let report: GapReport = shipped("smollm2");
    let mut places: Vec<(String, usize)> = (report.cells.iter())
        .map(|cell| (format!("{:?}", cell.temperature), cell.drafts))
        .collect();
    places.sort();
    places.dedup();
    assert!(places.len() > 4);
    assert_eq!(html.matches("class=\"panel ").count(), 2 * places.len());
    for (at, n) in &places {
        assert!(html.contains(&format!("aria-label=\"T = {at}, n = {n}\"")));
    }
    let style = between(&html, "<style>", "</style>");
    let hides = style.matches("main:has(#choice-").count();
    assert_eq!(hides, html.matches("type=\"radio\"").count());
    let media =
        |place: usize| style[..place].matches('{').count() - style[..place].matches('}').count();
    assert_eq!(
        media(style.find("main:has").unwrap()),
        0,
        "not within a rule for one medium"
    );
    assert_eq!(html.matches(" checked/>").count(), 2);
}
