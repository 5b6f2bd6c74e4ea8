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
//! on the way to a prefix; m <= 128, and a tree of three levels keeps the way short.
//!
//! *Light tokens*, those of q <= t where t <= 2^-8 L (2^-12 L for n > 9), L their mass,
//! enter by power sums s_j = sum q^j over those in H:
//!
//! ```text
//! k e_k = s_1 e_{k-1} - s_2 e_{k-2} + s_3 e_{k-3} - ...
//! ```
//!
//! Terms cancel, so errors are not relative to e_k(H). But with h_k the coefficients of
//! prod 1/(1 - q t), for which the same recurrence has no minus signs, induction on k
//! gives an error of at most c k u h_k, c = min(n, 9) + 3 the roundings of a step. h_k
//! grows with H, and for all light tokens
//!
//! ```text
//! h_k <= prod_{i<k} (L + i t) / k!,    e_k >= prod_{i<k} (L - i t) / k!
//! ```
//!
//! which makes the error at most c k K u e_k(light), K the quotient of the two products
//! for k = n: below 1.4 for n <= 9, below 2.8 for n <= 64. Heavy tokens have
//! non-negative coefficients that also grow with H, so for light and heavy together
//! f = n (max(a, c K) + 2). Tokens that are walked after a prefix only raise a: times
//! their e_j <= h_j, h_k of the prefix's light tokens stays below that of all.
//!
//! *Inexact power sums*: errors d_j of s_j multiply the generating function of e_k(H) by
//! exp(sum +-d_j t^j/j), so e_n(H) errs by at most sum d_j/j e_{n-j}, and
//! e_{n-j}/e_n <= n(n-1)..(n-j+1) / (L - n t)^j. This sum, computed, is added to f. Above
//! 400 u, and where there is no such t, all tokens are multiplied out.
//! - s_1 is the sum of the masses above without the heavy tokens: exact but for the
//!   rests, which err by V (c + b + w) 2^-105 for at most c tokens a bucket, b buckets
//!   and w heavy tokens, and for one last rounding.
//! - s_j, j >= 2, errs by (c + b + w + j) u s_j.
//! - Powers from the sixth on are summed only above t' = 2^-12 L (2^-18 L for n > 9).
//!   What is left out of s_j is at most t'^{j-1} L. s_10 and on, needed for n > 9, are
//!   at most t s_9, t^2 s_9...
//! - Tokens below 2^-100 have no powers. L is at least 2^-30, so they matter below
//!   2^-59.
//!
//! *Underflow* is kept below 2^-60 relative by a test of e_n; rows that fail it are
//! scaled by a power of two and multiplied out, or, if that does not help, are scanned
//! with numbers of unbounded range.
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

mod race;
mod residual;
mod symmetric;

use crate::distribution::{DistributionError, Draft, NORMALISATION_TOLERANCE, Target};
pub use crate::distribution::{RatioCut, Rows};
use crate::known::Known;
use crate::row::memo::Memo;
use multiversion::multiversion;
use race::Race;
use residual::Residual;
use symmetric::Symmetric;

/// Buckets in which tokens are gathered, 16 an octave of q/p.
const BUCKETS: usize = 1024;

/// Mantissa bits of the ratio that a bucket's number keeps.
const KEPT_BITS: u32 = 4;
const SHIFT: u32 = 52 - KEPT_BITS;

/// Bits of the ratios in the first bucket: the octave [2^24, 2^25), its last
/// sixteenth and all that is larger.
const TOP_KEY: u64 = ((1023 + 24) << KEPT_BITS) | ((1 << KEPT_BITS) - 1);
const BOTTOM_KEY: u64 = TOP_KEY - (BUCKETS as u64 - 1);

/// Largest and smallest ratio as far as buckets are concerned.
const HIGHEST_RATIO: f64 = f64::from_bits(((TOP_KEY + 1) << SHIFT) - 1);
const LOWEST_RATIO: f64 = f64::from_bits(BOTTOM_KEY << SHIFT);

/// Ratios below this may have lost digits; no order is claimed among them.
const DOUBTFUL_RATIO: f64 = f64::from_bits((1023 - 1000) << 52);

/// Tokens classified before they are added up.
const BLOCK: usize = 512;

/// Buckets whose tokens are searched for among all before all are grouped, and
/// the tokens looked at together.
const SEARCHES: usize = 3;
const LANES: usize = 16;

