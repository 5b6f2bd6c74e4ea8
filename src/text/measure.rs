//! From texts to a report.

use super::TextError;
use super::bounds::{CoinBlind, coin_blind, oracle_calls, oracle_calls_to_the_end};
use super::cost::Timings;
use super::data::{
    AtCost, Bound, Bounds, Chosen, ChosenPolicy, EntropyBound, Faster, LengthReport, MeasuredTexts,
    Parameter, PolicyResult, RolloutsRead, SCHEMA, TextLog,
};
use super::drafts::Drafts;
use super::glossary::definitions;
use super::paths::possible_with_paths;
use super::place::Place;
use super::policy::{ADAEDL_GAMMA, AlongText, FAMILIES, Policy, SVIP_GAMMA};
use super::rollouts::{Drafted, RolloutList, drafted_rounds};
use super::texts::{Text, Texts};
use crate::gap::{Clustered, Estimate};
use crate::log::{FileDigest, Log};
use crate::rounds::{
    ChainVerifier, Replay, accepted_everywhere, accepted_lengths, accepted_lengths_by_means, replay,
};
use crate::side_by_side;
use std::collections::BTreeSet;

/// What to replay.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The policies. The best length by cost is one of the fixed lengths among them.
    pub policies: Vec<Policy>,
    /// The verifiers.
    pub verifiers: Vec<ChainVerifier>,
    /// What is drafted; all that the log can tell of if nothing is named, but sampled drafts
    /// alone where token verification is not among the verifiers.
    pub drafts: Vec<Drafts>,
    /// What a round costs, if it is known.
    pub timings: Option<Timings>,
    /// The most tokens of a round, for policies that stop by themselves;
    /// [`Settings::MAX_LENGTH`] if not given, or as many as rollouts have, if these are fewer.
    pub max_length: Option<usize>,
    /// The temperature at which the text was drawn, where the log does not say.
    pub temperature: Option<f64>,
}

impl Settings {
    /// [`Settings::max_length`] where nothing else is asked for.
    pub const MAX_LENGTH: usize = 16;
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            policies: (FAMILIES.iter())
                .filter(|family| !family.needs_head())
                .flat_map(|family| family.usual())
                .collect(),
            verifiers: ChainVerifier::ALL.to_vec(),
            drafts: Vec::new(),
            timings: None,
            max_length: None,
            temperature: None,
        }
    }
}

/// Costs of a draft step, over a target step, at which the best length is looked for.
const COST_RATIOS: [f64; 9] = [0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.8];

/// Replays all policies along the text of some logs. `command` goes into the report, and
/// `progress` is told of positions as they are read.
///
/// # Errors
/// As [`Texts::read`]; also settings that ask for nothing.
///
/// # Complexity
/// O(N V) for reading, then O(N K) a policy.
pub fn measure(
    logs: &[Log],
    settings: &Settings,
    command: &str,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<LengthReport, TextError> {
    if settings.verifiers.is_empty() {
        return Err(TextError::Settings("no verifier is asked for".to_owned()));
    }
    let (texts, files) = with_files(logs, || Texts::read(logs, settings.temperature, progress))?;
    let measurement = Measurement::new(&texts, settings);
    measurement.refuse_missing_heads(logs)?;
    measurement.refuse_drafts(logs)?;
    let mut report = measurement.report(logs, measured(&texts, logs, files, command));
    match possible_with_paths(logs, &texts) {
        Ok(possible) => report.draft_paths = possible,
        Err(error) => (report.left_out).push(format!(
            "what several draft paths could give: {}",
            error.message()
        )),
    }
    Ok(report)
}

/// Rounds by what is drafted in them.
#[derive(Clone, Debug, Default)]
struct Steps {
    /// By n: rounds with n drafts.
    rounds: Vec<f64>,
    /// Draft steps of which no token came.
    unused: f64,
}

impl Steps {
    fn add(&mut self, other: &Self) {
        add_each(&mut self.rounds, &other.rounds);
        self.unused += other.unused;
    }

    fn drafts(&self) -> f64 {
        let rounds = (0..).zip(&self.rounds);
        rounds.map(|(n, &count)| f64::from(n) * count).sum()
    }
}

/// What a policy does with a verifier along some text, in expectation.
#[derive(Clone, Debug, Default)]
struct Outcome {
    calls: f64,
    /// What it drafts: all of it, or the least.
    least: Steps,
    /// The most, where that is known and is another.
    most: Steps,
}

impl Outcome {
    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.least.add(&other.least);
        self.most.add(&other.most);
    }
}

/// What a log tells of what is drafted in rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Known {
    /// All of it, from the text alone.
    FromText,
    /// All of it on average, from rollouts.
    FromRollouts,
    /// Bounds, from rollouts that end too early.
    Between,
    /// The part up to each round's first rejection.
    AtLeast,
}

impl Known {
    fn is_whole(self) -> bool {
        matches!(self, Self::FromText | Self::FromRollouts)
    }
}

/// A policy's rounds with a verifier, added up by prompt.
struct Played {
    policy: Policy,
    way: Way,
    known: Known,
    outcomes: Vec<Outcome>,
}

/// Of the coins of a text and their means, for each K: a sum over starts, and how many.
type SumsOf<'a> = dyn Fn(&[f64], &[f64]) -> Vec<(f64, usize)> + Sync + 'a;

