//! From texts and logged draft paths to a report.

use super::super::TextError;
use super::super::measure::{surprise, text_log};
use super::super::place::Place;
use super::super::texts::{Text, Texts};
use super::agreeing::{Asked, Step, reached};
use super::bounds::{accepted_of_draft, lower_bound_of_draft, lower_bound_of_text};
use super::data::{AtDrafts, PATHS_SCHEMA, PathVerifier, PathsReport, ToldTwice, UpperBound};
use super::fitted::{ByPrompt, Context, CrossFitted, Drawn, Form, Mean, cross_fitted};
use super::glossary::paths_definitions;
use crate::gap::Estimate;
use crate::log::{Log, Rollouts};
use crate::rounds::{ChainVerifier, Survival};
use rayon::prelude::*;
use std::collections::BTreeSet;

/// What is asked of a log's paths.
#[derive(Clone, Debug, PartialEq)]
pub struct PathSettings {
    /// Each K, in 1..=[`Self::MOST_DRAFTS`].
    pub drafts: Vec<usize>,
    /// L; that of the logged paths, or [`Self::LENGTH`], if not given.
    pub length: Option<usize>,
    /// The temperature at which the text was drawn, where the log does not say.
    pub temperature: Option<f64>,
}

impl Default for PathSettings {
    fn default() -> Self {
        Self {
            drafts: (1..=8).collect(),
            length: None,
            temperature: None,
        }
    }
}

impl PathSettings {
    /// L where neither the log nor the settings say.
    pub const LENGTH: usize = 5;
    /// The largest K.
    pub const MOST_DRAFTS: usize = 16;
}

/// Overlaps of the first rows that divide contexts into groups with limits of their own. They
/// are set beforehand, so that nothing is fitted on what is reported.
const GROUPS: [f64; 3] = [0.5, 0.7, 0.85];

/// Verifiers of K paths, in the order of reports.
const NAMES: [&str; 8] = [
    "token",
    "block",
    "greedy-block",
    "spectr-rrs",
    "spectr-k-seq",
    "spectr-plan",
    "select-block",
    "select-greedy-block",
];

/// Of which the first look at one path only.
const SINGLE: usize = ChainVerifier::ALL.len();

