//! What no verifier of drafted trees passes in a round that starts with the target's own law,
//! from trees as they were drawn.

use super::contexts::{group_of, joint};
use super::limits::{Context, Drawn, DrawnNodes, Form, cross_fitted};
use super::means::ByPrompt;
use specgap_statistics::Estimate;

/// A context from which a tree was drafted, and the text that came behind it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DraftedTree {
    /// Its prompt, the unit of intervals.
    pub prompt: usize,
    /// sum of min(p, q) of the rows that predict the first token.
    pub overlap: f64,
    /// q/p at the tokens of the text behind it, as many as the tree may be deep or the text has.
    pub ratios: Vec<f64>,
    /// The parent of each node, behind which it stands; the first node is the root. Nodes
    /// behind a token that ends the text are left out.
    pub parents: Vec<usize>,
    /// p/q of each node's prefix.
    pub weights: Vec<f64>,
    /// E\[tau\] of some verifiers, the same at every context.
    pub accepted: Vec<f64>,
}

/// What no lossless verifier of some drafted trees passes in a round that starts with the
/// target's own law, and what some get of it.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeBound {
    /// No verifier of trees that are drawn so accepts more on average over such contexts, where
    /// rounds start there with the target's own law.
    pub upper_bound: Estimate,
    /// For each verifier: E\[tau\], and how far that is below the bound, paired by prompt.
    pub accepted: Vec<[Estimate; 2]>,
    /// For each half of the prompts and group of contexts, the limit on p/q by length up to
    /// which a prefix is in its set.
    pub limits: Vec<Vec<f64>>,
}

