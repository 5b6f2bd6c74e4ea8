//! The best tree for a number of drafts, grown node by node from texts.

use super::shares::ChildShares;
use crate::tree::{DraftTree, TopologyError};

/// How large a tree may grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most draft tokens.
    pub budget: usize,
    /// Longest path.
    pub depth: usize,
    /// Most children of a node.
    pub branch: usize,
}

/// A tree as it grew.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Growth {
    /// Its nodes, in the order in which they were added: the first m are the tree of m.
    pub paths: Vec<Vec<usize>>,
    /// What each added to the mean accepted length over the texts.
    pub gains: Vec<f64>,
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
}

impl Starts<'_> {
    /// Calls with every start that has a token `depth` further on: its number, and the shares
    /// there of a node with so many children.
    fn each(&self, depth: usize, children: usize, mut visit: impl FnMut(usize, &[f64])) {
        for &(shares, first) in &self.texts {
            for start in 0..shares.len().saturating_sub(depth) {
                visit(first + start, shares.at(start + depth, children));
            }
        }
    }

    /// How many there are.
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
    /// probability that a round gets to v. Where what a child gets depends on the number of
    /// its siblings, what they gain or lose by v is added. A tree and one that holds it differ
    /// by the sum of the gains between them, and a node's gain is at most its parent's; where
    /// shares do not depend on the number of siblings and fall with rank, the m nodes of
    /// largest gain are the best tree of m nodes, and these are the nodes that are added.
    ///
    /// # Complexity
    /// O(budget N branch) time where shares are nested, else O(budget^2 N branch); O(budget N)
    /// memory.
    ///
    /// # Example
    /// ```
    /// use specgap::text::{ChildShares, Growth, Limits};
    /// let shares = ChildShares::new(4, true, [(2, [0.6, 0.3].repeat(4))]);
    /// let limits = Limits { budget: 3, depth: 4, branch: 2 };
    /// let growth = Growth::new([&shares], limits);
    /// // 0.6, 0.36, 0.3; a third token on the chain would add 0.216 only.
    /// assert_eq!(growth.paths, [vec![0], vec![0, 0], vec![1]]);
    /// assert_eq!(growth.tree(2)?.paths(), [vec![0], vec![0, 0]]);
    /// # Ok::<(), specgap::tree::TopologyError>(())
    /// ```
    pub fn new<'a>(texts: impl IntoIterator<Item = &'a ChildShares<f64>>, limits: Limits) -> Self {
        let mut starts = Starts {
            texts: Vec::new(),
            count: 0,
        };
        let mut nested = true;
        for text in texts {
            starts.texts.push((text, starts.count));
            starts.count += text.len();
            nested &= text.is_nested();
        }
        let mut nodes = vec![Node {
            path: Vec::new(),
            parent: 0,
            children: Vec::new(),
            reach: vec![1.0; starts.count],
            below: vec![0.0; starts.count],
        }];
        let mut growth = Self::default();
        // What a further child of each node would add.
        let mut gains = vec![gain(&starts, &nodes, 0, limits)];
        while growth.paths.len() < limits.budget {
            let best = (0..gains.len()).fold(None, |best: Option<usize>, node| match best {
                Some(best) if gains[best] >= gains[node] => Some(best),
                _ => Some(node),
            });
            let Some(parent) = best.filter(|&node| gains[node] > 0.0) else {
                break;
            };
            growth.gains.push(gains[parent]);
            let path = [
                nodes[parent].path.as_slice(),
                &[nodes[parent].children.len()],
            ]
            .concat();
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
            if nested {
                reach(&starts, &mut nodes, child);
                gains[parent] = gain(&starts, &nodes, parent, limits);
                gains.push(gain(&starts, &nodes, child, limits));
            } else {
                for node in 1..nodes.len() {
                    reach(&starts, &mut nodes, node);
                }
                for node in (0..nodes.len()).rev() {
                    below(&starts, &mut nodes, node);
                }
                gains = (0..nodes.len())
                    .map(|node| gain(&starts, &nodes, node, limits))
                    .collect();
            }
        }
        growth
    }

    /// The tree of the first nodes.
    ///
    /// # Errors
    /// More nodes than a tree may have.
    pub fn tree(&self, nodes: usize) -> Result<DraftTree, TopologyError> {
        DraftTree::new(self.paths.iter().take(nodes).cloned().collect())
    }
}

/// What a further child adds to the mean accepted length; 0 where there may be none.
fn gain(starts: &Starts<'_>, nodes: &[Node], at: usize, limits: Limits) -> f64 {
    let (node, depth) = (&nodes[at], nodes[at].path.len());
    let own = node.children.len();
    let count = starts.with_room(depth);
    if own >= limits.branch || depth >= limits.depth || count <= 0.0 {
        return 0.0;
    }
    let mut sum = 0.0;
    starts.each(depth, own + 1, |start, shares| {
        let reach = node.reach[start];
        if reach > 0.0
            && let Some(last) = shares.get(own)
        {
            sum += reach * last;
        }
    });
    if own > 0 && !starts.texts.iter().all(|(text, _)| text.is_nested()) {
        let mut siblings = |children: usize, sign: f64| {
            starts.each(depth, children, |start, shares| {
                for (&child, share) in node.children.iter().zip(shares) {
                    sum += sign * node.reach[start] * share * (1.0 + nodes[child].below[start]);
                }
            });
        };
        siblings(own + 1, 1.0);
        siblings(own, -1.0);
    }
    sum / count
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
