//! What a position answers.

use super::metric::Metric;
use specgap_base::sorted::Map;
use specgap_number::known::Known;

/// What a position answers, by what it is about.
pub(super) type Answers = Map<Metric, Known>;
