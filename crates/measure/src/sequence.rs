//! Bounds on blocks of drafts, from text that was sampled from the target.

use super::data::BlockEstimate;
use specgap_core::rounds::{ChainRule, Survival};
use specgap_number::known::Kind;
use specgap_statistics::{Clustered, Estimate};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// Means over all blocks of so many consecutive tokens of some texts of what rules of one path
/// accept of them, and of bounds on what the best rule of K paths does. A text is (index in the
/// text, ln q/p if known), in any order.
///
/// # Formula
/// With r_t the product of q/p over a block's first t tokens: `block-optimum` (K = 1) and `lemma-5.1`
/// are the sum over t of `1 - (1 - min(1, r_t))^K`, as is `lower-bound`; `upper-bound` is that of
/// `min(1, K r_t)`. A rule keeps t tokens of some path with at most the probability that the target
/// writes them, and that a path has them: `min(p(x^t), 1 - (1 - q(x^t))^K) <= p(x^t) min(1, K r_t)`.
/// For K = 1 both bounds are the optimum, which `greedy-block` attains.
///
/// Text is sampled from the target, so that means over blocks are unbiased for sums over what the
/// target may write, averaged over the prefixes at which blocks begin.
pub(super) fn estimates(
    texts: &[&[(i64, Option<f64>)]],
    temperature: f64,
    block_length: usize,
    drafts: &[usize],
) -> Vec<BlockEstimate> {
    let runs: Vec<Vec<Vec<f64>>> = texts.iter().map(|text| runs(text)).collect();
    let drafts: Vec<usize> = std::iter::once(1)
        .chain(drafts.iter().copied().filter(|&k| k > 1))
        .collect();
    let mut rows = Vec::new();
    for length in lengths(block_length) {
        let mut row = |metric: &str, drafts: usize, accepted: &dyn Fn(&[f64]) -> f64| {
            let (expected_accepted_length, blocks) = mean(&runs, length, accepted)?;
            rows.push(BlockEstimate {
                temperature,
                length,
                drafts,
                metric: metric.to_owned(),
                expected_accepted_length,
                kind: Kind::Estimate,
                blocks,
            });
            Some(())
        };
        for &k in &drafts {
            let by_lemma = |block: &[f64]| along(block, |ratio| some_of(k, ratio.min(0.0).exp()));
            if length == block_length {
                let metric = if k == 1 { "block-optimum" } else { "lemma-5.1" };
                row(metric, k, &by_lemma);
            }
            for rule in ChainRule::all().filter(|_| k == 1) {
                row(rule.as_str(), k, &|block| {
                    let mut survival = Survival::new(rule);
                    let reached = block.iter().map(|ratio| {
                        survival.take(&ratio.exp());
                        *survival.reached()
                    });
                    reached.sum()
                });
            }
            row("lower-bound", k, &by_lemma);
            let at_most = |ratio: f64| (k as f64 * ratio.exp()).min(1.0);
            row("upper-bound", k, &|block| along(block, at_most));
        }
    }
    rows
}

/// Returns the lengths that are told of, ascending, that of blocks among them.
pub(super) fn lengths(block_length: usize) -> BTreeSet<usize> {
    [1, 2, 4, 8].into_iter().chain([block_length]).collect()
}

/// Of all blocks of a length, by texts; `None` where there is none.
fn mean(
    texts: &[Vec<Vec<f64>>],
    length: usize,
    accepted: &dyn Fn(&[f64]) -> f64,
) -> Option<(Estimate, usize)> {
    let mut blocks = 0;
    let sums = texts.iter().map(|runs| {
        let all = runs.iter().flat_map(|run| run.windows(length.max(1)));
        let (sum, count) = all.fold((0.0, 0), |(sum, count), block| {
            (sum + accepted(block), count + 1)
        });
        blocks += count;
        (sum, count as f64)
    });
    let sums: Vec<(f64, f64)> = sums.filter(|&(_, count)| count > 0.0).collect();
    (blocks > 0).then(|| (Clustered::new(sums.into_iter()).estimate(), blocks))
}

/// Stretches of consecutive indices at which the ratio is known.
fn runs(text: &[(i64, Option<f64>)]) -> Vec<Vec<f64>> {
    let mut sorted = text.to_vec();
    sorted.sort_by(order);
    let mut runs: Vec<Vec<f64>> = Vec::new();
    let mut expected = None;
    for (position, ratio) in sorted {
        match ratio {
            Some(ratio) => {
                match runs.last_mut() {
                    Some(run) if expected == Some(position) => run.push(ratio),
                    _ => runs.push(vec![ratio]),
                }
                expected = position.checked_add(1);
            }
            None => expected = None,
        }
    }
    runs
}

/// Orders by index; where one is there twice, whatever the order in which it was added.
pub(super) fn order(one: &(i64, Option<f64>), other: &(i64, Option<f64>)) -> Ordering {
    let ratio = |item: &(i64, Option<f64>)| item.1.unwrap_or(f64::NEG_INFINITY);
    one.0
        .cmp(&other.0)
        .then(one.1.is_some().cmp(&other.1.is_some()))
        .then(ratio(one).total_cmp(&ratio(other)))
}

