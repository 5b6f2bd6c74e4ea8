//! Select one path among K, then verify that one.

use super::law::{BlockEntry, BlockVerifier, Outcomes, block_entry, going_on};
use super::{Block, GreedyBlock};
use num_bigint::BigUint;
use specgap_core::optimum::flow::{self, Flow, SolvedFlow};
use specgap_core::optimum::{Capacity, Instance};
use specgap_core::problem::{BlockProblem, Problem};
use specgap_core::scheme::WithReplacement;
use specgap_core::tree::{Node, TokenTree};
use specgap_number::distribution::{Rational, Target, token_id};
use specgap_number::number::{Number, RunningSum};
use specgap_plan::even_selection;
use std::collections::BTreeMap;

/// What verifies the selected path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelectedRule {
    /// [`GreedyBlock`]: the most tokens in one round; the targets of the rest of the
    /// span change.
    Greedy,
    /// [`Block`]: later targets stay as they are.
    Block,
}

/// Selects a path level by level, by a plan of one position, and verifies it as if it were
/// the only draft.
///
/// # Rule
/// At prefix x of the selected path, m of the K drafts agree with it. Their next tokens are
/// m i.i.d. draws from q(.|x). An optimal plan for (p(.|x), q(.|x), m) gives all the mass of
/// every set of tokens to its tokens; the next token of the selected path is drawn by it. Of
/// the optimal plans it is the one whose selection law s is as even against p as any can be
/// ([`even_selection`]): it makes the sum of min(c p, s) the largest for every c at once.
/// So the selected path is one draw from a law s that is known: with `a_m(x)` the probability
/// that x is selected and m drafts agree with it,
///
/// ```text
/// a_m'(xy) = sum over m of a_m(x) P(y is selected, m' of the m have it),   s(x) = sum of a_m(x).
/// ```
///
/// What verifies one draft of law s then verifies it. With [`SelectedRule::Greedy`],
/// `E[tau]` is the sum of min(p(x), s(x)) over all prefixes. That is at least what
/// [`SpecTr`](super::SpecTr) accepts with the same plans: SpecTr is a coupling of the target
/// with the same selected path, and no coupling of the two shares more.
///
/// # Exactness
/// Lossless, because single-draft verification is, whatever the law of its draft: with
/// [`SelectedRule::Greedy`] over the block, given that the next round's targets are those
/// of [`BlockVerifier::next_target`]; with [`SelectedRule::Block`] without any change of
/// later targets.
///
/// # Complexity
/// A maximum flow for every prefix and number of drafts that agree with it. For small trees.
///
/// # Source
/// This crate's; `docs/theory/block-optimum.md`, Theorem 4, says why nothing is lost by selecting
/// first.
#[derive(Clone, Debug)]
pub struct Select<T> {
    rule: SelectedRule,
    drafts: usize,
    steps: BTreeMap<(Node, usize), Step<T>>,
    /// The problem with s for q.
    selected: TokenTree<T>,
    by_token: T,
}

/// By set of distinct tokens: with what probability each is selected.
type Step<T> = BTreeMap<Vec<u32>, Vec<(usize, T)>>;

impl<T: Number> Select<T> {
    /// The rule for `drafts` i.i.d. paths of a problem.
    pub fn new(problem: &BlockProblem, rule: SelectedRule, drafts: usize) -> Self {
        let tree = TokenTree::<T>::new(problem);
        let mut steps = BTreeMap::new();
        // a_m(x), by number of drafts that agree, m = 1..K.
        let mut agreeing = vec![vec![T::zero(); drafts]];
        agreeing[0][drafts - 1] = T::one();
        // The same of drafts that are accepted one by one.
        let mut accepted = agreeing.clone();
        let mut by_token = T::Sum::default();
        let mut layers = vec![vec![T::one()]];
        for depth in 0..tree.length() {
            let mut below = vec![vec![T::Sum::default(); drafts]; tree.width(depth + 1)];
            let mut kept_below = below.clone();
            for (index, masses) in agreeing.iter().enumerate() {
                let node = Node { depth, index };
                for (before, mass) in (1..).zip(masses) {
                    if mass.is_nil() {
                        continue;
                    }
                    let step = plan(problem, &tree, node, before).unwrap_or_default();
                    let counts = selected_counts(&step, tree.draft_next(node), before);
                    let mut selected = vec![T::zero(); tree.vocab()];
                    for ((token, _), share) in &counts {
                        selected[*token].gain(share);
                    }
                    let target = tree.target_next(node);
                    let kept = &accepted[index][before - 1];
                    for ((token, after), share) in counts {
                        let child = tree.child(node, token);
                        below[child.index][after - 1].add(&mass.times(&share));
                        // min(1, p/s) of what is selected is accepted.
                        let p = target.map_or_else(T::zero, |target| target[token].clone());
                        let keep = p.smaller(&selected[token]).over(&selected[token]);
                        let kept = kept.times(&share).times(&keep);
                        kept_below[child.index][after - 1].add(&kept);
                    }
                    steps.insert((node, before), step);
                }
            }
            let row = |sums: &Vec<T::Sum>| sums.iter().map(RunningSum::value).collect();
            let values = |sums: &[Vec<T::Sum>]| sums.iter().map(row).collect::<Vec<Vec<T>>>();
            (agreeing, accepted) = (values(&below), values(&kept_below));
            for mass in accepted.iter().flatten() {
                by_token.add(mass);
            }
            layers.push(agreeing.iter().map(|masses| T::total(masses)).collect());
        }
        Self {
            rule,
            drafts,
            steps,
            selected: tree.with_draft(layers),
            by_token: by_token.value(),
        }
    }

