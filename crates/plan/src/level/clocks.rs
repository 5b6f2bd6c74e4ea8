//! The level rule for independent drafts of any rows: a token has one clock, whichever draft it is.

use super::super::error::PlanError;
use super::super::thinning::{Thinning, Verdict};
use super::passes::{COARSEST, FINER};
use super::rates::LevelRates;
use super::rates::plan_answers;
use rand::{Rng, RngCore};
use specgap_number::distribution::{Draft, Target, UnitSum, token_id};

/// Width of the enclosure of alpha\* that is wanted.
const WIDTH: f64 = 1e-9;

/// Most passes in all.
const MOST_PASSES: f64 = 20_000.0;

/// Most entries of rows that passes go over in all, so that a row takes about as long as
/// its alpha\*.
const MOST_ENTRIES: f64 = 1e7;

/// How often prices are made anew of the chances that are made of them.
const ROUNDS: usize = 3;

/// Passes over n independent drafts at falling levels, each with one chance a token.
///
/// With R what is left of p, Q_j what is left of the row of draft j and s_j its sum, a token is worth
/// `M = sum over j of Q_j prod over i != j of s_i`. A pass takes drafts from the last to the first, and
/// accepts one of token x with the same chance e, whichever draft it is; so it gives out
/// `e sum over j of c_j Q_j`, `c_j` what the pass leaves of the later drafts times what it found of the
/// earlier ones. With the level t below the largest R/M,
/// `e = min(1, (R - t M) / (sum over j of a_j Q_j - t M))`, and 0 where R is below t M: first of `a_j` as
/// if nothing was taken, then of what came of that. Prices only fall, so that no more is given out than
/// is left, as for i.i.d. drafts. A last pass at level 0 goes draft by draft, and leaves nothing of p or
/// nothing of the draft at every token.
///
/// Passes are made finer until alpha\* is enclosed within 1e-9, or the work is spent.
///
/// # Exactness
/// Lossless by construction: chances of a token follow from p, its rows and a few numbers a pass, and
/// what they emit is cut to p. alpha\* lies between what is accepted and `1 + P(H) - Q(H)`, H the tokens
/// that are not used up.
/// O(n V) a pass; [`Self::emit`] is O(n^2 passes).
/// Source: specgap's: `docs/theory/level-rule.md`.
///
/// # Example
/// ```
/// use specgap_number::distribution::{Draft, Target};
/// use specgap_plan::ClockPasses;
/// let rows = [Draft::new(&[0.0, 0.5, 0.5])?, Draft::new(&[0.5, 0.0, 0.5])?];
/// let passes = ClockPasses::solve(&Target::new(&[0.25, 0.25, 0.5])?, &rows)?;
/// assert!((passes.acceptance_rate().value() - 1.0).abs() < 1e-9);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ClockPasses {
    rows: Rows,
    run: Run,
    thinning: Thinning,
    held: Vec<bool>,
    rates: LevelRates,
}

/// The tokens that may be drafted, ascending, with p and the rows: an entry a draft.
#[derive(Clone, Debug, Default)]
struct Rows {
    drafts: usize,
    tokens: Vec<u32>,
    target: Vec<f64>,
    drafted: Vec<f64>,
}

/// What is left of a token: of p, and the part of its draft mass.
#[derive(Clone, Copy, Debug)]
struct Left {
    target: f64,
    part: f64,
}

/// What tells the chances of all tokens in a pass. Prices have an entry a draft.
#[derive(Clone, Debug)]
struct Pass {
    level: f64,
    /// Of R/M.
    worth: Vec<f64>,
    /// Of which chances are made.
    aimed: Vec<f64>,
    /// At which they give out.
    paid: Vec<f64>,
}

/// Passes, the prices of the last one draft by draft, and what they come to.
#[derive(Clone, Debug)]
struct Run {
    passes: Vec<Pass>,
    last: Vec<f64>,
    /// In the order of tokens, as are the next two.
    emitted: Vec<f64>,
    /// Draft mass is left.
    held: Vec<bool>,
}

