//! Trees of drafts: what is drawn, and what becomes of it.
//!
//! Every rule here is lossless: the text has the target's law whatever the draft is. What is
//! said of a rule's chances ([`ends`]) is what its sampler ([`settle_tree`]) does; tests go
//! through every way that draws and coins may fall.

use super::rounds::{Chance, by_block, residual, settle, within};
use super::sampling::Law;
use specgap_core::rule::{Drafts, InTurn, RuleName, Verifies};
use specgap_core::scheme::SchemeName;
use specgap_core::tree::{Shape, Shaped, heaviest};
use specgap_plan::{Children, Levels, OfferedRows, Offers, RatioBins, Selection};
use std::collections::BTreeMap;

/// The most leaves of a tree: the target runs over the paths to them side by side.
const PATHS: usize = 256;

/// The law of a tree's children that a rule needs; of several, the first.
pub fn children_of_rule(rule: RuleName) -> SchemeName {
    let own = rule.laws().next();
    own.unwrap_or(SchemeName::WITH_REPLACEMENT)
}

/// What is drafted a round: a tree, and the law of its children.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drawing<'a> {
    pub tree: Shaped<'a>,
    pub law: SchemeName,
}

impl Drawing<'_> {
    /// All rules that settle what is drafted so.
    pub(super) fn rules(self) -> Vec<RuleName> {
        let settles = |rule: &RuleName| refused(self.tree, self.law, *rule).is_none();
        RuleName::ALL.into_iter().filter(settles).collect()
    }

    /// Draws what stands behind a node, given q there; no more than there is room for, which no tree
    /// of one shape needs that is not refused.
    pub(super) fn below(
        self,
        (node, room): (&Node, usize),
        q: &Law,
        chance: &mut dyn Chance,
        scratch: &mut Vec<f64>,
    ) -> Vec<Node> {
        let below = |token: u32, place, chance| Node {
            place,
            chance,
            token: i64::from(token),
            depth: node.depth + 1,
            ..Node::default()
        };
        match self.tree {
            Shaped::One(tree) => {
                let count = tree.children_of(node.place);
                let drawn = children(self.law, q, count, chance, scratch).into_iter();
                let place = |rank| tree.child(node.place, rank);
                let each = (0..).zip(drawn);
                each.map(|(rank, token)| below(token, place(rank), 1.0))
                    .collect()
            }
            Shaped::Priced(price) => {
                let row: Vec<f64> = q.probabilities().collect();
                let ids = heaviest(&row, price.heaviest);
                let masses: Vec<f64> = ids.iter().map(|&id| row[id]).collect();
                let count = price.children(&masses, node.depth, node.chance).min(room);
                let drawn = children(self.law, q, count, chance, scratch).into_iter();
                let accepted = |token: u32| {
                    let place = ids.iter().position(|&id| id == token as usize);
                    price.chance(&masses, place.unwrap_or(ids.len()), count)
                };
                drawn
                    .map(|token| below(token, 0, node.chance * accepted(token)))
                    .collect()
            }
        }
    }

    /// Tells whether something may stand behind a node.
    pub(super) fn goes_on(self, node: &Node) -> bool {
        match self.tree {
            Shaped::One(tree) => tree.children_of(node.place) > 0,
            Shaped::Priced(price) => node.depth < price.levels && node.chance > price.price,
        }
    }
}

/// How many children a node may still get, so that no more paths run side by side than can.
pub(super) fn room(nodes: &[Node]) -> usize {
    let paths = nodes.iter().filter(|node| node.children.is_empty());
    (PATHS + 1).saturating_sub(paths.count())
}

/// Why a tree is not drafted so, or a rule does not settle it, if that is so.
pub(super) fn refused(tree: Shaped<'_>, law: SchemeName, rule: RuleName) -> Option<String> {
    let one = match tree {
        Shaped::One(tree) => Some(tree),
        Shaped::Priced(_) => None,
    };
    if one.is_some_and(|tree| tree.drafts() == 0) {
        return Some("a tree without drafts".to_owned());
    }
    if let Some(paths) = one.map(Shape::leaves).filter(|&paths| paths > PATHS) {
        return Some(format!(
            "a tree of {paths} paths; at most {PATHS} run side by side: draft fewer children or levels"
        ));
    }
    let entry = rule.entry();
    if entry.verifies == Verifies::Chain || !entry.decoded {
        return Some(format!(
            "verifier {rule} settles chains, not trees; give ⟨length⟩ alone, or verifier rrs, \
             rrs-wo, level-4, spechub, traversal or traversal-4"
        ));
    }
    let drawn = match entry.drafts {
        Drafts::Drawn(_) => rule.laws().any(|own| own == law),
        // Passes go over children of a law that does not depend on the others.
        Drafts::Any if rule == RuleName::TRAVERSAL_4 => law.entry().children.is_some(),
        Drafts::Likeliest | Drafts::Any => law.entry().child_by_child,
    };
    if !drawn {
        return Some(format!(
            "verifier {rule} is not for children that are drawn so; leave out ⟨law⟩"
        ));
    }
    if let Some(only) = law.entry().only
        && tree.counts().iter().any(|&count| count != only)
    {
        return Some(format!(
            "{law} children are pairs: give ⟨tree spechub-binary-D⟩, or another tree with two \
             children at every node"
        ));
    }
    let is_paths = one.is_some_and(Shape::is_paths);
    (entry.verifies == Verifies::Paths && !is_paths).then(|| {
        format!(
            "verifier {rule} selects one of several paths; give ⟨paths K⟩ and ⟨length L⟩ instead of \
             ⟨tree⟩"
        )
    })
}

/// A node that was drafted; the root has no token.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    /// Its number in the topology.
    pub place: usize,
    pub token: i64,
    pub depth: usize,
    /// How likely it is kept, by what its drafter knows, where trees have a price.
    pub chance: f64,
    pub parent: usize,
    /// q of its children; none where none were drawn.
    pub law: Option<Law>,
    pub children: Vec<usize>,
}

impl Node {
    pub(super) fn root() -> Self {
        Self {
            chance: 1.0,
            ..Self::default()
        }
    }
}

/// The nodes from the root's child down to a node.
pub(super) fn ancestry(nodes: &[Node], last: usize) -> Vec<usize> {
    let mut path = Vec::new();
    let mut here = last;
    while here != 0 {
        path.push(here);
        here = nodes[here].parent;
    }
    path.reverse();
    path
}

