//! Claims about trees of drafts along a text.

use super::Finding;
use super::claim::claims;
use super::family::{Family, drawing, fractions, part, positive, whole};
use super::text::{Pair, extended};
use super::traversal::{counts, texts};
use crate::block::transport::largest_coupling;
use specgap_core::problem::Problem;
use specgap_core::rounds::{ChildShares, replay_tree};
use specgap_core::scheme::SchemeName;
use specgap_core::tree::{DraftTree, Shape};
use specgap_core::verifier::{TokenRule, Verifier, VerifierName, verifier};
use specgap_number::distribution::Rational;
use specgap_number::number::Number;
use std::collections::BTreeMap;

claims! {
    holds "tree-replay" by replayed,
        "given the text, position and node of a tree of drafts that is verified from its \
        root are a Markov chain: from a node with n children it goes on to child k with \
        probability A(k | y; n) = P(the output is y, and it came through child k)/p(y), y being \
        the text's next token, whatever happened before. So E[tau] is the mean over text of the \
        sum over nodes of the product of A along their paths, and target calls are those of the \
        renewal process with m_d the sum over nodes of depth d",
        "ours; for every draft law and lossless verifier of a node",
        "The whole random process of drafting a tree, verifying it node by node and \
        correcting is enumerated on random models whose rows depend on the whole prefix: calls, \
        E[tau] from every prefix with room for the tree, and the law of the text, which has to \
        be the target's, in fractions, for every law and verifier whose A is known. Proof: \
        docs/theory/tree-replay.md.";
    holds "acceptance-not-tree-optimal" by not_optimal,
        "a node's verifier that accepts as often as any can is not always worth most in a \
        tree: with v_k = 1 + E[tau below child k], what counts is the sum of v_k P(output \
        through child k)",
        "ours",
        "With v = (3, 1), two i.i.d. drafts, p = (1/2, 3/10, 1/5) and q = (1/5, 3/10, \
        1/2) the most is 11/5, and no rule that is worth it accepts more than 4/5, below alpha* \
        = 43/50. Both are maximal transports: found by augmenting paths in whole numbers, and \
        bounded from above by dual prices, which are whole numbers too, the constraints being \
        those of a bipartite graph.";
}

/// A law with a rule whose shares are known.
struct Node {
    scheme: SchemeName,
    name: VerifierName,
    rule: TokenRule,
}

fn nodes() -> Vec<Node> {
    let all = SchemeName::ALL.into_iter();
    let nodes = all.flat_map(|scheme| {
        VerifierName::ALL.into_iter().filter_map(move |name| {
            let rule = name.at_token(scheme)?;
            Some(Node { scheme, name, rule })
        })
    });
    nodes.collect()
}

impl Node {
    fn fits(&self, shape: &Shape) -> bool {
        counts(shape).into_iter().all(|children| {
            self.scheme.fits(children) && self.name.is_lossless(self.scheme, children)
        })
    }

    fn problem(&self, [target, draft]: &[Vec<Rational>; 2], children: usize) -> Option<Problem> {
        drawing(self.scheme, target.clone(), draft.clone(), children)
    }
}

/// Every node of every prefix: its problem and its verifier, by prefix and number of children.
type Rules = BTreeMap<(Vec<usize>, usize), (Problem, Box<dyn Verifier>)>;

/// A tree's decoder on a pair of models.
struct Decoder<'a> {
    pair: &'a Pair,
    shape: &'a Shape,
    rules: Rules,
}

/// How a round goes: the tokens it accepted, the one that was put behind them, if that is
/// known, and the probability.
type Outcome = (Vec<usize>, Option<usize>, Rational);

impl<'a> Decoder<'a> {
    fn new(pair: &'a Pair, shape: &'a Shape, node: &Node) -> Option<Self> {
        let mut rules = Rules::new();
        for (prefix, rows) in pair.all_rows() {
            for children in counts(shape) {
                let problem = node.problem(rows, children)?;
                let rule = verifier(node.name, &problem).ok()?;
                rules.insert((prefix.clone(), children), (problem, rule));
            }
        }
        Some(Self { pair, shape, rules })
    }