/// Reads the texts of some logs, and the draft paths that they have, and says what K paths
/// could give and what verifiers get of it. `command` goes into the report, and `progress` is
/// told of positions as they are read.
///
/// # Errors
/// As [`Texts::read`]; also K or L out of range, and draft paths that were drawn at another
/// temperature than the text.
///
/// # Complexity
/// O(N V) for reading, and some milliseconds a position for selections from up to 8 drafts;
/// memory grows by 8 bytes a position for each of 3 K (K + 1)/2 numbers.
pub fn measure_paths(
    logs: &[Log],
    settings: &PathSettings,
    command: &str,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<PathsReport, TextError> {
    let most = most_drafts(settings)?;
    let drawn = logs
        .iter()
        .map(LoggedPaths::read)
        .collect::<Result<Vec<_>, _>>()?;
    let length = length(settings, logs, &drawn)?;
    let asked = Asked::new(most).map_err(|why| TextError::Settings(why.to_owned()))?;
    let question = |scan: &mut crate::row::Workspace,
                    rows: crate::distribution::Rows<'_>,
                    token: usize,
                    number: u64| {
        let mut answers = vec![number as f64];
        answers.extend(asked.tables(scan, rows, token)?);
        Ok(answers)
    };
    let texts = Texts::read_asking(logs, settings.temperature, progress, Some(&question), false)?;
    for (log, paths) in logs.iter().zip(&drawn) {
        if let Some(paths) = paths {
            paths.check_temperature(log, texts.temperature)?;
        }
    }
    Ok(Measurement {
        texts: &texts,
        asked: &asked,
        drafts: settings.drafts.iter().copied().collect(),
        length,
        blocks: Blocks::new(logs, drawn, &texts),
    }
    .report(logs, command))
}

fn most_drafts(settings: &PathSettings) -> Result<usize, TextError> {
    let most = settings.drafts.iter().copied().max().unwrap_or(0);
    let fits = |&drafts: &usize| (1..=PathSettings::MOST_DRAFTS).contains(&drafts);
    if settings.drafts.iter().all(fits) && most > 0 {
        return Ok(most);
    }
    Err(TextError::Settings(format!(
        "numbers of paths {:?}: give at least one, each in 1..={}",
        settings.drafts,
        PathSettings::MOST_DRAFTS
    )))
}

/// L, from the settings or the logged paths.
fn length(
    settings: &PathSettings,
    logs: &[Log],
    drawn: &[Option<LoggedPaths>],
) -> Result<usize, TextError> {
    let logged = logs.iter().zip(drawn).filter_map(|(log, paths)| {
        let paths = paths.as_ref()?;
        Some((log, paths.rollouts.max_tokens()))
    });
    let shortest = logged.min_by_key(|&(_, tokens)| tokens);
    match (settings.length, shortest) {
        (Some(0), _) => Err(TextError::Settings(
            "a path of 0 tokens: its length is at least 1".to_owned(),
        )),
        (Some(length), Some((log, tokens))) if length > tokens => Err(TextError::Log {
            log: log.path().to_owned(),
            message: format!(
                "its draft paths have {tokens} tokens, and --length asks for {length}; ask for at \
                 most {tokens}, or capture longer ones with --path-length {length}"
            ),
        }),
        (Some(length), _) => Ok(length),
        (None, Some((_, tokens))) => Ok(tokens),
        (None, None) => Ok(PathSettings::LENGTH),
    }
}

/// The draft paths of a log, with what the target gives them.
struct LoggedPaths {
    rollouts: Rollouts,
}

impl LoggedPaths {
    /// `None` if it has none, or not what the target gives them.
    fn read(log: &Log) -> Result<Option<Self>, TextError> {
        let rollouts = log.rollouts()?.filter(|rollouts| {
            let first = rollouts.get(0);
            first.is_some_and(|first| !first.target_p.is_empty())
        });
        Ok(rollouts.map(|rollouts| Self { rollouts }))
    }

    fn check_temperature(&self, log: &Log, temperature: f64) -> Result<(), TextError> {
        match self.rollouts.record() {
            Some(record) if record.temperature != temperature => Err(TextError::Log {
                log: log.path().to_owned(),
                message: format!(
                    "its draft paths were drawn at temperature {}, and its text at {temperature}; \
                     bounds need one temperature: capture both together",
                    record.temperature
                ),
            }),
            _ => Ok(()),
        }
    }
}

/// Which blocks a log's texts have.
struct Blocks {
    logs: Vec<BlocksOfLog>,
}

struct BlocksOfLog {
    /// Positions of the logs before it.
    before: usize,
    positions: usize,
    /// The tokens that end a text, and the most that one may have, where the log says both:
    /// a block then ends with its text. Else blocks are whole.
    ends: Option<(BTreeSet<u32>, usize)>,
    paths: Option<LoggedPaths>,
}

impl Blocks {
    fn new(logs: &[Log], drawn: Vec<Option<LoggedPaths>>, texts: &Texts) -> Self {
        debug_assert_eq!(
            texts.positions(),
            logs.iter().map(Log::positions).sum::<usize>()
        );
        let mut before = 0;
        let logs = logs.iter().zip(drawn).map(|(log, paths)| {
            let metadata = log.metadata();
            let stops = metadata.extra.get("stop_tokens");
            let stops: Option<BTreeSet<u32>> =
                stops.and_then(|stops| serde_json::from_value(stops.clone()).ok());
            let most = metadata
                .sampling
                .as_ref()
                .and_then(|sampling| sampling.max_tokens);
            let ends = stops.filter(|stops| !stops.is_empty()).zip(most);
            let of_log = BlocksOfLog {
                before,
                positions: log.positions(),
                ends,
                paths,
            };
            before += log.positions();
            of_log
        });
        Self {
            logs: logs.collect(),
        }
    }

    /// The log that a position is of.
    fn log_of(&self, number: usize) -> Option<&BlocksOfLog> {
        let logs = self.logs.iter();
        let mut logs =
            logs.filter(|log| (log.before..log.before + log.positions).contains(&number));
        logs.next()
    }
}

impl BlocksOfLog {
    /// How many tokens the block of `length` at a place of a text has, if one starts there:
    /// whether it does must not depend on what is written behind.
    fn tokens(&self, text: usize, start: usize, length: usize) -> Option<usize> {
        match &self.ends {
            Some((_, most)) => (start + length <= *most).then(|| length.min(text - start)),
            None => (start + length <= text).then_some(length),
        }
    }

    /// Whether a token ends a text.
    fn ends(&self, token: u32) -> bool {
        self.ends
            .as_ref()
            .is_some_and(|(stops, _)| stops.contains(&token))
    }
}

struct Measurement<'a> {
    texts: &'a Texts,
    asked: &'a Asked,
    /// K.
    drafts: BTreeSet<usize>,
    /// L.
    length: usize,
    blocks: Blocks,
}