type OfPlace<T> = fn(&Place) -> T;

/// What is drafted and how it is verified.
type Way = (Drafts, ChainVerifier);

/// Adds entry by entry, as if the shorter ended in zeros.
pub(super) fn add_each(one: &mut Vec<f64>, other: &[f64]) {
    if one.len() < other.len() {
        one.resize(other.len(), 0.0);
    }
    one.iter_mut().zip(other).for_each(|(a, b)| *a += b);
}

/// The texts, what is asked of them, and what is the same for all policies.
struct Measurement<'a> {
    texts: &'a Texts,
    settings: &'a Settings,
    /// Tokens of each prompt.
    tokens: Vec<f64>,
    /// What rows do not list leaves ratios open.
    are_open: bool,
    /// The same of q at the text's tokens.
    draft_is_open: bool,
    /// Policies that the rows tell of.
    policies: Vec<Policy>,
    max_length: usize,
}

/// Which ratios stand for those that depend on tokens that rows do not list.
#[derive(Clone, Copy, PartialEq)]
enum Unlisted {
    /// Those of the mass that is not listed.
    Whole,
    /// The least that they can be: none is accepted that need not be.
    Rejected,
    /// The most that they can be.
    Accepted,
}

impl<'a> Measurement<'a> {
    fn new(texts: &'a Texts, settings: &'a Settings) -> Self {
        let usual = Settings::MAX_LENGTH;
        Self {
            texts,
            settings,
            tokens: texts.tokens(),
            are_open: texts.are_open(),
            draft_is_open: texts.draft_is_open(),
            policies: (settings.policies.iter().copied())
                .filter(|policy| texts.rows_tell(policy.family.list))
                .filter(|policy| texts.lacking() == 0 || policy.family.name == "fixed")
                .collect(),
            max_length: (settings.max_length)
                .unwrap_or_else(|| texts.rollout_tokens().unwrap_or(usual).min(usual)),
        }
    }

    /// Refuses policies of heads of which a log says nothing.
    fn refuse_missing_heads(&self, logs: &[Log]) -> Result<(), TextError> {
        for policy in &self.settings.policies {
            let family = policy.family;
            let acceptance = match family.list {
                Some(RolloutList::HeadAcceptance) => true,
                Some(RolloutList::HeadOverlap) => false,
                _ => continue,
            };
            let tensor = if acceptance {
                "head_acceptance"
            } else {
                "head_overlap"
            };
            let has = |log: &Log| {
                if acceptance {
                    log.has_head_acceptance()
                } else {
                    log.has_head_overlap()
                }
            };
            let said = |place: &Place| {
                let value = if acceptance {
                    place.head_acceptance
                } else {
                    place.head_overlap
                };
                value.is_some()
            };
            let refused = |log: &Log, what: &str| {
                Err(TextError::Log {
                    log: log.path().to_owned(),
                    message: format!(
                        "{what} of the tensor {tensor}, which {} decides on: capture with a draft \
                         whose graph has this head, or leave {} out of --policies (docs/formats.md, \
                         Heads)",
                        family.name, family.name
                    ),
                })
            };
            if let Some(log) = logs.iter().find(|log| !has(log)) {
                return refused(log, "has nothing");
            }
            if let (Some(log), false) = (logs.first(), self.texts.drafted_places().all(said)) {
                return refused(log, "has -1 at some token before a text's last");
            }
        }
        Ok(())
    }

    /// Refuses kinds of drafts that are asked for and that the log does not tell of.
    fn refuse_drafts(&self, logs: &[Log]) -> Result<(), TextError> {
        let mut asked = self.settings.drafts.iter();
        let lacking = asked.find_map(|&drafts| self.cannot_tell(drafts));
        let nothing = || self.ways().is_empty() || self.policies.is_empty();
        let lacking = lacking.or_else(|| {
            (self.texts.lacking() > 0 && nothing()).then(|| {
                "has positions without a row of the draft (draft_row is 0), where token \
                 verification of fixed lengths is bounded and nothing else: ask for these, or score \
                 the texts that came out with both models (docs/engines.md)"
                    .to_owned()
            })
        });
        match (lacking, logs.first()) {
            (Some(message), Some(log)) => Err(TextError::Log {
                log: log.path().to_owned(),
                message,
            }),
            _ => Ok(()),
        }
    }

    /// Why nothing can be said of a kind of drafts, and the cure.
    fn cannot_tell(&self, drafts: Drafts) -> Option<String> {
        let places = || self.texts.texts.iter().flat_map(|text| &text.places);
        let unknown = places().filter(|place| place.hit.is_none()).count();
        (drafts == Drafts::OneHot && unknown > 0).then(|| {
            format!(
                "one-hot drafts: of {unknown} of {} tokens it is not known whether they are the \
                 draft's likeliest; log the draft's most probable token beside the text's own, \
                 or a column hit (docs/formats.md)",
                places().count()
            )
        })
    }

