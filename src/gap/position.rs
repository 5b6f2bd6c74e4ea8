//! All rates of one position.

use super::metric::{Metric, Place};
use super::{GapError, Settings};
use crate::distribution::{Softmax, compensated_sum};
use crate::known::{Kind, Known};
use crate::log::{Log, Row, RowKind};
use crate::optimum::bucket_scan;
use crate::optimum::bucket_scan::BucketScan;
use crate::scheme::SchemeName;
use crate::verifier::{RowQuestion, RowRates};
use std::collections::HashMap;

/// A number with the width of its enclosure.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Value {
    pub value: f64,
    pub width: f64,
    pub monte_carlo: bool,
}

impl Value {
    fn between(value: f64, lower: f64, upper: f64) -> Self {
        Self {
            value,
            width: upper - lower,
            monte_carlo: false,
        }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            value: self.value - other.value,
            width: self.width + other.width,
            monte_carlo: self.monte_carlo || other.monte_carlo,
        }
    }
}

impl From<Known> for Value {
    fn from(rate: Known) -> Self {
        Self {
            value: rate.value(),
            width: rate.width(),
            monte_carlo: rate.kind() == Kind::MonteCarlo,
        }
    }
}

/// Room for one position at a time; one a thread.
#[derive(Debug, Default)]
pub(super) struct Workspace {
    pub row: Row,
    logits: Vec<f64>,
    target: Vec<f64>,
    draft: Vec<f64>,
    scan: BucketScan,
    rates: HashMap<Metric, Value>,
    /// ln of q/p at the sampled token, if asked for.
    pub log_ratio: Option<f64>,
}

/// Differences up to this are those of rounding.
const ROUNDING: f64 = 4e-12;
/// Seeds of neighbouring positions are this far apart.
const SEED_STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;

/// Computes every metric of the position in `workspace.row`.
pub(super) fn evaluate(
    log: &Log,
    number: usize,
    settings: &Settings,
    metrics: &[Metric],
    rest_columns: &[Option<usize>],
    sampled_at: Option<usize>,
    workspace: &mut Workspace,
) -> Result<Vec<Value>, GapError> {
    let refused = |message: String| GapError::Position {
        log: log.path().to_owned(),
        position: number,
        message,
    };
    let Workspace {
        row,
        logits,
        target,
        draft,
        scan,
        rates,
        log_ratio,
    } = workspace;
    rates.clear();
    *log_ratio = None;
    let listed = row.target.len();
    if let Some(&most) = settings.drafts.iter().max().filter(|&&n| n > listed) {
        return Err(refused(format!(
            "lists {listed} tokens, fewer than the {most} distinct drafts that --drafts asks for"
        )));
    }
    for (column, (&target, &draft)) in row.target_rest.iter().zip(&row.draft_rest).enumerate() {
        let plain = |value| Value::between(value, value, value);
        rates.insert(Metric::TargetRest { column }, plain(target));
        rates.insert(Metric::DraftRest { column }, plain(draft));
    }
    for (temperature, &degrees) in settings.temperatures.iter().enumerate() {
        let rule = Softmax {
            temperature: degrees / log.metadata().temperature_applied,
            ..Softmax::default()
        };
        probabilities(&row.target, row.target_kind, &rule, logits, target)
            .map_err(|error| refused(format!("target: {error}")))?;
        probabilities(&row.draft, row.draft_kind, &rule, logits, draft)
            .map_err(|error| refused(format!("draft: {error}")))?;
        if let Some(column) = rest_columns.get(temperature).copied().flatten() {
            add_rest(target, row.target_rest.get(column).copied().unwrap_or(0.0));
            add_rest(draft, row.draft_rest.get(column).copied().unwrap_or(0.0));
        }
        if sampled_at == Some(temperature) {
            *log_ratio = sampled_ratio(row, target, draft);
        }
        let most = settings.drafts.iter().copied().max().unwrap_or(1);
        let at = scan
            .load(bucket_scan::Rows { target, draft }, most)
            .map_err(|error| refused(error.to_string()))?;
        let mut row_rates = RowRates::new(at);
        // One draft is accepted with the overlap, however it is verified.
        rates.insert(Metric::Overlap { temperature }, row_rates.rrs(1).into());
        // What sequential draws take for many drafts serves fewer.
        for &drafts in settings.drafts.iter().rev() {
            let place = Place {
                temperature,
                drafts,
            };
            for scheme in settings.optima(drafts) {
                let optimum = row_rates
                    .optimum(scheme, drafts)
                    .map_err(|error| refused(error.to_string()))?;
                rates.insert(Metric::Optimum { place, scheme }, optimum.into());
            }
            for (rule, answers) in settings.rules(drafts) {
                let (scheme, _) = rule;
                let question = RowQuestion {
                    scheme,
                    drafts,
                    seed: settings.seed ^ (number as u64).wrapping_mul(SEED_STRIDE),
                };
                let answer = (answers.answer)(&mut row_rates, question)
                    .map_err(|error| refused(error.to_string()))?;
                rates.insert(Metric::Acceptance { place, rule }, answer.rate.into());
                if let Some(plan) = answer.plan {
                    let plain = |value| Value::between(value, value, value);
                    let steps = plan.iterations as f64;
                    rates.extend([
                        (Metric::PlanError { place, rule }, plain(plan.law_l1_error)),
                        (Metric::PlanSteps { place, rule }, plain(steps)),
                        (Metric::PlanSeconds { place, rule }, plain(plan.seconds)),
                    ]);
                }
            }
        }
    }
    let rate = |metric: Metric| {
        rates
            .get(&metric)
            .copied()
            .ok_or_else(|| refused(format!("internal error: {metric:?} was not computed")))
    };
    metrics
        .iter()
        .map(|&metric| match metric {
            Metric::Gap { place, rule } => {
                let scheme = rule.0;
                let mut gap = rate(Metric::Optimum { place, scheme })?
                    .minus(rate(Metric::Acceptance { place, rule })?);
                // Two roads to one number differ by rounding; that is no gap.
                if gap.value.abs() <= ROUNDING {
                    gap.value = 0.0;
                }
                Ok(gap)
            }
            Metric::Difference {
                place,
                first,
                second,
            } => Ok(rate(Metric::Acceptance { place, rule: first })?.minus(rate(
                Metric::Acceptance {
                    place,
                    rule: second,
                },
            )?)),
            Metric::FormulaError { place } => {
                let optimum = |scheme| rate(Metric::Optimum { place, scheme });
                Ok(optimum(SchemeName::DISTINCT_CONDITIONED)?
                    .minus(optimum(SchemeName::WITHOUT_REPLACEMENT)?))
            }
            metric => rate(metric),
        })
        .collect()
}

