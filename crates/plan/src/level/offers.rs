//! A node of a drafted tree that is verified from its leaves: offered a weight, again and again.

use super::interiors::{Falling, Interior, Interiors, Sums};
use super::passes::Levels;
use super::strata::{Alive, Heaviest, Home, Link, Straddle, Strata};
use std::ops::Deref;
use std::sync::Arc;

/// How the children of a node are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Children {
    /// i.i.d. from q.
    Iid,
    /// Sure tokens of q, and one of each stratum.
    Strata(Straddle),
}

impl Children {
    /// The strata of q, gathered, that so many children are drawn from. Those of i.i.d. children fit
    /// all numbers.
    pub fn strata(self, heaviest: &Heaviest, q: &[f64], drafts: usize) -> Strata {
        match self {
            Self::Iid => heaviest.strata(q, 1),
            Self::Strata(_) => heaviest.strata(q, drafts),
        }
    }
}

/// A function of a token, linear in its p and q on stretches of tokens of like p/q: from the
/// largest p/q of each stretch down to that of the next, `of_p p + of_q q`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stretch {
    from: f64,
    of_p: f64,
    of_q: f64,
}

type Linear = Vec<Stretch>;

/// The sum of a function over the tokens of a stratum, or of all q. A cell a stretch.
fn sum(inside: &Interior, function: &[Stretch]) -> f64 {
    let mut begin = Sums::NONE;
    let mut sum = 0.0;
    for (index, stretch) in function.iter().enumerate() {
        let next = function.get(index + 1);
        let end = next.map_or(inside.all, |next| inside.down_to(next.from, false).1);
        if (stretch.of_p, stretch.of_q) != (0.0, 0.0) {
            let own = end - begin;
            sum += stretch.of_p * own.p.value() + stretch.of_q * own.mass.value();
        }
        begin = end;
    }
    sum.max(0.0)
}

fn whole(of_p: f64, of_q: f64) -> Linear {
    vec![Stretch {
        from: f64::INFINITY,
        of_p,
        of_q,
    }]
}

/// The value at a token.
fn at(function: &[Stretch], [p, mass]: [f64; 2]) -> f64 {
    let ratio = p / mass;
    let behind = function.partition_point(|stretch| stretch.from >= ratio);
    let stretch = behind.checked_sub(1).and_then(|place| function.get(place));
    stretch.map_or(0.0, |one| (one.of_p * p + one.of_q * mass).max(0.0))
}

/// Returns what is taken of M where R is owed, clip((R - t M)/(1 - t), 0, M), and what is left of R
/// and of M.
fn take(owed: &[Stretch], drafted: &[Stretch], level: f64) -> [Linear; 3] {
    let mut found = [Linear::new(), Linear::new(), Linear::new()];
    let (mut one, mut other) = (0, 0);
    let mut from = f64::INFINITY;
    while one < owed.len() && other < drafted.len() {
        let (r, m) = (owed[one], drafted[other]);
        let next = |all: &[Stretch], place: usize| all.get(place + 1).map_or(-1.0, |one| one.from);
        let (of_owed, of_drafted) = (next(owed, one), next(drafted, other));
        let to = of_owed.max(of_drafted);
        let part = [
            (r.of_p - level * m.of_p) / (1.0 - level),
            (r.of_q - level * m.of_q) / (1.0 - level),
        ];
        // Where the part crosses 0, and where it crosses M.
        let mut cuts = [-part[1] / part[0], -(part[1] - m.of_q) / (part[0] - m.of_p)];
        if cuts[0] < cuts[1] {
            cuts.swap(0, 1);
        }
        let above = from;
        // Below 0 there are no ratios to part.
        let is_inside = |cut: &f64| *cut < above && *cut > to && *cut >= 0.0;
        let inside = cuts.into_iter().filter(is_inside);
        for to in inside.chain([to]) {
            // A ratio inside.
            let ratio = match from.is_finite() {
                true => 0.5 * (from + to.max(0.0)),
                false => 2.0 * to.max(0.0) + 1.0,
            };
            let value = |of: [f64; 2]| of[0] * ratio + of[1];
            let (here, most) = (value(part), value([m.of_p, m.of_q]));
            let (r, m) = ([r.of_p, r.of_q], [m.of_p, m.of_q]);
            let less = |all: [f64; 2], part: [f64; 2]| [all[0] - part[0], all[1] - part[1]];
            let (taken, r, m) = if here <= 0.0 || most <= 0.0 {
                ([0.0; 2], r, m)
            } else if here >= most {
                (m, less(r, m), [0.0; 2])
            } else if level == 0.0 {
                (part, [0.0; 2], less(m, part))
            } else {
                (part, less(r, part), less(m, part))
            };
            for (function, [of_p, of_q]) in found.iter_mut().zip([taken, r, m]) {
                if !matches!(function.last(), Some(last) if (last.of_p, last.of_q) == (of_p, of_q))
                {
                    function.push(Stretch { from, of_p, of_q });
                }
            }
            from = to;
        }
        one += usize::from(of_owed >= of_drafted);
        other += usize::from(of_drafted >= of_owed);
    }
    found
}

