//! Rows of a step, changed as a suspect says; each is made when it is first asked for.

use super::Here;
use crate::audit::data::Claimed;
use crate::audit::evidence::rows::{cut as cut_row, orders_of};
use crate::audit::suspects::factor::Factor;
use crate::audit::suspects::family::Families;
use crate::audit::suspects::target::{Change, Changed, UNDRAFTED, cut, scaled, tilted};
use crate::audit::suspects::view::{SHORT, View, total};
use specgap_sampling::Cut;
use std::cell::OnceCell;

/// A row changed in one way, and what is asked of it again and again.
pub(crate) struct Prepared<'a> {
    pub(super) row: Changed<'a>,
    moved: OnceCell<f64>,
    left: OnceCell<f64>,
    corrected: OnceCell<Factor>,
}

/// All changes of p and of q at a step; each is made when it is first asked for.
pub(crate) struct Changes<'a> {
    of: &'a Families,
    made: [Vec<OnceCell<Option<Prepared<'a>>>>; 2],
}

impl<'a> Changes<'a> {
    pub(crate) fn new(of: &'a Families) -> Self {
        let none = |changes: &[Change]| changes.iter().map(|_| OnceCell::new()).collect();
        Self {
            of,
            made: [none(&of.changes), none(&of.drafts)],
        }
    }

    pub(super) fn get(&self, number: usize, here: &'a Here<'_>) -> Option<&Prepared<'a>> {
        let change = *self.of.changes.get(number)?;
        let made = || here.changed(change).map(Prepared::new);
        self.made[0].get(number)?.get_or_init(made).as_ref()
    }

    pub(super) fn of_draft(&self, number: usize, here: &'a Here<'_>) -> Option<&Prepared<'a>> {
        let change = *self.of.drafts.get(number)?;
        let made = || here.changed_draft(change).map(Prepared::new);
        self.made[1].get(number)?.get_or_init(made).as_ref()
    }
}

impl<'a> Prepared<'a> {
    pub(super) fn new(row: Changed<'a>) -> Self {
        Self {
            row,
            moved: OnceCell::new(),
            left: OnceCell::new(),
            corrected: OnceCell::new(),
        }
    }

    /// Returns how much is moved from the row that was changed.
    pub(super) fn moved(&self, row: &[f64]) -> f64 {
        *self.moved.get_or_init(|| self.row.moved(row))
    }

    pub(super) fn left(&self, here: &Here<'_>) -> f64 {
        *self.left.get_or_init(|| here.left_of(&self.row))
    }

    pub(super) fn corrected(&self, here: &Here<'_>) -> Factor {
        let made = || here.corrected(&self.row, || self.left(here));
        *self.corrected.get_or_init(made)
    }
}

impl<'a> Here<'a> {
    /// The price of a law of corrections from a changed long row, of which so much is left: in one
    /// pass over it.
    pub(super) fn price_of(&self, row: &Changed<'_>, left: f64) -> f64 {
        // By token: q, the claim, and what noise may do to it beyond that.
        let (near, whole) = self.made.near.get_or_init(|| {
            let mut near: Vec<[f64; 3]> = (0..self.listed())
                .map(|place| [self.q.at(place), self.correction(place), 0.0])
                .collect();
            for &place in &self.known.near {
                let exact = self.over(place as usize) / self.known.left;
                if let Some([_, claim, own]) = near.get_mut(place as usize)
                    && *claim > 0.0
                {
                    *own = (*claim - exact).abs() / *claim;
                }
            }
            let whole = total(near.len(), |place| {
                near.get(place).map_or(0.0, |[_, claim, own]| claim * own)
            });
            (near, whole)
        });
        let (apart, reach, stands) = (2.0 * self.apart(), self.reach, self.stands);
        whole
            + row.sum(near, near.len(), |x, [q, claim, own]| {
                let off = (reach * x - stands * q).max(0.0) / left - claim;
                apart * off.max(0.0) + own * (off.abs() - claim)
            })
    }

