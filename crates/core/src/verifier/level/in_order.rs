//! Rejection of stratified drafts in order, each against its law given the draft before.

use crate::scheme::{Strata, Stratified};
use crate::verifier::ConditionalLaw;
use crate::verifier::residual::keep;
use specgap_number::distribution::token_id;
use specgap_number::number::{Number, normalised};

/// Recursive rejection where a token across a cut is drafted once: what is left of p behind a
/// draft depends on which of the drafts before were tokens across cuts.
#[derive(Debug)]
pub(super) struct InOrder<M: Number> {
    p: Vec<M>,
    certain: Vec<u32>,
    strata: Strata<M>,
}

/// What is left of p, and its sum, after drafts were refused.
#[derive(Clone)]
struct Left<M> {
    row: Vec<M>,
    mass: M,
    /// A draft was refused with probability 0: what comes after keeps its law.
    all_accepted: bool,
}

impl<M: Number> InOrder<M> {
    pub(super) fn new(p: Vec<M>, scheme: &Stratified, strata: Strata<M>) -> Self {
        Self {
            p,
            certain: scheme
                .certain()
                .iter()
                .map(|&token| token_id(token))
                .collect(),
            strata,
        }
    }

    fn start(&self) -> Left<M> {
        Left {
            row: self.p.clone(),
            mass: M::total(&self.p),
            all_accepted: false,
        }
    }

    /// Returns what is kept of each token of a stratum, and what is left once one is refused.
    fn turn(&self, j: usize, across: bool, left: &Left<M>) -> (Vec<M>, Left<M>) {
        let mut next = left.clone();
        let mut kept = Vec::new();
        for share in &self.strata.strata()[j] {
            let offered = left.mass.times(&share.given[usize::from(across)]);
            let wanted = &mut next.row[share.token];
            kept.push(keep(wanted, &offered));
            *wanted = wanted.excess_over(&offered);
        }
        next.mass = M::total(&next.row);
        if next.mass.is_nil() || left.all_accepted {
            next = left.clone();
            next.all_accepted = true;
        }
        (kept, next)
    }

    /// The part of what is left that the certain tokens have, and the law of the others.
    fn last(&self, left: &Left<M>) -> (Vec<M>, Vec<M>) {
        let mut others = left.row.clone();
        let mut shares = Vec::with_capacity(self.certain.len());
        for &token in &self.certain {
            let own = std::mem::replace(&mut others[token as usize], M::zero());
            shares.push(own.over(&left.mass));
        }
        (shares, others)
    }

    pub(super) fn conditional(&self, tuple: &[u32]) -> ConditionalLaw<M> {
        let mut accepted = vec![M::zero(); tuple.len()];
        let (mut left, mut reached, mut across) = (self.start(), M::one(), false);
        for (j, stratum) in self.strata.strata().iter().enumerate() {
            let slot = self.certain.len() + j;
            let (kept, next) = self.turn(j, across, &left);
            let token = tuple.get(slot).copied();
            let place = stratum
                .iter()
                .position(|share| token == Some(token_id(share.token)));
            if let Some(place) = place {
                accepted[slot] = reached.times(&kept[place]);
                reached = reached.times(&kept[place].complement());
                across = stratum[place].across_right;
            }
            left = next;
        }
        let (shares, others) = self.last(&left);
        for (token, share) in self.certain.iter().zip(&shares) {
            if let Some(slot) = tuple.iter().position(|draft| draft == token) {
                accepted[slot].gain(&reached.times(share));
            }
        }
        ConditionalLaw {
            accepted,
            rejected: reached.times(&M::total(&shares).complement()),
            residual: normalised(&others).unwrap_or_else(|| self.p.clone()).into(),
        }
    }

    /// P(nothing is accepted), over all 2^(k-1) histories.
    pub(super) fn rejected(&self) -> M {
        self.refused(0, false, &self.start())
    }

    fn refused(&self, j: usize, across: bool, left: &Left<M>) -> M {
        let Some(stratum) = self.strata.strata().get(j) else {
            let (shares, _) = self.last(left);
            return M::total(&shares).complement();
        };
        let (kept, next) = self.turn(j, across, left);
        let mut refused = [M::zero(), M::zero()];
        for (share, kept) in stratum.iter().zip(&kept) {
            let mass = share.given[usize::from(across)].times(&kept.complement());
            refused[usize::from(share.across_right)].gain(&mass);
        }
        let mut sum = M::zero();
        for (mass, across) in refused.iter().zip([false, true]) {
            if !mass.is_nil() {
                sum.gain(&mass.times(&self.refused(j + 1, across, &next)));
            }
        }
        sum
    }
}
