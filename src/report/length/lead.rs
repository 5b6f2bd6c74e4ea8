//! The first lines: what to set, and what it buys.

use super::numbers::{cost, decimals, plus_minus};
use super::tables;
use crate::report::draft_paths;
use crate::report::page::Block;
use crate::report::replayed;
use crate::report::text::{count, counted, listed, percent};
use crate::text::{AtCost, Chosen, ChosenPolicy, DecidedOn, FAMILIES, LengthReport, Parameter};

pub(super) fn title(report: &LengthReport) -> String {
    format!("Draft lengths: {}", replayed::names(&report.of))
}

pub(super) fn subtitle(report: &LengthReport) -> String {
    replayed::subtitle(&report.of)
}

pub(super) fn lead(report: &LengthReport) -> Vec<Block> {
    let unfinished = replayed::unfinished(&report.of).map(Block::Caution);
    let mut blocks: Vec<Block> = unfinished.into_iter().collect();
    blocks.push(Block::Paragraph(advice(report)));
    blocks.push(Block::List(points(report)));
    let cautions = [
        unlisted(report),
        replayed::few_prompts(report.of.clusters, "length"),
        replayed::surprise(report.surprise.z),
    ];
    blocks.extend(cautions.into_iter().flatten().map(Block::Caution));
    blocks
}

/// What to set and what it buys, in a sentence.
fn advice(report: &LengthReport) -> String {
    if let Some(at) = &report.at_cost {
        let Some(best) = first(at) else {
            return no_choice(report);
        };
        let cost = cost(at.cost_ratio);
        let others = at.chosen.iter().filter(|one| one.verifier != best.verifier);
        let others: Vec<String> = others
            .map(|one| {
                format!(
                    "with {} verification {}, {}",
                    one.verifier,
                    one.parameter,
                    times(one)
                )
            })
            .collect();
        let others = if others.is_empty() {
            String::new()
        } else {
            format!("; {}", others.join("; "))
        };
        if best.speedup.ci95[1] <= 1.0 {
            return format!(
                "Do not draft at this cost: at c = {cost} the best fixed length, {}, with {} \
                 verification, gives {} times the speed of the target alone{others}.",
                best.parameter,
                best.verifier,
                plus_minus(&best.speedup, 2)
            );
        }
        if let Some(policy) = quicker(at, best) {
            return format!(
                "Let {} at {} set the draft length, with {} verification: {} times as fast as the \
                 target alone at c = {cost}, {} more than the best fixed length, {} (both on \
                 prompts that had no say in the choice){others}.",
                policy.policy,
                policy.parameter,
                policy.verifier,
                plus_minus(&policy.speedup, 2),
                plus_minus(&policy.over_fixed, 3),
                best.parameter
            );
        }
        let unsure = if best.speedup.ci95[0] <= 1.0 {
            " (the interval holds 1: these prompts do not show a gain)"
        } else {
            ""
        };
        return format!(
            "Draft {} a round with {} verification: {} as fast as the target alone at c = \
             {cost}, on prompts that had no say in the choice{unsure}{others}.",
            counted(best.parameter as usize, "token"),
            best.verifier,
            times(best)
        );
    }
    let parts: Vec<String> = tables::SHOWN
        .iter()
        .filter_map(|&ratio| {
            let at = report.by_cost.iter().find(|at| at.cost_ratio == ratio)?;
            let best = first(at)?;
            Some(format!(
                "{} at c = {} ({} as fast as the target alone)",
                counted(best.parameter as usize, "token"),
                cost(ratio),
                times(best)
            ))
        })
        .collect();
    match report.by_cost.iter().find_map(first) {
        Some(best) if !parts.is_empty() => format!(
            "How many tokens to draft depends on what a draft step costs, c of a target step. With \
             {} verification: {}.",
            best.verifier,
            listed(&parts)
        ),
        _ => no_choice(report),
    }
}

/// Why there is no length to set.
fn no_choice(report: &LengthReport) -> String {
    if report.of.clusters < 2 {
        "There is one prompt only. A length has to be chosen on some prompts and reported on \
         others: log more prompts."
            .to_owned()
    } else {
        "No verifier was asked for whose rounds can be replayed, so that no length is chosen: ask \
         for token or block."
            .to_owned()
    }
}

fn first(at: &AtCost) -> Option<&Chosen> {
    at.chosen.first()
}

