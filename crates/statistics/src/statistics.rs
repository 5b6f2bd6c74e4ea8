//! Means over clusters, their intervals and tests, and Holm's correction.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};
use std::cmp::Ordering;

/// The two-sided 95% quantile of a normal.
pub const NORMAL_95: f64 = 1.959_963_984_540_054;

/// A mean over positions with its interval, clustered by prompt.
///
/// Rows that list only the most probable tokens add a second uncertainty, which has
/// nothing to do with the first: what the mean would be from the full rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Estimate {
    /// Mean over positions.
    pub mean: f64,
    /// 95% confidence interval of the mean; the mean itself twice if there is
    /// one cluster only.
    pub ci95: [f64; 2],
    /// Lower and upper bound of the mean over all completions of truncated rows: the
    /// full rows' mean over the same positions is between them. Absent where rows are
    /// full, and where no bounds are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncation: Option<[f64; 2]>,
    /// Lower and upper bound of the mean at these very rows, where no method finds the number
    /// itself at some position: alpha* of a law of the caller's own, and what is made of it.
    /// Neither an interval of a sample nor about tokens that rows do not list. Absent where bounds
    /// meet but for rounding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between: Option<[f64; 2]>,
}

/// Bounds this near each other leave nothing open that a report could show.
const SHUT: f64 = 1e-6;

impl Estimate {
    /// A mean, and half of its interval.
    #[must_use]
    pub fn plus_minus(mean: f64, half: f64) -> Self {
        Self {
            mean,
            ci95: [mean - half, mean + half],
            ..Self::default()
        }
    }

    /// Returns the same from the other side: what b has more than a, of what a has more than b.
    ///
    /// # Example
    /// ```
    /// use specgap_statistics::Estimate;
    ///
    /// let more = Estimate { truncation: Some([1.0, 4.0]), ..Estimate::plus_minus(2.0, 0.5) };
    /// let less = more.negated();
    /// assert_eq!((less.mean, less.ci95), (-2.0, [-2.5, -1.5]));
    /// assert_eq!(less.truncation, Some([-4.0, -1.0]));
    /// ```
    #[must_use]
    pub fn negated(&self) -> Self {
        let turned = |[low, high]: [f64; 2]| [-high, -low];
        Self {
            mean: -self.mean,
            ci95: turned(self.ci95),
            truncation: self.truncation.map(turned),
            between: self.between.map(turned),
        }
    }

    /// The bounds of the mean, if it has any besides those of rounding: those of
    /// [`Estimate::truncation`] or [`Estimate::between`].
    pub fn bounds(&self) -> Option<[f64; 2]> {
        self.truncation.or(self.between)
    }

    /// The [`Estimate::bounds`] where they alone may be printed: where they are
    /// further apart than the ± of the mean, so that the mean, which is one number between them,
    /// is no measurement of anything. `None` where the mean may be printed.
    ///
    /// # Example
    /// ```
    /// use specgap_statistics::Estimate;
    ///
    /// let known = |truncation| Estimate { mean: 0.55, ci95: [0.53, 0.57], truncation, between: None };
    /// assert_eq!(known(Some([0.545, 0.555])).open(), None);
    /// assert_eq!(known(Some([0.50, 0.60])).open(), Some([0.50, 0.60]));
    /// ```
    pub fn open(&self) -> Option<[f64; 2]> {
        let half = (self.ci95[1] - self.ci95[0]) / 2.0;
        self.bounds()
            .filter(|[low, high]| high - low > half.max(SHUT))
    }

    /// Tells on which side of 0 a difference is, if its interval does: where rows list some tokens
    /// only, that of either bound. `None` where the interval holds 0, and where there is none.
    pub fn side(&self) -> Option<Ordering> {
        let half = (self.ci95[1] - self.ci95[0]) / 2.0;
        let [low, high] = match self.bounds() {
            Some([low, high]) => [low - half, high + half],
            None => self.ci95,
        };
        if half > 0.0 && low > 0.0 {
            Some(Ordering::Greater)
        } else if half > 0.0 && high < 0.0 {
            Some(Ordering::Less)
        } else {
            None
        }
    }
}

