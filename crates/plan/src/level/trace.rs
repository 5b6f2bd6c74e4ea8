//! What level passes came to: what they accept, and the set that bounds what any rule does.

use super::interiors::{Fresh, Interior, Interiors, survives, unit};
use super::strata::{Link, chance_inside};
use specgap_number::distribution::TwoFloat;

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
    /// Tokens inside that it was the first to touch.
    pub(super) fresh: Option<Fresh>,
}

impl Step {
    /// A step that everything survives.
    pub(super) fn untouched(stratum: usize, price: f64, level: f64) -> Self {
        Self {
            stratum: stratum as u32,
            tied: 1.0,
            left: 1.0,
            right: 1.0,
            price,
            level,
            fresh: None,
        }
    }
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
pub(super) struct Touched<'a> {
    pub(super) fresh: &'a Fresh,
    pub(super) step: usize,
    /// What a unit of mass that survives the step is still emitted, and whether any of it
    /// survives to the end.
    later: f64,
    lives: bool,
    /// The step's price, and to what ratio it brings them.
    price: f64,
    level: f64,
}

impl Touched<'_> {
    /// Returns what survives of the mass of one of its tokens, and what of it is emitted.
    pub(super) fn part(&self, p: f64, mass: f64) -> [f64; 2] {
        let part = match self.fresh.used.has(p, mass) {
            true => 0.0,
            false => survives(p / mass / self.price, self.level),
        };
        [part, mass * unit(part, self.price, self.later)]
    }

    /// Tells whether anything of a token that it touches is left at the end.
    fn leaves(&self, p: f64, mass: f64) -> bool {
        self.lives && !self.fresh.used.has(p, mass)
    }
}

/// Calls with each token inside a stratum: which it is, its p and mass, and which of these touched
/// it; the first of them is the last step's.
pub(super) fn each_token(
    interior: &Interior,
    stretches: &[Touched<'_>],
    mut each: impl FnMut(usize, [f64; 2], Option<&Touched<'_>>),
) {
    interior.each(|token, [p, mass]| {
        // A later step has all that an earlier one has.
        let touched = stretches.partition_point(|one| one.fresh.to.has(p, mass));
        let touched = touched.checked_sub(1).map(|at| &stretches[at]);
        each(token as usize, [p, mass], touched);
    });
}

impl Trace {
    /// Lists by stratum the steps that touched tokens first, the last step first.
    pub(super) fn touched(&self, strata: usize) -> Vec<Vec<Touched<'_>>> {
        let mut now = vec![(0.0, true); strata];
        let mut all: Vec<Vec<Touched<'_>>> = (0..strata).map(|_| Vec::new()).collect();
        for (index, step) in self.steps.iter().enumerate().rev() {
            let stratum = step.stratum as usize;
            let (later, lives) = &mut now[stratum];
            if let Some(fresh) = &step.fresh {
                all[stratum].push(Touched {
                    fresh,
                    step: index,
                    later: *later,
                    lives: *lives,
                    price: step.price,
                    level: step.level,
                });
            }
            *later = unit(step.tied, step.price, *later);
            *lives &= step.tied > 0.0;
        }
        all
    }

    pub(super) fn tally(&self, all: &Interiors, links: &[Link]) -> Tally {
        let strata = &all.strata;
        let mut accepted = TwoFloat::ZERO;
        let mut held = TwoFloat::ZERO;
        let mut masses = Vec::with_capacity(all.count());
        let stretches = self.touched(all.count());
        for (interior, stretches) in all.inside.iter().zip(stretches) {
            let touched = stretches.iter().map(|one| one.fresh.all);
            let left = touched.fold(interior.all, |left, own| left - own);
            let mut mass = left.mass + TwoFloat::from(interior.unlisted);
            held += left.p;
            for touched in &stretches {
                let (fresh, price) = (touched.fresh, touched.price);
                let kept = TwoFloat::from(fresh.left) * (price - touched.later);
                let emitted = fresh.all.mass * price - kept;
                accepted += emitted.value().min(fresh.all.p.value());
                if touched.lives {
                    held += fresh.alive.p;
                    mass += fresh.alive.mass;
                }
            }
            masses.push(mass.value().max(0.0));
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
        for (interior, stretches) in all.inside.iter().zip(stretches) {
            each_token(interior, &stretches, |token, [p, mass], touched| {
                held[token] = touched.is_none_or(|one| over.is_none() || one.leaves(p, mass));
            });
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