/// A sum over a block's prefixes of something of ln r_t.
fn along(block: &[f64], of: impl Fn(f64) -> f64) -> f64 {
    let prefixes = block.iter().scan(0.0, |ratio, step| {
        *ratio += step;
        Some(of(*ratio))
    });
    prefixes.sum()
}

/// Returns `1 - (1 - h)^K` without cancellation for small h.
fn some_of(drafts: usize, hit: f64) -> f64 {
    // ln_1p(-1) is -inf, whose exponential is 0.
    -((drafts as f64) * (-hit).ln_1p()).exp_m1()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted_length(block: &[f64], drafts: usize) -> f64 {
        along(block, |ratio| some_of(drafts, ratio.min(0.0).exp()))
    }

    #[test]
    fn one_block_by_hand() {
        let half = 0.5f64.ln();
        // r = 1/2, 1, 2: min(1, r) = 1/2, 1, 1.
        let block = [half, -half, -half];
        assert!((accepted_length(&block, 1) - 2.5).abs() < 1e-15);
        // K = 2: 1 - 1/4, 1, 1.
        assert!((accepted_length(&block, 2) - 2.75).abs() < 1e-15);
        assert_eq!(accepted_length(&[f64::NEG_INFINITY], 3), 0.0);
        assert!((accepted_length(&[1e-20f64.ln()], 4) - 4e-20).abs() < 1e-33);
    }

    /// Rules of one path and bounds of K, by hand, of a text of three tokens.
    #[test]
    fn rules_and_bounds_of_every_length() {
        let half = 0.5f64.ln();
        let text = [(0, Some(half)), (1, Some(-half)), (2, Some(-half))];
        let rows = estimates(&[&text], 1.0, 3, &[2]);
        let of = |metric: &str, length, drafts| {
            let mut rows = rows.iter().filter(|one| one.metric == metric);
            let row = rows.find(|one| (one.length, one.drafts) == (length, drafts));
            row.map(|row| row.expected_accepted_length.mean).unwrap()
        };
        // r = 1/2, 1, 2, of q/p = 1/2, 2, 2.
        assert_eq!(of("token", 3, 1), 1.5);
        assert_eq!(of("block", 3, 1), 1.5);
        assert_eq!(of("greedy-block", 3, 1), of("block-optimum", 3, 1));
        assert_eq!(
            [of("lower-bound", 3, 2), of("upper-bound", 3, 2)],
            [2.75, 3.0]
        );
        assert_eq!(of("lemma-5.1", 3, 2), 2.75);
        // Two blocks of two: r = 1/2, 1 and 2, 4.
        assert_eq!(of("token", 2, 1), (1.0 + 2.0) / 2.0);
        assert_eq!(of("upper-bound", 1, 1), 2.5 / 3.0);
        // What a token offers too much makes up for the next one's loss, by block.
        let turned = [(0, Some(-half)), (1, Some(half)), (2, Some(half))];
        let turned = estimates(&[&turned], 1.0, 3, &[]);
        let means = turned.iter().filter(|one| one.length == 3);
        let means: Vec<f64> = means.map(|one| one.expected_accepted_length.mean).collect();
        assert_eq!(means, [2.5, 1.75, 2.5, 2.5, 2.5, 2.5]);
        let bounded = rows.iter().filter(|one| one.metric == "upper-bound");
        for upper in bounded {
            let lower = of("lower-bound", upper.length, upper.drafts);
            assert!(lower <= upper.expected_accepted_length.mean);
        }
        assert!(!rows.iter().any(|one| one.length > 3));
    }

    #[test]
    fn runs_break_at_gaps_and_unknown_tokens() {
        let text = [
            (3, Some(0.3)),
            (0, Some(0.0)),
            (1, Some(0.1)),
            (4, None),
            (5, Some(0.5)),
        ];
        assert_eq!(runs(&text), [vec![0.0, 0.1], vec![0.3], vec![0.5]]);
    }

    /// Exact expectation over a two-token language, against the sum over
    /// prefixes.
    #[test]
    fn the_estimate_is_the_sum_over_prefixes() {
        let (p, q) = ([0.7f64, 0.3], [0.4f64, 0.6]);
        for k in [1, 2, 3] {
            let mut expectation = 0.0;
            let mut sum = 0.0;
            for x in 0..8usize {
                let tokens: Vec<usize> = (0..3).map(|t| x >> t & 1).collect();
                let block: Vec<f64> = tokens.iter().map(|&i| (q[i] / p[i]).ln()).collect();
                let weight: f64 = tokens.iter().map(|&i| p[i]).product();
                expectation += weight * accepted_length(&block, k);
                for t in 1..=3 {
                    let target: f64 = tokens[..t].iter().map(|&i| p[i]).product();
                    let draft: f64 = tokens[..t].iter().map(|&i| q[i]).product();
                    let hit = (draft / target).min(1.0);
                    // Each prefix is met by 2^(3-t) strings.
                    let share = f64::from(1u32 << (3 - t));
                    sum += target * (1.0 - (1.0 - hit).powi(k as i32)) / share;
                }
            }
            assert!((expectation - sum).abs() < 1e-14, "{k}");
        }
    }
}
