//! Level passes over strata.

use super::super::error::PlanError;
use super::super::thinning::{Thinning, Verdict};
use super::iid::RatioOrder;
use super::strata::{Home, Link, Straddle, Strata, chance_inside};
use rand::{Rng, RngCore};
use specgap_number::distribution::{Draft, Target, TwoFloat, UnitSum, split_sum};
use specgap_number::known::Known;
use std::sync::Arc;

/// The token has not been touched.
const NEVER: u32 = u32::MAX;

/// Adaptive passes begin with this part of the largest ratio, and are then made finer.
const COARSEST: f64 = 0.25;

/// By what factor they are made finer each time.
const FINER: f64 = 0.25;

/// Which levels the passes go through.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Levels<'a> {
    /// These, falling from below 1, and 0 behind them: `[0.8, 0.5, 0.2]` is the rule `level-4`,
    /// none is `rrs`.
    Fixed(&'a [f64]),
    /// A step below the largest ratio that is left, until alpha\* is enclosed: the rule
    /// `level`.
    Adaptive {
        /// Width of the enclosure that is wanted.
        width: f64,
        /// Most passes in all.
        passes: usize,
    },
}

impl Levels<'_> {
    /// The rule `level-4`.
    pub const FOUR: Self = Self::Fixed(&[0.8, 0.5, 0.2]);
    /// The rule `rrs`: one pass.
    pub const ONE: Self = Self::Fixed(&[]);
    /// The rule `level`.
    pub const ADAPTIVE: Self = Self::Adaptive {
        width: 1e-9,
        passes: 20_000,
    };
}

/// One pass over one stratum: what part of each kind of token survives it.
#[derive(Clone, Copy, Debug)]
struct Step {
    stratum: u32,
    /// Of tokens inside that an earlier pass touched.
    tied: f64,
    /// Of the token over the cut before the stratum, drafted here.
    left: f64,
    /// Of the token over the cut behind it, drafted here.
    right: f64,
    /// P(token drafted, nothing accepted) over its mass, for tokens inside.
    price: f64,
}

/// The level rule for stratified drafts at any V.
///
/// For a level t and each stratum from the last to the first: where the ratio of target left
/// to draft left is above t, as much is accepted as brings it to t, or all of the token. The
/// ratio of x is `R / M`: R is the target not yet given out, and M the probability that x was
/// drafted and nothing was accepted. With level 0 alone it is recursive rejection.
///
/// Tokens inside one stratum that were touched and not used up have one ratio for good, so a
/// stratum is a few numbers and a token two: the pass that first touched it and what survived
/// that. The law of later drafts given a token over a cut is a chain with two states.
///
/// # Exactness
/// Lossless by construction, as [`LevelPlan`](super::LevelPlan): emissions are sums of positive
/// terms, computed from the survivals that a verifier uses, and cut to p. alpha\* lies between
/// what is accepted and `1 + P(H) - Q(H)`, H the tokens that are not used up, and F.
///
/// # Complexity
/// O(V) to sort by cells, and O(n) a pass; [`Self::emit`] is O(n passes).
///
/// # Source
/// specgap's: `docs/theory/`.
#[derive(Clone, Debug)]
pub struct LevelPasses {
    strata: Strata,
    steps: Vec<Step>,
    /// By token: the step that first touched it, and what survived it.
    first: Vec<u32>,
    survival: Vec<f64>,
    thinning: Thinning,
    /// By cut: what the token over it is emitted in the stratum before, and behind.
    over: Vec<[f64; 2]>,
    /// By token: emitted, thinned.
    kept: Vec<f64>,
    /// p of F.
    certain: Vec<f64>,
    held: Vec<bool>,
    inside: f64,
    acceptance: Known,
    optimum: Known,
    passes: usize,
}

/// A token over a cut.
#[derive(Clone, Copy, Debug, Default)]
struct Over {
    /// Target not yet given out.
    target: f64,
    /// Shares of the strata before and behind the cut that survive.
    mass: [f64; 2],
    /// What was emitted in each.
    emitted: [f64; 2],
}

