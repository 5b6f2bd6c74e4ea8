//! Answers about rows of a few tokens, worked out by hand, with the errors that are told beside
//! them.

use super::overlap::residual_error;
use super::scan::Row;
use super::test_rows::normalised;
use super::{RejectionBudget, Rows, Workspace};
use specgap_number::known::Known;

const E: f64 = f64::EPSILON;

/// Half, a quarter and two eighths of q, in another order; rows that sum to 1 but for what is
/// allowed, which changes nothing.
fn with_rows(check: impl Fn(&mut Row<'_>)) {
    let small = 2f64.powi(-21);
    for [above, below] in [[1.0, 1.0], [1.0 + small, 1.0 - small]] {
        let target = [0.25, 0.125, 0.125, 0.5].map(|p| p * above);
        let draft = [0.125, 0.5, 0.25, 0.125].map(|q| q * below);
        let rows = Rows::new(&target, &draft);
        check(&mut Workspace::new().load(rows, 4).unwrap());
    }
}

/// A value of so many roundings to both sides.
fn is(found: &Known, value: f64, error: f64) {
    assert!((found.value() - value).abs() < 4.0 * E, "{found:?} {value}");
    let cut = (value + error).min(1.0) - (value - error).max(0.0);
    assert!((found.width() - cut).abs() <= 2.0 * E, "{found:?} {error}");
}

#[test]
fn fixed_drafts_by_hand() {
    with_rows(|row| {
        assert_eq!(row.heaviest(3), [1, 2, 0]);
        assert_eq!(row.heaviest(9), [1, 2, 0, 3]);
        assert_eq!(row.heaviest(1), [1]);
        for (count, p) in [(0, 0.0), (1, 0.125), (2, 0.25), (3, 0.5), (4, 1.0)] {
            is(&row.top_mass(count), p, 8.0 * E);
        }
        // Token 1 is a draft, and the other is token 2 half of the time, else 0 or 3.
        is(
            &row.accepted_with_fixed(1),
            0.125 + 0.25 + 0.125 + 0.25,
            8.0 * E,
        );
        is(&row.optimum_with_fixed(1), 0.75, 32.0 * E);
        let hits = 0.125 + 0.5 * 0.125 + 0.25 * 0.25 + 0.25 * 0.5;
        is(&row.hits_with_fixed(1), hits, 8.0 * E);
        // Tokens 1 and 2 are, and then 0 and 3 are alike.
        is(&row.accepted_with_fixed(2), 0.25 + 0.25 + 0.5, 8.0 * E);
        is(&row.optimum_with_fixed(2), 0.25 + 0.25 + 0.5, 32.0 * E);
        is(&row.hits_with_fixed(2), 0.25 + 0.375, 8.0 * E);
        // One draw of q alone.
        is(&row.accepted_with_fixed(0), 0.5, 8.0 * E);
        is(&row.hits_with_fixed(0), 0.1875, 8.0 * E);
        // Nothing is left to draw.
        is(&row.accepted_with_fixed(4), 1.0, 8.0 * E);
        is(&row.optimum_with_fixed(4), 1.0, 32.0 * E);
        is(&row.hits_with_fixed(4), 1.0, 8.0 * E);
        for (fixed, rest) in [(0, 1.0), (1, 0.5), (2, 0.25), (4, 0.0)] {
            assert!(
                (row.rest_of_draft(fixed) - rest).abs() <= 2.0 * E,
                "{fixed}"
            );
        }
    });
}

/// What is left beside the top may be next to nothing.
#[test]
fn a_last_draft_from_next_to_nothing() {
    let mut workspace = Workspace::new();
    for least in [f64::from_bits(1), 1e-290, 1e-279, 1e-100] {
        let (target, draft) = ([0.25; 4], [1.0, 3.0 * least, least, 0.0]);
        let mut row = workspace.load(Rows::new(&target, &draft), 2).unwrap();
        is(&row.accepted_with_fixed(1), 0.75, 8.0 * E);
        is(&row.optimum_with_fixed(1), 0.75, 32.0 * E);
        is(&row.hits_with_fixed(1), 0.5, 8.0 * E);
    }
}

#[test]
fn hits_and_overlaps_by_hand() {
    assert_eq!(residual_error(1), 32.0 * E);
    assert_eq!(residual_error(3), 128.0 * E);
    with_rows(|row| {
        // Sum of min(p, q).
        is(&row.overlap(), 0.125 + 0.125 + 0.125 + 0.125, 32.0 * E);
        let (p, q) = ([0.25, 0.125, 0.125, 0.5], [0.125f64, 0.5, 0.25, 0.125]);
        for drafts in 1..=4usize {
            let terms = p
                .iter()
                .zip(q)
                .map(|(p, q)| p * (1.0 - (1.0 - q).powi(drafts as i32)));
            is(
                &row.hits_iid(drafts),
                terms.sum(),
                (4.0 * drafts as f64 + 16.0) * E,
            );
        }
        // A pair: q_i and, after j, q_i/(1 - q_j).
        let pair = |i: usize| {
            let second = (0..4)
                .filter(|&j| j != i)
                .map(|j| q[j] * q[i] / (1.0 - q[j]));
            [q[i], second.sum::<f64>()]
        };
        let hits: f64 = (0..4).map(|i| p[i] * pair(i).iter().sum::<f64>()).sum();
        let found = row.hits_sequential(2);
        assert!((found.value() - hits).abs() < 1e-13, "{found:?} {hits}");
        assert!(found.lower() <= hits && hits <= found.upper());
        for token in 0..4 {
            let drawn = row.drawn_at(token, 2);
            for (found, expected) in drawn.iter().zip(pair(token)) {
                assert!((found - expected).abs() < 1e-13, "{found} {expected}");
            }
            // Of four draws from four tokens, one is this.
            let all = row.drawn_at(token, 4);
            assert!((all.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{all:?}");
            assert!(all.iter().all(|&chance| chance > 0.01), "{all:?}");
        }
        assert_eq!(row.drawn_at(9, 2), [0.0; 2]);
        // All of the support is drafted.
        is(&row.hits_sequential(4), 1.0, 8.0 * E);
    });
    // A token that is never drafted, and one draw more than there are tokens.
    let rows = Rows::new(&[0.5, 0.25, 0.25], &[0.75, 0.25, 0.0]);
    let mut workspace = Workspace::new();
    let mut row = workspace.load(rows, 3).unwrap();
    assert_eq!(row.drawn_at(2, 2), [0.0; 2]);
    let drawn = row.drawn_at(1, 3);
    assert!((drawn[0] - 0.25).abs() < 1e-13 && (drawn[1] - 0.75).abs() < 1e-13);
    assert_eq!(drawn[2], 0.0);
    is(&row.hits_sequential(2), 0.75, 8.0 * E);
}

/// Shares are the rows over their sums, also in memory that a larger row has used.
#[test]
fn shares_sum_to_one() {
    let flat = [0.2; 5];
    let mut workspace = Workspace::new();
    let rows = Rows::new(&flat, &flat);
    let mut row = workspace.load(rows, 4).unwrap();
    let shares = row.shares();
    assert_eq!(shares.target.len(), 5);
    row.memo().keep(shares);
    let by = 1.0 + 2f64.powi(-21);
    let (target, draft) = ([0.25 * by, 0.75 * by], [0.5 / by, 0.5 / by]);
    let rows = Rows::new(&target, &draft);
    let mut row = workspace.load(rows, 4).unwrap();
    let shares = row.shares();
    assert_eq!(shares.target, [0.25, 0.75]);
    assert_eq!(shares.draft, [0.5, 0.5]);
}

/// Questions in any order, and again, have the same answers; those about another row do not
/// remember this one.
#[test]
fn what_is_kept_is_of_one_row() {
    type Ask = fn(&mut Row<'_>) -> Known;
    let asks: [Ask; 8] = [
        |row| row.hits_iid(1),
        |row| row.hits_iid(3),
        |row| row.hits_sequential(3),
        |row| row.accepted_with_fixed(1),
        |row| row.optimum_with_fixed(2),
        |row| row.hits_with_fixed(0),
        |row| row.accepted_in_turn_fast(2, &RejectionBudget::default()),
        |row| row.accepted_in_turn_fast(3, &RejectionBudget::default()),
    ];
    let made = |seed: u32| -> Vec<f64> {
        normalised((1..=40u32).map(|i| f64::from(i * seed % 41)).collect())
    };
    let pairs = [[made(7), made(11)], [made(19), made(5)]];
    let fresh = |ask: Ask, [target, draft]: &[Vec<f64>; 2]| {
        let rows = Rows { target, draft };
        ask(&mut Workspace::new().load(rows, 4).unwrap()).value()
    };
    let mut workspace = Workspace::new();
    for round in 0..4 {
        let pair = &pairs[round % 2];
        let [target, draft] = pair;
        let mut row = workspace.load(Rows { target, draft }, 4).unwrap();
        for turn in 0..16 {
            let ask = asks[(turn * 5 + round) % 8];
            assert_eq!(ask(&mut row).value(), fresh(ask, pair), "{round} {turn}");
        }
    }
}
