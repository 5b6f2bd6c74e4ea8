//! Claims about draft paths that one code each writes; `docs/theory/paths.md` has the proofs.

use super::Finding;
use super::blocks::tree;
use super::claim::claims;
use super::family::{Family, part, whole};
use super::scores::is_in;
use specgap_core::tree::{Node, TokenTree};
use specgap_number::distribution::Rational;
use specgap_number::number::{Number, normalised};

claims! {
    holds "codes-lossless" by lossless,
        "K paths, path j written by a code that is uniform on [j/K, (j+1)/K) as in arithmetic \
        coding, are verified without loss prefix by prefix: by recursive rejection, or passes at \
        falling levels, of the paths that are there, each with the law of its own piece",
        "ours",
        "What is accepted depends on codes through tokens alone. So given all tokens each \
        code stays uniform on its piece of its token's interval, and at the next prefix the paths that \
        are there are independent again. Checked draft by draft and coin by coin, by Bayes' rule over \
        whole blocks, in fractions: every text has the target's probability.";
    holds "codes-bound" by bound,
        "the optimum of K paths by codes, one in each K-th of the unit interval, is at least that \
        of K independent paths",
        "ours",
        "The laws of the paths have the draft's law for mean, so that P(no path has more than \
        t prefixes outside) is at most that of independent paths: a product is at most the power of its \
        mean. So each bound of block-duality is at least as large, and so is the least of them. \
        Checked for all sets of prefixes, in fractions.";
}

/// P(path j writes each block): what the block's interval and the path's own share, over 1/K.
fn block_laws(tree: &TokenTree<Rational>, paths: usize) -> Vec<Vec<Rational>> {
    let share = |at: usize| part(at, paths);
    let path = |j: usize| {
        let mut begin = Rational::zero();
        let blocks = tree.draft_layer(tree.length()).iter().map(|mass| {
            let end = begin.plus(mass);
            let from = begin.clone().max(share(j));
            let common = end.smaller(&share(j + 1)).excess_over(&from);
            begin = end;
            common.over(&share(1))
        });
        blocks.collect()
    };
    (0..paths).map(path).collect()
}

/// Calls with every draw of an entry from each of some laws, and its probability, which is above 0.
fn each_draw(laws: &[Vec<Rational>], mut visit: impl FnMut(&[usize], &Rational)) {
    let width = laws.first().map_or(0, Vec::len);
    for tuple in 0..width.pow(laws.len() as u32) {
        let drawn: Vec<usize> = (0..laws.len())
            .map(|place| tuple / width.pow(place as u32) % width)
            .collect();
        let each = laws.iter().zip(&drawn);
        let chance = each.fold(Rational::one(), |chance, (law, &entry)| {
            chance.times(&law[entry])
        });
        if !chance.is_nil() {
            visit(&drawn, &chance);
        }
    }
}

/// A decoder's round, gone through draft by draft and coin by coin. It knows what a path's next
/// token is likely to be from the blocks that the path may still be, by Bayes' rule.
struct Round<'a> {
    tree: &'a TokenTree<Rational>,
    laws: &'a [Vec<Rational>],
    levels: &'a [Rational],
    /// P(text).
    texts: Vec<Rational>,
}

