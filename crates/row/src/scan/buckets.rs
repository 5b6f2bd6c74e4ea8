//! Tokens in buckets of q/p, and the sums over them.
//!
//! Buckets go by the leading bits of r = q/p: 16 an octave, 64 octaves, and whatever lies
//! outside in the first and the last. Sums are split into multiples of 2^-52, which are
//! exact, and rests (`docs/theory/scan.md`).

use multiversion::multiversion;
use specgap_number::distribution::{DistributionError, NORMALISATION_TOLERANCE, Rows};

/// Buckets in which tokens are gathered, 16 an octave of q/p.
pub(super) const BUCKETS: usize = 1024;

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

/// Tokens classified before they are added up.
const BLOCK: usize = 512;

/// Buckets whose tokens are searched for among all before all are grouped, which takes the
/// time of some four searches; and the tokens looked at together.
const SEARCHES: usize = 3;
const LANES: usize = 16;

/// Parts of a bucket, by the bits of the ratio that follow those of the bucket.
const DIGITS: usize = 256;

/// Half an ulp of one.
pub(super) const ROUNDING: f64 = f64::EPSILON / 2.0;

/// The most drafts n that a scan answers for.
pub const MAX_DRAFTS: usize = 64;

/// Why rows cannot be scanned.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RowError {
    /// The target's row is not a distribution.
    #[error("target: {0}")]
    Target(DistributionError),
    /// The draft's row is not a distribution.
    #[error("draft: {0}")]
    Draft(DistributionError),
    /// Rows over different vocabularies: entries of the target's row; entries of the draft's row.
    #[error("the target has {0} entries and the draft {1}; they need one vocabulary")]
    Lengths(usize, usize),
    /// A number of drafts that the scan was not loaded for: what was asked for; the most that is
    /// answered.
    #[error("drafts is {0}; it must be in 1..={1}")]
    Drafts(usize, usize),
}

/// Sums of entries split into multiples of 2^-52 and rests.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Masses {
    target: f64,
    pub(super) draft: f64,
    target_rest: f64,
    pub(super) draft_rest: f64,
}

impl Masses {
    #[inline(always)]
    pub(super) fn add(&mut self, p: f64, q: f64) {
        let (p_high, q_high) = ((p + 1.0) - 1.0, (q + 1.0) - 1.0);
        self.target += p_high;
        self.draft += q_high;
        self.target_rest += p - p_high;
        self.draft_rest += q - q_high;
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.target += other.target;
        self.draft += other.draft;
        self.target_rest += other.target_rest;
        self.draft_rest += other.draft_rest;
    }

    /// The sums over what is not in `other`, a part of this.
    pub(super) fn without(&self, other: &Self) -> Self {
        Self {
            target: self.target - other.target,
            draft: self.draft - other.draft,
            target_rest: self.target_rest - other.target_rest,
            draft_rest: self.draft_rest - other.draft_rest,
        }
    }

    pub(super) fn target(&self) -> f64 {
        self.target + self.target_rest
    }

    pub(super) fn draft(&self) -> f64 {
        self.draft + self.draft_rest
    }
}

/// A bucket with tokens in it, as a link of the chain of prefixes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub(super) bucket: usize,
    pub(super) tokens: u32,
    /// Sums over all buckets before.
    pub(super) before: Masses,
    /// Sums over the bucket.
    pub(super) own: Masses,
    /// Bounds on dP/dx, P normalised and x = q(H) not: 1/r at the two ends.
    pub(super) least_slope: f64,
    pub(super) most_slope: f64,
}

/// A token of a bucket that was sorted: the bits of its ratio, inverted, and its number.
pub(super) type Sorted = (u64, u32);

/// A pair of rows in buckets. Nothing is allocated from the second pair on.
#[derive(Clone, Debug, Default)]
pub(super) struct Buckets {
    of: Vec<u16>,
    masses: Vec<Masses>,
    counts: Vec<u32>,
    links: Vec<Link>,
    all: Masses,
    support: usize,
    /// Tokens by bucket, once some bucket is refined.
    by_bucket: Vec<u32>,
    starts: Vec<u32>,
    grouped: bool,
    searches: usize,
    found: Vec<u32>,
    sorted: Vec<Sorted>,
    unsorted: Vec<Sorted>,
    picked: Picked,
}

