//! alpha* of one position after another at real vocabularies, without a sort.
//!
//! A [`Workspace`] is for the inner loop over logged rows. It is loaded with a
//! pair of rows, passes over them once, and then answers for any number of drafts n and for
//! three laws of the drafts. Nothing is allocated from the second position on.
//!
//! ```text
//! alpha* = 1 + min over prefixes H, in order of falling q/p, of [ P(H) - Q(H) ]
//! ```
//!
//! `docs/theory/scan.md` proves that the minimum is found without sorting all tokens, says what is
//! enclosed, and counts the roundings.
//!
//! # Source
//! Hu et al., "Towards optimal multi-draft speculative decoding", eq. 8 and Theorems 3 to 6,
//! for the scan. The buckets and the bounds are this crate's, and so is the theorem for
//! sequential draws (`docs/theory/sequential-draws.md`).

mod buckets;
#[cfg(test)]
mod by_hand_tests;
mod chords;
mod distinct;
mod iid;
mod lanes;
mod minimum;
mod race;
mod residual;
mod sequential;
mod symmetric;

pub use buckets::{MAX_DRAFTS, RowError};
pub use minimum::ScannedRate;
pub use minimum::is_doubtful;
pub use specgap_number::distribution::{RatioCut, Rows};

use crate::memo::Memo;
use buckets::Buckets;
use chords::{Chords, by_chords};
use distinct::{Distinct, by_wide_numbers};
use iid::Iid;
use minimum::{Candidates, by_buckets};
use race::Race;
use sequential::Sequential;
use symmetric::Symmetric;

/// A workspace for pairs of rows, loaded with one after another.
///
/// # Example
/// ```
/// use specgap_number::distribution::Softmax;
/// use specgap_row::{Rows, Workspace};
/// let (mut p, mut q, mut scan) = (Vec::new(), Vec::new(), Workspace::new());
/// let log = [([0.0f32, 0.0], [3f32.ln(), 0.0]), ([1.0, 0.0], [1.0, 0.0])];
/// let mut rates = Vec::new();
/// for (target, draft) in &log {
///     let softmax = Softmax::default();
///     softmax.fill(target, &mut p)?;
///     softmax.fill(draft, &mut q)?;
///     let mut position = scan.load(Rows { target: &p, draft: &q }, 8)?;
///     rates.push(position.with_replacement(2)?.rate);
/// }
/// assert!((rates[0].value() - 0.9375).abs() < 1e-7); // ln 3 is rounded to f32
/// assert!(rates[0].width() < 1e-12);
/// assert_eq!(rates[1].value(), 1.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Workspace {
    buckets: Buckets,
    candidates: Candidates,
    symmetric: Symmetric,
    race: Race,
    chords: Chords,
    most_drafts: usize,
    memo: Memo,
}

impl Workspace {
    /// An empty workspace. It grows to about 20 bytes a token, and 80 KiB.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts the tokens of a pair of rows into buckets, for questions with up to
    /// `most_drafts` drafts.
    ///
    /// # Errors
    /// Rows that are empty, of different lengths, or not distributions; and
    /// `most_drafts` outside 1..=[`MAX_DRAFTS`].
    ///
    /// # Complexity
    /// O(V): one pass, a division and two split sums a token.
    pub fn load<'a>(&'a mut self, rows: Rows<'a>, most_drafts: usize) -> Result<Row<'a>, RowError> {
        let limit = MAX_DRAFTS;
        if !(1..=limit).contains(&most_drafts) {
            let drafts = most_drafts;
            return Err(RowError::Drafts(drafts, limit));
        }
        self.most_drafts = most_drafts;
        self.memo.forget();
        self.symmetric.forget();
        self.race.forget();
        self.buckets.load(rows)?;
        Ok(Row { scan: self, rows })
    }
}

/// A pair of rows that has been put into buckets; answers one question a call.
#[derive(Debug)]
pub struct Row<'a> {
    scan: &'a mut Workspace,
    rows: Rows<'a>,
}

impl<'a> Row<'a> {
    /// Returns what is kept between questions.
    pub fn memo(&mut self) -> &mut Memo {
        &mut self.scan.memo
    }

