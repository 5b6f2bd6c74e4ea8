//! The best tree where what a child gets depends on its slot, its depth and its siblings.

use super::grow::Limits;
use specgap_core::rounds::ChildShares;
use specgap_core::tree::{DraftTree, TopologyError};

/// How often a round that is at a node of some depth goes down to the child in each slot, by the
/// number of the node's children.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SlotRates {
    /// By depth, then by number of children less 1; empty where a law has no such number.
    by_depth: Vec<Vec<Vec<f64>>>,
}

impl SlotRates {
    /// Means over the positions of some texts.
    ///
    /// # Formula
    /// With A_t(j; n) the share of child j of n at position t, and a_t = the sum of A_t(j; w) for
    /// the most children w,
    ///
    /// ```text
    /// rate_d(j; n) = sum over t of g_d(t) A_t(j; n) / sum over t of g_d(t)
    /// g_0(t) = 1,   g_d(t) = a_(t-1) g_(d-1)(t-1)
    /// ```
    ///
    /// g_d(t) is how likely a round that started d tokens before t is to come there in a tree
    /// with w children everywhere: rounds come deep where the text is easy. At depths that no
    /// text reaches the rates are those of the depth before.
    ///
    /// # Exactness
    /// Sums in `f64` of terms that are not negative.
    ///
    /// # Complexity
    /// O(N depth branch^2).
    ///
    /// # Example
    /// ```
    /// use specgap_core::rounds::ChildShares;
    /// use specgap_replay::replay::{Limits, SlotRates};
    /// let limits = Limits { budget: 2, depth: 2, branch: 1 };
    /// let rates = SlotRates::new([&ChildShares::new(2, true, [(1, vec![0.5, 0.25])])], limits);
    /// assert_eq!((rates.rates(0, 1), rates.rates(1, 1)), (&[0.375][..], &[0.25][..]));
    /// ```
    pub fn new<'a>(texts: impl IntoIterator<Item = &'a ChildShares<f64>>, limits: Limits) -> Self {
        let texts: Vec<&ChildShares<f64>> =
            texts.into_iter().filter(|one| !one.is_empty()).collect();
        let knows = |children: usize| {
            !texts.is_empty()
                && texts
                    .iter()
                    .all(|one| one.at(0, children).len() >= children)
        };
        let known: Vec<usize> = (1..=limits.branch).filter(|&n| knows(n)).collect();
        let most = known.last().copied().unwrap_or(0);
        let nothing: Vec<Vec<f64>> = (1..=limits.branch)
            .map(|n| vec![0.0; if known.contains(&n) { n } else { 0 }])
            .collect();
        let mut sums = vec![(nothing, 0.0); limits.depth];
        for text in &texts {
            // How likely rounds are here, by their depth.
            let mut here = vec![0.0; limits.depth];
            // How likely one of the drafts there is accepted, by depth as well.
            let mut all = vec![0.0; limits.depth];
            for position in 0..text.len() {
                (here.iter_mut().zip(&all)).for_each(|(weight, all)| *weight *= all);
                here.rotate_right(1);
                if let Some(first) = here.first_mut() {
                    *first = 1.0;
                }
                for (depth, ((rates, total), weight)) in sums.iter_mut().zip(&here).enumerate() {
                    let Some(start) = position.checked_sub(depth) else {
                        break;
                    };
                    *total += weight;
                    for &n in &known {
                        let shares = text.behind(start, depth, n);
                        for (sum, share) in rates[n - 1].iter_mut().zip(shares) {
                            *sum += weight * share;
                        }
                    }
                }
                for (depth, all) in all.iter_mut().enumerate().take(position + 1) {
                    *all = text.behind(position - depth, depth, most).iter().sum();
                }
            }
        }
        let mut by_depth: Vec<Vec<Vec<f64>>> = Vec::with_capacity(limits.depth);
        for (mut rates, total) in sums {
            if total > 0.0 {
                rates.iter_mut().flatten().for_each(|rate| *rate /= total);
            } else if let Some(before) = by_depth.last() {
                rates.clone_from(before);
            }
            by_depth.push(rates);
        }
        Self { by_depth }
    }

    /// The rates of the children of a node with so many; none for numbers that a law does not
    /// have.
    pub fn rates(&self, depth: usize, children: usize) -> &[f64] {
        let by_children = self.by_depth.get(depth).or(self.by_depth.last());
        let index = children.checked_sub(1);
        let rates = index.and_then(|index| by_children?.get(index));
        rates.map_or(&[], Vec::as_slice)
    }

    /// The tree with the largest E\[tau\] at these rates, and that.
    ///
    /// # Formula
    /// G_d(m) is the most below a node of depth d with at most m nodes, H_d(j, m; n) the most of
    /// its children j, j + 1, .., n - 1 with theirs:
    ///
    /// ```text
    /// H_d(j, m; n) = max over s of rate_d(j; n) (1 + G_(d+1)(s - 1)) + H_d(j + 1, m - s; n)
    /// G_d(m) = max(0, max over n of H_d(0, m; n)),   H_d(n, m; n) = 0,   G_depth(m) = 0
    /// ```
    ///
    /// Where rates depend on neither depth nor siblings this is Sequoia's program.
    ///
    /// # Exactness
    /// The best of all trees within the limits, up to the rounding of `f64`.
    ///
    /// # Complexity
    /// O(budget^2 depth branch^2) time, O(budget depth branch^2) memory.
    ///
    /// # Errors
    /// More nodes than a tree may have.
    ///
    /// # Example
    /// ```
    /// use specgap_core::rounds::ChildShares;
    /// use specgap_replay::replay::{Limits, SlotRates};
    /// // One child gets .6, of two each gets .4: two tokens are best a chain.
    /// let shares = ChildShares::new(9, false, [(1, vec![0.6; 9]), (2, vec![0.4; 18])]);
    /// let limits = Limits { budget: 2, depth: 2, branch: 2 };
    /// let (tree, value) = SlotRates::new([&shares], limits).best_tree(limits)?;
    /// assert_eq!(tree.paths(), [vec![0], vec![0, 0]]);
    /// assert!((value - 0.96).abs() < 1e-12);
    /// # Ok::<(), specgap_core::tree::TopologyError>(())
    /// ```
    pub fn best_tree(&self, limits: Limits) -> Result<(DraftTree, f64), TopologyError> {
        let trees = self.best_trees(limits);
        Ok((trees.tree(limits.budget)?, trees.value(limits.budget)))
    }

    /// [`Self::best_tree`] of every number of nodes within the budget, by one program.
    pub(super) fn best_trees(&self, limits: Limits) -> SlotTrees {
        let mut levels: Vec<Level> = Vec::with_capacity(limits.depth);
        let mut below = vec![0.0; limits.budget + 1];
        for depth in (0..limits.depth).rev() {
            let level = Level::new(self, depth, limits, &below);
            below.clone_from(&level.most);
            levels.push(level);
        }
        levels.reverse();
        SlotTrees { levels }
    }
}

