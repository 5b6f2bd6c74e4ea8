//! What a log says of rollouts of the draft.

use super::ReplayError;
use super::position::TextPosition;
use specgap_log::log::{Log, Rollout, Rollouts};

/// A rollout behind a start of a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RolledOut {
    /// Tokens of the text before it.
    pub start: usize,
    /// What is seen at each of its tokens, which stand for the text's: p where the log has
    /// the target's on rollouts.
    pub places: Vec<TextPosition>,
}

/// What a log's rollouts tell.
#[derive(Clone, Debug, PartialEq)]
pub struct RolloutKind {
    /// K, the most tokens of one.
    pub tokens: usize,
    /// The probability that any start at a position.
    pub inclusion_probability: f64,
    /// How many start at such a position.
    pub paths: usize,
    /// Lists that they have beside token and q.
    has: [bool; LISTS.len()],
}

/// Lists of rollouts that policies ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RolloutList {
    /// `rollout_top1`.
    Top,
    /// `rollout_entropy`.
    Entropy,
    /// `rollout_overlap`.
    Overlap,
    /// `rollout_target_p`.
    TargetP,
    /// `rollout_acceptance`.
    HeadAcceptance,
    /// `rollout_head_overlap`.
    HeadOverlap,
}

/// Where a rollout has a list.
type OfRollout = for<'a> fn(&Rollout<'a>) -> &'a [f64];

/// The tensor of each list and its values, in the order of [`RolloutList`].
const LISTS: [(&str, OfRollout); 6] = [
    ("rollout_top1", |one| one.top1),
    ("rollout_entropy", |one| one.entropy),
    ("rollout_overlap", |one| one.overlap),
    ("rollout_target_p", |one| one.target_p),
    ("rollout_acceptance", |one| one.acceptance),
    ("rollout_head_overlap", |one| one.head_overlap),
];

impl RolloutList {
    /// The tensor.
    pub fn tensor(self) -> &'static str {
        LISTS[self as usize].0
    }

    fn of<'a>(self, rollout: &Rollout<'a>) -> &'a [f64] {
        LISTS[self as usize].1(rollout)
    }
}

impl RolloutKind {
    /// Of rollouts that texts are replayed with.
    ///
    /// # Errors
    /// Rollouts of another temperature; of which it is not known with which probability one
    /// starts at a position, or that are not as many as that says.
    pub(super) fn new(
        log: &Log,
        rollouts: &Rollouts,
        temperature: f64,
    ) -> Result<Self, ReplayError> {
        let refused = |message: String| Err(ReplayError::of_log(log, message));
        let (number, positions) = (rollouts.anchors().count(), log.positions());
        let paths = rollouts.record().map_or(1, |record| record.paths);
        if let Some((position, there)) = rollouts.anchors().find(|(_, there)| there.len() != paths)
        {
            return refused(format!(
                "it has {} at position {position}, where metadata.rollouts.paths says {paths}; the \
                 mean over them needs all: put that right, or capture the log anew with ⟨rollouts⟩",
                match there.len() {
                    1 => "1 rollout".to_owned(),
                    several => format!("{several} rollouts"),
                }
            ));
        }
        let inclusion_probability = match rollouts.record() {
            Some(record) => {
                let (drawn, chance) = (record.temperature, record.inclusion_probability);
                if drawn != temperature {
                    return refused(format!(
                        "its rollouts were drawn at temperature {drawn} and its text at \
                         {temperature}; drafts behind rejected tokens are those of rollouts at the \
                         text's temperature: capture the log anew with ⟨rollouts⟩"
                    ));
                }
                // What chance alone hardly does: each text has N/M of them, up to one.
                let (expected, count) = (chance * positions as f64, positions as f64);
                let spread = 6.0 * (count * chance * (1.0 - chance)).sqrt();
                if (number as f64 - expected).abs() > spread + 1e-9 * count {
                    return refused(format!(
                        "it has rollouts at {number} positions, where {positions} positions, each \
                         with probability {chance} (every {}), have them at {expected:.0} on \
                         average; sums over them would be off by as much: put right \
                         inclusion_probability in metadata.rollouts, or capture the log anew with \
                         ⟨rollouts⟩",
                        record.every
                    ));
                }
                chance
            }
            None if number == positions => 1.0,
            None => {
                return refused(format!(
                    "it has {number} rollouts at {positions} positions, and does not say with which \
                     probability one starts at a position; say so in metadata.rollouts \
                     (docs/reference/log-format.md), or capture the log anew with ⟨rollouts⟩"
                ));
            }
        };
        let first = rollouts.get(0).unwrap_or_default();
        Ok(Self {
            tokens: rollouts.max_tokens(),
            inclusion_probability,
            paths,
            has: LISTS.map(|(_, of)| !of(&first).is_empty()),
        })
    }

    /// Returns what a rollout's numbers are multiplied with, so that their sum is, in expectation,
    /// the sum over all positions.
    pub(super) fn spacing(&self) -> f64 {
        1.0 / (self.inclusion_probability * self.paths as f64)
    }

    /// Returns whether they have a list.
    pub fn has(&self, list: RolloutList) -> bool {
        self.has[list as usize]
    }
}

impl RolledOut {
    /// A rollout of a log, behind so many tokens of its text.
    pub(super) fn new(start: usize, rollout: &Rollout<'_>) -> Self {
        let place = |(index, &q): (usize, &f64)| {
            let at = |list: RolloutList| list.of(rollout).get(index).copied();
            let p = at(RolloutList::TargetP).unwrap_or(0.0);
            TextPosition {
                ratio: match p > 0.0 {
                    true => (q / p).min(f64::MAX),
                    false => f64::MAX,
                },
                draft: q,
                top: at(RolloutList::Top).unwrap_or(0.0),
                entropy: at(RolloutList::Entropy).unwrap_or(0.0),
                overlap: at(RolloutList::Overlap).unwrap_or(0.0),
                head_acceptance: at(RolloutList::HeadAcceptance),
                head_overlap: at(RolloutList::HeadOverlap),
                listed: true,
                ..TextPosition::default()
            }
        };
        Self {
            start,
            places: rollout.q.iter().enumerate().map(place).collect(),
        }
    }
}
