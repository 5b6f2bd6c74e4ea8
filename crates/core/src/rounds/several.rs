//! What no lossless rule of one drafted path can pass over several rounds, and a rule that
//! carries a few numbers from token to token.

use super::carry::Carry;
use super::survival::{scaled, starts_along};
use specgap_number::number::Number;
use std::collections::VecDeque;

/// For every token of a text, the probability that a round starts in front of it if as few
/// rounds start as any lossless rule of one path can do with, at most `most` drafts a round.
///
/// The mean of the sum over texts of the target is the least expected number of target calls.
/// It bounds the mean and not each text: on one text a rule may make fewer.
///
/// # Formula
/// With r_t = q(y_t)/p(y_t) at the text's own tokens, K = `most`, s_0 = 1 and
///
/// `s_t = (1 - sum over k = 1..min(K, t) of s_(t-k) r_(t-k+1) ... r_t)+` for t < N.
///
/// The text's last token is always the target's, so that its ratio is not used.
///
/// # Exactness
/// Exact in rationals, as is the bound: it is attained (`docs/theory/several-rounds.md`,
/// Theorem 1). In `f64` as [`Survival`](super::Survival).
///
/// # Complexity
/// O(N K).
///
/// # Source
/// This project; `docs/theory/several-rounds.md`.
///
/// # Example
/// ```
/// use specgap_core::rounds::fewest_starts;
/// // One draft a round. A round starts behind the first draft half of the time, so that of the
/// // second token only half as much is drafted.
/// assert_eq!(fewest_starts(&[0.5, 0.5, 9.0], 1), [1.0, 0.5, 0.75]);
/// // With two drafts the second token is drafted by the first round, too.
/// assert_eq!(fewest_starts(&[0.5, 0.5, 9.0], 2), [1.0, 0.5, 0.5]);
/// ```
pub fn fewest_starts<T: Number>(ratios: &[T], most: usize) -> Vec<T> {
    // By age: the drafts that stand at the next token, as a share of its p.
    let mut offered = VecDeque::from([T::one()]);
    starts_along(ratios, |ratio| {
        offered.truncate(most);
        let mut supply = T::zero();
        for share in &mut offered {
            *share = scaled(share, ratio);
            supply.gain(share);
        }
        let start = T::one().excess_over(&supply);
        offered.push_front(start.clone());
        start
    })
}

/// The sum of [`fewest_starts`]: along texts of the target, on average the least number of
/// target calls of any lossless rule of one path with at most `most` drafts a round.
///
/// # Formula
/// sum over t < N of s_t.
///
/// # Complexity
/// O(N K).
///
/// # Example
/// ```
/// use specgap_core::rounds::fewest_calls;
/// assert_eq!(fewest_calls(&[0.5, 0.5, 9.0], 1), 2.25);
/// assert_eq!(fewest_calls(&[0.5, 0.5, 9.0], 2), 2.0);
/// ```
pub fn fewest_calls<T: Number>(ratios: &[T], most: usize) -> T {
    T::total(&fewest_starts(ratios, most))
}

/// [`fewest_calls`] for drafts as long as one likes: what block verification makes with as many
/// drafts as the text has room for, text by text.
///
/// # Formula
/// Z_0 = 1, Z_t = max(1, r_t Z_(t-1)), the largest product of the last ratios;
/// 1 + sum over t = 1..N-1 of (1 - r_t Z_(t-1))+.
///
/// # Exactness
/// Exact in rationals; in `f64` as [`Survival`](super::Survival).
///
/// # Complexity
/// O(N).
///
/// # Source
/// This project; `docs/theory/several-rounds.md`, Theorem 2.
///
/// # Example
/// ```
/// use specgap_core::rounds::fewest_calls_unlimited;
/// // What the first token has too much of makes up for the second.
/// assert_eq!(fewest_calls_unlimited(&[2.0, 0.5, 0.5, 1.0]), 1.5);
/// ```
pub fn fewest_calls_unlimited<T: Number>(ratios: &[T]) -> T {
    let Some((_, drafted)) = ratios.split_last() else {
        return T::zero();
    };
    let one = T::one();
    let (mut calls, mut largest) = (T::one(), T::one());
    for ratio in drafted {
        let product = scaled(&largest, ratio);
        calls.gain(&one.excess_over(&product));
        largest = if product > one { product } else { one.clone() };
    }
    calls
}

