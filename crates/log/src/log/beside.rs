//! The tensors that a log may have beside its rows.

use std::ops::{Index, IndexMut};

/// What heads on the draft predict along the text.
pub(super) const HEAD_ACCEPTANCE: &str = "head_acceptance";
pub(super) const HEAD_OVERLAP: &str = "head_overlap";
/// Whether a position has a row of the draft.
pub(crate) const DRAFT_ROW: &str = "draft_row";
/// What is said of a position's rows, where these are not logged.
pub(crate) const SCORED: [&str; 4] = ["hit", "p_hit", "max_q", "overlap"];

/// Which tokens a mask lets the target draw.
pub(crate) const ALLOWED: &str = "allowed";

/// What the draft can draw of the target's mass.
pub(crate) const COVERAGE: &str = "coverage";

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beside {
    TokenIds,
    /// Ids of the target's list and of the draft's, where each has its own.
    TargetTokenIds,
    DraftTokenIds,
    PromptId,
    Position,
    Token,
    Drafts,
    Output,
    Accepted,
    Round,
    BatchSize,
    Seed,
    DraftRow,
    TargetRest,
    DraftRest,
    HeadAcceptance,
    HeadOverlap,
    Hit,
    PHit,
    MaxQ,
    Overlap,
    /// The target's mass on tokens that the draft can draw.
    Coverage,
    /// Which workload the prompt is of.
    Group,
    /// Which tokens a mask lets the target draw.
    Allowed,
}

/// How many there are.
const COUNT: usize = 24;

impl Beside {
    /// Each with its name, its dimensions, and whether it is floating point.
    pub(super) const ALL: [(Self, &'static str, usize, bool); COUNT] = [
        (Self::TokenIds, "token_ids", 2, false),
        (Self::TargetTokenIds, "target_token_ids", 2, false),
        (Self::DraftTokenIds, "draft_token_ids", 2, false),
        (Self::PromptId, "prompt_id", 1, false),
        (Self::Position, "position", 1, false),
        (Self::Token, "token", 1, false),
        (Self::Drafts, "drafts", 2, false),
        (Self::Output, "output", 1, false),
        (Self::Accepted, "accepted", 1, false),
        (Self::Round, "round", 1, false),
        (Self::BatchSize, "batch_size", 1, false),
        (Self::Seed, "seed", 1, false),
        (Self::DraftRow, DRAFT_ROW, 1, false),
        (Self::TargetRest, "target_rest", 2, true),
        (Self::DraftRest, "draft_rest", 2, true),
        (Self::HeadAcceptance, HEAD_ACCEPTANCE, 1, true),
        (Self::HeadOverlap, HEAD_OVERLAP, 1, true),
        (Self::Hit, SCORED[0], 1, true),
        (Self::PHit, SCORED[1], 1, true),
        (Self::MaxQ, SCORED[2], 1, true),
        (Self::Overlap, SCORED[3], 1, true),
        (Self::Coverage, COVERAGE, 1, true),
        (Self::Group, "group", 1, false),
        (Self::Allowed, ALLOWED, 2, false),
    ];

    /// What an engine did at the positions.
    pub(super) const OF_ENGINE: [Self; 6] = [
        Self::Drafts,
        Self::Output,
        Self::Accepted,
        Self::Round,
        Self::BatchSize,
        Self::Seed,
    ];

    pub(super) const HEADS: [Self; 2] = [Self::HeadAcceptance, Self::HeadOverlap];
    pub(super) const SCORED: [Self; 4] = [Self::Hit, Self::PHit, Self::MaxQ, Self::Overlap];
    pub(super) const RESTS: [Self; 2] = [Self::TargetRest, Self::DraftRest];
    pub(super) const OWN_IDS: [Self; 2] = [Self::TargetTokenIds, Self::DraftTokenIds];

    /// Part of what the draft says, so that a log by depth has it for each depth.
    pub(super) fn is_of_draft(self) -> bool {
        Self::SCORED.contains(&self) || matches!(self, Self::DraftTokenIds | Self::DraftRest)
    }

    /// Tells whether it is not read with the rows.
    pub(super) fn is_apart(self) -> bool {
        matches!(
            self,
            Self::Accepted
                | Self::Round
                | Self::BatchSize
                | Self::Seed
                | Self::Group
                | Self::Allowed
        )
    }
}

/// Something of each that is there.
#[derive(Debug)]
pub(super) struct Columns<T>([Option<T>; COUNT]);

impl<T> Columns<T> {
    /// Makes each with `make`, in order.
    pub(super) fn of<E>(mut make: impl FnMut(Beside) -> Result<Option<T>, E>) -> Result<Self, E> {
        let mut columns = Self([const { None }; COUNT]);
        for (one, ..) in Beside::ALL {
            columns[one] = make(one)?;
        }
        Ok(columns)
    }
}

impl<T> Index<Beside> for Columns<T> {
    type Output = Option<T>;

    fn index(&self, one: Beside) -> &Option<T> {
        &self.0[one as usize]
    }
}

impl<T> IndexMut<Beside> for Columns<T> {
    fn index_mut(&mut self, one: Beside) -> &mut Option<T> {
        &mut self.0[one as usize]
    }
}
