//! alpha* of drafts from two models: linear threshold sets.
//!
//! Let Q be a sum of products of functions that are convex in one of two scores w^1 and w^2
//! each. Then some minimiser of P - Q is `{ i : p_i < l_1 w^1_i + l_2 w^2_i }` for some
//! l_1, l_2 >= 0 (`docs/theory/laws.md`, Theorem 4): the tokens are lines in the plane of
//! (l_1, l_2), and only the cells between them have to be looked at.
//!
//! - `cells` visits all of them, in whole numbers: at most 2 V^2 sets for 2^V.
//! - `search` divides the plane instead, where Q is a polynomial of the two masses, and
//!   bounds P - Q below in every part: any V, with an enclosure.

mod cells;
mod search;
mod two;

pub use two::NoThresholds;

use super::Optimum;
use crate::problem::Problem;
use two::Two;

/// alpha* by linear thresholds, for laws of two scores: `product` of two models, and laws
/// composed of parts that draw from two.
///
/// # Exactness
/// Exact while the cells are few enough to be visited in whole numbers. Beyond that
/// enclosed: above by the set that is returned, below by a bound on P - Q over every part of
/// the plane (`docs/theory/laws.md`, section 5), with rounding added.
///
/// # Complexity
/// O(V^2 log V) for the cells. The search reads each token a few dozen times.
///
/// # Errors
/// [`NoThresholds`] where the law has no two scores, or is too large.
///
/// # Example
/// ```
/// use specgap_number::distribution::{Draft, Target, format_rational, parse_rational};
/// use specgap_core::optimum::thresholds;
/// use specgap_core::problem::Problem;
/// use specgap_core::scheme::Product;
/// let row = |texts: [&str; 4]| texts.map(|text| parse_rational(text).unwrap()).to_vec();
/// let drafts = Product::new(vec![
///     Draft::from_rationals(row(["0.1", "0.2", "0.7", "0"]))?,
///     Draft::from_rationals(row(["0.2", "0.1", "0", "0.7"]))?,
/// ]).unwrap();
/// let target = Target::from_rationals(row(["0.15", "0.15", "0", "0.7"]))?;
/// let optimum = thresholds::solve(&Problem::new("two models", target, drafts)?)?;
/// assert_eq!(format_rational(optimum.rate.rational().unwrap()), "99/100");
/// assert_eq!(optimum.subset.unwrap(), [0, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn solve(problem: &Problem) -> Result<Optimum, NoThresholds> {
    let two = Two::of(problem)?;
    if cells::is_affordable(&two) {
        return Ok(cells::solve(&two));
    }
    match &two.polynomial {
        Some(polynomial) => Ok(search::solve(&two, polynomial)),
        None => Err(NoThresholds::TooLarge(problem.vocab())),
    }
}

/// alpha* by the search whatever the size: what [`solve`] does for large vocabularies.
///
/// # Errors
/// As for [`solve`], and where Q is no polynomial of the two masses.
pub fn enclose(problem: &Problem) -> Result<Optimum, NoThresholds> {
    let two = Two::of(problem)?;
    match &two.polynomial {
        Some(polynomial) => Ok(search::solve(&two, polynomial)),
        None => Err(NoThresholds::TooLarge(problem.vocab())),
    }
}

#[cfg(test)]
mod tests;
