//! What a position answers.

use super::metric::Metric;
use specgap_base::sorted::Map;
use specgap_number::known::{Kind, Known};

/// What a position answers, by what it is about.
pub(super) type Answers = Map<Metric, Known>;

/// Differences up to this are those of rounding.
const ROUNDING: f64 = 4e-12;

/// A number that is there.
pub(super) fn find(answers: &Answers, metric: Metric) -> Result<Known, String> {
    answers
        .get(&metric)
        .cloned()
        .ok_or_else(|| format!("internal error: {metric:?} was not computed"))
}

/// alpha* minus acceptance; `attains` says that there is none, on any row.
pub(super) fn gap(best: &Known, rate: &Known, attains: bool) -> Known {
    let difference = best.minus(rate);
    // Two roads to one number differ by rounding; that is no gap.
    let difference = if difference.value().abs() <= ROUNDING {
        difference.taken_as(0.0)
    } else {
        difference
    };
    if difference.kind() != Kind::Truncated {
        return difference;
    }
    let completion = difference.completion();
    let bounds = if attains {
        [0.0, 0.0]
    } else {
        // No lossless verifier accepts more than alpha*, on full rows neither.
        [difference.lower().max(0.0), difference.upper()]
    };
    Known::truncated(&completion, bounds)
}
