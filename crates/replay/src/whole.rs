//! Gap reports, whole: what is asked beside the settings, what several draft paths could give, and
//! what calls cost. The program, `merge` and the Python package make theirs here.

use crate::replay::{Timings, read_possible_with_paths};
use specgap_core::scheme::EngineName;
use specgap_core::verifier::VerifierName;
use specgap_log::log::{Log, LogError};
use specgap_measure::{
    self as gap, CallCost, CallCosts, GapError, GapReport, LogComparison, Pairing, Part,
    PositionSink, RuleCost, Settings, Summary,
};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::str::FromStr;

/// What a report says beside what is measured.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// The engine that advice starts from.
    pub engine: Option<EngineName>,
    /// Time of a draft step over that of a target step, as it was written.
    pub cost_ratio: Option<String>,
    /// Measured times, and their file.
    pub timings: Option<(PathBuf, Timings)>,
}

impl Given {
    /// Returns what calls with these numbers of drafts take, by the file of times.
    ///
    /// # Errors
    /// A rule that is none, and more drafts than the file has times for.
    pub fn costs(&self, drafts: &[usize]) -> Result<Option<CallCosts>, GapError> {
        let Some((path, timings)) = &self.timings else {
            return Ok(None);
        };
        let refused = |message: String| LogError::Format(path.clone(), message);
        for (index, rule) in timings.rules.iter().enumerate() {
            VerifierName::from_str(&rule.name)
                .map_err(|error| refused(format!("rules[{index}].name: {error}")))?;
        }
        let call = |&drafts: &usize| {
            let verifying = timings.verifying(drafts + 1).ok_or_else(|| {
                let most = timings.most_drafts().unwrap_or(0);
                refused(format!(
                    "verify: has no time for a pass of {} tokens, which {drafts} drafts need; \
                     give ⟨drafts⟩ up to {most}, or a longer table",
                    drafts + 1
                ))
            })?;
            Ok(CallCost {
                drafts,
                // All drafts of a position are drawn from one row.
                seconds: timings.draft_step.seconds + verifying + timings.overhead.seconds,
            })
        };
        let rule = |rule: &crate::replay::RuleTime| RuleCost {
            name: rule.name.clone(),
            seconds: rule.seconds,
        };
        Ok(Some(CallCosts {
            file: specgap_base::files::name(path),
            target_step: timings.target_step.seconds,
            calls: (drafts.iter().map(call)).collect::<Result<_, GapError>>()?,
            rules: timings.rules.iter().map(rule).collect(),
        }))
    }

    /// The report of what was measured.
    ///
    /// # Errors
    /// As [`Given::costs`].
    pub fn report(&self, summary: &Summary) -> Result<GapReport, GapError> {
        let mut report = summary.report(&summary.command());
        report.assume(self.engine);
        report.costs = self.costs(&summary.settings().drafts)?;
        let ratio = self.cost_ratio.as_ref();
        report.cost_ratio = ratio.and_then(|ratio| ratio.parse().ok());
        // Rows in memory have no command.
        if !report.command.is_empty() {
            let file = report.costs.iter().map(|costs| ("timings", &costs.file));
            for (option, value) in file.chain(ratio.map(|ratio| ("cost-ratio", ratio))) {
                report.command.push_str(&format!(" --{option} {value}"));
            }
        }
        Ok(report)
    }
}

/// What a gap report is asked for.
#[derive(Clone, Debug)]
pub struct Asked {
    /// What to measure.
    pub settings: Settings,
    /// Whether it is measured at the temperatures of the logs' texts, since none was asked for.
    pub at_their_own: bool,
    /// Depths of a round whose rows are measured, each by itself; rows as they are, if none.
    pub depths: BTreeSet<usize>,
    /// Whether logs are refused that are not of the first one's text.
    pub paired: bool,
    /// What the report says besides.
    pub given: Given,
}

