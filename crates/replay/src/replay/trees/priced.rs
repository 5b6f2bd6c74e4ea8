//! Trees at one price for all nodes, beside trees of one shape with as many nodes in the mean.

use super::super::ReplayError;
use super::super::measured::{add_each, ratio};
use super::super::read::Text;
use super::super::timings::Timings;
use super::data::{AtPrice, BesidePrice, PricedBy, PricedTrees};
use super::from_leaves::Trees;
use super::grow::Limits;
use super::measure::Measurement;
use super::outcome::Half;
use super::pairs::{Pair, Shares};
use super::siblings::SlotRates;
use specgap_base::side_by_side;
use specgap_core::rounds::{
    ChildShares, TextToken, kept_from_leaves, most_kept, replay_tree_with, survival_of_tree,
};
use specgap_core::scheme::SchemeName;
use specgap_core::tree::{DraftTree, LEAST_PRICE, Price, PricedRow, Shape};
use specgap_core::verifier::VerifierName;
use specgap_log::log::Log;
use specgap_plan::Levels;
use specgap_statistics::{Clustered, Estimate};

/// The most of a row's largest q that are kept: what a node of likeliest tokens may have.
const HEAVIEST: usize = 16;
/// Mean numbers of nodes at which trees are compared, as far as they are within the budget.
const BUDGETS: [usize; 5] = [4, 8, 16, 32, 64];

/// How trees are shaped by the rows on the way.
#[derive(Clone, Copy)]
enum Shaping<'a> {
    /// At a price, by what is fitted.
    One(f64, &'a Price),
    /// Every token whose product of q reaches a threshold, as EAGLE-2 has them.
    Likeliest(f64, &'a Price),
}

/// A round's tree where it follows the text.
#[derive(Clone, Debug, Default)]
struct Walk {
    /// m_0, m_1, ..
    survival: Vec<f64>,
    /// Children of the text's nodes.
    counts: Vec<usize>,
    /// By level what is kept over what its drafter expects to be: m_d/v_d.
    drafted: Vec<f64>,
}

impl Walk {
    /// Makes one of a tree whose nodes are known.
    fn kept(survival: Vec<f64>) -> Self {
        Self {
            survival,
            ..Self::default()
        }
    }
}

impl Shaping<'_> {
    /// The tree of a round that starts at a position.
    fn walk(self, rows: &[PricedRow], shares: &ChildShares<f64>, start: usize) -> Walk {
        let mut kept = 1.0;
        let mut walk = Walk {
            survival: vec![1.0],
            ..Walk::default()
        };
        let rows = rows.get(start..).unwrap_or(&[]);
        // Children, the chance of their parent, and whether the text goes on through one, if that is sure.
        let each: Box<dyn Iterator<Item = (usize, f64, Option<f64>)>> = match self {
            Self::One(price, fit) => Box::new(
                children_along(fit, price, rows).map(|(count, chance)| (count, chance, None)),
            ),
            Self::Likeliest(least, fit) => Box::new(likeliest_along(fit, least, rows)),
        };
        for (depth, (count, chance, goes_on)) in each.enumerate() {
            walk.counts.push(count);
            walk.drafted.push(kept / chance);
            if count == 0 {
                break;
            }
            kept *= goes_on.unwrap_or_else(|| {
                let here = shares.at(start + depth, count);
                here.iter().take(count).sum()
            });
            walk.survival.push(kept);
            if kept <= 0.0 {
                break;
            }
        }
        walk
    }
}

/// Numbers of children of a text's nodes at a price, and how likely these are kept by what their drafter
/// knows; as far as they go.
pub(super) fn children_along<'a>(
    fit: &'a Price,
    price: f64,
    rows: &'a [PricedRow],
) -> impl Iterator<Item = (usize, f64)> + 'a {
    let mut chance = 1.0;
    let each = rows.iter().take(fit.levels).enumerate();
    each.map_while(move |(depth, row)| {
        let own = (chance > 0.0).then_some(chance)?;
        let count = fit.children_at(price, &row.heaviest, depth, chance);
        chance *= match count {
            0 => 0.0,
            _ => fit.chance(&row.heaviest, row.token, count),
        };
        Some((count, own))
    })
}

/// The same of trees of likeliest tokens, with whether the text's token is among the children.
fn likeliest_along<'a>(
    fit: &'a Price,
    least: f64,
    rows: &'a [PricedRow],
) -> impl Iterator<Item = (usize, f64, Option<f64>)> + 'a {
    let (mut chance, mut product) = (1.0, 1.0);
    rows.iter().take(fit.levels).map_while(move |row| {
        let own = (chance > 0.0).then_some(chance)?;
        let q = row.heaviest.iter();
        let count = q.take_while(|&&q| product * q >= least).count();
        let here = row.heaviest.get(row.token).filter(|_| row.token < count);
        product *= here.copied().unwrap_or(0.0);
        chance *= here.map_or(0.0, |&q| fit.likely(q));
        Some((count, own, Some(f64::from(u8::from(here.is_some())))))
    })
}

/// Rounds of one prompt: calls, what starts with room for all levels accept and their number, and over
/// such rounds, by level, sums of m_d/v_d and of that times the children of the text's node.
#[derive(Clone, Debug, Default, PartialEq)]
struct Sums {
    calls: f64,
    accepted: [f64; 2],
    drafted: Vec<f64>,
    children: Vec<f64>,
}

