//! The law `stratified`: the sure tokens, and one token from each stratum of the rest of q.

use rand::{Rng, RngCore};
use specgap_number::distribution::{
    Draft, Rows, Target, TwoFloat, by_rising_ratio, split_sum, token_id,
};
use specgap_number::scratch::Scratch;
use std::ops::Range;
use std::sync::Arc;

/// A token that misses certainty by less than one part in 2 to this is certain: the definition has
/// this slack, so that rounding does not decide which tokens are.
pub const SURE_BITS: u32 = 40;

const CERTAIN: f64 = 1.0 - 1.0 / (1u64 << SURE_BITS) as f64;

/// A token that is over a cut by rounding alone is not.
const OVER: f64 = 64.0 * f64::EPSILON;

/// In place of a rank.
const NOWHERE: u32 = u32::MAX;

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

/// Certain tokens F and k strata of equal mass, k = n - |F|.
///
/// A token is certain if it alone is at least one n-th of q, but for [`SURE_BITS`], what is left of
/// q counted anew after each. The others are laid on [0, k) by their mass, heaviest first (ties: lowest id),
/// and stratum j is [j, j + 1). A tuple of drafts holds F first, heaviest first, and then one
/// token of each stratum: [`Self::slots`] tokens, which is n unless q has fewer.
///
/// # Exactness
/// Positions are sums in double-double.
///
/// # Complexity
/// O(V) to sort by cells; then O(n log V).
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
/// assert_eq!(strata.home(3), Home::Stratum(0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Strata {
    heaviest: Heaviest,
    /// |F|.
    sure: usize,
    strata: usize,
    /// Mass on [0, k) over q.
    scale: f64,
    /// Of each stratum the places in the order, without the token over the cut before it.
    places: Vec<Range<usize>>,
    straddlers: Vec<Option<Straddler>>,
    /// Mass inside each stratum, without tokens over its cuts.
    interior: Vec<f64>,
    /// Of that, what is not listed.
    unlisted: Vec<f64>,
}

/// The tokens of q > 0, heaviest first (ties: lowest id): all that strata of different n share.
#[derive(Clone, Debug)]
pub struct Heaviest(Arc<Order>);

#[derive(Debug)]
struct Order {
    tokens: Vec<u32>,
    /// By token: its place, or nowhere.
    rank: Vec<u32>,
    /// Mass from each place on, summed from the light end, with what is not listed.
    rest: Vec<TwoFloat>,
    unlisted: f64,
}

impl Heaviest {
    /// Orders the tokens of q. O(V) to sort by cells.
    pub fn of(draft: &Draft) -> Self {
        Self::listed(draft.probabilities(), 0.0)
    }

    /// [`Self::of`] of a row that sums to 1, or nearly.
    pub fn of_row(q: &[f64]) -> Self {
        Self::listed(q, 0.0)
    }

    /// Orders the tokens of a row that lacks the mass `unlisted`, all of it in tokens lighter than
    /// those listed: they are laid last.
    fn listed(q: &[f64], unlisted: f64) -> Self {
        let ordered = heaviest_first(q);
        let mut rank = vec![NOWHERE; q.len()];
        for (place, &(_, token)) in ordered.iter().enumerate() {
            rank[token as usize] = token_id(place);
        }
        Self(Arc::new(Order {
            tokens: ordered.iter().map(|one| one.1).collect(),
            rank,
            rest: sums_from_the_end(&ordered, unlisted),
            unlisted,
        }))
    }

    /// Returns each token's place, or [`NOWHERE`].
    pub(super) fn ranks(&self) -> &[u32] {
        &self.0.rank
    }
}

/// Sums that are made side by side, as each addition waits for the one before.
const PARTS: usize = 4;

