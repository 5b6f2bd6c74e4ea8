//! What K i.i.d. paths could give, from paths that were drawn: one context at a time.
//!
//! A path that the draft wrote is given by what p and q say of its prefixes, as
//! w(x^l) = p(x^l)/q(x^l); a path that the target wrote, a text, by q(x^l)/p(x^l). The sets
//! are cut off by limits: x^l is in `H_l` if p(x^l) <= `h_l` q(x^l). For any limits,
//!
//! ```text
//! J(H) = sum over l of P(y^l in H_l) + sum over j = 1..L of [ 1 - q(out < j)^K ]
//! ```
//!
//! is at least `E[tau]` of every verifier of K paths in a round that starts with the target's
//! own law, out(x) being how many prefixes of x are outside (`docs/theory/block-optimum.md`).
//! Everything here has it, or a bound, as its mean; proofs are in `docs/theory/paths.md`, and tests
//! enumerate them in fractions.
//!
//! A path may be shorter than L, where a token ended it. Then nothing behind its end can be
//! accepted, and nothing there counts, inside or outside.

use super::super::moments::whole;
use specgap_core::rounds::{ChainRule, Survival};
use specgap_core::rule::Kept;
use specgap_number::number::Number;

/// J of fixed limits at a context, from m >= K draft paths of it: its mean over their draw is
/// J. `None` from fewer paths, or none.
///
/// # Formula
/// The mean over paths of the sum over l of w(x^l) where x^l is in `H_l`, and the sum over j of
/// 1 - C(c_j, K)/C(m, K), c_j of the paths having fewer than j prefixes outside: a U-statistic.
///
/// # Exactness
/// Exact in rationals. Each term of the first sum is at most `h_l`, of the second at most 1.
///
/// # Example
/// ```
/// use specgap_replay::replay::sets_bound;
/// // Two paths of one token: p/q = 2 is outside, 1/2 inside.
/// let paths = [vec![2.0], vec![0.5]];
/// assert_eq!(sets_bound(&paths, &[1.0], 1), Some(0.25 + 0.5));
/// assert_eq!(sets_bound(&paths, &[1.0], 2), Some(0.25 + 1.0));
/// assert_eq!(sets_bound(&paths, &[1.0], 3), None);
/// ```
pub fn sets_bound<T: Number>(paths: &[Vec<T>], limits: &[T], drafts: usize) -> Option<T> {
    if drafts == 0 || paths.len() < drafts {
        return None;
    }
    let one = T::one();
    let mut inside = T::zero();
    // How many paths have so many prefixes outside.
    let mut outside = vec![0usize; limits.len() + 1];
    for path in paths {
        let mut out = 0;
        for (weight, limit) in path.iter().zip(limits) {
            if weight <= limit {
                inside.gain(weight);
            } else {
                out += 1;
            }
        }
        if let Some(count) = outside.get_mut(out) {
            *count += 1;
        }
    }
    let mut sum = inside.over(&whole(paths.len()));
    let mut fewer = 0;
    for count in outside.iter().take(limits.len()) {
        fewer += count;
        sum.gain(&one.minus(&all_of(fewer, paths.len(), drafts)));
    }
    Some(sum)
}

/// The chance that `drafts` of `total` things, drawn without replacement, are all among
/// `fewer` of them.
fn all_of<T: Number>(fewer: usize, total: usize, drafts: usize) -> T {
    if fewer < drafts {
        return T::zero();
    }
    (0..drafts).fold(T::one(), |chance, i| {
        chance.times(&whole::<T>(fewer - i).over(&whole(total - i)))
    })
}

/// Returns what a text says of limits: how many of its prefixes are inside, whose mean is the sum
/// of P(`H_l`), and for each j the ratio q/p at the j-th of its prefixes outside, 0 if there is
/// none, whose mean is q(out >= j).
///
/// # Exactness
/// Exact in rationals. The ratios are below 1/h of their prefix; a limit of 0 bounds nothing.
///
/// # Example
/// ```
/// use specgap_replay::replay::sets_of_text;
/// // q/p = 3 is inside for h = 1/2, 1 and 1/4 are outside.
/// assert_eq!(sets_of_text(&[3.0, 1.0, 0.25], &[0.5; 3]), (1.0, vec![1.0, 0.25, 0.0]));
/// ```
pub fn sets_of_text<T: Number>(ratios: &[T], limits: &[T]) -> (T, Vec<T>) {
    let mut inside = T::zero();
    let mut outside = Vec::with_capacity(limits.len());
    for (ratio, limit) in ratios.iter().zip(limits) {
        if ratio.times(limit) >= T::one() {
            inside.gain(&T::one());
        } else {
            outside.push(ratio.clone());
        }
    }
    outside.resize(limits.len(), T::zero());
    (inside, outside)
}

