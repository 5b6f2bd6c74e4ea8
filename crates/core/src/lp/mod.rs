//! Linear programs as data, and the solvers that take them.
//!
//! [`formulation`] writes the optimal transport problem as a [`LinearProgram`];
//! a [`Backend`] solves it. Nothing here interprets an answer, and no answer is
//! believed: [`crate::certify::residuals`] recomputes it from the program.

pub mod formulation;
#[cfg(feature = "highs")]
mod highs;
#[cfg(feature = "lp")]
mod minilp;

#[cfg(feature = "highs")]
pub use self::highs::Highs;
#[cfg(feature = "lp")]
pub use self::minilp::MiniLp;

/// Direction of optimisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Look for the largest objective.
    Maximise,
    /// Look for the smallest objective.
    Minimise,
}

/// How a row's sum relates to its right-hand side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// `<=`
    AtMost,
    /// `=`
    Equal,
    /// `>=`
    AtLeast,
}

/// One constraint: the sum of `coefficient * variable` against `bound`.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Variable indices with coefficients; a variable stands at most once.
    pub terms: Vec<(usize, f64)>,
    /// The relation.
    pub relation: Relation,
    /// Right-hand side.
    pub bound: f64,
}

/// Where a program's probabilities stand. Solvers have absolute tolerances, so
/// that side is multiplied by [`MASS_SCALE`] on the way in and divided on the
/// way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Masses {
    /// In the right-hand sides: variables are masses.
    Bounds,
    /// In the objective: variables are multipliers.
    Objective,
}

/// A linear program over variables `x >= 0`.
///
/// # Example
/// ```
/// use specgap_core::lp::{Backend, Direction, LinearProgram, Masses, MiniLp, Relation, Row};
/// // maximise x + y subject to x + 2y <= 1, x <= 1/2
/// let program = LinearProgram {
///     direction: Direction::Maximise,
///     masses: Masses::Bounds,
///     objective: vec![1.0, 1.0],
///     rows: vec![
///         Row { terms: vec![(0, 1.0), (1, 2.0)], relation: Relation::AtMost, bound: 1.0 },
///         Row { terms: vec![(0, 1.0)], relation: Relation::AtMost, bound: 0.5 },
///     ],
/// };
/// let answer = MiniLp.solve(&program);
/// assert!((program.objective_at(&answer.primal.unwrap()) - 0.75).abs() < 1e-12);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct LinearProgram {
    /// Direction.
    pub direction: Direction,
    /// Which side holds probabilities.
    pub masses: Masses,
    /// Objective coefficients, one a variable.
    pub objective: Vec<f64>,
    /// Constraints.
    pub rows: Vec<Row>,
}

impl LinearProgram {
    /// Factors for objective coefficients and for right-hand sides.
    #[cfg(any(feature = "lp", feature = "highs"))]
    fn scales(&self) -> (f64, f64) {
        match self.masses {
            Masses::Bounds => (1.0, MASS_SCALE),
            Masses::Objective => (MASS_SCALE, 1.0),
        }
    }

    /// Number of variables.
    pub fn variables(&self) -> usize {
        self.objective.len()
    }

    /// The objective at a point, summed in double-double.
    pub fn objective_at(&self, point: &[f64]) -> f64 {
        let terms = self.objective.iter().zip(point).map(|(c, x)| c * x);
        specgap_number::distribution::compensated_sum(terms)
    }
}

/// How a solver ended. Only [`LpStatus::Optimal`] carries an answer, and it says
/// what the solver claims, not what has been checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LpStatus {
    /// The solver claims an optimal solution.
    Optimal,
    /// The solver claims that there is no feasible point.
    Infeasible,
    /// The solver claims that the objective is unbounded.
    Unbounded,
    /// The solver gave up, in its own words.
    Failed(String),
}

/// What a solver returned.
#[derive(Clone, Debug)]
pub struct LpAnswer {
    /// How it ended.
    pub status: LpStatus,
    /// Values of the variables, if optimal.
    pub primal: Option<Vec<f64>>,
    /// Multipliers of the rows, if optimal and the solver gives them: the growth
    /// of the objective per unit of each row's bound.
    pub dual: Option<Vec<f64>>,
}

impl LpAnswer {
    #[cfg(any(feature = "lp", feature = "highs"))]
    fn without_solution(status: LpStatus) -> Self {
        Self {
            status,
            primal: None,
            dual: None,
        }
    }
}

/// Names of the solvers, as reports print them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BackendName {
    /// HiGHS, through good_lp (feature `highs`).
    Highs,
    /// minilp, pure Rust (feature `lp`).
    MiniLp,
}

impl BackendName {
    /// Every backend, built in or not.
    pub const ALL: [Self; 2] = [Self::Highs, Self::MiniLp];

    /// `highs` or `minilp`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Highs => "highs",
            Self::MiniLp => "minilp",
        }
    }

    /// The solver, if this build has it.
    pub fn backend(self) -> Option<Box<dyn Backend>> {
        match self {
            #[cfg(feature = "highs")]
            Self::Highs => Some(Box::new(Highs)),
            #[cfg(not(feature = "highs"))]
            Self::Highs => None,
            #[cfg(feature = "lp")]
            Self::MiniLp => Some(Box::new(MiniLp)),
            #[cfg(not(feature = "lp"))]
            Self::MiniLp => None,
        }
    }
}

/// A linear programming solver.
pub trait Backend {
    /// Returns the name of the solver.
    fn name(&self) -> BackendName;

    /// Solves the program. Failure is a status, not an error.
    fn solve(&self, program: &LinearProgram) -> LpAnswer;
}

/// Probabilities are multiplied by this before a solver with absolute
/// tolerances sees them. A power of two, so that scaling is exact; about 1e6.
pub const MASS_SCALE: f64 = 1_048_576.0;
