//! The first lines: what several paths give a decoder, and what they could.

use crate::advice::of_paths;
use crate::length::numbers::{decimals, plus_minus};
use crate::{cautions, replayed};
use specgap_page::Block;
use specgap_page::words::{count, counted, listed, percent};
use specgap_replay::replay::{AtDrafts, PathVerifier, PathsReport};
use specgap_statistics::statistics::Estimate;

/// K of the first lines, as far as it was asked for.
const SHOWN: usize = 4;

/// The optimum of one path.
const ONE: &str = "greedy-block";

/// What changes nothing later: of one path in wide use, of one as a block, and of several.
const COMMON: &str = "token";
pub(super) const BLOCK: &str = "block";
pub(super) const CARRIED: &str = "select-block";

pub(super) fn title(report: &PathsReport) -> String {
    let finding = finding(report);
    replayed::title("Several draft paths", &report.of, &report.surprise, finding)
}

/// Says what a decoder gets by what needs nothing carried between rounds.
fn finding(report: &PathsReport) -> Option<String> {
    let at = shown(report).filter(|_| report.starts > 0)?;
    let one = at.verifiers.iter().find(|one| one.verifier == CARRIED)?;
    Some(format!(
        "{} give {} tokens for each target call",
        counted(at.drafts, "path"),
        decimals(one.tokens_per_call.as_ref()?.mean, 2)
    ))
}

/// The verifier of K i.i.d. paths that accepts most.
pub(super) fn best(at: &AtDrafts) -> Option<&PathVerifier> {
    let value = |one: &PathVerifier| one.expected_accepted_length.mean;
    (at.verifiers.iter()).max_by(|a, b| value(a).total_cmp(&value(b)))
}

pub(super) fn named<'a>(at: &'a AtDrafts, name: &str) -> Option<&'a Estimate> {
    let one = at.verifiers.iter().find(|one| one.verifier == name)?;
    Some(&one.expected_accepted_length)
}

/// A verifier's share of the upper bound.
pub(super) fn share(at: &AtDrafts, accepted: &Estimate) -> Option<f64> {
    let upper = at.upper_bounds.first()?.expected_accepted_length.mean;
    (upper > 0.0).then(|| (accepted.mean / upper).min(1.0))
}

/// The row of the first lines.
pub(super) fn shown(report: &PathsReport) -> Option<&AtDrafts> {
    let all = report.by_drafts.iter();
    let several = all.clone().filter(|at| at.drafts > 1);
    several
        .min_by_key(|at| at.drafts.abs_diff(SHOWN))
        .or(all.last())
}

pub(super) fn lead(report: &PathsReport) -> Vec<Block> {
    let Some(at) = shown(report).filter(|_| report.starts > 0) else {
        return vec![Block::Caution(format!(
            "No text has room for a block of {}: ask for a smaller --length.",
            counted(report.length, "token")
        ))];
    };
    let says = || {
        let [got, possible] = [advice(report, at), Some(possible(at, report.length))];
        let mut said = got.into_iter().chain(possible);
        let first = said.next().map(Block::Paragraph);
        let points = said.chain(points(report, at)).collect();
        first.into_iter().chain([Block::List(points)]).collect()
    };
    let cautions = [
        unlisted(report),
        replayed::few_prompts(report.of.clusters, "limit"),
        cautions::surprise(&report.surprise),
    ];
    replayed::lead(&report.of, &report.surprise, says, cautions)
}

/// Says how many paths of how many tokens.
fn of(at: &AtDrafts, length: usize) -> String {
    let paths = counted(at.drafts, "draft path");
    format!("{paths} of {}", counted(length, "token"))
}

/// Says what a decoder gets round after round, by what needs nothing carried between them.
fn advice(report: &PathsReport, at: &AtDrafts) -> Option<String> {
    let of = of(at, report.length);
    let calls = |name: &str| {
        let one = at.verifiers.iter().find(|one| one.verifier == name)?;
        one.tokens_per_call.as_ref()
    };
    calls(CARRIED).map(|several| {
        let others = [(BLOCK, "as a block"), (COMMON, "token by token")];
        let others: Vec<String> = (others.into_iter())
            .filter_map(|(name, how)| Some(format!("{} {how}", plus_minus(calls(name)?, 2))))
            .collect();
        let others = match others.is_empty() {
            true => String::new(),
            false => format!(", one path {}", listed(&others)),
        };
        let (verb, more) = match of_paths(&report.advice, at.drafts) {
            Some((true, more)) => ("verify by", format!(": {more}")),
            Some((false, more)) => ("by", format!(": {more}")),
            None => ("by", String::new()),
        };
        format!(
            "With {of} {verb} {CARRIED}: {} tokens for each target call{others}{more}.",
            plus_minus(several, 2)
        )
    })
}

