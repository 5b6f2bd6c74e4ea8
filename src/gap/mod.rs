//! The gap of every verifier to its optimum, over logged rows.
//!
//! At every position of a [`Log`], for every temperature and
//! number of drafts, [`measure`] computes
//!
//! - `alpha*` of each draft scheme, the most that any lossless verifier accepts:
//!   for `with-replacement`, `without-replacement` and `distinct-conditioned` by
//!   the ratio scan, for `greedy` and `hub` in closed form by their cut;
//! - the acceptance of each verifier that is lossless under the scheme, and its
//!   gap `alpha* - acceptance`;
//! - the overlap `sum of min(p, q)`.
//!
//! Positions are worked on in parallel and summed up in their order, so that a
//! report is the same to the bit whatever the number of threads. Memory grows
//! with the vocabulary and the number of prompts, not with that of positions.
//!
//! # Statistics
//! Positions of one prompt resemble one another. Means are therefore ratios of
//! sums over prompts, with the linearised variance of a ratio and Student's t
//! with one degree of freedom less than there are prompts. P-values of gaps and
//! of differences are of the paired test: both sides at the same positions.

mod coverage;
mod data;
mod metric;
mod position;
mod sequence;
mod statistics;

pub use data::{
    BlockEstimate, Cell, Comparison, Estimate, FormulaError, Gap, GapReport, HISTOGRAM_EDGES,
    LogSummary, Optimum, OverlapRow, PlanRow, RestMass, SCHEMA, Strip, StripText, StripToken,
    VerifierRow,
};

use crate::distribution::DistributionError;
use crate::log::{Log, LogError, Span};
use crate::optimum::bucket_scan::MAX_DRAFTS;
#[cfg(doc)]
use crate::plan::MOST_SEQUENTIAL_DRAFTS;
use crate::scheme::SchemeName;
use crate::verifier::{RowRule, VerifierName};
use metric::{Metric, Place, Rule, metrics, plans, rules, schemes};
use position::{Value, Workspace, evaluate};
use rayon::prelude::*;
use sequence::Sequences;
use statistics::{Tally, holm};
use std::collections::BTreeMap;
use std::collections::HashMap;
use std::path::PathBuf;

/// Positions that one task takes; part of the result's definition only in that
/// sums are formed in this order.
const SPAN: usize = 8;
/// Texts of the strip, and tokens of each.
const STRIP_TEXTS: usize = 6;
const STRIP_TOKENS: usize = 64;

/// What to measure.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Applied to target and draft alike.
    pub temperatures: Vec<f64>,
    /// Numbers of drafts n, 1..=64.
    pub drafts: Vec<usize>,
    /// Schemes whose optima are measured; all of [`Settings::schemes`] at first.
    pub schemes: Vec<SchemeName>,
    /// Verifiers that are measured, under every scheme above for which they are
    /// lossless; those of [`Settings::verifiers`] at first. `optimal` takes most of the time of a full vocabulary.
    pub verifiers: Vec<VerifierName>,
    /// Whether the optimal plans of sequential draws are solved too, for up to
    /// [`MOST_SEQUENTIAL_DRAFTS`] drafts, which takes longer than everything else together.
    pub sequential_plans: bool,
    /// L of the bounds on blocks.
    pub block_length: usize,
    /// Seed of whatever is random.
    pub seed: u64,
    /// Whether times go into the report, which then differs from run to run.
    pub timing: bool,
}

impl Settings {
    /// Schemes that have an optimum in a report.
    pub fn schemes() -> Vec<SchemeName> {
        schemes().collect()
    }

    /// Verifiers that a report measures where none are named.
    pub fn verifiers() -> Vec<VerifierName> {
        VerifierName::ALL
            .into_iter()
            .filter(|name| name.entry().by_default)
            .collect()
    }