/// A block of a text.
struct Start<'a> {
    places: &'a [Place],
    /// What its positions were asked.
    asked: Vec<&'a [f64]>,
    /// Where it begins in its text.
    begin: usize,
    /// Its position's number in all logs, in which texts may lie side by side.
    number: usize,
}

/// What a context's draft paths say beside their bounds: single-draft verifiers, and the lower
/// bound by K.
struct ToldByPaths {
    cluster: usize,
    single: [f64; SINGLE],
    lower: Vec<f64>,
}

/// What one text says of every verifier, for one K.
struct Along {
    /// E[tau] of each, and the lower bound, block by block.
    blocks: Vec<Vec<f64>>,
    /// Rounds of the whole text.
    calls: Vec<f64>,
}

/// Rounds that a text of `all` tokens takes in expectation, `reached(start)` being
/// P(tau >= i given the text) of a round that begins there, i = 1, 2, ... A round with `left`
/// tokens to go drafts `left` - 1 at most, and its last token is the target's own.
pub(super) fn calls<'r>(all: usize, reached: impl Fn(usize) -> &'r [f64]) -> f64 {
    let mut begins = vec![0.0; all + 1];
    let mut calls = 0.0;
    if let Some(first) = begins.first_mut() {
        *first = 1.0;
    }
    for start in 0..all {
        let here = begins.get(start).copied().unwrap_or(0.0);
        calls += here;
        let drafts = reached(start).iter().take(all - start - 1);
        let mut before = 1.0;
        let mut behind = start + 1;
        for &reached in drafts {
            if let Some(next) = begins.get_mut(behind) {
                *next += here * (before - reached);
            }
            before = reached;
            behind += 1;
        }
        if let Some(next) = begins.get_mut(behind) {
            *next += here * before;
        }
    }
    calls
}

