//! A node of a drafted tree, offered a weight once, where rows list some tokens only.

use super::offers::Children;
use super::strata::{Home, Link, Strata};
use specgap_number::distribution::compensated_sum;

/// What nodes behind one prefix draw their children from, as far as both rows list it. Tokens that are
/// not listed have what p and q lack.
#[derive(Clone, Debug)]
pub struct OfferedLists {
    p: Vec<f64>,
    q: Vec<f64>,
    rest: [f64; 2],
    /// Of children from strata, with how each is drawn and where each token is.
    strata: Option<(Strata, Vec<Link>, Vec<Home>)>,
}

/// A child that is asked with a token: numbers lie between these, whatever is not listed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AskedBetween {
    /// Which child.
    pub slot: usize,
    /// P(it holds the token, and nothing before it in this offer was kept), given the offer.
    pub chance: [f64; 2],
    /// What is owed to the token then: it is offered this over its chance, or 1.
    pub owed: [f64; 2],
}

/// What an offer's one pass gives to a token; no child is named where it is not known which may hold it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OfferedBetween {
    /// Each child that may hold it.
    pub asked: Vec<AskedBetween>,
    /// What all of them take of it.
    pub kept: [f64; 2],
}

fn over_zero(number: f64) -> f64 {
    number.max(0.0)
}

impl OfferedLists {
    /// The lists of rows that both list these tokens, for so many children; of i.i.d. children for any
    /// number. No token that is not listed has more q than `largest`. `None` where what is not listed
    /// decides which tokens are sure.
    pub fn new(
        [p, q]: [&[f64]; 2],
        largest: f64,
        children: Children,
        drafts: usize,
    ) -> Option<Self> {
        // Strata are laid heaviest first: what may be lighter than some other token is laid last.
        let is_heavy = |q: f64| children == Children::Iid || q > largest;
        let of = |row: &[f64]| -> Vec<f64> {
            let own = row.iter().zip(q);
            own.map(|(&mass, &q)| if is_heavy(q) { mass } else { 0.0 })
                .collect()
        };
        let heavy = [of(p), of(q)];
        let sum = |row: &Vec<f64>| compensated_sum(row.iter().copied());
        let rest = heavy.each_ref().map(|row| over_zero(1.0 - sum(row)));
        let strata = match children {
            Children::Iid => None,
            Children::Strata(straddle) => {
                let [_, q] = &heavy;
                let strata = Strata::listed(q, rest[1], drafts);
                let count = q.iter().filter(|&&q| q > 0.0).count();
                if strata.certain().len() == count && strata.strata() > 1 {
                    return None;
                }
                let homes = (0..).zip(q).map(|(token, &q)| strata.home(token, q));
                let homes = homes.collect();
                Some((strata.clone(), strata.links(straddle), homes))
            }
        };
        let (p, q) = (p.to_vec(), q.to_vec());
        Some(Self { p, q, rest, strata })
    }

    /// Tells whether children are i.i.d., so that these are the lists of all numbers of them.
    pub fn is_iid(&self) -> bool {
        self.strata.is_none()
    }

    /// Returns what one pass of a weight between these gives to a token; `None` where the lists have none.
    ///
    /// # Formula
    /// `docs/theory/truncated-rows.md#text`.
    /// O(listed tokens) a child.
    pub fn offered(
        &self,
        token: usize,
        children: usize,
        weight: [f64; 2],
    ) -> Option<OfferedBetween> {
        match &self.strata {
            None => self.of_iid(token, children, weight),
            Some(_) => self.of_strata(token, weight),
        }
    }

    /// With S the chance that nothing was kept so far, L its sum over the children before, and K(L) the
    /// sum of min(w p, L q): S = 1 - K(L).
    fn of_iid(&self, token: usize, children: usize, [w, most]: [f64; 2]) -> Option<OfferedBetween> {
        let (p, q) = (*self.p.get(token)?, *self.q.get(token)?);
        let listed = |l: f64, w: f64| -> f64 {
            let both = self.p.iter().zip(&self.q);
            both.map(|(p, q)| (w * p).min(l * q)).sum()
        };
        // The rest takes most where it is one token, and nothing where p and q are apart.
        let all = |l: f64, w: f64| listed(l, w) + (w * self.rest[0]).min(l * self.rest[1]);
        let mut l = [0.0; 2];
        let mut found = OfferedBetween::default();
        for slot in 0..children {
            let least = over_zero(1.0 - most).max(1.0 - all(l[1], most));
            let alive = [least, 1.0 - listed(l[0], w)];
            found.asked.push(AskedBetween {
                slot,
                chance: alive.map(|alive| alive * q),
                owed: [over_zero(w * p - l[1] * q), over_zero(most * p - l[0] * q)],
            });
            l = [
                l[0] + over_zero(1.0 - all(l[0], most)),
                l[1] + 1.0 - listed(l[1], w),
            ];
        }
        found.kept = [(w * p).min(l[0] * q), (most * p).min(l[1] * q)];
        Some(found)
    }

