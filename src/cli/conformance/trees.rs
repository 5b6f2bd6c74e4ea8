//! Test vectors of whole trees: drafted trees, coins, and what is kept.

use crate::cli::output::CliError;
use crate::distribution::{Draft, Rational, round_nearest};
use crate::number::Number;
use crate::rounds::{DrawnNode, TreeEnd, ends_from_leaves};
use crate::rule::RuleName;
use crate::scheme::{MadeOf, SchemeName};
use crate::tree::{DraftTree, Shape};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

/// `trees.json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct TreeVectors {
    /// 1.
    schema: u32,
    /// What made it.
    tool: String,
    /// Of the rows.
    seed: u64,
    /// One tree each.
    vectors: Vec<TreeVector>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct TreeVector {
    /// The rule.
    rule: &'static str,
    /// Levels of its passes at the root, and below it.
    levels: [Vec<f64>; 2],
    /// The law of a node's drafts.
    law: &'static str,
    /// What is special about it.
    situation: &'static str,
    /// The drafted nodes' tokens.
    tokens: Vec<u32>,
    /// The row of each one's parent. Row 0 is the text, row i + 1 node i.
    parents: Vec<usize>,
    /// By row, the nodes of its drafts: sure tokens first, heaviest first, then strata in their
    /// order. One twice where a token over a cut was drafted twice.
    slots: Vec<Vec<usize>>,
    /// p by row, multiples of 1/64.
    target: Vec<Vec<f64>>,
    /// q by row, falling by id, so that cuts by id and by weight are the same; 0 where nothing is
    /// drafted.
    draft: Vec<Vec<f64>>,
    /// By row, the probability that it is the last that is kept.
    kept_law: Vec<f64>,
    /// By row, the law of the next token then; 0 where that cannot be.
    next_law: Vec<Vec<f64>>,
    /// Uniform numbers at which there is one right answer.
    coins: Vec<TreeCoins>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct TreeCoins {
    /// By node: it is refused while its number is below the probability that all its offers so far
    /// were refused.
    nodes: Vec<f64>,
    /// For the next token, by the inverse of the distribution function in order of id.
    last: f64,
    /// The last row that is kept.
    kept: usize,
    /// The next token.
    token: usize,
}

/// What is special about a tree's rows, of the root alone or of all.
const SITUATIONS: [&str; 9] = [
    "random",
    "close",
    "equal",
    "uniform",
    "disjoint",
    "zero-target",
    "one-hot-draft",
    "one-hot-target",
    "twice",
];

/// Two and three levels; subtrees of different sizes.
const TREES: [&str; 5] = [
    "[[0],[0,0],[0,0,0]]",
    "[[0],[1],[0,0],[1,0]]",
    "[[0],[1],[1,0],[1,1]]",
    "[[0],[1],[0,0],[0,1],[1,0],[0,0,0]]",
    "[[0],[1],[2],[0,0],[2,0]]",
];

const LAWS: [SchemeName; 3] = [
    SchemeName::STRATIFIED,
    SchemeName::STRATIFIED_INDEPENDENT,
    SchemeName::WITH_REPLACEMENT,
];

const VOCABULARY: usize = 5;
/// Rows are multiples of one over this.
const UNITS: usize = 64;

/// The rules that there are trees of.
pub(super) fn rules() -> impl Iterator<Item = RuleName> {
    (RuleName::ALL.into_iter()).filter(|rule| rule.entry().from_leaves.is_some())
}

/// All trees of some rules.
pub(super) fn vectors(rules: &[RuleName], seed: u64) -> Result<TreeVectors, CliError> {
    let mut vectors = Vec::new();
    for &rule in rules {
        let tenths: [&[u32]; 2] = [
            if rule == RuleName::TRAVERSAL_4 {
                &[8, 5, 2, 0]
            } else {
                &[0]
            },
            &[0],
        ];
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        for (tree, law, situation) in TREES.iter().flat_map(|tree| {
            let of_law = |law| SITUATIONS.map(|situation| (*tree, law, situation));
            LAWS.into_iter().flat_map(of_law)
        }) {
            let shape = DraftTree::from_json(tree)
                .map_err(|error| CliError::internal(error.to_string()))?
                .shape();
            if let Some(drawn) = Drawn::new(&shape, law, situation, &mut random) {
                vectors.push(drawn.vector(rule, tenths, &mut random));
            }
        }
    }
    Ok(TreeVectors {
        schema: 1,
        tool: crate::log::tool(),
        seed,
        vectors,
    })
}

fn parts(units: &[usize]) -> Vec<Rational> {
    let part = |&x: &usize| Rational::new(x.into(), UNITS.into());
    units.iter().map(part).collect()
}

/// So many units over the tokens that may have some.
fn row(random: &mut ChaCha8Rng, may: &dyn Fn(usize) -> bool) -> Vec<usize> {
    let tokens: Vec<usize> = (0..VOCABULARY).filter(|&x| may(x)).collect();
    let weights: Vec<f64> = tokens
        .iter()
        .map(|_| random.random::<f64>().powi(3))
        .collect();
    let total: f64 = weights.iter().sum();
    let mut row = vec![0; VOCABULARY];
    for (&x, weight) in tokens.iter().zip(weights) {
        row[x] = (weight / total * UNITS as f64).floor() as usize;
    }
    while row.iter().sum::<usize>() < UNITS {
        row[tokens[random.random_range(0..tokens.len())]] += 1;
    }
    row
}

/// p and q of a row.
fn rows(situation: &str, random: &mut ChaCha8Rng) -> [Vec<usize>; 2] {
    let any = |_: usize| true;
    let falling = |mut q: Vec<usize>| {
        q.sort_by(|a, b| b.cmp(a));
        q
    };
    let one_hot = |at: usize| row(&mut ChaCha8Rng::seed_from_u64(0), &|x| x == at);
    let (p, q) = (row(random, &any), falling(row(random, &any)));
    match situation {
        "close" => {
            let mut p = q.clone();
            let heavy = p.iter().position(|&x| x >= 2).unwrap_or(0);
            p[heavy] -= 2;
            p[random.random_range(0..VOCABULARY)] += 2;
            [p, q]
        }
        "equal" => [q.clone(), q],
        // 64 is no multiple of 5: one token has less.
        "uniform" => [0; 2].map(|_| vec![13, 13, 13, 13, 12]),
        "disjoint" => {
            let half = VOCABULARY / 2;
            [
                row(random, &|x| x > half),
                falling(row(random, &|x| x <= half)),
            ]
        }
        "zero-target" => [row(random, &|x| x > 0), q],
        "one-hot-draft" => [p, one_hot(0)],
        "one-hot-target" => [one_hot(random.random_range(0..VOCABULARY)), q],
        // No token is sure, and one is over the cut in the middle.
        "twice" => [p, vec![18, 17, 16, 8, 5]],
        _ => [p, q],
    }
}

/// All that so many drafts may be.
fn tuples(law: SchemeName, q: &[usize], drafts: usize) -> Option<Vec<(Vec<u32>, Rational)>> {
    let MadeOf::OneDraft(made) = law.entry().made_of else {
        return None;
    };
    let draft = Draft::from_rationals(parts(q)).ok()?;
    let mut all = Vec::new();
    made(draft, drafts).for_each_tuple_exact(&mut |tuple, mass| {
        all.push((tuple.to_vec(), mass.clone()));
    });
    Some(all)
}

/// Returns how many of so many drafts are sure, by its definition; none where they are i.i.d.
fn sure(law: SchemeName, q: &[usize], drafts: usize) -> Option<usize> {
    let (mut left, mut sure) = (UNITS, 0);
    for &units in q.iter().take(drafts - 1) {
        if (drafts - sure) * units < left {
            break;
        }
        left -= units;
        sure += 1;
    }
    (law != SchemeName::WITH_REPLACEMENT).then_some(sure)
}

/// A drafted tree.
struct Drawn {
    law: SchemeName,
    situation: &'static str,
    parents: Vec<usize>,
    rows: Vec<[Vec<usize>; 2]>,
    nodes: Vec<DrawnNode>,
}

impl Drawn {
    /// None where a situation cannot be had.
    fn new(
        shape: &Shape,
        law: SchemeName,
        situation: &'static str,
        random: &mut ChaCha8Rng,
    ) -> Option<Self> {
        let is_twice = situation == "twice";
        if is_twice && (law != SchemeName::STRATIFIED_INDEPENDENT || shape.children[0] != 2) {
            return None;
        }
        let mut places = vec![0];
        let mut drawn = Self {
            law,
            situation,
            parents: Vec::new(),
            rows: Vec::new(),
            nodes: Vec::new(),
        };
        let node = |token| DrawnNode {
            token,
            ..DrawnNode::default()
        };
        drawn.nodes.push(node(0));
        let mut here = 0;
        while let Some(&place) = places.get(here) {
            // What is special is so at the root, and of every other tree at all nodes.
            let own = if here == 0 || (!is_twice && random.random()) {
                situation
            } else {
                "random"
            };
            let [p, mut q] = rows(own, random);
            drawn.nodes[here].target = parts(&p);
            let count = shape.children[place].min(q.iter().filter(|&&x| x > 0).count());
            if count == 0 {
                q = vec![0; VOCABULARY];
            } else {
                let all = tuples(law, &q, count)?;
                let may = |tuple: &[u32]| !(is_twice && here == 0) || tuple[0] == tuple[1];
                let mut left = random.random::<f64>();
                let mut some: Vec<_> = all.iter().filter(|one| may(&one.0)).collect();
                let mass: f64 = some.iter().map(|one| one.1.to_f64()).sum();
                some.retain(|one| {
                    left -= one.1.to_f64() / mass;
                    left <= 0.0
                });
                let tuple = some
                    .first()
                    .map_or(all[all.len() - 1].0.clone(), |one| one.0.clone());
                for (rank, &token) in tuple.iter().enumerate() {
                    if !(is_twice && here == 0 && rank == 1) {
                        drawn.nodes.push(node(token));
                        drawn.parents.push(here);
                        places.push(shape.child(place, rank));
                    }
                    let last = drawn.nodes.len() - 1;
                    drawn.nodes[here].drafts.push(last);
                }
                drawn.nodes[here].sure = sure(law, &q, count);
                drawn.nodes[here].tuples = all;
            }
            drawn.rows.push([p, q]);
            here += 1;
        }
        Some(drawn)
    }

    fn vector(self, rule: RuleName, tenths: [&[u32]; 2], random: &mut ChaCha8Rng) -> TreeVector {
        let levels = tenths.map(|own| {
            let tenth = |&x: &u32| Rational::new(x.into(), 10u32.into());
            own.iter().map(tenth).collect::<Vec<_>>()
        });
        let rows = self.nodes.len();
        let slots = self
            .nodes
            .iter()
            .map(|node| node.drafts.iter().map(|&x| x - 1).collect());
        let (slots, tokens) = (
            slots.collect(),
            self.nodes[1..].iter().map(|node| node.token).collect(),
        );
        let ends = ends_from_leaves(self.nodes, [&levels[0], &levels[1]]);
        let mut masses = vec![vec![Rational::zero(); VOCABULARY]; rows];
        let mut left = Rational::one();
        for end in &ends {
            let mass = left.times(&end.chance);
            for (sum, p) in masses[end.node].iter_mut().zip(&end.law) {
                sum.gain(&mass.times(p));
            }
            left = left.minus(&mass);
        }
        let kept: Vec<Rational> = masses.iter().map(Rational::total).collect();
        let next = masses.iter().zip(&kept).map(|(masses, kept)| {
            let share = |mass: &Rational| {
                if kept.is_nil() {
                    0.0
                } else {
                    round_nearest(&mass.over(kept))
                }
            };
            masses.iter().map(share).collect()
        });
        let units = |of: usize| {
            let row = |rows: &[Vec<usize>; 2]| {
                rows[of].iter().map(|&x| x as f64 / UNITS as f64).collect()
            };
            self.rows.iter().map(row).collect()
        };
        TreeVector {
            rule: rule.as_str(),
            levels: tenths.map(|own| own.iter().map(|&x| f64::from(x) / 10.0).collect()),
            law: self.law.as_str(),
            situation: self.situation,
            tokens,
            parents: self.parents,
            slots,
            target: units(0),
            draft: units(1),
            next_law: next.collect(),
            kept_law: kept.iter().map(round_nearest).collect(),
            coins: coins(&ends, rows, random),
        }
    }
}

/// How far coins are from where the outcome changes, and how near they may be.
const APART: f64 = 1e-3;
const LEAST: f64 = 1e-4;

/// For each end that can be: coins at which a round ends there, some of them barely, and at which it
/// barely does not.
fn coins(ends: &[TreeEnd], rows: usize, random: &mut ChaCha8Rng) -> Vec<TreeCoins> {
    let mut found = Vec::new();
    // The probability that all offers of a node so far were refused.
    let mut refused = vec![1.0; rows];
    for (turn, end) in ends.iter().enumerate() {
        let before = refused[end.node];
        let behind = before * (1.0 - end.chance.to_f64());
        for own in [
            0.5 * (before + behind),
            behind * (1.0 + APART),
            behind * (1.0 - APART),
        ] {
            let below = |&refused: &f64| if refused > 0.0 { 0.5 * refused } else { 0.5 };
            let mut coins: Vec<f64> = refused.iter().map(below).collect();
            coins[end.node] = if own > 0.0 { own } else { 0.5 };
            found.extend(choice(ends, coins, turn, random));
        }
        refused[end.node] = behind;
    }
    found
}

/// Returns what comes of some coins; nothing where rounding may decide.
fn choice(
    ends: &[TreeEnd],
    coins: Vec<f64>,
    turn: usize,
    random: &mut ChaCha8Rng,
) -> Option<TreeCoins> {
    let mut refused = vec![1.0; coins.len()];
    for end in ends {
        let (coin, before) = (coins[end.node], refused[end.node]);
        let behind = before * (1.0 - end.chance.to_f64());
        refused[end.node] = behind;
        if end.node > 0 && end.chance != Rational::one() {
            if (coin - behind).abs() < LEAST * behind + LEAST * APART {
                return None;
            }
            if coin < behind {
                continue;
            }
        }
        let law: Vec<f64> = end.law.iter().map(Rational::to_f64).collect();
        let heavy: Vec<usize> = (0..law.len()).filter(|&x| law[x] >= APART).collect();
        let token = *heavy.get((turn + random.random_range(0..2)) % heavy.len().max(1))?;
        let before: f64 = law[..token].iter().sum();
        return Some(TreeCoins {
            nodes: coins[1..].to_vec(),
            last: before + 0.5 * law[token],
            kept: end.node,
            token,
        });
    }
    None
}
