//! All block verifiers.

use super::law::BlockEntry;
use super::{optimal, ordered, select, single_draft, spectr, spectr_gbv, traversal};
use specgap_core::{entry_name, entry_table};

/// A block verifier by its name: a handle to its entry in [`BLOCK_RULES`].
#[derive(Clone, Copy)]
pub struct BlockRule(&'static BlockEntry);

entry_name!(BlockRule of BlockEntry by rule);

entry_table! {
    /// Every block verifier, in the order of reports.
    pub const BLOCK_RULES: [BlockEntry] as BlockRule; "block verifier", UnknownBlockRule;
    /// [`Token`](super::Token)
    TOKEN = single_draft::TOKEN;
    /// [`Block`](super::Block)
    BLOCK = single_draft::BLOCK;
    /// [`GreedyBlock`](super::GreedyBlock)
    GREEDY_BLOCK = single_draft::GREEDY_BLOCK;
    /// [`SpecTr`](super::SpecTr) with k-seq.
    SPECTR_K_SEQ = spectr::K_SEQ;
    /// [`SpecTr`](super::SpecTr) with an optimal plan.
    SPECTR_OPTIMAL = spectr::OPTIMAL;
    /// [`Traversal`](super::Traversal)
    TRAVERSAL = traversal::ENTRY;
    /// [`Select`](super::Select), verified by greedy blocks.
    SELECT_GREEDY_BLOCK = select::GREEDY_BLOCK;
    /// [`Select`](super::Select), verified by blocks.
    SELECT_BLOCK = select::BLOCK;
    /// [`Ordered`](super::Ordered)
    GBV = ordered::ENTRY;
    /// [`BlockOptimal`](super::BlockOptimal)
    BLOCK_OPTIMAL = optimal::ENTRY;
    /// [`SpecTrGbv`](super::SpecTrGbv), for audit.
    SPECTR_GBV = spectr_gbv::ENTRY;
}

impl BlockRule {
    /// True if it looks at one draft however many there are.
    pub fn is_single_draft(self) -> bool {
        self.0.rule.is_chain()
    }

    /// Tells whether its output is proved to follow the target with `drafts` drafts.
    pub fn is_proved_lossless(self, drafts: usize) -> bool {
        !self.0.is_refuted || drafts == 1
    }

    /// Says what a reader must know beside the numbers.
    pub fn note(self, drafts: usize) -> Option<&'static str> {
        if self.is_single_draft() {
            return (drafts > 1).then_some("uses the first of the drafts only");
        }
        self.0.note.filter(|_| !self.0.is_refuted || drafts > 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_about_the_drafts_that_there_are() {
        let of = |name: BlockRule| [1, 2].map(|drafts| name.note(drafts).unwrap_or(""));
        let first = "uses the first of the drafts only";
        for name in [BlockRule::TOKEN, BlockRule::BLOCK, BlockRule::GREEDY_BLOCK] {
            assert_eq!(of(name), ["", first]);
        }
        let [one, two] = of(BlockRule::SPECTR_OPTIMAL);
        assert!(one == two && one.starts_with("one optimal plan"), "{one}");
        let [one, two] = of(BlockRule::SPECTR_GBV);
        assert!(one.is_empty() && two.starts_with("refuted"), "{two}");
        let [one, two] = of(BlockRule::SELECT_BLOCK);
        assert!(one == two && one.starts_with("the most even"), "{one}");
    }
}
