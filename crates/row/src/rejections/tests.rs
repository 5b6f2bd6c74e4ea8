//! The fast rates against enumeration, and against the enclosure.

use super::product::{MOST_DRAFTS, ProductRule, Split, estimate};
use super::sweep::Sweep;
use super::{PAIR_ROUNDING, RejectionBudget, Rejections, summed};
use crate::Workspace;
use crate::test_rows::{listed, normalised};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use specgap_number::distribution::{Rational, Rows, exact_value, round_nearest};
use specgap_number::known::Kind;

/// Every token is heavy: the sum over all paths, whatever the tokens are.
#[test]
fn with_every_token_heavy_the_rule_is_enumeration() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for trial in 0..200 {
        let vocabulary = rng.random_range(4..=7usize);
        let mut row = |zero: f64| {
            let power = rng.random_range(1..=8);
            normalised(
                (0..vocabulary)
                    .map(|_| match rng.random_bool(zero) {
                        true => 0.0,
                        false => 1e-3 + rng.random::<f64>().powi(power),
                    })
                    .collect(),
            )
        };
        let (target, draft) = (row(0.2), row(0.1));
        let support = draft.iter().filter(|&&q| q > 0.0).count();
        let rows = Rows::new(&target, &draft);
        if target.iter().any(|p| p.is_nan()) {
            continue;
        }
        for draws in 2..=4usize.min(support.saturating_sub(1)) {
            let sweep = Sweep::new(rows, draws, |_| 0.0);
            let split = Split {
                heavy: 0.0,
                cut: 0.0,
                most: vocabulary,
            };
            let found = ProductRule::new(&sweep, split, draws).all_rejected(draws);
            let truth = summed::all_rejected(&target, &draft, draws);
            assert!(
                (found - truth).abs() < 1e-13,
                "{trial} {draws}: {found} {truth}"
            );
            if draws == 2
                && let Some(two) = sweep.two_rejected(rows)
            {
                assert!((two - truth).abs() < 1e-13, "{trial}: {two} {truth}");
            }
        }
    }
}

/// What a sweep holds, by its definition.
#[test]
fn a_sweep_holds_what_it_says() {
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    for trial in 0..12 {
        let vocabulary = [4, 9, 40][trial % 3];
        let mut row = || {
            normalised(
                (0..vocabulary)
                    .map(|_| rng.random::<f64>().powi(4))
                    .collect(),
            )
        };
        let (mut target, mut draft) = (row(), row());
        if trial % 2 == 0 {
            draft[1] = 0.0;
            target[2] = 0.0;
        }
        let rows = Rows::new(&target, &draft);
        for least in [0.0, 0.05, 1.0] {
            let plain = Sweep::new(rows, 4, |_| least);
            let pairs = || target.iter().zip(&draft);
            let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-14, "{trial}: {a} {b}");
            close(plain.total, draft.iter().sum());
            close(plain.first, pairs().map(|(p, q)| (p - q).max(0.0)).sum());
            let alone = pairs().filter(|(_, q)| **q == 0.0).map(|(p, _)| p);
            close(plain.unreachable, alone.sum());
            let listed = draft.iter().filter(|&&q| q >= least && q > 0.0).count();
            assert_eq!(plain.listed.len(), listed);
            for factor in [1.0, 1.3, 2.0, 40.0] {
                let mass = pairs().map(|(p, q)| (p - factor * q).max(0.0)).sum();
                close(plain.mass(factor), mass);
                let below = pairs().filter(|&(p, q)| p / q <= factor && *q < least);
                let mut sums = [0.0; 8];
                for (p, q) in below {
                    for (k, sum) in sums.iter_mut().enumerate() {
                        *sum += match k {
                            0..4 => q.powi(k as i32 + 1),
                            _ => p * q.powi(k as i32 - 4),
                        };
                    }
                }
                for (found, expected) in plain.up_to(factor).into_iter().zip(sums) {
                    close(found, expected);
                }
            }
        }
    }
}

/// What is left after the heaviest tokens decides whether there is anything to divide by.
#[test]
fn enough_has_to_be_left_to_divide_by() {
    let target = [0.25, 0.25, 0.5];
    let leaves = |last: f64, draws: usize| {
        let draft = [0.5, 0.5 - last, last];
        let rows = Rows::new(&target, &draft);
        let sweep = Sweep::new(rows, 3, |_| 0.0);
        let two = sweep.two_rejected(rows).is_some();
        (sweep.leaves_enough(draws), two)
    };
    assert_eq!(leaves(1e-7, 1), (true, true));
    assert_eq!(leaves(1e-7, 2), (false, true));
    assert_eq!(leaves(1.1e-6, 2), (true, true));
    // Two drafts: a thousandth is needed beside the heaviest.
    let heavy = |first: f64| {
        let draft = [first, 1.0 - first, 0.0];
        let rows = Rows::new(&target, &draft);
        Sweep::new(rows, 2, |_| 0.0).two_rejected(rows)
    };
    assert!(heavy(0.9991).is_none() && heavy(0.9989).is_some());
    // Nothing is rejected where p is q.
    let same = Rows::new(&target, &target);
    let sweep = Sweep::new(same, 2, |_| 0.0);
    assert_eq!(sweep.two_rejected(same), Some(0.0));
}

