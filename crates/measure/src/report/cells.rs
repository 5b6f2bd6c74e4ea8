//! Rates at each place: overlaps, optima, verifiers, and those of drafts drawn in another way.

use super::super::chains::accepted_along_text;
use super::super::data::{
    Cell, Gap, KnownEstimate, Optimum, OverlapRow, OwnNumbers, Redrafted, RedraftedCell,
    RedraftedVerifier, VerifierRow,
};
use super::super::metric::{AboutOwn, DraftRule, Metric, Own, Place, Temperature, rate_of};
use super::super::own::OwnRule;
use super::super::own_answers::gap_of;
use super::super::settings::LawMeasured;
use super::Pages;

impl Pages<'_> {
    pub(super) fn overlap(&self) -> Vec<OverlapRow> {
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

    pub(super) fn cells(&self) -> Vec<Cell> {
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

    pub(super) fn redrafted(&self) -> Vec<Redrafted> {
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
            // Draws of one position are independent of those of another.
            noise: self.find(of(AboutOwn::Noise)).map(|tally| {
                specgap_statistics::statistics::NORMAL_95 * tally.total().value().sqrt()
                    / self.summary.positions() as f64
            }),
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
}
