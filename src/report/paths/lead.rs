//! The first lines: what several paths could give, and what is got of it.

use crate::gap::Estimate;
use crate::report::length::numbers::{decimals, plus_minus};
use crate::report::page::Block;
use crate::report::replayed;
use crate::report::text::{count, counted, percent};
use crate::text::{AtDrafts, PathVerifier, PathsReport};

/// K of the first lines, as far as it was asked for.
const SHOWN: usize = 4;

/// The optimum of one path.
const ONE: &str = "greedy-block";

/// What changes nothing later, and is in wide use: what gains are measured against too.
const COMMON: &str = "token";

pub(super) fn title(report: &PathsReport) -> String {
    format!("Several draft paths: {}", replayed::names(&report.of))
}

/// The verifier of K paths that accepts most.
pub(super) fn best(at: &AtDrafts) -> Option<&PathVerifier> {
    let value = |one: &PathVerifier| one.expected_accepted_length.mean;
    let several = at.verifiers.iter();
    several.max_by(|a, b| value(a).total_cmp(&value(b)))
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
fn shown(report: &PathsReport) -> Option<&AtDrafts> {
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
    let unfinished = replayed::unfinished(&report.of).map(Block::Caution);
    let mut blocks: Vec<Block> = unfinished.into_iter().collect();
    blocks.push(Block::Paragraph(advice(report, at)));
    blocks.push(Block::List(points(report, at)));
    let cautions = [
        unlisted(report),
        replayed::few_prompts(report.of.clusters, "limit"),
        replayed::surprise(report.surprise.z),
    ];
    blocks.extend(cautions.into_iter().flatten().map(Block::Caution));
    blocks
}

/// What several paths could give, what is got of it, and what to use.
fn advice(report: &PathsReport, at: &AtDrafts) -> String {
    let paths = counted(at.drafts, "draft path");
    let of = format!("{paths} of {}", counted(report.length, "token"));
    let one = named(at, ONE);
    let alone = one.map_or_else(String::new, |one| {
        format!("; one path gives at most {}", plus_minus(one, 2))
    });
    let possible = match at.upper_bounds.first() {
        Some(bound) => format!(
            "With {of} no verifier can accept more than {} tokens a round on average{alone}.",
            plus_minus(&bound.expected_accepted_length, 2)
        ),
        None => format!(
            "With {of} the best verifier accepts at least {} tokens a round on average{alone}.",
            plus_minus(&at.lower_bound, 2)
        ),
    };
    let Some(best) = best(at) else {
        return possible;
    };
    let accepted = &best.expected_accepted_length;
    let got = share(at, accepted).map_or_else(String::new, |share| {
        let below = best.below_upper_bound.as_ref();
        let below = below.map_or_else(String::new, |below| {
            format!(", {} below that", plus_minus(below, 2))
        });
        format!("{below}: at least {} of what is possible", percent(share))
    });
    let kept = if best.verifier == "select-greedy-block" || best.verifier == ONE {
        " (it changes the target of the next round: where rounds follow each other, carry the \
         change or use select-block)"
    } else {
        ""
    };
    format!(
        "{possible} Of the verifiers here, {} gets most: {}{got}{kept}.",
        best.verifier,
        plus_minus(accepted, 2)
    )
}

fn points(report: &PathsReport, at: &AtDrafts) -> Vec<String> {
    let mut points = Vec::new();
    let known: Vec<String> = ["spectr-k-seq", "spectr-rrs", "spectr-plan", "select-block"]
        .iter()
        .filter_map(|name| {
            let accepted = named(at, name)?;
            let share = share(at, accepted);
            let share = share.map_or_else(String::new, |share| format!(" ({})", percent(share)));
            Some(format!("{name} {}{share}", plus_minus(accepted, 2)))
        })
        .collect();
    if !known.is_empty() {
        points.push(format!(
            "Others with {}: {}.",
            counted(at.drafts, "path"),
            known.join(", ")
        ));
    }
    if let (Some(one), Some(token)) = (named(at, ONE), named(at, COMMON))
        && let Some(best) = best(at)
    {
        let gain = best.expected_accepted_length.mean - one.mean;
        points.push(format!(
            "{} beyond the first {} {} accepted tokens a round to the {} that one path can give \
             (token by token: {}). Each costs as many draft tokens, and as many that the target has \
             to check, as the first.",
            counted(at.drafts - 1, "path"),
            if at.drafts == 2 { "adds" } else { "add" },
            decimals(gain, 2),
            decimals(one.mean, 2),
            decimals(token.mean, 2)
        ));
    }
    let replayed = at.verifiers.iter().filter_map(|one| {
        let calls = one.tokens_per_call.as_ref()?;
        Some((one, calls))
    });
    let most = replayed
        .clone()
        .max_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
    let token = replayed.clone().find(|(one, _)| one.verifier == COMMON);
    if let (Some((best, calls)), Some((_, token))) = (most, token) {
        points.push(format!(
            "Round after round, of the verifiers that leave later targets alone, {} needs the fewest \
             target calls: {} tokens per call with {}, against {} of one path token by token.",
            best.verifier,
            plus_minus(calls, 2),
            counted(at.drafts, "path"),
            decimals(token.mean, 2)
        ));
    }
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
        Some(_) => format!(
            "This log has no draft paths. The bound is made of the text, and lies above what paths \
             would show: capture with --paths {} --path-length {} to bring it down.",
            report
                .by_drafts
                .iter()
                .map(|at| at.drafts)
                .max()
                .unwrap_or(1),
            report.length
        ),
        None => "There is one prompt only, so that nothing bounds what is possible.".to_owned(),
    });
    points
}

/// What tokens that their rows do not list make unsure.
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
