//! Greedy verification.

use super::residual::{keep, shortfall};
use super::rule::in_both;
use super::token_rule::of_row;
use super::{
    Acceptance, ConditionalLaw, Entry, Lossless, RowRate, RowRule, TokenRule, Verifier,
    VerifierError, VerifierName, draft_of,
};
use crate::problem::Problem;
use crate::rule::RuleName;
use crate::scheme::{Greedy, SchemeName};
use specgap_number::distribution::{Draft, Rational, compensated_sum};
use specgap_number::known::Known;
use specgap_number::number::{Number, normalised};
use std::sync::{Arc, OnceLock};

/// Greedy verification: the output is a maximal coupling of p with q_last, the
/// law of the last draft (q renormalised over all but the n-1 top tokens). The
/// last draft x is kept with `min(1, p(x)/q_last(x))`; otherwise a token is drawn
/// from `(p - q_last)+`, and if it is one of the top tokens, it is a draft and
/// accepted as such.
///
/// Lossless for `greedy` drafts. If the support of q has fewer than n tokens,
/// there is no last draft and the output is a draw from p.
///
/// # Acceptance
/// `p(top) + sum over the rest of min(p, q_last)`, which is alpha* of the scheme
/// (Hu et al., Theorem 7). The rule itself accepts by membership, so both
/// acceptances are this number: q_last is zero on the top tokens, hence the
/// residual holds all of p there, and it is zero on a rejected x.
///
/// # Source
/// Hu et al., eq. 19 and 81.
///
/// # Example
/// ```
/// use specgap_number::distribution::{Draft, Target};
/// use specgap_core::problem::Problem;
/// use specgap_core::scheme::Greedy;
/// use specgap_core::verifier::{GreedyVerifier, Verifier};
/// let scheme = Greedy::new(Draft::new(&[0.5, 0.25, 0.25])?, 2);
/// let problem = Problem::new("greedy", Target::new(&[0.25, 0.125, 0.625])?, scheme)?;
/// assert_eq!(GreedyVerifier::new(&problem)?.acceptance().membership.value(), 0.875);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct GreedyVerifier {
    problem: Problem,
    draft: Draft,
    scheme: Greedy,
    float: Rule<f64>,
    exact: OnceLock<Rule<Rational>>,
}

#[derive(Debug)]
struct Rule<M> {
    /// Whether a token is one of the deterministic drafts.
    is_top: Vec<bool>,
    /// p.
    wanted: Vec<M>,
    /// q_last.
    offered: Vec<M>,
    /// (p - q_last)+, normalised.
    residual: Vec<M>,
    /// Its part off the top tokens, normalised.
    outside: Arc<[M]>,
    outside_mass: M,
    /// Mass of (p - q_last)+ off the top tokens: what is never accepted.
    left: M,
}

fn rule<M: Number>(target: Vec<M>, last: Vec<M>, top: &[usize]) -> Rule<M> {
    let mut is_top = vec![false; target.len()];
    for &token in top {
        is_top[token] = true;
    }
    let off_top = |row: &[M]| -> Vec<M> {
        let own = |(mass, top): (&M, &bool)| if *top { M::zero() } else { mass.clone() };
        row.iter().zip(&is_top).map(own).collect()
    };
    let short = shortfall(&target, &last);
    let left = M::total(&off_top(&short));
    // Nothing lacking means that nothing is ever rejected, up to rounding.
    let residual = normalised(&short).unwrap_or_else(|| target.clone());
    let outside = off_top(&residual);
    let law = normalised(&outside).unwrap_or_else(|| target.clone());
    Rule {
        is_top,
        wanted: target,
        offered: last,
        residual,
        outside: law.into(),
        outside_mass: M::total(&outside),
        left,
    }
}

impl<M: Number> Rule<M> {
    fn conditional(&self, tuple: &[u32]) -> ConditionalLaw<M> {
        let mut accepted = vec![M::zero(); tuple.len()];
        let last = tuple.iter().position(|&token| !self.is_top[token as usize]);
        let mut rejected = M::one();
        if let Some(position) = last {
            let token = tuple[position] as usize;
            let kept = keep(&self.wanted[token], &self.offered[token]);
            rejected = kept.complement();
            accepted[position] = kept;
        }
        for (position, &token) in tuple.iter().enumerate() {
            if self.is_top[token as usize] && tuple[..position].iter().all(|&x| x != token) {
                accepted[position] = rejected.times(&self.residual[token as usize]);
            }
        }
        ConditionalLaw {
            accepted,
            rejected: rejected.times(&self.outside_mass),
            residual: self.outside.clone(),
        }
    }
}