    /// All kinds of drafts with their verifiers, those that engines sample first.
    fn ways(&self) -> Vec<Way> {
        let asked = &self.settings.drafts;
        let token = self.settings.verifiers.contains(&ChainVerifier::Token);
        let is_asked = |drafts: Drafts| match asked.is_empty() {
            true => drafts == Drafts::Sampled || token && self.cannot_tell(drafts).is_none(),
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
                _ => ways.push((drafts, ChainVerifier::Token)),
            }
        }
        ways
    }

    /// Whether anything is said of a verifier: where rows are missing, what is bounded alone.
    fn has_bounds(&self, verifier: ChainVerifier) -> bool {
        self.texts.lacking() == 0 || verifier == ChainVerifier::Token
    }

    /// Policies of a kind of drafts. What others would do behind a rejected draft, and whether
    /// they would have drafted the text's token, is told of sampled drafts alone.
    fn policies_of(&self, drafts: Drafts) -> impl Iterator<Item = Policy> {
        let all = self.policies.iter().copied();
        all.filter(move |policy| drafts == Drafts::Sampled || policy.is_set_at_start())
    }

    fn is_open(&self, drafts: Drafts) -> bool {
        match drafts {
            Drafts::Sampled => self.are_open,
            Drafts::OneHot => false,
            Drafts::ExactMatch => self.draft_is_open,
        }
    }

    fn report(&self, logs: &[Log], of: MeasuredTexts) -> LengthReport {
        let ways = self.ways();
        let played: Vec<Played> = (ways.iter())
            .filter(|(_, verifier)| verifier.has_rounds())
            .flat_map(|&way| {
                let policies = self.policies_of(way.0);
                policies.map(move |policy| self.played(policy, way, Unlisted::Whole))
            })
            .collect();
        // A choice by the middles of wide bounds is none.
        let at = |timings: &Timings| match self.texts.lacking() {
            0 => self.at_cost(timings, &played),
            _ => None,
        };
        let by_cost = COST_RATIOS
            .iter()
            .filter_map(|&ratio| at(&Timings::cost_ratio(ratio).ok()?))
            .collect();
        LengthReport {
            schema: SCHEMA,
            of,
            max_length: self.max_length,
            rollouts: self.rollouts_read(),
            needs: self.needs(logs, &played),
            timings: self.settings.timings.clone(),
            surprise: self.texts.surprise(),
            acceptance: self.truncated(|text, unlisted| {
                let ratios = ratios(text, Drafts::Sampled, unlisted);
                ratios.len() as f64 - oracle_calls(&ratios)
            }),
            results: self.results(&ways, &played),
            bounds: self.bounds(),
            by_cost,
            at_cost: self.settings.timings.as_ref().and_then(at),
            draft_paths: None,
            entropy_bounds: match self.texts.rows_tell(Some(RolloutList::Entropy)) {
                true => self.entropy_bounds(),
                false => Vec::new(),
            },
            definitions: definitions(),
            left_out: self.left_out(logs, &played),
        }
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
    fn lengths(&self) -> Vec<usize> {
        let fixed = |policy: &&Policy| policy.family.name == "fixed";
        let lengths = self.policies.iter().filter(fixed);
        let lengths: BTreeSet<usize> = lengths.map(|policy| policy.parameter as usize).collect();
        lengths.into_iter().collect()
    }

    /// A policy's rounds, added up by prompt.
    fn played(&self, policy: Policy, way: Way, unlisted: Unlisted) -> Played {
        let (drafts, verifier) = way;
        let list = policy.family.list;
        let known = if policy.is_set_at_start() {
            Known::FromText
        } else if !self.texts.rollouts.is_empty()
            && list.is_none_or(|list| self.texts.rollouts_have(list))
        {
            Known::FromRollouts
        } else {
            Known::AtLeast
        };
        let unused = |stopped: f64| {
            if policy.stops_before_drawing() {
                stopped
            } else {
                0.0
            }
        };
        let of = |text: &Text| {
            let along = AlongText {
                policy,
                places: &text.places,
                most: self.max_length,
            };
            let replay = replay(verifier, &ratios(text, drafts, unlisted), &along)?;
            let mut outcome = Outcome {
                calls: replay.calls,
                ..Outcome::default()
            };
            let mut known = known;
            match known {
                Known::FromText => outcome.least.rounds = replay.rounds,
                Known::AtLeast => {
                    outcome.least = Steps {
                        rounds: replay.seen,
                        unused: unused(replay.stopped),
                    };
                }
                Known::FromRollouts | Known::Between => {
                    let on: Vec<(usize, Result<Drafted, [Drafted; 2]>)> = text
                        .rollouts
                        .iter()
                        .filter(|rollout| replay.starts.get(rollout.start) > Some(&0.0))
                        .map(|rollout| (rollout.start, along.drafted_on(rollout)))
                        .collect();
                    if on.iter().any(|(_, drafted)| drafted.is_err()) {
                        known = Known::Between;
                    }
                    let [least, most] = [0, 1].map(|end| {
                        let on = on.iter().map(|&(start, drafted)| {
                            (start, drafted.unwrap_or_else(|ends| ends[end]))
                        });
                        let found = drafted_rounds(
                            &replay.starts,
                            |start| along.drafted(start),
                            on,
                            &text.spacing,
                        );
                        Steps {
                            rounds: found.rounds,
                            unused: unused(found.stopped),
                        }
                    });
                    outcome.least = least;
                    outcome.most = most;
                }
            }
            Some((outcome, known))
        };
        let found: Vec<Option<(Outcome, Known)>> = side_by_side::each(&self.texts.texts, of);
        let mut played = Played {
            policy,
            way,
            known,
            outcomes: vec![Outcome::default(); self.texts.clusters],
        };
        for (text, found) in self.texts.texts.iter().zip(&found) {
            if let Some((outcome, known)) = found {
                played.outcomes[text.cluster].add(outcome);
                played.known = played.known.max(*known);
            }
        }
        played
    }

    /// Rounds of every text of lengths that are set when they begin, added up by prompt in the
    /// texts' order.
    fn by_prompt(
        &self,
        rounds: impl Fn(&Text) -> Option<Replay<f64>> + Sync + Send,
    ) -> Vec<Outcome> {
        let replays: Vec<Option<Replay<f64>>> = side_by_side::each(&self.texts.texts, rounds);
        let mut outcomes = vec![Outcome::default(); self.texts.clusters];
        for (text, replay) in self.texts.texts.iter().zip(replays) {
            if let Some(replay) = replay {
                outcomes[text.cluster].add(&Outcome {
                    calls: replay.calls,
                    least: Steps {
                        rounds: replay.rounds,
                        unused: 0.0,
                    },
                    most: Steps::default(),
                });
            }
        }
        outcomes
    }

    /// A sum over the texts' tokens, divided by their number.
    fn rate(&self, of: impl Fn(&Text) -> f64) -> Estimate {
        let mut sums = vec![0.0; self.texts.clusters];
        for text in &self.texts.texts {
            sums[text.cluster] += of(text);
        }
        Clustered::new(sums.iter().copied().zip(self.tokens.iter().copied())).estimate()
    }

    /// The same with bounds where tokens are not listed, of a sum that rises or falls with
    /// each of their ratios.
    fn truncated(&self, of: impl Fn(&Text, Unlisted) -> f64) -> Estimate {
        let mean = |unlisted| self.rate(|text| of(text, unlisted)).mean;
        let bounds = self.are_open.then(|| {
            let ends = [mean(Unlisted::Rejected), mean(Unlisted::Accepted)];
            [ends[0].min(ends[1]), ends[0].max(ends[1])]
        });
        Estimate {
            truncation: bounds,
            ..self.rate(|text| of(text, Unlisted::Whole))
        }
    }

    fn results(&self, ways: &[Way], played: &[Played]) -> Vec<PolicyResult> {
        let most = self.lengths().into_iter().max().unwrap_or(0);
        let mut results = Vec::new();
        for &way in ways {
            let accepted =
                self.accepted(way, most, &|coins, _| accepted_lengths(way.1, coins, most));
            let by_means = match way.1 == ChainVerifier::Token && self.has_means(way.0) {
                true => self.accepted(way, most, &|coins, means| {
                    accepted_lengths_by_means(coins, means, most)
                }),
                false => Vec::new(),
            };
            let everywhere = self.accepted(way, most, &|coins, _| {
                let sums = accepted_everywhere(way.1, coins, most).into_iter();
                sums.map(|sum| (sum, coins.len())).collect()
            });
            for policy in self.policies_of(way.0) {
                let is_fixed = policy.family.name == "fixed";
                let found = (played.iter()).find(|one| one.way == way && one.policy == policy);
                if found.is_none() && !is_fixed {
                    continue;
                }
                let length = policy.parameter as usize;
                let of = |all: &[Option<Estimate>]| {
                    let one = all.get(length.wrapping_sub(1)).copied().flatten();
                    one.filter(|_| is_fixed)
                };
                results.push(PolicyResult {
                    expected_accepted_length: of(&accepted),
                    expected_accepted_length_by_means: of(&by_means),
                    accepted_from_everywhere: of(&everywhere),
                    ..self.result(policy, way, found)
                });
            }
        }
        mark_fronts(&mut results);
        results
    }

    /// Whether the mean of every coin is known.
    fn has_means(&self, drafts: Drafts) -> bool {
        let mut places = self.texts.texts.iter().flat_map(|text| &text.places);
        places.all(|place| mean_of_coin(place, drafts).is_some())
    }

    /// For each K, E\[tau\] over some starts of each text, of which `sums` tells the sum and the
    /// number by the coins and their means; `None` where there are none.
    fn accepted(&self, (drafts, _): Way, most: usize, sums: &SumsOf<'_>) -> Vec<Option<Estimate>> {
        let sums = |unlisted: Unlisted| -> Vec<Vec<(f64, usize)>> {
            let mean = |place: &Place| mean_of_coin(place, drafts).unwrap_or(0.0);
            side_by_side::each(&self.texts.texts, |text| {
                let means: Vec<f64> = text.places.iter().map(mean).collect();
                sums(&ratios(text, drafts, unlisted), &means)
            })
        };
        let clustered = |sums: &[Vec<(f64, usize)>], length: usize| {
            let mut clusters = vec![(0.0, 0.0); self.texts.clusters];
            for (text, sums) in self.texts.texts.iter().zip(sums) {
                let (sum, starts) = sums[length];
                clusters[text.cluster].0 += sum;
                clusters[text.cluster].1 += starts as f64;
            }
            let there = clusters.into_iter().filter(|&(_, starts)| starts > 0.0);
            let there: Vec<(f64, f64)> = there.collect();
            (!there.is_empty()).then(|| Clustered::new(there.into_iter()).estimate())
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
                Some(Estimate {
                    truncation,
                    ..estimate
                })
            })
            .collect()
    }

    fn result(&self, policy: Policy, way: Way, played: Option<&Played>) -> PolicyResult {
        let (drafts, verifier) = way;
        let mut result = PolicyResult {
            policy: policy.family.name.to_owned(),
            parameter: parameter(policy),
            drafts,
            verifier: verifier.as_str().to_owned(),
            kind: "estimate".to_owned(),
            expected_accepted_length: None,
            expected_accepted_length_by_means: None,
            accepted_from_everywhere: None,
            tokens_per_call: None,
            verification_rate: None,
            discard_rate: None,
            discard_rate_at_least: None,
            discard_rate_at_most: None,
            speedup: None,
            speedup_at_most: None,
            break_even_cost_ratio: None,
            on_front: None,
        };
        let Some(played) = played else {
            return result;
        };
        let group = Group {
            outcomes: &played.outcomes,
            tokens: &self.tokens,
        };
        result.tokens_per_call = Some(group.tokens_per_call());
        result.verification_rate = Some(group.verification_rate());
        let timings = self.settings.timings.as_ref();
        if played.known == Known::FromRollouts || played.known == Known::Between {
            result.kind = "estimate, rollouts".to_owned();
        }
        if played.known.is_whole() {
            result.discard_rate = Some(group.discard_rate());
            result.speedup = timings.and_then(|timings| group.speed(timings));
            // By the middles of wide bounds there is none.
            let known = self.texts.lacking() == 0;
            result.break_even_cost_ratio = group.break_even(timings).filter(|_| known);
        } else {
            result.discard_rate_at_least = Some(group.discard_rate());
            result.speedup_at_most = timings.and_then(|timings| group.speed_at_most(timings));
            if played.known == Known::Between {
                result.discard_rate_at_most = Some(group.discards(|outcome| &outcome.most));
            }
        }
        // Calls and drafts of fixed lengths fall as a token is accepted more often.
        let is_bounded = policy.family.name == "fixed" && verifier == ChainVerifier::Token;
        if self.is_open(drafts) && is_bounded {
            self.bound(&mut result, policy, way);
        }
        result
    }

    /// Puts between bounds what depends on tokens that are not listed.
    fn bound(&self, result: &mut PolicyResult, policy: Policy, way: Way) {
        let ends = [Unlisted::Rejected, Unlisted::Accepted]
            .map(|unlisted| self.played(policy, way, unlisted).outcomes);
        let groups = ends.each_ref().map(|outcomes| Group {
            outcomes,
            tokens: &self.tokens,
        });
        let put = |estimate: &mut Option<Estimate>, values: [Option<f64>; 2]| {
            if let (Some(estimate), [Some(one), Some(other)]) = (estimate, values) {
                estimate.truncation = Some([one.min(other), one.max(other)]);
            }
        };
        let all = |of: &dyn Fn(&Group<'_>) -> Option<Estimate>| {
            groups.each_ref().map(|group| Some(of(group)?.mean))
        };
        put(
            &mut result.tokens_per_call,
            all(&|group| Some(group.tokens_per_call())),
        );
        put(
            &mut result.verification_rate,
            all(&|group| Some(group.verification_rate())),
        );
        put(
            &mut result.discard_rate,
            all(&|group| Some(group.discard_rate())),
        );
        if let Some(timings) = self.settings.timings.as_ref().filter(|one| one.is_flat()) {
            put(&mut result.speedup, all(&|group| group.speed(timings)));
        }
    }

    fn bounds(&self) -> Bounds {
        let timings = self.settings.timings.as_ref();
        let oracle = |calls: fn(&[f64]) -> f64| Bound {
            verifier: ChainVerifier::Token.as_str().to_owned(),
            verification_rate: self
                .truncated(|text, unlisted| calls(&ratios(text, Drafts::Sampled, unlisted))),
            discard_rate: Estimate::default(),
            speedup: timings.map(|timings| self.oracle_speed(timings, calls)),
        };
        let blind = |verifier| {
            let known = self.texts.lacking() == 0;
            Some(self.coin_blind(timings.filter(|_| known)?, verifier))
        };
        Bounds {
            oracle: oracle(oracle_calls),
            oracle_to_the_end: oracle(oracle_calls_to_the_end),
            coin_blind: blind(ChainVerifier::Token),
            coin_blind_block: blind(ChainVerifier::Block),
        }
    }

    /// A speed that no policy with token verification passes.
    fn oracle_speed(&self, timings: &Timings, calls: fn(&[f64]) -> f64) -> Estimate {
        let pass = timings.verify.iter().map(|pass| pass.seconds);
        let call = pass.fold(f64::INFINITY, f64::min) + timings.overhead.seconds;
        let draft = timings.draft_step.seconds;
        let mut clusters = vec![(0.0, 0.0); self.texts.clusters];
        for text in &self.texts.texts {
            let tokens = text.ratios.len() as f64;
            // Every token comes of a draft step or of a call; calls are the dearer as a rule.
            let calls = if call >= draft {
                calls(&text.ratios)
            } else {
                tokens
            };
            let cluster = &mut clusters[text.cluster];
            cluster.0 += timings.target_step.seconds * tokens;
            cluster.1 += draft * (tokens - calls) + call * calls;
        }
        Clustered::new(clusters.into_iter()).estimate()
    }

    fn coin_blind(&self, timings: &Timings, verifier: ChainVerifier) -> Bound {
        let cost = |drafts| timings.round(drafts).unwrap_or(f64::INFINITY);
        let outcomes = self.by_prompt(|text| {
            let plan: CoinBlind<f64> = coin_blind(verifier, &text.ratios, &cost)?;
            replay(verifier, &text.ratios, &plan)
        });
        let group = Group {
            outcomes: &outcomes,
            tokens: &self.tokens,
        };
        Bound {
            verifier: verifier.as_str().to_owned(),
            verification_rate: group.verification_rate(),
            discard_rate: group.discard_rate(),
            speedup: group.speed(timings),
        }
    }

    /// What is best at a cost, each chosen on every other prompt: a fixed length, and the
    /// parameter of every other family whose drafts are known.
    fn at_cost(&self, timings: &Timings, played: &[Played]) -> Option<AtCost> {
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
                    parameter: parameter(policy),
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
            oracle: self.oracle_speed(timings, oracle_calls),
            coin_blind: blind
                .map(|&verifier| self.coin_blind(timings, verifier))
                .collect(),
        })
    }

    fn entropy_bounds(&self) -> Vec<EntropyBound> {
        [("svip", SVIP_GAMMA), ("adaedl", ADAEDL_GAMMA)]
            .into_iter()
            .map(|(policy, gamma)| EntropyBound {
                gamma,
                policy: policy.to_owned(),
                violated: self.rate(|text| {
                    let violates = |place: &&Place| {
                        // Beyond what rounding does.
                        place.overlap < 1.0 - (gamma * place.entropy).sqrt() - 1e-9
                    };
                    text.places.iter().filter(violates).count() as f64
                }),
            })
            .collect()
    }

    /// The command that logs what all policies' drafts need.
    fn needs(&self, logs: &[Log], played: &[Played]) -> Option<String> {
        let lacking = || played.iter().filter(|one| !one.known.is_whole());
        lacking().next()?;
        let target = lacking().any(|one| on_both(one.policy.family.list));
        let more = if target { " --rollout-target" } else { "" };
        let options = format!("--rollouts {} --every 4{more}", self.max_length);
        Some(capture_with(logs, &options))
    }

    fn left_out(&self, logs: &[Log], played: &[Played]) -> Vec<String> {
        let mut lines = Vec::new();
        if self.texts.lacking() > 0 {
            lines.push(format!(
                "block verification, policies other than fixed lengths, and the best length at a \
                 cost: at {} of {} positions the log has no row of the draft",
                self.texts.lacking(),
                self.texts.positions()
            ));
        } else if self.are_open {
            lines.push(
                "bounds of what full rows would give, for target calls with block verification and for \
                 policies other than fixed lengths: they do not rise or fall with what rows do not \
                 list. Log full rows"
                    .to_owned(),
            );
        }
        let names = |known: Known, wants: &dyn Fn(Option<RolloutList>) -> bool| {
            let those = played.iter().filter(|one| one.known == known);
            let mut names: Vec<&str> = Vec::new();
            for one in those.filter(|one| wants(one.policy.family.list)) {
                if !names.contains(&one.policy.family.name) {
                    names.push(one.policy.family.name);
                }
            }
            (!names.is_empty()).then(|| names.join(", "))
        };
        if self.texts.rollouts.is_empty() {
            let lacking = logs.iter().find(|log| !log.has_rollouts());
            let lacking = lacking.filter(|_| logs.iter().any(Log::has_rollouts));
            let which = lacking.map_or_else(
                || "this log".to_owned(),
                |log| format!("all logs: {} has none", log.path().display()),
            );
            for (wants, more) in [(false, ""), (true, " --rollout-target")] {
                if let Some(names) = names(Known::AtLeast, &|list| on_both(list) == wants) {
                    lines.push(format!(
                        "draft tokens, discards and speed of {names}: they need rollouts, what the \
                         draft writes by itself, which are not in {which}; log them with {}. Target \
                         calls follow from the text alone, and the part of the drafts that it shows \
                         bounds the rest",
                        capture_with(logs, &format!("--rollouts {} --every 4{more}", self.max_length))
                    ));
                }
            }
        } else {
            let lists: BTreeSet<&str> = played
                .iter()
                .filter(|one| one.known == Known::AtLeast)
                .filter_map(|one| Some(one.policy.family.list?.tensor()))
                .collect();
            for tensor in lists {
                let wants =
                    |list: Option<RolloutList>| list.map(RolloutList::tensor) == Some(tensor);
                if let Some(names) = names(Known::AtLeast, &wants) {
                    let cure = match tensor {
                        "rollout_target_p" | "rollout_overlap" => capture_with(
                            logs,
                            &format!("--rollouts {} --every 4 --rollout-target", self.max_length),
                        ),
                        _ => format!("rollouts with {tensor}"),
                    };
                    lines.push(format!(
                        "draft tokens, discards and speed of {names}: its rollouts have no {tensor}; \
                         log them with {cure}"
                    ));
                }
            }
            if let Some(names) = names(Known::Between, &|_| true) {
                let tokens = self.texts.rollout_tokens().unwrap_or(0);
                lines.push(format!(
                    "drafts and speed of {names}, but for bounds: rollouts of {tokens} tokens end \
                     before these policies do, which may draft {}; ask for --max-length {tokens}, or \
                     log longer ones with {}",
                    self.max_length,
                    capture_with(logs, &format!("--rollouts {} --every 4", self.max_length))
                ));
            }
        }
        if self.settings.drafts.is_empty() {
            lines.extend(self.cannot_tell(Drafts::OneHot));
        }
        let mut untold: Vec<&str> = Vec::new();
        for policy in &self.settings.policies {
            let name = policy.family.name;
            if !self.texts.rows_tell(policy.family.list) && !untold.contains(&name) {
                untold.push(name);
            }
        }
        if !untold.is_empty() {
            lines.push(format!(
                "{}: they are decided on the draft's row, and the log lists the text's own tokens \
                 alone; log rows, or the column max_q for p-min and overlap for overlap",
                untold.join(", ")
            ));
        }
        lines.push(
            "adaedl with a threshold that follows past acceptance: its calls depend on the drafts \
             that earlier rounds rejected, so that rollouts would have to follow one another as \
             rounds do"
                .to_owned(),
        );
        if !logs
            .iter()
            .all(|log| log.has_head_acceptance() || log.has_head_overlap())
        {
            lines.push(
                "specdec, specdec-late and overlap-head: they need what a head on the draft \
                 predicts, at the text's tokens and on rollouts (head_acceptance and \
                 rollout_acceptance, head_overlap and rollout_head_overlap)"
                    .to_owned(),
            );
        }
        if self
            .settings
            .verifiers
            .contains(&ChainVerifier::GreedyBlock)
        {
            lines.push(
                "calls of greedy-block: a round changes the target of the next, so that rounds \
                 cannot be replayed along the text; its number is one round's"
                    .to_owned(),
            );
        }
        if self.settings.timings.is_none() {
            lines.push(
                "speed at your cost: give --cost-ratio (a draft step's time over a target step's) \
                 or --timings"
                    .to_owned(),
            );
        }
        if let Some(most) = self
            .settings
            .timings
            .as_ref()
            .and_then(Timings::most_drafts)
        {
            let longer: Vec<String> = self
                .lengths()
                .into_iter()
                .filter(|&length| length > most)
                .map(|length| length.to_string())
                .collect();
            if !longer.is_empty() {
                lines.push(format!(
                    "speed of lengths {}: the timings have no verifying pass of more than {} \
                     tokens",
                    longer.join(", "),
                    most + 1
                ));
            }
        }
        lines
    }
}

