//! Claims about trees of drafts that are verified layer by layer; `docs/theory/tree-replay.md` has
//! the proof.

use super::Finding;
use super::claim::claims;
use super::family::{Family, drawing, half, part, whole};
use super::text::{Pair, extended};
use super::traversal::{Grown, Model, Next, Rounds, draft, each_model, each_tree, levels, texts};
use specgap_core::scheme::SchemeName;
use specgap_core::verifier::{VerifierName, verifier};
use specgap_number::distribution::Rational;
use specgap_number::number::Number;
use std::collections::BTreeMap;

claims! {
    holds "layer-lossless" by lossless,
        "a tree that is verified layer by layer writes the target's text, for any rule of a \
        node that is lossless where the target also has a token that is never drafted: with scores \
        a of a layer's nodes and shares s >= a of their sum 1, the children of v score s times what \
        the rule accepts of each, given its drafts, against (a/s) p. How many children the nodes of \
        a layer get may depend on all layers above, and their drafts on each other",
        "ours, after the abstract of Layer Verification (Cha, Cho, Yun, OpenReview XrqcUo6B6L), \
        whose text was not read: docs/theory/tree-replay.md, Theorem W",
        "Every tree, draft and coin in fractions, for each law with its rules: fixed \
        shapes, a chain against block verification, and two branches whose tokens come from one \
        number, U and U + 1/2 modulo 1, where traversal writes another text. Scores that are \
        averaged over what was drafted beside a token, its flow over the chance that it is drafted, \
        come to more than 1 in a layer, and no chance to stop is left: with p = q = (1/2, 1/2), two \
        i.i.d. drafts and an optimal plan to 2/3 each.";
    holds "layers-above-recursion" by above_recursion,
        "with shares in proportion to scores, recursive rejection of independent drafts keeps \
        by layers, text by text and at every depth, at least what it keeps from the root",
        "ours: docs/theory/tree-replay.md, Theorem W",
        "Every tree, draft and coin, in fractions; beside it what an optimal plan and level-4 \
        keep by layers and traversal of the same trees. By layers a plan keeps more of i.i.d. \
        drafts, level-4 less of strata.";
}

/// What a rule accepts at a node: by tuple of drafts of each, and by token of all of them.
pub(super) struct Step {
    pub(super) accepted: BTreeMap<Vec<u32>, Vec<Rational>>,
    pub(super) flow: Vec<Rational>,
}

/// A rule of the drafts of a node, lifted to trees; what it does by prefix, number of drafts and a/s.
pub(super) struct Lift<'a> {
    pub(super) pair: &'a Pair,
    pub(super) law: SchemeName,
    rule: VerifierName,
    /// Whether a node's share is its score, as from the root, and not in proportion to it.
    from_root: bool,
    steps: BTreeMap<(Vec<usize>, usize, Rational), Option<Step>>,
}

impl<'a> Lift<'a> {
    pub(super) fn new(pair: &'a Pair, law: SchemeName, rule: VerifierName) -> Self {
        Self {
            pair,
            law,
            rule,
            from_root: false,
            steps: BTreeMap::new(),
        }
    }

    /// Solves the rule against `part` of p, and a token that is never drafted for the rest.
    pub(super) fn step(
        &mut self,
        prefix: &[usize],
        drafts: usize,
        part: &Rational,
    ) -> Option<&Step> {
        let key = (prefix.to_vec(), drafts, part.clone());
        if !self.steps.contains_key(&key) {
            let step = self.solve(prefix, drafts, part);
            self.steps.insert(key.clone(), step);
        }
        self.steps.get(&key)?.as_ref()
    }

    fn solve(&self, prefix: &[usize], drafts: usize, part: &Rational) -> Option<Step> {
        let [p, q] = self.pair.rows(prefix)?;
        let target = p.iter().map(|p| p.times(part)).chain([part.complement()]);
        let draft = [&q[..], &[Rational::zero()]].concat();
        let problem = drawing(self.law, target.collect(), draft, drafts)?;
        let rule = verifier(self.rule, &problem).ok()?;
        let mut step = Step {
            accepted: BTreeMap::new(),
            flow: vec![Rational::zero(); p.len()],
        };
        problem.scheme().for_each_tuple_exact(&mut |tuple, mass| {
            let Some(law) = rule.conditional_exact(tuple) else {
                return;
            };
            for (&token, accepted) in tuple.iter().zip(&law.accepted) {
                step.flow[token as usize].gain(&mass.times(accepted));
            }
            step.accepted.insert(tuple.to_vec(), law.accepted);
        });
        Some(step)
    }

