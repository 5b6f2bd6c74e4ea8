//! Differences at the same positions, with how surely they are none.

use super::super::data::{Comparison, OneDraft};
use super::super::metric::{
    AboutLaw, AboutOwn, LIKELIEST, MATCHED, Metric, ONE_DRAFT_PAIRS, Place, Rule, Temperature,
    one_draft_name, pairs,
};
use super::Pages;
use specgap_statistics::holm;

impl Pages<'_> {
    pub(super) fn comparisons(&self) -> Vec<Comparison> {
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

    pub(super) fn one_draft(&self) -> Vec<OneDraft> {
        let at = |temperature: Temperature| {
            let place = Place::new(temperature, 1);
            let rate = |rule: Rule| self.find(Metric::Acceptance { place, rule });
            let (one_hot, exact_match) = (rate(LIKELIEST)?, rate(MATCHED)?);
            let token = self.find(Metric::Overlap { temperature })?;
            let differences = ONE_DRAFT_PAIRS.into_iter().filter_map(|(first, second)| {
                let difference = self.comparison(Metric::Difference {
                    place,
                    first,
                    second,
                });
                Some(Comparison {
                    first: one_draft_name(first).to_owned(),
                    second: one_draft_name(second).to_owned(),
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
}
