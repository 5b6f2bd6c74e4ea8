//! The law `stratified`: the sure tokens, and one token from each stratum of the rest of q.

use super::cells::{Cells, in_units, significand};
use multiversion::multiversion;
use specgap_number::distribution::{Draft, TwoFloat, token_id};
use specgap_number::scratch::Scratch;

/// A token that misses certainty by less than one part in 2 to this is certain: the definition has
/// this slack, so that rounding does not decide which tokens are.
pub const SURE_BITS: u32 = 40;

const CERTAIN: f64 = 1.0 - 1.0 / (1u64 << SURE_BITS) as f64;

/// A token that is over a cut by rounding alone is not.
const OVER: f64 = 64.0 * f64::EPSILON;

/// Whether a token over the cut between two strata may be drafted from both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Straddle {
    /// Never twice: systematic sampling after Deville.
    Once,
    /// Strata are drawn independently.
    Independent,
}

/// A token over the cut between one stratum and the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Straddler {
    /// The token.
    pub token: u32,
    /// Its share of the stratum before the cut.
    pub before: f64,
    /// Its share of the stratum behind the cut.
    pub behind: f64,
}

/// Where a token is drafted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// Always drafted, in this slot.
    Certain(usize),
    /// Inside this stratum.
    Stratum(usize),
    /// Over the cut between this stratum and the next.
    Cut(usize),
    /// Never drafted.
    Nowhere,
}

/// Given whether the draft before was the token over the cut: what a unit of mass of a
/// stratum is drafted with, and that token.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub(super) other: [f64; 2],
    pub(super) left: [f64; 2],
}

/// What is alive of a stratum: mass inside it, the part of the token over the cut before it, and mass
/// over the cut behind it.
pub(super) type Alive = [f64; 3];

impl Link {
    fn given(&self, earlier: [f64; 2]) -> [f64; 2] {
        [self.other, self.left].map(|by| earlier[0] * by[0] + earlier[1] * by[1])
    }

    /// P(drafts up to this one not accepted), by whether it is over the cut, from that of those before.
    pub(super) fn forward(&self, earlier: [f64; 2], [inside, left, right]: Alive) -> [f64; 2] {
        let [other, over] = self.given(earlier);
        [other * inside + over * left, other * right]
    }

    /// P(drafts from this one on not accepted), given whether the one before is over the cut, from
    /// that of those behind.
    pub(super) fn backward(&self, later: [f64; 2], [inside, left, right]: Alive) -> [f64; 2] {
        let others = inside * later[0] + right * later[1];
        let left = left * later[0];
        [0, 1].map(|state| self.other[state] * others + self.left[state] * left)
    }

    /// Prices: of mass inside the stratum, of the token over the cut before it (with all its mass) and
    /// of mass over the cut behind it.
    pub(super) fn prices(&self, earlier: [f64; 2], later: [f64; 2]) -> [f64; 3] {
        let [other, left] = self.given(earlier);
        [other * later[0], left * later[0], other * later[1]]
    }
}

/// Certain tokens F and k strata of equal mass, k = n - |F|.
///
/// A token is certain if it alone is at least one n-th of q, but for [`SURE_BITS`], what is left of
/// q counted anew after each. The others are laid on [0, k) by their mass, heaviest first (ties: lowest id),
/// and stratum j is [j, j + 1). A tuple of drafts holds F first, heaviest first, and then one
/// token of each stratum: [`Self::slots`] tokens, which is n unless q has fewer.
/// Positions are sums in double-double.
///
/// # Complexity
/// O(V) to gather q by leading bits; then a sort of those tokens alone that are near a cut.
///
/// # Source
/// specgap's; Deville's systematic sampling is ordered pivotal sampling (Chauvet 2012).
///
/// # Example
/// ```
/// use specgap_number::distribution::Draft;
/// use specgap_plan::{Home, Strata};
/// let q = Draft::new(&[0.125, 0.5, 0.125, 0.25])?;
/// let strata = Strata::of(&q, 2);
/// assert_eq!(strata.certain(), [1]);
/// assert_eq!((strata.strata(), strata.slots()), (1, 2));
/// assert_eq!(strata.home(3, 0.25), Home::Stratum(0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Strata {
    /// V.
    vocab: usize,
    /// F, heaviest first.
    certain: Vec<u32>,
    strata: usize,
    /// Mass on [0, k) over q.
    scale: f64,
    /// The last token of each stratum but the last, the one over its cut included.
    ends: Vec<End>,
    /// The least q that decides where a token is.
    heavy: f64,
    straddlers: Vec<Option<Straddler>>,
    /// Mass inside each stratum, without tokens over its cuts.
    interior: Vec<f64>,
    /// Of that, what is not listed.
    unlisted: Vec<f64>,
}

