//! A summary as a report.

mod cells;
mod comparisons;
mod logs;
mod plans;

use super::chains::rounds;
use super::coverage;
use super::data::{GapReport, LogSummary, SCHEMA};
use super::metric::{Listed, Metric, Place, Temperature, listed};
use super::sequence::estimates;
use super::summary::Summary;
use super::tally::Tally;
use logs::{engine_tensors, is_void, law_row, log_summary, own_row, words};
use specgap_base::setting::for_shell;
use specgap_statistics::advice::{Assumed, Change};

impl Summary {
    /// The report of what is measured; `command` goes into it.
    pub fn report(&self, command: &str) -> GapReport {
        let pages = self.pages();
        let settings = &self.settings;
        let blocks = settings
            .temperatures
            .iter()
            .flat_map(|&temperature| {
                let texts = self.texts(Temperature(temperature));
                estimates(&texts, temperature, settings.block_length, &settings.drafts)
            })
            .collect();
        let (mut along, mut not_along) = (Vec::new(), Vec::new());
        for &temperature in &settings.temperatures {
            let drawn = self.drawn_at(Temperature(temperature));
            match rounds(drawn, temperature, settings.block_length) {
                Ok(found) => along.extend(found),
                Err(why) => not_along.push(format!(
                    "draft lengths along the text, at temperature {temperature}: {why}"
                )),
            }
        }
        let by_prompt = self.logs.values().all(|log| log.by_prompt);
        // Settings that measure nothing were refused before anything was measured.
        let mut missing = coverage::left_out(settings).unwrap_or_default();
        for log in self.logs.values() {
            if let Err(why) = log.sampled_at(settings) {
                let line = format!("bounds on blocks, and draft lengths along the text: {why}");
                if !missing.contains(&line) {
                    missing.push(line);
                }
            }
        }
        missing.extend(not_along);
        missing.extend(pages.why_no_plans().map(str::to_owned));
        missing.extend(self.logs.values().filter_map(engine_tensors));
        missing.extend(self.missing());
        let (draft_paths, no_paths) = self.draft_paths();
        missing.extend(no_paths);
        GapReport {
            schema: SCHEMA,
            engine: self.engine(),
            advice: pages.advice(),
            tool: self.tool.clone(),
            command: command.to_owned(),
            seed: settings.seed,
            logs: self.logs.values().map(log_summary).collect(),
            positions: self.positions(),
            clusters: self.places.len(),
            cluster_unit: if by_prompt { "prompt" } else { "position" }.to_owned(),
            definitions: words(settings),
            overlap: pages.overlap(),
            cells: pages.cells(),
            comparisons: pages.comparisons(),
            one_draft: pages.one_draft(),
            redrafted: pages.redrafted(),
            served: (!settings.cuts.keep_all()).then_some(settings.cuts),
            published_formula: pages.published_formula(),
            plans: pages.plans(),
            audits: pages.audits(),
            blocks,
            rounds: along,
            draft_paths,
            cost_ratio: None,
            costs: None,
            strip: self.strip.strip(settings),
            own_rules: settings.own_rules.iter().map(own_row).collect(),
            own_laws: settings.own_laws.iter().map(law_row).collect(),
            left_out: missing.iter().map(|line| for_shell(line)).collect(),
        }
    }

    /// The engine that the logs name.
    pub(super) fn engine(&self) -> Option<Assumed> {
        let logs = self.logs.values();
        Assumed::of(
            None,
            logs.map(|log| log.summary.metadata.runtime.as_deref()),
        )
    }

    /// Returns it with what all estimates need.
    pub(super) fn pages(&self) -> Pages<'_> {
        Pages {
            summary: self,
            sizes: self.sizes(),
        }
    }
}

/// A summary with what all its estimates need.
pub(super) struct Pages<'a> {
    pub summary: &'a Summary,
    /// The places of its clusters, with their positions.
    pub sizes: Vec<(usize, u64)>,
}

impl Pages<'_> {
    /// Returns what could be changed, but where nothing may be advised.
    pub(super) fn advice(&self) -> Vec<Change> {
        let logs: Vec<LogSummary> = self.summary.logs.values().map(log_summary).collect();
        let mut advice = self.changes(&self.one_draft());
        advice.retain(|change| !is_void(&logs, change));
        advice
    }

    pub(super) fn find(&self, metric: Metric) -> Option<&Tally> {
        self.summary.tallies.get(&metric)
    }

    fn temperatures(&self) -> Listed<Temperature> {
        let all = &self.summary.settings.temperatures;
        listed(all.iter().copied().map(Temperature))
    }

    pub(super) fn places(&self) -> Listed<Place> {
        let mut all = Vec::new();
        for temperature in self.temperatures() {
            for &drafts in &self.summary.settings.drafts {
                all.push(Place::new(temperature, drafts));
            }
        }
        all.into_iter()
    }
}
