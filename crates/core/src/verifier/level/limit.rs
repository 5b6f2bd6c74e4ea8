//! The limit of many levels.

use super::laws::{LAWS, straddle_of};
use crate::optimum::ratio_scan;
use crate::problem::Problem;
use crate::rule::RuleName;
use crate::scheme::{SchemeName, Straddle, limit, listed, ordered};
use crate::verifier::{
    Acceptance, ConditionalLaw, Entry, Lossless, OutputLaw, RowAnswer, RowRate, RowRule,
    RowRuleError, Verdict, Verifier, VerifierError, VerifierName,
};
use rand::RngCore;
use specgap_number::distribution::{Draft, Rational, Target, token_id};
use specgap_number::number::{Number, normalised};
use specgap_plan::{ClockPasses, LevelPasses, LevelPlan, Levels};
use specgap_row::{Question, Row};
use std::sync::Arc;
use std::time::Instant;

/// The level rule: tokens with the largest ratio of what is left of p to what is left of q run
/// first, and equal ones stay equal, until nothing is left of one of the two.
///
/// For n i.i.d. drafts in closed form, at any vocabulary; it accepts alpha\*. Drafts compete by
/// clocks: see [`LevelPlan`]. For stratified drafts by passes at levels that fall by steps, made
/// finer until alpha\* is enclosed within 1e-9: see [`LevelPasses`]. For independent drafts, each of
/// its own row, by passes with one clock a token: see [`ClockPasses`].
///
/// # Acceptance
/// Of i.i.d. drafts alpha\* = 1 + P(H) - q(H)^n, H the tokens of q that are not used up at the end
/// (`docs/theory/level-rule.md`, Theorem L1). Of independent strata alpha\* in the limit where no
/// token lies across a cut (Theorem L2); where tokens across cuts are drafted once, alpha\* as
/// far as it was tried; of independent strata with tokens across cuts, which have a clock in
/// each, it may stay below, by what the enclosure of alpha\* says, but never below `level-4` and `rrs`: it
/// is the one of the three that accepts most at p and q, chosen before a draft is seen, and each is
/// lossless. Of independent rows, with one clock a
/// token, alpha\* up to .00003 in all that was tried. Algorithmic and membership acceptance are equal:
/// nothing is left of p on tokens that may be drafted and refused.
///
/// # Exactness
/// The rate of i.i.d. drafts is exact where the ratio scan is, and enclosed elsewhere. The rule
/// has roots of polynomials, or many passes, so its law is in `f64`; it is lossless by
/// construction, as what is put out is cut to p.
///
/// # Source
/// This project's.
///
/// # Example
/// ```
/// use specgap_core::problem::Problem;
/// use specgap_core::scheme::WithReplacement;
/// use specgap_core::verifier::{VerifierName, verifier};
/// use specgap_number::distribution::{Draft, Target};
/// let law = WithReplacement::new(Draft::new(&[0.75, 0.25])?, 2);
/// let problem = Problem::new("bernoulli", Target::new(&[0.5, 0.5])?, law)?;
/// let rule = verifier(VerifierName::LEVEL, &problem)?;
/// assert_eq!(rule.acceptance().membership.value(), 15.0 / 16.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Level {
    problem: Problem,
    rule: Rule,
}

#[derive(Debug)]
enum Rule {
    Iid(Box<LevelPlan>, Draft),
    Rows(Box<ClockPasses>),
    /// With the law of the output where it is no draft.
    Strata(Box<LevelPasses>, Arc<[f64]>),
}

/// Returns what passes leave of p, without the certain tokens, which are drafts.
fn undrafted(passes: &LevelPasses, p: &Target) -> Arc<[f64]> {
    let mut left = passes.residual().to_vec();
    for &token in passes.strata().certain() {
        left[token as usize] = 0.0;
    }
    normalised(&left)
        .unwrap_or_else(|| p.probabilities().to_vec())
        .into()
}

impl Level {
    /// Makes one for `with-replacement`, stratified and independent drafts. O(V log V), and of rows
    /// of their own what [`ClockPasses`] takes.
    ///
    /// # Errors
    /// Any other scheme.
    pub fn new(problem: &Problem) -> Result<Self, VerifierError> {
        let wrong = || VerifierError::scheme(VerifierName::LEVEL, problem);
        let (scheme, target, drafts) = (problem.scheme(), problem.target(), problem.drafts());
        let name = scheme.name();
        let rule = if let Some(straddle) = straddle_of(name) {
            let draft = scheme.draft().ok_or_else(wrong)?;
            let passes = LevelPasses::solve(target, draft, drafts, straddle, Levels::Best);
            passes.ok().map(|passes| {
                let law = undrafted(&passes, target);
                Rule::Strata(Box::new(passes), law)
            })
        } else if name == SchemeName::WITH_REPLACEMENT {
            let draft = scheme.draft().ok_or_else(wrong)?.clone();
            let plan = LevelPlan::iid(target, &draft, drafts).ok();
            plan.map(|plan| Rule::Iid(Box::new(plan), draft))
        } else if LAWS.contains(&name) {
            let rows = (0..drafts).filter_map(|k| scheme.independent_draft(k));
            let rows: Vec<Draft> = rows.cloned().collect();
            let passes = ClockPasses::solve(target, &rows).ok();
            passes.map(|passes| Rule::Rows(Box::new(passes)))
        } else {
            None
        };
        Ok(Self {
            rule: rule.ok_or_else(wrong)?,
            problem: problem.clone(),
        })
    }