/// Whether a family does not look at the target, so that a decoder can run it.
fn is_blind(name: &str) -> bool {
    let known = FAMILIES.iter().find(|family| family.name == name);
    known.is_some_and(|family| {
        !matches!(
            family.decided_on,
            DecidedOn::BothRows | DecidedOn::TrueAcceptance
        )
    })
}

/// The policy that is quickest where it was chosen, of those that a decoder can run: they do
/// not look at the target.
fn chosen_policy<'a>(at: &'a AtCost, fixed: &Chosen) -> Option<&'a ChosenPolicy> {
    let policies = at.policies.iter().filter(|one| is_blind(&one.policy));
    policies
        .filter(|one| one.verifier == fixed.verifier)
        .reduce(|best, one| {
            if best.speedup_where_chosen >= one.speedup_where_chosen {
                best
            } else {
                one
            }
        })
}

/// The same, if other prompts show that it is quicker than the fixed length.
fn quicker<'a>(at: &'a AtCost, fixed: &Chosen) -> Option<&'a ChosenPolicy> {
    chosen_policy(at, fixed).filter(|one| {
        one.speedup_where_chosen > fixed.speedup_where_chosen && one.over_fixed.ci95[0] > 0.0
    })
}

/// Whether rules that stop by themselves are worth it.
fn against_fixed(report: &LengthReport) -> Option<String> {
    // Without rollouts there is none but the schedule.
    report.rollouts.as_ref()?;
    let parts: Vec<String> = tables::shown(report)
        .into_iter()
        .filter_map(|at| {
            let fixed = first(at)?;
            let one = chosen_policy(at, fixed)?;
            let shown = if one.over_fixed.ci95[0] > 0.0 {
                "quicker"
            } else if one.over_fixed.ci95[1] < 0.0 {
                "slower"
            } else {
                "no difference shown"
            };
            Some(format!(
                "at c = {} {} at {}, {} more than {} tokens ({shown})",
                cost(at.cost_ratio),
                one.policy,
                one.parameter,
                plus_minus(&one.over_fixed, 3),
                fixed.parameter
            ))
        })
        .collect();
    (!parts.is_empty()).then(|| {
        format!(
            "The quickest rule that stops by itself, against the best fixed length, in speed-up: {}.",
            parts.join("; ")
        )
    })
}

fn times(chosen: &Chosen) -> String {
    format!("{} times", plus_minus(&chosen.speedup, 2))
}

fn points(report: &LengthReport) -> Vec<String> {
    let mut points = vec![format!(
        "A drafted token of the text is accepted with probability {} on average, and no choice of \
         lengths with token verification makes fewer than {} target calls a token.",
        plus_minus(&report.acceptance, 3),
        plus_minus(&report.bounds.oracle.verification_rate, 3)
    )];
    if let Some(at) = &report.at_cost {
        let chosen = first(at).map(|one| one.speedup.mean);
        let share = chosen.map_or_else(String::new, |speed| {
            format!(
                "; the chosen length has {} of it",
                percent(speed / at.oracle.mean)
            )
        });
        points.push(format!(
            "At c = {} no choice of lengths with token verification is more than {} times as fast \
             as the target alone{share}.",
            cost(at.cost_ratio),
            plus_minus(&at.oracle, 2)
        ));
    }
    points.extend(against_fixed(report));
    let known = report.results.iter();
    let known = known.filter(|row| is_blind(&row.policy));
    let known = known.filter_map(|row| Some((row, row.break_even_cost_ratio?)));
    // The first of those that are as high.
    let best = known.reduce(|best, one| if one.1.mean > best.1.mean { one } else { best });
    if let Some((row, ratio)) = best {
        points.push(format!(
            "Drafting pays below a cost of c = {}: the break-even of {} {} with {} \
             verification, the highest of all that were replayed.",
            decimals(ratio.mean, 2),
            match row.parameter {
                Parameter::Count(_) => format!("{} length", row.policy),
                Parameter::Threshold(_) => format!("{} at", row.policy),
            },
            row.parameter,
            row.verifier
        ));
    }
    let paths = report.draft_paths.as_ref();
    let logs = report.of.logs.iter().map(|log| log.name.as_str());
    points.extend(paths.and_then(|paths| draft_paths::sentence(paths, logs)));
    points
}

fn unlisted(report: &LengthReport) -> Option<String> {
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