    /// Adds the round of a tree that is drawn with such a chance; returns that chance times the
    /// sum of scores below the root.
    fn see(&mut self, rounds: &mut Rounds, nodes: &[Grown], chance: &Rational) -> Option<Rational> {
        let mut scores = vec![Rational::zero(); nodes.len()];
        scores[0] = Rational::one();
        let mut owed: Vec<Vec<Rational>> = vec![Vec::new(); nodes.len()];
        let deepest = nodes.iter().map(|node| node.prefix.len()).max()?;
        let layer = |depth: usize| {
            let each = nodes.iter().enumerate();
            each.filter(move |(_, node)| node.prefix.len() == depth)
        };
        for depth in 0..=deepest {
            let all: Rational = layer(depth).map(|(at, _)| &scores[at]).sum();
            for (at, node) in layer(depth) {
                let [p, _] = self.pair.rows(&node.prefix)?;
                owed[at] = p.iter().map(|p| p.times(&scores[at])).collect();
                if node.children.is_empty() || scores[at].is_nil() {
                    continue;
                }
                let (share, part) = match self.from_root {
                    true => (scores[at].clone(), Rational::one()),
                    false => (scores[at].over(&all), all.clone()),
                };
                let step = self.step(&node.prefix, node.count?, &part)?;
                for (owed, flow) in owed[at].iter_mut().zip(&step.flow) {
                    *owed = owed.minus(&share.times(flow));
                }
                let accepted = step.accepted.get(&node.tuple(nodes)?)?;
                for (&child, accepted) in node.children.iter().zip(accepted) {
                    scores[child] = share.times(accepted);
                }
            }
        }
        let mut reach = chance.clone();
        for depth in (0..=deepest).rev() {
            let all: Rational = layer(depth).map(|(at, _)| &scores[at]).sum();
            let rest: Rational = layer(depth).map(|(at, _)| Rational::total(&owed[at])).sum();
            let free = all.complement();
            let whole = rest.plus(&free);
            if whole.is_nil() {
                continue;
            }
            for (at, node) in layer(depth) {
                rounds.gain_ends(&node.prefix, &owed[at], &reach.over(&whole));
            }
            reach = reach.times(&free).over(&whole);
        }
        Some(scores[1..].iter().sum::<Rational>().times(chance))
    }

    /// Returns what all trees of a model come to, and E[tau] by scores.
    fn rounds(&mut self, model: &Model<'_>) -> Option<(Rounds, Rational)> {
        self.rounds_of(&model.next())
    }

    /// Returns what all trees come to that the rule goes through from their roots.
    pub(super) fn rounds_from_root(&mut self, next: Next<'_>) -> Option<Rounds> {
        self.from_root = true;
        Some(self.rounds_of(next)?.0)
    }

    fn rounds_of(&mut self, next: Next<'_>) -> Option<(Rounds, Rational)> {
        let (mut rounds, mut kept) = (Rounds::default(), Some(Rational::zero()));
        each_tree((self.pair, self.law, next), &[], &mut |nodes, chance| {
            let tree = self.see(&mut rounds, nodes, chance);
            kept = kept.take().zip(tree).map(|(kept, tree)| kept + tree);
        });
        Some((rounds, kept?))
    }
}

/// Rules of an exact law for drafts of a law, whose trees are small.
pub(super) fn rules(law: SchemeName) -> impl Iterator<Item = VerifierName> {
    use VerifierName as Name;
    let rules = [Name::RRS, Name::LEVEL_4, Name::OPTIMAL].into_iter();
    rules.filter(move |rule| rule.is_lossless(law, 2))
}

fn lossless(finding: &mut Finding) {
    each_model(3207, 2, |model| {
        for rule in rules(model.law).filter(|_| model.root.len() == 1) {
            let found = Lift::new(model.pair, model.law, rule).rounds(model);
            let is_chain = rule == VerifierName::RRS && model.shape.children.iter().all(|&n| n < 2);
            let holds = found.is_some_and(|(rounds, kept)| {
                kept == rounds.kept()
                    && rounds.is_lossless(model.pair, model.texts)
                    && (!is_chain || kept == model.rounds().kept())
            });
            finding.require(holds, || format!("{}, {rule}: another text", model.name));
            finding.add("models with a rule, every tree, draft and coin", 1);
        }
    });
    coupled(finding);
    averaged(finding);
}

/// Two children of the root with a child each, whose tokens are drawn by one number.
fn coupled(finding: &mut Finding) {
    let mut family = Family::new(3208);
    let changed = "of these, another text by traversal";
    for _ in 0..12 {
        let pair = Pair::random(&mut family, 2, 3);
        let law = SchemeName::WITH_REPLACEMENT;
        let mut lift = Lift::new(&pair, law, VerifierName::RRS);
        let (mut layers, mut leaves) = (Rounds::default(), Rounds::default());
        let two = |nodes: &[Grown]| nodes[0].count.is_none().then_some((0usize, 2usize));
        each_tree((&pair, law, &two), &[], &mut |nodes, chance| {
            let cuts = [1, 2].map(|at: usize| draft(&pair, &nodes[at].prefix)[0].clone());
            for (tokens, length) in one_number(cuts) {
                let mut nodes = nodes.to_vec();
                for (at, token) in (1..).zip(tokens) {
                    let place = nodes.len();
                    nodes[at].children.push(place);
                    nodes[at].count = Some(1);
                    nodes.push(Grown {
                        prefix: extended(&nodes[at].prefix, token),
                        ..Grown::default()
                    });
                }
                let chance = chance.times(&length);
                lift.see(&mut layers, &nodes, &chance);
                leaves.see((&pair, law), (&nodes, &chance), &levels(&[0]));
            }
        });
        let texts = texts(2, 3);
        finding.require(layers.is_lossless(&pair, &texts), || {
            "branches of one number: another text".to_owned()
        });
        finding.add("models whose branches have one number", 1);
        finding.tally(changed, !leaves.is_lossless(&pair, &texts));
    }
    finding.enough(&[changed], 0);
}