    /// H, ascending: the set that the run leaves to bound alpha\* from above by 1 + P(H) - Q(H).
    /// It was found in `f64`; [`crate::certify::upper_bound`] says what it proves.
    pub fn held(&self) -> Vec<usize> {
        let holds = |token: usize| match &self.rule {
            Rule::Iid(plan, _) => plan.holds(token_id(token)),
            Rule::Rows(passes) => passes.holds(token_id(token)),
            Rule::Strata(passes, _) => passes.holds(token_id(token)),
        };
        (0..self.problem.vocab())
            .filter(|&token| holds(token))
            .collect()
    }
}

impl Verifier for Level {
    fn name(&self) -> VerifierName {
        VerifierName::LEVEL
    }

    fn conditional(&self, tuple: &[u32]) -> ConditionalLaw<f64> {
        let (accepted, residual) = match &self.rule {
            Rule::Iid(plan, _) => (plan.accepted(tuple), plan.residual()),
            Rule::Rows(passes) => (passes.accepted(tuple), passes.residual()),
            Rule::Strata(passes, law) => (passes.accepted(tuple), law),
        };
        ConditionalLaw {
            rejected: f64::total(&accepted).complement(),
            accepted,
            residual: residual.clone(),
        }
    }

    fn conditional_exact(&self, _tuple: &[u32]) -> Option<ConditionalLaw<Rational>> {
        None
    }

    fn sample(&self, tuple: &[u32], rng: &mut dyn RngCore) -> Verdict {
        match &self.rule {
            Rule::Iid(plan, _) => plan.emit(tuple, rng),
            Rule::Rows(passes) => passes.emit(tuple, rng),
            Rule::Strata(passes, _) => passes.emit(tuple, rng),
        }
    }

    fn acceptance(&self) -> Acceptance {
        let plan = match &self.rule {
            Rule::Iid(plan, _) => plan,
            Rule::Rows(passes) => return Acceptance::same(passes.acceptance_rate().clone()),
            Rule::Strata(passes, _) => return Acceptance::same(passes.acceptance_rate().clone()),
        };
        let best = ratio_scan::solve(&self.problem).map(|optimum| optimum.rate);
        let exact = best.filter(|rate| rate.rational().is_some());
        Acceptance::same(exact.unwrap_or_else(|| plan.acceptance_rate().clone()))
    }

    fn has_rounded_parameter(&self) -> bool {
        true
    }

    fn integrated(&self) -> Option<OutputLaw<f64>> {
        let Rule::Iid(plan, draft) = &self.rule else {
            return None;
        };
        let law = plan.law(self.problem.target(), draft);
        Some(OutputLaw {
            output: law.output,
            algorithmic: law.acceptance_rate,
            membership: law.acceptance_rate,
        })
    }
}

/// The plan of n i.i.d. drafts on a row; whether its law is measured by another integral.
fn on_row(row: &mut Row<'_>, drafts: usize, measures: bool) -> Result<RowAnswer, RowRuleError> {
    let answer = ordered(row, |p, q, order| {
        let started = Instant::now();
        let plan = LevelPlan::iid_in_order(p, q, order, drafts)?;
        let seconds = started.elapsed().as_secs_f64();
        let law = measures.then(|| plan.law(p, q));
        let rate = plan.acceptance_rate().clone();
        Ok(RowAnswer::of_plan(rate, law, seconds))
    });
    answer?
}

/// The rate of n i.i.d. drafts on a row.
pub(in crate::verifier) fn iid_on_row(scheme: SchemeName) -> Option<RowRule> {
    (scheme == SchemeName::WITH_REPLACEMENT).then_some(RowRule {
        // docs/theory/level-rule.md, Theorem L1.
        by_theorem: true,
        ..RowRule::always(RowRate::Planned(on_row))
    })
}

fn rate(scheme: SchemeName) -> Option<RowRule> {
    if scheme == SchemeName::STRATIFIED {
        return Some(RowRule::of(Question {
            full: |row, drafts| Ok(limit(row, drafts, Straddle::Once)?.acceptance),
            cut: |row, ask| Ok(listed(row, ask, Straddle::Once)?.passes),
        }));
    }
    if scheme == SchemeName::STRATIFIED_INDEPENDENT {
        return Some(RowRule::of(Question {
            full: |row, drafts| Ok(limit(row, drafts, Straddle::Independent)?.acceptance),
            cut: |row, ask| Ok(listed(row, ask, Straddle::Independent)?.passes),
        }));
    }
    iid_on_row(scheme)
}

/// [`Level`] in the table of verifiers.
pub const ENTRY: Entry = Entry {
    rule: RuleName::LEVEL,
    acceptance: "alpha* of i.i.d. drafts in closed form, and of strata and independent drafts by passes",
    lossless: Lossless::Under(LAWS),
    build: |problem, _| Ok(Box::new(Level::new(problem)?)),
    on_row: rate,
    at_token: |_| Err("which draft an output comes through is an integral over clocks"),
    attains: |scheme| scheme == SchemeName::WITH_REPLACEMENT,
    compared_with: &[VerifierName::RRS, VerifierName::K_SEQ],
    by_default: true,
};