fn dot(prices: &[f64], drafted: &[f64]) -> f64 {
    prices.iter().zip(drafted).map(|(c, q)| c * q).sum()
}

impl Left {
    /// The chance that a draft of the token is accepted in a pass.
    #[inline(always)]
    fn chance(&self, level: f64, worth: f64, price: f64) -> f64 {
        let floor = level * worth;
        if worth <= 0.0 || self.target < floor {
            0.0
        } else if self.target >= price {
            1.0
        } else {
            (self.target - floor) / (price - floor)
        }
    }

    fn chance_in(&self, pass: &Pass, drafted: &[f64]) -> f64 {
        let by = |prices: &[f64]| self.part * dot(prices, drafted);
        self.chance(pass.level, by(&pass.worth), by(&pass.aimed))
    }

    /// Gives out by a chance; how much.
    #[inline(always)]
    fn give(&mut self, chance: f64, paid: f64) -> f64 {
        let given = (chance * self.part * paid).min(self.target);
        self.target -= given;
        self.part *= 1.0 - chance;
        given
    }

    /// The same of one draft in the last pass: also the chance.
    #[inline(always)]
    fn give_apart(&mut self, price: f64, drafted: f64) -> [f64; 2] {
        let mass = price * self.part * drafted;
        if mass <= 0.0 {
            return [0.0, 0.0];
        }
        let chance = (self.target / mass).min(1.0);
        let given = (chance * mass).min(self.target);
        self.target = if chance < 1.0 {
            0.0
        } else {
            self.target - given
        };
        [chance, given]
    }
}

/// By draft: the sums of the drafts before it, as they were, times those behind it, as they became.
fn prices(before: &[f64], behind: &[f64]) -> Vec<f64> {
    let mut found = vec![1.0; before.len()];
    let (mut product, mut later) = (1.0, 1.0);
    for (price, &sum) in found.iter_mut().zip(before) {
        *price *= product;
        product *= sum;
    }
    for (price, &sum) in found.iter_mut().zip(behind).rev() {
        *price *= later;
        later *= sum;
    }
    found
}

impl Rows {
    fn of(target: &Target, drafts: &[Draft]) -> Self {
        let p = target.probabilities();
        let mut rows = Self {
            drafts: drafts.len(),
            ..Self::default()
        };
        for (token, &p) in p.iter().enumerate() {
            let own = drafts.iter().map(|q| q.probabilities()[token]);
            if own.clone().any(|q| q > 0.0) {
                rows.tokens.push(token_id(token));
                rows.target.push(p);
                rows.drafted.extend(own);
            }
        }
        rows
    }

    fn each(&self) -> impl Iterator<Item = &[f64]> {
        self.drafted.chunks_exact(self.drafts)
    }

    /// The sum of each draft's row over tokens, each weighed.
    fn sums(&self, mut weight: impl FnMut(usize) -> f64) -> Vec<f64> {
        let mut sums = vec![UnitSum::default(); self.drafts];
        for (place, drafted) in self.each().enumerate() {
            let weight = weight(place);
            if weight > 0.0 {
                for (sum, q) in sums.iter_mut().zip(drafted) {
                    sum.add(weight * q);
                }
            }
        }
        sums.into_iter().map(UnitSum::value).collect()
    }

