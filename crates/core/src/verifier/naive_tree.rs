//! The first draft by rejection, the others by a look.

use super::residual::{Recursion, met, shortfall};
use super::rule::EXACT_FORMULA_BITS;
use super::token_rule::{of_problem, of_row};
use super::{
    Acceptance, ConditionalLaw, Entry, Lossless, RowRule, TokenRule, Verdict, Verifier,
    VerifierError, VerifierName, draft_of, draw, happens, looked_up, taken,
};
use crate::problem::Problem;
use crate::rule::RuleName;
use crate::scheme::SchemeName;
use rand::RngCore;
use specgap_number::distribution::{Draft, Rational};
use specgap_number::known::Known;
use specgap_number::number::Number;
use specgap_row::{CutRow, Question, Row, RowError, Rows, missed_by, missed_by_up_to};
use std::sync::OnceLock;

/// The first draft x is kept with `min(1, p(x)/q(x))`. If it is rejected, the output y is
/// drawn from `(p - q)+`, normalised, without looking; if y is among the other drafts, it is
/// accepted as one of them. So a tree is verified node by node with one residual.
///
/// Lossless for `with-replacement` drafts: the output is that of [`super::Token`] on the
/// first draft, whatever the others are.
///
/// # Acceptance
/// `sum of min(p, q) + sum of (p - q)+ (1 - (1-q)^(n-1))`, since the other drafts do not
/// depend on y; that is `1 - sum of (p - q)+ (1-q)^(n-1)`. Algorithmic and membership
/// acceptance are equal: a rejected x has p(x) < q(x), so y is not x, and every other hit is
/// accepted.
///
/// # Source
/// From the rule as stated here; one draft is Leviathan et al. 2023.
///
/// # Example
/// ```
/// use specgap_number::distribution::{Draft, Target};
/// use specgap_core::problem::Problem;
/// use specgap_core::scheme::WithReplacement;
/// use specgap_core::verifier::{NaiveTree, Verifier};
/// let scheme = WithReplacement::new(Draft::new(&[0.75, 0.25])?, 2);
/// let problem = Problem::new("coin", Target::new(&[0.5, 0.5])?, scheme)?;
/// // 3/4 by the first draft, and 1/4 times 1/4 by the second.
/// assert_eq!(NaiveTree::new(&problem)?.acceptance().membership.value(), 0.8125);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct NaiveTree {
    problem: Problem,
    draft: Draft,
    float: OnceLock<Recursion<f64>>,
    exact: OnceLock<Recursion<Rational>>,
}

impl NaiveTree {
    /// Makes one for `with-replacement` drafts.
    ///
    /// # Errors
    /// Any other scheme.
    pub fn new(problem: &Problem) -> Result<Self, VerifierError> {
        let law = SchemeName::WITH_REPLACEMENT;
        Ok(Self {
            draft: draft_of(problem, law, VerifierName::NAIVE_TREE)?,
            problem: problem.clone(),
            float: OnceLock::new(),
            exact: OnceLock::new(),
        })
    }

    fn first_step<M: Number>(&self) -> Recursion<M> {
        Recursion::new(M::row(self.problem.target()), &[M::row(&self.draft)])
    }

    fn float(&self) -> &Recursion<f64> {
        self.float.get_or_init(|| self.first_step())
    }

    fn exact(&self) -> &Recursion<Rational> {
        self.exact.get_or_init(|| self.first_step())
    }
}

fn conditional<M: Number>(step: &Recursion<M>, tuple: &[u32]) -> ConditionalLaw<M> {
    let kept = tuple.first().map(|&first| step.keeps(0, first));
    let rejected = kept.as_ref().map_or_else(M::one, M::complement);
    let mut law = met(&step.residual, tuple.get(1..).unwrap_or_default());
    for share in law.accepted.iter_mut().chain([&mut law.rejected]) {
        *share = rejected.times(share);
    }
    law.accepted.splice(..0, kept);
    law
}

/// Numbers of drafts that one pass over the rows answers for.
const TOGETHER: usize = 4;

fn enclosed(p: &[f64], q: &[f64], sums: [f64; 2], drafts: usize) -> Known {
    within(missed_by(p, q, sums, drafts.max(1) - 1), drafts)
}

fn within(missed: f64, drafts: usize) -> Known {
    // Entries are within 2 epsilon of p and q, and each factor rounds twice.
    let error = (2.0 * drafts as f64 + 8.0) * f64::EPSILON;
    Known::rate_within(1.0 - missed, error)
}

