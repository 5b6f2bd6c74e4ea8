//! Rounds of a tree along a text: a renewal process on top of a chain over (position, node).

use super::shares::ChildShares;
use crate::tree::Shape;
use specgap_number::number::Number;

/// Expected numbers of one text's rounds with one tree.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeReplay<T> {
    /// E\[target calls given the text\]: one a round.
    pub calls: T,
    /// For each number of tokens, the probability that a round starts behind them.
    pub starts: Vec<T>,
    /// By number of levels: the expected number of rounds in which so many are drafted.
    pub rounds: Vec<T>,
    /// sum over starts with room for the whole tree of E\[tau\].
    pub accepted: T,
    /// How many such starts there are.
    pub whole: usize,
    /// For each node of the tree, the root first: sum over these starts of the probability
    /// that the round gets there.
    pub reached: Vec<T>,
}

/// Replays a decoder's rounds along a text, from its first token to its last.
///
/// A round that starts with `left` tokens to go drafts the tree's first `left - 1` levels: the
/// last token is the target's own.
///
/// # Formula
/// From start s, the node v = (k_1, .., k_d) is reached with probability
///
/// ```text
/// product over j = 1..d of A_{s+j}(k_j | y_{s+j}; children of (k_1, .., k_{j-1})),
/// ```
///
/// m_d is the sum over the nodes of depth d, E\[tau\] is the sum of all m_d, and the next round
/// starts at s + d + 1 with probability m_d - m_(d+1). Derived in `docs/theory/tree-replay.md`.
///
/// # Exactness
/// Given the text there is no randomness left, and no independence or stationarity is
/// assumed. Exact in rationals.
///
/// # Complexity
/// O(N nodes) time, O(N + nodes) memory.
///
/// # Example
/// ```
/// use specgap_core::rounds::{ChildShares, replay_tree};
/// use specgap_core::tree::DraftTree;
///
/// let tree = DraftTree::new(vec![vec![0], vec![1], vec![0, 0]])?;
/// // Three positions; two children get 1/2 and 1/4, one child gets 1/2.
/// let shares = ChildShares::new(3, true, [(2, [0.5, 0.25].repeat(3))]);
/// let replay = replay_tree(&tree.shape(), &shares);
/// // Two starts have room for both levels, with 1/2 + 1/4 + 1/2 * 1/2 each.
/// assert_eq!((replay.accepted, replay.whole), (2.0, 2));
/// // Rounds start behind no token, behind one if none was accepted (1/4), and behind two
/// // if one was accepted or the second round accepted none.
/// assert_eq!(replay.starts, [1.0, 0.25, 0.5 + 0.25 * 0.25]);
/// # Ok::<(), specgap_core::tree::TopologyError>(())
/// ```
pub fn replay_tree<T: Number>(shape: &Shape, shares: &ChildShares<T>) -> TreeReplay<T> {
    replay_tree_with(shape, shares.len(), |start, room, reach| {
        walk(shape, shares, start, room, reach)
    })
}

/// The same, where `walk` says what a round from a start with room for so many levels reaches: each
/// node, and m_0, m_1, ...
pub fn replay_tree_with<T: Number>(
    shape: &Shape,
    length: usize,
    mut walk: impl FnMut(usize, usize, &mut [T]) -> Vec<T>,
) -> TreeReplay<T> {
    let nodes = shape.parent.len();
    let depth = shape.depth.last().copied().unwrap_or(0);
    let mut replay = TreeReplay {
        calls: T::zero(),
        starts: vec![T::zero(); length],
        rounds: vec![T::zero(); depth + 1],
        accepted: T::zero(),
        whole: 0,
        reached: vec![T::zero(); nodes],
    };
    if let Some(first) = replay.starts.first_mut() {
        *first = T::one();
    }
    let mut reach = vec![T::one(); nodes];
    for start in 0..length {
        let left = length - start;
        let room = depth.min(left);
        let survival = walk(start, room, &mut reach);
        if room == depth {
            replay.whole += 1;
            for at in &survival[1..] {
                replay.accepted.gain(at);
            }
            for (sum, reach) in replay.reached.iter_mut().zip(&reach) {
                sum.gain(reach);
            }
        }
        let weight = replay.starts[start].clone();
        if weight.is_nil() {
            continue;
        }
        replay.calls.gain(&weight);
        let levels = depth.min(left - 1);
        replay.rounds[levels].gain(&weight);
        for accepted in 0..=levels {
            let next = start + accepted + 1;
            let ends = if accepted < levels {
                survival[accepted].excess_over(&survival[accepted + 1])
            } else {
                survival[accepted].clone()
            };
            if let Some(begins) = replay.starts.get_mut(next) {
                begins.gain(&weight.times(&ends));
            }
        }
    }
    replay
}

/// m_0, .., m_room from a start.
pub fn survival_of_tree<T: Number>(
    shape: &Shape,
    shares: &ChildShares<T>,
    start: usize,
    room: usize,
) -> Vec<T> {
    let mut reach = vec![T::one(); shape.parent.len()];
    walk(shape, shares, start, room, &mut reach)
}

/// The probability of each node of at most `room` levels, and m_0, .., m_room.
pub fn walk<T: Number>(
    shape: &Shape,
    shares: &ChildShares<T>,
    start: usize,
    room: usize,
    reach: &mut [T],
) -> Vec<T> {
    let mut survival = vec![T::zero(); room + 1];
    survival[0] = T::one();
    let count = shape.nodes_to(room) + 1;
    for node in 1..count {
        let (parent, level) = (shape.parent[node], shape.depth[node]);
        let at = if reach[parent].is_nil() {
            T::zero()
        } else {
            let row = shares.behind(start, level - 1, shape.children[parent]);
            row.get(shape.rank[node])
                .map_or_else(T::zero, |share| reach[parent].times(share))
        };
        survival[level].gain(&at);
        reach[node] = at;
    }
    survival
}
