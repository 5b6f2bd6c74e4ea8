//! The exact law of what a block verifier outputs.

use specgap_core::problem::BlockProblem;
use specgap_core::rule::RuleName;
use specgap_core::tree::{Node, TokenTree};
use specgap_number::distribution::Rational;
use specgap_number::number::{Number, RunningSum};

/// A rule that turns K independent draft blocks into accepted tokens and one
/// more token.
///
/// A verifier is given as the exact law of its outcome *given the drafts*; no
/// random number is drawn. [`output_law`] sums over all drafts.
pub trait BlockVerifier<T: Number> {
    /// Returns how many draft blocks it looks at: one, unless it says another number.
    fn drafts(&self) -> usize {
        1
    }

    /// Reports every outcome given the draft blocks (indices into layer L, in
    /// the order they were drawn), with probabilities that sum to 1.
    fn verify(&self, tree: &TokenTree<T>, blocks: &[usize], outcomes: &mut Outcomes<'_, T>);

    /// The law of the next token after `prefix` when that token still lies in
    /// the span of this block (`prefix.depth` < L) but behind the token that
    /// followed the accepted ones: the target of the next iteration.
    ///
    /// The target's own conditional, unless the verifier modifies it. `None`
    /// where the modification divides 0 by 0.
    fn next_target(&self, tree: &TokenTree<T>, prefix: Node) -> Option<Vec<T>> {
        tree.target_next(prefix).map(<[T]>::to_vec)
    }
}

/// Where a verifier reports what it does.
#[derive(Debug)]
pub struct Outcomes<'a, T: Number> {
    weight: T,
    tree: &'a TokenTree<T>,
    sums: &'a mut Sums<T>,
}

#[derive(Debug)]
struct Sums<T: Number> {
    accepted_length: Vec<T::Sum>,
    accepted: Vec<T::Sum>,
    emitted: Vec<Vec<T::Sum>>,
    undefined: T::Sum,
}

impl<T: Number> Outcomes<'_, T> {
    /// Returns where outcomes go that happen with probability `share` only.
    pub fn given(&mut self, share: &T) -> Outcomes<'_, T> {
        Outcomes {
            weight: self.weight.times(share),
            tree: self.tree,
            sums: self.sums,
        }
    }

    /// Accepts `prefix` with `probability` and draws the token after it from `next` (V
    /// probabilities); `None` if that law is 0/0.
    ///
    /// After a whole block the next token is the bonus token, and `next` is
    /// not looked at where the target's law of it is not known.
    pub fn stop(&mut self, prefix: Node, probability: &T, next: Option<&[T]>) {
        let mass = self.weight.times(probability);
        if mass.is_nil() {
            return;
        }
        self.sums.accepted_length[prefix.depth].add(&mass);
        if prefix.depth == self.tree.horizon() {
            self.sums.accepted[prefix.index].add(&mass);
            return;
        }
        match next {
            None => self.sums.undefined.add(&mass),
            Some(next) => {
                for (token, share) in next.iter().enumerate() {
                    if !share.is_nil() {
                        let child = self.tree.child(prefix, token);
                        self.sums.emitted[child.depth][child.index].add(&mass.times(share));
                    }
                }
            }
        }
    }
}

/// What a verifier does to the output of one iteration and of the iterations
/// that complete its block.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputLaw<T> {
    /// `E[tau]`: expected number of accepted draft tokens, in [0, L]; the
    /// corrected or bonus token is not counted.
    pub expected_accepted_length: T,
    /// P(tau = t) for t in 0..=L.
    pub accepted_length: Vec<T>,
    /// Probability that the output's law is 0/0 and so not defined.
    pub undefined_mass: T,
    /// How many tokens the output strings have: L + 1, or L where the target
    /// after a whole block is not known.
    pub horizon: usize,
    /// Probability of every string of `horizon` tokens; with
    /// [`Self::undefined_mass`] they sum to 1.
    pub strings: Vec<T>,
    /// Total variation between the law of the output string and the target's,
    /// an undefined output counting as a string that the target never makes.
    pub total_variation: T,
    /// The same for the first token alone.
    pub first_token_total_variation: T,
}

/// Number of K-tuples of blocks of positive probability: what [`output_law`]
/// enumerates.
pub fn tuple_count<T: Number>(tree: &TokenTree<T>, drafts: usize) -> f64 {
    (tree.draft_support().len() as f64).powi(i32::try_from(drafts).unwrap_or(i32::MAX))
}

