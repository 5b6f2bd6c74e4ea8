//! Rejection sampling draft by draft, for drafts drawn independently.
//!
//! With r_1 = p and M_k the sum of r_k, the target of step k is r_k / M_k. It is
//! offered x ~ q_k and keeps it with min(1, r_k(x) / (M_k q_k(x))); otherwise it
//! goes on with `r_(k+1) = (r_k - M_k q_k)+`. Leaving r unnormalised saves the
//! divisions: step k rejects with probability M_(k+1)/M_k, so all of n drafts are
//! rejected with probability M_(n+1).

use super::{ConditionalLaw, sequential};
use specgap_number::number::{Number, normalised};
use std::sync::Arc;

/// The residuals of every step: they depend on p and the rows, not on X.
#[derive(Clone, Debug)]
pub(super) struct Recursion<M> {
    /// r_k.
    wanted: Vec<Vec<M>>,
    /// M_k q_k.
    offered: Vec<Vec<M>>,
    /// Law of the output after all drafts were rejected.
    pub(super) residual: Arc<[M]>,
    /// M_(n+1): probability that all drafts are rejected.
    pub(super) left: M,
}

impl<M: Number> Recursion<M> {
    /// Makes one from p and the law of each draft. O(nV).
    pub(super) fn new(target: Vec<M>, drafts: &[Vec<M>]) -> Self {
        let mut wanted = Vec::with_capacity(drafts.len());
        let mut offered = Vec::with_capacity(drafts.len());
        let mut current = target;
        let mut mass = M::total(&current);
        let mut all_accepted = false;
        for draft in drafts {
            let offer: Vec<M> = draft.iter().map(|q| mass.times(q)).collect();
            wanted.push(current.clone());
            let next = shortfall(&current, &offer);
            offered.push(offer);
            let next_mass = M::total(&next);
            // If the step rejects nothing (up to rounding, in f64), whatever comes
            // after it keeps this step's law, so that not even a rounding error
            // can emit a token of probability zero.
            all_accepted |= next_mass.is_nil();
            if !all_accepted {
                current = next;
                mass = next_mass;
            }
        }
        let left = if all_accepted { M::zero() } else { mass };
        let residual = normalised(&current).unwrap_or(current).into();
        Self {
            wanted,
            offered,
            residual,
            left,
        }
    }

    /// Probability that draft k, once it is its turn, is kept.
    pub(super) fn keeps(&self, position: usize, token: u32) -> M {
        match (self.wanted.get(position), self.offered.get(position)) {
            (Some(wanted), Some(offered)) => {
                keep(&wanted[token as usize], &offered[token as usize])
            }
            _ => M::zero(),
        }
    }

    /// The law of the output given the drafts.
    pub(super) fn conditional(&self, tuple: &[u32]) -> ConditionalLaw<M> {
        let keep = tuple.iter().enumerate().map(|(k, &x)| self.keeps(k, x));
        sequential(keep.collect(), self.residual.clone())
    }
}

/// Returns what a draw from a law gives, without a look at the drafts: an accepted draft if it is
/// one, the first of those that are equal, and else a token of the law without them.
pub(super) fn met<M: Number>(law: &Arc<[M]>, drafts: &[u32]) -> ConditionalLaw<M> {
    let mut outside = law.to_vec();
    let hits = drafts.iter().map(|&token| {
        // Nothing is left for the same draft again.
        std::mem::replace(&mut outside[token as usize], M::zero())
    });
    let accepted = hits.collect();
    let rejected = M::total(&outside);
    let residual = if rejected.is_nil() {
        law.clone()
    } else {
        outside.iter().map(|mass| mass.over(&rejected)).collect()
    };
    ConditionalLaw {
        accepted,
        rejected,
        residual,
    }
}

/// Probability with which a token of mass `wanted` is kept when it is offered
/// with mass `offered`: min(1, wanted/offered), and 0 where nothing is wanted,
/// so that a token of probability zero is never kept, however small the draw.
pub(super) fn keep<M: Number>(wanted: &M, offered: &M) -> M {
    if wanted.is_nil() {
        M::zero()
    } else if wanted >= offered {
        M::one()
    } else {
        wanted.over(offered)
    }
}

/// (wanted - offered)+ token by token.
pub(super) fn shortfall<M: Number>(wanted: &[M], offered: &[M]) -> Vec<M> {
    wanted
        .iter()
        .zip(offered)
        .map(|(wanted, offered)| wanted.excess_over(offered))
        .collect()
}
