//! A verifier that attains the block optimum.

use super::law::{Attains, BlockEntry, BlockVerifier, Outcomes, block_entry};
use super::transport::BlockTransport;
use num_bigint::BigUint;
use num_traits::Zero;
use specgap_core::tree::{Node, TokenTree};
use specgap_number::distribution::{Rational, token_id};
use specgap_number::number::{Number, normalised};
use std::collections::BTreeMap;

/// The optimal coupling as a verifier: `E[tau]` = the block optimum, losslessly.
///
/// # Formula
/// Given the set S of distinct draft blocks, a target block y is drawn from
/// C[y, S]/D(S); its first tau(y, S) tokens are accepted drafts, the next one is
/// the corrected token. The rest of y need not be remembered: behind a prefix
/// x^t the later tokens up to position L follow the law of y_{t+1} given that
/// y^t = x^t and tau < t, just as greedy block verification modifies the target
/// of its next iteration.
///
/// It shows that the block optimum is not only a bound. It needs the whole
/// coupling, so it is for small trees.
#[derive(Clone, Debug)]
pub struct BlockOptimal<T> {
    drafts: usize,
    /// By set: target blocks with their conditional probabilities and tau.
    choices: BTreeMap<Vec<u32>, Vec<Choice<T>>>,
    /// By prefix x^t, t in 0..=L: mass that outputs it and stopped before x^{t-1},
    /// so that x_t is neither an accepted nor a corrected token.
    stopped: Vec<Vec<T>>,
}

#[derive(Clone, Debug)]
struct Choice<T> {
    block: usize,
    shared: usize,
    probability: T,
}

impl<T: Number> BlockOptimal<T> {
    /// Solves the transport for `drafts` blocks; `None` if the exact optimum is out of reach
    /// ([`super::transport::MAX_EXACT_PAIRS`]).
    pub fn new(tree: &TokenTree<Rational>, drafts: usize) -> Option<Self> {
        let transport = BlockTransport::new(tree, drafts)?;
        let plan = transport.solve();
        transport.check(&plan).ok()?;
        let length = tree.length();
        let mut choices = BTreeMap::new();
        let mut stopped: Vec<Vec<BigUint>> = (0..=length)
            .map(|depth| vec![BigUint::zero(); tree.width(depth)])
            .collect();
        let mut total = BigUint::zero();
        for (set, row) in plan.mass.iter().enumerate() {
            let supply: BigUint = row.iter().sum();
            if supply.is_zero() {
                continue;
            }
            total += &supply;
            let mut given = Vec::new();
            for (block, mass) in row.iter().enumerate().filter(|(_, mass)| !mass.is_zero()) {
                let shared = usize::try_from(transport.shared(set, block)).unwrap_or(0);
                let leaf = tree.leaf(block);
                for (depth, layer) in stopped.iter_mut().enumerate().skip(shared + 2) {
                    layer[tree.ancestor(leaf, depth).index] += mass;
                }
                given.push(Choice {
                    block,
                    shared,
                    probability: T::fraction(mass, &supply),
                });
            }
            choices.insert(transport.sets().set(set).to_vec(), given);
        }
        let stopped = stopped
            .iter()
            .map(|layer| layer.iter().map(|mass| T::fraction(mass, &total)).collect())
            .collect();
        Some(Self {
            drafts,
            choices,
            stopped,
        })
    }
}

impl<T: Number> BlockVerifier<T> for BlockOptimal<T> {
    fn drafts(&self) -> usize {
        self.drafts
    }

    fn verify(&self, tree: &TokenTree<T>, blocks: &[usize], outcomes: &mut Outcomes<'_, T>) {
        let mut set: Vec<u32> = blocks.iter().map(|&block| token_id(block)).collect();
        set.sort_unstable();
        set.dedup();
        for choice in self.choices.get(&set).into_iter().flatten() {
            let leaf = tree.leaf(choice.block);
            let accepted = tree.ancestor(leaf, choice.shared);
            if choice.shared == tree.length() {
                outcomes.stop(accepted, &choice.probability, tree.target_next(leaf));
                continue;
            }
            let mut next = vec![T::zero(); tree.vocab()];
            next[tree.token_at(leaf, choice.shared)] = T::one();
            outcomes.stop(accepted, &choice.probability, Some(&next));
        }
    }

    fn next_target(&self, tree: &TokenTree<T>, prefix: Node) -> Option<Vec<T>> {
        let layer = self.stopped.get(prefix.depth + 1)?;
        let children = prefix.index * tree.vocab()..(prefix.index + 1) * tree.vocab();
        normalised(layer.get(children)?)
    }
}

pub(super) const ENTRY: BlockEntry = BlockEntry {
    attains: Attains::Optimum,
    ..block_entry!(BLOCK_OPTIMAL, |problem, drafts| {
        let tree = TokenTree::<Rational>::new(problem);
        Some(Box::new(BlockOptimal::new(&tree, drafts)?))
    })
};
