//! Rounds of drafted chains along text that was sampled from the target.

use super::data::{ChainRounds, RoundsOfLength};
use super::sequence::{lengths, order};
use super::summary::Cluster;
use specgap_core::rounds::floats::{accepted_everywhere, replay_each};
use specgap_core::rounds::{ChainRule as Rule, DraftLength, FixedLength};
use specgap_statistics::{Clustered, Estimate};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// What stands for q/p at tokens that are not listed, if all of them are accepted.
const ACCEPTED: f64 = 1e100;

/// A text from its first token on: q/p, and whether the token is listed.
type Text = Vec<(f64, bool)>;

/// Token, block and greedy-block verification along some texts, each prompt's in a cluster.
/// `Err` says why nothing can be told; `Ok(None)` where there is no text.
pub(super) fn rounds<'a>(
    clusters: impl Iterator<Item = &'a Cluster>,
    temperature: f64,
    block_length: usize,
) -> Result<Option<ChainRounds>, String> {
    let texts: Vec<Text> = clusters.map(whole).collect::<Result<_, _>>()?;
    if texts.is_empty() {
        return Ok(None);
    }
    let longest = texts.iter().map(Vec::len).max().unwrap_or(0);
    let lengths: Vec<usize> = lengths(block_length).range(..=longest).copied().collect();
    let most = lengths.last().copied().unwrap_or(0);
    let listed = |text: &Text| text.iter().filter(|(_, listed)| *listed).count();
    let tokens: usize = texts.iter().map(Vec::len).sum();
    let unlisted = tokens - texts.iter().map(listed).sum::<usize>();
    let of = |standing: Option<f64>| Replayed::new(&texts, &lengths, most, standing);
    let here = of(None);
    // The truth is between rejecting tokens that are not listed and accepting them.
    let ends = (unlisted > 0).then(|| [of(Some(0.0)), of(Some(ACCEPTED))]);
    let rows = lengths.iter().enumerate().filter_map(|(at, &length)| {
        let bounded = |estimate: Estimate, of: &dyn Fn(&Replayed) -> Option<f64>| {
            let ends = ends
                .as_ref()
                .and_then(|[low, high]| Some([of(low)?, of(high)?]));
            Estimate {
                truncation: ends.map(|[a, b]| [a.min(b), a.max(b)]),
                ..estimate
            }
        };
        let accepted = |rule: Rule| {
            let mean = |of: &Replayed| Some(of.accepted(at, rule)?.mean);
            Some(bounded(here.accepted(at, rule)?.estimate(), &mean))
        };
        let per_call = |rule: Rule| here.per_call(at, rule);
        // Bounds of calls are known for token verification alone.
        let token_per_call = bounded(per_call(Rule::TOKEN).estimate(), &|of| {
            Some(of.per_call(at, Rule::TOKEN).mean)
        });
        Some(RoundsOfLength {
            length,
            starts: here.starts(at),
            token: accepted(Rule::TOKEN)?,
            block: accepted(Rule::BLOCK)?,
            greedy_block: accepted(Rule::GREEDY_BLOCK)?,
            block_over_token: here.more_accepted(at, Rule::BLOCK, Rule::TOKEN).estimate(),
            greedy_block_over_block: here
                .more_accepted(at, Rule::GREEDY_BLOCK, Rule::BLOCK)
                .estimate(),
            token_per_call,
            block_per_call: per_call(Rule::BLOCK).estimate(),
            block_over_token_per_call: here.more_per_call(at).estimate(),
        })
    });
    Ok(Some(ChainRounds {
        temperature,
        texts: texts.len(),
        tokens,
        unlisted,
        lengths: rows.collect(),
    }))
}