    /// Passes at levels a part below the largest ratio, and at last at 0.
    fn run(&self, part: f64, most: usize) -> Run {
        let starts = self.target.iter();
        let mut left: Vec<Left> = starts.map(|&target| Left { target, part: 1.0 }).collect();
        let mut emitted = vec![0.0; left.len()];
        let mut worths = vec![0.0; left.len()];
        let mut chances = vec![0.0; left.len()];
        let mut passes: Vec<Pass> = Vec::new();
        // Below this no pass at 0 uses up a token, whatever the others gave out before.
        let low = 0.5 / (self.drafts + 1) as f64;
        let mut sums = self.sums(|_| 1.0);
        while passes.len() + 1 < most {
            let worth = prices(&sums, &sums);
            let (mut largest, mut pays) = (0.0f64, false);
            for ((one, left), drafted) in worths.iter_mut().zip(&left).zip(self.each()) {
                *one = left.part * dot(&worth, drafted);
                if *one > 0.0 {
                    largest = largest.max(left.target / *one);
                    pays |= left.target >= *one;
                }
            }
            if largest < low {
                break;
            }
            let level = if pays {
                1.0
            } else {
                (1.0 - part) * largest.min(1.0)
            };
            let (mut aimed, mut paid) = (worth.clone(), worth.clone());
            let mut after = sums.clone();
            for _ in 0..ROUNDS {
                aimed.copy_from_slice(&paid);
                let every = chances.iter_mut().zip(&left).zip(&worths).zip(self.each());
                for (((chance, left), &worth), drafted) in every {
                    *chance = left.chance(level, worth, left.part * dot(&aimed, drafted));
                }
                after = self.sums(|place| left[place].part * (1.0 - chances[place]));
                paid = prices(&sums, &after);
            }
            let every = left.iter_mut().zip(&mut emitted).zip(&chances);
            let every = every.zip(self.each());
            for (((left, emitted), &chance), drafted) in every {
                if chance > 0.0 {
                    *emitted += left.give(chance, dot(&paid, drafted));
                }
            }
            sums = after;
            passes.push(Pass {
                level,
                worth,
                aimed,
                paid,
            });
        }
        let mut last = vec![0.0; self.drafts];
        let mut held = vec![false; left.len()];
        let mut behind = 1.0;
        for draft in (0..self.drafts).rev() {
            let price = behind * sums[..draft].iter().product::<f64>();
            let mut rest = UnitSum::default();
            for (place, drafted) in self.each().enumerate() {
                let [chance, given] = left[place].give_apart(price, drafted[draft]);
                emitted[place] += given;
                let kept = left[place].part * drafted[draft] * (1.0 - chance);
                held[place] |= kept > 0.0;
                rest.add(kept);
            }
            last[draft] = price;
            behind *= rest.value();
        }
        Run {
            passes,
            last,
            emitted,
            held,
        }
    }

    /// What a run accepts, and 1 + P(H) - Q(H).
    fn rates(&self, run: &Run) -> LevelRates {
        let mut accepted = UnitSum::default();
        let mut most = UnitSum::default();
        for (&emitted, (&held, &p)) in run.emitted.iter().zip(run.held.iter().zip(&self.target)) {
            accepted.add(emitted);
            most.add(if held { p } else { 0.0 });
        }
        let inside: f64 = self
            .sums(|place| f64::from(u8::from(run.held[place])))
            .iter()
            .product();
        // A pass multiplies a mass by sums of all drafts.
        let turns = (run.passes.len() + 16) * (self.drafts + 2);
        LevelRates::enclosed(
            [accepted.value().min(1.0), (8 * turns) as f64 * f64::EPSILON],
            [
                1.0 + (most.value() - inside),
                (16 * self.drafts + 32) as f64 * f64::EPSILON,
            ],
        )
    }

    fn place(&self, token: u32) -> Option<usize> {
        self.tokens.binary_search(&token).ok()
    }
}

plan_answers! {
    ClockPasses:
    "alpha\\*, between what these passes accept and `1 + P(H) - Q(H)`.";
    "Law of the output where no draft was accepted.";
    "Tells whether the token is in H, the certificate of the upper bound."
}

