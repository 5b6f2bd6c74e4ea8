//! What intervals count, and the log that it is of.

use std::sync::Arc;

/// What a log is known by, and its place among others: by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LogKey {
    pub name: String,
    pub digest: String,
}

/// A prompt of a log, or a position of one that names no prompts: what intervals count.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Unit {
    pub log: Arc<LogKey>,
    pub number: i64,
}
