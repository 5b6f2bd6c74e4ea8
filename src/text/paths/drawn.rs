//! What no verifier of drafted trees passes, from trees as they were drawn.

use super::contexts::{group_of, joint};
use super::fitted::{ByPrompt, Context, Drawn, DrawnNodes, Form, cross_fitted};
use crate::gap::Estimate;

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

/// What no lossless verifier of some drafted trees passes, and what some get of it.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeBound {
    /// No verifier of trees that are drawn so accepts more on average over such contexts.
    pub upper_bound: Estimate,
    /// For each verifier: E\[tau\], and how far that is below the bound, paired by prompt.
    pub accepted: Vec<[Estimate; 2]>,
    /// For each half of the prompts and group of contexts, the limit on p/q by length up to
    /// which a prefix is in its set.
    pub limits: Vec<Vec<f64>>,
}

/// J of drafted trees, of any law (`docs/block-optimum.md`, Theorem 1):
///
/// ```text
/// J(H) = sum over l of P(y^l in H_l) + E[ the most nodes of one path of the tree outside ]
/// ```
///
/// A prefix is in its set if p/q of it is up to a limit. Given the context neither term is
/// biased: the first is counted along the text, whose law is p, the second at the tree. Limits
/// are fitted on every other prompt and reported on the others, both ways.
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
    let contexts: Vec<Context> = trees
        .iter()
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
