//! Everything that a report needs of some positions.

use super::answers::Answers;
use super::data::{DraftPaths, LogSummary, OfDepth};
use super::fit::DraftFit;
use super::metric::{Metric, Temperature};
use super::settings::Settings;
use super::strip::StripBuilder;
use super::surprise::{Surprised, Surprises};
use super::tally::{ExactSum, Tally};
use super::unit::{LogKey, Unit};
use super::{GapError, looping};
use serde::{Deserialize, Serialize};
use specgap_base::sorted::Map;
use specgap_log::log::{FileDigest, Log, LogIdentity, Metadata, Sampling};
use specgap_sampling::Cuts;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// Everything that a report needs of some positions: sums and counts by what they are about.
///
/// Summaries of parts of the positions merge into that of all, and make its report: the
/// same to the bit however positions were dealt and in whatever order parts are merged,
/// also where a prompt's positions lie in several. Sums are of whole numbers, so that their
/// order does not count; prompts are known by the log's contents and their number.
///
/// Memory grows with the number of prompts, and by a few bytes for each token that was
/// sampled, which bounds on blocks need.
///
/// # Example
/// ```no_run
/// use specgap_measure::{Part, Settings, Summary, summarise};
/// use specgap_log::log::Log;
/// let logs = [Log::open("log".as_ref())?];
/// let settings = Settings::new(&[1.0], &[2, 3], 0)?;
/// let part = |index| summarise(&logs, &settings, Part { index, count: 2 }, None, &|_| ());
/// // On two machines; `to_json` and `from_json` carry a summary between them.
/// let (mut first, second) = (part(1)?, part(2)?);
/// first.merge(&Summary::from_json(&second.to_json()?)?)?;
/// assert!(first.missing().is_empty());
/// let report = first.report("the two parts together");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Summary {
    /// `specgap`, with its version.
    pub(super) tool: String,
    pub(super) settings: Settings,
    /// How many tokens of every row were kept, if that was asked for.
    pub(super) kept: Option<usize>,
    pub(super) logs: Map<Arc<LogKey>, LogPart>,
    /// Where each unit's sums lie.
    pub(super) places: Map<Unit, usize>,
    pub(super) clusters: Vec<Cluster>,
    pub(super) tallies: Map<Metric, Tally>,
    pub(super) strip: StripBuilder,
    pub(super) paths: Option<HeldPaths>,
}

/// What several draft paths of some whole logs could give: the first part of these logs has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HeldPaths {
    /// Of how many logs together; 0 of logs that were measured apart.
    pub(super) logs: usize,
    /// Nothing where they have no several paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) found: Option<DraftPaths>,
    /// Why it cannot be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) why: Option<String>,
}

/// A log, and which of its positions are measured.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LogPart {
    /// Without the rest's mass, which is summed up here.
    pub summary: LogSummary,
    pub identity: LogIdentity,
    /// Its files by their places, of those that begin at positions that were measured.
    pub files: Map<usize, FileDigest>,
    /// Whether its rows are in memory.
    pub held: bool,
    pub by_prompt: bool,
    pub has_tokens: bool,
    /// Position numbers, rising, with gaps between them.
    pub measured: Vec<Range<usize>>,
    /// Those among them that have no row of the draft, and are in no sum.
    pub without_draft: usize,
    pub rest: Vec<Rest>,
    pub surprises: Option<Surprises>,
}

/// The mass that rows do not list, at one temperature: its sum over positions, and the largest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rest {
    pub target_sum: ExactSum,
    pub target_largest: f64,
    pub draft_sum: ExactSum,
    pub draft_largest: f64,
}

impl Rest {
    fn add(&mut self, [target, draft]: [f64; 2]) {
        self.target_sum.add(target);
        self.draft_sum.add(draft);
        self.raise([target, draft]);
    }

    fn merge(&mut self, other: &Self) {
        self.target_sum.merge(other.target_sum);
        self.draft_sum.merge(other.draft_sum);
        self.raise([other.target_largest, other.draft_largest]);
    }

    fn raise(&mut self, [target, draft]: [f64; 2]) {
        self.target_largest = self.target_largest.max(target);
        self.draft_largest = self.draft_largest.max(draft);
    }
}

