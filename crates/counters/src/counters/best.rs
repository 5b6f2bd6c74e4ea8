//! Which length to set, at given costs.

use super::data::{AtBatch, AtCost, AtLength, Best, Kind, Note};

/// Speeds this near each other, as a share, are one: the length that ran needs no trial, a shorter one wastes
/// fewer drafts, and estimates of lengths that did not run are off by as much.
const TIE: f64 = 0.01;

/// What rounds cost, by their number of drafts.
#[derive(Clone, Debug, PartialEq)]
pub struct Costs {
    /// A step of the target that decodes alone.
    pub target_step: f64,
    /// A round of k drafts, k = 0, 1, ..; lengths beyond are not judged.
    pub rounds: Vec<f64>,
}

impl Costs {
    /// A draft costs `ratio` of a target step, and a verifying pass a target step: a round of k drafts
    /// costs `1 + ratio k`.
    #[must_use]
    pub fn ratio(ratio: f64) -> Self {
        let rounds = (0..=Settings::MOST_LENGTH).map(|drafts| 1.0 + ratio * drafts as f64);
        Self {
            target_step: 1.0,
            rounds: rounds.collect(),
        }
    }

    /// Times as fast as the target alone: `acceptance length * target step / round`.
    #[must_use]
    pub fn speedup(&self, length: usize, acceptance_length: f64) -> Option<f64> {
        let round = self.rounds.get(length)?;
        Some(acceptance_length * self.target_step / round)
    }
}

/// Finds the cost ratio that two measured speeds stand for: tokens a second at two draft lengths, of which
/// one may be 0.
///
/// # Formula
/// `T(k) = AL(k)/(t_0 (1 + c k))`, so that with `r = T(j) AL(k) / (T(k) AL(j))` the ratio is
/// `c = (r - 1)/(k - r j)`. AL(0) = 1.
///
/// # Errors
/// Lengths that counts say nothing of, and speeds that contradict them at every cost.
pub fn cost_of_throughput(
    lengths: &[AtLength],
    speeds: [(usize, f64); 2],
) -> Result<(f64, Note), String> {
    let tokens = |length: usize| {
        let of = || lengths.iter().find(|at| at.length == length);
        if length == 0 {
            return Ok(1.0);
        }
        of().map(|at| at.acceptance_length.mean)
            .ok_or_else(|| format!("nothing is known of K = {length} by these counts"))
    };
    let [(short, slow), (long, fast)] = speeds;
    let ratio = slow * tokens(long)? / (fast * tokens(short)?);
    let cost = (ratio - 1.0) / (long as f64 - ratio * short as f64);
    if !(cost.is_finite() && cost >= 0.0) {
        return Err(format!(
            "{slow} tokens a second at K = {short} and {fast} at K = {long} fit no cost of a draft; they are of \
             another load or model than the counts"
        ));
    }
    let says = format!(
        "c = {cost:.4}, from {slow} tokens a second at K = {short} and {fast} at K = {long}: an estimate, in which \
         what else a round costs counts as the drafts'."
    );
    let name = "cost-of-throughput".to_owned();
    Ok((cost, Note { name, says }))
}

/// What is asked of counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// What rounds cost.
    pub costs: Option<Costs>,
    /// What they cost by batch size, ascending.
    pub by_batch: Vec<(usize, Costs)>,
    /// What they were found from, where that was not given as it is.
    pub cost_source: Option<Note>,
    /// The longest length that is extrapolated to; 8, or K if that is more, if not given.
    pub up_to: Option<usize>,
    /// The command that asks.
    pub command: String,
}

impl Settings {
    /// The longest length that can be asked for.
    pub const MOST_LENGTH: usize = 64;
}

/// Cost ratios of the table, where no costs are given.
const RATIOS: [f64; 6] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3];

