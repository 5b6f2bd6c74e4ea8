//! Trees of drafts of any law: what no verifier of them passes in one round, exactly, at small
//! sizes.
//!
//! [`level_sets`](super::level_sets) knows K i.i.d. paths. Engines draft other trees: different
//! children at a node, EAGLE's shapes, SpecHub's pairs. The same duality holds for any law of
//! trees (`docs/theory/block-optimum.md`): the largest `E[tau]` of a coupling is the least, over
//! one set of prefixes a length, of [`DrawnTrees::bound`].

use super::transport::{MAX_EXACT_PAIRS, PlanRefused, largest_coupling};
use specgap_core::scheme::{MadeOf, SchemeName};
use specgap_core::tree::{DraftTree, Node, TokenTree};
use specgap_number::distribution::{Draft, Rational};
use specgap_number::number::Number;
use std::collections::BTreeMap;

/// A law of draft trees: prefixes that are drafted together, the root not among them, and how
/// likely they are. Trees with the same prefixes are one.
#[derive(Clone, Debug)]
pub struct DrawnTrees {
    trees: Vec<(Vec<Node>, Rational)>,
}

/// Trees that are drawn at most.
const MOST_TREES: usize = 20_000;

impl DrawnTrees {
    /// The trees of a shape whose nodes' children are drawn by a scheme, from a problem's draft;
    /// children of different nodes are independent. `None` for schemes of several drafts' rows,
    /// shapes deeper than the problem or that the scheme cannot draw, and more than 20,000
    /// trees.
    /// Exact.
    pub fn new(tree: &TokenTree<Rational>, shape: &DraftTree, scheme: SchemeName) -> Option<Self> {
        let MadeOf::OneDraft(law) = scheme.entry().made_of else {
            return None;
        };
        let shape = shape.shape();
        if shape.depth.last().copied().unwrap_or(0) > tree.length() {
            return None;
        }
        // Nodes of the shape that were drawn, by number, and how likely that is.
        let mut drawn = vec![(vec![(0usize, Node::ROOT)], Rational::one())];
        for parent in 0..shape.parent.len() {
            let children = shape.children[parent];
            if children == 0 {
                continue;
            }
            if !scheme.fits(children) {
                return None;
            }
            let first = (1..shape.parent.len()).find(|&node| shape.parent[node] == parent)?;
            let mut longer: BTreeMap<Vec<(usize, Node)>, Rational> = BTreeMap::new();
            for (nodes, mass) in drawn {
                let Some(&(_, here)) = nodes.iter().find(|&&(number, _)| number == parent) else {
                    // Not drawn: the draft had fewer tokens than children.
                    *longer.entry(nodes).or_default() += mass;
                    continue;
                };
                let draft = Draft::from_rationals(tree.draft_next(here).to_vec()).ok()?;
                law(draft, children).for_each_tuple_exact(&mut |tuple, share| {
                    let below = (first..).zip(tuple);
                    let below =
                        below.map(|(number, &token)| (number, tree.child(here, token as usize)));
                    let nodes = nodes.iter().copied().chain(below).collect();
                    *longer.entry(nodes).or_default() += &mass * share;
                });
                if longer.len() > MOST_TREES {
                    return None;
                }
            }
            drawn = longer.into_iter().collect();
        }
        let mut trees: BTreeMap<Vec<(usize, usize)>, Rational> = BTreeMap::new();
        for (nodes, mass) in drawn.into_iter().filter(|(_, mass)| !mass.is_nil()) {
            let nodes = nodes.iter().skip(1);
            let mut nodes: Vec<_> = nodes.map(|(_, node)| (node.depth, node.index)).collect();
            nodes.sort_unstable();
            nodes.dedup();
            *trees.entry(nodes).or_default() += mass;
        }
        let node = |(depth, index)| Node { depth, index };
        let trees = trees.into_iter();
        let trees = trees.map(|(nodes, mass)| (nodes.into_iter().map(node).collect(), mass));
        let trees = trees.collect();
        Some(Self { trees })
    }

    /// The trees, with their probabilities.
    pub fn trees(&self) -> &[(Vec<Node>, Rational)] {
        &self.trees
    }

