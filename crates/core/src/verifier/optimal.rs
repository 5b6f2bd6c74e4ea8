//! The verifier that attains alpha*.

use super::{
    Acceptance, ConditionalLaw, Entry, Lossless, OutputLaw, RowAnswer, RowRate, RowRule,
    RowRuleError, Verdict, Verifier, VerifierError, VerifierName, draw_from,
};
use crate::coupling::Rounding;
use crate::optimum::flow::{self, Flow, SolvedFlow};
use crate::optimum::{Capacity, Instance};
use crate::problem::Problem;
use crate::rule::RuleName;
use crate::scheme::SchemeName;
use num_bigint::BigUint;
use rand::RngCore;
use specgap_number::distribution::{Draft, Rational, Target};
use specgap_number::known::Known;
use specgap_number::number::{Number, RunningSum, normalised};
use specgap_plan::plan::{
    MOST_SEQUENTIAL_DRAFTS, PlanSettings, PlanStatus, Rising, TokenPlan, measure,
};
use specgap_row::row::{Row, RowError, sequential_subset};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// The optimal verifier: an optimal transport plan, read as a rule.
///
/// A maximum flow hands the probability D(A) of every set to its tokens. Where a
/// token i is given more than p_i, every one of its shares is cut by the same
/// factor; what stays is S\[A,i\], with `sum over A of S[A,i] <= p_i` and total
/// alpha*. Given X with A(X) = A, the output is i in A with probability
/// `S[A,i]/D(A)`; with the rest, it is drawn from
/// `p_res(i) = p_i - sum over A of S[A,i]`, normalised.
///
/// Lossless for every scheme: what the sets reject in total equals the total of
/// p_res.
///
/// A flow lists sets. Where they are too many ([`flow::LARGEST_PLAN`]), the rule is that of a
/// [`TokenPlan`] if the drafts are i.i.d. or drawn one by one without replacement: it
/// emits draft k with probability w(x_k) over the sum of the weights, and is lossless and
/// within a stated distance of alpha*.
///
/// # Acceptance
/// alpha*. Algorithmic and membership acceptance are equal: a set that rejects
/// holds a token that was given too much by it, and if it also held a token that
/// p still lacks, the flow could be increased through it.
///
/// # Exactness
/// Exact where the flow is; where the flow had to round its capacities, the rule
/// is for `f64` only and off by the stated rounding.
///
/// # Source
/// Hu et al., eq. 7 and 8; SpecHub, Theorem 1 (the extension of a plan on drafts
/// to a coupling) and App. E (the flow, for n = 2).
///
/// # Example
/// ```
/// use specgap_number::distribution::{Draft, Target, format_rational};
/// use specgap_core::problem::Problem;
/// use specgap_core::scheme::WithReplacement;
/// use specgap_core::verifier::{Optimal, Verifier};
/// let scheme = WithReplacement::new(Draft::new(&[0.75, 0.25])?, 2);
/// let problem = Problem::new("bernoulli", Target::new(&[0.5, 0.5])?, scheme)?;
/// let optimal = Optimal::new(&problem)?;
/// assert_eq!(format_rational(optimal.acceptance().membership.rational().unwrap()), "15/16");
/// // The pair {0, 1} never emits token 0: the pair {0, 0} needs all of it.
/// assert_eq!(optimal.conditional(&[0, 1]).accepted, [0.0, 1.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Optimal {
    rule: Rule,
}

#[derive(Debug)]
enum Rule {
    Flow(Box<FlowRule>),
    Weights(Box<WeightRule>),
}

/// The plan of a flow, set by set.
#[derive(Debug)]
struct FlowRule {
    solved: SolvedFlow,
    /// Set by its tokens, ascending.
    index: HashMap<Vec<u32>, usize>,
    float: Plan<f64>,
    exact: OnceLock<Plan<Rational>>,
}

/// The plan of a convex dual, token by token.
#[derive(Debug)]
struct WeightRule {
    plan: TokenPlan,
    problem: Problem,
}

#[derive(Debug)]
struct Plan<M> {
    /// S[A,i]/D(A) by entry of the set family.
    kept: Vec<M>,
    /// What each set rejects, over D(A).
    rejected: Vec<M>,
    residual: Arc<[M]>,
}

