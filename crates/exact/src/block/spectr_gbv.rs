//! SpecTr-GBV as printed, for audit.

use super::bounds::covered;
use super::law::{Attains, BlockEntry, BlockVerifier, Outcomes, block_entry};
use specgap_core::tree::{Node, TokenTree};
use specgap_number::number::{Number, normalised};
use std::collections::BTreeSet;

/// SpecTr-GBV, Algorithms 1 and 2 exactly as printed. **Not lossless for
/// K >= 2; here to be measured, not to be used.**
///
/// # Formula
/// With f(x^i) = p(x^i) (1 - min(q(x^i)/p(x^i), 1))^K, the mass that Lemma 5.1
/// leaves uncovered, and F(x^i) = sum over x of f(x^i, x): the drafts are taken
/// in turn; a prefix x^i, longer than what is accepted so far, is accepted with
/// probability
///
/// ```text
/// (F(x^i) - f(x^i)) / (1 - (1 - q(x^i))^K - p(x^i) + F(x^i))     i < L
/// (p(x^L) - f(x^L)) / (1 - (1 - q(x^L))^K)                       i = L
/// ```
///
/// unless it was refused before; an accepted prefix replaces the output whether
/// or not it agrees with it. The token after the accepted prefix follows
/// f(x^tau, .), and so do the later tokens up to position L.
///
/// Where numerator and denominator of an acceptance probability are both 0, as
/// for p = q at K = 1, it is read as 1, the value that greedy block
/// verification's min(1, .) gives.
///
/// # What is wrong with it
/// For K = 1 it is [`GreedyBlock`](super::GreedyBlock) and lossless. For K >= 2
/// the acceptance probabilities count a prefix as tried whenever some draft has
/// it, but it is tried only if nothing longer was accepted before. For p = q
/// uniform on two tokens, L = 1, K = 2, `E[tau]` = 7/9 where Lemma 5.1 promises 1,
/// and with probability 2/9 the next token's law is 0/0.
///
/// Source: SpecTr-GBV (arXiv 2604.25925), whose p is the draft; p is the target
/// here.
#[derive(Clone, Copy, Debug)]
pub struct SpecTrGbv {
    drafts: usize,
}

impl SpecTrGbv {
    /// The verifier of `drafts` blocks.
    pub fn new(drafts: usize) -> Self {
        Self { drafts }
    }

    fn acceptance<T: Number>(&self, tree: &TokenTree<T>, node: Node) -> T {
        let (p, q) = (tree.target(node), tree.draft(node));
        // 1 - (1 - q)^K
        let tried = q.times(&T::one().excess_over(q).geometric_sum(self.drafts));
        let (numerator, denominator) = if node.depth == tree.length() {
            (covered(p, q, self.drafts), tried)
        } else {
            let below = T::total(&self.rest(tree, node));
            let denominator = tried.plus(&below).excess_over(p);
            let own = uncovered(p, q, self.drafts);
            (below.excess_over(&own), denominator)
        };
        // Both vanish, or rounding lifts the quotient above 1.
        if denominator <= numerator {
            T::one()
        } else {
            numerator.over(&denominator)
        }
    }

    /// f(prefix, x) for every x.
    fn rest<T: Number>(&self, tree: &TokenTree<T>, prefix: Node) -> Vec<T> {
        (0..tree.vocab())
            .map(|token| {
                let child = tree.child(prefix, token);
                uncovered(tree.target(child), tree.draft(child), self.drafts)
            })
            .collect()
    }
}

/// p (1 - min(q/p, 1))^K.
fn uncovered<T: Number>(p: &T, q: &T, drafts: usize) -> T {
    if q >= p {
        return T::zero();
    }
    p.times(&p.minus(q).over(p).power(drafts))
}

struct Run<'a, 'b, T: Number> {
    rule: SpecTrGbv,
    tree: &'a TokenTree<T>,
    blocks: &'a [usize],
    outcomes: &'a mut Outcomes<'b, T>,
}

impl<T: Number> Run<'_, '_, T> {
    /// The state before draft `turn` looks at its prefix of `depth` tokens.
    fn go(
        &mut self,
        turn: usize,
        depth: usize,
        accepted: Node,
        refused: &mut BTreeSet<Node>,
        reached: &T,
    ) {
        if reached.is_nil() {
            return;
        }
        let length = self.tree.length();
        let Some(&block) = self.blocks.get(turn) else {
            let next = normalised(&self.rule.rest(self.tree, accepted));
            self.outcomes.stop(accepted, reached, next.as_deref());
            return;
        };
        let node = self.tree.ancestor(self.tree.leaf(block), depth);
        let known = refused.contains(&node);
        let accept = if known {
            T::zero()
        } else {
            self.rule.acceptance(self.tree, node)
        };
        let accepting = reached.times(&accept);
        if depth == length {
            self.outcomes
                .stop(node, &accepting, self.tree.target_next(node));
        } else {
            self.go(turn, depth + 1, node, refused, &accepting);
        }
        let refusing = reached.times(&T::one().minus(&accept));
        refused.insert(node);
        if depth == length {
            self.go(turn + 1, accepted.depth + 1, accepted, refused, &refusing);
        } else {
            self.go(turn, depth + 1, accepted, refused, &refusing);
        }
        if !known {
            refused.remove(&node);
        }
    }
}

impl<T: Number> BlockVerifier<T> for SpecTrGbv {
    fn drafts(&self) -> usize {
        self.drafts
    }

    fn verify(&self, tree: &TokenTree<T>, blocks: &[usize], outcomes: &mut Outcomes<'_, T>) {
        let mut run = Run {
            rule: *self,
            tree,
            blocks,
            outcomes,
        };
        run.go(0, 1, Node::ROOT, &mut BTreeSet::new(), &T::one());
    }

    fn next_target(&self, tree: &TokenTree<T>, prefix: Node) -> Option<Vec<T>> {
        normalised(&self.rest(tree, prefix))
    }
}

pub(super) const ENTRY: BlockEntry = BlockEntry {
    note: Some(
        "refuted for two or more drafts: may change the output's law; for audit, not for use",
    ),
    is_refuted: true,
    attains: Attains::OneDraft,
    ..block_entry!(SPECTR_GBV, |_, drafts| Some(Box::new(SpecTrGbv::new(
        drafts
    ))))
};
