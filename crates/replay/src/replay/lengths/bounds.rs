//! What no policy can pass.

use super::super::measured::within;
use super::super::position::TextPosition;
use super::super::timings::Timings;
use super::coins::{TextCoins, Unlisted, coins};
use super::data::{Bound, Bounds, EntropyBound, SeveralRounds};
use super::drafts::Drafts;
use super::measure::Measurement;
use super::outcome::{Group, Played};
use super::policy::{ADAEDL_GAMMA, SVIP_GAMMA};
use specgap_core::rounds::floats::{coin_blind_each, replay_each};
use specgap_core::rounds::{ChainRule, DraftLength};
use specgap_statistics::{Clustered, Estimate};

impl Measurement<'_> {
    pub(super) fn bounds(&self, played: &[Played]) -> Bounds {
        let timings = self.settings.timings.as_ref();
        let oracle = |calls: fn(&TextCoins) -> f64| Bound {
            verifier: ChainRule::TOKEN.as_str().to_owned(),
            verification_rate: self
                .truncated(|text, unlisted| calls(&coins(text, Drafts::Sampled, unlisted))),
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
            oracle: oracle(TextCoins::oracle_calls),
            oracle_to_the_end: oracle(TextCoins::oracle_calls_to_the_end),
            coin_blind: blind(ChainRule::TOKEN),
            coin_blind_block: blind(ChainRule::BLOCK),
        }
    }

    /// A speed that no policy with token verification passes.
    pub(super) fn oracle_speed(&self, timings: &Timings, calls: fn(&TextCoins) -> f64) -> Estimate {
        let pass = timings.verify.iter().map(|pass| pass.seconds);
        let call = pass.fold(f64::INFINITY, f64::min) + timings.overhead.seconds;
        let draft = timings.draft_step.seconds;
        let at = |unlisted: Unlisted| {
            let mut clusters = vec![(0.0, 0.0); self.texts.clusters];
            for text in &self.texts.texts {
                let tokens = text.ratios.len() as f64;
                // Every token comes of a draft step or of a call; calls are the dearer as a rule.
                let calls = match call >= draft {
                    true => calls(&coins(text, Drafts::Sampled, unlisted)),
                    false => tokens,
                };
                let cluster = &mut clusters[text.cluster];
                cluster.0 += timings.target_step.seconds * tokens;
                cluster.1 += draft * (tokens - calls) + call * calls;
            }
            Clustered::new(clusters.into_iter()).estimate()
        };
        let mean = |unlisted| at(unlisted).mean;
        let ends = || [mean(Unlisted::Rejected), mean(Unlisted::Accepted)];
        within(at(Unlisted::Whole), self.are_open.then(ends))
    }

    fn coin_blind(&self, timings: &Timings, verifier: ChainRule) -> Bound {
        self.coin_blind_each(std::slice::from_ref(timings), verifier)
            .swap_remove(0)
    }

    /// The bound at each of some costs; a text is gone through once.
    pub(super) fn coin_blind_each(&self, timings: &[Timings], verifier: ChainRule) -> Vec<Bound> {
        let longest = self.texts.texts.iter().map(|text| text.places.len()).max();
        let costs = timings.iter().map(|timings| {
            let cost = |drafts| timings.round(drafts).unwrap_or(f64::INFINITY);
            (0..longest.unwrap_or(0)).map(cost).collect()
        });
        let costs: Vec<Vec<f64>> = costs.collect();
        let outcomes = self.by_prompt(timings.len(), |text| {
            let coins = coins(text, Drafts::Sampled, Unlisted::Whole);
            let plans = coin_blind_each(verifier, &coins, &costs).unwrap_or_default();
            let plans: Vec<&dyn DraftLength> = plans.iter().map(|plan| plan as _).collect();
            replay_each(verifier, &coins, &plans).unwrap_or_default()
        });
        let bounds = timings.iter().zip(&outcomes).map(|(timings, outcomes)| {
            let group = Group::all(outcomes, &self.tokens);
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
