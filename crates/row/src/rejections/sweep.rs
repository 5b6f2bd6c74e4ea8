//! What a product rule needs of a (p, q), without a sort: tokens by p/q in cells.
//!
//! After the first rejection L is 1, and L only rises. So M(L) is asked for from 1 on, and a
//! token of p <= q has weight B q in every state but the first. Tokens of p > q stand in
//! cells of p/q, in no order within one: M(L) is a sum over the cells above that of L, which is
//! kept, and over the tokens of one cell.

use multiversion::multiversion;
use specgap_number::distribution::{Rows, TwoFloat, UnitSum, heaviest, split_sum, split_total};

/// Cells of the ratios above 1 that paths lead to; one more has all that are above these.
const CELLS: usize = 2048;

/// Moments: sums of q, q^2, q^3, q^4, p, p q, p q^2, p q^3.
pub(super) const SUMS: usize = 8;
pub(super) type Sums = [f64; SUMS];

/// What has to be left of q for a division by it: sums in one word leave it 1e-10 relative.
pub(super) const LEAST_REST: f64 = 1e-6;

/// The same where the answer is to be good to 1e-12.
const LEAST_REST_OF_TWO: f64 = 1e-3;

/// Tokens that are told apart at a time.
const BLOCK: usize = 512;

/// Tokens with p/q next to 1 + M(1) that are looked at one by one.
const MOST_KNOTS: usize = 4096;

/// A listed token.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub p: f64,
    pub q: f64,
    pub ratio: f64,
}

/// One (p, q).
#[derive(Debug, Default)]
pub(super) struct Sweep {
    /// The most drafts that it is for.
    pub draws: usize,
    /// Tokens of q from this on are listed.
    pub least: f64,
    /// Listed tokens by rising p/q.
    pub listed: Vec<Token>,
    /// Masses of the heaviest tokens by falling q: as many as were asked for.
    pub heaviest: Vec<f64>,
    /// Sum of q.
    pub total: f64,
    /// Mass of p where q = 0.
    pub unreachable: f64,
    /// M(1).
    pub first: f64,
    /// Cell of a ratio: its bits above those of 1, shifted by so much.
    shift: u32,
    /// Where the tokens of each cell begin.
    starts: Vec<u32>,
    /// p/q and q of tokens with p > q, cell by cell.
    tokens: Vec<[f64; 2]>,
    /// By cell: sums of p and q over the cells above.
    beyond: Vec<[f64; 2]>,
    /// By cell: moments over the unlisted tokens below it.
    below: Vec<Sums>,
    /// Those of all unlisted tokens.
    pub all: Sums,
    /// p/q and q where p > q > 0, by token, and room for as many as there may be.
    above: Vec<[f64; 2]>,
    /// Where the next token of each cell goes.
    places: Vec<u32>,
}

/// Adds a token to moments.
#[inline(always)]
pub(super) fn add(sums: &mut Sums, p: f64, q: f64) {
    let (square, mixed) = (q * q, p * q);
    sums[0] += q;
    sums[1] += square;
    sums[2] += square * q;
    sums[3] += square * square;
    sums[4] += p;
    sums[5] += mixed;
    sums[6] += mixed * q;
    sums[7] += mixed * square;
}

const ONE: u64 = 1f64.to_bits();

impl Sweep {
    #[cfg(test)]
    pub(super) fn new(rows: Rows<'_>, draws: usize, listed: impl Fn(&[f64]) -> f64) -> Self {
        let mut sweep = Self::default();
        sweep.fill(rows, draws, listed);
        sweep
    }

    /// Fills it for rows that sum to 1 and up to `draws` drafts. Tokens are listed from the least q
    /// on that `listed` says, given q of the heaviest tokens. O(V). Memory that was taken for other
    /// rows is used again.
    pub(super) fn fill(&mut self, rows: Rows<'_>, draws: usize, listed: impl Fn(&[f64]) -> f64) {
        let tokens = heaviest(rows.draft, draws).into_iter();
        self.heaviest.clear();
        self.heaviest.extend(tokens.map(|token| rows.draft[token]));
        let least = listed(&self.heaviest);
        self.listed.clear();
        let Divided {
            count,
            below,
            totals: [first, total, unreachable],
        } = divide(rows, least, &mut self.listed, &mut self.above);
        self.listed
            .sort_unstable_by(|a, b| a.ratio.total_cmp(&b.ratio));
        // No path leads further than one that takes the heaviest tokens away, with M(1) all
        // the time.
        let (mut end, mut rest) = (1.0, total);
        for draw in 1..draws.max(2) {
            rest -= self.heaviest.get(draw - 1).copied().unwrap_or(0.0);
            end += if rest > 0.0 { first / rest } else { f64::MAX };
        }
        let span = end.clamp(1.0, f64::MAX).to_bits() - ONE;
        let shift = (span / CELLS as u64 + 1)
            .next_power_of_two()
            .trailing_zeros();
        self.draws = draws;
        self.least = least;
        self.total = total;
        self.unreachable = unreachable;
        self.first = first;
        self.shift = shift;
        self.all = below;
        self.sort_into_cells(count);
        // All are written to.
        self.below.resize(CELLS + 1, [0.0; SUMS]);
        self.beyond.resize(CELLS + 1, [0.0; 2]);
        let cells: Cells<'_> = (&mut self.below, &mut self.beyond);
        by_cell(&self.tokens, &self.starts, least, &mut self.all, cells);
        // From sums over the cells to sums over the cells above.
        let (mut target, mut draft) = (TwoFloat::from(unreachable), TwoFloat::ZERO);
        for sums in self.beyond.iter_mut().rev() {
            let [p, q] = *sums;
            *sums = [target.value(), draft.value()];
            target += p;
            draft += q;
        }
    }

