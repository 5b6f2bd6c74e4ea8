//! What no policy can pass.

use super::super::between::{RoundBounds, replay_between_with};
use super::super::measured::within;
use super::super::moments::reached;
use super::super::position::TextPosition;
use super::super::read::Text;
use super::super::timings::Timings;
use super::coins::{TextCoins, Unlisted, coins};
use super::data::{Bound, Bounds, EntropyBound, SeveralRounds};
use super::drafts::Drafts;
use super::measure::Measurement;
use super::outcome::{Group, Known, Outcome, Played, Way};
use super::policy::{ADAEDL_GAMMA, Policy, SVIP_GAMMA};
use specgap_core::rounds::floats::{coin_blind_each, replay_each};
use specgap_core::rounds::{ChainRule, Coins, DraftLength};
use specgap_statistics::{Clustered, Estimate};

/// The oracle's calls of each text, and their least and most where rows leave coins open.
pub(super) struct OracleCalls {
    whole: Vec<f64>,
    ends: Option<[Vec<f64>; 2]>,
}

impl OracleCalls {
    fn estimate(&self, of: impl Fn(&[f64]) -> Estimate) -> Estimate {
        let ends = self.ends.as_ref();
        let bounds = ends.map(|ends| ends.each_ref().map(|calls| of(calls).mean));
        let bounds = bounds.map(|[one, other]| [one.min(other), one.max(other)]);
        within(of(&self.whole), bounds)
    }
}

/// Bounds on rounds of a fixed length where the draft's rows depend on where a round begins, over N.
pub(super) struct Between {
    /// Target calls.
    pub(super) calls: [f64; 2],
    /// Drafts and calls.
    pub(super) steps: [f64; 2],
    pub(super) speed: Option<[f64; 2]>,
}

