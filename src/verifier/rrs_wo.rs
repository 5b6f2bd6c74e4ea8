//! Recursive rejection sampling of sequential drafts without replacement.

mod paths;

use super::residual::{keep, shortfall};
use super::{
    Acceptance, ConditionalLaw, Rate, Verdict, Verifier, VerifierError, VerifierName, draw,
    happens, output_law, sequential,
};
use crate::distribution::{Draft, Rational, TwoFloat, compensated_sum};
use crate::number::{Number, normalised};
use crate::problem::Problem;
use crate::scheme::SchemeName;
use paths::RejectedPaths;
use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use statrs::distribution::{Beta, ContinuousCDF};
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
/// # Acceptance: two scalars are enough
/// A rejected token has `p_k(x) < q_k(x)`, so its residual is 0 from then on.
/// Suppose the residual is `r = (p - L q)+` with mass `M(L)`, and tokens of total
/// draft mass s were rejected; they all have `p <= L q`. With `c = 1/(1-s)`, the
/// next residual is `(r - M(L) c q)+` off the rejected tokens, and zero on them:
/// that is `(p - L' q)+` with
///
/// ```text
/// L' = L + c M(L)
/// ```
///
/// whichever token was drawn. So the state is (L, s), starting at (0, 0); the
/// rejected tokens enter through s and through not being drawn again. This draft
/// is rejected with probability `M(L')/M(L)`, and it is token i and rejected with
/// probability `g_i/M(L)`,
///
/// ```text
/// g_i = (c M(L) q_i - (p_i - L q_i)+)+      sum over i not rejected before = M(L')
/// ```
///
/// Hence, with `P_k(L, s)` the probability that the next k drafts are all
/// rejected, `P_1 = M(L')/M(L)` and
/// `P_k = sum of g_i P_(k-1)(L', s + q_i) / M(L)`; the rate is
/// `1 - P_n(0, 0)`.
///
/// - n = 1: sum of min(p, q). n = 2: one sum over the oversampled tokens, O(V log V).
///   Both are exact up to rounding (1e-12 is allowed for it).
/// - n >= 3: a sum over rejected paths. Tokens of nearly equal q lead to nearly
///   equal states, so paths are summed over groups of tokens, with bounds on L
///   and s that hold for the whole group; groups are split until each path
///   contributes less than a share of the requested width (default 1e-6). The
///   bounds are rigorous up to that rounding allowance.
/// - Where the work limit does not permit that (n >= 5 at large V), Monte Carlo
///   with a Clopper-Pearson interval.
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
/// use specgap::distribution::{Draft, Target};
/// use specgap::problem::Problem;
/// use specgap::scheme::WithoutReplacement;
/// use specgap::verifier::{RrsWo, Verifier};
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
    exact: OnceLock<(Vec<Rational>, Vec<Rational>)>,
    paths: OnceLock<RejectedPaths>,
    settings: RrsWoSettings,
}

/// Least mass of q that the recursion divides by. Masses are kept to about 1e-32
/// (in two words), so what is left is good to 1e-14 relative.
const RELIABLE_REST: f64 = 1e-18;

/// Tuples times tokens up to which the law is summed where the recursion is not
/// reliable, and the error of such a sum.
const SUMMED_ENTRIES: f64 = 1.0e7;
const SUMMED_ERROR: f64 = 1e-11;

/// How much work the acceptance rate of [`RrsWo`] may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RrsWoSettings {
    /// Width of the enclosure that is aimed at.
    pub width: f64,
    /// Most groups of rejected paths that are looked at.
    pub work_limit: u64,
    /// An enclosure wider than this is replaced by Monte Carlo.
    pub widest: f64,
    /// Monte Carlo runs.
    pub samples: u64,
    /// Seed of the Monte Carlo generator (ChaCha8).
    pub seed: u64,
    /// Confidence of the Monte Carlo interval.
    pub confidence: f64,
}

