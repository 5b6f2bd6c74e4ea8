//! Recursive rejection sampling of independent drafts.

use super::residual::{Recursion, shortfall};
use super::rule::in_both;
use super::token::sample_in_turn;
use super::token_rule::{of_problem, of_row};
use super::{
    Acceptance, ConditionalLaw, Entry, Lossless, RowRule, Staged, TokenRule, Verdict, Verifier,
    VerifierError, VerifierName,
};
use crate::problem::Problem;
use crate::rule::RuleName;
use crate::scheme::SchemeName;
use rand::RngCore;
use specgap_number::distribution::{Draft, Rational, TwoFloat};
use specgap_number::known::Known;
use specgap_number::number::Number;
use specgap_row::{Question, Row, RowError, residual_error};
use std::sync::OnceLock;

/// Recursive rejection sampling: with p_1 = p, keep draft k with probability
/// `min(1, p_k(x)/q_k(x))`, else go on with p_(k+1) proportional to
/// `(p_k - q_k)+`; after the last draft, draw from `p_(n+1)`.
///
/// Lossless for `with-replacement` drafts and for `product` drafts, where q_k is
/// the law of draft k: each step is [`super::Token`] with target p_k, and what
/// comes after a rejection has law p_(k+1) by induction.
///
/// # Acceptance
/// `1 - prod(1 - b_k)` with `b_k = sum of min(p_k, q_k)`. For one q the residuals
/// are all of the form `(p - L q)+`: with `M(L) = sum of (p - L q)+`, L_1 = 0 and
/// `L_(k+1) = L_k + M(L_k)`, the product telescopes to `M(L_(n+1))`, so the rate
/// is `1 - M(L_(n+1))` in n passes over V, without a division. M falls with slope
/// between -1 and 0, hence errors add up and are never amplified, even with 1e-15
/// of mass left.
///
/// Algorithmic and membership acceptance are equal: a rejected token was
/// oversampled, so its residual is zero at that step and stays zero.
///
/// # Source
/// SpecInfer (Miao et al. 2023) with its different q_k; Yang et al. 2024; Hu et
/// al., App. A.1.
///
/// # Example
/// ```
/// use specgap_number::distribution::{Draft, Target, format_rational};
/// use specgap_core::problem::Problem;
/// use specgap_core::scheme::WithReplacement;
/// use specgap_core::verifier::{Rrs, Verifier};
/// let scheme = WithReplacement::new(Draft::new(&[0.75, 0.25])?, 2);
/// let problem = Problem::new("bernoulli", Target::new(&[0.5, 0.5])?, scheme)?;
/// let rate = Rrs::new(&problem)?.acceptance().membership;
/// assert_eq!(format_rational(rate.rational().unwrap()), "13/16");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Rrs {
    problem: Problem,
    float: OnceLock<Recursion<f64>>,
    exact: OnceLock<Recursion<Rational>>,
}

impl Rrs {
    /// Makes one for `with-replacement` or `product` drafts.
    ///
    /// # Errors
    /// Any other scheme.
    pub fn new(problem: &Problem) -> Result<Self, VerifierError> {
        if problem.scheme().independent_draft(0).is_none() {
            return Err(VerifierError::scheme(VerifierName::RRS, problem));
        }
        Ok(Self {
            problem: problem.clone(),
            float: OnceLock::new(),
            exact: OnceLock::new(),
        })
    }

    fn rows(&self) -> impl Iterator<Item = &Draft> {
        (0..self.problem.drafts())
            .filter_map(|position| self.problem.scheme().independent_draft(position))
    }

    fn recursion<M: Number>(&self) -> Recursion<M> {
        let rows: Vec<Vec<M>> = self.rows().map(|row| M::row(row)).collect();
        Recursion::new(M::row(self.problem.target()), &rows)
    }

    fn float(&self) -> &Recursion<f64> {
        self.float.get_or_init(|| self.recursion())
    }

    fn exact(&self) -> &Recursion<Rational> {
        self.exact.get_or_init(|| self.recursion())
    }

    /// The rate in `f64`.
    pub(super) fn enclosed(&self) -> Known {
        let n = self.problem.drafts() as f64;
        let row = self.problem.target().probabilities();
        match self.problem.scheme().draft() {
            Some(draft) => {
                let draft = draft.probabilities();
                let (mut factor, mut left) = (0.0, 1.0);
                for _ in 0..self.problem.drafts() {
                    factor += left;
                    left = positive_part(row, draft, factor);
                }
                // M(L) is computed to 2 epsilon (1 + L), L <= n, and L carries
                // the sum of those errors of the steps before.
                let error = 4.0 * f64::EPSILON * (n + 1.0) * (n + 1.0);
                Known::rate_within(1.0 - left, error)
            }
            None => {
                let rows: Vec<&[f64]> = self.rows().map(|row| row.probabilities()).collect();
                let mut current = row.to_vec();
                let mut mass = 1.0;
                for draft in rows {
                    let mut sum = TwoFloat::ZERO;
                    for (r, q) in current.iter_mut().zip(draft) {
                        *r = (*r - mass * q).max(0.0);
                        sum += *r;
                    }
                    mass = sum.value();
                }
                // Without one q there is no single factor: an error of r enters
                // the next r twice, directly and through its mass.
                let error = 8.0 * f64::EPSILON * 2f64.powf(n);
                Known::rate_within(1.0 - mass, error)
            }
        }
    }
}

