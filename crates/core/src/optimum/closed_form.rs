//! alpha* by formula, where one exists.

use super::Optimum;
use crate::problem::Problem;
use crate::scheme::{DraftScheme, ExactSetLaw, SchemeName};
use num_bigint::BigUint;
use num_traits::{One, Pow, Zero};
use specgap_number::distribution::{Rational, ratio};
use specgap_number::known::Known;

/// Formulas are evaluated exactly; problems whose exact form takes more bits
/// than this are left to other methods.
const BITS_LIMIT: f64 = 2.0e8;

/// alpha* of a problem that a formula covers, exactly; `None` for all others.
///
/// | case | alpha* |
/// | --- | --- |
/// | n = 1 | sum of `min(p, q)` |
/// | fixed tokens and at most one other: `greedy`, `hub` | `p(top)` + sum over the rest of `min(p, q/(1 - q(top)))` (Hu et al. eq. 81; SpecHub sec. 4) |
/// | `with-replacement`, V = 2 | `min(p, 1-(1-q)^n) + min(1-p, 1-q^n)` (SpecTr App. B.2) |
/// | `with-replacement`, p is q restricted to a set R | `1 - (1 - q(R))^n` (SpecTr's uniform case is one of these) |
/// | p = q, drafts with or without replacement | 1 |
/// | distinct drafts, at most n tokens in the support of q | p of that support |
/// | p and every draft on disjoint supports | 0 |
///
/// # Example
/// ```
/// use specgap_number::distribution::{Draft, Target, format_rational};
/// use specgap_core::optimum::closed_form;
/// use specgap_core::problem::Problem;
/// use specgap_core::scheme::Hub;
/// let problem = Problem::new(
///     "hub",
///     Target::new(&[0.25, 0.25, 0.5])?,
///     Hub::new(Draft::new(&[0.5, 0.25, 0.25])?),
/// )?;
/// let optimum = closed_form::solve(&problem).unwrap();
/// assert_eq!(format_rational(optimum.rate.rational().unwrap()), "1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn solve(problem: &Problem) -> Option<Optimum> {
    let scheme = problem.scheme();
    let bits = problem.target().exact_bits() as f64 + scheme_row_bits(scheme);
    if bits * problem.vocab() as f64 > BITS_LIMIT {
        return None;
    }
    let found = |rate: Rational, subset: Option<Vec<usize>>, formula: &str| {
        Some(Optimum {
            rate: Known::exact(rate),
            subset,
            note: Some(formula.to_owned()),
        })
    };
    if problem.drafts() == 1 {
        let (rate, subset) = minimum_with(problem, &scheme.exact_set_law(), &[]);
        return found(rate, Some(subset), "n = 1: sum of min(p, q)");
    }
    if let Some(fixed) = scheme.fixed_drafts() {
        let law = scheme.exact_set_law();
        let top = common_tokens(&law, fixed);
        let (rate, subset) = minimum_with(problem, &law, &top);
        let note = if law.sets.len() == 1 {
            "every draw is one set: p of it"
        } else {
            "p(top) + sum over the rest of min(p, q/(1 - q(top)))"
        };
        return found(rate, Some(subset), note);
    }
    let name = scheme.name();
    if name == SchemeName::WITH_REPLACEMENT {
        if let Some(optimum) = restriction(problem) {
            return Some(optimum);
        }
        return (problem.vocab() == 2).then(|| bernoulli(problem));
    }
    let sequential = name == SchemeName::WITHOUT_REPLACEMENT;
    if !(sequential || name == SchemeName::DISTINCT_CONDITIONED) {
        return None;
    }
    let draft = scheme.draft()?;
    let support = draft.support();
    if support.len() <= problem.drafts() {
        let rate = problem.target().exact().mass(&support);
        let note = "every draw is the whole support of q: p of that support";
        return found(rate, None, note);
    }
    let same = sequential
        && (0..problem.vocab()).all(|token| {
            let (p, q) = (problem.target().exact(), draft.exact());
            &p.weights[token] * &q.total == &q.weights[token] * &p.total
        });
    if same {
        return found(
            Rational::one(),
            Some(Vec::new()),
            "p = q: the first draft is a draw from p",
        );
    }
    let disjoint = support
        .iter()
        .all(|&token| !problem.target().is_positive(token));
    if disjoint {
        return found(
            Rational::zero(),
            Some(support),
            "p and q have no token in common: 0",
        );
    }
    None
}

