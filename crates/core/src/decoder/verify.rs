//! The verification of a tree: from the root down, or from its leaves (traversal), by one recursion.
//!
//! A node is *offered* a weight w (the root: 1). R = w p, and S, the chance that nothing was taken in
//! this offer, is 1. In passes of falling level t, and in each from the last draft to the first, the
//! draft y of law Q, given that nothing is taken yet, is offered with take(y)/Q(y),
//! take = clip((R/S - t Q)/(1 - t), 0, Q); if it is refused, R loses S take and Q take. Drafts that
//! are sure are offered min(1, R/S). Where all are refused the node is kept with sum(R)/S, and the next
//! token is drawn from R; what Q has lost stays with the node. From the root down a draft that is taken
//! is never given back, and sure drafts are what a draw from R may hit.
//!
//! # Source
//! Traversal verification, arXiv 2505.12398; recursive rejection; `docs/theory/stratified.md`.

use super::chance::{Chance, Coins};
use super::drafts::{Part, strata};
use super::mass::Mass;
use super::rows::{DecoderError, Entry, Law};
use multiversion::multiversion;
use std::cell::RefCell;
use std::ops::Range;

/// The drafts of a round. Row 0 of p and q is behind the text, row i + 1 behind node i.
#[derive(Debug, Clone, Copy)]
pub struct Tree<'a> {
    /// The token of each node.
    pub tokens: &'a [u32],
    /// The row of each node's parent. Children of one parent stand side by side: sure tokens first,
    /// then strata in order, or independent draws in turn.
    pub parents: &'a [usize],
}

/// How a tree is verified.
#[derive(Debug, Clone, Copy)]
pub struct Rule<'a> {
    /// How each node's children were drafted.
    pub law: Law,
    /// From the leaves, and not from the root down.
    pub traversal: bool,
    /// The levels of the passes at each depth, in [0, 1); the last counts for all that are deeper.
    pub levels: &'a [&'a [f64]],
}

/// What is kept of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The nodes from the root's child on.
    pub path: Vec<usize>,
    /// The token behind them.
    pub token: u32,
}

/// More levels than any tree has; the stack holds them.
const DEEPEST: usize = 1000;

/// How many arrays are kept for the next round, which would else fault in every page anew.
const MOST_SPARE: usize = 64;

thread_local! {
    static SPARE: RefCell<Vec<Vec<f64>>> = const { RefCell::new(Vec::new()) };
}

/// What is known of a node that has children.
struct Node {
    children: Range<usize>,
    depth: usize,
    sure: usize,
    parts: Vec<Part>,
    /// The laws of the parts where something was taken of them, from their first inner token on.
    laws: Vec<Option<Vec<f64>>>,
}

/// What the factors of a part's masses are: its first token's, its inner ones', its last's.
type Factors = [f64; 3];

struct Round<'a, T, C> {
    p: &'a [T],
    q: &'a [T],
    size: usize,
    tree: Tree<'a>,
    rule: Rule<'a>,
    chance: C,
    nodes: Vec<Option<Node>>,
    path: Vec<usize>,
    /// Memory that was used before: of R, and of laws.
    spare: Vec<Vec<f64>>,
}

/// An offer to a node that is being made.
struct Offer {
    row: usize,
    /// By what entries of p are multiplied for those of R = w p.
    scale: f64,
    /// The chance that nothing was taken before this offer.
    start: f64,
    /// R, once something was taken from it.
    left: Option<Vec<f64>>,
}

impl Offer {
    fn of_leaf(row: usize) -> Self {
        Self {
            row,
            scale: 1.0,
            start: 1.0,
            left: None,
        }
    }
}

/// What an offer has for the draft of one part in a pass.
struct Stake {
    part: usize,
    child: usize,
    level: f64,
    factors: Factors,
    /// The mass of the draft's token, and what is taken of it.
    mass: f64,
    give: f64,
}