    /// All ways on from a node. The children of other nodes are drawn independently of these,
    /// so that nothing is lost by drawing them when they are looked at.
    fn outcomes(
        &self,
        prefix: &[usize],
        node: usize,
        accepted: &[usize],
        left: usize,
    ) -> Vec<Outcome> {
        let here = [prefix, accepted].concat();
        let children = if left == 0 {
            0
        } else {
            self.shape.children[node]
        };
        let ends = |token, chance| (accepted.to_vec(), token, chance);
        let Some((problem, rule)) = self.rules.get(&(here.clone(), children)) else {
            // No drafts: the target's own token.
            return match self.pair.rows(&here) {
                Some([p, _]) => positive(p).map(|(x, p)| ends(Some(x), p.clone())).collect(),
                None => vec![ends(None, Rational::one())],
            };
        };
        let mut all = Vec::new();
        let mut below: BTreeMap<(usize, usize), Rational> = BTreeMap::new();
        problem.scheme().for_each_tuple_exact(&mut |tuple, mass| {
            let Some(law) = rule.conditional_exact(tuple) else {
                return;
            };
            for (rank, (&token, share)) in tuple.iter().zip(&law.accepted).enumerate() {
                *below.entry((rank, token as usize)).or_default() += mass * share;
            }
            let rejected = mass * &law.rejected;
            let own = positive(&law.residual).filter(|_| !rejected.is_nil());
            all.extend(own.map(|(token, share)| ends(Some(token), &rejected * share)));
        });
        for ((rank, token), weight) in below.into_iter().filter(|(_, weight)| !weight.is_nil()) {
            let child = self.shape.child(node, rank);
            let longer = extended(accepted, token);
            for (tokens, own, share) in self.outcomes(prefix, child, &longer, left - 1) {
                all.push((tokens, own, weight.times(&share)));
            }
        }
        all
    }

    /// Expected calls, and the law of the text.
    fn text(&self) -> (Rational, BTreeMap<Vec<usize>, Rational>) {
        let tokens = self.pair.tokens();
        let mut calls = Rational::zero();
        let mut layers = vec![BTreeMap::<Vec<usize>, Rational>::new(); tokens + 1];
        layers[0].insert(Vec::new(), Rational::one());
        for length in 0..tokens {
            for (prefix, weight) in std::mem::take(&mut layers[length]) {
                calls.gain(&weight);
                for (accepted, own, share) in self.outcomes(&prefix, 0, &[], tokens - length - 1) {
                    let Some(own) = own else {
                        continue;
                    };
                    let text = extended(&[prefix.as_slice(), &accepted].concat(), own);
                    *layers[text.len()].entry(text).or_default() += &weight * share;
                }
            }
        }
        (calls, std::mem::take(&mut layers[tokens]))
    }

    /// sum over prefixes with room for the tree of p(prefix) E[tau from there].
    fn accepted(&self, depth: usize) -> Rational {
        let mut sum = Rational::zero();
        for (prefix, weight) in self.pair.prefixes(self.pair.tokens() - depth) {
            for (accepted, _, share) in self.outcomes(&prefix, 0, &[], depth) {
                sum.gain(&weight.times(&share).times(&whole(accepted.len())));
            }
        }
        sum
    }
}

/// Returns what each child gets along a text.
fn shares(pair: &Pair, text: &[usize], shape: &Shape, node: &Node) -> ChildShares<Rational> {
    let tables = counts(shape).into_iter().map(|children| {
        let at = |position: usize| {
            let rows = pair.rows(&text[..position]);
            match rows.and_then(|rows| node.problem(rows, children)) {
                Some(problem) => node.rule.exact_shares(&problem, text[position]),
                None => vec![Rational::zero(); children],
            }
        };
        (children, (0..text.len()).flat_map(at).collect())
    });
    ChildShares::new(text.len(), false, tables.collect::<Vec<_>>())
}

fn replayed(finding: &mut Finding) {
    let mut family = Family::new(711);
    let trees: Vec<DraftTree> = [
        "[[0],[1],[0,0],[0,1],[1,0]]",
        "[[0],[1],[0,0],[1,0],[1,1]]",
        "[[0],[0,0]]",
        "[[0],[1],[2],[0,0]]",
    ]
    .iter()
    .filter_map(|text| DraftTree::from_json(text).ok())
    .chain(DraftTree::named("2x2"))
    .collect();
    let nodes = nodes();
    for (vocab, tokens) in [(3, 3), (2, 4), (3, 3)] {
        let pair = Pair::random(&mut family, vocab, tokens);
        let texts = pair.texts();
        for tree in &trees {
            let shape = tree.shape();
            for node in nodes.iter().filter(|node| node.fits(&shape)) {
                // A law of distinct drafts may not have so many.
                let Some(decoder) = Decoder::new(&pair, &shape, node) else {
                    continue;
                };
                let (calls, law) = decoder.text();
                let accepted = decoder.accepted(tree.depth());
                let (mut along, mut mean) = (Rational::zero(), Rational::zero());
                for (text, weight) in &texts {
                    let found = replay_tree(&shape, &shares(&pair, text, &shape, node));
                    along += weight * found.calls;
                    mean += weight * found.accepted;
                }
                finding.add("trees, laws and verifiers against enumeration", 1);
                let name = || format!("{} on {}, {:?}", node.name, node.scheme, tree.paths());
                finding.same(along, calls, || format!("{}, calls", name()));
                finding.same(mean, accepted, || format!("{}, accepted", name()));
                finding.same(&law, &texts, || format!("{}, text", name()));
            }
        }
    }
    finding.count("laws with verifiers", nodes.len() as u64);
}

