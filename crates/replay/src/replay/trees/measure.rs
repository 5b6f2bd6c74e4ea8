//! From texts to a report on trees.

use super::super::ReplayError;
use super::super::advice::tree_changes;
use super::super::between::{RoundBounds, replay_between, replay_between_with};
use super::super::measured::{MeasuredTexts, capture_with, read_measured};
use super::super::position::Rest;
use super::super::read::{Reading, Texts};
use super::data::{GrownTree, ReferenceTree, SlotValues, TREE_SCHEMA, TreeReport, TreeResult};
use super::dynamic::threshold_trees;
use super::from_leaves::{FromLeaves, OfText};
use super::outcome::{Along, Candidate, Group, Half, Rounds};
use super::pairs::{OptimaOf, Pair, Plan, Shares};
use super::settings::{NamedTree, TreeSettings};
use super::values::{RootShares, slot_values};
use crate::replay::tree_definitions;
use rayon::prelude::*;
use specgap_base::setting::for_shell;
use specgap_core::rounds::{ChildShares, TreeReplay, replay_tree};
use specgap_core::rule::RuleName;
use specgap_core::scheme::SchemeName;
use specgap_core::tree::{DraftTree, Shape};
use specgap_log::log::Log;
use specgap_statistics::advice::Assumed;

/// Replays trees along the text of some logs. `command` goes into the report, and `progress`
/// is told of positions as they are read.
///
/// # Errors
/// As [`Texts::read`]; also settings that ask for nothing.
///
/// # Complexity
/// O(N V) for reading and a few passes over a row for each law and verifier, up to the most
/// children that any tree has; then O(N nodes) a tree and O(N budget branch) a best tree.
/// Memory grows by 8 bytes a position for each law, verifier and child.
pub fn measure_trees(
    logs: &[Log],
    settings: &TreeSettings,
    command: &str,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<TreeReport, ReplayError> {
    // No tree is deeper than what the draft's rows tell of.
    let mut settings = settings.clone();
    if let Some(depths) = logs.iter().map(Log::depths).find(|&depths| depths > 1) {
        settings.limits.depth = settings.limits.depth.min(depths);
    }
    let settings = &settings;
    let plan = Plan::new(settings);
    if plan.pairs.is_empty() {
        return Err(ReplayError::Settings(format!(
            "no draft law and verifier are left: {}",
            plan.why_none(settings).join("; ")
        )));
    }
    let question = |scan: &mut specgap_row::Workspace,
                    rows: specgap_number::distribution::Rows<'_>,
                    token: usize,
                    number: u64| {
        let most = plan.pairs.iter().flat_map(|pair| &pair.children).max();
        let mut row = scan
            .load(rows, most.copied().unwrap_or(1))
            .map_err(|error| error.to_string())?;
        plan.slots.answered(|answers| {
            for (index, pair) in plan.pairs.iter().filter(|one| one.asks).enumerate() {
                for (children, slot) in &pair.asked {
                    let seed = seed_of(settings.seed, number, index as u64);
                    let shares = pair.rule.shares(&mut row, token, *children, seed);
                    answers.put(slot, shares.map_err(|error| error.to_string())?)?;
                }
            }
            for bound in &plan.bounds {
                let optima = (1..=bound.drafts).map(|drafts| (bound.optimum)(&mut row, drafts));
                let optima: Result<Vec<_>, _> = optima.collect();
                let optima = optima.map_err(|error| error.to_string())?;
                answers.put(&bound.slot, optima.into_iter().map(|one| one.value()))?;
            }
            Ok(())
        })
    };
    let asked = Reading {
        rollouts: true,
        parts: settings.parts.clone(),
        ..Reading::asking(&question)
    };
    let (texts, of) = read_measured(logs, settings.temperature, &asked, command, progress)?;
    let mut measurement = Measurement {
        texts: &texts,
        settings,
        plan: &plan,
        tokens: texts.tokens(),
        from_leaves: FromLeaves::default(),
    };
    let to_price = measurement.to_price()?;
    measurement.read_from_leaves(logs)?;
    let mut report = measurement.report(logs, of);
    if let Some(place) = to_price {
        report.priced = measurement.priced(logs, place)?;
    }
    report.advice = tree_changes(&report);
    Ok(report)
}

fn seed_of(seed: u64, number: u64, pair: u64) -> u64 {
    // Steps of the golden ratio keep positions, pairs and seeds apart.
    let step = 0x9e37_79b9_7f4a_7c15u64;
    seed.wrapping_add(step.wrapping_mul(number.wrapping_mul(64).wrapping_add(pair + 1)))
}

/// The texts, and what is asked of them.
pub(super) struct Measurement<'a> {
    pub(super) texts: &'a Texts,
    pub(super) settings: &'a TreeSettings,
    pub(super) plan: &'a Plan,
    /// Tokens of each prompt.
    pub(super) tokens: Vec<f64>,
    pub(super) from_leaves: FromLeaves,
}

