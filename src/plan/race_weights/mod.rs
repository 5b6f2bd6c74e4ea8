//! Optimal plans for sequential drafts without replacement at full vocabulary.
//!
//! Drafts are drawn one by one from q renormalised over what is left. Let H be a set
//! of tokens and C the others. If all drafts lie in H, draft k is emitted with
//! probability `w(x_k) / (1 + sum over j of w(x_j))`; else the drafts in C compete by
//! their weights alone and nothing is rejected. With weights such that tokens of H are
//! emitted exactly p often and those of C at most p often, the rule accepts
//! 1 + P(H) - Q(H).
//!
//! The draws are the order of ringing of independent exponential clocks of rates q.
//! Given the time t of the last draft, tokens are independent, and `1/W = integral of
//! e^{-sW} ds` makes the competition independent too; so that all sums over tuples
//! become elementary symmetric polynomials at the nodes of a double integral.
//! `docs/optimal-plan.md`, section 8, has the derivation, the errors and measurements.

mod clock;
mod contest;
mod lanes;
mod law;
mod ring;
mod side;

use super::slot_weights::{
    Emission, PlanLaw, PlanMeasurement, SlotWeightStatus, VocabularyMismatch,
};
use super::thinning::Thinning;
use crate::distribution::{Draft, PROBABILITY_RELATIVE_ERROR, Target, TwoFloat, compensated_sum};
use crate::known::Known;
use crate::optimum::bucket_scan::{BucketScan, Rows};
use clock::Clock;
use contest::Contest;
use rand::RngCore;

/// Most drafts that [`SequentialPlan`] handles.
pub const MOST_SEQUENTIAL_DRAFTS: usize = ring::MOST;

/// Heavy tokens, handled one by one, at most.
const MOST_HEAVY: usize = 2048;

/// Roundings in the emission of all tokens together, a draft, in ulps of 1: two stages
/// of sums of some forty, the prefix products, powers and exponentials; doubled.
const ROUNDINGS: f64 = 256.0;

/// What [`SequentialPlan::solve`] aims for, and what it may spend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SequentialSettings {
    /// Largest shortfall of acceptance from alpha* that counts as optimal.
    pub tolerance: f64,
    /// Sum of |wanted - emitted| at which a half of the split is solved.
    pub residual: f64,
    /// Most Newton steps on groups, and half the most in all, a half of the split.
    pub iterations: usize,
}

impl Default for SequentialSettings {
    fn default() -> Self {
        Self {
            tolerance: 1e-10,
            residual: 1e-12,
            iterations: 40,
        }
    }
}

/// Why there is no plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SequentialPlanError {
    /// Rows of p and q of different lengths.
    #[error(transparent)]
    Vocabulary(#[from] VocabularyMismatch),
    /// No drafts, or too many.
    #[error("drafts is {drafts}; plans for sequential draws need it in 1..={most}")]
    Drafts {
        /// What was asked for.
        drafts: usize,
        /// [`MOST_SEQUENTIAL_DRAFTS`].
        most: usize,
    },
}

/// Where a token competes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Nowhere.
    Out,
    /// When all drafts lie in H.
    Inner,
    /// Whenever it is drafted.
    Outer,
}

/// An optimal plan for n sequential draws without replacement, at any V, n <= 8.
///
/// If all drafts lie in H, draft k is picked with probability
/// `w(x_k) / (1 + sum of w)`; if some lie outside, one of those is picked by weight.
/// What is picked is kept with a probability of 1 or, where it would come out too
/// often, `p_i / a_i`. Everything else draws from the residual `(p - a)/sum`, a_i
/// being how often token i is emitted.
///
/// # Exactness
/// Lossless by construction: a_i is cut to p_i and the residual is what is left, so
/// that the output law is off only by how far the computed a is from the true one;
/// [`SequentialPlan::law`] measures it by other integrals. Whether the solve
/// converged decides acceptance alone. H is the best prefix of the order by p/q.
///
/// The acceptance of a lossless rule is a lower bound of alpha*, and
/// 1 + P(H) - Q(H) an upper bound whatever H is. So a plan with status `optimal`
/// is within [`SequentialPlan::shortfall`] of alpha*, whatever is known of the scan
/// that found H. (In floating point: the error of the quadrature in t is bounded by
/// proof; rounding, truncated series and the left ends of both grids enter with
/// allowances that are tested, not proven.)
///
/// # Complexity
/// O(V log V) to sort; then O(V M_s) a step on all tokens with M_s about 100 nodes of
/// s, plus `M_s M_t` products of the heavy tokens (some tens, at most a few hundred;
/// q times the time of the last draft above about 0.1) with M_t about 40.
/// [`SequentialPlan::emit`] is O(n).
///
/// # Source
/// The split by H is complementary slackness of Hu et al., eq. 8; the race is the
/// classical representation of the Plackett-Luce law. The weights and all of the
/// method are specgap's.
///
/// # Example
/// ```
/// use specgap::distribution::{Draft, Target};
/// use specgap::plan::{SequentialPlan, SequentialSettings, SlotWeightStatus};
/// let (p, q) = (Target::new(&[0.2, 0.3, 0.5])?, Draft::new(&[0.6, 0.3, 0.1])?);
/// let plan = SequentialPlan::solve(&p, &q, 2, &SequentialSettings::default())?;
/// assert_eq!(plan.status(), SlotWeightStatus::Optimal);
/// // H = {0, 1}: Q(H) = 0.6 * 3/4 + 0.3 * 6/7.
/// let q_inside = 0.45 + 0.3 * 6.0 / 7.0;
/// assert!((plan.acceptance_rate().value() - (1.0 + 0.5 - q_inside)).abs() < 1e-12);
/// assert!(plan.optimal_acceptance_rate().width() < 1e-10);
/// assert_eq!(plan.accepted(&[0, 2]), [0.0, 1.0]);
/// assert!(plan.law(&p, &q).l1_error < 1e-12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct SequentialPlan {
    drafts: usize,
    /// Leading drafts that are looked at: all, or one where a plan for all is out of
    /// reach.
    considered: usize,
    weight: Vec<f64>,
    place: Vec<Place>,
    thinning: Thinning,
    optimum: Known,
    acceptance: Known,
    shortfall: f64,
    iterations: usize,
    groups: usize,
    status: SlotWeightStatus,
}

