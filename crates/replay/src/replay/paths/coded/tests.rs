//! Coded paths against every draft and every coin.

use super::*;
use crate::random_problem::{each_draw, leaf, random_problem};
use crate::replay::moments::whole;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use specgap_core::problem::BlockProblem;
use specgap_core::tree::{Node, TokenTree};
use specgap_number::distribution::Rational;

/// P(path j writes each block): what the block's interval and the path's own share, over 1/K.
fn block_laws(tree: &TokenTree<Rational>, paths: usize) -> Vec<Vec<Rational>> {
    let share = |at: usize| Rational::fraction(&at.into(), &paths.into());
    let path = |j: usize| {
        let mut begin = Rational::zero();
        let blocks = tree.draft_layer(tree.length()).iter().map(|mass| {
            let end = begin.plus(mass);
            let from = if begin < share(j) {
                share(j)
            } else {
                begin.clone()
            };
            let common = end.smaller(&share(j + 1)).excess_over(&from);
            begin = end;
            common.over(&share(1))
        });
        blocks.collect()
    };
    (0..paths).map(path).collect()
}

/// A decoder's round, gone through draft by draft and coin by coin. It knows what a path's next
/// token is likely to be from the blocks that the path may still be, by Bayes' rule.
struct Round<'a> {
    tree: &'a TokenTree<Rational>,
    laws: &'a [Vec<Rational>],
    levels: &'a [Rational],
    /// P(text), and E[tau; text].
    texts: Vec<[Rational; 2]>,
}

impl Round<'_> {
    fn prefix(&self, block: usize, depth: usize) -> Node {
        self.tree.ancestor(leaf(self.tree, block), depth)
    }

    /// The law of a path's token behind a prefix where it is.
    fn next(&self, path: usize, prefix: Node) -> Vec<Rational> {
        let under = |node: Node| {
            let blocks = self.laws[path].iter().enumerate();
            let inside = blocks.filter(|(block, _)| self.prefix(*block, node.depth) == node);
            Rational::total(inside.map(|(_, mass)| mass))
        };
        let all = under(prefix);
        let tokens = 0..self.tree.vocab();
        let each = tokens.map(|token| under(self.tree.child(prefix, token)).over(&all));
        each.collect()
    }

    /// The round has come to a prefix, with these paths there: their numbers and blocks.
    fn go(&mut self, prefix: Node, there: &[(usize, usize)], chance: &Rational) {
        if chance.is_nil() {
            return;
        }
        let depth = prefix.depth;
        if depth == self.tree.length() {
            return self.put(prefix, depth, chance);
        }
        let mut residual = self.tree.target_next(prefix).unwrap().to_vec();
        let mut laws: Vec<Vec<Rational>> = there
            .iter()
            .map(|&(path, _)| self.next(path, prefix))
            .collect();
        let token_of = |block: usize| self.tree.last_token(self.prefix(block, depth + 1));
        let tokens: Vec<usize> = there.iter().map(|&(_, block)| token_of(block)).collect();
        let mut going = chance.clone();
        for level in self.levels {
            for (law, &token) in laws.iter_mut().zip(&tokens) {
                let mut take = Vec::new();
                for (left, mass) in residual.iter().zip(&*law) {
                    let more = left.excess_over(&level.times(mass));
                    take.push(more.over(&level.complement()).smaller(mass));
                }
                let accepted = take[token].over(&law[token]);
                let together: Vec<(usize, usize)> = there
                    .iter()
                    .zip(&tokens)
                    .filter(|(_, other)| **other == token)
                    .map(|(one, _)| *one)
                    .collect();
                self.go(
                    self.tree.child(prefix, token),
                    &together,
                    &going.times(&accepted),
                );
                going = going.times(&accepted.complement());
                if going.is_nil() {
                    return;
                }
                let kept = Rational::total(&take).complement();
                for ((left, mass), take) in residual.iter_mut().zip(law).zip(&take) {
                    *left = left.minus(take).over(&kept);
                    *mass = mass.minus(take).over(&kept);
                }
            }
        }
        for (token, left) in residual.iter().enumerate() {
            let child = self.tree.child(prefix, token);
            self.put(child, depth, &going.times(left));
        }
    }

    /// The round ends with a prefix; the target writes the rest of the block.
    fn put(&mut self, prefix: Node, accepted: usize, chance: &Rational) {
        if chance.is_nil() {
            return;
        }
        let before = self.tree.target(prefix);
        for block in 0..self.texts.len() {
            if self.prefix(block, prefix.depth) != prefix {
                continue;
            }
            let whole_block = self.tree.target(leaf(self.tree, block));
            let mass = chance.times(&whole_block.over(before));
            let [text, sum] = &mut self.texts[block];
            text.gain(&mass);
            sum.gain(&mass.times(&whole(accepted)));
        }
    }
}

/// The sum of P(tau >= d | text) by the four patterns.
fn by_patterns<T: Number>(text: &[u32], paths: usize, levels: &[T], problem: &BlockProblem) -> T {
    let (mut pieces, mut patterns) = (CodedPieces::of_paths(paths), Patterns::start());
    let mut sum = T::zero();
    for (depth, &token) in text.iter().enumerate() {
        let prefix = &text[..depth];
        let row = CodedRow::new(
            &T::row(problem.target().get(prefix).unwrap()),
            &T::row(problem.draft().get(prefix).unwrap()),
        );
        let token = token as usize;
        patterns.take(&row.transition(&pieces, token, levels));
        pieces = pieces.below(&row.interval(token));
        sum.gain(&patterns.total());
    }
    sum
}

