//! What a block verifier is, and what the rest of the crate asks of it by its name.

#[cfg(doc)]
use super::BLOCK_RULES;
use super::law::BlockVerifier;
use specgap_core::entry_name;
use specgap_core::entry_name::Named;
use specgap_core::problem::BlockProblem;
use specgap_core::rule::RuleName;
use specgap_number::distribution::Rational;

/// One rule in the table [`BLOCK_RULES`]: a block verifier is added by its file and its line in the
/// table.
#[derive(Debug)]
pub struct BlockEntry {
    /// The rule, with its names and what it does in one line.
    pub rule: RuleName,
    /// What a reader must know beside the numbers; of a refuted rule, where it is refuted.
    pub note: Option<&'static str>,
    /// Whether it is refuted for two or more drafts: for audit, not for use.
    pub is_refuted: bool,
    /// Whether a run branches at every token of every draft.
    pub branches: bool,
    /// Whether its law is in fractions where the problem is.
    pub is_exact: bool,
    /// What it is proved to attain.
    pub attains: Attains,
    /// The verifier in `f64`.
    pub floats: Build<f64>,
    /// The verifier in fractions.
    pub fractions: Build<Rational>,
}

/// A problem and a number of drafts to a verifier; `None` where that is out of reach.
pub type Build<T> = fn(&BlockProblem, usize) -> Option<Box<dyn BlockVerifier<T>>>;

/// What a rule is proved to attain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attains {
    /// Nothing.
    Nothing,
    /// The optimum of one draft.
    OneDraft,
    /// The block optimum, from which it is made.
    Optimum,
}

/// An entry with no notes, whose verifier is made alike in both arithmetics.
macro_rules! block_entry {
    ($rule:ident, $build:expr) => {
        $crate::block::BlockEntry {
            rule: specgap_core::rule::RuleName::$rule,
            note: None,
            is_refuted: false,
            branches: false,
            is_exact: true,
            attains: $crate::block::Attains::Nothing,
            floats: $build,
            fractions: $build,
        }
    };
}

pub(super) use block_entry;

/// A block verifier by its name: a handle to its entry in [`BLOCK_RULES`].
#[derive(Clone, Copy)]
pub struct BlockRule(pub(super) &'static BlockEntry);

impl Named for BlockEntry {
    fn name(&self) -> &'static str {
        self.rule.as_str()
    }

    fn aliases(&self) -> &'static [&'static str] {
        self.rule.entry().aliases
    }
}

entry_name!(BlockRule of BlockEntry);

impl BlockRule {
    /// True if it looks at one draft however many there are.
    pub fn is_single_draft(self) -> bool {
        self.0.rule.is_chain()
    }

    /// Whether its output is proved to follow the target with `drafts` drafts.
    pub fn is_proved_lossless(self, drafts: usize) -> bool {
        !self.0.is_refuted || drafts == 1
    }

    /// What a reader must know beside the numbers.
    pub fn note(self, drafts: usize) -> Option<&'static str> {
        if self.is_single_draft() {
            return (drafts > 1).then_some("uses the first of the drafts only");
        }
        self.0.note.filter(|_| !self.0.is_refuted || drafts > 1)
    }
}
