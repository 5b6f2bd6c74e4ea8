//! Bounds on the rounds of a tree, or of a chain, where rows list some tokens only.

use specgap_core::rounds::{ChildShares, walk};
use specgap_core::tree::Shape;

/// Bounds on the expected numbers of one text's rounds with one tree.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct RoundBounds {
    /// E\[target calls given the text\].
    pub calls: [f64; 2],
    /// E\[time\] of the rounds, with what one takes by its levels; 0 where that is not said.
    pub time: [f64; 2],
    /// Sum over starts with room for the whole tree of E\[tau\].
    pub accepted: [f64; 2],
    /// How many such starts there are.
    pub whole: f64,
}

impl RoundBounds {
    /// Adds another text's.
    pub(super) fn add(&mut self, other: Self) {
        for end in 0..2 {
            self.calls[end] += other.calls[end];
            self.time[end] += other.time[end];
            self.accepted[end] += other.accepted[end];
        }
        self.whole += other.whole;
    }
}

/// As [`replay_tree`](specgap_core::rounds::replay_tree), where the shares of children lie between two tables.
pub(super) fn replay_between(
    shape: &Shape,
    [least, most]: [&ChildShares<f64>; 2],
    times: &[f64],
) -> RoundBounds {
    let mut reach = vec![1.0; shape.parent.len()];
    replay_between_with(shape.levels(), least.len(), times, |start, room| {
        [least, most].map(|shares| walk(shape, shares, start, room, &mut reach))
    })
}

/// The same of a tree of so many levels, where `walk` says what lies below and above m_0, m_1, .. of the
/// round from a start with room for so many levels.
///
/// E\[tau\] is a sum of products of shares, and rises in each. The calls from a start are
/// 1 + C_0 + sum over j >= 1 of m_j (C_j - C_(j-1)), C_j being those from the start that
/// follows j accepted tokens: each m_j counts at the end of its bounds that makes the sum
/// largest, or smallest. `docs/theory/tree-replay.md` has both. The time of the rounds, `times` by
/// their levels, is such a sum as well.
pub(super) fn replay_between_with(
    depth: usize,
    length: usize,
    times: &[f64],
    mut walk: impl FnMut(usize, usize) -> [Vec<f64>; 2],
) -> RoundBounds {
    let mut bounds = RoundBounds::default();
    // Calls and time from each start on, at least and at most.
    let mut behind = vec![[[0.0f64; 2]; 2]; length + depth + 2];
    for start in (0..length).rev() {
        let left = length - start;
        let room = depth.min(left);
        let [low, mut high] = walk(start, room);
        for level in 1..high.len() {
            // A round that goes on has gone as far.
            high[level] = high[level].min(high[level - 1]).max(low[level]);
        }
        if room == depth {
            bounds.whole += 1.0;
            bounds.accepted[0] += low[1..].iter().sum::<f64>();
            bounds.accepted[1] += high[1..].iter().sum::<f64>();
        }
        let drafted = depth.min(left - 1);
        let own = [1.0, times.get(drafted).copied().unwrap_or(0.0)];
        behind[start] = [0, 1].map(|of| {
            [0, 1].map(|end| {
                let mut here = own[of] + behind[start + 1][of][end];
                for level in 1..=drafted {
                    let more = behind[start + level + 1][of][end] - behind[start + level][of][end];
                    let is_most = (more > 0.0) == (end == 1);
                    here += more * if is_most { high[level] } else { low[level] };
                }
                here
            })
        });
    }
    [bounds.calls, bounds.time] = behind[0];
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use specgap_core::rounds::replay_tree;
    use specgap_core::tree::DraftTree;

    /// Shares between the tables give rounds between the bounds; one table gives its own.
    #[test]
    fn rounds_lie_between_those_of_the_bounds() {
        let mut random = ChaCha8Rng::seed_from_u64(17);
        let tree = DraftTree::from_json("[[0],[1],[0,0],[0,1],[1,0],[1,0,0]]");
        let shape = tree.unwrap().shape();
        for _ in 0..200 {
            let length = random.random_range(1..9usize);
            let mut tables = [Vec::new(), Vec::new(), Vec::new()];
            for _ in 0..length {
                let mut left = 1.0;
                for _ in 0..2 {
                    let share: f64 = left * random.random_range(0.0..1.0);
                    left -= share;
                    tables[0].push(share * random.random_range(0.5..1.0));
                    tables[1].push(share);
                    tables[2].push(share + (1.0 - share) * random.random_range(0.0..0.3));
                }
            }
            let [least, exact, most] =
                tables.map(|table| ChildShares::new(length, true, [(2, table)]));
            let replay = replay_tree(&shape, &exact);
            let times = [1.0, 1.5, 1.75, 2.25];
            let found = replay_between(&shape, [&least, &most], &times);
            let timed = replay.rounds.iter().zip(times);
            let time = timed.map(|(count, time)| count * time).sum();
            assert_eq!(found.whole, replay.whole as f64);
            let own = replay_between(&shape, [&exact; 2], &times);
            for (value, [low, high], own) in [
                (replay.calls, found.calls, own.calls),
                (time, found.time, own.time),
                (replay.accepted, found.accepted, own.accepted),
            ] {
                let holds = low - 1e-12 <= value && value <= high + 1e-12;
                assert!(holds, "{value} {found:?}");
                assert!(
                    own.iter().all(|end| (end - value).abs() < 1e-12),
                    "{value} {own:?}"
                );
            }
        }
    }
}
