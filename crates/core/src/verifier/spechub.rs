//! SpecHub's verification.

use super::residual::keep;
use super::rule::in_both;
use super::token_rule::{of_problem, of_row};
use super::{
    Acceptance, ConditionalLaw, Entry, Lossless, RowRate, RowRule, TokenRule, Verifier,
    VerifierError, VerifierName, draft_of,
};
use crate::problem::Problem;
use crate::rule::RuleName;
use crate::scheme::{Greedy, Hub, SchemeName};
use specgap_number::distribution::{Draft, Rational, compensated_sum};
use specgap_number::known::Known;
use specgap_number::number::{Number, RunningSum, normalised};
use std::sync::{Arc, OnceLock};

/// SpecHub's rule (n = 2), a plan on pairs that all hold the hub a:
///
/// 1. the pair (x, a) gives `min(p(x), q(x))` to x;
/// 2. the pair (a, x), of probability `d(x) = q(a) q(x)/(1-q(a))`, gives x
///    `min(p(x) - that, d(x))`;
/// 3. of what is left in any pair, the same share `p(a)/left` goes to a;
/// 4. the rest is rejected and drawn from what p still lacks.
///
/// Lossless for `hub` drafts. The share is at most 1: all pairs together leave at
/// least `1 - sum over x != a of p(x) = p(a)`, so the hub is always accepted as
/// often as p asks.
///
/// # Acceptance
/// `p(a) + sum over x != a of min(p(x), q(x)/(1-q(a)))`, which is alpha* of the
/// scheme. Algorithmic and membership acceptance are equal: a pair with x is
/// rejected in step 4 only if p(x) was filled, and a is always filled, so the
/// residual is zero on both of its tokens.
///
/// # Source
/// SpecHub, sec. 4 and App. B.1.
///
/// # Example
/// ```
/// use specgap_number::distribution::{Draft, Target};
/// use specgap_core::problem::Problem;
/// use specgap_core::scheme::Hub;
/// use specgap_core::verifier::{SpecHub, Verifier};
/// let scheme = Hub::new(Draft::new(&[0.5, 0.25, 0.25])?);
/// let problem = Problem::new("hub", Target::new(&[0.25, 0.125, 0.625])?, scheme)?;
/// // 1/4 for the hub, 1/8 and 1/2 for the others.
/// assert_eq!(SpecHub::new(&problem)?.acceptance().membership.value(), 0.875);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SpecHub {
    problem: Problem,
    hub: u32,
    draft: Draft,
    float: Rule<f64>,
    exact: OnceLock<Rule<Rational>>,
}

#[derive(Debug)]
struct Rule<M> {
    hub: u32,
    /// Probability that x is kept from (x, a).
    first: Vec<M>,
    /// Probability that x is kept from (a, x).
    second: Vec<M>,
    /// Share of what is left that goes to the hub.
    share: M,
    residual: Arc<[M]>,
    left: M,
}

/// `second_mass[x]` is the probability of the pair (a, x).
fn rule<M: Number>(target: &[M], draft: &[M], second_mass: &[M], hub: u32) -> Rule<M> {
    let a = hub as usize;
    let vocab = target.len();
    let (mut first, mut second) = (vec![M::zero(); vocab], vec![M::zero(); vocab]);
    let mut lacking = vec![M::zero(); vocab];
    let mut unused = M::Sum::default();
    let mut pairs = false;
    for token in (0..vocab).filter(|&token| token != a) {
        let after_first = target[token].excess_over(&draft[token]);
        first[token] = keep(&target[token], &draft[token]);
        second[token] = keep(&after_first, &second_mass[token]);
        lacking[token] = after_first.excess_over(&second_mass[token]);
        unused.add(&draft[token].excess_over(&target[token]));
        unused.add(&second_mass[token].excess_over(&after_first));
        pairs |= !draft[token].is_nil();
    }
    // Without pairs the only tuple is (a).
    let unused = if pairs { unused.value() } else { M::one() };
    let left = M::total(&lacking);
    let share = if left.is_nil() && !target[a].is_nil() {
        // All of p but the hub's is filled (up to rounding): the hub takes what
        // is left.
        M::one()
    } else {
        keep(&target[a], &unused)
    };
    let residual = normalised(&lacking).unwrap_or_else(|| target.to_vec());
    Rule {
        hub,
        first,
        second,
        share,
        residual: residual.into(),
        left,
    }
}

impl<M: Number> Rule<M> {
    fn conditional(&self, tuple: &[u32]) -> ConditionalLaw<M> {
        let mut accepted = vec![M::zero(); tuple.len()];
        let hub_at = tuple.iter().position(|&token| token == self.hub);
        let other_at = tuple.iter().position(|&token| token != self.hub);
        let kept = match (hub_at, other_at) {
            (_, Some(0)) => self.first[tuple[0] as usize].clone(),
            (_, Some(position)) => self.second[tuple[position] as usize].clone(),
            _ => M::zero(),
        };
        let mut left = kept.complement();
        if let Some(position) = other_at {
            accepted[position] = kept;
        }
        if let Some(position) = hub_at {
            accepted[position] = left.times(&self.share);
            left = left.times(&self.share.complement());
        }
        ConditionalLaw {
            accepted,
            rejected: left,
            residual: self.residual.clone(),
        }
    }
}

