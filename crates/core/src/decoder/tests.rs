//! The law of a text by every draft and every outcome of chance, and what is refused.

use super::chance::Chance;
use super::mass::Mass;
use super::verify::{by, verify};
use super::{DecoderError, Entry, Law, Rule, Tree, draft};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;

const FOUR: &[f64] = &[0.8, 0.5, 0.2, 0.0];
const ONE: &[f64] = &[0.0];

/// Goes through all outcomes: `script` is followed, then first outcomes are taken and noted.
#[derive(Default)]
struct All {
    script: Vec<(usize, usize)>,
    next: usize,
    weight: f64,
}

impl All {
    fn outcome(&mut self, chances: &[f64]) -> usize {
        let open: Vec<usize> = (0..chances.len()).filter(|&at| chances[at] > 0.0).collect();
        if self.next == self.script.len() {
            self.script.push((0, open.len()));
        }
        let at = open[self.script[self.next].0];
        self.next += 1;
        self.weight *= chances[at];
        at
    }

    /// The next script, or that there is none.
    fn advance(&mut self) -> bool {
        while let Some((at, of)) = self.script.pop() {
            if at + 1 < of {
                self.script.push((at + 1, of));
                return true;
            }
        }
        false
    }
}

impl Chance for &mut All {
    fn falls(&mut self, part: f64, whole: f64) -> Result<bool, DecoderError> {
        let chance = if part <= 0.0 {
            0.0
        } else {
            (part / whole).min(1.0)
        };
        Ok(self.outcome(&[1.0 - chance, chance]) == 1)
    }

    fn keeps(&mut self, _: usize, chance: f64) -> Result<bool, DecoderError> {
        self.falls(chance, 1.0)
    }

    fn draw<T: Entry>(&mut self, mass: &Mass<'_, T>) -> Result<Option<usize>, DecoderError> {
        let total = mass.total();
        let chances: Vec<f64> = mass.entries().iter().map(|x| x / total).collect();
        Ok(Some(self.outcome(&chances)))
    }
}

/// All tuples of drafts of a row, with their chances: where a coin's outcome changes is bisected.
fn tuples(row: &[f64], law: Law, n: usize) -> Vec<(Vec<u32>, f64)> {
    let drawn = |coins: &[f64]| {
        let all: Vec<f64> = coins.iter().copied().chain([0.0; 8]).collect();
        draft(row, 0, law, n, &all).unwrap()
    };
    let (all, sure) = (drawn(&[]), row.len());
    let coins = match law {
        Law::WithReplacement => n,
        Law::Certain => 0,
        _ => {
            let is_enough = |&coins: &usize| draft(row, 0, law, n, &[0.5; 8][..coins]).is_ok();
            (0..=n).find(is_enough).unwrap()
        }
    };
    let sure = all.len().min(sure) - coins;
    let mut open = vec![(Vec::new(), 1.0)];
    for coin in 0..coins {
        let mut more = Vec::new();
        for (coins, weight) in open {
            let token = |at: f64| drawn(&[coins.as_slice(), &[at]].concat())[sure + coin];
            let mut from = 0.0;
            while from < 1.0 {
                let (mut low, mut high) = (from, 1.0);
                while high - low > 1e-15 {
                    let middle = 0.5 * (low + high);
                    let is_same = token(middle) == token(from);
                    *(if is_same { &mut low } else { &mut high }) = middle;
                }
                let to = if high > 1.0 - 2e-15 { 1.0 } else { high };
                let coins = [coins.as_slice(), &[0.5 * (from + to)]].concat();
                more.push((coins, weight * (to - from)));
                from = to;
            }
        }
        open = more;
    }
    let open = open.into_iter();
    open.map(|(coins, weight)| (drawn(&coins), weight))
        .collect()
}

/// p or q behind a path.
fn row(seed: u64, size: usize, path: &[u32], of_draft: bool) -> Vec<f64> {
    let step = |at: u64, &token: &u32| at * 7 + u64::from(token) + 1;
    let place = path.iter().fold(1, step);
    let mut random = ChaCha8Rng::seed_from_u64(seed * 1_000_003 + place);
    let mut row: Vec<f64> = (0..size).map(|_| -random.random::<f64>().ln()).collect();
    if of_draft {
        for x in &mut row {
            *x *= 3.0 * random.random::<f64>();
        }
    }
    let total: f64 = row.iter().sum();
    row.iter().map(|x| x / total).collect()
}

struct Case<'a> {
    seed: u64,
    size: usize,
    shape: &'a [usize],
    rule: Rule<'a>,
}

#[derive(Default)]
struct Found {
    law: BTreeMap<Vec<u32>, f64>,
    accepted: f64,
}

