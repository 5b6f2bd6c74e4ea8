//! A tier's parts on a few groups: what is emitted of two drafts by hand, steps against the
//! change that they are to make, bins against the moments that they are to keep.

use super::groups::{Curve, Groups};
use super::kernels;
use super::newton::LONGEST_STEP;
use super::tier::{MARGIN, Tier, power_quotient};
use super::{Counted, TABLE_ROUNDING};
use specgap_number::quadrature::QUADRATURE_ERROR;

/// Groups of mass 1/4 and 3/8 beside 1/8 that emits nothing.
fn tier(drafts: usize, base: f64, rejected: Option<f64>) -> Tier {
    Tier {
        mass: vec![0.25, 0.375],
        ratio: vec![0.4, 0.9],
        base,
        inside: base + 0.625,
        drafts,
        rejected,
    }
}

fn close(found: f64, expected: f64) {
    let off = (found - expected).abs();
    assert!(
        off <= 2e-13 * expected.abs().max(1e-3),
        "{found} {expected}"
    );
}

#[test]
fn ranges_and_coordinates_by_hand() {
    assert_eq!(
        [0, 1, 2, 3].map(|n| power_quotient(2.0, 3.0, n)),
        [0.0, 1.0, 5.0, 19.0]
    );
    let (free, refusing) = (tier(3, 0.125, None), tier(3, 0.125, Some(0.1)));
    assert_eq!(free.range(), (3.0 / 64.0, 27.0 / 16.0));
    assert_eq!(refusing.range(), (0.0, 27.0 / 16.0));
    assert_eq!([free.reject_weight(), refusing.reject_weight()], [0.0, 1.0]);
    for tier in [&free, &refusing] {
        let (low, up) = tier.range();
        // A quarter, half and three quarters of the way: odds of 1/3, 1 and 3.
        for (share, odds) in [(0.25, 1.0 / 3.0), (0.5, 1.0), (0.75, 3.0f64)] {
            let ratio = low + share * (up - low);
            assert!((tier.coordinate(ratio) - odds.ln()).abs() < 1e-14);
            assert!((tier.ratio_at(odds.ln()) - ratio).abs() < 1e-15);
        }
        // Ends are kept a little inside.
        let top = ((up - low) / (MARGIN * up)).ln();
        assert!((tier.coordinate(up) - top).abs() < 1e-12);
        assert!(
            (tier.coordinate(2.0 * up) - (2.0 * up - low).ln() + (MARGIN * up).ln()).abs() < 1e-12
        );
        let least = if low > 0.0 { 1e-15 * up } else { 1e-290 * up };
        assert!((tier.least_above_low() / least - 1.0).abs() < 1e-14);
        assert!((tier.coordinate(low) - (least / (up - low)).ln()).abs() < 1e-12);
    }
}

/// Nine tokens, of which the last is beyond a vector: each is off by what its place says.
#[test]
fn what_is_emitted_is_mass_times_value() {
    let mass: Vec<f64> = (1..=9).map(|token| f64::from(token) / 64.0).collect();
    let wanted = [2.0; 9];
    let mut values: Vec<f64> = (1..=9)
        .map(|token| if token % 2 == 0 { 2.5 } else { 1.0 })
        .collect();
    let off = kernels::emitted(&mass, &wanted, &mut values);
    // Odd tokens lack 1 a mass, even ones have half too much.
    assert_eq!(off, (25.0 + 20.0 / 2.0) / 64.0);
    assert_eq!(values[..3], [1.0 / 64.0, 5.0 / 64.0, 3.0 / 64.0]);
    assert_eq!(values[8], 9.0 / 64.0);
}

