//! Reports of `specgap gap`: pictures, a self-contained page, Markdown, and text
//! for a terminal, all from a [`GapReport`](crate::gap::GapReport).
//!
//! Every number stands with how it came about: exact, enclosed (rounding and all
//! that was left out are within the width), or Monte Carlo. Means are shown rounded; all digits are behind them in the page, and in
//! `report.json`.
//!
//! # Example
//! ```no_run
//! use specgap::gap::GapReport;
//! use specgap::report::gap::{html, markdown, pictures};
//!
//! let report: GapReport = serde_json::from_slice(&std::fs::read("report.json")?)?;
//! let pictures = pictures(&report)?;
//! std::fs::write("report.html", html(&report, &pictures))?;
//! std::fs::write("report.md", markdown(&report, &pictures))?;
//! for picture in &pictures {
//!     std::fs::write(picture.svg_file(), &picture.svg)?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod html;
mod markdown;
mod plots;
mod provenance;
mod strip;
mod tables;
mod terminal;
mod words;

pub use html::html;
pub use markdown::markdown;
pub use plots::pictures;
pub use terminal::text;

/// A picture of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// What its files are called, without an ending: `acceptance-by-drafts-t1.0`.
    pub name: String,
    /// As SVG, which follows the reader's light or dark colour scheme.
    pub svg: String,
    /// As PNG on white, two pixels for each of the SVG.
    pub png: Vec<u8>,
    /// What it shows, for readers who do not see it.
    pub alt: String,
    /// What stands under it.
    pub caption: String,
}

impl Picture {
    /// The file that [`markdown()`] expects the SVG in.
    pub fn svg_file(&self) -> String {
        format!("{}.svg", self.name)
    }
}
