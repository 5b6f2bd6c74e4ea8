//! Passes over strata at falling levels.

use crate::scheme::Strata;
use crate::verifier::ConditionalLaw;
use crate::verifier::residual::keep;
use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::One;
use specgap_number::distribution::{Rational, token_id};
use specgap_number::number::{Number, normalised};
use std::sync::Arc;

/// What a rule of passes does with the drafts of strata, or of independent rows, each a stratum.
///
/// With R what is left of p, m(x) = P(the draft of stratum j is x, nothing is accepted yet), and
/// a level t in [0, 1), a turn of stratum j at t gives out min((R - t m)+/(1 - t), m): it brings
/// R/m down to t. The draft is kept with this over m. Behind the last turn the output is drawn
/// from R, and a certain token that comes out is a draft.
#[derive(Debug)]
pub(super) struct Passes<M> {
    /// Stratum by stratum in the order of turns, with what is kept of each of its tokens.
    turns: Vec<(usize, Vec<M>)>,
    tokens: Vec<Vec<u32>>,
    certain: Vec<u32>,
    /// R of each certain token at the end over the sum of R.
    certain_shares: Vec<M>,
    /// R of all others at the end over the sum of R.
    rest: M,
    residual: Arc<[M]>,
    /// P(nothing is accepted).
    pub(super) rejected: M,
    /// P(the draft of this stratum is this token, and accepted), in the order of `tokens`.
    emitted: Vec<Vec<M>>,
}

impl Passes<Rational> {
    /// Bits of the common denominator of what is kept, over all turns: of a sum over tuples.
    pub(super) fn bits(&self) -> f64 {
        let turns = self.turns.iter().map(|(_, kept)| {
            let common = |all: BigInt, one: &Rational| all.lcm(one.denom());
            kept.iter().fold(BigInt::one(), common).bits()
        });
        turns.sum::<u64>() as f64
    }
}

impl<M: Number> Passes<M> {
    /// Makes one from p and the strata; O(k V) a level.
    pub(super) fn new(p: Vec<M>, certain: &[usize], strata: &Strata<M>, levels: &[M]) -> Self {
        let all = strata.strata();
        let mut alive: Vec<Vec<M>> = all.iter().map(|own| vec![M::one(); own.len()]).collect();
        let mut emitted: Vec<Vec<M>> = all.iter().map(|own| vec![M::zero(); own.len()]).collect();
        let mut left = p.clone();
        let mut turns = Vec::with_capacity(levels.len() * all.len());
        for level in levels {
            for (j, stratum) in all.iter().enumerate().rev() {
                let offered = strata.weighed(j, |at, place| &alive[at][place]);
                let mut kept = Vec::with_capacity(stratum.len());
                let tokens = stratum.iter().zip(&offered).zip(&mut alive[j]);
                for (((share, offered), alive), emitted) in tokens.zip(&mut emitted[j]) {
                    let left = &mut left[share.token];
                    let wanted = left.excess_over(&level.times(offered));
                    let wanted = wanted.over(&level.complement());
                    let keep = keep(&wanted, offered);
                    let given = offered.times(&keep);
                    *left = left.excess_over(&given);
                    emitted.gain(&given);
                    *alive = alive.times(&keep.complement());
                    kept.push(keep);
                }
                turns.push((j, kept));
            }
        }
        let total = M::total(&left);
        let certain: Vec<u32> = certain.iter().map(|&token| token_id(token)).collect();
        let share = |&token: &u32| match total.is_nil() {
            true => M::zero(),
            false => left[token as usize].over(&total),
        };
        let certain_shares: Vec<M> = certain.iter().map(share).collect();
        for &token in &certain {
            left[token as usize] = M::zero();
        }
        let rejected = M::total(&left);
        Self {
            turns,
            tokens: all
                .iter()
                .map(|own| own.iter().map(|share| token_id(share.token)).collect())
                .collect(),
            certain,
            rest: M::total(&certain_shares).complement(),
            certain_shares,
            residual: normalised(&left).unwrap_or(p).into(),
            rejected,
            emitted,
        }
    }

    /// P(the output is a token of mass `p`, and draft k was accepted), for each k.
    pub(super) fn masses(&self, token: u32, p: &M) -> Vec<M> {
        let certain = self.certain.iter().map(|&own| match own == token {
            true => p.clone(),
            false => M::zero(),
        });
        let drawn = self
            .tokens
            .iter()
            .zip(&self.emitted)
            .map(|(tokens, emitted)| {
                let place = tokens.iter().position(|&own| own == token);
                place.map_or_else(M::zero, |place| emitted[place].clone())
            });
        certain.chain(drawn).collect()
    }

    /// The law of the output given F and a draft from each stratum.
    pub(super) fn conditional(&self, tuple: &[u32]) -> ConditionalLaw<M> {
        let mut accepted = vec![M::zero(); tuple.len()];
        let mut reached = M::one();
        for (j, kept) in &self.turns {
            let slot = self.certain.len() + j;
            let Some(token) = tuple.get(slot) else {
                continue;
            };
            if let Some(place) = self.tokens[*j].iter().position(|other| other == token) {
                accepted[slot].gain(&reached.times(&kept[place]));
                reached = reached.times(&kept[place].complement());
            }
        }
        for (token, share) in self.certain.iter().zip(&self.certain_shares) {
            if let Some(slot) = tuple.iter().position(|draft| draft == token) {
                accepted[slot].gain(&reached.times(share));
            }
        }
        ConditionalLaw {
            accepted,
            rejected: reached.times(&self.rest),
            residual: self.residual.clone(),
        }
    }
}
