//! Whole problems evaluated by every method, blocks, and the ledger of claims.
//!
//! It knows no log: a theorem is checked by enumeration, not by data.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
// No input may panic; clippy.toml lets tests do so.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![deny(clippy::unreachable, clippy::todo, clippy::unimplemented)]

pub mod block;
pub mod claims;
pub mod evaluate;