    /// Checks and sorts temperatures and drafts.
    ///
    /// # Errors
    /// No temperatures or drafts, or any out of range.
    ///
    /// # Example
    /// ```
    /// use specgap::gap::Settings;
    /// let settings = Settings::new(&[1.0, 0.7, 1.0], &[3, 2], 0)?;
    /// assert_eq!(settings.temperatures, [0.7, 1.0]);
    /// assert_eq!(settings.drafts, [2, 3]);
    /// assert!(Settings::new(&[0.0], &[2], 0).is_err());
    /// # Ok::<(), specgap::gap::GapError>(())
    /// ```
    pub fn new(temperatures: &[f64], drafts: &[usize], seed: u64) -> Result<Self, GapError> {
        let refused = |message: String| Err(GapError::Settings(message));
        if temperatures.is_empty() || drafts.is_empty() {
            return refused("at least one temperature and one number of drafts are needed".into());
        }
        if let Some(t) = temperatures.iter().find(|t| !(t.is_finite() && **t > 0.0)) {
            return refused(format!(
                "temperature {t} is out of range; temperatures are finite and above 0"
            ));
        }
        if let Some(n) = drafts.iter().find(|&&n| n == 0 || n > MAX_DRAFTS) {
            return refused(format!(
                "{n} drafts are out of range; there are 1 to {MAX_DRAFTS}"
            ));
        }
        let mut temperatures = temperatures.to_vec();
        temperatures.sort_by(f64::total_cmp);
        temperatures.dedup();
        let mut drafts = drafts.to_vec();
        drafts.sort_unstable();
        drafts.dedup();
        Ok(Self {
            temperatures,
            drafts,
            schemes: Self::schemes(),
            verifiers: Self::verifiers(),
            sequential_plans: false,
            block_length: 5,
            seed,
            timing: false,
        })
    }

    /// The verifiers that are run for n drafts.
    fn rules(&self, drafts: usize) -> impl Iterator<Item = (Rule, RowRule)> + '_ {
        rules().filter(move |&((scheme, name), rule)| {
            let affordable = rule.slow.is_none() || self.sequential_plans;
            self.asks_for((scheme, name))
                && scheme.fits(drafts)
                && name.is_lossless(scheme, drafts)
                && drafts <= rule.most
                && affordable
        })
    }

    fn asks_for(&self, (scheme, name): Rule) -> bool {
        self.schemes.contains(&scheme) && self.verifiers.contains(&name)
    }

    /// The schemes whose optima are measured for n drafts.
    fn optima(&self, drafts: usize) -> impl Iterator<Item = SchemeName> + '_ {
        schemes().filter(move |scheme| self.schemes.contains(scheme) && scheme.fits(drafts))
    }

    fn has(&self, drafts: usize, rule: Rule) -> bool {
        self.rules(drafts).any(|(known, _)| known == rule)
    }
}

