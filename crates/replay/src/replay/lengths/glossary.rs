//! What the words of the report mean.

use super::drafts::Drafts;
use super::policy::FAMILIES;
use crate::replay::with_replayed;
use specgap_core::rounds::ChainRule;
use std::collections::BTreeMap;

/// What the words of the report mean, each metric with its formula.
pub fn length_definitions() -> BTreeMap<String, String> {
    let mut all = with_replayed(include_str!("glossary.txt"), |_| true);
    for verifier in ChainRule::all() {
        let meaning = format!("verifier with P(tau >= i) = {}", verifier.formula());
        all.insert(verifier.as_str().to_owned(), meaning);
    }
    for drafts in Drafts::ALL {
        all.insert(format!("{drafts} drafts"), drafts.rule().to_owned());
    }
    for family in &FAMILIES {
        let meaning = format!("{}; decided on {}", family.rule, family.decided_on.as_str());
        all.insert(family.name.to_owned(), meaning);
    }
    all
}
