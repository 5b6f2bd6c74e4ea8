//! A whole audit of a log: its verdicts, and then what explains them.

use crate::audit::AuditError;
use crate::audit::data::{AuditReport, PartReport, Settings};
use crate::audit::verdict::causes::cause;
use crate::audit::verdict::measure::judged_log;
use specgap_log::log::Log;

/// Audits a log. `command` is what is printed as the command; `progress` is told of positions
/// as they are done.
///
/// The e-values are functions of the log and the settings alone, the same to the bit on any
/// number of threads.
///
/// # Errors
/// Logs without `drafts` and `output`; rounds that contradict themselves; rows that are refused;
/// rows that list some tokens only, where the rule needs all; settings out of range.
///
/// # Complexity
/// O(N B V) for B bugs (about 20), with top-k, top-p or min-p a sort of each row; memory
/// O(V B + N).
pub fn audit(
    log: &Log,
    settings: &Settings,
    command: &str,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<AuditReport, AuditError> {
    let (opened, mut report) = judged_log(log, settings, command, progress)?;
    if report.fits.is_none() {
        report.cause = cause(&opened, settings, &report)?;
    }
    if let Some(cause) = &report.cause {
        let explained = |part: &&mut PartReport| cause.parts.contains(&part.part);
        for part in report.parts.iter_mut().filter(explained) {
            part.suspect = Some(cause.name.clone());
        }
    }
    Ok(report)
}
