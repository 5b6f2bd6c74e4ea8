//! The same of `f64`, compiled here: a build that is made in a hurry optimises this member, and
//! not those that ask for a replay of 100,000 tokens.

use super::{ChainRule, CoinBlind, Coins, DraftLength, Replay};

/// [`replay_each`](super::replay_each()) of `f64`.
pub fn replay_each(
    verifier: ChainRule,
    coins: &dyn Coins<f64>,
    policies: &[&dyn DraftLength],
) -> Option<Vec<Replay<f64>>> {
    super::replay_each(verifier, coins, policies)
}

/// [`coin_blind_each`](super::coin_blind_each()) of `f64`.
pub fn coin_blind_each(
    verifier: ChainRule,
    coins: &dyn Coins<f64>,
    costs: &[Vec<f64>],
) -> Option<Vec<CoinBlind<f64>>> {
    super::coin_blind_each(verifier, coins, costs)
}

/// [`accepted_lengths`](super::accepted_lengths()) of `f64`.
pub fn accepted_lengths(
    verifier: ChainRule,
    coins: &dyn Coins<f64>,
    most: usize,
) -> Vec<(f64, usize)> {
    super::accepted_lengths(verifier, coins, most)
}

/// [`accepted_lengths_by_means`](super::accepted_lengths_by_means()) of `f64`.
pub fn accepted_lengths_by_means(
    coins: &dyn Coins<f64>,
    means: &dyn Coins<f64>,
    most: usize,
) -> Vec<(f64, usize)> {
    super::accepted_lengths_by_means(coins, means, most)
}

/// [`accepted_everywhere`](super::accepted_everywhere()) of `f64`.
pub fn accepted_everywhere(verifier: ChainRule, coins: &dyn Coins<f64>, most: usize) -> Vec<f64> {
    super::accepted_everywhere(verifier, coins, most)
}

/// [`oracle_calls`](super::oracle_calls()) of `f64`.
pub fn oracle_calls(ratios: &[f64]) -> f64 {
    super::oracle_calls(ratios)
}

/// [`fewest_calls`](super::fewest_calls()) of `f64`.
pub fn fewest_calls(ratios: &[f64], most: usize) -> f64 {
    super::fewest_calls(ratios, most)
}

/// [`fewest_calls_unlimited`](super::fewest_calls_unlimited()) of `f64`.
pub fn fewest_calls_unlimited(ratios: &[f64]) -> f64 {
    super::fewest_calls_unlimited(ratios)
}

/// [`carried_starts`](super::carried_starts()) of `f64`.
pub fn carried_starts(ratios: &[f64], most: usize) -> Vec<f64> {
    super::carried_starts(ratios, most)
}
