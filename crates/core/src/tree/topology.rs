//! Shapes of draft trees, in the two forms that engines take.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Most nodes that a topology may have.
pub const MAX_NODES: usize = 1 << 12;

/// Why a list of paths or of rates is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// The empty path: the root is not listed: position in the list.
    #[error("path {0} is empty; the root is implied, list its descendants only")]
    EmptyPath(usize),
    /// A path that is listed twice: position in the list; the path.
    #[error("path {0}, {1:?}, is listed twice; list it once")]
    Repeated(usize, Vec<usize>),
    /// A path whose parent or next better sibling is missing: the path; the parent, or the sibling
    /// of the rank before.
    #[error("path {0:?} needs {1:?}, which is not listed; add it")]
    Missing(Vec<usize>, Vec<usize>),
    /// Too many nodes: how many.
    #[error("{0} nodes; at most {MAX_NODES} are taken")]
    TooLarge(usize),
    /// A name that stands for no tree.
    #[error("\"{name}\" is no tree; name a file with a list of paths, or one of {known}", known = super::NAMES)]
    Name {
        /// The name.
        name: String,
    },
    /// No list of paths: where in the document; what is wrong.
    #[error("{0}: {1}; a tree is a list of paths of child ranks, such as [[0],[1],[0,0]]")]
    Json(String, String),
    /// A list without paths.
    #[error("there is no path; list at least [0], or decode without drafts")]
    NoPaths,
    /// No acceptance rates.
    #[error("no acceptance rates; give at least one depth")]
    NoRates,
    /// A rate that is no probability: depth of the parent, from 0; rank of the child, from 0; the
    /// value.
    #[error("acceptance rate of depth {0}, rank {1} is {2}; it must be in [0, 1]")]
    Rate(usize, usize, f64),
    /// Rates of siblings, which exclude each other, that sum to more than 1: depth of the parent,
    /// from 0; their sum.
    #[error("acceptance rates of depth {0} sum to {1}; they exclude each other, so at most 1")]
    Sum(usize, f64),
}

/// The shape of a draft tree: which ranks of children are drafted at each node.
///
/// A node is the path of child ranks from the root, as in EAGLE's and Medusa's
/// lists: `[0]` is the best first token, `[0, 1]` the second best after it. The
/// root, the last token that is certain, is not listed.
///
/// # Example
/// ```
/// use specgap_core::tree::{AcceptanceRates, DraftTree};
/// let tree = DraftTree::new(vec![vec![0], vec![1], vec![0, 0]])?;
/// let rates = AcceptanceRates::new(vec![vec![0.5, 0.25]])?;
/// // 0.5 + 0.25 + 0.5 * 0.5
/// assert_eq!(tree.expected_accepted_length(&rates), 1.0);
/// assert_eq!(tree.sequoia().successors, [vec![1, 2], vec![3], vec![], vec![]]);
/// # Ok::<(), specgap_core::tree::TopologyError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftTree {
    /// By depth, then lexicographic.
    paths: Vec<Vec<usize>>,
}

/// A topology as Sequoia's engine reads it (its "growmap"); field names in JSON
/// are those of its files. Node 0 is the root; nodes are numbered by depth, then
/// by parent, then by rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SequoiaGrowMap {
    /// Nodes by depth, the root first.
    pub roots: Vec<Vec<usize>>,
    /// Numbers of children of those nodes.
    pub branches: Vec<Vec<usize>>,
    /// Children of every node.
    #[serde(rename = "Successors")]
    pub successors: Vec<Vec<usize>>,
    /// Row i has a 1 for i and each of its ancestors.
    pub mask: Vec<Vec<u8>>,
    /// Depth of every node.
    pub depth: Vec<usize>,
    /// Number of nodes, root included.
    pub size: usize,
}

/// A topology as a list of nodes, for those who walk it. Node 0 is the root, and a node stands
/// behind its parent; the children of a node stand together, by rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The parent of each node; the root's is itself.
    pub parent: Vec<usize>,
    /// Its rank among its siblings.
    pub rank: Vec<usize>,
    /// How many children it has.
    pub children: Vec<usize>,
    /// How deep it is; the root's depth is 0.
    pub depth: Vec<usize>,
    /// The number of each node's first child, if it has one.
    pub first_child: Vec<usize>,
}

impl Shape {
    /// Drafts of a round: nodes but for the root.
    pub fn drafts(&self) -> usize {
        self.children.len() - 1
    }

    /// Levels below the root.
    pub fn levels(&self) -> usize {
        self.depth.last().copied().unwrap_or(0)
    }

    /// Nodes without children.
    pub fn leaves(&self) -> usize {
        self.children.iter().filter(|&&count| count == 0).count()
    }

    /// Returns whether it is paths of one length that part at the root.
    pub fn is_paths(&self) -> bool {
        let mut below = self.children.iter().zip(&self.depth).skip(1);
        below.all(|(&count, &depth)| count == usize::from(depth < self.levels()))
    }

