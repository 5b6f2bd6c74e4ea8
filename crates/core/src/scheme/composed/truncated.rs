//! The tokens that truncation keeps.

use crate::scheme::without_replacement::by_falling_mass;
use specgap_number::distribution::{Draft, Rational};
use specgap_number::number::Number;

/// The `count` most probable tokens of q, ties to the lowest token id: what engines call
/// top-k.
pub fn most_probable(draft: &Draft, count: usize) -> Vec<usize> {
    let mut order = by_falling_mass(draft);
    order.truncate(count);
    order
}

/// The fewest of the most probable tokens that hold at least `share` of q, in (0, 1], ties
/// to the lowest token id: what engines call top-p or nucleus.
pub fn nucleus(draft: &Draft, share: &Rational) -> Vec<usize> {
    let mut order = by_falling_mass(draft);
    let exact = draft.exact();
    let wanted = share.times(&Rational::fraction(&exact.total, &1u32.into()));
    let mut held = num_bigint::BigUint::default();
    let mut kept = order.len();
    for (rank, &token) in order.iter().enumerate() {
        held += &exact.weights[token];
        if Rational::fraction(&held, &1u32.into()) >= wanted {
            kept = rank + 1;
            break;
        }
    }
    order.truncate(kept.max(1));
    order
}
