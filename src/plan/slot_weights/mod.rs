//! Optimal plans for i.i.d. drafts at full vocabulary, by slot weights.
//!
//! Let H be a minimiser of P - Q. By complementary slackness an optimal plan
//! accepts a token of H only when all drafts lie in H, and accepts a token outside
//! H whenever one was drafted. Within each of the two cases a plan exists of the
//! form
//!
//! ```text
//! P(emit draft k | X) = w(x_k) / (w_0 + sum over j of w(x_j)),
//! ```
//!
//! with w_0 = 0 outside H. The weights are the stationary point of a convex
//! function of log w, a token's weight depends on its p/q alone, and all sums over
//! tuples collapse to one integral. `docs/optimal-plan.md` has the derivation, the
//! error analysis and measurements.

mod bins;
mod chain;
mod groups;
mod law;
mod level;
pub(super) mod nodes;

pub use law::PlanLaw;
pub(super) use law::gauss_legendre;

use super::thinning::Thinning;
use crate::distribution::{Draft, Target};
use crate::known::Known;
use bins::Bins;
pub(crate) use chain::Rising;
use chain::{Chain, Span};
use groups::Groups;
use level::{Field, Level};
use multiversion::multiversion;
use nodes::QUADRATURE_ERROR;
use rand::RngCore;

/// What [`SlotWeightPlan::solve`] aims for, and what it may spend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlotWeightSettings {
    /// Largest shortfall of acceptance from alpha* that counts as optimal.
    pub tolerance: f64,
    /// Sum of |wanted - emitted| at which a level is solved.
    pub level_tolerance: f64,
    /// Most Newton or fixed-point steps a level and grouping.
    pub iterations: usize,
    /// Prefixes of the chain whose P - Q is this close to the least are minimisers
    /// too, and separate levels.
    pub tie: f64,
    /// Bins of tokens have mass times (width of log odds of the ratio)^4 at most
    /// this.
    pub grouping: f64,
}

impl Default for SlotWeightSettings {
    fn default() -> Self {
        Self {
            tolerance: 1e-10,
            level_tolerance: 1e-12,
            iterations: 60,
            tie: 1e-14,
            grouping: 1e-11,
        }
    }
}

/// What is known about a plan's acceptance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotWeightStatus {
    /// Within [`SlotWeightSettings::tolerance`] of alpha*, rounding and quadrature
    /// accounted for.
    Optimal,
    /// Lossless, but [`SlotWeightPlan::shortfall`] is above the tolerance.
    Short,
}

impl SlotWeightStatus {
    /// `optimal` or `short`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Optimal => "optimal",
            Self::Short => "short",
        }
    }
}

/// Rows of p and q of different lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the target has {target} tokens and the draft {draft}; both rows must have one vocabulary")]
pub struct VocabularyMismatch {
    /// V of the target.
    pub target: usize,
    /// V of the draft.
    pub draft: usize,
}

/// Which token came out, and through which draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emission {
    /// The output token.
    pub token: u32,
    /// The draft that was accepted, from 0; `None` if the token is from the
    /// residual.
    pub accepted: Option<usize>,
}

/// One position, solved and audited: a row of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanMeasurement {
    /// alpha*, enclosed, by the ratio scan.
    pub optimum: Known,
    /// Acceptance of the plan, by the second integral; in [0, 1].
    pub acceptance_rate: f64,
    /// Sum over tokens of |output - p|, by the second integral.
    pub law_l1_error: f64,
    /// Steps of the solve.
    pub iterations: usize,
    /// How the solve ended.
    pub status: SlotWeightStatus,
    /// Wall-clock seconds of the solve, without the audit.
    pub seconds: f64,
}