/// The tokens of two branches that take 0 below a cut each, of U and U + 1/2 modulo 1, with the
/// lengths of where they are these.
fn one_number(cuts: [Rational; 2]) -> Vec<([usize; 2], Rational)> {
    let shifted = |u: &Rational| (u + half()).fract();
    let mut ends = vec![cuts[0].clone(), shifted(&cuts[1]), half(), whole(1)];
    ends.sort();
    let mut low = Rational::zero();
    let mut pieces = Vec::new();
    for high in ends {
        let middle = (&low + &high) * half();
        let tokens = [(&middle, 0), (&shifted(&middle), 1)];
        let tokens = tokens.map(|(u, at)| usize::from(*u >= cuts[at]));
        pieces.push((tokens, &high - low));
        low = high;
    }
    pieces.retain(|(_, length)| !length.is_nil());
    pieces
}

/// p = q = (1/2, 1/2) and two i.i.d. drafts: what tokens score where scores are averaged.
fn averaged(finding: &mut Finding) {
    let pair = Pair::new(2, 1, || [(); 2].map(|()| vec![half(); 2]));
    let mut lift = Lift::new(&pair, SchemeName::WITH_REPLACEMENT, VerifierName::OPTIMAL);
    let step = lift.step(&[], 2, &Rational::one());
    let scores = step.map(|step| Rational::total(&step.flow) / part(3, 4));
    finding.require(scores == Some(part(4, 3)), || {
        format!("averaged scores of two tokens come to {scores:?}")
    });
}

/// Laws with a rule, and what their trees keep in the mean from the root, by layers, by traversal
/// with one pass and with four; and how many keep more by layers than by the last.
const BESIDE: [(SchemeName, VerifierName, [&str; 5]); 2] = [
    (
        SchemeName::WITH_REPLACEMENT,
        VerifierName::OPTIMAL,
        [
            "i.i.d. drafts: an optimal plan from the root",
            "i.i.d. drafts: the plan by layers",
            "i.i.d. drafts: traversal",
            "i.i.d. drafts: traversal-4",
            "i.i.d. drafts: models with more by layers than by traversal-4",
        ],
    ),
    (
        SchemeName::STRATIFIED,
        VerifierName::LEVEL_4,
        [
            "strata: level-4 from the root",
            "strata: level-4 by layers",
            "strata: traversal",
            "strata: traversal-4",
            "strata: models with more by layers than by traversal-4",
        ],
    ),
];

fn above_recursion(finding: &mut Finding) {
    let (mut texts, mut models) = (0, 0.0);
    let mut beside = [([0.0; 4], 0u64); 2];
    finding.count("texts", 0);
    let more = "prefixes of which more is kept";
    each_model(3209, 4, |model| {
        if model.root.len() == 1 {
            return;
        }
        let both = |rule| {
            let mut lift = Lift::new(model.pair, model.law, rule);
            let layers = lift.rounds(model)?.0;
            Some([lift.rounds_from_root(&model.next())?, layers])
        };
        if model.law != SchemeName::STRATIFIED
            && let Some([down, layers]) = both(VerifierName::RRS)
        {
            for text in model.texts {
                let ways = [&down, &layers].map(|rounds| rounds.ways(model.pair, text));
                for depth in 1..text.len() {
                    let [down, layers] =
                        [0, 1].map(|of: usize| Rational::total(&ways[of][depth..]));
                    finding.require(layers >= down, || {
                        format!("{} {text:?}: less by layers", model.name)
                    });
                    finding.tally(more, layers > down);
                }
                texts += 1;
            }
        }
        for ((law, rule, _), (sums, above)) in BESIDE.iter().zip(&mut beside) {
            if model.law != *law {
                continue;
            }
            models += 0.5;
            let one = Rounds::of(model.pair, *law, &model.next(), &levels(&[0]));
            if let Some([down, layers]) = both(*rule) {
                let all = [down, layers, one, model.rounds()].map(|rounds| rounds.kept());
                *above += u64::from(all[1] > all[3]);
                for (sum, kept) in sums.iter_mut().zip(&all) {
                    *sum += kept.to_f64();
                }
            }
        }
    });
    finding.add("texts", texts);
    finding.enough(&[more], 50);
    for ((.., names), (sums, above)) in BESIDE.iter().zip(&beside) {
        for (name, sum) in names.iter().zip(sums) {
            finding.number(name, sum / models);
        }
        finding.count(names[4], *above);
    }
    finding.count("models of either", models as u64);
}