    /// `E[tau]` of [`SpecTr`](super::SpecTr) with the same plans: the selected token is accepted
    /// with probability min(1, p/s), s being its law at that prefix. At most what
    /// [`SelectedRule::Greedy`] accepts.
    pub fn token_by_token(&self) -> &T {
        &self.by_token
    }

    /// The target with the law of the selected path as its draft.
    pub fn selected(&self) -> &TokenTree<T> {
        &self.selected
    }

    fn single(&self) -> &dyn BlockVerifier<T> {
        match self.rule {
            SelectedRule::Greedy => &GreedyBlock,
            SelectedRule::Block => &Block,
        }
    }

    fn descend(&self, node: Node, agreeing: &[usize], reached: &T, outcomes: &mut Outcomes<'_, T>) {
        let tree = &self.selected;
        if node.depth == tree.length() {
            let mut outcomes = outcomes.given(reached);
            self.single().verify(tree, &[node.index], &mut outcomes);
            return;
        }
        let token_of = |block: usize| tree.token_at(tree.leaf(block), node.depth);
        let mut set: Vec<u32> = agreeing.iter().map(|&b| token_id(token_of(b))).collect();
        set.sort_unstable();
        set.dedup();
        let step = self.steps.get(&(node, agreeing.len()));
        let shares = step.and_then(|step| step.get(&set));
        for (token, share) in shares.into_iter().flatten() {
            let agreeing = going_on(tree, (node, *token), agreeing);
            let reached = reached.times(share);
            self.descend(tree.child(node, *token), &agreeing, &reached, outcomes);
        }
    }
}

impl<T: Number> BlockVerifier<T> for Select<T> {
    fn drafts(&self) -> usize {
        self.drafts
    }

    fn verify(&self, _: &TokenTree<T>, blocks: &[usize], outcomes: &mut Outcomes<'_, T>) {
        self.descend(Node::ROOT, blocks, &T::one(), outcomes);
    }

    fn next_target(&self, _: &TokenTree<T>, prefix: Node) -> Option<Vec<T>> {
        self.single().next_target(&self.selected, prefix)
    }
}

/// Plans how the sets of m draws are handed out at best; `None` cannot happen on a validated
/// problem.
fn plan<T: Number>(
    problem: &BlockProblem,
    tree: &TokenTree<T>,
    node: Node,
    drafts: usize,
) -> Option<Step<T>> {
    let prefix = tree.tokens(node);
    let draft = problem.draft().get(&prefix)?.clone();
    let (p, q) = (problem.target().get(&prefix)?, Rational::row(&draft));
    // All of it can be given to its tokens, so that a plan gives exactly that.
    let even = even_selection(&Rational::row(p), &q, drafts);
    let target = Target::from_rationals(even).ok()?;
    let scheme = WithReplacement::new(draft, drafts);
    let position = Problem::new("position", target, scheme).ok()?;
    Some(match flow::solve(&position) {
        SolvedFlow::Native(instance, flow) => shares(&instance, &flow),
        SolvedFlow::Big(instance, flow) => shares(&instance, &flow),
    })
}

