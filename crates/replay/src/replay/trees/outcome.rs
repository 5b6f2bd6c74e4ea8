//! A tree's rounds, prompt by prompt, and the estimates that follow.

use super::super::between::RoundBounds;
use super::super::measured::{add_each, ratio, within};
use super::super::timings::{Times, Timings};
use super::data::{Drawn, NodeRate, TreeDifference, TreeResult};
use specgap_core::rounds::TreeReplay;
use specgap_core::scheme::EngineName;
use specgap_core::tree::{DraftTree, Shape};
use specgap_statistics::{Clustered, Estimate, half_of};

/// The tree that the best one is compared with, where it is among the named: engines have it.
pub(super) const REFERENCE: &str = "eagle-25";

/// Rounds of one prompt with one tree.
#[derive(Clone, Debug, Default)]
pub(super) struct Rounds {
    pub(super) calls: f64,
    /// By number of levels.
    pub(super) by_levels: Vec<f64>,
    pub(super) accepted: f64,
    pub(super) whole: f64,
    pub(super) reached: Vec<f64>,
}

impl Rounds {
    pub(super) fn add(&mut self, other: &TreeReplay<f64>) {
        self.calls += other.calls;
        add_each(&mut self.by_levels, &other.rounds);
        add_each(&mut self.reached, &other.reached);
        self.accepted += other.accepted;
        self.whole += other.whole as f64;
    }
}

/// Which prompts.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Half {
    /// Those of half 0 ([`half_of`]).
    Chooses,
    /// The others.
    Reports,
    All,
}

impl Half {
    pub(super) fn has(self, cluster: usize) -> bool {
        match self {
            Self::Chooses => half_of(cluster) == 0,
            Self::Reports => half_of(cluster) == 1,
            Self::All => true,
        }
    }
}

/// A tree's rounds, prompt by prompt.
pub(super) struct Group<'a> {
    pub(super) shape: &'a Shape,
    pub(super) rounds: Vec<Rounds>,
    /// Where rows list some tokens only, and what they leave open is known.
    pub(super) bounds: Option<Vec<RoundBounds>>,
    /// By prompt the most that lossless rounds accept from the starts with room for the whole tree,
    /// where it was read.
    pub(super) most: Option<Vec<f64>>,
    pub(super) tokens: &'a [f64],
}

impl Group<'_> {
    pub(super) fn of(&self, half: Half) -> impl Iterator<Item = (&Rounds, f64)> + Clone {
        let prompts = self.rounds.iter().zip(self.tokens).enumerate();
        prompts
            .filter(move |(cluster, _)| half.has(*cluster))
            .map(|(_, (rounds, &tokens))| (rounds, tokens))
    }

    /// E[tau]; `None` where no text has room for the tree.
    pub(super) fn accepted(&self, half: Half) -> Option<Estimate> {
        let sums = self.of(half).map(|(one, _)| (one.accepted, one.whole));
        let ends = |bounds: &RoundBounds, _, end: usize| (bounds.accepted[end], bounds.whole);
        Some(within(ratio(sums)?, self.between(half, ends)))
    }

    /// The most that E[tau] is of any lossless rounds.
    pub(super) fn most_accepted(&self, half: Half) -> Option<Estimate> {
        let prompts = self.rounds.iter().zip(self.most.as_ref()?).enumerate();
        let here = prompts.filter(|(cluster, _)| half.has(*cluster));
        ratio(here.map(|(_, (rounds, &most))| (most, rounds.whole)))
    }

    pub(super) fn tokens_per_call(&self, half: Half) -> Estimate {
        let sums = self.of(half).map(|(rounds, tokens)| (tokens, rounds.calls));
        // The fewest calls make the most tokens a call.
        let ends = |bounds: &RoundBounds, tokens: f64, end: usize| (tokens, bounds.calls[1 - end]);
        within(Clustered::new(sums).estimate(), self.between(half, ends))
    }

    /// The ratio of two sums over prompts, at least and at most.
    pub(super) fn between(
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
    pub(super) fn speed(&self, half: Half, timings: &Timings) -> Option<Estimate> {
        let alone = timings.target_step.seconds;
        let ends =
            |bounds: &RoundBounds, tokens: f64, end: usize| (alone * tokens, bounds.time[1 - end]);
        let speed = self.timed(half, timings)?.estimate();
        Some(within(speed, self.between(half, ends)))
    }

    fn timed(&self, half: Half, timings: &Timings) -> Option<Times> {
        let nodes = self.shape.parent.len();
        let prompts = self.of(half).map(|(rounds, tokens)| {
            // Rounds by their draft tokens, and what their steps are fewer than these.
            let (mut by_nodes, mut steps) = (vec![0.0; nodes], 0.0);
            for (level, count) in rounds.by_levels.iter().enumerate() {
                let drafted = self.shape.nodes_to(level);
                by_nodes[drafted] += count;
                steps += count * (level as f64 - drafted as f64);
            }
            (tokens, by_nodes, steps)
        });
        timings.times(prompts, false)
    }

    /// Returns what another tree is compared with, of the prompts that report.
    pub(super) fn along(&self, timings: Option<&Timings>) -> Along {
        let calls = self.of(Half::Reports);
        Along {
            calls: calls
                .map(|(rounds, tokens)| (tokens, rounds.calls))
                .collect(),
            bounds: self.tokens_per_call(Half::Reports).truncation,
            timed: timings.and_then(|timings| self.timed(Half::Reports, timings)),
            speed: timings.and_then(|timings| self.speed(Half::Reports, timings)),
        }
    }

    pub(super) fn nodes(&self, half: Half, tree: &DraftTree) -> Drawn {
        let mut reached = vec![0.0; self.shape.parent.len()];
        for (rounds, _) in self.of(half) {
            add_each(&mut reached, &rounds.reached);
        }
        let whole = reached[0].max(f64::MIN_POSITIVE);
        let rate = |node: usize, path: &Vec<usize>| {
            let parent = reached[self.shape.parent[node]];
            NodeRate {
                path: path.clone(),
                reached: reached[node] / whole,
                accepted: match parent > 0.0 {
                    true => reached[node] / parent,
                    false => 0.0,
                },
            }
        };
        let paths = tree.paths().iter().enumerate();
        Drawn {
            nodes: paths.map(|(index, path)| rate(index + 1, path)).collect(),
        }
    }
}