/// The mean of min(1, q/p) over the tokens of some texts: what a single sampled draft is
/// accepted with, since the mean of that over a token drawn from p is the sum of min(p, q).
/// Between bounds where a row does not list the token. `None` where there is no token.
pub(super) fn accepted_along_text<'a>(
    clusters: impl Iterator<Item = &'a Cluster>,
) -> Option<Estimate> {
    let mut unknown = 0usize;
    let mut sums = Vec::new();
    let mut texts: Vec<_> = clusters.map(|cluster| cluster.text.clone()).collect();
    for text in &mut texts {
        // The sum does not depend on how positions were dealt.
        text.sort_by(order);
        let known = text.iter().filter_map(|&(_, ratio)| ratio);
        let accepted: f64 = known.map(|ratio| ratio.min(0.0).exp()).sum();
        let open = text.iter().filter(|(_, ratio)| ratio.is_none()).count();
        unknown += open;
        sums.push((accepted, open as f64, text.len() as f64));
    }
    let mean = |share: f64| {
        let sums = sums.iter();
        Clustered::new(sums.map(move |&(sum, open, count)| (sum + share * open, count)))
    };
    let any = sums.iter().any(|&(_, _, count)| count > 0.0);
    any.then(|| Estimate {
        truncation: (unknown > 0).then(|| [mean(0.0).mean, mean(1.0).mean]),
        ..mean(0.5).estimate()
    })
}

/// A prompt's text, whole and from its first token on.
fn whole(cluster: &Cluster) -> Result<Text, String> {
    let mut text = cluster.text.clone();
    text.sort_by(order);
    let unlisted = |position: i64| {
        let known = cluster.unlisted.iter().filter(|one| one.0 == position);
        known.map(|one| one.1).min_by(f64::total_cmp)
    };
    (0..)
        .zip(text)
        .map(|(index, (position, ratio))| match position.cmp(&index) {
            Ordering::Equal => match (ratio, unlisted(position)) {
                (Some(ratio), _) => Ok((ratio.exp(), true)),
                (None, Some(ratio)) => Ok((ratio.exp(), false)),
                (None, None) => Err("some token of the text is not known, or its row does not \
                                     list it and the log has no mass of the rest"
                    .to_owned()),
            },
            Ordering::Greater => Err("some text does not begin at index 0 or has gaps, so that \
                                      its rounds cannot be followed; log whole texts, and merge \
                                      all parts"
                .to_owned()),
            Ordering::Less => Err("some prompt has several texts under one prompt_id".to_owned()),
        })
        .collect()
}

/// What every text adds, by length and verifier.
struct Replayed {
    tokens: Vec<f64>,
    /// By length, then verifier, then text: the sum of E\[tau\] and its starts.
    accepted: Vec<BTreeMap<Rule, Vec<(f64, f64)>>>,
    /// By length, then verifier, then text: target calls.
    calls: Vec<BTreeMap<Rule, Vec<f64>>>,
}

impl Replayed {
    fn new(texts: &[Text], lengths: &[usize], most: usize, standing: Option<f64>) -> Self {
        let mut all = Self {
            tokens: texts.iter().map(|text| text.len() as f64).collect(),
            accepted: vec![BTreeMap::new(); lengths.len()],
            calls: vec![BTreeMap::new(); lengths.len()],
        };
        let fixed: Vec<FixedLength> = lengths.iter().copied().map(FixedLength).collect();
        let fixed: Vec<&dyn DraftLength> = fixed.iter().map(|one| one as _).collect();
        for text in texts {
            let ratio = |&(ratio, listed): &(f64, bool)| match standing {
                Some(standing) if !listed => standing,
                _ => ratio,
            };
            let ratios: Vec<f64> = text.iter().map(ratio).collect();
            for rule in Rule::all() {
                let sums = accepted_everywhere(rule, &ratios, most);
                for (at, &length) in lengths.iter().enumerate() {
                    let sum = length.checked_sub(1).and_then(|index| sums.get(index));
                    let starts = ratios.len() as f64;
                    let sums = all.accepted[at].entry(rule).or_default();
                    sums.push((sum.copied().unwrap_or(0.0), starts));
                }
                let found = replay_each(rule, &ratios, &fixed).unwrap_or_default();
                for (calls, found) in all.calls.iter_mut().zip(found) {
                    calls.entry(rule).or_default().push(found.calls);
                }
            }
        }
        all
    }