/// `docs/theory/plans.md` counts the parts.
#[test]
fn acceptance_is_off_by_every_part() {
    let unit = 0.5 * f64::EPSILON;
    let none = Counted::default().acceptance_error(0.0, 3);
    let parts = 3.0 * (kernels::ERROR + TABLE_ROUNDING) + (3.0 * 12.0 + 138.0) * unit;
    close(none / parts, 1.0);
    let counted = Counted {
        nodes: 100,
        transform: 1000,
    };
    let more = counted.acceptance_error(0.5, 3) - none;
    let parts = 0.5 * (QUADRATURE_ERROR + (6.0 + 300.0 + 128.0) * unit) + 3000.0 * unit;
    close(more / parts, 1.0);
    let other = Counted {
        nodes: 7,
        transform: 2000,
    };
    let both = Counted {
        nodes: 100,
        transform: 2000,
    };
    assert_eq!(counted.most(other), both);
}

/// Of two drafts: each alone beside what emits nothing, both of one group, one of each.
#[test]
fn emissions_of_two_drafts_by_hand() {
    for base in [0.0, 0.125] {
        for rejected in [None, Some(0.1)] {
            let tier = tier(2, base, rejected);
            let weights = [0.5, 3.0];
            let state = tier.state(weights.to_vec());
            let [v, w] = match rejected {
                // Only their proportion counts: the largest is 1.
                None => [0.5 / 3.0, 1.0],
                Some(_) => weights,
            };
            assert_eq!(state.weights, [v, w]);
            let slot = tier.reject_weight();
            // A token of weight x, of a group of weight x, beside another of weight y.
            let value = |x: f64, own: f64, y: f64, other: f64| {
                2.0 * (own * x / (slot + 2.0 * x)
                    + other * x / (slot + x + y)
                    + base * x / (slot + x))
            };
            let expected = [value(v, 0.25, w, 0.375), value(w, 0.375, v, 0.25)];
            let mut residual = 0.0;
            for (j, expected) in expected.into_iter().enumerate() {
                close(state.value[j], expected);
                residual += tier.mass[j] * (tier.ratio[j] - expected).abs();
            }
            close(state.residual, residual);
            // Its slope where the others stay.
            let slope = |x: f64, own: f64, y: f64, other: f64| {
                let part = |rest: f64| x * rest / ((x + rest) * (x + rest));
                2.0 * (own * part(slot + x) + other * part(slot + y) + base * part(slot))
            };
            for (found, expected) in state
                .slope
                .iter()
                .zip([slope(v, 0.25, w, 0.375), slope(w, 0.375, v, 0.25)])
            {
                assert!((found - expected).abs() < 1e-12, "{found} {expected}");
            }
        }
    }
}

/// What the Hessian says: a small step changes emissions by what it was asked for.
#[test]
fn steps_change_emissions_as_they_are_asked_to() {
    for drafts in [1, 2, 3, 5] {
        for (base, rejected) in [(0.0, None), (0.125, None), (0.125, Some(0.05))] {
            let tier = Tier {
                mass: vec![0.1, 0.25, 0.15, 0.3],
                ratio: vec![0.2, 0.5, 0.9, 1.3],
                base,
                inside: base + 0.8,
                drafts,
                rejected,
            };
            if drafts == 1 && rejected.is_none() {
                continue;
            }
            let state = tier.state(vec![0.3, 0.7, 2.0, 6.0]);
            // Where nothing is rejected what one group gains the others lose.
            let right = match rejected {
                None => [0.003, -0.001, 0.002, -0.004],
                Some(_) => [0.003, -0.001, 0.002, 0.004],
            };
            let step = tier.eliminate(&state, right.to_vec()).unwrap();
            let moved = |by: f64| {
                let weights = state.weights.iter().zip(&step);
                let weights = weights.map(|(w, step)| w * (by * step).exp());
                tier.state(weights.collect()).value
            };
            let size = 1e-5;
            for (j, (after, before)) in moved(size).iter().zip(moved(-size)).enumerate() {
                let rate = tier.mass[j] * (after - before) / (2.0 * size);
                assert!((rate - right[j]).abs() < 1e-8, "{drafts} {j}: {rate}");
            }
        }
    }
}