impl Default for RrsWoSettings {
    fn default() -> Self {
        Self {
            width: 1e-6,
            work_limit: 10_000_000,
            widest: 1e-3,
            samples: 1_000_000,
            seed: 1,
            confidence: 0.999,
        }
    }
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
        let scale = mass.over(&rest);
        let offered: Vec<M> = left.iter().map(|q| scale.times(q)).collect();
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
    /// For `without-replacement` drafts, with the default budget for its
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
        match problem.scheme().draft() {
            Some(draft) if problem.scheme().name() == SchemeName::WithoutReplacement => Ok(Self {
                draft: draft.clone(),
                problem: problem.clone(),
                exact: OnceLock::new(),
                paths: OnceLock::new(),
                settings,
            }),
            _ => Err(VerifierError::scheme(VerifierName::RrsWo, problem)),
        }
    }

    fn paths(&self) -> &RejectedPaths {
        self.paths.get_or_init(|| {
            RejectedPaths::new(
                self.problem.target().probabilities(),
                self.draft.probabilities(),
            )
        })
    }

    /// Draws that really happen.
    fn draws(&self) -> usize {
        self.problem.drafts().min(self.draft.support().len())
    }

    /// Draws before which at least [`RELIABLE_REST`] of q is left however the
    /// heaviest tokens fall: the recursion divides by what is left, and is not
    /// asked beyond that.
    fn reliable_draws(&self) -> usize {
        let mut row: Vec<f64> = self.draft.probabilities().to_vec();
        row.sort_unstable_by(|a, b| b.total_cmp(a));
        let top = self.draws().min(row.len());
        let mut left = TwoFloat::ZERO;
        for &q in row[top..].iter().rev() {
            left += q;
        }
        let mut reliable = self.draws();
        for draw in (0..top).rev() {
            // What is left before this draw, all heavier tokens gone.
            left += row[draw];
            if left.value() < RELIABLE_REST {
                reliable = draw;
            }
        }
        reliable
    }

    /// Target mass of the draft's support: no draft outside it exists.
    fn reachable(&self) -> f64 {
        let row = self.problem.target().probabilities();
        compensated_sum(self.draft.support().into_iter().map(|token| row[token]))
    }

    /// The acceptance rate within a budget: enclosed if the enclosure gets
    /// narrow enough, else by Monte Carlo. Where almost nothing of q is left after
    /// a few draws, by summing the law over all tuples if they are few, else
    /// enclosed by what fewer drafts accept.
    pub fn acceptance_within(&self, settings: &RrsWoSettings) -> Acceptance {
        let (lower, upper) = self.enclosure(settings);
        let middle = 0.5 * (lower + upper);
        if upper - lower <= settings.width {
            return Acceptance::same(Rate::between(middle, lower, upper));
        }
        if self.reliable_draws() < self.draws() {
            let scheme = self.problem.scheme();
            if scheme.tuple_count() * self.problem.vocab() as f64 <= SUMMED_ENTRIES {
                let law = output_law(self, scheme);
                return Acceptance::same(Rate::within(law.membership, SUMMED_ERROR));
            }
            let note = "after a few draws too little of q is left to divide by: the lower bound is \
                what fewer drafts accept, the upper the target's mass on the draft's support";
            let rate = Rate::between(middle, lower, upper);
            return Acceptance {
                note: Some(note.to_owned()),
                ..Acceptance::same(rate)
            };
        }
        if upper - lower <= settings.widest {
            return Acceptance::same(Rate::between(middle, lower, upper));
        }
        Acceptance::same(self.monte_carlo(settings))
    }

    /// Lower and upper bound on the rate, as narrow as `settings.width` if the
    /// work limit permits.
    pub fn enclosure(&self, settings: &RrsWoSettings) -> (f64, f64) {
        let reachable = self.reachable();
        let error = 4.0 * f64::EPSILON;
        let draws = self.draws();
        if draws == self.draft.support().len() {
            // Every token is offered in the end, and a rejected one has no
            // residual: all of p on the support is accepted.
            return ((reachable - error).max(0.0), (reachable + error).min(1.0));
        }
        let reliable = self.reliable_draws();
        let (lower, upper) =
            self.paths()
                .all_rejected(reliable, settings.width, settings.work_limit);
        // A further draft can only accept more.
        let most = if reliable == draws { 1.0 - lower } else { 1.0 };
        ((1.0 - upper).max(0.0), most.min(reachable + error).min(1.0))
    }

    /// The rate by simulation, with a Clopper-Pearson interval.
    ///
    /// A run draws tokens one by one and steps through (L, s): O(n log V) unless
    /// the tokens drawn before hold almost all mass.
    pub fn monte_carlo(&self, settings: &RrsWoSettings) -> Rate {
        let mut rng = ChaCha8Rng::seed_from_u64(settings.seed);
        let row = self.draft.probabilities();
        let urn = Urn::new(row);
        let (target, draws) = (self.problem.target().probabilities(), self.draws());
        let mut accepted = 0u64;
        let mut drawn: Vec<usize> = Vec::with_capacity(draws);
        for _ in 0..settings.samples {
            drawn.clear();
            let (mut factor, mut rest) = (0.0, TwoFloat::ONE);
            let mut mass = self.paths().residual_mass(0.0);
            for _ in 0..draws {
                let token = urn.draw(&drawn, &mut rng);
                let offered = mass * row[token] / rest.value();
                let wanted = (target[token] - factor * row[token]).max(0.0);
                if happens(keep(&wanted, &offered), &mut rng) {
                    accepted += 1;
                    break;
                }
                factor += mass / rest.value();
                mass = self.paths().residual_mass(factor);
                rest = rest - TwoFloat::from(row[token]);
                drawn.push(token);
            }
        }
        let (lower, upper) = clopper_pearson(accepted, settings.samples, settings.confidence);
        Rate::MonteCarlo {
            value: accepted as f64 / settings.samples as f64,
            lower,
            upper,
            confidence: settings.confidence,
            samples: settings.samples,
            seed: settings.seed,
        }
    }
}