/// Draws the children of a node, fewer where q has no mass on others.
pub(super) fn children(
    law: SchemeName,
    q: &Law,
    count: usize,
    chance: &mut dyn Chance,
    scratch: &mut Vec<f64>,
) -> Vec<u32> {
    let mut drawn = Vec::with_capacity(count);
    let row: Vec<f64> = q.probabilities().collect();
    let drafting = law.drafting(&row, count);
    for _ in 0..count {
        let token = if law == SchemeName::WITH_REPLACEMENT {
            Some(chance.token(q))
        } else {
            drafting.next(&drawn, scratch);
            chance.of(scratch)
        };
        let Some(token) = token else { break };
        drawn.push(token as u32);
    }
    drawn
}

/// The target's law of the tokens behind a node.
pub(super) type Laws<'a, E> = dyn FnMut(usize) -> Result<Law, E> + 'a;

/// Returns what a top-down rule does at a node: how its children are asked, in order. `None` where there are none, and of a rule without a law at one position.
fn at_node(
    (rule, law): (RuleName, SchemeName),
    nodes: &[Node],
    here: usize,
    p: &Law,
) -> Option<InTurn> {
    let node = nodes.get(here)?;
    let q = node.law.as_ref()?;
    let [p, q] = [p, q].map(|law| law.probabilities().collect::<Vec<f64>>());
    let drawn = tokens(nodes, &node.children);
    Some(rule.step_of(law)?.in_turn(&p, &q, &drawn))
}

/// The tokens of some nodes.
fn tokens(nodes: &[Node], of: &[usize]) -> Vec<u32> {
    of.iter().map(|&node| nodes[node].token as u32).collect()
}

/// Settles a tree: the node that is kept, with all before it, and the token behind it. `p` is
/// asked for the model's laws of some nodes. `carried` is what rounds before changed of them,
/// and then what this one and those change of what comes next; only select-greedy-block
/// changes anything.
///
/// # Errors
/// As `p`.
pub(super) fn settle_tree<E>(
    (rule, law): (RuleName, SchemeName),
    nodes: &[Node],
    p: &mut Laws<'_, E>,
    carried: &mut Carried,
    chance: &mut dyn Chance,
) -> Result<(usize, usize), E> {
    match rule.entry().verifies {
        Verifies::Tree => {
            let settled = Visits::new((rule, law), nodes, p).settle(0, 1.0, chance)?;
            // The root is kept.
            Ok(settled.unwrap_or_default())
        }
        Verifies::Paths => settle_selected(rule, nodes, p, carried, chance),
        _ => settle_top_down((rule, law), nodes, p, chance),
    }
}

fn settle_top_down<E>(
    rule: (RuleName, SchemeName),
    nodes: &[Node],
    p: &mut Laws<'_, E>,
    chance: &mut dyn Chance,
) -> Result<(usize, usize), E> {
    let mut here = 0;
    loop {
        let target = p(here)?;
        let Some(InTurn { ratios, residual }) = at_node(rule, nodes, here, &target) else {
            return Ok((here, chance.token(&target)));
        };
        let through = ratios.iter().position(|&ratio| chance.below(ratio));
        match through.and_then(|place| nodes[here].children.get(place)) {
            Some(&child) => here = child,
            None => {
                let token = match chance.of(&residual) {
                    Some(token) => token,
                    None => chance.token(&target),
                };
                return Ok((here, token));
            }
        }
    }
}

/// Given a tree that was drawn, the probability that each node is the last that is kept, in a
/// round of which no other changed the target.
///
/// Time O(V) a draft; of a selected path, a selection for each m at each node.
///
/// # Errors
/// As `p`.
pub(super) fn ends<E>(
    (rule, law): (RuleName, SchemeName),
    nodes: &[Node],
    p: &mut Laws<'_, E>,
) -> Result<Vec<f64>, E> {
    let mut ends = vec![0.0; nodes.len()];
    match rule.entry().verifies {
        Verifies::Paths => {
            let mut walk = Walk::default();
            let from = (&Agreeing::all(nodes), 1.0);
            walk.ends(rule, nodes, from, p, &mut ends)?;
        }
        Verifies::Tree => {
            Visits::new((rule, law), nodes, p).ends(0, 1.0, 1.0, &mut ends)?;
        }
        _ => {
            let mut reached = vec![0.0; nodes.len()];
            reached[0] = 1.0;
            // A node stands behind its parent.
            for (here, node) in nodes.iter().enumerate() {
                let mut left = reached[here];
                if node.law.is_some() && left > 0.0 {
                    let step = at_node((rule, law), nodes, here, &p(here)?);
                    let kept = step.iter().flat_map(|step| step.keeps());
                    for (child, kept) in node.children.iter().zip(kept) {
                        reached[*child] += left * kept;
                        left *= 1.0 - kept;
                    }
                }
                ends[here] = left;
            }
        }
    }
    Ok(ends)
}

/// Verification from the leaves, as `docs/theory/tree-replay.md` says it: a node is offered a
/// weight, offers its children what it takes for them, and is kept with what that leaves. Children
/// that agree are nodes of their own.
struct Visits<'a, 'p, E> {
    rule: (RuleName, SchemeName),
    nodes: &'a [Node],
    p: &'a mut Laws<'p, E>,
    /// What is alive of the children of nodes that were offered something.
    alive: BTreeMap<usize, Offers<Box<OfferedRows>>>,
}

/// What becomes of an offer.
struct Visit {
    /// Children in the order in which they are asked, each with what it is offered.
    asked: Vec<(usize, f64)>,
    /// The chance that the node is kept once all refused.
    keep: f64,
    /// Weights of the token behind it then.
    law: Vec<f64>,
}

impl<'a, 'p, E> Visits<'a, 'p, E> {
    fn new(rule: (RuleName, SchemeName), nodes: &'a [Node], p: &'a mut Laws<'p, E>) -> Self {
        Self {
            rule,
            nodes,
            p,
            alive: BTreeMap::new(),
        }
    }

    fn visit(&mut self, here: usize, weight: f64) -> Result<Visit, E> {
        let node = &self.nodes[here];
        let p: Vec<f64> = (self.p)(here)?.probabilities().collect();
        let (asked, alive, law) = match node.law.as_ref().filter(|_| !node.children.is_empty()) {
            None => (Vec::new(), 1.0, p.iter().map(|p| weight * p).collect()),
            Some(q) => {
                let q: Vec<f64> = q.probabilities().collect();
                match self.rule.1.entry().children {
                    Some(children) => self.offered(here, weight, children, (&p, &q)),
                    None => self.one_by_one(here, weight, (&p, &q)),
                }
            }
        };
        let rest: f64 = law.iter().sum();
        Ok(Visit {
            asked,
            // The root is kept whatever was refused.
            keep: if here == 0 || rest >= alive {
                1.0
            } else {
                rest / alive
            },
            law: if rest > 0.0 { law } else { p },
        })
    }

