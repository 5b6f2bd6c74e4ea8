//! What becomes of a chain of drafts: lossless rules, and where their chances come from.
//! Trees are in `tree.rs`.
//!
//! A round of a chain has drafts x_1..x_K, drawn one after the other from the draft's laws q_1..q_K,
//! and the target's laws p_1..p_{K+1} on the same prefixes. A rule keeps the first tau
//! drafts and adds one token, so that the text has the target's law.

use super::sampling::{Law, at};
use specgap_core::rule::{RuleName, Verifies};

/// Where a round's chances come from: numbers in \[0, 1) or, in tests, every way that they may
/// fall.
pub(super) trait Chance {
    /// Tells whether something of this probability happens.
    fn below(&mut self, chance: f64) -> bool;

    /// A token of a law.
    fn token(&mut self, law: &Law) -> usize;

    /// An entry, in proportion to its weight; none if all are 0.
    fn of(&mut self, weights: &[f64]) -> Option<usize>;
}

impl<F: FnMut() -> f64 + ?Sized> Chance for F {
    fn below(&mut self, chance: f64) -> bool {
        self() < chance
    }

    fn token(&mut self, law: &Law) -> usize {
        law.draw(self())
    }

    fn of(&mut self, weights: &[f64]) -> Option<usize> {
        let total: f64 = weights.iter().sum();
        at(weights, self() * total)
    }
}

/// How a round ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Settled {
    /// tau: drafts that are kept, the first ones.
    pub accepted: usize,
    /// The token behind them: a correction, or the target's own where all were kept.
    pub token: usize,
}

/// Settles a round. `target` has one law more than there are drafts, `draft` has as many.
///
/// Token: the coins of drafts in order, then the token. Block: with
///
/// ```text
/// w_0 = 1,   w_j = min(1, w_{j-1} p_j(x_j)/q_j(x_j))
/// S_j = sum over x of max(w_j p_{j+1}(x) - q_{j+1}(x), 0)
/// h_j = S_j / (S_j + 1 - w_j)  for j < K,   h_K = w_K
/// ```
///
/// tau is the largest j whose coin falls below h_j; the coins are thrown from the last
/// draft to the first. Behind tau < K drafts comes a token from max(w p - q, 0), normalised,
/// with w = 1 for `token` and w = w_tau for `block`; behind all of them one from p.
///
/// A selected path is settled as a chain of its own: by `select-block` as by block, by
/// `select-greedy-block` with w_j = w_{j-1} p_j(x_j)/q_j(x_j), not cut at 1, and
///
/// ```text
/// h_j = min(1, S_j / sum over x of max(q_{j+1}(x) - w_j p_{j+1}(x), 0))  for j < K,
/// h_K = min(1, w_K)
/// ```
///
/// Nothing where the lists do not fit, or the rule is one of trees.
///
/// Time O(K V); memory O(V) in `scratch`.
pub(super) fn settle(
    rule: RuleName,
    [target, draft]: [&[Law]; 2],
    drafts: &[u32],
    chance: &mut dyn Chance,
    scratch: &mut Vec<f64>,
) -> Option<Settled> {
    let ratio = |place: usize| -> Option<f64> {
        let token = *drafts.get(place)? as usize;
        // Drawn from q, so that q of it is above 0.
        Some(target.get(place)?.probability(token) / draft.get(place)?.probability(token))
    };
    let selected = rule.entry().verifies == Verifies::Paths;
    let (accepted, scales) = if rule == RuleName::TOKEN {
        let mut accepted = 0;
        while accepted < drafts.len() && chance.below(ratio(accepted)?) {
            accepted += 1;
        }
        (accepted, [1.0, 1.0])
    } else if rule == RuleName::BLOCK || selected {
        let (scales, kept) = by_block(rule, [target, draft], drafts)?;
        let last = kept.iter().rposition(|&kept| chance.below(kept));
        let accepted = last.map_or(0, |last| last + 1);
        (accepted, within(*scales.get(accepted)?))
    } else {
        return None;
    };
    let p = target.get(accepted)?;
    let token = match draft.get(accepted).filter(|_| accepted < drafts.len()) {
        None => chance.token(p),
        Some(q) => {
            scratch.clear();
            scratch.extend(residual(p, q, scales));
            // Nothing is left only where p = q up to rounding, and p is then as good.
            match chance.of(scratch) {
                Some(token) => token,
                None => chance.token(p),
            }
        }
    };
    Some(Settled { accepted, token })
}

