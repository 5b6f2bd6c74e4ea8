//! Laws of the claim at a step, for bets on ranks and on what came before.

use super::Here;
use crate::audit::model::engine::get;
use crate::audit::model::rule::Rule;
use crate::audit::suspects::sequence::REPLACE;
use crate::audit::suspects::view::ratio;
use specgap_core::rule::Drafts;
use specgap_core::scheme::SchemeName;

impl<'a> Here<'a> {
    /// Returns p and q of the draft, its chance of being kept, and how far that may be off.
    pub(crate) fn acceptance(&self) -> Option<[f64; 4]> {
        let x = self.draft().filter(|_| !self.outside)?;
        if self.p.is_rest(x) {
            return None;
        }
        let known = &self.known;
        Some([self.p.at(x), self.q.at(x), known.keep, known.keep_width])
    }

    /// Where a draft was tested by itself, on rows without a rest: a cell by how often the rule keeps it and by its p,
    /// one of four of each; that chance, how far it may be off, and whether it was kept.
    pub(crate) fn tested(&self) -> Option<(usize, [f64; 2], bool)> {
        let [p, _, keep, width] = match self.known.several.as_ref() {
            None => self.acceptance().filter(|_| !self.is_within_block())?,
            Some(claim) => {
                let keep = 1.0 - claim.law.last()?;
                [
                    self.p.at(*self.drafts.first()?),
                    0.0,
                    keep,
                    self.known.width * keep.min(1.0 - keep),
                ]
            }
        };
        let quarter = |x: f64| ((4.0 * x) as usize).min(3);
        let cell = 4 * quarter(keep) + quarter(p.sqrt());
        (!self.p.rest).then_some((cell, [keep, width], self.kept))
    }

    /// The law of a token where nothing was drafted.
    pub(crate) fn law_alone(&self) -> Vec<f64> {
        match self.rule == Rule::CARRIED && self.known.left > 0.0 {
            true => self.row(|place| self.over(place) / self.known.left),
            false => self.p.row.to_vec(),
        }
    }

    /// The law of a draft that is drawn.
    pub(crate) fn law_of_drafts(&self) -> Option<Vec<f64>> {
        if self.rule.drafts() != Drafts::Drawn(SchemeName::WITH_REPLACEMENT) {
            return None;
        }
        if self.rule != Rule::BLOCK || self.reach >= 1.0 {
            return Some(self.q.row.to_vec());
        }
        let stop = self.spent(self.known.left);
        let mut law = self.row(|place| {
            let q = self.q.at(place);
            let ratio = ratio(self.reach * self.p.at(place), q);
            q * (ratio + (1.0 - ratio) * stop)
        });
        specgap_core::rule::normalise(&mut law);
        Some(law)
    }

    /// The law of what replaces the draft, at the places where it is known.
    pub(crate) fn law_of_corrections(&self) -> Vec<f64> {
        let all = 0..self.corrected_places();
        all.map(|place| self.correction(place)).collect()
    }

    /// Finds where what replaced the draft lies by falling p: as claimed, as p without the draft,
    /// as p, as the residual, and as draws with the draft's numbers. O(V).
    pub(crate) fn replaced(&self) -> Option<[[f64; 2]; REPLACE]> {
        let x = self.draft().filter(|_| !self.kept && !self.p.rest)?;
        let y = self.output;
        let own = self.p.at(y);
        let left = self.known.others.max(1e-300);
        let over = |place: usize| (self.p.at(place) - self.q.at(place)).max(0.0);
        let all = 0..self.p.row.len();
        let sum: f64 = all.clone().map(over).sum();
        let instead = self.instead();
        let laws = |place: usize| {
            let p = self.p.at(place);
            let off = if place == x { 0.0 } else { p / left };
            let residual = if sum > 0.0 { over(place) / sum } else { p };
            let [by_id, by_mass, clocks] = instead.each_ref().map(|law| get(law, place));
            [
                self.correction(place),
                off,
                p,
                residual,
                by_id,
                by_mass,
                clocks,
            ]
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
}
