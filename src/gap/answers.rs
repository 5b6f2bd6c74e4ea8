//! What a position answers.

use super::metric::Metric;
use crate::known::Known;
use crate::sorted::Map;

/// What a position answers, by what it is about.
pub(super) type Answers = Map<Metric, Known>;
