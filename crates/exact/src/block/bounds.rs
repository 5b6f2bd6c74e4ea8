//! Bounds on `E[tau]` that need no coupling.

use specgap_core::tree::TokenTree;
use specgap_number::number::{Number, RunningSum};
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
/// Of the block optimum, for all K and L: `docs/theory/block-optimum.md`, Theorem 3.
///
/// # Example
/// ```
/// use specgap_exact::block::lemma_5_1;
/// use specgap_number::distribution::{Draft, Target};
/// use specgap_core::problem::BlockProblem;
/// use specgap_core::tree::TokenTree;
/// use std::collections::BTreeMap;
/// let target = BTreeMap::from([(String::new(), Target::new(&[0.5, 0.5])?)]);
/// let draft = BTreeMap::from([(String::new(), Draft::new(&[0.75, 0.25])?)]);
/// let problem = BlockProblem::new("one".to_owned(), 2, 1, 2, target, draft, None)?;
/// let tree = TokenTree::<f64>::new(&problem);
/// assert_eq!(lemma_5_1(&tree, 1), 0.75);
/// assert_eq!(lemma_5_1(&tree, 2), 0.875);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn lemma_5_1<T: Number>(tree: &TokenTree<T>, drafts: usize) -> T {
    over_prefixes(tree, |p, q| covered(p, q, drafts))
}

/// Sums over all prefixes but the empty one.
fn over_prefixes<T: Number>(tree: &TokenTree<T>, term: impl Fn(&T, &T) -> T) -> T {
    let mut sum = T::Sum::default();
    for depth in 1..=tree.length() {
        for (p, q) in tree.target_layer(depth).iter().zip(tree.draft_layer(depth)) {
            sum.add(&term(p, q));
        }
    }
    sum.value()
}

/// Says what Lemma 5.1's value is worth with K drafts.
pub fn lemma_5_1_status(drafts: usize) -> &'static str {
    if drafts == 1 {
        "equals the optimum for one draft"
    } else {
        "not an upper bound for two or more drafts (refuted as one), but a lower one"
    }
}

/// p (1 - (1 - min(q/p, 1))^K), without the difference: with r = q/p < 1 it is
/// q (1 + (1-r) + ... + (1-r)^(K-1)).
pub(super) fn covered<T: Number>(p: &T, q: &T, drafts: usize) -> T {
    if q >= p {
        return p.clone();
    }
    q.times(&p.minus(q).over(p).geometric_sum(drafts))
}

/// The largest `E[tau]` with one draft, attained by greedy block verification:
/// the sum of min(p(x^t), q(x^t)) over t = 1..L and x^t.
///
/// Source: Sun et al., block verification; [`lemma_5_1`] at K = 1.
pub fn single_draft_optimum<T: Number>(tree: &TokenTree<T>) -> T {
    over_prefixes(tree, T::smaller)
}

/// alpha* of K i.i.d. drafts when prefixes of `depth` tokens are the tokens: the
/// largest P(tau >= depth) of any coupling of that depth alone.
///
/// # Formula
/// 1 + min over k >= 0 of P(H_k) - Q(H_k)^K over the chain of prefixes
/// sorted by falling q/p (Hu et al., Theorems 3 and 6: proven for i.i.d.
/// drafts). Exact in rationals, to a few units of the last place in `f64`. O(N log N) for N = V^depth.
pub fn depth_optimum<T: Number>(tree: &TokenTree<T>, depth: usize, drafts: usize) -> T {
    // (q/p, p, q); none where p = 0, which comes first of all.
    let pairs = tree.target_layer(depth).iter().zip(tree.draft_layer(depth));
    let pairs = pairs.filter(|(p, q)| !(p.is_nil() && q.is_nil()));
    let tokens = pairs.map(|(p, q)| ((!p.is_nil()).then(|| q.over(p)), p, q));
    let mut tokens: Vec<(Option<T>, &T, &T)> = tokens.collect();
    tokens.sort_by(|(one, ..), (other, ..)| match (one, other) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Less,
        (Some(_), None) => Ordering::Greater,
        (Some(one), Some(other)) => other.partial_cmp(one).unwrap_or(Ordering::Equal),
    });
    // 1 - Q(H)^K from the mass outside H, so that small values keep their digits.
    let mut outside = T::Sum::default();
    let tails = tokens.iter().rev().map(|(_, _, q)| {
        outside.add(q);
        outside.value()
    });
    let mut tails: Vec<T> = tails.collect();
    // The first tail belongs to the empty H, whose value is 1.
    tails.pop();
    tails.reverse();
    tails.push(T::zero());
    let (mut held, mut best) = (T::Sum::default(), T::one());
    for ((_, p, _), tail) in tokens.iter().zip(&tails) {
        held.add(p);
        let touched = tail.times(&T::one().excess_over(tail).geometric_sum(drafts));
        best = best.smaller(&held.value().plus(&touched));
    }
    best
}

/// The sum over t = 1..L of [`depth_optimum`]: an upper bound on `E[tau]` of
/// every coupling, hence on the block optimum, as `E[tau]` is the sum of
/// P(tau >= t) and each term is at most its own optimum.
pub fn per_depth_bound<T: Number>(tree: &TokenTree<T>, drafts: usize) -> T {
    let optima = (1..=tree.length()).map(|depth| depth_optimum(tree, depth, drafts));
    T::total(&optima.collect::<Vec<T>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lemma_is_the_optimum_of_one_draft_alone() {
        assert!(lemma_5_1_status(1).starts_with("equals the optimum"));
        for drafts in [2, 3] {
            assert!(lemma_5_1_status(drafts).starts_with("not an upper bound"));
        }
        // q/p = 1/2 of p = 1/2, twice: 1/4 + 1/8. All of p where q has more.
        assert_eq!(covered(&0.5, &0.25, 2), 0.375);
        assert_eq!(covered(&0.25, &0.5, 2), 0.25);
        assert_eq!(covered(&0.25, &0.25, 3), 0.25);
    }
}
