//! What is asked of draft lengths and policies.

use super::super::parts::Parts;
use super::super::timings::Timings;
use super::drafts::Drafts;
use super::policy::{FAMILIES, Policy};
use specgap_core::rounds::ChainRule;
use specgap_core::rule::RuleName;
use specgap_core::scheme::EngineName;
use specgap_sampling::Cuts;

/// What to replay.
#[derive(Clone, Debug, PartialEq)]
pub struct LengthSettings {
    /// The policies. The best length by cost is one of the fixed lengths among them.
    pub policies: Vec<Policy>,
    /// The verifiers.
    pub verifiers: Vec<ChainRule>,
    /// What is drafted; all that the log can tell of if nothing is named, but sampled drafts
    /// alone where token verification is not among the verifiers.
    pub drafts: Vec<Drafts>,
    /// What is kept of the draft's row, and renormalised, before a token is drafted from it.
    pub draft_cuts: Cuts,
    /// What a round costs, if it is known.
    pub timings: Option<Timings>,
    /// Rules whose rounds hang together and are replayed too: `carried`, `carried-block`, which reads
    /// the rows once more, and `greedy-block`, which does so and takes longest of all.
    pub linked: Vec<RuleName>,
    /// Whether how far rounds get from where they start is told too, for profiles.
    pub round_starts: bool,
    /// The most tokens of a round, for policies that stop by themselves;
    /// [`LengthSettings::MAX_LENGTH`] if not given, or as many as rollouts have, if these are fewer.
    pub max_length: Option<usize>,
    /// The temperature at which the text was drawn, where the log does not say.
    pub temperature: Option<f64>,
    /// The engine whose defaults advice starts from; if not given, that which the logs name.
    pub engine: Option<EngineName>,
    /// Whose rows are read.
    pub parts: Parts,
}

impl LengthSettings {
    /// [`LengthSettings::max_length`] where nothing else is asked for.
    pub const MAX_LENGTH: usize = 16;
}

impl Default for LengthSettings {
    fn default() -> Self {
        Self {
            policies: (FAMILIES.iter())
                .filter(|family| !family.needs_head())
                .flat_map(|family| family.usual())
                .collect(),
            verifiers: ChainRule::all().collect(),
            drafts: Vec::new(),
            draft_cuts: Cuts::default(),
            linked: Vec::new(),
            round_starts: false,
            timings: None,
            max_length: None,
            temperature: None,
            engine: None,
            parts: Parts::Whole,
        }
    }
}
