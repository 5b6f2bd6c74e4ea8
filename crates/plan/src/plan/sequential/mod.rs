//! Plans for sequential draws without replacement.
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
//! `docs/theory/plans.md`, section 7, has the derivation and the errors.

mod arrivals;
mod audit;
mod bins;
mod emission;
mod groups;
mod kernels;
mod newton;
mod race;
mod tier;
mod time_sums;
mod times;

pub(super) use audit::emission as audit;

use super::token_plan::{Bound, Draws, PlanSettings, SolvedTier, TokenPlan, Unthinned};
use specgap_number::distribution::{
    Draft, PROBABILITY_RELATIVE_ERROR, RatioCut, Target, TwoFloat, compensated_sum,
};
use specgap_number::known::Known;
use specgap_number::scratch::Scratch;
use tier::Tier;
use times::Times;

/// Heavy tokens, handled one by one, at most.
const MOST_HEAVY: usize = 2048;

/// Roundings in the emission of all tokens together, a draft, in units of 2^-52: the sums of a
/// bin and of its polynomials are off by some 145 (`docs/theory/plans.md`, "Rounding, counted"),
/// and the sums over both kinds of nodes, products, powers and exponentials share the rest.
const ROUNDINGS: f64 = 256.0;

/// Less than rounding: such tuples are rejected.
const UNTOUCHED: f64 = 1e-18;

/// The tier of H, in which a slot rejects, and that of all other tokens.
const INNER: u32 = 0;
const OUTER: u32 = 1;

/// Tiers that are solved, with what is known about them.
struct Solved {
    plan: Unthinned,
    /// On the emission of all tokens together.
    error: f64,
    /// Whether that is a bound; else it is tested.
    is_proven: bool,
    bound: Bound,
}

/// The plan whose inner tier is `subset`.
pub(super) fn solve(
    target: &Target,
    draft: &Draft,
    drafts: usize,
    subset: RatioCut,
    settings: &PlanSettings,
) -> TokenPlan {
    let (p, q) = (target.probabilities(), draft.probabilities());
    let support = q.iter().filter(|&&q| q > 0.0).count();
    let solved = if drafts >= support {
        whole_support(p, q, drafts)
    } else if drafts == 1 {
        first_draft(p, q, drafts)
    } else {
        // A plan that is lossless, and far from the one that was asked for.
        race(p, q, drafts, subset, settings).unwrap_or_else(|| Solved {
            is_proven: false,
            ..first_draft(p, q, drafts)
        })
    };
    let known = |accepted| {
        if solved.is_proven {
            Known::rate_within(accepted, solved.error)
        } else {
            Known::estimate(accepted, solved.error)
        }
    };
    (solved.plan).finish(p, solved.bound, known, settings.tolerance)
}

/// Tokens that may be accepted.
fn overlapping<'a>(p: &'a [f64], q: &'a [f64]) -> impl Iterator<Item = (u32, f64, f64)> + 'a {
    let rows = (0u32..).zip(p.iter().zip(q));
    rows.map(|(token, (&p, &q))| (token, p, q))
        .filter(|&(_, p, q)| p > 0.0 && q > 0.0)
}

/// All tokens of positive q are drafted, always.
fn whole_support(p: &[f64], q: &[f64], drafts: usize) -> Solved {
    let mut plan = Unthinned::new(p.len(), Draws::Sequential, drafts, drafts, true);
    let missing = compensated_sum(p.iter().zip(q).filter(|(_, q)| **q == 0.0).map(|(p, _)| *p));
    let (tier, scale) = if missing > 0.0 {
        (INNER, 1.0 / missing)
    } else {
        (OUTER, 1.0)
    };
    let (mut tokens, mut solved) = (Vec::new(), SolvedTier::default());
    for (token, p, _) in overlapping(p, q) {
        tokens.push(token);
        // 1/missing overflows where the other tokens are subnormal.
        solved.weights.push((p * scale).min(1e300 * p));
        solved.emitted.push(p);
    }
    plan.add(tier, &tokens, &solved);
    let error = (8.0 + ROUNDINGS) * f64::EPSILON;
    Solved {
        plan,
        error,
        is_proven: true,
        bound: Bound::Above {
            value: 1.0 - missing,
            error,
        },
    }
}

