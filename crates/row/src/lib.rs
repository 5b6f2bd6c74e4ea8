//! Questions to one row of p and q at any vocabulary: scans, overlaps, rates, with bounds.
//!
//! It knows no law or rule by its name, and no file: laws and rules ask it, by numbers.
//!
//! A [`Workspace`] is loaded with a pair of rows and gives a [`Row`], which answers for any
//! number of drafts n: the optima of the draft laws that have a scan or a closed form, the
//! mass that rejection leaves of p, how often a token drawn from p is among the drafts, how
//! often sequential drafts are all rejected. Laws and verifiers make their own answers of
//! these; a row knows neither them nor a problem. One workspace serves row after row, and
//! the scan allocates nothing from the second on. A [`CutRow`] is a row that lists only some
//! tokens, and bounds what the others can change.
//!
//! # Exactness
//! Every answer is `f64` and enclosed, [`Kind::Enclosed`](specgap_number::known::Kind::Enclosed),
//! with rounding within the bounds, unless it says that it is a mean over random draws.

#[cfg(test)]
mod by_hand_tests;
pub(crate) mod clocks;
mod cut;
mod draft_rank;
mod fixed;
mod hits;
mod memo;
mod overlap;
mod rejections;
mod scan;
mod several_noises;
mod shared_noise;
mod shares;
#[cfg(test)]
mod test_rows;

pub use cut::{
    CUT_ROUNDING, CutAnswer, CutQuestion, CutRow, CutWorkspace, Listed, ListedByDraft, Unlisted,
};
pub use draft_rank::Ranks;
pub use hits::{independent_hits, missed_by, missed_by_up_to};
pub use memo::Memo;
pub use overlap::{common, covered, residual_error};
pub use rejections::RejectionBudget;
pub use rejections::Rejections;
pub use scan::is_doubtful;
pub use scan::{MAX_DRAFTS, RatioCut, Row, RowError, Rows, ScannedRate, Workspace};
pub use several_noises::{masses_of_several_noises, rates_of_several_noises};
pub use shared_noise::{Drafted, SharedNoise};

use specgap_number::known::Known;

/// An answer of a row for n drafts.
pub type Answer = fn(&mut Row<'_>, usize) -> Result<Known, RowError>;

/// A number that is asked of rows, by what answers for it.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// On a full row.
    pub full: Answer,
    /// Bounds, on a row that lists only some tokens.
    pub cut: CutAnswer,
}