    /// Children asked, S and R, of children that are i.i.d. or of strata.
    fn offered(
        &mut self,
        here: usize,
        weight: f64,
        children: Children,
        rows: (&[f64], &[f64]),
    ) -> (Vec<(usize, f64)>, f64, Vec<f64>) {
        let nodes = self.nodes;
        let own = &nodes[here].children;
        let offers = self.alive.entry(here).or_insert_with(|| {
            let rows = OfferedRows::of_rows(rows, children, own.len());
            Offers::new(Box::new(rows), own.len())
        });
        let levels = match self.rule.0.entry().from_leaves {
            Some(levels) if here == 0 => levels,
            _ => Levels::ONE,
        };
        let (p, q) = rows;
        let every = |offers: &Offers<Box<OfferedRows>>, x: usize| {
            offers.rows().token(x as u32, [p[x], q[x]])
        };
        let drawn = tokens(nodes, own).into_iter();
        let drawn: Vec<_> = drawn.map(|x| every(offers, x as usize)).collect();
        let offered = offers.offer(weight, levels, &|slot| drawn[slot]);
        let asked = offered.asked.iter().map(|one| (own[one.slot], one.weight));
        let law = (0..p.len()).map(|x| offered.owed(every(offers, x)));
        (asked.collect(), offered.alive, law.collect())
    }

    /// The same of children whose laws depend on those before them: in one pass, each by its law
    /// given these.
    fn one_by_one(
        &self,
        here: usize,
        weight: f64,
        (p, q): (&[f64], &[f64]),
    ) -> (Vec<(usize, f64)>, f64, Vec<f64>) {
        let children = &self.nodes[here].children;
        let drawn = tokens(self.nodes, children);
        let drafting = self.rule.1.drafting(q, children.len());
        let mut owed: Vec<f64> = p.iter().map(|p| weight * p).collect();
        let (mut asked, mut alive, mut own) = (Vec::new(), 1.0, Vec::new());
        for (place, (&child, &x)) in children.iter().zip(&drawn).enumerate() {
            drafting.next(&drawn[..place], &mut own);
            let price = alive / own.iter().sum::<f64>();
            let chance = owed[x as usize] / (price * own[x as usize]);
            if chance > 0.0 {
                asked.push((child, chance.min(1.0)));
            }
            for (owed, q) in owed.iter_mut().zip(&own) {
                let take = owed.min(price * q);
                *owed -= take;
                alive -= take;
            }
        }
        (asked, alive, owed)
    }

    /// The node that is kept and the token behind it; none where all of it is refused.
    fn settle(
        &mut self,
        here: usize,
        weight: f64,
        chance: &mut dyn Chance,
    ) -> Result<Option<(usize, usize)>, E> {
        let Visit { asked, keep, law } = self.visit(here, weight)?;
        for (child, weight) in asked {
            if let Some(settled) = self.settle(child, weight, chance)? {
                return Ok(Some(settled));
            }
        }
        let kept = chance.below(keep);
        Ok(kept.then(|| (here, chance.of(&law).unwrap_or(0))))
    }

    /// Adds the probabilities of what [`Self::settle`] may say, of a visit that is made with
    /// some probability; what of that is refused.
    fn ends(&mut self, here: usize, weight: f64, reached: f64, ends: &mut [f64]) -> Result<f64, E> {
        let visit = self.visit(here, weight)?;
        let mut left = reached;
        for (child, weight) in visit.asked {
            left = self.ends(child, weight, left, ends)?;
        }
        ends[here] += left * visit.keep;
        Ok(left * (1.0 - visit.keep))
    }
}

/// What is known of the paths that agree with what was selected so far.
struct Agreeing {
    /// The node of each, at the present depth.
    nodes: Vec<usize>,
    /// By m - 1: of all draws of paths that select what was selected, the share of which m
    /// agree.
    shares: Vec<f64>,
}

impl Agreeing {
    /// All paths, at the root.
    fn all(nodes: &[Node]) -> Self {
        let paths = nodes[0].children.len();
        let mut shares = vec![0.0; paths];
        if let Some(all) = shares.last_mut() {
            *all = 1.0;
        }
        Self {
            nodes: vec![0; paths],
            shares,
        }
    }

    /// One of their nodes.
    fn here(&self) -> usize {
        self.nodes.first().copied().unwrap_or(0)
    }

    /// The next node of each path.
    fn next(&self, nodes: &[Node]) -> Vec<usize> {
        if self.here() == 0 {
            // Every child of the root is a path; below, every node has one child.
            return nodes[0].children.clone();
        }
        let children = self.nodes.iter().map(|&node| nodes[node].children.first());
        children.flatten().copied().collect()
    }
}

/// One of K paths is selected level by level, and verified by blocks as a draft of the law that
/// the selected path has.
///
/// At a prefix that m of the paths share, one of their next tokens is selected
/// ([`Selection`]); S_m(y, m') is the probability that it is y and that m' of the m have it.
/// With a_m the share of draws of which m agree, the selected path goes on with
///
/// ```text
/// s(y) = sum over m, m' of a_m S_m(y, m'),   a_m' <- sum over m of a_m S_m(y, m') / s(y)
/// ```
///
/// whatever the paths are that were not selected. So it is a draft of the law s, and `block`
/// verifies it as such: nothing changes later. Greedy blocks keep more of it in one round, and
/// leave a [`Change`] of the rest of the span.
///
/// Time O(K V) a level, and a selection for each m; as much again for each change that is
/// carried.
fn settle_selected<E>(
    rule: RuleName,
    nodes: &[Node],
    p: &mut Laws<'_, E>,
    carried: &mut Carried,
    chance: &mut dyn Chance,
) -> Result<(usize, usize), E> {
    let mut walk = Walk::default();
    let mut agreeing = Agreeing::all(nodes);
    let mut levels = Vec::new();
    // What is carried to each level, where it is not behind all drafts.
    let mut changes = vec![std::mem::take(carried)];
    loop {
        let model = p(agreeing.here())?;
        let next = agreeing.next(nodes);
        let drawn = tokens(nodes, &next);
        let q = nodes[agreeing.here()].law.as_ref();
        let Some(q) = q.filter(|_| !next.is_empty()) else {
            walk.target.push(model);
            break;
        };
        let here = changes.last().cloned().unwrap_or_default();
        let along = here.along(&model, q);
        let law = along.last().map_or(&model, |(law, _)| law).clone();
        let level = Level::new([&law, q], &agreeing.shares);
        let slot = chance.of(&level.slots(&drawn)).unwrap_or(0);
        let token = drawn.get(slot).copied().unwrap_or(0);
        agreeing = level.taken(nodes, &next, token);
        changes.push(here.behind(&model, &along, token));
        walk.push(nodes, agreeing.here(), law, level.selected.clone());
        levels.push((model, along, level));
    }
    let laws = [&walk.target[..], &walk.selected];
    let settled = settle(rule, laws, &walk.drafts, chance, &mut Vec::new());
    let Some(settled) = settled else {
        // Lists of one walk fit each other.
        return Ok((0, walk.target.first().map_or(0, |law| chance.token(law))));
    };
    let accepted = settled.accepted;
    if rule == RuleName::SELECT_GREEDY_BLOCK
        && let (Some((model, along, level)), Some(here)) =
            (levels.get(accepted), changes.get(accepted))
    {
        let token = settled.token as u32;
        *carried = here.behind(model, along, token);
        let own = Change {
            left: levels.len() - accepted,
            ratio: by_block(rule, laws, &walk.drafts)
                .and_then(|(scales, _)| scales.get(accepted).copied())
                .unwrap_or(1.0),
            shares: level.shares.clone(),
        };
        let law = along.last().map_or(model, |(law, _)| law);
        carried.0.extend(own.behind(law, level, token));
    }
    let last = accepted.checked_sub(1);
    let node = last.and_then(|last| walk.path.get(last)).copied();
    Ok((node.unwrap_or(0), settled.token))
}