fn scheme_row_bits(scheme: &dyn DraftScheme) -> f64 {
    scheme
        .draft()
        .map_or_else(|| scheme.exact_bits(), |draft| draft.exact_bits() as f64)
}

/// `count` tokens that stand in every set: the deterministic ones. Where there is one set only,
/// any of it will do.
fn common_tokens(law: &ExactSetLaw, count: usize) -> Vec<usize> {
    let mut sets = law.sets.iter();
    let Some(first) = sets.next() else {
        return Vec::new();
    };
    let mut common: Vec<usize> = first.iter().map(|&token| token as usize).collect();
    for set in sets {
        common.retain(|&token| set.contains(&(token as u32)));
    }
    common.truncate(count);
    common
}

/// p(top) + sum over the other tokens x of min(p_x, D(top + x)), and the subset
/// top + { x : D(top + x) > p_x }.
fn minimum_with(problem: &Problem, law: &ExactSetLaw, top: &[usize]) -> (Rational, Vec<usize>) {
    let target = problem.target().exact();
    let mut sum: BigUint = top
        .iter()
        .map(|&token| &target.weights[token] * &law.total)
        .sum();
    let mut subset = top.to_vec();
    for (set, weight) in law.sets.iter().zip(&law.weights) {
        let last = set
            .iter()
            .map(|&token| token as usize)
            .find(|token| !top.contains(token));
        if let Some(last) = last {
            let (p, q) = (&target.weights[last] * &law.total, weight * &target.total);
            if q > p {
                subset.push(last);
            }
            sum += p.min(q);
        }
    }
    subset.sort_unstable();
    let rate = ratio(&sum, &(&law.total * &target.total));
    if rate.is_one() {
        subset.clear();
    }
    (rate, subset)
}

/// p = q on R, renormalised, and 0 elsewhere.
fn restriction(problem: &Problem) -> Option<Optimum> {
    let (p, q) = (problem.target().exact(), problem.scheme().draft()?.exact());
    let support = problem.target().support();
    let inside: BigUint = support.iter().map(|&token| &q.weights[token]).sum();
    let outside = &q.total - &inside;
    let drafts = problem.drafts();
    let proportional = support
        .iter()
        .all(|&token| &p.weights[token] * &inside == &q.weights[token] * &p.total);
    if !proportional {
        return None;
    }
    let missed = ratio(&Pow::pow(&outside, drafts), &Pow::pow(&q.total, drafts));
    let subset = (0..problem.vocab())
        .filter(|&token| p.weights[token].is_zero() && !q.weights[token].is_zero())
        .collect();
    Some(Optimum {
        rate: Known::exact(Rational::one() - missed),
        subset: Some(subset),
        note: Some("p is q restricted to a set R: 1 - (1 - q(R))^n".to_owned()),
    })
}