/// The coins of drafts along a text, by a number of which 1 is the most that counts; of sampled
/// ones q/p, of which block verification takes all.
fn ratios(text: &Text, drafts: Drafts, unlisted: Unlisted) -> Vec<f64> {
    let (value, bounds): (OfPlace<f64>, OfPlace<[f64; 2]>) = match drafts {
        Drafts::Sampled => (|place| place.ratio, |place| place.ratio_bounds),
        Drafts::OneHot => (hit, |place| [hit(place); 2]),
        Drafts::ExactMatch => (|place| place.draft, |place| place.draft_bounds),
    };
    let ratio = |place: &Place| match unlisted {
        Unlisted::Whole => value(place),
        Unlisted::Rejected => bounds(place)[0],
        Unlisted::Accepted => bounds(place)[1],
    };
    text.places.iter().map(ratio).collect()
}

fn hit(place: &Place) -> f64 {
    f64::from(u8::from(place.hit == Some(true)))
}

/// What a coin is on average over the token, drawn from p.
fn mean_of_coin(place: &Place, drafts: Drafts) -> Option<f64> {
    match drafts {
        Drafts::Sampled => place.exact_overlap,
        Drafts::OneHot => place.p_hit,
        Drafts::ExactMatch => None,
    }
}

/// What a report is of: texts of these logs, measured by a command.
pub(super) fn measured(
    texts: &Texts,
    logs: &[Log],
    files: Vec<Vec<FileDigest>>,
    command: &str,
) -> MeasuredTexts {
    let held = logs.iter().any(Log::is_held);
    let logs = logs.iter().zip(files);
    let logs = logs.map(|(log, files)| text_log(log, files)).collect();
    MeasuredTexts {
        tool: format!("specgap {}", env!("CARGO_PKG_VERSION")),
        command: if held { "" } else { command }.to_owned(),
        logs,
        positions: texts.positions(),
        texts: texts.texts.len(),
        clusters: texts.clusters,
        temperature: texts.temperature,
        unlisted: texts.unlisted(),
        without_draft: texts.lacking(),
    }
}