/// Returns for each place the mass from it on, with `behind` behind the last.
fn sums_from_the_end(ordered: &[(f64, u32)], behind: f64) -> Vec<TwoFloat> {
    let count = ordered.len();
    let part = count / PARTS;
    let behind = TwoFloat::from(behind);
    let mut rest = vec![behind; count + 1];
    // What does not part evenly comes last.
    let mut end = behind;
    for place in (PARTS * part..count).rev() {
        end += ordered[place].0;
        rest[place] = end;
    }
    let mut sums = [TwoFloat::ZERO; PARTS];
    for place in (0..part).rev() {
        for (number, sum) in sums.iter_mut().enumerate() {
            *sum += ordered[number * part + place].0;
            rest[number * part + place] = *sum;
        }
    }
    for (number, sum) in sums.into_iter().enumerate().rev() {
        for rest in &mut rest[number * part..(number + 1) * part] {
            *rest += end;
        }
        end += sum;
    }
    rest
}

/// Tokens of q > 0, heaviest first, ties by id.
fn heaviest_first(q: &[f64]) -> Scratch<(f64, u32)> {
    let ones = Scratch::filled(q.len(), 1.0);
    let rows = Rows {
        target: q,
        draft: &ones,
    };
    let rising = by_rising_ratio(rows);
    let positive = rising.partition_point(|&(mass, _)| mass <= 0.0);
    let mut order: Scratch<(f64, u32)> = rising[positive..].iter().rev().copied().collect();
    for ties in order.chunk_by_mut(|a, b| a.0 == b.0) {
        ties.reverse();
    }
    order
}

impl Strata {
    /// The strata of q for so many drafts.
    pub fn of(draft: &Draft, drafts: usize) -> Self {
        Self::of_order(&Heaviest::of(draft), drafts)
    }

    /// [`Self::of`] of a row that sums to 1, or nearly.
    pub fn of_row(q: &[f64], drafts: usize) -> Self {
        Self::listed(q, 0.0, drafts)
    }

    /// The strata of a row that lacks the mass `unlisted`.
    pub(super) fn listed(q: &[f64], unlisted: f64, drafts: usize) -> Self {
        Self::of_order(&Heaviest::listed(q, unlisted), drafts)
    }

    /// [`Self::of`] with the order of q, which does not depend on n. O(n log V).
    pub fn of_order(heaviest: &Heaviest, drafts: usize) -> Self {
        let order = &*heaviest.0;
        let count = order.tokens.len();
        let most = drafts.saturating_sub(1).min(count);
        let certain = (0..most)
            .find(|&sure| {
                let mass = (order.rest[sure] - order.rest[sure + 1]).value();
                ((drafts - sure) as f64) * mass < CERTAIN * order.rest[sure].value()
            })
            .unwrap_or(most);
        let left = order.rest[certain].value();
        let strata = if certain == count && order.unlisted <= 0.0 {
            0
        } else {
            drafts - certain
        };
        let scale = if strata > 0 {
            strata as f64 / left
        } else {
            0.0
        };
        let mut found = Self {
            heaviest: heaviest.clone(),
            sure: certain,
            strata,
            scale,
            places: Vec::with_capacity(strata),
            straddlers: vec![None; strata.saturating_sub(1)],
            interior: Vec::with_capacity(strata),
            unlisted: vec![0.0; strata],
        };
        found.lay_out();
        found
    }

    /// Finds where on [0, k) the token of a place begins.
    fn position(&self, place: usize) -> TwoFloat {
        let rest = &self.heaviest.0.rest;
        (rest[self.sure] - rest[place]) * TwoFloat::from(self.scale)
    }

    fn lay_out(&mut self) {
        let count = self.order().len();
        let mut begin = self.sure;
        // What is not listed fills up the stratum with the last listed token and those behind.
        let mut filled = self.position(count);
        for stratum in 0..self.strata {
            let cut = TwoFloat::from((stratum + 1) as f64);
            let last = stratum + 1 == self.strata;
            let ends_before = |place: usize| self.position(place + 1).value() < cut.value() - OVER;
            let over = if last {
                count
            } else {
                first_place(begin..count, ends_before)
            };
            let start = self.position(begin);
            let (inside, end) = if over < count {
                let before = (cut - self.position(over)).value();
                let behind = (self.position(over + 1) - cut).value();
                let is_over = behind > OVER;
                self.straddlers[stratum] = is_over.then(|| Straddler {
                    token: self.order()[over],
                    before,
                    behind,
                });
                (
                    self.position(over + usize::from(!is_over)) - start,
                    over + 1,
                )
            } else {
                let mut inside = self.position(count) - start;
                if self.heaviest.0.unlisted > 0.0 {
                    let share = (cut - filled).value().clamp(0.0, 1.0);
                    self.unlisted[stratum] = share;
                    inside += share;
                    filled = cut;
                }
                (inside, count)
            };
            self.interior.push(inside.value());
            self.places.push(begin..end);
            begin = end;
        }
    }

