//! Rounds of a decoder along a text, of which q/p is known at each token: the theory, which
//! knows no logs.
//!
//! [`Survival`] is the probability that drafts are accepted, [`replay()`] the renewal of
//! rounds and [`replay_tree`] the same of trees, [`drafted_rounds`] what is drafted behind
//! rejected tokens, [`oracle_calls`] and [`coin_blind`] what no policy can pass, and
//! [`fewest_calls`] what no lossless rule of one path can pass over several rounds. What the
//! texts are, and what policies draft, is for others. Proofs are in
//! `docs/theory/text-replay.md` and `docs/theory/several-rounds.md`.

mod bounds;
mod carry;
mod coins;
mod drafted;
pub mod floats;
mod greedy;
mod replay;
mod several;
mod starts;
mod stop;
mod survival;
mod trees;

pub use bounds::{CoinBlind, coin_blind, coin_blind_each, oracle_calls, oracle_calls_to_the_end};
pub use carry::{BlockCarry, Carry, GivenOut, carried_block_starts};
pub use coins::{ByStart, Coins};
pub use drafted::{Drafted, DraftedRounds, drafted_rounds};
pub use greedy::{greedy_block_starts, thin};
pub use replay::{DraftLength, FixedLength, Replay, RoundEnd, replay, replay_each};
pub use several::{
    carried_starts, fewest_calls, fewest_calls_between, fewest_calls_unlimited, fewest_starts,
};
pub use starts::{FromStarts, reached_from_starts};
pub use stop::{Lengths, Schedule, Stop, StopBy};
pub use survival::{
    ChainRule, Survival, accepted_everywhere, accepted_lengths, accepted_lengths_by_means,
};
pub use trees::{ChildShares, TreeReplay, replay_tree, replay_tree_with};
pub use trees::{DrawnNode, TreeEnd, ends_from_leaves};
pub use trees::{ListedToken, kept_between};
pub use trees::{TextToken, kept_from_leaves, most_kept};
pub use trees::{survival_of_tree, walk};
