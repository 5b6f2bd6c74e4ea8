//! Recursive rejection sampling of sequential drafts without replacement.

#[cfg(test)]
mod tests;

use super::residual::{keep, shortfall};
use super::token_rule::of_problem;
use super::{
    Acceptance, ConditionalLaw, Entry, Lossless, RowRate, RowRule, RrsWoSettings, TokenRule,
    Verdict, Verifier, VerifierError, VerifierName, draft_of, happens, refused, sequential, taken,
};
use crate::problem::Problem;
use crate::rule::RuleName;
use crate::scheme::SchemeName;
use rand::RngCore;
use specgap_number::distribution::{Draft, LEAST_PROPORTION, Proportions, Rational};
use specgap_number::known::Known;
use specgap_number::number::{Number, normalised};
use specgap_row::{Rejections, Row, RowError};
use std::sync::OnceLock;

/// Recursive rejection sampling without replacement: with p_1 = p and q_1 = q,
/// keep draft k with probability `min(1, p_k(x)/q_k(x))`, else go on with
/// p_(k+1) proportional to `(p_k - q_k)+` and with q_(k+1), which is q_k without x,
/// renormalised. After the last draft, draw from `p_(n+1)`.
///
/// Lossless for `without-replacement` drafts, where q_k is the law of draft k
/// given the drafts before it. If the support of q has fewer than n tokens, the
/// tuple is the whole support in some order, and the rule ends with its last
/// token.
///
/// # Acceptance
/// A rejected token's residual is 0 from then on, so that the state after some
/// rejections is two scalars, L of the residual `(p - L q)+` and what is left of q. The
/// recursion in them is derived in `crates/row/src/rejections/mod.rs`.
///
/// - n = 1: sum of min(p, q). n = 2: one sum over the oversampled tokens, O(V log V).
///   Both are exact up to rounding (1e-12 is allowed for it).
/// - n >= 3: a sum over rejected paths. Tokens of nearly equal q lead to nearly
///   equal states, so paths are summed over groups of tokens, with bounds on L
///   and s that hold for the whole group; groups are split until each path
///   contributes less than a share of the requested width (default 1e-6). The
///   bounds are rigorous up to that rounding allowance.
/// - Where the work limit does not permit that (n >= 5 at large V), Monte Carlo
///   over rejected paths with an empirical Bernstein interval.
///
/// On rows of logs there is a faster way, with an error that is estimated:
/// [`Row::accepted_in_turn_fast`].
///
/// Algorithmic and membership acceptance are equal, since the residual is zero on
/// every rejected draft.
///
/// # Source
/// The rule: Yang et al. 2024 (multi-candidate), Jeon et al. 2024 (RSD), Sequoia;
/// Hu et al., App. A.1. The recursion in (L, s) and the enclosure are specgap's.
///
/// # Example
/// ```
/// use specgap_number::distribution::{Draft, Target};
/// use specgap_core::problem::Problem;
/// use specgap_core::scheme::WithoutReplacement;
/// use specgap_core::verifier::{RrsWo, Verifier};
/// let scheme = WithoutReplacement::new(Draft::new(&[0.5, 0.25, 0.25])?, 2);
/// let problem = Problem::new("triple", Target::new(&[0.25, 0.25, 0.5])?, scheme)?;
/// let rule = RrsWo::new(&problem)?;
/// // Token 0 is rejected with 1/2; then q is (0, 1/2, 1/2) and p is (0, 0, 1).
/// assert_eq!(rule.conditional(&[0, 1]).accepted, [0.5, 0.0]);
/// // 3/4 at the first draft, half of the rest at the second.
/// assert!((rule.acceptance().membership.value() - 0.875).abs() < 1e-12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct RrsWo {
    problem: Problem,
    draft: Draft,
    proportions: Proportions,
    exact: OnceLock<(Vec<Rational>, Vec<Rational>)>,
    rejections: OnceLock<Rejections>,
    settings: RrsWoSettings,
}

/// Returns what the rate may cost at one position of a log, in a mean over many: each further digit
/// of the enclosure takes several times as long, and so does each further draft; above four drafts
/// the rate is a mean over rejected paths.
fn budget_of_a_row(drafts: usize, seed: u64) -> RrsWoSettings {
    let plain = RrsWoSettings::default();
    let (width, work_limit) = match drafts {
        ..=3 => (1e-5, plain.work_limit),
        4 => (5e-4, plain.work_limit),
        _ => (plain.width, 0),
    };
    RrsWoSettings {
        width,
        work_limit,
        samples: 5_000,
        seed,
        ..plain
    }
}