/// A ratio of sums over clusters: the mean over positions when these come in
/// clusters that are independent of one another and unequal in size.
///
/// # Formula
/// With S_c the sum over the m_c positions of cluster c, of C in all: the mean
/// is `sum of S_c / sum of m_c`, and its standard error
/// `sqrt(C/(C-1) sum of (S_c - mean m_c)^2) / sum of m_c` (the linearised
/// variance of a ratio). Intervals and p-values take Student's t with C - 1
/// degrees of freedom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clustered {
    /// The mean.
    pub mean: f64,
    /// Its standard error.
    pub error: f64,
    /// C.
    pub clusters: usize,
}

/// The quantile of each of so many two-sided intervals that hold together with 95% (Bonferroni).
fn level(comparisons: usize) -> f64 {
    1.0 - 0.025 / comparisons.max(1) as f64
}

impl Clustered {
    /// The mean of (S_c, m_c), in an order that does not depend on how they were measured.
    pub fn new(clusters: impl Iterator<Item = (f64, f64)> + Clone) -> Self {
        Self::with_total(clusters.clone().map(|(s, _)| s).sum(), clusters)
    }

    /// The mean where the sum of all S_c is known better than their `f64`s add up.
    pub fn with_total(sum: f64, clusters: impl Iterator<Item = (f64, f64)> + Clone) -> Self {
        let (mut size, mut number) = (0.0, 0usize);
        for (_, m) in clusters.clone() {
            size += m;
            number += 1;
        }
        let mean = if size > 0.0 { sum / size } else { 0.0 };
        let error = if number > 1 {
            let squares: f64 = clusters.map(|(s, m)| (s - mean * m).powi(2)).sum();
            let c = number as f64;
            (c / (c - 1.0) * squares).sqrt() / size
        } else {
            0.0
        };
        Self {
            mean,
            error,
            clusters: number,
        }
    }

    /// The difference of two ratios of sums over the same clusters, each with its (S_c, m_c).
    ///
    /// # Formula
    /// Its standard error is `sqrt(C/(C-1) sum of (e_c - e'_c)^2)` with
    /// `e_c = (S_c - mean m_c) / sum of m_c` of either ratio: what the two have in common
    /// cancels.
    pub fn difference(clusters: impl Iterator<Item = ((f64, f64), (f64, f64))> + Clone) -> Self {
        let one = Self::new(clusters.clone().map(|(one, _)| one));
        let other = Self::new(clusters.clone().map(|(_, other)| other));
        let mut sizes = [0.0; 2];
        for (one, other) in clusters.clone() {
            sizes[0] += one.1;
            sizes[1] += other.1;
        }
        let error = if one.clusters > 1 && sizes.iter().all(|&size| size > 0.0) {
            let off = |(s, m): (f64, f64), mean: f64, size: f64| (s - mean * m) / size;
            let squares: f64 = clusters
                .map(|(a, b)| off(a, one.mean, sizes[0]) - off(b, other.mean, sizes[1]))
                .map(|off| off * off)
                .sum();
            let c = one.clusters as f64;
            (c / (c - 1.0) * squares).sqrt()
        } else {
            0.0
        };
        Self {
            mean: one.mean - other.mean,
            error,
            clusters: one.clusters,
        }
    }

    fn student(&self) -> Option<StudentsT> {
        (self.clusters > 1)
            .then(|| StudentsT::new(0.0, 1.0, (self.clusters - 1) as f64).ok())
            .flatten()
    }

    /// The mean with its 95% interval.
    pub fn estimate(&self) -> Estimate {
        self.estimate_among(1)
    }

