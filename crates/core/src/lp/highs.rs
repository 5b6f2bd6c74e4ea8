//! HiGHS, built and called through good_lp.

use super::{Backend, BackendName, Direction, LinearProgram, LpAnswer, LpStatus, Relation};
use good_lp::solvers::highs::HighsParallelType;
use good_lp::{
    DualValues, Expression, ProblemVariables, ResolutionError, Solution, SolutionWithDual,
    SolverModel, Variable, constraint, variable,
};

/// Primal and dual feasibility tolerance, in scaled units. The tightest that HiGHS is good for.
const TOLERANCE: f64 = 1e-9;

/// The HiGHS simplex solver.
///
/// Peaked distributions ask for care: at its default tolerances HiGHS calls
/// some of them infeasible and is off by 1e-7 on others. Masses are scaled by
/// [`super::MASS_SCALE`], tolerances are 1e-9, the redundant equality row is left out by
/// the formulation, and presolve, which only costs time here, is off.
#[derive(Clone, Copy, Debug, Default)]
pub struct Highs;

impl Backend for Highs {
    fn name(&self) -> BackendName {
        BackendName::Highs
    }

    fn solve(&self, program: &LinearProgram) -> LpAnswer {
        if program.variables() == 0 {
            let dual = Some(vec![0.0; program.rows.len()]);
            return LpAnswer {
                status: LpStatus::Optimal,
                primal: Some(Vec::new()),
                dual,
            };
        }
        let (cost_scale, bound_scale) = program.scales();
        let mut columns = ProblemVariables::new();
        let variables: Vec<Variable> = program
            .objective
            .iter()
            .map(|_| columns.add(variable().min(0.0)))
            .collect();
        let sum = |terms: &mut dyn Iterator<Item = (usize, f64)>| {
            let mut expression = Expression::with_capacity(terms.size_hint().0);
            for (index, coefficient) in terms {
                expression.add_mul(coefficient, variables[index]);
            }
            expression
        };
        let objective = sum(&mut program
            .objective
            .iter()
            .copied()
            .enumerate()
            .filter(|&(_, coefficient)| coefficient != 0.0)
            .map(|(index, coefficient)| (index, coefficient * cost_scale)));
        let unsolved = match program.direction {
            Direction::Maximise => columns.maximise(objective),
            Direction::Minimise => columns.minimise(objective),
        };
        let mut model = unsolved
            .using(good_lp::solvers::highs::highs)
            .set_option("presolve", "off")
            .set_option("solver", "simplex")
            .set_option("primal_feasibility_tolerance", TOLERANCE)
            .set_option("dual_feasibility_tolerance", TOLERANCE)
            .set_parallel(HighsParallelType::Off)
            .set_threads(1);
        let rows: Vec<_> = program
            .rows
            .iter()
            .map(|row| {
                let left = sum(&mut row.terms.iter().copied());
                let bound = row.bound * bound_scale;
                model.add_constraint(match row.relation {
                    Relation::AtMost => constraint::leq(left, bound),
                    Relation::Equal => constraint::eq(left, bound),
                    Relation::AtLeast => constraint::geq(left, bound),
                })
            })
            .collect();
        match model.solve() {
            Ok(mut solution) => {
                let primal = variables
                    .iter()
                    .map(|&v| solution.value(v) / bound_scale)
                    .collect();
                let multipliers = solution.compute_dual();
                let dual = rows
                    .into_iter()
                    .map(|row| multipliers.dual(row) / cost_scale)
                    .collect();
                LpAnswer {
                    status: LpStatus::Optimal,
                    primal: Some(primal),
                    dual: Some(dual),
                }
            }
            Err(ResolutionError::Infeasible) => LpAnswer::without_solution(LpStatus::Infeasible),
            Err(ResolutionError::Unbounded) => LpAnswer::without_solution(LpStatus::Unbounded),
            Err(other) => LpAnswer::without_solution(LpStatus::Failed(other.to_string())),
        }
    }
}