/// Tokens inside a stratum.
#[derive(Clone, Debug, Default)]
struct Interior {
    /// By falling p/q: the ratio and the token.
    tokens: Vec<(f64, u32)>,
    /// Mass from each on.
    rest: Vec<f64>,
    /// Touched so far.
    touched: usize,
    /// Mass of those touched and not used up, and their target over it.
    tied: TwoFloat,
    ratio: f64,
}

impl Interior {
    fn mass(&self) -> f64 {
        self.tied.value() + self.rest[self.touched]
    }
}

/// The state between passes.
struct Run<'a> {
    q: &'a [f64],
    p: &'a [f64],
    scale: f64,
    links: &'a [Link],
    interiors: Vec<Interior>,
    over: Vec<Over>,
    first: Vec<u32>,
    survival: Vec<f64>,
    steps: Vec<Step>,
    /// A token over a cut is one token, not one in each stratum.
    joint: bool,
}

/// What survives of a ratio that a pass brings to a level.
fn survives(ratio: f64, level: f64) -> f64 {
    if ratio >= 1.0 {
        0.0
    } else if ratio > level {
        ((1.0 - ratio) / (1.0 - level)).min(1.0)
    } else {
        1.0
    }
}

impl<'a> Run<'a> {
    fn new(
        (p, q): (&'a [f64], &'a [f64]),
        order: &RatioOrder,
        strata: &Strata,
        links: &'a [Link],
    ) -> Self {
        let mut interiors = vec![Interior::default(); strata.strata()];
        for &(ratio, token) in order.rising().iter().rev() {
            if let Home::Stratum(stratum) = strata.home(token) {
                interiors[stratum].tokens.push((ratio, token));
            }
        }
        let scale = strata.scale();
        for (stratum, interior) in interiors.iter_mut().enumerate() {
            let mut sum = TwoFloat::from(strata.unlisted(stratum));
            interior.rest = vec![sum.value(); interior.tokens.len() + 1];
            for place in (0..interior.tokens.len()).rev() {
                sum += q[interior.tokens[place].1 as usize] * scale;
                interior.rest[place] = sum.value();
            }
        }
        let over = strata.straddlers().iter().map(|straddler| {
            straddler.map_or_else(Over::default, |one| Over {
                target: p[one.token as usize],
                mass: [one.before, one.behind],
                emitted: [0.0; 2],
            })
        });
        Self {
            q,
            p,
            scale,
            links,
            over: over.collect(),
            interiors,
            first: vec![NEVER; q.len()],
            survival: vec![1.0; q.len()],
            steps: Vec::new(),
            joint: false,
        }
    }

    /// Back to the start.
    fn reset(&mut self, strata: &Strata) {
        for interior in &mut self.interiors {
            (interior.touched, interior.tied) = (0, TwoFloat::ZERO);
        }
        for (over, straddler) in self.over.iter_mut().zip(strata.straddlers()) {
            if let Some(one) = straddler {
                over.target = self.p[one.token as usize];
                over.mass = [one.before, one.behind];
                over.emitted = [0.0; 2];
            }
        }
        self.first.fill(NEVER);
        self.survival.fill(1.0);
        self.steps.clear();
    }

    /// Surviving shares of the tokens over the cuts of a stratum, in it: before it and behind
    /// it.
    fn shares(&self, stratum: usize) -> [f64; 2] {
        let left = stratum.checked_sub(1).map(|cut| self.over[cut].mass[1]);
        let right = self.over.get(stratum).map(|over| over.mass[0]);
        [left.unwrap_or(0.0), right.unwrap_or(0.0)]
    }

