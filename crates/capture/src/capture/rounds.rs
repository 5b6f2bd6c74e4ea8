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
    /// Whether something of this probability happens.
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
    use super::*;
    use crate::capture::Sampling;
    use std::collections::BTreeMap;

    /// p = (1/2, 1/2) and q = (3/4, 1/4) at every prefix.
    fn laws() -> (Law, Law) {
        let sampling = Sampling::new(1.0, None, None).unwrap();
        let (mut p, mut q) = (Law::default(), Law::default());
        p.set(&[0.0, 0.0], &sampling).unwrap();
        q.set(&[3f32.ln(), 0.0], &sampling).unwrap();
        (p, q)
    }

    /// Every way that a round can end, with its probability: the token sequence that it
    /// writes. Drafts go through all sequences. The k-th random number of the rule goes
    /// through the midpoints of `parts[k]` equal parts, as many as make all chances that
    /// it may be held against whole numbers of parts, so that the sum over them is the
    /// rule's law itself and no sample of it.
    fn every_round(rule: RuleName, parts: &[usize]) -> BTreeMap<Vec<usize>, f64> {
        let (p, q) = laws();
        let length = parts.len() - 1;
        let (target, draft) = (vec![p; length + 1], vec![q; length]);
        let ways: usize = parts.iter().product();
        let mut law = BTreeMap::new();
        for code in 0..1u32 << length {
            let drafts: Vec<u32> = (0..length).map(|place| code >> place & 1).collect();
            let chance: f64 = drafts.iter().map(|&x| [0.75, 0.25][x as usize]).product();
            for way in 0..ways {
                let (mut rest, mut left) = (way, parts.iter());
                let mut uniform = || {
                    let parts = left.next().unwrap();
                    let part = rest % parts;
                    rest /= parts;
                    (part as f64 + 0.5) / *parts as f64
                };
                let laws = [&target[..], &draft];
                let settled = settle(rule, laws, &drafts, &mut uniform, &mut Vec::new()).unwrap();
                let kept = drafts[..settled.accepted].iter();
                let mut text: Vec<usize> = kept.map(|&x| x as usize).collect();
                text.push(settled.token);
                *law.entry(text).or_insert(0.0) += chance / ways as f64;
            }
        }
        law
    }

    fn expected_length(law: &BTreeMap<Vec<usize>, f64>) -> f64 {
        law.iter()
            .map(|(text, mass)| (text.len() - 1) as f64 * mass)
            .sum()
    }

    /// The law of the first `length` + 1 tokens when what a round does not write is drawn
    /// from p, which for these laws is a fair coin.
    fn output(law: &BTreeMap<Vec<usize>, f64>, length: usize) -> Vec<f64> {
        let mut output = vec![0.0; 1 << (length + 1)];
        for (text, mass) in law {
            let missing = length + 1 - text.len();
            let begin = text.iter().fold(0, |code, token| 2 * code + token) << missing;
            for entry in &mut output[begin..begin + (1 << missing)] {
                *entry += mass / f64::from(1 << missing);
            }
        }
        output
    }
    /// Chances are 2/3 and 1 with `token`; with `block`, 8/27, 4/9, 2/3, 8/9 and 1 of the
    /// last coin, 1/5, 0 and 1 of the others; 1/2 of the token behind all drafts.
    const ROUNDS: [(RuleName, &[usize], f64); 6] = [
        (RuleName::TOKEN, &[6, 6], 0.75),
        (RuleName::TOKEN, &[6, 6, 6], 21.0 / 16.0),
        (RuleName::TOKEN, &[6, 6, 6, 6], 111.0 / 64.0),
        (RuleName::BLOCK, &[6, 2], 0.75),
        (RuleName::BLOCK, &[18, 10, 2], 11.0 / 8.0),
        (RuleName::BLOCK, &[54, 10, 10, 2], 123.0 / 64.0),
    ];

    #[test]
    fn what_a_round_writes_has_the_targets_law() {
        for (rule, parts, _) in ROUNDS {
            let length = parts.len() - 1;
            let law = every_round(rule, parts);
            for (code, mass) in output(&law, length).iter().enumerate() {
                let p = 0.5f64.powi(length as i32 + 1);
                assert!(
                    (mass - p).abs() < 1e-12,
                    "{rule:?} {length}: {code}: {mass}"
                );
            }
        }
    }

    /// 111/64 and 123/64 are the values of three drafts that block verification's own
    /// enumeration has; of one draft both are the overlap.
    #[test]
    fn as_many_drafts_are_kept_as_the_formulas_say() {
        for (rule, parts, expected) in ROUNDS {
            let found = expected_length(&every_round(rule, parts));
            assert!(
                (found - expected).abs() < 1e-12,
                "{rule:?}: {found}, {expected}"
            );
        }
    }

    #[test]
    fn equal_and_disjoint_laws_keep_all_and_none() {
        let sampling = Sampling::new(1.0, None, None).unwrap();
        let law = |logits: &[f32]| {
            let mut law = Law::default();
            law.set(logits, &sampling).unwrap();
            law
        };
        let masked = f32::NEG_INFINITY;
        let (p, q) = (law(&[0.3, 0.1, masked]), law(&[masked, masked, 0.0]));
        for rule in [RuleName::TOKEN, RuleName::BLOCK] {
            let settled = |target: &Law, draft: &Law, drafts: &[u32], u: f64| {
                let (target, draft) = (vec![target.clone(); 3], vec![draft.clone(); 2]);
                let mut uniform = || u;
                settle(
                    rule,
                    [&target, &draft],
                    drafts,
                    &mut uniform,
                    &mut Vec::new(),
                )
                .unwrap()
            };
            for u in [0.0, 0.25, 0.999_999] {
                let all = settled(&p, &p, &[1, 0], u);
                assert_eq!(all.accepted, 2, "{rule:?}");
                assert_eq!(all.token, p.draw(u));
                let none = settled(&p, &q, &[2, 2], u);
                assert_eq!((none.accepted, none.token), (0, p.draw(u)), "{rule:?}");
            }
        }
    }
}
