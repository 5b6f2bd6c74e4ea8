//! The transport problem on merged sets, in integers.

use crate::plan::Rounding;
use crate::problem::Problem;
#[cfg(doc)]
use crate::scheme::DraftScheme;
use crate::scheme::{SetFamily, UNDERFLOW};
use num_bigint::BigUint;
use num_traits::{ToPrimitive, Zero};
use std::fmt::Debug;

/// An integer that flows are made of.
pub trait Capacity: Clone + Ord + Debug + Send + Sync {
    /// 0.
    fn nil() -> Self;
    /// Whether this is 0.
    fn is_nil(&self) -> bool;
    /// Adds in place. Sums stay within the instance's total.
    fn gain(&mut self, other: &Self);
    /// Subtracts in place; `other` is at most `self`.
    fn lose(&mut self, other: &Self);
    /// As an unbounded integer.
    fn to_big(&self) -> BigUint;
}

impl Capacity for u128 {
    fn nil() -> Self {
        0
    }
    fn is_nil(&self) -> bool {
        *self == 0
    }
    fn gain(&mut self, other: &Self) {
        *self += other;
    }
    fn lose(&mut self, other: &Self) {
        *self -= other;
    }
    fn to_big(&self) -> BigUint {
        BigUint::from(*self)
    }
}

impl Capacity for BigUint {
    fn nil() -> Self {
        Zero::zero()
    }
    fn is_nil(&self) -> bool {
        Zero::is_zero(self)
    }
    fn gain(&mut self, other: &Self) {
        *self += other;
    }
    fn lose(&mut self, other: &Self) {
        *self -= other;
    }
    fn to_big(&self) -> BigUint {
        self.clone()
    }
}

/// Sets with capacities on one side, tokens with capacities on the other, in
/// units of 1/`total` of probability.
#[derive(Clone, Debug)]
pub struct Instance<C> {
    /// The distinct sets A(X).
    pub sets: SetFamily,
    /// Mass of each set.
    pub supply: Vec<C>,
    /// Mass p_i of each token.
    pub demand: Vec<C>,
    /// What probability 1 is.
    pub total: BigUint,
    /// Whether capacities were rounded.
    pub rounding: Rounding,
}

/// An instance in the smallest integers that hold it.
#[derive(Clone, Debug)]
pub enum ScaledInstance {
    /// Fits 128 bits: exact, or rounded to the grid of 2^-120.
    Native(Instance<u128>),
    /// Exact in unbounded integers.
    Big(Instance<BigUint>),
}

/// Bits after the binary point of the grid that capacities are rounded to when
/// exact arithmetic would be too large.
const GRID_BITS: i32 = 120;

/// Largest exact instance that is solved in unbounded integers, in bits, and
/// most work to derive it, in operations times bits.
const EXACT_BITS: f64 = 4.0e8;
const EXACT_BIT_OPERATIONS: f64 = 2.0e10;

/// Most word operations that reducing the fractions of a law may take.
const EXACT_REDUCTIONS: f64 = 2.0e9;

/// The largest mass that rounding can make of 1.
const MOST_MASS: f64 = 1.0 + 1e-9;

/// Exact capacities must fit this many bits to be held in `u128`.
const NATIVE_BITS: u64 = 126;

impl ScaledInstance {
    /// The problem in exact integers.
    ///
    /// # Complexity
    /// [`DraftScheme::set_law_cost`] big-integer operations; see
    /// [`Self::exact_is_affordable`].
    pub fn exact(problem: &Problem) -> Self {
        let law = problem.scheme().exact_set_law();
        let target = problem.target().exact();
        let mut supply: Vec<BigUint> = law.weights.iter().map(|w| w * &target.total).collect();
        let mut demand: Vec<BigUint> = target.weights.iter().map(|w| w * &law.total).collect();
        let mut total = &law.total * &target.total;
        let divisor = supply
            .iter()
            .chain(&demand)
            .fold(BigUint::zero(), |divisor, value| {
                num_integer::Integer::gcd(&divisor, value)
            });
        if divisor > BigUint::from(1u32) {
            for value in supply.iter_mut().chain(&mut demand) {
                *value /= &divisor;
            }
            total /= &divisor;
        }
        let rounding = Rounding::None;
        if total.bits() <= NATIVE_BITS {
            let native = |values: &[BigUint]| -> Vec<u128> {
                values
                    .iter()
                    .map(|value| value.to_u128().unwrap_or(u128::MAX))
                    .collect()
            };
            let (supply, demand) = (native(&supply), native(&demand));
            return Self::Native(Instance {
                sets: law.sets,
                supply,
                demand,
                total,
                rounding,
            });
        }
        Self::Big(Instance {
            sets: law.sets,
            supply,
            demand,
            total,
            rounding,
        })
    }

    /// The problem with capacities rounded down to multiples of 2^-120, from
    /// the `f64` law and its error bound. A law with a probability that is none, or
    /// without a bound, makes an instance that says nothing: its error is 1.
    pub fn rounded(problem: &Problem) -> Instance<u128> {
        let law = problem.scheme().set_law();
        let row = problem.target().probabilities();
        let is_law = law.relative_error.is_finite()
            && (law.probabilities.iter()).all(|mass| (0.0..=MOST_MASS).contains(mass));
        let supply: Vec<u128> = law
            .probabilities
            .iter()
            .map(|&mass| if is_law { to_grid(mass) } else { 0 })
            .collect();
        let demand = row.iter().map(|&mass| to_grid(mass)).collect();
        let entries = supply.len() as f64 + row.len() as f64;
        let relative = law
            .relative_error
            .max(crate::distribution::PROBABILITY_RELATIVE_ERROR)
            * 1.01;
        let lost = entries * (2f64.powi(-GRID_BITS) + UNDERFLOW);
        Instance {
            sets: law.sets,
            supply,
            demand,
            total: BigUint::from(1u32) << GRID_BITS.unsigned_abs(),
            rounding: if is_law {
                Rounding::Grid {
                    feasible_share: 1.0 - relative,
                    // Both marginals are off by at most `relative` of total mass 1.
                    absolute_error: 2.0 * relative + lost,
                }
            } else {
                Rounding::Grid {
                    feasible_share: 0.0,
                    absolute_error: 1.0,
                }
            },
        }
    }

    /// Whether the exact instance is affordable: entries times bits each, and
    /// operations times bits each.
    pub fn exact_is_affordable(problem: &Problem) -> bool {
        let scheme = problem.scheme();
        let bits = scheme.exact_bits() + problem.target().exact_bits() as f64;
        let entries = scheme.set_count() * problem.drafts() as f64 + problem.vocab() as f64;
        // Sequential draws add fractions, and reducing one is quadratic in its bits.
        let reducing = if scheme.adds_fractions() {
            scheme.set_law_cost() * (bits / 64.0).powi(2)
        } else {
            0.0
        };
        entries * bits <= EXACT_BITS
            && scheme.set_law_cost() * bits <= EXACT_BIT_OPERATIONS
            && reducing <= EXACT_REDUCTIONS
    }
}

/// A mass in [0, [`MOST_MASS`]].
fn to_grid(mass: f64) -> u128 {
    // Exact: a power of two times a number below 2^53, rounded down.
    (mass * 2f64.powi(GRID_BITS)) as u128
}