/// Parts of a bucket, by the bits of the ratio that follow those of the bucket.
const DIGITS: usize = 256;

/// Half an ulp of one.
const ROUNDING: f64 = f64::EPSILON / 2.0;

/// The most drafts n that a scan answers for.
pub const MAX_DRAFTS: usize = 64;

/// Why rows cannot be scanned.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ScanError {
    /// The target's row is not a distribution.
    #[error("target: {0}")]
    Target(DistributionError),
    /// The draft's row is not a distribution.
    #[error("draft: {0}")]
    Draft(DistributionError),
    /// Rows over different vocabularies.
    #[error("the target has {target} entries and the draft {draft}; they need one vocabulary")]
    Lengths {
        /// Entries of the target's row.
        target: usize,
        /// Entries of the draft's row.
        draft: usize,
    },
    /// A number of drafts that the scan was not loaded for.
    #[error("drafts is {drafts}; it must be in 1..={limit}")]
    Drafts {
        /// What was asked for.
        drafts: usize,
        /// The most that is answered.
        limit: usize,
    },
}

/// What a scan found for one law and one n.
#[derive(Clone, Debug)]
pub struct ScannedRate {
    /// alpha*, a probability in [0, 1], with its enclosure.
    pub rate: Known,
    /// The set H that proves the upper bound: alpha* <= 1 + P(H) - Q(H).
    pub subset: RatioCut,
    /// P(H), the target's mass of the set.
    pub target_mass: f64,
    /// q(H), the draft's mass of the set.
    pub draft_mass: f64,
    /// Q(H), the probability that every draft lies in the set.
    pub inside: f64,
}

/// Sums of entries split into multiples of 2^-52 and rests.
#[derive(Clone, Copy, Debug, Default)]
struct Masses {
    target: f64,
    draft: f64,
    target_rest: f64,
    draft_rest: f64,
}

impl Masses {
    #[inline(always)]
    fn add(&mut self, p: f64, q: f64) {
        let (p_high, q_high) = ((p + 1.0) - 1.0, (q + 1.0) - 1.0);
        self.target += p_high;
        self.draft += q_high;
        self.target_rest += p - p_high;
        self.draft_rest += q - q_high;
    }

    fn merge(&mut self, other: &Self) {
        self.target += other.target;
        self.draft += other.draft;
        self.target_rest += other.target_rest;
        self.draft_rest += other.draft_rest;
    }

    /// The sums over what is not in `other`, a part of this.
    fn without(&self, other: &Self) -> Self {
        Self {
            target: self.target - other.target,
            draft: self.draft - other.draft,
            target_rest: self.target_rest - other.target_rest,
            draft_rest: self.draft_rest - other.draft_rest,
        }
    }

    fn target(&self) -> f64 {
        self.target + self.target_rest
    }

    fn draft(&self) -> f64 {
        self.draft + self.draft_rest
    }
}

/// A bucket with tokens in it, as a link of the chain of prefixes.
#[derive(Clone, Copy, Debug)]
struct Link {
    bucket: usize,
    tokens: u32,
    /// Sums over all buckets before.
    before: Masses,
    /// Sums over the bucket.
    own: Masses,
    /// Bounds on dP/dx, P normalised and x = q(H) not: 1/r at the two ends.
    least_slope: f64,
    most_slope: f64,
}

/// A prefix and P - Q there.
#[derive(Clone, Copy, Debug)]
struct Best {
    difference: f64,
    cut: RatioCut,
    target: f64,
    draft: f64,
    inside: f64,
}

impl Best {
    const EMPTY: Self = Self {
        difference: 0.0,
        cut: RatioCut::EMPTY,
        target: 0.0,
        draft: 0.0,
        inside: 0.0,
    };

    fn offer(&mut self, target: f64, draft: f64, inside: f64, cut: RatioCut) {
        let difference = target - inside;
        if difference < self.difference {
            *self = Self {
                difference,
                cut,
                target,
                draft,
                inside,
            };
        }
    }

    /// The answer, given a bound on P - Q over what was not evaluated and the error.
    fn rate(self, floor: f64, error: f64) -> ScannedRate {
        // A subset whose P - Q may as well be positive proves less than none.
        let shown = if self.difference < -error {
            self
        } else {
            Self::EMPTY
        };
        ScannedRate {
            rate: Known::rate(
                1.0 + shown.difference,
                1.0 + floor.min(self.difference) - error,
                1.0 + shown.difference + error,
            ),
            subset: shown.cut,
            target_mass: shown.target,
            draft_mass: shown.draft,
            inside: shown.inside,
        }
    }
}