/// What is known of a unit but for its sums.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cluster {
    /// That of its unit.
    pub number: i64,
    pub positions: u64,
    /// (index in the text, ln q/p at the token that was sampled there, if known), of logs
    /// whose tokens were drawn at a temperature that is measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub text: Vec<(i64, Option<f64>)>,
    /// Where that token is one that its row does not list: the index, and ln q/p of all
    /// tokens that are not listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unlisted: Vec<(i64, f64)>,
}

/// What one position adds.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub number: usize,
    pub prompt: Option<i64>,
    pub position: Option<i64>,
    pub token: Option<i64>,
    /// Of logs whose tokens were drawn at a temperature that is measured: the index in the
    /// text, and ln q/p at the token, if known.
    pub text: Option<(i64, Option<f64>)>,
    /// The index in the text, and ln q/p of all tokens together that the row does not list, if the
    /// token is one of them.
    pub unlisted: Option<(i64, f64)>,
    /// The token under its row, of logs that say how their tokens were drawn.
    pub surprised: Option<Surprised>,
    /// Of the target and the draft, at each of the log's temperatures for it.
    pub rest: Vec<[f64; 2]>,
    /// The draft has no row: nothing is measured.
    pub lacks_draft: bool,
    pub answers: Answers,
}

impl Summary {
    /// A summary of no log.
    pub(super) fn empty(tool: String, settings: Settings, kept: Option<usize>) -> Self {
        Self {
            tool,
            settings,
            kept,
            logs: Map::new(),
            places: Map::new(),
            clusters: Vec::new(),
            tallies: Map::new(),
            strip: StripBuilder::default(),
            paths: None,
        }
    }

    /// A summary of no positions of some logs; what each of them is known by.
    pub(super) fn new(
        logs: &[Log],
        settings: &Settings,
    ) -> Result<(Self, Vec<Arc<LogKey>>), GapError> {
        let first = logs
            .first()
            .ok_or_else(|| GapError::Settings("name at least one log".to_owned()))?;
        let mut summary = Self::empty(specgap_log::log::tool(), settings.clone(), first.kept());
        let mut keys = Vec::with_capacity(logs.len());
        for log in logs {
            let part = LogPart::new(log, settings)?;
            summary.admits(&part).map_err(GapError::Parts)?;
            let key = Arc::new(part.key());
            if summary.logs.insert(Arc::clone(&key), part).is_some() {
                return Err(GapError::Parts(format!(
                    "{} is there twice; its positions would count twice",
                    key.name
                )));
            }
            keys.push(key);
        }
        Ok((summary, keys))
    }

    /// Says what is measured of a log, by its contents.
    pub(super) fn add_files(&mut self, key: &LogKey, files: Map<usize, FileDigest>) {
        if let Some(log) = self.logs.get_mut(key) {
            log.files.extend(files);
        }
    }

    /// The temperature that texts of a log can be used at.
    pub(super) fn sampled_at(&self, key: &LogKey) -> Option<f64> {
        self.logs.get(key)?.sampled_at(&self.settings).ok()
    }

    /// Adds a position of a log.
    pub(super) fn add(&mut self, key: &Arc<LogKey>, metadata: &Metadata, measured: &Measured) {
        let Some(log) = self.logs.get_mut(key) else {
            return;
        };
        if measured.lacks_draft {
            join(&mut log.measured, measured.number..measured.number + 1);
            log.without_draft += 1;
            return;
        }
        for (rest, masses) in log.rest.iter_mut().zip(&measured.rest) {
            rest.add(*masses);
        }
        if let (Some(all), Some(one)) = (&mut log.surprises, &measured.surprised) {
            all.add(one);
        }
        join(&mut log.measured, measured.number..measured.number + 1);
        let prompt = measured.prompt.filter(|_| log.by_prompt);
        let unit = Unit {
            log: Arc::clone(key),
            number: prompt.unwrap_or(measured.number as i64),
        };
        let place = self.place(&unit);
        if let Some(cluster) = self.clusters.get_mut(place) {
            cluster.positions += 1;
            cluster.text.extend(measured.text);
            cluster.unlisted.extend(measured.unlisted);
        }
        for (&metric, answer) in &measured.answers {
            let timed = !matches!(metric, Metric::PlanSeconds { .. }) || self.settings.timing;
            if timed {
                self.tallies.at(metric).add(place, answer);
            }
        }
        if prompt.is_some() {
            self.strip.add(
                &self.settings,
                metadata,
                &unit,
                measured.number,
                measured.token,
                &measured.answers,
            );
        }
    }

