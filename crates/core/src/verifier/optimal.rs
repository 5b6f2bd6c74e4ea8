//! The verifier that attains alpha*.

use super::level::{iid_on_row, straddle_of};
use super::{
    Acceptance, ConditionalLaw, Entry, Level, Lossless, OutputLaw, Verdict, Verifier,
    VerifierError, VerifierName, draw_from,
};
use crate::coupling::{Rounding, distinct};
use crate::optimum::flow::{self, Flow, SolvedFlow};
use crate::optimum::{Capacity, Instance};
use crate::problem::Problem;
use crate::rule::RuleName;
use crate::scheme::{SetFamily, Straddle};
use num_bigint::BigUint;
use rand::RngCore;
use specgap_number::distribution::Rational;
use specgap_number::number::{Number, RunningSum, normalised};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

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
/// A flow lists sets. Where they are too many ([`flow::LARGEST_PLAN`]), the rule is [`Level`] if
/// the drafts are i.i.d.
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
    Level(Box<Level>),
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
    let share = |mass: &BigUint| M::fraction(mass, &instance.total);
    let lacking = |(demand, load): (&BigUint, &BigUint)| match demand > load {
        true => share(&(demand - load)),
        false => M::zero(),
    };
    let lacking: Vec<M> = demand.iter().zip(&load).map(lacking).collect();
    let residual = normalised(&lacking);
    let residual = residual.unwrap_or_else(|| demand.iter().map(share).collect());
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

/// The sets of a flow, and how their masses were rounded.
fn sets(solved: &SolvedFlow) -> (&SetFamily, Rounding) {
    match solved {
        SolvedFlow::Native(instance, _) => (&instance.sets, instance.rounding),
        SolvedFlow::Big(instance, _) => (&instance.sets, instance.rounding),
    }
}

impl Optimal {
    /// Solves the flow of a problem with at most [`flow::LARGEST_PLAN`] (set, token)
    /// pairs, of strata [`flow::LARGEST_PLAN_OF_STRATA`]; beyond that it is [`Level`].
    ///
    /// # Errors
    /// More pairs than that, of drafts whose optimum that rule does not reach.
    pub fn new(problem: &Problem) -> Result<Self, VerifierError> {
        let entries = flow::plan_size(problem);
        let straddle = straddle_of(problem.scheme().name());
        let largest = match straddle {
            Some(_) => flow::LARGEST_PLAN_OF_STRATA,
            None => flow::LARGEST_PLAN,
        };
        if entries <= largest {
            return Ok(Self {
                rule: Rule::Flow(Box::new(FlowRule::new(problem))),
            });
        }
        // Passes over strata that share a token may stay below the optimum.
        let level = match straddle {
            Some(Straddle::Independent) => None,
            _ => Level::new(problem).ok(),
        };
        let too_large = || VerifierError::Size(VerifierName::OPTIMAL, entries, largest);
        let rule = Rule::Level(Box::new(level.ok_or_else(too_large)?));
        Ok(Self { rule })
    }
}

impl FlowRule {
    fn new(problem: &Problem) -> Self {
        let solved = flow::solve(problem);
        let sets = sets(&solved).0.iter().enumerate();
        let index = sets.map(|(index, set)| (set.to_vec(), index)).collect();
        Self {
            float: plan_of(&solved),
            index,
            solved,
            exact: OnceLock::new(),
        }
    }

    fn law<M: Number>(&self, plan: &Plan<M>, tuple: &[u32]) -> ConditionalLaw<M> {
        let (sets, _) = sets(&self.solved);
        let set = distinct(tuple);
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

impl Verifier for Optimal {
    fn name(&self) -> VerifierName {
        VerifierName::OPTIMAL
    }

    fn conditional(&self, tuple: &[u32]) -> ConditionalLaw<f64> {
        match &self.rule {
            Rule::Flow(rule) => rule.law(&rule.float, tuple),
            Rule::Level(rule) => rule.conditional(tuple),
        }
    }

    fn conditional_exact(&self, tuple: &[u32]) -> Option<ConditionalLaw<Rational>> {
        let Rule::Flow(rule) = &self.rule else {
            return None;
        };
        if sets(&rule.solved).1 != Rounding::None {
            return None;
        }
        let plan = rule.exact.get_or_init(|| plan_of(&rule.solved));
        Some(rule.law(plan, tuple))
    }

    fn sample(&self, tuple: &[u32], rng: &mut dyn RngCore) -> Verdict {
        match &self.rule {
            Rule::Flow(_) => draw_from(&self.conditional(tuple), tuple, rng),
            Rule::Level(rule) => rule.sample(tuple, rng),
        }
    }

    fn acceptance(&self) -> Acceptance {
        let rule = match &self.rule {
            Rule::Flow(rule) => rule,
            Rule::Level(rule) => return rule.acceptance(),
        };
        Acceptance::same(rule.solved.optimum().rate)
    }

    fn depends_on_set_only(&self) -> bool {
        match &self.rule {
            Rule::Flow(_) => true,
            Rule::Level(_) => false,
        }
    }

    fn integrated(&self) -> Option<OutputLaw<f64>> {
        match &self.rule {
            Rule::Flow(_) => None,
            Rule::Level(rule) => rule.integrated(),
        }
    }
}

/// [`Optimal`] in the table of verifiers.
pub const ENTRY: Entry = Entry {
    rule: RuleName::OPTIMAL,
    acceptance: "alpha*; of i.i.d. drafts that of level, at any vocabulary",
    lossless: Lossless::Always,
    build: |problem, _| Ok(Box::new(Optimal::new(problem)?)),
    on_row: iid_on_row,
    at_token: |_| {
        Err(
            "its plan says which token is put out for a set of drafts, and not through which \
             draft; sets with a draft twice have no answer",
        )
    },
    attains: |_| true,
    compared_with: &[],
    // Of i.i.d. drafts it is level, which is.
    by_default: false,
};
