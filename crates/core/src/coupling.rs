//! Plans that list sets, and couplings that list tuples: data, which solvers make and
//! certificates check.
//!
//! A [`TransportPlan`] says how much of each *set* of draft tokens is accepted as
//! which token. It leaves p_res of the target and D_res of the sets unused, of
//! equal total mass, and [`Coupling::extend`] joins those independently:
//!
//! ```text
//! C[i, X] = S[X, i] + p_res(i) D_res(X) / mass
//! ```
//!
//! which is a coupling of p and D with the same acceptance (SpecHub, Theorem 1).

use crate::problem::Problem;
use crate::scheme::{Probability, SetFamily};
use ndarray::Array2;
use num_bigint::BigUint;
use specgap_number::distribution::{Rational, ratio, round_down, round_nearest, round_up};
use specgap_number::known::Known;
use specgap_number::number::Number;
use std::collections::HashMap;

/// Masses of a plan in units of 1/`total`, one an entry of its set family.
#[derive(Clone, Debug)]
pub enum PlanMasses {
    /// In 128 bits.
    Native(Vec<u128>),
    /// In unbounded integers.
    Big(Vec<BigUint>),
}

impl PlanMasses {
    /// The mass of one entry.
    pub fn get(&self, entry: usize) -> BigUint {
        match self {
            Self::Native(masses) => BigUint::from(masses[entry]),
            Self::Big(masses) => masses[entry].clone(),
        }
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        match self {
            Self::Native(masses) => masses.len(),
            Self::Big(masses) => masses.len(),
        }
    }

    /// True if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// How far an instance is from the problem it stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rounding {
    /// Not at all: capacities are the exact probabilities times `total`.
    None,
    /// Capacities were rounded down to a grid.
    Grid {
        /// Each true capacity is at least its rounded one times this.
        feasible_share: f64,
        /// alpha* of the instance and of the problem differ by at most this.
        absolute_error: f64,
    },
}

impl Rounding {
    /// A rate of the instance as one of the problem: exact, or with what rounding may have moved.
    pub(crate) fn known(self, rate: Rational) -> Known {
        match self {
            Self::None => Known::exact(rate),
            Self::Grid { absolute_error, .. } => Known::rate(
                round_nearest(&rate),
                round_down(&rate) - absolute_error,
                round_up(&rate) + absolute_error,
            ),
        }
    }
}

/// Accepted mass by set and token: entry e of `sets.tokens()` is accepted with
/// probability `accepted[e] / total` together with its set.
#[derive(Clone, Debug)]
pub struct TransportPlan {
    /// The sets A(X).
    pub sets: SetFamily,
    /// Accepted mass, one an entry of the sets' tokens.
    pub accepted: PlanMasses,
    /// What probability 1 is.
    pub total: BigUint,
    /// Whether capacities were rounded when the plan was made.
    pub rounding: Rounding,
}

impl TransportPlan {
    /// Total accepted mass: the plan's acceptance rate.
    pub fn acceptance_rate(&self) -> Rational {
        let sum = match &self.accepted {
            PlanMasses::Native(masses) => masses.iter().map(|&m| BigUint::from(m)).sum(),
            PlanMasses::Big(masses) => masses.iter().sum(),
        };
        ratio(&sum, &self.total)
    }
}

/// A joint law of the output token and the draft tuple, with the tuples listed.
///
/// `mass[[i, k]]` is the probability of output i together with `tuples[k]`.
#[derive(Clone, Debug)]
pub struct Coupling<T> {
    /// The tuples of positive probability.
    pub tuples: Vec<Vec<u32>>,
    /// V rows, one column a tuple.
    pub mass: Array2<T>,
}

