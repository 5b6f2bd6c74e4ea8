//! The rounds of a decoder along a text: a renewal process.

use super::coins::Coins;
use super::survival::{ChainRule, Steps, by_step};
use specgap_number::number::Number;
use std::collections::VecDeque;

/// How many tokens are drafted in a round, for one text.
///
/// A policy may look at all that the drafter knows: the text so far, the draft's rows, and
/// the tokens drafted in this round. As long as these are accepted they are the text's own,
/// so that the length along the text is known. What it would draft after a token that is
/// rejected is not.
pub trait DraftLength {
    /// Returns whether a round's length depends on how earlier ones ended.
    fn remembers(&self) -> bool {
        true
    }

    /// Returns what the first round remembers of earlier ones.
    fn first(&self) -> usize {
        0
    }

    /// Tokens drafted by a round that starts behind `start` tokens of the text, if all of
    /// them are the text's own: at most `most`.
    fn along(&self, start: usize, most: usize, memory: usize) -> usize;

    /// Returns whether a round that drafts `length` tokens from there ends because the policy says
    /// so, where the text has room for `room`.
    fn stops(&self, start: usize, length: usize, room: usize) -> bool {
        let _ = start;
        length < room
    }

    /// Returns what the next round remembers: a number that is small, as rounds are kept by it.
    fn next(&self, memory: usize, end: RoundEnd) -> usize {
        let _ = end;
        memory
    }
}

/// How a round ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundEnd {
    /// A draft was rejected, and the target put another token in its place.
    Rejected,
    /// All drafts were accepted, and the target added a token.
    AllAccepted,
}

/// K tokens every round.
///
/// ```
/// use specgap_core::rounds::{DraftLength, FixedLength};
/// assert_eq!(FixedLength(4).along(0, 2, 0), 2);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedLength(pub usize);

impl DraftLength for FixedLength {
    fn remembers(&self) -> bool {
        false
    }

    fn along(&self, _start: usize, most: usize, _memory: usize) -> usize {
        self.0.min(most)
    }
}

/// A length for each start: what is set when the round begins.
impl DraftLength for [usize] {
    fn remembers(&self) -> bool {
        false
    }

    fn along(&self, start: usize, most: usize, _memory: usize) -> usize {
        self.get(start).copied().unwrap_or(0).min(most)
    }
}

/// Expected numbers of one text's rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay<T> {
    /// E\[target calls given the text\]: one a round.
    pub calls: T,
    /// For each number of tokens, the probability that a round starts behind them. The draft
    /// tokens of any policy are the sum of these times what it drafts from there on average,
    /// rejected tokens and what follows them included.
    pub starts: Vec<T>,
    /// By n: the expected number of rounds that draft n tokens as long as all are accepted.
    /// Where the length is set when the round begins, that many are drafted whatever
    /// happens.
    pub rounds: Vec<T>,
    /// By n: the expected number of rounds with n tokens drafted up to the first that is
    /// rejected, itself included.
    pub seen: Vec<T>,
    /// The expected number of rounds that the policy ended before it had to, with all
    /// drafts accepted.
    pub stopped: T,
}

impl<T: Number> Replay<T> {
    /// E\[draft tokens given the text\], for policies that set the length when the round
    /// begins.
    pub fn drafts_set_at_start(&self) -> T {
        weighted(&self.rounds)
    }

    /// The part of E\[draft tokens given the text\] that the text shows: drafts up to the
    /// first rejection. No policy drafts fewer; what it drafts after a rejected token is not
    /// in the log.
    pub fn drafts_at_least(&self) -> T {
        weighted(&self.seen)
    }
}

/// sum over n of n times the n-th.
pub(crate) fn weighted<T: Number>(counts: &[T]) -> T {
    let mut sum = T::zero();
    let mut number = T::zero();
    for count in counts {
        sum.gain(&number.times(count));
        number = number.plus(&T::one());
    }
    sum
}

/// Replays a decoder's rounds along a text, from its first token to its last, by the
/// ratios q/p at its tokens, or at the tokens behind each start ([`Coins`]).
///
/// A round that starts with `left` tokens to go drafts at most `left - 1`: the last token
/// is the target's own. A round that starts at the last token drafts none, and is a call.
///
/// # Formula
/// Given the text, rounds start at s with probability w_s, w_0 = 1. From s, with m_i the
/// probability that i drafts are accepted ([`Survival`](super::Survival)) and n the length along the text,
/// the next round starts at s + i with probability `m_(i-1) - m_i` for i <= n, and at
/// s + n + 1 with probability m_n. Derived in `docs/theory/text-replay.md`. `None` for
/// greedy-block, whose rounds change the target of the next.
///
/// # Exactness
/// Given the text there is no randomness left, and no independence or stationarity is
/// assumed. Exact in rationals.
///
/// # Complexity
/// O(N K) for one memory, K being the longest round.
///
/// # Example
/// ```
/// use specgap_core::rounds::{ChainRule, FixedLength, replay};
///
/// // Two tokens: the first is drafted and accepted with probability 1/2.
/// let two = replay(ChainRule::TOKEN, &[0.5, 1.0], &FixedLength(3)).unwrap();
/// assert_eq!(two.calls, 1.5);
/// assert_eq!(two.drafts_set_at_start(), 1.0);
/// ```
pub fn replay<T: Number>(
    verifier: ChainRule,
    ratios: &(impl Coins<T> + ?Sized),
    policy: &(impl DraftLength + ?Sized),
) -> Option<Replay<T>> {
    if !verifier.has_rounds() {
        return None;
    }
    let mut replay = Replay {
        calls: T::zero(),
        starts: vec![T::zero(); ratios.tokens()],
        rounds: Vec::new(),
        seen: Vec::new(),
        stopped: T::zero(),
    };
    by_step!(verifier, step => match policy.remembers() {
        true => replay.play_remembering(ratios, policy, step),
        false => replay.play(ratios, policy, step),
    });
    Some(replay)
}

