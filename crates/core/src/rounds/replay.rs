//! The rounds of a decoder along a text: a renewal process.

use super::coins::Coins;
use super::survival::{ChainRule, Steps, by_step};
use specgap_number::number::Number;

/// How many tokens are drafted in a round, for one text.
///
/// A policy may look at all that the drafter knows: the text so far, the draft's rows, and
/// the tokens drafted in this round. As long as these are accepted they are the text's own,
/// so that the length along the text is known. What it would draft after a token that is
/// rejected is not.
pub trait DraftLength {
    /// Returns whether a round's length is set when it begins, so that so much is drafted whatever
    /// becomes of it.
    fn is_set(&self) -> bool {
        false
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
    fn is_set(&self) -> bool {
        true
    }

    fn along(&self, _start: usize, most: usize, _memory: usize) -> usize {
        self.0.min(most)
    }
}

/// A length for each start: what is set when the round begins.
impl DraftLength for [usize] {
    fn is_set(&self) -> bool {
        true
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
    /// rejected, itself included. None where the length is set when the round begins.
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
    replay_each(verifier, ratios, &[&policy])?.pop()
}

/// [`replay()`] of several policies: how far rounds get from a start is the same for all of them.
///
/// # Exactness
/// As of one. In `f64` what rounds remember is left out where fewer than 1e-20 of them do.
///
/// # Complexity
/// O(N K) time and O(N) room for each policy, and for each memory of one that remembers.
pub fn replay_each<T: Number>(
    verifier: ChainRule,
    ratios: &(impl Coins<T> + ?Sized),
    policies: &[&dyn DraftLength],
) -> Option<Vec<Replay<T>>> {
    if !verifier.has_rounds() {
        return None;
    }
    let tokens = ratios.tokens();
    let mut all: Vec<Rounds<'_, T>> = (policies.iter())
        .map(|&policy| Rounds::new(policy, tokens))
        .collect();
    by_step!(verifier, step => {
        let mut row = Row::new();
        for start in 0..tokens {
            let ahead = ratios.ahead(start);
            let ahead = &ahead[..ahead.len().min(tokens - start - 1)];
            row.begin();
            all.iter_mut().for_each(|rounds| rounds.begin(start, ahead, &mut row, step));
        }
    });
    Some(all.into_iter().map(Rounds::found).collect())
}

/// How far rounds get that start at one place, as far as was asked: m_0, m_1, .., and each less the
/// next.
struct Row<T> {
    survival: Steps<T>,
    reached: Vec<T>,
    rejected: Vec<T>,
}

impl<T: Number> Row<T> {
    fn new() -> Self {
        Self {
            survival: Steps::start(),
            reached: vec![T::one()],
            rejected: Vec::new(),
        }
    }

    fn begin(&mut self) {
        self.survival = Steps::start();
        self.reached.truncate(1);
        self.rejected.clear();
    }

    #[inline(always)]
    fn reach(&mut self, length: usize, ahead: &[T], step: impl Fn(&mut Steps<T>, &T)) {
        for ratio in &ahead[self.rejected.len().min(length)..length] {
            let before = self.survival.reached().clone();
            step(&mut self.survival, ratio);
            let now = self.survival.reached().clone();
            self.rejected.push(before.excess_over(&now));
            self.reached.push(now);
        }
    }
}

/// A policy's rounds, as far as they have been replayed.
struct Rounds<'a, T> {
    policy: &'a dyn DraftLength,
    found: Replay<T>,
    /// By what they remember, and by token, rounds that start there.
    starts: Vec<Vec<T>>,
    /// What is remembered behind a memory, by how its round ends.
    next: Vec<[usize; 2]>,
}

/// Adds parts of a weight. A call of its own, so that nothing but these is known to the loop.
#[inline(never)]
fn gain_each<T: Number>(sums: &mut [T], weight: &T, parts: &[T]) {
    let weight = weight.clone();
    for (sum, part) in sums.iter_mut().zip(parts) {
        sum.gain(&weight.times(part));
    }
}

/// In `f64` fewer rounds than this are none: what is left out is less than rounding.
const LEAST: f64 = 1e-20;

impl<'a, T: Number> Rounds<'a, T> {
    fn new(policy: &'a dyn DraftLength, tokens: usize) -> Self {
        let mut starts = vec![vec![T::zero(); tokens]; policy.first() + 1];
        if let Some(first) = starts[policy.first()].first_mut() {
            *first = T::one();
        }
        Self {
            policy,
            found: Replay {
                calls: T::zero(),
                starts: Vec::new(),
                rounds: Vec::new(),
                seen: Vec::new(),
                stopped: T::zero(),
            },
            starts,
            next: Vec::new(),
        }
    }

