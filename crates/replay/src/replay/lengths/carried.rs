//! Rules whose rounds hang together, along texts. `carried` needs the text's ratios alone,
//! `carried-block` and `greedy-block` whole rows, one after the other.

use super::super::ReplayError;
use super::super::read::{Text, Texts};
use super::outcome::{Outcome, Steps};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use specgap_base::side_by_side;
use specgap_core::rounds::floats::carried_starts;
use specgap_core::rounds::{BlockCarry, greedy_block_starts, thin};
use specgap_core::rule::RuleName;
use specgap_log::log::Log;

/// A rule whose rounds hang together.
pub(super) struct Linked {
    pub(super) rule: RuleName,
    /// Lengths, each with its rounds by prompt.
    by_length: Vec<(usize, Vec<Outcome>)>,
}

impl Linked {
    /// Replays a rule for each of some lengths. `None` where rows list some tokens only and the rule
    /// needs all.
    ///
    /// # Errors
    /// As [`Texts::read`].
    ///
    /// # Complexity
    /// O(N K) a length for `carried`, O(N V K) for the others, in texts side by side.
    pub(super) fn replayed(
        rule: RuleName,
        logs: &[Log],
        texts: &Texts,
        lengths: &[usize],
    ) -> Result<Option<Self>, ReplayError> {
        let rounds = if rule == RuleName::CARRIED_BLOCK {
            carried_block(logs, texts, lengths)?
        } else if rule == RuleName::GREEDY_BLOCK {
            greedy_block(logs, texts, lengths)?
        } else {
            Some(carried(texts, lengths)?)
        };
        let with = |rounds: Vec<Vec<Outcome>>| Self {
            rule,
            by_length: lengths.iter().copied().zip(rounds).collect(),
        };
        Ok(rounds.map(with))
    }

    /// Returns the rounds of a length, by prompt.
    pub(super) fn of(&self, length: usize) -> Option<&[Outcome]> {
        let mut all = self.by_length.iter();
        Some(&all.find(|(one, _)| *one == length)?.1)
    }
}

fn carried(texts: &Texts, lengths: &[usize]) -> Result<Vec<Vec<Outcome>>, ReplayError> {
    along(texts, lengths, &|_, text| {
        let starts = |&most: &usize| carried_starts(&text.ratios, most);
        Ok(lengths.iter().map(starts).collect())
    })
}

fn carried_block(
    logs: &[Log],
    texts: &Texts,
    lengths: &[usize],
) -> Result<Option<Vec<Vec<Outcome>>>, ReplayError> {
    along_rows(texts, lengths, &|_, text| {
        let mut carries: Vec<BlockCarry<f64>> =
            lengths.iter().map(|&most| BlockCarry::new(most)).collect();
        let mut starts = vec![Vec::with_capacity(text.places.len()); lengths.len()];
        texts.rows_along(logs, text, &mut |rows, token, _| {
            for (carry, starts) in carries.iter_mut().zip(&mut starts) {
                starts.push(*carry.start());
                carry.pass(Some((rows.target, rows.draft)), token);
            }
        })?;
        Ok(starts)
    })
}

/// Histories of rounds of `greedy-block` that are followed in front of a token.
const HISTORIES: usize = 32;

/// Rounds of `greedy-block` change each other's target: of more histories than [`HISTORIES`] some
/// are drawn, by the same numbers for the same texts, so that the calls are unbiased. A text's rows
/// are in memory.
fn greedy_block(
    logs: &[Log],
    texts: &Texts,
    lengths: &[usize],
) -> Result<Option<Vec<Vec<Outcome>>>, ReplayError> {
    along_rows(texts, lengths, &|number, text| {
        let mut read: Vec<([Vec<f64>; 2], usize)> = Vec::with_capacity(text.places.len());
        texts.rows_along(logs, text, &mut |rows, token, _| {
            read.push(([rows.target.to_vec(), rows.draft.to_vec()], token));
        })?;
        let rows: Vec<(&[f64], &[f64], usize)> = (read.iter())
            .map(|([p, q], token)| (&p[..], &q[..], *token))
            .collect();
        let starts = lengths.iter().map(|&most| {
            let mut rng = ChaCha8Rng::seed_from_u64(number);
            greedy_block_starts(&rows, most, &mut |weights| {
                thin(weights, HISTORIES, rng.random());
            })
        });
        Ok(starts.collect())
    })
}

/// Of a text, which is told with its number, for each of some lengths the probability that a round
/// starts in front of each token.
type StartsAlong<'a> = dyn Fn(u64, &Text) -> Result<Vec<Vec<f64>>, ReplayError> + Sync + 'a;

/// `None` where rows list some tokens only.
fn along_rows(
    texts: &Texts,
    lengths: &[usize],
    starts: &StartsAlong<'_>,
) -> Result<Option<Vec<Vec<Outcome>>>, ReplayError> {
    match texts.are_whole() {
        true => Ok(Some(along(texts, lengths, starts)?)),
        false => Ok(None),
    }
}

/// Rounds for so many lengths along each text, added up by prompt.
fn along(
    texts: &Texts,
    lengths: &[usize],
    starts: &StartsAlong<'_>,
) -> Result<Vec<Vec<Outcome>>, ReplayError> {
    let numbered: Vec<(u64, &Text)> = (0..).zip(&texts.texts).collect();
    let played = |&(number, text): &(u64, &Text)| -> Result<Vec<Outcome>, ReplayError> {
        let starts = starts(number, &texts.whole(text))?;
        let each = lengths.iter().zip(&starts);
        Ok(each.map(|(&most, starts)| rounds(starts, most)).collect())
    };
    let each = side_by_side::each_or_stop(&numbered, played)?;
    let mut sums = vec![vec![Outcome::default(); texts.clusters]; lengths.len()];
    for (text, outcomes) in texts.texts.iter().zip(each) {
        for (sums, outcome) in sums.iter_mut().zip(outcomes) {
            sums[text.cluster].add(&outcome);
        }
    }
    Ok(sums)
}

/// Rounds that start so often in front of each token and draft `most` tokens: fewer at a text's end,
/// whose last token is the target's.
fn rounds(starts: &[f64], most: usize) -> Outcome {
    let mut rounds = vec![0.0; most + 1];
    for (behind, start) in starts.iter().rev().enumerate() {
        rounds[most.min(behind)] += start;
    }
    Outcome {
        calls: starts.iter().sum(),
        least: Steps {
            rounds,
            unused: 0.0,
        },
        most: Steps::default(),
    }
}