impl Coupling<Rational> {
    /// Extends a plan to a full coupling, exactly.
    ///
    /// A set's accepted mass is shared among its tuples in proportion to their
    /// probabilities; what is left of p and of D is joined independently.
    ///
    /// # Complexity
    /// O(V * tuples) exact operations; for small problems.
    ///
    /// # Example
    /// ```
    /// use specgap_core::certify;
    /// use specgap_number::distribution::{Draft, Target, format_rational};
    /// use specgap_core::optimum::flow;
    /// use specgap_core::coupling::Coupling;
    /// use specgap_core::problem::Problem;
    /// use specgap_core::scheme::WithReplacement;
    /// let scheme = WithReplacement::new(Draft::new(&[0.75, 0.25])?, 2);
    /// let problem = Problem::new("bernoulli", Target::new(&[0.5, 0.5])?, scheme)?;
    /// let plan = flow::solve(&problem).into_plan();
    /// let coupling = Coupling::extend(&problem, &plan);
    /// let checked = certify::coupling(&problem, &coupling)?;
    /// assert_eq!(format_rational(checked.get()), "15/16");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn extend(problem: &Problem, plan: &TransportPlan) -> Self {
        let (tuples, law) = Rational::listed(problem.scheme());
        let sets = plan.sets.iter().enumerate();
        let sets: HashMap<&[u32], usize> = sets.map(|(index, set)| (set, index)).collect();
        let mut of_set = vec![Rational::zero(); plan.sets.len()];
        let set_of = tuples.iter().zip(&law).map(|(tuple, probability)| {
            let index = sets.get(distinct(tuple).as_slice()).copied();
            if let Some(index) = index {
                of_set[index] += probability;
            }
            index
        });
        let set_of: Vec<Option<usize>> = set_of.collect();
        let target = Rational::row(problem.target());
        let accepted = tuples.iter().enumerate().flat_map(|(column, _)| {
            let share = set_of[column].map(|set| (set, &law[column] / &of_set[set]));
            share.into_iter().flat_map(move |(set, share)| {
                plan.sets.span(set).map(move |entry| {
                    let mass = ratio(&plan.accepted.get(entry), &plan.total);
                    (column, plan.sets.tokens()[entry] as usize, mass * &share)
                })
            })
        });
        let mass = join(&target, &law, accepted);
        Self { tuples, mass }
    }
}

impl Coupling<f64> {
    /// Extends a membership solution in `f64`: `accepted` lists (tuple, token,
    /// mass) with the token in the tuple.
    pub fn extend_float(
        problem: &Problem,
        accepted: impl IntoIterator<Item = (usize, usize, f64)>,
    ) -> Self {
        let (tuples, law) = f64::listed(problem.scheme());
        let mass = join(problem.target().probabilities(), &law, accepted.into_iter());
        Self { tuples, mass }
    }
}

fn join<T: Number>(
    target: &[T],
    law: &[T],
    accepted: impl Iterator<Item = (usize, usize, T)>,
) -> Array2<T> {
    let mut mass = Array2::from_elem((target.len(), law.len()), T::zero());
    let (mut kept, mut used) = (vec![T::zero(); target.len()], vec![T::zero(); law.len()]);
    for (column, token, part) in accepted {
        mass[[token, column]].gain(&part);
        kept[token].gain(&part);
        used[column].gain(&part);
    }
    let rest = |all: &[T], used: &[T]| -> Vec<T> {
        all.iter()
            .zip(used)
            .map(|(all, used)| all.excess_over(used))
            .collect()
    };
    let (token_rest, tuple_rest) = (rest(target, &kept), rest(law, &used));
    let mut total = T::zero();
    tuple_rest.iter().for_each(|rest| total.gain(rest));
    if !total.is_nil() {
        for (token, rest) in token_rest.iter().enumerate() {
            for (column, other) in tuple_rest.iter().enumerate() {
                mass[[token, column]].gain(&rest.times(other).over(&total));
            }
        }
    }
    mass
}

/// The distinct tokens of a tuple, ascending.
pub fn distinct(tuple: &[u32]) -> Vec<u32> {
    let mut set = tuple.to_vec();
    set.sort_unstable();
    set.dedup();
    set
}