/// Reads texts, while their files are hashed.
pub(super) fn with_files<T: Send>(
    logs: &[Log],
    read: impl FnOnce() -> Result<T, TextError> + Send,
) -> Result<(T, Vec<Vec<FileDigest>>), TextError> {
    let files = |log: &Log| -> Result<Vec<FileDigest>, TextError> {
        let digests = log.digests(&(0..log.positions()))?;
        Ok(digests.into_values().collect())
    };
    let hash = || logs.iter().map(files).collect::<Result<_, _>>();
    let (texts, files) = rayon::join(read, hash);
    Ok((texts?, files?))
}

fn text_log(log: &Log, files: Vec<FileDigest>) -> TextLog {
    let mut metadata = log.metadata().clone();
    metadata.token_text.clear();
    TextLog {
        name: log.name(),
        positions: log.positions(),
        vocabulary: log.vocabulary(),
        listed: log.listed(),
        files,
        metadata,
    }
}

/// Every other prompt.
struct Half {
    outcomes: Vec<Outcome>,
    tokens: Vec<f64>,
}

impl Half {
    fn new(outcomes: &[Outcome], tokens: &[f64], offset: usize) -> Self {
        Self {
            outcomes: outcomes.iter().skip(offset).step_by(2).cloned().collect(),
            tokens: tokens.iter().skip(offset).step_by(2).copied().collect(),
        }
    }

