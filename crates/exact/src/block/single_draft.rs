//! Verifiers of a single draft block: token by token, and as a block.

use super::law::{Attains, BlockEntry, BlockVerifier, Outcomes, block_entry};
use specgap_core::tree::{Node, TokenTree};
use specgap_number::number::{Number, normalised};

/// Speculative decoding position by position: token x is accepted with
/// probability min(1, p(x)/q(x)), the first rejected one is replaced by a draw
/// from (p - q)+.
///
/// Lossless; `E[tau]` is the sum over prefixes x^t of the product of
/// min(p(x_i|x^{i-1}), q(x_i|x^{i-1})), i <= t.
///
/// Source: Leviathan et al. and Chen et al., 2023.
#[derive(Clone, Copy, Debug, Default)]
pub struct Token;

/// Block verification: prefix x^i may be kept with r_i = min(1, r_{i-1}
/// p(x_i|x^{i-1})/q(x_i|x^{i-1})), and the longest accepted prefix wins.
///
/// # Formula
/// With Z_i = sum over x of (r_i p(x|x^i) - q(x|x^i))+, the prefix of i < L
/// tokens is accepted with probability Z_i / (Z_i + 1 - r_i), the whole block
/// with r_L; the next token follows (r_i p - q)+. Where Z_i = 0 and r_i = 1 the
/// quotient is 0/0 and its value does not matter: p = q after x^i, so r stays 1
/// and a longer prefix is accepted for certain; 1 is taken.
///
/// Lossless without touching later target distributions.
///
/// Source: Sun et al., "Block Verification Accelerates Speculative Decoding".
#[derive(Clone, Copy, Debug, Default)]
pub struct Block;

/// Greedy block verification: as [`Block`] with the ratios r_i = p(x^i)/q(x^i)
/// not cut at 1, acceptance cut at 1, and the target of the rest of the span
/// modified.
///
/// # Formula
/// P(tau >= i, x^i drafted) = min(p(x^i), q(x^i)), so `E[tau]` is the optimum for
/// one draft, the sum of min(p(x^t), q(x^t)) over all prefixes. What remains of
/// prefix x^i is R(x^i) = (p(x^i) - q(x^i))+, and the next token of a stopped
/// block follows R(x^i, .), as does every further token up to position L
/// ([`BlockVerifier::next_target`]): then P(stopped before i, output x^i) =
/// R(x^i) by induction on i, and the output's law is exactly p.
///
/// Source: Sun et al. (greedy block verification), with the modification of the
/// target derived here.
#[derive(Clone, Copy, Debug, Default)]
pub struct GreedyBlock;

impl<T: Number> BlockVerifier<T> for Token {
    fn verify(&self, tree: &TokenTree<T>, blocks: &[usize], outcomes: &mut Outcomes<'_, T>) {
        let leaf = leaf(tree, blocks);
        let mut reached = T::one();
        for depth in 0..tree.length() {
            let node = tree.ancestor(leaf, depth);
            let token = tree.token_at(leaf, depth);
            let (Some(p), q) = (tree.target_next(node), tree.draft_next(node)) else {
                continue;
            };
            if p[token] < q[token] {
                let keep = p[token].over(&q[token]);
                let reject = q[token].minus(&p[token]).over(&q[token]);
                let next = normalised(&residual(&T::one(), p, q));
                outcomes.stop(node, &reached.times(&reject), next.as_deref());
                reached = reached.times(&keep);
            }
        }
        outcomes.stop(leaf, &reached, tree.target_next(leaf));
    }
}

