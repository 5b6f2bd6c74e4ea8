//! How far a decoder's counts scatter around what is expected of them, given its text.

use specgap_core::rounds::{
    ChainRule, ChildShares, DraftLength, FixedLength, Survival, survival_of_tree,
};
use specgap_core::tree::Shape;
use specgap_number::number::Number;

/// The mean and the variance of a count.
#[derive(Clone, Debug, PartialEq)]
pub struct Moments<T> {
    /// Its mean.
    pub mean: T,
    /// Its variance.
    pub variance: T,
}

/// What a decoder's counts are, given the text that it put out.
#[derive(Clone, Debug, PartialEq)]
pub struct CountMoments<T> {
    /// Target calls, one a round.
    pub calls: Moments<T>,
    /// Draft tokens that lie within the text: a round with `left` tokens to go drafts
    /// `left - 1` levels at most. None where they do not follow from the text.
    pub drafts: Option<Moments<T>>,
}

/// Mean and variance of calls and drafts of a decoder that drafts `length` tokens a round,
/// given its text by the ratios q/p at its tokens.
///
/// What is left to chance are the coins. So a decoder's own counts, less these means, over the
/// root of the summed variances, are standard normal over many texts, whatever texts came out:
/// a live decoder is held against its prediction without the scatter of texts.
///
/// # Formula
/// With P_s(i) the probability that the round from s puts out i + 1 tokens ([`Survival`]) and
/// g_s what is counted of it (1, or its drafts), from the text's end to its start,
///
/// ```text
/// mean_s = g_s + sum over i of P_s(i) mean_(s+i+1)
/// var_s  = sum over i of P_s(i) [ var_(s+i+1) + (mean_(s+i+1) - (mean_s - g_s))^2 ]
/// ```
///
/// which is the law of total variance: rounds are a Markov chain given the text
/// (`docs/theory/text-replay.md`). `None` for greedy-block, whose rounds change the next one's
/// target.
///
/// # Exactness
/// Exact in rationals; in `f64` sums of terms that are not negative.
///
/// # Complexity
/// O(N K).
///
/// # Example
/// ```
/// use specgap_replay::replay::moments_of_chain;
/// use specgap_core::rounds::ChainRule;
///
/// // Two tokens, the first drafted and accepted with probability 1/2: one call or two.
/// let spread = moments_of_chain(ChainRule::TOKEN, &[0.5, 1.0], 3).unwrap();
/// assert_eq!((spread.calls.mean, spread.calls.variance), (1.5, 0.25));
/// assert_eq!(spread.drafts.map(|drafts| (drafts.mean, drafts.variance)), Some((1.0, 0.0)));
/// ```
pub fn moments_of_chain<T: Number>(
    verifier: ChainRule,
    ratios: &[T],
    length: usize,
) -> Option<CountMoments<T>> {
    verifier.has_rounds().then(|| {
        spread(ratios.len(), |start, left| {
            let levels = FixedLength(length).along(start, left, 0);
            let ahead = ratios[start..].iter().take(levels);
            (reached(verifier, ahead), levels)
        })
    })
}

/// The same of a decoder that drafts a tree a round, given what its text gets child by child.
///
/// # Formula
/// As [`moments_of_chain`], with P_s(i) from the probabilities of the tree's nodes
/// ([`replay_tree`](specgap_core::rounds::replay_tree)). Drafts are counted as nodes: a draft with fewer
/// tokens than children has fewer of them.
///
/// # Example
/// ```
/// use specgap_replay::replay::moments_of_tree;
/// use specgap_core::rounds::ChildShares;
/// use specgap_core::tree::DraftTree;
///
/// let tree = DraftTree::new(vec![vec![0], vec![1]])?;
/// let shares = ChildShares::new(2, true, [(2, [0.5, 0.25].repeat(2))]);
/// let spread = moments_of_tree(&tree.shape(), &shares);
/// assert_eq!((spread.calls.mean, spread.calls.variance), (1.25, 0.1875));
/// # Ok::<(), specgap_core::tree::TopologyError>(())
/// ```
pub fn moments_of_tree<T: Number>(shape: &Shape, shares: &ChildShares<T>) -> CountMoments<T> {
    let depth = shape.depth.last().copied().unwrap_or(0);
    spread(shares.len(), |start, left| {
        let levels = depth.min(left);
        let mut reached = survival_of_tree(shape, shares, start, levels);
        // The probability of being at the root is 1.
        reached.remove(0);
        (reached, shape.nodes_to(levels))
    })
}