impl Sums {
    /// From the rounds that begin at each start.
    fn of(starts: &[Walk], levels: usize) -> Self {
        let mut sums = Self::default();
        let chain = DraftTree::new((1..=levels).map(|depth| vec![0; depth]).collect());
        let Ok(chain) = chain.map(|tree| tree.shape()) else {
            return sums;
        };
        let rounds = replay_tree_with(&chain, starts.len(), |start, room, _| {
            let kept = starts[start].survival.iter().copied();
            kept.chain(std::iter::repeat(0.0)).take(room + 1).collect()
        });
        sums.calls = rounds.calls;
        sums.accepted = [rounds.accepted, rounds.whole as f64];
        let whole = starts.len().saturating_sub(levels);
        for (weight, walk) in rounds.starts.iter().zip(starts).take(whole) {
            let drafted: Vec<f64> = walk.drafted.iter().map(|one| weight * one).collect();
            let counts = drafted.iter().zip(&walk.counts);
            let children: Vec<f64> = counts.map(|(one, &count)| one * count as f64).collect();
            add_each(&mut sums.drafted, &drafted);
            add_each(&mut sums.children, &children);
        }
        sums
    }

    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.accepted[0] += other.accepted[0];
        self.accepted[1] += other.accepted[1];
        add_each(&mut self.drafted, &other.drafted);
        add_each(&mut self.children, &other.children);
    }

    /// Mean nodes of a round.
    ///
    /// # Formula
    /// A node that is drafted with pi is kept with v of that, by what its drafter knows. So the mean over
    /// texts of m_d/v_d, m_d the chance that the text's first d tokens are kept, is the number of nodes
    /// of level d, and weighted so the mean number of children of the text's node there is that of a
    /// drafted node. Levels multiply these, so that what v is wrong by cancels.
    fn nodes(&self) -> f64 {
        let (mut here, mut all) = (1.0, 0.0);
        for (children, drafted) in self.children.iter().zip(&self.drafted) {
            here *= children / drafted.max(f64::MIN_POSITIVE);
            all += here;
        }
        all
    }
}

/// Two trees of one shape everywhere, and how often it is the second, so that their mean number of
/// nodes is what is asked for.
struct InTurn {
    shapes: [Shape; 2],
    second: f64,
}

impl InTurn {
    /// Trees with so many nodes in the mean, from the best with at most a number.
    fn new(nodes: f64, best: impl Fn(usize) -> Option<DraftTree>) -> Option<Self> {
        let fewer = nodes.max(0.0).floor() as usize;
        let shapes = [best(fewer)?.shape(), best(fewer + 1)?.shape()];
        let [low, high] = [&shapes[0], &shapes[1]].map(|one| one.drafts() as f64);
        Some(Self {
            second: ((nodes - low) / (high - low).max(1.0)).clamp(0.0, 1.0),
            shapes,
        })
    }

    fn survival(&self, each: impl Fn(&Shape) -> Vec<f64>) -> Vec<f64> {
        let [one, other] = [0, 1].map(|which| each(&self.shapes[which]));
        let at = |survival: &[f64], depth: usize| survival.get(depth).copied().unwrap_or(0.0);
        let depths = 0..one.len().max(other.len());
        let mixed = depths.map(|d| at(&one, d) * (1.0 - self.second) + at(&other, d) * self.second);
        mixed.collect()
    }
}

/// All that trees at one price are measured with.
struct Priced<'a> {
    of: &'a Measurement<'a>,
    /// By text.
    rows: Vec<Vec<PricedRow>>,
    shares: Shares,
    levels: usize,
    limits: Limits,
}

