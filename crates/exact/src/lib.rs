//! Whole problems evaluated by every method, blocks, and the ledger of claims.
//!
//! It knows no log: a theorem is checked by enumeration, not by data.

pub mod block;
pub mod claims;
pub mod evaluate;
