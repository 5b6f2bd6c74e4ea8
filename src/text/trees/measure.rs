//! From texts to a report on trees.

use super::super::TextError;
use super::super::cost::Timings;
use super::super::data::MeasuredTexts;
use super::super::measure::{add_each, capture_with, measured, with_files};
use super::super::place::Rest;
use super::super::texts::{Text, Texts};
use super::between::{RoundBounds, replay_between};
use super::data::{
    ByBudget, Drawn, GrownTree, Independence, NodeRate, ReferenceTree, SequoiaTree, SlotValues,
    TREE_SCHEMA, TreeDifference, TreeReport, TreeResult,
};
use super::dynamic::threshold_trees;
use super::glossary::tree_definitions;
use super::grow::{Growth, Limits};
use super::replay::{TreeReplay, replay_tree};
use super::shares::ChildShares;
use super::values::{PREFIXED, RootShares, slot_values};
use crate::gap::{Clustered, Estimate};
use crate::log::Log;
use crate::row::MAX_DRAFTS;
use crate::scheme::SchemeName;
use crate::side_by_side;
use crate::tree::{AcceptanceRates, DraftTree, Shape, TopologyLimits, best_topology};
use crate::verifier::{TokenRule, VerifierName};
use std::collections::BTreeSet;

/// A tree with the name that it has in the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedTree {
    /// The name.
    pub name: String,
    /// The tree.
    pub tree: DraftTree,
}

/// What to replay.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeSettings {
    /// The trees.
    pub trees: Vec<NamedTree>,
    /// Laws of a node's children.
    pub schemes: Vec<SchemeName>,
    /// Verifiers.
    pub verifiers: Vec<VerifierName>,
    /// What the best tree may be.
    pub limits: Limits,
    /// What a round costs, if it is known.
    pub timings: Option<Timings>,
    /// The temperature at which the text was drawn, where the log does not say.
    pub temperature: Option<f64>,
    /// Whether to ask what the children of the trees' roots are worth.
    pub slot_values: bool,
    /// Seed of what is random.
    pub seed: u64,
}

impl TreeSettings {
    /// Trees that are replayed where none are named.
    pub const TREES: [&'static str; 6] = [
        "chain-4",
        "chain-8",
        "2x4",
        "4x3",
        "prefix-4-2-1",
        "eagle-25",
    ];
    /// [`TreeSettings::limits`] if nothing else is asked for.
    pub const LIMITS: Limits = Limits {
        budget: 32,
        depth: 8,
        branch: 4,
    };
}

/// Budgets whose trees are shown, as far as they are within the limit.
const BUDGETS: [usize; 12] = [1, 2, 4, 8, 16, 24, 32, 48, 64, 128, 256, 512];

/// The tree that the best one is compared with, where it is among the named: engines have it.
const REFERENCE: &str = "eagle-25";

/// Levels by which independence is tested.
const LEVELS: usize = 6;

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
) -> Result<TreeReport, TextError> {
    let plan = Plan::new(settings);
    if plan.pairs.is_empty() {
        return Err(TextError::Settings(format!(
            "no draft law and verifier are left: {}",
            plan.left_out.join("; ")
        )));
    }
    let question = |scan: &mut crate::row::Workspace,
                    rows: crate::distribution::Rows<'_>,
                    token: usize,
                    number: u64| {
        let most = plan.pairs.iter().flat_map(|pair| &pair.children).max();
        let mut row = scan
            .load(rows, most.copied().unwrap_or(1))
            .map_err(|error| error.to_string())?;
        let mut answers = Vec::with_capacity(plan.width);
        for (index, pair) in plan.pairs.iter().enumerate() {
            for &children in &pair.asked {
                let seed = seed_of(settings.seed, number, index as u64);
                let shares = pair
                    .rule
                    .shares(&mut row, token, children, seed)
                    .map_err(|error| error.to_string())?;
                answers.extend(shares);
            }
        }
        for bound in &plan.bounds {
            for drafts in 1..=bound.drafts {
                let optimum = (bound.optimum)(&mut row, drafts);
                answers.push(optimum.map_err(|error| error.to_string())?.value());
            }
        }
        Ok(answers)
    };
    let (texts, files) = with_files(logs, || {
        Texts::read_asking(logs, settings.temperature, progress, Some(&question), true)
    })?;
    Ok(Measurement {
        texts: &texts,
        settings,
        plan: &plan,
        tokens: texts.tokens(),
    }
    .report(logs, measured(&texts, logs, files, command)))
}

