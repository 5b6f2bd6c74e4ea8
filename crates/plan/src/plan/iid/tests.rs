use super::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use specgap_number::distribution::{Draft, Rational, compensated_sum, exact_value, round_nearest};
use specgap_number::quadrature::LaplaceGrid;

/// What the error allows beside rounding is at least what the rule in s was measured to be
/// off by, over the whole range of a grid.
#[test]
fn the_error_of_acceptance_has_room_for_the_quadrature() {
    let grid = LaplaceGrid::new(1e-6, 1e4);
    let off = |total: f64| {
        let terms = grid.s.nodes.iter().zip(&grid.s.weights);
        let sum = compensated_sum(terms.map(|(s, weight)| weight * total * (-s * total).exp()));
        (sum - 1.0).abs()
    };
    let totals = (0..=200).map(|step| 1e-6 * 1e10f64.powf(f64::from(step) / 200.0));
    let worst = totals.map(off).fold(0.0, f64::max);
    // The grid's left end shows: it is no rounding.
    assert!(worst > 2.0 * f64::EPSILON, "{worst:e}");
    let counted = Counted {
        nodes: 100,
        transform: 300,
    };
    for drafts in [1usize, 2, 8] {
        for accepted in [1.0, 0.25] {
            let error = |counted: Counted| counted.acceptance_error(accepted, drafts);
            let nodes = accepted * 300.0 * 0.5 * f64::EPSILON;
            let transform = drafts as f64 * 300.0 * 0.5 * f64::EPSILON;
            let least = error(Counted::default());
            // Each part of the count is there.
            assert!((error(counted) - least - nodes - transform).abs() < 1e-18);
            let needed = accepted * worst + drafts as f64 * (kernels::ERROR + TABLE_ROUNDING);
            assert!(least >= needed, "{drafts} {accepted}: {least:e} {needed:e}");
        }
    }
}

/// What the plan of given weights accepts, tuple by tuple, in fractions.
fn accepted_exactly(plan: &TokenPlan, q: &[f64]) -> Rational {
    let exact = |x: f64| exact_value(x).unwrap();
    let (zero, drafts) = (exact(0.0), plan.drafts());
    let weight: Vec<Rational> = plan.weights().iter().map(|&w| exact(w)).collect();
    let q: Vec<Rational> = q.iter().map(|&q| exact(q)).collect();
    let total: Rational = q.iter().sum();
    // Thinning is what the floats say it is: 0 of p is 0.
    let keep: Vec<Rational> = (0..q.len() as u32)
        .map(|token| {
            let tuple = vec![token; drafts];
            let (accepted, picked) = (plan.accepted(&tuple), plan.picked(&tuple));
            if picked[0] > 0.0 {
                exact(accepted[0]) / exact(picked[0])
            } else {
                zero.clone()
            }
        })
        .collect();
    let mut sum = zero.clone();
    let mut tuple = vec![0u32; drafts];
    loop {
        let tier = tuple.iter().filter_map(|&token| plan.tier_of(token)).max();
        if let Some(tier) = tier {
            let competing = || tuple.iter().filter(|&&t| plan.tier_of(t) == Some(tier));
            let all: Rational = competing().map(|&t| &weight[t as usize]).sum();
            let all = all + exact(plan.rejecting_weight(tier));
            let kept: Rational = competing()
                .map(|&t| &weight[t as usize] * &keep[t as usize])
                .sum();
            let chance: Rational = tuple.iter().map(|&t| &q[t as usize] / &total).product();
            sum += chance * kept / all;
        }
        let Some(place) = tuple.iter().position(|&t| (t as usize) + 1 < q.len()) else {
            break;
        };
        tuple[place] += 1;
        tuple[..place].fill(0);
    }
    sum
}

/// Acceptance is enclosed: of the rule with these very weights, over rows of many magnitudes,
/// with ties and zeros, solved well or not at all.
#[test]
fn acceptance_of_the_weights_is_enclosed_in_fractions() {
    let mut rng = ChaCha8Rng::seed_from_u64(19);
    let mut worst = 0.0f64;
    for trial in 0..150 {
        let (vocabulary, drafts) = [(3, 3), (5, 2), (4, 2), (7, 2), (3, 4)][trial % 5];
        let spread = [1.0, 4.0, 12.0, 40.0][trial / 5 % 4];
        let mut row = || -> Vec<f64> {
            let entries = (0..vocabulary).map(|_| match rng.random_range(0..8) {
                0 => 0.0,
                1 => 0.25,
                _ => (spread * (rng.random::<f64>() - 1.0)).exp(),
            });
            let mut row: Vec<f64> = entries.collect();
            row[0] = row[0].max(1e-3);
            let sum: f64 = row.iter().sum();
            row.iter_mut().for_each(|x| *x /= sum);
            row
        };
        let (target, draft) = (row(), row());
        let (p, q) = (Target::new(&target).unwrap(), Draft::new(&draft).unwrap());
        let iterations = [60, 60, 1, 0][trial % 4];
        let settings = PlanSettings {
            iterations,
            ..PlanSettings::default()
        };
        let plan = TokenPlan::iid(&p, &q, drafts, &settings).unwrap();
        let truth = accepted_exactly(&plan, q.probabilities());
        let rate = plan.acceptance_rate();
        let exact = |x: f64| exact_value(x).unwrap();
        assert!(
            exact(rate.lower()) <= truth && truth <= exact(rate.upper()),
            "{trial}: {} is not in {rate:?}",
            round_nearest(&truth)
        );
        let off = round_nearest(&(truth - exact(rate.value()))).abs();
        worst = worst.max(off / rate.width());
    }
    // The enclosure needs its width, within an order of magnitude or two.
    assert!(worst > 2e-3, "{worst}");
}