/// The best trees of all numbers of nodes within a depth.
pub(super) struct SlotTrees {
    levels: Vec<Level>,
}

impl SlotTrees {
    /// The largest E\[tau\] of at most so many nodes.
    pub(super) fn value(&self, nodes: usize) -> f64 {
        let most = self.levels.first().and_then(|level| level.most.get(nodes));
        most.copied().unwrap_or(0.0)
    }

    /// The tree that has it.
    pub(super) fn tree(&self, nodes: usize) -> Result<DraftTree, TopologyError> {
        let mut paths = Vec::new();
        // Nodes whose children are still to be laid out, with what is theirs.
        let mut open = vec![(Vec::new(), nodes)];
        while let Some((path, mut nodes)) = open.pop() {
            let level = self.levels.get(path.len());
            let children = level.and_then(|level| level.children.get(nodes).copied());
            let (Some(level), Some(children)) = (level, children) else {
                continue;
            };
            for slot in 0..children {
                let own = level.own(children, slot, nodes);
                let child = [path.as_slice(), &[slot]].concat();
                paths.push(child.clone());
                open.push((child, own.saturating_sub(1)));
                nodes -= own;
            }
        }
        DraftTree::new(paths)
    }
}

/// The best below a node of one depth, by the number of nodes that it may have there.
struct Level {
    most: Vec<f64>,
    /// How many children it has then.
    children: Vec<usize>,
    /// By number of children less 1 and slot: how many nodes the slot's child and what is below
    /// it are, of so many for it and the slots behind.
    cuts: Vec<Vec<Vec<usize>>>,
}