/// Weights and emissions before they are cut to p.
struct Draftwise {
    plan: SequentialPlan,
    emitted: Vec<f64>,
    /// On the emission of all tokens together.
    error: f64,
    /// 1 + P(H) - Q(H), and the error of that.
    upper: (f64, f64),
}

impl SequentialPlan {
    /// Solves the plan of `drafts` draws.
    ///
    /// # Errors
    /// Rows of different length; `drafts` outside 1..=[`MOST_SEQUENTIAL_DRAFTS`].
    pub fn solve(
        target: &Target,
        draft: &Draft,
        drafts: usize,
        settings: &SequentialSettings,
    ) -> Result<Self, SequentialPlanError> {
        let (p, q) = (target.probabilities(), draft.probabilities());
        if p.len() != q.len() {
            return Err(VocabularyMismatch {
                target: p.len(),
                draft: q.len(),
            }
            .into());
        }
        let most = MOST_SEQUENTIAL_DRAFTS;
        if !(1..=most).contains(&drafts) {
            return Err(SequentialPlanError::Drafts { drafts, most });
        }
        let support = q.iter().filter(|&&q| q > 0.0).count();
        let rule = if drafts >= support {
            Draftwise::whole_support(p, q, drafts)
        } else if drafts == 1 {
            Draftwise::first_draft(p, q, drafts)
        } else {
            Draftwise::race(p, q, drafts, settings)
                .unwrap_or_else(|| Draftwise::first_draft(p, q, drafts))
        };
        Ok(rule.finish(p, settings))
    }

    fn empty(vocab: usize, drafts: usize, considered: usize) -> Self {
        Self {
            drafts,
            considered,
            weight: vec![0.0; vocab],
            place: vec![Place::Out; vocab],
            thinning: Thinning::new(&[], &[]).0,
            optimum: Known::rate(1.0, 0.0, 1.0),
            acceptance: Known::rate(0.0, 0.0, 0.0),
            shortfall: 0.0,
            iterations: 0,
            groups: 0,
            status: SlotWeightStatus::Optimal,
        }
    }

    /// n.
    pub fn drafts(&self) -> usize {
        self.drafts
    }

    /// V.
    pub fn vocab(&self) -> usize {
        self.weight.len()
    }

    /// alpha*, enclosed: from below by this plan's acceptance, as the plan is
    /// lossless; from above by 1 + P(H) - Q(H), which is `value`.
    pub fn optimal_acceptance_rate(&self) -> &Known {
        &self.optimum
    }

    /// Acceptance of the plan, with quadrature and rounding in the enclosure.
    pub fn acceptance_rate(&self) -> &Known {
        &self.acceptance
    }

    /// Most that acceptance can be below alpha*, all error bounds included: the width
    /// of [`Self::optimal_acceptance_rate`].
    pub fn shortfall(&self) -> f64 {
        self.shortfall
    }

    /// Newton steps, on groups and on all tokens, of both halves.
    pub fn iterations(&self) -> usize {
        self.iterations
    }

    /// Groups of tokens that the first steps ran on, of both halves.
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// How the solve ended.
    pub fn status(&self) -> SlotWeightStatus {
        self.status
    }