/// p and q of the tokens of the link that was asked for last.
#[derive(Clone, Debug, Default)]
struct Picked {
    link: Option<usize>,
    target: Vec<f64>,
    draft: Vec<f64>,
}

impl Buckets {
    /// Puts the tokens of a pair of rows into buckets: one pass, a division and two split
    /// sums a token.
    pub(super) fn load(&mut self, rows: Rows<'_>) -> Result<(), RowError> {
        if rows.target.len() != rows.draft.len() {
            return Err(RowError::Lengths(rows.target.len(), rows.draft.len()));
        }
        if rows.target.is_empty() {
            return Err(RowError::Target(DistributionError::Empty));
        }
        self.grouped = false;
        self.searches = 0;
        self.picked.link = None;
        if !self.gather(rows) {
            check_entries(rows.target).map_err(RowError::Target)?;
            check_entries(rows.draft).map_err(RowError::Draft)?;
        }
        self.link();
        let check = |sum: f64| {
            if (sum - 1.0).abs() <= NORMALISATION_TOLERANCE {
                return Ok(());
            }
            let entries = rows.target.len();
            Err(DistributionError::Sum { entries, sum })
        };
        check(self.all.target()).map_err(RowError::Target)?;
        check(self.all.draft()).map_err(RowError::Draft)
    }

    /// The buckets that hold tokens, by falling ratio.
    pub(super) fn links(&self) -> &[Link] {
        &self.links
    }

    /// The bucket of every token.
    pub(super) fn of(&self) -> &[u16] {
        &self.of
    }

    /// Sums over all tokens.
    pub(super) fn all(&self) -> &Masses {
        &self.all
    }

    /// Returns what p and q sum to.
    pub(super) fn totals(&self) -> (f64, f64) {
        (self.all.target(), self.all.draft())
    }

    /// Tokens with q above 0.
    pub(super) fn support(&self) -> usize {
        self.support
    }

    /// The pass over the rows; false if an entry is not in [0, 2].
    fn gather(&mut self, rows: Rows<'_>) -> bool {
        self.of.clear();
        self.of.resize(rows.target.len(), 0);
        self.masses.clear();
        self.masses.resize(BUCKETS, Masses::default());
        self.counts.clear();
        self.counts.resize(BUCKETS, 0);
        let (Ok(masses), Ok(counts)) = (
            <&mut [Masses; BUCKETS]>::try_from(self.masses.as_mut_slice()),
            <&mut [u32; BUCKETS]>::try_from(self.counts.as_mut_slice()),
        ) else {
            return false;
        };
        let (legal, support) = fill_buckets(rows.target, rows.draft, &mut self.of, masses, counts);
        self.support = support;
        legal
    }