/// A workspace for scanning rows; see the [module](self).
///
/// # Example
/// ```
/// use specgap::distribution::Softmax;
/// use specgap::row::{Rows, Workspace};
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
#[derive(Clone, Debug)]
pub struct BucketScan {
    buckets: Vec<u16>,
    masses: Vec<Masses>,
    counts: Vec<u32>,
    links: Vec<Link>,
    all: Masses,
    support: usize,
    most_drafts: usize,
    /// Tokens by bucket, once some bucket is refined.
    by_bucket: Vec<u32>,
    starts: Vec<u32>,
    grouped: bool,
    searches: usize,
    found: Vec<u32>,
    sorted: Vec<(u64, u32)>,
    residual: Residual,
    unsorted: Vec<(u64, u32)>,
    candidates: Vec<(f64, usize)>,
    symmetric: Symmetric,
    race: Race,
    inside: Vec<f64>,
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
            buckets: Vec::new(),
            masses: vec![Masses::default(); BUCKETS],
            counts: vec![0; BUCKETS],
            links: Vec::with_capacity(BUCKETS),
            all: Masses::default(),
            support: 0,
            most_drafts: 0,
            by_bucket: Vec::new(),
            starts: vec![0; BUCKETS + 1],
            grouped: false,
            searches: 0,
            found: Vec::new(),
            sorted: Vec::new(),
            residual: Residual::default(),
            unsorted: Vec::new(),
            candidates: Vec::new(),
            symmetric: Symmetric::default(),
            race: Race::default(),
            inside: Vec::new(),
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
    ) -> Result<Row<'a>, ScanError> {
        let limit = MAX_DRAFTS;
        if !(1..=limit).contains(&most_drafts) {
            let drafts = most_drafts;
            return Err(ScanError::Drafts { drafts, limit });
        }
        if rows.target.len() != rows.draft.len() {
            return Err(ScanError::Lengths {
                target: rows.target.len(),
                draft: rows.draft.len(),
            });
        }
        if rows.target.is_empty() {
            return Err(ScanError::Target(DistributionError::Empty));
        }
        self.most_drafts = most_drafts;
        self.grouped = false;
        self.searches = 0;
        self.symmetric.forget();
        self.race.forget();
        self.residual.forget();
        if !self.gather(rows) {
            check_entries(rows.target).map_err(ScanError::Target)?;
            check_entries(rows.draft).map_err(ScanError::Draft)?;
        }
        self.link();
        let check = |sum: f64| {
            if (sum - 1.0).abs() <= NORMALISATION_TOLERANCE {
                return Ok(());
            }
            let entries = rows.target.len();
            Err(DistributionError::Sum { entries, sum })
        };
        check(self.all.target()).map_err(ScanError::Target)?;
        check(self.all.draft()).map_err(ScanError::Draft)?;
        Ok(Row {
            scan: self,
            rows,
            memo: Memo::default(),
        })
    }

    /// The pass over the rows; false if an entry is not in [0, 2].
    fn gather(&mut self, rows: Rows<'_>) -> bool {
        self.buckets.clear();
        self.buckets.resize(rows.target.len(), 0);
        self.masses.fill(Masses::default());
        self.counts.fill(0);
        let (Ok(masses), Ok(counts)) = (
            <&mut [Masses; BUCKETS]>::try_from(self.masses.as_mut_slice()),
            <&mut [u32; BUCKETS]>::try_from(self.counts.as_mut_slice()),
        ) else {
            return false;
        };
        let (legal, support) =
            fill_buckets(rows.target, rows.draft, &mut self.buckets, masses, counts);
        self.support = support;
        legal
    }

    /// The chain of buckets that hold tokens.
    fn link(&mut self) {
        self.links.clear();
        self.all = Masses::default();
        for masses in &self.masses {
            self.all.merge(masses);
        }
        let total = self.all.target();
        let mut before = Masses::default();
        for (bucket, (&own, &tokens)) in self.masses.iter().zip(&self.counts).enumerate() {
            if tokens == 0 {
                continue;
            }
            let upper_edge = match bucket {
                0 => f64::INFINITY,
                _ => lower_edge(bucket - 1),
            };
            self.links.push(Link {
                bucket,
                tokens,
                before,
                own,
                least_slope: 1.0 / (upper_edge * total),
                most_slope: match lower_edge(bucket) {
                    0.0 => f64::INFINITY,
                    edge => 1.0 / (edge * total),
                },
            });
            before.merge(&own);
        }
    }

    /// Sorts the tokens by bucket (not within), once a position.
    fn group(&mut self) {
        if self.grouped {
            return;
        }
        self.grouped = true;
        let mut start = 0;
        for (slot, &count) in self.starts.iter_mut().zip(&self.counts) {
            *slot = start;
            start += count;
        }
        self.by_bucket.clear();
        self.by_bucket.resize(self.buckets.len(), 0);
        for (token, &bucket) in self.buckets.iter().enumerate() {
            let slot = &mut self.starts[usize::from(bucket)];
            self.by_bucket[*slot as usize] = token as u32;
            *slot += 1;
        }
        // Each start has moved to the next bucket's.
    }

    /// Fills `sorted` with a bucket's tokens by falling ratio, ties by id.
    fn sort(&mut self, rows: Rows<'_>, link: &Link) {
        self.members(link);
        self.sorted.clear();
        self.sorted.extend(self.found.iter().map(|&token| {
            let ratio = ratio(rows.target[token as usize], rows.draft[token as usize]);
            (!ratio.to_bits(), token)
        }));
        if self.sorted.len() < DIGITS || link.bucket == 0 || link.bucket + 1 == BUCKETS {
            self.sorted.sort_unstable();
        } else {
            sort_by_digit(&mut self.sorted, &mut self.unsorted);
        }
    }

    /// Fills `found` with a bucket's tokens by id.
    fn members(&mut self, link: &Link) {
        self.found.clear();
        if !self.grouped && self.searches < SEARCHES {
            self.searches += 1;
            find(&self.buckets, link.bucket as u16, &mut self.found);
        } else {
            self.group();
            let end = self.starts[link.bucket] as usize;
            let tokens = &self.by_bucket[end - link.tokens as usize..end];
            self.found.extend_from_slice(tokens);
        }
    }
}

