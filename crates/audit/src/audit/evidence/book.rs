//! What is bet on in records of five numbers, with which weights, and what the bets have come to.

use super::bets::{Bet, KEPT, SCORE_STAKES, STAKES, log_step, log_sum};
use crate::audit::model::rule::Rule;
use std::ops::Range;

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

/// How a number is bet on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// The density 1/w on [0, w), and a little everywhere.
    Head(f64),
    /// The same on [1-w, 1].
    Tail(f64),
    /// Keeps with this times the rule's probability, at most 1.
    Lenient(f64),
    /// Keeps with p(x).
    Exact,
    /// A score with its mean, with stakes up and down; of the others there are stakes on it alone.
    Score,
}

/// One thing that is bet on in a part.
#[derive(Clone, Debug)]
pub(crate) struct Component {
    pub part: Part,
    pub name: &'static str,
    pub words: &'static str,
    /// Weight in the mixture of the part; those of a part sum to 1.
    pub weight: f64,
    pub kind: Kind,
    /// Where its logarithms are, one a stake.
    logs: Range<usize>,
}

impl Component {
    pub(crate) fn is_score(&self) -> bool {
        matches!(self.kind, Kind::Score)
    }

    fn logs<'a>(&self, tally: &'a mut Tally) -> &'a mut [f64] {
        let logs = tally.logs.get_mut(self.logs.clone());
        logs.unwrap_or_default()
    }
}

/// Capital as logarithms, one a component and stake, and steps a part.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tally {
    pub steps: [u64; 4],
    pub logs: Vec<f64>,
}