/// A place in the order of tokens, heaviest first, ties by id.
#[derive(Clone, Copy, Debug)]
struct End {
    q: f64,
    token: u32,
}

impl End {
    /// Behind all tokens.
    const LAST: Self = Self {
        q: 0.0,
        token: u32::MAX,
    };

    /// Tells whether a token comes before it or is it.
    #[inline(always)]
    fn reaches(self, token: u32, q: f64) -> bool {
        q > self.q || q == self.q && token <= self.token
    }
}

/// The mass of q by its leading bits: all that strata of different n share.
#[derive(Clone, Debug)]
pub struct Heaviest {
    /// By token: its cell, or nowhere.
    codes: Scratch<u16>,
    /// Mass from each cell on, summed from the light end, with what is not listed.
    rest: Vec<TwoFloat>,
    /// Tokens of q > 0.
    tokens: usize,
    unlisted: f64,
}

/// In place of a cell.
const NOWHERE: u16 = u16::MAX;

/// Cells of q at most.
const CELLS: u64 = 2048;

/// A token of a cell that was sorted, with the mass behind it.
#[derive(Clone, Copy)]
struct Placed {
    q: f64,
    token: u32,
    rest: TwoFloat,
}

impl Heaviest {
    /// Gathers the mass of a row that sums to 1, or nearly. O(V).
    pub fn of(q: &[f64]) -> Self {
        Self::listed(q, 0.0)
    }

    /// [`Self::of`] of a row that lacks the mass `unlisted`, all of it in tokens lighter than
    /// those listed: they are laid last.
    fn listed(q: &[f64], unlisted: f64) -> Self {
        let cells = Cells::of_octaves(q, CELLS);
        let mut codes = Scratch::of_any(q.len());
        let mut sums = vec![0u128; cells.count()];
        let mut tokens = 0;
        codes_of(&mut codes, q, cells);
        for (&code, &q) in codes.iter().zip(q) {
            if code != NOWHERE {
                sums[usize::from(code)] += u128::from(significand(q));
                tokens += 1;
            }
        }
        let mut sum = TwoFloat::from(unlisted);
        let mut rest = vec![sum; sums.len() + 1];
        for (cell, units) in sums.into_iter().enumerate().rev() {
            if units > 0 {
                sum += in_units(units, cells.least(cell));
            }
            rest[cell] = sum;
        }
        Self {
            codes,
            rest,
            tokens,
            unlisted,
        }
    }

    /// The tokens of a cell, heaviest first.
    fn sorted(&self, q: &[f64], cell: usize) -> Vec<Placed> {
        let mut tokens = places_of(&self.codes, cell as u16);
        // They come by id.
        tokens.sort_by(|&a, &b| q[b as usize].total_cmp(&q[a as usize]));
        let mut rest = self.rest[cell + 1];
        let mut placed: Vec<Placed> = (tokens.into_iter().rev())
            .map(|token| {
                let q = q[token as usize];
                let own = Placed { q, token, rest };
                rest += q;
                own
            })
            .collect();
        placed.reverse();
        placed
    }

