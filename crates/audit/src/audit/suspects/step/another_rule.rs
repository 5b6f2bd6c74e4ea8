//! Suspects that decide by another rule, or by numbers that they have used before.

use super::changed::Prepared;
use super::{Here, Told};
use crate::audit::model::bugs::Bug;
use crate::audit::model::engine::{Laws, get, own_noise};
use crate::audit::model::rule::Rule;
use crate::audit::suspects::factor::Factor;
use crate::audit::suspects::family::{Correct, Keep, Reused};
use crate::audit::suspects::view::{all_but, by_id, by_mass, common, ratio, total};
use specgap_core::rule::Drafts;

impl<'a> Here<'a> {
    pub(super) fn keeps(&self, keep: Keep, place: usize) -> f64 {
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
            Keep::IfRefused => 1.0 - self.keeps(Keep::Over(1.0), place),
            Keep::Target => p,
            Keep::Ratio => ratio,
        }
    }

    /// Returns the mass of the draft's row that is kept.
    pub(super) fn kept(&self, keep: Keep) -> f64 {
        let q = self.q.row;
        match keep {
            Keep::Over(over) => total(q.len(), |place| {
                self.q.at(place).min(self.p.at(place) / over)
            }),
            _ => total(q.len(), |place| self.q.at(place) * self.keeps(keep, place)),
        }
    }

    pub(super) fn stop_at(&self, ratio: f64) -> f64 {
        match self.is_plain() {
            true => ratio,
            // Of the draft that was made alone.
            false => self.known.keep,
        }
    }

    /// The residual, or p where none is left.
    pub(super) fn residual(&self) -> impl Fn(usize) -> f64 + '_ {
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

    /// What a correction that is made so gives the output, had this token been drafted.
    fn instead_of(&self, draft: usize, correct: Correct) -> f64 {
        let y = self.output;
        let is = |place: usize| f64::from(u8::from(place == y));
        match correct {
            Correct::Target => self.p.at(y),
            Correct::Draft => self.q.at(y),
            Correct::Likeliest => is(self.p.likeliest()),
            Correct::First => is(0),
            Correct::Residual | Correct::Softmax => self.residual()(y),
            Correct::LikeliestLeft => {
                let others = (0..self.p.row.len()).filter(|place| *place != draft);
                let falling =
                    |a: &usize, b: &usize| self.p.at(*a).total_cmp(&self.p.at(*b)).then(b.cmp(a));
                others.max_by(falling).map_or(0.0, is)
            }
            Correct::Claimed | Correct::OffDraft | Correct::NotNormalised if y == draft => 0.0,
            Correct::Claimed | Correct::OffDraft | Correct::NotNormalised => {
                let others = all_but(draft, self.p.row.len(), |place| self.p.at(place));
                self.p.at(y) / others.max(1e-300)
            }
        }
    }

    pub(super) fn decided(&self, keep: Keep, correct: Correct) -> Told {
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
            self.accept(&mut told, keep_here);
        }
        let size = self.p.row.len();
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
        let left = |place: &usize| self.correction(*place);
        let falling = |a: &usize, b: &usize| left(a).total_cmp(&left(b)).then(b.cmp(a));
        let is_asked = correct == Correct::LikeliestLeft && !self.kept;
        let best_left = (0..if is_asked { size } else { 0 }).max_by(falling);
        let last = size.saturating_sub(1);
        let law = |place: usize| -> f64 {
            match correct {
                Correct::Claimed => self.correction(place),
                Correct::Residual => residual(place),
                Correct::Target => self.p.at(place),
                Correct::Draft => self.q.at(place),
                Correct::OffDraft if place == x => 0.0,
                Correct::OffDraft => self.p.at(place) / self.known.others.max(1e-300),
                Correct::Likeliest => f64::from(u8::from(place == best)),
                Correct::LikeliestLeft => f64::from(u8::from(Some(place) == best_left)),
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
            // Of the draft that is claimed: given another one, what comes out follows no p.
            let sure = self.q.likeliest();
            let [keep, instead] = match (sure == x, as_claimed) {
                (true, _) => [keep_here, law(y)],
                (_, true) => [
                    self.keep_of(self.p.at(sure), 0.0, 0.0),
                    self.instead_of(sure, correct),
                ],
                _ => [self.keeps(keep, sure), self.instead_of(sure, correct)],
            };
            let hit = f64::from(u8::from(y == sure));
            told.output = self.on_output(hit * keep + (1.0 - keep) * instead, || 1.0);
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
                        let keep = match as_claimed {
                            true => self.keep_exactly(place),
                            false => self.keeps(keep, place),
                        };
                        match 1.0 - self.p.at(place) {
                            left if left > 0.0 => self.q.at(place) * (1.0 - keep) / left,
                            _ => 0.0,
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

    pub(super) fn both(&self, target: Option<&Prepared<'_>>, draft: Option<&Prepared<'_>>) -> Told {
        let mut told = Told::NOTHING;
        let x = self.draft().filter(|_| self.is_plain());
        let (Some(x), Some(prepared), Some(draft)) = (x, target, draft) else {
            return told;
        };
        let (p, q) = (&prepared.row, &draft.row);
        let moved = || draft.moved(self.q.row);
        told.rule[0] = Factor::of(q.at(x), self.q.at(x), self.price(moved));
        if !self.p.is_rest(x) {
            self.accept(&mut told, ratio(p.at(x), q.at(x)));
            if !self.kept && !self.p.is_rest(self.output) {
                let row = q.row(self.q.row.len());
                let left = p.sum(&row, self.listed(), |x, q| (x - q).max(0.0));
                if left > 0.0 {
                    told.rule[2] =
                        self.on_correction(|place| (p.at(place) - q.at(place)).max(0.0) / left);
                }
            }
        }
        told.output = self.on_output(p.at(self.output), || prepared.moved(self.p.row));
        told
    }

    pub(super) fn reused(&self, reused: Reused, sorted: bool) -> Told {
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
                self.accept(&mut told, coin(x, cell_of(self.q.row, x)) / own);
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
                let law = self.row(self.residual());
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
                let over = self.row(|place| self.over(place));
                let law = own_noise(&over, self.q.row);
                if self.known.left > 0.0 {
                    told.rule[2] = self.on_correction(|place| get(&law, place));
                }
            }
        }
        told
    }

    /// Engines of the rule that carries.
    pub(super) fn carried(&self, bug: &Bug) -> Told {
        let mut told = Told::NOTHING;
        if self.outside {
            return told;
        }
        let laws = Laws::new(self.rule, &bug.engine, &self.position());
        match self.draft() {
            Some(x) => {
                self.accept(&mut told, laws.keep(x));
                if !self.kept {
                    let law = laws.correction(x);
                    told.rule[2] = self.on_correction(|place| get(&law, place));
                }
            }
            None => {
                let claim = self.undrafted(self.p.at(self.output), self.known.left);
                let own = get(&laws.bonus, self.output);
                told.rule[3] = Factor::of(own, claim, 2.0 * self.known.width);
            }
        }
        told
    }
}
