//! Several logs side by side.

use super::data::{Estimate, GapReport, SCHEMA};
use crate::known::Kind;
use serde::{Deserialize, Serialize};

/// The headline rates of several logs, each measured by itself.
///
/// Nothing is pooled and nothing is paired: every interval is that of its own log, so that
/// two of them say less than a paired comparison of the same positions would.
///
/// # Example
/// ```
/// use specgap::gap::{GapReport, LogComparison};
/// # fn compare(first: GapReport, second: GapReport) {
/// let both = LogComparison::new(&[first, second], " --drafts 2 --temperature 1.0");
/// assert_eq!(both.rates[0].estimates.len(), 2);
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogComparison {
    /// [`SCHEMA`], that of each log's report.
    pub schema: u32,
    /// `comparison`, which tells it from a report of one pair.
    pub kind: String,
    /// `specgap`, with its version.
    pub tool: String,
    /// The command that made it, without paths of the machine.
    pub command: String,
    /// The logs, in the order in which they were named.
    pub logs: Vec<ComparedLog>,
    /// Whether intervals are of paired differences: they are not.
    pub paired: bool,
    /// The rates.
    pub rates: Vec<ComparedRate>,
}

/// A log of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
}

/// One number of every log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    pub verifier: Option<String>,
    /// For each log, the mean with its interval, and how it came about.
    pub estimates: Vec<Option<ComparedEstimate>>,
}

/// A number of one log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparedEstimate {
    /// The mean, with the log's own interval.
    #[serde(flatten)]
    pub estimate: Estimate,
    /// As in the log's own report.
    pub kind: Kind,
}

type Rates = Vec<(ComparedRate, ComparedEstimate)>;

impl LogComparison {
    /// Of reports of one log each; `options` are those of the command, each after a space.
    pub fn new(reports: &[GapReport], options: &str) -> Self {
        let mut logs: Vec<ComparedLog> = Vec::with_capacity(reports.len());
        for report in reports {
            let Some(log) = report.logs.first() else {
                continue;
            };
            let mut folder = log.name.clone();
            let mut number = 2;
            // Names on file systems that know no capitals, too.
            while logs
                .iter()
                .any(|one| one.folder.eq_ignore_ascii_case(&folder))
            {
                folder = format!("{}-{number}", log.name);
                number += 1;
            }
            let name = |file: &Option<crate::log::FileIdentity>| {
                file.as_ref().map(|file| file.name.clone())
            };
            logs.push(ComparedLog {
                name: log.name.clone(),
                folder,
                target: name(&log.metadata.target),
                draft: name(&log.metadata.draft),
                vocabulary: log.vocabulary,
                positions: report.positions,
                clusters: report.clusters,
                cluster_unit: report.cluster_unit.clone(),
            });
        }
        let mut rates: Vec<ComparedRate> = Vec::new();
        for (number, report) in reports.iter().enumerate() {
            for (rate, estimate) in rates_of(report) {
                let known = rates.iter_mut().find(|one| {
                    let key = |one: &ComparedRate| ComparedRate {
                        estimates: Vec::new(),
                        ..one.clone()
                    };
                    key(one) == rate
                });
                let row = match known {
                    Some(row) => row,
                    None => {
                        rates.push(ComparedRate {
                            estimates: vec![None; reports.len()],
                            ..rate
                        });
                        let last = rates.len() - 1;
                        &mut rates[last]
                    }
                };
                row.estimates[number] = Some(estimate);
            }
        }
        let names: Vec<&str> = logs.iter().map(|log| log.name.as_str()).collect();
        Self {
            schema: SCHEMA,
            kind: "comparison".to_owned(),
            tool: concat!("specgap ", env!("CARGO_PKG_VERSION")).to_owned(),
            command: format!("specgap gap {}{options}", names.join(" ")),
            logs,
            paired: false,
            rates,
        }
    }
}

/// The headline rates of one report, in its order.
fn rates_of(report: &GapReport) -> Rates {
    let mut rates = Vec::new();
    for row in &report.overlap {
        rates.push((
            ComparedRate {
                what: "overlap".to_owned(),
                temperature: row.temperature,
                drafts: None,
                scheme: None,
                verifier: None,
                estimates: Vec::new(),
            },
            ComparedEstimate {
                estimate: row.estimate,
                kind: row.kind,
            },
        ));
    }
    for cell in &report.cells {
        let rate = |what: &str, verifier: Option<&str>| ComparedRate {
            what: what.to_owned(),
            temperature: cell.temperature,
            drafts: Some(cell.drafts),
            scheme: Some(cell.scheme.clone()),
            verifier: verifier.map(str::to_owned),
            estimates: Vec::new(),
        };
        let best = &cell.optimal_acceptance_rate;
        rates.push((
            rate("optimum", None),
            ComparedEstimate {
                estimate: best.estimate,
                kind: best.kind,
            },
        ));
        for row in &cell.verifiers {
            rates.push((
                rate("acceptance", Some(&row.name)),
                ComparedEstimate {
                    estimate: row.acceptance,
                    kind: row.kind,
                },
            ));
        }
    }
    rates
}