/// Masses of tokens and of tuples of drafts.
struct Transport {
    target: Vec<Rational>,
    tuples: Vec<(Vec<usize>, Rational)>,
    /// All masses are whole multiples of 1 over this.
    whole: i64,
}

impl Transport {
    /// i.i.d. drafts, in whole numbers over (sum of q)^n sum of p.
    fn new(target: &[u64], draft: &[u64], drafts: usize) -> Self {
        let (p_sum, q_sum): (u64, u64) = (target.iter().sum(), draft.iter().sum());
        let q = fractions(draft);
        let mut tuples = vec![(Vec::new(), Rational::one())];
        for _ in 0..drafts {
            let longer = tuples.iter().flat_map(|(tuple, mass)| {
                let tokens = q.iter().enumerate();
                tokens.map(move |(token, q)| (extended(tuple, token), mass * q))
            });
            tuples = longer.collect();
        }
        Self {
            target: fractions(target),
            tuples,
            whole: (p_sum * q_sum.pow(drafts as u32)) as i64,
        }
    }

    /// The most that a transport is worth, a token that comes through each draft being worth so
    /// much: by augmenting paths in whole numbers, and checked by potentials.
    fn best(&self, worth: &[i64]) -> Rational {
        // A pair's worth through the best draft that is this token.
        let through = |tuple: &[usize], token: usize| {
            let drafts = tuple.iter().zip(worth);
            let drafts = drafts.filter(|(draft, _)| **draft == token);
            drafts.map(|(_, &worth)| worth).max().unwrap_or(0)
        };
        let rows = self.tuples.iter().map(|(tuple, mass)| {
            let tokens = 0..self.target.len();
            let row: Vec<i64> = tokens.map(|token| through(tuple, token)).collect();
            (row, mass.clone())
        });
        let (worths, masses): (Vec<_>, Vec<_>) = rows.unzip();
        largest_coupling(&worths, [&masses, &self.target]).unwrap_or_default()
    }

    /// The least of sum of D max over k of (v_k - w)+ + sum of p w over whole prices w: an upper
    /// bound, and the same by duality.
    fn bound(&self, worth: &[i64]) -> Rational {
        let most = worth.iter().copied().max().unwrap_or(0);
        let count = usize::try_from(most + 1).unwrap_or(1);
        let prices = texts(count, self.target.len()).into_iter();
        let value = |prices: Vec<usize>| {
            let prices: Vec<i64> = prices.into_iter().map(|price| price as i64).collect();
            let tuples = self.tuples.iter().map(|(tuple, mass)| {
                let gains = tuple.iter().zip(worth);
                let best = gains.map(|(&token, worth)| worth - prices[token]).max();
                mass * whole(best.unwrap_or(0).max(0))
            });
            let tokens = self.target.iter().zip(&prices);
            let tokens = tokens.map(|(mass, &price)| mass * whole(price));
            tuples.chain(tokens).sum::<Rational>()
        };
        prices.map(value).min().unwrap_or_default()
    }

    /// The most that a transport is worth, and what it is worth at most by a second count that has it.
    fn best_then(&self, first: &[i64], second: &[i64]) -> [Rational; 2] {
        // One unit of the first count outweighs all of the second.
        let scale = second.iter().copied().max().unwrap_or(0) * self.whole + 1;
        let both = first.iter().zip(second);
        let both: Vec<i64> = both.map(|(first, second)| first * scale + second).collect();
        let (most, both) = (self.best(first), self.best(&both));
        let then = both - &most * whole(scale);
        [most, then]
    }
}

fn not_optimal(finding: &mut Finding) {
    let example = Transport::new(&[5, 3, 2], &[2, 3, 5], 2);
    let worth = [3, 1];
    let [value, accepts] = example.best_then(&worth, &[1, 1]);
    let [most, worth_then] = example.best_then(&[1, 1], &worth);
    finding.fraction("most value", &value);
    finding.fraction("accepted by what has it, at most", &accepts);
    finding.fraction("most acceptance", &most);
    finding.fraction("value of what has it, at most", &worth_then);
    let expected = [&value, &accepts, &most] == [&part(11, 5), &part(4, 5), &part(43, 50)];
    finding.require(expected && worth_then < value, || {
        format!("{value} accepting {accepts}; {most} worth {worth_then}")
    });
    finding.same(&value, &example.bound(&worth), || "prices".to_owned());
    let mut family = Family::new(712);
    for _ in 0..120 {
        let [p, q] = [(); 2].map(|()| [(); 3].map(|()| family.between(1, 9) as u64));
        let random = Transport::new(&p, &q, 2);
        let worth = [(); 2].map(|()| family.between(1, 4) as i64);
        let value = random.best(&worth);
        finding.same(&value, &random.bound(&worth), || "random prices".to_owned());
        let [_, of_accepting] = random.best_then(&[1, 1], &worth);
        let name = "of 120 random nodes, accepting most is worth less";
        finding.tally(name, of_accepting < value);
    }
}
