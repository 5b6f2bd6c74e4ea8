//! Which length to set, at given costs.

use super::data::{AtBatch, AtCost, AtLength, Best, Kind};

/// How far lengths 1 to 7 that counters of rounds of 8 drafts predict were off on six drafts, as
/// shares of an exact replay.
pub(super) const PREFIX_ERROR: [f64; 2] = [-0.0097, 0.0013];

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

/// What is asked of counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// What rounds cost.
    pub costs: Option<Costs>,
    /// What they cost by batch size, ascending.
    pub by_batch: Vec<(usize, Costs)>,
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

/// The quickest of some lengths, and of not to draft; none without lengths.
pub(super) fn best(lengths: &[AtLength], costs: &Costs) -> Option<Best> {
    let speed = |at: &AtLength| costs.speedup(at.length, at.acceptance_length.mean);
    let judged: Vec<(usize, f64, Kind)> = lengths
        .iter()
        .filter_map(|at| Some((at.length, speed(at)?, at.kind)))
        .collect();
    // The ends of a bracket, or the number twice.
    let ends = |length: usize| {
        let at = lengths.iter().find(|at| at.length == length)?;
        let mean = at.acceptance_length.mean;
        let [low, high] = at.acceptance_length.between.unwrap_or([mean, mean]);
        Some([costs.speedup(length, low)?, costs.speedup(length, high)?])
    };
    // The least of several that are equal.
    let mut top = (0, 1.0, Kind::Counted);
    judged.first()?;
    for &one in &judged {
        if one.1 > top.1 {
            top = one;
        }
    }
    let (length, speedup, kind) = top;
    let slack = PREFIX_ERROR[1] - PREFIX_ERROR[0];
    let least = ends(length).map_or(speedup, |[low, _]| low) * (1.0 - slack);
    let reaches = |one: usize| ends(one).is_some_and(|[_, high]| high >= least);
    let alike = judged.iter().filter(|one| reaches(one.0));
    Some(Best {
        length,
        speedup,
        speedup_between: ends(length).filter(|_| kind == Kind::Bracket),
        kind,
        alike: alike.map(|one| one.0).collect(),
    })
}

/// The best lengths at cost ratios that engines have.
pub(super) fn by_cost(lengths: &[AtLength]) -> Vec<AtCost> {
    let at = |ratio: f64| {
        let best = best(lengths, &Costs::ratio(ratio))?;
        Some(AtCost {
            cost_ratio: ratio,
            best,
        })
    };
    RATIOS.into_iter().filter_map(at).collect()
}

/// The best lengths by batch size, and the list that vLLM reads: each holds up to the next.
pub(super) fn by_batch(
    lengths: &[AtLength],
    costs: &[(usize, Costs)],
) -> (Vec<AtBatch>, Vec<[usize; 3]>) {
    let at = |(batch, costs): &(usize, Costs)| {
        let best = best(lengths, costs)?;
        Some(AtBatch {
            batch: *batch,
            best,
        })
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