    /// Begins the rounds that start there.
    fn begin(
        &mut self,
        start: usize,
        ahead: &[T],
        row: &mut Row<T>,
        step: impl Fn(&mut Steps<T>, &T) + Copy,
    ) {
        let room = ahead.len();
        for memory in 0..self.starts.len() {
            let weight = self.starts[memory][start].clone();
            if weight.is_nil() || memory > 0 && !T::EXACT && weight.to_f64() < LEAST {
                continue;
            }
            let length = self.policy.along(start, room, memory).min(room);
            row.reach(length, ahead, step);
            let reached = (&row.rejected[..length], &row.reached[length]);
            self.count([start, room, memory], weight, reached);
        }
    }

    /// Counts rounds that start there, and what starts behind them.
    fn count(
        &mut self,
        [start, room, memory]: [usize; 3],
        weight: T,
        (rejected, through): (&[T], &T),
    ) {
        while self.next.len() <= memory {
            let ends = [RoundEnd::Rejected, RoundEnd::AllAccepted];
            let next = ends.map(|end| self.policy.next(self.next.len(), end));
            let tokens = self.starts[0].len();
            let most = self.starts.len().max(1 + next[0].max(next[1]));
            self.starts.resize(most, vec![T::zero(); tokens]);
            self.next.push(next);
        }
        let (length, found) = (rejected.len(), &mut self.found);
        let through = weight.times(through);
        found.calls.gain(&weight);
        if found.rounds.len() <= length {
            found.rounds.resize(length + 1, T::zero());
        }
        found.rounds[length].gain(&weight);
        let [behind_rejected, behind_all] = self.next[memory];
        let behind = &mut self.starts[behind_rejected][start + 1..];
        gain_each(behind, &weight, rejected);
        // What ends the text begins nothing.
        if let Some(next) = self.starts[behind_all].get_mut(start + length + 1) {
            next.gain(&through);
        }
        if self.policy.stops(start, length, room) {
            found.stopped.gain(&through);
        }
        if self.policy.is_set() {
            return;
        }
        if found.seen.len() <= length {
            found.seen.resize(length + 1, T::zero());
        }
        found.seen[length].gain(&through);
        gain_each(&mut found.seen[1..], &weight, rejected);
    }

    fn found(self) -> Replay<T> {
        let mut found = self.found;
        for starts in self.starts {
            if found.starts.is_empty() {
                found.starts = starts;
                continue;
            }
            for (sum, one) in found.starts.iter_mut().zip(&starts) {
                sum.gain(one);
            }
        }
        found
    }
}

impl<P: DraftLength + ?Sized> DraftLength for &P {
    fn is_set(&self) -> bool {
        (**self).is_set()
    }

    fn first(&self) -> usize {
        (**self).first()
    }

    fn along(&self, start: usize, most: usize, memory: usize) -> usize {
        (**self).along(start, most, memory)
    }

    fn stops(&self, start: usize, length: usize, room: usize) -> bool {
        (**self).stops(start, length, room)
    }

    fn next(&self, memory: usize, end: RoundEnd) -> usize {
        (**self).next(memory, end)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ByStart, Lengths, Schedule, Stop, StopBy, Survival};
    use super::*;
    use crate::optimum::draw;
    use specgap_number::distribution::Rational;

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
        assert!(found.seen.is_empty());
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

    fn assert_alike(one: &Replay<f64>, other: &Replay<f64>) {
        let numbers = |of: &Replay<f64>| {
            let sums = [of.calls, of.stopped];
            [&of.starts[..], &of.rounds, &of.seen, &sums].concat()
        };
        let (one, other) = (numbers(one), numbers(other));
        assert_eq!(one.len(), other.len());
        for (one, other) in one.iter().zip(&other) {
            assert!((one - other).abs() <= 1e-12 * (1.0 + one), "{one} {other}");
        }
    }

