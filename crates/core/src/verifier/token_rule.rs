//! What a verifier gives the token of a text, child by child.

use crate::problem::Problem;
use specgap_number::distribution::Rational;
use specgap_number::number::Number;
use specgap_row::{Row, RowError};

/// How often a known output comes through each of n drafts: part of the table of verifiers.
///
/// # Formula
/// For a token y and the drafts k = 0, .., n-1 in the order in which they are drawn,
///
/// ```text
/// A(k | y; n) = P(the output is y, and draft k was accepted) / p(y).
/// ```
///
/// Their sum over k and over y ~ p is the algorithmic acceptance. Given a text that was drawn
/// from p, A(k | y; n) is the probability that the verifier goes down to child k, and what
/// happens at one position does not depend on what happened before: a tree of drafts is a
/// chain along the text (`docs/theory/tree-replay.md`).
///
/// A rule that looks whether a token is among the drafts, and not which draft it is, is taken
/// to go down to the first draft that is this token.
///
/// | rule | p(y) A(k \| y; n) |
/// | --- | --- |
/// | `token` | min(p, q) |
/// | `rrs` | min((p - L_k q)+, M_k q), M_k = M(L_k), L_(k+1) = L_k + M_k |
/// | `rrs-wo` | mean over rejected paths of min((p - L_k q)+, M_k q/(1 - s_k)) |
/// | `shared-gumbel` | p P(k clocks of rates (q_j p/q - p_j)+ have rung before one of rate 1) |
/// | `k-seq` | (1-b)^k min(p/rho, q) |
/// | `naive-tree` | min(p, q) for k = 0, else (p-q)+ q (1-q)^(k-1) |
/// | `level-4` | what turns of stratum k give out of y; of i.i.d. drafts an n-th of what all passes do |
/// | `greedy` | p if y is the k-th heaviest token of q, k < n-1; min(p, q_last) for k = n-1 |
/// | `spechub` | min(p, q), then min(p - that, q(a) q/(1-q(a))); the hub gets its share of both pairs |
/// | `exact-match` | p P(y is draft k and no draft before it) |
///
/// # Exactness
/// `f64` on rows, good to about 1e-12; in fractions on problems. Ranks from
/// [`TokenRule::sampled_from`] on are unbiased means over random draws on rows, and exact on
/// problems.
///
/// # Example
/// ```
/// use specgap_row::{Rows, Workspace};
/// use specgap_core::scheme::SchemeName;
/// use specgap_core::verifier::VerifierName;
/// let mut workspace = Workspace::new();
/// let rows = Rows { target: &[0.5, 0.5], draft: &[0.75, 0.25] };
/// let mut row = workspace.load(rows, 2)?;
/// let rule = VerifierName::RRS.at_token(SchemeName::WITH_REPLACEMENT).ok_or("no such rule")?;
/// // Token 1 was put out: 1/4 of 1/2 through the first draft, 1/16 of 1/2 through the second.
/// assert_eq!(rule.shares(&mut row, 1, 2, 0)?, [0.5, 0.125]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TokenRule {
    /// p(y) A(k | y; n) on a row, for all k < n: of the row, y, n, and the seed of what is
    /// random.
    pub(super) on_row: OnRow,
    /// The same of a problem with n drafts, in fractions.
    pub(super) exact: fn(&Problem, usize) -> Vec<Rational>,
    /// Whether A(k | y; n) is the same for all n > k, so that the most drafts answer for
    /// fewer.
    pub nested: bool,
    /// The first rank, from 0, that is a mean over random draws on rows.
    pub sampled_from: Option<usize>,
    /// Whether what the first k drafts give a token that both rows list is known from rows
    /// that list some tokens only: it lies between what they give it where p and q of the
    /// rest are in proportion, and where no token of the rest has both.
    pub on_lists: bool,
}

