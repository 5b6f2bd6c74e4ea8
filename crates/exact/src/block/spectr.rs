//! SpecTr: several drafts, verified one position at a time.

use super::law::{BlockEntry, BlockVerifier, Outcomes, block_entry, going_on};
use specgap_core::problem::{BlockProblem, Conditionals, Problem};
use specgap_core::scheme::WithReplacement;
use specgap_core::tree::{Node, TokenTree};
use specgap_core::verifier::{Arithmetic, Verifier, VerifierName, verifier};
use specgap_number::distribution::{Draft, Target, token_id};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// SpecTr (Algorithm 3): at each depth the drafts that agree with the output so
/// far compete for the next token; those that match the chosen one go on.
///
/// The drafts still in the race at a prefix have next tokens that are i.i.d.
/// from q(. | prefix), whatever happened before, so every position is a
/// single-step problem with as many drafts as are left, and the whole is
/// lossless for any rule that is lossless for i.i.d. drafts:
/// [`VerifierName::K_SEQ`] in the paper, [`VerifierName::OPTIMAL`], or another of
/// [`VERIFIERS`](specgap_core::verifier::VERIFIERS). `E[tau]` counts tokens that the rule
/// *accepted*; a corrected token that happens to equal a rejected draft ends the block
/// all the same.
///
/// With [`VerifierName::OPTIMAL`] the plan at each position is one of possibly
/// many, found by maximum flow; `E[tau]` may depend on which.
///
/// # Exactness
/// That of the rule. Where it takes no i.i.d. drafts, or has no exact law and one is asked
/// for, the output is undefined, which counts as wrong.
///
/// Source: Sun et al., "SpecTr", Algorithms 2 and 3. p is the target here.
#[derive(Clone, Debug)]
pub struct SpecTr {
    rule: VerifierName,
    drafts: usize,
    target: Conditionals<Target>,
    draft: Conditionals<Draft>,
    steps: RefCell<Steps>,
}

/// Rules made so far, by prefix and number of drafts left.
type Steps = BTreeMap<(Node, usize), Option<Rc<dyn Verifier>>>;

impl SpecTr {
    /// Takes a rule at every position, for `drafts` blocks of a problem.
    pub fn new(problem: &BlockProblem, rule: VerifierName, drafts: usize) -> Self {
        Self {
            rule,
            drafts,
            target: problem.target().clone(),
            draft: problem.draft().clone(),
            steps: RefCell::default(),
        }
    }

    /// The rule at a prefix with some drafts left.
    fn step(&self, prefix: &[u32], node: Node, drafts: usize) -> Option<Rc<dyn Verifier>> {
        if let Some(step) = self.steps.borrow().get(&(node, drafts)) {
            return step.clone();
        }
        let step = self.rule_after(prefix, drafts);
        let mut steps = self.steps.borrow_mut();
        steps.insert((node, drafts), step.clone());
        step
    }

    fn rule_after(&self, prefix: &[u32], drafts: usize) -> Option<Rc<dyn Verifier>> {
        let target = self.target.get(prefix)?.clone();
        let scheme = WithReplacement::new(self.draft.get(prefix)?.clone(), drafts);
        let problem = Problem::new("position", target, scheme).ok()?;
        verifier(self.rule, &problem).ok().map(Rc::from)
    }

    fn descend<T: Arithmetic>(
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
        let prefix = tree.tokens(node);
        let token_of = |&block: &usize| token_id(tree.token_at(tree.leaf(block), node.depth));
        let tokens: Vec<u32> = alive.iter().map(token_of).collect();
        let step = self.step(&prefix, node, alive.len());
        let Some(law) = step.and_then(|rule| T::conditional(rule.as_ref(), &tokens)) else {
            outcomes.stop(node, reached, None);
            return;
        };
        let mut shares: BTreeMap<u32, T> = BTreeMap::new();
        for (&token, share) in tokens.iter().zip(&law.accepted) {
            shares.entry(token).or_insert_with(T::zero).gain(share);
        }
        outcomes.stop(node, &reached.times(&law.rejected), Some(&law.residual));
        for (token, share) in shares {
            let reached = reached.times(&share);
            if !reached.is_nil() {
                let token = token as usize;
                let alive = going_on(tree, (node, token), alive);
                self.descend(tree, tree.child(node, token), &alive, &reached, outcomes);
            }
        }
    }
}

impl<T: Arithmetic> BlockVerifier<T> for SpecTr {
    fn drafts(&self) -> usize {
        self.drafts
    }

    fn verify(&self, tree: &TokenTree<T>, blocks: &[usize], outcomes: &mut Outcomes<'_, T>) {
        self.descend(tree, Node::ROOT, blocks, &T::one(), outcomes);
    }
}

/// Its factor is a root of a polynomial.
pub(super) const K_SEQ: BlockEntry = BlockEntry {
    is_exact: false,
    ..block_entry!(SPECTR_K_SEQ, |problem, drafts| {
        Some(Box::new(SpecTr::new(problem, VerifierName::K_SEQ, drafts)))
    })
};

pub(super) const OPTIMAL: BlockEntry = BlockEntry {
    note: Some("one optimal plan a position; others may give another E[tau]"),
    ..block_entry!(SPECTR_OPTIMAL, |problem, drafts| {
        Some(Box::new(SpecTr::new(
            problem,
            VerifierName::OPTIMAL,
            drafts,
        )))
    })
};