/// q/p, infinite where p = 0 < q; 0 where q = 0.
fn ratio(p: f64, q: f64) -> f64 {
    if q == 0.0 {
        0.0
    } else if p == 0.0 {
        f64::INFINITY
    } else {
        q / p
    }
}

/// The smallest ratio of a bucket.
fn lower_edge(bucket: usize) -> f64 {
    if bucket + 1 == BUCKETS {
        0.0
    } else {
        f64::from_bits((TOP_KEY - bucket as u64) << SHIFT)
    }
}

/// Puts tokens into buckets and adds them up there; whether all entries lie in [0, 2],
/// and how many draft entries are above 0.
#[multiversion(targets = "simd")]
fn fill_buckets(
    target: &[f64],
    draft: &[f64],
    buckets: &mut [u16],
    masses: &mut [Masses; BUCKETS],
    counts: &mut [u32; BUCKETS],
) -> (bool, usize) {
    let (mut legal, mut support) = (true, 0);
    let blocks = target
        .chunks(BLOCK)
        .zip(draft.chunks(BLOCK))
        .zip(buckets.chunks_mut(BLOCK));
    for ((target, draft), buckets) in blocks {
        let (block_legal, block_support) = classify(target, draft, buckets);
        legal &= block_legal;
        support += block_support;
        for ((&p, &q), &bucket) in target.iter().zip(draft).zip(buckets.iter()) {
            // The mask changes nothing and spares a bounds check.
            let bucket = usize::from(bucket) % BUCKETS;
            masses[bucket].add(p, q);
            counts[bucket] += 1;
        }
    }
    (legal, support)
}

/// Sorts tokens whose ratios share the bits of one bucket: parts first.
fn sort_by_digit(sorted: &mut Vec<(u64, u32)>, unsorted: &mut Vec<(u64, u32)>) {
    const DIGIT_SHIFT: u32 = SHIFT - DIGITS.ilog2();
    let digit = |key: u64| (key >> DIGIT_SHIFT) as usize % DIGITS;
    std::mem::swap(sorted, unsorted);
    let mut ends = [0; DIGITS];
    for &(key, _) in unsorted.iter() {
        ends[digit(key)] += 1;
    }
    let mut end = 0;
    for slot in &mut ends {
        let start = end;
        end += *slot;
        *slot = start;
    }
    sorted.clear();
    sorted.resize(unsorted.len(), (0, 0));
    for &entry in unsorted.iter() {
        let slot = &mut ends[digit(entry.0)];
        sorted[*slot] = entry;
        *slot += 1;
    }
    // Each start has moved to the end of its part.
    let mut start = 0;
    for end in ends {
        sorted[start..end].sort_unstable();
        start = end;
    }
}