    /// Law of the output after a rejection, V entries.
    pub fn residual(&self) -> &std::sync::Arc<[f64]> {
        &self.thinning.residual
    }

    pub(crate) fn depends_on_set_only(&self) -> bool {
        self.considered == self.drafts
    }

    fn place_of(&self, token: u32) -> Place {
        self.place
            .get(token as usize)
            .copied()
            .unwrap_or(Place::Out)
    }

    /// The place that decides, and the sum of the weights there.
    fn totals(&self, tuple: &[u32]) -> Option<(Place, f64)> {
        let looked_at = || tuple.iter().take(self.considered);
        let has = |place: Place| looked_at().any(|&token| self.place_of(token) == place);
        let (place, reject) = if has(Place::Outer) {
            (Place::Outer, 0.0)
        } else if has(Place::Inner) {
            (Place::Inner, 1.0)
        } else {
            return None;
        };
        let total: f64 = looked_at()
            .filter(|&&token| self.place_of(token) == place)
            .map(|&token| self.weight[token as usize])
            .sum();
        (total > 0.0).then_some((place, reject + total))
    }

    /// Probability that each draft of the tuple is emitted; the rest of 1 goes to
    /// the residual. The order of the drafts does not matter. O(n).
    pub fn accepted(&self, tuple: &[u32]) -> Vec<f64> {
        let mut accepted = vec![0.0; tuple.len()];
        if let Some((place, total)) = self.totals(tuple) {
            for (share, &token) in accepted.iter_mut().zip(tuple).take(self.considered) {
                if self.place_of(token) == place {
                    *share =
                        self.thinning.keep(token as usize) * (self.weight[token as usize] / total);
                }
            }
        }
        accepted
    }

    /// Runs the plan once: O(n), plus O(log V) after a rejection.
    pub fn emit(&self, tuple: &[u32], rng: &mut dyn RngCore) -> Emission {
        let Some((place, total)) = self.totals(tuple) else {
            return self.thinning.reject(rng);
        };
        let competing = (0..).zip(tuple.iter().copied()).take(self.considered);
        let competing = competing.filter(|&(_, token)| self.place_of(token) == place);
        self.thinning.emit(competing, &self.weight, total, rng)
    }
}

impl Draftwise {
    /// All tokens of positive q are drafted, always.
    fn whole_support(p: &[f64], q: &[f64], drafts: usize) -> Self {
        let mut plan = SequentialPlan::empty(p.len(), drafts, drafts);
        let mut emitted = vec![0.0; p.len()];
        let missing = compensated_sum(p.iter().zip(q).filter(|(_, q)| **q == 0.0).map(|(p, _)| *p));
        let (place, scale) = if missing > 0.0 {
            (Place::Inner, 1.0 / missing)
        } else {
            (Place::Outer, 1.0)
        };
        for (token, (&p, &q)) in p.iter().zip(q).enumerate() {
            if p > 0.0 && q > 0.0 {
                plan.place[token] = place;
                // 1/missing overflows where the other tokens are subnormal.
                plan.weight[token] = (p * scale).min(1e300 * p);
                emitted[token] = p;
            }
        }
        let error = (8.0 + ROUNDINGS) * f64::EPSILON;
        Self {
            plan,
            emitted,
            error,
            upper: (1.0 - missing, error),
        }
    }

    /// min(p, q) of the first draft.
    fn first_draft(p: &[f64], q: &[f64], drafts: usize) -> Self {
        let mut plan = SequentialPlan::empty(p.len(), drafts, 1);
        let mut emitted = vec![0.0; p.len()];
        for (token, (&p, &q)) in p.iter().zip(q).enumerate() {
            if p > 0.0 && q > 0.0 {
                plan.place[token] = Place::Outer;
                plan.weight[token] = 1.0;
                emitted[token] = q;
            }
        }
        let overlap = compensated_sum(p.iter().zip(q).map(|(p, q)| p.min(*q)));
        let error = 2.0 * PROBABILITY_RELATIVE_ERROR + 8.0 * f64::EPSILON;
        Self {
            plan,
            emitted,
            error,
            upper: (if drafts == 1 { overlap } else { 1.0 }, error),
        }
    }

