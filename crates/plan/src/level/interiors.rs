//! What level passes go over: the tokens inside each stratum, by falling p/q.

use super::iid::RatioOrder;
use super::strata::{Heaviest, Strata};
use multiversion::multiversion;
use specgap_number::distribution::{UnitSum, split_sum, split_sum_of_three, split_total};
use specgap_number::scratch::Scratch;
use std::ops::Range;

/// The tokens that can be drafted by falling p/q, with all that passes of any number of drafts ask
/// of them.
#[derive(Debug)]
pub struct Falling {
    heaviest: Heaviest,
    tokens: Scratch<u32>,
    /// Their places among the heaviest.
    ranks: Scratch<u32>,
    p: Scratch<f64>,
    q: Scratch<f64>,
    /// Sum of these p.
    drafted: f64,
}

impl Falling {
    /// The tokens of rows that sum to 1, or nearly, given the orders of both. O(V).
    pub fn of((p, q): (&[f64], &[f64]), order: &RatioOrder, heaviest: &Heaviest) -> Self {
        let tokens: Scratch<u32> = order.rising().iter().rev().map(|pair| pair.1).collect();
        let ranks = heaviest.ranks();
        let of = |row: &[f64]| tokens.iter().map(|&x| row[x as usize]).collect();
        let p: Scratch<f64> = of(p);
        Self {
            heaviest: heaviest.clone(),
            ranks: tokens.iter().map(|&x| ranks[x as usize]).collect(),
            q: of(q),
            drafted: split_total(&p),
            p,
            tokens,
        }
    }

    /// The strata of q for so many drafts. O(n log V).
    pub fn strata(&self, drafts: usize) -> Strata {
        Strata::of_order(&self.heaviest, drafts)
    }
}

/// Tokens inside a stratum, by falling p/q.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interior<'a> {
    pub(super) tokens: &'a [u32],
    pub(super) p: &'a [f64],
    /// On [0, k).
    pub(super) mass: &'a [f64],
    /// p over that.
    pub(super) ratio: &'a [f64],
    /// Mass from each on, with what is not listed.
    pub(super) rest: &'a [f64],
}

impl Interior<'_> {
    /// Some of its tokens.
    pub(super) fn of(&self, places: Range<usize>) -> Self {
        Self {
            tokens: &self.tokens[places.clone()],
            p: &self.p[places.clone()],
            mass: &self.mass[places.clone()],
            ratio: &self.ratio[places.clone()],
            rest: &self.rest[places.start..=places.end],
        }
    }
}

/// What passes of two rows go over, whatever their levels.
#[derive(Debug)]
pub struct Interiors {
    pub(super) strata: Strata,
    /// Where the tokens of each stratum stand in the rows.
    places: Vec<Range<usize>>,
    tokens: Scratch<u32>,
    p: Scratch<f64>,
    mass: Scratch<f64>,
    ratio: Scratch<f64>,
    /// With one number more for each stratum.
    rest: Scratch<f64>,
    /// p of the tokens over the cuts, and of F.
    pub(super) over: Vec<f64>,
    pub(super) certain: Vec<f64>,
    /// p of all tokens that can be drafted.
    pub(super) drafted: f64,
}

impl Interiors {
    /// The interiors of strata of the rows. O(V), without a sort.
    pub fn of(falling: &Falling, strata: Strata) -> Self {
        let insides = strata.insides();
        let mut places = Vec::with_capacity(insides.len());
        let mut all = 0;
        for inside in &insides {
            places.push(all..all + inside.len());
            all += inside.len();
        }
        let mut found = Self {
            over: vec![0.0; strata.straddlers().len()],
            certain: vec![0.0; strata.certain().len()],
            drafted: falling.drafted,
            tokens: Scratch::filled(all, 0),
            p: Scratch::filled(all, 0.0),
            mass: Scratch::filled(all, 0.0),
            ratio: Scratch::filled(all, 0.0),
            rest: Scratch::filled(all + insides.len(), 0.0),
            places,
            strata,
        };
        found.lay(falling, &insides);
        divide(&mut found.ratio, &found.p, &found.mass);
        for (stratum, places) in found.places.iter().enumerate() {
            let rest = &mut found.rest[places.start + stratum..=places.end + stratum];
            let mut sum = UnitSum::default();
            sum.add(found.strata.unlisted(stratum));
            rest[places.len()] = sum.value();
            for (rest, &mass) in rest.iter_mut().zip(&found.mass[places.clone()]).rev() {
                sum.add(mass);
                *rest = sum.value();
            }
        }
        found
    }