impl SpecHub {
    /// Makes one for `hub` drafts. O(V).
    ///
    /// # Errors
    /// Any other scheme.
    pub fn new(problem: &Problem) -> Result<Self, VerifierError> {
        let draft = draft_of(problem, SchemeName::HUB, VerifierName::SPECHUB)?;
        let hub = Hub::new(draft.clone()).hub();
        let star = Greedy::new(draft.clone(), 2);
        let row = draft.probabilities();
        let second: Vec<f64> = star.last().iter().map(|last| row[hub] * last).collect();
        let hub = specgap_number::distribution::token_id(hub);
        Ok(Self {
            problem: problem.clone(),
            float: rule(problem.target().probabilities(), row, &second, hub),
            hub,
            draft,
            exact: OnceLock::new(),
        })
    }

    /// The rate in `f64`.
    pub(super) fn enclosed(&self) -> Known {
        let target = self.problem.target().probabilities();
        let star = Greedy::new(self.draft.clone(), 2);
        let others = target.iter().zip(star.last()).map(|(&p, &q)| p.min(q));
        // star.last() is 0 at the hub.
        let rate = target[self.hub as usize] + compensated_sum(others);
        Known::rate_within(rate, 8.0 * f64::EPSILON)
    }

    fn exact(&self) -> &Rule<Rational> {
        self.exact.get_or_init(|| {
            let (p, q) = of_problem(&self.problem);
            let top = &q[self.hub as usize];
            let rest = top.complement();
            let mut second = vec![Rational::zero(); q.len()];
            if !rest.is_nil() {
                second = q.iter().map(|q| top.times(&q.over(&rest))).collect();
            }
            rule(&p, &q, &second, self.hub)
        })
    }
}

impl Verifier for SpecHub {
    in_both!(self, VerifierName::SPECHUB, self.float, self.exact());

    fn handles_all_tokens(&self) -> bool {
        true
    }

    fn acceptance(&self) -> Acceptance {
        let bits = self.problem.target().exact_bits() as f64 + self.draft.exact_bits() as f64;
        let work = bits * self.problem.vocab() as f64;
        // All that is not accepted is what p lacks.
        Acceptance::but(work, || &self.exact().left, || self.enclosed())
    }
}

/// Returns what each draft accepts of a token, of q without the hub `rest` and p and q by token.
///
/// Of the hub it is its share of what is left in the pairs (a, x), where it is first, and (x, a),
/// where it is second. Of another token it is min(p, q) from (x, a), then min of the rest and d
/// from (a, x).
fn masses<M: Number>(
    token: usize,
    hub: usize,
    rest: &M,
    vocab: usize,
    at: impl Fn(usize) -> (M, M),
) -> Vec<M> {
    let (of_hub, top) = at(hub);
    // d, the probability of the pair (a, x).
    let pair = |q: &M| match rest.is_nil() {
        true => M::zero(),
        false => top.times(&q.over(rest)),
    };
    if token != hub {
        let (p, q) = at(token);
        return vec![p.smaller(&q), p.excess_over(&q).smaller(&pair(&q))];
    }
    let (mut first, mut second) = (M::Sum::default(), M::Sum::default());
    let mut pairs = false;
    for (p, q) in (0..vocab).filter(|&x| x != hub).map(at) {
        second.add(&q.excess_over(&p));
        first.add(&pair(&q).excess_over(&p.excess_over(&q)));
        pairs |= !q.is_nil();
    }
    // Without pairs the only tuple is (a).
    let [first, second] = match pairs {
        true => [first.value(), second.value()],
        false => [M::one(), M::zero()],
    };
    let share = keep(&of_hub, &first.plus(&second));
    vec![share.times(&first), share.times(&second)]
}

const AT_TOKEN: TokenRule = TokenRule {
    on_row: |row, token, _, _| {
        let hub = row.heaviest(1).first().copied().unwrap_or(0);
        let (rest, vocab) = (row.rest_of_draft(1), row.rows().draft.len());
        Ok(masses(token, hub, &rest, vocab, |x| of_row(row, x)))
    },
    exact: |problem, token| {
        let (p, q) = of_problem(problem);
        let Ok(rule) = SpecHub::new(problem) else {
            return vec![Rational::zero(); 2];
        };
        let hub = rule.hub as usize;
        masses(token, hub, &q[hub].complement(), p.len(), |x| {
            (p[x].clone(), q[x].clone())
        })
    },
    nested: false,
    sampled_from: None,
    on_lists: false,
};

/// [`SpecHub`] in the table of verifiers.
pub const ENTRY: Entry = Entry {
    rule: RuleName::SPECHUB,
    acceptance: "p(a) + sum of min(p, q/(1-q(a))): alpha* of its law",
    lossless: Lossless::Under(&[SchemeName::HUB]),
    build: |problem, _| Ok(Box::new(SpecHub::new(problem)?)),
    on_row: |_| {
        Some(RowRule::always(RowRate::Answer(|row, _| {
            Ok(row.accepted_with_fixed(1))
        })))
    },
    at_token: |_| Ok(AT_TOKEN),
    attains: |scheme| scheme == SchemeName::HUB,
    compared_with: &[VerifierName::RRS, VerifierName::RRS_WO],
    by_default: true,
};
