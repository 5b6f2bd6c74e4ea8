//! Level passes over strata.

use super::super::error::PlanError;
use super::super::thinning::{Thinning, Verdict};
use super::interiors::{Falling, Interiors, Mark, Sums, survives};
use super::rates::LevelRates;
use super::rates::plan_answers;
use super::strata::{Alive, Home, Link, Straddle, Strata};
use super::trace::{Over, Step, Tally, Trace, each_token};
use rand::{Rng, RngCore};
use specgap_number::distribution::{Draft, Target, TwoFloat};
use specgap_number::known::Known;

/// The token has not been touched.
const NEVER: u32 = u32::MAX;

/// Adaptive passes begin with this part of the largest ratio, and are then made finer.
pub(super) const COARSEST: f64 = 0.25;

/// By what factor they are made finer each time.
pub(super) const FINER: f64 = 0.25;

/// Which levels the passes go through.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Levels<'a> {
    /// These, falling from below 1, and 0 behind them: `[0.8, 0.5, 0.2]` is the rule `level-4`,
    /// none is `rrs`.
    Fixed(&'a [f64]),
    /// A step below the largest ratio that is left, until alpha\* is enclosed.
    Adaptive {
        /// Width of the enclosure that is wanted.
        width: f64,
        /// Most passes in all.
        passes: usize,
    },
    /// The rule `level`: [`Self::ADAPTIVE`]. Of independent strata a token over a cut is two, and fixed
    /// levels may accept more: then it is whichever of these, [`Self::FOUR`] and [`Self::ONE`] accepts
    /// most. Which it is follows from p and q alone, so that it is as lossless as each.
    Best,
}

impl Levels<'_> {
    /// The rule `level-4`.
    pub const FOUR: Self = Self::Fixed(&[0.8, 0.5, 0.2]);
    /// The rule `rrs`: one pass.
    pub const ONE: Self = Self::Fixed(&[]);
    /// Levels that follow the largest ratio.
    pub const ADAPTIVE: Self = Self::Adaptive {
        width: 1e-9,
        passes: 20_000,
    };
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
/// O(V) to gather tokens in cells, and a few cells a pass and stratum; [`Self::emit`] is O(n passes).
/// Source: specgap's: `docs/theory/`.
#[derive(Clone, Debug)]
pub struct LevelPasses {
    strata: Strata,
    steps: Vec<Step>,
    /// By token: where it is drafted, the step that first touched it, and what survived it.
    homes: Vec<Home>,
    first: Vec<u32>,
    survival: Vec<f64>,
    thinning: Thinning,
    /// By cut: what the token over it is emitted in the stratum before, and behind.
    over: Vec<[f64; 2]>,
    /// By token: emitted, thinned.
    kept: Vec<f64>,
    held: Vec<bool>,
    rates: LevelRates,
}

/// How far the tokens of a stratum are.
#[derive(Clone, Debug)]
struct State {
    /// Touched so far.
    touched: (Mark, Sums),
    /// p and mass of the token of the largest ratio that is not, where that is known.
    next: Option<Option<[f64; 2]>>,
    /// Mass of those touched and not used up, and their target over it.
    tied: TwoFloat,
    ratio: f64,
}

impl State {
    const FIRST: Self = Self {
        touched: (Mark::NONE, Sums::NONE),
        next: None,
        tied: TwoFloat::ZERO,
        ratio: 0.0,
    };
}

/// The state between passes.
struct Run<'a> {
    all: &'a Interiors,
    links: &'a [Link],
    states: Vec<State>,
    over: Vec<Over>,
    steps: Vec<Step>,
    /// A token over a cut is one token, not one in each stratum.
    joint: bool,
}

impl<'a> Run<'a> {
    fn new(all: &'a Interiors, links: &'a [Link], joint: bool) -> Self {
        let mut run = Self {
            all,
            links,
            states: vec![State::FIRST; all.count()],
            over: vec![Over::default(); all.over.len()],
            steps: Vec::new(),
            joint,
        };
        run.reset();
        run
    }

