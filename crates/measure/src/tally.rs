//! Sums, extremes and counts of one number over positions, whatever their order.

use super::data::HISTOGRAM_EDGES;
use super::metric::Metric;
use super::own_answers::LOOSE;
use serde::{Deserialize, Serialize};
use specgap_base::sorted::Map;
use specgap_number::known::{Kind, Known};
use specgap_statistics::{Clustered, Estimate};
use std::collections::BTreeMap;

/// Bins of the counts that quantiles are read from: quantiles are good to half a bin,
/// 1/16,384 of [-1, 1].
const BINS: u16 = 16_384;

/// Shares of the positions at which quantiles are reported.
const QUANTILES: [(&str, f64); 5] = [
    ("0.05", 0.05),
    ("0.25", 0.25),
    ("0.5", 0.5),
    ("0.75", 0.75),
    ("0.95", 0.95),
];

/// 2^80: units of a sum in 1.
const UNITS: f64 = 1_208_925_819_614_629_174_706_176.0;

/// A sum of `f64` that does not depend on the order of its terms, nor on which of them were
/// summed up elsewhere.
///
/// Each term becomes a whole number of 2^-80, the nearest, and whole numbers add up
/// exactly. A term of 2^-28 or more loses nothing; a smaller one is off by 2^-81 at most.
/// There is room for a total of 2^47.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct ExactSum(pub i128);

impl ExactSum {
    pub(super) fn add(&mut self, term: f64) {
        // A power of two: the product is exact. What is no number adds nothing.
        let units = (term * UNITS).round_ties_even() as i128;
        self.0 = self.0.saturating_add(units);
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.0 = self.0.saturating_add(other.0);
    }

    pub(super) fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The sum of so many terms of one value: no sum of terms that are not above it is larger, to
    /// the unit, as each term is rounded by itself.
    pub(super) fn of_equal(term: f64, count: u64) -> Self {
        let mut one = Self::default();
        one.add(term);
        Self(one.0.saturating_mul(i128::from(count)))
    }

    /// The `f64` nearest to the sum.
    pub(super) fn value(self) -> f64 {
        self.0 as f64 / UNITS
    }
}

/// What a report says of one number over positions, but for how positions fall into
/// clusters, which is the same for all numbers.
///
/// Every part is a sum of whole numbers or an extreme, so that two tallies merge into that
/// of all their positions, to the bit. Memory grows with the number of clusters and not
/// with that of positions.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Tally {
    /// By cluster.
    pub sums: Vec<ExactSum>,
    /// Positions in each bin that has any.
    pub bins: Map<u16, u64>,
    /// Positions in each bin of [`HISTOGRAM_EDGES`].
    pub histogram: [u64; HISTOGRAM_EDGES.len() - 1],
    pub lowest: f64,
    pub highest: f64,
    /// The widest enclosure.
    pub widest: f64,
    /// How well the number is known that is known least; of no positions, nothing.
    pub kind: Option<Kind>,
    /// Positions whose rows list some of the tokens only.
    pub truncated: u64,
    /// Bounds on the full rows' numbers, summed up.
    pub lower: ExactSum,
    pub upper: ExactSum,
}

impl Tally {
    /// Adds one position of a cluster.
    pub(super) fn add(&mut self, cluster: usize, number: &Known) {
        let value = number.value();
        self.reach(cluster);
        if let Some(sum) = self.sums.get_mut(cluster) {
            sum.add(value);
        }
        if self.bins.is_empty() {
            (self.lowest, self.highest) = (value, value);
        }
        *self.bins.at(bin(value)) += 1;
        self.histogram[edge(value)] += 1;
        self.lowest = self.lowest.min(value);
        self.highest = self.highest.max(value);
        let kind = number.kind();
        self.kind = joined(self.kind, Some(kind));
        self.truncated += u64::from(kind == Kind::Truncated);
        // Plain floats have no bounds to add up.
        let (width, [lower, upper]) = match kind {
            Kind::Float => (0.0, [value, value]),
            _ => (
                number.completion().width(),
                [number.lower(), number.upper()],
            ),
        };
        self.widest = self.widest.max(width);
        self.lower.add(lower);
        self.upper.add(upper);
    }

