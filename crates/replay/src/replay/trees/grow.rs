//! The best tree for a number of drafts, grown node by node from texts.

use specgap_core::rounds::ChildShares;
pub use specgap_core::tree::TopologyLimits as Limits;
use specgap_core::tree::{DraftTree, TopologyError};

/// A tree as it grew.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Growth {
    /// Its nodes, in the order in which they were added: the trees on the way
    /// are the first of them, as many as [`Growth::steps`] says.
    pub paths: Vec<Vec<usize>>,
    /// What each added to the mean accepted length over the texts; nodes that were added
    /// together share alike.
    pub gains: Vec<f64>,
    /// The numbers of nodes of the trees on the way.
    pub steps: Vec<usize>,
}

/// A node of the growing tree.
struct Node {
    path: Vec<usize>,
    parent: usize,
    children: Vec<usize>,
    /// By start, over all texts: the probability that a round gets here.
    reach: Vec<f64>,
    /// By start: expected accepted drafts below, once a round is here.
    below: Vec<f64>,
}

/// Starts of all texts, one after the other.
struct Starts<'a> {
    texts: Vec<(&'a ChildShares<f64>, usize)>,
    count: usize,
    nested: bool,
}

impl Starts<'_> {
    /// Calls with every start that has a token `depth` further on: its number, and the shares
    /// there of a node with so many children.
    fn each(&self, depth: usize, children: usize, mut visit: impl FnMut(usize, &[f64])) {
        for &(shares, first) in &self.texts {
            for start in 0..shares.len().saturating_sub(depth) {
                visit(first + start, shares.behind(start, depth, children));
            }
        }
    }

    /// Tells whether all texts have shares of so many children.
    fn knows(&self, children: usize) -> bool {
        let mut texts = self.texts.iter().filter(|(text, _)| !text.is_empty());
        texts.all(|(text, _)| text.at(0, children).len() >= children)
    }

    /// Returns how many there are.
    fn with_room(&self, depth: usize) -> f64 {
        let rooms = self.texts.iter();
        let count: usize = rooms
            .map(|(text, _)| text.len().saturating_sub(depth))
            .sum();
        count as f64
    }
}

