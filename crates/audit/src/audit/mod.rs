//! Does an engine sample what it claims?
//!
//! A log has rows p and q, the drafts of an engine, which of them it accepted and what came
//! out. [`audit`] tests four things apart: the law of the drafts, their acceptance, what
//! replaces a rejected draft, and the law of what comes out. The evidence is an e-value: the
//! capital of suspects, other laws that the engine may follow, each the likelihood ratio of its
//! law to the claim. `docs/theory/audit.md` has the statistics with proofs.
//!
//! Words of the field: the *null* is the claim, up to stated noise; the *alternatives* are the
//! suspects, with sizes that are fitted; an *e-value* is the *wealth* (here capital) that 1 has
//! come to. Four folders, of which each knows those above it alone:
//!
//! | folder | what it is |
//! | --- | --- |
//! | `model` | what an engine does: a rule, or a rule with a bug, as laws on one position |
//! | `evidence` | what a log says that it did; bets on records, which have no rows |
//! | `suspects` | the laws that it may follow in place of the claim, and the capital of each |
//! | `verdict` | from capital to a report: of logs, of records, of simulated and tampered runs |
//!
//! ```no_run
//! use specgap_audit::audit::{Rule, Settings, audit};
//! use specgap_log::log::Log;
//! let log = Log::open("engine-log".as_ref())?;
//! let report = audit(&log, &Settings::new(Rule::TOKEN), "", &|_| {})?;
//! for part in &report.parts {
//!     println!("{}: {:?}, e-value {}", part.part, part.verdict, part.e_value);
//! }
//! # Ok::<(), specgap_audit::audit::AuditError>(())
//! ```

mod beside;
mod data;
mod evidence;
mod model;
mod outcome;
mod suspects;
#[cfg(test)]
mod tests;
mod verdict;

pub use beside::{Cause, Counts, CountsReport, PlaceCount, Surprise};
pub use data::{
    AuditReport, Capital, Claimed, Conclusion, Excluded, FlaggedGroup, HardCheck, PartReport,
    RequestsReport, Seeds, Settings, Suspect, Tampering,
};
pub use evidence::book::Part;
pub use model::rule::Rule;
pub use outcome::Outcome;
pub use suspects::family::causes;
pub use verdict::claim::claimed_of;
pub use verdict::control::negative_control;
pub use verdict::counts::audit_counts;
pub use verdict::laws::Evidence;
pub use verdict::plain::{PLAIN_TEXT, held_to_plain};
pub use verdict::records::{Record, Records, audit_records};
pub use verdict::simulate::{BugName, SimulatedLog, Simulator};
pub use verdict::whole::{audit, audit_read};

use specgap_log::log::{Log, LogError};
use std::path::PathBuf;

/// Why a log cannot be audited.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// A log is refused.
    #[error(transparent)]
    Rows(#[from] LogError),
    /// What a log lacks, or settings that do not fit it.
    #[error("{0}")]
    Log(String),
    /// A position cannot be audited: the log; the position's number in it, from 0; what is wrong,
    /// and the cure.
    #[error("{0}: position {1}: {2}")]
    Position(PathBuf, usize, String),
    /// A line of a record file is refused: the file; from 1, as editors count; column, what is
    /// wrong, and the cure.
    #[error("{0}: line {1}: {2}")]
    Record(PathBuf, usize, String),
}

fn refused_at(log: &Log, position: usize, message: String) -> AuditError {
    AuditError::Position(log.path().to_owned(), position, message)
}
