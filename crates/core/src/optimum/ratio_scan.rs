//! alpha* along one chain of subsets.

use super::Optimum;
use crate::problem::Problem;
#[cfg(doc)]
use crate::scheme::DraftScheme;
use crate::scheme::{Score, Scores};
use num_traits::Zero;
use specgap_number::distribution::{PROBABILITY_RELATIVE_ERROR, Rational, TwoFloat};
use specgap_number::known::Known;
use specgap_row::is_doubtful;
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
/// `without-replacement` (`docs/theory/sequential-draws.md`), and of laws that are composed of
/// those (`docs/theory/laws.md`).
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
/// use specgap_number::distribution::{Draft, Target};
/// use specgap_core::optimum::ratio_scan;
/// use specgap_core::problem::Problem;
/// use specgap_core::scheme::WithReplacement;
/// let scheme = WithReplacement::new(Draft::new(&[0.75, 0.25])?, 2);
/// let problem = Problem::new("bernoulli", Target::new(&[0.5, 0.5])?, scheme)?;
/// let optimum = ratio_scan::solve(&problem).unwrap();
/// assert_eq!(optimum.rate.value(), 0.9375);
/// assert_eq!(optimum.subset.unwrap(), [0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn solve(problem: &Problem) -> Option<Optimum> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimum::{fractions, iid};
    use crate::scheme::{
        Composed, Composition, DraftScheme, Draws, WithReplacement, WithoutReplacement,
    };
    use specgap_number::distribution::{Draft, Target, parse_rational};

    fn draft(row: &[&str]) -> Draft {
        Draft::from_rationals(fractions(row)).unwrap()
    }

    fn problem(target: &[&str], law: impl DraftScheme + 'static) -> Problem {
        let target = Target::from_rationals(fractions(target)).unwrap();
        Problem::new("small", target, law).unwrap()
    }

    /// Laws of all kinds of one score: both scans agree, and the one in floating point allows
    /// for what was rounded.
    #[test]
    fn rounded_scans_enclose_exact_ones_within_the_error_that_is_counted() {
        let q = || draft(&["1/2", "1/4", "1/8", "1/8", "0"]);
        let target = ["1/16", "1/8", "1/4", "1/16", "1/2"];
        let stop = || Draws::Stopped(parse_rational("1/3").unwrap());
        let draws = |how| Composition::Draws {
            draft: q(),
            count: 2,
            how,
        };
        let chances = fractions(&["1/2", "1/4", "1/8", "3/4", "0"]);
        let composed = |law| Composed::new(5, law).unwrap();
        let forced =
            Composition::Union(vec![Composition::Fixed(vec![2]), draws(Draws::Independent)]);
        let all = [
            problem(&target, WithReplacement::new(q(), 3)),
            problem(&target, WithoutReplacement::new(q(), 2)),
            problem(&target, composed(draws(stop()))),
            problem(&target, composed(forced)),
            problem(&target, composed(Composition::Poisson(chances))),
        ];
        for (place, problem) in all.iter().enumerate() {
            let (exact, rounded) = (exact(problem).unwrap(), enclosed(problem).unwrap());
            assert_eq!(exact.subset, rounded.subset, "{place}");
            let (truth, found) = (exact.rate.value(), rounded.rate);
            assert!(truth < 1.0, "{place}: {truth}");
            assert!(
                (found.value() - truth).abs() < 1e-12,
                "{place}: {found:?} {truth}"
            );
            let order: Vec<usize> = (0..5).collect();
            let chance = if place == 4 { 8.0 } else { 0.0 };
            let error = problem.scheme().prefix_scan(&order).absolute_error
                + 2.0 * PROBABILITY_RELATIVE_ERROR
                + (4.0 + chance) * f64::EPSILON;
            let off = (found.width() - 2.0 * error).abs();
            assert!(off <= 4.0 * f64::EPSILON, "{place}: {found:?} {error}");
            // The subset is what it proves.
            let subset = exact.subset.unwrap();
            let cut =
                problem.target().exact().mass(&subset) - problem.scheme().inside_exact(&subset);
            let one = Rational::from_integer(1.into());
            assert_eq!(exact.rate.rational(), Some(&(one + cut)), "{place}");
        }
    }

    /// Each of four tokens is drafted one time in four: with the empty set alpha* is how often
    /// any is, (3/4)^4 short of 1, and every other set says more.
    #[test]
    fn drafts_may_be_none_at_all() {
        let law = Composed::new(4, Composition::Poisson(fractions(&["1/4"; 4]))).unwrap();
        let problem = problem(&["1/4"; 4], law);
        for optimum in [exact(&problem).unwrap(), enclosed(&problem).unwrap()] {
            assert_eq!(optimum.rate.value(), 175.0 / 256.0);
            assert_eq!(optimum.subset.as_deref(), Some(&[][..]));
        }
        let found = crate::optimum::submodular::solve(&problem).unwrap().rate;
        assert!(
            found.lower() <= 175.0 / 256.0 && 175.0 / 256.0 <= found.upper(),
            "{found:?}"
        );
        assert!(found.width() < 1e-12, "{found:?}");
    }

    /// From the first ratio below 2^-1000 on nothing is known of the order.
    #[test]
    fn ratios_that_may_be_in_a_wrong_order_bound_nothing() {
        let problem = iid(&[0.25, 0.5, 0.25], &[1.0, 1e-303, 0.0], 2);
        let found = enclosed(&problem).unwrap();
        // H = {0} has P - Q = 1/4 - 1, and no set that holds it has less.
        assert!((found.rate.value() - 0.25).abs() < 1e-15);
        assert!(
            (found.rate.lower() - 0.25).abs() < 1e-14,
            "{:?}",
            found.rate
        );
    }

    /// A token of next to no mass in either row has a ratio like any other.
    #[test]
    fn tokens_of_little_mass_are_in_their_order() {
        let problem = iid(&[0.25, 1e-160, 0.75], &[0.5, 1e-160, 0.5], 2);
        let found = enclosed(&problem).unwrap();
        // Both first tokens have a ratio above that of the last.
        assert_eq!(found.rate.value(), 1.0);
        assert!(found.rate.lower() > 1.0 - 1e-14, "{:?}", found.rate);
    }

    /// Tokens, and what a scan takes besides, times the bits of Q and P.
    #[test]
    fn costs_of_exact_scans_by_hand() {
        let q = || draft(&["1/2", "1/4", "1/8", "1/8", "0"]);
        let target = ["1/16", "1/8", "1/4", "1/16", "1/2"];
        let cost = |problem: &Problem| exact_cost(problem);
        assert_eq!(
            cost(&problem(&target, WithReplacement::new(q(), 2))),
            5.0 * 13.0
        );
        let sequential = problem(&target, WithoutReplacement::new(q(), 3));
        assert_eq!(cost(&sequential), (64.0 + 5.0) * (44.0 + 5.0));
    }

    /// A product of different rows has no order in which prefixes were enough.
    #[test]
    fn laws_without_an_order_are_left_to_others() {
        let rows = vec![draft(&["1/2", "1/2", "0"]), draft(&["1/4", "1/4", "1/2"])];
        let law = crate::scheme::Product::new(rows).unwrap();
        let problem = problem(&["1/4", "1/4", "1/2"], law);
        assert!(!problem.scheme().has_sort_theorem());
        assert!(solve(&problem).is_none());
    }

    /// Of prefixes that are equally good the shortest is taken.
    #[test]
    fn ties_go_to_the_smaller_set() {
        let law = || WithReplacement::new(draft(&["1/2", "1/4", "1/4"]), 1);
        let problem = problem(&["1/8", "1/4", "5/8"], law());
        for found in [exact(&problem).unwrap(), enclosed(&problem).unwrap()] {
            assert_eq!((found.rate.value(), found.subset), (0.625, Some(vec![0])));
        }
    }

    #[test]
    fn orders_by_hand() {
        let target = [0.25, 0.0, 0.25, 0.0, 0.5];
        let drafts = [0.25, 0.25, 0.25, 0.0, 0.25];
        // p = 0 first, ties by token, and what neither row has is left out.
        assert_eq!(float_order(&target, &drafts), [1, 0, 2, 4]);
        assert_eq!(float_order(&target, &[0.0, 0.0, 0.0, 0.0, 1.0]), [4, 0, 2]);
        let problem = problem(
            &["1/4", "0", "1/4", "0", "1/2"],
            WithReplacement::new(draft(&["1/4", "1/4", "1/4", "0", "1/4"]), 2),
        );
        assert_eq!(exact_order(&problem).unwrap(), [1, 0, 2, 4]);
        // Ratios that are one in f64 are told apart, whatever the ids are.
        let most = "100000000000000000001/300000000000000000000";
        let least = "99999999999999999999/300000000000000000000";
        let near = WithReplacement::new(draft(&["1/3", least, most]), 2);
        let near = self::problem(&["1/3", "1/3", "1/3"], near);
        assert_eq!(exact_order(&near).unwrap(), [2, 0, 1]);
    }
}