impl Growth {
    /// Grows a tree: the node that adds most to the mean accepted length over the starts of
    /// the texts is added, again and again.
    ///
    /// # Formula
    /// The gain of node v of depth d is the mean over starts with d tokens left of the
    /// probability that a round gets to v. Where shares do not depend on the number of
    /// siblings and fall with rank, a node's gain is at most its parent's and at most that of
    /// the sibling before it (but for the ends of texts, where deeper nodes have fewer
    /// starts). Then the m nodes of largest gain are a tree, the best one of m nodes, and
    /// these are the nodes that are added.
    ///
    /// Where shares depend on the number of siblings, several children are added to a node at
    /// once if that is worth more a node, and what their siblings gain or lose is counted.
    /// That tree is a good one, and need not be the best.
    ///
    /// # Complexity
    /// O(budget N branch) time where shares are nested, else O(budget^2 N branch^2);
    /// O(budget N) memory.
    ///
    /// # Example
    /// ```
    /// use specgap_replay::replay::{Growth, Limits};
    /// use specgap_core::rounds::ChildShares;
    /// let shares = ChildShares::new(4, true, [(2, [0.6, 0.3].repeat(4))]);
    /// let limits = Limits { budget: 3, depth: 4, branch: 2 };
    /// let growth = Growth::new([&shares], limits);
    /// // 0.6, 0.36, 0.3; a third token on the chain would add 0.216 only.
    /// assert_eq!(growth.paths, [vec![0], vec![0, 0], vec![1]]);
    /// assert_eq!(growth.tree(2)?.paths(), [vec![0], vec![0, 0]]);
    /// # Ok::<(), specgap_core::tree::TopologyError>(())
    /// ```
    pub fn new<'a>(texts: impl IntoIterator<Item = &'a ChildShares<f64>>, limits: Limits) -> Self {
        let mut starts = Starts {
            texts: Vec::new(),
            count: 0,
            nested: true,
        };
        for text in texts {
            starts.texts.push((text, starts.count));
            starts.count += text.len();
            starts.nested &= text.is_nested();
        }
        let mut nodes = vec![Node {
            path: Vec::new(),
            parent: 0,
            children: Vec::new(),
            reach: vec![1.0; starts.count],
            below: vec![0.0; starts.count],
        }];
        let mut growth = Self::default();
        // What further children of each node would add.
        let mut gains = vec![Gain::of(&starts, &nodes, 0, limits, limits.budget)];
        while growth.paths.len() < limits.budget {
            let best = (0..gains.len()).fold(None, |best: Option<usize>, node| match best {
                Some(best) if gains[best].each >= gains[node].each => Some(best),
                _ => Some(node),
            });
            let Some(parent) = best.filter(|&node| gains[node].each > 0.0) else {
                break;
            };
            let gain = gains[parent];
            let added = nodes.len();
            for _ in 0..gain.children {
                let rank = nodes[parent].children.len();
                let path = [nodes[parent].path.as_slice(), &[rank]].concat();
                growth.gains.push(gain.each);
                growth.paths.push(path.clone());
                let child = nodes.len();
                nodes[parent].children.push(child);
                nodes.push(Node {
                    path,
                    parent,
                    children: Vec::new(),
                    reach: vec![0.0; starts.count],
                    below: vec![0.0; starts.count],
                });
            }
            growth.steps.push(growth.paths.len());
            let left = limits.budget - growth.paths.len();
            if starts.nested {
                reach(&starts, &mut nodes, added);
                gains[parent] = Gain::of(&starts, &nodes, parent, limits, left);
                gains.push(Gain::of(&starts, &nodes, added, limits, left));
            } else {
                for node in 1..nodes.len() {
                    reach(&starts, &mut nodes, node);
                }
                for node in (0..nodes.len()).rev() {
                    below(&starts, &mut nodes, node);
                }
                gains = (0..nodes.len())
                    .map(|node| Gain::of(&starts, &nodes, node, limits, left))
                    .collect();
            }
        }
        growth
    }

    /// The largest tree on the way with at most so many nodes.
    pub fn size_within(&self, nodes: usize) -> usize {
        let fits = self.steps.iter().rev().find(|&&step| step <= nodes);
        fits.copied().unwrap_or(0)
    }

    /// The tree of the first nodes; a tree on the way where [`Self::size_within`] says so.
    ///
    /// # Errors
    /// More nodes than a tree may have.
    pub fn tree(&self, nodes: usize) -> Result<DraftTree, TopologyError> {
        DraftTree::new(self.paths.iter().take(nodes).cloned().collect())
    }
}

/// What further children of a node add to the mean accepted length.
#[derive(Clone, Copy, Debug, Default)]
struct Gain {
    /// How many children.
    children: usize,
    /// What they add, by their number; 0 where there may be none.
    each: f64,
}

impl Gain {
    /// The best number of further children, at most `left`.
    fn of(starts: &Starts<'_>, nodes: &[Node], at: usize, limits: Limits, left: usize) -> Self {
        let (node, depth) = (&nodes[at], nodes[at].path.len());
        let own = node.children.len();
        let count = starts.with_room(depth);
        let mut best = Self::default();
        if depth >= limits.depth || count <= 0.0 {
            return best;
        }
        // What the children have now, and what is below them with it.
        let siblings = |children: usize| {
            let mut sum = 0.0;
            starts.each(depth, children, |start, shares| {
                for (&child, share) in node.children.iter().zip(shares) {
                    sum += node.reach[start] * share * (1.0 + nodes[child].below[start]);
                }
            });
            sum
        };
        let before = match starts.nested || own == 0 {
            true => 0.0,
            false => siblings(own),
        };
        let most = match starts.nested {
            true => own + 1,
            false => limits.branch,
        };
        for children in own + 1..=most.min(limits.branch).min(own + left) {
            if !starts.knows(children) {
                continue;
            }
            let mut sum = 0.0;
            starts.each(depth, children, |start, shares| {
                let reach = node.reach[start];
                if reach > 0.0 {
                    sum += reach * shares[own..children].iter().sum::<f64>();
                }
            });
            if !starts.nested && own > 0 {
                sum += siblings(children) - before;
            }
            let each = sum / count / (children - own) as f64;
            if each > best.each {
                best = Self {
                    children: children - own,
                    each,
                };
            }
        }
        best
    }
}

fn reach(starts: &Starts<'_>, nodes: &mut [Node], at: usize) {
    let (before, behind) = nodes.split_at_mut(at);
    let Some(node) = behind.first_mut() else {
        return;
    };
    let parent = &before[node.parent];
    let depth = parent.path.len();
    let rank = node.path.last().copied().unwrap_or(0);
    node.reach.fill(0.0);
    starts.each(depth, parent.children.len(), |start, shares| {
        node.reach[start] = parent.reach[start] * shares.get(rank).copied().unwrap_or(0.0);
    });
}

