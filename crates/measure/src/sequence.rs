//! Bounds on blocks of drafts, from text that was sampled from the target.

use super::data::BlockEstimate;
use specgap_number::known::Kind;
use specgap_statistics::Clustered;
use std::cmp::Ordering;

/// Mean over all blocks of L consecutive tokens of some texts of
/// `sum over t <= L of 1 - (1 - min(1, r_t))^K`, r_t being the product of q/p over the
/// block's first t tokens. A text is (index in the text, ln q/p if known), in any order.
///
/// Text is sampled from the target, so that this is an unbiased estimate of
/// `sum over t, x^t of p(x^t) [1 - (1 - min(1, q(x^t)/p(x^t)))^K]`, averaged over the
/// prefixes at which blocks begin. For K = 1 that is `sum of min(p, q)` over prefixes, the
/// optimum of one drafted block.
pub(super) fn estimates(
    texts: &[&[(i64, Option<f64>)]],
    temperature: f64,
    length: usize,
    drafts: &[usize],
) -> Vec<BlockEstimate> {
    let mut rows = Vec::new();
    for k in std::iter::once(1).chain(drafts.iter().copied().filter(|&k| k > 1)) {
        let mut blocks = 0;
        let clusters: Vec<(f64, f64)> = texts
            .iter()
            .map(|text| {
                let (mut sum, mut count) = (0.0, 0usize);
                for run in runs(text) {
                    for block in run.windows(length.max(1)) {
                        sum += accepted_length(block, k);
                        count += 1;
                    }
                }
                blocks += count;
                (sum, count as f64)
            })
            .filter(|&(_, count)| count > 0.0)
            .collect();
        if blocks == 0 {
            continue;
        }
        rows.push(BlockEstimate {
            temperature,
            length,
            drafts: k,
            metric: if k == 1 { "block-optimum" } else { "lemma-5.1" }.to_owned(),
            expected_accepted_length: Clustered::new(clusters.iter().copied()).estimate(),
            kind: Kind::Estimate,
            blocks,
        });
    }
    rows
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

/// `sum over t of 1 - (1 - min(1, r_t))^K` of one block.
fn accepted_length(block: &[f64], drafts: usize) -> f64 {
    let mut log_ratio = 0.0;
    let mut sum = 0.0;
    for step in block {
        log_ratio += step;
        let hit = log_ratio.min(0.0).exp();
        // 1 - (1 - h)^K without cancellation for small h; ln_1p(-1) is -inf,
        // whose exponential is 0.
        sum += -((drafts as f64) * (-hit).ln_1p()).exp_m1();
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

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
