//! Pages as data, and what draws them: terminal, Markdown, HTML, plots, TeX.
//!
//! It knows nothing of what a page is about: reports fill pages, and pages render.
//!
//! A [`Page`] is sections, each a list of blocks such as paragraphs, [tables](table::Table)
//! and [figures](Figure). It is written as HTML, as Markdown, or as text for a terminal.
//!
//! # Example
//! ```
//! use specgap_page::{Block, Page, Section};
//! use specgap_page::table::{Column, Row, Table};
//!
//! let columns = vec![Column::words("verifier"), Column::number("accepts")];
//! let table = Table::new("rates", "Rates", columns).rows([Row::texts(["rrs", "0.53"])]);
//! let page = Page {
//!     title: "A report".into(),
//!     sections: vec![Section {
//!         main: true,
//!         ..Section::new("rates", "Rates", "How much is accepted.", [Block::Table(table)])
//!     }],
//!     ..Page::default()
//! };
//! assert!(page.html()?.contains("<summary><h2>Rates</h2>"));
//! assert!(page.markdown().contains("| rrs | 0.53 |"));
//! assert!(page.text(80, false).contains("rrs"));
//! # Ok::<(), specgap_page::DrawError>(())
//! ```

pub mod canvas;
mod content;
mod html;
mod latex;
mod markdown;
pub mod paper;
pub mod plot;
mod shown;
pub mod table;
pub mod terminal;
pub mod words;

pub use canvas::{Canvas, DrawError};
pub use content::made_by;
pub use content::{
    Block, Choice, Fact, Figure, Link, MarkedText, MarkedToken, OPEN_LINES, Page, Panel, Section,
    is_of_a_page,
};
pub use shown::{csv, visible};
pub use words::seconds;
pub use words::{agree, counted, disagree};

/// A word and what it means, wrapped.
pub fn definition(word: &str, meaning: &str, width: u16) -> terminal::Text {
    let mut out = terminal::Text::default();
    out.wrap_after(
        terminal::Role::Heading,
        word,
        &format!(": {meaning}"),
        width,
    );
    out
}
