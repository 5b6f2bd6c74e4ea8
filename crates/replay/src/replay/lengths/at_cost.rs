//! What is best at a cost.

use super::super::timings::Timings;
use super::data::{AtCost, Chosen, ChosenPolicy, Faster, Parameter};
use super::drafts::Drafts;
use super::measure::{Measurement, TextCoins};
use super::outcome::{Half, Played};
use super::policy::FAMILIES;
use specgap_measure::statistics::Clustered;

impl Measurement<'_> {
    /// What is best at a cost, each chosen on every other prompt: a fixed length, and the
    /// parameter of every other family whose drafts are known.
    pub(super) fn at_cost(&self, timings: &Timings, played: &[Played]) -> Option<AtCost> {
        let (mut chosen, mut policies) = (Vec::<Chosen>::new(), Vec::new());
        let (mut paired, mut before) = (Vec::new(), Vec::<Vec<(f64, f64)>>::new());
        for way in self.ways() {
            let (drafts, verifier) = way;
            let best = |family: &str| {
                let of_family = played.iter().filter(|one| {
                    one.way == way && one.policy.family.name == family && one.known.is_whole()
                });
                let speeds = of_family.filter_map(|one| {
                    let half = Half::new(&one.outcomes, &self.tokens, 0);
                    Some((half.group().speed(timings)?.mean, one))
                });
                let best = speeds.reduce(|best, one| if best.0 >= one.0 { best } else { one });
                let (flattered, one) = best?;
                let half = Half::new(&one.outcomes, &self.tokens, 1);
                (!half.tokens.is_empty()).then_some((flattered, one.policy, half))
            };
            let Some((flattered, fixed, reports)) = best("fixed") else {
                continue;
            };
            let reported_on = reports.tokens.len();
            let chosen_on = self.texts.clusters - reported_on;
            let fixed_pairs = reports.group().times(timings, false)?.pairs;
            for (other, others) in chosen.iter().zip(&before) {
                let both = fixed_pairs.iter().copied().zip(others.iter().copied());
                paired.push(Faster {
                    drafts,
                    verifier: verifier.as_str().to_owned(),
                    parameter: fixed.parameter as u64,
                    over_drafts: other.drafts,
                    over_verifier: other.verifier.clone(),
                    over_parameter: other.parameter,
                    speedup: Clustered::difference(both).estimate(),
                });
            }
            before.push(fixed_pairs.clone());
            chosen.push(Chosen {
                drafts,
                verifier: verifier.as_str().to_owned(),
                parameter: fixed.parameter as u64,
                chosen_on,
                speedup_where_chosen: flattered,
                reported_on,
                speedup: reports.group().speed(timings)?,
            });
            for family in &FAMILIES {
                if family.name == "fixed" || drafts != Drafts::Sampled {
                    continue;
                }
                let Some((flattered, policy, half)) = best(family.name) else {
                    continue;
                };
                let Some(times) = half.group().times(timings, false) else {
                    continue;
                };
                let beside = times.pairs.iter().copied();
                let beside = beside.zip(fixed_pairs.iter().copied());
                policies.push(ChosenPolicy {
                    policy: family.name.to_owned(),
                    parameter: Parameter::of(policy),
                    verifier: verifier.as_str().to_owned(),
                    chosen_on,
                    speedup_where_chosen: flattered,
                    reported_on,
                    speedup: times.speed(timings),
                    over_fixed: Clustered::difference(beside).estimate(),
                });
            }
        }
        let blind = self.settings.verifiers.iter();
        let blind = blind.filter(|verifier| verifier.has_rounds());
        Some(AtCost {
            cost_ratio: timings.draft_cost(),
            chosen,
            paired,
            policies,
            oracle: self.oracle_speed(timings, TextCoins::oracle_calls),
            coin_blind: blind
                .map(|&verifier| self.coin_blind(timings, verifier))
                .collect(),
        })
    }
}
