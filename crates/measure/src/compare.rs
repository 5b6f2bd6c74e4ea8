//! Several logs side by side.

use super::data::{Repetition, SCHEMA, Surprise};
use super::fit::DraftFit;
use super::metric::{AboutLaw, AboutOwn, Metric, ONE_DRAFT, Place, Temperature, rate_of};
use super::pairing::{LogDifference, Pairing};
use super::settings::Settings;
use super::summary::Summary;
use super::surprise::Surprises;
use super::tally::Tally;
use serde::{Deserialize, Serialize};
use specgap_log::log::{FileDigest, MissingMass};
use specgap_number::known::Kind;
use specgap_sampling::Cuts;
use specgap_statistics::Estimate;
use specgap_statistics::advice::{Assumed, Change};

/// The rates of several logs, each measured by itself, and how far those of each later log
/// are from the first one's.
///
/// Where a log holds the same text as the first, differences are of the same positions, with
/// the interval of a mean of differences by prompt: what all prompts have in common cancels.
/// Where it does not, they are differences of two means, with the interval of independent
/// samples.
///
/// # Example
/// ```no_run
/// use specgap_measure::{LogComparison, Part, Settings, summarise_each};
/// use specgap_log::log::Log;
/// let logs = [Log::open("shallow".as_ref())?, Log::open("deep".as_ref())?];
/// let settings = Settings::new(&[1.0], &[2], 0)?;
/// let (each, pairings) = summarise_each(&logs, &settings, Part::WHOLE, None, &|_| ())?;
/// let both = LogComparison::new(&each, &pairings, &settings.options());
/// for rate in &both.rates {
///     println!("{}: {:?}", rate.what, rate.differences[1]);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogComparison {
    /// [`SCHEMA`], that of each log's report.
    pub schema: u32,
    /// `comparison`, which tells it from a report of one pair.
    pub kind: String,
    /// `specgap`, with its version.
    pub tool: String,
    /// The command that made it, without paths of the machine; none where rows are in memory, or
    /// where a rule or a law is the caller's own.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// The logs, in the order in which they were named.
    pub logs: Vec<ComparedLog>,
    /// Whether all differences are of the same positions.
    pub paired: bool,
    /// What was cut of all rows at every temperature, if anything was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served: Option<Cuts>,
    /// The engine that advice starts from, where one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<Assumed>,
    /// The rates.
    pub rates: Vec<ComparedRate>,
}

/// A log of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparedLog {
    /// Its file or folder, without the folders around it.
    pub name: String,
    /// The folder of its own report.
    pub folder: String,
    /// The target model, if it names one.
    pub target: Option<String>,
    /// The draft model, if it names one.
    pub draft: Option<String>,
    /// V.
    pub vocabulary: usize,
    /// N.
    pub positions: usize,
    /// Independent units of the intervals.
    pub clusters: usize,
    /// `prompt` or `position`.
    pub cluster_unit: String,
    /// Texts that repeat themselves, if any does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repetition: Option<Repetition>,
    /// Whether its text looks drawn from its rows, if it says how it was drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surprise: Option<Surprise>,
    /// Whether the draft's rows are about their own positions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fit: Option<DraftFit>,
    /// Whether it has masks, which are applied to the target's rows and not to the draft's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub masked: bool,
    /// Whether the drafter is parallel: its rows are laws of single tokens, not joint ones.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parallel: bool,
    /// Of a log that is not finished: how many prompts it has, and how many it will.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<[usize; 2]>,
    /// Positions whose index stands before them in the same text already.
    #[serde(default, skip_serializing_if = "super::data::is_zero")]
    pub repeated_positions: usize,
    /// Mass that lists of probabilities leave out, where the log does not give it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_mass: Option<MissingMass>,
    /// What was measured, by its contents: its files, or arrays in memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileDigest>,
    /// The temperature at which its text was sampled, if it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled_at: Option<f64>,
    /// What an engine could change, from what it does now, by this log alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<Change>,
    /// What it has in common with the first log; of that itself, nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against_first: Option<AgainstFirst>,
}

/// What a log has in common with the first one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgainstFirst {
    /// Whether the two are compared position by position.
    pub paired: bool,
    /// If so, the positions that both have: of the same prompt, index and token, after
    /// the same beginning.
    pub positions: usize,
    /// Prompts with such positions.
    pub prompts: usize,
    /// If not, why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// One number of every log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparedRate {
    /// `overlap`, `optimum` (alpha*) or `acceptance`.
    pub what: String,
    /// Applied to target and draft alike.
    pub temperature: f64,
    /// n; of the overlap, none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drafts: Option<usize>,
    /// How the drafts are drawn; of the overlap, nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<String>,
    /// Whose acceptance it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "specgap_core::rule::read_names")]
    pub verifier: Option<String>,
    /// For each log, the mean with its interval, and how it came about.
    pub estimates: Vec<Option<ComparedEstimate>>,
    /// For each log, its number minus the first log's; of the first, nothing.
    pub differences: Vec<Option<LogDifference>>,
}