/// What nodes behind one prefix draw so many children from, and what of p these meet.
/// O(V).
#[derive(Clone, Debug)]
pub struct OfferedRows {
    children: Children,
    /// Of i.i.d. children all tokens are one stratum.
    all: Interiors,
    links: Vec<Link>,
}

/// A token, by where it is drafted from.
#[derive(Clone, Copy, Debug)]
pub struct Drafted {
    home: Home,
    /// Its p, and its mass there.
    at: [f64; 2],
}

impl OfferedRows {
    /// The rows of children, of two rows of which q has these strata: [`Children::strata`].
    pub fn of(falling: &Arc<Falling>, children: Children, strata: Strata) -> Self {
        let straddle = match children {
            Children::Iid => Straddle::Independent,
            Children::Strata(straddle) => straddle,
        };
        Self {
            links: strata.links(straddle),
            all: Interiors::of(falling, strata),
            children,
        }
    }

    /// The same of two rows, for so many children.
    pub fn of_rows((p, q): (&[f64], &[f64]), children: Children, drafts: usize) -> Self {
        let strata = children.strata(&Heaviest::of(q), q, drafts);
        Self::of(&Falling::of((p, q)), children, strata)
    }

    /// A token of these p and q.
    pub fn token(&self, token: u32, [p, q]: [f64; 2]) -> Drafted {
        Drafted {
            home: self.all.strata.home(token, q),
            at: [p, q * self.all.strata.scale()],
        }
    }

    /// The slots of so many children that may draw a token, each with its chance; and whether one
    /// of them at most does. Slots that may both draw it draw independently.
    pub fn drawn_by(&self, token: Drafted, children: usize) -> (Vec<(usize, f64)>, bool) {
        let sure = self.all.certain.len();
        let of = |slot: usize, chance: f64| (sure + slot, chance);
        match token.home {
            _ if self.is_iid() => (
                (0..children).map(|slot| (slot, token.at[1])).collect(),
                false,
            ),
            Home::Certain(slot) => (vec![(slot, 1.0)], true),
            Home::Stratum(stratum) => (vec![of(stratum, token.at[1])], true),
            Home::Cut(cut) => {
                let over = self.all.strata.straddlers().get(cut).copied().flatten();
                let both = over.map(|one| vec![of(cut, one.before), of(cut + 1, one.behind)]);
                let once = self.children == Children::Strata(Straddle::Once);
                (both.unwrap_or_default(), once)
            }
            Home::Nowhere => (Vec::new(), true),
        }
    }

    /// Tells whether children are i.i.d., so that these rows are those of all numbers of them.
    pub fn is_iid(&self) -> bool {
        self.children == Children::Iid
    }
}

/// A child that is asked with its token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asked {
    /// Which child.
    pub slot: usize,
    /// P(it holds that token, and nothing before it in this offer was kept), given the offer.
    pub chance: f64,
    /// The weight that it is offered then.
    pub weight: f64,
}

/// What becomes of an offer: the children that are asked, in this order, and what is owed and alive
/// once all refused.
#[derive(Clone, Debug, Default)]
pub struct Offered {
    /// In the order in which they are asked.
    pub asked: Vec<Asked>,
    /// S.
    pub alive: f64,
    weight: f64,
    inside: Vec<Linear>,
    over: Vec<f64>,
    certain: Vec<f64>,
}

impl Offered {
    /// R at a token: what is drawn from where the node is kept, with chance sum(R)/S.
    pub fn owed(&self, token: Drafted) -> f64 {
        let [p, _] = token.at;
        match token.home {
            Home::Certain(slot) => self.certain.get(slot).copied().unwrap_or(0.0),
            Home::Cut(cut) => self.over.get(cut).copied().unwrap_or(0.0),
            Home::Stratum(domain) => (self.inside.get(domain)).map_or(0.0, |of| at(of, token.at)),
            Home::Nowhere => self.weight * p,
        }
    }
}

