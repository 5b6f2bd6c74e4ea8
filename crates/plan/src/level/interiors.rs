//! What level passes go over: the tokens inside each stratum, gathered by p/q.
//!
//! A pass asks a stratum for sums over the tokens whose p/q is above a number. Tokens are in cells of
//! like p/q, cells fall, and sums up to each cell are known: only the cell that the number lies in is
//! gone through.

use super::cells::Cells;
use super::strata::{Home, Strata};
use multiversion::multiversion;
use specgap_number::distribution::{LANES, SplitSum, TwoFloat};
use specgap_number::scratch::Scratch;
use std::ops::{Range, Sub};
use std::sync::Arc;

/// Cells of p/q at most. Neighbours are joined where they have few tokens.
const CELLS: u64 = 1 << 13;

/// So many tokens are few.
const FEW: usize = 128;

/// The tokens that can be drafted in cells of like p/q, by falling p/q: what strata of any number of
/// drafts are made of.
#[derive(Debug)]
pub struct Falling {
    cells: Cells,
    runs: Vec<Run>,
    tokens: Tokens,
    /// Sum of these p.
    drafted: f64,
}

/// Some whole cells. Tokens have no order in them.
#[derive(Clone, Copy, Debug)]
struct Run {
    last_cell: u32,
    end: u32,
    sums: Sums,
}

/// Tokens with their p and q.
#[derive(Clone, Debug)]
struct Tokens {
    ids: Scratch<u32>,
    p: Scratch<f64>,
    q: Scratch<f64>,
}

impl Tokens {
    fn of_any(len: usize) -> Self {
        Self {
            ids: Scratch::of_any(len),
            p: Scratch::of_any(len),
            q: Scratch::of_any(len),
        }
    }

    fn push(&mut self, (token, p, q): (u32, f64, f64)) {
        self.ids.push(token);
        self.p.push(p);
        self.q.push(q);
    }

    /// Sums over some places.
    fn sums(&self, places: Range<usize>) -> Sums {
        above(
            &self.p[places.clone()],
            &self.q[places],
            (f64::NEG_INFINITY, 1.0),
        )
    }
}

impl Falling {
    /// Gathers the tokens of rows that sum to 1, or nearly. O(V), without a sort.
    pub fn of((p, q): (&[f64], &[f64])) -> Arc<Self> {
        let mut ratios = Scratch::of_any(q.len());
        divide(&mut ratios, p, q);
        let cells = Cells::over(&ratios, CELLS);
        let mut codes = Scratch::<u16>::of_any(q.len());
        codes_of(&mut codes, &ratios, cells);
        let mut counts = vec![0u32; cells.count()];
        for (&code, &q) in codes.iter().zip(q) {
            counts[usize::from(code)] += u32::from(q > 0.0);
        }
        let (mut runs, mut run_of) = (runs_of(&counts), counts);
        let mut next: Vec<u32> = std::iter::once(0)
            .chain(runs.iter().map(|run| run.end))
            .collect();
        let mut run = 0;
        for (cell, own) in (0u32..).zip(&mut run_of) {
            let is_behind = |run: &Run| run.last_cell < cell;
            run += u32::from(runs.get(run as usize).is_some_and(is_behind));
            *own = run;
        }
        let mut tokens = Tokens::of_any(next.last().map_or(0, |&end| end as usize));
        // Ids alone go to as many places at a time as there are runs: p and q are then fetched in order.
        for ((token, &code), &q) in (0u32..).zip(codes.iter()).zip(q) {
            if q > 0.0 {
                let next = &mut next[run_of[usize::from(code)] as usize];
                tokens.ids[*next as usize] = token;
                *next += 1;
            }
        }
        gather(&mut tokens, p, q);
        let (mut begin, mut all) = (0, Sums::NONE);
        for run in &mut runs {
            let end = run.end as usize;
            run.sums = tokens.sums(begin..end);
            all = all.plus(run.sums);
            begin = end;
        }
        Arc::new(Self {
            cells,
            runs,
            tokens,
            drafted: all.p.value(),
        })
    }
}