impl Level {
    fn new(rates: &SlotRates, depth: usize, limits: Limits, below: &[f64]) -> Self {
        let budget = limits.budget;
        let mut level = Self {
            most: vec![0.0; budget + 1],
            children: vec![0; budget + 1],
            cuts: Vec::with_capacity(limits.branch),
        };
        for children in 1..=limits.branch {
            let own = rates.rates(depth, children);
            let mut cuts = vec![Vec::new(); children];
            if own.len() == children {
                let mut behind = vec![0.0; budget + 1];
                for (slot, rate) in own.iter().enumerate().rev() {
                    let others = children - slot - 1;
                    let mut here = vec![f64::NEG_INFINITY; budget + 1];
                    let mut cut = vec![0; budget + 1];
                    for nodes in others + 1..=budget {
                        for own in 1..=nodes - others {
                            let value = rate * (1.0 + below[own - 1]) + behind[nodes - own];
                            if value > here[nodes] {
                                here[nodes] = value;
                                cut[nodes] = own;
                            }
                        }
                    }
                    cuts[slot] = cut;
                    behind = here;
                }
                for (nodes, &value) in behind.iter().enumerate() {
                    if value > level.most[nodes] {
                        level.most[nodes] = value;
                        level.children[nodes] = children;
                    }
                }
            }
            level.cuts.push(cuts);
        }
        level
    }

    fn own(&self, children: usize, slot: usize, nodes: usize) -> usize {
        let cuts = self.cuts.get(children - 1).and_then(|cuts| cuts.get(slot));
        cuts.and_then(|cut| cut.get(nodes)).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random_problem::{all_trees, limits};
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// E[tau] of a tree by its definition: every node's path, edge by edge.
    fn value(rates: &SlotRates, paths: &[Vec<usize>]) -> f64 {
        let children = |node: &[usize]| {
            let below = paths.iter().filter(|path| path.len() == node.len() + 1);
            below.filter(|path| path.starts_with(node)).count()
        };
        let of = |path: &Vec<usize>| -> f64 {
            let edges = (0..path.len())
                .map(|depth| rates.rates(depth, children(&path[..depth]))[path[depth]]);
            edges.product()
        };
        paths.iter().map(of).sum()
    }

    #[test]
    fn the_program_is_as_good_as_all_shapes() {
        let mut rng = ChaCha8Rng::seed_from_u64(31);
        for round in 0..60 {
            let mut at_most = |most: usize| rng.random_range(1..=most);
            let limits = limits(at_most(6), at_most(4), at_most(3));
            let mut by_depth = Vec::new();
            for _ in 0..limits.depth {
                let row = |n: usize, rng: &mut ChaCha8Rng| {
                    let mut left = 1.0;
                    let slot = |_| {
                        let share: f64 = left * rng.random_range(0.0..0.9);
                        left -= share;
                        share
                    };
                    (0..n).map(slot).collect::<Vec<f64>>()
                };
                by_depth.push((1..=limits.branch).map(|n| row(n, &mut rng)).collect());
            }
            let rates = SlotRates { by_depth };
            let (tree, promised) = rates.best_tree(limits).unwrap();
            assert!(tree.len() <= limits.budget && tree.depth() <= limits.depth);
            assert!((value(&rates, tree.paths()) - promised).abs() < 1e-12);
            let all = (0..=limits.budget).flat_map(|nodes| all_trees(nodes, limits));
            let best = all.map(|tree| value(&rates, &tree)).fold(0.0, f64::max);
            assert!(
                (best - promised).abs() < 1e-12,
                "{round}: {best} {promised}"
            );
        }
    }

    /// Two positions by hand. One child gets 1/2 and 1/4; of two the first gets 1/2 and 1/4, the
    /// second 1/4 and 1/2. Rounds come to the second position from the first with 3/4, so that
    /// at depth 1 the rates are those of the second: (1/4, 1/2) of two.
    #[test]
    fn rates_and_tree_of_two_positions_by_hand() {
        let tables = [(1, vec![0.5, 0.25]), (2, vec![0.5, 0.25, 0.25, 0.5])];
        let limits = limits(4, 2, 2);
        let rates = SlotRates::new([&ChildShares::new(2, false, tables)], limits);
        assert_eq!(rates.rates(0, 1), [0.375]);
        assert_eq!(rates.rates(0, 2), [0.375, 0.375]);
        assert_eq!(rates.rates(1, 1), [0.25]);
        assert_eq!(rates.rates(1, 2), [0.25, 0.5]);
        // Two below the root, two below one of them: 3/4 + 3/8 3/4.
        let (tree, promised) = rates.best_tree(limits).unwrap();
        assert_eq!(tree.len(), 4);
        assert_eq!(promised, 0.75 + 0.375 * 0.75);
        // A law that has pairs alone.
        let pairs = ChildShares::new(2, false, [(2, vec![0.5, 0.25, 0.25, 0.5])]);
        let rates = SlotRates::new([&pairs], limits);
        assert!(rates.rates(0, 1).is_empty());
        let three = Limits {
            budget: 3,
            ..limits
        };
        assert_eq!(rates.best_tree(three).unwrap().0.len(), 2);
        assert_eq!(SlotRates::new([], limits).best_tree(limits).unwrap().1, 0.0);
    }
}
