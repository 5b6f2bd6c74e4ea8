//! The first lines: which tree to set, and what it buys.

use crate::advice::{as_it_does, no_reference, of_tree};
use crate::length::numbers::{cost, decimals, plus_minus};
use crate::{cautions, replayed};
use specgap_page::Block;
use specgap_page::words::{count, counted, percent};
use specgap_replay::replay::{ReferenceTree, TreeDifference, TreeReport, tree_changes};
use specgap_statistics::statistics::Estimate;

pub(super) fn title(report: &TreeReport) -> String {
    let finding = finding(report);
    replayed::title("Draft trees", &report.of, &report.surprise, finding)
}

/// The tree that engines have, if the verdict names it.
pub(super) fn named(report: &TreeReport) -> Option<&ReferenceTree> {
    let is_worth = tree_changes(report).first().map(of_tree);
    let is_worth = is_worth.is_some_and(|(is_worth, _)| is_worth);
    let reference = report.reference.as_ref();
    reference.filter(|_| !is_worth && !is_open(report))
}

/// The tree that is advised, if one is.
pub fn advised(report: &TreeReport) -> Option<&[Vec<usize>]> {
    let best = report.best.first()?;
    let is_slow = |speed: &Estimate| speed.ci95[1] <= 1.0;
    if report.of.is_off(&report.surprise)
        || is_open(report)
        || best.speedup.as_ref().is_some_and(is_slow)
    {
        return None;
    }
    let named = named(report).and_then(|one| report.trees.get(&one.tree));
    Some(named.unwrap_or(&best.paths))
}

/// Says what the tree of the first sentence gives: one that engines have, unless the grown one is
/// told apart from it.
fn finding(report: &TreeReport) -> Option<String> {
    let best = report.best.first()?;
    let tokens =
        |estimate: &Estimate| format!("{} tokens for each target call", decimals(estimate.mean, 2));
    if is_open(report) {
        return None;
    }
    Some(match named(report) {
        Some(theirs) => format!("{} gives {}", theirs.tree, tokens(&theirs.tokens_per_call)),
        None => format!("the grown tree gives {}", tokens(&best.tokens_per_call)),
    })
}

pub(super) fn lead(report: &TreeReport) -> Vec<Block> {
    let says = || {
        let points = points(report);
        let points = (!points.is_empty()).then_some(Block::List(points));
        let said = advice(report).into_iter().map(Block::Paragraph);
        said.chain(points).collect()
    };
    let cautions = [
        unlisted(report),
        replayed::few_prompts(report.of.clusters, "tree"),
        cautions::surprise(&report.surprise),
        flat(report),
    ];
    replayed::lead(&report.of, &report.surprise, says, cautions)
}

/// Tells whether lists leave what trees get more open than the sample does.
fn is_open(report: &TreeReport) -> bool {
    let best = report.best.first().map(|tree| &tree.tokens_per_call);
    let theirs = report.reference.as_ref().map(|tree| &tree.tokens_per_call);
    best.into_iter()
        .chain(theirs)
        .any(|estimate| estimate.open().is_some())
}

/// Says what to set and what it buys, in a sentence or two: a tree that engines have, unless these
/// prompts tell the grown one apart from it.
fn advice(report: &TreeReport) -> Vec<String> {
    let Some(best) = report.best.first() else {
        let why = report
            .left_out
            .first()
            .filter(|_| report.results.is_empty());
        return vec![match (report.of.clusters > 1, why) {
            (true, Some(why)) => format!("No tree is grown. Left out: {why}."),
            (true, None) => "No tree is grown: no text has room for one.".to_owned(),
            _ => "Too few prompts: a tree has to be chosen on some and reported on others."
                .to_owned(),
        }];
    };
    let depth = best.paths.iter().map(Vec::len).max().unwrap_or(0);
    let limit = match depth == best.limits[1] && depth < best.limits[0] {
        true => " (no deeper one was tried: --max-depth)",
        false => "",
    };
    let grown = format!(
        "{}, depth {depth}{limit}, with {} on {} drafts",
        counted(best.paths.len(), "token"),
        best.verifier,
        best.scheme
    );
    let below = best.most_accepted_length.map(|most| {
        format!(
            " Of its drafts {} accepts {} where the whole tree fits into the text, and no \
             lossless rule more than {}.",
            best.verifier,
            plus_minus(&best.expected_accepted_length, 2),
            plus_minus(&most, 2)
        )
    });
    let below = below.unwrap_or_default();
    if is_open(report) {
        let tokens = |estimate: &Estimate| plus_minus(estimate, 2);
        let theirs = report.reference.as_ref().map_or_else(String::new, |one| {
            let tree = format!(
                "{} with {} on {} drafts",
                one.tree, one.verifier, one.scheme
            );
            format!(", and of {tree} {}", tokens(&one.tokens_per_call))
        });
        return vec![format!(
            "No tree is chosen: what each gives is known between bounds only, in tokens for each target \
             call: of the tree below, {grown}, {}{theirs}. Full rows, or longer lists, tell.",
            tokens(&best.tokens_per_call)
        )];
    }
    let at = match (&best.speedup, &report.timings) {
        (Some(speed), Some(timings)) => {
            let c = cost(timings.draft_cost());
            if speed.ci95[1] <= 1.0 {
                return vec![format!(
                    "Do not draft at this cost: at c = {c} the best tree, {grown}, gives {} times \
                     the speed of the target alone.",
                    plus_minus(speed, 2)
                )];
            }
            format!("At c = {c}")
        }
        _ => format!(
            "If a call may verify {}",
            counted(best.limits[0], "draft token")
        ),
    };
    let of_best = buys(best.speedup.as_ref(), &best.tokens_per_call);
    let doubt = best.speedup.as_ref().map_or("", replayed::unsure);
    let Some(reference) = &report.reference else {
        let only = format!(
            "The tree below, {grown}, is the best that was grown here: {of_best}, on prompts that \
             had no say in the choice{doubt}.{below}"
        );
        return vec![only, no_reference(report.engine.as_ref())];
    };
    let theirs = format!(
        "{} with {} on {} drafts{}",
        reference.tree,
        reference.verifier,
        reference.scheme,
        as_it_does(report.engine.as_ref())
    );
    let of_reference = buys(reference.speedup.as_ref(), &reference.tokens_per_call);
    let changes = tree_changes(report);
    let Some((is_worth, difference)) = changes.first().map(of_tree) else {
        return vec![format!("{at}, verify {theirs}: {of_reference}.")];
    };
    let [first, then] = match is_worth {
        true => [
            format!(
                "{at}, draft the tree below, {grown}: {of_best}, on prompts that had no say in the \
                 choice{doubt}.{below}"
            ),
            format!("On the same prompts that is {difference} more than {theirs}: {of_reference}."),
        ],
        false => [
            format!(
                "{at}, verify {theirs}: {of_reference}{}.",
                reference.speedup.as_ref().map_or("", replayed::unsure)
            ),
            format!(
                "A tree grown for this log, {grown}, {difference}, on prompts that had no say in the \
                 choice.{below}"
            ),
        ],
    };
    vec![first, then]
}

