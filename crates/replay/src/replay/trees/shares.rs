//! What the children of nodes get of logged texts.

use super::super::ReplayError;
use super::super::asked::Answers;
use super::super::position::{Rest, TextPosition};
use super::super::read::Text;
use super::measure::Measurement;
use super::pairs::{Pair, Shares};
use specgap_core::rounds::ChildShares;
use specgap_log::log::Log;

/// Adds the shares of a row to a table, from its place and what was asked of it: with the same
/// tokens unlisted in both rows, and with others.
type OfRow<'a> = dyn Fn(&TextPosition, &[f64], &[f64], &mut Vec<f64>) + 'a;

impl Measurement<'_> {
    /// Returns what the children of a node get, text by text.
    pub(super) fn shares(&self, place: usize, pair: &Pair) -> Shares {
        let is_cut = !self.texts.are_whole();
        // Wide bounds are told of every law: of one that has none of its own, those of any.
        let has_bounds = is_cut && (self.has_bounds(pair) || self.texts.are_wide());
        let has_bounds = has_bounds && pair.levels.is_none();
        let mut pairs = self.plan.pairs.iter();
        Shares {
            texts: self.values(pair),
            from_leaves: pair.levels.map(|_| place),
            most: pairs
                .position(|one| !is_cut && one.levels.is_some() && one.scheme == pair.scheme),
            bounds: has_bounds.then(|| {
                [0, 1].map(|end| {
                    let texts = self.texts.texts.iter();
                    texts.map(|text| self.bounds_of(pair, text, end)).collect()
                })
            }),
        }
    }

    /// The least or the most that the children of a node get along a text.
    pub(super) fn bounds_of(&self, pair: &Pair, text: &Text, end: usize) -> ChildShares<f64> {
        let is_by_rank = pair.scheme.entry().by_rank;
        let has_bounds = self.has_bounds(pair);
        let row = |place: &TextPosition, own: &[f64], other: &[f64], table: &mut Vec<f64>| {
            // Drafts that are the heaviest tokens may be others than the listed ones.
            let is_sure = match place.rest {
                Rest::Known { heaviest } => has_bounds && (!is_by_rank || own.len() <= heaviest),
                Rest::None => true,
                Rest::Open => false,
            };
            if place.listed && is_sure {
                table.extend(between(own, other).map(|ends| ends[end]));
            } else {
                table.extend(std::iter::repeat_n(end as f64, own.len()));
            }
        };
        self.by_depth(pair, text, &row)
    }

    /// Shares by position and depth, of each number of children from what a place, and what was
    /// asked of its row, say.
    fn by_depth(&self, pair: &Pair, text: &Text, row: &OfRow<'_>) -> ChildShares<f64> {
        // No round drafts so far at a text's first positions.
        let nowhere = TextPosition::default();
        let of = |depth: usize, asked: &[Answers], apart: &[Answers]| {
            let tables: Vec<(usize, Vec<f64>)> = (pair.asked.iter())
                .map(|(children, slot)| {
                    let mut table = Vec::with_capacity(children * text.places.len());
                    for (position, asked) in asked.iter().enumerate() {
                        let own = slot.of(asked);
                        let other = apart.get(position).map_or(own, |apart| slot.of(apart));
                        let start = position.checked_sub(depth);
                        let place = start.and_then(|start| text.ahead(start).get(depth));
                        row(place.unwrap_or(&nowhere), own, other, &mut table);
                    }
                    (*children, table)
                })
                .collect();
            ChildShares::new(text.places.len(), pair.rule.nested, tables)
        };
        let deeper = text.deeper.iter().zip(1..);
        let deeper = deeper.map(|([asked, apart], depth)| of(depth, asked, apart));
        of(0, &text.asked, &text.apart).with_deeper(deeper.collect())
    }

    /// Returns what the children of a node get, text by text, with the rest in proportion.
    pub(super) fn values(&self, pair: &Pair) -> Vec<ChildShares<f64>> {
        let texts = self.texts.texts.iter();
        let own = |_: &TextPosition, own: &[f64], _: &[f64], table: &mut Vec<f64>| {
            table.extend_from_slice(own);
        };
        texts.map(|text| self.by_depth(pair, text, &own)).collect()
    }
}

impl Measurement<'_> {
    /// Tells whether rounds of a pair are known from these logs.
    pub(super) fn tells_of(&self, pair: &Pair) -> bool {
        let tells = self.texts.are_whole() || self.has_bounds(pair);
        pair.levels.is_none() || (tells && !self.texts.is_by_depth())
    }

    /// Reads what rules from the leaves keep of every tree that the report asks for.
    pub(super) fn read_from_leaves(&mut self, logs: &[Log]) -> Result<(), ReplayError> {
        let mut at_nodes = self.at_nodes();
        for (place, pair) in self.plan.pairs.iter().enumerate() {
            if pair.levels.is_none() || !self.tells_of(pair) {
                continue;
            }
            let shares = self.shares(place, pair);
            for tree in &self.settings.trees {
                let shape = tree.tree.shape();
                if pair.takes(&shape) {
                    self.group(&shares, &shape);
                }
            }
            self.grown(pair, &shares);
            self.enter(pair, &shares, &mut at_nodes);
        }
        self.from_leaves.read(logs, self.texts, &self.plan.pairs)
    }

    /// Why rules from the leaves are not here, if they are not.
    pub(super) fn without_leaves(&self) -> Option<String> {
        let pairs = self.plan.pairs.iter().filter(|pair| !self.tells_of(pair));
        let names: Vec<String> = pairs.map(Pair::name).collect();
        let cure = match self.texts.is_by_depth() {
            true => {
                "what a node is offered depends on the whole path to it, and the draft's rows \
                     here on where a round begins"
            }
            false => {
                "what a node is offered depends on sums over all tokens at each prefix. Log \
                      full rows"
            }
        };
        (!names.is_empty()).then(|| format!("{}: {cure}", names.join(", ")))
    }
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
