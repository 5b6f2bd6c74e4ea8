//! What the words of the report on trees mean.

use crate::replay::with_replayed;
use specgap_core::scheme::SchemeName;
use specgap_core::verifier::VerifierName;
use std::collections::BTreeMap;

/// What the words of the report mean, each metric with its formula.
pub fn tree_definitions() -> BTreeMap<String, String> {
    let mut all = with_replayed(include_str!("glossary.txt"), |_| true);
    for verifier in VerifierName::ALL {
        all.insert(
            verifier.as_str().to_owned(),
            format!("verifier: {}", verifier.words()),
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
