//! What an engine does at a position: a rule's laws, or those of a rule with a bug of the table.
//!
//! Nothing here knows a log, or what an engine did.

pub(super) mod bugs;
pub(super) mod engine;
pub(super) mod multi_draft;
pub(super) mod rule;
