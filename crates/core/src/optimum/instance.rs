//! The transport problem on merged sets, in integers.

use super::costs::are_within;
use crate::coupling::Rounding;
use crate::problem::Problem;
#[cfg(doc)]
use crate::scheme::DraftScheme;
use crate::scheme::{SetFamily, SetLaw};
use num_bigint::BigUint;
use num_traits::{ToPrimitive, Zero};
use std::fmt::Debug;
use std::ops::{AddAssign, SubAssign};

/// An integer that flows are made of.
pub trait Capacity: Clone + Ord + Debug + Send + Sync {
    /// 0.
    fn nil() -> Self;
    /// Returns whether this is 0.
    fn is_nil(&self) -> bool;
    /// Adds in place. Sums stay within the instance's total.
    fn gain(&mut self, other: &Self);
    /// Subtracts in place; `other` is at most `self`.
    fn lose(&mut self, other: &Self);
    /// Returns it as an unbounded integer.
    fn to_big(&self) -> BigUint;
}

impl<C> Capacity for C
where
    C: Clone + Ord + Debug + Send + Sync + Zero + Into<BigUint>,
    C: for<'a> AddAssign<&'a C> + for<'a> SubAssign<&'a C>,
{
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
        self.clone().into()
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

/// Largest exact instance that is solved in unbounded integers, in bits; most bit operations
/// to derive its law; and most word operations for reducing the law's fractions.
const EXACT_LIMITS: [f64; 3] = [4.0e8, 2.0e10, 2.0e9];

/// The largest mass that rounding can make of 1.
const MOST_MASS: f64 = 1.0 + 1e-9;

/// Exact capacities must fit this many bits to be held in `u128`.
const NATIVE_BITS: u64 = 126;

impl<C> Instance<C> {
    fn unrounded(sets: SetFamily, supply: Vec<C>, demand: Vec<C>, total: BigUint) -> Self {
        Self {
            sets,
            supply,
            demand,
            total,
            rounding: Rounding::None,
        }
    }
}

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
        let all = supply.iter().chain(&demand);
        let divisor = all.fold(BigUint::zero(), |divisor, value| {
            num_integer::Integer::gcd(&divisor, value)
        });
        if divisor > BigUint::from(1u32) {
            for value in supply.iter_mut().chain(&mut demand) {
                *value /= &divisor;
            }
            total /= &divisor;
        }
        let (sets, native) = (law.sets, total.bits() <= NATIVE_BITS);
        if native {
            let native = |values: Vec<BigUint>| -> Vec<u128> {
                let values = values.iter();
                values
                    .map(|value| value.to_u128().unwrap_or(u128::MAX))
                    .collect()
            };
            Self::Native(Instance::unrounded(
                sets,
                native(supply),
                native(demand),
                total,
            ))
        } else {
            Self::Big(Instance::unrounded(sets, supply, demand, total))
        }
    }

    /// The problem with capacities rounded down to multiples of 2^-120, from
    /// the `f64` law and its error bound. A law with a probability that is none, or
    /// without a bound, makes an instance that says nothing: its error is 1.
    pub fn rounded(problem: &Problem) -> Instance<u128> {
        on_grid(problem.scheme().set_law(), problem.target().probabilities())
    }

    /// Returns whether the exact instance is affordable: entries times bits each, operations times
    /// bits each, and reductions of fractions.
    pub fn exact_is_affordable(problem: &Problem) -> bool {
        are_within(exact_costs(problem), EXACT_LIMITS)
    }
}

/// A law's sets and a row on the grid of 2^-120.
fn on_grid(law: SetLaw, row: &[f64]) -> Instance<u128> {
    let is_law = law.relative_error.is_finite()
        && (law.probabilities.iter()).all(|mass| (0.0..=MOST_MASS).contains(mass));
    let masses = law.probabilities.iter();
    let supply = masses.map(|&mass| if is_law { to_grid(mass) } else { 0 });
    let supply: Vec<u128> = supply.collect();
    let demand = row.iter().map(|&mass| to_grid(mass)).collect();
    let entries = supply.len() as f64 + row.len() as f64;
    let least = specgap_number::distribution::PROBABILITY_RELATIVE_ERROR;
    let relative = law.relative_error.max(least) * 1.01;
    // What leaves the range of f64 is nothing beside the grid.
    let lost = entries * 2f64.powi(-GRID_BITS);
    Instance {
        sets: law.sets,
        supply,
        demand,
        total: BigUint::from(1u32) << GRID_BITS.unsigned_abs(),
        rounding: Rounding::Grid {
            feasible_share: if is_law { 1.0 - relative } else { 0.0 },
            // Both marginals are off by at most `relative` of total mass 1.
            absolute_error: if is_law { 2.0 * relative + lost } else { 1.0 },
        },
    }
}

