//! Suspects of several drafts of one place.

use super::changed::Prepared;
use super::{Here, Several, Told};
use crate::audit::model::engine::{Engine, Keeps, Position, engine, get};
use crate::audit::model::multi_draft::{decide, drawn_from, kept_as, next_draft, tested};
use crate::audit::suspects::factor::Factor;
use crate::audit::suspects::family::{Correct, Keep, Law, Place};
use crate::audit::suspects::sequence::Drawn;
use crate::audit::suspects::view::SHORT;
use specgap_core::rule::Drafts;

impl<'a> Here<'a> {
    /// Returns what an engine makes of several drafts, with p and q as said.
    pub(super) fn several(&self, engine: &Engine, [p, q]: [Option<&[f64]>; 2]) -> Several {
        let at = Position {
            p: p.unwrap_or(self.p.row),
            q: q.unwrap_or(self.q.row),
            ..self.position()
        };
        let claim = self.known.several.as_ref();
        let drafts = match claim.filter(|_| q.is_none() && engine.draws_as_claimed()) {
            Some(_) => Vec::new(),
            None => self.drafted_by(engine, &at),
        };
        let claim = claim.filter(|_| p.is_none() && q.is_none() && engine.tests_as_claimed());
        let tested = match claim {
            Some(claim) => claim.tested.clone(),
            None => tested(self.rule, engine, &at, self.drafts),
        };
        let mut decided = decide(self.rule, engine, &at, self.drafts, &tested);
        if self.by_output {
            decided.by_output();
        }
        let place = match self.kept {
            true => decided.tokens.binary_search(&self.output).ok(),
            false => Some(decided.tokens.len()),
        };
        let first = self
            .drafts
            .first()
            .and_then(|x| decided.tokens.binary_search(x).ok());
        let first = first.and_then(|place| decided.law.get(place)).copied();
        Several {
            drafts,
            tested,
            place,
            first: first.map_or(Vec::new(), |keep| vec![keep, 1.0 - keep]),
            law: decided.law,
            correction: decided.correction,
        }
    }

    /// What was drawn where drafts are several of a law, which of its kind, and by which law: drafts, whether the first
    /// came out, and what came out instead.
    pub(crate) fn drawn(&self) -> Vec<(Drawn, usize, &[f64], usize)> {
        let several = self.known.several.as_ref();
        let Some(claim) = several.filter(|_| self.rule.drafts() != Drafts::Any) else {
            return Vec::new();
        };
        let laws = claim.drafts.iter().zip(self.drafts).enumerate();
        let all = laws.filter_map(|(nth, (law, x))| Some((Drawn::Draft, nth, law.as_deref()?, *x)));
        let mut all: Vec<_> = all.collect();
        if let [keep, _] = claim.first.as_slice()
            && *keep > 0.0
            && *keep < 1.0
        {
            let is_kept = self.kept && self.drafts.first() == Some(&self.output);
            all.push((Drawn::Coin, 0, &claim.first, usize::from(!is_kept)));
        }
        if !self.kept && self.knows_correction() {
            all.push((Drawn::Token, 0, &claim.correction, self.output));
        }
        all
    }

    /// The law of each draft, given those before it; `None` where nothing is claimed of it.
    fn drafted_by(&self, engine: &Engine, at: &Position<'_>) -> Vec<Option<Vec<f64>>> {
        match drawn_from(self.rule, engine, at) {
            Some((law, row)) if self.rule.drafts() != Drafts::Any => {
                let drafting = law.drafting(&row, self.drafts.len());
                (0..self.drafts.len())
                    .map(|k| next_draft(&drafting, self.drafts.get(..k).unwrap_or_default()))
                    .collect()
            }
            _ => vec![None; self.drafts.len()],
        }
    }