/// Bounds on [`fewest_calls`] of ratios that are known between bounds; without `most`, of
/// [`fewest_calls_unlimited`].
///
/// Calls neither rise nor fall with a single ratio: a draft that is accepted more often leaves
/// fewer rounds that could draft the token after it. So both ends are carried along.
///
/// # Formula
/// s_t at most `(1 - sum of the least s_(t-k) and ratios)+`, at least the same of the largest.
///
/// # Exactness
/// Bounds, not the range: the ends of all s_t need not be attained together. In `f64`.
///
/// # Complexity
/// O(N K); without `most` O(N).
///
/// # Example
/// ```
/// use specgap_core::rounds::fewest_calls_between;
/// let bounds = fewest_calls_between(&[[0.5, 0.5], [0.25, 0.5], [0.0, 1.0]], Some(1));
/// assert_eq!(bounds, [2.25, 2.375]);
/// ```
pub fn fewest_calls_between(ratios: &[[f64; 2]], most: Option<usize>) -> [f64; 2] {
    let Some(most) = most else {
        let [least, largest] =
            [0, 1].map(|end| ratios.iter().map(|ends| ends[end]).collect::<Vec<f64>>());
        // Every product rises with every ratio, and s_t falls with it.
        return [
            fewest_calls_unlimited(&largest),
            fewest_calls_unlimited(&least),
        ];
    };
    let Some((_, drafted)) = ratios.split_last() else {
        return [0.0; 2];
    };
    let mut calls = [1.0; 2];
    let mut offered = VecDeque::from([[1.0; 2]]);
    for ends in drafted {
        offered.truncate(most);
        let mut supply = [0.0; 2];
        for share in &mut offered {
            for (end, ratio) in ends.iter().enumerate() {
                share[end] = scaled(&share[end], ratio);
                supply[end] += share[end];
            }
        }
        let start = [1, 0].map(|end: usize| 1.0_f64.excess_over(&supply[end]));
        calls[0] += start[0];
        calls[1] += start[1];
        offered.push_front(start);
    }
    calls
}