/// What a round of select-greedy-block owes to the rest of its span.
///
/// The round had a target of law p and selected a path of law s. If it ended behind fewer tokens
/// than its span has, the rest of them are drawn as if the target's next token behind a text z
/// of it had the law that is proportional to
///
/// ```text
/// max(p(z) p(x|z) - s(z) s(x|z), 0),   p(z) and s(z) from the round's start on
/// ```
///
/// (`GreedyBlock` in `crates/exact/src/block/single_draft.rs`). So p(z)/s(z) and what s goes on with are all
/// that has to be carried.
#[derive(Clone, Debug, PartialEq)]
struct Change {
    /// Tokens of the span that are still to come.
    left: usize,
    /// p(z)/s(z).
    ratio: f64,
    /// a_m behind z.
    shares: Vec<f64>,
}

impl Change {
    /// The target's next token, where p is its law without the change.
    fn of(&self, p: &Law, level: &Level) -> Law {
        let left = residual(p, &level.selected, within(self.ratio)).collect();
        // Nothing is left only where no text gets to but by rounding.
        Law::of_weights(left).unwrap_or_else(|| p.clone())
    }

    /// The change behind one more token, if the span goes on and s goes there.
    fn behind(&self, p: &Law, level: &Level, token: u32) -> Option<Self> {
        let selected = level.selected.probability(token as usize);
        (self.left > 1 && selected > 0.0).then(|| Self {
            left: self.left - 1,
            ratio: (self.ratio * (p.probability(token as usize) / selected)).min(f64::MAX),
            shares: level.shares_behind(token),
        })
    }
}

/// What earlier rounds still change of the target, the first of them first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Carried(Vec<Change>);

impl Carried {
    /// The target's law behind each change, and what the change was made with.
    fn along(&self, model: &Law, q: &Law) -> Vec<(Law, Level)> {
        let mut along: Vec<(Law, Level)> = Vec::with_capacity(self.0.len());
        for change in &self.0 {
            let p = along.last().map_or(model, |(law, _)| law);
            let level = Level::new([p, q], &change.shares);
            let law = change.of(p, &level);
            along.push((law, level));
        }
        along
    }

    /// Returns what is carried behind one more token.
    fn behind(&self, model: &Law, along: &[(Law, Level)], token: u32) -> Self {
        let before = std::iter::once(model).chain(along.iter().map(|(law, _)| law));
        let each = self.0.iter().zip(before).zip(along);
        let each = each.filter_map(|((change, p), (_, level))| change.behind(p, level, token));
        Self(each.collect())
    }
}

/// A selected path so far.
#[derive(Clone, Debug, Default)]
struct Walk {
    path: Vec<usize>,
    drafts: Vec<u32>,
    target: Vec<Law>,
    selected: Vec<Law>,
}

impl Walk {
    fn push(&mut self, nodes: &[Node], node: usize, target: Law, selected: Law) {
        self.path.push(node);
        self.drafts.push(nodes[node].token as u32);
        self.target.push(target);
        self.selected.push(selected);
    }

    /// Adds the probabilities of what [`settle_selected`] may say, of a walk of some
    /// probability.
    fn ends<E>(
        &mut self,
        rule: RuleName,
        nodes: &[Node],
        (agreeing, reached): (&Agreeing, f64),
        p: &mut Laws<'_, E>,
        ends: &mut [f64],
    ) -> Result<(), E> {
        let law = p(agreeing.here())?;
        let next = agreeing.next(nodes);
        let q = nodes[agreeing.here()].law.as_ref();
        let Some(q) = q.filter(|_| !next.is_empty()) else {
            let laws = [&[&self.target[..], &[law]].concat()[..], &self.selected];
            let mut left = reached;
            if let Some((_, kept)) = by_block(rule, laws, &self.drafts) {
                for (&node, kept) in self.path.iter().zip(kept).rev() {
                    ends[node] += left * kept;
                    left *= 1.0 - kept;
                }
            }
            ends[0] += left;
            return Ok(());
        };
        let level = Level::new([&law, q], &agreeing.shares);
        let drawn = tokens(nodes, &next);
        let mut by_token: Vec<(u32, f64)> = Vec::new();
        for (&token, share) in drawn.iter().zip(level.slots(&drawn)) {
            match by_token.iter_mut().find(|(known, _)| *known == token) {
                Some((_, sum)) => *sum += share,
                None => by_token.push((token, share)),
            }
        }
        for (token, share) in by_token.into_iter().filter(|(_, share)| *share > 0.0) {
            let agreeing = level.taken(nodes, &next, token);
            let mut longer = self.clone();
            longer.push(nodes, agreeing.here(), law.clone(), level.selected.clone());
            let from = (&agreeing, reached * share);
            longer.ends(rule, nodes, from, p, ends)?;
        }
        Ok(())
    }
}

/// A prefix at which one of the next tokens of paths that agree is selected.
struct Level {
    bins: RatioBins,
    /// a_m, by m - 1 of all paths.
    shares: Vec<f64>,
    /// a_m and the selection of one of m, where a_m > 0.
    rules: Vec<(f64, Selection)>,
    q: Vec<f64>,
    /// s.
    selected: Law,
}