    /// The chain of buckets that hold tokens.
    fn link(&mut self) {
        self.links.clear();
        self.links.reserve(BUCKETS);
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
    pub(super) fn group(&mut self) {
        if self.grouped {
            return;
        }
        self.grouped = true;
        let mut start = 0;
        self.starts.resize(BUCKETS, 0);
        for (slot, &count) in self.starts.iter_mut().zip(&self.counts) {
            *slot = start;
            start += count;
        }
        self.by_bucket.clear();
        self.by_bucket.resize(self.of.len(), 0);
        for (token, &bucket) in self.of.iter().enumerate() {
            let slot = &mut self.starts[usize::from(bucket)];
            self.by_bucket[*slot as usize] = token as u32;
            *slot += 1;
        }
        // Each start has moved to the next bucket's.
    }

    /// q by link, tokens of a link by id; and the first place of every link, and the end.
    /// `slots` is a workspace.
    pub(super) fn gather_draft(
        &self,
        rows: Rows<'_>,
        draft: &mut Vec<f64>,
        starts: &mut Vec<u32>,
        slots: &mut Vec<u32>,
    ) {
        starts.clear();
        slots.clear();
        slots.resize(BUCKETS, 0);
        let mut start = 0;
        for link in &self.links {
            starts.push(start);
            slots[link.bucket] = start;
            start += link.tokens;
        }
        starts.push(start);
        draft.resize(rows.draft.len(), 0.0);
        let Ok(slots) = <&mut [u32; BUCKETS]>::try_from(slots.as_mut_slice()) else {
            return;
        };
        for (&bucket, &q) in self.of.iter().zip(rows.draft) {
            let slot = &mut slots[usize::from(bucket) % BUCKETS];
            draft[*slot as usize] = q;
            *slot += 1;
        }
    }

    /// The tokens of a link by falling ratio, ties by id.
    pub(super) fn sort(&mut self, rows: Rows<'_>, link: &Link) -> &[Sorted] {
        self.find(link);
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
        &self.sorted
    }

    /// All tokens by falling ratio, ties by id.
    pub(super) fn sort_all(&mut self, rows: Rows<'_>) -> &[Sorted] {
        let pairs = rows.target.iter().zip(rows.draft);
        let keys = pairs.map(|(&p, &q)| !ratio(p, q).to_bits());
        self.sorted.clear();
        self.sorted.extend(keys.zip(0u32..));
        self.sorted.sort_unstable();
        &self.sorted
    }

    /// p and q of the tokens of a link, by id.
    pub(super) fn pick(&mut self, rows: Rows<'_>, index: usize) -> (&[f64], &[f64]) {
        if self.picked.link != Some(index) {
            let link = self.links[index];
            self.find(&link);
            let (picked, found) = (&mut self.picked, &self.found);
            picked.link = Some(index);
            let pick = |row: &[f64], out: &mut Vec<f64>| {
                out.clear();
                out.extend(found.iter().map(|&token| row[token as usize]));
            };
            pick(rows.target, &mut picked.target);
            pick(rows.draft, &mut picked.draft);
        }
        (&self.picked.target, &self.picked.draft)
    }

    /// Fills `found` with the tokens of a link by id.
    fn find(&mut self, link: &Link) {
        self.found.clear();
        if !self.grouped && self.searches < SEARCHES {
            self.searches += 1;
            find(&self.of, link.bucket as u16, &mut self.found);
        } else {
            self.group();
            let end = self.starts[link.bucket] as usize;
            let tokens = end - link.tokens as usize..end;
            self.found.extend_from_slice(&self.by_bucket[tokens]);
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
pub(super) fn lower_edge(bucket: usize) -> f64 {
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
pub(super) fn bucket_of(ratio: f64) -> u16 {
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
            return Err(DistributionError::NotFinite(index, value));
        }
        if value < 0.0 {
            let value = value.to_string();
            return Err(DistributionError::Negative(index, value));
        }
        if value > 2.0 {
            let (entries, sum) = (row.len(), row.iter().sum());
            return Err(DistributionError::Sum { entries, sum });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts by their leading bits, each of them in order: the first, the last and those between.
    #[test]
    fn tokens_of_a_bucket_are_sorted_by_parts() {
        let part = 1u64 << (SHIFT - DIGITS.ilog2());
        for parts in [vec![0], vec![0, 1, 7, DIGITS as u64 - 1], vec![3, 200]] {
            let keys = parts.iter().flat_map(|first| {
                // Falling, and one twice.
                [9u64, 5, 5, 2, 0].map(|key| first * part + key)
            });
            let mut sorted: Vec<Sorted> = keys.zip((0..100).rev()).collect();
            let mut expected = sorted.clone();
            expected.sort_unstable();
            sort_by_digit(&mut sorted, &mut Vec::new());
            assert_eq!(sorted, expected);
        }
    }

    /// The first and the last bucket hold all ratios beyond: no bits are shared there.
    #[test]
    fn the_outermost_buckets_are_in_order() {
        let tiny = |token: i32| 10f64.powi(-12 - token * 37 % 41);
        let mut light: Vec<f64> = (0..400).map(tiny).collect();
        light.push(1.0 - light.iter().sum::<f64>());
        let even = vec![1.0 / 401.0; 401];
        for (target, draft) in [(&light, &even), (&even, &light)] {
            let rows = Rows { target, draft };
            let mut buckets = Buckets::default();
            buckets.load(rows).unwrap();
            let expected: Vec<Sorted> = buckets.sort_all(rows).to_vec();
            let mut found = Vec::new();
            for link in buckets.links().to_vec() {
                found.extend_from_slice(buckets.sort(rows, &link));
            }
            assert_eq!(found, expected);
        }
    }
}
