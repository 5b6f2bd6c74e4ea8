//! Parts of the scan on numbers that are worked out by hand, where the record of rows does not tell:
//! the bounds by which a bucket is passed over, what is made of an error, and sums in two words.

use super::buckets::{Buckets, ROUNDING};
use super::lanes::{PowerSums, Running, SUMMING};
use super::minimum::{Best, Interior};
use super::symmetric::Symmetric;
use super::{RatioCut, Rows};
use crate::clocks::POWERS;

fn cut(ratio: f64) -> RatioCut {
    RatioCut {
        ratio,
        tied_below: 0,
    }
}

/// A bucket of a quarter of q and of p, between prefixes with Q = 0 and `q_end`.
fn bucket(least_slope: f64, most_slope: f64, q_end: f64, slack: f64) -> Interior {
    Interior {
        least_slope,
        most_slope,
        mass: 0.25,
        slack,
        target: 0.25,
        held: 0.25,
        q_start: 0.0,
        q_end,
    }
}

#[test]
fn the_least_of_a_bucket_is_at_its_turn_or_an_end() {
    let near = |bucket: &Interior, most: f64, expected: f64| {
        let turn = 1.0 / 6.0;
        let found = bucket.lower_bound(turn, most);
        assert!((found - expected).abs() < 1e-15, "{found} {expected}");
    };
    // At the turn: P = 1/4 + 1/12, and Q two thirds of its rise of 0.3, or less than that.
    let at_turn = bucket(0.5, 2.0, 0.3, 0.0);
    near(&at_turn, 1.0, 1.0 / 3.0 - 0.2);
    near(&at_turn, 0.19, 1.0 / 3.0 - 0.19);
    // Q is at most that at the end, wherever rounding puts the turn.
    let beyond = bucket(0.5, 2.0, 0.3, 0.0).lower_bound(0.5, 1.0);
    assert!((beyond - 0.2).abs() < 1e-15, "{beyond}");
    // At the end: P = 1/2. It is the least where `most` says that Q comes late.
    near(&bucket(0.5, 2.0, 0.3, 0.0), 0.0, 0.2);
    near(&bucket(0.5, 2.0, 0.6, 0.0), 0.1, -0.1);
    // At the start.
    let early = Interior {
        q_start: 0.29,
        ..bucket(0.5, 2.0, 0.3, 0.0)
    };
    near(&early, 0.2, -0.04);
    // What the mass may be off by, twice, of P in the bucket.
    near(&bucket(0.5, 2.0, 0.3, 0.01), 1.0, 1.0 / 3.0 - 0.2 - 0.005);
    // Both lines count, as the turn is rounded: here the steep one is lower.
    let steep = bucket(0.5, 2.0, 0.3, 0.0).lower_bound(0.1, 1.0);
    assert!(
        (steep - (0.25 + (0.25 - 2.0 * 0.15) - 0.12)).abs() < 1e-15,
        "{steep}"
    );
    let gentle = bucket(0.5, 2.0, 0.3, 0.0).lower_bound(0.2, 1.0);
    assert!((gentle - (0.25 + 0.1 - 0.24)).abs() < 1e-15, "{gentle}");
}

#[test]
fn what_is_found_is_enclosed_by_its_error() {
    let of = |best: Best, error: f64| {
        let found = best.rate(error);
        (found.rate.value(), found.rate.lower(), found.rate.upper())
    };
    let mut best = Best::EMPTY;
    assert_eq!(of(best, 0.125), (1.0, 0.875, 1.0));
    assert_eq!(best.offer(0.25, 0.5, 0.75, cut(2.0)), 0.75);
    assert_eq!(of(best, 0.125), (0.5, 0.375, 0.625));
    // Neither an equal one nor a worse one takes its place.
    best.offer(0.0, 0.1, 0.5, cut(3.0));
    best.offer(0.5, 0.1, 0.75, cut(4.0));
    let found = best.rate(0.125);
    assert_eq!((found.subset.ratio, found.target_mass), (2.0, 0.25));
    assert_eq!((found.draft_mass, found.inside), (0.5, 0.75));
    // Where Q is not known, it may be 1: P - 1, and that is no subset.
    assert_eq!(best.offer(0.25, 0.0, f64::NAN, cut(5.0)), 1.0);
    assert_eq!(best.difference(), -0.5);
    assert_eq!(of(best, 0.125), (0.5, 0.125, 0.625));
    best.lower(-0.5);
    assert_eq!(of(best, 0.0), (0.5, 0.25, 0.5));
    // A subset that may as well prove nothing is not shown, but what it bounds counts.
    let mut doubtful = Best::EMPTY;
    doubtful.offer(0.25, 0.5, 0.375, cut(2.0));
    assert_eq!(of(doubtful, 0.125), (1.0, 0.75, 1.0));
    assert_eq!(doubtful.rate(0.125).subset.ratio, RatioCut::EMPTY.ratio);
    assert_eq!(doubtful.rate(0.1).subset.ratio, 2.0);
}