impl Asked {
    /// The logs that are measured of those that are named, at each depth that is asked for; of
    /// several depths the names say which. What the logs say completes the settings.
    ///
    /// # Errors
    /// Depths that a log does not have, logs that say different orders of cuts, and unpaired ones.
    pub fn of_logs(&mut self, named: Vec<Log>, part: Part) -> Result<Vec<Log>, GapError> {
        let mut logs = Vec::new();
        for log in &named {
            for &depth in &self.depths {
                let view = log.at_depth(depth)?;
                logs.push(match self.depths.len() {
                    1 => view,
                    _ => view.called(&format!("{}-depth-{depth}", log.name())),
                });
            }
        }
        if self.depths.is_empty() {
            logs = named;
        }
        if self.at_their_own {
            self.settings.temperatures = Settings::usual_temperatures(&logs);
            if self.settings.cuts.keep_all() {
                self.settings.cuts = Settings::usual_cuts(&logs);
            }
        }
        self.settings.ordered(&logs)?;
        if self.paired {
            refuse_unpaired(&logs, part)?;
        }
        Ok(logs)
    }

    /// Measures some of the positions of logs of one pair of models, as [`gap::summarise`].
    ///
    /// # Errors
    /// As [`gap::summarise`]; and several depths, which are never one pair.
    pub fn summarise(
        &self,
        logs: &[Log],
        part: Part,
        table: Option<&mut dyn PositionSink>,
        progress: &(dyn Fn(usize) + Sync),
    ) -> Result<Summary, GapError> {
        if self.depths.len() > 1 {
            return Err(GapError::Settings(
                "⟨depth⟩: several depths are measured each by itself; ask for one".to_owned(),
            ));
        }
        let mut summary = gap::summarise(logs, &self.settings, part, table, progress)?;
        hold_paths(&mut summary, logs, part);
        Ok(summary)
    }

    /// Measures logs each by itself, as [`gap::summarise_each`].
    ///
    /// # Errors
    /// As [`gap::summarise_each`].
    pub fn summarise_each(
        &self,
        logs: &[Log],
        part: Part,
        table: Option<&mut dyn PositionSink>,
        progress: &(dyn Fn(usize) + Sync),
    ) -> Result<(Vec<Summary>, Vec<Pairing>), GapError> {
        let (mut each, pairings) =
            gap::summarise_each(logs, &self.settings, part, table, progress)?;
        for (summary, log) in each.iter_mut().zip(logs) {
            hold_paths(summary, std::slice::from_ref(log), part);
        }
        Ok((each, pairings))
    }

    /// Several logs side by side; each has a report of its own by [`Given::report`].
    pub fn comparison(&self, summaries: &[Summary], pairings: &[Pairing]) -> LogComparison {
        let kept = summaries.first().and_then(Summary::kept);
        let kept = kept.map_or_else(String::new, |n| format!(" --vocab {n}"));
        let paired = if self.paired { " --paired" } else { "" };
        let options = format!("{}{kept}{paired}", self.settings.options());
        let mut comparison = LogComparison::new(summaries, pairings, &options);
        if !self.depths.is_empty() && !comparison.command.is_empty() {
            let depths: Vec<String> = self.depths.iter().map(usize::to_string).collect();
            // Of several depths each has its own in its name.
            let behind = match &depths[..] {
                [first, _, ..] => format!("-depth-{first}"),
                _ => String::new(),
            };
            let named = comparison.logs.iter().step_by(depths.len());
            let names: Vec<&str> = named
                .map(|log| log.name.strip_suffix(&*behind).unwrap_or(&log.name))
                .collect();
            let (names, depths) = (names.join(" "), depths.join(","));
            comparison.command = format!("specgap gap {names} --depth {depths}{options}");
        }
        comparison.assume(self.given.engine);
        comparison
    }
}

/// Parts do not have all of a text: what draft paths could give is measured of the whole logs, by
/// their first part.
fn hold_paths(summary: &mut Summary, logs: &[Log], part: Part) {
    if part.index == 1 {
        let told = read_possible_with_paths(logs, &|_| ());
        summary.hold_paths(told.map_err(|error| error.message()));
    }
}

/// Refuses logs of which not every later one is compared with the first at the same positions.
fn refuse_unpaired(logs: &[Log], part: Part) -> Result<(), GapError> {
    let (Some((first, others)), 2..) = (logs.split_first(), logs.len()) else {
        return Err(GapError::Settings(
            "⟨paired⟩ compares logs; name at least two".to_owned(),
        ));
    };
    for log in others {
        if let Some(why) = Pairing::new(first, log, part)?.unpaired() {
            let message = format!(
                "cannot be paired with {}: {why}. Capture the drafts together (specgap capture with \
                 several --draft), or leave ⟨paired⟩ out",
                first.path().display()
            );
            let path = log.path().to_owned();
            return Err(LogError::Format(path, message).into());
        }
    }
    Ok(())
}