/// Runs of whole cells with some tokens, by how many there are in each cell; nothing is summed yet.
fn runs_of(counts: &[u32]) -> Vec<Run> {
    let mut runs = Vec::new();
    let (mut all, mut since) = (0, 0);
    let last = counts.len() as u32 - 1;
    for (last_cell, count) in (0u32..).zip(counts) {
        all += count;
        if all - since >= FEW as u32 || last_cell == last && all > since {
            let (end, sums) = (all, Sums::NONE);
            runs.push(Run {
                last_cell,
                end,
                sums,
            });
            since = all;
        }
    }
    runs
}

#[multiversion(targets = "simd")]
fn gather(tokens: &mut Tokens, p: &[f64], q: &[f64]) {
    let own = tokens.p.iter_mut().zip(tokens.q.iter_mut());
    for ((own_p, own_q), &id) in own.zip(tokens.ids.iter()) {
        (*own_p, *own_q) = (p[id as usize], q[id as usize]);
    }
}

#[multiversion(targets = "simd")]
fn has_from(row: &[f64], least: f64) -> bool {
    row.iter().fold(false, |has, &x| has | (x >= least))
}

#[multiversion(targets = "simd")]
fn divide(ratio: &mut [f64], p: &[f64], mass: &[f64]) {
    for ((ratio, p), mass) in ratio.iter_mut().zip(p).zip(mass) {
        *ratio = if *mass > 0.0 { (p + 0.0) / mass } else { 0.0 };
    }
}

#[multiversion(targets = "simd")]
fn codes_of(codes: &mut [u16], ratios: &[f64], cells: Cells) {
    for (code, &ratio) in codes.iter_mut().zip(ratios) {
        *code = cells.of(ratio) as u16;
    }
}

/// Sums over tokens: of p, and of mass on [0, k).
#[derive(Clone, Copy, Debug)]
pub(super) struct Sums {
    pub(super) p: TwoFloat,
    pub(super) mass: TwoFloat,
    pub(super) tokens: u32,
}

impl Sums {
    pub(super) const NONE: Self = Self {
        p: TwoFloat::ZERO,
        mass: TwoFloat::ZERO,
        tokens: 0,
    };

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        Self {
            p: self.p + other.p,
            mass: self.mass + other.mass,
            tokens: self.tokens + other.tokens,
        }
    }

    /// The same with so many times the mass.
    #[inline(always)]
    fn scaled(self, scale: f64) -> Self {
        Self {
            mass: self.mass * scale,
            ..self
        }
    }
}

impl Sub for Sums {
    type Output = Self;
    /// The sums over what is not in `other`, a part of these.
    fn sub(self, other: Self) -> Self {
        Self {
            p: self.p - other.p,
            mass: self.mass - other.mass,
            tokens: self.tokens.saturating_sub(other.tokens),
        }
    }
}

/// The tokens of a stratum from the largest p/mass down to a number, which is in or not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(super) ratio: f64,
    has_ties: bool,
}

impl Mark {
    /// No token.
    pub(super) const NONE: Self = Self {
        ratio: f64::INFINITY,
        has_ties: false,
    };

    /// Tells whether it may have tokens that another has not.
    pub(super) fn is_below(&self, other: &Self) -> bool {
        self.ratio < other.ratio || self.ratio == other.ratio && self.has_ties && !other.has_ties
    }

    /// Tells whether it has a token.
    #[inline(always)]
    pub(super) fn has(&self, p: f64, mass: f64) -> bool {
        let least = self.ratio * mass;
        p > least || self.has_ties && p == least && p > 0.0
    }
}

/// A cell of a stratum.
#[derive(Clone, Debug)]
struct Cell {
    /// The last cell of the row that is in it.
    last: u32,
    /// Where its tokens are: among all that can be drafted, or the stratum's own.
    places: Range<u32>,
    is_whole: bool,
    /// Sums over the cells before.
    before: Sums,
}

