//! What both ways start from: a law of two scores.

use crate::problem::Problem;
use crate::scheme::{Score, Scores, Term};
use specgap_number::distribution::{Draft, Rational, round_nearest};

/// A law of two scores: what both ways start from.
pub(super) struct Two<'a> {
    pub(super) problem: &'a Problem,
    pub(super) scores: [&'a Draft; 2],
    /// Tokens that every draw holds, which every set of interest holds.
    forced: Vec<usize>,
    pub(super) polynomial: Option<Polynomial>,
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

impl<'a> Two<'a> {
    pub(super) fn of(problem: &'a Problem) -> Result<Self, NoThresholds> {
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

    pub(super) fn is_forced(&self, token: usize) -> bool {
        self.forced.binary_search(&token).is_ok()
    }
}

/// Q as a function of two masses: a sum of `c x^i y^j`, all c > 0.
pub(super) struct Polynomial {
    pub(super) terms: Vec<(Rational, f64, [usize; 2])>,
    pub(super) degree: usize,
}

impl Polynomial {
    fn of(terms: &[Term]) -> Self {
        let power = |term: &Term, score: usize| term.powers.get(score).copied().unwrap_or(0);
        let terms = terms.iter().map(|term| {
            let rounded = round_nearest(&term.coefficient);
            let powers = [0, 1].map(|score| power(term, score));
            (term.coefficient.clone(), rounded, powers)
        });
        let terms: Vec<_> = terms.collect();
        let degree = terms.iter().map(|(_, _, powers)| powers.iter().sum());
        Self {
            degree: degree.max().unwrap_or(0),
            terms,
        }
    }

    pub(super) fn value(&self, [x, y]: [f64; 2]) -> f64 {
        let term = |(_, c, [i, j]): &(Rational, f64, [usize; 2])| {
            c * x.powi(*i as i32) * y.powi(*j as i32)
        };
        self.terms.iter().map(term).sum()
    }

    /// Both derivatives, which grow with both masses.
    pub(super) fn slopes(&self, [x, y]: [f64; 2]) -> [f64; 2] {
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
mod tests {
    use super::*;
    use specgap_number::distribution::parse_rational;

    /// 1/2 x^2 y + 3 y^3 + 1/4 + 2 x at x = 1/2, y = 1/4.
    #[test]
    fn polynomials_and_their_slopes_by_hand() {
        let term = |coefficient: &str, powers: &[usize]| Term {
            coefficient: parse_rational(coefficient).unwrap(),
            powers: powers.to_vec(),
        };
        let terms = [
            term("1/2", &[2, 1]),
            term("3", &[0, 3]),
            term("1/4", &[0, 0]),
            term("2", &[1]),
        ];
        let polynomial = Polynomial::of(&terms);
        assert_eq!(polynomial.degree, 3);
        assert_eq!(polynomial.terms.len(), 4);
        let at = [0.5, 0.25];
        assert_eq!(polynomial.value(at), 0.03125 + 0.046875 + 0.25 + 1.0);
        // x y + 2, and x^2/2 + 9 y^2.
        assert_eq!(polynomial.slopes(at), [0.125 + 2.0, 0.125 + 0.5625]);
        assert_eq!(polynomial.slopes([0.0; 2]), [2.0, 0.0]);
        assert_eq!(Polynomial::of(&[]).degree, 0);
    }
}