/// Says what no verifier passes in a round.
fn possible(at: &AtDrafts, length: usize) -> String {
    let of = of(at, length);
    let one = named(at, ONE);
    let alone = one.map_or_else(String::new, |one| {
        format!("; one path gives at most {}", plus_minus(one, 2))
    });
    match at.upper_bounds.first() {
        Some(bound) => format!(
            "In a round that starts with the target's own law, no verifier of {of} accepts more than \
             {} tokens on average{alone}.",
            plus_minus(&bound.expected_accepted_length, 2)
        ),
        None => format!(
            "In a round that starts with the target's own law, the best verifier of {of} accepts at \
             least {} tokens on average{alone}.",
            plus_minus(&at.lower_bound, 2)
        ),
    }
}

fn points(report: &PathsReport, at: &AtDrafts) -> Vec<String> {
    let mut points = Vec::new();
    let known: Vec<String> = (at.verifiers.iter())
        .filter(|one| !["token", "block", ONE].contains(&one.verifier.as_str()))
        .map(|one| {
            let accepted = &one.expected_accepted_length;
            let share = share(at, accepted);
            let share = share.map_or_else(String::new, |share| format!(" ({})", percent(share)));
            format!("{} {}{share}", one.verifier, plus_minus(accepted, 2))
        })
        .collect();
    if !known.is_empty() {
        let of = match at.upper_bounds.is_empty() {
            true => "",
            false => ", and at least how much that is of what is possible",
        };
        points.push(format!(
            "Accepted in one round with {}{of}: {}. A greedy block changes the target of the next \
             round: it is for decoders that carry that change.",
            counted(at.drafts, "path"),
            known.join(", ")
        ));
    }
    if let (Some(one), Some(several)) = (named(at, BLOCK), named(at, CARRIED)) {
        points.push(format!(
            "{} beyond the first: {} accepted tokens a round instead of {}, both as a block. Each costs \
             as many draft tokens, and as many that the target has to check, as the first.",
            counted(at.drafts - 1, "path"),
            plus_minus(several, 2),
            plus_minus(one, 2)
        ));
    }
    let most = report.by_drafts.iter().map(|at| at.drafts).max();
    points.push(match at.upper_bounds.first().map(|one| one.form.as_str()) {
        Some("several paths") => format!(
            "The bound is without bias: {} from which {} were drawn, limits fitted on half of the \
             prompts and reported on the other. Its interval is about sampling alone.",
            counted(report.anchors, "context"),
            counted(report.logged_paths, "draft path")
        ),
        Some("pooled paths") => format!(
            "The bound lies above what several paths a context would show, as contexts have {}: it \
             averages over contexts first.",
            counted(report.logged_paths, "draft path")
        ),
        Some(_) if report.of.cuts.is_some() => format!(
            "The bound is made of the text, and lies above what paths would show. Paths are drawn from \
             the draft's whole row, and here it is cut{}: none of them are read. Capture text that is \
             not cut, with --paths {} --path-length {}, to bring the bound of such text down.",
            cuts(report),
            most.unwrap_or(1),
            report.length
        ),
        Some(_) => format!(
            "This log has no draft paths. The bound is made of the text, and lies above what paths \
             would show: capture with --paths {} --path-length {} to bring it down.",
            most.unwrap_or(1),
            report.length
        ),
        None => "There is one prompt only, so that nothing bounds what is possible.".to_owned(),
    });
    points
}

/// Returns what the rows are cut to.
fn cuts(report: &PathsReport) -> String {
    let cuts = report
        .of
        .cuts
        .map(|cuts| cuts.in_words(&[report.of.temperature]));
    cuts.map_or_else(String::new, |cuts| format!(" ({cuts})"))
}

/// Says what tokens that their rows do not list make unsure.
fn unlisted(report: &PathsReport) -> Option<String> {
    (report.of.unlisted > 0).then(|| {
        format!(
            "{} of {} tokens of the text are not listed by their rows. Tokens that a row does not \
             list count as one token there: two paths with different ones are taken to agree, so \
             that what verifiers of several paths accept may be a little less.",
            count(report.of.unlisted),
            count(report.of.positions)
        )
    })
}
