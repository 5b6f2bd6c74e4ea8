//! The rules `carried-block` and `greedy-block` along texts. They need whole rows, one after the
//! other.

use super::super::ReplayError;
use super::super::read::{Text, Texts};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use specgap_base::side_by_side;
use specgap_core::rounds::{BlockCarry, greedy_block_starts, thin};
use specgap_log::log::Log;

/// Lengths, each with calls by prompt.
pub(super) type ByLength = Vec<(usize, Vec<f64>)>;

/// Calls of the rule along every text, added up by prompt, for each of some lengths. `None` where
/// rows list some tokens only: what a row gives out needs all.
///
/// # Errors
/// As [`Texts::read`].
///
/// # Complexity
/// O(N V K) a length, in texts side by side.
pub(super) fn carried_block_calls(
    logs: &[Log],
    texts: &Texts,
    lengths: &[usize],
) -> Result<Option<ByLength>, ReplayError> {
    along(texts, lengths, &|_, text| {
        let mut carries: Vec<BlockCarry<f64>> =
            lengths.iter().map(|&most| BlockCarry::new(most)).collect();
        let mut calls = vec![0.0; lengths.len()];
        texts.rows_along(logs, text, &mut |rows, token, _| {
            for (carry, calls) in carries.iter_mut().zip(&mut calls) {
                *calls += carry.start();
                carry.pass(Some((rows.target, rows.draft)), token);
            }
        })?;
        Ok(calls)
    })
}

/// Histories of rounds of `greedy-block` that are followed in front of a token.
const HISTORIES: usize = 32;

/// The same of `greedy-block`. Its rounds change each other's target: of more histories than
/// [`HISTORIES`] some are drawn, by the same numbers for the same texts, so that the calls are
/// unbiased.
///
/// # Errors
/// As [`Texts::read`].
///
/// # Complexity
/// O(N V K) a length, history and change that it carries; a text's rows in memory.
pub(super) fn greedy_block_calls(
    logs: &[Log],
    texts: &Texts,
    lengths: &[usize],
) -> Result<Option<ByLength>, ReplayError> {
    along(texts, lengths, &|number, text| {
        let mut read: Vec<([Vec<f64>; 2], usize)> = Vec::with_capacity(text.places.len());
        texts.rows_along(logs, text, &mut |rows, token, _| {
            read.push(([rows.target.to_vec(), rows.draft.to_vec()], token));
        })?;
        let rows: Vec<(&[f64], &[f64], usize)> = (read.iter())
            .map(|([p, q], token)| (&p[..], &q[..], *token))
            .collect();
        let calls = lengths.iter().map(|&most| {
            let mut rng = ChaCha8Rng::seed_from_u64(number);
            let starts = greedy_block_starts(&rows, most, &mut |weights| {
                thin(weights, HISTORIES, rng.random());
            });
            starts.iter().sum()
        });
        Ok(calls.collect())
    })
}

/// Calls along a text, which is told with its number, for each of some lengths.
type CallsAlong<'a> = dyn Fn(u64, &Text) -> Result<Vec<f64>, ReplayError> + Sync + 'a;

/// Calls for so many lengths along each text, added up by prompt.
/// `None` where rows list some tokens only.
fn along(
    texts: &Texts,
    lengths: &[usize],
    calls: &CallsAlong<'_>,
) -> Result<Option<ByLength>, ReplayError> {
    if !texts.are_whole() {
        return Ok(None);
    }
    let numbered: Vec<(u64, &Text)> = (0..).zip(&texts.texts).collect();
    let each = side_by_side::each_or_stop(&numbered, |&(number, text)| calls(number, text))?;
    let mut sums = vec![vec![0.0; texts.clusters]; lengths.len()];
    for (text, calls) in texts.texts.iter().zip(each) {
        for (sums, calls) in sums.iter_mut().zip(calls) {
            sums[text.cluster] += calls;
        }
    }
    Ok(Some(lengths.iter().copied().zip(sums).collect()))
}
