//! Claims about trees of drafts that are verified from their leaves; `docs/theory/tree-replay.md` has
//! the proofs.

use super::Finding;
use super::claim::claims;
use super::family::{Family, half, part, whole};
use super::text::{Pair, extended};
use specgap_core::rounds::{
    DrawnNode, TextToken, TreeEnd, ends_from_leaves, kept_from_leaves, most_kept,
};
use specgap_core::scheme::{MadeOf, SchemeName};
use specgap_core::tree::{DraftTree, Shape};
use specgap_number::distribution::{Draft, Rational, Target};
use specgap_number::number::Number;
use specgap_plan::{Levels, OfferedRows};
use std::collections::{BTreeMap, BTreeSet};

claims! {
    holds "traversal-lossless" by lossless,
        "traversal of i.i.d. drafts or of strata, with passes at falling levels at the root, \
        writes the target's text, also if which node is expanded next, and with how many children, \
        depends on all that was drawn before, other branches included, as long as nothing that was \
        drawn is dropped",
        "traversal verification (arXiv 2505.12398) for i.i.d. drafts; strata, levels and orders \
        of expansion are ours: docs/theory/tree-replay.md, Theorem V",
        "Every tree, draft and coin in fractions: fixed shapes, and trees that grow where \
        the draft is likeliest, with numbers of children that follow other branches. A drawn child \
        that is dropped because of its own probability changes the text's law, which the check \
        finds too.";
    holds "expansion-order-lossless" by any_order,
        "a tree that is verified from its root by a lossless rule of its children's law writes \
        the target's text, whichever node is expanded next and with how many children, other \
        branches looked at, as long as nothing that was drawn is dropped: it may have exactly N \
        nodes every round",
        "ours: docs/theory/tree-replay.md, Theorem P",
        "The verifier comes to a node by what was drawn and tossed before its children \
        were, so that these are fresh. Trees that grow where the draft is likeliest, with numbers of \
        children that follow other branches, by every tree, draft and coin, in fractions.";
    holds "traversal-replay" by replayed,
        "given the text, a tree verified from its leaves keeps its first d tokens with the sum \
        over offers of the chance that the offer is made to these tokens times its weight, over \
        p(y_1..y_d); offers and weights follow from rows on the text alone, where children that \
        agree are nodes of their own",
        "ours: docs/theory/tree-replay.md, Theorem R",
        "The replay along each text, in f64, against every tree, draft and coin in \
        fractions, for i.i.d. drafts and both draws of strata, one pass and four levels.";
    holds "traversal-above-recursion" by above_recursion,
        "with one pass and independent drafts, a tree verified from its leaves keeps, text by \
        text and at every depth, at least what the same passes node by node from the root keep",
        "ours: docs/theory/tree-replay.md, Theorem V2",
        "Both by every tree, draft and coin, in fractions.";
    holds "drafted-bound" by bounded,
        "no lossless round keeps more of its tree than E[tau] <= sum over prefixes x of \
        min(p(x), P(x is drafted)), and text by text this is what rows on the text say",
        "ours: docs/theory/tree-replay.md",
        "P(x is drafted) by every tree in fractions against the formula along texts, and \
        what traversal keeps, with one pass and four levels, against the bound.";
}

/// A node of a tree that is being drawn.
#[derive(Clone, Default)]
pub(super) struct Grown {
    pub(super) prefix: Vec<usize>,
    /// Which child it is, of whom, up to the root.
    pub(super) ranks: Vec<usize>,
    /// How many children it was to get, once that is decided.
    pub(super) count: Option<usize>,
    pub(super) children: Vec<usize>,
}

impl Grown {
    /// The tokens of its children.
    pub(super) fn tuple(&self, nodes: &[Self]) -> Option<Vec<u32>> {
        let children = self.children.iter();
        let last = |&child: &usize| Some(*nodes[child].prefix.last()? as u32);
        children.map(last).collect()
    }
}

/// The node that is expanded next, and with how many children.
pub(super) type Next<'a> = &'a dyn Fn(&[Grown]) -> Option<(usize, usize)>;

