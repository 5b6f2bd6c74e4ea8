//! Claims about trees of drafts along a text.

use super::family::Family;
use super::text::{Pair, extended};
use super::{Claim, Finding, Verdict};
use specgap_core::problem::Problem;
use specgap_core::rounds::{ChildShares, replay_tree};
use specgap_core::scheme::{MadeOf, SchemeName};
use specgap_core::tree::{DraftTree, Shape};
use specgap_core::verifier::{TokenRule, Verifier, VerifierName, verifier};
use specgap_number::distribution::{Draft, Rational, Target, format_rational};
use specgap_number::number::Number;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

pub(super) const CLAIMS: &[Claim] = &[
    Claim {
        id: "tree-replay",
        statement: "given the text, position and node of a tree of drafts that is verified from its \
            root are a Markov chain: from a node with n children it goes on to child k with \
            probability A(k | y; n) = P(the output is y, and it came through child k)/p(y), y being \
            the text's next token, whatever happened before. So E[tau] is the mean over text of the \
            sum over nodes of the product of A along their paths, and target calls are those of the \
            renewal process with m_d the sum over nodes of depth d",
        source: "ours; for every draft law and lossless verifier of a node",
        explanation: "The whole random process of drafting a tree, verifying it node by node and \
            correcting is enumerated on random models whose rows depend on the whole prefix: calls, \
            E[tau] from every prefix with room for the tree, and the law of the text, which has to \
            be the target's, in fractions, for every law and verifier whose A is known. Proof: \
            docs/theory/tree-replay.md.",
        expected: Verdict::Holds,
        counterexamples: &[],
        check: replayed,
    },
    Claim {
        id: "acceptance-not-tree-optimal",
        statement: "a node's verifier that accepts as often as any can is not always worth most in a \
            tree: with v_k = 1 + E[tau below child k], what counts is the sum of v_k P(output \
            through child k)",
        source: "ours",
        explanation: "With v = (3, 1), two i.i.d. drafts, p = (1/2, 3/10, 1/5) and q = (1/5, 3/10, \
            1/2) the most is 11/5, and no rule that is worth it accepts more than 4/5, below alpha* \
            = 43/50. Both are maximal transports: found by augmenting paths in whole numbers, and \
            bounded from above by dual prices, which are whole numbers too, the constraints being \
            those of a bipartite graph.",
        expected: Verdict::Holds,
        counterexamples: &[],
        check: not_optimal,
    },
];

/// A law with a rule whose shares are known.
struct Node {
    scheme: SchemeName,
    name: VerifierName,
    rule: TokenRule,
}

fn nodes() -> Vec<Node> {
    let mut nodes = Vec::new();
    for scheme in SchemeName::ALL {
        for name in VerifierName::ALL {
            if let Some(rule) = name.at_token(scheme) {
                nodes.push(Node { scheme, name, rule });
            }
        }
    }
    nodes
}

impl Node {
    fn fits(&self, shape: &Shape) -> bool {
        let parents = shape.children.iter().filter(|&&children| children > 0);
        parents.into_iter().all(|&children| {
            self.scheme.fits(children) && self.name.is_lossless(self.scheme, children)
        })
    }

