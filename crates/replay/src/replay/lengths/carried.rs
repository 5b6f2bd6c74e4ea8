//! The rule `carried-block` along texts. It needs whole rows, one after the other.

use super::super::ReplayError;
use super::super::position::Rest;
use super::super::read::{Text, Texts};
use specgap_base::side_by_side;
use specgap_core::rounds::BlockCarry;
use specgap_log::log::Log;

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
) -> Result<Option<Vec<Vec<f64>>>, ReplayError> {
    let mut places = texts.texts.iter().flat_map(|text| &text.places);
    if !places.all(|place| place.rest == Rest::None) {
        return Ok(None);
    }
    let of = |text: &Text| -> Result<Vec<f64>, ReplayError> {
        let mut carries: Vec<BlockCarry<f64>> =
            lengths.iter().map(|&most| BlockCarry::new(most)).collect();
        let mut calls = vec![0.0; lengths.len()];
        texts.rows_along(logs, text, &mut |rows, token| {
            for (carry, calls) in carries.iter_mut().zip(&mut calls) {
                *calls += carry.start();
                carry.pass(Some((rows.target, rows.draft)), token);
            }
        })?;
        Ok(calls)
    };
    let each = side_by_side::each_or_stop(&texts.texts, of)?;
    let mut sums = vec![vec![0.0; texts.clusters]; lengths.len()];
    for (text, calls) in texts.texts.iter().zip(each) {
        for (sums, calls) in sums.iter_mut().zip(calls) {
            sums[text.cluster] += calls;
        }
    }
    Ok(Some(sums))
}
