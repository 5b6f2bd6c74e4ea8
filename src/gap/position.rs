//! All numbers of one position.

use super::metric::{Metric, Place, Temperature};
use super::settings::Asked;
use super::truncation;
use super::{GapError, Settings};
use crate::distribution::{Softmax, compensated_sum};
use crate::known::{Kind, Known};
use crate::log::{Log, Row, RowKind};
use crate::row::{CutWorkspace, Rows, Workspace as RowWorkspace, complete_evenly};
use crate::scheme::SchemeName;
use std::collections::BTreeMap;

/// A number, between bounds on its rounding.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Value {
    pub value: f64,
    pub lower: f64,
    pub upper: f64,
    /// A mean over random draws, whose bounds are those of an interval.
    pub monte_carlo: bool,
    /// Where the row lists some tokens only: bounds that hold the full row's number.
    pub truncation: Option<[f64; 2]>,
}

impl Value {
    pub(super) fn between(value: f64, lower: f64, upper: f64) -> Self {
        Self {
            value,
            lower,
            upper,
            monte_carlo: false,
            truncation: None,
        }
    }

    fn plain(value: f64) -> Self {
        Self::between(value, value, value)
    }

    fn minus(self, other: Self) -> Self {
        let truncation = (self.truncation.is_some() || other.truncation.is_some()).then(|| {
            let ([low, high], [other_low, other_high]) = (self.bounds(), other.bounds());
            [low - other_high, high - other_low]
        });
        Self {
            value: self.value - other.value,
            lower: self.lower - other.upper,
            upper: self.upper - other.lower,
            monte_carlo: self.monte_carlo || other.monte_carlo,
            truncation,
        }
    }

    pub(super) fn width(&self) -> f64 {
        self.upper - self.lower
    }

    /// Where the number of the full row is.
    pub(super) fn bounds(&self) -> [f64; 2] {
        self.truncation.unwrap_or([self.lower, self.upper])
    }

    fn is_finite(&self) -> bool {
        let [lower, upper] = self.bounds();
        [self.value, self.lower, self.upper, lower, upper]
            .into_iter()
            .all(f64::is_finite)
    }
}

impl From<Known> for Value {
    fn from(rate: Known) -> Self {
        Self {
            monte_carlo: rate.kind() == Kind::MonteCarlo,
            ..Self::between(rate.value(), rate.lower(), rate.upper())
        }
    }
}

/// What a position answers, by what it is about.
pub(super) type Answers = BTreeMap<Metric, Value>;

/// Room for one position at a time; one a thread.
#[derive(Debug, Default)]
pub(super) struct Workspace {
    pub row: Row,
    logits: Vec<f64>,
    pair: Pair,
    pub answers: Answers,
    /// ln of q/p at the sampled token, if asked for.
    pub log_ratio: Option<f64>,
}

/// What is the same for all positions of a log.
#[derive(Debug)]
pub(super) struct Task<'a> {
    pub log: &'a Log,
    pub settings: &'a Settings,
    /// What is asked of each number of drafts.
    pub asked: Vec<Asked>,
    /// For each temperature, the column of the log's rest mass at it, if the log gives any.
    pub rest_columns: Vec<Option<usize>>,
    /// The temperature at which the log's tokens were drawn from the whole target.
    pub sampled_at: Option<f64>,
}

/// Differences up to this are those of rounding.
const ROUNDING: f64 = 4e-12;
/// Seeds of neighbouring positions are this far apart.
const SEED_STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;

/// Answers everything that is asked of the position in `workspace.row`.
pub(super) fn evaluate(
    task: &Task<'_>,
    number: usize,
    workspace: &mut Workspace,
) -> Result<(), GapError> {
    let refused = |message: String| GapError::Position {
        log: task.log.path().to_owned(),
        position: number,
        message,
    };
    let listed = workspace.row.target.len();
    if let Some(&most) = (task.settings.drafts.iter().max()).filter(|&&n| n > listed) {
        return Err(refused(format!(
            "lists {listed} tokens, fewer than the {most} distinct drafts that --drafts asks for"
        )));
    }
    workspace.answers.clear();
    workspace.log_ratio = None;
    for at in 0..task.settings.temperatures.len() {
        at_temperature(task, number, at, workspace).map_err(refused)?;
    }
    match workspace
        .answers
        .iter()
        .find(|(_, value)| !value.is_finite())
    {
        Some((metric, value)) => Err(refused(format!(
            "internal error: {metric:?} is {value:?}; please report this as a bug"
        ))),
        None => Ok(()),
    }
}

/// All answers at one of the settings' temperatures.
fn at_temperature(
    task: &Task<'_>,
    number: usize,
    at: usize,
    workspace: &mut Workspace,
) -> Result<(), String> {
    let Some(&degrees) = task.settings.temperatures.get(at) else {
        return Ok(());
    };
    let Workspace {
        row,
        logits,
        pair,
        answers,
        log_ratio,
    } = workspace;
    let rule = Softmax {
        temperature: degrees / task.log.metadata().temperature_applied,
        ..Softmax::default()
    };
    probabilities(
        &row.target,
        row.target_kind,
        &rule,
        logits,
        &mut pair.target,
    )
    .map_err(|error| format!("target: {error}"))?;
    probabilities(&row.draft, row.draft_kind, &rule, logits, &mut pair.draft)
        .map_err(|error| format!("draft: {error}"))?;
    let rest = task.rest_columns.get(at).copied().flatten().map(|column| {
        let rest = |rests: &[f64]| rests.get(column).copied().unwrap_or(0.0);
        [rest(&row.target_rest), rest(&row.draft_rest)]
    });
    if let Some([target, draft]) = rest {
        scale(&mut pair.target, 1.0 - target);
        scale(&mut pair.draft, 1.0 - draft);
    }
    if task.sampled_at == Some(degrees) {
        *log_ratio = sampled_ratio(row, &pair.target, &pair.draft);
    }
    let seed = task.settings.seed ^ (number as u64).wrapping_mul(SEED_STRIDE);
    pair.answer(&task.asked, Temperature(degrees), rest, seed, answers)
}