/// Bits of all entries, bit operations for the law, and word operations for reducing its
/// fractions.
fn exact_costs(problem: &Problem) -> [f64; 3] {
    let scheme = problem.scheme();
    let bits = scheme.exact_bits() + problem.target().exact_bits() as f64;
    let entries = scheme.set_count() * problem.drafts() as f64 + problem.vocab() as f64;
    let operations = scheme.set_law_cost();
    // Sequential draws add fractions, and reducing one is quadratic in its bits.
    let each = (bits / 64.0).powi(2);
    let reducing = if scheme.adds_fractions() {
        operations * each
    } else {
        0.0
    };
    [entries * bits, operations * bits, reducing]
}

/// A mass in [0, [`MOST_MASS`]].
fn to_grid(mass: f64) -> u128 {
    // Exact: a power of two times a number below 2^53, rounded down.
    (mass * 2f64.powi(GRID_BITS)) as u128
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimum::flow::SolvedFlow;
    use crate::optimum::{enumeration, iid, row_of_bits};
    use crate::scheme::{WithReplacement, WithoutReplacement};
    use specgap_number::distribution::{Draft, PROBABILITY_RELATIVE_ERROR, Target};

    /// Of all minimisers the smallest: nothing, where nothing is lost.
    #[test]
    fn where_all_is_accepted_no_set_is_named() {
        let row = [0.5, 0.25, 0.25];
        let problem = iid(&row, &row, 1);
        let ScaledInstance::Native(instance) = ScaledInstance::exact(&problem) else {
            panic!("small numbers");
        };
        let found = enumeration::solve(&instance);
        assert_eq!(found.subset, Some(Vec::new()));
        assert_eq!(found.rate.value(), 1.0);
    }

    /// Masses on a grid of 2^-120, and what that and rounding may be off by in all.
    #[test]
    fn rounded_instances_say_how_far_they_are_off() {
        let (p, q) = ([0.0625, 0.1875, 0.25, 0.5], [0.5, 0.25, 0.125, 0.125]);
        let problem = iid(&p, &q, 2);
        let instance = ScaledInstance::rounded(&problem);
        assert_eq!(instance.total, BigUint::from(1u32) << 120);
        assert_eq!(instance.supply[0], 1 << 118);
        assert_eq!(
            instance.demand,
            [1u128 << 116, 3 << 116, 1 << 118, 1 << 119]
        );
        assert_eq!(instance.supply.iter().sum::<u128>(), 1 << 120);
        // 20 epsilon of a set, and 10 sets and 4 tokens.
        let relative = 1.01 * (20.0 * f64::EPSILON).max(PROBABILITY_RELATIVE_ERROR);
        let lost = 14.0 * 2f64.powi(-120);
        let Rounding::Grid {
            feasible_share,
            absolute_error,
        } = instance.rounding
        else {
            panic!("{:?}", instance.rounding);
        };
        assert_eq!(feasible_share, 1.0 - relative);
        assert!((absolute_error / (2.0 * relative + lost) - 1.0).abs() < 1e-15);
        // Both ways to solve it allow for that, to both sides.
        let truth = SolvedFlow::of(ScaledInstance::exact(&problem)).optimum();
        assert!(truth.rate.rational().is_some() && truth.rate.value() < 0.9);
        for found in [
            enumeration::solve(&instance),
            SolvedFlow::of(ScaledInstance::Native(instance.clone())).optimum(),
        ] {
            assert_eq!(found.subset, truth.subset);
            assert!((found.rate.value() - truth.rate.value()).abs() < 1e-15);
            let width = found.rate.width() - 2.0 * absolute_error;
            assert!(width.abs() < 2.0 * f64::EPSILON, "{found:?}");
        }
    }

    /// Masses that are none, and an error without a bound, each by itself.
    #[test]
    fn laws_that_are_none_make_instances_that_say_nothing() {
        let of = |masses: [f64; 2], relative_error: f64| {
            let mut sets = SetFamily::new();
            sets.push([0]);
            sets.push([0, 1]);
            let probabilities = masses.to_vec();
            on_grid(
                SetLaw {
                    sets,
                    probabilities,
                    relative_error,
                },
                &[0.5, 0.5],
            )
        };
        let is_none = |instance: Instance<u128>| {
            let nothing = Rounding::Grid {
                feasible_share: 0.0,
                absolute_error: 1.0,
            };
            instance.rounding == nothing && instance.supply == [0, 0]
        };
        assert!(!is_none(of([0.25, 0.75], 1e-15)));
        assert!(!is_none(of([0.0, MOST_MASS], 1e-15)));
        for masses in [[f64::NAN, 0.75], [0.25, -1e-9], [0.0, 1.0 + 2e-9]] {
            assert!(is_none(of(masses, 1e-15)), "{masses:?}");
        }
        for error in [f64::NAN, f64::INFINITY] {
            assert!(is_none(of([0.25, 0.75], error)), "{error}");
        }
    }

    #[test]
    fn the_grid_cuts_off() {
        assert_eq!([0.0, 1.0, 0.5].map(to_grid), [0, 1 << 120, 1 << 119]);
        assert_eq!(to_grid(1.5 * 2f64.powi(-120)), 1);
        assert_eq!(to_grid(0.5 * 2f64.powi(-120)), 0);
    }

    /// Pairs of a set and a token, or what the law of the sets costs over 500.
    #[test]
    fn sizes_of_plans_by_hand() {
        use crate::optimum::flow::plan_size;
        let quarter = [0.25; 4];
        assert_eq!(plan_size(&iid(&quarter, &quarter, 3)), 14.0 * 3.0);
        assert_eq!(plan_size(&iid(&quarter, &quarter, 5)), 15.0 * 4.0);
        // 64 k 2^k for each of the sets of k of 12 tokens: 64 * 24 * 3^11.
        let flat = [1.0 / 12.0; 12];
        let many = vec![Draft::new(&flat).unwrap(); 64];
        let many = crate::scheme::Product::new(many).unwrap();
        let target = Target::new(&flat).unwrap();
        let size = plan_size(&Problem::new("sizes", target, many).unwrap());
        let expected = 64.0 * 24.0 * 177_147.0 / 500.0;
        assert!((size / expected - 1.0).abs() < 1e-12, "{size} {expected}");
    }

    /// Entries times bits, operations times bits, and reductions of fractions.
    #[test]
    fn costs_of_exact_instances_by_hand() {
        let target = Target::new(&[0.25, 0.25, 0.5]).unwrap();
        let draft = || Draft::new(&[0.5, 0.375, 0.125]).unwrap();
        let costs = |law: std::sync::Arc<dyn crate::scheme::DraftScheme>| {
            let (bits, operations) = (law.exact_bits(), law.set_law_cost());
            let problem = Problem::from_law("costs", target.clone(), law).unwrap();
            assert!(ScaledInstance::exact_is_affordable(&problem));
            (exact_costs(&problem), bits, operations)
        };
        // The target is 1, 1 and 2 of 4: three bits. Sets of one and two of three tokens.
        let (found, bits, operations) =
            costs(std::sync::Arc::new(WithReplacement::new(draft(), 2)));
        assert_eq!(
            found,
            [
                (6.0 * 2.0 + 3.0) * (bits + 3.0),
                operations * (bits + 3.0),
                0.0
            ]
        );
        let law = WithoutReplacement::new(draft(), 2);
        let (found, bits, operations) = costs(std::sync::Arc::new(law));
        let words = (bits + 3.0) / 64.0;
        assert_eq!(
            found,
            [
                (3.0 * 2.0 + 3.0) * (bits + 3.0),
                operations * (bits + 3.0),
                operations * words * words
            ]
        );
    }

    #[test]
    fn exact_instances_are_made_while_they_are_small() {
        let flat = |vocab: usize| vec![1.0 / vocab as f64; vocab];
        let affordable = |vocab: usize, drafts: usize, bits: i32| {
            let mut row = flat(vocab);
            row[0] -= 2f64.powi(-bits);
            row[1] += 2f64.powi(-bits);
            ScaledInstance::exact_is_affordable(&iid(&flat(vocab), &row, drafts))
        };
        // 64 tokens: sets of 4 of them are 679,120, times 4 and 206 bits: 5.6e8.
        assert!(affordable(64, 3, 55));
        assert!(!affordable(64, 4, 55));
        assert!(affordable(64, 4, 10));
        // Bits of p count as those of q: 2 V times 990 and 60.
        for (vocab, expected) in [(150_000, true), (220_000, false)] {
            let problem = iid(&row_of_bits(vocab, 0, 1000), &flat(vocab), 1);
            assert_eq!(ScaledInstance::exact_is_affordable(&problem), expected);
        }
    }
}