    /// Tokens to their strata, in their order.
    fn lay(&mut self, falling: &Falling, insides: &[Range<usize>]) {
        let scale = self.strata.scale();
        let sure = self.certain.len();
        let mut next: Vec<usize> = self.places.iter().map(|places| places.start).collect();
        let last = insides.len().saturating_sub(1);
        let tokens = falling.tokens.iter().zip(&falling.ranks);
        for ((&token, &rank), (&p, &q)) in tokens.zip(falling.p.iter().zip(&falling.q)) {
            let rank = rank as usize;
            // Counted without a branch, as the next token's stratum is anybody's guess.
            let before = insides
                .iter()
                .take(last)
                .map(|one| usize::from(rank >= one.end));
            let stratum: usize = before.sum();
            match next.get_mut(stratum) {
                Some(place) if insides[stratum].contains(&rank) => {
                    self.tokens[*place] = token;
                    self.p[*place] = p;
                    self.mass[*place] = q * scale;
                    *place += 1;
                }
                _ if rank < sure => self.certain[rank] = p,
                // One place behind the stratum before.
                _ => self.over[stratum - 1] = p,
            }
        }
    }

    /// k.
    pub(super) fn count(&self) -> usize {
        self.places.len()
    }

    pub(super) fn interior(&self, stratum: usize) -> Interior<'_> {
        let places = self.places[stratum].clone();
        Interior {
            tokens: &self.tokens[places.clone()],
            p: &self.p[places.clone()],
            mass: &self.mass[places.clone()],
            ratio: &self.ratio[places.clone()],
            rest: &self.rest[places.start + stratum..=places.end + stratum],
        }
    }

    /// Lists them by stratum.
    pub(super) fn interiors(&self) -> impl Iterator<Item = Interior<'_>> {
        (0..self.count()).map(|stratum| self.interior(stratum))
    }
}

#[multiversion(targets = "simd")]
fn divide(ratio: &mut [f64], p: &[f64], mass: &[f64]) {
    for ((ratio, p), mass) in ratio.iter_mut().zip(p).zip(mass) {
        *ratio = p / mass;
    }
}

/// Returns what survives of a ratio that a pass brings to a level.
#[inline(always)]
pub(super) fn survives(ratio: f64, level: f64) -> f64 {
    let between = ((1.0 - ratio) * (1.0 / (1.0 - level))).min(1.0);
    let below = if ratio > level { between } else { 1.0 };
    if ratio >= 1.0 { 0.0 } else { below }
}

/// Counts the tokens, from the first on, touched by a pass that pays a price for mass and brings
/// them to a level. O(log V): ratios fall, but for rounding, within which any place will do.
pub(super) fn reached(ratios: &[f64], price: f64, level: f64) -> usize {
    if price <= 0.0 {
        return 0;
    }
    ratios.partition_point(|&ratio| ratio > 0.0 && survives(ratio / price, level) < 1.0)
}

/// Counts the tokens, from the first on, of which it leaves nothing. O(log V).
pub(super) fn used_up(ratios: &[f64], price: f64, level: f64) -> usize {
    ratios.partition_point(|&ratio| survives(ratio / price, level) <= 0.0)
}

/// Sums what of their mass survives it.
#[multiversion(targets = "simd")]
pub(super) fn surviving(mass: &[f64], ratio: &[f64], price: f64, level: f64) -> f64 {
    split_sum(mass, ratio, |mass, ratio| {
        mass * survives(ratio / price, level)
    })
}

/// Returns what is emitted of a unit of mass of which this part survives and is emitted `later`.
#[inline(always)]
pub(super) fn unit(part: f64, price: f64, later: f64) -> f64 {
    (1.0 - part) * price + part * later
}

/// Sums what it emits of them, each cut to its p, where a unit of mass that survives is still
/// emitted `later`.
#[multiversion(targets = "simd")]
pub(super) fn emitted(interior: Interior<'_>, [price, level, later]: [f64; 3]) -> f64 {
    let Interior { p, mass, ratio, .. } = interior;
    split_sum_of_three([p, mass, ratio], |p, mass, ratio| {
        let part = survives(ratio / price, level);
        p.min(mass * unit(part, price, later))
    })
}