/// A number of one log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparedEstimate {
    /// The mean over all of the log's positions, with the log's own interval.
    #[serde(flatten)]
    pub estimate: Estimate,
    /// How well it is known, as the log's own report says.
    pub kind: Kind,
    /// The widest enclosure of any position.
    pub width_max: f64,
}

/// A number of a log, with the places and the sizes of the log's clusters.
type SizedTally<'a> = (&'a Tally, &'a [(usize, u64)]);

impl LogComparison {
    /// Compares summaries of one log each, with what each but the first has in common with the
    /// first. `options` are those of the command, each after a space.
    pub fn new(summaries: &[Summary], pairings: &[Pairing], options: &str) -> Self {
        let name = |summary: &Summary| Some(summary.logs.values().next()?.summary.name.clone());
        let names: Vec<String> = summaries.iter().filter_map(name).collect();
        let folders = folders(&names);
        let mut logs: Vec<ComparedLog> = Vec::with_capacity(summaries.len());
        for ((number, summary), folder) in summaries.iter().enumerate().zip(folders) {
            let pairing = number.checked_sub(1).and_then(|at| pairings.get(at));
            logs.extend(compared_log(summary, pairing, folder));
        }
        let sizes: Vec<Vec<(usize, u64)>> = summaries.iter().map(Summary::sizes).collect();
        let metrics = summaries
            .first()
            .map_or_else(Vec::new, |summary| metrics(summary.settings()));
        let rate = |metric: Metric| {
            let found = summaries.iter().zip(&sizes);
            let tallies: Vec<Option<SizedTally<'_>>> = found
                .map(|(summary, sizes)| Some((summary.tallies.get(&metric)?, sizes.as_slice())))
                .collect();
            let settings = summaries.first()?.settings();
            let rate = ComparedRate {
                estimates: (tallies.iter())
                    .map(|&one| {
                        let (tally, sizes) = one?;
                        Some(ComparedEstimate {
                            estimate: tally.estimate_of(metric, sizes),
                            kind: tally.kind(),
                            width_max: tally.widest,
                        })
                    })
                    .collect(),
                differences: (0..tallies.len())
                    .map(|log| {
                        let pairing = pairings.get(log.checked_sub(1)?)?;
                        let (first, own) = ((*tallies.first()?)?, (*tallies.get(log)?)?);
                        difference(metric, pairing, first, own)
                    })
                    .collect(),
                ..named(metric, settings)?
            };
            rate.estimates.iter().any(Option::is_some).then_some(rate)
        };
        let names: Vec<&str> = logs.iter().map(|log| log.name.as_str()).collect();
        let held = (summaries.iter())
            .any(|one| one.logs.values().any(|log| log.held) || one.settings().has_own());
        let against = || logs.iter().filter_map(|log| log.against_first.as_ref());
        Self {
            schema: SCHEMA,
            kind: "comparison".to_owned(),
            tool: specgap_log::log::tool(),
            command: match held {
                true => String::new(),
                false => format!("specgap gap {}{options}", names.join(" ")),
            },
            paired: against().count() > 0 && against().all(|one| one.paired),
            served: (summaries.first())
                .map(|summary| summary.settings().cuts)
                .filter(|cuts| !cuts.keep_all()),
            engine: engine_of(summaries),
            rates: metrics.into_iter().filter_map(rate).collect(),
            logs,
        }
    }
}

/// The folders of the reports of logs with these names, beside the comparison's own files: each
/// of one name, which no other has, also where capitals do not count.
pub fn folders(names: &[String]) -> Vec<String> {
    /// How the names of a page's own files end.
    const ENDINGS: [&str; 8] = [
        ".json", ".md", ".html", ".svg", ".png", ".pdf", ".csv", ".tex",
    ];
    let mut folders: Vec<String> = Vec::with_capacity(names.len());
    for name in names {
        let plain = name.replace(|c: char| c.is_control() || "/\\:".contains(c), "_");
        let plain = match plain.as_str() {
            "" | "." | ".." => "log".to_owned(),
            _ => plain,
        };
        let (mut folder, mut number) = (plain.clone(), 2);
        let lower = plain.to_lowercase();
        let is_a_file = ENDINGS.iter().any(|ending| lower.ends_with(ending));
        while (is_a_file && folder == plain)
            || (folders.iter()).any(|one| one.to_lowercase() == folder.to_lowercase())
        {
            folder = format!("{plain}-{number}");
            number += 1;
        }
        folders.push(folder);
    }
    folders
}