impl Level {
    fn new([p, q]: [&Law; 2], shares: &[f64]) -> Self {
        let p_row: Vec<f64> = p.probabilities().collect();
        let q_row: Vec<f64> = q.probabilities().collect();
        let bins = RatioBins::new(&p_row, &q_row);
        let rules = (1..).zip(shares).filter(|&(_, &share)| share > 0.0);
        let rules: Vec<(f64, Selection)> = rules
            .map(|(m, &share)| (share, Selection::new(&bins, m)))
            .collect();
        let mut s = vec![0.0; q_row.len()];
        for (share, rule) in &rules {
            for (token, (sum, &q)) in s.iter_mut().zip(&q_row).enumerate() {
                *sum += share * rule.probability(&bins, token, q);
            }
        }
        Self {
            bins,
            rules,
            shares: shares.to_vec(),
            q: q_row,
            // Some draft is selected always, so that s has mass wherever q has.
            selected: Law::of_weights(s).unwrap_or_else(|| q.clone()),
        }
    }

    /// The probability that each of some tokens is selected.
    fn slots(&self, drafts: &[u32]) -> Vec<f64> {
        let mut rules = self.rules.iter();
        let rule = rules.find(|(_, rule)| rule.drafts() == drafts.len());
        rule.map_or_else(Vec::new, |(_, rule)| rule.shares(&self.bins, drafts))
    }

    /// a_m behind a token that is selected.
    fn shares_behind(&self, token: u32) -> Vec<f64> {
        let mut shares = vec![0.0; self.shares.len()];
        let own = self.q.get(token as usize).copied().unwrap_or(0.0);
        for (share, rule) in &self.rules {
            let parts = rule.by_copies(&self.bins, token as usize, own);
            for (sum, part) in shares.iter_mut().zip(parts) {
                *sum += share * part;
            }
        }
        let all: f64 = shares.iter().sum();
        if all > 0.0 {
            shares.iter_mut().for_each(|share| *share /= all);
        }
        shares
    }

    /// Returns what agrees once a token was selected.
    fn taken(&self, nodes: &[Node], next: &[usize], token: u32) -> Agreeing {
        let same = |&&node: &&usize| nodes[node].token == i64::from(token);
        Agreeing {
            nodes: next.iter().filter(same).copied().collect(),
            shares: self.shares_behind(token),
        }
    }
}

/// p/q of every node's prefix, from the root's, 1, on.
///
/// # Errors
/// As `p`.
pub(super) fn weights<E>(nodes: &[Node], p: &mut Laws<'_, E>) -> Result<Vec<f64>, E> {
    let mut weights = vec![1.0; nodes.len()];
    for (here, node) in nodes.iter().enumerate() {
        let Some(q) = &node.law else { continue };
        let target = p(here)?;
        for &child in &node.children {
            let token = nodes[child].token as usize;
            weights[child] = weights[here] * (target.probability(token) / q.probability(token));
        }
    }
    Ok(weights)
}

#[cfg(test)]
mod tests {
    use super::super::every::{
        Counted, Every, Pair, masses, mean_rounds, moments, texts_in_rounds,
    };
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use specgap_core::problem::BlockProblem;
    use specgap_core::tree::{DraftTree, Price, PricedRow, TokenTree};
    use specgap_exact::block::{BlockRule, Change, DrawnTrees, several_rounds};
    use specgap_number::distribution::{Draft, Rational, Rows, Target};
    use specgap_number::number::Number;
    use specgap_replay::replay::{SelectedAlong, TreeAlong};
    use specgap_row::Workspace;
    use std::collections::BTreeSet;
    use std::convert::Infallible;

    fn paths_of(paths: usize, length: usize) -> Shape {
        DraftTree::of_paths(paths, length).unwrap().shape()
    }

