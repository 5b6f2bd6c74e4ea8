//! Every tree that may be drawn and every coin, in fractions, against the replay along each text.

use super::*;
use crate::scheme::{MadeOf, SchemeName};
use crate::tree::{DraftTree, Shape};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use specgap_number::distribution::{Draft, Rational, Target};
use specgap_number::number::Number;
use specgap_plan::{Falling, Heaviest, Levels, OfferedRows, RatioOrder};
use std::collections::{BTreeMap, BTreeSet};

/// Rows p and q at every prefix.
struct Pair {
    vocab: usize,
    rows: BTreeMap<Vec<usize>, [Vec<Rational>; 2]>,
}

fn texts(vocab: usize, length: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for _ in 0..length {
        let longer = |text: &Vec<usize>| {
            (0..vocab)
                .map(|x| [text.as_slice(), &[x]].concat())
                .collect::<Vec<_>>()
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

impl Pair {
    fn random(rng: &mut ChaCha8Rng, vocab: usize, length: usize) -> Self {
        let mut row = || {
            let parts: Vec<u32> = (0..vocab)
                .map(|_| match rng.random_range(0..8) {
                    0 => 0,
                    1 => rng.random_range(10..30),
                    _ => rng.random_range(1..9),
                })
                .collect();
            let sum: u32 = parts.iter().sum();
            match sum {
                0 => (0..vocab)
                    .map(|_| Rational::new(1.into(), (vocab as u32).into()))
                    .collect(),
                _ => parts
                    .iter()
                    .map(|&x| Rational::new(x.into(), sum.into()))
                    .collect(),
            }
        };
        let prefixes = (0..length).flat_map(|length| texts(vocab, length));
        let rows = prefixes.map(|prefix| (prefix, [row(), row()])).collect();
        Self { vocab, rows }
    }

    fn chance(&self, text: &[usize], from: usize) -> Rational {
        let each =
            (from..text.len()).map(|place| self.rows[&text[..place]][0][text[place]].clone());
        each.fold(Rational::one(), |product, p| product.times(&p))
    }
}

/// A prefix, and its node in the shape.
type Placed = (Vec<usize>, usize);

/// All trees of a law, each with its chance.
fn each_tree(
    (pair, shape, law): (&Pair, &Shape, SchemeName),
    (nodes, next): (Vec<Placed>, usize),
    chance: &Rational,
    visit: &mut dyn FnMut(&[Placed], &Rational),
) {
    let Some((prefix, place)) = nodes.get(next) else {
        return visit(&nodes, chance);
    };
    let children = shape.children[*place];
    let first = shape.first_child[*place];
    if children == 0 {
        return each_tree((pair, shape, law), (nodes.clone(), next + 1), chance, visit);
    }
    for (tuple, mass) in tuples(law, &pair.rows[prefix][1], children) {
        let mut more = nodes.clone();
        for (rank, &token) in tuple.iter().enumerate() {
            more.push((
                [prefix.as_slice(), &[token as usize]].concat(),
                first + rank,
            ));
        }
        each_tree(
            (pair, shape, law),
            (more, next + 1),
            &chance.times(&mass),
            visit,
        );
    }
}

fn tuples(law: SchemeName, q: &[Rational], children: usize) -> Vec<(Vec<u32>, Rational)> {
    let MadeOf::OneDraft(make) = law.entry().made_of else {
        return Vec::new();
    };
    let draft = Draft::from_rationals(q.to_vec()).unwrap();
    let mut all = Vec::new();
    make(draft, children).for_each_tuple_exact(&mut |tuple, mass| {
        all.push((tuple.to_vec(), mass.clone()));
    });
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
        let times = Rational::new(((drafts - sure) as u32).into(), 1u32.into());
        if sure + 1 < drafts && times.times(q) >= rest {
            rest = &rest - q;
            sure += 1;
        } else {
            break;
        }
    }
    Some(sure)
}

fn rows_of(
    law: SchemeName,
    [p, q]: &[Vec<Rational>; 2],
    drafts: &[usize],
) -> Vec<(usize, OfferedRows)> {
    let p = Target::from_rationals(p.clone()).unwrap();
    let q = Draft::from_rationals(q.clone()).unwrap();
    let order = RatioOrder::of(&p, &q);
    let rows = (p.probabilities(), q.probabilities());
    let falling = Falling::of(rows, &order, &Heaviest::of(&q));
    let children = law.entry().children.unwrap();
    drafts
        .iter()
        .map(|&n| (n, OfferedRows::of(&falling, children, n)))
        .collect()
}

/// The law of the text is p's, and given each text a round keeps as many tokens as the replay says.
fn is_as_replayed(pair: &Pair, tree: &str, law: SchemeName, is_one: bool) -> f64 {
    let shape = DraftTree::from_json(tree).unwrap().shape();
    let length = shape.levels() + 1;
    let fifth = |x: u32| Rational::new(x.into(), 10u32.into());
    let four = [fifth(8), fifth(5), fifth(2), fifth(0)];
    let one = [fifth(0)];
    let levels: [&[Rational]; 2] = [if is_one { &one } else { &four }, &one];
    let mut ends = BTreeMap::new();
    let mut drafted: BTreeMap<Vec<usize>, Rational> = BTreeMap::new();
    each_tree(
        (pair, &shape, law),
        (vec![(Vec::new(), 0)], 0),
        &Rational::one(),
        &mut |drawn, chance| {
            let prefixes: BTreeSet<&Vec<usize>> = drawn.iter().map(|one| &one.0).collect();
            for prefix in prefixes {
                let drafted = drafted.entry(prefix.clone());
                drafted.or_insert_with(Rational::zero).gain(chance);
            }
            let mut nodes: Vec<DrawnNode> = drawn
                .iter()
                .map(|(prefix, place)| {
                    let (count, [p, q]) = (shape.children[*place], &pair.rows[prefix]);
                    DrawnNode {
                        token: prefix.last().map_or(0, |&token| token as u32),
                        target: p.clone(),
                        drafts: Vec::new(),
                        tuples: if count > 0 {
                            tuples(law, q, count)
                        } else {
                            Vec::new()
                        },
                        sure: sure(law, q, count.max(1)),
                    }
                })
                .collect();
            for (node, (_, place)) in drawn.iter().enumerate().skip(1) {
                let parent = drawn
                    .iter()
                    .position(|(_, other)| *other == shape.parent[*place])
                    .unwrap();
                nodes[parent].drafts.push(node);
            }
            let mut left = chance.clone();
            for end in ends_from_leaves(nodes, levels) {
                let mass = left.times(&end.chance);
                left = left.minus(&mass);
                for (token, p) in end.law.iter().enumerate() {
                    let key = (drawn[end.node].0.clone(), token);
                    ends.entry(key)
                        .or_insert_with(Rational::zero)
                        .gain(&mass.times(p));
                }
            }
            assert!(left.is_nil(), "{left}");
        },
    );
    let counts: Vec<usize> = shape.children.iter().copied().filter(|&n| n > 0).collect();
    let (mut kept, mut ceiling) = (Rational::zero(), Rational::zero());
    for text in texts(pair.vocab, length) {
        let p = pair.chance(&text, 0);
        let ways: Vec<Rational> = (0..length)
            .map(|depth| {
                let key = (text[..depth].to_vec(), text[depth]);
                let mass = ends.get(&key).cloned().unwrap_or_else(Rational::zero);
                mass.times(&pair.chance(&text, depth + 1))
            })
            .collect();
        assert_eq!(Rational::total(&ways), p, "{law} {tree} {text:?}");
        if p.is_nil() {
            continue;
        }
        let rows: Vec<_> = (0..length - 1)
            .map(|place| rows_of(law, &pair.rows[&text[..place]], &counts))
            .collect();
        let along: Vec<TextToken<'_>> = rows
            .iter()
            .enumerate()
            .map(|(place, rows)| TextToken {
                rows,
                token: text[place] as u32,
                at: [0, 1].map(|of| pair.rows[&text[..place]][of][text[place]].to_f64()),
            })
            .collect();
        let levels = if is_one { Levels::ONE } else { Levels::FOUR };
        let mut reach = vec![0.0; shape.parent.len()];
        let found = kept_from_leaves(&shape, levels, &along, &mut reach);
        let most_kept = most_kept(&shape, &along);
        for (depth, found) in found.iter().enumerate() {
            let mass = Rational::total(&ways[depth..]);
            let known = mass.over(&p).to_f64();
            assert!(
                (found - known).abs() < 1e-12,
                "{law} {tree} {is_one} {text:?} {depth}: {found} {known}"
            );
            if depth > 0 {
                kept.gain(&mass);
                let [prefix, rest] = [pair.chance(&text[..depth], 0), pair.chance(&text, depth)];
                let drafted = drafted.get(&text[..depth]).cloned();
                let most = drafted.unwrap_or_else(Rational::zero).smaller(&prefix);
                let known = most.over(&prefix).to_f64();
                let most_kept = most_kept[depth - 1];
                assert!(
                    (most_kept - known).abs() < 1e-12,
                    "{law} {tree} {text:?} {depth}: {most_kept} {known}"
                );
                ceiling.gain(&most.times(&rest));
            }
        }
    }
    assert!(kept <= ceiling, "{law} {tree}: {kept} {ceiling}");
    kept.to_f64()
}

#[test]
fn a_round_keeps_of_each_text_what_its_replay_says() {
    let mut rng = ChaCha8Rng::seed_from_u64(32);
    let (mut more, mut cases) = ([0.0; 3], 0);
    for (tree, vocab) in [
        ("[[0],[0,0],[0,0,0]]", 2),
        ("[[0],[1],[0,0]]", 3),
        ("[[0],[1],[0,0],[0,1],[1,0]]", 3),
        ("[[0],[1],[0,0],[1,0],[0,0,0]]", 2),
        ("[[0],[1],[2],[1,0],[2,0]]", 4),
        ("[[0],[1],[0,0],[0,1],[0,2]]", 3),
    ] {
        for _ in 0..4 {
            let levels = DraftTree::from_json(tree).unwrap().shape().levels();
            let pair = Pair::random(&mut rng, vocab, levels + 1);
            let laws = [
                SchemeName::WITH_REPLACEMENT,
                SchemeName::STRATIFIED,
                SchemeName::STRATIFIED_INDEPENDENT,
            ];
            for (more, law) in more.iter_mut().zip(laws) {
                let kept = [true, false].map(|is_one| is_as_replayed(&pair, tree, law, is_one));
                *more += kept[1] - kept[0];
                cases += 1;
            }
        }
    }
    println!("{cases} models: four levels at the root over one {more:?}");
    assert!(more.iter().all(|&more| more > 1e-3), "{more:?}");
}
