//! What is bet on, with which weights, and what the bets have come to.

use super::bets::{Bet, SCORE_STAKES, STAKES, log_step, log_sum};

/// The parts of a verdict, in the order of all arrays over parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Drafts follow the law that is claimed of them.
    DraftLaw,
    /// Drafts are kept as the rule says.
    Acceptance,
    /// What replaces a rejected draft, and what follows an accepted chain, is drawn as the
    /// rule says.
    Correction,
    /// What comes out follows p (of a lossy rule, the law that the rule gives).
    TargetLaw,
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::DraftLaw,
        Self::Acceptance,
        Self::Correction,
        Self::TargetLaw,
    ];

    /// Returns its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::DraftLaw => "draft-law",
            Self::Acceptance => "acceptance",
            Self::Correction => "correction",
            Self::TargetLaw => "target-law",
        }
    }

    pub(crate) fn index(self) -> usize {
        self as usize
    }
}

/// One thing that is bet on in a part.
#[derive(Clone, Debug)]
pub(crate) struct Component {
    pub part: Part,
    pub name: &'static str,
    pub words: &'static str,
    pub cure: &'static str,
    /// Weight in the mixture of the part; those of a part sum to 1.
    pub weight: f64,
    /// A bug of the table.
    pub is_bug: bool,
    /// A score, with stakes up and down; else a bet, with stakes on it alone.
    pub is_score: bool,
    /// Where its logarithms begin, one a stake: set by [`Book::push`].
    pub first: usize,
}

impl Component {
    /// Counts the stakes.
    pub(crate) fn stakes(&self) -> usize {
        match self.is_score {
            true => SCORE_STAKES.len(),
            false => STAKES.len(),
        }
    }
}

/// Capital as logarithms, one a component and stake, and steps a part.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tally {
    pub steps: [u64; 4],
    pub logs: Vec<f64>,
}

impl Tally {
    pub(crate) fn new(book: &Book) -> Self {
        Self::of(book.logs)
    }

    /// A tally of so many logarithms, with nothing won.
    pub(crate) fn of(logs: usize) -> Self {
        Self {
            steps: [0; 4],
            logs: vec![0.0; logs],
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.steps.iter_mut().zip(&other.steps) {
            *mine += theirs;
        }
        for (mine, theirs) in self.logs.iter_mut().zip(&other.logs) {
            *mine += theirs;
        }
    }
}

/// The components of all parts, for one tolerance.
#[derive(Clone, Debug)]
pub(crate) struct Book {
    pub tolerance: f64,
    pub components: Vec<Component>,
    /// Logarithms of all of them.
    pub logs: usize,
}

impl Book {
    pub(crate) fn new(tolerance: f64) -> Self {
        Self {
            tolerance,
            components: Vec::new(),
            logs: 0,
        }
    }

    /// Adds a component; its place.
    pub(crate) fn push(&mut self, component: Component) -> usize {
        let first = self.logs;
        self.logs += component.stakes();
        self.components.push(Component { first, ..component });
        self.components.len() - 1
    }

    pub(crate) fn of(&self, part: Part) -> impl Iterator<Item = &Component> {
        self.components.iter().filter(move |one| one.part == part)
    }

    /// ln of the capital of a part.
    pub(crate) fn log_capital(&self, part: Part, tally: &Tally) -> f64 {
        let parts = self.of(part);
        let logs: Vec<f64> = parts
            .map(|one| one.weight.ln() + self.log_of(one, tally))
            .collect();
        log_sum(logs.iter().copied())
    }

    /// ln of the capital of a component.
    pub(crate) fn log_of(&self, component: &Component, tally: &Tally) -> f64 {
        let end = component.first + component.stakes();
        let logs = tally.logs.get(component.first..end).unwrap_or_default();
        if component.is_score {
            let share = (component.stakes() as f64).ln();
            log_sum(logs.iter().map(|log| log - share))
        } else {
            let terms = logs.iter().zip(STAKES);
            log_sum(terms.map(|(log, (_, weight))| log + weight.ln()))
        }
    }

    fn slots<'a>(&self, tally: &'a mut Tally, component: &Component) -> &'a mut [f64] {
        let end = component.first + component.stakes();
        let slots = tally.logs.get_mut(component.first..end);
        slots.unwrap_or_default()
    }

    /// A bet that gains so much, at most `range` more than it loses.
    pub(crate) fn play(&self, tally: &mut Tally, component: &Component, gain: f64, range: f64) {
        let slots = self.slots(tally, component);
        for (slot, (stake, _)) in slots.iter_mut().zip(STAKES) {
            *slot += log_step(gain, range, stake, self.tolerance);
        }
    }

    /// Bets on one of two laws over the same outcomes, against the other, at one outcome.
    pub(crate) fn against(
        &self,
        tally: &mut Tally,
        component: &Component,
        [claimed, wrong]: [&[f64]; 2],
        outcome: usize,
    ) {
        if let Some(bet) = Bet::new(claimed, wrong, self.tolerance) {
            let gain = bet.gain_on([claimed, wrong], outcome);
            self.play(tally, component, gain, bet.range);
        }
    }

    /// A score in [0, 1] with its mean under the claim.
    pub(crate) fn score(&self, tally: &mut Tally, component: &Component, value: f64, mean: f64) {
        let slots = self.slots(tally, component);
        for (slot, stake) in slots.iter_mut().zip(SCORE_STAKES) {
            let tolerance = self.tolerance * stake.abs();
            *slot += log_step(stake * (value - mean), 1.0, 1.0, tolerance);
        }
    }
}
