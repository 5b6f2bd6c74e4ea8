//! The first lines: which tree to set, and what it buys.

use crate::report::length::numbers::{cost, plus_minus};
use crate::report::page::Block;
use crate::report::replayed;
use crate::report::text::{count, counted, percent};
use crate::text::{TreeReport, TreeResult};

pub(super) fn title(report: &TreeReport) -> String {
    format!("Draft trees: {}", replayed::names(&report.of))
}

pub(super) fn subtitle(report: &TreeReport) -> String {
    replayed::subtitle(&report.of)
}

pub(super) fn lead(report: &TreeReport) -> Vec<Block> {
    let unfinished = replayed::unfinished(&report.of).map(Block::Caution);
    let mut blocks: Vec<Block> = unfinished.into_iter().collect();
    blocks.push(Block::Paragraph(advice(report)));
    let points = points(report);
    if !points.is_empty() {
        blocks.push(Block::List(points));
    }
    let cautions = [
        unlisted(report),
        replayed::few_prompts(report.of.clusters, "tree"),
        replayed::surprise(report.surprise.z),
        flat(report),
    ];
    blocks.extend(cautions.into_iter().flatten().map(Block::Caution));
    blocks
}

/// What to set and what it buys, in a sentence.
fn advice(report: &TreeReport) -> String {
    let Some(best) = report.best.first() else {
        return "Too few prompts: a tree has to be chosen on some and reported on others."
            .to_owned();
    };
    let depth = best.paths.iter().map(Vec::len).max().unwrap_or(0);
    let what = format!(
        "the tree below, {} in {}, with {} on {} drafts",
        counted(best.paths.len(), "token"),
        counted(depth, "level"),
        best.verifier,
        best.scheme
    );
    let buys = format!(
        "{} tokens for each target call",
        plus_minus(&best.tokens_per_call, 2)
    );
    if let (Some(speed), Some(timings)) = (&best.speedup, &report.timings) {
        let c = cost(timings.draft_cost());
        if speed.ci95[1] <= 1.0 {
            return format!(
                "Do not draft at this cost: at c = {c} the best tree, {} with {} on {} drafts, \
                 gives {} times the speed of the target alone.",
                counted(best.paths.len(), "token"),
                best.verifier,
                best.scheme,
                plus_minus(speed, 2)
            );
        }
        let unsure = if speed.ci95[0] <= 1.0 {
            " (the interval holds 1: these prompts do not show a gain)"
        } else {
            ""
        };
        return format!(
            "Draft {what}: {} times as fast as the target alone at c = {c}, and {buys}, on prompts \
             that had no say in the choice{unsure}.",
            plus_minus(speed, 2)
        );
    }
    format!(
        "If a call may verify {}, draft {what}: {buys}, on prompts that had no say in the choice.",
        counted(best.limits[0], "draft token")
    )
}

/// A tree among those that were asked for.
fn named<'a>(
    report: &'a TreeReport,
    fits: impl Fn(&TreeResult) -> bool + 'a,
) -> Option<&'a TreeResult> {
    let worth = |result: &TreeResult| {
        let estimate = result.speedup.unwrap_or(result.tokens_per_call);
        estimate.mean
    };
    report
        .results
        .iter()
        .filter(|result| fits(result))
        .max_by(|a, b| worth(a).total_cmp(&worth(b)))
}

fn points(report: &TreeReport) -> Vec<String> {
    let mut points = Vec::new();
    if let Some(best) = report.best.first() {
        let size = best.paths.len();
        if let Some(other) = named(report, |result| result.nodes <= size) {
            points.push(format!(
                "Of the trees that were named, {} with {} on {} drafts does best with no more \
                 tokens: {} tokens for each target call, over all prompts.",
                other.tree,
                other.verifier,
                other.scheme,
                plus_minus(&other.tokens_per_call, 2)
            ));
        }
        let second = report.best.iter().find(|tree| tree.scheme != best.scheme);
        if let Some(second) = second {
            points.push(format!(
                "With {} drafts instead, the best is {} tokens for each target call ({}).",
                second.scheme,
                plus_minus(&second.tokens_per_call, 2),
                second.verifier
            ));
        }
        if let Some(sequoia) = &best.sequoia {
            points.push(format!(
                "Sequoia's program, from one vector of rates, chooses a tree that accepts {} of \
                 its drafts a round, {} of what independent levels would give; this one accepts {}.",
                plus_minus(&sequoia.expected_accepted_length, 2),
                percent(sequoia.ratio),
                plus_minus(&best.expected_accepted_length, 2)
            ));
        }
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
