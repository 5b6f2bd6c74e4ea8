//! A step of the log: what each suspect says of it, over what is claimed.

use super::factor::Factor;
use super::family::{Correct, Families, Keep, Law, Place, Reused, Suspect};
use super::sequence::REPLACE;
use super::target::{Change, Changed, cut, scaled, tilted};
use super::view::{SHORT, View, by_id, by_mass, common, ratio, total};
use crate::audit::data::Claimed;
use crate::audit::evidence::rows::{cut as cut_row, orders_of};
use crate::audit::model::bugs::BUGS;
use crate::audit::model::engine::{Engine, Laws, Position, own_noise};
use crate::audit::model::multi_draft::{Tested, drawn_from, next_draft};
use crate::audit::model::rule::Rule;
use specgap_core::rule::Drafts;
use specgap_core::scheme::SchemeName;
use specgap_sampling::sampling::Cut;
use statrs::function::erf::erfc;
use std::cell::OnceCell;

/// What a suspect says of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Told {
    /// What was drafted, whether it was kept, what replaced it, and what came out where nothing
    /// was drafted.
    pub rule: [Factor; 4],
    /// Of what came out, whatever was drafted.
    pub output: Factor,
}

impl Told {
    pub(crate) const NOTHING: Self = Self {
        rule: [Factor::ONE; 4],
        output: Factor::ONE,
    };
}

/// How far the engine's rows may be from the log's: normal noise on every logit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Noise {
    /// Its standard deviation.
    pub sigma: f64,
    /// It is stated: laws may differ by it everywhere. Else they may where it decides which of two
    /// near numbers is larger, and nowhere else.
    pub stated: bool,
}

impl Noise {
    /// What a mean over noise may add to a probability, relatively.
    fn width(self) -> f64 {
        if !self.stated {
            return 0.0;
        }
        (self.sigma * self.sigma).exp_m1()
    }

    /// The standard deviation of ln(p/q).
    fn spread(self) -> f64 {
        self.sigma * std::f64::consts::SQRT_2
    }

    /// E (p' - q')+, up to the normalisers: the price of an option.
    fn call(self, p: f64, q: f64) -> f64 {
        if p <= 0.0 {
            return 0.0;
        }
        if q <= 0.0 {
            return p;
        }
        let s = self.spread();
        let log = (p / q).ln();
        if log.abs() > 6.0 * s {
            return (p - q).max(0.0);
        }
        let normal = |x: f64| 0.5 * erfc(-x / std::f64::consts::SQRT_2);
        let d = log / s + 0.5 * s;
        (p * normal(d) - q * normal(d - s)).max(0.0)
    }
}

/// Tokens that came out before, by their places in the row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Past {
    /// How often each came, in the whole text, in the last 64 tokens, and in the last 10.
    pub seen: [Vec<(usize, u32)>; 3],
    /// What would repeat 1, 2 or 3 tokens in a row.
    pub banned: [Vec<usize>; 3],
    /// How often each came in this round before, and as a draft that was kept; and whether it came
    /// otherwise.
    pub late: [Vec<(usize, u32, bool)>; 2],
}

/// p and q of another place, or two numbers a token.
type Two<'a> = Option<[&'a [f64]; 2]>;

/// Whether a position is outside of rounds, the rows before it, the text so far, and how often tokens
/// came.
pub(crate) type Around<'a> = (bool, Two<'a>, &'a Past, Two<'a>);

/// What happened at a position, and the rows that it is held against.
pub(crate) struct Here<'a> {
    pub rule: Rule,
    pub claimed: &'a Claimed,
    pub noise: Noise,
    pub p: View<'a>,
    pub q: View<'a>,
    /// p before it is cut.
    pub whole: &'a [f64],
    /// The smallest probability of `whole` that the cuts keep.
    pub least: f64,
    /// Raw logits of the target, where the log has them.
    pub logits: &'a [f64],
    pub reach: f64,
    pub stands: f64,
    pub drafts: &'a [usize],
    pub siblings: bool,
    /// Nothing but what came out says that a draft was kept.
    pub by_output: bool,
    pub kept: bool,
    pub output: usize,
    /// It belongs to no round.
    pub outside: bool,
    /// p and q of the place before, in the same text; q is empty where the log has none.
    pub before: Option<[&'a [f64]; 2]>,
    pub past: &'a Past,
    /// How often each token came so far, and how often it should have.
    pub came: Option<[&'a [f64]; 2]>,
    known: Known,
    /// `whole`, and what keeps each token, where they are asked for.
    uncut: OnceCell<View<'a>>,
    ratios: OnceCell<Vec<f64>>,
    near: OnceCell<(Vec<[f64; 3]>, f64)>,
}

/// A row changed in one way, and what is asked of it again and again.
pub(crate) struct Prepared<'a> {
    row: Changed<'a>,
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

    fn get(&self, number: usize, here: &'a Here<'_>) -> Option<&Prepared<'a>> {
        let change = *self.of.changes.get(number)?;
        let made = || here.changed(change).map(Prepared::new);
        self.made[0].get(number)?.get_or_init(made).as_ref()
    }

    fn of_draft(&self, number: usize, here: &'a Here<'_>) -> Option<&Prepared<'a>> {
        let change = *self.of.drafts.get(number)?;
        let made = || here.changed_draft(change).map(Prepared::new);
        self.made[1].get(number)?.get_or_init(made).as_ref()
    }
}

impl<'a> Prepared<'a> {
    fn new(row: Changed<'a>) -> Self {
        Self {
            row,
            moved: OnceCell::new(),
            left: OnceCell::new(),
            corrected: OnceCell::new(),
        }
    }

    fn moved(&self, here: &Here<'_>) -> f64 {
        self.moved_from(here.p.row)
    }

    /// From the row that was changed.
    fn moved_from(&self, row: &[f64]) -> f64 {
        *self.moved.get_or_init(|| self.row.moved(row))
    }

    fn left(&self, here: &Here<'_>) -> f64 {
        *self.left.get_or_init(|| here.left_of(&self.row))
    }

    fn corrected(&self, here: &Here<'_>) -> Factor {
        let made = || here.corrected(&self.row, || self.left(here));
        *self.corrected.get_or_init(made)
    }
}

/// What the claim says at what happened.
#[derive(Clone, Debug, Default)]
struct Known {
    /// The listed sum of (reach p - stands q)+.
    left: f64,
    /// The same under noise.
    noisy_left: f64,
    keep: f64,
    keep_width: f64,
    /// Tokens whose p and q are so near that noise decides which is larger.
    near: Vec<u32>,
    /// What noise may do to p, relatively; with cuts also by moving their ends.
    width: f64,
    /// By token, the claimed law of a correction, where one was made.
    corrections: Vec<f64>,
    /// Engines of several drafts.
    several: Option<Several>,
}

#[derive(Clone, Debug, Default)]
struct Several {
    drafts: Vec<Option<Vec<f64>>>,
    place: Option<usize>,
    law: Vec<f64>,
    correction: Vec<f64>,
}

impl<'a> Here<'a> {
    fn draft(&self) -> Option<usize> {
        match self.siblings {
            true => None,
            false => self.drafts.first().copied(),
        }
    }