impl Round<'_> {
    fn prefix(&self, block: usize, depth: usize) -> Node {
        self.tree.ancestor(self.tree.leaf(block), depth)
    }

    /// The law of a path's token behind a prefix where it is.
    fn next(&self, path: usize, prefix: Node) -> Vec<Rational> {
        let mut law = vec![Rational::zero(); self.tree.vocab()];
        for (block, mass) in self.laws[path].iter().enumerate() {
            if self.prefix(block, prefix.depth) == prefix {
                law[self.tree.last_token(self.prefix(block, prefix.depth + 1))] += mass;
            }
        }
        normalised(&law).unwrap_or(law)
    }

    /// The round has come to a prefix, with these paths there: their numbers and blocks.
    fn go(&mut self, prefix: Node, there: &[(usize, usize)], chance: &Rational) {
        let next = self.tree.target_next(prefix);
        let Some(next) = next.filter(|_| prefix.depth < self.tree.length()) else {
            return self.put(prefix, chance);
        };
        let mut residual = next.to_vec();
        let laws = there.iter().map(|&(path, _)| self.next(path, prefix));
        let mut laws: Vec<Vec<Rational>> = laws.collect();
        let token_of = |block: usize| self.tree.last_token(self.prefix(block, prefix.depth + 1));
        let tokens: Vec<usize> = there.iter().map(|&(_, block)| token_of(block)).collect();
        let mut going = chance.clone();
        for level in self.levels {
            for (law, &token) in laws.iter_mut().zip(&tokens) {
                let take = residual.iter().zip(&*law).map(|(left, mass)| {
                    let more = left.excess_over(&level.times(mass));
                    more.over(&level.complement()).smaller(mass)
                });
                let take: Vec<Rational> = take.collect();
                let accepted = take[token].over(&law[token]);
                let same = there.iter().zip(&tokens);
                let same = same.filter(|(_, other)| **other == token);
                let same: Vec<(usize, usize)> = same.map(|(one, _)| *one).collect();
                let child = self.tree.child(prefix, token);
                if !accepted.is_nil() {
                    self.go(child, &same, &going.times(&accepted));
                }
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
            self.put(child, &going.times(left));
        }
    }

    /// The round ends with a prefix; the target writes the rest of the block.
    fn put(&mut self, prefix: Node, chance: &Rational) {
        if chance.is_nil() {
            return;
        }
        let rest = chance.over(self.tree.target(prefix));
        let written = self.tree.target_layer(self.tree.length()).iter();
        for (block, mass) in written.enumerate() {
            if self.prefix(block, prefix.depth) == prefix {
                self.texts[block].gain(&rest.times(mass));
            }
        }
    }
}

fn lossless(finding: &mut Finding) {
    let mut family = Family::new(2401);
    let rules = [&[0][..], &[8, 5, 2, 0]];
    for [vocab, length, paths] in [
        [2, 2, 2],
        [2, 2, 3],
        [3, 2, 2],
        [2, 3, 2],
        [2, 3, 3],
        [2, 1, 5],
        [4, 1, 3],
    ] {
        let problems = std::iter::repeat_with(|| tree(&mut family, vocab, length)).take(3);
        for problem in problems.flatten().collect::<Vec<_>>() {
            let tree = TokenTree::<Rational>::new(&problem);
            let laws = block_laws(&tree, paths);
            for tenths in rules {
                let levels: Vec<Rational> = tenths.iter().map(|&t| part(t, 10)).collect();
                let mut round = Round {
                    tree: &tree,
                    laws: &laws,
                    levels: &levels,
                    texts: vec![Rational::zero(); tree.width(length)],
                };
                each_draw(&laws, |blocks, chance| {
                    let there: Vec<(usize, usize)> = blocks.iter().copied().enumerate().collect();
                    round.go(Node::ROOT, &there, chance);
                });
                finding.same(&round.texts[..], tree.target_layer(length), || {
                    format!("V {vocab}, L {length}, K {paths}, levels {tenths:?}")
                });
                finding.add("models and rules", 1);
            }
        }
    }
    finding.enough(&["models and rules"], 41);
}

/// E of the most prefixes outside a set that one path has; the rest of J does not depend on paths.
fn bound(finding: &mut Finding) {
    let mut family = Family::new(2402);
    for paths in [2, 2, 2, 3, 3, 3] {
        let Some(problem) = tree(&mut family, 2, 2) else {
            continue;
        };
        let tree = TokenTree::<Rational>::new(&problem);
        let coded = block_laws(&tree, paths);
        let alike = vec![tree.draft_layer(2).to_vec(); paths];
        for set in 0..64usize {
            // Prefixes of one token are bits 0 and 1, of two bits 2 to 5.
            let outside = |&block: &usize| {
                let bits = [block / 2, 2 + block];
                bits.iter().filter(|&&bit| !is_in(set, bit)).count()
            };
            let [here, there] = [&coded, &alike].map(|laws| {
                let mut sum = Rational::zero();
                each_draw(laws, |blocks, chance| {
                    let most = blocks.iter().map(outside).max().unwrap_or(0);
                    sum += chance * whole(most);
                });
                sum
            });
            finding.require(here >= there, || {
                format!("K = {paths}, {set}: {here} {there}")
            });
            finding.add("sets of prefixes", 1);
            finding.tally("where paths by codes have more", here > there);
        }
    }
    finding.enough(&["sets of prefixes"], 383);
    finding.enough(&["where paths by codes have more"], 0);
}
