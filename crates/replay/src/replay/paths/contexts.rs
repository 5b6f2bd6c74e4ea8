//! Blocks of logged texts, and the draft paths that were logged behind some of them.

use super::super::ReplayError;
use super::super::position::TextPosition;
use super::super::read::{Text, Texts};
use super::bounds::{accepted_of_draft, lower_bound_of_draft};
use super::limits::{Context, Drawn};
use specgap_core::rounds::ChainRule;
use specgap_log::log::{Log, Rollouts};
use specgap_sampling::Cuts;
use std::collections::BTreeSet;

/// Overlaps of the first rows that divide contexts into groups with limits of their own. They
/// are set beforehand, so that nothing is fitted on what is reported.
const GROUPS: [f64; 3] = [0.5, 0.7, 0.85];

/// The group of a context, by the overlap of its first row.
pub(super) fn group_of(overlap: f64) -> usize {
    GROUPS.iter().filter(|&&cut| overlap >= cut).count()
}

/// The draft paths of a log, with what the target gives them; `None` if it has none, or not that.
pub(super) fn logged_paths(log: &Log) -> Result<Option<Rollouts>, ReplayError> {
    // They are drawn from whole rows, so that they say nothing of text from cut ones.
    let rollouts = match Cuts::of_text(log).keep_all() {
        true => log.rollouts()?,
        false => None,
    };
    Ok(rollouts.filter(|rollouts| {
        let first = rollouts.get(0);
        first.is_some_and(|first| !first.target_p.is_empty())
    }))
}

/// Refuses paths of another temperature than the text's.
fn check_temperature(paths: &Rollouts, log: &Log, temperature: f64) -> Result<(), ReplayError> {
    match paths.record() {
        Some(record) if record.temperature != temperature => Err(ReplayError::of_log(
            log,
            format!(
                "its draft paths were drawn at temperature {}, and its text at {temperature}; \
                 bounds need one temperature: capture both together",
                record.temperature
            ),
        )),
        _ => Ok(()),
    }
}

/// Which blocks a log's texts have.
struct BlocksOfLog {
    /// Positions of the logs before it.
    before: usize,
    positions: usize,
    /// The tokens that end a text, and the most that one may have, where the log says both:
    /// a block then ends with its text. Else blocks are whole.
    ends: Option<(BTreeSet<u32>, usize)>,
    paths: Option<Rollouts>,
}

impl BlocksOfLog {
    /// Returns how many tokens the block of `length` at a place of a text has, if one starts there:
    /// whether it does must not depend on what is written behind.
    fn tokens(&self, text: usize, start: usize, length: usize) -> Option<usize> {
        match &self.ends {
            Some((_, most)) => (start + length <= *most).then(|| length.min(text - start)),
            None => (start + length <= text).then_some(length),
        }
    }

    /// Returns whether a token ends a text.
    fn ends(&self, token: u32) -> bool {
        self.ends
            .as_ref()
            .is_some_and(|(stops, _)| stops.contains(&token))
    }
}

/// A block of a text.
pub(super) struct Start<'a> {
    pub(super) places: &'a [TextPosition],
    /// Where it begins in its text.
    pub(super) begin: usize,
    /// Its position's number in all logs, in which texts may lie side by side.
    number: usize,
}

impl<'a> Start<'a> {
    /// `tokens` of a text, if it has as many.
    pub(super) fn new(text: &'a Text, begin: usize, tokens: usize) -> Option<Self> {
        Some(Self {
            places: text.ahead(begin).get(..tokens)?,
            begin,
            number: text.numbers.get(begin).copied()?,
        })
    }

    /// q/p of its prefixes.
    pub(super) fn ratios(&self) -> Vec<f64> {
        joint(self.places.iter().map(|place| place.ratio))
    }

    fn group(&self) -> usize {
        group_of(self.places.first().map_or(0.0, |place| place.overlap))
    }
}

/// What a context's draft paths say beside their bounds: single-draft verifiers, and the lower
/// bound by K.
pub(super) struct ToldByPaths {
    pub(super) cluster: usize,
    pub(super) single: Vec<f64>,
    pub(super) lower: Vec<f64>,
}

/// Texts, their blocks, and the draft paths behind some of them.
pub(super) struct Contexts<'a> {
    pub(super) texts: &'a Texts,
    /// L.
    pub(super) length: usize,
    logs: Vec<BlocksOfLog>,
}

