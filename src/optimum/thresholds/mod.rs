//! alpha* of drafts from two models: linear threshold sets.
//!
//! Let Q be a sum of products of functions that are convex in one of two scores w^1 and w^2
//! each. Then some minimiser of P - Q is `{ i : p_i < l_1 w^1_i + l_2 w^2_i }` for some
//! l_1, l_2 >= 0 (`docs/laws.md`, Theorem 4): the tokens are lines in the plane of
//! (l_1, l_2), and only the cells between them have to be looked at.
//!
//! - [`cells`] visits all of them, in whole numbers: at most 2 V^2 sets for 2^V.
//! - [`search`] divides the plane instead, where Q is a polynomial of the two masses, and
//!   bounds P - Q below in every part: any V, with an enclosure.

mod cells;
mod search;

use super::Optimum;
use crate::distribution::{Draft, Rational, round_nearest};
use crate::problem::Problem;
use crate::scheme::{Score, Scores, Term};

/// A law of two scores: what both ways start from.
struct Two<'a> {
    problem: &'a Problem,
    scores: [&'a Draft; 2],
    /// Tokens that every draw holds, which every set of interest holds.
    forced: Vec<usize>,
    polynomial: Option<Polynomial>,
}

/// Why a law has no linear thresholds that can be looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoThresholds {
    /// No theorem covers the law.
    #[error("no theorem says that the optimum of this scheme is a linear threshold set")]
    NoTheorem,
    /// One order is enough.
    #[error("there is one score to sort by; ratio-scan covers this scheme")]
    OneScore,
    /// More than two.
    #[error(
        "there are {0} different scores (models, truncations or lists of tokens); two at most are \
         searched"
    )]
    More(usize),
    /// Chances have logarithms as scores.
    #[error("chances of single tokens have logarithms as scores; two masses are searched")]
    Chances,
    /// Too many cells, and Q is no polynomial.
    #[error(
        "the plane has too many cells for {0} tokens, and Q is no polynomial of two masses, which a \
         search needs (all drafts independent of one another)"
    )]
    TooLarge(usize),
}

/// alpha* by linear thresholds, for laws of two scores: `product` of two models, and laws
/// composed of parts that draw from two.
///
/// # Exactness
/// Exact while the cells are few enough to be visited in whole numbers. Beyond that
/// enclosed: above by the set that is returned, below by a bound on P - Q over every part of
/// the plane (`docs/laws.md`, section 5), with rounding added.
///
/// # Complexity
/// O(V^2 log V) for the cells. The search reads each token a few dozen times.
///
/// # Errors
/// [`NoThresholds`] where the law has no two scores, or is too large.
///
/// # Example
/// ```
/// use specgap::distribution::{Draft, Target, format_rational, parse_rational};
/// use specgap::optimum::thresholds;
/// use specgap::problem::Problem;
/// use specgap::scheme::Product;
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

/// As [`solve`], by the search whatever the size: what large vocabularies get.
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

impl<'a> Two<'a> {
    fn of(problem: &'a Problem) -> Result<Self, NoThresholds> {
        let Scores {
            forced,
            distinct,
            polynomial,
        } = problem.scheme().scores().ok_or(NoThresholds::NoTheorem)?;
        let scores = match distinct.as_slice() {
            [] | [_] => return Err(NoThresholds::OneScore),
            &[Score::Mass(first), Score::Mass(second)] => [first, second],
            [_, _] => return Err(NoThresholds::Chances),
            more => return Err(NoThresholds::More(more.len())),
        };
        Ok(Self {
            problem,
            scores,
            forced,
            polynomial: polynomial.map(|terms| Polynomial::of(&terms)),
        })
    }

    fn is_forced(&self, token: usize) -> bool {
        self.forced.binary_search(&token).is_ok()
    }
}

/// Q as a function of two masses: a sum of `c x^i y^j`, all c > 0.
struct Polynomial {
    terms: Vec<(Rational, f64, [usize; 2])>,
    degree: usize,
}

impl Polynomial {
    fn of(terms: &[Term]) -> Self {
        let power = |term: &Term, score: usize| term.powers.get(score).copied().unwrap_or(0);
        let terms: Vec<_> = terms
            .iter()
            .map(|term| {
                let rounded = round_nearest(&term.coefficient);
                (
                    term.coefficient.clone(),
                    rounded,
                    [power(term, 0), power(term, 1)],
                )
            })
            .collect();
        let degree = terms.iter().map(|(_, _, powers)| powers.iter().sum());
        Self {
            degree: degree.max().unwrap_or(0),
            terms,
        }
    }

    fn value(&self, [x, y]: [f64; 2]) -> f64 {
        let term = |(_, c, [i, j]): &(Rational, f64, [usize; 2])| {
            c * x.powi(*i as i32) * y.powi(*j as i32)
        };
        self.terms.iter().map(term).sum()
    }

    /// Both derivatives, which grow with both masses.
    fn slopes(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        let down = |base: f64, power: usize| match power {
            0 => 0.0,
            power => power as f64 * base.powi(power as i32 - 1),
        };
        let mut slopes = [0.0; 2];
        for (_, c, [i, j]) in &self.terms {
            slopes[0] += c * down(x, *i) * y.powi(*j as i32);
            slopes[1] += c * x.powi(*i as i32) * down(y, *j);
        }
        slopes
    }
}

#[cfg(test)]
mod tests;