impl<T: Number> BlockVerifier<T> for Block {
    fn verify(&self, tree: &TokenTree<T>, blocks: &[usize], outcomes: &mut Outcomes<'_, T>) {
        let leaf = leaf(tree, blocks);
        let mut ratios = vec![T::one()];
        for depth in 0..tree.length() {
            let node = tree.ancestor(leaf, depth);
            let token = tree.token_at(leaf, depth);
            let (Some(p), q) = (tree.target_next(node), tree.draft_next(node)) else {
                continue;
            };
            let ratio = ratios[depth].times(&p[token]).over(&q[token]);
            ratios.push(ratio.smaller(&T::one()));
        }
        let mut left = T::one();
        for depth in (0..=tree.length()).rev() {
            let node = tree.ancestor(leaf, depth);
            let ratio = &ratios[depth];
            if depth == tree.length() {
                outcomes.stop(node, ratio, tree.target_next(node));
                left = T::one().minus(ratio);
                continue;
            }
            let Some(p) = tree.target_next(node) else {
                continue;
            };
            let rest = residual(ratio, p, tree.draft_next(node));
            let mass = T::total(&rest);
            let spent = mass.plus(&T::one().minus(ratio));
            let (accept, refuse) = match spent.is_nil() {
                true => (T::one(), T::zero()),
                false => (mass.over(&spent), T::one().minus(ratio).over(&spent)),
            };
            outcomes.stop(node, &left.times(&accept), normalised(&rest).as_deref());
            left = left.times(&refuse);
        }
    }
}

impl<T: Number> BlockVerifier<T> for GreedyBlock {
    fn verify(&self, tree: &TokenTree<T>, blocks: &[usize], outcomes: &mut Outcomes<'_, T>) {
        let leaf = leaf(tree, blocks);
        let mut left = T::one();
        for depth in (0..=tree.length()).rev() {
            let node = tree.ancestor(leaf, depth);
            // Everything times q(x^i): r_i q(x^i) = p(x^i).
            let (p, q) = (tree.target(node), tree.draft(node));
            let (accept, next) = if depth == tree.length() {
                let next = tree.target_next(node).map(<[T]>::to_vec);
                (p.smaller(q).over(q), next)
            } else {
                let rest = joint_residual(tree, node);
                let mass = T::total(&rest);
                let refused = (0..tree.vocab()).fold(T::zero(), |sum, token| {
                    let child = tree.child(node, token);
                    sum.plus(&tree.draft(child).excess_over(tree.target(child)))
                });
                let accept = if mass >= refused {
                    T::one()
                } else {
                    mass.over(&refused)
                };
                (accept, normalised(&rest))
            };
            outcomes.stop(node, &left.times(&accept), next.as_deref());
            left = left.times(&T::one().minus(&accept));
        }
    }

    fn next_target(&self, tree: &TokenTree<T>, prefix: Node) -> Option<Vec<T>> {
        normalised(&joint_residual(tree, prefix))
    }
}

pub(super) fn leaf<T: Number>(tree: &TokenTree<T>, blocks: &[usize]) -> Node {
    tree.leaf(blocks.first().copied().unwrap_or(0))
}

/// (ratio * p - q)+.
pub(super) fn residual<T: Number>(ratio: &T, p: &[T], q: &[T]) -> Vec<T> {
    let rows = p.iter().zip(q);
    rows.map(|(p, q)| ratio.times(p).excess_over(q)).collect()
}

/// (p(prefix, x) - q(prefix, x))+ for every x.
fn joint_residual<T: Number>(tree: &TokenTree<T>, prefix: Node) -> Vec<T> {
    (0..tree.vocab())
        .map(|token| {
            let child = tree.child(prefix, token);
            tree.target(child).excess_over(tree.draft(child))
        })
        .collect()
}

pub(super) const TOKEN: BlockEntry = block_entry!(TOKEN, |_, _| Some(Box::new(Token)));

pub(super) const BLOCK: BlockEntry = block_entry!(BLOCK, |_, _| Some(Box::new(Block)));

pub(super) const GREEDY_BLOCK: BlockEntry = BlockEntry {
    attains: Attains::OneDraft,
    ..block_entry!(GREEDY_BLOCK, |_, _| Some(Box::new(GreedyBlock)))
};