/// The sum over l of g(min(1, q(y^l)/p(y^l))) along a text, g(r) = 1 - (1-r)^K. Its mean is the
/// value of Lemma 5.1, a lower bound of the optimum of K paths, and for K = 1 the optimum.
///
/// # Example
/// ```
/// use specgap_replay::replay::lower_bound_of_text;
/// assert_eq!(lower_bound_of_text(&[0.5, 2.0], 2), 1.75);
/// ```
pub fn lower_bound_of_text<T: Number>(ratios: &[T], drafts: usize) -> T {
    let one = T::one();
    let mut sum = T::zero();
    for ratio in ratios {
        let ratio = ratio.smaller(&one);
        sum.gain(&ratio.times(&ratio.complement().geometric_sum(drafts)));
    }
    sum
}

/// The same mean from a draft path: the sum over l of w g(min(1, 1/w)), w = p(x^l)/q(x^l).
/// Each term is at most K.
///
/// # Example
/// ```
/// use specgap_replay::replay::lower_bound_of_draft;
/// // w = 2: 2 (1 - 1/4); w = 1/2: 1/2.
/// assert_eq!(lower_bound_of_draft(&[2.0, 0.5], 2), 2.0);
/// ```
pub fn lower_bound_of_draft<T: Number>(weights: &[T], drafts: usize) -> T {
    let one = T::one();
    let mut sum = T::zero();
    for weight in weights {
        sum.gain(&if *weight <= one {
            weight.clone()
        } else {
            // 1 - 1/w, which an infinite w leaves at 1.
            one.minus(&one.over(weight)).geometric_sum(drafts)
        });
    }
    sum
}

