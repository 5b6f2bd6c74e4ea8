//! Drafts depth by depth, where their rows depend on where a round begins.

use super::super::measured::within;
use super::super::position::TextPosition;
use super::super::read::Text;
use super::coins::{Unlisted, coins};
use super::data::AtDepth;
use super::drafts::Drafts;
use super::measure::{Measurement, over_starts};
use specgap_core::rounds::{ChainRule, Coins, Survival};
use specgap_statistics::Estimate;

/// Sums over the starts of a text with as many tokens left as a depth.
#[derive(Clone, Copy, Default)]
struct Sums {
    starts: f64,
    /// Its own coin.
    alone: f64,
    /// Those of all before it, and of all with it.
    before: f64,
    joint: f64,
}

impl Measurement<'_> {
    /// Returns what becomes of the first, second, ... token of a round; nothing where the draft has
    /// one row a position over all of the target's tokens.
    pub(super) fn at_depths(&self) -> Vec<AtDepth> {
        if !self.texts.is_by_depth() && !self.texts.seen.covers {
            return Vec::new();
        }
        let of = |unlisted: Unlisted| -> Vec<Vec<Sums>> {
            self.texts.each(|text| self.sums(text, unlisted))
        };
        let whole = of(Unlisted::Whole);
        let ends = (self.are_open).then(|| [Unlisted::Rejected, Unlisted::Accepted].map(of));
        (1..=self.texts.depths())
            .filter_map(|depth| self.at_depth(depth, &whole, ends.as_ref()))
            .collect()
    }

    /// Returns sums by depth.
    fn sums(&self, text: &Text, unlisted: Unlisted) -> Vec<Sums> {
        let coins = coins(text, Drafts::Sampled, unlisted);
        let mut sums = vec![Sums::default(); self.texts.depths()];
        for start in 0..coins.tokens() {
            let mut survival = Survival::new(ChainRule::TOKEN);
            for (sum, coin) in sums.iter_mut().zip(coins.ahead(start)) {
                sum.starts += 1.0;
                sum.alone += coin.min(1.0);
                sum.before += survival.reached();
                survival.take(coin);
                sum.joint += survival.reached();
            }
        }
        sums
    }

    fn at_depth(
        &self,
        depth: usize,
        whole: &[Vec<Sums>],
        ends: Option<&[Vec<Vec<Sums>>; 2]>,
    ) -> Option<AtDepth> {
        // A ratio of two sums, the first rising with every coin; with bounds where tokens are not
        // listed.
        let quotient = |of: fn(&Sums) -> f64, over: fn(&Sums) -> f64| -> Option<Estimate> {
            let with = |sums: &[Vec<Sums>]| {
                let both = self.texts.texts.iter().zip(sums).zip(whole);
                over_starts(
                    self.texts.clusters,
                    both.map(|((text, sums), whole)| {
                        (text.cluster, of(&sums[depth - 1]), over(&whole[depth - 1]))
                    }),
                )
            };
            let truncation = match ends {
                Some([low, high]) => Some([with(low)?.mean, with(high)?.mean]),
                None => None,
            };
            Some(within(with(whole)?, truncation))
        };
        let joint = quotient(|sums| sums.joint, |sums| sums.starts)?;
        let before = quotient(|sums| sums.before, |sums| sums.starts)?;
        let mut conditional = quotient(|sums| sums.joint, |sums| sums.before);
        if let (Some(conditional), Some([low, high]), Some([least, most])) =
            (&mut conditional, joint.truncation, before.truncation)
        {
            conditional.truncation = Some([low / most, (high / least).min(1.0)]);
        }
        Some(AtDepth {
            depth,
            starts: (whole.iter())
                .map(|sums| sums[depth - 1].starts as usize)
                .sum(),
            marginal: quotient(|sums| sums.alone, |sums| sums.starts)?,
            conditional: conditional.filter(|_| depth > 1),
            joint,
            overlap: self.mean_at(depth, |place| place.exact_overlap),
            covered: self.mean_at(depth, |place| place.covered),
        })
    }

    /// The mean of a number over what rounds meet at a depth, where all of it is known.
    fn mean_at(
        &self,
        depth: usize,
        of: impl Fn(&TextPosition) -> Option<f64> + Sync,
    ) -> Option<Estimate> {
        let sums = self.texts.each(|text| {
            let (mut sum, mut count) = (0.0, 0.0);
            for start in 0..text.places.len() {
                if let Some(place) = text.ahead(start).get(depth - 1) {
                    sum += of(place)?;
                    count += 1.0;
                }
            }
            Some((text.cluster, sum, count))
        });
        let sums: Option<Vec<_>> = sums.into_iter().collect();
        over_starts(self.texts.clusters, sums?.into_iter())
    }
}
