//! What a report on texts was measured on: its logs, their files, and how many texts.

use super::ReplayError;
use super::parts::Parts;
use super::read::{Reading, Texts};
use serde::{Deserialize, Serialize};
use specgap_core::scheme::EngineName;
use specgap_log::log::{FileDigest, Log, Metadata};
use specgap_measure::{DraftFit, Surprise};
use specgap_sampling::Cuts;
use specgap_statistics::advice::Assumed;
use specgap_statistics::{Clustered, Estimate};

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
pub(super) fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// What a report on texts was measured on, and by what; its fields are the report's own in
/// `report.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MeasuredTexts {
    /// `specgap`, with its version.
    pub tool: String,
    /// The command that made it, without paths of the machine; none where rows are in memory.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// Where the texts come from.
    pub logs: Vec<TextLog>,
    /// N, over all texts.
    pub positions: usize,
    /// How many texts there are.
    pub texts: usize,
    /// Prompts: the independent units of all intervals.
    pub clusters: usize,
    /// The temperature at which the text was drawn, and of all numbers.
    pub temperature: f64,
    /// What was kept of both rows, and renormalised, before a token was drawn, as logs say that their
    /// text was sampled. Absent where nothing was cut, or rows are what was left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cuts: Option<Cuts>,
    /// Tokens of the text that their rows do not list.
    pub unlisted: usize,
    /// Positions at which the log has no row of the draft.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub without_draft: usize,
}

impl MeasuredTexts {
    /// Returns whether the text was not drawn from these rows, or a draft's rows are about other
    /// positions: then nothing is advised.
    #[must_use]
    pub fn is_off(&self, surprise: &Surprise) -> bool {
        let mut fits = self.logs.iter().filter_map(|log| log.fit.as_ref());
        surprise.not_drawn().is_some() || fits.any(DraftFit::is_strange)
    }

    /// The engine that was asked for, or that all logs name.
    pub(super) fn engine(&self, asked: Option<EngineName>) -> Option<Assumed> {
        let logs = self.logs.iter();
        Assumed::of(asked, logs.map(|log| log.metadata.runtime.as_deref()))
    }
}

/// One log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TextLog {
    /// Its file or folder, without the folders around it.
    pub name: String,
    /// N.
    pub positions: usize,
    /// V.
    pub vocabulary: usize,
    /// The most tokens that a row lists.
    pub listed: usize,
    /// Whether the draft's rows are about their own positions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fit: Option<DraftFit>,
    /// Whether it has masks, which are applied to the target's rows and not to the draft's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub masked: bool,
    /// What was measured, by its contents: its files, or arrays in memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileDigest>,
    /// What it says of itself, without the texts of tokens.
    pub metadata: Metadata,
}

/// Returns what a report is of: texts of these logs, measured by a command.
fn measured(
    texts: &Texts,
    logs: &[Log],
    files: Vec<Vec<FileDigest>>,
    command: &str,
) -> MeasuredTexts {
    let held = logs.iter().any(Log::is_held);
    let logs = logs.iter().zip(files);
    let logs = logs.map(|(log, files)| text_log(log, files, texts.temperature));
    let logs = logs.collect();
    MeasuredTexts {
        tool: specgap_log::log::tool(),
        command: if held { "" } else { command }.to_owned(),
        logs,
        positions: texts.positions(),
        texts: texts.texts.len(),
        clusters: texts.clusters,
        temperature: texts.temperature,
        cuts: Some(texts.served).filter(|cuts| !cuts.keep_all()),
        unlisted: texts.unlisted(),
        without_draft: texts.lacking(),
    }
}

/// Reads the texts of some logs as [`Texts::read_with`] does, while their files are hashed, for a report that
/// a command makes.
pub(super) fn read_measured(
    logs: &[Log],
    temperature: Option<f64>,
    asked: &Reading<'_>,
    command: &str,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<(Texts, MeasuredTexts), ReplayError> {
    let files = |(number, log): (usize, &Log)| -> Result<Vec<FileDigest>, ReplayError> {
        let digests = log.digests(&(0..log.positions()))?;
        asked.parts.check(number, log, &digests)?;
        Ok(digests.into_values().collect())
    };
    let read = || Texts::read_with(logs, temperature, asked, progress);
    let hash = || logs.iter().enumerate().map(files).collect::<Result<_, _>>();
    let (texts, files): (_, Result<Vec<Vec<FileDigest>>, _>) = match asked.parts {
        // What parts have is of no use if they are of another log.
        Parts::Have(_) => {
            let files = hash()?;
            (read(), Ok(files))
        }
        _ => rayon::join(read, hash),
    };
    let (texts, files) = (texts?, files?);
    let of = measured(&texts, logs, files, command);
    Ok((texts, of))
}

fn text_log(log: &Log, files: Vec<FileDigest>, temperature: f64) -> TextLog {
    let mut metadata = log.metadata().clone();
    metadata.token_text.clear();
    TextLog {
        name: log.name(),
        positions: log.positions(),
        vocabulary: log.vocabulary(),
        listed: log.listed(),
        fit: DraftFit::of(log, temperature),
        masked: log.has_masks(),
        files,
        metadata,
    }
}

/// The command that captures logs with more options, as far as logs say how they were made.
pub(super) fn capture_with(logs: &[Log], options: &str) -> String {
    let made = logs.first().and_then(|log| log.metadata().command.clone());
    match made.filter(|command| command.starts_with("specgap capture")) {
        Some(command) => format!("{command} {options}"),
        None => format!("specgap capture ... {options}"),
    }
}

/// A ratio of two sums over prompts; those of which the second is 0 do not count. `None` where none is left.
pub(super) fn ratio(sums: impl Iterator<Item = (f64, f64)>) -> Option<Estimate> {
    let there: Vec<(f64, f64)> = sums.filter(|one| one.1 > 0.0).collect();
    (!there.is_empty()).then(|| Clustered::new(there.iter().copied()).estimate())
}

/// A number with bounds of what full rows would give.
pub(super) fn within(estimate: Estimate, truncation: Option<[f64; 2]>) -> Estimate {
    Estimate {
        truncation,
        ..estimate
    }
}

/// Adds entry by entry, as if the shorter ended in zeros.
pub(super) fn add_each(one: &mut Vec<f64>, other: &[f64]) {
    if one.len() < other.len() {
        one.resize(other.len(), 0.0);
    }
    one.iter_mut().zip(other).for_each(|(a, b)| *a += b);
}
