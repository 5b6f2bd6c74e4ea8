//! What a round costs, and the speed that follows.

use super::measured::add_each;
use serde::{Deserialize, Serialize};
use specgap_base::typed;
use specgap_statistics::{Clustered, Estimate};

/// A time with its standard error, in one unit for all times of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// The mean.
    pub seconds: f64,
    /// The standard error of the mean; 0 if it is not known.
    #[serde(default)]
    pub standard_error: f64,
}

/// A verifying pass of a number of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct VerifyingPass {
    /// Tokens in the pass: the last token of the text, and all drafts.
    pub tokens: usize,
    /// The mean.
    pub seconds: f64,
    /// The standard error of the mean; 0 if it is not known.
    #[serde(default)]
    pub standard_error: f64,
}

/// What a verifier takes in a round, on top of the rest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RuleTime {
    /// The verifier.
    pub name: String,
    /// The mean.
    pub seconds: f64,
    /// The standard error of the mean; 0 if it is not known.
    #[serde(default)]
    pub standard_error: f64,
}

/// The times that a speed follows from: a timings file is this, as TOML or JSON.
///
/// # Formula
/// A round with n drafts takes `t_d n + t_v(n + 1) + t_o`; t_v is a table, read by straight
/// lines between its entries. A token of the target alone takes t_0.
///
/// # Example
/// ```
/// use specgap_replay::replay::Timings;
/// let flat = Timings::cost_ratio(0.1)?;
/// assert_eq!(flat.round(4), Some(1.4));
/// let table = Timings::parse(
///     "schema = 1\ntarget_step = { seconds = 0.020 }\ndraft_step = { seconds = 0.004 }\n\
///      verify = [{ tokens = 1, seconds = 0.02 }, { tokens = 5, seconds = 0.03 }]\n",
///     false,
/// )?;
/// assert!((table.round(2).unwrap() - 0.033).abs() < 1e-12);
/// assert_eq!(table.round(9), None);
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Timings {
    /// 1.
    pub schema: u32,
    /// t_0: a step of the target that decodes alone.
    pub target_step: Measured,
    /// t_d: a draft step in the loop.
    pub draft_step: Measured,
    /// t_v: a verifying pass, by the number of its tokens, ascending from 1. One entry
    /// stands for all.
    pub verify: Vec<VerifyingPass>,
    /// t_o: the rest of a round.
    #[serde(default)]
    pub overhead: Measured,
    /// Of verifiers, where they were measured apart from `overhead`. `specgap gap` reads them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleTime>,
}

/// The version of a timings file.
pub const TIMINGS_SCHEMA: u32 = 1;

impl Timings {
    /// A draft step that costs `ratio` of a target step; a verifying pass costs a target
    /// step however long it is. Drafts are for nothing at 0, as n-grams nearly are, and those of a
    /// drafter that makes a whole block at once.
    ///
    /// # Errors
    /// A ratio below 0.
    pub fn cost_ratio(ratio: f64) -> Result<Self, String> {
        if !(ratio.is_finite() && ratio >= 0.0) {
            return Err(format!(
                "{ratio} is no cost; a draft step's time over a target step's is 0 or more"
            ));
        }
        let measured = |seconds| Measured {
            seconds,
            standard_error: 0.0,
        };
        Ok(Self {
            schema: TIMINGS_SCHEMA,
            target_step: measured(1.0),
            draft_step: measured(ratio),
            verify: vec![VerifyingPass {
                tokens: 1,
                seconds: 1.0,
                standard_error: 0.0,
            }],
            overhead: measured(0.0),
            rules: Vec::new(),
        })
    }

    /// Reads a file, as JSON or as TOML.
    ///
    /// # Errors
    /// Names the field, the entry and the limit.
    pub fn parse(text: &str, json: bool) -> Result<Self, String> {
        let timings: Self = if json {
            let read = typed::json(text);
            read.map_err(|refused| format!("{}: {}", refused.path, refused.error))?
                .0
        } else {
            typed::toml(text).map_err(|refused| refused.error.to_string().trim_end().to_owned())?
        };
        timings.check()?;
        Ok(timings)
    }