    /// The largest `E[tau]` of any lossless verifier of the trees in one round, tau being the
    /// deepest node on the target's path: a transport, checked by its potentials. `None` if there are more than
    /// [`MAX_EXACT_PAIRS`] pairs of tree and block.
    /// Exact.
    ///
    /// # Errors
    /// None but for a defect here: a plan that its potentials do not prove.
    ///
    /// # Example
    /// ```
    /// use specgap_exact::block::DrawnTrees;
    /// use specgap_number::distribution::{Draft, Target, format_rational};
    /// use specgap_core::problem::BlockProblem;
    /// use specgap_core::scheme::SchemeName;
    /// use specgap_core::tree::{DraftTree, TokenTree};
    /// use std::collections::BTreeMap;
    /// let target = BTreeMap::from([(String::new(), Target::new(&[0.5, 0.25, 0.25])?)]);
    /// let draft = BTreeMap::from([(String::new(), Draft::new(&[0.0, 0.25, 0.75])?)]);
    /// let problem = BlockProblem::new("one".to_owned(), 3, 1, 2, target, draft, None)?;
    /// let (tree, pair) = (TokenTree::new(&problem), DraftTree::named("2x1")?);
    /// let trees = DrawnTrees::new(&tree, &pair, SchemeName::WITHOUT_REPLACEMENT).ok_or("too large")?;
    /// // Both tokens that the draft has are drafted always; the target wants one half of the time.
    /// assert_eq!(format_rational(&trees.optimum(&tree).ok_or("too large")??), "1/2");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn optimum(&self, tree: &TokenTree<Rational>) -> Option<Result<Rational, PlanRefused>> {
        let width = tree.width(tree.length());
        if (self.trees.len() * width) as f64 > MAX_EXACT_PAIRS {
            return None;
        }
        let (profits, masses) = self.profiles(tree);
        let blocks = tree.target_layer(tree.length());
        Some(largest_coupling(&profits, [&masses, blocks]))
    }

    /// Counts for each tree the tokens that it has of each block; and the trees' probabilities.
    pub(crate) fn profiles(&self, tree: &TokenTree<Rational>) -> (Vec<Vec<i64>>, Vec<Rational>) {
        let shared = |nodes: &[Node], index: usize| -> i64 {
            let block = tree.leaf(index);
            let on_path = |node: &&Node| tree.ancestor(block, node.depth) == **node;
            let deepest = nodes.iter().filter(on_path).map(|node| node.depth).max();
            deepest.map_or(0, |depth| i64::try_from(depth).unwrap_or(i64::MAX))
        };
        let row = |nodes: &[Node]| -> Vec<i64> {
            let blocks = 0..tree.width(tree.length());
            blocks.map(|block| shared(nodes, block)).collect()
        };
        let trees = self.trees.iter();
        trees
            .map(|(nodes, mass)| (row(nodes), mass.clone()))
            .unzip()
    }

    /// sum over l of P(y^l in `H_l`) + E[the most nodes of one path of the tree that are not in
    /// their set]: at least `E[tau]` of every verifier, whatever the sets are. `inside` says of a
    /// prefix whether it is in its set.
    /// Exact.
    pub fn bound(&self, tree: &TokenTree<Rational>, inside: &dyn Fn(Node) -> bool) -> Rational {
        let mut sum = Rational::zero();
        for depth in 1..=tree.length() {
            for (index, mass) in tree.target_layer(depth).iter().enumerate() {
                if inside(Node { depth, index }) {
                    sum.gain(mass);
                }
            }
        }
        for (nodes, mass) in &self.trees {
            let out = |node: &Node| {
                let path = (1..=node.depth).map(|depth| tree.ancestor(*node, depth));
                path.filter(|&node| !inside(node)).count()
            };
            let most = nodes.iter().map(out).max().unwrap_or(0);
            sum.gain(&mass.times(&Rational::fraction(&most.into(), &1u32.into())));
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::level_sets::tests::random_trees;
    use specgap_core::problem::BlockProblem;
    use specgap_number::distribution::Target;

    /// One child that may be any of 20,000 tokens, and of one more.
    #[test]
    fn more_than_20_000_trees_are_too_many() {
        let shape = DraftTree::named("1x1").unwrap();
        for (vocab, is_made) in [(MOST_TREES, true), (MOST_TREES + 1, false)] {
            let row = vec![Rational::new(1.into(), vocab.into()); vocab];
            let target = Target::from_rationals(row.clone()).unwrap();
            let target = BTreeMap::from([(String::new(), target)]);
            let draft = BTreeMap::from([(String::new(), Draft::from_rationals(row).unwrap())]);
            let flat = String::from("flat");
            let problem = BlockProblem::new(flat, vocab, 1, 1, target, draft, None).unwrap();
            let tree = TokenTree::<Rational>::new(&problem);
            let trees = DrawnTrees::new(&tree, &shape, SchemeName::WITH_REPLACEMENT);
            assert_eq!(trees.is_some(), is_made);
        }
    }

    #[test]
    fn what_cannot_be_drawn_is_none() {
        let (_, tree) = random_trees(62, 1, [2, 2]).next().unwrap();
        let deep = DraftTree::named("2x3").unwrap();
        assert!(DrawnTrees::new(&tree, &deep, SchemeName::WITH_REPLACEMENT).is_none());
        let as_deep = DraftTree::named("2x2").unwrap();
        assert!(DrawnTrees::new(&tree, &as_deep, SchemeName::WITH_REPLACEMENT).is_some());
        // Drafts of a row each.
        assert!(DrawnTrees::new(&tree, &as_deep, SchemeName::PRODUCT).is_none());
        let three = DraftTree::named("3x1").unwrap();
        assert!(DrawnTrees::new(&tree, &three, SchemeName::HUB).is_none());
        // Fewer tokens than children: as many as there are.
        let trees = DrawnTrees::new(&tree, &three, SchemeName::WITHOUT_REPLACEMENT).unwrap();
        assert!(trees.trees().iter().all(|(nodes, _)| nodes.len() <= 2));
    }
}