fn on_row(row: &mut Row<'_>, drafts: usize, seed: u64) -> Result<Known, RowError> {
    Ok(row.accepted_in_turn(drafts, &budget_of_a_row(drafts, seed)))
}

fn on_row_fast(row: &mut Row<'_>, drafts: usize, seed: u64) -> Result<Known, RowError> {
    Ok(row.accepted_in_turn_fast(drafts, &budget_of_a_row(drafts, seed)))
}

/// One pass of the rule over a tuple, from its definition: the residual and the
/// draft law are carried as whole rows.
fn walk<M: Number>(target: &[M], draft: &[M], tuple: &[u32]) -> ConditionalLaw<M> {
    let mut wanted = target.to_vec();
    let mut mass = M::total(&wanted);
    let mut left = draft.to_vec();
    let mut kept = Vec::with_capacity(tuple.len());
    for &token in tuple {
        let token = token as usize;
        let rest = M::total(&left);
        if rest.is_nil() {
            kept.push(M::zero());
            continue;
        }
        // 1 over what is left may overflow; q over what is left does not.
        let offered: Vec<M> = if !M::EXACT && rest.to_f64() < LEAST_PROPORTION {
            left.iter().map(|q| mass.times(&q.over(&rest))).collect()
        } else {
            let scale = mass.over(&rest);
            left.iter().map(|q| scale.times(q)).collect()
        };
        kept.push(keep(&wanted[token], &offered[token]));
        let next = shortfall(&wanted, &offered);
        let next_mass = M::total(&next);
        left[token] = M::zero();
        // If nothing is rejected here (up to rounding), keep this step's law.
        if !next_mass.is_nil() {
            wanted = next;
            mass = next_mass;
        }
    }
    let residual = normalised(&wanted).unwrap_or(wanted).into();
    sequential(kept, residual)
}

impl RrsWo {
    /// Makes one for `without-replacement` drafts, with the default budget for its
    /// acceptance rate.
    ///
    /// # Errors
    /// Any other scheme.
    pub fn new(problem: &Problem) -> Result<Self, VerifierError> {
        Self::with_settings(problem, RrsWoSettings::default())
    }

    /// The same with a budget of one's own.
    ///
    /// # Errors
    /// Any other scheme.
    pub fn with_settings(
        problem: &Problem,
        settings: RrsWoSettings,
    ) -> Result<Self, VerifierError> {
        let law = SchemeName::WITHOUT_REPLACEMENT;
        let draft = draft_of(problem, law, VerifierName::RRS_WO)?;
        Ok(Self {
            proportions: Proportions::of(&draft),
            draft,
            problem: problem.clone(),
            exact: OnceLock::new(),
            rejections: OnceLock::new(),
            settings,
        })
    }

    fn rejections(&self) -> &Rejections {
        self.rejections.get_or_init(|| {
            let row = self.problem.target().probabilities();
            let rejections = Rejections::new(row, self.draft.probabilities());
            rejections.with_support(&self.draft.support())
        })
    }

    /// The acceptance rate within a budget: enclosed if the enclosure gets
    /// narrow enough, else by Monte Carlo. Where almost nothing of q is left after
    /// a few draws, by summing the law over all tuples if they are few, else
    /// enclosed by what fewer drafts accept.
    pub fn acceptance_within(&self, settings: &RrsWoSettings) -> Acceptance {
        let proportions = &self.proportions;
        let proportions = (proportions.is_faithful()).then(|| proportions.row(&self.draft));
        let drafts = self.problem.drafts();
        let rejections = self.rejections();
        let found = rejections.acceptance(drafts, settings, proportions);
        Acceptance {
            note: found.note.map(str::to_owned),
            ..Acceptance::same(found.rate)
        }
    }

    /// Lower and upper bound on the rate, as narrow as `settings.width` if the
    /// work limit permits.
    pub fn enclosure(&self, settings: &RrsWoSettings) -> (f64, f64) {
        self.rejections().enclosure(self.problem.drafts(), settings)
    }

    /// The rate by simulation of rejected paths, with an empirical Bernstein
    /// interval.
    ///
    /// A run draws n-1 rejected tokens in proportion to their probability of being
    /// drawn and rejected, and takes the mass of the residual that is left after the last
    /// draft: no accepted run is wasted, and what varies from run to run is a few
    /// hundredths at most instead of 0 or 1. O(n log V) a run, after a sort.
    pub fn monte_carlo(&self, settings: &RrsWoSettings) -> Known {
        let rejections = self.rejections();
        rejections.monte_carlo(self.problem.drafts(), settings)
    }
}

impl Verifier for RrsWo {
    fn name(&self) -> VerifierName {
        VerifierName::RRS_WO
    }

