//! Pages as data, and what draws them: terminal, Markdown, HTML, plots, TeX.
//!
//! It knows nothing of what a page is about: reports fill pages, and pages render.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
// No input may panic; clippy.toml lets tests do so.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![deny(clippy::unreachable, clippy::todo, clippy::unimplemented)]

pub mod page;
