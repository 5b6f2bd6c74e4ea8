//! Every draft has a noise of its own, and the target has all of them.

use super::shared_gumbel::race::{Race, Terms, integral};
use super::shared_gumbel::{OfNoise, of_masses, output_of_noise, subsets, verdict};
use super::token_rule::of_problem;
use super::{
    Acceptance, ConditionalLaw, Entry, Lossless, RowRule, RrsWoSettings, Verdict, Verifier,
    VerifierError, VerifierName,
};
use crate::problem::Problem;
use crate::rule::RuleName;
use crate::scheme::SchemeName;
use rand::RngCore;
use specgap_number::distribution::{Rational, token_id};
use specgap_number::known::Known;
use specgap_number::number::Number;
use specgap_row::{Question, Row, RowError, masses_of_several_noises, rates_of_several_noises};
use std::collections::BTreeMap;

/// The width of an enclosure at one position of a log.
const WIDTH_OF_A_ROW: f64 = 1e-6;

/// Noise k gives every token x a number E^k_x ~ Exp(1). Draft k is the token of least E^k_x/q_x, so
/// that drafts are i.i.d.; the output is the token of least E^k_x/p_x over all x and k. It is
/// accepted if it is a draft. ("Gumbel-max list sampling".) With one draft it is
/// [`SharedGumbel`](super::SharedGumbel).
///
/// Lossless whatever q is: the least of n numbers E^k_x is one of rate n, the same for all x.
///
/// # Acceptance
/// For an output y let l = p_y/q_y, A(s) = sum of (s q_x - p_x)+ and
/// g(t) = q_y t times the integral of e^{-t A(s)} over s > l. Then the rate is
///
/// ```text
/// sum over q_y > 0 of p_y integral over t > 0 of n e^{-nt} [1 - (1 - e^{-t A(l)}) (1 - g(t))^{n-1}] dt,
/// ```
///
/// which is at least the sum of `n p_y / (n + A(l))`, hence (1-TV)/(1+TV). Proofs:
/// `docs/theory/shared-noise.md`. Algorithmic and membership acceptance are one by definition.
///
/// In fractions where these are few; else enclosed, by [`rates_of_several_noises`].
///
/// # Source
/// GLS: arXiv 2506.05632 (2025), which bounds the rate; the formula is specgap's.
///
/// # Example
/// ```
/// use specgap_number::distribution::{Draft, Target};
/// use specgap_core::problem::Problem;
/// use specgap_core::scheme::WithReplacement;
/// use specgap_core::verifier::{Gls, Verifier};
/// let scheme = WithReplacement::new(Draft::new(&[0.25, 0.75])?, 1);
/// let problem = Problem::new("coin", Target::new(&[0.5, 0.5])?, scheme)?;
/// // Of token 1 all, and of token 0 1 / (1 + 2 3/4 - 1/2).
/// assert_eq!(Gls::new(&problem)?.acceptance().membership.value(), 0.75);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Gls(OfNoise);

impl Gls {
    /// Makes one for `with-replacement` drafts.
    ///
    /// # Errors
    /// Any other scheme.
    pub fn new(problem: &Problem) -> Result<Self, VerifierError> {
        Self::with_settings(problem, &RrsWoSettings::default())
    }

    fn with_settings(problem: &Problem, settings: &RrsWoSettings) -> Result<Self, VerifierError> {
        let (law, rule) = (SchemeName::WITH_REPLACEMENT, VerifierName::GLS);
        Ok(Self(OfNoise::new(problem, law, rule, settings)?))
    }

    /// The rate in `f64`, with its bounds.
    pub(super) fn enclosed(&self) -> Known {
        let OfNoise { problem, width, .. } = &self.0;
        let rates = rates_of_several_noises(self.0.rows(), problem.drafts(), *width);
        self.0.last_of(&rates)
    }

    /// P(output w, these drafts) for every w: with the race of each draft as the one that gave the
    /// output, and the others later.
    fn masses(&self, p: &[Rational], q: &[Rational], tuple: &[u32]) -> Option<Vec<Rational>> {
        let mut counts = BTreeMap::<u32, i32>::new();
        for &token in tuple {
            *counts.entry(token).or_default() += 1;
        }
        let mut races = Vec::new();
        for (token, count) in counts {
            races.push((Race::new(p, q, &[token])?.given(), count));
        }
        let mut masses = vec![Rational::zero(); p.len()];
        for (own, ((given, later), count)) in races.iter().enumerate() {
            let mut others = power(later, count - 1);
            for (other, ((_, later), count)) in races.iter().enumerate() {
                if other != own {
                    others = product(&others, &power(later, *count));
                }
            }
            let count = Rational::from_integer((*count).into());
            for ((mass, p), given) in masses.iter_mut().zip(p).zip(given) {
                let share = integral(&product(given, &others), tuple.len());
                mass.gain(&p.times(&share).times(&count));
            }
        }
        Some(masses)
    }
}

