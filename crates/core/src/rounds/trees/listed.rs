//! Trees that are verified from their leaves, along a text of whose rows lists are known: bounds.

use crate::tree::Shape;
use specgap_plan::OfferedLists;

/// A position of a text of which both rows list some tokens.
#[derive(Clone, Copy, Debug)]
pub struct ListedToken<'a> {
    /// By number of children: what nodes here draw from; of i.i.d. children one for all. None where
    /// that is not known.
    pub lists: &'a [(usize, Option<OfferedLists>)],
    /// The text's token in the lists, with its p; none where it is not listed.
    pub token: Option<(usize, f64)>,
}

/// Room for the rounding of sums.
const ROUNDING: f64 = 1e-11;

/// A node's numbers, at least and at most.
#[derive(Clone, Copy)]
struct State {
    /// P(an offer is made, and the drafts are the text's tokens), over p of these.
    made: [f64; 2],
    /// The offer's weight.
    weight: [f64; 2],
    /// P(the node, or one below it, is kept), given the text.
    kept: [f64; 2],
}

/// m_0, m_1, .. of [`kept_from_leaves`](super::kept_from_leaves) with one pass at every node, at least and at
/// most, whatever the tokens are that rows do not list.
///
/// # Formula
/// With one pass a node is offered once at most: its weight is a function of that of its parent, and
/// lies between what the ends of all numbers give. `docs/theory/truncated-rows.md#text`.
///
/// # Complexity
/// O(listed tokens) a child.
pub fn kept_between(shape: &Shape, text: &[ListedToken<'_>]) -> [Vec<f64>; 2] {
    let room = shape.levels().min(text.len());
    let mut survival = [vec![0.0; room + 1], vec![0.0; room + 1]];
    let mut states: Vec<Option<State>> = vec![None; shape.parent.len()];
    states[0] = Some(State {
        made: [1.0; 2],
        weight: [1.0; 2],
        kept: [1.0; 2],
    });
    for end in &mut survival {
        end[0] = 1.0;
    }
    for node in 0..=shape.nodes_to(room) {
        let (depth, count) = (shape.depth[node], shape.children[node]);
        let here = text.get(depth).filter(|_| count > 0);
        let Some((state, here)) = states[node].take().zip(here) else {
            continue;
        };
        let mut lists = here.lists.iter();
        let lists = lists.find(|(children, lists)| {
            let is_iid = lists.as_ref().is_some_and(OfferedLists::is_iid);
            is_iid || *children == count
        });
        let found = here.token.and_then(|(token, p)| {
            let lists = lists?.1.as_ref()?;
            Some((p, lists.offered(token, count, state.weight)?))
        });
        // What all children take at most.
        let most = found.as_ref().map_or(state.kept[1], |(p, found)| {
            state.kept[1].min(state.made[1] * found.kept[1] / p)
        });
        let Some((p, found)) = found.filter(|one| !one.1.asked.is_empty()) else {
            // All below may be kept where that is, or nothing.
            for level in &mut survival[1][depth + 1..] {
                *level += most;
            }
            continue;
        };
        let mut sums = [0.0; 2];
        for one in &found.asked {
            let made = [0, 1].map(|end| state.made[end] * one.chance[end] / p);
            let part = |owed: f64, chance: f64| if owed < chance { owed / chance } else { 1.0 };
            let weight = [
                part(one.owed[0], one.chance[1]),
                part(one.owed[1], one.chance[0]),
            ];
            let taken = |end: usize| one.chance[end].min(one.owed[end]);
            let kept = [0, 1].map(|end| state.made[end] * taken(end) / p);
            for (sum, kept) in sums.iter_mut().zip(kept) {
                *sum += kept;
            }
            states[shape.child(node, one.slot)] = Some(State { made, weight, kept });
        }
        survival[0][depth + 1] += sums[0].max(state.made[0] * found.kept[0] / p);
        survival[1][depth + 1] += sums[1].min(most);
    }
    let [least, most] = &mut survival;
    for level in 1..=room {
        most[level] = (most[level] + ROUNDING).min(most[level - 1]);
        least[level] = (least[level] - ROUNDING).clamp(0.0, most[level]);
    }
    survival
}

#[cfg(test)]
mod tests {
    use super::super::{TextToken, kept_from_leaves};
    use super::*;
    use crate::tree::DraftTree;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use specgap_plan::{Children, Levels, OfferedRows, Straddle};

    const LISTED: usize = 4;

    fn shares(random: &mut ChaCha8Rng, count: usize, power: i32) -> Vec<f64> {
        let parts = (0..count).map(|_| random.random_range(0.01..1.0f64).powi(power));
        let parts: Vec<f64> = parts.collect();
        let sum: f64 = parts.iter().sum();
        parts.iter().map(|part| part / sum).collect()
    }

    /// Lists of a row of p and one of q, with what they leave out and the most q of that.
    struct Listed {
        rows: [Vec<f64>; 2],
        rest: [f64; 2],
        largest: f64,
    }

    impl Listed {
        fn draw(random: &mut ChaCha8Rng, most: f64) -> Self {
            let rest = [0, 1].map(|_| most * random.random_range(0.0..1.0f64));
            let power = random.random_range(1..4);
            let rows = rest.map(|rest| {
                let own = shares(random, LISTED, power);
                own.iter().map(|share| share * (1.0 - rest)).collect()
            });
            let largest = random.random_range(0.02..0.12f64).min(rest[1]);
            Self {
                rows,
                rest,
                largest,
            }
        }

        /// One of the rows that this may be of: the rest of p apart, with q's, or anyhow.
        fn completed(&self, random: &mut ChaCha8Rng, kind: usize) -> [Vec<f64>; 2] {
            let mut q = Vec::new();
            let mut left = self.rest[1];
            while left > 0.0 {
                let own = self.largest * random.random_range(0.2..1.0f64);
                q.push(if self.rest[1] - left > 0.8 * self.rest[1] {
                    left.min(self.largest)
                } else {
                    own.min(left)
                });
                left -= q[q.len() - 1];
            }
            q.extend([0.0; 2]);
            let p = match kind {
                0 => q.iter().map(|&q| f64::from(u8::from(q == 0.0))).collect(),
                1 => q.clone(),
                2 => (0..q.len())
                    .map(|at| f64::from(u8::from(at == 0)))
                    .collect(),
                _ => shares(random, q.len(), 1 + kind as i32),
            };
            let sum: f64 = p.iter().sum::<f64>().max(f64::MIN_POSITIVE);
            let p: Vec<f64> = p.iter().map(|p| p / sum * self.rest[0]).collect();
            [
                [&self.rows[0][..], &p].concat(),
                [&self.rows[1][..], &q].concat(),
            ]
        }
    }

    /// What is kept of a text where it is known, whatever completes its rows, lies between the bounds, and
    /// comes near to either.
    #[test]
    fn bounds_hold_whatever_completes_the_rows() {
        let mut random = ChaCha8Rng::seed_from_u64(32);
        let paths = |all: &[&[usize]]| all.iter().map(|path| path.to_vec()).collect::<Vec<_>>();
        let trees = [
            paths(&[
                &[0],
                &[1],
                &[2],
                &[0, 0],
                &[0, 1],
                &[1, 0],
                &[0, 0, 0],
                &[0, 0, 1],
            ]),
            paths(&[&[0], &[1], &[2], &[3], &[0, 0], &[1, 0], &[1, 0, 0]]),
        ];
        let strata = [Straddle::Once, Straddle::Independent].map(Children::Strata);
        let [mut narrow, mut near] = [[0; 3]; 2];
        for round in 0..90 {
            let shape = DraftTree::new(trees[round % 2].clone()).unwrap().shape();
            // Of every tenth text all is listed.
            let open = if round % 10 == 9 { 0.0 } else { 0.25 };
            let lists = (0..3).map(|_| Listed::draw(&mut random, open));
            let lists: Vec<Listed> = lists.collect();
            // One text in six has a token that is not listed.
            let last = LISTED + usize::from(round % 6 == 5 && open > 0.0);
            let text: Vec<usize> = (0..3).map(|_| random.random_range(0..last)).collect();
            let counts = [1, 2, 3, 4];
            for (number, children) in [Children::Iid, strata[0], strata[1]]
                .into_iter()
                .enumerate()
            {
                let known: Vec<Vec<(usize, Option<OfferedLists>)>> = lists
                    .iter()
                    .map(|list| {
                        let rows = list.rows.each_ref().map(Vec::as_slice);
                        let of = |count| {
                            (
                                count,
                                OfferedLists::new(rows, list.largest, children, count),
                            )
                        };
                        counts.into_iter().map(of).collect()
                    })
                    .collect();
                let tokens = known.iter().zip(&lists).zip(&text);
                let tokens: Vec<ListedToken<'_>> = tokens
                    .map(|((lists, list), &token)| ListedToken {
                        lists,
                        token: list.rows[0].get(token).map(|&p| (token, p)),
                    })
                    .collect();
                let [least, most] = kept_between(&shape, &tokens);
                let mut met = [f64::INFINITY, 0.0f64];
                for kind in 0..12 {
                    let rows: Vec<[Vec<f64>; 2]> = lists
                        .iter()
                        .map(|list| list.completed(&mut random, kind % 8))
                        .collect();
                    let drawn: Vec<Vec<(usize, OfferedRows)>> = rows
                        .iter()
                        .map(|[p, q]| {
                            let of = |count| (count, OfferedRows::of_rows((p, q), children, count));
                            counts.into_iter().map(of).collect()
                        })
                        .collect();
                    let here = drawn.iter().zip(&rows).zip(&text);
                    let here: Vec<TextToken<'_>> = here
                        .map(|((drawn, rows), &token)| TextToken {
                            rows: drawn,
                            token: token as u32,
                            at: [rows[0][token], rows[1][token]],
                        })
                        .take_while(|one| one.at[0] > 0.0)
                        .collect();
                    let mut reach = vec![0.0; shape.parent.len()];
                    let kept = kept_from_leaves(&shape, Levels::ONE, &here, &mut reach);
                    for (level, kept) in kept.iter().enumerate() {
                        let holds = least[level] <= kept + 1e-9 && *kept <= most[level] + 1e-9;
                        assert!(
                            holds,
                            "{children:?} {level}: {} {kept} {}",
                            least[level], most[level]
                        );
                    }
                    let sum: f64 = kept[1..].iter().sum();
                    met = [met[0].min(sum), met[1].max(sum)];
                }
                let width = most[1..].iter().sum::<f64>() - least[1..].iter().sum::<f64>();
                assert!(open > 0.0 || width < 1e-9, "{children:?}: {width}");
                narrow[number] += usize::from(width < 0.2);
                near[number] += usize::from(met[1] - met[0] > 0.5 * width);
            }
        }
        assert!(
            narrow[0] > 70 && narrow[1].min(narrow[2]) > 20,
            "{narrow:?}"
        );
        assert!(near[0] > 30 && near[1].min(near[2]) > 0, "{near:?}");
    }
}