/// P(at least 1, 2, ... drafts are accepted), given the text by the ratios q/p at its tokens.
pub(super) fn reached<'a, T: Number + 'a>(
    verifier: ChainRule,
    ratios: impl Iterator<Item = &'a T>,
) -> Vec<T> {
    let mut survival = Survival::new(verifier);
    let each = ratios.map(|ratio| {
        survival.take(ratio);
        survival.reached().clone()
    });
    each.collect()
}

/// `round` gives, for a start and the most levels there, P(tau >= 1), P(tau >= 2), .. and what
/// is drafted.
pub(super) fn spread<T: Number>(
    length: usize,
    mut round: impl FnMut(usize, usize) -> (Vec<T>, usize),
) -> CountMoments<T> {
    let nothing = || Moments {
        mean: T::zero(),
        variance: T::zero(),
    };
    // What is counted from each place to the end.
    let mut calls: Vec<Moments<T>> = (0..=length).map(|_| nothing()).collect();
    let mut drafts = calls.clone();
    for start in (0..length).rev() {
        let (reached, drafted) = round(start, length - start - 1);
        let mut ends = Vec::with_capacity(reached.len() + 1);
        let mut before = T::one();
        for now in reached {
            ends.push(before.excess_over(&now));
            before = now;
        }
        ends.push(before);
        for (counts, own) in [(&mut calls, T::one()), (&mut drafts, whole(drafted))] {
            let (here, behind) = counts.split_at_mut(start + 1);
            here[start] = mixed(&ends, behind, &own);
        }
    }
    let first = |mut counts: Vec<Moments<T>>| counts.swap_remove(0);
    CountMoments {
        calls: first(calls),
        drafts: Some(first(drafts)),
    }
}

/// The moments of `own` and what follows, one of `behind` with the probabilities `ends`.
fn mixed<T: Number>(ends: &[T], behind: &[Moments<T>], own: &T) -> Moments<T> {
    let mut mean = T::zero();
    for (end, next) in ends.iter().zip(behind) {
        mean.gain(&end.times(&next.mean));
    }
    let mut variance = T::zero();
    for (end, next) in ends.iter().zip(behind) {
        let apart = next.mean.minus(&mean);
        variance.gain(&end.times(&next.variance.plus(&apart.times(&apart))));
    }
    Moments {
        mean: mean.plus(own),
        variance,
    }
}

