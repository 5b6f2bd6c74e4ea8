//! Trees that are made for logged texts: the best one within a budget, and that of Sequoia.

use super::data::{ByBudget, GrownTree, SequoiaTree};
use super::grow::{Growth, Limits};
use super::measure::Measurement;
use super::outcome::{Along, Half};
use super::pairs::{Pair, Shares};
use super::siblings::{SlotRates, SlotTrees};
use specgap_core::rounds::ChildShares;
use specgap_core::tree::{AcceptanceRates, DraftTree, best_topology};
use std::collections::BTreeSet;

/// Budgets whose trees are shown, as far as they are within the limit.
const BUDGETS: [usize; 12] = [1, 2, 4, 8, 16, 24, 32, 48, 64, 128, 256, 512];

/// Trees of rising numbers of nodes within one depth.
struct Family {
    /// Each with what a node more than in the one before adds to E\[tau\], and the E\[tau\] that it promises.
    trees: Vec<(DraftTree, f64, f64)>,
    /// They are named trees, and no answer to what more nodes buy.
    is_named: bool,
}

impl Family {
    fn new(trees: impl Iterator<Item = (DraftTree, f64)>) -> Self {
        let mut family = Self {
            trees: Vec::new(),
            is_named: false,
        };
        for (tree, promised) in trees {
            let (nodes, before) =
                (family.trees.last()).map_or((0, 0.0), |one| (one.0.len(), one.2));
            if tree.len() > nodes {
                let last = (promised - before) / (tree.len() - nodes) as f64;
                family.trees.push((tree, last, promised));
            }
        }
        family
    }

    fn grown(growth: &Growth, sizes: &BTreeSet<usize>) -> Self {
        let sizes = sizes.iter().map(|&most| growth.size_within(most));
        let budgets: BTreeSet<usize> = sizes.collect();
        let tree =
            |nodes: usize| Some((growth.tree(nodes).ok()?, growth.gains[..nodes].iter().sum()));
        Self::new(budgets.into_iter().filter_map(tree))
    }

    fn by_slot(trees: &SlotTrees, sizes: &BTreeSet<usize>) -> Self {
        let tree = |&nodes: &usize| Some((trees.tree(nodes).ok()?, trees.value(nodes)));
        Self::new(sizes.iter().filter_map(tree))
    }
}

