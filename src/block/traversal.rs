//! Verification of a tree of drafts from the leaves to the root.

use super::law::{BlockVerifier, Outcomes, normalised};
use super::single_draft::residual;
use crate::tree::{Node, Probability, TokenTree};

/// Traversal verification of the tree that K i.i.d. blocks make, leaves first.
///
/// # Algorithm
/// Blocks are merged into a tree of prefixes. A node v is visited with a ratio
/// r, the probability with which it has to be kept, and the laws P of its next
/// token and Q of the drafts' next tokens, at first p(.|v) and q(.|v). Its
/// children are taken in the order in which the drafts were drawn. Child x is
/// visited with ratio min(1, r P(x)/Q(x)). If it is refused, then with
/// Z = sum of (r P - Q)+
///
/// ```text
/// r <- Z / (Z + 1 - r)      P <- (r P - Q)+ / Z      Q <- Q without x, normalised
/// ```
///
/// and the next child is taken. When no child is left, v itself is kept with
/// probability r, and then the next token follows P. A leaf is kept with its r.
///
/// # Why it is lossless
/// Claim: given that v is reached, and averaged over the drafts below v, it is
/// kept with probability r and then continued as P and p say. Child x, drawn
/// from Q, is kept with min(1, r P(x)/Q(x)), so the mass of outputs through it
/// is min(Q(x), r P(x)); with the rest, 1 - sum of min(Q, rP) = Z + 1 - r, the
/// mass still owed is (r P - Q)+, which is the claim with the new r and P. Given
/// x and *which* of the drafts begin with it, the others are i.i.d. from Q
/// without x, whatever happened below x, and the new r and P do not depend on x:
/// so the claim holds for the drafts that are left. At the root r stays 1.
///
/// On a chain (K = 1) this is [`Block`](super::Block), step for step.
///
/// # Source
/// The principle is that of traversal verification (arXiv 2505.12398). The rule
/// above, with merged i.i.d. blocks, was derived here and is proved above; it
/// was not compared with that paper's listing line by line.
#[derive(Clone, Copy, Debug)]
pub struct Traversal {
    drafts: usize,
}

impl Traversal {
    /// For `drafts` blocks.
    pub fn new(drafts: usize) -> Self {
        Self { drafts }
    }
}

/// Visits a node with the drafts that pass it; returns the probability that the
/// node is refused, given that it was reached.
fn visit<T: Probability>(
    tree: &TokenTree<T>,
    node: Node,
    drafts: &[usize],
    ratio: T,
    reached: &T,
    outcomes: &mut Outcomes<'_, T>,
) -> T {
    if node.depth == tree.length() {
        outcomes.stop(node, &reached.times(&ratio), tree.target_next(node));
        return T::one().minus(&ratio);
    }
    let Some(p) = tree.target_next(node) else {
        return T::zero();
    };
    let (mut p, mut q) = (p.to_vec(), tree.draft_next(node).to_vec());
    let mut ratio = ratio;
    let mut left = T::one();
    let mut waiting = drafts.to_vec();
    while let Some(&first) = waiting.first() {
        let prefix_of = |block: usize| {
            let index = block;
            let depth = tree.length();
            tree.ancestor(Node { depth, index }, node.depth + 1)
        };
        let child = prefix_of(first);
        let token = tree.last_token(child);
        let (same, others): (Vec<usize>, Vec<usize>) = waiting
            .into_iter()
            .partition(|&block| prefix_of(block) == child);
        waiting = others;
        let own = ratio.times(&p[token]).over(&q[token]).smaller(&T::one());
        let reaching = reached.times(&left);
        let refused = visit(tree, child, &same, own, &reaching, outcomes);
        left = left.times(&refused);
        if left.is_nil() {
            return T::zero();
        }
        let rest = residual(&ratio, &p, &q);
        let mass = T::total(&rest);
        let spent = mass.plus(&T::one().minus(&ratio));
        ratio = if spent.is_nil() {
            T::one()
        } else {
            mass.over(&spent)
        };
        match normalised(rest) {
            Some(next) => p = next,
            // Nothing is owed: the node is refused, whatever else was drafted.
            None => {
                let refuse = T::one().minus(&ratio);
                outcomes.stop(node, &reached.times(&left).times(&ratio), None);
                return left.times(&refuse);
            }
        }
        q[token] = T::zero();
        if !waiting.is_empty() {
            let Some(next) = normalised(q) else {
                return T::zero();
            };
            q = next;
        }
    }
    let keep = left.times(&ratio);
    outcomes.stop(node, &reached.times(&keep), Some(&p));
    left.minus(&keep)
}

impl<T: Probability> BlockVerifier<T> for Traversal {
    fn drafts(&self) -> usize {
        self.drafts
    }

    fn verify(&self, tree: &TokenTree<T>, blocks: &[usize], outcomes: &mut Outcomes<'_, T>) {
        visit(tree, Node::ROOT, blocks, T::one(), &T::one(), outcomes);
    }
}