impl Measurement<'_> {
    /// The place of the pair whose trees have one price, if these were asked for.
    ///
    /// # Errors
    /// Logs or settings that do not tell, with the cure.
    pub(super) fn to_price(&self) -> Result<Option<usize>, ReplayError> {
        if !self.settings.price {
            return Ok(None);
        }
        let refused = |why: String| Err(ReplayError::Settings(format!("⟨price⟩: {why}")));
        if self.texts.clusters < 2 {
            return refused(
                "it is fitted on half of the prompts and measured on the others, and there is one \
                 prompt only; capture more prompts, or leave ⟨price⟩ out"
                    .to_owned(),
            );
        }
        if !self.texts.are_whole() || self.texts.is_by_depth() {
            return refused(
                "it is fitted on sums over all tokens, and shapes trees by rows that depend on the text \
                 alone; capture whole rows, the same from every start, or leave ⟨price⟩ out"
                    .to_owned(),
            );
        }
        let levels = self.settings.limits.depth;
        let longest = self.texts.texts.iter().map(|text| text.places.len()).max();
        if longest.is_none_or(|longest| longest <= levels) {
            return refused(format!(
                "no text is longer than a tree's {levels} levels; capture longer texts, or set \
                 ⟨max-depth⟩"
            ));
        }
        let strata = [SchemeName::STRATIFIED, SchemeName::STRATIFIED_INDEPENDENT];
        let own = self.plan.pairs.iter().position(|pair| {
            let is_own = strata.contains(&pair.scheme) && pair.levels.is_none();
            is_own && pair.at_node == VerifierName::LEVEL_4 && pair.branch > 0
        });
        match own {
            Some(_) => Ok(own),
            None => refused(
                "it is of stratified drafts with level-4; leave ⟨laws⟩ and ⟨verifiers⟩ out, or name \
                 stratified and level-4 among them"
                    .to_owned(),
            ),
        }
    }

    /// Trees at one price, of a pair by its place.
    pub(super) fn priced(
        &self,
        logs: &[Log],
        place: usize,
    ) -> Result<Option<PricedTrees>, ReplayError> {
        let Some(pair) = self.plan.pairs.get(place) else {
            return Ok(None);
        };
        let read =
            side_by_side::each_or_stop(&self.texts.texts, |text| self.priced_rows(logs, text));
        let priced = Priced {
            of: self,
            rows: read?,
            shares: self.shares(place, pair),
            levels: self.settings.limits.depth,
            limits: Limits {
                branch: pair.branch,
                ..self.settings.limits
            },
        };
        priced.report(logs, pair).map(Some)
    }

    /// Reads what of a text's rows decides on children.
    fn priced_rows(&self, logs: &[Log], text: &Text) -> Result<Vec<PricedRow>, ReplayError> {
        let mut all = Vec::with_capacity(text.places.len());
        let most = HEAVIEST.max(self.settings.limits.branch);
        self.texts.rows_along(logs, text, &mut |rows, token, _| {
            all.push(PricedRow::of(rows.target, rows.draft, token, most));
        })?;
        Ok(all)
    }
}