/// M(L) = sum of (p - L q)+, one pass.
fn positive_part(target: &[f64], draft: &[f64], factor: f64) -> f64 {
    let mut sum = TwoFloat::ZERO;
    for (&p, &q) in target.iter().zip(draft) {
        let part = p - factor * q;
        if part > 0.0 {
            sum += part;
        }
    }
    sum.value()
}

impl Verifier for Rrs {
    in_both!(self, VerifierName::RRS, self.float(), self.exact());

    fn sample(&self, tuple: &[u32], rng: &mut dyn RngCore) -> Verdict {
        let float = self.float();
        sample_in_turn(|k, x| float.keeps(k, x), &float.residual, tuple, rng)
    }

    fn acceptance(&self) -> Acceptance {
        let n = self.problem.drafts() as f64;
        let target = self.problem.target();
        let bits = target.exact_bits() as f64 + self.problem.scheme().exact_bits();
        let work = bits * n * target.vocab() as f64;
        Acceptance::but(work, || &self.exact().left, || self.enclosed())
    }
}

/// The rate of n i.i.d. drafts. O(n m), m tokens a bucket.
fn on_row(row: &mut Row<'_>, drafts: usize) -> Result<Known, RowError> {
    let drafts = drafts.max(1);
    let (mut factor, mut left) = (0.0, 1.0);
    for _ in 0..drafts {
        factor += left;
        left = row.residual_mass(factor);
    }
    Ok(Known::rate_within(1.0 - left, residual_error(drafts)))
}

/// Returns what each draft accepts of a token of masses p and q: min((p - L q)+, M q), with M(L)
/// given.
fn masses<M: Number>(
    p: &M,
    q: &M,
    drafts: usize,
    mut residual_mass: impl FnMut(&M) -> M,
) -> Vec<M> {
    let (mut factor, mut left) = (M::zero(), M::one());
    let mut masses = Vec::with_capacity(drafts);
    for _ in 0..drafts {
        let wanted = p.excess_over(&factor.times(q));
        masses.push(wanted.smaller(&left.times(q)));
        factor = factor.plus(&left);
        left = residual_mass(&factor);
    }
    masses
}

const AT_TOKEN: TokenRule = TokenRule {
    on_row: |row, token, drafts, _| {
        let (p, q) = of_row(row, token);
        Ok(masses(&p, &q, drafts, |factor| row.residual_mass(*factor)))
    },
    exact: |problem, token| {
        let (p, q) = of_problem(problem);
        masses(&p[token], &q[token], problem.drafts(), |factor| {
            let offered: Vec<Rational> = q.iter().map(|q| factor * q).collect();
            Rational::total(&shortfall(&p, &offered))
        })
    },
    nested: true,
    sampled_from: None,
    on_lists: true,
};

const ON_ROW: Question = Question {
    full: on_row,
    // The first draft alone is accepted with the overlap.
    cut: |row, ask| {
        let [lower, upper] = row.rejected_in_turn(ask.drafts);
        Ok([lower.max(ask.overlap[0]), upper])
    },
};

/// [`Rrs`] in the table of verifiers.
pub const ENTRY: Entry = Entry {
    rule: RuleName::RRS,
    acceptance: "1 - M_(n+1), the mass of the last residual, O(nV)",
    lossless: Lossless::Under(&[
        SchemeName::WITH_REPLACEMENT,
        SchemeName::PRODUCT,
        SchemeName::STRATIFIED,
        SchemeName::STRATIFIED_INDEPENDENT,
    ]),
    build: |problem, _| match Staged::one(problem) {
        Ok(rule) => Ok(Box::new(rule)),
        Err(VerifierError::Scheme { .. }) => Ok(Box::new(Rrs::new(problem)?)),
        Err(error) => Err(error),
    },
    on_row: |scheme| (scheme == SchemeName::WITH_REPLACEMENT).then_some(RowRule::of(ON_ROW)),
    at_token: |scheme| match scheme == SchemeName::WITH_REPLACEMENT {
        true => Ok(AT_TOKEN),
        false => Err("of other drafts than i.i.d. ones it is not computed; level-4 is, of strata"),
    },
    attains: |_| false,
    compared_with: &[],
    by_default: true,
};
