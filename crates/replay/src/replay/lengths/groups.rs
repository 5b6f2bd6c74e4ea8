//! Fixed lengths by group of prompts: workloads such as chat and code.

use super::super::timings::Timings;
use super::coins::{Unlisted, ratios};
use super::data::{AtGroupLength, ByGroup, Chosen, EqualWeights, GroupApart, OfGroup};
use super::drafts::Drafts;
use super::measure::Measurement;
use super::outcome::{Group, Played, Way};
use super::policy::Policy;
use super::settings::LengthSettings;
use specgap_core::rounds::floats::oracle_calls;
use specgap_statistics::{Clustered, Estimate};

/// The cost ratio at which lengths are chosen where none is given.
const USUAL_COST: f64 = 0.05;

/// What is measured of some prompts.
struct Measured {
    of: OfGroup,
    played: Vec<Played>,
    tokens: Vec<f64>,
    /// The group of each prompt, in their order.
    group_of: Vec<Option<usize>>,
}

impl Measurement<'_> {
    /// Fixed lengths by group, and of all prompts; `None` where no log names a group, and where rows
    /// of the draft are missing somewhere.
    pub(super) fn by_group(&self) -> Option<ByGroup> {
        if self.texts.groups.is_empty() || self.is_wide {
            return None;
        }
        let usual = Timings::cost_ratio(USUAL_COST).ok()?;
        let timings = self.settings.timings.as_ref().unwrap_or(&usual);
        let settings = LengthSettings {
            policies: (self.policies.iter().copied())
                .filter(|policy| policy.family.name == "fixed")
                .collect(),
            linked: Vec::new(),
            ..self.settings.clone()
        };
        let mut ways = self.ways();
        ways.retain(|(_, verifier)| verifier.has_rounds());
        let measured = |group: Option<usize>| {
            let keep = |own: Option<usize>| group.is_none() || own == group;
            let texts = self.texts.sorted(&keep);
            let name = group.and_then(|group| self.texts.groups.get(group));
            Measurement::new(&texts, &settings, self.held).of_group(name, &ways, timings)
        };
        let total = measured(None);
        let mut order: Vec<usize> = (0..self.texts.groups.len()).collect();
        order.sort_by_key(|&group| &self.texts.groups[group]);
        let groups: Vec<(usize, Measured)> = (order.into_iter())
            .map(|group| (group, measured(Some(group))))
            .collect();
        Some(ByGroup {
            cost_ratio: timings.draft_cost(),
            ungrouped: total.group_of.iter().filter(|one| one.is_none()).count(),
            equal_weights: equal_weights(&groups),
            apart: apart(&total, &groups, timings),
            total: total.of,
            groups: groups.into_iter().map(|(_, one)| one.of).collect(),
        })
    }

    fn of_group(&self, name: Option<&String>, ways: &[Way], timings: &Timings) -> Measured {
        let lengths = self.settings.policies.iter().copied();
        let asked: Vec<(Policy, Way)> = (ways.iter())
            .flat_map(|&way| lengths.clone().map(move |policy| (policy, way)))
            .collect();
        let played = self.played_all(&asked, Unlisted::Whole);
        let results = played.iter().filter_map(|one| {
            let found = self.result(one.policy, (one.way.0, one.way.1.rule()), Some(one.told()));
            Some(AtGroupLength {
                drafts: one.way.0,
                verifier: one.way.1.as_str().to_owned(),
                length: one.policy.parameter as usize,
                tokens_per_call: found.tokens_per_call?,
                speedup: found.speedup,
            })
        });
        let halves = self.halves(std::slice::from_ref(timings), &played);
        let of = OfGroup {
            group: name.cloned(),
            prompts: self.texts.clusters,
            positions: self.texts.positions(),
            acceptance: self.truncated(|text, unlisted| {
                let ratios = ratios(text, Drafts::Sampled, unlisted);
                ratios.len() as f64 - oracle_calls(&ratios)
            }),
            results: results.collect(),
            chosen: (ways.iter())
                .filter_map(|&way| {
                    let best = self.best("fixed", way, &played, (&halves, 0))?;
                    self.chosen(way, &best, timings)
                })
                .collect(),
            round_starts: match self.settings.round_starts {
                true => self.round_starts(),
                false => Vec::new(),
            },
        };
        Measured {
            of,
            tokens: self.tokens.clone(),
            group_of: self.texts.group_of.clone(),
            played,
        }
    }
}

fn equal_weights(groups: &[(usize, Measured)]) -> Vec<EqualWeights> {
    let Some((_, first)) = groups.first() else {
        return Vec::new();
    };
    let each = first.played.iter().enumerate().map(|(at, one)| {
        let of = |(_, group): &(usize, Measured)| {
            let played = group.played.get(at)?;
            Some(Group::all(played.outcomes.all(), &group.tokens).per_call())
        };
        let ratios: Vec<Clustered> = groups.iter().filter_map(of).collect();
        EqualWeights {
            drafts: one.way.0,
            verifier: one.way.1.as_str().to_owned(),
            length: one.policy.parameter as usize,
            tokens_per_call: Clustered::equal_weights(&ratios),
        }
    });
    each.collect()
}

/// Each group against the prompts of all others.
fn apart(total: &Measured, groups: &[(usize, Measured)], timings: &Timings) -> Vec<GroupApart> {
    if groups.len() < 2 {
        return Vec::new();
    }
    let mut found = Vec::new();
    for best in &total.of.chosen {
        let is_of = |one: &&Played, length: u64| {
            one.way.0 == best.drafts
                && one.way.1.as_str() == best.verifier
                && one.policy.parameter as u64 == length
        };
        let Some(all) = (total.played.iter()).find(|one| is_of(one, best.parameter)) else {
            continue;
        };
        for (group, measured) in groups {
            let side = |own: bool| {
                let which = |at: usize| {
                    let other = total.group_of.get(at).copied().flatten();
                    other.is_some_and(|other| (other == *group) == own)
                };
                Group::of(all.outcomes.all(), &total.tokens, which).per_call()
            };
            let difference = side(true).minus_among(&side(false), groups.len());
            let same = |one: &&Chosen| one.drafts == best.drafts && one.verifier == best.verifier;
            let own = measured.of.chosen.iter().find(same);
            let own = own.map(|one| one.parameter);
            let played = |length: u64| measured.played.iter().find(|one| is_of(one, length));
            let gain = own.filter(|&own| own != best.parameter).and_then(|own| {
                let both = [played(own)?, played(best.parameter)?];
                gain(both, &measured.tokens, timings, groups.len())
            });
            found.push(GroupApart {
                group: measured.of.group.clone().unwrap_or_default(),
                drafts: best.drafts,
                verifier: best.verifier.clone(),
                length: best.parameter as usize,
                is_told: difference.side().is_some(),
                tokens_per_call: difference,
                own_length: own.map(|own| own as usize),
                own_gain: gain,
            });
        }
    }
    found
}

/// The speed-up of one length less that of another, on the half of the prompts that chose neither, as
/// one of some comparisons.
fn gain(
    played: [&Played; 2],
    tokens: &[f64],
    timings: &Timings,
    comparisons: usize,
) -> Option<Estimate> {
    let [own, all] = played.map(|one| {
        let half = Group::half(one.outcomes.all(), tokens, 1);
        Some(half.times(timings, false)?.pairs)
    });
    let pairs = own?.into_iter().zip(all?);
    Some(Clustered::difference(pairs).estimate_among(comparisons))
}