impl Priced<'_> {
    /// The texts that are of a half, with their place.
    fn texts(&self, half: Half) -> impl Iterator<Item = usize> {
        let texts = self.of.texts.texts.iter().enumerate();
        texts
            .filter(move |(_, text)| half.has(text.cluster))
            .map(|one| one.0)
    }

    fn walk(&self, shaping: Shaping<'_>, text: usize, start: usize) -> Walk {
        shaping.walk(&self.rows[text], &self.shares.texts[text], start)
    }

    /// Rounds of trees, by prompt; none of prompts of the other half.
    fn rounds(&self, half: Half, starts: impl Fn(usize, usize) -> Walk + Sync) -> Vec<Sums> {
        let texts: Vec<usize> = (0..self.rows.len()).collect();
        let sums = side_by_side::each(&texts, |&text| {
            let is_here = half.has(self.of.texts.texts[text].cluster);
            let length = if is_here { self.rows[text].len() } else { 0 };
            let all: Vec<Walk> = (0..length).map(|start| starts(text, start)).collect();
            Sums::of(&all, self.levels)
        });
        self.of.texts.by_prompt(&sums, Sums::add)
    }

    fn shaped(&self, half: Half, shaping: Shaping<'_>) -> Vec<Sums> {
        self.rounds(half, |text, start| self.walk(shaping, text, start))
    }

    /// Halves an interval of logarithms until trees have so many nodes in the mean.
    fn fitted<'a>(&self, nodes: f64, shaping: impl Fn(f64) -> Shaping<'a>) -> f64 {
        let (mut low, mut high) = (f64::from(LEAST_PRICE), 0.0);
        for _ in 0..24 {
            let middle = f64::midpoint(low, high);
            let trees = self.shaped(Half::Chooses, shaping(2f64.powf(middle)));
            match mean_nodes(&trees) > nodes {
                true => low = middle,
                false => high = middle,
            }
        }
        2f64.powf(high)
    }

    /// What the prompts that report have, each with its tokens.
    fn reporting<'s, T>(&self, sums: &'s [T]) -> impl Iterator<Item = (&'s T, f64)> + Clone {
        let prompts = sums.iter().zip(&self.of.tokens).enumerate();
        let here = prompts.filter(|(cluster, _)| Half::Reports.has(*cluster));
        here.map(|(_, (sums, &tokens))| (sums, tokens))
    }

    fn estimate(&self, sums: &[Sums], of: impl Fn(&Sums, f64) -> (f64, f64)) -> Estimate {
        let here = self.reporting(sums);
        Clustered::new(here.map(|(sums, tokens)| of(sums, tokens))).estimate()
    }

    /// E[tau]; none where no text has room for all levels.
    fn accepted(&self, sums: &[Sums]) -> Option<Estimate> {
        ratio(self.reporting(sums).map(|(one, _)| one.accepted.into()))
    }

    /// Mean nodes of a round on the prompts that report; the interval is from leaving out each prompt.
    fn nodes(&self, sums: &[Sums]) -> Estimate {
        let here = self.reporting(sums).map(|one| one.0);
        let here: Vec<&Sums> = here.filter(|one| !one.drafted.is_empty()).collect();
        let without = |place: usize| {
            let mut all = Sums::default();
            let others = here.iter().enumerate().filter(|one| one.0 != place);
            others.for_each(|(_, one)| all.add(one));
            all.nodes()
        };
        let (all, count) = (without(here.len()), here.len() as f64);
        let values =
            (0..here.len()).map(|place| (count * all - (count - 1.0) * without(place), 1.0));
        let around = Clustered::new(values.collect::<Vec<_>>().into_iter());
        Clustered {
            mean: all,
            ..around
        }
        .estimate()
    }

    /// One kind of trees beside those at one price, on the prompts that report, with as many nodes.
    fn beside(&self, name: &str, own: &[Sums], other: &[Sums], nodes: Estimate) -> BesidePrice {
        let pairs = self.reporting(own).zip(self.reporting(other));
        let pairs =
            pairs.map(|((own, tokens), (other, _))| ((tokens, own.calls), (tokens, other.calls)));
        BesidePrice {
            trees: name.to_owned(),
            nodes,
            tokens_per_call: self.estimate(other, |one, tokens| (tokens, one.calls)),
            more: Clustered::difference(pairs).estimate(),
        }
    }

    /// The price at which most tokens come out in a time, where a pass takes longer the more it has.
    ///
    /// # Formula
    /// Tokens a second are E(m)/T(m) at m nodes in the mean. Where they are most E' = (E/T) T', and E' is
    /// the price: a node is worth its time of the pass, in tokens.
    fn timed(&self, fit: &Price) -> Option<f64> {
        let timings = self.of.settings.timings.as_ref();
        let timings = timings.filter(|one| one.verify.len() > 1)?;
        let speed = |price: f64| {
            let sums = self.shaped(Half::Chooses, Shaping::One(price, fit));
            let nodes = mean_nodes(&sums);
            let calls: f64 = sums.iter().map(|one| one.calls).sum();
            Some(1.0 / (calls * self.round(timings, nodes)?))
        };
        let prices = (0..=40).map(|step| 2f64.powf(f64::from(LEAST_PRICE * step) / 40.0));
        let timed = prices.filter_map(|price| Some((price, speed(price)?)));
        let best = timed.reduce(|a, b| if b.1 > a.1 { b } else { a });
        best.map(|one| one.0)
    }

    /// The time of a round with so many nodes in the mean.
    fn round(&self, timings: &Timings, nodes: f64) -> Option<f64> {
        let fewer = nodes.floor();
        let [low, high] = [0.0, 1.0].map(|more| timings.verifying((fewer + more) as usize + 1));
        let (low, high) = (low?, high.or(low)?);
        let steps = timings.draft_step.seconds * self.levels as f64;
        Some(steps + low + (nodes - fewer) * (high - low) + timings.overhead.seconds)
    }

    fn report(&self, logs: &[Log], pair: &Pair) -> Result<PricedTrees, ReplayError> {
        let chooses = self.texts(Half::Chooses).flat_map(|text| &self.rows[text]);
        let chooses: Vec<&PricedRow> = chooses.collect();
        let fit = Price::fit(
            &pair.scheme.to_string(),
            &chooses,
            self.levels,
            self.limits.branch,
        );
        let own = self.limits.budget;
        let ladder = BUDGETS.into_iter().filter(|&one| one < own).chain([own]);
        let by_nodes = |nodes| self.fitted(nodes, |price| Shaping::One(price, &fit));
        let mut prices: Vec<f64> = ladder.map(|nodes| by_nodes(nodes as f64)).collect();
        let timed = self.timed(&fit);
        prices.extend(timed);
        let chosen = prices.last().copied().unwrap_or(1.0);
        prices.sort_by(|a, b| b.total_cmp(a));
        prices.dedup();
        let mut at: Vec<(AtPrice, InTurn)> = Vec::new();
        for price in prices {
            at.extend(self.at_price(price, pair, &fit));
        }
        self.add_leaves(logs, pair, &fit, &mut at)?;
        let mut children = vec![vec![0; self.limits.branch + 1]; self.levels];
        for text in self.texts(Half::Reports) {
            for start in 0..self.rows[text].len() {
                let counts = self.walk(Shaping::One(chosen, &fit), text, start).counts;
                for (level, count) in children.iter_mut().zip(counts) {
                    level[count] += 1;
                }
            }
        }
        Ok(PricedTrees {
            chosen_on: self.of.texts.clusters.div_ceil(2),
            reported_on: self.of.texts.clusters / 2,
            is_timed: timed.is_some(),
            at: at.into_iter().map(|one| one.0).collect(),
            children,
            price: fit.at(chosen),
        })
    }

    /// Trees at a price, with the rule from the root, and others beside them.
    fn at_price(&self, price: f64, pair: &Pair, fit: &Price) -> Option<(AtPrice, InTurn)> {
        let own = self.shaped(Half::Reports, Shaping::One(price, fit));
        let nodes = self.nodes(&own);
        let as_many = Estimate::plus_minus(nodes.mean, 0.0);
        let rates = SlotRates::new(self.of.choosing(&self.shares), self.limits);
        let of_shapes = |shares: &Shares, trees: &InTurn| {
            self.rounds(Half::Reports, |text, start| {
                let shares = &shares.texts[text];
                let room = shares.len() - start;
                let each = |shape: &Shape| {
                    survival_of_tree(shape, shares, start, room.min(shape.levels()))
                };
                Walk::kept(trees.survival(each))
            })
        };
        let in_turn = InTurn::new(nodes.mean, |budget| {
            let limits = Limits {
                budget,
                ..self.limits
            };
            Some(rates.best_tree(limits).ok()?.0)
        })?;
        let one_shape = of_shapes(&self.shares, &in_turn);
        let mut beside = vec![self.beside("one shape", &own, &one_shape, as_many)];
        let mut pairs = self.of.plan.pairs.iter().enumerate();
        let sequoia = pairs.find(|(_, pair)| pair.at_node == VerifierName::RRS_WO);
        if let Some((place, pair)) = sequoia.filter(|(_, pair)| pair.branch > 0) {
            let shares = self.of.shares(place, pair);
            let trees = InTurn::new(nodes.mean, |budget| {
                let limits = Limits {
                    budget,
                    branch: pair.branch,
                    ..self.limits
                };
                Some(self.of.of_sequoia(&shares, limits)?.1)
            });
            beside.extend(
                trees.map(|trees| {
                    self.beside("sequoia", &own, &of_shapes(&shares, &trees), as_many)
                }),
            );
        }
        let least = self.fitted(
            mean_nodes(&self.shaped(Half::Chooses, Shaping::One(price, fit))),
            |least| Shaping::Likeliest(least, fit),
        );
        let likeliest = self.shaped(Half::Reports, Shaping::Likeliest(least, fit));
        beside.push(self.beside("likeliest", &own, &likeliest, self.nodes(&likeliest)));
        let speedup = self.of.settings.timings.as_ref().and_then(|timings| {
            let time = self.round(timings, nodes.mean)?;
            let alone = timings.target_step.seconds;
            Some(self.estimate(&own, |one, tokens| (alone * tokens, one.calls * time)))
        });
        let by = PricedBy {
            verifier: pair.verifier.to_string(),
            expected_accepted_length: self.accepted(&own),
            tokens_per_call: self.estimate(&own, |one, tokens| (tokens, one.calls)),
            beside,
        };
        let at = AtPrice {
            price,
            nodes,
            most_accepted_length: None,
            speedup,
            by: vec![by],
        };
        Some((at, in_turn))
    }

    /// The same with rules from the leaves on the same drafts, where they were asked for; and what no
    /// rule has more of.
    fn add_leaves(
        &self,
        logs: &[Log],
        own: &Pair,
        fit: &Price,
        at: &mut [(AtPrice, InTurn)],
    ) -> Result<(), ReplayError> {
        let pairs = self.of.plan.pairs.iter();
        let pairs = pairs.filter(|pair| pair.levels.is_some() && pair.scheme == own.scheme);
        let pairs: Vec<&Pair> = pairs.collect();
        if pairs.is_empty() {
            return Ok(());
        }
        let trees = Trees::of_law(own.scheme, (1..=self.limits.branch).collect(), self.levels);
        let each: Vec<usize> = (0..self.rows.len()).collect();
        // By text and start, for each price the most that any rule keeps, and by rule what it keeps at that
        // price and of one shape.
        let read = side_by_side::each_or_stop(&each, |&text| {
            let of = &self.of.texts.texts[text];
            let mut starts = Vec::new();
            if Half::Reports.has(of.cluster) {
                trees.windows(logs, self.of.texts, of, &mut |ahead| {
                    let tokens: Vec<TextToken<'_>> =
                        ahead.iter().map(|here| here.token(0)).collect();
                    let start = starts.len();
                    let mut kept = Vec::new();
                    for (at, in_turn) in at.iter() {
                        let walk = self.walk(Shaping::One(at.price, fit), text, start);
                        let shape = along_text(&walk.counts, &tokens);
                        kept.push(
                            [1.0]
                                .into_iter()
                                .chain(most_kept(&shape, &tokens))
                                .collect(),
                        );
                        for pair in &pairs {
                            let levels = pair.levels.unwrap_or(Levels::ONE);
                            let keep = |shape: &Shape| {
                                let mut reach = vec![0.0; shape.parent.len()];
                                kept_from_leaves(shape, levels, &tokens, &mut reach)
                            };
                            kept.extend([keep(&shape), in_turn.survival(keep)]);
                        }
                    }
                    starts.push(kept);
                })?;
            }
            Ok::<_, ReplayError>(starts)
        })?;
        for (place, (at, _)) in at.iter_mut().enumerate() {
            let rounds = |number: usize| {
                let number = place * (1 + 2 * pairs.len()) + number;
                let kept = |text: usize, start: usize| Vec::clone(&read[text][start][number]);
                self.rounds(Half::Reports, |text, start| Walk::kept(kept(text, start)))
            };
            at.most_accepted_length = self.accepted(&rounds(0));
            for (number, pair) in pairs.iter().enumerate() {
                let [own, one_shape] = [1, 2].map(|which| rounds(2 * number + which));
                let as_many = Estimate::plus_minus(at.nodes.mean, 0.0);
                at.by.push(PricedBy {
                    verifier: pair.verifier.to_string(),
                    expected_accepted_length: self.accepted(&own),
                    tokens_per_call: self.estimate(&own, |one, tokens| (tokens, one.calls)),
                    beside: vec![self.beside("one shape", &own, &one_shape, as_many)],
                });
            }
        }
        Ok(())
    }
}