fn seed_of(seed: u64, number: u64, pair: u64) -> u64 {
    // Steps of the golden ratio keep positions, pairs and seeds apart.
    let step = 0x9e37_79b9_7f4a_7c15u64;
    seed.wrapping_add(step.wrapping_mul(number.wrapping_mul(64).wrapping_add(pair + 1)))
}

/// A draft law with a verifier.
struct Pair {
    scheme: SchemeName,
    verifier: VerifierName,
    rule: TokenRule,
    /// The most children that a node of a growing tree may have; 0 if none can grow.
    branch: usize,
    /// Numbers of children that some tree has, rising.
    children: BTreeSet<usize>,
    /// Those that rows are asked for: what the most children get answers for fewer, where it
    /// can.
    asked: Vec<usize>,
    /// Where its answers begin among a position's.
    offset: usize,
}

impl Pair {
    fn fits(&self, children: usize) -> bool {
        (1..=MAX_DRAFTS).contains(&children)
            && self.scheme.fits(children)
            && self.verifier.is_lossless(self.scheme, children)
    }

    fn takes(&self, shape: &Shape) -> bool {
        let parents = shape.children.iter().filter(|&&children| children > 0);
        parents.into_iter().all(|&children| self.fits(children))
    }

    fn kind(&self, shape: &Shape) -> String {
        let most = shape.children.iter().copied().max().unwrap_or(0);
        let sampled = self.rule.sampled_from.is_some_and(|from| most > from);
        if sampled {
            "estimate, sampled"
        } else {
            "estimate"
        }
        .to_owned()
    }

    fn name(&self) -> String {
        format!("{} on {} drafts", self.verifier, self.scheme)
    }
}

/// alpha* of 1, .., n drafts of a law.
struct OptimaOf {
    scheme: SchemeName,
    optimum: crate::row::Answer,
    drafts: usize,
    /// Where its answers begin among a position's.
    offset: usize,
}

/// What is asked of every position.
struct Plan {
    pairs: Vec<Pair>,
    bounds: Vec<OptimaOf>,
    /// Numbers of a position.
    width: usize,
    left_out: Vec<String>,
}

impl Plan {
    fn new(settings: &TreeSettings) -> Self {
        let mut plan = Self {
            pairs: Vec::new(),
            bounds: Vec::new(),
            width: 0,
            left_out: Vec::new(),
        };
        let shapes: Vec<(&str, Shape)> = settings
            .trees
            .iter()
            .map(|tree| (tree.name.as_str(), tree.tree.shape()))
            .collect();
        for &scheme in &settings.schemes {
            for &verifier in &settings.verifiers {
                if scheme.entry().on_row.is_none() || !verifier.is_lossless(scheme, 1) {
                    continue;
                }
                match verifier.token_rule(scheme) {
                    Ok(rule) => plan.add(scheme, verifier, rule, settings.limits, &shapes),
                    Err(why) => plan
                        .left_out
                        .push(format!("{verifier} on {scheme} drafts: {why}")),
                }
            }
        }
        if settings.slot_values {
            plan.ask_optima(&shapes);
        }
        plan
    }

    /// Asks for what no rule passes at roots with the target's own law.
    fn ask_optima(&mut self, shapes: &[(&str, Shape)]) {
        for scheme in PREFIXED {
            let pairs = self.pairs.iter().filter(|pair| pair.scheme == scheme);
            let roots = pairs.flat_map(|pair| {
                let fitting = shapes.iter().filter(|(_, shape)| pair.takes(shape));
                fitting.filter_map(|(_, shape)| shape.children.first().copied())
            });
            let (Some(drafts), Some(on_row)) =
                (roots.max().filter(|&most| most > 1), &scheme.entry().on_row)
            else {
                continue;
            };
            self.bounds.push(OptimaOf {
                scheme,
                optimum: on_row.optimum.full,
                drafts,
                offset: self.width,
            });
            self.width += drafts;
        }
    }