    fn place(&mut self, unit: &Unit) -> usize {
        if let Some(&place) = self.places.get(unit) {
            return place;
        }
        self.clusters.push(Cluster {
            number: unit.number,
            ..Cluster::default()
        });
        self.places.insert(unit.clone(), self.clusters.len() - 1);
        self.clusters.len() - 1
    }

    /// Adds the positions of another part.
    ///
    /// # Errors
    /// Parts that do not belong together: of another version of specgap, with other
    /// settings, of another pair of models; or with positions that are in both. Then
    /// nothing is added.
    pub fn merge(&mut self, other: &Self) -> Result<(), GapError> {
        self.fits(other).map_err(GapError::Parts)?;
        for (key, part) in &other.logs {
            match self.logs.get_mut(key) {
                None => {
                    self.logs.insert(Arc::clone(key), part.clone());
                }
                Some(own) => {
                    own.files.extend(part.files.clone());
                    own.without_draft += part.without_draft;
                    for range in &part.measured {
                        join(&mut own.measured, range.clone());
                    }
                    for (own, rest) in own.rest.iter_mut().zip(&part.rest) {
                        own.merge(rest);
                    }
                    if let (Some(own), Some(other)) = (&mut own.surprises, &part.surprises) {
                        own.merge(other);
                    }
                }
            }
        }
        let mut clusters = vec![0; other.clusters.len()];
        for (unit, &from) in &other.places {
            let place = self.place(unit);
            if let (Some(to), Some(own), Some(cluster)) = (
                clusters.get_mut(from),
                self.clusters.get_mut(place),
                other.clusters.get(from),
            ) {
                *to = place;
                own.positions += cluster.positions;
                own.text.extend(&cluster.text);
                own.unlisted.extend(&cluster.unlisted);
            }
        }
        for (&metric, tally) in &other.tallies {
            self.tallies.at(metric).merge(tally, &clusters);
        }
        self.strip.merge(&other.strip);
        self.paths = HeldPaths::merged(self.paths.take(), other.paths.as_ref());
        Ok(())
    }

    /// Checks whether another part belongs to the same report and has no position of this one's: if
    /// not, why, and what to do.
    ///
    /// # Errors
    /// The reason, in words.
    pub fn fits(&self, other: &Self) -> Result<(), String> {
        if self.tool != other.tool {
            return Err(format!(
                "was measured by {}, and the other part by {}; measure all parts with one version",
                other.tool, self.tool
            ));
        }
        self.settings.same(&other.settings)?;
        if self.kept != other.kept {
            return Err("was measured with another ⟨vocab⟩; give all parts the same".to_owned());
        }
        for part in other.logs.values() {
            self.admits(part)?;
        }
        // Audits are of some positions, which a part may have none of; of no positions, nothing.
        let whole = |part: &Self| -> BTreeSet<Metric> {
            let metrics = part.tallies.keys().copied();
            metrics.filter(|metric| !metric.is_audit()).collect()
        };
        let parts = [self, other].map(whole);
        if self.positions() > 0 && other.positions() > 0 && parts[0] != parts[1] {
            return Err(format!(
                "has {} numbers, and {} of them are in the other part, which has {}; a mean would \
                 be of some positions and said of all",
                parts[1].len(),
                parts[1].intersection(&parts[0]).count(),
                parts[0].len()
            ));
        }
        Ok(())
    }

    /// Checks whether a log, or a part of it, can be added.
    fn admits(&self, part: &LogPart) -> Result<(), String> {
        self.logs.values().try_for_each(|own| own.fits(part))
    }

    /// N, of what is measured.
    pub fn positions(&self) -> usize {
        self.logs.values().map(LogPart::count).sum()
    }

    /// Names of the logs, in the order of the report.
    pub fn logs(&self) -> Vec<&str> {
        self.logs.keys().map(|key| key.name.as_str()).collect()
    }

