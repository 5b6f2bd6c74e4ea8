//! How good a linear program's answer is, recomputed from the program.

use crate::lp::{Direction, LinearProgram, Relation};
use serde::Serialize;
use specgap_number::distribution::TwoFloat;

/// Optimality conditions of a linear program, each as its largest violation in
/// the units of the program; 0 is perfect.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Residuals {
    /// Largest violation of a row or of `x >= 0`.
    pub primal_infeasibility: f64,
    /// Largest violation of a multiplier's sign or of a reduced cost's.
    pub dual_infeasibility: f64,
    /// |primal objective - dual objective|.
    pub duality_gap: f64,
}

/// Recomputes the optimality conditions of `x` (one a variable) and `multipliers`
/// (one a row: the growth of the objective per unit of the row's bound).
///
/// Sums run in double-double over the unscaled program, whatever the solver did.
/// `None` if the lengths do not fit.
///
/// # Example
/// ```
/// use specgap_core::certify::residuals;
/// use specgap_core::lp::{Direction, LinearProgram, Masses, Relation, Row};
/// let program = LinearProgram {
///     direction: Direction::Maximise,
///     masses: Masses::Bounds,
///     objective: vec![1.0],
///     rows: vec![Row { terms: vec![(0, 2.0)], relation: Relation::AtMost, bound: 1.0 }],
/// };
/// let perfect = residuals(&program, &[0.5], &[0.5]).unwrap();
/// assert_eq!((perfect.primal_infeasibility, perfect.duality_gap), (0.0, 0.0));
/// assert_eq!(residuals(&program, &[0.75], &[0.5]).unwrap().primal_infeasibility, 0.5);
/// assert_eq!(residuals(&program, &[0.5], &[0.25]).unwrap().dual_infeasibility, 0.5);
/// ```
pub fn residuals(program: &LinearProgram, x: &[f64], multipliers: &[f64]) -> Option<Residuals> {
    if x.len() != program.variables() || multipliers.len() != program.rows.len() {
        return None;
    }
    let worst = |value: f64, so_far: f64| match value.is_nan() {
        true => f64::INFINITY,
        false => so_far.max(value),
    };
    let maximise = program.direction == Direction::Maximise;
    let mut primal = x.iter().fold(0.0, |w, &value| worst(-value, w));
    let mut dual: f64 = 0.0;
    let costs = program.objective.iter().copied();
    let mut reduced: Vec<TwoFloat> = costs.map(TwoFloat::from).collect();
    let mut dual_objective = TwoFloat::ZERO;
    for (row, &multiplier) in program.rows.iter().zip(multipliers) {
        let mut sum = TwoFloat::from(-row.bound);
        for &(variable, coefficient) in &row.terms {
            sum += TwoFloat::product(coefficient, x[variable]);
            reduced[variable] = reduced[variable] - TwoFloat::product(coefficient, multiplier);
        }
        let excess = sum.value();
        let violation = match row.relation {
            Relation::AtMost => excess,
            Relation::Equal => excess.abs(),
            Relation::AtLeast => -excess,
        };
        primal = worst(violation, primal);
        // A row that caps a maximum has a multiplier >= 0, and so on.
        let wrong_sign = match (row.relation, maximise) {
            (Relation::Equal, _) => 0.0,
            (Relation::AtMost, true) | (Relation::AtLeast, false) => -multiplier,
            (Relation::AtLeast, true) | (Relation::AtMost, false) => multiplier,
        };
        dual = worst(wrong_sign, dual);
        dual_objective += TwoFloat::product(row.bound, multiplier);
    }
    for cost in reduced {
        let cost = cost.value();
        dual = worst(if maximise { cost } else { -cost }, dual);
    }
    let gap = TwoFloat::from(program.objective_at(x)) - dual_objective;
    Some(Residuals {
        primal_infeasibility: primal,
        dual_infeasibility: dual,
        duality_gap: worst(gap.value().abs(), 0.0),
    })
}
