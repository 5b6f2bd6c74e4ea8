//! A page as data: sections of blocks, which each format writes in its own way.

use super::canvas::{Canvas, DrawError};
use super::table::Table;
use super::visible;

/// What stands on a page, in the order that it is read.
///
/// A page opens with its lead alone: title, the first paragraph as a verdict in bold, at most
/// [`OPEN_LINES`] lines, and its first picture beside them. All sections are closed until a reader
/// opens them; printed, they are open.
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
    /// What to do next, in a line that ends the first screen; empty where nothing is.
    pub next: String,
    /// The sections.
    pub sections: Vec<Section>,
    /// Tables that only papers have: other cuts of what the sections say.
    pub papers: Vec<Table>,
}

/// Lines of a lead that stand open under the verdict; the others are folded away.
pub const OPEN_LINES: usize = 3;

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
    /// What is wrong.
    Wrong(String),
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
    /// What a reader may choose between: [`Block::Panel`]s anywhere on the page show what is chosen.
    Choice(Vec<Choice>),
    /// Blocks of one choice. A page shows them while they are chosen, and all where it is printed;
    /// Markdown, terminals and files have what is chosen first.
    Panel(Panel),
}

impl Block {
    /// Prose.
    pub fn paragraph(text: impl Into<String>) -> Self {
        Self::Paragraph(text.into())
    }
}

impl From<Table> for Block {
    fn from(table: Table) -> Self {
        Self::Table(table)
    }
}

impl From<Figure> for Block {
    fn from(figure: Figure) -> Self {
        Self::Figure(figure)
    }
}

/// A choice of one of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// What is chosen: `temperature`.
    pub name: String,
    /// Its options in order.
    pub options: Vec<String>,
    /// The one that is chosen first.
    pub first: usize,
}

/// Blocks that are shown for one option of every [`Choice`].
#[derive(Clone, Debug)]
pub struct Panel {
    /// What is chosen, in words: `T = 1.0, n = 3`.
    pub label: String,
    /// The option of every choice, in the order of [`Block::Choice`].
    pub at: Vec<usize>,
    /// Shown first.
    pub first: bool,
    /// What it holds.
    pub blocks: Vec<Block>,
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

/// Returns what a page was made by: its command, which rows in memory have not, and further words.
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
    /// Its title: what it shows, or what is found in it, which then stands over the picture.
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
        blocks: impl IntoIterator<Item = impl Into<Block>>,
    ) -> Self {
        Self {
            id,
            title,
            purpose,
            blocks: blocks.into_iter().map(Into::into).collect(),
            main: false,
        }
    }

    /// Returns it with more blocks behind the others.
    pub fn with(mut self, blocks: impl IntoIterator<Item = impl Into<Block>>) -> Self {
        self.blocks.extend(blocks.into_iter().map(Into::into));
        self
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

    /// Returns what is found in it, if its title is not that of the picture.
    pub(super) fn finding(&self) -> Option<&str> {
        (self.canvas.heading() != self.title).then_some(&self.title)
    }

    /// The figure as SVG, which follows the reader's light or dark colour scheme.
    ///
    /// # Errors
    /// A drawing back end that fails.
    pub fn svg(&self) -> Result<String, DrawError> {
        self.canvas.svg(&self.title, &self.alt)
    }
}

/// Tells whether [`Page::files`], or one of those for papers, may have a file of this name, or had one in
/// an earlier version (PNG).
pub fn is_of_a_page(name: &str) -> bool {
    let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    matches!(name, "report.json" | "report.md" | "report.html")
        || ends(&[".svg", ".png"])
        || name.starts_with("figure-") && ends(&[".pdf", ".tex", ".csv"])
        || name.starts_with("table-") && ends(&[".tex", ".csv"])
}

/// A lead as pages and Markdown show it.
#[derive(Clone, Debug, Default)]
pub(super) struct Lead {
    /// What comes before the verdict and warns of it.
    pub before: Vec<Block>,
    /// The first paragraph.
    pub verdict: Option<String>,
    /// What there is to see: figures, and what is chosen of them.
    pub seen: Vec<Block>,
    /// What stands under the verdict.
    pub open: Vec<Block>,
    /// Lines that are too many.
    pub folded: Vec<Block>,
}

impl Lead {
    pub(super) fn of(blocks: &[Block]) -> Self {
        Self::within(blocks, OPEN_LINES)
    }

    /// The same where so many lines stand open.
    pub(super) fn within(blocks: &[Block], open: usize) -> Self {
        let mut lead = Self::default();
        let verdict = (blocks.iter()).position(|block| matches!(block, Block::Paragraph(_)));
        let mut lines = open;
        let mut fits = || {
            let fits = lines > 0;
            lines = lines.saturating_sub(1);
            fits
        };
        for (index, block) in blocks.iter().enumerate() {
            match block {
                Block::Figure(_) | Block::Choice(_) | Block::Panel(_) => {
                    lead.seen.push(block.clone());
                }
                Block::Paragraph(text) if verdict == Some(index) => {
                    lead.verdict = Some(text.clone());
                }
                _ if verdict.is_some_and(|at| index < at) => lead.before.push(block.clone()),
                Block::Paragraph(_) => match fits() {
                    true => lead.open.push(block.clone()),
                    false => lead.folded.push(block.clone()),
                },
                Block::List(all) => {
                    let (open, folded) = all.iter().cloned().partition(|_| fits());
                    lead.part([open, folded], Block::List);
                }
                Block::Facts(all) => {
                    let (open, folded) = (all.iter().cloned()).partition(|_| fits());
                    lead.part([open, folded], Block::Facts);
                }
                _ => lead.open.push(block.clone()),
            }
        }
        lead
    }

