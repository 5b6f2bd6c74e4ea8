//! Token trees: joint probabilities of all prefixes of a block problem, and
//! draft tree topologies.

mod named;
mod price;
mod sequoia;
mod topology;

pub use named::NAMES;
pub use price::{LEAST_PRICE, PRICE_SCHEMA, Price, PricedRow, Shaped, heaviest};
pub use sequoia::{MAX_WORK, SequoiaError, TopologyLimits, best_topology};
pub use topology::{AcceptanceRates, DraftTree, MAX_NODES, SequoiaGrowMap, Shape, TopologyError};

use crate::problem::{BlockProblem, Conditionals};
use specgap_number::distribution::{Distribution, token_id};
use specgap_number::number::Number;
use std::ops::Deref;

/// A prefix: its length and, among the V^length prefixes of that length, its
/// number when tokens are read as digits, first token first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Node {
    /// Number of tokens.
    pub depth: usize,
    /// Position among the prefixes of this length, in lexicographic order.
    pub index: usize,
}

impl Node {
    /// The empty prefix.
    pub const ROOT: Self = Self { depth: 0, index: 0 };
}

/// All prefixes of at most L tokens with their joint probabilities under the
/// target, `p(x^t)`, and under the draft, `q(x^t)`, and the next-token rows.
///
/// # Shapes
/// Layer t has V^t nodes. Where the problem gives the target's conditionals
/// after *every* whole block, the [`horizon`](Self::horizon) is L + 1, else L.
///
/// # Exactness
/// `TokenTree<Rational>` is exact. In `f64` a joint probability is a product of
/// t rounded factors: relative error at most 3t units of rounding.
///
/// # Example
/// ```
/// use specgap_number::distribution::{Draft, Target};
/// use specgap_core::problem::BlockProblem;
/// use specgap_core::tree::{Node, TokenTree};
/// use std::collections::BTreeMap;
/// let target = BTreeMap::from([(String::new(), Target::new(&[0.25, 0.75])?)]);
/// let draft = BTreeMap::from([(String::new(), Draft::new(&[0.5, 0.5])?)]);
/// let problem = BlockProblem::new("one".to_owned(), 2, 1, 1, target, draft, None)?;
/// let tree = TokenTree::<f64>::new(&problem);
/// assert_eq!(tree.target(tree.child(Node::ROOT, 1)), &0.75);
/// assert_eq!(tree.horizon(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct TokenTree<T> {
    vocab: usize,
    length: usize,
    horizon: usize,
    target: Vec<Vec<T>>,
    draft: Vec<Vec<T>>,
    target_rows: Vec<Vec<T>>,
    draft_rows: Vec<Vec<T>>,
}

impl<T: Number> TokenTree<T> {
    /// Multiplies the conditionals out. O(V^L) numbers.
    pub fn new(problem: &BlockProblem) -> Self {
        let (vocab, length) = (problem.vocab(), problem.length());
        let target_rows = rows(problem.target(), vocab, length + 1);
        let draft_rows = rows(problem.draft(), vocab, length);
        Self {
            vocab,
            length,
            horizon: target_rows.len(),
            target: joints(&target_rows, vocab),
            draft: joints(&draft_rows, vocab),
            target_rows,
            draft_rows,
        }
    }

    /// The same target with another law of drafts: `layers[t]` has q(x^t) for every prefix
    /// of t = 0..=L tokens. Behind a prefix of probability 0 the rows stay as they are.
    pub fn with_draft(mut self, layers: Vec<Vec<T>>) -> Self {
        for (depth, rows) in self.draft_rows.iter_mut().enumerate() {
            for (index, prefix) in layers[depth].iter().enumerate() {
                if prefix.is_nil() {
                    continue;
                }
                let children = index * self.vocab..(index + 1) * self.vocab;
                let joint = layers[depth + 1][children.clone()].iter();
                for (entry, joint) in rows[children].iter_mut().zip(joint) {
                    *entry = joint.over(prefix);
                }
            }
        }
        self.draft = layers;
        self
    }

    /// Vocabulary size V.
    pub fn vocab(&self) -> usize {
        self.vocab
    }

    /// Block length L.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Returns how many tokens of output the target's law is known for: L + 1, or L where the
    /// problem does not give the target after every whole block.
    pub fn horizon(&self) -> usize {
        self.horizon
    }

