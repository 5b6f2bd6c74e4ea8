//! From texts to a report.

use super::TextError;
use super::bounds::{CoinBlind, coin_blind, oracle_calls, oracle_calls_to_the_end};
use super::cost::Timings;
use super::data::{
    AtCost, Bound, Bounds, Chosen, EntropyBound, LengthReport, Parameter, PolicyResult, SCHEMA,
    Surprise, TextLog,
};
use super::glossary::definitions;
use super::policy::{ADAEDL_GAMMA, AlongText, FAMILIES, Policy, SVIP_GAMMA};
use super::replay::{Replay, replay};
use super::survival::{ChainVerifier, accepted_lengths};
use super::texts::{Text, Texts};
use crate::gap::{Clustered, Estimate};
use crate::log::Log;
use rayon::prelude::*;
use std::collections::BTreeSet;

/// What to replay.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The policies. The best length by cost is one of the fixed lengths among them.
    pub policies: Vec<Policy>,
    /// The verifiers.
    pub verifiers: Vec<ChainVerifier>,
    /// What a round costs, if it is known.
    pub timings: Option<Timings>,
    /// The most tokens of a round, for policies that stop by themselves.
    pub max_length: usize,
    /// The temperature at which the text was drawn, where the log does not say.
    pub temperature: Option<f64>,
}

impl Settings {
    /// [`Settings::max_length`] if nothing else is asked for.
    pub const MAX_LENGTH: usize = 16;
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            policies: FAMILIES.iter().flat_map(|family| family.usual()).collect(),
            verifiers: ChainVerifier::ALL.to_vec(),
            timings: None,
            max_length: Self::MAX_LENGTH,
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
    let texts = Texts::read(logs, settings.temperature, progress)?;
    Ok(Measurement::new(&texts, settings).report(logs, command))
}

/// What a policy does with a verifier along some text, in expectation.
#[derive(Clone, Debug, Default)]
struct Outcome {
    calls: f64,
    /// As [`Replay::rounds`].
    rounds: Vec<f64>,
    /// As [`Replay::seen`].
    seen: Vec<f64>,
    stopped: f64,
}

impl Outcome {
    fn add(&mut self, other: &Replay<f64>) {
        self.calls += other.calls;
        add_each(&mut self.rounds, &other.rounds);
        add_each(&mut self.seen, &other.seen);
        self.stopped += other.stopped;
    }
}

/// Adds entry by entry, as if the shorter ended in zeros.
pub(super) fn add_each(one: &mut Vec<f64>, other: &[f64]) {
    if one.len() < other.len() {
        one.resize(other.len(), 0.0);
    }
    one.iter_mut().zip(other).for_each(|(a, b)| *a += b);
}

fn drafts(rounds: &[f64]) -> f64 {
    (0..)
        .zip(rounds)
        .map(|(n, &count)| f64::from(n) * count)
        .sum()
}

