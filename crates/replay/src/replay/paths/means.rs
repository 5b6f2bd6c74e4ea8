//! Means over prompts, of which differences are paired.

use specgap_statistics::{Clustered, Estimate};

/// Sums of a statistic by prompt, with the number of contexts: a ratio of sums.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ByPrompt {
    pub sums: Vec<(f64, f64)>,
}

impl ByPrompt {
    pub(super) fn new(clusters: usize) -> Self {
        Self {
            sums: vec![(0.0, 0.0); clusters],
        }
    }

    pub(super) fn add(&mut self, cluster: usize, value: f64) {
        self.add_ratio(cluster, value, 1.0);
    }

    /// Adds to a ratio of other sums.
    pub(super) fn add_ratio(&mut self, cluster: usize, value: f64, over: f64) {
        if let Some(sum) = self.sums.get_mut(cluster) {
            sum.0 += value;
            sum.1 += over;
        }
    }

    pub(super) fn there(&self) -> impl Iterator<Item = (f64, f64)> + Clone {
        self.sums.iter().copied().filter(|&(_, count)| count > 0.0)
    }

    /// The mean over contexts, with what each prompt adds to its error.
    pub(super) fn mean(&self) -> Mean {
        let total: f64 = self.there().map(|one| one.1).sum();
        if total <= 0.0 {
            return Mean::sure(0.0, self.sums.len());
        }
        let value = self.there().map(|one| one.0).sum::<f64>() / total;
        let part =
            |&(sum, count): &(f64, f64)| (count > 0.0).then(|| (sum - value * count) / total);
        Mean {
            value,
            parts: self.sums.iter().map(part).collect(),
        }
    }
}

/// A mean, or a sum of several over the same prompts, of as many contexts or not, linearised
/// prompt by prompt: how far each prompt moves it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mean {
    value: f64,
    parts: Vec<Option<f64>>,
}

impl Mean {
    /// A number that no prompt moves.
    pub(super) fn sure(value: f64, clusters: usize) -> Self {
        Self {
            value,
            parts: vec![None; clusters],
        }
    }

    fn with(&self, other: &Self, sign: f64) -> Self {
        let parts = self.parts.iter().zip(&other.parts);
        Self {
            value: self.value + sign * other.value,
            parts: parts
                .map(|(one, two)| match (one, two) {
                    (None, None) => None,
                    _ => Some(one.unwrap_or(0.0) + sign * two.unwrap_or(0.0)),
                })
                .collect(),
        }
    }

    pub(super) fn plus(&self, other: &Self) -> Self {
        self.with(other, 1.0)
    }

    pub(super) fn minus(&self, other: &Self) -> Self {
        self.with(other, -1.0)
    }

    /// With its 95% interval: the error is sqrt(C/(C-1) sum of squared parts).
    pub(super) fn estimate(&self) -> Estimate {
        let parts = self.parts.iter().flatten();
        let clusters = parts.clone().count() as f64;
        // As a mean over prompts of C times their parts.
        let spread = Clustered::new(parts.map(|part| (clusters * part, 1.0))).estimate();
        let half = spread.ci95[1] - spread.mean;
        Estimate::plus_minus(self.value, half)
    }
}