    /// Adds what a round does that starts there, and then every round behind it, end by end.
    fn follow<T: Number>(
        (verifier, coins, policy): (ChainRule, &dyn Coins<T>, &dyn DraftLength),
        [start, memory]: [usize; 2],
        weight: &T,
        all: &mut Replay<T>,
    ) {
        let Some(starts) = all.starts.get_mut(start).filter(|_| !weight.is_nil()) else {
            return;
        };
        starts.gain(weight);
        all.calls.gain(weight);
        let room = coins.ahead(start).len().min(coins.tokens() - start - 1);
        let length = policy.along(start, room, memory).min(room);
        all.rounds[length].gain(weight);
        let mut survival = Survival::<T>::new(verifier);
        for end in 0..=length {
            let before = survival.reached().clone();
            let (share, how) = match coins.ahead(start).get(end).filter(|_| end < length) {
                Some(ratio) => {
                    survival.take(ratio);
                    (before.minus(survival.reached()), RoundEnd::Rejected)
                }
                None => (before, RoundEnd::AllAccepted),
            };
            let weight = weight.times(&share);
            let accepted = how == RoundEnd::AllAccepted;
            if !policy.is_set() {
                all.seen[length.min(end + usize::from(!accepted))].gain(&weight);
            }
            if accepted && policy.stops(start, length, room) {
                all.stopped.gain(&weight);
            }
            let next = [start + end + 1, policy.next(memory, how)];
            follow((verifier, coins, policy), next, &weight, all);
        }
    }

    /// Policies side by side are what each round and all behind it come to, one after the other.
    #[test]
    fn policies_side_by_side_are_the_law_of_all_rounds() {
        let mut state = 3_u64;
        let mut next = |below: u64| draw(&mut state, below);
        for tokens in [0, 1, 2, 5, 8] {
            let number = |number: u64| Rational::from_integer(number.into());
            let ratios: Vec<Rational> = (0..tokens)
                .map(|_| number(next(9)).over(&number(next(5) + 1)))
                .collect();
            let floats: Vec<f64> = ratios.iter().map(Number::to_f64).collect();
            let by_start: Vec<usize> = (0..tokens).map(|_| next(4) as usize).collect();
            let stop = Stop {
                by: StopBy::ProductBelow,
                limit: 0.7,
                keeps: true,
            };
            let policies: [&dyn DraftLength; 8] = [
                &FixedLength(1),
                &FixedLength(3),
                &FixedLength(30),
                &&by_start[..],
                &Lengths::of(stop, &floats, 4),
                &Schedule(5),
                &Schedule(2),
                &Counting,
            ];
            let from = |start: usize| ratios[start..][..start % 4 % (tokens - start)].to_vec();
            let by_start = ByStart((0..tokens).map(from).collect());
            for coins in [&ratios as &dyn Coins<Rational>, &by_start] {
                let near = (0..tokens).map(|start| {
                    let ahead = coins.ahead(start).iter();
                    ahead.map(Number::to_f64).collect()
                });
                let near = ByStart(near.collect());
                for verifier in [ChainRule::TOKEN, ChainRule::BLOCK] {
                    let exact = replay_each(verifier, coins, &policies).unwrap();
                    let near = replay_each(verifier, &near, &policies).unwrap();
                    for ((policy, exact), near) in policies.into_iter().zip(exact).zip(near) {
                        let nils = |of: &[Rational]| vec![Rational::zero(); of.len()];
                        let mut expected = Replay {
                            calls: Rational::zero(),
                            starts: nils(&exact.starts),
                            rounds: nils(&exact.rounds),
                            seen: nils(&exact.seen),
                            stopped: Rational::zero(),
                        };
                        let text = (verifier, coins, policy);
                        follow(text, [0, policy.first()], &Rational::one(), &mut expected);
                        assert_eq!(exact, expected);
                        let floats = |all: &[Rational]| all.iter().map(Number::to_f64).collect();
                        let expected = Replay {
                            calls: expected.calls.to_f64(),
                            starts: floats(&expected.starts),
                            rounds: floats(&expected.rounds),
                            seen: floats(&expected.seen),
                            stopped: expected.stopped.to_f64(),
                        };
                        assert_alike(&near, &expected);
                    }
                }
            }
        }
    }

    struct KeepsOn;

    impl DraftLength for KeepsOn {
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
        assert_eq!(rounds(&KeepsOn).rounds, [1.0, 2.0]);
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
            fn is_set(&self) -> bool {
                true
            }

            fn along(&self, _start: usize, _most: usize, _memory: usize) -> usize {
                usize::MAX
            }
        }
        assert_eq!(rounds(&Boundless), rounds(&FixedLength(4)));
    }
}
