//! Does an engine sample what it claims?
//!
//! A log has rows p and q, the drafts of an engine, which of them it accepted and what came
//! out. [`audit`] tests four things apart: the law of the drafts, their acceptance, what
//! replaces a rejected draft, and the law of what comes out. The evidence is an e-value: the
//! capital of bets that cannot grow on average while the engine does what it says, up to a
//! tolerance. `docs/theory/audit.md` has the statistics with proofs.
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

mod bets;
mod bugs;
mod compact;
mod control;
mod data;
mod engine;
mod judge;
mod measure;
mod play;
mod requests;
mod rows;
mod rule;
mod siblings;
mod simulate;
mod steps;
#[cfg(test)]
mod tests;
mod verdict;

pub use compact::{Record, Records, audit_records};
pub use control::negative_control;
pub use data::{
    AuditReport, Claimed, Conclusion, FlaggedGroup, HardCheck, MinimumN, Outcome, PartReport, Plan,
    RequestsReport, Seeds, Settings, Suspect, Tampering,
};
pub use judge::Part;
pub use measure::{audit, claimed_of, plan};
pub use rule::Rule;
pub use simulate::{BugName, SimulatedLog, SimulatedRun, Simulator};

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
    /// A position cannot be audited.
    #[error("{log}: position {position}: {message}")]
    Position {
        /// The log.
        log: PathBuf,
        /// The position's number in it, from 0.
        position: usize,
        /// What is wrong, and the cure.
        message: String,
    },
    /// A line of a record file is refused.
    #[error("{file}: line {line}: {message}")]
    Record {
        /// The file.
        file: PathBuf,
        /// From 1, as editors count.
        line: usize,
        /// Column, what is wrong, and the cure.
        message: String,
    },
}

fn refused_at(log: &Log, position: usize, message: String) -> AuditError {
    AuditError::Position {
        log: log.path().to_owned(),
        position,
        message,
    }
}
