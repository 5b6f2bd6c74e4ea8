//! What no policy can pass.

use super::survival::{Steps, by_step};
use super::{ChainRule, Coins, DraftLength};
use specgap_number::number::Number;

/// sum over all tokens of 1 - min(1, r): the fewest target calls that any policy with token
/// verification makes in expectation, given the text.
///
/// A token that the target puts out is one that was not drafted or was rejected; given the
/// text a drafted token is rejected with probability 1 - min(1, r), whatever was drafted
/// before.
///
/// # Example
/// ```
/// use specgap_core::rounds::{oracle_calls, oracle_calls_to_the_end};
/// assert_eq!(oracle_calls(&[0.5, 2.0, 0.75]), 0.75);
/// assert_eq!(oracle_calls_to_the_end(&[0.5, 2.0, 0.75]), 1.5);
/// ```
pub fn oracle_calls<T: Number>(ratios: &[T]) -> T {
    let rejected: Vec<T> = ratios.iter().map(rejection).collect();
    T::total(&rejected)
}

/// The same where the text's last token is always the target's, as in
/// [`replay`](super::replay()): 1 + sum over all tokens but the last. Stopping just before
/// each rejection makes that many calls and discards nothing.
pub fn oracle_calls_to_the_end<T: Number>(ratios: &[T]) -> T {
    match ratios.split_last() {
        Some((_, before)) => T::one().plus(&oracle_calls(before)),
        None => T::zero(),
    }
}

/// 1 - min(1, r).
fn rejection<T: Number>(ratio: &T) -> T {
    T::one().excess_over(ratio)
}

/// The lengths that cost least for one who knows the text, but neither the coins nor the
/// drafts of the round.
#[derive(Clone, Debug, PartialEq)]
pub struct CoinBlind<T> {
    /// For each start, how many tokens to draft.
    pub lengths: Vec<usize>,
    /// The expected cost of the whole text.
    pub cost: T,
}

/// Backward induction over the starts of rounds.
///
/// # Formula
/// V(N) = 0, and V(s) = min over n < N - s of
/// `cost(n) + sum over i <= n of (m_(i-1) - m_i) V(s + i) + m_n V(s + n + 1)`,
/// with m_i as in [`Survival`](super::Survival) and `cost(n)` that of a round with n drafts.
///
/// It bounds every policy that sets a round's length when it begins, whatever it knows of
/// the text. It does not bound policies that look at drafted tokens: these can tell that a
/// token will be rejected (`docs/theory/text-replay.md` has an example). `None` for greedy-block.
///
/// # Exactness
/// Exact in rationals. In `f64` lengths that fewer than 1e-18 of the rounds would reach are
/// not tried.
///
/// # Complexity
/// O(N^2) at most; less where drafts are rejected, or where longer rounds cost more than the best.
///
/// # Example
/// ```
/// use specgap_core::rounds::{ChainRule, coin_blind};
///
/// // Every draft is accepted: one round does it all.
/// let plan = coin_blind(ChainRule::TOKEN, &[1.0; 4], &|n| 1.0 + 0.1 * n as f64).unwrap();
/// assert_eq!(plan.lengths, [3, 2, 1, 0]);
/// assert!((plan.cost - 1.3).abs() < 1e-12);
/// ```
pub fn coin_blind<T: Number>(
    verifier: ChainRule,
    ratios: &(impl Coins<T> + ?Sized),
    cost: &dyn Fn(usize) -> T,
) -> Option<CoinBlind<T>> {
    let costs = (0..ratios.tokens()).map(cost).collect::<Vec<T>>();
    coin_blind_each(verifier, ratios, &[costs])?.pop()
}

/// The same at several costs at once, each by the number of drafts: a text's coins are gone through
/// once. Each of as many tokens as the text has, or more.
pub fn coin_blind_each<T: Number>(
    verifier: ChainRule,
    ratios: &(impl Coins<T> + ?Sized),
    costs: &[Vec<T>],
) -> Option<Vec<CoinBlind<T>>> {
    if !verifier.has_rounds() {
        return None;
    }
    // By length, of all costs: what a round costs, and the least that one costs of that length or
    // longer, as what comes behind costs no less than 0.
    let total = ratios.tokens();
    let lanes = costs.len();
    let by_length = |of: &dyn Fn(&Vec<T>, usize) -> T| -> Vec<T> {
        let all = (0..total).flat_map(|length| costs.iter().map(move |costs| (costs, length)));
        all.map(|(costs, length)| of(costs, length)).collect()
    };
    let each = by_length(&|costs, length| costs[length].clone());
    let mut floors = each.clone();
    for at in (0..floors.len().saturating_sub(lanes)).rev() {
        if floors[at + lanes] < floors[at] {
            floors[at] = floors[at + lanes].clone();
        }
    }
    Some(by_step!(verifier, step => induce(ratios, lanes, &each, &floors, step)))
}

