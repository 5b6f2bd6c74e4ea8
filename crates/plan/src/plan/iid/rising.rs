//! Tokens by rising p/q, the prefixes that minimise P - Q, and the tiers between them.

use super::tier::power_quotient;
use multiversion::multiversion;
use specgap_number::distribution::{
    Draft, PROBABILITY_RELATIVE_ERROR, Rows, Target, UnitSum, by_rising_ratio,
};
use specgap_number::known::Known;
use specgap_number::scratch::Scratch;

/// A tier: the tokens between two minimisers of P - Q.
#[derive(Clone, Debug)]
pub(super) struct Span {
    /// Positions in the order.
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

/// Tokens of q > 0 by rising p/q, with sums along the way: all that plans of different
/// n have in common.
#[derive(Clone, Debug)]
pub struct Rising {
    pub(super) order: Scratch<u32>,
    /// p/q in that order.
    pub(super) ratio: Scratch<f64>,
    /// p and q in that order.
    pub(super) target: Scratch<f64>,
    pub(super) mass: Scratch<f64>,
    /// Target and draft mass of every prefix, the latter at most 1.
    held: Scratch<f64>,
    below: Scratch<f64>,
    /// Draft mass of what is not in a prefix.
    above: Scratch<f64>,
    /// Tokens of p = 0 are before this.
    nulls: usize,
}

/// Where the order is cut for n drafts.
#[derive(Clone, Debug)]
pub(super) struct Tiers {
    pub(super) spans: Vec<Span>,
    pub(super) optimum: Known,
}

/// Sums over what is left from each place on, and 0 at the end.
fn from_here_on(masses: &[f64]) -> Scratch<f64> {
    let mut above = Scratch::filled(masses.len() + 1, 0.0);
    let mut left = UnitSum::default();
    for (above, &mass) in above[..masses.len()].iter_mut().zip(masses).rev() {
        left.add(mass);
        *above = left.value();
    }
    above
}

impl Rising {
    /// Sorts the tokens. O(V), but for what tokens of nearly one ratio take to be sorted.
    pub fn sorted(target: &Target, draft: &Draft) -> Self {
        let (p, q) = (target.probabilities(), draft.probabilities());
        let pairs = by_rising_ratio(Rows {
            target: p,
            draft: q,
        });
        let order: Scratch<u32> = pairs.iter().map(|&(_, token)| token).collect();
        let in_order = |row: &[f64]| -> Scratch<f64> {
            order.iter().map(|&token| row[token as usize]).collect()
        };
        let (target, mass) = (in_order(p), in_order(q));
        // A ratio may be 0 by underflow too.
        let zeros = pairs.partition_point(|&(ratio, _)| ratio == 0.0);
        let nulls = (target[..zeros].iter().rposition(|&p| p == 0.0)).map_or(0, |last| last + 1);
        Self {
            ratio: pairs.iter().map(|&(ratio, _)| ratio).collect(),
            held: up_to_here(&target, f64::INFINITY),
            below: up_to_here(&mass, 1.0),
            above: from_here_on(&mass),
            order,
            target,
            mass,
            nulls,
        }
    }
}

/// Sums over what is before each place, none of them above `most`.
fn up_to_here(masses: &[f64], most: f64) -> Scratch<f64> {
    let mut sums = Scratch::filled(masses.len() + 1, 0.0);
    let mut sum = UnitSum::default();
    for (held, &mass) in sums[1..].iter_mut().zip(masses) {
        sum.add(mass);
        let value = sum.value();
        *held = if value < most { value } else { most };
    }
    sums
}

/// P - Q of every prefix, its mass to the power n by repeated squaring.
#[multiversion(targets = "simd")]
fn differences(held: &[f64], below: &[f64], drafts: usize, out: &mut [f64]) {
    const WIDE: usize = 16;
    let rows = held.chunks(WIDE).zip(below.chunks(WIDE));
    for (out, (held, below)) in out.chunks_mut(WIDE).zip(rows) {
        let mut square = [0.0; WIDE];
        square[..below.len()].copy_from_slice(below);
        let mut power = [1.0; WIDE];
        let mut left = drafts;
        while left > 0 {
            if left & 1 == 1 {
                for lane in 0..WIDE {
                    power[lane] *= square[lane];
                }
            }
            left >>= 1;
            if left > 0 {
                for entry in &mut square {
                    *entry *= *entry;
                }
            }
        }
        for ((out, held), power) in out.iter_mut().zip(held).zip(power) {
            *out = held - power;
        }
    }
}

impl Tiers {
    /// Prefixes whose P - Q is within `tie` of the least count as minimisers.
    pub(super) fn new(rising: &Rising, drafts: usize, tie: f64) -> Self {
        let Rising {
            below,
            above,
            nulls,
            ..
        } = rising;
        let (count, nulls) = (rising.order.len(), *nulls);
        let mut difference = Scratch::filled(count + 1, 0.0);
        differences(&rising.held, below, drafts, &mut difference);
        let least = difference.iter().copied().fold(0.0, f64::min);
        let mut cuts: Vec<usize> = (0..=count)
            .filter(|&k| difference[k] <= least + tie && (k == 0 || k >= nulls))
            .collect();
        // So many ties in a row are a flat stretch of light tokens; a tier a
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
                    (added * power_quotient(base, base + added, drafts)).min(1.0)
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
        for span in &mut spans {
            if span.rejected.is_none() {
                span.cut = water_level(rising, span);
            }
        }
        // Both sums, the power and the difference are rounded: at most 2n + 2 times.
        let error = (3.0 * drafts as f64 + 6.0) * f64::EPSILON + 2.0 * PROBABILITY_RELATIVE_ERROR;
        let value = 1.0 + least;
        Self {
            spans,
            optimum: Known::rate(value, value - error, value + error),
        }
    }
}

/// The cut c with `sum of q_i min(r_i, c) = touched` over a span; infinite if the sum
/// never reaches it.
fn water_level(rising: &Rising, span: &Span) -> f64 {
    let positions = span.positions.clone();
    let own;
    let above = if positions.end == rising.order.len() {
        &rising.above[positions.start..]
    } else {
        own = from_here_on(&rising.mass[positions.clone()]);
        &own
    };
    let tokens = rising.ratio[positions.clone()]
        .iter()
        .zip(&rising.mass[positions]);
    let mut taken = UnitSum::default();
    for ((ratio, mass), above) in tokens.zip(above.iter()) {
        let rest = taken.short_of(span.touched);
        if ratio * above >= rest {
            return (rest / above).max(0.0);
        }
        taken.add(ratio * mass);
    }
    f64::INFINITY
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use specgap_number::distribution::TwoFloat;

    /// Sums along the order and P - Q against double-double ones, for masses from 1e-300.
    #[test]
    fn sums_along_the_order_are_rounded_once() {
        let mut rng = ChaCha8Rng::seed_from_u64(12);
        for (count, decades) in [(1, 0.0), (17, 300.0), (4000, 8.0), (4000, 60.0)] {
            let mut row = || -> Vec<f64> {
                let row: Vec<f64> = (0..count)
                    .map(|_| 10f64.powf(-decades * rng.random::<f64>()))
                    .collect();
                let sum: f64 = row.iter().sum();
                row.iter().map(|x| x / sum).collect()
            };
            let (p, q) = (row(), row());
            let (p, q) = (Target::new(&p).unwrap(), Draft::new(&q).unwrap());
            let rising = Rising::sorted(&p, &q);
            let order = rising.order.clone();
            for (place, &token) in order.iter().enumerate() {
                assert_eq!(rising.target[place], p.probabilities()[token as usize]);
                assert_eq!(rising.mass[place], q.probabilities()[token as usize]);
            }
            assert!(rising.ratio.is_sorted());
            let (mut held, mut inside) = (TwoFloat::ZERO, TwoFloat::ZERO);
            let small = count as f64 * f64::EPSILON;
            let close = |a: f64, b: TwoFloat| {
                let error = (TwoFloat::from(a) - b).value().abs();
                let relative = if a < small { small } else { f64::EPSILON };
                assert!(error <= relative * a, "{a:e} {b:?}");
            };
            let mut difference = vec![0.0; rising.held.len()];
            differences(&rising.held, &rising.below, 3, &mut difference);
            for (k, &token) in order.iter().enumerate() {
                held += p.probabilities()[token as usize];
                inside += q.probabilities()[token as usize];
                close(rising.held[k + 1], held);
                if inside.value() <= 1.0 {
                    close(rising.below[k + 1], inside);
                }
                let exact = (held - inside * inside * inside).value();
                assert!((difference[k + 1] - exact).abs() <= 4.0 * f64::EPSILON);
            }
            let mut left = TwoFloat::ZERO;
            for (k, &token) in order.iter().enumerate().rev() {
                left += q.probabilities()[token as usize];
                close(rising.above[k], left);
            }
        }
    }

    #[test]
    fn the_cut_meets_its_total() {
        let p = Target::new(&[0.05, 0.15, 0.3, 0.5]).unwrap();
        let q = Draft::new(&[0.4, 0.3, 0.2, 0.1]).unwrap();
        let rising = Rising::sorted(&p, &q);
        for end in [3, 4] {
            for touched in [0.01, 0.1, 0.2, 0.4] {
                let span = Span {
                    positions: 1..end,
                    base: 0.4,
                    inside: 1.0,
                    touched,
                    cut: f64::INFINITY,
                    rejected: None,
                };
                let cut = water_level(&rising, &span);
                let sum: f64 = (1..end)
                    .map(|k| rising.mass[k] * rising.ratio[k].min(cut))
                    .sum();
                assert!((sum - touched).abs() < 1e-15, "{end} {touched}: {sum}");
            }
        }
    }
}