impl<'a> Contexts<'a> {
    /// Of texts that were read from these logs, with the draft paths of each.
    ///
    /// # Errors
    /// Paths of another temperature than the text.
    pub(super) fn new(
        logs: &[Log],
        drawn: Vec<Option<Rollouts>>,
        texts: &'a Texts,
        length: usize,
    ) -> Result<Self, ReplayError> {
        debug_assert_eq!(
            texts.positions(),
            logs.iter().map(Log::positions).sum::<usize>()
        );
        let (mut before, mut blocks) = (0, Vec::with_capacity(logs.len()));
        for (log, paths) in logs.iter().zip(drawn) {
            if let Some(paths) = &paths {
                check_temperature(paths, log, texts.temperature)?;
            }
            let metadata = log.metadata();
            let stops = metadata.extra.get("stop_tokens");
            let stops: Option<BTreeSet<u32>> =
                stops.and_then(|stops| serde_json::from_value(stops.clone()).ok());
            let sampling = metadata.sampling.as_ref();
            let most = sampling.and_then(|sampling| sampling.max_tokens);
            blocks.push(BlocksOfLog {
                before,
                positions: log.positions(),
                ends: stops.filter(|stops| !stops.is_empty()).zip(most),
                paths,
            });
            before += log.positions();
        }
        Ok(Self {
            texts,
            length,
            logs: blocks,
        })
    }

    /// The log that a position is of.
    fn log_of(&self, number: usize) -> Option<&BlocksOfLog> {
        let mut logs = self.logs.iter();
        logs.find(|log| (log.before..log.before + log.positions).contains(&number))
    }

    /// Returns whether a block ends with the token that ends its text.
    pub(super) fn end_with_text(&self) -> bool {
        self.logs.iter().all(|log| log.ends.is_some())
    }

    /// The blocks of every text.
    pub(super) fn starts(&self) -> Vec<Vec<Start<'a>>> {
        let texts = self.texts.texts.iter();
        texts.map(|text| self.starts_of(text)).collect()
    }

    fn starts_of(&self, text: &'a Text) -> Vec<Start<'a>> {
        let first = text.numbers.first();
        let Some(log) = first.and_then(|&number| self.log_of(number)) else {
            return Vec::new();
        };
        let all = text.places.len();
        (0..all)
            .filter_map(|begin| Start::new(text, begin, log.tokens(all, begin, self.length)?))
            .collect()
    }

    /// Blocks of the text that have draft paths, with these.
    pub(super) fn with_paths(
        &self,
        of_texts: &[Vec<Start<'_>>],
        drafts: &[usize],
    ) -> (Vec<Context>, Vec<ToldByPaths>) {
        let (mut contexts, mut told) = (Vec::new(), Vec::new());
        for (text, starts) in self.texts.texts.iter().zip(of_texts) {
            for start in starts {
                let Some(log) = self.log_of(start.number) else {
                    continue;
                };
                let Some(logged) = &log.paths else { continue };
                let paths = logged.paths_at(start.number - log.before);
                let steps: Vec<Vec<f64>> = (paths.iter())
                    .filter_map(|&path| logged.get(path))
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
                let single = ChainRule::all().map(|rule| {
                    let each = steps.iter().map(|steps| accepted_of_draft(rule, steps));
                    each.fold(0.0, |sum, one| sum + one / count)
                });
                let lower = drafts.iter().map(|&drafts| {
                    let each = weights.iter().map(|one| lower_bound_of_draft(one, drafts));
                    each.sum::<f64>() / count
                });
                told.push(ToldByPaths {
                    cluster: text.cluster,
                    single: single.collect(),
                    lower: lower.collect(),
                });
                contexts.push(Context {
                    cluster: text.cluster,
                    group: start.group(),
                    paths: weights.iter().map(|one| Drawn::by_draft(one)).collect(),
                    ..Context::default()
                });
            }
        }
        (contexts, told)
    }

    /// Every block of the text, which is its one path.
    pub(super) fn texts_as_contexts(&self, of_texts: &[Vec<Start<'_>>]) -> Vec<Context> {
        let texts = self.texts.texts.iter().zip(of_texts);
        texts
            .flat_map(|(text, starts)| {
                starts.iter().map(|start| Context {
                    cluster: text.cluster,
                    group: start.group(),
                    paths: vec![Drawn::by_target(&start.ratios())],
                    ..Context::default()
                })
            })
            .collect()
    }
}

/// Products of the first numbers. One that leaves the range stays at its ends.
pub(super) fn joint(steps: impl Iterator<Item = f64>) -> Vec<f64> {
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
