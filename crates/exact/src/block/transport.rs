//! The block optimum, exactly.
//!
//! The target block y and the set S of distinct draft blocks are coupled so as
//! to maximise `E[tau(y, S)]`, tau being the longest prefix of y that a block of S
//! shares. That is a transport problem with small integer profits, 0..=L, and
//! capacities that are rationals: at most L + 1 maximum flows in integers solve
//! it without any rounding.
//!
//! # Algorithm
//! Integer potentials u(y) and v(S) with u(y) + v(S) >= tau(y, S); at first
//! u = 0 and v = the largest tau. Mass flows only where equality holds. When no
//! more can flow, v falls and u rises by the least slack out of what unserved
//! sets can reach. A leaf with room left has u = 0, so an unserved set has
//! v >= 0; it started at most at L and every round lowers it by at least 1:
//! hence at most L + 1 rounds (primal-dual method, Kuhn; Ford and Fulkerson).

use num_bigint::{BigInt, BigUint};
use num_traits::Zero;
use specgap_core::scheme::{DraftScheme, SetFamily, WithReplacement};
use specgap_core::tree::TokenTree;
use specgap_number::distribution::{Draft, Rational, ratio};
use specgap_number::number::Number;
use std::collections::VecDeque;

/// Largest number of (target block, draft set) pairs that is solved.
pub const MAX_EXACT_PAIRS: f64 = 1e6;

/// The block problem as a transport problem in integers: leaf y has mass
/// `demand[y] / total`, draft set k has mass `supply[k] / total`.
#[derive(Clone, Debug)]
pub struct BlockTransport {
    sets: SetFamily,
    /// tau, by set, then by block.
    profits: Vec<Vec<i64>>,
    supply: Vec<BigUint>,
    demand: Vec<BigUint>,
    total: BigUint,
}

/// An optimal coupling with integer potentials that prove it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockPlan {
    /// Mass by draft set, then by target block, in units of 1/total.
    pub mass: Vec<Vec<BigUint>>,
    /// u, one a target block.
    pub target_potential: Vec<i64>,
    /// v, one a draft set.
    pub draft_potential: Vec<i64>,
}

