//! alpha* of one position after another at real vocabularies, without a sort.
//!
//! For the inner loop over logged rows: a [`BucketScan`] is a workspace that is
//! loaded with a pair of rows, passes over them once, and then answers for any
//! number of drafts n and for three laws of the drafts. Nothing is allocated from
//! the second position on.
//!
//! # The minimum without a sort
//!
//! For `with-replacement`, `distinct-conditioned` and `without-replacement`
//!
//! ```text
//! alpha* = 1 + min over prefixes H of [ P(H) - Q(H) ]
//! ```
//!
//! with the tokens in the order of falling r = q/p (Hu et al., Theorems 3 to 6, for the
//! first two; `docs/sequential-draws.md` for the third).
//! Tokens are put into buckets by the leading bits of r: 16 buckets an octave,
//! 64 octaves, and whatever lies outside in the first and the last. Prefixes that
//! end with a bucket need sums over buckets only. For those that end inside a
//! bucket, write x = q(H). Along the chain
//!
//! - P is convex in x, with slopes 1/r, in the bucket between a = 1/r_high and
//!   b = 1/r_low; so it lies above the lines of slopes a and b through its values at
//!   the bucket's start and end;
//! - Q is convex in x (this is q-convexity), so it lies below its chord over the
//!   bucket, of slope c. Nothing has to be known of Q outside the bucket for that.
//!
//! So if a >= c or b <= c, then P - Q is least at an end of the bucket. In the few
//! buckets that are left, it is no less than at the ends or where the two lines meet.
//! There, Q is known with replacement, and on the chord at most; distinct,
//! it is also at most what infinitely many tokens of the same mass would make it,
//! sum_k e_{n-k}(H) y^k/k! after mass y. That leaves three points to evaluate for a
//! lower bound. A bucket whose bound is below the best
//! value found is sorted and walked token by token. Tokens of equal rounded r need
//! no order: among them P is linear and Q convex, so P - Q is least at an end.
//!
//! All of this holds for any order within the bucket, as Q is convex along any chain.
//! That matters for ratios so small that rounding may have changed their order: a
//! bucket that is passed over is passed over with them, and in one that is walked
//! P - Q among them is no less than P before the first of them, less 1.
//!
//! # What is enclosed
//!
//! The rows are `f64` numbers p_0..p_{V-1} and q_0..q_{V-1}; the problem is that of
//! the distributions `p_i / sum p` and `q_i / sum q`, with the *exact* sums. It is
//! the same problem that [`crate::distribution::Target::new`] and
//! [`crate::distribution::Draft::new`] make of these rows. (What rounding in a
//! softmax did to the rows before is not in the enclosure; see
//! [`crate::distribution::Softmax::fill`]. By |P(H) - P'(H)| <= TV(p, p') and
//! |Q(H) - Q'(H)| <= n TV(q, q') it moves alpha* with replacement by at most
//! TV(p, p') + n TV(q, q').)
//!
//! # Rounding
//!
//! u = 2^-53. *Sums.* Every entry v is split as v = h + l with h = (v + 1) - 1, a
//! multiple of 2^-52, and |l| <= 2^-52, both without error. Sums of the h are
//! exact, since they are multiples of 2^-52 below 4; sums of the l over V <= 2^32
//! tokens err by less than V^2 2^-104. So P(H)/sum p and q(H)/sum q come out within
//! 4u relative. *With replacement*, x^n by n - 1 products of x within 4u has an
//! error of at most 5n u, the difference P - Q one of (5n + 6) u. *Lines and chords* are
//! off by no more than their ends, and a and b by a few u relative: where a bucket is
//! passed over wrongly, P - Q falls below its bound by at most these. The enclosure is
//! twice the sum of all of these, to both sides: (20 n + 80) u.
//!
//! # Rounding, distinct
//! e_k(H) comes out within f u e_k(whole vocabulary), for the number f that is counted
//! below; so Q = e_n(H)/e_n errs by 2f u, and so does a point of a chord. Everything
//! else (P, the lines, the differences) stays below 120 u. The enclosure is
//! (2f + 120) u to both sides.
//!
//! *Tokens multiplied out.* Polynomials have non-negative coefficients, and that of
//! degree 0 is 1 exactly. If all others of two factors err by at most a k u relative, k
//! the degree, then those of the product err by (a + 2) k u: the errors of degrees j and
//! k - j add up to a k, and there are k + 1 <= 2k roundings. A product of m tokens one
//! after the other errs by (m + k) u. So f = n a with a = m + 1 and 2 for each product
//! on the way to a prefix; m <= 64, and a tree of three levels keeps the way short.
//!
//! A walk of w tokens after a prefix takes them 32 at a time, and joins these in two levels of
//! sqrt(w/32) + 1 products: a is max(a, 33 + 2 sqrt(w/32) + 2) + 2 sqrt(w/32) + 6 then.
//!
//! *Underflow.* A product that underflows errs by 2^-1075, times coefficients of other tokens,
//! which are at most the largest e_k of all. e_n is tested to be above 2^-980 of that one. So
//! V n such products are below 2^-56 of e_n. Rows that fail the test are scaled by a power of
//! two; if that does not help, they are scanned with numbers of unbounded range.
//!
//! # Rounding, sequential
//! The module `race` bounds what Q of a prefix errs by: quadrature, and rounding as it
//! is counted there. A bucket's mass comes out within 130 u, which moves a line by that
//! share of the bucket's P and a chord by that share of its rise. With P and the
//! differences that stays below 300 u. The enclosure is the sum, to both sides. A prefix
//! whose Q is not known (what lies outside it would ring beyond the range of `f64`)
//! offers no value, counts as Q = 1 at the end of a chord, and holds the lower bound down
//! to P - 1.
//!
//! # Source
//! Hu et al., "Towards optimal multi-draft speculative decoding", eq. 8 and
//! Theorems 3 to 6, for the scan; the buckets and the bounds are this crate's, and so
//! is the theorem for sequential draws.