    /// The strata of q, the row that this was made of, for so many drafts.
    pub fn strata(&self, q: &[f64], drafts: usize) -> Strata {
        let mut walk = Walk::new(self, q);
        let most = drafts.saturating_sub(1).min(self.tokens);
        let mut certain = Vec::new();
        let mut left = self.rest[0];
        let mut heavy = f64::INFINITY;
        while certain.len() < most {
            let number = (drafts - certain.len()) as f64;
            match walk.next() {
                Some(next) if number * next.q >= CERTAIN * left.value() => {
                    certain.push(next.token);
                    (left, heavy) = (next.rest, next.q);
                    walk.place += 1;
                }
                _ => break,
            }
        }
        let is_all = certain.len() == self.tokens && self.unlisted <= 0.0;
        let strata = if is_all { 0 } else { drafts - certain.len() };
        let scale = match strata {
            0 => 0.0,
            _ => (strata as f64 / left.value()).min(f64::MAX),
        };
        let mut found = Strata {
            vocab: q.len(),
            certain,
            strata,
            scale,
            ends: Vec::with_capacity(strata),
            heavy,
            straddlers: vec![None; strata.saturating_sub(1)],
            interior: Vec::with_capacity(strata),
            unlisted: vec![0.0; strata],
        };
        found.lay_out(walk, left);
        found
    }
}

/// A way along the tokens, heaviest first, on which a cell is sorted where it is looked into.
struct Walk<'a> {
    heaviest: &'a Heaviest,
    q: &'a [f64],
    cell: usize,
    sorted: Vec<Placed>,
    /// The next token in the cell.
    place: usize,
}

impl<'a> Walk<'a> {
    fn new(heaviest: &'a Heaviest, q: &'a [f64]) -> Self {
        let mut walk = Self {
            heaviest,
            q,
            cell: 0,
            sorted: Vec::new(),
            place: 0,
        };
        walk.enter(0);
        walk
    }

    fn enter(&mut self, cell: usize) {
        self.cell = cell;
        self.place = 0;
        self.sorted = match cell + 1 < self.heaviest.rest.len() {
            true => self.heaviest.sorted(self.q, cell),
            false => Vec::new(),
        };
    }

    /// The next token.
    fn next(&mut self) -> Option<Placed> {
        self.first(|_| false)
    }

    /// The first token from here on that `passes` does not hold of the mass behind; it holds of none
    /// lighter than one of which it does not.
    fn first(&mut self, passes: impl Fn(TwoFloat) -> bool) -> Option<Placed> {
        let rest = self.heaviest.rest.as_slice();
        loop {
            let own = &self.sorted[self.place..];
            let place = self.place + own.partition_point(|one| passes(one.rest));
            if let Some(&found) = self.sorted.get(place) {
                self.place = place;
                return Some(found);
            }
            let later = rest.get(self.cell + 2..)?;
            let mut cell = self.cell + 1 + later.partition_point(|&behind| passes(behind));
            while *rest.get(cell)? == *rest.get(cell + 1)? {
                cell += 1;
            }
            self.enter(cell);
        }
    }

    /// Returns the mass from the token at hand on.
    fn rest(&self) -> TwoFloat {
        match self.place.checked_sub(1) {
            Some(before) => self.sorted[before].rest,
            None => self.heaviest.rest[self.cell],
        }
    }
}

#[multiversion(targets = "simd")]
fn codes_of(codes: &mut [u16], q: &[f64], cells: Cells) {
    for (code, &q) in codes.iter_mut().zip(q) {
        let cell = cells.of(q) as u16;
        *code = if q > 0.0 { cell } else { NOWHERE };
    }
}