    fn conditional(&self, tuple: &[u32]) -> ConditionalLaw<f64> {
        let draft = self.proportions.row(&self.draft);
        walk(self.problem.target().probabilities(), draft, tuple)
    }

    fn conditional_exact(&self, tuple: &[u32]) -> Option<ConditionalLaw<Rational>> {
        let rows = || of_problem(&self.problem);
        let (target, draft) = self.exact.get_or_init(rows);
        Some(walk(target, draft, tuple))
    }

    fn sample(&self, tuple: &[u32], rng: &mut dyn RngCore) -> Verdict {
        let law = self.conditional(tuple);
        let mut reached = 1.0;
        // accepted[k] is the product of the steps so far.
        for (position, &accepted) in law.accepted.iter().enumerate() {
            if accepted > 0.0 && happens(accepted / reached, rng) {
                return taken(tuple, position);
            }
            reached -= accepted;
        }
        refused(&law.residual, rng)
    }

    fn handles_all_tokens(&self) -> bool {
        true
    }

    fn acceptance(&self) -> Acceptance {
        self.acceptance_within(&self.settings)
    }
}

/// Rejected paths that stand for all at a position of a text, from the third draft on.
const PATHS_OF_A_TOKEN: usize = 64;

/// What each draft accepts of a token y, by the recursion in (L, s) over all rejected paths.
struct Paths<'a> {
    p: &'a [Rational],
    q: &'a [Rational],
    token: usize,
    /// Tokens rejected so far.
    gone: Vec<bool>,
    masses: Vec<Rational>,
}

impl Paths<'_> {
    /// Adds a path of probability `reached` and all that go on from it; `rest` is what is
    /// left of q.
    fn add(&mut self, draft: usize, factor: &Rational, rest: &Rational, reached: &Rational) {
        let Some(sum) = self.masses.get(draft).filter(|_| !rest.is_nil()) else {
            return;
        };
        let offered: Vec<Rational> = self.q.iter().map(|q| factor * q).collect();
        let wanted = shortfall(self.p, &offered);
        let mass = Rational::total(&wanted);
        if mass.is_nil() {
            return;
        }
        let offer = mass.over(rest);
        let share = reached.over(&mass);
        let accepted = if self.gone[self.token] {
            Rational::zero()
        } else {
            wanted[self.token].smaller(&(&offer * &self.q[self.token]))
        };
        let sum = sum + &share * accepted;
        self.masses[draft] = sum;
        let next = factor + &offer;
        for (token, (wanted, q)) in wanted.iter().zip(self.q).enumerate() {
            let rejected = (&offer * q).excess_over(wanted);
            if !self.gone[token] && !rejected.is_nil() {
                self.gone[token] = true;
                let left = rest - q;
                self.add(draft + 1, &next, &left, &(&share * rejected));
                self.gone[token] = false;
            }
        }
    }
}

const AT_TOKEN: TokenRule = TokenRule {
    on_row: |row, token, drafts, seed| {
        Ok(row.accepted_of_token_in_turn(token, drafts, PATHS_OF_A_TOKEN, seed))
    },
    exact: |problem, token| {
        let (p, q) = of_problem(problem);
        let mut paths = Paths {
            gone: vec![false; p.len()],
            masses: vec![Rational::zero(); problem.drafts()],
            token,
            p: &p,
            q: &q,
        };
        paths.add(0, &Rational::zero(), &Rational::one(), &Rational::one());
        paths.masses
    },
    nested: true,
    // One draft and two are sums in closed form.
    sampled_from: Some(2),
    on_lists: false,
};

/// [`RrsWo`] in the table of verifiers.
pub const ENTRY: Entry = Entry {
    rule: RuleName::RRS_WO,
    acceptance: "a recursion in two scalars instead of simulation",
    lossless: Lossless::Under(&[SchemeName::WITHOUT_REPLACEMENT]),
    build: |problem, settings| Ok(Box::new(RrsWo::with_settings(problem, *settings)?)),
    on_row: |_| {
        Some(RowRule {
            fast: Some(RowRate::Seeded(on_row_fast)),
            // It accepts no less than rrs does on independent drafts.
            cut: Some(|row, ask| {
                let [lower, _] = row.rejected_in_turn(ask.drafts);
                Ok([lower.max(ask.overlap[0]), 1.0])
            }),
            ..RowRule::always(RowRate::Seeded(on_row))
        })
    },
    at_token: |_| Ok(AT_TOKEN),
    attains: |_| false,
    compared_with: &[VerifierName::RRS, VerifierName::K_SEQ],
    by_default: true,
};
