//! The verification rules: one table of their names, and their laws on a row.
//!
//! A rule has one name, which every command writes, and aliases, which every command reads:
//! papers and engines call one rule by several names. What a command needs of a rule is a
//! column of [`RULES`] or of a table of its own whose entries are rules of this one:
//!
//! | column | for |
//! | --- | --- |
//! | [`RuleEntry::words`] | help texts, glossaries, reports |
//! | [`RuleEntry::drafts`], [`RuleEntry::step`], [`RuleEntry::also`] | what is drawn and kept on a row, in `f64`: `audit`, `decode` |
//! | [`RuleEntry::audited`], [`RuleEntry::needs_full_rows`] | `audit` |
//! | [`RuleEntry::vectors`] | `conformance` |
//! | [`RuleEntry::decoded`] | `decode` |
//! | [`crate::verifier::VERIFIERS`] | exact laws and rates: `verify`, `gap`, `tree`, `conformance` |
//! | `specgap_exact::block::BLOCK_RULES` | exact laws of blocks: `block`, `paths` |
//! | [`RuleEntry::survival`] | chains along a text: `length`, `gap`, `paths` |
//! | [`RuleEntry::shared`] | several paths along a text: `paths`, `decode` |
//! | [`RuleEntry::from_leaves`] | trees from their leaves along a text: `tree` |
//! | [`RuleEntry::changes_target`] | what rounds can be replayed one after the other |
//!
//! A rule is added by its file and its line in the table.

mod k_seq;
mod level;
pub(crate) mod named;
pub(crate) mod rejection;
mod spechub;
mod step;
mod table;
mod target_mass;
#[cfg(test)]
mod tests;

use crate::entry_name::{Named, entry_name};
use crate::scheme::SchemeName;
use serde::{Deserialize, Deserializer};
use specgap_plan::Levels;

pub use level::LevelStep;
pub use step::normalise;
pub use step::{InTurn, Step};
pub use table::{RULES, UnknownRule};
pub use target_mass::TargetMass;

/// One rule in the table [`RULES`].
#[derive(Debug)]
pub struct RuleEntry {
    /// The name in options, files and reports: the one that is written.
    pub name: &'static str,
    /// Other names of it, which are read.
    pub aliases: &'static [&'static str],
    /// What it does, in one line.
    pub words: &'static str,
    /// What it verifies at once.
    pub verifies: Verifies,
    /// How the drafts are drawn that an engine with this rule verifies.
    pub drafts: Drafts,
    /// What it does with drafts of one position, on rows; `None` where that rests on a plan or
    /// on other positions.
    pub step: Option<&'static dyn Step>,
    /// Other laws of drafts that an engine with this rule may draw by, each with what the rule
    /// then does.
    pub also: &'static [(SchemeName, &'static dyn Step)],
    /// How far a chain survives, given the text that is put out; `None` where the text does not
    /// tell.
    pub survival: Option<Kept>,
    /// How several paths survive, given the text; `None` where the text does not tell.
    pub shared: Option<Shared>,
    /// Whether a round changes the target of later ones, so that no round can be replayed by
    /// itself.
    pub changes_target: bool,
    /// Why rows that list some tokens only cannot be audited.
    pub needs_full_rows: Option<&'static str>,
    /// Whether an engine that claims it can be audited.
    pub audited: bool,
    /// Test vectors of it, for kernels; `None` if there are none.
    pub vectors: Option<Vectors>,
    /// Whether live decoding has it.
    pub decoded: bool,
    /// The levels of the passes at a tree's root, of a rule that verifies a tree from its leaves and
    /// is replayed along text; below it there is one pass.
    pub from_leaves: Option<Levels<'static>>,
}

/// What a rule verifies at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verifies {
    /// Drafts that follow one another.
    Chain,
    /// Alternatives for one position; of a tree, at each node.
    Siblings,
    /// Several chains.
    Paths,
    /// A whole tree.
    Tree,
    /// No drafts: what is put out.
    Text,
}

/// How drafts are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drafts {
    /// From q, by a law of [`crate::scheme::LAWS`].
    Drawn(SchemeName),
    /// The likeliest tokens of q, taken for one-hot laws.
    Likeliest,
    /// In any way: the rule does not look at it.
    Any,
}

/// What a rule keeps of a chain: small, as loops over texts ask for it at every token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Each token by itself: accepted with probability min(1, p/q).
    Tokens,
    /// Whole prefixes, by block verification of Sun et al.
    Prefixes,
    /// Whole prefixes, as many as one round can take.
    MostPrefixes,
}