    /// Fills `tokens` and `starts` with the first entries of `above`.
    fn sort_into_cells(&mut self, count: usize) {
        self.starts.clear();
        self.starts.resize(CELLS + 2, 0);
        // Without zeros where there were tokens: all places are written to.
        self.tokens.resize(count, [0.0; 2]);
        let above = self.above.get(..count).unwrap_or_default();
        let shift = self.shift;
        for &[ratio, _] in above {
            self.starts[cell(ratio, shift) + 1] += 1;
        }
        for cell in 0..=CELLS {
            self.starts[cell + 1] += self.starts[cell];
        }
        self.places.clone_from(&self.starts);
        for token in above {
            let place = &mut self.places[cell(token[0], shift)];
            self.tokens[*place as usize] = *token;
            *place += 1;
        }
    }

    /// Returns whether enough of q is left before the last draft to divide by, however the heaviest
    /// tokens fall.
    pub(super) fn leaves_enough(&self, draws: usize) -> bool {
        let gone = self.heaviest.iter().take(draws);
        self.total - gone.sum::<f64>() >= LEAST_REST
    }

    /// The probability that two drafts are both rejected: the sum over tokens of
    /// (q - p)+ M(1 + M(1)/(1-q))/M(1), within the allowance for rounding of
    /// [`super::PAIR_ROUNDING`]. `None` where 1-q has lost too many digits for that, or so
    /// many tokens have p/q next to 1 + M(1) that a sum over all is as fast. O(V).
    pub(super) fn two_rejected(&self, rows: Rows<'_>) -> Option<f64> {
        let largest = self.heaviest.first().copied().unwrap_or(0.0);
        if self.total - largest < LEAST_REST_OF_TWO {
            return None;
        }
        if self.first <= 0.0 {
            return Some(0.0);
        }
        // What an unlisted token leads to: M from here to there.
        let start = 1.0 + self.first / self.total;
        let end = 1.0 + self.first / (self.total - self.least);
        let mut knots: Vec<[f64; 2]> = Vec::new();
        for cell in self.cell(start)..=self.cell(end) {
            let tokens = self.tokens[self.range(cell)].iter();
            knots.extend(
                tokens
                    .filter(|token| start < token[0] && token[0] <= end)
                    .copied(),
            );
            if knots.len() > MOST_KNOTS {
                return None;
            }
        }
        knots.sort_unstable_by(|a, b| a[0].total_cmp(&b[0]));
        let line = Line {
            mass: self.exact_mass(start),
            slope: self.exact_draft(start),
            start,
            first: self.first,
            total: self.total,
            unlisted: self.least,
            knot: knots.first().map_or(f64::INFINITY, |knot| knot[0]),
        };
        let mut beyond = Vec::new();
        let unlisted = along(rows, line, &mut beyond);
        let mut sum = TwoFloat::from(unlisted);
        for [refused, q] in beyond {
            let next = 1.0 + self.first / (self.total - q);
            let passed = knots.partition_point(|knot| knot[0] < next);
            let turned: f64 = (knots[..passed].iter())
                .map(|&[ratio, q]| (next - ratio) * q)
                .sum();
            let left = line.mass - (next - start) * line.slope + turned;
            sum += refused * left.max(self.unreachable);
        }
        for token in &self.listed {
            if token.q > token.p {
                let next = 1.0 + self.first / (self.total - token.q);
                sum += (token.q - token.p) * self.exact_mass(next);
            }
        }
        Some((sum.value() / self.first).clamp(0.0, self.first))
    }

