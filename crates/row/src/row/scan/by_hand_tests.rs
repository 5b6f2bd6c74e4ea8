//! Parts of the scan on numbers that are worked out by hand: the bounds by which a bucket is
//! passed over, what is made of an error, sums in two words, and what a bucket holds.

use super::buckets::{BUCKETS, Buckets, Masses, ROUNDING, Sorted};
use super::lanes::{PowerSums, Running, SUMMING};
use super::minimum::{Best, Interior, is_doubtful, sure_tokens};
use super::symmetric::Symmetric;
use super::{RatioCut, Rows, Workspace};
use crate::row::clocks::POWERS;
use crate::row::test_rows::normalised;

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
fn a_bucket_turns_where_its_two_lines_meet() {
    // P rises by 1/2 a unit of q first and by 2 then, to 1/4 at 1/4: 2 (1/4) - 1/4 over 3/2.
    let turn = bucket(0.5, 2.0, 0.25, 0.0).turn().unwrap();
    assert!((turn - 1.0 / 6.0).abs() < 1e-15, "{turn}");
    // No turn where Q rises no faster than the gentle line, or as fast as the steep one.
    assert!(bucket(0.5, 2.0, 0.125, 0.0).turn().is_none());
    assert!(bucket(0.5, 2.0, 0.5, 0.0).turn().is_none());
    assert!(bucket(0.5, 2.0, 0.13, 0.0).turn().is_some());
    assert!(bucket(0.5, 2.0, 0.49, 0.0).turn().is_some());
    // Unless the mass may be a little less, or a little more.
    assert!(bucket(0.5, 2.0, 0.125, 0.01).turn().is_some());
    assert!(bucket(0.5, 2.0, 0.5, 0.01).turn().is_some());
    assert!(bucket(0.5, 2.0, 0.12, 0.01).turn().is_none());
    assert!(bucket(0.5, 2.0, 0.51, 0.01).turn().is_none());
    // A line that rises at once turns at the end.
    assert_eq!(bucket(0.5, f64::INFINITY, 0.25, 0.0).turn(), Some(0.25));
    // Rounding may put the turn beyond the ends.
    assert_eq!(bucket(0.0, 0.9, 0.2, 0.0).turn(), Some(0.0));
    assert_eq!(bucket(1.5, 2.0, 0.4, 0.0).turn(), Some(0.25));
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

#[test]
fn small_ratios_are_doubtful() {
    let edge = 2f64.powi(-1000);
    assert!(!is_doubtful(0.0) && !is_doubtful(edge) && !is_doubtful(1.0));
    assert!(is_doubtful(edge.next_down()) && is_doubtful(f64::from_bits(1)));
    let tokens = |ratios: &[f64]| -> Vec<Sorted> {
        (0..)
            .zip(ratios)
            .map(|(token, ratio)| (!ratio.to_bits(), token))
            .collect()
    };
    assert_eq!(sure_tokens(&tokens(&[2.0, edge, edge.next_down(), 0.0])), 2);
    assert_eq!(sure_tokens(&tokens(&[2.0, edge])), 2);
    assert_eq!(sure_tokens(&tokens(&[0.0])), 0);
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
    let rows = Rows {
        target: &target,
        draft,
    };
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

/// Each law's error is what its documentation says, on rows where it decides the width.
#[test]
fn errors_are_as_documented() {
    let (target, draft) = ([0.0625, 0.0625, 0.875], [0.375, 0.375, 0.25]);
    let rows = Rows::new(&target, &draft);
    let mut scan = Workspace::new();
    let mut row = scan.load(rows, 8).unwrap();
    for drafts in [1usize, 2, 3] {
        let rate = row.with_replacement(drafts).unwrap().rate;
        let error = (20.0 * drafts as f64 + 80.0) * ROUNDING;
        assert!(
            (rate.width() - 2.0 * error).abs() < 4.0 * ROUNDING,
            "{drafts} {rate:?}"
        );
    }
    // Two sequential draws in closed form: 300 roundings for P and the odds, and
    // 5 (56 + 8) + 60 for the masses of the race, twice.
    let rate = row.without_replacement(2).unwrap().rate;
    let error = (300.0 + 2.0 * (5.0 * (SUMMING + 8.0) + 60.0)) * ROUNDING;
    assert!(rate.width() > 2.0 * error - 4.0 * ROUNDING, "{rate:?}");
    assert!(rate.width() < 3.0 * error, "{rate:?}");
}

#[test]
fn masses_keep_what_one_word_would_lose() {
    let small = 2f64.powi(-70);
    let mut sums = Masses::default();
    sums.add(0.75, 0.5);
    let mut more = Masses::default();
    for _ in 0..1 << 10 {
        more.add(small, 3.0 * small);
    }
    sums.merge(&more);
    assert_eq!(
        (more.target(), more.draft()),
        (2f64.powi(-60), 3.0 * 2f64.powi(-60))
    );
    let rest = sums.without(&more);
    assert_eq!((rest.target(), rest.draft()), (0.75, 0.5));
    let own = sums.without(&rest);
    assert_eq!(
        (own.target(), own.draft()),
        (2f64.powi(-60), 3.0 * 2f64.powi(-60))
    );
}

/// Links, their tokens in order and by id, and slopes at their ends: against all tokens.
#[test]
fn links_hold_their_tokens_in_order() {
    let raw = |i: usize, step: usize, of: usize| ((i * step) % of) as f64;
    let count = 2400;
    // A few ratios with many tokens each, ratios of 0 and of infinity, and 0/0.
    let target = normalised((0..count).map(|i| (raw(i, 5, 23) / 8.0).floor()).collect());
    let level = |i: usize| (raw(i, 7, 19) / 6.0).floor() * (1.0 + 1e-4 * raw(i, 3, 17));
    let draft = normalised((0..count).map(level).collect());
    let rows = Rows::new(&target, &draft);
    let ratio = |token: usize| match (target[token], draft[token]) {
        (_, 0.0) => 0.0,
        (0.0, _) => f64::INFINITY,
        (p, q) => q / p,
    };
    let mut buckets = Buckets::default();
    buckets.load(rows).unwrap();
    assert_eq!(
        buckets.support(),
        draft.iter().filter(|&&q| q > 0.0).count()
    );
    let (total, _) = buckets.totals();
    let links = buckets.links().to_vec();
    assert!(
        links
            .iter()
            .any(|link| link.bucket + 1 < BUCKETS && link.tokens > 256)
    );
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|&a, &b| ratio(b).total_cmp(&ratio(a)).then(a.cmp(&b)));
    // More often than tokens are searched for one bucket at a time.
    for _ in 0..3 {
        let mut walked = 0;
        for (index, link) in links.iter().enumerate() {
            let own = &order[walked..walked + link.tokens as usize];
            let sorted: Vec<usize> = buckets
                .sort(rows, link)
                .iter()
                .map(|&(_, token)| token as usize)
                .collect();
            assert_eq!(sorted, own);
            let keys: Vec<f64> = buckets
                .sort(rows, link)
                .iter()
                .map(|&(key, _)| f64::from_bits(!key))
                .collect();
            assert!(
                own.iter()
                    .zip(keys)
                    .all(|(&token, key)| ratio(token) == key)
            );
            let mut by_id = own.to_vec();
            by_id.sort_unstable();
            let (p, q) = buckets.pick(rows, index);
            assert!(by_id.iter().zip(p).all(|(&token, &p)| target[token] == p));
            assert!(by_id.iter().zip(q).all(|(&token, &q)| draft[token] == q));
            assert_eq!((p.len(), q.len()), (own.len(), own.len()));
            let before: f64 = order[..walked].iter().map(|&token| target[token]).sum();
            assert!((link.before.target() - before).abs() < 1e-13);
            let mass: f64 = own.iter().map(|&token| draft[token]).sum();
            assert!((link.own.draft() - mass).abs() < 1e-13);
            for &token in own.iter().filter(|&&token| draft[token] > 0.0) {
                let slope = target[token] / draft[token] / total;
                let room = 1.0 + 1e-12;
                assert!(link.least_slope <= slope * room && slope <= link.most_slope * room);
            }
            assert!(link.bucket == 0 || link.least_slope > 0.0);
            let narrow = link.most_slope <= link.least_slope * (1.0 + 1.0 / 8.0);
            assert!(narrow || link.bucket == 0 || link.bucket + 1 == BUCKETS);
            walked += own.len();
        }
        assert_eq!(walked, count);
        let all: Vec<usize> = buckets
            .sort_all(rows)
            .iter()
            .map(|&(_, token)| token as usize)
            .collect();
        assert_eq!(all, order);
    }
    let (mut by_link, mut starts, mut slots) = (Vec::new(), Vec::new(), Vec::new());
    buckets.gather_draft(rows, &mut by_link, &mut starts, &mut slots);
    assert_eq!(starts.len(), links.len() + 1);
    for (index, link) in links.iter().enumerate() {
        let (_, q) = buckets.pick(rows, index);
        let own = starts[index] as usize..starts[index + 1] as usize;
        assert_eq!(own.len(), link.tokens as usize);
        assert_eq!(&by_link[own], q);
    }
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