/// Why a gap report cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GapError {
    /// A log is refused.
    #[error(transparent)]
    Log(#[from] LogError),
    /// Settings are out of range.
    #[error("{0}")]
    Settings(String),
    /// A position cannot be measured.
    #[error("{log}: position {position}: {message}")]
    Position {
        /// The log.
        log: PathBuf,
        /// The position's number in it, from 0.
        position: usize,
        /// What is wrong.
        message: String,
    },
    /// A distribution is refused.
    #[error(transparent)]
    Distribution(#[from] DistributionError),
}

/// What one position yields.
struct Measured {
    cluster: Option<i64>,
    position: Option<i64>,
    token: Option<i64>,
    values: Vec<Value>,
    log_ratio: Option<f64>,
}

/// Measures all positions of some logs. `command` goes into the report, and
/// `progress` is told of positions as they are done.
///
/// # Errors
/// Logs whose rows are refused (file, tensor, row and column are named),
/// rows that list fewer tokens than there are distinct drafts, and settings that leave
/// nothing to measure.
pub fn measure(
    logs: &[Log],
    settings: &Settings,
    command: &str,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<GapReport, GapError> {
    if logs.is_empty() {
        return Err(GapError::Settings("name at least one log".to_owned()));
    }
    let mut left_out = coverage::left_out(settings)?;
    let rest = &logs[0].metadata().rest_temperatures;
    let same_rest = logs
        .iter()
        .all(|log| log.metadata().rest_temperatures == *rest);
    let all = metrics(settings, if same_rest { rest.len() } else { 0 });
    let mut tallies: Vec<Tally> = all.iter().map(|_| Tally::new()).collect();
    let mut monte_carlo = vec![false; all.len()];
    let mut clusters: HashMap<(usize, i64), usize> = HashMap::new();
    let by_prompt = logs.iter().all(Log::has_prompts);
    // Text that was sampled at each of the temperatures.
    let mut sequences = vec![Sequences::default(); settings.temperatures.len()];
    let mut strip = StripBuilder::new(settings, &all);
    let mut positions = 0;

    for (number, log) in logs.iter().enumerate() {
        let sampled_at = sampled_temperature(log, settings, &mut left_out);
        let rest_columns = rest_columns(log, settings)?;
        // Many tasks a thread, few results held at once.
        let spans = log.spans(SPAN);
        for batch in spans.chunks(rayon::current_num_threads().max(1) * 8) {
            let results: Vec<Result<Vec<Measured>, GapError>> = batch
                .par_iter()
                .map_init(Workspace::default, |workspace, span| {
                    let result = measure_span(
                        log,
                        span,
                        settings,
                        &all,
                        &rest_columns,
                        sampled_at,
                        workspace,
                    );
                    progress(span.positions().len());
                    result
                })
                .collect();
            for result in results {
                for (offset, measured) in result?.into_iter().enumerate() {
                    let own = (positions + offset) as i64;
                    let unit = measured.cluster.filter(|_| by_prompt).unwrap_or(own);
                    let key = (number, unit);
                    let next = clusters.len();
                    let cluster = *clusters.entry(key).or_insert(next);
                    for (index, value) in measured.values.iter().enumerate() {
                        tallies[index].add(cluster, value.value, value.width);
                        monte_carlo[index] |= value.monte_carlo;
                    }
                    if let Some(temperature) = sampled_at {
                        sequences[temperature].add(cluster, measured.position, measured.log_ratio);
                    }
                    strip.add(log, &measured);
                }
                positions = tallies.first().map_or(0, |tally| tally.count() as usize);
            }
        }
    }

    let summary = Summary {
        settings,
        all: &all,
        tallies: &tallies,
        monte_carlo: &monte_carlo,
    };
    let blocks = settings
        .temperatures
        .iter()
        .zip(&sequences)
        .flat_map(|(&temperature, sequences)| {
            sequences.estimates(temperature, settings.block_length, &settings.drafts)
        })
        .collect();
    Ok(GapReport {
        schema: SCHEMA,
        tool: concat!("specgap ", env!("CARGO_PKG_VERSION")).to_owned(),
        command: command.to_owned(),
        seed: settings.seed,
        logs: logs
            .iter()
            .map(|log| log_summary(log, &summary, same_rest))
            .collect(),
        positions,
        clusters: clusters.len(),
        cluster_unit: if by_prompt { "prompt" } else { "position" }.to_owned(),
        definitions: definitions(settings.block_length),
        overlap: summary.overlap(),
        cells: summary.cells(),
        comparisons: summary.comparisons(),
        published_formula: summary.published_formula(),
        plans: summary.plans(),
        blocks,
        strip: strip.finish(),
        left_out,
    })
}

fn measure_span(
    log: &Log,
    span: &Span,
    settings: &Settings,
    all: &[Metric],
    rest_columns: &[Option<usize>],
    sampled_at: Option<usize>,
    workspace: &mut Workspace,
) -> Result<Vec<Measured>, GapError> {
    let chunk = log.chunk(span)?;
    chunk
        .positions()
        .map(|number| {
            chunk.read(number, &mut workspace.row)?;
            let values = evaluate(
                log,
                number,
                settings,
                all,
                rest_columns,
                sampled_at,
                workspace,
            )?;
            Ok(Measured {
                cluster: workspace.row.prompt_id,
                position: workspace.row.position,
                token: workspace.row.token,
                values,
                log_ratio: workspace.log_ratio,
            })
        })
        .collect()
}

/// For each temperature, the column of the log's rest mass at it, if the log
/// gives any.
fn rest_columns(log: &Log, settings: &Settings) -> Result<Vec<Option<usize>>, GapError> {
    let known = &log.metadata().rest_temperatures;
    settings
        .temperatures
        .iter()
        .map(|&temperature| {
            if known.is_empty() {
                return Ok(None);
            }
            let column = known.iter().position(|&t| t == temperature);
            column.map(Some).ok_or_else(|| {
                GapError::Settings(format!(
                    "{}: lists the top tokens alone, and the mass of the others at temperatures \
                     {known:?}, not at {temperature}; ask for one of these, or capture with \
                     --rest-temperatures {temperature}",
                    log.path().display()
                ))
            })
        })
        .collect()
}

/// Which of the temperatures the log's tokens were drawn at, without a cut: the
/// one at which bounds on blocks can be estimated from them.
fn sampled_temperature(
    log: &Log,
    settings: &Settings,
    left_out: &mut Vec<String>,
) -> Option<usize> {
    let why = if !log.has_tokens() || !log.has_prompts() {
        "the log has no sampled tokens by prompt".to_owned()
    } else if let Some(sampling) = &log.metadata().sampling {
        if sampling.top_k.is_some() || sampling.top_p.is_some() {
            "the tokens were not drawn from the whole target".to_owned()
        } else if let Some(found) = settings
            .temperatures
            .iter()
            .position(|&t| t == sampling.temperature)
        {
            return Some(found);
        } else {
            format!(
                "the tokens were drawn at temperature {}, which is not asked for",
                sampling.temperature
            )
        }
    } else {
        "the log does not say how its tokens were drawn".to_owned()
    };
    left_out.push(format!("bounds on blocks: {why}"));
    None
}

struct Summary<'a> {
    settings: &'a Settings,
    all: &'a [Metric],
    tallies: &'a [Tally],
    monte_carlo: &'a [bool],
}

impl Summary<'_> {
    fn find(&self, metric: Metric) -> Option<(&Tally, bool)> {
        let index = self.all.iter().position(|&m| m == metric)?;
        Some((self.tallies.get(index)?, *self.monte_carlo.get(index)?))
    }

    fn places(&self) -> impl Iterator<Item = Place> + '_ {
        (0..self.settings.temperatures.len()).flat_map(|temperature| {
            self.settings.drafts.iter().map(move |&drafts| Place {
                temperature,
                drafts,
            })
        })
    }

    fn overlap(&self) -> Vec<OverlapRow> {
        self.settings
            .temperatures
            .iter()
            .enumerate()
            .filter_map(|(index, &temperature)| {
                let (tally, _) = self.find(Metric::Overlap { temperature: index })?;
                Some(OverlapRow {
                    temperature,
                    estimate: tally.estimate().estimate(),
                    kind: "enclosed".to_owned(),
                    width_max: tally.widest(),
                    quantiles: tally.quantiles(),
                })
            })
            .collect()
    }

    fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for place in self.places() {
            for scheme in schemes() {
                let Some((tally, _)) = self.find(Metric::Optimum { place, scheme }) else {
                    continue;
                };
                let status = scheme.entry().on_row.as_ref().map_or("", |row| row.status);
                let verifiers = self
                    .settings
                    .rules(place.drafts)
                    .filter(|(rule, _)| rule.0 == scheme)
                    .filter_map(|(rule, _)| self.verifier(place, rule))
                    .collect();
                cells.push(Cell {
                    temperature: self.settings.temperatures[place.temperature],
                    drafts: place.drafts,
                    scheme: scheme.as_str().to_owned(),
                    optimal_acceptance_rate: Optimum {
                        estimate: tally.estimate().estimate(),
                        kind: "enclosed".to_owned(),
                        width_max: tally.widest(),
                        status: status.to_owned(),
                        quantiles: tally.quantiles(),
                    },
                    verifiers,
                });
            }
        }
        cells
    }

    fn verifier(&self, place: Place, rule: Rule) -> Option<VerifierRow> {
        let (acceptance, monte_carlo) = self.find(Metric::Acceptance { place, rule })?;
        let (gap, _) = self.find(Metric::Gap { place, rule })?;
        Some(VerifierRow {
            name: rule.1.as_str().to_owned(),
            acceptance: acceptance.estimate().estimate(),
            kind: measured_kind(monte_carlo),
            width_max: acceptance.widest(),
            p_value: gap.estimate().p_value(),
            gap: Gap {
                estimate: gap.estimate().estimate(),
                quantiles: gap.quantiles(),
                max: gap.highest(),
                histogram: gap.histogram(),
            },
        })
    }

    fn comparisons(&self) -> Vec<Comparison> {
        let name = |(scheme, verifier): Rule| format!("{}/{}", scheme.as_str(), verifier.as_str());
        let mut rows: Vec<Comparison> = self
            .all
            .iter()
            .zip(self.tallies.iter().zip(self.monte_carlo))
            .filter_map(|(metric, (tally, &monte_carlo))| match *metric {
                Metric::Difference {
                    place,
                    first,
                    second,
                } => Some(Comparison {
                    temperature: self.settings.temperatures[place.temperature],
                    drafts: place.drafts,
                    first: name(first),
                    second: name(second),
                    difference: tally.estimate().estimate(),
                    kind: measured_kind(monte_carlo),
                    width_max: tally.widest(),
                    p_value: tally.estimate().p_value(),
                    p_holm: 1.0,
                }),
                _ => None,
            })
            .collect();
        let p_values: Vec<f64> = rows.iter().map(|row| row.p_value).collect();
        for (row, corrected) in rows.iter_mut().zip(holm(&p_values)) {
            row.p_holm = corrected;
        }
        rows
    }

    fn plans(&self) -> Vec<PlanRow> {
        plans()
            .flat_map(|rule| self.places().map(move |place| (place, rule)))
            .filter_map(|(place, rule)| {
                let (gap, _) = self.find(Metric::Gap { place, rule })?;
                let (error, _) = self.find(Metric::PlanError { place, rule })?;
                let (steps, _) = self.find(Metric::PlanSteps { place, rule })?;
                let seconds = self.find(Metric::PlanSeconds { place, rule });
                Some(PlanRow {
                    temperature: self.settings.temperatures[place.temperature],
                    drafts: place.drafts,
                    scheme: rule.0.as_str().to_owned(),
                    shortfall_max: gap.highest().max(0.0),
                    law_l1_max: error.highest(),
                    iterations_mean: steps.estimate().mean,
                    iterations_max: steps.highest(),
                    seconds_mean: seconds.map(|(tally, _)| tally.estimate().mean),
                })
            })
            .collect()
    }

    fn published_formula(&self) -> Vec<FormulaError> {
        self.places()
            .filter(|place| place.drafts > 1)
            .filter_map(|place| {
                let (tally, _) = self.find(Metric::FormulaError { place })?;
                Some(FormulaError {
                    temperature: self.settings.temperatures[place.temperature],
                    drafts: place.drafts,
                    difference: tally.estimate().estimate(),
                    kind: "enclosed".to_owned(),
                    width_max: tally.widest(),
                    max: tally.highest(),
                    min: tally.lowest(),
                })
            })
            .collect()
    }
}

