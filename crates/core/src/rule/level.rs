//! `level-4`: rejection of stratified drafts by falling level.

use super::step::{InTurn, Step, normalise, ratio};
use super::{Drafts, RuleEntry, Vectors, Verifies};
use crate::scheme::{SchemeName, Straddle};
use specgap_plan::{LevelPasses, Levels, Strata};

/// Passes over strata: certain tokens, heaviest first, then the draft of each stratum. A draft
/// that the law cannot put in its place is refused.
///
/// Passes go through all drafts several times. Asked in turn, draft k is kept with its share of
/// all outputs over what the shares before it leave.
#[derive(Clone, Copy, Debug)]
pub struct LevelStep {
    /// How a token across a cut is drafted.
    pub straddle: Straddle,
    /// The levels, each a pass over all strata.
    pub levels: Levels<'static>,
}

impl LevelStep {
    /// `level-4`: the levels .8, .5, .2 and 0.
    pub const fn four(straddle: Straddle) -> Self {
        let levels = Levels::FOUR;
        Self { straddle, levels }
    }

    /// One pass: recursive rejection, the draft of the last stratum first. Levels that run
    /// inside a loop over strata come to the same, as the last of them takes all there is.
    pub const fn one(straddle: Straddle) -> Self {
        let levels = Levels::ONE;
        Self { straddle, levels }
    }
}

impl Step for LevelStep {
    fn in_turn(&self, p: &[f64], q: &[f64], drafts: &[u32]) -> InTurn {
        let mut residual = p.to_vec();
        if drafts.is_empty() {
            let ratios = Vec::new();
            return InTurn { ratios, residual };
        }
        let strata = Strata::of_row(q, drafts.len());
        let passes = LevelPasses::of_rows((p, q), &strata, self.straddle, self.levels);
        let mut left = 1.0;
        let ratios = (passes.accepted(drafts).into_iter())
            .map(|share| {
                let ratio = ratio(share, left);
                left -= share;
                ratio
            })
            .collect();
        // A certain token that comes out at last is a draft.
        let mut last = passes.residual().to_vec();
        for (&token, _) in strata.certain().iter().zip(drafts).filter(|(a, b)| a == b) {
            last[token as usize] = 0.0;
        }
        // Nothing is left where no draft is ever refused; p is then as good.
        if normalise(&mut last) {
            residual = last;
        }
        InTurn { ratios, residual }
    }
}

pub(super) static LEVEL_4: RuleEntry = RuleEntry {
    name: "level-4",
    words: "reject by falling level of what is left of p over what is left of q, in a few passes \
            over all drafts",
    step: Some(&LevelStep::four(Straddle::Once)),
    also: &[(
        SchemeName::STRATIFIED_INDEPENDENT,
        &LevelStep::four(Straddle::Independent),
    )],
    needs_full_rows: Some("where q is cut, and what a pass leaves of p, are sums over all tokens"),
    audited: true,
    decoded: true,
    vectors: Vectors::of(&[2, 3], 5),
    ..RuleEntry::named(Verifies::Siblings, Drafts::Drawn(SchemeName::STRATIFIED))
};