    /// Returns how well the mean is known: as that of truncated rows where any is.
    pub(super) fn kind(&self) -> Kind {
        match self.kind {
            Some(kind) if self.truncated == 0 => kind,
            Some(_) => Kind::Truncated,
            None => Kind::Float,
        }
    }

    /// Adds the positions of another tally, whose cluster k is this one's `clusters[k]`.
    pub(super) fn merge(&mut self, other: &Self, clusters: &[usize]) {
        for (&sum, &cluster) in other.sums.iter().zip(clusters) {
            self.reach(cluster);
            if let Some(own) = self.sums.get_mut(cluster) {
                own.merge(sum);
            }
        }
        if self.bins.is_empty() {
            (self.lowest, self.highest) = (other.lowest, other.highest);
        }
        for (&bin, &count) in &other.bins {
            *self.bins.at(bin) += count;
        }
        for (own, count) in self.histogram.iter_mut().zip(other.histogram) {
            *own += count;
        }
        self.lowest = self.lowest.min(other.lowest);
        self.highest = self.highest.max(other.highest);
        self.widest = self.widest.max(other.widest);
        self.kind = joined(self.kind, other.kind);
        self.truncated += other.truncated;
        self.lower.merge(other.lower);
        self.upper.merge(other.upper);
    }

    fn reach(&mut self, cluster: usize) {
        if cluster >= self.sums.len() {
            self.sums.resize(cluster + 1, ExactSum::default());
        }
    }

    /// Returns why no positions have these sums, extremes and counts together, if so. `sizes` are
    /// the positions of each cluster, and `all` says whether the number is there at all of them.
    pub(super) fn contradiction(&self, sizes: &[u64], all: bool) -> Option<String> {
        let within = |sum: ExactSum, least: u64, most: u64| {
            let ends = [self.lowest, self.highest].map(|value| {
                let ends = [least, most].map(|count| ExactSum::of_equal(value, count).0);
                (ends[0].min(ends[1]), ends[0].max(ends[1]))
            });
            (ends[0].0..=ends[1].1).contains(&sum.0)
        };
        for (at, (&sum, &size)) in self.sums.iter().zip(sizes).enumerate() {
            if !within(sum, if all { size } else { 0 }, size) {
                return Some(format!(
                    "sums[{at}]: is {:e} of {size} positions from {:e} to {:e}",
                    sum.value(),
                    self.lowest,
                    self.highest
                ));
            }
        }
        let total = self.total();
        let count = self.count();
        if !within(total, count, count) {
            return Some(format!(
                "sums: are {:e} together, of {count} positions from {:e} to {:e}",
                total.value(),
                self.lowest,
                self.highest
            ));
        }
        // Bounds that are drawn at random need not hold what was drawn.
        let random = self.kind == Some(Kind::MonteCarlo);
        if self.lower.0 > self.upper.0
            || !random && !(self.lower.0..=self.upper.0).contains(&total.0)
        {
            return Some(format!(
                "lower, upper: are {:e} and {:e}, and the sum is {:e}",
                self.lower.value(),
                self.upper.value(),
                total.value()
            ));
        }
        // What lists leave open is a rate, or one less another, which may be rounded outwards.
        let most = ExactSum::of_equal(1.0 + 1e-12, count).0;
        if self.truncated > 0 && (self.lower.0 < -most || self.upper.0 > most) {
            return Some(format!(
                "lower, upper: are {:e} and {:e} of {count} rates",
                self.lower.value(),
                self.upper.value()
            ));
        }
        if self.kind == Some(Kind::Truncated) && self.truncated == 0 {
            return Some("truncated: is 0, and kind is truncated".to_owned());
        }
        let bins = self.bins.keys().next().zip(self.bins.keys().next_back());
        if bins != Some((&bin(self.lowest), &bin(self.highest))) {
            return Some("bins: do not begin at lowest and end at highest".to_owned());
        }
        let filled = |&at: &usize| self.histogram[at] > 0;
        let mut edges = (0..self.histogram.len()).filter(filled);
        let ends = edges
            .next()
            .map(|first| (first, edges.next_back().unwrap_or(first)));
        if ends != Some((edge(self.lowest), edge(self.highest))) {
            return Some("histogram: does not begin at lowest and end at highest".to_owned());
        }
        // So that NaN is refused too.
        let is_width = self.widest >= 0.0;
        (!is_width).then(|| format!("widest: is {}", self.widest))
    }

