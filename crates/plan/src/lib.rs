//! Plans by level with one number a token, and the selection of one of several paths.
//!
//! It knows no problem and no draft law: it takes rows and numbers of drafts.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
// No input may panic; clippy.toml lets tests do so.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![deny(clippy::unreachable, clippy::todo, clippy::unimplemented)]

pub mod plan;
