//! Drawing from p without looking at the drafts.

use super::level::stratified;
use super::residual::met;
use super::rule::EXACT_FORMULA_BITS;
use super::token_rule::{OnRow, of_row};
use super::{
    Acceptance, ConditionalLaw, Entry, Lossless, RowRule, TokenRule, Verdict, Verifier,
    VerifierName, draw, looked_up,
};
use crate::coupling::distinct;
use crate::optimum::ScaledInstance;
use crate::problem::Problem;
use crate::rule::RuleName;
use crate::scheme::{Greedy, SchemeName, Stratified};
use num_bigint::BigUint;
use rand::RngCore;
use specgap_number::distribution::{Rational, Wide, compensated_sum, ratio};
use specgap_number::known::Known;
use specgap_number::number::Number;
use specgap_row::{Ranks, independent_hits};
use std::sync::{Arc, OnceLock};

/// Up to this many tuple entries, acceptance is summed over the law of sets.
const SUMMED_ENTRIES: f64 = 3.0e5;

/// Up to this many tuple entries, acceptance is summed over tuples in `f64` where there
/// is no formula.
const LISTED_ENTRIES: f64 = 3.0e7;

/// The naive verifier: draw y from p; if y is among the drafts, it is accepted.
///
/// Lossless for every scheme, and the floor that every better rule has to beat.
///
/// # Acceptance
/// `sum of p_i P(i in A(X))`, algorithmic and membership alike:
///
/// | scheme | P(i in A(X)) |
/// | --- | --- |
/// | `with-replacement` | `1 - (1 - q_i)^n` |
/// | `product` | `1 - prod(1 - q_k(i))` |
/// | `greedy`, `hub` | 1 for the top tokens, `q_i / (1 - q(top))` for the others |
/// | `distinct-conditioned` | `q_i e_(n-1)(q without i) / e_n(q)` |
/// | `without-replacement`, n = 2 | `q_i (1 + sum over j != i of q_j/(1-q_j))` |
/// | `stratified` | 1 for sure tokens, else the sum of its shares of strata |
/// | `stratified-independent` | 1 for sure tokens, else `1 - prod(1 - its share)` over strata |
/// | `without-replacement`, n >= 3 | `integral of q_i e^(-q_i t) P(fewer than n of the others rang by t) dt` |
///
/// That line is the exponential race (token i's clock has rate q_i): i is
/// among the first n if fewer than n others ring before it. The integral's error is
/// proven and counted; the derivation is in `crates/row/src/draft_rank.rs`.
///
/// # Example
/// ```
/// use specgap_number::distribution::{Draft, Target};
/// use specgap_core::problem::Problem;
/// use specgap_core::scheme::WithReplacement;
/// use specgap_core::verifier::{ExactMatch, Verifier};
/// let scheme = WithReplacement::new(Draft::new(&[0.5, 0.5])?, 2);
/// let problem = Problem::new("coin", Target::new(&[0.25, 0.75])?, scheme)?;
/// assert_eq!(ExactMatch::new(&problem).acceptance().membership.value(), 0.75);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ExactMatch {
    problem: Problem,
    /// p.
    float: OnceLock<Arc<[f64]>>,
    exact: OnceLock<Arc<[Rational]>>,
}

impl ExactMatch {
    /// Makes one for any problem.
    pub fn new(problem: &Problem) -> Self {
        Self {
            problem: problem.clone(),
            float: OnceLock::new(),
            exact: OnceLock::new(),
        }
    }

    fn float(&self) -> &Arc<[f64]> {
        let row = || f64::row(self.problem.target()).into();
        self.float.get_or_init(row)
    }

    fn exact(&self) -> &Arc<[Rational]> {
        let row = || Rational::row(self.problem.target()).into();
        self.exact.get_or_init(row)
    }

    /// Sum over sets of D(A) p(A), exactly.
    pub(super) fn summed(&self) -> Rational {
        let law = self.problem.scheme().exact_set_law();
        let target = self.problem.target().exact();
        let mut sum = BigUint::default();
        for (set, weight) in law.sets.iter().zip(&law.weights) {
            let masses = set.iter().map(|&token| &target.weights[token as usize]);
            sum += weight * masses.sum::<BigUint>();
        }
        ratio(&sum, &(&law.total * &target.total))
    }