/// How a rule of several paths takes a token at a prefix that some of them share.
#[derive(Clone, Copy, Debug)]
pub enum Shared {
    /// It tests them in turn, as recursive rejection of i.i.d. drafts does.
    Rejected,
    /// It tests them in turn, all with one factor, as k-seq does.
    OneFactor,
    /// It selects one of them, and keeps so much of the path that is selected.
    Selected(Kept),
}

/// Which test vectors there are of a rule.
#[derive(Clone, Copy, Debug)]
pub struct Vectors {
    /// Numbers of drafts.
    pub drafts: &'static [usize],
    /// Which stream of random numbers makes them; each rule has its own.
    pub stream: u64,
}

const IID: Drafts = Drafts::Drawn(SchemeName::WITH_REPLACEMENT);

impl Vectors {
    const fn of(drafts: &'static [usize], stream: u64) -> Option<Self> {
        Some(Self { drafts, stream })
    }
}

impl Drafts {
    /// Returns whether no token is drafted twice.
    pub fn are_distinct(self) -> bool {
        match self {
            Self::Drawn(law) => law.entry().distinct,
            Self::Likeliest => true,
            Self::Any => false,
        }
    }
}

impl RuleEntry {
    /// An entry whose columns are empty.
    const fn named(verifies: Verifies, drafts: Drafts) -> Self {
        Self {
            name: "",
            aliases: &[],
            words: "",
            verifies,
            drafts,
            step: None,
            also: &[],
            survival: None,
            shared: None,
            changes_target: false,
            needs_full_rows: None,
            audited: false,
            vectors: None,
            decoded: false,
            from_leaves: None,
        }
    }
}

impl Named for RuleEntry {
    fn name(&self) -> &'static str {
        self.name
    }

    fn aliases(&self) -> &'static [&'static str] {
        self.aliases
    }
}

/// A rule by its name: a handle to its entry in [`RULES`].
///
/// Handles compare, sort and hash by name.
///
/// # Example
/// ```
/// use specgap_core::rule::RuleName;
/// let rule: RuleName = "single".parse()?;
/// assert_eq!(rule, RuleName::TOKEN);
/// assert_eq!(rule.as_str(), "token");
/// # Ok::<(), specgap_core::rule::UnknownRule>(())
/// ```
#[derive(Clone, Copy)]
pub struct RuleName(pub(crate) &'static RuleEntry);

entry_name!(RuleName of RuleEntry);

/// A rule's name as it is written, of any of its names; `LAW/NAME` too. What is no rule stays.
fn written(text: String) -> String {
    let (law, name) = text.rsplit_once('/').map_or(("", &*text), |two| two);
    match name.parse::<RuleName>() {
        Ok(rule) if law.is_empty() => rule.to_string(),
        Ok(rule) => format!("{law}/{rule}"),
        Err(_) => text,
    }
}

/// Reads a name out of a report that an earlier version may have written.
pub fn read_name<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    String::deserialize(from).map(written)
}

/// Reads a name that may be missing.
pub fn read_names<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<String>::deserialize(from)?.map(written))
}

impl RuleName {
    /// The laws by which an engine with this rule may draw its drafts, its own first; none if it
    /// does not look at how they are drawn.
    pub fn laws(self) -> impl Iterator<Item = SchemeName> {
        let own = match self.0.drafts {
            Drafts::Drawn(law) => Some(law),
            Drafts::Likeliest | Drafts::Any => None,
        };
        own.into_iter()
            .chain(self.0.also.iter().map(|(law, _)| *law))
    }

    /// Returns what it does with drafts of a law, on rows; `None` if it does not verify them, or
    /// not on a row. A rule that does not look at how drafts are drawn takes them all.
    pub fn step_of(self, law: SchemeName) -> Option<&'static dyn Step> {
        match self.0.drafts {
            Drafts::Drawn(own) if own != law => {
                let mut others = self.0.also.iter();
                others
                    .find(|(other, _)| *other == law)
                    .map(|(_, step)| *step)
            }
            _ => self.0.step,
        }
    }

    /// Returns what it does, in one line.
    pub fn words(self) -> &'static str {
        self.0.words
    }

    /// Returns whether drafts follow one another, and are not alternatives.
    pub fn is_chain(self) -> bool {
        self.0.verifies == Verifies::Chain
    }

    /// Returns whether a round goes on from what rounds before drafted and kept of the text.
    pub fn carries(self) -> bool {
        self.is_chain() && self.tests_drafts() && self.0.survival.is_none()
    }

    /// Returns whether it looks at q: at a single position it then is rejection sampling.
    pub fn tests_drafts(self) -> bool {
        matches!(self.0.drafts, Drafts::Drawn(_))
    }

    /// Returns whether the drafts that it verifies are alternatives for one position, and their law
    /// matters.
    pub fn needs_siblings(self) -> bool {
        self.0.verifies == Verifies::Siblings && self.tests_drafts()
    }
}
