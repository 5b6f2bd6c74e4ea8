//! Bounds on `E[tau]` that need no coupling.

use super::spectr_gbv::uncovered;
use crate::tree::{Node, Probability, TokenTree};
use std::cmp::Ordering;

/// The value in Lemma 5.1 of SpecTr-GBV:
///
/// ```text
/// sum over t = 1..L and x^t of p(x^t) [1 - (1 - min(q(x^t)/p(x^t), 1))^K]
/// ```
///
/// **For K = 1 it is the optimum. For K >= 2 it is not an upper bound on
/// `E[tau]`**, although the paper states it as one: its couplings are those whose
/// drafts are independent *given* the target's sequence, and the block optimum
/// exceeds it.
///
/// # It is a lower bound instead
/// Each term is at most the optimum of its own depth. With
/// g(r) = 1 - (1 - min(r, 1))^K, concave, rising, g(0) = 0, and any set H of
/// prefixes: those in H add at most P(H), and for the others Jensen's inequality
/// (with P(H) put on r = 0) gives at most g(q(not H)) = 1 - Q(H)^K. So the term
/// is at most 1 + P(H) - Q(H)^K for every H. Hence it is at most the
/// [`per_depth_bound`], and at L = 1 at most the block optimum; for L >= 2 that it
/// stays below the block optimum is supported by search, not proved.
///
/// # Example
/// ```
/// use specgap::block::lemma_5_1;
/// use specgap::distribution::{Draft, Target};
/// use specgap::problem::BlockProblem;
/// use specgap::tree::TokenTree;
/// use std::collections::BTreeMap;
/// let target = BTreeMap::from([(String::new(), Target::new(&[0.5, 0.5])?)]);
/// let draft = BTreeMap::from([(String::new(), Draft::new(&[0.75, 0.25])?)]);
/// let problem = BlockProblem::new("one".to_owned(), 2, 1, 2, target, draft, None)?;
/// let tree = TokenTree::<f64>::new(&problem);
/// assert_eq!(lemma_5_1(&tree, 1), 0.75);
/// assert_eq!(lemma_5_1(&tree, 2), 0.875);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn lemma_5_1<T: Probability>(tree: &TokenTree<T>, drafts: usize) -> T {
    let mut sum = T::zero();
    for depth in 1..=tree.length() {
        for index in 0..tree.width(depth) {
            let node = Node { depth, index };
            let p = tree.target(node);
            sum.gain(&p.minus(&uncovered(p, tree.draft(node), drafts)));
        }
    }
    sum
}

/// The largest `E[tau]` with one draft, attained by greedy block verification:
/// the sum of min(p(x^t), q(x^t)) over t = 1..L and x^t.
///
/// Source: Sun et al., block verification; [`lemma_5_1`] at K = 1.
pub fn single_draft_optimum<T: Probability>(tree: &TokenTree<T>) -> T {
    (1..=tree.length())
        .flat_map(|depth| tree.target_layer(depth).iter().zip(tree.draft_layer(depth)))
        .fold(T::zero(), |sum, (p, q)| sum.plus(&p.smaller(q)))
}

/// alpha* of K i.i.d. drafts when prefixes of `depth` tokens are the tokens: the
/// largest P(tau >= depth) of any coupling of that depth alone.
///
/// # Formula
/// 1 + min(0, min over k of P(H_k) - Q(H_k)^K) over the chain of prefixes
/// sorted by falling q/p (Hu et al., Theorems 3 and 6: proven for i.i.d.
/// drafts). Exact in rationals. O(N log N) for N = V^depth.
pub fn depth_optimum<T: Probability>(tree: &TokenTree<T>, depth: usize, drafts: usize) -> T {
    let mut pairs: Vec<(&T, &T)> = tree
        .target_layer(depth)
        .iter()
        .zip(tree.draft_layer(depth))
        .filter(|(p, q)| !(p.is_nil() && q.is_nil()))
        .collect();
    pairs.sort_by(|(p, q), (other_p, other_q)| {
        let (left, right) = (q.times(other_p), other_q.times(p));
        right.partial_cmp(&left).unwrap_or(Ordering::Equal)
    });
    let (mut held, mut drawn, mut gap) = (T::zero(), T::zero(), T::zero());
    for (p, q) in pairs {
        held.gain(p);
        drawn.gain(q);
        let uncovered = drawn.power(drafts).excess_over(&held);
        if uncovered > gap {
            gap = uncovered;
        }
    }
    T::one().excess_over(&gap)
}

/// The sum over t = 1..L of [`depth_optimum`]: an upper bound on `E[tau]` of
/// every coupling, hence on the block optimum, as `E[tau]` is the sum of
/// P(tau >= t) and each term is at most its own optimum.
pub fn per_depth_bound<T: Probability>(tree: &TokenTree<T>, drafts: usize) -> T {
    (1..=tree.length()).fold(T::zero(), |sum, depth| {
        sum.plus(&depth_optimum(tree, depth, drafts))
    })
}