    /// Returns what was measured.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns how many tokens of every row were kept, if that was asked for.
    pub fn kept(&self) -> Option<usize> {
        self.kept
    }

    /// The command that measures all of it in one go; empty where there is none, for rows in
    /// memory and for rules and laws of the caller's own.
    pub fn command(&self) -> String {
        if self.logs.values().any(|log| log.held) || self.settings.has_own() {
            return String::new();
        }
        let logs = self.logs();
        let pool = if logs.len() > 1 { " --pool" } else { "" };
        let kept = self.kept.map(|n| format!(" --vocab {n}"));
        let mut depths = self.logs.values().filter_map(|log| log.summary.depth);
        let depth = depths.next().map(|one| one.depth);
        // Where several depths are compared each has its own in its name.
        let behind = depth.map_or_else(String::new, |depth| format!("-depth-{depth}"));
        let named = |log: &str| log.strip_suffix(&*behind).unwrap_or(log).to_owned();
        format!(
            "specgap gap {}{pool}{}{}{}",
            logs.iter()
                .copied()
                .map(named)
                .collect::<Vec<_>>()
                .join(" "),
            match depth {
                Some(2..) => behind.replacen("-depth-", " --depth ", 1),
                _ => String::new(),
            },
            self.settings.options(),
            kept.unwrap_or_default()
        )
    }

    /// The positions of the logs that are in no part, in words: one line each stretch.
    pub fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        for log in self.logs.values() {
            let all = log.summary.positions;
            let mut next = 0;
            let stretches = log.measured.iter().map(|range| (range.start, range.end));
            for (start, end) in stretches.chain([(all, all)]) {
                if next < start {
                    missing.push(format!(
                        "positions {next} to {} of {} ({all} in all): measured in no part",
                        start - 1,
                        log.summary.name
                    ));
                }
                next = end;
            }
        }
        missing
    }

    /// Places of the clusters with their sizes, in an order that depends on nothing but
    /// what they are.
    pub(super) fn sizes(&self) -> Vec<(usize, u64)> {
        self.places
            .values()
            .filter_map(|&place| Some((place, self.clusters.get(place)?.positions)))
            .collect()
    }

    /// Texts whose tokens were drawn at a temperature, as their logs say.
    pub(super) fn texts(&self, temperature: Temperature) -> Vec<&[(i64, Option<f64>)]> {
        let drawn = self.drawn_at(temperature);
        drawn.map(|cluster| cluster.text.as_slice()).collect()
    }

    /// Clusters of logs whose tokens were drawn at a temperature.
    pub(super) fn drawn_at(&self, temperature: Temperature) -> impl Iterator<Item = &Cluster> {
        let drawn = move |key: &Arc<LogKey>| {
            let sampled = self.logs.get(key).map(|log| log.sampled_at(&self.settings));
            matches!(sampled, Some(Ok(at)) if Temperature(at) == temperature)
        };
        let mut known: Option<(&Arc<LogKey>, bool)> = None;
        self.places
            .iter()
            .filter(move |(unit, _)| match known {
                Some((key, drawn)) if Arc::ptr_eq(key, &unit.log) => drawn,
                _ => {
                    let drawn = drawn(&unit.log);
                    known = Some((&unit.log, drawn));
                    drawn
                }
            })
            .filter_map(|(_, &place)| self.clusters.get(place))
    }
}