impl Case<'_> {
    /// Expands the nodes of a depth, one after the other, and verifies each whole tree.
    fn expand(
        &self,
        nodes: &[Vec<u32>],
        parents: &[usize],
        open: &[usize],
        weight: f64,
        found: &mut Found,
    ) {
        let path = |row: usize| row.checked_sub(1).map_or(&[][..], |node| &nodes[node]);
        let is_open = |&row: &usize| path(row).len() < self.shape.len();
        let Some(next) = open.iter().position(is_open) else {
            return self.verified(nodes, parents, weight, found);
        };
        let parent = open[next];
        let width = self.shape[path(parent).len()];
        let q = row(self.seed, self.size, path(parent), true);
        for (tuple, chance) in tuples(&q, self.rule.law, width) {
            let (mut nodes, mut parents) = (nodes.to_vec(), parents.to_vec());
            let mut rest = open[next + 1..].to_vec();
            for (at, &token) in tuple.iter().enumerate() {
                nodes.push([path(parent), &[token]].concat());
                parents.push(parent);
                // A draft that another equals is a leaf.
                if !tuple[..at].contains(&token) {
                    rest.push(nodes.len());
                }
            }
            self.expand(&nodes, &parents, &rest, weight * chance, found);
        }
    }

    fn verified(&self, nodes: &[Vec<u32>], parents: &[usize], weight: f64, found: &mut Found) {
        let paths = || std::iter::once(&[][..]).chain(nodes.iter().map(Vec::as_slice));
        let of = |path, of_draft| row(self.seed, self.size, path, of_draft);
        let rows = |of_draft| -> Vec<f64> { paths().flat_map(|path| of(path, of_draft)).collect() };
        let (p, q) = (rows(false), rows(true));
        let tokens: Vec<u32> = nodes.iter().map(|path| path[path.len() - 1]).collect();
        let tree = Tree {
            tokens: &tokens,
            parents,
        };
        let mut all = All::default();
        loop {
            (all.next, all.weight) = (0, weight);
            let (kept, _) = by(&p, &q, self.size, tree, self.rule, &mut all).unwrap();
            let above = kept.path.last().map_or(&[][..], |&node| &nodes[node]);
            assert_eq!(above.len(), kept.path.len());
            let text = [above, &[kept.token]].concat();
            found.accepted += all.weight * above.len() as f64;
            self.goes_on(text, all.weight, found);
            if !all.advance() {
                break;
            }
        }
    }

    /// By p to the end.
    fn goes_on(&self, text: Vec<u32>, weight: f64, found: &mut Found) {
        if text.len() > self.shape.len() {
            *found.law.entry(text).or_default() += weight;
            return;
        }
        for (token, p) in (0..).zip(row(self.seed, self.size, &text, false)) {
            self.goes_on([text.as_slice(), &[token]].concat(), weight * p, found);
        }
    }

    /// Accepted tokens; the law of the text has to be the target's.
    fn accepted(&self) -> f64 {
        let mut found = Found::default();
        self.expand(&[], &[], &[0], 1.0, &mut found);
        for (text, weight) in &found.law {
            let p = |at: usize| row(self.seed, self.size, &text[..at], false)[text[at] as usize];
            let truth: f64 = (0..text.len()).map(p).product();
            let off = (weight - truth).abs();
            assert!(off < 1e-11, "{text:?}: {weight}, {truth}");
        }
        let all = self.size.pow(self.shape.len() as u32 + 1);
        assert_eq!(found.law.len(), all);
        found.accepted
    }
}

#[test]
fn every_rule_keeps_the_law_of_a_text_whatever_was_drafted() {
    let laws = [
        Law::WithReplacement,
        Law::Stratified,
        Law::StratifiedIndependent,
        Law::Certain,
    ];
    let shapes: [(usize, &[usize]); 6] = [
        (4, &[3]),
        (5, &[4]),
        (3, &[1, 1]),
        (3, &[2, 1]),
        (3, &[1, 2]),
        (2, &[2, 1, 1]),
    ];
    for law in laws {
        for (seed, (size, shape)) in shapes.into_iter().enumerate() {
            let accepted = [
                (false, &[ONE][..]),
                (false, &[FOUR]),
                (true, &[ONE]),
                (true, &[FOUR, ONE]),
                (true, &[FOUR]),
            ]
            .map(|(traversal, levels)| {
                let rule = Rule {
                    law,
                    traversal,
                    levels,
                };
                let case = Case {
                    seed: seed as u64,
                    size,
                    shape,
                    rule,
                };
                case.accepted()
            });
            // One draft a node: all levels are one; from the leaves is never worse.
            let is_no_worse = accepted[2] > accepted[0] - 1e-12;
            assert!(is_no_worse, "{law:?}, {shape:?}: {accepted:?}");
            if shape.len() == 1 {
                assert!((accepted[1] - accepted[4]).abs() < 1e-9, "{accepted:?}");
            }
        }
    }
}

