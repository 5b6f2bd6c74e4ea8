//! What no lossless rule of one path can pass over several rounds, and how far rules are from it.

use super::super::read::Text;
use super::data::{AboveFewest, FewestCalls};
use super::drafts::Drafts;
use super::measure::Measurement;
use super::outcome::Played;
use super::policy::Policy;
use specgap_core::rounds::floats::{carried_starts, fewest_calls, fewest_calls_unlimited};
use specgap_core::rounds::{ChainRule, fewest_calls_between};
use specgap_core::rule::RuleName;
use specgap_statistics::{Clustered, Estimate};

impl Measurement<'_> {
    /// The least calls for every fixed length that is asked for, and for drafts as long as one
    /// likes, which come last.
    pub(super) fn fewest_calls(&self, played: &[Played]) -> Vec<FewestCalls> {
        let lengths = self.lengths().into_iter().map(Some);
        let rows = lengths.chain([None]);
        // Of drafts that look at where their round began these sums are a bound with one draft a
        // round, whose rows are those of first places; with more they are none.
        let holds = |most: &Option<usize>| !self.texts.is_by_depth() || *most == Some(1);
        let rows = rows.filter(holds);
        rows.map(|most| self.fewest_with(most, played)).collect()
    }

    fn fewest_with(&self, most: Option<usize>, played: &[Played]) -> FewestCalls {
        let fewest = self.calls(|ratios| match most {
            Some(most) => fewest_calls(ratios, most),
            None => fewest_calls_unlimited(ratios),
        });
        let truncation = self.are_open.then(|| self.fewest_between(most));
        let tokens: f64 = self.tokens.iter().sum();
        let mut tokens_per_call = self.over(&self.tokens, &fewest);
        tokens_per_call.truncation = truncation.map(|[low, high]| [tokens / high, tokens / low]);
        let mut verification_rate = self.over(&fewest, &self.tokens);
        verification_rate.truncation = truncation.map(|ends| ends.map(|end| end / tokens));
        FewestCalls {
            most: most.map(|most| most as u64),
            tokens_per_call,
            verification_rate,
            above: most.map_or_else(Vec::new, |most| self.above(most, &fewest, played)),
        }
    }

    /// Rules with so many drafts a round against the least.
    fn above(&self, most: usize, fewest: &[f64], played: &[Played]) -> Vec<AboveFewest> {
        // Where rows are missing, a difference of two unknowns.
        if self.is_wide {
            return Vec::new();
        }
        let row = |rule: &str, calls: &[f64]| {
            let more = calls.iter().zip(fewest).map(|(calls, least)| calls - least);
            AboveFewest {
                rule: rule.to_owned(),
                tokens_per_call: self.over(&self.tokens, calls),
                more_calls: self.over(&more.collect::<Vec<f64>>(), fewest),
            }
        };
        let policy = Policy::fixed(most);
        let replayed = ChainRule::all().filter_map(|verifier| {
            let way = (Drafts::Sampled, verifier);
            let one = (played.iter()).find(|one| one.way == way && one.policy == policy)?;
            let calls: Vec<f64> = one
                .outcomes
                .all()
                .iter()
                .map(|outcome| outcome.calls)
                .collect();
            Some(row(verifier.as_str(), &calls))
        });
        let mut rows: Vec<AboveFewest> = replayed.collect();
        let at = |rule: RuleName| {
            let rounds = self.linked.iter().find(|one| one.rule == rule)?.of(most)?;
            let calls: Vec<f64> = rounds.iter().map(|outcome| outcome.calls).collect();
            Some(row(rule.as_str(), &calls))
        };
        rows.extend(at(RuleName::GREEDY_BLOCK));
        let carried = self.calls(|ratios| carried_starts(ratios, most).iter().sum());
        rows.push(row(RuleName::CARRIED.as_str(), &carried));
        rows.extend(at(RuleName::CARRIED_BLOCK));
        rows
    }

    /// A number of calls of every text, added up by prompt.
    fn calls(&self, of: impl Fn(&[f64]) -> f64 + Sync) -> Vec<f64> {
        let of = |text: &Text| of(&text.ratios);
        self.texts.sums(self.texts.each(of))
    }

    /// Bounds on the calls of all texts, whatever rows do not list.
    fn fewest_between(&self, most: Option<usize>) -> [f64; 2] {
        let of = |text: &Text| {
            let ends: Vec<[f64; 2]> = text.places.iter().map(|place| place.ratio_bounds).collect();
            fewest_calls_between(&ends, most)
        };
        let each = self.texts.each(of);
        [0, 1].map(|end| each.iter().map(|ends| ends[end]).sum())
    }

    /// A ratio of sums over prompts.
    pub(super) fn over(&self, numerators: &[f64], denominators: &[f64]) -> Estimate {
        let pairs = numerators.iter().copied().zip(denominators.iter().copied());
        Clustered::new(pairs).estimate()
    }
}