/// Tokens inside a stratum.
#[derive(Clone, Debug)]
pub(super) struct Interior {
    falling: Arc<Falling>,
    /// Those of runs that lie in several strata.
    own: Tokens,
    /// Of these, those in cells.
    laid: u32,
    cells: Vec<Cell>,
    /// All of them.
    pub(super) all: Sums,
    /// Mass that is not listed.
    pub(super) unlisted: f64,
    /// Mass on [0, k) over q.
    scale: f64,
}

impl Interior {
    fn new(falling: &Arc<Falling>, scale: f64, unlisted: f64) -> Self {
        Self {
            falling: Arc::clone(falling),
            own: Tokens::of_any(0),
            laid: 0,
            cells: Vec::new(),
            all: Sums::NONE,
            unlisted,
            scale,
        }
    }

    /// Ends a cell with the own tokens that have come, if there are so many.
    fn end_cell(&mut self, last: u32, least: usize) {
        let (begin, end) = (self.laid as usize, self.own.p.len());
        if end - begin >= least {
            let sums = self.own.sums(begin..end);
            self.add_cell(last, begin as u32..end as u32, false, sums);
            self.laid = end as u32;
        }
    }

    /// A cell with sums of p and q.
    fn add_cell(&mut self, last: u32, places: Range<u32>, is_whole: bool, sums: Sums) {
        let before = self.all;
        self.cells.push(Cell {
            last,
            places,
            is_whole,
            before,
        });
        self.all = before.plus(sums.scaled(self.scale));
    }

    /// The ids, p and q of a cell's tokens.
    fn tokens(&self, cell: &Cell) -> (&[u32], &[f64], &[f64]) {
        let of = match cell.is_whole {
            true => &self.falling.tokens,
            false => &self.own,
        };
        let places = cell.places.start as usize..cell.places.end as usize;
        (
            &of.ids[places.clone()],
            &of.p[places.clone()],
            &of.q[places],
        )
    }

    /// Calls with each token, its p and its mass on [0, k).
    pub(super) fn each(&self, mut each: impl FnMut(u32, [f64; 2])) {
        for cell in &self.cells {
            let (ids, p, q) = self.tokens(cell);
            for (&token, (&p, &q)) in ids.iter().zip(p.iter().zip(q)) {
                each(token, [p, q * self.scale]);
            }
        }
    }

    /// The cells that may have tokens of p for their mass both of more and of less than a number.
    /// Cells go by p/q and tokens by p over mass, which are rounded: most often it is one cell.
    fn cells_at(&self, ratio: f64) -> Range<usize> {
        let at = (ratio * self.scale).max(0.0);
        let of = |ratio: f64| self.falling.cells.of(ratio) as u32;
        let (first, last) = (of(at * (1.0 + NEAR)), of(at * (1.0 - NEAR)));
        let begin = self.cells.partition_point(|cell| cell.last < first);
        let mut end = begin;
        while end < self.cells.len() && (end == begin || self.cells[end - 1].last < last) {
            end += 1;
        }
        begin..end
    }

    /// The tokens of more p for their mass than a number, or of so much, and their sums.
    pub(super) fn down_to(&self, ratio: f64, has_ties: bool) -> (Mark, Sums) {
        let mark = Mark { ratio, has_ties };
        let cells = &self.cells[self.cells_at(ratio)];
        let Some(first) = cells.first() else {
            return (mark, self.all);
        };
        let own = cells.iter().fold(Sums::NONE, |sums, cell| {
            let (_, p, q) = self.tokens(cell);
            let least = (ratio, self.scale);
            sums.plus(match has_ties {
                true => from(p, q, least),
                false => above(p, q, least),
            })
        });
        (mark, first.before.plus(own.scaled(self.scale)))
    }

