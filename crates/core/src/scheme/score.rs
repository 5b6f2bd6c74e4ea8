//! What a law's Q is convex in: the weights that tokens are sorted by.
//!
//! For weights w >= 0, Q is *w-convex* if for all H, x in H, y not in H with w > 0
//!
//! ```text
//! [Q(H+y) - Q(H)] / w_y  >=  [Q(H) - Q(H-x)] / w_x,
//! ```
//!
//! and tokens of w = 0 change nothing. One such w, and a prefix of the tokens by falling
//! w/p is the best subset; two, and the best subset is a linear threshold set, tokens with
//! `p < lambda_1 w^1 + lambda_2 w^2` (`docs/theory/laws.md` has the proofs).

use num_bigint::BigUint;
use num_traits::Zero;
use specgap_number::distribution::{Draft, Rational};
use specgap_number::number::Number;
use std::cmp::Ordering;

/// Weights w of the tokens.
#[derive(Clone, Copy, Debug)]
pub enum Score<'a> {
    /// w is a distribution, in most laws q.
    Mass(&'a Draft),
    /// w = -log(1 - chance), of tokens that are drafted independently of one another.
    Chance(&'a [Rational]),
}

impl Score<'_> {
    /// w of a token, to a few units of the last place.
    pub fn weight(&self, token: usize) -> f64 {
        match self {
            Self::Mass(draft) => draft.probabilities()[token],
            Self::Chance(chances) => hazard(&chances[token]),
        }
    }

    /// Returns whether w of a token is above 0.
    pub fn is_positive(&self, token: usize) -> bool {
        match self {
            Self::Mass(draft) => draft.is_positive(token),
            Self::Chance(chances) => !chances[token].is_nil(),
        }
    }

    /// Compares w_a p_b with w_b p_a, p being whole-number weights: which of the two has
    /// the larger w/p. `None` where that takes logarithms too close to one another for a
    /// comparison at a reasonable cost.
    pub fn compare(&self, p: &[BigUint], a: usize, b: usize) -> Option<Ordering> {
        match self {
            Self::Mass(draft) => {
                let w = &draft.exact().weights;
                Some((&w[a] * &p[b]).cmp(&(&w[b] * &p[a])))
            }
            Self::Chance(chances) => compare_hazards(chances, p, a, b),
        }
    }
}

/// Relative error of [`hazard`], and of a quotient of it, with room.
const HAZARD_ERROR: f64 = 1e-13;

/// The most bits that powers may take that decide between two hazards.
const POWER_BITS: f64 = 1.0e6;

/// -log(1 - chance); infinite for 1.
fn hazard(chance: &Rational) -> f64 {
    let missed = (Rational::one() - chance).to_f64();
    if missed < 0.5 {
        -missed.ln()
    } else {
        -(-chance.to_f64()).ln_1p()
    }
}

/// h_a p_b against h_b p_a, which is (1-c_b)^{p_a} against (1-c_a)^{p_b}.
fn compare_hazards(chances: &[Rational], p: &[BigUint], a: usize, b: usize) -> Option<Ordering> {
    if chances[a] == chances[b] {
        return Some(if chances[a].is_nil() {
            Ordering::Equal
        } else {
            p[b].cmp(&p[a])
        });
    }
    let side = |chance: usize, other: usize| {
        let mass = Rational::fraction(&p[other], &BigUint::from(1u32)).to_f64();
        hazard(&chances[chance]) * mass
    };
    let (left, right) = (side(a, b), side(b, a));
    if (left - right).abs() > HAZARD_ERROR * left.max(right) {
        return left.partial_cmp(&right);
    }
    let divisor = num_integer::Integer::gcd(&p[a], &p[b]);
    if divisor.is_zero() {
        return Some(Ordering::Equal);
    }
    let exponent = |token: usize| u32::try_from(&p[token] / &divisor).ok();
    let (for_a, for_b) = (exponent(b)?, exponent(a)?);
    let missed = |token: usize| Rational::one() - &chances[token];
    let (missed_a, missed_b) = (missed(a), missed(b));
    let bits = |x: &Rational, power: u32| x.denom().bits() as f64 * f64::from(power);
    if bits(&missed_a, for_a).max(bits(&missed_b, for_b)) > POWER_BITS {
        return None;
    }
    // A larger hazard leaves less.
    let left = missed_a.power(for_a as usize);
    let right = missed_b.power(for_b as usize);
    Some(right.cmp(&left))
}