/// Calls with all trees that may be drawn behind a prefix, each with its chance.
pub(super) fn each_tree(
    trees: (&Pair, SchemeName, Next<'_>),
    prefix: &[usize],
    visit: &mut dyn FnMut(&[Grown], &Rational),
) {
    let root = Grown {
        prefix: prefix.to_vec(),
        ..Grown::default()
    };
    grow(trees, &[root], &Rational::one(), visit);
}

fn grow(
    (pair, law, next): (&Pair, SchemeName, Next<'_>),
    nodes: &[Grown],
    chance: &Rational,
    visit: &mut dyn FnMut(&[Grown], &Rational),
) {
    let Some((node, count)) = next(nodes) else {
        return visit(nodes, chance);
    };
    for (tuple, mass) in tuples(law, &draft(pair, &nodes[node].prefix), count) {
        let mut more = nodes.to_vec();
        more[node].count = Some(count);
        for (rank, &token) in tuple.iter().enumerate() {
            let child = more.len();
            more[node].children.push(child);
            more.push(Grown {
                prefix: extended(&nodes[node].prefix, token as usize),
                ranks: extended(&nodes[node].ranks, rank),
                ..Grown::default()
            });
        }
        grow((pair, law, next), &more, &chance.times(&mass), visit);
    }
}

pub(super) fn draft(pair: &Pair, prefix: &[usize]) -> Vec<Rational> {
    pair.rows(prefix).map_or_else(Vec::new, |[_, q]| q.clone())
}

pub(super) fn tuples(
    law: SchemeName,
    q: &[Rational],
    children: usize,
) -> Vec<(Vec<u32>, Rational)> {
    let mut all = Vec::new();
    if let (MadeOf::OneDraft(make), Ok(draft)) =
        (law.entry().made_of, Draft::from_rationals(q.to_vec()))
    {
        make(draft, children).for_each_tuple_exact(&mut |tuple, mass| {
            all.push((tuple.to_vec(), mass.clone()));
        });
    }
    all
}

/// |F|, by its definition; none of i.i.d. drafts, which have no strata.
fn sure(law: SchemeName, q: &[Rational], drafts: usize) -> Option<usize> {
    if law == SchemeName::WITH_REPLACEMENT {
        return None;
    }
    let mut falling: Vec<&Rational> = q.iter().filter(|q| !q.is_nil()).collect();
    falling.sort_by(|a, b| b.cmp(a));
    let (mut rest, mut sure) = (Rational::one(), 0);
    for q in falling {
        if sure + 1 >= drafts || whole(drafts - sure).times(q) < rest {
            break;
        }
        rest = rest.minus(q);
        sure += 1;
    }
    Some(sure)
}

/// Expands the nodes of a shape in its order.
fn fixed(shape: &Shape) -> impl Fn(&[Grown]) -> Option<(usize, usize)> {
    |nodes| {
        nodes.iter().enumerate().find_map(|(at, node)| {
            let place = (node.ranks.iter()).fold(0, |place, &rank| shape.child(place, rank));
            let count = shape.children[place];
            (node.count.is_none() && count > 0).then_some((at, count))
        })
    }
}

/// Expands the likeliest node, four nodes in all and as deep as there are rows: two children where an
/// even number of nodes, whatever the branch, ends in token 0.
pub(super) fn following(pair: &Pair) -> impl Fn(&[Grown]) -> Option<(usize, usize)> {
    |nodes| {
        let room = 4usize.saturating_sub(nodes.len() - 1);
        let zeros = nodes.iter().filter(|node| node.prefix.last() == Some(&0));
        let count = if zeros.count() % 2 == 0 { 2 } else { 1 };
        let is_open = |node: &Grown| node.count.is_none() && node.prefix.len() + 1 < pair.tokens();
        let open = (0..nodes.len()).filter(|&at| is_open(&nodes[at]));
        let likeliest = open.max_by_key(|&at| pair.drafted(&nodes[at].prefix, 0))?;
        (room > 0).then_some((likeliest, count.min(room)))
    }
}

pub(super) fn levels(of: &[u32]) -> Vec<Rational> {
    of.iter().map(|&tenths| part(tenths, 10)).collect()
}

/// Returns where the round of a tree that is drawn with such a chance ends, and how often it does.
fn ends(
    (pair, law): (&Pair, SchemeName),
    (nodes, chance): (&[Grown], &Rational),
    root: &[Rational],
) -> Vec<(TreeEnd, Rational)> {
    let drawn = nodes.iter().map(|node| {
        let (p, q) = (pair.rows(&node.prefix), draft(pair, &node.prefix));
        let count = node.count.unwrap_or(0);
        DrawnNode {
            token: node.prefix.last().map_or(0, |&token| token as u32),
            target: p.map_or_else(Vec::new, |[p, _]| p.clone()),
            drafts: node.children.clone(),
            tuples: match count {
                0 => Vec::new(),
                _ => tuples(law, &q, count),
            },
            sure: sure(law, &q, count.max(1)),
        }
    });
    let mut left = chance.clone();
    let ends = ends_from_leaves(drawn.collect(), [root, &levels(&[0])]).into_iter();
    ends.map(|end| {
        let mass = left.times(&end.chance);
        left = left.minus(&mass);
        (end, mass)
    })
    .collect()
}

/// What all trees of a model do: by the tokens that are kept and the one behind them, how often; and
/// how often each prefix is drafted.
#[derive(Default)]
pub(super) struct Rounds {
    ended: BTreeMap<Vec<usize>, Rational>,
    drafted: BTreeMap<Vec<usize>, Rational>,
}

impl Rounds {
    pub(super) fn of(pair: &Pair, law: SchemeName, next: Next<'_>, root: &[Rational]) -> Self {
        let mut rounds = Self::default();
        each_tree((pair, law, next), &[], &mut |nodes, chance| {
            rounds.see((pair, law), (nodes, chance), root);
        });
        rounds
    }

    /// Adds the round of a tree that is drawn with such a chance.
    pub(super) fn see(
        &mut self,
        law: (&Pair, SchemeName),
        (nodes, chance): (&[Grown], &Rational),
        root: &[Rational],
    ) {
        let prefixes: BTreeSet<_> = nodes.iter().map(|node| &node.prefix).collect();
        for prefix in prefixes {
            *self.drafted.entry(prefix.clone()).or_default() += chance;
        }
        for (end, mass) in ends(law, (nodes, chance), root) {
            self.gain_ends(&nodes[end.node].prefix, &end.law, &mass);
        }
    }

    /// Verifies a drawn tree from a node on, to which a round comes with such a chance: its children
    /// alone, then what is below the one that is kept.
    fn verify_down(
        &mut self,
        law: (&Pair, SchemeName),
        nodes: &[Grown],
        (node, chance): (usize, &Rational),
    ) {
        let own = &nodes[node];
        let mut alone = vec![own.clone()];
        alone[0].children = (1..=own.children.len()).collect();
        alone.extend(own.children.iter().map(|&child| Grown {
            count: None,
            children: Vec::new(),
            ..nodes[child].clone()
        }));
        for (end, mass) in ends(law, (&alone, chance), &levels(&[8, 5, 2, 0])) {
            match end.node.checked_sub(1) {
                Some(rank) => self.verify_down(law, nodes, (own.children[rank], &mass)),
                None => self.gain_ends(&own.prefix, &end.law, &mass),
            }
        }
    }

    /// Adds what comes out behind the tokens that are kept.
    pub(super) fn gain_ends(&mut self, kept: &[usize], law: &[Rational], mass: &Rational) {
        for (token, p) in law.iter().enumerate() {
            *self.ended.entry(extended(kept, token)).or_default() += mass * p;
        }
    }

    /// For each number of tokens kept, the chance that the round keeps so many of a text, and that
    /// the text comes out.
    pub(super) fn ways(&self, pair: &Pair, text: &[usize]) -> Vec<Rational> {
        (0..text.len())
            .map(|kept| {
                let ended = self.ended.get(&text[..=kept]).cloned();
                ended.unwrap_or_default() * pair.written(text, kept + 1)
            })
            .collect()
    }

    /// E[tau].
    pub(super) fn kept(&self) -> Rational {
        let deep = self.ended.iter().filter(|(ended, _)| ended.len() > 1);
        deep.map(|(ended, mass)| whole(ended.len() as u32 - 1).times(mass))
            .sum()
    }

    pub(super) fn is_lossless(&self, pair: &Pair, texts: &[Vec<usize>]) -> bool {
        (texts.iter()).all(|text| Rational::total(&self.ways(pair, text)) == pair.written(text, 0))
    }
}

/// All texts, those that the target never writes included.
pub(super) fn texts(vocab: usize, length: usize) -> Vec<Vec<usize>> {
    let digit = |code: usize, at: usize| code / vocab.pow(at as u32) % vocab;
    let codes = 0..vocab.pow(length as u32);
    let text = |code| (0..length).map(|at| digit(code, at)).collect();
    codes.map(text).collect()
}

const TREES: [(&str, usize); 6] = [
    ("[[0],[0,0],[0,0,0]]", 2),
    ("[[0],[1],[0,0]]", 3),
    ("[[0],[1],[0,0],[0,1],[1,0]]", 3),
    ("[[0],[1],[0,0],[1,0],[0,0,0]]", 2),
    ("[[0],[1],[2],[1,0],[2,0]]", 4),
    ("[[0],[1],[0,0],[0,1],[0,2]]", 3),
];

pub(super) const LAWS: [SchemeName; 3] = [
    SchemeName::WITH_REPLACEMENT,
    SchemeName::STRATIFIED,
    SchemeName::STRATIFIED_INDEPENDENT,
];

/// Calls with models of every shape, law and number of levels at the root.
pub(super) fn each_model(seed: u64, models: usize, mut visit: impl FnMut(&Model<'_>)) {
    let mut family = Family::new(seed);
    for (tree, vocab) in TREES {
        let Ok(shape) = DraftTree::from_json(tree).map(|tree| tree.shape()) else {
            continue;
        };
        for _ in 0..models {
            let pair = Pair::random(&mut family, vocab, shape.levels() + 1);
            let texts = texts(vocab, shape.levels() + 1);
            for law in LAWS {
                for (root, plan) in [
                    (levels(&[0]), Levels::ONE),
                    (levels(&[8, 5, 2, 0]), Levels::FOUR),
                ] {
                    visit(&Model {
                        pair: &pair,
                        shape: &shape,
                        law,
                        texts: &texts,
                        root,
                        plan,
                        name: format!("{law} {tree}"),
                    });
                }
            }
        }
    }
}

pub(super) struct Model<'a> {
    pub(super) pair: &'a Pair,
    pub(super) shape: &'a Shape,
    pub(super) law: SchemeName,
    pub(super) texts: &'a [Vec<usize>],
    pub(super) root: Vec<Rational>,
    plan: Levels<'static>,
    pub(super) name: String,
}

impl Model<'_> {
    pub(super) fn rounds(&self) -> Rounds {
        Rounds::of(self.pair, self.law, &self.next(), &self.root)
    }

    /// Expands the nodes of its shape in their order.
    pub(super) fn next(&self) -> impl Fn(&[Grown]) -> Option<(usize, usize)> {
        fixed(self.shape)
    }
}

/// Calls with models whose trees are to follow other branches, and each law.
pub(super) fn each_free(seed: u64, mut visit: impl FnMut(&Pair, &[Vec<usize>], SchemeName)) {
    let mut family = Family::new(seed);
    for (vocab, tokens) in [(2, 3), (3, 3), (2, 4)] {
        for _ in 0..4 {
            let pair = Pair::random(&mut family, vocab, tokens);
            let texts = texts(vocab, tokens);
            for law in LAWS {
                visit(&pair, &texts, law);
            }
        }
    }
}

fn lossless(finding: &mut Finding) {
    each_model(3201, 3, |model| {
        let holds = model.rounds().is_lossless(model.pair, model.texts);
        finding.require(holds, || format!("{}: another text", model.name));
        finding.add("models of fixed shape, every tree, draft and coin", 1);
    });
    let changed = "of these, another text where a drawn child is dropped";
    each_free(3202, |pair, texts, law| {
        let rounds = Rounds::of(pair, law, &following(pair), &levels(&[8, 5, 2, 0]));
        finding.require(rounds.is_lossless(pair, texts), || {
            format!("{law}: another text of free shapes")
        });
        finding.add("models whose shape follows other branches", 1);
        finding.tally(changed, !dropping(pair, law).is_lossless(pair, texts));
    });
    finding.enough(&[changed], 0);
}

fn any_order(finding: &mut Finding) {
    each_free(3206, |pair, texts, law| {
        let mut rounds = Rounds::default();
        each_tree((pair, law, &following(pair)), &[], &mut |nodes, chance| {
            rounds.verify_down((pair, law), nodes, (0, chance));
        });
        let holds = rounds.is_lossless(pair, texts);
        finding.require(holds, || format!("{law}: another text"));
        finding.add("models, every tree, draft and coin", 1);
    });
}

/// Two children of the root, of which the second is dropped, and the node held for one of one child,
/// where the draft gives it less than a half.
fn dropping(pair: &Pair, law: SchemeName) -> Rounds {
    let mut rounds = Rounds::default();
    let two = |nodes: &[Grown]| nodes[0].count.is_none().then_some((0, 2));
    each_tree((pair, law, &two), &[], &mut |nodes, chance| {
        let mut kept = nodes.to_vec();
        let second = nodes[0].children.get(1);
        if second.is_some_and(|&node| pair.drafted(&nodes[node].prefix, 0) < half()) {
            kept[0].children.truncate(1);
            kept[0].count = Some(1);
        }
        rounds.see((pair, law), (&kept, chance), &levels(&[0]));
    });
    rounds
}

/// Returns what the replay reads of a text.
fn along<'a>(
    model: &Model<'_>,
    text: &[usize],
    rows: &'a mut Vec<Vec<(usize, OfferedRows)>>,
) -> Vec<TextToken<'a>> {
    let counts = counts(model.shape);
    let places = text.len() - 1;
    rows.clear();
    rows.extend((0..places).map(|at| offered(model, &text[..at], &counts)));
    let each = rows.iter().enumerate().map(|(at, rows)| TextToken {
        rows,
        token: text[at] as u32,
        at: model.pair.rows(&text[..at]).map_or([0.0; 2], |rows| {
            [0, 1].map(|of: usize| rows[of][text[at]].to_f64())
        }),
    });
    each.collect()
}

