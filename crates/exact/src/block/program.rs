//! The block optimum as a linear program, for the solvers of [`specgap_core::lp`].
//!
//! ```text
//! maximise   sum over y, S of tau(y, S) C[y, S]
//! subject to sum over S of C[y, S] = p(y)     every target block y with p(y) > 0
//!            sum over y of C[y, S] = D(S)     every set S of distinct draft blocks
//!            C >= 0
//! ```
//!
//! A solver's answer is never taken for itself: feasibility is recomputed, and
//! its multipliers u(y) are completed by v(S) = max over y of tau(y, S) - u(y)
//! to a feasible dual point, whatever they are worth. Its value bounds the
//! optimum from above up to the rounding of one summation.

use super::transport::shared;
use specgap_core::lp::{
    Backend, Direction, LinearProgram, LpAnswer, LpStatus, Masses, Relation, Row,
};
use specgap_core::scheme::{DraftScheme, SetFamily, WithReplacement};
use specgap_core::tree::TokenTree;
use specgap_number::distribution::{Draft, compensated_sum, token_id};

/// Largest number of variables that HiGHS is given.
pub const MAX_HIGHS_VARIABLES: f64 = 1.5e5;

/// Largest number of variables that minilp is given.
pub const MAX_MINILP_VARIABLES: f64 = 1.2e4;

/// Largest infeasibility and duality gap with which an answer is accepted.
pub const TOLERANCE: f64 = 1e-9;

/// The block problem's data in `f64`.
#[derive(Clone, Debug)]
pub struct BlockProgram {
    /// Target blocks of positive probability, by index in layer L.
    pub blocks: Vec<usize>,
    /// p(y), one a block.
    pub target: Vec<f64>,
    /// Sets of distinct draft blocks.
    pub sets: SetFamily,
    /// D(S), one a set.
    pub draft: Vec<f64>,
    /// tau, by set, then by block.
    pub shared: Vec<Vec<u32>>,
}

/// A solver's answer after it was checked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CheckedOptimum {
    /// `E[tau]` of the coupling, recomputed.
    pub value: f64,
    /// Value of the completed dual point, an upper bound.
    pub upper: f64,
    /// Largest violation of a marginal or of C >= 0.
    pub primal_infeasibility: f64,
    /// upper - value.
    pub duality_gap: f64,
}

/// Why an answer was not accepted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// The solver found no optimum.
    #[error("the solver ended with {0:?}")]
    Status(LpStatus),
    /// The answer does not survive its check: largest violation of a constraint; upper bound minus
    /// value.
    #[error(
        "the answer is off: infeasibility {0:e}, duality gap {1:e}; \
         at most {TOLERANCE:e} is accepted"
    )]
    Check(f64, f64),
}

impl BlockProgram {
    /// The program for `drafts` i.i.d. blocks. [`super::transport::pair_count`] says how
    /// large it gets. `None` cannot happen on a validated problem.
    pub fn new(tree: &TokenTree<f64>, drafts: usize) -> Option<Self> {
        let length = tree.length();
        let draft = Draft::new(tree.draft_layer(length)).ok()?;
        let law = WithReplacement::new(draft, drafts).set_law();
        let layer = tree.target_layer(length);
        let blocks = (0..layer.len()).filter(|&block| layer[block] > 0.0);
        let blocks: Vec<usize> = blocks.collect();
        let row = |set: &[u32]| {
            let tau = |&block: &usize| token_id(shared(tree, set, block));
            blocks.iter().map(tau).collect()
        };
        Some(Self {
            target: blocks.iter().map(|&block| layer[block]).collect(),
            shared: law.sets.iter().map(row).collect(),
            sets: law.sets,
            draft: law.probabilities,
            blocks,
        })
    }

    /// The program; variable `set * blocks + block`. One of its equality rows
    /// is redundant and would turn rounding into a contradiction, so that of
    /// the heaviest block is left out. Rows: blocks without it, then sets.
    pub fn primal(&self) -> LinearProgram {
        let width = self.blocks.len();
        let objective = self.shared.iter().flatten().map(|&tau| f64::from(tau));
        let heaviest = self.heaviest();
        let equal = |variables: &mut dyn Iterator<Item = usize>, bound: f64| Row {
            terms: variables.map(|variable| (variable, 1.0)).collect(),
            relation: Relation::Equal,
            bound,
        };
        let mut rows = Vec::with_capacity(width + self.sets.len());
        for (block, &bound) in self.target.iter().enumerate() {
            if Some(block) != heaviest {
                let sets = 0..self.sets.len();
                rows.push(equal(&mut sets.map(|set| set * width + block), bound));
            }
        }
        for (set, &bound) in self.draft.iter().enumerate() {
            rows.push(equal(&mut (set * width..(set + 1) * width), bound));
        }
        LinearProgram {
            direction: Direction::Maximise,
            masses: Masses::Bounds,
            objective: objective.collect(),
            rows,
        }
    }