    /// M(L) from 1 on, rounded a few times.
    fn exact_mass(&self, factor: f64) -> f64 {
        let cell = self.cell(factor);
        let [target, draft] = self.beyond[cell];
        let mut sum = UnitSum::default();
        for &[ratio, q] in &self.tokens[self.range(cell)] {
            sum.add((ratio - factor).max(0.0) * q);
        }
        ((target - factor * draft).max(0.0) + sum.value()).max(self.unreachable)
    }

    /// Mass of q with p/q above a factor from 1 on.
    fn exact_draft(&self, factor: f64) -> f64 {
        let cell = self.cell(factor);
        let mut sum = UnitSum::default();
        for &[ratio, q] in &self.tokens[self.range(cell)] {
            sum.add(if ratio > factor { q } else { 0.0 });
        }
        self.beyond[cell][1] + sum.value()
    }

    fn cell(&self, ratio: f64) -> usize {
        cell(ratio, self.shift)
    }

    fn range(&self, cell: usize) -> std::ops::Range<usize> {
        self.starts[cell] as usize..self.starts[cell + 1] as usize
    }

    /// M(L) from 1 on.
    #[inline]
    pub(super) fn mass(&self, factor: f64) -> f64 {
        let cell = self.cell(factor);
        let [target, draft] = self.beyond[cell];
        let mut sum = 0.0;
        for &[ratio, q] in &self.tokens[self.range(cell)] {
            sum += (ratio - factor).max(0.0) * q;
        }
        ((target - factor * draft).max(0.0) + sum).max(self.unreachable)
    }

    /// Moments over the unlisted tokens of p/q up to a factor from 1 on.
    pub(super) fn up_to(&self, factor: f64) -> Sums {
        let cell = self.cell(factor);
        let mut sums = self.below[cell];
        for &[ratio, q] in &self.tokens[self.range(cell)] {
            if ratio <= factor && q < self.least {
                add(&mut sums, ratio * q, q);
            }
        }
        sums
    }
}

type Cells<'a> = (&'a mut [Sums], &'a mut [[f64; 2]]);

/// Returns of every cell the moments before it, to which those of its unlisted tokens are added,
/// and its sums of p and q.
#[multiversion(targets = "simd")]
fn by_cell(
    tokens: &[[f64; 2]],
    starts: &[u32],
    least: f64,
    moments: &mut Sums,
    (below, beyond): Cells<'_>,
) {
    let mut all = *moments;
    let cells = below.iter_mut().zip(beyond);
    for ((before, own), ends) in cells.zip(starts.windows(2)) {
        *before = all;
        let (mut p, mut q) = (UnitSum::default(), UnitSum::default());
        for &[ratio, mass] in &tokens[ends[0] as usize..ends[1] as usize] {
            let target = ratio * mass;
            p.add(target);
            q.add(mass);
            if mass < least {
                add(&mut all, target, mass);
            }
        }
        *own = [p.value(), q.value()];
    }
    *moments = all;
}

/// The cell of a ratio.
#[inline]
fn cell(ratio: f64, shift: u32) -> usize {
    let above = ratio.to_bits().saturating_sub(ONE) >> shift;
    (above as usize).min(CELLS)
}

/// M(1 + first/(total - q)) of unlisted tokens before the first knot: a line.
#[derive(Clone, Copy, Debug)]
struct Line {
    mass: f64,
    slope: f64,
    start: f64,
    first: f64,
    total: f64,
    /// Tokens of q below this are unlisted.
    unlisted: f64,
    knot: f64,
}

/// The sum of (q - p)+ times the line over unlisted tokens that it reaches; (q - p)+ and q of
/// those that it does not.
#[multiversion(targets = "simd")]
fn along(rows: Rows<'_>, line: Line, beyond: &mut Vec<[f64; 2]>) -> f64 {
    let Line {
        mass,
        slope,
        start,
        first,
        total,
        unlisted,
        knot,
    } = line;
    let next = |q: f64| 1.0 + first / (total - q);
    let reach = last_up_to(knot, next, unlisted.min(total - 0.5 * LEAST_REST_OF_TWO));
    let refused = |p: f64, q: f64| if q > p && q < unlisted { q - p } else { 0.0 };
    let blocks = rows.target.chunks(BLOCK).zip(rows.draft.chunks(BLOCK));
    for (p, q) in blocks {
        let is_far = |(p, q): (&f64, &f64)| *q > reach && refused(*p, *q) > 0.0;
        if q.iter().fold(false, |any, q| any | (*q > reach)) {
            let far = p.iter().zip(q).filter(|pair| is_far(*pair));
            beyond.extend(far.map(|(p, q)| [refused(*p, *q), *q]));
        }
    }
    split_sum(rows.target, rows.draft, |p, q| {
        let left = mass - (next(q) - start) * slope;
        let near = refused(p, q) * left;
        if q > reach { 0.0 } else { near }
    })
}