/// Listed tokens' p and q at one temperature, and room for what is asked of them.
#[derive(Debug, Default)]
pub(super) struct Pair {
    pub target: Vec<f64>,
    pub draft: Vec<f64>,
    pub workspace: RowWorkspace,
    pub cut_workspace: CutWorkspace,
}

impl Pair {
    /// Answers everything that is asked of these rows, which list all tokens or all but
    /// some with the masses `rest`.
    pub(super) fn answer(
        &mut self,
        asked: &[Asked],
        temperature: Temperature,
        rest: Option<[f64; 2]>,
        seed: u64,
        answers: &mut Answers,
    ) -> Result<(), String> {
        let Self {
            target,
            draft,
            workspace,
            cut_workspace,
        } = self;
        let most = asked.iter().map(|one| one.drafts).max().unwrap_or(1);
        let mut cut = None;
        if let Some(rest) = rest {
            let rows = Rows { target, draft };
            cut = (cut_workspace.load(rows, rest, most)).map_err(|error| error.to_string())?;
            complete_evenly(target, rest[0]);
            complete_evenly(draft, rest[1]);
        }
        let rows = Rows { target, draft };
        let mut row = workspace
            .load(rows, most)
            .map_err(|error| error.to_string())?;
        // One draft is accepted with the overlap, however it is verified.
        answers.insert(Metric::Overlap { temperature }, row.overlap().into());
        // What sequential draws take for many drafts serves fewer.
        for one in asked.iter().rev() {
            let drafts = one.drafts;
            let place = Place {
                temperature,
                drafts,
            };
            for &(scheme, optimum) in &one.optima {
                let best = (optimum.full)(&mut row, drafts).map_err(|error| error.to_string())?;
                answers.insert(Metric::Optimum { place, scheme }, best.into());
            }
            for &(rule, computed) in &one.rules {
                let answer = computed
                    .answer(&mut row, drafts, seed)
                    .map_err(|error| error.to_string())?;
                answers.insert(Metric::Acceptance { place, rule }, answer.rate.into());
                if let Some(plan) = answer.plan {
                    let steps = plan.iterations as f64;
                    for (metric, value) in [
                        (Metric::PlanError { place, rule }, plan.law_l1_error),
                        (Metric::PlanSteps { place, rule }, steps),
                        (Metric::PlanSeconds { place, rule }, plan.seconds),
                    ] {
                        answers.insert(metric, Value::plain(value));
                    }
                }
            }
        }
        if let Some(cut) = &mut cut {
            truncation::bound(cut, asked, temperature, &mut row, answers)?;
        }
        for one in asked {
            let place = Place {
                temperature,
                drafts: one.drafts,
            };
            differences(one, place, answers)?;
        }
        Ok(())
    }
}

/// What follows from optima and acceptances: gaps and paired differences.
fn differences(asked: &Asked, place: Place, answers: &mut Answers) -> Result<(), String> {
    let find = |answers: &Answers, metric: Metric| {
        answers
            .get(&metric)
            .copied()
            .ok_or_else(|| format!("internal error: {metric:?} was not computed"))
    };
    for &(rule, _) in &asked.rules {
        let scheme = rule.0;
        let best = find(answers, Metric::Optimum { place, scheme })?;
        let mut gap = best.minus(find(answers, Metric::Acceptance { place, rule })?);
        // Two roads to one number differ by rounding; that is no gap.
        if gap.value.abs() <= ROUNDING {
            gap.value = 0.0;
        }
        if let Some([low, high]) = gap.truncation {
            gap.truncation = Some(if (rule.1.entry().attains)(rule.0) {
                [gap.lower.min(gap.value), gap.upper.max(gap.value)]
            } else {
                // No lossless verifier accepts more than alpha*, on full rows neither.
                [low.max(0.0).min(gap.value), high.max(gap.value)]
            });
        }
        answers.insert(Metric::Gap { place, rule }, gap);
    }
    for &(first, second) in &asked.pairs {
        let of = |rule| find(answers, Metric::Acceptance { place, rule });
        let difference = of(first)?.minus(of(second)?);
        let metric = Metric::Difference {
            place,
            first,
            second,
        };
        answers.insert(metric, difference);
    }
    let known = |scheme| answers.get(&Metric::Optimum { place, scheme }).copied();
    if let (Some(published), Some(sequential)) = (
        known(SchemeName::DISTINCT_CONDITIONED),
        known(SchemeName::WITHOUT_REPLACEMENT),
    ) {
        answers.insert(Metric::FormulaError { place }, published.minus(sequential));
    }
    Ok(())
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

/// Scales a row of listed tokens to their mass.
fn scale(row: &mut [f64], mass: f64) {
    for x in row.iter_mut() {
        *x *= mass;
    }
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