    /// The dual with non-negative multipliers: minimise p.u + D.v subject to
    /// u(y) + v(S) >= tau(y, S). It has the same value, since with tau >= 0 the
    /// marginals may as well be upper limits. Variables: u, then v.
    pub fn dual(&self) -> LinearProgram {
        let width = self.blocks.len();
        let rows = self.shared.iter().enumerate().flat_map(|(set, row)| {
            let shared = row.iter().enumerate().filter(|&(_, &tau)| tau > 0);
            shared.map(move |(block, &tau)| Row {
                terms: vec![(block, 1.0), (width + set, 1.0)],
                relation: Relation::AtLeast,
                bound: f64::from(tau),
            })
        });
        LinearProgram {
            direction: Direction::Minimise,
            masses: Masses::Objective,
            objective: self.target.iter().chain(&self.draft).copied().collect(),
            rows: rows.collect(),
        }
    }

    fn heaviest(&self) -> Option<usize> {
        (0..self.target.len()).max_by(|&a, &b| self.target[a].total_cmp(&self.target[b]))
    }

    /// Solves and checks. A backend without multipliers solves the dual too.
    ///
    /// # Errors
    /// The solver's failure, or an answer off by more than [`TOLERANCE`].
    pub fn solve(&self, backend: &dyn Backend) -> Result<CheckedOptimum, ProgramError> {
        let answer = backend.solve(&self.primal());
        let primal = answer
            .primal
            .as_ref()
            .ok_or_else(|| ProgramError::Status(answer.status.clone()))?;
        let potentials = match self.potentials(&answer) {
            Some(potentials) => potentials,
            None => {
                let second = backend.solve(&self.dual());
                let mut point = second.primal.ok_or(ProgramError::Status(second.status))?;
                point.truncate(self.blocks.len());
                point
            }
        };
        let checked = self.check(primal, &potentials);
        let (off, gap) = (checked.primal_infeasibility, checked.duality_gap);
        match off <= TOLERANCE && gap.abs() <= TOLERANCE {
            true => Ok(checked),
            false => Err(ProgramError::Check(off, gap)),
        }
    }

    /// u from the multipliers of the block rows; 0 for the row left out.
    fn potentials(&self, answer: &LpAnswer) -> Option<Vec<f64>> {
        let heaviest = self.heaviest();
        let mut multipliers = answer.dual.as_ref()?.iter().copied();
        let potentials = (0..self.blocks.len()).map(|block| match Some(block) == heaviest {
            true => Some(0.0),
            false => multipliers.next(),
        });
        potentials.collect()
    }

    /// Recomputes an answer from the data: any `primal` of sets * blocks masses
    /// and any `potentials`, one a block.
    pub fn check(&self, primal: &[f64], potentials: &[f64]) -> CheckedOptimum {
        let width = self.blocks.len();
        let at = |set: usize, block: usize| primal.get(set * width + block).copied().unwrap_or(0.0);
        let mut off = 0.0f64;
        let mut worst = |difference: f64| {
            off = match difference.is_nan() {
                true => f64::INFINITY,
                false => off.max(difference),
            };
        };
        for (block, mass) in self.target.iter().enumerate() {
            let given = compensated_sum((0..self.sets.len()).map(|set| at(set, block)));
            worst((given - mass).abs());
        }
        let mut bound = Vec::with_capacity(self.sets.len() + width);
        for (set, mass) in self.draft.iter().enumerate() {
            let given = compensated_sum((0..width).map(|block| at(set, block)));
            worst((given - mass).abs());
            let shared = self.shared[set].iter().zip(potentials);
            let needed = shared.map(|(&tau, u)| f64::from(tau) - u);
            bound.push(needed.fold(f64::NEG_INFINITY, f64::max) * mass);
        }
        for &mass in primal {
            worst(-mass);
        }
        bound.extend(self.target.iter().zip(potentials).map(|(p, u)| p * u));
        let shared = self.shared.iter().flatten().zip(primal);
        let value = compensated_sum(shared.map(|(&tau, mass)| f64::from(tau) * mass));
        let upper = compensated_sum(bound);
        CheckedOptimum {
            value,
            upper,
            primal_infeasibility: off,
            duality_gap: upper - value,
        }
    }
}
