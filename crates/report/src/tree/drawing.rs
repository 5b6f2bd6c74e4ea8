//! A tree of drafts as a picture.

use crate::length::numbers::decimals;
use specgap_page::canvas::{Align, Canvas, Ink};
use specgap_page::words::{counted, percent};
use specgap_page::{Block, Figure};
use specgap_replay::replay::{GrownTree, NodeRate};
use std::collections::BTreeMap;

/// Most nodes that are drawn: those that are reached most often.
const MOST: usize = 96;
/// Pixels between leaves, between levels, and around.
const LEAF: f64 = 22.0;
const LEVEL: f64 = 118.0;
const MARGIN: f64 = 26.0;
const HEAD: f64 = 34.0;

/// The tree with the acceptance on its edges.
pub(super) fn figure(tree: &GrownTree) -> Figure {
    let drawn = shown(&tree.drawn.nodes);
    let title = "The best tree".to_owned();
    let left_out = tree.drawn.nodes.len() - drawn.len();
    let rest = match left_out > 0 {
        true => format!(" The {left_out} nodes that are reached least are not drawn."),
        false => String::new(),
    };
    let first = drawn.iter().find(|node| node.path == [0]);
    let alt = format!(
        "{title}: {} tokens, {} on {} drafts. The first child of the root is accepted in {} of \
         rounds.{rest}",
        tree.drawn.nodes.len(),
        tree.verifier,
        tree.scheme,
        first.map_or_else(|| "none".to_owned(), |node| percent(node.accepted))
    );
    Figure {
        name: "best-tree".to_owned(),
        caption: format!(
            "{title}: {} on {} drafts. On an edge: the percentage of rounds that go down it, of \
             those that got to its parent, over the prompts that had no say in the choice. Edges are as \
             wide as they are used; children stand by rank, the first on top.{rest}",
            tree.verifier, tree.scheme
        ),
        canvas: draw(&drawn),
        title: format!(
            "A tree of {} gives {} tokens for each target call, with {} on {} drafts",
            counted(tree.paths.len(), "token"),
            decimals(tree.tokens_per_call.mean, 2),
            tree.verifier,
            tree.scheme
        ),
        alt,
    }
}

/// Most leaves of a tree that is drawn in letters, each on a line.
const LEAVES: usize = 16;

/// Draws the tree for terminals, children by rank from 1, if it has few leaves; else says how many
/// children its nodes have.
pub(super) fn in_letters(paths: &[Vec<usize>]) -> Block {
    let mut paths = paths.to_vec();
    paths.sort_unstable();
    let widest = paths.iter().flatten().max().copied().unwrap_or(0) + 1;
    let (mut lines, wide) = (Vec::new(), widest.to_string().len());
    let root = ["root".to_owned(), " ".repeat(4)];
    limb(&paths, &[], wide, root, &mut lines);
    match lines.len() <= LEAVES {
        true => Block::Command(lines.join("\n")),
        false => Block::List(levels(&paths)),
    }
}

/// A line for each leaf below a node: the first goes on where `line` ends, the others below `rest`.
fn limb(
    paths: &[Vec<usize>],
    node: &[usize],
    wide: usize,
    [line, rest]: [String; 2],
    lines: &mut Vec<String>,
) {
    let is_child = |path: &&Vec<usize>| path.len() == node.len() + 1 && path.starts_with(node);
    let children: Vec<&Vec<usize>> = paths.iter().filter(is_child).collect();
    if children.is_empty() {
        lines.push(line);
        return;
    }
    for (index, child) in children.iter().enumerate() {
        let is_last = index + 1 == children.len();
        let begun = match (index, is_last) {
            (0, true) => format!("{line} ─── "),
            (0, false) => format!("{line} ─┬─ "),
            (_, true) => format!("{rest}  └─ "),
            (_, false) => format!("{rest}  ├─ "),
        };
        let below = if is_last { "     " } else { "  │  " };
        let label = child.last().map_or(0, |rank| rank + 1);
        let both = [
            format!("{begun}{label:<wide$}"),
            format!("{rest}{below}{}", " ".repeat(wide)),
        ];
        limb(paths, child, wide, both, lines);
    }
}

/// The tree in words: how many children each node of a depth has, by rank.
fn levels(paths: &[Vec<usize>]) -> Vec<String> {
    let deepest = paths.iter().map(Vec::len).max().unwrap_or(0);
    let mut nodes: Vec<&[usize]> = paths.iter().map(Vec::as_slice).collect();
    nodes.push(&[]);
    nodes.sort_unstable();
    let line = |level: usize| {
        let here = nodes.iter().filter(|node| node.len() == level);
        let counts = here.map(|node| {
            let is_child = |other: &&&[usize]| other.len() == level + 1 && other.starts_with(node);
            nodes.iter().filter(is_child).count().to_string()
        });
        let counts: Vec<String> = counts.collect();
        match level {
            0 => format!("root: {} children", counts.join(" ")),
            _ => format!("depth {level}: {}", counts.join(" ")),
        }
    };
    (0..deepest).map(line).collect()
}

/// The nodes that are drawn, parents before children: a child is not reached more often than
/// its parent.
fn shown(nodes: &[NodeRate]) -> Vec<&NodeRate> {
    let mut by_reach: Vec<&NodeRate> = nodes.iter().collect();
    by_reach.sort_by(|a, b| {
        b.reached
            .total_cmp(&a.reached)
            .then_with(|| a.path.len().cmp(&b.path.len()))
            .then_with(|| a.path.cmp(&b.path))
    });
    by_reach.truncate(MOST);
    by_reach.sort_by(|a, b| a.path.cmp(&b.path));
    by_reach
}

