//! Speculative sampling with one draft.

use super::residual::Recursion;
use super::rule::in_both;
use super::token_rule::{of_problem, of_row};
use super::{
    Acceptance, ConditionalLaw, Entry, Lossless, RowRule, TokenRule, Verdict, Verifier,
    VerifierError, VerifierName, happens, refused, taken,
};
use crate::problem::Problem;
use crate::rule::RuleName;
use crate::scheme::{Probability, SchemeName};
use rand::RngCore;
use specgap_number::distribution::{Rational, compensated_sum};
use specgap_number::known::Known;
use specgap_number::number::Number;
use std::sync::OnceLock;

/// One draft: keep x with probability min(1, p(x)/q(x)), else draw from
/// `(p - q)+`, normalised.
///
/// Lossless for any scheme at n = 1: whatever the scheme, its single draft has
/// some law q (that of `explicit` is its list).
///
/// # Acceptance
/// sum of `min(p, q)`, algorithmic and membership alike: a rejected x has
/// p(x) < q(x), so the residual is zero there. Equal to alpha* at n = 1.
///
/// # Source
/// Leviathan et al. 2023, Chen et al. 2023; Hu et al. eq. 5 (the maximal
/// coupling; their eq. 2 prints a sum off the diagonal where the product
/// `(p_i - q_i)+ (q_j - p_j)+` is meant).
///
/// # Example
/// ```
/// use specgap_number::distribution::{Draft, Target};
/// use specgap_core::problem::Problem;
/// use specgap_core::scheme::WithReplacement;
/// use specgap_core::verifier::{Token, Verifier};
/// let scheme = WithReplacement::new(Draft::new(&[0.5, 0.5])?, 1);
/// let problem = Problem::new("coin", Target::new(&[0.25, 0.75])?, scheme)?;
/// let law = Token::new(&problem)?.conditional(&[0]);
/// assert_eq!((law.accepted[0], law.rejected), (0.5, 0.5));
/// assert_eq!(law.residual[..], [0.0, 1.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Token {
    problem: Problem,
    float: Recursion<f64>,
    exact: OnceLock<Recursion<Rational>>,
}

impl Token {
    /// Makes one for a problem with one draft. O(V).
    ///
    /// # Errors
    /// The problem has more than one draft.
    pub fn new(problem: &Problem) -> Result<Self, VerifierError> {
        if problem.drafts() != 1 {
            return Err(VerifierError::scheme(VerifierName::TOKEN, problem));
        }
        Ok(Self {
            float: rule(problem),
            problem: problem.clone(),
            exact: OnceLock::new(),
        })
    }

    fn exact(&self) -> &Recursion<Rational> {
        self.exact.get_or_init(|| rule(&self.problem))
    }

    /// The rate in `f64`.
    pub(super) fn enclosed(&self) -> Known {
        let target = self.problem.target().probabilities();
        let draft: Vec<f64> = draft_row(&self.problem);
        let rate = compensated_sum(target.iter().zip(&draft).map(|(&p, &q)| p.min(q)));
        // Each term is within 1.25 epsilon of p or q; a list adds its own sum.
        Known::rate_within(rate, 4.0 * f64::EPSILON)
    }
}

fn rule<M: Probability>(problem: &Problem) -> Recursion<M> {
    Recursion::new(M::row(problem.target()), &[draft_row(problem)])
}

/// Law of the only draft. A scheme's q may not be it: the scheme may choose from q otherwise
/// than by drawing.
fn draft_row<M: Probability>(problem: &Problem) -> Vec<M> {
    let scheme = problem.scheme();
    if let Some(draft) = scheme.independent_draft(0) {
        return M::row(draft);
    }
    let mut row = vec![M::zero(); problem.vocab()];
    M::tuples(scheme, &mut |tuple, mass| {
        for &token in tuple {
            row[token as usize].gain(mass);
        }
    });
    row
}

impl Verifier for Token {
    in_both!(self, VerifierName::TOKEN, self.float, self.exact());

    fn sample(&self, tuple: &[u32], rng: &mut dyn RngCore) -> Verdict {
        let float = &self.float;
        sample_in_turn(|k, x| float.keeps(k, x), &float.residual, tuple, rng)
    }

    fn acceptance(&self) -> Acceptance {
        let bits = self.problem.target().exact_bits() as f64 + self.problem.scheme().exact_bits();
        let work = bits * self.problem.vocab() as f64;
        Acceptance::but(work, || &self.exact().left, || self.enclosed())
    }
}

/// Offers the drafts in turn: draft k, a token, is kept with the probability that is given.
pub(super) fn sample_in_turn(
    keeps: impl Fn(usize, u32) -> f64,
    residual: &[f64],
    tuple: &[u32],
    rng: &mut dyn RngCore,
) -> Verdict {
    for (position, &token) in tuple.iter().enumerate() {
        if happens(keeps(position, token), rng) {
            return taken(tuple, position);
        }
    }
    refused(residual, rng)
}

/// min(p, q) for a draft that is drawn from q.
const DRAWN: TokenRule = TokenRule {
    on_row: |row, token, _, _| {
        let (p, q) = of_row(row, token);
        Ok(vec![p.smaller(&q)])
    },
    exact: |problem, token| {
        let (p, q) = of_problem(problem);
        vec![p[token].smaller(&q[token])]
    },
    nested: true,
    sampled_from: None,
    on_lists: true,
};

/// p where the draft is the heaviest token of q.
const HEAVIEST: TokenRule = TokenRule {
    on_row: |row, token, _, _| {
        let (p, _) = of_row(row, token);
        let hit = row.heaviest(1) == [token];
        Ok(vec![if hit { p } else { 0.0 }])
    },
    exact: |problem, token| {
        let p = Rational::row(problem.target());
        let law = draft_row(problem);
        vec![p[token].smaller(&law[token])]
    },
    nested: true,
    sampled_from: None,
    on_lists: true,
};

fn at_token(scheme: SchemeName) -> Result<TokenRule, &'static str> {
    if scheme == SchemeName::HUB {
        return Err("there are always two of these drafts");
    }
    Ok(if scheme == SchemeName::TOP {
        HEAVIEST
    } else {
        DRAWN
    })
}

/// [`Token`] in the table of verifiers.
pub const ENTRY: Entry = Entry {
    rule: RuleName::TOKEN,
    acceptance: "sum of min(p, q)",
    lossless: Lossless::OneDraft,
    build: |problem, _| Ok(Box::new(Token::new(problem)?)),
    // alpha* of one draft is the overlap of p with its law, and so is this rule's rate.
    on_row: |scheme| Some(RowRule::of(scheme.entry().on_row.as_ref()?.optimum)),
    at_token,
    attains: |_| true,
    compared_with: &[],
    by_default: false,
};