fn bernoulli(problem: &Problem) -> Optimum {
    let target = problem.target().exact();
    let reach = |token: usize| {
        // P(the token is among the drafts) = 1 - (mass of the other)^n
        Rational::one() - problem.scheme().inside_exact(&[1 - token])
    };
    let mut rate = Rational::zero();
    let mut subset = Vec::new();
    for token in 0..2 {
        let (p, reached) = (target.probability(token), reach(token));
        if reached < p {
            // Too rarely drafted: all drafts on the other token are one too many.
            subset = vec![1 - token];
        }
        rate += p.min(reached);
    }
    Optimum {
        rate: Known::exact(rate),
        subset: Some(subset),
        note: Some("V = 2: min(p, 1-(1-q)^n) + min(1-p, 1-q^n)".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimum::{flow, fractions, row_of_bits};
    use crate::scheme::{
        DistinctConditioned, Greedy, Hub, Top, WithReplacement, WithoutReplacement,
    };
    use specgap_number::distribution::{Draft, Target, parse_rational};

    fn problem(target: &[&str], law: impl DraftScheme + 'static) -> Problem {
        Problem::new(
            "small",
            Target::from_rationals(fractions(target)).unwrap(),
            law,
        )
        .unwrap()
    }

    fn q(texts: &[&str]) -> Draft {
        Draft::from_rationals(fractions(texts)).unwrap()
    }

    /// The formula is the maximum flow, is what it is by hand, and its set proves it.
    fn is(problem: &Problem, rate: &str, subset: Option<&[usize]>) {
        let found = solve(problem).unwrap();
        let expected = parse_rational(rate).unwrap();
        assert_eq!(found.rate.rational(), Some(&expected), "{:?}", found.note);
        assert_eq!(found.subset.as_deref(), subset, "{:?}", found.note);
        assert_eq!(
            flow::solve(problem).optimum().rate.rational(),
            Some(&expected)
        );
        if let Some(subset) = subset {
            let cut = problem.target().exact().mass(subset) - problem.scheme().inside_exact(subset);
            assert_eq!(Rational::one() + cut, expected, "{:?}", found.note);
        }
    }

    /// Numbers of some 990 bits: 90,000 tokens are within the limit and 105,000 are not.
    #[test]
    fn sums_of_too_many_bits_are_left_to_others() {
        for (vocab, is_solved) in [(90_000, true), (105_000, false)] {
            let p = Target::new(&row_of_bits(vocab, 0, 1000)).unwrap();
            let q = Draft::new(&row_of_bits(vocab, 1, 990)).unwrap();
            let share = (p.exact_bits() + q.exact_bits()) as f64 * vocab as f64 / BITS_LIMIT;
            assert!(
                (share - 1.0).abs() < 0.12 && is_solved == (share < 1.0),
                "{share}"
            );
            let problem = Problem::new("long", p, WithReplacement::new(q, 1)).unwrap();
            assert_eq!(solve(&problem).is_some(), is_solved);
        }
    }

    const HALVES: [&str; 3] = ["1/2", "1/4", "1/4"];

    #[test]
    fn every_formula_by_hand_and_by_flow() {
        let draft = || q(&HALVES);
        let target = ["1/8", "1/4", "5/8"];
        let iid = |drafts| WithReplacement::new(draft(), drafts);
        // One draft: 1/8 + 1/4 + 1/4.
        is(&problem(&target, iid(1)), "5/8", Some(&[0]));
        is(&problem(&HALVES, iid(1)), "1", Some(&[]));
        // Token 0 and half of each of the others.
        is(&problem(&target, Hub::new(draft())), "7/8", Some(&[0, 1]));
        let greedy = Greedy::new(draft(), 2);
        is(&problem(&target, greedy), "7/8", Some(&[0, 1]));
        let top = Top::new(draft(), 2);
        is(&problem(&target, top), "3/8", Some(&[0, 1]));
        // p is q without token 0, which two drafts are a quarter of the time.
        let rest = ["0", "1/2", "1/2"];
        is(&problem(&rest, iid(2)), "3/4", Some(&[0]));
        is(&problem(&rest, iid(3)), "7/8", Some(&[0]));
        // Two tokens: 1/4 of token 0 are reached 7/16 of the time, 3/4 of it 15/16.
        let coin = || WithReplacement::new(q(&["1/4", "3/4"]), 2);
        is(&problem(&["3/4", "1/4"], coin()), "11/16", Some(&[1]));
        is(&problem(&["1/4", "3/4"], coin()), "1", Some(&[]));
        is(&problem(&["1/32", "31/32"], coin()), "31/32", Some(&[0]));
        // The whole support: p of it. Both laws that draw distinct tokens.
        let drawn = |q: &[&str]| WithoutReplacement::new(self::q(q), 2);
        let conditioned = |q: &[&str], drafts| DistinctConditioned::new(self::q(q), drafts);
        let pair = ["1/3", "0", "2/3"];
        is(&problem(&target, drawn(&pair)), "3/4", None);
        is(&problem(&target, conditioned(&pair, 3)), "3/4", None);
        // p is q, and p and q have nothing in common.
        is(&problem(&HALVES, drawn(&HALVES)), "1", Some(&[]));
        let apart = ["1/4", "1/4", "1/2", "0"];
        let (last, all) = (["0", "0", "0", "1"], Some(&[0, 1, 2][..]));
        is(&problem(&last, drawn(&apart)), "0", all);
        is(&problem(&last, conditioned(&apart, 2)), "0", all);
        // No formula for these.
        for none in [
            problem(&target, iid(2)),
            problem(&target, drawn(&HALVES)),
            problem(&HALVES, conditioned(&HALVES, 2)),
        ] {
            assert!(solve(&none).is_none());
        }
    }
}
