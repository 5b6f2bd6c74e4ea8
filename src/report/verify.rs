//! Reports of `specgap verify`.

use super::solve::JsonRate;
use super::table::{Column, Row, Table};
use super::text::{counted, exact_or_decimal, small, wrap};
use super::{JSON_SCHEMA, terminal};
use crate::distribution::format_rational;
use crate::known::{Known, Sampling};
use crate::verifier::{Evaluation, Measured, Outcome, VerifierError};
use serde::Serialize;
use std::fmt::Write as _;

/// Definitions that go under every text report.
pub const DEFINITIONS: &str = "\
algorithmic   probability that the rule accepts a draft; per step, no bonus token
membership    P(output is one of the drafts); also counts a residual draw that equals a draft
gap           alpha* - membership, alpha* being the largest membership acceptance of any verifier
              whose output follows the target p exactly
TV            total variation between the output's law and p: half the sum of |output - p|
lossless      TV is 0: in rational arithmetic with tolerance 0 (\"yes, exact\"), or at most 1e-11 in
              floating point (\"yes\"); \"-\" where the tuples are too many to sum
All rates are dimensionless, in [0, 1], averaged over the law of the drafts. A rate is exact, or
enclosed (rounding and all that was left out are within the bounds), or a Monte Carlo mean.";

#[derive(Serialize)]
struct Json<'a> {
    schema: u32,
    problem: &'a str,
    scheme: &'static str,
    vocab: usize,
    drafts: usize,
    optimal_acceptance_rate: Option<JsonRate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    optimal_acceptance_rate_reason: Option<&'a str>,
    verifiers: Vec<JsonVerifier<'a>>,
    ok: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum JsonVerifier<'a> {
    Measured(Box<JsonMeasured<'a>>),
    Skipped {
        name: &'static str,
        status: &'static str,
        reason: String,
        /// The problem file expects a rate of this verifier.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        expectation_unmet: bool,
    },
}

#[derive(Serialize)]
struct JsonMeasured<'a> {
    name: &'static str,
    status: &'static str,
    algorithmic_acceptance: f64,
    membership_acceptance: f64,
    kind: &'static str,
    lower: f64,
    upper: f64,
    exact: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    monte_carlo: Option<JsonMonteCarlo>,
    gap: Option<f64>,
    total_variation: Option<f64>,
    total_variation_exact: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_variation_reason: Option<&'a str>,
    worst_token: Option<usize>,
    lossless: Option<bool>,
    exceeds_optimum: bool,
    formula_agrees: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<JsonExpected>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
    ok: bool,
}

#[derive(Serialize)]
struct JsonMonteCarlo {
    confidence: f64,
    samples: u64,
    seed: u64,
}

#[derive(Serialize)]
struct JsonExpected {
    membership_acceptance: f64,
    tolerance: f64,
    difference: f64,
    ok: bool,
}

/// How many verifiers were run.
pub fn measured(evaluation: &Evaluation) -> usize {
    let ran = |outcome: &Outcome| matches!(outcome, Outcome::Measured(_));
    evaluation
        .verifiers
        .iter()
        .filter(|one| ran(&one.outcome))
        .count()
}

/// One JSON object on one line.
///
/// # Errors
/// None that an `Evaluation` can cause; serialisation is fallible by type.
pub fn json(evaluation: &Evaluation) -> serde_json::Result<String> {
    let verifiers = evaluation
        .verifiers
        .iter()
        .map(|one| match &one.outcome {
            Outcome::Skipped { reason } => JsonVerifier::Skipped {
                name: one.name.as_str(),
                status: "skipped",
                reason: reason.to_string(),
                expectation_unmet: evaluation.unmet.contains(&one.name),
            },
            Outcome::Measured(measured) => {
                JsonVerifier::Measured(Box::new(json_measured(one.name.as_str(), measured)))
            }
        })
        .collect();
    serde_json::to_string(&Json {
        schema: JSON_SCHEMA,
        problem: &evaluation.problem,
        scheme: evaluation.scheme.as_str(),
        vocab: evaluation.vocab,
        drafts: evaluation.drafts,
        optimal_acceptance_rate: evaluation.optimum.as_ref().ok().map(Into::into),
        optimal_acceptance_rate_reason: evaluation.optimum.as_ref().err().map(String::as_str),
        verifiers,
        ok: evaluation.is_fine(),
    })
}

fn json_measured<'a>(name: &'static str, measured: &'a Measured) -> JsonMeasured<'a> {
    let rate = &measured.membership;
    let variation = measured.total_variation.as_ref();
    JsonMeasured {
        name,
        status: "measured",
        algorithmic_acceptance: measured.algorithmic.value(),
        membership_acceptance: rate.value(),
        kind: rate.kind().as_str(),
        lower: rate.lower(),
        upper: rate.upper(),
        exact: rate.rational().map(format_rational),
        monte_carlo: rate.sampling().map(|sampling| JsonMonteCarlo {
            confidence: sampling.confidence,
            samples: sampling.samples,
            seed: sampling.seed,
        }),
        gap: measured.gap.as_ref().map(|gap| gap.value()),
        total_variation: variation.ok().map(|variation| variation.value),
        total_variation_exact: variation.is_ok_and(|variation| variation.exact.is_some()),
        total_variation_reason: variation.err().map(String::as_str),
        worst_token: variation.ok().and_then(|variation| variation.worst_token),
        lossless: measured.lossless,
        exceeds_optimum: measured.exceeds_optimum,
        formula_agrees: measured.formula_agrees,
        expected: measured.expected.as_ref().map(|check| JsonExpected {
            membership_acceptance: check.value,
            tolerance: check.tolerance,
            difference: check.difference,
            ok: check.ok,
        }),
        note: measured.note.as_deref(),
        ok: measured.is_fine(),
    }
}

/// A report for people; `width` wraps the table and the prose.
pub fn text(evaluation: &Evaluation, width: u16) -> String {
    let mut out = format!("{}\n", evaluation.problem);
    let scheme = evaluation.scheme;
    let _ = wrap(&mut out, &format!("{scheme}: {}", scheme.law()), width);
    let _ = writeln!(out, "  V = {}, n = {}", evaluation.vocab, evaluation.drafts);
    match &evaluation.optimum {
        Ok(rate) => {
            let value = match &rate.rational() {
                Some(exact) => exact_or_decimal(exact, rate.value()),
                None => format!(
                    "{} enclosed in [{}, {}], width {:.1e}",
                    rate.value(),
                    rate.lower(),
                    rate.upper(),
                    rate.width()
                ),
            };
            let _ = writeln!(out, "  alpha* = {value}");
        }
        Err(reason) => {
            let _ = wrap(&mut out, &format!("alpha* is not known: {reason}"), width);
        }
    }
    let columns = vec![
        Column::words("verifier"),
        Column::number("algorithmic"),
        Column::number("membership"),
        Column::number("gap"),
        Column::number("TV"),
        Column::words("lossless"),
        Column::words("rate"),
    ];
    let rows = evaluation
        .verifiers
        .iter()
        .filter_map(|one| match &one.outcome {
            Outcome::Measured(measured) => Some(row(one.name.as_str(), measured)),
            Outcome::Skipped { .. } => None,
        });
    let table = Table::new("verifiers", "", columns).rows(rows);
    terminal::table(&mut out, &table, width, "  ");
    for one in &evaluation.verifiers {
        let lines = match &one.outcome {
            Outcome::Measured(measured) => remarks(measured),
            Outcome::Skipped { reason } if evaluation.unmet.contains(&one.name) => {
                vec![format!(
                    "EXPECTATION FAILS: the file expects a rate, but {reason}"
                )]
            }
            Outcome::Skipped { .. } => Vec::new(),
        };
        for line in lines {
            let _ = wrap(&mut out, &format!("{}: {line}", one.name), width);
        }
    }
    let mut other_drafts = Vec::new();
    for one in &evaluation.verifiers {
        match &one.outcome {
            Outcome::Skipped {
                reason: VerifierError::Scheme { .. },
            } => other_drafts.push(format!("{} ({})", one.name, one.name.draft_schemes())),
            Outcome::Skipped { reason } => {
                let _ = wrap(&mut out, &format!("skipped {}: {reason}", one.name), width);
            }
            Outcome::Measured(_) => {}
        }
    }
    if !other_drafts.is_empty() {
        let list = other_drafts.join(", ");
        let line = format!("skipped, lossless only for other drafts: {list}");
        let _ = wrap(&mut out, &line, width);
    }
    out
}

/// What the table has no room for.
fn remarks(measured: &Measured) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(note) = &measured.note {
        lines.push(note.clone());
    }
    let rate = &measured.membership;
    if let Some(Sampling {
        confidence,
        samples,
        seed,
    }) = rate.sampling()
    {
        lines.push(format!(
            "Monte Carlo, {}, seed {seed}: in [{}, {}] with confidence {confidence}",
            counted(usize::try_from(*samples).unwrap_or(usize::MAX), "run"),
            rate.lower(),
            rate.upper()
        ));
    }
    match &measured.total_variation {
        Err(reason) => lines.push(format!("TV not summed: {reason}")),
        Ok(variation) if measured.lossless == Some(false) => lines.push(format!(
            "NOT LOSSLESS: TV {:e}, worst token {} by {:+e}",
            variation.value,
            variation
                .worst_token
                .map_or_else(|| "none".to_owned(), |token| token.to_string()),
            variation.worst_difference
        )),
        Ok(_) => {}
    }
    if measured.exceeds_optimum {
        lines.push("EXCEEDS alpha*, which no lossless verifier can".to_owned());
    }
    if measured.formula_agrees == Some(false) {
        lines.push(format!(
            "DISAGREES with its formula: {} and {}",
            measured.formula.0.value(),
            measured.formula.1.value()
        ));
    }
    if let Some(check) = measured.expected.as_ref().filter(|check| !check.ok) {
        let within = if check.tolerance == 0.0 {
            "exactly".to_owned()
        } else {
            format!("within {:e}", check.tolerance)
        };
        lines.push(format!(
            "EXPECTATION FAILS: the file says {} {within}; the difference is {:e}",
            check.value, check.difference
        ));
    }
    lines
}

fn row(name: &str, measured: &Measured) -> Row {
    let rate = |rate: &Known| format!("{:.12}", rate.value());
    let variation = measured.total_variation.as_ref();
    let lossless = match measured.lossless {
        None => "-",
        Some(false) => "NO",
        Some(true) if variation.is_ok_and(|v| v.exact.is_some()) => "yes, exact",
        Some(true) => "yes",
    };
    Row::texts([
        name.to_owned(),
        rate(&measured.algorithmic),
        rate(&measured.membership),
        measured
            .gap
            .as_ref()
            .map_or_else(|| "-".to_owned(), |gap| small(gap.value(), 3)),
        variation.map_or_else(|_| "-".to_owned(), |v| small(v.value, 3)),
        lossless.to_owned(),
        measured.membership.kind().to_string(),
    ])
}