/// Says what a tree buys.
fn buys(speed: Option<&Estimate>, tokens_per_call: &Estimate) -> String {
    let tokens = format!(
        "{} tokens for each target call",
        plus_minus(tokens_per_call, 2)
    );
    match speed {
        Some(speed) => format!(
            "{} times as fast as the target alone, and {tokens}",
            plus_minus(speed, 2)
        ),
        None => tokens,
    }
}

/// The difference that decides: of speeds where they are known.
fn decisive(difference: &TreeDifference) -> &Estimate {
    let speeds = difference.speedup.as_ref();
    speeds.unwrap_or(&difference.tokens_per_call)
}

fn points(report: &TreeReport) -> Vec<String> {
    let mut points = Vec::new();
    let Some(best) = report.best.first() else {
        return points;
    };
    let mut laws = vec![best.scheme.as_str()];
    let mut others = Vec::new();
    for tree in &report.best {
        let Some(difference) = tree.minus_best.as_ref() else {
            continue;
        };
        if laws.contains(&tree.scheme.as_str()) {
            continue;
        }
        laws.push(&tree.scheme);
        let doubt = match decisive(difference).side() {
            Some(_) => "",
            None => ", not told apart",
        };
        others.push(format!(
            "{} on {} drafts {} ({}{doubt})",
            tree.verifier,
            tree.scheme,
            plus_minus(tree.speedup.as_ref().unwrap_or(&tree.tokens_per_call), 2),
            plus_minus(decisive(difference), 2)
        ));
    }
    if !others.is_empty() {
        points.push(format!(
            "Trees grown the same way for other drafts, in {}, and in brackets what that is more than of \
             {} on {} drafts, on the same prompts: {}.",
            match best.speedup {
                Some(_) => "times the target's speed",
                None => "tokens for each target call",
            },
            best.verifier,
            best.scheme,
            others.join("; ")
        ));
    }
    if let Some(sequoia) = &best.sequoia {
        points.push(format!(
            "Sequoia's program, from one vector of rates, chooses a tree that accepts {} of its drafts \
             a round; the grown tree accepts {}.",
            plus_minus(&sequoia.expected_accepted_length, 2),
            plus_minus(&best.expected_accepted_length, 2)
        ));
    }
    points
}

fn unlisted(report: &TreeReport) -> Option<String> {
    let [p, q] = report.unlisted_mass;
    (p > 0.0 || q > 0.0).then(|| {
        format!(
            "Rows list only some tokens: {} of the target's mass and {} of the draft's are not \
             listed on average, and {} of the text's {} tokens. “in [a, b]” bounds what full rows \
             would give, where such bounds are known; the number over it takes the tokens that are \
             not listed for as few as they can be, with p and q in proportion.",
            percent(p),
            percent(q),
            count(report.of.unlisted),
            count(report.of.positions)
        )
    })
}

fn flat(report: &TreeReport) -> Option<String> {
    let timings = report.timings.as_ref()?;
    timings.is_flat().then(|| {
        "A cost ratio alone makes a verifying pass cost the same however large the tree is, so that \
         the largest tree tends to win. Measured times (--timings) count what width costs."
            .to_owned()
    })
}