/// Runs a rule on a tree; rows are those of one array behind the other, `size` tokens each. Of `q`
/// only rows of nodes that have children are read. From the leaves node i has coin i, is refused while
/// that is below the chance that all its offers so far were refused, and the draw has the coin behind
/// these. From the root down there is one for each draft in each pass, and one for a draw, in turn.
///
/// # Errors
/// Arrays that do not fit each other, a row that is no distribution, a draft that cannot be drawn from
/// its row, too few coins.
///
/// # Example
/// ```
/// use specgap_core::decoder::{Kept, Law, Rule, Tree, verify};
/// // Two drafts of one row, taken from the last to the first: 1 is refused, and 0 is kept.
/// let (p, q) = ([0.9_f32, 0.1, 0.5, 0.5, 0.5, 0.5], [0.5_f32, 0.5, 0.0, 0.0, 0.0, 0.0]);
/// let tree = Tree { tokens: &[0, 1], parents: &[0, 0] };
/// let rule = Rule { law: Law::Stratified, traversal: true, levels: &[&[0.0]] };
/// let kept = verify(&p, &q, 2, tree, rule, &[0.5; 3])?;
/// assert_eq!(kept, Kept { path: vec![0], token: 1 });
/// # Ok::<(), specgap_core::decoder::DecoderError>(())
/// ```
pub fn verify<T: Entry>(
    p: &[T],
    q: &[T],
    size: usize,
    tree: Tree<'_>,
    rule: Rule<'_>,
    coins: &[f64],
) -> Result<Kept, DecoderError> {
    let nodes = if rule.traversal { tree.tokens.len() } else { 0 };
    by(p, q, size, tree, rule, Coins::new(coins, nodes)?).map(|(kept, _)| kept)
}

/// The same, left to whatever chance, which is given back.
pub(super) fn by<T: Entry, C: Chance>(
    p: &[T],
    q: &[T],
    size: usize,
    tree: Tree<'_>,
    rule: Rule<'_>,
    chance: C,
) -> Result<(Kept, C), DecoderError> {
    let nodes = children(tree, size)?;
    let rows = nodes.len();
    if size == 0 || p.len() != rows * size || q.len() != rows * size {
        return Err(DecoderError::Shape(format!(
            "p and q: have {} and {} entries; a tree of {} nodes has {rows} rows of {size}",
            p.len(),
            q.len(),
            rows - 1
        )));
    }
    let mut levels = rule.levels.iter().flat_map(|levels| levels.iter());
    if rule.levels.is_empty() || levels.any(|t| !(0.0..1.0).contains(t)) {
        return Err(DecoderError::Shape(
            "levels: give those of each depth, each in [0, 1)".to_owned(),
        ));
    }
    let mut round = Round {
        p,
        q,
        size,
        tree,
        rule,
        chance,
        nodes,
        path: Vec::new(),
        spare: SPARE.take(),
    };
    let token = if rule.traversal {
        // The root is offered 1, which is never refused.
        let token = round.offer(0, 1.0, false)?;
        round.path.reverse();
        token.ok_or_else(|| DecoderError::Shape("the root was refused".to_owned()))?
    } else {
        round.walk()?
    };
    let laws = round.nodes.into_iter().flatten().flat_map(|node| node.laws);
    round.spare.extend(laws.flatten());
    round.spare.truncate(MOST_SPARE);
    SPARE.set(round.spare);
    let kept = Kept {
        path: round.path,
        token: token as u32,
    };
    Ok((kept, round.chance))
}

/// Of each row: its children, if it has any.
fn children(tree: Tree<'_>, size: usize) -> Result<Vec<Option<Node>>, DecoderError> {
    let refused = |text: String| Err(DecoderError::Shape(text));
    let (tokens, parents) = (tree.tokens, tree.parents);
    if tokens.len() != parents.len() {
        return refused(format!(
            "tokens and parents: {} and {} of them; give one of each a node",
            tokens.len(),
            parents.len()
        ));
    }
    let mut nodes: Vec<Option<Node>> = (0..=tokens.len()).map(|_| None).collect();
    let mut depths = vec![0; nodes.len()];
    for (at, (&parent, &token)) in parents.iter().zip(tokens).enumerate() {
        if parent > at || token as usize >= size {
            return refused(format!(
                "node {at}: token {token}, parent {parent}; tokens are below {size}, and a parent's \
                 row is 0 or that of an earlier node"
            ));
        }
        let depth = depths[parent] + 1;
        depths[at + 1] = depth;
        match &mut nodes[parent] {
            Some(node) if node.children.end == at => node.children.end += 1,
            none @ None if depth <= DEEPEST => {
                *none = Some(Node {
                    children: at..at + 1,
                    depth: depth - 1,
                    sure: 0,
                    parts: Vec::new(),
                    laws: Vec::new(),
                });
            }
            Some(_) => {
                return refused(format!(
                    "parents: node {at} is apart from the other children of row {parent}; put them side \
                     by side"
                ));
            }
            None => return refused(format!("parents: is deeper than {DEEPEST}")),
        }
    }
    Ok(nodes)
}