#[test]
fn steps_of_one_group_are_cut() {
    let tier = tier(2, 0.0, Some(0.1));
    let (_, up) = tier.range();
    // Odds of 1 are wanted and are 1/3 now: log 3 over the rate of the log odds.
    let slope = 0.2;
    let rate = slope * (4.0 / up + 4.0 / (3.0 * up));
    let step = tier.inverse_step(0.25 * up, slope, 0.5 * up);
    close(step, 3f64.ln() / rate);
    close(
        tier.inverse_step(0.5 * up, slope, 0.25 * up),
        -(3f64.ln()) / (slope * 4.0 / up),
    );
    assert_eq!(tier.inverse_step(0.25 * up, 1e-3, 0.5 * up), LONGEST_STEP);
    assert_eq!(tier.inverse_step(0.5 * up, 1e-3, 0.25 * up), -LONGEST_STEP);
    // A slope or a value of nothing says only which way.
    for (value, slope) in [(0.25 * up, 0.0), (0.0, 0.2)] {
        assert_eq!(tier.inverse_step(value, slope, 0.5 * up), LONGEST_STEP);
    }
    for wanted in [0.25 * up, 0.5 * up] {
        assert_eq!(tier.inverse_step(0.5 * up, 0.0, wanted), -LONGEST_STEP);
    }
}

/// A few groups are solved in a few steps, from nothing and from near the answer.
#[test]
fn small_tiers_are_solved_in_a_few_steps() {
    for drafts in [2, 3, 6] {
        for (base, rejected) in [(0.0, None), (0.125, None), (0.125, Some(0.05))] {
            let mut tier = Tier {
                mass: vec![0.1, 0.25, 0.15, 0.3],
                ratio: vec![],
                base,
                inside: base + 0.8,
                drafts,
                rejected,
            };
            let truth = tier_weights(&mut tier);
            let (state, iterations) = tier.solve(None, 1e-13, 60);
            assert!(state.residual <= 1e-13, "{drafts}: {:e}", state.residual);
            assert!(
                iterations <= 12,
                "{drafts} {base} {rejected:?}: {iterations}"
            );
            let scale = state.weights[3] / truth[3];
            for (found, truth) in state.weights.iter().zip(&truth) {
                assert!(
                    (found / (truth * scale) - 1.0).abs() < 1e-9,
                    "{found} {truth}"
                );
            }
            assert!(rejected.is_none() || (scale - 1.0).abs() < 1e-9, "{scale}");
            // From the answer there is nothing to do.
            let logs = truth.iter().map(|w| w.ln()).collect();
            let (state, iterations) = tier.solve(Some(logs), 1e-12, 60);
            assert!(iterations <= 1 && state.residual <= 1e-12, "{iterations}");
        }
    }
}

/// Weights, of which a tier's ratios and what it rejects are made.
fn tier_weights(tier: &mut Tier) -> Vec<f64> {
    let weights = vec![0.3, 0.7, 2.0, 6.0];
    tier.ratio = vec![0.0; 4];
    let value = tier.state(weights.clone()).value;
    if tier.rejected.is_some() {
        let emitted: f64 = tier.mass.iter().zip(&value).map(|(q, r)| q * r).sum();
        tier.rejected = Some(tier.inside.powi(tier.drafts as i32) - emitted);
    }
    tier.ratio = value;
    weights
}