/// Texts have the target's law, and given each the mean accepted length is what the four
/// patterns say, in fractions.
#[test]
fn every_draft_and_coin_agrees_with_the_four_patterns() {
    let mut rng = ChaCha8Rng::seed_from_u64(24);
    let mut models = 0;
    for (vocab, length, paths) in [
        (2, 2, 2),
        (2, 2, 3),
        (3, 2, 2),
        (3, 2, 3),
        (2, 3, 2),
        (2, 3, 3),
        (3, 3, 2),
        (2, 1, 5),
        (4, 1, 3),
    ] {
        for _ in 0..5 {
            let problem = random_problem(&mut rng, vocab, length);
            let tree = TokenTree::<Rational>::new(&problem);
            let laws = block_laws(&tree, paths);
            for (_, tenths) in coded_rules() {
                let levels: Vec<Rational> = levels(tenths);
                let width = tree.width(length);
                let mut round = Round {
                    tree: &tree,
                    laws: &laws,
                    levels: &levels,
                    texts: vec![[Rational::zero(), Rational::zero()]; width],
                };
                let root = Node { depth: 0, index: 0 };
                each_draw(&laws, |blocks, chance| {
                    let there: Vec<(usize, usize)> = blocks.iter().copied().enumerate().collect();
                    round.go(root, &there, chance);
                });
                for (block, [mass, sum]) in round.texts.iter().enumerate() {
                    let p = &tree.target_layer(length)[block];
                    assert_eq!(mass, p, "V {vocab}, L {length}, K {paths}, text {block}");
                    if p.is_nil() {
                        continue;
                    }
                    let text = tree.tokens(leaf(&tree, block));
                    let known = by_patterns(&text, paths, &levels, &problem);
                    assert_eq!(
                        sum,
                        &p.times(&known),
                        "V {vocab}, L {length}, K {paths}, text {block}"
                    );
                }
            }
            models += 1;
        }
    }
    assert_eq!(models, 45);
}

/// In `f64` as in fractions.
#[test]
fn floats_are_close_to_fractions() {
    let mut rng = ChaCha8Rng::seed_from_u64(25);
    for (vocab, length, paths) in [(5, 3, 4), (3, 4, 8), (8, 2, 5), (2, 5, 3)] {
        for _ in 0..3 {
            let problem = random_problem(&mut rng, vocab, length);
            let tree = TokenTree::<Rational>::new(&problem);
            for (_, tenths) in coded_rules() {
                let (exact, rounded) = (levels::<Rational>(tenths), levels::<f64>(tenths));
                for block in (0..tree.width(length)).step_by(7) {
                    if tree.target_layer(length)[block].is_nil() {
                        continue;
                    }
                    let text = tree.tokens(leaf(&tree, block));
                    let known = by_patterns(&text, paths, &exact, &problem);
                    let found = by_patterns(&text, paths, &rounded, &problem);
                    let known = known.to_f64();
                    assert!((known - found).abs() < 1e-9, "{known} {found}");
                }
            }
        }
    }
}

/// One path is verified token by token, by any levels.
#[test]
fn one_path_is_verified_token_by_token() {
    let row = CodedRow::new(&[0.5, 0.25, 0.25], &[0.25, 0.5, 0.25]);
    let pieces = CodedPieces::of_paths(1);
    for (_, tenths) in coded_rules() {
        let levels: Vec<f64> = levels(tenths);
        for (token, kept) in [(0, 0.5), (1, 1.0), (2, 1.0)] {
            let transition = row.transition(&pieces, token, &levels);
            assert!((transition[BOTH][BOTH] - kept).abs() < 1e-15);
            let mut by_ratio = Patterns::start();
            by_ratio.take_one(&[0.5, 2.0, 1.0][token]);
            assert!((by_ratio.total() - kept).abs() < 1e-15);
        }
    }
}

/// J of coded paths is at least that of i.i.d. paths, for all sets of prefixes: E of the most
/// prefixes outside that one path has.
#[test]
fn the_bound_of_coded_paths_is_never_below_that_of_iid_paths() {
    let mut rng = ChaCha8Rng::seed_from_u64(26);
    for paths in [2, 3] {
        for _ in 0..4 {
            let problem = random_problem(&mut rng, 2, 2);
            let tree = TokenTree::<Rational>::new(&problem);
            let coded = block_laws(&tree, paths);
            let alike = vec![tree.draft_layer(2).to_vec(); paths];
            let mut larger = 0;
            for set in 0..64u32 {
                // Prefixes of one token are bits 0 and 1, of two bits 2 to 5.
                let outside = |block: usize| {
                    let bits = [block / 2, 2 + block];
                    bits.iter().filter(|&&bit| set >> bit & 1 == 0).count()
                };
                let [here, there] = [&coded, &alike].map(|laws| {
                    let mut sum = Rational::zero();
                    each_draw(laws, |blocks, chance| {
                        let most = blocks.iter().map(|&block| outside(block)).max();
                        let most = whole::<Rational>(most.unwrap_or(0));
                        sum.gain(&chance.times(&most));
                    });
                    sum
                });
                assert!(here >= there, "{set}: {here} {there}");
                larger += usize::from(here > there);
            }
            assert!(larger > 0);
        }
    }
}
