//! What a position answers.

use super::metric::Metric;
use crate::known::Known;
use std::collections::BTreeMap;

/// What a position answers, by what it is about.
pub(super) type Answers = BTreeMap<Metric, Known>;