/// Solves the plan of one position and measures its law by the second integral.
///
/// # Errors
/// Rows of different length.
///
/// # Complexity
/// That of the solve, and for the audit O(V) as well.
///
/// # Example
/// ```
/// use specgap::distribution::{Draft, Target};
/// use specgap::plan::{SlotWeightSettings, measure};
/// let (p, q) = (Target::new(&[0.5, 0.3, 0.2])?, Draft::new(&[0.2, 0.3, 0.5])?);
/// let measured = measure(&p, &q, 3, &SlotWeightSettings::default())?;
/// assert!((measured.acceptance_rate - measured.optimum.value()).abs() < 1e-10);
/// assert!(measured.law_l1_error < 1e-10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn measure(
    target: &Target,
    draft: &Draft,
    drafts: usize,
    settings: &SlotWeightSettings,
) -> Result<PlanMeasurement, VocabularyMismatch> {
    let started = std::time::Instant::now();
    let rising = Rising::sorted(target, draft)?;
    let sorting = started.elapsed().as_secs_f64();
    let mut measured = measure_in_order(target, draft, &rising, drafts, settings);
    measured.seconds += sorting;
    Ok(measured)
}

/// [`measure`] with the chain of the same rows, which does not depend on n.
pub(crate) fn measure_in_order(
    target: &Target,
    draft: &Draft,
    rising: &Rising,
    drafts: usize,
    settings: &SlotWeightSettings,
) -> PlanMeasurement {
    let started = std::time::Instant::now();
    let plan = SlotWeightPlan::solve_in_order(target, rising, drafts, settings);
    let seconds = started.elapsed().as_secs_f64();
    let law = plan.law(target, draft);
    PlanMeasurement {
        optimum: plan.optimum.clone(),
        acceptance_rate: law.acceptance_rate,
        law_l1_error: law.l1_error,
        iterations: plan.iterations,
        status: plan.status,
        seconds,
    }
}

/// No level: the token is never emitted as a draft.
const NO_LEVEL: u32 = u32::MAX;

/// An optimal plan for n i.i.d. drafts from q, at any V and n.
///
/// Given drafts X, the highest level that X touches decides. Draft k of that level
/// is picked with probability w(x_k) over the sum of the weights there (plus
/// w_0 = 1 at the lowest level, if alpha* < 1), and then kept with a probability of
/// 1 or, where rounding made the token too frequent, a hair less. Everything else
/// draws from the residual `(p - a)/sum`, a_i being how often token i is emitted.
///
/// # Exactness
/// Lossless by construction: a_i is cut to p_i and the residual is what is left, so
/// that the output law is off only by how far the computed a is from the true one,
/// about 1e-14 in total; [`SlotWeightPlan::law`] measures it by another integral.
/// Whether the solve converged decides acceptance alone, and
/// [`SlotWeightPlan::status`] says so.
///
/// # Complexity
/// O(V log V) to sort, then O(V): four polynomials of degree 12 a token, and Newton's
/// method on some hundred groups; some 5 ms of one core at V = 49,152.
/// [`SlotWeightPlan::emit`] is O(n).
///
/// # Source
/// The split by H is complementary slackness of Hu et al., eq. 8. The weights and
/// all of the method are specgap's.
///
/// # Example
/// ```
/// use specgap::distribution::{Draft, Target};
/// use specgap::plan::{SlotWeightPlan, SlotWeightSettings, SlotWeightStatus};
/// let (p, q) = (Target::new(&[0.5, 0.5])?, Draft::new(&[0.75, 0.25])?);
/// let plan = SlotWeightPlan::solve(&p, &q, 2, &SlotWeightSettings::default())?;
/// assert_eq!(plan.status(), SlotWeightStatus::Optimal);
/// assert!((plan.acceptance_rate().value() - 15.0 / 16.0).abs() < 1e-12);
/// // Token 1 is short, so a pair that has it always emits it.
/// assert_eq!(plan.accepted(&[0, 1]), [0.0, 1.0]);
/// assert!(plan.law(&p, &q).l1_error < 1e-12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct SlotWeightPlan {
    drafts: usize,
    weight: Vec<f64>,
    level: Vec<u32>,
    /// Whether level 0 has a slot that rejects.
    rejecting: bool,
    thinning: Thinning,
    optimum: Known,
    acceptance: Known,
    shortfall: f64,
    iterations: usize,
    groups: usize,
    levels: usize,
    status: SlotWeightStatus,
}

