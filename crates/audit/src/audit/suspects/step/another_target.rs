//! Suspects with another p, everywhere or at one place of a round.

use super::changed::Prepared;
use super::{Here, Told};
use crate::audit::model::rule::Rule;
use crate::audit::suspects::factor::Factor;
use crate::audit::suspects::family::Place;
use crate::audit::suspects::target::Changed;
use crate::audit::suspects::view::{SHORT, all_but};
use specgap_core::rule::Drafts;

impl<'a> Here<'a> {
    pub(super) fn target<'b, 'c: 'b>(
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
        let (moved, left) = (|| prepared.moved(self.p.row), || prepared.left(self));
        if let Some(x) = self.draft().filter(|x| !self.p.is_rest(*x)) {
            let offered = self.stands * self.q.at(x);
            if checks {
                // In the middle of a block nothing is checked: what is left of p is not asked.
                self.accept(&mut told, self.keep_of(row.at(x), offered, 0.0));
            }
            if corrects && self.knows_correction() {
                told.rule[2] = prepared.corrected(self);
            }
        }
        if alone && !self.outside {
            let claim = self.undrafted(self.p.at(self.output), self.known.left);
            let left = if self.rule == Rule::CARRIED {
                left()
            } else {
                0.0
            };
            let own = self.undrafted(row.at(self.output), left);
            told.rule[3] = match claim <= 0.0 && self.is_edge() {
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

    pub(super) fn corrected(&self, row: &Changed<'_>, left: impl Fn() -> f64) -> Factor {
        if !self.compares() {
            let x = self.draft().unwrap_or(usize::MAX);
            let rest = all_but(x, self.p.row.len(), |place| row.at(place)).max(1e-300);
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

    /// The factor of what comes out of drafts, where one place of a round takes another row.
    pub(super) fn output_of_place(
        &self,
        row: &Changed<'_>,
        place: Place,
        left: impl Fn() -> f64,
    ) -> Factor {
        let Some(x) = self.draft().filter(|_| self.is_plain() && !self.p.rest) else {
            return Factor::ONE;
        };
        let y = self.output;
        if self.rule.drafts() == Drafts::Any {
            return Factor::ONE;
        }
        if !self.compares() {
            // The draft that is claimed: given another one, what comes out follows no p.
            let sure = self.q.likeliest();
            let (keep, keep_here) = (self.p.at(sure), row.at(sure));
            let size = self.p.row.len();
            let known = || match sure == x {
                true => self.known.others,
                false => all_but(sure, size, |place| self.p.at(place)),
            };
            // What replaces it is asked where that came out: it takes a pass over the row.
            let law = match (place, y == sure) {
                (Place::Check, true) => keep_here,
                (Place::Check, false) => (1.0 - keep_here) * (self.p.at(y) / known().max(1e-300)),
                (_, true) => keep,
                (_, false) => {
                    let others = all_but(sure, size, |place| row.at(place));
                    known() * (row.at(y) / others.max(1e-300))
                }
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
}