    /// p and mass of the token of the largest ratio that a mark has not, if its p is not 0; some
    /// other's if that is larger by rounding alone.
    pub(super) fn next(&self, mark: &Mark) -> Option<[f64; 2]> {
        for cell in &self.cells[self.cells_at(mark.ratio).start..] {
            let (_, p, q) = self.tokens(cell);
            let mut largest = (0.0, None);
            for (&p, &q) in p.iter().zip(q) {
                let mass = q * self.scale;
                if p > 0.0 && !mark.has(p, mass) && p / mass > largest.0 {
                    largest = (p / mass, Some([p, mass]));
                }
            }
            if largest.1.is_some() {
                return largest.1;
            }
        }
        None
    }
}

/// Two quotients that round apart are nearer than this.
const NEAR: f64 = 16.0 * f64::EPSILON;

/// Sums of p and q over the tokens of more p than a number times their mass, q times a scale.
#[multiversion(targets = "simd")]
fn above(p: &[f64], q: &[f64], (least, scale): (f64, f64)) -> Sums {
    sums_where(p, q, |p, q| p > least * (q * scale))
}

/// The same over the tokens of so much p, or more, and of some p.
#[multiversion(targets = "simd")]
fn from(p: &[f64], q: &[f64], (least, scale): (f64, f64)) -> Sums {
    sums_where(p, q, |p, q| p >= least * (q * scale) && p > 0.0)
}

#[inline(always)]
fn sums_where(p: &[f64], q: &[f64], counts: impl Fn(f64, f64) -> bool) -> Sums {
    let mut sums = [SplitSum::default(); 2];
    let mut tokens = [0u32; LANES];
    let ((p, p_end), (q, q_end)) = (p.as_chunks::<LANES>(), q.as_chunks::<LANES>());
    for (p, q) in p.iter().zip(q) {
        let mut own = [[0.0; LANES]; 2];
        for lane in 0..LANES {
            let is_in = counts(p[lane], q[lane]);
            own[0][lane] = if is_in { p[lane] } else { 0.0 };
            own[1][lane] = if is_in { q[lane] } else { 0.0 };
            tokens[lane] += u32::from(is_in);
        }
        sums[0].add(&own[0]);
        sums[1].add(&own[1]);
    }
    let mut own = [[0.0; LANES]; 2];
    for (lane, (&p, &q)) in p_end.iter().zip(q_end).enumerate() {
        if counts(p, q) {
            (own[0][lane], own[1][lane]) = (p, q);
            tokens[lane] += 1;
        }
    }
    sums[0].add(&own[0]);
    sums[1].add(&own[1]);
    Sums {
        p: sums[0].in_two(),
        mass: sums[1].in_two(),
        tokens: tokens.iter().sum(),
    }
}

/// What passes of two rows go over, whatever their levels.
#[derive(Clone, Debug)]
pub struct Interiors {
    pub(super) strata: Strata,
    pub(super) inside: Vec<Interior>,
    /// p of the tokens over the cuts, and of F.
    pub(super) over: Vec<f64>,
    pub(super) certain: Vec<f64>,
    /// p of all tokens that can be drafted.
    pub(super) drafted: f64,
}

impl Interiors {
    /// The interiors of strata of the rows: a few tokens a stratum, but for the lightest, which has all
    /// others. O(V), without a sort.
    pub fn of(falling: &Arc<Falling>, strata: Strata) -> Self {
        let (count, scale) = (strata.strata(), strata.scale());
        let inside = (0..count).map(|own| Interior::new(falling, scale, strata.unlisted(own)));
        let mut found = Self {
            over: vec![0.0; strata.straddlers().len()],
            certain: vec![0.0; strata.certain().len()],
            drafted: falling.drafted,
            inside: inside.collect(),
            strata,
        };
        found.lay(falling);
        found
    }

