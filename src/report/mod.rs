//! Results as people and programs read them: pure functions from a result to
//! text. Nothing here computes.
//!
//! A report becomes a [`page::Page`]: sections, each a list of blocks such as
//! paragraphs, [tables](table::Table) and [figures](page::Figure). The page is data.
//! It is written as HTML, as Markdown, or as text for a terminal, and no format knows
//! what a page is about. Each report has one place that decides what stands on its page
//! and in which order.

pub mod audit;
pub mod block;
mod canvas;
mod cautions;
mod certainty;
pub mod check;
pub mod compare;
mod draft_paths;
pub mod gap;
mod html;
pub mod length;
mod markdown;
pub mod page;
pub mod paper;
pub mod paths;
pub mod plot;
mod replayed;
pub mod solve;
pub mod table;
mod terminal;
mod text;
pub mod tree;
pub mod verify;

pub use canvas::{Canvas, DrawError};
pub(crate) use text::{agree, counted, disagree};
pub use text::{exact_or_decimal, seconds};

pub use crate::evaluate::JSON_SCHEMA;

/// A word and what it means, wrapped.
pub(crate) fn definition(word: &str, meaning: &str, width: u16) -> String {
    let mut out = String::new();
    let _ = text::wrap(&mut out, &format!("{word}: {meaning}"), width);
    out
}