/// Sums in two words keep what one word would lose.
#[test]
fn sums_of_many_terms_lose_nothing() {
    let small = 2f64.powi(-54);
    let mut running = Running::default();
    let mut sums = PowerSums::default();
    running.add(0.75);
    assert_eq!(sums.add(&[0.75], 1.0), 0.75);
    for _ in 0..4096 {
        running.add(small);
        assert_eq!(sums.add(&[small], 1.0), small);
    }
    assert_eq!(running.value(), 0.75 + 2f64.powi(-42));
    assert_eq!(sums.value()[0], 0.75 + 2f64.powi(-42));
    assert_eq!(sums.value()[1], 0.5625);
}

#[test]
fn powers_are_of_light_tokens_alone() {
    // Eight side by side and three more; what is not below the scale does not count.
    let rates = [0.25, 0.5, 0.125, 1.0, 0.25, 2.0, 0.0, 0.5, 0.25, 0.375, 1.0];
    for scale in [1.0, 2.0, 4.0, 0.5] {
        let light = || rates.iter().filter(|&&q| q < scale).map(|q| q / scale);
        let mut sums = PowerSums::default();
        let mass = sums.add(&rates, scale);
        assert_eq!(mass, light().sum::<f64>());
        for (m, sum) in (1..).zip(sums.value()) {
            let expected: f64 = light().map(|x| x.powi(m)).sum();
            assert!(
                (sum - expected).abs() <= 1e-15 * expected,
                "{m}: {sum} {expected}"
            );
        }
    }
    assert_eq!(SUMMING, 256.0 / 8.0 + 8.0 + 4.0 + POWERS as f64);
}

fn symmetric(draft: &[f64], most: usize, draws: usize) -> (Symmetric, Buckets) {
    let target = vec![1.0 / draft.len() as f64; draft.len()];
    let rows = Rows::new(&target, draft);
    let (mut buckets, mut symmetric) = (Buckets::default(), Symmetric::default());
    buckets.load(rows).unwrap();
    assert!(symmetric.prepare(most, draws, draft, &buckets));
    (symmetric, buckets)
}

#[test]
fn symmetric_polynomials_by_hand() {
    // e_1 = 1, e_2 = 1/8 + 1/8 + 1/16, e_3 = 1/32.
    let draft = [0.5, 0.25, 0.25];
    let (symmetric, buckets) = symmetric(&draft, 3, 3);
    let whole = |draws| symmetric.whole(draws);
    assert_eq!(
        [whole(0), whole(1), whole(2), whole(3)],
        [1.0, 1.0, 0.3125, 0.03125]
    );
    assert_eq!(symmetric.prefix(0)[..4], [1.0, 0.0, 0.0, 0.0]);
    let links = buckets.links().len();
    assert_eq!(symmetric.prefix(links)[..4], [1.0, 1.0, 0.3125, 0.03125]);
    // Of infinitely many tokens of mass 1/2 after these: e_2 + e_1/2 + 1/8; and the error
    // of each coefficient, in units of that of all.
    let error = symmetric.roundings(2, 0) * ROUNDING;
    let grown = 1.0 + error;
    let most = symmetric.most(links, 0.5, 2);
    assert!((most / ((0.3125 + 0.5 + 0.125) * grown) - 1.0).abs() < 2e-16);
    let alone = symmetric.most(0, 0.5, 2);
    let expected = 0.125 * grown + error * (0.3125 + 0.5);
    assert!((alone / expected - 1.0).abs() < 1e-15, "{alone} {expected}");
    assert!(alone > 0.125 + 2.0 * ROUNDING * 0.125);
}

#[test]
fn equal_ratios_go_by_id() {
    let rows = Rows::new(&[0.25, 0.125, 0.5, 0.125], &[0.25, 0.25, 0.0, 0.5]);
    let mut buckets = Buckets::default();
    buckets.load(rows).unwrap();
    let tokens = buckets.sort_all(rows).iter().map(|&(_, token)| token);
    assert_eq!(tokens.collect::<Vec<_>>(), [3, 1, 0, 2]);
    let even = Rows::new(&[0.5, 0.25, 0.25], &[0.5, 0.25, 0.25]);
    buckets.load(even).unwrap();
    let tokens = buckets.sort_all(even).iter().map(|&(_, token)| token);
    assert_eq!(tokens.collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn entries_that_are_none_are_refused_by_name() {
    let load = |target: &[f64], draft: &[f64]| {
        let error = Buckets::default().load(Rows { target, draft }).unwrap_err();
        error.to_string()
    };
    let fine = [0.5, 0.5];
    assert!(load(&[2.5, -1.5], &fine).starts_with("target: the 2 entries sum to 1"));
    assert!(load(&fine, &[1.5, -0.5]).contains("draft: entry 1 is -0.5"));
    assert!(load(&fine, &[f64::NAN, 1.0]).contains("draft: entry 0 is NaN"));
    assert!(load(&[f64::INFINITY, 0.0], &fine).contains("target: entry 0 is inf"));
    // 1e-6 more or less is normalised away, and no more than that.
    for (sum, fits) in [
        (1.0 + 9e-7, true),
        (1.0 - 9e-7, true),
        (1.0 + 1.1e-6, false),
        (1.0 - 1.1e-6, false),
    ] {
        let row = [0.5 * sum; 2];
        let load =
            |target: &[f64], draft: &[f64]| Buckets::default().load(Rows { target, draft }).is_ok();
        assert_eq!([load(&row, &fine), load(&fine, &row)], [fits; 2], "{sum}");
    }
}