    fn problem(&self, [target, draft]: &[Vec<Rational>; 2], children: usize) -> Option<Problem> {
        let MadeOf::OneDraft(law) = self.scheme.entry().made_of else {
            return None;
        };
        let target = Target::from_rationals(target.clone()).ok()?;
        let draft = Draft::from_rationals(draft.clone()).ok()?;
        Problem::from_law("node", target, law(draft, children)).ok()
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
            for &children in shape.children.iter().filter(|&&children| children > 0) {
                if let Entry::Vacant(place) = rules.entry((prefix.clone(), children)) {
                    let problem = node.problem(rows, children)?;
                    let rule = verifier(node.name, &problem).ok()?;
                    place.insert((problem, rule));
                }
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
        let Some((problem, rule)) = self.rules.get(&(here.clone(), children)) else {
            // No drafts: the target's own token.
            let Some([target, _]) = self.pair.rows(&here) else {
                return vec![(accepted.to_vec(), None, Rational::one())];
            };
            let own = target.iter().enumerate().filter(|(_, p)| !p.is_nil());
            return own
                .map(|(token, p)| (accepted.to_vec(), Some(token), p.clone()))
                .collect();
        };
        let mut all = Vec::new();
        let mut below: BTreeMap<(usize, usize), Rational> = BTreeMap::new();
        problem.scheme().for_each_tuple_exact(&mut |tuple, mass| {
            let Some(law) = rule.conditional_exact(tuple) else {
                return;
            };
            for (rank, (&token, share)) in tuple.iter().zip(&law.accepted).enumerate() {
                let weight = below
                    .entry((rank, token as usize))
                    .or_insert_with(Rational::zero);
                weight.gain(&mass.times(share));
            }
            for (token, share) in law.residual.iter().enumerate() {
                let weight = mass.times(&law.rejected).times(share);
                if !weight.is_nil() {
                    all.push((accepted.to_vec(), Some(token), weight));
                }
            }
        });
        for ((rank, token), weight) in below.into_iter().filter(|(_, weight)| !weight.is_nil()) {
            let child = (1..self.shape.parent.len())
                .find(|&child| self.shape.parent[child] == node && self.shape.rank[child] == rank);
            let Some(child) = child else {
                continue;
            };
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
                    let at = layers[text.len()]
                        .entry(text)
                        .or_insert_with(Rational::zero);
                    at.gain(&weight.times(&share));
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
                let tau = Rational::from_integer(accepted.len().into());
                sum.gain(&weight.times(&share).times(&tau));
            }
        }
        sum
    }
}

/// What each child gets along a text.
fn shares(pair: &Pair, text: &[usize], shape: &Shape, node: &Node) -> ChildShares<Rational> {
    let mut counts: Vec<usize> = shape.children.clone();
    counts.retain(|&children| children > 0);
    counts.sort_unstable();
    counts.dedup();
    let tables = counts.into_iter().map(|children| {
        let at = |position: usize| {
            let problem = pair
                .rows(&text[..position])
                .and_then(|rows| node.problem(rows, children));
            problem.map_or_else(
                || vec![Rational::zero(); children],
                |problem| node.rule.exact_shares(&problem, text[position]),
            )
        };
        (children, (0..text.len()).flat_map(at).collect())
    });
    ChildShares::new(text.len(), false, tables.collect::<Vec<_>>())
}

fn replayed() -> Finding {
    let mut finding = Finding::default();
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
    let mut compared = 0;
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
                    along.gain(&weight.times(&found.calls));
                    mean.gain(&weight.times(&found.accepted));
                }
                compared += 1;
                let what = format!("{} on {}, {:?}", node.name, node.scheme, tree.paths());
                finding.require(along == calls, || {
                    format!("{what}: calls {along}, {calls} by enumeration")
                });
                finding.require(mean == accepted, || {
                    format!("{what}: accepted {mean}, {accepted} by enumeration")
                });
                finding.require(law == texts, || format!("{what}: another law of the text"));
            }
        }
    }
    finding.count("trees, laws and verifiers against enumeration", compared);
    finding.count("laws with verifiers", nodes.len() as u64);
    finding
}

/// Masses of tokens and of tuples of drafts, in whole numbers of the same sum, and what a
/// token that comes through each draft is worth.
struct Transport {
    target: Vec<i64>,
    tuples: Vec<(Vec<usize>, i64)>,
}

impl Transport {
    /// i.i.d. drafts, in whole numbers over (sum of q)^n sum of p.
    fn new(target: &[u64], draft: &[u64], drafts: usize) -> Self {
        let (p_sum, q_sum): (u64, u64) = (target.iter().sum(), draft.iter().sum());
        let mut tuples = vec![(Vec::new(), p_sum as i64)];
        for _ in 0..drafts {
            tuples = tuples
                .into_iter()
                .flat_map(|(tuple, mass): (Vec<usize>, i64)| {
                    let tokens = draft.iter().enumerate();
                    tokens.map(move |(token, &q)| (extended(&tuple, token), mass * q as i64))
                })
                .collect();
        }
        let scale = q_sum.pow(drafts as u32) as i64;
        Self {
            target: target.iter().map(|&p| p as i64 * scale).collect(),
            tuples,
        }
    }

