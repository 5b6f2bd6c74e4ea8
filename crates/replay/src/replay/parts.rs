//! What rows say at a part of the positions, kept for a run over all of them.
//!
//! Everything behind the rows is a sum over texts in their order, so that a run that finds every position's answers in
//! parts does what a run over the rows does, to the bit.

use super::ReplayError;
use super::rows::Read;
use serde::{Deserialize, Serialize};
use specgap_base::side_by_side;
use specgap_log::log::{Log, Span};
use specgap_measure::Part;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Answers of spans of positions, by depth and position, by the log's number and the first position.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Kept(BTreeMap<(usize, usize), Vec<Vec<Read>>>);

impl Kept {
    /// Takes those of another part.
    pub fn append(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}

/// Whose rows are read.
#[derive(Clone, Debug, Default)]
pub enum Parts {
    /// All, for a report.
    #[default]
    Whole,
    /// Those of a part, and kept: no report follows, but [`ReplayError::Kept`].
    Keep(Part, Arc<Mutex<Kept>>),
    /// None: all have been kept.
    Have(Arc<Kept>),
}

/// Settings that differ in whose rows are read ask the same.
impl PartialEq for Parts {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Parts {
    /// Hands over the answers of all positions of a log, span by span, in order, and keeps none of them;
    /// where those of a part are kept, none are handed over.
    pub(super) fn each(
        &self,
        number: usize,
        log: &Log,
        size: usize,
        work: impl Fn(&Span) -> Result<Vec<Vec<Read>>, ReplayError> + Sync,
        visit: &mut dyn FnMut(Vec<Vec<Read>>) -> Result<(), ReplayError>,
    ) -> Result<(), ReplayError> {
        match self {
            Self::Whole => {
                // So many that every core has its share, and few beside a long text.
                for spans in log.spans(size).chunks(1024) {
                    for span in side_by_side::each_or_stop(spans, &work)? {
                        visit(span)?;
                    }
                }
                Ok(())
            }
            Self::Keep(part, kept) => {
                let spans = log.spans_of(part.of(log.positions()), size);
                let found = side_by_side::each_or_stop(&spans, work)?;
                let firsts = spans.iter().map(|span| (number, span.positions().start));
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.0.extend(firsts.zip(found));
                Ok(())
            }
            Self::Have(kept) => {
                let mut next = 0;
                for ((_, first), span) in kept.0.range((number, 0)..(number + 1, 0)) {
                    if *first != next {
                        break;
                    }
                    next += span.first().map_or(0, Vec::len);
                    visit(span.clone())?;
                }
                if next == log.positions() {
                    return Ok(());
                }
                Err(ReplayError::of_log(
                    log,
                    format!(
                        "has {} positions, and what was kept of it ends at {next}: it is another log than the \
                         parts are of",
                        log.positions()
                    ),
                ))
            }
        }
    }

    /// Ends a run that keeps a part.
    pub(super) fn end(&self) -> Result<(), ReplayError> {
        match self {
            Self::Keep(..) => Err(ReplayError::Kept),
            _ => Ok(()),
        }
    }
}