fn measured_kind(monte_carlo: bool) -> String {
    if monte_carlo {
        "monte-carlo"
    } else {
        "enclosed"
    }
    .to_owned()
}

fn log_summary(log: &Log, summary: &Summary<'_>, rest: bool) -> LogSummary {
    let mut metadata = log.metadata().clone();
    // The strip shows those that are needed.
    metadata.token_text.clear();
    let rest = metadata
        .rest_temperatures
        .iter()
        .enumerate()
        .filter(|_| rest)
        .filter_map(|(column, &temperature)| {
            let (target, _) = summary.find(Metric::TargetRest { column })?;
            let (draft, _) = summary.find(Metric::DraftRest { column })?;
            Some(RestMass {
                temperature,
                target_mean: target.estimate().mean,
                target_max: target.highest(),
                draft_mean: draft.estimate().mean,
                draft_max: draft.highest(),
            })
        })
        .collect();
    let (target, draft) = log.dtypes();
    LogSummary {
        name: log.path().file_name().map_or_else(
            || log.path().display().to_string(),
            |name| name.to_string_lossy().into_owned(),
        ),
        positions: log.positions(),
        vocabulary: log.vocabulary(),
        rows: if log.is_top_heavy() {
            "top-heavy"
        } else {
            "full"
        }
        .to_owned(),
        listed: log.listed(),
        dtypes: [target.to_string(), draft.to_string()],
        rest,
        ignored_tensors: log.ignored_tensors().to_vec(),
        metadata,
    }
}

