//! The claim at a step: its chance to keep, its corrections, and laws of others over them.

use super::{Here, Known, Told};
use crate::audit::model::engine::Engine;
use crate::audit::model::rule::Rule;
use crate::audit::suspects::factor::Factor;
use crate::audit::suspects::view::{all_but, total};

impl<'a> Here<'a> {
    /// Settles what the claim says. O(V).
    pub(crate) fn settle(mut self) -> Self {
        let listed = self.listed();
        let mut known = Known {
            width: self.noise.width(),
            others: 1.0,
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
                    let (p, q) = self.both_at(place);
                    if p > 0.0 && q > 0.0 && (p / q).ln().abs() < reach {
                        known.near.push(u32::try_from(place).unwrap_or(u32::MAX));
                        known.noisy_left += self.noise.call(p, q) - (p - q).max(0.0);
                    }
                }
            }
        }
        self.known = known;
        if let Some(x) = self.draft() {
            let (p, q) = self.both_at(x);
            let exact = self.keep_of(self.p.at(x), q, self.known.left);
            let mut other = exact;
            if self.noise.sigma > 0.0 && self.compares() && q > 0.0 {
                let ratio = ((p - self.noise.call(p, q)) / q).clamp(0.0, 1.0);
                other = self.stop(ratio, self.known.left);
            }
            let keep = 0.5 * (exact + other);
            self.known.others = all_but(x, self.p.row.len(), |place| self.p.at(place));
            self.known.keep = keep;
            self.known.keep_width =
                0.5 * (exact - other).abs() + self.known.width * keep.min(1.0 - keep);
        }
        if self.draft().is_some() && !self.outside {
            self.known.corrections = self.row(|place| self.correction_at(place));
        }
        let is_known = !self.drafts.iter().any(|x| self.p.is_rest(*x));
        if self.siblings && !self.drafts.is_empty() && !self.outside && is_known {
            self.known.several = Some(self.several(&Engine::HONEST, [None; 2]));
        }
        self
    }

    /// Keeping a draft of this p, the rest as claimed.
    pub(super) fn keep_of(&self, p: f64, offered: f64, left: f64) -> f64 {
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

    /// Returns how often a draft of this ratio is kept, where blocks are verified given its prefix.
    pub(super) fn stop(&self, ratio: f64, left: f64) -> f64 {
        if self.rule != Rule::BLOCK || ratio <= 0.0 {
            return ratio;
        }
        ratio / (ratio + (1.0 - ratio) * self.spent(left))
    }

    /// Returns the share of what a prefix leaves that stops there, in block verification.
    pub(super) fn spent(&self, left: f64) -> f64 {
        let spent = left + 1.0 - self.reach;
        if spent > 0.0 { left / spent } else { 1.0 }
    }

    /// Counts the places that the law of corrections is known at: p without the draft at all of them, and (p - q)+ at
    /// listed ones, as a law given that what comes out is one of these.
    pub(super) fn corrected_places(&self) -> usize {
        match self.compares() {
            true => self.listed(),
            false => self.p.row.len(),
        }
    }

    /// Tells whether what came out is one of them.
    pub(crate) fn knows_correction(&self) -> bool {
        !(self.compares() && self.p.is_rest(self.output))
    }

    /// The claimed law of a correction.
    pub(super) fn correction(&self, place: usize) -> f64 {
        let known = self.known.corrections.get(place).copied();
        known.unwrap_or_else(|| self.correction_at(place))
    }

    /// Returns the claimed law of a correction, at the middle of what noise leaves open.
    pub(super) fn correction_at(&self, place: usize) -> f64 {
        if !self.compares() {
            let x = self.draft().unwrap_or(usize::MAX);
            return match place == x {
                true => 0.0,
                false => self.p.at(place) / self.known.others.max(1e-300),
            };
        }
        if self.known.left <= 0.0 {
            return self.p.at(place);
        }
        let exact = self.over(place) / self.known.left;
        if self.noise.sigma <= 0.0 {
            return exact;
        }
        let (p, q) = self.both_at(place);
        0.5 * (exact + self.noise.call(p, q) / self.known.noisy_left)
    }

    /// A law of corrections over the claimed one, at what came out.
    pub(super) fn on_correction(&self, law: impl Fn(usize) -> f64) -> Factor {
        let mut price = 0.0;
        if self.noise.sigma > 0.0 {
            let size = self.corrected_places();
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

    /// Lets what the claim excludes tell nothing in the middle of a block: it may be another p's.
    pub(super) fn within(&self, factor: Factor) -> Factor {
        match self.is_within_block() && factor.is_of_the_excluded() {
            true => Factor::ONE,
            false => factor,
        }
    }

    pub(super) fn accept(&self, told: &mut Told, keep: f64) {
        told.keep = Some(keep);
        told.rule[1] = self.on_acceptance(keep);
    }

    pub(super) fn on_acceptance(&self, keep: f64) -> Factor {
        let claim = [self.known.keep, self.known.keep_width];
        let factor = Factor::of_acceptance(self.kept, keep, claim);
        self.within(factor)
    }

    pub(super) fn on_output(&self, law: f64, moved: impl FnOnce() -> f64) -> Factor {
        let claim = self.p.at(self.output);
        if claim <= 0.0 && self.is_edge() {
            return Factor::ONE;
        }
        Factor::of(law, claim, self.price(|| moved().clamp(0.0, 1.0)))
    }

    pub(super) fn undrafted(&self, p: f64, left: f64) -> f64 {
        match self.rule == Rule::CARRIED && left > 0.0 {
            true => (p - self.stands * self.q.at(self.output)).max(0.0) / left,
            false => p,
        }
    }
}