/// The cheapest lengths from the last start to the first, at `lanes` costs side by side.
fn induce<T: Number>(
    ratios: &(impl Coins<T> + ?Sized),
    lanes: usize,
    costs: &[T],
    floors: &[T],
    step: impl Fn(&mut Steps<T>, &T),
) -> Vec<CoinBlind<T>> {
    let total = ratios.tokens();
    let at = |row: usize| row * lanes..(row + 1) * lanes;
    let mut values = vec![T::zero(); (total + 1) * lanes];
    let mut lengths = vec![0; total * lanes];
    for start in (0..total).rev() {
        let mut survival = Steps::start();
        let mut reached = T::one();
        // Of rounds that end by a rejection.
        let mut ahead = vec![T::zero(); lanes];
        let (before, behind) = values.split_at_mut((start + 1) * lanes);
        let (best, chosen) = (&mut before[at(start)], &mut lengths[at(start)]);
        for ((best, cost), after) in best.iter_mut().zip(costs).zip(&*behind) {
            *best = cost.plus(after);
        }
        let coins = ratios.ahead(start);
        for length in 1..(total - start).min(coins.len() + 1) {
            // Nobody gets there.
            if reached.is_nil() || (!T::EXACT && reached.to_f64() < 1e-18) {
                break;
            }
            step(&mut survival, &coins[length - 1]);
            let now = survival.reached().clone();
            let rejected = reached.excess_over(&now);
            reached = now;
            let (here, after) = (&behind[at(length - 1)], &behind[at(length)]);
            let (costs, floors) = (&costs[at(length)], &floors[at(length)]);
            let mut is_open = false;
            for lane in 0..lanes {
                ahead[lane].gain(&rejected.times(&here[lane]));
                // Closed once, it stays so: no longer round costs less, before it or behind.
                let open = floors[lane].plus(&ahead[lane]) < best[lane];
                is_open |= open;
                let value = costs[lane]
                    .plus(&ahead[lane])
                    .plus(&reached.times(&after[lane]));
                if open && value < best[lane] {
                    best[lane] = value;
                    chosen[lane] = length;
                }
            }
            if !is_open {
                break;
            }
        }
    }
    let of = |lane: usize| CoinBlind {
        lengths: lengths.iter().skip(lane).step_by(lanes).copied().collect(),
        cost: values[lane].clone(),
    };
    (0..lanes).map(of).collect()
}

impl<T: Number> DraftLength for CoinBlind<T> {
    fn is_set(&self) -> bool {
        true
    }

    fn along(&self, start: usize, most: usize, memory: usize) -> usize {
        self.lengths.along(start, most, memory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimum::fractions;
    use crate::rounds::replay;
    use specgap_number::distribution::{Rational, parse_rational};

    /// Every choice of a length for every start, by replay.
    fn cheapest(
        verifier: ChainRule,
        ratios: &[Rational],
        cost: &dyn Fn(usize) -> Rational,
    ) -> Rational {
        let mut choices = vec![Vec::<usize>::new()];
        for start in 0..ratios.len() {
            let mut longer = Vec::new();
            for choice in &choices {
                for length in 0..ratios.len() - start {
                    longer.push([&choice[..], &[length]].concat());
                }
            }
            choices = longer;
        }
        let total = |lengths: &Vec<usize>| {
            let found = replay(verifier, ratios, &lengths[..]).unwrap();
            let parts = (0..).zip(&found.rounds);
            parts.map(|(n, count)| count * cost(n)).sum::<Rational>()
        };
        choices.iter().map(total).min().unwrap()
    }

    #[test]
    fn backward_induction_finds_the_cheapest_lengths() {
        let draft = parse_rational("1/7").unwrap();
        // A pass that is longer costs more, beyond two tokens.
        let cost = |n: usize| {
            let whole = |n: usize| Rational::from_integer(n.into());
            Rational::one() + &draft * whole(n) + &draft * whole(n.saturating_sub(2))
        };
        for ratios in [
            fractions(&["1/2", "3", "4/5", "0", "9/10"]),
            fractions(&["2", "1/2", "1/3", "5", "1"]),
            fractions(&["1", "1", "1", "1", "1"]),
            fractions(&["1/9"]),
        ] {
            for verifier in [ChainRule::TOKEN, ChainRule::BLOCK] {
                let plan = coin_blind(verifier, &ratios, &cost).unwrap();
                let by_hand = cheapest(verifier, &ratios, &cost);
                assert_eq!(plan.cost, by_hand, "{verifier}, {ratios:?}");
                let floats: Vec<f64> = ratios.iter().map(Number::to_f64).collect();
                let float = coin_blind(verifier, &floats, &|n| cost(n).to_f64()).unwrap();
                assert!((float.cost - plan.cost.to_f64()).abs() < 1e-12);
                assert_eq!(float.lengths, plan.lengths, "{verifier}, {ratios:?}");
            }
        }
        let ratios: Vec<f64> = (0..60u32)
            .map(|i| f64::from(i * i * 31 % 89) / 50.0)
            .collect();
        let costs: Vec<Vec<f64>> = [0.01, 0.2, 0.9]
            .map(|step| (0..70).map(|n| 1.0 + step * f64::from(n)).collect())
            .to_vec();
        for verifier in [ChainRule::TOKEN, ChainRule::BLOCK] {
            let all = coin_blind_each(verifier, &ratios, &costs).unwrap();
            for (plan, costs) in all.iter().zip(&costs) {
                assert_eq!(*plan, coin_blind(verifier, &ratios, &|n| costs[n]).unwrap());
                let rounds = replay(verifier, &ratios, plan).unwrap().rounds;
                let paid: f64 = rounds
                    .iter()
                    .zip(costs)
                    .map(|(count, cost)| count * cost)
                    .sum();
                assert!((paid - plan.cost).abs() < 1e-9, "{paid} {}", plan.cost);
            }
        }
        assert!(coin_blind(ChainRule::GREEDY_BLOCK, &[1.0], &|_| 1.0).is_none());
        assert_eq!(
            coin_blind(ChainRule::TOKEN, &[], &|_| 1.0).unwrap().cost,
            0.0
        );
    }
}