    fn add(
        &mut self,
        scheme: SchemeName,
        verifier: VerifierName,
        rule: TokenRule,
        limits: Limits,
        shapes: &[(&str, Shape)],
    ) {
        let mut pair = Pair {
            scheme,
            verifier,
            rule,
            branch: 0,
            children: BTreeSet::new(),
            asked: Vec::new(),
            offset: self.width,
        };
        let grows: Vec<usize> = (1..=limits.branch).filter(|&n| pair.fits(n)).collect();
        pair.branch = grows.last().copied().unwrap_or(0);
        let (fitting, others): (Vec<_>, Vec<_>) =
            shapes.iter().partition(|(_, shape)| pair.takes(shape));
        if !others.is_empty() {
            let names: Vec<&str> = others.iter().map(|(name, _)| *name).collect();
            self.left_out.push(format!(
                "{}: {}, where some node has a number of children that it does not take",
                pair.name(),
                names.join(", ")
            ));
        }
        let counts = fitting.iter().flat_map(|(_, shape)| &shape.children);
        pair.children = counts.copied().filter(|&children| children > 0).collect();
        pair.children.extend(grows);
        pair.asked = match pair.children.last() {
            Some(&most) if rule.nested => vec![most],
            _ => pair.children.iter().copied().collect(),
        };
        self.width += pair.asked.iter().sum::<usize>();
        if !pair.asked.is_empty() {
            self.pairs.push(pair);
        }
    }
}

/// Rounds of one prompt with one tree.
#[derive(Clone, Debug, Default)]
struct Rounds {
    calls: f64,
    /// By number of levels.
    by_levels: Vec<f64>,
    accepted: f64,
    whole: f64,
    reached: Vec<f64>,
}

impl Rounds {
    fn add(&mut self, other: &TreeReplay<f64>) {
        self.calls += other.calls;
        add_each(&mut self.by_levels, &other.rounds);
        add_each(&mut self.reached, &other.reached);
        self.accepted += other.accepted;
        self.whole += other.whole as f64;
    }
}

/// Which prompts.
#[derive(Clone, Copy, PartialEq)]
enum Half {
    /// The first, third, ...
    Chooses,
    /// The others.
    Reports,
    All,
}

impl Half {
    fn has(self, cluster: usize) -> bool {
        match self {
            Self::Chooses => cluster.is_multiple_of(2),
            Self::Reports => !cluster.is_multiple_of(2),
            Self::All => true,
        }
    }
}

/// The texts, and what is asked of them.
struct Measurement<'a> {
    texts: &'a Texts,
    settings: &'a TreeSettings,
    plan: &'a Plan,
    /// Tokens of each prompt.
    tokens: Vec<f64>,
}

/// Bounds on each child's share, between two rows' of which the first k children get no less
/// together, and no more, than in the one or the other.
fn between<'a>(one: &'a [f64], other: &'a [f64]) -> impl Iterator<Item = [f64; 2]> + 'a {
    let (mut so_far, mut bounds) = ([0.0f64; 2], [0.0f64; 2]);
    one.iter().zip(other).map(move |(one, other)| {
        so_far = [so_far[0] + one, so_far[1] + other];
        let next = [so_far[0].min(so_far[1]), so_far[0].max(so_far[1])];
        let share = [next[0] - bounds[1], next[1] - bounds[0]];
        bounds = next;
        share.map(|share| share.clamp(0.0, 1.0))
    })
}

/// A tree's rounds, prompt by prompt.
struct Group<'a> {
    shape: &'a Shape,
    rounds: Vec<Rounds>,
    /// Where rows list some tokens only, and what they leave open is known.
    bounds: Option<Vec<RoundBounds>>,
    tokens: &'a [f64],
}

/// What the children of nodes get, text by text.
struct Shares {
    texts: Vec<ChildShares<f64>>,
    /// At least and at most, where rows list some tokens only and that is known.
    bounds: Option<[Vec<ChildShares<f64>>; 2]>,
}