    fn check(&self) -> Result<(), String> {
        if self.schema != TIMINGS_SCHEMA {
            return Err(format!(
                "schema: is {}; this version of specgap reads {TIMINGS_SCHEMA}",
                self.schema
            ));
        }
        let time = |name: &str, seconds: f64, error: f64, least: bool| {
            let fits = seconds.is_finite() && (seconds > 0.0 || least && seconds == 0.0);
            if !fits {
                let limit = if least { ">= 0" } else { "> 0" };
                return Err(format!(
                    "{name}.seconds: is {seconds}; times are finite and {limit}"
                ));
            }
            if !(error.is_finite() && error >= 0.0) {
                return Err(format!(
                    "{name}.standard_error: is {error}; it is finite and >= 0"
                ));
            }
            Ok(())
        };
        for (name, measured, least) in [
            ("target_step", self.target_step, false),
            ("draft_step", self.draft_step, true),
            ("overhead", self.overhead, true),
        ] {
            time(name, measured.seconds, measured.standard_error, least)?;
        }
        for (index, rule) in self.rules.iter().enumerate() {
            let name = format!("rules[{index}]");
            time(&name, rule.seconds, rule.standard_error, true)?;
            let mut before = self.rules.iter().take(index);
            if before.any(|other| other.name == rule.name) {
                return Err(format!("{name}.name: {:?} is there twice", rule.name));
            }
        }
        if self.verify.first().map(|pass| pass.tokens) != Some(1) {
            return Err(
                "verify: its first entry has to be of tokens = 1, a pass without drafts".to_owned(),
            );
        }
        for (index, pass) in self.verify.iter().enumerate() {
            let name = format!("verify[{index}]");
            time(&name, pass.seconds, pass.standard_error, false)?;
            if index > 0 && pass.tokens <= self.verify[index - 1].tokens {
                return Err(format!(
                    "{name}.tokens: is {}; entries ascend, and each number stands once",
                    pass.tokens
                ));
            }
        }
        Ok(())
    }

    /// t_d/t_0.
    pub fn draft_cost(&self) -> f64 {
        self.draft_step.seconds / self.target_step.seconds
    }

    /// Returns whether a verifying pass takes a target step's time however long it is, and a round
    /// nothing else.
    pub fn is_flat(&self) -> bool {
        self.verify.len() == 1
            && self.verify[0].seconds == self.target_step.seconds
            && self.overhead.seconds == 0.0
    }

    /// The most drafts of a round that the table has a time for.
    pub fn most_drafts(&self) -> Option<usize> {
        (self.verify.len() > 1)
            .then(|| self.verify.last())
            .flatten()
            .map(|pass| pass.tokens.saturating_sub(1))
    }

    /// Entries of the table with the shares that a pass of so many tokens has in them.
    fn shares(&self, tokens: usize) -> Option<[(usize, f64); 2]> {
        if self.verify.len() == 1 {
            return Some([(0, 1.0), (0, 0.0)]);
        }
        let above = (self.verify.iter()).position(|pass| pass.tokens >= tokens)?;
        let below = above.saturating_sub(1);
        let (low, high) = (self.verify[below].tokens, self.verify[above].tokens);
        if above == below || high == tokens {
            return Some([(above, 1.0), (above, 0.0)]);
        }
        let share = (tokens - low) as f64 / (high - low) as f64;
        Some([(below, 1.0 - share), (above, share)])
    }

    /// t_v(tokens); `None` beyond the table.
    pub fn verifying(&self, tokens: usize) -> Option<f64> {
        let shares = self.shares(tokens)?;
        let part = |&(entry, share): &(usize, f64)| self.verify[entry].seconds * share;
        Some(shares.iter().map(part).sum())
    }

    /// Returns what a round with n drafts costs; `None` beyond the table.
    pub fn round(&self, drafts: usize) -> Option<f64> {
        let verifying = self.verifying(drafts + 1)?;
        Some(self.draft_step.seconds * drafts as f64 + verifying + self.overhead.seconds)
    }

    /// Returns what a round of a tree costs: a draft step a level, and a pass over its draft tokens.
    pub(super) fn levels(&self, levels: usize, drafts: usize) -> Option<f64> {
        let steps = levels as f64 - drafts as f64;
        Some(self.round(drafts)? + self.draft_step.seconds * steps)
    }