/// Lists the tokens of one bucket.
#[multiversion(targets = "simd")]
fn find(buckets: &[u16], wanted: u16, found: &mut Vec<u32>) {
    for (start, chunk) in (0u32..).step_by(LANES).zip(buckets.chunks(LANES)) {
        // Without a branch first: most chunks hold none.
        if !chunk
            .iter()
            .fold(false, |hit, &bucket| hit | (bucket == wanted))
        {
            continue;
        }
        let mut tokens = [0; LANES];
        let mut count = 0;
        for (token, &bucket) in (start..).zip(chunk) {
            tokens[count % LANES] = token;
            count += usize::from(bucket == wanted);
        }
        found.extend_from_slice(&tokens[..count]);
    }
}

/// The buckets of a block of tokens; whether all entries lie in [0, 2]; how many
/// draft entries are above 0.
#[inline(always)]
fn classify(target: &[f64], draft: &[f64], buckets: &mut [u16]) -> (bool, usize) {
    let mut illegal = 0u64;
    let mut support = 0u64;
    for ((&p, &q), bucket) in target.iter().zip(draft).zip(buckets) {
        // Adding 0.0 turns -0.0 into 0.0; 0/0 compares false and goes last.
        *bucket = bucket_of(q / (p + 0.0));
        let legal = (0.0..=2.0).contains(&p) & (0.0..=2.0).contains(&q);
        illegal |= u64::from(!legal);
        support += u64::from(q > 0.0);
    }
    (illegal == 0, support as usize)
}

/// The bucket of a ratio; NaN goes where 0 goes.
#[inline(always)]
fn bucket_of(ratio: f64) -> u16 {
    let ratio = if ratio > LOWEST_RATIO {
        ratio
    } else {
        LOWEST_RATIO
    };
    let ratio = if ratio < HIGHEST_RATIO {
        ratio
    } else {
        HIGHEST_RATIO
    };
    (TOP_KEY - (ratio.to_bits() >> SHIFT)) as u16
}

fn check_entries(row: &[f64]) -> Result<(), DistributionError> {
    for (index, &value) in row.iter().enumerate() {
        if !value.is_finite() {
            return Err(DistributionError::NotFinite { index, value });
        }
        if value < 0.0 {
            let value = value.to_string();
            return Err(DistributionError::Negative { index, value });
        }
        if value > 2.0 {
            let (entries, sum) = (row.len(), row.iter().sum());
            return Err(DistributionError::Sum { entries, sum });
        }
    }
    Ok(())
}

/// A pair of rows that has been put into buckets; answers one question a call.
#[derive(Debug)]
pub struct Row<'a> {
    scan: &'a mut BucketScan,
    rows: Rows<'a>,
    pub(super) memo: Memo,
}

