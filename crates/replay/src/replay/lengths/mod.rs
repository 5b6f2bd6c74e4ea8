//! Draft lengths and policies that stop by themselves, replayed along logged text.
//!
//! A [`Policy`] says how many tokens a round drafts. [`measure_lengths`] makes the report of
//! `specgap length`. Proofs are in `docs/theory/text-replay.md`.

mod at_cost;
mod bounds;
mod data;
mod drafts;
mod glossary;
mod left_out;
mod measure;
mod outcome;
mod policy;
mod settings;

pub use data::{
    AtCost, Bound, Bounds, Chosen, ChosenPolicy, EntropyBound, Faster, LENGTH_SCHEMA, LengthReport,
    Parameter, PolicyResult, RolloutsRead,
};
pub use drafts::Drafts;
pub use glossary::length_definitions;
pub use measure::measure_lengths;
pub use policy::{AlongText, DecidedOn, FAMILIES, Family, Policy};
pub use settings::LengthSettings;