impl LogPart {
    fn new(log: &Log, settings: &Settings) -> Result<Self, GapError> {
        let mut metadata = log.metadata().clone();
        // The strip has those that are needed.
        metadata.token_text.clear();
        let (target, draft) = log.dtypes();
        let rows = if log.is_top_heavy() {
            "top-heavy"
        } else {
            "full"
        };
        let labels = log.labels()?;
        Ok(Self {
            summary: LogSummary {
                name: log.name(),
                positions: log.positions(),
                vocabulary: log.vocabulary(),
                rows: rows.to_owned(),
                listed: log.listed(),
                own_lists: log.has_own_lists(),
                dtypes: [target.to_string(), draft.to_string()],
                rest: Vec::new(),
                ignored_tensors: log.ignored_tensors().to_vec(),
                engine_tensors: (log.engine_tensors().into_iter())
                    .map(str::to_owned)
                    .collect(),
                repetition: looping::repetition(&labels)
                    .filter(|found| found.looping_positions > 0),
                surprise: None,
                unsaid_temperature: log.has_tokens() && log.metadata().sampling.is_none(),
                fit: fit_of(log, settings),
                masked: log.has_masks(),
                repeated_positions: looping::repeated_positions(&labels),
                without_draft: 0,
                depth: (log.depths() > 1).then(|| OfDepth {
                    depth: log.depth(),
                    of: log.depths(),
                }),
                missing_mass: log.missing_mass()?,
                files: Vec::new(),
                metadata,
            },
            identity: log.identity()?,
            files: Map::new(),
            held: log.is_held(),
            by_prompt: log.has_prompts(),
            has_tokens: log.has_tokens(),
            measured: Vec::new(),
            without_draft: 0,
            rest: vec![Rest::default(); log.metadata().rest_temperatures.len()],
            surprises: drawn_with(log, settings).map(|_| Surprises::default()),
        })
    }

    /// Positions that are measured.
    pub(super) fn count(&self) -> usize {
        let seen: usize = self.measured.iter().map(Range::len).sum();
        seen.saturating_sub(self.without_draft)
    }

    /// Returns what intervals count.
    pub(super) fn unit(&self) -> &'static str {
        if self.by_prompt { "prompt" } else { "position" }
    }

    pub(super) fn key(&self) -> LogKey {
        LogKey {
            name: self.summary.name.clone(),
            digest: self.identity.digest.clone(),
        }
    }

    /// The temperature at which its tokens were drawn, if it is measured and they were
    /// drawn from what is kept of the target: the one at which bounds on blocks can be estimated.
    pub(super) fn sampled_at(&self, settings: &Settings) -> Result<f64, String> {
        let Some(sampling) = &self.summary.metadata.sampling else {
            return Err(if self.has_tokens && self.by_prompt {
                "the log does not say how its tokens were drawn".to_owned()
            } else {
                NO_TOKENS.to_owned()
            });
        };
        if self.summary.depth.is_some() {
            Err(
                "the draft's rows depend on where a round begins; specgap length replays them"
                    .to_owned(),
            )
        } else if !self.has_tokens || !self.by_prompt {
            Err(NO_TOKENS.to_owned())
        } else if let Some(why) = drawn_otherwise(sampling, settings.cuts) {
            Err(why)
        } else if settings.temperatures.contains(&sampling.temperature) {
            Ok(sampling.temperature)
        } else {
            Err(format!(
                "the tokens were drawn at temperature {}, which is not asked for",
                sampling.temperature
            ))
        }
    }

    /// Checks whether another log, or part of this one, belongs into the same report.
    fn fits(&self, other: &Self) -> Result<(), String> {
        let (own, name) = (&self.summary, &other.summary.name);
        if self.identity.digest == other.identity.digest {
            if own.name != *name {
                return Err(format!(
                    "{name} is {} under another name; measure a log under one name, and once",
                    own.name
                ));
            }
            for range in &other.measured {
                let twice = (self.measured.iter())
                    .find(|own| own.start < range.end && range.start < own.end);
                if let Some(twice) = twice {
                    return Err(format!(
                        "positions {} to {} of {name} are in another part; they would count twice, \
                         give each part once",
                        twice.start.max(range.start),
                        twice.end.min(range.end) - 1
                    ));
                }
            }
            return Ok(());
        }
        let shared = (other.identity.shards.iter())
            .any(|shard| shard.positions > 0 && self.identity.shards.contains(shard));
        if shared {
            return Err(format!(
                "{name} has rows of {}, which would count twice; if one log has grown since, \
                 measure it again",
                own.name
            ));
        }
        if own.vocabulary != other.summary.vocabulary {
            return Err(format!(
                "{name} has V = {}, and {} has {}; a report is of one pair of models",
                other.summary.vocabulary, own.name, own.vocabulary
            ));
        }
        let (one, two) = (&own.metadata, &other.summary.metadata);
        for (what, one, two) in [
            ("target", &one.target, &two.target),
            ("draft", &one.draft, &two.draft),
            ("tokenizer", &one.tokenizer, &two.tokenizer),
        ] {
            if one != two {
                let words = |file: &Option<specgap_log::log::FileIdentity>| match file {
                    None => "none that it names".to_owned(),
                    Some(file) => match &file.sha256 {
                        None => file.name.clone(),
                        Some(hash) => format!("{} ({:.8})", file.name, hash),
                    },
                };
                return Err(format!(
                    "{name}: its {what} is {}, and that of {} is {}; a report is of one pair of \
                     models",
                    words(two),
                    own.name,
                    words(one)
                ));
            }
        }
        if self.by_prompt != other.by_prompt {
            let (with, without) = if self.by_prompt {
                (&own.name, name)
            } else {
                (name, &own.name)
            };
            return Err(format!(
                "{with} says which prompt each position belongs to and {without} does not; \
                 intervals count one or the other"
            ));
        }
        Ok(())
    }
}