/// The numbers of children that nodes of a shape have.
pub(super) fn counts(shape: &Shape) -> BTreeSet<usize> {
    let parents = shape.children.iter().filter(|&&count| count > 0);
    parents.copied().collect()
}

fn offered(
    model: &Model<'_>,
    prefix: &[usize],
    counts: &BTreeSet<usize>,
) -> Vec<(usize, OfferedRows)> {
    let Some([p, q]) = model.pair.rows(prefix) else {
        return Vec::new();
    };
    let both = (
        Target::from_rationals(p.clone()),
        Draft::from_rationals(q.clone()),
    );
    let (Ok(p), Ok(q)) = both else {
        return Vec::new();
    };
    let rows = (p.probabilities(), q.probabilities());
    let Some(children) = model.law.entry().children else {
        return Vec::new();
    };
    (counts.iter())
        .map(|&n| (n, OfferedRows::of_rows(rows, children, n)))
        .collect()
}

/// Calls for each text that the target can write with its chance and, by number of tokens, the
/// chance that a round keeps them.
fn each_kept(
    model: &Model<'_>,
    rounds: &Rounds,
    mut visit: impl FnMut(&[usize], &Rational, &[Rational]),
) {
    for text in model.texts {
        let p = model.pair.written(text, 0);
        if p.is_nil() {
            continue;
        }
        let ways = rounds.ways(model.pair, text);
        let kept: Vec<Rational> = (0..ways.len())
            .map(|depth| Rational::total(&ways[depth..]).over(&p))
            .collect();
        visit(text, &p, &kept);
    }
}