/// What is missed by 1, 2.. drafts of one row.
struct Missed([f64; TOGETHER]);

fn on_row(row: &mut Row<'_>, drafts: usize) -> Result<Known, RowError> {
    let (p_sum, q_sum) = row.totals();
    let rows = row.rows();
    if row.most_drafts() > TOGETHER {
        return Ok(enclosed(rows.target, rows.draft, [p_sum, q_sum], drafts));
    }
    let missed = |_: &mut Row<'_>, all: Rows<'_>| missed_by_up_to(all.target, all.draft);
    let found = row.kept(
        |_| true,
        |row| Missed(row.of_shares(missed)),
        |missed| missed.0.get(drafts.max(1) - 1).copied(),
    );
    Ok(within(found.unwrap_or(f64::NAN), drafts))
}

impl Verifier for NaiveTree {
    fn name(&self) -> VerifierName {
        VerifierName::NAIVE_TREE
    }

    fn conditional(&self, tuple: &[u32]) -> ConditionalLaw<f64> {
        conditional(self.float(), tuple)
    }

    fn conditional_exact(&self, tuple: &[u32]) -> Option<ConditionalLaw<Rational>> {
        Some(conditional(self.exact(), tuple))
    }

    fn sample(&self, tuple: &[u32], rng: &mut dyn RngCore) -> Verdict {
        let step = self.float();
        if let Some(&first) = tuple.first()
            && happens(step.keeps(0, first), rng)
        {
            return taken(tuple, 0);
        }
        let token = draw(&step.residual, rng);
        let others = looked_up(token, tuple.get(1..).unwrap_or_default());
        Verdict {
            accepted: others.accepted.map(|k| k + 1),
            ..others
        }
    }

    fn acceptance(&self) -> Acceptance {
        let (target, drafts) = (self.problem.target(), self.problem.drafts());
        let bits = target.exact_bits() as f64 + self.problem.scheme().exact_bits();
        if bits * (drafts * target.vocab()) as f64 <= EXACT_FORMULA_BITS {
            let (p, q) = (Rational::row(target), Rational::row(&self.draft));
            let mut missed = Rational::zero();
            for (short, q) in shortfall(&p, &q).into_iter().zip(&q) {
                let unseen = num_traits::Pow::pow(&q.complement(), drafts - 1);
                missed += short * unseen;
            }
            return Acceptance::same(Known::exact(missed.complement()));
        }
        let (p, q) = (target.probabilities(), self.draft.probabilities());
        Acceptance::same(enclosed(p, q, [1.0; 2], drafts))
    }

    fn handles_all_tokens(&self) -> bool {
        true
    }
}

/// Returns what each draft accepts of a token: min(p, q) the first, and of what that lacks the
/// share q (1-q)^(k-1) of having y as draft k and not before.
fn masses<M: Number>(p: &M, q: &M, drafts: usize) -> Vec<M> {
    let mut masses = vec![p.smaller(q)];
    let mut unseen = p.excess_over(q);
    for _ in 1..drafts {
        masses.push(unseen.times(q));
        unseen = unseen.times(&q.complement());
    }
    masses
}

const AT_TOKEN: TokenRule = TokenRule {
    on_row: |row, token, drafts, _| {
        let (p, q) = of_row(row, token);
        Ok(masses(&p, &q, drafts))
    },
    exact: |problem, token| {
        let (p, q) = of_problem(problem);
        masses(&p[token], &q[token], problem.drafts())
    },
    nested: true,
    sampled_from: None,
    on_lists: true,
};

const ON_ROW: Question = Question {
    full: on_row,
    // What is put out of a token rises with its p and its q, and is most of several tokens
    // if they are one.
    cut: |row, ask| row.rising_rule(ask.drafts, on_row, CutRow::drafted_iid(ask.drafts)),
};

/// [`NaiveTree`] in the table of verifiers.
pub const ENTRY: Entry = Entry {
    rule: RuleName::NAIVE_TREE,
    acceptance: "sum of min(p, q) + sum of (p-q)+ (1-(1-q)^(n-1))",
    lossless: Lossless::Under(&[SchemeName::WITH_REPLACEMENT]),
    build: |problem, _| Ok(Box::new(NaiveTree::new(problem)?)),
    on_row: |_| Some(RowRule::of(ON_ROW)),
    at_token: |_| Ok(AT_TOKEN),
    attains: |_| false,
    compared_with: &[VerifierName::RRS],
    by_default: true,
};
