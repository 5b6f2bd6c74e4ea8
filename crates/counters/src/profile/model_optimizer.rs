//! NVIDIA Model-Optimizer: `speculation_profile.json`, at the longest length.

use super::data::{Profile, ProfileError, Source, conditional, half, marginal, rounded};
use serde::Serialize;
use specgap_statistics::curve::Curve;
use std::collections::BTreeMap;

/// The fields of its `build_profile`, with those that a log does not tell as null. Its lengths count
/// the bonus token: the entry 1 of the histogram is of rounds that accept nothing.
#[derive(Serialize)]
struct Written<'a> {
    schema_version: &'static str,
    measured: bool,
    method: Option<&'a str>,
    draft_checkpoint: Option<&'a str>,
    target_model: Option<&'a str>,
    num_speculative_tokens: usize,
    block_size: Option<usize>,
    max_supported_k: usize,
    verification_method: &'static str,
    conditional_accept_rates: Vec<f64>,
    marginal_accept_rates: Vec<f64>,
    mean_accept_length: f64,
    mean_accept_length_per_request: Option<f64>,
    accept_length_model: &'static str,
    accept_length_by_k: BTreeMap<usize, f64>,
    acceptance_length_histogram: Option<BTreeMap<usize, f64>>,
    per_category: Option<BTreeMap<&'a str, Category>>,
    measurement_conditions: Conditions<'a>,
    validation: Validation,
}

/// What the numbers are of, and how sure.
#[derive(Serialize)]
struct Conditions<'a> {
    #[serde(flatten)]
    source: &'a Source,
    /// By K, halves of 95% intervals.
    accept_length_by_k_plus_minus: BTreeMap<usize, f64>,
    marginal_accept_rates_plus_minus: Vec<f64>,
    rounds: Option<u64>,
}

/// A group, at its longest length.
#[derive(Serialize)]
struct Category {
    mean_accept_length: f64,
    mean_accept_length_plus_minus: f64,
    num_speculative_tokens: usize,
    marginal_accept_rates: Vec<f64>,
    accept_length_by_k: BTreeMap<usize, f64>,
    rounds: Option<u64>,
}

#[derive(Serialize)]
struct Validation {
    mean_consistency: Consistency,
    marginal_monotonicity: Monotonicity,
}

#[derive(Serialize)]
struct Consistency {
    implied_mean_accept_length: f64,
    reported_mean_accept_length: f64,
    abs_delta: f64,
    tolerance: f64,
    passed: bool,
}

#[derive(Serialize)]
struct Monotonicity {
    passed: bool,
    violations: Vec<()>,
}

/// Its tolerance of the sum of shares against the mean.
const TOLERANCE: f64 = 0.02;

pub(super) fn files(profile: &Profile) -> Result<Vec<(String, Vec<u8>)>, ProfileError> {
    let curve = profile.longest().ok_or(ProfileError::Empty)?;
    let marginal = marginal(curve);
    let mean = curve.acceptance_length.mean;
    let implied = 1.0 + marginal.iter().sum::<f64>();
    let by_k = |of: &dyn Fn(&Curve) -> f64| by_k(&profile.curves, of);
    let given = conditional(&marginal).into_iter();
    let halves = curve.marginal.iter().map(half);
    let written = Written {
        schema_version: "1.0",
        measured: true,
        method: None,
        draft_checkpoint: profile.source.draft.as_deref(),
        target_model: profile.source.target.as_deref(),
        num_speculative_tokens: curve.length,
        block_size: None,
        max_supported_k: curve.length,
        verification_method: match profile.source.verifier.as_deref() {
            Some("block") => "block",
            _ => "longest_prefix",
        },
        conditional_accept_rates: given.map(|share| rounded(share, 6)).collect(),
        mean_accept_length: rounded(mean, 6),
        // A mean over requests of each request's own mean, which weighs short ones as long ones.
        mean_accept_length_per_request: None,
        accept_length_model: "measured_per_k",
        accept_length_by_k: by_k(&|curve| curve.acceptance_length.mean),
        acceptance_length_histogram: histogram(curve),
        per_category: per_category(profile),
        measurement_conditions: Conditions {
            source: &profile.source,
            accept_length_by_k_plus_minus: by_k(&|curve| half(&curve.acceptance_length)),
            marginal_accept_rates_plus_minus: halves.map(|half| rounded(half, 6)).collect(),
            rounds: curve.rounds,
        },
        validation: Validation {
            mean_consistency: Consistency {
                implied_mean_accept_length: rounded(implied, 6),
                reported_mean_accept_length: rounded(mean, 6),
                abs_delta: rounded((implied - mean).abs(), 6),
                tolerance: TOLERANCE,
                passed: (implied - mean).abs() <= TOLERANCE,
            },
            marginal_monotonicity: Monotonicity {
                passed: true,
                violations: Vec::new(),
            },
        },
        marginal_accept_rates: marginal,
    };
    let text = specgap_base::typed::pretty(&written);
    let text = text.map_err(|error| ProfileError::Json(error.to_string()))?;
    let (name, text) = ("speculation_profile.json", format!("{text}\n"));
    Ok(vec![(name.to_owned(), text.into_bytes())])
}

/// A number of each curve by its length.
fn by_k(curves: &[Curve], of: &dyn Fn(&Curve) -> f64) -> BTreeMap<usize, f64> {
    let each = curves.iter();
    each.map(|curve| (curve.length, rounded(of(curve), 6)))
        .collect()
}

/// Returns what `per_category` has of each group: `{category: {mean_accept_length, ...}}`.
fn per_category(profile: &Profile) -> Option<BTreeMap<&str, Category>> {
    let of = |curves: &[Curve]| {
        let curve = curves.last()?;
        Some(Category {
            mean_accept_length: rounded(curve.acceptance_length.mean, 6),
            mean_accept_length_plus_minus: rounded(half(&curve.acceptance_length), 6),
            num_speculative_tokens: curve.length,
            marginal_accept_rates: marginal(curve),
            accept_length_by_k: by_k(curves, &|curve| curve.acceptance_length.mean),
            rounds: curve.rounds,
        })
    };
    let all = (profile.groups.iter()).filter_map(|group| Some((group.0.as_str(), of(&group.1)?)));
    let all: BTreeMap<&str, Category> = all.collect();
    (!all.is_empty()).then_some(all)
}

/// Rounds by what they put out: their number where it is known, else their share.
fn histogram(curve: &Curve) -> Option<BTreeMap<usize, f64>> {
    let rounds = curve.rounds.map_or(1.0, |rounds| rounds as f64);
    let shares = curve.histogram.as_ref()?.iter();
    let each = (1..).zip(shares.map(|share| rounded(share * rounds, 6)));
    Some(each.collect())
}