/// One level, solved for every token.
struct Solved {
    weights: Vec<f64>,
    emitted: Vec<f64>,
    iterations: usize,
    groups: usize,
}

impl SlotWeightPlan {
    /// Solves the plan of `drafts` i.i.d. drafts.
    ///
    /// # Errors
    /// Rows of different length.
    pub fn solve(
        target: &Target,
        draft: &Draft,
        drafts: usize,
        settings: &SlotWeightSettings,
    ) -> Result<Self, VocabularyMismatch> {
        let rising = Rising::sorted(target, draft)?;
        Ok(Self::solve_in_order(target, &rising, drafts, settings))
    }

    /// [`Self::solve`] with the chain of the same rows.
    fn solve_in_order(
        target: &Target,
        rising: &Rising,
        drafts: usize,
        settings: &SlotWeightSettings,
    ) -> Self {
        let p = target.probabilities();
        let drafts = drafts.max(1);
        let chain = Chain::new(rising, drafts, settings.tie);
        let mut plan = Self {
            drafts,
            weight: vec![0.0; p.len()],
            level: vec![NO_LEVEL; p.len()],
            rejecting: chain
                .spans
                .first()
                .is_some_and(|span| span.rejected.is_some()),
            thinning: Thinning::new(&[], &[]).0,
            optimum: chain.optimum.clone(),
            acceptance: Known::rate(0.0, 0.0, 0.0),
            shortfall: 0.0,
            iterations: 0,
            groups: 0,
            levels: chain.spans.len(),
            status: SlotWeightStatus::Optimal,
        };
        let mut emitted = vec![0.0; p.len()];
        for (index, span) in (0u32..).zip(&chain.spans) {
            let tokens = &rising.order[span.positions.clone()];
            let solved = solve_span(span, rising, drafts, settings);
            let own = solved.weights.iter().zip(&solved.emitted);
            let (weight, level) = (&mut plan.weight[..], &mut plan.level[..]);
            for (&token, (&own_weight, &mass)) in tokens.iter().zip(own) {
                weight[token as usize] = own_weight;
                level[token as usize] = index;
                emitted[token as usize] = mass;
            }
            plan.iterations += solved.iterations;
            plan.groups += solved.groups;
        }
        plan.finish(p, &emitted, settings);
        plan
    }

    /// Thins what is emitted too often, and leaves the rest to the residual.
    fn finish(&mut self, target: &[f64], emitted: &[f64], settings: &SlotWeightSettings) {
        let (thinning, value) = Thinning::new(target, emitted);
        let error = value * (QUADRATURE_ERROR + 256.0 * f64::EPSILON)
            + self.drafts as f64 * bins::ERROR
            + 4.0 * f64::EPSILON;
        self.acceptance = Known::rate(value, value - error, value + error);
        self.shortfall = (self.optimum.upper() - self.acceptance.lower()).max(0.0);
        self.status = if self.shortfall <= settings.tolerance {
            SlotWeightStatus::Optimal
        } else {
            SlotWeightStatus::Short
        };
        self.thinning = thinning;
    }

    /// n.
    pub fn drafts(&self) -> usize {
        self.drafts
    }

    /// V.
    pub fn vocab(&self) -> usize {
        self.weight.len()
    }

    /// alpha*, by the ratio scan.
    pub fn optimal_acceptance_rate(&self) -> &Known {
        &self.optimum
    }

    /// Acceptance of the plan, with quadrature and rounding in the enclosure.
    pub fn acceptance_rate(&self) -> &Known {
        &self.acceptance
    }

    /// Most that acceptance can be below alpha*, all error bounds included.
    pub fn shortfall(&self) -> f64 {
        self.shortfall
    }

    /// Newton and fixed-point steps, summed over the levels.
    pub fn iterations(&self) -> usize {
        self.iterations
    }

    /// Groups of tokens that the steps ran on.
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// Levels: 2 in general, 1 if alpha* = 1, more where P - Q has ties.
    pub fn levels(&self) -> usize {
        self.levels
    }

    /// How the solve ended.
    pub fn status(&self) -> SlotWeightStatus {
        self.status
    }