    /// The general case; `None` if the race lasts too long for `f64`.
    fn race(p: &[f64], q: &[f64], drafts: usize, settings: &SequentialSettings) -> Option<Self> {
        let clock = Clock::new(q, drafts);
        let heavy = q.iter().filter(|&&q| q > 0.0 && clock.terms(q).is_none());
        if clock.missed > 1e-17 || heavy.count() > MOST_HEAVY {
            return None;
        }
        let rows = Rows {
            target: p,
            draft: q,
        };
        let mut scan = BucketScan::new();
        let found = scan
            .load(rows, drafts)
            .ok()?
            .without_replacement(drafts)
            .ok()?;
        let (mut inner, mut outer, mut idle) = (Vec::new(), Vec::new(), Vec::new());
        let (mut in_subset, mut absent) = (Vec::new(), TwoFloat::ZERO);
        let mut held = TwoFloat::ZERO;
        for (token, (&p, &q)) in (0u32..).zip(p.iter().zip(q)) {
            if q == 0.0 {
                continue;
            }
            if p == 0.0 {
                // Never emitted, so it may as well be in H.
                idle.push(q);
                in_subset.push(q);
            } else if found.subset.contains(token as usize, p, q) {
                inner.push(token);
                in_subset.push(q);
                held += p;
            } else {
                outer.push(token);
                absent += q;
            }
        }
        let inside = Contest::new(&clock, drafts, 1.0, (p, q), &inner, &idle, absent.value());
        let outside = Contest::new(&clock, drafts, 0.0, (p, q), &outer, &in_subset, 0.0);
        // All tuples, less those of H: P(some draft outside).
        let q_inside = if in_subset.len() < drafts {
            0.0
        } else {
            inside.total
        };
        let mut plan = SequentialPlan::empty(p.len(), drafts, drafts);
        let mut emitted = vec![0.0; p.len()];
        let error = 2.0 * clock.error + ROUNDINGS * drafts as f64 * f64::EPSILON;
        for (contest, place) in [(&inside, Place::Inner), (&outside, Place::Outer)] {
            let touched = match place {
                Place::Inner => q_inside,
                _ => 1.0 - q_inside,
            };
            if touched < 1e-18 {
                continue;
            }
            let solved = contest.solve(touched, settings.residual, settings.iterations);
            for (slot, &token) in contest.tokens.iter().enumerate() {
                let token = token as usize;
                plan.weight[token] = solved.weights[slot];
                plan.place[token] = place;
                emitted[token] = solved.emitted[slot];
            }
            plan.iterations += solved.iterations;
            plan.groups += solved.groups;
        }
        if emitted.iter().any(|a| !a.is_finite()) || (outside.total - 1.0).abs() > 1e-9 {
            return None;
        }
        let upper = (TwoFloat::ONE + held + TwoFloat::from(-q_inside))
            .value()
            .min(1.0);
        Some(Self {
            plan,
            emitted,
            error: error + (outside.total - 1.0).abs(),
            upper: (upper, error + 4.0 * PROBABILITY_RELATIVE_ERROR),
        })
    }

    /// Thins what is emitted too often, and leaves the rest to the residual.
    fn finish(self, target: &[f64], settings: &SequentialSettings) -> SequentialPlan {
        let Self {
            mut plan,
            emitted,
            error,
            upper: (upper, upper_error),
        } = self;
        let (thinning, value) = Thinning::new(target, &emitted);
        plan.acceptance = Known::rate(value, value - error, value + error);
        plan.optimum = Known::rate(
            upper.max(plan.acceptance.lower()),
            plan.acceptance.lower(),
            (upper + upper_error).max(plan.acceptance.lower()),
        );
        plan.shortfall = plan.optimum.width();
        plan.status = if plan.shortfall <= settings.tolerance {
            SlotWeightStatus::Optimal
        } else {
            SlotWeightStatus::Short
        };
        plan.thinning = thinning;
        plan
    }
}

/// Solves the plan of one position and measures its law by other integrals.
///
/// `optimum` is the enclosure of [`SequentialPlan::optimal_acceptance_rate`].
///
/// # Errors
/// As [`SequentialPlan::solve`].
///
/// # Complexity
/// That of the solve, and for the audit O(V) exponentials at some 400 nodes.
///
/// # Example
/// ```
/// use specgap::distribution::{Draft, Target};
/// use specgap::plan::{SequentialSettings, measure_sequential};
/// let (p, q) = (Target::new(&[0.5, 0.3, 0.1, 0.1])?, Draft::new(&[0.1, 0.2, 0.3, 0.4])?);
/// let measured = measure_sequential(&p, &q, 3, &SequentialSettings::default())?;
/// assert!((measured.acceptance_rate - measured.optimum.value()).abs() < 1e-10);
/// assert!(measured.law_l1_error < 1e-10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn measure_sequential(
    target: &Target,
    draft: &Draft,
    drafts: usize,
    settings: &SequentialSettings,
) -> Result<PlanMeasurement, SequentialPlanError> {
    let started = std::time::Instant::now();
    let plan = SequentialPlan::solve(target, draft, drafts, settings)?;
    let seconds = started.elapsed().as_secs_f64();
    let law = plan.law(target, draft);
    Ok(PlanMeasurement {
        optimum: plan.optimum.clone(),
        acceptance_rate: law.acceptance_rate,
        law_l1_error: law.l1_error,
        iterations: plan.iterations,
        status: plan.status,
        seconds,
    })
}
