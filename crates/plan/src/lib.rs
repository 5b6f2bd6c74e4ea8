//! Optimal plans with one weight a token, and the selection of one of several paths.
//!
//! It knows no problem and no draft law: it takes rows and numbers of drafts.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod plan;