    /// The rows.
    pub fn rows(&self) -> Rows<'a> {
        self.rows
    }

    /// The most drafts that were loaded for.
    pub fn most_drafts(&self) -> usize {
        self.scan.most_drafts
    }

    /// Tokens with q above 0.
    pub fn draft_support(&self) -> usize {
        self.scan.buckets.support()
    }

    /// The sums that the rows' entries are to be divided by.
    pub fn totals(&self) -> (f64, f64) {
        self.scan.buckets.totals()
    }

    fn check(&self, drafts: usize) -> Result<(), RowError> {
        let limit = self.scan.most_drafts;
        if (1..=limit).contains(&drafts) {
            Ok(())
        } else {
            Err(RowError::Drafts(drafts, limit))
        }
    }

    /// alpha* for n = `drafts` independent draws from q: Q(H) = q(H)^n.
    ///
    /// # Exactness
    /// Enclosed within (20 n + 80) 2^-53 to both sides, 3e-14 at n = 8.
    ///
    /// # Errors
    /// `drafts` is 0 or more than was loaded for.
    ///
    /// # Complexity
    /// O(buckets), and O(m log m) for the m tokens of buckets that have to be
    /// sorted; the first such call after a load passes over the buckets' numbers of
    /// all V tokens.
    pub fn with_replacement(&mut self, drafts: usize) -> Result<ScannedRate, RowError> {
        self.check(drafts)?;
        let scan = &mut *self.scan;
        let buckets = &mut scan.buckets;
        let (_, total) = buckets.totals();
        let chain = Iid { drafts, total };
        Ok(by_buckets(buckets, self.rows, &mut scan.candidates, chain))
    }

    /// alpha* for n = `drafts` independent draws from q given that all differ:
    /// Q(H) = e_n(q on H) / e_n(q), e_n the elementary symmetric polynomial. If
    /// fewer than n tokens have q > 0, the draw is all of them.
    ///
    /// It is **not** the law of [`Self::without_replacement`].
    ///
    /// # Exactness
    /// Enclosed; the bound is counted from what was computed. For n <= 8 and V <= 2^18
    /// it is within 4e-13 to both sides on rows like those of language models, and
    /// within 1e-12 on any.
    ///
    /// # Errors
    /// `drafts` is 0 or more than was loaded for.
    ///
    /// # Complexity
    /// The first call after a load multiplies all tokens, for the largest n loaded for: O(n)
    /// a token and O(n^2) a bucket. Then as [`Self::with_replacement`]. Rows so peaked that
    /// e_n leaves the range of `f64` take a sort and O(V n) operations on numbers of
    /// unbounded range.
    ///
    /// # Source
    /// Hu et al., Theorems 3 to 6, who compute Q by this recurrence; `docs/theory/scan.md` counts
    /// its roundings.
    pub fn distinct_conditioned(&mut self, drafts: usize) -> Result<ScannedRate, RowError> {
        self.check(drafts)?;
        let draws = drafts.min(self.scan.buckets.support());
        if draws <= 1 {
            return self.with_replacement(drafts);
        }
        let scan = &mut *self.scan;
        let (buckets, symmetric) = (&mut scan.buckets, &mut scan.symmetric);
        if !symmetric.prepare(scan.most_drafts, draws, self.rows.draft, buckets) {
            return Ok(by_wide_numbers(buckets, self.rows, draws));
        }
        let chain = Distinct::new(symmetric, draws);
        Ok(by_buckets(buckets, self.rows, &mut scan.candidates, chain))
    }

    /// alpha* for n = `drafts` sequential draws without replacement, each from q
    /// renormalised over the tokens that are left (the Plackett-Luce law). If fewer
    /// than n tokens have q > 0, the draw is all of them.
    ///
    /// # Exactness
    /// Enclosed; the bound is counted from what was computed. For n <= 8 and V <= 2^18 it
    /// is within 5e-11 to both sides: quadrature 1e-12, the rest rounding. Closed form at
    /// n = 2, within 5e-13. `lower` is further off only where probabilities below 1e-280
    /// decide: where the order of tokens with q/p below 2^-1000 matters, or less than
    /// 5e-305 of q lies outside a prefix with fewer than n tokens above 1e-284.
    ///
    /// # Errors
    /// `drafts` is 0 or more than was loaded for.
    ///
    /// # Complexity
    /// O(V) the first time after a load. Then Q is asked for at some ten prefixes, which
    /// cost some 60 nodes (growing with n and with the logarithm of the mass outside) times
    /// O(n) for each of the heavier tokens; and a pass over the buckets each.
    ///
    /// # Source
    /// `docs/theory/sequential-draws.md` proves that some prefix of the chain is optimal under
    /// this law; the race integral is this crate's.
    pub fn without_replacement(&mut self, drafts: usize) -> Result<ScannedRate, RowError> {
        self.check(drafts)?;
        let draws = drafts.min(self.scan.buckets.support());
        if draws <= 1 {
            return self.with_replacement(drafts);
        }
        let scan = &mut *self.scan;
        let buckets = &mut scan.buckets;
        let chain = Sequential::new(&mut scan.race, buckets, self.rows, draws);
        Ok(by_chords(buckets, self.rows, &mut scan.chords, chain))
    }
}