fn plan<M: Number, C: Capacity>(instance: &Instance<C>, flow: &Flow<C>) -> Plan<M> {
    let nil = BigUint::default();
    let vocab = instance.demand.len();
    let demand: Vec<BigUint> = instance.demand.iter().map(Capacity::to_big).collect();
    let load: Vec<BigUint> = flow.load.iter().map(Capacity::to_big).collect();
    let mut kept = vec![M::zero(); flow.given.len()];
    let mut rejected = Vec::with_capacity(instance.sets.len());
    for (set, supply) in instance.supply.iter().enumerate() {
        let supply = supply.to_big();
        let mut refused = M::Sum::default();
        if supply == nil || instance.sets.span(set).is_empty() {
            // Rounded away: this set's law does not matter. Or nothing is drafted.
            rejected.push(M::one());
            continue;
        }
        for entry in instance.sets.span(set) {
            let given = flow.given[entry].to_big();
            if given == nil {
                continue;
            }
            let token = instance.sets.tokens()[entry] as usize;
            if load[token] <= demand[token] {
                kept[entry] = M::fraction(&given, &supply);
            } else {
                let whole = &supply * &load[token];
                kept[entry] = M::fraction(&(&given * &demand[token]), &whole);
                let beyond = &load[token] - &demand[token];
                refused.add(&M::fraction(&(&given * beyond), &whole));
            }
        }
        rejected.push(refused.value());
    }
    let lacking: Vec<M> = (0..vocab)
        .map(|token| {
            if demand[token] > load[token] {
                M::fraction(&(&demand[token] - &load[token]), &instance.total)
            } else {
                M::zero()
            }
        })
        .collect();
    let residual = normalised(&lacking).unwrap_or_else(|| {
        demand
            .iter()
            .map(|demand| M::fraction(demand, &instance.total))
            .collect()
    });
    Plan {
        kept,
        rejected,
        residual: residual.into(),
    }
}

fn plan_of<M: Number>(solved: &SolvedFlow) -> Plan<M> {
    match solved {
        SolvedFlow::Native(instance, flow) => plan(instance, flow),
        SolvedFlow::Big(instance, flow) => plan(instance, flow),
    }
}

impl Optimal {
    /// Solves the flow of a problem with at most [`flow::LARGEST_PLAN`] (set, token)
    /// pairs, and beyond that the weights of i.i.d. drafts, or of sequential draws
    /// without replacement.
    ///
    /// # Errors
    /// More pairs than that, where [`Self::by_weights`] has no rule.
    pub fn new(problem: &Problem) -> Result<Self, VerifierError> {
        let entries = flow::plan_size(problem);
        if entries <= flow::LARGEST_PLAN {
            return Ok(Self {
                rule: Rule::Flow(Box::new(FlowRule::new(problem))),
            });
        }
        Self::by_weights(problem, &PlanSettings::default()).ok_or(VerifierError::Size {
            verifier: VerifierName::OPTIMAL,
            entries,
            limit: flow::LARGEST_PLAN,
        })
    }

    /// The rule by weights, whatever the size; `None` if the drafts are of another law than
    /// `with-replacement` and `without-replacement`, or more than
    /// [`MOST_SEQUENTIAL_DRAFTS`](specgap_plan::plan::MOST_SEQUENTIAL_DRAFTS) of the latter.
    pub fn by_weights(problem: &Problem, settings: &PlanSettings) -> Option<Self> {
        let (scheme, target, drafts) = (problem.scheme(), problem.target(), problem.drafts());
        let draft = scheme.draft()?;
        let plan = if scheme.name() == SchemeName::WITH_REPLACEMENT {
            TokenPlan::iid(target, draft, drafts, settings)
        } else if scheme.name() == SchemeName::WITHOUT_REPLACEMENT {
            let subset = sequential_subset(target, draft, drafts).ok()?;
            TokenPlan::sequential(target, draft, drafts, subset, settings)
        } else {
            return None;
        };
        Some(Self {
            rule: Rule::Weights(Box::new(WeightRule {
                plan: plan.ok()?,
                problem: problem.clone(),
            })),
        })
    }

    /// The flow behind the rule, if it is one of a flow.
    pub fn flow(&self) -> Option<&SolvedFlow> {
        match &self.rule {
            Rule::Flow(rule) => Some(&rule.solved),
            Rule::Weights(_) => None,
        }
    }

    /// The weights behind the rule, if it is one by weights.
    pub fn weights(&self) -> Option<&TokenPlan> {
        match &self.rule {
            Rule::Weights(rule) => Some(&rule.plan),
            Rule::Flow(_) => None,
        }
    }
}

