//! SpecTr: several drafts, verified one position at a time.

use super::law::{BlockVerifier, Outcomes};
use crate::distribution::{Draft, Target};
use crate::number::{Number, normalised};
use crate::optimum::flow::{self, Flow, SolvedFlow};
use crate::optimum::{Capacity, Instance};
use crate::problem::{BlockProblem, Conditionals, Problem};
use crate::scheme::WithReplacement;
use crate::tree::{Node, TokenTree};
use num_bigint::BigUint;
use num_traits::Zero;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// How SpecTr chooses among the tokens at one position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// k-seq: token after token, each with min(1, p/(rho q)), with the smallest
    /// rho that is lossless.
    KSeq,
    /// A plan that attains the position's optimal acceptance rate.
    Optimal,
}

/// SpecTr (Algorithm 3): at each depth the drafts that agree with the output so
/// far compete for the next token; those that match the chosen one go on.
///
/// The drafts still in the race at a prefix have next tokens that are i.i.d.
/// from q(. | prefix), whatever happened before, so every position is a
/// single-step problem with as many drafts as are left, and the whole is
/// lossless for any lossless selection. `E[tau]` counts tokens the selection
/// *accepted*; a corrected token that happens to equal a rejected draft ends
/// the block all the same.
///
/// With [`Selection::Optimal`] the plan at each position is one of possibly
/// many, found by maximum flow; `E[tau]` may depend on which.
///
/// Source: Sun et al., "SpecTr", Algorithms 2 and 3. p is the target here.
#[derive(Clone, Debug)]
pub struct SpecTr<T> {
    selection: Selection,
    drafts: usize,
    target: Conditionals<Target>,
    draft: Conditionals<Draft>,
    steps: RefCell<Steps<T>>,
}

/// Steps made so far, by prefix and number of drafts left.
type Steps<T> = BTreeMap<(Node, usize), Rc<Step<T>>>;

/// One position with a given number of drafts.
#[derive(Debug)]
struct Step<T> {
    rule: Rule<T>,
    /// Law of the corrected token.
    residual: Option<Vec<T>>,
}

#[derive(Debug)]
enum Rule<T> {
    /// Probability with which each token is accepted when its turn comes, and
    /// with which it is not.
    Sequential(Vec<(T, T)>),
    /// By set of distinct tokens: each token's probability, and that of none.
    Plan(BTreeMap<Vec<u32>, Choice<T>>),
}

#[derive(Debug)]
struct Choice<T> {
    tokens: Vec<(usize, T)>,
    none: T,
}

impl<T: Number> SpecTr<T> {
    /// For `drafts` blocks of a problem.
    pub fn new(problem: &BlockProblem, selection: Selection, drafts: usize) -> Self {
        Self {
            selection,
            drafts,
            target: problem.target().clone(),
            draft: problem.draft().clone(),
            steps: RefCell::default(),
        }
    }

    fn step(&self, tree: &TokenTree<T>, node: Node, drafts: usize) -> Rc<Step<T>> {
        if let Some(step) = self.steps.borrow().get(&(node, drafts)) {
            return Rc::clone(step);
        }
        let planned = match self.selection {
            Selection::KSeq => None,
            Selection::Optimal => self.plan(tree, node, drafts),
        };
        let step = Rc::new(planned.unwrap_or_else(|| sequential(tree, node, drafts)));
        self.steps
            .borrow_mut()
            .insert((node, drafts), Rc::clone(&step));
        step
    }

    /// An optimal plan; `None` cannot happen on a validated problem.
    fn plan(&self, tree: &TokenTree<T>, node: Node, drafts: usize) -> Option<Step<T>> {
        let prefix: Vec<u32> = (1..=node.depth)
            .map(|depth| crate::scheme::token_id(tree.last_token(tree.ancestor(node, depth))))
            .collect();
        let target = self.target.get(&prefix)?.clone();
        let scheme = WithReplacement::new(self.draft.get(&prefix)?.clone(), drafts);
        let problem = Problem::new("position", target, scheme).ok()?;
        Some(match flow::solve(&problem) {
            SolvedFlow::Native(instance, flow) => plan_of(&instance, &flow),
            SolvedFlow::Big(instance, flow) => plan_of(&instance, &flow),
        })
    }

    fn descend(
        &self,
        tree: &TokenTree<T>,
        node: Node,
        alive: &[usize],
        reached: &T,
        outcomes: &mut Outcomes<'_, T>,
    ) {
        if node.depth == tree.length() {
            outcomes.stop(node, reached, tree.target_next(node));
            return;
        }
        let step = self.step(tree, node, alive.len());
        let token_of = |block: usize| {
            let leaf = Node {
                depth: tree.length(),
                index: block,
            };
            tree.last_token(tree.ancestor(leaf, node.depth + 1))
        };
        let tokens: Vec<usize> = alive.iter().map(|&block| token_of(block)).collect();
        let mut shares: BTreeMap<usize, T> = BTreeMap::new();
        let mut none = T::one();
        match &step.rule {
            Rule::Sequential(rates) => {
                for &token in &tokens {
                    let (keep, drop) = &rates[token];
                    let share = none.times(keep);
                    shares.entry(token).or_insert_with(T::zero).gain(&share);
                    none = none.times(drop);
                }
            }
            Rule::Plan(plan) => {
                let mut set: Vec<u32> =
                    tokens.iter().map(|&t| crate::scheme::token_id(t)).collect();
                set.sort_unstable();
                set.dedup();
                if let Some(choice) = plan.get(&set) {
                    shares.extend(choice.tokens.iter().cloned());
                    none = choice.none.clone();
                }
            }
        }
        outcomes.stop(node, &reached.times(&none), step.residual.as_deref());
        for (token, share) in shares {
            let reached = reached.times(&share);
            if !reached.is_nil() {
                let going_on: Vec<usize> = alive
                    .iter()
                    .zip(&tokens)
                    .filter(|&(_, &other)| other == token)
                    .map(|(&block, _)| block)
                    .collect();
                self.descend(tree, tree.child(node, token), &going_on, &reached, outcomes);
            }
        }
    }
}

