//! The block verifiers by their names.

use super::{
    Block, BlockOptimal, BlockVerifier, GreedyBlock, Select, SelectedRule, SpecTr, SpecTrGbv,
    Token, Traversal,
};
use specgap_core::problem::BlockProblem;
use specgap_core::rule::RuleName;
use specgap_core::tree::TokenTree;
use specgap_core::verifier::{Arithmetic, VerifierName};
use specgap_number::distribution::Rational;
use std::fmt;
use std::str::FromStr;

/// The block verifiers by their names in reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BlockVerifierName {
    /// [`Token`]
    Token,
    /// [`Block`]
    Block,
    /// [`GreedyBlock`]
    GreedyBlock,
    /// [`SpecTr`] with [`VerifierName::K_SEQ`]
    SpecTrKSeq,
    /// [`SpecTr`] with [`VerifierName::OPTIMAL`]
    SpecTrOptimal,
    /// [`Traversal`]
    Traversal,
    /// [`Select`] with [`SelectedRule::Greedy`]
    SelectGreedyBlock,
    /// [`Select`] with [`SelectedRule::Block`]
    SelectBlock,
    /// [`BlockOptimal`]
    BlockOptimal,
    /// [`SpecTrGbv`], for audit
    SpecTrGbv,
}

impl BlockVerifierName {
    /// Every verifier, in the order of reports.
    pub const ALL: [Self; 10] = [
        Self::Token,
        Self::Block,
        Self::GreedyBlock,
        Self::SpecTrKSeq,
        Self::SpecTrOptimal,
        Self::Traversal,
        Self::SelectGreedyBlock,
        Self::SelectBlock,
        Self::BlockOptimal,
        Self::SpecTrGbv,
    ];

    /// The rule in the table of all rules.
    pub fn rule(self) -> RuleName {
        match self {
            Self::Token => RuleName::TOKEN,
            Self::Block => RuleName::BLOCK,
            Self::GreedyBlock => RuleName::GREEDY_BLOCK,
            Self::SpecTrKSeq => RuleName::SPECTR_K_SEQ,
            Self::SpecTrOptimal => RuleName::SPECTR_OPTIMAL,
            Self::Traversal => RuleName::TRAVERSAL,
            Self::SelectGreedyBlock => RuleName::SELECT_GREEDY_BLOCK,
            Self::SelectBlock => RuleName::SELECT_BLOCK,
            Self::BlockOptimal => RuleName::BLOCK_OPTIMAL,
            Self::SpecTrGbv => RuleName::SPECTR_GBV,
        }
    }

    /// The name in reports, e.g. `greedy-block`.
    pub fn as_str(self) -> &'static str {
        self.rule().as_str()
    }

    /// True if it looks at one draft however many there are.
    pub fn is_single_draft(self) -> bool {
        matches!(self, Self::Token | Self::Block | Self::GreedyBlock)
    }

    /// Whether its output is proved to follow the target with `drafts` drafts.
    /// False for `spectr-gbv` with two or more, where it is refuted.
    pub fn is_proved_lossless(self, drafts: usize) -> bool {
        self != Self::SpecTrGbv || drafts == 1
    }

    /// What a reader must know beside the numbers.
    pub fn note(self, drafts: usize) -> Option<&'static str> {
        if self.is_single_draft() {
            return (drafts > 1).then_some("uses the first of the drafts only");
        }
        match self {
            Self::SpecTrGbv if drafts > 1 => Some(
                "refuted for two or more drafts: may change the output's law; for audit, not for use",
            ),
            Self::SpecTrOptimal => {
                Some("one optimal plan a position; others may give another E[tau]")
            }
            Self::SelectGreedyBlock | Self::SelectBlock => {
                Some("the most even of the optimal plans at each position")
            }
            _ => None,
        }
    }

    /// The verifier, in `f64` or exactly; `None` for `block-optimal` where the
    /// exact optimum is out of reach.
    pub fn verifier<T: Arithmetic>(
        self,
        problem: &BlockProblem,
        drafts: usize,
    ) -> Option<Box<dyn BlockVerifier<T>>> {
        Some(match self {
            Self::Token => Box::new(Token),
            Self::Block => Box::new(Block),
            Self::GreedyBlock => Box::new(GreedyBlock),
            Self::SpecTrKSeq => Box::new(SpecTr::new(problem, VerifierName::K_SEQ, drafts)),
            Self::SpecTrOptimal => Box::new(SpecTr::new(problem, VerifierName::OPTIMAL, drafts)),
            Self::Traversal => Box::new(Traversal::new(drafts)),
            Self::SelectGreedyBlock => Box::new(Select::new(problem, SelectedRule::Greedy, drafts)),
            Self::SelectBlock => Box::new(Select::new(problem, SelectedRule::Block, drafts)),
            Self::BlockOptimal => {
                let tree = TokenTree::<Rational>::new(problem);
                Box::new(BlockOptimal::new(&tree, drafts)?)
            }
            Self::SpecTrGbv => Box::new(SpecTrGbv::new(drafts)),
        })
    }
}

impl fmt::Display for BlockVerifierName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A name that is not one of [`BlockVerifierName::ALL`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a block verifier; choose one of {known}", known = BlockVerifierName::ALL.map(BlockVerifierName::as_str).join(", "))]
pub struct UnknownBlockVerifier(pub String);

impl FromStr for BlockVerifierName {
    type Err = UnknownBlockVerifier;
    fn from_str(text: &str) -> Result<Self, UnknownBlockVerifier> {
        let rule = text.parse().ok();
        Self::ALL
            .into_iter()
            .find(|name| Some(name.rule()) == rule)
            .ok_or_else(|| UnknownBlockVerifier(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_about_the_drafts_that_there_are() {
        let of = |name: BlockVerifierName| [1, 2].map(|drafts| name.note(drafts).unwrap_or(""));
        let first = "uses the first of the drafts only";
        for name in [
            BlockVerifierName::Token,
            BlockVerifierName::Block,
            BlockVerifierName::GreedyBlock,
        ] {
            assert_eq!(of(name), ["", first]);
        }
        let [one, two] = of(BlockVerifierName::SpecTrOptimal);
        assert!(one == two && one.starts_with("one optimal plan"), "{one}");
        let [one, two] = of(BlockVerifierName::SpecTrGbv);
        assert!(one.is_empty() && two.starts_with("refuted"), "{two}");
        let [one, two] = of(BlockVerifierName::SelectBlock);
        assert!(one == two && one.starts_with("the most even"), "{one}");
    }
}