    /// Tokens to their strata, run by run.
    fn lay(&mut self, falling: &Falling) {
        let heavy = self.strata.heavy();
        let (mut begin, mut before) = (0, 0);
        for run in &falling.runs {
            let places = begin..run.end;
            let own = places.start as usize..places.end as usize;
            begin = run.end;
            // Most tokens are light.
            if !has_from(&falling.tokens.q[own.clone()], heavy) {
                if let Some(lightest) = self.inside.last_mut() {
                    lightest.end_cell(before, 1);
                    lightest.add_cell(run.last_cell, places, true, run.sums);
                }
                before = run.last_cell;
                continue;
            }
            for place in own {
                let tokens = &falling.tokens;
                self.lay_one(tokens.ids[place], tokens.p[place], tokens.q[place]);
            }
            before = run.last_cell;
            for interior in &mut self.inside {
                interior.end_cell(before, FEW);
            }
        }
        for interior in &mut self.inside {
            interior.end_cell(before, 1);
        }
    }

    fn lay_one(&mut self, token: u32, p: f64, q: f64) {
        match self.strata.home(token, q) {
            Home::Certain(slot) => self.certain[slot] = p,
            Home::Cut(cut) => self.over[cut] = p,
            Home::Stratum(stratum) => self.inside[stratum].own.push((token, p, q)),
            Home::Nowhere => {}
        }
    }

    /// k.
    pub(super) fn count(&self) -> usize {
        self.inside.len()
    }
}

/// Returns what survives of a ratio that a pass brings to a level.
#[inline(always)]
pub(super) fn survives(ratio: f64, level: f64) -> f64 {
    let between = ((1.0 - ratio) * (1.0 / (1.0 - level))).min(1.0);
    let below = if ratio > level { between } else { 1.0 };
    if ratio >= 1.0 { 0.0 } else { below }
}

/// Returns what is emitted of a unit of mass of which this part survives and is emitted `later`.
#[inline(always)]
pub(super) fn unit(part: f64, price: f64, later: f64) -> f64 {
    (1.0 - part) * price + part * later
}

/// Tokens inside a stratum that one pass was the first to touch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fresh {
    /// Down to where, with those that were touched before.
    pub(super) to: Mark,
    /// Of which nothing is left; none but those touched before if this is above them.
    pub(super) used: Mark,
    /// All of them, and those of which something is left.
    pub(super) all: Sums,
    pub(super) alive: Sums,
    /// Mass that survives of them.
    pub(super) left: f64,
}

impl Interior {
    /// Returns what a pass is the first to touch that pays a price for mass and brings tokens to a
    /// level, behind what was touched before; and the sums up to there.
    pub(super) fn touch(
        &self,
        before: (Mark, Sums),
        price: f64,
        level: f64,
    ) -> Option<(Fresh, Sums)> {
        let floor = level * price;
        // A level that is not below the price brings nothing to it.
        let is_apart = floor < price;
        let at_floor = Mark {
            ratio: floor,
            has_ties: !is_apart,
        };
        if !(price > 0.0 && price.is_finite() && at_floor.is_below(&before.0)) {
            return None;
        }
        let used = self.down_to(price, true);
        let used = Some(used).filter(|used| used.0.is_below(&before.0));
        let used = used.unwrap_or(before);
        let to = match is_apart {
            true => self.down_to(floor, false),
            false => used,
        };
        let all = to.1 - before.1;
        if all.tokens == 0 {
            return None;
        }
        let alive = to.1 - used.1;
        // A token of p for its mass m keeps (1 - p/(m price))/(1 - level) of that.
        let over = alive.mass - alive.p.divided_by(price);
        let left = if alive.tokens > 0 {
            (over.value() / (1.0 - level)).clamp(0.0, alive.mass.value())
        } else {
            0.0
        };
        let fresh = Fresh {
            to: to.0,
            used: used.0,
            all,
            alive,
            left,
        };
        Some((fresh, to.1))
    }
}