/// J of drafted trees, of any law (`docs/theory/block-optimum.md`, Theorem 1):
///
/// ```text
/// J(H) = sum over l of P(y^l in H_l) + E[ the most nodes of one path of the tree outside ]
/// ```
///
/// A prefix is in its set if p/q of it is up to a limit. Given the context neither term is
/// biased: the first is counted along the text, whose law is p, the second at the tree. Limits
/// are fitted on half of the prompts and reported on the others, both ways.
///
/// Contexts may be those that a decoder's rounds start from: whether a round starts at one is
/// settled before its tree is drawn and before the text goes on. The tree and the text behind
/// it need not be independent.
///
/// `None` from fewer than two prompts, or trees of no levels.
///
/// # Complexity
/// Some hundred passes over all nodes.
pub fn tree_bound(trees: &[DraftedTree]) -> Option<TreeBound> {
    let clusters = trees.iter().map(|tree| tree.prompt + 1).max()?;
    let depth = |tree: &DraftedTree| {
        let mut depths: Vec<usize> = Vec::with_capacity(tree.parents.len());
        for &parent in &tree.parents {
            let depth = depths.get(parent).map_or(0, |depth| depth + 1);
            depths.push(depth);
        }
        depths.into_iter().max().unwrap_or(0).max(tree.ratios.len())
    };
    let length = trees.iter().map(depth).max().filter(|&depth| depth > 0)?;
    let contexts: Vec<Context> = (trees.iter())
        .map(|tree| Context {
            cluster: tree.prompt,
            group: group_of(tree.overlap),
            paths: vec![Drawn::by_target(&joint(tree.ratios.iter().copied()))],
            tree: DrawnNodes::new(&tree.parents, &tree.weights),
        })
        .collect();
    let fitted = cross_fitted(&contexts, clusters, Form::Trees, 1, length)?;
    let bound = fitted.by_prompt.mean();
    let verifiers = trees.iter().map(|tree| tree.accepted.len()).min()?;
    let accepted = (0..verifiers).map(|verifier| {
        let mut sums = ByPrompt::new(clusters);
        for tree in trees {
            let accepted = tree.accepted.get(verifier).copied().unwrap_or(0.0);
            sums.add(tree.prompt, accepted);
        }
        let mean = sums.mean();
        [mean.estimate(), bound.minus(&mean).estimate()]
    });
    Some(TreeBound {
        upper_bound: bound.estimate(),
        accepted: accepted.collect(),
        limits: fitted.limits,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random_problem::random_problem;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use specgap_core::scheme::SchemeName;
    use specgap_core::tree::{DraftTree, Node, TokenTree};
    use specgap_exact::block::DrawnTrees;
    use specgap_number::distribution::Rational;
    use specgap_number::number::Number;

    /// An entry drawn in proportion to its weight.
    fn drawn(rng: &mut ChaCha8Rng, weights: impl Iterator<Item = f64>) -> usize {
        let mut left: f64 = rng.random();
        let mut last = 0;
        for (index, weight) in weights.enumerate() {
            if weight > 0.0 {
                last = index;
                if left < weight {
                    break;
                }
                left -= weight;
            }
        }
        last
    }

    /// Trees and texts of small problems, drawn from their laws: the bound lies at the exact
    /// optimum of any verifier of such trees, or above it.
    #[test]
    fn the_bound_of_drawn_trees_holds_their_exact_optimum() {
        let mut rng = ChaCha8Rng::seed_from_u64(71);
        let (mut sum, mut truth, mut below) = (0.0, 0.0, 0);
        let mut runs = 0;
        for (paths, scheme) in [
            ("[[0],[1],[0,0]]", SchemeName::WITHOUT_REPLACEMENT),
            ("[[0],[1],[0,0],[0,1],[1,0],[1,1]]", SchemeName::HUB),
            ("[[0],[1],[0,0],[0,1],[1,0]]", SchemeName::WITH_REPLACEMENT),
        ] {
            let shape = DraftTree::from_json(paths).unwrap();
            for _ in 0..6 {
                let problem = random_problem(&mut rng, 3, 2);
                let exact = TokenTree::<Rational>::new(&problem);
                let tree = TokenTree::<f64>::new(&problem);
                let law = DrawnTrees::new(&exact, &shape, scheme).unwrap();
                let optimum = law.optimum(&exact).unwrap().unwrap().to_f64();
                let pair = |node: Node| (*tree.target(node), *tree.draft(node));
                let contexts = (0..600).map(|prompt| {
                    let depth = tree.length();
                    let index = drawn(&mut rng, tree.target_layer(depth).iter().copied());
                    let mut before = 1.0;
                    let ratios = (1..=depth).map(|at| {
                        let (p, q) = pair(tree.ancestor(Node { depth, index }, at));
                        let ratio = if before > 0.0 { q / p / before } else { 0.0 };
                        before = q / p;
                        ratio
                    });
                    let ratios = ratios.collect();
                    let masses = law.trees().iter().map(|(_, mass)| mass.to_f64());
                    let (nodes, _) = &law.trees()[drawn(&mut rng, masses)];
                    let parent = |node: &Node| {
                        let above = tree.ancestor(*node, node.depth - 1);
                        let place = nodes.iter().position(|&other| other == above);
                        place.map_or(0, |place| place + 1)
                    };
                    let weights = nodes.iter().map(|&node| {
                        let (p, q) = pair(node);
                        p / q
                    });
                    DraftedTree {
                        prompt,
                        overlap: 0.6,
                        ratios,
                        parents: std::iter::once(0).chain(nodes.iter().map(parent)).collect(),
                        weights: std::iter::once(1.0).chain(weights).collect(),
                        accepted: vec![0.25],
                    }
                });
                let contexts: Vec<DraftedTree> = contexts.collect();
                let bound = tree_bound(&contexts).unwrap();
                let [low, high] = bound.upper_bound.ci95;
                assert!(high > optimum - 0.05, "{scheme}: {bound:?} {optimum}");
                assert!(low < optimum + 0.1, "{scheme}: {bound:?} {optimum}");
                let [accepted, distance] = &bound.accepted[0];
                assert!((accepted.mean - 0.25).abs() < 1e-12);
                let apart = bound.upper_bound.mean - 0.25;
                assert!((distance.mean - apart).abs() < 1e-9);
                below += usize::from(high < optimum);
                sum += bound.upper_bound.mean;
                truth += optimum;
                runs += 1;
            }
        }
        // Of 18 intervals whose upper end is at 97.5% one misses in expectation at most 0.45.
        assert!(below <= 3, "{below}");
        let above = (sum - truth) / f64::from(runs);
        assert!(above > -0.02 && above < 0.06, "{above}");
        // One prompt has no other to be reported on.
        assert_eq!(tree_bound(&[]), None);
        assert_eq!(tree_bound(&[DraftedTree::default()]), None);
    }
}