    fn with_replacement(topology: &Shape) -> Drawing<'_> {
        Drawing {
            tree: Shaped::One(topology),
            law: SchemeName::WITH_REPLACEMENT,
        }
    }

    /// E[tau], by the probability that each node is the last that is kept.
    fn mean_depth(ends: &[f64], nodes: &[Node]) -> f64 {
        let each = ends.iter().zip(nodes);
        each.map(|(ends, node)| ends * node.depth as f64).sum()
    }

    impl Pair {
        /// A tree that is drawn behind a prefix.
        fn draw(
            &self,
            prefix: &[usize],
            (drawing, levels): (Drawing<'_>, usize),
            chance: &mut Every,
        ) -> Vec<Node> {
            let mut nodes = vec![Node::root()];
            let mut here = 0;
            while here < nodes.len() {
                if drawing.goes_on(&nodes[here]) && nodes[here].depth < levels {
                    let q = self.law(1, &self.prefix(prefix, &nodes, here));
                    let at = (&nodes[here], room(&nodes));
                    let drawn = drawing.below(at, &q, chance, &mut Vec::new());
                    nodes[here].law = (!drawn.is_empty()).then_some(q);
                    for node in drawn {
                        let index = nodes.len();
                        nodes[here].children.push(index);
                        nodes.push(Node {
                            parent: here,
                            ..node
                        });
                    }
                }
                here += 1;
            }
            nodes
        }

        fn prefix(&self, prefix: &[usize], nodes: &[Node], node: usize) -> Vec<usize> {
            let path = ancestry(nodes, node);
            let path = path.into_iter().map(|node| nodes[node].token as usize);
            prefix.iter().copied().chain(path).collect()
        }

        /// Goes through every way that a tree may be drawn behind a prefix, and that what is made
        /// of it may fall: its nodes, p at each, and the chances.
        fn each_tree(
            &self,
            prefix: &[usize],
            shape: (Drawing<'_>, usize),
            mut see: impl FnMut(&[Node], &mut Laws<'_, Infallible>, &mut Every),
        ) {
            let mut chance = Every::default();
            loop {
                let nodes = self.draw(prefix, shape, &mut chance);
                let mut p = |node| Ok(self.law(0, &self.prefix(prefix, &nodes, node)));
                see(&nodes, &mut p, &mut chance);
                if !chance.next() {
                    return;
                }
            }
        }

        /// Returns what a round may write behind a prefix, given what is carried, with what is carried on;
        /// E[tau], which is what is said given each tree. Nodes have their prefixes' p/q.
        fn round(
            &self,
            prefix: &[usize],
            rule: RuleName,
            shape: (Drawing<'_>, usize),
            before: &Carried,
        ) -> (Vec<(Vec<usize>, Carried, f64)>, f64) {
            let (mut written, mut kept, mut said) = (Vec::new(), 0.0, 0.0);
            let name = format!("{rule} {:?} behind {prefix:?}", shape.0);
            let rule = (rule, shape.0.law);
            self.each_tree(prefix, shape, |nodes, p, chance| {
                let Ok(known) = ends(rule, nodes, p);
                let mut carried = before.clone();
                let Ok((node, token)) = settle_tree(rule, nodes, p, &mut carried, chance);
                let weight = chance.weight();
                let mut text = self.prefix(prefix, nodes, node);
                text.push(token);
                written.push((text, carried, weight));
                kept += weight * nodes[node].depth as f64;
                assert!((known.iter().sum::<f64>() - 1.0).abs() < 1e-9);
                said += weight * mean_depth(&known, nodes);
                let Ok(weights) = weights(nodes, p);
                for (index, weight) in weights.iter().enumerate() {
                    let text = self.prefix(prefix, nodes, index);
                    let ratio = (prefix.len()..text.len()).map(|place| {
                        let [p, q] = &self.laws[&text[..place]];
                        p[text[place]] / q[text[place]]
                    });
                    let ratio: f64 = ratio.product();
                    assert!((weight - ratio).abs() < 1e-9 * ratio.max(1.0));
                }
            });
            // What is said is of rounds of which no other changed the target.
            let is_said = !before.0.is_empty() || (kept - said).abs() < 1e-9;
            assert!(is_said, "{name}: {kept} {said}");
            (written, kept)
        }

        /// Whole texts of so many tokens in rounds, with `forget` such that each begins as a text
        /// does: these, E[tau] of the first round, and how many changes are carried at most.
        fn rounds(
            &self,
            rule: RuleName,
            [total, most]: [usize; 2],
            drawing: Drawing<'_>,
            forget: bool,
        ) -> (Counted, f64, usize) {
            let (lengths, none) = ([total, total, most], Carried::default());
            let (mut first, mut deepest) = (0.0, 0);
            let round = |prefix: &[usize], carried: &Carried, levels: usize| {
                let before = if forget { &none } else { carried };
                let (written, kept) = self.round(prefix, rule, (drawing, levels), before);
                if prefix.is_empty() {
                    first = kept;
                }
                let here = written.iter().map(|(_, carried, _)| carried.0.len()).max();
                deepest = deepest.max(here.unwrap());
                written
            };
            let texts = texts_in_rounds(lengths, none.clone(), Carried::eq, round);
            (texts, first, deepest)
        }

        /// The same of rounds that do not forget, whose texts have the target's law.
        fn lossless(
            &self,
            rule: RuleName,
            [total, most]: [usize; 2],
            drawing: Drawing<'_>,
        ) -> (Counted, f64, usize) {
            let told = self.rounds(rule, [total, most], drawing, false);
            let apart = self.apart(masses(&told.0), total);
            assert!(apart < 1e-9, "{rule} {drawing:?} {total}: {apart}");
            told
        }

        /// E[tau] of a rule, given each tree, over all trees that may be drawn.
        fn expected(&self, rule: RuleName, shape: (Drawing<'_>, usize)) -> f64 {
            let mut kept = 0.0;
            self.each_tree(&[], shape, |nodes, p, chance| {
                let Ok(known) = ends((rule, shape.0.law), nodes, p);
                kept += chance.weight() * mean_depth(&known, nodes);
            });
            kept
        }

        fn problem(&self, length: usize) -> BlockProblem {
            let (mut target, mut draft) = (BTreeMap::new(), BTreeMap::new());
            for (prefix, [p, q]) in self.laws.iter().filter(|(prefix, _)| prefix.len() < length) {
                let words: Vec<String> = prefix.iter().map(usize::to_string).collect();
                target.insert(words.join(" "), Target::new(p).unwrap());
                draft.insert(words.join(" "), Draft::new(q).unwrap());
            }
            BlockProblem::new("pair".into(), self.vocab, length, 1, target, draft, None).unwrap()
        }
    }

    /// Rules with the trees that they settle, by every draw and coin.
    #[test]
    fn what_rounds_of_trees_write_has_the_targets_law() {
        let mut rng = ChaCha8Rng::seed_from_u64(21);
        // A rule, the law of children, and trees, each with the size of a vocabulary.
        let cases = "
            rrs with-replacement 2x1:3 2x2:2 [[0],[1],[0,0]]:3
            rrs-wo without-replacement 2x1:3 3x1:4 2x2:2 3x1:2 [[0],[1],[0,0]]:3
            level-4 stratified 2x1:4 3x1:5 2x2:3 3x1:2 [[0],[1],[0,0]]:3
            level-4 stratified-independent 2x1:3 3x1:5 2x2:3 [[0],[1],[0,0]]:3
            spechub hub 2x1:4 2x2:2 2x2:3
            traversal with-replacement 2x1:3 2x2:2 [[0],[1],[0,0]]:3
            traversal-4 with-replacement 2x1:3 2x2:2 [[0],[1],[0,0]]:3
            traversal-4 stratified 2x2:3 3x1:5 [[0],[1],[0,0]]:3 [[0],[1],[2],[0,0],[2,0]]:4
            traversal-4 stratified-independent 2x2:3 [[0],[1],[0,0]]:3
            traversal with-replacement [[0],[1],[0,0],[1,0]]:3 [[0],[1],[2],[0,0],[1,0],[2,0]]:2
            traversal without-replacement 2x1:3 2x2:2 [[0],[1],[0,0]]:3
            traversal hub 2x2:2 2x1:4
            traversal stratified 2x2:3 [[0],[1],[0,0]]:3
            traversal stratified-independent 2x2:3 [[0],[1],[0,0]]:3
            select-block with-replacement [[0],[1],[0,0],[1,0]]:2 3x1:3
        ";
        let mut replayed = 0;
        for case in cases.trim().lines() {
            let mut words = case.split_whitespace();
            let rule: RuleName = words.next().unwrap().parse().unwrap();
            let law: SchemeName = words.next().unwrap().parse().unwrap();
            for (tree, vocab) in words.map(|word| word.split_once(':').unwrap()) {
                let named = DraftTree::named(tree).or_else(|_| DraftTree::from_json(tree));
                let topology = named.unwrap().shape();
                assert_eq!(refused(Shaped::One(&topology), law, rule), None, "{case}");
                let levels = topology.levels();
                let pair = Pair::random(&mut rng, vocab.parse().unwrap(), levels + 1);
                let drawing = Drawing {
                    tree: Shaped::One(&topology),
                    law,
                };
                let (texts, ..) = pair.lossless(rule, [levels + 1, levels], drawing);
                let widest = as_its_replay_says(&pair, rule, drawing, &texts);
                replayed += usize::from(widest > 0.1);
            }
        }
        assert!(replayed > 25, "{replayed}");
    }

    /// Each text takes as many rounds, in the mean and as widely, as its replay says; where it says. The
    /// largest variance.
    fn as_its_replay_says(
        pair: &Pair,
        rule: RuleName,
        drawing: Drawing<'_>,
        texts: &Counted,
    ) -> f64 {
        let Drawing { tree, law } = drawing;
        let most = tree.counts().pop().unwrap();
        let mut widest = 0.0f64;
        for (text, ways) in texts {
            // Of its third child the replay has a mean over random draws.
            let along = TreeAlong::new((rule, law), tree, 0);
            let Some(mut along) = along.ok().filter(|_| rule != RuleName::RRS_WO || most < 3)
            else {
                continue;
            };
            for (place, &token) in text.iter().enumerate() {
                let [target, draft] = &pair.laws[&text[..place]];
                along.take(Rows { target, draft }, token).unwrap();
            }
            let said = along.spread();
            assert_eq!(said.drafts.is_some(), matches!(tree, Shaped::One(_)));
            let [mean, variance] = moments(ways, 0);
            let (calls, name) = (said.calls, format!("{rule} {drawing:?} {text:?}"));
            assert!((calls.mean - mean).abs() < 1e-9, "{name}: {mean} {calls:?}");
            let apart = (calls.variance - variance).abs();
            assert!(apart < 1e-9, "{name}: {variance} {calls:?}");
            widest = widest.max(variance);
        }
        widest
    }

    /// A price that is fitted on a pair's rows, as they are met.
    fn fitted(pair: &Pair, levels: usize, children: usize) -> Price {
        let laws = pair.laws.iter().filter(|(prefix, _)| prefix.len() < levels);
        let rows = laws.map(|(_, [p, q])| PricedRow::of(p, q, 0, pair.vocab));
        let rows: Vec<PricedRow> = rows.collect();
        Price::fit(
            "stratified",
            &rows.iter().collect::<Vec<_>>(),
            levels,
            children,
        )
    }

    /// Trees that rows shape: texts have the target's law, and each text takes as many rounds, in the
    /// mean and as widely, as its replay says; by every draw and coin.
    #[test]
    fn trees_at_a_price_write_texts_in_as_many_rounds_as_the_replay_says() {
        let mut rng = ChaCha8Rng::seed_from_u64(35);
        let (levels, total) = (2, 3);
        let mut shapes = BTreeSet::new();
        let mut widest = 0.0f64;
        for price in [0.3, 0.1, 0.03, 0.2] {
            let pair = Pair::random(&mut rng, 3, total);
            let price = fitted(&pair, levels, 2).at(price);
            let tree = Shaped::Priced(&price);
            for law in [SchemeName::STRATIFIED, SchemeName::STRATIFIED_INDEPENDENT] {
                for rule in [
                    RuleName::LEVEL_4,
                    RuleName::TRAVERSAL,
                    RuleName::TRAVERSAL_4,
                ] {
                    let drawing = Drawing { tree, law };
                    assert_eq!(refused(tree, law, rule), None);
                    let (texts, ..) = pair.lossless(rule, [total, levels], drawing);
                    widest = widest.max(as_its_replay_says(&pair, rule, drawing, &texts));
                    pair.each_tree(&[], (drawing, levels), |nodes, _, _| {
                        let counts = nodes.iter().map(|node| node.children.len());
                        shapes.insert(counts.collect::<Vec<_>>());
                    });
                }
            }
        }
        // Shapes follow the rows: also siblings differ.
        assert!(widest > 0.1 && shapes.len() > 4, "{widest} {shapes:?}");
        assert!(shapes.contains(&vec![2, 0, 2, 0, 0]), "{shapes:?}");
    }

    #[test]
    fn a_price_drafts_no_more_paths_than_run_side_by_side() {
        // Of 64 tokens the target has three: some 21 children bring as much each as one.
        let q = vec![1.0 / 64.0; 64];
        let p: Vec<f64> = (0..64)
            .map(|x| if x < 3 { 1.0 / 3.0 } else { 0.0 })
            .collect();
        let pair = Pair::everywhere(3, [&p, &q]);
        let price = fitted(&pair, 2, 24).at(2f64.powi(-10));
        let drawing = Drawing {
            tree: Shaped::Priced(&price),
            law: SchemeName::STRATIFIED,
        };
        let nodes = pair.draw(&[], (drawing, 2), &mut Every::default());
        let children = nodes[0].children.len();
        assert!(children * children > PATHS, "{children}");
        let leaves = nodes.iter().filter(|node| node.children.is_empty());
        assert_eq!(leaves.count(), PATHS);
    }

    /// Rules with the exact optimum of any verifier of the same trees.
    ///
    /// With `--nocapture` it prints the table of `docs/theory/tree-replay.md`.
    #[test]
    fn no_rule_passes_the_optimum_of_its_trees() {
        let mut rng = ChaCha8Rng::seed_from_u64(23);
        let uneven = "[[0],[1],[0,0]]";
        let binary = "[[0],[1],[0,0],[0,1],[1,0],[1,1]]";
        let two = "[[0],[1],[0,0],[1,0]]";
        for (name, law, paths, vocab) in [
            ("2x2", SchemeName::WITH_REPLACEMENT, binary, 2),
            ("2x2", SchemeName::WITHOUT_REPLACEMENT, binary, 3),
            ("2x2", SchemeName::HUB, binary, 3),
            ("2x2", SchemeName::STRATIFIED, binary, 3),
            ("2x2", SchemeName::STRATIFIED_INDEPENDENT, binary, 3),
            ("uneven", SchemeName::WITH_REPLACEMENT, uneven, 3),
            ("uneven", SchemeName::WITHOUT_REPLACEMENT, uneven, 3),
            ("two paths", SchemeName::WITH_REPLACEMENT, two, 3),
        ] {
            const PAIRS: usize = 6;
            let shape = DraftTree::from_json(paths).unwrap();
            let topology = shape.shape();
            let mut sums = BTreeMap::new();
            for _ in 0..PAIRS {
                let pair = Pair::random(&mut rng, vocab, 3);
                let tree = TokenTree::<Rational>::new(&pair.problem(2));
                let trees = DrawnTrees::new(&tree, &shape, law).unwrap();
                let optimum = trees.optimum(&tree).unwrap().unwrap().to_f64();
                *sums.entry("optimum").or_insert(0.0) += optimum / PAIRS as f64;
                let drawing = Drawing {
                    tree: Shaped::One(&topology),
                    law,
                };
                for rule in drawing.rules() {
                    let kept = pair.expected(rule, (drawing, 2));
                    assert!(kept < optimum + 1e-9, "{rule:?} {law:?}: {kept} {optimum}");
                    *sums.entry(rule.as_str()).or_insert(0.0) += kept / PAIRS as f64;
                }
            }
            println!("| {name}, {}, V = {vocab} | {sums:.3?} |", law.as_str());
            assert!(sums.len() > 2);
        }
    }

    /// Whole texts in rounds of select-block: the sampler, with every draw and coin; what the
    /// replay says of each text; and what the enumeration in fractions says, whose selection is
    /// even to the last digit where the sampler's has bins.
    #[test]
    fn rounds_of_a_selected_path_are_those_of_the_enumerated_law() {
        let mut rng = ChaCha8Rng::seed_from_u64(22);
        for (vocab, total, length, paths) in
            [(2, 3, 2, 2), (2, 3, 2, 3), (3, 3, 1, 2), (2, 4, 2, 2)]
        {
            let pair = Pair::random(&mut rng, vocab, total);
            let topology = paths_of(paths, length);
            let drawing = with_replacement(&topology);
            let (texts, ..) = pair.lossless(RuleName::SELECT_BLOCK, [total, length], drawing);
            let calls = mean_rounds(&texts);
            let mut replayed = 0.0;
            for (text, mass) in pair.texts(&[], total, 1.0) {
                let mut along = SelectedAlong::new(paths).unwrap();
                for place in 0..total {
                    let [target, draft] = &pair.laws[&text[..place]];
                    let rows = Rows { target, draft };
                    along
                        .take(&mut Workspace::new(), rows, text[place])
                        .unwrap();
                }
                replayed += mass * along.spread(length).calls.mean;
            }
            assert!((calls - replayed).abs() < 1e-8, "{calls} {replayed}");
            let name = BlockRule::SELECT_BLOCK;
            let known = several_rounds(&pair.problem(total), length, paths, name, Change::Carried);
            let known = known.unwrap().rounds.to_f64();
            assert!((calls - known).abs() < 0.02, "{calls} {known}");
            // One path alone needs more rounds.
            let one = several_rounds(
                &pair.problem(total),
                length,
                1,
                BlockRule::BLOCK,
                Change::Carried,
            );
            assert!(calls < one.unwrap().rounds.to_f64() + 1e-9);
        }
    }

    /// Whole texts in rounds of select-greedy-block, with every draw and coin, against the
    /// target's law and the enumeration in fractions. Of one path there is nothing to select,
    /// and it is greedy block verification.
    #[test]
    fn rounds_of_greedy_blocks_carry_their_change() {
        let mut rng = ChaCha8Rng::seed_from_u64(24);
        let mut forgotten = 0.0f64;
        let mut deepest = 0;
        for (vocab, total, length, paths) in [
            (2, 4, 2, 2),
            (3, 3, 2, 1),
            (2, 5, 3, 1),
            (2, 4, 3, 2),
            (2, 3, 2, 3),
        ] {
            let pair = Pair::random(&mut rng, vocab, total);
            let topology = paths_of(paths, length);
            let drawing = with_replacement(&topology);
            let (rule, lengths) = (RuleName::SELECT_GREEDY_BLOCK, [total, length]);
            let (texts, _, carried) = pair.lossless(rule, lengths, drawing);
            deepest = deepest.max(carried);
            let rounds = mean_rounds(&texts);
            let (name, near) = if paths == 1 {
                (BlockRule::GREEDY_BLOCK, 1e-9)
            } else {
                // The sampler's selection has bins.
                (BlockRule::SELECT_GREEDY_BLOCK, 0.02)
            };
            let known = several_rounds(&pair.problem(total), length, paths, name, Change::Carried);
            let known = known.unwrap().rounds.to_f64();
            assert!((rounds - known).abs() < near, "{rounds} {known}");
            // A round that forgets what those before owe writes another law.
            let (texts, ..) = pair.rounds(rule, lengths, drawing, true);
            forgotten = forgotten.max(pair.apart(masses(&texts), total));
        }
        assert!(forgotten > 1e-3, "{forgotten}");
        // What two rounds changed was carried at once.
        assert!(deepest > 1, "{deepest}");
    }

    #[test]
    fn equal_and_disjoint_laws_keep_all_and_none() {
        let with = SchemeName::WITH_REPLACEMENT;
        for (target, draft, kept) in [
            ([0.2, 0.3, 0.5], [0.2, 0.3, 0.5], 1.0),
            ([0.0, 0.0, 1.0], [0.5, 0.5, 0.0], 0.0),
            ([0.0, 1.0, 0.0], [0.0, 1.0, 0.0], 1.0),
        ] {
            let pair = Pair::everywhere(2, [&target, &draft]);
            for (rule, law) in [
                (RuleName::RRS, with),
                (RuleName::RRS_WO, SchemeName::WITHOUT_REPLACEMENT),
                (RuleName::LEVEL_4, SchemeName::STRATIFIED),
                (RuleName::LEVEL_4, SchemeName::STRATIFIED_INDEPENDENT),
                (RuleName::SPECHUB, SchemeName::HUB),
                (RuleName::TRAVERSAL, with),
                (RuleName::TRAVERSAL, SchemeName::HUB),
                (RuleName::TRAVERSAL_4, SchemeName::STRATIFIED),
                (RuleName::SELECT_BLOCK, with),
                (RuleName::SELECT_GREEDY_BLOCK, with),
            ] {
                let topology = paths_of(2, 1);
                let drawing = Drawing {
                    tree: Shaped::One(&topology),
                    law,
                };
                let (_, found, _) = pair.lossless(rule, [2, 1], drawing);
                assert!((found - kept).abs() < 1e-9, "{rule:?}: {found} {kept}");
            }
        }
    }

    #[test]
    fn what_is_no_tree_or_not_for_a_rule_is_refused() {
        // A tree, the law of its children, a rule, and what is said of them.
        let cases = "
            4x5 with-replacement rrs -> 1024 paths; at most 256
            2x2 with-replacement token -> chains
            2x2 with-replacement rrs-wo -> ⟨law
            2x2 with-replacement level-4 -> ⟨law
            2x2 stratified-independent rrs -> ⟨law
            2x2 with-replacement select-block -> ⟨paths
            2x2 with-replacement select-greedy-block -> ⟨paths
            3x1 hub spechub -> pairs
            2x2 hub traversal-4 -> ⟨law
            2x2 without-replacement traversal-4 -> ⟨law
        ";
        for case in cases.trim().lines() {
            let (words, why) = case.trim().split_once(" -> ").unwrap();
            let words: Vec<&str> = words.split(' ').collect();
            let tree = DraftTree::named(words[0]).unwrap().shape();
            let [law, rule] = [words[1], words[2]];
            let said = refused(
                Shaped::One(&tree),
                law.parse().unwrap(),
                rule.parse().unwrap(),
            );
            assert!(
                said.as_ref().is_some_and(|said| said.contains(why)),
                "{case}: {said:?}"
            );
        }
    }
}