/// Returns why the tokens of a text are none of the rows that are measured, if they are not: the
/// tokens that its sampler drew from are others than those that are kept.
fn drawn_otherwise(sampling: &Sampling, kept: Cuts) -> Option<String> {
    let (drawn, t) = (Cuts::from(sampling).or_as(kept), sampling.temperature);
    // The most probable token is kept by any.
    if drawn.at(t) == kept.at(t) || t == 0.0 {
        return None;
    }
    let words = |cuts: Cuts| cuts.effective().options().trim_start().to_owned();
    Some(match (drawn.keep_all(), kept.keep_all()) {
        (false, true) => format!(
            "the tokens were not drawn from the whole target; {} measures the rows that they \
             were drawn from",
            words(drawn)
        ),
        (true, _) => format!(
            "the tokens were drawn from the whole target, and the rows are measured with {}",
            words(kept)
        ),
        (false, false) => format!(
            "the tokens were drawn with {}, and the rows are measured with {}",
            words(drawn),
            words(kept)
        ),
    })
}

/// The temperature and the cuts with which a log's tokens were drawn, where it says so, in the order
/// that is asked for where it says none; else the one temperature that is asked for, with what is kept
/// of rows. At temperature 0 they are no sample.
pub(super) fn drawn_with(log: &Log, settings: &Settings) -> Option<(f64, Cuts)> {
    let (temperature, cuts) = match (&log.metadata().sampling, settings.temperatures.as_slice()) {
        (Some(sampling), _) => (
            sampling.temperature,
            Cuts::from(sampling).or_as(settings.cuts),
        ),
        (None, &[asked]) => (asked, settings.cuts),
        (None, _) => return None,
    };
    let is_sample = log.has_tokens() && temperature > 0.0 && temperature.is_finite();
    is_sample.then(|| (temperature, cuts.effective()))
}

/// Returns whether the draft's rows are about their own positions, at the text's temperature or the
/// highest that is asked for.
fn fit_of(log: &Log, settings: &Settings) -> Option<DraftFit> {
    let asked = || settings.temperatures.iter().copied().fold(0.0, f64::max);
    let at = drawn_with(log, settings).map_or_else(asked, |(temperature, _)| temperature);
    DraftFit::of(log, if at > 0.0 { at } else { 1.0 })
}

const NO_TOKENS: &str = "the log has no sampled tokens by prompt";

/// Adds a range to rising ranges that it does not meet.
fn join(ranges: &mut Vec<Range<usize>>, new: Range<usize>) {
    let at = ranges.partition_point(|range| range.end < new.start);
    let (mut joined, mut last) = (new, at);
    while let Some(range) = ranges.get(last).filter(|range| range.start <= joined.end) {
        joined = joined.start.min(range.start)..joined.end.max(range.end);
        last += 1;
    }
    ranges.splice(at..last, std::iter::once(joined));
}

#[cfg(test)]
mod tests {
    use super::join;

    #[test]
    fn ranges_join_where_they_touch() {
        let mut ranges = Vec::new();
        for new in [4..5, 0..1, 8..9, 5..6, 3..4, 1..2] {
            join(&mut ranges, new);
        }
        assert_eq!(ranges, [0..2, 3..6, 8..9]);
        join(&mut ranges, 2..3);
        assert_eq!(ranges, [0..6, 8..9]);
        join(&mut ranges, 6..8);
        assert_eq!(ranges.as_slice(), std::slice::from_ref(&(0..9)));
    }
}