/// Sums what a verifier does over every tuple of draft blocks.
fn outcomes<T: Number>(tree: &TokenTree<T>, verifier: &dyn BlockVerifier<T>) -> Sums<T> {
    let (length, horizon) = (tree.length(), tree.horizon());
    let layer = |depth| vec![T::Sum::default(); tree.width(depth)];
    let mut sums = Sums::<T> {
        accepted_length: vec![T::Sum::default(); length + 1],
        accepted: layer(length),
        emitted: (0..=horizon).map(layer).collect(),
        undefined: T::Sum::default(),
    };
    let support = tree.draft_support();
    let mut blocks = Vec::with_capacity(verifier.drafts());
    enumerate(tree, verifier, &support, &T::one(), &mut blocks, &mut sums);
    sums
}

/// How one round ends: what it puts out, and with what probability.
pub(super) struct RoundEnds<T> {
    /// Accepted tokens with the one behind them, at most L in all.
    pub stopped: Vec<(Node, T)>,
    /// Whole blocks; with a target that goes on behind them, nothing: `stopped` has them.
    pub accepted: Vec<(Node, T)>,
}

/// The ends of one round of a verifier, by enumerating every tuple of draft blocks.
pub(super) fn round_ends<T: Number>(
    tree: &TokenTree<T>,
    verifier: &dyn BlockVerifier<T>,
) -> RoundEnds<T> {
    let sums = outcomes(tree, verifier);
    let masses = |depth: usize, masses: &[T::Sum]| -> Vec<(Node, T)> {
        let masses = masses.iter().map(RunningSum::value).enumerate();
        let masses = masses.map(|(index, mass)| (Node { depth, index }, mass));
        masses.filter(|(_, mass)| !mass.is_nil()).collect()
    };
    let stopped = sums.emitted.iter().enumerate();
    let stopped = stopped.flat_map(|(depth, layer)| masses(depth, layer));
    RoundEnds {
        stopped: stopped.collect(),
        accepted: match tree.horizon() > tree.length() {
            true => Vec::new(),
            false => masses(tree.length(), &sums.accepted),
        },
    }
}

/// The law of a verifier's output, by enumerating every tuple of draft blocks.
///
/// The output is the accepted tokens, the token after them, and then the tokens
/// of the following iterations up to [`TokenTree::horizon`]. Those follow
/// [`BlockVerifier::next_target`] inside the block's span and the target behind
/// it, which is what a verifier without defect makes of them.
/// [`tuple_count`] calls of the verifier, then O(V^horizon).
///
/// # Example
/// ```
/// use specgap_exact::block::{Token, output_law};
/// use specgap_number::distribution::{Draft, Target};
/// use specgap_core::problem::BlockProblem;
/// use specgap_core::tree::TokenTree;
/// use std::collections::BTreeMap;
/// let target = BTreeMap::from([(String::new(), Target::new(&[0.25, 0.75])?)]);
/// let draft = BTreeMap::from([(String::new(), Draft::new(&[0.5, 0.5])?)]);
/// let problem = BlockProblem::new("one".to_owned(), 2, 1, 1, target, draft, None)?;
/// let law = output_law(&TokenTree::<f64>::new(&problem), &Token);
/// assert_eq!(law.expected_accepted_length, 0.75);
/// assert_eq!(law.strings, [0.25, 0.75]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn output_law<T: Number>(tree: &TokenTree<T>, verifier: &dyn BlockVerifier<T>) -> OutputLaw<T> {
    let (length, horizon) = (tree.length(), tree.horizon());
    let mut sums = outcomes(tree, verifier);
    for depth in 1..horizon {
        let masses = std::mem::take(&mut sums.emitted[depth]);
        for (index, mass) in masses.iter().enumerate() {
            let mass = mass.value();
            if mass.is_nil() {
                continue;
            }
            let node = Node { depth, index };
            let row = match depth < length {
                true => verifier.next_target(tree, node),
                false => tree.target_next(node).map(<[T]>::to_vec),
            };
            let Some(row) = row else {
                sums.undefined.add(&mass);
                continue;
            };
            for (token, share) in row.iter().enumerate() {
                let child = tree.child(node, token);
                sums.emitted[child.depth][child.index].add(&mass.times(share));
            }
        }
    }
    let mut strings = std::mem::take(&mut sums.emitted[horizon]);
    if horizon == length {
        for (string, mass) in strings.iter_mut().zip(&sums.accepted) {
            string.add(&mass.value());
        }
    }
    let strings: Vec<T> = strings.iter().map(RunningSum::value).collect();
    let accepted_length: Vec<T> = sums.accepted_length.iter().map(RunningSum::value).collect();

    let first_width = strings.len() / tree.vocab();
    let first: Vec<T> = strings.chunks(first_width).map(T::total).collect();
    // E[tau] = sum over t >= 1 of P(tau >= t).
    let (mut tail, mut expected) = (T::Sum::default(), T::Sum::default());
    for mass in accepted_length.iter().skip(1).rev() {
        tail.add(mass);
        expected.add(&tail.value());
    }
    OutputLaw {
        expected_accepted_length: expected.value(),
        total_variation: total_variation(&strings, tree.target_layer(horizon)),
        first_token_total_variation: total_variation(&first, tree.target_layer(1)),
        accepted_length,
        undefined_mass: sums.undefined.value(),
        horizon,
        strings,
    }
}

