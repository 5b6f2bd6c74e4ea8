//! When a round stops drafting by itself: by a number at each of its tokens.

use super::{Coins, DraftLength, Drafted, RoundEnd};

/// What the numbers of a round's tokens are held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopBy {
    /// A number below the limit.
    Below,
    /// A number above it.
    Above,
    /// A product of all so far below it.
    ProductBelow,
    /// 1 less that product above it.
    RiskAbove,
    /// The same of all but the last.
    RiskBefore,
}

/// A rule that stops at the first token whose numbers say so.
///
/// ```
/// use specgap_core::rounds::{Stop, StopBy};
/// let stop = Stop { by: StopBy::Below, limit: 0.4, keeps: true };
/// assert_eq!(stop.drafted(&[0.9, 0.3, 0.8], 3).tokens, 2);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stop {
    /// How the numbers are read.
    pub by: StopBy,
    /// The limit.
    pub limit: f64,
    /// Whether the token at which it stops was drawn, and is kept.
    pub keeps: bool,
}

impl Stop {
    /// What a round drafts whose next tokens have these numbers, of which it may draft `most`.
    pub fn drafted(&self, ahead: &[f64], most: usize) -> Drafted {
        let ahead = &ahead[..ahead.len().min(most)];
        let limit = self.limit;
        let mut product = 1.0;
        let found = match self.by {
            StopBy::Below => ahead.iter().position(|&value| value < limit),
            StopBy::Above => ahead.iter().position(|&value| value > limit),
            StopBy::ProductBelow => ahead.iter().position(|value| {
                product *= value;
                product < limit
            }),
            StopBy::RiskAbove => ahead.iter().position(|value| {
                product *= value;
                1.0 - product > limit
            }),
            StopBy::RiskBefore => ahead.iter().position(|value| {
                let before = product;
                product *= value;
                1.0 - before > limit
            }),
        };
        let tokens = found.map_or(ahead.len(), |at| at + usize::from(self.keeps));
        Drafted {
            tokens,
            // Behind the last that it may draft nobody asks.
            stopped: found.is_some() && (!self.keeps || tokens < most),
        }
    }
}

/// What is drafted from each start of a text, whatever rounds before did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lengths(pub Vec<Drafted>);

impl Lengths {
    /// Those of a rule, by the numbers that it meets, with at most `most` tokens a round.
    pub fn of(stop: Stop, values: &dyn Coins<f64>, most: usize) -> Self {
        let tokens = values.tokens();
        let from = |start| {
            let ahead = values.ahead(start);
            let room = (tokens - start - 1).min(ahead.len());
            stop.drafted(ahead, room.min(most))
        };
        Self((0..tokens).map(from).collect())
    }
}

impl DraftLength for Lengths {
    fn along(&self, start: usize, _most: usize, _memory: usize) -> usize {
        self.0.get(start).map_or(0, |drafted| drafted.tokens)
    }

    fn stops(&self, start: usize, _length: usize, _room: usize) -> bool {
        self.0.get(start).is_some_and(|drafted| drafted.stopped)
    }
}

/// So many tokens in the first round, then 2 more after a round whose drafts were all accepted, else
/// 1 fewer, at least 1.
///
/// ```
/// use specgap_core::rounds::{DraftLength, RoundEnd, Schedule};
/// assert_eq!(Schedule(5).next(5, RoundEnd::AllAccepted), 7);
/// assert_eq!(Schedule(5).next(1, RoundEnd::Rejected), 1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule(pub usize);

impl DraftLength for Schedule {
    fn is_set(&self) -> bool {
        true
    }

    fn first(&self) -> usize {
        self.0
    }

    fn along(&self, _start: usize, most: usize, memory: usize) -> usize {
        memory.min(most)
    }

    fn next(&self, memory: usize, end: RoundEnd) -> usize {
        match end {
            RoundEnd::AllAccepted => memory + 2,
            RoundEnd::Rejected => memory.saturating_sub(1).max(1),
        }
    }
}
