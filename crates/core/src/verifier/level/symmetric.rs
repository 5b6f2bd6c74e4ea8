//! Passes over i.i.d. drafts, all drafts at once.

use crate::verifier::ConditionalLaw;
use crate::verifier::residual::keep;
use specgap_number::number::{Number, normalised};
use specgap_plan::SYMMETRIC_LEVELS;
use std::sync::Arc;

/// How often a pass corrects its price before it is run.
const STEPS: usize = 3;

/// Returns how a token's clock rings: pass by pass, the chance that it rings in the pass if it did
/// not before.
///
/// With s the mass of q whose clocks have not rung, Q a token's part of it and R what is left of
/// p, running all tokens by the fractions e gives out c e Q, where
/// c = (s^n - (s - d)^n)/d and d is the sum of e Q. A pass at level t takes
/// e = (R - l Q)/((c' - l) Q), cut to [0, 1], with l = t n s^(n-1) and c' >= c from one step
/// before, so that R stays at least 0 (`docs/theory/level-rule.md`). The numbers are floats, and
/// any numbers make a lossless rule: see [`Symmetric`].
pub(super) fn chances(p: &[f64], q: &[f64], drafts: usize) -> Vec<Vec<f64>> {
    let (mut left, mut alive) = (p.to_vec(), q.to_vec());
    let mut still = 1.0;
    let mut passes = Vec::with_capacity(SYMMETRIC_LEVELS.len());
    for level in SYMMETRIC_LEVELS {
        let first = drafts as f64 * f64::power(&still, drafts - 1);
        let least = level * first;
        let (mut cost, mut chance) = (first, vec![0.0; p.len()]);
        for _ in 0..STEPS {
            for ((chance, &left), &alive) in chance.iter_mut().zip(&left).zip(&alive) {
                let wanted = (left - least * alive).max(0.0);
                *chance = keep(&wanted, &((cost - least) * alive));
            }
            let run: f64 = chance.iter().zip(&alive).map(|(e, q)| e * q).sum();
            cost = price(&still, &(still - run).max(0.0), drafts).max(least);
        }
        let mut run = 0.0;
        for ((chance, left), alive) in chance.iter().zip(&mut left).zip(&mut alive) {
            let rung = chance * *alive;
            *left = (*left - cost * rung).max(0.0);
            *alive *= 1.0 - chance;
            run += rung;
        }
        still = (still - run).max(0.0);
        passes.push(chance);
    }
    passes
}

/// (s^n - t^n)/(s - t), without the division.
fn price<M: Number>(from: &M, to: &M, drafts: usize) -> M {
    let mut sum = M::zero();
    for power in 0..drafts {
        sum = sum.times(from).plus(&to.power(power));
    }
    sum
}

/// The rule of given chances: in each pass each draft's clock rings with its token's chance, at a
/// uniform moment; the first to ring is picked, and kept with min(1, p/a), where a is how often
/// its token is picked. Otherwise the output is drawn from (p - a)+.
///
/// Lossless whatever the chances; they decide how much is accepted.
#[derive(Debug)]
pub(super) struct Symmetric<M> {
    chances: Vec<Vec<M>>,
    /// a by token, and min(1, p/a).
    picked: Vec<M>,
    keep: Vec<M>,
    residual: Arc<[M]>,
    /// 1/1 to 1/n.
    shares: Vec<M>,
    /// P(nothing is accepted).
    pub(super) rejected: M,
    /// P(the output is a draft that was refused) is at most this: what floats leave of both p and
    /// q.
    pub(super) refused_draft: M,
}

