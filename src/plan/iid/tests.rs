use super::*;
use crate::distribution::compensated_sum;
use crate::quadrature::LaplaceGrid;

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
    for drafts in [1, 2, 8] {
        for accepted in [1.0, 0.25] {
            let roundings = (RELATIVE_ROUNDINGS * accepted + ROUNDINGS) * f64::EPSILON;
            let room = acceptance_error(accepted, drafts) - roundings;
            let needed = accepted * worst + drafts as f64 * kernels::ERROR;
            assert!(room >= needed, "{drafts} {accepted}: {room:e} {needed:e}");
        }
    }
}