/// Draws in proportion to q among the tokens not drawn yet.
///
/// Tokens lie end to end by rising q: after the heavy ones were drawn, what is
/// left lies at the start, where the cumulative sums are small and precise.
struct Urn {
    /// Tokens of positive q, and where each ends.
    tokens: Vec<usize>,
    ends: Vec<f64>,
    /// Place of each token in that order.
    place: Vec<usize>,
}

impl Urn {
    fn new(row: &[f64]) -> Self {
        let mut tokens: Vec<usize> = (0..row.len()).filter(|&i| row[i] > 0.0).collect();
        tokens.sort_by(|&a, &b| row[a].total_cmp(&row[b]));
        let mut place = vec![usize::MAX; row.len()];
        let mut sum = TwoFloat::ZERO;
        let ends = tokens
            .iter()
            .enumerate()
            .map(|(index, &token)| {
                place[token] = index;
                sum += row[token];
                sum.value()
            })
            .collect();
        Self {
            tokens,
            ends,
            place,
        }
    }

    fn start(&self, index: usize) -> f64 {
        match index {
            0 => 0.0,
            _ => self.ends[index - 1],
        }
    }

    /// `drawn` holds fewer tokens than there are. O(n log V).
    fn draw(&self, drawn: &[usize], rng: &mut ChaCha8Rng) -> usize {
        let mut holes: Vec<usize> = drawn.iter().map(|&token| self.place[token]).collect();
        holes.sort_unstable();
        // Past the last token that is left, nothing can be drawn.
        let mut last = self.tokens.len() - 1;
        let mut inner = holes.as_slice();
        while let Some((&hole, before)) = inner.split_last() {
            if hole != last || last == 0 {
                break;
            }
            last -= 1;
            inner = before;
        }
        let width = |hole: usize| self.ends[hole] - self.start(hole);
        let left = self.ends[last] - inner.iter().map(|&hole| width(hole)).sum::<f64>();
        let mut at = rng.random::<f64>() * left.max(0.0);
        for &hole in inner {
            if at >= self.start(hole) {
                at += width(hole);
            }
        }
        let mut index = self.ends.partition_point(|&end| end <= at).min(last);
        // Only rounding leads into a hole; the next token is as near.
        while inner.contains(&index) {
            index = if index == last { 0 } else { index + 1 };
        }
        self.tokens[index]
    }
}

