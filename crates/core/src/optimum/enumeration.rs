//! alpha* by trying every subset.

use super::{Capacity, Instance, Optimum};
use num_bigint::BigUint;
use specgap_number::distribution::{Rational, ratio};

/// Largest vocabulary whose subsets are enumerated in 128-bit integers.
pub const LARGEST_NATIVE_VOCAB: usize = 20;

/// Largest vocabulary whose subsets are enumerated in unbounded integers.
pub const LARGEST_BIG_VOCAB: usize = 14;

/// Minimises `P(H) - Q(H)` over all 2^V subsets of an integer instance; exact
/// where the instance is.
///
/// Q of all subsets at once is the sum over subsets (zeta transform) of the law
/// of A(X): V 2^V additions and 2^V integers of memory. The caller keeps V to
/// [`LARGEST_NATIVE_VOCAB`] or [`LARGEST_BIG_VOCAB`]. Of several minimisers
/// the one with fewest tokens is returned, which is in all others.
pub fn solve<C: Capacity>(instance: &Instance<C>) -> Optimum {
    let vocab = instance.demand.len();
    let mut inside = vec![C::nil(); 1 << vocab];
    for (index, set) in instance.sets.iter().enumerate() {
        let mask = set.iter().fold(0usize, |mask, &token| mask | 1 << token);
        inside[mask].gain(&instance.supply[index]);
    }
    for bit in 0..vocab {
        for mask in 0..inside.len() {
            if mask >> bit & 1 == 1 {
                let smaller = inside[mask ^ 1 << bit].clone();
                inside[mask].gain(&smaller);
            }
        }
    }
    // P(H) by adding the lowest token to what is left; the gain of a subset is
    // how far Q(H) exceeds P(H).
    let mut mass = vec![C::nil(); inside.len()];
    // Q of the empty set is the probability that nothing is drafted.
    let mut best = (inside[0].clone(), 0usize);
    for mask in 1..inside.len() {
        let lowest = mask.trailing_zeros() as usize;
        let mut held = mass[mask & (mask - 1)].clone();
        held.gain(&instance.demand[lowest]);
        if inside[mask] > held {
            let mut gain = inside[mask].clone();
            gain.lose(&held);
            let smaller = mask.count_ones() < best.1.count_ones();
            if gain > best.0 || (gain == best.0 && smaller) {
                best = (gain, mask);
            }
        }
        mass[mask] = held;
    }
    let excess: BigUint = best.0.to_big();
    let rate = Rational::from_integer(1.into()) - ratio(&excess, &instance.total);
    let subset = (0..vocab)
        .filter(|token| best.1 >> token & 1 == 1)
        .collect();
    Optimum {
        rate: instance.rounding.known(rate),
        subset: Some(subset),
        note: None,
    }
}