    pub(super) fn count(&self) -> u64 {
        self.bins.values().sum()
    }

    /// The sum over all positions.
    pub(super) fn total(&self) -> ExactSum {
        let mut total = ExactSum::default();
        self.sums.iter().for_each(|&sum| total.merge(sum));
        total
    }

    /// The sum of one cluster.
    pub(super) fn sum(&self, cluster: usize) -> ExactSum {
        self.sums.get(cluster).copied().unwrap_or_default()
    }

    /// The mean and how far it may be off, by clusters in a fixed order: each one's place
    /// in `sums` and its number of positions.
    pub(super) fn clustered(&self, clusters: &[(usize, u64)]) -> Clustered {
        let mut total = ExactSum::default();
        for &(cluster, _) in clusters {
            total.merge(self.sum(cluster));
        }
        Clustered::with_total(
            total.value(),
            clusters
                .iter()
                .map(|&(cluster, size)| (self.sum(cluster).value(), size as f64)),
        )
    }

    /// Bounds on the mean at these positions: on rounding, or on the full rows'.
    pub(super) fn bounds(&self) -> [f64; 2] {
        let count = self.count() as f64;
        [self.lower.value() / count, self.upper.value() / count]
    }

    /// [`Tally::estimate`] of what the number is about, with bounds where it is loose.
    pub(super) fn estimate_of(&self, metric: Metric, clusters: &[(usize, u64)]) -> Estimate {
        Estimate {
            between: self.is_loose(metric).then(|| self.bounds()),
            ..self.estimate(clusters)
        }
    }

    /// Returns whether it is a number of own laws and rules whose bounds do not meet at some
    /// position, for another reason than sampling or lists: they are those of alpha*, which no
    /// method found there.
    pub(super) fn is_loose(&self, metric: Metric) -> bool {
        let is_sampled = self.kind == Some(Kind::MonteCarlo);
        metric.may_be_loose() && self.truncated == 0 && !is_sampled && self.widest > LOOSE
    }

    /// The mean with its interval, and with bounds on the full rows' where some are cut.
    pub(super) fn estimate(&self, clusters: &[(usize, u64)]) -> Estimate {
        Estimate {
            truncation: (self.truncated > 0).then(|| self.bounds()),
            ..self.clustered(clusters).estimate()
        }
    }

    /// The p-value of a mean of 0, 1 where bounds of what the number is about, or rows that list
    /// some tokens only, leave it open on which side of 0 it is.
    pub(super) fn p_value(&self, metric: Metric, clusters: &[(usize, u64)]) -> f64 {
        let [lower, upper] = self.bounds();
        let is_open = self.truncated > 0 || self.is_loose(metric);
        if is_open && lower <= 0.0 && upper >= 0.0 {
            return 1.0;
        }
        self.clustered(clusters).p_value()
    }

    pub(super) fn quantiles(&self) -> BTreeMap<String, f64> {
        QUANTILES
            .into_iter()
            .map(|(name, share)| (name.to_owned(), self.quantile(share)))
            .collect()
    }

