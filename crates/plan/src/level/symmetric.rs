//! Passes over all i.i.d. drafts at once: no sort, a few sums over the vocabulary each.

use super::super::error::PlanError;
use super::super::thinning::Thinning;
use super::rates::LevelRates;
use super::rates::plan_answers;
use super::sweep::mean_price;
use specgap_number::distribution::{Draft, PROBABILITY_RELATIVE_ERROR, Target, split_sum};
use specgap_number::scratch::Scratch;

/// The levels of the rule `level-4` for i.i.d. drafts: 0 takes three passes, as each leaves a
/// little.
pub const SYMMETRIC_LEVELS: [f64; 8] = [0.8, 0.6, 0.45, 0.3, 0.15, 0.0, 0.0, 0.0];

/// Steps that each pass takes towards its own mean price.
const INNER: usize = 3;

/// One pass: the ratio that it brings tokens to, the price that it assumes, and the mean
/// price that comes of it, which is at most that.
#[derive(Clone, Copy, Debug)]
struct Pass {
    level: f64,
    assumed: f64,
    price: f64,
}

impl Pass {
    /// The part of a token of this ratio of target left to draft left that rings.
    #[inline(always)]
    fn part(&self, ratio: f64) -> f64 {
        let over = ratio - self.level;
        let room = self.assumed - self.level;
        if over >= room && over > 0.0 {
            1.0
        } else if over > 0.0 {
            over / room
        } else {
            0.0
        }
    }

    /// The ratio behind it, if something is left of the draft.
    #[inline(always)]
    fn behind(&self, ratio: f64, part: f64) -> f64 {
        ((ratio - self.price * part) / (1.0 - part)).max(0.0)
    }
}

/// The rule `level-4` for n i.i.d. drafts: passes at falling levels of
/// `R / (n s^(n-1) Q)`, all drafts at once.
///
/// R is the target not yet given out, Q what survives of the draft, and s its sum. In a pass a
/// token loses the part e of Q, along a straight line; the clock of a draft rings at a uniform
/// place of the pass with probability e, and the first of all drafts, by pass and place, is the
/// output. It is given out `e Q (s^n - (s - d)^n)/d`, d being the sum of e Q.
///
/// # Exactness
/// Lossless by construction, as [`LevelPlan`](super::LevelPlan). It stays below alpha\*, which
/// lies between what it accepts and `1 + P(H) - q(H)^n`, H the tokens that survive.
/// O(V) a pass.
/// Source: specgap's: `docs/theory/`.
#[derive(Clone, Debug)]
pub struct SymmetricPasses {
    thinning: Thinning,
    rates: LevelRates,
    refused_draft: f64,
}

plan_answers! {
    SymmetricPasses:
    "alpha\\*, between what these passes accept and `1 + P(H) - q(H)^n`.";
    "Law of the output after a rejection, V entries."
}

impl SymmetricPasses {
    /// The passes at these levels, [`SYMMETRIC_LEVELS`] being the rule `level-4`.
    ///
    /// # Errors
    /// Rows of different length; no drafts.
    ///
    /// # Example
    /// ```
    /// use specgap_number::distribution::{Draft, Target};
    /// use specgap_plan::{SYMMETRIC_LEVELS, SymmetricPasses};
    /// let (p, q) = (Target::new(&[0.0, 0.2, 0.8])?, Draft::new(&[0.2, 0.2, 0.6])?);
    /// let passes = SymmetricPasses::solve(&p, &q, 2, &SYMMETRIC_LEVELS)?;
    /// // alpha* is 0.96, recursive rejection 0.92.
    /// assert!((passes.acceptance_rate().value() - 0.96).abs() < 1e-3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn solve(
        target: &Target,
        draft: &Draft,
        drafts: usize,
        levels: &[f64],
    ) -> Result<Self, PlanError> {
        PlanError::check(target.vocab(), draft.vocab(), drafts)?;
        let (p, q) = (target.probabilities(), draft.probabilities());
        let mut now = Scratch::filled(q.len(), 0.0);
        for (ratio, (&p, &q)) in now.iter_mut().zip(p.iter().zip(q)) {
            *ratio = if q > 0.0 { p / q } else { 0.0 };
        }
        let mut mass = Scratch::copied(q);
        let mut emitted = Scratch::filled(q.len(), 0.0);
        let mut s = split_sum(q, q, |mass, _| mass).min(1.0);
        for &level in levels {
            let start = drafts as f64 * s.powi((drafts - 1) as i32);
            let mut pass = Pass {
                level: level * start,
                assumed: start,
                price: start,
            };
            let mut taken = 0.0;
            for step in 0..INNER {
                if step > 0 {
                    pass.assumed = pass.price.max(pass.level);
                }
                taken = split_sum(&now, &mass, |ratio, mass| mass * pass.part(ratio)).min(s);
                pass.price = mean_price(s, s - taken, drafts).0.min(pass.price);
            }
            let tokens = now.iter_mut().zip(mass.iter_mut()).zip(emitted.iter_mut());
            for ((ratio, mass), emitted) in tokens {
                let part = pass.part(*ratio);
                *emitted += pass.price * part * *mass;
                *mass *= 1.0 - part;
                *ratio = if part < 1.0 {
                    pass.behind(*ratio, part)
                } else {
                    0.0
                };
            }
            s -= taken;
        }
        // No clock rings, and x is drafted: n s^(n-1) of its mass. Or one rings, and is refused.
        let drafted = drafts as f64 * s.powi((drafts - 1) as i32);
        let besides = |((&p, &emitted), &mass): ((&f64, &f64), &f64)| {
            (p - emitted).max(0.0).min(drafted * mass) + (emitted - p).max(0.0)
        };
        let refused_draft = (p.iter().zip(emitted.iter()).zip(mass.iter()))
            .map(besides)
            .sum();
        let (thinning, accepted) = Thinning::new(p, &emitted);
        let accepted = accepted.min(1.0);
        let inside = |row: &[f64]| {
            split_sum(&mass, row, |left, mass| if left > 0.0 { mass } else { 0.0 }).min(1.0)
        };
        let n = drafts as f64;
        let most = 1.0 + inside(p) - inside(q).powi(drafts as i32);
        let most_error = (3.0 * n + 6.0) * f64::EPSILON + 2.0 * PROBABILITY_RELATIVE_ERROR;
        // Every pass rounds a mass, its sum and a mean price.
        let error = accepted * (levels.len() + 1) as f64 * (10.0 * n + 40.0) * f64::EPSILON;
        Ok(Self {
            thinning,
            rates: LevelRates::enclosed([accepted, error], [most, most_error]),
            refused_draft,
        })
    }

    /// Returns what the probability is at most that the output is a draft which was refused.
    pub fn refused_draft(&self) -> f64 {
        self.refused_draft
    }

    /// Returns the probability that a draft was accepted, given that this token is the output; each
    /// of the n is it equally often.
    pub fn given(&self, token: u32, p: f64) -> f64 {
        self.thinning.given(token, p, self.rates.acceptance.value())
    }
}