/// The length that ran, or else the least, of those that are as good as the quickest by its mean, and not
/// to draft if none gains; none without lengths.
pub(super) fn best(lengths: &[AtLength], costs: &Costs) -> Option<Best> {
    let judged = lengths.iter().filter_map(|at| {
        let of = |tokens: f64| costs.speedup(at.length, tokens);
        let [low, high] = at.acceptance_length.ends();
        Some((at, of(at.acceptance_length.mean)?, [of(low)?, of(high)?]))
    });
    let judged: Vec<_> = judged.collect();
    let (_, first, _) = judged.first()?;
    let top = judged.iter().map(|one| one.1).fold(*first, f64::max);
    let enough = top * (1.0 - TIE);
    let mut near = judged.iter().filter(|one| one.1 >= enough);
    // What ran needs no trial.
    let ran = near.clone().find(|one| one.0.kind == Kind::Counted);
    let found = ran.or_else(|| near.next())?;
    if enough <= 1.0 {
        return Some(Best {
            length: 0,
            speedup: 1.0,
            speedup_between: None,
            kind: Kind::Counted,
            alike: (judged.iter())
                .filter(|(_, _, [_, high])| *high > 1.0)
                .map(|(at, ..)| at.length)
                .collect(),
        });
    }
    let &(at, speedup, [low, high]) = found;
    let alike = judged.iter().filter(|(_, _, [_, most])| *most >= low);
    Some(Best {
        length: at.length,
        speedup,
        speedup_between: at.acceptance_length.range.map(|_| [low, high]),
        kind: at.kind,
        alike: alike.map(|(at, ..)| at.length).collect(),
    })
}

/// The best lengths at cost ratios that engines have.
pub(super) fn by_cost(lengths: &[AtLength]) -> Vec<AtCost> {
    let at = |cost_ratio: f64| {
        let best = best(lengths, &Costs::ratio(cost_ratio))?;
        Some(AtCost { cost_ratio, best })
    };
    RATIOS.into_iter().filter_map(at).collect()
}

/// The best lengths by batch size, and the list that vLLM reads: each holds up to the next.
pub(super) fn by_batch(
    lengths: &[AtLength],
    costs: &[(usize, Costs)],
) -> (Vec<AtBatch>, Vec<[usize; 3]>) {
    let at = |(batch, costs): &(usize, Costs)| {
        let (batch, best) = (*batch, best(lengths, costs)?);
        Some(AtBatch { batch, best })
    };
    let all: Vec<AtBatch> = costs.iter().filter_map(at).collect();
    let mut list: Vec<[usize; 3]> = Vec::new();
    for (index, at) in all.iter().enumerate() {
        let next = all.get(index + 1).map(|next| next.batch.saturating_sub(1));
        let last = next.unwrap_or(at.batch).max(1);
        // A list has to begin at 1.
        let first = if index == 0 { 1 } else { at.batch };
        match list.last_mut() {
            Some(before) if before[2] == at.best.length => before[1] = last,
            _ => list.push([first, last, at.best.length]),
        }
    }
    (all, list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::TokensARound;

    #[test]
    fn two_speeds_tell_the_cost_of_a_draft() {
        let at = |length: usize, mean: f64| AtLength {
            length,
            acceptance_length: TokensARound {
                mean,
                ci95: [mean; 2],
                range: None,
            },
            kind: Kind::Counted,
            acceptance_rate: 0.5,
            speedup: None,
        };
        let lengths = [at(1, 1.7), at(3, 2.4)];
        let speed =
            |length: usize, tokens: f64| (length, 50.0 * tokens / (1.0 + 0.08 * length as f64));
        for first in [speed(0, 1.0), speed(1, 1.7)] {
            let pair = [first, speed(3, 2.4)];
            let (cost, note) = cost_of_throughput(&lengths, pair).unwrap();
            assert!((cost - 0.08).abs() < 1e-12, "{note:?}");
        }
        for (long, words) in [((3, 150.0), "fit no cost"), ((5, 80.0), "K = 5")] {
            let wrong = cost_of_throughput(&lengths, [(0, 50.0), long]).unwrap_err();
            assert!(wrong.contains(words), "{wrong}");
        }
    }
}
