//! Several rounds: a text put out round by round, by enumeration.
//!
//! One round's `E[tau]` is not all that counts. [`GreedyBlock`](super::GreedyBlock) accepts
//! most in a round and changes the targets of what is left of its span, so that the next
//! round's drafts fit less well; [`Block`](super::Block) changes nothing. Here a text of N
//! tokens is decoded from its first to its last, the change is carried from round to round,
//! and what comes out is compared with the target as a whole.

use super::BlockRule;
use super::law::round_ends;
use specgap_core::problem::BlockProblem;
use specgap_core::tree::{Node, TokenTree};
use specgap_number::distribution::{Rational, Target};
use specgap_number::number::Number;
use std::collections::BTreeMap;

/// What several rounds do to a text of N tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct SeveralRounds {
    /// The law of the text, V^N probabilities.
    pub strings: Vec<Rational>,
    /// Total variation between it and the target's, text that is not defined counting as text
    /// that the target never writes.
    pub total_variation: Rational,
    /// Rounds, or target calls, in expectation.
    pub rounds: Rational,
}

/// Whether a round tells the next one how it changed the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The targets of the rest of its span are those of
    /// [`BlockVerifier::next_target`](super::BlockVerifier::next_target).
    Carried,
    /// They are the model's own, whatever the verifier asks for.
    Forgotten,
}

/// Rows of the target that a round changed, by whole prefix.
type Changed = BTreeMap<Vec<u32>, Vec<Rational>>;

/// Decodes the texts of a problem whose trees are N tokens deep, in rounds of `drafts` i.i.d.
/// paths of `length` tokens, or of as many as are left. `None` if the verifier cannot be built
/// exactly.
///
/// # Exactness
/// Exact. The states between rounds are prefixes with changed rows; those that are equal are
/// one.
///
/// # Complexity
/// A round's enumeration for every state, V^(L K) tuples each: for a handful of tokens.
///
/// # Example
/// ```
/// use specgap_exact::block::{BlockRule, Change, several_rounds};
/// use specgap_number::distribution::{Draft, Rational, Target, ratio};
/// use specgap_core::problem::BlockProblem;
/// use std::collections::BTreeMap;
///
/// let (mut target, mut draft) = (BTreeMap::new(), BTreeMap::new());
/// for prefix in ["", "0", "1"] {
///     target.insert(prefix.to_owned(), Target::new(&[0.25, 0.75])?);
///     draft.insert(prefix.to_owned(), Draft::new(&[0.5, 0.5])?);
/// }
/// let texts = BlockProblem::new("two tokens".to_owned(), 2, 2, 1, target, draft, None)?;
/// let rounds = several_rounds(&texts, 1, 1, BlockRule::TOKEN, Change::Carried)
///     .ok_or("no exact law")?;
/// // A draft is accepted with 3/4, and then the second token is the target's own.
/// assert_eq!(rounds.rounds, ratio(&5u32.into(), &4u32.into()));
/// assert_eq!(rounds.total_variation, Rational::default());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn several_rounds(
    problem: &BlockProblem,
    length: usize,
    drafts: usize,
    verifier: BlockRule,
    change: Change,
) -> Option<SeveralRounds> {
    let (vocab, total) = (problem.vocab(), problem.length());
    let mut states = vec![BTreeMap::<(Vec<u32>, Changed), Rational>::new(); total + 1];
    states
        .first_mut()?
        .insert(Default::default(), Rational::one());
    let mut rounds = Rational::zero();
    for written in 0..total {
        for ((prefix, changed), mass) in std::mem::take(states.get_mut(written)?) {
            rounds.gain(&mass);
            let span = length.min(total - written);
            let own = behind(problem, &prefix, &changed, span)?;
            let tree = TokenTree::<Rational>::new(&own);
            let rule = (verifier.entry().fractions)(&own, drafts)?;
            let ends = round_ends(&tree, rule.as_ref());
            for (node, share) in ends.stopped.into_iter().chain(ends.accepted) {
                let mut next = Changed::new();
                let inside = match change {
                    Change::Carried => below(vocab, node, span),
                    Change::Forgotten => Vec::new(),
                };
                for inner in inside {
                    let Some(row) = rule.next_target(&tree, inner) else {
                        continue;
                    };
                    let whole = [prefix.as_slice(), &tree.tokens(inner)].concat();
                    let model = problem.target().get(&whole)?;
                    if row != Rational::row(model) {
                        next.insert(whole, row);
                    }
                }
                let longer = [prefix.as_slice(), &tree.tokens(node)].concat();
                let state = states.get_mut(longer.len())?.entry((longer, next));
                *state.or_default() += &mass * share;
            }
        }
    }
    let mut strings = vec![Rational::zero(); vocab.pow(u32::try_from(total).ok()?)];
    for ((text, _), mass) in states.pop()? {
        let index = text
            .iter()
            .fold(0, |index, &token| index * vocab + token as usize);
        strings.get_mut(index)?.gain(&mass);
    }
    let whole = TokenTree::<Rational>::new(problem);
    let missing = whole.target_layer(total).iter().zip(&strings);
    let missing: Vec<Rational> = missing.map(|(p, made)| p.excess_over(made)).collect();
    Some(SeveralRounds {
        total_variation: Rational::total(&missing),
        strings,
        rounds,
    })
}

