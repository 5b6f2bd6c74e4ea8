//! From capital to verdicts and reports: of logs, of records, and of engines that are played.

pub(super) mod capital;
pub(super) mod causes;
pub(super) mod control;
pub(super) mod counts;
pub(super) mod estimates;
pub(super) mod measure;
pub(super) mod records;
pub(super) mod rounds;
pub(super) mod simulate;
pub(super) mod whole;
