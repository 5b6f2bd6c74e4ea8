//! The first lines: what to set, and what it buys.

use super::numbers::{cost, decimals, plus_minus};
use crate::advice::{of_engine, of_lengths};
use crate::points::share;
use crate::{cautions, draft_paths, replayed};
use specgap_page::Block;
use specgap_page::words::{count, counted, listed, percent};
use specgap_replay::replay::{Chosen, Drafts, LengthReport, Parameter, costs_shown};

pub(super) fn title(report: &LengthReport) -> String {
    let finding = finding(report);
    replayed::title("Draft lengths", &report.of, &report.surprise, finding)
}

/// The best of what needs nothing new, at the first cost.
fn finding(report: &LengthReport) -> Option<String> {
    let shown = costs_shown(report);
    let at = report.at_cost.as_ref().or(shown.first().copied())?;
    let best = at.first()?;
    (best.speedup.ci95[1] > 1.0).then(|| {
        format!(
            "{} a round for {} times the target's speed at c = {}",
            counted(best.parameter as usize, "token"),
            decimals(best.speedup.mean, 2),
            cost(at.cost_ratio)
        )
    })
}

pub(super) fn subtitle(report: &LengthReport) -> String {
    let of = replayed::subtitle(&report.of);
    match draft_cut(report) {
        Some(cut) => format!("{of} · {cut}"),
        None => of,
    }
}

/// Says what is kept of the draft's row.
fn draft_cut(report: &LengthReport) -> Option<String> {
    let cuts = report.draft_cuts?;
    Some(match cuts.keep_all() {
        true => "q not cut".to_owned(),
        false => format!(
            "q cut to {}, renormalised",
            cuts.in_words(&[report.of.temperature])
        ),
    })
}

pub(super) fn lead(report: &LengthReport) -> Vec<Block> {
    let says = || {
        let mut blocks: Vec<Block> = (report.engine.iter())
            .flat_map(|engine| of_engine(engine, &report.advice))
            .map(Block::Paragraph)
            .collect();
        blocks.push(Block::Paragraph(advice(report)));
        blocks.push(Block::List(points(report)));
        blocks
    };
    let cautions = [
        unlisted(report),
        replayed::few_prompts(report.of.clusters, "length"),
        cautions::surprise(&report.surprise),
    ];
    replayed::lead(&report.of, &report.surprise, says, cautions)
}

/// Says what is drafted and how it is verified, behind a length.
fn way(one: &Chosen) -> String {
    match one.drafts {
        Drafts::Sampled => format!("with {} verification", one.verifier),
        other => format!("of {other} drafts"),
    }
}

/// Says what to set and what it buys, in a sentence.
fn advice(report: &LengthReport) -> String {
    if let Some(at) = &report.at_cost {
        let Some(best) = at.first() else {
            return no_choice(report);
        };
        let cost = cost(at.cost_ratio);
        if best.speedup.ci95[1] <= 1.0 {
            return format!(
                "Do not draft at this cost: at c = {cost} the best fixed length, {} {}, gives {} \
                 times the speed of the target alone.",
                best.parameter,
                way(best),
                plus_minus(&best.speedup, 2)
            );
        }
        let unsure = replayed::unsure(&best.speedup);
        let is_longer = |one: &Parameter| matches!(one, Parameter::Count(k) if *k > best.parameter);
        let mut tried = report.results.iter().filter(|row| row.policy == "fixed");
        let more = match tried.any(|row| is_longer(&row.parameter)) {
            true => "",
            false => " No longer one was tried (--lengths).",
        };
        return format!(
            "Draft {} a round {}: {} as fast as the target alone at c = {cost}, on prompts that \
             had no say in the length{unsure}.{more}",
            counted(best.parameter as usize, "token"),
            way(best),
            times(best)
        );
    }
    let shown: Vec<(f64, &Chosen)> = (costs_shown(report).into_iter())
        .filter_map(|at| Some((at.cost_ratio, at.first()?)))
        .collect();
    let Some(&(_, one)) = shown.first() else {
        return no_choice(report);
    };
    let alike = shown.iter().all(|(_, other)| way(other) == way(one));
    let parts: Vec<String> = (shown.iter().enumerate())
        .map(|(index, &(ratio, best))| {
            let own = match alike {
                true => String::new(),
                false => format!(" {}", way(best)),
            };
            // The first says of what.
            let of = ["", " as fast as the target alone"][usize::from(index == 0)];
            format!(
                "{}{own} at c = {} ({}{of})",
                counted(best.parameter as usize, "token"),
                cost(ratio),
                times(best)
            )
        })
        .collect();
    let all = match alike {
        true => {
            let way = way(one);
            let (head, tail) = way.split_at(1);
            format!(" {}{tail}:", head.to_uppercase())
        }
        false => String::new(),
    };
    format!(
        "How many tokens to draft depends on what a draft step costs, c of a target step.{all} {}.",
        listed(&parts)
    )
}

/// Says why there is no length to set.
fn no_choice(report: &LengthReport) -> String {
    if report.of.without_draft > 0 || report.acceptance.open().is_some() {
        bounds_alone(report)
    } else if report.of.clusters < 2 {
        "There is one prompt only. A length has to be chosen on some prompts and reported on \
         others: log more prompts."
            .to_owned()
    } else {
        "No verifier was asked for whose rounds can be replayed, so that no length is chosen: ask \
         for token or block."
            .to_owned()
    }
}