    /// What survives of the token over the cut before a stratum, as a part.
    fn left_part(&self, stratum: usize, strata: &Strata) -> f64 {
        let Some(cut) = stratum.checked_sub(1) else {
            return 0.0;
        };
        let whole = strata.straddlers()[cut].map_or(0.0, |one| one.behind);
        if whole > 0.0 {
            self.over[cut].mass[1] / whole
        } else {
            0.0
        }
    }

    /// P(drafts before a stratum not accepted), by whether the last is over the cut.
    fn forward(&self, strata: &Strata) -> Vec<[f64; 2]> {
        let mut earlier = vec![[1.0, 0.0]];
        for (stratum, link) in self.links.iter().enumerate() {
            let [plain, over] = earlier[stratum];
            let [_, right] = self.shares(stratum);
            let other = plain * link.other[0] + over * link.other[1];
            let left = plain * link.left[0] + over * link.left[1];
            let left = left * self.left_part(stratum, strata);
            let inside = other * self.interiors[stratum].mass();
            earlier.push([inside + left, other * right]);
        }
        earlier
    }

    /// P(drafts from a stratum on not accepted), given that of the later ones.
    fn backward(&self, stratum: usize, strata: &Strata, later: [f64; 2]) -> [f64; 2] {
        let [_, right] = self.shares(stratum);
        let others = self.interiors[stratum].mass() * later[0] + right * later[1];
        let left = self.left_part(stratum, strata) * later[0];
        let link = self.links[stratum];
        [0, 1].map(|state| link.other[state] * others + link.left[state] * left)
    }

    /// Prices in a stratum: of mass inside it, of the token over the cut before it (with all
    /// its mass) and of mass over the cut behind it.
    fn prices(&self, stratum: usize, earlier: [f64; 2], later: [f64; 2]) -> [f64; 3] {
        let link = self.links[stratum];
        let other = earlier[0] * link.other[0] + earlier[1] * link.other[1];
        let left = earlier[0] * link.left[0] + earlier[1] * link.left[1];
        [other * later[0], left * later[0], other * later[1]]
    }

    /// P(the token over a cut is drafted before it, and behind it; nothing accepted).
    fn drafted_over(
        &self,
        cut: usize,
        strata: &Strata,
        earlier: &[[f64; 2]],
        [later, last]: [[f64; 2]; 2],
    ) -> [f64; 2] {
        let [_, _, right] = self.prices(cut, earlier[cut], later);
        let [_, left, _] = self.prices(cut + 1, earlier[cut + 1], last);
        let before = right * self.over[cut].mass[0];
        [before, left * self.left_part(cut + 1, strata)]
    }

    /// The largest ratio of what can still run.
    fn largest(&self, strata: &Strata) -> f64 {
        let earlier = self.forward(strata);
        let count = self.interiors.len();
        let mut later = vec![[1.0, 1.0]; count + 1];
        for stratum in (0..count).rev() {
            later[stratum] = self.backward(stratum, strata, later[stratum + 1]);
        }
        let mut largest = 0.0f64;
        for stratum in 0..count {
            let [price, _, _] = self.prices(stratum, earlier[stratum], later[stratum + 1]);
            let interior = &self.interiors[stratum];
            if price <= 0.0 {
                continue;
            }
            if interior.tied.value() > 0.0 {
                largest = largest.max(interior.ratio / price);
            }
            if let Some(&(ratio, _)) = interior.tokens.get(interior.touched) {
                largest = largest.max(ratio / (self.scale * price));
            }
        }
        for (cut, over) in self.over.iter().enumerate() {
            let last = [later[cut + 1], later[cut + 2]];
            let [before, behind] = self.drafted_over(cut, strata, &earlier, last);
            if over.target <= 0.0 {
                continue;
            }
            if self.joint {
                if before + behind > 0.0 {
                    largest = largest.max(over.target / (before + behind));
                }
            } else {
                for drafted in [before, behind]
                    .into_iter()
                    .filter(|&drafted| drafted > 0.0)
                {
                    largest = largest.max(over.target / drafted);
                }
            }
        }
        if largest.is_nan() { 0.0 } else { largest }
    }

