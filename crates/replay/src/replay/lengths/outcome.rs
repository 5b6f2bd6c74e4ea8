//! What a policy does with a verifier along some text, in expectation, and the estimates that
//! follow from many texts.

use super::super::measured::add_each;
use super::super::timings::{Times, Timings};
use super::drafts::Drafts;
use super::policy::Policy;
use specgap_core::rounds::ChainRule;
use specgap_statistics::{Clustered, Estimate, half_of};

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
    pub(super) outcomes: Vec<Outcome>,
}

impl Played {
    /// Returns its rounds by prompt, and what is known of their drafts.
    pub(super) fn told(&self) -> (Known, &[Outcome]) {
        (self.known, &self.outcomes)
    }
}

/// Rounds of some prompts, each with its tokens: all estimates are ratios of sums over them.
pub(super) struct Group<'a>(Vec<(&'a Outcome, f64)>);

impl<'a> Group<'a> {
    /// Those that are asked for by their place among all.
    pub(super) fn of(
        outcomes: &'a [Outcome],
        tokens: &[f64],
        is_asked: impl Fn(usize) -> bool,
    ) -> Self {
        let prompts = outcomes.iter().zip(tokens.iter().copied()).enumerate();
        let asked = prompts.filter(|(place, _)| is_asked(*place));
        Self(asked.map(|(_, prompt)| prompt).collect())
    }

    pub(super) fn all(outcomes: &'a [Outcome], tokens: &[f64]) -> Self {
        Self::of(outcomes, tokens, |_| true)
    }

    /// Half of all.
    pub(super) fn half(outcomes: &'a [Outcome], tokens: &[f64], half: usize) -> Self {
        Self::of(outcomes, tokens, |prompt| half_of(prompt) == half)
    }

    /// How many there are.
    pub(super) fn prompts(&self) -> usize {
        self.0.len()
    }

    pub(super) fn ratio(&self, of: impl Fn(&Outcome, f64) -> (f64, f64)) -> Clustered {
        Clustered::new(self.0.iter().map(|&(outcome, tokens)| of(outcome, tokens)))
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