    fn position(&self) -> Position<'a> {
        Position {
            p: self.p.row,
            q: self.q.row,
            rest: self.p.rest,
            reach: self.reach,
            stands: self.stands,
        }
    }

    fn compares(&self) -> bool {
        self.rule.tests_drafts()
    }

    /// In the middle of a block, whose prefix may have been refused.
    pub(crate) fn is_within_block(&self) -> bool {
        self.rule == Rule::BLOCK && self.reach < 1.0
    }

    fn is_plain(&self) -> bool {
        self.reach >= 1.0 && self.stands >= 1.0
    }

    fn over(&self, place: usize) -> f64 {
        (self.reach * self.p.at(place) - self.stands * self.q.at(place)).max(0.0)
    }

    /// Settles what the claim says. O(V).
    pub(crate) fn settle(mut self) -> Self {
        let listed = self.listed();
        let mut known = Known {
            width: self.noise.width(),
            ..Known::default()
        };
        if self.noise.sigma > 0.0 && self.claimed.cuts() {
            let (mut edge, mut kept) = (0.0, 0.0);
            for x in self.whole.iter().filter(|x| **x > 0.0) {
                if (x / self.least).ln().abs() < 3.0 * self.noise.spread() {
                    edge += x;
                }
                if *x >= self.least {
                    kept += x;
                }
            }
            known.width = (known.width + edge / f64::max(kept, 1e-300)).min(0.9);
        }
        if self.compares() {
            known.left = total(listed, |place| self.over(place));
            known.noisy_left = known.left;
            if self.noise.sigma > 0.0 {
                let reach = 6.0 * self.noise.spread();
                for place in 0..listed {
                    let (p, q) = (
                        self.reach * self.p.at(place),
                        self.stands * self.q.at(place),
                    );
                    if p > 0.0 && q > 0.0 && (p / q).ln().abs() < reach {
                        known.near.push(u32::try_from(place).unwrap_or(u32::MAX));
                        known.noisy_left += self.noise.call(p, q) - (p - q).max(0.0);
                    }
                }
            }
        }
        self.known = known;
        if let Some(x) = self.draft() {
            let (p, q) = (self.reach * self.p.at(x), self.stands * self.q.at(x));
            let exact = self.keep_of(self.p.at(x), q, self.known.left);
            let mut other = exact;
            if self.noise.sigma > 0.0 && self.compares() && q > 0.0 {
                let ratio = ((p - self.noise.call(p, q)) / q).clamp(0.0, 1.0);
                other = self.stop(ratio, self.known.left);
            }
            let keep = 0.5 * (exact + other);
            self.known.keep = keep;
            self.known.keep_width =
                0.5 * (exact - other).abs() + self.known.width * keep.min(1.0 - keep);
        }
        if self.draft().is_some() && !self.outside {
            let all = 0..self.p.row.len();
            self.known.corrections = all.map(|place| self.correction_at(place)).collect();
        }
        if self.siblings && !self.drafts.is_empty() && !self.outside {
            self.known.several = Some(self.several(&Engine::HONEST, [None; 2]));
        }
        self
    }

    /// Keeping a draft of this p, the rest as claimed.
    fn keep_of(&self, p: f64, offered: f64, left: f64) -> f64 {
        if !self.compares() {
            return (p / self.rule.over()).min(1.0);
        }
        let wanted = self.reach * p;
        let ratio = match wanted > 0.0 {
            false => 0.0,
            true if wanted >= offered => 1.0,
            true => wanted / offered,
        };
        self.stop(ratio, left)
    }

    /// Of block verification: a prefix that is kept as the longest, too.
    fn stop(&self, ratio: f64, left: f64) -> f64 {
        if self.rule != Rule::BLOCK || ratio <= 0.0 {
            return ratio;
        }
        ratio / (ratio + (1.0 - ratio) * self.spent(left))
    }

    /// Of block verification: the share of what a prefix leaves that stops there.
    fn spent(&self, left: f64) -> f64 {
        let spent = left + 1.0 - self.reach;
        if spent > 0.0 { left / spent } else { 1.0 }
    }

    /// The claimed law of a correction.
    fn correction(&self, place: usize) -> f64 {
        let known = self.known.corrections.get(place).copied();
        known.unwrap_or_else(|| self.correction_at(place))
    }

    /// The same, at the middle of what noise leaves open.
    fn correction_at(&self, place: usize) -> f64 {
        if !self.compares() {
            let x = self.draft().unwrap_or(usize::MAX);
            return match place == x {
                true => 0.0,
                false => self.p.at(place) / (1.0 - self.p.at(x)).max(1e-300),
            };
        }
        if self.known.left <= 0.0 {
            return self.p.at(place);
        }
        let exact = self.over(place) / self.known.left;
        match self.noise.sigma > 0.0 {
            false => exact,
            true => {
                let (p, q) = (
                    self.reach * self.p.at(place),
                    self.stands * self.q.at(place),
                );
                0.5 * (exact + self.noise.call(p, q) / self.known.noisy_left)
            }
        }
    }

    /// A law of corrections over the claimed one, at what came out.
    fn on_correction(&self, law: impl Fn(usize) -> f64) -> Factor {
        let mut price = 0.0;
        if self.noise.sigma > 0.0 {
            let size = self.p.row.len() - usize::from(self.p.rest);
            let moved = total(size, |place| (law(place) - self.correction(place)).max(0.0));
            price = 2.0 * moved * self.apart();
            if self.known.left > 0.0 {
                for &place in &self.known.near {
                    let place = place as usize;
                    let exact = self.over(place) / self.known.left;
                    let claim = self.correction(place);
                    if claim > 0.0 {
                        price += (claim - exact).abs() * (law(place) / claim - 1.0).abs();
                    }
                }
            }
        }
        let claim = self.correction(self.output);
        self.within(Factor::of(law(self.output), claim, price))
    }

    /// What noise may do to a correction, relatively.
    fn apart(&self) -> f64 {
        let apart = match self.known.noisy_left > 0.0 {
            true => {
                let ends = self.known.left / self.known.noisy_left;
                ((1.0 - ends) / (1.0 + ends)).abs()
            }
            false => 0.0,
        };
        apart + 2.0 * self.known.width
    }

    /// The price of a law of corrections from a changed long row, of which so much is left: in one
    /// pass over it.
    fn price_of(&self, row: &Changed<'_>, left: f64) -> f64 {
        // By token: q, the claim, and what noise may do to it beyond that.
        let (near, whole) = self.near.get_or_init(|| {
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

    /// In the middle of a block what the claim excludes may be another p's, and tells nothing.
    fn within(&self, factor: Factor) -> Factor {
        match self.is_within_block() && factor.is_of_the_excluded() {
            true => Factor::ONE,
            false => factor,
        }
    }

    fn on_acceptance(&self, keep: f64) -> Factor {
        let claim = [self.known.keep, self.known.keep_width];
        let factor = Factor::of_acceptance(self.kept, keep, claim);
        self.within(factor)
    }

    fn on_output(&self, law: f64, moved: impl FnOnce() -> f64) -> Factor {
        let claim = self.p.at(self.output);
        if claim <= 0.0 && self.is_edge() {
            return Factor::ONE;
        }
        Factor::of(law, claim, self.price(|| moved().clamp(0.0, 1.0)))
    }

    /// What the claim's noise could add to a law that moves so much.
    fn price(&self, moved: impl FnOnce() -> f64) -> f64 {
        match self.noise.sigma > 0.0 {
            true => 2.0 * self.known.width * moved(),
            false => 0.0,
        }
    }

    /// Whether what came out is cut, but so near to the end of the cut that noise decides.
    fn is_edge(&self) -> bool {
        let whole = self.whole.get(self.output).copied().unwrap_or(0.0);
        self.noise.sigma > 0.0
            && whole > 0.0
            && self.least.is_finite()
            && (whole / self.least).ln().abs() < 3.0 * self.noise.spread()
    }

    /// p changed; `None` where nothing changes.
    fn changed(&self, change: Change) -> Option<Changed<'_>> {
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
                let cut = |all: u8| which == 0 || which == all;
                if cut(1) {
                    other.top_k = None;
                }
                if cut(2) {
                    other.top_p = None;
                }
                if cut(3) {
                    other.min_p = None;
                }
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
                    _ => 2,
                };
                let seen = self.past.seen.get(which)?;
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
                scaled(
                    self.p.row,
                    banned.iter().map(|place| (*place, 0.0)).collect(),
                )
            }
            Change::Lag { b, counts, ever } => {
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
            _ => changed_row(&self.p, change),
        }
    }

    /// p by how often each token came so far.
    fn learnt(&self, add: f64) -> Option<Changed<'_>> {
        let [came, expected] = self.came?;
        let all = self.p.row.iter().zip(came).zip(expected);
        let mut row: Vec<f64> = all
            .map(|((p, came), expected)| p * (came + add) / (expected + add))
            .collect();
        specgap_core::rule::normalise(&mut row).then_some(Changed::Owned(row))
    }

    /// The row before its cuts, at another temperature, cut as said. O(V), and a sort of the
    /// heaviest tokens.
    fn recut(&self, factor: f64, claimed: &Claimed) -> Option<Changed<'_>> {
        let made = || View::new(self.whole, self.p.rest);
        let whole = self.uncut.get_or_init(made);
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
        let mut row: Vec<f64> = (tokens.iter())
            .map(|token| power(whole.at(*token as usize)))
            .collect();
        specgap_core::rule::normalise(&mut row);
        cut_row(&mut row, &claimed, false).ok()?;
        let places = tokens.iter().map(|token| *token as usize);
        let mut few: Vec<(usize, f64)> = places.zip(row).filter(|(_, x)| *x > 0.0).collect();
        few.sort_unstable_by_key(|one| one.0);
        let same = (few.iter()).all(|(place, x)| (x - self.p.at(*place)).abs() < 1e-12);
        (!same && !few.is_empty()).then_some(Changed::Few(few))
    }

    /// The listed sum of (reach p' - stands q)+.
    fn left_of(&self, changed: &Changed<'_>) -> f64 {
        if let (Changed::Mixed { weight, .. }, true) = (changed, self.is_plain()) {
            return weight * self.known.left;
        }
        let (reach, stands) = (self.reach, self.stands);
        changed.sum(self.q.row, self.listed(), |x, q| {
            (reach * x - stands * q).max(0.0)
        })
    }

    /// What a suspect says.
    pub(crate) fn told<'b>(&'b self, suspect: &Suspect, changes: &Changes<'b>) -> Told {
        let law = suspect.law;
        let row = || changes.get(suspect.change, self);
        let draft = || changes.of_draft(suspect.draft, self);
        if self.siblings && !self.drafts.is_empty() {
            return self.of_several(law, row(), draft());
        }
        match law {
            Law::Target(_, place) => self.target(place, row),
            Law::Engine(number) => self.carried(number),
            _ if self.outside || self.draft().is_none() => Told::NOTHING,
            Law::Both(_) => self.both(row(), draft()),
            Law::Draft(_) => draft().map_or(Told::NOTHING, |row| self.drafted(row)),
            Law::OtherDraft(_) | Law::Tested(_) => draft().map_or(Told::NOTHING, |row| {
                self.other_draft(row, matches!(law, Law::OtherDraft(_)))
            }),
            Law::DrawForEach => Told::NOTHING,
            Law::Sampled | Law::Likeliest => self.likeliest(law),
            Law::Decide(keep, correct) => self.decided(keep, correct),
            Law::Number(reused, sorted) => self.reused(reused, sorted),
        }
    }

    fn target<'b, 'c: 'b>(
        &self,
        place: Place,
        row: impl FnOnce() -> Option<&'b Prepared<'c>>,
    ) -> Told {
        let mut told = Told::NOTHING;
        let drafted = self.draft().is_some();
        let (checks, corrects) = match place {
            // How a prefix was reached follows from another p, too, which is not followed here.
            _ if self.is_within_block() => (false, false),
            Place::Everywhere | Place::Drafted => (drafted, drafted && !self.kept),
            Place::Check => (drafted, false),
            Place::Correction => (false, drafted && !self.kept),
            Place::Bonus => (false, false),
        };
        let alone = !drafted && matches!(place, Place::Everywhere | Place::Bonus);
        if self.outside && place != Place::Everywhere {
            return told;
        }
        let outputs = match place {
            Place::Everywhere => true,
            // Given the text alone nothing is known of drafts.
            _ if self.rule == Rule::CARRIED => false,
            Place::Bonus => !drafted,
            _ => drafted,
        };
        if !(checks || corrects || alone || outputs) {
            return told;
        }
        let Some(prepared) = row() else {
            return told;
        };
        let row = &prepared.row;
        let (moved, left) = (|| prepared.moved(self), || prepared.left(self));
        if let Some(x) = self.draft().filter(|x| !self.p.is_rest(*x)) {
            let offered = self.stands * self.q.at(x);
            if checks {
                // In the middle of a block nothing is checked: what is left of p is not asked.
                told.rule[1] = self.on_acceptance(self.keep_of(row.at(x), offered, 0.0));
            }
            if corrects && !self.p.is_rest(self.output) {
                told.rule[2] = prepared.corrected(self);
            }
        }
        if alone && !self.outside {
            let claim = self.undrafted(self.p.at(self.output), self.known.left);
            let own = match self.rule == Rule::CARRIED {
                true => self.undrafted_of(row, left()),
                false => row.at(self.output),
            };
            let edge = claim <= 0.0 && self.is_edge();
            told.rule[3] = match edge {
                true => Factor::ONE,
                false => Factor::of(own, claim, self.price(moved)),
            };
        }
        if outputs {
            told.output = match place {
                Place::Check | Place::Correction => self.output_of_place(row, place, left),
                _ => self.on_output(row.at(self.output), moved),
            };
        }
        told
    }

    fn undrafted(&self, p: f64, left: f64) -> f64 {
        match self.rule == Rule::CARRIED && left > 0.0 {
            true => (p - self.stands * self.q.at(self.output)).max(0.0) / left,
            false => p,
        }
    }

    fn undrafted_of(&self, row: &Changed<'_>, left: f64) -> f64 {
        self.undrafted(row.at(self.output), left)
    }

    fn corrected(&self, row: &Changed<'_>, left: impl Fn() -> f64) -> Factor {
        if !self.compares() {
            let x = self.draft().unwrap_or(usize::MAX);
            let rest = (1.0 - row.at(x)).max(1e-300);
            return self.on_correction(|place| match place == x {
                true => 0.0,
                false => row.at(place) / rest,
            });
        }
        let left = left();
        let law = |place: usize| match left > 0.0 {
            true => (self.reach * row.at(place) - self.stands * self.q.at(place)).max(0.0) / left,
            false => row.at(place),
        };
        let is_long = self.p.row.len() > SHORT && left > 0.0 && self.known.left > 0.0;
        if is_long && self.noise.sigma > 0.0 {
            let claim = self.correction(self.output);
            let price = self.price_of(row, left).max(0.0);
            return self.within(Factor::of(law(self.output), claim, price));
        }
        self.on_correction(law)
    }

    /// Of one place of a round: what comes out of drafts.
    fn output_of_place(&self, row: &Changed<'_>, place: Place, left: impl Fn() -> f64) -> Factor {
        let Some(x) = self.draft().filter(|_| self.is_plain() && !self.p.rest) else {
            return Factor::ONE;
        };
        let y = self.output;
        if self.rule.drafts() == Drafts::Any {
            return Factor::ONE;
        }
        if !self.compares() {
            let (keep, keep_here) = (self.p.at(x), row.at(x));
            let correct = |p: f64, of_x: f64| match y == x {
                true => 0.0,
                false => p / (1.0 - of_x).max(1e-300),
            };
            let hit = f64::from(u8::from(y == x));
            let law = match place {
                Place::Check => hit * keep_here + (1.0 - keep_here) * correct(self.p.at(y), keep),
                _ => hit * keep + (1.0 - keep) * correct(row.at(y), keep_here),
            };
            return self.on_output(law, || row.moved(self.p.row));
        }
        if self.rule != Rule::TOKEN {
            return Factor::ONE;
        }
        let left = left();
        let (p, q) = (self.p.at(y), self.q.at(y));
        let law = match place {
            Place::Check => q.min(row.at(y)) + left * self.correction(y),
            _ if left > 0.0 => q.min(p) + self.known.left * (row.at(y) - q).max(0.0) / left,
            _ => q.min(p) + self.known.left * row.at(y),
        };
        self.on_output(law, || row.moved(self.p.row))
    }

    /// What comes out of drafts with this law, kept and replaced as claimed.
    fn of_drafts(&self, sum_kept: f64, kept: f64) -> f64 {
        kept + (1.0 - sum_kept).max(0.0) * self.correction(self.output)
    }

    /// By token, what keeps it. O(V) at first.
    fn ratios(&self) -> &[f64] {
        let all = || (0..self.q.row.len()).map(|place| self.keep_exactly(place));
        self.ratios.get_or_init(|| all().collect())
    }

    /// What is kept of a draft's row.
    fn kept(&self, keep: Keep) -> f64 {
        let q = self.q.row;
        match keep {
            Keep::Over(over) => total(q.len(), |place| {
                self.q.at(place).min(self.p.at(place) / over)
            }),
            _ => total(q.len(), |place| self.q.at(place) * self.keeps(keep, place)),
        }
    }

    /// How many tokens are listed.
    fn listed(&self) -> usize {
        self.p.row.len() - usize::from(self.p.rest && !self.p.row.is_empty())
    }

    fn keep_exactly(&self, place: usize) -> f64 {
        ratio(self.p.at(place), self.q.at(place))
    }

    /// q changed; `None` where nothing is known of it.
    fn changed_draft(&self, change: Change) -> Option<Changed<'_>> {
        match change {
            Change::Before => {
                let q = self.before.map(|[_, q]| q);
                q.filter(|q| !q.is_empty()).map(Changed::Whole)
            }
            _ => changed_row(&self.q, change),
        }
    }

    fn drafted(&self, draft: &Prepared<'_>) -> Told {
        let mut told = Told::NOTHING;
        let Some(x) = self.draft().filter(|_| self.reach >= 1.0) else {
            return told;
        };
        let row = &draft.row;
        let moved = || draft.moved_from(self.q.row);
        told.rule[0] = Factor::of(row.at(x), self.q.at(x), self.price(moved));
        if self.rule == Rule::TOKEN && !self.p.rest {
            let kept = row.sum(self.ratios(), self.q.row.len(), |mass, keep| mass * keep);
            let y = self.output;
            let law = self.of_drafts(kept, row.at(y) * self.keep_exactly(y));
            told.output = self.on_output(law, moved);
        }
        told
    }

    /// Another row of the draft wherever q is used, or where drafts are tested and replaced alone.
    fn other_draft(&self, draft: &Prepared<'_>, draws: bool) -> Told {
        let mut told = Told::NOTHING;
        let q = &draft.row;
        let Some(x) = self.draft().filter(|_| self.is_plain() && !self.p.rest) else {
            return told;
        };
        let keep = |place: usize| ratio(self.p.at(place), q.at(place));
        if draws {
            told.rule[0] = Factor::of(q.at(x), self.q.at(x), 2.0 * self.known.width);
        }
        told.rule[1] = self.on_acceptance(keep(x));
        if self.kept && (draws || self.rule != Rule::TOKEN) {
            return told;
        }
        let over = |place: usize| (self.p.at(place) - q.at(place)).max(0.0);
        let left = total(self.p.row.len(), over);
        let correct = |place: usize| match left > 0.0 {
            true => over(place) / left,
            false => self.p.at(place),
        };
        if !self.kept && (left > 0.0 || !draws) {
            told.rule[2] = self.on_correction(correct);
        }
        if !draws && self.rule == Rule::TOKEN {
            let y = self.output;
            let kept = total(self.q.row.len(), |place| match self.q.at(place) {
                mass if mass > 0.0 => mass * keep(place),
                _ => 0.0,
            });
            let law = self.q.at(y) * keep(y) + (1.0 - kept).max(0.0) * correct(y);
            told.output = self.on_output(law, || draft.moved_from(self.q.row));
        }
        told
    }

    fn likeliest(&self, law: Law) -> Told {
        let mut told = Told::NOTHING;
        let Some(x) = self.draft().filter(|_| self.reach >= 1.0) else {
            return told;
        };
        let least = self.q.largest() * (-6.0 * self.noise.spread()).exp();
        let is_near = |place: usize| self.q.at(place) >= least && !self.q.is_rest(place);
        if law == Law::Likeliest {
            // Noise decides among the nearest: the heavier ones more often.
            let spread = self.noise.spread();
            let power = if spread > 0.0 { 1.0 / spread } else { 1.0 };
            let weight =
                |place: usize| (self.q.at(place) / self.q.largest().max(1e-300)).powf(power);
            let all = (0..self.q.row.len()).filter(|&place| is_near(place));
            let sum: f64 = all.map(weight).sum();
            let hit = if is_near(x) {
                weight(x) / sum.max(1e-300)
            } else {
                0.0
            };
            let price = self.price(|| 1.0);
            told.rule[0] = Factor::of(hit, self.q.at(x), price);
            if self.rule == Rule::TOKEN && !self.p.rest {
                let best = self.q.likeliest();
                let keep = self.keep_exactly(best);
                let kept = if self.output == best { keep } else { 0.0 };
                told.output = self.on_output(self.of_drafts(keep, kept), || 1.0 - self.q.largest());
            }
            return told;
        }
        let near: f64 = (0..self.q.row.len())
            .filter(|&place| is_near(place))
            .map(|place| self.q.at(place))
            .sum();
        told.rule[0] = match is_near(x) {
            true => Factor::of(near, 1.0, 0.0),
            false => Factor::of(1.0 - near, 0.0, 0.0),
        };
        told
    }

    fn keeps(&self, keep: Keep, place: usize) -> f64 {
        let (p, q) = (self.p.at(place), self.q.at(place));
        let ratio = ratio(p, q);
        match keep {
            // Not a share of min(1, p/q): that is the rule, with steps at which no draft is kept.
            Keep::Over(over) if self.compares() && self.is_plain() && q > 0.0 => {
                (p / q / over).min(1.0)
            }
            Keep::Over(over) if self.compares() => (self.stop_at(ratio) / over).min(1.0),
            Keep::Over(over) => (p / self.rule.over() / over).min(1.0),
            Keep::All => 1.0,
            Keep::None => 0.0,
            Keep::OfLargest => p / self.p.largest().max(1e-300),
            Keep::IfLikeliest => f64::from(u8::from(place == self.p.likeliest())),
            Keep::Target => p,
            Keep::Ratio => ratio,
        }
    }

    fn stop_at(&self, ratio: f64) -> f64 {
        match self.is_plain() {
            true => ratio,
            // Of the draft that was made alone.
            false => self.known.keep,
        }
    }

    /// The residual, or p where none is left.
    fn residual(&self) -> impl Fn(usize) -> f64 + '_ {
        let own = self.known.left > 0.0 && self.compares();
        let over = |place: usize| (self.p.at(place) - self.q.at(place)).max(0.0);
        let sum = match own {
            true => self.known.left,
            false => total(self.p.row.len(), over),
        };
        move |place| match (own, sum > 0.0) {
            (true, _) => self.over(place) / sum,
            (false, true) => over(place) / sum,
            (false, false) => self.p.at(place),
        }
    }

    fn decided(&self, keep: Keep, correct: Correct) -> Told {
        let mut told = Told::NOTHING;
        let Some(x) = self.draft().filter(|x| !self.p.is_rest(*x)) else {
            return told;
        };
        let as_claimed = keep == Keep::Over(1.0);
        let keep_here = match as_claimed {
            true => self.known.keep,
            false => self.keeps(keep, x),
        };
        if !as_claimed {
            told.rule[1] = self.on_acceptance(keep_here);
        }
        let size = self.p.row.len();
        let p_of_x = self.p.at(x);
        // What corrections need of the whole row.
        let residual = matches!(correct, Correct::Softmax | Correct::Residual);
        let residual = residual.then(|| self.residual());
        let residual = |place: usize| residual.as_ref().map_or(0.0, |of| of(place));
        let sum: f64 = match correct {
            Correct::Softmax => total(size, |place| residual(place).exp()),
            Correct::NotNormalised => self.known.left,
            _ => 1.0,
        };
        let best = self.p.likeliest();
        let last = size.saturating_sub(1);
        let law = |place: usize| -> f64 {
            match correct {
                Correct::Claimed => self.correction(place),
                Correct::Residual => residual(place),
                Correct::Target => self.p.at(place),
                Correct::Draft => self.q.at(place),
                Correct::OffDraft if place == x => 0.0,
                Correct::OffDraft => self.p.at(place) / (1.0 - p_of_x).max(1e-300),
                Correct::Likeliest => f64::from(u8::from(place == best)),
                Correct::First => f64::from(u8::from(place == 0)),
                Correct::Softmax => residual(place).exp() / sum,
                Correct::NotNormalised => {
                    let lacks = if place == last { 1.0 - sum } else { 0.0 };
                    self.over(place) + lacks.max(0.0)
                }
            }
        };
        let y = self.output;
        if !self.kept && correct != Correct::Claimed && !self.p.is_rest(y) && !self.p.rest {
            told.rule[2] = self.on_correction(law);
        }
        if self.p.rest || !self.is_plain() || self.rule.drafts() == Drafts::Any {
            return told;
        }
        if !self.compares() {
            let hit = f64::from(u8::from(y == x));
            let law = hit * keep_here + (1.0 - keep_here) * law(y);
            told.output = self.on_output(law, || 1.0);
        } else if self.rule == Rule::TOKEN {
            let kept: f64 = match as_claimed {
                true => 1.0 - self.known.left,
                false => self.kept(keep),
            };
            let own = match as_claimed {
                true => self.q.at(y).min(self.p.at(y)),
                false => self.q.at(y) * self.keeps(keep, y),
            };
            // What replaces a draft may follow from the draft.
            let out = match correct {
                Correct::OffDraft => {
                    let lost = |place: usize| {
                        let keep = if as_claimed {
                            self.keep_exactly(place)
                        } else {
                            self.keeps(keep, place)
                        };
                        let left = 1.0 - self.p.at(place);
                        if left > 0.0 {
                            self.q.at(place) * (1.0 - keep) / left
                        } else {
                            0.0
                        }
                    };
                    let all: f64 = (0..size).filter(|place| *place != y).map(lost).sum();
                    own + self.p.at(y) * all
                }
                _ => own + (1.0 - kept).max(0.0) * law(y),
            };
            told.output = self.on_output(out, || 0.5);
        }
        told
    }

    fn both(&self, target: Option<&Prepared<'_>>, draft: Option<&Prepared<'_>>) -> Told {
        let mut told = Told::NOTHING;
        let x = self.draft().filter(|_| self.is_plain());
        let (Some(x), Some(prepared), Some(draft)) = (x, target, draft) else {
            return told;
        };
        let (p, q) = (&prepared.row, &draft.row);
        let moved = || draft.moved_from(self.q.row);
        told.rule[0] = Factor::of(q.at(x), self.q.at(x), self.price(moved));
        if !self.p.is_rest(x) {
            told.rule[1] = self.on_acceptance(ratio(p.at(x), q.at(x)));
            if !self.kept && !self.p.is_rest(self.output) {
                let row = q.row(self.q.row.len());
                let left = p.sum(&row, self.listed(), |x, q| (x - q).max(0.0));
                if left > 0.0 {
                    told.rule[2] =
                        self.on_correction(|place| (p.at(place) - q.at(place)).max(0.0) / left);
                }
            }
        }
        told.output = self.on_output(p.at(self.output), || prepared.moved(self));
        told
    }

    fn reused(&self, reused: Reused, sorted: bool) -> Told {
        let mut told = Told::NOTHING;
        let Some(x) = self.draft().filter(|_| self.is_plain() && !self.p.rest) else {
            return told;
        };
        let cell_of = |row: &[f64], place: usize| match sorted {
            true => by_mass(row, place),
            false => by_id(row, place),
        };
        let keep = self.known.keep;
        let own = self.q.at(x);
        if own <= 0.0 {
            return told;
        }
        let y = self.output;
        match reused {
            Reused::Coin | Reused::OtherCoin => {
                let coin = |place: usize, cell: [f64; 2]| {
                    let keep = self.keep_exactly(place);
                    let kept = match reused {
                        Reused::Coin => [0.0, keep],
                        _ => [1.0 - keep, 1.0],
                    };
                    common(cell, kept)
                };
                told.rule[1] = self.on_acceptance(coin(x, cell_of(self.q.row, x)) / own);
                if self.rule == Rule::TOKEN && !sorted {
                    let mut below = 0.0;
                    let (mut all, mut here) = (0.0, 0.0);
                    for (place, q) in self.q.row.iter().enumerate().filter(|(_, q)| **q > 0.0) {
                        let kept = coin(place, [below, below + q]);
                        below += q;
                        all += kept;
                        if place == y {
                            here = kept;
                        }
                    }
                    told.output = self.on_output(self.of_drafts(all, here), || 1.0);
                }
            }
            _ if self.kept => {}
            Reused::CoinCorrects | Reused::DraftCorrects => {
                let law: Vec<f64> = (0..self.p.row.len()).map(self.residual()).collect();
                let cell = cell_of(&law, y);
                let (number, length) = match reused {
                    Reused::CoinCorrects => ([keep, 1.0], 1.0 - keep),
                    _ => (cell_of(self.q.row, x), own),
                };
                if length > 1e-9 {
                    let claim = self.correction(y);
                    told.rule[2] =
                        Factor::of(common(cell, number) / length, claim, self.known.width);
                }
            }
            Reused::ClocksCorrect => {
                let over: Vec<f64> = (0..self.p.row.len())
                    .map(|place| self.over(place))
                    .collect();
                let law = own_noise(&over, self.q.row);
                if self.known.left > 0.0 {
                    told.rule[2] =
                        self.on_correction(|place| law.get(place).copied().unwrap_or(0.0));
                }
            }
        }
        told
    }

    /// Engines of the rule that carries.
    fn carried(&self, number: usize) -> Told {
        let mut told = Told::NOTHING;
        let Some(bug) = BUGS.get(number).filter(|_| !self.outside) else {
            return told;
        };
        let laws = Laws::new(self.rule, &bug.engine, &self.position());
        match self.draft() {
            Some(x) => {
                told.rule[1] = self.on_acceptance(laws.keep(x));
                if !self.kept {
                    let law = laws.correction(x);
                    told.rule[2] =
                        self.on_correction(|place| law.get(place).copied().unwrap_or(0.0));
                }
            }
            None => {
                let claim = self.undrafted(self.p.at(self.output), self.known.left);
                let own = laws.bonus.get(self.output).copied().unwrap_or(0.0);
                told.rule[3] = Factor::of(own, claim, 2.0 * self.known.width);
            }
        }
        told
    }

    /// What an engine makes of several drafts, with p and q as said.
    fn several(&self, engine: &Engine, [p, q]: [Option<&[f64]>; 2]) -> Several {
        let at = Position {
            p: p.unwrap_or(self.p.row),
            q: q.unwrap_or(self.q.row),
            ..self.position()
        };
        let drafts = match drawn_from(self.rule, engine, &at) {
            Some((law, row)) if self.rule.drafts() != Drafts::Any => {
                let drafting = law.drafting(&row, self.drafts.len());
                (0..self.drafts.len())
                    .map(|k| next_draft(&drafting, self.drafts.get(..k).unwrap_or_default()))
                    .collect()
            }
            _ => vec![None; self.drafts.len()],
        };
        let mut decided = Tested::new(self.rule, engine, &at, self.drafts).decide(engine);
        if self.by_output {
            decided.by_output();
        }
        let place = match self.kept {
            true => decided.tokens.binary_search(&self.output).ok(),
            false => Some(decided.tokens.len()),
        };
        Several {
            drafts,
            place,
            law: decided.law,
            correction: decided.correction,
        }
    }

    fn of_several(
        &self,
        law: Law,
        row: Option<&Prepared<'_>>,
        draft: Option<&Prepared<'_>>,
    ) -> Told {
        let mut told = Told::NOTHING;
        let get = |row: &[f64], place: usize| row.get(place).copied().unwrap_or(0.0);
        let everywhere = matches!(law, Law::Target(_, Place::Everywhere));
        let row = row.filter(|_| everywhere);
        if let Some(row) = row {
            told.output = self.on_output(row.row.at(self.output), || row.moved(self));
        }
        let Some(claim) = self.known.several.as_ref() else {
            return told;
        };
        let size = self.p.row.len();
        let other = match law {
            Law::Engine(number) => BUGS
                .get(number)
                .map(|bug| self.several(&bug.engine, [None; 2])),
            Law::OtherDraft(_) => {
                draft.map(|q| self.several(&Engine::HONEST, [None, Some(&q.row.row(size))]))
            }
            Law::DrawForEach => Some(self.draw_for_each(claim)),
            // Rows are long where drafts are tested once for each suspect.
            _ => (row.filter(|_| size <= SHORT))
                .map(|row| self.several(&Engine::HONEST, [Some(&row.row.row(size)), None])),
        };
        let Some(other) = other else {
            return told;
        };
        let price = 2.0 * self.known.width;
        if self.rule.drafts() != Drafts::Any {
            let mut ratio = 1.0;
            let laws = claim.drafts.iter().zip(&other.drafts).zip(self.drafts);
            for ((claim, other), &draft) in laws {
                if let (Some(claim), Some(other)) = (claim, other) {
                    ratio *= Factor::of(get(other, draft), get(claim, draft), 0.0).ratio;
                }
            }
            told.rule[0] = Factor {
                ratio,
                price: if ratio == 1.0 { 0.0 } else { price },
            };
        }
        if let Some(place) = claim.place {
            let (own, honest) = (get(&other.law, place), get(&claim.law, place));
            let price = if own == honest { 0.0 } else { price };
            let honest = if honest > 1e-12 { honest } else { 0.0 };
            told.rule[1] = Factor::of(own, honest, price);
        }
        if !self.kept && !self.p.is_rest(self.output) {
            let (own, honest) = (
                get(&other.correction, self.output),
                get(&claim.correction, self.output),
            );
            let price = if own == honest { 0.0 } else { price };
            told.rule[2] = Factor::of(own, honest, price);
        }
        told
    }

    /// Each draft is held against a draw of its own from p, and the first draw comes out where none is hit.
    fn draw_for_each(&self, claim: &Several) -> Several {
        let mut tokens = self.drafts.to_vec();
        tokens.sort_unstable();
        tokens.dedup();
        let mut law = vec![0.0; tokens.len() + 1];
        let mut alive = 1.0;
        for draft in self.drafts {
            let keep = self.p.at(*draft);
            if let Ok(place) = tokens.binary_search(draft)
                && let Some(slot) = law.get_mut(place)
            {
                *slot += alive * keep;
            }
            alive *= 1.0 - keep;
        }
        if let Some(none) = law.last_mut() {
            *none = alive;
        }
        Several {
            law,
            correction: {
                // The first draw, which was not the first draft.
                let mut law = self.p.row.to_vec();
                if let Some(first) = self.drafts.first().and_then(|x| law.get_mut(*x)) {
                    *first = 0.0;
                }
                specgap_core::rule::normalise(&mut law);
                law
            },
            ..claim.clone()
        }
    }

    /// What an engine with noise on its logits does where a rule compares p and q: for what is
    /// nothing but another pass of the models.
    pub(crate) fn noisy(&self, sigma: f64) -> [f64; 2] {
        let noise = Noise {
            sigma,
            stated: true,
        };
        let Some(x) = self
            .draft()
            .filter(|x| self.compares() && !self.p.is_rest(*x))
        else {
            return [1.0; 2];
        };
        let (p, q) = (self.reach * self.p.at(x), self.stands * self.q.at(x));
        if q <= 0.0 {
            return [1.0; 2];
        }
        let keep = self.stop(
            ((p - noise.call(p, q)) / q).clamp(0.0, 1.0),
            self.known.left,
        );
        let first = self.on_acceptance(keep).ratio;
        let y = self.output;
        if self.kept || self.p.is_rest(y) || self.known.left <= 0.0 {
            return [first, 1.0];
        }
        let (p, q) = (self.reach * self.p.at(y), self.stands * self.q.at(y));
        let size = self.p.row.len() - usize::from(self.p.rest);
        let sum: f64 = (0..size)
            .map(|place| {
                noise.call(
                    self.reach * self.p.at(place),
                    self.stands * self.q.at(place),
                )
            })
            .sum();
        let own = noise.call(p, q) / sum.max(1e-300);
        [first, Factor::of(own, self.correction(y), 0.0).ratio]
    }

    /// Whether drafts are a draw of the draft's row.
    pub(crate) fn drafts_are_drawn(&self) -> bool {
        self.rule.drafts() == Drafts::Drawn(SchemeName::WITH_REPLACEMENT)
    }

    /// How the draft was accepted: p, q, and the chance of being kept.
    pub(crate) fn acceptance(&self) -> Option<[f64; 4]> {
        let x = self
            .draft()
            .filter(|x| !self.p.is_rest(*x) && !self.outside)?;
        let known = &self.known;
        Some([self.p.at(x), self.q.at(x), known.keep, known.keep_width])
    }

    /// The law of a token where nothing was drafted.
    pub(crate) fn law_alone(&self) -> Vec<f64> {
        match self.rule == Rule::CARRIED && self.known.left > 0.0 {
            true => (0..self.p.row.len())
                .map(|place| self.over(place) / self.known.left)
                .collect(),
            false => self.p.row.to_vec(),
        }
    }

    /// The law of a draft that is drawn.
    pub(crate) fn law_of_drafts(&self) -> Option<Vec<f64>> {
        if !self.drafts_are_drawn() {
            return None;
        }
        if self.rule != Rule::BLOCK || self.reach >= 1.0 {
            return Some(self.q.row.to_vec());
        }
        let stop = self.spent(self.known.left);
        let mut law: Vec<f64> = (0..self.q.row.len())
            .map(|place| {
                let q = self.q.at(place);
                let ratio = ratio(self.reach * self.p.at(place), q);
                q * (ratio + (1.0 - ratio) * stop)
            })
            .collect();
        specgap_core::rule::normalise(&mut law);
        Some(law)
    }

    /// The law of what replaces the draft, given that it is listed.
    pub(crate) fn law_of_corrections(&self) -> Vec<f64> {
        let size = self.p.row.len() - usize::from(self.p.rest);
        (0..size).map(|place| self.correction(place)).collect()
    }

    /// Where what replaced the draft lies by falling p: as claimed, as p without the draft, as p, and
    /// as the residual. O(V).
    pub(crate) fn replaced(&self) -> Option<[[f64; 2]; REPLACE]> {
        let x = self.draft().filter(|_| !self.kept && !self.p.rest)?;
        let y = self.output;
        let own = self.p.at(y);
        let left = (1.0 - self.p.at(x)).max(1e-300);
        let over = |place: usize| (self.p.at(place) - self.q.at(place)).max(0.0);
        let all = 0..self.p.row.len();
        let sum: f64 = all.clone().map(over).sum();
        let laws = |place: usize| {
            let p = self.p.at(place);
            let off = if place == x { 0.0 } else { p / left };
            let residual = if sum > 0.0 { over(place) / sum } else { p };
            [self.correction(place), off, p, residual]
        };
        let mut cells = laws(y).map(|mass| [0.0, mass]);
        for place in all {
            let p = self.p.at(place);
            if p > own || (p == own && place < y) {
                for (cell, mass) in cells.iter_mut().zip(laws(place)) {
                    cell[0] += mass;
                    cell[1] += mass;
                }
            }
        }
        Some(cells)
    }

    /// A step, and what is claimed of it.
    pub(crate) fn new(
        (rule, claimed, noise): (Rule, &'a Claimed, Noise),
        [p, q]: [View<'a>; 2],
        (whole, least, logits): (&'a [f64], f64, &'a [f64]),
        [reach, stands]: [f64; 2],
        (drafts, [siblings, by_output], kept, output): (&'a [usize], [bool; 2], bool, usize),
        (outside, before, past, came): Around<'a>,
    ) -> Self {
        Self {
            rule,
            claimed,
            noise,
            p,
            q,
            whole,
            least,
            logits,
            reach,
            stands,
            drafts,
            siblings,
            by_output,
            kept,
            output,
            outside,
            before,
            past,
            came,
            known: Known::default(),
            uncut: OnceCell::new(),
            ratios: OnceCell::new(),
            near: OnceCell::new(),
        }
        .settle()
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::suspects::capital::SHARES;

    const P: [f64; 6] = [0.30, 0.25, 0.2, 0.15, 0.08, 0.02];
    const Q: [f64; 6] = [0.1, 0.05, 0.4, 0.3, 0.1, 0.05];
    const BEFORE: [[f64; 6]; 2] = [
        [0.1, 0.1, 0.1, 0.1, 0.1, 0.5],
        [0.5, 0.1, 0.1, 0.1, 0.1, 0.1],
    ];
    const LOGITS: [f64; 6] = [3.0, 2.8, 2.6, 2.3, 1.7, 0.3];
    const CAME: [[f64; 6]; 2] = [
        [3.0, 1.0, 4.0, 1.0, 5.0, 0.0],
        [2.5, 2.0, 3.0, 3.0, 2.0, 1.5],
    ];

    fn past() -> Past {
        Past {
            seen: [
                vec![(1, 2), (3, 1), (4, 4)],
                vec![(1, 1), (4, 2)],
                vec![(4, 1)],
            ],
            banned: [vec![4], vec![1, 2], vec![3]],
            late: [vec![(1, 1, true)], vec![(1, 2, false), (3, 1, true)]],
        }
    }

    struct Case {
        rule: Rule,
        carried: [f64; 2],
        drafts: Vec<usize>,
        siblings: bool,
        kept: bool,
        output: usize,
        outside: bool,
    }

    fn told(case: &Case, noise: f64, ask: &mut dyn FnMut(&Here<'_>, &Families)) {
        let claimed = Claimed::at(1.0);
        let past = past();
        let here = Here::new(
            (
                case.rule,
                &claimed,
                Noise {
                    sigma: noise,
                    stated: true,
                },
            ),
            [View::new(&P, false), View::new(&Q, false)],
            (&P, 0.02, &LOGITS),
            case.carried,
            (&case.drafts, [case.siblings, false], case.kept, case.output),
            (
                case.outside,
                Some([&BEFORE[0], &BEFORE[1]]),
                &past,
                Some([&CAME[0], &CAME[1]]),
            ),
        );
        let families = Families::of(case.rule, 0, 0, case.siblings);
        ask(&here, &families);
    }

    /// All that can happen at a step with one draft, with its chance under the claim.
    fn outcomes(rule: Rule, [reach, stands]: [f64; 2]) -> Vec<(Case, f64)> {
        let at = Position {
            reach,
            stands,
            ..Position::new(&P, &Q)
        };
        let laws = Laws::new(rule, &Engine::HONEST, &at);
        let likeliest = [0.0, 0.0, 1.0, 0.0, 0.0, 0.0];
        let drawn = match rule.drafts() {
            Drafts::Any => Q.to_vec(),
            Drafts::Likeliest => likeliest.to_vec(),
            _ => laws.draft.clone().unwrap(),
        };
        let mut all = Vec::new();
        let mut push = |x: Option<usize>, kept: bool, output: usize, mass: f64| {
            let case = Case {
                rule,
                carried: [reach, stands],
                drafts: x.into_iter().collect(),
                siblings: false,
                kept,
                output,
                outside: false,
            };
            all.push((case, mass));
        };
        for (x, mass) in drawn.iter().enumerate() {
            let keep = laws.keep(x);
            push(Some(x), true, x, mass * keep);
            for (y, own) in laws.correction(x).iter().enumerate() {
                push(Some(x), false, y, mass * (1.0 - keep) * own);
            }
        }
        all.retain(|(_, mass)| *mass > 1e-14);
        all
    }

    /// No suspect wins on average while the claim is true: the sum over all that can happen of what
    /// it is claimed to have as chance, times what the suspect says. What the claim excludes may be
    /// missing to 1, and nothing is above.
    #[test]
    fn no_suspect_wins_on_average() {
        let rules = [
            (Rule::TOKEN, [1.0, 1.0]),
            (Rule::BLOCK, [0.6, 1.0]),
            (Rule::BLOCK, [1.0, 1.0]),
            (Rule::CARRIED, [1.0, 0.7]),
            (Rule::ONE_HOT, [1.0, 1.0]),
            (Rule::EXACT_MATCH, [1.0, 1.0]),
        ];
        for (rule, carried) in rules {
            let families = Families::of(rule, 0, 0, false);
            let size = families.suspects.len();
            let mut sums = vec![[0.0f64; 2 * SHARES.len()]; size];
            let mut total = 0.0;
            let stands = carried[1];
            for (case, mass) in outcomes(rule, carried) {
                total += mass;
                told(&case, 0.0, &mut |here, families| {
                    let changes = Changes::new(families);
                    for (suspect, sum) in families.suspects.iter().zip(&mut sums) {
                        let told = here.told(suspect, &changes);
                        let rule: f64 = told.rule.iter().map(|one| one.ratio).product();
                        let ratios = [rule, told.output.ratio];
                        for (slot, (share, _)) in SHARES.iter().enumerate() {
                            for (which, ratio) in ratios.iter().enumerate() {
                                // Given the text alone a draft may not stand.
                                let mass = if which == 1 { mass * stands } else { mass };
                                sum[2 * slot + which] += mass * (1.0 - share + share * ratio);
                            }
                        }
                    }
                });
            }
            assert!((total - 1.0).abs() < 1e-9, "{rule}: {total}");
            if stands < 1.0 {
                let over: Vec<f64> = P
                    .iter()
                    .zip(Q)
                    .map(|(p, q)| (p - stands * q).max(0.0))
                    .collect();
                let left: f64 = over.iter().sum();
                for (output, over) in over.iter().enumerate().filter(|(_, over)| **over > 0.0) {
                    let case = Case {
                        rule,
                        carried,
                        drafts: Vec::new(),
                        siblings: false,
                        kept: false,
                        output,
                        outside: false,
                    };
                    told(&case, 0.0, &mut |here, families| {
                        let changes = Changes::new(families);
                        for (suspect, sum) in families.suspects.iter().zip(&mut sums) {
                            let ratio = here.told(suspect, &changes).output.ratio;
                            for (slot, (share, _)) in SHARES.iter().enumerate() {
                                sum[2 * slot + 1] +=
                                    (1.0 - stands) * over / left * (1.0 - share + share * ratio);
                            }
                        }
                    });
                }
            }
            for (suspect, sum) in families.suspects.iter().zip(&sums) {
                for one in sum {
                    assert!(*one <= 1.0 + 1e-9, "{rule} {:?}: {one}", suspect.law);
                }
            }
            let moved = sums.iter().filter(|sum| sum[0] > 0.2).count();
            assert!(moved > size / 2, "{rule}");
        }
    }

    /// The same of a token that came without a draft, in a round and outside of any.
    #[test]
    fn no_suspect_wins_on_tokens_alone() {
        for (rule, outside) in [
            (Rule::TOKEN, false),
            (Rule::TOKEN, true),
            (Rule::TEXT, false),
            (Rule::EXACT_MATCH, false),
        ] {
            let families = Families::of(rule, 0, 0, false);
            let mut sums = vec![[0.0f64; 2]; families.suspects.len()];
            for (output, mass) in P.iter().enumerate() {
                let case = Case {
                    rule,
                    carried: [1.0, 1.0],
                    drafts: Vec::new(),
                    siblings: false,
                    kept: false,
                    output,
                    outside,
                };
                told(&case, 0.0, &mut |here, families| {
                    let changes = Changes::new(families);
                    for (suspect, sum) in families.suspects.iter().zip(&mut sums) {
                        let told = here.told(suspect, &changes);
                        let rule: f64 = told.rule.iter().map(|one| one.ratio).product();
                        sum[0] += mass * rule;
                        sum[1] += mass * told.output.ratio;
                    }
                });
            }
            for (suspect, sum) in families.suspects.iter().zip(&sums) {
                for one in sum {
                    assert!((one - 1.0).abs() < 1e-9, "{rule} {:?}: {one}", suspect.law);
                }
            }
        }
    }

    /// Long rows are gone through once for what a law of corrections pays, and in lanes: it is what
    /// they pay token by token.
    #[test]
    fn long_rows_pay_what_their_tokens_do() {
        let made = |by: usize| {
            let mut row: Vec<f64> = (0..1500)
                .map(|i| 1.0 / (1 + i * by % 1499) as f64)
                .collect();
            specgap_core::rule::normalise(&mut row);
            row
        };
        let (p, q) = (made(7), made(11));
        let (claimed, past) = (Claimed::at(1.0), past());
        let noise = Noise {
            sigma: 0.2,
            stated: true,
        };
        let here = Here::new(
            (Rule::TOKEN, &claimed, noise),
            [View::new(&p, false), View::new(&q, false)],
            (&p, 0.0, &[]),
            [1.0, 1.0],
            (&[3], [false; 2], false, 0),
            (false, Some([&q, &p]), &past, None),
        );
        let families = Families::of(Rule::TOKEN, 0, 0, false);
        let mut found = 0;
        for change in &families.changes {
            let Some(row) = here.changed(*change) else {
                continue;
            };
            let left = here.left_of(&row);
            let plainly: f64 = (0..1500).map(|i| (row.at(i) - q[i]).max(0.0)).sum();
            assert!((left - plainly).abs() < 1e-12, "{change:?}");
            if left <= 0.0 {
                continue;
            }
            let law = |place: usize| (row.at(place) - q[place]).max(0.0) / left;
            let [plain, own] = [here.on_correction(law), here.corrected(&row, || left)];
            assert_eq!(plain.ratio, own.ratio);
            assert!((plain.price - own.price).abs() < 1e-9, "{change:?}");
            found += usize::from(own.price > 1e-6);
        }
        assert!(found > 100, "{found}");
    }

    /// With noise, at both ends of what it leaves open: what is paid covers what may be won.
    #[test]
    fn noise_is_covered_at_both_ends() {
        let sigma = 0.2;
        let noise = Noise {
            sigma,
            stated: true,
        };
        // The noisy end: acceptance and corrections at the price of an option.
        let sum: f64 = P.iter().zip(Q).map(|(p, q)| noise.call(*p, q)).sum();
        let keep = |x: usize, noisy: bool| match noisy {
            true => ((P[x] - noise.call(P[x], Q[x])) / Q[x]).clamp(0.0, 1.0),
            false => (P[x] / Q[x]).min(1.0),
        };
        let left: f64 = P.iter().zip(Q).map(|(p, q)| (p - q).max(0.0)).sum();
        for noisy in [false, true] {
            let mut sums: Vec<f64> = Vec::new();
            for (x, drawn) in Q.iter().enumerate() {
                let kept = keep(x, noisy);
                for (is_kept, y) in std::iter::once((true, x)).chain((0..6).map(|y| (false, y))) {
                    let correction = match noisy {
                        true => noise.call(P[y], Q[y]) / sum,
                        false => (P[y] - Q[y]).max(0.0) / left,
                    };
                    let chance = if is_kept {
                        kept
                    } else {
                        (1.0 - kept) * correction
                    };
                    let case = Case {
                        rule: Rule::TOKEN,
                        carried: [1.0, 1.0],
                        drafts: vec![x],
                        siblings: false,
                        kept: is_kept,
                        output: y,
                        outside: false,
                    };
                    told(&case, sigma, &mut |here, families| {
                        let changes = Changes::new(families);
                        sums.resize(families.suspects.len(), 0.0);
                        for (suspect, sum) in families.suspects.iter().zip(&mut sums) {
                            let told = here.told(suspect, &changes);
                            let own: f64 = told
                                .rule
                                .iter()
                                .map(|one| one.ratio / (1.0 + one.price))
                                .product();
                            *sum += drawn * chance * own;
                        }
                    });
                }
            }
            let families = Families::of(Rule::TOKEN, 0, 0, false);
            for (suspect, sum) in families.suspects.iter().zip(&sums) {
                assert!(*sum <= 1.0 + 1e-9, "{noisy} {:?}: {sum}", suspect.law);
            }
        }
    }
}
