//! The last of K paths in an order, verified as the only one.

use super::Block;
use super::law::{BlockEntry, BlockVerifier, Outcomes, block_entry};
use specgap_core::tree::{Node, TokenTree};
use specgap_number::number::Number;

/// Greedy multi-path block verification: takes the path that comes last where tokens are ordered by
/// p/q at every prefix, and verifies it by [`Block`] with the law of the path that is taken.
///
/// # Formula
/// With F(< x) the probability that a draft's prefix comes before x, prefix x of the path that is taken has
///
/// ```text
/// s(x) = (F(< x) + q(x))^K - F(< x)^K.
/// ```
///
/// At one position s is the [even selection](specgap_plan::even_selection) before its pieces are
/// joined: at most as even. No plan is solved.
///
/// Lossless as [`Block`] is, whatever the order.
///
/// # Source
/// Thomas, Pal, arXiv 2602.16961, of which the abstract was read and what its public code says of
/// itself; that the order is by p/q is ours.
#[derive(Clone, Debug)]
pub struct Ordered<T> {
    drafts: usize,
    /// The problem with s for q.
    selected: TokenTree<T>,
    /// Which comes when, by block.
    places: Vec<usize>,
}

impl<T: Number> Ordered<T> {
    /// The rule for `drafts` i.i.d. paths of a tree.
    pub fn new(tree: &TokenTree<T>, drafts: usize) -> Self {
        let widths = (0..=tree.length()).map(|depth| tree.width(depth));
        let mut order = Order {
            tree,
            drafts,
            layers: widths.map(|width| vec![T::zero(); width]).collect(),
            places: vec![0; tree.width(tree.length())],
            next: 0,
        };
        order.visit(Node::ROOT, &T::zero());
        Self {
            drafts,
            places: order.places,
            selected: tree.clone().with_draft(order.layers),
        }
    }
}

struct Order<'a, T> {
    tree: &'a TokenTree<T>,
    drafts: usize,
    layers: Vec<Vec<T>>,
    places: Vec<usize>,
    next: usize,
}

impl<T: Number> Order<'_, T> {
    /// Orders what begins with a node, `before` being what comes before it.
    fn visit(&mut self, node: Node, before: &T) {
        let tree = self.tree;
        let mass = tree.draft(node);
        let up_to = before.plus(mass);
        // The difference of powers without a difference.
        let powers = (0..self.drafts).fold(T::zero(), |sum, i| {
            sum.plus(&before.power(i).times(&up_to.power(self.drafts - 1 - i)))
        });
        self.layers[node.depth][node.index] = mass.times(&powers);
        if node.depth == tree.length() {
            self.places[node.index] = self.next;
            self.next += 1;
            return;
        }
        let q = tree.draft_next(node);
        let mut tokens: Vec<usize> = (0..tree.vocab()).filter(|&x| !q[x].is_nil()).collect();
        if let Some(p) = tree.target_next(node) {
            let ratio = |x: usize| p[x].over(&q[x]);
            tokens.sort_by(|&a, &b| {
                let order = ratio(a).partial_cmp(&ratio(b));
                order.unwrap_or(std::cmp::Ordering::Equal)
            });
        }
        let mut before = before.clone();
        for token in tokens {
            let child = tree.child(node, token);
            self.visit(child, &before);
            before.gain(tree.draft(child));
        }
    }
}

impl<T: Number> BlockVerifier<T> for Ordered<T> {
    fn drafts(&self) -> usize {
        self.drafts
    }

    fn verify(&self, _: &TokenTree<T>, blocks: &[usize], outcomes: &mut Outcomes<'_, T>) {
        let last = blocks.iter().max_by_key(|&&block| self.places[block]);
        Block.verify(
            &self.selected,
            last.map_or(&[], std::slice::from_ref),
            outcomes,
        );
    }
}

pub(super) const ENTRY: BlockEntry = BlockEntry {
    note: Some("paths ordered by p/q at each prefix, the last is taken"),
    ..block_entry!(GBV, |problem, drafts| {
        Some(Box::new(Ordered::new(&TokenTree::new(problem), drafts)))
    })
};
