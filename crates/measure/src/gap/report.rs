//! A summary as a report.

use super::chains::{accepted_along_text, rounds};
use super::coverage;
use super::data::{
    Cell, Comparison, FormulaError, Gap, GapReport, KnownEstimate, LogSummary, OneDraft, Optimum,
    OverlapRow, OwnLawRow, OwnNumbers, OwnRuleRow, PlanRow, RateAudit, Redrafted, RedraftedCell,
    RedraftedVerifier, RestMass, SCHEMA, VerifierRow,
};
use super::glossary::definitions;
use super::metric::{
    AboutLaw, AboutOwn, DraftRule, Listed, Metric, ONE_DRAFT, ONE_DRAFT_PAIRS, Own, Place, Rule,
    Temperature, listed, pairs, plans, rate_of, rules,
};
use super::own::OwnRule;
use super::own_answers::gap_of;
use super::own_law::{OwnLaw, STATUS};
use super::sequence::estimates;
use super::settings::{LawMeasured, Settings, SolvedPlans};
use super::summary::{LogPart, Summary};
use super::surprise::Surprises;
use super::tally::{ExactSum, Tally};
use specgap_base::setting::for_shell;
use specgap_statistics::advice::{Assumed, Change};
use specgap_statistics::holm;
use std::collections::BTreeMap;

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

    /// With what all estimates need.
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
    /// What could be changed, but where nothing may be advised.
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

    fn overlap(&self) -> Vec<OverlapRow> {
        self.temperatures()
            .filter_map(|temperature| {
                let tally = self.find(Metric::Overlap { temperature })?;
                Some(OverlapRow {
                    temperature: temperature.0,
                    estimate: tally.estimate(&self.sizes),
                    kind: tally.kind(),
                    width_max: tally.widest,
                    quantiles: tally.quantiles(),
                    along_text: accepted_along_text(self.summary.drawn_at(temperature)),
                })
            })
            .collect()
    }

    fn cells(&self) -> Vec<Cell> {
        let measured = |place: Place| self.summary.settings.measured(place.drafts).into_iter();
        self.places()
            .flat_map(|place| measured(place).filter_map(move |law| self.cell(place, &law)))
            .collect()
    }

    fn cell(&self, place: Place, measured: &LawMeasured<'_>) -> Option<Cell> {
        let law = measured.law;
        let metric = rate_of(place, law, None);
        let tally = self.find(metric)?;
        let rules = measured.rules.iter().filter_map(|&name| {
            let rate = rate_of(place, law, Some(name));
            self.row(name.as_str(), [rate, gap_of(place, law, name)], None)
        });
        let own = measured.own.iter();
        let own = own.filter_map(|&(own, rule)| self.own(place, own, rule));
        Some(Cell {
            temperature: place.temperature.0,
            drafts: place.drafts,
            scheme: measured.name.to_owned(),
            optimal_acceptance_rate: Optimum {
                estimate: tally.estimate_of(metric, &self.sizes),
                kind: tally.kind(),
                width_max: tally.widest,
                status: measured.status.to_owned(),
                quantiles: tally.quantiles(),
            },
            verifiers: rules.chain(own).collect(),
        })
    }

    fn redrafted(&self) -> Vec<Redrafted> {
        let settings = &self.summary.settings;
        let at = |temperature: Temperature, draft: DraftRule| {
            let known = |metric: Metric| {
                let metric = metric.redrafted(draft)?;
                let tally = self.find(metric)?;
                Some(KnownEstimate {
                    estimate: tally.estimate_of(metric, &self.sizes),
                    kind: tally.kind(),
                    width_max: tally.widest,
                })
            };
            let verifier = |(name, rate): (&str, Metric)| {
                Some(RedraftedVerifier {
                    name: name.to_owned(),
                    acceptance: known(rate)?,
                })
            };
            let cell = |drafts: usize, law: LawMeasured<'_>| {
                let place = Place::new(temperature, drafts);
                Some(RedraftedCell {
                    drafts,
                    scheme: law.name.to_owned(),
                    optimal_acceptance_rate: known(rate_of(place, law.law, None))?,
                    verifiers: law.rates(place).filter_map(verifier).collect(),
                })
            };
            let cells = settings.drafts.iter().flat_map(|&drafts| {
                let laws = settings.measured(drafts).into_iter();
                laws.filter_map(move |law| cell(drafts, law))
            });
            Some(Redrafted {
                temperature: temperature.0,
                draft_temperature: draft.temperature.0,
                draft_top_k: draft.top_k,
                draft_top_p: draft.top_p.map(|p| p.0),
                draft_min_p: draft.min_p.map(|p| p.0),
                draft_cut_order: draft.cut_order,
                overlap: known(Metric::Overlap { temperature })?,
                cells: cells.collect(),
            })
        };
        (self.temperatures())
            .flat_map(|temperature| {
                let rules = settings.draft_rules(temperature.0).into_iter();
                rules.filter_map(move |draft| at(temperature, draft))
            })
            .collect()
    }

    fn own(&self, place: Place, own: Own, rule: &OwnRule) -> Option<VerifierRow> {
        let of = |about: AboutOwn| Metric::Own { place, own, about };
        // What is not said everywhere is no mean over all positions.
        let everywhere = |about: AboutOwn| {
            let tally = self.find(of(about));
            tally.filter(|tally| tally.count() == self.summary.positions() as u64)
        };
        let away = everywhere(AboutOwn::TotalVariation);
        let algorithmic = everywhere(AboutOwn::Algorithmic);
        let numbers = OwnNumbers {
            algorithmic: algorithmic.map(|tally| tally.estimate(&self.sizes)),
            total_variation_max: away.map(|tally| tally.highest),
            total_variation_mean: away.map(|tally| tally.clustered(&self.sizes).mean),
        };
        let rates = [AboutOwn::Acceptance, AboutOwn::Gap].map(of);
        self.row(rule.name(), rates, Some(numbers))
    }

    fn row(
        &self,
        name: &str,
        numbers: [Metric; 2],
        own: Option<OwnNumbers>,
    ) -> Option<VerifierRow> {
        let [acceptance, gap] = numbers.map(|metric| self.find(metric));
        let (acceptance, gap) = (acceptance?, gap?);
        Some(VerifierRow {
            name: name.to_owned(),
            own,
            acceptance: acceptance.estimate_of(numbers[0], &self.sizes),
            kind: acceptance.kind(),
            width_max: acceptance.widest,
            p_value: gap.clustered(&self.sizes).p_value(),
            gap: Gap {
                estimate: gap.estimate_of(numbers[1], &self.sizes),
                quantiles: gap.quantiles(),
                max: gap.highest,
                histogram: gap.histogram.to_vec(),
            },
        })
    }

    fn comparisons(&self) -> Vec<Comparison> {
        let named = self.places().flat_map(|place| {
            pairs().map(move |(first, second)| Metric::Difference {
                place,
                first,
                second,
            })
        });
        let all = named.chain(self.own_differences());
        let mut rows: Vec<Comparison> = all.filter_map(|one| self.comparison(one)).collect();
        let p_values: Vec<f64> = rows.iter().map(|row| row.p_value).collect();
        for (row, corrected) in rows.iter_mut().zip(holm(&p_values)) {
            row.p_holm = corrected;
        }
        rows
    }

    /// Own laws and rules against those of the table and against one another, at the same
    /// positions.
    fn own_differences(&self) -> Vec<Metric> {
        let mut all = Vec::new();
        let asked = self.summary.settings.asked();
        for place in self.places() {
            for asked in asked.iter().filter(|asked| asked.drafts == place.drafts) {
                for one in &asked.laws {
                    let law = one.id;
                    let pairs = one.pairs.iter();
                    let abouts = pairs.map(|&(rule, other)| AboutLaw::Less(rule, other));
                    all.extend(abouts.map(|about| Metric::OfLaw { place, law, about }));
                }
                for one in &asked.own {
                    let own = one.own;
                    let abouts = one.pairs.iter().copied().map(AboutOwn::Less);
                    all.extend(abouts.map(|about| Metric::Own { place, own, about }));
                }
            }
        }
        all
    }

    /// A paired difference, its p-value not yet corrected for how many there are.
    fn comparison(&self, metric: Metric) -> Option<Comparison> {
        let tally = self.find(metric)?;
        let (temperature, drafts) = metric.at();
        let [first, second] = self.summary.settings.rates(metric).try_into().ok()?;
        Some(Comparison {
            temperature: temperature.0,
            drafts: drafts?,
            first,
            second,
            difference: tally.estimate_of(metric, &self.sizes),
            kind: tally.kind(),
            width_max: tally.widest,
            p_value: tally.p_value(metric, &self.sizes),
            p_holm: 1.0,
        })
    }

    fn one_draft(&self) -> Vec<OneDraft> {
        let at = |temperature: Temperature| {
            let place = Place::new(temperature, 1);
            let rate = |rule: Rule| self.find(Metric::Acceptance { place, rule });
            let [one_hot, _, exact_match] = ONE_DRAFT.map(rate);
            let (one_hot, exact_match) = (one_hot?, exact_match?);
            let token = self.find(Metric::Overlap { temperature })?;
            let names = [
                ("one-hot", "token"),
                ("one-hot", "exact-match"),
                ("token", "exact-match"),
            ];
            let pairs = ONE_DRAFT_PAIRS.into_iter().zip(names);
            let differences = pairs.filter_map(|((first, second), names)| {
                let difference = self.comparison(Metric::Difference {
                    place,
                    first,
                    second,
                });
                Some(Comparison {
                    first: names.0.to_owned(),
                    second: names.1.to_owned(),
                    ..difference?
                })
            });
            Some(OneDraft {
                temperature: temperature.0,
                one_hot: one_hot.estimate(&self.sizes),
                token: token.estimate(&self.sizes),
                exact_match: exact_match.estimate(&self.sizes),
                kind: one_hot.kind(),
                width_max: one_hot.widest.max(token.widest).max(exact_match.widest),
                differences: differences.collect(),
            })
        };
        let mut rows: Vec<OneDraft> = self.temperatures().filter_map(at).collect();
        let differences = rows.iter().flat_map(|row| &row.differences);
        let p_values: Vec<f64> = differences.map(|one| one.p_value).collect();
        let differences = rows.iter_mut().flat_map(|row| &mut row.differences);
        for (one, corrected) in differences.zip(holm(&p_values)) {
            one.p_holm = corrected;
        }
        rows
    }

    fn plans(&self) -> Vec<PlanRow> {
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

    fn audits(&self) -> Vec<RateAudit> {
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

    /// Why no plan was solved, where rates of plans are there.
    fn why_no_plans(&self) -> Option<&'static str> {
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

    fn published_formula(&self) -> Vec<FormulaError> {
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

/// What every word of the report means.
fn words(settings: &Settings) -> BTreeMap<String, String> {
    let mut all = definitions(settings.block_length);
    let said = |words: &str| match words {
        "" => String::new(),
        words => format!(": {words}"),
    };
    for rule in &settings.own_rules {
        let same = settings
            .own_rules
            .iter()
            .filter(|one| one.name() == rule.name());
        let laws: Vec<&str> = same.map(OwnRule::scheme).collect();
        let meaning = format!(
            "rule of the caller's own for {} drafts{}",
            laws.join(" and "),
            said(rule.told())
        );
        all.insert(format!("verifier {}", rule.name()), meaning);
    }
    for law in settings.own_laws.iter().filter(|law| !law.is_sampled()) {
        let meaning = format!(
            "draft law of the caller's own, made as {}{}; its alpha* {STATUS}",
            law.made(),
            said(law.told())
        );
        all.insert(format!("scheme {}", law.name()), meaning);
    }
    all
}

fn law_row(law: &OwnLaw) -> OwnLawRow {
    OwnLawRow {
        name: law.name().to_owned(),
        made: (!law.is_sampled()).then(|| law.made().as_str().to_owned()),
        drafts: law.numbers().to_vec(),
        words: law.told().to_owned(),
        digest: law.digested().map(str::to_owned),
    }
}

fn own_row(rule: &OwnRule) -> OwnRuleRow {
    OwnRuleRow {
        name: rule.name().to_owned(),
        scheme: rule.scheme().to_owned(),
        words: rule.told().to_owned(),
        digest: rule.digested().map(str::to_owned),
    }
}

/// What a log says of an engine's doings, which no number of a report is made of.
fn engine_tensors(log: &LogPart) -> Option<String> {
    let tensors = &log.summary.engine_tensors;
    (!tensors.is_empty()).then(|| {
        format!(
            "{} {} of {}: what an engine did there is checked and not measured, since these numbers \
             are made of the models' rows alone; specgap audit tests it",
            if tensors.len() == 1 { "tensor" } else { "tensors" },
            tensors.join(" and "),
            log.summary.name
        )
    })
}

fn log_summary(log: &LogPart) -> LogSummary {
    let count = log.count() as f64;
    let mean = |sum: ExactSum| sum.value() / count;
    let temperatures = log.summary.metadata.rest_temperatures.iter();
    LogSummary {
        without_draft: log.without_draft,
        surprise: log.surprises.as_ref().map(Surprises::surprise),
        rest: temperatures
            .zip(&log.rest)
            .filter(|_| count > 0.0)
            .map(|(&temperature, rest)| RestMass {
                temperature,
                target_mean: mean(rest.target_sum),
                target_max: rest.target_largest,
                draft_mean: mean(rest.draft_sum),
                draft_max: rest.draft_largest,
            })
            .collect(),
        files: log.files.values().cloned().collect(),
        ..log.summary.clone()
    }
}

/// Whether the text is not that of the rows, not all of it, or of another temperature.
fn is_void(logs: &[LogSummary], change: &Change) -> bool {
    logs.iter().any(|log| {
        let sampling = log.metadata.sampling.as_ref();
        let sampled = sampling.map(|sampling| sampling.temperature);
        log.surprise
            .is_some_and(|surprise| surprise.not_drawn().is_some())
            || log.fit.is_some_and(|fit| fit.is_strange())
            || log.metadata.unfinished().is_some()
            || sampled.is_some_and(|sampled| change.temperature != Some(sampled))
    })
}
