//! Verification of a tree of drafts from the leaves to the root.

use super::law::{BlockEntry, BlockVerifier, Outcomes, block_entry, going_on};
use super::single_draft::residual;
use specgap_core::tree::{Node, TokenTree};
use specgap_number::number::{Number, normalised};

/// Traversal verification of the tree that K i.i.d. blocks make, leaves first.
///
/// # Algorithm
/// Blocks are merged into a tree of prefixes. A node v is visited with a ratio
/// r, the probability with which it has to be kept, and the law P of its next
/// token, at first p(.|v); q(.|v) is the law of the drafts' next tokens. The
/// drafts that pass v are taken in the order in which they were drawn. If the
/// next token x of one was not met before, child x is visited with ratio
/// min(1, r P(x)/q(x)) and with *all* drafts that begin with it. If it is
/// refused, or x was refused before, then with Z = sum of (r P - q)+
///
/// ```text
/// r <- Z / (Z + 1 - r)      P <- (r P - q)+ / Z
/// ```
///
/// and the next draft is taken. When none is left, v itself is kept with
/// probability r, and then the next token follows P. A leaf is kept with its r.
///
/// # Why it is lossless
/// Claim: given that v is reached and which drafts pass it, and averaged over
/// what they say behind v, v is kept with probability r and then continued as P
/// and p say. Let X_1, X_2, ... be the drafts' next tokens, i.i.d. from q. By the
/// claim for child x = X_1, it is kept with min(1, r P(x)/q(x)) whatever the other
/// X_j are, so the mass of outputs through it is min(q(x), r P(x)); with the rest,
/// 1 - sum of min(q, rP) = Z + 1 - r, the mass still owed is (r P - q)+, which is
/// the claim with the new r and P; and X_2, ... are still i.i.d. from q. If X_2
/// equals a refused X_1, its new P is 0, as the rule has it. At the root r stays 1.
///
/// On a chain (K = 1) this is [`Block`](super::Block), step for step; at L = 1 it
/// is recursive rejection sampling.
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
    /// The verifier of `drafts` blocks.
    pub fn new(drafts: usize) -> Self {
        Self { drafts }
    }
}

/// Visits a node with the drafts that pass it; returns the probability that the
/// node is refused, given that it was reached.
fn visit<T: Number>(
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
    let (mut p, q) = (p.to_vec(), tree.draft_next(node));
    let mut ratio = ratio;
    let mut left = T::one();
    let child = |&block: &usize| tree.ancestor(tree.leaf(block), node.depth + 1);
    let children: Vec<Node> = drafts.iter().map(child).collect();
    for (position, &child) in children.iter().enumerate() {
        if !children[..position].contains(&child) {
            let token = tree.last_token(child);
            let same = going_on(tree, (node, token), drafts);
            let own = ratio.times(&p[token]).over(&q[token]).smaller(&T::one());
            let reaching = reached.times(&left);
            left = left.times(&visit(tree, child, &same, own, &reaching, outcomes));
            if left.is_nil() {
                return T::zero();
            }
        }
        let rest = residual(&ratio, &p, q);
        let mass = T::total(&rest);
        let spent = mass.plus(&T::one().minus(&ratio));
        ratio = match spent.is_nil() {
            true => T::one(),
            false => mass.over(&spent),
        };
        match normalised(&rest) {
            Some(next) => p = next,
            // Nothing is owed: the node is refused, whatever else was drafted.
            None => {
                let refuse = T::one().minus(&ratio);
                outcomes.stop(node, &reached.times(&left).times(&ratio), None);
                return left.times(&refuse);
            }
        }
    }
    let keep = left.times(&ratio);
    outcomes.stop(node, &reached.times(&keep), Some(&p));
    left.minus(&keep)
}

impl<T: Number> BlockVerifier<T> for Traversal {
    fn drafts(&self) -> usize {
        self.drafts
    }

    fn verify(&self, tree: &TokenTree<T>, blocks: &[usize], outcomes: &mut Outcomes<'_, T>) {
        visit(tree, Node::ROOT, blocks, T::one(), &T::one(), outcomes);
    }
}

pub(super) const ENTRY: BlockEntry = block_entry!(TRAVERSAL, |_, drafts| Some(Box::new(
    Traversal::new(drafts)
)));