#[test]
fn wide_trees_of_strata_keep_the_law_too() {
    for (law, traversal) in [(Law::Stratified, true), (Law::StratifiedIndependent, false)] {
        let rule = Rule {
            law,
            traversal,
            levels: &[FOUR, ONE],
        };
        for (seed, size, shape) in [(11, 4, &[3, 1]), (12, 3, &[2, 2])] {
            let case = Case {
                seed,
                size,
                shape,
                rule,
            };
            case.accepted();
        }
    }
}

#[test]
fn one_draft_of_a_stratum_is_drawn_in_token_order() {
    // Sure: 3. The cut of the rest goes through 1.
    let row = &[0.2_f32, 0.2, 0.2, 0.4][..];
    let few = &[0.0, 0.4, 0.6][..];
    let cases: [(_, Law, &[f64], &[u32]); 8] = [
        (row, Law::Stratified, &[0.0, 0.0], &[3, 0, 1]),
        (row, Law::Stratified, &[0.7, 0.1], &[3, 1, 2]),
        (row, Law::Stratified, &[0.5, 0.4], &[3, 0, 1]),
        (row, Law::Stratified, &[0.5, 0.6], &[3, 0, 2]),
        (row, Law::StratifiedIndependent, &[0.7, 0.1], &[3, 1, 1]),
        (row, Law::WithReplacement, &[0.1, 0.999], &[0, 3]),
        // Fewer tokens than drafts.
        (few, Law::Stratified, &[], &[2, 1]),
        (few, Law::Certain, &[], &[2, 1]),
    ];
    for (row, law, coins, wanted) in cases {
        let drafts = if row.len() < 4 { 4 } else { wanted.len() };
        let found = draft(row, 0, law, drafts, coins).unwrap();
        assert_eq!(found, wanted, "{law:?} {coins:?}");
    }
}

#[test]
fn what_is_no_round_is_refused_and_named() {
    let q = [0.25_f64; 12];
    let says = |p: &[f64; 12], tokens: &[u32], parents: &[usize], coins: &[f64]| {
        let rule = Rule {
            law: Law::Stratified,
            traversal: false,
            levels: &[FOUR],
        };
        let tree = Tree { tokens, parents };
        verify(p, &q, 4, tree, rule, coins).unwrap_err().to_string()
    };
    let mut p = [0.25; 12];
    assert!(says(&p, &[1, 3], &[0, 0], &[0.5, 0.99]).starts_with("coins: 2 are not enough"));
    assert!(says(&p, &[1, 3], &[0, 0], &[1.0]).starts_with("coins: number 0 is 1"));
    assert!(says(&p, &[3, 1], &[0, 0], &[0.5; 9]).starts_with("tokens: node 1 is token 1"));
    assert!(says(&p, &[4, 1], &[0, 0], &[0.5; 9]).starts_with("node 0: token 4"));
    assert!(says(&p, &[1, 3], &[0, 2], &[0.5; 9]).starts_with("node 1: token 3, parent 2"));
    assert!(says(&p, &[1, 3], &[0], &[0.5; 9]).starts_with("tokens and parents: 2 and 1"));
    for (entry, wanted) in [
        (f64::NAN, "has NaN"),
        (-0.25, "has an entry below 0"),
        (0.5, "sums to 1.25"),
        (f64::INFINITY, "sums to inf"),
    ] {
        p[3] = entry;
        let text = says(&p, &[1, 3], &[0, 0], &[0.5; 9]);
        assert!(text.starts_with(&format!("p: row 0 {wanted}")), "{text}");
        let refused = draft(&p[..4], 7, Law::WithReplacement, 1, &[0.5]).unwrap_err();
        let text = refused.to_string();
        assert!(text.starts_with(&format!("rows: row 7 {wanted}")), "{text}");
    }
    let apart = Tree {
        tokens: &[1, 2, 3],
        parents: &[0, 1, 0],
    };
    let rule = Rule {
        law: Law::Certain,
        traversal: true,
        levels: &[ONE],
    };
    let refused = verify(&[0.25; 16], &[0.25; 16], 4, apart, rule, &[0.5; 9]).unwrap_err();
    let text = refused.to_string();
    assert!(text.starts_with("parents: node 2 is apart"), "{text}");
}
