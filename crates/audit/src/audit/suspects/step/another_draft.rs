//! Suspects with another q, or with drafts that are not drawn from it.

use super::changed::Prepared;
use super::{Here, Told};
use crate::audit::model::rule::Rule;
use crate::audit::suspects::factor::Factor;
use crate::audit::suspects::family::Law;
use crate::audit::suspects::view::{ratio, total};

impl<'a> Here<'a> {
    /// Returns how likely the output is from drafts with this law, kept and replaced as claimed.
    pub(super) fn of_drafts(&self, sum_kept: f64, kept: f64) -> f64 {
        kept + (1.0 - sum_kept).max(0.0) * self.correction(self.output)
    }

    /// Returns by token how often it is kept. O(V) at first.
    pub(super) fn ratios(&self) -> &[f64] {
        let all = || self.row(|place| self.keep_exactly(place));
        self.made.ratios.get_or_init(all)
    }

    pub(super) fn keep_exactly(&self, place: usize) -> f64 {
        ratio(self.p.at(place), self.q.at(place))
    }

    pub(super) fn drafted(&self, draft: &Prepared<'_>) -> Told {
        let mut told = Told::NOTHING;
        let Some(x) = self.draft().filter(|_| self.reach >= 1.0) else {
            return told;
        };
        let row = &draft.row;
        let moved = || draft.moved(self.q.row);
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
    pub(super) fn other_draft(&self, draft: &Prepared<'_>, draws: bool) -> Told {
        let mut told = Told::NOTHING;
        let q = &draft.row;
        let Some(x) = self.draft().filter(|_| self.is_plain() && !self.p.rest) else {
            return told;
        };
        let keep = |place: usize| ratio(self.p.at(place), q.at(place));
        if draws {
            told.rule[0] = Factor::of(q.at(x), self.q.at(x), 2.0 * self.known.width);
        }
        self.accept(&mut told, keep(x));
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
            told.output = self.on_output(law, || draft.moved(self.q.row));
        }
        told
    }

    pub(super) fn likeliest(&self, law: Law) -> Told {
        let mut told = Told::NOTHING;
        let Some(x) = self.draft().filter(|_| self.reach >= 1.0) else {
            return told;
        };
        if self.q.largest() < self.q.unlisted() {
            // A token that is not listed may be the likeliest.
            return told;
        }
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
            let own = if is_near(x) { weight(x) } else { 0.0 };
            let hit = own / sum.max(1e-300);
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
        let near = (0..self.q.row.len()).filter(|&place| is_near(place));
        let near: f64 = near.map(|place| self.q.at(place)).sum();
        told.rule[0] = match is_near(x) {
            true => Factor::of(near, 1.0, 0.0),
            false => Factor::of(1.0 - near, 0.0, 0.0),
        };
        told
    }
}
