//! Trees that are verified from their leaves: their rounds, from the rows along each text.

use super::super::ReplayError;
use super::super::read::{Text, Texts};
use super::pairs::Pair;
use specgap_base::side_by_side;
use specgap_core::rounds::{
    ListedToken, TextToken, TreeReplay, kept_between, kept_from_leaves, most_kept, replay_tree_with,
};
use specgap_core::scheme::SchemeName;
use specgap_core::tree::Shape;
use specgap_log::log::Log;
use specgap_number::distribution::{Draft, Rows, Target};
use specgap_plan::{Children, Falling, Heaviest, OfferedLists, OfferedRows};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

/// A pair, by its place in the plan, and the numbers of children of a tree's nodes.
type Key = (usize, Vec<usize>);

/// A tree's rounds along a text.
#[derive(Clone)]
pub(super) struct OfText {
    pub(super) rounds: TreeReplay<f64>,
    /// What no lossless rounds accept more of: a sum over the starts with room for the whole tree.
    most: f64,
    /// By start, where rows list some tokens only: m_0, m_1, .., at least and at most.
    pub(super) between: Vec<[Vec<f64>; 2]>,
}

/// Rounds of trees from their leaves, text by text. What a node is offered depends on the whole path
/// to it, so they are read along rows once it is known which trees are asked for.
#[derive(Default)]
pub(super) struct FromLeaves {
    wanted: Mutex<BTreeMap<Key, Shape>>,
    found: BTreeMap<Key, Vec<OfText>>,
}

impl FromLeaves {
    /// The rounds of a tree; where they were not read yet, it is noted down.
    pub(super) fn rounds(&self, pair: usize, shape: &Shape) -> Option<&[OfText]> {
        let key = (pair, shape.children.clone());
        let found = self.found.get(&key);
        if found.is_none() {
            let wanted = self.wanted.lock();
            let mut wanted = wanted.unwrap_or_else(PoisonError::into_inner);
            wanted.insert(key, shape.clone());
        }
        found.map(Vec::as_slice)
    }

    /// By text what no lossless rounds accept more of with the drafts of a pair, where its rounds
    /// were read.
    pub(super) fn most(&self, pair: usize, shape: &Shape) -> Option<impl Iterator<Item = f64>> {
        let found = self.found.get(&(pair, shape.children.clone()))?;
        Some(found.iter().map(|one| one.most))
    }

    /// Reads the rows again, for all that was noted down.
    ///
    /// # Complexity
    /// O(V) a position, law and number of children, without a sort for each; then O(log V) a
    /// visit of a node.
    pub(super) fn read(
        &mut self,
        logs: &[Log],
        texts: &Texts,
        pairs: &[Pair],
    ) -> Result<(), ReplayError> {
        let wanted = self.wanted.get_mut();
        let wanted = std::mem::take(wanted.unwrap_or_else(PoisonError::into_inner));
        if wanted.is_empty() {
            // No row is read for nothing, nor refused: lists of each model's own lack shares.
            return Ok(());
        }
        let all: Vec<(Key, Shape)> = wanted.into_iter().collect();
        let trees = (all.iter()).filter_map(|((pair, _), shape)| Some((pairs.get(*pair)?, shape)));
        let trees = Trees::new(trees.collect(), !texts.are_whole());
        let read = side_by_side::each_or_stop(&texts.texts, |text| trees.along(logs, texts, text))?;
        let mut by_tree: Vec<Vec<OfText>> = vec![Vec::new(); all.len()];
        for text in read {
            (by_tree.iter_mut())
                .zip(text)
                .for_each(|(tree, one)| tree.push(one));
        }
        self.found
            .extend(all.into_iter().map(|one| one.0).zip(by_tree));
        Ok(())
    }
}

/// The trees that are replayed at once.
pub(super) struct Trees<'a> {
    all: Vec<(&'a Pair, &'a Shape)>,
    /// Whether none before it has the same drafts: of each one tells what no rule passes.
    is_first: Vec<bool>,
    levels: usize,
    /// How children are drawn, and numbers of them.
    drawn: Vec<(Children, Vec<usize>)>,
    /// Whether rows list some tokens only.
    is_cut: bool,
}

/// A position.
pub(super) struct Here {
    token: u32,
    at: [f64; 2],
    /// By law, as [`Trees::drawn`].
    rows: Vec<Vec<(usize, OfferedRows)>>,
    /// The same of what rows list, where that is not all.
    lists: Vec<Vec<(usize, Option<OfferedLists>)>>,
    is_listed: bool,
}

impl Here {
    /// What nodes here draw from, of a law by its place.
    pub(super) fn token(&self, law: usize) -> TextToken<'_> {
        TextToken {
            rows: &self.rows[law],
            token: self.token,
            at: self.at,
        }
    }

    fn listed(&self, law: usize) -> ListedToken<'_> {
        ListedToken {
            lists: &self.lists[law],
            token: self.is_listed.then_some((self.token as usize, self.at[0])),
        }
    }
}

/// What rounds of a tree keep of a text.
#[derive(Clone, Default)]
struct Kept {
    /// By start: m_0, m_1, .. and what of each node is kept.
    starts: Vec<[Vec<f64>; 2]>,
    /// The most that is accepted from the starts with room for the whole tree.
    most: f64,
    between: Vec<[Vec<f64>; 2]>,
}