#[cfg(test)]
mod tests {
    use super::super::iid_tests::{KINDS, row, rows};
    use super::*;
    use crate::Home;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    /// Each token in its home, by falling p/q, and what passes do to a stretch of them, again from
    /// the definition.
    #[test]
    fn tokens_are_at_home_and_paid_one_by_one() {
        let mut rng = ChaCha8Rng::seed_from_u64(21);
        let mut seen = [0; 3];
        for kind in 0..KINDS {
            for vocab in [3, 40, 701] {
                let (p, q) = (row(kind, vocab, &mut rng), row(kind, vocab, &mut rng));
                let (p, q) = rows(&p, &q);
                let order = RatioOrder::of(&p, &q);
                let (p, q) = (p.probabilities(), q.probabilities());
                let of_row = Strata::of_row(q, 1);
                let falling = Falling::of((p, q), &order, of_row.heaviest());
                for drafts in [1, 2, 5, 9] {
                    let all = Interiors::of(&falling, falling.strata(drafts));
                    let strata = &all.strata;
                    let mut left = vec![0; strata.strata()];
                    for &(_, token) in order.rising().iter().rev() {
                        let of_p = p[token as usize];
                        match strata.home(token) {
                            Home::Certain(slot) => {
                                seen[0] += 1;
                                assert_eq!(all.certain[slot], of_p);
                            }
                            Home::Cut(cut) => {
                                seen[1] += 1;
                                assert_eq!(all.over[cut], of_p);
                            }
                            Home::Stratum(stratum) => {
                                seen[2] += 1;
                                let (here, place) = (all.interior(stratum), left[stratum]);
                                let mass = q[token as usize] * strata.scale();
                                assert_eq!((here.tokens[place], here.p[place]), (token, of_p));
                                assert_eq!(
                                    (here.mass[place], here.ratio[place]),
                                    (mass, of_p / mass)
                                );
                                left[stratum] += 1;
                            }
                            Home::Nowhere => panic!("{token} can be drafted"),
                        }
                    }
                    for (here, left) in all.interiors().zip(left) {
                        assert_eq!(here.tokens.len(), left);
                        is_paid(here);
                    }
                }
            }
        }
        assert!(seen.iter().all(|&number| number > 50), "{seen:?}");
    }

    fn is_paid(here: Interior<'_>) {
        for (price, level, later) in [(0.9, 0.0, 0.0), (0.4, 0.5, 0.125), (0.7, 0.8, 0.3)] {
            let new = reached(here.ratio, price, level);
            let part = |ratio: f64| match ratio / price {
                ratio if ratio >= 1.0 => 0.0,
                ratio if ratio > level => (1.0 - ratio) / (1.0 - level),
                _ => 1.0,
            };
            // Nearer to the level than rounding, either way is right.
            let touches = |ratio: f64| ratio > 0.0 && part(ratio) < 1.0 - 1e-12;
            assert!(here.ratio[new..].iter().all(|&ratio| !touches(ratio)));
            assert!(
                here.ratio[..new]
                    .iter()
                    .all(|&ratio| ratio / price > level - 1e-12)
            );
            let here = here.of(0..new);
            let (gone, alive) = here.ratio.split_at(used_up(here.ratio, price, level));
            assert!(gone.iter().all(|&ratio| part(ratio) < 1e-12));
            assert!(alive.iter().all(|&ratio| ratio / price < 1.0 + 1e-12));
            let (mut mass, mut paid) = (0.0, 0.0);
            for place in 0..new {
                let left = part(here.ratio[place]);
                mass += here.mass[place] * left;
                let unit = (1.0 - left) * price + left * later;
                paid += here.p[place].min(here.mass[place] * unit);
            }
            assert!((surviving(here.mass, here.ratio, price, level) - mass).abs() < 1e-13);
            assert!((emitted(here, [price, level, later]) - paid).abs() < 1e-13);
            let rest: f64 = here.mass.iter().sum();
            assert!((here.rest[0] - here.rest[new] - rest).abs() < 1e-13);
        }
    }
}