/// Gathers the tokens of the first texts with their gap.
struct StripBuilder {
    place: Place,
    temperature: f64,
    rule: Rule,
    optimum: Option<usize>,
    acceptance: Option<usize>,
    texts: Vec<(i64, StripText)>,
}

impl StripBuilder {
    fn new(settings: &Settings, all: &[Metric]) -> Self {
        let temperature = settings.temperatures.len() - 1;
        let drafts = settings
            .drafts
            .iter()
            .copied()
            .find(|&n| n == 3)
            .unwrap_or(settings.drafts[0]);
        let place = Place {
            temperature,
            drafts,
        };
        let rule = (SchemeName::WITH_REPLACEMENT, VerifierName::RRS);
        let find = |metric| all.iter().position(|&m| m == metric);
        Self {
            place,
            temperature: settings.temperatures[temperature],
            rule,
            optimum: find(Metric::Optimum {
                place,
                scheme: rule.0,
            }),
            acceptance: find(Metric::Acceptance { place, rule }),
            texts: Vec::new(),
        }
    }

    fn add(&mut self, log: &Log, measured: &Measured) {
        let (Some(prompt), Some(token), Some(optimum), Some(acceptance)) = (
            measured.cluster,
            measured.token,
            self.optimum.and_then(|index| measured.values.get(index)),
            self.acceptance.and_then(|index| measured.values.get(index)),
        ) else {
            return;
        };
        let Some(text) = log.metadata().token_text.get(&token) else {
            return;
        };
        let known = self.texts.iter().position(|(id, _)| *id == prompt);
        let index = match known {
            Some(index) => index,
            None if self.texts.len() < STRIP_TEXTS => {
                let name = log
                    .metadata()
                    .prompts
                    .iter()
                    .find(|record| record.id == prompt)
                    .map_or_else(|| format!("prompt {prompt}"), |record| record.name.clone());
                self.texts.push((
                    prompt,
                    StripText {
                        prompt: name,
                        tokens: Vec::new(),
                    },
                ));
                self.texts.len() - 1
            }
            None => return,
        };
        let tokens = &mut self.texts[index].1.tokens;
        if tokens.len() < STRIP_TOKENS {
            tokens.push(StripToken {
                text: text.clone(),
                optimum: optimum.value,
                acceptance: acceptance.value,
            });
        }
    }

