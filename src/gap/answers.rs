//! What a position answers, and what stands for the tokens that its rows do not list.

use super::metric::Metric;
use crate::known::Known;
use std::collections::BTreeMap;

/// What a position answers, by what it is about.
pub(super) type Answers = BTreeMap<Metric, Known>;

/// Entries that stand for all tokens that a top-heavy row does not list.
///
/// They share the rest's mass evenly, in both rows: one way to complete the row. What
/// any other way can change is `truncation.rs`'s to say. Several entries keep two drafts
/// from the rest from being one token.
pub(super) const REST_ENTRIES: usize = 64;