impl FlowRule {
    fn new(problem: &Problem) -> Self {
        let solved = flow::solve(problem);
        let sets = match &solved {
            SolvedFlow::Native(instance, _) => &instance.sets,
            SolvedFlow::Big(instance, _) => &instance.sets,
        };
        let index = sets
            .iter()
            .enumerate()
            .map(|(index, set)| (set.to_vec(), index))
            .collect();
        Self {
            float: plan_of(&solved),
            index,
            solved,
            exact: OnceLock::new(),
        }
    }

    fn is_exact(&self) -> bool {
        let rounding = match &self.solved {
            SolvedFlow::Native(instance, _) => instance.rounding,
            SolvedFlow::Big(instance, _) => instance.rounding,
        };
        rounding == Rounding::None
    }

    fn law<M: Number>(&self, plan: &Plan<M>, tuple: &[u32]) -> ConditionalLaw<M> {
        let sets = match &self.solved {
            SolvedFlow::Native(instance, _) => &instance.sets,
            SolvedFlow::Big(instance, _) => &instance.sets,
        };
        let mut set = tuple.to_vec();
        set.sort_unstable();
        set.dedup();
        let mut accepted = vec![M::zero(); tuple.len()];
        let Some(&index) = self.index.get(&set) else {
            // Never drawn under this scheme.
            return ConditionalLaw {
                accepted,
                rejected: M::one(),
                residual: plan.residual.clone(),
            };
        };
        for entry in sets.span(index) {
            let token = sets.tokens()[entry];
            if let Some(position) = tuple.iter().position(|&x| x == token) {
                accepted[position] = plan.kept[entry].clone();
            }
        }
        ConditionalLaw {
            accepted,
            rejected: plan.rejected[index].clone(),
            residual: plan.residual.clone(),
        }
    }
}

impl WeightRule {
    fn conditional(&self, tuple: &[u32]) -> ConditionalLaw<f64> {
        let accepted = self.plan.accepted(tuple);
        let rejected = (1.0 - f64::total(&accepted)).max(0.0);
        ConditionalLaw {
            accepted,
            rejected,
            residual: self.plan.residual().clone(),
        }
    }

    fn note(&self) -> String {
        let plan = &self.plan;
        let (groups, iterations) = (plan.groups(), plan.iterations());
        let shortfall = plan.shortfall();
        match plan.status() {
            PlanStatus::Optimal => format!(
                "slot weights: {groups} groups, {iterations} iterations, within {shortfall:.0e} of \
                 alpha*"
            ),
            PlanStatus::Short => format!(
                "slot weights did not reach their tolerance: lossless, but up to {shortfall:.1e} \
                 below alpha*"
            ),
        }
    }

    fn acceptance(&self) -> Acceptance {
        let rate = self.plan.acceptance_rate();
        let best = self.plan.optimal_acceptance_rate();
        Acceptance {
            algorithmic: rate.clone(),
            // A residual draw may equal a draft only by what rounding left there.
            membership: Known::rate(rate.value(), rate.lower(), rate.upper().max(best.upper())),
            note: Some(self.note()),
        }
    }
}

impl Verifier for Optimal {
    fn name(&self) -> VerifierName {
        VerifierName::OPTIMAL
    }

    fn conditional(&self, tuple: &[u32]) -> ConditionalLaw<f64> {
        match &self.rule {
            Rule::Flow(rule) => rule.law(&rule.float, tuple),
            Rule::Weights(rule) => rule.conditional(tuple),
        }
    }

    fn conditional_exact(&self, tuple: &[u32]) -> Option<ConditionalLaw<Rational>> {
        let Rule::Flow(rule) = &self.rule else {
            return None;
        };
        if !rule.is_exact() {
            return None;
        }
        let plan = rule.exact.get_or_init(|| plan_of(&rule.solved));
        Some(rule.law(plan, tuple))
    }

    fn sample(&self, tuple: &[u32], rng: &mut dyn RngCore) -> Verdict {
        match &self.rule {
            Rule::Flow(_) => draw_from(&self.conditional(tuple), tuple, rng),
            Rule::Weights(rule) => rule.plan.emit(tuple, rng),
        }
    }

    fn acceptance(&self) -> Acceptance {
        let rule = match &self.rule {
            Rule::Flow(rule) => rule,
            Rule::Weights(rule) => return rule.acceptance(),
        };
        Acceptance::same(rule.solved.optimum().rate)
    }

    fn depends_on_set_only(&self) -> bool {
        match &self.rule {
            Rule::Flow(_) => true,
            Rule::Weights(rule) => rule.plan.depends_on_set_only(),
        }
    }

