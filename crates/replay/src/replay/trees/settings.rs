//! What is asked of trees.

use super::super::parts::Parts;
use super::super::timings::Timings;
use super::grow::Limits;
use specgap_core::rule::RuleName;
use specgap_core::scheme::{EngineName, SchemeName};
use specgap_core::tree::DraftTree;
use specgap_core::verifier::VerifierName;

/// A tree with the name that it has in the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedTree {
    /// The name.
    pub name: String,
    /// The tree.
    pub tree: DraftTree,
}

/// What to replay.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeSettings {
    /// The trees.
    pub trees: Vec<NamedTree>,
    /// Laws of a node's children.
    pub schemes: Vec<SchemeName>,
    /// Verifiers: those of [`TreeSettings::rules`].
    pub verifiers: Vec<RuleName>,
    /// What the best tree may be.
    pub limits: Limits,
    /// What a round costs, if it is known.
    pub timings: Option<Timings>,
    /// The temperature at which the text was drawn, where the log does not say.
    pub temperature: Option<f64>,
    /// The engine whose default drafts and rule the best tree is compared with; if not given, that
    /// which the logs name.
    pub engine: Option<EngineName>,
    /// Whether to ask what the children of the trees' roots are worth.
    pub slot_values: bool,
    /// Whether to fit one price for all nodes.
    pub price: bool,
    /// Seed of what is random.
    pub seed: u64,
    /// Whose rows are read.
    pub parts: Parts,
}

impl TreeSettings {
    /// Rules that trees are replayed with: of the drafts of a node, and of a tree from its leaves.
    pub fn rules() -> impl Iterator<Item = RuleName> {
        let at_nodes = VerifierName::ALL.into_iter().map(|one| one.entry().rule);
        let from_leaves = RuleName::ALL.into_iter();
        at_nodes.chain(from_leaves.filter(|rule| rule.entry().from_leaves.is_some()))
    }

    /// How deep a named tree may be that is advised: any that was asked for, of the usual ones those
    /// within the limit.
    pub(super) fn deepest(&self) -> usize {
        let names = self.trees.iter().map(|one| one.name.as_str());
        match names.eq(Self::TREES) {
            true => self.limits.depth,
            false => usize::MAX,
        }
    }

    /// Rules that are replayed only where they or their drafts are named: no engine runs them, and
    /// of as many drafts `traversal` keeps more.
    pub const OLDER: [RuleName; 3] = [RuleName::K_SEQ, RuleName::NAIVE_TREE, RuleName::SPECHUB];

    /// Trees that are replayed where none are named.
    pub const TREES: [&'static str; 6] = [
        "chain-4",
        "chain-8",
        "2x4",
        "4x3",
        "prefix-4-2-1",
        "eagle-25",
    ];
    /// [`TreeSettings::limits`] if nothing else is asked for.
    pub const LIMITS: Limits = Limits {
        budget: 32,
        depth: 8,
        branch: 4,
    };
}
