//! All rates of one position.

use super::metric::{Metric, Place};
use super::{GapError, Settings};
use crate::distribution::{Draft, Softmax, Target, compensated_sum};
use crate::log::{Log, Row, RowKind};
use crate::optimum::bucket_scan;
use crate::optimum::bucket_scan::BucketScan;
use crate::plan::{PlanSettings, Rising, TokenPlan, measure};
use crate::scheme::SchemeName;
use crate::verifier::{Rate, RowRates, RrsWoSettings, VerifierName};
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

impl From<Rate> for Value {
    fn from(rate: Rate) -> Self {
        Self {
            value: rate.value(),
            width: rate.width(),
            monte_carlo: rate.kind() == "monte-carlo",
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

/// What the rate of `rrs-wo` may cost at one position, in a mean over many: each further
/// digit of the enclosure takes several times as long, and so does each further draft;
/// above four drafts its rate is a mean over rejected paths.
fn rrs_wo_budget(drafts: usize, seed: u64) -> RrsWoSettings {
    let plain = RrsWoSettings::default();
    let (width, work_limit) = match drafts {
        ..=3 => (1e-5, plain.work_limit),
        4 => (5e-4, plain.work_limit),
        _ => (plain.width, 0),
    };
    RrsWoSettings {
        width,
        work_limit,
        samples: 5_000,
        seed,
        ..plain
    }
}

/// Rounding of the integral that measures a plan's acceptance.
const PLAN_INTEGRAL_ERROR: f64 = 1e-12;

/// What plans are solved from: the rows, and the tokens of q > 0 by rising p/q.
struct Rows {
    p: Target,
    q: Draft,
    rising: Rising,
}

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
        let mut rows = None;
        // What sequential draws take for many drafts serves fewer.
        for &drafts in settings.drafts.iter().rev() {
            let place = Place {
                temperature,
                drafts,
            };
            for scheme in settings.optima(drafts) {
                let scanned = |rate: crate::enclosure::Enclosure| {
                    Value::between(rate.value, rate.lower, rate.upper)
                };
                let value = match scheme {
                    SchemeName::WithReplacement => scanned(
                        row_rates
                            .position()
                            .with_replacement(drafts)
                            .map_err(|error| refused(error.to_string()))?
                            .rate,
                    ),
                    SchemeName::DistinctConditioned => scanned(
                        row_rates
                            .position()
                            .distinct_conditioned(drafts)
                            .map_err(|error| refused(error.to_string()))?
                            .rate,
                    ),
                    SchemeName::WithoutReplacement => {
                        let rate = row_rates
                            .position()
                            .without_replacement(drafts)
                            .map_err(|error| refused(error.to_string()))?
                            .rate;
                        // The value of the best prefix, and how well it is
                        // known; the proven lower bound is far below.
                        Value::between(rate.value, rate.value, rate.upper)
                    }
                    _ => row_rates.optimum_with_fixed(drafts - 1).into(),
                };
                rates.insert(Metric::Optimum { place, scheme }, value);
            }
            for (scheme, name) in settings.rules(drafts) {
                if name == VerifierName::Optimal {
                    let Rows { p, q, rising } = match &mut rows {
                        Some(rows) => rows,
                        none => {
                            let p = Target::new(target)
                                .map_err(|error| refused(format!("target: {error}")))?;
                            let q = Draft::new(draft)
                                .map_err(|error| refused(format!("draft: {error}")))?;
                            let order = row_rates.position().order(bucket_scan::Rows {
                                target: p.probabilities(),
                                draft: q.probabilities(),
                            });
                            let rising = Rising::in_order(&p, &q, &order);
                            none.insert(Rows { p, q, rising })
                        }
                    };
                    let settings = PlanSettings::default();
                    let measured = measure(p, q, || {
                        if scheme == SchemeName::WithReplacement {
                            TokenPlan::iid_in_order(p, q, rising, drafts, &settings)
                        } else {
                            let subset = bucket_scan::sequential_subset(p, q, drafts)
                                .map_err(|error| refused(error.to_string()))?;
                            TokenPlan::sequential(p, q, drafts, subset, &settings)
                        }
                        .map_err(|error| refused(error.to_string()))
                    })?;
                    let plain = |value| Value::between(value, value, value);
                    let rule = (scheme, name);
                    // The law is p but for this error, and so is what it accepts.
                    let error = measured.law_l1_error + PLAN_INTEGRAL_ERROR;
                    let rate = measured.acceptance_rate;
                    if scheme == SchemeName::WithoutReplacement {
                        let best = &measured.optimum;
                        let proved = Value::between(best.value, best.lower, best.upper);
                        rates.insert(Metric::Optimum { place, scheme }, proved);
                    }
                    let steps = measured.iterations as f64;
                    rates.extend([
                        (
                            Metric::Acceptance { place, rule },
                            Value::between(rate, rate - error, rate + error),
                        ),
                        (
                            Metric::PlanError { place, rule },
                            plain(measured.law_l1_error),
                        ),
                        (Metric::PlanSteps { place, rule }, plain(steps)),
                        (Metric::PlanSeconds { place, rule }, plain(measured.seconds)),
                    ]);
                    continue;
                }
                let rate = match (scheme, name) {
                    (SchemeName::WithReplacement, VerifierName::Rrs) => row_rates.rrs(drafts),
                    (SchemeName::WithReplacement, VerifierName::KSeq) => row_rates.k_seq(drafts),
                    (SchemeName::WithoutReplacement, VerifierName::RrsWo) => {
                        let seed = settings.seed ^ (number as u64).wrapping_mul(SEED_STRIDE);
                        row_rates.rrs_wo(drafts, &rrs_wo_budget(drafts, seed))
                    }
                    (SchemeName::Greedy, VerifierName::Greedy) => row_rates.greedy(drafts),
                    (SchemeName::Hub, VerifierName::SpecHub) => row_rates.spechub(),
                    (SchemeName::WithReplacement, VerifierName::Naive) => row_rates.naive(drafts),
                    (SchemeName::WithoutReplacement, VerifierName::Naive) => {
                        row_rates.naive_sequential(drafts)
                    }
                    _ => {
                        return Err(refused(format!(
                            "internal error: no rate of {name} on {drafts} {scheme} drafts"
                        )));
                    }
                };
                let rule = (scheme, name);
                rates.insert(Metric::Acceptance { place, rule }, rate.into());
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
                Ok(optimum(SchemeName::DistinctConditioned)?
                    .minus(optimum(SchemeName::WithoutReplacement)?))
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