impl<T: Number> BlockVerifier<T> for SpecTr<T> {
    fn drafts(&self) -> usize {
        self.drafts
    }

    fn verify(&self, tree: &TokenTree<T>, blocks: &[usize], outcomes: &mut Outcomes<'_, T>) {
        self.descend(tree, Node::ROOT, blocks, &T::one(), outcomes);
    }
}

/// k-seq with n drafts: beta = sum of min(q, p/rho); the residual is
/// p - min(q, p/rho) (1 - (1-beta)^n)/beta, which is non-negative exactly if
/// 1 - (1-beta)^n <= rho beta.
fn sequential<T: Number>(tree: &TokenTree<T>, node: Node, drafts: usize) -> Step<T> {
    let (p, q) = (
        tree.target_next(node).unwrap_or_default(),
        tree.draft_next(node),
    );
    let scale = smallest_lossless_scale(p, q, drafts);
    let heard: Vec<T> = p
        .iter()
        .zip(q)
        .map(|(p, q)| p.over(&scale).smaller(q))
        .collect();
    let factor = heard_factor(&T::total(&heard), drafts);
    let residual: Vec<T> = p
        .iter()
        .zip(&heard)
        .map(|(p, heard)| p.excess_over(&factor.times(heard)))
        .collect();
    let rates = heard
        .iter()
        .zip(q)
        .map(|(heard, q)| {
            if q.is_nil() {
                (T::zero(), T::one())
            } else {
                (heard.over(q), q.minus(heard).over(q))
            }
        })
        .collect();
    Step {
        rule: Rule::Sequential(rates),
        residual: normalised(&residual),
    }
}

/// (1 - (1-beta)^n)/beta: the expected number of draws that are looked at.
fn heard_factor<T: Number>(beta: &T, drafts: usize) -> T {
    T::one().excess_over(beta).geometric_sum(drafts)
}

/// The smallest rho in [1, n] with heard_factor(beta(rho)) <= rho, from above:
/// to one unit in the last place in `f64`, on a grid of 2^-20 in rationals
/// (where any larger rho is lossless too, but a little less greedy).
fn smallest_lossless_scale<T: Number>(p: &[T], q: &[T], drafts: usize) -> T {
    let lossless = |scale: &T| {
        let heard: Vec<T> = p
            .iter()
            .zip(q)
            .map(|(p, q)| p.over(scale).smaller(q))
            .collect();
        let beta = T::total(&heard);
        heard_factor(&beta, drafts) <= *scale
    };
    let half = T::fraction(&1u32.into(), &2u32.into());
    let (mut low, mut high) = (
        T::one(),
        T::fraction(&BigUint::from(drafts), &BigUint::from(1u32)),
    );
    if lossless(&low) {
        return low;
    }
    for _ in 0..if T::EXACT { 20 } else { 200 } {
        let middle = low.plus(&high).times(&half);
        if middle <= low || middle >= high {
            break;
        }
        if lossless(&middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

/// A flow hands out every set's mass; what a token holds beyond p is taken back
/// from its sets in proportion.
fn plan_of<T: Number, C: Capacity>(instance: &Instance<C>, flow: &Flow<C>) -> Step<T> {
    let load: Vec<BigUint> = flow.load.iter().map(Capacity::to_big).collect();
    let demand: Vec<BigUint> = instance.demand.iter().map(Capacity::to_big).collect();
    let mut plan = BTreeMap::new();
    for (set, tokens) in instance.sets.iter().enumerate() {
        let supply = instance.supply[set].to_big();
        if supply.is_zero() {
            continue;
        }
        let (mut accepted, mut none) = (Vec::new(), T::zero());
        for (entry, &token) in instance.sets.span(set).zip(tokens) {
            let given = flow.given[entry].to_big();
            if given.is_zero() {
                continue;
            }
            let token = token as usize;
            let kept = (&load[token]).min(&demand[token]);
            let whole = &supply * &load[token];
            accepted.push((token, T::fraction(&(&given * kept), &whole)));
            none.gain(&T::fraction(&(given * (&load[token] - kept)), &whole));
        }
        let choice = Choice {
            tokens: accepted,
            none,
        };
        plan.insert(tokens.to_vec(), choice);
    }
    let residual: Vec<T> = demand
        .iter()
        .zip(&load)
        .map(|(demand, load)| {
            if demand > load {
                T::fraction(&(demand - load), &instance.total)
            } else {
                T::zero()
            }
        })
        .collect();
    Step {
        rule: Rule::Plan(plan),
        residual: normalised(&residual),
    }
}
