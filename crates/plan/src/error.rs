//! Why there is no plan.

/// The most drafts of a plan: powers of n are taken with 32 bits.
const MOST_DRAFTS: usize = i32::MAX as usize;

/// Why there is no plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// Rows of p and q of different lengths: V of the target; V of the draft.
    #[error("the target has {0} tokens and the draft {1}; both rows must have one vocabulary")]
    Vocabulary(usize, usize),
    /// No drafts, or too many: what was asked for.
    #[error("drafts is {0}; plans need it in 1..={MOST_DRAFTS}")]
    Drafts(usize),
}

impl PlanError {
    /// Refuses rows of two vocabularies, and numbers of drafts that no plan has.
    pub(super) fn check(target: usize, draft: usize, drafts: usize) -> Result<(), Self> {
        if target != draft {
            return Err(Self::Vocabulary(target, draft));
        }
        if !(1..=MOST_DRAFTS).contains(&drafts) {
            return Err(Self::Drafts(drafts));
        }
        Ok(())
    }
}