impl Measurement<'_> {
    pub(super) fn grown(&self, pair: &Pair, shares: &Shares) -> Option<(GrownTree, Along)> {
        if pair.branch == 0 || self.texts.clusters < 2 {
            return None;
        }
        let limits = Limits {
            branch: pair.branch,
            ..self.settings.limits
        };
        let timings = self.settings.timings.as_ref();
        let (mut chosen, mut worth_of_chosen) = (None, f64::NEG_INFINITY);
        let mut sizes = Vec::new();
        for family in self.families(pair, shares, limits) {
            let mut by_budget = Vec::new();
            let mut is_best = false;
            for (tree, last_gain, _) in family.trees {
                let shape = tree.shape();
                let group = self.group(shares, &shape);
                let (Some(here), Some(there)) =
                    (group.accepted(Half::Chooses), group.accepted(Half::Reports))
                else {
                    continue;
                };
                let speeds = timings.map(|timings| {
                    [Half::Chooses, Half::Reports].map(|half| group.speed(half, timings))
                });
                let [speed_here, speed_there] = speeds.unwrap_or([None, None]);
                by_budget.push(ByBudget {
                    nodes: tree.len(),
                    depth: tree.depth(),
                    last_gain,
                    expected_accepted_length_where_chosen: here.mean,
                    expected_accepted_length: there,
                    tokens_per_call: group.tokens_per_call(Half::Reports),
                    speedup: speed_there,
                });
                // A tree that the times do not reach is not chosen by them.
                let speed = speed_here.map(|speed| speed.mean);
                let worth = match timings.is_some() {
                    true => speed,
                    false => Some(group.tokens_per_call(Half::Chooses).mean),
                };
                if let Some(worth) = worth.filter(|&worth| worth > worth_of_chosen) {
                    (worth_of_chosen, is_best) = (worth, true);
                    chosen = Some((tree, speed));
                }
            }
            if !family.is_named && (is_best || sizes.is_empty()) {
                sizes = by_budget;
            }
        }
        let (tree, speedup_where_chosen) = chosen?;
        let shape = tree.shape();
        let group = self.group(shares, &shape);
        let along = group.along(timings);
        let tree = GrownTree {
            scheme: pair.scheme.to_string(),
            verifier: pair.verifier.to_string(),
            limits: [limits.budget, limits.depth, limits.branch],
            chosen_on: self.texts.clusters.div_ceil(2),
            reported_on: self.texts.clusters / 2,
            growmap: tree.sequoia(),
            expected_accepted_length_where_chosen: group.accepted(Half::Chooses)?.mean,
            tokens_per_call_where_chosen: group.tokens_per_call(Half::Chooses).mean,
            expected_accepted_length: group.accepted(Half::Reports)?,
            most_accepted_length: group.most_accepted(Half::Reports),
            tokens_per_call: group.tokens_per_call(Half::Reports),
            speedup_where_chosen,
            speedup: timings.and_then(|timings| group.speed(Half::Reports, timings)),
            by_budget: sizes,
            drawn: group.nodes(Half::Reports, &tree),
            sequoia: (self.sequoia(pair, shares, limits)).filter(|_| pair.levels.is_none()),
            minus_best: None,
            paths: tree.paths().to_vec(),
        };
        Some((tree, along))
    }

    /// Trees that may be best: grown node by node, and by slots where what children get depends on
    /// how many they are; where draft steps cost time, within each depth. And the named trees within the
    /// budget.
    fn families(&self, pair: &Pair, shares: &Shares, limits: Limits) -> Vec<Family> {
        let timings = self.settings.timings.as_ref();
        // Where times have steps trees end before them.
        let knots = timings.into_iter().flat_map(|timings| &timings.verify);
        let knots = knots.map(|pass| pass.tokens.saturating_sub(1));
        let sizes = BUDGETS.into_iter().chain(knots).chain([limits.budget]);
        let sizes: BTreeSet<usize> = sizes
            .filter(|most| (1..=limits.budget).contains(most))
            .collect();
        let least = match timings {
            Some(_) => 1,
            None => limits.depth,
        };
        let within = (least..=limits.depth).map(|depth| Limits { depth, ..limits });
        let is_nested = self.choosing(shares).all(ChildShares::is_nested);
        let all = within
            .clone()
            .filter(|within| is_nested || within.depth == limits.depth);
        let grown =
            all.map(|within| Family::grown(&Growth::new(self.choosing(shares), within), &sizes));
        let mut families: Vec<Family> = grown.collect();
        if !is_nested {
            let rates = SlotRates::new(self.choosing(shares), limits);
            let slots = within.map(|within| Family::by_slot(&rates.best_trees(within), &sizes));
            families.extend(slots);
        }
        let depths = self.texts.depths_or(usize::MAX);
        let depths = depths.min(self.settings.deepest());
        let named = self.settings.trees.iter().map(|one| &one.tree);
        let named = named.filter(|tree| tree.len() <= limits.budget && tree.depth() <= depths);
        let named = named.filter(|tree| pair.takes(&tree.shape()));
        families.push(Family {
            trees: named.map(|tree| (tree.clone(), 0.0, 0.0)).collect(),
            is_named: true,
        });
        families
    }

    pub(super) fn sequoia(
        &self,
        pair: &Pair,
        shares: &Shares,
        limits: Limits,
    ) -> Option<SequoiaTree> {
        let (vector, tree, promised) = self.of_sequoia(shares, limits)?;
        let shape = tree.shape();
        if !pair.takes(&shape) {
            return None;
        }
        let exact = self.group(shares, &shape).accepted(Half::Reports)?;
        let predicted = self.predicted(shares, &tree, Half::Reports);
        Some(SequoiaTree {
            paths: tree.paths().to_vec(),
            vector,
            promised,
            predicted,
            expected_accepted_length: exact,
            ratio: match predicted > 0.0 {
                true => exact.mean / predicted,
                false => 1.0,
            },
        })
    }

    /// By the prompts that choose: the positional vector, the tree of Sequoia's program, and what
    /// it promises.
    pub(super) fn of_sequoia(
        &self,
        shares: &Shares,
        limits: Limits,
    ) -> Option<(Vec<f64>, DraftTree, f64)> {
        let vector = self.vector(shares, limits.branch, Half::Chooses);
        let rates = AcceptanceRates::new(vec![vector.clone()]).ok()?;
        let (tree, promised) = best_topology(&rates, limits).ok()?;
        Some((vector, tree, promised))
    }

    /// Returns what children get along the texts of the prompts that choose.
    pub(super) fn choosing<'s>(
        &self,
        shares: &'s Shares,
    ) -> impl Iterator<Item = &'s ChildShares<f64>> {
        let texts = self.texts.texts.iter().zip(&shares.texts);
        let chooses = texts.filter(|(text, _)| Half::Chooses.has(text.cluster));
        chooses.map(|(_, shares)| shares)
    }

    /// E[tau] as it would be if levels were independent.
    pub(super) fn predicted(&self, shares: &Shares, tree: &DraftTree, half: Half) -> f64 {
        let shape = tree.shape();
        let most = shape.children.iter().copied().max().unwrap_or(0);
        // Of drafts whose rows depend on where a round begins each depth has its own.
        let depths = match self.texts.is_by_depth() {
            true => shape.depth.last().copied().unwrap_or(0).max(1),
            false => 1,
        };
        let vectors: Vec<Vec<Vec<f64>>> = (0..depths)
            .map(|depth| {
                let of = |children: usize| match shape.children.contains(&children) {
                    true => self.vector_at(shares, children, half, depth),
                    false => Vec::new(),
                };
                (0..=most).map(of).collect()
            })
            .collect();
        let mut reached = vec![1.0; shape.parent.len()];
        for node in 1..reached.len() {
            let parent = shape.parent[node];
            let depth = shape.depth[parent].min(depths - 1);
            let vector = &vectors[depth][shape.children[parent]];
            reached[node] = reached[parent] * vector.get(shape.rank[node]).unwrap_or(&0.0);
        }
        reached[1..].iter().sum()
    }

    /// Mean shares of the children of a node with so many.
    pub(super) fn vector(&self, shares: &Shares, children: usize, half: Half) -> Vec<f64> {
        self.vector_at(shares, children, half, 0)
    }

    /// The same of a node that stands so many levels below a round's start.
    fn vector_at(&self, shares: &Shares, children: usize, half: Half, depth: usize) -> Vec<f64> {
        let (mut sums, mut count) = (vec![0.0; children], 0.0);
        for (text, shares) in self.texts.texts.iter().zip(&shares.texts) {
            if !half.has(text.cluster) {
                continue;
            }
            for start in 0..shares.len().saturating_sub(depth) {
                let row = shares.behind(start, depth, children);
                sums.iter_mut().zip(row).for_each(|(a, b)| *a += b);
                count += 1.0;
            }
        }
        sums.iter().map(|sum| sum / f64::max(count, 1.0)).collect()
    }
}