impl<'a> Row<'a> {
    /// What is kept between questions.
    pub fn memo(&mut self) -> &mut Memo {
        &mut self.memo
    }

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
        self.scan.support
    }

    /// The sums that the rows' entries are to be divided by.
    pub(crate) fn totals(&self) -> (f64, f64) {
        (self.scan.all.target(), self.scan.all.draft())
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
        let (target_total, draft_total) = (scan.all.target(), scan.all.draft());
        let inside = |x: f64| power(x / draft_total, drafts);

        let mut best = Best::EMPTY;
        scan.candidates.clear();
        let (mut held, mut mass, mut q_start) = (0.0, 0.0, 0.0);
        for (index, link) in scan.links.iter().enumerate() {
            let mut end = link.before;
            end.merge(&link.own);
            let (held_end, mass_end) = (end.target() / target_total, end.draft());
            let q_end = inside(mass_end);
            best.offer(held_end, mass_end / draft_total, q_end, end_of(link));
            let bucket = Interior {
                link,
                mass: link.own.draft(),
                target: link.own.target() / target_total,
                held,
                q_start,
                q_end,
            };
            if let Some(turn) = bucket.turn() {
                let bound = bucket.lower_bound(turn, inside(mass + turn));
                scan.candidates.push((bound, index));
            }
            (held, mass, q_start) = (held_end, mass_end, q_end);
        }
        let mut floor = 0.0f64;
        while let Some(index) = next_candidate(&mut scan.candidates, best.difference) {
            let link = scan.links[index];
            scan.sort(self.rows, &link);
            let mut sums = link.before;
            for &(key, token) in &scan.sorted {
                let (p, q) = (
                    self.rows.target[token as usize],
                    self.rows.draft[token as usize],
                );
                if is_doubtful(f64::from_bits(!key)) {
                    floor = floor.min(sums.target() / target_total - 1.0);
                }
                sums.add(p, q);
                let x = sums.draft() / draft_total;
                let held = sums.target() / target_total;
                best.offer(held, x, power(x, drafts), at(key, token));
            }
        }
        let error = (20.0 * drafts as f64 + 80.0) * ROUNDING;
        Ok(best.rate(floor, error))
    }

    /// alpha* for n = `drafts` independent draws from q given that all differ:
    /// Q(H) = e_n(q on H) / e_n(q), e_n the elementary symmetric polynomial. If
    /// fewer than n tokens have q > 0, the draw is all of them.
    ///
    /// It is **not** the law of [`Self::without_replacement`].
    ///
    /// # Exactness
    /// Enclosed; the bound is counted from what was computed. For n <= 8 and V <= 2^18
    /// it is within 2e-13 to both sides on rows like those of language models, and
    /// within 1e-12 on any.
    ///
    /// # Errors
    /// `drafts` is 0 or more than was loaded for.
    ///
    /// # Complexity
    /// The first call after a load, for the largest n loaded for: O(V) for the power
    /// sums of light tokens, O(n) for each heavy one and O(n^2) for each bucket; O(V n)
    /// on rows without light tokens enough. Then as [`Self::with_replacement`]. Rows so
    /// peaked that e_n leaves the range of `f64` take a sort and O(V n) operations on
    /// numbers of unbounded range.
    pub fn distinct_conditioned(&mut self, drafts: usize) -> Result<ScannedRate, ScanError> {
        self.check(drafts)?;
        let draws = drafts.min(self.scan.support);
        if draws <= 1 {
            return self.with_replacement(drafts);
        }
        if !self.prepare_symmetric(draws) {
            return Ok(self.distinct_by_wide_numbers(draws));
        }
        let scan = &mut *self.scan;
        let symmetric = &scan.symmetric;
        let (target_total, draft_total) = (scan.all.target(), scan.all.draft());
        let whole = symmetric.whole(draws);

        let roundings = symmetric.roundings(draws, 0);

        let mut best = Best::EMPTY;
        scan.candidates.clear();
        let (mut held, mut q_start) = (0.0, 0.0);
        for (index, link) in scan.links.iter().enumerate() {
            let mut end = link.before;
            end.merge(&link.own);
            let held_end = end.target() / target_total;
            let q_end = symmetric.prefix(index + 1)[draws] / whole;
            best.offer(held_end, end.draft() / draft_total, q_end, end_of(link));
            let bucket = Interior {
                link,
                mass: link.own.draft(),
                target: link.own.target() / target_total,
                held,
                q_start,
                q_end,
            };
            if let Some(turn) = bucket.turn() {
                let most = symmetric.most(index, turn, draws, roundings) / whole;
                scan.candidates
                    .push((bucket.lower_bound(turn, most), index));
            }
            (held, q_start) = (held_end, q_end);
        }
        let mut floor = 0.0f64;
        let mut walked = 0;
        while let Some(index) = next_candidate(&mut scan.candidates, best.difference) {
            let link = scan.links[index];
            scan.sort(self.rows, &link);
            walked = walked.max(scan.sorted.len());
            let mut sums = link.before;
            let mut walk = scan.symmetric.walk(index, scan.sorted.len());
            for &(key, token) in &scan.sorted {
                let (p, q) = (
                    self.rows.target[token as usize],
                    self.rows.draft[token as usize],
                );
                if is_doubtful(f64::from_bits(!key)) {
                    floor = floor.min(sums.target() / target_total - 1.0);
                }
                sums.add(p, q);
                let inside = walk.absorb(q, draws) / whole;
                let held = sums.target() / target_total;
                best.offer(held, sums.draft() / draft_total, inside, at(key, token));
            }
        }
        let roundings = scan.symmetric.roundings(draws, walked);
        let error = (2.0 * roundings + 120.0) * ROUNDING;
        Ok(best.rate(floor, error))
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
        let draws = drafts.min(self.scan.support);
        if draws <= 1 {
            return self.with_replacement(drafts);
        }
        let scan = &mut *self.scan;
        Race::prepare(scan, self.rows);
        let (target_total, draft_total) = (scan.all.target(), scan.all.draft());
        let mut race = std::mem::take(&mut scan.race);
        let rule = race.rule(draws);
        let mut inside = std::mem::take(&mut scan.inside);
        let (quadrature, mut rounding) = race.prefixes(draws, &mut inside);

        let mut best = Best::EMPTY;
        let mut floor = 0.0f64;
        scan.candidates.clear();
        let (mut held, mut q_start) = (0.0, 0.0);
        for (index, link) in scan.links.iter().enumerate() {
            let mut end = link.before;
            end.merge(&link.own);
            let held_end = end.target() / target_total;
            let known = inside[index];
            // NaN, where Q is not known, offers nothing.
            best.offer(held_end, end.draft() / draft_total, known, end_of(link));
            let q_end = if known.is_nan() {
                floor = floor.min(held_end - 1.0);
                1.0
            } else {
                known
            };
            let bucket = Interior {
                link,
                mass: race.mass(index),
                target: link.own.target() / target_total,
                held,
                q_start,
                q_end,
            };
            if let Some(turn) = bucket.turn() {
                let bound = bucket.lower_bound(turn, f64::INFINITY);
                scan.candidates.push((bound, index));
            }
            (held, q_start) = (held_end, q_end);
        }
        while let Some(index) = next_candidate(&mut scan.candidates, best.difference) {
            let link = scan.links[index];
            scan.sort(self.rows, &link);
            let tokens = scan.sorted.iter().map(|&(_, token)| token as usize);
            let draft = tokens.map(|token| self.rows.draft[token]);
            rounding = rounding.max(race.tokens(&rule, index, draft, &mut inside));
            let mut sums = link.before;
            for (&(key, token), &q_inside) in scan.sorted.iter().zip(&inside) {
                let (p, q) = (
                    self.rows.target[token as usize],
                    self.rows.draft[token as usize],
                );
                if is_doubtful(f64::from_bits(!key)) {
                    floor = floor.min(sums.target() / target_total - 1.0);
                }
                sums.add(p, q);
                let held = sums.target() / target_total;
                if q_inside.is_nan() {
                    floor = floor.min(held - 1.0);
                }
                best.offer(held, sums.draft() / draft_total, q_inside, at(key, token));
            }
        }
        scan.race = race;
        scan.inside = inside;
        let quadrature = if draws > 2 {
            quadrature.max(rule.error)
        } else {
            0.0
        };
        Ok(best.rate(floor, quadrature + rounding + 300.0 * ROUNDING))
    }

    /// Products of 1 + q t over the chain; false if e_n does not fit `f64`.
    fn prepare_symmetric(&mut self, draws: usize) -> bool {
        let scan = &mut *self.scan;
        if !scan.symmetric.is_ready() {
            scan.symmetric.build(
                scan.most_drafts,
                self.rows.draft,
                &scan.buckets,
                &scan.links,
                0,
            );
        }
        if scan.symmetric.is_safe(draws) {
            return true;
        }
        let exponent = symmetric::balancing_exponent(self.rows.draft, draws);
        scan.symmetric.build(
            scan.most_drafts,
            self.rows.draft,
            &scan.buckets,
            &scan.links,
            exponent,
        );
        scan.symmetric.is_safe(draws)
    }

    fn distinct_by_wide_numbers(&mut self, draws: usize) -> ScannedRate {
        let scan = &mut *self.scan;
        let (target_total, draft_total) = (scan.all.target(), scan.all.draft());
        scan.sorted.clear();
        scan.sorted
            .extend((0u32..).zip(self.rows.draft).map(|(token, &q)| {
                let ratio = ratio(self.rows.target[token as usize], q);
                (!ratio.to_bits(), token)
            }));
        scan.sorted.sort_unstable();
        let tokens = || {
            scan.sorted
                .iter()
                .map(|&(_, token)| self.rows.draft[token as usize])
        };
        let Some(whole) = symmetric::wide(tokens(), draws).last() else {
            return Best::EMPTY.rate(0.0, 0.0);
        };
        let mut best = Best::EMPTY;
        let mut sums = Masses::default();
        let prefixes = symmetric::wide(tokens(), draws);
        let mut floor = 0.0f64;
        for (&(key, token), inside) in scan.sorted.iter().zip(prefixes) {
            let (p, q) = (
                self.rows.target[token as usize],
                self.rows.draft[token as usize],
            );
            if is_doubtful(f64::from_bits(!key)) {
                floor = floor.min(sums.target() / target_total - 1.0);
            }
            sums.add(p, q);
            best.offer(
                sums.target() / target_total,
                sums.draft() / draft_total,
                inside.over(whole).min(1.0),
                at(key, token),
            );
        }
        // The recurrence's own rounding is below 2^-70; what is left is the ratio.
        best.rate(floor, (3.0 * draws as f64 + 40.0) * f64::EPSILON)
    }
}