impl Tally {
    /// A tally of so many logarithms, with nothing won.
    pub(crate) fn new(logs: usize) -> Self {
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

/// Words of a bet, its weight beside the others of its part, and its kind.
type Listed = (&'static str, &'static str, f64, Kind);

/// Lists what is bet on in a part.
fn listed(part: Part, rule: Rule) -> Vec<Listed> {
    if part == Part::Acceptance {
        let lenient = "drafts are kept with 1/0.9 of the rule's probability";
        let exact = "drafts are kept with p(x), as exact-match does, which loses nothing";
        let score = "drafts are kept too often, or too seldom";
        let every = "nearly every draft is kept";
        let mut all = vec![
            ("lenient-acceptance", lenient, 3.0, Kind::Lenient(0.9)),
            ("accepts-everything", every, 2.0, Kind::Lenient(1e-3)),
            ("exact-match", exact, 3.0, Kind::Exact),
            ("accepted", score, 2.0, Kind::Score),
        ];
        all.retain(|(.., kind)| rule == Rule::TOKEN || !matches!(kind, Kind::Exact));
        return all;
    }
    let head = "tokens stand too far up in the order of their probabilities: argmax, top-k, or a \
                temperature that is too low";
    let tail = "tokens stand too far down in the order of their probabilities: a temperature \
                that is too high, or a cut that is missing";
    let rank = "tokens are likelier, or less likely, than draws";
    let heads = [0.02, 0.1, 0.3, 0.6, 0.8, 0.9, 0.95].map(|w| {
        let weight = if w == 0.1 { 2.0 } else { 1.0 };
        ("too-likely", head, weight, Kind::Head(w))
    });
    let tails = [0.05, 0.2, 0.5].map(|w| ("too-unlikely", tail, 0.7, Kind::Tail(w)));
    let score = ("rank", rank, 2.0, Kind::Score);
    heads.into_iter().chain(tails).chain([score]).collect()
}

/// The components of all parts, for one rule and tolerance.
#[derive(Clone, Debug)]
pub(crate) struct Book {
    pub tolerance: f64,
    components: Vec<Component>,
    /// Logarithms of all of them.
    pub logs: usize,
}

impl Book {
    pub(crate) fn new(rule: Rule, tolerance: f64) -> Self {
        let (mut components, mut logs) = (Vec::new(), 0);
        for part in Part::ALL {
            let all = listed(part, rule);
            let total: f64 = all.iter().map(|(.., weight, _)| weight).sum();
            for (name, words, weight, kind) in all {
                let first = logs;
                logs += match kind {
                    Kind::Score => SCORE_STAKES.len(),
                    _ => STAKES.len(),
                };
                components.push(Component {
                    part,
                    name,
                    words,
                    weight: weight / total,
                    kind,
                    logs: first..logs,
                });
            }
        }
        Self {
            tolerance,
            components,
            logs,
        }
    }

    pub(crate) fn of(&self, part: Part) -> impl Iterator<Item = &Component> {
        self.components.iter().filter(move |one| one.part == part)
    }

    /// ln of the capital of a part.
    pub(crate) fn log_capital(&self, part: Part, tally: &Tally) -> f64 {
        let parts = self.of(part);
        let logs = parts.map(|one| one.weight.ln() + self.log_of(one, tally));
        let logs: Vec<f64> = logs.collect();
        log_sum(logs.iter().copied())
    }

    /// ln of the capital of a component.
    pub(crate) fn log_of(&self, component: &Component, tally: &Tally) -> f64 {
        let logs = tally.logs.get(component.logs.clone()).unwrap_or_default();
        if component.is_score() {
            let share = (logs.len() as f64).ln();
            log_sum(logs.iter().map(|log| log - share))
        } else {
            let terms = logs.iter().zip(STAKES);
            log_sum(terms.map(|(log, (_, weight))| log + weight.ln()))
        }
    }

    /// A bet that gains so much, at most `range` more than it loses.
    fn play(&self, tally: &mut Tally, component: &Component, gain: f64, range: f64) {
        for (log, (stake, _)) in component.logs(tally).iter_mut().zip(STAKES) {
            *log += log_step(gain, range, stake, self.tolerance);
        }
    }

    /// A score in [0, 1] with its mean under the claim.
    pub(crate) fn score(&self, tally: &mut Tally, component: &Component, value: f64, mean: f64) {
        for (log, stake) in component.logs(tally).iter_mut().zip(SCORE_STAKES) {
            let tolerance = self.tolerance * stake.abs();
            *log += log_step(stake * (value - mean), 1.0, 1.0, tolerance);
        }
    }

    /// A number that is uniform in [0, 1], or known to lie evenly in an interval.
    pub(crate) fn uniform(&self, part: Part, tally: &mut Tally, from: f64, width: f64) {
        let to = from + width;
        for one in self.of(part) {
            let (w, inside) = match one.kind {
                Kind::Score => {
                    let middle = (0.5 * (from + to)).min(1.0);
                    self.score(tally, one, middle, 0.5);
                    continue;
                }
                Kind::Head(w) if width > 0.0 => (w, (to.min(w) - from).max(0.0) / width),
                Kind::Tail(w) if width > 0.0 => (w, (to - from.max(1.0 - w)).max(0.0) / width),
                Kind::Head(w) => (w, f64::from(u8::from(from < w))),
                Kind::Tail(w) => (w, f64::from(u8::from(from >= 1.0 - w))),
                Kind::Lenient(_) | Kind::Exact => continue,
            };
            let gain = (1.0 - KEPT) * (inside / w - 1.0);
            self.play(tally, one, gain, (1.0 - KEPT) / w);
        }
    }

    /// A draft that is kept with a probability under the rule.
    pub(crate) fn kept(&self, tally: &mut Tally, keep: f64, p: f64, accepted: bool) {
        for one in self.of(Part::Acceptance) {
            let wrong = match one.kind {
                Kind::Lenient(factor) => (keep / factor).min(1.0),
                Kind::Exact => p,
                _ => {
                    let hit = f64::from(u8::from(accepted));
                    self.score(tally, one, hit, keep);
                    continue;
                }
            };
            let (claimed, wrong) = ([keep, 1.0 - keep], [wrong, 1.0 - wrong]);
            if let Some(bet) = Bet::new(&claimed, &wrong, self.tolerance) {
                let outcome = usize::from(!accepted);
                let gain = bet.gain(claimed[outcome], wrong[outcome]);
                self.play(tally, one, gain, bet.range);
            }
        }
    }
}