/// w_0, .., w_K of block verification or of greedy block verification, and h_1, .., h_K.
pub(super) fn by_block(
    rule: RuleName,
    [target, draft]: [&[Law]; 2],
    drafts: &[u32],
) -> Option<(Vec<f64>, Vec<f64>)> {
    let greedy = rule == RuleName::SELECT_GREEDY_BLOCK;
    let most = if greedy { f64::MAX } else { 1.0 };
    let (mut scales, mut kept) = (vec![1.0f64], Vec::with_capacity(drafts.len()));
    let mut scale = 1.0f64;
    for (place, &token) in drafts.iter().enumerate() {
        let p = target.get(place)?.probability(token as usize);
        scale = (scale * (p / draft.get(place)?.probability(token as usize))).min(most);
        scales.push(scale);
        kept.push(if place + 1 == drafts.len() {
            scale.min(1.0)
        } else {
            let (p, q) = (target.get(place + 1)?, draft.get(place + 1)?);
            let [p_scale, q_scale] = within(scale);
            let left: f64 = residual(p, q, [p_scale, q_scale]).sum();
            let spent = if greedy {
                residual(q, p, [q_scale, p_scale]).sum::<f64>()
            } else {
                left + 1.0 - scale
            };
            // Equal laws leave nothing: what follows is accepted then.
            if left == 0.0 && spent == 0.0 {
                1.0
            } else {
                (left / spent).min(1.0)
            }
        });
    }
    Some((scales, kept))
}

/// Scales of p and q in the ratio w : 1, of which the larger is 1.
pub(super) fn within(ratio: f64) -> [f64; 2] {
    [ratio.min(1.0), (1.0 / ratio).min(1.0)]
}

/// max(a p - b q, 0) of every token.
pub(super) fn residual(p: &Law, q: &Law, [a, b]: [f64; 2]) -> impl Iterator<Item = f64> {
    p.probabilities()
        .zip(q.probabilities())
        .map(move |(p, q)| (a * p - b * q).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::super::every::{Every, Pair};
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use std::collections::BTreeMap;

    /// Goes through every draft and coin of a round: what it writes has the target's law. How many
    /// of so many drafts it keeps in the mean.
    fn kept(rule: RuleName, pair: &Pair, drafted: usize) -> f64 {
        let (mut written, mut kept) = (BTreeMap::new(), 0.0);
        let mut chance = Every::default();
        loop {
            let ([mut p, q], drafts) = pair.chain(&[], drafted, &mut chance);
            let mut text: Vec<usize> = drafts.iter().map(|&token| token as usize).collect();
            p.push(pair.law(0, &text));
            let settled = settle(rule, [&p, &q], &drafts, &mut chance, &mut Vec::new()).unwrap();
            text.truncate(settled.accepted);
            text.push(settled.token);
            *written.entry(text).or_insert(0.0) += chance.weight();
            kept += chance.weight() * settled.accepted as f64;
            if !chance.next() {
                break;
            }
        }
        let apart = pair.apart(written, drafted + 1);
        assert!(apart < 1e-12, "{rule} {drafted}: {apart}");
        kept
    }

    /// 111/64 and 123/64 are the values of three drafts that block verification's own
    /// enumeration has; of one draft both are the overlap. Equal laws keep all, disjoint ones none.
    #[test]
    fn a_round_writes_the_targets_law_and_keeps_what_the_formulas_say() {
        let mut rng = ChaCha8Rng::seed_from_u64(20);
        for (rule, formulas) in [
            (RuleName::TOKEN, [0.75, 21.0 / 16.0, 111.0 / 64.0]),
            (RuleName::BLOCK, [0.75, 11.0 / 8.0, 123.0 / 64.0]),
        ] {
            for (drafted, formula) in (1..).zip(formulas) {
                let (p, some) = ([0.5, 0.5, 0.0], [0.75, 0.25, 0.0]);
                for (q, expected) in [(some, formula), (p, drafted as f64), ([0.0, 0.0, 1.0], 0.0)]
                {
                    let found = kept(rule, &Pair::everywhere(drafted + 1, [&p, &q]), drafted);
                    let wrong = (found - expected).abs();
                    assert!(wrong < 1e-12, "{rule} {drafted}: {found}, {expected}");
                }
                kept(rule, &Pair::random(&mut rng, 3, drafted + 1), drafted);
            }
        }
    }
}
