//! The same of `f64`, compiled here: a build that is made in a hurry optimises this member, and
//! not those that ask for a replay of 100,000 tokens.

use super::{ChainRule, CoinBlind, Coins, DraftLength, Replay};

macro_rules! of_floats {
    ($($name:ident($($given:ident: $kind:ty),*) -> $answer:ty;)*) => {$(
        #[doc = concat!("[`", stringify!($name), "`](super::", stringify!($name), "()) of `f64`.")]
        pub fn $name($($given: $kind),*) -> $answer {
            super::$name($($given),*)
        }
    )*};
}

of_floats! {
    replay_each(verifier: ChainRule, coins: &dyn Coins<f64>, policies: &[&dyn DraftLength])
        -> Option<Vec<Replay<f64>>>;
    coin_blind_each(verifier: ChainRule, coins: &dyn Coins<f64>, costs: &[Vec<f64>])
        -> Option<Vec<CoinBlind<f64>>>;
    accepted_lengths(verifier: ChainRule, coins: &dyn Coins<f64>, most: usize)
        -> Vec<(f64, usize)>;
    accepted_lengths_by_means(coins: &dyn Coins<f64>, means: &dyn Coins<f64>, most: usize)
        -> Vec<(f64, usize)>;
    accepted_everywhere(verifier: ChainRule, coins: &dyn Coins<f64>, most: usize) -> Vec<f64>;
    oracle_calls(ratios: &[f64]) -> f64;
    fewest_calls(ratios: &[f64], most: usize) -> f64;
    fewest_calls_unlimited(ratios: &[f64]) -> f64;
    carried_starts(ratios: &[f64], most: usize) -> Vec<f64>;
}