    fn of_strata(&self, token: usize, weight: [f64; 2]) -> Option<OfferedBetween> {
        let (strata, _, homes) = self.strata.as_ref()?;
        let (p, q) = (*self.p.get(token)?, *self.q.get(token)?);
        let sure = strata.certain().len();
        // A pass that keeps most, and one that keeps least.
        let ends = [self.pass(weight[1], true), self.pass(weight[0], false)];
        let mut found = OfferedBetween::default();
        let of_p = weight.map(|w| w * p);
        let mut ask = |slot: usize, chance: [f64; 2], owed: [f64; 2]| {
            found.asked.push(AskedBetween { slot, chance, owed });
            [0, 1].map(|end| chance[end].min(owed[end]))
        };
        found.kept = match *homes.get(token)? {
            // It is drafted with c q, by an unknown child.
            Home::Nowhere => [0.0, of_p[1].min(strata.scale() * q)],
            Home::Certain(slot) => {
                let mut alive = ends.each_ref().map(|end| end.alive);
                for &before in &strata.certain()[..slot] {
                    let p = self.p[before as usize];
                    alive = [alive[0] - weight[1] * p, alive[1] - weight[0] * p].map(over_zero);
                }
                ask(slot, alive, of_p)
            }
            Home::Stratum(own) => {
                let mass = strata.scale() * q;
                let chance = ends.each_ref().map(|end| mass * end.later[own][0]);
                ask(sure + own, chance, of_p)
            }
            Home::Cut(cut) => {
                let over = strata.straddlers().get(cut).copied().flatten()?;
                let behind = (ends.each_ref()).map(|end| over.behind * end.later[cut + 1][0]);
                let before = (ends.each_ref()).map(|end| over.before * end.later[cut][1]);
                let left = [0, 1].map(|end| over_zero(of_p[end] - behind[1 - end]));
                ask(sure + cut + 1, behind, of_p);
                ask(sure + cut, before, left);
                [0, 1].map(|end| of_p[end].min(behind[end] + before[end]))
            }
        };
        Some(found)
    }

    /// Goes through the strata from the last on, and says of each what is alive behind it. The rest is
    /// kept as much as it can be, or not at all; all else that a pass keeps follows.
    fn pass(&self, weight: f64, keeps_rest: bool) -> Pass {
        let Some((strata, links, homes)) = &self.strata else {
            return Pass::default();
        };
        let rest = if keeps_rest {
            weight * self.rest[0]
        } else {
            0.0
        };
        let straddler = |cut: Option<usize>| strata.straddlers().get(cut?).copied().flatten();
        let owed = |token: u32| weight * self.p[token as usize];
        let listed = (0..strata.strata())
            .rev()
            .find(|&own| strata.unlisted(own) < 1.0);
        let last = listed.unwrap_or(0);
        // Behind a listed token of the last stratum that has some the rest alone is drafted.
        let mut later = match last + 1 < strata.strata() {
            true => [over_zero(1.0 - rest / (1.0 - strata.unlisted(last))); 2],
            false => [1.0; 2],
        };
        let mut pass = Pass {
            later: vec![[1.0; 2]; strata.strata()],
            alive: over_zero(1.0 - rest),
        };
        for own in (0..links.len().min(last + 1)).rev() {
            pass.later[own] = later;
            let inside = homes.iter().enumerate().map(|(token, home)| match home {
                Home::Stratum(stratum) if *stratum == own => {
                    let mass = strata.scale() * self.q[token];
                    over_zero(mass * later[0] - weight * self.p[token])
                }
                _ => 0.0,
            });
            let mut others = inside.sum::<f64>() + over_zero(strata.unlisted(own) - rest);
            if let Some(over) = straddler(Some(own)) {
                let left = over_zero(owed(over.token) - over.behind * pass.later[own + 1][0]);
                others += over_zero(over.before * later[1] - left);
            }
            let before = straddler(own.checked_sub(1)).map_or(0.0, |over| {
                over_zero(over.behind * later[0] - owed(over.token)) / over.behind
            });
            let link = links[own];
            let onwards = |state: usize| link.other[state] * others + link.left[state] * before;
            (later, pass.alive) = ([onwards(0), onwards(1)], others);
        }
        pass
    }
}

/// What is alive in a pass.
#[derive(Clone, Debug, Default)]
struct Pass {
    /// By stratum: P(nothing behind it was kept), given that its draft is not the token over the cut
    /// behind it, and that it is.
    later: Vec<[f64; 2]>,
    /// P(nothing of any stratum was kept).
    alive: f64,
}