    /// Back to the start.
    fn reset(&mut self) {
        self.states.fill(State::FIRST);
        let straddlers = self.all.strata.straddlers();
        for ((over, straddler), &p) in self.over.iter_mut().zip(straddlers).zip(&self.all.over) {
            if let Some(one) = straddler {
                *over = Over {
                    target: p,
                    mass: [one.before, one.behind],
                    emitted: [0.0; 2],
                };
            }
        }
        self.steps.clear();
    }

    /// Returns what is left of the tokens inside a stratum.
    fn mass(&self, stratum: usize) -> f64 {
        let (state, interior) = (&self.states[stratum], &self.all.inside[stratum]);
        let rest = (interior.all - state.touched.1).mass + TwoFloat::from(interior.unlisted);
        state.tied.value() + rest.value().max(0.0)
    }

    /// Surviving shares of the tokens over the cuts of a stratum, in it: before it and behind
    /// it.
    fn shares(&self, stratum: usize) -> [f64; 2] {
        let left = stratum.checked_sub(1).map(|cut| self.over[cut].mass[1]);
        let right = self.over.get(stratum).map(|over| over.mass[0]);
        [left.unwrap_or(0.0), right.unwrap_or(0.0)]
    }

    /// Returns the part that survives of the token over the cut before a stratum.
    fn left_part(&self, stratum: usize) -> f64 {
        let whole = self.all.strata.behind(stratum);
        if whole > 0.0 {
            self.shares(stratum)[0] / whole
        } else {
            0.0
        }
    }

    fn alive(&self, stratum: usize) -> Alive {
        let [_, right] = self.shares(stratum);
        [self.mass(stratum), self.left_part(stratum), right]
    }

    /// P(drafts before a stratum not accepted), by whether the last is over the cut.
    fn forward(&self) -> Vec<[f64; 2]> {
        let mut earlier = vec![[1.0, 0.0]];
        for (stratum, link) in self.links.iter().enumerate() {
            earlier.push(link.forward(earlier[stratum], self.alive(stratum)));
        }
        earlier
    }

    /// P(drafts from a stratum on not accepted), given that of the later ones.
    fn backward(&self, stratum: usize, later: [f64; 2]) -> [f64; 2] {
        self.links[stratum].backward(later, self.alive(stratum))
    }

    /// P(the token over a cut is drafted before it, and behind it; nothing accepted).
    fn drafted_over(
        &self,
        cut: usize,
        earlier: &[[f64; 2]],
        [later, last]: [[f64; 2]; 2],
    ) -> [f64; 2] {
        let [_, _, right] = self.links[cut].prices(earlier[cut], later);
        let [_, left, _] = self.links[cut + 1].prices(earlier[cut + 1], last);
        let before = right * self.over[cut].mass[0];
        [before, left * self.left_part(cut + 1)]
    }

    /// The largest ratio of what can still run.
    fn largest(&mut self) -> f64 {
        let earlier = self.forward();
        let count = self.states.len();
        let mut later = vec![[1.0, 1.0]; count + 1];
        for stratum in (0..count).rev() {
            later[stratum] = self.backward(stratum, later[stratum + 1]);
        }
        let mut largest = 0.0f64;
        for stratum in 0..count {
            let link = self.links[stratum];
            let [price, _, _] = link.prices(earlier[stratum], later[stratum + 1]);
            let (state, interior) = (&mut self.states[stratum], &self.all.inside[stratum]);
            if price <= 0.0 {
                continue;
            }
            if state.tied.value() > 0.0 {
                largest = largest.max(state.ratio / price);
            }
            let mark = &state.touched.0;
            if let Some([p, mass]) = *state.next.get_or_insert_with(|| interior.next(mark)) {
                // At least 1 where a pass at this price uses it up.
                largest = largest.max(p / (price * mass));
            }
        }
        for (cut, over) in self.over.iter().enumerate() {
            let last = [later[cut + 1], later[cut + 2]];
            let [before, behind] = self.drafted_over(cut, &earlier, last);
            let all = match self.joint {
                true => [before + behind, 0.0],
                false => [before, behind],
            };
            for drafted in all {
                if over.target > 0.0 && drafted > 0.0 {
                    largest = largest.max(over.target / drafted);
                }
            }
        }
        if largest.is_nan() { 0.0 } else { largest }
    }

