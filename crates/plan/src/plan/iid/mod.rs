//! Plans for i.i.d. drafts.
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
//! tuples collapse to one integral. `docs/theory/plans.md` has the derivation and
//! the error analysis.

mod audit;
mod emission;
mod groups;
mod inverse;
mod kernels;
mod near_ties;
mod newton;
mod rising;
mod tier;

pub(super) use audit::emission as audit;
pub use rising::Rising;

use super::log_bins::exponentials;
use super::token_plan::{Attained, Bound, Draws, PlanSettings, SolvedTier, TokenPlan, Unthinned};
use groups::{Curve, Groups};
use kernels::Bins;
use rising::{Span, Tiers};
use specgap_number::distribution::{SplitSum, Target};
use specgap_number::known::Known;
use specgap_number::quadrature::QUADRATURE_ERROR;
use specgap_number::scratch::Scratch;
use tier::Tier;

/// Table and polynomials of [`kernels`] at `f64`: emissions are off by at most n times this in
/// sum. Half of it is e^{-sw} itself, and half its integral where emissions are read back.
const TABLE_ROUNDING: f64 = 2e-15;

/// What the rounding of an emission depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counted {
    /// Nodes in s, the most of a tier.
    nodes: usize,
    /// [`Bins::roundings`], the most of a tier.
    transform: usize,
}

impl Counted {
    fn most(self, other: Self) -> Self {
        Self {
            nodes: self.nodes.max(other.nodes),
            transform: self.transform.max(other.transform),
        }
    }

    /// Bound on the error of what `drafts` drafts are accepted in all, when it is computed as
    /// `accepted`. `docs/theory/plans.md` counts the parts.
    fn acceptance_error(self, accepted: f64, drafts: usize) -> f64 {
        const UNIT: f64 = 0.5 * f64::EPSILON;
        let drafts = drafts as f64;
        let relative = 2.0 * drafts + 3.0 * self.nodes as f64 + 128.0;
        let absolute = drafts * (self.transform as f64 + 12.0) + 138.0;
        accepted * (QUADRATURE_ERROR + relative * UNIT)
            + drafts * (kernels::ERROR + TABLE_ROUNDING)
            + absolute * UNIT
    }

    /// The same as an enclosure.
    fn acceptance(self, accepted: f64, drafts: usize) -> Known {
        Known::rate_within(accepted, self.acceptance_error(accepted, drafts))
    }
}

/// The plan of rows in the order `rising`.
pub(super) fn solve(
    target: &Target,
    rising: &Rising,
    drafts: usize,
    settings: &PlanSettings,
) -> TokenPlan {
    let p = target.probabilities();
    let tiers = Tiers::new(rising, drafts, settings.tie);
    let rejecting = tiers.spans.first();
    let rejecting = rejecting.is_some_and(|span| span.rejected.is_some());
    let mut plan = Unthinned::new(p.len(), Draws::Iid, drafts, drafts, rejecting);
    let mut counted = Counted::default();
    for (index, span) in (0u32..).zip(&tiers.spans) {
        let tokens = &rising.order[span.positions.clone()];
        let (solved, own) = solve_span(span, rising, drafts, settings);
        plan.add(index, tokens, &solved);
        counted = counted.most(own);
    }
    plan.finish(
        p,
        Bound::Optimum(tiers.optimum),
        |accepted| counted.acceptance(accepted, drafts),
        settings.tolerance,
    )
}

/// What that plan accepts, without the plan: its weights are solved and then dropped.
pub(super) fn attained(rising: &Rising, drafts: usize, settings: &PlanSettings) -> Attained {
    let tiers = Tiers::new(rising, drafts, settings.tie);
    let mut accepted = SplitSum::default();
    let (mut iterations, mut counted) = (0, Counted::default());
    for span in &tiers.spans {
        let (solved, own) = solve_span(span, rising, drafts, settings);
        counted = counted.most(own);
        let target = &rising.target[span.positions.clone()];
        kernels::add_accepted(target, &solved.emitted, &mut accepted);
        iterations += solved.iterations;
    }
    let acceptance = counted.acceptance(accepted.value(), drafts);
    let bound = Bound::Optimum(tiers.optimum);
    Attained::new(acceptance, bound, iterations, settings.tolerance)
}

