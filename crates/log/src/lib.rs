//! Logs of rows: reading, writing, and import from engines.
//!
//! It knows none of our mathematics: what a row means is for those who read it.

pub mod import;
pub mod log;
