//! Claims about trees of which one child of each node is selected, and whose path is verified as a
//! block; `docs/theory/tree-replay.md` has the proof.

use super::Finding;
use super::claim::claims;
use super::family::Family;
use super::layers::{Lift, rules};
use super::text::Pair;
use super::traversal::{
    Grown, LAWS, Next, Rounds, draft, each_free, each_model, each_tree, following, texts, tuples,
};
use specgap_number::distribution::Rational;
use specgap_number::number::Number;

claims! {
    holds "selected-block-lossless" by lossless,
        "select one child of each node of a tree with a law s that rows give, follow them to a \
        leaf, and verify that path as a block with s for q: the target's text comes out. How many \
        children a node gets may depend on all that was drawn before, other branches included",
        "ours: docs/theory/tree-replay.md, Theorem LB",
        "Every tree, draft and selection in fractions, for each law with its rules: the \
        child that the rule accepts is selected, and the first where it accepts none. Shapes by \
        depth, by place, and shapes that look at other branches.";
    holds "selected-block-above-recursion" by above_recursion,
        "where the number of children depends on the prefix alone, the selected path keeps i \
        tokens of a text with chance min over j <= i of the product of s/p, at least what the same \
        rule keeps node by node from the root, text by text and at every depth",
        "ours: docs/theory/tree-replay.md, Theorem LB",
        "The formula along every text against every tree, draft and coin, in fractions. \
        Where the number of children looks at other branches, E[tau] may be below what the rule \
        keeps from the root: of some models it is.";
}

/// The law of the selected child of a node with so many children.
fn selected(lift: &mut Lift<'_>, prefix: &[usize], count: usize) -> Option<Vec<Rational>> {
    let (law, q) = (lift.law, draft(lift.pair, prefix));
    let step = lift.step(prefix, count, &Rational::one())?;
    let mut all = step.flow.clone();
    for (tuple, mass) in tuples(law, &q, count) {
        let free = Rational::total(step.accepted.get(&tuple)?).complement();
        all[tuple[0] as usize].gain(&mass.times(&free));
    }
    Some(all)
}

/// A node of a selected path: its prefix, how much of the path above is kept, and the law of the child
/// that is selected, if it has some.
#[derive(Clone)]
struct Passed {
    prefix: Vec<usize>,
    kept: Rational,
    selected: Option<Vec<Rational>>,
}

/// Adds the rounds of a tree from a node on, to which its selection comes with such a chance.
fn see(
    lift: &mut Lift<'_>,
    rounds: &mut Rounds,
    nodes: &[Grown],
    (node, chance): (usize, &Rational),
    path: &[Passed],
) -> Option<()> {
    let own = &nodes[node];
    let [p, _] = lift.pair.rows(&own.prefix)?.clone();
    let above = path.last();
    let kept = above.and_then(|above| {
        let token = *own.prefix.last()?;
        let [target, _] = lift.pair.rows(&above.prefix)?;
        let ratio = target[token].over(&above.selected.as_ref()?[token]);
        Some(above.kept.times(&ratio).smaller(&Rational::one()))
    });
    let kept = kept.unwrap_or_else(Rational::one);
    let mut path = path.to_vec();
    let mut passed = Passed {
        prefix: own.prefix.clone(),
        kept,
        selected: None,
    };
    let Some(count) = own.count.filter(|_| !own.children.is_empty()) else {
        rounds.gain_ends(&own.prefix, &p, &chance.times(&passed.kept));
        let left = chance.times(&passed.kept.complement());
        return upwards(lift, rounds, &path, left);
    };
    passed.selected = Some(selected(lift, &own.prefix, count)?);
    path.push(passed);
    let step = lift.step(&own.prefix, count, &Rational::one())?;
    let mut chosen = step.accepted.get(&own.tuple(nodes)?)?.clone();
    let free = Rational::total(&chosen).complement();
    chosen[0].gain(&free);
    for (&child, share) in own.children.iter().zip(&chosen) {
        if !share.is_nil() {
            see(lift, rounds, nodes, (child, &chance.times(share)), &path)?;
        }
    }
    Some(())
}

/// Ends a round somewhere on its path, whose leaf was not kept, from below.
fn upwards(
    lift: &Lift<'_>,
    rounds: &mut Rounds,
    path: &[Passed],
    mut reach: Rational,
) -> Option<()> {
    for node in path.iter().rev() {
        let [p, _] = lift.pair.rows(&node.prefix)?;
        let each = p.iter().zip(node.selected.as_ref()?);
        let owed: Vec<Rational> = each
            .map(|(p, s)| p.times(&node.kept).excess_over(s))
            .collect();
        let free = node.kept.complement();
        let whole = Rational::total(&owed).plus(&free);
        if whole.is_nil() {
            break;
        }
        rounds.gain_ends(&node.prefix, &owed, &reach.over(&whole));
        reach = reach.times(&free).over(&whole);
    }
    Some(())
}