    /// What is not folded, in the order of a text.
    pub(super) fn shown(self) -> Vec<Block> {
        let verdict = self.verdict.map(Block::Paragraph);
        let parts = [self.before, Vec::from_iter(verdict), self.seen, self.open];
        parts.concat()
    }

    fn part<T>(&mut self, [open, folded]: [Vec<T>; 2], block: fn(Vec<T>) -> Block) {
        if !open.is_empty() {
            self.open.push(block(open));
        }
        if !folded.is_empty() {
            self.folded.push(block(folded));
        }
    }
}

impl Page {
    /// The line that ends a first screen, if it has one: on pages and on a terminal.
    #[must_use]
    pub fn last_line(&self) -> Option<String> {
        (!self.next.is_empty()).then(|| format!("next: {}.", self.next))
    }

    /// The lead without what is seen: cautions, the verdict, and the lines under it.
    pub fn opening(&self) -> (Vec<String>, String, Vec<String>) {
        let verdict = Lead::of(&self.lead).verdict.unwrap_or_default();
        let (mut cautions, mut lines) = (Vec::new(), Vec::new());
        for block in &self.lead {
            match block {
                Block::Caution(text) => cautions.push(visible(text.clone())),
                Block::Paragraph(text) if *text == verdict => {}
                Block::Paragraph(text) => lines.push(visible(text.clone())),
                Block::List(items) => lines.extend(items.iter().cloned().map(visible)),
                Block::Facts(facts) => lines.extend(facts.iter().map(|fact| {
                    let value = fact.full.as_ref().unwrap_or(&fact.value);
                    visible(format!("{}: {value}", fact.name))
                })),
                Block::Table(table) => {
                    let rows = table.groups.iter().flat_map(|group| &group.rows);
                    lines.extend(rows.map(|row| {
                        let entries = row.entries.iter().map(|entry| entry.text.as_str());
                        visible(entries.collect::<Vec<_>>().join(" | "))
                    }));
                }
                _ => {}
            }
        }
        (cautions, visible(verdict), lines)
    }

    /// With its first picture that stands in a section beside the lead instead, so that the first
    /// screen shows it; as it is if the lead has one.
    #[must_use]
    pub fn picture_first(mut self) -> Self {
        if !Lead::of(&self.lead).seen.is_empty() {
            return self;
        }
        let is_figure = |block: &Block| matches!(block, Block::Figure(_));
        let found = (self.sections.iter_mut())
            .find_map(|section| Some((section.blocks.iter().position(is_figure)?, section)));
        if let Some((at, section)) = found {
            self.lead.push(section.blocks.remove(at));
        }
        self.sections.retain(|section| !section.blocks.is_empty());
        self
    }

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

    /// Every picture that is a file of its own, in order: of panels, that which is chosen first.
    pub fn figures(&self) -> Vec<&Figure> {
        fn figure(block: &Block) -> Option<&Figure> {
            match block {
                Block::Figure(figure) => Some(figure),
                _ => None,
            }
        }
        self.blocks().into_iter().filter_map(figure).collect()
    }

    /// Every block in order, with those that are folded away, and of panels those of the one that is
    /// chosen first.
    pub(super) fn blocks(&self) -> Vec<&Block> {
        fn collect<'a>(blocks: &'a [Block], into: &mut Vec<&'a Block>) {
            for block in blocks {
                match block {
                    Block::Details { blocks, .. } => collect(blocks, into),
                    Block::Panel(panel) if panel.first => collect(&panel.blocks, into),
                    other => into.push(other),
                }
            }
        }
        let mut blocks = Vec::new();
        collect(&self.lead, &mut blocks);
        for section in &self.sections {
            collect(&section.blocks, &mut blocks);
        }
        blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A verdict, and no more lines than can be read at once.
    #[test]
    fn a_lead_folds_what_is_too_much() {
        let lines = ["1 2 3 4", "5 6 7 8 9 10", "a", "b", "c", "11 12"];
        let blocks = [
            Block::Caution("first".to_owned()),
            Block::Paragraph("0.5 ± 0.1".to_owned()),
            Block::List(lines.map(str::to_owned).to_vec()),
            Block::Caution("99 98 97 96".to_owned()),
        ];
        let page = Page {
            lead: blocks.to_vec(),
            ..Page::default()
        };
        let (cautions, verdict, all) = page.opening();
        assert_eq!((cautions.len(), verdict.as_str()), (2, "0.5 ± 0.1"));
        assert_eq!(all, lines);
        let lead = Lead::of(&blocks);
        assert_eq!(lead.verdict.as_deref(), Some("0.5 ± 0.1"));
        assert_eq!(lead.before.len(), 1);
        let items = |blocks: &[Block]| match blocks.first() {
            Some(Block::List(items)) => items.clone(),
            _ => Vec::new(),
        };
        assert_eq!(items(&lead.open), ["1 2 3 4", "5 6 7 8 9 10", "a"]);
        assert_eq!(items(&lead.folded), ["b", "c", "11 12"]);
        // A warning is never folded.
        assert_eq!(lead.open.len(), 2);
    }
}