    fn group(&self) -> Group<'_> {
        Group {
            outcomes: &self.outcomes,
            tokens: &self.tokens,
        }
    }
}

/// Rounds of some prompts: all estimates are ratios of sums over them.
struct Group<'a> {
    outcomes: &'a [Outcome],
    tokens: &'a [f64],
}

impl Group<'_> {
    fn ratio(&self, of: impl Fn(&Outcome, f64) -> (f64, f64) + Clone) -> Clustered {
        let prompts = self.outcomes.iter().zip(self.tokens);
        Clustered::new(prompts.map(|(outcome, &tokens)| of(outcome, tokens)))
    }

    fn tokens_per_call(&self) -> Estimate {
        self.ratio(|outcome, tokens| (tokens, outcome.calls))
            .estimate()
    }

    fn verification_rate(&self) -> Estimate {
        self.ratio(|outcome, tokens| (outcome.calls, tokens))
            .estimate()
    }

    /// Of what is known of the drafts: all of them, or the least.
    fn discard_rate(&self) -> Estimate {
        self.discards(|outcome| &outcome.least)
    }

    fn discards(&self, of: fn(&Outcome) -> &Steps) -> Estimate {
        self.ratio(|outcome, tokens| (of(outcome).drafts() + outcome.calls - tokens, tokens))
            .estimate()
    }

    /// t_0 N / E\[time\].
    fn speed(&self, timings: &Timings) -> Option<Estimate> {
        Some(self.times(timings, false)?.speed(timings))
    }

    /// The same if nothing more were drafted than is known.
    fn speed_at_most(&self, timings: &Timings) -> Option<Estimate> {
        Some(self.times(timings, true)?.speed(timings))
    }

    /// Times of every prompt. With `at_least`, numbers of drafts are lower bounds.
    fn times(&self, timings: &Timings, at_least: bool) -> Option<Times> {
        let mut times = Times::default();
        for (outcome, &tokens) in self.outcomes.iter().zip(self.tokens) {
            let steps = &outcome.least;
            let here = timings.total(&steps.rounds, steps.unused, at_least)?;
            times
                .pairs
                .push((timings.target_step.seconds * tokens, here));
            times.all.add(steps);
        }
        Some(times)
    }

    /// The cost ratio at which the speed is 1, all other times being as they are.
    fn break_even(&self, timings: Option<&Timings>) -> Option<Estimate> {
        let flat = Timings::cost_ratio(1.0).ok()?;
        let timings = timings.unwrap_or(&flat);
        let mut pairs = Vec::with_capacity(self.tokens.len());
        for (outcome, &tokens) in self.outcomes.iter().zip(self.tokens) {
            let drafted = outcome.least.drafts();
            let others = timings.total(&outcome.least.rounds, -drafted, false)?;
            pairs.push((
                tokens - others / timings.target_step.seconds,
                drafted + outcome.least.unused,
            ));
        }
        let drafted: f64 = pairs.iter().map(|pair| pair.1).sum();
        (drafted > 0.0).then(|| Clustered::new(pairs.into_iter()).estimate())
    }
}

