//! Results as people and programs read them: pure functions from a result to
//! text. Nothing here computes.

pub mod block;
pub mod check;
pub mod compare;
pub mod gap;
mod number;
pub mod plot;
mod scene;
pub mod solve;
pub mod verify;

pub use number::{exact_or_decimal, seconds};

/// Version of the JSON that commands print.
pub const JSON_SCHEMA: u32 = 1;
