//! One of several drafts is selected, then verified as if it were the only one.

use super::level::iid_on_row;
use super::residual::Recursion;
use super::rule::EXACT_FORMULA_BITS;
use super::{
    Acceptance, ConditionalLaw, Entry, Lossless, Optimal, Verifier, VerifierError, VerifierName,
    draft_of,
};
use crate::optimum::flow;
use crate::problem::Problem;
use crate::rule::RuleName;
use crate::scheme::{SchemeName, WithReplacement};
use specgap_number::distribution::{Rational, Target};
use specgap_number::known::Known;
use specgap_number::number::Number;
use specgap_plan::even_selection;
use std::sync::OnceLock;

/// Selects one of n i.i.d. drafts, of law s, and keeps it with min(1, p/s); else the output is drawn
/// from (p - s)+. Weights of the selection are a plan that hands all of every set of drafts to its
/// tokens, for the s that is as even against p as any can be ([`even_selection`]).
///
/// Lossless as [`Token`](super::Token) is, whatever s.
///
/// # Acceptance
/// sum of min(p, s), which is alpha* (`docs/theory/paths.md`, Theorem 4 at c = 1). So membership
/// acceptance, which is never above alpha*, is the same.
///
/// # Source
/// Khisti et al., "Multi-Draft Speculative Sampling" (arXiv 2410.18234): an importance-weighted
/// selection, then a rule of one draft, loses nothing. Their weights are a linear program; s is
/// ours.
///
/// # Example
/// ```
/// use specgap_number::distribution::{Draft, Target, format_rational};
/// use specgap_core::problem::Problem;
/// use specgap_core::scheme::WithReplacement;
/// use specgap_core::verifier::{Importance, Verifier};
/// let scheme = WithReplacement::new(Draft::new(&[0.75, 0.25])?, 2);
/// let problem = Problem::new("coin", Target::new(&[0.5, 0.5])?, scheme)?;
/// // Of the pair {0, 1} token 1 is selected: s = (9/16, 7/16).
/// let rule = Importance::new(&problem)?;
/// assert_eq!(rule.acceptance().membership.value(), 0.9375);
/// let law = rule.conditional_exact(&[0, 0]).ok_or("no fractions")?;
/// assert_eq!(format_rational(&law.rejected), "1/9");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Importance {
    drafts: usize,
    target: Target,
    /// A plan for s in place of p, which therefore takes a draft for certain.
    selection: Optimal,
    selected: Target,
    /// Whether s is that of p and q in fractions.
    is_exact: bool,
    float: OnceLock<Recursion<f64>>,
    exact: OnceLock<Recursion<Rational>>,
}

impl Importance {
    /// Solves the flow of the selection; s is in fractions where these are short.
    ///
    /// # Errors
    /// Drafts that are not `with-replacement`, or more than [`flow::LARGEST_PLAN`] (set, token)
    /// pairs.
    pub fn new(problem: &Problem) -> Result<Self, VerifierError> {
        let verifier = VerifierName::IMPORTANCE;
        let draft = draft_of(problem, SchemeName::WITH_REPLACEMENT, verifier)?;
        let (target, drafts) = (problem.target(), problem.drafts());
        let entries = flow::plan_size(problem);
        let too_large = VerifierError::Size(verifier, entries, flow::LARGEST_PLAN);
        let bits = target.exact_bits() as f64 + draft.exact_bits() as f64;
        let is_exact = bits * (drafts * target.vocab()).pow(2) as f64 <= EXACT_FORMULA_BITS;
        let selected = if is_exact {
            let (p, q) = (Rational::row(target), Rational::row(&draft));
            Target::from_rationals(even_selection(&p, &q, drafts))
        } else {
            let (p, q) = (target.probabilities(), draft.probabilities());
            Target::new(&even_selection(p, q, drafts))
        };
        let scheme = WithReplacement::new(draft, drafts);
        let position = selected.ok().and_then(|s| Problem::new("", s, scheme).ok());
        let position = position.filter(|_| entries <= flow::LARGEST_PLAN);
        let position = position.ok_or(too_large)?;
        Ok(Self {
            drafts,
            target: target.clone(),
            selection: Optimal::new(&position)?,
            selected: position.target().clone(),
            is_exact,
            float: OnceLock::new(),
            exact: OnceLock::new(),
        })
    }

    /// The rule of one draft of law s.
    fn step<M: Number>(&self) -> Recursion<M> {
        Recursion::new(M::row(&self.target), &[M::row(&self.selected)])
    }

    fn exact(&self) -> &Recursion<Rational> {
        self.exact.get_or_init(|| self.step())
    }

    fn float(&self) -> &Recursion<f64> {
        self.float.get_or_init(|| self.step())
    }
}

fn conditional<M: Number>(
    step: &Recursion<M>,
    mut law: ConditionalLaw<M>,
    tuple: &[u32],
) -> ConditionalLaw<M> {
    for (mass, &token) in law.accepted.iter_mut().zip(tuple) {
        let kept = mass.times(&step.keeps(0, token));
        law.rejected.gain(&mass.minus(&kept));
        *mass = kept;
    }
    law.residual = step.residual.clone();
    law
}

impl Verifier for Importance {
    fn name(&self) -> VerifierName {
        VerifierName::IMPORTANCE
    }

    fn conditional(&self, tuple: &[u32]) -> ConditionalLaw<f64> {
        conditional(self.float(), self.selection.conditional(tuple), tuple)
    }

    fn conditional_exact(&self, tuple: &[u32]) -> Option<ConditionalLaw<Rational>> {
        let selection = self.selection.conditional_exact(tuple);
        let selection = selection.filter(|_| self.is_exact)?;
        Some(conditional(self.exact(), selection, tuple))
    }

    fn acceptance(&self) -> Acceptance {
        if self.is_exact {
            return Acceptance::same(Known::exact(self.exact().left.complement()));
        }
        // s is off by a rounding a draft and a product, and what is left of p by as much.
        let error = (4.0 * self.drafts as f64 + 16.0) * f64::EPSILON;
        Acceptance::same(Known::rate_within(1.0 - self.float().left, error))
    }

    fn depends_on_set_only(&self) -> bool {
        true
    }
}

/// [`Importance`] in the table of verifiers.
pub const ENTRY: Entry = Entry {
    rule: RuleName::IMPORTANCE,
    acceptance: "sum of min(p, s), s the law of the selected draft: alpha*",
    lossless: Lossless::Under(&[SchemeName::WITH_REPLACEMENT]),
    build: |problem, _| Ok(Box::new(Importance::new(problem)?)),
    on_row: iid_on_row,
    at_token: |_| Err("its plan says which token is selected, and not through which draft"),
    attains: |_| true,
    compared_with: &[],
    // It is as much as level accepts.
    by_default: false,
};