impl Measurement<'_> {
    fn width(&self) -> usize {
        1 + self.asked.width()
    }

    /// The blocks of a text.
    fn starts<'t>(&self, text: &'t Text) -> Vec<Start<'t>> {
        let number = text.asked.first().copied().unwrap_or(0.0) as usize;
        let Some(log) = self.blocks.log_of(number) else {
            return Vec::new();
        };
        let all = text.places.len();
        self.stretches(text, |start| log.tokens(all, start, self.length))
    }

    /// Stretches of a text, of as many tokens as `tokens` says of each start.
    fn stretches<'t>(
        &self,
        text: &'t Text,
        tokens: impl Fn(usize) -> Option<usize>,
    ) -> Vec<Start<'t>> {
        let asked: Vec<&[f64]> = text.asked.chunks_exact(self.width()).collect();
        (0..text.places.len())
            .filter_map(|start| {
                let end = start + tokens(start)?;
                Some(Start {
                    places: text.places.get(start..end)?,
                    asked: asked.get(start..end)?.to_vec(),
                    begin: start,
                    number: asked.get(start)?.first().copied()? as usize,
                })
            })
            .collect()
    }

    fn report(&self, logs: &[Log], command: &str) -> PathsReport {
        let clusters = self.texts.clusters;
        let of_texts: Vec<Vec<Start<'_>>> = self
            .texts
            .texts
            .iter()
            .map(|text| self.starts(text))
            .collect();
        let starts: usize = of_texts.iter().map(Vec::len).sum();

        // Verifiers and the lower bound, along the text.
        let drafts: Vec<usize> = self.drafts.iter().copied().collect();
        let columns = NAMES.len() + 1;
        let mut by_prompt = Vec::with_capacity(columns * drafts.len());
        let mut rounds = Vec::with_capacity(drafts.len());
        for &drafts in &drafts {
            let along: Vec<Along> = self
                .texts
                .texts
                .par_iter()
                .zip(&of_texts)
                .map(|(text, starts)| self.along(text, starts, drafts))
                .collect();
            let mut sums = vec![ByPrompt::new(clusters); columns];
            let mut calls = vec![ByPrompt::new(clusters); NAMES.len()];
            for (text, along) in self.texts.texts.iter().zip(&along) {
                for values in &along.blocks {
                    for (sum, &value) in sums.iter_mut().zip(values) {
                        sum.add(text.cluster, value);
                    }
                }
                let tokens = text.places.len() as f64;
                for (sum, &calls) in calls.iter_mut().zip(&along.calls) {
                    sum.add_ratio(text.cluster, tokens, calls);
                }
            }
            by_prompt.append(&mut sums);
            rounds.push(calls);
        }

        // What draft paths and the text bound.
        let (contexts, told) = self.contexts(&of_texts, &drafts);
        let from_text = self.texts_as_contexts(&of_texts);
        let logged = contexts.iter().map(|context| context.paths.len()).min();
        let logged = logged.unwrap_or(0);
        let jobs: Vec<(usize, Form)> = drafts
            .iter()
            .flat_map(|&drafts| {
                let several = (drafts <= logged).then_some(Form::Several);
                let pooled = (logged > 0).then_some(Form::PooledDrafts);
                let forms = [several, pooled, Some(Form::PooledTexts)];
                forms.into_iter().flatten().map(move |form| (drafts, form))
            })
            .collect();
        let fitted: Vec<Option<CrossFitted>> = jobs
            .par_iter()
            .map(|&(drafts, form)| {
                let contexts = match form {
                    Form::PooledTexts => &from_text,
                    _ => &contexts,
                };
                cross_fitted(contexts, clusters, form, drafts, self.length)
            })
            .collect();
        let fitted: Vec<((usize, Form), CrossFitted)> = jobs
            .into_iter()
            .zip(fitted)
            .filter_map(|(job, fitted)| Some((job, fitted?)))
            .collect();

        let by_paths = |of: &dyn Fn(&ToldByPaths) -> f64| {
            let mut sums = ByPrompt::new(clusters);
            for one in &told {
                sums.add(one.cluster, of(one));
            }
            sums.mean()
        };
        let by_drafts: Vec<AtDrafts> = drafts
            .iter()
            .zip(by_prompt.chunks(columns))
            .enumerate()
            .map(|(at, (&drafts, sums))| {
                let lower = by_paths(&|one| one.lower.get(at).copied().unwrap_or(0.0));
                let rounds = rounds.get(at).map_or(&[][..], Vec::as_slice);
                at_drafts(drafts, (sums, rounds), &lower, &fitted)
            })
            .collect();
        let checks = self.checks(&told, &drafts, &by_prompt);
        PathsReport {
            schema: PATHS_SCHEMA,
            tool: format!("specgap {}", env!("CARGO_PKG_VERSION")),
            command: command.to_owned(),
            logs: logs.iter().map(text_log).collect(),
            positions: self.texts.positions(),
            texts: self.texts.texts.len(),
            clusters,
            temperature: self.texts.temperature,
            unlisted: self.texts.unlisted(),
            length: self.length,
            starts,
            anchors: contexts.len(),
            logged_paths: logged,
            ends_with_text: self.blocks.logs.iter().all(|log| log.ends.is_some()),
            surprise: surprise(self.texts),
            by_drafts,
            checks,
            definitions: paths_definitions(),
            left_out: self.left_out(logged, starts),
        }
    }

    /// P(tau >= i) of every verifier given a stretch of text, i = 1, 2, ..
    fn survivals(&self, start: &Start<'_>, drafts: usize) -> [Vec<f64>; NAMES.len()] {
        let single = |verifier| {
            let mut survival = Survival::new(verifier);
            let places = start.places.iter();
            let reached = places.map(|place| {
                survival.take(&place.ratio);
                *survival.reached()
            });
            reached.collect::<Vec<f64>>()
        };
        let of = |step: Step| {
            let range = self.asked.range(step);
            let range = range.start + 1..range.end + 1;
            let tables = start
                .asked
                .iter()
                .map(|row| row.get(range.clone()).unwrap_or(&[]));
            reached(tables, drafts, step == Step::Selected)
        };
        let selected = of(Step::Selected);
        let [by_block, by_greedy_block] = selected.selected;
        let [token, block, greedy_block] = ChainVerifier::ALL.map(single);
        [
            token,
            block,
            greedy_block,
            of(Step::Rrs).by_token,
            of(Step::KSeq).by_token,
            selected.by_token,
            by_block,
            by_greedy_block,
        ]
    }

    /// E[tau] of every verifier at every block of a text with the lower bound, and the rounds
    /// that the whole text takes, for one K.
    fn along(&self, text: &Text, starts: &[Start<'_>], drafts: usize) -> Along {
        let all = text.places.len();
        let stretches = self.stretches(text, |start| Some(self.length.min(all - start)));
        let survivals: Vec<[Vec<f64>; NAMES.len()]> = stretches
            .iter()
            .map(|stretch| self.survivals(stretch, drafts))
            .collect();
        let blocks = starts.iter().filter_map(|start| {
            // A block is as long as the stretch that begins where it does.
            let survivals = survivals.get(start.begin)?;
            let ratios = joint(start.places.iter().map(|place| place.ratio));
            let accepted = survivals.iter().map(|reached| reached.iter().sum());
            let lower = lower_bound_of_text(&ratios, drafts);
            Some(accepted.chain(std::iter::once(lower)).collect())
        });
        let calls = |verifier: usize| {
            let reached = |start: usize| -> &[f64] {
                let here = survivals.get(start).and_then(|all| all.get(verifier));
                here.map_or(&[], Vec::as_slice)
            };
            calls(all, reached)
        };
        Along {
            blocks: blocks.collect(),
            calls: (0..NAMES.len()).map(calls).collect(),
        }
    }

    fn group(place: Option<&Place>) -> usize {
        let overlap = place.map_or(0.0, |place| place.overlap);
        GROUPS.iter().filter(|&&cut| overlap >= cut).count()
    }

    /// Blocks of the text that have draft paths, with these.
    fn contexts(
        &self,
        of_texts: &[Vec<Start<'_>>],
        drafts: &[usize],
    ) -> (Vec<Context>, Vec<ToldByPaths>) {
        let (mut contexts, mut told) = (Vec::new(), Vec::new());
        for (text, starts) in self.texts.texts.iter().zip(of_texts) {
            for start in starts {
                let Some(log) = self.blocks.log_of(start.number) else {
                    continue;
                };
                let Some(logged) = &log.paths else { continue };
                let paths = logged.rollouts.paths_at(start.number - log.before);
                let steps: Vec<Vec<f64>> = paths
                    .iter()
                    .filter_map(|&path| logged.rollouts.get(path))
                    .map(|path| {
                        let mut steps = Vec::with_capacity(self.length);
                        let tokens = path.tokens.iter().zip(path.target_p).zip(path.q);
                        for ((&token, &p), &q) in tokens.take(self.length) {
                            steps.push(p / q);
                            if log.ends(token) {
                                break;
                            }
                        }
                        steps
                    })
                    .collect();
                if steps.is_empty() {
                    continue;
                }
                let weights: Vec<Vec<f64>> =
                    steps.iter().map(|one| joint(one.iter().copied())).collect();
                let count = steps.len() as f64;
                let mut single = [0.0; SINGLE];
                for steps in &steps {
                    for (sum, one) in single.iter_mut().zip(accepted_of_draft(steps)) {
                        *sum += one / count;
                    }
                }
                let lower = drafts.iter().map(|&drafts| {
                    let each = weights.iter().map(|one| lower_bound_of_draft(one, drafts));
                    each.sum::<f64>() / count
                });
                told.push(ToldByPaths {
                    cluster: text.cluster,
                    single,
                    lower: lower.collect(),
                });
                contexts.push(Context {
                    cluster: text.cluster,
                    group: Self::group(start.places.first()),
                    paths: weights.iter().map(|one| Drawn::by_draft(one)).collect(),
                });
            }
        }
        (contexts, told)
    }

    fn texts_as_contexts(&self, of_texts: &[Vec<Start<'_>>]) -> Vec<Context> {
        let texts = self.texts.texts.iter().zip(of_texts);
        texts
            .flat_map(|(text, starts)| {
                starts.iter().map(|start| {
                    let ratios = joint(start.places.iter().map(|place| place.ratio));
                    Context {
                        cluster: text.cluster,
                        group: Self::group(start.places.first()),
                        paths: vec![Drawn::by_target(&ratios)],
                    }
                })
            })
            .collect()
    }

    /// Single-draft verifiers, and the lower bound of the largest K, by text and by paths.
    fn checks(
        &self,
        told: &[ToldByPaths],
        drafts: &[usize],
        by_prompt: &[ByPrompt],
    ) -> Vec<ToldTwice> {
        if told.is_empty() {
            return Vec::new();
        }
        let columns = NAMES.len() + 1;
        let twice = |what: &str, at: usize, column: usize, of: &dyn Fn(&ToldByPaths) -> f64| {
            let mut from_paths = ByPrompt::new(self.texts.clusters);
            for one in told {
                from_paths.add(one.cluster, of(one));
            }
            let from_text = by_prompt.get(at * columns + column)?;
            Some(ToldTwice {
                what: what.to_owned(),
                drafts: if column < SINGLE { 1 } else { *drafts.get(at)? },
                from_text: from_text.mean().estimate(),
                from_paths: from_paths.mean().estimate(),
                difference: from_paths.mean().minus(&from_text.mean()).estimate(),
            })
        };
        let single = (0..SINGLE).filter_map(|column| {
            let name = NAMES.get(column)?;
            twice(name, 0, column, &|one| {
                one.single.get(column).copied().unwrap_or(0.0)
            })
        });
        let lower = (0..drafts.len()).filter_map(|at| {
            twice("lower bound", at, NAMES.len(), &|one| {
                one.lower.get(at).copied().unwrap_or(0.0)
            })
        });
        single.chain(lower).collect()
    }

    fn left_out(&self, logged: usize, starts: usize) -> Vec<String> {
        let mut left_out = Vec::new();
        let most = self.drafts.last().copied().unwrap_or(0);
        if logged == 0 {
            left_out.push(format!(
                "upper bounds without bias: they need several draft paths a context, with what the \
                 target gives them; capture with --paths {most} --path-length {}",
                self.length
            ));
        } else if logged < most {
            left_out.push(format!(
                "upper bounds of more than {logged} paths without bias: contexts have {logged} \
                 draft paths; capture with --paths {most}"
            ));
        }
        if self.texts.clusters < 2 {
            left_out.push(
                "every upper bound: limits are fitted on some prompts and reported on others, and \
                 there is one prompt only"
                    .to_owned(),
            );
        }
        if starts == 0 {
            left_out.push(format!(
                "everything: no text has room for {} tokens behind a prefix; ask for a smaller \
                 --length, or capture longer texts",
                self.length
            ));
        }
        left_out.push(
            "traversal, and trees whose children are drawn without replacement (sequential \
             children, EAGLE's, SpecHub's pairs): they need the rows at every node that is drafted, \
             off the text too, and draft trees that were drawn so; specgap block has them on small \
             trees, and specgap tree has trees along the text"
                .to_owned(),
        );
        left_out
    }
}

/// Products of the first numbers. One that leaves the range stays at its ends.
fn joint(steps: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut product = 1.0f64;
    steps
        .map(|step| {
            product = if product == 0.0 || step == 0.0 {
                0.0
            } else {
                (product * step).clamp(f64::MIN_POSITIVE, f64::MAX)
            };
            product
        })
        .collect()
}

fn form_name(form: Form) -> &'static str {
    match form {
        Form::Several => "several paths",
        Form::PooledDrafts => "pooled paths",
        Form::PooledTexts => "pooled text",
    }
}

/// Upper and lower bound and verifiers of K paths. `lower` is the lower bound by draft paths.
///
/// Draft paths and text are two samples. What the paths tell of is how far the upper bound lies
/// above the lower one, which varies little; the lower bound itself follows from the text, from
/// which the verifiers follow too. The sum has the same mean as the paths' own upper bound.
fn at_drafts(
    drafts: usize,
    (sums, rounds): (&[ByPrompt], &[ByPrompt]),
    lower: &Mean,
    fitted: &[((usize, Form), CrossFitted)],
) -> AtDrafts {
    let of_text = sums.last().map_or_else(|| lower.clone(), ByPrompt::mean);
    let own = fitted.iter().filter(|((k, _), _)| *k == drafts);
    let bounds: Vec<(Form, &CrossFitted, Mean)> = own
        .map(|((_, form), fitted)| {
            let bound = fitted.by_prompt.mean();
            let bound = match form {
                Form::PooledTexts => bound,
                _ => bound.minus(lower).plus(&of_text),
            };
            (*form, fitted, bound)
        })
        .collect();
    let below = |sum: &ByPrompt| -> Option<Estimate> {
        let (_, _, first) = bounds.first()?;
        Some(first.minus(&sum.mean()).estimate())
    };
    AtDrafts {
        drafts,
        upper_bounds: bounds
            .iter()
            .map(|(form, fitted, bound)| UpperBound {
                form: form_name(*form).to_owned(),
                expected_accepted_length: bound.estimate(),
                limits: fitted.limits.clone(),
            })
            .collect(),
        lower_bound: of_text.estimate(),
        verifiers: NAMES
            .iter()
            .zip(sums)
            .enumerate()
            .map(|(index, (name, sum))| PathVerifier {
                verifier: (*name).to_owned(),
                uses: if index < SINGLE { 1 } else { drafts },
                expected_accepted_length: sum.mean().estimate(),
                below_upper_bound: below(sum),
                tokens_per_call: rounds
                    .get(index)
                    .filter(|_| !name.ends_with("greedy-block"))
                    .map(|rounds| rounds.mean().estimate()),
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{FixedLength, replay};

    /// The calls of token and block verification, by the replay of `specgap length`.
    #[test]
    fn rounds_are_those_of_the_replay() {
        let ratios = [0.5, 2.0, 0.75, 1.5, 0.25, 3.0, 0.9];
        for verifier in [ChainVerifier::Token, ChainVerifier::Block] {
            for length in 1..=4 {
                let stretches: Vec<Vec<f64>> = (0..ratios.len())
                    .map(|start| {
                        let mut survival = Survival::new(verifier);
                        let stretch = ratios[start..].iter().take(length);
                        let reached = stretch.map(|ratio| {
                            survival.take(ratio);
                            *survival.reached()
                        });
                        reached.collect()
                    })
                    .collect();
                let found = calls(ratios.len(), |start| &stretches[start]);
                let known = replay(verifier, &ratios, &FixedLength(length)).unwrap();
                assert!((found - known.calls).abs() < 1e-12, "{verifier} {length}");
            }
        }
        assert_eq!(calls(0, |_| &[]), 0.0);
    }
}