impl Measurement<'_> {
    fn report(&self, logs: &[Log], of: MeasuredTexts) -> TreeReport {
        let unlisted_mass = [0, 1].map(|row| {
            let met = self.texts.met().map(|place| place.unlisted[row]);
            let (sum, count) = met.fold((0.0, 0.0f64), |(sum, n), mass| (sum + mass, n + 1.0));
            sum / count.max(1.0)
        });
        let mut left_out = self.plan.left_out.clone();
        let timings = self.settings.timings.as_ref();
        let dynamic = if self.settings.schemes.contains(&SchemeName::TOP) {
            let most = self.texts.depths_or(usize::MAX);
            let levels = self.settings.limits.depth.min(most);
            threshold_trees(self.texts, &self.tokens, levels, timings)
        } else {
            Vec::new()
        };
        let (mut results, mut best, mut independence) = (Vec::new(), Vec::new(), Vec::new());
        let is_cut = !self.texts.are_whole();
        let mut unbounded = Vec::new();
        let mut reference: Option<Candidate> = None;
        let engine = of.engine(self.settings.engine);
        let name = engine.as_ref().and_then(Assumed::name);
        let mut at_nodes = self.at_nodes();
        for (place, pair) in self.plan.pairs.iter().enumerate() {
            if !self.tells_of(pair) {
                continue;
            }
            let shares = self.shares(place, pair);
            if is_cut && !self.has_bounds(pair) {
                unbounded.push(pair.name());
            }
            for tree in &self.settings.trees {
                let shape = tree.tree.shape();
                if pair.takes(&shape) && self.reaches(tree, &mut left_out) {
                    let group = self.group(&shares, &shape);
                    let result = self.result(pair, &shares, tree, &group, &mut left_out);
                    let found = self.candidate(&result, &group);
                    // No engine verifies from the leaves.
                    let found = found.filter(|_| pair.levels.is_none());
                    let found = found.filter(|one| name.is_none_or(|name| one.is_default_of(name)));
                    reference = match (reference, found) {
                        (Some(one), Some(other)) if !other.is_before(&one) => Some(one),
                        (one, other) => other.or(one),
                    };
                    results.push(result);
                }
            }
            best.extend(self.grown(pair, &shares));
            self.enter(pair, &shares, &mut at_nodes);
            independence.extend(self.independence(pair, &shares));
        }
        let of_tree = |result: &TreeResult| {
            let trees = self.settings.trees.iter();
            trees.into_iter().position(|tree| tree.name == result.tree)
        };
        results.sort_by_key(of_tree);
        let worth = |(tree, _): &(GrownTree, Along)| {
            tree.speedup_where_chosen
                .unwrap_or(tree.tokens_per_call_where_chosen)
        };
        // What lists leave open is not put before what they tell.
        let is_told =
            |(tree, _): &(GrownTree, Along)| !is_cut || tree.tokens_per_call.truncation.is_some();
        best.sort_by(|a, b| {
            let told = is_told(b).cmp(&is_told(a));
            told.then_with(|| worth(b).total_cmp(&worth(a)))
        });
        if let Some(((_, first), others)) = best.split_first_mut() {
            for (tree, along) in others {
                tree.minus_best = Some(along.minus(first));
            }
        }
        let reference = reference
            .zip(best.first())
            .map(|(one, (_, first))| ReferenceTree {
                best_minus_this: first.minus(&one.along),
                tokens_per_call: one.tokens_per_call,
                speedup: one.along.speed,
                tree: one.result.tree,
                nodes: one.result.nodes,
                scheme: one.result.scheme,
                verifier: one.result.verifier,
            });
        let best = best.into_iter().map(|(tree, _)| tree).collect();
        left_out.extend(self.left_out(logs, &unbounded, !dynamic.is_empty()));
        let trees = self.settings.trees.iter();
        TreeReport {
            schema: TREE_SCHEMA,
            of,
            unlisted_mass,
            seed: self.settings.seed,
            timings: self.settings.timings.clone(),
            surprise: self.texts.surprise(),
            trees: trees
                .map(|tree| (tree.name.clone(), tree.tree.paths().to_vec()))
                .collect(),
            results,
            best,
            reference,
            equal_nodes: Self::compared(at_nodes),
            priced: None,
            dynamic,
            slot_values: self.slot_values(),
            independence,
            engine,
            advice: Vec::new(),
            definitions: tree_definitions(),
            left_out: left_out.iter().map(|line| for_shell(line)).collect(),
        }
    }

    /// Tells whether the log has rows for all levels of a tree; says so where not.
    fn reaches(&self, tree: &NamedTree, left_out: &mut Vec<String>) -> bool {
        let depths = self.texts.depths_or(usize::MAX);
        let fits = tree.tree.depth() <= depths;
        let why = format!(
            "tree {}: it has {} levels, and the log has rows of the draft at {depths} depths",
            tree.name,
            tree.tree.depth()
        );
        if !fits && !left_out.contains(&why) {
            left_out.push(why);
        }
        fits
    }

    /// Returns what these logs and settings do not tell, beside what single laws lack.
    fn left_out(&self, logs: &[Log], unbounded: &[String], is_dynamic: bool) -> Vec<String> {
        let mut left_out: Vec<String> = self.without_bounds(unbounded).into_iter().collect();
        left_out.extend(self.without_leaves());
        if self.texts.clusters < 2 {
            left_out.push(
                "the best tree: it is chosen on some prompts and reported on others, and there is \
                 one prompt only"
                    .to_owned(),
            );
        }
        if is_dynamic && self.texts.rollouts.is_empty() {
            let options = format!("--rollouts {} --every 4", self.settings.limits.depth);
            left_out.push(format!(
                "how many tokens dynamic trees draft: they need rollouts of the draft; log them \
                 with {}",
                capture_with(logs, &options)
            ));
        }
        left_out.push(
            "trees of exactly the B likeliest nodes (EAGLE-2, EAGLE-3, OPT-Tree): whether a node is \
             among them depends on the rows of all others, which lie off the text; rollouts, which \
             are chains drawn from q, do not count nodes above one that is itself drawn. It takes a \
             log of the draft's own tree at each start. The trees of a threshold stand in for them: \
             they have the same nodes where the B-th product is the threshold"
                .to_owned(),
        );
        left_out.push(
            "trees of looked-up tokens: what they draft depends on a store that is not in this log"
                .to_owned(),
        );
        if self.settings.timings.is_none() {
            left_out.push(
                "speed at your cost: give ⟨cost-ratio⟩ (a draft step's time over a target step's) \
                 or ⟨timings⟩"
                    .to_owned(),
            );
        }
        left_out
    }

    /// Returns what the roots' children are worth, by tree and law.
    pub(super) fn slot_values(&self) -> Vec<SlotValues> {
        let mut all = Vec::new();
        if !self.settings.slot_values {
            return all;
        }
        for tree in &self.settings.trees {
            let shape = tree.tree.shape();
            let children = shape.children.first().copied().unwrap_or(0);
            if children < 2 {
                continue;
            }
            for &scheme in &self.settings.schemes {
                let pairs = self.plan.pairs.iter();
                let pairs = pairs.filter(|pair| pair.levels.is_none());
                let pairs = pairs.filter(|pair| pair.scheme == scheme && pair.takes(&shape));
                let found: Vec<(&Pair, Shares, f64)> = pairs
                    .filter_map(|pair| {
                        let shares = Shares {
                            texts: self.values(pair),
                            from_leaves: None,
                            most: None,
                            bounds: None,
                        };
                        let accepted = self.group(&shares, &shape).accepted(Half::All)?.mean;
                        Some((pair, shares, accepted))
                    })
                    .collect();
                let best = found.iter().reduce(|a, b| if a.2 >= b.2 { a } else { b });
                let Some((by, shares, _)) = best else {
                    continue;
                };
                let values: Vec<f64> = (0..children)
                    .map(|child| 1.0 + self.below(shares, &tree.tree, child))
                    .collect();
                let rules: Vec<RootShares<'_>> = (found.iter())
                    .map(|(pair, shares, _)| (pair.at_node, self.roots(&shares.texts, children)))
                    .collect();
                let bounds = self.plan.bounds.iter().filter(|one| one.scheme == scheme);
                let optima: Vec<(usize, &[f64])> =
                    bounds.flat_map(|bound| self.optima(bound)).collect();
                all.push(slot_values(
                    &tree.name,
                    scheme,
                    (values, by.verifier.to_string()),
                    &rules,
                    &optima,
                    self.texts.clusters,
                ));
            }
        }
        all
    }

    /// E[tau] below a child of a tree's root.
    pub(super) fn below(&self, shares: &Shares, tree: &DraftTree, child: usize) -> f64 {
        let paths = tree.paths().iter();
        let paths: Vec<Vec<usize>> = paths
            .filter(|path| path.len() > 1 && path.first() == Some(&child))
            .map(|path| path[1..].to_vec())
            .collect();
        let accepted = DraftTree::new(paths).ok().and_then(|below| {
            let shape = below.shape();
            Some(self.group(shares, &shape).accepted(Half::All)?.mean)
        });
        accepted.unwrap_or(0.0)
    }

    /// The shares of a root's children at every position, with the prompt.
    pub(super) fn roots<'a>(
        &self,
        shares: &'a [ChildShares<f64>],
        children: usize,
    ) -> Vec<(usize, &'a [f64])> {
        let texts = self.texts.texts.iter().zip(shares);
        texts
            .flat_map(|(text, shares)| {
                let rows = 0..shares.len();
                rows.map(move |position| (text.cluster, shares.at(position, children)))
            })
            .collect()
    }

    pub(super) fn optima(&self, bound: &OptimaOf) -> Vec<(usize, &[f64])> {
        let texts = self.texts.texts.iter();
        texts
            .flat_map(|text| {
                let rows = text.asked.iter();
                rows.map(|answers| (text.cluster, bound.slot.of(answers)))
            })
            .collect()
    }

    /// Why some numbers have no bounds although rows list some tokens only.
    pub(super) fn without_bounds(&self, unbounded: &[String]) -> Option<String> {
        if unbounded.is_empty() {
            return None;
        }
        let names = unbounded.join(", ");
        let cure = if self.are_known() {
            "what they give a listed token depends on how the rest is spread over other tokens. \
             Log full rows"
        } else {
            "the masses of what rows do not list are not known at the text's temperature, or target \
             and draft list tokens of their own. Log the tokens of both lists with both rows, and \
             log-probabilities or masses of the rest at that temperature"
        };
        Some(format!(
            "bounds of what full rows would give, for {names}: {cure}"
        ))
    }

    /// Tells whether what full rows give drafts of a law is bounded by what these rows list.
    pub(super) fn has_bounds(&self, pair: &Pair) -> bool {
        let on_lists = match pair.levels {
            Some(_) => pair.verifier == RuleName::TRAVERSAL,
            None => pair.rule.on_lists,
        };
        on_lists && self.are_known()
    }

    /// Tells whether what rows do not list is known well enough for bounds.
    pub(super) fn are_known(&self) -> bool {
        self.texts.met().all(|place| place.rest != Rest::Open)
    }

    /// A tree's rounds, added up by prompt in the texts' order.
    pub(super) fn group<'a>(&'a self, shares: &Shares, shape: &'a Shape) -> Group<'a> {
        let timings = self.settings.timings.as_ref();
        let times = timings.and_then(|timings| {
            let depth = shape.depth.last().copied().unwrap_or(0);
            let time = |levels| timings.levels(levels, shape.nodes_to(levels));
            (0..=depth).map(time).collect::<Option<Vec<f64>>>()
        });
        let times = times.as_deref().unwrap_or_default();
        let known = (shares.from_leaves).and_then(|pair| self.from_leaves.rounds(pair, shape));
        let found: Option<Vec<RoundBounds>> = match (&shares.bounds, known) {
            (Some([least, most]), _) => {
                let tables = least.par_iter().zip(most);
                let each = tables.map(|(least, most)| replay_between(shape, [least, most], times));
                Some(each.collect())
            }
            (None, Some(known)) if !self.texts.are_whole() => {
                let each = known.par_iter().map(|OfText { between, .. }| {
                    let of = |start: usize, _| between[start].clone();
                    replay_between_with(shape.levels(), between.len(), times, of)
                });
                Some(each.collect())
            }
            _ => None,
        };
        let bounds = found.map(|found| self.texts.by_prompt(found, RoundBounds::add));
        let rounds = match known {
            Some(known) => {
                let rounds = known.iter().map(|one| &one.rounds);
                self.texts.by_prompt(rounds, Rounds::add)
            }
            None => {
                let texts = shares.texts.par_iter();
                let replays: Vec<TreeReplay<f64>> =
                    texts.map(|shares| replay_tree(shape, shares)).collect();
                self.texts.by_prompt(&replays, Rounds::add)
            }
        };
        let most = (shares.most).and_then(|pair| self.from_leaves.most(pair, shape));
        Group {
            shape,
            rounds,
            bounds,
            most: most.map(|most| self.texts.sums(most)),
            tokens: &self.tokens,
        }
    }

    /// A named tree within the budget, to compare the best one with.
    pub(super) fn candidate(&self, result: &TreeResult, group: &Group<'_>) -> Option<Candidate> {
        let settings = self.settings;
        let fits = result.nodes <= settings.limits.budget && result.depth <= settings.deepest();
        if !fits || self.texts.clusters < 2 {
            return None;
        }
        let timings = self.settings.timings.as_ref();
        let worth = match timings {
            Some(timings) => group.speed(Half::Chooses, timings)?,
            None => group.tokens_per_call(Half::Chooses),
        };
        Some(Candidate {
            worth: worth.mean,
            result: result.clone(),
            tokens_per_call: group.tokens_per_call(Half::Reports),
            along: group.along(timings),
        })
    }

    pub(super) fn result(
        &self,
        pair: &Pair,
        shares: &Shares,
        tree: &NamedTree,
        group: &Group<'_>,
        left_out: &mut Vec<String>,
    ) -> TreeResult {
        let timings = self.settings.timings.as_ref();
        let speedup = timings.and_then(|timings| group.speed(Half::All, timings));
        if timings.is_some() && speedup.is_none() {
            let why = format!(
                "speed of {}: the timings have no verifying pass of {} tokens",
                tree.name,
                tree.tree.len() + 1
            );
            if !left_out.contains(&why) {
                left_out.push(why);
            }
        }
        TreeResult {
            tree: tree.name.clone(),
            nodes: tree.tree.len(),
            depth: tree.tree.depth(),
            scheme: pair.scheme.to_string(),
            verifier: pair.verifier.to_string(),
            kind: pair.kind(group.shape),
            expected_accepted_length: group.accepted(Half::All),
            most_accepted_length: group.most_accepted(Half::All),
            tokens_per_call: group.tokens_per_call(Half::All),
            speedup,
            sequoia_prediction: self.predicted(shares, &tree.tree, Half::All),
        }
    }
}
