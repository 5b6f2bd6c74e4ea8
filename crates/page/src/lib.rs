//! Pages as data, and what draws them: terminal, Markdown, HTML, plots, TeX.
//!
//! It knows nothing of what a page is about: reports fill pages, and pages render.

pub mod page;