fn shares<T: Number, C: Capacity>(instance: &Instance<C>, flow: &Flow<C>) -> Step<T> {
    let mut step = BTreeMap::new();
    for (set, tokens) in instance.sets.iter().enumerate() {
        let supply = instance.supply[set].to_big();
        let given = instance.sets.span(set).map(|entry| &flow.given[entry]);
        let given = tokens
            .iter()
            .zip(given)
            .filter(|(_, given)| !given.is_nil());
        let shares = given.map(|(&token, given)| {
            let share = T::fraction(&given.to_big(), &supply);
            (token as usize, share)
        });
        step.insert(tokens.to_vec(), shares.collect());
    }
    step
}

/// P(y is selected and m' of the m draws are y), by y and m'.
///
/// The draws make up a set S with y in it: y comes m' times, in one of C(m, m') ways, and the
/// other m - m' draws take every other token of S at least once.
fn selected_counts<T: Number>(
    step: &Step<T>,
    q: &[T],
    drafts: usize,
) -> BTreeMap<(usize, usize), T> {
    let mut counts: BTreeMap<(usize, usize), T::Sum> = BTreeMap::new();
    for (set, shares) in step {
        for (token, share) in shares {
            let others = set.iter().map(|&other| other as usize);
            let others = others.filter(|other| other != token).map(|other| &q[other]);
            let others: Vec<&T> = others.collect();
            for after in 1..=drafts - others.len() {
                let chance = ways::<T>(drafts, after)
                    .times(&q[*token].power(after))
                    .times(&covering(&others, drafts - after))
                    .times(share);
                counts.entry((*token, after)).or_default().add(&chance);
            }
        }
    }
    let counts = counts.into_iter();
    counts.map(|(key, sum)| (key, sum.value())).collect()
}

/// Sum over tuples of `draws` entries that contain each of `masses` at least once, of the
/// product of their masses: a recursion on the number of times that the first comes, so
/// that nothing is subtracted.
fn covering<T: Number>(masses: &[&T], draws: usize) -> T {
    let Some((first, rest)) = masses.split_first() else {
        return if draws == 0 { T::one() } else { T::zero() };
    };
    let mut sum = T::zero();
    for times in 1..=draws.saturating_sub(rest.len()) {
        let here = ways::<T>(draws, times).times(&first.power(times));
        sum.gain(&here.times(&covering(rest, draws - times)));
    }
    sum
}

/// C(count, size).
fn ways<T: Number>(count: usize, size: usize) -> T {
    let one = BigUint::from(1u32);
    let ways = (0..size).fold(one.clone(), |ways, i| ways * (count - i) / (i + 1));
    T::fraction(&ways, &one)
}

const EVEN: Option<&str> = Some("the most even of the optimal plans at each position");

pub(super) const GREEDY_BLOCK: BlockEntry = BlockEntry {
    note: EVEN,
    ..block_entry!(SELECT_GREEDY_BLOCK, |problem, drafts| {
        Some(Box::new(Select::new(problem, SelectedRule::Greedy, drafts)))
    })
};

pub(super) const BLOCK: BlockEntry = BlockEntry {
    note: EVEN,
    ..block_entry!(SELECT_BLOCK, |problem, drafts| {
        Some(Box::new(Select::new(problem, SelectedRule::Block, drafts)))
    })
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::level_sets::tests::random_trees;
    use crate::block::{output_law, single_draft_optimum};

    /// The claim `select-beats-spectr` holds it against the optimum and SpecTr.
    #[test]
    fn accepts_what_its_law_says() {
        for (vocab, length, drafts) in [(2, 2, 2), (3, 2, 2), (2, 3, 2), (2, 2, 3)] {
            for (problem, tree) in random_trees(3, 8, [vocab, length]) {
                let select = |rule| Select::<Rational>::new(&problem, rule, drafts);
                let greedy = select(SelectedRule::Greedy);
                let accepted = output_law(&tree, &greedy).expected_accepted_length;
                assert_eq!(accepted, single_draft_optimum(greedy.selected()));
                let law = output_law(&tree, &select(SelectedRule::Block));
                assert!(law.total_variation.is_nil() && law.undefined_mass.is_nil());
                assert!(law.expected_accepted_length <= accepted);
            }
        }
    }

    #[test]
    fn one_path_is_selected_as_it_is() {
        let (problem, tree) = random_trees(4, 1, [3, 2]).next().unwrap();
        let select = Select::<Rational>::new(&problem, SelectedRule::Greedy, 1);
        assert_eq!(select.selected().draft_layer(2), tree.draft_layer(2));
    }
}