    /// One pass at a level through all strata, from the last to the first. O(n), and O(1) a
    /// token that it is the first to touch.
    fn pass(&mut self, level: f64, strata: &Strata) {
        let earlier = self.forward(strata);
        let mut later = [1.0, 1.0];
        let mut last = later;
        for stratum in (0..self.interiors.len()).rev() {
            if self.joint && stratum + 1 < self.interiors.len() {
                self.pass_over(stratum, level, strata, &earlier, [later, last]);
                // What is behind the cut has changed.
                later = self.backward(stratum + 1, strata, last);
            }
            self.pass_inside(stratum, level, strata, earlier[stratum], later);
            last = later;
            later = self.backward(stratum, strata, later);
        }
    }

    /// The token over a cut, in both strata at once.
    fn pass_over(
        &mut self,
        cut: usize,
        level: f64,
        strata: &Strata,
        earlier: &[[f64; 2]],
        later: [[f64; 2]; 2],
    ) {
        let drafted = self.drafted_over(cut, strata, earlier, later);
        let sum = drafted[0] + drafted[1];
        let over = &mut self.over[cut];
        if over.target <= 0.0 || sum <= 0.0 {
            return;
        }
        let part = survives(over.target / sum, level);
        if part >= 1.0 {
            return;
        }
        for (side, drafted) in drafted.iter().enumerate() {
            let taken = (1.0 - part) * drafted;
            over.emitted[side] += taken;
            over.target = (over.target - taken).max(0.0);
            over.mass[side] *= part;
        }
        if level == 0.0 && part > 0.0 {
            over.target = 0.0;
        }
        let step = |stratum: usize, left, right| Step {
            stratum: stratum as u32,
            tied: 1.0,
            left,
            right,
            price: 0.0,
        };
        self.steps.push(step(cut + 1, part, 1.0));
        self.steps.push(step(cut, 1.0, part));
    }

    /// The tokens inside a stratum, and those over its cuts unless they are done jointly.
    fn pass_inside(
        &mut self,
        stratum: usize,
        level: f64,
        strata: &Strata,
        earlier: [f64; 2],
        later: [f64; 2],
    ) {
        let [price, left_price, right_price] = self.prices(stratum, earlier, later);
        let index = self.steps.len() as u32;
        let interior = &mut self.interiors[stratum];
        let mut step = Step {
            stratum: stratum as u32,
            tied: 1.0,
            left: 1.0,
            right: 1.0,
            price,
        };
        let mut moved = false;
        if price > 0.0 && interior.tied.value() > 0.0 {
            step.tied = survives(interior.ratio / price, level);
            moved |= step.tied < 1.0;
            interior.tied = if step.tied > 0.0 {
                interior.tied * TwoFloat::from(step.tied)
            } else {
                TwoFloat::ZERO
            };
        }
        while let Some(&(ratio, token)) = interior.tokens.get(interior.touched) {
            let part = survives(ratio / (self.scale * price), level);
            if ratio <= 0.0 || price <= 0.0 || part >= 1.0 {
                break;
            }
            let token = token as usize;
            self.first[token] = index;
            self.survival[token] = part;
            interior.tied += self.q[token] * self.scale * part;
            interior.touched += 1;
            moved = true;
        }
        if level < 1.0 && moved {
            interior.ratio = level * price;
        }
        if !self.joint {
            let parts = [
                (
                    stratum.checked_sub(1),
                    1,
                    left_price * self.left_part(stratum, strata),
                ),
                (Some(stratum), 0, right_price * self.shares(stratum)[1]),
            ];
            for (cut, side, drafted) in parts {
                let Some(over) = cut.and_then(|cut| self.over.get_mut(cut)) else {
                    continue;
                };
                if over.target <= 0.0 || drafted <= 0.0 {
                    continue;
                }
                let part = survives(over.target / drafted, level);
                let taken = (1.0 - part) * drafted;
                over.emitted[side] += taken;
                over.target = if level == 0.0 && part > 0.0 {
                    0.0
                } else {
                    (over.target - taken).max(0.0)
                };
                over.mass[side] *= part;
                moved |= part < 1.0;
                if side == 1 {
                    step.left = part;
                } else {
                    step.right = part;
                }
            }
        }
        if moved {
            self.steps.push(step);
        }
    }

