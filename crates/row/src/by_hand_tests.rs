//! What the record of rows does not hold, worked out by hand: draws at a place, and what is next to
//! nothing.

use super::{Rows, Workspace};
use specgap_number::known::Known;

const E: f64 = f64::EPSILON;

/// A value of so many roundings to both sides.
fn is(found: &Known, value: f64, error: f64) {
    assert!((found.value() - value).abs() < 4.0 * E, "{found:?} {value}");
    let cut = (value + error).min(1.0) - (value - error).max(0.0);
    assert!((found.width() - cut).abs() <= 2.0 * E, "{found:?} {error}");
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
fn draws_at_their_places_by_hand() {
    let q = [0.125, 0.5, 0.25, 0.125];
    let mut workspace = Workspace::new();
    let mut row = workspace
        .load(Rows::new(&[0.25, 0.125, 0.125, 0.5], &q), 4)
        .unwrap();
    for (fixed, rest) in [(0, 1.0), (1, 0.5), (2, 0.25), (4, 0.0)] {
        assert!((row.rest_of_draft(fixed) - rest).abs() <= 2.0 * E);
    }
    for token in 0..4 {
        // q_i and, after j, q_i/(1 - q_j).
        let others = (0..4).filter(|&j| j != token);
        let second = others.map(|j| q[j] * q[token] / (1.0 - q[j]));
        let pair = [q[token], second.sum()];
        let drawn = row.drawn_at(token, 2);
        for (found, expected) in drawn.iter().zip(pair) {
            assert!((found - expected).abs() < 1e-13, "{found} {expected}");
        }
        // Of four draws from four tokens, one is this.
        let all = row.drawn_at(token, 4);
        assert!((all.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{all:?}");
        assert!(all.iter().all(|&chance| chance > 0.01), "{all:?}");
    }
    assert_eq!(row.drawn_at(9, 2), [0.0; 2]);
    // A token that is never drafted, and one draw more than there are tokens.
    let rows = Rows::new(&[0.5, 0.25, 0.25], &[0.75, 0.25, 0.0]);
    let mut row = workspace.load(rows, 3).unwrap();
    assert_eq!(row.drawn_at(2, 2), [0.0; 2]);
    let drawn = row.drawn_at(1, 3);
    assert!((drawn[0] - 0.25).abs() < 1e-13 && (drawn[1] - 0.75).abs() < 1e-13);
    assert_eq!(drawn[2], 0.0);
    // The whole support is drafted, which is not all of p.
    is(&row.optimum_with_fixed(2), 0.75, 32.0 * E);
}
