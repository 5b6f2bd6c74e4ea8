//! What the words of a report on several paths mean.

use crate::replay::with_replayed;
use std::collections::BTreeMap;

/// What the words of the report mean, each metric with its formula.
pub fn paths_definitions() -> BTreeMap<String, String> {
    with_replayed(include_str!("glossary.txt"), |word| word == "surprise")
}