/// One term of Q as a polynomial in masses: a coefficient above 0, and the power of the mass
/// of each score.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// The coefficient.
    pub coefficient: Rational,
    /// Powers, one a score.
    pub powers: Vec<usize>,
}

/// What a law's Q is convex in.
#[derive(Clone, Debug)]
pub struct Scores<'a> {
    /// Tokens that every draw holds, ascending. Q of a set without one of them is 0, and
    /// they come before all others in the order.
    pub forced: Vec<usize>,
    /// The scores, no two proportional to one another outside [`Self::forced`].
    pub distinct: Vec<Score<'a>>,
    /// Q of the forced tokens and H as a polynomial in the masses that scores of the kind
    /// [`Score::Mass`] give to H without the forced tokens, where it is one: for drafts
    /// that are independent of one another.
    pub polynomial: Option<Vec<Term>>,
}

impl<'a> Scores<'a> {
    /// One draft distribution.
    pub fn of(draft: &'a Draft) -> Self {
        Self {
            forced: Vec::new(),
            distinct: vec![Score::Mass(draft)],
            polynomial: None,
        }
    }

    /// Returns whether one order is enough.
    pub fn is_one(&self) -> bool {
        self.distinct.len() <= 1
    }

    /// Weight of a token by the only score; 0 if there is none.
    pub fn weight(&self, token: usize) -> f64 {
        self.distinct
            .first()
            .map_or(0.0, |score| score.weight(token))
    }
}

/// Returns whether two rows are proportional on the tokens of a vocabulary that count, both having
/// some mass on them.
pub(super) fn proportional(a: &Draft, b: &Draft, counts: impl Fn(usize) -> bool) -> bool {
    let tokens: Vec<usize> = (0..a.vocab()).filter(|&token| counts(token)).collect();
    if (tokens.iter()).any(|&token| a.is_positive(token) != b.is_positive(token)) {
        return false;
    }
    let Some(&first) = tokens.iter().find(|&&token| a.is_positive(token)) else {
        return true;
    };
    // Rounded rows tell most pairs apart.
    let (p, q) = (a.probabilities(), b.probabilities());
    let near = |token: usize| {
        let (left, right) = (p[token] * q[first], q[token] * p[first]);
        (left - right).abs() <= 1e-12 * left.max(right) + f64::MIN_POSITIVE
    };
    if !tokens.iter().all(|&token| near(token)) {
        return false;
    }
    let (a, b) = (&a.exact().weights, &b.exact().weights);
    tokens
        .iter()
        .all(|&token| &a[token] * &b[first] == &b[token] * &a[first])
}

/// The mass of a row outside some tokens, exactly.
pub(super) fn mass_outside(draft: &Draft, forced: &[usize]) -> Rational {
    let exact = draft.exact();
    let held: BigUint = forced.iter().map(|&token| &exact.weights[token]).sum();
    specgap_number::distribution::ratio(&(&exact.total - held), &exact.total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use specgap_number::distribution::parse_rational;

    fn rationals(texts: &[&str]) -> Vec<Rational> {
        texts
            .iter()
            .map(|text| parse_rational(text).unwrap())
            .collect()
    }

    #[test]
    fn hazards_compare_exactly_where_logarithms_tie() {
        // 1 - 3/4 = (1 - 1/2)^2: the hazard of the first is twice that of the second.
        let chances = rationals(&["3/4", "1/2", "1/2", "0"]);
        let score = Score::Chance(&chances);
        let p: Vec<BigUint> = [2u32, 1, 3, 1].map(BigUint::from).to_vec();
        assert_eq!(score.compare(&p, 0, 1), Some(Ordering::Equal));
        assert_eq!(score.compare(&p, 1, 2), Some(Ordering::Greater));
        assert_eq!(score.compare(&p, 0, 3), Some(Ordering::Greater));
        assert_eq!(score.compare(&p, 3, 0), Some(Ordering::Less));
        // Closer than f64 can tell, and still apart.
        let near = rationals(&["3/4", "0.50000000000000000001"]);
        let score = Score::Chance(&near);
        assert_eq!(score.compare(&p, 0, 1), Some(Ordering::Less));
        assert!((score.weight(0) - 4f64.ln()).abs() < 1e-15);
    }
}
