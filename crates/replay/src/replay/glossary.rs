//! What the words of reports along a text mean, each metric with its formula.

use super::lengths::{Drafts, FAMILIES};
use super::trees::TreeSettings;
use specgap_base::glossary;
use specgap_core::rounds::ChainRule;
use specgap_core::scheme::SchemeName;
use std::collections::BTreeMap;

/// Words of a report on lengths.
pub fn length_definitions() -> BTreeMap<String, String> {
    let mut all = glossary::of::<BTreeMap<String, String>>("length");
    for verifier in ChainRule::all() {
        let meaning = format!("verifier with P(tau >= i) = {}", verifier.formula());
        all.insert(verifier.as_str().to_owned(), meaning);
    }
    for drafts in Drafts::ALL {
        all.insert(format!("{drafts} drafts"), drafts.rule().to_owned());
    }
    for family in FAMILIES {
        let meaning = format!("{}; decided on {}", family.rule, family.decided_on.as_str());
        all.insert(family.name.to_owned(), meaning);
    }
    all
}

/// Words of a report on trees.
pub fn tree_definitions() -> BTreeMap<String, String> {
    let mut all = glossary::of::<BTreeMap<String, String>>("tree");
    for rule in TreeSettings::rules() {
        all.insert(
            rule.as_str().to_owned(),
            format!("verifier: {}", rule.words()),
        );
    }
    for scheme in SchemeName::ALL {
        all.insert(
            scheme.as_str().to_owned(),
            format!("drafts: {}", scheme.law()),
        );
    }
    all
}

/// Words of a report on several paths.
pub fn paths_definitions() -> BTreeMap<String, String> {
    glossary::of("paths")
}