    /// One pass at a level through all strata, from the last to the first.
    fn pass(&mut self, level: f64) {
        let earlier = self.forward();
        let mut later = [1.0, 1.0];
        let mut last = later;
        for stratum in (0..self.states.len()).rev() {
            if self.joint && stratum + 1 < self.states.len() {
                self.pass_over(stratum, level, &earlier, [later, last]);
                // What is behind the cut has changed.
                later = self.backward(stratum + 1, last);
            }
            self.pass_inside(stratum, level, earlier[stratum], later);
            last = later;
            later = self.backward(stratum, later);
        }
    }

    /// The token over a cut, in both strata at once.
    fn pass_over(&mut self, cut: usize, level: f64, earlier: &[[f64; 2]], later: [[f64; 2]; 2]) {
        let drafted = self.drafted_over(cut, earlier, later);
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
        for (stratum, left, right) in [(cut + 1, part, 1.0), (cut, 1.0, part)] {
            self.steps.push(Step {
                left,
                right,
                ..Step::untouched(stratum, 0.0, level)
            });
        }
    }

    /// The tokens inside a stratum, and those over its cuts unless they are done jointly.
    fn pass_inside(&mut self, stratum: usize, level: f64, earlier: [f64; 2], later: [f64; 2]) {
        let [price, left_price, right_price] = self.links[stratum].prices(earlier, later);
        let (state, interior) = (&mut self.states[stratum], &self.all.inside[stratum]);
        let mut step = Step::untouched(stratum, price, level);
        let mut moved = false;
        if price > 0.0 && state.tied.value() > 0.0 {
            step.tied = survives(state.ratio / price, level);
            moved |= step.tied < 1.0;
            state.tied = match step.tied > 0.0 {
                true => state.tied * TwoFloat::from(step.tied),
                false => TwoFloat::ZERO,
            };
        }
        if let Some((fresh, sums)) = interior.touch(state.touched, price, level) {
            state.tied += fresh.left;
            (state.touched, state.next) = ((fresh.to, sums), None);
            step.fresh = Some(fresh);
            moved = true;
        }
        if level < 1.0 && moved {
            state.ratio = level * price;
        }
        if !self.joint {
            let left = left_price * self.left_part(stratum);
            let right = right_price * self.shares(stratum)[1];
            for (cut, side, drafted) in
                [(stratum.checked_sub(1), 1, left), (Some(stratum), 0, right)]
            {
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
                *[&mut step.right, &mut step.left][side] = part;
            }
        }
        if moved {
            self.steps.push(step);
        }
    }

    fn trace(&self) -> Trace {
        Trace {
            steps: self.steps.clone(),
            over: self.over.clone(),
        }
    }
}

/// The passes that accept most and those whose H bounds best.
struct Found {
    best: Trace,
    /// What that accepts.
    accepted: f64,
    /// Where another's H is better.
    bound: Option<Trace>,
    tally: Tally,
    rates: LevelRates,
}

impl LevelRates {
    /// The rates of [`LevelPasses::of_interiors`], without the rule: a few cells a pass and stratum.
    pub fn of_interiors(all: &Interiors, straddle: Straddle, levels: Levels<'_>) -> Self {
        found(all, &all.strata.links(straddle), straddle, levels).rates
    }
}

fn rates(steps: usize, links: &[Link], tally: &Tally) -> LevelRates {
    // A step multiplies a mass and both messages of its stratum; messages are made of n
    // rounded links.
    let rounded = (steps + 16) as f64 * 8.0 + 8.0 * links.len() as f64;
    let most_error = (16.0 * links.len() as f64 + 32.0) * f64::EPSILON;
    LevelRates::enclosed(
        [tally.accepted, rounded * f64::EPSILON],
        [tally.most, most_error],
    )
}