impl Group<'_> {
    fn of(&self, half: Half) -> impl Iterator<Item = (&Rounds, f64)> + Clone {
        let prompts = self.rounds.iter().zip(self.tokens).enumerate();
        prompts
            .filter(move |(cluster, _)| half.has(*cluster))
            .map(|(_, (rounds, &tokens))| (rounds, tokens))
    }

    /// E[tau]; `None` where no text has room for the tree.
    fn accepted(&self, half: Half) -> Option<Estimate> {
        let there = self.of(half).filter(|(rounds, _)| rounds.whole > 0.0);
        let sums = there.map(|(rounds, _)| (rounds.accepted, rounds.whole));
        let any = sums.clone().next().is_some();
        any.then(|| Estimate {
            truncation: self.between(half, |bounds, _, end| (bounds.accepted[end], bounds.whole)),
            ..Clustered::new(sums).estimate()
        })
    }

    fn tokens_per_call(&self, half: Half) -> Estimate {
        let sums = self.of(half).map(|(rounds, tokens)| (tokens, rounds.calls));
        Estimate {
            // The fewest calls make the most tokens a call.
            truncation: self.between(half, |bounds, tokens, end| (tokens, bounds.calls[1 - end])),
            ..Clustered::new(sums).estimate()
        }
    }

    /// The ratio of two sums over prompts, at least and at most.
    fn between(
        &self,
        half: Half,
        of: impl Fn(&RoundBounds, f64, usize) -> (f64, f64),
    ) -> Option<[f64; 2]> {
        let all = self.bounds.as_ref()?;
        let ends = [0, 1].map(|end| {
            let prompts = all.iter().zip(self.tokens).enumerate();
            let here = prompts.filter(|(cluster, _)| half.has(*cluster));
            here.fold((0.0, 0.0), |sum, (_, (bounds, &tokens))| {
                let (one, other) = of(bounds, tokens, end);
                (sum.0 + one, sum.1 + other)
            })
        });
        let [low, high] = ends.map(|(sum, count)| sum / count);
        (low.is_finite() && high.is_finite()).then_some([low, high])
    }

    /// t_0 N / E[time], a draft step a level.
    fn speed(&self, half: Half, timings: &Timings) -> Option<Estimate> {
        Some(self.timed(half, timings)?.estimate())
    }

    fn timed(&self, half: Half, timings: &Timings) -> Option<Timed> {
        let nodes = self.shape.parent.len();
        let (mut pairs, mut all) = (Vec::new(), vec![0.0; nodes]);
        let (mut all_steps, mut all_time) = (0.0, 0.0);
        for (rounds, tokens) in self.of(half) {
            // Rounds by their draft tokens, and what their steps are fewer than these.
            let (mut by_nodes, mut steps) = (vec![0.0; nodes], 0.0);
            for (level, count) in rounds.by_levels.iter().enumerate() {
                let drafted = self.shape.nodes_to(level);
                by_nodes[drafted] += count;
                steps += count * (level as f64 - drafted as f64);
            }
            let time = timings.total(&by_nodes, steps, false)?;
            pairs.push((timings.target_step.seconds * tokens, time));
            all.iter_mut().zip(&by_nodes).for_each(|(a, b)| *a += b);
            all_steps += steps;
            all_time += time;
        }
        let of_times = match all_time > 0.0 {
            true => timings.relative_variance(&all, all_steps, all_time).sqrt(),
            false => 0.0,
        };
        Some(Timed { pairs, of_times })
    }

    /// What another tree is compared with, of the prompts that report.
    fn along(&self, timings: Option<&Timings>) -> Along {
        let calls = self.of(Half::Reports);
        Along {
            calls: calls
                .map(|(rounds, tokens)| (tokens, rounds.calls))
                .collect(),
            bounds: self.tokens_per_call(Half::Reports).truncation,
            timed: timings.and_then(|timings| self.timed(Half::Reports, timings)),
        }
    }

    fn nodes(&self, half: Half, tree: &DraftTree) -> Drawn {
        let mut reached = vec![0.0; self.shape.parent.len()];
        for (rounds, _) in self.of(half) {
            reached
                .iter_mut()
                .zip(&rounds.reached)
                .for_each(|(a, b)| *a += b);
        }
        let whole = reached[0].max(f64::MIN_POSITIVE);
        let rate = |node: usize, path: &Vec<usize>| {
            let parent = reached[self.shape.parent[node]];
            NodeRate {
                path: path.clone(),
                reached: reached[node] / whole,
                accepted: if parent > 0.0 {
                    reached[node] / parent
                } else {
                    0.0
                },
            }
        };
        let paths = tree.paths().iter().enumerate();
        Drawn {
            nodes: paths.map(|(index, path)| rate(index + 1, path)).collect(),
        }
    }
}

/// By prompt, t_0 times its tokens and the time that they take.
struct Timed {
    pairs: Vec<(f64, f64)>,
    /// Relative error of the times.
    of_times: f64,
}

impl Timed {
    fn clustered(&self) -> Clustered {
        let mut speed = Clustered::new(self.pairs.iter().copied());
        speed.error = speed.error.hypot(speed.mean * self.of_times);
        speed
    }

    fn estimate(&self) -> Estimate {
        self.clustered().estimate()
    }

    /// This speed minus another one at the same prompts; errors of times are taken for
    /// independent, which they are at most.
    fn minus(&self, other: &Self) -> Estimate {
        let pairs = self.pairs.iter().copied().zip(other.pairs.iter().copied());
        let mut difference = Clustered::difference(pairs);
        for one in [self, other] {
            let mean = Clustered::new(one.pairs.iter().copied()).mean;
            difference.error = difference.error.hypot(mean * one.of_times);
        }
        difference.estimate()
    }
}