/// What is known about P - Q inside one bucket; P normalised, x = q(H) not.
struct Interior<'a> {
    link: &'a Link,
    /// q of the bucket, and P.
    mass: f64,
    target: f64,
    /// P before it.
    held: f64,
    /// The most that Q can be at its two ends.
    q_start: f64,
    q_end: f64,
}

impl Interior<'_> {
    /// Where, in x from the bucket's start, the two lines below P meet. `None` if
    /// P - Q is least at an end of the bucket: the chord above Q is no steeper than the
    /// one line, or no less steep than the other.
    #[inline(always)]
    fn turn(&self) -> Option<f64> {
        let (link, mass) = (self.link, self.mass);
        let rise = self.q_end - self.q_start;
        if link.tokens < 2 || link.least_slope * mass >= rise || link.most_slope * mass <= rise {
            return None;
        }
        if link.most_slope == f64::INFINITY {
            return Some(mass);
        }
        let turn = (link.most_slope * mass - self.target) / (link.most_slope - link.least_slope);
        Some(turn.clamp(0.0, mass))
    }

    /// The least that P - Q can be in the bucket, given what Q is at most at the turn
    /// besides being below its chord.
    fn lower_bound(&self, turn: f64, most: f64) -> f64 {
        // Both lines, since the turn is rounded; the steep one may be 0 times infinity.
        let gentle = self.link.least_slope * turn;
        let steep = self.target - self.link.most_slope * (self.mass - turn);
        let chord = self.q_start + (self.q_end - self.q_start) * (turn / self.mass);
        let inside = chord.min(self.q_end).min(most);
        let at_turn = self.held + gentle.min(steep) - inside;
        let at_end = self.held + self.target - self.q_end;
        at_turn.min(self.held - self.q_start).min(at_end)
    }
}