fn product(one: &Terms, other: &Terms) -> Terms {
    let mut terms = Terms::new();
    for (rate, c) in one {
        for (also, d) in other {
            let sum = terms.entry(rate.plus(also)).or_insert_with(Rational::zero);
            sum.gain(&c.times(d));
        }
    }
    terms
}

fn power(terms: &Terms, count: i32) -> Terms {
    let one = Terms::from([(Rational::zero(), Rational::one())]);
    (0..count).fold(one, |all, _| product(&all, terms))
}

/// One less this.
fn complement(terms: &Terms) -> Terms {
    let mut left: Terms = (terms.iter().map(|(rate, c)| (rate.clone(), -c))).collect();
    let one = left.entry(Rational::zero()).or_insert_with(Rational::zero);
    one.gain(&Rational::one());
    left
}

impl Verifier for Gls {
    fn name(&self) -> VerifierName {
        VerifierName::GLS
    }

    /// By quadrature: some hundred times O(nV).
    fn conditional(&self, tuple: &[u32]) -> ConditionalLaw<f64> {
        let rows = self.0.rows();
        let drafts: Vec<usize> = tuple.iter().map(|&draft| draft as usize).collect();
        let masses = masses_of_several_noises(rows, &drafts);
        of_masses(rows.target.to_vec(), tuple, Some(masses))
    }

    fn conditional_exact(&self, tuple: &[u32]) -> Option<ConditionalLaw<Rational>> {
        let (p, q) = of_problem(&self.0.problem);
        let masses = self.masses(&p, &q, tuple);
        Some(of_masses(p, tuple, masses))
    }

    /// Draws each noise given its draft. O(nV).
    fn sample(&self, tuple: &[u32], rng: &mut dyn RngCore) -> Verdict {
        let mut first = (f64::INFINITY, None);
        for draft in tuple {
            let one = output_of_noise(self.0.rows(), std::slice::from_ref(draft), rng);
            if one.0 < first.0 {
                first = one;
            }
        }
        verdict(first.1, self.0.rows().target, tuple, rng)
    }

    fn acceptance(&self) -> Acceptance {
        let (vocab, drafts) = (self.0.problem.vocab(), self.0.problem.drafts());
        let kept = |p: &[Rational], q: &[Rational], token: usize| {
            let (given, later) = Race::new(p, q, &[token_id(token)])?.given();
            let others = power(&complement(&later), drafts as i32 - 1);
            let lost = integral(&product(&complement(&given[token]), &others), drafts);
            Some(
                lost.times(&Rational::from_integer(drafts.into()))
                    .complement(),
            )
        };
        let terms = subsets(vocab + drafts, drafts);
        self.0.acceptance(terms, kept, || self.enclosed())
    }

    fn handles_all_tokens(&self) -> bool {
        true
    }

    fn steps_of_a_law(&self) -> [f64; 2] {
        let (vocab, drafts) = (self.0.problem.vocab(), self.0.problem.drafts());
        // Sums of products of fractions that have little in common; nodes of a quadrature.
        [4.0 * subsets(vocab + drafts, drafts), 500.0]
    }
}

fn on_row(row: &mut Row<'_>, drafts: usize) -> Result<Known, RowError> {
    Ok(row.several_noises(drafts, WIDTH_OF_A_ROW))
}

/// [`Gls`] in the table of verifiers.
pub const ENTRY: Entry = Entry {
    rule: RuleName::GLS,
    acceptance: "sum of p_y times the integral of n e^(-nt) (1 - (1 - e^(-t A(p_y/q_y))) (1 - g)^(n-1)), \
        A(s) = sum of (s q_x - p_x)+, g = q_y t times the integral of e^(-t A) from p_y/q_y on",
    lossless: Lossless::Under(&[SchemeName::WITH_REPLACEMENT]),
    build: |problem, settings| Ok(Box::new(Gls::with_settings(problem, settings)?)),
    on_row: |_| {
        Some(RowRule::of(Question {
            full: on_row,
            cut: |row, ask| row.several_noises(ask, on_row),
        }))
    },
    at_token: |_| Err("an output may be of another noise than the draft that it is"),
    attains: |_| false,
    compared_with: &[VerifierName::RRS],
    by_default: false,
};