    /// The mean with an interval that is one of `comparisons`, all of which hold together with at
    /// least 95%, as those of [`Clustered::minus_among`].
    pub fn estimate_among(&self, comparisons: usize) -> Estimate {
        let level = level(comparisons);
        let half = self
            .student()
            .map_or(0.0, |t| t.inverse_cdf(level) * self.error);
        Estimate::plus_minus(self.mean, half)
    }

    /// This mean minus another one that is independent of it, with its 95% interval.
    ///
    /// Variances add up; Student's t takes Welch's degrees of freedom,
    /// `(a + b)^2 / (a^2/(A-1) + b^2/(B-1))` for squared errors a and b of A and B clusters
    /// (Welch 1947). Without an interval, the mean twice, where either has one cluster.
    pub fn minus(&self, other: &Self) -> Estimate {
        self.minus_among(other, 1)
    }

    /// Subtracts with an interval that is one of `comparisons`, all of which hold together with at
    /// least 95% (Bonferroni: each at 1 - 5%/`comparisons`).
    pub fn minus_among(&self, other: &Self, comparisons: usize) -> Estimate {
        let half = Self::welch([self, other].into_iter(), level(comparisons));
        Estimate::plus_minus(self.mean - other.mean, half)
    }

    /// The mean of independent ratios, each weighing as much as another, with its 95% interval.
    ///
    /// # Formula
    /// Squared errors a_g of G ratios of C_g clusters: the standard error is
    /// `sqrt(sum of a_g) / G`, and Student's t takes `(sum of a_g)^2 / sum of a_g^2/(C_g - 1)`
    /// degrees of freedom (Welch 1947, Satterthwaite 1946). The mean twice where any has one cluster.
    ///
    /// # Example
    /// ```
    /// use specgap_statistics::Clustered;
    /// let of = |values: [f64; 2]| Clustered::new(values.into_iter().map(|x| (x, 1.0)));
    /// let equal = Clustered::equal_weights(&[of([1.0, 3.0]), of([4.0, 6.0])]);
    /// assert_eq!(equal.mean, 3.5);
    /// // Errors of 1 each: sqrt(2)/2 at 2 degrees of freedom, t = 4.3027.
    /// assert!((equal.ci95[1] - 3.5 - 4.302_65 * 0.5f64.sqrt()).abs() < 1e-4);
    /// ```
    pub fn equal_weights(all: &[Self]) -> Estimate {
        let count = all.len().max(1) as f64;
        let mean = all.iter().map(|one| one.mean).sum::<f64>() / count;
        let half = Self::welch(all.iter(), level(1)) / count;
        Estimate::plus_minus(mean, half)
    }

    /// Half of the interval of a sum of independent means: Student's t at Welch's degrees of freedom,
    /// times the root of the sum of squared errors. 0 where one has one cluster, or none varies.
    fn welch<'a>(all: impl Iterator<Item = &'a Self> + Clone, level: f64) -> f64 {
        let squares = || all.clone().map(|one| (one.error * one.error, one.clusters));
        let sum: f64 = squares().map(|(square, _)| square).sum();
        let parts = squares().map(|(square, clusters)| square * square / (clusters as f64 - 1.0));
        let freedom = sum * sum / parts.sum::<f64>();
        // No number where none varies.
        if all.clone().all(|one| one.clusters > 1) && freedom > 0.0 {
            StudentsT::new(0.0, 1.0, freedom).map_or(0.0, |t| t.inverse_cdf(level) * sum.sqrt())
        } else {
            0.0
        }
    }

    /// Two-sided p-value of a mean of 0; 1 where all are 0 or there is one
    /// cluster, which shows nothing.
    pub fn p_value(&self) -> f64 {
        // Rounding of a difference of two rates.
        if self.mean.abs() <= 1e-12 {
            return 1.0;
        }
        match self.student() {
            None => 1.0,
            Some(_) if self.error == 0.0 => 0.0,
            Some(t) => (2.0 * t.sf((self.mean / self.error).abs())).min(1.0),
        }
    }
}