fn draw(nodes: &[&NodeRate]) -> Canvas {
    let depth = nodes.iter().map(|node| node.path.len()).max().unwrap_or(0);
    let places = places(nodes);
    let lowest = places.values().map(|place| place.1).fold(0.0, f64::max);
    let width = 2.0 * MARGIN + LEVEL * depth as f64;
    let height = HEAD + lowest + 2.0 * MARGIN;
    let mut canvas = Canvas::new(width.ceil() as u32, height.ceil() as u32);
    let place = |path: &[usize]| {
        let (x, y) = places.get(path).copied().unwrap_or((0.0, 0.0));
        (MARGIN + x, HEAD + MARGIN + y)
    };
    for level in 1..=depth {
        let at = (MARGIN + LEVEL * (level as f64 - 0.5), HEAD / 2.0);
        let here = nodes.iter().filter(|node| node.path.len() == level);
        let reached: f64 = here.map(|node| node.reached).sum();
        let words = format!("depth {level}: {}", percent(reached));
        canvas.text(&words, at, 10.0, Align::Centre, Ink::Quiet);
    }
    for node in nodes {
        let parent = &node.path[..node.path.len().saturating_sub(1)];
        let ((x0, y0), (x1, y1)) = (place(parent), place(&node.path));
        let bend = x0 + 0.34 * LEVEL;
        let wide = 0.8 + 7.0 * node.reached;
        canvas.line(&[(x0, y0), (bend, y1), (x1, y1)], Ink::Hue(0), wide);
        let label = decimals(100.0 * node.accepted, 0);
        let above = y1 - 5.0 - 0.5 * wide;
        canvas.text(&label, (x1 - 8.0, above), 9.5, Align::Right, Ink::Text);
    }
    canvas.disc(place(&[]), 5.0, Ink::Text);
    for node in nodes {
        canvas.disc(place(&node.path), 3.2, Ink::Hue(0));
    }
    canvas
}

/// Leaves one under the other, and a parent level with its first child.
fn places(nodes: &[&NodeRate]) -> BTreeMap<Vec<usize>, (f64, f64)> {
    let mut places = BTreeMap::from([(Vec::new(), (0.0, 0.0))]);
    let mut next = 0.0;
    // In lexicographic order a first child comes right after its parent.
    for node in nodes {
        let parent = &node.path[..node.path.len().saturating_sub(1)];
        let level_with = places.get(parent).map_or(next, |place| place.1);
        let y = if node.path.last() == Some(&0) {
            level_with
        } else {
            next += LEAF;
            next
        };
        places.insert(node.path.clone(), (LEVEL * node.path.len() as f64, y));
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<Vec<usize>> {
        serde_json::from_str(text).unwrap()
    }

    fn node(path: &[usize], reached: f64) -> NodeRate {
        NodeRate {
            path: path.to_vec(),
            reached,
            accepted: reached,
        }
    }

    #[test]
    fn a_small_tree_is_drawn_in_letters_and_a_large_one_told() {
        let paths = paths("[[1], [0], [0, 0], [2], [0, 1], [1, 0]]");
        let Block::Command(drawn) = in_letters(&paths) else {
            panic!("not drawn")
        };
        let wanted = "root ─┬─ 1 ─┬─ 1\n      │     └─ 2\n      ├─ 2 ─── 1\n      └─ 3";
        assert_eq!(drawn, wanted);
        let wide: Vec<Vec<usize>> = (0..=LEAVES).map(|rank| vec![rank]).collect();
        assert!(matches!(in_letters(&wide), Block::List(_)));
    }

    #[test]
    fn levels_say_how_many_children_each_node_has() {
        let said = levels(&paths("[[1], [0], [0, 0], [1, 0], [0, 1], [1, 0, 0]]"));
        let wanted = ["root: 2 children", "depth 1: 2 1", "depth 2: 0 0 1"];
        assert_eq!(said, wanted);
        assert!(levels(&[]).is_empty());
    }

    #[test]
    fn nodes_do_not_stand_on_each_other() {
        let nodes = [
            node(&[0], 0.6),
            node(&[1], 0.2),
            node(&[0, 0], 0.3),
            node(&[0, 1], 0.1),
            node(&[1, 0], 0.1),
            node(&[0, 0, 0], 0.2),
        ];
        let drawn = shown(&nodes);
        let places = places(&drawn);
        let mut seen: Vec<(u64, u64)> = (places.values())
            .map(|(x, y)| (x.to_bits(), y.to_bits()))
            .collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 7);
        assert_eq!(places[&vec![0, 0, 0]].1, places[&Vec::new()].1);
        let svg = draw(&drawn).svg("t", "d").unwrap();
        assert!(svg.lines().any(|line| line.trim() == "60"), "{svg}");
    }

    #[test]
    fn a_large_tree_is_cut_to_its_most_used_nodes() {
        let many: Vec<NodeRate> = (0..200)
            .map(|rank| node(&[rank], 1.0 / f64::from(rank as u32 + 2)))
            .collect();
        let drawn = shown(&many);
        assert_eq!(drawn.len(), MOST);
        assert_eq!(drawn[MOST - 1].path, [MOST - 1]);
    }
}