impl<M: Number> Symmetric<M> {
    /// O(V) a pass.
    pub(super) fn new(p: &[M], q: &[M], drafts: usize, chances: Vec<Vec<M>>) -> Self {
        let mut alive = q.to_vec();
        let mut picked = vec![M::zero(); p.len()];
        let mut still = M::one();
        for chance in &chances {
            let rung: Vec<M> = chance.iter().zip(&alive).map(|(e, q)| e.times(q)).collect();
            let next = still.excess_over(&M::total(&rung));
            let cost = price(&still, &next, drafts);
            for (((picked, alive), rung), chance) in
                picked.iter_mut().zip(&mut alive).zip(&rung).zip(chance)
            {
                picked.gain(&cost.times(rung));
                *alive = alive.times(&chance.complement());
            }
            still = next;
        }
        let keep: Vec<M> = p.iter().zip(&picked).map(|(p, a)| keep(p, a)).collect();
        let lacking: Vec<M> = p
            .iter()
            .zip(&picked)
            .map(|(p, a)| p.excess_over(a))
            .collect();
        // No clock rings, and x is drafted: n s^(n-1) Q. Or a clock rings, and its token is refused.
        let drafted = price(&still, &still, drafts);
        let mut refused_draft = M::zero();
        for ((lacking, alive), (p, a)) in lacking.iter().zip(&alive).zip(p.iter().zip(&picked)) {
            refused_draft.gain(&lacking.smaller(&drafted.times(alive)));
            refused_draft.gain(&a.excess_over(p));
        }
        Self {
            chances,
            picked,
            keep,
            shares: (1..=drafts)
                .map(|count| M::fraction(&1u32.into(), &count.into()))
                .collect(),
            refused_draft,
            rejected: M::total(&lacking),
            residual: normalised(&lacking).unwrap_or_else(|| p.to_vec()).into(),
        }
    }

    /// P(the output is a token of mass `p`, and draft k was accepted): the same for all n drafts.
    pub(super) fn masses(&self, token: usize, p: &M, drafts: usize) -> Vec<M> {
        let one = p.smaller(&self.picked[token]);
        let share = self.shares.last().map(|share| one.times(share));
        vec![share.unwrap_or(one); drafts]
    }

    /// The law of the output given n drafts.
    pub(super) fn conditional(&self, tuple: &[u32]) -> ConditionalLaw<M> {
        let mut accepted = vec![M::zero(); tuple.len()];
        let mut reached = M::one();
        let mut powers = Vec::with_capacity(tuple.len());
        for chance in &self.chances {
            let chances: Vec<&M> = tuple.iter().map(|&x| &chance[x as usize]).collect();
            for (slot, &own) in chances.iter().enumerate() {
                if *own == M::zero() {
                    continue;
                }
                let others = (0..tuple.len()).filter(|&other| other != slot);
                let others = others.map(|other| chances[other]);
                let alone = mean_of_survival(others, &self.shares, &mut powers);
                accepted[slot].gain(&reached.times(&own.times(&alone)));
            }
            for own in chances {
                reached = reached.times(&own.complement());
            }
        }
        for (accepted, &token) in accepted.iter_mut().zip(tuple) {
            *accepted = accepted.times(&self.keep[token as usize]);
        }
        ConditionalLaw {
            rejected: M::total(&accepted).complement(),
            accepted,
            residual: self.residual.clone(),
        }
    }
}

/// The integral over u in [0, 1] of the product of 1 - e u; `shares` are 1/1, 1/2 and so on.
fn mean_of_survival<'a, M: Number>(
    chances: impl Iterator<Item = &'a M>,
    shares: &[M],
    powers: &mut Vec<M>,
) -> M {
    // In powers of 1 - u, 1 - e u = (1 - e) + e (1 - u): no term is negative.
    powers.clear();
    powers.push(M::one());
    for chance in chances {
        let stays = chance.complement();
        let mut below = M::zero();
        for factor in powers.iter_mut() {
            let here = factor.times(chance);
            *factor = below.plus(&factor.times(&stays));
            below = here;
        }
        powers.push(below);
    }
    let mut sum = M::zero();
    for (factor, share) in powers.iter().zip(shares) {
        sum.gain(&factor.times(share));
    }
    sum
}
