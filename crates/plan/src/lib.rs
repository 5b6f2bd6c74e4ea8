//! Plans by level with one number a token, and the selection of one of several paths.
//!
//! It knows no problem and no draft law: it takes rows and numbers of drafts.

pub mod plan;
