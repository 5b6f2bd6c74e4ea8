//! From texts to a report.

use super::super::ReplayError;
use super::super::advice::length_changes;
use super::super::measured::{MeasuredTexts, ratio, read_measured, within};
use super::super::paths::possible_with_paths;
use super::super::position::TextPosition;
use super::super::read::{HELD, Reading, Text, Texts};
use super::super::rollouts::RolloutList;
use super::super::timings::Timings;
use super::carried::Linked;
use super::coins::{TextCoins, Unlisted, coins, mean_of_coin};
use super::data::{LENGTH_SCHEMA, LengthReport, Parameter, PolicyResult, RolloutsRead};
use super::drafts::Drafts;
use super::outcome::{Group, Known, Outcome, Outcomes, Played, Steps, Way};
use super::policy::{AlongText, Policy};
use super::settings::LengthSettings;
use crate::replay::length_definitions;
use specgap_base::setting::for_shell;
use specgap_core::rounds::floats::{
    accepted_everywhere, accepted_lengths, accepted_lengths_by_means, replay_each,
};
use specgap_core::rounds::{ChainRule, Coins, DraftLength, Drafted, Replay, drafted_rounds};
use specgap_core::rule::RuleName;
use specgap_log::log::Log;
use specgap_statistics::{Clustered, Estimate};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Costs of a draft step, over a target step, at which the best length is looked for.
const COST_RATIOS: [f64; 9] = [0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.8];

/// Texts that are replayed before their rounds are added up: those of all texts side by side would be
/// most of the memory.
const TEXTS: usize = 256;