    /// p changed; `None` where nothing changes.
    pub(super) fn changed(&self, change: Change) -> Option<Changed<'_>> {
        match change {
            Change::Temperature(factor) if self.claimed.cuts() && factor > 0.0 => {
                self.recut(factor, self.claimed)
            }
            Change::Ensemble(weight) => Some(Changed::Mixed {
                p: self.p.row,
                q: self.q.row,
                weight,
            }),
            Change::Order(number) => {
                let other = orders_of(self.claimed).into_iter().nth(number)?;
                self.recut(1.0, &other)
            }
            Change::Uncut(which) => {
                let mut other = self.claimed.clone();
                let kept = |number: u8| which != 0 && which != number;
                other.top_k = other.top_k.filter(|_| kept(1));
                other.top_p = other.top_p.filter(|_| kept(2));
                other.min_p = other.min_p.filter(|_| kept(3));
                match (&other == self.claimed, other.cuts()) {
                    (true, _) => None,
                    (false, true) => self.recut(1.0, &other),
                    (false, false) => Some(Changed::Whole(self.whole)),
                }
            }
            Change::Presence { b, window } | Change::Frequency { b, window } => {
                let counts = matches!(change, Change::Frequency { .. });
                let which = match window {
                    usize::MAX => 0,
                    64 => 1,
                    UNDRAFTED => 3,
                    _ => 2,
                };
                let seen = self.past.seen.get(which)?;
                let b = b / self.claimed.temperature;
                let factor = |count: u32| match counts {
                    true => (-b * f64::from(count)).exp(),
                    false => (-b).exp(),
                };
                let factors = seen.iter().map(|(place, count)| (*place, factor(*count)));
                scaled(self.p.row, factors.collect())
            }
            Change::Repetition(by) => {
                let seen = self.past.seen.first()?;
                let temperature = self.claimed.temperature;
                let factor = |place: usize| {
                    let logit = self.logits.get(place)?;
                    let other = if *logit > 0.0 { logit / by } else { logit * by };
                    Some((place, ((other - logit) / temperature).exp()))
                };
                let factors = seen.iter().filter_map(|(place, _)| factor(*place));
                scaled(self.p.row, factors.collect())
            }
            Change::NoRepeat(tokens) => {
                let banned = self.past.banned.get(tokens.checked_sub(1)?)?;
                let factors = banned.iter().map(|place| (*place, 0.0));
                scaled(self.p.row, factors.collect())
            }
            Change::Again(times) => {
                let [_, again, _] = &self.past.banned;
                let factors = again.iter().map(|place| (*place, times));
                scaled(self.p.row, factors.collect())
            }
            Change::Lag { b, counts, ever } => {
                let b = b / self.claimed.temperature;
                let factor = |count: u32, before: bool| match (counts, before) {
                    (true, _) => (b * f64::from(count)).exp(),
                    (false, false) => b.exp(),
                    (false, true) => 1.0,
                };
                let [round, kept] = &self.past.late;
                let late = if ever { kept } else { round }.iter();
                let factors = late.map(|(place, count, before)| (*place, factor(*count, *before)));
                scaled(self.p.row, factors.collect())
            }
            Change::Before => self.before.map(|[p, _]| Changed::Whole(p)),
            Change::Learnt(add) => self.learnt(add),
            Change::Unseen(least) => unseen(&self.p, self.came[0], least),
            _ => changed_row(&self.p, change),
        }
    }

    /// p by how often each token came so far.
    pub(super) fn learnt(&self, add: f64) -> Option<Changed<'_>> {
        let [came, expected] = self.came[0]?;
        let all = self.p.row.iter().zip(came).zip(expected);
        let row = all.map(|((p, came), expected)| p * (came + add) / (expected + add));
        let mut row: Vec<f64> = row.collect();
        specgap_core::rule::normalise(&mut row).then_some(Changed::Owned(row))
    }

    /// The row before its cuts, at another temperature, cut as said. O(V), and a sort of the
    /// heaviest tokens.
    pub(super) fn recut(&self, factor: f64, claimed: &Claimed) -> Option<Changed<'_>> {
        let made = || View::new(self.whole, self.p.rest);
        let whole = self.made.whole.get_or_init(made);
        let claimed = Claimed {
            temperature: factor * claimed.temperature,
            ..claimed.clone()
        };
        // What the first cut leaves of a long row is all that the others see.
        let first = claimed.kept().at(claimed.temperature).in_order().next();
        let tokens = match first {
            Some(Cut::TopK(k)) if self.whole.len() > SHORT && !self.p.rest => {
                let last = k.checked_sub(1).and_then(|last| whole.value(last));
                last.map_or(whole.order().len(), |least| whole.down_to(least).0)
            }
            _ => whole.order().len(),
        };
        let tokens = whole.order().get(..tokens).unwrap_or_default();
        let power = |x: f64| match factor == 1.0 {
            true => x,
            false => x.powf(1.0 / factor),
        };
        let row = (tokens.iter()).map(|token| power(whole.at(*token as usize)));
        let mut row: Vec<f64> = row.collect();
        specgap_core::rule::normalise(&mut row);
        cut_row(&mut row, &claimed, false).ok()?;
        let places = tokens.iter().map(|token| *token as usize);
        let mut few: Vec<(usize, f64)> = places.zip(row).filter(|(_, x)| *x > 0.0).collect();
        few.sort_unstable_by_key(|one| one.0);
        let same = (few.iter()).all(|(place, x)| (x - self.p.at(*place)).abs() < 1e-12);
        (!same && !few.is_empty()).then_some(Changed::Few(few))
    }

    /// The listed sum of (reach p' - stands q)+.
    pub(super) fn left_of(&self, changed: &Changed<'_>) -> f64 {
        if let (Changed::Mixed { weight, .. }, true) = (changed, self.is_plain()) {
            return weight * self.known.left;
        }
        let (reach, stands) = (self.reach, self.stands);
        changed.sum(self.q.row, self.listed(), |x, q| {
            (reach * x - stands * q).max(0.0)
        })
    }

    /// q changed; `None` where nothing is known of it.
    pub(super) fn changed_draft(&self, change: Change) -> Option<Changed<'_>> {
        match change {
            Change::Before => {
                let q = self.before.map(|[_, q]| q);
                q.filter(|q| !q.is_empty()).map(Changed::Whole)
            }
            Change::Allowed => {
                let row = self.row(|place| match self.p.at(place) > 0.0 {
                    true => self.q.at(place),
                    false => 0.0,
                });
                let mut row = Some(row).filter(|row| row != self.q.row)?;
                specgap_core::rule::normalise(&mut row).then_some(Changed::Owned(row))
            }
            Change::Unseen(least) => unseen(&self.q, self.came[1], least),
            _ => changed_row(&self.q, change),
        }
    }
}

