//! P(draws hit exactly the tokens of a set), in `f64` and in integers.

use num_traits::{One, Zero};
use std::ops::{AddAssign, Mul};

/// Unnormalised weights under addition and multiplication alone: `f64`, or
/// unbounded integers.
pub(crate) trait Weight: Clone {
    fn nil() -> Self;
    fn unit() -> Self;
    fn is_nil(&self) -> bool;
    fn add(&mut self, other: &Self);
    fn times(&self, other: &Self) -> Self;
}

impl<W: Clone + Zero + One + for<'a> AddAssign<&'a W>> Weight for W
where
    for<'a> &'a W: Mul<Output = W>,
{
    fn nil() -> Self {
        Zero::zero()
    }
    fn unit() -> Self {
        One::one()
    }
    fn is_nil(&self) -> bool {
        Zero::is_zero(self)
    }
    fn add(&mut self, other: &Self) {
        *self += other;
    }
    fn times(&self, other: &Self) -> Self {
        self * other
    }
}

/// P(the draws hit exactly the tokens of a set) up to a common factor, for
/// independent draws with the given rows of weights restricted to the set:
/// `rows[t][x]` is the weight of the set's x-th token at draw t.
///
/// Sums over the subsets that are covered after t draws: all terms are
/// non-negative, so nothing cancels. O(n 2^k k) for a set of k tokens.
pub(crate) fn surjections<W: Weight>(rows: &[Vec<W>]) -> W {
    let Some(first) = rows.first() else {
        return W::unit();
    };
    let size = first.len();
    let mut covered = vec![W::nil(); 1 << size];
    covered[0] = W::unit();
    for row in rows {
        let mut next = vec![W::nil(); 1 << size];
        for (mask, weight) in covered.iter().enumerate() {
            if weight.is_nil() {
                continue;
            }
            for (token, factor) in row.iter().enumerate() {
                next[mask | 1 << token].add(&weight.times(factor));
            }
        }
        covered = next;
    }
    covered.pop().unwrap_or_else(W::nil)
}