/// For every token of a text, the probability that a round of the rule [`Carry`] starts in front
/// of it, with at most `most` drafts a round. Calls are the mean of the sum.
///
/// # Exactness
/// Exact in rationals, given the text. For K = 1 it is [`fewest_starts`], so that no lossless
/// rule makes fewer calls; for K > 1 some do.
///
/// # Complexity
/// O(N K).
///
/// # Source
/// This project; `docs/theory/several-rounds.md`, section 5.
///
/// # Example
/// ```
/// use specgap_core::rounds::carried_starts;
/// assert_eq!(carried_starts(&[0.5, 0.5, 9.0], 1), [1.0, 0.5, 0.75]);
/// // A token that is drafted more often than the target writes it pays for the next one.
/// assert_eq!(carried_starts(&[0.5, 1.5, 1.0], 1), [1.0, 0.5, 0.25]);
/// ```
pub fn carried_starts<T: Number>(ratios: &[T], most: usize) -> Vec<T> {
    let mut carry = Carry::new(most);
    starts_along(ratios, |ratio| {
        carry.pass(ratio);
        carry.start().clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimum::draw;
    use crate::rounds::{ChainRule, FixedLength, oracle_calls_to_the_end, replay};
    use specgap_number::distribution::Rational;

    /// Some fractions, without a generator of random numbers.
    fn texts() -> Vec<Vec<Rational>> {
        let mut state = 7_u64;
        let mut next = |below: u64| draw(&mut state, below);
        (0..60)
            .map(|_| {
                let tokens = next(9);
                (0..tokens)
                    .map(|_| Rational::new(next(8).into(), (next(5) + 1).into()))
                    .collect()
            })
            .collect()
    }

    #[test]
    fn long_drafts_are_block_verification_text_by_text() {
        for ratios in texts() {
            let tokens = ratios.len();
            let fewest = fewest_starts(&ratios, tokens);
            assert_eq!(
                fewest_calls_unlimited(&ratios),
                fewest_calls(&ratios, tokens)
            );
            let block = replay(ChainRule::BLOCK, &ratios, &FixedLength(tokens)).unwrap();
            let starts = block.starts.into_iter().take(tokens).collect::<Vec<_>>();
            assert_eq!(starts, fewest, "{ratios:?}");
            // Token verification of any lengths, text by text.
            assert!(fewest_calls_unlimited(&ratios) <= oracle_calls_to_the_end(&ratios));
        }
    }

    #[test]
    fn one_carried_draft_is_the_optimum() {
        for ratios in texts() {
            assert_eq!(carried_starts(&ratios, 1), fewest_starts(&ratios, 1));
            for most in 1..4 {
                for start in carried_starts(&ratios, most) {
                    assert!(start >= Rational::zero() && start <= Rational::one());
                }
            }
        }
    }

    #[test]
    fn no_drafts_are_a_call_a_token() {
        assert_eq!(fewest_calls(&[0.5, 2.0, 1.0], 0), 3.0);
        assert_eq!(carried_starts(&[0.5, 2.0, 1.0], 0), [1.0; 3]);
        assert_eq!(fewest_calls_between(&[[0.5, 2.0]; 3], Some(0)), [3.0; 2]);
        assert_eq!(fewest_calls::<f64>(&[], 3), 0.0);
        assert_eq!(fewest_calls_unlimited::<f64>(&[]), 0.0);
        assert_eq!(fewest_calls_between(&[], None), [0.0; 2]);
        assert_eq!(fewest_calls_between(&[], Some(2)), [0.0; 2]);
        assert!(carried_starts::<f64>(&[], 2).is_empty());
        // Products that leave the range do not become numbers that are none.
        let far = [1e300, 1e300, 0.0, 1.0, 1.0];
        assert_eq!(fewest_calls(&far, 4), fewest_calls_unlimited(&far));
    }

    #[test]
    fn bounds_hold_what_is_between_them() {
        for ratios in texts() {
            let floats: Vec<f64> = ratios.iter().map(Number::to_f64).collect();
            let ends: Vec<[f64; 2]> = (floats.iter().enumerate())
                .map(|(index, ratio)| match index % 3 {
                    0 => [*ratio, *ratio],
                    1 => [ratio * 0.75, *ratio],
                    _ => [ratio * 0.5, ratio * 1.25],
                })
                .collect();
            for most in [Some(1), Some(2), Some(5), None] {
                let calls = |ratios: &[f64]| match most {
                    Some(most) => fewest_calls(ratios, most),
                    None => fewest_calls_unlimited(ratios),
                };
                let [low, high] = fewest_calls_between(&ends, most);
                let tolerance = 1e-12;
                for share in [0.0, 0.3, 1.0] {
                    let mixed = ends.iter().map(|[a, b]| a + share * (b - a));
                    let found = calls(&mixed.collect::<Vec<_>>());
                    assert!(low <= found + tolerance && found <= high + tolerance);
                }
                let sharp: Vec<[f64; 2]> = floats.iter().map(|&ratio| [ratio; 2]).collect();
                let [low, high] = fewest_calls_between(&sharp, most);
                assert!((low - calls(&floats)).abs() < 1e-12 && (high - low).abs() < 1e-12);
            }
        }
    }
}
