//! From capital to verdicts and reports: of logs, of records, and of engines that are played.

pub(super) mod capital;
pub(super) mod checks;
pub(super) mod claim;
pub(super) mod conclude;
pub(super) mod control;
pub(super) mod counts;
pub(super) mod laws;
pub(super) mod notes;
pub(super) mod opened;
pub(super) mod parts;
pub(super) mod plain;
pub(super) mod records;
pub(super) mod simulate;
pub(super) mod whole;