/// The children of one node, given all that was refused so far.
///
/// # Formula
/// Offered w, with R = w p, S = 1 and Q_j the law of draft j given what was refused:
///
/// ```text
/// for t in levels, for j = last stratum .. first (of i.i.d. children first .. last):
///    take = clip((R/S - t Q_j)/(1 - t), 0, Q_j),   d = sum take
///    child j is offered take(x_j)/Q_j(x_j)
///    R -= S take,   Q_j = (Q_j - take)/(1 - d),   S *= 1 - d
/// for sure tokens y: it is offered u = min(1, R(y)/S);   R(y) -= u S,   S *= 1 - u
/// ```
///
/// Inside a stratum R and Q_j are linear in p and q by stretches of p/q, so a sum takes no sweep.
/// Drafts that cross a cut once depend on one another: Q_j is then the law of draft j given that
/// nothing was kept, which is all that the rule asks of it. Proofs are in
/// `docs/theory/tree-replay.md`.
/// Sums in `f64`.
/// A cell a stretch and level; stretches grow by two a pass at most.
#[derive(Clone, Debug)]
pub struct Offers<R> {
    rows: R,
    /// By draft from a stratum: what is alive of each token's mass.
    alive: Vec<Linear>,
    totals: Vec<f64>,
    /// The same of tokens over cuts, before and behind.
    over: Vec<[f64; 2]>,
}

impl<R: Deref<Target = OfferedRows>> Offers<R> {
    /// Offers of so many children that nothing is known of; of strata as many as the rows have.
    pub fn new(rows: R, children: usize) -> Self {
        let count = match rows.is_iid() {
            true => children,
            false => rows.all.count(),
        };
        let straddlers = rows.all.strata.straddlers().iter();
        let shares = straddlers.map(|one| one.map_or([0.0; 2], |one| [one.before, one.behind]));
        let alive = vec![whole(0.0, 1.0); count];
        let mut offers = Self {
            totals: vec![0.0; count],
            over: shares.collect(),
            alive,
            rows,
        };
        for slot in 0..count {
            offers.totals[slot] = sum(offers.domain(slot), &offers.alive[slot]);
        }
        offers
    }

    /// Returns what children are drawn from.
    pub fn rows(&self) -> &OfferedRows {
        &self.rows
    }

    fn domain(&self, slot: usize) -> &Interior {
        &self.rows.all.inside[self.stratum(slot)]
    }

    /// Alive shares of the tokens over the cuts of a stratum: that before it as a part, that
    /// behind it.
    fn shares(&self, slot: usize) -> [f64; 2] {
        let left = slot.checked_sub(1).and_then(|cut| self.over.get(cut));
        let all = &self.rows.all;
        let of_left = match all.strata.behind(slot.min(all.count() - 1)) {
            behind if behind > 0.0 => left.map_or(0.0, |left| left[1] / behind),
            _ => 0.0,
        };
        let right = self.over.get(slot).map_or(0.0, |over| over[0]);
        [of_left, right]
    }

    /// Which stratum a slot draws from.
    fn stratum(&self, slot: usize) -> usize {
        if self.rows.is_iid() { 0 } else { slot }
    }

    fn link(&self, slot: usize) -> Link {
        self.rows.links[self.stratum(slot)]
    }

    fn alive(&self, slot: usize) -> Alive {
        let [left, right] = self.shares(slot);
        [self.totals[slot], left, right]
    }

    /// P(nothing was kept), with that of a unit of mass inside a stratum, of the token over the cut
    /// before it as a whole, and of a unit of the one behind it.
    fn prices(&self, slot: usize) -> [f64; 3] {
        let mut earlier = [1.0, 0.0];
        for before in 0..slot {
            earlier = self.link(before).forward(earlier, self.alive(before));
        }
        let mut later = [1.0, 1.0];
        for behind in (slot + 1..self.totals.len()).rev() {
            later = self.link(behind).backward(later, self.alive(behind));
        }
        self.link(slot).prices(earlier, later)
    }

    /// P(nothing was kept of what is drawn from strata).
    fn survival(&self) -> f64 {
        let Some(last) = self.totals.len().checked_sub(1) else {
            return 1.0;
        };
        let ([inside, left, over], [of_left, right]) = (self.prices(last), self.shares(last));
        inside * self.totals[last] + left * of_left + over * right
    }