/// A row, y, n and a seed to p(y) A(k | y; n) for all k < n.
pub(super) type OnRow = fn(&mut Row<'_>, usize, usize, u64) -> Result<Vec<f64>, RowError>;

impl TokenRule {
    /// A(k | y; n) for k < n. In [0, 1], and their sum is at most 1, up to rounding; all 0
    /// for a token that p never gives.
    ///
    /// # Errors
    /// Those of the row.
    ///
    /// # Complexity
    /// O(n) after what the row keeps, with O(V) passes where the table's formulas have sums;
    /// `k-seq` looks for rho each time, and `rrs-wo` sorts the row once.
    pub fn shares(
        &self,
        row: &mut Row<'_>,
        token: usize,
        drafts: usize,
        seed: u64,
    ) -> Result<Vec<f64>, RowError> {
        let (p, _) = of_row(row, token);
        let mut masses = (self.on_row)(row, token, drafts, seed)?;
        for mass in &mut masses {
            *mass = if p > 0.0 {
                (*mass / p).clamp(0.0, 1.0)
            } else {
                0.0
            };
        }
        Ok(masses)
    }

    /// The same of a problem that the rule is lossless for, in fractions. Meant for small
    /// vocabularies.
    pub fn exact_shares(&self, problem: &Problem, token: usize) -> Vec<Rational> {
        let p = problem.target().exact().probability(token);
        let masses = (self.exact)(problem, token);
        let share = |mass: &Rational| {
            if p.is_nil() {
                Rational::zero()
            } else {
                mass.over(&p)
            }
        };
        masses.iter().map(share).collect()
    }
}

/// p and q of a token, the rows' entries being divided by their sums.
pub(super) fn of_row(row: &Row<'_>, token: usize) -> (f64, f64) {
    let (rows, (p_sum, q_sum)) = (row.rows(), row.totals());
    let at = |row: &[f64], sum: f64| row.get(token).map_or(0.0, |mass| mass / sum);
    (at(rows.target, p_sum), at(rows.draft, q_sum))
}

/// p and q of a problem whose drafts come from one q.
pub(super) fn of_problem(problem: &Problem) -> (Vec<Rational>, Vec<Rational>) {
    let target = Rational::row(problem.target());
    let draft = match problem.scheme().draft() {
        Some(draft) => Rational::row(draft),
        None => vec![Rational::zero(); target.len()],
    };
    (target, draft)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheme::{MadeOf, SchemeName};
    use crate::verifier::{VerifierName, output_law_exact, verifier};
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use specgap_number::distribution::{Draft, Target};
    use specgap_row::{Rows, Workspace};
    use std::collections::{BTreeMap, BTreeSet};

    /// P(the output is y, and draft k was accepted) for each k and y, from the rule's law
    /// given each tuple of drafts.
    fn by_tuples(name: VerifierName, problem: &Problem) -> Vec<Vec<Rational>> {
        let rule = verifier(name, problem).unwrap();
        let mut masses = vec![vec![Rational::zero(); problem.vocab()]; problem.drafts()];
        problem.scheme().for_each_tuple_exact(&mut |tuple, mass| {
            let law = rule.conditional_exact(tuple).unwrap();
            for (rank, (&token, accepted)) in tuple.iter().zip(&law.accepted).enumerate() {
                if name == VerifierName::EXACT_MATCH && tuple[..rank].contains(&token) {
                    assert!(
                        accepted.is_nil(),
                        "a draft twice goes through its first place"
                    );
                }
                masses[rank][token as usize].gain(&mass.times(accepted));
            }
        });
        masses
    }

    /// Every law and rule at small V: what it gives each child is what enumeration gives,
    /// exactly; it sums to the algorithmic acceptance; rows give it to 1e-12; and fewer drafts are
    /// the first of more, where a rule says so.
    #[test]
    fn every_rule_gives_each_child_what_enumeration_gives() {
        let mut random = ChaCha8Rng::seed_from_u64(41);
        let mut pairs = BTreeSet::new();
        for round in 0..24 {
            let vocab = 3 + round % 3;
            let mut weights = |zeros: u32| -> Vec<Rational> {
                loop {
                    let row: Vec<u32> = (0..vocab)
                        .map(|_| match random.random_range(0..6) {
                            0 => zeros * random.random_range(0..2),
                            1 => random.random_range(40..200),
                            _ => random.random_range(1..20),
                        })
                        .collect();
                    let sum: u32 = row.iter().sum();
                    if sum > 0 {
                        let parts = row.iter().map(|&x| Rational::new(x.into(), sum.into()));
                        return parts.collect();
                    }
                }
            };
            let zeros = u32::from(round % 4 == 0);
            let (p, q) = (weights(zeros), weights(zeros));
            let target = Target::from_rationals(p).unwrap();
            let draft = Draft::from_rationals(q).unwrap();
            let mut workspace = Workspace::new();
            let rows = Rows::new(target.probabilities(), draft.probabilities());
            for scheme in SchemeName::ALL {
                let MadeOf::OneDraft(law) = scheme.entry().made_of else {
                    continue;
                };
                let mut of_fewer = BTreeMap::new();
                for drafts in (1..=3).filter(|&n| scheme.fits(n)) {
                    let law = law(draft.clone(), drafts);
                    let problem = Problem::from_law("tree", target.clone(), law).unwrap();
                    for name in VerifierName::ALL {
                        let Some(rule) = name.at_token(scheme) else {
                            continue;
                        };
                        if !name.is_lossless(scheme, drafts) {
                            continue;
                        }
                        pairs.insert((scheme, name));
                        let what = format!("{scheme} {name} n = {drafts} round {round}");
                        let masses = by_tuples(name, &problem);
                        let mut sum = Rational::zero();
                        let mut row = workspace.load(rows, 3).unwrap();
                        for token in 0..vocab {
                            let p = problem.target().exact().probability(token);
                            let shares = rule.exact_shares(&problem, token);
                            assert_eq!(shares.len(), drafts, "{what}");
                            let fewer = of_fewer.insert((name, token), shares.clone());
                            if let Some(fewer) = fewer.filter(|_| rule.nested) {
                                assert_eq!(fewer, shares[..fewer.len()], "{what}");
                            }
                            let found = rule.shares(&mut row, token, drafts, 7).unwrap();
                            for (rank, masses) in masses.iter().enumerate() {
                                let mass = &p * &shares[rank];
                                assert_eq!(mass, masses[token], "{what} y = {token}");
                                sum.gain(&mass);
                                if rule.sampled_from.is_none_or(|from| rank < from) {
                                    let off = found[rank] - shares[rank].to_f64();
                                    assert!(off.abs() < 1e-12, "{what} y = {token}: {off}");
                                }
                            }
                        }
                        let rule = verifier(name, &problem).unwrap();
                        let law = output_law_exact(rule.as_ref(), problem.scheme()).unwrap();
                        assert_eq!(sum, law.algorithmic, "{what}");
                    }
                }
            }
        }
        assert_eq!(pairs.len(), 22, "{pairs:?}");
    }

    /// The third draft of `rrs-wo` is a mean over 64 paths a seed: over 4,000 seeds it is
    /// within 5 standard errors of the exact value (false-positive rate 6e-7 a token), and
    /// the error is small enough to tell.
    #[test]
    fn sampled_ranks_are_unbiased() {
        let (p, q) = ([0.55, 0.25, 0.05, 0.05, 0.1], [0.1, 0.1, 0.35, 0.3, 0.15]);
        let target = Target::new(&p).unwrap();
        let draft = Draft::new(&q).unwrap();
        let scheme = crate::scheme::WithoutReplacement::new(draft, 4);
        let problem = Problem::new("paths", target, scheme).unwrap();
        let rule = VerifierName::RRS_WO
            .at_token(SchemeName::WITHOUT_REPLACEMENT)
            .unwrap();
        let mut workspace = Workspace::new();
        let rows = Rows::new(&p, &q);
        let mut row = workspace.load(rows, 4).unwrap();
        for token in 0..2 {
            let exact = rule.exact_shares(&problem, token);
            for (rank, exact) in exact.iter().enumerate().skip(2) {
                let runs = 4_000;
                let (mut sum, mut squares) = (0.0, 0.0);
                for seed in 0..runs {
                    let value = rule.shares(&mut row, token, 4, seed).unwrap()[rank];
                    sum += value;
                    squares += value * value;
                }
                let runs = runs as f64;
                let mean = sum / runs;
                let error = ((squares / runs - mean * mean).max(0.0) / runs).sqrt() + 1e-12;
                let off = mean - exact.to_f64();
                assert!(off.abs() < 5.0 * error, "{token} {rank}: {off} of {error}");
                assert!(error < 1e-3, "{token} {rank}: {error}");
            }
        }
        assert!(rule.exact_shares(&problem, 0)[2].to_f64() > 1e-3);
    }
}
