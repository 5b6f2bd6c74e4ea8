//! A step of the log: what each suspect says of it, over what is claimed.

mod another_draft;
mod another_rule;
mod another_target;
mod changed;
mod claim;
mod laws;
mod noise;
mod several;
mod shared;
#[cfg(test)]
mod tests;

pub(crate) use self::changed::Changes;
pub(crate) use self::noise::Noise;
use crate::audit::data::Claimed;
use crate::audit::model::engine::Position;
use crate::audit::model::rule::Rule;
use crate::audit::suspects::factor::Factor;
use crate::audit::suspects::family::{Law, Suspect};
use crate::audit::suspects::view::View;
use specgap_core::rule::InTurn;
use std::cell::OnceCell;

/// What a suspect says of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Told {
    /// What was drafted, whether it was kept, what replaced it, and what came out where nothing
    /// was drafted.
    pub rule: [Factor; 4],
    /// Of what came out, whatever was drafted.
    pub output: Factor,
    /// The chance that a draft is kept, where it is not the claimed one.
    pub keep: Option<f64>,
}

impl Told {
    pub(crate) const NOTHING: Self = Self {
        rule: [Factor::ONE; 4],
        output: Factor::ONE,
        keep: None,
    };
}

/// Tokens that came out before, by their places in the row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Past {
    /// How often each came, in the whole text, in the last 64 tokens, in the last 10, and otherwise than as a
    /// draft that was kept.
    pub seen: [Vec<(usize, u32)>; 4],
    /// What would repeat 1, 2 or 3 tokens in a row.
    pub banned: [Vec<usize>; 3],
    /// How often each came in this round before, and as a draft that was kept; and whether it came
    /// otherwise.
    pub late: [Vec<(usize, u32, bool)>; 2],
}

/// What happened at a position, and the rows that it is held against: [`Here::settle`] says first
/// what is claimed of it.
pub(crate) struct Here<'a> {
    pub rule: Rule,
    pub claimed: &'a Claimed,
    pub noise: Noise,
    pub p: View<'a>,
    pub q: View<'a>,
    /// p before it is cut.
    pub whole: &'a [f64],
    /// The smallest probability of `whole` that the cuts keep.
    pub least: f64,
    /// Raw logits of the target, where the log has them.
    pub logits: &'a [f64],
    pub reach: f64,
    pub stands: f64,
    pub drafts: &'a [usize],
    pub siblings: bool,
    /// Nothing but what came out says that a draft was kept.
    pub by_output: bool,
    pub kept: bool,
    pub output: usize,
    /// It belongs to no round.
    pub outside: bool,
    /// The draft's row is not known, and `q` is p.
    pub lacks_draft: bool,
    /// p and q of the place before, in the same text; q is empty where the log has none.
    pub before: Option<[&'a [f64]; 2]>,
    pub past: &'a Past,
    /// How often each token came so far, and how often it should have; and was drafted, and should have been.
    pub came: [Option<[&'a [f64]; 2]>; 2],
    pub known: Known,
    pub made: Made<'a>,
}

/// What is made where it is asked for.
#[derive(Default)]
pub(crate) struct Made<'a> {
    whole: OnceCell<View<'a>>,
    /// What keeps each token.
    ratios: OnceCell<Vec<f64>>,
    near: OnceCell<(Vec<[f64; 3]>, f64)>,
    /// By [`Shared`](super::family::Shared).
    shared: OnceCell<[f64; 3]>,
    /// What the target draws then in place of the draft.
    instead: OnceCell<[Vec<f64>; 3]>,
}

/// What the claim says at what happened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// The listed sum of (reach p - stands q)+.
    left: f64,
    /// The same under noise.
    noisy_left: f64,
    keep: f64,
    /// What p gives all tokens but the draft.
    others: f64,
    keep_width: f64,
    /// Tokens whose p and q are so near that noise decides which is larger.
    near: Vec<u32>,
    /// What noise may do to p, relatively; with cuts also by moving their ends.
    width: f64,
    /// By token, the claimed law of a correction, where one was made.
    corrections: Vec<f64>,
    /// Engines of several drafts.
    several: Option<Several>,
}

#[derive(Clone, Debug, Default)]
struct Several {
    /// The law of each draft, given those before it; none where they are drawn as claimed.
    drafts: Vec<Option<Vec<f64>>>,
    tested: InTurn,
    place: Option<usize>,
    /// That the first draft comes out, and that it does not.
    first: Vec<f64>,
    law: Vec<f64>,
    correction: Vec<f64>,
}

impl<'a> Here<'a> {
    fn draft(&self) -> Option<usize> {
        match self.siblings {
            true => None,
            false => self.drafts.first().copied(),
        }
    }

    fn position(&self) -> Position<'a> {
        Position {
            p: self.p.row,
            q: self.q.row,
            rest: self.p.rest,
            reach: self.reach,
            stands: self.stands,
        }
    }

    fn compares(&self) -> bool {
        self.rule.tests_drafts()
    }

    /// Tells whether it is in the middle of a block, whose prefix may have been refused.
    pub(crate) fn is_within_block(&self) -> bool {
        self.rule == Rule::BLOCK && self.reach < 1.0
    }

    fn is_plain(&self) -> bool {
        self.reach >= 1.0 && self.stands >= 1.0
    }

    /// reach p and stands q.
    fn both_at(&self, place: usize) -> (f64, f64) {
        (
            self.reach * self.p.at(place),
            self.stands * self.q.at(place),
        )
    }

    fn over(&self, place: usize) -> f64 {
        let (p, q) = self.both_at(place);
        (p - q).max(0.0)
    }

    /// Returns what a suspect says.
    pub(crate) fn told<'b>(&'b self, suspect: &Suspect, changes: &Changes<'b>) -> Told {
        let law = suspect.law;
        let row = || changes.get(suspect.change, self);
        let draft = || changes.of_draft(suspect.draft, self);
        if self.siblings && !self.drafts.is_empty() {
            return self.of_several(law, row(), draft());
        }
        match law {
            _ if self.lacks_draft && law.needs_draft() => Told::NOTHING,
            Law::Target(_, place) => self.target(place, row),
            Law::Engine(bug) => self.carried(bug),
            _ if self.outside || self.draft().is_none() => Told::NOTHING,
            Law::Both(_) => self.both(row(), draft()),
            Law::Draft(_) => draft().map_or(Told::NOTHING, |row| self.drafted(row)),
            Law::OtherDraft(_) | Law::Tested(_) => draft().map_or(Told::NOTHING, |row| {
                self.other_draft(row, matches!(law, Law::OtherDraft(_)))
            }),
            Law::DrawForEach => Told::NOTHING,
            Law::Sampled | Law::Likeliest => self.likeliest(law),
            Law::Decide(keep, correct) => self.decided(keep, correct),
            Law::Number(reused, sorted) => self.reused(reused, sorted),
            Law::Shares(numbers) => self.shares(numbers),
        }
    }

    /// Lists a number of each entry of the rows.
    fn row(&self, of: impl Fn(usize) -> f64) -> Vec<f64> {
        (0..self.p.row.len()).map(of).collect()
    }

    /// Counts the listed tokens.
    pub(crate) fn listed(&self) -> usize {
        self.p.row.len() - usize::from(self.p.rest && !self.p.row.is_empty())
    }
}