impl<T: Number> Replay<T> {
    /// Plays the rounds of a policy that remembers nothing: a weight a start is all there is.
    fn play(
        &mut self,
        ratios: &(impl Coins<T> + ?Sized),
        policy: &(impl DraftLength + ?Sized),
        step: impl Fn(&mut Steps<T>, &T) + Copy,
    ) {
        let tokens = self.starts.len();
        let mut starts = std::mem::take(&mut self.starts);
        if let Some(first) = starts.first_mut() {
            *first = T::one();
        }
        for start in 0..tokens {
            let (before, behind) = starts.split_at_mut(start + 1);
            let weight = &before[start];
            if !weight.is_nil() {
                let ahead = ratios.ahead(start);
                let most = behind.len().min(ahead.len());
                self.round(
                    policy,
                    [start, most, 0],
                    weight,
                    ahead,
                    step,
                    |at, _, weight| {
                        // What ends the text begins nothing.
                        if let Some(next) = behind.get_mut(at) {
                            next.gain(weight);
                        }
                    },
                );
            }
        }
        self.starts = starts;
    }

    /// Plays those of a policy that remembers: rounds that start at one token differ.
    fn play_remembering(
        &mut self,
        ratios: &(impl Coins<T> + ?Sized),
        policy: &(impl DraftLength + ?Sized),
        step: impl Fn(&mut Steps<T>, &T) + Copy,
    ) {
        let tokens = self.starts.len();
        let mut first = vec![T::zero(); policy.first()];
        first.push(T::one());
        // By what they remember, rounds that may start here and behind the next tokens.
        let mut ahead_of = VecDeque::from([first]);
        for start in 0..tokens {
            let ahead = ratios.ahead(start);
            let most = (tokens - start - 1).min(ahead.len());
            let mut here = ahead_of.pop_front().unwrap_or_default();
            for (memory, weight) in here.drain(..).enumerate() {
                if weight.is_nil() {
                    continue;
                }
                self.starts[start].gain(&weight);
                let known = [RoundEnd::Rejected, RoundEnd::AllAccepted];
                let known = known.map(|end| policy.next(memory, end));
                let round = [start, most, memory];
                self.round(policy, round, &weight, ahead, step, |at, end, weight| {
                    while ahead_of.len() <= at {
                        ahead_of.push_back(Vec::new());
                    }
                    let (starts, memory) = (&mut ahead_of[at], known[end as usize]);
                    if starts.len() <= memory {
                        starts.resize(memory + 1, T::zero());
                    }
                    starts[memory].gain(weight);
                });
            }
            // Its room serves a later start.
            ahead_of.push_back(here);
        }
    }

