//! What plans are short of, what audits found, and how far the published formula is off.

use super::super::data::{FormulaError, PlanRow, RateAudit};
use super::super::metric::{Metric, plans, rules};
use super::super::settings::SolvedPlans;
use super::super::tally::Tally;
use super::Pages;

impl Pages<'_> {
    pub(super) fn plans(&self) -> Vec<PlanRow> {
        let every = self.summary.settings.plans == SolvedPlans::Every;
        let mut rows: Vec<PlanRow> = self
            .places()
            .flat_map(|place| plans().map(move |rule| (place, rule)))
            .filter_map(|(place, rule)| {
                let check = self.find(Metric::PlanShortfall { place, rule });
                // Where all are solved it is the gap; of rows that list some tokens none is.
                let gap = self.find(Metric::Gap { place, rule });
                let solved = gap.filter(|gap| every && gap.truncated == 0);
                let below = check.or(solved)?;
                let error = self.find(Metric::PlanError { place, rule });
                let seconds = self.find(Metric::PlanSeconds { place, rule });
                let mean = |tally: &Tally| tally.clustered(&self.sizes).mean;
                Some(PlanRow {
                    temperature: place.temperature.0,
                    drafts: place.drafts,
                    scheme: rule.0.as_str().to_owned(),
                    positions: check.map(Tally::count),
                    shortfall_max: below.highest.max(0.0),
                    law_l1_max: error.map(|error| error.highest),
                    laws_measured: error.map(Tally::count),
                    seconds_mean: seconds.map(mean),
                })
            })
            .collect();
        // Of i.i.d. drafts optimal is level.
        let of = |row: &PlanRow| (row.temperature.to_bits(), row.drafts, row.scheme.clone());
        rows.dedup_by(|row, before| of(row) == of(before));
        rows
    }

    pub(super) fn audits(&self) -> Vec<RateAudit> {
        self.places()
            .flat_map(|place| rules().map(move |(rule, _)| (place, rule)))
            .filter_map(|(place, rule)| {
                let difference = self.find(Metric::AuditDifference { place, rule })?;
                let outside = self.find(Metric::AuditOutside { place, rule })?;
                let positions = difference.count();
                Some(RateAudit {
                    temperature: place.temperature.0,
                    drafts: place.drafts,
                    scheme: rule.0.as_str().to_owned(),
                    verifier: rule.1.as_str().to_owned(),
                    positions,
                    difference_max: difference.highest,
                    difference_mean: difference.total().value() / positions as f64,
                    width_max: difference.widest,
                    outside: outside.total().value().round() as u64,
                    kind: difference.kind(),
                })
            })
            .collect()
    }

    /// Returns why no plan was solved, where rates of plans are there.
    pub(super) fn why_no_plans(&self) -> Option<&'static str> {
        let gaps: Vec<&Tally> = plans()
            .flat_map(|rule| self.places().map(move |place| (place, rule)))
            .filter_map(|(place, rule)| self.find(Metric::Gap { place, rule }))
            .collect();
        if gaps.is_empty() || !self.plans().is_empty() {
            return None;
        }
        let cut = gaps.iter().any(|gap| gap.truncated > 0);
        Some(if cut { NO_PLANS } else { NO_AUDIT })
    }

    pub(super) fn published_formula(&self) -> Vec<FormulaError> {
        self.places()
            .filter(|place| place.drafts > 1)
            .filter_map(|place| {
                let tally = self.find(Metric::FormulaError { place })?;
                Some(FormulaError {
                    temperature: place.temperature.0,
                    drafts: place.drafts,
                    difference: tally.estimate(&self.sizes),
                    kind: tally.kind(),
                    width_max: tally.widest,
                    max: tally.highest,
                    min: tally.lowest,
                })
            })
            .collect()
    }
}

/// Why rows that list some tokens only have no plans.
const NO_PLANS: &str = "plans of optimal: rows list some tokens only, and a plan is of one full \
    row; what it accepts is the optimum, whose bounds are measured";

/// Why some of a log's positions have no plans.
const NO_AUDIT: &str = "plans of optimal: none of these positions is audited, and plans are solved \
    at audited positions alone (⟨plans⟩ every solves all); what optimal accepts is alpha*, by a \
    theorem";