/// Why a plan is not what it says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanRefused {
    /// Another number of rows or entries: which part; its length; what it must be.
    #[error("{0} has {1} entries; the problem has {2}")]
    Shape(&'static str, usize, usize),
    /// A marginal is not met: `target block` or `draft set`; which one.
    #[error("{0} {1} is given another mass than it has")]
    Marginal(&'static str, usize),
    /// u(y) + v(S) < tau(y, S): draft set; target block.
    #[error("the potentials of draft set {0} and target block {1} sum to less than tau")]
    Potential(usize, usize),
    /// Both sides are feasible and their values differ.
    #[error("E[tau] of the plan is below the potentials' bound")]
    Gap,
}

/// About how many pairs of target block and draft set a problem has; decided
/// without enumerating them.
pub fn pair_count(tree: &TokenTree<f64>, drafts: usize) -> f64 {
    let blocks = tree.draft_support().len();
    let sizes = 1..=drafts.min(blocks);
    let sets: f64 = sizes
        .map(|size| specgap_core::scheme::choose(blocks, size))
        .sum();
    sets * tree.width(tree.length()) as f64
}

/// tau(block, set) of a block and a set of blocks: how many tokens some member shares at most.
pub(super) fn shared<T: Number>(tree: &TokenTree<T>, set: &[u32], block: usize) -> usize {
    let members = set.iter().map(|&other| other as usize);
    let shared = members.map(|other| tree.common_prefix(block, other));
    shared.max().unwrap_or(0)
}

impl BlockTransport {
    /// The problem with `drafts` i.i.d. blocks. Tuples with the same distinct
    /// blocks are merged: tau depends on nothing else.
    ///
    /// # Complexity
    /// [`pair_count`] pairs; `None` if there are more than
    /// [`MAX_EXACT_PAIRS`].
    pub fn new(tree: &TokenTree<Rational>, drafts: usize) -> Option<Self> {
        let leaves = tree.draft_layer(tree.length()).to_vec();
        let scheme = WithReplacement::new(Draft::from_rationals(leaves).ok()?, drafts);
        let width = tree.width(tree.length());
        if scheme.set_count() * width as f64 > MAX_EXACT_PAIRS {
            return None;
        }
        let law = scheme.exact_set_law();
        let (weights, whole) =
            specgap_number::distribution::integer_weights(tree.target_layer(tree.length()));
        let total = &law.total * &whole;
        let row = |set: &[u32]| {
            let tau = |block| i64::try_from(shared(tree, set, block)).unwrap_or(i64::MAX);
            (0..width).map(tau).collect()
        };
        Some(Self {
            profits: law.sets.iter().map(row).collect(),
            supply: law.weights.iter().map(|weight| weight * &whole).collect(),
            demand: weights.iter().map(|weight| weight * &law.total).collect(),
            sets: law.sets,
            total,
        })
    }

    /// The distinct draft sets; "tokens" are blocks, by index in layer L.
    pub fn sets(&self) -> &SetFamily {
        &self.sets
    }

    /// tau(block, set): how many tokens of `block` some member of the set shares.
    pub fn shared(&self, set: usize, block: usize) -> i64 {
        self.profits[set][block]
    }

    /// An optimal plan with its proof.
    ///
    /// # Complexity
    /// At most L + 1 maximum flows by shortest augmenting paths on
    /// `sets.len() * V^L` arcs, in unbounded integers.
    pub fn solve(&self) -> BlockPlan {
        solved(&self.profits, &self.supply, &self.demand)
    }

    /// `E[tau]` of a plan if it is feasible and its potentials prove that nothing
    /// better exists. Exact, and from the problem's data alone.
    ///
    /// # Errors
    /// The first condition that fails.
    pub fn check(&self, plan: &BlockPlan) -> Result<Rational, PlanRefused> {
        let masses = [&self.supply[..], &self.demand];
        checked(plan, &self.profits, masses, &self.total)
    }
}

/// An optimal plan for profits by draft set and target block, both sides having the same mass.
fn solved(profits: &[Vec<i64>], supply: &[BigUint], demand: &[BigUint]) -> BlockPlan {
    let most = profits
        .iter()
        .map(|row| row.iter().copied().max().unwrap_or(0));
    let mut network = Network {
        profits,
        left: supply.to_vec(),
        room: demand.to_vec(),
        mass: vec![vec![BigUint::zero(); demand.len()]; supply.len()],
        draft_potential: most.collect(),
        target_potential: vec![0; demand.len()],
    };
    network.run();
    BlockPlan {
        mass: network.mass,
        target_potential: network.target_potential,
        draft_potential: network.draft_potential,
    }
}

/// The value of a plan for these profits and masses in units of 1/total, if it is feasible and
/// its potentials prove that nothing is better.
fn checked(
    plan: &BlockPlan,
    profits: &[Vec<i64>],
    [supply, demand]: [&[BigUint]; 2],
    total: &BigUint,
) -> Result<Rational, PlanRefused> {
    let shape = |what, found, needed| match found == needed {
        true => Ok(()),
        false => Err(PlanRefused::Shape(what, found, needed)),
    };
    let (u, v) = (&plan.target_potential, &plan.draft_potential);
    shape("mass", plan.mass.len(), supply.len())?;
    shape("draft_potential", v.len(), supply.len())?;
    shape("target_potential", u.len(), demand.len())?;
    let mut given = vec![BigUint::zero(); demand.len()];
    let (mut value, mut bound) = (BigInt::zero(), BigInt::zero());
    for (set, row) in plan.mass.iter().enumerate() {
        shape("a row of mass", row.len(), demand.len())?;
        if row.iter().sum::<BigUint>() != supply[set] {
            return Err(PlanRefused::Marginal("draft set", set));
        }
        bound += BigInt::from(supply[set].clone()) * v[set];
        for (block, mass) in row.iter().enumerate() {
            let profit = profits[set][block];
            if u[block].saturating_add(v[set]) < profit {
                return Err(PlanRefused::Potential(set, block));
            }
            given[block] += mass;
            value += BigInt::from(mass * profit.unsigned_abs());
        }
    }
    for (block, given) in given.iter().enumerate() {
        if *given != demand[block] {
            return Err(PlanRefused::Marginal("target block", block));
        }
        bound += BigInt::from(given.clone()) * u[block];
    }
    if value != bound {
        return Err(PlanRefused::Gap);
    }
    Ok(ratio(&value.into_parts().1, total))
}

/// The largest mean profit of any coupling of two laws, for profits by draft set and target
/// block: checked by potentials.
pub(crate) fn largest_coupling(
    profits: &[Vec<i64>],
    [sets, blocks]: [&[Rational]; 2],
) -> Result<Rational, PlanRefused> {
    let (supply, of_sets) = specgap_number::distribution::integer_weights(sets);
    let (demand, of_blocks) = specgap_number::distribution::integer_weights(blocks);
    let supply: Vec<BigUint> = supply.iter().map(|mass| mass * &of_blocks).collect();
    let demand: Vec<BigUint> = demand.iter().map(|mass| mass * &of_sets).collect();
    let plan = solved(profits, &supply, &demand);
    checked(&plan, profits, [&supply, &demand], &(of_sets * of_blocks))
}

/// The largest `E[tau]` of any coupling of K i.i.d. blocks with the target's
/// block, as a checked rational; `None` if the problem is too large.
///
/// # Example
/// ```
/// use specgap_exact::block::transport::block_optimum;
/// use specgap_number::distribution::{Draft, Target, format_rational};
/// use specgap_core::problem::BlockProblem;
/// use specgap_core::tree::TokenTree;
/// use std::collections::BTreeMap;
/// let target = BTreeMap::from([(String::new(), Target::new(&[0.5, 0.5])?)]);
/// let draft = BTreeMap::from([(String::new(), Draft::new(&[0.75, 0.25])?)]);
/// let problem = BlockProblem::new("one".to_owned(), 2, 1, 2, target, draft, None)?;
/// let optimum = block_optimum(&TokenTree::new(&problem), 2).unwrap()?;
/// assert_eq!(format_rational(&optimum), "15/16");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn block_optimum(
    tree: &TokenTree<Rational>,
    drafts: usize,
) -> Option<Result<Rational, PlanRefused>> {
    let transport = BlockTransport::new(tree, drafts)?;
    Some(transport.check(&transport.solve()))
}