impl Node {
    /// Factors of a part's masses, for the probability that they are drafted and nothing is taken
    /// yet: messages along the chain of parts.
    fn factors(&self, part: usize) -> Factors {
        let (mut other, mut same) = (1.0, 0.0);
        let onwards = |other: f64, same: f64, link: [[f64; 2]; 2]| {
            let step = |at: usize| other * link[0][at] + same * link[1][at];
            (step(0), step(1))
        };
        for one in &self.parts[..part] {
            let (first, others) = onwards(other, same, one.link);
            other = first * one.first_mass() + others * one.middle;
            same = others * one.last_mass();
        }
        let (first, others) = onwards(other, same, self.parts[part].link);
        let (mut after, mut shared) = (1.0, 1.0);
        for one in self.parts[part + 1..].iter().rev() {
            let rest = one.middle * after + one.last_mass() * shared;
            let step = |link: [f64; 2]| link[0] * one.first_mass() * after + link[1] * rest;
            (after, shared) = (step(one.link[0]), step(one.link[1]));
        }
        [first * after, others * after, others * shared]
    }

    /// The chance that nothing was taken so far.
    fn alive(&self) -> f64 {
        let Some(part) = self.parts.first() else {
            return 1.0;
        };
        let [first, others, last] = self.factors(0);
        part.first_mass() * first + part.middle * others + part.last_mass() * last
    }
}

impl<'a, T: Entry, C: Chance> Round<'a, T, C> {
    fn row(&self, of: &'a [T], row: usize) -> &'a [T] {
        &of[row * self.size..(row + 1) * self.size]
    }

    fn levels(&self, depth: usize) -> &'a [f64] {
        let levels = self.rule.levels;
        levels[depth.min(levels.len() - 1)]
    }

    /// Takes out what is known of a node that has children; its strata are found when it is first
    /// asked for.
    fn take(&mut self, row: usize) -> Result<Option<Node>, DecoderError> {
        let Some(mut node) = self.nodes[row].take() else {
            return Ok(None);
        };
        let n = node.children.len();
        if self.rule.law == Law::Certain {
            node.sure = n;
        }
        if node.sure > 0 || !node.parts.is_empty() {
            return Ok(Some(node));
        }
        let mut mass = Mass::checked(self.row(self.q, row), "q", row)?;
        node.parts = match self.rule.law {
            Law::WithReplacement => (0..n).map(|_| Part::whole(&mass, self.size)).collect(),
            law => strata(&mut mass, n, law == Law::Stratified),
        };
        node.sure = mass.without().len();
        node.laws = node.parts.iter().map(|_| None).collect();
        let is_whole = node.sure + node.parts.len() == n;
        let sure = mass.without().iter().copied().map(Some);
        let sure = sure.chain(std::iter::repeat(None));
        for (child, sure) in node.children.clone().zip(sure) {
            let token = self.tree.tokens[child];
            if !is_whole || sure.is_some_and(|sure| sure != token as usize) {
                return Err(DecoderError::Draft(child, token));
            }
        }
        Ok(Some(node))
    }

