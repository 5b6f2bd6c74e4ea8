//! The chain of tokens by p/q, its minimisers, and the levels between them.

use super::VocabularyMismatch;
use crate::distribution::{Draft, PROBABILITY_RELATIVE_ERROR, Target, TwoFloat};
use crate::enclosure::Enclosure;
use crate::optimum::bucket_scan::settle;
use std::cmp::Ordering;

/// Tokens between two minimisers of P - Q along the chain.
#[derive(Clone, Debug)]
pub(super) struct Span {
    /// Positions in the chain.
    pub(super) positions: std::ops::Range<usize>,
    /// Draft mass below the span, tokens of p = 0 included.
    pub(super) base: f64,
    /// `base` plus the draft mass of the span.
    pub(super) inside: f64,
    /// Probability that the highest token drafted is in the span.
    pub(super) touched: f64,
    /// Ratio at which targets are cut, so that they sum to `touched`; infinite
    /// where they do so as they are.
    pub(super) cut: f64,
    /// What tuples inside the span reject; `None` if nothing.
    pub(super) rejected: Option<f64>,
}

/// Tokens of q > 0 by rising p/q, and where the chain is cut.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    pub(super) order: Vec<u32>,
    /// p/q along the chain.
    pub(super) ratio: Vec<f64>,
    pub(super) spans: Vec<Span>,
    pub(super) optimum: Enclosure,
}

/// a^n - b^n for a = b + c, without cancellation.
fn power_difference(base: f64, added: f64, drafts: usize) -> f64 {
    let top = base + added;
    let mut sum = 0.0;
    let mut low = 1.0;
    for k in 0..drafts {
        sum += top.powi((drafts - 1 - k) as i32) * low;
        low *= base;
    }
    added * sum
}

/// Tokens of q > 0 by rising p/q.
pub(super) fn rising(target: &Target, draft: &Draft) -> Result<Vec<u32>, VocabularyMismatch> {
    let (p, q) = (target.probabilities(), draft.probabilities());
    if p.len() != q.len() {
        return Err(VocabularyMismatch {
            target: p.len(),
            draft: q.len(),
        });
    }
    let mut keyed: Vec<(f64, u32)> = (0u32..)
        .zip(p.iter().zip(q))
        .filter(|(_, (_, q))| **q > 0.0)
        .map(|(token, (p, q))| (p / q, token))
        .collect();
    keyed.sort_unstable_by(by_ratio);
    Ok(keyed.into_iter().map(|(_, token)| token).collect())
}

fn by_ratio(a: &(f64, u32), b: &(f64, u32)) -> Ordering {
    a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
}

impl Chain {
    /// Prefixes whose P - Q is within `tie` of the least count as minimisers. `order` has
    /// the tokens of q > 0 by rising p/q, up to rounding.
    pub(super) fn new(
        target: &[f64],
        draft: &[f64],
        order: &[u32],
        drafts: usize,
        tie: f64,
    ) -> Self {
        let mut keyed: Vec<(f64, u32)> = order
            .iter()
            .filter(|&&token| draft[token as usize] > 0.0)
            .map(|&token| (target[token as usize] / draft[token as usize], token))
            .collect();
        settle(&mut keyed, |a, b| by_ratio(a, b).is_lt());
        let count = keyed.len();
        let (mut held, mut inside) = (TwoFloat::ZERO, TwoFloat::ZERO);
        let mut below = Vec::with_capacity(count + 1);
        let mut difference = Vec::with_capacity(count + 1);
        below.push(0.0);
        difference.push(0.0);
        let mut nulls = 0;
        for (position, &(_, token)) in keyed.iter().enumerate() {
            let (p, q) = (target[token as usize], draft[token as usize]);
            held += p;
            inside += q;
            if p == 0.0 {
                nulls = position + 1;
            }
            let mass = inside.value().min(1.0);
            below.push(mass);
            difference.push((held - TwoFloat::from(mass.powi(drafts as i32))).value());
        }
        let mut above = vec![0.0; count + 1];
        let mut left = TwoFloat::ZERO;
        for (position, &(_, token)) in keyed.iter().enumerate().rev() {
            left += draft[token as usize];
            above[position] = left.value();
        }
        let least = difference.iter().copied().fold(0.0, f64::min);
        let mut cuts: Vec<usize> = (0..=count)
            .filter(|&k| difference[k] <= least + tie && (k == 0 || k >= nulls))
            .collect();
        // A chain of ties this long is a flat stretch of light tokens; a level a
        // token would be exact and slow, one for all is as good as the tie.
        if cuts.len() > 256 {
            let best = (0..=count).fold(0, |best, k| {
                if difference[k] < difference[best] {
                    k
                } else {
                    best
                }
            });
            cuts = vec![best.max(nulls)];
        }
        let rejecting = cuts.first().is_none_or(|&first| first > 0) && least < 0.0;
        let mut spans = Vec::new();
        let mut start = nulls;
        if rejecting && let Some(&first) = cuts.first() {
            spans.push(Span {
                positions: nulls..first,
                base: below[nulls],
                inside: below[first],
                touched: below[first].powi(drafts as i32),
                cut: f64::INFINITY,
                rejected: Some(-difference[first]),
            });
            start = first;
        }
        for &end in cuts.iter().skip(1).chain([&count]) {
            let end = end.max(start);
            if end > start {
                let added = if end == count {
                    above[start]
                } else {
                    (above[start] - above[end]).max(0.0)
                };
                let base = below[start];
                let touched = if end == count && base > 0.5 {
                    -(drafts as f64 * (-added.min(1.0)).ln_1p()).exp_m1()
                } else {
                    power_difference(base, added, drafts).min(1.0)
                };
                spans.push(Span {
                    positions: start..end,
                    base,
                    inside: base + added,
                    touched,
                    cut: f64::INFINITY,
                    rejected: None,
                });
            }
            start = end;
        }
        let (order, ratio): (Vec<u32>, Vec<f64>) = keyed
            .into_iter()
            .map(|(ratio, token)| (token, ratio))
            .unzip();
        for span in &mut spans {
            if span.rejected.is_none() {
                span.cut = water_level(
                    &order[span.positions.clone()],
                    &ratio[span.positions.clone()],
                    draft,
                    span.touched,
                );
            }
        }
        let error = (3.0 * drafts as f64 + 6.0) * f64::EPSILON + 2.0 * PROBABILITY_RELATIVE_ERROR;
        let value = 1.0 + least;
        Self {
            order,
            ratio,
            spans,
            optimum: Enclosure::rate(value, value - error, value + error),
        }
    }
}

/// The cut c with `sum of q_i min(r_i, c) = total`, ratios ascending; infinite if
/// the sum never reaches it.
fn water_level(tokens: &[u32], ratio: &[f64], draft: &[f64], total: f64) -> f64 {
    let mut above = vec![0.0; tokens.len()];
    let mut left = TwoFloat::ZERO;
    for (position, &token) in tokens.iter().enumerate().rev() {
        left += draft[token as usize];
        above[position] = left.value();
    }
    let mut taken = TwoFloat::ZERO;
    for (position, &token) in tokens.iter().enumerate() {
        let rest = (TwoFloat::from(total) - taken).value();
        if ratio[position] * above[position] >= rest {
            return (rest / above[position]).max(0.0);
        }
        taken += ratio[position] * draft[token as usize];
    }
    f64::INFINITY
}