/// Draws beyond what `f64` can leave of q are not relied on.
#[test]
fn draws_are_reliable_while_something_is_left() {
    let flat = [0.25; 4];
    let reliable = |draft: &[f64], drafts| {
        let target = vec![1.0 / draft.len() as f64; draft.len()];
        let rejections = Rejections::new(&target, draft);
        (
            rejections.reliable_draws(drafts),
            rejections.is_reliable(drafts),
        )
    };
    assert_eq!(reliable(&flat, 2), (2, true));
    // No more draws than tokens, and all of them leave nothing, but after the last.
    assert_eq!(reliable(&flat, 9), (4, true));
    assert_eq!(reliable(&[1.0, 1e-17, 0.0], 2), (2, true));
    assert_eq!(reliable(&[1.0, 1e-19, 0.0], 2), (2, true));
    assert_eq!(reliable(&[1.0, 1e-300, 0.0], 2), (1, false));
    assert_eq!(reliable(&[1.0, 1e-19, 1e-20], 3), (2, false));
    assert_eq!(reliable(&[1.0, 1e-19, 1e-20], 1), (1, true));
    assert_eq!(reliable(&[0.5, 0.5, 1e-19, 1e-19], 3), (2, false));
    assert_eq!(reliable(&[0.5, 0.5, 1e-17, 1e-17], 4), (4, true));
}

/// sum (q - p)+ M(1 + M(1)/(1-q))/M(1) in fractions, for rows divided by their sums.
fn two_rejected_exactly(target: &[f64], draft: &[f64]) -> f64 {
    let exact = |row: &[f64]| -> Vec<Rational> {
        let row: Vec<Rational> = row.iter().map(|&x| exact_value(x).unwrap()).collect();
        let sum: Rational = row.iter().sum();
        row.into_iter().map(|x| x / &sum).collect()
    };
    let (zero, one) = (exact_value(0.0).unwrap(), exact_value(1.0).unwrap());
    let (p, q) = (exact(target), exact(draft));
    let mass = |factor: &Rational| -> Rational {
        let above = p.iter().zip(&q).map(|(p, q)| p - factor * q);
        above.filter(|x| *x > zero).sum()
    };
    let first = mass(&one);
    if first == zero {
        return 0.0;
    }
    let terms = p.iter().zip(&q).filter(|(p, q)| q > p).map(|(p, q)| {
        let rest = &one - q;
        // Nothing is left to be drafted: the second draft is not made.
        let left = if rest == zero {
            first.clone()
        } else {
            mass(&(&one + &first / rest))
        };
        (q - p) * left
    });
    round_nearest(&(terms.sum::<Rational>() / first))
}

/// `docs/theory/rrs-wo.md` counts the roundings of two drafts: here are the rows at which each part
/// of the count is largest, against fractions.
#[test]
fn two_drafts_are_within_the_roundings_that_are_counted() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let (mut swept, mut worst) = (0, 0.0f64);
    for trial in 0..120 {
        let vocabulary = [3, 7, 40, 90][trial % 4];
        let mut row = |power: i32| -> Vec<f64> {
            let entries = (0..vocabulary).map(|_| rng.random::<f64>().powi(power) + 1e-3);
            normalised(entries.collect())
        };
        let (mut target, mut draft) = (row(1 + trial as i32 % 5), row(1 + trial as i32 % 3));
        let light = 10f64.powi(-(1 + trial as i32 / 4 % 17));
        match trial % 3 {
            // Little is left of q after its heaviest token: 1 - q down to 1e-17.
            0 => {
                draft.iter_mut().for_each(|q| *q *= light);
                draft[0] = 1.0;
            }
            // p is nearly q: M(1) is divided by, and is rounding itself in the end.
            1 => {
                for (p, q) in target.iter_mut().zip(&draft) {
                    *p = q * (1.0 + light * (*p - 0.5));
                }
            }
            // Many p/q where the second draft asks: next to 1 + M(1)/(1-q).
            _ => {
                draft.iter_mut().for_each(|q| *q *= 2e-3);
                draft[0] = 1.0;
                target[0] = 0.0;
                for (token, p) in target.iter_mut().enumerate().skip(1) {
                    *p = draft[token] * (1.5 + light * token as f64);
                }
                target[0] = (1.0 - target[1..].iter().sum::<f64>()).max(0.0);
            }
        }
        let (target, draft) = (normalised(target), normalised(draft));
        let truth = two_rejected_exactly(&target, &draft);
        let budget = RejectionBudget::default();
        let rejections = Rejections::new(&target, &draft);
        let (lower, upper) = rejections.enclosure(2, &budget);
        assert!(
            1.0 - upper <= truth && truth <= 1.0 - lower,
            "{trial}: {truth} is not in [{}, {}]",
            1.0 - upper,
            1.0 - lower
        );
        let sorted = rejections.curve.two_sequential_rejected(&target, &draft);
        worst = worst.max((sorted - truth).abs());
        let rows = Rows::new(&target, &draft);
        for least in [0.4, 0.01, 0.0] {
            let sweep = Sweep::new(rows, 2, |_| least);
            if let Some(rejected) = sweep.two_rejected(rows) {
                swept += 1;
                worst = worst.max((rejected - truth).abs());
                assert!((rejected - truth).abs() <= PAIR_ROUNDING, "{trial}");
            }
        }
    }
    // The count has room: what is seen is a tenth of it at most.
    assert!(
        swept > 150 && worst < 0.1 * PAIR_ROUNDING,
        "{swept} {worst}"
    );
}

