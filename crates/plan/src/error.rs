//! Why there is no plan.

/// The most drafts of a plan: powers of n are taken with 32 bits.
const MOST_DRAFTS: usize = i32::MAX as usize;

/// Why there is no plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// Rows of p and q of different lengths.
    #[error(
        "the target has {target} tokens and the draft {draft}; both rows must have one vocabulary"
    )]
    Vocabulary {
        /// V of the target.
        target: usize,
        /// V of the draft.
        draft: usize,
    },
    /// No drafts, or too many.
    #[error("drafts is {drafts}; plans need it in 1..={MOST_DRAFTS}")]
    Drafts {
        /// What was asked for.
        drafts: usize,
    },
}

impl PlanError {
    /// Refuses rows of two vocabularies, and numbers of drafts that no plan has.
    pub(super) fn check(target: usize, draft: usize, drafts: usize) -> Result<(), Self> {
        if target != draft {
            return Err(Self::Vocabulary { target, draft });
        }
        if !(1..=MOST_DRAFTS).contains(&drafts) {
            return Err(Self::Drafts { drafts });
        }
        Ok(())
    }
}