    /// The formulas of the table, with an error bound.
    pub(super) fn formula(&self) -> (f64, f64, Option<String>) {
        let p = self.problem.target().probabilities();
        let scheme = self.problem.scheme();
        let n = self.problem.drafts();
        let rounding = (4.0 * n as f64 + 16.0) * f64::EPSILON;
        let by_tuples = || {
            if scheme.tuple_count() * n as f64 > LISTED_ENTRIES {
                let note = "no formula for these drafts, and too many tuples to sum";
                return (0.5, 1.0, Some(note.to_owned()));
            }
            let mut terms = Vec::new();
            scheme.for_each_tuple(&mut |tuple, mass| {
                terms.extend(distinct(tuple).iter().map(|&x| mass * p[x as usize]));
            });
            (compensated_sum(terms), rounding, None)
        };
        let Some(draft) = scheme.draft() else {
            if scheme.independent_draft(0).is_none() {
                return by_tuples();
            }
            let mut missed = vec![1.0; p.len()];
            for row in (0..n).filter_map(|k| scheme.independent_draft(k)) {
                for (miss, q) in missed.iter_mut().zip(row.probabilities()) {
                    *miss *= 1.0 - q;
                }
            }
            let hits = p.iter().zip(&missed).map(|(p, miss)| p * (1.0 - miss));
            return (compensated_sum(hits), rounding, None);
        };
        let q = draft.probabilities();
        let support = q.iter().filter(|&&q| q > 0.0).count();
        let name = scheme.name();
        let sequential = name == SchemeName::WITHOUT_REPLACEMENT;
        let conditioned = name == SchemeName::DISTINCT_CONDITIONED;
        if [SchemeName::GREEDY, SchemeName::HUB].contains(&name) {
            let star = Greedy::new(draft.clone(), n);
            let top = star.top().iter().map(|&token| p[token]);
            let rest = p.iter().zip(star.last()).map(|(p, last)| p * last);
            (compensated_sum(top.chain(rest)), rounding, None)
        } else if (sequential || conditioned) && support <= n {
            let covered = p.iter().zip(q).filter(|(_, q)| **q > 0.0).map(|(p, _)| *p);
            (compensated_sum(covered), rounding, None)
        } else if conditioned {
            // Sums and products of non-negative numbers only.
            (marked_symmetric(p, q, n), 8.0 * n as f64 * rounding, None)
        } else if sequential {
            let ranks = Ranks::new(p, q, [1.0; 2], n);
            (ranks.among(n), ranks.error, None)
        } else if name == SchemeName::WITH_REPLACEMENT {
            (independent_hits(p, q, 1.0, n), rounding, None)
        } else if let Some(law) = stratified(&self.problem) {
            (
                of_strata(p, &law, name == SchemeName::STRATIFIED),
                rounding,
                None,
            )
        } else {
            by_tuples()
        }
    }
}

/// The mass of p on tokens that are drafted. A token across a cut is drafted as often as its shares add up
/// to where it is drafted once, and else but where all of its strata miss it.
fn of_strata(p: &[f64], law: &Stratified, once: bool) -> f64 {
    let mut drafted = vec![0.0; p.len()];
    for piece in law.strata().strata().iter().flatten() {
        let here: &mut f64 = &mut drafted[piece.token];
        *here += match once {
            true => piece.share,
            false => piece.share * (1.0 - *here),
        };
    }
    for &token in law.certain() {
        drafted[token] = 1.0;
    }
    compensated_sum(p.iter().zip(&drafted).map(|(p, drafted)| p * drafted))
}

/// The sum of p_i q_i e_(n-1)(q without i), over e_n(q), in numbers of unbounded
/// range.
fn marked_symmetric(p: &[f64], q: &[f64], n: usize) -> f64 {
    let mut plain = vec![Wide::ZERO; n + 1];
    let mut marked = vec![Wide::ZERO; n + 1];
    plain[0] = Wide::from(1.0);
    for (&p, &q) in p.iter().zip(q).filter(|(_, q)| **q > 0.0) {
        let (p, q) = (Wide::from(p), Wide::from(q));
        for k in (1..=n).rev() {
            let hit = marked[k - 1].plus(p.times(plain[k - 1]));
            marked[k] = marked[k].plus(q.times(hit));
            plain[k] = plain[k].plus(q.times(plain[k - 1]));
        }
    }
    marked[n].over(plain[n])
}

impl Verifier for ExactMatch {
    fn name(&self) -> VerifierName {
        VerifierName::EXACT_MATCH
    }

    fn conditional(&self, tuple: &[u32]) -> ConditionalLaw<f64> {
        met(self.float(), tuple)
    }

    fn conditional_exact(&self, tuple: &[u32]) -> Option<ConditionalLaw<Rational>> {
        Some(met(self.exact(), tuple))
    }

    fn sample(&self, tuple: &[u32], rng: &mut dyn RngCore) -> Verdict {
        looked_up(draw(self.float(), rng), tuple)
    }

    fn handles_all_tokens(&self) -> bool {
        true
    }

    fn acceptance(&self) -> Acceptance {
        let scheme = self.problem.scheme();
        let entries = scheme.set_count() * self.problem.drafts().min(self.problem.vocab()) as f64;
        let bits = scheme.exact_bits() + self.problem.target().exact_bits() as f64;
        let small = entries <= SUMMED_ENTRIES && entries * bits <= 100.0 * EXACT_FORMULA_BITS;
        if small && ScaledInstance::exact_is_affordable(&self.problem) {
            return Acceptance::same(Known::exact(self.summed()));
        }
        let (value, error, note) = self.formula();
        Acceptance {
            note,
            ..Acceptance::same(Known::rate_within(value, error))
        }
    }

