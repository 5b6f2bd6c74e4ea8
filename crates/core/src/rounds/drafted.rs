//! Drafts behind rejected tokens, from rollouts of the draft.

use super::replay::weighted;
use specgap_number::number::Number;

/// What a policy does in a round that goes on as long as it likes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drafted {
    /// Tokens drafted.
    pub tokens: usize,
    /// Whether it stopped by itself, before the most that it may draft.
    pub stopped: bool,
}

/// Rounds of one text by what is drafted in them, rejected tokens and what follows included.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DraftedRounds<T> {
    /// By n: rounds in which n tokens are drafted.
    pub rounds: Vec<T>,
    /// Rounds that the policy ended by itself.
    pub stopped: T,
}

/// Rounds by what is drafted in them, from rollouts at some of the text's starts.
///
/// `starts` has w_s, the probability that a round starts behind s tokens
/// ([`Replay::starts`](super::Replay::starts)); `along` what the policy drafts from s if it
/// draws the text's own tokens; `rollouts` what it drafts on a rollout from s. A rollout starts
/// at each position with the same probability 1/`spacing`; where several start together,
/// `spacing` is divided by their number.
///
/// # Formula
/// With n_s drafts on the rollout from s and l_s along the text, and the sum over S being over
/// starts with a rollout:
///
/// ```text
/// drafts = sum over s of w_s l_s + spacing * sum over S of w_s (n_s - l_s),
/// ```
///
/// and the same of the number of rounds with n drafts, for every n. Its expectation over
/// starts and rollouts is the sum over all s of w_s E\[n_s\]: l_s and w_s follow from the text,
/// given which each start has a rollout with probability 1/`spacing`, drawn from the draft
/// whatever the text goes on with. With a rollout everywhere it is the sum of w_s n_s.
///
/// # Exactness
/// Unbiased for calls' sum too: rounds add up to the sum of w_s, whatever was drawn. Single
/// numbers of rounds may come out below 0.
///
/// # Complexity
/// One call of `along` a start.
///
/// # Example
/// ```
/// use specgap_core::rounds::{Drafted, drafted_rounds};
///
/// let drafted = |tokens| Drafted { tokens, stopped: false };
/// // Rounds start at 0 always and at 1 half of the time; along the text one token is drafted.
/// // A rollout at every second position: this one starts at 0, and three tokens are drafted.
/// let found = drafted_rounds(&[1.0, 0.5], |_| drafted(1), [(0, drafted(3))], &2.0);
/// assert_eq!(found.rounds, [0.0, -0.5, 0.0, 2.0]);
/// assert_eq!(found.drafts(), 1.5 + 2.0 * (3.0 - 1.0));
/// ```
pub fn drafted_rounds<T: Number>(
    starts: &[T],
    mut along: impl FnMut(usize) -> Drafted,
    rollouts: impl IntoIterator<Item = (usize, Drafted)>,
    spacing: &T,
) -> DraftedRounds<T> {
    let mut found = DraftedRounds {
        rounds: Vec::new(),
        stopped: T::zero(),
    };
    let along: Vec<Drafted> = (0..starts.len()).map(&mut along).collect();
    for (weight, along) in starts.iter().zip(&along) {
        found.add(*along, weight);
    }
    for (start, rollout) in rollouts {
        let (Some(weight), Some(along)) = (starts.get(start), along.get(start)) else {
            continue;
        };
        let weight = weight.times(spacing);
        found.add(rollout, &weight);
        found.add(*along, &T::zero().minus(&weight));
    }
    found
}

impl<T: Number> DraftedRounds<T> {
    fn add(&mut self, drafted: Drafted, weight: &T) {
        if weight.is_nil() {
            return;
        }
        if self.rounds.len() <= drafted.tokens {
            self.rounds.resize(drafted.tokens + 1, T::zero());
        }
        self.rounds[drafted.tokens].gain(weight);
        if drafted.stopped {
            self.stopped.gain(weight);
        }
    }

    /// Draft tokens of all rounds.
    pub fn drafts(&self) -> T {
        weighted(&self.rounds)
    }
}