    /// Counts a round that begins with some probability, and tells `next` how many tokens it may
    /// put out, how it ends then, and with which probability.
    #[inline(always)]
    fn round(
        &mut self,
        policy: &(impl DraftLength + ?Sized),
        [start, most, memory]: [usize; 3],
        weight: &T,
        ahead: &[T],
        step: impl Fn(&mut Steps<T>, &T),
        mut next: impl FnMut(usize, RoundEnd, &T),
    ) {
        let length = policy.along(start, most, memory).min(most);
        self.calls.gain(weight);
        if self.rounds.len() <= length {
            self.rounds.resize(length + 1, T::zero());
            self.seen.resize(length + 1, T::zero());
        }
        self.rounds[length].gain(weight);
        let mut survival = Steps::start();
        let mut reached = weight.clone();
        let seen = self.seen.iter_mut().skip(1);
        for ((drafted, seen), ratio) in (0..length).zip(seen).zip(ahead) {
            step(&mut survival, ratio);
            let now = weight.times(survival.reached());
            let rejected = reached.excess_over(&now);
            next(drafted, RoundEnd::Rejected, &rejected);
            seen.gain(&rejected);
            reached = now;
        }
        next(length, RoundEnd::AllAccepted, &reached);
        self.seen[length].gain(&reached);
        if policy.stops(start, length, most) {
            self.stopped.gain(&reached);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ByStart;
    use super::*;

    /// Accepts everything, so that lengths alone decide.
    const SURE: [f64; 5] = [1.0; 5];

    fn rounds(policy: &(impl DraftLength + ?Sized)) -> Replay<f64> {
        replay(ChainRule::TOKEN, &SURE, policy).unwrap()
    }

    #[test]
    fn a_round_that_the_text_ends_was_not_stopped_by_the_policy() {
        // Two tokens and the target's own; then one and the last.
        let found = rounds(&FixedLength(2));
        assert_eq!((found.calls, found.stopped), (2.0, 1.0));
        assert_eq!(found.rounds, [0.0, 1.0, 1.0]);
        assert_eq!(found.seen, [0.0, 1.0, 1.0]);
        assert_eq!(found.starts, [1.0, 0.0, 0.0, 1.0, 0.0]);
        // No policy drafts the last token.
        let found = rounds(&FixedLength(9));
        assert_eq!((found.calls, found.stopped), (1.0, 0.0));
        assert_eq!(found.rounds, [0.0, 0.0, 0.0, 0.0, 1.0]);
    }

    #[test]
    fn lengths_by_start_are_none_where_there_is_no_entry() {
        let lengths: &[usize] = &[1, 7];
        let found = rounds(lengths);
        assert_eq!(found.rounds, [3.0, 1.0]);
        assert_eq!(found.starts, [1.0, 0.0, 1.0, 1.0, 1.0]);
        assert_eq!(lengths.along(1, 3, 0), 3);
    }

    /// A policy of which nobody says that it remembers nothing.
    struct Silent<'a>(&'a dyn DraftLength);

    impl DraftLength for Silent<'_> {
        fn along(&self, start: usize, most: usize, memory: usize) -> usize {
            self.0.along(start, most, memory)
        }
    }

    #[test]
    fn who_remembers_nothing_is_replayed_alike_by_both_ways_to_the_bit() {
        let ratios: Vec<f64> = (0..97u32)
            .map(|i| f64::from(i * i * 31 % 89) / 40.0)
            .collect();
        let by_start = ByStart(
            (0..97)
                .map(|start| ratios[start % 90..][..start % 7].to_vec())
                .collect(),
        );
        for verifier in [ChainRule::TOKEN, ChainRule::BLOCK] {
            for length in [0, 1, 3, 16, 200] {
                let policy = FixedLength(length);
                for coins in [&ratios as &dyn Coins<f64>, &by_start] {
                    let one = replay(verifier, coins, &policy).unwrap();
                    let other = replay(verifier, coins, &Silent(&policy)).unwrap();
                    assert_eq!(one, other, "{verifier}, {length}");
                    let tokens: f64 = (one.starts.iter()).sum();
                    assert!((tokens - one.calls).abs() < 1e-9);
                }
            }
        }
    }

    struct Remembering;

    impl DraftLength for Remembering {
        fn along(&self, _start: usize, _most: usize, memory: usize) -> usize {
            // More than there is room for.
            if memory == 0 { 1 } else { usize::MAX }
        }
    }

    struct Counting;

    impl DraftLength for Counting {
        fn first(&self) -> usize {
            1
        }

        fn along(&self, _start: usize, most: usize, memory: usize) -> usize {
            memory.min(most)
        }

        fn next(&self, memory: usize, end: RoundEnd) -> usize {
            match end {
                RoundEnd::AllAccepted => memory + 1,
                RoundEnd::Rejected => 0,
            }
        }
    }

    /// A policy that says nothing of its memory keeps it, and begins with none.
    #[test]
    fn a_memory_is_kept_unless_the_policy_says_otherwise() {
        for end in [RoundEnd::AllAccepted, RoundEnd::Rejected] {
            assert_eq!(FixedLength(4).next(7, end), 7);
        }
        assert_eq!(FixedLength(4).first(), 0);
        let stops = [0, 3, 4, 5].map(|length| FixedLength(4).stops(0, length, 4));
        assert_eq!(stops, [true, true, false, false]);
        assert_eq!(
            [2, 4, 9].map(|most| FixedLength(4).along(0, most, 1)),
            [2, 4, 4]
        );
    }

    #[test]
    fn what_a_round_remembers_reaches_the_next() {
        // Unless a policy says so, nothing is remembered.
        assert_eq!(rounds(&Remembering).rounds, [1.0, 2.0]);
        // One token, then two.
        let found = rounds(&Counting);
        assert_eq!(found.rounds, [0.0, 1.0, 1.0]);
        // The first is rejected half of the time. Then none is drafted behind it; either way one
        // is from the third token on, the last but one.
        let found = replay(ChainRule::TOKEN, &[0.5, 1.0, 1.0, 1.0], &Counting).unwrap();
        assert_eq!(found.rounds, [0.5, 2.0]);
        assert_eq!(found.starts, [1.0, 0.5, 1.0, 0.0]);
    }

    #[test]
    fn a_policy_may_not_draft_more_than_there_is_room_for() {
        struct Boundless;
        impl DraftLength for Boundless {
            fn along(&self, _start: usize, _most: usize, _memory: usize) -> usize {
                usize::MAX
            }
        }
        assert_eq!(rounds(&Boundless), rounds(&FixedLength(4)));
    }
}
