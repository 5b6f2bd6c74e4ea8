//! Draft lengths and policies that stop by themselves, replayed along logged text.
//!
//! A [`Policy`] says how many tokens a round drafts. [`measure_lengths`] makes the report of
//! `specgap length`. Proofs are in `docs/theory/text-replay.md`, and of what no rule can pass over
//! several rounds in `docs/theory/several-rounds.md`.

mod at_cost;
mod bounds;
mod by_depth;
mod carried;
mod coins;
mod data;
mod drafts;
mod groups;
mod left_out;
mod measure;
mod outcome;
mod policy;
mod round_starts;
mod rounds;
mod settings;
#[cfg(test)]
mod tests;

pub use data::{
    AboveFewest, AtCost, AtDepth, AtGroupLength, Bound, Bounds, ByGroup, Chosen, ChosenPolicy,
    EntropyBound, EqualWeights, Faster, FewestCalls, GroupApart, LENGTH_SCHEMA, LengthReport,
    Longer, OfGroup, Parameter, PolicyResult, RolloutsRead, RoundStarts, SeveralRounds,
};
pub use drafts::Drafts;
pub use measure::measure_lengths;
pub use policy::{AlongText, DecidedOn, FAMILIES, Family, Policy};
pub use settings::LengthSettings;
