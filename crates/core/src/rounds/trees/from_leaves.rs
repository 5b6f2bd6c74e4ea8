//! Trees that are verified from their leaves, along a text.

use crate::tree::Shape;
use specgap_plan::{Drafted, Levels, OfferedRows, Offers};

/// A position of a text.
#[derive(Clone, Copy, Debug)]
pub struct TextToken<'a> {
    /// By number of children: what nodes here draw from; of i.i.d. children one for all.
    pub rows: &'a [(usize, OfferedRows)],
    /// The text's token in them.
    pub token: u32,
    /// Its p and q.
    pub at: [f64; 2],
}

impl TextToken<'_> {
    fn drawn(&self, children: usize) -> Option<(&OfferedRows, Drafted)> {
        let (_, rows) =
            (self.rows.iter()).find(|(count, rows)| *count == children || rows.is_iid())?;
        Some((rows, rows.token(self.token, self.at)))
    }
}

/// The probability, given the text, that a round from its first token on keeps each node or one
/// below it, as far as the text goes; and m_0, m_1, ... The root's passes are at `levels`, and
/// there is one pass below it.
///
/// # Formula
/// What a prefix of the text is offered, and of what weight, does not depend on drafts. With O_i the
/// probability that offer i is made to a node, and that it holds the text's tokens, and w_i its
/// weight, the node or one below it is kept with the sum of O_i w_i / p(y_1..y_d). Children that
/// agree are nodes of their own.
///
/// # Exactness
/// Given the text there is no randomness left; sums in `f64`.
///
/// # Complexity
/// O(n log V) an offer of a node, of which there are as many as ways to draw the text.
pub fn kept_from_leaves(
    shape: &Shape,
    levels: Levels<'_>,
    text: &[TextToken<'_>],
    reach: &mut [f64],
) -> Vec<f64> {
    let room = shape.levels().min(text.len());
    let mut survival = vec![0.0; room + 1];
    let mut offers: Vec<Vec<[f64; 2]>> = vec![Vec::new(); shape.parent.len()];
    offers[0].push([1.0; 2]);
    reach.fill(0.0);
    for node in 0..=shape.nodes_to(room) {
        let depth = shape.depth[node];
        let own = std::mem::take(&mut offers[node]);
        let kept: f64 = own.iter().map(|[made, weight]| made * weight).sum();
        reach[node] = kept.min(1.0);
        survival[depth] += kept;
        let count = shape.children[node];
        let here = text.get(depth).filter(|_| !own.is_empty() && count > 0);
        let Some((here, (rows, token))) = here.and_then(|here| Some((here, here.drawn(count)?)))
        else {
            continue;
        };
        let mut children = Offers::new(rows, count);
        let levels = if node == 0 { levels } else { Levels::ONE };
        for [made, weight] in own {
            for asked in children.offer(weight, levels, &|_| token).asked {
                let child = &mut offers[shape.child(node, asked.slot)];
                child.push([made * asked.chance / here.at[0], asked.weight]);
            }
        }
    }
    for level in 1..survival.len() {
        survival[level] = survival[level].min(survival[level - 1]);
    }
    survival
}

/// Returns what no lossless round keeps more of, whatever it does with the tree: with pi(x) the chance that x
/// is drafted, min(1, pi(y_1..y_d) / p(y_1..y_d)) for d = 1, 2, ... as far as the text goes.
///
/// # Formula
/// A round that keeps x has drafted x, and its text begins with x: it keeps x with at most
/// min(p(x), pi(x)), so E\[tau\] is at most the mean over texts of the sum of these over d. Children
/// that agree are nodes of their own; merged, they are drafted no more often.
///
/// # Complexity
/// O(levels) a visit of a node, of which there are as many as ways to draw the text.
pub fn most_kept(shape: &Shape, text: &[TextToken<'_>]) -> Vec<f64> {
    let room = shape.levels().min(text.len());
    let drafted = drafted_below(shape, 0, &text[..room]);
    let mut chance = 1.0;
    let each = drafted.iter().zip(text).map(|(drafted, here)| {
        chance *= here.at[0];
        (drafted / chance).min(1.0)
    });
    each.collect()
}

/// The chance that a text's first tokens are drafted behind a node, for one, two, ... of them.
fn drafted_below(shape: &Shape, node: usize, text: &[TextToken<'_>]) -> Vec<f64> {
    let mut drafted = vec![0.0; text.len()];
    let count = shape.children[node];
    let here = text.first().filter(|_| count > 0);
    let Some((rows, token)) = here.and_then(|here| here.drawn(count)) else {
        return drafted;
    };
    let (slots, is_one) = rows.drawn_by(token, count);
    for (slot, chance) in slots {
        let below = drafted_below(shape, shape.child(node, slot), &text[1..]);
        let all = [1.0].into_iter().chain(below);
        for (drafted, below) in drafted.iter_mut().zip(all) {
            let more = chance * below;
            *drafted += if is_one {
                more
            } else {
                more * (1.0 - *drafted)
            };
        }
    }
    drafted
}