    /// The least time of a verifying pass of at least so many tokens.
    fn verifying_at_least(&self, tokens: usize) -> Option<f64> {
        let here = self.verifying(tokens)?;
        let longer = self.verify.iter().filter(|pass| pass.tokens > tokens);
        Some(longer.map(|pass| pass.seconds).fold(here, f64::min))
    }

    /// The time of rounds, by their number of drafts, with further draft steps that gave no
    /// token. With `at_least`, the numbers of drafts are lower bounds, and so is the time.
    /// `None` beyond the table.
    pub(super) fn total(&self, rounds: &[f64], steps: f64, at_least: bool) -> Option<f64> {
        let mut total = self.draft_step.seconds * steps;
        for (drafts, &count) in rounds.iter().enumerate() {
            if count == 0.0 {
                continue;
            }
            let verifying = match at_least {
                true => self.verifying_at_least(drafts + 1)?,
                false => self.verifying(drafts + 1)?,
            };
            let round = self.draft_step.seconds * drafts as f64 + verifying + self.overhead.seconds;
            total += count * round;
        }
        Some(total)
    }

    /// Times of prompts, each with its tokens, its rounds by their number of drafts, and further
    /// draft steps that gave no token. With `at_least`, numbers of drafts are lower bounds.
    pub(super) fn times<R: AsRef<[f64]>>(
        &self,
        prompts: impl Iterator<Item = (f64, R, f64)>,
        at_least: bool,
    ) -> Option<Times> {
        let (mut pairs, mut all, mut all_steps) = (Vec::new(), Vec::new(), 0.0);
        for (tokens, rounds, steps) in prompts {
            let time = self.total(rounds.as_ref(), steps, at_least)?;
            pairs.push((self.target_step.seconds * tokens, time));
            add_each(&mut all, rounds.as_ref());
            all_steps += steps;
        }
        let time: f64 = pairs.iter().map(|pair| pair.1).sum();
        let of_times = match time > 0.0 {
            true => self.relative_variance(&all, all_steps, time).sqrt(),
            false => 0.0,
        };
        Some(Times { pairs, of_times })
    }

    /// The relative variance of `t_0 / time` that comes from the errors of the times, for
    /// rounds by their number of drafts with their total time.
    fn relative_variance(&self, rounds: &[f64], steps: f64, time: f64) -> f64 {
        let relative = |measured: &Measured| measured.standard_error / measured.seconds;
        let mut passes = vec![0.0; self.verify.len()];
        let (mut calls, mut drafted) = (0.0, steps);
        for (drafts, &count) in rounds.iter().enumerate() {
            calls += count;
            drafted += count * drafts as f64;
            if count != 0.0
                && let Some(shares) = self.shares(drafts + 1)
            {
                for (entry, share) in shares {
                    passes[entry] += count * share;
                }
            }
        }
        let of_time: f64 = (self.verify.iter())
            .zip(&passes)
            .map(|(pass, weight)| pass.standard_error * weight)
            .chain([
                self.draft_step.standard_error * drafted,
                self.overhead.standard_error * calls,
            ])
            .map(|error| (error / time).powi(2))
            .sum();
        of_time + relative(&self.target_step).powi(2)
    }
}

/// Times of some prompts.
pub(super) struct Times {
    /// Of the target alone, and with drafts, for each prompt.
    pub(super) pairs: Vec<(f64, f64)>,
    /// Relative error of the times.
    of_times: f64,
}

impl Times {
    /// t_0 N / E\[time\], errors of the times included.
    pub(super) fn estimate(&self) -> Estimate {
        let mut speed = Clustered::new(self.pairs.iter().copied());
        speed.error = speed.error.hypot(speed.mean * self.of_times);
        speed.estimate()
    }