/// The texts, what is asked of them, and what is the same for all policies.
struct Measurement<'a> {
    texts: &'a Texts,
    settings: &'a Settings,
    /// Tokens of each prompt.
    tokens: Vec<f64>,
    unlisted: usize,
    /// What rows do not list leaves ratios open.
    are_open: bool,
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
        Self {
            texts,
            settings,
            tokens: texts.tokens(),
            unlisted: texts.unlisted(),
            are_open: texts.are_open(),
        }
    }

    fn report(&self, logs: &[Log], command: &str) -> LengthReport {
        let fixed: Vec<(ChainVerifier, usize, Vec<Outcome>)> = self
            .settings
            .verifiers
            .iter()
            .filter(|verifier| verifier.has_rounds())
            .flat_map(|&verifier| {
                let lengths = self.lengths();
                lengths.into_iter().map(move |length| {
                    let outcomes = self.outcomes(Policy::fixed(length), verifier, Unlisted::Whole);
                    (verifier, length, outcomes)
                })
            })
            .collect();
        let at = |timings: &Timings| self.at_cost(timings, &fixed);
        let by_cost = COST_RATIOS
            .iter()
            .filter_map(|&ratio| at(&Timings::cost_ratio(ratio).ok()?))
            .collect();
        LengthReport {
            schema: SCHEMA,
            tool: format!("specgap {}", env!("CARGO_PKG_VERSION")),
            command: command.to_owned(),
            logs: logs.iter().map(text_log).collect(),
            positions: self.texts.positions(),
            texts: self.texts.texts.len(),
            clusters: self.texts.clusters,
            temperature: self.texts.temperature,
            unlisted: self.unlisted,
            max_length: self.settings.max_length,
            timings: self.settings.timings.clone(),
            surprise: surprise(self.texts),
            acceptance: self.truncated(|text, unlisted| {
                let ratios = ratios(text, unlisted);
                ratios.len() as f64 - oracle_calls(&ratios)
            }),
            results: self.results(),
            bounds: self.bounds(),
            by_cost,
            at_cost: self.settings.timings.as_ref().and_then(at),
            entropy_bounds: self.entropy_bounds(),
            definitions: definitions(),
            left_out: self.left_out(),
        }
    }

    /// Fixed lengths that are asked for, ascending.
    fn lengths(&self) -> Vec<usize> {
        let fixed = |policy: &&Policy| policy.family.name == "fixed";
        let lengths = self.settings.policies.iter().filter(fixed);
        let lengths: BTreeSet<usize> = lengths.map(|policy| policy.parameter as usize).collect();
        lengths.into_iter().collect()
    }

    /// A policy's rounds, added up by prompt.
    fn outcomes(
        &self,
        policy: Policy,
        verifier: ChainVerifier,
        unlisted: Unlisted,
    ) -> Vec<Outcome> {
        self.by_prompt(|text| {
            let along = AlongText {
                policy,
                places: &text.places,
                most: self.settings.max_length,
            };
            replay(verifier, &ratios(text, unlisted), &along)
        })
    }

    /// Rounds of every text, added up by prompt in the texts' order.
    fn by_prompt(
        &self,
        rounds: impl Fn(&Text) -> Option<Replay<f64>> + Sync + Send,
    ) -> Vec<Outcome> {
        let replays: Vec<Option<Replay<f64>>> = self.texts.texts.par_iter().map(rounds).collect();
        let mut outcomes = vec![Outcome::default(); self.texts.clusters];
        for (text, replay) in self.texts.texts.iter().zip(&replays) {
            if let Some(replay) = replay {
                outcomes[text.cluster].add(replay);
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

    fn results(&self) -> Vec<PolicyResult> {
        let most = self.lengths().into_iter().max().unwrap_or(0);
        let mut results = Vec::new();
        for &verifier in &self.settings.verifiers {
            let accepted = self.accepted(verifier, most);
            for &policy in &self.settings.policies {
                let is_fixed = policy.family.name == "fixed";
                if !verifier.has_rounds() && !is_fixed {
                    continue;
                }
                let length = policy.parameter as usize;
                let expected = accepted.get(length.wrapping_sub(1)).copied().flatten();
                results.push(PolicyResult {
                    expected_accepted_length: expected.filter(|_| is_fixed),
                    ..self.result(policy, verifier)
                });
            }
        }
        results
    }

    /// For each K, E\[tau\] over the positions at which K tokens are left; `None` where there
    /// are none.
    fn accepted(&self, verifier: ChainVerifier, most: usize) -> Vec<Option<Estimate>> {
        let sums = |unlisted: Unlisted| -> Vec<Vec<(f64, usize)>> {
            let texts = self.texts.texts.par_iter();
            texts
                .map(|text| accepted_lengths(verifier, &ratios(text, unlisted), most))
                .collect()
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
            self.are_open.then(|| [sums(Unlisted::Rejected), sums(Unlisted::Accepted)]);
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

    fn result(&self, policy: Policy, verifier: ChainVerifier) -> PolicyResult {
        let parameter = if policy.family.counts {
            Parameter::Count(policy.parameter as u64)
        } else {
            Parameter::Threshold(policy.parameter)
        };
        let mut result = PolicyResult {
            policy: policy.family.name.to_owned(),
            parameter,
            verifier: verifier.as_str().to_owned(),
            kind: "estimate".to_owned(),
            expected_accepted_length: None,
            tokens_per_call: None,
            verification_rate: None,
            discard_rate: None,
            discard_rate_at_least: None,
            speedup: None,
            speedup_at_most: None,
            break_even_cost_ratio: None,
        };
        if !verifier.has_rounds() {
            return result;
        }
        let group = Group {
            outcomes: &self.outcomes(policy, verifier, Unlisted::Whole),
            tokens: &self.tokens,
        };
        result.tokens_per_call = Some(group.tokens_per_call());
        result.verification_rate = Some(group.verification_rate());
        let timings = self.settings.timings.as_ref();
        if policy.is_set_at_start() {
            result.discard_rate = Some(group.discard_rate());
            result.speedup = timings.and_then(|timings| group.speed(timings));
            result.break_even_cost_ratio = group.break_even(timings);
        } else {
            let unused = policy.stops_before_drawing();
            result.discard_rate_at_least = Some(group.discards_at_least());
            result.speedup_at_most =
                timings.and_then(|timings| group.speed_at_most(timings, unused));
        }
        // Calls and drafts of fixed lengths fall as a token is accepted more often.
        if self.are_open && policy.family.name == "fixed" && verifier == ChainVerifier::Token {
            self.bound(&mut result, policy, verifier);
        }
        result
    }

    /// Puts between bounds what depends on tokens that are not listed.
    fn bound(&self, result: &mut PolicyResult, policy: Policy, verifier: ChainVerifier) {
        let ends = [Unlisted::Rejected, Unlisted::Accepted]
            .map(|unlisted| self.outcomes(policy, verifier, unlisted));
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
            verification_rate: self.truncated(|text, unlisted| calls(&ratios(text, unlisted))),
            discard_rate: Estimate::default(),
            speedup: timings.map(|timings| self.oracle_speed(timings, calls)),
        };
        let blind = |verifier| Some(self.coin_blind(timings?, verifier));
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

    /// The best fixed lengths at a cost, each chosen on every other prompt.
    fn at_cost(
        &self,
        timings: &Timings,
        fixed: &[(ChainVerifier, usize, Vec<Outcome>)],
    ) -> Option<AtCost> {
        let mut chosen = Vec::new();
        for &verifier in &self.settings.verifiers {
            let speeds = fixed.iter().filter(|one| one.0 == verifier);
            let best = speeds
                .filter_map(|(_, length, outcomes)| {
                    let half = Half::new(outcomes, &self.tokens, 0);
                    let speed = half.group().speed(timings)?.mean;
                    Some((speed, *length, outcomes))
                })
                .fold(
                    None,
                    |best: Option<(f64, usize, &Vec<Outcome>)>, one| match best {
                        Some(best) if best.0 >= one.0 => Some(best),
                        _ => Some(one),
                    },
                );
            let Some((flattered, length, outcomes)) = best else {
                continue;
            };
            let half = Half::new(outcomes, &self.tokens, 1);
            if half.tokens.is_empty() {
                continue;
            }
            chosen.push(Chosen {
                verifier: verifier.as_str().to_owned(),
                parameter: length as u64,
                chosen_on: self.texts.clusters - half.tokens.len(),
                speedup_where_chosen: flattered,
                reported_on: half.tokens.len(),
                speedup: half.group().speed(timings)?,
            });
        }
        let blind = self.settings.verifiers.iter();
        let blind = blind.filter(|verifier| verifier.has_rounds());
        Some(AtCost {
            cost_ratio: timings.draft_cost(),
            chosen,
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
                    let violates = |place: &&super::texts::Place| {
                        // Beyond what rounding does.
                        place.overlap < 1.0 - (gamma * place.entropy).sqrt() - 1e-9
                    };
                    text.places.iter().filter(violates).count() as f64
                }),
            })
            .collect()
    }

    fn left_out(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let off_path: BTreeSet<&str> = self
            .settings
            .policies
            .iter()
            .filter(|policy| !policy.is_set_at_start())
            .map(|policy| policy.family.name)
            .collect();
        if !off_path.is_empty() {
            let names: Vec<&str> = off_path.into_iter().collect();
            lines.push(format!(
                "draft tokens, discards and speed of {}: what they draft after a token that is \
                 rejected depends on rows that are not in this log; they need rollouts of the \
                 draft. Their target calls follow from the text alone, and the part of the drafts \
                 that it shows bounds the rest",
                names.join(", ")
            ));
        }
        lines.push(
            "adaedl with a threshold that follows past acceptance, and heads that predict \
             acceptance: the first needs the drafts that were rejected, the second what a head \
             says; both need rollouts"
                .to_owned(),
        );
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

/// -ln p(y) less its mean is a martingale difference for text drawn from the rows.
pub(super) fn surprise(texts: &Texts) -> Surprise {
    let places = || texts.texts.iter().flat_map(|text| &text.places);
    let count = places().count().max(1) as f64;
    let observed: f64 = places().map(|place| place.surprise).sum();
    let expected: f64 = places().map(|place| place.expected_surprise[0]).sum();
    let variance: f64 = places().map(|place| place.expected_surprise[1]).sum();
    let z = if variance > 0.0 {
        (observed - expected) / variance.sqrt()
    } else {
        0.0
    };
    Surprise {
        observed: observed / count,
        expected: expected / count,
        z,
    }
}

/// q/p along a text.
fn ratios(text: &Text, unlisted: Unlisted) -> Vec<f64> {
    let places = text.places.iter();
    let ratio = |place: &super::texts::Place| match unlisted {
        Unlisted::Whole => place.ratio,
        Unlisted::Rejected => place.ratio_bounds[0],
        Unlisted::Accepted => place.ratio_bounds[1],
    };
    places.map(ratio).collect()
}

pub(super) fn text_log(log: &Log) -> TextLog {
    let mut metadata = log.metadata().clone();
    metadata.token_text.clear();
    TextLog {
        name: log.path().file_name().map_or_else(
            || log.path().display().to_string(),
            |name| name.to_string_lossy().into_owned(),
        ),
        positions: log.positions(),
        vocabulary: log.vocabulary(),
        listed: log.listed(),
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

    fn discard_rate(&self) -> Estimate {
        self.ratio(|outcome, tokens| (drafts(&outcome.rounds) + outcome.calls - tokens, tokens))
            .estimate()
    }

    fn discards_at_least(&self) -> Estimate {
        self.ratio(|outcome, tokens| (drafts(&outcome.seen) + outcome.calls - tokens, tokens))
            .estimate()
    }

    /// t_0 N / E[time].
    fn speed(&self, timings: &Timings) -> Option<Estimate> {
        self.speed_of(timings, |outcome| (&outcome.rounds, 0.0), false)
    }

    /// The same if nothing were drafted after a rejected token. With `unused`, a row that
    /// makes a policy stop costs a draft step.
    fn speed_at_most(&self, timings: &Timings, unused: bool) -> Option<Estimate> {
        let steps = move |outcome: &Outcome| if unused { outcome.stopped } else { 0.0 };
        self.speed_of(timings, |outcome| (&outcome.seen, steps(outcome)), true)
    }

    fn speed_of(
        &self,
        timings: &Timings,
        rounds: impl Fn(&Outcome) -> (&Vec<f64>, f64),
        at_least: bool,
    ) -> Option<Estimate> {
        let mut pairs = Vec::with_capacity(self.tokens.len());
        let (mut all, mut all_steps, mut time) = (Vec::<f64>::new(), 0.0, 0.0);
        for (outcome, &tokens) in self.outcomes.iter().zip(self.tokens) {
            let (rounds, steps) = rounds(outcome);
            let here = timings.total(rounds, steps, at_least)?;
            pairs.push((timings.target_step.seconds * tokens, here));
            if all.len() < rounds.len() {
                all.resize(rounds.len(), 0.0);
            }
            all.iter_mut()
                .zip(rounds)
                .for_each(|(sum, count)| *sum += count);
            all_steps += steps;
            time += here;
        }
        let mut speed = Clustered::new(pairs.into_iter());
        if time > 0.0 {
            let of_times = timings.relative_variance(&all, all_steps, time).sqrt();
            speed.error = speed.error.hypot(speed.mean * of_times);
        }
        Some(speed.estimate())
    }

    /// The cost ratio at which the speed is 1, all other times being as they are.
    fn break_even(&self, timings: Option<&Timings>) -> Option<Estimate> {
        let flat = Timings::cost_ratio(1.0).ok()?;
        let timings = timings.unwrap_or(&flat);
        let mut pairs = Vec::with_capacity(self.tokens.len());
        for (outcome, &tokens) in self.outcomes.iter().zip(self.tokens) {
            let drafted = drafts(&outcome.rounds);
            let others = timings.total(&outcome.rounds, -drafted, false)?;
            pairs.push((tokens - others / timings.target_step.seconds, drafted));
        }
        let drafted: f64 = pairs.iter().map(|pair| pair.1).sum();
        (drafted > 0.0).then(|| Clustered::new(pairs.into_iter()).estimate())
    }
}