/// A node and all below it that are less than `span` deep.
fn below(vocab: usize, node: Node, span: usize) -> Vec<Node> {
    let mut all = Vec::new();
    let mut layer = vec![node.index];
    for depth in node.depth..span {
        all.extend(layer.iter().map(|&index| Node { depth, index }));
        let below = |&index: &usize| index * vocab..(index + 1) * vocab;
        layer = layer.iter().flat_map(below).collect();
    }
    all
}

/// The problem of one round behind a prefix, with rows that the round before changed.
fn behind(
    problem: &BlockProblem,
    prefix: &[u32],
    changed: &Changed,
    span: usize,
) -> Option<BlockProblem> {
    let rows = |own: &[u32]| {
        let whole = [prefix, own].concat();
        if whole.len() >= problem.length() {
            // The text ends here.
            return (None, None);
        }
        let target = match changed.get(&whole) {
            Some(row) => Target::from_rationals(row.clone()).ok(),
            None => problem.target().get(&whole).cloned(),
        };
        let draft = problem.draft().get(&whole).filter(|_| own.len() < span);
        (target, draft.cloned())
    };
    BlockProblem::by_prefix("one round", problem.vocab(), span, rows).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::random_problem::random_problem;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use specgap_core::rounds::greedy_block_starts;

    /// Rounds of greedy blocks, replayed along every text of the target.
    fn replayed(problem: &BlockProblem, most: usize) -> Rational {
        let (tree, vocab) = (TokenTree::<Rational>::new(problem), problem.vocab());
        let mut rounds = Rational::zero();
        for (index, mass) in tree.target_layer(problem.length()).iter().enumerate() {
            let depth = problem.length();
            let leaf = Node { depth, index };
            let text = tree.tokens(leaf);
            let rows: Vec<_> = (0..depth)
                .map(|depth| {
                    let node = tree.ancestor(leaf, depth);
                    let p = tree.target_next(node).unwrap();
                    (p, tree.draft_next(node), text[depth] as usize)
                })
                .collect();
            assert!(rows.iter().all(|(p, ..)| p.len() == vocab));
            let starts = greedy_block_starts(&rows, most, &mut |_| ());
            rounds.gain(&mass.times(&Rational::total(&starts)));
        }
        rounds
    }

    /// Texts of four and five tokens, rounds of two and three, in fractions.
    #[test]
    fn several_rounds_write_the_targets_text() {
        use super::super::Attains;
        use BlockRule as Name;
        let mut rng = ChaCha8Rng::seed_from_u64(51);
        let mut means = BTreeMap::new();
        let mut forgotten = 0;
        for (vocab, total, length, drafts, count) in [
            (2, 4, 2, 2, 5),
            (3, 3, 2, 2, 2),
            (2, 5, 3, 2, 1),
            (2, 3, 2, 3, 3),
        ] {
            for _ in 0..count {
                let problem = random_problem(&mut rng, vocab, total);
                let proved = |name: &Name| {
                    let entry = name.entry();
                    entry.is_exact && !entry.is_refuted && entry.attains != Attains::Optimum
                };
                for name in Name::ALL.into_iter().filter(proved) {
                    let drafts = if name.is_single_draft() { 1 } else { drafts };
                    let carried = several_rounds(&problem, length, drafts, name, Change::Carried);
                    let carried = carried.unwrap();
                    assert!(carried.total_variation.is_nil(), "{name}");
                    assert_eq!(Rational::total(&carried.strings), Rational::one());
                    *means.entry(name).or_insert(0.0) += carried.rounds.to_f64();
                    if name == Name::GREEDY_BLOCK {
                        assert_eq!(replayed(&problem, length), carried.rounds);
                    }
                    let changes = name.entry().rule.entry().changes_target;
                    if changes || total == 4 {
                        let other =
                            several_rounds(&problem, length, drafts, name, Change::Forgotten);
                        let other = other.unwrap();
                        if changes {
                            forgotten += usize::from(!other.total_variation.is_nil());
                        } else {
                            assert_eq!(other, carried, "{name}");
                        }
                    }
                }
            }
        }
        // Forgetting the change changes the text.
        assert!(forgotten > 10, "{forgotten}");
        // Over several rounds the block rule on a selected path calls less often than on one.
        assert!(means[&Name::SELECT_BLOCK] < means[&Name::BLOCK]);
        assert!(means[&Name::SELECT_GREEDY_BLOCK] < means[&Name::GREEDY_BLOCK]);
    }
}
