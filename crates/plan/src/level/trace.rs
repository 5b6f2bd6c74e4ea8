//! What level passes came to: what they accept, and the set that bounds what any rule does.

use super::interiors::{Interior, Interiors, emitted, survives, unit, used_up};
use super::strata::{Link, chance_inside};
use specgap_number::distribution::{TwoFloat, split_total};
use std::ops::Range;

/// One pass over one stratum: what part of each kind of token survives it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) stratum: u32,
    /// Of tokens inside that an earlier pass touched.
    pub(super) tied: f64,
    /// Of the token over the cut before the stratum, drafted here.
    pub(super) left: f64,
    /// Of the token over the cut behind it, drafted here.
    pub(super) right: f64,
    /// P(token drafted, nothing accepted) over its mass, for tokens inside.
    pub(super) price: f64,
    /// To what ratio it brings them.
    pub(super) level: f64,
    /// Up to which place tokens inside are touched by now.
    pub(super) touched: u32,
}

/// A token over a cut.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Over {
    /// Target not yet given out.
    pub(super) target: f64,
    /// Shares of the strata before and behind the cut that survive.
    pub(super) mass: [f64; 2],
    /// What was emitted in each.
    pub(super) emitted: [f64; 2],
}

/// What passes came to.
#[derive(Clone, Debug)]
pub(super) struct Trace {
    pub(super) steps: Vec<Step>,
    pub(super) over: Vec<Over>,
}

/// What a trace accepts, and what its H bounds.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    pub(super) accepted: f64,
    /// 1 + P(H) - Q(H), and Q(H).
    pub(super) most: f64,
    pub(super) inside: f64,
    /// Which tokens over cuts H has; none where it is all that can be drafted.
    pub(super) over: Option<Vec<bool>>,
}

/// Tokens inside a stratum that one step was the first to touch.
pub(super) struct Touched {
    pub(super) places: Range<usize>,
    pub(super) step: usize,
    /// What a unit of mass that survives the step is still emitted, and whether any of it
    /// survives to the end.
    pub(super) later: f64,
    pub(super) lives: bool,
}

impl Trace {
    /// Lists by stratum the tokens that its steps touched first, those of the last step first.
    pub(super) fn touched(&self, strata: usize) -> Vec<Vec<Touched>> {
        let mut now = vec![(0.0, true); strata];
        let mut all: Vec<Vec<Touched>> = (0..strata).map(|_| Vec::new()).collect();
        for (index, step) in self.steps.iter().enumerate().rev() {
            let stratum = step.stratum as usize;
            let (later, lives) = &mut now[stratum];
            let end = step.touched as usize;
            // What ends where the next one does has touched nothing.
            if let Some(next) = all[stratum].last_mut() {
                next.places.start = end;
            }
            all[stratum].push(Touched {
                places: 0..end,
                step: index,
                later: *later,
                lives: *lives,
            });
            *later = unit(step.tied, step.price, *later);
            *lives &= step.tied > 0.0;
        }
        for touched in &mut all {
            touched.retain(|one| !one.places.is_empty());
        }
        all
    }

    /// Returns what survives of the mass of a token at the step that touched it first.
    pub(super) fn part(&self, touched: &Touched, interior: Interior<'_>, place: usize) -> f64 {
        let step = &self.steps[touched.step];
        survives(interior.ratio[place] / step.price, step.level)
    }

    /// Returns how much the token of a place is emitted of which this part survives.
    pub(super) fn emitted(
        &self,
        touched: &Touched,
        interior: Interior<'_>,
        place: usize,
        part: f64,
    ) -> f64 {
        let price = self.steps[touched.step].price;
        interior.mass[place] * unit(part, price, touched.later)
    }

    /// Those of which something is left at the end: tokens that are used up come first.
    fn left(&self, touched: &Touched, interior: Interior<'_>) -> Range<usize> {
        let places = touched.places.clone();
        let step = &self.steps[touched.step];
        if !touched.lives {
            return places.end..places.end;
        }
        let used = used_up(&interior.ratio[places.clone()], step.price, step.level);
        places.start + used..places.end
    }