    pub(super) fn of_several(
        &self,
        law: Law,
        row: Option<&Prepared<'_>>,
        draft: Option<&Prepared<'_>>,
    ) -> Told {
        let mut told = Told::NOTHING;
        let everywhere = matches!(law, Law::Target(_, Place::Everywhere));
        let row = row.filter(|_| everywhere);
        if let Some(row) = row {
            told.output = self.on_output(row.row.at(self.output), || row.moved(self.p.row));
        }
        let Some(claim) = self.known.several.as_ref() else {
            return told;
        };
        let price = 2.0 * self.known.width;
        let of_drafts = |ratio: f64| Factor {
            ratio,
            price: if ratio == 1.0 { 0.0 } else { price },
        };
        if let Law::Draft(_) = law {
            told.rule[0] = draft.map_or(Factor::ONE, |q| of_drafts(self.drawn_from(q, claim)));
            return told;
        }
        let size = self.p.row.len();
        let other = match law {
            Law::Engine(bug) => Some(self.several(&bug.engine, [None; 2])),
            Law::Decide(Keep::Over(over), Correct::Claimed) => {
                Some(self.several(&engine!(keeps: Keeps::Over(over)), [None; 2]))
            }
            Law::OtherDraft(_) => {
                draft.map(|q| self.several(&Engine::HONEST, [None, Some(&q.row.row(size))]))
            }
            Law::DrawForEach => Some(self.draw_for_each(claim)),
            // Rows are long where drafts are tested once for each suspect.
            _ => (row.filter(|_| size <= SHORT).map(|row| row.row.row(size)))
                .filter(|row| row != self.p.row)
                .map(|row| self.several(&Engine::HONEST, [Some(&row), None])),
        };
        let Some(other) = other else {
            return told;
        };
        if self.rule.drafts() != Drafts::Any {
            let mut ratio = 1.0;
            let laws = claim.drafts.iter().zip(&other.drafts).zip(self.drafts);
            for ((claim, other), &draft) in laws {
                if let (Some(claim), Some(other)) = (claim, other) {
                    ratio *= Factor::of(get(other, draft), get(claim, draft), 0.0).ratio;
                }
            }
            told.rule[0] = of_drafts(ratio);
        }
        // What is below the least is rounding.
        let factor = |laws: [&[f64]; 2], place: usize, least: f64| {
            let [own, honest] = laws.map(|law| get(law, place));
            let price = if own == honest { 0.0 } else { price };
            Factor::of(own, if honest > least { honest } else { 0.0 }, price)
        };
        told.keep = other.law.last().map(|none| 1.0 - none);
        if let Some(place) = claim.place {
            told.rule[1] = factor([&other.law, &claim.law], place, 1e-12);
        }
        if !self.kept && self.knows_correction() {
            told.rule[2] = factor([&other.correction, &claim.correction], self.output, 0.0);
        }
        told
    }

    /// Returns how likely the drafts are if they are drawn from another row, over the claim.
    fn drawn_from(&self, other: &Prepared<'_>, claim: &Several) -> f64 {
        let once = self.rule.drafts().are_distinct();
        let (mut ratio, mut left) = (1.0, 1.0f64);
        for (law, &draft) in claim.drafts.iter().zip(self.drafts) {
            let own = other.row.at(draft);
            if let Some(law) = law {
                let own = if left > 1e-12 { own / left } else { 0.0 };
                ratio *= Factor::of(own, get(law, draft), 0.0).ratio;
            }
            left -= if once { own } else { 0.0 };
        }
        ratio
    }

    /// Each draft is held against a draw of its own from p, and the first draw comes out where none is hit.
    pub(super) fn draw_for_each(&self, claim: &Several) -> Several {
        let keeps = self.drafts.iter().map(|draft| self.p.at(*draft));
        let (_, law) = kept_as(self.drafts, keeps);
        // The first draw, which was not the first draft.
        let mut correction = self.p.row.to_vec();
        if let Some(first) = self.drafts.first().and_then(|x| correction.get_mut(*x)) {
            *first = 0.0;
        }
        specgap_core::rule::normalise(&mut correction);
        Several {
            law,
            correction,
            ..claim.clone()
        }
    }
}