mod buckets;
mod distinct;
mod iid;
mod minimum;
mod race;
mod residual;
mod sequential;
mod symmetric;

pub use crate::distribution::{RatioCut, Rows};
pub use buckets::{MAX_DRAFTS, ScanError};
pub use minimum::ScannedRate;
pub(crate) use minimum::is_doubtful;

use crate::distribution::{Draft, Target};
use buckets::Buckets;
use distinct::{Distinct, by_wide_numbers};
use iid::Iid;
use minimum::{Candidates, by_buckets};
use race::Race;
use sequential::Sequential;
use symmetric::Symmetric;

/// A workspace for scanning rows; see the [module](self).
///
/// # Example
/// ```
/// use specgap::distribution::Softmax;
/// use specgap::optimum::bucket_scan::{BucketScan, Rows};
/// let (mut p, mut q, mut scan) = (Vec::new(), Vec::new(), BucketScan::new());
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
#[derive(Clone, Debug)]
pub struct BucketScan {
    buckets: Buckets,
    candidates: Candidates,
    symmetric: Symmetric,
    race: Race,
    most_drafts: usize,
}

impl Default for BucketScan {
    fn default() -> Self {
        Self::new()
    }
}

impl BucketScan {
    /// An empty workspace. It grows to about 20 bytes a token, and 80 KiB.
    pub fn new() -> Self {
        Self {
            buckets: Buckets::new(),
            candidates: Candidates::new(),
            symmetric: Symmetric::default(),
            race: Race::default(),
            most_drafts: 0,
        }
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
    pub fn load<'a>(
        &'a mut self,
        rows: Rows<'a>,
        most_drafts: usize,
    ) -> Result<Position<'a>, ScanError> {
        let limit = MAX_DRAFTS;
        if !(1..=limit).contains(&most_drafts) {
            let drafts = most_drafts;
            return Err(ScanError::Drafts { drafts, limit });
        }
        self.most_drafts = most_drafts;
        self.symmetric.forget();
        self.race.forget();
        self.buckets.load(rows)?;
        Ok(Position { scan: self, rows })
    }
}

/// A pair of rows that has been put into buckets; answers one question a call.
#[derive(Debug)]
pub struct Position<'a> {
    scan: &'a mut BucketScan,
    rows: Rows<'a>,
}

impl<'a> Position<'a> {
    /// The rows.
    pub fn rows(&self) -> Rows<'a> {
        self.rows
    }

    /// The most drafts that were loaded for.
    pub(crate) fn most_drafts(&self) -> usize {
        self.scan.most_drafts
    }

    /// Tokens with q above 0.
    pub fn draft_support(&self) -> usize {
        self.scan.buckets.support()
    }

    /// The sums that the rows' entries are to be divided by.
    pub(crate) fn totals(&self) -> (f64, f64) {
        self.scan.buckets.totals()
    }

    fn check(&self, drafts: usize) -> Result<(), ScanError> {
        let limit = self.scan.most_drafts;
        if (1..=limit).contains(&drafts) {
            Ok(())
        } else {
            Err(ScanError::Drafts { drafts, limit })
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
    pub fn with_replacement(&mut self, drafts: usize) -> Result<ScannedRate, ScanError> {
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
    /// Hu et al., Theorems 3 to 6, who compute Q by this recurrence; `docs/scan.md` counts
    /// its roundings.
    pub fn distinct_conditioned(&mut self, drafts: usize) -> Result<ScannedRate, ScanError> {
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
    /// O(V) the first time after a load; then some 60 nodes (growing with n and with
    /// the logarithm of the least mass outside a prefix) times the buckets in use,
    /// O(n^2) each. What was summed over the buckets is kept and serves fewer drafts:
    /// for several n, ask for the largest first.
    ///
    /// # Source
    /// `docs/sequential-draws.md` proves that some prefix of the chain is optimal under
    /// this law; the race integral is this crate's.
    pub fn without_replacement(&mut self, drafts: usize) -> Result<ScannedRate, ScanError> {
        self.check(drafts)?;
        let draws = drafts.min(self.scan.buckets.support());
        if draws <= 1 {
            return self.with_replacement(drafts);
        }
        let scan = &mut *self.scan;
        let buckets = &mut scan.buckets;
        let chain = Sequential::new(&mut scan.race, buckets, self.rows, draws);
        Ok(by_buckets(buckets, self.rows, &mut scan.candidates, chain))
    }
}

/// The set H that [`Position::without_replacement`] finds for one pair of rows, in a
/// workspace of its own: what [`crate::plan::TokenPlan::sequential`] is given.
///
/// # Errors
/// As [`BucketScan::load`] and [`Position::without_replacement`].
pub fn sequential_subset(
    target: &Target,
    draft: &Draft,
    drafts: usize,
) -> Result<RatioCut, ScanError> {
    let rows = Rows {
        target: target.probabilities(),
        draft: draft.probabilities(),
    };
    let mut scan = BucketScan::new();
    Ok(scan.load(rows, drafts)?.without_replacement(drafts)?.subset)
}