    fn depends_on_set_only(&self) -> bool {
        true
    }
}

/// p times the probability that y is draft k and no draft before it, from the definition.
fn masses_by_tuples(problem: &Problem, token: usize) -> Vec<Rational> {
    let p = problem.target().exact().probability(token);
    let mut masses = vec![Rational::zero(); problem.drafts()];
    problem.scheme().for_each_tuple_exact(&mut |tuple, mass| {
        let first = tuple.iter().position(|&draft| draft as usize == token);
        if let Some(rank) = first.and_then(|rank| masses.get_mut(rank)) {
            rank.gain(&mass.times(&p));
        }
    });
    masses
}

const fn first_seen(on_row: OnRow, nested: bool, on_lists: bool) -> TokenRule {
    TokenRule {
        on_row,
        exact: masses_by_tuples,
        nested,
        sampled_from: None,
        on_lists,
    }
}

/// q (1-q)^k.
const INDEPENDENT: TokenRule = first_seen(
    |row, token, drafts, _| {
        let (p, q) = of_row(row, token);
        let unseen = (0..drafts).scan(p, |unseen, _| {
            let now = *unseen * q;
            *unseen *= 1.0 - q;
            Some(now)
        });
        Ok(unseen.collect())
    },
    true,
    true,
);

/// In the order of sequential draws.
const SEQUENTIAL: TokenRule = first_seen(
    |row, token, drafts, _| {
        let (p, _) = of_row(row, token);
        let ranks = row.drawn_at(token, drafts);
        Ok(ranks.into_iter().map(|rank| p * rank).collect())
    },
    true,
    false,
);

/// The heaviest tokens for sure.
const HEAVIEST: TokenRule = first_seen(
    |row, token, drafts, _| {
        let (p, _) = of_row(row, token);
        let mut masses = vec![0.0; drafts];
        if let Some(rank) = row.heaviest(drafts).iter().position(|&top| top == token) {
            masses[rank] = p;
        }
        Ok(masses)
    },
    true,
    true,
);

/// The heaviest tokens for sure, and one draw from the others.
const FIXED_AND_DRAWN: TokenRule = first_seen(
    |row, token, drafts, _| {
        let (p, q) = of_row(row, token);
        let mut masses = vec![0.0; drafts];
        let fixed = drafts.max(1) - 1;
        match row.heaviest(fixed).iter().position(|&top| top == token) {
            Some(rank) => masses[rank] = p,
            None => {
                let rest = row.rest_of_draft(fixed);
                if let Some(mass) = masses.last_mut().filter(|_| rest > 0.0) {
                    *mass = p * (q / rest);
                }
            }
        }
        Ok(masses)
    },
    false,
    true,
);

/// (x, a) with q(x), or (a, x).
const HUB_AND_DRAWN: TokenRule = first_seen(
    |row, token, _, _| {
        let (p, q) = of_row(row, token);
        let hub = row.heaviest(1).first().copied().unwrap_or(0);
        let (top, rest) = (of_row(row, hub).1, row.rest_of_draft(1));
        Ok(if rest <= 0.0 {
            // The only tuple is (a).
            vec![if token == hub { p } else { 0.0 }, 0.0]
        } else if token == hub {
            vec![p * top, p * rest]
        } else {
            vec![p * q, p * top * (q / rest)]
        })
    },
    false,
    true,
);

fn at_token(scheme: SchemeName) -> Result<TokenRule, &'static str> {
    let known = [
        (SchemeName::WITH_REPLACEMENT, INDEPENDENT),
        (SchemeName::WITHOUT_REPLACEMENT, SEQUENTIAL),
        (SchemeName::TOP, HEAVIEST),
        (SchemeName::GREEDY, FIXED_AND_DRAWN),
        (SchemeName::HUB, HUB_AND_DRAWN),
    ];
    let found = known.into_iter().find(|(law, _)| *law == scheme);
    let none = "the law is one of sets, and says nothing of the order of its drafts";
    found.map(|(_, rule)| rule).ok_or(none)
}

/// [`ExactMatch`] in the table of verifiers.
pub const ENTRY: Entry = Entry {
    rule: RuleName::EXACT_MATCH,
    acceptance: "sum of p_i P(i in A(X)): the floor",
    lossless: Lossless::Always,
    build: |problem, _| Ok(Box::new(ExactMatch::new(problem))),
    on_row: |scheme| scheme.entry().on_row.as_ref()?.hits.map(RowRule::of),
    at_token,
    attains: |scheme| scheme == SchemeName::TOP,
    compared_with: &[],
    by_default: true,
};