    fn sure(&self, node: &Node) -> &'a [u32] {
        &self.tree.tokens[node.children.start..][..node.sure]
    }

    fn begin(&self, node: &Node, row: usize, w: f64) -> Result<Offer, DecoderError> {
        let total = Mass::checked(self.row(self.p, row), "p", row)?.total();
        Ok(Offer {
            row,
            scale: w / total,
            start: node.alive().max(f64::MIN_POSITIVE),
            left: None,
        })
    }

    /// R at a token.
    fn left(&self, offer: &Offer, token: usize) -> f64 {
        let entry = || self.p[offer.row * self.size + token].into() * offer.scale;
        offer.left.as_ref().map_or_else(entry, |left| left[token])
    }

    /// Returns what the draft of a part is offered: strata from the last to the first, independent draws in
    /// turn.
    fn stake(
        &self,
        node: &Node,
        offer: &Offer,
        turn: usize,
        level: f64,
    ) -> Result<Stake, DecoderError> {
        let last = node.parts.len() - 1;
        let is_in_turn = self.rule.law == Law::WithReplacement;
        let part = if is_in_turn { turn } else { last - turn };
        let factors = node.factors(part).map(|factor| factor / offer.start);
        let child = node.children.start + node.sure + part;
        let id = self.tree.tokens[child];
        let token = id as usize;
        let wrong = || DecoderError::Draft(child, id);
        let one = &node.parts[part];
        let mass = match (one.first, one.last) {
            (Some((first, mass)), _) if first == token => mass * factors[0],
            (_, Some((last, mass))) if last == token => mass * factors[2],
            _ if one.inside.contains(&token) => {
                let entry = self.q[offer.row * self.size + token];
                if entry <= T::ZERO || self.sure(node).contains(&id) {
                    return Err(wrong());
                }
                let law = node.laws[part].as_ref();
                let fresh = || entry.into() * one.scale;
                factors[1] * law.map_or_else(fresh, |law| law[token - one.inside.start])
            }
            _ => return Err(wrong()),
        };
        Ok(Stake {
            part,
            child,
            level,
            factors,
            mass,
            give: passes(level, mass, self.left(offer, token)),
        })
    }

    /// Takes from R and from the law of a part all that a refused stake stood for. `keep`: the part is
    /// asked again.
    fn refuse(&mut self, node: &mut Node, offer: &mut Offer, stake: &Stake, keep: bool) {
        let row = offer.row * self.size;
        let left = offer.left.get_or_insert_with(|| {
            let mut left = self.spare.pop().unwrap_or_default();
            left.clear();
            let entries = self.p[row..][..self.size].iter();
            left.extend(entries.map(|&x| x.into() * offer.scale));
            left
        });
        let part = &mut node.parts[stake.part];
        let [first, inner, last] = stake.factors;
        for (end, factor) in [(&mut part.first, first), (&mut part.last, last)] {
            if let Some((token, law)) = end
                && factor > 0.0
            {
                let mass = *law * factor;
                let give = passes(stake.level, mass, left[*token]);
                left[*token] -= give;
                *law = (mass - give) / factor;
            }
        }
        let inside = part.inside.clone();
        if inner <= 0.0 || inside.is_empty() {
            return;
        }
        let sweep = Sweep {
            factor: inner,
            level: stake.level,
        };
        let left = &mut left[inside.clone()];
        if let Some(law) = &mut node.laws[stake.part] {
            part.middle = again(sweep, law, left);
            return;
        }
        let mut law = Vec::new();
        if keep {
            law = self.spare.pop().unwrap_or_default();
            law.clear();
            law.resize(inside.len(), 0.0);
        }
        let sure = self.tree.tokens[node.children.start..][..node.sure].iter();
        let sure = sure
            .map(|&token| token as usize)
            .filter(|token| inside.contains(token));
        let mut ends: Vec<usize> = sure.map(|token| token - inside.start).collect();
        ends.sort_unstable();
        ends.push(inside.len());
        let entries = &self.q[row..][inside];
        let (mut from, mut middle) = (0, 0.0);
        for to in ends {
            let law = if keep { &mut law[from..to] } else { &mut [] };
            let (entries, left) = (&entries[from..to], &mut left[from..to]);
            middle += fresh(sweep, entries, part.scale, left, law);
            from = to + 1;
        }
        part.middle = middle;
        node.laws[stake.part] = keep.then_some(law);
    }

    /// A token in proportion to R, but none of `without`; to p where nothing is left.
    fn drawn(&mut self, offer: &Offer, without: &[u32]) -> Result<usize, DecoderError> {
        if let Some(left) = &offer.left {
            let mut mass = Mass::of(left);
            mass.leave_out_all(without);
            if mass.total() > 0.0 {
                return self.chance.draw(&mass)?.ok_or_else(nothing);
            }
        }
        let p = self.row(self.p, offer.row);
        let mut mass = Mass::checked(p, "p", offer.row)?;
        mass.leave_out_all(without);
        if mass.total() <= 0.0 {
            mass = Mass::of(p);
        }
        self.chance.draw(&mass)?.ok_or_else(nothing)
    }

    /// Traversal: the token behind what is kept of the subtree of a row, or None if it is refused.
    /// `again`: it may be offered once more.
    fn offer(&mut self, row: usize, w: f64, again: bool) -> Result<Option<usize>, DecoderError> {
        if w <= 0.0 {
            return Ok(None);
        }
        let Some(mut node) = self.take(row)? else {
            let is_kept = row == 0 || self.chance.keeps(row - 1, w)?;
            return is_kept
                .then(|| self.drawn(&Offer::of_leaf(row), &[]))
                .transpose();
        };
        let mut offer = self.begin(&node, row, w)?;
        let levels = self.levels(node.depth);
        for (pass, &level) in levels.iter().enumerate() {
            let more = again || pass + 1 < levels.len();
            for turn in 0..node.parts.len() {
                let stake = self.stake(&node, &offer, turn, level)?;
                let share = stake.give / stake.mass;
                let weight = if stake.give > 0.0 { share } else { 0.0 };
                if let Some(token) = self.offer(stake.child + 1, weight, more)? {
                    self.path.push(stake.child);
                    self.end(node, offer);
                    return Ok(Some(token));
                }
                self.refuse(&mut node, &mut offer, &stake, more);
            }
        }
        let mut s = node.alive() / offer.start;
        for (child, &token) in (node.children.start..).zip(self.sure(&node)) {
            let left = self.left(&offer, token as usize);
            let weight = if left >= s { 1.0 } else { left.max(0.0) / s };
            if let Some(token) = self.offer(child + 1, weight, again)? {
                self.path.push(child);
                self.end(node, offer);
                return Ok(Some(token));
            }
            s *= 1.0 - weight;
        }
        // What is left of w: all but what was taken, 1 - S.
        let kept = s - (1.0 - w);
        let chance = if kept >= s { 1.0 } else { kept.max(0.0) / s };
        let is_kept = row == 0 || self.chance.keeps(row - 1, chance)?;
        let token = is_kept.then(|| self.drawn(&offer, self.sure(&node)));
        self.end(node, offer);
        token.transpose()
    }

    /// Puts a node and memory back.
    fn end(&mut self, node: Node, offer: Offer) {
        self.spare.extend(offer.left);
        self.nodes[offer.row] = Some(node);
    }

    /// From the root down: the token behind the path.
    fn walk(&mut self) -> Result<usize, DecoderError> {
        let mut row = 0;
        'down: loop {
            let Some(mut node) = self.take(row)? else {
                return self.drawn(&Offer::of_leaf(row), &[]);
            };
            let mut offer = self.begin(&node, row, 1.0)?;
            let levels = self.levels(node.depth);
            for (pass, &level) in levels.iter().enumerate() {
                for turn in 0..node.parts.len() {
                    let stake = self.stake(&node, &offer, turn, level)?;
                    if self.chance.falls(stake.give, stake.mass)? {
                        self.path.push(stake.child);
                        row = stake.child + 1;
                        self.end(node, offer);
                        continue 'down;
                    }
                    self.refuse(&mut node, &mut offer, &stake, pass + 1 < levels.len());
                }
            }
            let token = self.drawn(&offer, &[])?;
            let sure = self.sure(&node).iter().position(|&id| id as usize == token);
            let first = node.children.start;
            self.end(node, offer);
            let Some(sure) = sure else {
                return Ok(token);
            };
            let child = first + sure;
            self.path.push(child);
            row = child + 1;
        }
    }
}