/// Places of a code, rising.
#[multiversion(targets = "simd")]
fn places_of(codes: &[u16], code: u16) -> Vec<u32> {
    let mut places = Vec::new();
    for (number, group) in codes.chunks(GROUP).enumerate() {
        let hits = group.iter().fold(false, |hits, &one| hits | (one == code));
        if hits {
            let own = (number * GROUP..).zip(group).filter(|one| *one.1 == code);
            places.extend(own.map(|one| token_id(one.0)));
        }
    }
    places
}

/// Codes that are looked at together.
const GROUP: usize = 128;

impl Strata {
    /// The strata of q for so many drafts.
    pub fn of(draft: &Draft, drafts: usize) -> Self {
        Self::of_row(draft.probabilities(), drafts)
    }

    /// [`Self::of`] of a row that sums to 1, or nearly.
    pub fn of_row(q: &[f64], drafts: usize) -> Self {
        Self::listed(q, 0.0, drafts)
    }

    /// The strata of a row that lacks the mass `unlisted`.
    pub(super) fn listed(q: &[f64], unlisted: f64, drafts: usize) -> Self {
        Heaviest::listed(q, unlisted).strata(q, drafts)
    }

    fn lay_out(&mut self, mut walk: Walk<'_>, left: TwoFloat) {
        let scale = TwoFloat::from(self.scale);
        // Where on [0, k) begins what is followed by so much.
        let position = |rest: TwoFloat| (left - rest) * scale;
        let unlisted = walk.heaviest.unlisted;
        let all = position(TwoFloat::from(unlisted));
        let mut start = TwoFloat::ZERO;
        // What is not listed fills up the stratum with the last listed token and those behind.
        let mut filled = all;
        for stratum in 0..self.strata {
            let cut = TwoFloat::from((stratum + 1) as f64);
            let ends_before = |rest| position(rest).value() < cut.value() - OVER;
            let over = match stratum + 1 < self.strata {
                true => walk
                    .first(ends_before)
                    .map(|one| (one.q, one.token, one.rest)),
                false => None,
            };
            let (inside, end) = if let Some((q, token, rest)) = over {
                let (begin, end) = (position(walk.rest()), position(rest));
                let before = (cut - begin).value();
                let behind = (end - cut).value();
                let is_over = behind > OVER;
                self.straddlers[stratum] = is_over.then_some(Straddler {
                    token,
                    before,
                    behind,
                });
                let inside = if is_over { begin } else { end } - start;
                walk.place += 1;
                start = end;
                (inside, End { q, token })
            } else {
                let mut inside = all - start;
                if unlisted > 0.0 {
                    let share = (cut - filled).value().clamp(0.0, 1.0);
                    self.unlisted[stratum] = share;
                    inside += share;
                    filled = cut;
                }
                start = all;
                (inside, End::LAST)
            };
            self.interior.push(inside.value());
            self.ends.push(end);
        }
        self.ends.pop();
        self.heavy = self.ends.last().map_or(self.heavy, |end| end.q);
    }

    /// F, heaviest first.
    pub fn certain(&self) -> &[u32] {
        &self.certain
    }

    /// k.
    pub fn strata(&self) -> usize {
        self.strata
    }

    /// Drafts in a tuple: |F| + k.
    pub fn slots(&self) -> usize {
        self.certain.len() + self.strata
    }

    /// V.
    pub fn vocab(&self) -> usize {
        self.vocab
    }

    /// Returns what is over each of the k - 1 cuts.
    pub fn straddlers(&self) -> &[Option<Straddler>] {
        &self.straddlers
    }

    /// Finds where a token of this q is drafted from.
    #[inline]
    pub fn home(&self, token: u32, q: f64) -> Home {
        if q.is_nan() || q <= 0.0 {
            return Home::Nowhere;
        }
        if let Some(slot) = self.certain.iter().position(|&sure| sure == token) {
            return Home::Certain(slot);
        }
        // Counted without a branch, as the next token's stratum is anybody's guess.
        let ends = self.ends.iter();
        let stratum: usize = ends.map(|end| usize::from(!end.reaches(token, q))).sum();
        match self.straddlers.get(stratum) {
            Some(Some(over)) if over.token == token => Home::Cut(stratum),
            _ => Home::Stratum(stratum),
        }
    }

