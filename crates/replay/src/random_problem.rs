//! Random problems of blocks, and all draws and trees, for tests.

use crate::replay::Limits;
pub(crate) use blocks::random_problem;
use specgap_core::tree::{Node, TokenTree};
use specgap_number::number::Number;

#[path = "../../exact/src/block/random_problem.rs"]
mod blocks;

/// Calls with every draw of an entry from each of some laws, and its probability, which is above 0.
pub(crate) fn each_draw<T: Number>(laws: &[Vec<T>], mut visit: impl FnMut(&[usize], &T)) {
    let width = laws[0].len();
    for tuple in 0..width.pow(laws.len() as u32) {
        let drawn: Vec<usize> = (0..laws.len())
            .map(|place| tuple / width.pow(place as u32) % width)
            .collect();
        let each = laws.iter().zip(&drawn);
        let chance = each.fold(T::one(), |chance, (law, &entry)| chance.times(&law[entry]));
        if !chance.is_nil() {
            visit(&drawn, &chance);
        }
    }
}

pub(crate) fn limits(budget: usize, depth: usize, branch: usize) -> Limits {
    Limits {
        budget,
        depth,
        branch,
    }
}

/// A block by its number among all of a tree.
pub(crate) fn leaf<T: Number>(tree: &TokenTree<T>, block: usize) -> Node {
    Node {
        depth: tree.length(),
        index: block,
    }
}

/// All trees of so many nodes, each once.
pub(crate) fn all_trees(nodes: usize, limits: Limits) -> Vec<Vec<Vec<usize>>> {
    let mut trees: Vec<Vec<Vec<usize>>> = vec![Vec::new()];
    for _ in 0..nodes {
        let mut larger = Vec::new();
        for tree in &trees {
            let parents = std::iter::once(Vec::new()).chain(tree.iter().cloned());
            for parent in parents.filter(|parent| parent.len() < limits.depth) {
                let own = tree.iter().filter(|path| path.len() == parent.len() + 1);
                let own = own.filter(|path| path.starts_with(&parent)).count();
                if own < limits.branch {
                    let mut grown = tree.clone();
                    grown.push([parent.as_slice(), &[own]].concat());
                    grown.sort();
                    larger.push(grown);
                }
            }
        }
        larger.sort();
        larger.dedup();
        trees = larger;
    }
    trees
}