fn rounds(lift: &mut Lift<'_>, next: Next<'_>) -> Option<Rounds> {
    let (mut rounds, mut all) = (Rounds::default(), Some(()));
    each_tree((lift.pair, lift.law, next), &[], &mut |nodes, chance| {
        all = all.and_then(|()| see(lift, &mut rounds, nodes, (0, chance), &[]));
    });
    all.map(|()| rounds)
}

fn lossless(finding: &mut Finding) {
    each_model(3210, 2, |model| {
        for rule in rules(model.law).filter(|_| model.root.len() == 1) {
            let found = rounds(&mut Lift::new(model.pair, model.law, rule), &model.next());
            let holds = found.is_some_and(|found| found.is_lossless(model.pair, model.texts));
            finding.require(holds, || format!("{}, {rule}: another text", model.name));
            finding.add("models with a rule, every tree, draft and selection", 1);
        }
    });
    each_free(3211, |pair, texts, law| {
        for rule in rules(law) {
            let found = rounds(&mut Lift::new(pair, law, rule), &following(pair));
            let holds = found.is_some_and(|found| found.is_lossless(pair, texts));
            finding.require(holds, || {
                format!("{law}, {rule}: another text of free shapes")
            });
            finding.add("of shapes that look at other branches", 1);
        }
    });
}

/// Numbers of children by depth.
const WIDTHS: [&[usize]; 5] = [&[2], &[2, 1], &[1, 2], &[2, 2], &[2, 1, 1]];

fn above_recursion(finding: &mut Finding) {
    let mut family = Family::new(3212);
    for widths in WIDTHS {
        let vocab = 2 + usize::from(widths.len() < 3);
        let pair = Pair::random(&mut family, vocab, widths.len() + 1);
        let texts = texts(vocab, widths.len() + 1);
        for law in LAWS {
            for rule in rules(law) {
                let mut lift = Lift::new(&pair, law, rule);
                let name = || format!("{law}, {rule}");
                finding.about(name, |finding| by_depth(finding, &mut lift, widths, &texts));
            }
        }
    }
    each_free(3213, |pair, _, law| {
        for rule in rules(law) {
            let mut lift = Lift::new(pair, law, rule);
            let found = rounds(&mut lift, &following(pair));
            let both = found.zip(lift.rounds_from_root(&following(pair)));
            let is_below = both.is_some_and(|(found, down)| found.kept() < down.kept());
            finding.add("models of shapes that look at other branches", 1);
            finding.tally("of these, with less than from the root", is_below);
        }
    });
    finding.enough(&[KEPT], 100);
}

const KEPT: &str = "of which more is kept than from the root";

/// Checks what is kept where nodes of a depth have so many children.
fn by_depth(
    finding: &mut Finding,
    lift: &mut Lift<'_>,
    widths: &[usize],
    texts: &[Vec<usize>],
) -> Option<()> {
    let pair = lift.pair;
    let next = |nodes: &[Grown]| {
        let is_open = |node: &Grown| node.count.is_none() && node.prefix.len() < widths.len();
        let open = nodes.iter().position(is_open)?;
        Some((open, widths[nodes[open].prefix.len()]))
    };
    let (found, down) = (rounds(lift, &next)?, lift.rounds_from_root(&next)?);
    for text in texts {
        let [found, down] = [&found, &down].map(|rounds| rounds.ways(pair, text));
        let mut least = Rational::one();
        let mut product = Rational::one();
        for depth in 1..text.len() {
            let (prefix, token) = (&text[..depth - 1], text[depth - 1]);
            let both = selected(lift, prefix, widths[depth - 1]).zip(pair.rows(prefix));
            let Some((selected, [p, _])) = both.filter(|(_, [p, _])| !p[token].is_nil()) else {
                break;
            };
            product *= &selected[token] / &p[token];
            least = least.smaller(&product);
            let by_text = least.times(&pair.written(text, 0));
            let [found, down] = [&found, &down].map(|ways| Rational::total(&ways[depth..]));
            finding.add("prefixes of texts", 1);
            finding.tally(KEPT, found > down);
            finding.same(&found, &by_text, || format!("{text:?}"));
            finding.at_most("from the root", &down, &found);
        }
    }
    Some(())
}