/// Listed tokens of the shipped log, and the rest with log-normal shares of its mass.
fn logged(step: usize, temperature: f64) -> Vec<(Vec<f64>, Vec<f64>)> {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let mut full = |(mut row, rest): (Vec<f64>, f64)| {
        row.iter_mut().for_each(|x| *x *= 1.0 - rest);
        let tail = (0..4000).map(|_| (3.0 * (rng.random::<f64>() + rng.random::<f64>())).exp());
        row.extend(normalised(tail.collect()).iter().map(|share| rest * share));
        row
    };
    let rows = listed(step, temperature).into_iter();
    rows.map(|[target, draft]| (full(target), full(draft)))
        .collect()
}

#[test]
fn real_rows_are_within_their_enclosures() {
    let mut scan = Workspace::new();
    let (mut checked, mut estimates) = (0, 0);
    for temperature in [0.7, 1.0] {
        for (target, draft) in &logged(29, temperature) {
            for (drafts, width) in [(2, 1e-11), (3, 1e-5), (4, 2e-4)] {
                let rows = Rows { target, draft };
                let mut row = scan.load(rows, MOST_DRAFTS).unwrap();
                let budget = RejectionBudget {
                    width,
                    ..RejectionBudget::default()
                };
                let fast = row.accepted_in_turn_fast(drafts, &budget);
                let slow = row.accepted_in_turn(drafts, &budget);
                assert_eq!(slow.kind(), Kind::Enclosed);
                let within = slow.lower() <= fast.value() && fast.value() <= slow.upper();
                assert!(within, "{temperature} {drafts}: {fast:?} {slow:?}");
                checked += 1;
                estimates += usize::from(fast.kind() == Kind::Estimate);
                assert!(fast.width() < 1e-4, "{fast:?}");
                assert!(fast.kind() == Kind::Estimate || drafts == 2 || fast == slow);
            }
        }
    }
    assert!(3 * estimates > checked, "{estimates} of {checked}");
}

/// One draft is the overlap of both rows, which takes no sort: as the enclosure has it.
#[test]
fn one_draft_is_the_overlap() {
    let mut scan = Workspace::new();
    for (target, draft) in &logged(29, 1.0) {
        let rows = Rows { target, draft };
        let mut row = scan.load(rows, MOST_DRAFTS).unwrap();
        let budget = RejectionBudget::default();
        let (fast, slow) = (
            row.accepted_in_turn_fast(1, &budget),
            row.accepted_in_turn(1, &budget),
        );
        assert_eq!(fast, row.overlap());
        assert!(
            fast.lower() <= slow.upper() && slow.lower() <= fast.upper(),
            "{fast:?} {slow:?}"
        );
        assert!(
            fast.width() < 2e-14 && slow.width() < 1e-11,
            "{fast:?} {slow:?}"
        );
    }
}