/// A row without the tokens that should have come so often and never did.
fn unseen<'a>(row: &View<'a>, came: Option<[&[f64]; 2]>, least: f64) -> Option<Changed<'a>> {
    let [came, expected] = came?;
    let all = came.iter().zip(expected).enumerate();
    let never = all.filter(|(_, (came, expected))| **came == 0.0 && **expected >= least);
    let never: Vec<(usize, f64)> = never.map(|(place, _)| (place, 0.0)).collect();
    scaled(row.row, never)
}

/// A row changed by itself.
fn changed_row<'a>(row: &'a View<'a>, change: Change) -> Option<Changed<'a>> {
    match change {
        Change::Temperature(0.0) => Some(Changed::Few(vec![(row.likeliest(), 1.0)])),
        Change::Temperature(factor) => Some(tilted(row, factor)),
        Change::TopK(k) => cut(row, k.checked_sub(1).and_then(|last| row.value(last))),
        Change::TopP(share) => cut(row, row.nucleus(share)),
        Change::MinP(share) => cut(row, Some(share * row.largest())),
        Change::Floor(least) => cut(row, Some(least)),
        Change::Range { of, at, factor } => {
            if row.rest {
                return None;
            }
            let (inside, [from, to]) = row.part(usize::from(of), usize::from(at))?;
            let norm = 1.0 + (factor - 1.0) * inside;
            (norm > 1e-9 && inside > 0.0 && inside < 1.0).then_some(Changed::Range {
                row: row.row,
                from,
                to,
                factor,
                norm,
                inside,
            })
        }
        Change::Uniform => Some(Changed::Flat(row.row.len())),
        _ => None,
    }
}
