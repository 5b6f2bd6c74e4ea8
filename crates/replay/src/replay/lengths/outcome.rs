//! What a policy does with a verifier along some text, in expectation, and the estimates that
//! follow from many texts.

use super::super::measured::add_each;
use super::super::spill::{Spill, Stretch, first};
use super::super::timings::{Times, Timings};
use super::drafts::Drafts;
use super::policy::Policy;
use specgap_core::rounds::{ChainRule, Replay};
use specgap_statistics::{Clustered, Estimate, half_of};
use std::borrow::Cow;
use std::io;
use std::sync::Arc;

/// What is drafted and how it is verified.
pub(super) type Way = (Drafts, ChainRule);

/// Rounds by what is drafted in them.
#[derive(Clone, Debug, Default)]
pub(super) struct Steps {
    /// By n: rounds with n drafts.
    pub(super) rounds: Vec<f64>,
    /// Draft steps of which no token came.
    pub(super) unused: f64,
}

impl Steps {
    fn read(bytes: &mut &[u8]) -> io::Result<Self> {
        let unused = f64::from_le_bytes(*first(bytes)?);
        let mut rounds = vec![0.0; f64::from_le_bytes(*first(bytes)?) as usize];
        for count in &mut rounds {
            *count = f64::from_le_bytes(*first(bytes)?);
        }
        Ok(Self { rounds, unused })
    }

    pub(super) fn add(&mut self, other: &Self) {
        add_each(&mut self.rounds, &other.rounds);
        self.unused += other.unused;
    }

    pub(super) fn drafts(&self) -> f64 {
        let rounds = (0..).zip(&self.rounds);
        rounds.map(|(n, &count)| f64::from(n) * count).sum()
    }
}

/// What a policy does with a verifier along some text, in expectation.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    pub(super) calls: f64,
    /// What it drafts: all of it, or the least.
    pub(super) least: Steps,
    /// The most, where that is known and is another.
    pub(super) most: Steps,
}

impl Outcome {
    pub(super) fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.least.add(&other.least);
        self.most.add(&other.most);
    }
}

/// Outcomes by prompt, of which the first may be in a file.
#[derive(Clone, Default)]
pub(super) struct Outcomes {
    spill: Arc<Spill>,
    /// Where the first are, and how many.
    away: Vec<(Stretch, usize)>,
    held: Vec<Outcome>,
}

impl Outcomes {
    pub(super) fn new(spill: &Arc<Spill>) -> Self {
        Self {
            spill: Arc::clone(spill),
            ..Self::default()
        }
    }

    /// How many are not in memory.
    pub(super) fn away(&self) -> usize {
        self.away.iter().map(|(_, count)| count).sum()
    }

    /// That of a prompt, which is in memory.
    pub(super) fn at(&mut self, prompt: usize) -> &mut Outcome {
        let place = prompt - self.away();
        if self.held.len() <= place {
            self.held.resize(place + 1, Outcome::default());
        }
        &mut self.held[place]
    }

    /// Takes so many out of memory.
    pub(super) fn put_away(&mut self, count: usize) {
        let mut bytes = Vec::new();
        for outcome in self.held.drain(..count) {
            let mut put = |number: f64| bytes.extend_from_slice(&number.to_le_bytes());
            put(outcome.calls);
            for steps in [&outcome.least, &outcome.most] {
                put(steps.unused);
                put(steps.rounds.len() as f64);
                steps.rounds.iter().for_each(|&count| put(count));
            }
        }
        let stretch = self.spill.done(self.spill.write(&bytes));
        self.away.extend(stretch.map(|stretch| (stretch, count)));
    }

    /// All of them.
    pub(super) fn all(&self) -> Cow<'_, [Outcome]> {
        if self.away.is_empty() {
            return Cow::Borrowed(&self.held);
        }
        let mut all = Vec::with_capacity(self.away() + self.held.len());
        for &(stretch, count) in &self.away {
            let read = self.spill.read(stretch).and_then(|bytes| {
                let mut rest = &bytes[..];
                (0..count).map(|_| Outcome::read(&mut rest)).collect()
            });
            all.extend(self.spill.done::<Vec<Outcome>>(read).unwrap_or_default());
        }
        all.extend_from_slice(&self.held);
        Cow::Owned(all)
    }
}

impl Outcome {
    /// Rounds of lengths that are set when they begin.
    pub(super) fn set_at_start(replay: Replay<f64>) -> Self {
        Self {
            calls: replay.calls,
            least: Steps {
                rounds: replay.rounds,
                unused: 0.0,
            },
            most: Steps::default(),
        }
    }

    fn read(bytes: &mut &[u8]) -> io::Result<Self> {
        let calls = f64::from_le_bytes(*first(bytes)?);
        let [least, most] = [Steps::read(bytes)?, Steps::read(bytes)?];
        Ok(Self { calls, least, most })
    }
}