/// Rounds of a tree along the prompts that report.
struct Along {
    /// By prompt, its tokens and calls.
    calls: Vec<(f64, f64)>,
    /// Of tokens per call, where rows list some tokens only.
    bounds: Option<[f64; 2]>,
    timed: Option<Timed>,
}

impl Along {
    fn minus(&self, other: &Self) -> TreeDifference {
        let pairs = self.calls.iter().copied().zip(other.calls.iter().copied());
        let bounds = self.bounds.zip(other.bounds);
        let timed = self.timed.as_ref().zip(other.timed.as_ref());
        TreeDifference {
            tokens_per_call: Estimate {
                truncation: bounds.map(|([a, b], [c, d])| [a - d, b - c]),
                ..Clustered::difference(pairs).estimate()
            },
            speedup: timed.map(|(one, other)| one.minus(other)),
        }
    }
}

/// A named tree that the best one may be compared with.
struct Candidate {
    /// On the prompts that choose.
    worth: f64,
    result: TreeResult,
    tokens_per_call: Estimate,
    along: Along,
}

impl Candidate {
    /// Whether it comes before another one: the tree of EAGLE, then what is worth more.
    fn is_before(&self, other: &Self) -> bool {
        let eagle = |one: &Self| one.result.tree == REFERENCE;
        match (eagle(self), eagle(other)) {
            (true, false) => true,
            (false, true) => false,
            _ => self.worth > other.worth,
        }
    }
}