impl<'a> Trees<'a> {
    fn new(all: Vec<(&'a Pair, &'a Shape)>, is_cut: bool) -> Self {
        let mut drawn: Vec<(Children, Vec<usize>)> = Vec::new();
        for (pair, shape) in &all {
            let Some(children) = pair.scheme.entry().children else {
                continue;
            };
            let place = drawn.iter().position(|one| one.0 == children);
            let place = place.unwrap_or_else(|| {
                drawn.push((children, Vec::new()));
                drawn.len() - 1
            });
            let counts = &mut drawn[place].1;
            counts.extend(shape.children.iter().filter(|&&count| count > 0));
            counts.sort_unstable();
            counts.dedup();
            if children == Children::Iid {
                counts.truncate(1);
            }
        }
        let levels = (all.iter())
            .map(|(_, shape)| shape.levels())
            .max()
            .unwrap_or(0);
        let drafts = |(pair, shape): &(&Pair, &'a Shape)| (pair.scheme, &shape.children);
        let before = |at: usize| all[..at].iter().any(|one| drafts(one) == drafts(&all[at]));
        Self {
            is_first: (0..all.len()).map(|at| !before(at)).collect(),
            all,
            levels,
            drawn,
            is_cut,
        }
    }

    /// Takes one law alone, with nodes of some numbers of children.
    pub(super) fn of_law(scheme: SchemeName, counts: Vec<usize>, levels: usize) -> Self {
        let children = scheme.entry().children;
        Self {
            all: Vec::new(),
            is_first: Vec::new(),
            levels,
            drawn: children
                .map(|children| (children, counts))
                .into_iter()
                .collect(),
            is_cut: false,
        }
    }

    /// A position of two rows and a token; `listed` as [`Texts::rows_along`] has it.
    pub(super) fn here(
        &self,
        rows: Rows<'_>,
        token: usize,
        listed: Option<(usize, f64)>,
    ) -> Result<Here, String> {
        let p = Target::new(rows.target).map_err(|error| format!("target: {error}"))?;
        let q = Draft::new(rows.draft).map_err(|error| format!("draft: {error}"))?;
        let both = (p.probabilities(), q.probabilities());
        let (falling, heaviest) = (Falling::of(both), Heaviest::of(both.1));
        let rows = self.drawn.iter().map(|(children, counts)| {
            let rows = |&count: &usize| {
                let strata = children.strata(&heaviest, both.1, count);
                (count, OfferedRows::of(&falling, *children, strata))
            };
            counts.iter().map(rows).collect()
        });
        let at = |row: &[f64]| row.get(token).copied().unwrap_or(0.0);
        let (count, largest) = listed.unwrap_or((both.0.len(), 0.0));
        let own = [&both.0[..count], &both.1[..count]];
        let drawn = self.drawn.iter().filter(|_| self.is_cut);
        let lists = drawn.map(|(children, counts)| {
            let lists =
                |&drafts: &usize| (drafts, OfferedLists::new(own, largest, *children, drafts));
            counts.iter().map(lists).collect()
        });
        Ok(Here {
            lists: lists.collect(),
            is_listed: token < count,
            token: token as u32,
            at: [at(both.0), at(both.1)],
            rows: rows.collect(),
        })
    }

    /// The rounds of each along a text.
    fn along(&self, logs: &[Log], texts: &Texts, text: &Text) -> Result<Vec<OfText>, ReplayError> {
        let mut kept: Vec<Kept> = vec![Kept::default(); self.all.len()];
        self.windows(logs, texts, text, &mut |ahead| self.start(ahead, &mut kept))?;
        let replays = self.all.iter().zip(kept).map(|((_, shape), kept)| {
            let rounds = replay_tree_with(shape, kept.starts.len(), |start, room, reach| {
                let [survival, nodes] = &kept.starts[start];
                reach.copy_from_slice(nodes);
                survival.iter().take(room + 1).copied().collect()
            });
            let (most, between) = (kept.most, kept.between);
            OfText {
                rounds,
                most,
                between,
            }
        });
        Ok(replays.collect())
    }

    /// Calls with the positions that a round meets from each start of a text on.
    pub(super) fn windows(
        &self,
        logs: &[Log],
        texts: &Texts,
        text: &Text,
        visit: &mut dyn FnMut(&VecDeque<Here>),
    ) -> Result<(), ReplayError> {
        let mut ahead: VecDeque<Here> = VecDeque::new();
        let mut refused = None;
        texts.rows_along(logs, text, &mut |rows, token, listed| {
            match self.here(rows, token, listed) {
                Ok(here) => ahead.push_back(here),
                Err(message) => refused = refused.take().or(Some(message)),
            }
            if ahead.len() >= self.levels.max(1) {
                visit(&ahead);
                ahead.pop_front();
            }
        })?;
        if let Some(message) = refused {
            return Err(ReplayError::Settings(message));
        }
        while !ahead.is_empty() {
            visit(&ahead);
            ahead.pop_front();
        }
        Ok(())
    }

    /// Adds what rounds keep that begin at the first of some positions.
    fn start(&self, ahead: &VecDeque<Here>, kept: &mut [Kept]) {
        let all = self.all.iter().zip(&self.is_first).zip(kept);
        for (((pair, shape), is_first), kept) in all {
            let law = pair.scheme.entry().children;
            let law = self.drawn.iter().position(|one| Some(one.0) == law);
            let (Some(law), Some(levels)) = (law, pair.levels) else {
                continue;
            };
            let text: Vec<TextToken<'_>> = (ahead.iter())
                .take(shape.levels())
                .map(|here| here.token(law))
                .collect();
            let mut reach = vec![0.0; shape.parent.len()];
            let survival = kept_from_leaves(shape, levels, &text, &mut reach);
            kept.starts.push([survival, reach]);
            if self.is_cut {
                let listed = ahead.iter().take(shape.levels());
                let listed: Vec<_> = listed.map(|here| here.listed(law)).collect();
                kept.between.push(kept_between(shape, &listed));
            } else if *is_first && text.len() == shape.levels() {
                kept.most += most_kept(shape, &text).iter().sum::<f64>();
            }
        }
    }
}