/// Holm's step-down correction: p-values that may be read together.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut corrected = vec![1.0; p_values.len()];
    let mut least = 0.0f64;
    for (rank, &index) in order.iter().enumerate() {
        least = least
            .max((p_values.len() - rank) as f64 * p_values[index])
            .min(1.0);
        corrected[index] = least;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sides of other sizes: 1/2 of four positions, and 1/5 of ten.
    #[test]
    fn a_paired_difference_by_hand() {
        let clusters = [((1.0, 1.0), (2.0, 2.0)), ((1.0, 3.0), (0.0, 8.0))];
        let found = Clustered::difference(clusters.into_iter());
        // Both clusters are off by 1/8 - 4/25 of what they should be, one up and one down.
        assert!((found.mean - 0.3).abs() < 1e-15, "{found:?}");
        assert!((found.error - 0.07).abs() < 1e-15, "{found:?}");
        assert_eq!(found.clusters, 2);
        let alone = Clustered::difference(clusters.into_iter().take(1));
        assert_eq!((alone.mean, alone.error, alone.clusters), (0.0, 0.0, 1));
    }

    #[test]
    fn clusters_of_one_position_give_the_textbook_interval() {
        // Mean 3, standard deviation sqrt(2.5), t(0.975, 4) = 2.7764451.
        let values = [1.0, 2.0, 3.0, 4.0, 5.0];
        let result = Clustered::new(values.iter().map(|&x| (x, 1.0)));
        let half = 2.776_445_105_198 * (2.5f64 / 5.0).sqrt();
        assert!((result.error - 0.5f64.sqrt()).abs() < 1e-15);
        let interval = result.estimate().ci95;
        assert!((interval[0] - (3.0 - half)).abs() < 1e-6, "{interval:?}");
        assert!((interval[1] - (3.0 + half)).abs() < 1e-6);
        // t = 3 / 0.7071 = 4.2426 with 4 degrees of freedom: p = 0.013236.
        assert!((result.p_value() - 0.013_236).abs() < 1e-5);
    }

    #[test]
    fn a_difference_within_clusters_loses_what_they_share() {
        // The same ratios but for 1 in every cluster: no error at all.
        let wild = [(1.0, 2.0), (9.0, 3.0), (4.0, 1.0)];
        let moved = wild.map(|(s, m)| (s + m, m));
        let pairs = moved.into_iter().zip(wild);
        let same = Clustered::difference(pairs);
        assert!((same.mean - 1.0).abs() < 1e-15 && same.error < 1e-15);
        // Sizes of 1: the mean of differences 1, 2, 6, with its standard error.
        let one = [(4.0, 1.0), (3.0, 1.0), (9.0, 1.0)];
        let other = [(3.0, 1.0), (1.0, 1.0), (3.0, 1.0)];
        let found = Clustered::difference(one.into_iter().zip(other));
        let plain = Clustered::new([(1.0, 1.0), (2.0, 1.0), (6.0, 1.0)].into_iter());
        assert!((found.mean - plain.mean).abs() < 1e-15);
        assert!((found.error - plain.error).abs() < 1e-14);
    }

    #[test]
    fn a_difference_of_independent_means_has_the_textbook_interval() {
        // Squared errors 1/2 and 1/2 of 5 clusters each: 8 degrees of freedom, whose
        // t(0.975) is 2.3060041.
        let one = Clustered::new([1.0, 2.0, 3.0, 4.0, 5.0].iter().map(|&x| (x, 1.0)));
        let two = Clustered::new([2.0, 3.0, 4.0, 5.0, 6.0].iter().map(|&x| (x, 1.0)));
        let difference = two.minus(&one);
        assert_eq!(difference.mean, 1.0);
        assert!((difference.ci95[1] - 1.0 - 2.306_004_1).abs() < 1e-6);
        assert!((difference.ci95[0] - 1.0 + 2.306_004_1).abs() < 1e-6);
        // Against one that does not vary, its own 4 degrees.
        let fixed = Clustered::new([(0.0, 1.0), (0.0, 1.0)].into_iter());
        let half = one.minus(&fixed).ci95[1] - 3.0;
        assert!((half - 2.776_445_1 * 0.5f64.sqrt()).abs() < 1e-6, "{half}");
        assert_eq!(fixed.minus(&fixed).ci95, [0.0, 0.0]);
        let single = Clustered::new([(5.0, 10.0)].into_iter());
        assert_eq!(one.minus(&single).ci95, [2.5, 2.5]);
        // Squared errors 1/2 of 5 clusters and 1/4 of 2, by Welch:
        // (3/4)^2 / ((1/2)^2/4 + (1/4)^2/1) = 4.5 degrees, t(0.975) = 2.6589123.
        let few = Clustered::new([(0.0, 1.0), (1.0, 1.0)].into_iter());
        assert_eq!(few.error, 0.5);
        let half = one.minus(&few).ci95[1] - 2.5;
        assert!((half - 2.658_912_3 * 0.75f64.sqrt()).abs() < 1e-6, "{half}");
        // One of two intervals that hold together: t(0.9875, 8) = 2.7515236.
        let half = two.minus_among(&one, 2).ci95[1] - 1.0;
        assert!((half - 2.751_523_6).abs() < 1e-5, "{half}");
        // One degree of freedom is enough.
        let half = few.minus(&fixed).ci95[1] - 0.5;
        assert!((half - 12.706_204_7 * 0.5).abs() < 1e-6, "{half}");
    }

    #[test]
    fn positions_that_repeat_within_a_cluster_do_not_narrow_the_interval() {
        let once = Clustered::new([(0.2, 1.0), (0.6, 1.0), (0.4, 1.0)].into_iter());
        let tenfold = Clustered::new([(2.0, 10.0), (6.0, 10.0), (4.0, 10.0)].into_iter());
        assert!((once.mean - tenfold.mean).abs() < 1e-15);
        assert!((once.error - tenfold.error).abs() < 1e-15);
    }

    #[test]
    fn one_cluster_shows_nothing() {
        let one = Clustered::new([(5.0, 10.0)].into_iter());
        assert_eq!(one.estimate().ci95, [0.5, 0.5]);
        assert_eq!(one.p_value(), 1.0);
        assert_eq!(one.error, 0.0);
        let none = Clustered::new(std::iter::empty());
        assert_eq!((none.mean, none.error), (0.0, 0.0));
        let two = Clustered::difference([((5.0, 10.0), (1.0, 10.0))].into_iter());
        assert_eq!((two.mean, two.error, two.clusters), (0.4, 0.0, 1));
        // Two clusters without a position on one side.
        let empty = [((5.0, 10.0), (0.0, 0.0)), ((4.0, 10.0), (0.0, 0.0))];
        let found = Clustered::difference(empty.into_iter());
        assert_eq!((found.mean, found.error), (0.45, 0.0));
    }

    #[test]
    fn a_mean_that_rounding_makes_shows_nothing() {
        let rounding = Clustered::new([(1.1e-16, 1.0), (1.0e-16, 1.0), (0.9e-16, 1.0)].into_iter());
        assert!(rounding.mean / rounding.error > 10.0);
        assert_eq!(rounding.p_value(), 1.0);
        let small = Clustered::new([(1.1e-11, 1.0), (1.0e-11, 1.0), (0.9e-11, 1.0)].into_iter());
        assert!(small.p_value() < 0.01);
    }

    #[test]
    fn clusters_that_all_differ_by_one_amount_leave_no_chance() {
        let equal = Clustered::new([(0.25, 1.0), (0.25, 1.0), (0.5, 2.0)].into_iter());
        assert_eq!((equal.mean, equal.error), (0.25, 0.0));
        assert_eq!(equal.p_value(), 0.0);
    }

    #[test]
    fn holm_by_hand() {
        let corrected = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (got, expected) in corrected.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((got - expected).abs() < 1e-15, "{corrected:?}");
        }
        assert!(holm(&[]).is_empty());
    }
}
