//! Pages as data, and what draws them: terminal, Markdown, HTML, plots, TeX.
//!
//! It knows nothing of what a page is about: reports fill pages, and pages render.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod page;