fn solve_span(
    span: &Span,
    rising: &Rising,
    drafts: usize,
    settings: &PlanSettings,
) -> (SolvedTier, Counted) {
    let mass = &rising.mass[span.positions.clone()];
    let cut = |&ratio: &f64| if ratio < span.cut { ratio } else { span.cut };
    let ratios = rising.ratio[span.positions.clone()].iter();
    let wanted: Scratch<f64> = ratios.map(cut).collect();
    let nothing = SolvedTier {
        weights: Scratch::filled(mass.len(), 0.0),
        emitted: Scratch::filled(mass.len(), 0.0),
        iterations: 0,
        groups: 0,
    };
    // Less than rounding: such tuples are rejected.
    if span.touched.is_nan() || span.touched <= 1e-18 {
        return (nothing, Counted::default());
    }
    if span.rejected.is_none() && mass.len() == 1 {
        let alone = SolvedTier {
            weights: vec![1.0].into(),
            emitted: vec![span.touched].into(),
            iterations: 0,
            groups: 1,
        };
        return (alone, Counted::default());
    }
    let mut tier = Tier {
        mass: Vec::new(),
        ratio: Vec::new(),
        base: span.base,
        inside: span.inside,
        drafts,
        rejected: span.rejected,
    };
    let (mut solved, mut counted) = (nothing, Counted::default());
    let mut best = f64::INFINITY;
    let mut grouping = settings.grouping;
    let coordinates = kernels::coordinates(&tier, &wanted);
    let mut logs = Scratch::filled(mass.len(), 0.0);
    let mut weights = Scratch::filled(mass.len(), 0.0);
    for _ in 0..3 {
        let groups = Groups::new(&tier, mass, &wanted, &coordinates, grouping);
        let (start, before) = first_logs(&tier, &groups, grouping, settings);
        solved.iterations += before;
        tier.mass = groups.mass.clone();
        tier.ratio = groups.ratio.clone();
        let (state, iterations) = tier.solve(start, settings.residual, settings.iterations);
        solved.iterations += iterations;
        solved.groups = groups.mass.len();
        // Weights of all tokens: those that fit in the groups' field, then Newton steps in their
        // own.
        let (_, slope) = tier.emission(&state.field, &state.weights);
        let curve = Curve::new(&tier, &groups, &state, &slope);
        inverse::fill(&tier, &state.field, &curve, &coordinates, &mut logs);
        let mut field = state.field;
        let mut residual = f64::INFINITY;
        for step in 0..3 {
            if step > 0 {
                Bins::new(&logs).improve(&tier, &field, &coordinates, &mut logs);
            }
            exponentials(&logs, &mut weights);
            let tokens = Bins::new(&logs);
            let grid = tier.grid(&weights);
            let phi = tokens.transform(&grid, mass, &logs);
            counted = counted.most(Counted {
                nodes: grid.s.len(),
                transform: tokens.roundings(),
            });
            field = tier.field_at(grid, phi);
            let mut emitted = tokens.emission(&tier, &field, &logs, &weights);
            let now = kernels::emitted(mass, &wanted, &mut emitted);
            if now < best {
                best = now;
                std::mem::swap(&mut solved.weights, &mut weights);
                solved.emitted = emitted;
            }
            if now <= 4.0 * settings.residual || now > 0.2 * residual {
                break;
            }
            residual = now;
        }
        if best <= 4.0 * settings.residual || groups.mass.len() >= mass.len() {
            break;
        }
        grouping *= 1e-3;
    }
    (solved, counted)
}

/// Groups from so many on are solved in fewer groups first.
const MANY: usize = 192;

/// How much coarser these are, in mass times width^4.
const COARSER: f64 = 1e5;

/// Sum of |wanted - emitted|, of all that the tier emits, at which these are solved: they
/// are off by more than that from what they stand for.
const COARSE_RESIDUAL: f64 = 1e-8;

/// First log w of the groups of a tier, where they are many: those of groups of groups; and
/// the steps that these took.
fn first_logs(
    tier: &Tier,
    groups: &Groups,
    grouping: f64,
    settings: &PlanSettings,
) -> (Option<Vec<f64>>, usize) {
    if groups.mass.len() < MANY {
        return (None, 0);
    }
    let Groups {
        mass,
        ratio,
        coordinate,
    } = groups;
    let coarse = Groups::new(tier, mass, ratio, coordinate, COARSER * grouping);
    let tier = Tier {
        mass: coarse.mass.clone(),
        ratio: coarse.ratio.clone(),
        ..tier.clone()
    };
    let tolerance = settings.residual.max(COARSE_RESIDUAL);
    let (state, iterations) = tier.solve(None, tolerance, settings.iterations);
    let (_, slope) = tier.emission(&state.field, &state.weights);
    let mut logs = vec![0.0; coordinate.len()];
    Curve::new(&tier, &coarse, &state, &slope).fill(coordinate, &mut logs);
    (Some(logs), iterations)
}

#[cfg(test)]
mod by_hand_tests;
#[cfg(test)]
mod tests;