/// What a log tells of what is drafted in rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Known {
    /// All of it, from the text alone.
    FromText,
    /// All of it on average, from rollouts.
    FromRollouts,
    /// Bounds, from rollouts that end too early.
    Between,
    /// The part up to each round's first rejection.
    AtLeast,
}

impl Known {
    pub(super) fn is_whole(self) -> bool {
        matches!(self, Self::FromText | Self::FromRollouts)
    }
}

/// A policy's rounds with a verifier, added up by prompt.
pub(super) struct Played {
    pub(super) policy: Policy,
    pub(super) way: Way,
    pub(super) known: Known,
    pub(super) outcomes: Outcomes,
}

impl Played {
    /// Returns its rounds by prompt, and what is known of their drafts.
    pub(super) fn told(&self) -> (Known, Cow<'_, [Outcome]>) {
        (self.known, self.outcomes.all())
    }
}

/// Rounds of some prompts, each with its tokens: all estimates are ratios of sums over them.
pub(super) struct Group<'a>(Vec<(Cow<'a, Outcome>, f64)>);

impl<'a> Group<'a> {
    /// Those that are asked for by their place among all.
    pub(super) fn of(
        outcomes: Cow<'a, [Outcome]>,
        tokens: &[f64],
        is_asked: impl Fn(usize) -> bool,
    ) -> Self {
        let asked = |(place, _): &(usize, _)| is_asked(*place);
        let beside = |(place, outcome)| (outcome, tokens[place]);
        Self(match outcomes {
            Cow::Borrowed(all) => {
                let all = all.iter().map(Cow::Borrowed).enumerate();
                all.filter(asked).map(beside).collect()
            }
            Cow::Owned(all) => {
                let all = all.into_iter().map(Cow::Owned).enumerate();
                all.filter(asked).map(beside).collect()
            }
        })
    }

    pub(super) fn all(outcomes: Cow<'a, [Outcome]>, tokens: &[f64]) -> Self {
        Self::of(outcomes, tokens, |_| true)
    }

    /// Half of all.
    pub(super) fn half(outcomes: Cow<'a, [Outcome]>, tokens: &[f64], half: usize) -> Self {
        Self::of(outcomes, tokens, |prompt| half_of(prompt) == half)
    }

    /// How many there are.
    pub(super) fn prompts(&self) -> usize {
        self.0.len()
    }

    pub(super) fn ratio(&self, of: impl Fn(&Outcome, f64) -> (f64, f64)) -> Clustered {
        Clustered::new(self.0.iter().map(|(outcome, tokens)| of(outcome, *tokens)))
    }

    /// Tokens by calls.
    pub(super) fn per_call(&self) -> Clustered {
        self.ratio(|outcome, tokens| (tokens, outcome.calls))
    }

    pub(super) fn tokens_per_call(&self) -> Estimate {
        self.per_call().estimate()
    }

    pub(super) fn verification_rate(&self) -> Estimate {
        self.ratio(|outcome, tokens| (outcome.calls, tokens))
            .estimate()
    }

    /// Of what is known of the drafts: all of them, or the least.
    pub(super) fn discard_rate(&self) -> Estimate {
        self.discards(|outcome| &outcome.least)
    }

    pub(super) fn discards(&self, of: fn(&Outcome) -> &Steps) -> Estimate {
        self.ratio(|outcome, tokens| (of(outcome).drafts() + outcome.calls - tokens, tokens))
            .estimate()
    }

    /// t_0 N / E\[time\].
    pub(super) fn speed(&self, timings: &Timings) -> Option<Estimate> {
        Some(self.times(timings, false)?.estimate())
    }

    /// The same if nothing more were drafted than is known.
    pub(super) fn speed_at_most(&self, timings: &Timings) -> Option<Estimate> {
        Some(self.times(timings, true)?.estimate())
    }

    /// Times of every prompt. With `at_least`, numbers of drafts are lower bounds.
    pub(super) fn times(&self, timings: &Timings, at_least: bool) -> Option<Times> {
        let steps = self.0.iter().map(|(outcome, tokens)| {
            let Steps { rounds, unused } = &outcome.least;
            (*tokens, rounds, *unused)
        });
        timings.times(steps, at_least)
    }

    /// The cost ratio at which the speed is 1, all other times being as they are.
    pub(super) fn break_even(&self, timings: Option<&Timings>) -> Option<Estimate> {
        let flat = Timings::cost_ratio(1.0).ok()?;
        let timings = timings.unwrap_or(&flat);
        let mut pairs = Vec::with_capacity(self.0.len());
        for (outcome, tokens) in &self.0 {
            let drafted = outcome.least.drafts();
            let others = timings.total(&outcome.least.rounds, -drafted, false)?;
            pairs.push((
                tokens - others / timings.target_step.seconds,
                drafted + outcome.least.unused,
            ));
        }
        let drafted: f64 = pairs.iter().map(|pair| pair.1).sum();
        (drafted > 0.0).then(|| Clustered::new(pairs.into_iter()).estimate())
    }
}