fn nothing() -> DecoderError {
    DecoderError::Shape("p: a row has no mass".to_owned())
}

/// Returns what a pass takes of a mass.
fn passes(level: f64, mass: f64, left: f64) -> f64 {
    ((left - level * mass) / (1.0 - level)).min(mass).max(0.0)
}

/// One pass over inner tokens.
#[derive(Debug, Clone, Copy)]
struct Sweep {
    factor: f64,
    level: f64,
}

const LANES: usize = 8;

/// Returns what a pass leaves of an entry of R and of the law.
#[inline(always)]
fn passed(sweep: Sweep, inverse: [f64; 2], law: f64, left: &mut f64) -> f64 {
    let mass = law * sweep.factor;
    let give = (*left - sweep.level * mass) * inverse[0];
    let give = if give < mass { give } else { mass };
    let give = if give > 0.0 { give } else { 0.0 };
    *left -= give;
    (mass - give) * inverse[1]
}

#[multiversion(targets = "simd")]
fn fresh<T: Entry>(sweep: Sweep, row: &[T], scale: f64, left: &mut [f64], law: &mut [f64]) -> f64 {
    let inverse = [1.0 / (1.0 - sweep.level), 1.0 / sweep.factor];
    let mut sums = [0.0; LANES];
    if law.is_empty() {
        for (left, row) in left.chunks_mut(LANES).zip(row.chunks(LANES)) {
            for ((left, &x), sum) in left.iter_mut().zip(row).zip(&mut sums) {
                *sum += passed(sweep, inverse, x.into() * scale, left);
            }
        }
    } else {
        let all = left.chunks_mut(LANES).zip(row.chunks(LANES));
        for ((left, row), law) in all.zip(law.chunks_mut(LANES)) {
            for (((left, &x), law), sum) in left.iter_mut().zip(row).zip(law).zip(&mut sums) {
                *law = passed(sweep, inverse, x.into() * scale, left);
                *sum += *law;
            }
        }
    }
    sums.iter().sum()
}

#[multiversion(targets = "simd")]
fn again(sweep: Sweep, law: &mut [f64], left: &mut [f64]) -> f64 {
    let inverse = [1.0 / (1.0 - sweep.level), 1.0 / sweep.factor];
    let mut sums = [0.0; LANES];
    for (left, law) in left.chunks_mut(LANES).zip(law.chunks_mut(LANES)) {
        for ((left, law), sum) in left.iter_mut().zip(law).zip(&mut sums) {
            *law = passed(sweep, inverse, *law, left);
            *sum += *law;
        }
    }
    sums.iter().sum()
}
