//! Whether acceptances at neighbouring positions are independent.

use super::data::Independence;
use super::measure::Measurement;
use super::outcome::Half;
use super::pairs::{Pair, Shares};

/// Levels by which independence is tested.
const LEVELS: usize = 6;

impl Measurement<'_> {
    pub(super) fn independence(&self, pair: &Pair, shares: &Shares) -> Option<Independence> {
        // Rows behind a start are others than those of the next one.
        if self.texts.is_by_depth() || pair.levels.is_some() {
            return None;
        }
        let drafts = match pair.branch > 0 {
            true => pair.branch,
            false => *pair.children.last()?,
        };
        // By text: the share that is accepted at all, at each position.
        let texts = self.texts.texts.iter().zip(&shares.texts);
        let accepted: Vec<(usize, Vec<f64>)> = texts
            .map(|(text, shares)| {
                let at = |position| shares.at(position, drafts).iter().take(drafts).sum();
                (text.cluster, (0..shares.len()).map(at).collect())
            })
            .collect();
        let levels = LEVELS.min(self.settings.limits.depth).max(1);
        let mut reached = vec![0.0; levels + 1];
        for (_, row) in &accepted {
            for window in row.windows(levels) {
                let mut product = 1.0;
                reached[0] += 1.0;
                for (sum, share) in reached[1..].iter_mut().zip(window) {
                    product *= share;
                    *sum += product;
                }
            }
        }
        let by_level = reached
            .windows(2)
            .filter(|pair| pair[0] > 0.0)
            .map(|pair| pair[1] / pair[0])
            .collect();
        let neighbours = || {
            accepted.iter().flat_map(|(cluster, row)| {
                row.windows(2)
                    .map(move |pair| (*cluster, [pair[0], pair[1]]))
            })
        };
        Some(Independence {
            scheme: pair.scheme.to_string(),
            verifier: pair.verifier.to_string(),
            drafts,
            vector: self.vector(shares, drafts, Half::All),
            by_level,
            correlation: correlation(neighbours().map(|(_, pair)| (0, pair)), 1),
            correlation_within_prompts: correlation(neighbours(), self.texts.clusters),
        })
    }
}

/// The correlation of pairs after each group's own means are taken out; `None` without spread.
fn correlation(
    pairs: impl Iterator<Item = (usize, [f64; 2])> + Clone,
    groups: usize,
) -> Option<f64> {
    let mut means = vec![([0.0; 2], 0.0); groups];
    for (group, pair) in pairs.clone() {
        let (sums, count) = &mut means[group];
        sums.iter_mut().zip(pair).for_each(|(a, b)| *a += b);
        *count += 1.0;
    }
    let (mut squares, mut product) = ([0.0; 2], 0.0);
    for (group, pair) in pairs {
        let (sums, count) = means[group];
        let off = [0, 1].map(|side| pair[side] - sums[side] / count);
        squares[0] += off[0] * off[0];
        squares[1] += off[1] * off[1];
        product += off[0] * off[1];
    }
    let spread = (squares[0] * squares[1]).sqrt();
    (spread > 1e-12).then(|| product / spread)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn correlation_takes_groups_out() {
        // Two groups with different means and opposite slopes inside.
        let pairs = [
            (0, [1.0, 2.0]),
            (0, [2.0, 1.0]),
            (1, [11.0, 12.0]),
            (1, [12.0, 11.0]),
        ];
        assert_eq!(correlation(pairs.into_iter(), 2), Some(-1.0));
        let all = pairs.map(|(_, pair)| (0, pair));
        assert!(correlation(all.into_iter(), 1).unwrap() > 0.9);
        assert_eq!(correlation([(0, [1.0, 2.0])].into_iter(), 1), None);
    }
}