/// Says that no length is chosen, with the bounds of the shortest and the longest.
fn bounds_alone(report: &LengthReport) -> String {
    let rows = report.results.iter();
    let rows = rows.filter(|row| row.policy == "fixed" && row.drafts == Drafts::Sampled);
    let known: Vec<_> = rows
        .filter_map(|row| Some((row, row.tokens_per_call?)))
        .collect();
    let parts: Vec<String> = (known.first().into_iter())
        .chain(known.last().filter(|_| known.len() > 1))
        .map(|(row, tokens)| format!("K = {}: {}", row.parameter, plus_minus(tokens, 2)))
        .collect();
    let range = match parts.is_empty() {
        true => String::new(),
        false => format!(" ({} tokens for each target call)", parts.join("; ")),
    };
    format!(
        "No length is chosen: what each gives is known between bounds only, in the table of fixed \
         lengths{range}."
    )
}

fn times(chosen: &Chosen) -> String {
    format!("{} times", plus_minus(&chosen.speedup, 2))
}

fn points(report: &LengthReport) -> Vec<String> {
    let cut = draft_cut(report);
    let cut = cut.map(|cut| format!("All numbers are of drafts from a cut row: {cut}."));
    // What to change comes first.
    let mut points = Vec::from_iter(cut);
    points.extend(of_lengths(&report.advice, report.engine.as_ref()));
    points.push(format!(
        "A drafted token of the text is accepted {} of the time by token verification.{}",
        share(&report.acceptance),
        no_fewer(report)
    ));
    points.extend(above(report));
    if let Some(at) = &report.at_cost {
        let chosen = at
            .found(Drafts::Sampled, "token")
            .map(|one| one.speedup.mean);
        let share = chosen.map_or_else(String::new, |speed| {
            format!(
                "; the best length with it has {} of that",
                percent(speed / at.oracle.mean)
            )
        });
        points.push(format!(
            "At c = {} no choice of lengths with sampled drafts and token verification is more than {} \
             times as fast as the target alone{share}.",
            cost(at.cost_ratio),
            plus_minus(&at.oracle, 2)
        ));
    }
    let known = report.results.iter();
    let known = known.filter(|row| row.policy == "fixed" && row.drafts == Drafts::Sampled);
    let known = known.filter_map(|row| Some((row, row.break_even_cost_ratio?)));
    // The first of those that are as high.
    let best = known.reduce(|best, one| if one.1.mean > best.1.mean { one } else { best });
    if let Some((row, ratio)) = best {
        points.push(format!(
            "Drafting pays below a cost of about c = {}, the break-even of fixed length {} with {} \
             verification.",
            decimals(ratio.mean, 2),
            row.parameter,
            row.verifier
        ));
    }
    points.extend(super::groups::sentence(report));
    let paths = report.draft_paths.as_ref();
    let logs = report.of.logs.iter().map(|log| log.name.as_str());
    points.extend(paths.and_then(|paths| draft_paths::sentence(paths, logs)));
    points
}

/// The least calls of any lossless rule of one path, however long its drafts.
fn no_fewer(report: &LengthReport) -> String {
    let rows = &report.bounds.fewest_calls;
    let unlimited = rows.iter().find(|row| row.most.is_none());
    unlimited.map_or_else(String::new, |row| {
        format!(
            " No lossless rule of one path makes fewer than {} target calls a token over all rounds \
             of a text, however long its drafts.",
            plus_minus(&row.verification_rate, 3)
        )
    })
}

/// Says how far rules are from the least calls with as many drafts a round.
fn above(report: &LengthReport) -> Option<String> {
    let rows = report.bounds.fewest_calls.iter();
    let known: Vec<_> = rows.filter(|row| !row.above.is_empty()).collect();
    // One that is in use, where it is asked for.
    let usual = |most: u64| known.iter().find(|row| row.most == Some(most));
    let row = usual(4).or_else(|| usual(1)).or(known.first())?;
    let parts: Vec<String> = (row.above.iter())
        .map(|one| {
            let percent = |value: f64| format!("{}%", decimals(100.0 * value, 1));
            let [low, high] = one.more_calls.ci95;
            format!(
                "{} {} ({} to {})",
                one.rule,
                percent(one.more_calls.mean),
                percent(low),
                percent(high)
            )
        })
        .collect();
    Some(format!(
        "With at most {} a round no lossless rule of one path makes fewer than {} target calls a \
         token. Rules that draft as many every round make more: {}.",
        counted(row.most? as usize, "draft"),
        plus_minus(&row.verification_rate, 3),
        listed(&parts)
    ))
}

fn unlisted(report: &LengthReport) -> Option<String> {
    if report.of.without_draft > 0 {
        return Some(format!(
            "At {} of the text's {} positions the log has no row of the draft, as behind drafts \
             that were all accepted. A draft there is accepted with a probability between 0 and 1: \
             “a to b” bounds what all rows would give. To choose a length, score the texts that \
             came out with both models (docs/guide/engines.md).",
            count(report.of.without_draft),
            count(report.of.positions)
        ));
    }
    if report.of.unlisted > 0 {
        return Some(format!(
            "Rows list only some tokens, and {} of the text's {} tokens are not among them. Their \
             acceptance is taken from the mass of all tokens that are not listed; “in [a, b]” \
             bounds what full rows would give, where such bounds are known.",
            count(report.of.unlisted),
            count(report.of.positions)
        ));
    }
    report.acceptance.truncation.map(|_| {
        "Rows list only some tokens, and the mass of the others is known between bounds only; “in \
         [a, b]” bounds what full rows would give, where such bounds are known."
            .to_owned()
    })
}