    pub(super) fn tally(&self, all: &Interiors, links: &[Link]) -> Tally {
        let strata = &all.strata;
        let mut accepted = TwoFloat::ZERO;
        let mut held = TwoFloat::ZERO;
        let mut masses = Vec::with_capacity(all.count());
        let stretches = self.touched(all.count());
        for (interior, stretches) in all.interiors().zip(stretches) {
            let used = stretches.first().map_or(0, |one| one.places.end);
            let mut mass = TwoFloat::from(interior.rest[used]);
            held += split_total(&interior.p[used..]);
            for touched in &stretches {
                let step = &self.steps[touched.step];
                let paid = [step.price, step.level, touched.later];
                accepted += emitted(interior.of(touched.places.clone()), paid);
                let left = interior.of(self.left(touched, interior));
                held += split_total(left.p);
                mass += split_total(left.mass);
            }
            masses.push(mass.value());
        }
        for (over, &p) in self.over.iter().zip(&all.over) {
            accepted += p.min(over.emitted[0] + over.emitted[1]);
        }
        for &p in &all.certain {
            accepted += p;
            held += p;
        }
        let straddlers = strata.straddlers();
        let over: Vec<bool> = (straddlers.iter().zip(&self.over))
            .map(|(one, over)| one.is_some() && over.mass[0] + over.mass[1] > 0.0)
            .collect();
        let mut tally = least_bound(all, links, (held, &masses), over);
        tally.accepted = accepted.value().min(1.0);
        // All that can be drafted is a set too.
        if all.drafted < tally.most {
            (tally.most, tally.inside, tally.over) = (all.drafted, 1.0, None);
        }
        tally
    }

    /// H by token.
    pub(super) fn held(&self, all: &Interiors, over: Option<&[bool]>) -> Vec<bool> {
        let strata = &all.strata;
        let mut held = vec![false; strata.vocab()];
        let stretches = self.touched(all.count());
        for (interior, stretches) in all.interiors().zip(stretches) {
            let used = stretches.first().map_or(0, |one| one.places.end);
            let mut hold = |place: usize| held[interior.tokens[place] as usize] = true;
            (used..interior.tokens.len()).for_each(&mut hold);
            for touched in &stretches {
                let places = match over {
                    Some(_) => self.left(touched, interior),
                    None => touched.places.clone(),
                };
                places.for_each(&mut hold);
            }
        }
        for &token in strata.certain() {
            held[token as usize] = true;
        }
        for (cut, straddler) in strata.straddlers().iter().enumerate() {
            if let Some(one) = straddler {
                held[one.token as usize] = over.is_none_or(|over| over[cut]);
            }
        }
        held
    }
}

/// The least of 1 + P(H) - Q(H) over which tokens over cuts H has, one change after another.
fn least_bound(
    all: &Interiors,
    links: &[Link],
    (inside, masses): (TwoFloat, &[f64]),
    mut over: Vec<bool>,
) -> Tally {
    let strata = &all.strata;
    let straddlers = strata.straddlers();
    let p_held = |over: &[bool]| {
        let held = over.iter().zip(&all.over).filter(|one| *one.0);
        held.fold(inside, |sum, (_, &p)| sum + TwoFloat::from(p))
            .value()
    };
    let mut mass = p_held(&over);
    let mut chance = chance_inside(strata, links, masses, &over);
    loop {
        let mut changed = false;
        for cut in 0..straddlers.len() {
            if straddlers[cut].is_none() {
                continue;
            }
            over[cut] = !over[cut];
            let other = chance_inside(strata, links, masses, &over);
            let moved = p_held(&over);
            if moved - other < mass - chance - f64::EPSILON {
                (mass, chance, changed) = (moved, other, true);
            } else {
                over[cut] = !over[cut];
            }
        }
        if !changed {
            return Tally {
                accepted: 0.0,
                most: 1.0 + mass - chance,
                inside: chance,
                over: Some(over),
            };
        }
    }
}