    fn integrated(&self) -> Option<OutputLaw<f64>> {
        let Rule::Weights(rule) = &self.rule else {
            return None;
        };
        let problem = &rule.problem;
        let law = rule.plan.law(problem.target(), problem.scheme().draft()?);
        Some(OutputLaw {
            output: law.output,
            algorithmic: law.acceptance_rate,
            membership: law.acceptance_rate,
        })
    }
}

/// What plans of a row are solved from: the rows, and the tokens of q > 0 by rising p/q.
struct Planned {
    p: Target,
    q: Draft,
    rising: Rising,
}

impl Planned {
    fn of(row: &mut Row<'_>) -> Result<Self, RowError> {
        let rows = row.rows();
        let p = Target::new(rows.target).map_err(RowError::Target)?;
        let q = Draft::new(rows.draft).map_err(RowError::Draft)?;
        let rising = Rising::sorted(&p, &q);
        Ok(Self { p, q, rising })
    }
}

/// Answers by the rows of a plan, which serve further numbers of drafts.
fn planned(
    row: &mut Row<'_>,
    answer: impl FnOnce(&Planned) -> Result<RowAnswer, RowRuleError>,
) -> Result<RowAnswer, RowRuleError> {
    let planned = match row.memo().take::<Planned>() {
        Some(planned) => planned,
        None => Box::new(Planned::of(row)?),
    };
    let answer = answer(&planned);
    row.memo().keep(planned);
    answer
}

fn iid_plan(row: &mut Row<'_>, drafts: usize, measures: bool) -> Result<RowAnswer, RowRuleError> {
    let settings = PlanSettings::default();
    planned(row, |Planned { p, q, rising }| {
        if measures {
            let solve = || TokenPlan::iid_in_order(p, q, rising, drafts, &settings);
            return Ok(measure(p, q, solve)?.into());
        }
        let started = Instant::now();
        let attained = TokenPlan::attained_by_iid((p, q), rising, drafts, &settings)?;
        Ok(RowAnswer::of_solve(
            &attained,
            started.elapsed().as_secs_f64(),
        ))
    })
}

fn sequential_plan(
    row: &mut Row<'_>,
    drafts: usize,
    measures: bool,
) -> Result<RowAnswer, RowRuleError> {
    let settings = PlanSettings::default();
    planned(row, |Planned { p, q, .. }| {
        let solve = || -> Result<TokenPlan, RowRuleError> {
            let subset = sequential_subset(p, q, drafts)?;
            Ok(TokenPlan::sequential(p, q, drafts, subset, &settings)?)
        };
        if measures {
            return Ok(measure(p, q, solve)?.into());
        }
        let started = Instant::now();
        let plan = solve()?;
        let seconds = started.elapsed().as_secs_f64();
        Ok(RowAnswer::of_solve(plan.attained(), seconds))
    })
}

/// Plans by weights, for the laws that have them at large vocabularies.
fn on_row(scheme: SchemeName) -> Option<RowRule> {
    if scheme == SchemeName::WITH_REPLACEMENT {
        return Some(RowRule {
            // docs/theory/plans.md, sections 2 and 3.
            by_theorem: true,
            ..RowRule::always(RowRate::Planned(iid_plan))
        });
    }
    (scheme == SchemeName::WITHOUT_REPLACEMENT).then_some(RowRule {
        most: MOST_SEQUENTIAL_DRAFTS,
        slow: Some(
            "it accepts alpha*, which is measured; solving its plans, which --sequential-plans does, \
             takes longer than everything else together",
        ),
        // There are such weights; that the solver's errors keep their allowances is tested.
        ..RowRule::always(RowRate::Planned(sequential_plan))
    })
}

impl VerifierName {
    /// [`Optimal`]
    pub const OPTIMAL: Self = Self(&ENTRY);
}

/// [`Optimal`] in the table of verifiers.
pub const ENTRY: Entry = Entry {
    rule: RuleName::OPTIMAL,
    acceptance: "alpha*; at any vocabulary for i.i.d. drafts and up to 8 sequential draws",
    lossless: Lossless::Always,
    build: |problem, _| Ok(Box::new(Optimal::new(problem)?)),
    on_row,
    at_token: |_| {
        Err(
            "its plan says which token is put out for a set of drafts, and not through which \
             draft; sets with a draft twice have no answer",
        )
    },
    attains: |_| true,
    compared_with: &[],
    by_default: true,
};
