//! From capital of records to verdicts.

use crate::audit::data::{PartReport, Suspect};
use crate::audit::evidence::bets::{SCORE_STAKES, log_sum};
use crate::audit::evidence::book::{Book, Part};
use crate::audit::evidence::requests::Settled;

/// Evidence below this is not listed.
const LISTED: f64 = 2.0;

/// The verdict on a part. `untestable` says, given the smallest departure that would have been
/// found, why it cannot be tested.
pub(crate) fn part(
    book: &Book,
    part: Part,
    settled: &Settled,
    alpha: f64,
    untestable: &dyn Fn(Part, Option<f64>) -> Option<String>,
) -> PartReport {
    let total = &settled.total;
    let evidence = book.of(part).map(|one| Suspect {
        name: one.name.to_owned(),
        words: one.words.to_owned(),
        cure: "log rows to tell bugs apart".to_owned(),
        log10_e_value: book.log_of(one, total) / std::f64::consts::LN_10,
        is_bug: part == Part::Acceptance && !one.is_score(),
    });
    let mut evidence: Vec<Suspect> = evidence.collect();
    evidence.retain(|one| one.log10_e_value >= LISTED);
    evidence.sort_by(|a, b| b.log10_e_value.total_cmp(&a.log10_e_value));
    let scores = book.of(part).filter(|one| one.is_score());
    let share = scores.map(|one| one.weight).fold(1.0, f64::min);
    let counted = settled.counted[part.index()];
    let limit = smallest_tv(share, book.tolerance, counted, alpha, settled.price);
    let log = book.log_capital(part, total);
    let refuted = log >= -alpha.ln();
    let reason = untestable(part, limit).filter(|_| !refuted);
    let strongest = evidence.first().filter(|_| refuted);
    PartReport {
        smallest_tv_excluded: limit,
        suspect: strongest.map(|one| one.name.clone()),
        evidence,
        ..PartReport::new(part, total.steps[part.index()], log, refuted, reason)
    }
}

/// e-BH (Wang and Ramdas 2022): the largest k for which k e-values are at least K/(k alpha);
/// which ones these are. Under any dependence, at most a share alpha of what is named is
/// named wrongly, on average.
pub(crate) fn e_bh(logs: &[f64], alpha: f64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..logs.len()).collect();
    order.sort_by(|&a, &b| logs[b].total_cmp(&logs[a]).then(a.cmp(&b)));
    let all = logs.len() as f64;
    let enough = |k: usize| {
        let least = order.get(k - 1).and_then(|&index| logs.get(index));
        least.is_some_and(|log| *log >= (all / (k as f64 * alpha)).ln())
    };
    let keep = (1..=order.len()).rev().find(|&k| enough(k)).unwrap_or(0);
    let mut named: Vec<usize> = order.into_iter().take(keep).collect();
    named.sort_unstable();
    named
}

