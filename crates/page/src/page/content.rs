//! A page as data: sections of blocks, which each format writes in its own way.

use super::canvas::{Canvas, DrawError};
use super::table::Table;

/// What stands on a page, in the order that it is read.
///
/// Methods write it: [`Page::html`], [`Page::markdown`] and [`Page::text`].
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// What it is about.
    pub title: String,
    /// A line under the title.
    pub subtitle: String,
    /// What stands before the first section.
    pub lead: Vec<Block>,
    /// The sections.
    pub sections: Vec<Section>,
    /// Tables that only papers have: other cuts of what the sections say.
    pub papers: Vec<Table>,
}

/// A part of a page that links lead to.
#[derive(Clone, Debug)]
pub struct Section {
    /// Unique in a page; the target of links.
    pub id: &'static str,
    /// Its title.
    pub title: &'static str,
    /// What a reader finds in it, in one line.
    pub purpose: &'static str,
    /// What it holds.
    pub blocks: Vec<Block>,
    /// Shown in short texts too.
    pub main: bool,
}

/// One thing on a page.
#[derive(Clone, Debug)]
pub enum Block {
    /// Prose.
    Paragraph(String),
    /// What a reader has to know to read the numbers right.
    Caution(String),
    /// A title inside a section.
    Heading(String),
    /// Points, one a line.
    List(Vec<String>),
    /// Words and what they mean.
    Definitions(Vec<(String, String)>),
    /// Names and values.
    Facts(Vec<Fact>),
    /// A table.
    Table(Table),
    /// A picture.
    Figure(Figure),
    /// Running text whose tokens are marked; only pages show the marks.
    Tokens(MarkedText),
    /// Blocks that a page folds away behind a summary.
    Details {
        /// What is seen when they are folded.
        summary: String,
        /// What is folded.
        blocks: Vec<Block>,
    },
    /// Something typed at a prompt.
    Command(String),
    /// Pages beside this one, in its own format.
    Links(Vec<Link>),
}

/// A page beside this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// What is said of it.
    pub text: String,
    /// Its place, seen from this page and without an ending: `log-2/report`.
    pub file: String,
}

impl Link {
    /// The file with an ending, as a relative address.
    pub(super) fn address(&self, ending: &str) -> String {
        let mut out = String::from("./");
        for byte in self.file.bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
                out.push(char::from(byte));
            } else {
                out.push_str(&format!("%{byte:02X}"));
            }
        }
        out.push_str(ending);
        out
    }
}

/// A value with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The name.
    pub name: String,
    /// The value.
    pub value: String,
    /// The whole of a value that is shown shortened.
    pub full: Option<String>,
}

/// What a page was made by: its command, which rows in memory have not, and further words.
pub fn made_by(command: &str, words: String) -> Section {
    let first = match command {
        "" => Block::Paragraph(
            "Made inside another program, of arrays in memory or with a rule of its own: no command \
             makes it again."
                .to_owned(),
        ),
        command => Block::Command(command.to_owned()),
    };
    Section::new("made-by", "Made by", "", [first, Block::Paragraph(words)])
}

/// A picture with what is said of it.
#[derive(Clone, Debug)]
pub struct Figure {
    /// What its files are called, without an ending: `acceptance-by-drafts-t1.0`.
    pub name: String,
    /// Its title.
    pub title: String,
    /// What it shows, for readers who do not see it.
    pub alt: String,
    /// What stands under it.
    pub caption: String,
    /// The picture.
    pub canvas: Canvas,
}

/// A text whose tokens are marked by classes that grow stronger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MarkedText {
    /// What each class means, from none on; empty if another text says it.
    pub legend: Vec<String>,
    /// The tokens in order.
    pub tokens: Vec<MarkedToken>,
}

/// A token of a marked text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkedToken {
    /// How it is shown.
    pub text: String,
    /// Its class; 0 is not marked.
    pub class: usize,
    /// What stands behind it.
    pub title: String,
    /// A new line begins after it.
    pub ends_line: bool,
}

impl Section {
    /// A section that short texts leave out.
    pub fn new(
        id: &'static str,
        title: &'static str,
        purpose: &'static str,
        blocks: impl IntoIterator<Item = Block>,
    ) -> Self {
        Self {
            id,
            title,
            purpose,
            blocks: blocks.into_iter().collect(),
            main: false,
        }
    }

    /// Shown in short texts too.
    pub fn main(mut self) -> Self {
        self.main = true;
        self
    }
}

impl Fact {
    /// A name and a value that is shown whole.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
            full: None,
        }
    }
}

impl Figure {
    /// The file that [`Page::markdown`] expects the SVG in.
    pub fn svg_file(&self) -> String {
        format!("{}.svg", self.name)
    }

    /// The figure as SVG, which follows the reader's light or dark colour scheme.
    ///
    /// # Errors
    /// A drawing back end that fails.
    pub fn svg(&self) -> Result<String, DrawError> {
        self.canvas.svg(&self.title, &self.alt)
    }
}

/// Whether [`Page::files`], or one of those for papers, may have a file of this name, or had one in
/// an earlier version (PNG).
pub fn is_of_a_page(name: &str) -> bool {
    let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    matches!(name, "report.json" | "report.md" | "report.html")
        || ends(&[".svg", ".png"])
        || name.starts_with("figure-") && ends(&[".pdf", ".tex", ".csv"])
        || name.starts_with("table-") && ends(&[".tex", ".csv"])
}

impl Page {
    /// The files of a report, by name: its pictures, `report.json`, which holds `data`, and
    /// `report.md` and `report.html`, which come last and find everything beside them.
    ///
    /// # Errors
    /// A drawing back end that fails.
    pub fn files(&self, mut data: Vec<u8>) -> Result<Vec<(String, Vec<u8>)>, DrawError> {
        data.push(b'\n');
        let mut files = Vec::new();
        for figure in self.figures() {
            files.push((figure.svg_file(), figure.svg()?.into_bytes()));
        }
        files.push(("report.json".to_owned(), data));
        files.push(("report.md".to_owned(), self.markdown().into_bytes()));
        files.push(("report.html".to_owned(), self.html()?.into_bytes()));
        Ok(files)
    }

    /// Every picture, in order.
    pub fn figures(&self) -> Vec<&Figure> {
        fn collect<'a>(blocks: &'a [Block], into: &mut Vec<&'a Figure>) {
            for block in blocks {
                match block {
                    Block::Figure(figure) => into.push(figure),
                    Block::Details { blocks, .. } => collect(blocks, into),
                    _ => {}
                }
            }
        }
        let mut figures = Vec::new();
        collect(&self.lead, &mut figures);
        for section in &self.sections {
            collect(&section.blocks, &mut figures);
        }
        figures
    }
}