/// Bins keep the mass and three moments of what is in them.
#[test]
fn groups_keep_the_moments_of_their_bins() {
    let tier = tier(2, 0.0, Some(0.1));
    for count in [1usize, 2, 3, 9, 40] {
        let coordinate: Vec<f64> = (0..count)
            .map(|i| -1.0 + 0.003 * (i * i) as f64 / count as f64)
            .collect();
        let mass: Vec<f64> = (0..count)
            .map(|i| 1e-3 * ((i * 7 % 5) + 1) as f64)
            .collect();
        let ratio: Vec<f64> = coordinate.iter().map(|&c| tier.ratio_at(c)).collect();
        let groups = Groups::new(&tier, &mass, &ratio, &coordinate, 1.0);
        assert_eq!(groups.mass.len(), count.min(2), "{count}");
        let moments = |mass: &[f64], at: &[f64]| {
            [0, 1, 2, 3].map(|k| -> f64 {
                let terms = mass.iter().zip(at).map(|(m, x)| m * (x + 1.0).powi(k));
                terms.sum()
            })
        };
        let [own, all] = [
            moments(&groups.mass, &groups.coordinate),
            moments(&mass, &coordinate),
        ];
        for (own, all) in own.iter().zip(all) {
            assert!(
                (own - all).abs() <= 1e-12 * all + 1e-16,
                "{count}: {own} {all}"
            );
        }
        for (at, ratio) in groups.coordinate.iter().zip(&groups.ratio) {
            assert!((tier.ratio_at(*at) - ratio).abs() < 1e-14);
        }
        // Alike: one group at the mean ratio.
        let same = vec![-1.0; count];
        let groups = Groups::new(&tier, &mass, &ratio, &same, 1.0);
        assert_eq!(groups.mass.len(), 1);
        let all: f64 = mass.iter().sum();
        let share: f64 = mass.iter().zip(&ratio).map(|(m, r)| m * r).sum();
        assert!((groups.mass[0] - all).abs() < 1e-16);
        assert!((groups.ratio[0] - share / all).abs() < 1e-15 && groups.coordinate[0] == -1.0);
    }
    // A bin is a quarter wide at most, and its mass times width^4 is bounded.
    let bins = |coordinate: [f64; 3], tolerance: f64| {
        let mass = [0.25; 3];
        let ratio = coordinate.map(|c| tier.ratio_at(c));
        Groups::new(&tier, &mass, &ratio, &coordinate, tolerance)
            .mass
            .len()
    };
    assert_eq!(bins([0.0, 0.125, 0.25], 1.0), 2);
    assert_eq!(bins([0.0, 0.125, 0.26], 1.0), 3);
    assert_eq!(bins([0.0, 0.125, 0.25], 0.75 / 256.0), 2);
    assert_eq!(bins([0.0, 0.125, 0.25], 0.74 / 256.0), 3);
}

/// The curve meets the groups' weights with their slopes, and goes on with slope 1.
#[test]
fn curves_meet_the_groups() {
    let tier = tier(2, 0.0, Some(0.1));
    let groups = Groups {
        coordinate: vec![-1.0, -0.5, 0.25],
        ratio: [-1.0, -0.5, 0.25].map(|c| tier.ratio_at(c)).to_vec(),
        mass: vec![0.25, 0.25, 0.125],
    };
    let state = tier.state(vec![0.5, 1.0, 2.5]);
    let slopes = [0.2, 0.25, 0.3];
    let curve = Curve::new(&tier, &groups, &state, &slopes);
    let at = |x: f64| {
        let mut log = [f64::NAN];
        curve.fill(&[x], &mut log);
        log[0]
    };
    let (_, up) = tier.range();
    for (k, (&x, weight)) in groups.coordinate.iter().zip([0.5f64, 1.0, 2.5]).enumerate() {
        assert!((at(x) - weight.ln()).abs() < 1e-14);
        // One over the rate of the coordinate.
        let ratio = groups.ratio[k];
        let slope = 1.0 / (slopes[k] * (1.0 / ratio + 1.0 / (up - ratio)));
        for step in [1e-6, -1e-6] {
            let beyond = (k == 0 && step < 0.0) || (k == 2 && step > 0.0);
            let expected = if beyond { 1.0 } else { slope };
            let found = (at(x + step) - at(x)) / step;
            assert!((found - expected).abs() < 1e-4, "{k}: {found} {expected}");
        }
    }
    assert!((at(-3.0) - (0.5f64.ln() - 2.0)).abs() < 1e-14);
    assert!((at(1.25) - (2.5f64.ln() + 1.0)).abs() < 1e-14);
    // Many at once, and out of order, are as one at a time; logarithms have ends.
    let places = [0.3, -2.0, -0.7, -0.6, 0.0, 0.1, -0.5, 900.0, -900.0];
    let mut logs = [f64::NAN; 9];
    curve.fill(&places, &mut logs);
    for (x, log) in places.iter().zip(logs) {
        assert_eq!(log, at(*x));
    }
    assert_eq!(logs[7..], [680.0, -680.0]);
}
