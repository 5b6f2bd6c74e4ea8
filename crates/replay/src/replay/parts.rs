//! What rows say at a part of the positions, kept for a run over all of them.
//!
//! Everything behind the rows is a sum over texts in their order, so that a run that finds every position's answers in
//! parts does what a run over the rows does, to the bit.

use super::ReplayError;
use super::rows::Read;
use serde::{Deserialize, Serialize};
use specgap_base::side_by_side;
use specgap_base::sorted::Map;
use specgap_log::log::{FileDigest, Log, Span};
use specgap_measure::Part;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Positions that are read before they are handed over.
const POSITIONS: usize = 16_384;

/// What parts have read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Kept {
    /// Answers of spans of positions, by depth and position, by the log's number and the first position.
    spans: BTreeMap<(usize, usize), Vec<Vec<Read>>>,
    /// What each log's files were, by their place in it.
    files: BTreeMap<usize, BTreeMap<usize, FileDigest>>,
}

impl Kept {
    /// Takes those of another part.
    pub fn append(&mut self, other: Self) {
        self.spans.extend(other.spans);
        for (number, files) in other.files {
            self.files.entry(number).or_default().extend(files);
        }
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
                for spans in log.spans(size).chunks((POSITIONS / size).max(1)) {
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
                kept.spans.extend(firsts.zip(found));
                let files = log.digests(&part.of(log.positions()))?;
                kept.files.entry(number).or_default().extend(files);
                Ok(())
            }
            Self::Have(kept) => {
                for (_, span) in kept.spans.range((number, 0)..(number + 1, 0)) {
                    visit(span.clone())?;
                }
                Ok(())
            }
        }
    }

    /// Refuses answers that were read of other files than a log has.
    pub(super) fn check(
        &self,
        number: usize,
        log: &Log,
        files: &Map<usize, FileDigest>,
    ) -> Result<(), ReplayError> {
        if let Self::Have(kept) = self {
            let of_parts = kept.files.get(&number).cloned().unwrap_or_default();
            log.refuse_other_parts(files, &of_parts)?;
        }
        Ok(())
    }

    /// Ends a run that keeps a part.
    pub(super) fn end(&self) -> Result<(), ReplayError> {
        match self {
            Self::Keep(..) => Err(ReplayError::Kept),
            _ => Ok(()),
        }
    }
}