/// `E[tau]` of a verifier of one draft, given the path that was drafted, from p/q of each of its
/// tokens.
///
/// # Formula
/// Tokens 1..i are accepted with probability: token, the product of min(1, v_j); block, m_i =
/// min(1, m_(i-1) v_i); greedy-block, averaged over drafts that begin alike, min(1, v_1 .. v_i).
///
/// # Source
/// Sun et al., Block verification. What the first two give is a probability given the draft;
/// the third has the right mean.
///
/// # Example
/// ```
/// use specgap_core::rounds::ChainRule;
/// use specgap_replay::replay::accepted_of_draft;
/// let of = |steps| ChainRule::all().map(move |rule| accepted_of_draft(rule, steps));
/// assert!(of(&[0.5, 2.0]).eq([1.0, 1.5, 1.5]));
/// assert!(of(&[2.0, 0.5]).eq([1.5, 1.5, 2.0]));
/// ```
pub fn accepted_of_draft<T: Number>(rule: ChainRule, steps: &[T]) -> T {
    let mut survival = Survival::new(rule);
    let (mut block, mut sum) = (T::one(), T::zero());
    for step in steps {
        match rule.kept() {
            Kept::Prefixes => {
                block = block.times(step).smaller(&T::one());
                sum.gain(&block);
            }
            Kept::Tokens | Kept::MostPrefixes => {
                survival.take(step);
                sum.gain(survival.reached());
            }
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random_problem::{each_draw, leaf, random_problem};
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use specgap_core::rounds::accepted_lengths;
    use specgap_core::tree::{Node, TokenTree};
    use specgap_exact::block::level_sets::LevelSets;
    use specgap_exact::block::{Block, GreedyBlock, Token, lemma_5_1, output_law};
    use specgap_number::distribution::{Rational, parse_rational};

    type Fractions = Vec<Rational>;

    fn prefixes(tree: &TokenTree<Rational>, block: usize) -> Vec<Node> {
        let depths = 1..=tree.length();
        depths
            .map(|depth| tree.ancestor(leaf(tree, block), depth))
            .collect()
    }

    fn pair(tree: &TokenTree<Rational>, node: Node) -> (Rational, Rational) {
        let p = tree.target_layer(node.depth)[node.index].clone();
        (p, tree.draft_layer(node.depth)[node.index].clone())
    }

    /// p/q of a block's prefixes, and q/p; 0 stands for a quotient by 0, which is not used.
    fn quotients(tree: &TokenTree<Rational>, block: usize) -> (Fractions, Fractions) {
        let over = |a: &Rational, b: &Rational| match b.is_nil() {
            true => Rational::zero(),
            false => a.over(b),
        };
        let pairs = (prefixes(tree, block).into_iter()).map(|node| pair(tree, node));
        pairs.map(|(p, q)| (over(&p, &q), over(&q, &p))).unzip()
    }

    /// The quotients of neighbours.
    fn steps(joint: &[Rational]) -> Fractions {
        let mut before = Rational::one();
        let step = |now: &Rational| {
            let step = match before.is_nil() {
                true => Rational::zero(),
                false => now.over(&before),
            };
            before = now.clone();
            step
        };
        joint.iter().map(step).collect()
    }

    #[test]
    fn means_over_all_draws_are_the_bounds_in_fractions() {
        let mut rng = ChaCha8Rng::seed_from_u64(41);
        let limits = ["0", "1/3", "1", "3/2", "2", "7"].map(|x| parse_rational(x).unwrap());
        for (vocab, length, paths) in [(2, 2, 3), (3, 1, 4), (2, 3, 2), (3, 2, 2)] {
            for _ in 0..6 {
                let problem = random_problem(&mut rng, vocab, length);
                let tree = TokenTree::<Rational>::new(&problem);
                let width = tree.width(length);
                let chosen: Fractions = (0..length)
                    .map(|_| limits[rng.random_range(0..limits.len())].clone())
                    .collect();
                let inside = |depth: usize, index: usize| {
                    let (p, q) = pair(&tree, Node { depth, index });
                    p <= q.times(&chosen[depth - 1])
                };
                let layers = (1..=length)
                    .map(|depth| (0..tree.width(depth)).map(|i| inside(depth, i)).collect());
                let sets = LevelSets::new(&tree, layers.collect()).unwrap();
                let draft = tree.draft_layer(length);
                let target = tree.target_layer(length);
                for drafts in 1..=paths {
                    // Every tuple of draft paths.
                    let mut mean = Rational::zero();
                    each_draw(&vec![draft.to_vec(); paths], |blocks, chance| {
                        let drawn: Vec<Fractions> =
                            blocks.iter().map(|&b| quotients(&tree, b).0).collect();
                        let bound = sets_bound(&drawn, &chosen, drafts).unwrap();
                        mean.gain(&chance.times(&bound));
                    });
                    assert_eq!(mean, sets.bound(&tree, drafts), "{vocab} {length} {drafts}");

                    // Every text.
                    let (mut first, mut second) = (Rational::zero(), Rational::zero());
                    let mut lemma = [Rational::zero(), Rational::zero()];
                    let mut beyond = vec![Rational::zero(); length];
                    for block in 0..width {
                        let (weights, ratios) = quotients(&tree, block);
                        let (p, q) = (&target[block], &draft[block]);
                        if !p.is_nil() {
                            let (within, outside) = sets_of_text(&ratios, &chosen);
                            first.gain(&p.times(&within));
                            for (sum, ratio) in beyond.iter_mut().zip(&outside) {
                                sum.gain(&p.times(ratio));
                            }
                            lemma[0].gain(&p.times(&lower_bound_of_text(&ratios, drafts)));
                        }
                        if !q.is_nil() {
                            lemma[1].gain(&q.times(&lower_bound_of_draft(&weights, drafts)));
                        }
                    }
                    for mass in &beyond {
                        let few = mass.complement();
                        second.gain(&few.power(drafts).complement());
                    }
                    assert_eq!(first.plus(&second), sets.bound(&tree, drafts));
                    let lemma_5_1 = lemma_5_1(&tree, drafts);
                    assert_eq!(lemma, [lemma_5_1.clone(), lemma_5_1]);
                }
            }
        }
    }

    #[test]
    fn one_draft_is_accepted_as_enumeration_says() {
        let mut rng = ChaCha8Rng::seed_from_u64(42);
        for (vocab, length) in [(2, 1), (2, 3), (3, 2), (4, 2)] {
            for _ in 0..8 {
                let problem = random_problem(&mut rng, vocab, length);
                let tree = TokenTree::<Rational>::new(&problem);
                let laws = [
                    output_law(&tree, &Token),
                    output_law(&tree, &Block),
                    output_law(&tree, &GreedyBlock),
                ];
                let mut means = [Rational::zero(), Rational::zero(), Rational::zero()];
                for (block, q) in tree.draft_layer(length).iter().enumerate() {
                    let (weights, _) = quotients(&tree, block);
                    for (mean, rule) in means.iter_mut().zip(ChainRule::all()) {
                        mean.gain(&q.times(&accepted_of_draft(rule, &steps(&weights))));
                    }
                }
                for ((law, mean), verifier) in laws.iter().zip(&means).zip(ChainRule::all()) {
                    assert_eq!(law.expected_accepted_length, *mean, "{verifier}");
                    // And as the text says.
                    let mut along = Rational::zero();
                    for (block, p) in tree.target_layer(length).iter().enumerate() {
                        let (_, ratios) = quotients(&tree, block);
                        let sums = accepted_lengths(verifier, &steps(&ratios), length);
                        // Only the start of the block.
                        let mut survival = specgap_core::rounds::Survival::new(verifier);
                        let mut tau = Rational::zero();
                        for ratio in steps(&ratios) {
                            survival.take(&ratio);
                            tau.gain(survival.reached());
                        }
                        assert_eq!(sums[length - 1], (tau.clone(), 1));
                        along.gain(&p.times(&tau));
                    }
                    assert_eq!(along, *mean, "{verifier}");
                }
            }
        }
    }
}