fn found(all: &Interiors, links: &[Link], straddle: Straddle, levels: Levels<'_>) -> Found {
    let of = |best: Trace| {
        let tally = best.tally(all, links);
        Found {
            accepted: tally.accepted,
            rates: rates(best.steps.len(), links, &tally),
            bound: None,
            best,
            tally,
        }
    };
    match levels {
        Levels::Best => {
            let level = found(all, links, straddle, Levels::ADAPTIVE);
            let fixed: &[Levels<'_>] = match straddle {
                Straddle::Independent => &[Levels::FOUR, Levels::ONE],
                Straddle::Once => &[],
            };
            let fixed = fixed.iter().map(|&one| found(all, links, straddle, one));
            fixed.fold(level, Found::better)
        }
        Levels::Fixed(levels) => {
            let mut run = Run::new(all, links, false);
            for &level in levels {
                run.pass(level);
            }
            run.pass(0.0);
            of(run.trace())
        }
        Levels::Adaptive { width, passes } => {
            let mut run = Run::new(all, links, straddle == Straddle::Once);
            let mut part = COARSEST;
            let mut spent = 0;
            let mut best: Option<Found> = None;
            loop {
                let most = passes.saturating_sub(spent).max(1);
                let count = run.adaptive(part, most);
                spent += count;
                let next = of(run.trace());
                let better = match best {
                    Some(best) => best.better(next),
                    None => next,
                };
                if better.rates.optimum.width() <= width || spent >= passes {
                    return better;
                }
                best = Some(better);
                part *= FINER;
                run.reset();
            }
        }
    }
}

impl Found {
    /// The one that accepts more, with the better bound on alpha\* of both.
    fn better(self, other: Self) -> Self {
        let upper = (self.rates.optimum.upper()).min(other.rates.optimum.upper());
        let (mut best, worse) = if other.accepted > self.accepted {
            (other, self)
        } else {
            (self, other)
        };
        if worse.rates.optimum.upper() < best.rates.optimum.upper() {
            best.bound = Some(worse.bound.unwrap_or(worse.best));
            best.tally = worse.tally;
        }
        let lower = best.rates.acceptance.lower();
        let value = (best.rates.optimum.value()).min(worse.rates.optimum.value());
        best.rates.optimum = Known::rate(value, lower, upper.max(lower));
        best
    }
}