    /// Returns how many children a node has; none beyond the tree.
    pub fn children_of(&self, node: usize) -> usize {
        self.children.get(node).copied().unwrap_or(0)
    }

    /// The number of a node's child of some rank.
    pub fn child(&self, node: usize, rank: usize) -> usize {
        self.first_child.get(node).copied().unwrap_or(0) + rank
    }

    /// Draft tokens down to a depth, the root not counted.
    pub fn nodes_to(&self, depth: usize) -> usize {
        self.depth.partition_point(|&own| own <= depth) - 1
    }
}

/// Positional acceptance rates: entry j of a depth's vector is the probability
/// that the child of rank j is the one that is accepted, given that its parent
/// was. Siblings exclude each other. Dimensionless, in [0, 1].
///
/// Depths behind the last vector use the last one; ranks behind a vector's end
/// are never accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct AcceptanceRates {
    by_depth: Vec<Vec<f64>>,
}

impl AcceptanceRates {
    /// Makes one from one vector a depth, the root's children first; a single vector
    /// serves every depth, as in Sequoia.
    ///
    /// # Errors
    /// No vector, a rate outside [0, 1], or a vector whose sum exceeds 1 by more
    /// than 1e-9.
    pub fn new(by_depth: Vec<Vec<f64>>) -> Result<Self, TopologyError> {
        if by_depth.is_empty() {
            return Err(TopologyError::NoRates);
        }
        for (depth, rates) in by_depth.iter().enumerate() {
            for (rank, &value) in rates.iter().enumerate() {
                if !(0.0..=1.0).contains(&value) {
                    return Err(TopologyError::Rate(depth, rank, value));
                }
            }
            let sum = specgap_number::distribution::compensated_sum(rates.iter().copied());
            if sum > 1.0 + 1e-9 {
                return Err(TopologyError::Sum(depth, sum));
            }
        }
        Ok(Self { by_depth })
    }

    /// Rate of the child of `rank` under a node of `depth`.
    pub fn rate(&self, depth: usize, rank: usize) -> f64 {
        self.by_depth
            .get(depth)
            .or(self.by_depth.last())
            .and_then(|rates| rates.get(rank))
            .copied()
            .unwrap_or(0.0)
    }

    /// Number of ranks with rates, at any depth.
    pub fn ranks(&self) -> usize {
        self.by_depth.iter().map(Vec::len).max().unwrap_or(0)
    }
}

impl DraftTree {
    /// Makes one from paths of child ranks, in any order.
    ///
    /// # Errors
    /// An empty or repeated path, a path without its parent, a rank without the
    /// one before it, more than [`MAX_NODES`] paths.
    pub fn new(mut paths: Vec<Vec<usize>>) -> Result<Self, TopologyError> {
        if paths.len() > MAX_NODES {
            let nodes = paths.len();
            return Err(TopologyError::TooLarge(nodes));
        }
        let mut known = BTreeSet::new();
        for (index, path) in paths.iter().enumerate() {
            if path.is_empty() {
                return Err(TopologyError::EmptyPath(index));
            }
            if !known.insert(path.as_slice()) {
                let path = path.clone();
                return Err(TopologyError::Repeated(index, path));
            }
        }
        for path in &paths {
            let (rank, parent) = path.split_last().unwrap_or((&0, &[]));
            let mut needed = Vec::new();
            if !parent.is_empty() {
                needed.push(parent.to_vec());
            }
            if let Some(before) = rank.checked_sub(1) {
                needed.push([parent, &[before]].concat());
            }
            for missing in needed {
                if !known.contains(missing.as_slice()) {
                    let path = path.clone();
                    return Err(TopologyError::Missing(path, missing));
                }
            }
        }
        paths.sort_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
        Ok(Self { paths })
    }

    /// EAGLE's list of paths, by depth and then in lexicographic order.
    pub fn paths(&self) -> &[Vec<usize>] {
        &self.paths
    }

    /// The nodes with their parents. O(nodes log nodes).
    pub fn shape(&self) -> Shape {
        let size = self.paths.len() + 1;
        let mut shape = Shape {
            parent: vec![0; size],
            rank: vec![0; size],
            children: vec![0; size],
            depth: vec![0; size],
            first_child: Vec::with_capacity(size),
        };
        for (index, path) in self.paths.iter().enumerate() {
            let (rank, parent) = path.split_last().unwrap_or((&0, &[]));
            let parent = self.number_of(parent);
            shape.parent[index + 1] = parent;
            shape.rank[index + 1] = *rank;
            shape.depth[index + 1] = path.len();
            shape.children[parent] += 1;
        }
        let mut next = 1;
        for &count in &shape.children {
            shape.first_child.push(next);
            next += count;
        }
        shape
    }