    fn finish(self) -> Option<Strip> {
        (!self.texts.is_empty()).then(|| Strip {
            temperature: self.temperature,
            drafts: self.place.drafts,
            scheme: self.rule.0.as_str().to_owned(),
            verifier: self.rule.1.as_str().to_owned(),
            texts: self.texts.into_iter().map(|(_, text)| text).collect(),
        })
    }
}

/// What the report's words mean.
/// What the words of a report mean, for blocks of some length.
pub(crate) fn definitions(block_length: usize) -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> = [
        (
            "position",
            "a prefix of a text; the target gives the law p of the next token there, the draft the \
             law q",
        ),
        (
            "temperature",
            "both models' logits are divided by it before the softmax",
        ),
        (
            "acceptance",
            "P(the output token is one of the n drafts) at a position, over the drafts and the \
             verifier's own randomness (membership acceptance); then averaged over positions",
        ),
        (
            "optimal acceptance rate",
            "alpha*: the most that any lossless verifier can accept at a position, the maximum over \
             couplings of p and the law of the drafts; then averaged over positions",
        ),
        (
            "gap",
            "alpha* minus acceptance at the same position, for the same scheme of drawing drafts",
        ),
        (
            "overlap",
            "sum over tokens of min(p, q): what one draft's verifier accepts, 1 - total variation",
        ),
        (
            "95% interval",
            "Student's t over prompts (or positions, where the log names no prompts), by the \
             linearised variance of a ratio of sums",
        ),
        (
            "p-value",
            "of a comparison: two-sided, paired over positions, clustered like the interval",
        ),
        (
            "Holm",
            "p-value corrected for reading all comparisons of this report together",
        ),
        (
            "quantile",
            "value that this share of the positions does not exceed, to 1/16384",
        ),
        (
            "enclosed",
            "computed with bounds on rounding and truncation; the widest enclosure of any position \
             is given. Intervals are about positions that were not logged, not about rounding",
        ),
        (
            "estimate",
            "an average over what was sampled; its error is the interval's",
        ),
        (
            "optimal plan",
            "a coupling by slot weights that attains alpha* and whose output law is p, solved at every \
             position; its acceptance and its law are measured by a second integral",
        ),
        (
            "published formula",
            "the optimum of drafts that are i.i.d. given that all differ, which is published as that \
             of sequential draws without replacement; the difference is its error there",
        ),
        (
            "top-heavy rows",
            "rows list the most probable tokens of both models exactly; the mass of all others is \
             known and spread evenly over 64 entries. The optimum with replacement is within the \
             target's rest mass of the full rows'. Without rest masses, rows are renormalised over \
             the listed tokens: those of a sampler that draws from them alone",
        ),
    ]
    .into_iter()
    .map(|(name, text)| (name.to_owned(), text.to_owned()))
    .collect();
    for scheme in schemes() {
        let engines = match scheme.entry().engines {
            "" => String::new(),
            engines => format!("; drafted so by {engines}"),
        };
        all.insert(
            format!("scheme {scheme}"),
            format!("{}{engines}", scheme.law()),
        );
    }
    for ((_, name), _) in rules() {
        all.insert(
            format!("verifier {}", name.as_str()),
            format!("{}; for {}", name.rule(), name.draft_schemes()),
        );
    }
    all.insert(
        "block-optimum".to_owned(),
        format!(
            "expected number of the {block_length} tokens of one drafted block that the best block \
             verifier accepts, the corrected or bonus token not counted: sum over t of E min(1, q/p \
             of the first t tokens) over text sampled from the target"
        ),
    );
    all.insert(
        "lemma-5.1".to_owned(),
        "SpecTr-GBV's value for K blocks: sum over t of E [1 - (1 - min(1, q/p of the first t \
         tokens))^K]; for K >= 2 it is not an upper bound, see the claims"
            .to_owned(),
    );
    all
}

