//! What is best at a cost.

use super::super::measured::within;
use super::super::timings::Timings;
use super::bounds::OracleCalls;
use super::coins::Unlisted;
use super::data::{AtCost, Bound, Chosen, ChosenPolicy, Faster, Parameter};
use super::drafts::Drafts;
use super::measure::Measurement;
use super::outcome::{Group, Played, Way};
use super::policy::{FAMILIES, Policy};
use specgap_core::rounds::ChainRule;
use specgap_statistics::{Clustered, half_of};

/// A policy's speeds, cost by cost.
type Speeds = Vec<Option<f64>>;

/// What is quickest on half of the prompts.
pub(super) struct Best<'a> {
    policy: Policy,
    /// Its speed there, which flatters it.
    flattered: f64,
    /// The others, of which there are some.
    reports: Group<'a>,
}

impl Measurement<'_> {
    /// Speeds on the half of the prompts that chooses, policy by policy, at each of some costs; none of
    /// those whose drafts are not known.
    pub(super) fn halves(&self, timings: &[Timings], played: &[Played]) -> Vec<Speeds> {
        let of = |one: &Played| {
            let half =
                (one.known.is_whole()).then(|| Group::half(one.outcomes.all(), &self.tokens, 0));
            let speed = |timings| Some(half.as_ref()?.speed(timings)?.mean);
            timings.iter().map(speed).collect()
        };
        played.iter().map(of).collect()
    }

    /// The policy of a family that is quickest there, by its speeds at one of these costs.
    pub(super) fn best<'a>(
        &self,
        family: &str,
        way: Way,
        played: &'a [Played],
        (halves, cost): (&[Speeds], usize),
    ) -> Option<Best<'a>> {
        let of_family = (played.iter().zip(halves))
            .filter(|(one, _)| one.way == way && one.policy.family.name == family);
        let speeds = of_family.filter_map(|(one, speeds)| Some((speeds[cost]?, one)));
        let best = speeds.reduce(|best, one| if best.0 >= one.0 { best } else { one });
        let (flattered, one) = best?;
        let reports = Group::half(one.outcomes.all(), &self.tokens, 1);
        (reports.prompts() > 0).then_some(Best {
            policy: one.policy,
            flattered,
            reports,
        })
    }

    /// A fixed length that is best, reported on the prompts that did not choose it.
    pub(super) fn chosen(&self, way: Way, best: &Best<'_>, timings: &Timings) -> Option<Chosen> {
        let reported_on = best.reports.prompts();
        // Speeds of fixed lengths rise as a token is accepted more often.
        let is_bounded = self.is_open(way.0) && way.1 == ChainRule::TOKEN;
        let end = |unlisted| {
            let played = self.played(best.policy, way, unlisted);
            let reports = Group::half(played.outcomes.all(), &self.tokens, 1);
            Some(reports.speed(timings)?.mean)
        };
        let ends = || match self.texts.is_by_depth() {
            true => {
                let reports = |prompt| half_of(prompt) == 1;
                self.between(best.policy, way, Some(timings), reports).speed
            }
            false => Some([end(Unlisted::Rejected)?, end(Unlisted::Accepted)?]),
        };
        Some(Chosen {
            drafts: way.0,
            verifier: way.1.as_str().to_owned(),
            parameter: best.policy.parameter as u64,
            chosen_on: self.texts.clusters - reported_on,
            speedup_where_chosen: best.flattered,
            reported_on,
            speedup: within(
                best.reports.speed(timings)?,
                is_bounded.then(ends).flatten(),
            ),
        })
    }

    /// Returns what is best at each cost, each chosen on half of the prompts: a fixed length, and the
    /// parameter of every other family whose drafts are known.
    pub(super) fn at_costs(
        &self,
        timings: &[Timings],
        played: &[Played],
        oracle: &OracleCalls,
    ) -> Vec<AtCost> {
        // A choice by the middles of wide bounds is none.
        if self.is_wide {
            return Vec::new();
        }
        let blind = self.settings.verifiers.iter();
        let blind = blind.filter(|verifier| verifier.has_rounds());
        let blind: Vec<Vec<Bound>> = blind
            .map(|&verifier| self.coin_blind_each(timings, verifier))
            .collect();
        let halves = self.halves(timings, played);
        let each = timings.iter().enumerate().filter_map(|(index, timings)| {
            let blind = blind.iter().map(|bounds| bounds[index].clone());
            self.at_cost(
                timings,
                (played, (&halves, index)),
                (oracle, blind.collect()),
            )
        });
        each.collect()
    }

    fn at_cost(
        &self,
        timings: &Timings,
        (played, at): (&[Played], (&[Speeds], usize)),
        (oracle, blind): (&OracleCalls, Vec<Bound>),
    ) -> Option<AtCost> {
        let (mut chosen, mut policies) = (Vec::<Chosen>::new(), Vec::new());
        let (mut paired, mut before) = (Vec::new(), Vec::<Vec<(f64, f64)>>::new());
        // Of block verification on lists nothing is bounded.
        let ends = |one: &Chosen| match self.is_open(one.drafts) {
            true => one.speedup.truncation,
            false => Some([one.speedup.mean; 2]),
        };
        for way in self.ways() {
            let (drafts, verifier) = way;
            let Some(best) = self.best("fixed", way, played, at) else {
                continue;
            };
            let fixed = self.chosen(way, &best, timings)?;
            let fixed_pairs = best.reports.times(timings, false)?.pairs;
            for (other, others) in chosen.iter().zip(&before) {
                let both = fixed_pairs.iter().copied().zip(others.iter().copied());
                let bounds = ends(&fixed)
                    .zip(ends(other))
                    .filter(|(one, other)| one[0] < one[1] || other[0] < other[1]);
                let bounds = bounds.map(|([least, most], [low, high])| [least - high, most - low]);
                paired.push(Faster {
                    drafts,
                    verifier: verifier.as_str().to_owned(),
                    parameter: fixed.parameter,
                    over_drafts: other.drafts,
                    over_verifier: other.verifier.clone(),
                    over_parameter: other.parameter,
                    speedup: within(Clustered::difference(both).estimate(), bounds),
                });
            }
            before.push(fixed_pairs.clone());
            for family in FAMILIES {
                if family.name == "fixed" || drafts != Drafts::Sampled {
                    continue;
                }
                let Some(best) = self.best(family.name, way, played, at) else {
                    continue;
                };
                let Some(times) = best.reports.times(timings, false) else {
                    continue;
                };
                let beside = times.pairs.iter().copied();
                let beside = beside.zip(fixed_pairs.iter().copied());
                policies.push(ChosenPolicy {
                    policy: family.name.to_owned(),
                    parameter: Parameter::of(best.policy),
                    verifier: verifier.as_str().to_owned(),
                    chosen_on: fixed.chosen_on,
                    speedup_where_chosen: best.flattered,
                    reported_on: fixed.reported_on,
                    speedup: times.estimate(),
                    over_fixed: Clustered::difference(beside).estimate(),
                });
            }
            chosen.push(fixed);
        }
        Some(AtCost {
            cost_ratio: timings.draft_cost(),
            chosen,
            paired,
            policies,
            oracle: self.oracle_speed(timings, oracle),
            coin_blind: blind,
        })
    }
}