/// The largest number up to `most` at which a function that never falls is not above `limit`, as
/// the function is rounded; 0 if there is none.
fn last_up_to(limit: f64, rising: impl Fn(f64) -> f64, most: f64) -> f64 {
    if rising(most) <= limit {
        return most;
    }
    let (mut low, mut high) = (0, most.to_bits());
    while high - low > 1 {
        let middle = u64::midpoint(low, high);
        if rising(f64::from_bits(middle)) <= limit {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::from_bits(low)
}

struct Divided {
    /// Tokens of p > q > 0.
    count: usize,
    /// Moments of unlisted tokens with p <= q.
    below: Sums,
    /// M(1), the sum of q, and the mass of p where q = 0.
    totals: [f64; 3],
}

/// Tokens by what they are needed for: the listed ones; and p/q and q where p > q > 0, the first
/// of `above`.
#[multiversion(targets = "simd")]
fn divide(
    rows: Rows<'_>,
    least: f64,
    listed: &mut Vec<Token>,
    above: &mut Vec<[f64; 2]>,
) -> Divided {
    if above.len() < rows.draft.len() {
        above.resize(rows.draft.len(), [0.0; 2]);
    }
    let mut count = 0;
    let (mut first, mut unreachable) = (TwoFloat::ZERO, TwoFloat::ZERO);
    let (mut kept, mut flags) = ([[0.0; BLOCK]; 2], [false; BLOCK]);
    for (p, q) in rows.target.chunks(BLOCK).zip(rows.draft.chunks(BLOCK)) {
        let (mut any, mut none) = (false, false);
        for ((flag, p), q) in flags.iter_mut().zip(p).zip(q) {
            *flag = (p > q) & (*q > 0.0);
            any |= *q >= least;
            none |= *q == 0.0;
        }
        let mut found = 0;
        for ((p, q), flag) in p.iter().zip(q).zip(&flags) {
            // Written whether it is one or not, and then written over.
            (kept[0][found % BLOCK], kept[1][found % BLOCK]) = (*p, *q);
            found += usize::from(*flag);
        }
        let [more, less] = kept.each_ref().map(|kept| &kept[..found]);
        first += split_sum(more, less, |p, q| p - q);
        let places = above.iter_mut().skip(count);
        for ((place, p), q) in places.zip(more).zip(less) {
            *place = [p / q, *q];
        }
        count += found;
        if any {
            let tokens = p.iter().zip(q).filter(|(_, q)| **q >= least && **q > 0.0);
            let token = |(&p, &q): (&f64, &f64)| Token { p, q, ratio: p / q };
            listed.extend(tokens.map(token));
        }
        if none {
            let only = p.iter().zip(q).filter(|(_, q)| **q == 0.0);
            only.for_each(|(p, _)| unreachable += *p);
        }
    }
    first += unreachable;

    Divided {
        count,
        below: moments(rows, least),
        totals: [first.value(), split_total(rows.draft), unreachable.value()],
    }
}

/// Moments of tokens of q below `least` with p <= q.
#[multiversion(targets = "simd")]
fn moments(rows: Rows<'_>, least: f64) -> Sums {
    const LANES: usize = 16;
    let mut sums = [[0.0; LANES]; SUMS];
    let mut add = |lane: usize, p: f64, q: f64| {
        let counts = q < least && p <= q;
        let (q, p) = if counts { (q, p) } else { (0.0, 0.0) };
        let mut own = [0.0; SUMS];
        add(&mut own, p, q);
        for (sum, own) in sums.iter_mut().zip(own) {
            sum[lane] += own;
        }
    };
    let (targets, targets_end) = rows.target.as_chunks::<LANES>();
    let (drafts, drafts_end) = rows.draft.as_chunks::<LANES>();
    for (p, q) in targets.iter().zip(drafts) {
        for lane in 0..LANES {
            add(lane, p[lane], q[lane]);
        }
    }
    for (lane, (p, q)) in targets_end.iter().zip(drafts_end).enumerate() {
        add(lane, *p, *q);
    }
    sums.map(|sum| sum.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last number before a function rises above a limit, to the last bit.
    #[test]
    fn ends_of_ranges_are_exact() {
        for (first, total) in [(1e-10, 1.0), (0.25, 0.999_999), (0.9, 1.0)] {
            let next = |q: f64| 1.0 + first / (total - q);
            for q in [1e-300, 1e-9, 0.003, 0.3] {
                let reach = last_up_to(next(q), next, 0.5);
                assert!(reach >= q && next(reach) <= next(q), "{first} {q}: {reach}");
                assert!(next(reach.next_up()) > next(q), "{first} {q}: {reach}");
            }
            assert_eq!(last_up_to(f64::INFINITY, next, 0.5), 0.5);
            assert_eq!(last_up_to(1.0, next, 0.5), 0.0);
        }
    }
}