impl ClockPasses {
    /// The passes for a target and the row of each draft.
    ///
    /// # Errors
    /// Rows of different length; no drafts.
    pub fn solve(target: &Target, drafts: &[Draft]) -> Result<Self, PlanError> {
        let vocab = target.vocab();
        let other = drafts.iter().map(|q| q.vocab()).find(|&own| own != vocab);
        PlanError::check(vocab, other.unwrap_or(vocab), drafts.len())?;
        let rows = Rows::of(target, drafts);
        let entries = rows.drafted.len().max(1) as f64;
        let most = (MOST_ENTRIES / entries).clamp(24.0, MOST_PASSES) as usize;
        let (mut part, mut spent) = (COARSEST, 0);
        let mut best: Option<(Run, LevelRates)> = None;
        let mut held: Option<(f64, Vec<bool>)> = None;
        let (run, mut rates) = loop {
            let run = rows.run(part, most.saturating_sub(spent).max(1));
            spent += run.passes.len() + 1;
            let rates = rows.rates(&run);
            let upper = rates.optimum.upper();
            if held.as_ref().is_none_or(|(least, _)| upper < *least) {
                held = Some((upper, run.held.clone()));
            }
            let next = match best {
                Some((run, best)) if best.acceptance.value() >= rates.acceptance.value() => {
                    (run, best)
                }
                _ => (run, rates),
            };
            let least = held.as_ref().map_or(1.0, |(least, _)| *least);
            if least - next.1.acceptance.lower() <= WIDTH || spent >= most {
                break next;
            }
            best = Some(next);
            part *= FINER;
        };
        let mut emitted = vec![0.0; vocab];
        let mut is_held = vec![false; vocab];
        let (least, places) = held.unwrap_or_else(|| (1.0, run.held.clone()));
        for ((&token, &own), held) in rows.tokens.iter().zip(&run.emitted).zip(places) {
            emitted[token as usize] = own;
            is_held[token as usize] = held;
        }
        rates.lower_to(least);
        let (thinning, _) = Thinning::new(target.probabilities(), &emitted);
        Ok(Self {
            rows,
            run,
            thinning,
            held: is_held,
            rates,
        })
    }

    /// Calls with each turn's draft and the chance that it is accepted there, until told to stop.
    fn walk(&self, tuple: &[u32], mut turn: impl FnMut(usize, f64) -> bool) {
        let rows = &self.rows;
        let mut states: Vec<Option<(&[f64], Left)>> = tuple
            .iter()
            .take(rows.drafts)
            .map(|&token| {
                let place = rows.place(token)?;
                let drafted = rows.each().nth(place)?;
                let target = rows.target[place];
                Some((drafted, Left { target, part: 1.0 }))
            })
            .collect();
        for pass in &self.run.passes {
            for (draft, state) in states.iter_mut().enumerate().rev() {
                let Some((drafted, left)) = state else {
                    continue;
                };
                let chance = left.chance_in(pass, drafted);
                if chance > 0.0 {
                    left.give(chance, dot(&pass.paid, drafted));
                    if turn(draft, chance) {
                        return;
                    }
                }
            }
        }
        for (draft, state) in states.iter_mut().enumerate().rev() {
            let Some((drafted, left)) = state else {
                continue;
            };
            let turns = (draft..rows.drafts).rev();
            let own = turns.map(|at| left.give_apart(self.run.last[at], drafted[at])[0]);
            if turn(draft, own.last().unwrap_or(0.0)) {
                return;
            }
        }
    }

    /// Probability that each draft of the tuple is accepted; the rest of 1 goes to [`Self::residual`].
    /// O(n^2 passes).
    pub fn accepted(&self, tuple: &[u32]) -> Vec<f64> {
        let mut accepted = vec![0.0; tuple.len()];
        let mut alive = 1.0;
        self.walk(tuple, |draft, chance| {
            accepted[draft] += alive * chance;
            alive *= 1.0 - chance;
            alive <= 0.0
        });
        self.thinning.thin(&mut accepted, tuple);
        accepted
    }

    /// Runs the passes once.
    pub fn emit(&self, tuple: &[u32], rng: &mut dyn RngCore) -> Verdict {
        let mut emitted = None;
        self.walk(tuple, |draft, chance| {
            if rng.random::<f64>() < chance {
                emitted = Some((draft, tuple[draft]));
            }
            emitted.is_some()
        });
        self.thinning.keep_or_reject(emitted, rng)
    }
}