/// A logged row as probabilities at a temperature.
fn probabilities(
    row: &[f64],
    kind: RowKind,
    rule: &Softmax,
    logits: &mut Vec<f64>,
    out: &mut Vec<f64>,
) -> Result<(), crate::distribution::DistributionError> {
    if kind != RowKind::Probabilities {
        return rule.fill(row, out);
    }
    if rule.temperature == 1.0 {
        // As they are, but for what their type rounded.
        let total = compensated_sum(row.iter().copied());
        out.clear();
        out.extend(row.iter().map(|x| x / total));
        return Ok(());
    }
    logits.clear();
    logits.extend(row.iter().map(|x| x.ln()));
    rule.fill(logits, out)
}

/// Entries that stand for all tokens that a top-heavy row does not list.
///
/// They share the rest's mass evenly, in both rows. What lies in the rest is at
/// most the target's rest mass, whatever is accepted of it; on listed tokens
/// nothing changes. So alpha* with replacement is within that mass of the full
/// rows': couplings of either pair carry over on the listed tokens. One entry
/// would do for that; several keep two drafts from the rest from being one token.
const REST_ENTRIES: usize = 64;

/// Scales a row of listed tokens to their mass and adds the rest.
fn add_rest(row: &mut Vec<f64>, rest: f64) {
    for x in row.iter_mut() {
        *x *= 1.0 - rest;
    }
    row.extend(std::iter::repeat_n(
        rest / REST_ENTRIES as f64,
        REST_ENTRIES,
    ));
}

/// ln q/p at the sampled token; `None` if it is unknown or not listed.
fn sampled_ratio(row: &Row, target: &[f64], draft: &[f64]) -> Option<f64> {
    let token = u32::try_from(row.token?).ok()?;
    let place = if row.token_ids.is_empty() {
        token as usize
    } else {
        row.token_ids.iter().position(|&id| id == token)?
    };
    let (p, q) = (*target.get(place)?, *draft.get(place)?);
    (p > 0.0).then(|| q.ln() - p.ln())
}