    /// Tokens of q > 0, heaviest first.
    fn order(&self) -> &[u32] {
        &self.heaviest.0.tokens
    }

    /// F, heaviest first.
    pub fn certain(&self) -> &[u32] {
        &self.order()[..self.sure]
    }

    /// k.
    pub fn strata(&self) -> usize {
        self.strata
    }

    /// Drafts in a tuple: |F| + k.
    pub fn slots(&self) -> usize {
        self.sure + self.strata
    }

    /// V.
    pub fn vocab(&self) -> usize {
        self.heaviest.0.rank.len()
    }

    /// Returns what is over each of the k - 1 cuts.
    pub fn straddlers(&self) -> &[Option<Straddler>] {
        &self.straddlers
    }

    /// Finds where a token is drafted from.
    #[inline]
    pub fn home(&self, token: u32) -> Home {
        let place = match self.heaviest.0.rank.get(token as usize) {
            None | Some(&NOWHERE) => return Home::Nowhere,
            Some(&place) => place as usize,
        };
        if place < self.sure {
            return Home::Certain(place);
        }
        let mut stratum = 0;
        while stratum + 1 < self.strata && place >= self.places[stratum].end {
            stratum += 1;
        }
        match self.straddlers.get(stratum) {
            Some(Some(over)) if over.token == token => Home::Cut(stratum),
            _ => Home::Stratum(stratum),
        }
    }

    /// The places in the order of the tokens inside each stratum: one more is over its cut.
    pub(super) fn insides(&self) -> Vec<Range<usize>> {
        let over = self.straddlers.iter().map(Option::is_some).chain([false]);
        (self.places.iter().zip(over))
            .map(|(places, over)| places.start..places.end - usize::from(over))
            .collect()
    }

    pub(super) fn heaviest(&self) -> &Heaviest {
        &self.heaviest
    }

    /// Returns what of a stratum is not listed.
    pub(super) fn unlisted(&self, stratum: usize) -> f64 {
        self.unlisted[stratum]
    }

    /// Mass of a token on [0, k) over its q.
    pub(super) fn scale(&self) -> f64 {
        self.scale
    }

    /// Probability that a token is drafted: min(1, c q).
    pub fn inclusion(&self, token: u32, q: f64) -> f64 {
        match self.home(token) {
            Home::Certain(_) => 1.0,
            Home::Nowhere => 0.0,
            Home::Stratum(_) | Home::Cut(_) => (self.scale * q).min(1.0),
        }
    }