/// The smallest departure that a part's scores find with probability 99% in so many steps.
///
/// A score that is an indicator of mean 1/2 (the hardest, since its variance is the largest)
/// and whose mean an engine moves by t hits S times of N. The capital of the score's stakes
/// reaches 1/alpha from S = s on, which is computed; and P(S < s) <= exp(-N kl(s/N, 1/2 + t))
/// is at most 1% from some t on (Chernoff).
///
/// `share` is the weight of the score in the part's capital, and `price` the logarithm of what
/// the capital of these steps is divided by: a mean over texts is at least the largest over their
/// number.
pub(crate) fn smallest_tv(
    share: f64,
    tolerance: f64,
    steps: u64,
    alpha: f64,
    price: f64,
) -> Option<f64> {
    if steps == 0 {
        return None;
    }
    let n = steps as f64;
    let weight = share.ln() - (SCORE_STAKES.len() as f64).ln() - price;
    let capital = |hits: f64| {
        let log = |stake: f64| {
            hits * (0.5 * stake).ln_1p() + (n - hits) * (-0.5 * stake).ln_1p()
                - n * (tolerance * stake.abs()).ln_1p()
        };
        weight + log_sum(SCORE_STAKES.iter().map(|&stake| log(stake)))
    };
    // The capital rises with hits above one half. Where all of them are too few, so is what is
    // left below: a share of 1 is found of no mean.
    let (mut low, mut high) = (steps.div_ceil(2), steps);
    while low < high {
        let middle = low + (high - low) / 2;
        if capital(middle as f64) >= -alpha.ln() {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    let share = low as f64 / n;
    let divergence = |mean: f64| {
        let term = |a: f64, b: f64| a * (a / b).ln();
        term(share, mean) + term(1.0 - share, 1.0 - mean)
    };
    // A share of 1 is above all means, so that no logarithm of 0 is taken.
    let found = |t: f64| 0.5 + t > share && n * divergence(0.5 + t) >= 100f64.ln();
    let most = 0.5 - 1e-12;
    if !found(most) {
        return None;
    }
    let (mut low, mut high) = (0.0, most);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if found(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use statrs::distribution::{Binomial, DiscreteCDF};

    #[test]
    fn e_bh_names_what_the_definition_says() {
        let logs = |values: &[f64]| values.iter().map(|x: &f64| x.ln()).collect::<Vec<_>>();
        // K = 4, alpha = 0.1: thresholds 40, 20, 13.3, 10.
        assert!(e_bh(&logs(&[39.0, 1.0, 1.0, 1.0]), 0.1).is_empty());
        assert_eq!(e_bh(&logs(&[1.0, 41.0, 1.0, 1.0]), 0.1), [1]);
        assert_eq!(e_bh(&logs(&[25.0, 1.0, 21.0, 1.0]), 0.1), [0, 2]);
        assert_eq!(e_bh(&logs(&[11.0, 12.0, 13.0, 14.0]), 0.1), [0, 1, 2, 3]);
    }

    #[test]
    fn the_smallest_departure_has_the_power_that_is_said() {
        let share = 0.2 / 3.0;
        assert_eq!(smallest_tv(share, 0.002, 5, 1e-6, 0.0), None);
        let mut before = 0.5;
        for steps in [200u64, 2_000, 20_000, 200_000] {
            let t = smallest_tv(share, 0.002, steps, 1e-6, 0.0).unwrap();
            assert!(t < before && t > 0.002, "{steps} {t}");
            before = t;
            // Hits that are needed, again by going up one by one.
            let n = steps as f64;
            let log = |hits: u64| {
                let s = hits as f64;
                let terms = SCORE_STAKES.map(|stake| {
                    s * (0.5 * stake).ln_1p() + (n - s) * (-0.5 * stake).ln_1p()
                        - n * (0.002 * stake.abs()).ln_1p()
                });
                log_sum(terms.into_iter()) + (share / 14.0).ln()
            };
            let mut hits = steps / 2..=steps;
            let needed = hits.find(|&hits| log(hits) >= 1e6f64.ln()).unwrap();
            // Chernoff's bound is 1% exactly there.
            let (s, mean) = (needed as f64 / n, 0.5 + t);
            let divergence = s * (s / mean).ln() + (1.0 - s) * ((1.0 - s) / (1.0 - mean)).ln();
            let off = n * divergence - 100f64.ln();
            assert!(off.abs() < 1e-6 && mean > s, "{steps}");
            let missed = Binomial::new(0.5 + t, steps).unwrap().cdf(needed - 1);
            assert!(missed <= 0.01, "{steps}: {missed}");
        }
        assert!(before < 0.015, "{before}");
    }

    /// From how many steps on a departure can be found at all: all hits have to be enough, and
    /// to be seen with probability 99% the engine's chance of them is to be near 1.
    #[test]
    fn few_steps_find_nothing() {
        assert_eq!(smallest_tv(1.0, 0.0, 0, 0.5, 0.0), None);
        for (share, tolerance, alpha) in [(1.0, 0.0, 0.3), (0.1, 0.0, 1e-3), (0.1, 0.2, 1e-3)] {
            let all = |steps: u64| {
                let term = |stake: f64| (1.0 + 0.5 * stake) / (1.0 + tolerance * stake.abs());
                let terms = SCORE_STAKES.map(|stake| term(stake).powi(steps as i32));
                share * terms.iter().sum::<f64>() / 14.0
            };
            let first = (1..400).find(|&steps| all(steps) >= 1.0 / alpha).unwrap();
            for steps in 1..first {
                let found = smallest_tv(share, tolerance, steps, alpha, 0.0);
                assert_eq!(found, None, "{steps}");
            }
            // All of `first` steps are hits with (1/2 + t)^first, which is 99% for no t < 1/2
            // that Chernoff's bound knows; with more steps fewer hits are enough.
            let found = (first..4 * first)
                .find_map(|steps| Some((steps, smallest_tv(share, tolerance, steps, alpha, 0.0)?)));
            let (_, t) = found.unwrap();
            assert!(t > 0.2 && t < 0.5, "{t}");
        }
    }
}