/// Rounds of a tree along the prompts that report.
pub(super) struct Along {
    /// By prompt, its tokens and calls.
    pub(super) calls: Vec<(f64, f64)>,
    /// Of tokens per call, where rows list some tokens only.
    pub(super) bounds: Option<[f64; 2]>,
    pub(super) timed: Option<Times>,
    pub(super) speed: Option<Estimate>,
}

impl Along {
    pub(super) fn minus(&self, other: &Self) -> TreeDifference {
        let pairs = self.calls.iter().copied().zip(other.calls.iter().copied());
        let apart = |([a, b], [c, d]): ([f64; 2], [f64; 2])| [a - d, b - c];
        let ends = |one: &Self| one.speed?.truncation;
        let timed = self.timed.as_ref().zip(other.timed.as_ref());
        TreeDifference {
            tokens_per_call: within(
                Clustered::difference(pairs).estimate(),
                self.bounds.zip(other.bounds).map(apart),
            ),
            speedup: timed
                .map(|(one, its)| within(one.minus(its), ends(self).zip(ends(other)).map(apart))),
        }
    }
}

/// A named tree that the best one may be compared with.
pub(super) struct Candidate {
    /// On the prompts that choose.
    pub(super) worth: f64,
    pub(super) result: TreeResult,
    pub(super) tokens_per_call: Estimate,
    pub(super) along: Along,
}

impl Candidate {
    /// Tells whether it comes before another one: the tree of EAGLE, then what is worth more.
    pub(super) fn is_before(&self, other: &Self) -> bool {
        let eagle = |one: &Self| one.result.tree == REFERENCE;
        match (eagle(self), eagle(other)) {
            (true, false) => true,
            (false, true) => false,
            _ => self.worth > other.worth,
        }
    }

    /// Tells whether an engine drafts and verifies so unless told otherwise: of those that draft one token
    /// at a time a chain, of the others a tree.
    pub(super) fn is_default_of(&self, engine: EngineName) -> bool {
        let own = &self.result;
        let is_chain = own.depth == own.nodes;
        // Recursive rejection of one draft is token verification.
        let rule = match own.verifier.as_str() {
            "rrs" if is_chain => "token",
            rule => rule,
        };
        let mut defaults = engine.defaults().filter_map(|row| row.here);
        defaults.any(|here| (here.law, here.verifier, here.one) == (&own.scheme, rule, is_chain))
    }
}