    /// An offer of a weight that all refuse; each child is asked with its token.
    pub fn offer(
        &mut self,
        weight: f64,
        levels: Levels<'_>,
        token: &dyn Fn(usize) -> Drafted,
    ) -> Offered {
        let levels = match levels {
            Levels::Fixed(levels) => levels,
            Levels::Adaptive { .. } | Levels::Best => &[],
        };
        let mut asked = Vec::new();
        let all = self.survival();
        if all <= 0.0 || weight <= 0.0 {
            return Offered::default();
        }
        let owed = weight * all;
        let mut inside = vec![whole(owed, 0.0); self.rows.all.count()];
        let mut over: Vec<f64> = self.rows.all.over.iter().map(|p| owed * p).collect();
        let mut certain: Vec<f64> = self.rows.all.certain.iter().map(|p| owed * p).collect();
        let (sure, count) = (certain.len(), self.totals.len());
        for &level in levels.iter().chain([&0.0]) {
            for turn in 0..count {
                let (slot, domain) = match self.rows.is_iid() {
                    true => (turn, 0),
                    false => (count - 1 - turn, count - 1 - turn),
                };
                let (prices, own) = (self.prices(slot), token(sure + slot));
                let mut ask = |[taken, drafted]: [f64; 2]| {
                    if taken > 0.0 && drafted > 0.0 {
                        asked.push(Asked {
                            slot: sure + slot,
                            chance: drafted / all,
                            weight: (taken / drafted).min(1.0),
                        });
                    }
                };
                if prices[0] > 0.0 {
                    let drafted = self.alive[slot].iter().map(|one| Stretch {
                        of_p: one.of_p * prices[0],
                        of_q: one.of_q * prices[0],
                        ..*one
                    });
                    let drafted: Linear = drafted.collect();
                    let [taken, rest, mut alive] = take(&inside[domain], &drafted, level);
                    if own.home == Home::Stratum(domain) {
                        ask([at(&taken, own.at), at(&drafted, own.at)]);
                    }
                    for one in &mut alive {
                        one.of_p /= prices[0];
                        one.of_q /= prices[0];
                    }
                    inside[domain] = rest;
                    self.alive[slot] = alive;
                }
                let shares = self.shares(slot);
                for (cut, side, drafted) in [
                    (slot.checked_sub(1), 1, prices[1] * shares[0]),
                    (Some(slot), 0, prices[2] * shares[1]),
                ] {
                    let cut = cut.filter(|&cut| cut < over.len() && drafted > 0.0);
                    let Some(cut) = cut else { continue };
                    let part = (over[cut] - level * drafted) / (1.0 - level);
                    let taken = part.clamp(0.0, drafted);
                    if own.home == Home::Cut(cut) {
                        ask([taken, drafted]);
                    }
                    let owed = if level == 0.0 && taken < drafted {
                        0.0
                    } else {
                        over[cut] - taken
                    };
                    over[cut] = owed.max(0.0);
                    self.over[cut][side] *= 1.0 - taken / drafted;
                }
                self.totals[slot] = sum(self.domain(slot), &self.alive[slot]);
            }
        }
        let mut alive = self.survival();
        for (slot, owed) in certain.iter_mut().enumerate() {
            if alive <= 0.0 {
                break;
            }
            let weight = (*owed / alive).min(1.0);
            if token(slot).home == Home::Certain(slot) && weight > 0.0 {
                asked.push(Asked {
                    slot,
                    chance: alive / all,
                    weight,
                });
            }
            *owed = (*owed - weight * alive).max(0.0);
            alive *= 1.0 - weight;
        }
        Offered {
            asked,
            alive,
            weight: owed,
            inside,
            over,
            certain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::iid_tests::{KINDS, row, rows};
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    /// Whatever was refused, what is alive of a stratum is the sum over its tokens, one by one; also of
    /// so many tokens that they lie in many cells.
    #[test]
    fn what_is_alive_is_the_sum_over_the_tokens() {
        let mut rng = ChaCha8Rng::seed_from_u64(41);
        let strata = Children::Strata(Straddle::Independent);
        let mut bent = 0;
        for kind in 0..KINDS {
            for (vocab, children, levels) in [
                (3, Children::Iid, Levels::ONE),
                (701, Children::Iid, Levels::ONE),
                (701, Children::Iid, Levels::FOUR),
                (701, strata, Levels::ONE),
                (701, strata, Levels::FOUR),
            ] {
                let (p, q) = (row(kind, vocab, &mut rng), row(kind, vocab, &mut rng));
                let (p, q) = rows(&p, &q);
                let both = (p.probabilities(), q.probabilities());
                let rows = OfferedRows::of_rows(both, children, 3);
                let mut offers = Offers::new(&rows, 3);
                for weight in [1.0, 0.6, 1.0, 0.9, 0.2] {
                    let nowhere = |_| Drafted {
                        home: Home::Nowhere,
                        at: [0.0; 2],
                    };
                    offers.offer(weight, levels, &nowhere);
                    for (slot, alive) in offers.alive.iter().enumerate() {
                        let mut by_hand = 0.0;
                        (offers.domain(slot)).each(|_, one| by_hand += at(alive, one));
                        let total = offers.totals[slot];
                        // Steep stretches cancel.
                        let steepest = alive.iter().fold(1.0, |most, one| one.of_q.abs().max(most));
                        let apart = (total - by_hand).abs();
                        assert!(apart < 1e-13 * steepest, "{kind}: {total} {by_hand}");
                        bent += usize::from(alive.len() > 2);
                    }
                }
            }
        }
        assert!(bent > 100, "{bent}");
    }
}