/// Peaked rows, ties, rows of a few tokens, p = q, nothing in common: within the enclosure, or
/// off by no more than is told.
#[test]
fn extreme_rows_are_where_they_are_said_to_be() {
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let mut scan = Workspace::new();
    let (mut worst, mut kinds) = (0.0f64, [0, 0]);
    for trial in 0..400 {
        let vocabulary = [5, 12, 60, 700][trial % 4];
        let sharp = [0.5, 2.0, 6.0, 14.0][trial / 4 % 4];
        let mut row = || {
            let round = rng.random_bool(0.2);
            let entries = (0..vocabulary).map(|_| {
                let x = sharp * (rng.random::<f64>() + rng.random::<f64>() - 1.0);
                if round { x.round().exp() } else { x.exp() }
            });
            normalised(entries.collect())
        };
        let (mut target, mut draft) = (row(), row());
        match rng.random_range(0..8) {
            0 => target.clone_from(&draft),
            1 => {
                draft[0] = 30.0;
                draft = normalised(draft);
            }
            2 => {
                let heavy = 10f64.powi(rng.random_range(1..8));
                (draft[1], draft[3]) = (heavy, 0.5 * heavy);
                draft = normalised(draft);
            }
            3 => {
                for token in 0..vocabulary {
                    if token % 2 == 0 {
                        target[token] = 0.0
                    } else {
                        draft[token] = 0.0
                    }
                }
                (target, draft) = (normalised(target), normalised(draft));
            }
            _ => {}
        }
        let drafts = 2 + trial / 16 % 3;
        let rows = Rows::new(&target, &draft);
        let mut row = scan.load(rows, drafts).unwrap();
        let budget = RejectionBudget {
            width: if drafts == 4 { 1e-4 } else { 1e-6 },
            work_limit: 2_000_000,
            widest: 1.0,
            ..RejectionBudget::default()
        };
        let fast = row.accepted_in_turn_fast(drafts, &budget);
        let slow = row.accepted_in_turn(drafts, &budget);
        assert_eq!(slow.kind(), Kind::Enclosed);
        let apart = f64::max(slow.lower() - fast.value(), fast.value() - slow.upper());
        assert!(
            apart <= 0.5 * fast.width(),
            "{trial}: V = {vocabulary}, n = {drafts}, {fast:?} {slow:?}"
        );
        worst = worst.max(apart);
        kinds[usize::from(fast.kind() == Kind::Estimate)] += 1;
    }
    assert!(worst < 1e-5 && kinds[1] > 150, "{worst} {kinds:?}");
}

/// One row's numbers for several n, in any order, are those of a row that is asked for one.
#[test]
fn a_rate_does_not_depend_on_what_was_asked_before() {
    let (target, draft) = &logged(97, 1.0)[1];
    let rows = Rows { target, draft };
    let mut scan = Workspace::new();
    let budget = RejectionBudget::default();
    let alone: Vec<f64> = (2..=7)
        .map(|drafts| {
            let mut row = scan.load(rows, 7).unwrap();
            row.accepted_in_turn_fast(drafts, &budget).value()
        })
        .collect();
    let mut row = scan.load(rows, 7).unwrap();
    for drafts in [4, 2, 7, 3, 6, 5, 7, 2] {
        let found = row.accepted_in_turn_fast(drafts, &budget).value();
        assert_eq!(found, alone[drafts - 2], "{drafts}");
    }
    // More drafts accept more.
    assert!(alone.is_sorted(), "{alone:?}");
}

#[test]
fn numbers_of_drafts_without_a_rule_have_no_estimate() {
    let (target, draft) = ([0.25; 4], [0.4, 0.3, 0.2, 0.1]);
    let rows = Rows::new(&target, &draft);
    let sweep = Sweep::new(rows, 8, |_| 0.0);
    assert!(estimate(&sweep, 2).is_none() && estimate(&sweep, MOST_DRAFTS + 1).is_none());
    // All tokens are drafted in the end: no estimate is needed.
    let mut scan = Workspace::new();
    let mut row = scan.load(rows, 8).unwrap();
    let budget = RejectionBudget::default();
    let all = row.accepted_in_turn_fast(8, &budget);
    assert_eq!(all.kind(), Kind::Enclosed);
    assert!((all.value() - 1.0).abs() < 1e-14);
}

/// One token holds all of q but 1e-26: two drafts by fractions, and of three no more than is possible.
#[test]
fn what_a_sure_token_leaves_is_drafted_by_its_shares() {
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    for _ in 0..20 {
        let mut row = |sure: usize| -> Vec<f64> {
            let light = (0..40).map(|_| 1e-26 * rng.random::<f64>());
            let mut row: Vec<f64> = light.collect();
            row[sure] = 1.0;
            row
        };
        let (target, draft) = (row(1), row(2));
        let truth = 1.0 - two_rejected_exactly(&target, &draft);
        let all = Rejections::new(&target, &draft);
        let budget = RejectionBudget::default();
        let two = all.acceptance(2, &budget, None);
        assert!(two.note.is_none() && two.rate.width() < 1e-11);
        assert!(
            (two.rate.value() - truth).abs() < 1e-12,
            "{truth} {:?}",
            two.rate
        );
        let three = all.acceptance(3, &budget, None).rate;
        let mut workspace = Workspace::new();
        let mut row = workspace.load(Rows::new(&target, &draft), 3).unwrap();
        let most = row.without_replacement(3).unwrap().rate.upper();
        assert!(
            three.lower() >= truth - 1e-11 && three.upper() <= most,
            "{three:?}"
        );
    }
}
