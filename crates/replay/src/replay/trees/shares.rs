//! What the children of nodes get of logged texts.

use super::super::position::Rest;
use super::super::read::Text;
use super::measure::Measurement;
use super::pairs::{Pair, Shares};
use specgap_core::rounds::ChildShares;
use specgap_core::scheme::SchemeName;
impl Measurement<'_> {
    /// What the children of a node get, text by text.
    pub(super) fn shares(&self, pair: &Pair) -> Shares {
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
    pub(super) fn bounds_of(&self, pair: &Pair, text: &Text, end: usize) -> ChildShares<f64> {
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
    pub(super) fn values(&self, pair: &Pair) -> Vec<ChildShares<f64>> {
        let of = |text: &Text, asked: &[f64]| {
            let mut offset = pair.offset;
            let tables: Vec<(usize, Vec<f64>)> = pair
                .asked
                .iter()
                .map(|&children| {
                    let begin = offset;
                    offset += children;
                    let rows = asked.chunks_exact(self.plan.width.max(1));
                    let table = rows.flat_map(|row| row[begin..begin + children].iter().copied());
                    (children, table.collect())
                })
                .collect();
            ChildShares::new(text.places.len(), pair.rule.nested, tables)
        };
        let by_depth = |text: &Text| {
            let deeper = text.asked_deeper.iter().map(|asked| of(text, asked));
            of(text, &text.asked).with_deeper(deeper.collect())
        };
        self.texts.texts.iter().map(by_depth).collect()
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