    /// The value that this share of the positions does not exceed, to half a bin; exact at
    /// the ends.
    fn quantile(&self, share: f64) -> f64 {
        let wanted = (share * self.count() as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (&bin, &count) in &self.bins {
            seen += count;
            if seen >= wanted {
                let middle = (f64::from(bin) + 0.5) / f64::from(BINS) * 2.0 - 1.0;
                return middle.clamp(self.lowest, self.highest);
            }
        }
        self.highest
    }
}

/// The bin of a value, of which those beyond the ends are in those at the ends.
fn bin(value: f64) -> u16 {
    let last = f64::from(BINS - 1);
    ((value + 1.0) * 0.5 * f64::from(BINS)).clamp(0.0, last) as u16
}

/// The bin of a value in the histogram, with the same ends.
fn edge(value: f64) -> usize {
    (HISTOGRAM_EDGES.partition_point(|&edge| edge <= value)).clamp(1, HISTOGRAM_EDGES.len() - 1) - 1
}

fn joined(one: Option<Kind>, other: Option<Kind>) -> Option<Kind> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.joined(other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::super::metric::Temperature;
    use super::*;
    use specgap_number::known::Sampling;

    fn number(value: f64) -> Known {
        Known::enclosed(value, value, value + 1e-13)
    }

    #[test]
    fn quantiles_and_histogram_count_every_position() {
        let mut tally = Tally::default();
        let mut sizes = [0u64; 7];
        for i in 0..=1000usize {
            tally.add(i % 7, &number(i as f64 / 1000.0));
            sizes[i % 7] += 1;
        }
        let quantiles = tally.quantiles();
        for (name, share) in QUANTILES {
            assert!((quantiles[name] - share).abs() < 2e-3, "{quantiles:?}");
        }
        assert_eq!(tally.histogram.iter().sum::<u64>(), 1001);
        // Both ends are in the bins that they end.
        let mut ends = Tally::default();
        ends.add(0, &number(1.0));
        ends.add(0, &number(-1.0));
        assert!(ends.bins.keys().eq(&[0, BINS - 1]));
        // 0 alone is below 1e-6; 0.5 to 1 has both its ends.
        assert_eq!(tally.histogram[0], 1);
        assert_eq!(tally.histogram.last(), Some(&501));
        assert_eq!((tally.lowest, tally.highest), (0.0, 1.0));
        let clusters: Vec<(usize, u64)> = sizes.into_iter().enumerate().collect();
        assert_eq!(tally.clustered(&clusters).clusters, 7);
        assert_eq!(tally.estimate(&clusters).truncation, None);
    }

    /// What rounding puts below the first edge or above the last is in the bin beside it.
    #[test]
    fn numbers_beyond_the_edges_are_in_the_bins_at_the_ends() {
        let mut tally = Tally::default();
        for value in [
            -1.0f64.next_up(),
            -1.0,
            f64::from_bits((-1.0f64).to_bits() + 1),
            1.5,
        ] {
            tally.add(0, &number(value));
        }
        let last = tally.histogram.len() - 1;
        assert_eq!((tally.histogram[0], tally.histogram[last]), (3, 1));
        assert_eq!(tally.histogram.iter().sum::<u64>(), 4);
    }

    #[test]
    fn bounds_are_means_of_bounds() {
        let mut tally = Tally::default();
        for (value, upper) in [(0.25, 0.5), (0.5, 0.5), (0.75, 1.0)] {
            tally.add(0, &Known::enclosed(value, value - 0.125, upper));
        }
        let [lower, upper] = tally.bounds();
        assert!((lower - 0.375).abs() < 1e-15 && (upper - 2.0 / 3.0).abs() < 1e-15);
    }

    #[test]
    fn quantiles_of_four_values_by_hand() {
        let mut tally = Tally::default();
        for value in [0.1, 0.2, 0.3, 0.4] {
            tally.add(0, &number(value));
        }
        // The smallest value that at least this share does not exceed.
        for (share, value) in [
            (0.0, 0.1),
            (0.25, 0.1),
            (0.26, 0.2),
            (0.5, 0.2),
            (0.6, 0.3),
            (0.9, 0.4),
            (1.0, 0.4),
        ] {
            let found = tally.quantile(share);
            let half_a_bin = 1.0 / f64::from(BINS);
            assert!((found - value).abs() < half_a_bin, "{share}: {found}");
        }
    }

    #[test]
    fn sums_do_not_depend_on_order_where_those_of_floats_do() {
        let terms = [1.0, 1e-17, -0.3, 1e-17, 0.1, 3e-25, -1.0, 0.2];
        let sum = |order: &[f64]| {
            let mut sum = ExactSum::default();
            order.iter().for_each(|&term| sum.add(term));
            sum
        };
        let forward = sum(&terms);
        let mut back = terms;
        back.reverse();
        assert_eq!(forward, sum(&back));
        let (float, backward): (f64, f64) = (terms.iter().sum(), back.iter().sum());
        assert_ne!(float, backward);
        let mut halves = sum(&terms[..3]);
        halves.merge(sum(&terms[3..]));
        assert_eq!(forward, halves);
        // Exact where terms are multiples of the unit.
        assert_eq!(sum(&[1.0, 2f64.powi(-80), -1.0]).value(), 2f64.powi(-80));
        assert_eq!(sum(&[0.1; 10]).value(), 1.0);
    }

    #[test]
    fn what_is_no_number_adds_nothing_and_what_is_too_large_stays_finite() {
        let mut sum = ExactSum::default();
        sum.add(f64::NAN);
        assert_eq!(sum.value(), 0.0);
        sum.add(f64::INFINITY);
        sum.add(f64::INFINITY);
        assert!(sum.value().is_finite());
    }

    #[test]
    fn a_merged_tally_is_that_of_all_positions() {
        let values: Vec<(usize, Known)> = (0..60usize)
            .map(|i| {
                let mut one = number(((i * 37) % 61) as f64 / 61.0 - 0.4);
                if i == 17 {
                    let sampling = Sampling {
                        confidence: 0.999,
                        samples: 100,
                        seed: 1,
                    };
                    one = Known::monte_carlo(0.3, 0.2, 0.4, sampling);
                }
                if i % 3 == 0 {
                    one = Known::truncated(&one, [one.value() - 0.01, one.value() + 0.02]);
                }
                (i % 5, one)
            })
            .collect();
        let mut whole = Tally::default();
        values.iter().for_each(|(c, v)| whole.add(*c, v));
        // Two parts that number their clusters otherwise, and share some.
        let (mut first, mut second) = (Tally::default(), Tally::default());
        for (i, (cluster, value)) in values.iter().enumerate() {
            if i % 4 == 1 {
                second.add(4 - cluster, value);
            } else {
                first.add(*cluster, value);
            }
        }
        let mut merged = Tally::default();
        merged.merge(&second, &[4, 3, 2, 1, 0]);
        merged.merge(&first, &[0, 1, 2, 3, 4]);
        assert_eq!(merged, whole);
        assert_eq!(merged.kind(), Kind::Truncated);
        assert_eq!(merged.kind, Some(Kind::MonteCarlo));
        assert_eq!(merged.widest, 0.2);
    }

    #[test]
    fn a_mean_is_known_as_well_as_the_number_known_least() {
        let mut tally = Tally::default();
        tally.add(0, &number(0.0));
        assert_eq!((tally.kind(), tally.widest), (Kind::Enclosed, 1e-13));
        tally.add(0, &Known::float(0.5));
        // It has no bounds, and says so.
        assert_eq!((tally.kind(), tally.widest), (Kind::Float, 1e-13));
        assert!(tally.lower.value().is_finite());
    }

    /// Rows that list some tokens only prove nothing unless their bounds leave one side.
    #[test]
    fn bounds_on_either_side_of_nothing_prove_nothing() {
        let clusters = [(0, 1), (1, 1), (2, 1)];
        let temperature = Temperature(1.0);
        let metric = Metric::Overlap { temperature };
        let tally = |values: [f64; 3], bounds: [f64; 2]| {
            let mut tally = Tally::default();
            for (cluster, value) in values.into_iter().enumerate() {
                tally.add(cluster, &Known::truncated(&number(value), bounds));
            }
            tally
        };
        let above = [0.25, 0.251, 0.252];
        let below = above.map(|value| -value);
        // An end at 0 proves nothing either.
        for (values, bounds, is_proof) in [
            (above, [-0.125, 0.5], false),
            (above, [0.125, 0.5], true),
            (above, [0.0, 0.5], false),
            (below, [-0.5, -0.125], true),
            (below, [-0.5, 0.0], false),
        ] {
            let found = tally(values, bounds).p_value(metric, &clusters);
            let holds = if is_proof { found < 1e-4 } else { found == 1.0 };
            assert!(holds, "{bounds:?}: {found}");
        }
        let tally = tally(above, [0.0, 0.5]);
        assert_eq!(tally.bounds()[0], 0.0);
        let estimate = tally.estimate(&clusters);
        assert_eq!(estimate.truncation, Some(tally.bounds()));
    }
}