    fn whole(&self) -> i64 {
        self.target.iter().sum()
    }

    /// The most that a transport is worth, by augmenting paths of largest worth: exact, in
    /// whole numbers.
    fn best(&self, worth: &[i64]) -> i64 {
        let (tuples, tokens) = (self.tuples.len(), self.target.len());
        // A pair's worth through the best draft that is this token.
        let edge = |tuple: usize, token: usize| {
            let drafts = self.tuples[tuple].0.iter().zip(worth);
            let through = drafts.filter(|(draft, _)| **draft == token);
            through.map(|(_, &worth)| worth).max()
        };
        let mut flow = vec![vec![0i64; tokens]; tuples];
        let mut total = 0;
        loop {
            let supply: Vec<i64> = (0..tuples)
                .map(|tuple| self.tuples[tuple].1 - flow[tuple].iter().sum::<i64>())
                .collect();
            let room: Vec<i64> = (0..tokens)
                .map(|token| self.target[token] - flow.iter().map(|row| row[token]).sum::<i64>())
                .collect();
            // Largest worth of a path that ends at each tuple or token, and what leads there.
            let mut at_tuple: Vec<Option<(i64, Option<usize>)>> = supply
                .iter()
                .map(|&supply| (supply > 0).then_some((0, None)))
                .collect();
            let mut at_token: Vec<Option<(i64, usize)>> = vec![None; tokens];
            for _ in 0..tuples + tokens {
                for tuple in 0..tuples {
                    for token in 0..tokens {
                        let Some(worth) = edge(tuple, token) else {
                            continue;
                        };
                        if let Some((so_far, _)) = at_tuple[tuple]
                            && at_token[token].is_none_or(|best| best.0 < so_far + worth)
                        {
                            at_token[token] = Some((so_far + worth, tuple));
                        }
                        if let Some((so_far, _)) = at_token[token]
                            && flow[tuple][token] > 0
                            && at_tuple[tuple].is_none_or(|best| best.0 < so_far - worth)
                        {
                            at_tuple[tuple] = Some((so_far - worth, Some(token)));
                        }
                    }
                }
            }
            let ends = (0..tokens).filter(|&token| room[token] > 0);
            let best = ends
                .filter_map(|token| Some((at_token[token]?.0, token)))
                .max();
            let Some((worth, end)) = best.filter(|best| best.0 > 0) else {
                return total;
            };
            let (mut path, mut token) = (Vec::new(), end);
            let mut most = room[end];
            while let Some((_, tuple)) = at_token[token] {
                path.push((tuple, token, 1));
                match at_tuple[tuple] {
                    Some((_, Some(before))) => {
                        most = most.min(flow[tuple][before]);
                        path.push((tuple, before, -1));
                        token = before;
                    }
                    _ => {
                        most = most.min(supply[tuple]);
                        break;
                    }
                }
            }
            for (tuple, token, sign) in path {
                flow[tuple][token] += sign * most;
            }
            total += worth * most;
        }
    }

    /// The least of sum of D max over k of (v_k - w)+ + sum of p w over whole prices w: an upper
    /// bound, and the same by duality.
    fn bound(&self, worth: &[i64]) -> i64 {
        let most = worth.iter().copied().max().unwrap_or(0);
        let mut prices = vec![vec![]];
        for _ in &self.target {
            prices = prices
                .into_iter()
                .flat_map(|row: Vec<i64>| {
                    (0..=most).map(move |price| [row.as_slice(), &[price]].concat())
                })
                .collect();
        }
        let value = |prices: &Vec<i64>| {
            let tuples = self.tuples.iter().map(|(tuple, mass)| {
                let gains = tuple.iter().zip(worth);
                let best = gains.map(|(&token, worth)| worth - prices[token]).max();
                mass * best.unwrap_or(0).max(0)
            });
            let tokens = self
                .target
                .iter()
                .zip(prices)
                .map(|(mass, price)| mass * price);
            tuples.chain(tokens).sum::<i64>()
        };
        prices.iter().map(value).min().unwrap_or(0)
    }