/// A number of a report that left the interval which another report gives it.
#[derive(Clone, Debug, PartialEq)]
pub struct Regression {
    /// Which number.
    pub what: String,
    /// Its value now; `None` if it is not in the report any more.
    pub now: Option<f64>,
    /// Its interval in the baseline.
    pub interval: [f64; 2],
}

/// Compares the means of a report with the 95% intervals of a baseline: every
/// number of the baseline has to be there and within its interval, widened by
/// 1e-9 for rounding.
///
/// # Example
/// ```
/// use specgap::gap::{GapReport, regressions};
/// # fn check(now: &GapReport, before: &GapReport) {
/// for regression in regressions(now, before) {
///     println!("{}: {:?}", regression.what, regression.now);
/// }
/// # }
/// ```
pub fn regressions(now: &GapReport, baseline: &GapReport) -> Vec<Regression> {
    let current: HashMap<String, f64> = numbers(now)
        .into_iter()
        .map(|(what, estimate)| (what, estimate.mean))
        .collect();
    numbers(baseline)
        .into_iter()
        .filter_map(|(what, estimate)| {
            let [low, high] = estimate.ci95;
            let value = current.get(&what).copied();
            let within = value.is_some_and(|x| x >= low - 1e-9 && x <= high + 1e-9);
            (!within).then_some(Regression {
                what,
                now: value,
                interval: estimate.ci95,
            })
        })
        .collect()
}

fn numbers(report: &GapReport) -> Vec<(String, Estimate)> {
    let mut all = Vec::new();
    for row in &report.overlap {
        all.push((format!("overlap at T = {}", row.temperature), row.estimate));
    }
    for cell in &report.cells {
        let place = format!(
            "{} at T = {}, n = {}",
            cell.scheme, cell.temperature, cell.drafts
        );
        all.push((
            format!("alpha* of {place}"),
            cell.optimal_acceptance_rate.estimate,
        ));
        for row in &cell.verifiers {
            all.push((
                format!("acceptance of {}, {place}", row.name),
                row.acceptance,
            ));
            all.push((format!("gap of {}, {place}", row.name), row.gap.estimate));
        }
    }
    all
}