    /// This speed minus another one at the same prompts; errors of times are taken for
    /// independent, which they are at most.
    pub(super) fn minus(&self, other: &Self) -> Estimate {
        let pairs = self.pairs.iter().copied().zip(other.pairs.iter().copied());
        let mut difference = Clustered::difference(pairs);
        for one in [self, other] {
            let mean = Clustered::new(one.pairs.iter().copied()).mean;
            difference.error = difference.error.hypot(mean * one.of_times);
        }
        difference.estimate()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "schema = 1\n\
        target_step = { seconds = 0.02, standard_error = 0.0002 }\n\
        draft_step = { seconds = 0.004, standard_error = 0.0004 }\n\
        overhead = { seconds = 0.001 }\n\
        verify = [{ tokens = 1, seconds = 0.02 }, { tokens = 3, seconds = 0.026 }, \
        { tokens = 5, seconds = 0.024, standard_error = 0.001 }]\n";

    #[test]
    fn rounds_are_read_off_the_table() {
        let table = Timings::parse(TABLE, false).unwrap();
        let json = serde_json::to_string(&table).unwrap();
        assert_eq!(Timings::parse(&json, true).unwrap(), table);
        for (drafts, expected) in [(0, 0.021), (1, 0.028), (2, 0.035), (3, 0.038), (4, 0.041)] {
            let round = table.round(drafts).unwrap();
            assert!((round - expected).abs() < 1e-12, "{drafts}: {round}");
        }
        assert_eq!(table.round(5), None);
        assert_eq!(table.most_drafts(), Some(4));
        assert!((table.draft_cost() - 0.2).abs() < 1e-12);
        assert!(!table.is_flat());
        // A longer pass is quicker here, and at least that long is what is asked for.
        let at_least = table.total(&[0.0, 0.0, 1.0], 1.0, true).unwrap();
        assert!((at_least - (0.004 * 3.0 + 0.024 + 0.001)).abs() < 1e-12);
        assert_eq!(table.total(&[0.0; 9], 0.0, false), Some(0.0));
    }

    /// Each time moved by its error, one after the other.
    #[test]
    fn errors_of_times_are_those_of_the_speed() {
        let table = Timings::parse(TABLE, false).unwrap();
        let rounds = [1.0, 0.0, 3.0, 2.0];
        let speed =
            |table: &Timings| table.target_step.seconds / table.total(&rounds, 1.5, false).unwrap();
        let here = speed(&table);
        let mut variance = 0.0;
        let scale = 1e-5;
        let moves: [fn(&mut Timings, f64); 3] = [
            |table, by| table.target_step.seconds += by * table.target_step.standard_error,
            |table, by| table.draft_step.seconds += by * table.draft_step.standard_error,
            |table, by| table.verify[2].seconds += by * table.verify[2].standard_error,
        ];
        for change in moves {
            let mut moved = table.clone();
            change(&mut moved, scale);
            variance += ((speed(&moved) - here) / (scale * here)).powi(2);
        }
        let time = table.total(&rounds, 1.5, false).unwrap();
        let found = table.relative_variance(&rounds, 1.5, time);
        assert!(
            (found - variance).abs() < 1e-4 * variance,
            "{found} {variance}"
        );
    }

    #[test]
    fn what_is_no_timings_file_is_refused_by_field() {
        let changed = |from: &str, to: &str| Timings::parse(&TABLE.replace(from, to), false);
        for (from, to, words) in [
            ("schema = 1", "schema = 2", "schema: is 2"),
            (
                "seconds = 0.004",
                "seconds = -1",
                "draft_step.seconds: is -1; times are finite and >= 0",
            ),
            (
                "seconds = 0.004",
                "seconds = nan",
                "draft_step.seconds: is NaN",
            ),
            (
                "standard_error = 0.001",
                "standard_error = -1",
                "verify[2].standard_error: is -1",
            ),
            ("tokens = 1", "tokens = 2", "verify: its first entry"),
            ("tokens = 5", "tokens = 3", "verify[2].tokens: is 3"),
            ("overhead", "overheat", "overheat"),
            (
                "schema = 1",
                "schema = 1\nrules = [{ name = \"rrs\", seconds = -1 }]",
                "rules[0].seconds: is -1; times are finite and >= 0",
            ),
            (
                "schema = 1",
                "schema = 1\nrules = [{ name = \"rrs\", seconds = 0 }, { name = \"rrs\", seconds = 1 }]",
                "rules[1].name: \"rrs\" is there twice",
            ),
        ] {
            let error = changed(from, to).unwrap_err();
            assert!(error.contains(words), "{to}: {error}");
        }
        assert!(Timings::parse("{", true).is_err());
        assert!(Timings::cost_ratio(0.0).is_ok());
        for ratio in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(Timings::cost_ratio(ratio).is_err());
        }
    }
}