fn below(starts: &Starts<'_>, nodes: &mut [Node], at: usize) {
    let (before, behind) = nodes.split_at_mut(at + 1);
    let Some(node) = before.last_mut() else {
        return;
    };
    let children = node.children.clone();
    node.below.fill(0.0);
    starts.each(node.path.len(), children.len(), |start, shares| {
        let parts = children.iter().zip(shares);
        node.below[start] = parts
            .map(|(&child, share)| share * (1.0 + behind[child - at - 1].below[start]))
            .sum();
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random_problem::{all_trees, limits};
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use specgap_core::rounds::replay_tree;

    fn random(length: usize, nested: bool, seed: u64) -> ChildShares<f64> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut row = |children: usize| {
            let mut left = 1.0;
            let mut shares: Vec<f64> = (0..children)
                .map(|_| {
                    let share = left * random.random_range(0.0..0.8);
                    left -= share;
                    share
                })
                .collect();
            shares.sort_by(|a, b| b.total_cmp(a));
            shares
        };
        let counts = if nested { 3..=3 } else { 1..=3 };
        let tables = counts.map(|children| {
            let rows = (0..length).flat_map(|_| row(children));
            (children, rows.collect::<Vec<_>>())
        });
        let tables: Vec<_> = tables.collect();
        ChildShares::new(length, nested, tables)
    }

    /// The sum of the gains is the mean accepted length of the tree, where all starts have
    /// room for it; with nested shares and with others.
    #[test]
    fn gains_add_up_to_the_replayed_value() {
        for nested in [true, false] {
            // Zeros at the end: starts without room then add nothing.
            let shares = random(40, nested, 3);
            let growth = Growth::new([&shares], limits(9, 1, 3));
            let tree = growth.tree(growth.size_within(9)).unwrap();
            let replay = replay_tree(&tree.shape(), &shares);
            let value = replay.accepted / replay.whole as f64;
            let gains: f64 = growth.gains.iter().sum();
            assert!((gains - value).abs() < 1e-12, "{nested}: {gains} {value}");
            assert_eq!(growth.paths.len(), *growth.steps.last().unwrap());
        }
    }

    /// With nested shares that fall with rank, no tree of as many nodes is better: all trees
    /// of up to 4 nodes are tried. The text is long against the depth, and its value is
    /// counted by gains, as the growth does.
    #[test]
    fn nested_growth_is_the_best_tree() {
        let shares = random(30, true, 8);
        let value = |paths: &[Vec<usize>]| -> f64 {
            let of = |path: &Vec<usize>| {
                let starts = shares.len() + 1 - path.len();
                let sum: f64 = (0..starts)
                    .map(|start| {
                        let edges = path.iter().enumerate();
                        edges
                            .map(|(depth, &rank)| shares.at(start + depth, 3)[rank])
                            .product::<f64>()
                    })
                    .sum();
                sum / starts as f64
            };
            paths.iter().map(of).sum()
        };
        for nodes in 1..=4 {
            let limits = limits(nodes, 4, 3);
            let trees = all_trees(nodes, limits);
            let best = trees.iter().map(|tree| value(tree)).fold(0.0, f64::max);
            let growth = Growth::new([&shares], limits);
            assert!((value(&growth.paths) - best).abs() < 1e-12, "{nodes}");
        }
    }

    /// Where a pair of children is worth more than twice one child, it is added at once; and
    /// where there are no shares of one child, only pairs are.
    #[test]
    fn children_are_added_together_where_that_is_worth_more() {
        let tables = vec![(1, vec![0.1; 4]), (2, [0.5, 0.3].repeat(4))];
        let limits = limits(5, 2, 2);
        let growth = Growth::new([&ChildShares::new(4, false, tables.clone())], limits);
        assert_eq!(growth.steps, [2, 4, 5]);
        let pairs = ChildShares::new(4, false, tables.into_iter().skip(1));
        let growth = Growth::new([&pairs], limits);
        assert_eq!(
            (growth.steps.clone(), growth.size_within(3)),
            (vec![2, 4], 2)
        );
        assert_eq!(growth.paths, [vec![0], vec![1], vec![0, 0], vec![0, 1]]);
    }
}