/// Times of some prompts.
#[derive(Default)]
struct Times {
    /// Of the target alone, and with drafts, for each prompt.
    pairs: Vec<(f64, f64)>,
    /// Steps of all of them.
    all: Steps,
}

impl Times {
    /// t_0 N / E\[time\], errors of the times included.
    fn speed(&self, timings: &Timings) -> Estimate {
        let time: f64 = self.pairs.iter().map(|pair| pair.1).sum();
        let mut speed = Clustered::new(self.pairs.iter().copied());
        if time > 0.0 {
            let of_times = timings.relative_variance(&self.all.rounds, self.all.unused, time);
            speed.error = speed.error.hypot(speed.mean * of_times.sqrt());
        }
        speed.estimate()
    }
}

/// A policy's parameter as reports have it.
fn parameter(policy: Policy) -> Parameter {
    if policy.family.counts {
        Parameter::Count(policy.parameter as u64)
    } else {
        Parameter::Threshold(policy.parameter)
    }
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

/// Whether a list needs the target on rollouts.
fn on_both(list: Option<RolloutList>) -> bool {
    matches!(list, Some(RolloutList::Overlap | RolloutList::TargetP))
}

/// The command that captures logs with more options, as far as logs say how they were made.
pub(super) fn capture_with(logs: &[Log], options: &str) -> String {
    let made = logs.first().and_then(|log| log.metadata().command.clone());
    match made.filter(|command| command.starts_with("specgap capture")) {
        Some(command) => format!("{command} {options}"),
        None => format!("specgap capture ... {options}"),
    }
}
