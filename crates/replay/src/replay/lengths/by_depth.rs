//! Drafts depth by depth, where their rows depend on where a round begins.

use super::super::position::TextPosition;
use super::super::read::Text;
use super::data::AtDepth;
use super::drafts::Drafts;
use super::measure::{Measurement, Unlisted, coins};
use specgap_core::rounds::{ChainVerifier, Coins, Survival};
use specgap_measure::statistics::{Clustered, Estimate};

impl Measurement<'_> {
    /// What becomes of the first, second, ... token of a round; nothing where the draft has one
    /// row a position over all of the target's tokens.
    pub(super) fn at_depths(&self) -> Vec<AtDepth> {
        let covers = self.texts.met().any(|place| place.covered.is_some());
        if !self.texts.is_by_depth() && !covers {
            return Vec::new();
        }
        (1..=self.texts.depths())
            .filter_map(|depth| self.at_depth(depth))
            .collect()
    }

    fn at_depth(&self, depth: usize) -> Option<AtDepth> {
        let starts: usize = (self.texts.texts.iter())
            .map(|text| text.places.len().saturating_sub(depth - 1))
            .sum();
        if starts == 0 {
            return None;
        }
        let alone = |text: &Text, unlisted: Unlisted| {
            let coins = coins(text, Drafts::Sampled, unlisted);
            let coin = |start| Some(coins.ahead(start).get(depth - 1)?.min(1.0));
            (0..coins.tokens()).filter_map(coin).sum::<f64>()
        };
        let so_far = |tokens: usize| {
            move |text: &Text, unlisted: Unlisted| {
                let coins = coins(text, Drafts::Sampled, unlisted);
                let reached = |start: usize| {
                    let ahead = coins.ahead(start).get(..depth)?;
                    let mut survival = Survival::new(ChainVerifier::Token);
                    (ahead.iter().take(tokens)).for_each(|coin| survival.take(coin));
                    Some(*survival.reached())
                };
                (0..coins.tokens()).filter_map(reached).sum::<f64>()
            }
        };
        let count = |text: &Text, _: Unlisted| text.places.len().saturating_sub(depth - 1) as f64;
        let joint = self.quotient(&so_far(depth), &count);
        let before = self.quotient(&so_far(depth - 1), &count);
        let mut conditional = self.quotient(&so_far(depth), &so_far(depth - 1));
        if let (Some([low, high]), Some([least, most])) = (joint.truncation, before.truncation) {
            conditional.truncation = Some([low / most, (high / least).min(1.0)]);
        }
        Some(AtDepth {
            depth,
            starts,
            marginal: self.quotient(&alone, &count),
            conditional: (depth > 1).then_some(conditional),
            joint,
            overlap: self.mean_at(depth, |place| place.exact_overlap),
            covered: self.mean_at(depth, |place| place.covered),
        })
    }

    /// A ratio of two sums over all texts, with bounds where tokens are not listed, the first
    /// rising with every ratio and the second a count.
    fn quotient(
        &self,
        of: &dyn Fn(&Text, Unlisted) -> f64,
        over: &dyn Fn(&Text, Unlisted) -> f64,
    ) -> Estimate {
        let with = |unlisted: Unlisted| {
            let mut sums = vec![(0.0, 0.0); self.texts.clusters];
            for text in &self.texts.texts {
                let sum = &mut sums[text.cluster];
                sum.0 += of(text, unlisted);
                sum.1 += over(text, Unlisted::Whole);
            }
            let there = sums.into_iter().filter(|&(_, below)| below > 0.0);
            Clustered::new(there.collect::<Vec<_>>().into_iter()).estimate()
        };
        let truncation = self
            .are_open
            .then(|| [Unlisted::Rejected, Unlisted::Accepted].map(|unlisted| with(unlisted).mean));
        Estimate {
            truncation,
            ..with(Unlisted::Whole)
        }
    }

    /// The mean of a number over what rounds meet at a depth, where all of it is known.
    fn mean_at(&self, depth: usize, of: impl Fn(&TextPosition) -> Option<f64>) -> Option<Estimate> {
        let mut sums = vec![(0.0, 0.0); self.texts.clusters];
        for text in &self.texts.texts {
            for start in 0..text.places.len() {
                let Some(place) = text.ahead(start).get(depth - 1) else {
                    continue;
                };
                let sum = &mut sums[text.cluster];
                sum.0 += of(place)?;
                sum.1 += 1.0;
            }
        }
        let there = sums.into_iter().filter(|&(_, count)| count > 0.0);
        let there: Vec<(f64, f64)> = there.collect();
        (!there.is_empty()).then(|| Clustered::new(there.into_iter()).estimate())
    }
}