struct Network<'a> {
    profits: &'a [Vec<i64>],
    left: Vec<BigUint>,
    room: Vec<BigUint>,
    mass: Vec<Vec<BigUint>>,
    draft_potential: Vec<i64>,
    target_potential: Vec<i64>,
}

const FAR: u32 = u32::MAX;

/// Distances from sets with mass left: of the sets, and of the blocks.
struct Levels {
    sets: Vec<u32>,
    blocks: Vec<u32>,
}

impl Network<'_> {
    fn slack(&self, set: usize, block: usize) -> i64 {
        self.draft_potential[set] + self.target_potential[block] - self.profits[set][block]
    }

    fn tight(&self, set: usize, block: usize) -> bool {
        self.slack(set, block) == 0
    }

    fn run(&mut self) {
        while self.left.iter().any(|left| !left.is_zero()) {
            let levels = self.saturate();
            // Sets that unserved mass reaches, and blocks that it does not.
            let (network, blocks) = (&*self, &levels.blocks);
            let near = (0..levels.sets.len()).filter(|&set| levels.sets[set] != FAR);
            let slack = near.flat_map(|set| {
                let far = (0..blocks.len()).filter(|&block| blocks[block] == FAR);
                far.map(move |block| network.slack(set, block))
            });
            // No block out of reach would mean that none has room, and then
            // nothing is left: both sides have the same total.
            let Some(slack) = slack.min() else { return };
            for (set, level) in levels.sets.iter().enumerate() {
                if *level != FAR {
                    self.draft_potential[set] -= slack;
                }
            }
            for (block, level) in levels.blocks.iter().enumerate() {
                if *level != FAR {
                    self.target_potential[block] += slack;
                }
            }
        }
    }

    /// A maximum flow on the tight pairs; returns what unserved mass reaches.
    fn saturate(&mut self) -> Levels {
        loop {
            let levels = self.levels();
            let open = |block: usize| levels.blocks[block] != FAR && !self.room[block].is_zero();
            if !(0..self.room.len()).any(open) {
                return levels;
            }
            let mut next_block = vec![0; self.left.len()];
            let mut next_set = vec![0; self.room.len()];
            for set in 0..self.left.len() {
                while !self.left[set].is_zero() {
                    let limit = self.left[set].clone();
                    let sent = self.push(set, &limit, &levels, &mut next_block, &mut next_set);
                    if sent.is_zero() {
                        break;
                    }
                    self.left[set] -= sent;
                }
            }
        }
    }

    fn levels(&self) -> Levels {
        let mut sets = vec![FAR; self.left.len()];
        let mut blocks = vec![FAR; self.room.len()];
        let mut queue = VecDeque::new();
        for (set, left) in self.left.iter().enumerate() {
            if !left.is_zero() {
                sets[set] = 0;
                queue.push_back(set);
            }
        }
        while let Some(set) = queue.pop_front() {
            for (block, level) in blocks.iter_mut().enumerate() {
                if *level != FAR || !self.tight(set, block) {
                    continue;
                }
                *level = sets[set] + 1;
                for (other, row) in self.mass.iter().enumerate() {
                    if sets[other] == FAR && !row[block].is_zero() {
                        sets[other] = *level + 1;
                        queue.push_back(other);
                    }
                }
            }
        }
        Levels { sets, blocks }
    }

    /// Sends at most `limit` from a set along rising levels to a block
    /// with room. A path meets every block at most once, so the recursion is at
    /// most V^L deep.
    fn push(
        &mut self,
        set: usize,
        limit: &BigUint,
        levels: &Levels,
        next_block: &mut [usize],
        next_set: &mut [usize],
    ) -> BigUint {
        while next_block[set] < self.room.len() {
            let block = next_block[set];
            if levels.blocks[block] == levels.sets[set] + 1 && self.tight(set, block) {
                if !self.room[block].is_zero() {
                    let part = limit.min(&self.room[block]).clone();
                    self.room[block] -= &part;
                    self.mass[set][block] += &part;
                    return part;
                }
                while next_set[block] < self.left.len() {
                    let other = next_set[block];
                    if levels.sets[other] == levels.blocks[block] + 1
                        && !self.mass[other][block].is_zero()
                    {
                        let limit = limit.min(&self.mass[other][block]).clone();
                        let part = self.push(other, &limit, levels, next_block, next_set);
                        if !part.is_zero() {
                            self.mass[other][block] -= &part;
                            self.mass[set][block] += &part;
                            return part;
                        }
                    }
                    next_set[block] += 1;
                }
            }
            next_block[set] += 1;
        }
        BigUint::zero()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use specgap_core::problem::BlockProblem;
    use specgap_number::distribution::Target;

    /// Sets of up to n of the blocks that the draft has, times all blocks.
    #[test]
    fn pairs_are_counted_before_they_are_made() {
        let uniform = |vocab: usize, length: usize| {
            let row = vec![1.0 / vocab as f64; vocab];
            let made = BlockProblem::by_prefix("uniform", vocab, length, |prefix| {
                let row = (prefix.len() < length).then_some(&row);
                let target = row.map(|row| Target::new(row).unwrap());
                (target, row.map(|row| Draft::new(row).unwrap()))
            });
            made.unwrap()
        };
        let small = uniform(2, 2);
        let float = TokenTree::<f64>::new(&small);
        for (drafts, pairs) in [(1, 16.0), (2, 40.0), (3, 56.0), (4, 60.0), (9, 60.0)] {
            assert_eq!(pair_count(&float, drafts), pairs, "{drafts}");
        }
        assert!(BlockTransport::new(&TokenTree::new(&small), 2).is_some());
        // 256 blocks and 32,896 sets of one or two of them.
        let large = uniform(4, 4);
        let pairs = pair_count(&TokenTree::<f64>::new(&large), 2);
        assert_eq!(pairs, 256.0 * 32_896.0);
        assert!(BlockTransport::new(&TokenTree::new(&large), 2).is_none());
    }
}
