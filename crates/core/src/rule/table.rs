//! All rules.

use super::{RuleEntry, RuleName, k_seq, level, named, rejection, spechub, target_mass};
use crate::entry_name::entry_table;

/// Every rule: of chains, of siblings, of paths and trees, of none.
pub const RULES: &[&RuleEntry] = &[
    &rejection::TOKEN,
    &target_mass::ONE_HOT,
    &target_mass::THRESHOLD,
    &named::BLOCK,
    &named::GREEDY_BLOCK,
    &named::CARRIED,
    &named::CARRIED_BLOCK,
    &rejection::RRS,
    &rejection::RRS_WO,
    &named::LEVEL,
    &level::LEVEL_4,
    &k_seq::K_SEQ,
    &named::NAIVE_TREE,
    &spechub::SPECHUB,
    &named::GREEDY,
    &named::OPTIMAL,
    &target_mass::EXACT_MATCH,
    &named::SPECTR_K_SEQ,
    &named::SPECTR_OPTIMAL,
    &named::TRAVERSAL,
    &named::SELECT_BLOCK,
    &named::SELECT_GREEDY_BLOCK,
    &named::CODED_RRS,
    &named::CODED_LEVEL_4,
    &named::BLOCK_OPTIMAL,
    &named::SPECTR_GBV,
    &named::TEXT,
];

entry_table!(RuleName of RULES; "rule", UnknownRule);
