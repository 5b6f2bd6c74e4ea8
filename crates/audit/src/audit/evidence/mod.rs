//! What an engine did, position by position, and the bets on it.
//!
//! Nothing here knows a level, a verdict or a report's shape but for its hard checks.

pub(super) mod bets;
pub(super) mod book;
pub(super) mod order;
pub(super) mod play;
pub(super) mod requests;
pub(super) mod rows;
pub(super) mod steps;
pub(super) mod surprise;
