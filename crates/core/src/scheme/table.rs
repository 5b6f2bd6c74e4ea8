//! All draft laws.

use super::law::{Law, SchemeName};
use super::{
    composed, distinct_conditioned, explicit, greedy, hub, product, stratified, top,
    with_replacement, without_replacement,
};
use crate::entry_name::entry_table;

/// Every draft law, in the order of reports.
pub const LAWS: &[&Law] = &[
    &with_replacement::LAW,
    &without_replacement::LAW,
    &distinct_conditioned::LAW,
    &stratified::LAW,
    &stratified::INDEPENDENT,
    &greedy::LAW,
    &hub::LAW,
    &product::LAW,
    &explicit::LAW,
    &top::LAW,
    &composed::LAW,
];

entry_table!(SchemeName of LAWS; "draft scheme", UnknownScheme);