    /// All tokens of less q than this, which is above 0, are inside the last stratum.
    pub(super) fn heavy(&self) -> f64 {
        self.heavy
    }

    /// Returns what of a stratum is not listed.
    pub(super) fn unlisted(&self, stratum: usize) -> f64 {
        self.unlisted[stratum]
    }

    /// Mass of a token on [0, k) over its q.
    pub(super) fn scale(&self) -> f64 {
        self.scale
    }

    /// Share of the token over the cut before the stratum.
    pub(super) fn behind(&self, stratum: usize) -> f64 {
        let cut = stratum.checked_sub(1);
        let straddler = cut.and_then(|cut| self.straddlers[cut]);
        straddler.map_or(0.0, |straddler| straddler.behind)
    }

    /// Share of the token over the cut behind the stratum.
    fn before(&self, stratum: usize) -> f64 {
        let straddler = self.straddlers.get(stratum).copied().flatten();
        straddler.map_or(0.0, |straddler| straddler.before)
    }

    /// Returns how each stratum is drawn, given whether the draft before is the token over the cut.
    pub(super) fn links(&self, straddle: Straddle) -> Vec<Link> {
        let link = |stratum| {
            let left = self.behind(stratum);
            let others = self.interior[stratum] + self.before(stratum);
            match straddle {
                Straddle::Independent => Link {
                    other: [1.0 / (left + others); 2],
                    left: [left / (left + others); 2],
                },
                Straddle::Once => {
                    let chance = match left > 0.0 {
                        true => (left / (1.0 - self.before(stratum - 1))).min(1.0),
                        false => 0.0,
                    };
                    Link {
                        other: [(1.0 - chance) / others, 1.0 / others],
                        left: [chance, 0.0],
                    }
                }
            }
        };
        (0..self.strata).map(link).collect()
    }

    /// Puts the law of the next draft, given those before it in their tuple, in place of q, the
    /// row that the strata are of; 0 behind the last. O(V).
    pub fn next_draft(&self, straddle: Straddle, before: &[u32], q: &mut [f64]) {
        if let Some(&sure) = self.certain().get(before.len()) {
            q.fill(0.0);
            q[sure as usize] = 1.0;
            return;
        }
        let stratum = before.len() - self.certain.len();
        let Some(&link) = self.links(straddle).get(stratum) else {
            return q.fill(0.0);
        };
        let left = stratum.checked_sub(1).map(Home::Cut);
        let home = |token: u32| self.home(token, q[token as usize]);
        let was_over = (before.last()).is_some_and(|&last| Some(home(last)) == left);
        let state = usize::from(was_over);
        for (token, mass) in (0u32..).zip(q) {
            let home = self.home(token, *mass);
            *mass = match home {
                Home::Cut(cut) if cut == stratum => self.before(cut) * link.other[state],
                Home::Stratum(own) if own == stratum => *mass * self.scale * link.other[state],
                _ if Some(home) == left => link.left[state],
                _ => 0.0,
            };
        }
    }
}

/// Q of a set by its masses inside strata, and which tokens over cuts it holds.
pub(super) fn chance_inside(strata: &Strata, links: &[Link], masses: &[f64], held: &[bool]) -> f64 {
    // Given whether the draft before was over the cut; from the last stratum to the first.
    let mut later = [1.0, 1.0];
    for stratum in (0..strata.strata()).rev() {
        let is_held = |cut: usize| held.get(cut) == Some(&true);
        let over = if is_held(stratum) {
            strata.before(stratum)
        } else {
            0.0
        };
        let left = f64::from(u8::from(stratum > 0 && is_held(stratum - 1)));
        later = links[stratum].backward(later, [masses[stratum], left, over]);
    }
    later[0].min(1.0)
}