/// The engine that all logs name.
fn engine_of(summaries: &[Summary]) -> Option<Assumed> {
    let first = summaries.first()?.engine();
    first.filter(|first| {
        summaries
            .iter()
            .all(|one| one.engine().as_ref() == Some(first))
    })
}

fn compared_log(
    summary: &Summary,
    pairing: Option<&Pairing>,
    folder: String,
) -> Option<ComparedLog> {
    let part = summary.logs.values().next()?;
    let log = &part.summary;
    let name =
        |file: &Option<specgap_log::log::FileIdentity>| file.as_ref().map(|file| file.name.clone());
    Some(ComparedLog {
        // Arrays have no name of their own that anybody gave.
        name: match part.held {
            true => folder.clone(),
            false => log.name.clone(),
        },
        folder,
        target: name(&log.metadata.target),
        draft: name(&log.metadata.draft),
        vocabulary: log.vocabulary,
        positions: summary.positions(),
        clusters: summary.sizes().len(),
        cluster_unit: part.unit().to_owned(),
        repetition: log.repetition,
        surprise: part.surprises.as_ref().map(Surprises::surprise),
        fit: log.fit,
        masked: log.masked,
        parallel: log.metadata.is_parallel() && log.depth.is_none(),
        unfinished: log.metadata.unfinished(),
        repeated_positions: log.repeated_positions,
        missing_mass: log.missing_mass,
        files: part.files.values().cloned().collect(),
        sampled_at: log.metadata.sampling.as_ref().map(|how| how.temperature),
        advice: summary.pages().advice(),
        against_first: pairing.map(|pairing| AgainstFirst {
            paired: pairing.unpaired().is_none(),
            positions: pairing.positions(),
            prompts: pairing.prompts(),
            why: pairing.unpaired().map(str::to_owned),
        }),
    })
}

/// Every rate that is measured, in the order of reports.
fn metrics(settings: &Settings) -> Vec<Metric> {
    let mut all = Vec::new();
    for &temperature in &settings.temperatures {
        let temperature = Temperature(temperature);
        all.push(Metric::Overlap { temperature });
        // What engines do with one draft is measured whatever is asked for.
        let place = Place::new(temperature, 1);
        if !settings.drafts.contains(&1) {
            all.extend(ONE_DRAFT.map(|rule| Metric::Acceptance { place, rule }));
        }
        for &drafts in &settings.drafts {
            let place = Place::new(temperature, drafts);
            for law in settings.measured(drafts) {
                all.push(rate_of(place, law.law, None));
                all.extend(law.rates(place).map(|(_, rate)| rate));
            }
        }
    }
    all
}

/// Returns what a rate is about; nothing if it is none.
fn named(metric: Metric, settings: &Settings) -> Option<ComparedRate> {
    let (scheme, verifier) = match metric {
        Metric::Overlap { .. } => (None, None),
        Metric::Optimum { scheme, .. } => (Some(scheme.as_str()), None),
        Metric::Acceptance { rule, .. } => (Some(rule.0.as_str()), Some(rule.1.as_str())),
        Metric::OfLaw { law, about, .. } => {
            let rule = match about {
                AboutLaw::Optimum => None,
                AboutLaw::Acceptance(rule) => Some(rule.as_str()),
                AboutLaw::Gap(_) | AboutLaw::Less(..) => return None,
            };
            (Some(settings.own_laws.get(law.0)?.name()), rule)
        }
        Metric::Own {
            own,
            about: AboutOwn::Acceptance,
            ..
        } => {
            let rule = settings.own_rules.get(own.0)?;
            (Some(rule.scheme()), Some(rule.name()))
        }
        _ => return None,
    };
    let (temperature, drafts) = metric.at();
    Some(ComparedRate {
        what: metric.word().to_owned(),
        temperature: temperature.0,
        drafts,
        scheme: scheme.map(str::to_owned),
        verifier: verifier.map(str::to_owned),
        estimates: Vec::new(),
        differences: Vec::new(),
    })
}

/// A log's number minus the first one's, at the same positions if there are such.
fn difference(
    metric: Metric,
    pairing: &Pairing,
    (first, first_sizes): SizedTally<'_>,
    (own, own_sizes): SizedTally<'_>,
) -> Option<LogDifference> {
    if pairing.unpaired().is_none() {
        return pairing.difference(metric);
    }
    let ([first_low, first_high], [own_low, own_high]) = (first.bounds(), own.bounds());
    let (first_mean, own_mean) = (first.clustered(first_sizes), own.clustered(own_sizes));
    let difference = own_mean.minus(&first_mean);
    let bounds = [own_low - first_high, own_high - first_low];
    let sides = [first, own];
    Some(LogDifference::new(metric, sides, difference, bounds, false))
}