/// min(p, q) of the first draft.
fn first_draft(p: &[f64], q: &[f64], drafts: usize) -> Solved {
    let mut plan = Unthinned::new(p.len(), Draws::Sequential, drafts, 1, true);
    let (mut tokens, mut solved) = (Vec::new(), SolvedTier::default());
    for (token, _, q) in overlapping(p, q) {
        tokens.push(token);
        solved.weights.push(1.0);
        solved.emitted.push(q);
    }
    plan.add(OUTER, &tokens, &solved);
    let overlap = compensated_sum(p.iter().zip(q).map(|(p, q)| p.min(*q)));
    let error = 2.0 * PROBABILITY_RELATIVE_ERROR + 8.0 * f64::EPSILON;
    Solved {
        plan,
        error,
        is_proven: true,
        bound: Bound::Above {
            value: if drafts == 1 { overlap } else { 1.0 },
            error,
        },
    }
}

/// The general case; `None` if the race lasts too long for `f64`.
fn race(
    p: &[f64],
    q: &[f64],
    drafts: usize,
    subset: RatioCut,
    settings: &PlanSettings,
) -> Option<Solved> {
    let times = Times::new(q, drafts);
    let heavy = q.iter().filter(|&&q| q > 0.0 && times.terms(q).is_none());
    let vocab = q.len();
    if times.missed > 1e-17 || heavy.count() > MOST_HEAVY {
        return None;
    }
    let [mut inner, mut outer] = [0; 2].map(|_| Scratch::with_capacity(vocab));
    let [mut idle, mut in_subset] = [0; 2].map(|_| Scratch::with_capacity(vocab));
    let mut absent = TwoFloat::ZERO;
    let mut held = TwoFloat::ZERO;
    for (token, (&p, &q)) in (0u32..).zip(p.iter().zip(q)) {
        if q == 0.0 {
            continue;
        }
        if p == 0.0 {
            // Never emitted, so it may as well be in H.
            idle.push(q);
            in_subset.push(q);
        } else if subset.contains(token as usize, p, q) {
            inner.push(token);
            in_subset.push(q);
            held += p;
        } else {
            outer.push(token);
            absent += q;
        }
    }
    let inside = Tier::new(&times, drafts, 1.0, (p, q), &inner, &idle, absent.value());
    let outside = Tier::new(&times, drafts, 0.0, (p, q), &outer, &in_subset, 0.0);
    // All tuples, less those of H: P(some draft outside).
    let q_inside = if in_subset.len() < drafts {
        0.0
    } else {
        inside.total
    };
    let mut plan = Unthinned::new(p.len(), Draws::Sequential, drafts, drafts, true);
    for (tier, number, touched) in [
        (&inside, INNER, q_inside),
        (&outside, OUTER, 1.0 - q_inside),
    ] {
        if touched < UNTOUCHED {
            continue;
        }
        let solved = tier.solve(touched, settings.residual, 2 * settings.iterations / 3);
        plan.add(number, &tier.tokens, &solved);
    }
    let lost = (outside.total - 1.0).abs();
    if !plan.is_finite() || lost > 1e-9 {
        return None;
    }
    let error = 2.0 * times.error + ROUNDINGS * drafts as f64 * f64::EPSILON;
    let value = TwoFloat::ONE + held + TwoFloat::from(-q_inside);
    Some(Solved {
        plan,
        error: error + lost,
        is_proven: false,
        bound: Bound::Above {
            value: value.value().min(1.0),
            error: error + 4.0 * PROBABILITY_RELATIVE_ERROR,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::PlanStatus;
    use specgap_number::known::Kind;

    /// Where the race lasts too long for `f64`, the plan is that of one draft, and says that it
    /// is not the one that was asked for.
    #[test]
    fn a_plan_that_is_given_up_is_short_and_an_estimate() {
        let p = [1.0, 8.0, 16.0, 4.0, 2.0].map(|x| x / 31.0);
        let q = [1e-290, 5e-291, 2.5e-291, 1e-291, 1.0];
        let (target, draft) = (Target::new(&p).unwrap(), Draft::new(&q).unwrap());
        let subset = specgap_row::row::sequential_subset(&target, &draft, 4).unwrap();
        let plan = solve(&target, &draft, 4, subset, &PlanSettings::default());
        assert_eq!(plan.status(), PlanStatus::Short);
        assert_eq!(plan.acceptance_rate().kind(), Kind::Estimate);
        assert!((plan.shortfall() - 29.0 / 31.0).abs() < 1e-12);
    }

    /// Two drafts of two tokens: what p has of them is accepted, within the roundings of a plan.
    #[test]
    fn all_of_the_support_is_accepted() {
        let solved = whole_support(&[0.25, 0.25, 0.5], &[0.5, 0.5, 0.0], 2);
        let within = 264.0 * f64::EPSILON;
        assert!(solved.is_proven && solved.error == within);
        let Bound::Above { value, error } = solved.bound else {
            panic!("a bound from above");
        };
        assert_eq!((value, error), (0.5, within));
    }
}