/// Sum of (p - law)+: the law may sum to less than 1, and what is missing is
/// on an outcome that p never has.
fn total_variation<T: Number>(law: &[T], target: &[T]) -> T {
    let mut sum = T::Sum::default();
    for (p, made) in target.iter().zip(law) {
        sum.add(&p.excess_over(made));
    }
    sum.value()
}

/// Blocks that have a token behind a node that all of them pass.
pub(super) fn going_on<T: Number>(
    tree: &TokenTree<T>,
    (node, token): (Node, usize),
    blocks: &[usize],
) -> Vec<usize> {
    let has = |&block: &usize| tree.token_at(tree.leaf(block), node.depth) == token;
    blocks.iter().copied().filter(has).collect()
}

fn enumerate<T: Number>(
    tree: &TokenTree<T>,
    verifier: &dyn BlockVerifier<T>,
    support: &[usize],
    weight: &T,
    blocks: &mut Vec<usize>,
    sums: &mut Sums<T>,
) {
    if blocks.len() == verifier.drafts() {
        let mut outcomes = Outcomes {
            weight: weight.clone(),
            tree,
            sums,
        };
        verifier.verify(tree, blocks, &mut outcomes);
        return;
    }
    for &block in support {
        let weight = weight.times(&tree.draft_layer(tree.length())[block]);
        if weight.is_nil() {
            continue;
        }
        blocks.push(block);
        enumerate(tree, verifier, support, &weight, blocks, sums);
        blocks.pop();
    }
}

/// One rule in the table `BLOCK_RULES`: a block verifier is added by its file and its line in the
/// table.
#[derive(Debug)]
pub struct BlockEntry {
    /// The rule, with its names and what it does in one line.
    pub rule: RuleName,
    /// What a reader must know beside the numbers; of a refuted rule, where it is refuted.
    pub note: Option<&'static str>,
    /// Whether it is refuted for two or more drafts: for audit. A run of it branches at every token
    /// of every draft.
    pub is_refuted: bool,
    /// Whether its law is in fractions where the problem is.
    pub is_exact: bool,
    /// What it is proved to attain.
    pub attains: Attains,
    /// The verifier in `f64`.
    pub floats: Build<f64>,
    /// The verifier in fractions.
    pub fractions: Build<Rational>,
}

/// A problem and a number of drafts to a verifier; `None` where that is out of reach.
pub type Build<T> = fn(&BlockProblem, usize) -> Option<Box<dyn BlockVerifier<T>>>;

/// What a rule is proved to attain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attains {
    /// Nothing.
    Nothing,
    /// The optimum of one draft.
    OneDraft,
    /// The block optimum, from which it is made.
    Optimum,
}

/// An entry with no notes, whose verifier is made alike in both arithmetics.
macro_rules! block_entry {
    ($rule:ident, $build:expr) => {
        $crate::block::BlockEntry {
            rule: specgap_core::rule::RuleName::$rule,
            note: None,
            is_refuted: false,
            is_exact: true,
            attains: $crate::block::Attains::Nothing,
            floats: $build,
            fractions: $build,
        }
    };
}

pub(super) use block_entry;