/// Takes the most promising bucket off the list; `None` once none can hold a value
/// below `best`.
fn next_candidate(candidates: &mut Vec<(f64, usize)>, best: f64) -> Option<usize> {
    candidates.retain(|&(bound, _)| bound < best);
    let (place, _) = candidates
        .iter()
        .enumerate()
        .min_by(|a, b| a.1.0.total_cmp(&b.1.0))?;
    Some(candidates.swap_remove(place).1)
}

fn end_of(link: &Link) -> RatioCut {
    RatioCut {
        ratio: lower_edge(link.bucket),
        tied_below: usize::MAX,
    }
}

fn at(key: u64, token: u32) -> RatioCut {
    RatioCut {
        ratio: f64::from_bits(!key),
        tied_below: token as usize + 1,
    }
}

/// Whether a ratio is so small that its place in the order is not sure.
pub(crate) fn is_doubtful(ratio: f64) -> bool {
    ratio > 0.0 && ratio < DOUBTFUL_RATIO
}

/// x^n by n - 1 products.
#[inline(always)]
fn power(x: f64, n: usize) -> f64 {
    let mut product = 1.0;
    for _ in 0..n {
        product *= x;
    }
    product
}

/// The set H that [`Row::without_replacement`] finds for one pair of rows, in a
/// workspace of its own: what [`crate::plan::TokenPlan::sequential`] is given.
///
/// # Errors
/// As [`BucketScan::load`] and [`Row::without_replacement`].
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