    /// Number of prefixes of `depth` tokens.
    pub fn width(&self, depth: usize) -> usize {
        self.target[depth].len()
    }

    /// p(prefix), for prefixes of at most `horizon` tokens.
    pub fn target(&self, node: Node) -> &T {
        &self.target[node.depth][node.index]
    }

    /// q(prefix), for prefixes of at most L tokens.
    pub fn draft(&self, node: Node) -> &T {
        &self.draft[node.depth][node.index]
    }

    /// All p(x^t) of one length t, `width(depth)` numbers.
    pub fn target_layer(&self, depth: usize) -> &[T] {
        &self.target[depth]
    }

    /// All q(x^t) of one length t.
    pub fn draft_layer(&self, depth: usize) -> &[T] {
        &self.draft[depth]
    }

    /// p(. | prefix), V numbers; none after a whole block if the horizon is L.
    pub fn target_next(&self, node: Node) -> Option<&[T]> {
        let layer = self.target_rows.get(node.depth)?;
        layer.get(node.index * self.vocab..(node.index + 1) * self.vocab)
    }

    /// q(. | prefix), V numbers, for prefixes of fewer than L tokens.
    pub fn draft_next(&self, node: Node) -> &[T] {
        &self.draft_rows[node.depth][node.index * self.vocab..(node.index + 1) * self.vocab]
    }

    /// The prefix with one more token.
    pub fn child(&self, node: Node, token: usize) -> Node {
        Node {
            depth: node.depth + 1,
            index: node.index * self.vocab + token,
        }
    }

    /// A block of L tokens, by its index in layer L.
    pub fn leaf(&self, index: usize) -> Node {
        Node {
            depth: self.length,
            index,
        }
    }

    /// The first `depth` tokens of a prefix that is at least as long.
    pub fn ancestor(&self, node: Node, depth: usize) -> Node {
        let mut index = node.index;
        for _ in depth..node.depth {
            index /= self.vocab;
        }
        Node { depth, index }
    }

    /// The last token of a prefix.
    pub fn last_token(&self, node: Node) -> usize {
        node.index % self.vocab
    }

    /// The token at a place of a prefix, the first at 0.
    pub fn token_at(&self, node: Node, place: usize) -> usize {
        self.last_token(self.ancestor(node, place + 1))
    }

    /// A prefix's tokens, the first first.
    pub fn tokens(&self, node: Node) -> Vec<u32> {
        (0..node.depth)
            .map(|place| token_id(self.token_at(node, place)))
            .collect()
    }

    /// Number of tokens that two blocks of L tokens share at the front.
    pub fn common_prefix(&self, one: usize, other: usize) -> usize {
        let (mut one, mut other, mut depth) = (one, other, self.length);
        while one != other {
            one /= self.vocab;
            other /= self.vocab;
            depth -= 1;
        }
        depth
    }

    /// The blocks of positive draft probability, by index in layer L.
    pub fn draft_support(&self) -> Vec<usize> {
        (0..self.width(self.length))
            .filter(|&block| !self.draft[self.length][block].is_nil())
            .collect()
    }
}

/// The rows of every layer that is complete, at most `layers` of them.
fn rows<T: Number, D: Deref<Target = Distribution>>(
    conditionals: &Conditionals<D>,
    vocab: usize,
    layers: usize,
) -> Vec<Vec<T>> {
    let mut result: Vec<Vec<T>> = vec![Vec::new(); layers];
    for (prefix, row) in conditionals.iter() {
        // Lexicographic within a layer, so rows arrive in index order.
        if let Some(layer) = result.get_mut(prefix.len()) {
            layer.extend(T::row(row));
        }
    }
    let mut complete = vocab;
    let mut kept = 0;
    while kept < layers && result[kept].len() == complete {
        kept += 1;
        complete *= vocab;
    }
    result.truncate(kept);
    result
}

fn joints<T: Number>(rows: &[Vec<T>], vocab: usize) -> Vec<Vec<T>> {
    let mut layers = vec![vec![T::one()]];
    for (depth, row) in rows.iter().enumerate() {
        let layer = row
            .iter()
            .enumerate()
            .map(|(index, conditional)| layers[depth][index / vocab].times(conditional))
            .collect();
        layers.push(layer);
    }
    layers
}