    /// Law of the output after a rejection, V entries.
    pub fn residual(&self) -> &std::sync::Arc<[f64]> {
        &self.thinning.residual
    }

    fn level_of(&self, token: u32) -> Option<u32> {
        let level = self.level.get(token as usize).copied()?;
        (level != NO_LEVEL && self.weight[token as usize] > 0.0).then_some(level)
    }

    /// Highest level that the tuple touches, and the weight there.
    fn totals(&self, tuple: &[u32]) -> Option<(u32, f64)> {
        let level = tuple
            .iter()
            .filter_map(|&token| self.level_of(token))
            .max()?;
        let reject = if level == 0 && self.rejecting {
            1.0
        } else {
            0.0
        };
        let total = tuple
            .iter()
            .filter(|&&token| self.level_of(token) == Some(level))
            .map(|&token| self.weight[token as usize])
            .sum::<f64>();
        Some((level, reject + total))
    }

    /// Probability that each draft of the tuple is emitted; the rest of 1 goes to
    /// the residual. O(n).
    pub fn accepted(&self, tuple: &[u32]) -> Vec<f64> {
        let mut accepted = vec![0.0; tuple.len()];
        if let Some((level, total)) = self.totals(tuple) {
            for (share, &token) in accepted.iter_mut().zip(tuple) {
                if self.level_of(token) == Some(level) {
                    *share =
                        self.thinning.keep(token as usize) * (self.weight[token as usize] / total);
                }
            }
        }
        accepted
    }

    /// Runs the plan once: O(n), plus O(log V) after a rejection.
    pub fn emit(&self, tuple: &[u32], rng: &mut dyn RngCore) -> Emission {
        let Some((level, total)) = self.totals(tuple) else {
            return self.thinning.reject(rng);
        };
        let competing = (0..).zip(tuple.iter().copied());
        let competing = competing.filter(|&(_, token)| self.level_of(token) == Some(level));
        self.thinning.emit(competing, &self.weight, total, rng)
    }
}

fn solve_span(
    span: &Span,
    rising: &Rising,
    drafts: usize,
    settings: &SlotWeightSettings,
) -> Solved {
    let mass = &rising.mass[span.positions.clone()];
    let wanted: Vec<f64> = rising.ratio[span.positions.clone()]
        .iter()
        .map(|ratio| ratio.min(span.cut))
        .collect();
    let nothing = Solved {
        weights: vec![0.0; mass.len()],
        emitted: vec![0.0; mass.len()],
        iterations: 0,
        groups: 0,
    };
    // Less than rounding: such tuples are rejected.
    if span.touched.is_nan() || span.touched <= 1e-18 {
        return nothing;
    }
    if span.rejected.is_none() && mass.len() == 1 {
        return Solved {
            weights: vec![1.0],
            emitted: vec![span.touched],
            iterations: 0,
            groups: 1,
        };
    }
    let mut level = Level {
        mass: Vec::new(),
        ratio: Vec::new(),
        base: span.base,
        inside: span.inside,
        drafts,
        rejected: span.rejected,
    };
    let mut solved = nothing;
    let mut best = f64::INFINITY;
    let mut grouping = settings.grouping;
    let coordinates = bins::coordinates(&level, &wanted);
    let mut logs = vec![0.0; mass.len()];
    let mut weights = vec![0.0; mass.len()];
    for _ in 0..3 {
        let groups = Groups::new(&level, mass, &wanted, &coordinates, grouping);
        level.mass = groups.mass.clone();
        level.ratio = groups.ratio.clone();
        let (state, effort) = level.solve(settings.level_tolerance, settings.iterations);
        solved.iterations += effort.iterations;
        solved.groups = groups.mass.len();
        // Weights of all tokens: along the curve of the groups, then one Newton
        // step each.
        let (_, slope) = level.emission(&state.field, &state.weights);
        Curve::new(&level, &groups, &state, &slope).fill(&coordinates, &mut logs);
        let mut field: Field = state.field;
        let mut tokens = Bins::new(&logs);
        let mut residual = f64::INFINITY;
        for _ in 0..3 {
            tokens.improve(&level, &field, &coordinates, &mut logs);
            bins::exponentials(&logs, &mut weights);
            tokens = Bins::new(&logs);
            let nodes = level.nodes(&weights);
            let phi = tokens.transform(&nodes, mass, &logs);
            field = level.field_at(nodes, phi);
            let mut emitted = tokens.emission(&level, &field, &logs, &weights);
            let now = bins::emitted(mass, &wanted, &mut emitted);
            if now < best {
                best = now;
                solved.weights.copy_from_slice(&weights);
                solved.emitted = emitted;
            }
            if now <= 4.0 * settings.level_tolerance || now > 0.2 * residual {
                break;
            }
            residual = now;
        }
        if best <= 4.0 * settings.level_tolerance || groups.mass.len() >= mass.len() {
            break;
        }
        grouping *= 1e-3;
    }
    solved
}