/// Exact binomial confidence interval.
fn clopper_pearson(successes: u64, trials: u64, confidence: f64) -> (f64, f64) {
    let tail = 0.5 * (1.0 - confidence);
    let (hits, misses) = (successes as f64, (trials - successes) as f64);
    let quantile = |a: f64, b: f64, at: f64| Beta::new(a, b).map(|law| law.inverse_cdf(at));
    let lower = match successes {
        0 => 0.0,
        _ => quantile(hits, misses + 1.0, tail).unwrap_or(0.0),
    };
    let upper = match trials - successes {
        0 => 1.0,
        _ => quantile(hits + 1.0, misses, 1.0 - tail).unwrap_or(1.0),
    };
    (lower, upper)
}

impl Verifier for RrsWo {
    fn name(&self) -> VerifierName {
        VerifierName::RrsWo
    }

    fn conditional(&self, tuple: &[u32]) -> ConditionalLaw<f64> {
        let (target, draft) = (self.problem.target(), &self.draft);
        walk(target.probabilities(), draft.probabilities(), tuple)
    }

    fn conditional_exact(&self, tuple: &[u32]) -> Option<ConditionalLaw<Rational>> {
        let (target, draft) = self.exact.get_or_init(|| {
            (
                Rational::row(self.problem.target()),
                Rational::row(&self.draft),
            )
        });
        Some(walk(target, draft, tuple))
    }

    fn sample(&self, tuple: &[u32], rng: &mut dyn RngCore) -> Verdict {
        let law = self.conditional(tuple);
        let mut reached = 1.0;
        for (position, &token) in tuple.iter().enumerate() {
            // accepted[k] is the product of the steps so far.
            let accepted = law.accepted[position];
            if accepted > 0.0 && happens(accepted / reached, rng) {
                return Verdict {
                    token,
                    accepted: Some(position),
                };
            }
            reached -= accepted;
        }
        Verdict {
            token: draw(&law.residual, rng),
            accepted: None,
        }
    }

    fn acceptance(&self) -> Acceptance {
        self.acceptance_within(&self.settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The urn against the renormalised law, with the heavy token drawn already.
    /// 5 cells, false-positive rate 1e-5.
    #[test]
    fn the_urn_follows_the_law_of_what_is_left() {
        let row = [0.1, 0.98, 0.0, 0.004, 0.006, 0.01];
        let urn = Urn::new(&row);
        let mut rng = ChaCha8Rng::seed_from_u64(11);
        for drawn in [vec![], vec![1], vec![4, 1], vec![0], vec![5, 3]] {
            let left: f64 = (0..row.len())
                .filter(|token| !drawn.contains(token))
                .map(|token| row[token])
                .sum();
            let runs = 50_000;
            let mut counts = [0.0; 6];
            for _ in 0..runs {
                counts[urn.draw(&drawn, &mut rng)] += 1.0;
            }
            let mut statistic = 0.0;
            for (token, count) in counts.into_iter().enumerate() {
                if drawn.contains(&token) || row[token] == 0.0 {
                    assert_eq!(count, 0.0);
                    continue;
                }
                let mean = f64::from(runs) * row[token] / left;
                statistic += (count - mean) * (count - mean) / mean;
            }
            // The 1 - 1e-5 quantile with 4 degrees of freedom, the most there are.
            assert!(statistic < 28.5, "{drawn:?}: {statistic}");
        }
    }

    #[test]
    fn clopper_pearson_ends_are_binomial_tails() {
        // P(no success in 20) at the upper end is half of 1 - confidence.
        let (lower, upper) = clopper_pearson(0, 20, 0.99);
        assert_eq!(lower, 0.0);
        assert!(((1.0 - upper).powi(20) - 0.005).abs() < 1e-9);
        let (lower, upper) = clopper_pearson(20, 20, 0.99);
        assert_eq!(upper, 1.0);
        assert!((lower.powi(20) - 0.005).abs() < 1e-9);
    }
}