    /// E\[tau\]; `None` where no text has room.
    fn accepted(&self, at: usize, rule: Rule) -> Option<Clustered> {
        let there = self.accepted[at][&rule].iter().copied();
        let there = there.filter(|&(_, starts)| starts > 0.0);
        let any = there.clone().next().is_some();
        any.then(|| Clustered::new(there))
    }

    fn starts(&self, at: usize) -> usize {
        let starts = self.accepted[at][&Rule::TOKEN].iter().map(|one| one.1);
        starts.sum::<f64>() as usize
    }

    /// The difference of two E\[tau\], at the same starts.
    fn more_accepted(&self, at: usize, one: Rule, other: Rule) -> Clustered {
        let both = self.accepted[at][&one]
            .iter()
            .zip(&self.accepted[at][&other]);
        let there = both.filter(|(one, _)| one.1 > 0.0);
        Clustered::new(there.map(|(one, other)| (one.0 - other.0, one.1)))
    }

    fn calls(&self, at: usize, rule: Rule) -> impl Iterator<Item = (f64, f64)> + Clone {
        let calls = self.calls[at][&rule].iter().copied();
        self.tokens.iter().copied().zip(calls)
    }

    /// N / E[target calls].
    fn per_call(&self, at: usize, rule: Rule) -> Clustered {
        Clustered::new(self.calls(at, rule))
    }

    /// Block verification's tokens a call, less token verification's.
    fn more_per_call(&self, at: usize) -> Clustered {
        Clustered::difference(self.calls(at, Rule::BLOCK).zip(self.calls(at, Rule::TOKEN)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(text: &[(i64, Option<f64>)]) -> Cluster {
        Cluster {
            positions: text.len() as u64,
            text: text.to_vec(),
            ..Cluster::default()
        }
    }

    /// r = 2, 1/2 in one text and 1/2, 1 in the other, in any order of positions. Each text is a
    /// prompt: differences 1/2 and 0 with t(0.975, 1) = 12.706.
    #[test]
    fn differences_of_two_texts_are_paired_by_prompt() {
        let half = 0.5f64.ln();
        let texts = [
            cluster(&[(1, Some(half)), (0, Some(-half))]),
            cluster(&[(0, Some(half)), (1, Some(0.0))]),
        ];
        let found = rounds(texts.iter(), 1.0, 2).unwrap().unwrap();
        let row = &found.lengths[1];
        assert_eq!((row.length, row.starts), (2, 4));
        // token: 1 + 1/2, 1/2 and 1/2 + 1/2, 1; block: 1 + 1, 1/2 and the same; greedy alike.
        let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-12);
        let more = row.block_over_token;
        near(more.mean, 0.125);
        near(more.ci95[1] - 0.125, 12.706_204_736_174_7 * 0.125);
        near(row.greedy_block_over_block.mean, 0.0);
    }

    #[test]
    fn texts_that_are_not_whole_are_said_so() {
        let refused = |text: &[(i64, Option<f64>)]| {
            let one = [cluster(text)];
            rounds(one.iter(), 1.0, 5).unwrap_err()
        };
        assert!(refused(&[(1, Some(0.0))]).contains("index 0"));
        assert!(refused(&[(0, Some(0.0)), (2, Some(0.0))]).contains("gaps"));
        assert!(refused(&[(0, Some(0.0)), (0, Some(0.0))]).contains("several texts"));
        assert!(refused(&[(0, None)]).contains("not known"));
        assert_eq!(rounds([].iter(), 1.0, 5), Ok(None));
        // What is not listed has the rest's ratio, between bounds.
        let mut one = cluster(&[(0, None), (1, Some(0.0))]);
        one.unlisted.push((0, 0.25f64.ln()));
        let found = rounds([one].iter(), 1.0, 5).unwrap().unwrap();
        let row = &found.lengths[0];
        assert_eq!(row.token.truncation, Some([0.5, 1.0]));
        assert!((row.token.mean - 0.625).abs() < 1e-12);
        assert_eq!(row.token_per_call.truncation, Some([1.0, 2.0]));
        assert!(row.block_per_call.truncation.is_none());
    }
}