pub(super) fn whole<T: Number>(count: usize) -> T {
    T::fraction(&count.into(), &1u32.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use specgap_core::rounds::replay;
    use specgap_core::tree::DraftTree;
    use specgap_number::distribution::{Rational, ratio};
    use std::collections::BTreeMap;

    fn over(numerator: u32, denominator: u32) -> Rational {
        ratio(&numerator.into(), &denominator.into())
    }

    /// The law of (calls, drafts) from a start, by following every round to its end.
    fn law(
        start: usize,
        length: usize,
        round: &dyn Fn(usize) -> (Vec<Rational>, usize),
    ) -> BTreeMap<(usize, usize), Rational> {
        if start >= length {
            return BTreeMap::from([((0, 0), Rational::one())]);
        }
        let (mut reached, drafted) = round(start);
        reached.insert(0, Rational::one());
        reached.push(Rational::zero());
        let mut all = BTreeMap::new();
        for (accepted, pair) in reached.windows(2).enumerate() {
            let chance = pair[0].minus(&pair[1]);
            for ((calls, drafts), weight) in law(start + accepted + 1, length, round) {
                let entry = all.entry((calls + 1, drafts + drafted));
                entry
                    .or_insert_with(Rational::zero)
                    .gain(&chance.times(&weight));
            }
        }
        all
    }

    fn moments(
        law: &BTreeMap<(usize, usize), Rational>,
        of: impl Fn(&(usize, usize)) -> usize,
    ) -> Moments<Rational> {
        let (mut mean, mut square) = (Rational::zero(), Rational::zero());
        for (counts, chance) in law {
            let count: Rational = whole(of(counts));
            mean.gain(&chance.times(&count));
            square.gain(&chance.times(&count).times(&count));
        }
        let variance = square.minus(&mean.times(&mean));
        Moments { mean, variance }
    }

    #[test]
    fn moments_are_those_of_the_law_of_all_rounds() {
        let text = [(1, 2), (5, 3), (1, 4), (9, 10), (0, 1), (2, 1), (3, 4)];
        let ratios: Vec<Rational> = text.iter().map(|&(a, b)| over(a, b)).collect();
        for verifier in [ChainRule::TOKEN, ChainRule::BLOCK] {
            for length in 0..=4 {
                let spread = moments_of_chain(verifier, &ratios, length).unwrap();
                let law = law(0, ratios.len(), &|start| {
                    let levels = length.min(ratios.len() - start - 1);
                    let reached = (1..=levels).map(|i| {
                        let mut product = Rational::one();
                        let mut least = Rational::one();
                        let mut coins = Rational::one();
                        for r in &ratios[start..start + i] {
                            product = product.times(r);
                            least = least.smaller(&product);
                            coins = coins.times(&r.smaller(&Rational::one()));
                        }
                        match verifier == ChainRule::TOKEN {
                            true => coins,
                            false => least,
                        }
                    });
                    (reached.collect(), levels)
                });
                assert_eq!(spread.calls, moments(&law, |counts| counts.0));
                assert_eq!(spread.drafts, Some(moments(&law, |counts| counts.1)));
                let replayed = replay(verifier, &ratios, &FixedLength(length)).unwrap();
                assert_eq!(spread.calls.mean, replayed.calls);
                let drafts = spread.drafts.map(|drafts| drafts.mean);
                assert_eq!(drafts, Some(replayed.drafts_set_at_start()));
            }
        }
        assert_eq!(moments_of_chain(ChainRule::GREEDY_BLOCK, &ratios, 2), None);
    }

    #[test]
    fn moments_of_a_tree_are_those_of_the_law_of_all_rounds() {
        // Two children, each with two: half and an eighth of a token's mass.
        let tree = DraftTree::from_json("[[0],[1],[0,0],[0,1],[1,0],[1,1]]").unwrap();
        let rows: Vec<Rational> = (0..6u32)
            .flat_map(|t| [over(t % 3 + 1, 6), over(1, 8)])
            .collect();
        let shares = ChildShares::new(6, true, [(2, rows.clone())]);
        let spread = moments_of_tree(&tree.shape(), &shares);
        let total = |t: usize| rows[2 * t].plus(&rows[2 * t + 1]);
        let law = law(0, 6, &|start| {
            let levels = 2.min(6 - start - 1);
            let mut product = Rational::one();
            let reached = (0..levels).map(|level| {
                product = product.times(&total(start + level));
                product.clone()
            });
            (reached.collect(), [0, 2, 6][levels])
        });
        assert_eq!(spread.calls, moments(&law, |counts| counts.0));
        assert_eq!(spread.drafts, Some(moments(&law, |counts| counts.1)));
    }

    #[test]
    fn an_empty_text_counts_nothing() {
        let spread = moments_of_chain::<f64>(ChainRule::TOKEN, &[], 3).unwrap();
        assert_eq!(spread.calls.mean, 0.0);
        assert_eq!(spread.drafts.map(|drafts| drafts.mean), Some(0.0));
    }
}