    /// How often tokens are emitted, and which are not used up.
    fn emitted(&self, strata: &Strata) -> (Vec<f64>, Vec<bool>) {
        let count = self.interiors.len();
        // Behind each step: what a unit of surviving mass is still emitted, and whether any
        // of it survives to the end.
        let mut now = vec![(0.0, true); count];
        let mut rest = vec![(0.0, true); self.steps.len()];
        for (step, rest) in self.steps.iter().zip(&mut rest).rev() {
            let now = &mut now[step.stratum as usize];
            *rest = *now;
            now.0 = (1.0 - step.tied) * step.price + step.tied * now.0;
            now.1 &= step.tied > 0.0;
        }
        let mut emitted = vec![0.0; self.q.len()];
        let mut held = vec![false; self.q.len()];
        for interior in &self.interiors {
            for &(_, token) in &interior.tokens {
                let token = token as usize;
                let first = self.first[token];
                if first == NEVER {
                    held[token] = true;
                    continue;
                }
                let (later, lives) = rest[first as usize];
                let part = self.survival[token];
                let price = self.steps[first as usize].price;
                let mass = self.q[token] * self.scale;
                emitted[token] = mass * ((1.0 - part) * price + part * later);
                held[token] = part > 0.0 && lives;
            }
        }
        for (over, straddler) in self.over.iter().zip(strata.straddlers()) {
            if let Some(one) = straddler {
                emitted[one.token as usize] = over.emitted[0] + over.emitted[1];
                held[one.token as usize] = over.mass[0] + over.mass[1] > 0.0;
            }
        }
        for &token in strata.certain() {
            held[token as usize] = true;
        }
        (emitted, held)
    }
}

/// The least of 1 + P(H) - Q(H) over which tokens over cuts H has, one change after another.
fn least_bound(
    (p, q): (&[f64], &[f64]),
    strata: &Strata,
    links: &[Link],
    held: &mut [bool],
) -> (f64, f64) {
    let inside = |row: &[f64]| {
        let terms: Vec<f64> = (held.iter().zip(row))
            .map(|(&held, &mass)| if held { mass } else { 0.0 })
            .collect();
        split_sum(&terms, &terms, |mass, _| mass)
    };
    let mut mass = inside(p);
    let masses = strata.masses(q, |token| held[token as usize]);
    let straddlers = strata.straddlers();
    let mut over: Vec<bool> = straddlers
        .iter()
        .map(|one| one.is_some_and(|one| held[one.token as usize]))
        .collect();
    let mut chance = chance_inside(strata, links, &masses, &over);
    loop {
        let mut changed = false;
        for cut in 0..straddlers.len() {
            let Some(one) = straddlers[cut] else { continue };
            over[cut] = !over[cut];
            let other = chance_inside(strata, links, &masses, &over);
            let share = p[one.token as usize];
            let moved = if over[cut] {
                mass + share
            } else {
                mass - share
            };
            if moved - other < mass - chance - f64::EPSILON {
                (mass, chance, changed) = (moved, other, true);
                held[one.token as usize] = over[cut];
            } else {
                over[cut] = !over[cut];
            }
        }
        if !changed {
            return (1.0 + mass - chance, chance);
        }
    }
}