fn replayed(finding: &mut Finding) {
    let mut widest = 0.0f64;
    let texts = "texts, each by every tree, draft and coin";
    each_model(3203, 2, |model| {
        let mut reach = vec![0.0; model.shape.parent.len()];
        each_kept(model, &model.rounds(), |text, _, kept| {
            let mut rows = Vec::new();
            let text = along(model, text, &mut rows);
            let found = kept_from_leaves(model.shape, model.plan, &text, &mut reach);
            for (found, kept) in found.iter().zip(kept) {
                widest = widest.max((found - kept.to_f64()).abs());
            }
            finding.add(texts, 1);
        });
    });
    finding.require(widest < 1e-12, || {
        format!("the replay is off by {widest:e}")
    });
    finding.enough(&[texts], 1000);
}

fn above_recursion(finding: &mut Finding) {
    let more = "prefixes of which more is kept";
    each_model(3204, 3, |model| {
        if model.law == SchemeName::STRATIFIED || model.root.len() > 1 {
            return;
        }
        let shares = Shares::new(model);
        each_kept(model, &model.rounds(), |text, _, kept| {
            let down = shares.kept(model, text);
            finding.add("texts", 1);
            for (kept, down) in kept.iter().zip(&down) {
                finding.require(kept >= down, || {
                    format!("{} {text:?}: {kept}, from the root {down}", model.name)
                });
                finding.tally(more, kept > down);
            }
        });
    });
    finding.enough(&[more], 50);
}