impl Measurement<'_> {
    fn report(&self, logs: &[Log], of: MeasuredTexts) -> TreeReport {
        let places = || self.texts.texts.iter().flat_map(|text| &text.places);
        let count = places().count().max(1) as f64;
        let unlisted_mass =
            [0, 1].map(|row| places().map(|place| place.unlisted[row]).sum::<f64>() / count);
        let mut left_out = self.plan.left_out.clone();
        let timings = self.settings.timings.as_ref();
        let dynamic = if self.settings.schemes.contains(&SchemeName::TOP) {
            let levels = self.settings.limits.depth;
            threshold_trees(self.texts, &self.tokens, levels, timings)
        } else {
            Vec::new()
        };
        let (mut results, mut best, mut independence) = (Vec::new(), Vec::new(), Vec::new());
        let is_cut = places().any(|place| place.rest != Rest::None);
        let mut unbounded = Vec::new();
        let mut reference: Option<Candidate> = None;
        for pair in &self.plan.pairs {
            let shares = self.shares(pair);
            if is_cut && shares.bounds.is_none() {
                unbounded.push(pair.name());
            }
            for tree in &self.settings.trees {
                let shape = tree.tree.shape();
                if pair.takes(&shape) {
                    let group = self.group(&shares, &shape);
                    let result = self.result(pair, &shares, tree, &group, &mut left_out);
                    let found = self.candidate(&result, &group);
                    reference = match (reference, found) {
                        (Some(one), Some(other)) if !other.is_before(&one) => Some(one),
                        (one, other) => other.or(one),
                    };
                    results.push(result);
                }
            }
            best.extend(self.grown(pair, &shares));
            independence.extend(self.independence(pair, &shares));
        }
        let of_tree = |result: &TreeResult| {
            let trees = self.settings.trees.iter();
            trees.into_iter().position(|tree| tree.name == result.tree)
        };
        results.sort_by_key(of_tree);
        let worth = |(tree, _): &(GrownTree, Along)| {
            tree.speedup_where_chosen
                .unwrap_or(tree.expected_accepted_length_where_chosen)
        };
        best.sort_by(|a, b| worth(b).total_cmp(&worth(a)));
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
                speedup: one.along.timed.as_ref().map(Timed::estimate),
                tree: one.result.tree,
                nodes: one.result.nodes,
                scheme: one.result.scheme,
                verifier: one.result.verifier,
            });
        let best = best.into_iter().map(|(tree, _)| tree).collect();
        left_out.extend(self.without_bounds(&unbounded));
        if self.texts.clusters < 2 {
            left_out.push(
                "the best tree: it is chosen on some prompts and reported on others, and there is \
                 one prompt only"
                    .to_owned(),
            );
        }
        if !dynamic.is_empty() && self.texts.rollouts.is_empty() {
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
                "speed at your cost: give --cost-ratio (a draft step's time over a target step's) \
                 or --timings"
                    .to_owned(),
            );
        }
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
            dynamic,
            slot_values: self.slot_values(),
            independence,
            definitions: tree_definitions(),
            left_out,
        }
    }

    /// What the roots' children are worth, by tree and law.
    fn slot_values(&self) -> Vec<SlotValues> {
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
                let pairs = pairs.filter(|pair| pair.scheme == scheme && pair.takes(&shape));
                let found: Vec<(&Pair, Shares, f64)> = pairs
                    .filter_map(|pair| {
                        let shares = Shares {
                            texts: self.values(pair),
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
                let rules: Vec<RootShares<'_>> = found
                    .iter()
                    .map(|(pair, shares, _)| RootShares {
                        verifier: pair.verifier.to_string(),
                        rows: self.roots(&shares.texts, children),
                    })
                    .collect();
                let optima: Vec<(usize, &[f64])> = self
                    .plan
                    .bounds
                    .iter()
                    .filter(|bound| bound.scheme == scheme)
                    .flat_map(|bound| self.optima(bound))
                    .collect();
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
    fn below(&self, shares: &Shares, tree: &DraftTree, child: usize) -> f64 {
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
    fn roots<'a>(
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

    fn optima(&self, bound: &OptimaOf) -> Vec<(usize, &[f64])> {
        let numbers = bound.offset..bound.offset + bound.drafts;
        let texts = self.texts.texts.iter();
        texts
            .flat_map(|text| {
                let rows = text.asked.chunks_exact(self.plan.width.max(1));
                let numbers = numbers.clone();
                rows.map(move |row| (text.cluster, &row[numbers.clone()]))
            })
            .collect()
    }

    /// Why some numbers have no bounds although rows list some tokens only.
    fn without_bounds(&self, unbounded: &[String]) -> Option<String> {
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

    /// Whether what rows do not list is known well enough for bounds.
    fn are_known(&self) -> bool {
        let mut places = self.texts.texts.iter().flat_map(|text| &text.places);
        places.all(|place| place.rest != Rest::Open)
    }

    /// What the children of a node get, text by text.
    fn shares(&self, pair: &Pair) -> Shares {
        let mut places = self.texts.texts.iter().flat_map(|text| &text.places);
        let is_cut = places.any(|place| place.rest != Rest::None);
        let has_bounds = is_cut && pair.rule.on_lists && self.are_known();
        Shares {
            texts: self.values(pair),
            bounds: has_bounds.then(|| {
                [0, 1].map(|end| {
                    let texts = self.texts.texts.iter();
                    texts.map(|text| self.bounds_of(pair, text, end)).collect()
                })
            }),
        }
    }

    /// The least or the most that the children of a node get along a text.
    fn bounds_of(&self, pair: &Pair, text: &Text, end: usize) -> ChildShares<f64> {
        let width = self.plan.width.max(1);
        let mut offset = pair.offset;
        let by_rank = [SchemeName::TOP, SchemeName::GREEDY, SchemeName::HUB];
        let is_by_rank = by_rank.contains(&pair.scheme);
        let tables: Vec<(usize, Vec<f64>)> = pair
            .asked
            .iter()
            .map(|&children| {
                let begin = offset;
                offset += children;
                let mut table = Vec::with_capacity(children * text.places.len());
                for (position, place) in text.places.iter().enumerate() {
                    let range = position * width + begin..position * width + begin + children;
                    let own = text.asked.get(range.clone()).unwrap_or_default();
                    let other = text.apart.get(range).unwrap_or(own);
                    // Drafts that are the heaviest tokens may be others than the listed ones.
                    let is_sure = match place.rest {
                        Rest::Known { heaviest } => !is_by_rank || children <= heaviest,
                        _ => true,
                    };
                    if place.listed && is_sure {
                        table.extend(between(own, other).map(|ends| ends[end]));
                    } else {
                        table.extend(std::iter::repeat_n(end as f64, own.len()));
                    }
                }
                (children, table)
            })
            .collect();
        ChildShares::new(text.places.len(), pair.rule.nested, tables)
    }

    /// What the children of a node get, text by text, with the rest in proportion.
    fn values(&self, pair: &Pair) -> Vec<ChildShares<f64>> {
        let of = |text: &Text| {
            let mut offset = pair.offset;
            let tables: Vec<(usize, Vec<f64>)> = pair
                .asked
                .iter()
                .map(|&children| {
                    let begin = offset;
                    offset += children;
                    let rows = text.asked.chunks_exact(self.plan.width.max(1));
                    let table = rows.flat_map(|row| row[begin..begin + children].iter().copied());
                    (children, table.collect())
                })
                .collect();
            ChildShares::new(text.places.len(), pair.rule.nested, tables)
        };
        self.texts.texts.iter().map(of).collect()
    }

    /// A tree's rounds, added up by prompt in the texts' order.
    fn group<'a>(&'a self, shares: &Shares, shape: &'a Shape) -> Group<'a> {
        let bounds = shares.bounds.as_ref().map(|[least, most]| {
            let mut bounds = vec![RoundBounds::default(); self.texts.clusters];
            let found: Vec<RoundBounds> =
                side_by_side::each_number(least.len().min(most.len()), |text| {
                    replay_between(shape, &least[text], &most[text])
                });
            for (text, found) in self.texts.texts.iter().zip(found) {
                bounds[text.cluster].add(found);
            }
            bounds
        });
        let replays: Vec<TreeReplay<f64>> =
            side_by_side::each(&shares.texts, |shares| replay_tree(shape, shares));
        let mut rounds = vec![Rounds::default(); self.texts.clusters];
        for (text, replay) in self.texts.texts.iter().zip(&replays) {
            rounds[text.cluster].add(replay);
        }
        Group {
            shape,
            rounds,
            bounds,
            tokens: &self.tokens,
        }
    }

    /// A named tree within the budget, to compare the best one with.
    fn candidate(&self, result: &TreeResult, group: &Group<'_>) -> Option<Candidate> {
        if result.nodes > self.settings.limits.budget || self.texts.clusters < 2 {
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

    fn result(
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
            tokens_per_call: group.tokens_per_call(Half::All),
            speedup,
            sequoia_prediction: self.predicted(shares, &tree.tree, Half::All),
        }
    }

    /// Mean shares of the children of a node with so many.
    fn vector(&self, shares: &Shares, children: usize, half: Half) -> Vec<f64> {
        let (mut sums, mut count) = (vec![0.0; children], 0.0);
        for (text, shares) in self.texts.texts.iter().zip(&shares.texts) {
            if !half.has(text.cluster) {
                continue;
            }
            for position in 0..shares.len() {
                let row = shares.at(position, children);
                sums.iter_mut().zip(row).for_each(|(a, b)| *a += b);
                count += 1.0;
            }
        }
        sums.iter().map(|sum| sum / f64::max(count, 1.0)).collect()
    }

    /// E[tau] as it would be if levels were independent.
    fn predicted(&self, shares: &Shares, tree: &DraftTree, half: Half) -> f64 {
        let shape = tree.shape();
        let most = shape.children.iter().copied().max().unwrap_or(0);
        let vectors: Vec<Vec<f64>> = (0..=most)
            .map(|children| {
                if shape.children.contains(&children) {
                    self.vector(shares, children, half)
                } else {
                    Vec::new()
                }
            })
            .collect();
        let mut reached = vec![1.0; shape.parent.len()];
        for node in 1..reached.len() {
            let parent = shape.parent[node];
            let vector = &vectors[shape.children[parent]];
            reached[node] = reached[parent] * vector.get(shape.rank[node]).unwrap_or(&0.0);
        }
        reached[1..].iter().sum()
    }

    fn grown(&self, pair: &Pair, shares: &Shares) -> Option<(GrownTree, Along)> {
        if pair.branch == 0 || self.texts.clusters < 2 {
            return None;
        }
        let limits = Limits {
            branch: pair.branch,
            ..self.settings.limits
        };
        let chooses = self.texts.texts.iter().zip(&shares.texts);
        let chooses = chooses.filter(|(text, _)| Half::Chooses.has(text.cluster));
        let growth = Growth::new(chooses.map(|(_, shares)| shares), limits);
        let timings = self.settings.timings.as_ref();
        let mut budgets: Vec<usize> = BUDGETS.to_vec();
        budgets.push(growth.paths.len());
        budgets = budgets
            .into_iter()
            .map(|most| growth.size_within(most))
            .collect();
        budgets.retain(|&budget| budget > 0);
        budgets.sort_unstable();
        budgets.dedup();
        let mut by_budget = Vec::new();
        let mut chosen: Option<(f64, usize, Option<f64>)> = None;
        for nodes in budgets {
            let tree = growth.tree(nodes).ok()?;
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
            // A tree that the times do not reach is not chosen by them.
            let worth = match timings {
                Some(_) => speed_here.map(|speed| speed.mean),
                None => Some(here.mean),
            };
            if let Some(worth) = worth
                && chosen.is_none_or(|best| best.0 < worth)
            {
                chosen = Some((worth, nodes, speed_here.map(|speed| speed.mean)));
            }
            by_budget.push(ByBudget {
                nodes,
                depth: tree.depth(),
                last_gain: growth.gains.get(nodes - 1).copied().unwrap_or(0.0),
                expected_accepted_length_where_chosen: here.mean,
                expected_accepted_length: there,
                tokens_per_call: group.tokens_per_call(Half::Reports),
                speedup: speed_there,
            });
        }
        let (_, nodes, speedup_where_chosen) = chosen?;
        let tree = growth.tree(nodes).ok()?;
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
            expected_accepted_length: group.accepted(Half::Reports)?,
            tokens_per_call: group.tokens_per_call(Half::Reports),
            speedup_where_chosen,
            speedup: timings.and_then(|timings| group.speed(Half::Reports, timings)),
            by_budget,
            drawn: group.nodes(Half::Reports, &tree),
            sequoia: self.sequoia(pair, shares, limits),
            minus_best: None,
            paths: tree.paths().to_vec(),
        };
        Some((tree, along))
    }

    fn sequoia(&self, pair: &Pair, shares: &Shares, limits: Limits) -> Option<SequoiaTree> {
        let vector = self.vector(shares, limits.branch, Half::Chooses);
        let rates = AcceptanceRates::new(vec![vector.clone()]).ok()?;
        let limits = TopologyLimits {
            budget: limits.budget,
            depth: limits.depth,
            branch: limits.branch,
        };
        let (tree, promised) = best_topology(&rates, limits).ok()?;
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
            ratio: if predicted > 0.0 {
                exact.mean / predicted
            } else {
                1.0
            },
        })
    }

    fn independence(&self, pair: &Pair, shares: &Shares) -> Option<Independence> {
        let drafts = if pair.branch > 0 {
            pair.branch
        } else {
            *pair.children.last()?
        };
        // By text: the share that is accepted at all, at each position.
        let accepted: Vec<(usize, Vec<f64>)> = self
            .texts
            .texts
            .iter()
            .zip(&shares.texts)
            .map(|(text, shares)| {
                let at = |position| shares.at(position, drafts).iter().take(drafts).sum();
                (text.cluster, (0..shares.len()).map(at).collect())
            })
            .collect();
        let levels = LEVELS.min(self.settings.limits.depth).max(1);
        let mut reached = vec![0.0; levels + 1];
        for (_, row) in &accepted {
            for window in row.windows(levels) {
                let mut product = 1.0;
                reached[0] += 1.0;
                for (sum, share) in reached[1..].iter_mut().zip(window) {
                    product *= share;
                    *sum += product;
                }
            }
        }
        let by_level = reached
            .windows(2)
            .filter(|pair| pair[0] > 0.0)
            .map(|pair| pair[1] / pair[0])
            .collect();
        let neighbours = || {
            accepted.iter().flat_map(|(cluster, row)| {
                row.windows(2)
                    .map(move |pair| (*cluster, [pair[0], pair[1]]))
            })
        };
        Some(Independence {
            scheme: pair.scheme.to_string(),
            verifier: pair.verifier.to_string(),
            drafts,
            vector: self.vector(shares, drafts, Half::All),
            by_level,
            correlation: correlation(neighbours().map(|(_, pair)| (0, pair)), 1),
            correlation_within_prompts: correlation(neighbours(), self.texts.clusters),
        })
    }
}

/// The correlation of pairs after each group's own means are taken out; `None` without spread.
fn correlation(
    pairs: impl Iterator<Item = (usize, [f64; 2])> + Clone,
    groups: usize,
) -> Option<f64> {
    let mut means = vec![([0.0; 2], 0.0); groups];
    for (group, pair) in pairs.clone() {
        let (sums, count) = &mut means[group];
        sums.iter_mut().zip(pair).for_each(|(a, b)| *a += b);
        *count += 1.0;
    }
    let (mut squares, mut product) = ([0.0; 2], 0.0);
    for (group, pair) in pairs {
        let (sums, count) = means[group];
        let off = [0, 1].map(|side| pair[side] - sums[side] / count);
        squares[0] += off[0] * off[0];
        squares[1] += off[1] * off[1];
        product += off[0] * off[1];
    }
    let spread = (squares[0] * squares[1]).sqrt();
    (spread > 1e-12).then(|| product / spread)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn correlation_takes_groups_out() {
        // Two groups with different means and opposite slopes inside.
        let pairs = [
            (0, [1.0, 2.0]),
            (0, [2.0, 1.0]),
            (1, [11.0, 12.0]),
            (1, [12.0, 11.0]),
        ];
        assert_eq!(correlation(pairs.into_iter(), 2), Some(-1.0));
        let all = pairs.map(|(_, pair)| (0, pair));
        assert!(correlation(all.into_iter(), 1).unwrap() > 0.9);
        assert_eq!(correlation([(0, [1.0, 2.0])].into_iter(), 1), None);
    }
}