#[cfg(test)]
mod tests {
    use super::super::iid_tests::{KINDS, row, rows};
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    /// Each token in its home, and what is asked of a stratum again from the definition.
    #[test]
    fn tokens_are_at_home_and_summed_one_by_one() {
        let mut rng = ChaCha8Rng::seed_from_u64(21);
        let mut seen = [0; 5];
        let mut most_cells = 0;
        for kind in 0..KINDS {
            for vocab in [3, 40, 701] {
                let (p, q) = (row(kind, vocab, &mut rng), row(kind, vocab, &mut rng));
                let (p, q) = rows(&p, &q);
                let (p, q) = (p.probabilities(), q.probabilities());
                let falling = Falling::of((p, q));
                for drafts in [1, 2, 5, 9] {
                    let all = Interiors::of(&falling, Strata::of_row(q, drafts));
                    let strata = &all.strata;
                    let mut homes = vec![Home::Nowhere; vocab];
                    for (stratum, here) in all.inside.iter().enumerate() {
                        here.each(|token, [of_p, mass]| {
                            seen[2] += 1;
                            let token = token as usize;
                            assert_eq!(homes[token], Home::Nowhere);
                            homes[token] = Home::Stratum(stratum);
                            assert_eq!((of_p, mass), (p[token], q[token] * strata.scale()));
                        });
                        is_summed(here);
                        seen[3] += here.cells.iter().filter(|cell| cell.is_whole).count();
                        seen[4] += here.cells.iter().filter(|cell| !cell.is_whole).count();
                        most_cells = most_cells.max(here.cells.len());
                    }
                    for (slot, (&token, &of_p)) in
                        strata.certain().iter().zip(&all.certain).enumerate()
                    {
                        seen[0] += 1;
                        homes[token as usize] = Home::Certain(slot);
                        assert_eq!(of_p, p[token as usize]);
                    }
                    for (cut, (over, &of_p)) in
                        strata.straddlers().iter().zip(&all.over).enumerate()
                    {
                        let Some(over) = over else { continue };
                        seen[1] += 1;
                        homes[over.token as usize] = Home::Cut(cut);
                        assert_eq!(of_p, p[over.token as usize]);
                    }
                    for (token, home) in homes.iter().enumerate() {
                        assert_eq!(strata.home(token as u32, q[token]), *home);
                    }
                }
            }
        }
        assert!(seen.iter().all(|&number| number > 50), "{seen:?}");
        assert!(most_cells > 5, "{most_cells}");
    }

    fn is_summed(here: &Interior) {
        let mut own: Vec<[f64; 2]> = Vec::new();
        here.each(|_, one| own.push(one));
        let ratios = own.iter().map(|[p, mass]| p / mass);
        let mut asked: Vec<f64> = ratios.step_by(1 + own.len() / 9).collect();
        asked.extend([0.0, 1e-3, 0.7, 1.0, 1e9]);
        for &ratio in &asked {
            for has_ties in [false, true] {
                let (mark, sums) = here.down_to(ratio, has_ties);
                let counts = |[p, mass]: [f64; 2]| {
                    let least = ratio * mass;
                    p > least || has_ties && p == least && p > 0.0
                };
                let are_in = own.iter().copied().filter(|&one| counts(one));
                let by_hand: [f64; 2] = are_in
                    .clone()
                    .fold([0.0; 2], |sum, one| [sum[0] + one[0], sum[1] + one[1]]);
                assert_eq!(are_in.count(), sums.tokens as usize);
                assert!((sums.p.value() - by_hand[0]).abs() < 1e-13);
                assert!((sums.mass.value() - by_hand[1]).abs() < 1e-13);
                let next = here.next(&mark).map_or(0.0, |[p, mass]| p / mass);
                assert!(own.iter().all(|&[p, mass]| {
                    assert_eq!(mark.has(p, mass), counts([p, mass]));
                    mark.has(p, mass) || p / mass <= next * (1.0 + 1e-15)
                }));
            }
        }
        assert_eq!(here.all.tokens as usize, own.len());
    }
}