/// P(child k is kept, and is y) of a node alone by one pass, by prefix and number of children.
struct Shares(BTreeMap<(Vec<usize>, usize), Vec<Vec<Rational>>>);

impl Shares {
    fn new(model: &Model<'_>) -> Self {
        let (pair, law) = (model.pair, model.law);
        let mut all = BTreeMap::new();
        for (prefix, [p, _]) in pair.all_rows() {
            for (node, &count) in model.shape.children.iter().enumerate() {
                let key = (prefix.clone(), count);
                if count == 0 || model.shape.depth[node] != prefix.len() || all.contains_key(&key) {
                    continue;
                }
                let mut shares = vec![vec![Rational::zero(); p.len()]; count];
                let next = |nodes: &[Grown]| nodes[0].count.is_none().then_some((0, count));
                each_tree((pair, law, &next), prefix, &mut |nodes, chance| {
                    for (end, mass) in ends((pair, law), (nodes, chance), &levels(&[0])) {
                        let kept = &nodes[end.node];
                        let last = kept.ranks.first().zip(kept.prefix.last());
                        last.into_iter()
                            .for_each(|(&rank, &token)| shares[rank][token] += &mass);
                    }
                });
                all.insert(key, shares);
            }
        }
        Self(all)
    }

    /// Returns what verification from the root keeps of a text, by number of tokens.
    fn kept(&self, model: &Model<'_>, text: &[usize]) -> Vec<Rational> {
        let mut kept = vec![Rational::zero(); text.len()];
        let mut reach = vec![Rational::zero(); model.shape.parent.len()];
        reach[0] = Rational::one();
        for (node, &depth) in model.shape.depth.iter().enumerate() {
            kept[depth].gain(&reach[node].clone());
            let (prefix, count) = (text[..depth].to_vec(), model.shape.children[node]);
            let (Some(shares), Some([p, _])) = (
                self.0.get(&(prefix, count)),
                model.pair.rows(&text[..depth]),
            ) else {
                continue;
            };
            for (rank, share) in shares.iter().enumerate() {
                let share = share[text[depth]].over(&p[text[depth]]);
                reach[model.shape.child(node, rank)] = reach[node].times(&share);
            }
        }
        kept
    }
}

fn bounded(finding: &mut Finding) {
    let mut widest = 0.0f64;
    each_model(3205, 2, |model| {
        let (mut kept_in_all, mut most_in_all) = (Rational::zero(), Rational::zero());
        let rounds = model.rounds();
        each_kept(model, &rounds, |text, p, kept| {
            let mut rows = Vec::new();
            let by_rows = most_kept(model.shape, &along(model, text, &mut rows));
            for (depth, kept) in kept.iter().enumerate().skip(1) {
                let prefix = &text[..depth];
                let chance = model.pair.written(prefix, 0);
                let drafted = rounds.drafted.get(prefix).cloned().unwrap_or_default();
                let most = drafted.smaller(&chance).over(&chance);
                widest = widest.max((most.to_f64() - by_rows[depth - 1]).abs());
                kept_in_all += kept * p;
                most_in_all += most * p;
            }
        });
        finding.require(kept_in_all <= most_in_all, || {
            format!("{}: {kept_in_all}, above {most_in_all}", model.name)
        });
        finding.add("models", 1);
        let attains = kept_in_all == most_in_all;
        finding.tally("of these, models that attain the bound", attains);
    });
    finding.require(widest < 1e-12, || {
        format!("rows on the text say {widest:e} else")
    });
}