impl GreedyVerifier {
    /// Makes one for `greedy` drafts. O(V log V).
    ///
    /// # Errors
    /// Any other scheme.
    pub fn new(problem: &Problem) -> Result<Self, VerifierError> {
        let draft = draft_of(problem, SchemeName::GREEDY, VerifierName::GREEDY)?;
        let scheme = Greedy::new(draft.clone(), problem.drafts());
        let last = scheme.last().to_vec();
        Ok(Self {
            float: rule(f64::row(problem.target()), last, scheme.top()),
            problem: problem.clone(),
            draft,
            scheme,
            exact: OnceLock::new(),
        })
    }

    /// The rate in `f64`.
    pub(super) fn enclosed(&self) -> Known {
        let target = self.problem.target().probabilities();
        let rest = target.iter().zip(self.scheme.last());
        let top = self.scheme.top().iter().map(|&token| target[token]);
        let rate = compensated_sum(rest.map(|(&p, &q)| p.min(q)).chain(top));
        Known::rate_within(rate, 8.0 * f64::EPSILON)
    }

    fn exact(&self) -> &Rule<Rational> {
        self.exact.get_or_init(|| {
            let mut last = Rational::row(&self.draft);
            for &token in self.scheme.top() {
                last[token] = Rational::zero();
            }
            let last = normalised(&last).unwrap_or(last);
            let target = Rational::row(self.problem.target());
            rule(target, last, self.scheme.top())
        })
    }
}

impl Verifier for GreedyVerifier {
    in_both!(self, VerifierName::GREEDY, self.float, self.exact());

    fn acceptance(&self) -> Acceptance {
        let bits = self.problem.target().exact_bits() as f64 + self.draft.exact_bits() as f64;
        let work = bits * self.problem.vocab() as f64;
        Acceptance::but(work, || &self.exact().left, || self.enclosed())
    }

    fn depends_on_set_only(&self) -> bool {
        true
    }
}

/// Returns what each draft accepts of a token: all of p through its own draft if it is one of the
/// top tokens, at `rank` among them, and else min(p, q_last) through the last.
fn masses<M: Number>(p: &M, last: &M, rank: Option<usize>, drafts: usize) -> Vec<M> {
    let mut masses = vec![M::zero(); drafts];
    match rank.and_then(|rank| masses.get_mut(rank)) {
        Some(mass) => *mass = p.clone(),
        None => {
            if let Some(mass) = masses.last_mut() {
                *mass = p.smaller(last);
            }
        }
    }
    masses
}

const AT_TOKEN: TokenRule = TokenRule {
    on_row: |row, token, drafts, _| {
        let (p, q) = of_row(row, token);
        let fixed = drafts.max(1) - 1;
        let rank = row.heaviest(fixed).iter().position(|&top| top == token);
        let rest = row.rest_of_draft(fixed);
        let last = if rest > 0.0 { q / rest } else { 0.0 };
        Ok(masses(&p, &last, rank, drafts))
    },
    exact: |problem, token| {
        let Ok(rule) = GreedyVerifier::new(problem) else {
            return vec![Rational::zero(); problem.drafts()];
        };
        let rank = rule.scheme.top().iter().position(|&top| top == token);
        let (p, last) = (&rule.exact().wanted[token], &rule.exact().offered[token]);
        masses(p, last, rank, problem.drafts())
    },
    nested: false,
    sampled_from: None,
    on_lists: true,
};

/// [`GreedyVerifier`] in the table of verifiers.
pub const ENTRY: Entry = Entry {
    rule: RuleName::GREEDY,
    acceptance: "p(top) + sum of min(p, q_last): alpha* of its law",
    lossless: Lossless::Under(&[SchemeName::GREEDY]),
    build: |problem, _| Ok(Box::new(GreedyVerifier::new(problem)?)),
    on_row: |_| {
        Some(RowRule::always(RowRate::Answer(|row, drafts| {
            Ok(row.accepted_with_fixed(drafts.max(1) - 1))
        })))
    },
    at_token: |_| Ok(AT_TOKEN),
    attains: |scheme| scheme == SchemeName::GREEDY,
    compared_with: &[VerifierName::RRS, VerifierName::K_SEQ, VerifierName::RRS_WO],
    by_default: true,
};
