//! alpha* along one chain of subsets.

use super::Optimum;
use crate::distribution::{PROBABILITY_RELATIVE_ERROR, Rational, TwoFloat};
use crate::known::Known;
use crate::problem::Problem;
use crate::row::is_doubtful;
#[cfg(doc)]
use crate::scheme::DraftScheme;
use crate::scheme::{Score, Scores};
use num_traits::Zero;
use std::cmp::Ordering;

/// Exact scans are done while the vocabulary times the bits of one exact Q stays
/// below this.
const EXACT_BITS_LIMIT: f64 = 2.0e6;

/// Sorts tokens by w/p, largest first, and takes the best prefix H of
/// `1 + P(H) - Q(H)`. `None` if the scheme is not ordered by one ratio.
///
/// w is q for most laws; [`DraftScheme::scores`] says what it is.
/// Tokens that every draw holds come before all others: Q is 0 without them.
///
/// Tokens with p = 0 come first, those with q = 0 last, those with neither are
/// dropped. That is alpha*, by q-convexity of Q, for `with-replacement` and
/// `distinct-conditioned` (Hu et al., Theorems 3 to 6) and for sequential
/// `without-replacement` (`docs/sequential-draws.md`), and of laws that are composed of
/// those (`docs/laws.md`).
///
/// # Exactness
/// Exact while the numbers are small, else enclosed: rounding of p, q, Q and of
/// the sort (a mis-sorted pair has ratios within rounding of each other, which
/// amounts to perturbing p by that much) is added to the bounds. Where ratios are so
/// small that rounding may have mis-sorted them altogether, P before the first of them,
/// less 1, bounds P - Q from there on.
///
/// # Complexity
/// O(V log V) and one prefix scan.
///
/// # Example
/// ```
/// use specgap::distribution::{Draft, Target};
/// use specgap::optimum::ratio_scan;
/// use specgap::problem::Problem;
/// use specgap::scheme::WithReplacement;
/// let scheme = WithReplacement::new(Draft::new(&[0.75, 0.25])?, 2);
/// let problem = Problem::new("bernoulli", Target::new(&[0.5, 0.5])?, scheme)?;
/// let optimum = ratio_scan::solve(&problem).unwrap();
/// assert_eq!(optimum.rate.value(), 0.9375);
/// assert_eq!(optimum.subset.unwrap(), [0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn solve(problem: &Problem) -> Option<Optimum> {
    if !problem.scheme().has_sort_theorem() {
        return None;
    }
    let exactly = (exact_cost(problem) <= EXACT_BITS_LIMIT).then(|| exact(problem));
    exactly.flatten().or_else(|| enclosed(problem))
}

fn exact_cost(problem: &Problem) -> f64 {
    let scheme = problem.scheme();
    let entries = scheme.exact_scan_cost() + problem.vocab() as f64;
    entries * (scheme.exact_bits() + problem.target().exact_bits() as f64)
}

/// The tokens by falling w/p, compared exactly; `None` without one score, or where it is
/// one of logarithms that are too close to tell apart.
fn exact_order(problem: &Problem) -> Option<Vec<usize>> {
    let scores = problem.scheme().scores().filter(Scores::is_one)?;
    let mut order = scores.forced.clone();
    let Some(score) = scores.distinct.first() else {
        return Some(order);
    };
    let p = &problem.target().exact().weights;
    let target = problem.target().probabilities();
    let weights: Vec<f64> = (0..problem.vocab()).map(|i| score.weight(i)).collect();
    let mut rest: Vec<usize> = float_order(target, &weights);
    rest.retain(|token| scores.forced.binary_search(token).is_err());
    // Rounding may have dropped tokens, which then come last, and exchanged neighbours.
    let mut listed = vec![false; problem.vocab()];
    for &token in scores.forced.iter().chain(&rest) {
        listed[token] = true;
    }
    rest.extend(
        (0..problem.vocab()).filter(|&i| !listed[i] && (!p[i].is_zero() || score.is_positive(i))),
    );
    for end in 1..rest.len() {
        for at in (1..=end).rev() {
            let (before, after) = (rest[at - 1], rest[at]);
            let order_of = score.compare(p, after, before)?;
            if order_of.then(before.cmp(&after)) != Ordering::Greater {
                break;
            }
            rest.swap(at - 1, at);
        }
    }
    order.extend(rest);
    Some(order)
}

/// The tokens by falling q/p in `f64`.
pub fn float_order(target: &[f64], draft: &[f64]) -> Vec<usize> {
    let key = |token: usize| {
        let (p, q) = (target[token], draft[token]);
        if p == 0.0 { f64::INFINITY } else { q / p }
    };
    let mut keyed: Vec<(f64, usize)> = (0..target.len())
        .filter(|&token| target[token] > 0.0 || draft[token] > 0.0)
        .map(|token| (key(token), token))
        .collect();
    keyed.sort_unstable_by(|a, b| match b.0.total_cmp(&a.0) {
        Ordering::Equal => a.1.cmp(&b.1),
        unequal => unequal,
    });
    keyed.into_iter().map(|(_, token)| token).collect()
}

fn exact(problem: &Problem) -> Option<Optimum> {
    let order = exact_order(problem)?;
    let inside = problem.scheme().prefix_scan_exact(&order);
    let target = problem.target().exact();
    let mut held = Rational::zero();
    let mut best = (-problem.scheme().nothing_exact(), 0);
    for (position, (&token, q)) in order.iter().zip(&inside).enumerate() {
        held += target.probability(token);
        let difference = &held - q;
        if difference < best.0 {
            best = (difference, position + 1);
        }
    }
    let one = Rational::from_integer(1.into());
    Some(Optimum {
        rate: Known::exact(one + best.0),
        subset: Some(prefix(&order, best.1)),
        note: None,
    })
}

fn enclosed(problem: &Problem) -> Option<Optimum> {
    let target = problem.target().probabilities();
    let scheme = problem.scheme();
    let scores = scheme.scores().filter(Scores::is_one)?;
    let weights: Vec<f64> = (0..problem.vocab())
        .map(|token| match scores.forced.binary_search(&token) {
            Ok(_) => f64::INFINITY,
            Err(_) => scores.weight(token),
        })
        .collect();
    let order = float_order(target, &weights);
    let scan = scheme.prefix_scan(&order);
    let nothing = scheme.nothing();
    let mut held = TwoFloat::ZERO;
    let mut best = (-nothing, 0);
    let mut floor = -nothing;
    for (position, (&token, &q)) in order.iter().zip(&scan.inside).enumerate() {
        if is_doubtful(weights[token] / target[token]) {
            floor = floor.min((held - TwoFloat::ONE).value());
        }
        held += target[token];
        let difference = (held - TwoFloat::from(q)).value();
        if difference < best.0 {
            best = (difference, position + 1);
        }
    }
    // P and Q, the rounded sort (p perturbed by one rounding of q/p), the sum.
    let mut error = scan.absolute_error + 2.0 * PROBABILITY_RELATIVE_ERROR + 4.0 * f64::EPSILON;
    if let Some(Score::Chance(_)) = scores.distinct.first() {
        // A logarithm of a rounded number besides.
        error += 8.0 * f64::EPSILON;
    }
    let value = 1.0 + best.0;
    Some(Optimum {
        rate: Known::rate(value, 1.0 + best.0.min(floor) - error, value + error),
        subset: Some(prefix(&order, best.1)),
        note: None,
    })
}

fn prefix(order: &[usize], length: usize) -> Vec<usize> {
    let mut subset = order[..length].to_vec();
    subset.sort_unstable();
    subset
}