/// Replays all policies along the text of some logs. `command` goes into the report, and
/// `progress` is told of positions as they are read.
///
/// # Errors
/// As [`Texts::read`]; also settings that ask for nothing.
///
/// # Complexity
/// O(N V) for reading, then O(N K) a policy. Memory grows by some kilobytes a prompt at most: texts beyond
/// some 65 MB, and outcomes beyond as much, go to a file where temporary files are, of some 60 bytes a token.
pub fn measure_lengths(
    logs: &[Log],
    settings: &LengthSettings,
    command: &str,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<LengthReport, ReplayError> {
    measured_with(logs, settings, command, progress, HELD)
}

/// The same with so many positions in memory, and outcomes of prompts.
pub(super) fn measured_with(
    logs: &[Log],
    settings: &LengthSettings,
    command: &str,
    progress: &(dyn Fn(usize) + Sync),
    held: usize,
) -> Result<LengthReport, ReplayError> {
    if settings.verifiers.is_empty() {
        return Err(ReplayError::Settings("no verifier is asked for".to_owned()));
    }
    let cuts = settings.draft_cuts.effective();
    cuts.check("draft-").map_err(ReplayError::Settings)?;
    // Elsewhere than at 1 every order is another.
    let cuts = cuts.ordered(logs, &[settings.temperature.unwrap_or(0.5)]);
    let cuts = cuts.map_err(ReplayError::Settings)?;
    let are_named = settings.draft_cuts.are_named();
    let settings = &LengthSettings {
        draft_cuts: match cuts.keep_all() {
            true => settings.draft_cuts,
            false => cuts,
        },
        ..settings.clone()
    };
    let asked = Reading {
        cuts: are_named.then_some(cuts),
        rollouts: cuts.keep_all(),
        parts: settings.parts.clone(),
        held: Some(held),
        ..Reading::default()
    };
    let (texts, of) = read_measured(logs, settings.temperature, &asked, command, progress)?;
    let mut measurement = Measurement::new(&texts, settings, held);
    measurement.refuse_missing_heads(logs)?;
    measurement.refuse_drafts(logs)?;
    let lengths = measurement.lengths();
    if !texts.is_by_depth() {
        for &rule in &settings.linked {
            let found = Linked::replayed(rule, logs, &texts, &lengths)?;
            measurement.linked.extend(found);
        }
    }
    let mut report = measurement.report(logs, of);
    texts.check()?;
    report.engine = report.of.engine(settings.engine);
    report.advice = length_changes(&report);
    if !cuts.keep_all() || !texts.served.keep_all() {
        // Draft paths were drawn from whole rows.
        return Ok(report);
    }
    match possible_with_paths(logs, &texts) {
        Ok(possible) => report.draft_paths = possible,
        Err(error) => (report.left_out).push(format!(
            "what several draft paths could give: {}",
            for_shell(&error.message())
        )),
    }
    Ok(report)
}

/// Of the coins of a text and their means, for each K: a sum over starts, and how many.
type SumsOf<'a> = dyn Fn(&TextCoins, &TextCoins) -> Vec<(f64, usize)> + Sync + 'a;

type OfGroup = fn(&Group<'_>) -> Estimate;

/// The texts, what is asked of them, and what is the same for all policies.
pub(super) struct Measurement<'a> {
    pub(super) texts: &'a Texts,
    pub(super) settings: &'a LengthSettings,
    /// Tokens of each prompt.
    pub(super) tokens: Vec<f64>,
    /// What rows do not list leaves ratios open.
    pub(super) are_open: bool,
    /// That leaves the acceptance of drafts more open than the sample does: what bounds tell is told,
    /// and nothing is chosen by their middles.
    pub(super) is_wide: bool,
    /// The same of q at the text's tokens.
    pub(super) draft_is_open: bool,
    /// Policies that the rows tell of.
    pub(super) policies: Vec<Policy>,
    pub(super) max_length: usize,
    /// Rules whose rounds hang together, as far as they are replayed.
    pub(super) linked: Vec<Linked>,
    /// How many outcomes of prompts that are through are held in memory.
    pub(super) held: usize,
}

impl<'a> Measurement<'a> {
    pub(super) fn new(texts: &'a Texts, settings: &'a LengthSettings, held: usize) -> Self {
        let usual = LengthSettings::MAX_LENGTH;
        let is_wide = texts.are_wide();
        Self {
            texts,
            settings,
            tokens: texts.tokens(),
            are_open: texts.are_open(),
            is_wide,
            draft_is_open: texts.draft_is_open(),
            policies: (settings.policies.iter().copied())
                .filter(|policy| texts.rows_tell(policy.family.list))
                .filter(|policy| !is_wide || policy.family.name == "fixed")
                .filter(|policy| policy.family.name != "fixed" || texts.reach(policy.parameter))
                .collect(),
            max_length: (settings.max_length)
                .unwrap_or_else(|| texts.rollout_tokens().unwrap_or(usual).min(usual))
                .min(texts.depths_or(usize::MAX)),
            linked: Vec::new(),
            held,
        }
    }

    /// All kinds of drafts with their verifiers, those that engines sample first.
    pub(super) fn ways(&self) -> Vec<Way> {
        let asked = &self.settings.drafts;
        let token = self.settings.verifiers.contains(&ChainRule::TOKEN);
        let is_asked = |drafts: Drafts| match asked.is_empty() {
            true => {
                let by_default = token && drafts != Drafts::SharedGumbel;
                drafts == Drafts::Sampled || by_default && self.cannot_tell(drafts).is_none()
            }
            false => asked.contains(&drafts),
        };
        let mut ways = Vec::new();
        for drafts in Drafts::ALL.into_iter().filter(|&drafts| is_asked(drafts)) {
            match drafts {
                Drafts::Sampled => {
                    let verifiers = self.settings.verifiers.iter().copied();
                    let bounded = verifiers.filter(|&verifier| self.has_bounds(verifier));
                    ways.extend(bounded.map(|verifier| (drafts, verifier)));
                }
                // One coin a place, whose product is the whole rule.
                _ => ways.push((drafts, ChainRule::TOKEN)),
            }
        }
        ways
    }

    /// Returns whether anything is said of a verifier: where rows are missing, what is bounded
    /// alone.
    fn has_bounds(&self, verifier: ChainRule) -> bool {
        self.texts.lacking() == 0 || verifier == ChainRule::TOKEN
    }

    /// Policies of a kind of drafts. What others would do behind a rejected draft, and whether
    /// they would have drafted the text's token, is told of sampled drafts alone.
    fn policies_of(&self, drafts: Drafts) -> impl Iterator<Item = Policy> {
        let all = self.policies.iter().copied();
        all.filter(move |policy| drafts == Drafts::Sampled || policy.is_set_at_start())
    }

    pub(super) fn is_open(&self, drafts: Drafts) -> bool {
        match drafts {
            Drafts::Sampled => self.are_open,
            Drafts::SharedGumbel => self.texts.seen.noise_is_open,
            Drafts::OneHot => false,
            Drafts::ExactMatch => self.draft_is_open,
        }
    }

    fn report(&self, logs: &[Log], of: MeasuredTexts) -> LengthReport {
        let ways = self.ways();
        let asked: Vec<(Policy, Way)> = (ways.iter())
            .filter(|(_, verifier)| verifier.has_rounds())
            .flat_map(|&way| self.policies_of(way.0).map(move |policy| (policy, way)))
            .collect();
        let played = self.played_all(&asked, Unlisted::Whole);
        let oracle = self.oracle(TextCoins::oracle_calls);
        let ratios = COST_RATIOS.iter();
        let ratios: Vec<Timings> = ratios
            .filter_map(|&ratio| Timings::cost_ratio(ratio).ok())
            .collect();
        LengthReport {
            schema: LENGTH_SCHEMA,
            of,
            max_length: self.max_length,
            // Where the target's row is cut, that the draft's is not has to be said.
            draft_cuts: Some(self.settings.draft_cuts)
                .filter(|cuts| cuts.are_named())
                .filter(|cuts| !cuts.keep_all() || !self.texts.served.keep_all()),
            rollouts: self.rollouts_read(),
            needs: self.needs(logs, &played),
            timings: self.settings.timings.clone(),
            surprise: self.texts.surprise(),
            acceptance: self.texts.acceptance(),
            results: self.results(&ways, &played),
            by_depth: self.at_depths(),
            round_starts: match self.settings.round_starts {
                true => self.round_starts(),
                false => Vec::new(),
            },
            by_group: self.by_group(),
            bounds: self.bounds(&played, &oracle),
            by_cost: self.at_costs(&ratios, &played, &oracle),
            at_cost: (self.at_costs(self.settings.timings.as_slice(), &played, &oracle)).pop(),
            draft_paths: None,
            entropy_bounds: match self.texts.rows_tell(Some(RolloutList::Entropy)) {
                true => self.entropy_bounds(),
                false => Vec::new(),
            },
            engine: None,
            advice: Vec::new(),
            definitions: self.definitions(),
            left_out: (self
                .left_out(logs, &played)
                .iter()
                .map(|line| for_shell(line)))
            .collect(),
        }
    }

    /// Returns what the words of this report mean.
    fn definitions(&self) -> BTreeMap<String, String> {
        let mut all = length_definitions();
        if self.settings.draft_cuts.keep_all() {
            all.remove("draft cut");
        }
        if self.texts.groups.is_empty() {
            all.retain(|word, _| word != "group" && !word.ends_with(", of groups"));
        }
        all
    }

    fn rollouts_read(&self) -> Option<RolloutsRead> {
        let texts = self.texts.texts.iter();
        Some(RolloutsRead {
            tokens: self.texts.rollout_tokens()?,
            rollouts: texts.map(|text| text.rollouts.len()).sum(),
            inclusion_probability: (self.texts.rollouts.iter())
                .map(|kind| kind.inclusion_probability)
                .collect(),
            target: self.texts.rollouts_have(RolloutList::TargetP),
        })
    }

    /// Fixed lengths that are asked for, ascending.
    pub(super) fn lengths(&self) -> Vec<usize> {
        let fixed = |policy: &&Policy| policy.family.name == "fixed";
        let lengths = self.policies.iter().filter(fixed);
        let lengths: BTreeSet<usize> = lengths.map(|policy| policy.parameter as usize).collect();
        lengths.into_iter().collect()
    }

    /// A policy's rounds, added up by prompt.
    pub(super) fn played(&self, policy: Policy, way: Way, unlisted: Unlisted) -> Played {
        let mut all = self.played_all(&[(policy, way)], unlisted);
        all.swap_remove(0)
    }

    /// Rounds of several policies, each added up by prompt in the texts' order.
    pub(super) fn played_all(&self, asked: &[(Policy, Way)], unlisted: Unlisted) -> Vec<Played> {
        let mut policies: Vec<Policy> = Vec::new();
        for (policy, _) in asked {
            if !policies.contains(policy) {
                policies.push(*policy);
            }
        }
        let of = |text: &Text| -> Vec<(Outcome, Known)> {
            let mut known = None;
            let along = policies.iter().map(|&policy| {
                AlongText::with(
                    policy,
                    &text.places,
                    &text.by_start,
                    self.max_length,
                    &mut known,
                )
            });
            let along: Vec<AlongText> = along.collect();
            let ways = asked.chunk_by(|(_, one), (_, other)| one == other);
            let each = ways.flat_map(|asked| {
                let of = |(policy, _): &(Policy, Way)| {
                    let mut all = along.iter();
                    all.find(|one| one.policy() == *policy)
                };
                let along: Vec<&AlongText> = asked.iter().filter_map(of).collect();
                let lengths: Vec<&dyn DraftLength> =
                    along.iter().map(|one| one.lengths()).collect();
                let (drafts, verifier) = asked[0].1;
                let coins = coins(text, drafts, unlisted);
                let replayed = replay_each(verifier, &coins, &lengths).unwrap_or_default();
                let each = along.into_iter().zip(replayed);
                let each = each.map(|(along, replay)| self.outcome(text, along, replay));
                each.collect::<Vec<_>>()
            });
            each.collect()
        };
        let added = asked.iter().zip(self.by_prompt(asked.len(), of));
        let played = added.map(|(&(policy, way), (outcomes, known))| Played {
            policy,
            way,
            known: known.max(self.known(policy)),
            outcomes,
        });
        played.collect()
    }

    /// So many outcomes of every text, each added up by prompt in the texts' order, and the least that
    /// is known of its drafts. Those of prompts that are through go to a file where they are many.
    pub(super) fn by_prompt(
        &self,
        count: usize,
        of: impl Fn(&Text) -> Vec<(Outcome, Known)> + Sync,
    ) -> Vec<(Outcomes, Known)> {
        let texts = &self.texts.texts;
        let mut last = vec![0; self.texts.clusters];
        for (number, text) in texts.iter().enumerate() {
            last[text.cluster] = number;
        }
        let none = (Outcomes::new(&self.texts.spill), Known::FromText);
        let mut all = vec![none; count];
        let mut through = 0;
        for begin in (0..texts.len()).step_by(TEXTS) {
            let range = begin..texts.len().min(begin + TEXTS);
            let found = self.texts.each_of(range.clone(), &of);
            for (text, found) in texts[range.clone()].iter().zip(found) {
                for ((outcomes, least), (outcome, known)) in all.iter_mut().zip(found) {
                    outcomes.at(text.cluster).add(&outcome);
                    *least = known.max(*least);
                }
            }
            while last.get(through).is_some_and(|&last| last < range.end) {
                through += 1;
            }
            let ready = through - all.first().map_or(through, |(one, _)| one.away());
            if ready * count > self.held {
                all.iter_mut().for_each(|(one, _)| one.put_away(ready));
            }
        }
        all
    }

    /// What the logs tell of a policy's drafts.
    fn known(&self, policy: Policy) -> Known {
        let list = policy.family.list;
        if policy.is_set_at_start() {
            Known::FromText
        } else if !self.texts.rollouts.is_empty()
            && list.is_none_or(|list| self.texts.rollouts_have(list))
        {
            Known::FromRollouts
        } else {
            Known::AtLeast
        }
    }

    /// A policy's rounds along one text, as they were replayed, and what is known of their drafts.
    fn outcome(&self, text: &Text, along: &AlongText, replay: Replay<f64>) -> (Outcome, Known) {
        let policy = along.policy();
        let mut known = self.known(policy);
        let unused = |stopped: f64| match policy.stops_before_drawing() {
            true => stopped,
            false => 0.0,
        };
        let mut outcome = Outcome {
            calls: replay.calls,
            ..Outcome::default()
        };
        match known {
            Known::FromText => outcome.least.rounds = replay.rounds,
            Known::AtLeast => {
                outcome.least = Steps {
                    rounds: replay.seen,
                    unused: unused(replay.stopped),
                };
            }
            Known::FromRollouts | Known::Between => {
                let on: Vec<(usize, Result<Drafted, [Drafted; 2]>)> = (text.rollouts.iter())
                    .filter(|rollout| replay.starts.get(rollout.start) > Some(&0.0))
                    .map(|rollout| (rollout.start, along.drafted_on(rollout)))
                    .collect();
                if on.iter().any(|(_, drafted)| drafted.is_err()) {
                    known = Known::Between;
                }
                let [least, most] = [0, 1].map(|end| {
                    let on = (on.iter())
                        .map(|&(start, drafted)| (start, drafted.unwrap_or_else(|ends| ends[end])));
                    let starts = &replay.starts;
                    let found =
                        drafted_rounds(starts, |start| along.drafted(start), on, &text.spacing);
                    Steps {
                        rounds: found.rounds,
                        unused: unused(found.stopped),
                    }
                });
                outcome.least = least;
                outcome.most = most;
            }
        }
        (outcome, known)
    }

    /// A sum over the texts' tokens, divided by their number.
    pub(super) fn rate(&self, of: impl Fn(&Text) -> f64 + Sync) -> Estimate {
        let sums = self.texts.sums(self.texts.each(of));
        Clustered::new(sums.iter().copied().zip(self.tokens.iter().copied())).estimate()
    }

    /// The same with bounds where tokens are not listed, of a sum that rises or falls with
    /// each of their ratios.
    pub(super) fn truncated(&self, of: impl Fn(&Text, Unlisted) -> f64 + Sync) -> Estimate {
        let mean = |unlisted| self.rate(|text| of(text, unlisted)).mean;
        let bounds = self.are_open.then(|| {
            let ends = [mean(Unlisted::Rejected), mean(Unlisted::Accepted)];
            [ends[0].min(ends[1]), ends[0].max(ends[1])]
        });
        within(self.rate(|text| of(text, Unlisted::Whole)), bounds)
    }

    fn results(&self, ways: &[Way], played: &[Played]) -> Vec<PolicyResult> {
        let most = self.lengths().into_iter().max().unwrap_or(0);
        let mut results = Vec::new();
        for &way in ways {
            let accepted =
                self.accepted(way, most, &|coins, _| accepted_lengths(way.1, coins, most));
            let by_means = match way.1 == ChainRule::TOKEN && self.has_means(way.0) {
                true => self.accepted(way, most, &|coins, means| {
                    accepted_lengths_by_means(coins, means, most)
                }),
                false => Vec::new(),
            };
            let everywhere = self.accepted(way, most, &|coins, _| {
                let sums = accepted_everywhere(way.1, coins, most).into_iter();
                sums.map(|sum| (sum, coins.tokens())).collect()
            });
            for policy in self.policies_of(way.0) {
                let is_fixed = policy.family.name == "fixed";
                let length = policy.parameter as usize;
                let found = (played.iter()).find(|one| one.way == way && one.policy == policy);
                let found = found.map(Played::told).or_else(|| {
                    let is_sampled = way.0 == Drafts::Sampled && is_fixed;
                    let mut linked = self.linked.iter().filter(|_| is_sampled);
                    let one = linked.find(|one| one.rule == way.1.rule())?;
                    Some((Known::FromText, Cow::Borrowed(one.of(length)?)))
                });
                if found.is_none() && !is_fixed {
                    continue;
                }
                let of = |all: &[Option<Estimate>]| {
                    let one = all.get(length.wrapping_sub(1)).copied().flatten();
                    one.filter(|_| is_fixed)
                };
                results.push(PolicyResult {
                    expected_accepted_length: of(&accepted),
                    expected_accepted_length_by_means: of(&by_means),
                    accepted_from_everywhere: of(&everywhere),
                    ..self.result(policy, (way.0, way.1.rule()), found)
                });
            }
        }
        for linked in self.linked.iter().filter(|one| one.rule.carries()) {
            for length in self.lengths() {
                let found = linked.of(length).map(Cow::Borrowed);
                let found = found.map(|rounds| (Known::FromText, rounds));
                let way = (Drafts::Sampled, linked.rule);
                results.push(self.result(Policy::fixed(length), way, found));
            }
        }
        mark_fronts(&mut results);
        results
    }

    /// Returns whether the mean of every coin is known.
    fn has_means(&self, drafts: Drafts) -> bool {
        match drafts {
            Drafts::Sampled => !self.texts.seen.lacks_overlap,
            Drafts::OneHot => !self.texts.seen.lacks_p_hit,
            Drafts::ExactMatch | Drafts::SharedGumbel => false,
        }
    }

    /// For each K, E\[tau\] over some starts of each text, of which `sums` tells the sum and the
    /// number by the coins and their means; `None` where there are none.
    fn accepted(&self, (drafts, _): Way, most: usize, sums: &SumsOf<'_>) -> Vec<Option<Estimate>> {
        let sums = |unlisted: Unlisted| -> Vec<Vec<(f64, usize)>> {
            let mean = |place: &TextPosition| mean_of_coin(place, drafts).unwrap_or(0.0);
            self.texts.each(|text| {
                let means = TextCoins::of(&text.places, &text.by_start, mean);
                sums(&coins(text, drafts, unlisted), &means)
            })
        };
        let clustered = |sums: &[Vec<(f64, usize)>], length: usize| {
            let both = self.texts.texts.iter().zip(sums);
            let of_texts = both.map(|(text, sums)| {
                let (sum, starts) = sums[length];
                (text.cluster, sum, starts as f64)
            });
            over_starts(self.texts.clusters, of_texts)
        };
        let whole = sums(Unlisted::Whole);
        let ends =
            (self.is_open(drafts)).then(|| [sums(Unlisted::Rejected), sums(Unlisted::Accepted)]);
        (0..most)
            .map(|length| {
                let estimate = clustered(&whole, length)?;
                let truncation = ends.as_ref().and_then(|[low, high]| {
                    Some([clustered(low, length)?.mean, clustered(high, length)?.mean])
                });
                Some(within(estimate, truncation))
            })
            .collect()
    }

    pub(super) fn result(
        &self,
        policy: Policy,
        (drafts, verifier): (Drafts, RuleName),
        played: Option<(Known, Cow<'_, [Outcome]>)>,
    ) -> PolicyResult {
        let mut result = PolicyResult {
            policy: policy.family.name.to_owned(),
            parameter: Parameter::of(policy),
            drafts,
            verifier: verifier.as_str().to_owned(),
            kind: "estimate".to_owned(),
            ..PolicyResult::default()
        };
        // Calls and drafts of fixed lengths fall as a token is accepted more often, or are bounded by depth.
        let is_bounded = policy.family.name == "fixed" && verifier == RuleName::TOKEN;
        let is_told = is_bounded || !self.is_wide || !self.is_open(drafts);
        let Some((known, rounds)) = played.filter(|_| is_told) else {
            return result;
        };
        let group = Group::all(rounds, &self.tokens);
        result.tokens_per_call = Some(group.tokens_per_call());
        result.verification_rate = Some(group.verification_rate());
        let timings = self.settings.timings.as_ref();
        if known == Known::FromRollouts || known == Known::Between {
            result.kind = "estimate, rollouts".to_owned();
        }
        if known.is_whole() {
            result.discard_rate = Some(group.discard_rate());
            result.speedup = timings.and_then(|timings| group.speed(timings));
            // By the middles of wide bounds there is none.
            result.break_even_cost_ratio = group.break_even(timings).filter(|_| !self.is_wide);
        } else {
            result.discard_rate_at_least = Some(group.discard_rate());
            result.speedup_at_most = timings.and_then(|timings| group.speed_at_most(timings));
            if known == Known::Between {
                result.discard_rate_at_most = Some(group.discards(|outcome| &outcome.most));
            }
        }
        if self.is_open(drafts) && is_bounded {
            self.bound(&mut result, policy, (drafts, ChainRule::TOKEN));
        }
        result
    }

    /// Puts between bounds what depends on tokens that are not listed.
    fn bound(&self, result: &mut PolicyResult, policy: Policy, way: Way) {
        let flat = self.settings.timings.as_ref().filter(|one| one.is_flat());
        let put = |estimate: &mut Option<Estimate>, values: [Option<f64>; 2]| {
            if let (Some(estimate), [Some(one), Some(other)]) = (estimate, values) {
                estimate.truncation = Some([one.min(other), one.max(other)]);
            }
        };
        if self.texts.is_by_depth() {
            let between = self.between(policy, way, flat, |_| true);
            let (calls, speed) = (between.calls, between.speed);
            put(&mut result.tokens_per_call, calls.map(|x| Some(1.0 / x)));
            put(&mut result.verification_rate, calls.map(Some));
            put(
                &mut result.discard_rate,
                between.steps.map(|x| Some(x - 1.0)),
            );
            put(&mut result.speedup, [0, 1].map(|end| Some(speed?[end])));
            return;
        }
        let ends = [Unlisted::Rejected, Unlisted::Accepted]
            .map(|unlisted| self.played(policy, way, unlisted).outcomes);
        let groups = ends.each_ref();
        let groups = groups.map(|outcomes| Group::all(outcomes.all(), &self.tokens));
        let all = |of: &dyn Fn(&Group<'_>) -> Option<Estimate>| {
            groups.each_ref().map(|group| Some(of(group)?.mean))
        };
        let rates: [(_, OfGroup); 3] = [
            (&mut result.tokens_per_call, |group| group.tokens_per_call()),
            (&mut result.verification_rate, |group| {
                group.verification_rate()
            }),
            (&mut result.discard_rate, |group| group.discard_rate()),
        ];
        for (estimate, of) in rates {
            put(estimate, all(&|group| Some(of(group))));
        }
        if let Some(timings) = flat {
            put(&mut result.speedup, all(&|group| group.speed(timings)));
        }
    }
}

/// A ratio of sums over some starts of texts, by prompts: of each text its prompt and both sums.
/// Prompts without such starts do not count; `None` where there are none.
pub(super) fn over_starts(
    clusters: usize,
    of_texts: impl Iterator<Item = (usize, f64, f64)>,
) -> Option<Estimate> {
    let mut sums = vec![(0.0, 0.0); clusters];
    for (cluster, sum, starts) in of_texts {
        sums[cluster].0 += sum;
        sums[cluster].1 += starts;
    }
    ratio(sums.into_iter())
}

/// Marks policies that no other one of the same verifier passes in calls and discards both.
fn mark_fronts(results: &mut [PolicyResult]) {
    let known: Vec<Option<[f64; 2]>> = (results.iter())
        .map(|row| Some([row.discard_rate?.mean, row.verification_rate?.mean]))
        .collect();
    let ways = results.iter();
    let ways: Vec<_> = (ways.map(|row| (row.drafts, row.verifier.clone()))).collect();
    for (index, row) in results.iter_mut().enumerate() {
        let Some(here) = known[index] else { continue };
        let passes =
            |other: &[f64; 2]| other.iter().zip(&here).all(|(a, b)| a <= b) && *other != here;
        let others = known.iter().zip(&ways);
        row.on_front = Some(!others.into_iter().any(|(other, way)| {
            way.0 == row.drafts && way.1 == row.verifier && other.as_ref().is_some_and(passes)
        }));
    }
}