impl LevelPasses {
    /// The passes for `drafts` stratified drafts.
    ///
    /// # Errors
    /// Rows of different length; no drafts.
    ///
    /// # Example
    /// ```
    /// use specgap_number::distribution::{Draft, Target};
    /// use specgap_plan::plan::{LevelPasses, Levels, Straddle};
    /// let (p, q) = (Target::new(&[0.5, 0.3, 0.2])?, Draft::new(&[0.25, 0.35, 0.4])?);
    /// let passes = LevelPasses::solve(&p, &q, 2, Straddle::Once, Levels::ADAPTIVE)?;
    /// // Drafts are {2, 1} with 0.5, {2, 0} with 0.3 and {1, 0} with 0.2: no set has Q above P.
    /// assert!((passes.acceptance_rate().value() - 1.0).abs() < 1e-9);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn solve(
        target: &Target,
        draft: &Draft,
        drafts: usize,
        straddle: Straddle,
        levels: Levels<'_>,
    ) -> Result<Self, PlanError> {
        PlanError::check(target.vocab(), draft.vocab(), drafts)?;
        let strata = Strata::of(draft, drafts);
        let order = RatioOrder::of(target, draft);
        let rows = (target, draft);
        Ok(Self::in_order(rows, &order, &strata, straddle, levels))
    }

    /// [`Self::solve`] with the order of the same rows, which does not depend on n, and the
    /// strata of the draft, which do not depend on p.
    pub fn in_order(
        (target, draft): (&Target, &Draft),
        order: &RatioOrder,
        strata: &Strata,
        straddle: Straddle,
        levels: Levels<'_>,
    ) -> Self {
        let rows = (target.probabilities(), draft.probabilities());
        Self::of_rows(rows, order, strata, straddle, levels)
    }

    /// [`Self::in_order`] of rows, p and q, that sum to 1, or nearly. `strata` are those of q.
    pub fn of_rows(
        rows: (&[f64], &[f64]),
        order: &RatioOrder,
        strata: &Strata,
        straddle: Straddle,
        levels: Levels<'_>,
    ) -> Self {
        let links = strata.links(straddle);
        let mut run = Run::new(rows, order, strata, &links);
        match levels {
            Levels::Fixed(levels) => {
                for &level in levels {
                    run.pass(level, strata);
                }
                run.pass(0.0, strata);
                Self::finished(&run, strata, &links, levels.len() + 1)
            }
            Levels::Adaptive { width, passes } => {
                run.joint = straddle == Straddle::Once;
                let mut part = COARSEST;
                let mut spent = 0;
                let mut best: Option<Self> = None;
                loop {
                    let most = passes.saturating_sub(spent).max(1);
                    let count = run.adaptive(part, most, strata);
                    spent += count;
                    let found = Self::finished(&run, strata, &links, count);
                    let better = match best {
                        Some(best) => best.better(found),
                        None => found,
                    };
                    let is_done = better.optimum.width() <= width || spent >= passes;
                    if is_done {
                        return better;
                    }
                    best = Some(better);
                    part *= FINER;
                    run.reset(strata);
                }
            }
        }
    }

    /// The one that accepts more, with the lower bound on alpha\* of both.
    fn better(self, other: Self) -> Self {
        let upper = self.optimum.upper().min(other.optimum.upper());
        let (mut best, worse) = if other.acceptance.value() > self.acceptance.value() {
            (other, self)
        } else {
            (self, other)
        };
        if worse.optimum.upper() < best.optimum.upper() {
            (best.held, best.inside) = (worse.held, worse.inside);
        }
        let lower = best.acceptance.lower();
        let value = best.optimum.value().min(worse.optimum.value());
        best.optimum = Known::rate(value, lower, upper.max(lower));
        best
    }

    fn finished(run: &Run<'_>, strata: &Strata, links: &[Link], passes: usize) -> Self {
        let (p, q) = (run.p, run.q);
        let (emitted, mut held) = run.emitted(strata);
        let (thinning, accepted) = Thinning::new(p, &emitted);
        let certain: Vec<f64> = strata.certain().iter().map(|&x| p[x as usize]).collect();
        let accepted = (accepted + certain.iter().sum::<f64>()).min(1.0);
        let (mut most, mut inside) = least_bound((p, q), strata, links, &mut held);
        // All that can be drafted is a set too.
        let drafted = split_sum(p, q, |p, q| if q > 0.0 { p } else { 0.0 });
        if drafted < most {
            (most, inside) = (drafted, 1.0);
            held = q.iter().map(|&mass| mass > 0.0).collect();
        }
        // A step multiplies a mass and both messages of its stratum; messages are made of n
        // rounded links.
        let rounded = (run.steps.len() + 16) as f64 * 8.0 + 8.0 * links.len() as f64;
        let error = rounded * f64::EPSILON;
        let most_error = (16.0 * links.len() as f64 + 32.0) * f64::EPSILON;
        let upper = (accepted + error).min(most + most_error).max(accepted);
        let acceptance = Known::rate(accepted, accepted - error, upper);
        let value = most.clamp(accepted, 1.0);
        let optimum = Known::rate(value, acceptance.lower(), (most + most_error).max(value));
        let kept = (emitted.iter().zip(thinning.keep()))
            .map(|(emitted, keep)| emitted * keep)
            .collect();
        Self {
            strata: strata.clone(),
            steps: run.steps.clone(),
            first: run.first.clone(),
            survival: run.survival.clone(),
            over: run.over.iter().map(|over| over.emitted).collect(),
            kept,
            thinning,
            certain,
            held,
            inside,
            acceptance,
            optimum,
            passes,
        }
    }

    /// The strata that the drafts are drawn from.
    pub fn strata(&self) -> &Strata {
        &self.strata
    }

    /// Probability that a draft is accepted, enclosed.
    pub fn acceptance_rate(&self) -> &Known {
        &self.acceptance
    }

    /// alpha\*, between what these passes accept and `1 + P(H) - Q(H)`.
    pub fn optimal_acceptance_rate(&self) -> &Known {
        &self.optimum
    }

    /// Whether the token is in H, the certificate of the upper bound.
    pub fn holds(&self, token: u32) -> bool {
        self.held.get(token as usize) == Some(&true)
    }

    /// Q(H).
    pub fn inside(&self) -> f64 {
        self.inside
    }

    /// Passes through all strata.
    pub fn passes(&self) -> usize {
        self.passes
    }

    /// Law of the output where no draft of a stratum was accepted. What it gives F is
    /// accepted too, as F is drafted.
    pub fn residual(&self) -> &Arc<[f64]> {
        &self.thinning.residual
    }

    /// What part of the token in a stratum survives a step: all of one that is not of it.
    fn part(&self, index: usize, stratum: usize, token: u32) -> f64 {
        let step = &self.steps[index];
        match self.strata.home(token) {
            Home::Cut(cut) if cut + 1 == stratum => step.left,
            Home::Cut(cut) if cut == stratum => step.right,
            Home::Stratum(own) if own == stratum => {
                match index.cmp(&(self.first[token as usize] as usize)) {
                    std::cmp::Ordering::Less => 1.0,
                    std::cmp::Ordering::Equal => self.survival[token as usize],
                    std::cmp::Ordering::Greater => step.tied,
                }
            }
            _ => 1.0,
        }
    }

    /// Probability that each draft of the tuple is accepted; the rest of 1 goes to tokens
    /// that were not drafted. A token where [`Strata::draw`] cannot put it is never accepted.
    /// O(steps).
    pub fn accepted(&self, tuple: &[u32]) -> Vec<f64> {
        let mut accepted = vec![0.0; tuple.len()];
        let sure = self.certain.len();
        let mut alive = 1.0;
        for (index, step) in self.steps.iter().enumerate() {
            let stratum = step.stratum as usize;
            let Some(&token) = tuple.get(sure + stratum) else {
                continue;
            };
            let part = self.part(index, stratum, token);
            accepted[sure + stratum] += alive * (1.0 - part);
            alive *= part;
        }
        for (share, &token) in accepted.iter_mut().zip(tuple).skip(sure) {
            *share *= self.thinning.keep().get(token as usize).unwrap_or(&0.0);
        }
        let rest = 1.0 - accepted.iter().sum::<f64>();
        let own = self.strata.certain().iter().zip(tuple);
        for (share, (&token, &draft)) in accepted.iter_mut().zip(own) {
            if draft == token {
                *share = rest.max(0.0) * self.thinning.residual[token as usize];
            }
        }
        accepted
    }

    /// Runs the passes once: O(steps), plus O(log V) where nothing is accepted.
    pub fn emit(&self, tuple: &[u32], rng: &mut dyn RngCore) -> Verdict {
        let sure = self.certain.len();
        let mut emitted = None;
        for (index, step) in self.steps.iter().enumerate() {
            let stratum = step.stratum as usize;
            let Some(&token) = tuple.get(sure + stratum) else {
                continue;
            };
            let part = self.part(index, stratum, token);
            if part < 1.0 && rng.random::<f64>() >= part {
                emitted = Some((sure + stratum, token));
                break;
            }
        }
        let mut verdict = self.thinning.keep_or_reject(emitted, rng);
        if verdict.accepted.is_none()
            && let Home::Certain(slot) = self.strata.home(verdict.token)
            && tuple.get(slot) == Some(&verdict.token)
        {
            verdict.accepted = Some(slot);
        }
        verdict
    }

    /// Given that the output is this token: the probability that it is the draft of a slot,
    /// accepted there. A token over a cut has two slots; what is left of 1 is that it was not
    /// drafted. O(1).
    pub fn given(&self, token: u32, p: f64) -> Vec<(usize, f64)> {
        let sure = self.certain.len();
        let share = |emitted: f64| if p > 0.0 { (emitted / p).min(1.0) } else { 0.0 };
        match self.strata.home(token) {
            Home::Certain(slot) => vec![(slot, 1.0)],
            Home::Nowhere => Vec::new(),
            Home::Stratum(stratum) => vec![(sure + stratum, share(self.kept[token as usize]))],
            Home::Cut(cut) => {
                let keep = self.thinning.keep()[token as usize];
                let [before, behind] = self.over[cut].map(|emitted| share(keep * emitted));
                vec![(sure + cut, before), (sure + cut + 1, behind)]
            }
        }
    }

    /// How often the draft of each slot is accepted: where a larger subtree belongs. O(V).
    pub fn values(&self) -> Vec<f64> {
        let sure = self.certain.len();
        let mut sums = vec![UnitSum::default(); self.strata.slots()];
        for (sum, &mass) in sums.iter_mut().zip(&self.certain) {
            sum.add(mass);
        }
        for (token, &kept) in (0u32..).zip(&self.kept) {
            if kept <= 0.0 {
                continue;
            }
            match self.strata.home(token) {
                Home::Stratum(stratum) => sums[sure + stratum].add(kept),
                Home::Cut(cut) => {
                    let keep = self.thinning.keep()[token as usize];
                    for side in 0..2 {
                        sums[sure + cut + side].add(keep * self.over[cut][side]);
                    }
                }
                Home::Certain(_) | Home::Nowhere => {}
            }
        }
        sums.into_iter().map(UnitSum::value).collect()
    }
}

impl Run<'_> {
    /// Passes at levels a part below the largest ratio, and at last at 0; how many.
    fn adaptive(&mut self, part: f64, most: usize, strata: &Strata) -> usize {
        // Below this no pass at 0 uses up a token, whatever the others gave out before.
        let low = 0.5 / (self.interiors.len() + 1) as f64;
        let mut passes = 1;
        while passes < most {
            let ratio = self.largest(strata);
            if ratio < low {
                break;
            }
            let level = if ratio >= 1.0 {
                1.0
            } else {
                (1.0 - part) * ratio
            };
            self.pass(level, strata);
            passes += 1;
        }
        self.pass(0.0, strata);
        passes
    }
}