    /// The most value, and the most acceptance of what has it.
    fn value_then_acceptance(&self, worth: &[i64]) -> [i64; 2] {
        // One unit of value outweighs all that can be accepted.
        let scale = self.whole() + 1;
        let both: Vec<i64> = worth.iter().map(|worth| worth * scale + 1).collect();
        let (value, both) = (self.best(worth), self.best(&both));
        [value, both - value * scale]
    }

    /// The most acceptance, and the most value of what has it.
    fn acceptance_then_value(&self, worth: &[i64]) -> [i64; 2] {
        let most = worth.iter().copied().max().unwrap_or(0);
        let scale = most * self.whole() + 1;
        let both: Vec<i64> = worth.iter().map(|worth| worth + scale).collect();
        let accepted = self.best(&vec![1; worth.len()]);
        [accepted, self.best(&both) - accepted * scale]
    }

    fn share(&self, mass: i64) -> Rational {
        Rational::new(mass.into(), self.whole().into())
    }
}

fn not_optimal() -> Finding {
    let mut finding = Finding::default();
    let fraction =
        |numerator: i64, denominator: i64| Rational::new(numerator.into(), denominator.into());
    let example = Transport::new(&[5, 3, 2], &[2, 3, 5], 2);
    let worth = [3, 1];
    let [value, accepts] = example
        .value_then_acceptance(&worth)
        .map(|mass| example.share(mass));
    let [most, worth_then] = example
        .acceptance_then_value(&worth)
        .map(|mass| example.share(mass));
    let bound = example.share(example.bound(&worth));
    finding.text("most value", format_rational(&value));
    finding.text(
        "accepted by what has it, at most",
        format_rational(&accepts),
    );
    finding.text("most acceptance", format_rational(&most));
    finding.text(
        "value of what has it, at most",
        format_rational(&worth_then),
    );
    let expected = value == fraction(11, 5)
        && accepts == fraction(4, 5)
        && most == fraction(43, 50)
        && worth_then < value;
    finding.require(expected, || {
        format!("{value} accepting {accepts}; {most} worth {worth_then}")
    });
    finding.require(bound == value, || {
        format!("{value}, but prices say {bound}")
    });
    let mut family = Family::new(712);
    let (mut apart, runs) = (0, 120);
    for _ in 0..runs {
        let small = |family: &mut Family| -> Vec<u64> {
            (0..3).map(|_| family.between(1, 9) as u64).collect()
        };
        let random = Transport::new(&small(&mut family), &small(&mut family), 2);
        let worth = [family.between(1, 4) as i64, family.between(1, 4) as i64];
        let value = random.best(&worth);
        finding.require(value == random.bound(&worth), || {
            format!("{value}, prices say {}", random.bound(&worth))
        });
        let [_, of_accepting] = random.acceptance_then_value(&worth);
        apart += u64::from(of_accepting < value);
    }
    finding.count("of 120 random nodes, accepting most is worth less", apart);
    finding
}

#[cfg(test)]
mod tests {
    use super::super::family::{fractions, optimum};
    use super::*;

    /// Acceptance by this transport is alpha* by the maximum flow.
    #[test]
    fn transports_of_equal_worth_are_acceptance() {
        let mut family = Family::new(713);
        for _ in 0..20 {
            let row = |family: &mut Family| -> Vec<u64> {
                (0..3).map(|_| family.between(1, 9) as u64).collect()
            };
            let (p, q) = (row(&mut family), row(&mut family));
            let transport = Transport::new(&p, &q, 2);
            let draft = Draft::from_rationals(fractions(&q)).unwrap();
            let scheme = specgap_core::scheme::WithReplacement::new(draft, 2);
            let target = Target::from_rationals(fractions(&p)).unwrap();
            let problem = Problem::new("flow", target, scheme).unwrap();
            let accepted = transport.share(transport.best(&[1, 1]));
            assert_eq!(accepted, optimum(&problem));
        }
    }
}