    /// Sum of min(p, inclusion): no rule accepts more. O(V).
    pub fn ceiling(&self, target: &Target, draft: &Draft) -> f64 {
        let (p, q) = (target.probabilities(), draft.probabilities());
        let scale = self.scale;
        let mut sum = split_sum(p, q, |p, q| p.min(scale * q));
        for &token in self.certain() {
            let (p, q) = (p[token as usize], q[token as usize]);
            sum += p - p.min(scale * q);
        }
        sum.min(1.0)
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
                    let chance = if left > 0.0 {
                        (left / (1.0 - self.before(stratum - 1))).min(1.0)
                    } else {
                        0.0
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

    /// Q(H): the probability that all drafts lie in the set that `holds` tells. O(V).
    pub fn inside(&self, draft: &Draft, straddle: Straddle, holds: impl Fn(u32) -> bool) -> f64 {
        if !self.certain().iter().all(|&token| holds(token)) {
            return 0.0;
        }
        let masses = self.masses(draft.probabilities(), &holds);
        let straddlers = self.straddlers.iter();
        let held: Vec<bool> = straddlers
            .map(|straddler| straddler.is_some_and(|one| holds(one.token)))
            .collect();
        chance_inside(self, &self.links(straddle), &masses, &held)
    }

    /// Mass of a set inside each stratum, without tokens over cuts and with all that is not
    /// listed.
    pub(super) fn masses(&self, q: &[f64], holds: impl Fn(u32) -> bool) -> Vec<f64> {
        let unlisted = self.unlisted.iter();
        let mut sums: Vec<TwoFloat> = unlisted.map(|&mass| TwoFloat::from(mass)).collect();
        for (stratum, places) in self.places.iter().enumerate() {
            let over = self.straddlers.get(stratum).copied().flatten();
            let over = over.map(|straddler| straddler.token);
            for &token in &self.order()[places.clone()] {
                if holds(token) && over != Some(token) {
                    sums[stratum] += q[token as usize] * self.scale;
                }
            }
        }
        sums.into_iter().map(TwoFloat::value).collect()
    }

    /// Puts the law of the next draft, given those before it in their tuple, in place of q, the
    /// row that the strata are of; 0 behind the last. O(V).
    pub fn next_draft(&self, straddle: Straddle, before: &[u32], q: &mut [f64]) {
        if let Some(&sure) = self.certain().get(before.len()) {
            q.fill(0.0);
            q[sure as usize] = 1.0;
            return;
        }
        let stratum = before.len() - self.sure;
        let Some(&link) = self.links(straddle).get(stratum) else {
            return q.fill(0.0);
        };
        let left = stratum.checked_sub(1).map(Home::Cut);
        let was_over = (before.last()).is_some_and(|&last| Some(self.home(last)) == left);
        let state = usize::from(was_over);
        for (token, mass) in (0u32..).zip(q) {
            let home = self.home(token);
            *mass = match home {
                Home::Cut(cut) if cut == stratum => self.before(cut) * link.other[state],
                Home::Stratum(own) if own == stratum => *mass * self.scale * link.other[state],
                _ if Some(home) == left => link.left[state],
                _ => 0.0,
            };
        }
    }

    /// One tuple of drafts: F, then one token of each stratum. O(n log V).
    pub fn draw(&self, straddle: Straddle, rng: &mut dyn RngCore) -> Vec<u32> {
        let mut tuple = Vec::with_capacity(self.slots());
        tuple.extend_from_slice(self.certain());
        let mut was_over = false;
        for (stratum, link) in self.links(straddle).iter().enumerate() {
            let left = stratum.checked_sub(1).and_then(|cut| self.straddlers[cut]);
            if let Some(left) = left
                && rng.random::<f64>() < link.left[usize::from(was_over)]
            {
                tuple.push(left.token);
                was_over = false;
                continue;
            }
            let from = stratum as f64 + self.behind(stratum);
            let point = from + rng.random::<f64>() * ((stratum + 1) as f64 - from);
            let places = self.places[stratum].clone();
            let last = places.end - 1;
            let ends_before = |place: usize| self.position(place + 1).value() <= point;
            let token = self.order()[first_place(places, ends_before).min(last)];
            was_over = self.home(token) == Home::Cut(stratum);
            tuple.push(token);
        }
        tuple
    }
}

/// The first place of a range that does not come before.
fn first_place(mut places: Range<usize>, before: impl Fn(usize) -> bool) -> usize {
    while !places.is_empty() {
        let middle = places.start + places.len() / 2;
        if before(middle) {
            places.start = middle + 1;
        } else {
            places.end = middle;
        }
    }
    places.start
}

/// Q of a set by its masses inside strata, and which tokens over cuts it holds.
pub(super) fn chance_inside(strata: &Strata, links: &[Link], masses: &[f64], held: &[bool]) -> f64 {
    // Given whether the draft before was over the cut; from the last stratum to the first.
    let mut later = [1.0, 1.0];
    for stratum in (0..strata.strata()).rev() {
        let share = |cut: usize, share: f64| if held[cut] { share } else { 0.0 };
        let over = if stratum + 1 < strata.strata() {
            share(stratum, strata.before(stratum))
        } else {
            0.0
        };
        let left = if stratum > 0 && held[stratum - 1] {
            later[0]
        } else {
            0.0
        };
        let others = masses[stratum] * later[0] + over * later[1];
        let link = links[stratum];
        later = [0, 1].map(|state| link.other[state] * others + link.left[state] * left);
    }
    later[0].min(1.0)
}