plan_answers! {
    LevelPasses:
    "alpha\\*, between what these passes accept and `1 + P(H) - Q(H)`.";
    "Law of the output where no draft of a stratum was accepted. What it gives F is accepted too, \
     as F is drafted.";
    "Tells whether the token is in H, the certificate of the upper bound."
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
    /// use specgap_plan::{LevelPasses, Levels, Straddle};
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
        let rows = (target.probabilities(), draft.probabilities());
        Ok(Self::of_rows(rows, &strata, straddle, levels))
    }

    /// [`Self::solve`] of rows, p and q, that sum to 1, or nearly, with the strata of q.
    pub fn of_rows(
        rows: (&[f64], &[f64]),
        strata: &Strata,
        straddle: Straddle,
        levels: Levels<'_>,
    ) -> Self {
        let all = Interiors::of(&Falling::of(rows), strata.clone());
        Self::of_interiors(&all, rows.0, straddle, levels)
    }

    /// [`Self::of_rows`] of what passes go over: the same for all levels. `p` is the row.
    pub fn of_interiors(
        all: &Interiors,
        p: &[f64],
        straddle: Straddle,
        levels: Levels<'_>,
    ) -> Self {
        let strata = &all.strata;
        let found = found(all, &strata.links(straddle), straddle, levels);
        let trace = &found.best;
        let mut emitted = vec![0.0; p.len()];
        let mut homes = vec![Home::Nowhere; p.len()];
        let mut first = vec![NEVER; p.len()];
        let mut survival = vec![1.0; p.len()];
        let stretches = trace.touched(all.count());
        for (stratum, (interior, stretches)) in all.inside.iter().zip(stretches).enumerate() {
            each_token(interior, &stretches, |token, [p, mass], touched| {
                homes[token] = Home::Stratum(stratum);
                if let Some(touched) = touched {
                    [survival[token], emitted[token]] = touched.part(p, mass);
                    first[token] = touched.step as u32;
                }
            });
        }
        for (slot, &token) in strata.certain().iter().enumerate() {
            homes[token as usize] = Home::Certain(slot);
        }
        for (cut, over) in strata.straddlers().iter().enumerate() {
            if let Some(one) = over {
                homes[one.token as usize] = Home::Cut(cut);
            }
        }
        for (over, straddler) in trace.over.iter().zip(strata.straddlers()) {
            if let Some(one) = straddler {
                emitted[one.token as usize] = over.emitted[0] + over.emitted[1];
            }
        }
        let (thinning, _) = Thinning::new(p, &emitted);
        for (emitted, keep) in emitted.iter_mut().zip(thinning.keep()) {
            *emitted *= keep;
        }
        let held = found.bound.as_ref().unwrap_or(trace);
        Self {
            held: held.held(all, found.tally.over.as_deref()),
            strata: strata.clone(),
            homes,
            first,
            survival,
            over: trace.over.iter().map(|over| over.emitted).collect(),
            kept: emitted,
            thinning,
            rates: found.rates,
            steps: found.best.steps,
        }
    }

    /// The strata that the drafts are drawn from.
    pub fn strata(&self) -> &Strata {
        &self.strata
    }

    fn home(&self, token: u32) -> Home {
        (self.homes.get(token as usize).copied()).unwrap_or(Home::Nowhere)
    }

    /// Returns the part of a token in a stratum that survives a step: all of one not of it.
    fn part(&self, index: usize, stratum: usize, token: u32) -> f64 {
        let step = &self.steps[index];
        match self.home(token) {
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

    /// |F|.
    fn sure(&self) -> usize {
        self.strata.certain().len()
    }

    /// Step by step, the slot and the draft of its stratum, and what part of that survives.
    fn parts(&self, tuple: &[u32]) -> impl Iterator<Item = (usize, u32, f64)> {
        let steps = self.steps.iter().enumerate();
        steps.filter_map(move |(index, step)| {
            let stratum = step.stratum as usize;
            let slot = self.sure() + stratum;
            let token = tuple.get(slot).copied()?;
            Some((slot, token, self.part(index, stratum, token)))
        })
    }

    /// Probability that each draft of the tuple is accepted; the rest of 1 goes to tokens
    /// that were not drafted. A token where it cannot be drafted is never accepted. O(steps).
    pub fn accepted(&self, tuple: &[u32]) -> Vec<f64> {
        let mut accepted = vec![0.0; tuple.len()];
        let mut alive = 1.0;
        for (slot, _, part) in self.parts(tuple) {
            accepted[slot] += alive * (1.0 - part);
            alive *= part;
        }
        let sure = self.sure().min(tuple.len());
        self.thinning.thin(&mut accepted[sure..], &tuple[sure..]);
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
        let emitted = self
            .parts(tuple)
            .find(|&(_, _, part)| part < 1.0 && rng.random::<f64>() >= part)
            .map(|(slot, token, _)| (slot, token));
        let mut verdict = self.thinning.keep_or_reject(emitted, rng);
        if verdict.accepted.is_none()
            && let Home::Certain(slot) = self.home(verdict.token)
            && tuple.get(slot) == Some(&verdict.token)
        {
            verdict.accepted = Some(slot);
        }
        verdict
    }

    /// Returns the probability that this token is the draft of a slot, accepted there, given that
    /// it is the output. A token over a cut has two slots; what is left of 1 is that it was not
    /// drafted. O(1).
    pub fn given(&self, token: u32, p: f64) -> Vec<(usize, f64)> {
        let sure = self.sure();
        let share = |emitted: f64| if p > 0.0 { (emitted / p).min(1.0) } else { 0.0 };
        match self.home(token) {
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
}

impl Run<'_> {
    /// Passes at levels a part below the largest ratio, and at last at 0; how many.
    fn adaptive(&mut self, part: f64, most: usize) -> usize {
        // Below this no pass at 0 uses up a token, whatever the others gave out before.
        let low = 0.5 / (self.states.len() + 1) as f64;
        let mut passes = 1;
        while passes < most {
            let ratio = self.largest();
            if ratio < low {
                break;
            }
            let level = if ratio >= 1.0 {
                1.0
            } else {
                (1.0 - part) * ratio
            };
            let steps = self.steps.len();
            self.pass(level);
            passes += 1;
            // Where rounding lets no token be reached, more of the same would not either.
            if self.steps.len() == steps {
                break;
            }
        }
        self.pass(0.0);
        passes
    }
}
