//! minilp 0.2.2: a simplex method in pure Rust, always built in.

use super::{Backend, BackendName, Direction, LinearProgram, LpAnswer, LpStatus, Relation};
use ::minilp::{ComparisonOp, Error, LinearExpr, OptimizationDirection, Problem};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The minilp solver. It returns no multipliers.
#[derive(Clone, Copy, Debug, Default)]
pub struct MiniLp;

impl Backend for MiniLp {
    fn name(&self) -> BackendName {
        BackendName::MiniLp
    }

    fn solve(&self, program: &LinearProgram) -> LpAnswer {
        // minilp panics on a few degenerate bases; that is a failure of the
        // solver, and stays one.
        let outcome = specgap_base::panics::quiet_panics(|| {
            catch_unwind(AssertUnwindSafe(|| solve(program)))
        });
        outcome.unwrap_or_else(|_| {
            LpAnswer::without_solution(LpStatus::Failed("minilp panicked".to_owned()))
        })
    }
}

fn solve(program: &LinearProgram) -> LpAnswer {
    let mut problem = Problem::new(match program.direction {
        Direction::Maximise => OptimizationDirection::Maximize,
        Direction::Minimise => OptimizationDirection::Minimize,
    });
    let (cost_scale, bound_scale) = program.scales();
    let variables: Vec<_> = program
        .objective
        .iter()
        .map(|&coefficient| problem.add_var(coefficient * cost_scale, (0.0, f64::INFINITY)))
        .collect();
    for row in &program.rows {
        let mut sum = LinearExpr::empty();
        for &(variable, coefficient) in &row.terms {
            sum.add(variables[variable], coefficient);
        }
        let relation = match row.relation {
            Relation::AtMost => ComparisonOp::Le,
            Relation::Equal => ComparisonOp::Eq,
            Relation::AtLeast => ComparisonOp::Ge,
        };
        problem.add_constraint(sum, relation, row.bound * bound_scale);
    }
    match problem.solve() {
        Ok(solution) => {
            let primal = variables
                .iter()
                .map(|&v| solution[v] / bound_scale)
                .collect();
            LpAnswer {
                status: LpStatus::Optimal,
                primal: Some(primal),
                dual: None,
            }
        }
        Err(Error::Infeasible) => LpAnswer::without_solution(LpStatus::Infeasible),
        Err(Error::Unbounded) => LpAnswer::without_solution(LpStatus::Unbounded),
    }
}