/// Mean nodes of a round, of all prompts that are there.
fn mean_nodes(sums: &[Sums]) -> f64 {
    let mut all = Sums::default();
    sums.iter().for_each(|one| all.add(one));
    all.nodes()
}

/// A tree whose nodes along a text have so many children, by level, and whose others have none.
pub(super) fn along_text(counts: &[usize], text: &[TextToken<'_>]) -> Shape {
    let mut shape = Shape {
        parent: vec![0],
        rank: vec![0],
        children: vec![0],
        depth: vec![0],
        first_child: vec![0],
    };
    let mut here = vec![0];
    for (depth, (&count, token)) in counts.iter().zip(text).enumerate() {
        let mut rows = token.rows.iter();
        let Some((_, rows)) = rows.find(|one| one.0 == count) else {
            break;
        };
        let (slots, _) = rows.drawn_by(rows.token(token.token, token.at), count);
        let mut below = Vec::new();
        for node in here {
            let first = shape.parent.len();
            (shape.children[node], shape.first_child[node]) = (count, first);
            shape.parent.extend(vec![node; count]);
            shape.rank.extend(0..count);
            shape.children.extend(vec![0; count]);
            shape.depth.extend(vec![depth + 1; count]);
            shape.first_child.extend(vec![0; count]);
            below.extend(slots.iter().map(|(slot, _)| first + slot));
        }
        here = below;
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use specgap_row::{Rows, Workspace};

    const V: usize = 3;
    const LEVELS: usize = 2;

    /// Rows behind the text, and behind each first token.
    type Model = Vec<[Vec<f64>; 2]>;

    fn model(random: &mut ChaCha8Rng) -> Model {
        let mut row = || {
            let parts: Vec<f64> = (0..V).map(|_| random.random_range(0.02..1.0f64)).collect();
            let sum: f64 = parts.iter().sum();
            parts.iter().map(|part| part / sum).collect::<Vec<f64>>()
        };
        (0..=V).map(|_| [row(), row()]).collect()
    }

    /// Sure tokens of a node's children, and the laws of the others.
    fn children(q: &[f64], count: usize) -> (Vec<usize>, Vec<[f64; V]>) {
        let mut order: Vec<usize> = (0..V).collect();
        order.sort_by(|&a, &b| q[b].total_cmp(&q[a]));
        let (mut sure, mut left) = (0, 1.0);
        while sure + 1 < count && (count - sure) as f64 * q[order[sure]] >= left {
            left -= q[order[sure]];
            sure += 1;
        }
        let strata = (count - sure) as f64;
        let mut laws = vec![[0.0; V]; count - sure];
        let mut before = 0.0;
        for &token in &order[sure..] {
            let ends = [before, before + q[token] * strata / left];
            for (stratum, law) in laws.iter_mut().enumerate() {
                let (from, to) = (stratum as f64, stratum as f64 + 1.0);
                law[token] = (ends[1].min(to) - ends[0].max(from)).max(0.0);
            }
            before = ends[1];
        }
        order.truncate(sure);
        (order, laws)
    }

    /// The chances that some child of a root has a text's first token, and that some child of such a one
    /// has the second: every draw of the root's.
    fn drafted(model: &Model, price: &Price, text: [usize; 2]) -> [f64; 2] {
        let count = |node: usize, depth, chance| {
            let row = PricedRow::of(&model[node][0], &model[node][1], text[0], V);
            let count = price.children(&row.heaviest, depth, chance);
            (
                count,
                chance * price.chance(&row.heaviest, row.token, count),
            )
        };
        let (own, chance) = count(0, 0, 1.0);
        let (below, _) = count(1 + text[0], 1, chance);
        let (sure, laws) = children(&model[1 + text[0]][1], below);
        let none: f64 = laws.iter().map(|law| 1.0 - law[text[1]]).product();
        let none = if sure.contains(&text[1]) { 0.0 } else { none };
        let (sure, laws) = children(&model[0][1], own);
        let mut found = [0.0; 2];
        for tuple in 0..V.pow(laws.len() as u32) {
            let drawn = |stratum: usize| tuple / V.pow(stratum as u32) % V;
            let chance: f64 = (0..laws.len()).map(|j| laws[j][drawn(j)]).product();
            let of_strata = (0..laws.len()).filter(|&j| drawn(j) == text[0]).count();
            let nodes = of_strata + usize::from(sure.contains(&text[0]));
            found[0] += chance * f64::from(u8::from(nodes > 0));
            found[1] += chance * (1.0 - none.powi(nodes as i32));
        }
        found
    }

    /// Sums what a round accepts behind a node: every draw of its drafts, every coin of its level passes.
    fn accepted(model: &Model, price: &Price, node: usize, depth: usize, chance: f64) -> f64 {
        let [p, q] = &model[node];
        let row = PricedRow::of(p, q, 0, V);
        let count = price.children(&row.heaviest, depth, chance);
        let (sure, laws) = children(q, count);
        let below = |token: usize| {
            let place = PricedRow::of(p, q, token, V).token;
            let chance = chance * price.chance(&row.heaviest, place, count);
            match depth + 1 < LEVELS {
                true => 1.0 + accepted(model, price, 1 + token, depth + 1, chance),
                false => 1.0,
            }
        };
        let mut sum = 0.0;
        for tuple in 0..V.pow(laws.len() as u32) {
            let drawn = |stratum: usize| tuple / V.pow(stratum as u32) % V;
            let mut weight: f64 = (0..laws.len()).map(|j| laws[j][drawn(j)]).product();
            if weight == 0.0 {
                continue;
            }
            let (mut rest, mut alive, mut laws) = (p.clone(), 1.0, laws.clone());
            for level in [0.8, 0.5, 0.2, 0.0] {
                for j in (0..laws.len()).rev() {
                    let take = |y: usize| {
                        ((rest[y] / alive - level * laws[j][y]) / (1.0 - level))
                            .clamp(0.0, laws[j][y])
                    };
                    let taken: Vec<f64> = (0..V).map(take).collect();
                    let coin = taken[drawn(j)] / laws[j][drawn(j)].max(f64::MIN_POSITIVE);
                    sum += weight * coin * below(drawn(j));
                    weight *= 1.0 - coin;
                    let all: f64 = taken.iter().sum();
                    for (y, taken) in taken.iter().enumerate() {
                        rest[y] -= alive * taken;
                        laws[j][y] = (laws[j][y] - taken) / (1.0 - all).max(f64::MIN_POSITIVE);
                    }
                    alive *= 1.0 - all;
                }
            }
            for &token in &sure {
                let coin = (rest[token] / alive).clamp(0.0, 1.0);
                sum += weight * coin * below(token);
                weight *= 1.0 - coin;
                alive *= 1.0 - coin;
            }
        }
        sum
    }

    /// The mean over all texts of what is replayed, and the nodes.
    fn replayed(model: &Model, shaping: Shaping<'_>) -> [f64; 2] {
        let rule = VerifierName::LEVEL_4.token_rule(SchemeName::STRATIFIED_INDEPENDENT);
        let rule = rule.unwrap();
        let (mut sum, mut all) = (0.0, Sums::default());
        for (first, second) in (0..V * V).map(|text| (text / V, text % V)) {
            let mut tables = vec![Vec::new(); V];
            let mut rows = Vec::new();
            let mut chance = 1.0;
            for (node, token) in [(0, first), (1 + first, second)] {
                let [p, q] = &model[node];
                chance *= p[token];
                rows.push(PricedRow::of(p, q, token, V));
                let mut scan = Workspace::default();
                let both = Rows {
                    target: p,
                    draft: q,
                };
                for (index, table) in tables.iter_mut().enumerate() {
                    let mut row = scan.load(both, V).unwrap();
                    table.extend(rule.shares(&mut row, token, index + 1, 0).unwrap());
                }
            }
            let tables = tables.into_iter().enumerate();
            let shares = ChildShares::new(2, false, tables.map(|(n, table)| (n + 1, table)));
            let walk = shaping.walk(&rows, &shares, 0);
            sum += chance * walk.survival[1..].iter().sum::<f64>();
            let drafted: Vec<f64> = walk.drafted.iter().map(|one| chance * one).collect();
            let children = drafted.iter().zip(&walk.counts);
            let children: Vec<f64> = children.map(|(one, &count)| one * count as f64).collect();
            add_each(&mut all.drafted, &drafted);
            add_each(&mut all.children, &children);
        }
        [sum, all.nodes()]
    }

    #[test]
    fn the_replay_is_the_mean_over_every_tree_and_coin() {
        let mut random = ChaCha8Rng::seed_from_u64(25);
        let mut shapes = [0; 4];
        for _ in 0..60 {
            let model = model(&mut random);
            let rows: Vec<PricedRow> = (model.iter())
                .flat_map(|[p, q]| (0..V).map(|token| PricedRow::of(p, q, token, V)))
                .collect();
            let fit = Price::fit("", &rows.iter().collect::<Vec<_>>(), LEVELS, V);
            for price in [0.9, 0.3, 0.1, 0.03] {
                let exact = accepted(&model, &fit.at(price), 0, 0, 1.0);
                let found = replayed(&model, Shaping::One(price, &fit))[0];
                assert!((exact - found).abs() < 1e-12, "{price}: {exact} {found}");
                shapes[fit.at(price).children(&rows[0].heaviest, 0, 1.0)] += 1;
            }
        }
        assert!(shapes.iter().all(|&count| count > 0), "{shapes:?}");
    }

    /// The ceiling counts how often a prefix is drafted, by every draw, and neither rule passes it.
    #[test]
    fn no_rule_has_more_of_the_same_trees() {
        let mut random = ChaCha8Rng::seed_from_u64(27);
        let trees = Trees::of_law(SchemeName::STRATIFIED_INDEPENDENT, vec![1, 2, 3], LEVELS);
        let mut is_near = 0;
        for _ in 0..60 {
            let model = model(&mut random);
            let rows: Vec<PricedRow> = (model.iter())
                .map(|[p, q]| PricedRow::of(p, q, 0, V))
                .collect();
            let fit = Price::fit("", &rows.iter().collect::<Vec<_>>(), LEVELS, V);
            for price in [0.3, 0.1, 0.03] {
                let price = fit.at(price);
                let (mut most, mut enumerated, mut kept) = (0.0, 0.0, 0.0);
                for text in (0..V * V).map(|text| [text / V, text % V]) {
                    let nodes = [0, 1 + text[0]];
                    let here = nodes.iter().zip(text).map(|(&node, token)| {
                        let [target, draft] = &model[node];
                        trees.here(Rows { target, draft }, token, None).unwrap()
                    });
                    let here: Vec<_> = here.collect();
                    let tokens: Vec<TextToken<'_>> = here.iter().map(|one| one.token(0)).collect();
                    let rows: Vec<PricedRow> = (nodes.iter())
                        .zip(text)
                        .map(|(&node, token)| {
                            let [p, q] = &model[node];
                            PricedRow::of(p, q, token, V)
                        })
                        .collect();
                    let counts: Vec<usize> = children_along(&price, price.price, &rows)
                        .map(|one| one.0)
                        .collect();
                    let shape = along_text(&counts, &tokens);
                    let chance = model[0][0][text[0]] * model[1 + text[0]][0][text[1]];
                    most += chance * most_kept(&shape, &tokens).iter().sum::<f64>();
                    let mut reach = vec![0.0; shape.parent.len()];
                    let of = kept_from_leaves(&shape, Levels::ONE, &tokens, &mut reach);
                    kept += chance * of[1..].iter().sum::<f64>();
                    let pi = drafted(&model, &price, text);
                    enumerated +=
                        chance * (pi[0] / model[0][0][text[0]]).min(1.0) + chance.min(pi[1]);
                }
                assert!((most - enumerated).abs() < 1e-12, "{most} {enumerated}");
                for rule in [kept, accepted(&model, &price, 0, 0, 1.0)] {
                    assert!(rule <= most + 1e-12, "{rule} {most}");
                    is_near += usize::from(rule > 0.95 * most);
                }
            }
        }
        assert!(is_near > 0);
    }

    /// One row behind every prefix, of other chances for each q: what a drafter knows is then how
    /// likely a child is accepted. One child a node, so that two are drafted; two, so that six are.
    #[test]
    fn nodes_along_the_text_are_those_of_the_tree() {
        let (p, q) = (vec![0.25, 0.45, 0.3], vec![0.5, 0.25, 0.25]);
        let model: Model = vec![[p.clone(), q.clone()]; V + 1];
        let rows: Vec<PricedRow> = vec![PricedRow::of(&p, &q, 0, V)];
        for (children, nodes, within) in [(1, 2.0, 1e-12), (2, 6.0, 1e-12)] {
            let fit = Price::fit("", &rows.iter().collect::<Vec<_>>(), LEVELS, children);
            let found = replayed(&model, Shaping::One(2f64.powi(LEAST_PRICE), &fit))[1];
            assert!((found - nodes).abs() < within, "{children}: {found}");
        }
    }

    /// Two roots as likely: the most that two nodes each keep, if a token is drafted by its q alone. Strata
    /// look at the row, and keep more.
    #[test]
    fn no_ceiling_of_trees_by_draft_probability_is_one_of_strata() {
        let padded = |row: &[f64]| [row, &vec![0.0; 10 - row.len()]].concat();
        let roots = [
            [padded(&[0.1, 0.9]), padded(&[0.9, 0.1])],
            [padded(&[1.0]), vec![0.1; 10]],
        ];
        let rule = VerifierName::LEVEL_4.token_rule(SchemeName::STRATIFIED);
        let rule = rule.unwrap();
        let mut kept = 0.0;
        for [target, draft] in &roots {
            let mut scan = Workspace::default();
            let mut row = scan.load(Rows { target, draft }, 2).unwrap();
            for token in (0..10).filter(|&token| target[token] > 0.0) {
                let shares = rule.shares(&mut row, token, 2, 0).unwrap();
                kept += target[token] * shares.iter().sum::<f64>();
            }
        }
        assert!((kept - 1.2).abs() < 1e-12, "{kept}");
        // One token has q = .9, eleven have q = .1: every pair of chances with four nodes.
        let mut most = 0.0f64;
        for step in 0..=100_000 {
            let heavy = f64::from(step) / 1e5;
            let light = ((4.0 - heavy) / 11.0).min(1.0);
            let chance = |q: f64| if q > 0.5 { heavy } else { light };
            let each = roots.iter().flat_map(|[p, q]| p.iter().zip(q));
            let within = each.filter(|(_, q)| **q > 0.0);
            most = most.max(within.map(|(p, q)| p.min(chance(*q))).sum());
        }
        assert!((most - 0.809).abs() < 1e-3, "{most}");
    }

    #[test]
    fn shapes_along_a_text_have_the_children_that_are_asked_for() {
        let mut random = ChaCha8Rng::seed_from_u64(26);
        let model = model(&mut random);
        let trees = Trees::of_law(SchemeName::STRATIFIED_INDEPENDENT, vec![1, 2, 3], 2);
        let here: Vec<_> = [(0, 1), (2, 0)]
            .into_iter()
            .map(|(node, token): (usize, usize)| {
                let [target, draft] = &model[node];
                trees.here(Rows { target, draft }, token, None).unwrap()
            })
            .collect();
        let tokens: Vec<TextToken<'_>> = here.iter().map(|here| here.token(0)).collect();
        let shape = along_text(&[3, 2, 0], &tokens);
        assert_eq!((shape.children[0], shape.levels()), (3, 2));
        let inner = shape.children[1..=3]
            .iter()
            .filter(|&&count| count == 2)
            .count();
        assert!(inner > 0 && shape.drafts() == 3 + 2 * inner);
        assert!(shape.children[4..].iter().all(|&count| count == 0));
        assert_eq!(along_text(&[0], &tokens).drafts(), 0);
    }
}