impl Measurement<'_> {
    /// The same for the texts of some prompts, with token verification: a token that is accepted more often
    /// may lead to a start whose drafts are worse.
    pub(super) fn between(
        &self,
        policy: Policy,
        (drafts, verifier): Way,
        timings: Option<&Timings>,
        is_asked: impl Fn(usize) -> bool,
    ) -> Between {
        let most = policy.parameter as usize;
        let steps: Vec<f64> = (0..=most).map(|drafts| 1.0 + drafts as f64).collect();
        let times = timings.map(|timings| {
            let time = |drafts| timings.round(drafts).unwrap_or(f64::INFINITY);
            (0..=most).map(time).collect::<Vec<f64>>()
        });
        let of = |text: &Text| {
            let ends = [Unlisted::Rejected, Unlisted::Accepted].map(|end| coins(text, drafts, end));
            let walk = |start: usize, room: usize| {
                ends.each_ref().map(|coins| {
                    let reached = reached(verifier, coins.ahead(start).iter().take(room));
                    let mut reached = [vec![1.0], reached].concat();
                    reached.resize(room + 1, 0.0);
                    reached
                })
            };
            let with = |times: &[f64]| replay_between_with(most, text.tokens(), times, walk);
            (with(&steps), times.as_ref().map(|times| with(times).time))
        };
        let (mut sum, mut time, mut tokens) = (RoundBounds::default(), [0.0; 2], 0.0);
        for (text, (steps, timed)) in self.texts.texts.iter().zip(self.texts.each(of)) {
            if is_asked(text.cluster) {
                sum.add(steps);
                tokens += text.tokens() as f64;
                let timed = timed.unwrap_or_default();
                time = [0, 1].map(|end| time[end] + timed[end]);
            }
        }
        let [quick, slow] = time.map(|time| Some(timings?.target_step.seconds * tokens / time));
        Between {
            calls: sum.calls.map(|calls| calls / tokens),
            steps: sum.time.map(|steps| steps / tokens),
            speed: slow.zip(quick).map(|(slow, quick)| [slow, quick]),
        }
    }

    pub(super) fn bounds(&self, played: &[Played], oracle: &OracleCalls) -> Bounds {
        let timings = self.settings.timings.as_ref();
        let bound = |calls: &OracleCalls| Bound {
            verifier: ChainRule::TOKEN.as_str().to_owned(),
            verification_rate: calls.estimate(|calls| {
                let sums = self.texts.sums(calls.iter().copied());
                self.over(&sums, &self.tokens)
            }),
            discard_rate: Estimate::default(),
            speedup: timings.map(|timings| self.oracle_speed(timings, calls)),
        };
        let blind = |verifier| Some(self.coin_blind(timings.filter(|_| !self.is_wide)?, verifier));
        let fewest_calls = self.fewest_calls(played);
        let by_length = fewest_calls.iter().filter_map(|row| {
            Some(SeveralRounds {
                length: row.most?,
                tokens_per_call: row.tokens_per_call,
            })
        });
        Bounds {
            several_rounds: by_length.collect(),
            fewest_calls,
            oracle: bound(oracle),
            oracle_to_the_end: bound(&self.oracle(TextCoins::oracle_calls_to_the_end)),
            coin_blind: blind(ChainRule::TOKEN),
            coin_blind_block: blind(ChainRule::BLOCK),
        }
    }

    /// The calls of one who knows text and coins.
    pub(super) fn oracle(&self, calls: fn(&TextCoins) -> f64) -> OracleCalls {
        let of = |unlisted| {
            let of = |text: &Text| calls(&coins(text, Drafts::Sampled, unlisted));
            self.texts.each(of)
        };
        OracleCalls {
            whole: of(Unlisted::Whole),
            ends: (self.are_open).then(|| [of(Unlisted::Rejected), of(Unlisted::Accepted)]),
        }
    }

    /// A speed that no policy with token verification passes.
    pub(super) fn oracle_speed(&self, timings: &Timings, calls: &OracleCalls) -> Estimate {
        let pass = timings.verify.iter().map(|pass| pass.seconds);
        let call = pass.fold(f64::INFINITY, f64::min) + timings.overhead.seconds;
        let draft = timings.draft_step.seconds;
        calls.estimate(|calls| {
            let mut clusters = vec![(0.0, 0.0); self.texts.clusters];
            for (text, &calls) in self.texts.texts.iter().zip(calls) {
                let tokens = text.tokens() as f64;
                // Every token comes of a draft step or of a call; calls are the dearer as a rule.
                let calls = if call >= draft { calls } else { tokens };
                let cluster = &mut clusters[text.cluster];
                cluster.0 += timings.target_step.seconds * tokens;
                cluster.1 += draft * (tokens - calls) + call * calls;
            }
            Clustered::new(clusters.into_iter()).estimate()
        })
    }

    fn coin_blind(&self, timings: &Timings, verifier: ChainRule) -> Bound {
        self.coin_blind_each(std::slice::from_ref(timings), verifier)
            .swap_remove(0)
    }

    /// The bound at each of some costs; a text is gone through once.
    pub(super) fn coin_blind_each(&self, timings: &[Timings], verifier: ChainRule) -> Vec<Bound> {
        let longest = self.texts.texts.iter().map(Text::tokens).max();
        let costs = timings.iter().map(|timings| {
            let cost = |drafts| timings.round(drafts).unwrap_or(f64::INFINITY);
            (0..longest.unwrap_or(0)).map(cost).collect()
        });
        let costs: Vec<Vec<f64>> = costs.collect();
        let outcomes = self.by_prompt(timings.len(), |text| {
            let coins = coins(text, Drafts::Sampled, Unlisted::Whole);
            let plans = coin_blind_each(verifier, &coins, &costs).unwrap_or_default();
            let plans: Vec<&dyn DraftLength> = plans.iter().map(|plan| plan as _).collect();
            let replayed = replay_each(verifier, &coins, &plans).unwrap_or_default();
            let each = replayed.into_iter().map(Outcome::set_at_start);
            each.map(|outcome| (outcome, Known::FromText)).collect()
        });
        let bounds = timings
            .iter()
            .zip(&outcomes)
            .map(|(timings, (outcomes, _))| {
                let group = Group::all(outcomes.all(), &self.tokens);
                Bound {
                    verifier: verifier.as_str().to_owned(),
                    verification_rate: group.verification_rate(),
                    discard_rate: group.discard_rate(),
                    speedup: group.speed(timings),
                }
            });
        bounds.collect()
    }

    pub(super) fn entropy_bounds(&self) -> Vec<EntropyBound> {
        [("svip", SVIP_GAMMA), ("adaedl", ADAEDL_GAMMA)]
            .into_iter()
            .map(|(policy, gamma)| EntropyBound {
                gamma,
                policy: policy.to_owned(),
                violated: self.rate(|text| {
                    let violates = |place: &&TextPosition| {
                        // Beyond what rounding does.
                        place.overlap < 1.0 - (gamma * place.entropy).sqrt() - 1e-9
                    };
                    text.places.iter().filter(violates).count() as f64
                }),
            })
            .collect()
    }
}