    /// A path's number among the nodes by depth, the root being 0.
    fn number_of(&self, path: &[usize]) -> usize {
        if path.is_empty() {
            return 0;
        }
        let found = self.paths.binary_search_by(|a| {
            a.len()
                .cmp(&path.len())
                .then_with(|| a.as_slice().cmp(path))
        });
        found.map_or(0, |index| index + 1)
    }

    /// Number of draft tokens, the root not counted.
    pub fn len(&self) -> usize {
        self.paths.len()
    }

    /// True if nothing is drafted.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Longest path.
    pub fn depth(&self) -> usize {
        self.paths.last().map_or(0, Vec::len)
    }

    /// `E[tau]`: expected number of draft tokens accepted in one call of the
    /// target; bonus excluded.
    ///
    /// # Formula
    /// Sum over nodes of the product of the rates along their path. Exact for
    /// rates that do not depend on which path was accepted, as averages over
    /// text are taken to be.
    pub fn expected_accepted_length(&self, rates: &AcceptanceRates) -> f64 {
        specgap_number::distribution::compensated_sum(self.paths.iter().map(|path| {
            let ranks = path.iter().enumerate();
            ranks
                .map(|(depth, &rank)| rates.rate(depth, rank))
                .product::<f64>()
        }))
    }

    /// Sequoia's form. O(nodes^2) for the mask.
    pub fn sequoia(&self) -> SequoiaGrowMap {
        let shape = self.shape();
        let size = shape.parent.len();
        let levels = vec![Vec::new(); shape.levels() + 1];
        let mut map = SequoiaGrowMap {
            roots: levels.clone(),
            branches: levels,
            successors: vec![Vec::new(); size],
            mask: vec![vec![0; size]; size],
            depth: shape.depth,
            size,
        };
        for (node, &parent) in shape.parent.iter().enumerate() {
            // The root is its own parent, and no child.
            if node > 0 {
                map.successors[parent].push(node);
            }
            map.mask[node] = map.mask[parent].clone();
            map.mask[node][node] = 1;
            map.roots[map.depth[node]].push(node);
            map.branches[map.depth[node]].push(shape.children[node]);
        }
        map
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_forms_agree() {
        let tree = DraftTree::new(vec![
            vec![0, 0],
            vec![1],
            vec![0],
            vec![1, 0],
            vec![0, 1],
            vec![0, 0, 0],
        ])
        .unwrap();
        assert_eq!(tree.paths()[0..3], [vec![0], vec![1], vec![0, 0]]);
        assert_eq!((tree.len(), tree.depth()), (6, 3));
        let shape = tree.shape();
        assert_eq!(shape.parent, [0, 0, 0, 1, 1, 2, 3]);
        assert_eq!(shape.rank, [0, 0, 1, 0, 1, 0, 0]);
        assert_eq!(shape.children, [2, 2, 1, 1, 0, 0, 0]);
        assert_eq!(
            [0, 1, 2, 3].map(|depth| shape.nodes_to(depth)),
            [0, 2, 5, 6]
        );
        let map = tree.sequoia();
        assert_eq!(map.roots, [vec![0], vec![1, 2], vec![3, 4, 5], vec![6]]);
        assert_eq!(map.branches, [vec![2], vec![2, 1], vec![1, 0, 0], vec![0]]);
        assert_eq!(map.depth, [0, 1, 1, 2, 2, 2, 3]);
        assert_eq!(map.mask[6], [1, 1, 0, 1, 0, 0, 1]);
        assert_eq!(map.mask[5], [1, 0, 1, 0, 0, 1, 0]);
        let text = serde_json::to_string(&map).unwrap();
        assert!(text.contains("\"Successors\":[[1,2],[3,4],[5],[6],[],[],[]]"));
        let none = DraftTree::new(Vec::new()).unwrap();
        assert!(none.is_empty() && none.sequoia().branches == [vec![0]]);
    }

    #[test]
    fn malformed_lists_are_refused_with_the_cure() {
        let message = |paths: Vec<Vec<usize>>| DraftTree::new(paths).unwrap_err().to_string();
        assert!(message(vec![vec![]]).starts_with("path 0 is empty"));
        assert!(message(vec![vec![0], vec![0]]).contains("listed twice"));
        assert_eq!(
            message(vec![vec![0], vec![1, 0]]),
            "path [1, 0] needs [1], which is not listed; add it"
        );
        assert_eq!(
            message(vec![vec![0], vec![2]]),
            "path [2] needs [1], which is not listed; add it"
        );
        assert!(matches!(
            AcceptanceRates::new(vec![vec![0.5, f64::NAN]]),
            Err(TopologyError::Rate(_, 1, _))
        ));
        assert!(matches!(
            AcceptanceRates::new(vec![vec![0.5, 0.6]]),
            Err(TopologyError::Sum(0, _))
        ));
        assert_eq!(
            AcceptanceRates::new(Vec::new()),
            Err(TopologyError::NoRates)
        );
    }
}