/// Bound on |log w| of a token; the exponential is made for a little more.
const LARGEST_LOG: f64 = 680.0;

/// log w as a function of the coordinate: cubic between groups, a straight line of
/// slope 1 beyond them.
struct Curve {
    at: Vec<f64>,
    value: Vec<f64>,
    slope: Vec<f64>,
}

impl Curve {
    fn new(level: &Level, groups: &Groups, state: &level::State, slope: &[f64]) -> Self {
        let (low, up) = level.range();
        Self {
            at: groups.coordinate.clone(),
            value: state.weights.iter().map(|weight| weight.ln()).collect(),
            slope: groups
                .ratio
                .iter()
                .zip(slope)
                .map(|(ratio, slope)| {
                    let rate = slope * (1.0 / (ratio - low) + 1.0 / (up - ratio));
                    if rate.is_finite() && rate > 0.0 {
                        (1.0 / rate).min(10.0)
                    } else {
                        1.0
                    }
                })
                .collect(),
        }
    }

    /// The curve at ascending coordinates; out of order they take longer. Logarithms stay
    /// within what exponentials are made for.
    fn fill(&self, coordinates: &[f64], logs: &mut [f64]) {
        let mut start = 0;
        let mut next = 0;
        while start < coordinates.len() {
            let x = coordinates[start];
            while next < self.at.len() && self.at[next] <= x {
                next += 1;
            }
            while next > 0 && self.at[next - 1] > x {
                next -= 1;
            }
            let lower = if next > 0 {
                self.at[next - 1]
            } else {
                f64::NEG_INFINITY
            };
            let upper = self.at.get(next).copied().unwrap_or(f64::INFINITY);
            let inside = |x: &f64| (lower..upper).contains(x);
            let others = coordinates[start + 1..].iter().take_while(|x| inside(x));
            let end = start + 1 + others.count();
            let (from, powers) = self.piece(next);
            cubic(
                from,
                powers,
                &coordinates[start..end],
                &mut logs[start..end],
            );
            start = end;
        }
    }

    /// The curve before the group `next` and after the one before it, in powers of the
    /// distance from a coordinate.
    fn piece(&self, next: usize) -> (f64, [f64; 4]) {
        if next == 0 || next == self.at.len() {
            let end = next.saturating_sub(1);
            return (self.at[end], [self.value[end], 1.0, 0.0, 0.0]);
        }
        let k = next - 1;
        let width = self.at[next] - self.at[k];
        let rise = (self.value[next] - self.value[k]) / width;
        let (a, b) = (self.slope[k], self.slope[next]);
        let square = (3.0 * rise - 2.0 * a - b) / width;
        let cube = ((a + b) - 2.0 * rise) / (width * width);
        (self.at[k], [self.value[k], a, square, cube])
    }
}

#[multiversion(targets = "simd")]
fn cubic(from: f64, [a, b, c, d]: [f64; 4], coordinates: &[f64], logs: &mut [f64]) {
    for (log, x) in logs.iter_mut().zip(coordinates) {
        let t = x - from;
        let value = a + t * (b + t * (c + t * d));
        let value = if value > -LARGEST_LOG {
            value
        } else {
            -LARGEST_LOG
        };
        *log = if value < LARGEST_LOG {
            value
        } else {
            LARGEST_LOG
        };
    }
}
